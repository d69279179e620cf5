//! Members of groups and projects, invitations of groups, supporting endpoints.

use serde_json::{Value, json};

use super::Source::{Inferred, Reference, Service};
use super::client::{ROOT, World, kept};

const NO: Value = Value::Null;
const SHOP: &str = "/projects/acme%2Fshop/members";
const ACME: &str = "/groups/acme/members";

async fn id(world: &World, user: &str) -> i64 {
    let found = world.get(ROOT, &format!("/users?username={}", user.to_uppercase())).await;
    found.body[0]["id"].as_i64().expect("a user")
}

#[tokio::test]
async fn members_come_and_go() {
    let world = World::usual().await;
    let stranger = id(&world, "stranger").await;
    let dan = id(&world, "dan").await;
    let one = kept(format!("{SHOP}/{stranger}"));
    let all = kept(format!("{SHOP}/all/{dan}"));
    let direct = kept(format!("{SHOP}/{dan}"));
    let add = |level: i64| json!({"user_id": stranger, "access_level": level});
    world
        .check(vec![
            (Service, "mia", "POST", SHOP, json!({}), 400, json!({"error": "user_id is missing, access_level is missing"})),
            (Service, "mia", "POST", SHOP, json!({"user_id": 999, "access_level": 30}), 404, json!({"message": "404 User Not Found"})),
            (Service, "mia", "POST", SHOP, add(31), 400, NO),
            (Service, "mia", "POST", SHOP, add(50), 403, NO),
            (
                Service,
                "mia",
                "POST",
                SHOP,
                json!({"user_id": stranger, "access_level": 30, "expires_at": "2001-01-01"}),
                400,
                json!({"message": {"expires_at": ["cannot be a date in the past"]}}),
            ),
            (Service, "dan", "POST", SHOP, add(30), 403, NO),
            (
                Reference("1, 4.3"),
                "mia",
                "POST",
                SHOP,
                json!({"user_id": stranger, "access_level": "30", "expires_at": "2999-01-31"}),
                201,
                json!({"id": stranger, "username": "stranger", "state": "active", "access_level": 30,
                       "expires_at": "2999-01-31", "created_by": {"username": "mia"}}),
            ),
            (Service, "mia", "POST", SHOP, add(30), 409, json!({"message": "Member already exists"})),
            (Reference("1, 4.3"), "mia", "PUT", one, json!({"expires_at": ""}), 400, json!({"error": "access_level is missing"})),
            (Inferred, "mia", "PUT", one, json!({"access_level": 20}), 200, json!({"access_level": 20, "expires_at": "2999-01-31"})),
            (Inferred, "mia", "PUT", one, json!({"access_level": 20, "expires_at": ""}), 200, json!({"expires_at": null})),
            (Reference("1, 4.3"), "mia", "GET", one, NO, 200, json!({"access_level": 20})),
            (Reference("1, 4.3"), "mia", "GET", direct, NO, 404, json!({"message": "404 Not found"})),
            (Reference("1, 4.3"), "mia", "GET", all, NO, 200, json!({"access_level": 30})),
            (
                Service,
                "mia",
                "POST",
                SHOP,
                json!({"user_id": dan, "access_level": 20}),
                400,
                json!({"message": {"access_level": ["should be greater than or equal to Developer inherited \
                    membership from group acme"]}}),
            ),
            (Service, "stranger", "DELETE", one, NO, 204, NO),
            (Service, "mia", "DELETE", one, NO, 404, NO),
            (
                Service,
                "mia",
                "POST",
                SHOP,
                json!({"user_id": format!("{stranger},{dan}"), "access_level": 40}),
                201,
                json!({"status": "success"}),
            ),
            (
                Service,
                "mia",
                "POST",
                SHOP,
                json!({"user_id": format!("{stranger},999"), "access_level": 40}),
                201,
                json!({"status": "error", "message": {"999": "User not found", "stranger": "Member already exists"}}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn groups_keep_an_owner_and_clean_up_below() {
    let world = World::usual().await;
    let olive = id(&world, "olive").await;
    let dan = id(&world, "dan").await;
    let owner = kept(format!("{ACME}/{olive}"));
    let below = kept(format!("{SHOP}/{dan}"));
    let member = kept(format!("{ACME}/{dan}"));
    world
        .check(vec![
            (Service, "mia", "PUT", owner, json!({"access_level": 40}), 403, NO),
            (Inferred, "olive", "PUT", owner, json!({"access_level": 40}), 403, NO),
            (Inferred, "olive", "DELETE", owner, NO, 403, NO),
            (Reference("1, 4.3"), "olive", "POST", SHOP, json!({"user_id": dan, "access_level": 40}), 201, NO),
            (Reference("1, 4.3"), "olive", "DELETE", member, NO, 204, NO),
            (Reference("1, 4.3"), "olive", "GET", below, NO, 404, NO),
        ])
        .await;
}

#[tokio::test]
async fn all_members_count_once_with_their_highest_level() {
    let world = World::with(json!({
        "users": [{"username": "ann", "token": "ann"}, {"username": "bob"}],
        "groups": [
            {"path": "acme", "members": [{"user": "ann", "access_level": "owner"}]},
            {"path": "ops", "visibility": "public", "members": [{"user": "bob", "access_level": "owner"}]},
        ],
        "projects": [{"path": "acme/deep/er", "members": [{"user": "bob", "access_level": "guest"}]}],
    }))
    .await;
    let ops = world.get(ROOT, "/groups/ops").await.body["id"].clone();
    world
        .check(vec![
            (
                Service,
                "ann",
                "POST",
                "/groups/acme/share",
                json!({"group_id": ops, "group_access": 30}),
                201,
                json!({"shared_with_groups": [{"group_full_path": "ops", "group_access_level": 30}]}),
            ),
            (Service, "ann", "POST", "/groups/acme/share", json!({"group_id": ops, "group_access": 30}), 409, NO),
            (
                Reference("1, 4.3"),
                "ann",
                "GET",
                "/projects/acme%2Fdeep%2Fer/members",
                NO,
                200,
                json!([{"username": "bob", "access_level": 10}]),
            ),
            (
                Reference("1, 4.3"),
                "ann",
                "GET",
                "/projects/acme%2Fdeep%2Fer/members/all",
                NO,
                200,
                json!([{"username": "ann", "access_level": 50}, {"username": "bob", "access_level": 30}]),
            ),
            (Reference("1, 4.3"), "ann", "GET", "/projects/acme%2Fdeep%2Fer/members/all?query=AN", NO, 200, json!([{"username": "ann"}])),
        ])
        .await;
}

#[tokio::test]
async fn a_personal_project_keeps_its_owner() {
    let world = World::usual().await;
    let dan = id(&world, "dan").await;
    let own = kept(format!("/projects/dan%2Fmine/members/{dan}"));
    world
        .check(vec![
            (Reference("1, 2.1"), "dan", "POST", "/projects", json!({"path": "mine"}), 201, NO),
            (Reference("1, 2.1"), "dan", "GET", own, NO, 200, json!({"access_level": 50})),
            (Inferred, "dan", "DELETE", own, NO, 403, NO),
            (Inferred, ROOT, "PUT", own, json!({"access_level": 30}), 403, NO),
            (Reference("2, 4.1"), ROOT, "GET", "/users/dan/projects", NO, 200, json!([{"path": "mine"}])),
            (Service, ROOT, "GET", "/users/nobody/projects", NO, 404, json!({"message": "404 User Not Found"})),
        ])
        .await;
}

#[tokio::test]
async fn groups_and_namespaces_can_be_found() {
    let world = World::usual().await;
    let acme = world.get(ROOT, "/groups/ACME").await.body["id"].clone();
    let named = kept(format!("/namespaces/{acme}"));
    world
        .check(vec![
            (
                Service,
                "mia",
                "POST",
                "/groups",
                json!({"name": "Own", "path": "own"}),
                201,
                json!({"full_path": "own", "visibility": "private", "parent_id": null}),
            ),
            (
                Service,
                "mia",
                "POST",
                "/groups",
                json!({"name": "Own", "path": "OWN"}),
                400,
                json!({"message": {"path": ["has already been taken"]}}),
            ),
            (
                Service,
                "olive",
                "POST",
                "/groups",
                json!({"name": "Sub", "path": "sub", "parent_id": acme}),
                201,
                json!({"full_path": "acme/sub", "full_name": "acme / Sub"}),
            ),
            (Service, "mia", "POST", "/groups", json!({"name": "Sub", "path": "two", "parent_id": acme}), 403, NO),
            (Service, "stranger", "GET", "/groups/own", NO, 404, json!({"message": "404 Group Not Found"})),
            (Service, "mia", "GET", "/groups?search=own", NO, 200, json!([{"path": "own"}])),
            (Service, "olive", "GET", "/groups/acme/subgroups", NO, 200, json!([{"path": "sub"}])),
            (Service, "mia", "GET", named, NO, 200, json!({"kind": "group", "full_path": "acme"})),
            (Service, "mia", "GET", "/namespaces/nothing", NO, 404, json!({"message": "404 Namespace Not Found"})),
            (Inferred, "olive", "PUT", "/groups/acme", json!({"path": "apex"}), 200, json!({"full_path": "apex"})),
            (Inferred, "olive", "GET", "/groups/apex%2Fsub", NO, 200, json!({"full_path": "apex/sub"})),
            (Inferred, "olive", "GET", "/projects/apex%2Fshop", NO, 200, json!({"path_with_namespace": "apex/shop"})),
            (Service, "olive", "DELETE", "/groups/apex%2Fsub", NO, 202, NO),
            (Service, "olive", "GET", "/groups/apex%2Fsub", NO, 404, NO),
        ])
        .await;
}

#[tokio::test]
async fn clients_learn_who_they_are() {
    let world = World::usual().await;
    world
        .check(vec![
            (Service, "mia", "GET", "/user", NO, 200, json!({"username": "mia", "two_factor_enabled": false, "identities": []})),
            (Service, "", "GET", "/user", NO, 401, json!({"message": "401 Unauthorized"})),
            (Service, "wrong", "GET", "/version", NO, 401, NO),
            (Service, "mia", "GET", "/version", NO, 200, json!({"version": "15.8.0-ee"})),
            (Service, ROOT, "GET", "/license", NO, 200, json!({"plan": "ultimate", "expired": false})),
            (Service, "mia", "GET", "/personal_access_tokens/self", NO, 200, json!({"active": true, "scopes": ["api"]})),
            (
                Service,
                ROOT,
                "POST",
                "/users",
                json!({"username": "new", "name": "New", "email": "new@x.example"}),
                201,
                json!({"username": "new", "state": "active"}),
            ),
            (
                Service,
                ROOT,
                "POST",
                "/users",
                json!({"username": "new2", "name": "New", "email": "NEW@x.example"}),
                409,
                json!({"message": "Email has already been taken"}),
            ),
            (Service, "mia", "POST", "/users", json!({}), 403, NO),
            (Service, ROOT, "GET", "/users/2/memberships?type=x", NO, 400, json!({"error": "type does not have a valid value"})),
            (Service, ROOT, "DELETE", "/users/stranger", NO, 204, NO),
            (Service, "stranger", "GET", "/user", NO, 401, NO),
        ])
        .await;
    let made = world.call(ROOT, "POST", "/users/3/personal_access_tokens", &json!({"name": "ci", "scopes": ["read_api"]})).await;
    let token = made.body["token"].as_str().expect("a token");
    assert_eq!(world.get(token, "/user").await.body["username"], "mia", "Service");
    let refused = world.call(token, "POST", "/projects", &json!({"path": "x"})).await;
    assert_eq!((refused.status, &refused.body["error"]), (403, &json!("insufficient_scope")), "Service");
}
