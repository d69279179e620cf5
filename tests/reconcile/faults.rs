//! A service that damages each read once, and loses the answer to each write once.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use undrift::sandbox::{Fault, Misfortune, Profile};

use crate::world::{Outcome, World, project, seed};

fn scenario() -> (Json, Vec<Json>) {
    let here = json!({
        "path": "acme/here",
        "settings": {"description": "old"},
        "variables": [{"key": "CHANGE", "value": "old"}, {"key": "GONE", "value": "x"}, {"key": "KEEP", "value": "x"}, {"key": "KEEP2", "value": "x"}],
        "members": [{"user": "bob", "access_level": 30}],
        "hooks": [{"url": "https://keep.example.org"}, {"url": "https://old.example.org"}],
        "push_rule": {"member_check": true},
    });
    let documents = vec![
        project(
            "acme/here",
            json!({
                "settings": {"description": "new"},
                "variables": [{"key": "CHANGE", "value": "new"}, {"key": "ADD", "value": "x"}, {"key": "GONE", "state": "absent"}],
                "members": [{"user": "bob", "access_level": "maintainer"}, {"user": "carol", "access_level": "guest"}],
                "hooks": [{"name": "moved", "url": "https://new.example.org", "previously": ["https://old.example.org"]}, {"name": "ci", "url": "https://ci.example.org"}],
                "push_rule": {"member_check": false},
            }),
        ),
        project(
            "acme/neo",
            json!({
                "create": true,
                "settings": {"description": "made", "ci_default_git_depth": 5},
                "variables": [{"key": "A", "value": "x"}],
                "members": [{"user": "alice", "access_level": "developer"}],
                "hooks": [{"name": "ci", "url": "https://ci.example.org"}],
                "push_rule": {"prevent_secrets": true},
            }),
        ),
    ];
    (seed(&[here]), documents)
}

/// The faults of the live state: unrequested objects, and duplicate or missing ones.
async fn wrong(world: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    let names = async |path: &str, name: &str| -> Vec<String> {
        let list = world.get(path).await;
        let mut names: Vec<_> = list
            .as_array()
            .into_iter()
            .flatten()
            .map(|e| e[name].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    for (path, name, want) in [
        ("/projects/acme%2Fhere/variables", "key", &["ADD", "CHANGE", "KEEP", "KEEP2"][..]),
        (
            "/projects/acme%2Fhere/hooks",
            "url",
            &["https://ci.example.org", "https://keep.example.org", "https://new.example.org"],
        ),
        ("/projects/acme%2Fhere/members", "username", &["bob", "carol"]),
        ("/projects/acme%2Fneo/variables", "key", &["A"]),
        ("/projects/acme%2Fneo/hooks", "url", &["https://ci.example.org"]),
        ("/projects/acme%2Fneo/members", "username", &["alice"]),
    ] {
        let found = names(path, name).await;
        if found != want {
            wrong.push(format!("{path}: {found:?}"));
        }
    }
    let depth = world.get("/projects/acme%2Fneo").await["ci_default_git_depth"].clone();
    if depth != 5 {
        wrong.push(format!("depth: {depth}"));
    }
    wrong
}

/// A service with acknowledgements for the scenario, which weakens protection.
async fn guarded(profile: Profile, seed: Json) -> World {
    let mut world = World::new(profile, seed).await;
    world.acknowledged = vec!["protection:**"];
    world
}

/// The calls of a run without faults, each once, as a method and a unique part of its path.
async fn calls() -> BTreeSet<(String, String)> {
    let (seed, documents) = scenario();
    let world = guarded(Profile::default(), seed).await;
    world.declare(&documents);
    world.converge("without faults").await;
    let requests = world.requests();
    assert_eq!(wrong(&world).await, [] as [&str; 0]);
    requests
        .iter()
        .filter_map(|request| request.split_once(' '))
        .map(|(m, p)| (m.to_owned(), p.split('?').next().unwrap().to_owned()))
        .collect()
}

/// Runs with one fault, then once more without; returns the output of the first run.
async fn with_fault(
    method: &str,
    path: &str,
    nth: u32,
    what: &Misfortune,
) -> (Result<Outcome, undrift::api::ApiError>, World) {
    let (seed, documents) = scenario();
    let fault = Fault {
        method: Some(method.parse().unwrap()),
        path_contains: path.to_owned(),
        nth,
        what: what.clone(),
    };
    let world = guarded(Profile { faults: vec![fault], ..Profile::default() }, seed).await;
    world.declare(&documents);
    let outcome = world.try_apply().await;
    (outcome, world)
}

async fn check(method: &str, path: &str, nth: u32, what: &Misfortune) {
    let about = format!("{what:?} on {method} {path}, the {nth}.");
    let (outcome, world) = with_fault(method, path, nth, what).await;
    if let Ok(outcome) = &outcome
        && let Some(applied) = &outcome.applied
        && applied.is_complete()
        && outcome.plan.incomplete.is_empty()
    {
        assert_eq!(wrong(&world).await, [] as [&str; 0], "{about}: the run said that all is well");
    }
    // In any case the next run repairs it, and no hook or variable exists twice.
    let second = world.apply().await;
    let applied = second.applied.unwrap_or_else(|| panic!("{about}: {:#?}", second.plan));
    assert!(applied.is_complete(), "{about}, second run: {applied:#?}");
    assert_eq!(wrong(&world).await, [] as [&str; 0], "{about}: after the second run");
}

/// Tries each of `faults` once at each of `calls`; without `UNDRIFT_EXHAUSTIVE` every second pair of them.
async fn check_each(calls: impl Iterator<Item = (String, String)>, faults: &[Misfortune]) {
    let all = std::env::var_os("UNDRIFT_EXHAUSTIVE").is_some();
    for (at, (method, path)) in calls.enumerate() {
        for (number, what) in faults.iter().enumerate() {
            if all || (at + number / 2).is_multiple_of(2) {
                check(&method, &path, 1, what).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_read_spoiled_once_leads_to_no_wrong_write() {
    let faults = [
        Misfortune::DropBefore,
        Misfortune::Truncate,
        Misfortune::EmptyBody,
        Misfortune::Html200,
        Misfortune::Redirect("http://127.0.0.1:9/".into()),
    ];
    let reads = calls().await.into_iter().filter(|(method, _)| method == "GET");
    check_each(reads, &faults).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_write_with_a_lost_answer_is_done_once() {
    let faults = [
        Misfortune::DropBefore,
        Misfortune::CommitThenDrop,
        Misfortune::StatusBefore(502),
        Misfortune::StatusAfter(502),
        Misfortune::Truncate,
        Misfortune::Html200,
    ];
    let writes = calls().await.into_iter().filter(|(method, _)| method != "GET");
    check_each(writes, &faults).await;
}

/// A read that always fails never looks like absence, and is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_always_fails_is_reported() {
    let reads = [
        "/projects/1/variables",
        "/projects/1/hooks",
        "/projects/1/members",
        "/projects/1/push_rule",
        "/users",
        "/namespaces",
    ];
    for path in reads {
        for what in [
            Misfortune::StatusBefore(500),
            Misfortune::StatusBefore(403),
            Misfortune::Html200,
            Misfortune::EmptyBody,
            Misfortune::Redirect("https://elsewhere.example.org/".into()),
        ] {
            let (outcome, world) = with_fault("GET", path, 0, &what).await;
            let about = format!("{what:?} on GET {path}");
            match outcome {
                Ok(outcome) => {
                    let complete =
                        outcome.plan.incomplete.is_empty() && outcome.plan.problems.is_empty();
                    assert!(!complete, "{about}: {:#?}", outcome.plan.steps);
                }
                Err(error) => assert!(!error.to_string().is_empty(), "{about}"),
            }
            let strange = world.writes().into_iter().filter(|write| {
                path.starts_with("/projects/1") && write.contains(&format!("/api/v4{path}"))
            });
            assert_eq!(
                strange.collect::<Vec<_>>(),
                [] as [&str; 0],
                "{about}: nothing is written where nothing was read"
            );
        }
    }
}

/// The run is killed after any of its writes, answered or not; the next run finishes the work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_killed_anywhere_is_finished_by_the_next() {
    let (_, documents) = scenario();
    let all = {
        let world = guarded(Profile::default(), scenario().0).await;
        world.declare(&documents);
        world.converge("without a kill").await;
        world.writes().len()
    };
    for writes in 0..=all {
        let world = guarded(Profile::default(), scenario().0).await;
        world.declare(&documents);
        tokio::select! {
            outcome = world.try_apply() => drop(outcome),
            () = async { while world.writes().len() < writes { tokio::task::yield_now().await } } => {}
        }
        let second = world.apply().await;
        let applied = second
            .applied
            .unwrap_or_else(|| panic!("killed after {writes} writes: {:#?}", second.plan));
        assert!(applied.is_complete(), "killed after {writes} writes: {applied:#?}");
        assert_eq!(wrong(&world).await, [] as [&str; 0], "killed after {writes} writes");
    }
}
