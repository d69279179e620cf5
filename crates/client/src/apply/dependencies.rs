//! The state of steps that other containers wait for, and the ids of created containers.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use tokio::sync::Notify;

use super::StepResult;
use crate::{address::Address, diff::Step, kind::Created};

/// The steps that others wait for: `None` until they end, then whether they succeeded.
pub(super) struct Dependencies {
    ends: RefCell<HashMap<Address, Option<bool>>>,
    created: RefCell<Created>,
    changed: Notify,
}

impl Dependencies {
    /// Those of `steps` that an edge of another container leads to.
    pub(super) fn new<'s>(steps: impl Iterator<Item = &'s Step> + Clone, created: Created) -> Self {
        let edges = steps.clone().flat_map(|step| {
            let foreign = step.after.iter().filter(|edge| edge.address.path != step.address.path);
            foreign.map(|edge| &edge.address)
        });
        let mut ends: HashMap<_, _> = edges.map(|address| (address.clone(), None)).collect();
        if !ends.is_empty() {
            let planned: HashSet<_> = steps.map(|step| &step.address).collect();
            ends.retain(|address, _| planned.contains(address));
        }
        Self { ends: RefCell::new(ends), created: RefCell::new(created), changed: Notify::new() }
    }

    /// Records the result of a step.
    pub(super) fn record_result(&self, result: &StepResult) {
        if let Some(end) = self.ends.borrow_mut().get_mut(&result.address) {
            *end = Some(result.outcome.is_success());
            self.changed.notify_waiters();
        }
    }

    /// Records the id of the container that now exists at `path`.
    pub(super) fn record_id(&self, path: &str, id: u64) {
        self.created.borrow_mut().insert(path, id);
    }

    /// The containers that the run creates, with the ids recorded so far.
    pub(super) fn created(&self) -> Created {
        self.created.borrow().clone()
    }

    /// True if the step at `address` succeeded: `None` if nobody waits for it, `Some(None)` if it
    /// has not ended.
    pub(super) fn state(&self, address: &Address) -> Option<Option<bool>> {
        self.ends.borrow().get(address).copied()
    }

    /// Waits until one of the steps ends.
    pub(super) async fn changes(&self) {
        self.changed.notified().await;
    }
}
