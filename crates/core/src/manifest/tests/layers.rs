//! Tests of merging several documents.

use super::*;
use crate::origin::Layer;

/// The sections of `document`, with the path `acme/shop`, merged with `rules`, without policies.
fn merged_sections(rules: &str, document: &str) -> Json {
    let text = format!("{rules}---\nkind: Project\npath: acme/shop\n{document}");
    let containers = containers(&text);
    let desired = Desired { containers, ..Desired::default() };
    let container = desired_json(&desired)[0][0].clone();
    let sections = container[2].as_object().unwrap().iter();
    sections.map(|(name, section)| (name.clone(), section[1].clone())).collect()
}

/// The fields of the first entry of a section.
fn first_fields(merged: &Json, section: &str) -> Json {
    let fields = merged[section][0][2].as_object().cloned().unwrap_or_default();
    fields.into_iter().map(|(name, value)| (name, value["plain"].clone())).collect()
}

/// The merged settings of rules and a document.
fn settings(rules: &str, document: &str) -> Json {
    first_fields(&merged_sections(rules, document), "settings")
}

/// The names of the entries of a section, with their states.
fn entries(merged: &Json, section: &str) -> Vec<String> {
    let entries = merged[section].as_array().unwrap().iter();
    entries
        .map(|entry| format!("{} {}", entry[0].as_str().unwrap(), entry[1].as_str().unwrap()))
        .collect()
}

fn defaults(glob: &str, body: &str) -> String {
    format!("---\nkind: Defaults\nmatch: {{path: '{glob}'}}\n{body}\n")
}

fn profile(name: &str, body: &str) -> String {
    format!("---\nkind: Profile\nname: {name}\n{body}\n")
}

/// The code and the message of each fault of one file.
fn fault_messages(text: &str) -> Vec<String> {
    let loaded = load_files(&[("a.yaml", text)]);
    let sorted = loaded.diagnostics.sorted();
    sorted.into_iter().map(|fault| format!("{}: {}", fault.code, fault.message)).collect()
}

#[test]
fn the_document_outranks_profiles_and_profiles_outrank_defaults() {
    let rules =
        defaults("acme/**", "settings: {description: d, merge_method: ff, visibility: private}")
            + &profile("base", "settings: {merge_method: merge, visibility: internal}");
    let expected = json!({"description": "d", "merge_method": "merge", "visibility": "public"});
    let document = "uses: [base]\nsettings: {visibility: public}\n";
    assert_eq!(settings(&rules, document), expected);
}

#[test]
fn every_value_has_its_layer() {
    let rules = defaults("acme/**", "settings: {description: d}")
        + &profile("base", "settings: {merge_method: merge}");
    let text = format!(
        "{rules}---\nkind: Project\npath: acme/shop\nuses: [base]\nsettings: {{visibility: public}}\n"
    );
    let shop = &containers(&text)[0];
    let fields = &shop.section("settings").unwrap().entries[0].fields;
    let layer = |name| fields.origin(name).map(|origin| (origin.layer, origin.line));
    assert_eq!(layer("description"), Some((Layer::Defaults, 4)));
    assert_eq!(layer("merge_method"), Some((Layer::Profile, 8)));
    assert_eq!(layer("visibility"), Some((Layer::Project, 13)));
}

#[test]
fn an_unmanaged_entry_is_not_declared() {
    let merged =
        merged_sections("", "variables: [{key: A, state: unmanaged}, {key: B, value: b}]\n");
    assert_eq!(entries(&merged, "variables"), ["B@* Present"]);
}

#[test]
fn the_more_literal_match_wins_in_any_order() {
    let low = defaults("**", "settings: {description: low, merge_method: ff}");
    let mid = defaults("acme/**", "settings: {description: mid}");
    let high = defaults("ACME/s*", "settings: {description: high}");
    let expected = json!({"description": "high", "merge_method": "ff"});
    for rules in [[&low, &mid, &high], [&high, &mid, &low], [&mid, &high, &low]] {
        assert_eq!(settings(&rules.map(String::as_str).concat(), ""), expected);
    }
}

#[test]
fn a_later_profile_outranks_earlier_ones_and_those_it_uses() {
    let rules = profile("a", "settings: {description: a, merge_method: ff}")
        + &profile("b", "uses: [c]\nsettings: {description: b}")
        + &profile("c", "settings: {description: c, merge_method: merge}");
    assert_eq!(
        settings(&rules, "uses: [a, b]\n"),
        json!({"description": "b", "merge_method": "merge"})
    );
    assert_eq!(
        settings(&rules, "uses: [b, a]\n"),
        json!({"description": "a", "merge_method": "ff"})
    );
    // A profile counts at its last position.
    assert_eq!(
        settings(&rules, "uses: [c, a, b]\n"),
        json!({"description": "b", "merge_method": "merge"})
    );
}

#[test]
fn a_document_replaces_or_extends_the_profiles_of_defaults() {
    let rules = defaults("acme/**", "uses: [a]")
        + &profile("a", "settings: {description: a, merge_method: ff}")
        + &profile("b", "settings: {description: b}");
    assert_eq!(settings(&rules, "settings: {}\nuses: [b]\n"), json!({"description": "b"}));
    let expected = json!({"description": "b", "merge_method": "ff"});
    assert_eq!(settings(&rules, "uses: {add: [b]}\n"), expected);
    let text = format!("{rules}---\nkind: Project\npath: acme/shop\nuses: []\narchived: true\n");
    assert_eq!(containers(&text)[0].section_names().collect::<Vec<_>>(), ["archived"]);
}

#[test]
fn mappings_merge_leaf_by_leaf_and_null_is_a_value() {
    let rules = defaults(
        "acme/**",
        "settings: {container_expiration_policy: {enabled: true, cadence: 1d, name_regex: a}, suggestion_commit_message: x}",
    );
    let document =
        "settings: {container_expiration_policy: {cadence: 7d}, suggestion_commit_message: null}\n";
    assert_eq!(
        settings(&rules, document),
        json!({
            "container_expiration_policy": {"enabled": true, "cadence": "7d", "name_regex": "a"},
            "suggestion_commit_message": null,
        })
    );
}

/// Tests mappings without a key, with one key and with two keys. The mappings are in two ranks, and
/// in both orders of one rank.
#[test]
fn a_mapping_is_ambiguous_leaf_by_leaf() {
    let policy = |text: &str| format!("settings: {{container_expiration_policy: {text}}}");
    let both_fields = json!({"keep_n": 5, "cadence": "7d"});
    for (lower, higher, merged, is_ambiguous) in [
        ("{keep_n: 5}", "{}", json!({"keep_n": 5}), false),
        ("{}", "{keep_n: 5}", json!({"keep_n": 5}), false),
        ("{keep_n: 5}", "{cadence: 7d}", both_fields.clone(), false),
        ("{keep_n: 5}", "{keep_n: 10}", json!({"keep_n": 10}), true),
        ("{keep_n: 5, cadence: 7d}", "{keep_n: 5}", both_fields, false),
    ] {
        let merged_settings = settings(&defaults("acme/**", &policy(lower)), &policy(higher));
        assert_eq!(
            merged_settings,
            json!({"container_expiration_policy": merged}),
            "{lower} {higher}"
        );
        for (first_fields, other_fields) in [(lower, higher), (higher, lower)] {
            let rules = [first_fields, other_fields]
                .map(|text| defaults("acme/**", &policy(text)))
                .concat();
            let messages = fault_messages(&format!("{rules}---\nkind: Project\npath: acme/shop\n"));
            let has_ambiguity = messages.iter().any(|fault| fault.starts_with("ambiguous-layers"));
            assert_eq!(
                has_ambiguity, is_ambiguous,
                "{first_fields} beside {other_fields}: {messages:?}"
            );
            // A layer that outranks both decides.
            let document = policy("{keep_n: 1, cadence: 1d}");
            let messages = self::fault_messages(&format!(
                "{rules}---\nkind: Project\npath: acme/shop\n{document}\n"
            ));
            assert_eq!(messages, [""; 0], "{first_fields} beside {other_fields}");
        }
    }
}

#[test]
fn a_deprecated_spelling_and_its_successor_are_one_slot() {
    let rules = defaults("acme/**", "settings: {issues_enabled: true}");
    let document = "settings: {issues_access_level: private}\n";
    assert_eq!(settings(&rules, document), json!({"issues_access_level": "private"}));
}

#[test]
fn lists_replace_or_change_lower_layers() {
    let low = defaults("**", "settings: {topics: [a, b]}");
    let merged_topics = |rules: &str, document: &str| settings(rules, document)["topics"].clone();
    assert_eq!(merged_topics(&low, "settings: {topics: [c]}\n"), json!(["c"]));
    assert_eq!(merged_topics(&low, "settings: {topics: {add: [c, a]}}\n"), json!(["a", "b", "c"]));
    assert_eq!(merged_topics(&low, "settings: {topics: {remove: [a, x]}}\n"), json!(["b"]));
    assert_eq!(merged_topics("", "settings: {topics: {add: [c], remove: [d]}}\n"), json!(["c"]));
    let mid = low + &defaults("acme/**", "settings: {topics: {add: [c], remove: [a]}}");
    assert_eq!(
        merged_topics(&mid, "settings: {topics: {add: [d], remove: [b]}}\n"),
        json!(["c", "d"])
    );
    // Changes of equal rank unite.
    let united_rules = mid + &defaults("**/shop", "settings: {topics: {add: [z]}}");
    assert_eq!(merged_topics(&united_rules, ""), json!(["b", "c", "z"]));
}

#[test]
fn a_list_and_a_change_of_equal_rank_are_ambiguous() {
    let list = |glob| defaults(glob, "settings: {topics: [a]}");
    let change = |glob| defaults(glob, "settings: {topics: {add: [b]}}");
    for rules in [list("acme/**") + &change("**/shop"), change("acme/**") + &list("**/shop")] {
        let messages = fault_messages(&format!("{rules}---\nkind: Project\npath: acme/shop\n"));
        assert!(messages.iter().any(|fault| fault.starts_with("ambiguous-layers")), "{messages:?}");
    }
}

#[test]
fn an_entry_of_two_layers_of_equal_rank_has_the_origin_of_the_first() {
    let rules = defaults("acme/**", "variables: [{key: A, value: a}]")
        + &defaults("**/shop", "variables: [{key: A, protected: true}]");
    let text = format!("{rules}---\nkind: Project\npath: acme/shop\n");
    let entry = containers(&text)[0].section("variables").unwrap().entries[0].clone();
    assert_eq!((entry.origin.line, entry.values().keys().count()), (4, 4), "{entry:?}");
}

#[test]
fn a_condition_on_a_live_list_is_not_merged() {
    let merged_topics = |document: &str| settings("", document)["topics"].clone();
    assert_eq!(
        merged_topics("settings: {topics: {at_least: [a], none_of: [b]}}\n"),
        json!({"at_least": ["a"], "none_of": ["b"]})
    );
}

#[test]
fn entries_merge_by_their_identity() {
    let rules = defaults(
        "acme/**",
        "variables: [{key: A, value: low, protected: true}, {key: B, value: b}]\nmembers: [{user: Alice, access_level: guest}]",
    );
    let document = "variables: [{key: A, value: high}, {key: A, environment_scope: x, value: v}]\nmembers: [{user: alice, access_level: owner}]\n";
    let merged = merged_sections(&rules, document);
    assert_eq!(entries(&merged, "variables"), ["A@* Present", "A@x Present", "B@* Present"]);
    assert_eq!(
        first_fields(&merged, "variables"),
        json!({"key": "A", "environment_scope": "*", "value": "high", "protected": true})
    );
    assert_eq!(first_fields(&merged, "members"), json!({"user": "alice", "access_level": "owner"}));
}

#[test]
fn absent_drops_lower_layers_and_present_starts_empty() {
    let low = defaults("**", "variables: [{key: A, value: low, protected: true}]");
    let document = "variables: [{key: A, state: absent}]\n";
    assert_eq!(entries(&merged_sections(&low, document), "variables"), ["A@* Absent"]);
    let mid = low + &defaults("acme/**", document.trim_end());
    let merged = merged_sections(&mid, "variables: [{key: A, value: high}]\n");
    assert_eq!(
        first_fields(&merged, "variables"),
        json!({"key": "A", "environment_scope": "*", "value": "high"})
    );
}

#[test]
fn unmanaged_drops_entries_of_lower_layers_only() {
    let low = defaults("**", "variables: [{key: TF_A, value: a}, {key: B, value: b}]");
    let unmanaged = "variables: [{key: 'TF_*', state: unmanaged}]";
    let merged = merged_sections(&low, &format!("{unmanaged}\n"));
    assert_eq!(entries(&merged, "variables"), ["B@* Present"]);
    let mid = low + &defaults("acme/**", unmanaged);
    let merged = self::merged_sections(&mid, "variables: [{key: TF_A, value: mine}]\n");
    assert_eq!(entries(&merged, "variables"), ["B@* Present", "TF_A@* Present"]);
}

/// Of two layers of equal rank, neither drops entries of the other layer. Entries of one document
/// do not drop each other either.
#[test]
fn unmanaged_keeps_entries_of_equal_rank() {
    let (declared, unmanaged) = ("{key: TF_A, value: a}", "{key: 'TF_*', state: unmanaged}");
    let section = |entries: &str| format!("variables: [{entries}]\n");
    for (one, other) in [(declared, unmanaged), (unmanaged, declared)] {
        let rules = defaults("acme/*", &section(one)) + &defaults("acme/*", &section(other));
        for (layers, document) in
            [(rules, String::new()), (String::new(), section(&format!("{one}, {other}")))]
        {
            let merged = merged_sections(&layers, &document);
            assert_eq!(entries(&merged, "variables"), ["TF_A@* Present"], "{layers} {document}");
        }
    }
}

#[test]
fn layers_may_be_ignored() {
    let rules = defaults(
        "**",
        "settings: {description: d}\nvariables: [{key: A, value: a}]\nunlisted: {variables: fail}",
    );
    let text = |document: &str| format!("{rules}---\nkind: Project\npath: acme/shop\n{document}");
    let names =
        |document: &str| -> Vec<_> { containers(&text(document))[0].section_names().collect() };
    assert_eq!(names(""), ["settings", "variables"]);
    assert_eq!(names("ignore_layers: [variables]\n"), ["settings"]);
    assert_eq!(names("ignore_layers: true\narchived: false\n"), ["archived"]);
    let document = "ignore_layers: [variables]\nvariables: []\n";
    let shop = &containers(&text(document))[0];
    assert_eq!(shop.section("variables").unwrap().unlisted.value, crate::desired::Unlisted::Report);
}

#[test]
fn policies_creation_and_watching_merge_too() {
    let rules = defaults(
        "**",
        "create: {initialize_with_readme: true}\nunlisted: {variables: delete}\nwatch: true",
    );
    let text = |document: &str| format!("{rules}---\nkind: Project\npath: acme/shop\n{document}");
    let shop = &containers(&text("variables: []\n"))[0];
    assert!(shop.is_watched);
    assert!(shop.creation_policy.create_fields().unwrap().contains_key("initialize_with_readme"));
    assert_eq!(shop.section("variables").unwrap().unlisted.value, crate::desired::Unlisted::Delete);
    let shop = &containers(&text(
        "variables: []\nwatch: false\ncreate: false\nunlisted: {variables: fail}\n",
    ))[0];
    assert!(!shop.is_watched && shop.creation_policy.create_fields().is_none());
    assert_eq!(shop.section("variables").unwrap().unlisted.value, crate::desired::Unlisted::Fail);
}

#[test]
fn the_policy_for_unlisted_projects_is_that_of_the_highest_layer() {
    use crate::desired::Unlisted::{Fail, Report};
    let rules = "kind: Defaults\nmatch: {path: acme}\nfor: Group\nunlisted: {projects: fail}\n";
    let projects_policy = |rules: &str, document: &str| {
        let group = &containers(&format!("{rules}---\nkind: Group\npath: acme\n{document}"))[0];
        group.lifecycle.unlisted_projects.as_ref().map(|policy| policy.value)
    };
    for (rules, document, expected) in [
        ("", "", None),
        (rules, "", Some(Fail)),
        (rules, "unlisted: {projects: report}\n", Some(Report)),
        (rules, "unlisted: {projects: ignore}\n", None),
        // The old form, and both forms together.
        (rules, "undeclared_projects: report\n", Some(Report)),
        ("", "undeclared_projects: report\nunlisted: {projects: fail}\n", Some(Fail)),
    ] {
        assert_eq!(projects_policy(rules, document), expected, "{rules}{document}");
    }
}

#[test]
fn templates_are_filled_in_after_merging() {
    let rules = defaults("**", "params: {port: 80, keep: 5}")
        + &profile(
            "web",
            "needs: [port]
params: {host: example.org}
settings:
  description: {text: '{name} of {group}'}
  container_expiration_policy: {keep_n: {text: '{keep}'}}
  topics: [{text: 'port-{port}'}, web]
variables:
  - {key: {text: 'URL_{name}'}, value: {text: 'https://{host}:{port}/{{x}}'}}
hooks:
  - {url: {text: 'https://{path_slug}.example.org/'}}",
        );
    let merged = merged_sections(&rules, "uses: [web]\nparams: {port: '8080'}\n");
    assert_eq!(
        first_fields(&merged, "settings"),
        json!({
            "description": "shop of acme", "topics": ["port-8080", "web"],
            "container_expiration_policy": {"keep_n": 5},
        })
    );
    assert_eq!(
        first_fields(&merged, "variables"),
        json!({"key": "URL_shop", "environment_scope": "*", "value": "https://example.org:8080/{x}"})
    );
    assert_eq!(entries(&merged, "hooks"), ["https://acme-shop.example.org/ Present"]);
}

#[test]
fn templates_that_do_not_decide_are_not_filled_in() {
    let rules = defaults("**", "settings: {description: {text: '{nothing}'}}");
    let document = "settings: {description: d}\n";
    assert_eq!(settings(&rules, document), json!({"description": "d"}));
}

#[test]
fn a_conflict_is_an_error_only_if_it_decides() {
    let rules = defaults("acme/*", "settings: {description: a}")
        + &defaults("*/shop", "settings: {description: b}");
    let text = |document: &str| format!("{rules}---\nkind: Project\npath: acme/shop\n{document}");
    let ambiguous =
        "ambiguous-layers: `description` has two values, and neither outranks the other";
    assert_eq!(fault_messages(&text("")), [ambiguous]);
    assert_eq!(settings(&rules, "settings: {description: c}\n"), json!({"description": "c"}));
    let equal_rules = rules.replace("description: b", "description: a");
    assert_eq!(settings(&equal_rules, ""), json!({"description": "a"}));
}

#[test]
fn faults_between_documents_are_reported_once() {
    for (text, expected) in [
        ("uses: [x]\n", vec!["unknown-profile: unknown profile `x`"]),
        (
            "variables: []\n---\nkind: Defaults\nmatch: {path: other/*}\nwatch: true\n",
            vec!["idle-rule: this matches no declared project"],
        ),
        (
            "---\nkind: Profile\nname: p\n",
            vec!["idle-rule: no declared project uses the profile `p`"],
        ),
        (
            "uses: [p]\n---\nkind: Profile\nname: p\nneeds: [port]\n",
            vec!["params: `acme/shop` uses the profile `p`, which needs the parameter `port`"],
        ),
        (
            "uses: [p]\n---\nkind: Profile\nname: p\nuses: [q]\n---\nkind: Profile\nname: q\nuses: [p]\n",
            vec!["profile-circle: profiles use each other in a circle: `p` uses `q` uses `p`"],
        ),
        ("settings: {description: {text: '{port}'}}\n", vec!["template: unknown parameter `port`"]),
        (
            "settings: {merge_method: {text: '{name}'}}\n",
            vec![
                "value: `merge_method` is not valid once it is filled in: the value is not one of \"merge\", \"rebase_merge\" or \"ff\"",
            ],
        ),
        (
            "variables: []\n---\nkind: Defaults\nmatch: {path: acme/*}\nvariables: [{key: A, value: a}]\n",
            vec!["adds-nothing: `variables: []` adds nothing to 1 entry of lower layers"],
        ),
        (
            "archived: false\n---\nkind: Defaults\nmatch: {path: acme/*}\nunlisted: {variables: delete}\n",
            vec!["unlisted: `unlisted` names `variables`, which no document here declares"],
        ),
        (
            "variables: []\n---\nkind: Defaults\nmatch: {path: acme/*}\nunlisted: {variables: fail}\n---\nkind: Project\npath: acme/site\n",
            vec!["unlisted: `unlisted` has no effect in 1 of 2 projects: no `variables` there"],
        ),
        (
            "archived: false\n---\nkind: Defaults\nmatch: {path: acme/*}\nvariables: []\nunlisted: {variables: fail}\n---\nkind: Project\npath: acme/gone\nstate: absent\n",
            vec![],
        ),
        (
            "variables: []\n---\nkind: Defaults\nmatch: {path: acme/*}\nunlisted: {variables: fail}\n---\nkind: Project\npath: acme/gone\nstate: absent\n",
            vec![],
        ),
        (
            "hooks:\n  - {name: a, url: 'https://h/x'}\n  - {name: a, url: 'https://h/y'}\n  - {name: b, url: 'https://h/y'}\n",
            vec!["duplicate-entry: a hook that is declared twice"; 2],
        ),
        (
            "params: {path: x, a b: y}\n",
            vec![
                "params: `path` is predefined: it comes from the path",
                "params: a parameter cannot have this name",
            ],
        ),
        (
            "variables: [{key: A, state: unmanaged, value: x}]\n",
            vec!["absent: `value` must not be combined with `state: unmanaged`"],
        ),
    ] {
        let text = format!("kind: Project\npath: acme/shop\n{text}");
        assert_eq!(fault_messages(&text), expected, "{text}");
    }
}

/// The environment variables and files of the first container.
fn sources(text: &str) -> Vec<String> {
    let loaded = load_files(&[("a.yaml", text)]);
    assert!(!loaded.diagnostics.has_errors(), "{:?}", fault_messages(text));
    let desired = loaded.desired.unwrap();
    let container = &desired.containers[0];
    let entries = container.sections.iter().flat_map(|section| &section.entries);
    let values = entries.flat_map(|entry| entry.fields.iter().map(|(_, field)| field.value));
    values.flat_map(|value| value.sources()).map(|source| source.to_string()).collect()
}

#[test]
fn variables_and_files_are_named_after_the_path() {
    for (value, expected) in [
        ("{env: 'DEPLOY_{name}'}", "env:DEPLOY_web_shop"),
        ("{env: '{path}_{stage}'}", "env:acme_web_shop_prod_1"),
        ("{env: '{group}'}", "env:acme"),
        ("{env: PLAIN}", "env:PLAIN"),
        ("{file: 'keys/{path}'}", "file:keys/acme/web-shop"),
        ("{text: '{key}'}", "env:KEY_acme"),
    ] {
        let rule = defaults("acme/*", &format!("variables: [{{key: A, value: {value}}}]"));
        let document = "kind: Project\npath: acme/web-shop\nparams: {stage: prod-1, key: {env: 'KEY_{group}'}}\n";
        assert_eq!(sources(&format!("{document}{rule}")), [expected], "{value}");
    }
}

#[test]
fn two_declared_projects_never_share_a_filled_in_secret_name() {
    let variables = |name: &str| format!("variables: [{{key: A, value: {{env: '{name}'}}}}]");
    let project = |path: &str, body: &str| format!("---\nkind: Project\npath: {path}\n{body}\n");
    let two_projects =
        project("acme/a/shop", "archived: false") + &project("acme/b/shop", "archived: false");
    let shared_by_both = "template: `X_shop` would be shared by `acme/a/shop` and `acme/b/shop`";
    for (name, expected) in [
        ("X_{name}", vec![shared_by_both]),
        ("X_{path}", vec![]),
        // This sharing is intended.
        ("X_{group}", vec![]),
        ("X", vec![]),
        ("X_{other}", vec!["template: unknown parameter `other`"]),
        ("X_{env:Y}", vec!["template: the name of a secret must not contain a secret"]),
        ("X_{name", vec!["template: `{` is never closed"]),
    ] {
        let text = two_projects.clone() + &defaults("acme/*/shop", &variables(name));
        let messages: Vec<_> =
            fault_messages(&text).into_iter().filter(|line| !line.starts_with("ambig")).collect();
        assert_eq!(messages, expected, "{name}");
    }
    // The names of two secrets must not contain each other.
    let circle = "params: {a: {env: 'X_{b}'}, b: {env: 'X_{a}'}}\nvariables: [{key: A, value: {text: '{a}'}}]";
    assert_eq!(
        fault_messages(&project("acme/shop", circle)),
        ["template: the name of a secret must not contain a secret"]
    );
    // The templates may also be in two documents.
    let text =
        project("acme/a-b", &variables("{name}")) + &project("acme/a.b", &variables("{name}"));
    assert_eq!(
        fault_messages(&text),
        ["template: `a_b` would be shared by `acme/a-b` and `acme/a.b`"]
    );
    let rule = defaults("acme/*", &format!("undeclared: include\n{}", variables("X_{name}")));
    assert_eq!(
        fault_messages(&rule),
        ["template: the path of an undeclared project must not choose a secret"]
    );
}

mod naive {
    //! A second, naive merge. It finds the deciding layer of each slot.

    use proptest::{prelude::*, sample::select};

    use super::*;

    /// A layer as JSON, without the keys that select where it applies.
    fn layer() -> impl Strategy<Value = Json> {
        let text = || prop::option::of(select(vec!["a", "b"]));
        let topics = prop::option::of(prop_oneof![
            prop::collection::btree_set(select(vec!["x", "y", "z"]), 0..3)
                .prop_map(|topics| json!(topics)),
            prop::collection::btree_set(select(vec!["x", "y", "z"]), 1..3)
                .prop_map(|topics| json!({"add": topics})),
            prop::collection::btree_set(select(vec!["x", "y", "z"]), 1..3)
                .prop_map(|topics| json!({"remove": topics})),
        ]);
        let policy = prop::option::of((text(), prop::option::of(select(vec![1, 5]))));
        let settings = (text(), prop::option::of(Just(Json::Null)), topics, policy).prop_map(
            |(description, cleared, topics, policy)| {
                let policy = policy.map(|(name_regex_keep, keep_n)| {
                    prune(json!({"name_regex_keep": name_regex_keep, "keep_n": keep_n}))
                });
                let mut settings = prune(
                    json!({"description": description, "topics": topics, "container_expiration_policy": policy}),
                );
                if let Some(null) = cleared {
                    settings["suggestion_commit_message"] = null;
                }
                settings
            },
        );
        let variable = |key: &'static str| {
            let state = select(vec!["present", "present", "absent", "unmanaged"]);
            (state, text(), prop::option::of(any::<bool>())).prop_map(
                move |(state, value, protected)| match state {
                    "present" => prune(json!({"key": key, "value": value, "protected": protected})),
                    state => json!({"key": key, "state": state}),
                },
            )
        };
        let variables = (prop::option::of(variable("A")), prop::option::of(variable("B")))
            .prop_map(|(a, b)| json!(a.into_iter().chain(b).collect::<Vec<_>>()));
        let ignores = prop::option::weighted(0.15, select(vec!["settings", "variables"]));
        (prop::option::of(settings), prop::option::of(variables), ignores).prop_map(
            |(settings, variables, ignores)| {
                let ignores = ignores.map(|section| json!([section]));
                prune(
                    json!({"settings": settings, "variables": variables, "ignore_layers": ignores}),
                )
            },
        )
    }

    /// `json` without the keys that are null.
    fn prune(json: Json) -> Json {
        let object = json.as_object().unwrap().clone().into_iter();
        object.filter(|(_, value)| !value.is_null()).collect()
    }

    /// The merged value of the slot `path` of `section`. The highest layer is first.
    fn deciding_value<'l>(layers: &'l [Json], section: &str, path: &str) -> Option<&'l Json> {
        for layer in layers {
            let value = layer.pointer(path);
            if value.is_some() || layer["ignore_layers"][0] == section {
                return value;
            }
        }
        None
    }

    fn settings(layers: &[Json]) -> Json {
        let mut settings = serde_json::Map::new();
        for name in ["description", "suggestion_commit_message"] {
            let value = deciding_value(layers, "settings", &format!("/settings/{name}"));
            settings.extend(value.map(|value| (name.to_owned(), value.clone())));
        }
        let mut policy = serde_json::Map::new();
        let mut has_policy = false;
        for name in ["name_regex_keep", "keep_n"] {
            let path = format!("/settings/container_expiration_policy/{name}");
            let value = deciding_value(layers, "settings", &path);
            policy.extend(value.map(|value| (name.to_owned(), value.clone())));
        }
        has_policy |=
            deciding_value(layers, "settings", "/settings/container_expiration_policy").is_some();
        if has_policy {
            settings.insert("container_expiration_policy".into(), policy.into());
        }
        let mut changes = Vec::new();
        let mut has_topics = false;
        let mut list: Vec<Json> = Vec::new();
        for layer in layers {
            match layer.pointer("/settings/topics") {
                Some(Json::Array(items)) => {
                    (has_topics, list) = (true, items.clone());
                    break;
                }
                Some(change) => (has_topics, _) = (true, changes.push(change)),
                None => {}
            }
            if layer["ignore_layers"][0] == "settings" {
                break;
            }
        }
        for change in changes.iter().rev() {
            for item in change["remove"].as_array().into_iter().flatten() {
                list.retain(|other| other != item);
            }
            for item in change["add"].as_array().into_iter().flatten() {
                if !list.contains(item) {
                    list.push(item.clone());
                }
            }
        }
        if has_topics {
            settings.insert("topics".into(), list.into());
        }
        settings.into()
    }

    /// The variable `key` with its fields, or as absent.
    fn variable(layers: &[Json], key: &str) -> Option<Json> {
        let (mut fields, mut is_declared) = (serde_json::Map::new(), false);
        for layer in layers {
            let mut entries = layer["variables"].as_array().into_iter().flatten();
            if let Some(entry) = entries.find(|entry| entry["key"] == key) {
                match entry["state"].as_str() {
                    Some("absent") if !is_declared => return Some(json!([key, "Absent"])),
                    Some("unmanaged") if !is_declared => return None,
                    Some(_) => break,
                    None => {}
                }
                is_declared = true;
                for (name, value) in entry.as_object().unwrap() {
                    fields.entry(name.clone()).or_insert(value.clone());
                }
            }
            if layer["ignore_layers"][0] == "variables" {
                break;
            }
        }
        is_declared.then(|| json!([key, fields]))
    }

    /// The settings and variables of a loaded project, in the form of `settings` and `variable`.
    fn loaded_values(container: &Container) -> Json {
        let desired = Desired { containers: vec![container.clone()], ..Desired::default() };
        let sections = desired_json(&desired)[0][0][2].clone();
        let plain_fields = |fields: &Json| -> Json {
            let fields = fields.as_object().unwrap().iter();
            fields.map(|(name, value)| (name.clone(), value["plain"].clone())).collect()
        };
        let settings = sections["settings"][1][0][2]
            .is_object()
            .then(|| plain_fields(&sections["settings"][1][0][2]));
        let variables = sections["variables"][1].as_array().into_iter().flatten().map(|entry| {
            let mut fields = plain_fields(&entry[2]);
            fields.as_object_mut().unwrap().remove("environment_scope");
            let key = fields["key"].clone();
            if entry[1] == "Absent" { json!([key, "Absent"]) } else { json!([key, fields]) }
        });
        json!([settings.unwrap_or(json!({})), variables.collect::<Vec<_>>()])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn both_merges_agree(layers in prop::collection::vec(layer(), 5), order in Just(vec![0, 1, 2, 3, 4]).prop_shuffle()) {
            // Highest first: the document, two profiles, two defaults.
            let heads = [
                json!({"kind": "Project", "path": "acme/shop", "uses": ["low", "high"]}),
                json!({"kind": "Profile", "name": "high"}),
                json!({"kind": "Profile", "name": "low"}),
                json!({"kind": "Defaults", "match": {"path": "acme/*"}}),
                json!({"kind": "Defaults", "match": {"path": "**"}}),
            ];
            let documents: Vec<_> = heads.iter().zip(&layers).map(|(head, layer)| {
                let mut document = head.as_object().unwrap().clone();
                document.extend(layer.as_object().unwrap().clone());
                Json::Object(document)
            }).collect();
            let text: String = order.iter().map(|index| format!("---\n{}\n", documents[*index])).collect();
            let loaded = load_files(&[("a.yaml", &text)]);
            prop_assert!(!loaded.diagnostics.has_errors(), "{}\n{}", text, loaded.diagnostics.render(TextStyle::default()));
            let desired = loaded.desired.unwrap();
            let variables: Vec<_> = ["A", "B"].iter().filter_map(|key| variable(&layers, key)).collect();
            prop_assert_eq!(loaded_values(&desired.containers[0]), json!([settings(&layers), variables]), "{}", text);
        }
    }
}

#[test]
fn an_entry_with_an_unfilled_template_is_not_checked_further() {
    let codes = |description: &str| -> Vec<_> {
        let variable =
            format!("{{key: A, value: short, masked: true, description: {description}}}");
        let text = format!("kind: Project\npath: acme/shop\nvariables: [{variable}]\n");
        faults(&[("a.yaml", &text)]).into_iter().map(|(code, _)| code).collect()
    };
    assert!(codes("of the shop").contains(&"masked-value"));
    assert_eq!(codes("{text: '{none}'}"), ["template"]);
}

#[test]
fn templates_in_list_conditions_are_filled_in() {
    let document = "settings: {topics: {at_least: [{text: 'of-{name}'}], none_of: [old]}}\n";
    let expected = json!({"topics": {"at_least": ["of-shop"], "none_of": ["old"]}});
    assert_eq!(settings("", document), expected);
}

#[test]
fn rules_do_not_apply_to_an_absent_project() {
    let rules = defaults("acme/**", "settings: {description: {text: '{none}'}}");
    assert_eq!(
        merged_sections(&defaults("acme/**", "settings: {description: d}"), "state: absent\n"),
        json!({})
    );
    let text = format!("{rules}---\nkind: Project\npath: acme/shop\nstate: absent\n");
    assert_eq!(faults(&[("a.yaml", &text)]), []);
}

/// There is one fault, even if several templates contain the parameter.
#[test]
fn a_missing_parameter_is_reported_once_at_the_use_of_the_profile() {
    let text = profile("p", "needs: [port]\nsettings: {description: {text: '{port}'}}")
        + "---\nkind: Project\npath: acme/shop\nuses: [p]\n";
    let messages = fault_messages(&text);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].starts_with("params: `acme/shop` uses the profile `p`"), "{messages:?}");
}

#[test]
fn a_rule_for_groups_does_not_apply_to_projects() {
    let rules =
        "---\nkind: Defaults\nfor: Group\nmatch: {path: 'acme/**'}\nsettings: {description: g}\n";
    assert_eq!(settings(rules, "settings: {name: Shop}\n"), json!({"name": "Shop"}));
    let project_rules = rules.replace("for: Group\n", "");
    assert_eq!(settings(&project_rules, ""), json!({"description": "g"}));
}

#[test]
fn a_mapping_of_several_layers_has_the_origin_of_the_highest() {
    let policy = |fields: &str| format!("settings: {{container_expiration_policy: {{{fields}}}}}");
    // The keys of all layers are merged in alphabetical order.
    for (lower, upper) in [("cadence: 1d", "keep_n: 10"), ("keep_n: 10", "cadence: 1d")] {
        let text = defaults("acme/**", &policy(lower))
            + "---\nkind: Project\npath: acme/shop\n"
            + &policy(upper)
            + "\n";
        let container = &containers(&text)[0];
        let fields = &container.section("settings").unwrap().entries[0].fields;
        let origin = fields.get("container_expiration_policy").unwrap().origin.clone();
        assert_eq!(origin.layer, Layer::Project, "{upper}");
    }
}

#[test]
fn two_names_of_one_field_are_an_error_with_other_layers_too() {
    let rules = defaults("acme/**", "settings: {description: d}");
    let document = "settings: {public_builds: true, public_jobs: true}\n";
    let text = format!("{rules}---\nkind: Project\npath: acme/shop\n{document}");
    let messages = fault_messages(&text);
    assert!(messages.iter().any(|fault| fault.starts_with("both-spellings")), "{messages:?}");
}

#[test]
fn a_misspelled_profile_is_compared_with_those_of_its_scope() {
    let text = profile("base", "settings: {merge_method: ff}")
        + &profile("cases", "for: Group\nsettings: {description: g}")
        + "---\nkind: Project\npath: acme/shop\nuses: [base]\n"
        + "---\nkind: Project\npath: acme/web\nuses: [case]\n";
    let loaded = load_files(&[("a.yaml", &text)]);
    let sorted = loaded.diagnostics.sorted();
    let fault = sorted.iter().find(|fault| fault.code == "unknown-profile").unwrap();
    assert_eq!(fault.help.as_deref(), Some("did you mean `base`?"));
}
