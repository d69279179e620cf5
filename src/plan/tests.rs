//! The planner against hand-made live states: every rule of comparing, guarding and ordering,
//! without a service.

use std::{sync::Arc, time::Duration};

use serde_json::json;

use super::*;
use crate::{
    diff::Shown,
    kind::Namespace,
    live::Facts,
    manifest::{Entry, Section, State, Unlisted},
    origin::{Layer, Sourced},
    page,
    secret::Reference,
    value::{Json, Object, Value},
};

const CALLER: u64 = 7;

fn origin(line: u32) -> Origin {
    Origin { file: "shop.yaml".into(), line, column: 1, layer: Layer::Project }
}

fn object(value: &Json) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

/// A declared value: `{"env": NAME}` is a secret, `{"file": PATH}` a file to upload, everything
/// else is plain.
fn value(json: &Json) -> Value {
    let text = |name: &str| json.get(name).and_then(Json::as_str);
    match (text("env"), text("file")) {
        (Some(name), _) => Value::Secret(Reference::Env(name.into())),
        (_, Some(path)) => Value::File(path.into()),
        _ => json.clone().into(),
    }
}

fn entry(section: &'static str, json: &Json) -> Entry {
    let mut json = object(json);
    let state = if json.remove("state").is_some() { State::Absent } else { State::Present };
    let fields = json
        .iter()
        .map(|(n, v)| (n.clone(), Sourced { value: value(v), origin: origin(3) }))
        .collect::<Declared>();
    let key = kinds::of_section(section).unwrap().key(&json);
    Entry { key, origin: origin(2), state, fields }
}

/// A declared project; a section that is a list has its entries in an array.
fn declared(sections: &Json, unlisted: Unlisted) -> manifest::Project {
    let sections = object(sections).into_iter().map(|(name, entries)| {
        let kind = kinds::of_section(&name).unwrap();
        let entries = match entries {
            Json::Array(entries) => entries.iter().map(|e| entry(kind.section(), e)).collect(),
            one => vec![entry(kind.section(), &one)],
        };
        (
            kind.section(),
            Section { kind, origin: origin(1), unlisted, unlisted_origin: origin(9), entries },
        )
    });
    manifest::Project {
        path: "acme/shop".into(),
        origin: origin(1),
        create: None,
        sections: sections.collect(),
    }
}

/// What the service has of `project`, as it would answer.
fn live(project: &manifest::Project, sections: &Json) -> Live {
    let target = Target { path: project.path.clone(), id: Some(1), namespace: None };
    let sections = object(sections).into_iter().map(|(name, raw)| {
        let kind = kinds::of_section(&name).unwrap();
        let names: Vec<_> = project.sections[kind.section()]
            .entries
            .iter()
            .flat_map(|e| e.fields.keys().map(str::to_owned))
            .collect();
        let read = |raw: &Object| kind.read(raw, &|name| names.iter().any(|n| n == name));
        let collection = match raw {
            Json::Array(raw) => Collection::Complete(
                page::whole(raw.iter().map(object).collect()).map(|raw| read(&raw)),
            ),
            Json::Null => Collection::One(None),
            raw => Collection::One(Some(read(&object(&raw)))),
        };
        (kind.section(), collection)
    });
    let facts = Facts { target, archived: false, personal_owner: None };
    Live { sections: sections.collect(), ..Live::of(Presence::Here(facts), Duration::ZERO) }
}

fn settings(secrets: &[(&str, &str)]) -> Settings {
    let mut found =
        Secrets::new("/", secrets.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
    let references: Vec<_> =
        ["A", "B"].iter().map(|name| Reference::Env((*name).to_owned())).collect();
    found.resolve(&references);
    Settings {
        caller: Caller { id: CALLER, username: "root".into(), administrator: true },
        secrets: Arc::new(found),
        selection: Selection::default(),
        resend: Vec::new(),
        limits: Limits::default(),
        acknowledged: Vec::new(),
    }
}

fn plan_of(sections: &Json, live_sections: &Json) -> ProjectPlan {
    let declared = declared(sections, Unlisted::Report);
    project(&declared, &live(&declared, live_sections), &settings(&[("A", "from-env-a")]))
}

/// What a plan does, a line a step.
fn steps(plan: &ProjectPlan) -> Vec<String> {
    let line = |step: &Step| {
        let fields: Vec<_> = step.changes.iter().map(|c| c.field.as_str()).collect();
        format!("{:?} {} {}", step.action, step.address, fields.join(" "))
    };
    plan.steps.iter().map(line).collect()
}

#[test]
fn only_what_is_declared_and_differs_is_changed() {
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
        // The address shows that there is a picture, and not which.
        (json!({"avatar": {"file": "a.png"}}), json!({"avatar_url": null}), "avatar"),
        (json!({"avatar": {"file": "a.png"}}), json!({"avatar_url": "https://x/b.png"}), ""),
        (json!({"avatar": null}), json!({"avatar_url": "https://x/b.png"}), "avatar"),
        (json!({"avatar": null}), json!({"avatar_url": null}), ""),
        (json!({"some_new_key": [1]}), json!({"some_new_key": [1]}), ""),
        (json!({"some_new_key": [1]}), json!({"some_new_key": [2]}), "some_new_key"),
    ];
    for (declared, live, want) in cases {
        let plan = plan_of(&json!({"settings": declared}), &json!({"settings": live}));
        let want: Vec<_> = if want.is_empty() {
            vec![]
        } else {
            vec![format!("Update acme/shop#settings {want}")]
        };
        assert_eq!(steps(&plan), want, "{declared} against {live}");
    }
}

#[test]
fn a_key_that_is_missing_is_unknown() {
    let reason = |declared: Json, live: Json| {
        let plan = plan_of(&json!({"settings": declared}), &json!({"settings": live}));
        (steps(&plan).len(), plan.notes.first().map(|note| note.reason.clone()))
    };
    // A boolean that the answer does not mention is neither true nor false.
    assert_eq!(reason(json!({"lfs_enabled": true}), json!({})), (0, Some(Reason::NotReturned)));
    // The reference does not list it among what is returned.
    assert_eq!(
        reason(json!({"emails_disabled": true}), json!({})),
        (0, Some(Reason::CannotVerify))
    );
    assert_eq!(
        reason(json!({"emails_disabled": true}), json!({"emails_disabled": false})),
        (1, None)
    );
    // An answer may leave out what is null; on a tier that lacks the field it means nothing.
    assert_eq!(reason(json!({"description": "x"}), json!({})), (1, None));
    assert_eq!(reason(json!({"description": null}), json!({})), (0, None));
    assert_eq!(reason(json!({"issues_template": "x"}), json!({})), (0, Some(Reason::NotReturned)));
    assert_eq!(
        reason(json!({"issues_template": "x"}), json!({"approvals_before_merge": 0})),
        (1, None)
    );
}

#[test]
fn a_secret_is_compared_where_it_is_known_and_never_shown() {
    let declared = json!({"variables": [
        {"key": "SAME", "environment_scope": "*", "value": {"env": "A"}},
        {"key": "OTHER", "environment_scope": "*", "value": {"env": "A"}, "masked": true},
        {"key": "UNSET", "environment_scope": "*", "value": {"env": "B"}},
    ]});
    let live = json!({"variables": [
        {"key": "SAME", "environment_scope": "*", "value": "from-env-a"},
        {"key": "OTHER", "environment_scope": "*", "value": "live-secret", "masked": true},
        {"key": "UNSET", "environment_scope": "*", "value": "live-secret"},
    ]});
    let plan = plan_of(&declared, &live);
    assert_eq!(steps(&plan), ["Update acme/shop#variables/OTHER@* value"]);
    let change = &plan.steps[0].changes[0];
    assert_eq!((&change.before, &change.after), (&Shown::Hidden, &Shown::Secret("env:A".into())));
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
    let declared = declared(&variable(true), Unlisted::Report);
    let plan = project(
        &declared,
        &live(&declared, &json!({"variables": []})),
        &settings(&[("A", "short")]),
    );
    assert_eq!(
        (plan.problems[0].code, plan.problems[0].message.as_str()),
        ("masked-value", "a masked value must have at least 8 characters")
    );
    assert_eq!(plan_of(&variable(true), &json!({"variables": []})).problems, []);
}

#[test]
fn a_masked_literal_is_not_shown_either() {
    let declared = json!({"variables": [{"key": "K", "environment_scope": "*", "value": "in-git-but-masked", "masked": true}]});
    let plan = plan_of(&declared, &json!({"variables": []}));
    assert!(!serde_json::to_string(&plan.steps).unwrap().contains("in-git"), "{:?}", plan.steps);
}

#[test]
fn unlisted_entries_are_reported_deleted_or_ignored() {
    let sections = json!({"members": [{"user": "Alice", "access_level": "developer"}]});
    let members = json!({"members": [
        {"id": 1, "username": "alice", "access_level": 30},
        {"id": 2, "username": "bob", "access_level": 30},
        {"id": 3, "username": "project_1_bot", "access_level": 40},
        {"id": CALLER, "username": "root", "access_level": 50},
    ]});
    let run = |unlisted| {
        let declared = declared(&sections, unlisted);
        let plan = project(&declared, &live(&declared, &members), &settings(&[]));
        (
            steps(&plan),
            plan.notes
                .into_iter()
                .map(|n| format!("{:?} {}", n.reason, n.address))
                .collect::<Vec<_>>(),
        )
    };
    let (steps, notes) = run(Unlisted::Report);
    assert_eq!(
        (steps.len(), notes),
        (
            0,
            vec!["Unlisted acme/shop#members/bob".into(), "Unlisted acme/shop#members/root".into()]
        )
    );
    let (steps, notes) = run(Unlisted::Delete);
    assert_eq!(steps, ["Delete acme/shop#members/bob access_level"]);
    assert_eq!(notes.len(), 2, "the bot and the caller are left alone: {notes:?}");
    assert_eq!(run(Unlisted::Ignore), (vec![], vec![]));
}

#[test]
fn nothing_is_concluded_from_what_was_not_read_to_its_end() {
    let declared = declared(
        &json!({"variables": [{"key": "A", "environment_scope": "*", "value": "x"}]}),
        Unlisted::Delete,
    );
    for (collection, reason) in [
        (Collection::Partial("cut".into()), "cut"),
        (Collection::Unreadable("403".into()), "403"),
        (Collection::Fresh, ""),
    ] {
        let mut live = live(&declared, &json!({}));
        live.sections.insert("variables", collection);
        let plan = project(&declared, &live, &settings(&[]));
        let incomplete: Vec<_> = plan.incomplete.iter().map(|i| &*i.reason.message).collect();
        assert_eq!(
            (plan.steps.len(), incomplete),
            if reason.is_empty() { (1, vec![]) } else { (0, vec![reason]) }
        );
    }
}

#[test]
fn a_missing_project_is_created_only_where_the_manifest_allows_it() {
    let mut declared = declared(
        &json!({"settings": {"visibility": "private"}, "members": [{"user": "bob", "access_level": "guest"}], "archived": {"archived": true},
            "variables": [{"key": "A", "environment_scope": "*", "value": "x"}]}),
        Unlisted::Delete,
    );
    let namespace = Some(Namespace { id: 5, owner: crate::kind::NamespaceOwner::Group });
    let target = Target { path: declared.path.clone(), id: None, namespace };
    let mut live = live(&declared, &json!({}));
    live.presence = Presence::Missing(target);
    let plan = project(&declared, &live, &settings(&[]));
    assert_eq!((plan.steps.len(), plan.problems[0].code), (0, "missing-project"));

    declared.create = Some(Declared::default());
    let plan = project(&declared, &live, &settings(&[]));
    assert_eq!(plan.problems[0].code, "unknown-user");
    live.users.insert("bob".into(), Some(9));
    let plan = project(&declared, &live, &settings(&[]));
    let want = [
        "Create acme/shop visibility",
        "Create acme/shop#variables/A@* environment_scope key value",
        "Create acme/shop#members/bob access_level",
        "Create acme/shop#archived archived",
    ];
    assert_eq!(steps(&plan), want);
    assert!(plan.steps[1..].iter().all(|step| step.after[0].address == declared.address()));
    assert_eq!(plan.steps[3].after.len(), 3, "archiving comes last");
}

#[test]
fn every_problem_is_explained() {
    for code in [
        "guard",
        "missing-field",
        "missing-namespace",
        "missing-project",
        "missing-secret",
        "moved-project",
        "unknown-user",
    ] {
        assert!(crate::diagnostic::codes::explain(code).is_some(), "{code}");
    }
}

#[test]
fn a_project_that_moved_is_a_problem_that_names_the_new_path() {
    let declared = declared(&json!({}), Unlisted::Report);
    let mut live = live(&declared, &json!({}));
    live.presence = Presence::Moved { to: Some("acme/store".into()) };
    let plan = project(&declared, &live, &settings(&[]));
    assert_eq!(
        (plan.problems[0].code, plan.problems[0].help.as_deref()),
        ("moved-project", Some("write `path: acme/store`"))
    );
}

#[test]
fn removals_are_refused_by_number_share_and_emptiness() {
    for (live_count, removed, want) in [
        (1, 1, Some("would remove the only entry")),
        (3, 2, None),
        (4, 1, None),
        (4, 2, Some("would remove 2 entries of 4; the limit is 25 %")),
        (60, 5, None),
        (60, 6, Some("would remove 6 entries of 60; the limit is 5")),
        (0, 0, None),
    ] {
        let names: Vec<_> = (0..live_count).map(|i| format!("V{i}")).collect();
        let entries = names.iter().enumerate().map(|(i, name)| {
            let mut entry = json!({"key": name, "environment_scope": "*"});
            if i < removed {
                entry["state"] = "absent".into();
            }
            entry
        });
        let raw: Vec<_> = names
            .iter()
            .map(|name| json!({"key": name, "environment_scope": "*", "value": "x"}))
            .collect();
        let plan =
            plan_of(&json!({"variables": entries.collect::<Vec<_>>()}), &json!({"variables": raw}));
        let refusals: Vec<_> =
            plan.refusals.iter().map(|r| (r.reason.as_str(), r.acknowledgement.clone())).collect();
        let want: Vec<_> = want
            .map(|reason| (reason, "removals:acme/shop#variables".to_owned()))
            .into_iter()
            .collect();
        assert_eq!(refusals, want, "{removed} of {live_count}");
    }
}

#[test]
fn an_acknowledgement_lets_one_object_through() {
    let declared = declared(&json!({"settings": {"visibility": "public"}}), Unlisted::Report);
    let live = live(&declared, &json!({"settings": {"visibility": "internal"}}));
    let mut settings = settings(&[]);
    let plan = project(&declared, &live, &settings);
    assert_eq!(plan.refusals[0].reason, "would widen visibility from internal to public");
    settings.acknowledged = vec!["visibility:acme/other#settings".into()];
    assert_eq!(project(&declared, &live, &settings).refusals.len(), 1);
    settings.acknowledged = vec![plan.refusals[0].acknowledgement.clone()];
    assert_eq!(project(&declared, &live, &settings).refusals.len(), 0);
    let narrowed = plan_of(
        &json!({"settings": {"visibility": "private"}}),
        &json!({"settings": {"visibility": "public"}}),
    );
    assert_eq!(narrowed.refusals.len(), 0);
}

#[test]
fn the_last_owner_and_the_callers_access_are_guarded() {
    let run = |user: &str, level: &str, id: u64, owners: Option<Vec<u64>>| {
        let declared = declared(
            &json!({"members": [{"user": user, "access_level": level}]}),
            Unlisted::Report,
        );
        let mut live = live(
            &declared,
            &json!({"members": [{"id": id, "username": user, "access_level": 50}]}),
        );
        live.owners = owners;
        project(&declared, &live, &settings(&[]))
            .refusals
            .into_iter()
            .map(|r| r.acknowledgement)
            .collect::<Vec<_>>()
    };
    assert_eq!(run("bob", "maintainer", 2, Some(vec![2])), ["last-owner:acme/shop#members/bob"]);
    assert_eq!(
        run("bob", "maintainer", 2, None),
        ["last-owner:acme/shop#members/bob"],
        "what was not read does not count"
    );
    assert_eq!(run("bob", "maintainer", 2, Some(vec![2, 3])), [] as [&str; 0]);
    assert_eq!(
        run("root", "developer", CALLER, Some(vec![CALLER, 3])),
        ["own-access:acme/shop#members/root"]
    );
}

#[test]
fn the_new_is_in_place_before_the_old_goes() {
    let declared = json!({"variables": [
        {"key": "A", "environment_scope": "prod", "value": "x"},
        {"key": "A", "environment_scope": "*", "state": "absent"},
    ], "settings": {"jobs_enabled": true}});
    let live = json!({"variables": [{"key": "A", "environment_scope": "*", "value": "x"}, {"key": "B", "environment_scope": "*", "value": "x"}],
        "settings": {"jobs_enabled": false}});
    let plan = plan_of(&declared, &live);
    let want = [
        "Update acme/shop#settings jobs_enabled",
        "Create acme/shop#variables/A@prod environment_scope key value",
        "Delete acme/shop#variables/A@* value",
    ];
    assert_eq!(
        steps(&plan)
            .iter()
            .map(|s| s.split(" variable_type").next().unwrap().to_owned())
            .collect::<Vec<_>>(),
        want
    );
    assert_eq!(plan.steps[1].after[0].reason, "variables need CI/CD");
    assert!(plan.steps[2].after.iter().any(|edge| edge.reason == "create first, then remove"));
}

#[test]
fn a_hook_is_found_by_its_url_or_by_an_earlier_one() {
    let hook = |id: u64, url: &str| json!({"id": id, "url": url, "push_events": true});
    let declared = |more: Json| {
        let mut hook = json!({"name": "ci", "url": "https://new.example.org", "push_events": true});
        hook.as_object_mut().unwrap().extend(object(&more));
        json!({"hooks": [hook]})
    };
    let moved = declared(json!({"previously": ["https://old.example.org"]}));
    let plan = plan_of(&moved, &json!({"hooks": [hook(1, "https://old.example.org")]}));
    assert_eq!(steps(&plan), ["Update acme/shop#hooks/ci url"]);
    let plan =
        plan_of(&declared(json!({})), &json!({"hooks": [hook(1, "https://old.example.org")]}));
    assert_eq!(steps(&plan), ["Create acme/shop#hooks/ci push_events url"]);
    // What a lost answer left behind twice is removed, the oldest stays.
    let twice =
        json!({"hooks": [hook(4, "https://new.example.org"), hook(3, "https://new.example.org")]});
    let plan = plan_of(&declared(json!({})), &twice);
    assert_eq!(
        steps(&plan)[0].split(' ').take(2).collect::<Vec<_>>(),
        ["Delete", "acme/shop#hooks/ci@4"]
    );
    assert_eq!(plan.steps.len(), 1);
    // Two that differ are nobody's to choose between.
    let differ = json!({"hooks": [hook(4, "https://new.example.org"), {"id": 5, "url": "https://new.example.org", "push_events": false}]});
    let plan = plan_of(&declared(json!({})), &differ);
    assert_eq!((plan.steps.len(), plan.incomplete.len()), (0, 1));
    assert!(
        plan.notes.iter().all(|note| note.reason != Reason::Unlisted),
        "one of them is in a manifest: {:?}",
        plan.notes
    );
}

#[test]
fn a_hook_whose_url_is_an_unknown_secret_is_neither_created_nor_taken_for_unlisted() {
    let declared =
        declared(&json!({"hooks": [{"name": "ci", "url": {"env": "B"}}]}), Unlisted::Delete);
    let live = live(&declared, &json!({"hooks": [{"id": 1, "url": "https://x.example.org"}]}));
    let plan = project(&declared, &live, &settings(&[]));
    assert_eq!((plan.steps.len(), plan.problems.len()), (0, 0));
    assert!(plan.notes.iter().any(|note| matches!(note.reason, Reason::SecretMissing { .. })));
}

#[test]
fn a_changed_url_takes_the_token_along() {
    let declared = json!({"hooks": [{"name": "ci", "url": "https://new.example.org", "previously": ["https://old.example.org"], "token": {"env": "A"}}]});
    let plan = plan_of(&declared, &json!({"hooks": [{"id": 1, "url": "https://old.example.org"}]}));
    assert_eq!(steps(&plan), ["Update acme/shop#hooks/ci url token"]);
    assert!(plan.steps[0].calls[0].fields.contains(&"token".to_owned()));
}

#[test]
fn what_is_selected_alone_is_planned() {
    let sections = json!({"settings": {"merge_method": "ff"}, "variables": [{"key": "A", "environment_scope": "*", "value": "x"}]});
    let declared = declared(&sections, Unlisted::Report);
    let live = live(&declared, &json!({"settings": {"merge_method": "merge"}, "variables": []}));
    let mut settings = settings(&[]);
    for (only, exclude, want) in [
        ("**", "none/*", 2),
        ("**#variables", "none/*", 1),
        ("**#variables/B*", "none/*", 0),
        ("**", "acme/*#settings", 1),
    ] {
        settings.selection = Selection {
            only: vec![Selector::parse(only).unwrap()],
            exclude: vec![Selector::parse(exclude).unwrap()],
        };
        assert_eq!(
            project(&declared, &live, &settings).steps.len(),
            want,
            "{only} without {exclude}"
        );
    }
}

#[test]
fn an_archived_project_that_stays_archived_is_left_alone() {
    let declared = declared(&json!({"settings": {"merge_method": "ff"}}), Unlisted::Report);
    let mut live = live(&declared, &json!({"settings": {"merge_method": "merge"}}));
    if let Presence::Here(facts) = &mut live.presence {
        facts.archived = true;
    }
    let plan = project(&declared, &live, &settings(&[]));
    assert_eq!((plan.steps.len(), plan.notes[0].reason.clone()), (0, Reason::Archived));
}

/// A project that declares one of everything, as it was when the plan was made, and that plan.
fn planned_everything() -> (manifest::Project, Json, ProjectPlan) {
    let sections = json!({
        "settings": {"merge_method": "ff"},
        "variables": [{"key": "A", "environment_scope": "*", "value": "new"}],
        "hooks": [{"url": "https://h", "push_events": true, "token": {"env": "A"}}],
        "push_rule": {"commit_message_regex": "^b"},
    });
    let found = json!({
        "settings": {"merge_method": "merge"},
        "variables": [{"key": "A", "environment_scope": "*", "value": "old"}],
        "hooks": [{"id": 1, "url": "https://h", "push_events": false}],
        "push_rule": {"id": 1, "commit_message_regex": "^a"},
    });
    let declared = declared(&sections, Unlisted::Report);
    let plan = project(&declared, &live(&declared, &found), &settings(&[("A", "from-env-a")]));
    assert_eq!(plan.steps.len(), 4);
    let done = json!({
        "settings": {"merge_method": "ff"},
        "variables": [{"key": "A", "environment_scope": "*", "value": "new"}],
        "hooks": [{"id": 1, "url": "https://h", "push_events": true}],
        "push_rule": {"id": 1, "commit_message_regex": "^b"},
    });
    (declared, done, plan)
}

/// For each step of the plan of [`planned_everything`] the doubt that a plan from what `change`
/// makes of the live project leaves.
fn doubts(change: impl FnOnce(&mut Live)) -> Vec<Option<String>> {
    let (declared, done, plan) = planned_everything();
    let mut live = live(&declared, &done);
    change(&mut live);
    let now = project(&declared, &live, &settings(&[("A", "from-env-a")]));
    plan.steps.iter().map(|step| now.doubt(step).map(|doubt| doubt.message.into_owned())).collect()
}

#[test]
fn nothing_is_left_to_do_only_where_everything_was_read() {
    assert_eq!(doubts(|_| ()), [None, None, None, None]);
    let all = |text: &str| vec![Some(text.to_owned()); 4];
    let replaced = |presence: Presence| doubts(|live| *live = Live::of(presence, Duration::ZERO));
    let target = Target { path: "acme/shop".into(), id: None, namespace: None };
    assert_eq!(replaced(Presence::Unreadable("answered 502".into())), all("answered 502"));
    assert_eq!(replaced(Presence::Missing(target)), all("the project `acme/shop` does not exist"));
    assert_eq!(
        replaced(Presence::Moved { to: Some("acme/b".into()) }),
        all("the project `acme/shop` is now `acme/b`")
    );
    let since = Some("2026-01-31".to_owned());
    assert_eq!(
        replaced(Presence::Deleting { since }),
        all("the project `acme/shop` is marked for deletion since 2026-01-31")
    );
    let archived = doubts(|live| {
        if let Presence::Here(facts) = &mut live.presence {
            facts.archived = true;
        }
    });
    assert_eq!(archived, all("the project is archived"));
    for (section, at) in [("settings", 0), ("variables", 1), ("hooks", 2), ("push_rule", 3)] {
        for (collection, why) in [
            (Collection::Partial("cut".into()), "cut"),
            (Collection::Unreadable("answered 403".into()), "answered 403"),
        ] {
            let mut expected = vec![None; 4];
            expected[at] = Some(why.to_owned());
            assert_eq!(
                doubts(|live| drop(live.sections.insert(section, collection))),
                expected,
                "{section}"
            );
        }
        assert_eq!(
            doubts(|live| drop(live.sections.remove(section)))[at].as_deref(),
            Some("not read"),
            "{section}"
        );
    }
}

#[test]
fn an_answer_without_the_field_that_was_changed_says_nothing() {
    let (declared, mut done, _) = planned_everything();
    done["push_rule"] = json!({"id": 1});
    done["settings"] = json!({});
    let bare = live(&declared, &done);
    let doubts = doubts(|live| *live = bare);
    assert_eq!(doubts[0].as_deref(), Some("the service's answer lacks `merge_method`"));
    assert_eq!(doubts[3].as_deref(), Some("the service's answer lacks `commit_message_regex`"));
    assert_eq!(doubts[1..3], [None, None]);
}

#[test]
fn what_only_a_write_only_field_could_tell_is_unseen() {
    let (declared, done, plan) = planned_everything();
    let live = live(&declared, &done);
    let mut settings = settings(&[("A", "from-env-a")]);
    settings.resend = vec![Selector::parse("**#hooks").unwrap()];
    let resent = project(&declared, &live, &settings);
    settings.resend = Vec::new();
    let now = project(&declared, &live, &settings);
    assert_eq!(steps(&resent), ["Update acme/shop#hooks/https%3A%2F%2Fh token"]);
    assert_eq!(now.unseen(&resent.steps[0]), ["token"]);
    assert!(plan.steps.iter().all(|step| now.unseen(step).is_empty()), "a hook's flag can be seen");
}

#[test]
fn a_project_is_archived_only_if_all_the_rest_was_compared() {
    let sections = json!({"archived": {"archived": true}, "settings": {"merge_method": "ff"}, "variables": []});
    let declared = declared(&sections, Unlisted::Report);
    let archives = |change: &dyn Fn(&mut Live)| {
        let mut live = live(
            &declared,
            &json!({"archived": {"archived": false}, "settings": {"merge_method": "merge"}, "variables": []}),
        );
        change(&mut live);
        let plan = project(&declared, &live, &settings(&[]));
        let closing = plan.steps.iter().filter(|step| step.closes).count();
        let withheld = plan
            .incomplete
            .iter()
            .filter(|scope| scope.address.section == Some("archived"))
            .count();
        (plan.steps.len(), closing, withheld)
    };
    assert_eq!(archives(&|_| ()), (2, 1, 0));
    let unread = |live: &mut Live| {
        drop(live.sections.insert("variables", Collection::Unreadable("answered 403".into())));
    };
    assert_eq!(
        archives(&unread),
        (1, 0, 1),
        "what could not be read now could not be changed afterwards"
    );
}

#[test]
fn a_project_that_is_created_waits_for_nobody_who_could_not_be_looked_up() {
    let sections = json!({"members": [{"user": "bob", "access_level": "guest"}], "variables": [{"key": "A", "environment_scope": "*", "value": "x"}]});
    let mut declared = declared(&sections, Unlisted::Report);
    declared.create = Some(Declared::default());
    let target = Target {
        path: declared.path.clone(),
        id: None,
        namespace: Some(Namespace { id: 3, owner: crate::kind::NamespaceOwner::Group }),
    };
    let mut live = Live::of(Presence::Missing(target), Duration::ZERO);
    live.sections.insert("members", Collection::Unreadable("answered 403".into()));
    let plan = project(&declared, &live, &settings(&[]));
    assert_eq!(
        steps(&plan),
        ["Create acme/shop ", "Create acme/shop#variables/A@* environment_scope key value"]
    );
    assert_eq!(
        plan.incomplete.iter().map(|scope| scope.address.to_string()).collect::<Vec<_>>(),
        ["acme/shop#members"]
    );
}
