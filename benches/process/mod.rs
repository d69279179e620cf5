//! The processes of a benchmark: its own, and the sandbox that it starts; and the resources that
//! they use, on Linux.

use std::{
    fs,
    io::{self, BufRead as _, BufReader},
    process::{Child, Command, ExitCode, Stdio},
};

/// The token of `root` in a sandbox of a benchmark.
pub(crate) const TOKEN: &str = "token-of-a-measured-sandbox";

/// The arguments, without the one that `cargo bench` adds.
pub(crate) fn arguments() -> impl Iterator<Item = String> {
    std::env::args().filter(|argument| argument != "--bench")
}

/// Prints a line of figures.
#[expect(clippy::print_stdout, reason = "printing is what a benchmark is for")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Ends a benchmark, and prints the error, if any.
pub(crate) fn ended<E: std::fmt::Display>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The sandbox in a process of its own; it ends when this is dropped.
pub(crate) struct Sandbox {
    process: Child,
    /// `http://HOST:PORT`.
    pub(crate) url: String,
}

impl Sandbox {
    /// Starts `undrift sandbox` by a command that has its arguments, and waits until it listens.
    pub(crate) fn start(mut command: Command) -> io::Result<Self> {
        let mut process = command
            .env("UNDRIFT_SANDBOX_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let mut sandbox = Self { process, url: String::new() };
        sandbox.url = line
            .trim()
            .strip_prefix("listening on ")
            .ok_or_else(|| io::Error::other("the sandbox did not start"))?
            .to_owned();
        Ok(sandbox)
    }

    /// The name of its folder in `/proc`.
    pub(crate) fn id(&self) -> String {
        self.process.id().to_string()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The processor time that a process has used, in seconds; zero where there is no `/proc`.
pub(crate) fn processor(process: &str) -> f64 {
    // Fields 14 and 15 are the ticks in user and in kernel mode; Linux always shows them in
    // hundredths of a second.
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        |i: usize| fields.get(i).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) / 100.0
}

/// A figure of a process's memory, like `VmHWM`, in MiB; zero where there is no `/proc`.
pub(crate) fn memory(process: &str, figure: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok()).unwrap_or_default()
        / 1_024.0
}
