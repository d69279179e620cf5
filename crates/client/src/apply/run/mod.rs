//! Runs the steps of one container: checks that nothing changed since the plan ([`stale`]), sends the
//! steps ([`schedule`]), and verifies the result ([`verify`]).
//!
//! ```text
//! unchanged? --> certain steps --> possible steps --> verify --> closing steps --> verify
//!                  |      ^
//!  lost response or  '- wait, read again, plan again
//!  stale values
//! ```
//!
//! If the live state of the plan is recent and the plan kept its requests, the steps are sent as
//! planned. The same state would give the same plan. An older state is read again before the first
//! write. Verification plans once more, from the responses to writes, and from new reads of
//! everything that the responses did not show ([`live_cache`]).
//!
//! Waiting steps of a container share one reading. While all steps of a container wait, another
//! container gets its slot.

mod live_cache;
mod progress;
mod schedule;
mod stale;
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

use super::{Apply, Event, Mismatch, StepDependencies, StepOutcome, StepResult, find_step};
use crate::{
    address::Address,
    api::{ApiError, Result},
    cause::Cause,
    desired::Container,
    diff::{Action, Step},
    kind::{ReadSource, Target},
    live::{LiveContainer, Presence, ReadTimes},
    observe::is_fatal,
    plan::{self, ApprovedPlan, ContainerPlan, PlanSettings},
    planted::Bug,
};

/// The state of the run of one container, and its result.
#[derive(Default)]
pub(super) struct RunState<'p> {
    pub(super) results: BTreeMap<Address, StepResult>,
    pub(super) mismatches: Vec<Mismatch>,
    progress: StepProgress,
    /// The error after which all further requests would fail.
    pub(super) error: Option<ApiError>,
    /// The slot of this container; `None` while the container waits.
    slot: Option<SemaphorePermit<'p>>,
}

/// Runs one container.
pub(super) struct ContainerRun<'a> {
    apply: &'a Apply<'a>,
    plan: &'a ApprovedPlan<'a>,
    /// The declaration, with the sections that the plan changes.
    container: Container,
    steps: &'a [&'a Step],
    emit: &'a dyn Fn(Event),
    /// The outcomes of the steps that other containers wait for.
    dependencies: &'a StepDependencies,
    /// One slot for each container that may be processed at a time.
    slots: &'a Semaphore,
    cache: RefCell<LiveCache>,
    /// The id of the container, once the id is known. All requests use the id, because another
    /// container may get the path.
    id: OnceCell<u64>,
}

/// The result of the last reading of the container.
struct Reading {
    times: ReadTimes,
    /// The plan of the remaining steps.
    plan: ContainerPlan,
    /// The plan without steps that only resend fields; `None` if the run has no such steps.
    resend_free_plan: Option<ContainerPlan>,
}

impl Reading {
    /// The plan of the remaining steps that have a visible difference.
    fn plan_without_resends(&self) -> &ContainerPlan {
        self.resend_free_plan.as_ref().unwrap_or(&self.plan)
    }
}

impl<'a> ContainerRun<'a> {
    pub(super) fn new(
        apply: &'a Apply<'a>,
        plan: &'a ApprovedPlan<'a>,
        container: &Container,
        steps: &'a [&'a Step],
        emit: &'a dyn Fn(Event),
        dependencies: &'a StepDependencies,
        slots: &'a Semaphore,
    ) -> Self {
        let mut container = container.clone();
        let changed_sections: BTreeSet<_> =
            steps.iter().filter_map(|step| step.address.section).collect();
        // Keep the sections in the container's own object. These sections decide if other sections
        // can be read, and some of them are set when the container is created.
        container.sections.retain(|section| {
            changed_sections.contains(section.kind.section)
                || section.kind.is_created_with_container()
                || matches!(section.kind.scoped_kind.read_source, ReadSource::Object)
        });
        // Do not list undeclared projects again: the plan reported these projects, and no step
        // changes them.
        container.lifecycle.unlisted_projects = None;
        let unread = Presence::Unreadable(Cause::new("not read yet"));
        let cache =
            RefCell::new(LiveCache::new(LiveContainer::with_presence(unread, Duration::ZERO)));
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
        let trusted_live = self.apply.recent_live(self.plan, &self.container.path);
        if let Some(live) =
            trusted_live.filter(|_| self.steps.iter().all(|step| step.is_reusable()))
        {
            // The same live state would give the same steps.
            self.reset_cache(live);
            let steps = self.steps.iter().map(|step| (*step).clone()).collect();
            self.run_planned(steps, &live.read_times, &mut state).await;
            return state;
        }
        let reading = match self.make_first_reading(trusted_live).await {
            Ok(reading) => reading,
            Err(error) => {
                // Nothing is known about the container, and no further request is possible.
                let outcome = if error.ends_run_or_budget() {
                    StepOutcome::NotStarted
                } else {
                    unreadable_outcome(&error)
                };
                self.end_remaining(&mut state, |_| outcome.clone());
                state.error = is_fatal(&error).then_some(error);
                return state;
            }
        };
        if let Some((address, outcome)) = self.find_stale_step(&reading.plan) {
            let reason = match outcome {
                StepOutcome::ChangedMeanwhile(_) => "changed since it was planned",
                _ => "could not be read again",
            };
            let skip_reason =
                format!("`{address}` {reason}; the {} is skipped", self.container.scope.noun());
            let skipped = StepOutcome::Skipped(skip_reason.into());
            self.end_remaining(&mut state, |step| {
                if step.address == address { outcome.clone() } else { skipped.clone() }
            });
            return state;
        }
        for step in self.steps {
            if find_step(&reading.plan, &step.address).is_none() {
                self.end_step(&mut state, step, StepOutcome::Already);
            }
        }
        self.run_planned(reading.plan.findings.steps, &reading.times, &mut state).await;
        state
    }

    /// Carries out `steps`, which were planned from a reading at these `times`, and verifies the
    /// result.
    async fn run_planned(&self, steps: Vec<Step>, times: &ReadTimes, state: &mut RunState<'a>) {
        let steps_with_edges =
            steps.into_iter().filter_map(|step| self.merge_planned_edges(step, &state.progress));
        let (possible_steps, certain_steps): (Vec<_>, Vec<_>) =
            steps_with_edges.partition(|step| step.possible.is_some());
        let (closing_steps, other_steps): (Vec<_>, Vec<_>) =
            certain_steps.into_iter().partition(Step::archives_container);
        // A certain step may have to wait for a possible one.
        let mut waiting_steps = self.run_ready_steps(other_steps, times, state).await;
        waiting_steps.extend(self.run_possible_steps(possible_steps, state).await);
        self.run_steps(waiting_steps, times, state).await;
        if state.progress.has_sent {
            // The container is archived only if everything else matches. Mark its object as stale,
            // so that the verification reads it again.
            let mut cache = self.cache.borrow_mut();
            closing_steps.iter().for_each(|step| cache.mark_stale(step, &self.container));
        }
        self.verify(state).await;
        self.run_closing_steps(closing_steps, times, state).await;
    }

    /// Carries out those possible steps that are still needed and do no more than planned. Returns
    /// those that still wait.
    async fn run_possible_steps(
        &self,
        possible_steps: Vec<Step>,
        state: &mut RunState<'a>,
    ) -> Vec<Step> {
        let mut unblocked_steps = Vec::new();
        for step in possible_steps {
            match self.readiness(&step, state) {
                Readiness::Blocked(reason) => {
                    self.end_step(state, &step, StepOutcome::Skipped(reason.into()));
                }
                Readiness::Ready | Readiness::Waits => unblocked_steps.push(step),
            }
        }
        if unblocked_steps.is_empty() {
            return Vec::new();
        }
        let sections = unblocked_steps.iter().filter_map(|step| step.address.section).collect();
        let reading = match self.reread(&sections).await {
            Ok(reading) => reading,
            Err(error) => {
                unblocked_steps
                    .iter()
                    .for_each(|step| self.end_step(state, step, unreadable_outcome(&error)));
                state.error = state.error.take().or(is_fatal(&error).then_some(error));
                return Vec::new();
            }
        };
        let mut steps = Vec::new();
        for step in unblocked_steps {
            match self.find_replanned(&step, &reading.plan) {
                Ok(replanned) => {
                    steps.extend(self.merge_planned_edges(replanned, &state.progress));
                }
                Err(outcome) => self.end_step(state, &step, outcome),
            }
        }
        if Bug::RemoveUnplannedEntries.is_planted() {
            let removals = reading.plan.steps.iter().filter(|step| step.action == Action::Delete);
            steps.extend(removals.cloned());
        }
        self.run_ready_steps(steps, &reading.times, state).await
    }

    /// Adds the planned edges to a step, because a new plan of this container alone may lack these
    /// edges. Keeps new edges that do not contradict the planned edges. Returns `None` if the step
    /// was not planned.
    fn merge_planned_edges(&self, mut step: Step, progress: &StepProgress) -> Option<Step> {
        let mut edges = self.steps[progress.position(&step.address)?].after.clone();
        for edge in std::mem::take(&mut step.after) {
            let section_address = Address { entry: None, ..edge.address.clone() };
            let is_planned = edges
                .iter()
                .any(|other| other.address == edge.address || other.address == section_address);
            if !is_planned && !self.plan.comes_after(&edge.address, &step.address) {
                edges.push(edge);
            }
        }
        if Bug::IgnoreOtherContainers.is_planted() {
            edges.retain(|edge| edge.address.path == step.address.path);
        }
        Some(Step { after: edges, ..step })
    }

    /// Carries out the steps that close the container, if everything else matches its manifest.
    async fn run_closing_steps(
        &self,
        closing_steps: Vec<Step>,
        times: &ReadTimes,
        state: &mut RunState<'a>,
    ) {
        if closing_steps.is_empty() {
            return;
        }
        let failed_result = state.results.values().find(|result| !result.outcome.is_success());
        let unfinished_address = failed_result.map(|result| &result.address);
        let unfinished_address = unfinished_address
            .or_else(|| state.mismatches.first().map(|mismatch| &mismatch.address));
        if let Some(address) =
            unfinished_address.filter(|_| !Bug::ArchiveUnfinishedProject.is_planted())
        {
            let skipped_outcome =
                StepOutcome::Skipped(format!("`{address}` must match its manifest first").into());
            closing_steps
                .iter()
                .for_each(|step| self.end_step(state, step, skipped_outcome.clone()));
            return;
        }
        self.run_steps(closing_steps, times, state).await;
        self.verify(state).await;
    }

    /// Releases the slot for other containers until `wait` ends.
    async fn wait_without_slot<T>(
        &self,
        state: &mut RunState<'a>,
        wait: impl Future<Output = T>,
    ) -> T {
        state.slot = None;
        let result = wait.await;
        // The semaphore is never closed. If it were, the run would only lose the limit.
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
        let origin = Some(step.origin.clone());
        let result = StepResult { scope, address, action, outcome, origin };
        if step.address.section.is_none() && result.outcome.is_success() {
            if action == Action::Delete {
                self.apply.observer.record_removed(&self.container);
            } else if let Some(id) = self.id.get() {
                // Other containers may wait for the id.
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
        if let Presence::Existing(Target { id: Some(id), .. }, _) = presence {
            self.id.get_or_init(|| *id);
        }
    }

    fn reset_cache(&self, live: &LiveContainer) {
        self.record_id(&live.presence);
        *self.cache.borrow_mut() = LiveCache::new(live.clone());
    }

    /// Plans the remaining steps, from `trusted_live` or else from a new reading.
    async fn make_first_reading(&self, trusted_live: Option<&LiveContainer>) -> Result<Reading> {
        let planned_live = self.plan.live(&self.container.path);
        planned_live.into_iter().for_each(|live| self.record_id(&live.presence));
        let live = match trusted_live {
            Some(live) => live.clone(),
            None => {
                let id = self.id.get().copied();
                let live = self.apply.observer.read_container(&self.container, id).await?;
                LiveContainer {
                    read_release: planned_live.map_or(live.read_release, |live| live.read_release),
                    ..live
                }
            }
        };
        self.reset_cache(&live);
        self.replan(live).await
    }

    /// Reads `sections` again, and plans the remaining steps.
    async fn reread(&self, sections: &BTreeSet<&'static str>) -> Result<Reading> {
        let live = self.cache.borrow_mut().begin_reading(self.now());
        let observer = self.apply.observer;
        let exists = matches!(live.presence, Presence::Existing(..));
        let live = if self.cache.borrow().is_object_stale || !exists {
            observer.read_container(&self.container, self.id.get().copied()).await?
        } else {
            observer.reread_sections(&self.container, live, sections).await?
        };
        self.record_id(&live.presence);
        self.cache.borrow_mut().merge_reading(live.clone(), sections);
        self.replan(live).await
    }

    /// Plans the remaining steps from `live`.
    async fn replan(&self, mut live: LiveContainer) -> Result<Reading> {
        let settings = self.plan_settings();
        let plan = super::plan_with_extra_facts(
            self.apply.observer,
            &self.container,
            &mut live,
            &settings,
        )
        .await?;
        let has_resends = !settings.resend_selectors.is_empty()
            || settings.group_declarations.replaces_values_below(&self.container.path);
        let resend_free_plan = has_resends.then(|| self.replan_without_resends(&live));
        Ok(Reading { times: live.read_times, plan, resend_free_plan })
    }

    fn plan_settings(&self) -> PlanSettings {
        PlanSettings {
            creatable_containers: self.dependencies.created_ids(),
            ..self.apply.settings.clone()
        }
    }

    /// Plans the remaining steps from `live`, without steps that only resend fields.
    fn replan_without_resends(&self, live: &LiveContainer) -> ContainerPlan {
        plan::plan_container(&self.container, live, &self.plan_settings().for_plan_after_run())
    }
}

/// The beginning of the message if the object could not be read again before a write.
const REREAD_FAILURE_PREFIX: &str = "it could not be read again";

/// The outcome of a step whose object could not be read before its writes.
fn unreadable_outcome(cause: impl Into<Cause>) -> StepOutcome {
    StepOutcome::Failed(cause.into().with_context(REREAD_FAILURE_PREFIX))
}
