//! `undrift plan`: shows what apply would do.

use std::path::PathBuf;

use super::{
    BaseArgs, BaseUse, ChangeArgs, CommandError, Exit, LiveArgs, ReportArgs, ReportedExit, Result,
    RunContext, SessionArgs, SessionBuilder, saved::SavedPlanTarget,
};
use crate::{
    plan::{DriftPolicy, Plan, Strictness},
    report::ReportKind,
};

/// The options of `plan`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("help/plan.txt"))]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) session: SessionArgs,
    #[command(flatten)]
    pub(super) live: LiveArgs,
    #[command(flatten)]
    changes: ChangeArgs,
    #[command(flatten)]
    base: BaseArgs,
    /// Read only groups and projects whose declarations differ from the base
    #[arg(long, help_heading = "Base")]
    changed: bool,
    #[command(flatten)]
    pub(super) report: ReportArgs,
    /// Save the plan, to be applied with `undrift apply FILE` [env for its seal: UNDRIFT_PLAN_KEY]
    #[arg(short, long, alias = "save", value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
    /// Exit with 2 if there are changes (with a base: changes of this branch)
    #[arg(long, help_heading = "Output")]
    exit_code: bool,
}

/// Runs the command.
pub(super) async fn run(args: Args, cx: &RunContext) -> Result<ReportedExit> {
    // `apply` executes all steps of a saved plan, so its drift is counted as changes too.
    let drift_policy = if args.output.is_some() { DriftPolicy::Write } else { DriftPolicy::Show };
    let base_use = BaseUse { drift_policy, only_changed: args.changed };
    let base = args.base.explicit_or_job_base(&cx.env);
    if args.changed && base.is_none() {
        return Err(CommandError::usage("`--changed` needs a base to compare with")
            .help("name one with `--base`, such as `--base main`"));
    }
    let target =
        args.output.as_deref().map(|path| SavedPlanTarget::begin(path, &cx.env)).transpose()?;
    let builder = SessionBuilder {
        source: args.live.session_source(),
        changes: args.changes.clone(),
        base: base.map(|base| (base, base_use)),
        is_plan_for_apply: true,
        ..SessionBuilder::new(&args.session)
    };
    let session = builder.open(cx).await?;
    let plan = match target {
        Some(target) => {
            let plan = session.plan_to_save(cx).await?;
            target.write(&plan, &session, (&args.session, &args.changes), cx)?;
            plan
        }
        None => session.plan(cx).await?,
    };
    let is_saved_with_base = args.output.is_some() && plan.base.is_some();
    let kind = if is_saved_with_base { ReportKind::Apply } else { ReportKind::Plan };
    Ok(cx.reports.finish_plan(&session.run, &plan, kind, choose_exit(&args, &plan)))
}

fn choose_exit(args: &Args, plan: &Plan) -> Exit {
    // With a base, only changes of the branch count. But applying a saved plan also removes
    // differences that the branch did not make.
    let has_differences = match plan.base {
        Some(_) if args.output.is_none() => plan.branch_steps().next().is_some(),
        _ => plan.has_differences(Strictness::Declared),
    };
    Exit::first_of([
        blocking_exit(plan),
        Exit::Differences.only_if(args.exit_code && has_differences),
    ])
}

/// The exit code for findings that block a plan or make it incomplete.
pub(super) fn blocking_exit(plan: &Plan) -> Exit {
    Exit::first_of([
        Exit::Guarded.only_if(!plan.refusals.is_empty()),
        Exit::Usage.only_if(!plan.problems.is_empty()),
        Exit::Incomplete.only_if(!plan.incomplete.is_empty()),
    ])
}
