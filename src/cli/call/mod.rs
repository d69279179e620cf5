//! `undrift call`: calls any operation of the service, after checking it against the table.
//!
//! [`arguments`] turns arguments into a request, without IO; [`help`] prints the table. All pages
//! of a list are read, unless one page is requested. If the service refuses a request, the exit
//! code is 7 if a permission is missing. Otherwise it is 10 for a read and 6 for a write. The exit
//! code is also 6 if the outcome of a write is unknown.

mod arguments;
mod help;

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use clap::CommandFactory as _;

use super::{Cli, CommandError, CommandResult, ConnectArgs, Exit, Result, RunContext};
use crate::{
    api::{ApiError, ReadClient, WriteClient},
    catalogue::operations,
    operation::{self, AnyOp, Op, Operation, Read, Request, Write},
    page::EntryKeys,
    report::{KeyMeaning, RedactedValue, json::escape_unsafe},
    secret::{Secrets, judge},
    text::{MASK, escape, nearest, snake_case},
    value::{Json, Object, Value},
};

/// The options of `call`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("../help/call.txt"), disable_help_flag = true)]
pub(super) struct Args {
    /// The operation; `--list` shows all of them
    #[arg(required_unless_present_any = ["list", "help"])]
    operation: Option<String>,
    /// Arguments: `name=text`, `name=@env:NAME` or `name=@file:PATH`, `name[key]=value`
    #[arg(value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// List the operations
    #[arg(long, conflicts_with = "operation")]
    list: bool,
    /// Print help; after an operation, its parameters
    #[arg(short, long)]
    help: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Read this page of a list, instead of all pages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    page: Option<u32>,
    /// Number of objects on the page, at most 100
    #[arg(long, value_name = "N", requires = "page", value_parser = clap::value_parser!(u32).range(1..=100))]
    per_page: Option<u32>,
    /// Format of the response
    #[arg(
        long,
        alias = "output",
        value_name = "FORMAT",
        default_value = "json",
        help_heading = "Output"
    )]
    out: ResponseFormat,
    /// Show the values of variables, tokens of runners and credentials in addresses
    #[arg(long, help_heading = "Output")]
    show_secrets: bool,
    /// The configuration, instead of undrift.yaml in the current folder or above it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// The format of the response on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ResponseFormat {
    /// One JSON document
    Json,
    /// JSON lines: one object per line
    Ndjson,
}

/// Runs the command.
pub(super) async fn run(args: Args, cx: &RunContext) -> CommandResult {
    let Some(id) = args.operation.as_deref().filter(|_| !args.list) else {
        let text = if args.list { help::list_text() } else { general_help() };
        return cx.output.print(&text).map(|()| Exit::Success);
    };
    let operation = find_operation(id)?;
    if args.help {
        return cx.output.print(&help::operation_text(operation)).map(|()| Exit::Success);
    }
    match operation {
        AnyOp::Read(operation) => send_read(operation, &args, cx).await,
        AnyOp::Write(operation) => send_write(operation, &args, cx).await,
    }
}

fn general_help() -> String {
    let mut command = Cli::command();
    command.build();
    command
        .find_subcommand_mut("call")
        .map_or_else(String::new, |call| call.render_help().to_string())
}

fn find_operation(id: &str) -> Result<AnyOp> {
    operations::find_operation(id).ok_or_else(|| {
        let failure = CommandError::usage(format!("unknown operation `{id}`"));
        match nearest_id(id) {
            Some(similar_id) => failure.help(format!("did you mean `{similar_id}`?")),
            None => failure.help("`undrift call --list` lists all of them"),
        }
    })
}

/// Each row lists words with the same meaning. Ids of operations use the first word of a row.
const SYNONYMS: [&str; 6] = [
    "create add new post",
    "edit update set modify change patch put",
    "delete remove destroy rm",
    "get show read view",
    "list index ls",
    "protected protect",
];

/// The words of an operation id, each replaced by the first of its [`SYNONYMS`], in any order.
fn id_words(id: &str) -> BTreeSet<String> {
    let id = snake_case(id);
    let words =
        id.split('_').map(|word| if word == "access" { word } else { word.trim_end_matches('s') });
    let first_words = words.map(|word| {
        let mut rows = SYNONYMS.iter().map(|row| row.split(' '));
        rows.find_map(|mut row| row.clone().any(|other| other == word).then(|| row.next())?)
            .unwrap_or(word)
    });
    let mut words: BTreeSet<_> = first_words.map(str::to_owned).collect();
    if words.contains("protected")
        && !SYNONYMS[..5]
            .iter()
            .any(|row| words.contains(row.split(' ').next().unwrap_or_default()))
    {
        words.insert("create".to_owned());
    }
    words
}

/// The operation id that `requested_id` most likely means. This is an id that differs in at most one
/// word, or else the id with the most similar text. Ids of operations on projects omit the word
/// `project`, so this word counts less.
fn nearest_id(requested_id: &str) -> Option<&'static str> {
    const MAX_DIFFERENCE: usize = 2;
    let ids = || operations::all_operations().map(|operation| operation.row().id);
    let requested_words = id_words(requested_id);
    let rated_ids = ids().map(|id| {
        let words = id_words(id);
        let differences = words.symmetric_difference(&requested_words);
        (differences.map(|word| if word == "project" { 1 } else { 2 }).sum::<usize>(), id)
    });
    let closest = rated_ids.min_by_key(|(difference, _)| *difference);
    closest
        .filter(|(difference, _)| *difference <= MAX_DIFFERENCE)
        .map(|(_, id)| id)
        .or_else(|| nearest(requested_id, ids()))
}

/// Parses the arguments into a request, and prints all their faults.
fn parse_request<E: Copy>(operation: Op<E>, args: &Args, cx: &RunContext) -> Result<Request<E>> {
    let page = args.page.map(|page| format!("page={page}"));
    let per_page = args.per_page.map(|per_page| format!("per_page={per_page}"));
    let all_arguments: Vec<_> =
        args.arguments.iter().cloned().chain(page).chain(per_page).collect();
    for warning in arguments::deprecation_warnings(operation.row(), &all_arguments) {
        cx.output.eprint(&format!("warning: {warning}\n"));
    }
    arguments::make_request(operation, &all_arguments).map_err(|faults| {
        faults.iter().for_each(|fault| cx.output.eprint_failure(fault));
        CommandError::already_reported(Exit::Usage)
    })
}

/// Parses the arguments, finds the service and the secrets, and replaces the names of external hosts as
/// configured in `service.import_hosts`.
///
/// # Errors
/// If any of these is wrong or missing. Nothing is sent in this case.
async fn prepare_call<E: Copy>(
    operation: Op<E>,
    args: &Args,
    cx: &RunContext,
) -> Result<(ReadClient, Request<E>)> {
    let request = parse_request(operation, args, cx)?;
    let (endpoint, config) =
        args.connect.find_endpoint_and_config(args.config.as_deref(), cx).await?;
    let hosts = config.service.import_hosts.names().into_iter();
    let request = hosts
        .fold(request, |request, (host, service_name)| request.rename_segment(host, &service_name));
    let mut secrets = endpoint.command_line_secrets();
    secrets.resolve(arguments::secret_references(&request));
    if let Some(failure) = unusable_value_failure(&request, &secrets, endpoint.is_embedded) {
        return Err(failure);
    }
    let client = args.connect.create_client(&endpoint, &config, Arc::new(secrets), &cx.output)?;
    Ok((client, request))
}

/// The failure if a secret or a file of the request cannot be used. Nothing is sent in this case.
fn unusable_value_failure<E>(
    request: &Request<E>,
    secrets: &Secrets,
    is_sandbox: bool,
) -> Option<CommandError> {
    let unresolved_reason =
        secrets.unresolved_references().next().map(|(_, reason)| reason.clone());
    let missing_reason = unresolved_reason.or_else(|| {
        request.body_fields()?.values().find_map(|value| match value {
            Value::File(path) => secrets.read_file(path).err(),
            Value::Plain(_) | Value::Secret(_) => None,
        })
    });
    missing_reason
        .map(|reason| CommandError { help: reason.help(is_sandbox), ..CommandError::usage(reason) })
}

async fn send_read(operation: Op<Read>, args: &Args, cx: &RunContext) -> CommandResult {
    let (client, request) = prepare_call(operation, args, cx).await?;
    let operation_row = request.operation;
    let is_list = operation_row.response == operation::ResponseBody::List
        && !request.has_query_parameter("page");
    let response = if !is_list {
        let response = client.get_optional(request, &[]).await;
        response.map(|response| response.map_or(Json::Null, |response| response.body))
    } else if operation_row.filtered_after_paging {
        let objects = client.list_visible(request, EntryKeys::with_id(&[])).await;
        objects.map(|objects| objects.into_iter().map(Json::Object).collect())
    } else {
        let objects = client.list(request).await;
        objects.map(|objects| objects.into_vec().into_iter().map(Json::Object).collect())
    };
    print_response(
        operation_row,
        response.map_err(|error| call_failure(error, Exit::Incomplete))?,
        args,
        cx,
    )?;
    Ok(Exit::Success)
}

async fn send_write(operation: Op<Write>, args: &Args, cx: &RunContext) -> CommandResult {
    let (client, request) = prepare_call(operation, args, cx).await?;
    let operation_row = request.operation;
    if !args.yes && !cx.output.confirm(&format!("send `{}`", escape(&request.to_string())))? {
        cx.output.eprint("nothing was changed\n");
        return Ok(Exit::Interrupted);
    }
    let response = WriteClient::new(client).send(request).await;
    let response = response.map_err(|error| call_failure(error, Exit::Unfinished))?;
    match response.status {
        304 => cx.output.eprint("nothing was changed: already done\n"),
        404 => cx.output.eprint("nothing was changed: already absent\n"),
        _ if response.body.is_null() => cx.output.eprint("done\n"),
        _ => print_response(operation_row, response.body, args, cx)?,
    }
    Ok(Exit::Success)
}

/// The failure of a call. `refusal_exit` is the exit code if the service refuses the request, unless
/// a permission is missing.
fn call_failure(error: ApiError, refusal_exit: Exit) -> CommandError {
    let is_in_doubt = error.in_doubt_since().is_some();
    let exit = Exit::from_api_error(&error, refusal_exit);
    let failure = CommandError { exit, ..CommandError::from(error) };
    if is_in_doubt {
        failure.help("look whether it was carried out before you send it again")
    } else {
        failure
    }
}

/// Writes the body of a response to stdout.
fn print_response(
    operation_row: &Operation,
    mut response: Json,
    args: &Args,
    cx: &RunContext,
) -> Result<()> {
    if !args.show_secrets {
        mask_response(operation_row, &mut response);
    }
    let secrets = cx.output.secrets();
    let visible_secrets = args.show_secrets.then(|| secrets.with_visible_credentials());
    let secrets = visible_secrets.as_ref().unwrap_or(&secrets);
    let documents = match (args.out, &response) {
        (ResponseFormat::Ndjson, Json::Array(items)) => items.as_slice(),
        (_, response) => std::slice::from_ref(response),
    };
    let mut text = String::new();
    for document in documents {
        // The keys are field names of the service, never data.
        let line = RedactedValue::new(document, KeyMeaning::Words, secrets);
        let line = match args.out {
            ResponseFormat::Ndjson => serde_json::to_string(&line),
            ResponseFormat::Json => serde_json::to_string_pretty(&line),
        };
        text += &line.map_err(|error| CommandError::new(Exit::Internal, error))?;
        text += "\n";
    }
    cx.output.print_data(&escape_unsafe(&text))
}

/// Hides the secrets in the body of a response: values of variables, tokens of runners, and
/// credentials in URLs that the service calls or mirrors.
fn mask_response(operation_row: &Operation, response: &mut Json) {
    match response {
        Json::Array(items) => items.iter_mut().for_each(|item| mask_response(operation_row, item)),
        Json::Object(object) => mask_fields(operation_row, object),
        _ => {}
    }
}

fn mask_fields(operation_row: &Operation, object: &mut Object) {
    let segments: Vec<_> = operation_row.path.split('/').collect();
    // The response for a pipeline schedule contains the variables of the schedule.
    let is_variable = segments.contains(&"variables") || object.contains_key("variable_type");
    for (name, value) in object.iter_mut() {
        let masked_text = match (name.as_str(), &*value) {
            ("runners_token", Json::String(_)) => Some(MASK.to_owned()),
            ("value", Json::String(_)) if is_variable => Some(MASK.to_owned()),
            ("url", Json::String(url)) if segments.contains(&"hooks") => {
                Some(judge::mask_url(url).into_owned())
            }
            ("import_url", Json::String(url)) => Some(judge::mask_url(url).into_owned()),
            _ => None,
        };
        match masked_text {
            Some(text) => *value = text.into(),
            None => mask_response(operation_row, value),
        }
    }
}

#[cfg(test)]
mod tests;
