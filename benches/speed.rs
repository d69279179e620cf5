//! Measures undrift beside the least program that does the same job (`bare`), in the same run.
//!
//! ```text
//! cargo bench --bench speed                                # all rows of `figures.tsv`
//! cargo bench --bench speed -- unchanged-2000-20ms-16      # one row of any size
//! ```
//!
//! A row is a job, a number of projects and, if wanted, the latency of the service with the number
//! of requests in flight. Each project has 10 settings, 5 variables, 3 members, 2 hooks and a push
//! rule; 10 of them are in each file. `apply` finds the projects there with nothing in them. The
//! sandbox, undrift and the bare program are processes of their own, so processor time and peak
//! memory (Linux only) are those of whole programs, including start-up. Calls are counted in the
//! sandbox's log of requests.
//!
//! Only ratios are compared with `figures.tsv`, because times depend on the machine; `--write`
//! stores the new ones.

use std::{
    error::Error,
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
    str::FromStr,
    time::{Duration, Instant},
};

use clap::Parser;
use serde_json::{Value as Json, json};
use undrift::sandbox::{self, DataLocation, SandboxConfig, Seed};

mod bare;
mod process;
use process::{Sandbox, TOKEN, say};

/// The one of the command line, for all three programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Set for a process that runs the command line: the file for its figures.
const AS_UNDRIFT: &str = "UNDRIFT_BENCH_CHILD";

/// Set for a process that runs the bare program: the row and the address of the service.
const AS_BARE: &str = "UNDRIFT_BENCH_BARE";

/// The ratios of the last change that was measured.
const FIGURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/figures.tsv");

/// How much larger than stored a ratio may be: the same program varies by about this.
const VARIES: f64 = 1.1;

/// Measures undrift beside the least program that does the same job.
#[derive(Parser)]
struct Args {
    /// Which rows, as JOB-PROJECTS[-LATENCYms-INFLIGHT] with the job `check`, `unchanged` or
    /// `apply`; all stored ones if there is none
    rows: Vec<Row>,
    /// Store the figures
    #[arg(long)]
    write: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// Reading manifests.
    Check,
    /// A plan with nothing to change.
    Unchanged,
    /// An apply to projects with nothing in them.
    Apply,
}

#[derive(Clone)]
struct Row {
    name: String,
    job: Job,
    projects: usize,
    latency: u64,
    in_flight: Option<usize>,
}

impl FromStr for Row {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut parts = name.split('-');
        let job = match parts.next() {
            Some("check") => Job::Check,
            Some("unchanged") => Job::Unchanged,
            Some("apply") => Job::Apply,
            _ => return Err("unknown job".into()),
        };
        let number = |part: Option<&str>| {
            let part = part.map(|part| part.trim_end_matches("ms").parse::<u64>());
            part.transpose().map_err(|error| error.to_string())
        };
        let projects = number(parts.next())?.ok_or("no number of projects")? as usize;
        let latency = number(parts.next())?.unwrap_or(0);
        let in_flight = number(parts.next())?.map(|number| number as usize);
        Ok(Self { name: name.to_owned(), job, projects, latency, in_flight })
    }
}

fn main() -> ExitCode {
    if let Some(figures) = std::env::var_os(AS_UNDRIFT) {
        let code = match std::env::var(AS_BARE) {
            Ok(bare) => process::ended(run_bare(&bare)),
            Err(_) => undrift::cli::main(),
        };
        // A server is killed and never gets here.
        let (cpu, peak) = (process::processor("self"), process::memory("self", "VmHWM"));
        if let Err(error) = fs::write(figures, format!("{cpu} {peak}")) {
            say(&format!("no figures: {error}"));
        }
        return code;
    }
    process::ended(run(&Args::parse_from(process::arguments())))
}

fn run_bare(arguments: &str) -> Fallible<()> {
    let arguments: Vec<_> = arguments.splitn(3, ' ').collect();
    let [row, url, folder] = arguments[..] else { return Err("not the bare program's".into()) };
    let row: Row = row.parse()?;
    bare::run(row.job, Path::new(folder), url, row.in_flight.unwrap_or(16))
}

fn run(args: &Args) -> Fallible<()> {
    let mut stored: Vec<(Row, Vec<f64>)> = Vec::new();
    for line in fs::read_to_string(FIGURES)?.lines().skip(1) {
        let mut parts = line.split('\t');
        let row = parts.next().unwrap_or_default().parse()?;
        stored.push((row, parts.map(str::parse).collect::<Result<_, _>>()?));
    }
    let all: Vec<_> = stored.iter().map(|(row, _)| row.clone()).collect();
    let mut worse = Vec::new();
    for row in if args.rows.is_empty() { &all } else { &args.rows } {
        let (bare, undrift) = row.measure()?;
        let ratios = vec![
            undrift.cpu / bare.cpu,
            undrift.wall.as_secs_f64() / bare.wall.as_secs_f64(),
            undrift.peak,
            undrift.calls as f64 / bare.calls.max(1) as f64,
        ];
        say(&format!("{}\n  bare    {bare}\n  undrift {undrift}", row.name));
        let known = stored.iter_mut().find(|(known, _)| known.name == row.name);
        let before = known.as_ref().map_or(&[][..], |(_, ratios)| ratios);
        say(&format!("  processor, wall, MiB, calls: {ratios:.2?}, before {before:.2?}"));
        // Time on the wall depends on what else the machine does.
        if [0, 2, 3].iter().any(|at| before.get(*at).is_some_and(|was| ratios[*at] > was * VARIES))
        {
            worse.push(row.name.clone());
        }
        match known {
            Some((_, known)) => *known = ratios,
            None => stored.push((row.clone(), ratios)),
        }
    }
    if args.write {
        let mut text = "row\tprocessor\twall\tMiB\tcalls\n".to_owned();
        for (row, ratios) in stored {
            let ratios: Vec<_> = ratios.iter().map(|ratio| format!("{ratio:.3}")).collect();
            writeln!(text, "{}\t{}", row.name, ratios.join("\t"))?;
        }
        fs::write(FIGURES, text)?;
    } else if !worse.is_empty() {
        return Err(format!("worse than stored: {}", worse.join(", ")).into());
    }
    Ok(())
}

impl Row {
    /// Measures the bare program and undrift, the best of some runs each.
    fn measure(&self) -> Fallible<(Figures, Figures)> {
        let folder = tempfile::tempdir()?;
        let (manifests, data) = (folder.path().join("manifests"), folder.path().join("filled.db"));
        self.write_manifests(&manifests)?;
        self.fill(&data)?;
        let is_long = self.job == Job::Apply || self.projects > 50_000;
        let runs = if is_long { 1 } else { 3 };
        // In turns, because the machine may be slower for a while.
        let mut best = [None::<Figures>, None];
        for _ in 0..runs {
            for (best, is_bare) in best.iter_mut().zip([true, false]) {
                let figures = self.once(folder.path(), &manifests, &data, is_bare)?;
                if best.as_ref().is_none_or(|best| figures.cpu < best.cpu) {
                    *best = Some(figures);
                }
            }
        }
        let [bare, undrift] = best.map(|best| best.ok_or("no run"));
        Ok((bare?, undrift?))
    }

    /// Runs one program on a service of its own.
    fn once(&self, folder: &Path, manifests: &Path, data: &Path, bare: bool) -> Fallible<Figures> {
        // What a killed server left beside its data, such as a journal, must not meet other data.
        let own_folder = tempfile::tempdir_in(folder)?;
        let (log, own) = (own_folder.path().join("requests.jsonl"), own_folder.path().join("data"));
        fs::copy(data, &own)?;
        let mut command = this_program(&folder.join("sandbox.figures"));
        command.args(["sandbox", "--tier", "premium", "--latency", &self.latency.to_string()]);
        command.arg("--data").arg(&own).arg("--request-log").arg(&log);
        let service = Sandbox::start(command)?;
        let figures = folder.join("figures");
        let mut command = this_program(&figures);
        if bare {
            let folder = manifests.display();
            command.env(AS_BARE, format!("{} {} {folder}", self.name, service.url));
        } else {
            command.args(match self.job {
                Job::Check => &["check"][..],
                Job::Unchanged => &["plan", "--exit-code"],
                Job::Apply => &["apply", "--yes"],
            });
            command.arg(manifests).env("UNDRIFT_TOKEN", TOKEN).env("CI", "true");
            if self.job != Job::Check {
                command.args(["--url", &service.url]);
            }
            if let Some(in_flight) = self.in_flight {
                command.args(["--concurrency", &in_flight.to_string()]);
            }
        }
        let start = Instant::now();
        let output = command.output()?;
        let wall = start.elapsed();
        let used = process::processor(&service.id());
        say(&format!("  (the sandbox used {used:.2} s of the processor)"));
        if !output.status.success() {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            return Err(format!(
                "{}\n{}",
                output.status,
                text(&output.stdout) + &text(&output.stderr)
            )
            .into());
        }
        let figures = fs::read_to_string(figures)?;
        let (cpu, peak) = figures.split_once(' ').ok_or("no figures")?;
        let calls = fs::read_to_string(&log).unwrap_or_default().lines().count();
        Ok(Figures { wall, cpu: cpu.parse()?, peak: peak.parse()?, calls })
    }

    /// The projects, in the form of a seed. A manifest has nearly the same fields.
    fn projects(&self) -> impl Iterator<Item = Json> {
        (0..self.projects).map(project)
    }

    /// A file for the sandbox that holds the projects.
    fn fill(&self, data: &Path) -> Fallible<()> {
        let users: Vec<_> = LEVELS.iter().map(|(name, _)| json!({"username": name})).collect();
        let there = |project: Json| match self.job {
            Job::Apply => json!({"path": project["path"]}),
            _ => project,
        };
        let projects: Vec<_> = self.projects().map(there).collect();
        let seed = json!({"tier": "premium", "users": users, "projects": projects});
        let seed = Some(Seed::from_json(seed)?);
        let config = SandboxConfig {
            data: DataLocation::File(data.to_owned()),
            seed,
            ..SandboxConfig::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            sandbox::start(config).await?.stop().await;
            Ok(())
        })
    }

    fn write_manifests(&self, folder: &Path) -> Fallible<()> {
        fs::create_dir_all(folder)?;
        let projects: Vec<_> = self.projects().collect();
        for (file, projects) in projects.chunks(10).enumerate() {
            let mut text = String::new();
            for project in projects {
                let mut manifest = project.clone();
                manifest["kind"] = "Project".into();
                write!(text, "---\n{}", serde_yaml::to_string(&manifest)?)?;
            }
            fs::write(folder.join(format!("{file:05}.yaml")), text)?;
        }
        Ok(())
    }
}

/// Runs this program as the command line, or as the bare program, which writes its figures to a
/// file.
fn this_program(figures: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.env_clear().env(AS_UNDRIFT, figures).stdin(Stdio::null());
    command
}

/// What one program used; zero except on Linux.
struct Figures {
    wall: Duration,
    cpu: f64,
    peak: f64,
    calls: usize,
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { wall, cpu, peak, calls } = self;
        let wall = wall.as_secs_f64();
        write!(f, "{cpu:.2} s processor, {wall:.2} s wall, {peak:.0} MiB peak, {calls} calls")
    }
}

/// The members of every project, with their levels.
const LEVELS: [(&str, &str); 3] =
    [("user0", "developer"), ("user1", "maintainer"), ("user2", "reporter")];

/// The project with a number.
fn project(i: usize) -> Json {
    let variable = |n| json!({"key": format!("VARIABLE_{n}"), "value": format!("value-{i}-{n}"), "raw": n % 2 == 0});
    let member = |(user, level)| json!({"user": user, "access_level": level});
    json!({
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
        "variables": (0..5).map(variable).collect::<Vec<_>>(),
        "members": LEVELS.map(member).to_vec(),
        "hooks": [
            {"url": format!("https://ci.example.org/{i}"), "push_events": true},
            {"url": format!("https://chat.example.org/{i}"), "push_events": false, "pipeline_events": true},
        ],
        "push_rule": {"prevent_secrets": true, "max_file_size": 10},
    })
}
