//! Labels of projects and groups.

use serde_json::{Value, json};

use super::client::{ROOT, World, leak};
use super::facts::fact;

const NO: Value = Value::Null;
const PROJECT: &str = "/projects/acme%2Fdeep%2Fthing/labels";
const TOP: &str = "/groups/acme/labels";
const DEEP: &str = "/groups/acme%2Fdeep/labels";

async fn world() -> World {
    let user = |name: &str| json!({"username": name, "token": name});
    let member = |user: &str, level: &str| json!({"user": user, "access_level": level});
    World::from_seed(json!({
        "users": [user("rita"), user("gus"), user("pia"), user("eve")],
        "groups": [
            {"path": "acme", "members": [member("rita", "reporter"), member("gus", "guest")]},
            {"path": "acme/deep"},
        ],
        "projects": [
            {"path": "acme/deep/thing", "members": [member("pia", "maintainer")]},
            {"path": "acme/other"},
        ],
    }))
    .await
}

/// Creates a label; returns its id.
async fn create_label(world: &World, list: &str, title: &str) -> i64 {
    let reply = world.call("rita", "POST", list, &json!({"name": title, "color": "#aaBBcc"})).await;
    assert_eq!(reply.status, 201, "{title}: {}", reply.body);
    reply.body["id"].as_i64().expect("an id")
}

fn titles(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(|label| label["name"].as_str()).collect()
}

#[tokio::test]
async fn a_label_has_the_fields_of_its_project_or_group() {
    let world = world().await;
    let new = json!({"name": "bug", "color": "Yellow", "description": "a <b>", "priority": 3});
    let answer = world.call("rita", "POST", PROJECT, &new).await.body;
    let expected = json!({
        "id": 1, "name": "bug", "description": "a <b>", "description_html": "a &lt;b&gt;", "text_color": "#1F1E24",
        "color": "#FFFF00", "subscribed": false, "priority": 3, "is_project_label": true,
    });
    assert_eq!(answer, expected, "{}", fact("label-shape"));
    let made = world
        .call("rita", "POST", TOP, &json!({"name": "x", "color": "#000", "priority": 3}))
        .await
        .body;
    let expected = json!({
        "id": 2, "name": "x", "description": null, "description_html": "", "text_color": "#FFFFFF", "color": "#000",
        "subscribed": false,
    });
    assert_eq!(made, expected, "{}", fact("label-shape"));
    let seen = world.get("rita", &format!("{PROJECT}/x")).await.body;
    assert_eq!(seen["is_project_label"], false, "{}", fact("label-shape"));
    let counted = world.get("rita", &format!("{TOP}?with_counts=true")).await.body;
    assert_eq!(counted[0]["open_merge_requests_count"], 0, "{}", fact("label-shape"));
}

#[tokio::test]
async fn lists_of_labels_contain_inherited_ones() {
    let world = world().await;
    create_label(&world, PROJECT, "own").await;
    create_label(&world, TOP, "top").await;
    create_label(&world, DEEP, "deep").await;
    create_label(&world, "/projects/acme%2Fother/labels", "other").await;
    for (rule, list, query, expected) in [
        (fact("label-list"), PROJECT, "", vec!["deep", "own", "top"]),
        (fact("label-list"), PROJECT, "?include_ancestor_groups=false", vec!["deep", "own"]),
        (fact("label-list"), PROJECT, "?search=OWN", vec!["own"]),
        (fact("label-list-group"), TOP, "", vec!["top"]),
        (fact("label-list-group"), TOP, "?include_descendant_groups=true", vec!["deep", "top"]),
        (fact("label-list-group"), TOP, "?only_group_labels=false", vec!["other", "top"]),
        (
            fact("label-list-group"),
            TOP,
            "?only_group_labels=false&include_descendant_groups=true",
            vec!["deep", "other", "own", "top"],
        ),
        (fact("label-list-group"), DEEP, "", vec!["deep", "top"]),
        (fact("label-list-group"), DEEP, "?include_ancestor_groups=false", vec!["deep"]),
    ] {
        let answer = world.get("rita", &format!("{list}{query}")).await.body;
        assert_eq!(titles(&answer), expected, "{rule}: {list}{query}");
    }
}

#[tokio::test]
async fn labels_are_created_changed_and_removed() {
    let world = world().await;
    let (top, own) =
        (create_label(&world, TOP, "top").await, create_label(&world, PROJECT, "own").await);
    create_label(&world, PROJECT, leak(top.to_string())).await;
    create_label(&world, PROJECT, "7").await;
    let new = |title: &str, color: &str| json!({"name": title, "color": color});
    let post =
        |rule, token, list, body, status, answer| (rule, token, "POST", list, body, status, answer);
    let one = leak(format!("{PROJECT}/{own}"));
    let put = |rule, body, status, answer| (rule, "rita", "PUT", one, body, status, answer);
    let taken = json!({"message": "Label already exists"});
    let title = |text: &str| json!({"message": {"title": [text]}});
    let missing = |names: &str| json!({"error": format!("{names} are missing, at least one parameter must be provided")});
    let absent = json!({"message": "404 Label Not Found"});
    let old = fact("label-old-form");
    let one_of = |text: &str| json!({"error": format!("label_id, name are {text}")});
    world
        .check(vec![
            (fact("label-write"), "gus", "POST", PROJECT, new("x", "#fff"), 403, NO),
            (fact("label-write"), "gus", "POST", TOP, new("x", "#fff"), 403, NO),
            (fact("label-read"), "gus", "GET", PROJECT, NO, 200, NO),
            (fact("label-read"), "", "GET", TOP, NO, 401, NO),
            (fact("unseen"), "eve", "GET", TOP, NO, 404, NO),
            post(fact("label-taken"), "rita", PROJECT, new("own", "#fff"), 409, taken.clone()),
            post(fact("label-taken"), "rita", PROJECT, new("top", "#fff"), 409, taken.clone()),
            post(fact("label-taken"), "rita", DEEP, new("top", "#fff"), 409, taken),
            post(fact("label-taken"), "rita", DEEP, new("own", "#fff"), 201, NO),
            post(fact("label-title"), "rita", PROJECT, new("a,b", "#fff"), 400, title("is invalid")),
            post(
                fact("label-title"),
                "rita",
                PROJECT,
                new(" ", "#fff"),
                400,
                json!({"message": {"title": ["can't be blank", "is invalid"]}}),
            ),
            (fact("label-read"), "", "GET", PROJECT, NO, 401, NO),
            (fact("label-absent"), "gus", "DELETE", "/projects/acme%2Fdeep%2Fthing/labels/nope", NO, 404, NO),
            (
                fact("label-color"),
                "rita",
                "POST",
                DEEP,
                json!({"name": "plain", "color": null}),
                201,
                json!({"color": "#6699cc"}),
            ),
            post(
                fact("label-color"),
                "rita",
                PROJECT,
                new("a", "reddish"),
                400,
                json!({"message": {"color": ["must be a valid color code"]}}),
            ),
            post(
                fact("parameter-missing"),
                "rita",
                PROJECT,
                json!({}),
                400,
                json!({"error": "name is missing, color is missing"}),
            ),
            put(fact("label-update"), json!({}), 400, missing("new_name, color, description, priority")),
            (
                fact("label-update"),
                "rita",
                "PUT",
                leak(format!("{TOP}/{top}")),
                json!({"priority": 1}),
                400,
                missing("new_name, color, description"),
            ),
            put(
                fact("label-update"),
                json!({"new_name": "renamed", "priority": 2, "description": "text"}),
                200,
                json!({"id": own, "name": "renamed", "color": "#aaBBcc", "priority": 2, "description": "text"}),
            ),
            put(
                fact("label-update"),
                json!({"priority": null, "description": null, "color": "red"}),
                200,
                json!({"color": "#FF0000", "priority": null, "description": null}),
            ),
            put(fact("label-taken"), json!({"new_name": "7"}), 400, title("has already been taken")),
            // An id comes before a title.
            (
                fact("label-found"),
                "rita",
                "GET",
                leak(format!("{PROJECT}/{top}")),
                NO,
                200,
                json!({"name": "top"}),
            ),
            (
                fact("label-found"),
                "rita",
                "GET",
                "/projects/acme%2Fdeep%2Fthing/labels/renamed",
                NO,
                200,
                json!({"id": own}),
            ),
            (old, "rita", "PUT", PROJECT, json!({"color": "red"}), 400, one_of("missing, exactly one parameter must be provided")),
            (old, "rita", "DELETE", PROJECT, json!({"label_id": own, "name": "x"}), 400, one_of("mutually exclusive")),
            (old, "rita", "PUT", PROJECT, json!({"label_id": own}), 400, missing("new_name, color, description, priority")),
            (old, "rita", "PUT", PROJECT, json!({"label_id": own, "new_name": "again"}), 200, json!({"id": own, "name": "again"})),
            (old, "rita", "PUT", PROJECT, json!({"name": "again", "color": "#123"}), 200, json!({"id": own, "color": "#123"})),
            (old, "rita", "DELETE", PROJECT, json!({"label_id": "x"}), 400, NO),
            (old, "gus", "DELETE", PROJECT, json!({"name": "7"}), 403, NO),
            (old, "rita", "DELETE", leak(format!("{PROJECT}?name=7")), NO, 204, NO),
            (old, "rita", "DELETE", PROJECT, json!({"name": "7"}), 404, absent.clone()),
            (fact("label-delete"), "rita", "DELETE", one, NO, 204, NO),
            (fact("label-absent"), "rita", "DELETE", one, NO, 404, absent.clone()),
            (fact("label-absent"), "rita", "GET", one, NO, 404, absent),
        ])
        .await;
}

#[tokio::test]
async fn a_label_with_a_negative_priority_fails_but_exists() {
    let world = world().await;
    let rule = fact("label-negative-priority");
    let new = json!({"name": "low", "color": "#000", "priority": -1});
    let failure = json!({"message": "500 Internal Server Error"});
    let stored = json!({"name": "low", "priority": null});
    world
        .check(vec![
            (rule, "rita", "POST", PROJECT, new.clone(), 500, failure),
            (rule, "rita", "GET", leak(format!("{PROJECT}/low")), NO, 200, stored),
            // Labels of groups have no priority.
            (rule, "rita", "POST", TOP, new, 201, json!({"name": "low"})),
        ])
        .await;
}

#[tokio::test]
async fn labels_of_a_group_are_within_reach_of_its_projects() {
    let world = world().await;
    let (top, deep) =
        (create_label(&world, TOP, "top").await, create_label(&world, DEEP, "deep").await);
    let absent = json!({"message": "404 Label Not Found"});
    let by = |list: &str, name: &dyn std::fmt::Display| leak(format!("{list}/{name}"));
    let change = json!({"description": "text"});
    let rule = fact("label-inherited");
    world
        .check(vec![
            // Neither a project nor a group can change labels above the next group.
            (rule, "rita", "PUT", by(PROJECT, &top), change.clone(), 404, absent.clone()),
            (rule, "rita", "PUT", by(DEEP, &top), change.clone(), 404, absent.clone()),
            (rule, "rita", "DELETE", by(DEEP, &top), NO, 404, absent),
            (rule, "rita", "GET", by(DEEP, &top), NO, 200, json!({"name": "top"})),
            // A member of the project alone has no rights in the group.
            (rule, "pia", "DELETE", by(PROJECT, &"deep"), NO, 403, NO),
            (
                rule,
                "rita",
                "PUT",
                by(PROJECT, &"deep"),
                change,
                200,
                json!({"is_project_label": false}),
            ),
            (rule, "rita", "GET", by(DEEP, &deep), NO, 200, json!({"description": "text"})),
            (rule, "rita", "DELETE", by(PROJECT, &"deep"), NO, 204, NO),
            (rule, "rita", "GET", by(DEEP, &deep), NO, 404, NO),
        ])
        .await;
    let reply = world.call(ROOT, "DELETE", "/groups/acme%2Fdeep", &NO).await;
    assert_eq!(reply.status, 202);
}

#[tokio::test]
async fn a_label_is_promoted_to_its_group() {
    let world = world().await;
    let (rule, other) = (fact("label-promote"), "/projects/acme%2Fother/labels");
    create_label(&world, other, "shared").await;
    let promote = "/projects/acme%2Fother/labels/shared/promote";
    world
        .check(vec![
            (rule, "gus", "PUT", promote, NO, 403, NO),
            (rule, "rita", "PUT", promote, NO, 200, json!({"name": "shared"})),
            (rule, "rita", "PUT", promote, NO, 404, json!({"message": "404 Label Not Found"})),
            (rule, "rita", "GET", "/groups/acme/labels/shared", NO, 200, NO),
        ])
        .await;
    // If the group has such a label, that one stays.
    create_label(&world, other, "known").await;
    let known = json!({"name": "known", "color": "#445566"});
    let promote = "/projects/acme%2Fother/labels/known/promote";
    world
        .check(vec![
            (rule, "rita", "POST", "/groups/acme/labels", known.clone(), 201, NO),
            (rule, "rita", "PUT", promote, NO, 200, known),
            (rule, "rita", "PUT", promote, NO, 404, NO),
        ])
        .await;
}

#[tokio::test]
async fn a_project_without_issues_and_merge_requests_has_no_labels() {
    let world = world().await;
    create_label(&world, PROJECT, "kept").await;
    let project = PROJECT.trim_end_matches("/labels");
    let level =
        |level: &str| json!({"issues_access_level": level, "merge_requests_access_level": level});
    let label = json!({"name": "new", "color": "#112233"});
    let (rule, rules) = (fact("label-off"), format!("{project}/approval_rules"));
    world
        .check(vec![
            (rule, ROOT, "PUT", leak(project.to_owned()), level("disabled"), 200, NO),
            (rule, "rita", "GET", PROJECT, NO, 200, json!([])),
            (rule, "rita", "POST", PROJECT, label, 403, NO),
            (fact("approval-read"), "rita", "GET", leak(rules), NO, 403, NO),
            (rule, ROOT, "PUT", leak(project.to_owned()), level("enabled"), 200, NO),
            (rule, "rita", "GET", PROJECT, NO, 200, json!([{"name": "kept"}])),
        ])
        .await;
}
