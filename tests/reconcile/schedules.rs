//! Pipeline schedules, which only their owners change.

use serde_json::{Value as Json, json};
use undrift::{diff::Action, diff::Reason, plan::Plan, sandbox::Profile};

use crate::world::{World, project, seed};

const SCHEDULES: &str = "/projects/acme%2Fshop/pipeline_schedules";

/// A project with schedules of bob's, each with its time.
async fn world(crons: &[&str]) -> World {
    let members = json!([{"user": "bob", "access_level": "developer"}]);
    let there = [json!({"path": "acme/shop", "members": members})];
    let world = World::new(Profile::default(), seed(&there)).await;
    for cron in crons {
        let new = json!({"description": "nightly", "ref": "main", "cron": cron, "sudo": "bob"});
        let made = world.call("POST", SCHEDULES, Some(new)).await;
        assert_eq!(made["owner"]["username"], "bob", "{made}");
    }
    world
}

fn declare(world: &World, schedules: Json) {
    let document = json!({
        "pipeline_schedules": schedules,
        "unlisted": {"pipeline_schedules": "delete"},
    });
    world.declare(&[project("acme/shop", document)]);
}

fn besides(plan: &Plan) -> usize {
    plan.notes.iter().filter(|note| matches!(note.reason, Reason::Besides { .. })).count()
}

#[tokio::test]
async fn somebody_elses_schedule_is_taken_over_before_it_changes() {
    let world = world(&["0 4 * * *"]).await;
    let of =
        |cron: &str| json!([{"description": "nightly", "ref": "refs/heads/main", "cron": cron}]);
    declare(&world, of("0 4 * * *"));
    assert!(world.plan().await.steps.is_empty(), "bob's, and as declared");
    let path = "/api/v4/projects/1/pipeline_schedules/1";
    let (take, put) = (format!("POST {path}/take_ownership"), format!("PUT {path}"));
    for (cron, sent) in
        [("0 5 * * *", vec![take.clone(), put.clone()]), ("0 6 * * *", vec![put.clone()])]
    {
        let before = world.writes().len();
        declare(&world, of(cron));
        let plan = world.converge(cron).await;
        assert_eq!(world.writes()[before..], sent);
        assert_eq!(besides(&plan), sent.len() - 1, "{:?}", plan.notes);
        let there = world.get(&format!("{SCHEDULES}/1")).await;
        assert_eq!((&there["owner"]["username"], &there["cron"]), (&"root".into(), &cron.into()));
    }
}

#[tokio::test]
async fn two_schedules_of_one_description_are_told_apart_by_nobody() {
    let world = world(&["0 4 * * *", "0 5 * * *"]).await;
    declare(&world, json!([{"description": "nightly", "active": false}]));
    let plan = world.plan().await;
    assert_eq!(plan.steps.len(), 0, "{:#?}", plan.steps);
    let why: Vec<_> = plan.incomplete.iter().map(|one| one.reason.message.to_string()).collect();
    assert!(why.len() == 1 && why[0].contains("have the same `description`"), "{why:?}");
}

#[tokio::test]
async fn a_copy_is_removed_and_what_nobody_lists() {
    let world = world(&["0 4 * * *", "0 4 * * *"]).await;
    declare(&world, json!([{"description": "nightly"}]));
    let plan = world.converge("a copy").await;
    assert_eq!(plan.steps.iter().map(|step| step.action).collect::<Vec<_>>(), [Action::Delete]);
    assert_eq!(world.get(SCHEDULES).await.as_array().map(Vec::len), Some(1));
    declare(&world, json!([]));
    let plan = world.plan().await;
    assert_eq!(plan.steps.iter().map(|step| step.action).collect::<Vec<_>>(), [Action::Delete]);
}
