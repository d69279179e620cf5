//! Tests of documents with several paths.

use proptest::prelude::*;

use super::{properties::documents, *};
use crate::{desired::declared_values, value::Object};

/// The declarations of `documents`, together with rules and acknowledgements.
fn load_documents(documents: &[Json]) -> Desired {
    let other_documents =
        self::documents().into_iter().filter(|document| document["kind"] != "Project");
    let texts = other_documents
        .chain(documents.iter().cloned())
        .map(|document| format!("---\n{document}\n"));
    let loaded = load_files(&[("a.yaml", &texts.collect::<String>())]);
    let faults = loaded.diagnostics.render(TextStyle::default());
    loaded.desired.unwrap_or_else(|| panic!("{faults}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn moving_projects_into_paths_changes_nothing(
        body in 0..4_usize,
        has_rules in any::<bool>(),
        at_paths in prop::collection::vec((any::<bool>(), 0..4_u8), 1..6),
    ) {
        let mut body = documents()[body].clone();
        let body = body.as_object_mut().unwrap();
        body.shift_remove("path");
        body.insert("params".into(), json!({"name_of": "shared", "port": 5}));
        let top_group = if has_rules { "acme" } else { "elsewhere" };
        let (mut separate_documents, mut paths) = (Vec::new(), Object::new());
        for (index, (is_moved, port)) in at_paths.iter().enumerate() {
            let path = format!("{top_group}/p{index}");
            let mut project = body.clone();
            project.insert("path".into(), json!(path));
            let mut path_fields = Object::new();
            if *is_moved {
                let former_paths = json!([format!("{top_group}/former{index}")]);
                project.insert("previously".into(), former_paths.clone());
                path_fields.insert("previously".into(), former_paths);
            }
            if *port > 0 {
                project["params"]["port"] = json!(port);
                path_fields.insert("port".into(), json!(port));
            }
            separate_documents.push(Json::Object(project));
            let is_empty = path_fields.is_empty();
            paths.insert(path, if is_empty { Json::Null } else { path_fields.into() });
        }
        let is_list = paths.values().all(Json::is_null);
        let names: Json = paths.keys().map(String::as_str).collect();
        let mut shared_document = body.clone();
        shared_document.insert("paths".into(), if is_list { names } else { paths.into() });
        let [separate, joined] = [load_documents(&separate_documents), load_documents(&[shared_document.into()])];
        prop_assert_eq!(desired_json(&separate), desired_json(&joined));
        for (one, other) in separate.containers.iter().zip(&joined.containers) {
            prop_assert_eq!(declared_values(one), declared_values(other));
            prop_assert!(one.former_paths().eq(other.former_paths()));
        }
    }
}

#[test]
fn origins_are_in_the_body_and_at_the_path() {
    let text = "\
kind: Project
paths:
  acme/a: {port: 1}
  acme/b:
    previously: [acme/old]
params: {port: 2}
settings: {description: {text: '{port}'}}
";
    let containers = containers(text);
    let positions: Vec<_> = containers
        .iter()
        .map(|container| (container.origin.line, container.origin.column))
        .collect();
    assert_eq!(positions, [(3, 3), (4, 3)]);
    let descriptions =
        containers.iter().map(|container| container.setting("settings", "description").unwrap());
    let results: Vec<_> = descriptions.map(|field| (field.value, field.origin.line)).collect();
    assert_eq!(results, [("1".into(), 7), ("2".into(), 7)]);
    assert_eq!(containers[1].lifecycle.former_paths[0].origin.line, 5);
}

#[test]
fn a_fault_of_the_body_is_reported_once() {
    let project = |body: &str| format!("kind: Project\npaths: [acme/a, acme/b, acme/c]\n{body}");
    for (body, expected) in [
        ("variables: [{key: A B}]\n", &[("pattern", 3)][..]),
        ("variables: [{key: A}, {key: A}]\n", &[("duplicate-entry", 3)]),
        ("variables: [{key: A, value: {text: '{x}'}}]\n", &[("template", 3)]),
        ("unlisted: {hooks: delete}\n", &[("unlisted", 3)]),
        ("params: {port: 1}\n", &[("idle-rule", 3)]),
        ("settings: {import_url: 'https://h/x.git'}\n", &[("paths", 3)]),
        ("settings: {import_url: {env: URL}}\n", &[("paths", 3)]),
        ("settings: {import_url: {text: 'https://h/{name}.git'}}\n", &[]),
        ("settings: {import_url: {env: 'URL_{name}'}}\n", &[]),
    ] {
        assert_eq!(faults(&[("a.yaml", &project(body))]), expected, "{body}");
    }
}

#[test]
fn a_parameter_is_used_if_one_of_the_paths_uses_it() {
    let rule =
        "kind: Defaults\nmatch: {path: acme/a}\nvariables: [{key: A, value: {text: '{port}'}}]\n";
    let document = "kind: Project\npaths: [acme/a, acme/b]\nparams: {port: 1}\n";
    assert_eq!(faults(&[("a.yaml", document), ("b.yaml", rule)]), []);
}
