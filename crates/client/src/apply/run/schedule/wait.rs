//! What happens to a step after a failed call: why it waits, and how it goes on after the next reading.

use std::{fmt::Display, time::Duration};

use super::{
    ContainerRun, FRESH, Next, Reading, Task, Waiting, failed, poll_arrival, round_up_to_second,
};
use crate::{
    api::{ApiError, Result, retry::MAX_RETRIES},
    apply::{
        StepOutcome,
        arrival::{self, ArrivalVerdict},
        lost::{self, CallState, History, REREAD_AFTER, Verdict},
        run::{RunState, UNREAD, not_reread},
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
const CHANGED_MEANWHILE: u16 = 412;

/// Why a step waits.
pub(super) enum Wait {
    /// The answer to its call was lost; `rereads` were made since its sending began.
    Lost { error: ApiError, since: Duration, rereads: usize },
    /// The contents requested at this instant have not arrived.
    Arrives { since: Duration },
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
        reason: Wait,
        reading: &Result<Reading>,
    ) -> (Task, Option<Next>) {
        let next = match (reason, reading.as_ref()) {
            (Wait::Lost { error, since, rereads }, reading) => {
                self.after_loss(&mut task, error, since, rereads, reading)
            }
            (Wait::Refused(error), reading) => self.after_refusal(&mut task, &error, reading.ok()),
            (Wait::Arrives { since }, reading) => self.after_arrival(&task, since, reading),
            (Wait::NullAnswer, reading) => self.after_null(&mut task, reading),
            (Wait::Rebuild, Ok(reading)) => self.rebuild(&mut task, reading),
            (Wait::Rebuild, Err(error)) => finished(not_reread(error)),
        };
        let fatal = reading.as_ref().err().filter(|error| is_fatal(error));
        match (next, fatal) {
            (Some(Next::Finished(outcome, None)), Some(error)) => {
                (task, Some(Next::Finished(outcome, Some(error.clone()))))
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
    ) -> Next {
        let is_over = error.is_over();
        let fatal = is_fatal(&error).then(|| error.clone());
        if let Some(since) = error.in_doubt_since() {
            if is_over {
                return Next::Finished(StepOutcome::Unknown(Cause::from(&error)), fatal);
            }
            let retry_at = error.retry_at().unwrap_or_default();
            let due = round_up_to_second(since.saturating_add(REREAD_AFTER[0]).max(retry_at));
            return Next::Waits(due, Wait::Lost { error, since, rereads: 1 });
        }
        if let Some(instant) = error.retry_at() {
            task.attempt += 1;
            return Next::Waits(instant, Wait::Rebuild);
        }
        if error.is_stale() {
            let stale = task.read_time.ended.saturating_add(FRESH);
            return Next::Waits(stale.min(self.now()), Wait::Rebuild);
        }
        let calls = task.step.sends.iter().filter(|call| !call.is_spare()).count();
        let sent = format!("{} of {}", task.next_call, text::count(calls, "call"));
        if is_over {
            let cause = Cause::new(format!("the run ended after {sent}")).transient();
            let is_sent = task.next_call > 0 || task.is_resent;
            let outcome =
                if is_sent { StepOutcome::Failed(cause) } else { StepOutcome::NotStarted };
            return Next::Finished(outcome, fatal);
        }
        if request.operation.conditional && error.status() == Some(CHANGED_MEANWHILE) {
            let why = Cause::from(&error).context("it changed after it was read");
            return Next::Finished(StepOutcome::ChangedMeanwhile(why), fatal);
        }
        let may_exist =
            matches!(request.operation.again, RetrySafety::Refused | RetrySafety::Second)
                && matches!(error.status(), Some(400 | 409 | 422));
        if may_exist && fatal.is_none() {
            return Next::Waits(self.now(), Wait::Refused(error));
        }
        let mut cause = self.with_remedy(Cause::from(&error), task, request);
        if task.next_call > 0 && task.failure.is_none() {
            cause = cause.and(format!("{sent} succeeded, and stays in effect"));
        }
        Next::Finished(StepOutcome::Failed(cause), fatal)
    }

    /// Adds to `cause` what to do about a call that no later run repeats, because nothing shows
    /// that it is missing.
    pub(super) fn with_remedy(&self, cause: Cause, task: &Task, request: &Request<Write>) -> Cause {
        let is_seen = task.next_call == 0 || request.body_fields().is_some();
        if task.step.address.section.is_some() || is_seen {
            return cause;
        }
        cause.help(format!("a later run does not repeat this: `{}`", request.as_command()))
    }

    fn call_state(&self, task: &Task, reading: &Reading) -> CallState {
        let plan = reading.visible_plan();
        lost::call_state(self.container.scope, &task.step, task.next_call, plan)
    }

    /// The next action after the answer `null`: usually nothing was saved, but sometimes it was.
    fn after_null(&self, task: &mut Task, reading: Reread<'_>) -> Option<Next> {
        let nothing = Cause::new(NULL);
        Some(failed(match reading.map(|reading| self.call_state(task, reading)) {
            Ok(CallState::Applied) => return self.continue_with_next(task),
            Ok(CallState::Unknown(why)) => nothing.and(why),
            Err(error) => nothing.and(Cause::from(error).context(UNREAD)),
            Ok(_) => nothing
                .and("it saved nothing of the request")
                .help("the service rejected a value without naming it"),
        }))
    }

    /// The next action after a refused create: the object may exist anyway.
    fn after_refusal(
        &self,
        task: &mut Task,
        error: &ApiError,
        reading: Option<&Reading>,
    ) -> Option<Next> {
        let Some(reading) = reading else { return Some(failed(Cause::from(error))) };
        let restores = task.call(0).is_some_and(|call| call.restores);
        let is_met = step_at(reading.visible_plan(), &task.step.address).is_none();
        match self.call_state(task, reading) {
            // The object to put back was removed, and somebody else added it as declared.
            CallState::Applied if restores && is_met => finished(StepOutcome::Already),
            // The first of two sendings arrived late, and the second was superfluous. Or the object
            // to put back was never removed.
            CallState::Applied if task.is_resent || restores => self.continue_with_next(task),
            // Somebody else, such as another run, made the same object first.
            CallState::Applied if task.is_only_call() => finished(StepOutcome::Already),
            // The object was not removed, although the service reported it: nothing to put back.
            CallState::Other if task.step.replaces => {
                task.next_call = task.step.sends.len();
                Some(failed(Cause::from(error).context("the old entry was not removed")))
            }
            // The service itself was faster: it adds some entries to a container that this run
            // created.
            _ => match self.update_of_new_entry(task, reading) {
                Some(step) => {
                    task.step = step;
                    None
                }
                None => Some(failed(Cause::from(error))),
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
    fn after_arrival(&self, task: &Task, since: Duration, reading: Reread<'_>) -> Option<Next> {
        // If nothing can be read any more, there is nothing to wait for.
        let passed = match reading {
            Err(error) if is_fatal(error) => arrival::PATIENCE,
            _ => self.now().saturating_sub(since),
        };
        let cache = self.cache.borrow();
        match arrival::decide(reading.map(|_| &cache.live.presence).map_err(Cause::from), passed) {
            ArrivalVerdict::Next if task.is_done() => finished(StepOutcome::Done),
            ArrivalVerdict::Next => None,
            ArrivalVerdict::Reread(_) => Some(poll_arrival(since, passed)),
            ArrivalVerdict::Ended(outcome) => finished(outcome),
        }
    }

    fn continue_with_next(&self, task: &mut Task) -> Option<Next> {
        let awaits = task.call(0).is_some_and(|call| call.awaits);
        task.go_to_next_call();
        if awaits {
            return Some(poll_arrival(self.now(), Duration::ZERO));
        }
        if task.is_done() { finished(StepOutcome::Done) } else { None }
    }

    /// Takes the calls of the step from the plan of `reading`.
    fn rebuild(&self, task: &mut Task, reading: &Reading) -> Option<Next> {
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
        task.read_time = reading.times.of(task.step.address.section);
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
    ) -> Option<Next> {
        let request = task.step.sends[task.next_call].request.clone();
        let state = match reading {
            Ok(reading) => self.state_of_lost_call(task, reading),
            Err(unread) if is_fatal(unread) => return not_read_back(&error, unread),
            Err(unread) => CallState::Unknown(Cause::from(unread)),
        };
        // The client has already retried calls that do not go stale.
        let is_repeatable = request.becomes_stale() && task.attempt <= MAX_RETRIES;
        let history = History { rereads, is_resent: task.is_resent, is_repeatable };
        match lost::decide(&request, state, history) {
            Verdict::Next => self.continue_with_next(task),
            Verdict::Resend => {
                task.attempt += 1;
                task.is_resent |= request.again() != RetrySafety::Same;
                let reading = reading.ok().filter(|_| request.becomes_stale());
                reading.and_then(|reading| self.rebuild(task, reading))
            }
            Verdict::Reread(after) => {
                let due = round_up_to_second(since.saturating_add(after)).max(self.now());
                Some(Next::Waits(due, Wait::Lost { error, since, rereads: rereads + 1 }))
            }
            Verdict::Failed => Some(failed(Cause::from(&error).transient())),
            Verdict::Other => finished(StepOutcome::ChangedMeanwhile(
                format!("{error}; the live value is neither the old nor the new one").into(),
            )),
            Verdict::Unknown(cause) => not_read_back(&error, &cause),
        }
    }

    /// The state of a lost call according to a reading. A step that resends a field on request differs in
    /// nothing visible, so it may be sent again.
    fn state_of_lost_call(&self, task: &Task, reading: &Reading) -> CallState {
        let request = &task.step.sends[task.next_call].request;
        match self.call_state(task, reading) {
            CallState::Unknown(_)
                if request.again() == RetrySafety::Same
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
        let adds = task.call(1).is_some_and(|call| call.restores);
        let address = &task.step.address;
        let section = address.section.and_then(|name| self.container.section(name));
        let Some(of) = section.map(|section| section.section).filter(|_| adds) else { return true };
        let cache = self.cache.borrow();
        let Some(Ok(entries)) = cache.live.sections.get(of.section).map(LiveEntries::entries)
        else {
            return true;
        };
        let mut entries = entries.iter();
        let added =
            entries.find(|entry| Some(&*of.name(entry.fields.raw())) == address.entry.as_deref());
        added.is_none_or(|added| task.step.leaves_rest_unchanged(of, added))
    }

    /// Ends waiting steps when the run must end.
    pub(super) fn end_waiting(&self, waiting: Vec<Waiting>, state: &mut RunState<'_>) {
        for (_, task, reason) in waiting {
            let outcome = match reason {
                Wait::Lost { error, .. } => StepOutcome::Unknown(
                    Cause::from(&error).context("the run ended before this could be read back"),
                ),
                Wait::Refused(error) => StepOutcome::Failed(Cause::from(&error)),
                Wait::Arrives { .. } => StepOutcome::Unknown(
                    Cause::new("the run ended before its contents were imported").transient(),
                ),
                Wait::NullAnswer => StepOutcome::Unknown(Cause::new(NULL).transient()),
                Wait::Rebuild if task.next_call == 0 => StepOutcome::NotStarted,
                Wait::Rebuild => StepOutcome::Failed(
                    Cause::new("the run ended before its last call").transient(),
                ),
            };
            self.end(state, &task.step, outcome);
        }
    }
}

/// A write that was answered without the written object.
const NULL: &str = "the service answered with success and `null`";

fn finished(outcome: StepOutcome) -> Option<Next> {
    Some(Next::Finished(outcome, None))
}

fn not_read_back(lost: &ApiError, why: &dyn Display) -> Option<Next> {
    let why = format!("{lost}; its effect could not be read back: {why}");
    finished(StepOutcome::Unknown(Cause::new(why).transient()))
}
