//! A folder of manifests and the binary in it.
#![cfg(feature = "sandbox")]

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

/// A place to run undrift in.
pub(crate) struct Workspace {
    folder: TempDir,
    environment: Vec<(String, String)>,
}

impl Workspace {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), environment: Vec::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds a file.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        self.write(name, text);
        self
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Adds an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A command with `arguments`, separated by spaces, that is not started yet.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_undrift"));
        let variables = self.environment.iter().map(|(name, value)| (name, value));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.path())
            .env_clear()
            .envs(variables)
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(crate) fn output(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs it to its end and describes the result.
    pub(crate) fn run(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        let stream = |name: &str, bytes: &[u8]| match self.normalised(bytes) {
            text if text.is_empty() => String::new(),
            text => format!("---- {name}\n{text}"),
        };
        let (stdout, stderr) = (stream("stdout", &output.stdout), stream("stderr", &output.stderr));
        format!(
            "$ undrift {arguments}\n{stdout}{stderr}---- exit code {}\n",
            output.status.code().unwrap()
        )
    }

    pub(crate) fn exit_code(&self, arguments: &str) -> i32 {
        self.output(arguments).status.code().unwrap()
    }

    fn normalised(&self, bytes: &[u8]) -> String {
        let text = std::str::from_utf8(bytes).expect("the output is UTF-8");
        let text = text
            .replace(self.path().to_str().unwrap(), "[FOLDER]")
            .replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
        let text = replaced_after(&text, "127.0.0.1:", "[PORT]", |c| c.is_ascii_digit());
        replaced_after(&text, "sandbox-", "[TOKEN]", |c| c.is_ascii_hexdigit())
    }
}

/// The output of a run, which must have ended with this code.
#[track_caller]
pub(crate) fn expect_exit(code: i32, run: String) -> String {
    assert!(run.ends_with(&format!("---- exit code {code}\n")), "{run}");
    run
}

/// Replaces the `variable` characters after `prefix` in `text` by `name`.
fn replaced_after(text: &str, prefix: &str, name: &str, variable: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(prefix);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(&variable);
        text + prefix + if rest.len() < part.len() { name } else { "" } + rest
    })
}
