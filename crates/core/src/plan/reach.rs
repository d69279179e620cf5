//! The extent of a run: the part of a plan within `--limit`, and guards for changes of containers
//! without a document.
//!
//! The limit is applied before guards count. Therefore a large change can be split into several
//! runs, each of which passes the guards.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GuardLimits, Plan, extend_to_closure, guard};
use crate::{
    desired::Container,
    diff::{GuardRefusal, Reason, Step},
    origin::Origin,
};

/// The extent of a run.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The maximum number of groups and projects to change. The run changes the first groups and
    /// projects with steps, and also the containers that they depend on.
    pub max_containers: Option<NonZeroUsize>,
    /// The limits for changes of containers that only a rule includes.
    pub reach_limits: GuardLimits,
    /// True if drift from before a branch is only shown, so that guards ignore it.
    pub ignores_drift: bool,
}

impl Default for Extent {
    fn default() -> Self {
        Self { max_containers: None, reach_limits: GuardLimits::REACH, ignores_drift: false }
    }
}

/// The effect of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedLimit {
    /// The limit.
    pub to: usize,
    /// The number of further groups and projects with steps.
    pub left_out: usize,
}

/// The containers without a document that rules include.
#[derive(Debug, Default)]
pub(super) struct IncludedContainers {
    /// The glob that included each container, by path.
    glob_by_path: BTreeMap<Arc<str>, Arc<str>>,
    /// The origin of each rule, and the number of containers that it includes, by glob.
    rules_by_glob: BTreeMap<Arc<str>, (Origin, usize)>,
}

impl IncludedContainers {
    pub(super) fn add(&mut self, container: &Container) {
        let Some(glob) = &container.including_glob else { return };
        self.glob_by_path.insert(container.path.clone(), glob.clone());
        let (_, included_count) =
            self.rules_by_glob.entry(glob.clone()).or_insert_with(|| (container.origin.clone(), 0));
        *included_count += 1;
    }

    /// Refusals for steps that change too many included containers.
    pub(super) fn find_refusals(&self, steps: &[&Step], limits: &GuardLimits) -> Vec<GuardRefusal> {
        let paths: BTreeSet<_> = steps.iter().map(|step| &step.address.path).collect();
        let mut changed_counts: BTreeMap<_, usize> = BTreeMap::new();
        for changed_glob in paths.into_iter().filter_map(|path| self.glob_by_path.get(path)) {
            *changed_counts.entry(changed_glob).or_default() += 1;
        }
        self.rules_by_glob
            .iter()
            .filter_map(|(glob, (origin, included_count))| {
                let changed_count = *changed_counts.get(glob)?;
                guard::refuse_reach(glob, origin, *included_count, changed_count, limits)
            })
            .collect()
    }
}

impl Plan {
    /// Keeps the steps of the first `max_containers` groups and projects with steps, and of those
    /// that they depend on. Removes refusals and notes of other steps, and keeps all other results.
    pub(super) fn keep_first_containers(&mut self, max_containers: usize) {
        let mut paths: Vec<Arc<str>> =
            self.findings.steps.iter().map(|step| step.address.path.clone()).collect();
        paths.dedup();
        let mut selected: BTreeSet<Arc<str>> = paths.iter().take(max_containers).cloned().collect();
        // Add the containers that the selected ones depend on.
        extend_to_closure(&mut selected, |selected| {
            let steps =
                self.findings.steps.iter().filter(|step| selected.contains(&step.address.path));
            let needed_paths = steps.flat_map(|step| &step.after).map(|edge| &edge.address.path);
            needed_paths.filter(|path| !selected.contains(*path)).cloned().collect()
        });
        let is_selected = |path: &Arc<str>| selected.contains(path);
        let skipped_paths: BTreeSet<Arc<str>> =
            paths.into_iter().filter(|path| !is_selected(path)).collect();
        self.limited = Some(AppliedLimit { to: max_containers, left_out: skipped_paths.len() });
        self.live.retain(|path, _| is_selected(path));
        let findings = &mut self.findings;
        findings.steps.retain(|step| is_selected(&step.address.path));
        findings.refusals.retain(|refusal| !skipped_paths.contains(&refusal.address.path));
        findings.notes.retain(|note| {
            let describes_step = matches!(
                note.reason,
                Reason::Besides { .. } | Reason::TakesAlong { .. } | Reason::Waits { .. }
            );
            !(describes_step && skipped_paths.contains(&note.address.path))
        });
    }
}
