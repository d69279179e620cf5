//! Sections that a declared switch closes: their feature is off, or this run switches it off.

use std::collections::BTreeMap;

use super::{ContainerPlan, container::ContainerPlanner, order};
use crate::{
    address::Address,
    catalogue,
    desired::DeclaredSection,
    diff::{Action, Note, Reason},
    kind::{Capability, Effect, Section},
};

/// The capabilities that a container lacks now and that a declared switch controls; `true` if the
/// declaration turns the switch on.
pub(super) type Switches = BTreeMap<Capability, bool>;

/// The declared switch that decides about a section that is closed while all of these `features` are
/// off.
pub(super) fn deciding_switch(
    features: &[&'static str],
    switches: &Switches,
    is_off: impl Fn(&str) -> bool,
) -> Option<(Capability, bool)> {
    let switch_of = |name: &&'static str| {
        let feature = Capability::Feature(name);
        Some((feature, *switches.get(&feature)?))
    };
    let opening_switch = features.iter().filter_map(switch_of).find(|(_, opens)| *opens);
    // It stays closed only if every other feature is declared off, or is off now.
    opening_switch.or_else(|| {
        features
            .iter()
            .find_map(switch_of)
            .filter(|_| features.iter().all(|n| switch_of(n).is_some() || is_off(n)))
    })
}

impl ContainerPlanner<'_> {
    /// True if the feature of the setting `name` is off.
    pub(super) fn is_feature_off(&self, name: &str) -> bool {
        self.context.facts.disabled_settings.contains(name)
    }

    /// Adds a note for a section that is not compared, because a capability that it needs is declared off.
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
        plan.closed_sections.insert(section.kind.section);
    }

    /// Turns unread parts into notes if their reason is that of a closed section: they name its entries.
    pub(super) fn note_unread_in_closed(&self, plan: &mut ContainerPlan) {
        let closed_entries =
            plan.closed_sections.iter().filter_map(|name| self.context.live.sections.get(name));
        let reasons: Vec<_> =
            closed_entries.filter_map(|entries| entries.entries().err()).collect();
        let closed_scopes =
            plan.findings.incomplete.extract_if(.., |scope| reasons.contains(&&scope.reason));
        plan.findings.notes.extend(closed_scopes.map(|scope| {
            let why = scope.reason.message.to_string();
            Note::new(&scope.address, Reason::Closed { why }, &self.declared.origin)
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
                    before: true,
                    after: false
                }
            )
        }) {
            return;
        }
        let (scope, caller) = (self.declared.scope, &self.settings.caller);
        let steps = &mut plan.findings.steps;
        let closed =
            order::drop_closed_sections(scope, caller, steps, |name| self.is_feature_off(name));
        for (name, feature) in closed {
            let is_in = |address: &Address| address.section.is_some_and(|section| section == name);
            plan.findings.refusals.retain(|refusal| !is_in(&refusal.address));
            plan.findings.problems.retain(|problem| !is_in(&problem.address));
            plan.compared_sections.remove(name);
            if let Some(section) = self.declared.section(name) {
                self.close_section(section, feature, plan);
            }
        }
        self.drop_steps_naming_closed(plan);
    }

    /// Replaces steps that name an entry of a closed section by notes.
    pub(super) fn drop_steps_naming_closed(&self, plan: &mut ContainerPlan) {
        let closed =
            plan.closed_sections.iter().map(|name| format!("{}/", self.address.section(name)));
        let closed_prefixes: Vec<_> = closed.collect();
        let steps = plan.findings.steps.extract_if(.., |step| {
            step.waits_for()
                .any(|address| closed_prefixes.iter().any(|section| address.starts_with(section)))
        });
        plan.findings.notes.extend(steps.map(|step| {
            let why = "it names objects of a feature that is off".to_owned();
            Note::new(&step.address, Reason::Closed { why }, &step.origin)
        }));
    }

    /// Adds notes about updates of the container that name entries which it does not declare: the service
    /// refuses the update if they do not exist, and the plan does not read them.
    pub(super) fn note_undeclared_names(&self, plan: &mut ContainerPlan) {
        let scope = self.declared.scope;
        let section = |name| catalogue::section(scope, name);
        let steps = plan.findings.steps.iter().filter(|step| step.action == Action::Update);
        let steps = steps.filter(|step| {
            step.address.section.and_then(section).is_some_and(Section::is_in_object)
        });
        let names = steps.flat_map(|step| {
            order::followed_names(scope, step).into_iter().map(move |named| (step, named))
        });
        plan.findings.notes.extend(names.filter_map(|(step, (section_name, name))| {
            let mut declared = self.declared.present_entries(section_name);
            let is_declared = declared.any(|entry| entry.key == name);
            let noun = section(section_name).filter(|_| !is_declared)?.noun;
            let what =
                format!("fails without a {noun} `{name}`, which `{section_name}` does not declare");
            Some(Note::new(&step.address, Reason::Besides { what }, &step.origin))
        }));
    }

    /// The switches that the container declares for capabilities that it lacks now.
    pub(super) fn declared_switches(&self) -> Switches {
        self.target_effects()
            .filter_map(|(_, effect)| match effect {
                Effect::Capability { capability: what, before: false, after } => {
                    Some((what, after))
                }
                _ => None,
            })
            .collect()
    }
}
