//! What follows from a description once it is read: the scope of each home, its operations, where its
//! entries are and what addresses them, and the rules.
//!
//! A kind lives as long as the program and is made once.

use super::{Described, convention, rules::DescribedRules};
use crate::{
    field::{Accepted, Available, Field, Keys, Named, Scope, ValueType},
    kind::{
        Handle, HandlePlace, Home, Kind, Operations, Parent, Place, Removal, Section, Shape, Table,
    },
    kinds::{self, Registry, integration},
    operation::{
        Op, Read,
        collection::{NoPath, SubPath},
    },
    page::Rows,
};

/// Makes the kind. Only the paths are checked. `known` has the parent section.
///
/// # Errors
/// If a path is not that of a collection.
pub(super) fn make(mut kind: Kind, known: &Registry) -> Result<Described, NoPath> {
    let mut operations = Vec::new();
    kind.fields = kind.fields.into_iter().map(Field::complete).collect();
    if kind.document {
        kind.shape = Shape::Mapping;
    }
    let mut homes = std::mem::take(&mut kind.homes);
    for home in &mut homes {
        let is_of_group = home.path.starts_with("/groups/");
        home.scope = if is_of_group { Scope::Group } else { Scope::Project };
        let mut parents = None;
        // Others have operations of the table.
        if home.operations == Operations::default() {
            let below = SubPath::parse(home.path)?;
            parents = above(&kind, home, &below, known)?;
            operations.extend(convention::operate(&kind, home, below, parents));
        }
        resolve(&kind, home, parents);
    }
    kind.homes = homes;
    if kind.fields.iter().any(|field| field.value_type == ValueType::Grants) {
        kind.removal = Removal::ByKind;
    }
    kind.rules = match kind.hooks {
        Some(name) => kinds::hooks(name).expect("a test reads every file"),
        None => Box::leak(Box::new(DescribedRules::of(&kind))),
    };
    kind.make_table = match kind.hooks {
        Some(integration::NAME) => |of| integration::table(of.home.scope),
        _ => |of| Table::new(keys(of.kind, of.home)),
    };
    Ok(Described { kind: Box::leak(Box::new(kind)), operations })
}

/// The name of the path argument that addresses an entry.
pub(super) fn argument(kind: &Kind) -> &'static str {
    let default = || &*String::leak(kind.noun.replace(' ', "_") + "_id");
    kind.entry.argument.unwrap_or_else(default)
}

/// An action before a removal, or a text about it, with the name and the value of its parameter.
pub(super) type ActBefore = (&'static str, Option<(&'static str, &'static str)>);

pub(super) fn act_before(kind: &Kind) -> Option<ActBefore> {
    let text = kind.before_removal?;
    let (act, parameter) = text.split_once('?').unwrap_or((text, ""));
    Some((act, parameter.split_once('=')))
}

/// The parents of a collection, their section, and the request for one of them.
#[derive(Clone, Copy)]
pub(super) struct Parents {
    pub(super) parent: &'static Parent,
    pub(super) of: Section,
    pub(super) one: Option<Op<Read>>,
}

/// The parents of the collection at `below`, if it has parents.
///
/// # Errors
/// If the path does not start with that of the section of the parents.
pub(super) fn above(
    kind: &Kind,
    home: &Home,
    below: &SubPath,
    known: &Registry,
) -> Result<Option<Parents>, NoPath> {
    let (path, under) = match (below.parent(), kind.below) {
        (None, None) => return Ok(None),
        (Some(path), Some(under)) => (path, under),
        (Some(_), None) => {
            return Err("has an `:entry`, and `below` does not say of which section");
        }
        (None, Some(_)) => return Err("must have an `:entry`, which is what `below` is about"),
    };
    let of = known.section(below.scope, under.section);
    let at = |of: &Section| matches!(of.home.place, Place::List(list) if list.row().path == path);
    let of = of.filter(at).ok_or("must start with that of the section which `below` names")?;
    let is_id = |handle: &&Handle| handle.field == "id";
    let argument = of.home.handle.iter().find(is_id).and_then(|handle| match handle.place {
        HandlePlace::Path(argument) => Some(argument),
        _ => None,
    });
    let argument = argument.filter(|_| of.home.operations.edit.is_some());
    let argument = argument.ok_or("must be below entries that keep an id in their paths")?;
    let one = known.reads_one(&format!("{path}/:{argument}"));
    let one = one.filter(|_| home.within.is_some());
    if one.is_none() && home.within.is_some() {
        return Err("must be below entries that are read one by one");
    }
    let parent = Parent { argument, ..under };
    Ok(Some(Parents { parent: Box::leak(Box::new(parent)), of, one }))
}

/// Resolves what follows from the keys of `home` and from its operations.
fn resolve(kind: &Kind, home: &mut Home, parents: Option<Parents>) {
    home.place = match (kind.shape, home.operations.list, home.operations.get) {
        (Shape::Container, ..) => Place::Container,
        (Shape::List, Some(list), _) => Place::List(list),
        (Shape::Mapping, _, Some(get)) => Place::Optional(get),
        _ => match (home.within, home.sign) {
            (Some(field), Some(sign)) => Place::Part { field, sign },
            (Some(field), None) => Place::In(field),
            (None, _) => Place::Object,
        },
    };
    home.parent = parents.map(|parents| parents.parent);
    let entry = &kind.entry;
    let is_addressed = match kind.shape {
        Shape::List => entry.query.is_empty(),
        Shape::Switch => entry.argument.is_some(),
        Shape::Container | Shape::Mapping => false,
    };
    let (field, argument) = (entry.field.unwrap_or("id"), argument(kind));
    let is_in = |path: &str| path.split('/').any(|part| part.strip_prefix(':') == Some(argument));
    let place = match home.operations.delete {
        Some(delete) if !is_in(delete.row().path) => HandlePlace::Added(argument),
        _ => HandlePlace::Path(argument),
    };
    let addressed = is_addressed.then_some(Handle { field, place });
    let filter = |name: &&'static str| Handle::query(name, String::leak(format!("filter[{name}]")));
    let is_named = is_addressed && field != "id" && entry.keys.contains(&"id");
    let by_query = entry.query.iter().map(|name| Handle::query(name, name));
    home.handle = addressed
        .into_iter()
        .chain(by_query)
        .chain(entry.filter.iter().map(filter))
        .chain(is_named.then_some(Handle::NAMED))
        .chain(home.parent.map(|parent| Handle::path(parent.argument, parent.argument)))
        .collect();
    let here = kind.fields.iter().filter(|field| field.is_in(home.scope));
    let of_people = |field: &Field| match field.value_type {
        ValueType::Grants | ValueType::Approvals => true,
        ValueType::Texts => field.names.is_some(),
        _ => false,
    };
    home.names_people =
        here.clone().any(of_people) || parents.is_some_and(|parents| parents.of.home.names_people);
    if home.closed_by.is_empty()
        && let Some(parents) = parents
    {
        home.closed_by.clone_from(&parents.of.home.closed_by);
    }
    // A row of the list must have these fields; without them it counts as not read. A runner may
    // have no description.
    let is_needed = |field: &&Field| {
        (field.names != Some(Named::Runner)
            && kind.always_named().any(|name| name == field.name)
            && home.parent.is_none_or(|parent| parent.field != field.name))
            || (of_people(field) && comes_with(field, home))
    };
    let named = here.filter(is_needed).filter_map(Field::live_name);
    let own = home.list.inherited_unless.iter().map(|own| own.field);
    home.rows = Rows {
        keys: match entry.keys {
            [] => addressed
                .iter()
                .map(|of| of.field)
                .chain(entry.filter.iter().copied())
                .collect::<Vec<_>>()
                .leak(),
            keys => keys,
        },
        also: match entry.shows {
            [] => named.chain(own).collect::<Vec<_>>().leak(),
            shows => shows,
        },
    };
}

/// Whether every release and licence that has `home` also has `field`.
fn comes_with(field: &Field, home: &Home) -> bool {
    let since = field.available.since.or(home.available.since);
    field.available.tier <= home.available.tier && since.is_none_or(|since| !since.is_late())
}

/// The fields of an entry of `home`.
fn keys(kind: &Kind, home: &Home) -> Keys {
    // Kinds with rules in Rust mark the fields, because an entry may lack a part of its identity.
    let marks = kind.fields.iter().any(|field| field.always);
    let of = |field: &Field| {
        // The path contains the id of the parent.
        let is_parent = kind.below.is_some_and(|below| below.field == field.name);
        Field {
            accepted: if is_parent { Accepted::Never } else { field.accepted },
            available: Available {
                since: field.available.since.or(home.available.since),
                top_level: field.available.top_level || home.available.top_level,
                ..field.available
            },
            always: field.always || !marks && kind.always_named().any(|name| name == field.name),
            ..field.clone()
        }
    };
    let fields = kind.fields.iter().filter(|field| field.is_in(home.scope));
    Keys {
        about: kind.about,
        aliases: kind.aliases.clone(),
        fields: fields.map(of).collect(),
        min_keys: matches!(home.place, Place::Optional(_)).then_some(1),
        ..Keys::default()
    }
}
