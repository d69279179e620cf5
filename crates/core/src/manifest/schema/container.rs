//! Schemas of the parts of a document: its sections, the keys that concern other layers, and the
//! forms that may replace a value. The schemas of sections are made from the tables of the kinds.

use serde_json::json;

use super::{document_part, insert_property, strip_root_keys};
use crate::{
    catalogue,
    desired::PROJECTS_KEY,
    field::{ALIASES_KEYWORD, Scope},
    kind::{Section, Shape},
    schema,
    secret::Reference,
    text::with_article,
    value::{Json, Object, texts},
};

/// The deprecated key of a group for `unlisted: {projects: ...}`.
pub(in crate::manifest) const OLD_UNLISTED_KEY: &str = "undeclared_projects";

/// The purpose of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaUse {
    /// The schema checks one document. Required fields are optional, because another layer may set
    /// them.
    Checking,
    /// The schema checks one document, but accepts any value in a section.
    CheckingFrame,
    /// The schema is for editors. It demands required fields, and accepts the forms that may
    /// replace a value.
    Editing,
}

/// The schemas of the sections of `scope`, and of the keys `unlisted` and `ignore_layers`, by name.
pub(super) fn section_schemas(scope: Scope, usage: SchemaUse) -> Object {
    let sections: Vec<_> = catalogue::sections(scope).collect();
    let names: Vec<_> = sections.iter().map(|section| section.section).collect();
    let key_schemas = [
        ("unlisted".to_owned(), unlisted_schema(scope)),
        ("ignore_layers".to_owned(), ignore_layers_schema(&names)),
    ];
    let sections = sections.into_iter();
    sections
        .map(|kind| (kind.section.to_owned(), section_schema(kind, usage)))
        .chain(key_schemas)
        .collect()
}

/// The schema of a section.
pub(super) fn section_schema(section: Section, usage: SchemaUse) -> Json {
    let mut schema = match section.shape {
        _ if usage == SchemaUse::CheckingFrame => return json!(true),
        Shape::Container => create_schema(section),
        Shape::List => list_schema(section),
        Shape::Mapping => mapping_schema(section),
        Shape::Switch => switch_schema(section),
    };
    if usage == SchemaUse::Editing {
        let fields_schema =
            if section.shape == Shape::List { &mut schema["items"] } else { &mut schema };
        let field_names =
            section.table().schema["properties"].as_object().into_iter().flat_map(Object::keys);
        for name in field_names.filter(|_| section.shape != Shape::Switch) {
            add_forms(&mut fields_schema["properties"][name]);
        }
        if section.shape == Shape::List {
            // Fields outside the identity may come from another layer.
            let required = texts(&section.table().schema["required"]);
            let required = required.filter(|name| section.identity.contains(name));
            fields_schema["required"] = required.collect();
        }
    }
    schema
}

/// The schema of `create`: a boolean, or a mapping.
fn create_schema(section: Section) -> Json {
    let mut create = strip_root_keys(&section.table().schema);
    create.insert("type".into(), json!(["boolean", "object"]));
    create.insert("additionalProperties".into(), json!(false));
    let text = format!("Create the {} if it is missing, with these attributes.", section.noun);
    create.insert("description".into(), json!(text));
    Json::Object(create)
}

/// The schema of `unlisted: {SECTION: report | fail | delete | ignore}`, for the sections that can
/// have unlisted entries, and for [`PROJECTS_KEY`] of a group.
pub(super) fn unlisted_schema(scope: Scope) -> Json {
    let sections = catalogue::sections(scope).filter(|section| section.allows_unlisted());
    let mut properties: Object = sections
        .map(|section| {
            let noun_with_article = with_article(section.noun);
            let text = format!("What to do with {noun_with_article} that no manifest lists (default: `report`).");
            let policy = json!({"type": "string", "enum": ["report", "fail", "delete", "ignore"], "description": text});
            (section.section.to_owned(), policy)
        })
        .collect();
    if scope == Scope::Group {
        properties.insert(PROJECTS_KEY.to_owned(), document_part("unlisted_projects").into());
    }
    let mut unlisted = document_part("unlisted");
    unlisted.insert("properties".into(), properties.into());
    unlisted.into()
}

/// The schema of a section with a single value.
fn switch_schema(section: Section) -> Json {
    let property = section.spec(section.section).map(|spec| spec.schema.clone());
    let description = &section.table().schema["description"];
    let mut property =
        property.unwrap_or_else(|| json!({"type": "boolean", "description": description}));
    if section.is_removable() {
        property["type"] = json!([property["type"], "null"]);
    }
    property
}

/// The schema of a section with one mapping.
fn mapping_schema(section: Section) -> Json {
    let mut fields = entry_schema(section);
    if section.is_removable() {
        fields.insert("type".into(), json!(["object", "null"]));
    }
    // Missing fields may come from another layer.
    fields.remove("required");
    Json::Object(fields)
}

/// The schema of a section with a list of entries.
fn list_schema(section: Section) -> Json {
    let mut fields = entry_schema(section);
    // Write the default only into the description: editors would insert a `default` into every new
    // entry.
    let (noun, keeps_entries) = (section.noun, section.cannot_remove_entries());
    let intro = match section.is_only_edited() {
        true => format!("Whether the {noun} is managed (default: `present`)."),
        false => format!(
            "Whether the {noun} must exist (default: `present`). An `absent` one needs only its identity."
        ),
    };
    let state = format!(
        "{intro} An `unmanaged` one is managed elsewhere: it is not created, changed, removed or reported, and `*` in its identity matches any text."
    );
    let states = ["present", "absent", "unmanaged"].into_iter();
    let states: Vec<_> = states.filter(|state| !keeps_entries || *state != "absent").collect();
    let state = json!({"type": "string", "enum": states, "description": state});
    insert_property(&mut fields, "state", state);
    fields.remove("required");
    json!({"type": "array", "items": fields, "description": fields.get("description")})
}

/// The schema of an entry, with its fields and `extra`.
fn entry_schema(section: Section) -> Object {
    let mut fields = strip_root_keys(&section.table().schema);
    let extra = document_part("in_values").remove("extra").unwrap_or_default();
    insert_property(&mut fields, "extra", extra);
    fields
}

/// The value of `undeclared` that makes a rule include undeclared containers.
pub(in crate::manifest) const INCLUDE_VALUE: &str = "include";

/// The schemas of the keys with which any document can refer to other layers, except
/// `ignore_layers`.
pub(super) fn layering_key_schemas(usage: SchemaUse) -> Object {
    let mut keys = document_part("any");
    if usage == SchemaUse::Editing {
        add_forms(&mut keys["uses"]);
        accept_references(&mut keys["params"]);
    }
    keys
}

/// Allows references to secrets as values of `params`.
pub(super) fn accept_references(params: &mut Json) {
    let param = &mut params["additionalProperties"];
    *param = json!({"anyOf": [param.take(), schema::inline_schema::<Reference>().to_value()]});
}

/// The schema of `ignore_layers`: `[SECTION, ...]` or `true`.
pub(super) fn ignore_layers_schema(sections: &[&str]) -> Json {
    let mut schema = document_part("ignore_layers");
    if !sections.is_empty() {
        schema["items"]["enum"] = json!(sections);
    }
    schema.into()
}

/// Adds the forms that may replace a value to the schema of a field: `{text: ...}` for a text or
/// number; `{add: [...]}`, `{remove: [...]}` and conditions for a list.
pub(super) fn add_forms(schema: &mut Json) {
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.values_mut().for_each(add_forms);
        return;
    }
    let types: Vec<&str> = texts(&schema["type"]).collect();
    let other_forms = if types.contains(&"array") {
        let mut list = document_part("list_form");
        list["items"] = schema.get("items").cloned().unwrap_or(json!(true));
        let change_forms = [["add", "remove"], ["at_least", "none_of"]].map(|[first, second]| {
            json!({
                "type": "object",
                "properties": {first: list, second: list},
                "minProperties": 1,
                "additionalProperties": false,
            })
        });
        change_forms.to_vec()
    } else if types.contains(&"boolean") {
        return;
    } else {
        vec![document_part("text_form").into()]
    };
    let mut plain_form = std::mem::take(schema);
    let description = plain_form.as_object_mut().and_then(|form_object| {
        form_object.remove(ALIASES_KEYWORD);
        form_object.remove("description")
    });
    let choices: Vec<_> = std::iter::once(plain_form).chain(other_forms).collect();
    *schema = json!({"anyOf": choices});
    if let Some(description) = description {
        schema["description"] = description;
    }
}

/// The schema of the keys that any entry may have, and of the forms that may replace a value.
pub(super) fn value_keys_schema() -> Json {
    json!({"properties": document_part("in_values")})
}
