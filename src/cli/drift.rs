//! `undrift drift`: checks whether the service matches the manifests. Scheduled pipelines use it.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::{
    Exit, LiveArgs, ReportArgs, ReportedExit, Result, RunContext, SessionArgs, SessionBuilder,
};
use crate::{
    plan::{Plan, Strictness},
    report::ReportKind,
};

/// The options of `drift`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("help/drift.txt"))]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) session: SessionArgs,
    #[command(flatten)]
    pub(super) live: LiveArgs,
    /// Also count unlisted objects, objects held by UNDRIFT_HOLD, and unset secrets as differences;
    /// `--strict=unverified` also counts fields that cannot be verified
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "unlisted", hide_possible_values = true, value_parser = strictness())]
    strict: Option<Strictness>,
    #[command(flatten)]
    pub(super) report: ReportArgs,
}

/// Parses the value of `--strict`.
fn strictness() -> impl TypedValueParser<Value = Strictness> {
    PossibleValuesParser::new(["unlisted", "unverified"]).map(|name| match &*name {
        "unverified" => Strictness::Unverified,
        _ => Strictness::Unlisted,
    })
}

/// Runs the command.
pub(super) async fn run(args: Args, cx: &RunContext) -> Result<ReportedExit> {
    let session =
        SessionBuilder { source: args.live.session_source(), ..SessionBuilder::new(&args.session) }
            .open(cx)
            .await?;
    let mut plan = session.plan(cx).await?;
    // Guards restrict only writes, and `drift` writes nothing.
    plan.hidden_refusal_count = std::mem::take(&mut plan.refusals).len();
    Ok(cx.reports.finish_plan(&session.run, &plan, ReportKind::Drift, choose_exit(&args, &plan)))
}

fn choose_exit(args: &Args, plan: &Plan) -> Exit {
    // A declared container that does not exist is a difference.
    let (missing_containers, problems): (Vec<_>, Vec<_>) =
        plan.problems.iter().partition(|problem| problem.is_missing());
    let strictness = args.strict.unwrap_or(Strictness::Declared);
    let has_differences = plan.has_differences(strictness) || !missing_containers.is_empty();
    Exit::first_of([
        Exit::Usage.only_if(!problems.is_empty()),
        Exit::Incomplete.only_if(!plan.incomplete.is_empty()),
        Exit::Differences.only_if(has_differences),
    ])
}
