//! The schema of an entry, and how the service treats its fields, made from a description.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::json;

use crate::{
    field::{
        self, Accepted, Codec, Compare, KEYWORD, Limits, Named, Readback, Scope, Secrecy, Stake,
    },
    kind::{
        CRON, Home, Kind, Place, TIME_ZONE,
        description::{Field, Keys, Scalar, Value, Word},
    },
    level::{Level, RuleLevel},
    schema::{self, TextOrSecret},
    secret::Reference,
    value::{Json, Object},
    yaml,
};

/// The rows of lists of grants and approvals, by name.
static ROWS: LazyLock<BTreeMap<String, Keys>> =
    LazyLock::new(|| yaml::built_in(include_str!("../grants.yaml")));

impl Field {
    /// Whether `scope` has it.
    pub fn is_in(&self, scope: Scope) -> bool {
        self.only.is_none_or(|only| only == scope)
    }
}

impl Keys {
    fn schema(&self) -> Json {
        let properties = self.fields.iter().map(|field| (field.name.clone(), property(field)));
        let properties: Object = properties.collect();
        debug_assert_eq!(properties.len(), self.fields.len(), "each name is used once");
        let always = self.fields.iter().filter(|field| field.always).map(|field| &*field.name);
        let mut schema = object(&self.about, properties, always);
        for (key, number) in [("minProperties", self.min_keys), ("maxProperties", self.max_keys)] {
            if let Some(number) = number {
                schema[key] = number.into();
            }
        }
        schema
    }
}

/// The schema of a mapping with these keys only.
fn object<'n>(about: &str, properties: Object, required: impl Iterator<Item = &'n str>) -> Json {
    let mut object = json!({
        "description": about,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    let required: Vec<_> = required.collect();
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// The schema of an entry of `home`, which is in `scope`.
pub(super) fn schema(kind: &Kind, home: &Home, scope: Scope) -> Json {
    let of = |field: &Field| {
        let mut property = match home.since.filter(|_| field.since.is_none()) {
            Some(since) => property(&Field { since: Some(since), ..field.clone() }),
            None => property(field),
        };
        if kind.below.is_some_and(|below| below.field == field.name) {
            // The path contains the id of the parent.
            let never = field::Field { accepted: Accepted::Never, ..treatment(field) };
            property[KEYWORD] = json!(never);
        }
        if home.top_level {
            property[KEYWORD]["top_level"] = true.into();
        }
        let is_of_people = matches!(field.value, Value::Grants | Value::Approvals);
        if is_of_people && kind.hooks.is_none() {
            property["examples"] = json!([[{"access_level": "maintainer"}]]);
        }
        (field.name.clone(), property)
    };
    if kind.fields.is_empty() {
        return json!({"type": "object", "properties": {}});
    }
    let here = || kind.fields.iter().filter(|field| field.is_in(scope));
    // Kinds with rules in Rust mark the fields, because an entry may lack a part of its identity.
    let marked: Vec<_> = here().filter(|field| field.always).map(|field| &*field.name).collect();
    let always = if marked.is_empty() { kind.always_named().collect() } else { marked };
    let mut schema = object(kind.about, here().map(of).collect(), always.into_iter());
    if matches!(home.place, Place::Optional(_)) {
        schema["minProperties"] = 1.into();
    }
    schema
}

/// The name of `field` in responses, if they contain it.
pub(super) fn live_name(field: &Field) -> Option<&'static str> {
    let name = treatment(field).live_name(&field.name)?.to_owned();
    Some(String::leak(name))
}

/// Whether every release and licence that has `home` also shows `field`.
pub(super) fn is_always_shown(field: &Field, home: &Home) -> bool {
    let since = field.since.or(home.since);
    let of = field::Field { since, ..treatment(field) };
    field.tier <= home.tier && !of.is_late()
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
        Value::Texts | Value::Addresses => json!({"type": "array", "items": {"type": "string"}}),
        Value::Plain => {
            let items = json!({"type": ["string", "number", "boolean"]});
            json!({"type": ["string", "number", "boolean", "array"], "items": items})
        }
        Value::File => {
            let path = json!({
                "type": "string",
                "description": "The path, relative to the manifest folder.",
                "minLength": 1,
                "examples": ["avatars/shop.png"],
                KEYWORD: {},
            });
            object("", [("file".to_owned(), path)].into_iter().collect(), ["file"].into_iter())
        }
        Value::Level => level(field, schema::of::<Level>().to_value()),
        Value::RuleLevel => schema::of::<RuleLevel>().to_value(),
        Value::Mapping => keys(field),
        Value::Rows => json!({"type": "array", "items": keys(field)}),
        Value::Grants | Value::Approvals | Value::LevelGrants => {
            let name = match field.value {
                Value::Approvals => "approvals",
                Value::LevelGrants => "levels",
                _ if field.deploy_keys => "grants_with_deploy_keys",
                _ => "grants",
            };
            let mut row = ROWS[name].schema();
            row["properties"]["access_level"] =
                level(field, row["properties"]["access_level"].take());
            let fewest = u8::from(field.value != Value::Approvals);
            json!({"type": "array", "items": row, "minItems": fewest})
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
    let of_text = [
        ("minLength", field.min_length.map(Json::from)),
        ("maxLength", field.max_length.map(Json::from)),
        ("pattern", field.pattern.as_ref().map(|pattern| json!(pattern))),
    ];
    let limits = [
        ("minimum", field.minimum.map(Json::from)),
        ("maximum", field.maximum.map(Json::from)),
        ("minItems", field.min_items.map(Json::from)),
        ("maxItems", field.max_items.map(Json::from)),
        ("uniqueItems", (field.compare == Compare::Topics).then_some(true.into())),
        ("enum", (!field.numbers.is_empty()).then(|| json!(field.numbers))),
        ("default", field.default.as_ref().map(|value| value.0.clone())),
        ("examples", (!examples.is_empty()).then(|| examples.into())),
        ("deprecated", (field.deprecated || field.replaced_by.is_some()).then_some(true.into())),
    ];
    let text = match field.value {
        Value::Texts | Value::Addresses => &mut property["items"],
        _ => &mut property,
    };
    add(text, of_text);
    add(&mut property, limits);
    property[KEYWORD] = treatment(field).to_keyword();
    if let Some(property) = property.as_object_mut() {
        property.remove("$schema");
        property.remove("title");
    }
    property
}

/// The schema of the mapping, or of a row, that `field` consists of.
fn keys(field: &Field) -> Json {
    field.keys.as_ref().map(Keys::schema).unwrap_or_default()
}

/// Adds those `limits` to `schema` that are set.
fn add(schema: &mut Json, limits: impl IntoIterator<Item = (&'static str, Option<Json>)>) {
    for (key, value) in limits {
        if let Some(value) = value {
            schema[key] = value;
        }
    }
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
    let name = |name: &Option<String>| name.clone().map(Into::into);
    let value = |value: &Option<Scalar>| value.as_ref().map(|value| value.0.clone());
    let limited = |word: &&Word| word.since.is_some() || word.until.is_some();
    let word = |Word { word, since, until, .. }: &Word| field::Word {
        word: word.clone().into(),
        since: *since,
        until: *until,
    };
    field::Field {
        accepted: if field.create_only { Accepted::OnCreate } else { field.accepted },
        read: match &field.read_as {
            _ if field.write_only || field.value == Value::Secret => Readback::Never,
            _ if field.read_if_present => Readback::IfPresent,
            Some(name) if *name == field.name => Readback::Same,
            Some(name) => Readback::As(name.clone().into()),
            // Where requests contain the id, responses do too.
            None if field.names.is_some() => {
                Readback::As(field.send_as.clone().unwrap_or_else(|| field.name.clone()).into())
            }
            None => Readback::Same,
        },
        compare: match field.value {
            Value::Grants | Value::Approvals | Value::LevelGrants | Value::Rows => Compare::Rows,
            _ => field.compare,
        },
        single_level_as: name(&field.single_level_as),
        send_as: name(&field.send_as),
        names: field.names,
        names_entries: name(&field.names_entries),
        tier: field.tier,
        since: field.since,
        until: field.until,
        words: field.words.iter().filter(limited).map(word).collect(),
        local_before: field.local_before,
        replaced_by: name(&field.replaced_by),
        opposite: field.opposite,
        nullable: field.nullable,
        secrecy: match field.value {
            Value::Secret => Secrecy::Reference,
            Value::Address | Value::Addresses => Secrecy::Address,
            _ if field.sensitive => Secrecy::Sensitive,
            _ => Secrecy::Open,
        },
        administrators: field.administrators,
        upload: field.value == Value::File,
        with_every_edit: field.with_every_edit,
        reset_by: name(&field.reset_by),
        preset: value(&field.preset),
        created_with: value(&field.created_with),
        not_with: name(&field.not_with),
        not_before: name(&field.not_before),
        unique_above: field.unique_above,
        unique: field.unique,
        shared: field.shared,
        starts_with_path: field.starts_with_path,
        top_level: field.top_level,
        expression: field.expression,
        trimmed: field.trimmed,
        spread: field.spread,
        hidden_by: name(&field.hidden_by),
        stake: match field.value {
            Value::Level => Stake::Access,
            _ => field.into(),
        },
        codec: match field.value {
            Value::Level | Value::RuleLevel => Codec::Level,
            Value::Plain => Codec::Text,
            _ if field.nested => Codec::Nested,
            _ => Codec::Same,
        },
        limits: field
            .limits
            .as_ref()
            .map(|switch| Limits { switch: switch.clone().into(), required: field.limit_required }),
        needs: field.needs.clone(),
        at_most: name(&field.at_most),
        ascii_from: field.ascii_from,
    }
}
