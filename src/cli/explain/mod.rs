//! `undrift explain`: explains declarations, fields and codes.

mod address;

use super::{
    AccessArgs, CommandError, CommandResult, Exit, ManifestFolder, RunContext,
    exit::EXIT_CODES_HELP,
};
use crate::{
    desired::Guard,
    diagnostic::codes,
    manifest::{self, schema},
    report::terminal::explain,
    text::{alternatives, did_you_mean},
};

const ALLOW_ENV_HELP: &str = "Let manifests use only matching environment variables; may be repeated \
    [env: UNDRIFT_ALLOW_ENV]";

/// The options of `explain`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("../help/explain.txt"), mut_arg("allow_env", |arg| arg.help(ALLOW_ENV_HELP)))]
pub(super) struct Args {
    /// Address of something that is declared (PATH#SECTION/ENTRY/FIELD or a part of it), name of a
    /// field, section, kind or guard, key of `undrift.yaml`, code of a message, or exit code
    #[arg(value_name = "ADDRESS|FIELD|CODE")]
    subject: String,
    #[command(flatten)]
    pub(in crate::cli) dir: ManifestFolder,
    #[command(flatten)]
    access: AccessArgs,
}

/// Runs the command.
pub(super) async fn run(args: Args, cx: &RunContext) -> CommandResult {
    let subject = &args.subject;
    if subject.contains(['#', '/']) {
        return address::run(&args, cx).await;
    }
    let style = cx.output.style;
    let mut fields = schema::describe_name(subject);
    if let ([], [full_name]) = (&fields[..], &schema::find_full_names(subject)[..]) {
        fields = schema::describe_name(full_name);
    }
    let code_text = explain::explain_code(subject, style);
    let field_text = (!fields.is_empty()).then(|| explain::explain_fields(&fields, style));
    // An exit code is written as `exit code 4`, `exit 4` or `4`. A word may have several meanings, for
    // example a code and a field; all of them are explained.
    let number = subject.to_lowercase().replace([' ', '-'], "");
    let number = number.trim_start_matches("exit").trim_start_matches("code");
    let exit_text =
        number.parse().ok().and_then(Exit::from_code).map(|_| EXIT_CODES_HELP.to_owned());
    let texts: Vec<_> = code_text
        .into_iter()
        .chain(explain_guard(subject))
        .chain(field_text)
        .chain(exit_text)
        .collect();
    if !texts.is_empty() {
        cx.output.print(&texts.join("\n"))?;
        return Ok(Exit::Success);
    }
    // The path of a top-level group looks like any other word.
    let loaded = manifest::load(&args.dir, &cx.make_load_environment(&args.access.allow_env)?);
    let mut containers = loaded.desired.iter().flat_map(|desired| &desired.containers);
    if containers.any(|container| container.path.eq_ignore_ascii_case(subject)) {
        return address::run(&args, cx).await;
    }
    Err(unknown_name_failure(subject))
}

/// The explanation of the guard `name`.
fn explain_guard(name: &str) -> Option<String> {
    let schema = schemars::schema_for!(Guard).to_value();
    let guard = schema["oneOf"].as_array()?.iter().find(|guard| guard["const"] == name)?;
    let meaning = guard["description"].as_str()?.replace('\n', " ");
    let instruction = format!("`--ack {name}:ADDRESS` or a document with `kind: Acknowledge`");
    Some(format!("{name}, a guard: what it refuses needs {instruction}\n  {meaning}\n"))
}

/// The failure if `subject` has no meaning, with similar names.
fn unknown_name_failure(subject: &str) -> CommandError {
    const GENERAL_HELP: &str =
        "name a field such as `settings.merge_method`, or the code in the brackets of a message";
    let failure = CommandError::usage(format!("unknown name `{subject}`"));
    let candidates = schema::find_full_names(subject);
    if !candidates.is_empty() {
        return failure.help(format!("did you mean {}?", alternatives(&candidates)));
    }
    let names = schema::all_names();
    let codes = codes::CODES.iter().map(|code| code.name);
    let guards = Guard::ALL.map(|guard| guard.to_string());
    // The beginning of a field's name is nearest to the name of its section.
    let begun_names =
        names.iter().filter(|name| name.starts_with(subject) && subject.contains('.'));
    let begun_names: Vec<_> = begun_names.take(3).collect();
    if !begun_names.is_empty() {
        return failure.help(format!("did you mean {}?", alternatives(&begun_names)));
    }
    let last_segments = names.iter().filter_map(|name| Some(name.rsplit_once('.')?.1));
    let names = names.iter().map(String::as_str).chain(guards.iter().map(String::as_str));
    let suggestion = did_you_mean(subject, codes.chain(names).chain(last_segments));
    failure.help(suggestion.unwrap_or_else(|| GENERAL_HELP.to_owned()))
}
