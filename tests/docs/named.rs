//! Commands, options and environment variables that pages mention exist.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{
    ci::{PARTS, PIPELINE},
    file, pages,
    reference::{commands, printed},
    root,
};

/// The code in `text`: what is between backticks.
fn code_spans(text: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut quoted = Vec::new();
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        if !fenced {
            quoted.extend(line.split('`').skip(1).step_by(2));
        }
    }
    quoted
}

/// The words in `text` that begin with `prefix`, up to the end of the name.
fn prefixed_words<'t>(text: &'t str, prefix: &str) -> Vec<&'t str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let words = text.split(|c: char| !is_name(c));
    words.filter(|word| word.starts_with(prefix) && word.len() > prefix.len()).collect()
}

/// The names in `text` that are neither one of `options` nor one of `variables`.
fn unknown_names(text: &str, options: &BTreeSet<String>, variables: &str) -> BTreeSet<String> {
    let commands = commands();
    let mut unknown = BTreeSet::new();
    for code in code_spans(text) {
        let words: Vec<_> = code.split_whitespace().collect();
        if let ["undrift", command, ..] = words[..]
            && command.chars().all(|c| c.is_ascii_lowercase())
            && !commands.iter().any(|name| name == command)
        {
            unknown.insert(format!("undrift {command}"));
        }
        let of_undrift = code.starts_with("--") || code.starts_with("undrift ");
        for option in prefixed_words(code, "--").into_iter().filter(|_| of_undrift) {
            if !options.contains(option) {
                unknown.insert(option.to_owned());
            }
        }
    }
    for variable in prefixed_words(text, "UNDRIFT_") {
        if !variables.contains(variable) {
            unknown.insert(variable.to_owned());
        }
    }
    unknown
}

/// The source of the program, and the pipeline with its own variables.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        text += &if path.is_dir() {
            sources(&path)
        } else {
            fs::read_to_string(&path).unwrap_or_default()
        };
    }
    text
}

#[test]
fn commands_and_options_named_in_pages_exist() {
    let help: String = commands().iter().map(|name| printed(&["help", name])).collect();
    let options = prefixed_words(&help, "--").into_iter().map(str::to_owned).collect();
    let variables = sources(&root().join("src"))
        + &sources(&root().join("crates"))
        + &file(PIPELINE)
        + &file(PARTS);
    let pages = pages().into_iter().filter(|page| !page.starts_with("docs/reference/"));
    let found: BTreeSet<_> = pages
        .chain(["README.md".to_owned()])
        .flat_map(|page| unknown_names(&file(&page), &options, &variables))
        .collect();
    assert!(found.is_empty(), "named and not there: {found:?}");
    let wrong =
        "`undrift paln`, `--gone`, `undrift plan --lost x`, UNDRIFT_NOTHING, `cargo --other`";
    let expected = ["--gone", "--lost", "UNDRIFT_NOTHING", "undrift paln"].map(str::to_owned);
    assert_eq!(unknown_names(wrong, &options, &variables), BTreeSet::from(expected));
}
