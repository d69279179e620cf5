//! Invitations of groups to projects and to other groups.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use undrift_sandbox::{Clock, SandboxConfig};

use super::client::{ROOT, World, leak};
use super::facts::fact;

const NO: Value = Value::Null;
const PROJECT: &str = "/projects/acme%2Fdeep%2Fthing";
const SHARE: &str = "/projects/acme%2Fdeep%2Fthing/share";

fn seed() -> Value {
    let owner = |user: &str| json!({"user": user, "access_level": "owner"});
    json!({
        "users": [
            {"username": "ann", "token": "ann"}, {"username": "max", "token": "max"}, {"username": "eve", "token": "eve"},
            {"username": "gil", "token": "gil"},
        ],
        "groups": [
            {"path": "acme", "members": [owner("ann"), {"user": "max", "access_level": "maintainer"}]},
            {"path": "acme/deep"},
            {"path": "acme/side"},
            {"path": "ops", "visibility": "public", "members": [owner("eve"), {"user": "gil", "access_level": "guest"}]},
            {"path": "hidden", "members": [owner("ann")]},
        ],
        "projects": [{"path": "acme/deep/thing"}],
    })
}

async fn world() -> World {
    World::seeded(seed(), SandboxConfig::default()).await
}

fn share_body(group: i64, level: i64) -> Value {
    json!({"group_id": group, "group_access": level})
}

#[tokio::test]
async fn impossible_shares_are_refused() {
    let world = world().await;
    let (acme, deep, ops) = (
        world.group_id("acme").await,
        world.group_id("acme/deep").await,
        world.group_id("ops").await,
    );
    let hidden_id = world.group_id("hidden").await;
    let unknown = json!({"message": "Not Found"});
    let own = json!({"message": "Project cannot be shared with the group it is in or one of its ancestors."});
    let link = leak(format!("{SHARE}/{ops}"));
    let post =
        |rule, token, body, status, answer| (rule, token, "POST", SHARE, body, status, answer);
    world
        .check(vec![
            post(
                fact("parameter-missing"),
                "max",
                json!({}),
                400,
                json!({"error": "group_id is missing, group_access is missing, group_access does not have a valid value"}),
            ),
            post(
                fact("share-level"),
                "max",
                share_body(ops, 5),
                400,
                json!({"error": "group_access does not have a valid value"}),
            ),
            post(fact("share-unknown"), "max", share_body(999, 30), 404, unknown.clone()),
            post(fact("share-unknown"), "max", share_body(hidden_id, 30), 404, unknown),
            post(fact("share-own"), "max", share_body(deep, 30), 409, own.clone()),
            post(fact("share-own"), "max", share_body(acme, 30), 409, own),
            post(fact("share-owner"), "max", share_body(ops, 50), 403, NO),
            post(
                fact("share-owner"),
                "ann",
                share_body(ops, 50),
                201,
                json!({"group_access": 50, "expires_at": null}),
            ),
            (fact("share-owner"), "max", "DELETE", link, NO, 403, NO),
            (fact("share-owner"), "ann", "DELETE", link, NO, 204, NO),
            post(fact("share"), "max", share_body(ops, 30), 201, NO),
            post(
                fact("share"),
                "max",
                share_body(ops, 20),
                409,
                json!({"message": "Project already shared with this group"}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn invited_groups_are_listed_only_for_callers_who_see_them() {
    let world = world().await;
    let (ops, hidden) = (world.group_id("ops").await, world.group_id("hidden").await);
    let until = json!({"group_id": hidden, "group_access": 20, "expires_at": "2999-01-31"});
    for body in [share_body(ops, 30), until] {
        assert_eq!(world.call("ann", "POST", SHARE, &body).await.status, 201);
        assert_eq!(world.call("ann", "POST", "/groups/acme/share", &body).await.status, 201);
    }
    let open = json!({
        "group_id": ops, "group_name": "ops", "group_full_path": "ops", "group_access_level": 30, "expires_at": null,
    });
    let closed = json!({
        "group_id": hidden, "group_name": "hidden", "group_full_path": "hidden", "group_access_level": 20,
        "expires_at": "2999-01-31",
    });
    for (token, seen) in [("ann", json!([open, closed])), ("max", json!([open]))] {
        let lists = ["/projects?search=thing", "/groups/acme%2Fdeep/projects"];
        for path in [PROJECT, "/groups/acme"].into_iter().chain(lists) {
            let body = world.get(token, path).await.body;
            let body = body.get(0).unwrap_or(&body);
            let place = format!("{}: {token} {path}", fact("shared-with-groups-seen"));
            assert_eq!(body["shared_with_groups"], seen, "{place}");
        }
    }
    let simple = world.get("ann", "/projects?search=thing&simple=true").await.body;
    assert_eq!(simple[0].get("shared_with_groups"), None, "{}", fact("simple-form"));
}

#[tokio::test]
async fn a_share_lock_prevents_new_shares_of_projects() {
    let world = world().await;
    let ops_id = world.group_id("ops").await;
    let lock = |on: bool| json!({"share_with_group_lock": on});
    let deep = "/groups/acme%2Fdeep";
    let low = json!({"name": "low", "path": "low", "parent_id": world.group_id("acme/deep").await});
    let text = "cannot be disabled when the parent group \"Share with group lock\" is enabled, except by the owner \
                of the parent group";
    let eve_id = id_of(&world, "eve").await;
    world
        .check(vec![
            (fact("share-lock"), "ann", "PUT", "/groups/acme", lock(true), 200, lock(true)),
            (fact("share-lock-below"), "ann", "GET", deep, NO, 200, lock(true)),
            (
                fact("share-lock"),
                "ann",
                "POST",
                SHARE,
                share_body(ops_id, 30),
                400,
                json!({"message": "The project sharing with group is disabled"}),
            ),
            (fact("share-lock-below"), "ann", "POST", "/groups", low, 201, lock(true)),
            (
                fact("member-add"),
                "ann",
                "POST",
                "/groups/acme%2Fdeep/members",
                json!({"user_id": eve_id, "access_level": 50}),
                201,
                NO,
            ),
            (
                fact("share-lock-below"),
                "eve",
                "PUT",
                deep,
                lock(false),
                400,
                json!({"message": {"share_with_group_lock": [text]}}),
            ),
            (fact("share-lock-below"), "ann", "PUT", deep, lock(false), 200, lock(false)),
            (fact("share-lock"), "ann", "POST", SHARE, share_body(ops_id, 30), 201, NO),
        ])
        .await;
}

async fn id_of(world: &World, user: &str) -> i64 {
    let reply = world.get(ROOT, &format!("/users?username={user}")).await;
    reply.body[0]["id"].as_i64().expect("a user")
}

#[tokio::test]
async fn a_group_may_forbid_shares_outside_its_hierarchy() {
    let world = world().await;
    let (ops, side) = (world.group_id("ops").await, world.group_id("acme/side").await);
    let closed = json!({"prevent_sharing_groups_outside_hierarchy": true});
    let unknown = json!({"message": "Not Found"});
    let group = "/groups/acme%2Fdeep/share";
    world
        .check(vec![
            (fact("share-hierarchy"), "ann", "PUT", "/groups/acme", closed.clone(), 200, closed),
            (
                fact("share-hierarchy"),
                "ann",
                "POST",
                SHARE,
                share_body(ops, 30),
                404,
                unknown.clone(),
            ),
            (fact("share-hierarchy"), "ann", "POST", group, share_body(ops, 30), 404, unknown),
            (fact("share-hierarchy"), "ann", "POST", SHARE, share_body(side, 30), 201, NO),
            (fact("share-hierarchy"), "ann", "POST", group, share_body(side, 30), 201, NO),
        ])
        .await;
    let deep = world.get("ann", "/groups/acme%2Fdeep").await.body;
    let setting = deep.get("prevent_sharing_groups_outside_hierarchy");
    assert_eq!(setting, None, "{}: only the top has it", fact("share-hierarchy"));
}

/// Each member of an invited group has their own level, limited by that of the invitation.
#[tokio::test]
async fn a_share_limits_the_level_of_its_members() {
    let new = json!({"name": "x", "color": "#ff0000"});
    for (cap, may_label) in [(10, false), (20, true), (40, true)] {
        for (share, labels) in [
            (SHARE, format!("{PROJECT}/labels")),
            ("/groups/acme/share", "/groups/acme/labels".to_owned()),
            // The same holds below the group.
            ("/groups/acme/share", format!("{PROJECT}/labels")),
        ] {
            let world = world().await;
            let ops_id = world.group_id("ops").await;
            assert_eq!(
                world.call("ann", "POST", share, &share_body(ops_id, cap)).await.status,
                201
            );
            for (user, may) in [("eve", may_label), ("gil", false)] {
                let status = world.call(user, "POST", &labels, &new).await.status;
                assert_eq!(status, if may { 201 } else { 403 }, "{user} {cap} {share} {labels}");
            }
        }
    }
}

#[tokio::test]
async fn only_owners_invite_to_a_group() {
    let world = world().await;
    let ops_id = world.group_id("ops").await;
    let share = "/groups/acme/share";
    let link = leak(format!("{share}/{ops_id}"));
    let invited = json!({"shared_with_groups": [{"group_id": ops_id, "group_access_level": 30}]});
    let twice =
        json!({"message": "Shared group The group has already been shared with this group"});
    let unknown = json!({"message": "404 Group Not Found"});
    world
        .check(vec![
            (
                fact("share-group-right"),
                "max",
                "POST",
                share,
                share_body(ops_id, 30),
                404,
                json!({"message": "Not Found"}),
            ),
            (fact("share"), "ann", "POST", share, share_body(999, 30), 404, unknown.clone()),
            (fact("unseen"), "eve", "POST", share, share_body(ops_id, 30), 404, unknown),
            (fact("share"), "ann", "POST", share, share_body(ops_id, 30), 201, invited.clone()),
            (fact("share"), "ann", "POST", share, share_body(ops_id, 40), 409, twice),
            (fact("unshare-group-right"), "max", "DELETE", link, NO, 204, NO),
            (fact("unshare-group-right"), "ann", "GET", "/groups/acme", NO, 200, invited),
            (fact("unshare"), "ann", "DELETE", link, NO, 204, NO),
            (
                fact("unshare-absent"),
                "max",
                "DELETE",
                link,
                NO,
                404,
                json!({"message": "404 Group Link Not Found"}),
            ),
            (
                fact("parameter-type"),
                "ann",
                "DELETE",
                "/groups/acme/share/x",
                NO,
                400,
                json!({"error": "group_id is invalid"}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn an_expired_share_is_removed() {
    const DAY: i64 = 86_400;
    let clock_seconds = Arc::new(AtomicI64::new(1_900_000_000));
    let seen = Arc::clone(&clock_seconds);
    let clock = Clock::new(move || {
        jiff::Timestamp::from_second(seen.load(Ordering::Relaxed)).expect("a time")
    });
    let world = World::seeded(seed(), SandboxConfig { clock, ..SandboxConfig::default() }).await;
    let ops_id = world.group_id("ops").await;
    let until = json!({"group_id": ops_id, "group_access": 30, "expires_at": "2030-03-19"});
    let listed = |groups: Value| json!({"shared_with_groups": groups});
    let link = leak(format!("{SHARE}/{ops_id}"));
    world
        .check(vec![
            (fact("share-expired"), "ann", "POST", SHARE, until, 201, NO),
            (
                fact("share-expired"),
                "ann",
                "GET",
                PROJECT,
                NO,
                200,
                listed(json!([{"group_id": ops_id}])),
            ),
        ])
        .await;
    clock_seconds.fetch_add(3 * DAY, Ordering::Relaxed);
    world
        .check(vec![
            (fact("share-expired"), "ann", "GET", PROJECT, NO, 200, listed(json!([]))),
            (fact("share-expired"), "ann", "DELETE", link, NO, 404, NO),
            (fact("share-expired"), "ann", "POST", SHARE, share_body(ops_id, 20), 201, NO),
        ])
        .await;
}
