//! Entries below an entry of another section: schedule variables.

use serde_json::{Value as Json, json};
use undrift::{
    apply,
    diff::Reason,
    digest::DigestKey,
    export::SecretHandling,
    plan::Plan,
    sandbox::{FaultEffect, InjectedFault, Profile},
    secret::Secret,
};

use crate::world::{World, project, seed};

const SCHEDULES: &str = "/projects/acme%2Fshop/pipeline_schedules";
const MAIN: &str = "refs/heads/main";

/// A project with these schedules of bob's, each with its variables. The first has the id 1.
async fn world_with(profile: Profile, schedules: &[(&str, &[(&str, &str)])]) -> World {
    let members = json!([{"user": "bob", "access_level": "developer"}]);
    let there = [json!({"path": "acme/shop", "members": members})];
    let mut world = World::new(profile, seed(&there)).await;
    // An edit takes the schedule of another user over.
    world.acknowledged = vec!["removals:**", "protection:**"];
    for (name, variables) in schedules {
        let new = json!({"description": name, "ref": MAIN, "cron": "0 4 * * *", "sudo": "bob"});
        let id = world.call("POST", SCHEDULES, Some(new)).await["id"].clone();
        for (key, value) in *variables {
            let new = json!({"key": key, "value": value, "sudo": "bob"});
            let made = world.call("POST", &format!("{SCHEDULES}/{id}/variables"), Some(new)).await;
            assert_eq!(made["key"], *key, "{made}");
        }
    }
    world
}

async fn world(schedules: &[(&str, &[(&str, &str)])]) -> World {
    world_with(Profile::default(), schedules).await
}

fn schedule(name: &str) -> Json {
    json!({"description": name, "ref": MAIN, "cron": "0 4 * * *"})
}

fn variable(schedule: &str, key: &str, value: &str) -> Json {
    json!({"schedule": schedule, "key": key, "value": value})
}

fn declare(world: &World, sections: Json) {
    world.declare(&[project("acme/shop", sections)]);
}

/// The keys and values of the variables of a schedule.
async fn variables(world: &World, id: u64) -> Vec<(String, String)> {
    let response = world.get(&format!("{SCHEDULES}/{id}")).await;
    let text = |variable: &Json, name: &str| variable[name].as_str().unwrap().to_owned();
    let all = response["variables"].as_array().unwrap_or_else(|| panic!("{response}")).iter();
    let mut all: Vec<_> = all.map(|one| (text(one, "key"), text(one, "value"))).collect();
    all.sort();
    all
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// The writes since there were `before`, without what every path has.
fn writes_after(world: &World, before: usize) -> Vec<String> {
    let writes = world.writes().split_off(before);
    writes
        .into_iter()
        .map(|write| write.replace("/api/v4/projects/1/pipeline_schedules", ""))
        .collect()
}

fn steps(plan: &Plan) -> Vec<String> {
    let step = |step: &undrift::diff::Step| format!("{:?} {}", step.action, step.address);
    plan.steps.iter().map(step).collect()
}

#[tokio::test]
async fn variables_are_added_changed_and_removed_below_their_schedule() {
    let world = world(&[("nightly", &[("A", "1"), ("B", "2"), ("C", "3")]), ("weekly", &[])]).await;
    declare(
        &world,
        json!({
            "pipeline_schedule_variables": [
                variable("nightly", "A", "1"),
                variable("nightly", "B", "two"),
                {"schedule": "nightly", "key": "C", "state": "absent"},
                variable("weekly", "A", "other"),
            ],
        }),
    );
    let before = world.writes().len();
    let plan = world.converge("all of it").await;
    assert_eq!(
        steps(&plan),
        [
            "Update acme/shop#pipeline_schedule_variables/nightly@B",
            "Create acme/shop#pipeline_schedule_variables/weekly@A",
            "Delete acme/shop#pipeline_schedule_variables/nightly@C",
        ]
    );
    let mut writes = writes_after(&world, before);
    writes.retain(|write| !write.ends_with("/take_ownership"));
    writes.sort();
    assert_eq!(writes, ["DELETE /1/variables/C", "POST /2/variables", "PUT /1/variables/B"]);
    assert_eq!(variables(&world, 1).await, pairs(&[("A", "1"), ("B", "two")]));
    assert_eq!(variables(&world, 2).await, pairs(&[("A", "other")]));
    let shown = format!("{:?}", plan.steps[0].changes);
    assert!(shown.contains("Hidden") && !shown.contains("\"2\""), "{shown}");
}

#[tokio::test]
async fn only_the_schedules_that_are_named_are_read() {
    let all: &[(&str, &[(&str, &str)])] =
        &[("nightly", &[("A", "1"), ("B", "2")]), ("weekly", &[("A", "1")]), ("never", &[])];
    let world = world(all).await;
    let own = |declared: &World| {
        let reads = declared.requests().into_iter().filter(|request| request.starts_with("GET "));
        reads.filter(|read| read.contains("/pipeline_schedules")).collect::<Vec<_>>()
    };
    let mut seen = 0;
    for (sections, expected) in [
        (json!({"settings": {}}), &[][..]),
        (json!({"pipeline_schedules": [schedule("nightly")]}), &[""]),
        // No schedule is declared.
        (json!({"pipeline_schedule_variables": []}), &["", "/1", "/2", "/3"]),
        (json!({"pipeline_schedule_variables": [variable("nightly", "A", "1")]}), &["", "/1"]),
        (
            json!({
                "pipeline_schedules": [schedule("nightly"), schedule("weekly")],
                "pipeline_schedule_variables": [
                    variable("nightly", "A", "1"),
                    variable("nightly", "B", "2"),
                    {"schedule": "weekly", "key": "X", "state": "absent"},
                ],
                "unlisted": {"pipeline_schedule_variables": "report"},
            }),
            &["", "/1", "/2"],
        ),
    ] {
        declare(&world, sections.clone());
        let plan = world.plan().await;
        assert_eq!((plan.steps.len(), plan.incomplete.len()), (0, 0), "{plan:#?}");
        let reads = own(&world).split_off(seen);
        seen += reads.len();
        let path = |end: &&str| format!("GET /api/v4/projects/1/pipeline_schedules{end}");
        let mut reads: Vec<_> =
            reads.iter().map(|read| read.split('?').next().unwrap().to_owned()).collect();
        // Several schedules are read at once.
        reads.sort();
        assert_eq!(reads, expected.iter().map(path).collect::<Vec<_>>(), "{sections}");
        let unlisted = plan.notes.iter().filter(|note| matches!(note.reason, Reason::Unlisted));
        let unlisted = unlisted.map(|note| note.address.to_string());
        let unlisted: Vec<_> = unlisted.filter(|address| address.contains("_variables")).collect();
        // Nothing is reported about entries that were not read.
        let names = match expected.len() {
            0 | 1 => &[][..],
            2 => &["nightly@B"],
            3 => &["weekly@A"],
            _ => &["nightly@A", "nightly@B", "weekly@A"],
        };
        let address = |name: &&str| format!("acme/shop#pipeline_schedule_variables/{name}");
        assert_eq!(unlisted, names.iter().map(address).collect::<Vec<_>>(), "{sections}");
    }
}

#[tokio::test]
async fn unlisted_variables_are_removed_only_from_named_schedules() {
    let world = world(&[("nightly", &[("A", "1"), ("B", "2")]), ("weekly", &[("A", "1")])]).await;
    declare(
        &world,
        json!({
            "pipeline_schedule_variables": [variable("nightly", "A", "1")],
            "unlisted": {"pipeline_schedule_variables": "delete"},
        }),
    );
    let plan = world.converge("unlisted").await;
    assert_eq!(steps(&plan), ["Delete acme/shop#pipeline_schedule_variables/nightly@B"]);
    assert_eq!(variables(&world, 2).await, pairs(&[("A", "1")]));
}

#[tokio::test]
async fn a_new_schedule_is_created_before_its_variables() {
    let world = world(&[]).await;
    let new = |name: &str, create: bool| {
        let sections = json!({
            "pipeline_schedules": [schedule("a night/ly")],
            "pipeline_schedule_variables": [
                variable("a night/ly", "A", "1"),
                variable("a night/ly", "B", "2"),
            ],
        });
        let mut document = project(name, sections);
        if create {
            document["create"] = true.into();
        }
        document
    };
    world.declare(&[new("acme/shop", false), new("acme/neo", true)]);
    let plan = world.converge("new schedules").await;
    for path in ["acme/shop", "acme/neo"] {
        let address = format!("{path}#pipeline_schedules/a%20night%2Fly");
        let below = plan.steps.iter().filter(|step| {
            step.address.section == Some("pipeline_schedule_variables")
                && &*step.address.path == path
        });
        for step in below {
            assert!(step.after.iter().any(|edge| edge.address.to_string() == address), "{step:#?}");
            let call = &step.calls[0].path;
            assert!(call.ends_with("/pipeline_schedules/a%20night%2Fly/variables"), "{call}");
        }
    }
    for path in ["acme%2Fshop", "acme%2Fneo"] {
        let all = format!("/projects/{path}/pipeline_schedules");
        let id = world.get(&all).await[0]["id"].clone();
        let response = world.get(&format!("{all}/{id}")).await;
        assert_eq!(response["variables"].as_array().unwrap().len(), 2, "{response}");
    }
}

fn fault_profile(method: &str, path: &str, nth: u32, effect: FaultEffect) -> Profile {
    let fault = InjectedFault {
        method: Some(method.parse().unwrap()),
        path_contains: path.to_owned(),
        nth,
        effect,
    };
    Profile { faults: vec![fault], ..Profile::default() }
}

#[tokio::test]
async fn variables_of_a_failed_schedule_are_not_sent() {
    let refused = fault_profile("POST", "/pipeline_schedules", 1, FaultEffect::StatusBefore(403));
    let world = world_with(refused, &[]).await;
    declare(
        &world,
        json!({
            "pipeline_schedules": [schedule("nightly")],
            "pipeline_schedule_variables": [variable("nightly", "A", "1")],
        }),
    );
    let outcome = world.apply().await;
    let applied = outcome.applied.unwrap();
    let ends: Vec<_> = applied.steps.iter().map(|step| &step.outcome).collect();
    assert!(
        matches!(ends[..], [apply::StepOutcome::Failed(_), apply::StepOutcome::Skipped(_)]),
        "{ends:#?}"
    );
    assert_eq!(writes_after(&world, 0).len(), 1, "{:?}", world.writes());
    world.converge("the next run").await;
}

#[tokio::test]
async fn an_unknown_schedule_is_a_problem() {
    let world = world(&[("nightly", &[])]).await;
    declare(
        &world,
        json!({
            "pipeline_schedule_variables": [
                variable("nightlie", "A", "1"),
                {"schedule": "gone", "key": "A", "state": "absent"},
            ],
        }),
    );
    let plan = world.plan().await;
    assert_eq!((plan.steps.len(), plan.problems.len()), (0, 1), "{plan:#?}");
    let problem = &plan.problems[0];
    assert_eq!(problem.code, "unknown-entry");
    assert_eq!(problem.message, "nothing in `pipeline_schedules` is called `nightlie`");
}

/// Variables of a removed schedule need no request; `check` refuses declared variables of a
/// removed schedule.
#[tokio::test]
async fn a_removed_schedule_removes_its_variables_without_requests() {
    let all: &[(&str, &[(&str, &str)])] = &[("nightly", &[("A", "1"), ("B", "2")])];
    let absent = json!([{"description": "nightly", "state": "absent"}]);
    let gone = json!({"schedule": "nightly", "key": "A", "state": "absent"});
    let own = world(all).await;
    declare(
        &own,
        json!({
            "pipeline_schedules": absent,
            "pipeline_schedule_variables": [gone],
            "unlisted": {"pipeline_schedule_variables": "delete"},
        }),
    );
    let before = own.writes().len();
    let plan = own.converge("both").await;
    assert_eq!(steps(&plan), ["Delete acme/shop#pipeline_schedules/nightly"]);
    assert_eq!(writes_after(&own, before), ["DELETE /1"]);
}

#[tokio::test]
async fn somebody_elses_schedule_is_taken_over_before_its_variables_change() {
    let world = world(&[("nightly", &[("A", "1")])]).await;
    let with_value =
        |value: &str| json!({"pipeline_schedule_variables": [variable("nightly", "A", value)]});
    declare(&world, with_value("1"));
    assert!(world.plan().await.steps.is_empty(), "bob's, and as declared");
    let take = "POST /1/take_ownership";
    let gone = json!({"schedule": "nightly", "key": "A", "state": "absent"});
    for (sections, sent) in [
        (with_value("2"), vec![take, "PUT /1/variables/A"]),
        (with_value("3"), vec!["PUT /1/variables/A"]),
        (json!({"pipeline_schedule_variables": [gone]}), vec!["DELETE /1/variables/A"]),
    ] {
        declare(&world, sections);
        let before = world.writes().len();
        let plan = world.converge("taken").await;
        assert_eq!(writes_after(&world, before), sent);
        let besides =
            plan.notes.iter().filter(|note| matches!(note.reason, Reason::Besides { .. }));
        assert_eq!(besides.count(), sent.len() - 1, "{:?}", plan.notes);
    }
}

#[tokio::test]
async fn two_schedules_with_one_description_are_incomplete() {
    let world = world(&[("nightly", &[("A", "1")]), ("nightly", &[])]).await;
    declare(&world, json!({"pipeline_schedule_variables": [variable("nightly", "A", "2")]}));
    let plan = world.plan().await;
    let why: Vec<_> = plan.incomplete.iter().map(|one| &*one.reason.message).collect();
    assert_eq!(why, ["several pipeline schedules are named `nightly`"]);
    assert_eq!(plan.steps.len(), 0, "{:#?}", plan.steps);
}

#[tokio::test]
async fn variables_of_an_unreadable_schedule_are_incomplete() {
    for what in [
        FaultEffect::StatusBefore(500),
        FaultEffect::StatusBefore(403),
        FaultEffect::StatusBefore(404),
        FaultEffect::Html200,
        FaultEffect::EmptyBody,
    ] {
        let case = format!("{what:?}");
        let profile = fault_profile("GET", "/pipeline_schedules/2", 0, what);
        let world = world_with(profile, &[("nightly", &[("A", "1")]), ("weekly", &[])]).await;
        declare(
            &world,
            json!({
                "pipeline_schedule_variables": [
                    variable("nightly", "B", "2"),
                    variable("weekly", "A", "1"),
                ],
                "unlisted": {"pipeline_schedule_variables": "delete"},
            }),
        );
        let plan = world.plan().await;
        let unread: Vec<_> = plan.incomplete.iter().map(|one| one.address.to_string()).collect();
        assert_eq!(unread, ["acme/shop#pipeline_schedule_variables"], "{case}");
        assert_eq!(plan.steps.len(), 0, "{case}: {:#?}", plan.steps);
    }
}

/// Whatever happens to one write, the next run finds what is missing and adds nothing twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_failed_or_unanswered_write_takes_effect_once() {
    for (method, path) in [
        ("POST", "/take_ownership"),
        ("POST", "/1/variables"),
        ("PUT", "/1/variables/B"),
        ("DELETE", "/1/variables/C"),
        ("GET", "/pipeline_schedules/1"),
    ] {
        for what in [
            FaultEffect::DropBefore,
            FaultEffect::CommitThenDrop,
            FaultEffect::StatusBefore(502),
            FaultEffect::StatusAfter(502),
            FaultEffect::TooManyRequests(Some("1".to_owned())),
            FaultEffect::EmptyBody,
        ] {
            let case = format!("{what:?} on {method} {path}");
            // The first three create the live objects.
            let nth = if path == "/1/variables" { 3 } else { 1 };
            let profile = fault_profile(method, path, nth, what);
            let world = world_with(profile, &[("nightly", &[("B", "2"), ("C", "3")])]).await;
            declare(
                &world,
                json!({
                    "pipeline_schedule_variables": [
                        variable("nightly", "A", "1"),
                        variable("nightly", "B", "two"),
                        {"schedule": "nightly", "key": "C", "state": "absent"},
                    ],
                }),
            );
            let first = world.apply().await;
            let is_whole = first.plan.incomplete.is_empty()
                && first.applied.is_some_and(|applied| applied.is_complete());
            let wanted = pairs(&[("A", "1"), ("B", "two")]);
            assert!(!is_whole || variables(&world, 1).await == wanted, "{case}");
            assert!(is_whole || method == "GET" || case.contains("Empty"), "{case}");
            let second = world.apply().await;
            assert!(second.applied.unwrap().is_complete(), "{case}: {:#?}", second.plan);
            assert_eq!(variables(&world, 1).await, wanted, "{case}");
        }
    }
}

#[tokio::test]
async fn exported_schedule_variables_give_an_empty_plan() {
    let looks_secret = "glpat-abcdefghij0123456789";
    let all: &[(&str, &[(&str, &str)])] =
        &[("nightly", &[("A", "1"), ("TOKEN", looks_secret)]), ("weekly", &[("A", "1")])];
    for values in [SecretHandling::Plain, SecretHandling::Env] {
        let mut world = world(all).await;
        let written = world.export(values).await;
        let text = crate::export::join_files(&written);
        assert!(!text.contains(looks_secret), "{text}");
        assert_eq!(text.matches("schedule: nightly").count(), 2, "{text}");
        assert_eq!(text.matches("schedule: weekly").count(), 1, "{text}");
        let secret = written.secrets.values().any(|secret| secret.expose() == looks_secret);
        assert_eq!(secret, values == SecretHandling::Env);
        world.assert_empty_plan(&written).await;
    }
}

#[tokio::test]
async fn drift_of_variables_is_absorbed() {
    let world = world(&[("nightly", &[("A", "1"), ("NEW", "2")]), ("weekly", &[("X", "9")])]).await;
    declare(
        &world,
        json!({
            "pipeline_schedule_variables": [variable("nightly", "A", "old")],
            "unlisted": {"pipeline_schedule_variables": "fail"},
        }),
    );
    let text = world.absorb_all(&["**"]).await;
    let plan = world.plan().await;
    assert_eq!((plan.steps.len(), plan.notes.len()), (0, 0), "{text}\n{plan:#?}");
    assert!(text.contains("NEW") && !text.contains("weekly"), "{text}");
}

#[tokio::test]
async fn a_plan_from_a_snapshot_equals_the_live_plan() {
    let world =
        world(&[("nightly", &[("A", "one-value"), ("B", "canary-7")]), ("weekly", &[("A", "x")])])
            .await;
    let with = |a: &str, b: &str| {
        let new = variable("nightly", "NEW", "x");
        json!({
            "pipeline_schedule_variables": [variable("nightly", "A", a), variable("nightly", "B", b), new],
        })
    };
    declare(&world, with("one-value", "other"));
    let text = world.snapshot().await;
    assert!(!text.contains("canary"), "{text}");
    assert!(text.contains("one-value"), "declared in plain text: {text}");
    let create = "Create acme/shop#pipeline_schedule_variables/nightly@NEW";
    // Omitted values are compared with nothing.
    assert_eq!(steps(&world.plan_from(&text).await), [create]);
    let key = || Some(DigestKey::new(&Secret::new("the key of the protected branch")));
    let sealed = world.snapshot_with(key()).await;
    assert!(!sealed.contains("canary"), "{sealed}");
    let update = "Update acme/shop#pipeline_schedule_variables/nightly@B";
    let plan = world.plan_with_key(&sealed, key()).await;
    assert_eq!(steps(&plan), [update, create]);
    assert_eq!(steps(&plan), steps(&world.plan().await));
    declare(&world, with("one-value", "canary-7"));
    assert_eq!(steps(&world.plan_with_key(&sealed, key()).await), [create]);
    // A schedule that nobody named then was not read.
    declare(&world, json!({"pipeline_schedule_variables": [variable("weekly", "A", "x")]}));
    let plan = world.plan_from(&text).await;
    assert_eq!((plan.steps.len(), plan.incomplete.len()), (0, 1), "{plan:#?}");
}
