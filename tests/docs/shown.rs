//! Runs the commands in Markdown pages.
//!
//! A page is read from top to bottom, in its own folder, with these conventions:
//!
//! - A fenced block `sh` contains commands, one per line (a line that ends with `\` continues).
//!   Each must succeed; its output is ignored.
//! - A fenced block `console` contains commands after `$ `, each followed by its stdout.
//!   `UPDATE_SNAPSHOTS=1` updates it. A command that is expected to fail shows it: `undrift drift
//!   manifests; echo "exit code $?"`.
//! - A fenced block `text` is an illustration and must not contain a command.
//! - A fenced block of any other language is a file. Its first line is a comment with its name (`#
//!   manifests/shop.yaml`), which is not part of it.
//! - `<!-- not run: REASON -->` before a block skips it. A test counts these.
//! - `<!-- service` begins a comment at the start of a page with the seed of a sandbox. It runs as
//!   a server and stands for `https://gitlab.example.org` on the page, in both directions, and
//!   `UNDRIFT_TOKEN=…` is its administrator's token.
//!
//! `sh` runs commands in an environment with only a home and a path, which has `undrift` and small
//! stand-ins for `cargo`, `vault` and `sops`. Exported variables and the working directory last
//! until the end of the page.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use tempfile::TempDir;

/// Stands for the address of the service in pages.
pub(crate) const URL: &str = "https://gitlab.example.org";
/// The administrator's token for a page's service.
pub(crate) const TOKEN: &str = "token-of-a-stand-in";
/// Other programs that pages use and the machine may lack.
const STAND_INS: [(&str, &str); 3] = [
    // `cargo run -- plan` is undrift; `cargo test` is already running.
    ("cargo", "if [ \"$1\" = run ]; then shift 2; exec undrift \"$@\"; fi\n"),
    (
        "vault",
        "case \"$1 $2\" in 'kv get') printf 'an-example-of-%s' \"${3#-field=}\";; \
         'write -field=token') echo token-of-vault;; *) exit 1;; esac\n",
    ),
    // The stand-in treats plain files as encrypted ones.
    (
        "sops",
        "case \"$1\" in --decrypt) cat \"$2\";; \
         exec-env) set -a; . \"./$2\"; set +a; exec sh -c \"$3\";; *) exit 1;; esac\n",
    ),
];

/// A folder with an environment, in which commands run one after the other.
pub(crate) struct Workspace {
    folder: TempDir,
    working_dir: PathBuf,
    environment: BTreeMap<String, String>,
    service: Option<Service>,
}

impl Workspace {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (home, bin) = (folder.path().join("home"), folder.path().join("bin"));
        let at = folder.path().join("work");
        for folder in [&home, &bin, &at] {
            fs::create_dir(folder).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_undrift"), bin.join("undrift")).unwrap();
        fs::write(
            home.join(".gitconfig"),
            "[user]\nname = Alice\nemail = alice@example.org\n[init]\ndefaultBranch = main\n",
        )
        .unwrap();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
        let place = Self {
            working_dir: at,
            environment: BTreeMap::from([
                ("HOME".into(), home.display().to_string()),
                ("PATH".into(), path),
                ("LC_ALL".into(), "C.UTF-8".into()),
            ]),
            folder,
            service: None,
        };
        for (name, script) in STAND_INS {
            place.stand_in(name, script);
        }
        place
    }

    /// Adds a shell script to the path.
    pub(crate) fn stand_in(&self, name: &str, script: &str) {
        let file = self.folder.path().join("bin").join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Starts its service with `seed`.
    pub(crate) fn serve(&mut self, seed: &str) {
        let file = self.folder.path().join("seed.yaml");
        fs::write(&file, seed).unwrap();
        self.service = Some(Service::start(&file));
    }

    /// The address of its service.
    pub(crate) fn url(&self) -> Option<&str> {
        self.service.as_ref().map(|service| &*service.url)
    }

    /// The working directory of the next command.
    pub(crate) fn path(&self) -> &Path {
        &self.working_dir
    }

    /// Changes the working directory, which stays below the page's own folder.
    pub(crate) fn enter(&mut self, folder: &str) {
        self.working_dir = self.folder.path().join(folder);
        fs::create_dir_all(&self.working_dir).unwrap();
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let file = self.working_dir.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, self.with_real_url(text)).unwrap();
    }

    /// Runs a shell command, and keeps its exports and its working directory.
    pub(crate) fn run(&mut self, command: &str) -> Output {
        let (at, env) = (self.folder.path().join("at"), self.folder.path().join("env"));
        let script = format!(
            "{{ {}\n}}\nstatus=$?\npwd -P >'{}'\nenv -0 >'{}'\nexit $status\n",
            self.with_real_url(command),
            at.display(),
            env.display()
        );
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(&self.working_dir)
            .env_clear()
            .envs(&self.environment)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        if let (Ok(at), Ok(env)) = (fs::read_to_string(&at), fs::read_to_string(&env)) {
            self.working_dir = at.trim_end().into();
            let of_shell = |name: &str| ["PWD", "OLDPWD", "SHLVL", "_"].contains(&name);
            let variables = env.split('\0').filter_map(|variable| variable.split_once('='));
            self.environment = variables
                .filter(|(name, _)| !of_shell(name))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
        }
        output
    }

    /// The text of a page with the address of the running service.
    fn with_real_url(&self, text: &str) -> String {
        let url = self.url().unwrap_or(URL);
        text.replace("UNDRIFT_TOKEN=…", &format!("UNDRIFT_TOKEN={TOKEN}")).replace(URL, url)
    }

    /// The output of a command as a page shows it: without the marks of a sandbox.
    pub(crate) fn shown_output(&self, command: &str, output: &[u8]) -> String {
        let text = String::from_utf8_lossy(output);
        let text = match self.url() {
            Some(url) if !command.contains("--sandbox") => {
                text.replace(url, URL).replace(" for the sandbox as ", &format!(" for {URL} as "))
            }
            _ => text.into_owned(),
        };
        if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
    }
}

/// A sandbox as a separate server.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    fn start(seed: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_undrift"))
            .args(["sandbox", "--seed"])
            .arg(seed)
            .env_clear()
            .env("UNDRIFT_SANDBOX_TOKEN", TOKEN)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").expect("an address").to_owned();
        Self { child, url }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Ignore errors: it keeps nothing, and a failing test should show its own fault.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Counts of the parts of a page, so that none is missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockCounts {
    /// Commands whose output is shown.
    pub(crate) shown: usize,
    /// Other commands.
    pub(crate) used: usize,
    /// Files.
    pub(crate) files: usize,
    /// Skipped blocks.
    pub(crate) skipped: usize,
}

/// The result of reading a page.
#[derive(Debug, Default)]
pub(crate) struct PageResult {
    /// The page with the present output of its commands.
    pub(crate) fresh: String,
    /// The parts that were run.
    pub(crate) counts: BlockCounts,
    /// The faults, each with the line.
    pub(crate) faults: Vec<String>,
}

/// Reads the page `text` and runs it in `place`.
pub(crate) fn read(text: &str, place: &mut Workspace) -> PageResult {
    let mut read = PageResult::default();
    let mut lines = text.lines().enumerate().peekable();
    let mut skips_next = false;
    while let Some((at, line)) = lines.next() {
        read.fresh += &format!("{line}\n");
        if line == "<!-- service" {
            let seed: Vec<_> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "-->").collect();
            read.fresh += &format!("{}\n-->\n", seed.join("\n"));
            place.serve(&seed.join("\n"));
            continue;
        }
        if line.starts_with("<!-- not run: ") {
            skips_next = true;
            continue;
        }
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<_> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        if lines.peek().is_none() && !text.ends_with("```\n") {
            read.faults.push(format!("{}: the block does not end", at + 1));
        }
        let block = Block { line: at + 2, lines: &block };
        if std::mem::take(&mut skips_next) {
            read.counts.skipped += 1;
            block.repeat(&mut read);
            read.fresh += "```\n";
            continue;
        }
        match language {
            "sh" => block.use_commands(place, &mut read),
            "console" => block.show_commands(place, &mut read),
            "text" => block.illustrate(&mut read),
            _ => block.write(place, &mut read),
        }
        read.fresh += "```\n";
    }
    read
}

/// A fenced block.
struct Block<'t> {
    /// The number of its first line.
    line: usize,
    lines: &'t [&'t str],
}

impl Block<'_> {
    fn repeat(&self, read: &mut PageResult) {
        for line in self.lines {
            read.fresh += &format!("{line}\n");
        }
    }

    fn illustrate(&self, read: &mut PageResult) {
        if self.lines.iter().any(|line| line.trim_start().starts_with("undrift ")) {
            read.faults.push(format!("{}: commands belong into `sh` or `console`", self.line));
        }
        self.repeat(read);
    }

    /// Writes the block as a file.
    fn write(&self, place: &Workspace, read: &mut PageResult) {
        self.repeat(read);
        let Some(name) = self.lines.first().and_then(|line| line.strip_prefix("# ")) else {
            read.faults.push(format!("{}: a file begins with its name", self.line));
            return;
        };
        place.write(name, &(self.lines[1..].join("\n") + "\n"));
        read.counts.files += 1;
    }

    fn use_commands(&self, place: &mut Workspace, read: &mut PageResult) {
        self.repeat(read);
        let text = self.lines.join("\n");
        for command in text.replace("\\\n", " ").lines().filter(|line| !line.trim().is_empty()) {
            read.counts.used += 1;
            self.run(command, place, read);
        }
    }

    fn show_commands(&self, place: &mut Workspace, read: &mut PageResult) {
        let mut lines = self.lines.iter().peekable();
        while let Some(line) = lines.next() {
            read.fresh += &format!("{line}\n");
            let Some(command) = line.strip_prefix("$ ") else {
                read.faults.push(format!("{}: a command begins with `$ `", self.line));
                continue;
            };
            while lines.next_if(|line| !line.starts_with("$ ")).is_some() {}
            read.counts.shown += 1;
            let printed = self.run(command, place, read);
            read.fresh += &printed;
        }
    }

    /// Runs a command; returns its output.
    fn run(&self, command: &str, place: &mut Workspace, read: &mut PageResult) -> String {
        let output = place.run(command);
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            read.faults.push(format!("{}: `{command}`: {}\n{stderr}", self.line, output.status));
        }
        place.shown_output(command, &output.stdout)
    }
}
