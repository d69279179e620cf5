//! Derives the operations of a plain collection from its path, by convention.
//!
//! The purpose of an operation determines its method and its effect.

use super::make::{self, ParentCollection};
use crate::{
    field::{Acceptance, Scope, WriteRequest},
    kind::{
        Kind, ScopedKind, Shape,
        description::{CollectionTrait, CreateMethod, EditMethod, Operations, RemovalAction},
    },
    operation::{
        AnyOp, Method, Op, Operation, Parameter, ParameterList, ParameterLocation, ParameterType,
        Read, ResponseBody, RetrySafety, Write,
        collection::{self, EntryPath, make_read_op, make_write_op},
    },
    text,
    value::Json,
};

/// Sets the operations of `scoped_kind` at `path`, and returns the operations that no other kind
/// has.
pub(super) fn derive_operations(
    kind: &Kind,
    scoped_kind: &mut ScopedKind,
    path: &EntryPath,
    parent_collection: Option<ParentCollection>,
) -> Vec<AnyOp> {
    let operations = OperationDeriver { kind, scoped_kind, path, parent_collection }.derive_all();
    let is_shared =
        parent_collection.is_some_and(|parent_collection| parent_collection.get_op.is_some());
    let reads = [operations.list, operations.get].into_iter().flatten().filter(|_| !is_shared);
    let create_op = operations.create.filter(|op| Some(*op) != operations.edit);
    let action_op = operations.others.first().copied();
    let writes = [create_op, operations.edit, action_op, operations.delete].into_iter().flatten();
    let new_operations = reads.map(AnyOp::Read).chain(writes.map(AnyOp::Write)).collect();
    scoped_kind.operations = operations;
    new_operations
}

/// Derives the operations of a collection or of a single object.
struct OperationDeriver<'k> {
    kind: &'k Kind,
    scoped_kind: &'k ScopedKind,
    path: &'k EntryPath,
    parent_collection: Option<ParentCollection>,
}

impl OperationDeriver<'_> {
    fn derive_all(&self) -> Operations {
        let kind = self.kind;
        let edit_op = match kind.edit {
            EditMethod::Put | EditMethod::OrReplace => Some(self.edit_operation(Method::Put)),
            EditMethod::Patch => Some(self.edit_operation(Method::Patch)),
            EditMethod::Replace => None,
        };
        let shared_get =
            self.parent_collection.and_then(|parent_collection| parent_collection.get_op);
        let is_single_object = kind.shape == Shape::Mapping;
        let has_get = is_single_object
            || (shared_get.is_none() && !self.has_trait(CollectionTrait::HasNoGet));
        let get_op = has_get
            .then(|| make_read_op(self.operation_row("get", Method::Get, ResponseBody::One, [])));
        if is_single_object {
            return Operations {
                get: get_op,
                create: edit_op,
                edit: edit_op,
                ..Operations::default()
            };
        }
        Operations {
            list: Some(shared_get.unwrap_or_else(|| self.list_operation())),
            get: get_op,
            create: match kind.create {
                CreateMethod::Put => edit_op,
                CreateMethod::Never => None,
                CreateMethod::Post | CreateMethod::WithContainer => Some(self.create_operation()),
            },
            edit: edit_op,
            delete: (kind.create != CreateMethod::Never).then(|| self.delete_operation()),
            others: self.removal_action().into_iter().collect(),
        }
    }

    fn has_trait(&self, collection_trait: CollectionTrait) -> bool {
        self.kind.traits.contains(&collection_trait)
    }

    fn list_operation(&self) -> Op<Read> {
        let query = self.path.list_query.iter().map(|(name, value)| list_parameter(name, value));
        let row = self.operation_row("list", Method::Get, ResponseBody::List, query);
        let parameters = [row.parameters, &[ParameterList::Named("paging")]].concat().leak();
        let unpaged = self.has_trait(CollectionTrait::ListsWithoutPages);
        make_read_op(Operation { parameters, unpaged, empty_as: self.scoped_kind.empty_as, ..row })
    }

    fn create_operation(&self) -> Op<Write> {
        let refuses_duplicates = self.has_trait(CollectionTrait::RefusesDuplicates);
        let retry_safety = if refuses_duplicates {
            RetrySafety::RefusesDuplicates
        } else {
            RetrySafety::MayDuplicate
        };
        let row = self.operation_row("create", Method::Post, ResponseBody::One, []);
        self.new_write_operation(Operation { retry_safety, ..row }, WriteRequest::Create)
    }

    fn edit_operation(&self, method: Method) -> Op<Write> {
        let call_only_fields =
            self.kind.fields.iter().filter(|field| field.accepted == Acceptance::ByCall);
        let parameters = call_only_fields.map(|field| {
            Parameter::new(ParameterLocation::Body, field.name, ParameterType::Text, field.about)
        });
        let row = self.operation_row("edit", method, ResponseBody::One, parameters);
        self.new_write_operation(row, WriteRequest::Edit)
    }

    fn removal_action(&self) -> Option<Op<Write>> {
        let RemovalAction { name: action, parameter, .. } = self.kind.before_removal?;
        let about = "Without it, the service refuses some entries.";
        let parameter = parameter.map(|(name, _)| {
            Parameter::new(ParameterLocation::Query, name, ParameterType::Text, about)
        });
        let row = self.operation_row(action, Method::Post, ResponseBody::Undocumented, parameter);
        let path = String::leak(format!("{}/{action}", row.path));
        Some(make_write_op(Operation { path, retry_safety: RetrySafety::Idempotent, ..row }))
    }

    fn delete_operation(&self) -> Op<Write> {
        let query_parameters = self.path.address_query.iter().map(|(name, field)| {
            let field = self.kind.fields.iter().find(|candidate| candidate.name == *field);
            Parameter::new(
                ParameterLocation::Query,
                name,
                ParameterType::Text,
                field.map_or("", |field| field.about),
            )
        });
        make_write_op(self.operation_row(
            "delete",
            Method::Delete,
            ResponseBody::Nothing,
            query_parameters,
        ))
    }

    /// The operation with the fields of the section in its body.
    fn new_write_operation(&self, row: Operation, request: WriteRequest) -> Op<Write> {
        let fields = Some(((self.path.scope, self.kind.section), request));
        make_write_op(Operation {
            fields,
            shows_object: self.has_trait(CollectionTrait::ReturnsEntry),
            ..row
        })
    }

    /// The row of the operation for `verb`, with `other_parameters`. Its texts are leaked, so each
    /// row must be made only once.
    fn operation_row(
        &self,
        verb: &str,
        method: Method,
        response: ResponseBody,
        other_parameters: impl IntoIterator<Item = Parameter>,
    ) -> Operation {
        let Self { kind, path, .. } = self;
        let parent_parameter = self.parent_collection.map(|parent_collection| {
            let about = String::leak(format!("The id of the {}.", parent_collection.section.noun));
            Parameter::new(
                ParameterLocation::Path,
                parent_collection.parent.argument,
                ParameterType::Integer,
                about,
            )
        });
        let has_entry_argument = !["list", "create"].contains(&verb);
        let argument = path.argument.filter(|_| has_entry_argument);
        let entry_parameter = argument.map(|argument| {
            let field = make::response_field(kind, argument);
            let about = String::leak(format!("The {}, by its `{field}`.", kind.noun));
            Parameter::new(ParameterLocation::Path, argument, ParameterType::IdOrName, about)
        });
        let path_parameters = parent_parameter
            .into_iter()
            .chain(entry_parameter)
            .map(|parameter| Parameter { required: true, ..parameter });
        let parameters = vec![
            ParameterList::Named(path.scope.noun()),
            ParameterList::Custom(Vec::leak(path_parameters.chain(other_parameters).collect())),
        ];
        let argument_suffix = argument.map(|argument| format!("/:{argument}")).unwrap_or_default();
        Operation {
            id: collection::operation_id(path.scope, kind.noun, verb).leak(),
            path: (path.collection_path() + &argument_suffix).leak(),
            purpose: format!("{verb} {}", self.purpose_object(verb)).leak(),
            response,
            parameters: parameters.leak(),
            tier: self.scoped_kind.available.tier,
            since: self.scoped_kind.available.since,
            denies_with_401: self.has_trait(CollectionTrait::DeniesWith401),
            ..Operation::with_defaults(method)
        }
    }

    /// The grammatical object of `verb` in the purpose of an operation.
    fn purpose_object(&self, verb: &str) -> String {
        let noun = self.kind.noun;
        match (verb, self.path.scope) {
            ("list", Scope::Group) => format!("a group's {}", text::plural(noun)),
            ("list", Scope::Project) => text::plural(noun),
            ("create", Scope::Group) => format!("{} of a group", text::with_article(noun)),
            (_, Scope::Group) => format!("a group's {noun}"),
            (_, Scope::Project) if self.kind.shape == Shape::Mapping => format!("the {noun}"),
            (_, Scope::Project) => text::with_article(noun),
        }
    }
}

/// A query parameter of the list, with the value that undrift sends.
fn list_parameter(name: &'static str, value: &str) -> Parameter {
    let value_type = match serde_json::from_str(value) {
        Ok(Json::Bool(_)) => ParameterType::Boolean,
        Ok(Json::Number(_)) => ParameterType::Integer,
        _ => ParameterType::Text,
    };
    let about = String::leak(format!("Which entries the list has: undrift sends `{value}`."));
    Parameter::new(ParameterLocation::Query, name, value_type, about)
}
