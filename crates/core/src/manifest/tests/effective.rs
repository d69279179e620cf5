//! Tests of the document that shows merged layers: it names the origins, and declares the same
//! values.

use proptest::{prelude::*, sample::select};

use super::*;
use crate::{address::Glob, desired::EntryPresence};

/// Loads files, with a trace of all groups and projects.
fn load_traced(files: &[(&str, &str)]) -> LoadedManifests {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.png"), "").unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let any_path = [Glob::for_paths("**").unwrap()];
    load_with_options(
        folder.path(),
        &environment_in(folder.path()),
        &LoadOptions { traced_globs: &any_path, ..LoadOptions::default() },
    )
}

/// The declarations of valid files, and the merged documents as text.
fn load_merged(files: &[(&str, &str)]) -> (Option<Desired>, String) {
    let loaded = load_traced(files);
    let texts: Vec<_> = loaded.traces.iter().map(Trace::to_yaml).collect();
    (loaded.desired, texts.join("---\n"))
}

/// All declarations, without origins.
fn full_json(desired: &Desired) -> Json {
    let container_facts = desired.containers.iter().map(|container| {
        let unmanaged = container.sections.iter().flat_map(|section| &section.unmanaged_globs);
        let lifecycle = &container.lifecycle;
        json!({
            "watch": container.is_watched,
            "unmanaged": unmanaged.map(Glob::pattern).collect::<Vec<_>>(),
            "previously": container.former_paths().collect::<Vec<_>>(),
            "is_absent": lifecycle.state.as_ref().is_some_and(|state| state.value == EntryPresence::Absent),
            "undeclared": lifecycle.unlisted_projects.as_ref().map(|policy| policy.value.word()),
        })
    });
    json!([desired_json(desired), container_facts.collect::<Vec<_>>()])
}

const RULES: &str = "\
kind: Defaults
match: {path: acme/**}
params: {port: 8080}
uses: [service]
settings:
  merge_method: ff
  topics: [acme]
  container_expiration_policy: {enabled: true, keep_n: 5}
unlisted: {variables: fail}
---
kind: Profile
name: service
settings: {topics: {add: [service]}, container_expiration_policy: {cadence: 7d}}
variables:
  - {key: HEALTH_URL, value: {text: 'https://{name}.example.org:{port}/health'}}
  - {key: 'TF_*', state: unmanaged}
  - {key: TOKEN, value: {env: TOKEN}, masked: true}
";

const SHOP: &str = "\
kind: Project
path: acme/shop
create: true
settings:
  visibility: private
  merge_commit_template: |
    one

    two
  container_expiration_policy: {keep_n: 10}
variables:
  - {key: TOKEN, protected: true}
  - {key: PIN, value: long-enough-to-mask, masked: true}
  - {key: OLD, state: absent}
members: []
push_rule: null
archived: false
";

#[test]
fn each_value_shows_its_origin() {
    let (_, text) = load_merged(&[("rules.yaml", RULES), ("shop.yaml", SHOP)]);
    insta::assert_snapshot!(text, @r"
    kind: Project
    path: acme/shop                    # shop.yaml:2
    create: true                       # shop.yaml:3
    settings:
      visibility: private              # shop.yaml:5
      topics: [acme, service]          # rules.yaml:13 Profile service
      merge_method: ff                 # rules.yaml:6 Defaults acme/**
      merge_commit_template: |         # shop.yaml:6
        one

        two
      container_expiration_policy:
        cadence: 7d                    # rules.yaml:13 Profile service
        enabled: true                  # rules.yaml:8 Defaults acme/**
        keep_n: 10                     # shop.yaml:10
    variables:
      - {key: HEALTH_URL, value: https://shop.example.org:8080/health}  # rules.yaml:15 Profile service
      - {key: OLD, state: absent}      # shop.yaml:14
      # value: not shown: it may be a secret
      - {key: PIN, masked: true}       # shop.yaml:13
      - {key: TF_*, state: unmanaged}  # rules.yaml:16 Profile service
      - key: TOKEN                     # shop.yaml:12
        value: {env: TOKEN}            # rules.yaml:17 Profile service
        protected: true                # shop.yaml:12
        masked: true                   # rules.yaml:17 Profile service
    members: []                        # shop.yaml:15
    push_rule: null                    # shop.yaml:16
    archived: false                    # shop.yaml:17
    unlisted: {variables: fail}        # rules.yaml:9 Defaults acme/**
    ");
}

#[test]
fn masked_values_are_not_shown() {
    let (_, text) = load_merged(&[("rules.yaml", RULES), ("shop.yaml", SHOP)]);
    assert!(!text.contains("long-enough-to-mask"), "{text}");
}

/// The chain of each field, the highest layer first: the layer's name, the effect, and the value.
fn chain_lines(loaded: &LoadedManifests, section: &str, key: &str, names: &[&str]) -> Vec<String> {
    let trace = &loaded.traces[0];
    let section_kind = crate::catalogue::find_section(trace.scope(), section).unwrap();
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let links = trace.value_chain(section_kind, key, &names);
    let describe = |layer_value: &LayerValue| match layer_value {
        LayerValue::Value(value) => {
            value.plain_json().map_or_else(|| "secret".to_owned(), Json::to_string)
        }
        other => format!("{other:?}"),
    };
    links
        .iter()
        .map(|link| {
            format!("{} {:?} {}", link.layer.name, link.effect, describe(&link.traced_value.value))
        })
        .collect()
}

#[test]
fn a_chain_has_the_value_and_effect_of_each_layer() {
    let loaded = load_traced(&[("rules.yaml", RULES), ("shop.yaml", SHOP)]);
    assert_eq!(
        chain_lines(&loaded, "settings", "", &["topics"]),
        [r#"Profile service Decides {"add":["service"]}"#, r#"Defaults acme/** Extended ["acme"]"#]
    );
    assert_eq!(
        chain_lines(&loaded, "settings", "", &["container_expiration_policy", "keep_n"]),
        ["Project Decides 10", "Defaults acme/** Outranked 5"]
    );
    assert_eq!(
        chain_lines(&loaded, "variables", "TOKEN@*", &["value"]),
        ["Profile service Decides secret"]
    );
    assert_eq!(
        chain_lines(&loaded, "variables", "TOKEN@*", &[]),
        ["Project Decides Declared", "Profile service Decides Declared"]
    );
    let ignoring_document = SHOP.replace("settings:\n", "ignore_layers: [settings]\nsettings:\n");
    let loaded = load_traced(&[("rules.yaml", RULES), ("shop.yaml", &ignoring_document)]);
    assert_eq!(
        chain_lines(&loaded, "settings", "", &["merge_method"]),
        ["Project Decides Ignores", r#"Defaults acme/** Outranked "ff""#]
    );
}

#[test]
fn a_declared_entry_outranks_an_absent_or_unmanaged_one() {
    for state in ["absent", "unmanaged"] {
        let rules = format!("kind: Profile\nname: p\nvariables: [{{key: A, state: {state}}}]\n");
        let document =
            "kind: Project\npath: acme/shop\nuses: [p]\nvariables: [{key: A, value: x}]\n";
        let loaded = load_traced(&[("rules.yaml", &rules), ("shop.yaml", document)]);
        let lines = chain_lines(&loaded, "variables", "A@*", &[]);
        assert_eq!(lines[0], "Project Decides Declared");
        assert!(lines[1].starts_with("Profile p Outranked"), "{lines:?}");
    }
}

/// Checks for each declared field that a deciding link of its chain has the origin of the field.
fn assert_deciding_origins(loaded: &LoadedManifests) {
    let containers = loaded.desired.iter().flat_map(|desired| &desired.containers);
    for (container, trace) in containers.zip(&loaded.traces) {
        assert_eq!(&container.path, trace.path());
        for section in &container.sections {
            for entry in &section.entries {
                for (name, field) in entry.fields.iter() {
                    let links = trace.value_chain(section.kind, &entry.key, &[name.to_owned()]);
                    let mut deciding_links =
                        links.iter().filter(|link| link.effect == LayerEffect::Decides);
                    // A field of the identity may be omitted. It then has the default.
                    assert!(
                        deciding_links.any(|link| link.traced_value.origin == field.origin),
                        "{name} at {:?}: {links:?}",
                        field.origin
                    );
                }
            }
        }
    }
}

/// A layer, without the keys that select where it applies.
fn layer() -> impl Strategy<Value = Json> {
    let text = || prop::option::of(select(vec!["a", "no", "two\nlines\n", "{x}: # y", "12"]));
    let list = || prop::collection::btree_set(select(vec!["x", "y: z", "null"]), 1..3);
    let topics = prop_oneof![
        list().prop_map(|topics| json!(topics)),
        list().prop_map(|topics| json!({"add": topics})),
        list().prop_map(|topics| json!({"remove": topics})),
        list().prop_map(|topics| json!({"at_least": topics, "none_of": ["other"]})),
    ];
    let name_regex = prop::option::of(select(vec!["a", "no", "two\nlines\n", "12"]));
    let policy = (name_regex, prop::option::of(select(vec![1, 5])))
        .prop_map(|(name, keep_n)| prune(json!({"name_regex_keep": name, "keep_n": keep_n})));
    let settings = (text(), any::<bool>(), prop::option::of(topics), prop::option::of(policy));
    let settings = settings.prop_map(|(description, is_cleared, topics, policy)| {
        let mut settings = prune(json!({"description": description, "topics": topics, "container_expiration_policy": policy}));
        if is_cleared {
            settings["suggestion_commit_message"] = Json::Null;
        }
        settings
    });
    let value = prop_oneof![
        text().prop_map(|text| json!(text)),
        Just(json!({"env": "N"})),
        Just(json!({"text": "{name}:{{x}}"})),
    ];
    let variable = |key: &'static str| {
        let state = select(vec!["present", "present", "absent", "unmanaged"]);
        (state, value.clone(), prop::option::of(any::<bool>())).prop_map(
            move |(state, value, raw)| match state {
                "present" => prune(json!({"key": key, "value": value, "raw": raw})),
                "absent" => json!({"key": key, "environment_scope": "x", "state": state}),
                state => json!({"key": format!("{key}*"), "state": state}),
            },
        )
    };
    let variables = (prop::option::of(variable("A")), prop::option::of(variable("B")))
        .prop_map(|(a, b)| json!(a.into_iter().chain(b).collect::<Vec<_>>()));
    let hooks = select(vec![
        json!([]),
        json!([{"name": "n", "url": "https://h/x", "push_events": true}]),
        json!([{"url": {"env": "HOOK"}, "push_events": true}]),
        json!([{"name": "n", "url": "https://h/x", "token": {"file": "t"}, "extra": {"a.b": [1]}}]),
    ]);
    let push_rule = select(vec![Json::Null, json!({"max_file_size": 2})]);
    let create = select(vec![json!(true), json!(false), json!({"initialize_with_readme": true})]);
    let unlisted = select(vec![json!({"variables": "delete"}), json!({"variables": "ignore"})]);
    let ignores = prop::option::weighted(0.15, Just(json!(["settings"])));
    (
        prop::option::of(settings),
        variables,
        prop::option::of(hooks),
        prop::option::of(push_rule),
        prop::option::of(create),
        prop::option::weighted(0.3, unlisted),
        prop::option::weighted(0.2, any::<bool>()),
        ignores,
    )
        .prop_map(
            |(settings, variables, hooks, push_rule, create, unlisted, watch, ignores)| {
                let mut layer = prune(json!({
                    "settings": settings, "variables": variables, "hooks": hooks, "create": create,
                    "unlisted": unlisted, "watch": watch, "ignore_layers": ignores,
                }));
                if let Some(push_rule) = push_rule {
                    layer["push_rule"] = push_rule;
                }
                layer
            },
        )
}

/// `json` without the keys that are null.
fn prune(json: Json) -> Json {
    let object = json.as_object().unwrap().clone().into_iter();
    object.filter(|(_, value)| !value.is_null()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_merged_documents_declare_the_same_without_rules(layers in prop::collection::vec(layer(), 6)) {
        let heads = [
            json!({"kind": "Project", "path": "acme/shop", "uses": ["low", "high"], "previously": ["acme/old"]}),
            json!({"kind": "Project", "path": "acme/other", "archived": false, "fork_of": "acme/shop"}),
            json!({"kind": "Profile", "name": "high"}),
            json!({"kind": "Profile", "name": "low"}),
            json!({"kind": "Defaults", "match": {"path": "acme/*"}}),
            json!({"kind": "Defaults", "match": {"path": "**"}}),
        ];
        let document = |(head, layer): (&Json, &Json)| {
            let mut document = head.as_object().unwrap().clone();
            document.extend(layer.as_object().unwrap().clone());
            format!("---\n{}\n", Json::Object(document))
        };
        let text: String = heads.iter().zip(&layers).map(document).collect();
        let loaded = load_traced(&[("a.yaml", &text), ("t", "")]);
        assert_deciding_origins(&loaded);
        let (merged, shown_text) = load_merged(&[("a.yaml", &text), ("t", "")]);
        let (reloaded, second_text) = load_merged(&[("b.yaml", &shown_text), ("t", "")]);
        // An addition to a condition on a live list is an error.
        prop_assume!(merged.is_some(), "{}", text);
        let reloaded_json = reloaded.as_ref().map(full_json);
        prop_assert_eq!(reloaded_json, merged.as_ref().map(full_json), "{}\n{}", text, shown_text);
        prop_assert!(shown_text.lines().all(|line| line.chars().count() <= 100), "{}", shown_text);
        // If the shown document is loaded and shown again, only the places differ.
        let values = |text: &str| -> Vec<Json> {
            crate::yaml::parse(text).documents.iter().map(crate::yaml::Node::to_json).collect()
        };
        prop_assert_eq!(values(&second_text), values(&shown_text));
    }
}
