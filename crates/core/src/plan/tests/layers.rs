//! Tests of conditions on lists, of entries managed elsewhere, and of watched sections.

use super::*;
use crate::address::Glob;

#[test]
fn a_condition_on_a_list_changes_as_few_elements_as_possible() {
    let condition = json!({"at_least": ["a", "b"], "none_of": ["x"]});
    for (live, after) in [
        (json!(["b", "a"]), None),
        (json!(["c", "b", "a"]), None),
        (json!(["c", "a"]), Some(json!(["c", "a", "b"]))),
        (json!(["x", "b", "a", "c"]), Some(json!(["b", "a", "c"]))),
        (json!([]), Some(json!(["a", "b"]))),
    ] {
        let declared = json!({"settings": {"topics": condition}});
        let plan = plan_sections(&declared, &json!({"settings": {"topics": live}}));
        let changes = plan.steps.first().map(|step| (*step.changes[0].after).clone());
        assert_eq!(changes, after.map(Shown::Value), "{live}");
    }
}

#[test]
fn a_created_project_meets_its_conditions() {
    let sections = json!({"settings": {"topics": {"at_least": ["a"], "none_of": ["b"]}}});
    let mut declared = shop(&sections, Unlisted::Report);
    declared.creation_policy = CreationPolicy::Allowed(DeclaredFields::default());
    let namespace = LiveNamespace { id: Id::Known(3), owner: NamespaceOwner::Group };
    let target = Target { id: None, namespace: Some(namespace), ..target(&declared) };
    let live = LiveContainer {
        presence: Presence::Missing(target),
        ..live_container(&declared, &json!({}))
    };
    let plan = plan_container(&declared, &live, &settings(&[]));
    let change = &plan.steps[0].changes[0];
    assert_eq!((&*change.field, &*change.after), ("topics", &Shown::Value(json!(["a"]))));
}

#[test]
fn unmanaged_entries_are_neither_changed_nor_reported() {
    let sections =
        json!({"variables": [{"key": "TF_MINE", "environment_scope": "*", "value": "x"}]});
    let mut declared = shop(&sections, Unlisted::Delete);
    let variables = declared.sections.iter_mut().find(|s| s.kind.section == "variables").unwrap();
    variables.unmanaged_globs = vec![Glob::for_names("TF_*@*").unwrap()];
    let live = json!({"variables": [
        {"key": "TF_A", "environment_scope": "prod/*", "value": "a"},
        {
            "key": "TF_MINE", "environment_scope": "*", "value": "other", "variable_type": "env_var",
            "protected": false, "masked": false, "raw": false,
        },
        {"key": "OLD", "environment_scope": "*", "value": "o"},
    ]});
    let plan = plan_container(&declared, &live_container(&declared, &live), &settings(&[]));
    let mut plan_lines = step_lines(&plan);
    plan_lines.sort();
    // Declared entries are managed even if the pattern matches.
    let expected = [
        "Delete acme/shop#variables/OLD@* value protected masked raw",
        "Update acme/shop#variables/TF_MINE@* value",
    ];
    assert_eq!(plan_lines, expected);
    assert!(plan.notes.is_empty(), "{:?}", plan.notes);
}

#[test]
fn a_pattern_for_urls_also_finds_hooks_that_have_a_name() {
    let mut declared = shop(&json!({"hooks": []}), Unlisted::Delete);
    let hooks = declared.sections.iter_mut().find(|s| s.kind.section == "hooks").unwrap();
    hooks.unmanaged_globs = vec![Glob::for_names("https://ci.*").unwrap()];
    let live = json!({"hooks": [
        {"id": 1, "url": "https://ci.example.org/a", "name": "jenkins"},
        {"id": 2, "url": "https://ci.example.org/b"},
        {"id": 3, "url": "https://chat.example.org", "name": "ci"},
    ]});
    let plan = plan_container(&declared, &live_container(&declared, &live), &settings(&[]));
    let removed_addresses: Vec<_> =
        plan.steps.iter().map(|step| step.address.to_string()).collect();
    assert_eq!(removed_addresses, ["acme/shop#hooks/ci@3"]);
}

#[test]
fn a_watched_project_differs_and_has_no_steps() {
    let sections = json!({"variables": [], "settings": {"visibility": "public"}});
    let mut declared = shop(&sections, Unlisted::Delete);
    declared.is_watched = true;
    let live = json!({
        "settings": {"visibility": "private"},
        "variables": [{"key": "A", "environment_scope": "*"}, {"key": "B", "environment_scope": "*"}],
    });
    let live = live_container(&declared, &live);
    let watched_plan = plan_container(&declared, &live, &settings(&[]));
    assert!(watched_plan.steps.is_empty() && watched_plan.refusals.is_empty());
    assert_eq!(watched_plan.watched.len(), 3);
    declared.is_watched = false;
    let unwatched_plan = plan_container(&declared, &live, &settings(&[]));
    assert!(!unwatched_plan.refusals.is_empty(), "a guard looks at what is written");
    let mut plan = Plan::default();
    plan.add(&declared, watched_plan, live);
    assert!(plan.has_differences(Strictness::Declared) && plan.counts().calls == 0);
}
