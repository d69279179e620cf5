//! Conclusions of reads, and effects of failed reads.

use serde_json::json;
use undrift::sandbox::{FaultEffect, InjectedFault, Profile};

use crate::world::{World, project, seed};

fn addresses<'a>(of: impl IntoIterator<Item = &'a undrift::address::Address>) -> Vec<String> {
    of.into_iter().map(ToString::to_string).collect()
}

/// The service reads a path of digits as an id. A group with such a path is still found by it.
#[tokio::test]
async fn a_group_is_found_by_its_path_and_never_by_a_number() {
    let world = World::new(Profile::default(), seed(&[])).await;
    // A path needs at least two characters.
    let mut id = 0;
    while id < 10 {
        let spare = format!("spare-{id}");
        world.call("POST", "/groups", Some(json!({"name": spare, "path": spare}))).await;
        id = world.get(&format!("/groups/{spare}")).await["id"].as_i64().expect("a group");
    }
    let id = id.to_string();
    let path = format!("{id}/newer");
    world.declare(&[project(
        &path,
        json!({"create": true, "variables": [{"key": "A", "value": "x"}]}),
    )]);
    let plan = world.plan().await;
    assert_eq!(
        plan.problems.iter().map(|problem| problem.code).collect::<Vec<_>>(),
        ["missing-namespace"],
        "{plan:#?}"
    );
    world
        .call("POST", "/groups", Some(json!({"name": id, "path": id, "visibility": "private"})))
        .await;
    world.converge("a group called like the id of another").await;
    assert_eq!(world.get("/projects?search=newer").await[0]["path_with_namespace"], path.as_str());
}

/// A failed look-up concerns the section that names the user, and is not repeated for other entries
/// with the same name.
#[tokio::test]
async fn a_failed_user_lookup_blocks_one_section_of_each_project() {
    let world = World::new(Profile::default(), seed(&[json!({"path": "acme/other"})])).await;
    let members = json!([{"user": "alice", "access_level": "developer"}]);
    let declared = (0..9)
        .map(|i| project(&format!("acme/neo{i}"), json!({"create": true, "members": members})));
    let other =
        project("acme/other", json!({"settings": {"description": "z"}, "members": members}));
    world.declare(&declared.chain([other]).collect::<Vec<_>>());
    let effect = FaultEffect::StatusBefore(403);
    world.sandbox.add_fault(InjectedFault {
        method: None,
        path_contains: "/users?".into(),
        nth: 0,
        effect,
    });
    let plan = world.plan().await;
    let steps = addresses(plan.steps.iter().map(|step| &step.address));
    assert_eq!(steps.len(), 10);
    assert!(
        steps.contains(&"acme/other#settings".to_owned())
            && steps.contains(&"acme/neo8".to_owned()),
        "{steps:?}"
    );
    let incomplete = addresses(plan.incomplete.iter().map(|scope| &scope.address));
    assert!(
        incomplete.len() == 10 && incomplete.iter().all(|address| address.ends_with("#members")),
        "{incomplete:?}"
    );
    assert_eq!(plan.incomplete[0].reason.status, Some(403));
    let look_ups = world.requests().iter().filter(|request| request.contains("/users?")).count();
    assert_eq!(look_ups, 1, "{:?}", world.requests());
}

/// A switch that is off somewhere does not block the caller everywhere.
#[tokio::test]
async fn a_403_in_some_projects_does_not_block_the_others() {
    let settings =
        |on: bool| json!({"builds_access_level": if on { "enabled" } else { "disabled" }});
    let projects: Vec<_> = (0..9)
        .map(|i| json!({"path": format!("acme/p{i}"), "settings": settings(i > 6)}))
        .collect();
    let world = World::new(Profile::default(), seed(&projects)).await;
    let declared = (0..9).map(|i| {
        project(&format!("acme/p{i}"), json!({"variables": [{"key": "A", "value": "1"}]}))
    });
    world.declare(&declared.collect::<Vec<_>>());
    let plan = world.plan().await;
    assert_eq!((plan.steps.len(), plan.incomplete.len()), (2, 7), "{:#?}", plan.incomplete);
}
