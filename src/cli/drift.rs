//! `undrift drift`: whether the service is still as declared; for schedules.

use super::{
    Context,
    exit::{Exit, Outcome},
    output::ReportArgs,
    session::{ChangeArgs, Session, SessionArgs},
};
use crate::report::{
    Style,
    json::{Planned, Report, Sort},
    terminal::{self, Title},
};

/// The options of `drift`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    report: ReportArgs,
    /// Write out what would be folded or cut
    #[arg(long, help_heading = "Output")]
    full: bool,
}

/// Runs it.
pub(super) async fn run(args: Args, cx: &Context) -> Outcome {
    let session = Session::open(&args.session, &ChangeArgs::default(), cx).await?;
    let mut plan = session.plan(cx).await?;
    // Guards are about writing, which nobody is going to do.
    plan.refusals.clear();
    let exit = Exit::first_of([super::plan::blocked(&plan), Exit::Differences.when(!plan.steps.is_empty())]);
    let style = Style { full: args.full, ..cx.output.style };
    let text = || terminal::plan(&plan, &session.run, Title::Drift, style);
    let json = || Report::new(Sort::Drift, exit.code(), Planned::new(&session.run, &plan)).to_text();
    cx.output.report(&args.report, text, json)?;
    session.close().await;
    Ok(exit)
}
