//! Variables, hooks and push rules.

use serde_json::{Value, json};

use super::Source::{Inferred, Reference, Service};
use super::client::World;

const VARIABLES: &str = "/projects/acme%2Fshop/variables";
const NO: Value = Value::Null;

#[tokio::test]
async fn variables_live_and_die() {
    let world = World::usual().await;
    let made = json!({"key": "A", "value": "v", "variable_type": "env_var", "protected": false, "masked": false,
                      "raw": false, "environment_scope": "*"});
    world
        .check(vec![
            (Reference("1, 4.1"), "mia", "GET", VARIABLES, NO, 200, json!([])),
            (Reference("1, 4.1"), "mia", "POST", VARIABLES, json!({"key": "A", "value": "v"}), 201, made.clone()),
            (Reference("1, 4.1"), "mia", "GET", "/projects/acme%2Fshop/variables/A", NO, 200, made.clone()),
            (Reference("1, 4.1"), "mia", "GET", VARIABLES, NO, 200, json!([made])),
            (
                Service,
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "A", "value": "x"}),
                400,
                json!({"message": {"key": ["(A) has already been taken"]}}),
            ),
            (
                Reference("1, 4.1"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "A", "value": "x", "environment_scope": "prod", "raw": "1"}),
                201,
                json!({"raw": true}),
            ),
            (
                Service,
                "mia",
                "GET",
                "/projects/acme%2Fshop/variables/A",
                NO,
                409,
                json!({"message":
                "There are multiple variables with provided parameters. Please use 'filter[environment_scope]'"}),
            ),
            (
                Reference("1, 4.1"),
                "mia",
                "GET",
                "/projects/acme%2Fshop/variables/A?filter[environment_scope]=prod",
                NO,
                200,
                json!({"value": "x"}),
            ),
            (
                Service,
                "mia",
                "PUT",
                "/projects/acme%2Fshop/variables/A",
                json!({"value": "y", "filter": {"environment_scope": "prod"}}),
                200,
                json!({"value": "y", "raw": true}),
            ),
            (Service, "mia", "DELETE", "/projects/acme%2Fshop/variables/A", json!({"filter[environment_scope]": "prod"}), 204, NO),
            (
                Service,
                "mia",
                "GET",
                "/projects/acme%2Fshop/variables/A?filter[environment_scope]=prod",
                NO,
                404,
                json!({"message": "404 Variable Not Found"}),
            ),
            (
                Reference("1, 4.1"),
                "mia",
                "PUT",
                "/projects/acme%2Fshop/variables/A",
                json!({"raw": true}),
                400,
                json!({"error": "value is missing"}),
            ),
            (Service, "mia", "DELETE", "/projects/acme%2Fshop/variables/A", NO, 204, NO),
            (Service, "mia", "DELETE", "/projects/acme%2Fshop/variables/A", NO, 404, NO),
        ])
        .await;
}

#[tokio::test]
async fn variables_are_validated_and_guarded() {
    let world = World::usual().await;
    let long = "K".repeat(256);
    world
        .check(vec![
            (Service, "mia", "POST", VARIABLES, json!({}), 400, json!({"error": "key is missing, value is missing"})),
            (
                Service,
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "a-b", "value": ""}),
                400,
                json!({"message": {"key": ["can contain only letters, digits and '_'."]}}),
            ),
            (
                Reference("1, 8"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": long, "value": ""}),
                400,
                json!({"message": {"key": ["is too long (maximum is 255 characters)"]}}),
            ),
            (
                Service,
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "M", "value": "short", "masked": true}),
                400,
                json!({"message": {"value": ["is invalid"]}}),
            ),
            (Service, "mia", "POST", VARIABLES, json!({"key": "M", "value": "has blanks in it", "masked": true}), 400, NO),
            (Service, "mia", "POST", VARIABLES, json!({"key": "M", "value": "$expanded", "masked": true}), 400, NO),
            (Service, "mia", "POST", VARIABLES, json!({"key": "M", "value": "$expanded", "masked": true, "raw": true}), 201, NO),
            (
                Service,
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "T", "value": "", "variable_type": "x"}),
                400,
                json!({"error": "variable_type does not have a valid value"}),
            ),
            (Service, "", "GET", VARIABLES, NO, 401, json!({"message": "401 Unauthorized"})),
            (Service, "dan", "GET", VARIABLES, NO, 403, json!({"message": "403 Forbidden"})),
            (Service, "stranger", "GET", VARIABLES, NO, 404, json!({"message": "404 Project Not Found"})),
            (Service, "stranger", "POST", VARIABLES, json!({"key": "A", "value": ""}), 404, NO),
        ])
        .await;
}

#[tokio::test]
async fn hooks_live_and_die() {
    const HOOKS: &str = "/projects/acme%2Fshop/hooks";
    const ONE: &str = "/projects/acme%2Fshop/hooks/1";
    let world = World::usual().await;
    let url = "https://ci.example.org/x";
    world
        .check(vec![
            (Service, "mia", "POST", HOOKS, json!({}), 400, json!({"error": "url is missing"})),
            (Service, "mia", "POST", HOOKS, json!({"url": "ftp://x"}), 422, json!({"error": "Invalid url given"})),
            (
                Service,
                "mia",
                "POST",
                HOOKS,
                json!({"url": url, "push_events_branch_filter": "a b"}),
                422,
                json!({"error": "Invalid branch filter given"}),
            ),
            (
                Service,
                "mia",
                "POST",
                HOOKS,
                json!({"url": url, "token": "s", "issues_events": "true"}),
                201,
                json!({"id": 1, "url": url, "push_events": true, "issues_events": true, "tag_push_events": false,
                       "enable_ssl_verification": true, "confidential_note_events": null}),
            ),
            (
                Reference("2, 4.5"),
                "mia",
                "PUT",
                ONE,
                json!({"url": url, "push_events": false}),
                200,
                json!({"push_events": false, "issues_events": true}),
            ),
            (Reference("2, 4.5"), "mia", "PUT", ONE, json!({"push_events": false}), 400, json!({"error": "url is missing"})),
            (Service, "mia", "GET", "/projects/acme%2Fshop/hooks/9", NO, 404, json!({"message": "404 Not found"})),
            (Service, "dan", "GET", HOOKS, NO, 403, NO),
            (Service, "mia", "DELETE", ONE, NO, 204, NO),
            (Reference("2, 4.5"), "mia", "DELETE", ONE, NO, 204, NO),
            (Reference("2, 4.5"), "mia", "GET", HOOKS, NO, 200, json!([])),
        ])
        .await;
    let made = world.call("mia", "POST", HOOKS, &json!({"url": url, "token": "s"})).await;
    assert!(made.body.get("token").is_none(), "Reference(1, 2.9): the token is never returned");
    assert_eq!(made.body["id"], 2, "Inferred: ids are never used again");
}

#[tokio::test]
async fn push_rules_live_and_die() {
    const RULE: &str = "/projects/acme%2Fshop/push_rule";
    let world = World::usual().await;
    world
        .check(vec![
            (Service, "mia", "POST", RULE, json!({}), 400, NO),
            (Service, "mia", "PUT", RULE, json!({"member_check": true}), 404, json!({"message": "404 Push Rule Not Found"})),
            (
                Service,
                "mia",
                "POST",
                RULE,
                json!({"max_file_size": -1}),
                400,
                json!({"message": {"max_file_size": ["must be greater than or equal to 0"]}}),
            ),
            (
                Service,
                "mia",
                "POST",
                RULE,
                json!({"branch_name_regex": "x".repeat(512)}),
                400,
                json!({"message": {"branch_name_regex": ["is too long (maximum is 511 characters)"]}}),
            ),
            (
                Service,
                "mia",
                "POST",
                RULE,
                json!({"commit_message_regex": "^fix"}),
                201,
                json!({"commit_message_regex": "^fix", "branch_name_regex": null, "max_file_size": 0, "member_check": false}),
            ),
            (Service, "mia", "POST", RULE, json!({"member_check": true}), 422, json!({"error": "Project push rule exists"})),
            (
                Service,
                "mia",
                "PUT",
                RULE,
                json!({"member_check": true}),
                200,
                json!({"commit_message_regex": "^fix", "member_check": true}),
            ),
            (Service, "mia", "PUT", RULE, json!({"member_check": null}), 200, json!({"member_check": false})),
            (Service, "dan", "GET", RULE, NO, 403, NO),
            (Service, "mia", "DELETE", RULE, NO, 204, NO),
            (Reference("2, 4.6"), "mia", "DELETE", RULE, NO, 204, NO),
        ])
        .await;
    let got = world.request("mia", "GET", RULE).send().await.expect("an answer");
    assert_eq!(got.text().await.expect("a body"), "null", "Service: an absent push rule is null");
}

#[tokio::test]
async fn an_archived_project_refuses_writes_below_it() {
    let world = World::usual().await;
    world
        .check(vec![
            (Reference("2, 4.4"), "olive", "POST", "/projects/acme%2Fshop/archive", NO, 201, json!({"archived": true})),
            (Reference("2, 4.4"), "olive", "POST", "/projects/acme%2Fshop/archive", NO, 201, json!({"archived": true})),
            (Service, "olive", "GET", VARIABLES, NO, 403, json!({"message": "403 Forbidden"})),
            (Inferred, "olive", "PUT", "/projects/acme%2Fshop", json!({"description": "x"}), 403, NO),
            (Inferred, "olive", "POST", "/projects/acme%2Fshop/hooks", json!({"url": "https://x.example"}), 403, NO),
            (Inferred, "olive", "GET", "/projects/acme%2Fshop/hooks", NO, 200, json!([])),
            (Reference("2, 4.4"), "mia", "POST", "/projects/acme%2Fshop/unarchive", NO, 403, NO),
            (Reference("2, 4.4"), "olive", "POST", "/projects/acme%2Fshop/unarchive", NO, 201, json!({"archived": false})),
            (Service, "olive", "GET", VARIABLES, NO, 200, json!([])),
            (
                Service,
                "olive",
                "PUT",
                "/projects/acme%2Fshop",
                json!({"builds_access_level": "disabled"}),
                200,
                json!({"jobs_enabled": false}),
            ),
            (Service, "olive", "GET", VARIABLES, NO, 403, NO),
        ])
        .await;
}
