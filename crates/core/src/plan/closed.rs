//! Handles sections that a declared switch closes: the feature of the section is off, or this run
//! switches it off.

use std::{borrow::Cow, collections::BTreeMap};

use super::{ContainerPlan, container::ContainerPlanner, order};
use crate::{
    address::Address,
    catalogue,
    desired::DeclaredSection,
    diff::{Action, Note, Reason},
    kind::{Capability, Effect, NameIndex, Section},
    live::{LiveEntries, entry_ids},
};

/// The capabilities that a container lacks now and that a declared switch controls. The value is
/// `true` if the declaration turns the switch on.
pub(super) type DeclaredSwitches = BTreeMap<Capability, bool>;

/// The declared switch that decides whether a section is closed. The section is closed while all of
/// these `features` are off. The second value is `true` if the declaration turns the switch on.
fn deciding_switch(
    features: &[&'static str],
    switches: &DeclaredSwitches,
    is_off: impl Fn(&str) -> bool,
) -> Option<(Capability, bool)> {
    let find_switch = |name: &&'static str| {
        let feature = Capability::Feature(name);
        Some((feature, *switches.get(&feature)?))
    };
    let opening_switch = features.iter().filter_map(find_switch).find(|(_, opens)| *opens);
    // The section is closed only if every other feature is declared off, or is off now.
    opening_switch.or_else(|| {
        features.iter().find_map(find_switch).filter(|_| {
            features
                .iter()
                .all(|feature_name| find_switch(feature_name).is_some() || is_off(feature_name))
        })
    })
}

impl ContainerPlanner<'_> {
    /// True if the feature of the setting `name` is off.
    pub(super) fn is_feature_off(&self, name: &str) -> bool {
        self.context.facts.disabled_settings.contains(name)
    }

    /// The declared switch that decides whether a section is closed, with `true` if this run turns
    /// the switch on. The section is closed if one of the needed switches is not turned on, even if
    /// another switch is turned on.
    pub(super) fn section_switch(
        &self,
        section: Section,
        switches: &DeclaredSwitches,
    ) -> Option<(Capability, bool)> {
        let switch_sets = section.scoped_kind.closed_by.iter();
        let unarchives = self.context.facts.is_archived.then_some((Capability::Writable, true));
        let mut deciding_switches = switch_sets
            .filter_map(|set| deciding_switch(set, switches, |name| self.is_feature_off(name)))
            .chain(unarchives);
        let first_switch = deciding_switches.next()?;
        let closed_switch = first_switch.1.then(|| deciding_switches.find(|(_, opens)| !opens));
        Some(closed_switch.flatten().unwrap_or(first_switch))
    }

    /// The names of objects, including the declared entries of sections that this run opens. These
    /// sections cannot be read before the run.
    pub(super) fn names_with_opened_sections(
        &self,
        switches: &DeclaredSwitches,
    ) -> Cow<'_, NameIndex> {
        let mut names = Cow::Borrowed(self.context.names);
        for section in self.ordered_sections().map(|section| section.kind) {
            let is_unread = names.entry_ids(section.section).is_some_and(Result::is_err);
            if is_unread && matches!(self.section_switch(section, switches), Some((_, true))) {
                let new_entries = entry_ids(section, self.declared, &LiveEntries::NoContainer);
                names.to_mut().insert_entry_ids(section.section, new_entries);
            }
        }
        names
    }

    /// Adds a note for a section that is not compared, because a capability that it needs is declared off.
    pub(super) fn close_section(
        &self,
        section: &DeclaredSection,
        needed_capability: Capability,
        plan: &mut ContainerPlan,
    ) {
        let reason =
            Reason::Closed { why: needed_capability.order_reason(self.declared.scope).to_owned() };
        let address = self.section_address(section);
        plan.findings.notes.push(Note::new(&address, reason, &section.origin));
        plan.closed_sections.insert(section.kind.section);
    }

    /// Replaces an unread part by a note if a closed section is unread for the same reason. Such a
    /// part needs the entries of the closed section.
    pub(super) fn note_closed_parts(&self, plan: &mut ContainerPlan) {
        let closed_entries =
            plan.closed_sections.iter().filter_map(|name| self.context.live.sections.get(name));
        let reasons: Vec<_> =
            closed_entries.filter_map(|entries| entries.entries().err()).collect();
        let closed_parts =
            plan.findings.incomplete.extract_if(.., |unread| reasons.contains(&&unread.reason));
        plan.findings.notes.extend(closed_parts.map(|part| {
            let message = part.reason.message.to_string();
            Note::new(&part.address, Reason::Closed { why: message }, &self.declared.origin)
        }));
    }

    /// Closes the sections whose feature an earlier step of this run switches off.
    pub(super) fn close_disabled_sections(&self, plan: &mut ContainerPlan) {
        let mut effects = plan.findings.steps.iter().flat_map(|step| &step.effects);
        if !effects.any(|effect| {
            matches!(
                effect,
                Effect::Capability {
                    capability: Capability::Feature(_),
                    had_capability: true,
                    has_capability: false
                }
            )
        }) {
            return;
        }
        let (scope, caller) = (self.declared.scope, &self.settings.caller);
        let steps = &mut plan.findings.steps;
        let closed_sections =
            order::drop_closed_sections(scope, caller, steps, |name| self.is_feature_off(name));
        for (name, feature) in closed_sections {
            let is_in = |address: &Address| address.section.is_some_and(|section| section == name);
            plan.findings.refusals.retain(|refusal| !is_in(&refusal.address));
            plan.findings.problems.retain(|problem| !is_in(&problem.address));
            plan.compared_sections.remove(name);
            if let Some(section) = self.declared.section(name) {
                self.close_section(section, feature, plan);
            }
        }
        self.drop_dependent_steps(plan);
    }

    /// Replaces each step that names an entry of a closed section by a note.
    pub(super) fn drop_dependent_steps(&self, plan: &mut ContainerPlan) {
        let prefixes =
            plan.closed_sections.iter().map(|name| format!("{}/", self.address.with_section(name)));
        let closed_prefixes: Vec<_> = prefixes.collect();
        let steps = plan.findings.steps.extract_if(.., |step| {
            step.awaited_objects()
                .any(|address| closed_prefixes.iter().any(|section| address.starts_with(section)))
        });
        plan.findings.notes.extend(steps.map(|step| {
            let reason = "it names objects of a feature that is off".to_owned();
            Note::new(&step.address, Reason::Closed { why: reason }, &step.origin)
        }));
    }

    /// Adds a note for each update of the container that names an undeclared entry. The service
    /// refuses the update if the entry does not exist, and the plan does not read the entry.
    pub(super) fn note_undeclared_names(&self, plan: &mut ContainerPlan) {
        let scope = self.declared.scope;
        let find_section = |name| catalogue::find_section(scope, name);
        let steps = plan.findings.steps.iter().filter(|step| step.action == Action::Update);
        let steps = steps.filter(|step| {
            step.address.section.and_then(find_section).is_some_and(Section::is_part_of_container)
        });
        let names = steps.flat_map(|step| {
            order::followed_names(scope, step)
                .into_iter()
                .map(move |section_and_name| (step, section_and_name))
        });
        plan.findings.notes.extend(names.filter_map(|(step, (section_name, name))| {
            let mut declared_entries = self.declared.present_entries(section_name);
            let is_declared = declared_entries.any(|entry| entry.key == name);
            let noun = find_section(section_name).filter(|_| !is_declared)?.noun;
            let what = format!(
                "it fails without a {noun} `{name}`, which `{section_name}` does not declare"
            );
            Some(Note::new(&step.address, Reason::Besides { what }, &step.origin))
        }));
    }

    /// The switches that the container declares for capabilities that it lacks now.
    pub(super) fn declared_switches(&self) -> DeclaredSwitches {
        self.target_effects()
            .filter_map(|(_, effect)| match effect {
                Effect::Capability { capability, had_capability: false, has_capability: after } => {
                    Some((capability, after))
                }
                _ => None,
            })
            .collect()
    }
}
