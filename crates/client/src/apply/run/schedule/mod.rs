//! Sends the steps of one container in the order of their edges. A step whose response was lost, or
//! whose live values are stale, waits for the next reading ([`wait`]).

#[cfg(test)]
mod tests;
mod wait;

use std::{collections::BTreeSet, time::Duration};

use futures_util::{
    FutureExt as _, StreamExt as _, future::LocalBoxFuture, stream::FuturesUnordered,
};

use wait::WaitReason;

use super::{ContainerRun, Reading, RunState, progress::Readiness};
use crate::{
    api::{ApiError, Freshness, Result, success_message},
    apply::{Event, StepOutcome, arrival::next_reading_at},
    catalogue::{self, settings},
    cause::Cause,
    diff::{Action, Step},
    kind::{PlannedCall, limits},
    live::{ReadTime, ReadTimes},
    observe::paths_are_equal,
    operation::{Request, Write},
    planted::Bug,
    text,
    value::Json,
};

/// The maximum age of live values that an update repeats. Any wait makes these values stale.
const FRESH_DURATION: Duration = Duration::from_secs(5);

/// A step that is being applied.
struct StepTask {
    /// The step from the latest plan.
    step: Step,
    /// When the live state of the step's section was read.
    read_time: ReadTime,
    /// The index of the next call.
    next_call: usize,
    /// The number of the next attempt to send this call, counted from 1.
    attempt: u32,
    /// True if the call was sent once more after a reading that did not find its object.
    is_resent: bool,
    /// True if other steps of this run may have changed the object of this step.
    may_have_changed: bool,
    /// The failure whose recovery calls (restore or undo) are being sent.
    failure: Option<Cause>,
}

/// The next action of a step.
enum NextAction {
    /// The step ended. Contains the error if all further requests would fail.
    Finished(StepOutcome, Option<ApiError>),
    /// The step continues after the next reading of its section that begins at this instant or later.
    WaitUntil(Duration, WaitReason),
}

/// Completed work of a container: calls of a step, or a reading for waiting steps.
#[expect(clippy::large_enum_variant, reason = "there is one for each project that is processed")]
enum FinishedWork {
    Calls(StepTask, NextAction),
    Reread(Vec<(StepTask, WaitReason)>, Result<Reading>),
}

/// A step that waits for a reading that begins at this instant or later, and the reason.
type WaitingTask = (Duration, StepTask, WaitReason);

/// The steps of a container that have not ended.
struct Schedule<'r> {
    /// The steps that have not started.
    open_steps: Vec<Step>,
    /// The steps in flight, and the reading in progress.
    in_flight: FuturesUnordered<LocalBoxFuture<'r, FinishedWork>>,
    waiting_tasks: Vec<WaitingTask>,
    /// True if a reading is in progress.
    is_reading: bool,
}

impl<'r> Schedule<'r> {
    fn spawn(&mut self, work: impl Future<Output = FinishedWork> + 'r) {
        self.in_flight.push(work.boxed_local());
    }

    fn is_empty(&self) -> bool {
        self.open_steps.is_empty() && self.in_flight.is_empty() && self.waiting_tasks.is_empty()
    }

    /// When the next reading is due; `None` during a reading, or if no step waits.
    fn next_due_time(&self) -> Option<Duration> {
        self.waiting_tasks.iter().map(|(due, ..)| *due).min().filter(|_| !self.is_reading)
    }
}

impl<'a> ContainerRun<'a> {
    /// Carries out `steps`, as [`Self::run_ready_steps`] does. Plans have no cycles of edges, but a
    /// run with a cycle would never end, so this ends the steps that wait for each other.
    pub(super) async fn run_steps(
        &self,
        steps: Vec<Step>,
        times: &ReadTimes,
        state: &mut RunState<'a>,
    ) {
        for step in self.run_ready_steps(steps, times, state).await {
            let outcome = StepOutcome::Skipped("it waits for steps that wait for it".into());
            self.end_step(state, &step, outcome);
        }
    }

    /// Carries out `steps` in the order of their edges. The live state of the steps was read at
    /// `times`. Returns the steps that wait for each other, or for steps that run later.
    pub(super) async fn run_ready_steps(
        &self,
        steps: Vec<Step>,
        times: &ReadTimes,
        state: &mut RunState<'a>,
    ) -> Vec<Step> {
        let (in_flight, waiting_tasks) = (FuturesUnordered::new(), Vec::new());
        let mut schedule =
            Schedule { open_steps: steps, in_flight, waiting_tasks, is_reading: false };
        loop {
            let count_before = schedule.open_steps.len();
            self.start_ready_steps(&mut schedule, times, state);
            if schedule.is_empty()
                || (schedule.open_steps.len() == count_before && self.is_deadlocked(&schedule))
            {
                return schedule.open_steps;
            }
            if let Some(finished_work) = self.wait_for_work(&mut schedule, state).await {
                self.handle_finished_work(finished_work, &mut schedule, state);
            }
        }
    }

    /// Waits until some work ends. Returns `None` if a reading became due, or if a step of another
    /// container ended.
    async fn wait_for_work<'r>(
        &'r self,
        schedule: &mut Schedule<'r>,
        state: &mut RunState<'a>,
    ) -> Option<FinishedWork> {
        let Some(due_time) = schedule.next_due_time() else {
            if !schedule.in_flight.is_empty() {
                return schedule.in_flight.next().await;
            }
            // The remaining steps wait for another container, or for a step that ended just now. In
            // both cases, check the steps again.
            if schedule.open_steps.iter().any(|step| self.waits_for_other_container(step)) {
                self.wait_for_other_container(&mut schedule.open_steps, state).await;
            }
            return None;
        };
        let wait = self.apply.writer.read_client().wait_until(due_time);
        let may_continue = if schedule.in_flight.is_empty() {
            self.wait_without_slot(state, wait).await
        } else {
            tokio::select! { biased; completed = schedule.in_flight.next() => return completed, goes_on = wait => goes_on }
        };
        let waiting_tasks = std::mem::take(&mut schedule.waiting_tasks);
        if may_continue {
            let now = self.now().max(due_time);
            let (due_tasks, later_tasks) =
                waiting_tasks.into_iter().partition(|(instant, ..)| *instant <= now);
            (schedule.waiting_tasks, schedule.is_reading) = (later_tasks, true);
            schedule.spawn(self.reread_for_tasks(due_tasks));
        } else {
            self.end_waiting_tasks(waiting_tasks, state);
        }
        None
    }

    /// Continues the steps that waited for `finished_work`.
    fn handle_finished_work<'r>(
        &'r self,
        finished_work: FinishedWork,
        schedule: &mut Schedule<'r>,
        state: &mut RunState<'_>,
    ) {
        match finished_work {
            FinishedWork::Calls(task, NextAction::WaitUntil(due_time, reason)) => {
                schedule.waiting_tasks.push((due_time, task, reason));
            }
            FinishedWork::Calls(mut task, NextAction::Finished(outcome, error)) => {
                state.error = state.error.take().or(error);
                match self.restore_after_failure(&mut task, outcome, state) {
                    None => schedule.spawn(self.send_and_complete(task)),
                    Some(outcome) => self.end_step(state, &task.step, outcome),
                }
            }
            FinishedWork::Reread(mut tasks, reading) => {
                schedule.is_reading = false;
                // This reading also serves steps that began to wait during the reading, if it began
                // after these steps became due. If both happened at the same instant, the order is
                // uncertain.
                if let Ok(Reading { times, .. }) = &reading {
                    let served_tasks =
                        schedule.waiting_tasks.extract_if(.., |(due_time, task, _)| {
                            times.read_time(task.step.address.section).start > *due_time
                        });
                    tasks.extend(served_tasks.map(|(_, task, reason)| (task, reason)));
                }
                for (task, reason) in tasks {
                    match self.action_after_reading(task, reason, &reading) {
                        (task, None) => schedule.spawn(self.send_and_complete(task)),
                        (task, Some(next_action)) => {
                            self.handle_finished_work(
                                FinishedWork::Calls(task, next_action),
                                schedule,
                                state,
                            );
                        }
                    }
                }
            }
        }
    }

    /// Starts the steps that can start, ends the blocked steps, and keeps all other steps.
    fn start_ready_steps<'r>(
        &'r self,
        schedule: &mut Schedule<'r>,
        times: &ReadTimes,
        state: &mut RunState<'_>,
    ) {
        for step in std::mem::take(&mut schedule.open_steps) {
            match self.readiness(&step, state) {
                Readiness::Blocked(reason) => {
                    self.end_step(state, &step, StepOutcome::Skipped(reason.into()));
                }
                Readiness::Waits => schedule.open_steps.push(step),
                Readiness::Ready if self.has_run_ended() || state.error.is_some() => {
                    self.end_step(state, &step, StepOutcome::NotStarted);
                }
                Readiness::Ready => {
                    let task = self.new_task(step, times, state);
                    if task.may_have_changed {
                        schedule.waiting_tasks.push((self.now(), task, WaitReason::Rebuild));
                    } else {
                        schedule.spawn(self.send_and_complete(task));
                    }
                }
            }
        }
    }

    fn new_task(&self, step: Step, times: &ReadTimes, state: &mut RunState<'_>) -> StepTask {
        let (address, action) = (step.address.clone(), step.action);
        (self.emit)(Event::Started { address, action });
        state.progress.has_sent = true;
        let mut read_time = times.read_time(step.address.section);
        // A container that this run created was empty at its creation. Therefore its creation
        // replaces a reading.
        if let Some(created_at) = self.cache.borrow().created_at
            && created_at > read_time.end
        {
            read_time = ReadTime { start: created_at, end: created_at };
        }
        // Deletes and creates do not repeat live values. Before a step that closes the container,
        // the container was just read.
        let may_have_changed = step.action == Action::Update
            && !step.archives_container()
            && state.progress.may_have_changed(&step);
        let (next_call, attempt, is_resent, failure) = (0, 1, false, None);
        StepTask { step, read_time, next_call, attempt, is_resent, may_have_changed, failure }
    }

    /// True if all remaining steps wait for each other, or for steps that run later.
    fn is_deadlocked(&self, schedule: &Schedule<'_>) -> bool {
        schedule.in_flight.is_empty()
            && schedule.waiting_tasks.is_empty()
            && !schedule.open_steps.iter().any(|step| self.waits_for_other_container(step))
    }

    /// True if `step` waits for a step of another container.
    fn waits_for_other_container(&self, step: &Step) -> bool {
        step.after.iter().any(|edge| {
            edge.address.path != step.address.path
                && self.dependencies.step_outcome(&edge.address) == Some(None)
        })
    }

    /// Waits until a step of another container ends. If the run ends first, ends the unstarted steps.
    async fn wait_for_other_container(
        &self,
        unstarted_steps: &mut Vec<Step>,
        state: &mut RunState<'a>,
    ) {
        let run_end = self.apply.writer.read_client().wait_for_end();
        let next_event = self.wait_without_slot(state, async {
            tokio::select! { biased; () = self.dependencies.wait_for_step_end() => true, () = run_end => false }
        });
        if !next_event.await {
            for step in std::mem::take(unstarted_steps) {
                self.end_step(state, &step, StepOutcome::NotStarted);
            }
        }
    }

    pub(super) fn readiness(&self, step: &Step, state: &RunState<'_>) -> Readiness {
        state.progress.readiness(step, self.dependencies)
    }

    async fn send_and_complete(&self, mut task: StepTask) -> FinishedWork {
        let next_action = self.send_calls(&mut task).await;
        FinishedWork::Calls(task, next_action)
    }

    /// Sends the calls of a step in order, until a call cannot be sent.
    async fn send_calls(&self, task: &mut StepTask) -> NextAction {
        while let Some(call) = task.upcoming_call(0).cloned() {
            if call.is_only_after_failure() && task.failure.is_none() {
                task.go_to_next_call();
                continue;
            }
            let request =
                call.request.with_ids(self.id.get().copied(), |path| self.created_id(path));
            let request = match request {
                Ok(request) => request,
                Err(path) => {
                    let path = text::escape(&path);
                    return failed_action(Cause::new(format!("the id of `{path}` is not known")));
                }
            };
            let ReadTime { start: read_at, end: ended } = task.read_time;
            let expires_at = ended.saturating_add(FRESH_DURATION);
            let freshness = Freshness { expires_at, attempt: task.attempt, read_at };
            let response = match self.apply.writer.send_fresh(&request, freshness).await {
                Ok(response) => response.body,
                Err(error) => {
                    self.cache.borrow_mut().mark_stale(&task.step, &self.container);
                    return self.action_after_error(task, &request, error);
                }
            };
            self.record_response(task, &request, &response);
            if let Some(cause) = partial_refusal_cause(&response) {
                return failed_action(self.add_repeat_help(cause, task, &request));
            }
            if request.operation.shows_object && response.is_null() {
                return NextAction::WaitUntil(self.now(), WaitReason::NullResponse);
            }
            if let Some(cause) = self.missing_limit_cause(task, &request, &response) {
                let undo = task.upcoming_call(1).filter(|call| call.is_undo);
                if undo.is_none() || self.has_run_ended() {
                    return failed_action(cause.with_consequence("the switch is on without it"));
                }
                task.failure = Some(cause);
            } else if call.is_undo {
                break;
            }
            // Wait until the id is known: the response may lack the id, and the next request needs
            // it.
            let waits_for_jobs =
                call.awaits_jobs || (task.step.creates_container() && self.id.get().is_none());
            task.go_to_next_call();
            if waits_for_jobs {
                return schedule_arrival_poll(self.now(), Duration::ZERO);
            }
        }
        NextAction::Finished(StepOutcome::Done, None)
    }

    /// The cause of a failure if a write turned on a switch, and the response lacks a limit that
    /// was sent with the switch.
    fn missing_limit_cause(
        &self,
        task: &StepTask,
        request: &Request<Write>,
        response: &Json,
    ) -> Option<Cause> {
        let section = task.step.address.section.unwrap_or(settings::SECTION);
        let kind = catalogue::find_section(self.container.scope, section)?;
        let body = response.as_object().filter(|_| request.operation.shows_object)?;
        let missing_limits = limits::unlimited_switches(kind, request.body_fields()?, body);
        let (switch, _) = missing_limits.first()?;
        let switch_limits = missing_limits.iter().filter(|(other, _)| other == switch);
        let limits: Vec<_> = switch_limits.map(|(_, limit)| limit.as_str()).collect();
        let limit_list = text::list_names(&limits);
        Some(Cause::new(format!("the service did not save {limit_list}, which limits `{switch}`")))
    }

    /// The id of the object at `address`. The address is the path of a container that this run
    /// created, or the address of an entry of this container.
    fn created_id(&self, address: &str) -> Option<u64> {
        if !address.contains('#') {
            return self.dependencies.created_ids().numeric_id(address);
        }
        self.cache.borrow().find_entry_id(&self.container, address)
    }

    fn record_response(&self, task: &StepTask, request: &Request<Write>, response: &Json) {
        let (now, container_id) = (self.now(), self.id.get().copied());
        let mut cache = self.cache.borrow_mut();
        cache.record_response(&self.container, &task.step, request, response, container_id, now);
        self.record_id(&cache.live.presence);
        // The response to a fork or an import is not a full object: use only its id.
        if task.next_call == 0 && task.step.creates_container() {
            let path =
                ["path_with_namespace", "full_path"].iter().find_map(|key| response.get(key));
            let path = path.and_then(Json::as_str).unwrap_or_default().trim_start_matches('/');
            if paths_are_equal(path, &self.container.path)
                && let Some(id) = response.get("id").and_then(Json::as_u64)
            {
                self.id.get_or_init(|| id);
            }
        }
    }

    /// If a step failed after it removed an object, continues with the call that restores the
    /// object. Returns the outcome of the step if the step has no such call, or if the call was
    /// sent already.
    fn restore_after_failure(
        &self,
        task: &mut StepTask,
        outcome: StepOutcome,
        state: &RunState<'_>,
    ) -> Option<StepOutcome> {
        if let Some(failure) = task.failure.take() {
            let is_undo = task.upcoming_call(0).is_some_and(|call| call.is_undo);
            let cause_text = outcome.cause().map_or_else(String::new, ToString::to_string);
            let cause = match outcome {
                StepOutcome::Done | StepOutcome::Already if is_undo => {
                    failure.with_consequence("it was turned off again")
                }
                _ if is_undo => {
                    failure.with_consequence(format!("turning it off again failed ({cause_text})"))
                }
                StepOutcome::Done => failure.with_context("the old object was restored"),
                StepOutcome::Already => failure.with_context(
                    "someone else added it again, perhaps without its undeclared fields",
                ),
                _ => failure.with_context(format!(
                    "the old object was removed, and restoring it failed ({cause_text})"
                )),
            };
            return Some(StepOutcome::Failed(cause));
        }
        let second_call = task.upcoming_call(1).filter(|_| task.next_call > 0);
        match outcome {
            StepOutcome::Failed(cause)
                if second_call.is_some_and(|call| call.is_restore)
                    && !Bug::SkipRestore.is_planted()
                    && !self.has_run_ended()
                    && state.error.is_none() =>
            {
                task.go_to_next_call();
                task.failure = Some(cause);
                None
            }
            outcome => Some(outcome),
        }
    }

    async fn reread_for_tasks(&self, waiting_tasks: Vec<WaitingTask>) -> FinishedWork {
        let mut sections = BTreeSet::new();
        for (_, task, _) in &waiting_tasks {
            match task.step.address.section {
                Some(section) => drop(sections.insert(section)),
                None => sections.extend(self.container.section_names()),
            }
        }
        let reading = self.reread(&sections).await;
        let tasks = waiting_tasks.into_iter().map(|(_, task, reason)| (task, reason));
        FinishedWork::Reread(tasks.collect(), reading)
    }
}

impl StepTask {
    /// The call `offset` positions after the next call; the next call itself for 0.
    fn upcoming_call(&self, offset: usize) -> Option<&PlannedCall> {
        self.step.planned_calls.get(self.next_call + offset)
    }

    fn go_to_next_call(&mut self) {
        (self.next_call, self.attempt, self.is_resent) = (self.next_call + 1, 1, false);
    }

    /// True if only recovery calls (restore or undo) remain.
    fn has_only_recovery_calls(&self) -> bool {
        self.step.planned_calls.iter().skip(self.next_call).all(PlannedCall::is_only_after_failure)
    }

    /// True if the step has only one call, apart from recovery calls.
    fn has_single_call(&self) -> bool {
        self.step.planned_calls.iter().filter(|call| !call.is_only_after_failure()).count() == 1
    }
}

fn failed_action(cause: Cause) -> NextAction {
    NextAction::Finished(StepOutcome::Failed(cause), None)
}

/// Schedules the next poll for contents that were requested at `since`, which was `elapsed` ago.
fn schedule_arrival_poll(since: Duration, elapsed: Duration) -> NextAction {
    let due = round_up_to_second(since.saturating_add(next_reading_at(elapsed)));
    NextAction::WaitUntil(due, WaitReason::Arrival { since })
}

/// The cause of a failed write with a success status; `None` if the write did not fail. Some
/// responses report a refused part only in the body.
fn partial_refusal_cause(response: &Json) -> Option<Cause> {
    let status = response.get("status").filter(|_| response.get("id").is_none())?;
    (status == "error").then(|| {
        Cause::new(success_message(response)).with_context("the service refused a part of it")
    })
}

/// Rounds up to a whole second, so that one reading serves all steps that are due in that second.
fn round_up_to_second(instant: Duration) -> Duration {
    Duration::from_secs(instant.as_secs() + u64::from(instant.subsec_nanos() > 0))
}
