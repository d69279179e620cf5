//! Builds declarations from JSON for tests of the code that uses declarations.

use std::sync::Arc;

use super::{
    Container, ContainerLifecycle, CreationPolicy, DeclaredEntry, DeclaredFields, DeclaredSection,
    EntryPresence, Unlisted,
};
use crate::{
    catalogue,
    field::Scope,
    kind::Section,
    origin::{Layer, Origin, Sourced},
    secret::Reference,
    value::{Json, Object, Value},
};

/// An origin in `shop.yaml`.
pub fn origin(line: u32) -> Origin {
    Origin::new("shop.yaml", line, 1, Layer::Project)
}

/// A declared value: `{"env": NAME}` is a secret, `{"file": PATH}` a file to upload, everything
/// else is plain.
pub fn value(json: &Json) -> Value {
    let text_field = |name: &str| json.get(name).and_then(Json::as_str);
    match (text_field("env"), text_field("file")) {
        (Some(name), _) => Value::Secret(Reference::Env(name.into())),
        (_, Some(path)) => Value::File(path.into()),
        _ => json.clone().into(),
    }
}

/// The declared fields in `json`, with origins in line 3.
pub fn fields(json: &Json) -> DeclaredFields {
    let json = json.as_object().into_iter().flatten();
    json.map(|(name, json)| (name.clone(), Sourced { value: value(json), origin: origin(3) }))
        .collect()
}

/// The entry of `kind` in `json`, with an origin in line 2. The entry is absent if `json` has the
/// key `state`, with any value.
pub fn entry(kind: Section, json: &Json) -> DeclaredEntry {
    let mut json: Object = json.as_object().cloned().unwrap_or_default();
    let state =
        if json.remove("state").is_some() { EntryPresence::Absent } else { EntryPresence::Present };
    // A secret in an identity is replaced by the text of its reference.
    let identity_fields = json.iter().map(|(name, json)| match value(json) {
        Value::Secret(reference) => (name.clone(), reference.to_string().into()),
        _ => (name.clone(), json.clone()),
    });
    let key = kind.entry_name(&identity_fields.collect());
    DeclaredEntry { key, origin: origin(2), state, fields: fields(&Json::Object(json)) }
}

/// The section `kind`, with an origin in line 1. The policy for unlisted entries has an origin in
/// line 9. For a list, `entries` is an array.
pub fn section(kind: Section, entries: &Json, unlisted: Unlisted) -> DeclaredSection {
    let mut entries: Vec<_> = match entries {
        Json::Array(entries) => entries.iter().map(|json| entry(kind, json)).collect(),
        object => vec![entry(kind, object)],
    };
    let unlisted = Sourced { value: unlisted, origin: origin(9) };
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    DeclaredSection { unlisted, ..DeclaredSection::with_entries(kind, &origin(1), entries) }
}

/// The container at `path` with `sections`. undrift must not create the container.
pub fn container(scope: Scope, path: &str, sections: &Json, unlisted: Unlisted) -> Container {
    let sections = sections.as_object().into_iter().flatten().map(|(name, entries)| {
        let kind =
            catalogue::find_section(scope, name).unwrap_or_else(|| panic!("no section {name}"));
        section(kind, entries, unlisted)
    });
    let mut sections: Vec<_> = sections.collect();
    sections.sort_by_key(|section| section.kind.section);
    Container {
        scope,
        path: path.into(),
        origin: origin(1),
        including_glob: None,
        creation_policy: CreationPolicy::Forbidden,
        is_watched: false,
        lifecycle: ContainerLifecycle::default(),
        sections,
    }
}

/// A former path, with an origin in line 4.
pub fn former_path(path: &str) -> Sourced<Arc<str>> {
    Sourced { value: path.into(), origin: origin(4) }
}

/// The project `acme/shop` with `sections`.
pub fn shop(sections: &Json, unlisted: Unlisted) -> Container {
    container(Scope::Project, "acme/shop", sections, unlisted)
}
