//! How far a run goes: the part of a plan that `--limit` leaves, and what of it changes what no
//! document declares.
//!
//! The limit comes first, and every guard counts what is left: so a change of much can be made in
//! steps, each of which a guard lets pass.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    sync::Arc,
};

use schemars::JsonSchema;
use serde::Serialize;

use super::{Limits, Plan, guard};
use crate::{
    desired::Container,
    diff::{Note, Reason, Refusal, Step},
    origin::Origin,
};

/// How far a run goes.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// How many groups and projects it changes, the first ones that have changes; what those depend
    /// on comes in addition.
    pub limit: Option<NonZeroUsize>,
    /// How much it may change of what only a rule brings in.
    pub reach: Limits,
}

impl Default for Extent {
    fn default() -> Self {
        Self { limit: None, reach: Limits::REACH }
    }
}

/// What a limit left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Limited {
    /// The limit.
    pub to: usize,
    /// How many groups and projects have changes beyond it.
    pub left_out: usize,
}

/// What rules brought in.
#[derive(Debug, Default)]
pub(super) struct BroughtIn {
    /// By path the glob that did.
    by: BTreeMap<Arc<str>, Arc<str>>,
    /// By glob, where its rule is written, and how much it brought in.
    all: BTreeMap<Arc<str>, (Origin, usize)>,
}

impl BroughtIn {
    pub(super) fn add(&mut self, container: &Container) {
        let Some(by) = &container.brought_in else { return };
        self.by.insert(container.path.clone(), by.clone());
        let (_, all) = self.all.entry(by.clone()).or_insert_with(|| (container.origin.clone(), 0));
        *all += 1;
    }

    /// What of `steps` reaches too far.
    pub(super) fn refusals(&self, steps: &[Step], limits: &Limits) -> Vec<Refusal> {
        let paths: BTreeSet<_> = steps.iter().map(|step| &step.address.path).collect();
        let mut changed: BTreeMap<_, usize> = BTreeMap::new();
        for by in paths.into_iter().filter_map(|path| self.by.get(path)) {
            *changed.entry(by).or_default() += 1;
        }
        let refusal = |(by, (origin, all)): (&Arc<str>, &(Origin, usize))| {
            guard::reach(by, origin, *all, changed.get(by).copied()?, limits)
        };
        self.all.iter().filter_map(refusal).collect()
    }
}

impl Plan {
    /// Leaves the steps of the first `most` groups and projects that have some, and of those that
    /// they depend on. What guards refuse of the others, and what their steps would do besides, goes
    /// with them; everything else that was found stays.
    pub(super) fn limit(&mut self, most: usize) {
        let mut paths: Vec<Arc<str>> =
            self.findings.steps.iter().map(|step| step.address.path.clone()).collect();
        paths.dedup();
        let mut kept: BTreeSet<Arc<str>> = paths.iter().take(most).cloned().collect();
        self.add_needed(&mut kept);
        let is_left = |path: &Arc<str>| kept.contains(path);
        let left_out: BTreeSet<Arc<str>> =
            paths.into_iter().filter(|path| !is_left(path)).collect();
        self.limited = Some(Limited { to: most, left_out: left_out.len() });
        self.live.retain(|path, _| is_left(path));
        let findings = &mut self.findings;
        findings.steps.retain(|step| is_left(&step.address.path));
        findings.refusals.retain(|refusal| !left_out.contains(&refusal.address.path));
        let is_of_a_step = |note: &Note| {
            matches!(
                note.reason,
                Reason::Besides { .. } | Reason::TakesAlong { .. } | Reason::Waits { .. }
            )
        };
        findings
            .notes
            .retain(|note| !(is_of_a_step(note) && left_out.contains(&note.address.path)));
    }

    /// Adds to `kept` the containers that steps of it wait for.
    fn add_needed(&self, kept: &mut BTreeSet<Arc<str>>) {
        loop {
            let own = self.findings.steps.iter().filter(|step| kept.contains(&step.address.path));
            let needed = own.flat_map(|step| step.after.iter().map(|edge| &edge.address.path));
            let new: Vec<_> = needed.filter(|path| !kept.contains(*path)).cloned().collect();
            if new.is_empty() {
                return;
            }
            kept.extend(new);
        }
    }
}
