//! Operations that real clients need in addition to the reference: users, tokens, groups,
//! namespaces.

use serde_json::{Value, json};

use undrift_sandbox::{SandboxConfig, ServiceTier};

use super::client::{ROOT, World, client, leak, read_reply, usual_seed};
use super::facts::fact;
use super::releases::at;

const NO: Value = Value::Null;
const SHOP: &str = "/projects/acme%2Fshop";

fn names(list: &Value, key: &str) -> Vec<String> {
    list.as_array()
        .expect("a list")
        .iter()
        .map(|item| item[key].as_str().expect("text").to_owned())
        .collect()
}

#[tokio::test]
async fn users_are_changed_and_filtered() {
    let world = World::usual().await;
    let dan = world.get(ROOT, "/users?username=dan").await.body[0]["id"].clone();
    let one = leak(format!("/users/{dan}"));
    world
        .check(vec![
            (
                fact("user-change"),
                ROOT,
                "PUT",
                one,
                json!({"name": "Dan D", "email": "d@x.example", "skip_reconfirmation": true}),
                200,
                json!({"name": "Dan D", "email": "d@x.example"}),
            ),
            (fact("user-change"), "mia", "PUT", one, json!({"name": "x"}), 403, NO),
            (
                fact("user-change"),
                ROOT,
                "PUT",
                "/users/999",
                json!({"name": "x"}),
                404,
                json!({"message": "404 User Not Found"}),
            ),
            (
                fact("user-change"),
                ROOT,
                "PUT",
                one,
                json!({"username": "mia"}),
                409,
                json!({"message": "Username has already been taken"}),
            ),
            (
                fact("user-change"),
                ROOT,
                "PUT",
                one,
                json!({"username": "daniel"}),
                200,
                json!({"username": "daniel"}),
            ),
            (
                fact("user-change"),
                "dan",
                "POST",
                "/projects",
                json!({"name": "own"}),
                201,
                json!({"path_with_namespace": "daniel/own"}),
            ),
            (fact("user-change"), ROOT, "PUT", one, json!({"username": "dan"}), 200, NO),
            (fact("user-change"), "dan", "GET", "/projects/dan%2Fown", NO, 200, NO),
            (fact("user-change"), ROOT, "POST", leak(format!("{one}/block")), NO, 201, json!(true)),
            (fact("user-change"), ROOT, "POST", leak(format!("{one}/block")), NO, 201, NO),
            (
                fact("user-change"),
                ROOT,
                "POST",
                leak(format!("{one}/unblock")),
                NO,
                201,
                json!(true),
            ),
            (
                fact("user-change"),
                ROOT,
                "POST",
                leak(format!("{one}/unblock")),
                NO,
                201,
                json!(false),
            ),
            (fact("user-change"), ROOT, "POST", leak(format!("{one}/ban")), NO, 201, json!(true)),
            (fact("user-change"), ROOT, "GET", one, NO, 200, json!({"state": "banned"})),
            (fact("user-change"), ROOT, "POST", leak(format!("{one}/unban")), NO, 201, json!(true)),
            // A recently active user is not deactivated.
            (fact("user-change"), ROOT, "POST", leak(format!("{one}/deactivate")), NO, 403, NO),
            (fact("user-change"), ROOT, "POST", leak(format!("{one}/activate")), NO, 201, NO),
            (fact("user-change"), ROOT, "GET", one, NO, 200, json!({"state": "active"})),
            (
                fact("user-change"),
                ROOT,
                "GET",
                "/users?order_by=shoe_size",
                NO,
                400,
                json!({"error": "order_by does not have a valid value"}),
            ),
        ])
        .await;
    assert_eq!(
        names(&world.get(ROOT, "/users?blocked=true").await.body, "username"),
        ["blocked"],
        "{}",
        fact("user-change")
    );
    assert!(
        !names(&world.get(ROOT, "/users?active=true").await.body, "username")
            .contains(&"blocked".to_owned()),
        "{}",
        fact("user-change")
    );
    let ordered =
        names(&world.get(ROOT, "/users?order_by=username&sort=asc").await.body, "username");
    assert!(ordered.is_sorted() && ordered.len() == 8, "{}: {ordered:?}", fact("user-change"));
}

#[tokio::test]
async fn tokens_are_listed_and_revoked() {
    let world = World::usual().await;
    let dan = world.get(ROOT, "/users?username=dan").await.body[0]["id"].clone();
    for kind in ["personal_access_tokens", "impersonation_tokens"] {
        let reply = world
            .call(
                ROOT,
                "POST",
                &format!("/users/{dan}/{kind}"),
                &json!({"name": kind, "scopes": ["api"]}),
            )
            .await;
        assert_eq!(reply.status, 201, "{}: {}", fact("token-manage"), reply.body);
        let token = reply.body["token"].as_str().expect("a token");
        assert_eq!(world.get(token, "/user").await.body["id"], dan);
        let shown = leak(format!("/personal_access_tokens/{}", reply.body["id"]));
        let listed = world.get(token, "/personal_access_tokens").await;
        assert!(
            names(&listed.body, "name").contains(&kind.to_owned()),
            "{}: {}",
            fact("token-manage"),
            listed.body
        );
        assert!(
            listed.body[0].get("token").is_none(),
            "{}: a token is shown once",
            fact("token-manage")
        );
        world
            .check(vec![
                (
                    fact("token-manage"),
                    ROOT,
                    "GET",
                    shown,
                    NO,
                    200,
                    json!({"name": kind, "user_id": dan, "scopes": ["api"], "revoked": false}),
                ),
                (fact("token-manage"), "mia", "GET", shown, NO, 401, NO),
                (fact("token-manage"), "mia", "DELETE", shown, NO, 401, NO),
                (
                    fact("token-manage"),
                    "mia",
                    "GET",
                    leak(format!("/personal_access_tokens?user_id={dan}")),
                    NO,
                    401,
                    NO,
                ),
                (fact("token-manage"), ROOT, "GET", "/personal_access_tokens/999", NO, 404, NO),
            ])
            .await;
        let path = if kind == "personal_access_tokens" {
            "/personal_access_tokens/self".to_owned()
        } else {
            shown.to_owned()
        };
        assert_eq!(
            world.call(token, "DELETE", &path, &NO).await.status,
            204,
            "{}",
            fact("token-manage")
        );
        assert_eq!(
            world.get(token, "/user").await.status,
            401,
            "{}: it is of no use any more",
            fact("token-manage")
        );
    }
}

#[tokio::test]
async fn administrators_manage_the_tokens_of_others() {
    let world = World::usual().await;
    let dan = world.get(ROOT, "/users?username=dan").await.body[0]["id"].clone();
    let tokens = leak(format!("/users/{dan}/impersonation_tokens"));
    let reply = world
        .call(
            ROOT,
            "POST",
            tokens,
            &json!({"name": "new", "scopes": ["api", "read_user"], "expires_at": "2999-01-01"}),
        )
        .await;
    assert_eq!(
        (reply.status, &reply.body["scopes"]),
        (201, &json!(["api", "read_user"])),
        "{}: {}",
        fact("token-manage"),
        reply.body
    );
    let one = leak(format!("{tokens}/{}", reply.body["id"]));
    let foreign = leak(format!("/users/1/impersonation_tokens/{}", reply.body["id"]));
    assert!(
        names(&world.get(ROOT, &format!("{tokens}?state=active")).await.body, "name")
            .contains(&"new".to_owned()),
        "{}",
        fact("token-manage")
    );
    world
        .check(vec![
            (
                fact("token-manage"),
                ROOT,
                "GET",
                leak(format!("{tokens}?state=inactive")),
                NO,
                200,
                json!([]),
            ),
            (
                fact("token-manage"),
                ROOT,
                "GET",
                one,
                NO,
                200,
                json!({"name": "new", "active": true}),
            ),
            (fact("token-manage"), ROOT, "GET", foreign, NO, 404, NO),
            (fact("token-manage"), "dan", "GET", tokens, NO, 403, NO),
            (fact("token-manage"), "dan", "DELETE", one, NO, 403, NO),
            (fact("token-manage"), ROOT, "DELETE", one, NO, 204, NO),
            (
                fact("token-manage"),
                ROOT,
                "GET",
                one,
                NO,
                200,
                json!({"revoked": true, "active": false}),
            ),
            (
                fact("token-manage"),
                ROOT,
                "GET",
                leak(format!("{tokens}?state=inactive")),
                NO,
                200,
                json!([{"revoked": true}]),
            ),
            (
                fact("token-manage"),
                ROOT,
                "GET",
                leak(format!("{tokens}?state=active")),
                NO,
                200,
                json!([{"name": "sandbox"}]),
            ),
            (
                fact("token-manage"),
                ROOT,
                "POST",
                tokens,
                json!({"name": "x", "scopes": ["everything"]}),
                400,
                NO,
            ),
        ])
        .await;
}

#[tokio::test]
async fn groups_move_with_everything_below() {
    let world = World::usual().await;
    let group = async |path: &str, parent: Value| {
        world
            .call(
                "olive",
                "POST",
                "/groups",
                &json!({"name": path, "path": path, "parent_id": parent}),
            )
            .await
            .body["id"]
            .clone()
    };
    let new = group("new", NO).await;
    let team = group("team", new.clone()).await;
    let deep = group("deep", team.clone()).await;
    let acme = world.get("olive", "/groups/acme").await.body["id"].clone();
    world.call("olive", "POST", "/projects", &json!({"name": "p", "namespace_id": deep})).await;
    let transfer = leak(format!("/groups/{team}/transfer"));
    let locations = world.get("olive", &format!("/groups/{team}/transfer_locations")).await;
    assert_eq!(
        names(&locations.body, "full_path"),
        ["acme"],
        "{}: neither where it is nor below itself",
        fact("group-transfer")
    );
    world
        .check(vec![
            (fact("group-transfer"), "mia", "POST", transfer, json!({"group_id": acme}), 404, NO),
            (fact("group-transfer"), "olive", "POST", transfer, json!({"group_id": new}), 400, NO),
            (fact("group-transfer"), "olive", "POST", transfer, json!({"group_id": deep}), 400, NO),
            (
                fact("group-transfer"),
                "olive",
                "POST",
                transfer,
                json!({"group_id": acme}),
                201,
                json!({"full_path": "acme/team", "parent_id": acme}),
            ),
            (
                fact("group-transfer"),
                "olive",
                "GET",
                "/projects/acme%2Fteam%2Fdeep%2Fp",
                NO,
                200,
                json!({"namespace": {"id": deep}}),
            ),
            (
                fact("members-all"),
                "olive",
                "GET",
                leak(format!("/groups/{deep}/members/all?query=mia")),
                NO,
                200,
                json!([{"access_level": 40}]),
            ),
            (
                fact("group-transfer"),
                "olive",
                "GET",
                "/groups/acme/descendant_groups",
                NO,
                200,
                json!([{"id": deep}, {"id": team}]),
            ),
            (
                fact("group-transfer"),
                "olive",
                "POST",
                transfer,
                json!({}),
                201,
                json!({"full_path": "team", "parent_id": null}),
            ),
            (fact("group-transfer"), "olive", "POST", transfer, json!({}), 400, NO),
            (fact("group-transfer"), "mia", "GET", leak(format!("/groups/{deep}")), NO, 404, NO),
        ])
        .await;
}

#[tokio::test]
async fn groups_and_namespaces_are_looked_up() {
    let world = World::usual().await;
    let ops =
        world.call("mia", "POST", "/groups", &json!({"name": "an ops", "path": "ops"})).await.body
            ["id"]
            .clone();
    let shared = leak(format!("/groups/{ops}/projects/shared"));
    world
        .check(vec![
            (fact("look-up"), "mia", "GET", shared, NO, 200, json!([])),
            (
                fact("look-up"),
                "mia",
                "POST",
                "/projects/acme%2Fshop/share",
                json!({"group_id": ops, "group_access": 30}),
                201,
                NO,
            ),
            (fact("look-up"), "mia", "GET", shared, NO, 200, json!([{"path": "shop"}])),
            (
                fact("look-up"),
                "mia",
                "GET",
                "/groups/acme/search?scope=projects&search=SHO",
                NO,
                200,
                json!([{"path": "shop"}]),
            ),
            (
                fact("look-up"),
                "mia",
                "GET",
                "/groups/acme/-/search?scope=projects&search=SHO",
                NO,
                200,
                json!([{"path": "shop"}]),
            ),
            (
                fact("look-up"),
                "mia",
                "GET",
                leak(format!("/groups/{ops}/search?scope=projects&search=shop")),
                NO,
                200,
                json!([]),
            ),
            (
                fact("look-up"),
                "mia",
                "GET",
                "/namespaces/acme/exists",
                NO,
                200,
                json!({"exists": true, "suggests": ["acme1"]}),
            ),
            (
                fact("look-up"),
                "mia",
                "GET",
                "/namespaces/free/exists",
                NO,
                200,
                json!({"exists": false, "suggests": []}),
            ),
            (
                fact("look-up"),
                "mia",
                "GET",
                leak(format!("/namespaces/acme/exists?parent_id={ops}")),
                NO,
                200,
                json!({"exists": false}),
            ),
            (fact("look-up"), "", "GET", "/namespaces/acme/exists", NO, 401, NO),
            (
                fact("project-groups"),
                "dan",
                "GET",
                "/projects/acme%2Fshop/groups?with_shared=true",
                NO,
                200,
                json!([{"full_path": "acme"}, {"full_path": "ops"}]),
            ),
            (
                fact("project-groups"),
                "dan",
                "GET",
                "/projects/acme%2Fshop/groups?with_shared=true&shared_visible_only=true",
                NO,
                200,
                json!([{"full_path": "acme"}]),
            ),
        ])
        .await;
    for (query, expected) in [
        ("", ["acme", "an ops"]),
        ("?order_by=id&sort=desc", ["an ops", "acme"]),
        ("?order_by=path", ["acme", "an ops"]),
    ] {
        assert_eq!(
            names(&world.get("mia", &format!("/groups{query}")).await.body, "name"),
            expected,
            "{}: {query}",
            fact("look-up")
        );
    }
}

#[tokio::test]
async fn rare_filters_of_projects_narrow_the_list() {
    let world = World::usual().await;
    for name in ["shopping list", "a shop"] {
        world.call("mia", "POST", "/projects", &json!({"name": name})).await;
    }
    world.call("mia", "POST", "/projects/acme%2Fsite/fork", &json!({"path": "copy"})).await;
    let import = json!({"extserver_url": "https://h.example", "extserver_username": "m", "personal_access_token": "t",
                        "extserver_project": "P", "extserver_repo": "brought"});
    world.call("mia", "POST", "/import/extserver", &import).await;
    for (fact, token, query, expected) in [
        (fact("project-list"), "mia", "imported=true", vec!["brought"]),
        (fact("project-list"), ROOT, "imported=true", vec![]),
        (
            fact("project-list"),
            "mia",
            "search=shop&order_by=similarity",
            vec!["shop", "a shop", "shopping list"],
        ),
        (fact("project-list"), "stranger", "search=site&order_by=similarity", vec![]),
        (fact("project-list"), ROOT, "search=shop&custom_attributes[team]=x", vec![]),
    ] {
        let reply = world.get(token, &format!("/projects?{query}")).await;
        assert_eq!(names(&reply.body, "name"), expected, "{fact}: {token} {query}");
    }
    let asked = world.get(ROOT, "/projects/acme%2Fshop?with_custom_attributes=true").await;
    assert_eq!(asked.body["custom_attributes"], json!([]), "{}", fact("custom-attributes"));
    let asked = world.get("mia", "/projects/acme%2Fshop?with_custom_attributes=true").await;
    assert_eq!(
        asked.body.get("custom_attributes"),
        None,
        "{}: for administrators",
        fact("custom-attributes")
    );
}

#[tokio::test]
async fn an_unchanged_answer_is_304_for_its_etag() {
    let world = World::usual().await;
    let first = world.get("mia", "/projects/acme%2Fshop").await;
    let tag = first.header("etag").to_owned();
    assert!(tag.starts_with("W/\""), "{}: {tag:?}", fact("conditional-read"));
    let again = async || {
        let request =
            world.request("mia", "GET", "/projects/acme%2Fshop").header("if-none-match", &tag);
        read_reply(request.send().await.expect("an answer")).await
    };
    let same = again().await;
    assert_eq!(
        (same.status, same.body.clone(), same.header("etag")),
        (304, NO, tag.as_str()),
        "{}",
        fact("conditional-read")
    );
    world.call("mia", "PUT", "/projects/acme%2Fshop", &json!({"description": "new"})).await;
    let changed = again().await;
    assert_eq!(
        (changed.status, &changed.body["description"]),
        (200, &json!("new")),
        "{}",
        fact("conditional-read")
    );
    assert_ne!(changed.header("etag"), tag);
}

#[tokio::test]
async fn readiness_probes_are_answered() {
    let world = World::usual().await;
    let page = async |name: &str| {
        let answer = client().get(format!("{}/-/{name}", world.running.url())).send().await;
        answer.expect("an answer").text().await.expect("a text")
    };
    assert_eq!(page("health").await, "GitLab OK", "{}", fact("health"));
    for name in ["readiness", "liveness"] {
        let body: Value = serde_json::from_str(&page(name).await).expect("JSON");
        assert_eq!(body["status"], "ok", "{}: {name}", fact("health"));
    }
}

#[tokio::test]
async fn extra_slashes_and_untyped_bodies_are_accepted() {
    let world = World::usual().await;
    for path in [
        "//api/v4/projects/acme%2Fshop",
        "/api/v4/projects/acme%2Fshop/",
        "/api/v4//projects/acme%2Fshop?simple=true",
    ] {
        let request =
            client().get(format!("{}{path}", world.running.url())).header("private-token", "mia");
        let got = read_reply(request.send().await.expect("an answer")).await;
        assert_eq!(
            (got.status, &got.body["path"]),
            (200, &json!("shop")),
            "{}: {path}",
            fact("slashes")
        );
    }
    let bare = read_reply(
        world
            .request("mia", "POST", "/projects")
            .body("name=bare")
            .send()
            .await
            .expect("an answer"),
    )
    .await;
    assert_eq!(
        (bare.status, &bare.body["path"]),
        (201, &json!("bare")),
        "{}: a body without a type is a form",
        fact("bare-body")
    );
    let null = world
        .request("mia", "POST", "/projects/acme%2Fshop/star")
        .header("content-type", "application/json")
        .body("null");
    assert_eq!(
        read_reply(null.send().await.expect("an answer")).await.status,
        201,
        "{}: null has no parameters",
        fact("bare-body")
    );
}

#[tokio::test]
async fn avatars_are_served_at_their_urls() {
    let world = World::usual().await;
    let send = async |method: &str, path: &str| {
        let picture =
            reqwest::multipart::Part::bytes(path.as_bytes().to_vec()).file_name("logo.png");
        let form = reqwest::multipart::Form::new().part("avatar", picture);
        let form = form
            .text("email", "new@example.org")
            .text("username", "new")
            .text("name", "New")
            .text("reset_password", "true");
        let answer = read_reply(
            world.request(ROOT, method, path).multipart(form).send().await.expect("an answer"),
        )
        .await;
        answer.body["avatar_url"].as_str().expect("an address").to_owned()
    };
    let mut addresses = Vec::new();
    for (method, path) in
        [("PUT", "/projects/acme%2Fshop"), ("PUT", "/groups/acme"), ("POST", "/users")]
    {
        let address = send(method, path).await;
        let answer = client().get(&address).send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{}: {address}", fact("avatar-served"));
        assert_eq!(
            answer.headers()["content-type"],
            "image/png",
            "{}: {address}",
            fact("avatar-served")
        );
        assert_eq!(
            answer.bytes().await.expect("a picture"),
            path.as_bytes(),
            "{}: {address}",
            fact("avatar-served")
        );
        addresses.push(address);
    }
    for (token, path, status) in [
        ("gus", SHOP, 200),
        ("", "/groups/acme", 200),
        ("", SHOP, 404),
        ("gus", "/projects/acme%2Fsite", 404),
    ] {
        let answer = world.get(token, &format!("{path}/avatar")).await;
        assert_eq!(answer.status, status, "{}: {token} {path}", fact("avatar-served"));
        if status == 200 {
            assert_eq!(answer.body, json!(path), "{}: {path}", fact("avatar-served"));
        }
    }
    world.call(ROOT, "PUT", "/projects/acme%2Fshop", &json!({"avatar": ""})).await;
    for (address, there) in addresses.iter().zip([false, true, true]) {
        let status = client().get(address).send().await.expect("an answer").status();
        assert_eq!(status == 200, there, "{}: {address}", fact("avatar-served"));
    }
}

#[tokio::test]
async fn a_group_keeps_its_settings_and_its_avatar() {
    let world = World::usual().await;
    let wrong = json!({"subgroup_creation_level": "anybody"});
    world
        .check(vec![
            (
                fact("group-settings"),
                "olive",
                "GET",
                "/groups/acme",
                NO,
                200,
                json!({"lfs_enabled": true, "auto_devops_enabled": null}),
            ),
            (
                fact("group-settings"),
                "olive",
                "PUT",
                "/groups/acme",
                json!({"lfs_enabled": "false", "membership_lock": true}),
                200,
                NO,
            ),
            (fact("group-settings"), "olive", "PUT", "/groups/acme", wrong, 400, NO),
            (
                fact("group-settings"),
                "olive",
                "GET",
                "/groups/acme",
                NO,
                200,
                json!({"lfs_enabled": false, "membership_lock": true}),
            ),
            (
                fact("group-settings"),
                "olive",
                "POST",
                "/groups",
                json!({"name": "new", "path": "new", "project_creation_level": "noone"}),
                201,
                json!({"project_creation_level": "noone", "avatar_url": null}),
            ),
        ])
        .await;
    let picture = reqwest::multipart::Part::bytes(b"x".to_vec()).file_name("logo.png");
    let form = reqwest::multipart::Form::new().part("avatar", picture);
    let answer = read_reply(
        world
            .request("olive", "PUT", "/groups/acme")
            .multipart(form)
            .send()
            .await
            .expect("an answer"),
    )
    .await;
    let address = format!(
        "{}/uploads/-/system/group/avatar/{}/logo.png",
        world.running.url(),
        answer.body["id"]
    );
    assert_eq!(answer.body["avatar_url"], address, "{}", fact("group-settings"));
    let answer = world.call("olive", "PUT", "/groups/acme", &json!({"avatar": ""})).await;
    assert_eq!(answer.body["avatar_url"], NO, "{}", fact("group-settings"));
    let free = World::seeded(
        usual_seed(),
        SandboxConfig { tier: Some(ServiceTier::Free), ..SandboxConfig::default() },
    )
    .await;
    let answer = free.call("olive", "PUT", "/groups/acme", &json!({"membership_lock": true})).await;
    assert_eq!(
        (answer.status, answer.body.get("membership_lock")),
        (200, None),
        "{}",
        fact("group-settings")
    );
}

#[tokio::test]
async fn settings_of_a_user_are_saved() {
    let world = World::usual().await;
    let sent =
        json!({"bio": "hello", "external": true, "can_create_group": false, "note": "ignored"});
    let kept =
        json!({"bio": "hello", "external": true, "can_create_group": false, "projects_limit": 0});
    world
        .check(vec![
            (fact("user-settings"), ROOT, "PUT", "/users/4", sent, 200, kept),
            (
                fact("user-settings"),
                "dan",
                "GET",
                "/user",
                NO,
                200,
                json!({"bio": "hello", "external": true}),
            ),
            (fact("user-settings"), "mia", "GET", "/users/4", NO, 200, json!({"bio": "hello"})),
            (
                fact("user-administrators"),
                ROOT,
                "PUT",
                "/users/4",
                json!({"note": "on leave"}),
                200,
                json!({"note": "on leave", "username": "dan"}),
            ),
            (
                fact("user-settings"),
                ROOT,
                "PUT",
                "/users/4",
                json!({"projects_limit": "many"}),
                400,
                NO,
            ),
        ])
        .await;
    let answer = world.get(ROOT, "/users/4").await.body;
    let home = world.get(ROOT, &format!("/namespaces/{}", answer["namespace_id"])).await.body;
    assert_eq!(home["path"], "dan", "{}", fact("user-administrators"));
    for private in ["namespace_id", "note"] {
        assert_eq!(
            world.get("dan", "/user").await.body.get(private),
            None,
            "{}: {private}",
            fact("user-administrators")
        );
    }
    assert_eq!(
        world.get("mia", "/users/4").await.body.get("external"),
        None,
        "{}",
        fact("user-settings")
    );
}

#[tokio::test]
async fn a_project_token_belongs_to_a_bot_member() {
    let world = World::usual().await;
    for place in [SHOP, "/groups/acme"] {
        let tokens = leak(format!("{place}/access_tokens"));
        let members = || async {
            names(&world.get("olive", &format!("{place}/members")).await.body, "username")
        };
        let before = members().await;
        let made = world
            .call(
                "olive",
                "POST",
                tokens,
                &json!({"name": "ci", "scopes": ["api"], "access_level": 30}),
            )
            .await
            .body;
        assert_eq!(
            (&made["access_level"], &made["active"]),
            (&json!(30), &json!(true)),
            "{}",
            fact("bot-tokens")
        );
        assert_eq!(members().await.len(), before.len() + 1, "{}", fact("bot-tokens"));
        let secret = leak(made["token"].as_str().expect("a token").to_owned());
        let one = leak(format!("{tokens}/{}", made["id"]));
        let unknown = leak(format!("{tokens}/999"));
        world
            .check(vec![
                (
                    fact("bot-tokens"),
                    secret,
                    "GET",
                    "/user",
                    NO,
                    200,
                    json!({"id": made["user_id"], "bot": true}),
                ),
                (
                    fact("bot-tokens"),
                    "olive",
                    "GET",
                    tokens,
                    NO,
                    200,
                    json!([{"name": "ci", "access_level": 30}]),
                ),
                (fact("bot-tokens"), "olive", "GET", one, NO, 200, json!({"name": "ci"})),
                (fact("bot-tokens"), "olive", "GET", unknown, NO, 404, NO),
                (
                    fact("role"),
                    "dan",
                    "POST",
                    tokens,
                    json!({"name": "ci", "scopes": ["api"]}),
                    403,
                    NO,
                ),
                (
                    fact("bot-tokens"),
                    "olive",
                    "POST",
                    tokens,
                    json!({"name": "x", "scopes": ["api"], "access_level": 35}),
                    400,
                    NO,
                ),
                (fact("bot-tokens"), "olive", "DELETE", one, NO, 204, NO),
                (fact("bot-tokens"), secret, "GET", "/user", NO, 401, NO),
            ])
            .await;
        assert_eq!(members().await, before, "{}", fact("bot-tokens"));
    }
    let more = json!({"name": "x", "scopes": ["api"], "access_level": 50});
    let answer = world.call("mia", "POST", &format!("{SHOP}/access_tokens"), &more).await;
    assert_eq!(answer.status, 400, "{}", fact("bot-tokens"));
}

#[tokio::test]
async fn administrators_change_the_settings_of_the_service() {
    let world = World::usual().await;
    let sent = json!({"signup_enabled": "false", "default_projects_limit": 42, "asset_proxy_allowlist": ["a", "b"], "other": 1});
    let kept = json!({"signup_enabled": false, "default_projects_limit": 42, "asset_proxy_allowlist": ["a", "b"], "max_import_size": 0, "default_branch_name": null, "deletion_adjourned_period": 7});
    const SETTINGS: &str = "/application/settings";
    world
        .check(vec![
            (fact("role"), "olive", "GET", SETTINGS, NO, 403, NO),
            (fact("role"), "olive", "PUT", SETTINGS, NO, 403, NO),
            (fact("application-settings"), ROOT, "PUT", SETTINGS, sent, 200, kept.clone()),
            (
                fact("application-settings"),
                ROOT,
                "PUT",
                SETTINGS,
                json!({"signup_enabled": "perhaps"}),
                400,
                NO,
            ),
            (fact("application-settings"), ROOT, "GET", SETTINGS, NO, 200, kept),
            (fact("nothing-there"), "mia", "GET", "/projects/1/deploy_tokens", NO, 200, json!([])),
            (fact("nothing-there"), "mia", "GET", "/projects/99/deploy_tokens", NO, 404, NO),
            (fact("nothing-there"), "mia", "GET", "/projects/1/merge_requests", NO, 200, json!([])),
            (fact("nothing-there"), "mia", "GET", "/groups/acme/deploy_tokens", NO, 200, json!([])),
            (fact("role"), "olive", "GET", "/sidekiq/job_stats", NO, 403, NO),
            (
                fact("background-jobs"),
                ROOT,
                "GET",
                "/sidekiq/process_metrics",
                NO,
                200,
                json!({"processes": [{"busy": 0}]}),
            ),
            (
                fact("background-jobs"),
                ROOT,
                "GET",
                "/sidekiq/compound_metrics",
                NO,
                200,
                json!({"queues": {}, "processes": [{}], "jobs": {}}),
            ),
            (fact("nothing-there"), "mia", "GET", "/topics", NO, 200, json!([])),
            (fact("nothing-there"), "mia", "GET", "/events", NO, 200, json!([])),
            (fact("nothing-there"), "mia", "GET", "/projects/1/events", NO, 200, json!([])),
            (fact("nothing-there"), "mia", "GET", "/users/4/events", NO, 200, json!([])),
            (fact("nothing-there"), "mia", "GET", "/users/99/events", NO, 404, NO),
            (
                fact("templates"),
                "mia",
                "GET",
                "/templates/gitlab_ci_ymls/Nodejs",
                NO,
                200,
                json!({"name": "Nodejs"}),
            ),
            (fact("templates"), "mia", "GET", "/templates/gitlab_ci_ymls/Other", NO, 404, NO),
            (fact("nothing-there"), "mia", "GET", "/deploy_tokens", NO, 403, NO),
            (fact("nothing-there"), "mia", "GET", "/admin/ci/variables", NO, 403, NO),
            (fact("nothing-there"), ROOT, "GET", "/admin/ci/variables", NO, 200, json!([])),
            (fact("version"), ROOT, "POST", "/license", json!({"license": "x"}), 400, NO),
            (
                fact("look-up"),
                "mia",
                "GET",
                "/search?scope=users&search=dan",
                NO,
                200,
                json!([{"username": "dan"}]),
            ),
        ])
        .await;
    let templates = world.get("mia", "/templates/gitlab_ci_ymls").await;
    assert_eq!(
        (templates.header("x-total"), templates.header("x-next-page")),
        ("24", "2"),
        "{}",
        fact("templates")
    );
}

#[tokio::test]
async fn inherited_memberships_list_no_namespaces_in_later_releases() {
    let rule = fact("namespace-list");
    for (release, expected) in
        [("15.8", &["acme", "acme/sub", "dan"][..]), ("18.9", &["acme", "dan"])]
    {
        let world = at(release).await;
        let answer = world.get("dan", "/namespaces").await.body;
        assert_eq!(names(&answer, "full_path"), expected, "{rule} {release}");
        let owned = world.get("dan", "/namespaces?owned_only=true").await.body;
        assert_eq!(names(&owned, "full_path"), ["dan"], "{rule} {release}");
    }
}

#[tokio::test]
async fn top_level_namespaces_can_be_listed_alone_from_16_8_on() {
    let rule = fact("namespace-top");
    for (release, count) in [("16.7", 2), ("16.8", 1)] {
        let path = "/namespaces?search=acme&top_level_only=true";
        let answer = at(release).await.get(ROOT, path).await.body;
        assert_eq!(names(&answer, "full_path").len(), count, "{rule} {release} {answer}");
    }
}

#[tokio::test]
async fn owners_see_the_counts_of_a_namespace_from_18_9_on() {
    let rule = fact("namespace-counts");
    let later = World::at("18.9").await;
    let of_owner = later.get(ROOT, "/namespaces/acme").await.body;
    for name in ["members_count_with_descendants", "projects_count", "billable_members_count"] {
        assert!(of_owner[name].as_u64().is_some_and(|number| number > 0), "{rule} {of_owner}");
    }
    assert_eq!((&of_owner["plan"], &of_owner["trial"]), (&json!("default"), &json!(false)));
    let of_other = later.get("dan", "/namespaces/acme").await.body;
    assert!(of_other.get("projects_count").is_none() && of_other.get("plan").is_none());
    assert_eq!(of_other.get("billable_members_count"), Some(&Value::Null), "{rule}");
    let own = later.get("dan", "/namespaces/dan").await.body;
    assert_eq!((&own["billable_members_count"], &own["plan"]), (&json!(1), &json!("default")));
    let earlier = World::at("18.8").await.get(ROOT, "/namespaces/acme").await.body;
    assert!(earlier.get("billable_members_count").is_none(), "{rule} {earlier}");
}

/// Needs of other clients' test suites.
#[tokio::test]
async fn test_suites_of_other_clients_get_the_expected_answers() {
    let world = World::at("18.9").await;
    let shop = "/projects/acme%2Fshop";
    let at = |path: &str| leak(format!("{shop}/{path}"));
    let dan = world.get(ROOT, "/users?username=dan").await.body[0]["id"].clone();
    let day_token = json!({"name": "a", "scopes": ["read_registry"], "expires_at": "2099-01-02"});
    let time = json!({"name": "b", "scopes": ["read_registry"], "expires_at": "2099-01-02T10:00:00+02:00"});
    let people = json!({"name": "prod", "deploy_access_levels": [{"user_id": dan}]});
    let milestone = |title: &str| json!({ "title": title });
    let user = |name: &str, password: &str| {
        json!({"username": name, "name": name, "email": format!("{name}@x.example"),
               "reset_password": true, "password": password})
    };
    world
        .check(vec![
            (
                fact("version"),
                "dan",
                "GET",
                "/metadata",
                NO,
                200,
                json!({"kas": {"enabled": false}}),
            ),
            (fact("custom-attribute-blank"), "", "GET", at("custom_attributes"), NO, 403, NO),
            (
                fact("custom-attribute-blank"),
                ROOT,
                "DELETE",
                at("custom_attributes/x"),
                NO,
                404,
                json!({"message": "404 Not found"}),
            ),
            (
                fact("deploy-tokens"),
                "mia",
                "POST",
                at("deploy_tokens"),
                day_token,
                201,
                json!({"expires_at": "2099-01-02T00:00:00.000Z"}),
            ),
            (
                fact("deploy-tokens"),
                "mia",
                "POST",
                at("deploy_tokens"),
                time,
                201,
                json!({"expires_at": "2099-01-02T08:00:00.000Z"}),
            ),
            (
                fact("protected-environments"),
                "mia",
                "POST",
                at("protected_environments"),
                people,
                201,
                json!({"deploy_access_levels": [{"user_id": dan, "access_level": 40}]}),
            ),
            (fact("milestones"), "mia", "POST", at("milestones"), milestone("a"), 201, NO),
            (fact("milestones"), "mia", "POST", at("milestones"), milestone("b"), 201, NO),
            (
                fact("milestones"),
                "mia",
                "GET",
                at("milestones"),
                NO,
                200,
                json!([{"title": "b"}, {"title": "a"}]),
            ),
            (fact("user-rules"), ROOT, "POST", "/users", user("zoe", ""), 201, NO),
            (fact("user-rules"), ROOT, "POST", "/users", user("a--b", ""), 400, NO),
            (
                fact("user-rules"),
                ROOT,
                "GET",
                "/users?search=o&order_by=id&per_page=1",
                NO,
                200,
                json!([{"username": "zoe"}]),
            ),
        ])
        .await;
    let old = World::at("18.8").await;
    let body = user("a--b", "");
    assert_eq!(old.call(ROOT, "POST", "/users", &body).await.status, 201, "{}", fact("user-rules"));
    for path in ["/groups/acme", "/users/3"] {
        let request = world.request(ROOT, "DELETE", path);
        let request = request.header("if-unmodified-since", "Wed, 01 Jan 2020 00:00:00 GMT");
        let status = request.send().await.expect("an answer").status();
        assert_eq!(status, 412, "{}: {path}", fact("conditional-delete"));
    }
}

#[tokio::test]
async fn a_fork_keeps_its_merge_target_without_its_relation() {
    let world = World::at("18.9").await;
    let rule = fact("fork-self-target");
    let fork =
        world.call("mia", "POST", "/projects/acme%2Fsite/fork", &json!({"path": "copy"})).await;
    let site_id = world.get(ROOT, "/projects/acme%2Fsite").await.body["id"].clone();
    let one = leak(format!("/projects/{}", fork.body["id"]));
    let relation = leak(format!("{one}/fork"));
    let again = leak(format!("{relation}/{site_id}"));
    world
        .check(vec![
            (rule, "mia", "PUT", one, json!({"mr_default_target_self": true}), 200, NO),
            (rule, "mia", "DELETE", relation, NO, 204, NO),
            (rule, "mia", "POST", again, NO, 201, NO),
            (rule, "mia", "GET", one, NO, 200, json!({"mr_default_target_self": true})),
        ])
        .await;
}
