//! Tracks which steps of a container have ended, and which steps can start. Edges are looked up in
//! maps, without a search.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    address::Address,
    apply::{StepOutcome, StepResult, dependencies::StepDependencies},
    diff::Step,
};

/// The progress of the steps of one container.
#[derive(Default)]
pub(super) struct StepProgress {
    /// The position of each step in the plan.
    positions: HashMap<Address, usize>,
    /// For each section, the positions of the steps that have not succeeded. The value is true if the
    /// step ended with a failure, and false if it has not ended.
    unfinished_steps: BTreeMap<Option<&'static str>, BTreeMap<usize, bool>>,
    /// The sections in which a step was applied.
    changed_sections: BTreeSet<Option<&'static str>>,
    /// True if anything was sent.
    pub(super) has_sent: bool,
}

/// The readiness of a step.
pub(super) enum Readiness {
    Ready,
    Waits,
    Blocked(String),
}

impl StepProgress {
    pub(super) fn new(steps: &[&Step]) -> Self {
        let mut progress = Self::default();
        for (position, step) in steps.iter().enumerate() {
            progress.positions.insert(step.address.clone(), position);
            progress
                .unfinished_steps
                .entry(step.address.section)
                .or_default()
                .insert(position, false);
        }
        progress
    }

    /// The position of the planned step at `address`.
    pub(super) fn position(&self, address: &Address) -> Option<usize> {
        self.positions.get(address).copied()
    }

    /// Records the result of a step.
    pub(super) fn record_result(&mut self, result: &StepResult) {
        let Some(position) = self.positions.get(&result.address) else { return };
        let section = result.address.section;
        let section_steps = self.unfinished_steps.entry(section).or_default();
        if result.outcome.is_success() {
            section_steps.remove(position);
        } else {
            section_steps.insert(*position, true);
        }
        if result.outcome == StepOutcome::Done {
            self.changed_sections.insert(section);
        }
    }

    /// True if a step in another section that `step` waited for was carried out. That step may have
    /// changed the object of `step` too.
    pub(super) fn may_have_changed(&self, step: &Step) -> bool {
        step.after.iter().any(|edge| {
            edge.address.section != step.address.section
                && self.changed_sections.contains(&edge.address.section)
        })
    }

    /// The readiness of `step`, from the steps that it waits for. An edge to a section means all
    /// earlier steps in that section.
    pub(super) fn readiness(&self, step: &Step, dependencies: &StepDependencies) -> Readiness {
        let position = self.positions.get(&step.address).copied().unwrap_or(usize::MAX);
        let mut has_open_steps = false;
        for edge in &step.after {
            let (has_failed, is_open) = if edge.address.path == step.address.path {
                let earlier_positions = match self.positions.get(&edge.address) {
                    Some(position) => *position..position + 1,
                    None if edge.address.entry.is_none() => 0..position,
                    // Ignore an edge to a step that is not planned.
                    None => continue,
                };
                let section_steps = self.unfinished_steps.get(&edge.address.section).into_iter();
                let mut open_steps =
                    section_steps.flat_map(|steps| steps.range(earlier_positions.clone()));
                (open_steps.clone().any(|(_, has_failed)| *has_failed), open_steps.next().is_some())
            } else {
                let success = dependencies.step_outcome(&edge.address);
                (success == Some(Some(false)), success == Some(None))
            };
            if has_failed {
                let reason = format!("`{}` must succeed first: {}", edge.address, edge.reason);
                return Readiness::Blocked(reason);
            }
            has_open_steps |= is_open;
        }
        if has_open_steps { Readiness::Waits } else { Readiness::Ready }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        desired::testing::origin,
        diff::{Action, Edge},
        field::Scope,
        kind::CreatedContainers,
    };

    fn address(section: &'static str, entry: Option<&str>) -> Address {
        let section = Address::container("acme/shop".into()).with_section(section);
        entry.map_or_else(|| section.clone(), |entry| section.with_entry(entry))
    }

    fn step(section: &'static str, entry: &str, after: &[Address]) -> Step {
        let address = address(section, Some(entry));
        let no_changes = Vec::new;
        let make_edge = |address: &Address| Edge { address: address.clone(), reason: "of a rule" };
        let action = Action::Update;
        let step = Step::new(Scope::Project, address, action, origin(1), no_changes(), Vec::new());
        Step { after: after.iter().map(make_edge).collect(), ..step }
    }

    fn result(step: &Step, outcome: StepOutcome) -> StepResult {
        let (address, action) = (step.address.clone(), step.action);
        let origin = Some(step.origin.clone());
        StepResult { scope: step.scope, address, action, outcome, origin }
    }

    /// A step waits for single steps, or for the earlier steps of a section.
    #[test]
    fn a_step_is_ready_once_the_steps_before_it_have_succeeded() {
        let members = [step("members", "a", &[]), step("members", "b", &[])];
        let after_step = step("variables", "A", &[address("members", Some("b"))]);
        let after_section = step("variables", "B", &[address("members", None)]);
        let after_unplanned = step("variables", "C", &[address("members", Some("z"))]);
        let [a, b] = &members;
        let steps = [a, b, &after_step, &after_section, &after_unplanned];
        let dependencies = StepDependencies::new(steps.into_iter(), CreatedContainers::default());
        let readiness_names = |progress: &StepProgress| {
            [&after_step, &after_section, &after_unplanned].map(|step| {
                match progress.readiness(step, &dependencies) {
                    Readiness::Ready => "ready",
                    Readiness::Waits => "waits",
                    Readiness::Blocked(_) => "blocked",
                }
            })
        };
        for (ended_steps, expected) in [
            (&[][..], ["waits", "waits", "ready"]),
            (&[(a, true)], ["waits", "waits", "ready"]),
            (&[(b, true)], ["ready", "waits", "ready"]),
            (&[(a, true), (b, true)], ["ready", "ready", "ready"]),
            (&[(a, false), (b, true)], ["ready", "blocked", "ready"]),
            (&[(b, false)], ["blocked", "blocked", "ready"]),
        ] {
            let mut progress = StepProgress::new(&steps);
            for (step, succeeds) in ended_steps {
                let failed_outcome = || StepOutcome::Failed("answered 400".into());
                progress.record_result(&result(
                    step,
                    if *succeeds { StepOutcome::Done } else { failed_outcome() },
                ));
            }
            assert_eq!(readiness_names(&progress), expected, "{ended_steps:?}");
            let may_have_changed = ended_steps.iter().any(|(_, succeeds)| *succeeds);
            assert_eq!(progress.may_have_changed(&after_step), may_have_changed, "{ended_steps:?}");
            assert!(!progress.may_have_changed(a) && progress.position(&a.address) == Some(0));
        }
    }
}
