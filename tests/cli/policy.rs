//! The part of a plan that runs, guard refusals, and what counts as a difference.
#![cfg(feature = "sandbox")]

use crate::harness::{Workspace, expect_exit};

const SEED: &str = "users: [{username: alice}, {username: bob}]
groups: [{path: acme, visibility: public, members: [{user: root, access_level: owner}, {user: bob, access_level: guest}]}]
projects:
  - {path: acme/shop, settings: {visibility: private}, hooks: [{url: 'https://a.example.org'}]}
  - {path: acme/site, settings: {visibility: private}, hooks: [{url: 'https://a.example.org'}]}
";

/// A folder, and a service with two projects.
fn place() -> Workspace {
    Workspace::new().file("sandbox.yaml", SEED)
}

/// A project that would become public.
fn public(path: &str) -> String {
    format!("kind: Project\npath: {path}\nsettings: {{visibility: public, description: new}}\n")
}

#[test]
fn containers_with_problems_are_left_out_and_the_rest_is_applied() {
    let place = place()
        .file("a.yaml", &public("acme/shop"))
        .file("b.yaml", "kind: Project\npath: acme/site\nsettings: {description: new}\n");
    let story =
        ["apply --sandbox --yes --all-or-nothing", "apply --sandbox --yes", "drift --sandbox"]
            .map(|arguments| place.run(arguments));
    insta::assert_snapshot!(story.join("\n"));
}

#[test]
fn similar_refusals_are_merged_and_acknowledged_by_one_glob() {
    let seed = format!("{SEED}  - {{path: acme/till, settings: {{visibility: private}}}}\n");
    let place = place().file("sandbox.yaml", &seed).file("a.yaml", &public("acme/shop"));
    let place = place.file("b.yaml", &public("acme/site")).file("c.yaml", &public("acme/till"));
    let story = [
        "plan --sandbox",
        "plan --sandbox --full",
        "plan --sandbox --ack visibility:acme/**#settings",
    ]
    .map(|arguments| place.run(arguments));
    insta::assert_snapshot!(story.join("\n"));
    let place = place.env("UNDRIFT_ACK", "visibility:acme/shop, visibility:acme/[st]i*#settings");
    assert_eq!(place.exit_code("plan --sandbox"), 0);
    assert_eq!(
        place.exit_code("plan --sandbox --ack visibility:acme/shop"),
        4,
        "the option is instead of the variable"
    );
    assert_eq!(place.exit_code("apply --sandbox --yes"), 0);
    let output = place.run("plan --sandbox");
    assert!(
        output.contains("warning[acknowledgement]")
            && output.contains("`visibility:acme/shop` acknowledges nothing that this run refuses")
            && output.ends_with("---- exit code 0\n"),
        "{output}"
    );
    let wrong = place.env("UNDRIFT_ACK", "everything");
    assert!(wrong.run("plan --sandbox").contains("UNDRIFT_ACK: copy GUARD:ADDRESS"));
}

#[test]
fn unlisted_entries_are_counted_and_are_differences_on_request() {
    let place = place().file("a.yaml", "kind: Project\npath: acme/shop\nhooks: []\n");
    let drift = expect_exit(0, place.run("drift --sandbox"));
    assert!(drift.contains("; 1 object not in any manifest\n"), "{drift}");
    assert_eq!(place.exit_code("drift --sandbox --strict"), 2);
    place.write("a.yaml", "kind: Project\npath: acme/shop\nhooks: []\nunlisted: {hooks: fail}\n");
    assert_eq!(place.exit_code("drift --sandbox"), 2);
    assert_eq!(place.exit_code("plan --sandbox --exit-code"), 2);
    assert_eq!(place.exit_code("plan --sandbox"), 0);
    insta::assert_snapshot!(place.run("apply --sandbox --yes"));
    // Excluded objects do not count as unlisted.
    let part = "drift --sandbox --strict --exclude acme/shop#hooks/other";
    let hooks = "hooks: [{name: other, url: 'https://b.example.org', state: absent}]";
    place.write("a.yaml", &format!("kind: Project\npath: acme/shop\n{hooks}\n"));
    assert_eq!(place.exit_code("drift --sandbox --strict"), 2);
    assert_eq!(place.exit_code(part), 0);
}

#[test]
fn a_project_archived_by_hand_is_a_difference_and_is_skipped() {
    let place = Workspace::new()
        .file(
            "sandbox.yaml",
            "groups: [{path: acme}]\nprojects: [{path: acme/shop, archived: true}]\n",
        )
        .file("a.yaml", "kind: Project\npath: acme/shop\nsettings: {description: new}\n");
    let story = ["drift --sandbox", "apply --sandbox --yes"].map(|arguments| place.run(arguments));
    insta::assert_snapshot!(story.join("\n"));
    place.write(
        "a.yaml",
        "kind: Project\npath: acme/shop\nsettings: {description: new}\narchived: true\n",
    );
    assert_eq!(place.exit_code("drift --sandbox"), 0);
    assert_eq!(place.exit_code("drift --sandbox --strict"), 0);
}

#[test]
fn groups_are_changed_as_declared() {
    let place = place().file(
        "acme.yaml",
        "kind: Group
path: acme
members:
  - {user: root, access_level: owner}
  - {user: alice, access_level: developer}
  - {user: bob, access_level: reporter}
---
kind: Project
path: acme/shop
members: [{user: alice, access_level: guest}]
",
    );
    let story = ["plan --sandbox", "apply --sandbox --yes --only acme", "plan --sandbox"]
        .map(|arguments| place.run(arguments));
    insta::assert_snapshot!(story.join("\n"));
}

/// Seven projects, one of them declared, and two that a rule excludes.
fn undeclared() -> Workspace {
    let projects: Vec<_> = (1..=7).map(|i| format!("  - {{path: acme/p{i}}}\n")).collect();
    let seed = format!(
        "groups: [{{path: acme}}]\nprojects:\n  - {{path: acme/old, archived: true}}\n  - {{path: acme/older, archived: true}}\n{}",
        projects.concat()
    );
    Workspace::new()
        .file("sandbox.yaml", &seed)
        .file(
            "rules.yaml",
            "kind: Defaults\nmatch: {path: acme/**}\nundeclared: include\nsettings: {merge_method: ff}\n",
        )
        .file("a.yaml", "kind: Project\npath: acme/p1\n")
}

#[test]
fn undeclared_projects_are_included_and_changed_in_several_runs() {
    let place = undeclared();
    let story = [
        "check",
        "plan --sandbox",
        "apply --sandbox --yes",
        "apply --sandbox --yes --limit 4",
        "plan --sandbox --only acme/p1",
        "plan --sandbox --only acme/p7",
        "apply --sandbox --yes --ack reach:acme/**",
        "drift --sandbox",
        "drift --sandbox --only acme/nothing",
        "plan --sandbox --limit 0",
    ]
    .map(|arguments| place.run(arguments));
    insta::assert_snapshot!(story.join("\n"));
}

#[test]
fn the_reach_of_rules_is_configured_and_acknowledged_in_git() {
    let place = undeclared();
    assert_eq!(place.exit_code("plan --sandbox"), 4);
    place.write("ack.yaml", "kind: Acknowledge\nguard: reach\nat: acme/**\nat_most: 5\n");
    assert!(place.run("plan --sandbox").contains("allows at most 5"));
    place.write("ack.yaml", "kind: Acknowledge\nguard: reach\nat: acme/**\nat_most: 6\n");
    assert_eq!(place.exit_code("plan --sandbox"), 0);
    place.write("ack.yaml", "");
    place.write("undrift.yaml", "version: 1\nguards: {reach: {count: 6, share: 1}}\n");
    assert_eq!(place.exit_code("plan --sandbox"), 0);
    place.write("undrift.yaml", "version: 1\nguards: {reach: {count: 5, share: 1}}\n");
    assert_eq!(place.exit_code("plan --sandbox"), 4);
}

#[test]
fn a_rule_with_a_conflict_in_one_project_stops_the_run() {
    let place = undeclared();
    place.write(
        "more.yaml",
        "kind: Defaults\nmatch: {path: '**/p7'}\nsettings: {merge_method: merge}\n",
    );
    let said = place.run("plan --sandbox --out json=-");
    assert!(said.contains("error[ambiguous-layers]") && said.contains("for `acme/p7`"), "{said}");
    assert!(said.contains("\"status\": \"failed\"") && said.ends_with("exit code 3\n"), "{said}");
}
