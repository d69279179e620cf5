//! Headers of hooks, and variables in their URLs: the service only shows their keys.

use serde_json::{Value as Json, json};
use undrift::{diff::Reason, plan::Plan, sandbox::Profile};

use crate::world::{NEWEST, World, group, project, seed};

const URL: &str = "https://ci.example.org/";
const OTHER_URL: &str = "https://ci.example.org/other";

async fn world() -> World {
    let mut world =
        World::new(Profile::default().with_release(NEWEST), seed(&[json!({"path": "acme/shop"})]))
            .await;
    for name in ["TOKEN", "ONE", "OTHER"] {
        world.set_variable(name, &format!("the-value-of-{name}"));
    }
    // A hook may have a token, which a new address would get.
    world.acknowledged = vec!["protection:**"];
    world
}

/// Rows with these keys, all with one secret.
fn secret_rows(keys: &[&str], name: &str) -> Json {
    keys.iter().map(|key| json!({"key": key, "value": {"env": name}})).collect()
}

fn declare(world: &World, hook: Json) {
    world.declare(&[project("acme/shop", json!({"hooks": [hook]}))]);
}

/// The keys that the service shows of the only hook.
async fn keys(world: &World, path: &str, field: &str) -> Vec<String> {
    let hooks = world.get(&format!("{path}/hooks")).await;
    assert_eq!(hooks.as_array().map(Vec::len), Some(1), "{hooks}");
    let hook = world.get(&format!("{path}/hooks/{}", hooks[0]["id"])).await;
    let rows = hook[field].as_array().into_iter().flatten();
    rows.map(|row| row["key"].as_str().unwrap().to_owned()).collect()
}

fn is_unverified(plan: &Plan) -> bool {
    plan.notes.iter().any(|note| {
        note.reason == Reason::CannotVerify
            && note.fields.iter().any(|name| name == "custom_headers")
    })
}

#[tokio::test]
async fn headers_of_a_hook_become_the_declared_ones() {
    let world = world().await;
    const SHOP: &str = "/projects/acme%2Fshop";
    let hook = |keys: &[&str], url: &str| {
        declare(
            &world,
            json!({"name": "ci", "url": url, "custom_headers": secret_rows(keys, "ONE")}),
        );
    };
    let put = "PUT /api/v4/projects/1/hooks/1".to_owned();
    let gone = |key: &str| format!("DELETE /api/v4/projects/1/hooks/1/custom_headers/{key}");
    let create = "POST /api/v4/projects/1/hooks".to_owned();
    for (names, url, sent) in [
        (&["X-A", "X-B"][..], URL, vec![create]),
        (&["X-A", "X-C"], URL, vec![put.clone(), gone("X-B")]),
        // The service removes all headers when the URL changes.
        (&["X-A", "X-C"], OTHER_URL, vec![put.clone(), put.clone()]),
        (&["X-D"], URL, vec![put.clone(), put.clone()]),
        (&[], URL, vec![put, gone("X-D")]),
    ] {
        let before = world.writes().len();
        hook(names, url);
        world.converge(&format!("{names:?}")).await;
        assert_eq!(world.writes()[before..], sent, "{names:?}");
        assert_eq!(keys(&world, SHOP, "custom_headers").await, names);
        assert_eq!(is_unverified(&world.plan().await), !names.is_empty());
    }
    // Another one by hand.
    world
        .call(
            "PUT",
            "/projects/1/hooks/1",
            Some(json!({"custom_headers": [{"key": "X-E", "value": "v"}]})),
        )
        .await;
    assert_eq!(world.converge("by hand").await.steps.len(), 1);
    assert_eq!(keys(&world, SHOP, "custom_headers").await, [] as [&str; 0]);
}

#[tokio::test]
async fn a_plan_notes_that_a_new_url_removes_headers() {
    let world = world().await;
    declare(&world, json!({"name": "ci", "url": URL}));
    world.converge("a new hook").await;
    declare(&world, json!({"name": "ci", "url": OTHER_URL}));
    let notes = format!("{:?}", world.plan().await.notes);
    assert!(notes.contains("removes its `custom_headers`, if it has any"), "{notes}");
}

#[tokio::test]
async fn url_variables_become_the_declared_ones_and_the_url_stays() {
    let world = world().await;
    const SHOP: &str = "/projects/acme%2Fshop";
    let hook = |url: &str, keys: &[&str]| {
        declare(
            &world,
            json!({"name": "ci", "url": url, "url_variables": secret_rows(keys, "ONE")}),
        );
    };
    let url = "https://ci.example.org/{path}";
    for (names, sent) in [
        (&["path", "more"][..], vec!["POST /api/v4/projects/1/hooks"]),
        (
            &["path"],
            vec![
                "PUT /api/v4/projects/1/hooks/1",
                "DELETE /api/v4/projects/1/hooks/1/url_variables/more",
            ],
        ),
    ] {
        let before = world.writes().len();
        hook(url, names);
        world.converge(&format!("{names:?}")).await;
        assert_eq!(world.writes()[before..], sent, "{names:?}");
        assert_eq!(keys(&world, SHOP, "url_variables").await, names);
    }
    // The service would remove the variables, even if the same request has them.
    hook("https://ci.example.org/other/{path}", &["path"]);
    let plan = world.plan().await;
    let codes: Vec<_> = plan.problems.iter().map(|problem| problem.code).collect();
    assert_eq!((codes, plan.steps.len()), (vec!["hook-url"], 0));
}

#[tokio::test]
async fn a_hook_of_a_group_has_headers() {
    let world = world().await;
    let hook = json!({"url": OTHER_URL, "custom_headers": secret_rows(&["X-A"], "OTHER")});
    world.declare(&[group("acme", json!({"hooks": [hook]}))]);
    world.converge("a hook of a group").await;
    assert_eq!(keys(&world, "/groups/acme", "custom_headers").await, ["X-A"]);
    // The service would remove the headers, and nothing declares them.
    let hook = json!({"url": URL, "previously": [OTHER_URL], "token": {"env": "TOKEN"}});
    world.declare(&[group("acme", json!({"hooks": [hook]}))]);
    let plan = world.plan().await;
    let problems: Vec<_> = plan.problems.iter().map(|problem| &*problem.message).collect();
    assert_eq!(problems, ["the hook would lose its undeclared `custom_headers`"]);
}

/// A secret in a field that undrift does not know is not shown.
#[tokio::test]
async fn a_reference_below_extra_is_sent_as_its_secret() {
    let world = world().await;
    let extra = json!({"new_field": [{"value": {"env": "ONE"}}]});
    declare(&world, json!({"url": URL, "extra": extra}));
    let plan = world.apply().await.plan;
    let shown = format!("{:?}", plan.steps);
    assert!(!shown.contains("the-value-of-ONE"), "{shown}");
    let again = world.plan().await;
    assert!(again.steps.is_empty(), "{:#?}", again.steps);
}
