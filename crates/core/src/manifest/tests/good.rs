//! Tests of reading valid manifests.

use super::*;
use crate::secret::Reference;

const SHOP: &str = "\
kind: Project
path: acme/shop
create: {initialize_with_readme: true}
settings: {avatar: {file: a.png}, extra: {new_thing: {a: 1}}, visibility: private}
variables:
  - {key: B, value: {file: keys/b}, environment_scope: prod/*}
  - {key: A, value: plain}
  - {key: OLD, state: absent}
members:
  - {user: Alice, access_level: 40}
hooks:
  - {name: ci, url: 'https://u:p@ci.example.org/x?token=s', token: {env: TOKEN}}
  - {url: {env: HOOK}}
push_rule: null
archived: true
unlisted: {variables: delete, hooks: ignore}
";

#[test]
fn a_manifest_is_read_as_written() {
    let containers = containers(SHOP);
    let desired = Desired { containers, ..Desired::default() };
    let archived = json!(["Report", [["", "Present", {"archived": {"plain": true}}]]]);
    let settings = json!({
        "avatar": {"file": "a.png"}, "new_thing": {"plain": {"a": 1}},
        "visibility": {"plain": "private"},
    });
    let hooks = json!([
        ["ci", "Present", {"name": {"plain": "ci"}, "token": {"secret": {"env": "TOKEN"}}, "url": {"plain": "https://u:p@ci.example.org/x?token=s"}}],
        ["env:HOOK", "Present", {"url": {"secret": {"env": "HOOK"}}}],
    ]);
    let variables = json!([
        ["A@*", "Present", {"environment_scope": {"plain": "*"}, "key": {"plain": "A"}, "value": {"plain": "plain"}}],
        ["B@prod/*", "Present", {
            "environment_scope": {"plain": "prod/*"}, "key": {"plain": "B"}, "value": {"secret": {"file": "keys/b"}},
        }],
        ["OLD@*", "Absent", {"environment_scope": {"plain": "*"}, "key": {"plain": "OLD"}}],
    ]);
    let members = json!([["alice", "Present", {"access_level": {"plain": "maintainer"}, "user": {"plain": "Alice"}}]]);
    let expected = json!([[["acme/shop", {"initialize_with_readme": {"plain": true}}, {
        "archived": archived,
        "hooks": ["Ignore", hooks],
        "members": ["Report", members],
        "push_rule": ["Report", [["", "Absent", {}]]],
        "settings": ["Report", [["", "Present", settings]]],
        "variables": ["Delete", variables],
    }]], []]);
    assert_eq!(desired_json(&desired), expected);
}

#[test]
fn every_value_has_the_origin_of_its_key() {
    let containers = containers(SHOP);
    let section = containers[0].section("variables").unwrap();
    let origin = |entry: usize, field: &str| {
        section.entries[entry].fields.get(field).unwrap().origin.to_string()
    };
    assert_eq!(containers[0].origin.to_string(), "a.yaml:2:1");
    assert_eq!(section.origin.to_string(), "a.yaml:5:1");
    assert_eq!(
        (origin(0, "value"), origin(1, "environment_scope")),
        ("a.yaml:7:14".into(), "a.yaml:6:37".into())
    );
    assert_eq!(
        origin(0, "environment_scope"),
        "a.yaml:7:6",
        "a default has the origin of its entry"
    );
}

#[test]
fn every_reference_to_a_secret_is_listed() {
    let desired = Desired { containers: containers(SHOP), ..Desired::default() };
    let references: Vec<_> = desired
        .references()
        .map(|(address, origin, reference)| format!("{address} {origin} {reference}"))
        .collect();
    let expected = [
        "acme/shop#hooks/ci a.yaml:12:61 env:TOKEN",
        "acme/shop#hooks/env%3AHOOK a.yaml:13:6 env:HOOK",
        "acme/shop#variables/B@prod%2F* a.yaml:6:14 file:keys/b",
    ];
    assert_eq!(references, expected);
    let reference = desired.references().next().unwrap().2;
    assert_eq!(reference, Reference::Env("TOKEN".into()));
}

#[test]
fn omitted_sections_are_not_declared() {
    let containers = containers(
        "kind: Project\npath: acme/shop\nvariables: []\ncreate: false\n---\nkind: Project\npath: acme/a\ncreate: {}\n",
    );
    assert_eq!(
        containers.iter().map(|container| &*container.path).collect::<Vec<_>>(),
        ["acme/a", "acme/shop"]
    );
    assert_eq!(
        containers[1].sections.iter().map(|s| s.kind.section).collect::<Vec<_>>(),
        ["variables"]
    );
    assert!(containers[1].section("variables").unwrap().entries.is_empty());
    assert!(
        containers[1].creation_policy.create_fields().is_none()
            && containers[0]
                .creation_policy
                .create_fields()
                .is_some_and(|create| create.keys().next().is_none())
    );
}

#[test]
fn the_configuration_is_read() {
    let text = "version: 1\nservice: {url: 'https://h/gitlab', tier: ultimate, import_hosts: {extgit: h}}\nguards: {removals: {share: 0.5}}\n";
    let loaded = load_files(&[("undrift.yaml", text), ("a.yaml", "kind: Project\npath: a/b\n")]);
    assert!(loaded.desired.is_some(), "{}", loaded.diagnostics.render(TextStyle::default()));
    assert_eq!(loaded.config.service.url.as_deref(), Some("https://h/gitlab"));
    assert_eq!(
        (loaded.config.guards.removals.share, loaded.config.guards.removals.count),
        (Some(0.5), None)
    );
    assert_eq!(
        faults(&[("undrift.yaml", "service: {}\n"), ("a.yaml", "kind: Project\npath: a/b\n")]),
        [("missing", 1)]
    );
    assert_eq!(
        faults(&[("sub/undrift.yaml", "version: 1\n")]),
        [("document", 1)],
        "only `undrift.yaml` at the root is a configuration"
    );
}
