//! A service that never answers a read as it should. The simulator has the faults that pass.

use serde_json::{Value as Json, json};
use undrift::sandbox::{FaultEffect, InjectedFault, Profile};

use crate::world::{Outcome, World, group, project, seed};

fn scenario() -> (Json, Vec<Json>) {
    let seed_project = json!({
        "path": "acme/here",
        "settings": {"description": "old"},
        "variables": [{"key": "CHANGE", "value": "old"}, {"key": "GONE", "value": "x"}, {"key": "KEEP", "value": "x"}, {"key": "KEEP2", "value": "x"}],
        "members": [{"user": "bob", "access_level": 30}],
        "hooks": [{"url": "https://keep.example.org"}, {"url": "https://old.example.org"}],
        "push_rule": {"member_check": true},
    });
    let documents = vec![
        project(
            "acme/here",
            json!({
                "settings": {"description": "new"},
                "variables": [{"key": "CHANGE", "value": "new"}, {"key": "ADD", "value": "x"}, {"key": "GONE", "state": "absent"}],
                "members": [{"user": "bob", "access_level": "maintainer"}, {"user": "carol", "access_level": "guest"}],
                "hooks": [{"name": "moved", "url": "https://new.example.org", "previously": ["https://old.example.org"]}, {"name": "ci", "url": "https://ci.example.org"}],
                "push_rule": {"member_check": false},
            }),
        ),
        project(
            "acme/neo",
            json!({
                "create": true,
                "settings": {"description": "made", "ci_default_git_depth": 5},
                "variables": [{"key": "A", "value": "x"}],
                "members": [{"user": "alice", "access_level": "developer"}],
                "hooks": [{"name": "ci", "url": "https://ci.example.org"}],
                "push_rule": {"prevent_secrets": true},
            }),
        ),
    ];
    (seed(&[seed_project]), documents)
}

/// A run with one fault.
async fn with_fault(
    path: &str,
    effect: &FaultEffect,
) -> (Result<Outcome, undrift::api::ApiError>, World) {
    let (seed, documents) = scenario();
    let fault = InjectedFault {
        method: Some("GET".parse().unwrap()),
        path_contains: path.to_owned(),
        nth: 0,
        effect: effect.clone(),
    };
    let mut world = World::new(Profile { faults: vec![fault], ..Profile::default() }, seed).await;
    world.acknowledged = vec!["protection:**"];
    world.declare(&documents);
    (world.try_apply().await, world)
}

/// A read that always fails never looks like absence, and is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_always_fails_is_reported() {
    let reads = [
        "/projects/1/variables",
        "/projects/1/hooks",
        "/projects/1/members",
        "/projects/1/push_rule",
        "/users",
        "/namespaces",
    ];
    for path in reads {
        for effect in [
            FaultEffect::StatusBefore(500),
            FaultEffect::StatusBefore(403),
            FaultEffect::Html200,
            FaultEffect::EmptyBody,
            FaultEffect::Redirect("https://elsewhere.example.org/".into()),
        ] {
            let (outcome, world) = with_fault(path, &effect).await;
            let case = format!("{effect:?} on GET {path}");
            match outcome {
                Ok(outcome) => {
                    let complete =
                        outcome.plan.incomplete.is_empty() && outcome.plan.problems.is_empty();
                    assert!(!complete, "{case}: {:#?}", outcome.plan.steps);
                }
                Err(error) => assert!(!error.to_string().is_empty(), "{case}"),
            }
            let unexpected = world.writes().into_iter().filter(|write| {
                path.starts_with("/projects/1") && write.contains(&format!("/api/v4{path}"))
            });
            assert_eq!(
                unexpected.collect::<Vec<_>>(),
                [] as [&str; 0],
                "{case}: nothing is written where nothing was read"
            );
        }
    }
}

/// Looking up what may already be at the path of a new group concerns only that group.
#[tokio::test]
async fn a_failed_look_up_of_a_new_path_blocks_no_other_project() {
    let fault = InjectedFault {
        method: Some("GET".parse().unwrap()),
        path_contains: "/projects/acme%2Fadded".to_owned(),
        nth: 0,
        effect: FaultEffect::StatusBefore(403),
    };
    let profile = Profile { faults: vec![fault], ..Profile::default() };
    let world = World::new(profile, scenario().0).await;
    world.declare(&[
        group("acme/added", json!({"create": true})),
        project("acme/here", json!({"settings": {"description": "new"}})),
    ]);
    let outcome = world.try_apply().await.unwrap();
    let incomplete = outcome.plan.incomplete.iter().map(|part| part.address.to_string());
    assert_eq!(incomplete.collect::<Vec<_>>(), ["acme/added"]);
    assert!(world.writes().iter().any(|write| write.contains("/projects/1")));
}
