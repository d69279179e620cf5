//! Protected tags.

use serde_json::{Value, json};
use undrift_sandbox::ServiceTier;

use super::client::{ROOT, World};
use super::facts::fact;

const NO: Value = Value::Null;
const TAGS: &str = "/projects/acme%2Fshop/protected_tags";
const DAN: i64 = 4;
const STRANGER: i64 = 7;

#[tokio::test]
async fn a_protected_tag_shows_who_may_create_it() {
    let world = World::with_tier(ServiceTier::Premium).await;
    let group = world
        .call(ROOT, "POST", "/groups", &json!({"name": "ops", "path": "ops"}))
        .await
        .body["id"]
        .clone();
    let share = json!({"group_id": group, "group_access": 30});
    world.call(ROOT, "POST", "/projects/acme%2Fshop/share", &share).await;
    let new = json!({"name": "release/*", "create_access_level": 0,
                     "allowed_to_create": [{"user_id": DAN}, {"group_id": group}, {"access_level": 30}]});
    let reply = world.call("mia", "POST", TAGS, &new).await;
    let expected = json!({
        "name": "release/*",
        "create_access_levels": [
            {"id": 1, "access_level": 0, "access_level_description": "No one", "user_id": null, "group_id": null},
            {"id": 2, "access_level": 40, "access_level_description": "dan", "user_id": DAN, "group_id": null},
            {"id": 3, "access_level": 40, "access_level_description": "ops", "user_id": null, "group_id": group},
            {"id": 4, "access_level": 30, "access_level_description": "Developers + Maintainers", "user_id": null, "group_id": null},
        ],
    });
    assert_eq!((reply.status, &reply.body), (201, &expected), "{}", fact("protected-tag-list"));
    let one = world.get("mia", &format!("{TAGS}/release%2F%2A")).await.body;
    assert_eq!(one, expected, "{}", fact("protected-tag-shape"));
    let free = World::with_tier(ServiceTier::Free).await;
    let made = free
        .call("mia", "POST", TAGS, &json!({"name": "v*", "allowed_to_create": [{"user_id": DAN}]}))
        .await
        .body;
    let row = json!([{"id": 1, "access_level": 40, "access_level_description": "Maintainers"}]);
    assert_eq!(
        made,
        json!({"name": "v*", "create_access_levels": row}),
        "{}",
        fact("protected-tag-list")
    );
}

#[tokio::test]
async fn protected_tags_are_created_and_removed_but_not_changed() {
    let world = World::with_tier(ServiceTier::Premium).await;
    let post = |rule, body, status, answer| (rule, "mia", "POST", TAGS, body, status, answer);
    let sentences = |text: &str| json!({"message": [text]});
    let level = |level: i64| json!({"create_access_levels": [{"access_level": level}]});
    let user = |id: i64| json!({"name": "x", "allowed_to_create": [{"user_id": id}]});
    let absent = json!({"message": "404 Not found"});
    const ONE: &str = "/projects/acme%2Fshop/protected_tags/v%2A";
    world
        .check(vec![
            (fact("protected-tag-role"), "dan", "GET", TAGS, NO, 403, NO),
            (
                fact("protected-tag-role"),
                "",
                "GET",
                "/projects/acme%2Fsite/protected_tags",
                NO,
                403,
                NO,
            ),
            (fact("protected-tag-role"), "stranger", "GET", TAGS, NO, 404, NO),
            post(fact("protected-tag-level"), json!({"name": "v*"}), 201, level(40)),
            post(
                fact("protected-tag-level"),
                json!({"name": "w", "allowed_to_create": [{"access_level": 30}]}),
                201,
                level(30),
            ),
            post(
                fact("protected-tag-level"),
                json!({"name": "x", "allowed_to_create": []}),
                201,
                level(40),
            ),
            post(
                fact("protected-tag-level"),
                json!({"name": "y", "create_access_level": 50}),
                400,
                json!({"error": "create_access_level does not have a valid value"}),
            ),
            post(
                fact("protected-tag-level"),
                json!({"name": "z", "create_access_level": 60}),
                201,
                level(60),
            ),
            post(fact("parameter-missing"), json!({}), 400, json!({"error": "name is missing"})),
            post(
                fact("protected-tag-refused"),
                json!({"name": "v*"}),
                422,
                sentences("Name has already been taken"),
            ),
            post(
                fact("protected-tag-refused"),
                json!({"name": ""}),
                422,
                sentences("Name can't be blank"),
            ),
            post(
                fact("protected-tag-refused"),
                user(STRANGER),
                422,
                json!({"message": [
                    "Name has already been taken",
                    "Create access levels user is not a member of the project",
                ]}),
            ),
            (
                fact("protected-tag-update"),
                "mia",
                "PATCH",
                ONE,
                json!({"create_access_level": 30}),
                404,
                NO,
            ),
            (
                fact("protected-tag-update"),
                "mia",
                "PUT",
                ONE,
                json!({"create_access_level": 30}),
                404,
                NO,
            ),
            (fact("protected-tag-delete"), "mia", "DELETE", ONE, NO, 204, NO),
            (fact("protected-tag-absent"), "mia", "GET", ONE, NO, 404, absent.clone()),
            (fact("protected-tag-absent"), "mia", "DELETE", ONE, NO, 404, absent),
            (
                fact("protected-tag-shape"),
                "mia",
                "GET",
                TAGS,
                NO,
                200,
                json!([{"name": "w"}, {"name": "x"}, {"name": "z"}]),
            ),
        ])
        .await;
    let late = [("if-unmodified-since", "Sat, 01 Jan 2000 00:00:00 GMT")];
    let request = world.request("mia", "DELETE", "/projects/acme%2Fshop/protected_tags/w");
    let request = late.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let status = request.send().await.expect("an answer").status().as_u16();
    assert_eq!(status, 412, "{}", fact("conditional-delete"));
}
