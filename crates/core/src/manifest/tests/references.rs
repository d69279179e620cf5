//! Tests that a value that looks like a reference to a secret is a reference or an error. Also
//! tests that templates never give two groups or projects the same secret.

use super::*;
use crate::{
    catalogue,
    field::Scope,
    kind::{Section, Shape},
    secret::has_reference,
    value::Value,
};

/// Bodies of documents, with `SECRET` where a reference is inserted.
const BODY_TEMPLATES: &[&str] = &[
    "variables: [{key: T, value: SECRET}]",
    "params: {t: SECRET}\nvariables: [{key: T, value: {text: '{t}'}}]",
    "params: {t: SECRET}\nvariables: [{key: T, value: {text: 'https://bot:{t}@h.example.org/'}}]",
    "params: {t: SECRET}\nhooks: [{url: {text: 'https://h.example.org/{t}'}}]",
    "params: {t: SECRET}\nremote_mirrors: [{url: {text: 'https://bot:{t}@h.example.org/a.git'}}]",
    "hooks: [{url: 'https://h.example.org/', token: SECRET}]",
    "hooks: [{url: 'https://h.example.org/', extra: {new_field: SECRET}}]",
    "hooks: [{url: 'https://h.example.org/', extra: {new_field: [{a: {b: SECRET}}]}}]",
    "params: {t: SECRET}\nsettings: {extra: {new_field: {a: {text: 'b{t}'}}}}",
    "settings: {import_url: SECRET}",
    "integrations: [{slug: slack, webhook: SECRET}]",
    "pipeline_schedule_variables: [{schedule: n, key: T, value: SECRET}]",
];

/// The messages about projects that would share a secret.
fn sharing_messages(
    paths: [&str; 2],
    body_template: &str,
    secret: &str,
    has_profile: bool,
) -> Vec<String> {
    let body = body_template.replace("SECRET", secret);
    let rule = match has_profile {
        true => format!(
            "kind: Defaults\nmatch: {{path: '**'}}\nuses: [p]\n---\nkind: Profile\nname: p\n{body}\n"
        ),
        false => format!("kind: Defaults\nmatch: {{path: '**'}}\n{body}\n"),
    };
    let projects = paths.map(|path| {
        let stage = path.rsplit('/').next().unwrap_or_default();
        format!("---\nkind: Project\npath: {path}\nparams: {{stage: '{stage}', same: s}}\n")
    });
    let loaded = load_files(&[("a.yaml", &(rule + &projects.concat()))]);
    let messages: Vec<_> =
        loaded.diagnostics.sorted().into_iter().map(|fault| fault.message.clone()).collect();
    messages.into_iter().filter(|message| message.contains("would be shared by")).collect()
}

#[test]
fn two_projects_never_get_one_secret() {
    for (template, paths, is_shared) in [
        ("{env: 'D_{name}'}", ["acme/a-b", "acme/a.b"], true),
        ("{env: 'D_{path}'}", ["acme/a-b", "acme/a.b"], true),
        ("{env: 'D_{path}'}", ["acme-a/b", "acme/a-b"], true),
        ("{env: 'D_{path_slug}'}", ["acme/a_b", "acme/a.b"], true),
        ("{env: 'D_{group}'}", ["a-b/x", "a.b/y"], true),
        ("{env: 'D_{stage}'}", ["acme/a-b", "acme/a.b"], true),
        ("{env: 'D_{name}'}", ["a/shop", "b/shop"], true),
        ("{env: 'D_{name}'}", ["acme/a-b", "acme/c"], false),
        ("{env: 'D_{group}'}", ["acme/a-b", "acme/a.b"], false),
        ("{env: 'D_{stage}'}", ["a/prod", "b/prod"], false),
        ("{env: 'D_{same}'}", ["acme/a-b", "acme/a.b"], false),
        ("{env: D}", ["acme/a-b", "acme/a.b"], false),
        ("{file: 's/{path_slug}'}", ["acme/a_b", "acme/a.b"], true),
        ("{file: 's/{name}'}", ["a/shop", "b/shop"], true),
        ("{file: 's/{name}'}", ["acme/a-b", "acme/a.b"], false),
        ("{file: 's/{group}'}", ["acme/a-b", "acme/a.b"], false),
    ] {
        for (body_template, has_profile) in
            BODY_TEMPLATES.iter().flat_map(|place| [(place, false), (place, true)])
        {
            let messages = sharing_messages(paths, body_template, template, has_profile);
            assert_eq!(
                !messages.is_empty(),
                is_shared,
                "{body_template}: {template}: {messages:?}"
            );
        }
    }
}

/// An example of each field that every entry must have.
fn example_fields(section: Section) -> serde_json::Map<String, Json> {
    let required_names = section.identity.iter().chain(section.required_fields);
    let example = |name: &&str| {
        let schema = &section.spec(name)?.schema;
        let secret = || {
            (schema["anyOf"].is_array() || schema["oneOf"].is_array())
                .then(|| json!({"env": "OTHER"}))
        };
        let example = schema["examples"].get(0).or(schema["enum"].get(0)).cloned();
        Some(((*name).to_owned(), example.or_else(secret)?))
    };
    required_names.filter_map(example).collect()
}

/// Values of `schema`, each with `mapping` at another place.
fn values_with_mapping(schema: &Json, mapping: &Json) -> Vec<Json> {
    let mut values = vec![mapping.clone(), json!([mapping])];
    for (is_list, properties) in
        [(false, &schema["properties"]), (true, &schema["items"]["properties"])]
    {
        for name in properties.as_object().into_iter().flat_map(|map| map.keys()) {
            for value in [mapping.clone(), json!([mapping])] {
                let mut row = serde_json::Map::new();
                for (other_name, property) in properties.as_object().into_iter().flatten() {
                    row.extend(
                        property["examples"]
                            .get(0)
                            .map(|example| (other_name.clone(), example.clone())),
                    );
                }
                row.insert(name.clone(), value);
                values.push(if is_list { json!([row]) } else { row.into() });
            }
        }
    }
    values
}

/// A document that declares `fields`.
fn document(kind: Section, fields: serde_json::Map<String, Json>) -> Json {
    let section = match kind.shape {
        Shape::List => json!([fields]),
        Shape::Container | Shape::Mapping => fields.into(),
        Shape::Switch => fields.into_iter().next().map(|(_, value)| value).unwrap_or_default(),
    };
    let path = kind.scoped_kind.scope.choose("acme", "acme/shop");
    json!({"kind": kind.scoped_kind.scope.document_kind(), "path": path, kind.section: section})
}

/// Writes a mapping that looks like a reference into every field of every kind, and into a field
/// below `extra:`.
#[test]
fn a_mapping_like_a_reference_is_one_or_an_error() {
    let (mut secret_count, mut refused_count) = (0, 0);
    let mappings =
        [json!({"env": "NAME"}), json!({"file": "a.png"}), json!({"text": "a{env:NAME}"})];
    for kind in Scope::ALL.into_iter().flat_map(catalogue::sections) {
        let empty_schema = json!({});
        let extra = (kind.shape != Shape::Switch).then_some(("extra", &empty_schema));
        let kind_fields = kind.specs().iter().map(|spec| (spec.name, &spec.schema));
        for ((name, schema), mapping) in kind_fields
            .chain(extra)
            .flat_map(|field| mappings.iter().map(move |mapping| (field, mapping)))
        {
            for value in values_with_mapping(schema, mapping) {
                let mut fields = example_fields(kind);
                match name.split_once('.') {
                    _ if name == "extra" => {
                        fields.insert("extra".into(), json!({"new_field": value}))
                    }
                    Some((outer, inner)) => fields.insert(outer.into(), json!({inner: value})),
                    None => fields.insert(name.into(), value),
                };
                let text = document(kind, fields).to_string();
                let loaded = load_files(&[("a.yaml", &text)]);
                let Some(desired) = loaded.desired else {
                    refused_count += 1;
                    continue;
                };
                secret_count += 1;
                let container = &desired.containers[0];
                let entries = container.sections.iter().flat_map(|section| &section.entries);
                let field_lists = entries
                    .map(|entry| &entry.fields)
                    .chain(container.creation_policy.create_fields());
                let values =
                    field_lists.flat_map(|fields| fields.iter().map(|(_, field)| field.value));
                let is_sent = |value: &Value| value.plain_json().is_some_and(has_reference);
                assert!(!values.into_iter().any(|value| is_sent(&value)), "{text}");
            }
        }
    }
    assert!(secret_count > 200 && refused_count > 500, "{secret_count} {refused_count}");
}

/// Below `extra:`, no schema describes the value.
#[test]
fn a_malformed_reference_below_extra_is_an_error() {
    for (value, is_wrong) in [
        ("{env: [X]}", true),
        ("{env: X, z: 1}", true),
        ("{env: X, file: y}", true),
        ("{file: {a: b}}", true),
        ("[{a: {env: X, z: 1}}]", true),
        ("{text: '{name}', q: 1}", true),
        ("{text: ['{name}']}", true),
        ("{text: plain, q: 1}", false),
        ("{text: [plain]}", false),
        ("{environment: X, files: [a]}", false),
        ("{env: X}", false),
    ] {
        let body = format!("hooks: [{{url: 'https://h.example.org/', extra: {{a: {value}}}}}]");
        for head in ["kind: Project\npath: a/b", "kind: Defaults\nmatch: {path: '**'}"] {
            let mut reference_faults = faults(&[("a.yaml", &format!("{head}\n{body}\n"))]);
            reference_faults.retain(|(code, _)| *code == "reference");
            assert_eq!(
                reference_faults,
                vec![("reference", 3); usize::from(is_wrong)],
                "{head} {value}"
            );
        }
    }
}
