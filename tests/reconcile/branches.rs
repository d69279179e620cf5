//! Branches that must exist: created, and never moved or removed.

use serde_json::{Value as Json, json};
use undrift::{diff::Reason, export::SecretHandling, plan::Plan, sandbox::Profile};

use crate::world::{NEWEST, World, project, seed};

const BRANCHES: &str = "/projects/acme%2Fshop/repository/branches";

async fn world(shop: Json) -> World {
    World::new(Profile::default().with_release(NEWEST), seed(&[shop])).await
}

fn shop(sections: Json) -> Json {
    project("acme/shop", sections)
}

async fn names(world: &World) -> Vec<String> {
    let response = world.get(BRANCHES).await;
    response
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

fn addresses(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| step.address.to_string()).collect()
}

fn wait_reasons(plan: &Plan) -> Vec<&str> {
    let reasons = plan.notes.iter().map(|note| match &note.reason {
        Reason::Waits { why } => &**why,
        _ => "",
    });
    reasons.filter(|why| !why.is_empty()).collect()
}

#[tokio::test]
async fn a_missing_branch_is_created_and_others_stay() {
    let world = world(json!({"path": "acme/shop", "branches": ["main", "other"]})).await;
    let both = json!([{"name": "release/1.0", "ref": "main"}, {"name": "main", "ref": "gone"}]);
    world.declare(&[shop(json!({"branches": both}))]);
    let plan = world.converge("a new branch").await;
    assert_eq!(addresses(&plan), ["acme/shop#branches/release%2F1.0"]);
    assert_eq!(names(&world).await, ["main", "other", "release/1.0"]);
    // The source of a branch that exists is not compared.
    let other_source = json!([{"name": "release/1.0", "ref": "other"}]);
    world.declare(&[shop(json!({"branches": other_source}))]);
    let plan = world.plan().await;
    assert_eq!((plan.steps.len(), plan.notes.len()), (0, 0), "{:?}", plan.notes);
}

/// Also where the service does not know the filter.
#[tokio::test]
async fn only_declared_branches_are_read() {
    let many: Vec<_> = (0..350).map(|i| format!("b{i}")).collect();
    let world = world(json!({"path": "acme/shop", "branches": many})).await;
    world.declare(&[shop(
        json!({"branches": [{"name": "b3", "ref": "b1"}, {"name": "b+", "ref": "b1"}]}),
    )]);
    let before = world.requests().len();
    assert_eq!(addresses(&world.plan().await), ["acme/shop#branches/b%2B"]);
    let requests = world.requests().split_off(before);
    let reads: Vec<_> = requests.iter().filter(|line| line.contains("branches")).collect();
    assert_eq!(reads.len(), 1, "{reads:?}");
    let all: Vec<_> = (0..350).map(|i| json!({"name": format!("b{i}"), "ref": "trunk"})).collect();
    world.declare(&[shop(json!({"branches": all}))]);
    assert!(world.plan().await.steps.is_empty());
}

#[tokio::test]
async fn objects_that_use_a_new_branch_come_after_it() {
    let world = world(json!({"path": "acme/shop", "branches": ["main"]})).await;
    let nobody = json!([{"access_level": "no_access"}]);
    world.declare(&[shop(json!({
        "branches": [{"name": "a", "ref": "develop"}, {"name": "develop", "ref": "main"}, {"name": "stable/1", "ref": "a"}],
        "settings": {"default_branch": "develop", "issues_access_level": "disabled"},
        "protected_branches": [
            {"name": "develop"},
            {"name": "stable/*", "allowed_to_push": nobody, "allowed_to_merge": nobody},
        ],
        "pipeline_schedules": [{"description": "nightly", "ref": "develop", "cron": "0 4 * * *"}],
    }))]);
    let plan = world.converge("branches and what names them").await;
    let steps = addresses(&plan);
    let first: Vec<_> = steps.iter().take(3).map(String::as_str).collect();
    let expected =
        ["acme/shop#branches/develop", "acme/shop#branches/a", "acme/shop#branches/stable%2F1"];
    assert_eq!(first, expected, "{steps:?}");
    let named_by_settings = plan.steps.iter().find(|step| step.address.section == Some("settings"));
    let edges = &named_by_settings.unwrap().after;
    assert!(edges.iter().any(|edge| edge.address.to_string() == expected[0]), "{edges:?}");
    assert_eq!(world.get("/projects/acme%2Fshop").await["default_branch"], "develop");
}

/// The service refuses both, because neither source exists.
#[tokio::test]
async fn branches_that_start_from_each_other_are_not_created() {
    let world = world(json!({"path": "acme/shop", "branches": ["main"]})).await;
    let circle =
        json!([{"name": "a", "ref": "b"}, {"name": "b", "ref": "a"}, {"name": "c", "ref": "b"}]);
    world.declare(&[shop(json!({"branches": circle}))]);
    let applied = world.apply().await.applied.unwrap();
    assert!(applied.steps.iter().all(|step| !step.outcome.is_success()), "{applied:#?}");
    assert_eq!(names(&world).await, ["main"]);
}

#[tokio::test]
async fn a_new_project_gets_branches_after_its_first_commit() {
    let world = world(json!({"path": "acme/shop"})).await;
    let declared = |name: &str, readme: bool| {
        project(
            name,
            json!({
                "create": {"initialize_with_readme": readme},
                "settings": {"default_branch": "develop"},
                "branches": [{"name": "develop", "ref": "main"}, {"name": "release", "ref": "develop"}],
                "protected_branches": [{"name": "release"}],
            }),
        )
    };
    world.declare(&[declared("acme/filled", true), declared("acme/empty", false)]);
    let plan = world.converge("new projects").await;
    let waits = wait_reasons(&plan);
    assert_eq!(waits, ["until the repository has a branch"; 3], "{:?}", plan.notes);
    let filled = world.get("/projects/acme%2Ffilled/repository/branches").await;
    assert_eq!(filled.as_array().map(Vec::len), Some(3), "{filled}");
    assert_eq!(world.get("/projects/acme%2Ffilled").await["default_branch"], "develop");
    let file = "/projects/acme%2Fempty/repository/files/README.md";
    let commit = json!({"branch": "main", "content": "x", "commit_message": "first"});
    world.call("POST", file, Some(commit)).await;
    let plan = world.converge("a first commit").await;
    assert_eq!(plan.steps.len(), 3, "{:?}", addresses(&plan));
}

#[tokio::test]
async fn a_disabled_repository_gets_no_branches() {
    let off = json!({"repository_access_level": "disabled", "merge_requests_access_level": "disabled", "builds_access_level": "disabled"});
    let seed_project = json!({"path": "acme/shop", "branches": ["main"], "settings": off});
    let world = world(seed_project).await;
    let branches = json!([{"name": "develop", "ref": "main"}]);
    world.declare(&[shop(json!({"branches": branches, "settings": off}))]);
    let plan = world.converge("it stays closed").await;
    assert!(plan.steps.is_empty() && plan.incomplete.is_empty(), "{plan:#?}");
    let open_settings = json!({"repository_access_level": "enabled", "default_branch": "develop"});
    world.declare(&[shop(json!({"branches": branches, "settings": open_settings}))]);
    let plan = world.plan().await;
    assert_eq!(wait_reasons(&plan), ["until the branch can be created"]);
    world.apply().await;
    world.converge("it is open").await;
    assert_eq!(world.get("/projects/acme%2Fshop").await["default_branch"], "develop");
}

#[tokio::test]
async fn an_export_contains_no_branches_and_keeps_declared_ones() {
    let world = world(json!({"path": "acme/shop", "branches": ["main", "other"]})).await;
    let written = world.export(SecretHandling::Plain).await;
    let text: String = written.files.iter().map(|file| &*file.text).collect();
    assert!(!text.contains("\nbranches:"), "{text}");
}
