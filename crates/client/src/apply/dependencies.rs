//! Tracks dependencies between containers: the outcomes of awaited steps, and the ids of created
//! containers.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use tokio::sync::Notify;

use super::StepResult;
use crate::{address::Address, diff::Step, kind::CreatedContainers};

/// The outcomes of steps that other steps wait for. An outcome is `None` until the step ends, and
/// then `true` if the step succeeded.
pub(super) struct StepDependencies {
    outcomes: RefCell<HashMap<Address, Option<bool>>>,
    created_ids: RefCell<CreatedContainers>,
    step_ended: Notify,
}

impl StepDependencies {
    /// Tracks each of `steps` that a step in another container waits for.
    pub(super) fn new<'s>(
        steps: impl Iterator<Item = &'s Step> + Clone,
        created: CreatedContainers,
    ) -> Self {
        let awaited_addresses = steps.clone().flat_map(|step| {
            let external_edges =
                step.after.iter().filter(|edge| edge.address.path != step.address.path);
            external_edges.map(|edge| &edge.address)
        });
        let mut outcomes: HashMap<_, _> =
            awaited_addresses.map(|address| (address.clone(), None)).collect();
        if !outcomes.is_empty() {
            let planned_addresses: HashSet<_> = steps.map(|step| &step.address).collect();
            outcomes.retain(|address, _| planned_addresses.contains(address));
        }
        Self {
            outcomes: RefCell::new(outcomes),
            created_ids: RefCell::new(created),
            step_ended: Notify::new(),
        }
    }

    /// Records the result of a step.
    pub(super) fn record_result(&self, result: &StepResult) {
        if let Some(outcome) = self.outcomes.borrow_mut().get_mut(&result.address) {
            *outcome = Some(result.outcome.is_success());
            self.step_ended.notify_waiters();
        }
    }

    /// Records the id of the container that now exists at `path`.
    pub(super) fn record_id(&self, path: &str, id: u64) {
        self.created_ids.borrow_mut().insert(path, id);
    }

    /// The containers that the run creates, with the ids recorded so far.
    pub(super) fn created_ids(&self) -> CreatedContainers {
        self.created_ids.borrow().clone()
    }

    /// The outcome of the step at `address`: `Some(Some(succeeded))`, or `Some(None)` if the step has
    /// not ended yet. `None` if the step is not tracked.
    pub(super) fn step_outcome(&self, address: &Address) -> Option<Option<bool>> {
        self.outcomes.borrow().get(address).copied()
    }

    /// Waits until any tracked step ends.
    pub(super) async fn wait_for_step_end(&self) {
        self.step_ended.notified().await;
    }
}
