//! What belongs to a group: variables, invitations.

use serde_json::{Value, json};
use undrift::sandbox::{Config, Seed, Tier};

use super::client::{ROOT, World, usual_seed};
use super::facts::fact;

const NO: Value = Value::Null;
const VARIABLES: &str = "/groups/acme/variables";
const VARIABLE: &str = "/groups/acme/variables/K";
const IN_PROD: &str = "/groups/acme/variables/K?filter[environment_scope]=prod";

async fn on(tier: Tier) -> World {
    let seed = Some(Seed::from_json(usual_seed()).expect("a seed"));
    World::start(Config { seed, tier: Some(tier), ..Config::default() }).await
}

#[tokio::test]
async fn variables_of_a_group_are_found_by_key_and_scope() {
    let world = on(Tier::Premium).await;
    let new =
        |value: &str, scope: &str| json!({"key": "K", "value": value, "environment_scope": scope});
    let absent = json!({"message": "404 GroupVariable Not Found"});
    let rule = fact("group-variables");
    world
        .check(vec![
            (rule, "mia", "GET", VARIABLES, NO, 403, NO),
            (rule, "", "GET", VARIABLES, NO, 401, NO),
            (
                rule,
                "olive",
                "POST",
                VARIABLES,
                json!({"key": "K", "value": "v"}),
                201,
                json!({"raw": false}),
            ),
            (
                fact("variable-taken"),
                "olive",
                "POST",
                VARIABLES,
                new("w", "*"),
                400,
                json!({"message": {"key": ["(K) has already been taken"]}}),
            ),
            (fact("group-variable-absent"), "olive", "GET", IN_PROD, NO, 404, absent.clone()),
            (
                fact("group-variable-absent"),
                "olive",
                "PUT",
                "/groups/acme/variables/L",
                json!({"value": "v"}),
                404,
                absent.clone(),
            ),
            (fact("group-variable-absent"), "olive", "DELETE", IN_PROD, NO, 404, absent),
            (
                rule,
                "olive",
                "PUT",
                VARIABLE,
                json!({"protected": true}),
                200,
                json!({"value": "v", "protected": true}),
            ),
            (rule, "olive", "POST", VARIABLES, new("p", "prod"), 201, NO),
            (fact("variable-ambiguous"), "olive", "GET", VARIABLE, NO, 409, NO),
            (fact("variable-ambiguous"), "olive", "DELETE", VARIABLE, NO, 409, NO),
            (rule, "olive", "GET", IN_PROD, NO, 200, json!({"value": "p"})),
            (rule, "olive", "GET", VARIABLES, NO, 200, json!([{"value": "v"}, {"value": "p"}])),
            (rule, "mia", "GET", "/projects/1/variables", NO, 200, json!([])),
            (
                fact("group-variable-update"),
                "olive",
                "PUT",
                VARIABLE,
                json!({"value": "new", "filter": {"environment_scope": "prod"}}),
                200,
                json!({"value": "new", "environment_scope": "*"}),
            ),
            (
                fact("group-variable-update"),
                "olive",
                "PUT",
                VARIABLE,
                json!({"environment_scope": "prod"}),
                400,
                json!({"message": {"key": ["(K) has already been taken"]}}),
            ),
            (rule, "olive", "DELETE", IN_PROD, NO, 204, NO),
            (rule, "olive", "GET", VARIABLE, NO, 200, json!({"value": "new"})),
        ])
        .await;
}

#[tokio::test]
async fn scopes_of_group_variables_need_a_licence() {
    let world = on(Tier::Free).await;
    let scoped = json!({"key": "K", "value": "v", "environment_scope": "prod"});
    let rule = fact("group-variable-scopes");
    world
        .check(vec![
            (
                rule,
                "olive",
                "POST",
                VARIABLES,
                scoped.clone(),
                201,
                json!({"environment_scope": "*"}),
            ),
            (rule, "olive", "POST", VARIABLES, scoped.clone(), 400, NO),
            (rule, "olive", "PUT", VARIABLE, scoped, 200, json!({"environment_scope": "*"})),
            (
                fact("variable-scopes"),
                "mia",
                "POST",
                "/projects/1/variables",
                json!({"key": "K", "value": "v", "environment_scope": "prod"}),
                201,
                json!({"environment_scope": "prod"}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn invited_groups_of_a_group_are_shown_to_who_sees_them() {
    let world = on(Tier::Premium).await;
    let made =
        world.call(ROOT, "POST", "/groups", &json!({"name": "hidden", "path": "hidden"})).await;
    let hidden = made.body["id"].clone();
    let share = json!({"group_id": hidden, "group_access": 30, "expires_at": "2999-01-31"});
    let seen = json!({"shared_with_groups": [{
        "group_id": hidden, "group_name": "hidden", "group_full_path": "hidden", "group_access_level": 30,
        "expires_at": "2999-01-31",
    }]});
    let rule = fact("shared-with-groups-seen");
    let level = |level: i64| json!({"group_id": 9, "group_access": level});
    let wrong = json!({"error": "group_access does not have a valid value"});
    world
        .check(vec![
            (fact("share"), ROOT, "POST", "/groups/acme/share", share, 201, seen.clone()),
            (rule, ROOT, "GET", "/groups/acme", NO, 200, seen),
            (rule, "olive", "GET", "/groups/acme", NO, 200, json!({"shared_with_groups": []})),
            (
                fact("share-level"),
                ROOT,
                "POST",
                "/groups/hidden/share",
                level(5),
                400,
                wrong.clone(),
            ),
            (fact("share-level"), ROOT, "POST", "/groups/hidden/share", level(0), 400, wrong),
            (
                fact("parameter-missing"),
                ROOT,
                "POST",
                "/groups/hidden/share",
                json!({}),
                400,
                json!({"error": "group_id is missing, group_access is missing"}),
            ),
        ])
        .await;
    let listed = world.get(ROOT, "/groups?search=acme").await.body;
    assert_eq!(listed[0].get("shared_with_groups"), None, "{}: not in lists", fact("group-forms"));
}
