//! `undrift check`: everything that can be known without the service.

use std::path::PathBuf;

use super::{
    Context,
    exit::{Exit, Outcome},
    output::ReportArgs,
};
use crate::{
    manifest,
    report::json::{Checked, Report, Sort},
    secret::Secrets,
};

const EXAMPLES: &str = "Examples:
  undrift check
  undrift check manifests --out json=-";

/// The options of `check`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The manifests: a folder, or one file
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    report: ReportArgs,
}

/// Runs it.
pub(super) fn run(args: &Args, cx: &Context) -> Outcome {
    let (text, code) = manifest::check_report(&args.dir, cx.output.style.into());
    let json = || {
        let loaded = manifest::load(&args.dir);
        let projects = loaded.desired.as_ref().map_or(0, |desired| desired.projects.len());
        Report::new(Sort::Check, code, Checked::new(&loaded.diagnostics, projects)).to_text(&Secrets::default())
    };
    cx.output.report(&args.report, || text, json)?;
    Ok(Exit::Usage.when(code != 0))
}
