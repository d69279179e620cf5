//! Pipeline schedules, which only their owners change.

use serde_json::{Value as Json, json};
use undrift::{
    diff::Action,
    diff::Reason,
    plan::{Plan, Strictness},
    release::REFERENCE,
    sandbox::Profile,
};

use crate::world::{NEWEST, World, project, seed};

const SCHEDULES: &str = "/projects/acme%2Fshop/pipeline_schedules";

/// A project with bob's schedules at these times.
async fn world(crons: &[&str]) -> World {
    let members = json!([{"user": "bob", "access_level": "developer"}]);
    let there = [json!({"path": "acme/shop", "members": members})];
    let world = World::new(Profile::default(), seed(&there)).await;
    for cron in crons {
        let new = json!({"description": "nightly", "ref": "refs/heads/main", "cron": cron, "sudo": "bob"});
        let response = world.call("POST", SCHEDULES, Some(new)).await;
        assert_eq!(response["owner"]["username"], "bob", "{response}");
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

fn side_effect_count(plan: &Plan) -> usize {
    plan.notes.iter().filter(|note| matches!(note.reason, Reason::Besides { .. })).count()
}

#[tokio::test]
async fn somebody_elses_schedule_is_taken_over_before_it_changes() {
    let mut world = world(&["0 4 * * *"]).await;
    let of =
        |cron: &str| json!([{"description": "nightly", "ref": "refs/heads/main", "cron": cron}]);
    declare(&world, of("0 4 * * *"));
    assert!(world.plan().await.steps.is_empty(), "bob's, and as declared");
    let path = "/api/v4/projects/1/pipeline_schedules/1";
    declare(&world, of("0 5 * * *"));
    let refused = &world.plan().await.refusals[0];
    assert_eq!(refused.reason, "would run its pipelines with the rights of the token's user");
    world.acknowledged = vec!["protection:**"];
    let (take, put) = (format!("POST {path}/take_ownership"), format!("PUT {path}"));
    for (cron, sent) in
        [("0 5 * * *", vec![take.clone(), put.clone()]), ("0 6 * * *", vec![put.clone()])]
    {
        let before = world.writes().len();
        declare(&world, of(cron));
        let plan = world.converge(cron).await;
        assert_eq!(world.writes()[before..], sent);
        assert_eq!(side_effect_count(&plan), sent.len() - 1, "{:?}", plan.notes);
        let response = world.get(&format!("{SCHEDULES}/1")).await;
        assert_eq!(
            (&response["owner"]["username"], &response["cron"]),
            (&"root".into(), &cron.into())
        );
    }
}

#[tokio::test]
async fn two_schedules_of_one_description_are_ambiguous() {
    let world = world(&["0 4 * * *", "0 5 * * *"]).await;
    declare(&world, json!([{"description": "nightly", "active": false}]));
    let plan = world.plan().await;
    assert_eq!(plan.steps.len(), 0, "{:#?}", plan.steps);
    let why: Vec<_> = plan.incomplete.iter().map(|one| one.reason.message.to_string()).collect();
    assert!(why.len() == 1 && why[0].contains("have the same `description`"), "{why:?}");
}

#[tokio::test]
async fn copies_and_unlisted_schedules_are_removed() {
    let world = world(&["0 4 * * *", "0 4 * * *"]).await;
    declare(&world, json!([{"description": "nightly"}]));
    let plan = world.converge("a copy").await;
    assert_eq!(plan.steps.iter().map(|step| step.action).collect::<Vec<_>>(), [Action::Delete]);
    assert_eq!(world.get(SCHEDULES).await.as_array().map(Vec::len), Some(1));
    declare(&world, json!([]));
    let plan = world.plan().await;
    assert_eq!(plan.steps.iter().map(|step| step.action).collect::<Vec<_>>(), [Action::Delete]);
}

/// The service looks up a short name among the existing branches, and refuses an unknown one.
#[tokio::test]
async fn a_schedule_waits_for_the_first_branch() {
    for release in [REFERENCE, NEWEST] {
        let there = [json!({"path": "acme/shop"})];
        let world = World::new(Profile::default().with_release(release), seed(&there)).await;
        let of = |name: &str| json!([{"description": name, "ref": name, "cron": "0 4 * * *"}]);
        declare(&world, of("main"));
        let plan = world.converge("an empty repository").await;
        assert!(plan.steps.is_empty(), "{:#?}", plan.steps);
        let waits =
            |plan: &Plan| plan.notes.iter().any(|note| matches!(note.reason, Reason::Waits { .. }));
        assert!(waits(&plan) && !plan.has_differences(Strictness::Declared), "{:#?}", plan.notes);
        let new = project("acme/neo", json!({"create": true, "pipeline_schedules": of("main")}));
        world.declare(&[new]);
        assert!(waits(&world.converge("a new project").await));
        // Its variables wait with it.
        for path in ["acme/shop", "acme/newer"] {
            let variables = json!([{"schedule": "main", "key": "V", "value": "1"}]);
            let sections = json!({"create": true, "pipeline_schedules": of("main"), "pipeline_schedule_variables": variables});
            world.declare(&[project(path, sections)]);
            let plan = world.converge("a schedule with a variable").await;
            let waiting = plan.notes.iter().map(|note| note.fields.clone());
            assert_eq!(waiting.collect::<Vec<_>>(), [["value"], ["ref"]], "{:#?}", plan.notes);
        }
        declare(&world, of("refs/heads/main"));
        assert_eq!(world.converge("a full name").await.steps.len(), 1);
        let file = "/projects/acme%2Fshop/repository/files/README.md";
        let commit = json!({"branch": "main", "content": "x", "commit_message": "first"});
        world.call("POST", file, Some(commit)).await;
        declare(&world, of("main"));
        let plan = world.converge("a branch").await;
        assert!(plan.steps.iter().any(|step| step.action == Action::Create), "{plan:#?}");
    }
}

/// The service changes inputs by name, and keeps those that a request lacks.
#[tokio::test]
async fn inputs_of_a_schedule_are_those_declared() {
    let world =
        World::new(Profile::default().with_release(NEWEST), seed(&[json!({"path": "acme/shop"})]))
            .await;
    for (inputs, shown) in [
        (
            json!([{"name": "deep", "value": true}, {"name": "target", "value": "a"}]),
            json!([{"name": "deep", "value": "true"}, {"name": "target", "value": "a"}]),
        ),
        (
            json!([{"name": "deep", "value": 7}, {"name": "parts", "value": ["a", "b"]}]),
            json!([{"name": "deep", "value": "7"}, {"name": "parts", "value": ["a", "b"]}]),
        ),
        (json!([{"name": "empty"}]), json!([{"name": "empty", "value": ""}])),
        (json!([]), json!([])),
    ] {
        let nightly = json!({
            "description": "nightly", "ref": "refs/heads/main", "cron": "0 4 * * *", "inputs": inputs,
        });
        declare(&world, json!([nightly]));
        assert_eq!(world.converge("inputs").await.steps.len(), 1);
        let live = world.get(SCHEDULES).await[0]["inputs"].clone();
        assert_eq!(live, shown);
    }
}

/// Two runs at once create equal schedules, one perhaps without its variables.
#[tokio::test]
async fn schedules_with_other_variables_are_no_copies() {
    for (second, are_copies) in [("prod", true), ("", true), ("staging", false)] {
        let world = world(&[]).await;
        for target in ["prod", second] {
            let schedule =
                json!({"description": "n", "ref": "refs/heads/main", "cron": "0 1 * * *"});
            let response = world.call("POST", SCHEDULES, Some(schedule)).await;
            let variable = json!({"key": "TARGET", "value": target});
            if !target.is_empty() {
                let variables = format!("{SCHEDULES}/{}/variables", response["id"]);
                world.call("POST", &variables, Some(variable)).await;
            }
        }
        declare(
            &world,
            json!([{"description": "n", "ref": "refs/heads/main", "cron": "0 1 * * *"}]),
        );
        let plan = world.plan().await;
        assert_eq!(plan.incomplete.is_empty(), are_copies, "{second}: {:?}", plan.incomplete);
        let removed: Vec<_> = plan.steps.iter().map(|step| (step.action, step.live_id())).collect();
        let second = world.get(SCHEDULES).await[1]["id"].as_u64();
        let expected = if are_copies { vec![(Action::Delete, second)] } else { Vec::new() };
        assert_eq!(removed, expected);
    }
}

/// The service accepts ten schedules: removals come first, as far as they must.
#[tokio::test]
async fn schedules_are_removed_first_if_the_service_would_have_too_many() {
    let mut world = world(&[]).await;
    world.acknowledged = vec!["removals:**"];
    let schedules = |names: std::ops::Range<usize>| {
        let entry = |name| json!({"description": format!("s{name}"), "ref": "refs/heads/main", "cron": "0 1 * * *"});
        names.map(entry).collect::<Json>()
    };
    declare(&world, schedules(0..9));
    world.converge("nine").await;
    declare(&world, schedules(2..12));
    let plan = world.converge("three others").await;
    let actions: Vec<_> = plan.steps.iter().map(|step| step.action).collect();
    let [delete, create] = [Action::Delete, Action::Create];
    assert_eq!(actions, [delete, delete, create, create, create]);
    declare(&world, schedules(20..30));
    world.converge("ten others").await;
}
