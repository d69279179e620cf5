//! Measures undrift for an organisation of any size: calls, time, processor time and memory.
//!
//! ```text
//! cargo run --release --example bench -- --projects 1000 --latency 20
//! ```
//!
//! It starts the sandbox as a separate process, creates a group and users through the API, writes
//! manifests for the requested number of projects (10 settings, 5 variables, 3 members, 2 hooks and
//! a push rule each), applies them, and plans again without changes. Each phase is a separate
//! process, so processor time and peak memory (Linux only) are those of the command line, including
//! start-up and reading of the manifests. Calls are counted in the sandbox's log of requests.
//!
//! `--filled` starts with a sandbox that already has the projects; use it to measure a hundred
//! thousand of them. `--settings-only` declares only settings. `--bare` also measures a program that
//! makes the same calls, parses each answer and drops it: a lower bound for every plan.

use std::{
    collections::BTreeMap,
    error::Error,
    fmt::Write as _,
    fs,
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use clap::Parser;
use serde_json::{Value as Json, json};
use undrift::{
    kinds::operations,
    operation::AnyOp,
    sandbox::{self, Config, Data, Seed},
};

mod bare;
mod process;
use process::{Sandbox, TOKEN, say};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Set for a process that runs the command line.
const AS_UNDRIFT: &str = "UNDRIFT_BENCH_CHILD";

/// Set for a process that runs the bare program.
const AS_BARE: &str = "UNDRIFT_BENCH_BARE";

/// Measures a plan with nothing to change, and the apply before it.
#[derive(Parser)]
struct Args {
    /// How many projects
    #[arg(long, default_value_t = 100)]
    projects: usize,
    /// How long the service holds back every answer, in milliseconds
    #[arg(long, default_value_t = 0)]
    latency: u64,
    /// How many requests may be in flight; without it undrift decides, and the bare program takes 16
    #[arg(long)]
    concurrency: Option<usize>,
    /// How often the unchanged plan is measured
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Start with a sandbox that holds the projects, instead of applying them
    #[arg(long)]
    filled: bool,
    /// Declare nothing but settings
    #[arg(long)]
    settings_only: bool,
    /// Measure the bare program too
    #[arg(long)]
    bare: bool,
}

fn main() -> ExitCode {
    if let Some(figures) = std::env::var_os(AS_UNDRIFT) {
        let code = match std::env::var(AS_BARE) {
            Ok(bare) => process::ended(bare::run(&bare)),
            Err(_) => undrift::cli::main(),
        };
        // A server is killed and never gets here.
        if let Err(error) = fs::write(figures, Figures::of_this_process().to_line()) {
            say(&format!("no figures: {error}"));
        }
        return code;
    }
    process::ended(run(&Args::parse()))
}

fn run(args: &Args) -> Fallible<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("sandbox.db");
    if args.filled {
        fill(&data, args)?;
    }
    let mut service = Service::start(folder.path(), &data, args.latency)?;
    if !args.filled {
        service.prepare()?;
    }
    let manifests = folder.path().join("manifests");
    write_manifests(&manifests, args)?;
    let in_flight =
        args.concurrency.map_or_else(|| "as many as it likes".to_owned(), |n| n.to_string());
    say(&format!("{} projects, {} ms latency, {in_flight} in flight", args.projects, args.latency));
    if !args.filled {
        say(&format!("apply: {}", service.undrift(&manifests, &["apply", "--yes"], args)?));
    }
    for _ in 0..args.runs {
        let plan = service.undrift(&manifests, &["plan", "--exit-code"], args)?;
        say(&format!("plan, nothing to change: {plan}"));
        if let Some(write) =
            plan.calls.keys().find(|id| matches!(operations::find(id), Some(AnyOp::Write(_))))
        {
            return Err(format!("a plan has written: {write}").into());
        }
        if args.bare {
            say(&format!("bare: {}", service.bare(folder.path(), args)?));
        }
    }
    say(&format!(
        "the sandbox: {:.2} s processor in all",
        process::processor(&service.sandbox.id())
    ));
    Ok(())
}

/// The sandbox with its log of requests.
struct Service {
    sandbox: Sandbox,
    log: std::path::PathBuf,
    /// How much of the log has been counted.
    counted: u64,
}

impl Service {
    fn start(folder: &Path, data: &Path, latency: u64) -> Fallible<Self> {
        let log = folder.join("requests.jsonl");
        let mut command = this_program(&folder.join("sandbox.figures"))?;
        command
            .args(["sandbox", "--tier", "premium", "--latency", &latency.to_string(), "--data"])
            .arg(data);
        command.arg("--request-log").arg(&log);
        Ok(Self { sandbox: Sandbox::start(command)?, log, counted: 0 })
    }

    /// Creates the group and the users that the projects need.
    fn prepare(&mut self) -> Fallible<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let client = bare::http_client()?;
            let mut bodies = vec![("groups", json!({"name": "bench", "path": "bench"}))];
            bodies.extend(PEOPLE.iter().map(|name| {
                let email = format!("{name}@example.org");
                let password = format!("not-used-{name}");
                let user =
                    json!({"username": name, "name": name, "email": email, "password": password});
                ("users", user)
            }));
            for (path, body) in bodies {
                let request = client
                    .post(format!("{}/api/v4/{path}", self.sandbox.url))
                    .header("PRIVATE-TOKEN", TOKEN)
                    .header("content-type", "application/json");
                request.body(body.to_string()).send().await?.error_for_status()?;
            }
            Ok::<_, Box<dyn Error>>(())
        })?;
        self.calls().map(drop)
    }

    /// Runs the command line once and measures it.
    fn undrift(&mut self, manifests: &Path, command: &[&str], args: &Args) -> Fallible<Phase> {
        let figures = manifests.with_extension("figures");
        let mut undrift = this_program(&figures)?;
        undrift.args(command).arg(manifests).args(["--url", &self.sandbox.url]);
        if let Some(concurrency) = args.concurrency {
            undrift.args(["--concurrency", &concurrency.to_string()]);
        }
        self.phase(undrift.env("UNDRIFT_TOKEN", TOKEN).env("CI", "true"), &figures)
    }

    /// Runs the bare program once and measures it.
    fn bare(&mut self, folder: &Path, args: &Args) -> Fallible<Phase> {
        let figures = folder.join("bare.figures");
        let concurrency = args.concurrency.unwrap_or(16);
        let what = bare::arguments(&self.sandbox.url, concurrency, args.settings_only);
        self.phase(this_program(&figures)?.env(AS_BARE, what), &figures)
    }

    fn phase(&mut self, command: &mut Command, figures: &Path) -> Fallible<Phase> {
        let start = Instant::now();
        let output = command.output()?;
        let wall = start.elapsed();
        if !output.status.success() {
            return Err(format!(
                "{}\n{}{}",
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )
            .into());
        }
        Ok(Phase {
            wall,
            figures: Figures::from_line(&fs::read_to_string(figures)?),
            calls: self.calls()?,
        })
    }

    /// The calls since the last count, by operation.
    fn calls(&mut self) -> Fallible<BTreeMap<&'static str, usize>> {
        let mut log = fs::File::open(&self.log)?;
        log.seek(SeekFrom::Start(self.counted))?;
        let mut text = String::new();
        self.counted += log.read_to_string(&mut text)? as u64;
        let mut calls = BTreeMap::new();
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line)?;
            *calls.entry(operation_of(&line["method"], &line["path"])).or_default() += 1;
        }
        Ok(calls)
    }
}

/// The operation that a request of the log was for.
fn operation_of(method: &serde_json::Value, path: &serde_json::Value) -> &'static str {
    let path = path.as_str().unwrap_or_default().trim_start_matches("/api/v4");
    let segments: Vec<_> = path.split('?').next().unwrap_or_default().split('/').collect();
    let fits = |template: &str| {
        let template: Vec<_> = template.split('/').collect();
        template.len() == segments.len()
            && template.iter().zip(&segments).all(|(t, s)| t.starts_with(':') || t == s)
    };
    // If two match, the one with fewer arguments is correct.
    let fitting =
        operations::all().map(AnyOp::row).filter(|o| method == o.method.as_str() && fits(o.path));
    fitting.min_by_key(|o| o.path.matches(':').count()).map_or("other", |o| o.id)
}

/// Runs this program as the command line, or as the bare program, which writes its figures to a file.
fn this_program(figures: &Path) -> Fallible<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env_clear().env(AS_UNDRIFT, figures).stdin(Stdio::null());
    Ok(command)
}

/// One measured run.
struct Phase {
    wall: Duration,
    figures: Figures,
    calls: BTreeMap<&'static str, usize>,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let total: usize = self.calls.values().sum();
        write!(f, "{total} calls, {:.2} s wall, {}", self.wall.as_secs_f64(), self.figures)?;
        for (id, count) in &self.calls {
            write!(f, "\n  {count:>8} {id}")?;
        }
        Ok(())
    }
}

/// The resources that a process used; zero except on Linux.
#[derive(Default)]
struct Figures {
    cpu: f64,
    peak_mib: f64,
}

impl Figures {
    fn of_this_process() -> Self {
        Self { cpu: process::processor("self"), peak_mib: process::memory("self", "VmHWM") }
    }

    fn to_line(&self) -> String {
        format!("{} {}", self.cpu, self.peak_mib)
    }

    fn from_line(line: &str) -> Self {
        let mut parts = line.split_whitespace().filter_map(|part| part.parse().ok());
        Self { cpu: parts.next().unwrap_or_default(), peak_mib: parts.next().unwrap_or_default() }
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} s processor, {:.0} MiB peak", self.cpu, self.peak_mib)
    }
}

/// The users who are members of every project, with their levels.
const LEVELS: [(&str, &str); 3] =
    [("user0", "developer"), ("user1", "maintainer"), ("user2", "reporter")];
const PEOPLE: [&str; 3] = [LEVELS[0].0, LEVELS[1].0, LEVELS[2].0];

/// The project with a number, in the form of a seed. A manifest has nearly the same fields.
fn project(i: usize, args: &Args) -> Json {
    let mut project = json!({
        "path": format!("bench/project-{i:05}"),
        "settings": {
            "description": format!("The project with the number {i}"),
            "visibility": "private",
            "merge_method": "ff",
            "squash_option": "default_on",
            "topics": ["bench", format!("even-{}", i.is_multiple_of(2))],
            "only_allow_merge_if_pipeline_succeeds": true,
            "remove_source_branch_after_merge": true,
            "lfs_enabled": false,
            "build_timeout": 3600,
            "wiki_access_level": "disabled",
        },
    });
    if args.settings_only {
        return project;
    }
    let variable = |n| json!({"key": format!("VARIABLE_{n}"), "value": format!("value-{i}-{n}"), "raw": n % 2 == 0});
    let member = |(user, level)| json!({"user": user, "access_level": level});
    project["variables"] = (0..5).map(variable).collect();
    project["members"] = LEVELS.map(member).into_iter().collect();
    project["hooks"] = json!([
        {"url": format!("https://ci.example.org/{i}"), "push_events": true},
        {"url": format!("https://chat.example.org/{i}"), "push_events": false, "pipeline_events": true},
    ]);
    project["push_rule"] = json!({"prevent_secrets": true, "max_file_size": 10});
    project
}

/// A file for the sandbox that holds the projects.
fn fill(data: &Path, args: &Args) -> Fallible<()> {
    let users: Vec<_> = PEOPLE.iter().map(|name| json!({"username": name})).collect();
    let projects: Vec<_> = (0..args.projects).map(|i| project(i, args)).collect();
    let seed = Seed::from_json(json!({"tier": "premium", "users": users, "projects": projects}))?;
    let config =
        Config { data: Data::File(data.to_owned()), seed: Some(seed), ..Config::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        sandbox::start(config).await?.stop().await;
        Ok(())
    })
}

/// Manifests for the projects, a hundred to a file.
fn write_manifests(folder: &Path, args: &Args) -> Fallible<()> {
    fs::create_dir_all(folder)?;
    for file in 0..args.projects.div_ceil(100) {
        let mut text = String::new();
        for i in file * 100..args.projects.min(file * 100 + 100) {
            let mut manifest = project(i, args);
            manifest["kind"] = "Project".into();
            manifest["create"] = true.into();
            write!(text, "---\n{}", serde_yaml::to_string(&manifest)?)?;
        }
        fs::write(folder.join(format!("{file:05}.yaml")), text)?;
    }
    Ok(())
}
