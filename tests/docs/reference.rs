//! The generated pages of the reference, except those of fields.rs and tests/tables/operations.rs.

use std::{collections::BTreeSet, process::Command};

use undrift::{catalogue::all_sections, diagnostic::codes::CODES, manifest::schema};

use crate::{assert_current, fields::table};

/// The output of undrift for `arguments`.
pub(crate) fn printed(arguments: &[&str]) -> String {
    let mut undrift = Command::new(env!("CARGO_BIN_EXE_undrift"));
    let output = undrift.args(arguments).env_clear().output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The names of all commands, as the help lists them.
pub(crate) fn commands() -> Vec<String> {
    let help = printed(&["--help"]);
    let (_, rest) = help.split_once("Commands:\n").unwrap();
    let (list, _) = rest.split_once("\n\n").unwrap();
    // The help of a command continues in lines with more indentation.
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

const COMMANDS: &str = "\
# Commands

What `undrift --help` and `undrift help COMMAND` print.

This page is generated: `UPDATE_SNAPSHOTS=1 cargo test --test docs` writes it again.
";

#[test]
fn the_page_of_commands_is_up_to_date() {
    let mut page = COMMANDS.to_owned() + "\n```text\n" + &printed(&["--help"]) + "```\n";
    for name in commands().iter().filter(|name| *name != "help") {
        page += &format!("\n## `undrift {name}`\n\n```text\n{}```\n", printed(&["help", name]));
    }
    assert_current("docs/reference/commands.md", &page);
}

const CONFIGURATION: &str = "\
# undrift.yaml

An optional file that configures the run. undrift searches it in the given folder and those above, up to the root of
the repository. Its folder is the root of the manifests: all documents below it are loaded. The given folder or file
selects the groups and projects of the run; YAML files of other tools are errors there, and are skipped elsewhere. It
cannot choose the service, because anyone who edits a manifest could then send the token elsewhere.

This page is generated: `UPDATE_SNAPSHOTS=1 cargo test --test docs` writes it again.

";

#[test]
fn the_page_of_the_configuration_is_up_to_date() {
    assert_current(
        "docs/reference/configuration.md",
        &(CONFIGURATION.to_owned() + &table("key", &schema::config_schema())),
    );
}

/// The long options of all commands.
fn options() -> BTreeSet<String> {
    let pages = commands().into_iter().map(|name| printed(&["help", &name]));
    let texts: Vec<_> = pages.chain([printed(&["--help"])]).collect();
    let lines = texts.iter().flat_map(|text| text.lines()).map(str::trim_start);
    let named = lines.filter(|line| line.starts_with('-'));
    let options = named.filter_map(|line| line.split_once("--"));
    let end = |c: char| !(c.is_ascii_lowercase() || c == '-');
    options.map(|(_, rest)| rest.split(end).next().unwrap().to_owned()).collect()
}

/// The keys of documents, entries and values that the API does not have.
fn own_keys() -> BTreeSet<String> {
    let of_documents = schema::document_names().into_iter().filter(|name| !name.contains('.'));
    let is_kind = |name: &String| name.starts_with(|c: char| c.is_ascii_uppercase());
    let is_section = |name: &String| all_sections().any(|section| section.section == *name);
    of_documents.filter(|name| !is_kind(name) && !is_section(name)).collect()
}

/// The number of concepts, as a sentence for the page of concepts. Mention increases in the
/// changelog.
fn concept_counts() -> String {
    let kinds = schema::DocumentKind::names().len();
    let configuration = schema::config_schema()["properties"].as_object().unwrap().len();
    format!(
        "Counted: {kinds} kinds of documents, {} keys that the API does not have, {configuration} keys of \
         `undrift.yaml`, {} commands, {} long options, {} codes of messages.\n",
        own_keys().len(),
        commands().iter().filter(|name| *name != "help").count(),
        options().len(),
        CODES.len(),
    )
}

#[test]
fn the_page_of_concepts_counts_what_there_is() {
    let name = "docs/reference/concepts.md";
    let page = crate::file(name);
    let (words, _) = page.rsplit_once("\n\n").unwrap();
    assert_current(name, &format!("{words}\n\n{}", concept_counts()));
    for word in own_keys().into_iter().chain(commands()) {
        let is_there = [format!("`{word}`"), format!("`{word}:")].iter().any(|w| page.contains(w));
        let is_old = word == "undeclared_projects";
        assert!(is_there || is_old || word == "help", "`{word}` is not on the page");
    }
}

const MESSAGES: &str = "\
# Messages

The codes of messages, such as `error[masked-value]`. `undrift explain CODE` prints the same.

This page is generated: `UPDATE_SNAPSHOTS=1 cargo test --test docs` writes it again.
";

#[test]
fn the_page_of_messages_is_up_to_date() {
    let mut page = MESSAGES.to_owned();
    for code in CODES {
        page += &format!("\n## `{}`\n\n{}", code.name, code.page);
    }
    assert_current("docs/reference/messages.md", &page);
}
