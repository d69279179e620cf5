//! The published schemas are valid, describe every field, and accept what undrift accepts. The test
//! of `undrift schema --check` compares the files in `schemas/`.

use serde_json::{Value, json};
use undrift::manifest::schema::{self, DocumentKind};

use super::corpus::cases;

fn published() -> [(&'static str, Value); 2] {
    [
        ("manifest.schema.json", schema::manifest_schema()),
        ("undrift.schema.json", schema::config_schema()),
    ]
}

#[test]
fn published_schemas_are_valid() {
    for (name, schema) in published() {
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        assert!(jsonschema::validator_for(&schema).is_ok(), "{name}");
    }
}

#[test]
fn an_editor_accepts_what_undrift_accepts() {
    let validator = jsonschema::validator_for(&schema::manifest_schema()).unwrap();
    let names = ["good", "good-anchors", "good-group", "good-acknowledge"];
    for case in cases().into_iter().filter(|case| names.contains(&case.name.as_str())) {
        let name = &case.name;
        let parsed = undrift::yaml::parse(&case.files[0].1);
        for document in parsed
            .documents
            .iter()
            .map(undrift::yaml::Node::to_json)
            .filter(|document| !document.is_null())
        {
            let errors: Vec<_> =
                validator.iter_errors(&document).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{name}: {errors:?}");
        }
    }
    for accepted in [
        json!({"kind": "Group", "path": "acme"}),
        json!({
            "kind": "Group", "path": "acme",
            "members": [{"user": "alice", "access_level": "owner"}], "unlisted": {"members": "fail"},
        }),
    ] {
        assert!(validator.is_valid(&accepted), "{accepted}");
    }
    for refused in [
        json!({}),
        json!({"kind": "Projct"}),
        json!({"kind": "Project"}),
        json!({"kind": "Project", "path": "a/b", "x": 1}),
        json!({"kind": "Project", "path": "a/b", "variables": [{"value": "x"}]}),
        json!({"kind": "Project", "path": "a/b", "members": [{"state": "absent"}]}),
        json!({"kind": "Group", "path": "a", "archived": true}),
        json!({"kind": "Acknowledge", "guard": "removals"}),
        json!({"kind": "Acknowledge", "guard": "removal", "at": "a/b"}),
        json!({"kind": "Acknowledge", "guard": "removals", "at": "a/b", "path": "a/b"}),
        json!({"kind": "Group"}),
        json!({"kind": "Group", "path": "a", "settings": {"archived": true}}),
        json!({"kind": "Group", "path": "a", "unlisted": {"protected_tags": "fail"}}),
    ] {
        assert!(!validator.is_valid(&refused), "{refused}");
    }
}

#[test]
fn every_field_is_described() {
    fn undescribed(path: &str, schema: &Value, found: &mut Vec<String>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}/{name}");
            if !property["description"].is_string() {
                found.push(path.clone());
            }
            undescribed(&path, property, found);
            undescribed(&path, &property["items"], found);
        }
    }
    let mut found = Vec::new();
    for kind in DocumentKind::ALL {
        undescribed(kind.name(), &kind.schema(), &mut found);
    }
    undescribed("", &schema::config_schema(), &mut found);
    assert_eq!(found, [""; 0]);
}

#[test]
fn every_description_has_a_markdown_form() {
    fn bare(path: &str, schema: &Value, found: &mut Vec<String>) {
        let described = schema["description"].is_string();
        if described != schema["markdownDescription"].is_string() {
            found.push(path.to_owned());
        }
        let parts = schema.as_object().into_iter().flatten();
        for (name, part) in parts {
            bare(&format!("{path}/{name}"), part, found);
        }
        for (index, part) in schema.as_array().into_iter().flatten().enumerate() {
            bare(&format!("{path}/{index}"), part, found);
        }
    }
    for (name, schema) in published() {
        let mut found = Vec::new();
        bare(name, &schema, &mut found);
        // `properties` may contain a property of this name.
        found.retain(|path| !path.ends_with("/properties"));
        assert_eq!(found, [""; 0]);
    }
    let variables = &schema::manifest_schema()["$defs"]["Project"]["settings"]["properties"];
    let field = &variables["tag_list"]["markdownDescription"];
    assert_eq!(field, "The old name of `topics`.\n\n*deprecated: use `topics`.*");
}
