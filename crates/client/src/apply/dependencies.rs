//! The state of steps that other containers wait for, and the ids of created containers.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use tokio::sync::Notify;

use super::StepResult;
use crate::{address::Address, diff::Step, kind::CreatedContainers};

/// The outcomes of steps that others wait for: `None` until the step ends, then `true` on success.
pub(super) struct Dependencies {
    outcomes: RefCell<HashMap<Address, Option<bool>>>,
    created_ids: RefCell<CreatedContainers>,
    step_ended: Notify,
}

impl Dependencies {
    /// Tracks the `steps` that an edge of another container leads to.
    pub(super) fn new<'s>(
        steps: impl Iterator<Item = &'s Step> + Clone,
        created: CreatedContainers,
    ) -> Self {
        let edges = steps.clone().flat_map(|step| {
            let foreign = step.after.iter().filter(|edge| edge.address.path != step.address.path);
            foreign.map(|edge| &edge.address)
        });
        let mut ends: HashMap<_, _> = edges.map(|address| (address.clone(), None)).collect();
        if !ends.is_empty() {
            let planned: HashSet<_> = steps.map(|step| &step.address).collect();
            ends.retain(|address, _| planned.contains(address));
        }
        Self {
            outcomes: RefCell::new(ends),
            created_ids: RefCell::new(created),
            step_ended: Notify::new(),
        }
    }

    /// Records the result of a step.
    pub(super) fn record_result(&self, result: &StepResult) {
        if let Some(end) = self.outcomes.borrow_mut().get_mut(&result.address) {
            *end = Some(result.outcome.is_success());
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

    /// True if the step at `address` succeeded: `None` if nobody waits for it, `Some(None)` if it
    /// has not ended.
    pub(super) fn step_state(&self, address: &Address) -> Option<Option<bool>> {
        self.outcomes.borrow().get(address).copied()
    }

    /// Waits until one of the steps ends.
    pub(super) async fn wait_for_step_end(&self) {
        self.step_ended.notified().await;
    }
}
