//! Measures the sandbox: requests per second, latency under writes, memory and start-up time.
//!
//! ```text
//! cargo bench --bench load -- --projects 100000 --seconds 5
//! ```
//!
//! It fills a file, starts the sandbox on it as a separate process, and sends requests over open
//! connections from this process: on a machine with few cores, the figures include the client's
//! share. It also prints the processor time that the sandbox spent on a request (Linux only), and
//! how often the disk can flush four kilobytes, which limits durable writes.

use std::{
    error::Error,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use clap::Parser;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use undrift::sandbox::{self, DataLocation, SandboxConfig, Seed};

mod process;
use process::{Sandbox, TOKEN, say};

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Set for a process that runs the command line.
const AS_UNDRIFT: &str = "UNDRIFT_LOAD_CHILD";

/// Measures the sandbox.
#[derive(Clone, Parser)]
struct Args {
    /// How many projects there are
    #[arg(long, default_value_t = 10_000)]
    projects: usize,
    /// How long each operation is asked for
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// How many connections there are
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Whether the sandbox flushes each write to the disk
    #[arg(long)]
    durable: bool,
}

fn main() -> ExitCode {
    if std::env::var_os(AS_UNDRIFT).is_some() {
        return undrift::cli::main();
    }
    let run = || -> Fallible<()> {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(measure(&Args::parse_from(process::arguments())))
    };
    process::ended(run())
}

async fn measure(args: &Args) -> Fallible<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("data.db");
    let start = Instant::now();
    fill(&file, args.projects).await?;
    let size = fs::metadata(&file)?.len() as f64 / 1_048_576.0;
    say(&format!(
        "{} projects in {size:.0} MiB, filled in {:.1} s",
        args.projects,
        start.elapsed().as_secs_f64()
    ));
    say(&format!("{:>8.0}/s flushes of 4 KiB", flushes(folder.path())?));

    let start = Instant::now();
    let service = sandbox_on(&file, args.durable)?;
    say(&format!(
        "{:>8.0} ms from start to the first address, {}",
        start.elapsed().as_secs_f64() * 1e3,
        memory(&service)
    ));
    for operation in MEASURED {
        let (used, start) = (process::processor(&service.id()), Instant::now());
        let times = ask(&service, args, args.connections, operation).await?;
        let (wall, used) =
            (start.elapsed().as_secs_f64(), process::processor(&service.id()) - used);
        say(&format!(
            "{}, {:.0} µs of its processor each",
            rate(operation.name, &times, wall),
            used / times.len() as f64 * 1e6
        ));
    }
    let half = args.connections.div_ceil(2);
    let start = Instant::now();
    let (reads, writes) = tokio::try_join!(
        ask(&service, args, half, &READ),
        ask(&service, args, half, &WRITE_MEANWHILE)
    )?;
    let wall = start.elapsed().as_secs_f64();
    say(&rate("project-get beside writes", &reads, wall));
    say(&rate("variable-create beside reads", &writes, wall));
    say(&format!("at the end {}", memory(&service)));
    Ok(())
}

/// How many projects have more than their own row.
const BUSY: usize = 100;

/// Scatters numbers over 1 to `most`, the same way each time.
fn scattered(n: usize, most: usize) -> usize {
    n.wrapping_mul(7_919) % most + 1
}

/// An operation that is measured. In its path and body, `{project}` is any project, `{busy}` one of
/// the first hundred, which have variables, members, hooks and a push rule, `{page}` a page of a
/// hundred projects, and `{n}` a new number.
struct Measured {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    body: &'static str,
}

const fn get(name: &'static str, path: &'static str) -> Measured {
    Measured { name, method: "GET", path, body: "" }
}

const READ: Measured = get("project-get", "/projects/{project}");
const WRITE: Measured = Measured {
    name: "variable-create",
    method: "POST",
    path: "/projects/{project}/variables",
    body: r#"{"key":"W{n}","value":"a value of the usual length"}"#,
};
const WRITE_MEANWHILE: Measured =
    Measured { body: r#"{"key":"M{n}","value":"a value of the usual length"}"#, ..WRITE };
const MEASURED: &[Measured] = &[
    READ,
    get("project-list, pages of 100", "/projects?per_page=100&page={page}"),
    get("project-list, simple", "/projects?per_page=100&page={page}&simple=true"),
    get("group-project-list", "/groups/group-007/projects?per_page=100"),
    get("variable-list", "/projects/{busy}/variables"),
    get("variable-get", "/projects/{busy}/variables/KEY_1"),
    get("project-member-list", "/projects/{busy}/members"),
    get("project-member-list-all", "/projects/{busy}/members/all"),
    get("hook-list", "/projects/{busy}/hooks"),
    get("push-rule-get", "/projects/{busy}/push_rule"),
    WRITE,
    Measured {
        name: "variable-update",
        method: "PUT",
        path: "/projects/{busy}/variables/KEY_1",
        body: r#"{"value":"another value, number {n}"}"#,
    },
    Measured {
        name: "project-edit",
        method: "PUT",
        path: "/projects/{project}",
        body: r#"{"description":"Edited {n} times"}"#,
    },
    Measured {
        name: "project-create",
        method: "POST",
        path: "/projects",
        body: r#"{"name":"made-{n}","description":"One of many"}"#,
    },
];

impl Measured {
    /// The request with a number, as bytes.
    fn request(&self, n: usize, projects: usize) -> Vec<u8> {
        let places = [
            ("{project}", scattered(n, projects)),
            ("{busy}", scattered(n, projects.min(BUSY))),
            ("{page}", scattered(n, (projects / 100).clamp(1, 500))),
            ("{n}", n),
        ];
        let [path, body] = [self.path, self.body].map(|text| {
            places.iter().fold(text.to_owned(), |text, (place, number)| {
                text.replace(place, &number.to_string())
            })
        });
        format!(
            "{} /api/v4{path} HTTP/1.1\r\nHost: localhost\r\nPRIVATE-TOKEN: {TOKEN}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.method,
            body.len()
        )
        .into_bytes()
    }
}

/// Sends requests over this many connections until the time is over. Returns their durations, sorted.
async fn ask(
    service: &Sandbox,
    args: &Args,
    connections: usize,
    operation: &'static Measured,
) -> Fallible<Vec<Duration>> {
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..connections {
        let (address, projects) = (service.url.replace("http://", ""), args.projects);
        workers.spawn(async move {
            let mut stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (mut times, mut buffer) = (Vec::new(), Vec::new());
            while Instant::now() < end {
                let start = Instant::now();
                // The numbers of different workers are far apart, so that they neither meet nor
                // follow each other.
                stream
                    .write_all(&operation.request(worker * 1_000_003 + times.len(), projects))
                    .await?;
                receive(&mut stream, &mut buffer).await?;
                times.push(start.elapsed());
            }
            Ok::<_, Box<dyn Error + Send + Sync>>(times)
        });
    }
    let mut all = Vec::new();
    while let Some(times) = workers.join_next().await {
        all.extend(times??);
    }
    all.sort_unstable();
    Ok(all)
}

/// Reads one response, which must be a success.
async fn receive(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Fallible<()> {
    buffer.clear();
    let end = loop {
        if stream.read_buf(buffer).await? == 0 {
            return Err("the sandbox closed the connection".into());
        }
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
    if !head.starts_with("http/1.1 2") {
        return Err(format!("the sandbox refused: {}", String::from_utf8_lossy(buffer)).into());
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .ok_or("an answer has no length")?;
    let whole = end + length.parse::<usize>()?;
    buffer.reserve(whole.saturating_sub(buffer.len()));
    while buffer.len() < whole {
        stream.read_buf(buffer).await?;
    }
    Ok(())
}

fn rate(name: &str, times: &[Duration], wall: f64) -> String {
    let at = |share: f64| {
        times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default().as_secs_f64()
            * 1e3
    };
    let rate = times.len() as f64 / wall;
    format!("{rate:>8.0}/s {name:<28} {:.2} ms in the middle, {:.2} ms at 99 %", at(0.5), at(0.99))
}

/// Fills a file with projects.
async fn fill(file: &Path, projects: usize) -> Fallible<()> {
    let project = |number: usize| {
        let mut project = json!({
            "path": format!("group-{:03}/project-{number:06}", number % 100),
            "settings": {"description": format!("The project with the number {number}"), "topics": ["load", format!("t{}", number % 7)]},
        });
        if number < BUSY {
            project["variables"] = (0..5)
                .map(|i| json!({"key": format!("KEY_{i}"), "value": "a value of the usual length"}))
                .collect();
            project["members"] = (0..3)
                .map(|i| json!({"user": format!("user{i}"), "access_level": "developer"}))
                .collect();
            project["hooks"] =
                (0..2).map(|i| json!({"url": format!("https://example.org/hooks/{i}")})).collect();
            project["push_rule"] = json!({"commit_message_regex": "^[A-Z]"});
        }
        project
    };
    let users: Vec<_> = (0..3).map(|i| json!({"username": format!("user{i}")})).collect();
    let projects: Vec<_> = (0..projects).map(project).collect();
    let seed = Seed::from_json(json!({ "users": users, "projects": projects }))?;
    let config = SandboxConfig {
        data: DataLocation::File(file.to_owned()),
        seed: Some(seed),
        ..SandboxConfig::default()
    };
    sandbox::start(config).await?.stop().await;
    Ok(())
}

/// How often a second this disk flushes four kilobytes.
fn flushes(folder: &Path) -> Fallible<f64> {
    let mut file = fs::File::create(folder.join("flushes"))?;
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(1) {
        file.write_all(&[0; 4_096])?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

/// Starts the sandbox on a file.
fn sandbox_on(file: &Path, durable: bool) -> Fallible<Sandbox> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env_clear().env(AS_UNDRIFT, "1");
    command.args(["sandbox", "--data"]).arg(file).args(durable.then_some("--durable"));
    Ok(Sandbox::start(command)?)
}

/// What the sandbox has in memory. The mapped part of the file counts as resident while it is in
/// use.
fn memory(service: &Sandbox) -> String {
    let mib = |figure| process::memory(&service.id(), figure);
    format!(
        "{:.0} MiB of its own and {:.0} MiB of the file in memory",
        mib("RssAnon"),
        mib("RssFile")
    )
}
