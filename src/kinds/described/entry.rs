//! The schema of an entry, and how the service treats its fields, made from a description.

use serde_json::json;

use super::description::{Description, Field, Home, Value};
use crate::{
    field::{
        self, Accepted, Codec, Compare, KEYWORD, Limits, Named, Readback, Scope, Secrecy, Stake,
    },
    kind::{CRON, TIME_ZONE},
    kinds::protected_branch::{Approval, Grant, PushGrant},
    level::Level,
    schema::{self, TextOrSecret},
    secret::Reference,
    value::{Json, Object},
};

/// The schema of an entry of `home`, which is in `scope`.
pub(super) fn schema(description: &Description, home: &Home, scope: Scope) -> Json {
    let of = |field: &Field| {
        let field = &Field { since: field.since.or(home.since), ..field.clone() };
        let mut property = property(field);
        if description.below.as_ref().is_some_and(|below| below.field == field.name) {
            // The path contains the id of the parent.
            let never = field::Field { accepted: Accepted::Never, ..treatment(field) };
            property[KEYWORD] = json!(never);
        }
        if home.top_level {
            property[KEYWORD]["top_level"] = true.into();
        }
        (field.name.clone(), property)
    };
    let is_here = |field: &&Field| field.only.is_none_or(|only| only == scope);
    let properties: Object = description.fields.iter().filter(is_here).map(of).collect();
    let mut schema = json!({
        "description": description.about,
        "type": "object",
        "properties": properties,
        "required": description.always_named().collect::<Vec<_>>(),
        "additionalProperties": false,
    });
    if description.document {
        schema["minProperties"] = 1.into();
    }
    schema
}

/// The schema of a field.
pub(in crate::kinds) fn property(field: &Field) -> Json {
    let mut property = match field.value {
        Value::Secret => schema::of::<Reference>().to_value(),
        Value::Address => schema::of::<TextOrSecret>().to_value(),
        Value::Text if field.sensitive => schema::of::<TextOrSecret>().to_value(),
        Value::Text if field.names == Some(Named::Runner) => {
            json!({"type": ["string", "integer"], "minLength": 1, "minimum": 1})
        }
        Value::Text | Value::Word => json!({"type": "string"}),
        Value::Cron => json!({"type": "string", "format": CRON}),
        Value::TimeZone => json!({"type": "string", "format": TIME_ZONE}),
        Value::Date => {
            json!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "format": "date"})
        }
        Value::Integer => json!({"type": "integer"}),
        Value::Boolean => json!({"type": "boolean"}),
        Value::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Value::Level => level(field, schema::of::<Level>().to_value()),
        Value::Grants | Value::Approvals => {
            let is_needed = field.value == Value::Grants;
            let mut row = match field.deploy_keys {
                _ if !is_needed => schema::of::<Approval>().to_value(),
                true => schema::of::<PushGrant>().to_value(),
                false => schema::of::<Grant>().to_value(),
            };
            row["properties"]["access_level"] =
                level(field, row["properties"]["access_level"].take());
            json!({"type": "array", "items": row, "minItems": u8::from(is_needed), "examples": [[{"access_level": "maintainer"}]]})
        }
    };
    if field.nullable {
        match property.get_mut("anyOf").and_then(Json::as_array_mut) {
            Some(any) => any.push(json!({"type": "null"})),
            None => property["type"] = json!([property["type"], "null"]),
        }
    }
    property["description"] = json!(field.about);
    if !field.words.is_empty() {
        let worded = match field.value {
            Value::Grants | Value::Approvals => {
                &mut property["items"]["properties"]["access_level"]
            }
            _ => &mut property,
        };
        worded["enum"] = field.words.iter().map(|word| &*word.word).collect();
        worded["markdownEnumDescriptions"] = field.words.iter().map(|word| &*word.about).collect();
    }
    let examples = [&field.example, &field.another_example].into_iter().flatten();
    let examples: Vec<_> = examples.map(|example| example.0.clone()).collect();
    let limits = [
        ("pattern", field.pattern.as_ref().map(|pattern| json!(pattern))),
        ("minimum", field.minimum.map(Json::from)),
        ("maximum", field.maximum.map(Json::from)),
        ("examples", (!examples.is_empty()).then(|| examples.into())),
    ];
    for (key, value) in limits {
        if let Some(value) = value {
            property[key] = value;
        }
    }
    property[KEYWORD] = treatment(field).to_keyword();
    if let Some(property) = property.as_object_mut() {
        property.remove("$schema");
        property.remove("title");
    }
    property
}

/// The schema of a level of access. The words of the field, if there are any, replace the list of
/// all levels.
fn level(field: &Field, mut all: Json) -> Json {
    if let Some(level) = all.as_object_mut().filter(|_| !field.words.is_empty()) {
        level.retain(|key, _| key != "anyOf" && key != "examples");
        level.insert("type".to_owned(), "string".into());
    }
    all
}

/// How the service treats a field.
fn treatment(field: &Field) -> field::Field {
    field::Field {
        accepted: if field.create_only { Accepted::OnCreate } else { Accepted::Always },
        read: match &field.read_as {
            _ if field.write_only || field.value == Value::Secret => Readback::Never,
            Some(name) => Readback::As(name.clone().into()),
            // Where requests contain the id, responses do too.
            None if field.names.is_some() => {
                Readback::As(field.send_as.clone().unwrap_or_else(|| field.name.clone()).into())
            }
            None => Readback::Same,
        },
        compare: match field.value {
            Value::Grants | Value::Approvals => Compare::Rows,
            _ => field.compare,
        },
        single_level_as: field.single_level_as.clone().map(Into::into),
        send_as: field.send_as.clone().map(Into::into),
        names: field.names,
        tier: field.tier,
        since: field.since,
        until: field.until,
        nullable: field.nullable,
        secrecy: match field.value {
            Value::Secret => Secrecy::Reference,
            Value::Address => Secrecy::Address,
            _ if field.sensitive => Secrecy::Sensitive,
            _ => Secrecy::Open,
        },
        with_every_edit: field.with_every_edit,
        reset_by: field.reset_by.clone().map(Into::into),
        preset: field.preset.as_ref().map(|value| value.0.clone()),
        created_with: field.created_with.as_ref().map(|value| value.0.clone()),
        not_with: field.not_with.clone().map(Into::into),
        not_before: field.not_before.clone().map(Into::into),
        unique_above: field.unique_above,
        unique: field.unique,
        shared: field.shared,
        starts_with_path: field.starts_with_path,
        expression: field.expression,
        trimmed: field.trimmed,
        only: field.only,
        stake: match field.value {
            Value::Level => Stake::Access,
            _ => field.into(),
        },
        codec: match field.value {
            Value::Level => Codec::Level,
            _ if field.nested => Codec::Nested,
            _ => Codec::Same,
        },
        limits: field
            .limits
            .as_ref()
            .map(|switch| Limits { switch: switch.clone().into(), required: false }),
        ..field::Field::default()
    }
}
