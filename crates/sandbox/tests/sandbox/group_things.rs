//! Parts of a group: variables, invitations.

use serde_json::{Value, json};
use undrift_sandbox::ServiceTier;

use super::client::{ROOT, World};
use super::facts::fact;

const NO: Value = Value::Null;
const VARIABLES: &str = "/groups/acme/variables";
const VARIABLE: &str = "/groups/acme/variables/K";
const IN_PROD: &str = "/groups/acme/variables/K?filter[environment_scope]=prod";

#[tokio::test]
async fn variables_of_a_group_are_found_by_key_and_scope() {
    let world = World::with_tier(ServiceTier::Premium).await;
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
                json!({"environment_scope": "*"}),
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
    let world = World::with_tier(ServiceTier::Free).await;
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
async fn invited_groups_are_shown_only_to_callers_who_see_them() {
    let world = World::with_tier(ServiceTier::Premium).await;
    let reply =
        world.call(ROOT, "POST", "/groups", &json!({"name": "hidden", "path": "hidden"})).await;
    let hidden = reply.body["id"].clone();
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
                json!({"error": "group_id is missing, group_access is missing, group_access does not have a valid value"}),
            ),
        ])
        .await;
    let listed = world.get(ROOT, "/groups?search=acme").await.body;
    assert_eq!(listed[0].get("shared_with_groups"), None, "{}: not in lists", fact("group-forms"));
}

#[tokio::test]
async fn a_group_has_hooks_of_its_own() {
    const HOOKS: &str = "/groups/acme/hooks";
    const HOOK: &str = "/groups/acme/hooks/1";
    let free = World::with_tier(ServiceTier::Free).await;
    let reply = free.get("olive", HOOKS).await;
    assert_eq!(
        (reply.status, reply.body),
        (404, json!({"message": "404 Not Found"})),
        "{}",
        fact("group-hook-tier")
    );
    let world = World::with_tier(ServiceTier::Premium).await;
    let url = |url: &str| json!({"url": url});
    let secret = json!({"url": "https://a.example", "token": "hidden"});
    let made = world.call("olive", "POST", HOOKS, &secret).await;
    let expected = json!({
        "id": 1, "url": "https://a.example", "group_id": 9, "created_at": made.body["created_at"],
        "push_events": true, "push_events_branch_filter": null, "issues_events": false,
        "confidential_issues_events": false, "merge_requests_events": false, "tag_push_events": false,
        "note_events": false, "confidential_note_events": null, "job_events": false, "pipeline_events": false,
        "wiki_page_events": false, "deployment_events": false, "releases_events": false, "subgroup_events": false,
        "enable_ssl_verification": true, "repository_update_events": false, "alert_status": "executable",
        "disabled_until": null, "url_variables": [],
    });
    assert_eq!((made.status, &made.body), (201, &expected), "{}", fact("group-hook-shape"));
    assert_eq!(world.hook_token(1).as_deref(), Some("hidden"));
    let absent = json!({"message": "404 Not found"});
    world
        .check(vec![
            (fact("group-hook-role"), "mia", "GET", HOOKS, NO, 403, NO),
            (
                fact("hook-url"),
                "olive",
                "POST",
                HOOKS,
                url("no url"),
                422,
                json!({"error": "Invalid url given"}),
            ),
            (
                fact("parameter-missing"),
                "olive",
                "POST",
                HOOKS,
                json!({}),
                400,
                json!({"error": "url is missing"}),
            ),
            (
                fact("group-hook-update"),
                "olive",
                "PUT",
                HOOK,
                json!({}),
                400,
                json!({"error": "No parameters provided"}),
            ),
            (
                fact("group-hook-update"),
                "olive",
                "PUT",
                HOOK,
                json!({"subgroup_events": true}),
                200,
                url("https://a.example"),
            ),
            (
                fact("group-hook-update"),
                "olive",
                "GET",
                HOOK,
                NO,
                200,
                json!({"subgroup_events": true}),
            ),
        ])
        .await;
    assert_eq!(world.hook_token(1).as_deref(), Some("hidden"), "the URL is the same");
    world
        .check(vec![
            (fact("group-hook-update"), "olive", "PUT", HOOK, url("https://b.example"), 200, NO),
            // Hooks of a project do not count.
            (
                fact("group-hook-absent"),
                "olive",
                "GET",
                "/projects/1/hooks/1",
                NO,
                404,
                absent.clone(),
            ),
            (fact("hook-delete"), "olive", "DELETE", HOOK, NO, 204, NO),
            (fact("group-hook-absent"), "olive", "DELETE", HOOK, NO, 404, absent.clone()),
            (
                fact("group-hook-absent"),
                "olive",
                "PUT",
                HOOK,
                url("https://b.example"),
                404,
                absent,
            ),
            (
                fact("ids-once"),
                "olive",
                "POST",
                HOOKS,
                url("https://c.example"),
                201,
                json!({"id": 2}),
            ),
        ])
        .await;
    let mut last = Value::Null;
    for number in 0..50 {
        last = world
            .call("olive", "POST", HOOKS, &url(&format!("https://{number}.example")))
            .await
            .body;
    }
    let text = "Maximum number of group hooks (50) exceeded";
    assert_eq!(last, json!({"error": text}), "{}", fact("group-hook-limit"));
}

#[tokio::test]
async fn a_group_has_a_push_rule_for_new_projects() {
    const RULE: &str = "/groups/acme/push_rule";
    let hidden = json!({"message": "404 Not Found"});
    let free = World::with_tier(ServiceTier::Free).await;
    let reply = free.get("olive", RULE).await;
    assert_eq!((reply.status, &reply.body), (404, &hidden), "{}", fact("group-push-rule-none"));
    let world = World::with_tier(ServiceTier::Premium).await;
    let regex = json!({"commit_message_regex": "A", "deny_delete_tag": true});
    let absent = json!({"message": "404 Push Rule Not Found"});
    let none = fact("group-push-rule-none");
    let off = json!({"commit_committer_check": false, "reject_unsigned_commits": null});
    world
        .check(vec![
            (none, "mia", "GET", RULE, NO, 404, hidden.clone()),
            (none, "mia", "PUT", RULE, regex.clone(), 404, absent),
            (fact("group-push-rule-delete"), "mia", "DELETE", RULE, NO, 404, hidden.clone()),
            (fact("push-rule-nothing"), "mia", "POST", RULE, json!({}), 400, NO),
            (fact("group-push-rule-role"), "mia", "POST", RULE, regex.clone(), 201, regex.clone()),
            (none, "dan", "GET", RULE, NO, 404, hidden.clone()),
            (none, "dan", "POST", RULE, regex.clone(), 404, hidden),
            (
                fact("group-push-rule-exists"),
                "mia",
                "POST",
                RULE,
                regex.clone(),
                422,
                json!({"error": "Group push rule exists, try updating"}),
            ),
            (fact("push-rule-update"), "mia", "PUT", RULE, json!({"max_file_size": 7}), 200, regex),
            (fact("push-rule-unset"), "mia", "PUT", RULE, off.clone(), 200, off),
        ])
        .await;
    let answer = world.get("mia", RULE).await.body;
    assert_eq!(
        (answer.get("group_id"), answer.get("project_id")),
        (None, None),
        "{}",
        fact("group-push-rule-shape")
    );
    let team = json!({"name": "team", "path": "team", "parent_id": 9});
    let team_id = world.call("olive", "POST", "/groups", &team).await.body["id"].clone();
    for (namespace, name) in [(json!(9), "near"), (team_id, "below")] {
        let project = json!({"name": name, "namespace_id": namespace});
        let id = world.call("olive", "POST", "/projects", &project).await.body["id"].clone();
        let copied = world.get("olive", &format!("/projects/{id}/push_rule")).await.body;
        assert_eq!(
            (&copied["project_id"], &copied["max_file_size"], &copied["deny_delete_tag"]),
            (&id, &json!(7), &json!(true)),
            "{}: {name}",
            fact("group-push-rule-copied")
        );
    }
    world
        .check(vec![
            (fact("group-push-rule-delete"), "mia", "DELETE", RULE, NO, 204, NO),
            (fact("push-rule-none"), "mia", "GET", "/projects/1/push_rule", NO, 200, NO),
        ])
        .await;
    let before = world.get("mia", "/projects/1/push_rule").await.body;
    assert_eq!(before, NO, "{}: only new ones", fact("group-push-rule-copied"));
}
