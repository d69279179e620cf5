//! Removes the parts of declarations that a run excludes.

use std::collections::{BTreeMap, BTreeSet};

use super::label::{self, is_excluded_label};
use crate::{
    address::Glob,
    desired::{Container, DeclaredEntry, DeclaredFields},
    diff::{Action, Label, Problem, Step},
    kind::Shape,
    plan::ContainerPlan,
};

/// The part of a container's declaration that belongs to the branch.
#[derive(Clone, Debug)]
pub enum BranchPart {
    /// The whole container: nothing is excluded.
    Whole,
    /// No part of the container.
    Nothing,
    /// A part of the container.
    Partial(Box<Container>),
}

impl BranchPart {
    /// The part of `declared` that belongs to the branch according to the labels in `plan`. The
    /// part does not contain the declarations that cause the `drift_problems`.
    pub fn from_labels(
        declared: &Container,
        plan: &ContainerPlan,
        drift_problems: &[Problem],
    ) -> Self {
        let excluded_steps: Vec<_> =
            plan.steps.iter().filter(|step| has_excluded_part(step)).collect();
        if excluded_steps.is_empty() && drift_problems.is_empty() {
            return Self::Whole;
        }
        if excluded_steps.iter().any(|step| step.address.section.is_none()) {
            return Self::Nothing;
        }
        let mut container = declared.clone();
        drift_problems.iter().for_each(|problem| drop_problem_cause(&mut container, problem));
        let address = declared.address();
        for step in excluded_steps {
            let index =
                container.section_names().position(|name| Some(name) == step.address.section);
            let Some(section_index) = index else { continue };
            let section = &mut container.sections[section_index];
            section.extra_fields = section.field_names().map(str::to_owned).collect();
            if section.kind.shape != Shape::List {
                // A mapping that is created or removed, and a switch, are excluded as a whole.
                if step.action != Action::Update || section.kind.shape == Shape::Switch {
                    container.sections.remove(section_index);
                } else {
                    let entries = section.entries.iter_mut();
                    entries.for_each(|entry| drop_excluded(&mut entry.fields, step));
                }
                continue;
            }
            let live_name =
                step.live_entry().map(|live| section.kind.entry_name(live.fields.raw()));
            let position = section.entries.iter().position(|entry| {
                section.address_of(entry, &address) == step.address
                    || (step.removes_copy && Some(&entry.key) == live_name.as_ref())
            });
            match position {
                Some(position)
                    if step.action == Action::Update
                        && !step.changes.iter().any(|change| {
                            is_excluded_label(change.label)
                                && section.kind.identity.contains(&&*change.field)
                        }) =>
                {
                    drop_excluded(&mut section.entries[position].fields, step);
                }
                position => {
                    let removed_key = position.map(|position| section.entries.remove(position).key);
                    let names = [live_name, removed_key].into_iter().flatten();
                    section.unmanaged_globs.extend(names.map(|name| Glob::exact(&name)));
                }
            }
        }
        Self::Partial(Box::new(container))
    }
}

/// The `base_problems` that the branch can leave unsolved: no step of the branch in `plan` depends
/// on a solution. The base has these problems too. The caller removes the causes of the returned
/// problems and plans again. The result is valid only if the new plan has the same changes of the
/// branch ([`has_same_changes`]).
pub fn unneeded_problems(
    declared: &Container,
    plan: &ContainerPlan,
    base_problems: &[Problem],
) -> Vec<Problem> {
    // Nothing is known of a step with this label. If no step belongs to the branch, nothing is written.
    let has_unknown_label = plan.steps.iter().any(|step| step.label == Some(Label::Unknown));
    if has_unknown_label || plan.steps.iter().all(Step::is_drift) {
        return Vec::new();
    }
    let branch_steps: Vec<_> =
        plan.steps.iter().filter(|step| !is_excluded_label(step.label)).collect();
    let is_unneeded = |problem: &&Problem| {
        problem.address.section.is_some()
            && !branch_steps
                .iter()
                .any(|step| label::refers_to_entry(step, &problem.address, declared))
    };
    base_problems.iter().filter(is_unneeded).cloned().collect()
}

/// True if `branch_plan`, made for a part of the declaration of `full_plan`, has the same changes of
/// the branch, and neither a problem nor an unread part that `full_plan` lacks.
pub fn has_same_changes(full_plan: &ContainerPlan, branch_plan: &ContainerPlan) -> bool {
    describe_branch_changes(full_plan) == describe_branch_changes(branch_plan)
        && branch_plan.problems.iter().all(|problem| full_plan.problems.contains(problem))
        && branch_plan.incomplete.iter().all(|unread| full_plan.incomplete.contains(unread))
}

/// The changes of `plan` that belong to the branch, as texts to compare.
fn describe_branch_changes(plan: &ContainerPlan) -> BTreeSet<String> {
    let steps = plan.steps.iter().filter(|step| !is_excluded_label(step.label));
    let describe = |step: &Step| {
        let changes = step.changes.iter().filter(|change| !is_excluded_label(change.label));
        let values: BTreeMap<_, _> =
            changes.map(|change| (&change.field, format!("{:?}", change.after))).collect();
        format!("{} {:?} {:?} {values:?}", step.address, step.action, step.possible)
    };
    steps.map(describe).collect()
}

/// Removes the declaration that causes `problem` from `container`: an entry of a list, a field of a
/// mapping, or a whole mapping.
fn drop_problem_cause(container: &mut Container, problem: &Problem) {
    let fields = label::problem_fields(container, problem);
    let address = container.address();
    let mut sections = container.sections.iter();
    let index = sections.position(|section| Some(section.kind.section) == problem.address.section);
    let Some(section_index) = index else { return };
    let section = &mut container.sections[section_index];
    section.extra_fields = section.field_names().map(str::to_owned).collect();
    if section.kind.shape == Shape::List {
        let is_cause =
            |entry: &DeclaredEntry| section.address_of(entry, &address) == problem.address;
        let Some(position) = section.entries.iter().position(is_cause) else { return };
        let key = section.entries.remove(position).key;
        section.unmanaged_globs.push(Glob::exact(&key));
    } else if fields.is_empty() {
        container.sections.remove(section_index);
    } else {
        for entry in &mut section.entries {
            let remaining_fields =
                entry.fields.iter().filter(|(name, _)| !fields.iter().any(|field| field == name));
            entry.fields = remaining_fields.collect();
        }
    }
}

/// True if some part of a step is excluded.
fn has_excluded_part(step: &Step) -> bool {
    is_excluded_label(step.label)
        || step.changes.iter().any(|change| is_excluded_label(change.label))
}

/// Removes the fields that `step` excludes.
fn drop_excluded(fields: &mut DeclaredFields, step: &Step) {
    let remaining_fields = fields.iter().filter(|(name, _)| {
        step.change(name).is_none_or(|change| !is_excluded_label(change.label))
    });
    *fields = remaining_fields.collect();
}

/// The excluded parts of `steps`, for display; all of `steps` if `includes_all` is true. The
/// returned steps have no calls, because apply does not send them.
pub fn excluded_steps(steps: &[Step], includes_all: bool) -> Vec<Step> {
    steps
        .iter()
        .filter(|step| includes_all || has_excluded_part(step))
        .map(|step| {
            let mut step = Step { calls: Vec::new(), planned_calls: Vec::new(), ..step.clone() };
            if !includes_all && !is_excluded_label(step.label) {
                step.changes.retain(|change| is_excluded_label(change.label));
                step.label = step.changes.iter().filter_map(|change| change.label).min();
            }
            step
        })
        .collect()
}
