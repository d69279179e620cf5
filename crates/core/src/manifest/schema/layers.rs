//! The schemas of the keys that concern other layers, and of the forms that may replace a value.

use serde_json::json;

use super::{container::SchemaUse, document_part};
use crate::{
    field::ALIASES_KEYWORD,
    schema,
    secret::Reference,
    value::{Json, Object, texts},
};

/// The value of `undeclared` that makes a rule include undeclared containers.
pub(in crate::manifest) const INCLUDE_VALUE: &str = "include";

/// The keys of any document that concern other layers, except `ignore_layers`.
pub(super) fn layering_keys(usage: SchemaUse) -> Object {
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
    *param = json!({"anyOf": [param.take(), schema::schema_of::<Reference>().to_value()]});
}

/// The schema of `ignore_layers`: `[SECTION, ...]` or `true`.
pub(super) fn ignore_layers_schema(sections: &[&str]) -> Json {
    let mut ignore = document_part("ignore_layers");
    if !sections.is_empty() {
        ignore["items"]["enum"] = json!(sections);
    }
    ignore.into()
}

/// Adds the forms that may replace a value to the schema of a field: `{text: ...}` for a text or
/// number; `{add: [...]}`, `{remove: [...]}` and conditions for a list.
pub(super) fn add_forms(schema: &mut Json) {
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.values_mut().for_each(add_forms);
        return;
    }
    let types: Vec<&str> = texts(&schema["type"]).collect();
    let alternative_forms = if types.contains(&"array") {
        let mut list = document_part("list_form");
        list["items"] = schema.get("items").cloned().unwrap_or(json!(true));
        let pairs = [["add", "remove"], ["at_least", "none_of"]].map(|[first, second]| {
            json!({
                "type": "object",
                "properties": {first: list, second: list},
                "minProperties": 1,
                "additionalProperties": false,
            })
        });
        pairs.to_vec()
    } else if types.contains(&"boolean") {
        return;
    } else {
        vec![document_part("text_form").into()]
    };
    let mut plain_form = std::mem::take(schema);
    let description = plain_form.as_object_mut().and_then(|plain| {
        plain.remove(ALIASES_KEYWORD);
        plain.remove("description")
    });
    let choices: Vec<_> = std::iter::once(plain_form).chain(alternative_forms).collect();
    *schema = json!({"anyOf": choices});
    if let Some(description) = description {
        schema["description"] = description;
    }
}

/// The schema of the keys that any entry may have, and of the forms that may replace a value.
pub(super) fn value_keys() -> Json {
    json!({"properties": document_part("in_values")})
}
