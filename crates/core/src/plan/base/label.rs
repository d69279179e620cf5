//! Labels the steps of one container's plan.

use std::collections::BTreeSet;

use super::{Adopted, BaseComparison};
use crate::{
    address::Address,
    desired::{Container, DeclaredEntry, DeclaredSection, EntryPresence, Unlisted},
    diff::{Action, FieldChange, Label, Problem, Shown, Step},
    kind::{Capability, Effect, Shape, forms},
    live::Caller,
    plan::{ContainerPlan, order},
    value::{Json, Value},
};

/// Gives all steps of `plan` the same label, because the base has no declaration to compare with.
pub(super) fn label_all(plan: &mut ContainerPlan, label: Label) -> BaseComparison {
    let steps = plan.findings.steps.iter_mut().chain(&mut plan.findings.watched);
    steps.for_each(|step| set_label(step, label));
    BaseComparison::default()
}

/// Labels a step and all its changes.
fn set_label(step: &mut Step, label: Label) {
    step.label = Some(label);
    step.changes.iter_mut().for_each(|change| change.label = Some(label));
}

/// True if apply excludes a step with this label, unless the run also writes drift.
pub(super) const fn is_excluded_label(label: Option<Label>) -> bool {
    matches!(label, Some(Label::Drift | Label::Unknown))
}

/// True if a container has the same path and the same former paths on the branch and at the base.
pub(super) fn has_same_paths(base: &Container, head: &Container) -> bool {
    base.former_paths().eq(head.former_paths()) && base.path.eq_ignore_ascii_case(&head.path)
}

/// The declarations of a container on the branch and at the base.
pub(super) struct DeclarationPair<'p> {
    pub(super) head: &'p Container,
    /// The declaration at the base.
    pub(super) base: &'p Container,
    /// The plan for the declaration at the base.
    pub(super) base_plan: &'p ContainerPlan,
}

impl DeclarationPair<'_> {
    /// Labels the steps of `plan`, made for the branch, and returns the other results of the comparison.
    pub(super) fn label_steps(&self, plan: &mut ContainerPlan, caller: &Caller) -> BaseComparison {
        let steps = plan.findings.steps.iter_mut().chain(&mut plan.findings.watched);
        steps.for_each(|step| self.label_step(step));
        include_dependencies(&mut plan.findings.steps, self.head, caller);
        let (adopted, removed) = (self.find_adopted(plan), self.find_dropped_entries(plan));
        BaseComparison { adopted, removed, ..BaseComparison::default() }
    }

    fn label_step(&self, step: &mut Step) {
        let base_step = self.base_plan.steps.iter().find(|base_step| {
            base_step.address == step.address
                && (base_step.action == Action::Delete) == (step.action == Action::Delete)
                && base_step.freed_name() == step.freed_name()
        });
        match step.action {
            Action::Delete => set_label(step, self.removal_label(step, base_step.is_some())),
            Action::Create => {
                let base_step = base_step.filter(|base_step| base_step.action == Action::Create);
                self.label_creation(step, base_step);
            }
            // The live state decides if a rename, move or restoration is needed. The plans do not
            // show which side declared it. Therefore compare the declared paths.
            Action::Update if step.address.section.is_none() => {
                let is_drift = base_step.is_some() && has_same_paths(self.base, self.head);
                set_label(step, if is_drift { Label::Drift } else { Label::Change });
            }
            Action::Update => self.label_fields(step, base_step),
        }
    }

    /// True if the base's plan may lack a step for the object of `step`.
    fn is_base_plan_doubtful(&self, step: &Step) -> bool {
        !self.base_plan.questions.is_empty() || self.base_plan.unconfirmed_cause(step).is_some()
    }

    fn removal_label(&self, step: &Step, base_removes: bool) -> Label {
        let head_entry = declared_entry(self.head, &step.address);
        if base_removes {
            Label::Drift
        } else if head_entry.is_none() && self.base_lists(step) {
            Label::Removed
        } else if head_entry.is_none()
            && self.base_may_remove(step)
            && self.is_base_plan_doubtful(step)
        {
            Label::Unknown
        } else {
            Label::Change
        }
    }

    /// True if the base deletes unlisted entries of the section of `step`.
    fn base_may_remove(&self, step: &Step) -> bool {
        let section = declared_section(self.base, &step.address);
        section.is_some_and(|section| section.unlisted.value == Unlisted::Delete)
    }

    /// True if the base lists the entry that `step` removes.
    fn base_lists(&self, step: &Step) -> bool {
        let Some(section) = declared_section(self.base, &step.address) else { return false };
        let live_name = step.live_entry().map(|live| section.kind.entry_name(live.fields.raw()));
        let address = self.base.address();
        section.present_entries().any(|entry| {
            Some(&entry.key) == live_name.as_ref()
                || section.address_of(entry, &address) == step.address
        })
    }

    fn label_creation(&self, step: &mut Step, base_step: Option<&Step>) {
        let Some(base_step) = base_step else {
            // The base's plan has no step for this object, but the base may declare the same entry.
            let base_entry = declared_entry(self.base, &step.address);
            let base_entry = base_entry.filter(|(_, entry)| entry.state == EntryPresence::Present);
            let label = match base_entry.zip(declared_entry(self.head, &step.address)) {
                Some(((_, before), (_, current))) if self.is_base_plan_doubtful(step) => {
                    if before.values() == current.values() { Label::Drift } else { Label::Both }
                }
                _ => Label::Change,
            };
            return set_label(step, label);
        };
        let address = step.address.clone();
        for change in &mut step.changes {
            change.label = Some(self.field_label(&address, change, Some(base_step)));
        }
        let is_same = step.changes.len() == base_step.changes.len()
            && step.changes.iter().all(|change| change.label == Some(Label::Drift));
        // An entry is created as a whole or not at all.
        step.label = Some(if is_same { Label::Drift } else { Label::Both });
        if !is_same {
            include_step(step);
        }
    }

    fn label_fields(&self, step: &mut Step, base_step: Option<&Step>) {
        let is_doubtful = base_step.is_none() && self.is_base_plan_doubtful(step);
        let address = step.address.clone();
        for change in &mut step.changes {
            let base_value =
                is_doubtful.then(|| declared_value(self.base, &address, &change.field)).flatten();
            let is_declared_alike = base_value.is_some()
                && base_value == declared_value(self.head, &address, &change.field);
            change.label = Some(if is_declared_alike {
                Label::Drift
            } else {
                self.field_label(&address, change, base_step)
            });
        }
        // A write-only field is sent only together with another field, or because of the command
        // line. It gets the label of the other fields.
        let is_readable = |change: &&FieldChange| *change.before != Shown::Unknown;
        let label = step.changes.iter().filter(is_readable).filter_map(|change| change.label).min();
        let label = label.unwrap_or(Label::Change);
        for change in step.changes.iter_mut().filter(|change| !is_readable(&&**change)) {
            change.label = Some(label);
        }
        step.label = Some(label);
    }

    /// The label of a field's change. `base_step` is the step of the base for the same object.
    fn field_label(
        &self,
        address: &Address,
        change: &FieldChange,
        base_step: Option<&Step>,
    ) -> Label {
        let Some(base_change) = base_step.and_then(|base_step| base_step.change(&change.field))
        else {
            return Label::Change;
        };
        // Hidden values look equal in plans. Therefore compare the declared values.
        let is_same = base_change.after == change.after
            && (*change.after != Shown::Hidden
                || declared_value(self.base, address, &change.field)
                    == declared_value(self.head, address, &change.field));
        if is_same { Label::Drift } else { Label::Both }
    }

    /// The changes planned for the base that `plan` lacks, because the branch declares the live state.
    fn find_adopted(&self, plan: &ContainerPlan) -> Vec<Adopted> {
        let find_adopted_object = |step: &Step| {
            let mut planned_steps = plan.steps.iter().chain(&plan.watched);
            let planned_step = planned_steps.find(|planned| planned.address == step.address);
            let (section, entry) = declared_entry(self.head, &step.address).or_else(|| {
                let section = declared_section(self.head, &step.address)?;
                let name = section.kind.entry_name(step.live_entry()?.fields.raw());
                Some((section, section.entry(&name)?))
            })?;
            let address = section.address_of(entry, &self.head.address());
            match (step.action, entry.state) {
                (Action::Update, EntryPresence::Present) => {
                    let fields = step.changes.iter().filter(|change| {
                        entry.fields.contains_key(&change.field)
                            && *change.before != Shown::Unknown
                            && planned_step
                                .and_then(|planned| planned.change(&change.field))
                                .is_none()
                    });
                    let fields: Vec<_> = fields.map(|change| change.field.to_string()).collect();
                    (!fields.is_empty()).then_some(Adopted { address, fields })
                }
                (Action::Create, EntryPresence::Absent)
                | (Action::Delete, EntryPresence::Present)
                    if planned_step.is_none() && !step.removes_copy =>
                {
                    Some(Adopted { address, fields: Vec::new() })
                }
                _ => None,
            }
        };
        let steps = self.base_plan.steps.iter().filter(|step| step.possible.is_none());
        steps
            .filter(|step| plan.unconfirmed_cause(step).is_none())
            .filter_map(find_adopted_object)
            .collect()
    }

    /// The addresses of live entries that the base lists and the branch does not, and that no step
    /// removes.
    fn find_dropped_entries(&self, plan: &ContainerPlan) -> Vec<Address> {
        let unlisted_notes = plan.notes.iter().filter(|note| note.reason.is_unlisted());
        let unlisted_addresses = unlisted_notes.map(|note| &note.address);
        unlisted_addresses.filter(|address| self.base_lists_live(address)).cloned().collect()
    }

    /// True if the base lists the live entry at `address`, which may end with an id.
    fn base_lists_live(&self, address: &Address) -> bool {
        let section = declared_section(self.base, address);
        let Some((section, name)) = section.zip(address.entry.as_deref()) else { return false };
        section.present_entries().any(|entry| {
            let suffix = name.strip_prefix(entry.key.as_str());
            let has_id = suffix.is_some_and(|suffix| suffix.starts_with('@'));
            name == entry.key || (section.kind.allows_duplicates() && has_id)
        })
    }
}

/// Labels everything that steps of the branch depend on as part of the branch's change.
fn include_dependencies(steps: &mut [Step], head: &Container, caller: &Caller) {
    // The fields of an identity change together.
    for step in &mut *steps {
        let identity =
            declared_section(head, &step.address).map_or(&[][..], |section| section.kind.identity);
        let changes = step.changes.iter_mut();
        let mut identity_changes: Vec<_> =
            changes.filter(|change| identity.contains(&&*change.field)).collect();
        if identity_changes.iter().any(|change| !is_excluded_label(change.label)) {
            identity_changes.iter_mut().for_each(|change| include_in_branch(&mut change.label));
        }
    }
    let creation_index = steps.iter().position(is_creation);
    if creation_index.is_some_and(|index| steps[index].label == Some(Label::Change)) {
        return steps.iter_mut().for_each(|step| set_label(step, Label::Change));
    }
    if steps.iter().all(|step| is_excluded_label(step.label)) {
        return;
    }
    // The other steps need the creation, and a container is created as a whole.
    for step in steps.iter_mut() {
        if creation_index.is_some() || step.address.section.is_none() {
            include_step(step);
        }
    }
    include_copies(steps);
    include_needed_steps(steps, head, caller);
}

/// If a step of the branch depends on another step, labels the other step as part of the branch's
/// change too.
fn include_needed_steps(steps: &mut [Step], head: &Container, caller: &Caller) {
    let needed_steps = order::needed_steps(head.scope, caller, steps);
    let mut pending: Vec<_> =
        (0..steps.len()).filter(|index| !is_excluded_label(steps[*index].label)).collect();
    while let Some(step_index) = pending.pop() {
        for (other_index, capability) in &needed_steps[step_index] {
            // Every member provides `NamedAccess`, but only members that the step names are needed.
            let needs_access = *capability == Some(Capability::NamedAccess);
            if needs_access
                && !refers_to_entry(&steps[step_index], &steps[*other_index].address, head)
            {
                continue;
            }
            let other_step = &mut steps[*other_index];
            if is_excluded_label(other_step.label) {
                pending.push(*other_index);
            }
            match capability {
                Some(capability) => include_provider(other_step, head, *capability),
                None => include_step(other_step),
            }
        }
    }
}

/// Labels the part of `step` that provides `capability` as part of the branch's change.
fn include_provider(step: &mut Step, head: &Container, capability: Capability) {
    let section = declared_section(head, &step.address).filter(|_| step.action == Action::Update);
    let Some((declared, live)) = section.zip(step.live_entry().cloned()) else {
        return include_step(step);
    };
    let mut has_provider = false;
    for change in step.changes.iter_mut().filter(|change| {
        let Some(value) = change.after.value() else { return false };
        let mut fields_after = live.fields.raw().clone();
        fields_after.insert(change.field.to_string(), value.clone());
        let effects = declared.kind.rules().effects(live.id(), live.fields.raw(), &fields_after);
        effects.contains(&Effect::provides(capability))
    }) {
        include_in_branch(&mut change.label);
        has_provider = true;
    }
    if has_provider { include_in_branch(&mut step.label) } else { include_step(step) }
}

/// True if the branch's part of `step` refers to the entry at `address`, or is below it.
pub(super) fn refers_to_entry(step: &Step, address: &Address, head: &Container) -> bool {
    let mut changed_texts = BTreeSet::new();
    let changes = step.changes.iter().filter(|change| !is_excluded_label(change.label));
    changes
        .filter_map(|change| change.after.value())
        .for_each(|value| collect_texts(value, &mut changed_texts));
    if let Some((section, entry)) = declared_entry(head, &step.address)
        && let Some(parent) = section.kind.scoped_kind.parent
        && Some(parent.section) == address.section
        && let Some(field) = entry.fields.get(parent.field)
        && let Some(parent_name) = field.value.plain_json()
    {
        collect_texts(parent_name, &mut changed_texts);
    }
    let reference_name = declared_entry(head, address).and_then(|(section, entry)| {
        section.kind.reference_name(&forms::plain_fields(&entry.values()))
    });
    let name = reference_name.as_ref().or(address.entry.as_ref());
    name.is_some_and(|name| changed_texts.contains(&name.to_lowercase()))
}

/// Replaces an excluded label by `Both`, which belongs to the branch.
fn include_in_branch(label: &mut Option<Label>) {
    if is_excluded_label(*label) {
        *label = Some(Label::Both);
    }
}

/// Labels the whole `step` as part of the branch's change.
fn include_step(step: &mut Step) {
    step.changes.iter_mut().for_each(|change| include_in_branch(&mut change.label));
    include_in_branch(&mut step.label);
}

/// If the container must be created, labels all its steps as part of the branch's change.
pub(super) fn include_creation(steps: &mut [Step]) {
    if steps.iter().any(is_creation) {
        steps.iter_mut().for_each(include_step);
    }
}

fn is_creation(step: &Step) -> bool {
    step.address.section.is_none() && step.action == Action::Create
}

/// Includes the removal of a copy in the branch's change if the branch changes the original.
fn include_copies(steps: &mut [Step]) {
    let originals =
        steps.iter().filter(|step| !step.removes_copy && !is_excluded_label(step.label));
    let originals: Vec<_> = originals.map(|step| step.address.clone()).collect();
    for copy_removal in steps.iter_mut().filter(|step| step.removes_copy) {
        if originals.iter().any(|original| copy_removal.removes_copy_of(original)) {
            include_step(copy_removal);
        }
    }
}

/// Adds all texts in `value` to `texts`, in lower case.
fn collect_texts(value: &Json, texts: &mut BTreeSet<String>) {
    match value {
        Json::String(text) => drop(texts.insert(text.to_lowercase())),
        Json::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Json::Object(fields) => fields.values().for_each(|field| collect_texts(field, texts)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// The declared section of `container` at `address`; `None` if there is no declared section.
pub(super) fn declared_section<'c>(
    container: &'c Container,
    address: &Address,
) -> Option<&'c DeclaredSection> {
    container.section(address.section?)
}

/// The declared entry at `address`.
fn declared_entry<'c>(
    container: &'c Container,
    address: &Address,
) -> Option<(&'c DeclaredSection, &'c DeclaredEntry)> {
    let (section, container) = (declared_section(container, address)?, container.address());
    let mut entries = section.entries.iter();
    Some((section, entries.find(|entry| section.address_of(entry, &container) == *address)?))
}

/// The fields of a mapping in `container` whose values cause `problem`; empty if the problem is in a
/// list, or concerns the mapping as a whole.
pub(super) fn problem_fields(container: &Container, problem: &Problem) -> Vec<String> {
    let declared = declared_entry(container, &problem.address);
    let mapping = declared.filter(|(section, _)| section.kind.shape == Shape::Mapping);
    let fields = mapping.into_iter().flat_map(|(_, entry)| entry.fields.iter());
    let causes = fields.filter(|(_, field)| field.origin == problem.origin);
    causes.map(|(name, _)| name.to_owned()).collect()
}

/// The declared value of a field of the object at `address`.
pub(super) fn declared_value(
    container: &Container,
    address: &Address,
    field: &str,
) -> Option<Value> {
    let declared_field = match declared_entry(container, address) {
        Some((_, entry)) => entry.fields.get(field),
        None => container.creation_policy.create_fields().and_then(|create| create.get(field)),
    };
    declared_field.map(|sourced| sourced.value)
}
