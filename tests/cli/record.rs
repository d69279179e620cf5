//! The record of apply runs.
#![cfg(all(unix, feature = "sandbox"))]

use std::{
    io::{BufRead as _, BufReader},
    process::{Output, Stdio},
    sync::{Mutex, mpsc::channel},
};

use serde_json::Value;

use crate::{
    front,
    harness::{Workspace, expect_exit},
    sandbox::{Server, send},
};

const SHOP: &str = "kind: Project\npath: acme/shop\nsettings: {description: What we sell}\n";
const SEED: &str = "groups: [{path: acme, visibility: public}]\nprojects: [{path: acme/shop}]\n";

fn place() -> Workspace {
    let place = Workspace::new().file("m/shop.yaml", SHOP).file("m/sandbox.yaml", SEED);
    place
        .env("CI_PROJECT_PATH", "acme/config")
        .env("CI_MERGE_REQUEST_IID", "7")
        .env("CI_PIPELINE_ID", "12")
        .env("CI_COMMIT_SHA", "0123abcd")
}

/// The lines of the record, each valid according to the schema.
fn lines(place: &Workspace) -> Vec<Value> {
    let schema: Value = serde_json::from_slice(&place.output("schema record").stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let text = std::fs::read_to_string(place.path().join("record.jsonl")).unwrap();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let errors: Vec<_> = validator.iter_errors(&line).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} in {line:#}");
        line
    };
    text.lines().map(line).collect()
}

#[test]
fn each_run_adds_one_line_whatever_its_result() {
    let place = place();
    let mut codes = Vec::new();
    let mut run = |manifest: &str, options: &str| {
        place.write("m/shop.yaml", manifest);
        let arguments = format!("apply m --sandbox --record record.jsonl {options}");
        codes.push(place.output(&arguments).status.code().unwrap());
    };
    run(SHOP, "--yes");
    run(SHOP, "--yes");
    run("kind: Project\npath: [\n", "--yes");
    let public = SHOP.replace("description: What we sell", "visibility: public");
    run(&public, "--yes");
    run(&public, "--yes --ack visibility:acme/shop#settings");
    run(&SHOP.replace("What", "All that"), "");
    assert_eq!(codes, [0, 0, 3, 4, 0, 3]);
    let lines = lines(&place);
    let told: Vec<_> =
        lines.iter().map(|line| line["exit_code"].as_i64().unwrap() as i32).collect();
    assert_eq!(told, codes);
    let first = &lines[0];
    assert_eq!((&first["run"]["caller"], &first["run"]["sandbox"]), (&"root".into(), &true.into()));
    assert_eq!(first["counts"]["done"], 1);
    assert_eq!(
        (&first["job"]["project"], &first["job"]["merge_request"], &first["job"]["pipeline"]),
        (&"acme/config".into(), &"7".into(), &"12".into())
    );
    assert!(first["job"]["job"].is_null() && first["job"]["commit"] == "0123abcd");
    assert!(lines[1]["counts"].is_null(), "nothing was started");
    assert!(lines[2]["run"].is_null() && lines[2]["error"].is_string(), "{:#}", lines[2]);
    assert_eq!(lines[4]["acknowledgements"], serde_json::json!(["visibility:acme/shop#settings"]));
    assert!(lines.iter().all(|line| line["started_at"].as_str() <= line["ended_at"].as_str()));
}

#[test]
fn a_file_that_cannot_be_opened_is_refused_before_anything_is_done() {
    let place = place();
    let run = expect_exit(3, place.run("apply m --sandbox --yes --record nowhere/record.jsonl"));
    assert!(run.contains("error: cannot write the record `nowhere/record.jsonl`: "), "{run}");
    assert!(!place.path().join("m/.undrift").exists(), "the service was not even started");
}

/// Starts a command, and interrupts it while it reads a project.
fn interrupt_run(command: &str) -> (Workspace, Output) {
    let place = place().env("UNDRIFT_SANDBOX_TOKEN", "a-token").env("UNDRIFT_TOKEN", "a-token");
    let server = Server::start(&place, "--seed m/sandbox.yaml");
    let (tell, held) = channel();
    let (release, wait) = channel::<()>();
    let gate = Mutex::new((tell, wait));
    let url = front::start_proxy(&server.url, move |request, _| {
        if request.contains("/projects/") {
            let gate = gate.lock().unwrap();
            // Nothing waits for either after the run.
            let _ = gate.0.send(());
            let _ = gate.1.recv();
        }
        None
    });
    let command = format!("{command} --url {url}");
    let child = place.command(&command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap();
    held.recv().unwrap();
    send("-INT", &child);
    let output = child.wait_with_output().unwrap();
    drop(release);
    assert_eq!(output.status.code(), Some(130), "{command}");
    server.end("-TERM");
    (place, output)
}

/// A signal before the first write ends the run at once, and is in the record.
#[test]
fn a_run_interrupted_while_planning_adds_a_record_line() {
    let (place, _) = interrupt_run("apply m --yes --record record.jsonl");
    let lines = lines(&place);
    assert_eq!((lines.len(), &lines[0]["exit_code"]), (1, &130.into()));
    assert_eq!(
        (&lines[0]["error"], &lines[0]["run"]["caller"]),
        (&"interrupted".into(), &"root".into())
    );
}

/// The second signal ends the run at once. The record counts what is certain until then.
#[test]
fn a_run_ended_by_a_second_signal_records_its_steps() {
    let place = Workspace::new()
        .file(
            "m/shop.yaml",
            "kind: Project
path: acme/shop
create: true
members: [{user: alice, access_level: developer}]
protected_branches: [{name: main, allowed_to_push: [{user: alice}]}]
",
        )
        .file(
            "seed.yaml",
            "users: [{username: alice}]
groups: [{path: acme, visibility: public, members: [{user: root, access_level: owner}]}]
",
        )
        .env("UNDRIFT_SANDBOX_TOKEN", "a-token")
        .env("UNDRIFT_TOKEN", "a-token");
    let server = Server::start(&place, "--seed seed.yaml");
    let (tell, held) = channel();
    let (release, wait) = channel::<()>();
    let gate = Mutex::new((tell, wait));
    let url = front::start_proxy(&server.url, move |request, _| {
        if request.starts_with("POST ") && request.ends_with("/members") {
            let gate = gate.lock().unwrap();
            // Nothing waits for either after the run.
            let _ = gate.0.send(());
            let _ = gate.1.recv();
        }
        None
    });
    let command = format!("apply m --yes --record record.jsonl --url {url}");
    let mut child =
        place.command(&command).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    held.recv().unwrap();
    send("-INT", &child);
    let mut lines_of_stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines_of_stderr.any(|line| line.unwrap().contains("interrupt again to stop")));
    send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(release);
    server.end("-TERM");
    let lines = lines(&place);
    assert_eq!((lines.len(), &lines[0]["error"]), (1, &"interrupted".into()));
    let counts = &lines[0]["counts"];
    let found = ["done", "unknown", "not_started", "failed"].map(|outcome| &counts[outcome]);
    assert_eq!(found, [1, 1, 1, 0], "{counts:#}");
}

/// Commands that only read also report a signal.
#[test]
fn an_interrupted_read_is_reported() {
    for command in ["plan m", "drift m", "snapshot m -o live.json"] {
        let (place, output) = interrupt_run(command);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("\ninterrupted: nothing was changed\n"), "{command}: {stderr}");
        assert!(output.stdout.is_empty() && !place.path().join("live.json").exists(), "{command}");
    }
}
