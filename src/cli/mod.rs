//! The command line: one file per command, and shared modules.
//!
//! [`main`] parses the arguments, runs one command and turns its result into an exit code (`exit`).
//! Results go to stdout, everything else to stderr, all through `output`. `reports` writes
//! machine-readable reports, also if the run fails. `connect` decides which service a run uses and with
//! which token; `session` loads the manifests, reads the service and makes the plan. The environment is read
//! once, here, and passed on as a value.

mod absorb;
mod apply;
mod base;
mod call;
mod check;
mod comment;
mod connect;
mod drift;
#[cfg(feature = "sandbox")]
mod embedded;
mod environment;
mod exit;
mod explain;
mod export;
mod input;
mod near_address;
mod new;
mod other_tools;
mod output;
mod pages;
mod plan;
mod progress;
mod record;
mod rehearsed;
mod reports;
#[cfg(feature = "sandbox")]
mod sandbox;
mod saved;
mod schema;
mod selftest;
mod session;
mod show;
mod signal;
mod snapshot;
mod write_files;

use std::{
    ffi::OsString,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::LazyLock,
};

use clap::{
    ColorChoice, Parser, Subcommand,
    error::{ContextKind, ContextValue},
};

use tokio::runtime::Builder;

use crate::{
    catalogue,
    diagnostic::Diagnostics,
    manifest::{LoadEnvironment, descriptions, is_manifest_name},
    report::{ReportKind, run_record::CiJob},
};
// The modules of commands import shared items from here.
use base::BaseArgs;
use connect::{ConnectArgs, Endpoint};
use environment::Environment;
use exit::{CommandError, CommandResult, Exit, Result};
use input::ManifestFolder;
use output::Output;
use progress::Progress;
use record::RunRecord;
use reports::{ReportArgs, ReportedExit, Reports, write_failure};
use session::{
    AccessArgs, BaseUse, ChangeArgs, LiveArgs, Manifests, Session, SessionArgs, SessionBuilder,
    SessionSource, check_can_write, into_manifests, require_match,
};
use signal::run_until_signal;

/// Keep GitLab projects configured as declared in Git
#[derive(Debug, Parser)]
#[command(name = "undrift", version = VERSION.as_str(), after_help = AFTER_HELP.as_str(), max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Also manage the collection that this file describes; may be repeated
    #[arg(long, global = true, value_name = "FILE")]
    kinds: Vec<PathBuf>,
    /// When to use colours: always, never, or auto (on a terminal, unless NO_COLOR or CI is set)
    /// [default: auto]
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    #[arg(help_heading = "Output")]
    color: ColorChoice,
    /// Log to stderr; -vv logs every request [env: UNDRIFT_LOG]
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Output")]
    verbose: u8,
    /// Show the whole output, without folding or truncating
    #[arg(long, global = true, help_heading = "Output")]
    full: bool,
}

/// The text of `--version`, with the commit if `.ci/release` built the binary.
static VERSION: LazyLock<String> = LazyLock::new(|| match option_env!("UNDRIFT_COMMIT") {
    Some(commit) if !commit.is_empty() => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
    _ => env!("CARGO_PKG_VERSION").to_owned(),
});

/// Examples for a newcomer, and the exit codes.
static AFTER_HELP: LazyLock<String> =
    LazyLock::new(|| format!("{}\n{}", include_str!("help/undrift.txt"), exit::EXIT_CODES_HELP));

#[derive(Debug, Subcommand)]
enum Command {
    /// Check manifests offline
    Check(check::Args),
    /// Show what apply would change
    Plan(plan::Args),
    /// Apply the plan, after confirmation
    Apply(apply::Args),
    /// Check that the service matches the manifests
    Drift(drift::Args),
    /// Save the live state that plans need in a file
    Snapshot(snapshot::Args),
    /// Write existing groups and projects as manifests
    Export(export::Args),
    /// Write drift back into the manifests
    Absorb(absorb::Args),
    /// Write the document of a new project
    New(new::Args),
    /// Explain an address, a field, or the code of a message
    Explain(explain::Args),
    /// Show merged manifests, a saved plan, or the joined reports of several jobs
    Show(show::Args),
    /// Write a report as the one comment of a merge request
    Comment(comment::Args),
    /// Call any API operation by name
    Call(call::Args),
    /// Try every kind on a real service, in a disposable group
    Selftest(selftest::Args),
    /// Run the embedded service until interrupted
    #[cfg(feature = "sandbox")]
    Sandbox(sandbox::Args),
    /// Print or write the JSON schemas of manifests and reports
    Schema(schema::Args),
    /// Print shell completions
    Completions(pages::CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(pages::ManArgs),
}

/// The state of a run, which every command gets.
#[derive(Debug)]
struct RunContext {
    /// The environment.
    env: Environment,
    /// Writes text to stdout and stderr.
    output: Output,
    /// The reports of the run.
    reports: Reports,
    /// The embedded service, from its first use to the end of the run.
    #[cfg(feature = "sandbox")]
    sandbox: tokio::sync::OnceCell<crate::sandbox::RunningSandbox>,
}

impl RunContext {
    /// Reports the faults of a subject such as `the manifests`. Returns the failure that ends the
    /// run.
    fn report_unusable(&self, subject: &str, diagnostics: Diagnostics) -> CommandError {
        self.output.eprint_diagnostics(&diagnostics);
        let summary = diagnostics.summary().unwrap_or_default();
        self.reports.add_diagnostics(diagnostics);
        CommandError::usage(format!("cannot use {subject}: {summary}"))
    }
}

/// Runs undrift with the arguments and the environment of this process.
pub fn main() -> ExitCode {
    // The panic hook already reported the panic. Here the panic only becomes an exit code.
    std::panic::catch_unwind(|| run(std::env::args_os().collect(), Environment::from_process()))
        .unwrap_or(Exit::Internal)
        .into()
}

fn run(arguments: Vec<OsString>, env: Environment) -> Exit {
    let mut cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return exit_without_command(error, &arguments, &env),
    };
    let output = Output::new(cli.color, cli.verbose, cli.full, &env);
    output.install_panic_hook();
    let folder_result = match &mut cli.command {
        Command::Apply(args) => args.resolve_folder(),
        other => other.manifest_folder().map_or(Ok(()), ManifestFolder::check_named_once),
    };
    let reports = Reports::new(cli.command.report_args(), cli.command.manifests_path(), &output);
    let mut cx = RunContext {
        env,
        output,
        reports,
        #[cfg(feature = "sandbox")]
        sandbox: tokio::sync::OnceCell::new(),
    };
    let result = cli.prepare(folder_result, &arguments, &mut cx).and_then(|()| {
        // A run has many small requests, and moving them between threads costs more time than it saves.
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let result = dispatch(cli.command, &cx).await;
            #[cfg(feature = "sandbox")]
            if let Some(sandbox) = cx.sandbox.take() {
                sandbox.stop().await;
            }
            result
        })
    });
    cx.reports.end(result)
}

impl Cli {
    /// Begins the reports and the log. Checks `folder_result` only after the run record has been
    /// started, so that the record contains the error.
    ///
    /// # Errors
    /// If the arguments are wrong, or a file cannot be written.
    fn prepare(
        &self,
        folder_result: Result<()>,
        arguments: &[OsString],
        cx: &mut RunContext,
    ) -> Result<()> {
        cx.reports.check_outputs(self.command.output_file(), self.command.input_file())?;
        let job = CiJob::from_variables(|name| cx.env.get(name));
        if let Some(path) = self.command.record_path() {
            cx.reports.record = RunRecord::begin(path, job, jiff::Timestamp::now, &cx.output)?;
        }
        folder_result?;
        add_described_kinds(&self.kinds, self.command.manifests_path(), cx)?;
        cx.reports.begin()?;
        match find_misplaced_file(arguments).filter(|file| is_sandbox_file(file)) {
            Some(file) => {
                Err(CommandError::usage(format!("`{file}` would be read as the manifests"))
                    .help(sandbox_file_hint(file)))
            }
            None => cx.output.start_log(self.verbose, &cx.env),
        }
    }
}

/// Adds the kinds described in `files`, before anything uses the registry of kinds.
///
/// # Errors
/// If a file is not valid.
fn add_described_kinds(files: &[PathBuf], manifests: Option<&Path>, cx: &RunContext) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let mut diagnostics = Diagnostics::default();
    let environment = LoadEnvironment::for_process();
    let registry = descriptions::load(files, manifests, &environment, &mut diagnostics);
    if !diagnostics.is_empty() {
        return Err(cx.report_unusable("the described kinds", diagnostics));
    }
    catalogue::set_registry(registry).map_err(|_| {
        let error = anyhow::anyhow!("the registry of kinds was used before it was complete");
        CommandError::new(Exit::Internal, error)
    })
}

/// Reasons in messages of parsers that do not help a user.
const PARSER_REASONS: [&str; 4] = [
    "invalid digit found in string",
    "cannot parse integer from empty string",
    "number would be zero for non-zero type",
    "invalid socket address syntax",
];

/// Prints the output of clap if there is no command to run: help, the version, or faults of the
/// arguments.
fn exit_without_command(error: clap::Error, arguments: &[OsString], env: &Environment) -> Exit {
    let file_name = find_misplaced_file(arguments).filter(|file| refuses_argument(&error, file));
    let help = file_name
        .map(sandbox_file_hint)
        .or_else(|| other_tools::explain_argument_error(&error, arguments));
    if let Some(help) = help {
        // Print only the first paragraph of clap's message. The suggestion that follows would
        // contradict this help.
        let text = error.to_string();
        let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
        let lines: Vec<_> = lines.collect();
        let message = lines.join(" ");
        let message = message.trim_start_matches("error: ");
        let (start, reason) = message.rsplit_once(": ").unwrap_or((message, ""));
        let message = if PARSER_REASONS.contains(&reason) { start } else { message };
        let failure = CommandError::usage(message).help(help);
        Output::new(ColorChoice::Auto, 0, false, env).eprint_failure(&failure);
        return Exit::Usage;
    }
    let print_failed = error.print().is_err_and(|error| error.kind() != ErrorKind::BrokenPipe);
    Exit::Usage.only_if(error.use_stderr() || print_failed)
}

impl Command {
    /// The folder or file of manifests that the command always reads, if there is one.
    fn manifests_path(&self) -> Option<&Path> {
        match self {
            Self::Apply(args) => Some(args.manifests_path()),
            Self::Show(_) | Self::Explain(_) => None,
            other => other.manifest_folder().map(|folder| &**folder),
        }
    }

    /// The argument for the folder of manifests, if the command has one.
    const fn manifest_folder(&self) -> Option<&ManifestFolder> {
        match self {
            Self::Check(args) => Some(&args.dir),
            Self::Plan(args) => Some(&args.session.dir),
            Self::Drift(args) => Some(&args.session.dir),
            Self::Snapshot(args) => Some(&args.dir),
            Self::Show(args) => Some(&args.dir),
            Self::Explain(args) => Some(&args.dir),
            _ => None,
        }
    }

    /// The file for a record of the run, if there is one.
    fn record_path(&self) -> Option<&Path> {
        if let Self::Apply(args) = self { args.record.as_deref() } else { None }
    }

    /// The output file of the command, if there is one. Reports and manifests are not included.
    fn output_file(&self) -> Option<&Path> {
        match self {
            Self::Plan(args) => args.output.as_deref(),
            Self::Snapshot(args) => Some(&args.output),
            Self::Selftest(args) => args.output.as_deref(),
            #[cfg(feature = "sandbox")]
            Self::Sandbox(args) => args.request_log.as_deref(),
            other => other.record_path(),
        }
    }

    /// The file that the command reads in addition to manifests, if there is one.
    fn input_file(&self) -> Option<&Path> {
        match self {
            Self::Plan(args) => args.live.live.as_deref(),
            Self::Drift(args) => args.live.live.as_deref(),
            _ => None,
        }
    }

    /// The targets and the kind of the command's reports, if it can write reports.
    const fn report_args(&self) -> Option<(&ReportArgs, ReportKind)> {
        match self {
            Self::Check(args) => Some((&args.report, ReportKind::Check)),
            Self::Plan(args) => Some((&args.report, ReportKind::Plan)),
            Self::Apply(args) => Some((&args.report, ReportKind::Apply)),
            Self::Drift(args) => Some((&args.report, ReportKind::Drift)),
            Self::Show(args) => Some((&args.out, ReportKind::Plan)),
            _ => None,
        }
    }
}

async fn dispatch(command: Command, cx: &RunContext) -> CommandResult {
    let output = &cx.output;
    match command {
        Command::Check(args) => check::run(&args, cx).map(ReportedExit::exit),
        Command::Plan(args) => {
            run_until_signal(output, plan::run(args, cx)).await.map(ReportedExit::exit)
        }
        Command::Apply(args) => apply::run(args, cx).await.map(ReportedExit::exit),
        Command::Drift(args) => {
            run_until_signal(output, drift::run(args, cx)).await.map(ReportedExit::exit)
        }
        Command::Snapshot(args) => run_until_signal(output, snapshot::run(args, cx)).await,
        Command::Export(args) => run_until_signal(output, export::run(args, cx)).await,
        Command::Absorb(args) => absorb::run(args, cx).await,
        Command::New(args) => new::run(&args, cx),
        Command::Explain(args) => explain::run(args, cx).await,
        Command::Show(args) => show::run(&args, cx),
        Command::Comment(args) => comment::run(args, cx).await,
        Command::Call(args) => call::run(args, cx).await,
        Command::Selftest(args) => selftest::run(args, cx).await,
        #[cfg(feature = "sandbox")]
        Command::Sandbox(args) => sandbox::run(args, cx).await,
        Command::Schema(args) => schema::run(&args, cx),
        Command::Completions(args) => pages::print_completions(&args, cx),
        Command::Man(args) => pages::write_man_pages(&args, cx),
    }
}

/// True if clap refuses the argument `file`.
fn refuses_argument(error: &clap::Error, file: &str) -> bool {
    matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(argument)) if argument == file)
}

/// Help for a file after `--sandbox`. A YAML file can only be the seed, which has a fixed path.
fn sandbox_file_hint(file: &str) -> String {
    if is_manifest_name(file.as_ref()) {
        "the seed is `sandbox.yaml` in the folder of the manifests, where `--sandbox` alone reads it; \
         `--sandbox=FILE` names the file that keeps the state, as in `--sandbox=state.db`"
            .to_owned()
    } else {
        format!("give the sandbox file with an equals sign: `--sandbox={file}`")
    }
}

/// The argument after a `--sandbox` without a value. The user may have meant it as the file of the sandbox.
fn find_misplaced_file(arguments: &[OsString]) -> Option<&str> {
    let option_index = arguments.iter().position(|argument| argument == "--sandbox")?;
    arguments.get(option_index + 1)?.to_str().filter(|argument| !argument.starts_with('-'))
}

/// True if `name` looks like a file of a sandbox, not like manifests.
fn is_sandbox_file(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(std::ffi::OsStr::to_str);
    name == ":memory:" || matches!(extension, Some("db" | "sqlite" | "sqlite3"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[cfg(feature = "sandbox")]
    fn arguments(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_folder_is_an_argument_or_an_option_of_every_command() {
        for command in ["check", "plan", "drift", "snapshot -o f", "show", "explain what", "apply"]
        {
            for (dir, expected) in [("", "."), ("m", "m"), ("-d m", "m"), ("--dir m", "m")] {
                let line = format!("undrift {command} {dir}");
                let command = Cli::try_parse_from(line.split_whitespace()).unwrap().command;
                let folder = match &command {
                    Command::Apply(args) => &args.session.dir,
                    other => other.manifest_folder().unwrap(),
                };
                assert_eq!(
                    (&**folder, folder.is_named_twice()),
                    (Path::new(expected), false),
                    "{line}"
                );
            }
            for argument in ["a", "."] {
                let line = format!("undrift {command} {argument} -d b");
                let command = Cli::try_parse_from(line.split(' ')).unwrap().command;
                let Command::Apply(mut args) = command else {
                    assert!(
                        command.manifest_folder().unwrap().check_named_once().is_err(),
                        "{line}"
                    );
                    continue;
                };
                // For `apply` with `-d`, the argument is a saved plan, not a folder.
                let result = args.resolve_folder();
                assert_eq!(result.is_err(), argument == ".", "{line}");
                assert!(result.is_err() || args.manifests_path() == Path::new("b"), "{line}");
            }
        }
    }

    #[cfg(feature = "sandbox")]
    #[test]
    fn the_file_of_a_sandbox_takes_an_equals_sign() {
        for (line, file) in [
            ("undrift plan --sandbox my.db", Some("my.db")),
            ("undrift plan --sandbox manifests", Some("manifests")),
            ("undrift plan --sandbox=my.db manifests", None),
            ("undrift plan manifests --sandbox", None),
            ("undrift plan --sandbox --full", None),
        ] {
            assert_eq!(find_misplaced_file(&arguments(line)), file, "{line}");
        }
        assert!(
            is_sandbox_file("my.db")
                && is_sandbox_file(":memory:")
                && !is_sandbox_file("manifests")
                && !is_sandbox_file("shop.yaml")
        );
        let error =
            Cli::try_parse_from(arguments("undrift plan manifests --sandbox other")).unwrap_err();
        assert!(refuses_argument(&error, "other") && !refuses_argument(&error, "manifests"));
    }

    #[cfg(feature = "sandbox")]
    #[test]
    fn the_sandbox_excludes_an_address_and_there_is_no_token_option() {
        for line in [
            "undrift plan --sandbox --url https://x.example",
            "undrift plan --token abc",
            "undrift plan --concurrency 0",
        ] {
            assert!(Cli::try_parse_from(arguments(line)).unwrap_err().use_stderr(), "{line}");
        }
        assert!(
            Cli::try_parse_from(arguments("undrift plan --sandbox --only a/** --only b/* x"))
                .is_ok()
        );
    }
}
