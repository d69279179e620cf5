//! The progress of a container's steps: which have ended, and which may start. Edges are looked up,
//! not searched.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    address::Address,
    apply::{StepOutcome, StepResult, dependencies::Dependencies},
    diff::Step,
};

/// The progress of the steps.
#[derive(Default)]
pub(super) struct StepProgress {
    /// The position of each step in the plan.
    positions: HashMap<Address, usize>,
    /// The positions of steps that have not succeeded, by section, with whether they failed.
    unsuccessful: BTreeMap<Option<&'static str>, BTreeMap<usize, bool>>,
    /// The sections in which a step was carried out.
    changed_sections: BTreeSet<Option<&'static str>>,
    /// True if anything was sent.
    pub(super) has_sent: bool,
}

/// Whether a step can start.
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
            progress.unsuccessful.entry(step.address.section).or_default().insert(position, false);
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
        let open = self.unsuccessful.entry(section).or_default();
        if result.outcome.is_success() {
            open.remove(position);
        } else {
            open.insert(*position, true);
        }
        if result.outcome == StepOutcome::Done {
            self.changed_sections.insert(section);
        }
    }

    /// True if a step that `step` waited for was carried out, so that the object of `step` may have
    /// changed too.
    pub(super) fn may_have_changed(&self, step: &Step) -> bool {
        step.after.iter().any(|edge| {
            edge.address.section != step.address.section
                && self.changed_sections.contains(&edge.address.section)
        })
    }

    /// Whether the steps before `step` have succeeded. An edge to a section means all its earlier
    /// steps.
    pub(super) fn readiness(&self, step: &Step, dependencies: &Dependencies) -> Readiness {
        let position = self.positions.get(&step.address).copied().unwrap_or(usize::MAX);
        let mut waits = false;
        for edge in &step.after {
            let (has_failed, is_open) = if edge.address.path == step.address.path {
                let before = match self.positions.get(&edge.address) {
                    Some(position) => *position..position + 1,
                    None if edge.address.entry.is_none() => 0..position,
                    // Only steps of the plan are waited for.
                    None => continue,
                };
                let open = self.unsuccessful.get(&edge.address.section).into_iter();
                let mut open = open.flat_map(|open| open.range(before.clone()));
                (open.clone().any(|(_, has_failed)| *has_failed), open.next().is_some())
            } else {
                let state = dependencies.step_success(&edge.address);
                (state == Some(Some(false)), state == Some(None))
            };
            if has_failed {
                let why = format!("`{}` must succeed first: {}", edge.address, edge.reason);
                return Readiness::Blocked(why);
            }
            waits |= is_open;
        }
        if waits { Readiness::Waits } else { Readiness::Ready }
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
        let section = Address::container("acme/shop".into()).section(section);
        entry.map_or_else(|| section.clone(), |entry| section.entry(entry))
    }

    fn step(section: &'static str, entry: &str, after: &[Address]) -> Step {
        let address = address(section, Some(entry));
        let none = Vec::new;
        let edge = |address: &Address| Edge { address: address.clone(), reason: "of a rule" };
        let action = Action::Update;
        let step = Step::new(Scope::Project, address, action, origin(1), none(), Vec::new());
        Step { after: after.iter().map(edge).collect(), ..step }
    }

    fn result(step: &Step, outcome: StepOutcome) -> StepResult {
        let (address, action) = (step.address.clone(), step.action);
        StepResult { scope: step.scope, address, action, outcome }
    }

    /// A step waits for steps, and for the earlier steps of a section, and for nothing else.
    #[test]
    fn a_step_is_ready_once_the_steps_before_it_have_succeeded() {
        let members = [step("members", "a", &[]), step("members", "b", &[])];
        let one = step("variables", "A", &[address("members", Some("b"))]);
        let all = step("variables", "B", &[address("members", None)]);
        let none = step("variables", "C", &[address("members", Some("z"))]);
        let [a, b] = &members;
        let steps = [a, b, &one, &all, &none];
        let dependencies = Dependencies::new(steps.into_iter(), CreatedContainers::default());
        let ready = |progress: &StepProgress| {
            [&one, &all, &none].map(|step| match progress.readiness(step, &dependencies) {
                Readiness::Ready => "ready",
                Readiness::Waits => "waits",
                Readiness::Blocked(_) => "blocked",
            })
        };
        for (ends, expected) in [
            (&[][..], ["waits", "waits", "ready"]),
            (&[(a, true)], ["waits", "waits", "ready"]),
            (&[(b, true)], ["ready", "waits", "ready"]),
            (&[(a, true), (b, true)], ["ready", "ready", "ready"]),
            (&[(a, false), (b, true)], ["ready", "blocked", "ready"]),
            (&[(b, false)], ["blocked", "blocked", "ready"]),
        ] {
            let mut progress = StepProgress::new(&steps);
            for (step, succeeds) in ends {
                let failed = || StepOutcome::Failed("answered 400".into());
                progress.record_result(&result(
                    step,
                    if *succeeds { StepOutcome::Done } else { failed() },
                ));
            }
            assert_eq!(ready(&progress), expected, "{ends:?}");
            let may_have_changed = ends.iter().any(|(_, succeeds)| *succeeds);
            assert_eq!(progress.may_have_changed(&one), may_have_changed, "{ends:?}");
            assert!(!progress.may_have_changed(a) && progress.position(&a.address) == Some(0));
        }
    }
}
