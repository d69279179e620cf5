//! Commands and options of other tools, and what undrift has instead of them.

use std::{ffi::OsString, path::Path};

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Lines of words, and the help for them.
const TABLE: &str = include_str!("other_tools.txt");

/// The help for a command or an option that undrift does not have and other tools do, or for a second folder.
pub(super) fn suggest(error: &Error, arguments: &[OsString]) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => find(context_text(error, ContextKind::InvalidSubcommand)?),
        ErrorKind::UnknownArgument => {
            let unknown = context_text(error, ContextKind::InvalidArg)?;
            if !unknown.starts_with('-') {
                return Path::new(unknown).exists().then_some(
                    "name one folder, which holds the others, or run the command for each",
                );
            }
            // Of `-auto-approve` clap names only the first letter that it does not know.
            let mut written = arguments.iter().filter_map(|argument| argument.to_str());
            let letter = unknown.trim_start_matches('-');
            let option = written.find(|argument| {
                argument.starts_with(unknown)
                    || !argument.starts_with("--")
                        && argument.starts_with('-')
                        && argument.contains(letter)
            })?;
            let name = option.trim_start_matches('-').split('=').next()?;
            let dashes = if name.chars().nth(1).is_some() { "--" } else { "-" };
            find(&format!("{dashes}{name}"))
        }
        _ => None,
    }
}

fn context_text(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// The help in the row of the table that has `word`.
fn find(word: &str) -> Option<&'static str> {
    let mut rows = TABLE.lines().filter_map(|line| line.split_once(" | "));
    rows.find(|(words, _)| words.split(' ').any(|other| other == word)).map(|(_, help)| help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::{CommandFactory as _, Parser as _};

    fn help_for(line: &str) -> Option<&'static str> {
        let arguments: Vec<_> = line.split(' ').map(OsString::from).collect();
        suggest(&Cli::try_parse_from(&arguments).unwrap_err(), &arguments)
    }

    #[test]
    fn words_of_other_tools_lead_to_those_of_undrift() {
        for (line, help) in [
            ("undrift validate m", Some("use `undrift check`")),
            ("undrift diff m", Some("use `undrift plan`")),
            ("undrift apply -auto-approve", Some("pass `--yes`")),
            (
                "undrift plan -var port=80",
                Some("write `params` in the manifests, or `{env: NAME}` for a secret"),
            ),
            ("undrift plan --target=acme/shop m", Some("pass `--only GLOB`")),
            (
                "undrift plan m src",
                Some("name one folder, which holds the others, or run the command for each"),
            ),
            ("undrift plan m --concurrency many", None),
            ("undrift plan diff --unheard", None),
            ("undrift chekc m", None),
        ] {
            assert_eq!(help_for(line), help, "{line}");
        }
    }

    #[test]
    fn no_word_of_other_tools_is_one_of_undrift() {
        let command = Cli::command();
        let lines = TABLE.lines().map(|line| line.split_once(" | ").unwrap().0);
        let words: Vec<_> = lines.flat_map(|words| words.split(' ')).collect();
        for (index, word) in words.iter().enumerate() {
            assert!(command.find_subcommand(word).is_none(), "{word}");
            assert!(!words[..index].contains(word), "{word} has two lines");
        }
    }
}
