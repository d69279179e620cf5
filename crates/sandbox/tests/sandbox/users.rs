//! What is shown of users, to whom, and from which release on.

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
async fn the_short_form_grows_with_the_release() {
    let rule = fact("user-brief");
    let usual = ["avatar_url", "id", "name", "state", "username", "web_url"];
    for (release, more) in
        [("15.8", &[][..]), ("16.5", &["locked"]), ("18.9", &["locked", "public_email"])]
    {
        let world = at(release).await;
        let mut expected = [&usual[..], more].concat();
        expected.sort_unstable();
        let found = world.get("dan", "/users?username=mia").await.body;
        assert_eq!(keys(&found[0]), expected, "{rule} {release}");
        let owner = world.call("dan", "POST", "/projects", &json!({"path": "mine"})).await.body;
        if release != "15.8" {
            assert_eq!(keys(&owner["owner"]), expected, "{} {release}", fact("project-owner"));
        }
    }
}

#[tokio::test]
async fn members_say_more_from_later_releases_on() {
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
async fn a_member_says_who_added_it() {
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
    let all = world.get("olive", "/groups/acme/members").await.body;
    let bot = all.as_array().and_then(|all| all.last()).expect("members");
    assert_eq!((&bot["name"], bot.get("created_by")), (&json!("ci"), None), "{rule}");
}

#[tokio::test]
async fn a_user_is_shown_as_far_as_the_caller_may_see_it() {
    let world = at("18.9").await;
    let (own, alone, list) =
        ("/users/4", ["is_admin", "created_by", "using_license_seat"], "/users?username=dan");
    let seen = world.get("mia", own).await.body;
    assert_eq!(
        (&seen["bio"], &seen["pronouns"], &seen["followers"]),
        (&json!(""), &Value::Null, &json!(0)),
        "{}",
        fact("user-profile")
    );
    for hidden in ["email", "theme_id", "note", "is_admin", "skype"] {
        assert_eq!(seen.get(hidden), None, "{} {hidden}", fact("user-profile"));
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
    for skips in [false, true] {
        let name = format!("new-{skips}");
        let user = json!({"username": name, "name": "New", "email": format!("{name}@x.example"),
            "force_random_password": true, "skip_confirmation": skips});
        let made = world.call(ROOT, "POST", "/users", &user).await.body;
        assert_eq!(made["confirmed_at"].is_string(), skips, "{rule}");
        assert_eq!(made["state"], "active", "{rule}");
        let by = &made["created_by"]["username"];
        assert_eq!(by, "root", "{}", fact("user-for-administrators"));
    }
}
