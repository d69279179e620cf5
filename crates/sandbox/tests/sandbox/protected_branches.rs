//! Protected branches, and the protection that the service adds to a default branch.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use undrift_sandbox::{Clock, Profile, SandboxConfig, ServiceTier};

use super::client::{ROOT, World, contains, leak, read_reply, usual_seed};
use super::facts::fact;

const NO: Value = Value::Null;
const BRANCHES: &str = "/projects/acme%2Fshop/protected_branches";
const MAIN: &str = "/projects/acme%2Fshop/protected_branches/main";

// Users of the usual world.
const DAN: i64 = 4;
const RITA: i64 = 5;
const STRANGER: i64 = 7;

/// Invites a group to the shop at a level; returns its id.
async fn invited(world: &World, name: &str, level: i64) -> i64 {
    let reply = world.call(ROOT, "POST", "/groups", &json!({"name": name, "path": name})).await;
    let id = reply.body["id"].as_i64().expect("a group");
    let share = json!({"group_id": id, "group_access": level});
    let shared = world.call(ROOT, "POST", "/projects/acme%2Fshop/share", &share).await;
    assert_eq!(shared.status, 201, "{}", shared.body);
    id
}

/// Protects a branch as a maintainer; returns the answer.
async fn protect(world: &World, body: Value) -> Value {
    let reply = world.call("mia", "POST", BRANCHES, &body).await;
    assert_eq!(reply.status, 201, "{body}: {}", reply.body);
    reply.body
}

/// The ids of the grants to push.
fn ids(protection: &Value) -> Vec<i64> {
    let rows = protection["push_access_levels"].as_array().expect("a list");
    rows.iter().filter_map(|row| row["id"].as_i64()).collect()
}

#[tokio::test]
async fn the_licensed_build_shows_grants_of_users_groups_and_code_owners() {
    let world = World::with_tier(ServiceTier::Premium).await;
    let ops = invited(&world, "ops", 30).await;
    let protection = protect(
        &world,
        json!({
            "name": "release/*", "push_access_level": 0, "allowed_to_push": [{"user_id": DAN}, {"group_id": ops}],
            "allowed_to_merge": [{"access_level": 30}], "unprotect_access_level": 40, "allow_force_push": true,
            "code_owner_approval_required": true,
        }),
    )
    .await;
    let expected = json!({
        "id": 1,
        "name": "release/*",
        "push_access_levels": [
            {"id": 1, "access_level": 0, "access_level_description": "No one", "user_id": null, "group_id": null},
            {"id": 3, "access_level": 40, "access_level_description": "dan", "user_id": DAN, "group_id": null},
            {"id": 4, "access_level": 40, "access_level_description": "ops", "user_id": null, "group_id": ops},
        ],
        "merge_access_levels": [{
            "id": 5, "access_level": 30, "access_level_description": "Developers + Maintainers", "user_id": null,
            "group_id": null,
        }],
        "unprotect_access_levels": [{
            "id": 2, "access_level": 40, "access_level_description": "Maintainers", "user_id": null, "group_id": null,
        }],
        "allow_force_push": true,
        "code_owner_approval_required": true,
    });
    assert_eq!(protection, expected, "{}", fact("protected-branch-shape"));
    let read = world.get("mia", &format!("{BRANCHES}/release%2F%2A")).await;
    assert_eq!(read.body, expected, "{}", fact("protected-branch-name"));
}

#[tokio::test]
async fn the_free_build_accepts_only_levels() {
    let world = World::with_tier(ServiceTier::Free).await;
    let body = json!({
        "name": "main", "allowed_to_push": [{"user_id": DAN}], "allowed_to_merge": "nonsense",
        "unprotect_access_level": 0, "code_owner_approval_required": true,
    });
    let row =
        |id| json!([{"id": id, "access_level": 40, "access_level_description": "Maintainers"}]);
    let expected = json!({
        "id": 1, "name": "main", "push_access_levels": row(1), "merge_access_levels": row(2), "allow_force_push": false,
    });
    assert_eq!(protect(&world, body).await, expected, "{}", fact("protected-branch-free"));
    let change =
        json!({"allowed_to_push": null, "allowed_to_merge": [{"id": 1, "_destroy": true}]});
    let same = world.call("mia", "PATCH", MAIN, &change).await;
    assert_eq!((same.status, &same.body), (200, &expected), "{}", fact("protected-branch-free"));
    let forced = world.call("mia", "PATCH", MAIN, &json!({"allow_force_push": "true"})).await;
    assert_eq!(forced.body["allow_force_push"], true, "{}", fact("protected-branch-free"));
}

#[tokio::test]
async fn omitted_grants_are_for_maintainers() {
    let world = World::with_tier(ServiceTier::Premium).await;
    let maintainers = json!([{"access_level": 40, "access_level_description": "Maintainers"}]);
    let developers = json!([{"access_level": 30}]);
    let post = |rule, body, answer| (rule, "mia", "POST", BRANCHES, body, 201, answer);
    world
        .check(vec![
            post(
                fact("protected-branch-defaults"),
                json!({"name": "a"}),
                json!({
                    "push_access_levels": maintainers, "merge_access_levels": maintainers,
                    "unprotect_access_levels": maintainers, "allow_force_push": false,
                    "code_owner_approval_required": false,
                }),
            ),
            post(
                fact("protected-branch-lists"),
                json!({"name": "b", "allowed_to_push": []}),
                json!({"push_access_levels": maintainers}),
            ),
            post(
                fact("protected-branch-lists"),
                json!({"name": "c", "allowed_to_push": [{"access_level": 30}]}),
                json!({"push_access_levels": developers, "merge_access_levels": maintainers}),
            ),
            post(
                fact("protected-branch-lists"),
                json!({"name": "d", "push_access_level": 40, "allowed_to_push": [{"access_level": 30}]}),
                json!({"push_access_levels": [{"access_level": 40}, {"access_level": 30}]}),
            ),
            post(
                fact("protected-branch-levels"),
                json!({"name": "e", "push_access_level": 60}),
                json!({"push_access_levels": [{"access_level": 60}]}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn invalid_protections_are_refused() {
    let world = World::with_tier(ServiceTier::Premium).await;
    let (reporters, elsewhere) = (
        invited(&world, "reporters", 20).await,
        world.get(ROOT, "/groups/acme").await.body["id"].clone(),
    );
    let sentence = |text: &str| json!({"message": [text]});
    let error = |text: &str| json!({"error": text});
    let push = |grant: Value| json!({"name": "main", "allowed_to_push": [grant]});
    let post = |rule, body, status, answer| (rule, "mia", "POST", BRANCHES, body, status, answer);
    let no_access = "Push access levels group does not have access to the project";
    world
        .check(vec![
            post(fact("protected-branch-missing"), json!({}), 400, error("name is missing")),
            post(
                fact("protected-branch-missing"),
                json!({"name": ""}),
                422,
                sentence("Name can't be blank"),
            ),
            post(
                fact("protected-branch-levels"),
                json!({"name": "main", "push_access_level": 50}),
                400,
                error("push_access_level does not have a valid value"),
            ),
            post(
                fact("protected-branch-levels"),
                json!({"name": "main", "unprotect_access_level": 0}),
                400,
                error("unprotect_access_level does not have a valid value"),
            ),
            post(
                fact("protected-branch-levels"),
                push(json!({"access_level": 20})),
                400,
                error("allowed_to_push[access_level] does not have a valid value"),
            ),
            post(
                fact("protected-branch-list-type"),
                json!({"name": "main", "allowed_to_push": "a", "allowed_to_merge": [1]}),
                400,
                error("allowed_to_push is invalid, allowed_to_merge is invalid"),
            ),
            post(
                fact("protected-branch-user"),
                push(json!({"user_id": STRANGER})),
                422,
                sentence("Push access levels user is not a member of the project"),
            ),
            post(
                fact("protected-branch-user"),
                push(json!({"user_id": 999})),
                422,
                sentence("Push access levels user can't be blank"),
            ),
            post(
                fact("protected-branch-group"),
                push(json!({"group_id": elsewhere})),
                422,
                sentence(no_access),
            ),
            post(
                fact("protected-branch-group"),
                push(json!({"group_id": reporters})),
                422,
                sentence(no_access),
            ),
            // Before 17.5 keys are ignored.
            post(
                fact("protected-branch-rows"),
                json!({"name": "b", "allowed_to_push": [{"deploy_key_id": 9}], "allowed_to_merge": [{}, {}]}),
                201,
                json!({"push_access_levels": [{"access_level": 40}],
                       "merge_access_levels": [{"access_level": 40}, {"access_level": 40}]}),
            ),
            post(
                fact("protected-branch-rows"),
                json!({"name": "c", "allowed_to_push": [{"user_id": DAN, "access_level": 30}]}),
                201,
                json!({"push_access_levels": [{"user_id": DAN, "access_level": 30}]}),
            ),
            post(fact("protected-branch-user"), push(json!({"user_id": DAN})), 201, NO),
            post(
                fact("protected-branch-taken"),
                json!({"name": "main"}),
                409,
                json!({"message": "Protected branch 'main' already exists"}),
            ),
            post(fact("protected-branch-absent"), json!({"name": "MAIN"}), 201, NO),
            (
                fact("protected-branch-absent"),
                "mia",
                "GET",
                "/projects/acme%2Fshop/protected_branches/Main",
                NO,
                404,
                json!({"message": "404 Not found"}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn protected_branches_are_listed_and_found() {
    let world = World::with_tier(ServiceTier::Premium).await;
    for name in ["main", "release/*", "Release-1"] {
        protect(&world, json!({ "name": name })).await;
    }
    let list = |path: &'static str, names: Value| {
        (fact("protected-branch-search"), "mia", "GET", path, NO, 200, names)
    };
    world
        .check(vec![
            list(BRANCHES, json!([{"name": "main"}, {"name": "release/*"}, {"name": "Release-1"}])),
            list(
                leak(format!("{BRANCHES}?search=ELEASE")),
                json!([{"name": "release/*"}, {"name": "Release-1"}]),
            ),
            list(leak(format!("{BRANCHES}?per_page=1&page=2")), json!([{"name": "release/*"}])),
            list(leak(format!("{BRANCHES}?search=el")), json!([])),
            (fact("protected-branch-read"), "dan", "GET", BRANCHES, NO, 403, NO),
            (fact("protected-branch-delete"), "mia", "DELETE", MAIN, NO, 204, NO),
            (fact("protected-branch-absent"), "mia", "DELETE", MAIN, NO, 404, NO),
        ])
        .await;
    let paged = world.get("mia", &format!("{BRANCHES}?per_page=1")).await;
    assert_eq!(paged.header("x-total"), "2", "{}", fact("page-headers"));
}

#[tokio::test]
async fn an_edit_of_grants_contains_only_differences() {
    let world = World::with_tier(ServiceTier::Premium).await;
    let made = protect(&world, json!({"name": "main", "push_access_level": 30})).await;
    let first = ids(&made)[0];
    let patch = |rule, body, status, answer| (rule, "mia", "PATCH", MAIN, body, status, answer);
    let push = |grants: Value| json!({"allowed_to_push": grants});
    let rows = |rows: Value| json!({"push_access_levels": rows});
    let taken = |what: &str| json!({"message": [format!("Push access levels {what} has already been taken")]});
    let both = rows(json!([{"id": first, "access_level": 30}, {"user_id": DAN}]));
    world
        .check(vec![
            patch(
                fact("protected-branch-update"),
                push(json!([{"user_id": DAN}])),
                200,
                both.clone(),
            ),
            patch(
                fact("protected-branch-update-twice"),
                push(json!([{"user_id": DAN}])),
                422,
                taken("user"),
            ),
            patch(
                fact("protected-branch-update-twice"),
                push(json!([{"access_level": 30}])),
                422,
                taken("access level"),
            ),
            patch(
                fact("protected-branch-update-twice"),
                push(json!([{"id": first, "_destroy": true}, {"access_level": 30}])),
                422,
                taken("access level"),
            ),
            patch(fact("protected-branch-update"), push(json!([])), 200, both.clone()),
            patch(
                fact("protected-branch-update-levels"),
                json!({"push_access_level": 0}),
                200,
                both,
            ),
            patch(
                fact("protected-branch-row-absent"),
                push(json!([{"id": 999, "access_level": 40}])),
                404,
                json!({"message": "404 Not found"}),
            ),
            patch(
                fact("protected-branch-row-absent"),
                json!({"allowed_to_merge": [{"id": first, "access_level": 40}]}),
                404,
                NO,
            ),
            patch(
                fact("protected-branch-update"),
                push(json!([{"id": first, "access_level": 40}])),
                200,
                rows(json!([{"id": first, "access_level": 40}, {"user_id": DAN}])),
            ),
            patch(
                fact("protected-branch-update"),
                push(json!([{"id": first, "_destroy": true}, {"access_level": 0}])),
                200,
                rows(json!([{"user_id": DAN}, {"access_level": 0}])),
            ),
        ])
        .await;
    let left = ids(&world.get("mia", MAIN).await.body);
    let all: Vec<Value> = left.iter().map(|id| json!({"id": id, "_destroy": true})).collect();
    let none = world.call("mia", "PATCH", MAIN, &push(all.into())).await;
    assert_eq!(none.body["push_access_levels"], json!([]), "{}", fact("protected-branch-update"));
}

#[tokio::test]
async fn a_change_without_code_owners_turns_them_off() {
    let world = World::with_tier(ServiceTier::Premium).await;
    protect(&world, json!({"name": "main", "code_owner_approval_required": true})).await;
    let patch = |rule, body, status, answer| (rule, "mia", "PATCH", MAIN, body, status, answer);
    let required = |on: bool| json!({"code_owner_approval_required": on});
    let empty = |name: &str| json!({"error": format!("{name} is empty")});
    world
        .check(vec![
            patch(fact("protected-branch-code-owners"), required(true), 200, required(true)),
            patch(
                fact("protected-branch-code-owners"),
                json!({"allow_force_push": true}),
                200,
                required(false),
            ),
            patch(
                fact("protected-branch-update"),
                required(true),
                200,
                json!({"allow_force_push": true}),
            ),
            patch(
                fact("protected-branch-update-null"),
                json!({"allow_force_push": null}),
                400,
                empty("allow_force_push"),
            ),
            patch(
                fact("protected-branch-update-null"),
                json!({"allowed_to_push": null}),
                400,
                empty("allowed_to_push"),
            ),
        ])
        .await;
}

#[tokio::test]
async fn grants_can_be_sent_as_a_form() {
    let world = World::with_tier(ServiceTier::Premium).await;
    let first = ids(&protect(&world, json!({"name": "main"})).await)[0];
    // A repeated key begins another element.
    let form = format!(
        "allowed_to_push[][id]={first}&allowed_to_push[][access_level]=30\
         &allowed_to_merge[][user_id]={DAN}&allowed_to_merge[][user_id]={RITA}"
    );
    let request = world.request("mia", "PATCH", MAIN);
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
    let answer = read_reply(request.send().await.expect("an answer")).await.body;
    let expected = json!({
        "push_access_levels": [{"id": first, "access_level": 30}],
        "merge_access_levels": [{"access_level": 40}, {"user_id": DAN}, {"user_id": RITA}],
    });
    assert!(contains(&answer, &expected), "{}: {answer}", fact("parameter-forms"));
}

#[tokio::test]
async fn unprotect_grants_decide_who_may_unprotect() {
    let world = World::with_tier(ServiceTier::Premium).await;
    let body = |grant: Value| json!({"name": "main", "allowed_to_unprotect": [grant]});
    let row = |token, method, path, body, status| {
        (fact("protected-branch-unprotect"), token, method, path, body, status, NO)
    };
    world
        .check(vec![
            row("mia", "POST", BRANCHES, body(json!({"user_id": 2})), 403),
            row("olive", "POST", BRANCHES, body(json!({"user_id": 2})), 201),
            row("mia", "PATCH", MAIN, json!({"allow_force_push": true}), 403),
            row("mia", "DELETE", MAIN, NO, 403),
            row("olive", "PATCH", MAIN, json!({"allow_force_push": true}), 200),
            row("olive", "DELETE", MAIN, NO, 204),
            row("mia", "POST", BRANCHES, body(json!({"access_level": 60})), 403),
            row(ROOT, "POST", BRANCHES, body(json!({"access_level": 60})), 201),
            row("olive", "DELETE", MAIN, NO, 403),
            row(ROOT, "DELETE", MAIN, NO, 204),
            row(ROOT, "POST", BRANCHES, body(json!({"user_id": 2})), 403),
            row("olive", "POST", BRANCHES, body(json!({"user_id": 2})), 201),
            row(ROOT, "DELETE", MAIN, NO, 403),
            row("olive", "DELETE", MAIN, NO, 204),
            row("mia", "POST", BRANCHES, body(json!({"access_level": 30})), 201),
            row("dan", "DELETE", MAIN, NO, 403),
            row("mia", "DELETE", MAIN, NO, 204),
        ])
        .await;
}

#[tokio::test]
async fn the_grantee_and_the_level_change_separately() {
    let world = World::with_tier(ServiceTier::Premium).await;
    let first = ids(&protect(&world, json!({"name": "main"})).await)[0];
    let patch = |element: Value, answer: Value| {
        let body = json!({"allowed_to_push": [element]});
        (fact("protected-branch-rows"), "mia", "PATCH", MAIN, body, 200, answer)
    };
    let one = |user: Value, level: i64| json!({"push_access_levels": [{"user_id": user, "access_level": level}]});
    world
        .check(vec![
            patch(json!({"id": first, "user_id": DAN}), one(json!(DAN), 40)),
            patch(json!({"id": first, "access_level": 0}), one(json!(DAN), 0)),
        ])
        .await;
}

#[tokio::test]
async fn later_releases_order_the_checks_in_another_way() {
    let world = super::releases::at("18.9").await;
    let shop = "/projects/acme%2Fshop";
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";
    let keys = "/projects/acme%2Fshop/deploy_keys";
    let body = json!({"title": "robot", "key": key, "can_push": true});
    let robot = world.call("mia", "POST", keys, &body).await.body["id"].clone();
    let push =
        |name: &str, id: Value| json!({"name": name, "allowed_to_push": [{"deploy_key_id": id}]});
    let granted = json!({"inherited": false, "push_access_levels": [
        {"access_level": 40, "access_level_description": "robot", "deploy_key_id": robot, "user_id": null},
    ]});
    let absent = json!({"message": "404 Not found"});
    let blank = json!({"message": ["Push access levels deploy key can't be blank"]});
    let (read, order) = (fact("protected-branch-read"), fact("protected-branch-order"));
    let (keys, archived) = (fact("protected-branch-keys"), fact("protected-branch-archived"));
    world
        .check(vec![
            (keys, "mia", "POST", BRANCHES, push("main", robot), 201, granted),
            (keys, "mia", "POST", BRANCHES, push("x", json!(999)), 422, blank),
            (read, "rita", "GET", BRANCHES, NO, 200, json!([{"name": "main"}])),
            (read, "gus", "GET", BRANCHES, NO, 403, NO),
            (order, "rita", "DELETE", "/projects/acme%2Fshop/protected_branches/no", NO, 404, absent),
            (order, "rita", "DELETE", MAIN, NO, 403, NO),
            (order, "rita", "POST", BRANCHES, json!({}), 400, json!({"error": "name is missing"})),
            (fact("archive"), "olive", "POST", "/projects/1/archive", NO, 201, NO),
            (archived, ROOT, "PATCH", MAIN, json!({"allow_force_push": true}), 403, NO),
            (read, "mia", "GET", MAIN, NO, 200, NO),
            (fact("archive"), "olive", "POST", "/projects/1/unarchive", NO, 201, NO),
            (
                fact("project-edit"),
                "mia",
                "PUT",
                shop,
                json!({"repository_access_level": "disabled", "merge_requests_access_level": "disabled",
                       "builds_access_level": "disabled"}),
                200,
                NO,
            ),
            (read, ROOT, "GET", BRANCHES, NO, 403, NO),
        ])
        .await;
}

#[tokio::test]
async fn a_member_who_leaves_loses_the_grants() {
    let world = World::with_tier(ServiceTier::Premium).await;
    let ops = invited(&world, "ops", 30).await;
    let add = json!({"user_id": STRANGER, "access_level": 30});
    assert_eq!(world.call("mia", "POST", "/projects/acme%2Fshop/members", &add).await.status, 201);
    let grants = json!([{"user_id": STRANGER}, {"user_id": RITA}, {"group_id": ops}]);
    protect(&world, json!({"name": "main", "allowed_to_push": grants, "allowed_to_merge": grants}))
        .await;
    let member = leak(format!("/projects/acme%2Fshop/members/{STRANGER}"));
    let link = leak(format!("/projects/acme%2Fshop/share/{ops}"));
    let left = json!([{"user_id": RITA, "group_id": null}]);
    world
        .check(vec![
            (fact("protected-branch-leaving"), "mia", "DELETE", member, NO, 204, NO),
            (fact("protected-branch-leaving"), "mia", "DELETE", link, NO, 204, NO),
            (
                fact("protected-branch-leaving"),
                "mia",
                "GET",
                MAIN,
                NO,
                200,
                json!({"push_access_levels": left, "merge_access_levels": left}),
            ),
        ])
        .await;
}

/// The grants to push and to merge of the only protection of a project, or null.
async fn levels(world: &World, project: &str) -> Value {
    let answer = world.get(ROOT, &format!("/projects/{project}/protected_branches")).await.body;
    match answer.as_array().map(Vec::as_slice) {
        Some([one]) => json!([
            one["name"],
            one["push_access_levels"][0]["access_level"],
            one["merge_access_levels"][0]["access_level"],
            one["unprotect_access_levels"],
        ]),
        _ => NO,
    }
}

#[tokio::test]
async fn the_first_branch_gets_the_protection_of_its_group() {
    let world = World::with_tier(ServiceTier::Premium).await;
    for (level, expected) in [
        (0, NO),
        (1, json!(["trunk", 30, 40, []])),
        (2, json!(["trunk", 40, 40, []])),
        (3, json!(["trunk", 40, 30, []])),
        (4, json!(["trunk", 40, 40, []])),
    ] {
        let name = format!("level-{level}");
        let group = json!({"name": name, "path": name, "default_branch_protection": level});
        let id = world.call(ROOT, "POST", "/groups", &group).await.body["id"].clone();
        let project = json!({
            "path": "thing", "namespace_id": id, "initialize_with_readme": true, "default_branch": "trunk",
        });
        let made = world.call(ROOT, "POST", "/projects", &project).await.body["id"].clone();
        let place = format!("{}: {level}", fact("protected-branch-default"));
        assert_eq!(levels(&world, &made.to_string()).await, expected, "{place}");
        let branch =
            world.get(ROOT, &format!("/projects/{made}/repository/branches/trunk")).await.body;
        assert_eq!(branch["protected"], level > 0, "{place}");
        assert_eq!(branch["developers_can_push"], level == 1, "{place}");
        assert_eq!(branch["developers_can_merge"], level == 3, "{place}");
    }
}

#[tokio::test]
async fn the_first_branch_is_protected_however_it_is_created() {
    let world = World::with_tier(ServiceTier::Premium).await;
    let main = json!(["main", 40, 40, []]);
    let file = json!({"branch": "start", "content": "x", "commit_message": "m"});
    let path = "/projects/1/repository/files/a.txt";
    assert_eq!(
        levels(&world, "1").await,
        NO,
        "{}: no branch yet",
        fact("protected-branch-default")
    );
    assert_eq!(world.call("mia", "POST", path, &file).await.status, 201);
    assert_eq!(
        levels(&world, "1").await,
        json!(["start", 40, 40, []]),
        "{}",
        fact("protected-branch-default")
    );
    // The setting of the service counts if no group has one.
    let instance = json!({"default_branch_protection": 1});
    world.call(ROOT, "PUT", "/application/settings", &instance).await;
    let acme = world.get("mia", "/groups/acme").await.body;
    assert_eq!(acme["default_branch_protection"], 1, "{}", fact("group-default-protection"));
    let readme = json!({"path": "readme", "initialize_with_readme": true});
    world.call("dan", "POST", "/projects", &readme).await;
    assert_eq!(
        levels(&world, "dan%2Freadme").await,
        json!(["main", 30, 40, []]),
        "{}",
        fact("protected-branch-default")
    );
    world
        .call(ROOT, "PUT", "/application/settings", &json!({"default_branch_protection": 2}))
        .await;
    let template = json!({"path": "template", "template_name": "rails"});
    world.call("dan", "POST", "/projects", &template).await;
    assert_eq!(
        levels(&world, "dan%2Ftemplate").await,
        main,
        "{}",
        fact("protected-branch-default")
    );
}

/// A clock that the test moves, and a world that uses it.
async fn world_with_a_clock(profile: Profile) -> (World, Arc<AtomicI64>) {
    let second = Arc::new(AtomicI64::new(1_900_000_000));
    let seen = Arc::clone(&second);
    let clock = Clock::new(move || {
        jiff::Timestamp::from_second(seen.load(Ordering::Relaxed)).expect("a time")
    });
    (
        World::seeded(usual_seed(), SandboxConfig { profile, clock, ..SandboxConfig::default() })
            .await,
        second,
    )
}

#[tokio::test]
async fn the_service_protects_after_the_request_unless_somebody_was_faster() {
    let profile = Profile { protection_delay: Duration::from_secs(5), ..Profile::default() };
    let (world, second) = world_with_a_clock(profile).await;
    for (path, first, expected) in [
        ("late", None, json!(["main", 40, 40, []])),
        ("exact", Some("main"), json!(["main", 30, 40, [{"access_level": 40}]])),
        ("wild", Some("m*"), json!(["m*", 30, 40, [{"access_level": 40}]])),
    ] {
        let project = json!({"path": path, "initialize_with_readme": true});
        assert_eq!(world.call("dan", "POST", "/projects", &project).await.status, 201);
        let place = format!("{}: {path}", fact("protected-branch-default-late"));
        let project = format!("dan%2F{path}");
        assert_eq!(levels(&world, &project).await, NO, "{place}");
        if let Some(name) = first {
            let body = json!({"name": name, "push_access_level": 30});
            let list = format!("/projects/{project}/protected_branches");
            assert_eq!(world.call("dan", "POST", &list, &body).await.status, 201, "{place}");
        }
        second.fetch_add(5, Ordering::Relaxed);
        let found = levels(&world, &project).await;
        assert!(contains(&found, &expected), "{place}: {found}");
    }
}

#[tokio::test]
async fn an_import_is_protected_when_it_is_done() {
    let profile = Profile { import_delay: Duration::from_secs(60), ..Profile::default() };
    let (world, second) = world_with_a_clock(profile).await;
    for (name, repository) in [("one", 1), ("two", 2)] {
        let import = json!({
            "personal_access_token": "x", "repo_id": repository, "target_namespace": "dan", "new_name": name,
        });
        assert_eq!(world.call("dan", "POST", "/import/extgit", &import).await.status, 201);
    }
    let fork = world
        .call("dan", "POST", "/projects/dan%2Fone/fork", &json!({"path": "fork", "name": "fork"}))
        .await;
    assert_eq!(fork.status, 201, "{}", fork.body);
    let two = world.get("dan", "/projects/dan%2Ftwo").await.body["id"].clone();
    let canceled =
        world.call("dan", "POST", "/import/extgit/cancel", &json!({"project_id": two})).await;
    assert_eq!(canceled.status, 200, "{}", canceled.body);
    assert_eq!(levels(&world, "dan%2Fone").await, NO, "{}", fact("protected-branch-default-late"));
    second.fetch_add(61, Ordering::Relaxed);
    for (project, expected) in [
        ("dan%2Fone", json!(["main", 40, 40, []])),
        ("dan%2Ffork", json!(["main", 40, 40, []])),
        ("dan%2Ftwo", NO),
    ] {
        let place = format!("{}: {project}", fact("protected-branch-default-late"));
        assert_eq!(levels(&world, project).await, expected, "{place}");
    }
}

#[tokio::test]
async fn a_seed_has_protected_branches() {
    let mut seed = usual_seed();
    seed["projects"][0] = json!({
        "path": "acme/shop",
        "settings": {"initialize_with_readme": true},
        "members": [{"user": "stranger", "access_level": "developer"}],
        "protected_branches": [
            {"name": "main", "push_access_level": 0},
            {"name": "v*", "allowed_to_push": [{"user_id": STRANGER}]},
        ],
    });
    let world = World::from_seed(seed).await;
    world
        .check(vec![(
            fact("protected-branch-name"),
            "mia",
            "GET",
            BRANCHES,
            NO,
            200,
            json!([
                {"name": "main", "push_access_levels": [{"access_level": 0}]},
                {"name": "v*", "push_access_levels": [{"user_id": STRANGER}]},
            ]),
        )])
        .await;
}

#[tokio::test]
async fn owners_of_a_top_level_group_protect_branches_in_all_its_projects() {
    let world = super::releases::at("18.9").await;
    let (of_group, inherited) =
        (fact("protected-branch-of-group"), fact("protected-branch-inherited"));
    let all = "/groups/acme/protected_branches";
    let one = "/groups/acme/protected_branches/release%2F*";
    let in_shop = "/projects/acme%2Fshop/protected_branches/release%2F*";
    let new = json!({"name": "release/*", "push_access_level": 0});
    let shown = json!({"name": "release/*", "push_access_levels": [{"access_level": 0}], "merge_access_levels": [{"access_level": 40}]});
    let blank = json!({"message": ["Push access levels user must be blank"]});
    let user = json!({"name": "x", "allowed_to_push": [{"user_id": RITA}]});
    let levels = json!({"allowed_to_merge": [{"access_level": 30}], "allow_force_push": true});
    let edited = json!({"allow_force_push": true, "merge_access_levels": [{"access_level": 40}, {"access_level": 30}]});
    let gone = json!({"message": "404 ProtectedBranch Not Found"});
    let acme_id = world.call("olive", "GET", "/groups/acme", &NO).await.body["id"].clone();
    let sub = json!({"name": "team", "path": "team", "parent_id": acme_id});
    world
        .check(vec![
            (of_group, "mia", "GET", all, NO, 403, NO),
            (of_group, "mia", "POST", all, new.clone(), 403, NO),
            (of_group, "olive", "POST", all, user, 422, blank),
            (of_group, "olive", "POST", all, new.clone(), 201, shown.clone()),
            (of_group, "olive", "POST", all, new.clone(), 409, NO),
            (of_group, "olive", "GET", one, NO, 200, shown.clone()),
            (
                inherited,
                "mia",
                "GET",
                BRANCHES,
                NO,
                200,
                json!([{"name": "release/*", "inherited": true}]),
            ),
            (inherited, "mia", "GET", in_shop, NO, 404, NO),
            (inherited, "mia", "DELETE", in_shop, NO, 404, NO),
            (inherited, "mia", "POST", BRANCHES, new.clone(), 201, json!({"inherited": false})),
            (of_group, "olive", "PATCH", one, json!({}), 200, shown),
            (of_group, "olive", "PATCH", one, levels, 200, edited.clone()),
            (of_group, "olive", "DELETE", one, NO, 200, edited),
            (of_group, "olive", "DELETE", one, NO, 404, gone),
            (fact("group-create-right"), "olive", "POST", "/groups", sub, 201, NO),
            (of_group, "olive", "POST", "/groups/acme%2Fteam/protected_branches", new, 422, NO),
        ])
        .await;
    let before = super::releases::at("17.5").await;
    before.check(vec![(of_group, "olive", "GET", all, NO, 404, NO)]).await;
}
