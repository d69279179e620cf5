//! The JSON schemas of manifests and of `undrift.yaml`: what the checks run against, and what
//! editors are given.
//!
//! What a document about a group or project may hold is the sum of the kinds' tables; a new kind
//! appears in it by itself. Editors also get what an entry has to have. While a file is read, that
//! is left open: other documents may say the rest, so it is checked when they are merged.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::json;

use super::Config;
use crate::{
    field::Scope,
    kinds, schema,
    value::{Json, Object},
    yaml::Node,
};

mod acknowledge;
mod container;
mod planned;

pub(super) use acknowledge::Acknowledge;
pub(super) use planned::{
    PLANNED_CONFIG, PLANNED_DOCUMENTS, PLANNED_FIELD, PLANNED_KEYS, PLANNED_WORDS,
};

use container::Use;

/// A schema with its validator, built once.
#[derive(Debug)]
pub(super) struct Checker {
    /// The schema.
    pub(super) schema: Json,
    /// What checks against it.
    pub(super) validator: Validator,
}

impl Checker {
    fn new(schema: Json) -> Self {
        // The schemas are made of the types in this crate and a test builds all of them; refusing
        // everything is the safe answer.
        let validator = jsonschema::validator_for(&schema)
            .or_else(|_| jsonschema::validator_for(&json!(false)));
        match validator {
            Ok(validator) => Self { schema, validator },
            Err(_) => unreachable!("`false` is a schema"),
        }
    }
}

static PROJECT: LazyLock<Checker> =
    LazyLock::new(|| Checker::new(container::schema(Scope::Project, Use::Reading)));
static GROUP: LazyLock<Checker> =
    LazyLock::new(|| Checker::new(container::schema(Scope::Group, Use::Reading)));
static ACKNOWLEDGE: LazyLock<Checker> = LazyLock::new(|| Checker::new(acknowledge::schema()));

/// `undrift.yaml`.
pub(super) static CONFIG: LazyLock<Checker> = LazyLock::new(|| Checker::new(config()));

/// What a document is: its `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// A group or project and what is in it.
    Container(Scope),
    /// What a guard may let pass.
    Acknowledge,
}

impl DocumentKind {
    /// Every kind, in the order in which they are documented.
    pub const ALL: [Self; 3] =
        [Self::Container(Scope::Project), Self::Container(Scope::Group), Self::Acknowledge];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Container(scope) => scope.document(),
            Self::Acknowledge => "Acknowledge",
        }
    }

    /// The kind that `document` says it is, if there is such a kind.
    pub(super) fn of(document: &Node) -> Option<Self> {
        let (_, kind) = document.get("kind")?;
        Self::ALL.into_iter().find(|known| kind.text() == Some(known.name()))
    }

    /// What checks such a document.
    pub(super) fn checker(self) -> &'static Checker {
        match self {
            Self::Container(Scope::Project) => &PROJECT,
            Self::Container(Scope::Group) => &GROUP,
            Self::Acknowledge => &ACKNOWLEDGE,
        }
    }

    /// The schema of such a document that stands alone, for editors.
    pub fn schema(self) -> Json {
        match self {
            Self::Container(scope) => container::schema(scope, Use::Editing),
            Self::Acknowledge => acknowledge::schema(),
        }
    }
}

/// The schema of any manifest, for editors.
pub fn manifest() -> Json {
    let kinds = DocumentKind::ALL.map(DocumentKind::name);
    let documents = DocumentKind::ALL.map(|kind| {
        json!({
            "if": {"properties": {"kind": {"const": kind.name()}}, "required": ["kind"]},
            "then": kind.schema(),
        })
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "undrift manifest",
        "description": "A document of a manifest: what it declares depends on its `kind`.",
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string", "enum": kinds, "description": KIND}},
        "allOf": documents,
    })
}

/// The reference page of everything that manifests may hold, in Markdown.
pub fn reference() -> String {
    let others =
        DocumentKind::ALL.into_iter().filter(|kind| !matches!(kind, DocumentKind::Container(_)));
    let others = others.map(|kind| kinds::reference::document(kind.name(), &kind.schema()));
    let own = |scope| json!({"properties": container::own(scope)});
    std::iter::once(kinds::reference::page(own)).chain(others).collect()
}

/// What `kind` is.
const KIND: &str = "What the document declares.";

/// The property `kind` of a document that is a `name`.
fn kind(name: &str) -> Json {
    json!({"type": "string", "enum": [name], "description": KIND})
}

/// The schema of `undrift.yaml`, for editors.
pub fn config() -> Json {
    let mut schema = schema::of::<Config>().as_value().clone();
    schema["title"] = json!("undrift configuration");
    drop_null_defaults(&mut schema);
    schema
}

/// A field that may be left out has no default of `null`: it may not be `null`.
fn drop_null_defaults(schema: &mut Json) {
    for property in schema
        .get_mut("properties")
        .and_then(Json::as_object_mut)
        .into_iter()
        .flat_map(Object::values_mut)
    {
        if property.get("default").is_some_and(Json::is_null) {
            property.as_object_mut().and_then(|property| property.remove("default"));
        }
        drop_null_defaults(property);
    }
}

/// A root schema as part of another one.
fn bare(schema: &Json) -> Object {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.remove("$schema");
    schema.remove("title");
    schema
}

/// Adds a property.
fn insert(schema: &mut Object, name: &str, property: Json) {
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.insert(name.to_owned(), property);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_planned() {
        let documents = DocumentKind::ALL.map(DocumentKind::name);
        assert!(PLANNED_DOCUMENTS.iter().all(|planned| !documents.contains(planned)));
        for section in kinds::everywhere() {
            let (name, table) = (section.section, section.table());
            assert!(table.get(PLANNED_FIELD).is_none(), "{name}");
        }
    }
}
