//! Runs the steps of one container: checks that it is still as planned, sends its steps ([`schedule`]),
//! and verifies the result ([`verify`]).
//!
//! ```text
//! still as planned? --> send the steps --> send what they made possible --> verify --> send what closes it --> verify
//!                         |        ^
//! a lost answer, a stale  '- wait, read again, plan again
//! ```
//!
//! The live state of the plan is read again before the first write only if it is old. While it counts as
//! current and the plan kept its requests, the steps are sent as planned: the same state would give the
//! same plan. Verification plans once more, from the answers to writes and from new reads of what they did not show
//! ([`live_cache`]).
//!
//! Waiting steps of a container share one reading. While all of them wait, the container gives its
//! place to another one.

mod live_cache;
mod progress;
mod schedule;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod verify;

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::sync::{Semaphore, SemaphorePermit};

use live_cache::LiveCache;
use progress::{Readiness, StepProgress};

use super::{
    Apply, Dependencies, Event, Mismatch, StepOutcome, StepResult,
    lost::{CallState, call_state},
    step_at,
};
use crate::{
    address::Address,
    api::{ApiError, Result},
    cause::Cause,
    desired::Container,
    diff::{Action, GuardRefusal, Step},
    kind::{ReadSource, Target},
    live::{Live, Presence, Times},
    observe::is_fatal,
    plan::{self, Approved, ContainerPlan, PlanSettings},
    planted::Bug,
    text,
};

/// The state of the run of one container, and its result.
#[derive(Default)]
pub(super) struct RunState<'p> {
    pub(super) results: BTreeMap<Address, StepResult>,
    pub(super) mismatches: Vec<Mismatch>,
    progress: StepProgress,
    /// The error that makes all further requests useless.
    pub(super) error: Option<ApiError>,
    /// The slot among the containers that are processed at a time.
    slot: Option<SemaphorePermit<'p>>,
}

/// Runs one container.
pub(super) struct ContainerRun<'a> {
    apply: &'a Apply<'a>,
    plan: &'a Approved<'a>,
    /// The declaration, with the sections that the plan changes.
    container: Container,
    steps: &'a [&'a Step],
    emit: &'a dyn Fn(Event),
    /// The steps that other containers wait for.
    dependencies: &'a Dependencies,
    /// One slot for each container that may be processed at a time.
    slots: &'a Semaphore,
    cache: RefCell<LiveCache>,
    /// The id of the container, once it was found or created. All requests use it, because another
    /// container may get the path.
    id: OnceCell<u64>,
}

/// The state of the container as read last.
struct Reading {
    times: Times,
    /// The remaining steps.
    plan: ContainerPlan,
    /// The plan without steps that only resend fields; `None` if the run has no such steps.
    without_resends: Option<ContainerPlan>,
}

impl Reading {
    /// The remaining steps with a visible difference.
    fn plan_without_resends(&self) -> &ContainerPlan {
        self.without_resends.as_ref().unwrap_or(&self.plan)
    }
}

impl<'a> ContainerRun<'a> {
    pub(super) fn new(
        apply: &'a Apply<'a>,
        plan: &'a Approved<'a>,
        container: &Container,
        steps: &'a [&'a Step],
        emit: &'a dyn Fn(Event),
        dependencies: &'a Dependencies,
        slots: &'a Semaphore,
    ) -> Self {
        let mut container = container.clone();
        let changed: BTreeSet<_> = steps.iter().filter_map(|step| step.address.section).collect();
        // Parts of the container's own object decide whether other sections can be read, and it is
        // created with some of them.
        container.sections.retain(|section| {
            changed.contains(section.section.section)
                || section.section.comes_with_container()
                || matches!(section.section.scoped_kind.place, ReadSource::Object)
        });
        // Undeclared projects were noted in the plan, and no step changes them.
        container.lifecycle.unlisted_projects = None;
        let not_read_yet = Presence::Unreadable(Cause::new("not read yet"));
        let cache = RefCell::new(LiveCache::new(Live::with_presence(not_read_yet, Duration::ZERO)));
        let id = OnceCell::new();
        Self { apply, plan, container, steps, emit, dependencies, slots, cache, id }
    }

    pub(super) async fn run(self, slot: Option<SemaphorePermit<'a>>) -> RunState<'a> {
        let progress = StepProgress::new(self.steps);
        let mut state = RunState { progress, slot, ..RunState::default() };
        if self.has_run_ended() {
            self.end_remaining(&mut state, |_| StepOutcome::NotStarted);
            return state;
        }
        let trusted = self.apply.trusted_live(self.plan, &self.container.path);
        if let Some(live) = trusted.filter(|_| self.steps.iter().all(|step| step.is_reusable())) {
            // Planning again from it would give the planned steps.
            self.start_from(live);
            let steps = self.steps.iter().map(|step| (*step).clone()).collect();
            self.run_planned(steps, &live.times, &mut state).await;
            return state;
        }
        let reading = match self.first_reading(trusted).await {
            Ok(reading) => reading,
            Err(error) => {
                // Without further requests nothing can be concluded about the container.
                let outcome = if error.is_run_over() {
                    StepOutcome::NotStarted
                } else {
                    reread_failure(&error)
                };
                self.end_remaining(&mut state, |_| outcome.clone());
                state.error = is_fatal(&error).then_some(error);
                return state;
            }
        };
        if let Some((address, outcome)) = self.first_stale_step(&reading.plan) {
            let why = match outcome {
                StepOutcome::ChangedMeanwhile(_) => "changed since it was planned",
                _ => "could not be read again",
            };
            let why = format!("`{address}` {why}; the {} is skipped", self.container.scope.noun());
            let skipped = StepOutcome::Skipped(why.into());
            self.end_remaining(&mut state, |step| {
                if step.address == address { outcome.clone() } else { skipped.clone() }
            });
            return state;
        }
        for step in self.steps {
            if step_at(&reading.plan, &step.address).is_none() {
                self.end_step(&mut state, step, StepOutcome::Already);
            }
        }
        self.run_planned(reading.plan.findings.steps, &reading.times, &mut state).await;
        state
    }

    /// Carries out `steps`, which were planned from a reading at these `times`, and verifies them.
    async fn run_planned(&self, steps: Vec<Step>, times: &Times, state: &mut RunState<'a>) {
        let remaining =
            steps.into_iter().filter_map(|step| self.with_planned_edges(step, &state.progress));
        let (possible, certain): (Vec<_>, Vec<_>) =
            remaining.partition(|step| step.possible.is_some());
        let (closing, others): (Vec<_>, Vec<_>) =
            certain.into_iter().partition(Step::closes_container);
        self.run_steps(others, times, state).await;
        self.run_possible(possible, state).await;
        if state.progress.has_sent {
            // Closing the container, and the decision that everything before it is done, need a
            // fresh read of its object.
            let mut cache = self.cache.borrow_mut();
            closing.iter().for_each(|step| cache.mark_stale(step, &self.container));
        }
        self.verify(state).await;
        self.run_closing_steps(closing, times, state).await;
    }

    /// Carries out the possible steps that are needed now and do no more than the plan showed.
    async fn run_possible(&self, possible: Vec<Step>, state: &mut RunState<'a>) {
        let mut open = Vec::new();
        for step in possible {
            match self.readiness(&step, state) {
                Readiness::Blocked(why) => {
                    self.end_step(state, &step, StepOutcome::Skipped(why.into()));
                }
                Readiness::Ready | Readiness::Waits => open.push(step),
            }
        }
        if open.is_empty() {
            return;
        }
        let sections = open.iter().filter_map(|step| step.address.section).collect();
        let reading = match self.reread(&sections).await {
            Ok(reading) => reading,
            Err(error) => {
                open.iter().for_each(|step| self.end_step(state, step, reread_failure(&error)));
                state.error = state.error.take().or(is_fatal(&error).then_some(error));
                return;
            }
        };
        let mut steps = Vec::new();
        for step in open {
            match self.narrow_replanned(&step, &reading.plan) {
                Ok(replanned) => {
                    steps.extend(self.with_planned_edges(replanned, &state.progress));
                }
                Err(outcome) => self.end_step(state, &step, outcome),
            }
        }
        if Bug::RemovePossible.is_planted() {
            let removals = reading.plan.steps.iter().filter(|step| step.action == Action::Delete);
            steps.extend(removals.cloned());
        }
        self.run_steps(steps, &reading.times, state).await;
    }

    /// Returns the step of the new `plan` for the possible `step`, if it does no more than planned.
    ///
    /// # Errors
    /// How it ends without being sent.
    fn narrow_replanned(&self, step: &Step, plan: &ContainerPlan) -> Result<Step, StepOutcome> {
        let replanned = step_at(plan, &step.address).and_then(|now| {
            // The section was compared, so the condition is gone; only the certain part remains.
            let is_over = now.possible.is_some() && plan.has_compared(now);
            if is_over { now.certain.as_deref() } else { Some(now) }
        });
        let Some(replanned) = replanned else {
            return Err(plan.unconfirmed_cause(step).map_or(StepOutcome::Already, reread_failure));
        };
        // The new live state may be protected by a guard, unless this run itself made it.
        let is_new = self.steps.iter().any(|step| step.creates_container());
        if step.action == Action::Create && !is_new {
            let mut refusals = plan.refusals.iter();
            let refusal = refusals.find(|refusal| {
                refusal.address == step.address && !self.plan.acknowledges(refusal)
            });
            if let Some(refusal) = refusal {
                return Err(refusal_outcome(refusal));
            }
        }
        if replanned.is_subset_of(step) && replanned.possible.is_none() {
            return Ok(replanned.clone());
        }
        Err(changed_meanwhile("it differs from its manifest by more than was planned"))
    }

    /// The step with its planned edges, which a new plan of this container alone may lack, and with
    /// the new ones that do not contradict them; `None` if it was not planned.
    fn with_planned_edges(&self, mut step: Step, progress: &StepProgress) -> Option<Step> {
        let mut edges = self.steps[progress.position(&step.address)?].after.clone();
        for edge in std::mem::take(&mut step.after) {
            let section = Address { entry: None, ..edge.address.clone() };
            let is_planned = edges
                .iter()
                .any(|planned| planned.address == edge.address || planned.address == section);
            if !is_planned && !self.plan.comes_after(&edge.address, &step.address) {
                edges.push(edge);
            }
        }
        if Bug::IgnoreOtherContainers.is_planted() {
            edges.retain(|edge| edge.address.path == step.address.path);
        }
        Some(Step { after: edges, ..step })
    }

    /// Carries out the step that closes the container, but only if everything before it matches.
    async fn run_closing_steps(&self, closing: Vec<Step>, times: &Times, state: &mut RunState<'a>) {
        if closing.is_empty() {
            return;
        }
        let failed = state.results.values().find(|result| !result.outcome.is_success());
        let open = failed.map(|result| &result.address);
        let open = open.or_else(|| state.mismatches.first().map(|mismatch| &mismatch.address));
        if let Some(first) = open.filter(|_| !Bug::ArchiveUnverified.is_planted()) {
            let why =
                StepOutcome::Skipped(format!("`{first}` must match its manifest first").into());
            closing.iter().for_each(|step| self.end_step(state, step, why.clone()));
            return;
        }
        self.run_steps(closing, times, state).await;
        self.verify(state).await;
    }

    /// Gives the slot to another container until `wait` ends.
    async fn wait_without_slot<T>(
        &self,
        state: &mut RunState<'a>,
        wait: impl Future<Output = T>,
    ) -> T {
        state.slot = None;
        let result = wait.await;
        // The semaphore is never closed. Without a permit, only the limit is lost.
        state.slot = self.slots.acquire().await.ok();
        result
    }

    /// True if no further request is sent.
    fn has_run_ended(&self) -> bool {
        self.apply.writer.read_client().has_ended()
    }

    fn now(&self) -> Duration {
        self.apply.writer.read_client().clock().now()
    }

    /// Ends every step that has not ended, without sending anything.
    fn end_remaining(&self, state: &mut RunState<'_>, outcome: impl Fn(&Step) -> StepOutcome) {
        for step in self.steps {
            if !state.results.contains_key(&step.address) {
                self.end_step(state, step, outcome(step));
            }
        }
    }

    fn end_step(&self, state: &mut RunState<'_>, step: &Step, outcome: StepOutcome) {
        let (scope, address, action) = (step.scope, step.address.clone(), step.action);
        let result = StepResult { scope, address, action, outcome };
        if step.address.section.is_none() && result.outcome.is_success() {
            if action == Action::Delete {
                self.apply.observer.record_removed(&self.container);
            } else if let Some(id) = self.id.get() {
                // Other containers may wait for its id.
                self.apply.observer.record_created(&self.container, *id);
                self.dependencies.record_id(&self.container.path, *id);
            }
        }
        state.progress.record_result(&result);
        self.dependencies.record_result(&result);
        (self.emit)(Event::Ended(result.clone()));
        state.results.insert(step.address.clone(), result);
    }

    /// Records the id of the container, if it was unknown.
    fn record_id(&self, presence: &Presence) {
        if let Presence::Here(Target { id: Some(id), .. }, _) = presence {
            self.id.get_or_init(|| *id);
        }
    }

    fn start_from(&self, live: &Live) {
        self.record_id(&live.presence);
        *self.cache.borrow_mut() = LiveCache::new(live.clone());
    }

    /// The remaining steps, from the live state of the plan if that is `trusted`.
    async fn first_reading(&self, trusted: Option<&Live>) -> Result<Reading> {
        let planned = self.plan.live(&self.container.path);
        planned.into_iter().for_each(|live| self.record_id(&live.presence));
        let live = match trusted {
            Some(live) => live.clone(),
            None => {
                let id = self.id.get().copied();
                let live = self.apply.observer.read_container(&self.container, id).await?;
                Live { release: planned.map_or(live.release, |live| live.release), ..live }
            }
        };
        self.start_from(&live);
        self.replan(live).await
    }

    /// Reads `sections` again, and plans the remaining steps.
    async fn reread(&self, sections: &BTreeSet<&'static str>) -> Result<Reading> {
        let live = self.cache.borrow_mut().begin_reading(self.now());
        let observer = self.apply.observer;
        let exists = matches!(live.presence, Presence::Here(..));
        let live = if self.cache.borrow().is_object_stale || !exists {
            observer.read_container(&self.container, self.id.get().copied()).await?
        } else {
            observer.reread_sections(&self.container, live, sections).await?
        };
        self.record_id(&live.presence);
        self.cache.borrow_mut().merge_reading(live.clone(), sections);
        self.replan(live).await
    }

    /// Plans the remaining steps, given `live`.
    async fn replan(&self, mut live: Live) -> Result<Reading> {
        let settings = self.settings();
        let plan =
            super::plan_with_answers(self.apply.observer, &self.container, &mut live, &settings)
                .await?;
        let resends = !settings.resend.is_empty()
            || settings.groups.replaces_values_below(&self.container.path);
        let visible = resends.then(|| self.replan_without_resends(&live));
        Ok(Reading { times: live.times, plan, without_resends: visible })
    }

    fn settings(&self) -> PlanSettings {
        PlanSettings { created: self.dependencies.created_ids(), ..self.apply.settings.clone() }
    }

    /// Plans the remaining steps, given `live`, without those that only resend fields.
    fn replan_without_resends(&self, live: &Live) -> ContainerPlan {
        plan::plan_container(&self.container, live, &self.settings().after_run())
    }

    /// The first object that is not as planned, or for which that is unknown, with the outcome of
    /// its step.
    fn first_stale_step(&self, replanned: &ContainerPlan) -> Option<(Address, StepOutcome)> {
        if let Some((address, outcome)) = self.stale_container(replanned) {
            // A planned step in its section, or else the first one.
            let mut steps = self.steps.iter();
            let step = steps.find(|step| step.address.section == address.section);
            return Some((step.unwrap_or(&self.steps[0]).address.clone(), outcome));
        }
        self.steps.iter().find_map(|step| {
            Some((step.address.clone(), self.stale_outcome(step, replanned, false)?))
        })
    }

    /// Why the container as a whole is not as planned, with the address of the object concerned.
    fn stale_container<'p>(
        &self,
        replanned: &'p ContainerPlan,
    ) -> Option<(&'p Address, StepOutcome)> {
        if let Some(problem) = replanned.problems.first() {
            return Some((&problem.address, changed_meanwhile(problem.message.clone())));
        }
        if let Some(incomplete) = replanned.incomplete.first() {
            return Some((&incomplete.address, reread_failure(incomplete.reason.clone())));
        }
        let change = replanned.steps.iter().find(|step| step.address.section.is_none());
        if let Some(change) = change
            && self.steps.iter().all(|step| step.address != change.address)
        {
            let why = "it was renamed, moved or marked for deletion";
            return Some((&change.address, changed_meanwhile(why)));
        }
        // A change of a group above may already have set a field that the plan resets.
        let gives = self.apply.settings.groups.replaces_values_below(&self.container.path);
        let refusal = replanned.refusals.iter().find(|refusal| {
            let is_planned = step_at(replanned, &refusal.address).is_some_and(|now| {
                now.address.entry.is_none()
                    && self.steps.iter().any(|step| step.is_same_change(now))
            });
            !(self.plan.acknowledges(refusal) || (gives && is_planned))
        })?;
        Some((&refusal.address, refusal_outcome(refusal)))
    }

    /// Returns the outcome of `step` if it must not be sent, because its object is neither as
    /// planned nor as declared. If this run `may_have_changed` its object, a part of the step may
    /// be done.
    fn stale_outcome(
        &self,
        step: &Step,
        replanned: &ContainerPlan,
        may_have_changed: bool,
    ) -> Option<StepOutcome> {
        if let Some(now) = step_at(replanned, &step.address) {
            let may_be_part = may_have_changed || step.possible.is_some();
            if step.is_same_change(now) || (may_be_part && now.is_subset_of(step)) {
                return None;
            }
            return Some(changed_meanwhile("someone changed it since it was planned"));
        }
        if let Some(doubt) = replanned.unconfirmed_cause(step) {
            return Some(match replanned.closed_cause() {
                Some(_) => StepOutcome::ChangedMeanwhile(doubt),
                None => reread_failure(doubt),
            });
        }
        // A project that somebody else created may not be the planned one.
        if step.address.section.is_none()
            && (0..step.sends.len()).any(|at| {
                call_state(self.container.scope, step, at, replanned) != CallState::Applied
            })
        {
            return Some(changed_meanwhile("someone created it, but not as planned"));
        }
        let unseen = replanned.unverifiable_fields(step);
        if unseen.is_empty() {
            return None;
        }
        let why = "someone changed it, and the service does not return";
        Some(changed_meanwhile(format!("{why} {}", text::list_names(&unseen))))
    }
}

/// The start of a cause if something could not be read before its writes.
const NOT_REREAD: &str = "it could not be read again";

/// The outcome of a step whose object could not be read before its writes.
fn reread_failure(why: impl Into<Cause>) -> StepOutcome {
    StepOutcome::Failed(why.into().context(NOT_REREAD))
}

/// The outcome of a step that a new plan refuses.
fn refusal_outcome(refusal: &GuardRefusal) -> StepOutcome {
    changed_meanwhile(format!("a guard now refuses it: {}", refusal.reason))
}

fn changed_meanwhile(why: impl Into<Cause>) -> StepOutcome {
    StepOutcome::ChangedMeanwhile(why.into())
}
