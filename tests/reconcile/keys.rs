//! Rules that name deploy keys of the project by their titles.

use serde_json::{Value as Json, json};
use undrift::{export::SecretHandling, release::Release, sandbox::Profile};

use crate::world::{NEWEST, World, project, seed};

const KEYS: [&str; 2] = [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICAhIiMkJSYnKCkqKywtLi8wMTIzNDU2Nzg5Ojs8PT4/",
];
const SHOP: &str = "/projects/acme%2Fshop";

async fn world() -> World {
    let mut world =
        World::new(Profile::default().with_release(NEWEST), seed(&[json!({"path": "acme/shop"})]))
            .await;
    world.acknowledged = vec!["protection:**", "removals:**"];
    world
}

fn key(at: usize, title: &str) -> Json {
    json!({"key": KEYS[at], "title": title, "can_push": true})
}

/// A branch and a tag, both for these rows.
fn rules(rows: &Json) -> Json {
    json!({
        "protected_branches": [{"name": "main", "allowed_to_push": rows}],
        "protected_tags": [{"name": "v*", "allowed_to_create": rows}],
    })
}

fn with_section(mut sections: Json, name: &str, section: Json) -> Json {
    sections[name] = section;
    sections
}

/// Grants to push to `main` and to create `v*`: levels, and key ids.
async fn read_grants(world: &World, path: &str) -> Json {
    let branch = world.get(&format!("{path}/protected_branches/main")).await;
    let tag = world.get(&format!("{path}/protected_tags/v*")).await;
    [&branch["push_access_levels"], &tag["create_access_levels"]]
        .map(|rows| {
            let rows = rows.as_array().unwrap().iter();
            rows.map(|row| match &row["deploy_key_id"] {
                Json::Null => row["access_level"].clone(),
                id => json!(format!("key {id}")),
            })
            .collect::<Json>()
        })
        .into_iter()
        .collect()
}

/// The key comes before the rules that name it, in a new project too, and goes after them.
#[tokio::test]
async fn rules_name_keys_by_title() {
    let world = world().await;
    let both = json!([{"access_level": "maintainer"}, {"deploy_key": "robot"}]);
    let sections = with_section(rules(&both), "deploy_keys", json!([key(0, "robot")]));
    let mut new = project("acme/other", sections.clone());
    new["create"] = true.into();
    world.declare(&[project("acme/shop", sections), new]);
    world.converge("new key").await;
    for path in [SHOP, "/projects/acme%2Fother"] {
        assert_eq!(read_grants(&world, path).await, json!([[40, "key 1"], [40, "key 1"]]));
    }

    // Another key, which existed without the right to push.
    let other = json!({"key": KEYS[1], "title": "other"});
    world.call("POST", &format!("{SHOP}/deploy_keys"), Some(other)).await;
    let other = json!([{"deploy_key": "other"}]);
    let keys = json!([key(1, "other"), {"key": KEYS[0], "state": "absent"}]);
    world.declare(&[project("acme/shop", with_section(rules(&other), "deploy_keys", keys))]);
    world.converge("another key").await;
    assert_eq!(read_grants(&world, SHOP).await, json!([["key 2"], ["key 2"]]));

    // Keys that are not declared are found too.
    world.declare(&[project("acme/shop", rules(&json!([{"deploy_key": "other"}])))]);
    assert_eq!(world.plan().await.steps.len(), 0);
}

/// A key's row also has a level, which does not count.
#[tokio::test]
async fn the_row_of_a_deploy_key_is_not_read_as_a_level() {
    let world = world().await;
    let robot = world.call("POST", &format!("{SHOP}/deploy_keys"), Some(key(0, "robot"))).await;
    let rule = json!({"name": "main", "allowed_to_push": [{"deploy_key_id": robot["id"]}]});
    world.call("POST", &format!("{SHOP}/protected_branches"), Some(rule)).await;
    let maintainers =
        json!([{"name": "main", "allowed_to_push": [{"access_level": "maintainer"}]}]);
    world.declare(&[project("acme/shop", json!({"protected_branches": maintainers}))]);
    let step = &world.plan().await.steps[0];
    let shown = format!("{:?}", step.changes);
    assert!(shown.contains("robot"), "the title, not the id: {shown}");
    world.converge("maintainers").await;
    let branch = world.get(&format!("{SHOP}/protected_branches/main")).await;
    assert_eq!(branch["push_access_levels"][0]["deploy_key_id"], Json::Null);
}

#[tokio::test]
async fn a_title_must_match_one_deploy_key() {
    let world = world().await;
    for at in [0, 1] {
        world.call("POST", &format!("{SHOP}/deploy_keys"), Some(key(at, "twin"))).await;
    }
    for (title, message) in [
        ("twin", "several entries of `deploy_keys` are called `twin`"),
        ("gone", "nothing in `deploy_keys` is called `gone`"),
    ] {
        world.declare(&[project("acme/shop", rules(&json!([{"deploy_key": title}])))]);
        let plan = world.plan().await;
        let problems: Vec<_> = plan.problems.iter().map(|problem| &*problem.message).collect();
        assert_eq!(problems, [message; 2]);
        assert_eq!(plan.steps.len(), 0);
    }
    let older = Profile::default().with_release(Release::new(17, 4));
    let world = World::new(older, seed(&[json!({"path": "acme/shop"})])).await;
    world.declare(&[project("acme/shop", rules(&json!([{"deploy_key": "robot"}])))]);
    let plan = world.plan().await;
    let problems = &plan.problems;
    assert!(
        problems[0].message.contains("`deploy_key` needs release 17.5 or later"),
        "{problems:?}"
    );
}

#[tokio::test]
async fn an_export_names_deploy_keys_by_title() {
    let world = world().await;
    let both = json!([{"access_level": "developer"}, {"deploy_key": "robot"}]);
    let sections = with_section(rules(&both), "deploy_keys", json!([key(0, "robot")]));
    world.declare(&[project("acme/shop", sections)]);
    world.converge("to export").await;
    let written = world.export(SecretHandling::Plain).await;
    let text: String = written.files.iter().map(|file| &*file.text).collect();
    assert_eq!(text.matches("deploy_key: robot").count(), 2, "{text}");
}

/// The projects share the key, and only its creation can set the expiry.
#[tokio::test]
async fn a_deploy_key_is_created_first_where_it_has_an_expiry() {
    let seeds = seed(&[json!({"path": "acme/shop"}), json!({"path": "acme/web"})]);
    let world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    let with_expiry = json!({"key": KEYS[0], "title": "ci", "expires_at": "2099-01-01"});
    world.declare(&[
        project("acme/shop", json!({"deploy_keys": [{"key": KEYS[0], "title": "ci"}]})),
        project("acme/web", json!({"deploy_keys": [with_expiry]})),
    ]);
    let plan = world.converge("in both").await;
    let edges = plan.steps[0].after.iter().map(|edge| edge.address.path.to_string());
    assert_eq!(edges.collect::<Vec<_>>(), ["acme/web"]);
}
