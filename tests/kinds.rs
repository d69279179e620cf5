//! What holds for every kind, whatever it is.

use serde::Deserialize as _;
use serde_json::json;
use undrift::{
    field::{Accepted, Field, KEYWORD, Route, Secrecy},
    kind::{Shape, Source, Spec, Table, Target},
    kinds::{KINDS, of_section, settings::create_table},
    value::{Fields, Json, Object, Value},
};

fn tables() -> impl Iterator<Item = (&'static str, &'static Table)> {
    KINDS.iter().map(|kind| (kind.section(), kind.table())).chain([("create", create_table())])
}

/// Every schema with an object's properties below `schema`, itself first.
fn objects(schema: &Json) -> Vec<&Json> {
    let nested = match schema {
        Json::Object(map) => map.values().flat_map(objects).collect(),
        Json::Array(list) => list.iter().flat_map(objects).collect(),
        _ => Vec::new(),
    };
    let own = schema.get("properties").is_some_and(Json::is_object).then_some(schema);
    own.into_iter().chain(nested).collect()
}

#[test]
fn the_sections_are_these_in_this_order() {
    let sections: Vec<_> = KINDS.iter().map(|kind| kind.section()).collect();
    assert_eq!(sections, ["settings", "variables", "members", "hooks", "push_rule", "archived"]);
    assert!(KINDS.iter().all(|kind| of_section(kind.section()).is_some_and(|found| found.noun() == kind.noun())));
    assert!(of_section("setting").is_none());
}

#[test]
fn every_kind_is_whole() {
    let target = Target { path: "acme/shop".into(), id: None, namespace: None };
    for kind in KINDS {
        let (section, table) = (kind.section(), kind.table());
        for name in kind.identity().iter().chain(kind.required()) {
            assert!(table.get(name).is_some(), "{section}.{name}");
        }
        assert_eq!(kind.identity().is_empty(), kind.shape() != Shape::List, "{section}");
        let path = match kind.source(&target) {
            Source::Project => continue,
            Source::List(request) | Source::Optional(request) => request.path(),
        };
        assert!(path.starts_with("/projects/acme%2Fshop/"), "{path}");
    }
}

#[test]
fn every_treatment_is_sound() {
    for (section, table) in tables() {
        for Spec { name, field, schema } in table.specs() {
            let written = schema.get(KEYWORD).map(Field::deserialize);
            assert!(
                written.is_none_or(|parsed| parsed.is_ok_and(|parsed| parsed == *field)),
                "{section}.{name}"
            );
            if let Some(other) = &field.replaced_by {
                let other = table
                    .get(other)
                    .unwrap_or_else(|| panic!("{section}.{name} is replaced by nothing"));
                assert_ne!(
                    other.schema["deprecated"], true,
                    "{section}.{name} is replaced by what is deprecated"
                );
                assert_eq!(schema["deprecated"], true, "{section}.{name}");
            }
            let accepts_null =
                schema["type"].as_array().is_some_and(|types| types.contains(&json!("null")));
            assert_eq!(accepts_null, field.nullable, "{section}.{name}");
            if field.secrecy == Secrecy::Reference {
                assert!(
                    !jsonschema::is_valid(schema, &json!("text")),
                    "{section}.{name} takes a secret as text"
                );
                assert!(jsonschema::is_valid(schema, &json!({"env": "NAME"})), "{section}.{name}");
            }
        }
    }
}

#[test]
fn every_schema_is_valid_closed_described_and_true_to_its_examples() {
    for (section, table) in tables() {
        jsonschema::meta::validate(&table.schema).unwrap_or_else(|e| panic!("{section}: {e}"));
        assert!(
            table.schema["description"].as_str().is_some_and(|text| text.ends_with('.')),
            "{section}"
        );
        for object in objects(&table.schema) {
            assert_eq!(object["additionalProperties"], false, "{section}: {object}");
            let properties = object["properties"].as_object().unwrap();
            for (name, property) in properties {
                let at = format!("{section}.{name}");
                // A mapping of one key, such as a reference to a secret, may be described as a
                // whole.
                let whole = object.get("description").filter(|_| properties.len() == 1);
                let text = property
                    .get("description")
                    .or(whole)
                    .and_then(Json::as_str)
                    .unwrap_or_else(|| panic!("{at} is not described"));
                assert!(text.ends_with('.') && !text.contains('\n'), "{at}: {text}");
                for example in property["examples"].as_array().into_iter().flatten() {
                    assert!(jsonschema::is_valid(property, example), "{at}: {example}");
                }
                if let Some(names) = property["enum"].as_array() {
                    let texts = property["markdownEnumDescriptions"]
                        .as_array()
                        .unwrap_or_else(|| panic!("{at} has bare words"));
                    assert_eq!(names.len(), texts.len(), "{at}");
                    assert!(
                        texts
                            .iter()
                            .all(|text| text.as_str().is_some_and(|text| text.ends_with('.'))),
                        "{at}: {texts:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn levels_are_words_in_any_case_or_numbers() {
    let schema = &of_section("members").unwrap().table().get("access_level").unwrap().schema;
    for (level, valid) in [
        (json!("developer"), true),
        (json!("Developer"), true),
        (json!("MINIMAL_ACCESS"), true),
        (json!(5), true),
        (json!(50), true),
        (json!(0), false),
        (json!(35), false),
        (json!("40"), false),
        (json!("developers"), false),
        (json!("no_access"), false),
        (json!(null), false),
        (json!(true), false),
    ] {
        assert_eq!(jsonschema::is_valid(schema, &level), valid, "{level}");
    }
}

#[test]
fn limits_are_in_the_schema() {
    for (section, entry, valid) in [
        ("settings", json!({"build_timeout": 1}), true),
        ("settings", json!({"build_timeout": 0}), false),
        ("settings", json!({"ci_default_git_depth": 1000}), true),
        ("settings", json!({"ci_default_git_depth": 1001}), false),
        ("settings", json!({"approvals_before_merge": -1}), false),
        ("settings", json!({"topics": ["a", "a"]}), false),
        ("settings", json!({"auto_cancel_pending_pipelines": true}), false),
        ("settings", json!({"requirements_access_level": "public"}), false),
        ("settings", json!({"pages_access_level": "public"}), true),
        ("settings", json!({"avatar": "a.png"}), false),
        ("settings", json!({"avatar": {"file": "a.png"}}), true),
        ("settings", json!({"public_jobs": true}), false),
        ("settings", json!({"initialize_with_readme": true}), false),
        ("members", json!({"user": "a", "expires_at": "2099-1-1"}), false),
        ("members", json!({"access_level": "guest"}), false),
        ("hooks", json!({"name": "ci"}), false),
        ("push_rule", json!({}), false),
        ("push_rule", json!({"max_file_size": -1}), false),
        ("push_rule", json!({"file_name_regex": "x".repeat(511)}), true),
        ("push_rule", json!({"file_name_regex": "x".repeat(512)}), false),
    ] {
        let schema = &of_section(section).unwrap().table().schema;
        assert_eq!(jsonschema::is_valid(schema, &entry), valid, "{section}: {entry}");
    }
}

/// Values that a property takes, of every sort that it knows: all words of an enum, both booleans,
/// `null`, a mapping of everything.
fn samples(schema: &Json) -> Vec<Json> {
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().flat_map(samples).collect();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.clone();
    }
    let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    let of_type = |kind: &Json| match kind.as_str() {
        Some("null") => vec![json!(null)],
        Some("boolean") => vec![json!(false), json!(true)],
        Some("integer") => vec![schema.get("minimum").cloned().unwrap_or(json!(0)), json!(20)],
        Some("array") => vec![json!([]), json!(["b", "a"])],
        Some("object") => {
            let of = |property: &Json| samples(property).into_iter().next();
            let properties = schema["properties"].as_object().into_iter().flatten();
            vec![
                properties
                    .filter_map(|(name, property)| Some((name.clone(), of(property)?)))
                    .collect::<Object>()
                    .into(),
            ]
        }
        _ => schema["examples"].as_array().cloned().unwrap_or_else(|| vec![json!("text")]),
    };
    types.iter().flat_map(of_type).filter(|sample| jsonschema::is_valid(schema, sample)).collect()
}

/// What a service that keeps what it is sent answers, under the names of its answers; text that is
/// empty comes back as `null`.
fn echo(table: &Table, body: &Fields, absent: &Json) -> Object {
    let live = |(sent, value): (&String, &Value)| {
        let spec = table.specs().iter().find(|spec| spec.field.sent_name(&spec.name) == sent)?;
        let value = if *value == Value::from("") { absent.clone() } else { value.plain()?.clone() };
        Some((spec.field.live_name(&spec.name)?.to_owned(), value))
    };
    body.iter().filter_map(live).collect()
}

#[test]
fn what_was_sent_reads_back_as_what_was_declared() {
    let mut compared = 0;
    for kind in KINDS {
        let table = kind.table();
        for spec in table.specs().iter().filter(|spec| spec.field.accepted != Accepted::Never) {
            for sample in samples(&spec.schema) {
                let mut value = Value::Plain(sample);
                kind.normalise(&spec.name, &mut value);
                let declared = Fields::from([(spec.name.clone(), value.clone())]);
                for absent in [json!(null), json!("")] {
                    let raw = echo(table, &kind.body(&declared, Route::Edit), &absent);
                    let live = kind.read(&raw, &|name| name == spec.name);
                    let Some(live) = live.fields.get(&spec.name) else { continue };
                    compared += 1;
                    assert!(
                        kind.same(&spec.name, value.plain().unwrap(), live),
                        "{}.{}: {value:?} {live}",
                        kind.section(),
                        spec.name
                    );
                }
            }
        }
    }
    assert!(compared > 2 * 250, "only {compared}");
}

#[test]
fn a_live_object_without_a_field_does_not_say_anything_about_it() {
    for kind in KINDS {
        assert!(kind.read(&Object::new(), &|_| true).fields.is_empty(), "{}", kind.section());
    }
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/fields.md");
    let page = undrift::manifest::schema::reference();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "schemas/fields.md is out of date: run `UPDATE_SNAPSHOTS=1 cargo test --test kinds`"
    );
}
