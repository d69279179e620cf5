//! Handles failed calls: why a step waits, and how it continues after the next reading.

use std::{fmt::Display, time::Duration};

use super::{
    ContainerRun, FRESH_DURATION, NextAction, Reading, Task, Waiting, finish_failed,
    round_up_to_second, wait_for_arrival,
};
use crate::{
    api::{ApiError, Result, retry::MAX_RETRIES},
    apply::{
        StepOutcome,
        arrival::{self, ArrivalVerdict},
        lost::{self, CallState, LossVerdict, LostCallHistory, REREAD_AFTER},
        run::{NOT_REREAD, RunState, reread_failure},
        step_at,
    },
    cause::Cause,
    diff::{Action, Step},
    live::LiveEntries,
    observe::is_fatal,
    operation::{Request, RetrySafety, Write},
    text,
};

/// The status of a delete that was refused because what it removes changed.
const PRECONDITION_FAILED: u16 = 412;

/// Why a step waits.
pub(super) enum WaitReason {
    /// The answer to its call was lost. `rereads` is the number of the reading that it waits for, since
    /// its sending began.
    Lost { error: ApiError, since: Duration, rereads: usize },
    /// The contents requested at this instant have not arrived.
    Contents { since: Duration },
    /// Its call must be built anew.
    Rebuild,
    /// Its call succeeded with `null` in place of the written object.
    NullAnswer,
    /// The service refused the create, perhaps because somebody else made the same object.
    Refused(ApiError),
}

/// The reading after a wait, or why it failed.
type Reread<'r> = Result<&'r Reading, &'r ApiError>;

impl ContainerRun<'_> {
    /// The next action of a waiting step; `None` if it is to be sent.
    pub(super) fn after_reading(
        &self,
        mut task: Task,
        reason: WaitReason,
        reading: &Result<Reading>,
    ) -> (Task, Option<NextAction>) {
        let next = match (reason, reading.as_ref()) {
            (WaitReason::Lost { error, since, rereads }, reading) => {
                self.after_loss(&mut task, error, since, rereads, reading)
            }
            (WaitReason::Refused(error), reading) => {
                self.after_refusal(&mut task, &error, reading.ok())
            }
            (WaitReason::Contents { since }, reading) => self.after_arrival(&task, since, reading),
            (WaitReason::NullAnswer, reading) => self.after_null_answer(&mut task, reading),
            (WaitReason::Rebuild, Ok(reading)) => self.rebuild(&mut task, reading),
            (WaitReason::Rebuild, Err(error)) => finished(reread_failure(error)),
        };
        let fatal = reading.as_ref().err().filter(|error| is_fatal(error));
        match (next, fatal) {
            (Some(NextAction::Finished(outcome, None)), Some(error)) => {
                (task, Some(NextAction::Finished(outcome, Some(error.clone()))))
            }
            (next, _) => (task, next),
        }
    }

    /// The next action after a failed call.
    pub(super) fn after_error(
        &self,
        task: &mut Task,
        request: &Request<Write>,
        error: ApiError,
    ) -> NextAction {
        let is_over = error.is_run_over();
        let fatal = is_fatal(&error).then(|| error.clone());
        if let Some(since) = error.in_doubt_since() {
            if is_over {
                return NextAction::Finished(StepOutcome::Unknown(Cause::from(&error)), fatal);
            }
            let retry_at = error.retry_at().unwrap_or_default();
            let due = round_up_to_second(since.saturating_add(REREAD_AFTER[0]).max(retry_at));
            return NextAction::Waits(due, WaitReason::Lost { error, since, rereads: 1 });
        }
        if let Some(instant) = error.retry_at() {
            task.attempt += 1;
            return NextAction::Waits(instant, WaitReason::Rebuild);
        }
        if error.is_stale() {
            let stale = task.read_time.ended.saturating_add(FRESH_DURATION);
            return NextAction::Waits(stale.min(self.now()), WaitReason::Rebuild);
        }
        let calls = task.step.sends.iter().filter(|call| !call.is_only_after_failure()).count();
        let sent = format!("{} of {}", task.next_call, text::count(calls, "call"));
        if is_over {
            let cause = Cause::new(format!("the run ended after {sent}")).transient();
            let is_sent = task.next_call > 0 || task.is_resent;
            let outcome =
                if is_sent { StepOutcome::Failed(cause) } else { StepOutcome::NotStarted };
            return NextAction::Finished(outcome, fatal);
        }
        if request.operation.conditional && error.status() == Some(PRECONDITION_FAILED) {
            let why = Cause::from(&error).context("it changed after it was read");
            return NextAction::Finished(StepOutcome::ChangedMeanwhile(why), fatal);
        }
        let may_exist =
            matches!(request.operation.again, RetrySafety::Refused | RetrySafety::Second)
                && matches!(error.status(), Some(400 | 409 | 422));
        if may_exist && fatal.is_none() {
            return NextAction::Waits(self.now(), WaitReason::Refused(error));
        }
        let mut cause = self.add_remedy(Cause::from(&error), task, request);
        if task.next_call > 0 && task.failure.is_none() {
            cause = cause.with_consequence(format!("{sent} succeeded, and stays in effect"));
        }
        NextAction::Finished(StepOutcome::Failed(cause), fatal)
    }

    /// Adds to `cause` what to do about a call that no later run repeats, because nothing shows
    /// that it is missing.
    pub(super) fn add_remedy(&self, cause: Cause, task: &Task, request: &Request<Write>) -> Cause {
        let is_seen = task.next_call == 0 || request.body_fields().is_some();
        if task.step.address.section.is_some() || is_seen {
            return cause;
        }
        cause.help(format!("a later run does not repeat this: `{}`", request.as_command()))
    }

    fn call_state(&self, task: &Task, reading: &Reading) -> CallState {
        let plan = reading.plan_without_resends();
        lost::call_state(self.container.scope, &task.step, task.next_call, plan)
    }

    /// The next action after the answer `null`: usually nothing was saved, but sometimes it was.
    fn after_null_answer(&self, task: &mut Task, reading: Reread<'_>) -> Option<NextAction> {
        let null_cause = Cause::new(NULL_ANSWER);
        Some(finish_failed(match reading.map(|reading| self.call_state(task, reading)) {
            Ok(CallState::Applied) => return self.continue_with_next(task),
            Ok(CallState::Unknown(why)) => null_cause.with_consequence(why),
            Err(error) => null_cause.with_consequence(Cause::from(error).context(NOT_REREAD)),
            Ok(_) => null_cause
                .with_consequence("it saved nothing of the request")
                .help("the service rejected a value without naming it"),
        }))
    }

    /// The next action after a refused create: the object may exist anyway.
    fn after_refusal(
        &self,
        task: &mut Task,
        error: &ApiError,
        reading: Option<&Reading>,
    ) -> Option<NextAction> {
        let Some(reading) = reading else { return Some(finish_failed(Cause::from(error))) };
        let restores = task.call_at(0).is_some_and(|call| call.is_restore);
        let is_met = step_at(reading.plan_without_resends(), &task.step.address).is_none();
        match self.call_state(task, reading) {
            // The replaced object was removed, and somebody else added it as declared.
            CallState::Applied if restores && is_met => finished(StepOutcome::Already),
            // The first of two sendings arrived late, and the second was superfluous. Or the object
            // to put back was never removed.
            CallState::Applied if task.is_resent || restores => self.continue_with_next(task),
            // Somebody else, such as another run, made the same object first.
            CallState::Applied if task.is_only_call() => finished(StepOutcome::Already),
            // The object was not removed, although the service reported it: nothing to put back.
            CallState::Other if task.step.replaces => {
                task.next_call = task.step.sends.len();
                Some(finish_failed(Cause::from(error).context("the old entry was not removed")))
            }
            // The service itself was faster: it adds some entries to a container that this run
            // created.
            _ => match self.update_of_new_entry(task, reading) {
                Some(step) => {
                    task.step = step;
                    None
                }
                None => Some(finish_failed(Cause::from(error))),
            },
        }
    }

    /// The step that turns an entry which the service added to a new container into the planned
    /// one.
    fn update_of_new_entry(&self, task: &Task, reading: &Reading) -> Option<Step> {
        self.cache.borrow().created_at?;
        let now = step_at(&reading.plan, &task.step.address)?;
        let is_edit = now.action == Action::Update && task.step.action == Action::Create;
        (is_edit && now.does_no_more_than(&task.step)).then(|| now.clone())
    }

    /// The next action of a step that waits for contents.
    fn after_arrival(
        &self,
        task: &Task,
        since: Duration,
        reading: Reread<'_>,
    ) -> Option<NextAction> {
        // If nothing can be read any more, there is nothing to wait for.
        let passed = match reading {
            Err(error) if is_fatal(error) => arrival::MAX_ARRIVAL_WAIT,
            _ => self.now().saturating_sub(since),
        };
        let cache = self.cache.borrow();
        match arrival::decide_arrival(
            reading.map(|_| &cache.live.presence).map_err(Cause::from),
            passed,
        ) {
            ArrivalVerdict::Next if task.is_done() => finished(StepOutcome::Done),
            ArrivalVerdict::Next => None,
            ArrivalVerdict::Reread(_) => Some(wait_for_arrival(since, passed)),
            ArrivalVerdict::Ended(outcome) => finished(outcome),
        }
    }

    fn continue_with_next(&self, task: &mut Task) -> Option<NextAction> {
        let awaits = task.call_at(0).is_some_and(|call| call.awaits_jobs);
        task.go_to_next_call();
        if awaits {
            return Some(wait_for_arrival(self.now(), Duration::ZERO));
        }
        if task.is_done() { finished(StepOutcome::Done) } else { None }
    }

    /// Takes the calls of the step from the plan of `reading`.
    fn rebuild(&self, task: &mut Task, reading: &Reading) -> Option<NextAction> {
        let stale = self.stale_outcome(&task.step, &reading.plan, task.may_have_changed);
        if stale.is_some() {
            return stale.and_then(finished);
        }
        let Some(now) = step_at(&reading.plan, &task.step.address) else {
            return finished(StepOutcome::Already);
        };
        // The new plan may omit calls that succeeded already.
        let unsent = task.step.sends.len().saturating_sub(task.next_call);
        task.next_call = now.sends.len().saturating_sub(unsent);
        task.step.sends.clone_from(&now.sends);
        task.read_time = reading.times.read_time(task.step.address.section);
        None
    }

    /// The next action after a lost answer.
    fn after_loss(
        &self,
        task: &mut Task,
        error: ApiError,
        since: Duration,
        rereads: usize,
        reading: Reread<'_>,
    ) -> Option<NextAction> {
        let request = task.step.sends[task.next_call].request.clone();
        let state = match reading {
            Ok(reading) => self.state_of_lost_call(task, reading),
            Err(unread) if is_fatal(unread) => return read_back_failed(&error, unread),
            Err(unread) => CallState::Unknown(Cause::from(unread)),
        };
        // The client has already retried calls that do not go stale.
        let is_repeatable = request.becomes_stale() && task.attempt <= MAX_RETRIES;
        let history = LostCallHistory { rereads, is_resent: task.is_resent, is_repeatable };
        match lost::decide(&request, state, history) {
            LossVerdict::Next => self.continue_with_next(task),
            LossVerdict::Resend => {
                task.attempt += 1;
                task.is_resent |= request.retry_safety() != RetrySafety::Same;
                let reading = reading.ok().filter(|_| request.becomes_stale());
                reading.and_then(|reading| self.rebuild(task, reading))
            }
            LossVerdict::Reread(after) => {
                let due = round_up_to_second(since.saturating_add(after)).max(self.now());
                Some(NextAction::Waits(
                    due,
                    WaitReason::Lost { error, since, rereads: rereads + 1 },
                ))
            }
            LossVerdict::Failed => Some(finish_failed(Cause::from(&error).transient())),
            LossVerdict::Other => finished(StepOutcome::ChangedMeanwhile(
                format!("{error}; the live value is neither the old nor the new one").into(),
            )),
            LossVerdict::Unknown(cause) => read_back_failed(&error, &cause),
        }
    }

    /// The state of a lost call according to a reading. A step that resends a field on request differs in
    /// nothing visible, so it may be sent again.
    fn state_of_lost_call(&self, task: &Task, reading: &Reading) -> CallState {
        let request = &task.step.sends[task.next_call].request;
        match self.call_state(task, reading) {
            CallState::Unknown(_)
                if request.retry_safety() == RetrySafety::Same
                    && reading.plan.steps.iter().any(|now| task.step.is_same_change(now)) =>
            {
                CallState::NotApplied
            }
            CallState::Applied if !self.is_fully_restored(task) => CallState::Other,
            state => state,
        }
    }

    /// True if the object added by a replacement has all undeclared fields from before. Somebody
    /// else may have added it from the manifest alone.
    fn is_fully_restored(&self, task: &Task) -> bool {
        let adds = task.call_at(1).is_some_and(|call| call.is_restore);
        let address = &task.step.address;
        let section = address.section.and_then(|name| self.container.section(name));
        let Some(kind) = section.map(|section| section.section).filter(|_| adds) else {
            return true;
        };
        let cache = self.cache.borrow();
        let Some(Ok(entries)) = cache.live.sections.get(kind.section).map(LiveEntries::entries)
        else {
            return true;
        };
        let mut entries = entries.iter();
        let added =
            entries.find(|entry| Some(&*kind.name(entry.fields.raw())) == address.entry.as_deref());
        added.is_none_or(|added| task.step.leaves_rest_unchanged(kind, added))
    }

    /// Ends waiting steps when the run must end.
    pub(super) fn end_waiting(&self, waiting: Vec<Waiting>, state: &mut RunState<'_>) {
        for (_, task, reason) in waiting {
            let outcome = match reason {
                WaitReason::Lost { error, .. } => StepOutcome::Unknown(
                    Cause::from(&error).context("the run ended before this could be read back"),
                ),
                WaitReason::Refused(error) => StepOutcome::Failed(Cause::from(&error)),
                WaitReason::Contents { .. } => StepOutcome::Unknown(
                    Cause::new("the run ended before its contents were imported").transient(),
                ),
                WaitReason::NullAnswer => StepOutcome::Unknown(Cause::new(NULL_ANSWER).transient()),
                WaitReason::Rebuild if task.next_call == 0 => StepOutcome::NotStarted,
                WaitReason::Rebuild => StepOutcome::Failed(
                    Cause::new("the run ended before its last call").transient(),
                ),
            };
            self.end_step(state, &task.step, outcome);
        }
    }
}

/// A write that was answered without the written object.
const NULL_ANSWER: &str = "the service answered with success and `null`";

fn finished(outcome: StepOutcome) -> Option<NextAction> {
    Some(NextAction::Finished(outcome, None))
}

fn read_back_failed(lost_error: &ApiError, why: &dyn Display) -> Option<NextAction> {
    let why = format!("{lost_error}; its effect could not be read back: {why}");
    finished(StepOutcome::Unknown(Cause::new(why).transient()))
}
