//! Completes a kind after its description was read: the scopes, the operations, the source of its
//! live entries, the fields that address them, and the rules.
//!
//! Each kind is made once and lives as long as the program.

use super::{DescribedKind, convention};
use crate::{
    catalogue::{self, Registry},
    field::{Field, NamedObject, Requirement, Scope, ValueType},
    kind::{
        AddressKey, CreateMethod, KeyLocation, Kind, Operations, Parent, ReadSource, Removal,
        ScopedKind, Section, Shape,
    },
    operation::{
        Op, Read,
        collection::{EntryPath, EntryPathError},
    },
    page::EntryKeys,
};

/// Completes `kind` with the properties that its description does not contain. Checks only the
/// paths. `registry` must contain the parent section.
///
/// # Errors
/// If a path is not the path of a collection.
pub(super) fn make_kind(
    mut kind: Kind,
    registry: &Registry,
) -> Result<DescribedKind, EntryPathError> {
    let mut operations = Vec::new();
    kind.fields = kind.fields.into_iter().map(Field::with_implied_properties).collect();
    let required_fields =
        kind.fields.iter().filter(|field| field.required == Requirement::OnCreate);
    kind.required_fields = required_fields.map(|field| field.name).collect::<Vec<_>>().leak();
    let mut scoped_kinds = std::mem::take(&mut kind.homes);
    for scoped_kind in &mut scoped_kinds {
        let is_group_path = scoped_kind.path.starts_with("/groups/");
        scoped_kind.scope = if is_group_path { Scope::Group } else { Scope::Project };
        // Operations on the container itself are only in the table of operations.
        let path = match scoped_kind.path {
            "/groups/:id" | "/projects/:id" => None,
            path => Some(EntryPath::parse(path)?),
        };
        let mut parent_collection = None;
        match &path {
            Some(path) if scoped_kind.operations == Operations::default() => {
                parent_collection = find_parent_collection(&kind, scoped_kind, path, registry)?;
                operations.extend(convention::derive_operations(
                    &kind,
                    scoped_kind,
                    path,
                    parent_collection,
                ));
            }
            _ => assign_operations(&kind, &mut scoped_kind.operations),
        }
        set_derived_fields(&kind, scoped_kind, path.as_ref(), parent_collection);
    }
    if kind.fields.iter().any(|field| field.value_type == ValueType::Grants) {
        kind.removal = Removal::ByKind;
    }
    kind.rules_in_rust =
        kind.hooks.map(|name| catalogue::find_rules(name).expect("a test reads every file"));
    kind.homes = scoped_kinds;
    Ok(DescribedKind { kind: Box::leak(Box::new(kind)), operations })
}

/// Assigns the operations from the table to their uses in this kind.
fn assign_operations(kind: &Kind, operations: &mut Operations) {
    match kind.shape {
        // The rules in Rust choose between the requests that create, move and remove a container.
        Shape::Container => {
            let writes =
                [operations.create.take(), operations.edit.take(), operations.delete.take()];
            operations.others.splice(..0, writes.into_iter().flatten());
        }
        Shape::Switch => operations.others.extend(operations.create.take()),
        // One request creates and edits.
        _ if kind.create == CreateMethod::Put => operations.create = operations.edit,
        Shape::Mapping => operations.edit = operations.edit.or(operations.create),
        Shape::List => {}
    }
}

/// The parent of a nested collection, its section, and the request that reads one parent entry.
#[derive(Clone, Copy)]
pub(super) struct ParentCollection {
    pub(super) parent: &'static Parent,
    pub(super) section: Section,
    pub(super) get_op: Option<Op<Read>>,
}

/// The parent collection of the entries at `path`, if the path has one.
///
/// # Errors
/// If the path does not start with the path of a section, or if no field names the parent.
pub(super) fn find_parent_collection(
    kind: &Kind,
    scoped_kind: &ScopedKind,
    path: &EntryPath,
    registry: &Registry,
) -> Result<Option<ParentCollection>, EntryPathError> {
    let Some((parent_path, argument)) = path.parent_path() else { return Ok(None) };
    let mut sections = registry.kinds().iter().filter_map(|kind| kind.find_section(path.scope));
    let section = sections
        .find(|section| matches!(section.scoped_kind.read_source, ReadSource::List(list) if list.row().path == parent_path))
        .ok_or("must start with the path of a section, which has the parent entry")?;
    if section.scoped_kind.operations.edit.is_none()
        || !section.scoped_kind.address_keys.iter().any(|key: &AddressKey| {
            key.field == "id" && matches!(key.location, KeyLocation::Path(name) if name == argument)
        })
    {
        return Err("must be below entries whose paths contain their id, under the same name");
    }
    let [field, _, ..] = *kind.identity else {
        return Err(
            "has a parent entry, so the first field of `identity` must name the parent, and others must follow",
        );
    };
    let parent_get_op = registry
        .find_read_operation(&format!("{parent_path}/:{argument}"))
        .filter(|_| scoped_kind.nested_field.is_some());
    if parent_get_op.is_none() && scoped_kind.nested_field.is_some() {
        return Err("must be below entries that are read one by one");
    }
    let parent = Parent { section: section.section, field, argument };
    Ok(Some(ParentCollection {
        parent: Box::leak(Box::new(parent)),
        section,
        get_op: parent_get_op,
    }))
}

/// Sets the fields of `scoped_kind` that are derived from its keys and operations.
fn set_derived_fields(
    kind: &Kind,
    scoped_kind: &mut ScopedKind,
    path: Option<&EntryPath>,
    parent_collection: Option<ParentCollection>,
) {
    scoped_kind.read_source =
        match (kind.shape, scoped_kind.operations.list, scoped_kind.operations.get) {
            (Shape::Container, ..) => ReadSource::Container,
            (Shape::List, Some(list), _) => ReadSource::List(list),
            (Shape::Mapping, _, Some(get)) => ReadSource::Optional(get),
            _ => match (scoped_kind.nested_field, scoped_kind.sign) {
                (Some(field), Some(marker_field)) => {
                    ReadSource::ObjectField { field, marker_field }
                }
                (Some(field), None) => ReadSource::ListField(field),
                (None, _) => ReadSource::Object,
            },
        };
    scoped_kind.parent = parent_collection.map(|parent_collection| parent_collection.parent);
    scoped_kind.list_query = path.map(|path| path.list_query.clone()).unwrap_or_default();
    scoped_kind.requires_members = kind
        .fields
        .iter()
        .any(|field| field.available.exists_in(scoped_kind.scope) && requires_members(field))
        || parent_collection.is_some_and(|parent_collection| {
            parent_collection.section.scoped_kind.requires_members
        });
    if scoped_kind.closed_by.is_empty()
        && let Some(parent_collection) = parent_collection
    {
        scoped_kind.closed_by.clone_from(&parent_collection.section.scoped_kind.closed_by);
    }
    set_address_keys(kind, scoped_kind, path);
}

/// Sets the keys that address an entry of `scoped_kind`, and the keys that each row of its list
/// must have.
fn set_address_keys(kind: &Kind, scoped_kind: &mut ScopedKind, path: Option<&EntryPath>) {
    let argument = path.and_then(|path| path.argument);
    let address_key = argument.map(|argument| {
        let delete_without_argument =
            scoped_kind.operations.delete.filter(|op| !op.row().has_argument(argument));
        let location = match delete_without_argument {
            Some(_) => KeyLocation::PathOnCreate(argument),
            None => KeyLocation::Path(argument),
        };
        AddressKey { field: response_field(kind, argument), location }
    });
    let query_keys: Vec<_> =
        path.map(|path| path.address_query.iter()).into_iter().flatten().collect();
    let needs_id = address_key.is_some_and(|key| key.field != "id" && kind.keys.contains(&"id"));
    scoped_kind.address_keys = address_key
        .into_iter()
        .chain(query_keys.iter().map(|(name, field)| AddressKey::query(field, name)))
        .chain(needs_id.then_some(AddressKey::REFERENCED_ID))
        .chain(scoped_kind.parent.map(|parent| AddressKey::path(parent.argument, parent.argument)))
        .collect();
    let available_fields =
        kind.fields.iter().filter(|field| field.available.exists_in(scoped_kind.scope));
    // If a row lacks one of these fields, the list is treated as not read. Runners are an exception:
    // they may have no description.
    let required_names = available_fields
        .filter(|field| {
            (field.names != Some(NamedObject::Runner)
                && kind.required_identity().any(|name| name == field.name)
                && scoped_kind.parent.is_none_or(|parent| parent.field != field.name))
                || (requires_members(field) && is_available_with(field, scoped_kind))
        })
        .filter_map(Field::live_name);
    let condition_fields = scoped_kind
        .inherited
        .iter()
        .filter(|condition| condition.is_negated)
        .map(|condition| condition.field);
    // Entries that are addressed only by the query may lack some of these fields.
    let addressing_fields = address_key.iter().flat_map(|key| {
        std::iter::once(key.field).chain(query_keys.iter().map(|(_, field)| *field))
    });
    scoped_kind.entry_keys = EntryKeys {
        identity_keys: choose_names(kind.keys, addressing_fields),
        other_keys: choose_names(kind.shows, required_names.chain(condition_fields)),
    };
}

/// The names in the description, or `derived_names` if it has none.
fn choose_names(
    described_names: &'static [&'static str],
    derived_names: impl Iterator<Item = &'static str>,
) -> &'static [&'static str] {
    if described_names.is_empty() {
        derived_names.collect::<Vec<_>>().leak()
    } else {
        described_names
    }
}

/// True if the users and groups that the field names need access to the container.
fn requires_members(field: &Field) -> bool {
    match field.value_type {
        ValueType::Grants | ValueType::Approvals => true,
        ValueType::Texts => field.names.is_some(),
        _ => false,
    }
}

/// The response field whose value is the argument `name` of the path.
pub(super) fn response_field(kind: &Kind, name: &'static str) -> &'static str {
    let field = kind.fields.iter().find(|field| field.name == name);
    match field.and_then(Field::live_name) {
        Some(field) => field,
        None if kind.identity.contains(&name) => name,
        None => kind.keys.first().unwrap_or(&"id"),
    }
}

/// True if every release and licence with `scoped_kind` also has `field`.
fn is_available_with(field: &Field, scoped_kind: &ScopedKind) -> bool {
    let since = field.available.since.or(scoped_kind.available.since);
    field.available.tier <= scoped_kind.available.tier
        && since.is_none_or(|since| !since.is_after_reference())
}
