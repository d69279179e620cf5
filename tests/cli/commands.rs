//! The output and the exit code of each command.
#![cfg(feature = "sandbox")]

use serde_json::Value;

use crate::harness::Workspace;

const SHOP: &str = "kind: Project
path: acme/shop
create: true
settings: {description: What we sell, visibility: private}
variables:
  - {key: TOKEN, value: {env: SHOP_TOKEN}, masked: true}
";

const SEED: &str = "users: [{username: alice}]
groups: [{path: acme, members: [{user: root, access_level: owner}]}]
";

/// A folder with a project that does not exist yet.
fn shop() -> Workspace {
    Workspace::new()
        .file("shop.yaml", SHOP)
        .file("sandbox.yaml", SEED)
        .file("sandbox.env", "SHOP_TOKEN='canary-0123456789'\n")
}

#[test]
fn a_change_is_planned_applied_and_verified() {
    let place = shop();
    let commands = [
        "plan --sandbox",
        "plan --sandbox --exit-code --out json=plan.json",
        "apply --sandbox",
        "apply --sandbox --yes",
        "apply --sandbox",
        "drift --sandbox",
    ];
    let story = commands.map(|arguments| place.run(arguments)).join("\n");
    assert!(!story.contains("canary"), "{story}");
    insta::assert_snapshot!(story);
    let report = std::fs::read_to_string(place.path().join("plan.json")).unwrap();
    assert!(!report.contains("canary"), "{report}");
    insta::assert_snapshot!(report.replace(env!("CARGO_PKG_VERSION"), "[VERSION]"));
}

#[test]
fn drift_and_problems_have_different_exit_codes() {
    let place = shop();
    assert_eq!(place.exit_code("apply --sandbox --yes"), 0);
    place.write("shop.yaml", &SHOP.replace("What we sell", "What we sold"));
    assert_eq!(place.exit_code("drift --sandbox"), 2);
    place.write("other.yaml", "kind: Project\npath: acme/other\n");
    assert_eq!(place.exit_code("drift --sandbox"), 2, "a project is missing, which differs too");
    assert_eq!(place.exit_code("drift --sandbox --only acme/other"), 2, "and alone");
    assert_eq!(place.exit_code("plan --sandbox --only acme/other"), 3, "nobody may create it");
    assert_eq!(place.exit_code("drift --sandbox --only acme/shop"), 2);
    assert_eq!(place.exit_code("drift --sandbox --exclude acme/*#settings --only acme/shop"), 0);
}

#[test]
fn a_guard_refuses_until_the_refusal_is_acknowledged() {
    let place = shop();
    place.write("sandbox.yaml", "groups: [{path: acme, visibility: public}]\n");
    assert_eq!(place.exit_code("apply --sandbox --yes"), 0);
    place.write("shop.yaml", &SHOP.replace("visibility: private", "visibility: public"));
    place.write("sandbox.env", "SHOP_TOKEN='canary-0123456789'\n");
    let story = [
        place.run("apply --sandbox --yes"),
        place.run("plan --sandbox --ack visibility:acme/shop#settings"),
        place.run("apply --sandbox --ack everything:acme/shop"),
    ];
    insta::assert_snapshot!(story.join("\n"));
}

/// For unselected manifests only errors are reported.
#[test]
fn warnings_are_about_selected_projects() {
    let place = shop();
    let old = |name: &str| {
        format!("kind: Project\npath: acme/{name}\nsettings: {{wiki_enabled: true}}\n")
    };
    place.write("old.yaml", &format!("{}---\n{}", old("old"), old("older")));
    let warned = |arguments: &str| -> Vec<usize> {
        let output = place.run(&format!("plan --sandbox {arguments}"));
        (1..=9)
            .filter(|line| output.contains(&format!("is deprecated\n --> old.yaml:{line}:")))
            .collect()
    };
    for (arguments, lines) in [
        ("", vec![3, 7]),
        ("--only acme/shop", vec![]),
        ("--only acme/old", vec![3]),
        ("--only acme/older#settings", vec![7]),
        ("--exclude acme/old", vec![7]),
        ("--exclude acme/old#variables", vec![3, 7]),
    ] {
        assert_eq!(warned(arguments), lines, "{arguments}");
    }
    place.write("old.yaml", &old("old").replace("wiki_enabled", "wikki"));
    assert_eq!(place.exit_code("plan --sandbox --only acme/shop"), 3, "errors count always");
}

/// The line is that of the secret, not of a neighbouring field.
#[test]
fn a_missing_secret_is_reported_at_its_own_line() {
    let manifests = r"kind: Group
path: acme
create: true
---
kind: Project
path: acme/shop
create: true
variables:
  - key: A
    masked: true
    value: {env: SHOP_TOKEN}
";
    let told = Workspace::new().file("a.yaml", manifests).run("apply --sandbox=:memory: --yes");
    assert!(told.contains("error[missing-secret]") && told.contains("--> a.yaml:11:5"), "{told}");
}

#[test]
fn a_missing_secret_stops_apply_before_it_starts() {
    let place = shop();
    place.write("sandbox.env", "");
    insta::assert_snapshot!(place.run("apply --sandbox --yes"));
    // Its reports say why, too.
    assert_eq!(place.exit_code("apply --sandbox --yes --out concise=found.txt"), 3);
    let text = std::fs::read_to_string(place.path().join("found.txt")).unwrap();
    assert!(text.contains(": missing-secret: "), "{text}");
    assert_eq!(place.exit_code("plan --sandbox"), 0, "a plan works without");
    // A new project is created as a whole, with its secrets.
    let unselected = place.run("apply --sandbox --yes --only acme/shop#settings");
    assert!(
        unselected.contains("error[missing-project]")
            && unselected.contains("`--only acme/shop`")
            && unselected.ends_with("---- exit code 3\n"),
        "{unselected}"
    );
    place.write("sandbox.env", "SHOP_TOKEN='canary-0123456789'\n");
    assert_eq!(place.exit_code("apply --sandbox --yes"), 0);
    place.write("sandbox.env", "");
    place.write("shop.yaml", &SHOP.replace("What we sell", "What we sold"));
    assert_eq!(
        place.exit_code("apply --sandbox --yes --only acme/shop#settings"),
        0,
        "a part that needs none works without"
    );
    place.write("shop.yaml", &SHOP.replace("What we sell", "What we lent"));
    assert_eq!(place.exit_code("apply --sandbox --yes"), 0, "and so does a run that sends none");
    place.write("shop.yaml", &SHOP.replace("masked: true", "masked: true, protected: true"));
    assert_eq!(place.exit_code("apply --sandbox --yes"), 3, "an edit has to carry the value");
}

#[test]
fn usage_errors_exit_with_3_and_say_what_to_do() {
    let place = shop().env("UNDRIFT_TOKEN", "canary-token-0123456789");
    let commands = [
        "plan",
        "plan --url http://gitlab.example.org",
        "plan --sandbox --only acme/shpo",
        "plan --sandbox --only acme/*#setings",
        "plan --sandbox --only acme/shop#variable",
        "drift --sandbox --only acme/shop#settings --exclude acme/shop",
        "plan --sandbox my.db",
        "plan . --sandbox my.db",
        "plan --sandbox --url https://gitlab.example.org",
        "plan --live live.json --url https://gitlab.example.org --token-file token.txt",
        "plan --sandbox --out xml=-",
        "plan nowhere --sandbox",
        "schema manifst",
        "schema nothing-like-it",
        "frobnicate",
    ];
    let story = commands.map(|arguments| place.run(arguments)).join("\n");
    assert!(!story.contains("canary"), "{story}");
    insta::assert_snapshot!(story);
    assert!(commands.iter().all(|arguments| place.exit_code(arguments) == 3));
}

#[test]
fn a_service_that_does_not_response_is_named_with_its_source() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let place = shop().env("UNDRIFT_TOKEN", "canary-token-0123456789").env("UNDRIFT_URL", &url);
    for command in ["drift", "export acme -d out"] {
        let told = place.run(command);
        let expected = "the network; UNDRIFT_URL is `http://127.0.0.1:[PORT]`\n";
        assert!(told.contains(expected) && told.ends_with("---- exit code 8\n"), "{told}");
    }
}

/// Its author may think that the variables are set.
#[test]
fn a_file_of_variables_that_is_not_read_is_named() {
    let place = shop().file(".env", "UNDRIFT_URL=https://gitlab.example.org\n");
    for command in ["plan", "plan --url https://gitlab.example.org"] {
        let told = place.run(command);
        assert!(told.contains("undrift does not read `.env`"), "{told}");
    }
}

#[test]
fn the_log_is_on_stderr_and_holds_no_secret() {
    let place = shop();
    let output = place.output("apply --sandbox --yes -vv");
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(
        log.contains("variable-create") && !log.contains("canary") && !log.contains("sandbox-"),
        "{log}"
    );
    let wrong = Workspace::new().env("UNDRIFT_LOG", "undrift=deafening");
    assert!(
        wrong.run("check").ends_with("help: write it like `undrift=debug`\n---- exit code 3\n")
    );
}

#[test]
fn values_in_sandbox_env_outrank_the_environment() {
    let place = shop().env("SHOP_TOKEN", "another-value-0123456789");
    assert_eq!(place.exit_code("apply --sandbox --yes"), 0);
    place.write("sandbox.env", "");
    assert_eq!(place.exit_code("drift --sandbox"), 2, "now it is the other value");
}

#[test]
fn the_manifests_cannot_choose_the_service() {
    let place = shop()
        .file("undrift.yaml", "version: 1\nservice: {url: 'https://gitlab.example.org'}\n")
        .env("UNDRIFT_TOKEN", "x");
    insta::assert_snapshot!(place.run("plan --url https://elsewhere.example.org"));
    assert_eq!(place.exit_code("plan"), 3, "nor does it supply the address");
}

#[test]
fn check_needs_no_service() {
    let place =
        shop().file("broken.yaml", "kind: Project\npath: acme/x\nsettings: {visiblity: private}\n");
    insta::assert_snapshot!(
        [place.run("check"), place.run("check shop.yaml"), place.run("check --out json=-")]
            .join("\n")
    );
}

#[test]
fn json_on_stdout_is_only_json() {
    let place = shop();
    for (arguments, report_kind) in [
        ("plan --sandbox", "plan"),
        ("drift --sandbox", "drift"),
        ("apply --sandbox --yes", "apply"),
    ] {
        let output = place.output(&format!("{arguments} --out json=-"));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["undrift"], report_kind);
        assert_eq!(report["sandbox"], true);
        assert_eq!(report["exit_code"], output.status.code().unwrap());
    }
}

#[test]
fn a_report_that_cannot_be_written_is_found_before_the_first_write() {
    let place = shop();
    let story = place.run("apply --sandbox --yes --out json=nowhere/report.json");
    assert!(
        story.contains("cannot write `nowhere/report.json`") && story.ends_with("exit code 3\n"),
        "{story}"
    );
    assert_eq!(place.exit_code("plan --sandbox --exit-code"), 2, "nothing was applied");
}

#[test]
fn every_schema_is_written_and_compared() {
    let place = Workspace::new();
    assert_eq!(place.exit_code("schema --write schemas"), 0);
    assert_eq!(place.exit_code("schema --check schemas"), 0);
    for entry in std::fs::read_dir(place.path().join("schemas")).unwrap() {
        let schema: Value =
            serde_json::from_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap()).unwrap();
        jsonschema::validator_for(&schema).unwrap();
    }
    place.write("schemas/plan.schema.json", "{}\n");
    assert_eq!(place.exit_code("schema --check schemas"), 2);
}

#[test]
fn the_schemas_of_the_repository_are_as_generated() {
    let folder = concat!("schema --check ", env!("CARGO_MANIFEST_DIR"), "/schemas");
    assert_eq!(
        Workspace::new().run(folder).lines().last(),
        Some("---- exit code 0"),
        "run `undrift schema --write schemas`"
    );
}

#[test]
fn help_and_pages_are_no_errors() {
    let place = Workspace::new();
    for arguments in [
        "--help",
        "--version",
        "help plan",
        "apply --help",
        "man",
        "man --write man",
        "completions bash",
        "completions zsh",
    ] {
        assert_eq!(place.exit_code(arguments), 0, "{arguments}");
    }
    assert!(place.path().join("man/undrift-plan.1").exists());
    for shell in ["bash", "zsh"] {
        assert!(
            place.run(&format!("completions {shell}")).contains("project-star"),
            "{shell} completes no operations"
        );
    }
    insta::assert_snapshot!(place.run("--help"));
}

#[cfg(unix)]
#[test]
fn a_closed_stdout_is_no_error() {
    let place = shop();
    let mut command = place.command("schema manifest");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

/// A result that cannot be printed is for the user to repair, with every command that prints.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_at_stdout_is_no_internal_error() {
    const PRINT: [&str; 18] = [
        "check",
        "plan --sandbox=state.db",
        "apply --sandbox=state.db --yes",
        "drift --sandbox=state.db",
        "snapshot --sandbox=state.db -o live.json",
        "export acme -o exported --sandbox=state.db",
        "absorb acme/shop --sandbox=state.db",
        "new acme/neo",
        "explain acme/shop",
        "show --effective acme/shop",
        "call --list",
        "sandbox --list-facts",
        "schema manifest",
        "completions bash",
        "man",
        "help plan",
        "plan --help",
        "--version",
    ];
    let place = shop();
    let help = place.run("--help");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    // Both wait for a server's first line.
    for command in commands.take_while(|line| !line.is_empty()).map(str::trim_start) {
        let name = command.split_whitespace().next().unwrap();
        let is_tried = PRINT.iter().any(|tried| tried.starts_with(name));
        assert!(is_tried || ["comment", "selftest"].contains(&name), "{name} is not tried");
    }
    for arguments in PRINT {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = place.command(arguments);
        let output = command.env("SHOP_TOKEN", "a-token-of-a-shop").stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{arguments}: {stderr}");
    }
}

/// No path in an argument can fill the memory.
#[cfg(target_os = "linux")]
#[test]
fn an_endless_file_is_refused() {
    for arguments in [
        "plan --url http://127.0.0.1:9 --allow-plaintext --token-file /dev/zero",
        "plan --url http://127.0.0.1:9 --allow-plaintext --token-file Cargo.toml --ca-file /dev/zero",
        "plan --live /dev/zero",
        "comment /dev/zero --url http://127.0.0.1:9 --allow-plaintext --token-file Cargo.toml --project 1 --merge-request 1",
        "check --kinds /dev/zero",
        "sandbox --seed /dev/zero",
    ] {
        let place = Workspace::new().file("Cargo.toml", "token").file("a.yaml", SHOP);
        let output = place.run(arguments);
        assert!(output.ends_with("---- exit code 3\n"), "{arguments}: {output}");
    }
}
