//! Handles failed calls. Decides why a step waits, and how the step continues after the next
//! reading.

use std::{fmt::Display, time::Duration};

use super::{
    ContainerRun, FRESH_DURATION, NextAction, Reading, StepTask, WaitingTask, failed_action,
    round_up_to_second, schedule_arrival_poll,
};
use crate::{
    api::{ApiError, Result, retry::MAX_RETRIES},
    apply::{
        StepOutcome,
        arrival::{self, ArrivalVerdict},
        find_step,
        lost::{self, CallState, LostCallAction, LostCallHistory, REREAD_DELAYS},
        run::{REREAD_FAILURE_PREFIX, RunState, unreadable_outcome},
    },
    cause::Cause,
    diff::{Action, Step},
    live::LiveEntries,
    observe::is_fatal,
    operation::{Request, RetrySafety, Write},
    text,
};

/// The HTTP status of a delete that was refused because its object changed.
const PRECONDITION_FAILED: u16 = 412;

/// The reason why a step waits.
pub(super) enum WaitReason {
    /// The response to a call of the step was lost. The sending of the call began at `since`. The
    /// last field is the number of the reading that the step waits for, counted from 1.
    Lost { error: ApiError, since: Duration, reread_number: usize },
    /// The contents that were requested at `since` have not arrived.
    Arrival { since: Duration },
    /// The next call of the step must be built again from new live values.
    Rebuild,
    /// The service answered a call with success, but with `null` instead of the written object.
    NullResponse,
    /// The service refused the create, perhaps because the object already exists.
    Refused(ApiError),
}

/// The result of the reading that a step waited for.
type ReadingResult<'r> = Result<&'r Reading, &'r ApiError>;

impl ContainerRun<'_> {
    /// The next action of a waiting step; `None` if its next call must be sent.
    pub(super) fn action_after_reading(
        &self,
        mut task: StepTask,
        reason: WaitReason,
        reading: &Result<Reading>,
    ) -> (StepTask, Option<NextAction>) {
        let next_action = match (reason, reading.as_ref()) {
            (WaitReason::Lost { error, since, reread_number }, reading) => {
                self.action_after_loss(&mut task, error, since, reread_number, reading)
            }
            (WaitReason::Refused(error), reading) => {
                self.action_after_refusal(&mut task, &error, reading.ok())
            }
            (WaitReason::Arrival { since }, reading) => {
                self.action_after_arrival(&task, since, reading)
            }
            (WaitReason::NullResponse, reading) => {
                self.action_after_null_response(&mut task, reading)
            }
            (WaitReason::Rebuild, Ok(reading)) => self.rebuild_calls(&mut task, reading),
            (WaitReason::Rebuild, Err(error)) => finished_action(unreadable_outcome(error)),
        };
        let fatal_error = reading.as_ref().err().filter(|error| is_fatal(error));
        match (next_action, fatal_error) {
            (Some(NextAction::Finished(outcome, None)), Some(error)) => {
                (task, Some(NextAction::Finished(outcome, Some(error.clone()))))
            }
            (next, _) => (task, next),
        }
    }

    /// The next action after a failed call.
    pub(super) fn action_after_error(
        &self,
        task: &mut StepTask,
        request: &Request<Write>,
        error: ApiError,
    ) -> NextAction {
        let ends_run = error.ends_run_or_budget();
        let fatal_error = is_fatal(&error).then(|| error.clone());
        if let Some(since) = error.in_doubt_since() {
            if ends_run {
                return NextAction::Finished(
                    StepOutcome::Unknown(Cause::from(&error)),
                    fatal_error,
                );
            }
            let retry_at = error.retry_at().unwrap_or_default();
            let due = round_up_to_second(since.saturating_add(REREAD_DELAYS[0]).max(retry_at));
            return NextAction::WaitUntil(due, WaitReason::Lost { error, since, reread_number: 1 });
        }
        if let Some(instant) = error.retry_at() {
            task.attempt += 1;
            return NextAction::WaitUntil(instant, WaitReason::Rebuild);
        }
        if error.is_stale() {
            let stale_at = task.read_time.end.saturating_add(FRESH_DURATION);
            return NextAction::WaitUntil(stale_at.min(self.now()), WaitReason::Rebuild);
        }
        let calls =
            task.step.planned_calls.iter().filter(|call| !call.is_only_after_failure()).count();
        let sent_calls = format!("{} of {}", task.next_call, text::count(calls, "call"));
        if ends_run {
            let cause = Cause::new(format!("the run ended after {sent_calls}")).mark_transient();
            let is_sent = task.next_call > 0 || task.is_resent;
            let outcome =
                if is_sent { StepOutcome::Failed(cause) } else { StepOutcome::NotStarted };
            return NextAction::Finished(outcome, fatal_error);
        }
        if request.operation.is_conditional && error.status() == Some(PRECONDITION_FAILED) {
            let reason = Cause::from(&error).with_context("it changed after it was read");
            return NextAction::Finished(StepOutcome::ChangedMeanwhile(reason), fatal_error);
        }
        let may_exist = matches!(
            request.operation.retry_safety,
            RetrySafety::RefusesDuplicates | RetrySafety::MayDuplicate
        ) && matches!(error.status(), Some(400 | 409 | 422));
        if may_exist && fatal_error.is_none() {
            return NextAction::WaitUntil(self.now(), WaitReason::Refused(error));
        }
        let mut cause = self.add_repeat_help(Cause::from(&error), task, request);
        if task.next_call > 0 && task.failure.is_none() {
            cause = cause.with_consequence(format!("{sent_calls} succeeded, which is not undone"));
        }
        NextAction::Finished(StepOutcome::Failed(cause), fatal_error)
    }

    /// Adds help to `cause` for a call that no later run repeats, because its effect is not visible.
    pub(super) fn add_repeat_help(
        &self,
        cause: Cause,
        task: &StepTask,
        request: &Request<Write>,
    ) -> Cause {
        let is_visible = task.next_call == 0 || request.body_fields().is_some();
        if task.step.address.section.is_some() || is_visible {
            return cause;
        }
        cause.with_help(format!(
            "later runs do not repeat this call; to repeat it, run `{}`",
            request.to_command()
        ))
    }

    fn determine_call_state(&self, task: &StepTask, reading: &Reading) -> CallState {
        let plan = reading.plan_without_resends();
        lost::determine_call_state(self.container.scope, &task.step, task.next_call, plan)
    }

    /// The next action after the response `null`. Usually the service saved nothing, but sometimes
    /// it saved the object.
    fn action_after_null_response(
        &self,
        task: &mut StepTask,
        reading: ReadingResult<'_>,
    ) -> Option<NextAction> {
        let null_cause = Cause::new(NULL_RESPONSE_CAUSE);
        Some(failed_action(match reading.map(|reading| self.determine_call_state(task, reading)) {
            Ok(CallState::Applied) => return self.advance_task(task),
            Ok(CallState::Unknown(cause)) => null_cause.with_consequence(cause),
            Err(error) => {
                null_cause.with_consequence(Cause::from(error).with_context(REREAD_FAILURE_PREFIX))
            }
            Ok(_) => null_cause
                .with_consequence("it saved nothing of the request")
                .with_help("the service rejected a value without naming it"),
        }))
    }

    /// The next action after a refused create. The object may exist anyway.
    fn action_after_refusal(
        &self,
        task: &mut StepTask,
        error: &ApiError,
        reading: Option<&Reading>,
    ) -> Option<NextAction> {
        let Some(reading) = reading else { return Some(failed_action(Cause::from(error))) };
        let is_restore = task.upcoming_call(0).is_some_and(|call| call.is_restore);
        let matches_manifest =
            find_step(reading.plan_without_resends(), &task.step.address).is_none();
        match self.determine_call_state(task, reading) {
            // The old object was removed, and somebody else added the declared object.
            CallState::Applied if is_restore && matches_manifest => {
                finished_action(StepOutcome::Already)
            }
            // Perhaps the call was sent twice: the first request arrived late, and the service
            // refused the second request. Or the object to restore was never removed.
            CallState::Applied if task.is_resent || is_restore => self.advance_task(task),
            // Somebody else, for example another run, created the same object first.
            CallState::Applied if task.has_single_call() => finished_action(StepOutcome::Already),
            // The object was not removed, although the service reported success. Nothing must be
            // restored.
            CallState::Unexpected if task.step.replaces => {
                task.next_call = task.step.planned_calls.len();
                Some(failed_action(
                    Cause::from(error).with_context("the old entry was not removed"),
                ))
            }
            // The service itself may have added the entry to the new container: update the entry.
            _ => match self.find_update_of_new_entry(task, reading) {
                Some(step) => {
                    task.step = step;
                    None
                }
                None => Some(failed_action(Cause::from(error))),
            },
        }
    }

    /// The step that changes an entry to its planned form, if the service itself added the entry to
    /// a new container.
    fn find_update_of_new_entry(&self, task: &StepTask, reading: &Reading) -> Option<Step> {
        self.cache.borrow().created_at?;
        let new_step = find_step(&reading.plan, &task.step.address)?;
        let is_edit = new_step.action == Action::Update && task.step.action == Action::Create;
        (is_edit && new_step.has_changes_within(&task.step)).then(|| new_step.clone())
    }

    /// The next action of a step that waits for contents.
    fn action_after_arrival(
        &self,
        task: &StepTask,
        since: Duration,
        reading: ReadingResult<'_>,
    ) -> Option<NextAction> {
        // If all further reads would fail, stop waiting.
        let elapsed = match reading {
            Err(error) if is_fatal(error) => arrival::MAX_ARRIVAL_WAIT,
            _ => self.now().saturating_sub(since),
        };
        let cache = self.cache.borrow();
        match arrival::decide_arrival(
            reading.map(|_| &cache.live.presence).map_err(Cause::from),
            elapsed,
        ) {
            ArrivalVerdict::SendNext if task.has_only_recovery_calls() => {
                finished_action(StepOutcome::Done)
            }
            ArrivalVerdict::SendNext => None,
            ArrivalVerdict::Reread(_) => Some(schedule_arrival_poll(since, elapsed)),
            ArrivalVerdict::Ended(outcome) => finished_action(outcome),
        }
    }

    fn advance_task(&self, task: &mut StepTask) -> Option<NextAction> {
        let waits_for_jobs = task.upcoming_call(0).is_some_and(|call| call.awaits_jobs);
        task.go_to_next_call();
        if waits_for_jobs {
            return Some(schedule_arrival_poll(self.now(), Duration::ZERO));
        }
        if task.has_only_recovery_calls() { finished_action(StepOutcome::Done) } else { None }
    }

    /// Replaces the calls of the step with the calls from the plan of `reading`.
    fn rebuild_calls(&self, task: &mut StepTask, reading: &Reading) -> Option<NextAction> {
        let stale_outcome = self.stale_outcome(&task.step, &reading.plan, task.may_have_changed);
        if stale_outcome.is_some() {
            return stale_outcome.and_then(finished_action);
        }
        let Some(new_step) = find_step(&reading.plan, &task.step.address) else {
            return finished_action(StepOutcome::Already);
        };
        // The new plan may omit calls that succeeded already.
        let unsent_calls = task.step.planned_calls.len().saturating_sub(task.next_call);
        task.next_call = new_step.planned_calls.len().saturating_sub(unsent_calls);
        task.step.planned_calls.clone_from(&new_step.planned_calls);
        task.read_time = reading.times.read_time(task.step.address.section);
        None
    }

    /// The next action after a lost response.
    fn action_after_loss(
        &self,
        task: &mut StepTask,
        error: ApiError,
        since: Duration,
        reread_number: usize,
        reading: ReadingResult<'_>,
    ) -> Option<NextAction> {
        let request = task.step.planned_calls[task.next_call].request.clone();
        let state = match reading {
            Ok(reading) => self.lost_call_state(task, reading),
            Err(read_error) if is_fatal(read_error) => {
                return unknown_outcome_action(&error, read_error);
            }
            Err(read_error) => CallState::Unknown(Cause::from(read_error)),
        };
        // The client has already retried calls that cannot become stale.
        let is_repeatable = request.becomes_stale() && task.attempt <= MAX_RETRIES;
        let history = LostCallHistory {
            reread_count: reread_number,
            is_resent: task.is_resent,
            is_repeatable,
        };
        match lost::decide_lost_call(&request, state, history) {
            LostCallAction::SendNext => self.advance_task(task),
            LostCallAction::Resend => {
                task.attempt += 1;
                task.is_resent |= request.retry_safety() != RetrySafety::Idempotent;
                let reading = reading.ok().filter(|_| request.becomes_stale());
                reading.and_then(|reading| self.rebuild_calls(task, reading))
            }
            LostCallAction::Reread(delay) => {
                let due = round_up_to_second(since.saturating_add(delay)).max(self.now());
                Some(NextAction::WaitUntil(
                    due,
                    WaitReason::Lost { error, since, reread_number: reread_number + 1 },
                ))
            }
            LostCallAction::Failed => Some(failed_action(Cause::from(&error).mark_transient())),
            LostCallAction::Unexpected => finished_action(StepOutcome::ChangedMeanwhile(
                format!("{error}; the live value is neither the old nor the new one").into(),
            )),
            LostCallAction::Unknown(cause) => unknown_outcome_action(&error, &cause),
        }
    }

    /// The state of a lost call according to a reading. A step that resends a write-only field leaves
    /// no visible difference, so it may be sent again.
    fn lost_call_state(&self, task: &StepTask, reading: &Reading) -> CallState {
        let request = &task.step.planned_calls[task.next_call].request;
        match self.determine_call_state(task, reading) {
            CallState::Unknown(_)
                if request.retry_safety() == RetrySafety::Idempotent
                    && reading
                        .plan
                        .steps
                        .iter()
                        .any(|new_step| task.step.is_same_change(new_step)) =>
            {
                CallState::NotApplied
            }
            CallState::Applied if !self.is_fully_restored(task) => CallState::Unexpected,
            state => state,
        }
    }

    /// True if an object that a replacement added has all undeclared fields of the old object.
    /// Somebody else may have added the object with only the declared fields.
    fn is_fully_restored(&self, task: &StepTask) -> bool {
        let is_addition = task.upcoming_call(1).is_some_and(|call| call.is_restore);
        let address = &task.step.address;
        let section = address.section.and_then(|name| self.container.section(name));
        let Some(kind) = section.map(|section| section.kind).filter(|_| is_addition) else {
            return true;
        };
        let cache = self.cache.borrow();
        let Some(Ok(entries)) = cache.live.sections.get(kind.section).map(LiveEntries::entries)
        else {
            return true;
        };
        let mut entries = entries.iter();
        let added_entry = entries
            .find(|entry| Some(&*kind.entry_name(entry.fields.raw())) == address.entry.as_deref());
        added_entry.is_none_or(|new_entry| task.step.leaves_rest_unchanged(kind, new_entry))
    }

    /// Ends the waiting steps when the run ends.
    pub(super) fn end_waiting_tasks(
        &self,
        waiting_tasks: Vec<WaitingTask>,
        state: &mut RunState<'_>,
    ) {
        for (_, task, reason) in waiting_tasks {
            let outcome = match reason {
                WaitReason::Lost { error, .. } => StepOutcome::Unknown(
                    Cause::from(&error)
                        .with_context("the run ended before this could be read back"),
                ),
                WaitReason::Refused(error) => StepOutcome::Failed(Cause::from(&error)),
                WaitReason::Arrival { .. } => StepOutcome::Unknown(
                    Cause::new("the run ended before its contents were imported").mark_transient(),
                ),
                WaitReason::NullResponse => {
                    StepOutcome::Unknown(Cause::new(NULL_RESPONSE_CAUSE).mark_transient())
                }
                WaitReason::Rebuild if task.next_call == 0 => StepOutcome::NotStarted,
                WaitReason::Rebuild => StepOutcome::Failed(
                    Cause::new("the run ended before its last call").mark_transient(),
                ),
            };
            self.end_step(state, &task.step, outcome);
        }
    }
}

/// The cause of a failed write whose response is `null` instead of the written object.
const NULL_RESPONSE_CAUSE: &str = "the service answered with success and `null`";

fn finished_action(outcome: StepOutcome) -> Option<NextAction> {
    Some(NextAction::Finished(outcome, None))
}

fn unknown_outcome_action(lost_error: &ApiError, reason: &dyn Display) -> Option<NextAction> {
    let message = format!("{lost_error}; its effect could not be read back: {reason}");
    finished_action(StepOutcome::Unknown(Cause::new(message).mark_transient()))
}
