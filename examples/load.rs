//! What the sandbox bears: requests a second, latency under writes, memory and start-up time.
//!
//! ```text
//! cargo run --release --example load -- --projects 100000 --seconds 5
//! ```
//!
//! It fills a file, starts the sandbox on it as a process of its own, and asks over connections that are kept open, from this process:
//! on a machine with few cores, the client's share is part of what is measured. Beside the figures stand the processor time that the
//! sandbox itself spent on a request (Linux only), and how often the disk can flush four kilobytes, which bounds durable writes.

use std::{
    error::Error,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, ExitCode},
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Parser;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use undrift::sandbox::{self, Config, Data, Seed};

mod process;
use process::{Sandbox, TOKEN};

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Set for a process that is to be the command line itself.
const AS_UNDRIFT: &str = "UNDRIFT_LOAD_CHILD";

/// Measures the sandbox.
#[derive(Clone, Parser)]
struct Args {
    /// How many projects there are
    #[arg(long, default_value_t = 10_000)]
    projects: usize,
    /// How long each operation is asked for
    #[arg(long, default_value_t = 5)]
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
    let run = || -> Fallible<()> { tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure(&Args::parse())) };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
fn say(line: &str) {
    println!("{line}");
}

async fn measure(args: &Args) -> Fallible<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("data.db");
    let start = Instant::now();
    fill(&file, args.projects).await?;
    let size = fs::metadata(&file)?.len() as f64 / 1_048_576.0;
    say(&format!("{} projects in {size:.0} MiB, filled in {:.1} s", args.projects, start.elapsed().as_secs_f64()));
    say(&format!("{:>8.0} flushes of 4 KiB a second", flushes(folder.path())?));

    let start = Instant::now();
    let service = sandbox_on(&file, args.durable)?;
    say(&format!("{:>8.0} ms from start to the first address, {}", start.elapsed().as_secs_f64() * 1e3, memory(&service)));
    let projects = args.projects;
    let pages = (projects / 100).clamp(1, 500);
    let read = move |_, n: usize| get(&format!("/projects/{}", scattered(n, projects)));
    let page = move |_, n: usize| get(&format!("/projects?per_page=100&page={}", scattered(n, pages)));
    let write = move |worker, n: usize| {
        let body = format!(r#"{{"key":"W{worker}_{n}","value":"a value of the usual length"}}"#);
        send("POST", &format!("/projects/{}/variables", scattered(n, projects)), &body)
    };
    for (name, request) in
        [("single reads", Arc::new(read) as Make), ("pages of 100", Arc::new(page)), ("committed writes", Arc::new(write))]
    {
        let (used, start) = (process::processor(&service.id()), Instant::now());
        let times = ask(&service, args, args.connections, &request).await?;
        let (wall, used) = (start.elapsed().as_secs_f64(), process::processor(&service.id()) - used);
        say(&format!("{}, {:.0} µs of its processor each", rate(name, &times, wall), used / times.len() as f64 * 1e6));
    }
    let half = args.connections.div_ceil(2);
    let (read, write): (Make, Make) = (Arc::new(read), Arc::new(move |worker, n| write(worker + 1_000, n)));
    let start = Instant::now();
    let (reads, writes) = tokio::try_join!(ask(&service, args, half, &read), ask(&service, args, half, &write))?;
    let wall = start.elapsed().as_secs_f64();
    say(&rate("reads beside writes", &reads, wall));
    say(&rate("writes beside reads", &writes, wall));
    say(&format!("at the end {}", memory(&service)));
    Ok(())
}

/// Scatters numbers over 1 to `most`, the same way each time.
fn scattered(n: usize, most: usize) -> usize {
    n.wrapping_mul(7_919) % most + 1
}

/// Makes the request of a worker with a number, as bytes.
type Make = Arc<dyn Fn(usize, usize) -> Vec<u8> + Send + Sync>;

fn get(path: &str) -> Vec<u8> {
    send("GET", path, "")
}

fn send(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} /api/v4{path} HTTP/1.1\r\nHost: localhost\r\nPRIVATE-TOKEN: {TOKEN}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Asks over this many connections until the time is over; how long each request took, sorted.
async fn ask(service: &Sandbox, args: &Args, connections: usize, make: &Make) -> Fallible<Vec<Duration>> {
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..connections {
        let (make, address) = (Arc::clone(make), service.url.replace("http://", ""));
        workers.spawn(async move {
            let mut stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (mut times, mut buffer) = (Vec::new(), Vec::new());
            while Instant::now() < end {
                let start = Instant::now();
                // Workers start at different numbers, so that they do not follow each other.
                stream.write_all(&make(worker, worker * 1_009 + times.len())).await?;
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

/// Reads one answer, which has to be a success.
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
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).ok_or("an answer has no length")?;
    let whole = end + length.parse::<usize>()?;
    buffer.reserve(whole.saturating_sub(buffer.len()));
    while buffer.len() < whole {
        stream.read_buf(buffer).await?;
    }
    Ok(())
}

fn rate(name: &str, times: &[Duration], wall: f64) -> String {
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default().as_secs_f64() * 1e3;
    let rate = times.len() as f64 / wall;
    format!("{rate:>8.0} {name} a second, {:.2} ms in the middle, {:.2} ms at 99 %", at(0.5), at(0.99))
}

/// Fills a file with projects.
async fn fill(file: &Path, projects: usize) -> Fallible<()> {
    let project = |number: usize| {
        serde_json::json!({
            "path": format!("group-{:03}/project-{number:06}", number % 100),
            "settings": {"description": format!("The project with the number {number}"), "topics": ["load", format!("t{}", number % 7)]},
        })
    };
    let projects: Vec<_> = (0..projects).map(project).collect();
    let seed = Seed::from_json(serde_json::json!({ "projects": projects }))?;
    let config = Config { data: Data::File(file.to_owned()), seed: Some(seed), ..Config::default() };
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

/// What the sandbox has in memory. The mapped part of the file counts as resident while it is in use.
fn memory(service: &Sandbox) -> String {
    let mib = |figure| process::memory(&service.id(), figure);
    format!("{:.0} MiB of its own and {:.0} MiB of the file in memory", mib("RssAnon"), mib("RssFile"))
}
