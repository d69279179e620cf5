//! The command line: one file a command, and what they share.
//!
//! [`main`] parses the arguments, runs one command and turns what it comes to into an exit code ([`exit`]). Results go to stdout,
//! everything else to stderr, all of it through [`output`]. [`connect`] decides which service a run talks to and as whom; [`session`]
//! leads from manifests and a service to a plan. The environment is read once, here, and handed on as a value.

mod apply;
mod check;
mod connect;
mod drift;
#[cfg(feature = "sandbox")]
mod embedded;
mod environment;
mod exit;
mod output;
mod pages;
mod plan;
#[cfg(feature = "sandbox")]
mod sandbox;
mod schema;
mod session;
mod signal;

use std::{ffi::OsString, path::Path, process::ExitCode};

use clap::{Parser, Subcommand};

use environment::Environment;
use exit::{Exit, Failure, Outcome};
use output::{Colour, Output};

/// Keeps the projects of a GitLab-compatible service where Git says they are.
#[derive(Debug, Parser)]
#[command(name = "undrift", version, after_help = exit::HELP, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    color: Colour,
    /// Log to stderr what happens; twice for every request [env: UNDRIFT_LOG]
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Output")]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check manifests without the service
    #[command(after_help = "Examples:\n  undrift check\n  undrift check manifests --out json=-")]
    Check(check::Args),
    /// Show what apply would do, without doing it
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(plan::Args),
    /// Show the plan, ask, and carry it out
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(apply::Args),
    /// Tell whether the service is still as declared
    #[command(
        after_help = "Examples:\n  undrift drift manifests          exit code 2 if something differs\n  undrift drift --only 'acme/**'"
    )]
    Drift(drift::Args),
    /// Run the embedded service until a signal ends it
    #[cfg(feature = "sandbox")]
    #[command(after_help = SANDBOX_EXAMPLES)]
    Sandbox(sandbox::Args),
    /// Print or write the JSON schemas of manifests and reports
    #[command(after_help = "Examples:\n  undrift schema manifest\n  undrift schema --write schemas")]
    Schema(schema::Args),
    /// Print completions for a shell
    #[command(after_help = "Example:\n  undrift completions bash > ~/.local/share/bash-completion/completions/undrift")]
    Completions(pages::CompletionsArgs),
    /// Print the manual page, or write those of all commands
    #[command(after_help = "Example:\n  undrift man --write ~/.local/share/man/man1")]
    Man(pages::ManArgs),
}

const PLAN_EXAMPLES: &str = "Examples:
  undrift plan manifests --url https://gitlab.example.org    the token is in UNDRIFT_TOKEN
  undrift plan manifests --sandbox                           against the embedded service
  undrift plan --only 'acme/**#variables'                    only variables of projects below acme
  undrift plan --out json=plan.json                          for machines too";

const APPLY_EXAMPLES: &str = "Examples:
  undrift apply manifests --sandbox              shows the plan and asks
  undrift apply manifests --yes                  in CI
  undrift apply --ack 'removals:acme/shop#hooks' lets this one refusal through";

#[cfg(feature = "sandbox")]
const SANDBOX_EXAMPLES: &str = "Examples:
  undrift sandbox                                prints its address and a token, keeps nothing
  undrift sandbox --listen 127.0.0.1:8080 --data sandbox.db --seed sandbox.yaml

The token of `root` is taken from UNDRIFT_SANDBOX_TOKEN, or generated and printed.";

/// What every command gets.
#[derive(Debug)]
struct Context {
    /// The environment.
    env: Environment,
    /// Where text goes.
    output: Output,
}

/// Runs undrift with the arguments and the environment of this process.
pub fn main() -> ExitCode {
    run(std::env::args_os().collect(), Environment::of_process()).into()
}

fn run(arguments: Vec<OsString>, env: Environment) -> Exit {
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // If nobody is there to read it, nothing can be said.
            let _ = error.print();
            let exit = Exit::Usage.when(error.use_stderr());
            if let Some(file) = misplaced_file(&arguments).filter(|_| error.use_stderr()) {
                Output::new(Colour::Auto, 0, &env).tell_failure(&Failure::said(exit).help(format!("write `--sandbox={file}`")));
            }
            return exit;
        }
    };
    let output = Output::new(cli.color, cli.verbose, &env);
    let cx = Context { env, output };
    let misplaced = misplaced_file(&arguments).filter(|file| is_database(file));
    let outcome = match misplaced {
        Some(file) => {
            Err(Failure::usage(format!("`--sandbox {file}` takes `{file}` for the manifests")).help(format!("write `--sandbox={file}`")))
        }
        None => cx.output.start_log(cli.verbose, &cx.env).and_then(|()| dispatch(cli.command, &cx)),
    };
    outcome.unwrap_or_else(|failure| {
        cx.output.tell_failure(&failure);
        failure.exit
    })
}

fn dispatch(command: Command, cx: &Context) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match command {
        Command::Check(args) => check::run(&args, cx),
        Command::Plan(args) => runtime.block_on(plan::run(args, cx)),
        Command::Apply(args) => runtime.block_on(apply::run(args, cx)),
        Command::Drift(args) => runtime.block_on(drift::run(args, cx)),
        #[cfg(feature = "sandbox")]
        Command::Sandbox(args) => runtime.block_on(sandbox::run(args, cx)),
        Command::Schema(args) => schema::run(&args, cx),
        Command::Completions(args) => pages::completions(&args, cx),
        Command::Man(args) => pages::man(&args, cx),
    }
}

/// What follows a bare `--sandbox` as an argument of its own, and so is not its file.
fn misplaced_file(arguments: &[OsString]) -> Option<&str> {
    let bare = arguments.iter().position(|argument| argument == "--sandbox")?;
    arguments.get(bare + 1)?.to_str().filter(|argument| !argument.starts_with('-'))
}

/// Whether `name` looks like the file of a sandbox rather than like manifests.
fn is_database(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(std::ffi::OsStr::to_str);
    name == ":memory:" || matches!(extension, Some("db" | "sqlite" | "sqlite3"))
}
