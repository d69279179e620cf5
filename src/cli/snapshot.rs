//! `undrift snapshot`: saves the data that plans read from the service in one file, without secrets.

use std::{collections::BTreeSet, fs, io::BufWriter, path::PathBuf};

use super::{
    AccessArgs, CommandError, CommandResult, Exit, ManifestFolder, Progress, RunContext,
    SessionArgs, SessionBuilder, SessionSource, reports::write_with, write_failure,
};
use crate::{diff::Incomplete, field::Scope, plan::Plan, report::model::common_cause, text::count};

/// The options of `snapshot`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("help/snapshot.txt"))]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) dir: ManifestFolder,
    /// File to write
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: PathBuf,
    /// Read all sections of each group and project, for branches that declare more sections
    #[arg(long)]
    all_sections: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// Runs the command.
pub(super) async fn run(args: Args, cx: &RunContext) -> CommandResult {
    let result = take_snapshot(&args, cx).await;
    if result.is_err() && fs::symlink_metadata(&args.output).is_ok_and(|old| old.is_file()) {
        // Remove an old snapshot, so that it is not mistaken for the snapshot of this run. If the
        // old file cannot be removed, the time in it still shows that it is old.
        let _ = fs::remove_file(&args.output);
    }
    result
}

/// Reads and saves the live state that the plan needs, and further data for plans of other
/// branches.
async fn take_snapshot(args: &Args, cx: &RunContext) -> CommandResult {
    let session_args = SessionArgs::with_selection(&args.dir, &args.access, Vec::new());
    let session = SessionBuilder {
        source: SessionSource::TakeSnapshot,
        ..SessionBuilder::new(&session_args)
    }
    .open(cx)
    .await?;
    let Some(recorder) = &session.recorder else {
        return Err(CommandError::new(Exit::Internal, anyhow::anyhow!("nothing is taken")));
    };
    recorder.fetch_extra(&session.desired).await?;
    let plan = session.plan(cx).await?;
    // The reads that failed, with reasons.
    let failed_reads = recorder.failed_reads();
    if args.all_sections {
        for only_nested in [false, true] {
            let requests = recorder.unread_section_requests(&session.desired, only_nested);
            let progress = Progress::for_requests(requests.len(), recorder.client(), &cx.output);
            recorder.fetch_all(requests, || progress.count_step("sections")).await?;
        }
    }
    let (snapshot, request_count) = (recorder.take_snapshot(), recorder.client().request_count());
    write_with(&args.output, |file| snapshot.write(BufWriter::new(file)))
        .map_err(|error| write_failure(&args.output, &error))?;
    let unread_parts = other_unread_parts(&plan, &failed_reads);
    let fold_key = |(subject, reason): &(String, String)| {
        (subject.split(' ').next().map(str::to_owned), reason.clone())
    };
    let format_line = |(subject, reason): &(String, String)| {
        format!("warning: could not read {subject}: {reason}")
    };
    cx.output.eprint_lines(&failed_reads, "object", fold_key, format_line, |(subject, _)| {
        subject.clone()
    });
    cx.output.eprint_lines(
        &unread_parts,
        "object",
        |part| common_cause(&part.reason, &part.address),
        |part| format!("warning: could not read {}: {}", part.address, part.reason),
        |part| part.address.to_string(),
    );
    let counts = snapshot.contents.container_counts();
    let [groups, projects] = [Scope::Group, Scope::Project]
        .map(|scope| count(counts.get(&scope).copied().unwrap_or(0), scope.noun()));
    let requests = count(request_count, "request");
    let file = args.output.display();
    cx.output.print(&format!("wrote `{file}`: {groups}, {projects} ({requests})\n"))?;
    Ok(Exit::Incomplete.only_if(!failed_reads.is_empty() || !unread_parts.is_empty()))
}

/// The parts that `plan` could not read and that `failed_reads` does not contain. For example, a
/// 404 is not among `failed_reads`, because an object that is not found usually does not exist.
fn other_unread_parts<'p>(
    plan: &'p Plan,
    failed_reads: &[(String, String)],
) -> Vec<&'p Incomplete> {
    // A subject is an operation or a scope, then the path in backquotes.
    let named_reads = failed_reads.iter().filter_map(|(subject, _)| {
        let (operation_or_scope, path) = (subject.split(' ').next()?, subject.split('`').nth(1)?);
        Some((operation_or_scope, path.to_lowercase()))
    });
    let named_reads: BTreeSet<_> = named_reads.collect();
    let is_named = |part: &&Incomplete| {
        let path = part.address.path.to_lowercase();
        let operation = part.reason.operation.unwrap_or_default();
        let scope = operation.split('-').next().unwrap_or_default();
        named_reads.contains(&(operation, path.clone())) || named_reads.contains(&(scope, path))
    };
    plan.incomplete.iter().filter(|part| !is_named(part)).collect()
}
