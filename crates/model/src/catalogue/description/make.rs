//! What follows from a description once it is read: the scope of each home, its operations, where its
//! entries are and what addresses them, and the rules.
//!
//! A kind lives as long as the program and is made once.

use super::{DescribedKind, convention};
use crate::{
    catalogue::{self, Registry},
    field::{Field, NamedObject, Required, Scope, ValueType},
    kind::{
        AddressKey, AddressKeyIn, Create, Kind, Operations, Parent, ReadSource, Removal,
        ScopedKind, Section, Shape,
    },
    operation::{
        Op, Read,
        collection::{EntryPath, NoPath},
    },
    page::Rows,
};

/// Makes the kind. Only the paths are checked. `registry` has the parent section.
///
/// # Errors
/// If a path is not that of a collection.
pub(super) fn make(mut kind: Kind, registry: &Registry) -> Result<DescribedKind, NoPath> {
    let mut operations = Vec::new();
    kind.fields = kind.fields.into_iter().map(Field::with_implied_parts).collect();
    let required_fields = kind.fields.iter().filter(|field| field.required == Required::OnCreate);
    kind.required = required_fields.map(|field| field.name).collect::<Vec<_>>().leak();
    let mut homes = std::mem::take(&mut kind.homes);
    for home in &mut homes {
        let is_of_group = home.path.starts_with("/groups/");
        home.scope = if is_of_group { Scope::Group } else { Scope::Project };
        // Only the operations of the table are for the container itself.
        let path = match home.path {
            "/groups/:id" | "/projects/:id" => None,
            path => Some(EntryPath::parse(path)?),
        };
        let mut parents = None;
        match &path {
            Some(path) if home.operations == Operations::default() => {
                parents = find_parents(&kind, home, path, registry)?;
                operations.extend(convention::derive_operations(&kind, home, path, parents));
            }
            _ => sort_operations(&kind, &mut home.operations),
        }
        derive_home(&kind, home, path.as_ref(), parents);
    }
    if kind.fields.iter().any(|field| field.value_type == ValueType::Grants) {
        kind.removal = Removal::ByKind;
    }
    kind.rules_in_rust =
        kind.hooks.map(|name| catalogue::rules(name).expect("a test reads every file"));
    kind.homes = homes;
    Ok(DescribedKind { kind: Box::leak(Box::new(kind)), operations })
}

/// Sorts the operations of the table by what the kind does with them.
fn sort_operations(kind: &Kind, operations: &mut Operations) {
    match kind.shape {
        // The rules choose what creates, moves and removes a container.
        Shape::Container => {
            let all = [operations.create.take(), operations.edit.take(), operations.delete.take()];
            operations.others.splice(..0, all.into_iter().flatten());
        }
        Shape::Switch => operations.others.extend(operations.create.take()),
        // One request does both.
        _ if kind.create == Create::Put => operations.create = operations.edit,
        Shape::Mapping => operations.edit = operations.edit.or(operations.create),
        Shape::List => {}
    }
}

/// The parents of a collection, their section, and the request for one of them.
#[derive(Clone, Copy)]
pub(super) struct ParentCollection {
    pub(super) parent: &'static Parent,
    pub(super) section: Section,
    pub(super) get: Option<Op<Read>>,
}

/// The parents of the entries at `path`, if they have parents.
///
/// # Errors
/// If the path does not start with that of a section, or if nothing names the parent.
pub(super) fn find_parents(
    kind: &Kind,
    home: &ScopedKind,
    path: &EntryPath,
    registry: &Registry,
) -> Result<Option<ParentCollection>, NoPath> {
    let Some((above, argument)) = path.parent() else { return Ok(None) };
    let mut sections = registry.kinds().iter().filter_map(|kind| kind.in_scope(path.scope));
    let section = sections
        .find(|section| matches!(section.home.place, ReadSource::List(list) if list.row().path == above))
        .ok_or("must start with that of a section, for the parent entry")?;
    let is_id = |handle: &AddressKey| {
        handle.field == "id"
            && matches!(handle.location, AddressKeyIn::Path(name) if name == argument)
    };
    if section.home.operations.edit.is_none() || !section.home.handle.iter().any(is_id) {
        return Err("must be below entries that keep an id in their paths, under the same name");
    }
    let [field, _, ..] = *kind.identity else {
        return Err("has a parent entry, so `identity` must name it first, and another field");
    };
    let one = registry.find_get(&format!("{above}/:{argument}")).filter(|_| home.within.is_some());
    if one.is_none() && home.within.is_some() {
        return Err("must be below entries that are read one by one");
    }
    let parent = Parent { section: section.section, field, argument };
    Ok(Some(ParentCollection { parent: Box::leak(Box::new(parent)), section, get: one }))
}

/// Resolves what follows from the keys of `home` and from its operations.
fn derive_home(
    kind: &Kind,
    home: &mut ScopedKind,
    path: Option<&EntryPath>,
    parents: Option<ParentCollection>,
) {
    home.place = match (kind.shape, home.operations.list, home.operations.get) {
        (Shape::Container, ..) => ReadSource::Container,
        (Shape::List, Some(list), _) => ReadSource::List(list),
        (Shape::Mapping, _, Some(get)) => ReadSource::Optional(get),
        _ => match (home.within, home.sign) {
            (Some(field), Some(sign)) => ReadSource::ObjectField { field, sign },
            (Some(field), None) => ReadSource::ListField(field),
            (None, _) => ReadSource::Object,
        },
    };
    home.parent = parents.map(|parents| parents.parent);
    home.query = path.map(|path| path.list_query.clone()).unwrap_or_default();
    home.names_people = kind
        .fields
        .iter()
        .any(|field| field.available.exists_in(home.scope) && requires_members(field))
        || parents.is_some_and(|parents| parents.section.home.names_people);
    if home.closed_by.is_empty()
        && let Some(parents) = parents
    {
        home.closed_by.clone_from(&parents.section.home.closed_by);
    }
    resolve_addresses(kind, home, path);
}

/// Resolves what addresses an entry of `home`, and the keys that each row of its list must have.
fn resolve_addresses(kind: &Kind, home: &mut ScopedKind, path: Option<&EntryPath>) {
    let argument = path.and_then(|path| path.argument);
    let addressed = argument.map(|argument| {
        let added = home.operations.delete.filter(|op| !has_argument(op.row().path, argument));
        let place = match added {
            Some(_) => AddressKeyIn::Added(argument),
            None => AddressKeyIn::Path(argument),
        };
        AddressKey { field: response_field(kind, argument), location: place }
    });
    let by_query: Vec<_> =
        path.map(|path| path.address_query.iter()).into_iter().flatten().collect();
    let is_named = addressed.is_some_and(|key| key.field != "id" && kind.keys.contains(&"id"));
    home.handle = addressed
        .into_iter()
        .chain(by_query.iter().map(|(name, field)| AddressKey::query(field, name)))
        .chain(is_named.then_some(AddressKey::NAMED))
        .chain(home.parent.map(|parent| AddressKey::path(parent.argument, parent.argument)))
        .collect();
    let here = kind.fields.iter().filter(|field| field.available.exists_in(home.scope));
    // A row of the list must have these fields; without them it counts as not read. A runner may
    // have no description.
    let named = here
        .filter(|field| {
            (field.names != Some(NamedObject::Runner)
                && kind.required_identity().any(|name| name == field.name)
                && home.parent.is_none_or(|parent| parent.field != field.name))
                || (requires_members(field) && is_available_with(field, home))
        })
        .filter_map(Field::live_name);
    let shown =
        home.inherited.iter().filter(|condition| condition.is_not).map(|condition| condition.field);
    // The entries that only the query addresses may lack a part of it.
    let addressing = addressed
        .iter()
        .flat_map(|key| std::iter::once(key.field).chain(by_query.iter().map(|(_, field)| *field)));
    home.rows = Rows {
        keys: given_or_derived(kind.keys, addressing),
        other_keys: given_or_derived(kind.shows, named.chain(shown)),
    };
}

/// The names that a description gives, or else those that follow.
fn given_or_derived(
    given_names: &'static [&'static str],
    others: impl Iterator<Item = &'static str>,
) -> &'static [&'static str] {
    if given_names.is_empty() { others.collect::<Vec<_>>().leak() } else { given_names }
}

/// True if the users and groups that the field names need access.
fn requires_members(field: &Field) -> bool {
    match field.value_type {
        ValueType::Grants | ValueType::Approvals => true,
        ValueType::Texts => field.names.is_some(),
        _ => false,
    }
}

/// True if `path` has the argument `name`.
fn has_argument(path: &str, name: &str) -> bool {
    path.split('/').any(|part| part.strip_prefix(':') == Some(name))
}

/// The response field that the argument `name` of a path contains.
pub(super) fn response_field(kind: &Kind, name: &'static str) -> &'static str {
    let field = kind.fields.iter().find(|field| field.name == name);
    match field.and_then(Field::live_name) {
        Some(field) => field,
        None if kind.identity.contains(&name) => name,
        None => kind.keys.first().unwrap_or(&"id"),
    }
}

/// True if every release and licence that has `home` also has `field`.
fn is_available_with(field: &Field, home: &ScopedKind) -> bool {
    let since = field.available.since.or(home.available.since);
    field.available.tier <= home.available.tier
        && since.is_none_or(|since| !since.is_after_reference())
}
