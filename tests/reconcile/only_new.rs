//! Fields that only a new entry gets: the end of a deploy key, and the report of an approval rule.

use serde_json::{Value as Json, json};
use undrift::{release::Release, sandbox::Profile};

use crate::world::{NEWEST, World, project, seed};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ci";

async fn world() -> World {
    World::new(Profile::default().with_release(NEWEST), seed(&[json!({"path": "acme/shop"})])).await
}

fn declare(world: &World, section: &str, entry: Json) {
    world.declare(&[project("acme/shop", json!({section: [entry]}))]);
}

async fn codes(world: &World) -> Vec<&'static str> {
    world.plan().await.problems.iter().map(|problem| problem.code).collect()
}

#[tokio::test]
async fn a_deploy_key_from_a_secret_keeps_its_expiry_date() {
    let mut world = world().await;
    world.set_variable("PUBLIC", KEY);
    let key = |end: &str| json!({"title": "ci", "key": {"env": "PUBLIC"}, "expires_at": end});
    declare(&world, "deploy_keys", key("2099-01-31"));
    world.converge("a key with an end").await;
    // The same point in time, and the key itself in place of its reference.
    declare(&world, "deploy_keys", key("2099-01-31T02:00:00+02:00"));
    assert!(world.plan().await.steps.is_empty());
    declare(&world, "deploy_keys", json!({"title": "ci", "key": KEY}));
    assert!(world.plan().await.steps.is_empty());
    declare(&world, "deploy_keys", key("2099-02-01"));
    assert_eq!(codes(&world).await, ["value"]);
}

#[tokio::test]
async fn a_report_approver_rule_converges() {
    let world = world().await;
    let rule = |number: u8| {
        let kind = "report_approver";
        json!({"name": "Coverage-Check", "rule_type": kind, "report_type": "code_coverage", "approvals_required": number})
    };
    for number in [1, 2] {
        declare(&world, "approval_rules", rule(number));
        world.converge("a rule about coverage").await;
    }
    let mut regular = rule(2);
    regular["rule_type"] = "regular".into();
    declare(&world, "approval_rules", regular);
    assert_eq!(codes(&world).await, ["value"]);
}

/// `no_access` among others has no effect.
#[tokio::test]
async fn no_access_among_other_grants_is_no_difference() {
    let shop =
        json!({"path": "acme/shop", "members": [{"user": "alice", "access_level": "developer"}]});
    let mut seed = seed(&[shop]);
    seed["users"] = json!([{"username": "alice"}]);
    let world = World::new(Profile::default().with_release(NEWEST), seed).await;
    let branch = |rows: Json| {
        declare(&world, "protected_branches", json!({"name": "main", "allowed_to_push": rows}));
    };
    branch(json!([{"user": "alice"}]));
    world.converge("a branch").await;
    branch(json!([{"access_level": "no_access"}, {"user": "alice"}]));
    let plan = world.plan().await;
    assert!(plan.steps.is_empty() && world.load_manifests().diagnostics.is_empty(), "{plan:#?}");
}

#[tokio::test]
async fn a_security_manager_is_a_member() {
    let mut seed = seed(&[json!({"path": "acme/shop"})]);
    seed["users"] = json!([{"username": "alice"}]);
    let world = World::new(Profile::default().with_release(Release::new(19, 0)), seed).await;
    declare(&world, "members", json!({"user": "alice", "access_level": "security_manager"}));
    world.converge("a security manager").await;
    declare(&world, "members", json!({"user": "alice", "access_level": 25}));
    assert!(world.plan().await.steps.is_empty());
}
