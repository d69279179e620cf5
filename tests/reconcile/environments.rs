//! Protected environments: who deploys, and who approves that.

use serde_json::{Value as Json, json};
use undrift::{export::SecretHandling, sandbox::Profile};

use crate::world::{NEWEST, World, project, seed};

const LIVE_ENVIRONMENT: &str = "/projects/acme%2Fshop/protected_environments/live";

async fn world() -> World {
    let profile = Profile::default();
    let members = json!([{"user": "alice", "access_level": "developer"}]);
    World::new(
        profile.with_release(NEWEST),
        seed(&[json!({"path": "acme/shop", "members": members})]),
    )
    .await
}

fn shop(rules: &Json) -> [Json; 1] {
    let live = json!({"name": "live", "deploy_access_levels": [{"access_level": "maintainer"}], "approval_rules": rules});
    [project("acme/shop", json!({"protected_environments": [live]}))]
}

/// The rules of the service: id, level, user and number.
async fn rules(world: &World) -> Json {
    let live = world.get(LIVE_ENVIRONMENT).await;
    let rows = live["approval_rules"].as_array().unwrap().iter();
    rows.map(|row| {
        json!([row["id"], row["access_level"], row["user_id"], row["required_approvals"]])
    })
    .collect()
}

/// A rule is changed in place, which needs its number again; its removal names it again.
#[tokio::test]
async fn approval_rules_are_added_changed_and_removed() {
    let mut world = world().await;
    world.declare(&shop(
        &json!([{"access_level": "developer"}, {"user": "alice", "required_approvals": 2}]),
    ));
    world.converge("new rules").await;
    let alice = world.get("/users?username=alice").await[0]["id"].clone();
    assert_eq!(rules(&world).await, json!([[2, 30, null, 1], [3, null, alice, 2]]));

    world.declare(&shop(
        &json!([{"access_level": "maintainer"}, {"user": "alice", "required_approvals": 3}]),
    ));
    let refused = world.plan().await;
    let refused: Vec<_> = refused.refusals.iter().map(|refusal| format!("{refusal:?}")).collect();
    assert!(refused.join(" ").contains("require fewer approvals to deploy"), "{refused:?}");
    world.acknowledged = vec!["protection:**"];
    world.converge("another level, and a higher number").await;
    assert_eq!(rules(&world).await, json!([[3, null, alice, 3], [4, 40, null, 1]]));

    world.declare(&shop(&json!([])));
    world.converge("no rules").await;
    assert_eq!(rules(&world).await, json!([]));
}

/// More approvals by more people need no acknowledgement; who is declared with a default is equal to
/// who is declared without.
#[tokio::test]
async fn stricter_rules_need_no_acknowledgement_and_defaults_are_equal() {
    let world = world().await;
    for (rules, steps) in [
        (json!([]), 1),
        (json!([{"user": "alice"}]), 1),
        (json!([{"user": "alice", "required_approvals": 1, "group_inheritance_type": 0}]), 0),
        (json!([{"user": "alice", "required_approvals": 2}, {"access_level": "developer"}]), 1),
    ] {
        world.declare(&shop(&rules));
        assert_eq!(world.plan().await.steps.len(), steps, "{rules}");
        world.converge("stricter").await;
    }
}

#[tokio::test]
async fn an_export_writes_approval_rules() {
    let world = world().await;
    world.declare(&shop(
        &json!([{"user": "alice", "required_approvals": 2}, {"access_level": "developer"}]),
    ));
    world.converge("to export").await;
    let written = world.export(SecretHandling::Plain).await;
    let text: String = written.files.iter().map(|file| &*file.text).collect();
    assert!(text.contains("approval_rules:"), "{text}");
    assert!(
        text.contains("required_approvals: 2") && !text.contains("required_approvals: 1"),
        "{text}"
    );
}

/// Without a stopping job, the service requires `force`.
#[tokio::test]
async fn an_environment_that_only_a_job_stops_is_removed() {
    let mut world = world().await;
    let live = json!({"name": "live", "auto_stop_setting": "with_action"});
    world.declare(&[project("acme/shop", json!({"environments": [live]}))]);
    world.converge("new").await;
    let path = "/projects/acme%2Fshop/environments";
    let id = world.get(path).await[0]["id"].clone();
    let refused = world.call("POST", &format!("{path}/{id}/stop"), None).await;
    assert!(refused["message"].as_str().unwrap().contains("failed to change"), "{refused}");
    world.acknowledged = vec!["removals:**"];
    let gone = json!({"name": "live", "state": "absent"});
    world.declare(&[project("acme/shop", json!({"environments": [gone]}))]);
    let plan = world.converge("removed").await;
    let shown = format!("{:?}", plan.steps[0]);
    assert!(shown.contains("stop?force=true"), "{shown}");
    assert_eq!(world.get(path).await, json!([]));
}
