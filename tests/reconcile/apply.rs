//! Apply while other people change the service.

use std::time::Duration;

use serde_json::json;
use undrift::{
    apply::{Event, StepOutcome},
    diff::Step,
    field::Scope,
    kind::{Capability, Section},
    sandbox::{FaultEffect, InjectedFault, Profile},
    value::Json,
};

use crate::{
    convergence,
    world::{World, group, project, seed},
};

fn step_outcomes(outcome: &crate::world::Outcome) -> Vec<(String, StepOutcome)> {
    outcome
        .applied
        .as_ref()
        .unwrap()
        .steps
        .iter()
        .map(|step| (step.address.to_string(), step.outcome.clone()))
        .collect()
}

#[tokio::test]
async fn steps_done_by_others_are_not_repeated() {
    let world = World::new(Profile::default(), seed(&[json!({"path": "acme/shop"})])).await;
    world.declare(&[project(
        "acme/shop",
        json!({"settings": {"description": "new"}, "variables": [{"key": "A", "value": "x"}]}),
    )]);
    let outcome = world
        .apply_after(async |world: &World| {
            world.call("PUT", "/projects/acme%2Fshop", Some(json!({"description": "new"}))).await;
        })
        .await
        .unwrap();
    assert_eq!(
        step_outcomes(&outcome),
        [
            ("acme/shop#settings".into(), StepOutcome::Already),
            ("acme/shop#variables/A@*".into(), StepOutcome::Done)
        ]
    );
    assert!(outcome.applied.unwrap().is_complete());
}

#[tokio::test]
async fn a_project_changed_meanwhile_is_skipped_and_others_are_applied() {
    let world = World::new(
        Profile::default(),
        seed(&[json!({"path": "acme/a"}), json!({"path": "acme/b"})]),
    )
    .await;
    let sections =
        json!({"settings": {"description": "new"}, "variables": [{"key": "A", "value": "x"}]});
    world.declare(&[project("acme/a", sections.clone()), project("acme/b", sections)]);
    let outcome = world
        .apply_after(async |world: &World| {
            world
                .call("PUT", "/projects/acme%2Fa", Some(json!({"description": "somebody else's"})))
                .await;
        })
        .await
        .unwrap();
    let ends = step_outcomes(&outcome);
    assert!(
        matches!(ends[0].1, StepOutcome::ChangedMeanwhile(_))
            && matches!(ends[1].1, StepOutcome::Skipped(_)),
        "{ends:?}"
    );
    assert_eq!((&ends[2].1, &ends[3].1), (&StepOutcome::Done, &StepOutcome::Done));
    assert_eq!(world.get("/projects/acme%2Fa").await["description"], "somebody else's");
    assert_eq!(world.get("/projects/acme%2Fa/variables").await, json!([]));
}

#[tokio::test]
async fn an_unreadable_project_is_failed_and_not_changed_meanwhile() {
    let world = World::new(Profile::default(), seed(&[json!({"path": "acme/a"})])).await;
    world.declare(&[project(
        "acme/a",
        json!({"settings": {"description": "new"}, "variables": [{"key": "A", "value": "x"}]}),
    )]);
    let outcome = world
        .apply_after(async |world: &World| {
            world.sandbox.add_fault(undrift::sandbox::InjectedFault {
                method: Some(http::Method::GET),
                path_contains: "/projects/1".into(),
                nth: 0,
                effect: undrift::sandbox::FaultEffect::StatusBefore(403),
            });
        })
        .await
        .unwrap();
    let ends = step_outcomes(&outcome);
    assert!(
        matches!(&ends[0].1, StepOutcome::Failed(why) if why.message.starts_with("it could not be read again")),
        "{ends:?}"
    );
    assert!(
        matches!(&ends[1].1, StepOutcome::Skipped(why) if why.message.contains("could not be read again")),
        "{ends:?}"
    );
    assert_eq!(world.writes(), [] as [&str; 0]);
}

/// Another run makes the same object between the last look and the write: the service refuses the
/// second one.
#[tokio::test]
async fn an_object_created_by_another_run_counts_as_already_done() {
    let declared = [
        ("/variables", 400, json!({"variables": [{"key": "A", "value": "x"}]})),
        ("/members", 409, json!({"members": [{"user": "bob", "access_level": "developer"}]})),
        ("/push_rule", 422, json!({"push_rule": {"member_check": true}})),
    ];
    for (path, status, sections) in declared {
        for (effect, there) in [
            (undrift::sandbox::FaultEffect::StatusAfter(status), true),
            (undrift::sandbox::FaultEffect::StatusBefore(status), false),
        ] {
            let world = World::new(Profile::default(), seed(&[json!({"path": "acme/a"})])).await;
            world.declare(&[project("acme/a", sections.clone())]);
            world.sandbox.add_fault(undrift::sandbox::InjectedFault {
                method: Some(http::Method::POST),
                path_contains: path.into(),
                nth: 1,
                effect,
            });
            let outcome = world.apply().await;
            let ends = step_outcomes(&outcome);
            assert_eq!(matches!(ends[0].1, StepOutcome::Already), there, "{ends:?}");
            assert_eq!(outcome.applied.unwrap().is_complete(), there);
        }
    }
}

#[tokio::test]
async fn steps_after_a_revoked_token_are_not_started() {
    // One more than are processed at once, so that the last one starts after the first refusal.
    let paths: Vec<_> = (10..27).map(|n| format!("acme/p{n}")).collect();
    let world = World::new(
        Profile::default(),
        seed(&paths.iter().map(|path| json!({"path": path})).collect::<Vec<_>>()),
    )
    .await;
    let declared = |path: &String| project(path, json!({"settings": {"description": "new"}}));
    world.declare(&paths.iter().map(declared).collect::<Vec<_>>());
    let outcome = world
        .apply_after(async |world: &World| {
            world.sandbox.add_fault(undrift::sandbox::InjectedFault {
                method: Some(http::Method::GET),
                path_contains: "/projects/".into(),
                nth: 0,
                effect: undrift::sandbox::FaultEffect::StatusBefore(401),
            });
        })
        .await
        .unwrap();
    assert_eq!(step_outcomes(&outcome).last().unwrap().1, StepOutcome::NotStarted);
    assert_eq!(world.writes(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_failed_step_stops_what_depends_on_it_and_nothing_else() {
    let world = World::new(Profile::default(), seed(&[json!({"path": "acme/b"})])).await;
    // The service refuses this name. (It also refuses to show in a public project what its group
    // hides.)
    world.declare(
        &[
            project("acme/b", json!({"settings": {"description": "new"}})),
            project("acme/c", json!({"create": true, "settings": {"mirror_user_id": 999_999}, "variables": [{"key": "A", "value": "x"}]})),
            project("acme/d", json!({"create": true, "settings": {"template_name": "x"}})),
        ][..2],
    );
    world.sandbox.add_fault(undrift::sandbox::InjectedFault {
        method: Some(http::Method::POST),
        path_contains: "/projects".into(),
        nth: 0,
        effect: undrift::sandbox::FaultEffect::StatusBefore(400),
    });
    let ends = step_outcomes(&world.apply().await);
    assert_eq!(ends[0], ("acme/b#settings".into(), StepOutcome::Done));
    assert!(
        matches!(&ends[1], (address, StepOutcome::Failed(_)) if address == "acme/c"),
        "{ends:?}"
    );
    assert!(
        matches!(&ends[2].1, StepOutcome::Skipped(why) if why.message.contains("`acme/c`")),
        "{ends:?}"
    );
}

#[tokio::test]
async fn a_missing_project_user_or_secret_is_found_before_the_first_write() {
    let world = World::new(Profile::default(), seed(&[json!({"path": "acme/shop"})])).await;
    let fine = project("acme/shop", json!({"settings": {"description": "new"}}));
    for (document, code) in [
        (project("acme/none", json!({"settings": {"description": "x"}})), Some("missing-project")),
        (project("nowhere/none", json!({"create": true})), Some("missing-namespace")),
        (
            project(
                "acme/other",
                json!({"create": true, "members": [{"user": "nobody", "access_level": "guest"}]}),
            ),
            Some("unknown-user"),
        ),
        (
            project(
                "acme/third",
                json!({"create": true, "variables": [{"key": "A", "value": {"env": "NOT_SET"}}]}),
            ),
            None,
        ),
    ] {
        world.declare(&[fine.clone(), document]);
        let outcome = world.apply().await;
        assert!(outcome.applied.is_none());
        assert_eq!(outcome.plan.problems.first().map(|problem| problem.code), code);
    }
    assert_eq!(world.writes(), [] as [&str; 0]);
}

/// True if its project accepts no changes afterwards.
fn closes_project(step: &Step) -> bool {
    step.removes_capability(Capability::Writable)
}

#[tokio::test]
async fn every_step_has_one_start_event_and_one_end_event() {
    let world = World::new(Profile::default(), seed(&[])).await;
    let sections = json!({"create": true, "settings": {"description": "new"}, "variables": [{"key": "A", "value": "x"}], "archived": true});
    world.declare(&[project("acme/a", sections.clone()), project("acme/b", sections)]);
    let outcome = world.apply().await;
    for step in &outcome.plan.steps {
        let about = |event: &Event| match event {
            Event::Started { address, .. } => *address == step.address,
            Event::Ended(result) => result.address == step.address,
            Event::Verified { container, .. } => container.path == step.address.path,
        };
        let events: Vec<_> = outcome.events.iter().filter(|event| about(event)).collect();
        // Closing a project needs a look at everything before it, and is verified separately.
        match events[..] {
            [
                Event::Verified { .. },
                Event::Started { .. },
                Event::Ended(_),
                Event::Verified { .. },
            ] if closes_project(step) => {}
            [
                Event::Started { .. },
                Event::Ended(_),
                Event::Verified { .. },
                Event::Verified { .. },
            ] if !closes_project(step) => {}
            _ => panic!("{}: {events:?}", step.address),
        }
    }
}

#[tokio::test]
async fn ambiguous_hooks_skip_only_their_project() {
    let there = [json!({"path": "acme/shop"}), json!({"path": "acme/other"})];
    let world = World::new(Profile::default(), seed(&there)).await;
    for push_events in [true, false] {
        world
            .call(
                "POST",
                "/projects/acme%2Fshop/hooks",
                Some(json!({"url": "https://a.example.org", "push_events": push_events})),
            )
            .await;
    }
    let hooks = json!([{"url": "https://a.example.org", "push_events": true}, {"url": "https://b.example.org"}]);
    let declared = json!({"hooks": hooks, "settings": {"description": "new"}});
    world.declare(&[project("acme/shop", declared.clone()), project("acme/other", declared)]);
    let outcome = world.apply().await;
    assert_eq!(outcome.plan.incomplete.len(), 1, "{:#?}", outcome.plan.incomplete);
    let ended: Vec<_> = step_outcomes(&outcome).into_iter().map(|(address, _)| address).collect();
    assert!(
        ended.len() == 3 && ended.iter().all(|address| address.starts_with("acme/other#")),
        "{ended:?}"
    );
    let applied = outcome.applied.unwrap();
    assert!(applied.is_complete(), "{applied:#?}");
    assert_eq!(world.get("/projects/acme%2Fshop").await["description"], json!(null));
}

/// A rule contains the ids of protections. They are read only if a rule has to be sent; those of
/// protections that the same run adds are known by then.
#[tokio::test]
async fn a_rule_names_protections_of_its_project() {
    let shop = project("acme/shop", json!({}));
    let mut world = World::new(Profile::default(), seed(&[json!({"path": "acme/shop"})])).await;
    let rule = |branches: Json| json!([{"name": "A", "approvals_required": 1, "protected_branches": branches}]);
    let shop = |sections: Json| {
        let mut document = shop.clone();
        document.as_object_mut().unwrap().extend(sections.as_object().unwrap().clone());
        document
    };
    let branches =
        |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Json>();

    // The run adds both, and a new project with the same.
    let both = json!({"protected_branches": branches(&["main", "release/*"]), "approval_rules": rule(json!(["release/*"]))});
    let mut new = shop(both.clone());
    new["path"] = "acme/neo".into();
    new["create"] = true.into();
    world.declare(&[shop(both.clone()), new]);
    world.converge("both at once").await;
    for path in ["acme%2Fshop", "acme%2Fneo"] {
        let rules = world.get(&format!("/projects/{path}/approval_rules")).await;
        assert_eq!(rules[0]["protected_branches"][0]["name"], "release/*", "{rules}");
    }

    // Without differences only the rules are read.
    world.declare(&[shop(json!({"approval_rules": rule(json!(["release/*"]))}))]);
    let before = world.requests().len();
    assert!(world.plan().await.steps.is_empty());
    let asked = world.requests().split_off(before);
    assert!(!asked.iter().any(|request| request.contains("protected_branches")), "{asked:#?}");

    // Live entries may be named without being declared.
    world.acknowledged = vec!["protection:**"];
    world.declare(&[shop(json!({"approval_rules": rule(json!(["main"]))}))]);
    world.converge("one that is there").await;
    let rules = world.get("/projects/acme%2Fshop/approval_rules").await;
    assert_eq!(rules[0]["protected_branches"][0]["name"], "main", "{rules}");

    // Removing the flag for all branches needs no other change: the named ones count.
    let id = &rules[0]["id"];
    let path = format!("/projects/acme%2Fshop/approval_rules/{id}");
    world.call("PUT", &path, Some(json!({"applies_to_all_protected_branches": true}))).await;
    world.converge("no longer all of them").await;
    let rules = world.get("/projects/acme%2Fshop/approval_rules").await;
    assert_eq!(rules[0]["applies_to_all_protected_branches"], false, "{rules}");

    world.declare(&[shop(json!({"approval_rules": rule(json!(["main", "gone"]))}))]);
    let plan = world.plan().await;
    assert_eq!(plan.problems[0].code, "unknown-entry", "{plan:#?}");
    assert!(plan.problems[0].message.contains("`gone`") && plan.steps.is_empty(), "{plan:#?}");
}

/// Two runs at once create a declared entry twice; the next one removes the copies.
#[tokio::test]
async fn the_next_run_removes_copies_made_by_two_runs() {
    let hook = json!({"name": "ci", "url": "https://ci.example.org/"});
    let badge = json!({"name": "b", "link_url": "https://e.org/", "image_url": "https://e.org/i"});
    // The service hides the credential.
    let mirror = json!({"url": {"env": "MIRROR"}, "enabled": true});
    let variable = json!({"schedule": "nightly", "key": "A", "value": "x"});
    let schedule = json!({"description": "nightly", "ref": "refs/heads/main", "cron": "0 1 * * *"});
    let entry = |of: Section| match of.section {
        "hooks" => hook.clone(),
        "badges" => badge.clone(),
        "remote_mirrors" => mirror.clone(),
        "pipeline_schedules" => schedule.clone(),
        _ => convergence::base_entry(of, 0),
    };
    let sections: Vec<Section> =
        undrift::catalogue::all_sections().filter(|of| of.allows_duplicates()).collect();
    let declared_entries = |scope: Scope| {
        let of_scope = sections.iter().filter(|of| of.scoped_kind.scope == scope);
        Json::Object(of_scope.map(|of| (of.section.into(), json!([entry(*of)]))).collect())
    };
    let mut with_variables = declared_entries(Scope::Project);
    with_variables["pipeline_schedule_variables"] = json!([variable]);
    let of_group = declared_entries(Scope::Group);
    let mut world =
        World::new(Profile::default(), seed(&[json!({"path": "acme/shop", "branches": ["main"]})]))
            .await;
    world.declare(&[project("acme/shop", with_variables), group("acme", of_group.clone())]);
    world.set_variable("MIRROR", "https://bot:secret-1234@m.example.org/x.git");
    world.trust_time = Duration::from_secs(60);
    let count = async |world: &World, of: &Section| {
        let id = of.scoped_kind.scope.choose("acme", "acme%2Fshop");
        let path = of.scoped_kind.operations.list.unwrap().row().path.replace(":id", id);
        let rows = world.get(&path).await;
        let rows = rows.as_array().unwrap().iter().map(|row| row.as_object().unwrap());
        rows.filter(|row| !of.scoped_kind.is_inherited(&(*row).clone().into_iter().collect()))
            .count()
    };
    world
        .apply_after(async |world| {
            let applied = world.apply().await.applied.unwrap();
            assert!(applied.is_complete(), "{:#?}", applied.steps);
        })
        .await
        .unwrap();
    for of in &sections {
        assert_eq!(count(&world, of).await, 2, "{of:?}");
    }
    world.converge("the next run").await;
    for of in &sections {
        assert_eq!(count(&world, of).await, 1, "{of:?}");
    }
}

/// The service refuses all but one of the projects that get the same new topic at the same time.
#[tokio::test]
async fn a_new_topic_of_several_projects_is_sent_again() {
    let world = World::new(Profile::default(), seed(&[])).await;
    let topics = json!({"create": true, "settings": {"topics": ["new"]}});
    world.declare(&["acme/a", "acme/b", "acme/c"].map(|path| project(path, topics.clone())));
    for nth in [2, 3] {
        world.sandbox.add_fault(InjectedFault {
            method: Some(http::Method::POST),
            path_contains: "/projects".into(),
            nth,
            effect: FaultEffect::DuplicateTopic,
        });
    }
    world.converge("one topic").await;
    let created = world.writes().into_iter().filter(|write| write == "POST /api/v4/projects");
    assert_eq!(created.count(), 5);
}
