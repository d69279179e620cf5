//! Projects and groups that are deleted and restored, and undeclared projects.

use std::time::Duration;

use serde_json::{Value as Json, json};
use undrift::{
    plan::Strictness,
    sandbox::{FaultEffect, InjectedFault, Profile},
};

use crate::world::{NEWEST, World, project, seed};

fn absent(path: &str) -> Json {
    project(path, json!({"state": "absent"}))
}

fn shop() -> Json {
    json!({"path": "acme/shop", "variables": [{"key": "A", "value": "old"}]})
}

/// Delayed and immediate deletion.
fn profiles() -> [Profile; 3] {
    let later = Profile::default().with_release(NEWEST);
    [
        Profile { deletion_delay: Some(7), ..Profile::default() },
        Profile { deletion_delay: Some(7), ..later },
        Profile::default(),
    ]
}

/// From release 18 on, a project marked for deletion has another path until it is restored.
#[tokio::test]
async fn a_project_marked_for_deletion_is_restored_from_its_current_path() {
    let profile = Profile { deletion_delay: Some(7), ..Profile::default().with_release(NEWEST) };
    let world = World::new(profile, seed(&[shop()])).await;
    let group =
        |policy: &str| json!({"kind": "Group", "path": "acme", "unlisted": {"projects": policy}});
    world.call("DELETE", "/projects/acme%2Fshop", None).await;
    // A project that is declared absent and marked for deletion is not an undeclared one.
    world.declare(&[group("fail"), absent("acme/shop")]);
    let plan = world.plan().await;
    assert!(plan.steps.is_empty() && plan.notes.is_empty(), "{:#?}", plan.notes);
    let variables = json!({"variables": [{"key": "A", "value": "new"}]});
    world.declare(&[group("fail"), project("acme/shop", variables)]);
    let plan = world.converge("declared again").await;
    let steps: Vec<_> = plan.steps.iter().map(|step| step.address.to_string()).collect();
    assert_eq!(steps, ["acme/shop", "acme/shop#variables/A@*"]);
    assert!(world.get("/projects/acme%2Fshop").await["marked_for_deletion_on"].is_null());
}

/// Number of project deletions.
fn count_deletions(world: &World) -> usize {
    world.writes().iter().filter(|call| call.starts_with("DELETE /api/v4/projects/")).count()
}

#[tokio::test]
async fn a_project_is_deleted_once_and_only_with_an_exact_acknowledgement() {
    for profile in profiles() {
        for trusts in [Duration::ZERO, Duration::from_secs(60)] {
            let mut world = World::new(profile.clone(), seed(&[shop()])).await;
            world.trust_time = trusts;
            world.declare(&[absent("acme/shop")]);
            // A glob acknowledges entries, but not this.
            for (acknowledged, is_let_through) in [
                (None, false),
                (Some("deletion:acme/*"), false),
                (Some("deletion:ACME/shop"), true),
            ] {
                world.acknowledged = acknowledged.into_iter().collect();
                let plan = world.plan().await;
                assert_eq!(plan.refusals.is_empty(), is_let_through, "{acknowledged:?}");
                assert_eq!(plan.counts().delete, 1);
            }
            world.converge("deleted").await;
            world.converge("still deleted").await;
            assert_eq!(count_deletions(&world), 1);
        }
    }
}

#[tokio::test]
async fn a_project_that_never_existed_is_absent() {
    let world = World::new(Profile::default(), seed(&[])).await;
    world.declare(&[absent("acme/gone"), absent("gone/too")]);
    world.converge("nothing").await;
    assert_eq!(count_deletions(&world), 0);
}

#[tokio::test]
async fn a_deletion_whose_response_was_lost_is_not_repeated() {
    for profile in profiles() {
        for (effect, tries) in [
            (FaultEffect::CommitThenDrop, 1),
            (FaultEffect::StatusAfter(502), 1),
            (FaultEffect::EmptyBody, 1),
            (FaultEffect::DropBefore, 2),
        ] {
            let mut world = World::new(profile.clone(), seed(&[shop()])).await;
            world.acknowledged = vec!["deletion:acme/shop"];
            world.declare(&[absent("acme/shop")]);
            world.sandbox.add_fault(InjectedFault {
                method: Some("DELETE".parse().unwrap()),
                path_contains: "/projects/".to_owned(),
                nth: 1,
                effect: effect.clone(),
            });
            let applied = world.apply().await.applied.unwrap();
            assert_eq!(applied.is_complete(), tries == 1, "{effect:?}: {applied:#?}");
            assert_eq!(count_deletions(&world), 1, "{effect:?}");
            // A repeated run needs another acknowledgement.
            world.converge(&format!("{effect:?}")).await;
            assert_eq!(count_deletions(&world), tries, "{effect:?}");
        }
    }
}

#[tokio::test]
async fn a_project_marked_for_deletion_is_restored_and_then_matches() {
    let profile = || Profile { deletion_delay: Some(7), ..Profile::default() };
    for trusts in [Duration::ZERO, Duration::from_secs(60)] {
        for lost in [None, Some(FaultEffect::CommitThenDrop)] {
            let mut world = World::new(profile(), seed(&[shop()])).await;
            world.trust_time = trusts;
            world.call("DELETE", "/projects/acme%2Fshop", None).await;
            world.call("POST", "/groups", Some(json!({"name": "team", "path": "team"}))).await;
            world.call("DELETE", "/groups/team", None).await;
            world.declare(&[
                project(
                    "acme/shop",
                    json!({"settings": {"description": "new"}, "variables": [{"key": "A", "value": "new"}]}),
                ),
                json!({"kind": "Group", "path": "team", "settings": {"description": "new"}}),
            ]);
            if let Some(what) = lost.clone() {
                world.sandbox.add_fault(InjectedFault {
                    method: Some("POST".parse().unwrap()),
                    path_contains: "/restore".to_owned(),
                    nth: 1,
                    effect: what,
                });
            }
            let plan = world.converge("restored").await;
            let steps: Vec<_> = plan.steps.iter().map(|step| step.address.to_string()).collect();
            assert_eq!(
                steps,
                [
                    "acme/shop",
                    "acme/shop#settings",
                    "acme/shop#variables/A@*",
                    "team",
                    "team#settings"
                ]
            );
            let live = world.get("/projects/acme%2Fshop").await;
            assert_eq!(
                (live["marked_for_deletion_on"].is_null(), &live["description"]),
                (true, &json!("new"))
            );
        }
    }
}

#[tokio::test]
async fn a_project_marked_for_deletion_after_the_plan_is_not_changed() {
    let profile = Profile { deletion_delay: Some(7), ..Profile::default() };
    let world = World::new(profile, seed(&[shop()])).await;
    world.declare(&[project("acme/shop", json!({"variables": [{"key": "A", "value": "new"}]}))]);
    let delete =
        async |world: &World| drop(world.call("DELETE", "/projects/acme%2Fshop", None).await);
    let outcome = world.apply_after(delete).await.unwrap();
    assert!(!outcome.applied.unwrap().is_complete());
    assert!(world.writes().iter().all(|call| !call.starts_with("PUT")), "{:?}", world.writes());
}

/// Groups with projects in every state; one of them is declared.
async fn world_with_states(policy: &str, more: &[Json]) -> World {
    let mut seed = seed(&[
        json!({"path": "acme/declared"}),
        json!({"path": "acme/plain"}),
        json!({"path": "acme/sub/old", "archived": true}),
        json!({"path": "acme/sub/going"}),
        json!({"path": "other/shared"}),
    ]);
    let groups = seed["groups"].as_array_mut().unwrap();
    groups.extend([json!({"path": "acme/sub"}), json!({"path": "other", "visibility": "public"})]);
    let profile = Profile { deletion_delay: Some(7), ..Profile::default() };
    let world = World::new(profile, seed).await;
    world.call("DELETE", "/projects/acme%2Fsub%2Fgoing", None).await;
    let share = json!({"group_id": world.get("/groups/acme").await["id"], "group_access": 30});
    world.call("POST", "/projects/other%2Fshared/share", Some(share)).await;
    let mut documents = vec![
        json!({"kind": "Group", "path": "acme", "unlisted": {"projects": policy}}),
        project("acme/declared", json!({})),
    ];
    documents.extend_from_slice(more);
    world.declare(&documents);
    world
}

/// The projects in notes, with the texts.
fn note_texts(plan: &undrift::plan::Plan) -> Vec<String> {
    use undrift::diff::Reason;
    let said = |reason: &Reason| match reason {
        Reason::Undeclared { state } => format!("undeclared {}", state.unwrap_or_default()),
        Reason::UndeclaredFails { state } => format!("fails {}", state.unwrap_or_default()),
        other => format!("{other:?}"),
    };
    plan.notes.iter().map(|note| format!("{} {}", note.address, said(&note.reason))).collect()
}

#[tokio::test]
async fn undeclared_projects_are_reported_with_their_state() {
    let world = world_with_states("report", &[]).await;
    let plan = world.converge("reported").await;
    assert_eq!(
        note_texts(&plan),
        [
            "acme/plain undeclared ",
            "acme/sub/going undeclared marked for deletion",
            "acme/sub/old undeclared archived"
        ]
    );
    assert!(
        !plan.has_differences(Strictness::Declared) && plan.has_differences(Strictness::Unlisted)
    );
    assert_eq!(plan.unlisted_count(), 3);
    let plan = world_with_states("fail", &[project("acme/Plain", json!({}))]).await.plan().await;
    assert_eq!(
        note_texts(&plan),
        ["acme/sub/going fails marked for deletion", "acme/sub/old fails archived"]
    );
    assert!(plan.has_differences(Strictness::Declared) && plan.steps.is_empty());
    let world = world_with_states("ignore", &[]).await;
    assert_eq!(note_texts(&world.plan().await), [] as [&str; 0]);
    assert!(world.requests().iter().all(|request| !request.contains("with_shared")));
}

/// A project that still has to move to its declared path is not undeclared at its present one.
#[tokio::test]
async fn a_moving_project_is_not_undeclared_at_its_current_path() {
    let moved = project("acme/moved", json!({"previously": ["acme/plain"]}));
    let sub = json!({"kind": "Group", "path": "acme/below", "previously": ["acme/sub"]});
    let below = project("acme/below/old", json!({"archived": true}));
    let world = world_with_states("report", &[moved, sub, below]).await;
    assert_eq!(note_texts(&world.plan().await)[..1], ["acme/below/old Archived"]);
    let plan = world.converge("moved").await;
    assert_eq!(
        note_texts(&plan),
        ["acme/below/old Archived", "acme/sub/going undeclared marked for deletion"]
    );
}

#[tokio::test]
async fn an_unreadable_list_of_projects_is_incomplete() {
    let world = world_with_states("fail", &[]).await;
    let fault = InjectedFault {
        method: Some("GET".parse().unwrap()),
        path_contains: "/projects?include_subgroups=true&with_shared".to_owned(),
        nth: 1,
        effect: FaultEffect::StatusBefore(403),
    };
    world.sandbox.add_fault(fault);
    let plan = world.plan().await;
    let incomplete: Vec<_> =
        plan.incomplete.iter().map(|scope| scope.address.to_string()).collect();
    assert_eq!((incomplete, note_texts(&plan)), (vec!["acme#projects".to_owned()], vec![]));
}
