//! `undrift snapshot`: saves the data that plans read from the service in one file, without secrets.

use std::{fs, io::BufWriter, path::PathBuf};

use super::{
    AccessArgs, CommandError, CommandResult, Exit, ManifestFolder, Progress, RunContext,
    SessionArgs, SessionBuilder, SessionSource, cannot_write, reports::write_with,
};
use crate::{field::Scope, text::count};

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
    session.plan(cx).await?;
    // The parts that the plan needs but that could not be read, with reasons.
    let failed_reads = recorder.failed_reads();
    if args.all_sections {
        for only_nested in [false, true] {
            let requests = recorder.unread_section_requests(&session.desired, only_nested);
            let progress = Progress::for_requests(requests.len(), recorder.client(), &cx.output);
            recorder.fetch_all(requests, || progress.count_step("sections")).await?;
        }
    }
    let (snapshot, request_count) = (recorder.finish(), recorder.client().request_count());
    write_with(&args.output, |file| snapshot.write(BufWriter::new(file)))
        .map_err(|error| cannot_write(&args.output, &error))?;
    let fold_key = |(subject, reason): &(String, String)| {
        (subject.split(' ').next().map(str::to_owned), reason.clone())
    };
    let format_line = |(subject, reason): &(String, String)| {
        format!("warning: could not read {subject}: {reason}")
    };
    cx.output
        .eprint_lines(&failed_reads, "object", fold_key, format_line, |(what, _)| what.clone());
    let counts = snapshot.contents.container_counts();
    let [groups, projects] = [Scope::Group, Scope::Project]
        .map(|scope| count(counts.get(&scope).copied().unwrap_or(0), scope.noun()));
    let requests = count(request_count, "request");
    let file = args.output.display();
    cx.output.print(&format!("wrote `{file}`: {groups}, {projects} ({requests})\n"))?;
    Ok(Exit::Incomplete.only_if(!failed_reads.is_empty()))
}
