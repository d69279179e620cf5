//! Machine-readable reports: every run leaves its own, with its final state.
#![cfg(all(unix, feature = "sandbox"))]

use std::fmt::Write as _;

use serde_json::Value;

use crate::{
    harness::{Workspace, expect_exit},
    sandbox::Server,
};

const SHOP: &str =
    "kind: Project\npath: acme/shop\nsettings: {description: What we sell, visibility: public}\n";
const SEED: &str = "groups: [{path: acme, visibility: public}]\nprojects: [{path: acme/shop}, {path: acme/other}]\n";

fn shop() -> Workspace {
    Workspace::new().file("shop.yaml", SHOP).file("sandbox.yaml", SEED)
}

fn report(place: &Workspace, file: &str) -> Value {
    let text = std::fs::read_to_string(place.path().join(file)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Files in the folder that the test did not put there.
fn report_files(place: &Workspace) -> Vec<String> {
    let entries = std::fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut left: Vec<_> = entries.filter(|name| name.contains("report")).collect();
    left.sort();
    left
}

#[test]
fn every_run_leaves_its_own_report() {
    let broken = "kind: Project\npath: acme/broken\nsettings: {visiblity: private}\n";
    for (arguments, exit, status, sort) in [
        ("plan . --sandbox", 4, "finished", "plan"),
        ("plan . --sandbox --ack visibility:acme/shop#settings", 0, "finished", "plan"),
        ("plan . --sandbox --max-requests 0", 8, "failed", "plan"),
        ("plan . --sandbox --only nothing/*", 3, "failed", "plan"),
        ("plan .", 3, "failed", "plan"),
        ("plan nowhere", 3, "failed", "plan"),
        ("plan --sandbox my.db", 3, "failed", "plan"),
        ("plan . --url http://127.0.0.1:9 --token-file absent", 3, "failed", "plan"),
        ("apply . --sandbox --yes", 4, "finished", "plan"),
        ("apply . --sandbox --ack visibility:acme/shop#settings", 3, "failed", "apply"),
        ("apply . --sandbox --yes --ack visibility:acme/shop#settings", 0, "finished", "apply"),
        ("apply . --url https://gitlab.example.org", 3, "failed", "apply"),
        ("drift . --sandbox", 2, "finished", "drift"),
        ("drift . --sandbox=:memory: --allow-env [", 3, "failed", "drift"),
        ("check .", 0, "finished", "check"),
        ("check broken", 3, "finished", "check"),
        ("plan broken --sandbox", 3, "failed", "plan"),
    ] {
        let place = shop()
            .file("broken/broken.yaml", broken)
            .file("report.json", "{\"exit_code\": \"of another run\"}\n");
        // Only this folder is meant, not those below.
        let place =
            if arguments.contains("broken") { place } else { place.file("broken/broken.yaml", "") };
        let run =
            place.run(&format!("{arguments} --out json=report.json --out json=report-2.json"));
        let report = self::report(&place, "report.json");
        assert_eq!(report, self::report(&place, "report-2.json"), "{run}");
        assert_eq!(report_files(&place), ["report-2.json", "report.json"], "{run}");
        assert!(run.ends_with(&format!("---- exit code {exit}\n")), "{run}");
        let told = (
            report["undrift"].as_str().unwrap(),
            report["status"].as_str().unwrap(),
            report["exit_code"].as_i64().unwrap(),
        );
        assert_eq!(told, (sort, status, exit), "{run}{report:#}");
        assert_eq!(report["error"].is_string(), status == "failed", "{run}{report:#}");

        // Restore the service.
        let _ = std::fs::remove_dir_all(place.path().join(".undrift"));
        let output = place.output(&format!("{arguments} --out json=-"));
        let only: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!(only["undrift"], sort, "{only:#}");
    }
}

/// All formats of one run except JSON, as options.
const OTHER_FORMATS: &str = "--out markdown=report.md --out html=report.html --out codequality=report-cq.json --out json=report.json";

/// True if each report except JSON shows the run as finished.
fn finished_formats(place: &Workspace) -> [bool; 3] {
    let text = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    let (markdown, html) = (text("report.md"), text("report.html"));
    assert!(markdown.starts_with("<!-- undrift:"), "{markdown}");
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"), "{html}");
    let quality: Value = serde_json::from_str(&text("report-cq.json")).unwrap();
    let is_end = |issue: &Value| issue["severity"] == "blocker";
    [
        !markdown.contains("**The run did not finish**"),
        !html.contains("The run did not finish"),
        !quality.as_array().unwrap().iter().any(is_end),
    ]
}

#[test]
fn every_report_format_shows_how_the_run_ended() {
    for (arguments, status, terraform) in [
        ("plan . --sandbox", "finished", "{\"create\":0,\"update\":1,\"delete\":0}\n"),
        ("plan . --sandbox --max-requests 0", "failed", "{}\n"),
        ("plan nowhere", "failed", "{}\n"),
        ("plan .", "failed", "{}\n"),
        ("drift . --sandbox", "finished", "{\"create\":0,\"update\":1,\"delete\":0}\n"),
        ("apply . --sandbox", "finished", "{\"create\":0,\"update\":1,\"delete\":0}\n"),
        (
            "apply . --sandbox --yes --ack visibility:acme/shop#settings",
            "finished",
            "{\"create\":0,\"update\":1,\"delete\":0}\n",
        ),
        ("apply . --url https://gitlab.example.org", "failed", "{}\n"),
        ("check .", "finished", ""),
        ("check nowhere", "finished", ""),
    ] {
        let old = ["report.md", "report.html", "report-cq.json", "report-tf.json"];
        let place = old.into_iter().fold(shop(), |place, name| place.file(name, "of another run"));
        let counts =
            if terraform.is_empty() { "" } else { "--out gitlab-terraform=report-tf.json" };
        let run = place.run(&format!("{arguments} {OTHER_FORMATS} {counts}"));
        assert_eq!(report(&place, "report.json")["status"], status, "{run}");
        assert_eq!(finished_formats(&place), [status == "finished"; 3], "{run}");
        if !terraform.is_empty() {
            let counts = std::fs::read_to_string(place.path().join("report-tf.json")).unwrap();
            assert_eq!(counts, terraform, "{run}");
        }
    }
}

#[test]
fn a_killed_run_leaves_unfinished_reports() {
    // A service that accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = shop().env("UNDRIFT_TOKEN", "abcdefgh");
    let url = format!("http://{}", silent.local_addr().unwrap());
    let counts = "--out gitlab-terraform=report-tf.json";
    let mut run = place.command(&format!("plan --url {url} {OTHER_FORMATS} {counts}"));
    let mut run = run.stderr(std::process::Stdio::null()).spawn().unwrap();
    let connection = silent.accept().unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    drop(connection);
    assert_eq!(report(&place, "report.json")["status"], "unfinished");
    assert_eq!(finished_formats(&place), [false; 3]);
    assert_eq!(std::fs::read_to_string(place.path().join("report-tf.json")).unwrap(), "{}\n");
}

#[test]
fn an_output_replaces_no_other_file_of_the_run() {
    for arguments in [
        "plan --sandbox -o plan.json --out json=./plan.json",
        "apply --sandbox --yes --record plan.json --out json=plan.json",
        "plan --live plan.json --out json=plan.json",
        "drift --live plan.json --out json=plan.json",
        "plan --live plan.json -o plan.json",
    ] {
        let place = shop();
        std::fs::write(place.path().join("plan.json"), "before").unwrap();
        let run = expect_exit(3, place.run(arguments));
        assert!(run.contains("plan.json` is named for two purposes\n"), "{run}");
        let content = std::fs::read_to_string(place.path().join("plan.json")).unwrap();
        assert_eq!(content, "before", "{arguments}");
    }
}

#[test]
fn contradictory_reports_are_refused() {
    for (arguments, message) in [
        (
            "plan --sandbox --out json=report.json --out html=./report.json",
            "two reports would go to `./report.json`",
        ),
        (
            "plan --sandbox --out json=report.json --out markdown=- --out html=-",
            "only one report can go to stdout",
        ),
        (
            "check --out json=report.json --out gitlab-terraform=counts.json",
            "`check` has nothing to report as `gitlab-terraform`",
        ),
    ] {
        let place = shop();
        let run = expect_exit(3, place.run(arguments));
        assert!(run.contains(&format!("error: {message}\n")), "{run}");
        let report = report(&place, "report.json");
        assert_eq!((&report["status"], &report["error"]), (&"failed".into(), &message.into()));
        assert!(!place.path().join(".undrift").exists(), "the service was not even started");
    }
    // Two reports may both be discarded.
    let place = shop();
    expect_exit(2, place.run("drift --sandbox --out json=/dev/null --out html=/dev/null"));
    let output = place.run("plan --sandbox --out pdf=a");
    assert!(output.contains("no format `pdf`; available: `json`, `markdown`,"), "{output}");
}

#[test]
fn a_comment_carries_the_name_of_its_job() {
    let place = shop();
    for (arguments, marker) in [
        ("plan --sandbox", "plan"),
        ("drift --sandbox", "drift"),
        ("plan --sandbox --marker eu-1", "eu-1"),
    ] {
        let output = place.output(&format!("{arguments} --out markdown=-"));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(&format!("<!-- undrift:{marker} -->\n### undrift ")), "{text}");
    }
    let run = place.run("plan --sandbox --marker a--b");
    assert!(run.contains("a name has up to 64 letters"), "{run}");
}

#[test]
fn a_report_of_what_was_applied_says_what_was_acknowledged() {
    let place = shop();
    place
        .output("apply --sandbox --yes --ack visibility:acme/shop#settings --out json=report.json");
    let report = report(&place, "report.json");
    let acknowledged = &report["acknowledged"][0]["refusal"];
    assert_eq!(
        (&acknowledged["guard"], &acknowledged["address"]["full"]),
        (&"visibility".into(), &"acme/shop#settings".into()),
        "{report:#}"
    );
}

#[test]
fn a_failed_report_says_what_to_do_and_what_is_wrong_with_the_manifests() {
    let place = shop()
        .file("broken.yaml", "kind: Project\npath: acme/broken\nsettings: {visiblity: private}\n");
    place.output("plan --sandbox --out json=report.json");
    let report = report(&place, "report.json");
    assert_eq!(report["error"], "cannot use the manifests: 1 error");
    let diagnostic = &report["diagnostics"][0];
    assert_eq!(
        (&diagnostic["code"], &diagnostic["file"], &diagnostic["line"]),
        (&"unknown-field".into(), &"broken.yaml".into(), &3.into())
    );
    place.output("plan shop.yaml --out json=report.json");
    let report = self::report(&place, "report.json");
    let help = report["help"].as_str().unwrap();
    assert!(
        report["error"].is_string()
            && help.contains("--url")
            && report["diagnostics"] == serde_json::json!([]),
        "{report:#}"
    );
}

#[test]
fn a_report_shows_refusals_of_the_service() {
    let place = shop().env("UNDRIFT_TOKEN", "wrong-canary-token").file("report.json", "{}\n");
    let server = Server::start(&place, "");
    let run = place.run(&format!("apply --yes --out json=report.json --url {}", server.url));
    server.end("-TERM");
    let report = report(&place, "report.json");
    assert!(
        run.ends_with("---- exit code 7\n")
            && report["exit_code"] == 7
            && report["status"] == "failed",
        "{run}{report:#}"
    );
    assert!(!report.to_string().contains("canary"), "{report:#}");
}

#[test]
fn unwritable_reports_are_found_before_anything_is_done() {
    let place = shop().file("report.json", "{}\n");
    let run =
        place.run("apply --sandbox --yes --out json=report.json --out json=nowhere/report.json");
    assert!(
        run.contains("error: cannot write `nowhere/report.json`: ")
            && run.ends_with("---- exit code 3\n"),
        "{run}"
    );
    let told = report(&place, "report.json");
    assert_eq!(
        (told["status"].as_str(), told["exit_code"].as_i64()),
        (Some("failed"), Some(3)),
        "{told:#}"
    );
    assert!(!place.path().join(".undrift").exists(), "the service was not even started");
    let run = place.run("plan --sandbox --out json=.");
    assert!(
        run.contains("error: cannot write `.`: ") && run.ends_with("---- exit code 3\n"),
        "{run}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_lost_report_does_not_hide_the_exit_code() {
    let open = "--sandbox --yes --ack visibility:acme/shop#settings --out json=/dev/full --out json=report.json";
    let place = shop();
    let run = place.run(&format!("apply {open}"));
    let message = "error: cannot write `/dev/full`: No space left on device (os error 28)\n help: the changes were made; only the report is missing\n";
    assert!(
        run.contains("applied: 1 done\n")
            && run.contains(message)
            && run.ends_with("---- exit code 3\n"),
        "{run}"
    );
    assert_eq!(
        report(&place, "report.json")["exit_code"],
        3,
        "the other report says how the run ended"
    );

    // The name is taken, so one of two steps fails.
    let place = shop().file("shop.yaml", "kind: Project\npath: acme/shop\nsettings: {name: other}\nvariables: [{key: A, value: b}]\n");
    let run = place.run(&format!("apply {open}"));
    assert!(
        run.contains("partly applied: 1 done, 1 failed") && run.contains("some changes were made"),
        "{run}"
    );
    assert!(
        run.ends_with("---- exit code 6\n") && report(&place, "report.json")["exit_code"] == 6,
        "{run}"
    );

    let run = place.run("drift --sandbox --out json=/dev/full");
    assert!(
        run.contains("cannot write `/dev/full`") && run.ends_with("---- exit code 3\n"),
        "{run}"
    );
    assert!(
        place.run("plan --sandbox --url x --out json=/dev/full").ends_with("---- exit code 3\n")
    );
}

#[test]
fn no_output_is_written_over_a_manifest() {
    let manifest = "kind: Project\npath: acme/shop\n";
    let seed = "groups: [{path: acme}]\nprojects: [{path: acme/shop}]\n";
    let place = Workspace::new().file("m/m.yaml", manifest).file("m/sandbox.yaml", seed);
    place.write("named.txt", manifest);
    std::os::unix::fs::symlink("m/m.yaml", place.path().join("link.json")).unwrap();
    let mut output = String::new();
    for command in [
        "plan m -o m/m.yaml --sandbox=s.db",
        "plan m --out json=m/m.yaml --out markdown=plan.md --sandbox=s.db",
        "check m --out html=m/new.YML",
        "check m --out json=link.json",
        "check named.txt --out json=./named.txt",
        "drift m --out json=m/m.yaml --sandbox=s.db",
        "snapshot m -o m/m.yaml --sandbox=s.db",
        "apply m --record m/m.yaml --sandbox=s.db --yes",
        "selftest --group acme --yes -o m/m.yaml --sandbox=s.db",
        "show --report plan.json --out html=m/m.yaml",
    ] {
        output += &place.run(command);
        for name in ["m/m.yaml", "named.txt"] {
            let text = std::fs::read_to_string(place.path().join(name)).unwrap();
            assert_eq!(text, manifest, "{command}: {name}");
        }
    }
    assert!(!place.path().join("s.db").exists(), "nothing was begun");
    insta::assert_snapshot!(output);
}

/// Projects with one rule, whose values name each of them; some are archived.
fn place_with_rule(rule: &str, document: impl Fn(usize) -> String) -> Workspace {
    let mut seed =
        "groups: [{path: acme, members: [{user: root, access_level: owner}]}]\nprojects:\n"
            .to_owned();
    let mut manifests = format!("kind: Defaults\nfor: Project\nmatch: {{path: 'acme/**'}}\n{rule}");
    for n in 0..40 {
        let archived = if n % 8 == 0 { "archived: true" } else { "" };
        let _ = writeln!(
            seed,
            "  - {{path: acme/p{n}, settings: {{visibility: private}}, {archived}}}"
        );
        let _ =
            write!(manifests, "---\nkind: Project\npath: acme/p{n}\n{archived}\n{}", document(n));
    }
    Workspace::new().file("sandbox.yaml", &seed).file("m.yaml", &manifests)
}

#[test]
fn what_one_declaration_does_to_many_projects_is_shown_once() {
    let rule = "settings: {description: {text: 'Service {name}'}}\nvariables: [{key: URL, value: {text: 'https://{name}.example'}}]\n";
    let place = place_with_rule(rule, |_| String::new());
    insta::assert_snapshot!(place.run("plan --sandbox"));
    let markdown = place.run("plan --sandbox --out markdown");
    assert!(markdown.contains("and the same, with other values, in 34 others"), "{markdown}");
    let page = place.run("plan --sandbox --out html");
    assert_eq!(page.matches("<article").count(), 1, "{page}");
    let json = place.run("plan --sandbox --out json");
    assert_eq!(json.matches("\"Service p").count(), 35, "it keeps each value");
}

#[test]
fn a_plan_has_at_most_sixty_lines_unless_all_are_asked_for() {
    let place = place_with_rule("settings: {merge_method: ff}\n", |n| {
        format!(
            "settings: {{ci_config_path: ci-{n}.yml}}\nlabels: [{{name: l{n}, color: '#000000'}}]\n"
        )
    });
    let lines = |arguments: &str| place.run(arguments).lines().count();
    let most = lines("plan --sandbox");
    assert!((30..=64).contains(&most), "{most}: {}", place.run("plan --sandbox"));
    assert!(place.run("plan --sandbox").contains("--full lists them"));
    assert!(lines("plan --sandbox --full") > 200);
}

/// Rules may name only who has access; a plan reports who has none and gets none.
#[test]
fn outsider_in_rule_not_foreseen() {
    let seed = "tier: premium\nrelease: '18.2'\nusers: [{username: alice}, {username: bob}, {username: carol}]\ngroups:\n  - {path: acme, members: [{user: root, access_level: owner}, {user: alice, access_level: developer}]}\n  - {path: other, members: [{user: bob, access_level: developer}]}\nprojects:\n  - {path: acme/shop, branches: [main]}\n  - {path: acme/open, branches: [main]}\n";
    let rules = |user: &str, group: &str| {
        format!(
            "protected_branches:\n  - {{name: main, allowed_to_push: [{{user: {user}}}], allowed_to_merge: [{{group: {group}}}]}}\napproval_rules:\n  - {{name: Leads, approvals_required: 1, users: [{user}]}}\n"
        )
    };
    let new = "kind: Project\npath: acme/fresh\ncreate: {initialize_with_readme: true}\nsettings: {default_branch: main}\n";
    let share = "shares: [{group: other, group_access: developer}]\n";
    let group = "---\nkind: Group\npath: acme\nmembers: [{user: carol, access_level: developer}]\n";
    let other = group.replace("path: acme", "path: other");
    let below = "kind: Group\npath: acme/sub\ncreate: true\n---\nkind: Project\npath: acme/sub/fresh\ncreate: true\n";
    let wrong = |place: String| {
        let shared = format!("kind: Project\npath: acme/shop\n{share}");
        let there = Workspace::new().file("m.yaml", &shared).file("sandbox.yaml", seed);
        let run = there.run("apply --sandbox --yes");
        assert!(run.ends_with("---- exit code 0\n"), "{run}");
        let place = there.file("m.yaml", &place);
        let plan = place.run("plan --sandbox");
        let names: Vec<_> = plan
            .lines()
            .filter(|line| line.contains("the rule names"))
            .map(str::to_owned)
            .collect();
        if names.is_empty() {
            let apply = place.run("apply --sandbox --yes --ack protection:**");
            assert!(apply.ends_with("---- exit code 0\n"), "{plan}{apply}");
            let output = place.run("plan --sandbox");
            assert!(output.contains("no changes"), "{output}");
        }
        names.join("\n")
    };
    let tags = |user: &str| {
        format!("protected_tags: [{{name: v*, allowed_to_create: [{{user: {user}}}]}}]\n")
    };
    insta::assert_snapshot!(
        [
            wrong(format!("{new}{}", rules("carol", "other"))),
            wrong(format!("{new}{share}{}", rules("carol", "other"))),
            wrong(format!("kind: Project\npath: acme/shop\n{}", rules("carol", "other"))),
            wrong(format!("kind: Project\npath: acme/open\n{}", rules("bob", "other"))),
            wrong(format!("{below}{}", tags("carol"))),
        ]
        .join("\n\n")
    );
    for right in [
        // A member of the group, of a group with a share, or of both by this run.
        format!("{new}{share}{}", rules("alice", "other")),
        format!("{new}{share}{}", rules("bob", "other")),
        format!("{new}{share}{}{group}", rules("carol", "other")),
        format!("kind: Project\npath: acme/shop\n{}", rules("bob", "other")),
        format!("kind: Project\npath: acme/shop\n{}{group}", rules("carol", "other")),
        format!(
            "{new}{share}members: [{{user: carol, access_level: guest}}]\n{}",
            rules("carol", "other")
        ),
        format!("{below}{}{group}", tags("carol")),
        format!("{new}{share}{}{other}", rules("carol", "other")),
    ] {
        assert_eq!(wrong(right.clone()), "", "{right}");
    }
}

/// A rule for what exists that matches nothing is reported, so that a typo does not pass.
#[test]
fn a_rule_without_a_live_match_is_reported() {
    let glob = "it is a glob, not a regular expression";
    for (path, exit, help) in [
        ("acme/web-*", 0, "correct `match`"),
        ("*/shop2", 0, "correct `match`"),
        // The group does not exist either.
        ("^acme/.*$", 10, glob),
    ] {
        let rule = format!(
            "kind: Defaults\nmatch: {{path: '{path}'}}\nundeclared: include\nsettings: {{merge_method: ff}}\n"
        );
        let place = Workspace::new().file("rule.yaml", &rule).file("sandbox.yaml", SEED);
        for command in ["plan", "drift"] {
            let run = place.run(&format!("{command} --sandbox"));
            let warning = "warning[idle-rule]: this matches no declared or existing project";
            assert!(run.contains(warning) && run.contains(help), "{run}");
            assert!(run.ends_with(&format!("---- exit code {exit}\n")), "{run}");
        }
    }
}
