//! Custom roles of members, by their names.

use serde_json::{Value as Json, json};
use undrift::sandbox::Profile;

use crate::world::{LATER, World, project, seed};

const ROLES: &str = "/member_roles";

/// A service with these roles, all of them for reporters.
async fn world(roles: &[&str]) -> World {
    let mut seed = seed(&[json!({"path": "acme/shop"})]);
    seed["tier"] = "ultimate".into();
    let world = World::new(Profile::default().at(LATER), seed).await;
    for name in roles {
        let role = json!({"name": name, "base_access_level": 20, "read_vulnerability": true});
        let made = world.call("POST", ROLES, Some(role)).await;
        assert_eq!(made["name"], *name, "{made}");
    }
    world
}

fn bob(role: Json) -> [Json; 1] {
    let bob = json!({"user": "bob", "access_level": "reporter", "member_role": role});
    [project("acme/shop", json!({"members": [bob]}))]
}

async fn live(world: &World) -> Json {
    let all = world.get("/projects/acme%2Fshop/members").await;
    let bob = all.as_array().unwrap().iter().find(|member| member["username"] == "bob");
    bob.unwrap()["member_role"]["name"].clone()
}

#[tokio::test]
async fn a_member_gets_a_role_by_name_and_loses_it() {
    let world = world(&["auditor", "triage"]).await;
    for role in [json!("auditor"), json!("triage"), Json::Null, json!("auditor")] {
        world.declare(&bob(role.clone()));
        assert_eq!(world.converge("a role").await.steps.len(), 1, "{role}");
        assert_eq!(live(&world).await, role);
    }
    // An edit of another field keeps the role, also if it is not declared.
    let until = json!({"user": "bob", "access_level": "reporter", "expires_at": "2099-01-31"});
    world.declare(&[project("acme/shop", json!({"members": [until]}))]);
    assert_eq!(world.converge("a day").await.steps.len(), 1);
    assert_eq!(live(&world).await, "auditor");
}

/// Nothing is looked up for a role that a member has.
#[tokio::test]
async fn roles_are_looked_up_for_changes_only() {
    let world = world(&["auditor"]).await;
    world.declare(&bob("auditor".into()));
    world.converge("a role").await;
    let before = world.requests().len();
    assert!(world.plan().await.steps.is_empty());
    let asks = |request: &String| request.contains("member_roles");
    assert!(!world.requests()[before..].iter().any(asks));
}

#[tokio::test]
async fn an_unknown_role_is_a_problem() {
    let world = world(&["auditor"]).await;
    for name in ["Auditor", "nobody"] {
        world.declare(&bob(name.into()));
        let plan = world.plan().await;
        let problems: Vec<_> = plan.problems.iter().map(|problem| problem.code).collect();
        assert_eq!(problems, ["unknown-role"]);
    }
}
