//! `undrift comment` and its refusals.
#![cfg(all(unix, feature = "sandbox"))]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::{front, harness::Workspace, sandbox::Server};

const SEED: &str = "
users: [{username: ci, token: token-of-ci}, {username: eve, token: token-of-eve}]
groups: [{path: acme, visibility: public}]
projects:
  - path: acme/shop
    members: [{user: ci, access_level: reporter}]
    merge_requests: [{title: Change}, {title: Done, state: merged, discussion_locked: true}]
";
const PLAN: &str = "<!-- undrift:plan -->\n## Plan\n\nnothing to do\n";

fn place() -> Workspace {
    Workspace::new()
        .file("seed.yaml", SEED)
        .file("plan.md", PLAN)
        .env("UNDRIFT_TOKEN", "token-of-ci")
        .env("CI_MERGE_REQUEST_PROJECT_ID", "1")
        .env("CI_MERGE_REQUEST_IID", "1")
}

#[test]
fn a_report_becomes_one_comment() {
    let place = place();
    let server = Server::start(&place, "--seed seed.yaml");
    let comment = format!("comment --report plan.md --url {}", server.url);
    let mut output = place.run(&comment);
    output += &place.run(&comment);
    place.write("plan.md", &PLAN.replace("nothing", "something"));
    output += &place.run(&comment);
    let other = format!("{comment} --project acme/shop --merge-request 2");
    output += &place.run(&other);
    let list = "call merge-request-note-list id=acme/shop merge_request_iid=1 --out ndjson";
    let notes = place.run(&format!("{list} --url {}", server.url));
    assert_eq!(notes.matches("something to do").count(), 1, "{notes}");
    assert!(notes.contains("---- exit code 0"), "{notes}");
    insta::assert_snapshot!(output.replace(&server.url, "[URL]"));
    server.end("-TERM");
}

#[test]
fn invalid_reports_are_not_posted() {
    let place = place()
        .file("other.md", "## Plan\n")
        .file("leak.md", &format!("{PLAN}token-of-ci\n"))
        .file("command.md", &format!("{PLAN}/merge\n"));
    let server = Server::start(&place, "--seed seed.yaml");
    let mut output = String::new();
    for arguments in [
        "--report missing.md",
        "--report other.md",
        "--report leak.md",
        "--report command.md",
        "--report plan.md --project acme/shop",
        "--report plan.md --project acme/shop --merge-request 7",
        "--report plan.md --project acme/none --merge-request 1",
    ] {
        output += &place.run(&format!("comment {arguments} --url {}", server.url));
    }
    let job = place.env("CI_JOB_TOKEN", "token-of-ci");
    output += &job.run(&format!("comment --report plan.md --url {}", server.url));
    let without_role = job.env("UNDRIFT_TOKEN", "token-of-eve").env("CI_JOB_TOKEN", "");
    output += &without_role.run(&format!("comment --report plan.md --url {}", server.url));
    let wrong_request = without_role.env("CI_MERGE_REQUEST_IID", "1/../2");
    output += &wrong_request.run(&format!("comment --report plan.md --url {}", server.url));
    // The id of a request differs each time.
    let without_ids = output.split(" (request ").map(|part| match part.split_once(')') {
        Some((id, rest)) if id.chars().all(|c| c.is_ascii_hexdigit()) => rest,
        _ => part,
    });
    let said: String = without_ids.collect();
    insta::assert_snapshot!(said.replace(&server.url, "[URL]"));
    server.end("-TERM");
}

#[test]
fn a_role_that_is_too_low_is_explained_and_nothing_is_tried_twice() {
    let place = place();
    let server = Server::start(&place, "--seed seed.yaml");
    let posts = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&posts);
    let url = front::start_proxy(&server.url, move |request, _| {
        request.starts_with("POST ").then(|| {
            seen.fetch_add(1, Ordering::SeqCst);
            front::json("403 Forbidden", "", r#"{"message":"403 Forbidden"}"#)
        })
    });
    let output = place.run(&format!("comment --report plan.md --url {url}"));
    assert!(
        output.contains("403") && output.contains("role Reporter") && output.ends_with("code 7\n"),
        "{output}"
    );
    assert_eq!(posts.load(Ordering::SeqCst), 1);
    server.end("-TERM");
}
