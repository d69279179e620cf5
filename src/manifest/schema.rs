//! The JSON schemas of manifests and of `undrift.yaml`: what the checks run against, and what
//! editors are given.
//!
//! A manifest's schema is the sum of the kinds' tables; a new kind appears in it by itself.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::json;

use super::Config;
use crate::{
    field::Scope,
    kind::{Section, Shape},
    kinds, schema,
    value::{Json, Object},
};

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

static PROJECT: LazyLock<Checker> = LazyLock::new(|| Checker::new(container(Scope::Project)));
static GROUP: LazyLock<Checker> = LazyLock::new(|| Checker::new(container(Scope::Group)));

/// Documents about containers of `scope`.
pub(super) fn of(scope: Scope) -> &'static Checker {
    match scope {
        Scope::Group => &GROUP,
        Scope::Project => &PROJECT,
    }
}

/// `undrift.yaml`.
pub(super) static CONFIG: LazyLock<Checker> = LazyLock::new(|| Checker::new(config()));

/// The kinds of documents that there are.
pub const DOCUMENTS: [&str; 2] = ["Project", "Group"];

/// The kinds of documents that are to come.
pub(super) const PLANNED_DOCUMENTS: [&str; 3] = ["Acknowledge", "Defaults", "Profile"];

/// The keys of a `Project` that are to come.
pub(super) const PLANNED_KEYS: [&str; 33] = [
    "approval_rules",
    "approvals",
    "badges",
    "branches",
    "custom_attributes",
    "deploy_keys",
    "environments",
    "external_status_checks",
    "fork",
    "forked_from",
    "freeze_periods",
    "ignore_layers",
    "inherit",
    "integrations",
    "job_token_scope",
    "labels",
    "merge_request_approvals",
    "milestones",
    "pages_domains",
    "params",
    "pipeline_schedules",
    "previously",
    "protected_branches",
    "protected_environments",
    "protected_tags",
    "push_mirrors",
    "remote_mirrors",
    "schedules",
    "services",
    "shares",
    "undeclared_projects",
    "uses",
    "watch",
];

/// The key of any section that is to come.
pub(super) const PLANNED_FIELD: &str = "inherit";

/// The keys of `undrift.yaml` that are to come, each with the part that it belongs to.
pub(super) const PLANNED_CONFIG: [(&str, &str); 2] = [("", "manages"), ("service", "release")];

/// Words of a field that are to come.
pub(super) const PLANNED_WORDS: [(&str, &str); 1] = [("state", "unmanaged")];

/// The schema of any manifest, for editors.
pub fn manifest() -> Json {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "undrift manifest",
        "description": "A document of a manifest: what it declares depends on its `kind`.",
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string", "enum": DOCUMENTS, "description": "What the document declares."}},
        "allOf": Scope::ALL.map(|scope| json!({
            "if": {"properties": {"kind": {"const": scope.document()}}, "required": ["kind"]},
            "then": container(scope),
        })),
    })
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

/// The schema of a document about a container of `scope`, and what is to be in it. What is not
/// written is not managed.
fn container(scope: Scope) -> Json {
    let noun = scope.noun();
    let mut properties = Object::new();
    properties.insert(
        "kind".into(),
        json!({"type": "string", "enum": [scope.document()], "description": "What the document declares."}),
    );
    let path = format!("The full path of the {noun}: its namespace and its own name in addresses.");
    let example = match scope {
        Scope::Group => "acme/team",
        Scope::Project => "acme/shop",
    };
    properties.insert(
        "path".into(),
        json!({"type": "string", "description": path, "examples": [example]}),
    );
    for section in kinds::sections(scope) {
        match section.shape {
            Shape::Container if section.table().specs().is_empty() => {}
            Shape::Container => {
                properties.insert(section.section.to_owned(), create(section));
            }
            _ => {
                properties.insert(section.section.to_owned(), self::section(section));
            }
        }
    }
    properties.insert("unlisted".into(), unlisted(scope));
    json!({
        "description": format!("A {noun}, and what is to be in it. What is not written is not managed."),
        "type": "object",
        "properties": properties,
        "required": ["kind", "path"],
        "additionalProperties": false,
    })
}

/// `create: true`, or a mapping.
fn create(section: Section) -> Json {
    let mut create = bare(&section.table().schema);
    create.insert("type".into(), json!(["boolean", "object"]));
    create.insert("additionalProperties".into(), json!(false));
    let noun = section.noun;
    create.insert(
        "description".into(),
        json!(format!("Create the {noun} if it is missing, with these attributes.")),
    );
    Json::Object(create)
}

/// `unlisted: {SECTION: report | fail | delete | ignore}` for the sections that are lists.
fn unlisted(scope: Scope) -> Json {
    let sections = kinds::sections(scope).filter(|section| section.shape == Shape::List);
    let properties: Object = sections
        .map(|section| {
            let text = format!("What to do with a {} that no manifest lists (default: `report`).", section.noun);
            let policy = json!({"type": "string", "enum": ["report", "fail", "delete", "ignore"], "description": text});
            (section.section.to_owned(), policy)
        })
        .collect();
    json!({
        "type": "object",
        "description": "What to do with live entries that no manifest lists: `report` them, `fail` (take them for a difference), `delete` or `ignore` them.",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// A section of a container.
fn section(kind: Section) -> Json {
    let mut fields = bare(&kind.table().schema);
    if kind.shape == Shape::Switch {
        let own = kind.table().get(kind.section).map(|spec| spec.schema.clone());
        return own.unwrap_or_else(
            || json!({"type": "boolean", "description": fields.get("description")}),
        );
    }
    let extra = "API attributes that undrift does not know yet; sent and compared as they are.";
    insert(
        &mut fields,
        "extra",
        json!({"type": "object", "minProperties": 1, "description": extra}),
    );
    if kind.shape == Shape::Mapping {
        if kind.is_removable() {
            fields.insert("type".into(), json!(["object", "null"]));
        }
        return Json::Object(fields);
    }
    // A default would be the first thing that editors write into a new entry.
    let state = format!(
        "Whether the {} must exist (default: `present`). An absent one needs only its identity.",
        kind.noun
    );
    insert(
        &mut fields,
        "state",
        json!({"type": "string", "enum": ["present", "absent"], "description": state}),
    );
    let required = fields.remove("required").unwrap_or_else(|| json!([]));
    let identity: Vec<_> =
        required.as_array().into_iter().flatten().filter(|name| is_identity(kind, name)).collect();
    let identity = json!(identity);
    fields.insert(
        "if".into(),
        json!({"properties": {"state": {"const": "absent"}}, "required": ["state"]}),
    );
    fields.insert("required".into(), identity);
    fields.insert("else".into(), json!({"required": required}));
    json!({"type": "array", "items": fields, "description": fields.get("description")})
}

fn is_identity(kind: Section, name: &Json) -> bool {
    name.as_str().is_some_and(|name| kind.identity.contains(&name))
}

/// A root schema as part of another one.
fn bare(schema: &Json) -> Object {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.remove("$schema");
    schema.remove("title");
    schema
}

fn insert(schema: &mut Object, name: &str, property: Json) {
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.insert(name.to_owned(), property);
    }
}
