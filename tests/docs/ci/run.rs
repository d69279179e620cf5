//! Each job works, in order, in a clone of a repository, against a sandbox, with the variables of
//! CI jobs.

use std::{collections::BTreeMap, fs};

use serde_json::{Map, Value, json};

use super::{Event, PARTS, artifacts, chosen_jobs, job_condition, pipeline, read, texts};
use crate::shown::{TOKEN, Workspace};

/// The URL of the snapshot's artifact, without the address of the service and the name of the job.
const SNAPSHOT: &str = "/projects/2/jobs/artifacts/main/raw/live.json?job=";
/// The second project contains the manifests.
const SEED: &str = "
users: [{username: alice}]
groups: [{path: acme, visibility: internal, members: [{user: alice, access_level: owner}]}]
projects:
  - {path: acme/shop, settings: {visibility: internal, merge_method: merge}}
  - {path: acme/configuration, settings: {visibility: private}, merge_requests: [{title: Change}]}
";
/// The tokens of the parts.
pub(super) const FIRST_TOKEN: &str = "glpat-of-the-first-part";
pub(super) const REST_TOKEN: &str = "glpat-of-the-other-part";
const SHOP: &str = "kind: Project\npath: acme/shop\nsettings:\n  merge_method: merge\n  \
                    description: What we sell\n";

/// Simulates the service's CI: a repository, clones for jobs, artifacts that are passed on.
pub(super) struct Ci {
    pub(super) place: Workspace,
    pipeline: Map<String, Value>,
    /// The latest artifacts, by job and name, as the service keeps them for a branch.
    artifacts: BTreeMap<(String, String), Vec<u8>>,
    /// Last output of each job.
    printed: BTreeMap<String, String>,
    clones: usize,
}

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JobResult {
    /// Success.
    Well,
    /// An exit code that the job allows.
    Warned,
    /// Another exit code, with the output.
    Failed(String),
}

impl Ci {
    /// The same with the jobs of another file, as the service merges files.
    fn with_file(mut self, file: &str) -> Self {
        let mut other = Value::Object(read(file));
        let parts = other.as_object_mut().unwrap().remove(".parts").unwrap();
        for job in other.as_object_mut().unwrap().values_mut() {
            if job["extends"] == ".parts" {
                merge(job, parts.clone());
            }
        }
        let mut pipeline = Value::Object(self.pipeline);
        merge(&mut pipeline, other);
        self.pipeline = pipeline.as_object().cloned().unwrap();
        self
    }

    fn new() -> Self {
        Self::with_manifests(SEED, &[("shop.yaml", SHOP)])
    }

    /// With these manifests, against a service with this seed.
    pub(super) fn with_manifests(seed: &str, manifests: &[(&str, &str)]) -> Self {
        let mut place = Workspace::new();
        place.serve(seed);
        place.enter("origin");
        for (name, text) in manifests {
            place.write(&format!("manifests/{name}"), text);
        }
        let (kept, printed) = (BTreeMap::new(), BTreeMap::new());
        let ci = Self { place, pipeline: pipeline(), artifacts: kept, printed, clones: 0 };
        ci.git("git init -q && git add . && git commit -qm 'What we have'")
    }

    /// Runs a command in the repository.
    pub(super) fn git(mut self, command: &str) -> Self {
        self.place.enter("origin");
        assert!(self.place.run(command).status.success(), "{command}");
        self
    }

    fn commit(&mut self, name: &str) -> String {
        self.place.enter("origin");
        let output = self.place.run(&format!("git rev-parse --verify --quiet {name}"));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Runs the jobs of a pipeline, manual ones too; none may fail.
    fn run(&mut self, event: Event) -> Vec<(String, JobResult)> {
        let ended = self.start(event);
        let failed = ended.iter().find(|(_, how)| matches!(how, JobResult::Failed(_)));
        assert_eq!(failed, None);
        ended
    }

    /// Runs the jobs; after a failure, only those that always run.
    pub(super) fn start(&mut self, event: Event) -> Vec<(String, JobResult)> {
        self.start_without(event, "")
    }

    /// The same without one of the jobs.
    pub(super) fn start_without(
        &mut self,
        event: Event,
        left_out: &str,
    ) -> Vec<(String, JobResult)> {
        let (alone, by_hand) = chosen_jobs(&self.pipeline, event);
        let names = alone.into_iter().chain(by_hand).filter(|name| *name != left_out);
        let names: Vec<_> = names.map(str::to_owned).collect();
        if event.branch == "main" {
            // Artifacts are those of the last pipeline.
            self.artifacts.remove(&("apply".to_owned(), "live.json".to_owned()));
        }
        let mut ended: Vec<(String, JobResult)> = Vec::new();
        for name in names {
            let job = self.pipeline[&name].clone();
            let has_failed = ended.iter().any(|(_, how)| matches!(how, JobResult::Failed(_)));
            if has_failed && job_condition(&job["rules"], &event.variables()) != Some("always") {
                continue;
            }
            let parts = texts(&job["parallel"]["matrix"][0]["PART"]).into_iter();
            let mut parts: Vec<_> = parts.map(|part| json!({"PART": part})).collect();
            if parts.is_empty() {
                parts.push(Value::Null);
            }
            for part in parts {
                let how = self.job(&name, &job, &part, event);
                let part = part["PART"].as_str().map(|part| format!(": {part}"));
                let items_of_part = format!("{name}{}", part.unwrap_or_default());
                self.printed.insert(items_of_part.clone(), self.printed[&name].clone());
                ended.push((items_of_part, how));
            }
        }
        ended
    }

    /// Runs one job, or this part of it, in a clone of its own.
    fn job(&mut self, name: &str, job: &Value, part: &Value, event: Event) -> JobResult {
        let mut variables = event.variables();
        let url = self.place.url().unwrap().to_owned();
        variables.insert("CI_API_V4_URL", format!("{url}/api/v4"));
        variables.insert("CI_COMMIT_SHA", self.commit(event.branch));
        // Merge requests and first pushes have no previous commit.
        let before = if event.source == "push" { self.commit("main^1") } else { String::new() };
        let before = if before.len() == 40 { before } else { "0".repeat(40) };
        variables.insert("CI_COMMIT_BEFORE_SHA", before);
        variables.insert("CI_JOB_NAME", name.to_owned());
        variables.insert("CI_SERVER_URL", url);
        if event.source == "merge_request_event" {
            variables.insert("CI_MERGE_REQUEST_DIFF_BASE_SHA", self.commit("main"));
        }
        self.clone_for(job, event);
        self.offer_snapshot();
        for ((from, file), bytes) in &self.artifacts {
            if texts(&job["needs"]).contains(&from.as_str()) {
                let path = self.place.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
        }
        let declared = [&self.pipeline["variables"], &job["variables"], part];
        let declared = declared.into_iter().filter_map(Value::as_object).flatten();
        let all: String = variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .chain(declared.map(|(name, value)| (name.as_str(), value.as_str().unwrap())))
            .map(|(name, value)| format!("export {name}=\"{value}\"\n"))
            .collect();
        let script = texts(&job["script"]).join("\n");
        let output = self.place.run(&format!("(set -e\n{all}{script}\n)"));
        let after = texts(&job["after_script"]).join("\n");
        self.place.run(&format!("({all}{after}\n)"));
        let code = output.status.code();
        let allowed = job["allow_failure"]["exit_codes"].as_array();
        let warned = allowed.is_some_and(|codes| codes.contains(&Value::from(code)));
        let stderr = String::from_utf8_lossy(&output.stderr);
        let printed = format!("{}{stderr}", String::from_utf8_lossy(&output.stdout));
        self.printed.insert(name.to_owned(), printed);
        let failed = !warned && code != Some(0);
        for artifact in artifacts(job) {
            let path = self.place.path().join(artifact);
            let inside = fs::read_dir(&path).into_iter().flatten().map(Result::unwrap);
            let inside: Vec<_> =
                inside.map(|file| format!("{artifact}/{}", file.file_name().display())).collect();
            let files = if path.is_dir() { inside } else { vec![artifact.to_owned()] };
            for file in files {
                match fs::read(self.place.path().join(&file)) {
                    Ok(bytes) => drop(self.artifacts.insert((name.to_owned(), file), bytes)),
                    Err(error) => assert!(failed, "{name} did not write {file}: {error}"),
                }
            }
        }
        match (failed, warned) {
            (true, _) => JobResult::Failed(format!("{code:?}: {stderr}")),
            (false, true) => JobResult::Warned,
            (false, false) => JobResult::Well,
        }
    }

    /// Clones with the job's depth, as runners do: a commit and no branch.
    fn clone_for(&mut self, job: &Value, event: Event) {
        self.clones += 1;
        self.place.enter(&format!("clone-{}", self.clones));
        let everywhere = self.pipeline["variables"]["GIT_DEPTH"].as_str();
        let depth = job["variables"]["GIT_DEPTH"].as_str().or(everywhere).unwrap_or("20");
        let depth = if depth == "0" { String::new() } else { format!("--depth {depth}") };
        let fetch = format!(
            "git init -q && git fetch -q {depth} \"file://$PWD/../origin\" {}:refs/pipelines/70 && \
             git checkout -q --detach refs/pipelines/70",
            event.branch
        );
        assert!(self.place.run(&fetch).status.success());
    }

    /// Serves the artifacts of the default branch.
    fn offer_snapshot(&self) {
        for job in ["apply", "snapshot"] {
            let file = self.place.path().join(format!("../{job}.live.json"));
            match self.artifacts.get(&(job.to_owned(), "live.json".to_owned())) {
                Some(bytes) => fs::write(&file, bytes).unwrap(),
                None => drop(fs::remove_file(&file)),
            }
        }
        let url = format!("{}/api/v4{SNAPSHOT}", self.place.url().unwrap());
        self.place.stand_in(
            "curl",
            &format!(
                "for last; do :; done; case \"$*\" in *'--header JOB-TOKEN: token-of-the-job --output live.json {url}'*) \
                 cp \"../${{last##*=}}.live.json\" live.json || exit 22;; \
                 *) echo \"$*\" >&2; exit 22;; esac\n"
            ),
        );
    }

    /// Last output of a job.
    pub(super) fn printed(&self, job: &str) -> &str {
        &self.printed[job]
    }

    /// An artifact of the last plan of a merge request.
    pub(super) fn artifact(&self, name: &str) -> String {
        let bytes = &self.artifacts[&("plan-merge-request".to_owned(), name.to_owned())];
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Calls an operation on the shop as another user; returns the response.
    pub(super) fn call(&mut self, operation: &str) -> String {
        let url = self.place.url().unwrap().to_owned();
        let output = self.place.run(&format!(
            "UNDRIFT_URL={url} UNDRIFT_TOKEN={TOKEN} undrift call {operation} id=acme/shop"
        ));
        assert!(output.status.success(), "{operation}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The comment of the last merge request.
    pub(super) fn comment(&self) -> String {
        self.artifact("comment.md")
    }

    /// True if the live shop merges by fast-forward only.
    fn is_changed(&mut self) -> bool {
        self.call("project-get").contains("\"merge_method\": \"ff\"")
    }
}

/// Merges `other` into `own` as the service merges files: mappings key by key, all else as a whole.
fn merge(own: &mut Value, other: Value) {
    match (own, other) {
        (Value::Object(own), Value::Object(other)) => {
            for (key, value) in other {
                merge(own.entry(key).or_insert(Value::Null), value);
            }
        }
        (own, other) => *own = other,
    }
}

/// Two jobs with a token each plan and apply their parts, and one comment and one page show both.
#[test]
fn parts_of_an_organisation_have_jobs_of_their_own() {
    let more = "kind: Project\npath: acme/configuration\nsettings:\n  only_allow_merge_if_pipeline_succeeds: true\n";
    let robot = |name: &str, token: &str| {
        format!("{{username: {name}, administrator: true, token: {token}}}")
    };
    let robots = [robot("first-robot", FIRST_TOKEN), robot("other-robot", REST_TOKEN)].join(", ");
    let seed = SEED.replace("users: [", &format!("users: [{robots}, "));
    let ci = Ci::with_manifests(&seed, &[("shop.yaml", SHOP), ("more.yaml", more)]);
    let mut ci = ci.with_file(PARTS);
    let well = |names: &[&str]| -> Vec<_> {
        names.iter().map(|name| ((*name).to_owned(), JobResult::Well)).collect()
    };
    let page = |ci: &Ci| {
        let page = &ci.artifacts[&("page".to_owned(), "plan.html".to_owned())];
        String::from_utf8_lossy(page).into_owned()
    };
    // Each part has the changes of its own paths, and the page those of both.
    let applied =
        ["check", "snapshot", "plan: first", "plan: rest", "page", "apply: first", "apply: rest"];
    assert_eq!(ci.start(Event::PUSH), well(&applied));
    for (job, robot) in [("plan: first", "first-robot"), ("apply: rest", "other-robot")] {
        assert!(ci.printed(job).contains(robot), "{job}: {}", ci.printed(job));
    }
    let both = page(&ci);
    for words in ["2 to change in 2 of 2 projects", "acme/configuration", "acme/shop"] {
        assert!(both.contains(words), "{words}: {both}");
    }
    let drift = ci.start(Event::SCHEDULE);
    assert_eq!(drift, well(&["snapshot", "drift: first", "drift: rest"]));

    // A guard refuses one part: the page shows both, with the exit code of the guard.
    ci = ci.git(
        "sed -i 's/What we sell/All/' manifests/shop.yaml && \
         sed -i 's/true/false/' manifests/more.yaml && git commit -qam Change",
    );
    let ended = ci.start(Event::PUSH);
    let failed = ended.iter().filter(|(_, how)| matches!(how, JobResult::Failed(_)));
    let failed: Vec<_> = failed.map(|(name, _)| name.as_str()).collect();
    assert_eq!(failed, ["plan: first", "page"], "{ended:?}");
    let both = page(&ci);
    for words in ["exit code 4", "protection:acme/configuration", "What we sell"] {
        assert!(both.contains(words), "{words}: {both}");
    }
}

/// A complete change while something else drifts: a snapshot, a plan in a merge request, the merge,
/// the plan, apply, and the comparison afterwards.
#[test]
fn a_change_goes_from_merge_request_to_service() {
    let drift = |ended: &[(String, JobResult)]| {
        ended.iter().find(|(name, _)| name == "drift").map(|(_, how)| how.clone())
    };
    let mut ci = Ci::new();
    ci.run(Event::PUSH);
    ci.call("project-edit --yes description=By-hand");
    let drifted = ci.run(Event::SCHEDULE);
    assert_eq!(drift(&drifted), Some(JobResult::Warned));
    ci = ci.git(
        "git switch -qc change && sed -i 's/: merge$/: ff/' manifests/shop.yaml && \
         git commit -qam 'Fast-forward' && git switch -q main",
    );
    ci.run(Event::MERGE_REQUEST);
    assert!(!ci.is_changed(), "a merge request changes nothing");
    ci = ci.git("git merge -q --no-ff -m 'Merge' change");
    ci.run(Event::PUSH);
    let scheduled = ci.run(Event::SCHEDULE);
    assert_eq!(drift(&scheduled), Some(JobResult::Well));
    assert!(ci.is_changed());
    assert!(ci.comment().contains("merge_method"));
}

/// Applied changes are no drift for the next merge request, which may declare something new.
#[test]
fn the_next_merge_request_sees_what_was_applied() {
    let mut ci = Ci::new();
    ci.run(Event::PUSH);
    ci.place.enter("origin");
    let badge = "badges:\n  - {link_url: 'https://e.org', image_url: 'https://e.org/i.png'}\n";
    ci.place.write("manifests/shop.yaml", &format!("{SHOP}{badge}"));
    ci = ci.git("git switch -qc change && git commit -qam 'A badge' && git switch -q main");
    let ended = ci.run(Event::MERGE_REQUEST);
    assert!(ended.iter().all(|(_, how)| *how == JobResult::Well), "{ended:?}");
    assert!(ci.comment().contains("1 to create"), "{}", ci.comment());
    assert!(!ci.comment().contains("differed before"), "{}", ci.comment());
}

/// A missing snapshot, and wrong manifests, are reported in the comment.
#[test]
fn the_comment_explains_a_missing_plan() {
    let mut ci = Ci::new().git("git branch -q change");
    let failed = |ended: Vec<(String, JobResult)>| -> Vec<String> {
        let failed = ended.into_iter().filter(|(_, how)| matches!(how, JobResult::Failed(_)));
        failed.map(|(name, _)| name).collect()
    };
    assert_eq!(failed(ci.start(Event::MERGE_REQUEST)), ["plan-merge-request"]);
    assert!(ci.comment().contains("undrift snapshot"), "{}", ci.comment());
    ci.run(Event::PUSH);
    ci = ci.git(
        "git switch -q change && sed -i 's/merge_method/merge_methd/' manifests/shop.yaml && \
         git commit -qam 'Wrong' && git switch -q main",
    );
    assert_eq!(failed(ci.start(Event::MERGE_REQUEST)), ["check", "plan-merge-request"]);
    assert!(ci.comment().contains("merge_methd"), "{}", ci.comment());
    let commented = ci.start(Event::MERGE_REQUEST).into_iter().find(|(name, _)| name == "comment");
    assert_eq!(commented.map(|(_, how)| how), Some(JobResult::Well));
}

/// Jobs that fetch secrets put them where manifests look for them: the plan compares them, and
/// apply sends them. The job that saves the plan is left out, so that only the secrets matter.
#[test]
fn secrets_reach_the_jobs_that_need_them() {
    let shop = "kind: Project\npath: acme/shop\nvariables:\n  \
                - {key: TOKEN, value: {env: SHOP_DEPLOY_TOKEN}, masked: true}\n  \
                - {key: KEY, value: {file: secrets/signing-key}, variable_type: file}\n";
    let own = pipeline();
    for name in ["vault", "sops"] {
        let jobs = read(&format!("examples/ci/{name}.gitlab-ci.yml"));
        let mut place = Workspace::new();
        place.serve(&SEED.replace(", merge_requests: [{title: Change}]", ""));
        place.write("manifests/shop.yaml", shop);
        place.write("secrets.env", "SHOP_DEPLOY_TOKEN=an-example-of-a-token\n");
        place.write("signing-key.enc", "a key\n");
        let url = place.url().unwrap().to_owned();
        let service = format!("export MANIFESTS=manifests UNDRIFT_TOKEN={TOKEN} UNDRIFT_URL={url}");
        // The second plan finds no changes, which proves that it could compare everything.
        for (job, done) in
            [("plan", "plan: 2 to create"), ("apply", "2 done"), ("plan", "no changes")]
        {
            let (extended, job) = (&own[job]["script"], &jobs[job]);
            let script = if job["script"].is_array() { &job["script"] } else { extended };
            let script = [texts(&job["before_script"]), texts(script)].concat().join("\n");
            assert!(script.contains(texts(extended)[0]), "{name} runs what the pipeline runs");
            let saved =
                ["-o plan.json --out html=plan.html", "plan.json ", "--record record.jsonl "];
            let script = saved.iter().fold(script, |script, part| script.replace(part, ""));
            let variables = job["variables"].as_object().into_iter().flatten();
            let exports: String = variables
                .map(|(name, value)| format!("export {name}='{}'\n", value.as_str().unwrap()))
                .collect();
            let output =
                place.run(&format!("(set -e\n{service} VAULT_ID_TOKEN=x\n{exports}{script}\n)"));
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{name}: {output:?}");
            assert!(stdout.contains(done) && !stdout.contains("not compared"), "{name}: {stdout}");
        }
    }
}
