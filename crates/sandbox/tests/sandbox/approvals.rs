//! Approval settings and rules.

use serde_json::{Value, json};
use undrift_sandbox::{OBSERVED_RELEASE, SandboxConfig, ServiceTier};

use super::client::{ROOT, World, usual_seed};
use super::facts::fact;

const NO: Value = Value::Null;
const SETTINGS: &str = "/projects/acme%2Fshop/approvals";
const RULES: &str = "/projects/acme%2Fshop/approval_rules";
const FIRST_RULE: &str = "/projects/acme%2Fshop/approval_rules/1";
const BRANCHES: &str = "/projects/acme%2Fshop/protected_branches";

const DAN: i64 = 4;
const RITA: i64 = 5;
const STRANGER: i64 = 7;
const ACME: i64 = 9;

async fn world() -> World {
    World::with_tier(ServiceTier::Premium).await
}

/// Creates a private group of the administrator; returns its id.
async fn hidden_group_id(world: &World) -> i64 {
    let reply =
        world.call(ROOT, "POST", "/groups", &json!({"name": "hidden", "path": "hidden"})).await;
    reply.body["id"].as_i64().expect("a group")
}

#[tokio::test]
async fn approvals_are_licensed_and_for_those_who_open_merge_requests() {
    let free = World::with_tier(ServiceTier::Free).await;
    let unlicensed = json!({"message": "404 Not Found"});
    for (method, path) in [
        ("GET", SETTINGS),
        ("POST", SETTINGS),
        ("GET", RULES),
        ("POST", RULES),
        ("PUT", FIRST_RULE),
    ] {
        let reply = free.call("mia", method, path, &NO).await;
        assert_eq!((reply.status, &reply.body), (404, &unlicensed), "{}", fact("approval-tier"));
    }
    let (release, tier) = (Some(OBSERVED_RELEASE), Some(ServiceTier::Free));
    let later =
        World::seeded(usual_seed(), SandboxConfig { release, tier, ..SandboxConfig::default() })
            .await;
    for (body, status) in [(json!({"merge_requests_author_approval": true}), 201), (json!({}), 400)]
    {
        let got = later.call("mia", "POST", SETTINGS, &body).await;
        assert_eq!(got.status, status, "{}", fact("approval-ignored"));
        let on = got.body.get("merge_requests_author_approval");
        assert!(on.is_none_or(|on| on == false), "{}", fact("approval-ignored"));
    }
    later.call("mia", "POST", BRANCHES, &json!({"name": "main"})).await;
    let change = json!({"code_owner_approval_required": true});
    let got = later.call("mia", "PATCH", &format!("{BRANCHES}/main"), &change).await;
    assert_eq!(
        (got.status, &got.body["code_owner_approval_required"]),
        (200, &json!(false)),
        "{}",
        fact("approval-ignored")
    );
    let world = world().await;
    let read = |token, path, status| (fact("approval-read"), token, "GET", path, NO, status, NO);
    const OPEN: &str = "/projects/acme%2Fsite/approval_rules";
    world
        .check(vec![
            read("mia", SETTINGS, 200),
            read("rita", SETTINGS, 403),
            read("rita", RULES, 200),
            read("gus", RULES, 403),
            read("stranger", RULES, 404),
            read("stranger", OPEN, 200),
            read("", OPEN, 401),
            (fact("archive"), "olive", "POST", "/projects/acme%2Fsite/archive", NO, 201, NO),
            read("rita", OPEN, 403),
            read("mia", OPEN, 200),
        ])
        .await;
}

#[tokio::test]
async fn approval_settings_are_one_object() {
    let world = world().await;
    let preset = json!({
        "approvals_before_merge": 0, "reset_approvals_on_push": true,
        "disable_overriding_approvers_per_merge_request": false, "merge_requests_author_approval": false,
        "merge_requests_disable_committers_approval": false, "require_password_to_approve": false,
        "approvers": [], "approver_groups": [],
    });
    let got = world.get("mia", SETTINGS).await.body;
    assert_eq!(got, preset, "{}", fact("approval-settings"));
    let post =
        |rule, token, body, status, answer| (rule, token, "POST", SETTINGS, body, status, answer);
    let author = |on: bool| json!({"merge_requests_author_approval": on});
    let committers = |on: bool| json!({"merge_requests_disable_committers_approval": on});
    let missing = "approvals_before_merge, reset_approvals_on_push, disable_overriding_approvers_per_merge_request, \
                   merge_requests_author_approval, merge_requests_disable_committers_approval, \
                   require_password_to_approve are missing, at least one parameter must be provided";
    let locks = |on: bool| {
        json!({"prevent_merge_requests_author_approval": on, "prevent_merge_requests_committers_approval": on,
               "disable_overriding_approvers_per_merge_request": on})
    };
    world
        .check(vec![
            post(fact("approval-settings"), "mia", json!({"x": 1}), 400, json!({"error": missing})),
            post(
                fact("approval-settings"),
                "mia",
                json!({"reset_approvals_on_push": "false"}),
                201,
                json!({"reset_approvals_on_push": false}),
            ),
            post(
                fact("approval-settings"),
                "mia",
                author(true),
                201,
                json!({"reset_approvals_on_push": false, "merge_requests_author_approval": true}),
            ),
            post(
                fact("approval-before-merge"),
                "mia",
                json!({"approvals_before_merge": 2}),
                201,
                json!({"approvals_before_merge": 2}),
            ),
            (
                fact("approval-before-merge"),
                "mia",
                "GET",
                "/projects/acme%2Fshop",
                NO,
                200,
                json!({"approvals_before_merge": 2}),
            ),
            post(
                fact("approval-before-merge"),
                "mia",
                json!({"approvals_before_merge": -1}),
                201,
                json!({"approvals_before_merge": -1}),
            ),
            post(
                fact("approval-before-merge"),
                "mia",
                json!({"approvals_before_merge": null}),
                400,
                json!({"message": {"approvals_before_merge": ["is not a number"]}}),
            ),
            (
                fact("approval-before-merge-rule"),
                "mia",
                "GET",
                RULES,
                NO,
                200,
                json!([{"name": "All Members", "rule_type": "any_approver", "approvals_required": -1}]),
            ),
            post(
                fact("approval-null"),
                "mia",
                json!({"merge_requests_author_approval": null, "reset_approvals_on_push": ""}),
                201,
                json!({"merge_requests_author_approval": true, "reset_approvals_on_push": false}),
            ),
            (
                fact("application-settings"),
                ROOT,
                "PUT",
                "/application/settings",
                locks(true),
                200,
                NO,
            ),
            (fact("approval-locked"), "mia", "GET", SETTINGS, NO, 200, author(false)),
            (fact("approval-locked"), "mia", "GET", SETTINGS, NO, 200, committers(true)),
            post(fact("approval-locked"), "mia", author(true), 201, author(false)),
            post(fact("approval-locked"), "mia", committers(true), 201, committers(true)),
            (
                fact("approval-locked"),
                "mia",
                "POST",
                RULES,
                json!({"name": "r", "approvals_required": 1}),
                403,
                NO,
            ),
            (
                fact("approval-locked"),
                ROOT,
                "POST",
                RULES,
                json!({"name": "r", "approvals_required": 1, "user_ids": [DAN]}),
                201,
                NO,
            ),
            (
                fact("application-settings"),
                ROOT,
                "PUT",
                "/application/settings",
                locks(false),
                200,
                NO,
            ),
            (fact("approval-locked"), "mia", "GET", SETTINGS, NO, 200, author(true)),
            (fact("approval-locked"), "mia", "GET", SETTINGS, NO, 200, committers(false)),
        ])
        .await;
}

#[tokio::test]
async fn a_number_of_approvals_becomes_an_any_approver_rule() {
    let world = world().await;
    let any = |name: &str, count: i64| json!([{"name": name, "approvals_required": count}]);
    let rule = fact("approval-before-merge-rule");
    let count = |count: i64| json!({"approvals_before_merge": count});
    let new = json!({"name": "mine", "approvals_required": 1});
    let taken = json!({"message": {"rule_type": ["any-approver for the project already exists"]}});
    world
        .check(vec![
            (rule, "mia", "PUT", "/projects/acme%2Fshop", count(0), 200, count(0)),
            (rule, "mia", "GET", RULES, NO, 200, json!([])),
            (rule, "mia", "PUT", "/projects/acme%2Fshop", count(2), 200, count(2)),
            (rule, "mia", "GET", RULES, NO, 200, any("All Members", 2)),
            (rule, "mia", "POST", RULES, new.clone(), 400, taken),
            (rule, "mia", "DELETE", FIRST_RULE, NO, 204, NO),
            (rule, "mia", "POST", RULES, new, 201, NO),
            (rule, "mia", "POST", SETTINGS, count(3), 201, NO),
            (rule, "mia", "GET", SETTINGS, NO, 200, count(3)),
            (rule, "mia", "GET", RULES, NO, 200, any("mine", 1)),
        ])
        .await;
}

#[tokio::test]
async fn approval_settings_of_a_top_level_group_apply_below_it() {
    const GROUP: &str = "/groups/acme/merge_request_approval_setting";
    const NEWER_SETTINGS: &str = "/projects/acme%2Fshop/merge_request_approval_setting";
    let world = super::releases::at("18.9").await;
    let (rule, forms) = (fact("group-approvals"), fact("approval-newer-form"));
    let own = |value: bool| json!({"value": value, "locked": false, "inherited_from": null});
    let forced = |value: bool| json!({"value": value, "locked": true, "inherited_from": "group"});
    let missing = "allow_author_approval, allow_committer_approval, \
                   allow_overrides_to_approver_list_per_merge_request, retain_approvals_on_push, \
                   selective_code_owner_removals, require_password_to_approve, \
                   require_reauthentication_to_approve are missing, at least one parameter must be provided";
    let base = "selective_code_owner_removals can only be enabled when reset_approvals_on_push is disabled";
    let author = json!({"allow_author_approval": true});
    world
        .check(vec![
            (forms, "mia", "PUT", NEWER_SETTINGS, json!({}), 400, json!({ "error": missing })),
            (
                forms,
                "mia",
                "PUT",
                NEWER_SETTINGS,
                json!({"allow_author_approval": null}),
                400,
                json!({"error": "allow_author_approval is empty"}),
            ),
            (
                forms,
                "mia",
                "PUT",
                NEWER_SETTINGS,
                json!({"allow_committer_approval": false, "retain_approvals_on_push": true}),
                200,
                json!({"allow_committer_approval": own(false), "retain_approvals_on_push": own(true),
                       "allow_author_approval": own(false)}),
            ),
            (
                forms,
                "mia",
                "GET",
                SETTINGS,
                NO,
                200,
                json!({"merge_requests_disable_committers_approval": true, "reset_approvals_on_push": false}),
            ),
            (
                fact("approval-twins"),
                "mia",
                "POST",
                SETTINGS,
                json!({"require_reauthentication_to_approve": true, "selective_code_owner_removals": true}),
                201,
                json!({"require_password_to_approve": true, "selective_code_owner_removals": true}),
            ),
            (
                fact("approval-selective"),
                "mia",
                "POST",
                SETTINGS,
                json!({"reset_approvals_on_push": true}),
                400,
                json!({"message": {"base": [base]}}),
            ),
            (fact("approval-null"), "mia", "POST", SETTINGS, json!({"selective_code_owner_removals": null}), 500, NO),
            (rule, "mia", "GET", GROUP, NO, 403, NO),
            (rule, "olive", "GET", GROUP, NO, 200, json!({"retain_approvals_on_push": own(true)})),
            // Flags that the first call omits are off.
            (
                rule,
                "olive",
                "PUT",
                GROUP,
                author.clone(),
                200,
                json!({"allow_author_approval": own(true), "allow_committer_approval": own(false)}),
            ),
            (rule, "mia", "GET", SETTINGS, NO, 200, json!({"reset_approvals_on_push": true})),
            (rule, "mia", "GET", NEWER_SETTINGS, NO, 200, json!({"retain_approvals_on_push": forced(false)})),
            (
                rule,
                ROOT,
                "POST",
                SETTINGS,
                json!({"disable_overriding_approvers_per_merge_request": false}),
                201,
                json!({"disable_overriding_approvers_per_merge_request": true}),
            ),
            (fact("archive"), "olive", "POST", "/projects/acme%2Fshop/archive", NO, 201, NO),
            (
                fact("approval-archived"),
                "olive",
                "POST",
                SETTINGS,
                json!({"reset_approvals_on_push": true}),
                403,
                NO,
            ),
        ])
        .await;
}

#[tokio::test]
async fn later_releases_distinguish_approval_rules_by_type() {
    let world = super::releases::at("18.9").await;
    let rule = |name: &str, more: Value| {
        let mut body = json!({"name": name, "approvals_required": 1});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        body
    };
    let post = |fact, body, status, answer| (fact, "mia", "POST", RULES, body, status, answer);
    let coverage = json!({"rule_type": "report_approver", "report_type": "code_coverage"});
    let (report, any) = (fact("approval-rule-report"), fact("approval-rule-any"));
    let reserved =
        json!({"message": {"name": ["Coverage-Check is reserved for code_coverage report type"]}});
    let only =
        json!({"message": {"report_type": ["code_coverage only supports Coverage-Check name"]}});
    let both = json!({"message": {
        "name": ["can't be blank"],
        "approvals_required": ["is not a number"],
        "rule_type": ["any-approver for the project already exists"],
    }});
    world
        .check(vec![
            post(report, rule("Coverage-Check", json!({"user_ids": [DAN]})), 400, reserved),
            post(report, rule("other", coverage.clone()), 400, only),
            post(report, rule("Coverage-Check", coverage), 201, NO),
            post(
                any,
                rule("u", json!({"usernames": ["dan"], "applies_to_all_protected_branches": true})),
                201,
                json!({"rule_type": "regular", "report_type": null, "users": [{"id": DAN}]}),
            ),
            post(
                fact("approval-rule-dropped"),
                rule("x", json!({"user_ids": "x"})),
                201,
                json!({"rule_type": "regular", "users": []}),
            ),
            post(any, rule("License-Check", json!({})), 201, json!({"rule_type": "any_approver"})),
            post(
                fact("approval-rule-refused"),
                json!({"name": null, "approvals_required": null}),
                400,
                both,
            ),
            (
                fact("approval-rule-all-branches"),
                "mia",
                "PUT",
                "/projects/acme%2Fshop/approval_rules/2",
                json!({"name": "v"}),
                200,
                json!({"applies_to_all_protected_branches": true}),
            ),
            (
                fact("approval-rule-order"),
                "mia",
                "GET",
                RULES,
                NO,
                200,
                json!([{"name": "License-Check"}, {"name": "v"}, {"name": "x"}, {"name": "Coverage-Check"}]),
            ),
            (fact("approval-rule-absent"), "mia", "GET", "/projects/acme%2Fshop/approval_rules/x", NO, 404, NO),
        ])
        .await;
}

#[tokio::test]
async fn a_rule_shows_what_it_names_as_objects() {
    let world = world().await;
    let branch = world
        .call("mia", "POST", "/projects/acme%2Fshop/protected_branches", &json!({"name": "main"}))
        .await
        .body;
    let new = json!({"name": "security", "approvals_required": 2, "user_ids": [DAN], "group_ids": [ACME],
                     "protected_branch_ids": [branch["id"], 999]});
    let answer = world.call("mia", "POST", RULES, &new).await.body;
    let rule = fact("approval-rule-shape");
    let keys: Vec<&String> = answer.as_object().expect("an object").keys().collect();
    assert_eq!(keys.len(), 10, "{rule}: {keys:?}");
    let eligible: Vec<i64> = answer["eligible_approvers"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|user| user["id"].as_i64())
        .collect();
    assert_eq!(eligible, [2, 3, DAN, RITA, 6], "{rule}: users, and members of groups");
    assert_eq!(answer["users"][0]["username"], "dan", "{rule}");
    assert_eq!(answer["groups"][0]["full_path"], "acme", "{rule}");
    assert_eq!(answer["protected_branches"], json!([branch]), "{}", fact("approval-rule-dropped"));
    let expected = (&json!("regular"), &json!(false), &json!(false));
    let got = (
        &answer["rule_type"],
        &answer["contains_hidden_groups"],
        &answer["applies_to_all_protected_branches"],
    );
    assert_eq!(got, expected, "{rule}");
    assert_eq!(world.get("mia", FIRST_RULE).await.body, answer, "{rule}");
    assert_eq!(world.get("mia", RULES).await.body, json!([answer]), "{rule}");
    world.call("mia", "DELETE", "/projects/acme%2Fshop/protected_branches/main", &NO).await;
    let left = world.get("mia", FIRST_RULE).await.body;
    assert_eq!(left["protected_branches"], json!([]), "{}", fact("approval-rule-branch-gone"));
}

#[tokio::test]
async fn approval_rules_are_created_changed_and_removed() {
    let world = world().await;
    let hidden = hidden_group_id(&world).await;
    let post = |rule, body, status, answer| (rule, "mia", "POST", RULES, body, status, answer);
    let put = |rule, body, answer| (rule, "mia", "PUT", FIRST_RULE, body, 200, answer);
    let model = |field: &str, text: &str| json!({"message": {field: [text]}});
    let named = |name: &str, more: Value| {
        let mut body = json!({"name": name, "approvals_required": 1});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        body
    };
    let kind = |word: &str| json!({"rule_type": word});
    let people =
        |ids: &[i64]| json!({"users": ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>()});
    let missing = json!({"error": "name is missing, approvals_required is missing"});
    let any = fact("approval-rule-any");
    let refused = fact("approval-rule-refused");
    let dropped = json!({"user_ids": [DAN, STRANGER, 999], "group_ids": [hidden, ACME]});
    world
        .check(vec![
            post(fact("parameter-missing"), json!({}), 400, missing),
            post(
                fact("approval-rule-dropped"),
                named("one", dropped),
                201,
                json!({"users": [{"id": DAN}], "groups": [{"id": ACME}], "contains_hidden_groups": false}),
            ),
            post(refused, named("one", json!({"user_ids": [DAN]})), 400, model("name", "has already been taken")),
            post(refused, named("", json!({"user_ids": [DAN]})), 400, model("name", "can't be blank")),
            post(
                refused,
                json!({"name": "x", "approvals_required": -1}),
                400,
                model("approvals_required", "must be greater than or equal to 0"),
            ),
            post(
                refused,
                json!({"name": "x", "approvals_required": 101}),
                400,
                model("approvals_required", "must be less than or equal to 100"),
            ),
            post(
                fact("parameter-values"),
                named("x", kind("code_owner")),
                400,
                json!({"error": "rule_type does not have a valid value"}),
            ),
            // Names alone name nobody.
            post(any, named("all", json!({"usernames": ["dan"]})), 201, kind("any_approver")),
            post(
                any,
                named("others", json!({})),
                400,
                model("rule_type", "any-approver for the project already exists"),
            ),
            post(
                fact("approval-rule-spellings"),
                named("all", json!({"rule_type": "regular", "usernames": ["dan", "RITA"]})),
                201,
                people(&[DAN, RITA]),
            ),
            post(
                fact("approval-rule-spellings"),
                named("two", json!({"users": "4,5", "groups": [ACME]})),
                201,
                json!({"users": [{"id": DAN}, {"id": RITA}], "groups": [{"id": ACME}]}),
            ),
            post(
                fact("approval-rule-report"),
                named("Coverage-Check", json!({})),
                201,
                json!({"rule_type": "report_approver", "report_type": "code_coverage"}),
            ),
            put(
                fact("approval-rule-update"),
                json!({"approvals_required": 0}),
                json!({"approvals_required": 0, "name": "one", "users": [{"id": DAN}], "groups": [{"id": ACME}]}),
            ),
            put(fact("approval-rule-update"), json!({"user_ids": [RITA]}), people(&[RITA])),
            put(fact("approval-rule-update"), json!({"user_ids": []}), json!({"users": [], "groups": [{"id": ACME}]})),
            put(fact("approval-rule-update"), json!({"user_ids": [RITA]}), people(&[RITA])),
            put(fact("approval-rule-update"), json!({"user_ids": null}), json!({"users": [], "groups": [{"id": ACME}]})),
            (
                fact("approval-rule-hidden"),
                ROOT,
                "PUT",
                FIRST_RULE,
                json!({"group_ids": [ACME, hidden]}),
                200,
                json!({"groups": [{"id": ACME}, {"id": hidden}]}),
            ),
            put(
                fact("approval-rule-hidden"),
                json!({"group_ids": []}),
                json!({"groups": [], "contains_hidden_groups": true}),
            ),
            put(
                fact("approval-rule-hidden"),
                json!({"remove_hidden_groups": true}),
                json!({"contains_hidden_groups": true}),
            ),
            put(
                fact("approval-rule-hidden"),
                json!({"remove_hidden_groups": true, "group_ids": [ACME]}),
                json!({"groups": [{"id": ACME}], "contains_hidden_groups": false}),
            ),
            (fact("approval-rule-delete"), "mia", "DELETE", FIRST_RULE, NO, 204, NO),
            (fact("approval-rule-absent"), "mia", "DELETE", FIRST_RULE, NO, 404, json!({"message": "404 Not found"})),
            (fact("approval-rule-absent"), "mia", "GET", FIRST_RULE, NO, 404, json!({"message": "404 Not found"})),
        ])
        .await;
}

#[tokio::test]
async fn a_rule_is_for_some_branches_or_all() {
    let world = world().await;
    let branches = "/projects/acme%2Fshop/protected_branches";
    let mut ids = Vec::new();
    for name in ["main", "dev"] {
        ids.push(
            world.call("mia", "POST", branches, &json!({"name": name})).await.body["id"].clone(),
        );
    }
    let shown = |ids: &[&Value]| ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>();
    let all = fact("approval-rule-all-branches");
    world
        .check(vec![
            (
                all,
                "mia",
                "POST",
                RULES,
                json!({"name": "r", "approvals_required": 1, "protected_branch_ids": [ids[0]],
                       "applies_to_all_protected_branches": true}),
                201,
                json!({"applies_to_all_protected_branches": true, "protected_branches": shown(&[&ids[0], &ids[1]])}),
            ),
            (
                all,
                "mia",
                "PUT",
                FIRST_RULE,
                json!({"name": "renamed"}),
                200,
                json!({"applies_to_all_protected_branches": false, "protected_branches": shown(&[&ids[0]])}),
            ),
            (
                all,
                "mia",
                "PUT",
                FIRST_RULE,
                json!({"protected_branch_ids": [ids[1]]}),
                200,
                json!({"protected_branches": shown(&[&ids[1]])}),
            ),
        ])
        .await;
}
