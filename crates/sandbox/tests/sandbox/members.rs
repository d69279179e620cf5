//! Members of groups and projects, invitations of groups, supporting endpoints.

use serde_json::{Value, json};

use super::client::{ROOT, World, leak};
use super::facts::fact;

const NO: Value = Value::Null;
const SHOP_MEMBERS: &str = "/projects/acme%2Fshop/members";
const ACME_MEMBERS: &str = "/groups/acme/members";

async fn id(world: &World, user: &str) -> i64 {
    let reply = world.get(ROOT, &format!("/users?username={}", user.to_uppercase())).await;
    reply.body[0]["id"].as_i64().expect("a user")
}

#[tokio::test]
async fn everybody_has_an_avatar() {
    let world = World::usual().await;
    for path in [
        "/groups/acme/members?query=dan",
        "/projects/acme%2Fshop/users?search=dan",
        "/users?username=dan",
    ] {
        let address = world.get("mia", path).await.body[0]["avatar_url"].clone();
        assert!(
            address
                .as_str()
                .is_some_and(|address| address.starts_with("https://www.gravatar.com/avatar/")),
            "{}: {path}",
            fact("user-avatar")
        );
    }
}

#[tokio::test]
async fn members_are_hidden_from_anonymous_callers() {
    let world = World::usual().await;
    let olive = id(&world, "olive").await;
    let refused = json!({"message": "401 Unauthorized"});
    for place in [
        "/groups/acme",
        "/projects/acme%2Fsite",
        SHOP_MEMBERS.trim_end_matches("/members"),
        "/groups/nothing",
    ] {
        for list in ["members", "members/all"] {
            let (list, one) =
                (leak(format!("{place}/{list}")), leak(format!("{place}/{list}/{olive}")));
            let row = |path| (fact("member-anonymous"), "", "GET", path, NO, 401, refused.clone());
            world.check(vec![row(list), row(one)]).await;
        }
    }
    let seen = json!([{"username": "olive"}, {"username": "mia"}, {"username": "dan"}, {"username": "rita"}, {"username": "gus"}]);
    world
        .check(vec![(
            fact("member-anonymous"),
            "stranger",
            "GET",
            "/projects/acme%2Fsite/members/all",
            NO,
            200,
            seen,
        )])
        .await;
}

#[tokio::test]
async fn members_are_added_changed_and_removed() {
    let world = World::usual().await;
    let stranger = id(&world, "stranger").await;
    let dan_id = id(&world, "dan").await;
    let one = leak(format!("{SHOP_MEMBERS}/{stranger}"));
    let all = leak(format!("{SHOP_MEMBERS}/all/{dan_id}"));
    let direct = leak(format!("{SHOP_MEMBERS}/{dan_id}"));
    let add = |level: i64| json!({"user_id": stranger, "access_level": level});
    world
        .check(vec![
            (
                fact("parameter-missing"),
                "mia",
                "POST",
                SHOP_MEMBERS,
                json!({}),
                400,
                json!({"error": "user_id is missing, access_level is missing"}),
            ),
            (
                fact("member-unknown-user"),
                "mia",
                "POST",
                SHOP_MEMBERS,
                json!({"user_id": 999, "access_level": 30}),
                404,
                json!({"message": "404 User Not Found"}),
            ),
            (fact("member-level"), "mia", "POST", SHOP_MEMBERS, add(31), 400, NO),
            (fact("member-owner-grant"), "mia", "POST", SHOP_MEMBERS, add(50), 403, NO),
            (
                fact("member-past"),
                "mia",
                "POST",
                SHOP_MEMBERS,
                json!({"user_id": stranger, "access_level": 30, "expires_at": "2001-01-01"}),
                400,
                json!({"message": {"expires_at": ["cannot be a date in the past"]}}),
            ),
            (fact("role"), "dan", "POST", SHOP_MEMBERS, add(30), 403, NO),
            (
                fact("member-add"),
                "mia",
                "POST",
                SHOP_MEMBERS,
                json!({"user_id": stranger, "access_level": "30", "expires_at": "2999-01-31"}),
                201,
                json!({"id": stranger, "username": "stranger", "state": "active", "access_level": 30,
                       "expires_at": "2999-01-31", "created_by": {"username": "mia"}}),
            ),
            (fact("member-twice"), "mia", "POST", SHOP_MEMBERS, add(30), 409, json!({"message": "Member already exists"})),
            (fact("member-level-required"), "mia", "PUT", one, json!({"expires_at": ""}), 400, json!({"error": "access_level is missing"})),
            (
                fact("member-expiry-kept"),
                "mia",
                "PUT",
                one,
                json!({"access_level": 20}),
                200,
                json!({"access_level": 20, "expires_at": "2999-01-31"}),
            ),
            (
                fact("member-expiry-cleared"),
                "mia",
                "PUT",
                one,
                json!({"access_level": 20, "expires_at": ""}),
                200,
                json!({"expires_at": null}),
            ),
            (fact("member-get"), "mia", "GET", one, NO, 200, json!({"access_level": 20})),
            (fact("member-absent"), "mia", "GET", direct, NO, 404, json!({"message": "404 Not found"})),
            (fact("members-all"), "mia", "GET", all, NO, 200, json!({"access_level": 30})),
            (
                fact("member-inherited"),
                "mia",
                "POST",
                SHOP_MEMBERS,
                json!({"user_id": dan_id, "access_level": 20}),
                400,
                json!({"message": {"access_level": ["should be greater than or equal to Developer inherited \
                    membership from group acme"]}}),
            ),
            (fact("member-leaves"), "stranger", "DELETE", one, NO, 204, NO),
            (fact("member-absent"), "mia", "DELETE", one, NO, 404, NO),
            (
                fact("member-add-list"),
                "mia",
                "POST",
                SHOP_MEMBERS,
                json!({"user_id": format!("{stranger},{dan_id}"), "access_level": 40}),
                201,
                json!({"status": "success"}),
            ),
            (
                fact("member-add-list"),
                "mia",
                "POST",
                SHOP_MEMBERS,
                json!({"user_id": format!("{stranger},999"), "access_level": 30}),
                201,
                json!({"status": "success"}),
            ),
            (
                fact("member-add-list"),
                "mia",
                "GET",
                one,
                NO,
                200,
                json!({"access_level": 30}),
            ),
            (
                fact("member-add-list"),
                "mia",
                "POST",
                SHOP_MEMBERS,
                json!({"user_id": format!("{dan_id},{}", 2), "access_level": 20}),
                201,
                json!({"status": "error"}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn an_owner_above_owns_a_subgroup_too() {
    let world = World::usual().await;
    let acme_id = world.call("olive", "GET", "/groups/acme", &NO).await.body["id"].clone();
    let fresh = json!({"name": "sub", "path": "sub", "parent_id": acme_id});
    let reply = world.call("olive", "POST", "/groups", &fresh).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    let owner = leak(format!("/groups/acme%2Fsub/members/{}", id(&world, "olive").await));
    world.check(vec![(fact("last-owner"), "olive", "DELETE", owner, NO, 204, NO)]).await;
}

#[tokio::test]
async fn the_last_owner_stays_and_removals_include_projects() {
    let world = World::usual().await;
    let olive = id(&world, "olive").await;
    let dan_id = id(&world, "dan").await;
    let owner = leak(format!("{ACME_MEMBERS}/{olive}"));
    // A bot does not count as an owner.
    let token =
        json!({"name": "ci", "scopes": ["api"], "access_level": 50, "expires_at": "2026-12-31"});
    let reply = world.call("olive", "POST", "/groups/acme/access_tokens", &token).await;
    assert_eq!((reply.status, &reply.body["access_level"]), (201, &json!(50)), "{}", reply.body);
    let below = leak(format!("{SHOP_MEMBERS}/{dan_id}"));
    let member = leak(format!("{ACME_MEMBERS}/{dan_id}"));
    world
        .check(vec![
            (fact("member-higher"), "mia", "PUT", owner, json!({"access_level": 40}), 403, NO),
            (fact("last-owner"), "olive", "PUT", owner, json!({"access_level": 40}), 403, NO),
            (fact("last-owner"), "olive", "DELETE", owner, NO, 403, NO),
            (
                fact("member-add"),
                "olive",
                "POST",
                SHOP_MEMBERS,
                json!({"user_id": dan_id, "access_level": 40}),
                201,
                NO,
            ),
            (fact("member-remove"), "olive", "DELETE", member, NO, 204, NO),
            (fact("member-remove"), "olive", "GET", below, NO, 404, NO),
        ])
        .await;
}

#[tokio::test]
async fn all_members_count_once_with_their_highest_level() {
    let world = World::from_seed(json!({
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
                fact("share"),
                "ann",
                "POST",
                "/groups/acme/share",
                json!({"group_id": ops, "group_access": 30}),
                201,
                json!({"shared_with_groups": [{"group_full_path": "ops", "group_access_level": 30}]}),
            ),
            (fact("share"), "ann", "POST", "/groups/acme/share", json!({"group_id": ops, "group_access": 30}), 409, NO),
            (
                fact("member-list"),
                "ann",
                "GET",
                "/projects/acme%2Fdeep%2Fer/members",
                NO,
                200,
                json!([{"username": "bob", "access_level": 10}]),
            ),
            (
                fact("members-all"),
                "ann",
                "GET",
                "/projects/acme%2Fdeep%2Fer/members/all",
                NO,
                200,
                json!([{"username": "ann", "access_level": 50}, {"username": "bob", "access_level": 30}]),
            ),
            (fact("member-list"), "ann", "GET", "/projects/acme%2Fdeep%2Fer/members/all?query=AN", NO, 200, json!([{"username": "ann"}])),
        ])
        .await;
}

#[tokio::test]
async fn a_level_below_the_highest_inherited_one_is_refused() {
    let world = World::from_seed(json!({
        "users": [{"username": "ann", "token": "ann"}, {"username": "bob"}],
        "groups": [
            {"path": "top", "name": "The Top", "members": [
                {"user": "ann", "access_level": "owner"}, {"user": "bob", "access_level": "maintainer"},
            ]},
            {"path": "top/mid", "members": [{"user": "bob", "access_level": "developer"}]},
            {"path": "top/mid/low"},
        ],
        "projects": [{"path": "top/mid/thing"}],
    }))
    .await;
    let bob = id(&world, "bob").await;
    let refused = json!({"message": {"access_level": ["should be greater than or equal to Maintainer \
        inherited membership from group The Top"]}});
    let add = |level: i64| json!({"user_id": bob, "access_level": level});
    let row = |path, level, status, answer| {
        (fact("member-inherited"), "ann", "POST", path, add(level), status, answer)
    };
    let own = leak(format!("/groups/top%2Fmid/members/{bob}"));
    world
        .check(vec![
            row("/projects/top%2Fmid%2Fthing/members", 20, 400, refused.clone()),
            row("/groups/top%2Fmid%2Flow/members", 30, 400, refused.clone()),
            row("/groups/top%2Fmid%2Flow/members", 40, 201, NO),
            (
                fact("member-inherited"),
                "ann",
                "PUT",
                own,
                json!({"access_level": 20}),
                400,
                refused,
            ),
        ])
        .await;
}

#[tokio::test]
async fn a_personal_project_keeps_its_owner() {
    let world = World::usual().await;
    let dan = id(&world, "dan").await;
    let own = leak(format!("/projects/dan%2Fmine/members/{dan}"));
    world
        .check(vec![
            (fact("project-names"), "dan", "POST", "/projects", json!({"path": "mine"}), 201, NO),
            (fact("personal-owner"), "dan", "GET", own, NO, 200, json!({"access_level": 50})),
            (fact("last-owner"), "dan", "DELETE", own, NO, 403, NO),
            (fact("last-owner"), ROOT, "PUT", own, json!({"access_level": 30}), 403, NO),
            (
                fact("user-projects"),
                ROOT,
                "GET",
                "/users/dan/projects",
                NO,
                200,
                json!([{"path": "mine"}]),
            ),
            (
                fact("user-unknown"),
                ROOT,
                "GET",
                "/users/nobody/projects",
                NO,
                404,
                json!({"message": "404 User Not Found"}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn groups_and_namespaces_can_be_found() {
    let world = World::usual().await;
    let acme_id = world.get(ROOT, "/groups/ACME").await.body["id"].clone();
    let named = leak(format!("/namespaces/{acme_id}"));
    world
        .check(vec![
            (
                fact("group"),
                "mia",
                "POST",
                "/groups",
                json!({"name": "Own", "path": "own"}),
                201,
                json!({"full_path": "own", "visibility": "private", "parent_id": null}),
            ),
            (
                fact("group-taken"),
                "mia",
                "POST",
                "/groups",
                json!({"name": "Own", "path": "OWN"}),
                400,
                json!({"message": "Failed to save group {:path=>[\"has already been taken\"]}"}),
            ),
            (
                fact("group"),
                "olive",
                "POST",
                "/groups",
                json!({"name": "Sub", "path": "sub", "parent_id": acme_id}),
                201,
                json!({"full_path": "acme/sub", "full_name": "acme / Sub"}),
            ),
            (
                fact("role"),
                "dan",
                "POST",
                "/groups",
                json!({"name": "Sub", "path": "two", "parent_id": acme_id}),
                403,
                NO,
            ),
            (
                fact("unseen"),
                "stranger",
                "GET",
                "/groups/own",
                NO,
                404,
                json!({"message": "404 Group Not Found"}),
            ),
            (fact("group"), "mia", "GET", "/groups?search=own", NO, 200, json!([{"path": "own"}])),
            (
                fact("group"),
                "stranger",
                "GET",
                "/groups?search=acme&all_available=true",
                NO,
                200,
                json!([{"path": "acme"}]),
            ),
            (
                fact("group"),
                "stranger",
                "GET",
                "/groups?search=acme&all_available=false",
                NO,
                200,
                json!([]),
            ),
            (
                fact("group"),
                "gus",
                "GET",
                "/groups?search=acme&all_available=false",
                NO,
                200,
                json!([{"path": "acme"}, {"path": "sub"}]),
            ),
            (fact("group"), ROOT, "GET", "/groups?search=acme&owned=true", NO, 200, json!([])),
            (
                fact("group"),
                "olive",
                "GET",
                "/groups/acme/subgroups",
                NO,
                200,
                json!([{"path": "sub"}]),
            ),
            (
                fact("namespace"),
                "mia",
                "GET",
                named,
                NO,
                200,
                json!({"kind": "group", "full_path": "acme"}),
            ),
            (
                fact("namespace"),
                "mia",
                "GET",
                "/namespaces/nothing",
                NO,
                404,
                json!({"message": "404 Namespace Not Found"}),
            ),
            (
                fact("group-rename"),
                "olive",
                "PUT",
                "/groups/acme",
                json!({"path": "apex"}),
                200,
                json!({"full_path": "apex"}),
            ),
            (
                fact("group-rename"),
                "olive",
                "GET",
                "/groups/apex%2Fsub",
                NO,
                200,
                json!({"full_path": "apex/sub"}),
            ),
            (
                fact("group-rename"),
                "olive",
                "GET",
                "/projects/apex%2Fshop",
                NO,
                200,
                json!({"path_with_namespace": "apex/shop"}),
            ),
            (fact("group"), "olive", "DELETE", "/groups/apex%2Fsub", NO, 202, NO),
            (fact("group"), "olive", "GET", "/groups/apex%2Fsub", NO, 404, NO),
        ])
        .await;
}

#[tokio::test]
async fn a_group_shows_its_projects() {
    let world = World::from_seed(json!({
        "users": [{"username": "ann", "token": "ann"}, {"username": "bob", "token": "bob"}],
        "groups": [
            {"path": "acme", "visibility": "public", "members": [{"user": "ann", "access_level": "owner"}]},
            {"path": "ops", "visibility": "public", "members": [{"user": "ann", "access_level": "owner"}]},
        ],
        "projects": [
            {"path": "acme/hidden"},
            {"path": "acme/open", "settings": {"visibility": "public", "merge_method": "ff"}},
            {"path": "acme/deep/er"},
            {"path": "ops/lent"},
            {"path": "ops/shown", "settings": {"visibility": "public"}},
        ],
    }))
    .await;
    let acme = world.get(ROOT, "/groups/acme").await.body["id"].clone();
    for project in ["/projects/ops%2Flent/share", "/projects/ops%2Fshown/share"] {
        world
            .check(vec![(
                fact("share"),
                "ann",
                "POST",
                project,
                json!({"group_id": acme, "group_access": 30}),
                201,
                NO,
            )])
            .await;
    }
    let own = json!([{"path": "open", "merge_method": "ff"}, {"path": "hidden"}]);
    let all = json!({"projects": own, "shared_projects": [{"path": "shown"}, {"path": "lent"}]});
    let open = json!({"projects": [{"path": "open", "merge_method": "ff"}], "shared_projects": [{"path": "shown"}]});
    world
        .check(vec![
            (fact("group-projects"), "ann", "GET", "/groups/acme", NO, 200, all.clone()),
            (
                fact("group-projects"),
                "ann",
                "GET",
                "/groups/acme?with_projects=true&owned=true&search=x",
                NO,
                200,
                all.clone(),
            ),
            (fact("group-projects"), "bob", "GET", "/groups/acme", NO, 200, open.clone()),
            (fact("group-projects"), "", "GET", "/groups/acme", NO, 200, open),
            (
                fact("group-projects"),
                "ann",
                "PUT",
                "/groups/acme",
                json!({"description": "d"}),
                200,
                all,
            ),
            (
                fact("group-projects"),
                "ann",
                "GET",
                "/groups/acme%2Fdeep",
                NO,
                200,
                json!({"projects": [{"path": "er"}], "shared_projects": []}),
            ),
            (
                fact("parameter-type"),
                "ann",
                "GET",
                "/groups/acme?with_projects=perhaps",
                NO,
                400,
                json!({"error": "with_projects is invalid"}),
            ),
        ])
        .await;
    let answer =
        world.call("ann", "POST", "/groups", &json!({"name": "New", "path": "new"})).await.body;
    let without = world.get("ann", "/groups/acme?with_projects=false").await.body;
    for (body, how) in [(answer, "POST"), (without, "with_projects=false")] {
        assert!(body["shared_with_groups"].is_array(), "{how}: {body}");
        for list in ["projects", "shared_projects"] {
            assert_eq!(body.get(list), None, "{}: {how}", fact("group-projects"));
        }
    }
}

#[tokio::test]
async fn authentication_decides_which_user_data_is_shown() {
    let world = World::usual().await;
    world
        .check(vec![
            (
                fact("user"),
                "mia",
                "GET",
                "/user",
                NO,
                200,
                json!({"username": "mia", "two_factor_enabled": false, "identities": []}),
            ),
            (
                fact("authentication"),
                "",
                "GET",
                "/user",
                NO,
                401,
                json!({"message": "401 Unauthorized"}),
            ),
            (fact("authentication"), "wrong", "GET", "/version", NO, 401, NO),
            (
                fact("user-anonymous"),
                "",
                "GET",
                "/users/3",
                NO,
                403,
                json!({"message": "403 Forbidden - Not authorized!"}),
            ),
            (fact("user-anonymous"), "", "GET", "/users/999", NO, 403, NO),
            (fact("user-anonymous"), "dan", "GET", "/users/3", NO, 200, json!({"username": "mia"})),
            (fact("version"), "mia", "GET", "/version", NO, 200, json!({"version": "15.8.0-ee"})),
            (
                fact("version"),
                ROOT,
                "GET",
                "/license",
                NO,
                200,
                json!({"plan": "ultimate", "expired": false}),
            ),
            (
                fact("version"),
                "mia",
                "GET",
                "/personal_access_tokens/self",
                NO,
                200,
                json!({"active": true, "scopes": ["api"]}),
            ),
            (
                fact("user-create"),
                ROOT,
                "POST",
                "/users",
                json!({"username": "new", "name": "New", "email": "new@x.example", "force_random_password": true}),
                201,
                json!({"username": "new", "state": "active"}),
            ),
            (
                fact("user-create"),
                ROOT,
                "POST",
                "/users",
                json!({"username": "new2", "name": "New", "email": "NEW@x.example", "force_random_password": true}),
                409,
                json!({"message": "Email has already been taken"}),
            ),
            (fact("role"), "mia", "POST", "/users", json!({}), 403, NO),
            (
                fact("user-memberships"),
                ROOT,
                "GET",
                "/users/2/memberships?type=x",
                NO,
                400,
                json!({"error": "type does not have a valid value"}),
            ),
            (fact("user-create"), ROOT, "DELETE", "/users/stranger", NO, 204, NO),
            (fact("authentication"), "stranger", "GET", "/user", NO, 401, NO),
        ])
        .await;
    let reply = world
        .call(
            ROOT,
            "POST",
            "/users/3/personal_access_tokens",
            &json!({"name": "ci", "scopes": ["read_api"]}),
        )
        .await;
    let token = reply.body["token"].as_str().expect("a token");
    assert_eq!(world.get(token, "/user").await.body["username"], "mia", "{}", fact("token-scope"));
    let refused = world.call(token, "POST", "/projects", &json!({"path": "x"})).await;
    assert_eq!(
        (refused.status, &refused.body["error"], &refused.body["scope"]),
        (403, &json!("insufficient_scope"), &json!("api read_api")),
        "{}",
        fact("token-scope")
    );
}

/// Members in later releases, and in the code of 18.9.
#[tokio::test]
async fn later_releases_add_members_by_username() {
    let world = super::releases::at("18.9").await;
    let (acme, sub) = (ACME_MEMBERS, "/groups/acme%2Fsub/members");
    let add = |name: &str, level: i64| json!({"username": name, "access_level": level});
    let text = |error: &str| json!({ "error": error });
    let with = |more: Value| {
        let mut body = json!({"user_id": 7, "access_level": 30});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("more").clone());
        body
    };
    let (rule, spelled) = (fact("member-username"), fact("expiry-spellings"));
    let one = leak(format!("{sub}/7"));
    world
        .check(vec![
            (rule, "olive", "POST", sub, add("STRANGER", 30), 404, NO),
            (rule, "olive", "POST", sub, with(json!({"username": "stranger"})), 400, text("user_id, username are mutually exclusive")),
            (
                rule,
                "olive",
                "POST",
                sub,
                json!({}),
                400,
                text("access_level is missing, user_id, username are missing, at least one parameter must be provided"),
            ),
            (rule, "olive", "POST", sub, add("stranger", 30), 201, json!({"id": 7})),
            (fact("member-absent"), "gus", "DELETE", leak(format!("{sub}/999")), NO, 404, NO),
            (
                fact("member-role-unknown"),
                "olive",
                "PUT",
                one,
                json!({"access_level": 30, "member_role_id": 9}),
                400,
                json!({"message": {"member_role": ["not found"]}}),
            ),
            (fact("member-leaves"), "stranger", "DELETE", one, NO, 204, NO),
            (spelled, "olive", "POST", sub, with(json!({"expires_at": 29_990_131})), 400, text("expires_at is invalid")),
            (spelled, "olive", "POST", sub, with(json!({"expires_at": "31.1.2999"})), 201, json!({"expires_at": "2999-01-31"})),
            (
                fact("member-minimal"),
                "olive",
                "PUT",
                one,
                json!({"access_level": 5}),
                400,
                json!({"message": {"access_level": ["is not included in the list", "supported on top level groups only"]}}),
            ),
            (fact("member-minimal"), "olive", "POST", acme, add("stranger", 5), 201, NO),
            (
                fact("last-owner"),
                "olive",
                "PUT",
                leak(format!("{acme}/2")),
                json!({"access_level": 50, "expires_at": "2999-01-01"}),
                403,
                NO,
            ),
            (fact("override"), "olive", "POST", leak(format!("{acme}/4/override")), NO, 403, NO),
            (
                fact("billable-indirect"),
                "olive",
                "GET",
                "/groups/acme/billable_members/4/indirect",
                NO,
                200,
                json!([]),
            ),
        ])
        .await;
    world.call("olive", "DELETE", &format!("{acme}/4"), &NO).await;
    world.call("olive", "POST", acme, &add("dan", 30)).await;
    let answer = world.get("olive", &format!("{acme}/all")).await.body;
    let last = answer.as_array().and_then(|all| all.last()).expect("members");
    assert_eq!(last["username"], "dan", "{}", fact("member-order"));
}

#[tokio::test]
async fn invitations_and_requests_are_answered() {
    let world = World::usual().await;
    let invitations = "/groups/acme/invitations";
    let one = leak(format!("{invitations}/new@x.example"));
    let (invite, edit) = (fact("invitation-refused"), fact("invitation-edit"));
    world
        .check(vec![
            (invite, "olive", "POST", invitations, json!({"email": "nobody", "access_level": 30}), 400, NO),
            (invite, "olive", "POST", invitations, json!({"user_id": 7, "access_level": 30}), 400, NO),
            (
                invite,
                "olive",
                "POST",
                invitations,
                json!({"email": "new@x.example"}),
                400,
                json!({"error": "access_level is missing, access_level does not have a valid value"}),
            ),
            (edit, "olive", "PUT", one, json!({"access_level": 20}), 404, NO),
            (edit, "olive", "POST", invitations, json!({"email": "new@x.example", "access_level": 30}), 201, NO),
            (edit, "olive", "PUT", one, json!({"access_level": 20}), 200, json!({"access_level": 20})),
            (edit, "olive", "GET", invitations, NO, 200, json!([{"access_level": 20}])),
        ])
        .await;
    let rule = fact("access-request-level");
    let requests = "/groups/acme/access_requests";
    let level = |level: i64| json!({ "access_level": level });
    let approve = leak(format!("{requests}/7/approve"));
    world
        .check(vec![
            (rule, "stranger", "POST", requests, NO, 201, NO),
            (rule, "olive", "PUT", approve, level(60), 201, level(60)),
            (rule, "olive", "GET", requests, NO, 200, json!([{"id": 7}])),
            (rule, "olive", "PUT", approve, level(20), 201, level(20)),
        ])
        .await;
}
