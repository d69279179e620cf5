//! The pipeline with 30 groups and 90 projects (400 with `UNDRIFT_TESTS=all`) that one rule
//! declares: what people see of it, and that it converges.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{
    Event,
    run::{Ci, JobResult},
};

/// The groups of the organisation, and the projects of each one below the first.
const GROUPS: usize = 30;
fn projects() -> usize {
    if crate::sample::plays_all() { 400 } else { 90 }
}

/// Maximum lines of a terminal, and of a comment.
const SCREEN: usize = 60;
const COMMENT: usize = 100;
const RULES: &str = "kind: Defaults\nmatch: {path: acme/*/**}\nsettings:\n  merge_method: merge\n";
const SHOP: &str = "kind: Project\npath: acme/shop\nsettings:\n  description: What we sell\n";

/// The organisation, with a project of the manifests and one that no rule matches.
fn organisation() -> Ci {
    let group = |number: usize| format!("acme/g{:02}", number % (GROUPS - 1));
    let mut seed = "users: [{username: alice}]\nprojects:\n  \
        - {path: acme/shop, settings: {description: What we sell}}\n  \
        - {path: acme/configuration, merge_requests: [{title: Change}]}\n"
        .to_owned();
    let mut documents = String::from("kind: Group\npath: acme\n");
    for number in 0..GROUPS - 1 {
        write!(documents, "---\nkind: Group\npath: {}\n", group(number)).unwrap();
    }
    for number in 0..projects() {
        let path = format!("{}/p{number:03}", group(number));
        writeln!(seed, "  - {{path: {path}, branches: [main]}}").unwrap();
        write!(documents, "---\nkind: Project\npath: {path}\n").unwrap();
    }
    Ci::with_manifests(
        &seed,
        &[("rules.yaml", RULES), ("shop.yaml", SHOP), ("organisation.yaml", &documents)],
    )
}

/// A branch `change` whose only commit edits the manifests by a `sed` script.
fn edited(ci: Ci, file: &str, script: &str) -> Ci {
    ci.git(&format!(
        "git switch -q -C change main && sed -i '{script}' manifests/{file} && \
         git commit -qam Change && git switch -q main"
    ))
}

fn failed(ended: &[(String, JobResult)]) -> Vec<&str> {
    let failed = ended.iter().filter(|(_, how)| matches!(how, JobResult::Failed(_)));
    failed.map(|(name, _)| name.as_str()).collect()
}

fn is_short(ci: &Ci, jobs: &[&str]) {
    for job in jobs {
        let printed = ci.printed(job);
        assert!(printed.lines().count() <= SCREEN, "{job}: {printed}");
    }
}

/// The comment, without its first line, which identifies it.
fn comment(ci: &Ci) -> String {
    let comment = ci.comment();
    assert!(comment.lines().count() <= COMMENT, "{comment}");
    comment.split_once('\n').unwrap().1.to_owned()
}

#[test]
fn a_merge_request_that_fails_is_short_with_hundreds_of_projects() {
    // The merge request that introduces the pipeline has no snapshot yet.
    let mut ci = organisation().git("git branch -q change");
    assert_eq!(failed(&ci.start(Event::MERGE_REQUEST)), ["plan-merge-request"]);
    assert!(comment(&ci).starts_with("### undrift plan: failed\n"), "{}", comment(&ci));
    assert!(comment(&ci).contains("take a snapshot"), "{}", comment(&ci));
    is_short(&ci, &["check", "plan-merge-request"]);

    // One that fails `check`: the comment has the fault of the rule once.
    ci = edited(ci, "rules.yaml", "s/merge_method/merge_methd/");
    assert_eq!(failed(&ci.start(Event::MERGE_REQUEST)), ["check", "plan-merge-request"]);
    assert_eq!(comment(&ci).matches("unknown field `merge_methd`").count(), 1, "{}", comment(&ci));
    is_short(&ci, &["check", "plan-merge-request"]);
}

#[test]
fn reports_about_hundreds_of_projects_stay_short() {
    let (projects, all) = (projects(), GROUPS + projects() + 1);
    // One line of a rule changes all projects, while something else drifts.
    let mut ci = organisation();
    ci.call("project-edit --yes description=By-hand");
    assert_eq!(failed(&ci.start_without(Event::PUSH, "apply")), [""; 0]);
    ci = edited(ci, "rules.yaml", "s/: merge$/: ff/");
    assert_eq!(failed(&ci.start(Event::MERGE_REQUEST)), [""; 0]);
    is_short(&ci, &["check", "plan-merge-request", "comment"]);
    let shown = comment(&ci);
    let title = format!(
        "### undrift plan: {projects} to change in {projects} of {all} groups and projects; \
         {projects} calls; 1 differed before this branch\n"
    );
    assert!(shown.starts_with(&title), "{shown}");
    assert!(shown.contains(&format!("and the same in {} others", projects - 1)), "{shown}");
    let widget: Value = serde_json::from_str(&ci.artifact("plan.tf.json")).unwrap();
    assert_eq!(widget, json!({"create": 0, "update": projects, "delete": 0}));
    let findings: Value = serde_json::from_str(&ci.artifact("plan.codequality.json")).unwrap();
    let found = findings.as_array().unwrap().iter();
    let found: Vec<_> = found.map(|one| (&one["check_name"], &one["location"]["path"])).collect();
    let wanted = [
        (&json!("undrift/change"), &json!("manifests/rules.yaml")),
        (&json!("undrift/drift"), &json!("manifests/shop.yaml")),
    ];
    assert_eq!(found, wanted, "{findings}");

    // Once that is applied, nothing of it is drift for the next one, which declares a new section.
    ci = ci.git("git merge -q --no-ff -m Merge change");
    assert_eq!(failed(&ci.start_without(Event::PUSH, "snapshot")), [""; 0]);
    is_short(&ci, &["check", "plan", "apply"]);
    let badge = "badges: [{link_url: \"https://e.org\", image_url: \"https://e.org/i.png\"}]";
    ci = edited(ci, "shop.yaml", &format!("$ a {badge}"));
    let ended = ci.start(Event::MERGE_REQUEST);
    assert!(ended.iter().all(|(_, how)| *how == JobResult::Well), "{ended:?}");
    let title =
        format!("### undrift plan: 1 to create in 1 of {all} groups and projects; 1 call\n");
    assert!(comment(&ci).starts_with(&title), "{}", comment(&ci));
}

/// Without the pipeline.
#[test]
fn a_saved_plan_is_applied_without_naming_its_folder() {
    let ci = edited(organisation(), "rules.yaml", "s/: merge$/: ff/");
    let service = format!("UNDRIFT_URL={} UNDRIFT_TOKEN={}", ci.place.url().unwrap(), super::TOKEN);
    drop(ci.git(&format!(
        "git merge -q change && {service} undrift plan manifests -o plan.json && \
         {service} undrift apply plan.json --yes && \
         {service} undrift drift manifests"
    )));
}
