//! A snapshot of a service, and plans from it: without a token, and without a connection.
#![cfg(feature = "sandbox")]

use serde_json::{Value as Json, json};

use crate::harness::Workspace;
#[cfg(unix)]
use crate::{front, sandbox::Server};

const MANIFEST: &str = "kind: Project
path: acme/shop
settings: {description: new}
members: [{user: alice, access_level: developer}]
";
const SEED: &str = "users: [{username: alice}]
groups: [{path: acme}]
projects: [{path: acme/shop}]
";

fn place() -> Workspace {
    Workspace::new().file("shop.yaml", MANIFEST).file("sandbox.yaml", SEED)
}

fn take_snapshot() -> (Workspace, Json) {
    let place = place();
    let output = place.output("snapshot --sandbox=:memory: -o live.json");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = std::fs::read_to_string(place.path().join("live.json")).unwrap();
    (place, serde_json::from_str(&text).unwrap())
}

/// The output and the exit code of `undrift ARGUMENTS`.
fn run_text(place: &Workspace, arguments: &str) -> (i32, String) {
    let output = place.output(arguments);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_plan_from_a_snapshot_says_how_old_it_is() {
    let (place, mut snapshot) = take_snapshot();
    assert_eq!(snapshot["undrift"], "snapshot");
    let (code, text) = run_text(&place, "plan --live live.json --out json=plan.json");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("from the snapshot of") && text.contains("members/alice"), "{text}");
    let plan = std::fs::read_to_string(place.path().join("plan.json")).unwrap();
    let plan: Json = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["live"], json!({"taken_at": snapshot["taken_at"]}));
    snapshot["taken_at"] = "2020-02-03T04:05:06Z".into();
    place.write("live.json", &snapshot.to_string());
    let (_, text) = run_text(&place, "plan --live live.json");
    assert!(text.contains("from the snapshot of 2020-02-03 04:05 UTC, "), "{text}");
    assert!(text.contains("warning: the snapshot was taken"), "{text}");
    assert_eq!(run_text(&place, "drift --live live.json").0, 2);
}

#[test]
fn a_snapshot_of_another_service_is_refused() {
    let (place, mut snapshot) = take_snapshot();
    snapshot["target"] = "https://one.example.org".into();
    place.write("live.json", &snapshot.to_string());
    assert_eq!(run_text(&place, "plan --live live.json").0, 0);
    let place = place.env("UNDRIFT_URL", "https://one.example.org/api/v4");
    assert_eq!(run_text(&place, "plan --live live.json").0, 0);
    let place = place.env("UNDRIFT_URL", "https://other.example.org");
    let (code, text) = run_text(&place, "plan --live live.json");
    let why = "the snapshot is for `https://one.example.org`, but UNDRIFT_URL is `https://other.example.org`";
    assert!(code == 5 && text.contains(why), "{code} {text}");
    let (place, _) = take_snapshot();
    place.write("undrift.yaml", "version: 1\nservice: {url: 'https://third.example.org'}\n");
    snapshot["target"] = "https://one.example.org".into();
    place.write("live.json", &snapshot.to_string());
    let (code, text) = run_text(&place, "plan --live live.json");
    assert!(code == 5 && text.contains("`service.url` in undrift.yaml"), "{code} {text}");
}

#[test]
fn a_file_that_is_no_snapshot_is_refused() {
    let (place, snapshot) = take_snapshot();
    let text = snapshot.to_string();
    let mut other = snapshot.clone();
    other["format_version"] = 7.into();
    let mut twice = snapshot.clone();
    let object = twice["objects"][0].clone();
    twice["objects"].as_array_mut().unwrap().push(object);
    for (text, why) in [
        (text[..text.len() / 2].to_owned(), "it ends too early"),
        (String::new(), "it ends too early"),
        ("[1]".to_owned(), "no"),
        (other.to_string(), "it has format 7, but this undrift reads format 0"),
        (twice.to_string(), "is in it twice"),
    ] {
        place.write("live.json", &text);
        let (code, said) = run_text(&place, "plan --live live.json");
        assert!(code == 3 && said.contains(why), "{code} {said}");
    }
    let file = std::fs::File::create(place.path().join("live.json")).unwrap();
    file.set_len(500 << 20).unwrap();
    let (code, text) = run_text(&place, "plan --live live.json");
    assert!(code == 3 && text.contains("larger than 256 MiB"), "{code} {text}");
    let (code, text) = run_text(&place, "plan --live none.json");
    assert!(code == 3 && text.contains("undrift snapshot -o FILE"), "{code} {text}");
    for service in ["--url https://x.example.org", "--sandbox", "--token-file t"] {
        assert_eq!(run_text(&place, &format!("plan --live live.json {service}")).0, 3, "{service}");
    }
    assert_eq!(run_text(&place, "apply --live live.json").0, 3);
}

#[test]
fn a_snapshot_that_cannot_be_taken_leaves_no_old_one() {
    let (place, _) = take_snapshot();
    place.write("shop.yaml", "kind: Nothing\n");
    assert_eq!(run_text(&place, "snapshot --sandbox=:memory: -o live.json").0, 3);
    assert!(!place.path().join("live.json").exists());
    let (code, text) = run_text(&place, "snapshot --sandbox=:memory: -o no/such/folder/live.json");
    assert!(code == 3, "{text}");
}

#[test]
fn hidden_values_are_compared_only_with_the_snapshot_key() {
    const KEY: &str = "a-key-that-only-the-protected-branch-has";
    const DECLARED: &str = "kind: Project
path: acme/shop
variables:
  - {key: TOKEN, value: {env: SHOP_TOKEN}, masked: true}
  - {key: OPEN, value: seen}
";
    let place = |value: &str| {
        Workspace::new()
            .file("shop.yaml", DECLARED)
            .file("sandbox.yaml", SEED)
            .env("SHOP_TOKEN", value)
    };
    let first = place("the-first-value");
    assert_eq!(run_text(&first, "apply --sandbox=state.db --yes").0, 0);
    let first = first.env("UNDRIFT_SNAPSHOT_KEY", KEY);
    let (code, text) = run_text(&first, "snapshot --sandbox=state.db -o live.json");
    assert_eq!(code, 0, "{text}");
    let snapshot = std::fs::read_to_string(first.path().join("live.json")).unwrap();
    assert!(!snapshot.contains("the-first-value"), "{snapshot}");
    let job = |value: &str, key: Option<&str>| {
        let job = place(value).file("live.json", &snapshot);
        key.into_iter().fold(job, |job, key| job.env("UNDRIFT_SNAPSHOT_KEY", key))
    };
    for (value, key, steps) in [
        ("the-first-value", Some(KEY), 0),
        ("another-value", Some(KEY), 1),
        // Without the key nothing shows which value it is.
        ("the-first-value", None, 0),
        ("another-value", None, 0),
    ] {
        let job = job(value, key);
        let (code, text) = run_text(&job, "plan --live live.json --out json=plan.json");
        let plan = std::fs::read_to_string(job.path().join("plan.json")).unwrap_or_default();
        let plan: Json = serde_json::from_str(&plan).unwrap_or_default();
        let found = plan["steps"].as_array().map(Vec::len);
        assert_eq!((code, found), (0, Some(steps)), "{value} {key:?}: {text}");
        assert!(!text.contains(value), "{text}");
    }
    // With another key everything would seem to differ.
    for (key, code, why) in [
        ("a-key-that-somebody-else-invented", 5, "taken with another UNDRIFT_SNAPSHOT_KEY"),
        ("short", 3, "UNDRIFT_SNAPSHOT_KEY is shorter than 16 bytes"),
    ] {
        let (found, text) = run_text(&job("another-value", Some(key)), "plan --live live.json");
        assert!(found == code && text.contains(why), "{found} {text}");
    }
    let (code, text) = run_text(
        &place("x").env("UNDRIFT_SNAPSHOT_KEY", "short"),
        "snapshot --sandbox -o live.json",
    );
    assert!(code == 3 && text.contains("is shorter than"), "{code} {text}");
}

/// A list shows neither the former paths of a project nor where it is now.
#[test]
fn a_renamed_project_is_renamed_in_a_snapshot_too() {
    for create in ["", "create: true\n"] {
        let place = place();
        let manifest = MANIFEST.replace("settings", &format!("{create}settings"));
        place.write("shop.yaml", &(manifest + "---\nkind: Group\npath: acme\n"));
        assert_eq!(run_text(&place, "plan --sandbox=s.db").0, 0);
        let rename = "call project-edit id=acme/shop path=store --sandbox=s.db --yes";
        assert_eq!(run_text(&place, rename).0, 0);
        assert_eq!(run_text(&place, "snapshot --sandbox=s.db -o live.json").0, 0);
        for from in ["--live live.json", "--sandbox=s.db"] {
            let (code, text) = run_text(&place, &format!("plan {from}"));
            assert!(code == 3 && text.contains("is now `acme/store`"), "{code} {text}");
            assert!(!text.contains("create"), "{text}");
        }
    }
}

/// A plan from the snapshot lacks what the service refused, whatever the status is.
#[cfg(unix)]
#[test]
fn a_snapshot_names_what_plans_from_it_lack() {
    let place = place().env("UNDRIFT_SANDBOX_TOKEN", "a-token").env("UNDRIFT_TOKEN", "a-token");
    let manifest =
        MANIFEST.replace("members: ", "labels: [{name: bug, color: '#ff0000'}]\nmembers: ");
    place.write("shop.yaml", &manifest);
    let server = Server::start(&place, "--seed sandbox.yaml");
    for status in ["404 Not Found", "403 Forbidden"] {
        let url = front::start_proxy(&server.url, move |request, _| {
            let is_broken = request.starts_with("GET ") && request.contains("/labels");
            is_broken.then(|| front::json(status, "", r#"{"message": "no"}"#))
        });
        let (code, text) = run_text(&place, &format!("snapshot -o live.json --url {url}"));
        let warnings: Vec<_> = text.lines().filter(|line| line.starts_with("warning: ")).collect();
        let [warning] = warnings[..] else { panic!("{status}: {text}") };
        let names_part = ["acme/shop#labels", "label-list of `acme/shop`"];
        assert!(names_part.iter().any(|name| warning.contains(name)), "{warning}");
        assert!(code == 10 && text.contains("wrote `live.json`"), "{status}: {code} {text}");
        let plan = place.output("plan --live live.json --out json").stdout;
        let plan: Json = serde_json::from_slice(&plan).unwrap();
        assert_eq!(plan["incomplete"].as_array().map(Vec::len), Some(1), "{plan:#}");
    }
    server.end("-TERM");
}
