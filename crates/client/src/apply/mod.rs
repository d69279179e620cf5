//! Applies a plan: sends exactly its writes, or fewer.
//!
//! The input is the [approved](crate::plan::ApprovedPlan) part of a plan, and the only client that
//! writes. The output is a stream of [`Event`]s, and the result of each step. This module compares
//! no fields. One pure function, [`plan::plan_container`], determines the remaining steps: before
//! the writes, after the writes, and after a lost response. A planned step runs if the new plan
//! contains the same step. If the new plan lacks the step, somebody else has made the change. Any
//! other difference means that the container changed meanwhile, and the step is skipped. A step is
//! done only if the new plan has no
//! [`unconfirmed_cause`](crate::plan::ContainerPlan::unconfirmed_cause) for it.
//!
//! Containers run in parallel. A step waits for the steps that it depends on, in its own container
//! (`run`) and in other containers (`dependencies`). `lost` decides the outcome of steps whose
//! responses were lost. `arrival` decides how long the run waits for contents that the service
//! imports in the background.

mod arrival;
mod branch;
mod dependencies;
mod event;
mod lost;
mod run;
mod undone;

use std::{cell::RefCell, collections::BTreeMap, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::sync::Semaphore;

pub use branch::{BranchPlan, plan_against};
pub use event::{ApplyResult, Event, Mismatch, MismatchReason, StepOutcome, StepResult};
pub use lost::REREAD_DELAYS;

use crate::{
    address::Address,
    api::{Result, WriteClient},
    desired::{Container, Desired},
    diff::Step,
    live::LiveContainer,
    observe::Observer,
    plan::{self, ApprovedPlan, ContainerPlan, PlanSettings},
};
use dependencies::StepDependencies;
use run::{ContainerRun, RunState};

/// How long apply trusts the live state of a plan; see [`Apply::trust_duration`].
pub const TRUST_DURATION: Duration = Duration::from_secs(60);

/// The inputs of apply.
pub struct Apply<'a> {
    /// The declarations from the manifests.
    pub desired: &'a Desired,
    /// The observer that reads the live state.
    pub observer: &'a Observer,
    /// The client that sends writes. After its read client is
    /// [interrupted](crate::api::ReadClient::interrupt), no step starts.
    pub writer: &'a WriteClient,
    /// The settings of the plan.
    pub settings: &'a PlanSettings,
    /// The maximum age of the plan's live state. Older state is read again before the first write.
    pub trust_duration: Duration,
    /// The maximum number of containers in progress. Containers that only wait do not count.
    pub max_containers: usize,
}

impl Apply<'_> {
    /// Carries out the approved part of a plan, and calls `on_event` for each event. Failures are part
    /// of the result.
    pub async fn run(&self, plan: &ApprovedPlan<'_>, on_event: impl FnMut(Event)) -> ApplyResult {
        let mut steps_by_path: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
        for step in plan.steps() {
            steps_by_path.entry(&step.address.path).or_default().push(step);
        }
        let dependencies =
            StepDependencies::new(plan.steps(), self.settings.creatable_containers.clone());
        let handler = RefCell::new(on_event);
        let emit = |event| (handler.borrow_mut())(event);
        let slots = Semaphore::new(self.max_containers.max(1));
        let mut remaining_containers = self
            .desired
            .containers
            .iter()
            .filter_map(|container| Some((container, steps_by_path.get(&*container.path)?)));
        let mut container_runs = FuturesUnordered::new();
        // Only the results of a finished container stay in memory.
        let mut result = ApplyResult::default();
        let mut next_container = remaining_containers.next();
        while next_container.is_some() || !container_runs.is_empty() {
            tokio::select! {
                biased;
                slot = slots.acquire(), if next_container.is_some() => {
                    if let Some((container, steps)) = next_container {
                        let run = ContainerRun::new(self, plan, container, steps, &emit, &dependencies, &slots);
                        container_runs.push(run.run(slot.ok()));
                    }
                    next_container = remaining_containers.next();
                }
                Some(state) = container_runs.next(), if !container_runs.is_empty() => {
                    let RunState { mut results, mismatches, error, .. } = state;
                    let path = results.keys().next().map(|address| address.path.clone());
                    let steps = path.and_then(|path| steps_by_path.get(&*path)).into_iter().flatten();
                    result.steps.extend(steps.filter_map(|step| results.remove(&step.address)));
                    result.mismatches.extend(mismatches);
                    let error = error.filter(|error| !error.is_interrupted());
                    result.fatal_error = result.fatal_error.or(error);
                }
            }
        }
        if result.fatal_error.is_none() && !self.writer.read_client().has_ended() {
            let undone_mismatches =
                self.find_undone_effects(plan, &result, dependencies.created_ids()).await;
            result.mismatches.extend(undone_mismatches);
        }
        result.interrupted = self.writer.read_client().is_interrupted();
        result.mismatches.sort();
        // The sort is stable, so the steps of a container keep the order of the plan.
        result.steps.sort_by(|a, b| a.address.path.cmp(&b.address.path));
        result
    }

    /// The live state from which `plan` was made; `None` if this state is not recent enough.
    fn recent_live<'p>(&self, plan: &'p ApprovedPlan<'_>, path: &str) -> Option<&'p LiveContainer> {
        let live = plan.live(path)?;
        let now = self.writer.read_client().clock().now();
        (now < live.read_times.object.end.saturating_add(self.trust_duration)).then_some(live)
    }
}

/// Plans a container from its live state, and reads the extra facts that the plan needs.
///
/// # Errors
/// [`ApiError`](crate::api::ApiError) if all further requests would fail too.
pub async fn plan_with_extra_facts(
    observer: &Observer,
    container: &Container,
    live: &mut LiveContainer,
    settings: &PlanSettings,
) -> Result<ContainerPlan> {
    observer.fill_from_cache(container, live).await;
    loop {
        let plan = plan::plan_container(container, live, settings);
        if plan.questions.is_empty() {
            return Ok(plan);
        }
        // The loop ends, because a plan does not request facts that `live` already contains.
        observer.read_extra_facts(container, live, &plan.questions).await?;
    }
}

/// The step of `plan` at `address`.
fn find_step<'p>(plan: &'p ContainerPlan, address: &Address) -> Option<&'p Step> {
    plan.steps.iter().find(|step| step.address == *address)
}
