//! Pipeline schedules and their variables.

use serde_json::{Value, json};
use undrift_release::Release;
use undrift_sandbox::{Clock, SandboxConfig};

use super::client::{ROOT, World, usual_seed};
use super::facts::fact;

const NO: Value = Value::Null;
const SCHEDULES: &str = "/projects/acme%2Fshop/pipeline_schedules";
const ONE: &str = "/projects/acme%2Fshop/pipeline_schedules/1";
const TAKE_OWNERSHIP: &str = "/projects/acme%2Fshop/pipeline_schedules/1/take_ownership";
const VARIABLES: &str = "/projects/acme%2Fshop/pipeline_schedules/1/variables";
const VARIABLE: &str = "/projects/acme%2Fshop/pipeline_schedules/1/variables/K";

async fn at(release: &str) -> World {
    let time = "2030-01-01T12:30:00Z".parse().expect("a time");
    let release: Release = release.parse().expect("a release");
    World::seeded(
        usual_seed(),
        SandboxConfig {
            release: Some(release),
            clock: Clock::new(move || time),
            ..SandboxConfig::default()
        },
    )
    .await
}

fn new(description: &str) -> Value {
    json!({"description": description, "ref": "main", "cron": "0 4 * * *"})
}

#[tokio::test]
async fn only_its_owner_changes_a_schedule() {
    let world = at("15.8").await;
    let shape = json!({
        "id": 1, "description": "nightly", "ref": "main", "cron": "0 4 * * *", "cron_timezone": "UTC", "active": true,
        "next_run_at": "2030-01-02T04:00:00.000Z", "owner": {"username": "dan"},
    });
    let absent = json!({"message": "404 Pipeline Schedule Not Found"});
    let wrong = |field: &str, text: &str| json!({"message": {field: [text]}});
    let rename = json!({"description": "renamed"});
    world
        .check(vec![
            (fact("schedule-shape"), "dan", "POST", SCHEDULES, new("nightly"), 201, shape.clone()),
            (fact("schedule-shape"), "gus", "GET", SCHEDULES, NO, 200, json!([shape])),
            (
                fact("schedule-shape"),
                "dan",
                "POST",
                SCHEDULES,
                json!({}),
                400,
                json!({"error": "description is missing, ref is missing, ref is empty, cron is missing"}),
            ),
            (fact("schedule-write"), "rita", "POST", SCHEDULES, new("x"), 403, NO),
            (fact("schedule-write"), "gus", "POST", SCHEDULES, new("x"), 403, NO),
            (fact("schedule-write"), "gus", "DELETE", "/projects/1/pipeline_schedules/9", NO, 404, absent.clone()),
            (fact("schedule-write"), "", "POST", SCHEDULES, new("x"), 401, NO),
            (fact("schedule-read"), "", "GET", "/projects/2/pipeline_schedules", NO, 401, NO),
            (fact("schedule-same"), "mia", "POST", SCHEDULES, new("nightly"), 201, json!({"id": 2})),
            (fact("schedule-cron"), "dan", "PUT", ONE, json!({"cron": "x"}), 400, wrong("cron", "syntax is invalid")),
            (fact("schedule-cron"), "dan", "PUT", ONE, json!({"cron": "0 1 31 2 *"}), 400, wrong("cron", "syntax is invalid")),
            (fact("schedule-cron"), "dan", "PUT", ONE, json!({"cron": " 0 4 * * * "}), 200, json!({"cron": "0 4 * * *"})),
            (fact("schedule-null"), "dan", "PUT", ONE, json!({"cron_timezone": null}), 400, wrong("cron_timezone", "can't be blank")),
            (fact("schedule-cron"), "dan", "PUT", ONE, json!({"cron_timezone": "Nowhere"}), 400, wrong("cron_timezone", "syntax is invalid")),
            (fact("schedule-ref"), "dan", "PUT", ONE, json!({"ref": ""}), 400, json!({"error": "ref is empty"})),
            (
                fact("schedule-update"),
                "dan",
                "PUT",
                ONE,
                json!({"cron": "0 5 * * *", "active": false}),
                200,
                json!({"description": "nightly", "active": false, "next_run_at": "2030-01-02T05:00:00.000Z"}),
            ),
            (fact("schedule-read"), "gus", "GET", "/projects/1/pipeline_schedules?scope=active", NO, 200, json!([{"id": 2}])),
            (fact("schedule-read"), "gus", "GET", "/projects/1/pipeline_schedules?scope=inactive", NO, 200, json!([{"id": 1}])),
            (fact("schedule-owner"), "mia", "PUT", ONE, rename.clone(), 403, NO),
            (fact("schedule-owner"), ROOT, "PUT", ONE, json!({"active": null}), 200, json!({"active": null})),
            (fact("schedule-take"), "dan", "POST", TAKE_OWNERSHIP, NO, 403, NO),
            (fact("schedule-take"), "mia", "POST", TAKE_OWNERSHIP, NO, 201, json!({"owner": {"username": "mia"}})),
            (fact("schedule-take"), "mia", "POST", TAKE_OWNERSHIP, NO, 200, json!({"owner": {"username": "mia"}})),
            (fact("schedule-owner"), "dan", "PUT", ONE, rename.clone(), 403, NO),
            (fact("schedule-update"), "mia", "PUT", ONE, rename, 200, json!({"description": "renamed"})),
            (fact("schedule-delete"), "dan", "DELETE", ONE, NO, 403, NO),
            (fact("schedule-delete"), "olive", "DELETE", ONE, NO, 204, NO),
            (fact("schedule-absent"), "mia", "GET", ONE, NO, 404, absent.clone()),
            (fact("schedule-absent"), "mia", "PUT", ONE, json!({}), 404, absent.clone()),
            (fact("schedule-absent"), "mia", "DELETE", ONE, NO, 404, absent.clone()),
            (fact("schedule-absent"), "mia", "POST", TAKE_OWNERSHIP, NO, 404, absent),
        ])
        .await;
}

#[tokio::test]
async fn the_name_of_the_ref_follows_the_release() {
    for (release, sent, shown) in [
        ("15.8", "main", "main"),
        ("15.8", "refs/heads/main", "refs/heads/main"),
        ("16.11", "main", "main"),
        ("17.0", "main", "refs/heads/main"),
        ("17.0", "refs/tags/v1", "refs/tags/v1"),
        ("17.0", "refs/heads/none", "refs/heads/none"),
    ] {
        let world = at(release).await;
        let file = json!({"branch": "main", "content": "x", "commit_message": "x"});
        let path = "/projects/1/repository/files/a.txt";
        assert_eq!(world.call("mia", "POST", path, &file).await.status, 201);
        let mut body = new("nightly");
        body["ref"] = sent.into();
        let answer = world.call("dan", "POST", SCHEDULES, &body).await.body;
        assert_eq!(answer["ref"], shown, "{} {release} {sent}", fact("schedule-ref"));
        body["ref"] = "none".into();
        let status = if release == "17.0" { 400 } else { 201 };
        let reply = world.call("dan", "POST", SCHEDULES, &body).await;
        assert_eq!(reply.status, status, "{} {release}", fact("schedule-ref"));
    }
}

#[tokio::test]
async fn a_project_has_ten_schedules_and_none_while_archived_or_without_pipelines() {
    let world = at("15.8").await;
    let null = json!({"description": "x", "ref": "main", "cron": "0 4 * * *", "cron_timezone": null, "active": null});
    let kept = json!({"cron_timezone": "UTC", "active": true});
    world.check(vec![(fact("schedule-null"), "dan", "POST", SCHEDULES, null, 201, kept)]).await;
    for _ in 0..9 {
        world.call("dan", "POST", SCHEDULES, &new("x")).await;
    }
    let full = json!({"message": {
        "base": ["Maximum number of ci pipeline schedules (10) exceeded"], "description": ["can't be blank"],
    }});
    world
        .check(vec![
            (fact("schedule-limit"), "dan", "POST", SCHEDULES, new(""), 400, full),
            (fact("archived-schedules"), "olive", "POST", "/projects/1/archive", NO, 201, NO),
            (fact("archived-schedules"), "dan", "GET", ONE, NO, 200, NO),
            (fact("archived-schedules"), "dan", "PUT", ONE, json!({}), 403, NO),
            (fact("archived-schedules"), "olive", "POST", "/projects/1/unarchive", NO, 201, NO),
            (
                fact("ci-disabled"),
                "olive",
                "PUT",
                "/projects/1",
                json!({"builds_access_level": "disabled"}),
                200,
                NO,
            ),
            (fact("ci-disabled"), "dan", "GET", SCHEDULES, NO, 403, NO),
        ])
        .await;
}

#[tokio::test]
async fn schedule_inputs_are_set_by_name() {
    let world = at("17.11").await;
    let rule = fact("schedule-inputs");
    let with = |inputs: Value| json!({"description": "x", "ref": "refs/heads/main", "cron": "0 4 * * *", "inputs": inputs});
    let missing = json!({"error": "inputs[0][value] is missing"});
    let a = |value: &str| json!({"name": "a", "value": value});
    let list = json!({"name": "c", "value": ["x", "y"]});
    let gone = json!({"inputs": [{"name": "b", "value": "1", "destroy": true}]});
    world
        .check(vec![
            (rule, "dan", "POST", SCHEDULES, with(json!([{"name": "a"}])), 400, missing),
            (
                rule,
                "dan",
                "POST",
                SCHEDULES,
                with(json!([a("1"), {"name": "b", "value": true}, list])),
                201,
                NO,
            ),
            (
                rule,
                "dan",
                "GET",
                ONE,
                NO,
                200,
                json!({"inputs": [a("1"), {"name": "b", "value": "true"}, list]}),
            ),
            (rule, "dan", "PUT", ONE, gone, 200, NO),
            (rule, "mia", "GET", SCHEDULES, NO, 200, json!([{"inputs": [a("1"), list]}])),
        ])
        .await;
    let answer = world.get("rita", ONE).await.body;
    assert!(answer.get("inputs").is_none(), "{rule}");
}

#[tokio::test]
async fn variables_are_for_those_who_may_see_them() {
    let world = at("15.8").await;
    let row = json!({"key": "K", "value": "v", "variable_type": "env_var", "raw": false});
    let rule = fact("schedule-variable-write");
    let absent = json!({"message": "404 Pipeline Schedule Variable Not Found"});
    let changed = json!({"key": "K", "value": "v", "variable_type": "file"});
    world
        .check(vec![
            (fact("schedule-shape"), "dan", "POST", SCHEDULES, new("nightly"), 201, NO),
            (rule, "dan", "POST", VARIABLES, json!({"key": "K", "value": "v"}), 201, row.clone()),
            (
                rule,
                "dan",
                "POST",
                VARIABLES,
                json!({"key": "K", "value": "v"}),
                400,
                json!({"message": {"key": ["has already been taken"]}}),
            ),
            (rule, "dan", "POST", VARIABLES, json!({"key": "a-b", "value": "v"}), 400, NO),
            (rule, "mia", "PUT", VARIABLE, json!({"value": "w"}), 403, NO),
            (rule, "dan", "PUT", VARIABLE, json!({"variable_type": "file"}), 200, changed.clone()),
            (
                fact("schedule-variables"),
                "mia",
                "GET",
                ONE,
                NO,
                200,
                json!({"variables": [changed]}),
            ),
        ])
        .await;
    for (who, path, there) in
        [("dan", ONE, true), ("mia", ONE, true), ("rita", ONE, false), ("mia", SCHEDULES, false)]
    {
        let answer = world.get(who, path).await.body;
        let got = answer.get(0).unwrap_or(&answer);
        let rule = fact("schedule-variables");
        assert_eq!(got.get("variables").is_some(), there, "{rule}: {who} {path}");
    }
    let updated = world.call("dan", "PUT", ONE, &json!({"active": true})).await.body;
    assert_eq!(updated.get("variables"), None, "{}", fact("schedule-variables"));
    world
        .check(vec![
            (rule, "dan", "DELETE", VARIABLE, NO, 202, json!({"key": "K"})),
            (fact("schedule-absent"), "dan", "DELETE", VARIABLE, NO, 404, absent.clone()),
            (fact("schedule-absent"), "dan", "PUT", VARIABLE, json!({"value": "v"}), 404, absent),
        ])
        .await;
}
