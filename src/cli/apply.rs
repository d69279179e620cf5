//! `undrift apply`: shows the plan, asks, and carries it out.

use std::sync::Arc;

use super::{
    Context,
    exit::{Exit, Failure},
    reports::{Done, ReportArgs, Reports},
    session::{ChangeArgs, Session, SessionArgs},
    signal,
};
use crate::{
    api::WriteClient,
    apply::{Applied, Apply, Event, StepResult},
    diagnostic::{Diagnostic, Diagnostics, Place},
    plan::Plan,
    report::{
        json::{Outcomes, Planned, Sort},
        progress::Progress,
        terminal::{self, Title},
    },
    secret::Reference,
    text::count,
};

/// How many projects are changed at once. Each keeps several requests in flight, and what was read
/// for a request is too old if that has to wait behind those of many others.
const APPLIED: usize = 16;
/// What is said when a run ends before its first write.
const UNCHANGED: &str = "nothing was changed\n";

const EXAMPLES: &str = "Examples:
  undrift apply manifests --sandbox              shows the plan and asks
  undrift apply manifests --yes                  in CI
  undrift apply --ack 'removals:acme/shop#hooks' lets this one refusal through";

/// The options of `apply`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    changes: ChangeArgs,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    pub(super) report: ReportArgs,
}

/// Runs it.
pub(super) async fn run(args: Args, reports: &mut Reports, cx: &Context) -> Result<Done, Failure> {
    let session = Session::open(&args.session, &args.changes, reports, cx).await?;
    let outcome = with_session(&args, &session, reports, cx).await;
    session.close().await;
    outcome
}

async fn with_session(
    args: &Args,
    session: &Session,
    reports: &mut Reports,
    cx: &Context,
) -> Result<Done, Failure> {
    let plan = session.plan(cx).await?;
    let (style, secrets) = (args.session.style(cx), &*session.settings.secrets);
    let planned = Planned::new(&session.run, &plan);
    let text = || terminal::plan(&plan, &session.run, Title::Plan, style, secrets);
    let blocked = Exit::first_of([super::plan::blocked(&plan), missing_secrets(session, cx)]);
    // What could not be read does not keep the rest from being applied.
    if plan.steps.is_empty() || !matches!(blocked, Exit::Success | Exit::Incomplete) {
        let done = reports.finish(Sort::Plan, blocked, &planned, text, None);
        if !plan.steps.is_empty() {
            cx.output.tell(UNCHANGED);
        }
        return Ok(done);
    }
    // Whoever is asked has to see the plan.
    if reports.replace_text() {
        cx.output.tell(&text());
    } else {
        cx.output.print(&text())?;
    }
    if !args.yes && !cx.output.confirm("apply these changes")? {
        cx.output.tell(UNCHANGED);
        return Ok(reports.finish(Sort::Plan, Exit::Interrupted, &planned, String::new, None));
    }
    let (applied, signalled) = carry_out(session, &plan, cx).await?;
    let ended_by = applied.ended_by.clone().map(Failure::from);
    let exit = Exit::first_of([
        signalled.unwrap_or(Exit::Success),
        Exit::Unfinished.when(!applied.is_complete()),
        ended_by.as_ref().map_or(Exit::Success, |failure| failure.exit),
        Exit::Incomplete.when(!plan.incomplete.is_empty()),
    ]);
    let text = || String::from("\n") + &terminal::applied(&applied, &session.run, style, secrets);
    let outcomes = Outcomes::new(&session.run, &applied);
    let done = reports.finish(Sort::Apply, exit, &outcomes, text, Some(made(&applied)));
    if let Some(failure) = ended_by {
        cx.output.tell_failure(&failure);
    }
    Ok(done)
}

/// What whoever misses the report has to know.
fn made(applied: &Applied) -> &'static str {
    let is_made = |step: &StepResult| step.outcome.is_success();
    match (applied.steps.iter().all(is_made), applied.steps.iter().any(is_made)) {
        (true, _) => "the changes were made; only the report is missing",
        (false, true) => "some changes were made; run apply again to finish",
        (false, false) => "no changes are known to have been made; run apply again",
    }
}

/// Says which secrets are missing, and which files must not be sent. Nothing is written before all
/// of them are there, so that no run ends halfway for that.
fn missing_secrets(session: &Session, cx: &Context) -> Exit {
    let uploads = session
        .desired
        .uploads()
        .map(|(address, origin, path)| (address, origin, Reference::File(path.to_owned())));
    let references = session
        .desired
        .references()
        .map(|(address, origin, reference)| (address, origin, reference.clone()));
    let missing = references.chain(uploads).filter_map(|(address, origin, reference)| {
        let why = session.settings.secrets.why_missing(&reference)?;
        let diagnostic = Diagnostic::error(why.code(), why.to_string()).at(Place::from(origin));
        Some(diagnostic.label(address.to_string()))
    });
    let missing: Diagnostics = missing.collect();
    cx.output.tell(&missing.render(cx.output.stderr.into()));
    Exit::Usage.when(!missing.is_empty())
}

/// Applies the plan. The first signal lets what is under way finish, the second ends the process.
async fn carry_out(
    session: &Session,
    plan: &Plan,
    cx: &Context,
) -> Result<(Applied, Option<Exit>), Failure> {
    let client = session.observer.client().clone();
    let signals = signal::watch(cx.output.clone(), move || client.interrupt())?;
    let writer = WriteClient::new(session.observer.client().clone());
    let progress = Progress::new(
        cx.output.progress,
        "applying",
        plan.steps.len(),
        Arc::clone(&session.settings.secrets),
    );
    let apply = Apply {
        desired: &session.desired,
        observer: &session.observer,
        writer: &writer,
        settings: &session.settings,
        ahead: session.ahead.min(APPLIED),
    };
    let applied = apply.run(plan, |event| {
        if let Event::Ended(result) = event {
            progress.step(&result.address.to_string());
        }
    });
    let applied = applied.await;
    tracing::info!("applied {}", count(applied.steps.len(), "step"));
    Ok((applied, signals.received()))
}
