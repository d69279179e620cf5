//! Plain collections: an entry is one row of a table, and all collections share the same functions.
//! A [`Collection`] describes the differences.
//!
//! The sandbox's own collections follow the real service. The caller of [`start`](crate::start) can
//! add other collections ([`SandboxConfig::collections`](crate::SandboxConfig::collections)). Such
//! collections follow only their descriptions.
//!
//! To add a collection of the sandbox, add a row to `collections.jsonc`. If the description does not suffice, add
//! [`Callbacks`] to a module, under the name of its table.

use std::ops::Deref;

use super::Handler;
use super::fields::{FieldType, RowField};
use super::prelude::*;
use super::registry::all_collections;
use crate::attributes::leaked_list;

/// A collection. Its rows store the fields under their names in requests.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default = "describe_nothing", deny_unknown_fields)]
pub struct Collection {
    /// The path of the collection, with `{id}` for the project or group.
    pub path: &'static str,
    /// The name of the path segment that identifies an entry.
    pub entry_segment: &'static str,
    /// The key of that identifier in responses: `id`, a field, or another name for the id.
    pub answer_key: &'static str,
    /// The levels needed to read, in a project and in a group, unless `find_scope` ignores them.
    pub read_level: [i64; 2],
    /// The levels needed to write.
    pub write_level: [i64; 2],
    /// True if a caller without a token counts as a caller without a level, and gets 403 instead of 401.
    pub(super) allows_anonymous: bool,
    /// The lowest licence with this collection.
    pub tier: ServiceTier,
    /// The first release with this collection.
    pub since: Option<Release>,
    /// The fields that a create needs.
    #[serde(deserialize_with = "leaked_list")]
    pub required_params: &'static [&'static str],
    /// The fields whose values must be unique.
    #[serde(deserialize_with = "leaked_list")]
    pub unique_fields: &'static [&'static str],
    /// The fields of an entry.
    #[serde(deserialize_with = "leaked_list")]
    pub fields: &'static [RowField],
    /// The path parameter with the id of the parent, for a collection below the entries of another
    /// collection. Empty for other collections.
    pub parent_parameter: &'static str,
    /// The field of the parent that contains the list, if no request lists the entries. Empty for
    /// other collections.
    pub parent_field: &'static str,
    /// Additional fields in responses, with their values.
    #[serde(deserialize_with = "leaked_list")]
    pub extra_fields: &'static [(&'static str, Value)],
    /// True if a single entry can be read.
    pub has_show: bool,
    /// True if entries can be edited.
    pub has_update: bool,
    /// True if an edit is a PATCH.
    pub is_updated_by_patch: bool,
    /// True if one response has the whole list.
    pub is_unpaged: bool,
    /// True if the collection is a single object that always exists. Calls read and edit the object
    /// at the path.
    pub is_document: bool,
    /// True if the collection has at most one entry. The entry has the path of the collection.
    pub is_single: bool,
    /// True if the response to an edit is 204.
    pub updates_silently: bool,
    /// True if entries are created only by an edit (PUT) of a missing entry, whose name is in the path.
    pub is_created_by_put: bool,
    /// True if no request creates or removes an entry.
    pub is_fixed_set: bool,
    /// True if the removal of an entry that does not exist succeeds in a project. The profile can disable this.
    pub(super) is_idempotent: bool,
    /// The database table of the rows. By default, its name is the end of the path.
    pub(super) table: RecordTable,
    /// Sets of features of the project. If all features of one set are disabled, calls get 403.
    #[serde(deserialize_with = "leaked_list")]
    pub(super) required_features: &'static [Vec<&'static str>],
    /// The fields that can filter a list.
    #[serde(deserialize_with = "leaked_list")]
    pub(super) filters: &'static [&'static str],
    #[serde(skip)]
    pub(super) callbacks: Callbacks,
}

/// The values that a row of `collections.jsonc` omits.
fn describe_nothing() -> Collection {
    Collection::new("/projects/{id}/")
}

impl Collection {
    /// A collection without fields and with all operations. `path` starts with `/projects/{id}/` or
    /// `/groups/{id}/`. Maintainers can write, and reporters can read.
    pub fn new(path: &'static str) -> Self {
        Self {
            path,
            entry_segment: "entry",
            answer_key: "id",
            read_level: [REPORTER; 2],
            write_level: [MAINTAINER; 2],
            tier: ServiceTier::Free,
            has_show: true,
            has_update: true,
            table: RecordTable(path.split_once("{id}/").map_or("", |(_, path_end)| path_end)),
            ..Self::default()
        }
    }

    pub(super) fn routes(&'static self) -> impl Iterator<Item = Route> {
        let has_entries = !self.is_document;
        let entry_path = if has_entries && !self.is_single {
            format!("{}/{{{}}}", self.path, self.entry_segment).leak()
        } else {
            self.path
        };
        let has_list = has_entries && !self.is_single && self.parent_field.is_empty();
        let can_add_and_remove = has_entries && !self.is_fixed_set;
        let update_method = if self.is_updated_by_patch { Method::PATCH } else { Method::PUT };
        let operations = [
            (has_list, Method::GET, self.path, CollectionOperation::List),
            (
                can_add_and_remove && !self.is_created_by_put,
                Method::POST,
                self.path,
                CollectionOperation::Create,
            ),
            (self.has_show, Method::GET, entry_path, CollectionOperation::Show),
            (self.has_update, update_method, entry_path, CollectionOperation::Update),
            (can_add_and_remove, Method::DELETE, entry_path, CollectionOperation::Remove),
        ];
        let special_operations = self.callbacks.operations.iter().map(|(method, suffix, verb)| {
            (true, method.clone(), &*format!("{}{suffix}", self.path).leak(), *verb)
        });
        let special_operations: Vec<_> = special_operations.collect();
        let common_operations = operations.into_iter().filter(|(exists, method, path, _)| {
            let is_same = |other: &(_, Method, &str, _)| other.1 == *method && other.2 == *path;
            *exists && !special_operations.iter().any(is_same)
        });
        let common_operations: Vec<_> = common_operations.collect();
        let operations = common_operations.into_iter().chain(special_operations);
        operations.map(move |(_, method, path, verb)| Route {
            method,
            path,
            handler: Handler::Collection(self, verb),
        })
    }

    pub(super) fn answer(&self, operation: CollectionOperation, call: &Call<'_>) -> Result<Answer> {
        refuse_if(
            self.since.is_some_and(|since| call.release() < since),
            ErrorResponse::route_not_found,
        )?;
        let call = CollectionCall { collection: self, scope: &self.find_scope(call)?, call };
        call.check_parent()?;
        call.answer(operation)
    }

    /// Finds the project or group of the call. Refuses callers who may not use the collection.
    pub(super) fn find_scope(&self, call: &Call<'_>) -> Result<GroupOrProject> {
        let scope = (self.callbacks.find_scope)(self, call)?;
        if let GroupOrProject::Project(project) = &scope {
            let is_disabled = try_any(self.required_features, |features| {
                call.are_features_off(project, features)
            })?;
            refuse_if(is_disabled, ErrorResponse::forbidden)?;
        }
        call.require_tier(self.tier).map(|()| scope)
    }

    /// True if this collection is below the entries of `other`.
    fn is_nested_in(&self, other: &Self) -> bool {
        let path_suffix = self.path.strip_prefix(other.path);
        !self.parent_parameter.is_empty()
            && path_suffix.is_some_and(|suffix| suffix.starts_with("/{"))
    }

    /// The parameter that names an entry of a seed.
    pub(crate) fn seed_key(&self) -> Option<&'static str> {
        self.key_field().map(|field| field.name).or_else(|| self.required_params.first().copied())
    }

    /// The field that identifies an entry in its path; `None` if the id identifies it.
    fn key_field(&self) -> Option<&RowField> {
        self.fields.iter().find(|field| match field.field_type {
            FieldType::Reference(_) => field.name == self.answer_key,
            _ => field.name_in_responses() == self.answer_key,
        })
    }
}

/// A call for a collection of one project or group.
#[derive(Clone, Copy)]
pub(crate) struct CollectionCall<'a> {
    pub(super) collection: &'a Collection,
    pub(super) scope: &'a GroupOrProject,
    pub(super) call: &'a Call<'a>,
}

impl<'a> Deref for CollectionCall<'a> {
    type Target = Call<'a>;

    fn deref(&self) -> &Call<'a> {
        self.call
    }
}

impl<'a> CollectionCall<'a> {
    /// The project of the call. Fails with 404 for a collection of a group.
    pub(super) fn project(&self) -> Result<&'a Project> {
        match self.scope {
            GroupOrProject::Project(project) => Ok(project),
            GroupOrProject::Group(_) => Err(ErrorResponse::record_not_found()),
        }
    }

    /// The caller's level in the project or group.
    pub(super) fn caller_level(&self) -> Result<i64> {
        self.scope.caller_level(self)
    }

    /// Runs an operation.
    pub(super) fn answer(&self, operation: CollectionOperation) -> Result<Answer> {
        match operation {
            CollectionOperation::Custom(answer) => answer(self),
            CollectionOperation::List => self.list(),
            CollectionOperation::Show => {
                let row = self.find_entry().or_else(|not_found| {
                    let inherited_rows = (self.collection.callbacks.list_inherited)(self)?;
                    self.select_named_row(inherited_rows).map_err(|_| not_found)
                })?;
                let mut body = self.row_json(&row)?;
                for collection in all_collections(self).filter(|other: &&Collection| {
                    !other.parent_field.is_empty() && other.is_nested_in(self.collection)
                }) {
                    let nested_call = Self { collection, ..*self };
                    let rows = nested_call.stored_rows()?;
                    body[collection.parent_field] =
                        rows.iter().map(|row| nested_call.row_json(row)).collect::<Result<_>>()?;
                }
                Answer::ok(&body)
            }
            CollectionOperation::Create => {
                self.require(self.collection.required_params)?;
                let mut row = Record::new(self.time_text());
                self.complete_and_store(&mut row)?;
                self.check_entry_limit()?;
                Answer::created(&self.row_json(&row)?)
            }
            CollectionOperation::Update => {
                let mut row = match self.find_entry() {
                    Err(_) if self.collection.is_created_by_put => self.new_row()?,
                    result => result?,
                };
                self.complete_and_store(&mut row)?;
                let is_silent = self.collection.updates_silently;
                if is_silent { Ok(Answer::no_content()) } else { Answer::ok(&self.row_json(&row)?) }
            }
            CollectionOperation::Remove => {
                let mut row = match self.find_entry() {
                    Err(failure) if self.is_removal_idempotent(&failure) => {
                        return Ok(Answer::no_content());
                    }
                    found => found?,
                };
                (self.collection.callbacks.check_removal)(self, &row)?;
                (self.collection.callbacks.remove)(self, &mut row)?;
                Ok(Answer::no_content())
            }
        }
    }

    /// The JSON of a row in a response.
    pub(super) fn row_json(&self, row: &Record) -> Result<Value> {
        (self.collection.callbacks.to_json)(self, row)
    }

    /// Refuses a new entry that would exceed the maximum number.
    fn check_entry_limit(&self) -> Result<()> {
        let Some((noun, [project_limit, group_limit], make_error)) =
            self.collection.callbacks.limit
        else {
            return Ok(());
        };
        let limit = self.scope.choose(project_limit, group_limit);
        let count = self.collection.table.count(self, self.scope.holder())?;
        let owner = self.scope.type_name();
        let text = format!("Maximum number of {owner} {noun} ({limit}) exceeded");
        refuse_if(count > limit, || make_error(text))
    }

    /// True if removing an entry that does not exist succeeds.
    fn is_removal_idempotent(&self, failure: &ErrorResponse) -> bool {
        self.collection.is_idempotent
            && failure.status == StatusCode::NOT_FOUND
            && matches!(self.scope, GroupOrProject::Project(_))
            && self.service.options.profile.absent_delete == AbsentDelete::NoContent
    }

    /// Refuses a request below a parent that does not exist.
    fn check_parent(&self) -> Result<()> {
        let mut collections = all_collections(self);
        let Some(parent) = collections.find(|other| self.collection.is_nested_in(other)) else {
            return Ok(());
        };
        let id = self.segment_id(self.collection.parent_parameter)?;
        parent.table.find(self, self.scope.holder(), id)?.map(drop).or_no_record()
    }

    /// The stored rows of the project or group; in a nested collection, only the rows of the parent
    /// in the path.
    pub(super) fn stored_rows(&self) -> Result<Vec<Record>> {
        let Collection { parent_parameter, table, .. } = *self.collection;
        let rows = table.list(self, self.scope.holder())?;
        let mut rows = try_filter(rows, |row| self.has_existing_target(row))?;
        if !parent_parameter.is_empty() {
            let parent_id = Value::from(self.segment_id(parent_parameter)?);
            rows.retain(|row| row.value(parent_parameter) == parent_id);
        }
        Ok(rows)
    }

    /// False if the object that identifies the row no longer exists. Such a row is ignored.
    pub(super) fn has_existing_target(&self, row: &Record) -> Result<bool> {
        Ok(match self.collection.key_field() {
            Some(RowField { field_type: FieldType::Reference(referenced_type), name, .. }) => {
                !referenced_type.find_name(self, &row.value(name))?.is_null()
            }
            _ => true,
        })
    }

    /// Copies the fields of the call into `row`.
    pub(super) fn store_params(&self, row: &mut Record) -> Result<()> {
        let is_new = row.id == 0;
        for field in self.collection.fields.iter().filter(|field| is_new || !field.is_create_only) {
            if field.is_set_by_call(self, is_new) {
                row.set(field.name, field.read_value(self, row.settings.get(field.name))?);
            } else if field.is_reset_by_edit || (is_new && !field.default.is_null()) {
                row.set(field.name, field.default.clone());
            }
        }
        Ok(())
    }

    /// The JSON of a row as responses show it: with names instead of ids.
    pub(super) fn json_with_names(&self, row: &Record) -> Result<Value> {
        let (mut body, key) = (self.plain_json(row), self.collection.answer_key);
        for field in self.collection.fields {
            if let FieldType::Reference(referenced_type) = field.field_type {
                let id = row.value(field.name);
                body[field.name_in_responses()] = referenced_type.find_name(self, &id)?;
                set_field_if(&mut body, field.name == key, key, id);
            }
        }
        Ok(body)
    }

    /// The JSON of a row with its fields.
    pub(super) fn plain_json(&self, row: &Record) -> Value {
        let Collection { answer_key, fields, extra_fields, .. } = *self.collection;
        let mut body = Map::new();
        body.insert("id".to_owned(), row.id.into());
        let id = if answer_key.ends_with("id") { row.id.into() } else { row.id.to_string().into() };
        body.insert(answer_key.to_owned(), id);
        for field in
            fields.iter().filter(|f| !f.name_in_responses().is_empty() && f.is_available(self))
        {
            let value = row.settings.get(field.name).unwrap_or(field.default);
            body.insert(field.name_in_responses().to_owned(), value.clone());
        }
        body.extend(extra_fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        body.insert("created_at".to_owned(), row.created_at.clone().into());
        body.insert("updated_at".to_owned(), row.updated_at.clone().into());
        Value::Object(body)
    }

    /// Finds the row that the call names.
    pub(super) fn find_entry(&self) -> Result<Record> {
        (self.collection.callbacks.find)(self)
    }

    /// A new row with the identifier in the path.
    fn new_row(&self) -> Result<Record> {
        let Collection { required_params, answer_key, entry_segment, .. } = *self.collection;
        self.require(required_params)?;
        let mut row = Record::new(self.time_text());
        let key = self.collection.key_field().map_or(answer_key, |field| field.name);
        row.set(key, self.segment(entry_segment));
        Ok(row)
    }

    pub(super) fn select_named_row(&self, mut rows: Vec<Record>) -> Result<Record> {
        if self.collection.is_document {
            return Ok(rows.pop().unwrap_or_else(|| Record::new(self.time_text())));
        }
        let name = self.segment(self.collection.entry_segment);
        let matching_row = match self.collection.key_field() {
            Some(field) => rows.into_iter().find(|row| match row.value(field.name) {
                Value::String(value) => value == name,
                value => value.as_i64().is_some_and(|id| name.parse() == Ok(id)),
            }),
            None => {
                let id = self.segment_id(self.collection.entry_segment)?;
                rows.into_iter().find(|row| row.id == id)
            }
        };
        matching_row.ok_or_else(self.collection.callbacks.not_found_error)
    }

    fn list(&self) -> Result<Answer> {
        let mut listed_rows = self.stored_rows()?;
        let inherited_rows = (self.collection.callbacks.list_inherited)(self)?;
        if !inherited_rows.is_empty() {
            listed_rows.extend(inherited_rows);
            listed_rows.sort_by_key(|row| row.id);
        }
        for name in self.collection.filters {
            let value = self.text(name)?;
            let value = value.filter(|value| (*name, value.as_str()) != ("state", "all"));
            listed_rows.retain(|row| value.as_ref().is_none_or(|value| row.text(name) == value));
        }
        (self.collection.callbacks.filter)(self, &mut listed_rows)?;
        if self.collection.is_unpaged {
            Answer::ok(
                &listed_rows.iter().map(|row| self.row_json(row)).collect::<Result<Vec<_>>>()?,
            )
        } else {
            page::list_objects(self, &listed_rows, |row| self.row_json(row))
        }
    }

    pub(super) fn complete_and_store(&self, row: &mut Record) -> Result<()> {
        self.store_params(row)?;
        let parent_parameter = self.collection.parent_parameter;
        if !parent_parameter.is_empty() {
            row.set(parent_parameter, self.segment_id(parent_parameter)?);
        }
        (self.collection.callbacks.complete)(self, row)?;
        self.store(row)
    }

    /// Stores a row without completing it.
    pub(super) fn store(&self, row: &mut Record) -> Result<()> {
        Ok(self.collection.table.save(self, self.scope.holder(), row)?)
    }

    pub(super) fn check_unique(&self, row: &Record) -> Result<()> {
        let Some(first_field) = self.collection.unique_fields.first() else { return Ok(()) };
        let mut equal_rows = self.stored_rows()?;
        equal_rows.retain(|other| other.id != row.id);
        for name in self.collection.unique_fields {
            equal_rows.retain(|other| other.settings.get(*name) == row.settings.get(*name));
        }
        refuse_if(!equal_rows.is_empty(), || ErrorResponse::field_error(first_field, TAKEN_TEXT))
    }
}

/// An operation of a collection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CollectionOperation {
    List,
    Show,
    Create,
    Update,
    Remove,
    /// A separate function.
    Custom(fn(&CollectionCall<'_>) -> Result<Answer>),
}
