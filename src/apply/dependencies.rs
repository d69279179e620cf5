//! How the steps stand that steps of other containers wait for, and the ids of what was created.

use std::{cell::RefCell, collections::HashMap};

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
    /// Those of `steps` to which an edge of another container leads.
    pub(super) fn of<'s>(steps: impl Iterator<Item = &'s Step> + Clone, created: Created) -> Self {
        let edges = steps.clone().flat_map(|step| {
            let foreign = step.after.iter().filter(|edge| edge.address.path != step.address.path);
            foreign.map(|edge| &edge.address)
        });
        let mut ends: HashMap<_, _> = edges.map(|address| (address.clone(), None)).collect();
        if !ends.is_empty() {
            let planned: std::collections::HashSet<_> = steps.map(|step| &step.address).collect();
            ends.retain(|address, _| planned.contains(address));
        }
        Self { ends: RefCell::new(ends), created: RefCell::new(created), changed: Notify::new() }
    }

    /// Takes in how a step ended.
    pub(super) fn end(&self, result: &StepResult) {
        if let Some(end) = self.ends.borrow_mut().get_mut(&result.address) {
            *end = Some(result.outcome.is_success());
            self.changed.notify_waiters();
        }
    }

    /// Takes in the id of what is at `path`, which is there now.
    pub(super) fn appeared(&self, path: &str, id: u64) {
        self.created.borrow_mut().insert(path, id);
    }

    /// What the run creates, with the ids that are known by now.
    pub(super) fn created(&self) -> Created {
        self.created.borrow().clone()
    }

    /// Whether the step at `address` succeeded: `None` if nobody waits for it, `Some(None)` if it
    /// has not ended.
    pub(super) fn state(&self, address: &Address) -> Option<Option<bool>> {
        self.ends.borrow().get(address).copied()
    }

    /// Waits until one of them ends.
    pub(super) async fn changes(&self) {
        self.changed.notified().await;
    }
}
