//! A branch against its base: labels of differences, and what apply excludes.
//!
//! These tests need the `git` program, and report if it is missing.
#![cfg(feature = "sandbox")]

use std::process::Command;

use serde_json::Value as Json;

use crate::harness::{Workspace, expect_exit};

const SEED: &str = "users: [{username: alice}]
groups: [{path: acme, visibility: public, members: [{user: root, access_level: owner}]}]
projects:
  - {path: acme/shop, settings: {visibility: private}}
  - {path: acme/site, settings: {visibility: private}}
";

const SHOP: &str = "kind: Project
path: acme/shop
settings: {description: from Git, merge_method: merge}
variables:
  - {key: LEVEL, value: low}
unlisted: {variables: delete}
";

const SITE: &str = "kind: Project\npath: acme/site\nsettings: {description: a site}\n";

/// Runs git in the folder of `place`, with only this configuration.
fn git(place: &Workspace, arguments: &str) {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments.split_whitespace())
        .current_dir(place.path())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// True if there is a `git` to test with.
#[expect(clippy::print_stderr, reason = "a test that did not run has to say so")]
fn has_git() -> bool {
    let is_there = Command::new("git").arg("--version").output().is_ok();
    if !is_there {
        eprintln!("skipped: there is no `git`");
    }
    is_there
}

/// A repository, and a service that matches its one commit.
fn place() -> Workspace {
    let path = std::env::var("PATH").unwrap_or_default();
    let place = Workspace::new()
        .file("sandbox.yaml", SEED)
        .file("shop.yaml", SHOP)
        .file("site.yaml", SITE)
        .env("PATH", &path);
    git(&place, "init -q");
    git(&place, "add .");
    git(&place, "commit -qm base");
    place
}

/// The place after apply; `None` without Git.
fn applied_place() -> Option<Workspace> {
    let place = has_git().then(place)?;
    assert_eq!(place.exit_code("apply --sandbox --yes"), 0);
    Some(place)
}

/// Somebody changes a description, adds a variable, and edits the one that the branch edits.
fn drift(place: &Workspace) {
    for call in [
        "project-edit id=acme/shop description=by-hand",
        "variable-create id=acme/shop key=MORE value=9",
        "variable-update id=acme/shop key=LEVEL value=middle",
        "project-edit id=acme/site description=by-hand",
    ] {
        let call = format!("call {call} --sandbox --yes");
        assert_eq!(place.exit_code(&call), 0, "{call}: {}", place.run(&call));
    }
}

#[test]
fn a_branch_writes_its_changes_and_no_drift() {
    let Some(place) = applied_place() else { return };
    drift(&place);
    place.write(
        "shop.yaml",
        &SHOP.replace("merge_method: merge", "merge_method: ff").replace("low", "high"),
    );
    let story = [
        "plan --sandbox --base HEAD",
        "plan --sandbox --base HEAD --full",
        "plan --sandbox --base HEAD --changed",
        "apply --sandbox --base HEAD --yes",
        "plan --sandbox --base HEAD",
        "apply --sandbox --base HEAD --heal --yes",
        "plan --sandbox --base HEAD",
    ]
    .map(|arguments| place.run(arguments));
    insta::assert_snapshot!(story.join("\n"));
    assert!(std::fs::read_dir(place.path().join(".git")).is_ok(), "the repository is as it was");
}

/// `apply` of a saved plan writes drift too, so its plan counts it.
#[test]
fn a_saved_plan_counts_drift_as_its_apply_does() {
    let Some(place) = applied_place() else { return };
    drift(&place);
    place.write("shop.yaml", &SHOP.replace("merge_method: merge", "merge_method: ff"));
    let [plan, apply] = ["plan --sandbox --base HEAD -o p.json", "apply p.json --sandbox --yes"];
    let said = [plan, apply].map(|arguments| place.run(arguments));
    for text in &said {
        assert!(text.contains("plan: 3 to change, 1 to remove in 2 of 2 projects"), "{text}");
        assert!(text.contains("- variables/MORE@*"), "{text}");
    }
    for key in ["MORE", "MANY", "OTHER", "LAST"] {
        let call = format!("call variable-create id=acme/shop key={key} value=9 --sandbox --yes");
        assert_eq!(place.exit_code(&call), 0);
    }
    assert_eq!(place.exit_code("plan --sandbox --base HEAD"), 0);
    assert_eq!([plan, apply].map(|arguments| place.exit_code(arguments)), [4, 4]);
}

#[test]
fn a_report_labels_each_difference() {
    let Some(place) = applied_place() else { return };
    drift(&place);
    let code = |base| place.exit_code(&format!("plan --sandbox --exit-code --base {base}"));
    assert_eq!(["HEAD", "none"].map(code), [0, 2], "drift is not the branch's");
    place.write("shop.yaml", &SHOP.replace("merge_method: merge", "merge_method: ff"));
    assert_eq!(["HEAD", "none"].map(code), [2, 2]);
    assert_eq!(place.exit_code("plan --sandbox --base HEAD --out json=plan.json"), 0);
    let text = std::fs::read_to_string(place.path().join("plan.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["labels"], serde_json::json!({"change": 1, "drift": 3}), "{text}");
    assert_eq!(report["base"]["revision"], "HEAD");
    assert_eq!(place.exit_code("plan --sandbox --out json=plan.json"), 0);
    let text = std::fs::read_to_string(place.path().join("plan.json")).unwrap();
    assert!(!text.contains("\"label") && !text.contains("\"base\""), "{text}");
}

/// A hand edit that only a guarded step reverts, and a project that was renamed by hand.
#[test]
fn drift_that_a_branch_did_not_cause_does_not_block_it() {
    let Some(place) = applied_place() else { return };
    for call in [
        "project-edit id=acme/site path=page",
        "variable-create id=acme/shop key=MORE value=9",
        "variable-create id=acme/shop key=MANY value=9",
        "variable-create id=acme/shop key=OTHER value=9",
        "variable-create id=acme/shop key=LAST value=9",
    ] {
        let call = format!("call {call} --sandbox --yes");
        assert_eq!(place.exit_code(&call), 0, "{call}: {}", place.run(&call));
    }
    assert_eq!(place.exit_code("plan --sandbox"), 4, "without a base they count");
    let drift = place.run("drift --sandbox");
    assert!(
        drift.contains("to revert the drift, acknowledge the refusals that `undrift plan` shows"),
        "{drift}"
    );
    assert_eq!(place.exit_code("drift --sandbox"), 2, "a renamed project is a difference");
    place.write("shop.yaml", &SHOP.replace("merge_method: merge", "merge_method: ff"));
    let story = [
        "plan --sandbox --base HEAD",
        "plan --sandbox --base HEAD --out concise",
        "apply --sandbox --base HEAD --yes",
    ]
    .map(|arguments| place.run(arguments));
    insta::assert_snapshot!(story.join("\n"));
    assert_eq!(place.exit_code("apply --sandbox --base HEAD --heal --yes"), 4);
    // Changes caused by the branch block it.
    place.write("shop.yaml", &SHOP.replace("settings: {", "settings: {visibility: public, "));
    assert_eq!(place.exit_code("plan --sandbox --base HEAD"), 4);
    place.write("shop.yaml", &SHOP.replace("acme/shop", "acme/stall"));
    assert_eq!(place.exit_code("plan --sandbox --base HEAD"), 3);
}

/// What somebody made unreadable in a project is no matter of a branch that does not change it.
#[test]
fn what_a_branch_does_not_change_may_be_unreadable() {
    let Some(place) = applied_place() else { return };
    assert_eq!(place.exit_code("snapshot --sandbox -o live.json"), 0);
    let text = std::fs::read_to_string(place.path().join("live.json")).unwrap();
    let mut snapshot: Json = serde_json::from_str(&text).unwrap();
    snapshot["answers"]
        .as_array_mut()
        .unwrap()
        .retain(|row| row["question"]["operation"] != "variable-list");
    place.write("live.json", &snapshot.to_string());
    let plan = |options: &str| place.run(&format!("plan --live live.json {options}"));
    let same = expect_exit(0, plan("--base HEAD"));
    expect_exit(10, plan("--base none"));
    expect_exit(10, plan("--base HEAD -o saved.json"));
    place.write("site.yaml", &SITE.replace("a site", "the site"));
    let other_project = expect_exit(0, plan("--base HEAD --out json=plan.json"));
    let report = std::fs::read_to_string(place.path().join("plan.json")).unwrap();
    let report: Json = serde_json::from_str(&report).unwrap();
    assert_eq!(report["incomplete"], serde_json::json!([]), "{report:#}");
    assert_eq!(report["base"]["incomplete"][0]["address"]["section"], "variables", "{report:#}");
    for text in [&same, &other_project] {
        assert!(text.contains("could not be read; this branch does not change it"), "{text}");
        assert!(text.contains("acme/shop  variables: "), "{text}");
        assert!(!text.contains("match their manifests"), "{text}");
    }
    assert!(other_project.contains("; 1 not read completely"), "{other_project}");
    for changed in [
        // The section that was not read, and another one, which `apply` could not write either.
        SHOP.replace("low", "high"),
        SHOP.replace("merge_method: merge", "merge_method: ff"),
    ] {
        place.write("shop.yaml", &changed);
        let own_project = expect_exit(10, plan("--base HEAD"));
        assert!(own_project.contains("incomplete: 1 group or project"), "{own_project}");
    }
}

/// A value can change without its manifest: in the file that the manifest names.
#[test]
fn a_changed_file_is_a_change_of_the_branch() {
    if !has_git() {
        return;
    }
    const KEYS: &str = "kind: Project
path: acme/shop
variables:
  - {key: CA, value: {file: ./keys/ca.pem}}
  - {key: URL, value: {text: 'https://{file:keys/url}'}}
  - {key: SAME, value: {file: keys/same}}
  - {key: MADE, value: {file: made/by-job}}
";
    let place = Workspace::new()
        .file("m/sandbox.yaml", SEED)
        .file("m/undrift.yaml", "version: 1\n")
        .file("m/shop.yaml", KEYS)
        .file("m/site.yaml", SITE)
        .file("m/keys/ca.pem", "the first authority\n")
        .file("m/keys/url", "the-first-host\n")
        .file("m/keys/same", "an equal text\n")
        .file("m/made/by-job", "made for both\n")
        .file(".gitignore", "made/\n.undrift/\n")
        .env("PATH", &std::env::var("PATH").unwrap_or_default());
    git(&place, "init -q");
    git(&place, "add .");
    git(&place, "commit -qm base");
    assert_eq!(place.exit_code("apply m --sandbox --yes"), 0);
    for key in ["SAME", "MADE"] {
        let call = format!("call variable-update id=acme/shop key={key} value=by-hand");
        assert_eq!(place.exit_code(&format!("{call} --sandbox=m/.undrift/sandbox.db --yes")), 0);
    }
    let labels = |options: &str| {
        let plan = format!("plan m --sandbox --base HEAD --out json=plan.json {options}");
        let run = expect_exit(0, place.run(&plan));
        let text = std::fs::read_to_string(place.path().join("plan.json")).unwrap();
        for content in ["authority", "-host", "equal text", "for both"] {
            assert!(!run.contains(content) && !text.contains(content), "{run}{text}");
        }
        let report: Json = serde_json::from_str(&text).unwrap();
        let steps = report["steps"].as_array().unwrap().iter();
        let line = |step: &Json| {
            let [entry, label] =
                [&step["address"]["entry"], &step["label"]].map(|text| text.as_str().unwrap());
            format!("{} {label}", entry.trim_end_matches("@*"))
        };
        (steps.map(line).collect::<Vec<_>>(), report["base"]["unchanged"].clone())
    };
    assert_eq!(labels("--changed"), (vec![], 2.into()), "nothing changed");
    place.write("m/keys/ca.pem", "another authority\n");
    place.write("m/keys/url", "another-host\n");
    let expected: Vec<String> =
        ["CA change", "MADE drift", "SAME drift", "URL change"].map(str::to_owned).into();
    let (mut found, unchanged) = labels("--changed");
    found.sort();
    assert_eq!((found, unchanged), (expected, 1.into()));
    git(&place, "commit -qam keys");
    expect_exit(0, place.run("apply m --sandbox --base HEAD~1 --yes"));
    let left = ["MADE drift", "SAME drift"].map(str::to_owned);
    assert_eq!(labels("").0, left, "the branch wrote its own files only");
    // A file that only one side has.
    git(&place, "rm -q --cached m/keys/same");
    git(&place, "commit -qm untracked");
    assert_eq!(labels("").0, ["MADE drift", "SAME change"]);
    git(&place, "add m/keys/same");
    git(&place, "commit -qm tracked");
    std::fs::remove_file(place.path().join("m/keys/same")).unwrap();
    assert_eq!(labels("--changed"), (vec!["MADE drift".to_owned()], 1.into()));
}

#[test]
fn a_base_that_cannot_be_read_is_explained() {
    if !has_git() {
        return;
    }
    let place = place();
    git(&place, "tag v1");
    git(&place, "commit -q --allow-empty -m second");
    std::fs::create_dir(place.path().join(".clones")).unwrap();
    git(&place, &format!("clone -q --depth 1 file://{} .clones/shallow", place.path().display()));
    std::fs::copy(place.path().join("sandbox.yaml"), place.path().join(".clones/sandbox.yaml"))
        .unwrap();
    let first =
        Command::new("git").args(["rev-parse", "v1"]).current_dir(place.path()).output().unwrap();
    let first = String::from_utf8(first.stdout).unwrap();
    let shallow = format!("plan .clones/shallow --sandbox --base {}", first.trim());
    let story = [
        "plan --sandbox --base v1",
        "plan --sandbox --base nonesuch",
        "plan --sandbox --base mian",
        "plan --sandbox --base=--upload-pack=evil",
        "plan --sandbox --base HEAD:shop.yaml",
        "plan --sandbox --changed",
        "apply --sandbox --heal --yes",
    ]
    .map(|arguments| place.run(arguments));
    let shallow = place.run(&shallow).replace(first.trim(), "[COMMIT]");
    insta::assert_snapshot!(story.join("\n") + "\n" + &shallow);
}

#[test]
fn without_git_or_a_repository_an_explicit_base_is_an_error() {
    let bare = Workspace::new().file("sandbox.yaml", SEED).file("shop.yaml", SHOP);
    expect_exit(3, bare.run("plan --sandbox --base main"));
    let without = Workspace::new()
        .file(".git/HEAD", "ref: refs/heads/main\n")
        .file("sandbox.yaml", SEED)
        .file("shop.yaml", SHOP)
        .env("PATH", "/nonexistent");
    let told = without.run("plan --sandbox --base main");
    assert!(told.contains("cannot run `git`") && told.ends_with("---- exit code 3\n"), "{told}");
    assert_eq!(without.exit_code("plan --sandbox"), 0, "without a base nothing needs Git");
    assert_eq!(without.exit_code("plan --sandbox --base none"), 0);
}

/// Wrong variables of a job do not prevent a plan, which reports what is missing.
#[test]
fn invalid_ci_variables_do_not_prevent_a_plan() {
    if !has_git() {
        return;
    }
    for value in [
        "--upload-pack=touch /tmp/evil",
        "a\nb",
        "nonesuch",
        "HEAD; touch evil",
        "$(touch evil)",
        "HEAD^{tree}",
    ] {
        let place = place().env("CI_MERGE_REQUEST_DIFF_BASE_SHA", value);
        let output = place.run("plan --sandbox");
        assert!(
            output.contains("warning[base]") && output.ends_with("---- exit code 0\n"),
            "{value}: {output}"
        );
        assert!(!place.path().join("evil").exists(), "{value}");
        assert!(!place.run("plan --sandbox --base none").contains("warning[base]"), "{value}");
        assert!(
            !place.run("apply --sandbox --yes").contains("warning[base]"),
            "{value}: apply asks no variable"
        );
    }
    for nothing in ["", "0000000000000000000000000000000000000000"] {
        let place = place().env("CI_MERGE_REQUEST_DIFF_BASE_SHA", nothing);
        let told = place.run("plan --sandbox");
        assert!(!told.contains("warning[base]"), "{nothing}: {told}");
    }
}

#[test]
fn a_push_to_the_default_branch_is_compared_with_the_commit_before() {
    if !has_git() {
        return;
    }
    let of_branch = |branch: &str| {
        let place = place()
            .env("CI_COMMIT_BEFORE_SHA", "HEAD")
            .env("CI_DEFAULT_BRANCH", "main")
            .env("CI_COMMIT_BRANCH", branch);
        place.write("new.yaml", "kind: Project\npath: acme/neo\ncreate: true\n");
        place.run("plan --sandbox")
    };
    assert!(of_branch("main").contains("drift: these"));
    assert!(
        !of_branch("feature").contains("drift: these"),
        "the push before says little of a branch"
    );
}

#[test]
fn a_branch_cannot_lift_its_own_limits() {
    if !has_git() {
        return;
    }
    let place = place();
    let labels = |names: &[&str]| {
        let labels: String =
            names.iter().map(|name| format!("  - {{name: {name}, color: '#ff0000'}}\n")).collect();
        format!("kind: Project\npath: acme/shop\nlabels:\n{labels}unlisted: {{labels: delete}}\n")
    };
    let limits = |count: u8| {
        format!(
            "version: 1\nguards: {{removals: {{count: {count}, share: 1}}}}\nmanages: [{{path: acme/shop}}]\n"
        )
    };
    std::fs::remove_file(place.path().join("site.yaml")).unwrap();
    place.write("shop.yaml", &labels(&["a", "b", "c"]));
    place.write("undrift.yaml", &limits(1));
    git(&place, "add -A");
    git(&place, "commit -qm limits");
    assert_eq!(place.exit_code("apply --sandbox --yes"), 0);
    place.write("shop.yaml", &labels(&["a"]));
    place.write("undrift.yaml", &limits(9).replace("acme/shop", "acme/**"));
    place.write("site.yaml", SITE);
    place.write(
        "ack.yaml",
        "kind: Acknowledge\nguard: removals\nat: acme/shop#labels\nreason: INC-1\n",
    );
    let story =
        ["plan --sandbox --base HEAD", "plan --sandbox"].map(|arguments| place.run(arguments));
    insta::assert_snapshot!(story.join("\n"));
    std::fs::remove_file(place.path().join("ack.yaml")).unwrap();
    assert_eq!(place.exit_code("plan --sandbox --base HEAD"), 4);
    assert_eq!(place.exit_code("plan --sandbox --base none"), 0);
}

#[test]
fn only_warnings_that_the_base_does_not_have_are_listed() {
    let Some(place) = applied_place() else { return };
    let old = |text: &str| text.replace("settings: {", "settings: {wiki_enabled: true, ");
    place.write("site.yaml", &old(SITE));
    git(&place, "commit -qam old");
    place.write("shop.yaml", &old(SHOP).replace("merge_method: merge", "merge_method: ff"));
    let text = place.run("plan --sandbox --base HEAD --out concise");
    assert!(text.contains("shop.yaml:3:12: deprecated"), "{text}");
    assert!(!text.contains("site.yaml:3:12: deprecated"), "{text}");
    assert!(text.contains("1 warning from before this branch, not listed"), "{text}");
    let page = place.run("plan --sandbox --base HEAD --out html");
    let at = |word: &str| page.find(word).unwrap_or_else(|| panic!("{word}: {page}"));
    assert!(at("<h2>Changes") < at("<h2>Warnings"), "{page}");
}

#[test]
fn a_branch_cannot_silence_a_warning() {
    let Some(place) = applied_place() else { return };
    let old = SHOP.replace("settings: {", "settings: {wiki_enabled: true, ");
    assert_ne!(old, SHOP);
    place.write("shop.yaml", &old);
    let lints =
        |level: &str| format!("version: 1\nlints: [{{code: deprecated, level: {level}}}]\n");
    let config = std::fs::read_to_string(place.path().join("undrift.yaml")).unwrap_or_default();
    assert!(!config.contains("lints"));
    place.write("undrift.yaml", &lints("allow"));
    let plan =
        |base: &str| place.run(&format!("plan --sandbox --base {base} --out concise=found.txt"));
    assert!(!plan("none").contains("deprecated"));
    let told = plan("HEAD");
    assert!(
        told.contains("warning[deprecated]") && told.contains("the level at the base applies"),
        "{told}"
    );
    let found = std::fs::read_to_string(place.path().join("found.txt")).unwrap();
    assert!(found.contains("shop.yaml:3:12: deprecated: "), "{found}");
    place.write("undrift.yaml", &lints("deny"));
    place.write("shop.yaml", SHOP);
    git(&place, "add -A");
    git(&place, "commit -qm lints");
    place.write("undrift.yaml", &lints("warn"));
    place.write("shop.yaml", &old);
    assert_eq!(place.exit_code("plan --sandbox --base none"), 0);
    assert_eq!(place.exit_code("plan --sandbox --base HEAD"), 3);
    // A denied warning is reported once, as an error.
    let told = plan("HEAD");
    assert!(told.contains("error[deprecated]") && !told.contains("warning[deprecated]"), "{told}");
    let found = std::fs::read_to_string(place.path().join("found.txt")).unwrap();
    assert_eq!(found.matches(": deprecated: ").count(), 1, "{found}");
}

#[test]
fn a_base_with_faults_is_reported_and_the_plan_is_made() {
    if !has_git() {
        return;
    }
    let place = place();
    place.write("shop.yaml", &SHOP.replace("merge_method: merge", "merge_method: nonesuch"));
    git(&place, "commit -qam broken");
    place.write("shop.yaml", SHOP);
    let story = ["plan --sandbox --base HEAD", "apply --sandbox --yes --base HEAD"]
        .map(|arguments| place.run(arguments));
    insta::assert_snapshot!(story.join("\n"));
    // Changes of the branch are unknown, so all count.
    assert_eq!(place.exit_code("apply --sandbox --yes"), 0);
    place.write("shop.yaml", &SHOP.replace("settings: {", "settings: {visibility: public, "));
    assert_eq!(place.exit_code("plan --sandbox --base HEAD"), 4);
}

/// Manifests in a folder of a larger repository, whose other YAML is ignored; and a folder that the
/// base does not have.
#[test]
fn the_base_has_its_own_root_of_manifests() {
    if !has_git() {
        return;
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let place = Workspace::new()
        .file("broken.yaml", "{")
        .file("infra/undrift.yaml", "version: 1\n")
        .file("infra/sandbox.yaml", SEED)
        .file("infra/deep/shop.yaml", SHOP)
        .file(".gitignore", ".undrift\n")
        .env("PATH", &path);
    git(&place, "init -q");
    git(&place, "add .");
    git(&place, "commit -qm base");
    assert_eq!(place.exit_code("apply infra --sandbox --yes"), 0);
    place.write("infra/deep/shop.yaml", &SHOP.replace("from Git", "new"));
    let output =
        place.run("plan infra/deep --sandbox=infra/.undrift/sandbox.db --base HEAD --changed");
    assert!(output.contains("1 to change") && !output.contains("drift:"), "{output}");
    place.write("later/sandbox.yaml", SEED);
    place.write("later/shop.yaml", SHOP);
    let told = place.run("plan later --sandbox --base HEAD");
    assert!(told.ends_with("---- exit code 0\n") && !told.contains("(drift"), "{told}");
}

#[test]
fn a_base_is_found_in_a_second_working_tree_and_in_a_clone_in_a_clone() {
    if !has_git() {
        return;
    }
    let place = place();
    assert_eq!(place.exit_code("apply --sandbox=state.db --yes"), 0);
    git(&place, "checkout -qb change");
    place.write("shop.yaml", &SHOP.replace("from Git", "of the branch"));
    git(&place, "commit -qam change");
    git(&place, "checkout -q main");
    git(&place, "worktree add -q tree change");
    git(&place, "clone -q -b change . inner");
    for (folder, base) in [("tree", "main"), ("inner", "origin/main")] {
        let plan = format!("plan {folder} --sandbox=state.db --base {base} --out json=plan.json");
        assert_eq!(place.exit_code(&plan), 0, "{}", place.run(&plan));
        let plan = std::fs::read_to_string(place.path().join("plan.json")).unwrap();
        let plan: Json = serde_json::from_str(&plan).unwrap();
        let labels: Vec<_> =
            plan["steps"].as_array().unwrap().iter().map(|s| &s["label"]).collect();
        assert_eq!(labels, ["change"], "{folder}: {plan}");
    }
}

#[test]
fn included_projects_are_compared_with_those_of_the_base() {
    const RULE: &str = "kind: Defaults
match: {path: acme/**}
undeclared: include
settings: {description: by rule}
";
    if !has_git() {
        return;
    }
    let place = Workspace::new()
        .file("sandbox.yaml", SEED)
        .file("rule.yaml", RULE)
        .env("PATH", &std::env::var("PATH").unwrap_or_default());
    git(&place, "init -q");
    git(&place, "add .");
    git(&place, "commit -qm base");
    assert_eq!(place.exit_code("apply --sandbox --yes"), 0);
    let drift = "call project-edit id=acme/shop description=by-hand --sandbox --yes";
    assert_eq!(place.exit_code(drift), 0);
    assert_eq!(place.exit_code("snapshot --sandbox -o live.json"), 0);
    place.write("rule.yaml", &RULE.replace("by rule", "by rule, merge_method: ff"));
    let live_plan = place.run("plan --sandbox --base HEAD");
    insta::assert_snapshot!(live_plan);
    let snapshot_plan = place.run("plan --live live.json --base HEAD");
    let body = |text: &str| text[text.find("acme/").unwrap()..].to_owned();
    assert_eq!(body(&snapshot_plan), body(&live_plan));
    assert_eq!(place.exit_code("apply --sandbox --base HEAD --yes"), 0);
    let text = place.run("call project-get id=acme/shop --sandbox");
    assert!(text.contains("by-hand"), "drift is left alone: {text}");
    assert!(text.contains("\"merge_method\": \"ff\""), "{text}");
}

/// Limits that allow `count` removals.
fn limits(count: u8) -> String {
    format!("version: 1\nguards: {{removals: {{count: {count}, share: 1}}}}\n")
}

/// Labels of a project; unlisted ones are deleted.
fn labels(names: &[&str]) -> String {
    let labels: Vec<_> =
        names.iter().map(|name| format!("{{name: {name}, color: '#ff0000'}}")).collect();
    let labels = labels.join(", ");
    format!("kind: Project\npath: acme/shop\nlabels: [{labels}]\nunlisted: {{labels: delete}}\n")
}

/// A repository whose branch removes more than the limits of `main` allow, and raises them. The
/// live state matches `main`.
fn limited_place() -> Workspace {
    let place = Workspace::new()
        .file("sandbox.yaml", SEED)
        .file("m/undrift.yaml", &limits(0))
        .file("m/shop.yaml", &labels(&["a", "b", "c"]))
        .env("PATH", &std::env::var("PATH").unwrap_or_default());
    git(&place, "init -q");
    git(&place, "add m");
    git(&place, "commit -qm limits");
    assert_eq!(place.exit_code("apply m --sandbox=state.db --yes"), 3, "no group to start with");
    std::fs::copy(place.path().join("sandbox.yaml"), place.path().join("m/sandbox.yaml")).unwrap();
    assert_eq!(place.exit_code("apply m --sandbox=state.db --yes"), 0);
    git(&place, "checkout -qb branch");
    place.write("m/undrift.yaml", &limits(9));
    place.write("m/shop.yaml", &labels(&["a"]));
    git(&place, "commit -qam branch");
    place
}

/// The base comes from the repository around the branch, never from its commits or environment, or
/// there is none.
#[test]
fn a_branch_is_never_its_own_base() {
    if !has_git() {
        return;
    }
    const PLAN: &str = "plan m --sandbox=state.db --base main";
    let place = limited_place();
    assert_eq!(place.exit_code(PLAN), 4, "{}", place.run(PLAN));

    // Files that form a repository, in the folder or above it.
    let evil = place.path().join("evil");
    git(&place, "clone -q --bare --branch branch . evil");
    let update_ref = ["--git-dir=evil", "update-ref refs/heads/main refs/heads/branch"].join(" ");
    git(&place, &update_ref);
    for folder in ["m", "."] {
        for name in ["HEAD", "config", "objects", "refs", "packed-refs"] {
            let to = place.path().join(folder).join(name);
            let copied = Command::new("cp").arg("-r").args([evil.join(name), to]).status().unwrap();
            assert!(copied.success());
        }
        git(&place, &format!("add {folder}/HEAD {folder}/config {folder}/objects {folder}/refs"));
        assert_eq!(place.exit_code(PLAN), 4, "{folder}: {}", place.run(PLAN));
    }

    // Variables that lead git elsewhere, and another commit in place of the base.
    let evil = evil.to_str().unwrap();
    let git_variables = [
        ("GIT_DIR", evil),
        ("GIT_COMMON_DIR", evil),
        ("GIT_OBJECT_DIRECTORY", evil),
        ("GIT_NAMESPACE", "evil"),
        ("GIT_CEILING_DIRECTORIES", place.path().to_str().unwrap()),
    ];
    let mut command = place.command(PLAN);
    assert_eq!(command.envs(git_variables).output().unwrap().status.code(), Some(4));
    git(&place, "replace main branch");
    assert_eq!(place.exit_code(PLAN), 4, "{}", place.run(PLAN));
    git(&place, "replace -d main");

    // A tag with the name of the base.
    git(&place, "tag main branch");
    let output = place.run(PLAN);
    assert!(output.contains("several") && output.ends_with("exit code 3\n"), "{output}");
    assert_eq!(place.exit_code(&PLAN.replace("main", "refs/heads/main")), 4);
}

/// The branch makes the folder that the job names a link or a submodule.
#[test]
fn a_branch_does_not_choose_the_repository_of_its_base() {
    if !has_git() {
        return;
    }
    for swap in ["a link", "a submodule"] {
        let place = limited_place();
        git(&place, "mv m n");
        if swap == "a link" {
            let link = Command::new("ln").args(["-s", "n", "m"]).current_dir(place.path()).status();
            assert!(link.unwrap().success());
        } else {
            std::fs::remove_dir_all(place.path().join("m")).unwrap_or_default();
            git(&place, "clone -q --branch branch . other");
            git(&place, "-c protocol.file.allow=always submodule add -q -b branch ./other m");
            for command in ["-C m mv m/undrift.yaml m/shop.yaml .", "-C m commit -qm swap"] {
                git(&place, command);
            }
            git(&place, "-C m branch -f main");
        }
        git(&place, "add m");
        git(&place, "commit -qm swap");
        let output = expect_exit(3, place.run("plan m --sandbox=state.db --base main"));
        assert!(output.contains(swap.trim_start_matches("a ")), "{output}");
        let inside = Command::new("sh")
            .args(["-c", "cd m && exec \"$0\" plan --sandbox=../state.db --base main"])
            .arg(env!("CARGO_BIN_EXE_undrift"))
            .current_dir(place.path())
            .output()
            .unwrap();
        assert_eq!(inside.status.code(), Some(3), "{}", String::from_utf8_lossy(&inside.stderr));
    }
}

/// Rules that the base cannot have would count as the branch's own, and be written with it.
#[test]
fn manifests_outside_the_repository_have_no_base() {
    const RULE: &str = "kind: Defaults\nmatch: {path: acme/**}\nsettings: {merge_method: ff}\n";
    if !has_git() {
        return;
    }
    let place = Workspace::new()
        .file("m/sandbox.yaml", SEED)
        .file("m/site.yaml", SITE)
        .file("shared/rule.yaml", RULE)
        .env("PATH", &std::env::var("PATH").unwrap_or_default());
    git(&place, "init -q shared");
    git(&place, "-C shared add .");
    git(&place, "-C shared commit -qm rule");
    git(&place, "init -q");
    git(&place, "add m/site.yaml");
    git(&place, "commit -qm base");
    let refused = |what: &str| {
        let output = place.run("apply m --sandbox=state.db --yes --base HEAD");
        assert!(output.contains(what) && output.ends_with("---- exit code 3\n"), "{output}");
        let mut command = place.command("plan m --sandbox=state.db");
        let of_job = command.env("CI_MERGE_REQUEST_DIFF_BASE_SHA", "HEAD").output().unwrap();
        let stderr = String::from_utf8_lossy(&of_job.stderr);
        assert_eq!(of_job.status.code(), Some(0), "{stderr}");
        assert!(stderr.contains("warning[base]") && stderr.contains(what), "{stderr}");
    };
    let accepted = || {
        expect_exit(0, place.run("plan m --sandbox=state.db --base HEAD"));
    };
    accepted();
    git(&place, "clone -q ./shared m/shared");
    refused("`m/shared/` is another repository");
    std::fs::remove_dir_all(place.path().join("m/shared")).unwrap();
    place.write("m/made.yaml", RULE);
    accepted();
    place.write(".gitignore", "made.yaml\nsandbox.yaml\n");
    refused("`m/made.yaml`");
    std::fs::remove_file(place.path().join("m/made.yaml")).unwrap();
    accepted();
    git(&place, "-c protocol.file.allow=always submodule add -q ./shared m/shared");
    git(&place, "commit -qam submodule");
    refused("`m/shared` is a submodule");
    git(&place, "rm -q m/shared");
    std::fs::remove_dir_all(place.path().join("m/shared")).unwrap_or_default();
    refused("`m/shared` is a submodule");
    git(&place, "commit -qm without");
    accepted();
}
