//! The pipeline in `examples/ci/`: which jobs run when, and that each of them works, in order, in a clone
//! of a repository, against a sandbox, with the variables that the service gives to jobs.

use std::{collections::BTreeMap, fs};

use serde_json::{Map, Value};

use crate::{
    file,
    not_yet::COMMANDS,
    shown::{Place, TOKEN},
};

/// The pipeline's file.
pub(crate) const PIPELINE: &str = "examples/ci/undrift.gitlab-ci.yml";
/// Keys of the file that are no jobs.
const NO_JOBS: [&str; 4] = ["stages", "variables", "default", "workflow"];
/// The id of the project of the manifests.
const PROJECT: &str = "2";
/// Where the artifact of the snapshot is, without the address of the service.
const SNAPSHOT: &str = "/projects/2/jobs/artifacts/main/raw/live.json?job=snapshot";

/// The pipeline as data.
fn pipeline() -> Map<String, Value> {
    let parsed = undrift::yaml::parse(&file(PIPELINE));
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

/// Why there is a pipeline, for which commit.
#[derive(Clone, Copy, Debug)]
struct Event {
    source: &'static str,
    branch: &'static str,
    /// Whether a merge request from that branch is open.
    open: bool,
    /// Whether it runs in a fork of the project.
    fork: bool,
}

impl Event {
    const PUSH: Self = Self { source: "push", branch: "main", open: false, fork: false };
    const SCHEDULE: Self = Self { source: "schedule", ..Self::PUSH };
    const BRANCH: Self = Self { branch: "change", ..Self::PUSH };
    const REQUEST: Self = Self { source: "merge_request_event", open: true, ..Self::BRANCH };

    /// The variables that a job gets, from the service and from the project's settings. Those of the
    /// settings that are protected are for protected branches alone.
    fn variables(self) -> BTreeMap<&'static str, String> {
        let mut variables = BTreeMap::new();
        let mut set = |name, value: &str| {
            variables.insert(name, value.to_owned());
        };
        let project = if self.fork { "3" } else { PROJECT };
        set("CI", "true");
        set("GITLAB_CI", "true");
        set("CI_PROJECT_ID", project);
        set(
            "CI_PROJECT_PATH",
            if self.fork { "alice/configuration" } else { "acme/configuration" },
        );
        set("CI_DEFAULT_BRANCH", "main");
        set("CI_PIPELINE_SOURCE", self.source);
        set("CI_PIPELINE_ID", "70");
        set("CI_PIPELINE_URL", "https://gitlab.example.org/acme/configuration/-/pipelines/70");
        set("CI_JOB_ID", "700");
        set("CI_JOB_TOKEN", "token-of-the-job");
        set("CI_COMMIT_REF_NAME", self.branch);
        set("GITLAB_USER_LOGIN", "alice");
        if self.open {
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
        if !self.fork {
            set("UNDRIFT_COMMENT_TOKEN", TOKEN);
        }
        if self.branch == "main" && !self.fork {
            set("CI_COMMIT_REF_PROTECTED", "true");
            set("UNDRIFT_TOKEN", TOKEN);
            set("UNDRIFT_SNAPSHOT_KEY", "a-key-for-snapshots-of-32-characters");
            set("UNDRIFT_PLAN_KEY", "a-key-for-saved-plans-of-32-characters");
        }
        variables
    }
}

/// Whether the condition of a rule is met: `$NAME`, `"text"`, `==`, `!=`, `&&` before `||`.
fn is_met(condition: &str, variables: &BTreeMap<&str, String>) -> bool {
    let value = |word: &str| match word.trim().strip_prefix('$') {
        Some(name) => variables.get(name).cloned().unwrap_or_default(),
        None => word.trim().trim_matches('"').to_owned(),
    };
    let holds = |term: &str| match (term.split_once("=="), term.split_once("!=")) {
        (Some((left, right)), _) => value(left) == value(right),
        (_, Some((left, right))) => value(left) != value(right),
        _ => !value(term).is_empty(),
    };
    condition.split("||").any(|all| all.split("&&").all(holds))
}

/// What the first rule that is met says: when the job runs, or nothing if it does not.
fn when<'r>(rules: &'r Value, variables: &BTreeMap<&str, String>) -> Option<&'r str> {
    let met = |rule: &&Value| rule["if"].as_str().is_none_or(|text| is_met(text, variables));
    let rule = rules.as_array().unwrap().iter().find(met)?;
    Some(rule["when"].as_str().unwrap_or("on_success")).filter(|when| *when != "never")
}

/// The jobs of the pipeline of `event` that run by themselves, then those that somebody has to start,
/// in the order of their stages.
fn chosen(pipeline: &Map<String, Value>, event: Event) -> (Vec<&str>, Vec<&str>) {
    let variables = event.variables();
    let (mut alone, mut by_hand) = (Vec::new(), Vec::new());
    if when(&pipeline["workflow"]["rules"], &variables).is_none() {
        return (alone, by_hand);
    }
    for stage in texts(&pipeline["stages"]) {
        for (name, job) in jobs(pipeline).filter(|(_, job)| job["stage"] == stage) {
            match when(&job["rules"], &variables) {
                Some("manual") => by_hand.push(name),
                Some(_) => alone.push(name),
                None => {}
            }
        }
    }
    (alone, by_hand)
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
    let fork = |event| Event { fork: true, ..event };
    let open = |event| Event { open: true, ..event };
    let table: [(Event, &[&str], &[&str]); 9] = [
        (Event::BRANCH, &["check"], &[]),
        // What a push to the branch of a merge request starts, besides the pipeline of that.
        (open(Event::BRANCH), &[], &[]),
        (Event::REQUEST, &["check", "plan-merge-request", "comment"], &[]),
        (fork(Event::REQUEST), &["check"], &[]),
        (fork(Event::BRANCH), &["check"], &[]),
        (fork(Event::PUSH), &["check"], &[]),
        (Event::PUSH, &["check", "snapshot", "plan"], &["apply"]),
        (open(Event::PUSH), &["check", "snapshot", "plan"], &["apply"]),
        (Event::SCHEDULE, &["snapshot", "drift"], &[]),
    ];
    for (event, alone, by_hand) in table {
        assert_eq!(chosen(&pipeline, event), (alone.to_vec(), by_hand.to_vec()), "{event:?}");
    }
    // What a job needs is in each pipeline that has the job, and in an earlier or the same stage.
    let stages = texts(&pipeline["stages"]);
    let stage = |job: &str| stages.iter().position(|stage| pipeline[job]["stage"] == *stage);
    for (event, ..) in table {
        let (alone, by_hand) = chosen(&pipeline, event);
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
        let script = texts(&job["script"]).join("\n");
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
    let given = Event::REQUEST.variables();
    for secret in ["UNDRIFT_TOKEN", "UNDRIFT_SNAPSHOT_KEY", "UNDRIFT_PLAN_KEY"] {
        assert!(!given.contains_key(secret), "{secret}");
    }
    for name in chosen(&pipeline, Event::REQUEST).0 {
        let text = pipeline[name].to_string();
        assert_eq!(text.contains("COMMENT_TOKEN"), name == "comment", "{name}");
        assert!(name == "comment" || !text.contains("UNDRIFT_TOKEN"), "{name}");
    }
    assert_eq!(pipeline["apply"]["environment"]["name"], "production");
    assert_eq!(pipeline["apply"]["interruptible"], false);
    assert!(pipeline["apply"]["resource_group"].is_string());
    assert_eq!(pipeline["plan-merge-request"]["variables"]["GIT_DEPTH"], "0");
}

/// The second project is the one of the manifests.
const SEED: &str = "
users: [{username: alice}]
groups: [{path: acme, visibility: internal, members: [{user: alice, access_level: owner}]}]
projects:
  - {path: acme/shop, settings: {visibility: internal, merge_method: merge}}
  - {path: acme/configuration, settings: {visibility: private}, merge_requests: [{title: Change}]}
";
const SHOP: &str = "kind: Project\npath: acme/shop\nsettings: {merge_method: merge}\n";

/// The service's side of CI: a repository, clones for jobs, artifacts that go from one to the next.
struct Ci {
    place: Place,
    pipeline: Map<String, Value>,
    /// The files that jobs kept, by job and name. The last ones, as the artifacts of a branch are.
    kept: BTreeMap<(String, String), Vec<u8>>,
    clones: usize,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// As it should, or with a warning.
    Well,
    /// It uses what is not there yet, or needs a job that does.
    Late,
}

impl Ci {
    fn new() -> Self {
        let mut place = Place::new();
        // Without the command that comments, the sandbox has no merge requests either.
        let comments = !COMMANDS.contains(&"undrift comment");
        let requests = ", merge_requests: [{title: Change}]";
        place.serve(&if comments { SEED.to_owned() } else { SEED.replace(requests, "") });
        place.enter("origin");
        place.write("manifests/shop.yaml", SHOP);
        let ci = Self { place, pipeline: pipeline(), kept: BTreeMap::new(), clones: 0 };
        ci.git("git init -q && git add . && git commit -qm 'What we have'")
    }

    /// Runs a command in the repository.
    fn git(mut self, command: &str) -> Self {
        self.place.enter("origin");
        assert!(self.place.run(command).status.success(), "{command}");
        self
    }

    fn commit(&mut self, name: &str) -> String {
        self.place.enter("origin");
        let output = self.place.run(&format!("git rev-parse {name}"));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Runs the jobs of a pipeline, those that somebody has to start too.
    fn run(&mut self, event: Event) -> Vec<(String, Ended)> {
        let (alone, by_hand) = chosen(&self.pipeline, event);
        let names: Vec<_> = alone.into_iter().chain(by_hand).map(str::to_owned).collect();
        let mut ended: Vec<(String, Ended)> = Vec::new();
        for name in names {
            let job = self.pipeline[&name].clone();
            let needed = texts(&job["needs"]);
            let waits = ended
                .iter()
                .any(|(other, ended)| *ended == Ended::Late && needed.contains(&other.as_str()));
            let how = if waits { Ended::Late } else { self.job(&name, &job, event) };
            ended.push((name, how));
        }
        ended
    }

    /// Runs one job in a clone of its own.
    fn job(&mut self, name: &str, job: &Value, event: Event) -> Ended {
        let mut variables = event.variables();
        let url = self.place.url().unwrap().to_owned();
        variables.insert("CI_API_V4_URL", format!("{url}/api/v4"));
        variables.insert("CI_COMMIT_SHA", self.commit(event.branch));
        // There is no commit before the first of a branch or merge request.
        variables.insert("CI_COMMIT_BEFORE_SHA", "0".repeat(40));
        variables.insert("CI_JOB_NAME", name.to_owned());
        // A plan of a merge request that makes a call finds nobody there.
        let reached = name != "plan-merge-request";
        variables.insert("CI_SERVER_URL", if reached { url } else { "http://127.0.0.1:1".into() });
        if event.source == "merge_request_event" {
            variables.insert("CI_MERGE_REQUEST_DIFF_BASE_SHA", self.commit("main"));
        }
        self.clone_for(job, event);
        self.offer_snapshot();
        for ((from, file), bytes) in &self.kept {
            if texts(&job["needs"]).contains(&from.as_str()) {
                fs::write(self.place.path().join(file), bytes).unwrap();
            }
        }
        let declared = [&self.pipeline["variables"], &job["variables"]];
        let declared = declared.into_iter().filter_map(Value::as_object).flatten();
        let all: String = variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .chain(declared.map(|(name, value)| (name.as_str(), value.as_str().unwrap())))
            .map(|(name, value)| format!("export {name}=\"{value}\"\n"))
            .collect();
        let script = texts(&job["script"]).join("\n");
        let output = self.place.run(&format!("(set -e\n{all}{script}\n)"));
        let allowed = job["allow_failure"]["exit_codes"].as_array();
        let is_allowed = |code: i32| allowed.is_some_and(|codes| codes.contains(&code.into()));
        let well = output.status.code().is_some_and(|code| code == 0 || is_allowed(code));
        let late = COMMANDS.iter().filter(|feature| script.contains(**feature)).collect::<Vec<_>>();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(well, late.is_empty(), "{name} {:?}, {late:?}: {said}", output.status.code());
        if !well {
            return Ended::Late;
        }
        for artifact in artifacts(job) {
            let bytes = fs::read(self.place.path().join(artifact))
                .unwrap_or_else(|error| panic!("{name} did not write {artifact}: {error}"));
            self.kept.insert((name.to_owned(), artifact.to_owned()), bytes);
        }
        Ended::Well
    }

    /// Clones as deep as the job says, as runners do: a commit and no branch.
    fn clone_for(&mut self, job: &Value, event: Event) {
        self.clones += 1;
        self.place.enter(&format!("clone-{}", self.clones));
        let depth = match job["variables"]["GIT_DEPTH"].as_str() {
            Some("0") => "",
            _ => "--depth 20",
        };
        let fetch = format!(
            "git init -q && git fetch -q {depth} \"file://$PWD/../origin\" {}:refs/pipelines/70 && \
             git checkout -q --detach refs/pipelines/70",
            event.branch
        );
        assert!(self.place.run(&fetch).status.success());
    }

    /// Answers for the artifacts of the default branch.
    fn offer_snapshot(&self) {
        let bytes = self.kept.get(&("snapshot".to_owned(), "live.json".to_owned()));
        let file = self.place.path().join("../live.json");
        fs::write(&file, bytes.map_or(&[][..], Vec::as_slice)).unwrap();
        let url = format!("{}/api/v4{SNAPSHOT}", self.place.url().unwrap());
        self.place.stand_in(
            "curl",
            &format!(
                "case \"$*\" in *'--header JOB-TOKEN: token-of-the-job --output live.json {url}') \
                 cp ../live.json live.json;; *) echo \"$*\" >&2; exit 22;; esac\n"
            ),
        );
    }

    /// Whether the shop merges by fast-forward only, on the service.
    fn is_changed(&mut self) -> bool {
        let (url, token) = (self.place.url().unwrap().to_owned(), TOKEN);
        let read = format!(
            "UNDRIFT_URL={url} UNDRIFT_TOKEN={token} undrift call project-get id=acme/shop"
        );
        let output = self.place.run(&read);
        String::from_utf8_lossy(&output.stdout).contains("\"merge_method\": \"ff\"")
    }
}

/// The whole way of a change: a snapshot, a plan in a merge request, the merge, the plan, its
/// application, and the comparison afterwards.
#[test]
fn a_change_goes_all_the_way() {
    let mut ci = Ci::new();
    let first = ci.run(Event::PUSH);
    ci = ci.git("git switch -qc change && sed -i s/merge_method:.merge/merge_method:\\ ff/ manifests/shop.yaml && git commit -qam 'Fast-forward' && git switch -q main");
    let request = ci.run(Event::REQUEST);
    assert!(!ci.is_changed(), "a merge request changes nothing");
    ci = ci.git("git merge -q --no-ff -m 'Merge' change");
    let merged = ci.run(Event::PUSH);
    let scheduled = ci.run(Event::SCHEDULE);
    let runs = [first, request, merged, scheduled].concat();
    let late: Vec<_> = runs.iter().filter(|(_, how)| *how == Ended::Late).collect();
    if COMMANDS.is_empty() {
        assert_eq!(late, [] as [&(String, Ended); 0]);
        assert!(ci.is_changed());
        let comment = &ci.kept[&("plan-merge-request".to_owned(), "comment.md".to_owned())];
        assert!(String::from_utf8_lossy(comment).contains("merge_method"));
    }
    assert!(runs.iter().any(|(_, how)| *how == Ended::Well));
}
