//! `undrift completions` and `undrift man`: generated from the definition of the command line.

use std::path::PathBuf;

use clap::{Command, CommandFactory as _, builder::PossibleValuesParser};
use clap_complete::Shell;

use super::{Cli, CommandError, CommandResult, Exit, RunContext};
use crate::catalogue::operations;

/// The options of `completions`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Example:\n  undrift completions bash > ~/.local/share/bash-completion/completions/undrift"
)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the completions for a shell.
pub(super) fn print_completions(args: &CompletionsArgs, cx: &RunContext) -> CommandResult {
    let mut text = Vec::new();
    // The names of operations are added only here. Otherwise, all names would appear in every help
    // and error.
    let operation_parser =
        PossibleValuesParser::new(operations::all_operations().map(|operation| operation.row().id));
    let mut command = Cli::command().mut_subcommand("call", |call| {
        // A changed argument loses its position, so the position is set again.
        let call = call
            .mut_arg("operation", |operation| operation.value_parser(operation_parser).index(1));
        call.mut_arg("arguments", |arguments| arguments.index(2))
    });
    clap_complete::generate(args.shell, &mut command, "undrift", &mut text);
    cx.output.print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Success)
}

/// The options of `man`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  undrift man --write ~/.local/share/man/man1")]
pub(super) struct ManArgs {
    /// Write a page for each command into this folder
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
}

/// Prints or writes manual pages.
pub(super) fn write_man_pages(args: &ManArgs, cx: &RunContext) -> CommandResult {
    let command: Command = Cli::command().disable_help_subcommand(true);
    if let Some(folder) = &args.write {
        let result = std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(command, folder));
        result.map_err(|error| {
            CommandError::usage(format!("cannot write to `{}`: {error}", folder.display()))
        })?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        cx.output.print(&String::from_utf8_lossy(&page))?;
    }
    Ok(Exit::Success)
}
