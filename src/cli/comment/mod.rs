//! `undrift comment`: writes a report as a comment of a merge request, or updates that comment.
//!
//! Variables of the job only name the merge request, and are checked before anything is sent.
//! Anybody may have written the report file, so its content is checked too.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    CommandError, CommandResult, ConnectArgs, Endpoint, Environment, Exit, Result, RunContext,
    input,
};
use crate::{
    api::WriteClient,
    comment::{self, Comment, CommentError, CommentOutcome, MAX_BODY_CHARS, MergeRequestRef},
    report::marker::Marker,
    secret::{JOB_TOKEN_VARIABLE, Secrets},
    text::{count, escape},
};

/// The variables with the project of the merge request, in order of precedence; `--project` takes
/// precedence over them. The job of a merge request may run in the project of a fork, which
/// `CI_PROJECT_ID` then names.
const PROJECT_VARIABLES: [&str; 2] = ["CI_MERGE_REQUEST_PROJECT_ID", "CI_PROJECT_ID"];
/// The variable with the number of the merge request; `--merge-request` takes precedence over it.
const NUMBER_VARIABLE: &str = "CI_MERGE_REQUEST_IID";
/// The maximum size of a report; a character of UTF-8 has at most four bytes.
const MAX_REPORT_BYTES: u64 = 4 * MAX_BODY_CHARS as u64;

const TOKEN_HELP: &str = "use a project access token with the role Reporter and the scope `api`";

/// The options of `comment`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("../help/comment.txt"))]
pub(super) struct Args {
    /// The report, in Markdown, as undrift wrote it; several with the same marker become one comment
    #[arg(long, value_name = "FILE", required = true)]
    report: Vec<PathBuf>,
    /// Project of the merge request, by path or id [env: CI_MERGE_REQUEST_PROJECT_ID, CI_PROJECT_ID]
    #[arg(long, value_name = "PATH", requires = "merge_request")]
    project: Option<String>,
    /// Number of the merge request [env: CI_MERGE_REQUEST_IID]
    #[arg(long, value_name = "IID", value_parser = clap::value_parser!(u64).range(1..))]
    merge_request: Option<u64>,
    /// The configuration, instead of undrift.yaml in the current folder or above it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Runs the command.
pub(super) async fn run(args: Args, cx: &RunContext) -> CommandResult {
    let target = args.target(&cx.env)?;
    let (marker, texts) = read_reports(&args.report)?;
    let (endpoint, config) =
        args.connect.find_endpoint_and_config(args.config.as_deref(), cx).await?;
    let secrets = Arc::new(endpoint.command_line_secrets());
    let client =
        args.connect.create_client(&endpoint, &config, Arc::clone(&secrets), &cx.output)?;
    refuse_token_misuse(&args.report, &texts, &endpoint, &secrets, &cx.env)?;
    let observer = args.connect.connect_observer(client, &endpoint.service, &cx.env).await?;
    let writer = WriteClient::new(observer.client().clone());
    let body = texts.concat();
    let result = comment::put_comment(&writer, observer.caller().id, &target, &marker, &body).await;
    let comment = result.map_err(|error| comment_failure(error, &target))?;
    cx.output.eprint(&remarks_text(&comment));
    cx.output.print(&summary_text(&comment, &target)).map(|()| Exit::Success)
}

impl Args {
    /// The merge request, from the options or else from the variables of the job.
    fn target(&self, env: &Environment) -> Result<MergeRequestRef> {
        let merge_request = match self.merge_request {
            Some(number) => Some(number),
            None => read_job_number(env, &[NUMBER_VARIABLE])?,
        };
        let project = match &self.project {
            Some(project) if project.trim().is_empty() => {
                return Err(CommandError::usage("`--project` is empty"));
            }
            Some(project) => Some(project.clone()),
            None => read_job_number(env, &PROJECT_VARIABLES)?.map(|id| id.to_string()),
        };
        match (project, merge_request) {
            (Some(project), Some(merge_request)) => Ok(MergeRequestRef { project, merge_request }),
            (_, None) => Err(CommandError::usage(format!(
                "no merge request given: {NUMBER_VARIABLE} is not set"
            ))
            .help("run it in a job of a merge request, or pass `--project` and `--merge-request`")),
            (None, _) => Err(CommandError::usage("no project given").help("pass `--project`")),
        }
    }
}

/// The number in the first of the variables `names` that is set. Anybody may have set these
/// variables, so the value is checked.
fn read_job_number(env: &Environment, names: &[&str]) -> Result<Option<u64>> {
    let Some((name, value)) = env.first_set(names) else { return Ok(None) };
    let is_number = value.chars().all(|c| c.is_ascii_digit());
    let number = value.parse().ok().filter(|number| is_number && *number > 0);
    number.map(Some).ok_or_else(|| {
        let shortened: String = value.chars().take(40).collect();
        CommandError::usage(format!("{name} must be a number from 1, not `{}`", escape(&shortened)))
            .help("pass `--project` and `--merge-request` instead")
    })
}

/// The marker of the reports in `paths`, and the text of each. The joined texts are the comment.
fn read_reports(paths: &[PathBuf]) -> Result<(Marker, Vec<String>)> {
    let [first_path, other_paths @ ..] = paths else {
        return Err(CommandError::usage("no report given"));
    };
    let (marker, text) = read_report(first_path)?;
    let mut texts = vec![text];
    for path in other_paths {
        let (other_marker, text) = read_report(path)?;
        if other_marker != marker {
            let help = "make all of them with the same `--marker`";
            let failure = CommandError::usage(format!("`{}` has another marker", path.display()));
            return Err(failure.help(help));
        }
        let text = text.split_once('\n').map_or("", |(_, text)| text);
        texts.push(format!("\n{text}"));
    }
    if texts.iter().map(|text| text.chars().count()).sum::<usize>() > MAX_BODY_CHARS {
        return Err(too_long_failure("the reports together"));
    }
    Ok((marker, texts))
}

/// The failure if the text called `subject` is too long for a comment.
fn too_long_failure(subject: &str) -> CommandError {
    CommandError::usage(format!(
        "{subject}: more than {MAX_BODY_CHARS} characters, the maximum of a comment"
    ))
}

/// The marker and the text of the report in `path`.
fn read_report(path: &Path) -> Result<(Marker, String)> {
    let shown_path = path.display();
    let bytes = input::read_bytes(path, MAX_REPORT_BYTES)
        .map_err(|error| input::read_failure(path, &error))?;
    if bytes.len() as u64 > MAX_REPORT_BYTES {
        return Err(too_long_failure(&format!("`{shown_path}`")));
    }
    let body = String::from_utf8(bytes)
        .map_err(|_| CommandError::usage(format!("`{shown_path}` is not UTF-8 text")))?;
    if body.chars().count() > MAX_BODY_CHARS {
        return Err(too_long_failure(&format!("`{shown_path}`")));
    }
    let Some(marker) = Marker::from_text(&body) else {
        let failure = CommandError::usage(format!(
            "`{shown_path}` is not a report for a comment: its first line is not a marker"
        ));
        return Err(failure.help("make it with `undrift plan --out markdown=FILE`"));
    };
    if let Some(line) = body.lines().position(is_quick_action) {
        let line = line + 1;
        let failure = CommandError::usage(format!(
            "`{shown_path}`:{line}: a line must not begin with a slash: the service would carry it out as a command"
        ));
        return Err(failure);
    }
    Ok((marker, body))
}

/// True if the service may execute the line as a quick action, such as `/merge`.
fn is_quick_action(line: &str) -> bool {
    line.strip_prefix('/').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Refuses a report that contains the token. Also refuses the token of a job, because that token
/// cannot write comments.
fn refuse_token_misuse(
    paths: &[PathBuf],
    texts: &[String],
    endpoint: &Endpoint,
    secrets: &Secrets,
    env: &Environment,
) -> Result<()> {
    let mut reports = paths.iter().zip(texts);
    if let Some((path, _)) = reports.find(|(_, text)| secrets.redact_values(text) != **text) {
        let path = path.display();
        return Err(CommandError::usage(format!(
            "`{path}` contains the token, so the report is not sent"
        )));
    }
    if env.get(JOB_TOKEN_VARIABLE) == Some(endpoint.token.expose()) {
        let error = anyhow::anyhow!("the job's own token (CI_JOB_TOKEN) may not write comments");
        return Err(CommandError::new(Exit::Denied, error).help(TOKEN_HELP));
    }
    Ok(())
}

/// The failure if the comment could not be written.
fn comment_failure(error: CommentError, target: &MergeRequestRef) -> CommandError {
    let api_error = error.error();
    let is_in_doubt = api_error.in_doubt_since().is_some();
    let refusal_exit = match &error {
        CommentError::MergeRequest(error) if error.is_not_found() => Exit::Usage,
        CommentError::Write { .. } => Exit::Unfinished,
        _ => Exit::Incomplete,
    };
    let exit = Exit::from_api_error(api_error, refusal_exit);
    let help = match &error {
        _ if is_in_doubt => Some("the comment may have been written; run the command again: it looks for the comment first".to_owned()),
        CommentError::MergeRequest(error) if error.is_not_found() => {
            Some("check the project and the number; the service answers 404 if the token may not see the merge request".to_owned())
        }
        CommentError::Write { discussion_locked: true, .. } if api_error.is_forbidden() => {
            Some("the discussion of the merge request is locked: only members of the project may comment".to_owned())
        }
        _ if api_error.is_unauthorized() || api_error.is_forbidden() => {
            Some(format!("{TOKEN_HELP}; in an archived project nobody may comment"))
        }
        _ => api_error.hint().map(str::to_owned),
    };
    let error = anyhow::Error::new(error).context(escape(&target.to_string()).to_string());
    CommandError { help, ..CommandError::new(exit, error) }
}

/// The result of the command, as text.
fn summary_text(comment: &Comment, target: &MergeRequestRef) -> String {
    let result_text = match comment.outcome {
        CommentOutcome::Written => "comment written",
        CommentOutcome::Edited => "comment updated",
        CommentOutcome::Unchanged => "comment unchanged",
    };
    format!("{result_text}: note {} of {}\n", comment.note_id, escape(&target.to_string()))
}

/// Further remarks for the job's log.
fn remarks_text(comment: &Comment) -> String {
    let mut text = String::new();
    if !comment.duplicate_ids.is_empty() {
        let ids: Vec<_> = comment.duplicate_ids.iter().map(u64::to_string).collect();
        text += &format!(
            "warning: {} with the same marker: note {}; the oldest is kept up to date, delete the others\n",
            count(comment.duplicate_ids.len(), "more comment"),
            ids.join(", ")
        );
    }
    if matches!(comment.merge_request.state.as_str(), "closed" | "merged") {
        text += &format!("note: the merge request is {}\n", comment.merge_request.state);
    }
    text
}

#[cfg(test)]
mod tests;
