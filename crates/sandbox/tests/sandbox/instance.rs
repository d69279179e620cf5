//! The settings of the whole service, and what they change for new projects, branches and users.

use serde_json::{Value, json};

use super::client::{ROOT, World};
use super::facts::fact;

const NO: Value = Value::Null;
const SETTINGS: &str = "/application/settings";

/// Creates a user with these fields, and returns the answer.
async fn user(world: &World, name: &str, more: &Value) -> Value {
    let mut body = json!({
        "username": name, "name": name, "email": format!("{name}@example.com"),
        "force_random_password": true,
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    world.call(ROOT, "POST", "/users", &body).await.body
}

#[tokio::test]
async fn settings_are_checked() {
    let world = World::at("18.9").await;
    let rule = fact("application-settings-refused");
    let put = |body: Value, status| (rule, ROOT, "PUT", SETTINGS, body, status, NO);
    let must = |name: &str, text: &str| json!({"message": {name: [text]}});
    world
        .check(vec![
            put(NO, 400),
            put(json!({"unknown": 1}), 400),
            put(json!({"unknown": 1, "home_page_url": "https://x.example"}), 200),
            put(json!({"default_project_visibility": "secret"}), 400),
            put(json!({"restricted_visibility_levels": ["secret"]}), 400),
            put(json!({"deletion_adjourned_period": 91}), 400),
            put(json!({"deletion_adjourned_period": 0}), 400),
            (
                rule,
                ROOT,
                "PUT",
                SETTINGS,
                json!({"session_expire_delay": 0}),
                400,
                must("session_expire_delay", "must be greater than 0"),
            ),
            (
                rule,
                ROOT,
                "PUT",
                SETTINGS,
                json!({"home_page_url": null}),
                200,
                json!({"home_page_url": null, "session_expire_delay": 10080}),
            ),
            (rule, "mia", "PUT", SETTINGS, NO, 403, NO),
        ])
        .await;
}

#[tokio::test]
async fn settings_apply_to_new_projects_and_users() {
    let world = World::usual().await;
    let acme_id = world.get(ROOT, "/groups/acme").await.body["id"].clone();
    let rule = fact("application-defaults");
    let settings = json!({
        "default_branch_name": "trunk", "default_project_visibility": "internal",
        "restricted_visibility_levels": ["public"], "default_projects_limit": 1,
        "can_create_group": false,
    });
    let limited = fact("projects-limit");
    let restricted = json!({
        "message": {"visibility_level": ["public has been restricted by your GitLab administrator"]}
    });
    let made = json!({"default_branch": "trunk", "visibility": "internal"});
    world
        .check(vec![
            (rule, ROOT, "PUT", SETTINGS, settings.clone(), 200, settings),
            (rule, "dan", "POST", "/projects", json!({"name": "one"}), 201, made),
            (
                fact("restricted-visibility"),
                "dan",
                "POST",
                "/projects",
                json!({"name": "two", "visibility": "public"}),
                400,
                restricted.clone(),
            ),
            (
                fact("restricted-visibility"),
                "dan",
                "PUT",
                "/projects/dan%2Fone",
                json!({"visibility": "public"}),
                400,
                restricted,
            ),
            (
                fact("restricted-visibility"),
                ROOT,
                "PUT",
                "/projects/dan%2Fone",
                json!({"visibility": "public"}),
                200,
                NO,
            ),
            (limited, ROOT, "PUT", "/users/4", json!({"projects_limit": 2}), 200, NO),
            (limited, "dan", "POST", "/projects", json!({"name": "two"}), 201, NO),
            (limited, "dan", "POST", "/projects", json!({"name": "three"}), 403, NO),
            (limited, ROOT, "POST", "/projects/user/4", json!({"name": "three"}), 403, NO),
            (
                limited,
                "dan",
                "POST",
                "/projects",
                json!({"name": "four", "namespace_id": acme_id}),
                201,
                NO,
            ),
            (limited, "dan", "GET", "/user", NO, 200, json!({"can_create_project": false})),
        ])
        .await;
    let plain = user(&world, "plain", &NO).await;
    assert_eq!(
        (&plain["projects_limit"], &plain["can_create_group"]),
        (&json!(1), &json!(false)),
        "{rule}"
    );
}

#[tokio::test]
async fn external_users_own_nothing() {
    let world = World::usual().await;
    let rule = fact("user-external");
    let seen =
        |body: &Value| json!([body["external"], body["projects_limit"], body["can_create_group"]]);
    let wish = json!({"external": true, "projects_limit": 5, "can_create_group": true});
    let made = user(&world, "made", &wish).await;
    assert_eq!(seen(&made), json!([true, 0, false]), "{rule}");
    let path = format!("/users/{}", made["id"]);
    for (body, expected) in [
        (json!({"projects_limit": 5}), json!([true, 5, false])),
        (json!({"external": true}), json!([true, 5, false])),
        (json!({"external": false, "projects_limit": 7}), json!([false, 7, true])),
        (json!({"external": true, "projects_limit": 7}), json!([true, 0, false])),
        (json!({"external": false}), json!([false, 100_000, true])),
    ] {
        let reply = world.call(ROOT, "PUT", &path, &body).await;
        assert_eq!(seen(&reply.body), expected, "{rule}: {body}");
    }
    world.call(ROOT, "PUT", SETTINGS, &json!({"user_default_external": true})).await;
    let next = user(&world, "next", &NO).await;
    assert_eq!(seen(&next), json!([true, 0, false]), "{rule}");
}

#[tokio::test]
async fn the_protection_of_default_branches_is_an_object() {
    let world = World::at("18.9").await;
    let rule = fact("group-protection-acts");
    let acme_id = world.get(ROOT, "/groups/acme").await.body["id"].clone();
    let levels = |push: i64, merge: i64| {
        json!({
            "allowed_to_push": [{"access_level": push}],
            "allowed_to_merge": [{"access_level": merge}],
        })
    };
    let with = |mut object: Value, name: &str| {
        object[name] = true.into();
        object
    };
    let (group, name) = ("/groups/acme", "default_branch_protection_defaults");
    let none = with(levels(30, 30), "allow_force_push");
    for (number, (path, defaults, expected)) in [
        (SETTINGS, levels(30, 40), json!([30, 40, false, false])),
        (group, with(levels(40, 30), "allow_force_push"), json!([40, 30, true, false])),
        (group, with(levels(40, 40), "code_owner_approval_required"), json!([40, 40, false, true])),
        (group, json!({}), json!([30, 40, false, false])),
        (group, none, json!([null, null, null, null])),
    ]
    .into_iter()
    .enumerate()
    {
        let body = json!({name: defaults});
        assert_eq!(world.call(ROOT, "PUT", path, &body).await.status, 200, "{rule}: {body}");
        let project = format!("made-{number}");
        let new = json!({"name": project, "namespace_id": acme_id, "initialize_with_readme": true});
        let reply = world.call(ROOT, "POST", "/projects", &new).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        let main = format!("/projects/acme%2F{project}/protected_branches/main");
        let main = world.get(ROOT, &main).await.body;
        let seen = json!([
            main["push_access_levels"][0]["access_level"],
            main["merge_access_levels"][0]["access_level"],
            main["allow_force_push"],
            main["code_owner_approval_required"],
        ]);
        assert_eq!(seen, expected, "{rule}: {body}");
    }
    for path in [SETTINGS, group] {
        let refused = world.call(ROOT, "PUT", path, &json!({name: levels(0, 40)})).await;
        assert_eq!(refused.status, 400, "{rule}: {path}");
    }
    // The number sets the object.
    let number = json!({"default_branch_protection": 1});
    let changed = world.call(ROOT, "PUT", SETTINGS, &number).await.body;
    assert_eq!(changed[name]["allowed_to_push"][0]["access_level"], 30, "{rule}");
}
