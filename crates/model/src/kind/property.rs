//! Generates the schema of an entry from its fields.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::json;

use crate::{
    field::{ALIASES_KEYWORD, Equality, Field, NamedObject, Requirement, ValidValues, ValueType},
    level::{self, AccessLevel},
    schema::{self, TextOrSecret},
    secret::Reference,
    value::{Json, Object},
    yaml,
};

/// The row types of lists of grants and approvals, by name. Each is a mapping with keys.
static ROW_TYPES: LazyLock<BTreeMap<&str, Field>> = LazyLock::new(|| {
    let row_types: Vec<Field> = yaml::built_in!("kind/grants");
    row_types.into_iter().map(|row| (row.name, row.with_implied_properties())).collect()
});

/// The field that defines the keys of a value of `field`. For a list of grants or approvals, this
/// is the row type. Otherwise it is `field` itself.
pub fn key_defining_field(field: &'static Field) -> &'static Field {
    match field.value_type {
        ValueType::Grants if field.grants.deploy_keys => &ROW_TYPES["grants_with_deploy_keys"],
        ValueType::Grants => &ROW_TYPES["grants"],
        ValueType::Approvals => &ROW_TYPES["approvals"],
        ValueType::LevelGrants => &ROW_TYPES["levels"],
        _ => field,
    }
}

/// The schema of a mapping with the keys of `mapping_field` only.
pub(super) fn mapping_schema(mapping_field: &'static Field) -> Json {
    let properties =
        mapping_field.keys.iter().map(|field| (field.name.to_owned(), field_schema(field)));
    let properties: Object = properties.collect();
    debug_assert_eq!(properties.len(), mapping_field.keys.len(), "each name is used once");
    let mut mapping = json!({
        "description": mapping_field.about,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    let required_fields =
        mapping_field.keys.iter().filter(|field| field.required == Requirement::Always);
    let required_names: Vec<_> = required_fields.map(|field| field.name).collect();
    let required = (!required_names.is_empty()).then(|| json!(required_names));
    // For a list, these limits count its rows, not the keys of a row.
    let item_limits = mapping_field.valid.items;
    let key_limits = Some(item_limits)
        .filter(|_| mapping_field.value_type != ValueType::Rows)
        .unwrap_or_default();
    let keywords = [
        (ALIASES_KEYWORD, alias_list(&mapping_field.aliases)),
        ("required", required),
        ("minProperties", key_limits.min.map(Json::from)),
        ("maxProperties", key_limits.max.map(Json::from)),
    ];
    add_keywords(&mut mapping, keywords);
    mapping
}

/// The schema of a field. The field is attached to the schema, so that [`Field::from_schema`] finds
/// the field again.
pub fn field_schema(field: &'static Field) -> Json {
    let mut property = type_schema(field);
    if field.nullable {
        match property.get_mut("anyOf").and_then(Json::as_array_mut) {
            Some(alternatives) => alternatives.push(json!({"type": "null"})),
            None => property["type"] = json!([property["type"], "null"]),
        }
    }
    property["description"] = json!(field.about);
    if !field.words.is_empty() {
        let word_schema = match field.value_type {
            ValueType::Grants | ValueType::Approvals => {
                &mut property["items"]["properties"]["access_level"]
            }
            _ => &mut property,
        };
        word_schema["enum"] = field.words.iter().map(|word| word.word).collect();
        word_schema["markdownEnumDescriptions"] =
            field.words.iter().map(|word| word.about).collect();
    }
    let mut examples = field.examples.clone();
    if matches!(field.value_type, ValueType::Grants | ValueType::Approvals) && examples.is_empty() {
        examples.push(json!([{"access_level": "maintainer"}]));
    }
    let ValidValues { pattern, size, items, numbers, .. } = &field.valid;
    let is_number = field.value_type == ValueType::Integer;
    let is_list = !matches!(field.value_type, ValueType::Mapping | ValueType::Spread);
    let [min, max] = [size.min, size.max].map(|limit| limit.map(Json::from));
    let number_limits = [("minimum", min.clone()), ("maximum", max.clone())];
    let text_limits =
        [("minLength", min), ("maxLength", max), ("pattern", pattern.map(Json::from))];
    let keywords = [
        ("minItems", items.min.map(Json::from).filter(|_| is_list)),
        ("maxItems", items.max.map(Json::from).filter(|_| is_list)),
        ("uniqueItems", (field.compare == Equality::Topics).then_some(true.into())),
        ("enum", (!numbers.is_empty()).then(|| json!(numbers))),
        ("default", field.default.manifest.clone()),
        ("examples", (!examples.is_empty()).then(|| examples.into())),
        ("deprecated", field.deprecated.map(|_| true.into())),
    ];
    let value_schema = match field.value_type {
        ValueType::Texts | ValueType::Addresses => &mut property["items"],
        _ => &mut property,
    };
    if is_number {
        add_keywords(value_schema, number_limits);
    } else {
        add_keywords(value_schema, text_limits);
    }
    add_keywords(&mut property, keywords);
    add_keywords(&mut property, [(ALIASES_KEYWORD, alias_list(&field.aliases))]);
    field.attach_to(&mut property);
    if let Some(property) = property.as_object_mut() {
        property.remove("$schema");
        property.remove("title");
    }
    property
}

/// The schema of the type of the field.
fn type_schema(field: &'static Field) -> Json {
    let make_row_schema = || mapping_schema(key_defining_field(field));
    match field.value_type {
        ValueType::Secret => schema::inline_schema::<Reference>().to_value(),
        ValueType::Address | ValueType::PublicKey => {
            schema::inline_schema::<TextOrSecret>().to_value()
        }
        ValueType::Text if field.sensitive => schema::inline_schema::<TextOrSecret>().to_value(),
        ValueType::Text if field.names == Some(NamedObject::Runner) => {
            json!({"type": ["string", "integer"], "minLength": 1, "minimum": 1})
        }
        ValueType::Text | ValueType::Expression | ValueType::Word => json!({"type": "string"}),
        ValueType::Cron => json!({"type": "string", "format": "cron"}),
        ValueType::TimeZone => json!({"type": "string", "format": "time-zone"}),
        ValueType::Date => {
            json!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "format": "date"})
        }
        ValueType::Integer => json!({"type": "integer"}),
        ValueType::Boolean => json!({"type": "boolean"}),
        ValueType::Texts | ValueType::Addresses => {
            json!({"type": "array", "items": {"type": "string"}})
        }
        ValueType::Plain => {
            let items = json!({"type": ["string", "number", "boolean"]});
            json!({"type": ["string", "number", "boolean", "array"], "items": items})
        }
        ValueType::File => json!({
            "type": "object",
            "description": "",
            "properties": {"file": {
                "type": "string",
                "description": "The path, relative to the manifest folder.",
                "minLength": 1,
                "examples": ["avatars/shop.png"],
            }},
            "additionalProperties": false,
            "required": ["file"],
        }),
        ValueType::Level => {
            access_level_schema(field, schema::inline_schema::<AccessLevel>().to_value())
        }
        ValueType::RuleLevel => level::rule_level_schema().to_value(),
        ValueType::Mapping | ValueType::Spread => make_row_schema(),
        ValueType::Rows => {
            // The description of the list already describes a row.
            let mut row = make_row_schema();
            row.as_object_mut().map(|row| row.shift_remove("description"));
            json!({"type": "array", "items": row})
        }
        ValueType::Grants | ValueType::Approvals | ValueType::LevelGrants => {
            let mut row = make_row_schema();
            row["properties"]["access_level"] =
                access_level_schema(field, row["properties"]["access_level"].take());
            let min_items = u8::from(field.value_type != ValueType::Approvals);
            json!({"type": "array", "items": row, "minItems": min_items})
        }
    }
}

/// The aliases of a field or section; `None` if it has none.
fn alias_list(names: &[&str]) -> Option<Json> {
    (!names.is_empty()).then(|| json!(names))
}

/// Adds the keywords that have a value to `schema`.
fn add_keywords(
    schema: &mut Json,
    keywords: impl IntoIterator<Item = (&'static str, Option<Json>)>,
) {
    for (key, value) in keywords {
        if let Some(value) = value {
            schema[key] = value;
        }
    }
}

/// The schema `level_schema` of access levels, without the general list of levels if the field lists its own words.
fn access_level_schema(field: &Field, mut level_schema: Json) -> Json {
    if let Some(keywords) = level_schema.as_object_mut().filter(|_| !field.words.is_empty()) {
        keywords.retain(|key, _| key != "anyOf" && key != "examples");
        keywords.insert("type".to_owned(), "string".into());
    }
    level_schema
}
