//! Adds an id to each schema for editors, and descriptions of fields in Markdown. These are the
//! same descriptions as on the reference page.

use crate::{
    catalogue::reference::{self, FieldReference},
    field::{ALIASES_KEYWORD, Field},
    schema,
    value::{Json, Object},
};

/// The version of the schemas for manifests. 0 means unstable.
const SCHEMA_VERSION: u32 = 0;

/// `schema` in the form that is published under `name`.
pub fn published_schema(name: &str, mut schema: Json) -> Json {
    add_markdown(&mut schema);
    schema::add_schema_id(name, SCHEMA_VERSION, schema)
}

/// Adds Markdown to every description in `schema`.
fn add_markdown(schema: &mut Json) {
    let plain_schema = strip_forms(schema);
    let Some(object) = schema.as_object_mut() else {
        if let Some(choices) = schema.as_array_mut() {
            choices.iter_mut().for_each(add_markdown);
        }
        return;
    };
    if let Some(properties) = object.get_mut("properties").and_then(Json::as_object_mut) {
        for (name, property) in properties.iter_mut() {
            let FieldReference { meaning, remarks, .. } =
                reference::describe_field(&plain_schema["properties"][name], &plain_schema);
            if !meaning.is_empty() && property.is_object() {
                let remarks = match &remarks[..] {
                    [] => String::new(),
                    remarks => format!("\n\n*{}.*", remarks.join("; ")),
                };
                property["markdownDescription"] = format!("{meaning}{remarks}").into();
            }
        }
    }
    if let Some(Json::String(text)) = object.get("description")
        && !object.contains_key("markdownDescription")
    {
        let text = text.clone();
        object.insert("markdownDescription".into(), text.into());
    }
    object.shift_remove(ALIASES_KEYWORD);
    Field::detach_from(object);
    for (key, value) in object.iter_mut() {
        match key.as_str() {
            "properties" => object_values_mut(value).for_each(add_markdown),
            // `$defs` groups the schemas of sections by scope.
            "$defs" => object_values_mut(value).flat_map(object_values_mut).for_each(add_markdown),
            "items" | "additionalProperties" | "then" | "allOf" | "anyOf" | "oneOf" => {
                add_markdown(value);
            }
            _ => {}
        }
    }
}

/// The values of an object.
pub(super) fn object_values_mut(object: &mut Json) -> impl Iterator<Item = &mut Json> {
    object.as_object_mut().into_iter().flat_map(Object::values_mut)
}

/// A schema with only the properties of `schema`, without the forms that may replace a value.
fn strip_forms(schema: &Json) -> Json {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let properties = properties.map(|(name, property)| {
        let mut plain_property = match &property["anyOf"][0] {
            Json::Object(first) if property["description"].is_string() => first.clone(),
            _ => property.as_object().cloned().unwrap_or_default(),
        };
        if let Some(description) = property.get("description") {
            plain_property.insert("description".into(), description.clone());
        }
        (name.clone(), Json::Object(plain_property))
    });
    let properties: Object = properties.collect();
    serde_json::json!({"properties": properties})
}
