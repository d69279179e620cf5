//! Runners that exist, and the projects that have them.

use serde_json::{Value as Json, json};
use undrift::{export::SecretHandling, sandbox::Profile};

use crate::world::{NEWEST, World, project, seed};

const SHOP: &str = "/projects/acme%2Fshop/runners";

/// A world with these runners. A project of nobody's manifest owns them, the last one excepted.
async fn world(descriptions: &[&str]) -> World {
    let paths = ["acme/shop", "acme/machines"].map(|path| json!({"path": path}));
    let mut seed = seed(&paths);
    let runner = |name: &&str| json!({"description": name, "projects": ["acme/machines"]});
    let runners: Vec<_> = descriptions.iter().map(runner).collect();
    seed["runners"] = runners.into();
    let others = [
        json!({"description": "of the instance"}),
        json!({"description": "of the group", "group": "acme"}),
        json!({"projects": ["acme/shop"]}),
    ];
    seed["runners"].as_array_mut().unwrap().extend(others);
    let mut world = World::new(Profile::default().with_release(NEWEST), seed).await;
    world.acknowledged = vec!["protection:**", "removals:**"];
    world
}

fn shop(runners: &Json) -> [Json; 1] {
    [project("acme/shop", json!({"runners": runners}))]
}

/// The ids of the project's runners.
async fn ids(world: &World) -> Json {
    let response = world.get(&format!("{SHOP}?type=project_type")).await;
    response.as_array().unwrap().iter().map(|row| row["id"].clone()).collect()
}

async fn problems(world: &World) -> Vec<String> {
    let plan = world.plan().await;
    plan.problems.iter().map(|problem| format!("{}: {}", problem.code, problem.message)).collect()
}

#[tokio::test]
async fn a_runner_is_named_by_description_or_id() {
    let world = world(&["Docker", "metal"]).await;
    world.declare(&shop(&json!([{"runner": "docker"}, {"runner": 2}])));
    let plan = world.converge("both").await;
    assert_eq!(plan.steps.len(), 2);
    assert_eq!(ids(&world).await, json!([1, 2, 5]));
    // The other name means the same.
    world.declare(&shop(&json!([{"runner": 1}, {"runner": "metal"}])));
    assert_eq!(world.plan().await.steps.len(), 0);
    let gone = json!([{"runner": "docker", "state": "absent"}, {"runner": 2, "state": "absent"}]);
    world.declare(&shop(&gone));
    world.converge("none").await;
    assert_eq!(ids(&world).await, json!([5]));
}

/// A project that the run creates gets runners too.
#[tokio::test]
async fn a_new_project_gets_a_runner() {
    let world = world(&["docker"]).await;
    let new = json!({"create": true, "runners": [{"runner": "docker"}]});
    world.declare(&[project("acme/fresh", new)]);
    world.converge("a new project").await;
    let response = world.get("/projects/acme%2Ffresh/runners?type=project_type").await;
    assert_eq!(response[0]["id"], 1);
}

#[tokio::test]
async fn a_description_must_match_one_runner() {
    let world = world(&["twin", "TWIN", "metal"]).await;
    world.declare(&shop(&json!([{"runner": "twin"}])));
    let ambiguous = "ambiguous-runner: several runners are called `twin`, with the ids 1, 2";
    assert_eq!(problems(&world).await, [ambiguous]);
    // Same if the project has one of them.
    world.call("POST", SHOP, Some(json!({"runner_id": 2}))).await;
    assert_eq!(problems(&world).await, [ambiguous]);
    for (name, problem) in [
        ("gone", "unknown-runner: the service has no runner `gone`"),
        ("of the instance", "unknown-runner: the service has no runner `of the instance`"),
        ("of the group", "unknown-runner: the service has no runner `of the group`"),
    ] {
        world.declare(&shop(&json!([{"runner": name}])));
        assert_eq!(problems(&world).await, [problem]);
    }
    // The one that the project has can be removed by its description.
    world.declare(&shop(&json!([{"runner": "twin", "state": "absent"}])));
    world.converge("no twin").await;
    assert_eq!(ids(&world).await, json!([6]));
}

/// A runner takes the code and the variables of a project to another machine.
#[tokio::test]
async fn a_guard_asks_before_a_runner_is_added() {
    let mut world = world(&["docker"]).await;
    world.acknowledged.clear();
    world.declare(&shop(&json!([{"runner": "docker"}])));
    let plan = world.plan().await;
    let refusal = &plan.refusals[0];
    assert_eq!(refusal.acknowledgement, "protection:acme/shop#runners/docker");
}

/// The service refuses to remove a runner from its owning project.
#[tokio::test]
async fn an_owner_keeps_its_runner() {
    let world = world(&[]).await;
    let absent = json!({"runners": [{"runner": 3, "state": "absent"}]});
    let unlisted = json!({"runners": [], "unlisted": {"runners": "delete"}});
    for declared in [absent, unlisted] {
        world.declare(&[project("acme/shop", declared)]);
        let applied = world.apply().await.applied.unwrap();
        let failure = format!("{:?}", applied.steps[0].outcome);
        assert!(failure.contains("cannot unassign a runner from the owner project"), "{failure}");
        assert_eq!(ids(&world).await, json!([3]));
    }
}

/// Descriptions where they mean one runner, and ids elsewhere.
#[tokio::test]
async fn an_export_names_runners() {
    let world = world(&["docker", "twin", "twin"]).await;
    for id in [1, 2] {
        world.call("POST", SHOP, Some(json!({"runner_id": id}))).await;
    }
    let written = world.export(SecretHandling::Plain).await;
    let text: String = written.files.iter().map(|file| &*file.text).collect();
    for line in ["runner: docker", "runner: 2", "runner: 6"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("of the"), "{text}");
}

/// A maintainer of both projects needs no more.
#[tokio::test]
async fn a_maintainer_sees_the_runners_of_own_projects() {
    let paths = ["acme/shop", "acme/machines", "acme/other"].map(|path| {
        let members = if path == "acme/other" {
            json!([])
        } else {
            json!([{"user": "mia", "access_level": "maintainer"}])
        };
        json!({"path": path, "members": members})
    });
    let mut seed = seed(&paths);
    seed["users"].as_array_mut().unwrap().push(json!({"username": "mia", "token": "token-of-mia"}));
    seed["runners"] = json!([
        {"description": "docker", "projects": ["acme/machines"]},
        {"description": "docker", "projects": ["acme/other"]},
    ]);
    let world = World::new(Profile::default().with_release(NEWEST), seed).await;
    world.declare(&shop(&json!([{"runner": "docker"}])));
    let plan = world.try_plan_as("token-of-mia").await.unwrap();
    assert_eq!((plan.problems.len(), plan.steps.len()), (0, 1), "{plan:#?}");
    assert_eq!(problems(&world).await.len(), 1, "an administrator sees both");
}
