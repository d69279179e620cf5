//! The selftest against the embedded service, with the same results on both sides.
#![cfg(all(unix, feature = "sandbox"))]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::Stdio,
};

use crate::{
    harness::Workspace,
    sandbox::{Server, send},
};

fn seed(tier: &str, more: &str) -> String {
    format!(
        "tier: {tier}\nusers: [{{username: alice}}]\ngroups: [{{path: acme}}, {{path: acme/void}}]\n{more}"
    )
}

/// The output without the random name.
fn without_name(text: &str) -> String {
    const PREFIX: &str = "undrift-selftest-";
    let mut parts = text.split(PREFIX);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + PREFIX + "[NAME]" + &part[8..])
}

#[test]
fn every_kind_is_tried_and_nothing_is_left() {
    for tier in ["free", "ultimate"] {
        let place = Workspace::new().file("sandbox.yaml", &seed(tier, ""));
        let text = place
            .run(&format!("selftest --group acme/void --user alice --tier {tier} --sandbox --yes"));
        insta::assert_snapshot!(format!("selftest_{tier}"), without_name(&text));
        let left = place.run("call group-descendant-list id=acme/void --sandbox");
        assert!(left.contains("[]"), "{left}");
    }
}

/// From release 18 on its remains are only marked for deletion, at another path.
#[test]
fn a_selftest_can_run_again_in_the_same_group() {
    let place = Workspace::new().file("sandbox.yaml", &seed("premium", "release: '18.9'\n"));
    for run in 0..2 {
        let text =
            place.run("selftest --group acme/void --user alice --tier premium --sandbox --yes");
        assert!(text.ends_with("---- exit code 0\n"), "{run}: {text}");
        assert!(!text.contains("delete it by hand"), "{run}: {text}");
    }
}

#[test]
fn a_group_in_use_or_not_owned_is_refused() {
    let used = "projects: [{path: acme/void/shop}]\n";
    for (seed, group, said) in [
        (seed("free", used), "acme/void", "the group `acme/void` is not empty: `acme/void/shop`"),
        (seed("free", used), "acme", "the group `acme` is not empty: `acme/void`"),
        (seed("free", ""), "acme/viod", "the group `acme/viod` does not exist"),
    ] {
        let place = Workspace::new().file("sandbox.yaml", &seed);
        let text = place.run(&format!("selftest --group {group} --sandbox --yes"));
        assert!(text.contains(said) && text.ends_with("---- exit code 3\n"), "{text}");
    }
    for (user, said) in [
        ("nosuch", "the user `nosuch` does not exist"),
        ("root", "the user `root` is the token's own user"),
    ] {
        let place = Workspace::new().file("sandbox.yaml", &seed("free", ""));
        let text = place.run(&format!("selftest --group acme/void --user {user} --sandbox --yes"));
        assert!(text.contains(said) && text.ends_with("---- exit code 3\n"), "{text}");
    }
    // Without a terminal no prompt is possible.
    let place = Workspace::new().file("sandbox.yaml", &seed("free", ""));
    let text = place.run("selftest --group acme/void --sandbox");
    assert!(text.contains("not a terminal") && text.ends_with("---- exit code 3\n"), "{text}");
    let left = place.run("call group-descendant-list id=acme/void --sandbox");
    assert!(left.contains("[]"), "{left}");
}

/// A service of a lower tier than declared behaves differently in many ways. The report shows the
/// differences without names.
#[test]
fn deviations_are_reported_without_names() {
    let place = Workspace::new().file("sandbox.yaml", &seed("free", ""));
    let arguments = "selftest --group acme/void --user alice --tier premium --sandbox --yes -o all";
    let screen = place.run(arguments);
    assert!(screen.ends_with("---- exit code 2\n") && screen.lines().count() < 40, "{screen}");
    let report = std::fs::read_to_string(place.path().join("all")).unwrap();
    assert!(
        report.contains("\nnot as expected:\n  create  ")
            && report.contains("push-rule-add answered 4")
            && report.ends_with("send this report to the project\n"),
        "{report}"
    );
    for name in ["acme", "void", "alice", "root", "127.0.0.1", "undrift-selftest-", "http"] {
        assert!(!report.contains(name), "{name}: {report}");
    }
    let left = place.run("call group-descendant-list id=acme/void --sandbox");
    assert!(left.contains("[]"), "{left}");
}

/// The terminal shows one screen; the file has every field, without names.
#[test]
fn the_report_file_of_a_selftest_has_every_field() {
    let place = Workspace::new().file("sandbox.yaml", &seed("free", ""));
    // Values in memory last until the end.
    let arguments =
        "selftest --group acme/void --attributes --sandbox=:memory: --yes -o report.txt";
    let screen = place.run(arguments);
    assert!(screen.ends_with("---- exit code 0\n") && screen.lines().count() < 30, "{screen}");
    let report = std::fs::read_to_string(place.path().join("report.txt")).unwrap();
    assert!(
        report.contains("\nleft out: project variables key: identifies the entry\n")
            && report.ends_with("\nthe service does the same as the sandbox\n"),
        "{report}"
    );
    let tried = report.lines().find(|line| line.starts_with("tried: ")).unwrap();
    let fields: usize = tried.split(&[' ', ','][..]).nth(4).unwrap().parse().unwrap();
    assert!(fields > 80, "{tried}");
    for name in ["acme", "void", "root", "127.0.0.1", "undrift-selftest-", "http"] {
        assert!(!report.contains(name), "{name}: {report}");
    }
}

/// A usual installation has no SAML for groups, and others ran a selftest before.
#[test]
fn a_usual_installation_has_no_deviations() {
    const SEED: &str = "tier: ultimate
release: '18.9'
saml: false
users: [{username: alice, token: alice-of-the-test}, {username: bob, token: bob-of-the-test}]
groups:
  - {path: hers, members: [{user: alice, access_level: owner}]}
  - {path: his, members: [{user: bob, access_level: owner}]}
";
    let place = Workspace::new()
        .file("seed.yaml", SEED)
        .env("UNDRIFT_SANDBOX_TOKEN", "root-token-of-the-test")
        .env("UNDRIFT_TOKEN", "alice-of-the-test");
    let server = Server::start(&place, "--seed seed.yaml");
    for (place, group, other) in [
        (&place, "hers", "bob"),
        (&Workspace::new().env("UNDRIFT_TOKEN", "bob-of-the-test"), "his", "alice"),
    ] {
        let url = &server.url;
        let arguments =
            format!("selftest --group {group} --user {other} --tier ultimate --yes --url {url}");
        let text = place.run(&arguments);
        assert!(text.ends_with("---- exit code 0\n"), "{text}");
        assert!(text.contains("left out: 1 kind: the service refuses it\n"), "{text}");
    }
    server.end("-TERM");
}

#[test]
fn a_signal_ends_the_selftest_and_its_objects_are_removed() {
    let place = Workspace::new()
        .file("seed.yaml", &seed("ultimate", ""))
        .env("UNDRIFT_SANDBOX_TOKEN", "root-token-of-the-test")
        .env("UNDRIFT_TOKEN", "root-token-of-the-test");
    let server = Server::start(&place, "--seed seed.yaml --latency 20");
    let arguments = format!("selftest --group acme/void --user alice --yes --url {}", server.url);
    let mut child =
        place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("everything happens in `acme/void/"), "{line}");
    let below = format!("call group-descendant-list id=acme/void --url {}", server.url);
    while place.run(&below).contains("[]") {}
    send("-INT", &child);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("interrupted"), "{rest}");
    assert!(place.run(&below).contains("[]"));
    server.end("-TERM");
}
