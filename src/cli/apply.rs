//! `undrift apply`: shows the plan, asks for confirmation, and applies the plan. Of a saved plan,
//! only the steps that are still needed are applied.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    BaseArgs, BaseUse, ChangeArgs, CommandError, Exit, ManifestFolder, Progress, ReportArgs,
    ReportedExit, Result, RunContext, RunRecord, Session, SessionArgs, SessionBuilder,
    check_can_write, saved, signal,
};
use crate::{
    address::Address,
    apply::{ApplyResult, Event},
    diagnostic::{Diagnostic, Diagnostics, SourceLocation},
    diff::{Shown, Step, show_secret},
    digest::DigestKey,
    origin::Origin,
    plan::{
        ApprovalPolicy, ApprovedPlan, BlockedRun, DriftPolicy, Plan, SkippedContainer,
        saved::{PlanComparison, PlanRecorder, SavedPlan, SealedPlan},
    },
    report::{
        ApplyContent, Canvas, OutcomeCounts, PlanContent, ReportContent, ReportKind, Sink, terminal,
    },
    secret::Reference,
    text::count,
    value::Value,
};

/// The maximum number of groups and projects that are changed at the same time. Each of them has
/// several requests in flight. With a higher maximum, live values would become stale before they
/// are used.
const MAX_CONCURRENT: usize = 16;
/// The message if a run ends before its first write.
const UNCHANGED_TEXT: &str = "nothing was changed\n";
/// The message if a saved plan is not applied.
const STALE_TEXT: &str = "nothing was changed: the saved plan is stale; save it again with \
    `undrift plan -o FILE`, or pass `--on-stale=skip`\n";

/// The options of `apply`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("help/apply.txt"), mut_arg("dir", describe_dir))]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) session: SessionArgs,
    #[command(flatten)]
    changes: ChangeArgs,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Change nothing if any group or project cannot be applied
    #[arg(long)]
    all_or_nothing: bool,
    /// Append one line of JSON about this run to a file, also if it fails or changes nothing
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) record: Option<PathBuf>,
    /// Folder of manifests, if DIR is a saved plan; -d names it too
    #[arg(index = 2, value_name = "MANIFESTS", hide = true)]
    manifests_dir: Option<PathBuf>,
    /// The saved plan, if DIR is a valid one.
    #[arg(skip)]
    plan: Option<Box<SealedPlan>>,
    /// If something changed since a plan was saved: stop before the first write, or skip that group or
    /// project
    #[arg(long, value_name = "WHAT", value_enum, default_value = "stop")]
    on_stale: OnStale,
    #[command(flatten)]
    base: BaseArgs,
    /// With a base, also write differences from before this branch
    #[arg(long, requires = "base", help_heading = "Base")]
    heal: bool,
    #[command(flatten)]
    pub(super) report: ReportArgs,
}

/// The treatment of changes since a plan was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OnStale {
    /// Change nothing.
    Stop,
    /// Leave out that group or project.
    Skip,
}

fn describe_dir(dir: clap::Arg) -> clap::Arg {
    dir.index(1).value_name("DIR|PLAN").help("Folder of manifests, one file, or a saved plan")
}

impl Args {
    /// The folder or file of manifests.
    pub(super) fn manifests_path(&self) -> &Path {
        self.manifests_dir.as_deref().unwrap_or(&self.session.dir)
    }

    /// Reads the saved plan, if one is named. The folder of manifests is then the folder of `-d`,
    /// or else the folder that the plan names.
    ///
    /// # Errors
    /// If the folder is named twice, or the folder in the plan is not below the working directory.
    pub(super) fn resolve_folder(&mut self) -> Result<()> {
        let dir = &mut self.session.dir;
        if dir.is_named_twice() {
            let manifests_dir = dir.named.take();
            if dir.is_dir() || self.manifests_dir.is_some() {
                return Err(ManifestFolder::named_twice_error());
            }
            self.manifests_dir = manifests_dir;
        }
        if self.manifests_dir.is_none() && !saved::is_undrift_file(dir) {
            return Ok(());
        }
        // `read_saved_plan` reports the fault of a file that is not valid.
        self.plan = saved::read_saved_plan(dir).ok().map(Box::new);
        if self.manifests_dir.is_none() {
            let plan = self.plan.as_ref().map(|sealed| &sealed.plan);
            self.manifests_dir =
                Some(plan.map_or_else(|| Ok(".".into()), saved::manifests_folder)?);
        }
        Ok(())
    }

    /// The saved plan to apply, if one is named.
    fn read_saved_plan(&self, cx: &RunContext) -> Result<Option<PlanToApply>> {
        let path = &self.session.dir;
        if self.manifests_dir.is_none() {
            return Ok(None);
        }
        let sealed = match self.plan.as_deref() {
            Some(sealed) => sealed.clone(),
            None => saved::read_saved_plan(path)?,
        };
        let key = cx.env.digest_key(saved::KEY_VARIABLE)?;
        sealed
            .plan
            .check()
            .and_then(|()| sealed.check_seal(key.as_ref()))
            .map_err(saved::unusable_failure)?;
        let SealedPlan { plan, id, .. } = sealed;
        Ok(Some(PlanToApply { plan: Arc::new(plan), id, key }))
    }

    /// Opens the session. The options of a saved plan replace the options of the command line.
    async fn open_session(
        &self,
        plan_to_apply: Option<&PlanToApply>,
        cx: &RunContext,
    ) -> Result<Session> {
        let (session_args, changes) = match plan_to_apply {
            Some(saved_plan) => (
                self.session.for_saved_plan(&saved_plan.plan, self.manifests_path().to_owned())?,
                self.changes.for_saved_plan(&saved_plan.plan)?,
            ),
            None => (self.session.clone(), self.changes.clone()),
        };
        let base = self.base.explicit_base();
        if plan_to_apply.is_some() && base.is_some() {
            return Err(CommandError::usage("`--base` cannot be combined with a saved plan")
                .help("leave it out, or save another plan"));
        }
        let base_use = BaseUse {
            drift_policy: if self.heal { DriftPolicy::Write } else { DriftPolicy::Exclude },
            only_changed: false,
        };
        let base = base.map(|base| (base, base_use));
        let builder = SessionBuilder {
            changes,
            base,
            is_plan_for_apply: true,
            ..SessionBuilder::new(&session_args)
        };
        builder.open(cx).await
    }
}

/// A saved plan to apply.
struct PlanToApply {
    plan: Arc<SavedPlan>,
    id: String,
    key: Option<DigestKey>,
}

impl PlanToApply {
    /// Compares the saved plan with `plan`, the plan of this run.
    fn compare(&self, plan: &Plan, session: &Session) -> PlanComparison {
        let recorder = PlanRecorder { secrets: &session.settings.secrets, key: self.key.as_ref() };
        self.plan.compare(&self.id, plan, &session.desired.containers, recorder)
    }
}

/// Shows the plan, asks for confirmation, applies the plan and reports the result. Every exit states
/// whether anything was changed.
pub(super) async fn run(args: Args, cx: &RunContext) -> Result<ReportedExit> {
    cx.reports.record.watch_signals(&cx.output)?;
    let plan_to_apply = args.read_saved_plan(cx)?;
    let session = args.open_session(plan_to_apply.as_ref(), cx).await?;
    cx.reports.record.add_facts(|record| record.run = Some(session.run.clone()));
    check_can_write(session.run.token.as_ref())?;
    let plan = &session.plan(cx).await?;
    let acknowledgements =
        plan.acknowledged.iter().map(|acknowledged| acknowledged.refusal.acknowledgement.clone());
    cx.reports.record.add_facts(|record| record.acknowledgements = acknowledgements.collect());
    let comparison = plan_to_apply.map(|saved_plan| saved_plan.compare(plan, &session));
    let saved_comparison = comparison.as_ref();
    let is_stale = saved_comparison.is_some_and(|comparison| !comparison.stale.is_empty());
    let exit = Exit::first_of([super::plan::blocking_exit(plan), Exit::Stale.only_if(is_stale)]);
    let proposal = Proposal { session: &session, plan, comparison: saved_comparison, exit, cx };
    if is_stale && args.on_stale == OnStale::Stop {
        return Ok(proposal.finish_unchanged(exit, STALE_TEXT));
    }
    let approval = plan.approve(ApprovalPolicy {
        all_or_nothing: args.all_or_nothing,
        comparison: saved_comparison,
    });
    let steps = approval.iter().flat_map(|(approved, _)| approved.steps());
    let secret_faults = find_secret_faults(steps, &session);
    if !secret_faults.is_empty() {
        // The reason is written last, after the plan.
        let reason = format!("\n{}{UNCHANGED_TEXT}", secret_faults.render(cx.output.stderr_style));
        cx.reports.add_diagnostics(secret_faults);
        return Ok(proposal.finish_unchanged(Exit::first_of([exit, Exit::Usage]), &reason));
    }
    match approval {
        Ok((approved, skipped)) if approved.steps().next().is_some() => {
            proposal.apply(&approved, &skipped, args.yes).await
        }
        Ok(_) => Ok(proposal
            .finish_unchanged(exit, if plan.steps.is_empty() { "" } else { UNCHANGED_TEXT })),
        Err(BlockedRun(reason)) => {
            Ok(proposal.finish_unchanged(exit, &format!("nothing was changed: {reason}\n")))
        }
    }
}

/// A plan that may be applied.
#[derive(Clone, Copy)]
struct Proposal<'a> {
    session: &'a Session,
    plan: &'a Plan,
    /// The comparison with the saved plan, if there is one.
    comparison: Option<&'a PlanComparison>,
    /// The exit code for findings that block apply.
    exit: Exit,
    cx: &'a RunContext,
}

impl Proposal<'_> {
    fn write_text(&self, sink: Sink<'_>) {
        let (style, secrets) = (self.cx.output.style, &*self.session.settings.secrets);
        let canvas = Canvas::with_sink(&mut *sink, style, secrets);
        terminal::render_plan(canvas, self.plan, &self.session.run, ReportKind::Apply);
        if let Some(comparison) = self.comparison {
            let text = terminal::stale_text(Canvas::new(style, secrets), comparison);
            if !text.is_empty() {
                sink(&format!("\n{text}"));
            }
        }
    }

    /// Reports the plan after a run that changed nothing. `render_text` writes the text of the report.
    fn finish(&self, exit: Exit, render_text: impl FnOnce(Sink<'_>)) -> ReportedExit {
        let planned = PlanContent::new(&self.session.run, self.plan);
        let planned = PlanContent { saved_plan: self.comparison, ..planned };
        self.cx.reports.finish(
            ReportKind::Plan,
            exit,
            ReportContent::Plan(&planned),
            render_text,
            None,
        )
    }

    /// Reports the plan, and prints the `reason` why nothing was changed.
    fn finish_unchanged(&self, exit: Exit, reason: &str) -> ReportedExit {
        let reported_exit = self.finish(exit, |sink| self.write_text(sink));
        self.cx.output.eprint(reason);
        reported_exit
    }

    /// Shows the plan, asks for confirmation unless `is_confirmed`, applies the plan and reports
    /// the result.
    async fn apply(
        self,
        approved: &ApprovedPlan<'_>,
        skipped: &[SkippedContainer],
        is_confirmed: bool,
    ) -> Result<ReportedExit> {
        let Self { session, plan, comparison, exit, cx: RunContext { output, reports, .. } } = self;
        let (style, secrets) = (output.style, &*session.settings.secrets);
        if reports.replaces_text() {
            self.write_text(&mut |part| output.eprint(part));
        } else {
            output.print_parts(|sink| self.write_text(sink))?;
        }
        let canvas = Canvas::new(output.stderr_style, secrets);
        output.eprint(&terminal::skipped_text(canvas, skipped));
        if !is_confirmed && !output.confirm("apply these changes")? {
            output.eprint(UNCHANGED_TEXT);
            return Ok(self.finish(Exit::Interrupted, |_| {}));
        }
        reports.record.add_facts(|record| record.left_out = skipped.len());
        let (applied, signal_exit) =
            apply_steps(session, approved, &reports.record, self.cx).await?;
        let run_error = applied.fatal_error.clone().map(CommandError::from);
        let exit = Exit::first_of([
            signal_exit.unwrap_or(Exit::Success),
            Exit::Unfinished.only_if(!applied.is_complete()),
            run_error.as_ref().map_or(Exit::Success, |failure| failure.exit),
            exit,
        ]);
        let render_text = |sink: Sink<'_>| {
            let canvas = Canvas::new(style, secrets);
            sink(&format!("\n{}", terminal::render_applied(canvas, &applied, &session.run)));
        };
        let outcomes = ApplyContent::new(&session.run, plan, &applied, skipped);
        let outcomes = ApplyContent { saved_plan: comparison, ..outcomes };
        reports.record.add_facts(|record| record.counts = Some(outcomes.counts));
        let content = ReportContent::Apply(&outcomes);
        let reported = reports.finish(
            ReportKind::Apply,
            exit,
            content,
            render_text,
            Some(short_result_text(&applied)),
        );
        run_error.iter().for_each(|failure| output.eprint_failure(failure));
        Ok(reported)
    }
}

/// A short result for readers who do not see the report.
fn short_result_text(applied: &ApplyResult) -> &'static str {
    let success_count = applied.steps.iter().filter(|step| step.outcome.is_success()).count();
    if success_count == applied.steps.len() {
        "the changes were made; only the report is missing"
    } else if success_count > 0 {
        "some changes were made; run apply again to finish"
    } else {
        "no changes are known to have been made; run apply again"
    }
}

/// Errors for missing secrets that `steps` send, and for declared secrets that must never be sent.
/// All secrets must be set before the first write. Otherwise a missing secret could stop the run
/// halfway.
fn find_secret_faults<'s>(steps: impl Iterator<Item = &'s Step>, session: &Session) -> Diagnostics {
    let diagnose = |reference: &Reference, is_refused: bool, origin: &Origin, address: &Address| {
        let reason = session.settings.secrets.unresolved_reason(reference);
        let reason = reason.filter(|reason| reason.is_refused() == is_refused)?;
        let diagnostic = Diagnostic::error(reason.code(), reason.to_string())
            .with_optional_help(reason.help(session.run.sandbox));
        Some(diagnostic.with_location(SourceLocation::from(origin)).with_label(address.to_string()))
    };
    let declared_values = session.desired.secrets_and_files();
    let declared_references = declared_values.filter_map(|(address, origin, value)| match value {
        Value::Secret(reference) => Some((address, origin, reference)),
        Value::File(path) => Some((address, origin, Reference::File(path))),
        Value::Plain(_) => None,
    });
    let refused_faults = declared_references
        .filter_map(|(address, origin, reference)| diagnose(&reference, true, &origin, &address));
    let step_values =
        steps.flat_map(|step| step.secrets_and_files().map(move |value| (step, value)));
    let missing_faults = step_values.filter_map(|(step, value)| {
        let (reference, shown_value) = match value {
            Value::Secret(reference) => (reference.clone(), show_secret(reference)),
            Value::File(path) => (Reference::File(path.clone()), Shown::File(path.clone())),
            Value::Plain(_) => return None,
        };
        let change = step.changes.iter().find(|change| *change.after == shown_value);
        let origin = change.and_then(|change| change.origin.as_ref()).unwrap_or(&step.origin);
        diagnose(&reference, false, origin, &step.address)
    });
    refused_faults.chain(missing_faults).collect()
}

/// Updates `counts` after `event`, so that they are true whenever a signal ends the process. The
/// outcome of each of `started_steps` is unknown until the step ends.
fn count_event(counts: &mut OutcomeCounts, started_steps: &mut BTreeSet<Address>, event: &Event) {
    match event {
        Event::Started { address, .. } => {
            if started_steps.insert(address.clone()) {
                counts.not_started = counts.not_started.saturating_sub(1);
                counts.unknown += 1;
            }
        }
        Event::Ended(result) => {
            let was_started = started_steps.remove(&result.address);
            let before = if was_started { &mut counts.unknown } else { &mut counts.not_started };
            *before = before.saturating_sub(1);
            *counts.count_mut(&result.outcome) += 1;
        }
        Event::Verified { .. } => {}
    }
}

/// Applies the plan. The first signal lets requests in flight finish, the second ends the process.
async fn apply_steps(
    session: &Session,
    approved: &ApprovedPlan<'_>,
    record: &RunRecord,
    cx: &RunContext,
) -> Result<(ApplyResult, Option<Exit>)> {
    let client = session.observer.client().clone();
    let signal_record = record.clone();
    let first_signal = signal::watch_signals(
        cx.output.clone(),
        move || client.interrupt(),
        move |signal| signal_record.end_by_signal(signal),
    )?;
    record.begin_changes();
    let step_count = approved.steps().count();
    let progress = Progress::for_applying(step_count, session.observer.client(), &cx.output);
    let started_steps = RefCell::new(BTreeSet::new());
    let on_event = |event: Event| {
        record.add_facts(|record| {
            let unstarted = OutcomeCounts { not_started: step_count, ..OutcomeCounts::default() };
            let counts = record.counts.get_or_insert(unstarted);
            count_event(counts, &mut started_steps.borrow_mut(), &event);
        });
        if let Event::Ended(result) = event
            && result.outcome.is_success()
        {
            progress.count_step(&result.address.to_string());
        }
    };
    let applied = session.apply(approved, session.concurrency.min(MAX_CONCURRENT), on_event).await;
    let done_count = applied.steps.iter().filter(|step| step.outcome.is_success()).count();
    tracing::info!("applied {done_count} of {}", count(applied.steps.len(), "step"));
    Ok((applied, first_signal.get().copied()))
}
