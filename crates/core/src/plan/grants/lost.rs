//! Handles grants that the service removes from rules together with a share or a membership. Plans
//! repairs of declared grants, and adds notes about grants that no manifest declares.

use jiff::civil::Date;

use crate::{
    address::Address,
    catalogue,
    desired::{DeclaredSection, EntryPresence, Unlisted, subject_field},
    diff::{Action, Findings, HeldObject, Note, Reason, Step},
    field::{Equality, NamedObject},
    kind::{Capability, Section},
    live::LiveEntries,
    plan::{ContainerPlan, container::ContainerPlanner},
};

impl ContainerPlanner<'_> {
    /// Plans the repair of rules. The service may remove grants from rules when a share is
    /// replaced, or when a membership ends although the user keeps access.
    pub(in crate::plan) fn plan_grant_repairs(&self, plan: &mut ContainerPlan) {
        let losing_grantees: Vec<_> = plan
            .findings
            .steps
            .iter()
            .filter_map(|step| self.grantee_losing_grants(step))
            .collect();
        if losing_grantees.is_empty() {
            return;
        }
        let open_sections = self
            .ordered_sections()
            .filter(|section| !plan.closed_sections.contains(section.kind.section));
        let section_repairs: Vec<_> = open_sections
            .filter_map(|section| self.plan_without_grants(section, &losing_grantees))
            .collect();
        let mut watched = section_repairs.iter().flat_map(|repairs| &repairs.watched);
        if let Some(until) = watched.find_map(|step| self.settings.held_until(&step.address)) {
            return self.hold_replacements(until, plan);
        }
        for repairs in section_repairs {
            // Grants in unread entries cannot be repaired afterwards. Report these entries, so that the
            // share or membership is not removed.
            for unread_part in repairs.incomplete {
                if !plan.incomplete.contains(&unread_part) {
                    plan.findings.incomplete.push(unread_part);
                }
            }
            for step in repairs.steps {
                add_possible_step(step, &mut plan.findings.steps);
            }
        }
    }

    /// The type and id of the group or user that keeps access, but may lose grants in rules because
    /// of `step`.
    fn grantee_losing_grants(&self, step: &Step) -> Option<(NamedObject, u64)> {
        let keeps_access = step.provides(Capability::NamedAccess);
        match step.action {
            Action::Delete if keeps_access => Some((NamedObject::User, step.live_id()?)),
            _ if step.replaces && self.is_group_entry(step) => {
                Some((NamedObject::Group, step.live_id()?))
            }
            _ => None,
        }
    }

    /// The differences that the section would have if its live entries had no grants to
    /// `losing_grantees`. `None` if the section cannot name users or groups, or was not read.
    fn plan_without_grants(
        &self,
        section: &DeclaredSection,
        losing_grantees: &[(NamedObject, u64)],
    ) -> Option<Findings> {
        let requires_members = section.kind.scoped_kind.requires_members;
        let live_entries =
            self.context.live.sections.get(section.kind.section).filter(|_| requires_members)?;
        let mut reduced_entries = live_entries.entries().ok()?.to_vec();
        for entry in &mut reduced_entries {
            for (object_type, id) in losing_grantees {
                *entry = entry.without_grants(section.kind.table(), *object_type, &[*id]);
            }
        }
        self.compare_section(section, &LiveEntries::Updated(reduced_entries)).ok()
    }

    /// Holds all replacements of shares and removals of members, because they would also remove a held
    /// grant.
    fn hold_replacements(&self, until: Date, plan: &mut ContainerPlan) {
        let held_steps: Vec<_> = plan
            .findings
            .steps
            .extract_if(.., |step| self.grantee_losing_grants(step).is_some())
            .collect();
        let held_objects =
            held_steps.iter().map(|step| HeldObject { address: step.address.clone(), until });
        plan.findings.held.extend(held_objects);
        plan.findings.watched.extend(held_steps);
    }

    /// Adds notes for steps that remove or replace a share. The service then also removes the grants
    /// to the group of the share. The notes name the grants that no manifest declares.
    pub(in crate::plan) fn note_lost_grants(&self, plan: &mut ContainerPlan) {
        let notes = plan.findings.steps.iter().filter_map(|step| self.lost_grants_note(step));
        plan.findings.notes.extend(notes);
    }

    fn lost_grants_note(&self, step: &Step) -> Option<Note> {
        let removes_grants = step.replaces || step.action == Action::Delete;
        let group_id = step.live_id().filter(|_| removes_grants && self.is_group_entry(step))?;
        let rules = catalogue::sections(self.declared.scope).filter(|section| {
            let mut specs = section.specs().iter();
            section.scoped_kind.requires_members
                && specs.any(|spec| spec.field.compare == Equality::Rows)
        });
        let grants_of: Vec<_> =
            rules.flat_map(|section| self.undeclared_grants(section, group_id)).collect();
        (!grants_of.is_empty())
            .then(|| Note::new(&step.address, Reason::TakesAlong { grants_of }, &step.origin))
    }

    /// The kept entries of `section` that grant access to the group `group_id` in an undeclared
    /// field. If the section is not declared or was not read, the result is the section itself.
    fn undeclared_grants(&self, section: Section, group_id: u64) -> Vec<Address> {
        let address = self.address.with_section(section.section);
        let declared = self.declared.section(section.section);
        let live_entries = self.context.live.entries(section.section);
        let (Some(declared), Some(entries)) = (declared, live_entries) else {
            return vec![address];
        };
        let entries = entries.iter().filter(|entry| {
            let name = section.entry_name(entry.fields.raw());
            let declared_entry = declared.entry(&name);
            let is_kept = match declared_entry {
                Some(entry_declaration) => entry_declaration.state == EntryPresence::Present,
                None => declared.unlisted.value != Unlisted::Delete,
            };
            let stripped_fields =
                entry.without_grants(section.table(), NamedObject::Group, &[group_id]).fields;
            let fields = entry.fields.raw().iter();
            let mut lost_fields =
                fields.filter(|(field, value)| stripped_fields.raw().get(*field) != Some(value));
            is_kept
                && lost_fields.any(|(field, _)| {
                    declared_entry.is_none_or(|declared| !declared.fields.contains_key(field))
                })
        });
        entries.map(|entry| address.with_entry(section.entry_name(entry.fields.raw()))).collect()
    }

    /// True if a group identifies the entry of `step`.
    fn is_group_entry(&self, step: &Step) -> bool {
        let section = step.address.section.and_then(|name| self.declared.section(name));
        let subject = section.and_then(|section| subject_field(section.kind));
        subject.is_some_and(|(_, object_type)| object_type == NamedObject::Group)
    }
}

/// Adds a step that is needed if the service removes grants, unless the planned step for the same
/// object already changes these fields.
fn add_possible_step(step: Step, steps: &mut Vec<Step>) {
    let planned_step = steps.iter_mut().find(|planned| planned.address == step.address);
    if step.changes.iter().all(|change| {
        planned_step.as_ref().is_some_and(|planned| planned.change(&change.field).is_some())
    }) {
        return;
    }
    // Guards check only the effects on the current live state.
    let effects = planned_step.as_ref().map(|planned| planned.effects.clone()).unwrap_or_default();
    let condition = "if removing the share or membership also removes grants in rules";
    let step = Step { possible: Some(condition), effects, ..step };
    match planned_step {
        Some(planned) => {
            let certain = std::mem::replace(planned, step);
            planned.certain_part = Some(Box::new(certain));
        }
        None => steps.push(step),
    }
}
