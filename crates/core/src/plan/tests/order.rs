//! Tests of the order of steps and its reasons.

use super::*;
use crate::{diff::Edge, field::Scope, plan::order};

#[test]
fn entries_are_created_before_others_are_removed() {
    let declared = json!({"variables": [
        {"key": "A", "environment_scope": "prod", "value": "x"},
        {"key": "A", "environment_scope": "*", "state": "absent"},
    ], "settings": {"jobs_enabled": true}});
    let live = json!({"variables": [{"key": "A", "environment_scope": "*", "value": "x"}, {"key": "B", "environment_scope": "*", "value": "x"}],
        "settings": {"jobs_enabled": false}});
    let plan = plan_sections(&declared, &live);
    let expected = [
        "Update acme/shop#settings jobs_enabled",
        "Create acme/shop#variables/A@prod environment_scope key value",
        "Delete acme/shop#variables/A@* value protected masked raw",
    ];
    assert_eq!(
        step_lines(&plan)
            .iter()
            .map(|s| s.split(" variable_type").next().unwrap().to_owned())
            .collect::<Vec<_>>(),
        expected
    );
    assert_eq!(plan.steps[1].after[0].reason, "CI/CD must be on");
    assert!(plan.steps[2].after.iter().any(|edge| edge.reason == "create first, then remove"));
}

/// One request opens and closes features. Therefore steps in the closed features cannot come before
/// that request.
#[test]
fn entries_of_a_feature_that_the_same_request_closes_are_not_planned() {
    let labels = json!([{"name": "bug", "color": "#112233"}, {"name": "old", "state": "absent"}]);
    let environments = json!([{"name": "production"}]);
    let live = json!({
        "labels": [{"name": "old", "color": "#112233"}], "environments": [],
        "settings": {"issues_access_level": "enabled", "merge_requests_access_level": "enabled", "builds_access_level": "disabled"},
    });
    let plan_with_closed_features = |closed_features: &[&str]| {
        let mut settings = json!({"builds_access_level": "enabled"});
        closed_features.iter().for_each(|name| settings[name] = json!("disabled"));
        plan_sections(
            &json!({"labels": labels, "environments": environments, "settings": settings}),
            &live,
        )
    };
    let is_planned = |plan: &ContainerPlan, section: &str| {
        plan.steps.iter().any(|step| step.address.section.is_some_and(|name| name == section))
    };
    let issues_closed = plan_with_closed_features(&["issues_access_level"]);
    assert!(is_planned(&issues_closed, "labels"), "merge requests still have labels");
    let both_closed =
        plan_with_closed_features(&["issues_access_level", "merge_requests_access_level"]);
    assert!(!is_planned(&both_closed, "labels") && is_planned(&both_closed, "environments"));
    assert!(!both_closed.compared_sections.contains("labels"), "the labels were not compared");
    let is_closed = |note: &Note| matches!(note.reason, Reason::Closed { .. });
    let closed_notes: Vec<_> =
        both_closed.findings.notes.iter().filter(|note| is_closed(note)).collect();
    assert_eq!(closed_notes.len(), 1);
    assert_eq!(closed_notes[0].address.to_string(), "acme/shop#labels");
}

/// One request closes issues and opens merge requests, which have labels too.
#[test]
fn entries_of_a_feature_that_another_one_replaces_are_planned() {
    let feature_settings = |[issues, requests]: [&str; 2]| json!({"issues_access_level": issues, "merge_requests_access_level": requests});
    let (off, on) = ("disabled", "enabled");
    let labels = json!([{"name": "bug", "color": "#112233"}]);
    let declared = json!({"labels": labels, "settings": feature_settings([off, on])});
    let declared = shop(&declared, Unlisted::Report);
    let mut live =
        live_container(&declared, &json!({"labels": [], "settings": feature_settings([on, off])}));
    let Presence::Existing(_, facts) = &mut live.presence else { panic!() };
    facts.disabled_settings.insert("merge_requests_access_level".into());
    let plan = plan_container(&declared, &live, &super::settings(&[]));
    let addresses: Vec<_> = plan.steps.iter().map(|step| step.address.to_string()).collect();
    assert_eq!(addresses, ["acme/shop#settings", "acme/shop#labels/bug"]);
}

/// The step with this `action` on `address` and these `effects`.
fn step(address: &str, action: Action, effects: Vec<Effect>) -> Step {
    let (path, suffix) = address.split_once('#').unwrap_or((address, ""));
    let container = Address::container(path.into());
    let mut parts = suffix.splitn(2, '/');
    let section = parts.next().filter(|section| !section.is_empty());
    let section =
        section.map(|name| crate::catalogue::find_section(Scope::Project, name).unwrap().section);
    let address =
        section.map_or_else(|| container.clone(), |section| container.with_section(section));
    let address = parts.next().map_or_else(|| address.clone(), |entry| address.with_entry(entry));
    Step {
        effects,
        ..Step::new(Scope::Project, address, action, origin(1), Vec::new(), Vec::new())
    }
}

pub(super) fn access_effects(user: u64, before: u8, after: u8) -> Vec<Effect> {
    vec![Effect::Access {
        user_id: Some(user),
        before,
        after,
        inherited_level: 0,
        memberships_above: Vec::new(),
        gets_end_date: false,
        lost_role: None,
    }]
}

/// Only a step that makes a user an owner must come before the old owner is removed.
#[test]
fn a_step_that_keeps_its_level_does_not_come_before_others() {
    use Action::Update;
    for after in [30, 40] {
        let first = step("acme/shop#members/a", Update, access_effects(2, after, after));
        let owner = step("acme/shop#members/b", Update, access_effects(3, 50, 50));
        let demotion = step("acme/shop#members/c", Update, access_effects(4, 50, after));
        for (_, edges) in ordered_with_edges(vec![demotion, owner, first]) {
            assert_eq!(edges, [""; 0]);
        }
    }
}

/// `steps` in order, each with its edges and their reasons.
fn ordered_with_edges(mut steps: Vec<Step>) -> Vec<(String, Vec<String>)> {
    order::order_steps(Scope::Project, &caller(), &mut steps);
    let edge = |edge: &Edge| format!("{}: {}", edge.address, edge.reason);
    steps
        .iter()
        .map(|step| (step.address.to_string(), step.after.iter().map(edge).collect()))
        .collect()
}

/// Asserts that `first` comes before `second` for `reason`, in any order of the input.
fn assert_before(first: &Step, second: &Step, reason: &str) {
    let edge = format!("{}: {reason}", first.address);
    let expected = [(first.address.to_string(), vec![]), (second.address.to_string(), vec![edge])];
    for steps in [[first, second], [second, first]] {
        assert_eq!(ordered_with_edges(steps.into_iter().cloned().collect()), expected);
    }
}

/// CI/CD, as a capability.
const CI: Capability = Capability::Feature("builds_access_level");

#[test]
fn each_reason_orders_two_steps() {
    use Action::{Create, Delete, Update};
    use Capability::{Exists, Writable};
    let variable = step("acme/shop#variables/A@*", Create, vec![]);
    let provides = |capability| vec![Effect::provides(capability)];
    let revokes = |capability| vec![Effect::revokes(capability)];
    let creation = step("acme/shop", Create, provides(Exists));
    assert_before(&creation, &variable, "the project must exist");
    let unarchive = step("acme/shop#archived", Update, provides(Writable));
    assert_before(&unarchive, &variable, "an archived project cannot be changed");
    let archive = step("acme/shop#archived", Update, revokes(Writable));
    assert_before(&variable, &archive, "an archived project cannot be changed");
    let ci_on = step("acme/shop#settings", Update, provides(CI));
    assert_before(&ci_on, &variable, "CI/CD must be on");
    let ci_off = step("acme/shop#settings", Update, revokes(CI));
    assert_before(&variable, &ci_off, "CI/CD must be on");
    let removal = step("acme/shop#variables/A@prod", Delete, vec![]);
    assert_before(&variable, &removal, "create first, then remove");
    let new_owner = step("acme/shop#members/alice", Create, access_effects(3, 0, 50));
    let old_owner = step("acme/shop#members/bob", Update, access_effects(2, 50, 40));
    assert_before(
        &new_owner,
        &old_owner,
        "the new owner must be added before the old one is removed",
    );
    let owner_removal = step("acme/shop#members/bob", Delete, access_effects(2, 50, 0));
    assert_before(
        &new_owner,
        &owner_removal,
        "the new owner must be added before the old one is removed",
    );
    let root_step = step("acme/shop#members/root", Update, access_effects(CALLER_ID, 50, 40));
    assert_before(&variable, &root_step, "the token's owner needs this access until then");
}

#[test]
fn unrelated_steps_have_no_edge() {
    use Action::{Delete, Update};
    let hook = step("acme/shop#hooks/ci", Update, vec![]);
    let ci_on = step("acme/shop#settings", Update, vec![Effect::provides(CI)]);
    let removal = step("acme/shop#variables/A@*", Delete, vec![]);
    for (_, edges) in ordered_with_edges(vec![hook.clone(), removal.clone()]) {
        assert_eq!(edges, [] as [&str; 0]);
    }
    for (_, edges) in ordered_with_edges(vec![ci_on, hook]) {
        assert_eq!(edges, [] as [&str; 0]);
    }
    let demotion = step("acme/shop#members/bob", Update, access_effects(2, 50, 40));
    assert_eq!(ordered_with_edges(vec![demotion.clone(), removal])[0].1, [] as [&str; 0]);
    assert_eq!(
        ordered_with_edges(vec![demotion])[0].1,
        [] as [&str; 0],
        "there is no new owner to wait for"
    );
}

#[test]
fn steps_after_a_long_section_have_one_edge() {
    let entry = |i: usize| format!("acme/shop#variables/V{i}@*");
    let creates = (0..300).map(|i| step(&entry(i), Action::Create, vec![]));
    let removals = (300..600).map(|i| step(&entry(i), Action::Delete, vec![]));
    let archive =
        step("acme/shop#archived", Action::Update, vec![Effect::revokes(Capability::Writable)]);
    let settings = step("acme/shop#settings", Action::Update, vec![Effect::provides(CI)]);
    let mut steps: Vec<_> = removals.chain(creates).chain([archive, settings]).collect();
    order::order_steps(Scope::Project, &caller(), &mut steps);
    assert_eq!(steps.len(), 602);
    assert_eq!(steps[0].address.to_string(), "acme/shop#settings");
    assert_eq!(steps[601].address.to_string(), "acme/shop#archived");
    assert!(steps[1..301].iter().all(|step| step.action == Action::Create));
    assert_eq!(steps[1].after.len(), 1);
    let targets =
        |step: &Step| step.after.iter().map(|edge| edge.address.to_string()).collect::<Vec<_>>();
    assert_eq!(targets(&steps[301]), ["acme/shop#settings", "acme/shop#variables"]);
    assert_eq!(targets(&steps[601]), ["acme/shop#settings", "acme/shop#variables"]);
    let edges: usize = steps.iter().map(|step| step.after.len()).sum();
    assert_eq!(edges, 300 + 2 * 300 + 2);
    let json = serde_json::to_string(&steps).unwrap();
    assert!(json.len() < 600 * 700, "{} bytes for 602 steps", json.len());
}

/// A container that moves must not be more visible than its new group. Its visibility is narrowed
/// before the move, and widened after the move.
#[test]
fn narrower_visibility_precedes_a_move() {
    let move_step =
        step("acme/shop", Action::Update, vec![Effect::provides(Capability::AtDeclaredPath)]);
    let visibility_step = |before: Option<&str>, after: &str| {
        let before = before.map(str::to_owned);
        let effect = Effect::visibility(before, after);
        step("acme/shop#settings", Action::Update, vec![effect])
    };
    for (before, after) in [("public", "private"), ("public", "internal"), ("internal", "private")]
    {
        let reason = "it must not be more visible than the group it moves to";
        assert_before(&visibility_step(Some(before), after), &move_step, reason);
        let variable = step("acme/shop#variables/A@*", Action::Create, vec![]);
        assert_before(&move_step, &variable, "the project must be at its path");
        // Without a move, narrowing has no special order.
        let steps = ordered_with_edges(vec![variable, visibility_step(Some(before), after)]);
        assert!(steps.iter().all(|(_, after)| after.is_empty()), "{steps:?}");
    }
    for (before, after) in
        [(Some("private"), "public"), (Some("public"), "public"), (None, "private")]
    {
        assert_before(
            &move_step,
            &visibility_step(before, after),
            "the project must be at its path",
        );
    }
    let narrowed = visibility_step(Some("public"), "private");
    assert!(order::narrows_visibility(&narrowed));
    assert!(!order::narrows_visibility(&Step { action: Action::Create, ..narrowed }), "it is new");
}

/// A user becomes a member before a rule names the user, and is removed after the rule is gone.
#[test]
fn a_rule_follows_new_members_and_precedes_removed_ones() {
    let reason = "users need access before a rule can name them";
    let rule = step("acme/shop#protected_branches/main", Action::Update, vec![]);
    let new_member = step("acme/shop#members/alice", Action::Create, access_effects(3, 0, 30));
    let old_member = step("acme/shop#members/bob", Action::Update, access_effects(2, 30, 0));
    assert_before(&new_member, &rule, reason);
    assert_before(&rule, &old_member, reason);
    for (before, after) in [(10, 30), (30, 10), (0, 0)] {
        let level_step =
            step("acme/shop#members/carol", Action::Update, access_effects(4, before, after));
        for (_, after) in ordered_with_edges(vec![rule.clone(), level_step]) {
            assert_eq!(after, [] as [&str; 0]);
        }
    }
}

/// Rules of a group may name only maintainers.
#[test]
fn a_rule_of_a_group_follows_promotions_to_maintainer_and_precedes_demotions() {
    let rule = step("acme#protected_environments/production", Action::Update, vec![]);
    for (before, after, comes_first) in
        [(30, 40, Some(true)), (40, 30, Some(false)), (10, 30, None), (40, 50, None)]
    {
        let member = step("acme#members/alice", Action::Update, access_effects(3, before, after));
        for mut steps in [vec![rule.clone(), member.clone()], vec![member.clone(), rule.clone()]] {
            order::order_steps(Scope::Group, &caller(), &mut steps);
            let edges: Vec<_> = steps.iter().flat_map(|step| &step.after).collect();
            assert_eq!(edges.len(), usize::from(comes_first.is_some()), "{before} {after}");
            if let Some(comes_first) = comes_first {
                assert_eq!(steps[0].address == member.address, comes_first, "{before} {after}");
            }
        }
    }
}

#[test]
fn a_step_follows_the_entry_that_it_names() {
    use crate::operation::HOOK_CREATE;
    let branch =
        |name: &str| step(&format!("acme/shop#protected_branches/{name}"), Action::Create, vec![]);
    let rule_step = |named_address: &str| {
        let request = HOOK_CREATE.request().with_argument_by_path("id", named_address, None);
        let rule = step("acme/shop#approval_rules/A", Action::Create, vec![]);
        let (scope, action, calls) = (rule.scope, rule.action, vec![request.into()]);
        Step::new(scope, rule.address, action, rule.origin, rule.changes, calls)
    };
    let (a, b) = ("acme/shop#protected_branches/a", "acme/shop#protected_branches/b");
    for (named_address, expected) in [
        (a, vec![format!("{a}: what it names must exist")]),
        (b, vec![format!("{b}: what it names must exist")]),
        ("acme/shop#protected_branches/c", vec![]),
        // A container is not one of the created entries.
        ("acme/shop", vec![]),
    ] {
        let steps = vec![branch("a"), branch("b"), rule_step(named_address)];
        let rule_line =
            ordered_with_edges(steps).into_iter().find(|(at, _)| at.contains("approval_rules"));
        assert_eq!(rule_line.unwrap().1, expected, "{named_address}");
    }
}

/// The parent is created late, because it follows the branch.
#[test]
fn a_child_follows_a_parent_that_follows_another_entry() {
    use crate::operation::HOOK_CREATE;
    let branch = step("acme/shop#branches/b", Action::Create, vec![]);
    let effects = vec![Effect::follows_creation(branch.address.clone())];
    let parent = step("acme/shop#pipeline_schedules/n", Action::Create, effects);
    let child = step("acme/shop#pipeline_schedule_variables/n@A", Action::Create, vec![]);
    let request =
        HOOK_CREATE.request().with_argument_by_path("id", "acme/shop#pipeline_schedules/n", None);
    let calls = vec![request.into()];
    let child =
        Step::new(child.scope, child.address, child.action, child.origin, child.changes, calls);
    for mut steps in
        [vec![branch.clone(), parent.clone(), child.clone()], vec![child, parent, branch]]
    {
        order::order_steps(Scope::Project, &caller(), &mut steps);
        let sections: Vec<_> = steps.iter().map(|step| step.address.section.unwrap()).collect();
        assert_eq!(sections, ["branches", "pipeline_schedules", "pipeline_schedule_variables"]);
        assert_eq!(steps[2].after.len(), 1);
    }
}
