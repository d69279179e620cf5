//! JSON schemas of types, in a form for people and editors.

use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::{Value, json};

use crate::secret::Reference;

/// Text, or a reference to a secret.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub enum TextOrSecret {
    /// Plain text.
    Text(String),
    /// A reference to a secret.
    Secret(Reference),
}

/// The schema of `T`, with all types inlined, and without details that only matter in Rust.
pub fn inline_schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .with(|s| s.inline_subschemas = true)
        .with_transform(RecursiveTransform(simplify))
        .into_generator()
        .into_root_schema_for::<T>()
}

/// Adds an id to `schema`, so that other schemas and programs can refer to the schema. The id is
/// not a URL that can be fetched.
pub fn add_schema_id(name: &str, version: u32, schema: Value) -> Value {
    let id = ("$id".to_owned(), json!(format!("urn:undrift:schema:{name}:{version}")));
    match schema {
        Value::Object(mut object) => {
            let dialect = object.shift_remove_entry("$schema");
            dialect.into_iter().chain([id]).chain(object).collect()
        }
        other => other,
    }
}

/// Simplifies a schema. `Option<T>` means that a field may be omitted, not that it may be `null`.
/// An enum whose variants have descriptions becomes a plain `enum` with `markdownEnumDescriptions`.
fn simplify(schema: &mut Schema) {
    // Remove the line breaks of doc comments, and the bit width of integers. The schema contains
    // the range of integers.
    if let Some(text) = schema.get("description").and_then(Value::as_str) {
        let text = text.replace("\n\n", "\0").replace('\n', " ").replace('\0', "\n\n");
        schema.insert("description".into(), text.into());
    }
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint"))
    {
        schema.remove("format");
    }
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|json_type| json_type != "null");
        if let [single_type] = &types[..] {
            object["type"] = single_type.clone();
        }
    }
    if let Some(Value::Array(options)) = object.get_mut("enum") {
        options.retain(|option| !option.is_null());
    }
    if let Some(Value::Array(choices)) = object.get("anyOf")
        && let [Value::Object(inner), null] = &choices[..]
        && *null == json!({"type": "null"})
    {
        let inner = inner.clone();
        object.remove("anyOf");
        for (key, value) in inner {
            object.entry(key).or_insert(value);
        }
    }
    if let Some(Value::Array(choices)) = object.get("oneOf")
        && choices.iter().all(|choice| choice["const"].is_string())
    {
        let names: Vec<_> = choices.iter().map(|choice| choice["const"].clone()).collect();
        let descriptions: Vec<_> =
            choices.iter().map(|choice| choice["description"].clone()).collect();
        object.remove("oneOf");
        object.insert("type".into(), json!("string"));
        object.insert("enum".into(), json!(names));
        object.insert("markdownEnumDescriptions".into(), json!(descriptions));
    }
}
