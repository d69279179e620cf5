//! Tests of holds: held differences are shown, not written, and ignored by guards.

use jiff::civil::date;
use serde_json::json;

use super::{super::Holds, *};
use crate::desired::testing;

/// Settings with these holds until 2027-01-10.
fn settings_with_holds(holds: &[&str]) -> PlanSettings {
    let texts: Vec<_> = holds.iter().map(|hold| format!("{hold}@2027-01-10")).collect();
    let result = Holds::parse(texts.iter().map(String::as_str), date(2027, 1, 5));
    let (holds, warnings) = result.expect("holds");
    assert!(warnings.is_empty());
    PlanSettings { holds, ..settings(&[]) }
}

/// The moves of containers, each declared by its scope, its path and its former path.
fn moves_from(declared: &[(Scope, &str, &str)]) -> Arc<Moves> {
    let container = |(scope, path, former): &(Scope, &str, &str)| {
        let mut container = testing::container(*scope, path, &Json::Null, Unlisted::Report);
        container.lifecycle.former_paths = vec![testing::former_path(former)];
        container
    };
    Arc::new(Moves::from_containers(&declared.iter().map(container).collect::<Vec<_>>()))
}

/// A rename of a held object, or of a group above it, does not escape the hold.
#[test]
fn a_hold_also_applies_to_former_paths() {
    let (declared, live) = differing_project();
    for (moves, hold) in [
        (&[(Scope::Project, "acme/shop", "acme/old")][..], "acme/old"),
        (&[(Scope::Project, "acme/shop", "acme/old")], "ACME/o*"),
        (&[(Scope::Group, "acme", "former")], "former/shop"),
        (&[(Scope::Group, "acme", "former")], "former/**#*"),
        (
            &[(Scope::Group, "acme", "former"), (Scope::Project, "acme/shop", "former/old")],
            "former/old",
        ),
    ] {
        let settings = PlanSettings { moves: moves_from(moves), ..settings_with_holds(&[hold]) };
        let container_plan = plan_container(&declared, &live, &settings);
        assert!(container_plan.steps.is_empty(), "{hold}: {:?}", container_plan.steps);
        let mut plan = Plan::default();
        plan.add(&declared, container_plan, live.clone());
        let plan = plan.finish(&Extent::default());
        assert_eq!(settings.holds.unmatched_warnings(&plan, &settings.moves), [], "{hold}");
        let other_settings =
            PlanSettings { moves: moves_from(moves), ..settings_with_holds(&["acme/other"]) };
        assert_eq!(plan_container(&declared, &live, &other_settings).steps.len(), 5);
    }
}

/// The problem of a project in a group that is held before it exists names the hold.
#[test]
fn a_project_in_a_held_new_group_names_the_hold() {
    let (mut declared, mut live) = differing_project();
    declared.creation_policy = CreationPolicy::Allowed(DeclaredFields::default());
    live.presence = Presence::MissingNamespace("acme".into());
    for (hold, expected) in [
        ("acme", "the group `acme` is held until 2027-01-10, so this run does not create it"),
        ("other", "no group or user `acme` exists, or the token cannot see it"),
    ] {
        let plan = plan_container(&declared, &live, &settings_with_holds(&[hold]));
        let messages: Vec<_> = plan.problems.iter().map(|problem| &*problem.message).collect();
        assert_eq!(messages, [expected], "{hold}");
    }
}

/// A project that differs in three sections, with entries to create, change and remove.
fn differing_project() -> (Container, LiveContainer) {
    let sections = json!({
        "settings": {"merge_method": "ff"},
        "variables": [
            {"key": "A", "environment_scope": "*", "value": "new"},
            {"key": "B", "environment_scope": "*", "value": "b"},
        ],
        "hooks": [],
    });
    let declared = shop(&sections, Unlisted::Delete);
    let live = json!({
        "settings": {"merge_method": "merge"},
        "variables": [
            {
                "key": "A", "environment_scope": "*", "value": "old", "variable_type": "env_var",
                "protected": false, "masked": false, "raw": false,
            },
            {"key": "C", "environment_scope": "*", "value": "c"},
        ],
        "hooks": [{"url": "https://a.example.org"}],
    });
    let live = live_container(&declared, &live);
    (declared, live)
}

fn addresses(steps: &[Step]) -> Vec<String> {
    let mut addresses: Vec<_> = steps.iter().map(|step| step.address.to_string()).collect();
    addresses.sort();
    addresses
}

#[test]
fn every_step_is_either_planned_or_held() {
    let (declared, live) = differing_project();
    let step_addresses = addresses(&plan_container(&declared, &live, &settings(&[])).steps);
    assert_eq!(step_addresses.len(), 5, "{step_addresses:?}");
    let hook = step_addresses.iter().find(|address| address.contains("#hooks/")).expect("a hook");
    for (holds, held_count) in [
        (&["other/**"][..], 0),
        (&["acme/shop#settings"], 1),
        (&["acme/shop#variables"], 3),
        (&["acme/*#variables/A@*"], 1),
        // No manifest lists this variable, and `unlisted: delete` would remove it.
        (&["acme/shop#variables/C@*"], 1),
        (&["**#hooks", "acme/shop#settings"], 2),
        (&[hook], 1),
        (&["ACME/shop"], 5),
        (&["acme/shop", "**#hooks"], 5),
    ] {
        let settings = settings_with_holds(holds);
        let plan = plan_container(&declared, &live, &settings);
        assert_eq!(plan.watched.len(), held_count, "{holds:?}");
        let mut all_addresses = addresses(&plan.steps);
        all_addresses.extend(addresses(&plan.watched));
        all_addresses.sort();
        assert_eq!(all_addresses, step_addresses, "{holds:?}");
        let is_held = |step: &&Step| settings.held_until(&step.address).is_some();
        assert!(plan.watched.iter().all(|step| is_held(&step)), "{holds:?}");
        assert!(!plan.steps.iter().any(|step| is_held(&step)), "{holds:?}");
    }
}

#[test]
fn held_differences_are_reported_by_container_or_section() {
    let (declared, live) = differing_project();
    for (holds, named_texts) in [
        (&["acme/shop", "**#hooks"][..], &["acme/shop"][..]),
        (&["**#variables"], &["acme/shop#variables"]),
        (&["acme/shop#variables/*"], &["variables/A@*", "variables/B@*", "variables/C@*"]),
        (&["acme/shop#badges"], &[]),
    ] {
        let plan = plan_container(&declared, &live, &settings_with_holds(holds));
        let addresses: Vec<_> = plan.held.iter().map(|held| held.address.to_string()).collect();
        assert_eq!(addresses.len(), named_texts.len(), "{addresses:?}");
        assert!(
            addresses.iter().zip(named_texts).all(|(held, named)| held.ends_with(named)),
            "{addresses:?}"
        );
    }
}

#[test]
fn a_held_step_counts_for_no_guard_and_is_a_known_difference() {
    let (declared, live) = differing_project();
    let refused_addresses = |plan: &ContainerPlan| -> Vec<_> {
        plan.refusals.iter().map(|refusal| refusal.address.to_string()).collect()
    };
    assert_eq!(
        refused_addresses(&plan_container(&declared, &live, &settings(&[]))),
        ["acme/shop#hooks"]
    );
    let settings = settings_with_holds(&["acme/shop#hooks"]);
    assert!(refused_addresses(&plan_container(&declared, &live, &settings)).is_empty());
    let plan = |settings: &PlanSettings| {
        let mut plan = Plan::default();
        plan.add(&declared, plan_container(&declared, &live, settings), live.clone());
        plan.finish(&Extent::default())
    };
    assert!(plan(&settings).has_differences(Strictness::Declared), "the rest differs");
    let held_plan = plan(&settings_with_holds(&["acme/**"]));
    assert!(
        !held_plan.has_differences(Strictness::Declared)
            && held_plan.has_differences(Strictness::Unlisted)
            && held_plan.unapplied_paths().len() == 1
    );
    assert_eq!(held_plan.counts().calls, 0);
}

#[test]
fn a_held_unlisted_entry_is_a_known_difference() {
    let declared = shop(&json!({"hooks": []}), Unlisted::Fail);
    let live = live_container(&declared, &json!({"hooks": [{"url": "https://a.example.org"}]}));
    for (holds, differs) in [(&["other"][..], true), (&["acme/shop#hooks"], false)] {
        let mut plan = Plan::default();
        plan.add(
            &declared,
            plan_container(&declared, &live, &settings_with_holds(holds)),
            live.clone(),
        );
        assert_eq!(
            plan.finish(&Extent::default()).has_differences(Strictness::Declared),
            differs,
            "{holds:?}"
        );
    }
}

#[test]
fn a_held_switch_also_holds_the_steps_that_need_it() {
    let sections = json!({"archived": {"archived": false}, "settings": {"merge_method": "ff"}});
    let declared = shop(&sections, Unlisted::Report);
    let sections = json!({"archived": {"archived": true}, "settings": {"merge_method": "merge"}});
    let Presence::Existing(target, facts) = live_container(&declared, &sections).presence else {
        panic!("it is there")
    };
    let facts = ContainerFacts { is_archived: true, ..facts };
    let live = LiveContainer {
        presence: Presence::Existing(target, facts),
        ..live_container(&declared, &sections)
    };
    let unheld_plan = plan_container(&declared, &live, &settings(&[]));
    assert_eq!(unheld_plan.steps.len(), 2, "{unheld_plan:?}");
    let held_plan = plan_container(&declared, &live, &settings_with_holds(&["acme/shop#archived"]));
    assert!(held_plan.steps.is_empty(), "{held_plan:?}");
    let mut plan = Plan::default();
    plan.add(&declared, held_plan, live);
    let plan = plan.finish(&Extent::default());
    assert!(
        plan.unapplied_paths().len() == 1 && !plan.has_differences(Strictness::Declared),
        "{plan:?}"
    );
}

/// A project can have only one issue tracker. Therefore a hold on the old or the new tracker covers
/// both.
#[test]
fn a_hold_covers_both_exclusive_entries() {
    let tracker = |slug: &str| json!({"slug": slug, "project_url": "https://i.example.org", "issues_url": "https://i.example.org/:id"});
    let sections = json!({"integrations": [
        tracker("youtrack"),
        {"slug": "external-wiki", "external_wiki_url": "https://wiki.example.org"},
    ]});
    let declared = shop(&sections, Unlisted::Delete);
    let properties = tracker("redmine");
    let live = live_container(
        &declared,
        &json!({"integrations": [{"slug": "redmine", "active": true, "properties": properties}]}),
    );
    for (hold, held_entries) in [
        ("acme/shop#integrations/redmine", &["redmine", "youtrack"][..]),
        ("acme/shop#integrations/youtrack", &["redmine", "youtrack"]),
        ("acme/shop#integrations/external-wiki", &["external-wiki"]),
    ] {
        let plan = plan_container(&declared, &live, &settings_with_holds(&[hold]));
        let expected: Vec<_> =
            held_entries.iter().map(|held| format!("acme/shop#integrations/{held}")).collect();
        assert_eq!(addresses(&plan.watched), expected, "{hold}");
        assert_eq!(plan.steps.len() + plan.watched.len(), 3, "{hold}");
        let mut reported_addresses: Vec<_> =
            plan.held.iter().map(|held| held.address.to_string()).collect();
        reported_addresses.sort();
        assert_eq!(reported_addresses, expected, "{hold}");
    }
}

#[test]
fn a_hold_that_matches_nothing_is_a_warning() {
    let (declared, live) = differing_project();
    let settings = settings_with_holds(&["acme/shop#hooks", "acme/shop#hoks", "acme/shp"]);
    let mut plan = Plan::default();
    plan.add(&declared, plan_container(&declared, &live, &settings), live);
    let warnings =
        settings.holds.unmatched_warnings(&plan.finish(&Extent::default()), &settings.moves);
    let messages: Vec<_> = warnings.into_iter().map(|warning| warning.message).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].contains("acme/shop#hoks@2027-01-10") && messages[1].contains("acme/shp@"));
}

/// Without the replacement of the share, no rule has to be repaired.
#[test]
fn a_held_rule_of_a_replaced_share_holds_all_repairs() {
    let rows = json!([{"access_level": "maintainer"}, {"group": "acme/leads"}]);
    let declared = json!({
        "shares": [{"group": "acme/leads", "group_access": "maintainer"}],
        "protected_branches": [{"name": "main", "allowed_to_push": rows}],
        "protected_tags": [{"name": "v*", "allowed_to_create": rows}],
    });
    let declared = shop(&declared, Unlisted::Report);
    let levels =
        json!([{"id": 1, "access_level": 40}, {"id": 2, "access_level": 40, "group_id": 4}]);
    let live = json!({
        "shares": [{"group_id": 4, "group_full_path": "acme/leads", "group_access_level": 30, "expires_at": null}],
        "protected_branches": [{
            "name": "main", "push_access_levels": levels, "merge_access_levels": [{"id": 3, "access_level": 40}],
            "allow_force_push": false, "code_owner_approval_required": false,
        }],
        "protected_tags": [{"name": "v*", "create_access_levels": levels}],
    });
    let mut live = live_container(&declared, &live);
    live.names.insert(NamedObject::Group, "acme/leads", Some(4));
    assert_eq!(plan_container(&declared, &live, &settings(&[])).steps.len(), 3);
    for section in ["protected_branches", "protected_tags"] {
        let settings = settings_with_holds(&[&format!("acme/shop#{section}")]);
        let plan = plan_container(&declared, &live, &settings);
        assert_eq!(addresses(&plan.steps), [""; 0], "{section}");
    }
}
