//! What undrift costs: calls, time, processor and memory, for an organisation of any size.
//!
//! ```text
//! cargo run --release --example bench -- --projects 1000 --latency 20
//! ```
//!
//! It starts the sandbox as a process of its own, makes a group and users through the API, writes
//! manifests for as many projects as asked for (10 settings, 5 variables, 3 members, 2 hooks and a
//! push rule each), applies them, and plans again with nothing to change. Each phase is a process
//! of its own, so that its processor time and peak memory (Linux only) are its own; they are those
//! of the command line itself, start-up and reading of the manifests included. Calls are counted in
//! the sandbox's log of requests.

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
use undrift::operation::{AnyOp, OPERATIONS};

mod process;
use process::{Sandbox, TOKEN, say};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Set for a process that is to be the command line itself.
const AS_UNDRIFT: &str = "UNDRIFT_BENCH_CHILD";

/// Measures a plan with nothing to change, and the apply before it.
#[derive(Parser)]
struct Args {
    /// How many projects
    #[arg(long, default_value_t = 100)]
    projects: usize,
    /// How long the service holds back every answer, in milliseconds
    #[arg(long, default_value_t = 0)]
    latency: u64,
    /// How many requests may be in flight
    #[arg(long, default_value_t = 16)]
    concurrency: usize,
    /// How often the unchanged plan is measured
    #[arg(long, default_value_t = 3)]
    runs: usize,
}

fn main() -> ExitCode {
    if let Some(figures) = std::env::var_os(AS_UNDRIFT) {
        let code = undrift::cli::main();
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
    let mut service = Service::start(folder.path(), args.latency)?;
    service.fill()?;
    let manifests = folder.path().join("manifests");
    write_manifests(&manifests, args.projects)?;
    say(&format!(
        "{} projects, {} ms latency, {} in flight",
        args.projects, args.latency, args.concurrency
    ));
    let apply = service.phase(&manifests, &["apply", "--yes"], args.concurrency)?;
    say(&format!("apply: {apply}"));
    for _ in 0..args.runs {
        let plan = service.phase(&manifests, &["plan", "--exit-code"], args.concurrency)?;
        say(&format!("plan, nothing to change: {plan}"));
        if let Some(write) =
            plan.calls.keys().find(|id| matches!(AnyOp::find(id), Some(AnyOp::Write(_))))
        {
            return Err(format!("a plan has written: {write}").into());
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
    fn start(folder: &Path, latency: u64) -> Fallible<Self> {
        let log = folder.join("requests.jsonl");
        let mut command = undrift(&folder.join("sandbox.figures"))?;
        command
            .args(["sandbox", "--tier", "premium", "--latency", &latency.to_string(), "--data"])
            .arg(folder.join("sandbox.db"));
        command.arg("--request-log").arg(&log);
        Ok(Self { sandbox: Sandbox::start(command)?, log, counted: 0 })
    }

    /// Makes what the projects need: a group, and people.
    fn fill(&mut self) -> Fallible<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let tls = rustls::ClientConfig::builder_with_provider(std::sync::Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth();
            let client = reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build()?;
            let mut bodies = vec![("groups", r#"{"name": "bench", "path": "bench"}"#.to_owned())];
            bodies.extend((0..3).map(|i| {
                let user =
                    format!(r#"{{"username": "user{i}", "name": "User {i}", "email": "user{i}@example.org", "password": "not-used-{i}"}}"#);
                ("users", user)
            }));
            for (path, body) in bodies {
                let request = client.post(format!("{}/api/v4/{path}", self.sandbox.url)).header("PRIVATE-TOKEN", TOKEN);
                request.header("content-type", "application/json").body(body).send().await?.error_for_status()?;
            }
            Ok::<_, Box<dyn Error>>(())
        })?;
        self.calls().map(drop)
    }

    /// Runs the command line once and measures it.
    fn phase(&mut self, manifests: &Path, command: &[&str], concurrency: usize) -> Fallible<Phase> {
        let figures = manifests.with_extension("figures");
        let start = Instant::now();
        let output = undrift(&figures)?
            .args(command)
            .arg(manifests)
            .args(["--url", &self.sandbox.url, "--concurrency", &concurrency.to_string()])
            .env("UNDRIFT_TOKEN", TOKEN)
            .env("CI", "true")
            .output()?;
        let wall = start.elapsed();
        if !output.status.success() {
            return Err(format!(
                "{command:?}: {}\n{}",
                output.status,
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
    // Of two that fit, the one with fewer arguments is meant.
    let fitting = OPERATIONS
        .iter()
        .copied()
        .map(AnyOp::row)
        .filter(|o| method == o.method.as_str() && fits(o.path));
    fitting.min_by_key(|o| o.path.matches(':').count()).map_or("other", |o| o.id)
}

/// This program as the command line, which leaves its figures in a file.
fn undrift(figures: &Path) -> Fallible<Command> {
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

/// What a process used, as Linux tells; zero elsewhere.
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

/// Manifests for `projects` projects, a hundred to a file.
fn write_manifests(folder: &Path, projects: usize) -> Fallible<()> {
    fs::create_dir_all(folder)?;
    for file in 0..projects.div_ceil(100) {
        let mut text = String::new();
        for i in file * 100..projects.min(file * 100 + 100) {
            write_manifest(&mut text, i)?;
        }
        fs::write(folder.join(format!("{file:05}.yaml")), text)?;
    }
    Ok(())
}

fn write_manifest(text: &mut String, i: usize) -> std::fmt::Result {
    write!(
        text,
        "---
kind: Project
path: bench/project-{i:05}
create: true
settings:
  description: The project with the number {i}
  visibility: private
  merge_method: ff
  squash_option: default_on
  topics: [bench, even-{}]
  only_allow_merge_if_pipeline_succeeds: true
  remove_source_branch_after_merge: true
  lfs_enabled: false
  build_timeout: 3600
  wiki_access_level: disabled
variables:
",
        i.is_multiple_of(2)
    )?;
    for variable in 0..5 {
        writeln!(
            text,
            "  - {{key: VARIABLE_{variable}, value: value-{i}-{variable}, protected: {}}}",
            variable % 2 == 0
        )?;
    }
    text.push_str("members:\n");
    for (user, level) in ["developer", "maintainer", "reporter"].iter().enumerate() {
        writeln!(text, "  - {{user: user{user}, access_level: {level}}}")?;
    }
    write!(
        text,
        "hooks:
  - {{name: ci, url: https://ci.example.org/{i}, push_events: true}}
  - {{name: chat, url: https://chat.example.org/{i}, push_events: false, pipeline_events: true}}
push_rule: {{prevent_secrets: true, max_file_size: 10}}
"
    )
}
