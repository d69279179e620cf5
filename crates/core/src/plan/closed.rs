//! Sections that something declared closes: a feature that is off, or that this run switches off.

use std::collections::BTreeMap;

use super::{ContainerPlan, container::ContainerPlanner, order};
use crate::{
    address::Address,
    desired::DeclaredSection,
    diff::{Note, Reason},
    kind::{Capability, Effect},
};

/// The capabilities that declared switches keep from a container, each with whether this run turns its
/// switch on.
pub(super) type Switches = BTreeMap<Capability, bool>;

/// The declared switch that decides about a section closed while all settings in `set` are off.
pub(super) fn switch_effect(
    set: &[&'static str],
    switches: &Switches,
    is_off: impl Fn(&str) -> bool,
) -> Option<(Capability, bool)> {
    let switch_of = |name: &&'static str| {
        let feature = Capability::Feature(name);
        Some((feature, *switches.get(&feature)?))
    };
    let opens = set.iter().filter_map(switch_of).find(|(_, opens)| *opens);
    // The others may be off without a declaration.
    opens.or_else(|| {
        set.iter()
            .find_map(switch_of)
            .filter(|_| set.iter().all(|n| switch_of(n).is_some() || is_off(n)))
    })
}

impl ContainerPlanner<'_> {
    /// True if the feature of the setting `name` is off.
    pub(super) fn is_feature_off(&self, name: &str) -> bool {
        self.context.facts.disabled_settings.contains(name)
    }

    /// Leaves out a section, because something that it needs is declared to be off.
    pub(super) fn close_section(
        &self,
        section: &DeclaredSection,
        needed: Capability,
        plan: &mut ContainerPlan,
    ) {
        let why = needed.order_reason(self.declared.scope).to_owned();
        let note =
            Note::new(&self.section_address(section), Reason::Closed { why }, &section.origin);
        plan.findings.notes.push(note);
        plan.closed_sections.insert(section.section.section);
    }

    /// Turns what could not be compared into notes if it names entries of a section that a declared
    /// switch closes.
    pub(super) fn close_unread_of_closed(&self, plan: &mut ContainerPlan) {
        let closed_entries =
            plan.closed_sections.iter().filter_map(|name| self.context.live.sections.get(name));
        let reasons: Vec<_> = closed_entries.filter_map(|found| found.entries().err()).collect();
        let shut =
            plan.findings.incomplete.extract_if(.., |scope| reasons.contains(&&scope.reason));
        plan.findings.notes.extend(shut.map(|scope| {
            let why = scope.reason.message.to_string();
            Note::new(&scope.address, Reason::Closed { why }, &self.declared.origin)
        }));
    }

    /// Closes the sections of which an earlier step of this run switches the feature off.
    pub(super) fn close_switched_off(&self, plan: &mut ContainerPlan) {
        let mut effects = plan.findings.steps.iter().flat_map(|step| &step.effects);
        if !effects.any(|effect| {
            matches!(
                effect,
                Effect::Capability { what: Capability::Feature(_), before: true, after: false }
            )
        }) {
            return;
        }
        let (scope, caller) = (self.declared.scope, &self.settings.caller);
        let steps = &mut plan.findings.steps;
        let closed = order::remove_closed(scope, caller, steps, |name| self.is_feature_off(name));
        for (name, feature) in closed {
            let is_in = |address: &Address| address.section.is_some_and(|section| section == name);
            plan.findings.refusals.retain(|refusal| !is_in(&refusal.address));
            plan.findings.problems.retain(|problem| !is_in(&problem.address));
            plan.compared_sections.remove(name);
            if let Some(section) = self.declared.section(name) {
                self.close_section(section, feature, plan);
            }
        }
        self.close_with_named_sections(plan);
    }

    /// Leaves out the steps that name an entry of a closed section.
    pub(super) fn close_with_named_sections(&self, plan: &mut ContainerPlan) {
        let closed =
            plan.closed_sections.iter().map(|name| format!("{}/", self.address.section(name)));
        let closed: Vec<_> = closed.collect();
        let steps = plan.findings.steps.extract_if(.., |step| {
            step.waits_for().any(|named| closed.iter().any(|section| named.starts_with(section)))
        });
        plan.findings.notes.extend(steps.map(|step| {
            let why = "it names objects of a feature that is off".to_owned();
            Note::new(&step.address, Reason::Closed { why }, &step.origin)
        }));
    }

    /// What the declared switches keep from the container.
    pub(super) fn declared_switches(&self) -> Switches {
        self.own_effects()
            .filter_map(|(_, effect)| match effect {
                Effect::Capability { what, before: false, after } => Some((what, after)),
                _ => None,
            })
            .collect()
    }
}
