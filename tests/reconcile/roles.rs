//! Custom roles of members, by their names.

use serde_json::{Value as Json, json};
use undrift::sandbox::Profile;

use crate::world::{NEWEST, World, project, seed};

const ROLES: &str = "/member_roles";

const CAROL_TOKEN: &str = "token-of-carol";

/// A service with these roles, all for reporters.
async fn world(roles: &[&str]) -> World {
    let carol = json!([{"user": "carol", "access_level": "maintainer"}]);
    let mut seed = seed(&[json!({"path": "acme/shop", "members": carol})]);
    seed["users"][2]["token"] = CAROL_TOKEN.into();
    let world = World::new(Profile::default().with_release(NEWEST), seed).await;
    for name in roles {
        let role = json!({"name": name, "base_access_level": 20, "read_vulnerability": true});
        let response = world.call("POST", ROLES, Some(role)).await;
        assert_eq!(response["name"], *name, "{response}");
    }
    world
}

fn bob(role: Json) -> [Json; 1] {
    let bob = json!({"user": "bob", "access_level": "reporter", "member_role": role});
    [project("acme/shop", json!({"members": [bob]}))]
}

async fn live(world: &World) -> Json {
    let response = world.get("/projects/acme%2Fshop/members").await;
    let bob = response.as_array().unwrap().iter().find(|member| member["username"] == "bob");
    bob.unwrap()["member_role"]["name"].clone()
}

#[tokio::test]
async fn a_member_gets_a_role_by_name_and_loses_it() {
    // Case counts.
    let world = world(&["auditor", "triage", "Auditor"]).await;
    for role in [json!("auditor"), json!("Auditor"), json!("triage"), Json::Null, json!("auditor")]
    {
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

/// A role that a member already has is not looked up.
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

/// The service refuses a role of another level.
#[tokio::test]
async fn a_member_level_must_match_the_role() {
    let world = world(&["auditor"]).await;
    let problems = async |member: Json| {
        world.declare(&[project("acme/shop", json!({"members": [member]}))]);
        let plan = world.plan().await;
        assert_eq!(plan.problems.is_empty(), plan.steps.len() == 1);
        let problems = plan.problems.iter().map(|problem| (problem.code, problem.message.clone()));
        problems.collect::<Vec<_>>()
    };
    let member = |level: &str, role: Json| json!({"user": "bob", "access_level": level, "member_role": role});
    let other = "the custom role `auditor` belongs to `reporter`, and the member has `developer`";
    let other = [("role-level", other.to_owned())];
    assert_eq!(problems(member("developer", "auditor".into())).await, other);
    world.declare(&bob("auditor".into()));
    world.converge("a role").await;
    assert_eq!(problems(member("developer", "auditor".into())).await, other);
    assert_eq!(problems(member("developer", Json::Null)).await, []);
    world.converge("another level without a role").await;
    assert_eq!(live(&world).await, Json::Null);
    // Both change in one request.
    world.declare(&bob("auditor".into()));
    world.converge("both").await;
}

/// Only administrators can look up roles; the rest of the section is planned.
#[tokio::test]
async fn an_invisible_role_is_a_problem_of_one_entry() {
    let world = world(&["auditor"]).await;
    let bob = json!({"user": "bob", "access_level": "reporter", "member_role": "auditor"});
    let others = json!([bob, {"user": "alice", "access_level": "developer"}]);
    world.declare(&[project("acme/shop", json!({"members": others}))]);
    let plan = world.try_plan_as(CAROL_TOKEN).await.unwrap();
    let problems: Vec<_> = plan.problems.iter().map(|problem| &*problem.message).collect();
    assert_eq!(problems, ["the token sees no custom role `auditor`"]);
    assert!(plan.incomplete.is_empty() && plan.steps.len() == 1, "{plan:#?}");
}

/// The token's user might not be able to give the role back to itself.
#[tokio::test]
async fn a_guard_asks_before_the_tokens_user_loses_a_role() {
    let world = world(&[]).await;
    let lead = json!({"name": "lead", "base_access_level": 40, "archive_project": true});
    let lead = world.call("POST", ROLES, Some(lead)).await;
    let given = json!({"access_level": 40, "member_role_id": lead["id"]});
    world.call("PUT", "/projects/acme%2Fshop/members/4", Some(given)).await;
    let carol = json!({"user": "carol", "access_level": "maintainer", "member_role": null});
    world.declare(&[project("acme/shop", json!({"members": [carol]}))]);
    let plan = world.try_plan_as(CAROL_TOKEN).await.unwrap();
    let refused: Vec<_> = plan.refusals.iter().map(|refusal| &*refusal.reason).collect();
    assert_eq!(refused, ["would take the custom role `lead` from `carol`, the token's owner"]);
    assert!(world.plan().await.refusals.is_empty(), "root is somebody else");
}

/// Only owners archive a project. A custom role may allow it, and a share may make somebody an owner.
#[tokio::test]
async fn a_step_for_owners_is_refused_before_the_first_write() {
    let world = world(&[]).await;
    world.declare(&[project(
        "acme/shop",
        json!({"settings": {"description": "new"}, "archived": true}),
    )]);
    let codes = async || -> Vec<&'static str> {
        let plan = world.try_plan_as(CAROL_TOKEN).await.unwrap();
        plan.problems.iter().map(|problem| problem.code).collect()
    };
    assert_eq!(codes().await, ["low-role"]);
    let lead = json!({"name": "lead", "base_access_level": 40, "archive_project": true});
    let lead = world.call("POST", ROLES, Some(lead)).await;
    let with_role = |role: &Json| json!({"access_level": 40, "member_role_id": role});
    let member = "/projects/acme%2Fshop/members/4";
    world.call("PUT", member, Some(with_role(&lead["id"]))).await;
    assert_eq!(codes().await, [] as [&str; 0]);
    world.call("PUT", member, Some(with_role(&Json::Null))).await;
    assert_eq!(codes().await, ["low-role"]);
    let team = world.call("POST", "/groups", Some(json!({"name": "team", "path": "team"}))).await;
    let owner = json!({"user_id": 4, "access_level": 50});
    world.call("POST", "/groups/team/members", Some(owner)).await;
    let share = json!({"group_id": team["id"], "group_access": 50});
    world.call("POST", "/projects/acme%2Fshop/share", Some(share)).await;
    assert_eq!(codes().await, [] as [&str; 0]);
}
