//! Tests of the planner with live states made by hand, without a service.

use std::{sync::Arc, time::Duration};

use serde_json::json;

use super::*;
use crate::{
    address::{Address, Selector},
    desired::{
        CreationPolicy, DeclaredFields, Desired, Guard, Moves, Unlisted,
        testing::{container as container_of, fields, origin, shop},
    },
    diff::{GuardRefusal, Note, Shown},
    field::{NamedObject, Scope},
    kind::{
        Capability, ContainerFacts, Effect, Id, LiveNamespace, NamespaceOwner, Target,
        testing::object,
    },
    live::{
        ExtraFact, ListedContainer, LiveEntries, Presence,
        testing::{CALLER_ID, caller, live_container, target},
    },
    origin::Sourced,
    secret::{Reference, Secrets},
    value::Json,
};

mod approve;
mod connect;
mod copies;
mod estimate;
mod guards;
mod holds;
mod layers;
mod order;
mod reach;

pub(in crate::plan) fn settings(secrets: &[(&str, &str)]) -> PlanSettings {
    let mut resolved_secrets =
        Secrets::new("/", secrets.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
    let references: Vec<_> =
        ["A", "B"].iter().map(|name| Reference::Env((*name).to_owned())).collect();
    resolved_secrets.resolve(&references);
    PlanSettings::for_run(caller(), Arc::new(resolved_secrets), &Desired::default())
}

fn plan_sections(sections: &Json, live_sections: &Json) -> ContainerPlan {
    let declared = shop(sections, Unlisted::Report);
    plan_container(
        &declared,
        &live_container(&declared, live_sections),
        &settings(&[("A", "from-env-a")]),
    )
}

/// The steps of a plan, one per line.
fn step_lines(plan: &ContainerPlan) -> Vec<String> {
    let line = |step: &Step| {
        let fields: Vec<_> = step.changes.iter().map(|c| &*c.field).collect();
        format!("{:?} {} {}", step.action, step.address, fields.join(" "))
    };
    plan.steps.iter().map(line).collect()
}

#[test]
fn a_plan_keeps_equal_parts_of_steps_once_and_few_live_states() {
    let sections = json!({"variables": [{"key": "A", "value": "x"}]});
    let numbered_path = |index: usize| format!("acme/p{index:05}");
    let mut plan = Plan::default();
    for index in 0..=MAX_KEPT_LIVE_STATES {
        let path = numbered_path(index);
        let declared = container_of(Scope::Project, &path, &sections, Unlisted::Report);
        let live = live_container(&declared, &json!({"variables": []}));
        let container_plan = plan_container(&declared, &live, &settings(&[]));
        plan.add(&declared, container_plan, live);
    }
    let plan = plan.finish(&Extent::default());
    let [first, .., last] = &plan.steps[..] else { panic!("no steps") };
    assert!(Arc::ptr_eq(&first.calls[0].fields, &last.calls[0].fields));
    for (one, other) in first.changes.iter().zip(&last.changes) {
        assert!(Arc::ptr_eq(&one.field, &other.field));
        assert!(Arc::ptr_eq(&one.before, &other.before) && Arc::ptr_eq(&one.after, &other.after));
    }
    let is_kept = |at| plan.live(&numbered_path(at)).is_some();
    assert!(is_kept(MAX_KEPT_LIVE_STATES - 1) && !is_kept(MAX_KEPT_LIVE_STATES));
}

#[test]
fn only_declared_fields_that_differ_are_changed() {
    let cases = [
        (
            json!({"visibility": "private"}),
            json!({"visibility": "private", "merge_method": "ff"}),
            "",
        ),
        (
            json!({"merge_method": "ff"}),
            json!({"visibility": "private", "merge_method": "merge"}),
            "merge_method",
        ),
        (json!({"description": null}), json!({"description": ""}), ""),
        (json!({"description": ""}), json!({"description": null}), ""),
        (json!({"description": null}), json!({"description": "old"}), "description"),
        (json!({"topics": ["a", "b"]}), json!({"topics": ["b", "a"]}), ""),
        (json!({"topics": ["a"]}), json!({"topics": ["b", "a"]}), "topics"),
        (json!({"public_builds": true}), json!({"public_jobs": true}), ""),
        (json!({"public_builds": true}), json!({"public_jobs": false}), "public_builds"),
        (json!({"issues_enabled": true}), json!({"issues_access_level": "private"}), ""),
        (
            json!({"issues_enabled": true}),
            json!({"issues_access_level": "disabled"}),
            "issues_enabled",
        ),
        (
            json!({"container_expiration_policy": {"enabled": true}}),
            json!({"container_expiration_policy": {"enabled": true, "cadence": "1d", "next_run_at": "2099-01-01"}}),
            "",
        ),
        (
            json!({"container_expiration_policy": {"enabled": true, "cadence": "7d"}}),
            json!({"container_expiration_policy": {"enabled": true, "cadence": "1d"}}),
            "container_expiration_policy",
        ),
        // The URL shows that a picture exists, but not its content.
        (json!({"avatar": {"file": "a.png"}}), json!({"avatar_url": null}), "avatar"),
        (json!({"avatar": {"file": "a.png"}}), json!({"avatar_url": "https://x/b.png"}), ""),
        (json!({"avatar": null}), json!({"avatar_url": "https://x/b.png"}), "avatar"),
        (json!({"avatar": null}), json!({"avatar_url": null}), ""),
        (json!({"some_new_key": [1]}), json!({"some_new_key": [1]}), ""),
        (json!({"some_new_key": [1]}), json!({"some_new_key": [2]}), "some_new_key"),
    ];
    for (declared, live, expected) in cases {
        let plan = plan_sections(&json!({"settings": declared}), &json!({"settings": live}));
        let expected_lines: Vec<_> = if expected.is_empty() {
            vec![]
        } else {
            vec![format!("Update acme/shop#settings {expected}")]
        };
        assert_eq!(step_lines(&plan), expected_lines, "{declared} against {live}");
    }
}

#[test]
fn a_field_missing_in_the_response_is_unknown() {
    let find_reason = |declared: Json, live: Json| {
        let plan = plan_sections(&json!({"settings": declared}), &json!({"settings": live}));
        (step_lines(&plan).len(), plan.notes.first().map(|note| note.reason.clone()))
    };
    // A boolean that the response lacks is neither true nor false.
    assert_eq!(
        find_reason(json!({"lfs_enabled": true}), json!({})),
        (0, Some(Reason::NotReturned))
    );
    // The API reference does not list the field as a returned field.
    assert_eq!(
        find_reason(json!({"emails_disabled": true}), json!({})),
        (0, Some(Reason::CannotVerify))
    );
    assert_eq!(
        find_reason(json!({"emails_disabled": true}), json!({"emails_disabled": false})),
        (1, None)
    );
    // A response may omit a null. In a tier without the field, its absence proves nothing.
    assert_eq!(find_reason(json!({"description": "x"}), json!({})), (1, None));
    assert_eq!(find_reason(json!({"description": null}), json!({})), (0, None));
    assert_eq!(
        find_reason(json!({"issues_template": "x"}), json!({})),
        (0, Some(Reason::NotReturned))
    );
    // The service does not show the issue template while issues are off.
    let off = json!({"issues_access_level": "disabled"});
    assert_eq!(find_reason(json!({"issues_template": null}), off), (0, None));
    assert_eq!(
        find_reason(json!({"issues_template": "x"}), json!({"approvals_before_merge": 0})),
        (1, None)
    );
}

#[test]
fn a_known_secret_is_compared_and_never_shown() {
    let declared = json!({"variables": [
        {"key": "SAME", "environment_scope": "*", "value": {"env": "A"}},
        {"key": "OTHER", "environment_scope": "*", "value": {"env": "A"}, "masked": true},
        {"key": "UNSET", "environment_scope": "*", "value": {"env": "B"}},
    ]});
    let live = json!({"variables": [
        {"key": "SAME", "environment_scope": "*", "value": "from-env-a", "variable_type": "env_var"},
        {"key": "OTHER", "environment_scope": "*", "value": "live-secret", "masked": true, "variable_type": "env_var"},
        {"key": "UNSET", "environment_scope": "*", "value": "live-secret"},
    ]});
    let plan = plan_sections(&declared, &live);
    assert_eq!(step_lines(&plan), ["Update acme/shop#variables/OTHER@* value"]);
    let change = &plan.steps[0].changes[0];
    assert_eq!((&*change.before, &*change.after), (&Shown::Hidden, &Shown::Secret("env:A".into())));
    assert_eq!(plan.notes[0].reason, Reason::SecretMissing { secrets: vec!["env:B".into()] });
    let everything = format!("{plan:?}") + &serde_json::to_string(&plan.steps).unwrap();
    assert!(
        !everything.contains("from-env-a") && !everything.contains("live-secret"),
        "{everything}"
    );
}

#[test]
fn a_secret_that_the_service_would_refuse_to_mask_is_a_problem() {
    let variable = |masked: bool| json!({"variables": [{"key": "K", "environment_scope": "*", "value": {"env": "A"}, "masked": masked}]});
    let declared = shop(&variable(true), Unlisted::Report);
    let plan = plan_container(
        &declared,
        &live_container(&declared, &json!({"variables": []})),
        &settings(&[("A", "short")]),
    );
    assert_eq!(
        (plan.problems[0].code, plan.problems[0].message.as_str()),
        ("masked-value", "a masked value must have at least 8 characters")
    );
    assert_eq!(plan_sections(&variable(true), &json!({"variables": []})).problems, []);
}

#[test]
fn a_masked_literal_is_not_shown() {
    let declared = json!({"variables": [{"key": "K", "environment_scope": "*", "value": "in-git-but-masked", "masked": true}]});
    let plan = plan_sections(&declared, &json!({"variables": []}));
    assert!(!serde_json::to_string(&plan.steps).unwrap().contains("in-git"), "{:?}", plan.steps);
}

#[test]
fn unlisted_entries_are_reported_deleted_or_ignored() {
    let sections = json!({"members": [{"user": "Alice", "access_level": "developer"}]});
    let members = json!({"members": [
        {"id": 1, "username": "alice", "access_level": 30},
        {"id": 2, "username": "bob", "access_level": 30},
        {"id": 3, "username": "project_1_bot", "access_level": 40},
        {"id": CALLER_ID, "username": "root", "access_level": 50},
    ]});
    let run = |unlisted| {
        let declared = shop(&sections, unlisted);
        let plan = plan_container(&declared, &live_container(&declared, &members), &settings(&[]));
        (
            step_lines(&plan),
            plan.notes.iter().map(|n| format!("{:?} {}", n.reason, n.address)).collect::<Vec<_>>(),
        )
    };
    // The access of the run itself, and bots, need no declaration.
    let (steps, notes) = run(Unlisted::Report);
    assert_eq!((steps.len(), notes), (0, vec!["Unlisted acme/shop#members/bob".into()]));
    let (steps, notes) = run(Unlisted::Fail);
    assert_eq!((steps.len(), notes), (0, vec!["UnlistedFails acme/shop#members/bob".into()]));
    let (steps, notes) = run(Unlisted::Delete);
    assert_eq!(steps, ["Delete acme/shop#members/bob access_level"]);
    assert_eq!(notes.len(), 2, "the bot and the caller are left alone: {notes:?}");
    assert_eq!(run(Unlisted::Ignore), (vec![], vec![]));
}

#[test]
fn an_incomplete_list_leads_to_no_step() {
    let declared = shop(
        &json!({"variables": [{"key": "A", "environment_scope": "*", "value": "x"}]}),
        Unlisted::Delete,
    );
    for (collection, reason) in [
        (LiveEntries::Partial("cut".into()), "cut"),
        (LiveEntries::Unreadable("403".into()), "403"),
        (LiveEntries::NoContainer, ""),
    ] {
        let mut live = live_container(&declared, &json!({}));
        live.sections.insert("variables", collection);
        let plan = plan_container(&declared, &live, &settings(&[]));
        let incomplete: Vec<_> = plan.incomplete.iter().map(|i| &*i.reason.message).collect();
        assert_eq!(
            (plan.steps.len(), incomplete),
            if reason.is_empty() { (1, vec![]) } else { (0, vec![reason]) }
        );
    }
}

#[test]
fn a_missing_project_is_created_only_where_the_manifest_allows_it() {
    let mut declared = shop(
        &json!({"settings": {"visibility": "private"}, "members": [{"user": "bob", "access_level": "guest"}], "archived": {"archived": true},
            "variables": [{"key": "A", "environment_scope": "*", "value": "x"}]}),
        Unlisted::Delete,
    );
    let namespace = Some(LiveNamespace { id: Id::Known(5), owner: NamespaceOwner::Group });
    let target = Target { id: None, namespace, ..target(&declared) };
    let mut live = live_container(&declared, &json!({}));
    live.presence = Presence::Missing(target);
    let plan = plan_container(&declared, &live, &settings(&[]));
    assert_eq!((plan.steps.len(), plan.problems[0].code), (0, "missing-project"));

    declared.creation_policy = CreationPolicy::Allowed(DeclaredFields::default());
    let plan = plan_container(&declared, &live, &settings(&[]));
    assert_eq!(plan.problems[0].code, "unknown-user");
    live.names.insert(NamedObject::User, "bob", Some(9));
    let plan = plan_container(&declared, &live, &settings(&[]));
    let expected = [
        "Create acme/shop visibility",
        "Create acme/shop#members/bob access_level",
        "Create acme/shop#variables/A@* environment_scope key value",
        "Create acme/shop#archived archived",
    ];
    assert_eq!(step_lines(&plan), expected);
    assert!(plan.steps[1..].iter().all(|step| step.after[0].address == declared.address()));
    assert_eq!(plan.steps[3].after.len(), 3, "archiving comes last");
}

#[test]
fn every_code_of_a_problem_has_a_page() {
    for code in [
        "acknowledgement",
        "deleting-group",
        "deleting-project",
        "guard",
        "inherited-access",
        "missing-field",
        "missing-group",
        "missing-namespace",
        "missing-project",
        "missing-secret",
        "moved-group",
        "moved-project",
        "nearly-the-same",
        "unknown-group",
        "unknown-user",
    ] {
        assert!(crate::diagnostic::codes::find_code(code).is_some(), "{code}");
    }
}

#[test]
fn a_moved_project_is_a_problem_that_names_the_new_path() {
    let declared = shop(&json!({}), Unlisted::Report);
    let mut live = live_container(&declared, &json!({}));
    live.presence = Presence::Redirected { new_path: Some("acme/store".into()) };
    let plan = plan_container(&declared, &live, &settings(&[]));
    assert_eq!(
        (plan.problems[0].code, plan.problems[0].help.as_deref()),
        ("moved-project", Some("write `acme/store` instead of `acme/shop`"))
    );
}

#[test]
fn a_hook_is_found_by_its_present_or_former_url() {
    let made = "2026-01-31T12:00:00.000Z";
    let hook =
        |id: u64, url: &str| json!({"id": id, "url": url, "push_events": true, "created_at": made});
    let declare_hooks = |other_fields: Json| {
        let mut hook = json!({"name": "ci", "url": "https://new.example.org", "push_events": true});
        hook.as_object_mut().unwrap().extend(object(other_fields));
        json!({"hooks": [hook]})
    };
    let declared = declare_hooks(json!({"previously": ["https://old.example.org"]}));
    let plan = plan_sections(&declared, &json!({"hooks": [hook(1, "https://old.example.org")]}));
    assert_eq!(step_lines(&plan), ["Update acme/shop#hooks/ci url"]);
    let plan = plan_sections(
        &declare_hooks(json!({})),
        &json!({"hooks": [hook(1, "https://old.example.org")]}),
    );
    assert_eq!(step_lines(&plan), ["Create acme/shop#hooks/ci push_events url"]);
    // A copy created after a lost response is removed; the oldest entry stays.
    let copies =
        json!({"hooks": [hook(4, "https://new.example.org"), hook(3, "https://new.example.org")]});
    let plan = plan_sections(&declare_hooks(json!({})), &copies);
    assert_eq!(
        step_lines(&plan)[0].split(' ').take(2).collect::<Vec<_>>(),
        ["Delete", "acme/shop#hooks/ci@4"]
    );
    assert_eq!(plan.steps.len(), 1);
    // If two entries differ, undrift does not choose one.
    let variants = json!({"hooks": [hook(4, "https://new.example.org"), {"id": 5, "url": "https://new.example.org", "push_events": false}]});
    let plan = plan_sections(&declare_hooks(json!({})), &variants);
    assert_eq!((plan.steps.len(), plan.incomplete.len()), (0, 1));
    assert!(
        plan.notes.iter().all(|note| note.reason != Reason::Unlisted),
        "one of them is in a manifest: {:?}",
        plan.notes
    );
}

#[test]
fn a_hook_with_an_unknown_url_is_neither_created_nor_unlisted() {
    let declared = shop(&json!({"hooks": [{"name": "ci", "url": {"env": "B"}}]}), Unlisted::Delete);
    let live =
        live_container(&declared, &json!({"hooks": [{"id": 1, "url": "https://x.example.org"}]}));
    let plan = plan_container(&declared, &live, &settings(&[]));
    assert_eq!((plan.steps.len(), plan.problems.len()), (0, 0));
    assert!(plan.notes.iter().any(|note| matches!(note.reason, Reason::SecretMissing { .. })));
}

#[test]
fn the_token_is_sent_with_a_changed_url() {
    let declared = json!({"hooks": [{"name": "ci", "url": "https://new.example.org", "previously": ["https://old.example.org"], "token": {"env": "A"}}]});
    let plan =
        plan_sections(&declared, &json!({"hooks": [{"id": 1, "url": "https://old.example.org"}]}));
    assert_eq!(step_lines(&plan), ["Update acme/shop#hooks/ci url token"]);
    assert!(plan.steps[0].calls[0].fields.contains(&"token".to_owned()));
}

/// The live state for `declared` in an archived project.
fn archived_live(declared: &Container, sections: &Json) -> LiveContainer {
    let mut live = live_container(declared, sections);
    if let Presence::Existing(_, facts) = &mut live.presence {
        facts.is_archived = true;
    }
    live
}

#[test]
fn an_archived_project_is_skipped_and_differs_unless_declared_archived() {
    let raw_live = json!({"settings": {"merge_method": "merge"}, "archived": {"archived": true}});
    for (sections, reason, differs) in [
        (json!({"settings": {"merge_method": "ff"}}), Reason::ArchivedByHand, true),
        (
            json!({"settings": {"merge_method": "ff"}, "archived": {"archived": true}}),
            Reason::Archived,
            false,
        ),
    ] {
        let declared = shop(&sections, Unlisted::Report);
        let live = archived_live(&declared, &raw_live);
        let plan = plan_container(&declared, &live, &settings(&[]));
        let notes: Vec<_> = plan.notes.iter().map(|note| note.reason.clone()).collect();
        assert_eq!((plan.steps.len(), notes), (0, vec![reason]), "{sections}");
        assert!(plan.not_compared_cause.is_some());
        let unarchived_plan =
            plan_container(&declared, &live_container(&declared, &raw_live), &settings(&[]));
        assert_eq!(unarchived_plan.not_compared_cause, None);
        let whole_plan = Plan::for_test(plan.findings, 1);
        assert_eq!(
            (
                whole_plan.has_differences(Strictness::Declared),
                whole_plan.has_differences(Strictness::Unlisted)
            ),
            (differs, differs)
        );
    }
}

/// The steps with their conditions.
fn conditions(plan: &ContainerPlan) -> Vec<(String, Option<&'static str>)> {
    plan.steps.iter().map(|step| (step.address.to_string(), step.possible)).collect()
}

#[test]
fn unarchiving_makes_the_other_steps_possible_except_removals() {
    let sections = json!({
        "archived": {"archived": false}, "settings": {"merge_method": "ff"},
        "variables": [
            {"key": "A", "environment_scope": "*", "value": "x"},
            {"key": "OLD", "environment_scope": "*", "state": "absent"},
        ],
        "hooks": [],
    });
    let declared = shop(&sections, Unlisted::Delete);
    let live_fields = json!({
        "archived": {"archived": true}, "settings": {"merge_method": "merge"}, "hooks": [],
    });
    let mut live = archived_live(&declared, &live_fields);
    live.sections.insert("variables", LiveEntries::Unreadable("answered 403".into()));
    let plan = plan_container(&declared, &live, &settings(&[]));
    let condition = Some("if it differs once it can be read");
    assert_eq!(
        conditions(&plan),
        [
            ("acme/shop#archived".to_owned(), None),
            ("acme/shop#settings".to_owned(), None),
            ("acme/shop#variables/A@*".to_owned(), condition),
        ]
    );
    assert_eq!((plan.incomplete.len(), plan.steps[2].action), (0, Action::Create));
    let waits = |step: &Step| step.after.iter().any(|edge| edge.address == plan.steps[0].address);
    assert!(plan.steps[1..].iter().all(waits), "everything waits for it");
}

#[test]
fn a_section_follows_the_switch_that_it_needs() {
    let variable = json!([{"key": "A", "environment_scope": "*", "value": "x"}]);
    let plan = |declared: Json, live: Json, is_read: bool| {
        let sections = json!({"settings": declared, "variables": variable});
        let declared = shop(&sections, Unlisted::Delete);
        let mut live = live_container(&declared, &json!({"settings": live, "variables": []}));
        if !is_read {
            live.sections.insert("variables", LiveEntries::Unreadable("answered 403".into()));
        }
        plan_container(&declared, &live, &settings(&[]))
    };
    let on = || json!({"builds_access_level": "enabled"});
    let off = || json!({"builds_access_level": "disabled"});
    let reasons = |plan: &ContainerPlan| -> Vec<_> {
        plan.notes.iter().map(|note| (note.address.to_string(), note.reason.clone())).collect()
    };
    // The switch is off and declared off: an unreadable section is closed, not incomplete.
    let closed_plan = plan(off(), off(), false);
    let reason = Reason::Closed { why: "CI/CD must be on".into() };
    assert_eq!(reasons(&closed_plan), [("acme/shop#variables".to_owned(), reason)]);
    assert_eq!((closed_plan.steps.len(), closed_plan.incomplete.len()), (0, 0));
    assert!(
        closed_plan.is_section_closed("variables") && !closed_plan.is_section_closed("settings")
    );
    let whole_plan = Plan::for_test(closed_plan.findings, 1);
    assert_eq!(
        (
            whole_plan.has_differences(Strictness::Declared),
            whole_plan.has_differences(Strictness::Unlisted)
        ),
        (false, false)
    );
    // The switch is off and declared on: the steps are possible steps.
    let opened_plan = plan(on(), off(), false);
    assert_eq!(
        conditions(&opened_plan),
        [
            ("acme/shop#settings".to_owned(), None),
            ("acme/shop#variables/A@*".to_owned(), Some("if it differs once it can be read")),
        ]
    );
    assert_eq!(opened_plan.steps[1].after[0].reason, "CI/CD must be on");
    assert_eq!(opened_plan.incomplete, []);
    // The switch is on, or is not declared: an unreadable section is incomplete.
    for declared in [on(), json!({"merge_method": "ff"})] {
        let unread_plan = plan(declared, json!({"builds_access_level": "enabled"}), false);
        assert_eq!(unread_plan.incomplete.len(), 1);
        assert!(unread_plan.steps.iter().all(|step| step.possible.is_none()));
    }
    // A section that could be read is compared as usual.
    let read_plan = plan(off(), off(), true);
    assert_eq!(
        step_lines(&read_plan),
        ["Create acme/shop#variables/A@* environment_scope key value"]
    );
}

#[test]
fn the_default_branch_waits_for_the_first_branch() {
    for (create, setting_fields, waits) in [
        (json!({}), json!({"default_branch": "trunk"}), true),
        (json!({"initialize_with_readme": true}), json!({"default_branch": "trunk"}), false),
        (json!({"template_name": "rails"}), json!({"default_branch": "trunk"}), true),
        (json!({}), json!({"default_branch": "trunk", "import_url": "https://h/x.git"}), true),
        (json!({}), json!({"visibility": "private"}), false),
    ] {
        let mut declared = shop(&json!({"settings": setting_fields}), Unlisted::Report);
        declared.creation_policy = CreationPolicy::Allowed(fields(&create));
        let namespace = Some(LiveNamespace { id: Id::Known(3), owner: NamespaceOwner::Group });
        let target = Target { id: None, namespace, ..target(&declared) };
        let live = LiveContainer::with_presence(Presence::Missing(target), Duration::ZERO);
        let plan = plan_container(&declared, &live, &settings(&[]));
        let has_note = plan.notes.iter().any(|note| {
            matches!(note.reason, Reason::Waits { .. }) && note.fields == ["default_branch"]
        });
        assert_eq!(has_note, waits, "{create} {setting_fields}");
        let is_sent = plan.steps[0]
            .requests()
            .any(|request| request.body_names().any(|name| name == "default_branch"));
        let is_declared = setting_fields.get("default_branch").is_some();
        assert_eq!(is_sent, is_declared && !waits, "{create} {setting_fields}");
        assert_eq!(is_sent, plan.steps[0].changes.iter().any(|c| &*c.field == "default_branch"));
    }
}

/// The branches of a fork come from its source, while the run waits for them.
#[test]
fn the_default_branch_of_a_fork_is_set_in_the_same_run() {
    // The source may have another one than the service's default.
    for branch in ["trunk", "main"] {
        let sections = json!({"settings": {"default_branch": branch, "merge_method": "ff"}});
        let mut declared = shop(&sections, Unlisted::Report);
        declared.creation_policy = CreationPolicy::Allowed(fields(&json!({"fork_of": "acme/up"})));
        let namespace = Some(LiveNamespace { id: Id::Known(3), owner: NamespaceOwner::Group });
        let target = Target { id: None, namespace, ..target(&declared) };
        let mut live = LiveContainer::with_presence(Presence::Missing(target), Duration::ZERO);
        live.names.insert(NamedObject::Project, "acme/up", Some(4));
        let plan = plan_container(&declared, &live, &settings(&[]));
        let condition = Some("unless the source of the project already has it");
        let expected =
            [("acme/shop".to_owned(), None), ("acme/shop#settings".to_owned(), condition)];
        assert_eq!(conditions(&plan), expected, "{:#?}", plan.findings);
        let changed = |step: &Step| -> Vec<_> {
            step.changes.iter().map(|change| change.field.to_string()).collect()
        };
        assert_eq!(changed(&plan.steps[0]), ["fork_of", "merge_method"]);
        assert_eq!(changed(&plan.steps[1]), ["default_branch"]);
        let what = "it fails without a branch";
        assert!(
            matches!(&plan.notes[..], [Note { reason: Reason::Besides { what: text }, .. }]
                if text.starts_with(what)),
            "{:?}",
            plan.notes
        );
    }
}

#[test]
fn unlisted_entries_are_differences_only_by_policy() {
    let sections = json!({"members": []});
    let members = json!({"members": [
        {"id": 2, "username": "bob", "access_level": 30},
        {"id": 3, "username": "project_1_bot", "access_level": 40},
    ]});
    for (unlisted, unlisted_count, differs, strict) in [
        (Unlisted::Report, 1, false, true),
        (Unlisted::Fail, 1, true, true),
        (Unlisted::Ignore, 0, false, false),
    ] {
        let declared = shop(&sections, unlisted);
        let plan = plan_container(&declared, &live_container(&declared, &members), &settings(&[]));
        assert_eq!(plan.steps.len(), 0);
        let whole_plan = Plan::for_test(plan.findings, 1);
        let result = (
            whole_plan.unlisted_count(),
            whole_plan.has_differences(Strictness::Declared),
            whole_plan.has_differences(Strictness::Unlisted),
        );
        assert_eq!(result, (unlisted_count, differs, strict), "{unlisted:?}");
    }
}

#[test]
fn the_strictness_decides_which_notes_are_differences() {
    let note = |reason| Note {
        address: Address::container("acme/shop".into()),
        reason,
        fields: Vec::new(),
        origin: None,
    };
    let secrets = vec!["env:A".to_owned()];
    for (reason, strict, unverified) in [
        (Reason::CannotVerify, false, true),
        (Reason::NotReturned, false, true),
        (Reason::SecretMissing { secrets }, true, true),
        (Reason::Unlisted, true, true),
        (Reason::Archived, false, false),
        (Reason::Protected { why: "bot user".into() }, false, false),
        (Reason::Closed { why: "CI/CD must be on".into() }, false, false),
        (Reason::Waits { why: "until then".into() }, false, false),
    ] {
        let findings = Findings { notes: vec![note(reason.clone())], ..Findings::default() };
        let plan = Plan::for_test(findings, 1);
        let differs = [Strictness::Declared, Strictness::Unlisted, Strictness::Unverified]
            .map(|strictness| plan.has_differences(strictness));
        assert_eq!(differs, [false, strict, unverified], "{reason:?}");
    }
}

/// A container that is missing in a snapshot may have been renamed. Then `create: true` would create a
/// second container.
#[test]
fn a_snapshot_never_advises_a_creation() {
    let declared = shop(&json!({"variables": []}), Unlisted::Report);
    let missing = Presence::Missing(Target { id: None, ..target(&declared) });
    for presence in [missing, Presence::MissingNamespace("acme".into())] {
        let live = LiveContainer::with_presence(presence, Duration::ZERO);
        for is_offline in [false, true] {
            let settings = PlanSettings { is_offline, ..settings(&[]) };
            let help =
                plan_container(&declared, &live, &settings).problems[0].help.clone().unwrap();
            assert_eq!(help.contains("create: true"), !is_offline, "{help}");
            assert_eq!(help.contains("renamed"), is_offline, "{help}");
        }
    }
}

#[test]
fn an_unselected_creation_is_a_problem_with_help() {
    let mut declared = shop(&json!({"variables": []}), Unlisted::Report);
    declared.creation_policy = CreationPolicy::Unselected { imports_contents: false };
    let presence = Presence::Missing(Target { id: None, ..target(&declared) });
    let plan = plan_container(
        &declared,
        &LiveContainer::with_presence(presence, Duration::ZERO),
        &settings(&[]),
    );
    let problem = &plan.problems[0];
    assert_eq!(
        (problem.code, problem.help.as_deref(), problem.is_missing()),
        ("missing-project", Some("select it as a whole to create it: `--only acme/shop`"), true)
    );
}

/// Nothing is planned either if only a part of the container is selected.
#[test]
fn nothing_is_planned_until_imported_contents_have_arrived() {
    let mut declared = shop(&json!({"variables": [{"key": "A", "value": "x"}]}), Unlisted::Report);
    let fork_creation = CreationPolicy::Allowed(fields(&json!({"fork_of": "acme/up"})));
    let plain_creation = CreationPolicy::Allowed(fields(&json!({"initialize_with_readme": true})));
    let raw = |status: &str| {
        object(json!({"id": 1, "import_status": status, "import_error": "no space"}))
    };
    for (create, arrives) in [
        (fork_creation.clone(), true),
        (CreationPolicy::Unselected { imports_contents: true }, true),
        (plain_creation, false),
        (CreationPolicy::Forbidden, false),
    ] {
        declared.creation_policy = create;
        let plan_with_status = |status: &str| {
            let facts = declared.read_facts(&raw(status));
            let mut live = live_container(&declared, &json!({"variables": []}));
            live.presence = Presence::Existing(target(&declared), facts);
            plan_container(&declared, &live, &settings(&[]))
        };
        assert_eq!(plan_with_status("finished").steps.len(), 1);
        let (running, failed) = (plan_with_status("started"), plan_with_status("failed"));
        let steps = usize::from(!arrives);
        assert_eq!((running.steps.len(), failed.steps.len()), (steps, steps), "{arrives}");
        assert_eq!(running.incomplete.len() + failed.problems.len(), 2 * usize::from(arrives));
        assert_eq!(running.import_state.is_some(), arrives);
        if arrives {
            let problem = &failed.problems[0];
            assert_eq!(problem.code, "import-failed");
            assert_eq!(problem.message, "the import of `acme/shop` failed: no space");
        }
    }
}

#[test]
fn a_group_is_planned_like_a_project() {
    let declared = container_of(
        Scope::Group,
        "acme",
        &json!({"members": [{"user": "bob", "access_level": "maintainer"}]}),
        Unlisted::Delete,
    );
    let mut live = live_container(
        &declared,
        &json!({"members": [
            {"id": 2, "username": "bob", "access_level": 30},
            {"id": 3, "username": "alice", "access_level": 50},
            {"id": 4, "username": "carol", "access_level": 50},
            {"id": 5, "username": "dora", "access_level": 50},
            {"id": 6, "username": "group_9_bot", "access_level": 50},
            {"id": CALLER_ID, "username": "root", "access_level": 50},
        ]}),
    );
    let mut settings = settings(&[]);
    settings.guard_limits = GuardLimits { count: 5, share: 1.0 };
    let plan = plan_container(&declared, &live, &settings);
    assert_eq!(
        step_lines(&plan),
        [
            "Update acme#members/bob access_level",
            "Delete acme#members/alice access_level",
            "Delete acme#members/carol access_level",
            "Delete acme#members/dora access_level",
        ]
    );
    let call = &plan.steps[0].calls[0];
    assert_eq!((call.method, &*call.path), ("PUT", "/groups/1/members/2"));
    assert_eq!(plan.questions, [], "nothing is above a group at the top");
    let mut whole_plan = Plan::default();
    whole_plan.add(&declared, plan, live.clone());
    assert_eq!((whole_plan.groups, whole_plan.projects), (1, 0));

    live.presence = Presence::Missing(Target { id: None, ..target(&declared) });
    let plan = plan_container(&declared, &live, &settings);
    assert_eq!(
        (plan.problems[0].code, &*plan.problems[0].message, plan.problems[0].is_missing()),
        ("missing-group", "the group `acme` does not exist, or the token cannot see it", true)
    );
    live.presence = Presence::Redirected { new_path: Some("acme2".into()) };
    assert_eq!(plan_container(&declared, &live, &settings).problems[0].code, "moved-group");
}

/// A project marked for deletion is restored, if allowed, before anything else in it changes.
#[test]
fn a_project_marked_for_deletion_is_restored() {
    let sections = json!({"members": [{"user": "bob", "access_level": "owner"}]});
    let bob = json!({"members": [{"id": 2, "username": "bob", "access_level": 40}]});
    for (scope, path) in [(Scope::Group, "acme"), (Scope::Project, "acme/shop")] {
        let declared = container_of(scope, path, &sections, Unlisted::Ignore);
        let mut live = live_container(&declared, &bob);
        let Presence::Existing(_, facts) = &mut live.presence else { unreachable!() };
        facts.deletion_mark = Some(Some("2026-01-31".to_owned()));
        let plan = plan_container(&declared, &live, &settings(&[]));
        let member = format!("Update {path}#members/bob access_level");
        assert_eq!(step_lines(&plan), [format!("Update {path} state"), member]);
        assert_eq!(&*plan.steps[1].after[0].address.to_string(), path);
        let mut settings = settings(&[]);
        settings.caller.is_administrator = false;
        let plan = plan_container(&declared, &live, &settings);
        assert_eq!(
            (plan.steps.len(), &*plan.problems[0].message),
            (0, &*format!("the {} `{path}` is marked for deletion since 2026-01-31", scope.noun()))
        );
    }
}

/// A project with four sections, its live state after the plan was applied, and the plan.
fn plan_four_sections() -> (Container, Json, ContainerPlan) {
    let sections = json!({
        "settings": {"merge_method": "ff"},
        "variables": [{"key": "A", "environment_scope": "*", "value": "new"}],
        "hooks": [{"url": "https://h", "push_events": true, "token": {"env": "A"}}],
        "push_rule": {"commit_message_regex": "^b"},
    });
    let live_json = json!({
        "settings": {"merge_method": "merge"},
        "variables": [{"key": "A", "environment_scope": "*", "value": "old", "variable_type": "file"}],
        "hooks": [{"id": 1, "url": "https://h", "push_events": false}],
        "push_rule": {"id": 1, "commit_message_regex": "^a"},
    });
    let declared = shop(&sections, Unlisted::Report);
    let plan = plan_container(
        &declared,
        &live_container(&declared, &live_json),
        &settings(&[("A", "from-env-a")]),
    );
    assert_eq!(plan.steps.len(), 4);
    let applied_state = json!({
        "settings": {"merge_method": "ff"},
        "variables": [{"key": "A", "environment_scope": "*", "value": "new"}],
        "hooks": [{"id": 1, "url": "https://h", "push_events": true}],
        "push_rule": {"id": 1, "commit_message_regex": "^b"},
    });
    (declared, applied_state, plan)
}

/// Applies `change` to the live project, and plans again. Returns for each step of
/// [`plan_four_sections`] the reason why the new plan does not prove that the step was applied.
fn unconfirmed_causes(change: impl FnOnce(&mut LiveContainer)) -> Vec<Option<String>> {
    let (declared, applied_state, plan) = plan_four_sections();
    let mut live = live_container(&declared, &applied_state);
    change(&mut live);
    let new_plan = plan_container(&declared, &live, &settings(&[("A", "from-env-a")]));
    plan.steps
        .iter()
        .map(|step| new_plan.unconfirmed_cause(step).map(|cause| cause.to_string()))
        .collect()
}

#[test]
fn a_step_counts_as_done_only_after_a_complete_read() {
    assert_eq!(unconfirmed_causes(|_| ()), [None, None, None, None]);
    let repeat_cause = |text: &str| vec![Some(text.to_owned()); 4];
    let causes_with_presence = |presence: Presence| {
        unconfirmed_causes(|live| *live = LiveContainer::with_presence(presence, Duration::ZERO))
    };
    let container = shop(&json!({}), Unlisted::Report);
    let missing_target = Target { id: None, ..target(&container) };
    assert_eq!(
        causes_with_presence(Presence::Unreadable("answered 502".into())),
        repeat_cause("answered 502")
    );
    assert_eq!(
        causes_with_presence(Presence::Missing(missing_target)),
        repeat_cause("the project `acme/shop` does not exist")
    );
    assert_eq!(
        causes_with_presence(Presence::Redirected { new_path: Some("acme/b".into()) }),
        repeat_cause("the project `acme/shop` is now `acme/b`")
    );
    let archived_causes = unconfirmed_causes(|live| {
        if let Presence::Existing(_, facts) = &mut live.presence {
            facts.is_archived = true;
        }
    });
    assert_eq!(archived_causes, repeat_cause("the project is archived"));
    for (section, index) in [("settings", 0), ("variables", 1), ("hooks", 2), ("push_rule", 3)] {
        for (collection, cause) in [
            (LiveEntries::Partial("cut".into()), "cut"),
            (LiveEntries::Unreadable("answered 403".into()), "answered 403"),
        ] {
            let mut expected = vec![None; 4];
            expected[index] = Some(cause.to_owned());
            assert_eq!(
                unconfirmed_causes(|live| drop(live.sections.insert(section, collection))),
                expected,
                "{section}"
            );
        }
        assert_eq!(
            unconfirmed_causes(|live| drop(live.sections.remove(section)))[index].as_deref(),
            Some("not read"),
            "{section}"
        );
    }
}

#[test]
fn a_response_without_the_changed_field_proves_nothing() {
    let (declared, mut applied_state, _) = plan_four_sections();
    applied_state["push_rule"] = json!({"id": 1});
    applied_state["settings"] = json!({});
    let live_state = live_container(&declared, &applied_state);
    let causes = unconfirmed_causes(|live| *live = live_state);
    assert_eq!(causes[0].as_deref(), Some("the service's answer lacks `merge_method`"));
    assert_eq!(causes[3].as_deref(), Some("the service's answer lacks `commit_message_regex`"));
    assert_eq!(causes[1..3], [None, None]);
}

#[test]
fn a_write_only_field_is_not_verifiable() {
    let (declared, applied_state, plan) = plan_four_sections();
    let live = live_container(&declared, &applied_state);
    let mut settings = settings(&[("A", "from-env-a")]);
    settings.resend_selectors = vec![Selector::parse("**#hooks").unwrap()];
    let resending_plan = plan_container(&declared, &live, &settings);
    settings.resend_selectors = Vec::new();
    let new_plan = plan_container(&declared, &live, &settings);
    assert_eq!(step_lines(&resending_plan), ["Update acme/shop#hooks/https%3A%2F%2Fh token"]);
    assert_eq!(new_plan.unverifiable_fields(&resending_plan.steps[0]), ["token"]);
    assert!(
        plan.steps.iter().all(|step| new_plan.unverifiable_fields(step).is_empty()),
        "a hook's flag can be seen"
    );
}

#[test]
fn a_project_is_archived_only_if_everything_else_was_compared() {
    let sections = json!({"archived": {"archived": true}, "settings": {"merge_method": "ff"}, "variables": []});
    let declared = shop(&sections, Unlisted::Report);
    let approve_archiving = |change: &dyn Fn(&mut LiveContainer)| {
        let mut live = live_container(
            &declared,
            &json!({"archived": {"archived": false}, "settings": {"merge_method": "merge"}, "variables": []}),
        );
        change(&mut live);
        let mut plan = Plan::default();
        let container_plan = plan_container(&declared, &live, &settings(&[]));
        let last_effects = container_plan.steps.last().map(|step| step.effects.clone());
        assert_eq!(
            last_effects,
            Some(vec![Effect::revokes(Capability::Writable)]),
            "it comes last"
        );
        plan.add(&declared, container_plan, live);
        let (approved, skipped) = plan.approve(ApprovalPolicy::default()).unwrap();
        (approved.steps().count(), skipped)
    };
    assert_eq!(approve_archiving(&|_| ()), (2, vec![]));
    let make_unread = |live: &mut LiveContainer| {
        drop(live.sections.insert("variables", LiveEntries::Unreadable("answered 403".into())));
    };
    assert_eq!(
        approve_archiving(&make_unread),
        (0, vec![SkippedContainer { address: declared.address(), steps: 2 }]),
        "what could not be read now could not be changed afterwards"
    );
}

#[test]
fn a_creation_does_not_wait_for_a_failed_user_lookup() {
    let sections = json!({"members": [{"user": "bob", "access_level": "guest"}], "variables": [{"key": "A", "environment_scope": "*", "value": "x"}]});
    let mut declared = shop(&sections, Unlisted::Report);
    declared.creation_policy = CreationPolicy::Allowed(DeclaredFields::default());
    let target = Target {
        id: None,
        namespace: Some(LiveNamespace { id: Id::Known(3), owner: NamespaceOwner::Group }),
        ..target(&declared)
    };
    let mut live = LiveContainer::with_presence(Presence::Missing(target), Duration::ZERO);
    live.sections.insert("members", LiveEntries::Unreadable("answered 403".into()));
    let plan = plan_container(&declared, &live, &settings(&[]));
    assert_eq!(
        step_lines(&plan),
        ["Create acme/shop ", "Create acme/shop#variables/A@* environment_scope key value"]
    );
    assert_eq!(
        plan.incomplete.iter().map(|unread| unread.address.to_string()).collect::<Vec<_>>(),
        ["acme/shop#members"]
    );
}

/// When a share is removed, the service also removes the group's grants in rules. The run restores
/// only declared grants.
#[test]
fn a_removed_share_names_the_undeclared_grants_it_takes_away() {
    let row = |id: u64, group: u64| json!({"id": id, "access_level": 40, "group_id": group});
    let branch = |name: &str, push: Json| json!({"name": name, "push_access_levels": push, "merge_access_levels": [row(9, 4)], "code_owner_approval_required": false});
    let live = json!({
        "shares": [{"group_id": 4, "group_full_path": "acme/leads", "group_access_level": 20, "expires_at": null}],
        "protected_branches": [
            branch("main", json!([row(1, 4)])), branch("other", json!([row(2, 5)])), branch("gone", json!([])),
        ],
    });
    let lost_grants = |share: Json, other_fields: Json| {
        let mut declared = json!({"shares": [share]});
        declared.as_object_mut().unwrap().extend(object(other_fields));
        let plan = plan_sections(&declared, &live);
        let lost_note = plan.notes.iter().find_map(|note| match &note.reason {
            Reason::TakesAlong { grants_of } => Some((note.address.to_string(), grants_of)),
            _ => None,
        });
        lost_note.map(|(share, addresses)| {
            assert_eq!(share, "acme/shop#shares/acme%2Fleads");
            addresses.iter().map(ToString::to_string).collect::<Vec<_>>()
        })
    };
    let share = |level: &str| json!({"group": "acme/leads", "group_access": level});
    let absent = json!({"group": "acme/leads", "state": "absent"});
    let unread_sections = ["protected_branches", "protected_environments", "protected_tags"];
    let unread_addresses =
        Some(unread_sections.map(|section| format!("acme/shop#{section}")).to_vec());
    assert_eq!(lost_grants(share("reporter"), json!({})), None, "it stays");
    assert_eq!(lost_grants(share("developer"), json!({})), unread_addresses);
    assert_eq!(lost_grants(absent.clone(), json!({})), unread_addresses);
    let main_rule = json!({"name": "main", "allowed_to_push": [{"access_level": "maintainer"}]});
    let rules = json!({"protected_branches": [main_rule, {"name": "gone", "state": "absent"}]});
    let rule_addresses = |names: &[&str]| {
        let branches = names.iter().map(|name| format!("acme/shop#protected_branches/{name}"));
        let others = ["environments", "tags"].map(|noun| format!("acme/shop#protected_{noun}"));
        Some(branches.chain(others).collect())
    };
    assert_eq!(lost_grants(absent, rules.clone()), rule_addresses(&["main", "other"]));
    let mut all_rules = rules;
    all_rules["protected_branches"][0]["allowed_to_merge"] =
        json!([{"access_level": "maintainer"}]);
    assert_eq!(lost_grants(share("developer"), all_rules), rule_addresses(&["other"]));
}

/// A project that is shared with a group, and a rule that lets the group push. `other_fields` are
/// further live fields of the rule.
fn project_with_share_and_rule(other_fields: Json) -> Json {
    let mut rule = json!({
        "name": "main", "allow_force_push": false,
        "push_access_levels": [{"id": 1, "access_level": 40}, {"id": 2, "access_level": 40, "group_id": 4}],
        "merge_access_levels": [{"id": 3, "access_level": 40}],
    });
    rule.as_object_mut().unwrap().extend(object(other_fields));
    json!({
        "shares": [{"group_id": 4, "group_full_path": "acme/leads", "group_access_level": 30, "expires_at": null}],
        "protected_branches": [rule],
    })
}

#[test]
fn a_share_is_not_replaced_if_a_rule_with_its_group_was_not_read() {
    let declared = json!({
        "shares": [{"group": "acme/leads", "group_access": "maintainer"}],
        "protected_branches": [{"name": "main", "allowed_to_push": [{"access_level": "maintainer"}, {"group": "acme/leads"}]}],
    });
    let declared = shop(&declared, Unlisted::Report);
    let plan = |other_fields| {
        let mut live = live_container(&declared, &project_with_share_and_rule(other_fields));
        live.names.insert(NamedObject::Group, "acme/leads", Some(4));
        plan_container(&declared, &live, &settings(&[]))
    };
    let whole_plan = plan(json!({"code_owner_approval_required": true}));
    let conditions: Vec<_> = whole_plan.steps.iter().map(|step| step.possible.is_some()).collect();
    assert_eq!((conditions, whole_plan.incomplete.len()), (vec![false, true], 0));
    let unread_entries: Vec<_> =
        plan(json!({})).incomplete.iter().map(|unread| unread.address.to_string()).collect();
    assert_eq!(unread_entries, ["acme/shop#protected_branches/main"]);
}

/// The tier decides whether a protection is edited or replaced, and a response may hide the tier.
#[test]
fn a_step_planned_in_another_way_exceeds_the_plan() {
    let declared = json!({"protected_branches": [{"name": "main", "allowed_to_push": [{"access_level": "no_access"}]}]});
    let level = json!([{"id": 1, "access_level": 40}]);
    let plan_branch = |live: Json| {
        let plan = plan_sections(&declared, &json!({"protected_branches": live}));
        plan.findings.steps.into_iter().next().unwrap()
    };
    let free = json!({"name": "main", "allow_force_push": false, "push_access_levels": level, "merge_access_levels": level});
    let mut premium = free.clone();
    premium["code_owner_approval_required"] = true.into();
    let (replacement, edit, creation) =
        (plan_branch(json!([free])), plan_branch(json!([premium])), plan_branch(json!([])));
    assert!(replacement.replaces && !edit.replaces);
    assert!(replacement.is_subset_of(&replacement) && edit.is_subset_of(&edit));
    assert!(!replacement.is_subset_of(&edit) && !edit.is_subset_of(&replacement));
    assert!(!replacement.is_subset_of(&creation) && edit.is_subset_of(&creation));
    let step = |value: &str| {
        let declared = json!({"settings": {"description": value}});
        let live = json!({"settings": {"description": "old"}});
        plan_sections(&declared, &live).findings.steps.remove(0)
    };
    assert!(step("new").is_subset_of(&step("new")) && !step("new").is_subset_of(&step("other")));
}

#[test]
fn planning_time_grows_linearly_with_entries() {
    crate::steps::assert_linear_growth("entries of a project", |n| {
        let hooks = |from: usize, push: bool| -> Vec<Json> {
            let hook_url = |i: usize| format!("https://h{i}.example.org");
            let new_hook = |i| json!({"id": i + 1, "url": hook_url(i), "push_events": push});
            (from..from + n).map(new_hook).collect()
        };
        let declared: Vec<Json> = (0..n)
            .map(|at| json!({"url": format!("https://h{at}.example.org"), "push_events": true}))
            .collect();
        // Half of the hooks change, half are created, and unlisted ones are removed.
        let declared = shop(&json!({"hooks": declared}), Unlisted::Delete);
        let live = live_container(&declared, &json!({"hooks": hooks(n / 2, false)}));
        let plan = plan_container(&declared, &live, &settings(&[]));
        assert_eq!(plan.steps.len(), n + n / 2);
    });
}

/// An unread object affects only its own step.
#[test]
fn an_unread_object_affects_only_its_own_step() {
    let plan = plan_sections(&json!({"hooks": []}), &json!({"hooks": []}));
    let address = |entry: &str| {
        Address::container("acme/shop".into()).with_section("hooks").with_entry(entry)
    };
    let new_incomplete = |entry: &str, why: &'static str| Incomplete {
        address: address(entry),
        reason: Cause::new(why),
        origin: None,
    };
    let problem = |entry: &str, why: &str| {
        Problem::new(&address(entry), "ambiguous", why.to_owned(), "", &origin(1))
    };
    let findings = Findings {
        incomplete: vec![
            new_incomplete("a", "two are alike"),
            new_incomplete("b", "it lacks its id"),
        ],
        problems: vec![problem("c", "no such user"), problem("d", "no such group")],
        ..plan.findings
    };
    let plan = ContainerPlan { findings, ..plan };
    for (entry, expected) in [
        ("a", Some("two are alike")),
        ("b", Some("it lacks its id")),
        ("c", Some("no such user")),
        ("d", Some("no such group")),
        ("e", None),
    ] {
        let (action, none) = (Action::Update, Vec::new);
        let step = Step::new(Scope::Project, address(entry), action, origin(1), none(), Vec::new());
        let cause = plan.unconfirmed_cause(&step).map(|doubt| doubt.to_string());
        assert_eq!(cause.as_deref(), expected, "{entry}");
    }
}

/// The undeclared projects below a group are noted with their state.
#[test]
fn an_undeclared_project_is_noted_with_its_state() {
    let mut declared = container_of(Scope::Group, "acme", &json!({}), Unlisted::Report);
    let project = |path: &str, archived: bool, deleting: bool| {
        let deleting = deleting.then_some(None);
        ListedContainer {
            path: path.into(),
            facts: ContainerFacts {
                is_archived: archived,
                deletion_mark: deleting,
                ..ContainerFacts::default()
            },
        }
    };
    let mut live = live_container(&declared, &json!({}));
    live.projects_below = Some(Ok(vec![
        project("acme/a", false, false),
        project("acme/b", true, false),
        project("acme/c", false, true),
        project("acme/d", true, true),
    ]));
    let marked = Some("marked for deletion");
    for (policy, fails) in [(Unlisted::Report, false), (Unlisted::Fail, true)] {
        declared.lifecycle.unlisted_projects = Some(Sourced { value: policy, origin: origin(3) });
        let plan = plan_container(&declared, &live, &settings(&[]));
        let found_reasons: Vec<_> = plan.notes.iter().map(|note| note.reason.clone()).collect();
        let expected = [None, Some("archived"), marked, marked].map(|state| match fails {
            true => Reason::UndeclaredFails { state },
            false => Reason::Undeclared { state },
        });
        assert_eq!(found_reasons, expected);
    }
    // Excluded projects are not noted.
    declared.lifecycle.excluded_selectors = vec![Selector::parse("ACME/[bc]").unwrap()];
    let plan = plan_container(&declared, &live, &settings(&[]));
    let addresses: Vec<_> = plan.notes.iter().map(|note| note.address.to_string()).collect();
    assert_eq!(addresses, ["acme/a", "acme/d"]);
}

/// A change of somebody else's schedule makes the token's user its owner, which no field shows.
#[test]
fn a_side_effect_is_noted_at_its_own_step() {
    let schedule = |name: &str, owner: u64| json!({"id": owner, "description": name, "ref": "main", "cron": "0 4 * * *", "cron_timezone": "UTC", "active": true, "owner": {"id": owner}});
    let declare = |name: &str| json!({"description": name, "ref": "main", "cron": "0 5 * * *"});
    let declared = json!({"pipeline_schedules": [declare("a"), declare("b")]});
    let live =
        json!({"pipeline_schedules": [schedule("a", CALLER_ID), schedule("b", CALLER_ID + 1)]});
    let plan = plan_sections(&declared, &live);
    assert_eq!(plan.steps.len(), 2, "{plan:?}");
    let is_effect = |note: &&Note| matches!(note.reason, Reason::Besides { .. });
    let noted_addresses: Vec<_> =
        plan.notes.iter().filter(is_effect).map(|note| &note.address).collect();
    let step_b = plan.steps.iter().find(|step| step.address.to_string().contains("/b")).unwrap();
    assert_eq!(noted_addresses, [&step_b.address]);
}

/// The service refuses a rule that names a group whose share is below developer.
#[test]
fn a_rule_that_names_a_group_with_a_low_share_is_a_problem() {
    for (level, is_low) in [("reporter", true), ("developer", false)] {
        let share = json!({"group": "acme/leads", "group_access": level});
        let rows = json!([{"access_level": "maintainer"}, {"group": "acme/leads"}]);
        let rule = json!({"name": "main", "allowed_to_push": rows});
        let sections = json!({"shares": [share], "protected_branches": [rule]});
        let declared = shop(&sections, Unlisted::Report);
        let mut live = live_container(&declared, &json!({"shares": [], "protected_branches": []}));
        live.names.insert(NamedObject::Group, "acme/leads", Some(4));
        let plan = plan_container(&declared, &live, &settings(&[]));
        let codes: Vec<_> = plan.problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, if is_low { vec!["low-share"] } else { vec![] });
        assert_eq!(plan.steps.len(), if is_low { 1 } else { 2 }, "{plan:?}");
    }
}

/// A level or an object of another type is no user, even if a user has the same name.
#[test]
fn only_fields_that_name_users_make_a_removed_member_a_problem() {
    for (row, is_named) in [
        (json!({"user": "Maintainer"}), true),
        (json!({"access_level": "maintainer"}), false),
        (json!({"group": "maintainer"}), false),
        (json!({"deploy_key": "maintainer"}), false),
    ] {
        let rule = json!({"name": "main", "allowed_to_push": [row]});
        let sections = json!({"members": [], "protected_branches": [rule]});
        let declared = shop(&sections, Unlisted::Delete);
        let members = json!([{"id": 3, "username": "maintainer", "access_level": 30}]);
        let mut live =
            live_container(&declared, &json!({"members": members, "protected_branches": []}));
        live.names.insert(NamedObject::User, "maintainer", Some(3));
        live.names.insert(NamedObject::Group, "maintainer", Some(4));
        live.levels_above = Some(std::sync::Arc::new([(1, 50)].into()));
        let plan = plan_container(&declared, &live, &settings(&[]));
        let codes: Vec<_> = plan.problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes.contains(&"low-share"), is_named, "{row}: {plan:?}");
    }
}
