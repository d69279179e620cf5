//! `undrift check`: checks everything that needs no service.

use super::{Exit, ManifestFolder, ReportArgs, ReportedExit, Result, RunContext};
use crate::{
    manifest,
    report::{CheckContent, ReportContent, ReportKind},
};

/// The options of `check`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("help/check.txt"))]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) dir: ManifestFolder,
    /// Let manifests use only matching environment variables; a name that starts with CI_ or
    /// GITLAB_ needs a GLOB that starts the same way; may be repeated [env: UNDRIFT_ALLOW_ENV]
    #[arg(long, value_name = "GLOB")]
    allow_env: Vec<String>,
    #[command(flatten)]
    pub(super) report: ReportArgs,
}

/// Runs the command.
pub(super) fn run(args: &Args, cx: &RunContext) -> Result<ReportedExit> {
    let mut loaded = manifest::load(&args.dir, &cx.make_load_environment(&args.allow_env)?);
    #[cfg(feature = "sandbox")]
    let seed_faults = super::embedded::check_seed_in_folder(&args.dir);
    #[cfg(not(feature = "sandbox"))]
    let seed_faults = crate::diagnostic::Diagnostics::default();
    if !seed_faults.is_empty() {
        loaded.desired = None;
        loaded.diagnostics.extend(seed_faults);
    }
    let (text, exit_code) = loaded.render_report(cx.output.style);
    let container_count = loaded.desired.as_ref().map_or(0, |desired| desired.containers.len());
    let checked = CheckContent::new(&loaded.diagnostics, container_count);
    let (content, exit) = (ReportContent::Check(&checked), Exit::Usage.only_if(exit_code != 0));
    Ok(cx.reports.finish(ReportKind::Check, exit, content, |sink| sink(&text), None))
}
