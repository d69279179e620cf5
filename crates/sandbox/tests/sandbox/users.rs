//! The fields of users, by caller and by release.

use serde_json::{Value, json};

use super::client::{ROOT, World};
use super::facts::fact;
use super::releases::at;

/// The keys of an object, in order.
fn keys(body: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> =
        body.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn the_short_form_of_a_user_depends_on_the_release() {
    let rule = fact("user-brief");
    let usual = ["avatar_url", "id", "name", "state", "username", "web_url"];
    for (release, more) in
        [("15.8", &[][..]), ("16.5", &["locked"]), ("18.9", &["locked", "public_email"])]
    {
        let world = at(release).await;
        let mut expected = [&usual[..], more].concat();
        expected.sort_unstable();
        let answer = world.get("dan", "/users?username=mia").await.body;
        assert_eq!(keys(&answer[0]), expected, "{rule} {release}");
        let owner = world.call("dan", "POST", "/projects", &json!({"path": "mine"})).await.body;
        if release != "15.8" {
            assert_eq!(keys(&owner["owner"]), expected, "{} {release}", fact("project-owner"));
        }
    }
}

#[tokio::test]
async fn members_show_more_fields_in_later_releases() {
    let rule = fact("member-later-fields");
    let later = ["email", "membership_state"];
    for (release, administrator, owner) in
        [("15.8", &[][..], &[][..]), ("16.9", &later[..1], &[]), ("18.9", &later, &later[1..])]
    {
        let world = at(release).await;
        for (caller, expected) in [(ROOT, administrator), ("olive", owner)] {
            let member = world.get(caller, "/groups/acme/members/4").await.body;
            let found: Vec<&str> =
                later.into_iter().filter(|key| member.get(*key).is_some()).collect();
            assert_eq!(found, expected, "{rule} {release} {caller}");
        }
    }
}

#[tokio::test]
async fn a_member_shows_who_added_it() {
    let rule = fact("member-created-by");
    let world = World::usual().await;
    let group =
        world.call("dan", "POST", "/groups", &json!({"name": "new", "path": "new"})).await.body;
    let of_group = format!("/groups/{}/members", group["id"]);
    assert_eq!(world.get("dan", &of_group).await.body[0].get("created_by"), None, "{rule}");
    world.call("dan", "POST", "/projects", &json!({"path": "mine"})).await;
    let of_project = world.get("dan", "/projects/dan%2Fmine/members").await.body;
    assert_eq!(of_project[0]["created_by"]["username"], "dan", "{rule}");
    let token = json!({"name": "ci", "scopes": ["api"], "expires_at": "2999-01-01"});
    world.call("olive", "POST", "/groups/acme/access_tokens", &token).await;
    let answer = world.get("olive", "/groups/acme/members").await.body;
    let bot = answer.as_array().and_then(|all| all.last()).expect("members");
    assert_eq!((&bot["name"], bot.get("created_by")), (&json!("ci"), None), "{rule}");
}

#[tokio::test]
async fn the_fields_of_a_user_depend_on_the_caller() {
    let world = at("18.9").await;
    let (own, alone, list) =
        ("/users/4", ["is_admin", "created_by", "using_license_seat"], "/users?username=dan");
    let answer = world.get("mia", own).await.body;
    assert_eq!(
        (&answer["bio"], &answer["pronouns"], &answer["followers"]),
        (&json!(""), &Value::Null, &json!(0)),
        "{}",
        fact("user-profile")
    );
    for hidden in ["email", "theme_id", "note", "is_admin", "skype"] {
        assert_eq!(answer.get(hidden), None, "{} {hidden}", fact("user-profile"));
    }
    let blocked = world.get("mia", "/users/8").await.body;
    assert_eq!(blocked["username"], "blocked");
    for hidden in ["created_at", "followers"] {
        assert_eq!(blocked.get(hidden), None, "{} {hidden}", fact("user-profile"));
    }
    let rule = fact("user-for-administrators");
    let itself = world.get("dan", "/user").await.body;
    let found = world.get(ROOT, list).await.body;
    let one = world.get(ROOT, own).await.body;
    for key in alone {
        assert_eq!(itself.get(key), None, "{rule} {key}");
        assert!(found[0].get(key).is_some() && one.get(key).is_some(), "{rule} {key}");
    }
    assert_eq!((found[0].get("highest_role"), &one["highest_role"]), (None, &json!(30)), "{rule}");
    assert_eq!(one["using_license_seat"], true, "{rule}");
    assert_eq!(world.get(ROOT, "/users/6").await.body["using_license_seat"], false, "{rule}");
}

#[tokio::test]
async fn a_new_user_may_wait_for_a_confirmation() {
    let rule = fact("user-unconfirmed");
    let world = World::usual().await;
    for skips_confirmation in [false, true] {
        let name = format!("new-{skips_confirmation}");
        let user = json!({"username": name, "name": "New", "email": format!("{name}@x.example"),
            "force_random_password": true, "skip_confirmation": skips_confirmation});
        let answer = world.call(ROOT, "POST", "/users", &user).await.body;
        assert_eq!(answer["confirmed_at"].is_string(), skips_confirmation, "{rule}");
        assert_eq!(answer["state"], "active", "{rule}");
        let by = &answer["created_by"]["username"];
        assert_eq!(by, "root", "{}", fact("user-for-administrators"));
    }
}

#[tokio::test]
async fn actions_on_a_user_depend_on_its_state() {
    let rule = fact("user-acts");
    let world = World::usual().await;
    // A user without a token is inactive.
    let new =
        json!({"username": "new", "name": "New", "email": "new@x.example", "reset_password": true});
    let id = world.call(ROOT, "POST", "/users", &new).await.body["id"].clone();
    let no = |text: &str| (403, json!({ "message": text }));
    for (act, (status, body), state) in [
        ("unblock", (201, json!(false)), "active"),
        ("unban", no("You cannot unban active users."), "active"),
        ("activate", (201, json!(true)), "active"),
        ("deactivate", (201, json!(true)), "deactivated"),
        ("ban", no("You cannot ban deactivated users."), "deactivated"),
        ("deactivate", (201, Value::Null), "deactivated"),
        ("block", (201, json!(true)), "blocked"),
        ("block", (201, Value::Null), "blocked"),
        (
            "activate",
            no("Error occurred. A blocked user must be unblocked to be activated"),
            "blocked",
        ),
        ("deactivate", no("Error occurred. A blocked user cannot be deactivated"), "blocked"),
        ("unblock", (201, json!(true)), "active"),
        ("ban", (201, json!(true)), "banned"),
        ("ban", no("You cannot ban banned users."), "banned"),
        ("unban", (201, json!(true)), "active"),
    ] {
        let reply = world.call(ROOT, "POST", &format!("/users/{id}/{act}"), &Value::Null).await;
        assert_eq!((reply.status, reply.body), (status, body), "{rule}: {act}");
        let now = world.get(ROOT, &format!("/users/{id}")).await.body["state"].clone();
        assert_eq!(now, state, "{rule}: {act}");
    }
    let own = world.call(ROOT, "POST", "/users/1/block", &Value::Null).await;
    assert_eq!(
        own.body,
        json!({"message": "403 Forbidden - The API initiating user cannot be blocked by the API"}),
        "{rule}"
    );
}

#[tokio::test]
async fn only_administrators_find_all_users() {
    let world = World::usual().await;
    for (query, by_others, by_root) in [
        ("username=blocked", 0, 1),
        ("search=dan@localhost", 0, 1),
        ("search=dan", 1, 1),
        ("username=DAN", 1, 1),
    ] {
        for (caller, expected) in [("mia", by_others), (ROOT, by_root)] {
            let found = world.get(caller, &format!("/users?{query}")).await.body;
            let found = found.as_array().map(Vec::len);
            assert_eq!(found, Some(expected), "{} {query} {caller}", fact("user-search"));
        }
    }
    world.call(ROOT, "PUT", "/users/4", &json!({"public_email": "dan@localhost"})).await;
    let answer = world.get("mia", "/users?search=dan@localhost").await.body;
    assert_eq!(answer[0]["username"], "dan", "{}", fact("user-search"));
}

#[tokio::test]
async fn users_and_tokens_need_required_fields() {
    let world = World::usual().await;
    let user = |more: &Value| {
        let mut user = json!({"username": "new", "name": "New", "email": "new@x.example", "reset_password": true});
        user.as_object_mut().expect("an object").extend(more.as_object().expect("more").clone());
        user
    };
    for (more, message) in
        [(json!({"email": "nobody"}), "email"), (json!({"username": "-new"}), "username")]
    {
        let got = world.call(ROOT, "POST", "/users", &user(&more)).await;
        assert_eq!(got.status, 400);
        assert!(got.body["message"].get(message).is_some(), "{} {}", fact("user-create"), got.body);
    }
    let got = world.call(ROOT, "POST", "/users", &json!({"username": "new"})).await;
    let text = "email is missing, password, reset_password, force_random_password are missing, \
        at least one parameter must be provided, name is missing";
    assert_eq!(got.body, json!({ "error": text }), "{}", fact("user-create"));
    let rule = fact("token-scopes");
    for (scopes, status) in
        [(json!(["nothing"]), 400), (json!([]), 422), (json!(["admin_mode"]), 201)]
    {
        let token = json!({"name": "new", "scopes": scopes});
        let got = world.call(ROOT, "POST", "/users/4/personal_access_tokens", &token).await;
        assert_eq!(got.status, status, "{rule} {}", got.body);
    }
}

#[tokio::test]
async fn users_have_identities_and_filters() {
    let world = at("18.9").await;
    let rule = fact("user-identities");
    let named = |uid: &str| json!({"extern_uid": uid, "provider": "ldap"});
    let shown = |uid: &str| json!({"identities": [{"provider": "ldap", "extern_uid": uid, "saml_provider_id": null}]});
    let half = json!({"error": "extern_uid, provider provide all or none of parameters"});
    let no = Value::Null;
    let one = "/users/4/identities/ldap";
    world
        .check(vec![
            (rule, ROOT, "PUT", "/users/4", named("a"), 200, shown("a")),
            (rule, ROOT, "PUT", "/users/4", named("b"), 200, shown("b")),
            (rule, ROOT, "PUT", "/users/4", json!({"extern_uid": "c"}), 400, half.clone()),
            (rule, ROOT, "PUT", "/users/3", json!({"external": true}), 200, Value::Null),
            (rule, ROOT, "GET", "/users?provider=ldap", no.clone(), 400, half),
            (rule, "mia", "GET", "/users?provider=ldap&extern_uid=b", no.clone(), 403, no),
        ])
        .await;
    let all = ["root", "olive", "mia", "dan", "rita", "gus", "stranger", "blocked"];
    let without = |name: &str| -> Vec<&str> {
        all.into_iter().filter(|other| *other != name && *other != "blocked").collect()
    };
    for (caller, query, expected) in [
        (ROOT, "provider=ldap&extern_uid=b", vec!["dan"]),
        (ROOT, "provider=ldap&extern_uid=a", vec![]),
        (ROOT, "external=true", vec!["mia"]),
        ("dan", "exclude_external=true&order_by=id&sort=asc", without("mia")),
        (ROOT, "admins=true", vec!["root"]),
        (ROOT, "exclude_active=true", vec!["blocked"]),
        (ROOT, "created_before=2000-01-01T00:00:00Z", vec![]),
        (ROOT, "created_after=2000-01-01T00:00:00Z&username=dan", vec!["dan"]),
    ] {
        let found = world.get(caller, &format!("/users?{query}")).await.body;
        let found: Vec<&str> = found
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|user| user["username"].as_str())
            .collect();
        assert_eq!(found, expected, "{} {query}", fact("user-filters"));
    }
    for status in [204, 404] {
        assert_eq!(world.call(ROOT, "DELETE", one, &Value::Null).await.status, status, "{rule}");
    }
}

#[tokio::test]
async fn fields_of_a_user_are_validated() {
    let world = at("18.9").await;
    let rule = fact("user-rules");
    let blank = json!({"namespace.name": ["can't be blank"], "name": ["can't be blank"]});
    let both = json!({"admin": ["user cannot also be an Auditor."]});
    for (fields, status, message) in [
        (json!({"name": ""}), 400, blank.clone()),
        (json!({"name": null}), 400, blank),
        (json!({"username": "mia"}), 409, json!("Username has already been taken")),
        (
            json!({"username": "acme"}),
            400,
            json!({"base": ["A user, alias, or group already exists with that username."]}),
        ),
        (json!({"username": "admin"}), 400, json!({"username": ["admin is a reserved name"]})),
        (json!({"admin": true, "auditor": true}), 400, both),
        (
            json!({"password": "short"}),
            400,
            json!({"password": ["is too short (minimum is 8 characters)"]}),
        ),
        (
            json!({"public_email": "other@x.example"}),
            400,
            json!({"public_email": ["must be an email you have verified"]}),
        ),
        (json!({"theme_id": 99}), 400, json!({"theme_id": ["99 is not a valid theme"]})),
        (
            json!({"projects_limit": null}),
            400,
            json!({"projects_limit": ["can't be blank", "is not a number"]}),
        ),
    ] {
        let mut user = json!({"username": "new", "name": "New", "email": "new@x.example", "reset_password": true});
        user.as_object_mut().expect("an object").extend(fields.as_object().expect("more").clone());
        for (method, path, body) in [("POST", "/users", &user), ("PUT", "/users/4", &fields)] {
            let got = world.call(ROOT, method, path, body).await;
            assert_eq!((got.status, &got.body["message"]), (status, &message), "{rule} {body}");
        }
    }
    let user = json!({"username": "new", "name": "New", "email": "new@y.example",
        "reset_password": true, "organization": "x"});
    let answer = world.call(ROOT, "POST", "/users", &user).await.body;
    assert_eq!(answer["organization"], "", "{rule}");
    let made = world.call(ROOT, "PUT", "/users/4", &json!({"auditor": true})).await.body;
    assert_eq!(made["is_auditor"], true, "{rule}");
    let made = world.call(ROOT, "PUT", "/users/4", &json!({"external": null})).await.body;
    assert_eq!(made["external"], Value::Null, "{}", fact("user-external"));
    let got = world.call(ROOT, "PUT", "/users/4", &json!({"admin": true})).await;
    assert_eq!(got.status, 400, "{rule}");
    for (skips, expected) in [(false, "dan@localhost"), (true, "new@x.example")] {
        let body = json!({"email": "new@x.example", "skip_reconfirmation": skips});
        let got = world.call(ROOT, "PUT", "/users/4", &body).await;
        assert_eq!((got.status, &got.body["email"]), (200, &json!(expected)), "{rule}");
    }
    let group = json!({"name": "Own", "path": "own"});
    world.call("dan", "POST", "/groups", &group).await;
    for (query, status) in [("", 409), ("?hard_delete=true", 204)] {
        let reply = world.call(ROOT, "DELETE", &format!("/users/4{query}"), &Value::Null).await;
        assert_eq!(reply.status, status, "{}", fact("user-sole-owner"));
    }
}

#[tokio::test]
async fn users_see_their_short_form_by_id_in_later_releases() {
    let rule = fact("user-own");
    for (release, shown) in [("15.8", true), ("18.9", false)] {
        let answer = at(release).await.get("dan", "/users/4").await.body;
        for key in ["email", "theme_id"] {
            assert_eq!(answer.get(key).is_some(), shown, "{rule} {release} {key}");
        }
        assert!(answer.get("followers").is_none(), "{rule}");
    }
}
