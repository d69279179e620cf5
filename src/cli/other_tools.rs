//! Commands and options of other tools, and their equivalents in undrift.

use std::{ffi::OsString, path::Path};

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Each line has commands or options of other tools, and the help for them.
const TABLE: &str = include_str!("other_tools.txt");

/// The help for a command or an option that only other tools have. Also the help for an argument or
/// a value in a wrong form.
pub(super) fn explain_argument_error(error: &Error, arguments: &[OsString]) -> Option<String> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            find_help(context_text(error, ContextKind::InvalidSubcommand)?).map(str::to_owned)
        }
        ErrorKind::ValueValidation => suggest_value(
            context_text(error, ContextKind::InvalidArg)?,
            context_text(error, ContextKind::InvalidValue)?,
        ),
        ErrorKind::ArgumentConflict => Some("leave one of them out".to_owned()),
        ErrorKind::UnknownArgument => {
            let wrong_argument = context_text(error, ContextKind::InvalidArg)?;
            if !wrong_argument.starts_with('-') {
                return suggest_report(wrong_argument, arguments).or_else(|| {
                    looks_like_manifest(wrong_argument).then(|| {
                        "name one folder, which holds the others, or run the command for each"
                            .into()
                    })
                });
            }
            // For `-auto-approve`, clap reports only the first unknown letter.
            let mut argument_texts = arguments.iter().filter_map(|argument| argument.to_str());
            let letter = wrong_argument.trim_start_matches('-');
            let option = argument_texts.find(|argument| {
                argument.starts_with(wrong_argument)
                    || !argument.starts_with("--")
                        && argument.starts_with('-')
                        && argument.contains(letter)
            })?;
            let name = option.trim_start_matches('-').split('=').next()?;
            let dashes = if name.chars().nth(1).is_some() { "--" } else { "-" };
            let help = find_help(&format!("{dashes}{name}")).map(str::to_owned);
            help.or_else(|| suggest_option_list(error, arguments))
        }
        _ => None,
    }
}

/// The help for an unknown option if no option has a similar name. The suggestion of clap, to pass the
/// option as a value, would mislead.
fn suggest_option_list(error: &Error, arguments: &[OsString]) -> Option<String> {
    let command = arguments.get(1)?.to_str().filter(|name| !name.starts_with('-'))?;
    let has_similar_option = error.get(ContextKind::SuggestedArg).is_some();
    (!has_similar_option).then(|| format!("`undrift {command} --help` lists the options"))
}

/// The units of time: the name of a unit, in a value or in the help of an option, and its length in
/// milliseconds.
const TIME_UNITS: [(&str, u64); 8] = [
    ("<MILLISECONDS>", 1),
    ("<SECONDS>", 1000),
    ("<DAYS>", 86_400_000),
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// The help for a number or an address in a wrong form. `argument` is the option with the name of
/// its value, such as `--deadline <SECONDS>`.
fn suggest_value(argument: &str, value: &str) -> Option<String> {
    let (option, value_name) = argument.split_once(' ')?;
    let (form, example) = if value_name == "<HOST:PORT>" {
        let port = value.rsplit(':').find(|port| port.parse::<u16>().is_ok());
        ("an address and a port".to_owned(), format!("127.0.0.1:{}", port.unwrap_or("8080")))
    } else {
        let (form, number) = suggest_number(value_name, value)?;
        (form, number.to_string())
    };
    Some(format!("write {form}, as in `{option} {example}`"))
}

/// The form of the numbers that an option takes, and the number that `value` probably means.
fn suggest_number(value_name: &str, value: &str) -> Option<(String, u64)> {
    let digit_count = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (digits, unit) = value.split_at(digit_count);
    if unit.is_empty() && !matches!(value, "" | "0") {
        return None;
    }
    let find_unit =
        |name| TIME_UNITS.iter().find(|(other, _)| *other == name).map(|(_, size)| *size);
    let (form, factors) = match find_unit(value_name) {
        Some(option_unit) => {
            let unit_name = value_name.trim_matches(['<', '>']).to_lowercase();
            let factors = find_unit(unit).map(|value_unit| (value_unit, option_unit));
            (format!("a whole number of {unit_name}"), factors)
        }
        None if value_name == "<N>" => {
            ("a whole number".to_owned(), (unit == "k").then_some((1000, 1)))
        }
        None => return None,
    };
    if value == "0" {
        return Some(("at least 1".to_owned(), 1));
    }
    let number = match digits.parse::<u64>().ok().zip(factors) {
        Some((number, (value_unit, option_unit))) => {
            number.saturating_mul(value_unit).div_ceil(option_unit).max(1)
        }
        None => 10,
    };
    Some((form, number))
}

/// The help for a file that is written after the format of a report.
fn suggest_report(file: &str, arguments: &[OsString]) -> Option<String> {
    let arguments: Vec<_> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let mut words = arguments.windows(3);
    let words = words.find(|words| words[0] == "--out" && words[2] == file)?;
    Some(format!("write `--out {}={file}`", words[1]))
}

fn context_text(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// The help in the row of the table that has `word`. Dashes between the parts of an option are ignored.
fn find_help(word: &str) -> Option<&'static str> {
    let is_option = word.starts_with("--");
    let without_dashes = word.replace('-', "");
    let matches_word = |other: &str| {
        other == word
            || is_option && other.starts_with("--") && other.replace('-', "") == without_dashes
    };
    let mut rows = TABLE.lines().filter_map(|line| line.split_once(" | "));
    rows.find(|(words, _)| words.split(' ').any(matches_word)).map(|(_, help)| help)
}

/// True if `argument` is a file or folder, or is named like a manifest.
fn looks_like_manifest(argument: &str) -> bool {
    Path::new(argument).exists() || super::saved::is_yaml(Path::new(argument))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::{CommandFactory as _, Parser as _};

    fn suggest_help(line: &str) -> Option<String> {
        let arguments: Vec<_> = line.split(' ').map(OsString::from).collect();
        explain_argument_error(&Cli::try_parse_from(&arguments).unwrap_err(), &arguments)
    }

    #[test]
    fn words_of_other_tools_get_help() {
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
            (
                "undrift plan m --concurrency many",
                Some("write a whole number, as in `--concurrency 10`"),
            ),
            (
                "undrift plan --deadline 5k",
                Some("write a whole number of seconds, as in `--deadline 10`"),
            ),
            ("undrift plan --limit 10s", Some("write a whole number, as in `--limit 10`")),
            (
                "undrift plan --deadline 5m",
                Some("write a whole number of seconds, as in `--deadline 300`"),
            ),
            (
                "undrift plan --max-requests 1k",
                Some("write a whole number, as in `--max-requests 1000`"),
            ),
            ("undrift plan --limit 0", Some("write at least 1, as in `--limit 1`")),
            ("undrift plan --concurrency 0", Some("write at least 1, as in `--concurrency 1`")),
            ("undrift plan --deadline 99999999999999999999", None),
            (
                "undrift sandbox --listen 8080",
                Some("write an address and a port, as in `--listen 127.0.0.1:8080`"),
            ),
            ("undrift plan m --out html plan.html", Some("write `--out html=plan.html`")),
            ("undrift plan --sandbox --live f", Some("leave one of them out")),
            (
                "undrift plan a.yaml b.yaml",
                Some("name one folder, which holds the others, or run the command for each"),
            ),
            ("undrift plan --dryrun", Some("run `undrift plan`, which only reads")),
            (
                "undrift sandbox --port 8080",
                Some("pass `--listen 127.0.0.1:8080` to `undrift sandbox`"),
            ),
            ("undrift plan diff --unheard", Some("`undrift plan --help` lists the options")),
            ("undrift plan diff --limt 3", None),
            ("undrift chekc m", None),
        ] {
            assert_eq!(suggest_help(line).as_deref(), help, "{line}");
        }
    }

    #[test]
    fn no_word_of_the_table_is_a_command() {
        let command = Cli::command();
        let lines = TABLE.lines().map(|line| line.split_once(" | ").unwrap().0);
        let words: Vec<_> = lines.flat_map(|words| words.split(' ')).collect();
        for (index, word) in words.iter().enumerate() {
            assert!(command.find_subcommand(word).is_none(), "{word}");
            assert!(!words[..index].contains(word), "{word} has two lines");
        }
    }
}
