//! `undrift drift`: whether the service is still as declared; for schedules.

use super::{
    Context,
    exit::{Exit, Outcome},
    output::ReportArgs,
    session::{ChangeArgs, Session, SessionArgs},
};
use crate::report::{
    json::{Planned, Report, Sort},
    terminal::{self, Title},
};

const EXAMPLES: &str = "Examples:
  undrift drift manifests          exit code 2 if something differs
  undrift drift --only 'acme/**'";

/// The options of `drift`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Runs it.
pub(super) async fn run(args: Args, cx: &Context) -> Outcome {
    let session = Session::open(&args.session, &ChangeArgs::default(), cx).await?;
    let mut plan = session.plan(cx).await?;
    // Guards are about writing, which nobody is going to do.
    plan.refusals.clear();
    let exit = Exit::first_of([super::plan::blocked(&plan), Exit::Differences.when(!plan.steps.is_empty())]);
    let (style, secrets) = (args.session.style(cx), &*session.settings.secrets);
    let text = || terminal::plan(&plan, &session.run, Title::Drift, style, secrets);
    let json = || Report::new(Sort::Drift, exit.code(), Planned::new(&session.run, &plan)).to_text(secrets);
    cx.output.report(&args.report, text, json)?;
    session.close().await;
    Ok(exit)
}
