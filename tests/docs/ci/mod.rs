//! The pipeline in `examples/ci/`: which jobs run when, their artifacts, and their variables. `run`
//! tests that each of them works.

mod large;
mod run;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{assert_current, file, shown::TOKEN};

/// The pipeline's file.
pub(crate) const PIPELINE: &str = "examples/ci/undrift.gitlab-ci.yml";
/// Its jobs in parts.
pub(crate) const PARTS: &str = "examples/ci/parts.gitlab-ci.yml";
/// The same as a component, in the folder where the service looks for components.
const COMPONENT: &str = "templates/undrift.yml";
/// The inputs of the component: name, description, default, and its line of the pipeline.
const INPUTS: [(&str, &str, &str, &str); 3] = [
    ("manifests", "The folder of manifests.", "manifests", "MANIFESTS: DEFAULT\n"),
    (
        "image",
        "The image with undrift, a shell, Git and curl.",
        "$CI_REGISTRY_IMAGE/undrift:latest",
        "UNDRIFT_IMAGE: DEFAULT\n",
    ),
    (
        "environment",
        "The protected environment; those who may deploy to it may press `apply`.",
        "production",
        "environment: {name: DEFAULT}\n",
    ),
];
/// Keys of the file that are not jobs.
const NO_JOBS: [&str; 4] = ["stages", "variables", "default", "workflow"];
/// The id of the project of the manifests.
const PROJECT: &str = "2";

/// The pipeline as data.
fn pipeline() -> Map<String, Value> {
    read(PIPELINE)
}

/// A file of jobs as data.
fn read(name: &str) -> Map<String, Value> {
    let parsed = undrift::yaml::parse(&file(name));
    assert!(parsed.faults.is_empty() && parsed.documents.len() == 1, "{:?}", parsed.faults);
    parsed.documents[0].to_json().as_object().cloned().unwrap()
}

fn jobs(pipeline: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    let jobs = pipeline.iter().filter(|(name, _)| !NO_JOBS.contains(&name.as_str()));
    jobs.map(|(name, job)| (name.as_str(), job))
}

/// The texts of a list.
fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The reason for a pipeline, and its commit.
#[derive(Clone, Copy, Debug)]
struct Event {
    source: &'static str,
    branch: &'static str,
    /// True if a merge request from that branch is open.
    has_request: bool,
    /// True if it runs in a fork of the project.
    is_fork: bool,
}

impl Event {
    const PUSH: Self = Self { source: "push", branch: "main", has_request: false, is_fork: false };
    const SCHEDULE: Self = Self { source: "schedule", ..Self::PUSH };
    const BRANCH: Self = Self { branch: "change", ..Self::PUSH };
    const MERGE_REQUEST: Self =
        Self { source: "merge_request_event", has_request: true, ..Self::BRANCH };

    /// The variables of a job, from the service and from the project's settings. Protected ones are
    /// only for protected branches.
    fn variables(self) -> BTreeMap<&'static str, String> {
        let mut variables = BTreeMap::new();
        let mut set = |name, value: &str| {
            variables.insert(name, value.to_owned());
        };
        let project = if self.is_fork { "3" } else { PROJECT };
        set("CI", "true");
        set("GITLAB_CI", "true");
        set("CI_PROJECT_ID", project);
        set(
            "CI_PROJECT_PATH",
            if self.is_fork { "alice/configuration" } else { "acme/configuration" },
        );
        set("CI_DEFAULT_BRANCH", "main");
        set("CI_PIPELINE_SOURCE", self.source);
        set("CI_PIPELINE_ID", "70");
        set("CI_PIPELINE_URL", "https://gitlab.example.org/acme/configuration/-/pipelines/70");
        set("CI_JOB_ID", "700");
        set("CI_JOB_TOKEN", "token-of-the-job");
        set("CI_COMMIT_REF_NAME", self.branch);
        set("GITLAB_USER_LOGIN", "alice");
        if self.has_request {
            set("CI_OPEN_MERGE_REQUESTS", "acme/configuration!1");
        }
        if self.source == "merge_request_event" {
            set("CI_MERGE_REQUEST_IID", "1");
            set("CI_MERGE_REQUEST_PROJECT_ID", PROJECT);
            set("CI_MERGE_REQUEST_PROJECT_PATH", "acme/configuration");
            set("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", project);
            set("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", self.branch);
            set("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main");
        } else {
            set("CI_COMMIT_BRANCH", self.branch);
        }
        if !self.is_fork {
            set("UNDRIFT_COMMENT_TOKEN", TOKEN);
        }
        if self.branch == "main" && !self.is_fork {
            set("CI_COMMIT_REF_PROTECTED", "true");
            set("UNDRIFT_TOKEN", TOKEN);
            set("UNDRIFT_TOKEN_first", run::FIRST_TOKEN);
            set("UNDRIFT_TOKEN_rest", run::REST_TOKEN);
            set("UNDRIFT_SNAPSHOT_KEY", "a-key-for-snapshots-of-32-characters");
            set("UNDRIFT_PLAN_KEY", "a-key-for-saved-plans-of-32-characters");
        }
        variables
    }
}

/// True if the condition of a rule is true: `$NAME`, `"text"`, `==`, `!=`, `&&` before `||`.
fn is_met(condition: &str, variables: &BTreeMap<&str, String>) -> bool {
    let value = |word: &str| match word.trim().strip_prefix('$') {
        Some(name) => variables.get(name).cloned().unwrap_or_default(),
        None => word.trim().trim_matches('"').to_owned(),
    };
    let is_true = |term: &str| match (term.split_once("=="), term.split_once("!=")) {
        (Some((left, right)), _) => value(left) == value(right),
        (_, Some((left, right))) => value(left) != value(right),
        _ => !value(term).is_empty(),
    };
    condition.split("||").any(|all| all.split("&&").all(is_true))
}

/// Returns `when` of the first rule whose condition is true; `None` if the job does not run.
fn job_condition<'r>(rules: &'r Value, variables: &BTreeMap<&str, String>) -> Option<&'r str> {
    let met = |rule: &&Value| rule["if"].as_str().is_none_or(|text| is_met(text, variables));
    let rule = rules.as_array().unwrap().iter().find(met)?;
    Some(rule["when"].as_str().unwrap_or("on_success")).filter(|when| *when != "never")
}

/// The jobs in the pipeline of `event` that run automatically, then the manual ones, in the order
/// of their stages.
fn chosen_jobs(pipeline: &Map<String, Value>, event: Event) -> (Vec<&str>, Vec<&str>) {
    let variables = event.variables();
    let (mut automatic, mut manual) = (Vec::new(), Vec::new());
    if job_condition(&pipeline["workflow"]["rules"], &variables).is_none() {
        return (automatic, manual);
    }
    for stage in texts(&pipeline["stages"]) {
        for (name, job) in jobs(pipeline).filter(|(_, job)| job["stage"] == stage) {
            match job_condition(&job["rules"], &variables) {
                Some("manual") => manual.push(name),
                Some(_) => automatic.push(name),
                None => {}
            }
        }
    }
    (automatic, manual)
}

#[test]
fn the_component_has_the_jobs_of_the_pipeline() {
    let mut jobs = file(PIPELINE);
    // Its first comment is about copying.
    jobs.drain(..jobs.find("stages:").unwrap());
    let mut head = format!(
        "# The pipeline as a component, for `include:`. A test writes it from {PIPELINE}.\n\
         # docs/howto/pipeline.md says which variables, tokens and settings it needs.\nspec:\n  inputs:\n"
    );
    for (name, description, default, line) in INPUTS {
        head +=
            &format!("    {name}:\n      description: {description}\n      default: {default}\n");
        let [line, taken] = [default, &format!("\"$[[ inputs.{name} ]]\"")]
            .map(|value| line.replace("DEFAULT", value));
        assert_eq!(jobs.matches(&line).count(), 1, "{line}");
        jobs = jobs.replace(&line, &taken);
    }
    assert_current(COMPONENT, &format!("{head}---\n{jobs}"));
    let parsed = undrift::yaml::parse(&file(COMPONENT));
    assert!(parsed.faults.is_empty() && parsed.documents.len() == 2, "{:?}", parsed.faults);
    let inputs = &parsed.documents[0].to_json()["spec"]["inputs"];
    let mut filled = parsed.documents[1].to_json().to_string();
    for (name, input) in inputs.as_object().unwrap() {
        let default = input["default"].as_str().unwrap();
        filled = filled.replace(&format!("$[[ inputs.{name} ]]"), default);
    }
    assert_eq!(serde_json::from_str::<Value>(&filled).unwrap(), Value::Object(pipeline()));
}

#[test]
fn conditions_of_rules_are_understood() {
    let variables = BTreeMap::from([("A", "1".to_owned()), ("B", "1".to_owned())]);
    for (condition, met) in [
        ("$A", true),
        ("$C", false),
        ("$A == $B", true),
        ("$A == \"2\"", false),
        ("$A != \"2\" && $C", false),
        ("$C || $A == \"1\" && $B", true),
    ] {
        assert_eq!(is_met(condition, &variables), met, "{condition}");
    }
}

#[test]
fn each_event_gets_its_jobs_and_no_push_gets_two_pipelines() {
    let pipeline = pipeline();
    let fork = |event| Event { is_fork: true, ..event };
    let open = |event| Event { has_request: true, ..event };
    let table: [(Event, &[&str], &[&str]); 9] = [
        (Event::BRANCH, &["check"], &[]),
        // A push to the branch of a merge request starts these in addition to the merge request's
        // pipeline.
        (open(Event::BRANCH), &[], &[]),
        (Event::MERGE_REQUEST, &["check", "plan-merge-request", "comment"], &[]),
        (fork(Event::MERGE_REQUEST), &["check"], &[]),
        (fork(Event::BRANCH), &["check"], &[]),
        (fork(Event::PUSH), &["check"], &[]),
        (Event::PUSH, &["check", "snapshot", "plan"], &["apply"]),
        (open(Event::PUSH), &["check", "snapshot", "plan"], &["apply"]),
        (Event::SCHEDULE, &["snapshot", "drift"], &[]),
    ];
    for (event, alone, by_hand) in table {
        assert_eq!(chosen_jobs(&pipeline, event), (alone.to_vec(), by_hand.to_vec()), "{event:?}");
    }
    // The needs of a job are in each pipeline with the job, and in the same or an earlier stage.
    let stages = texts(&pipeline["stages"]);
    let stage = |job: &str| stages.iter().position(|stage| pipeline[job]["stage"] == *stage);
    for (event, ..) in table {
        let (alone, by_hand) = chosen_jobs(&pipeline, event);
        let all = [alone, by_hand].concat();
        for job in &all {
            for needed in texts(&pipeline[*job]["needs"]) {
                assert!(all.contains(&needed), "{job} needs {needed} in {event:?}");
                assert!(stage(needed).is_some() && stage(needed) <= stage(job), "{job}: {needed}");
            }
        }
    }
}

/// The files that a job keeps.
fn artifacts(job: &Value) -> Vec<&str> {
    let reports = job["artifacts"]["reports"].as_object();
    let reports = reports.into_iter().flat_map(Map::values).filter_map(Value::as_str);
    texts(&job["artifacts"]["paths"]).into_iter().chain(reports).collect()
}

#[test]
fn every_artifact_is_written_by_its_job_and_kept_from_the_public() {
    for (name, job) in jobs(&pipeline()) {
        let script = [texts(&job["script"]), texts(&job["after_script"])].concat().join("\n");
        let words: Vec<_> = script.split([' ', '=', '\n']).collect();
        for artifact in artifacts(job) {
            assert!(words.contains(&artifact), "{name} does not write {artifact}");
        }
        let is_private = job["artifacts"]["public"] == false;
        assert!(is_private || texts(&job["artifacts"]["paths"]).is_empty(), "{name}");
        assert!(artifacts(job).is_empty() || job["artifacts"]["when"] == "always", "{name}");
    }
}

#[test]
fn no_job_of_a_merge_request_has_a_token_that_can_plan() {
    let pipeline = pipeline();
    let given = Event::MERGE_REQUEST.variables();
    for secret in ["UNDRIFT_TOKEN", "UNDRIFT_SNAPSHOT_KEY", "UNDRIFT_PLAN_KEY"] {
        assert!(!given.contains_key(secret), "{secret}");
    }
    for name in chosen_jobs(&pipeline, Event::MERGE_REQUEST).0 {
        let text = pipeline[name].to_string();
        assert_eq!(text.contains("COMMENT_TOKEN"), name == "comment", "{name}");
        assert!(name == "comment" || !text.contains("UNDRIFT_TOKEN"), "{name}");
    }
    assert_eq!(pipeline["apply"]["environment"]["name"], "production");
    assert_eq!(pipeline["apply"]["interruptible"], false);
    assert!(pipeline["apply"]["resource_group"].is_string());
    assert_eq!(pipeline["variables"]["GIT_DEPTH"], "0", "the base has to be there");
}
