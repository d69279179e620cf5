//! Entries that keep what they have under a new name: `previously` in labels, milestones, schedules and
//! approval rules.

use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value as Json, json};
use undrift::{diff::Action, sandbox::Profile};

use crate::world::{NEWEST, World, project, seed};

const SHOP: &str = "/projects/acme%2Fshop";

/// The sections whose entries can be renamed: the field with the name, and the other fields of an entry.
fn renamable_sections() -> [(&'static str, &'static str, Json); 4] {
    [
        ("labels", "name", json!({"color": "#AABBCC"})),
        ("milestones", "title", json!({"description": "x"})),
        ("pipeline_schedules", "description", json!({"ref": "main", "cron": "0 4 * * *"})),
        ("approval_rules", "name", json!({"approvals_required": 1, "users": ["alice"]})),
    ]
}

async fn world() -> World {
    let shop = json!({"path": "acme/shop", "branches": ["main"], "members": [{"user": "alice", "access_level": "developer"}]});
    let mut seed = seed(&[shop]);
    seed["users"] = json!([{"username": "alice"}]);
    let profile = Profile::default().with_release(NEWEST);
    let mut world = World::new(profile, seed).await;
    world.acknowledged = vec!["protection:**", "removals:**"];
    world
}

/// Entries of `section` called `names`, each with the former names after it.
fn entries(section: &str, names: &[(&str, &[&str])]) -> Json {
    let (_, field, rest) =
        renamable_sections().into_iter().find(|(name, ..)| *name == section).unwrap();
    let entry = |(name, former): &(&str, &[&str])| {
        let mut entry = rest.clone();
        entry[field] = (*name).into();
        if !former.is_empty() {
            entry["previously"] = json!(former);
        }
        entry
    };
    names.iter().map(entry).collect()
}

fn declare(world: &World, section: &str, names: &[(&str, &[&str])]) {
    let unlisted = json!({section: "delete"});
    let sections = json!({section: entries(section, names), "unlisted": unlisted});
    world.declare(&[project("acme/shop", sections)]);
}

/// The ids of the live entries by name.
async fn ids(world: &World, section: &str) -> Vec<(String, u64)> {
    let (_, field, _) =
        renamable_sections().into_iter().find(|(name, ..)| *name == section).unwrap();
    let response = world.get(&format!("{SHOP}/{section}")).await;
    let one =
        |entry: &Json| (entry[field].as_str().unwrap().to_owned(), entry["id"].as_u64().unwrap());
    let mut found: Vec<_> = response.as_array().unwrap().iter().map(one).collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_renamed_entry_keeps_its_id() {
    for (section, ..) in renamable_sections() {
        let world = world().await;
        declare(&world, section, &[("old", &[])]);
        world.converge("a new entry").await;
        let [(_, id)] = ids(&world, section).await[..] else { panic!("{section}") };
        declare(&world, section, &[("new", &["older", "old"])]);
        let plan = world.converge("a renamed entry").await;
        assert_eq!(plan.steps.len(), 1, "{section}: {:#?}", plan.steps);
        assert_eq!(ids(&world, section).await, [("new".to_owned(), id)], "{section}");
    }
}

#[tokio::test]
async fn a_chain_of_renames_keeps_every_id() {
    for (section, ..) in renamable_sections() {
        let world = world().await;
        declare(&world, section, &[("b", &[]), ("c", &[])]);
        world.converge("two entries").await;
        let before = ids(&world, section).await;
        declare(&world, section, &[("a", &["b"]), ("b", &["c"]), ("c", &["x"])]);
        let plan = world.converge("a chain").await;
        assert!(plan.steps.iter().all(|step| step.action != Action::Delete), "{section}");
        let after = ids(&world, section).await;
        let kept: Vec<_> = after[..2].iter().map(|(_, id)| *id).collect();
        assert_eq!(kept, before.iter().map(|(_, id)| *id).collect::<Vec<_>>(), "{section}");
        assert_eq!(after.len(), 3, "{section}");
    }
}

#[tokio::test]
async fn live_old_and_new_names_are_a_problem_and_stay() {
    for (section, ..) in renamable_sections() {
        let world = world().await;
        declare(&world, section, &[("old", &[]), ("new", &[])]);
        world.converge("both").await;
        declare(&world, section, &[("new", &["old"])]);
        let plan = world.plan().await;
        let codes: Vec<_> = plan.problems.iter().map(|problem| problem.code).collect();
        assert_eq!((codes, plan.steps.len()), (vec!["previously"], 0), "{section}");
        world.apply().await;
        assert_eq!(ids(&world, section).await.len(), 2, "{section}");
    }
}

#[tokio::test]
async fn a_renamed_schedule_keeps_its_variables() {
    let world = world().await;
    let schedule = |name: &str, former: Json| {
        let mut schedule = json!({"description": name, "ref": "main", "cron": "0 4 * * *"});
        if !former.is_null() {
            schedule["previously"] = former;
        }
        let variable = json!({"schedule": name, "key": "MODE", "value": "full"});
        let sections = json!({
            "pipeline_schedules": [schedule], "pipeline_schedule_variables": [variable],
            "unlisted": {"pipeline_schedules": "delete", "pipeline_schedule_variables": "delete"},
        });
        world.declare(&[project("acme/shop", sections)]);
    };
    schedule("nightly", Json::Null);
    world.converge("a schedule with a variable").await;
    schedule("daily", json!(["nightly"]));
    let plan = world.converge("its new description").await;
    assert_eq!(plan.steps.len(), 1, "{:#?}", plan.steps);
}

/// Any renames of declared entries: the next plan is empty, and no entry is removed that is a former one
/// of another.
#[test]
fn any_renames_converge_and_remove_nothing() {
    use proptest::{prelude::*, sample::subsequence};
    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
    let order = Just(NAMES.to_vec()).prop_shuffle();
    let mut runner = TestRunner::new(Config::with_cases(12));
    let cases = (order, subsequence(NAMES.to_vec(), 0..=5), 1..5_usize);
    let result = runner.run(&cases, |(order, live, length)| {
        // Each name was the next one: a chain, which is no circle.
        let chain = &order[..=length.min(order.len() - 1)];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = world().await;
            let before: Vec<_> = live.iter().map(|name| (*name, &[][..])).collect();
            declare(&world, "labels", &before);
            world.converge("what is live").await;
            let former: Vec<[&str; 1]> = chain[1..].iter().map(|name| [*name]).collect();
            let renamed: Vec<_> =
                chain.iter().zip(&former).map(|(name, former)| (*name, &former[..])).collect();
            world.declare(&[project("acme/shop", json!({"labels": entries("labels", &renamed)}))]);
            let plan = world.plan().await;
            if plan.problems.is_empty() {
                let old = ids(&world, "labels").await;
                world.converge("renamed").await;
                let new = ids(&world, "labels").await;
                let kept = |(_, id): &(String, u64)| new.iter().any(|(_, other)| other == id);
                assert!(old.iter().all(kept), "{old:?} {new:?}");
            }
        });
        Ok(())
    });
    result.unwrap();
}
