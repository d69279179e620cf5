//! Applies a plan: exactly its writes, or fewer.
//!
//! In: the [approved](crate::plan::Approved) part of a plan, and the only client that writes. Out:
//! a stream of [`Event`]s, and the result of each step. This module compares no fields and decides
//! nothing that a plan decides. One pure function, [`plan::plan_container`], determines what is left to
//! do: before the writes, after them, and when an answer was lost. A step that comes out the same
//! runs. One that is no longer needed was done by somebody else. Anything else means that the
//! container changed meanwhile, and the step is skipped. A step counts as done only if the new plan
//! has no [`unconfirmed_cause`](crate::plan::ContainerPlan::unconfirmed_cause) for it.
//!
//! Containers run in parallel; steps follow their edges, inside a container (`run`) and between
//! containers (`dependencies`). `lost` decides the outcome of lost answers, and `arrival` how long
//! to wait for contents that arrive in the background.

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
pub use event::{Applied, Event, Mismatch, MismatchReason, StepOutcome, StepResult};
pub use lost::REREAD_AFTER;

use crate::{
    address::Address,
    api::{Result, WriteClient},
    desired::{Container, Desired},
    diff::Step,
    live::Live,
    observe::Observer,
    plan::{self, Approved, ContainerPlan, PlanSettings},
};
use dependencies::Dependencies;
use run::{ContainerRun, RunState};

/// How long apply trusts the live state of a plan; see [`Apply::trust_duration`].
pub const TRUST_DURATION: Duration = Duration::from_secs(60);

/// The inputs of apply.
pub struct Apply<'a> {
    /// The declarations.
    pub desired: &'a Desired,
    /// For reading.
    pub observer: &'a Observer,
    /// For writing. After its client is [interrupted](crate::api::ReadClient::interrupt), nothing
    /// starts any more.
    pub writer: &'a WriteClient,
    /// The settings of the plan.
    pub settings: &'a PlanSettings,
    /// How long the live state of the plan counts as current. After that it is read again before
    /// the first write.
    pub trust_duration: Duration,
    /// The maximum number of containers in progress; those that only wait do not count.
    pub max_containers: usize,
}

impl Apply<'_> {
    /// Carries out the approved part of a plan, and calls `events` for each event. Never fails as a
    /// whole: failures are in the result.
    pub async fn run(&self, plan: &Approved<'_>, events: impl FnMut(Event)) -> Applied {
        let mut by_container: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
        for step in plan.steps() {
            by_container.entry(&step.address.path).or_default().push(step);
        }
        let dependencies = Dependencies::new(plan.steps(), self.settings.created.clone());
        let events = RefCell::new(events);
        let emit = |event| (events.borrow_mut())(event);
        let slots = Semaphore::new(self.max_containers.max(1));
        let mut waiting = self
            .desired
            .containers
            .iter()
            .filter_map(|container| Some((container, by_container.get(&*container.path)?)));
        let mut running = FuturesUnordered::new();
        // Only the results of a finished container stay in memory.
        let mut applied = Applied::default();
        let mut next_container = waiting.next();
        while next_container.is_some() || !running.is_empty() {
            tokio::select! {
                biased;
                slot = slots.acquire(), if next_container.is_some() => {
                    if let Some((container, steps)) = next_container {
                        let run = ContainerRun::new(self, plan, container, steps, &emit, &dependencies, &slots);
                        running.push(run.run(slot.ok()));
                    }
                    next_container = waiting.next();
                }
                Some(state) = running.next(), if !running.is_empty() => {
                    let RunState { mut results, mismatches, error, .. } = state;
                    let path = results.keys().next().map(|address| address.path.clone());
                    let steps = path.and_then(|path| by_container.get(&*path)).into_iter().flatten();
                    applied.steps.extend(steps.filter_map(|step| results.remove(&step.address)));
                    applied.mismatches.extend(mismatches);
                    let error = error.filter(|error| !error.is_interrupted());
                    applied.ended_by = applied.ended_by.or(error);
                }
            }
        }
        if applied.ended_by.is_none() && !self.writer.read_client().has_ended() {
            let undone = self.find_undone(plan, &applied, dependencies.created_ids()).await;
            applied.mismatches.extend(undone);
        }
        applied.interrupted = self.writer.read_client().is_interrupted();
        applied.mismatches.sort();
        // In the order of the plan: the sort is stable.
        applied.steps.sort_by(|a, b| a.address.path.cmp(&b.address.path));
        applied
    }

    /// The live state from which `plan` was made, if it still counts as current.
    fn trusted_live<'p>(&self, plan: &'p Approved<'_>, path: &str) -> Option<&'p Live> {
        let live = plan.live(path)?;
        let now = self.writer.read_client().clock().now();
        (now < live.times.object.ended.saturating_add(self.trust_duration)).then_some(live)
    }
}

/// Plans a container from its live state, and reads the answers to the plan's questions.
///
/// # Errors
/// [`ApiError`](crate::api::ApiError) if all further requests would fail too.
pub async fn plan_with_answers(
    observer: &Observer,
    container: &Container,
    live: &mut Live,
    settings: &PlanSettings,
) -> Result<ContainerPlan> {
    observer.fill_from_memory(container, live).await;
    loop {
        let plan = plan::plan_container(container, live, settings);
        if plan.questions.is_empty() {
            return Ok(plan);
        }
        // Answered questions are not asked again.
        observer.answer(container, live, &plan.questions).await?;
    }
}

/// The step of `plan` at `address`.
fn step_at<'p>(plan: &'p ContainerPlan, address: &Address) -> Option<&'p Step> {
    plan.steps.iter().find(|step| step.address == *address)
}
