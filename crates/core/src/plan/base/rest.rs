//! Removes the parts of declarations that a run excludes.

use super::label::is_excluded_label;
use crate::{
    address::Glob,
    desired::{Container, DeclaredFields},
    diff::{Action, Step},
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
    /// The part of `declared` that belongs to the branch, according to the labels in `plan`.
    pub fn from_labels(declared: &Container, plan: &ContainerPlan) -> Self {
        let excluded_steps: Vec<_> =
            plan.steps.iter().filter(|step| has_excluded_part(step)).collect();
        if excluded_steps.is_empty() {
            return Self::Whole;
        }
        if excluded_steps.iter().any(|step| step.address.section.is_none()) {
            return Self::Nothing;
        }
        let mut container = declared.clone();
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
