//! Resource groups: jobs make them, and undrift only edits them.

use serde_json::{Value as Json, json};
use undrift::{
    diff::{Note, Reason},
    export::SecretHandling,
    sandbox::Profile,
};

use crate::world::{NEWEST, World, project, seed};

const PRODUCTION: &str = "/projects/acme%2Fshop/resource_groups/production";

async fn world(profile: Profile) -> World {
    let shop = json!({"path": "acme/shop", "resource_groups": ["production", "staging/eu"]});
    World::new(profile, seed(&[shop])).await
}

fn declared(groups: &Json) -> Json {
    json!({"resource_groups": groups})
}

fn is_waiting(note: &Note) -> bool {
    note.reason == Reason::Waits { why: "until the service has the resource group".into() }
}

#[tokio::test]
async fn a_resource_group_is_edited_and_the_others_stay_as_they_are() {
    let world = world(Profile::default().with_release(NEWEST)).await;
    let both = json!([
        {"key": "production", "process_mode": "oldest_first"},
        {"key": "staging/eu", "process_mode": "newest_first"},
    ]);
    world.declare(&[project("acme/shop", declared(&both))]);
    let plan = world.converge("both").await;
    assert_eq!(plan.steps.len(), 2);
    world.declare(&[project("acme/shop", declared(&json!([both[1]])))]);
    let plan = world.converge("one of them").await;
    assert_eq!((plan.steps.len(), plan.notes.len()), (0, 0));
    assert_eq!(world.get(PRODUCTION).await["process_mode"], "oldest_first");
}

/// Also in a new project.
#[tokio::test]
async fn a_missing_resource_group_waits() {
    let world = world(Profile::default()).await;
    let groups = declared(&json!([{"key": "later", "process_mode": "oldest_first"}]));
    let mut new = groups.clone();
    new["create"] = true.into();
    world.declare(&[project("acme/shop", groups), project("acme/fresh", new)]);
    let plan = world.converge("later").await;
    let addresses: Vec<_> = plan.steps.iter().map(|step| step.address.to_string()).collect();
    assert_eq!(addresses, ["acme/fresh"]);
    let notes: Vec<_> = plan.notes.iter().filter(|note| is_waiting(note)).collect();
    let at: Vec<_> = notes.iter().map(|note| note.address.to_string()).collect();
    assert_eq!(at, ["acme/fresh#resource_groups/later", "acme/shop#resource_groups/later"]);
    assert!(notes.iter().all(|note| note.fields == ["process_mode"]));
}

/// It cannot be read while CI/CD is off, and the run that opens it edits it.
#[tokio::test]
async fn a_resource_group_is_edited_once_ci_is_enabled() {
    let shop = json!({
        "path": "acme/shop", "resource_groups": ["production"],
        "settings": {"builds_access_level": "disabled"},
    });
    let world = World::new(Profile::default(), seed(&[shop])).await;
    let mode = |key: &str| json!([{"key": key, "process_mode": "oldest_first"}]);
    let settings = json!({"builds_access_level": "enabled"});
    let groups = |key: &str| json!({"settings": settings, "resource_groups": mode(key)});
    world.declare(&[project("acme/shop", groups("production"))]);
    let plan = world.converge("opened and edited").await;
    assert_eq!((plan.steps.len(), plan.notes.iter().any(is_waiting)), (2, false));
    assert_eq!(world.get(PRODUCTION).await["process_mode"], "oldest_first");
    world
        .declare(&[project("acme/shop", json!({"settings": {"builds_access_level": "disabled"}}))]);
    world.converge("closed").await;
    world.declare(&[project("acme/shop", groups("later"))]);
    world.converge("one that does not exist").await;
}

#[tokio::test]
async fn an_export_contains_resource_groups() {
    let world = world(Profile::default()).await;
    let written = world.export(SecretHandling::Plain).await;
    let text: String = written.files.iter().map(|file| &*file.text).collect();
    let entries = "resource_groups:\n  - {key: production, process_mode: unordered}\n  - {key: staging/eu, process_mode: unordered}\n";
    assert!(text.contains(entries), "{text}");
}
