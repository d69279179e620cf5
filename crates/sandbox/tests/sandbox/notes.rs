//! Merge requests, as far as notes need them, and their notes.

use serde_json::{Value, json};

use super::client::{ROOT, Reply, World, leak};
use super::facts::fact;

const NO: Value = Value::Null;
const SHOP_MR: &str = "/projects/acme%2Fshop/merge_requests/1";
const OPEN_MR: &str = "/projects/acme%2Fopen/merge_requests/1";

async fn world() -> World {
    let user = |name: &str| json!({"username": name, "token": name});
    let member = |user: &str, level: &str| json!({"user": user, "access_level": level});
    World::from_seed(json!({
        "users": [user("olga"), user("mia"), user("rita"), user("rolf"), user("gus"), user("eve")],
        "groups": [{"path": "acme", "visibility": "public", "members": [
            member("olga", "owner"), member("mia", "maintainer"), member("rita", "reporter"),
            member("rolf", "reporter"), member("gus", "guest"),
        ]}],
        "projects": [
            {"path": "acme/shop", "merge_requests": [
                {"title": "Change", "author": "rita", "notes": [
                    {"body": "approved this merge request", "system": true, "author": "mia"},
                ]},
                {"title": "Locked", "state": "merged", "discussion_locked": true},
            ]},
            {"path": "acme/open", "settings": {"visibility": "public"}, "merge_requests": [
                {"title": "Change"},
                {"title": "Locked", "discussion_locked": true},
            ]},
            {"path": "acme/members", "settings": {"visibility": "public", "merge_requests_access_level": "private"},
             "merge_requests": [{"title": "Change"}]},
            {"path": "acme/none", "settings": {"merge_requests_access_level": "disabled"},
             "merge_requests": [{"title": "Change"}]},
            {"path": "acme/old", "archived": true, "merge_requests": [{"title": "Change", "notes": [{"body": "a"}]}]},
        ],
    }))
    .await
}

fn notes_path(of: &str) -> &'static str {
    leak(format!("{of}/notes"))
}

async fn write_note(world: &World, token: &str, of: &str, body: &Value) -> Reply {
    world.call(token, "POST", notes_path(of), body).await
}

/// The ids of a list.
fn ids(list: &Value) -> Vec<i64> {
    list.as_array().expect("a list").iter().filter_map(|note| note["id"].as_i64()).collect()
}

#[tokio::test]
async fn a_merge_request_is_shown_only_to_allowed_callers() {
    let world = world().await;
    let none = json!({"message": "404 Merge request Not Found"});
    let (rule, level) = (fact("merge-request"), fact("merge-request-level"));
    let of = |path: &str| leak(format!("/projects/acme%2F{path}/merge_requests/1"));
    world
        .check(vec![
            (rule, "rita", "GET", SHOP_MR, NO, 200, json!({"iid": 1, "state": "opened", "discussion_locked": null, "author": {"username": "rita"}})),
            (rule, "rita", "GET", "/projects/acme%2Fshop/merge_requests/2", NO, 200, json!({"state": "merged", "discussion_locked": true})),
            (rule, "rita", "GET", "/projects/acme%2Fshop/merge_requests/3", NO, 404, none.clone()),
            (rule, "gus", "GET", SHOP_MR, NO, 404, none.clone()),
            (rule, "gus", "GET", notes_path(SHOP_MR), NO, 404, none.clone()),
            (rule, "gus", "POST", notes_path(SHOP_MR), json!({"body": "x"}), 404, none.clone()),
            (fact("unseen"), "eve", "GET", SHOP_MR, NO, 404, json!({"message": "404 Project Not Found"})),
            (rule, "eve", "GET", OPEN_MR, NO, 200, NO),
            (rule, "", "GET", OPEN_MR, NO, 200, NO),
            (level, "gus", "GET", of("members"), NO, 200, NO),
            (level, "eve", "GET", of("members"), NO, 404, none.clone()),
            (level, "", "GET", of("members"), NO, 404, none.clone()),
            (level, ROOT, "GET", of("none"), NO, 404, none),
        ])
        .await;
}

#[tokio::test]
async fn notes_are_changed_and_removed_only_by_allowed_callers() {
    let world = world().await;
    let made = write_note(&world, "rita", SHOP_MR, &json!({"body": "a comment"})).await;
    let id = made.body["id"].as_i64().expect("an id");
    let shape = json!({
        "id": id, "type": null, "body": "a comment", "attachment": null, "author": {"username": "rita"},
        "system": false, "noteable_id": 1, "noteable_iid": 1, "noteable_type": "MergeRequest",
        "resolvable": false, "confidential": false, "internal": false, "commands_changes": {},
    });
    let one = leak(format!("{}/{id}", notes_path(SHOP_MR)));
    let system = leak(format!("{}/1", notes_path(SHOP_MR)));
    let (own, written) = (fact("note-own"), fact("note-write"));
    world
        .check(vec![
            (fact("note-shape"), "rolf", "GET", one, NO, 200, shape),
            (
                fact("note-shape"),
                "rolf",
                "GET",
                system,
                NO,
                200,
                json!({"system": true, "author": {"username": "mia"}}),
            ),
            (written, "", "POST", notes_path(OPEN_MR), json!({"body": "x"}), 401, NO),
            (
                written,
                "eve",
                "POST",
                notes_path(OPEN_MR),
                json!({"body": "x"}),
                201,
                json!({"author": {"username": "eve"}}),
            ),
            (own, "rolf", "PUT", one, json!({"body": "x"}), 403, NO),
            (own, "rolf", "DELETE", one, NO, 403, NO),
            (own, "rita", "PUT", one, json!({"body": "changed"}), 200, json!({"body": "changed"})),
            (own, "rita", "PUT", one, json!({}), 200, json!({"body": "changed"})),
            (
                own,
                "mia",
                "PUT",
                one,
                json!({"body": "by mia"}),
                200,
                json!({"body": "by mia", "author": {"username": "rita"}}),
            ),
            (own, "mia", "PUT", system, json!({"body": "x"}), 403, NO),
            (own, ROOT, "DELETE", system, NO, 403, NO),
            (
                fact("note-absent"),
                "rita",
                "PUT",
                leak(format!("{}/999", notes_path(SHOP_MR))),
                json!({"body": "x"}),
                404,
                json!({"message": "404 Not found"}),
            ),
            (written, "rita", "DELETE", one, NO, 204, NO),
            (fact("note-absent"), "rita", "GET", one, NO, 404, json!({"message": "404 Not found"})),
        ])
        .await;
}

#[tokio::test]
async fn a_locked_discussion_and_an_archived_project_take_no_notes() {
    let world = world().await;
    let rule = fact("note-locked");
    let body = json!({"body": "x"});
    let locked = notes_path("/projects/acme%2Fopen/merge_requests/2");
    let old = notes_path("/projects/acme%2Fold/merge_requests/1");
    world
        .check(vec![
            (rule, "eve", "POST", locked, body.clone(), 403, NO),
            (rule, "eve", "GET", locked, NO, 200, json!([])),
            (rule, "gus", "POST", locked, body.clone(), 201, NO),
            (
                rule,
                "rita",
                "POST",
                notes_path("/projects/acme%2Fshop/merge_requests/2"),
                body.clone(),
                201,
                NO,
            ),
            (rule, ROOT, "POST", old, body.clone(), 403, NO),
            (rule, ROOT, "PUT", leak(format!("{old}/2")), body, 403, NO),
            (rule, ROOT, "DELETE", leak(format!("{old}/2")), NO, 403, NO),
            (rule, ROOT, "GET", old, NO, 200, json!([{"body": "a"}])),
        ])
        .await;
}

#[tokio::test]
async fn a_note_is_neither_empty_nor_too_long() {
    let world = world().await;
    let rule = fact("note-body");
    let note = |field: &str, text: &str| json!({"message": format!("400 Bad request - Note {{:{field}=>[\"{text}\"]}}")});
    let (blank, long) = (
        note("note", "can't be blank"),
        note("note", "is too long (maximum is 1000000 characters)"),
    );
    let longest = json!({"body": "x".repeat(1_000_000)});
    let longer = json!({"body": "x".repeat(1_000_001)});
    let made = write_note(&world, "rita", SHOP_MR, &longest).await;
    assert_eq!(made.status, 201, "{rule}");
    let one = leak(format!("{}/{}", notes_path(SHOP_MR), made.body["id"]));
    world
        .check(vec![
            (
                fact("parameter-missing"),
                "rita",
                "POST",
                notes_path(SHOP_MR),
                json!({}),
                400,
                json!({"error": "body is missing"}),
            ),
            (rule, "rita", "POST", notes_path(SHOP_MR), json!({"body": " \n"}), 400, blank),
            (rule, "rita", "POST", notes_path(SHOP_MR), longer.clone(), 400, long.clone()),
            (
                rule,
                "rita",
                "PUT",
                one,
                json!({"body": " "}),
                400,
                json!({"error": "body is empty"}),
            ),
            (rule, "rita", "PUT", one, longer, 400, long),
        ])
        .await;
}

#[tokio::test]
async fn quick_actions_are_not_saved_in_notes() {
    let world = world().await;
    let rule = fact("note-commands");
    let got = write_note(&world, "rita", SHOP_MR, &json!({"body": "/close\n\n/title x\n"})).await;
    assert_eq!((got.status, got.body["id"].is_null()), (202, true), "{rule}: {}", got.body);
    assert!(got.body["summary"].is_array(), "{rule}: {}", got.body);
    assert_eq!(ids(&world.get("rita", notes_path(SHOP_MR)).await.body).len(), 1, "{rule}");
    for (body, kept) in [
        ("a\n/close\nb", "a\nb"),
        ("a\n/etc is no command\n /close", "a\n/etc is no command\n /close"),
    ] {
        let got = write_note(&world, "rita", SHOP_MR, &json!({"body": body})).await;
        assert_eq!((got.status, &got.body["body"]), (201, &json!(kept)), "{rule}");
    }
}

#[tokio::test]
async fn notes_are_listed_in_the_order_that_is_asked_for() {
    let world = world().await;
    for (body, time) in [("first", "2020-01-01"), ("third", "2020-01-03"), ("second", "2020-01-02")]
    {
        let body = json!({"body": body, "created_at": format!("{time}T00:00:00Z")});
        assert_eq!(
            write_note(&world, "olga", SHOP_MR, &body).await.status,
            201,
            "{}",
            fact("note-time")
        );
    }
    let got = write_note(
        &world,
        "rita",
        SHOP_MR,
        &json!({"body": "x", "created_at": "2019-01-01T00:00:00Z"}),
    )
    .await;
    assert!(
        got.body["created_at"].as_str().is_some_and(|time| time > "2020"),
        "{}",
        fact("note-time")
    );
    let second = leak(format!("{}/5", notes_path(SHOP_MR)));
    world.call("olga", "PUT", second, &json!({"body": "changed"})).await;
    let rule = fact("note-list");
    for (query, expected) in [
        ("?sort=asc", vec![3, 5, 4, 1, 6]),
        ("", vec![6, 1, 4, 5, 3]),
        ("?order_by=updated_at&sort=asc&activity_filter=only_comments", vec![3, 4, 6, 5]),
        ("?activity_filter=only_activity", vec![1]),
        ("?activity_filter=all_notes&sort=asc&per_page=2&page=2", vec![4, 1]),
    ] {
        let answer = world.get("rita", &format!("{}{query}", notes_path(SHOP_MR))).await.body;
        assert_eq!(ids(&answer), expected, "{rule}: {query}");
    }
    for query in ["sort=up", "order_by=body", "activity_filter=none"] {
        let reply = world.get("rita", &format!("{}?{query}", notes_path(SHOP_MR))).await;
        assert_eq!(reply.status, 400, "{rule}: {query}");
    }
}

#[tokio::test]
async fn hidden_notes_make_pages_short() {
    let world = world().await;
    for number in 0..6 {
        let internal = json!({"body": "x", "internal": number < 4});
        assert_eq!(write_note(&world, "rita", OPEN_MR, &internal).await.status, 201);
    }
    let (hidden, internal) = (fact("note-hidden"), fact("note-internal"));
    for (token, page, expected) in [("rita", 1, 2), ("eve", 1, 0), ("gus", 2, 0), ("eve", 3, 2)] {
        let path = format!("{}?sort=asc&per_page=2&page={page}", notes_path(OPEN_MR));
        let reply = world.get(token, &path).await;
        assert_eq!(ids(&reply.body).len(), expected, "{hidden}: {token} {page}");
        assert_eq!(reply.header("x-total"), "6", "{hidden}");
        let next = if page == 3 { String::new() } else { (page + 1).to_string() };
        assert_eq!(reply.header("x-next-page"), next, "{hidden}");
    }
    let one = leak(format!("{}/3", notes_path(OPEN_MR)));
    let unread = json!({"message": "404 Note Not Found"});
    world
        .check(vec![
            (
                internal,
                "rita",
                "GET",
                one,
                NO,
                200,
                json!({"confidential": true, "internal": true}),
            ),
            (internal, "eve", "GET", one, NO, 404, unread.clone()),
            (fact("note-absent"), "gus", "PUT", one, json!({"body": "x"}), 404, unread),
            (
                internal,
                "eve",
                "POST",
                notes_path(OPEN_MR),
                json!({"body": "x", "internal": true}),
                403,
                NO,
            ),
            (
                internal,
                "rita",
                "POST",
                notes_path(OPEN_MR),
                json!({"body": "x", "confidential": true}),
                201,
                json!({"internal": true}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn the_number_of_notes_of_a_merge_request_is_limited() {
    let many: Vec<Value> = (0..4_999).map(|_| json!({"body": "x"})).collect();
    let world = World::from_seed(json!({
        "projects": [{"path": "acme/shop", "merge_requests": [{"title": "Change", "notes": many}]}],
    }))
    .await;
    let rule = fact("note-limit");
    assert_eq!(
        write_note(&world, ROOT, SHOP_MR, &json!({"body": "x"})).await.status,
        201,
        "{rule}"
    );
    let got = write_note(&world, ROOT, SHOP_MR, &json!({"body": "x"})).await;
    let text = "400 Bad request - Note {:base=>[\"Maximum number of comments exceeded\"]}";
    assert_eq!((got.status, got.body), (400, json!({"message": text})), "{rule}");
}
