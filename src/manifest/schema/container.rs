//! The schema of a document about a group or project, made from the tables of the kinds.

use serde_json::json;

use super::{bare, insert, kind, layers};
use crate::{
    desired::PROJECTS,
    field::Scope,
    kind::{Section, Shape},
    kinds,
    value::{Json, Object},
};

/// The old form of `unlisted: {projects: ...}` of a group.
pub(in crate::manifest) const OLD_UNLISTED: &str = "undeclared_projects";

/// What a schema is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Checking one of several documents that are merged: required fields are optional.
    Reading,
    /// For editors.
    Editing,
}

/// The schema of a document about a container of `scope`.
pub(super) fn schema(scope: Scope, to: Use) -> Json {
    let noun = scope.noun();
    let mut properties = Object::from_iter([("kind".to_owned(), kind(scope.document()))]);
    properties.extend(own(scope));
    properties.extend(layers::keys(to));
    properties.extend(sections(scope, to));
    json!({
        "description": format!("A {noun}, and what is to be in it. What is not written is not managed."),
        "type": "object",
        "properties": properties,
        "required": ["kind", "path"],
        "additionalProperties": false,
    })
}

/// The sections of `scope`, and the policies for unlisted entries.
pub(super) fn sections(scope: Scope, to: Use) -> Object {
    let section = |of: Section| {
        let section = match of.shape {
            Shape::Container => create(of, to),
            Shape::List => list(of, to),
            Shape::Mapping => mapping(of, to),
            Shape::Switch => switch(of),
        };
        (of.section.to_owned(), section)
    };
    let sections = kinds::sections(scope).map(section);
    let names: Vec<_> = kinds::sections(scope).map(|section| section.section).collect();
    sections
        .chain([
            ("unlisted".to_owned(), unlisted(scope)),
            ("ignore_layers".to_owned(), layers::ignore(&names)),
        ])
        .collect()
}

/// The keys that concern the container as a whole.
pub(super) fn own(scope: Scope) -> Object {
    let noun = scope.noun();
    let path = format!("The full path of the {noun}: its namespace and its own name in addresses.");
    let example = match scope {
        Scope::Group => "acme/team",
        Scope::Project => "acme/shop",
    };
    let path = json!({"type": "string", "description": path, "examples": [example]});
    let mut keys = Object::from_iter([
        ("path".to_owned(), path),
        ("previously".to_owned(), previously(noun)),
        ("state".to_owned(), state(scope)),
    ]);
    if scope == Scope::Group {
        let text = "The old form of `unlisted: {projects: ...}`.";
        let old = json!({"type": "string", "enum": ["report", "fail", "ignore"], "description": text, "deprecated": true});
        keys.insert(OLD_UNLISTED.to_owned(), old);
    }
    keys
}

/// `previously: [PATH]`.
fn previously(noun: &str) -> Json {
    let text = format!(
        "Full paths that the {noun} had before. If it is still at one of them, it is renamed and moved to `path`."
    );
    json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "description": text})
}

/// `state: present | absent`.
fn state(scope: Scope) -> Json {
    let text = match scope {
        Scope::Group => {
            "Whether the group must exist (default: `present`). One that is marked for deletion is restored; from release 18 on such a group has another path and counts as missing. undrift never deletes a group."
        }
        Scope::Project => {
            "Whether the project must exist (default: `present`). One that is marked for deletion is restored. `absent` deletes it with everything in it, and stands alone beside `path`."
        }
    };
    json!({"type": "string", "enum": ["present", "absent"], "description": text})
}

/// `create: true`, or a mapping.
fn create(of: Section, to: Use) -> Json {
    let mut create = bare(&of.table().schema);
    open(&mut create, to);
    create.insert("type".into(), json!(["boolean", "object"]));
    create.insert("additionalProperties".into(), json!(false));
    let text = format!("Create the {} if it is missing, with these attributes.", of.noun);
    create.insert("description".into(), json!(text));
    Json::Object(create)
}

/// `unlisted: {SECTION: report | fail | delete | ignore}` for the sections that are lists, and
/// [`PROJECTS`] of a group.
pub(super) fn unlisted(scope: Scope) -> Json {
    let sections = kinds::sections(scope).filter(|section| section.shape == Shape::List);
    let mut properties: Object = sections
        .map(|section| {
            let text = format!("What to do with a {} that no manifest lists (default: `report`).", section.noun);
            let policy = json!({"type": "string", "enum": ["report", "fail", "delete", "ignore"], "description": text});
            (section.section.to_owned(), policy)
        })
        .collect();
    if scope == Scope::Group {
        let text = "What to do with projects in the group and in its subgroups that no manifest declares (default: `ignore`). They are never changed.";
        let policy =
            json!({"type": "string", "enum": ["report", "fail", "ignore"], "description": text});
        properties.insert(PROJECTS.to_owned(), policy);
    }
    json!({
        "type": "object",
        "description": "What to do with live entries that no manifest lists: `report` them, `fail` (report them as a difference), `delete` or `ignore` them.",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// A section with a single value.
fn switch(of: Section) -> Json {
    let own = of.table().get(of.section).map(|spec| spec.schema.clone());
    let description = &of.table().schema["description"];
    let mut own = own.unwrap_or_else(|| json!({"type": "boolean", "description": description}));
    if of.is_removable() {
        own["type"] = json!([own["type"], "null"]);
    }
    own
}

/// A section with one mapping.
fn mapping(of: Section, to: Use) -> Json {
    let mut fields = fields(of, to);
    if of.is_removable() {
        fields.insert("type".into(), json!(["object", "null"]));
    }
    // Missing fields may come from another layer.
    fields.remove("required");
    Json::Object(fields)
}

/// A section with a list of entries.
fn list(of: Section, to: Use) -> Json {
    let mut fields = fields(of, to);
    // Editors would insert a default into every new entry.
    let state = format!(
        "Whether the {} must exist (default: `present`). An `absent` one needs only its identity. An `unmanaged` one is somebody else's: it is neither created, changed, removed nor reported, and `*` in its identity stands for any text.",
        of.noun
    );
    let states = ["present", "absent", "unmanaged"];
    let state = json!({"type": "string", "enum": states, "description": state});
    insert(&mut fields, "state", state);
    let required = fields.remove("required").unwrap_or_else(|| json!([]));
    if to == Use::Editing {
        // The other fields may come from another layer.
        let is_identity =
            |name: &&Json| name.as_str().is_some_and(|name| of.identity.contains(&name));
        let identity: Vec<_> =
            required.as_array().into_iter().flatten().filter(is_identity).collect();
        fields.insert("required".into(), json!(identity));
    }
    json!({"type": "array", "items": fields, "description": fields.get("description")})
}

/// The fields of an entry, and `extra`.
fn fields(of: Section, to: Use) -> Object {
    let mut fields = bare(&of.table().schema);
    open(&mut fields, to);
    let extra = json!({"type": "object", "minProperties": 1, "description": layers::EXTRA});
    insert(&mut fields, "extra", extra);
    fields
}

/// Shows editors the forms that may replace a value.
fn open(fields: &mut Object, to: Use) {
    let properties = fields.get_mut("properties").and_then(Json::as_object_mut);
    if to == Use::Editing {
        for property in properties.into_iter().flat_map(Object::values_mut) {
            layers::open(property);
        }
    }
}
