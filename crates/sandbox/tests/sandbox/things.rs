//! Variables, hooks and push rules.

use serde_json::{Value, json};

use super::client::{World, usual_seed};
use super::facts::fact;

const VARIABLES: &str = "/projects/acme%2Fshop/variables";
const VARIABLE: &str = "/projects/acme%2Fshop/variables/A";
const NO: Value = Value::Null;

#[tokio::test]
async fn variables_are_created_read_changed_and_removed() {
    let world = World::usual().await;
    let made = json!({"key": "A", "value": "v", "variable_type": "env_var", "protected": false, "masked": false,
                      "raw": false, "environment_scope": "*"});
    world
        .check(vec![
            (fact("variable-list"), "mia", "GET", VARIABLES, NO, 200, json!([])),
            (fact("variable-shape"), "mia", "POST", VARIABLES, json!({"key": "A", "value": "v"}), 201, made.clone()),
            (fact("variable-shape"), "mia", "GET", "/projects/acme%2Fshop/variables/A", NO, 200, made.clone()),
            (fact("variable-list"), "mia", "GET", VARIABLES, NO, 200, json!([made])),
            (
                fact("variable-taken"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "A", "value": "x"}),
                400,
                json!({"message": {"key": ["(A) has already been taken"]}}),
            ),
            (
                fact("variable-scopes"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "A", "value": "x", "environment_scope": "prod", "raw": "1"}),
                201,
                json!({"raw": true}),
            ),
            (
                fact("variable-ambiguous"),
                "mia",
                "GET",
                "/projects/acme%2Fshop/variables/A",
                NO,
                409,
                json!({"message":
                "There are multiple variables with provided parameters. Please use 'filter[environment_scope]'"}),
            ),
            (
                fact("variable-filter"),
                "mia",
                "GET",
                "/projects/acme%2Fshop/variables/A?filter[environment_scope]=prod",
                NO,
                200,
                json!({"value": "x"}),
            ),
            (
                fact("variable-update"),
                "mia",
                "PUT",
                "/projects/acme%2Fshop/variables/A",
                json!({"value": "y", "filter": {"environment_scope": "prod"}}),
                200,
                json!({"value": "y", "raw": true}),
            ),
            (
                fact("variable-delete"),
                "mia",
                "DELETE",
                "/projects/acme%2Fshop/variables/A",
                json!({"filter[environment_scope]": "prod"}),
                204,
                NO,
            ),
            (
                fact("variable-absent"),
                "mia",
                "GET",
                "/projects/acme%2Fshop/variables/A?filter[environment_scope]=prod",
                NO,
                404,
                json!({"message": "404 Variable Not Found"}),
            ),
            (
                fact("variable-value-required"),
                "mia",
                "PUT",
                "/projects/acme%2Fshop/variables/A",
                json!({"raw": true}),
                400,
                json!({"error": "value is missing"}),
            ),
            (fact("variable-delete"), "mia", "DELETE", "/projects/acme%2Fshop/variables/A", NO, 204, NO),
            (fact("variable-absent"), "mia", "DELETE", "/projects/acme%2Fshop/variables/A", NO, 404, NO),
        ])
        .await;
}

#[tokio::test]
async fn variables_are_validated_and_guarded() {
    let world = World::usual().await;
    let long = "K".repeat(256);
    world
        .check(vec![
            (
                fact("parameter-missing"),
                "mia",
                "POST",
                VARIABLES,
                json!({}),
                400,
                json!({"error": "key is missing, value is missing"}),
            ),
            (
                fact("variable-key"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "a-b", "value": ""}),
                400,
                json!({"message": {"key": ["can contain only letters, digits and '_'."]}}),
            ),
            (
                fact("variable-key-length"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": long, "value": ""}),
                400,
                json!({"message": {"key": ["is too long (maximum is 255 characters)"]}}),
            ),
            (
                fact("variable-masked"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "M", "value": "short", "masked": true}),
                400,
                json!({"message": {"value": ["is invalid"]}}),
            ),
            (
                fact("variable-masked"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "M", "value": "has blanks in it", "masked": true}),
                400,
                NO,
            ),
            (
                fact("variable-masked"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "M", "value": "$expanded", "masked": true}),
                400,
                NO,
            ),
            (
                fact("variable-masked-raw"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "M", "value": "$expanded", "masked": true, "raw": true}),
                201,
                NO,
            ),
            (
                fact("parameter-values"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "T", "value": "", "variable_type": "x"}),
                400,
                json!({"error": "variable_type does not have a valid value"}),
            ),
            (
                fact("authentication"),
                "",
                "GET",
                VARIABLES,
                NO,
                401,
                json!({"message": "401 Unauthorized"}),
            ),
            (fact("role"), "dan", "GET", VARIABLES, NO, 403, json!({"message": "403 Forbidden"})),
            (
                fact("unseen"),
                "stranger",
                "GET",
                VARIABLES,
                NO,
                404,
                json!({"message": "404 Project Not Found"}),
            ),
            (
                fact("unseen"),
                "stranger",
                "POST",
                VARIABLES,
                json!({"key": "A", "value": ""}),
                404,
                NO,
            ),
        ])
        .await;
}

#[tokio::test]
async fn blanks_of_variables_are_trimmed_and_null_depends_on_the_field() {
    const OF_GROUP: &str = "/groups/acme/variables/A";
    let mut seed = usual_seed();
    seed["release"] = "18.9".into();
    let world = World::from_seed(seed).await;
    let letters = "can contain only letters, digits and '_'.";
    let blank = json!({"message": {"key": ["can't be blank", letters]}});
    let listed = |name: &str| json!({"message": {name: ["is not included in the list"]}});
    let (blanks, null) = (fact("variable-blanks"), fact("variable-null"));
    world
        .check(vec![
            (
                blanks,
                "mia",
                "POST",
                VARIABLES,
                json!({"key": " A ", "value": null, "environment_scope": " prod ", "description": ""}),
                201,
                json!({"key": "A", "value": null, "environment_scope": "prod", "description": ""}),
            ),
            (blanks, "mia", "POST", VARIABLES, json!({"key": "", "value": "v"}), 400, blank),
            (blanks, "mia", "PUT", VARIABLE, json!({"environment_scope": null}), 400, NO),
            (null, "mia", "PUT", VARIABLE, json!({"masked": null}), 400, listed("masked")),
            (null, "mia", "PUT", VARIABLE, json!({"raw": ""}), 400, listed("raw")),
            (null, "mia", "PUT", VARIABLE, json!({"protected": null}), 500, NO),
            (null, "mia", "PUT", VARIABLE, json!({"variable_type": null}), 500, NO),
            (fact("archived-variables-open"), "olive", "POST", "/projects/1/archive", NO, 201, NO),
            (fact("archived-variables-open"), "mia", "PUT", VARIABLE, json!({"value": "v"}), 200, NO),
            (
                fact("variable-conditional"),
                "olive",
                "POST",
                "/groups/acme/variables",
                json!({"key": "A", "value": "v"}),
                201,
                NO,
            ),
        ])
        .await;
    for (token, path, status) in [("olive", OF_GROUP, 412), ("mia", VARIABLE, 204)] {
        let request = world.request(token, "DELETE", path);
        let long_ago = "Wed, 21 Oct 2015 07:28:00 GMT";
        let sent = request.header("if-unmodified-since", long_ago).send().await.expect("an answer");
        assert_eq!(sent.status(), status, "{} {path}", fact("variable-conditional"));
    }
}

#[tokio::test]
async fn hooks_are_created_read_changed_and_removed() {
    const HOOKS: &str = "/projects/acme%2Fshop/hooks";
    const ONE: &str = "/projects/acme%2Fshop/hooks/1";
    let world = World::usual().await;
    let url = "https://ci.example.org/x";
    world
        .check(vec![
            (fact("hook-url-required"), "mia", "POST", HOOKS, json!({}), 400, json!({"error": "url is missing"})),
            (fact("hook-url"), "mia", "POST", HOOKS, json!({"url": "ftp://x"}), 422, json!({"error": "Invalid url given"})),
            (
                fact("hook-branch-filter"),
                "mia",
                "POST",
                HOOKS,
                json!({"url": url, "push_events_branch_filter": "a b"}),
                422,
                json!({"error": "Invalid branch filter given"}),
            ),
            (
                fact("hook-defaults"),
                "mia",
                "POST",
                HOOKS,
                json!({"url": url, "token": "s", "issues_events": "true"}),
                201,
                json!({"id": 1, "url": url, "push_events": true, "issues_events": true, "tag_push_events": false,
                       "enable_ssl_verification": true, "confidential_note_events": null, "push_events_branch_filter": null}),
            ),
            (
                fact("hook-update"),
                "mia",
                "PUT",
                ONE,
                json!({"url": url, "push_events": false}),
                200,
                json!({"push_events": false, "issues_events": true}),
            ),
            (
                fact("hook-branch-filter"),
                "mia",
                "PUT",
                ONE,
                json!({"url": url, "push_events_branch_filter": null}),
                200,
                json!({"push_events_branch_filter": null}),
            ),
            (fact("hook-url-required"), "mia", "PUT", ONE, json!({"push_events": false}), 400, json!({"error": "url is missing"})),
            (fact("hook-absent"), "mia", "GET", "/projects/acme%2Fshop/hooks/9", NO, 404, json!({"message": "404 Not found"})),
            (fact("role"), "dan", "GET", HOOKS, NO, 403, NO),
            (fact("hook-delete"), "mia", "DELETE", ONE, NO, 204, NO),
            (fact("hook-delete-absent"), "mia", "DELETE", ONE, NO, 204, NO),
            (fact("hook-list"), "mia", "GET", HOOKS, NO, 200, json!([])),
        ])
        .await;
    let reply = world.call("mia", "POST", HOOKS, &json!({"url": url, "token": "s"})).await;
    assert!(reply.body.get("token").is_none(), "{}", fact("hook-token-hidden"));
    assert_eq!(reply.body["id"], 2, "{}", fact("ids-once"));
}

#[tokio::test]
async fn push_rules_are_created_read_changed_and_removed() {
    const RULE: &str = "/projects/acme%2Fshop/push_rule";
    let world = World::usual().await;
    world
        .check(vec![
            (fact("push-rule-nothing"), "mia", "POST", RULE, json!({}), 400, NO),
            (
                fact("push-rule-update-absent"),
                "mia",
                "PUT",
                RULE,
                json!({"member_check": true}),
                404,
                json!({"message": "404 Push Rule Not Found"}),
            ),
            (
                fact("push-rule-limits"),
                "mia",
                "POST",
                RULE,
                json!({"max_file_size": -1}),
                400,
                json!({"message": {"max_file_size": ["must be greater than or equal to 0"]}}),
            ),
            (
                fact("push-rule-limits"),
                "mia",
                "POST",
                RULE,
                json!({"branch_name_regex": "x".repeat(512), "max_file_size": 2_147_483_648_u32}),
                400,
                json!({"message": {
                    "branch_name_regex": ["is too long (maximum is 511 characters)"],
                    "max_file_size": ["must be less than or equal to 2147483647"],
                }}),
            ),
            (
                fact("push-rule-defaults"),
                "mia",
                "POST",
                RULE,
                json!({"commit_message_regex": "^fix"}),
                201,
                json!({"commit_message_regex": "^fix", "branch_name_regex": null, "max_file_size": 0, "member_check": false}),
            ),
            (
                fact("parameter-integer"),
                "mia",
                "PUT",
                RULE,
                json!({"max_file_size": 1.5}),
                200,
                json!({"max_file_size": 1}),
            ),
            (
                fact("push-rule-exists"),
                "mia",
                "POST",
                RULE,
                json!({"member_check": true}),
                422,
                json!({"error": "Project push rule exists"}),
            ),
            (
                fact("push-rule-update"),
                "mia",
                "PUT",
                RULE,
                json!({"member_check": true}),
                200,
                json!({"commit_message_regex": "^fix", "member_check": true}),
            ),
            (fact("push-rule-null"), "mia", "PUT", RULE, json!({"member_check": null}), 500, NO),
            (fact("push-rule-null"), "mia", "PUT", RULE, json!({"max_file_size": ""}), 400, json!({"message": {"max_file_size": ["is not a number"]}})),
            (fact("push-rule-unset"), "mia", "PUT", RULE, json!({"deny_delete_tag": false}), 200, json!({"deny_delete_tag": false, "reject_unsigned_commits": null})),
            (fact("push-rule-unset"), "mia", "PUT", RULE, json!({"deny_delete_tag": "", "reject_unsigned_commits": false}), 200, json!({"deny_delete_tag": null, "reject_unsigned_commits": null})),
            (fact("role"), "dan", "GET", RULE, NO, 403, NO),
            (fact("push-rule-delete"), "mia", "DELETE", RULE, NO, 204, NO),
            (fact("push-rule-delete-absent"), "mia", "DELETE", RULE, NO, 204, NO),
        ])
        .await;
    let got = world.request("mia", "GET", RULE).send().await.expect("an answer");
    assert_eq!(got.text().await.expect("a body"), "null", "{}", fact("push-rule-none"));
}

#[tokio::test]
async fn an_archived_project_is_closed_for_contents_and_open_for_settings() {
    let world = World::usual().await;
    world
        .check(vec![
            (
                fact("archive"),
                "olive",
                "POST",
                "/projects/acme%2Fshop/archive",
                NO,
                201,
                json!({"archived": true}),
            ),
            (
                fact("archive-twice"),
                "olive",
                "POST",
                "/projects/acme%2Fshop/archive",
                NO,
                201,
                json!({"archived": true}),
            ),
            (
                fact("archived-variables"),
                "olive",
                "GET",
                VARIABLES,
                NO,
                403,
                json!({"message": "403 Forbidden"}),
            ),
            (
                fact("archived-refuses"),
                "olive",
                "POST",
                "/projects/acme%2Fshop/repository/files/a",
                json!({"branch": "main", "content": "x", "commit_message": "x"}),
                403,
                json!({"message": "403 Forbidden - You are not allowed to push into this branch"}),
            ),
            (
                fact("archived-refuses"),
                "olive",
                "POST",
                "/projects/acme%2Fshop/repository/files/README.md",
                NO,
                403,
                NO,
            ),
            (
                fact("archived-writable"),
                "olive",
                "PUT",
                "/projects/acme%2Fshop",
                json!({"description": "x"}),
                200,
                json!({"description": "x"}),
            ),
            (
                fact("archived-writable"),
                "olive",
                "POST",
                "/projects/acme%2Fshop/push_rule",
                json!({"member_check": true}),
                201,
                NO,
            ),
            (
                fact("archived-writable"),
                "olive",
                "POST",
                "/projects/acme%2Fshop/hooks",
                json!({"url": "https://x.example"}),
                201,
                NO,
            ),
            (
                fact("archived-writable"),
                "olive",
                "DELETE",
                "/projects/acme%2Fshop/hooks/1",
                NO,
                204,
                NO,
            ),
            (
                fact("archived-writable"),
                "olive",
                "POST",
                "/projects/acme%2Fshop/members",
                json!({"user_id": 7, "access_level": 20}),
                201,
                NO,
            ),
            (
                fact("archived-readable"),
                "olive",
                "GET",
                "/projects/acme%2Fshop/hooks",
                NO,
                200,
                json!([]),
            ),
            (fact("archive-right"), "mia", "POST", "/projects/acme%2Fshop/unarchive", NO, 403, NO),
            (
                fact("archive"),
                "olive",
                "POST",
                "/projects/acme%2Fshop/unarchive",
                NO,
                201,
                json!({"archived": false}),
            ),
            (fact("ci-disabled"), "olive", "GET", VARIABLES, NO, 200, json!([])),
            (
                fact("twin-fields"),
                "olive",
                "PUT",
                "/projects/acme%2Fshop",
                json!({"builds_access_level": "disabled"}),
                200,
                json!({"jobs_enabled": false}),
            ),
            (fact("ci-disabled"), "olive", "GET", VARIABLES, NO, 403, NO),
        ])
        .await;
}
