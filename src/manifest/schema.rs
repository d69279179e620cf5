//! The JSON schemas of manifests and of `undrift.yaml`: what the checks run against, and what
//! editors are given.
//!
//! A manifest's schema is the sum of the kinds' tables; a new kind appears in it by itself.

use std::sync::LazyLock;

use jsonschema::Validator;
use schemars::JsonSchema;
use serde_json::json;

use super::Config;
use crate::{
    kind::{Kind, Shape, Source, Target},
    kinds::{KINDS, settings::create_table},
    schema,
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

/// Documents of the kind `Project`.
pub(super) static PROJECT: LazyLock<Checker> = LazyLock::new(|| Checker::new(project()));

/// `undrift.yaml`.
pub(super) static CONFIG: LazyLock<Checker> = LazyLock::new(|| Checker::new(config()));

/// The kinds of documents that there are.
pub const DOCUMENTS: [&str; 1] = ["Project"];

/// The kinds of documents that are to come.
pub(super) const PLANNED_DOCUMENTS: [&str; 4] = ["Acknowledge", "Defaults", "Group", "Profile"];

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
pub(super) const PLANNED_WORDS: [(&str, &str); 2] = [("state", "unmanaged"), ("unlisted", "fail")];

/// The schema of any manifest, for editors.
pub fn manifest() -> Json {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "undrift manifest",
        "description": "A document of a manifest: what it declares depends on its `kind`.",
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string", "enum": DOCUMENTS, "description": "What the document declares."}},
        "if": {"properties": {"kind": {"const": "Project"}}, "required": ["kind"]},
        "then": project(),
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

/// A project, and what is to be in it. What is not written is not managed.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "it is read as a schema")]
struct Document {
    /// What the document declares.
    kind: DocumentKind,
    /// The full path of the project: its namespace and its own name in addresses.
    #[schemars(example = &"acme/shop")]
    path: String,
}

/// What a document declares.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is read as a schema")]
enum DocumentKind {
    /// A project.
    Project,
}

/// The schema of a document of the kind `Project`.
fn project() -> Json {
    let mut document = Json::Object(bare(schema::of::<Document>().as_value()));
    let Some(properties) = document["properties"].as_object_mut() else { return document };
    properties.insert("create".into(), create());
    properties.extend(KINDS.iter().map(|kind| (kind.section().to_owned(), section(*kind))));
    properties.insert("unlisted".into(), unlisted());
    document
}

/// `create: true`, or a mapping.
fn create() -> Json {
    let mut create = bare(&create_table().schema);
    create.insert("type".into(), json!(["boolean", "object"]));
    create.insert("additionalProperties".into(), json!(false));
    create.insert(
        "description".into(),
        json!("Create the project if it is missing, with these attributes."),
    );
    Json::Object(create)
}

/// `unlisted: {SECTION: report | delete | ignore}` for the sections that are lists.
fn unlisted() -> Json {
    let sections = KINDS.iter().filter(|kind| kind.shape() == Shape::List);
    let properties: Object = sections
        .map(|kind| {
            let text = format!("What to do with a {} that no manifest lists (default: `report`).", kind.noun());
            let policy = json!({"type": "string", "enum": ["report", "delete", "ignore"], "description": text});
            (kind.section().to_owned(), policy)
        })
        .collect();
    json!({
        "type": "object",
        "description": "What to do with live entries that no manifest lists: `report`, `delete` or `ignore` them.",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// A section of a project.
fn section(kind: &dyn Kind) -> Json {
    let mut fields = bare(&kind.table().schema);
    if kind.shape() == Shape::Switch {
        let own = kind.table().get(kind.section()).map(|spec| spec.schema.clone());
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
    if kind.shape() == Shape::Mapping {
        if is_removable(kind) {
            fields.insert("type".into(), json!(["object", "null"]));
        }
        return Json::Object(fields);
    }
    // A default would be the first thing that editors write into a new entry.
    let state = format!(
        "Whether the {} must exist (default: `present`). An absent one needs only its identity.",
        kind.noun()
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

fn is_identity(kind: &dyn Kind, name: &Json) -> bool {
    name.as_str().is_some_and(|name| kind.identity().contains(&name))
}

/// Whether `null` declares that the one thing of this section is to be gone.
pub(super) fn is_removable(kind: &dyn Kind) -> bool {
    let target = Target { path: "".into(), id: None, namespace: None };
    kind.shape() == Shape::Mapping && matches!(kind.source(&target), Source::Optional(_))
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
