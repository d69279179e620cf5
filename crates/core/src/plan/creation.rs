//! The plan of a container that does not exist: its creation comes first, all other steps after it.

use std::collections::BTreeMap;

use super::{ContainerPlan, container::ContainerPlanner, guard, order};
use crate::{
    catalogue::{self, constraints},
    desired::{CreationPolicy, Declared, DeclaredSection, DesiredEntry},
    diff::{self, Action, DiffContext, Note, Problem, Reason, Step, Support},
    field::Scope,
    kind::{
        Capability, Effect, Facts, FieldSelection, PlannedCall, Section, Shape, calls::CallPurpose,
        forms,
    },
    live::{ExtraFact, LiveEntries},
    origin::Sourced,
    value::{Fields, Object, Value},
};

impl ContainerPlanner<'_> {
    /// Plans a missing container.
    pub(super) fn plan_missing(&self, plan: &mut ContainerPlan) {
        match &self.declared.create {
            CreationPolicy::Allowed(create) => self.plan_creation(create, plan),
            CreationPolicy::Unselected { .. } => plan.close(self.missing_problem(true)),
            CreationPolicy::Forbidden => plan.close(self.missing_problem(false)),
        }
    }

    /// Its creation comes first, with the sections that the same request sets; everything else
    /// comes after it.
    fn plan_creation(&self, create: &Declared, plan: &mut ContainerPlan) {
        match self.creation_step(create, plan) {
            Ok(step) => plan.findings.steps.push(step),
            Err(problem) => return plan.close(*problem),
        }
        let is_empty = !plan.steps.iter().any(|step| step.provides(Capability::Branch));
        let facts = &Facts { is_empty, ..self.context.facts.clone() };
        let inside = ContainerPlanner { context: DiffContext { facts, ..self.context }, ..*self };
        if !is_empty {
            inside.plan_later_fields(plan);
        }
        for section in
            self.ordered_sections().filter(|section| !section.section.comes_with_container())
        {
            let mut sets = section.section.scoped_kind.closed_by.iter();
            let closed_set = sets.find(|set| {
                let mut features = set.iter().map(|name| Capability::Feature(name));
                features.all(|off| plan.steps.iter().any(|step| step.removes_capability(off)))
            });
            if let Some(set) = closed_set {
                self.close_section(section, Capability::Feature(set[0]), plan);
                continue;
            }
            // The section is empty, but ids of the users that it names may be unknown.
            let found = self
                .context
                .live
                .sections
                .get(section.section.section)
                .unwrap_or(&LiveEntries::Fresh);
            let may_be_filled = plan.steps.iter().any(|step| step.effects.contains(&Effect::Fills));
            if may_be_filled && found.entries().is_ok() {
                let condition = "unless the source of the project already has it";
                plan.findings.extend(self.plan_possible_section(section, condition));
                continue;
            }
            match inside.compare_section(section, found) {
                Ok(findings) => plan.findings.extend(findings),
                Err(reason) => plan.add_incomplete(self.section_address(section), reason),
            }
        }
        self.hold_children(plan);
        self.close_with_named_sections(plan);
        self.refuse_low_access(plan);
        self.mark_outsiders(plan);
        plan.user_rules = self.user_rules();
        self.note_side_effects(plan);
        plan.findings.refusals.extend(guard::refuse_openings(&plan.findings.steps));
        order::order_steps(self.declared.scope, &self.settings.caller, &mut plan.findings.steps);
    }

    /// The creation step, with the sections that the same request sets. Fields that must wait
    /// become notes.
    fn creation_step(
        &self,
        create: &Declared,
        plan: &mut ContainerPlan,
    ) -> Result<Step, Box<Problem>> {
        let (container_kind, _) = catalogue::container(self.declared.scope);
        let mut fields = self.creation_fields(create);
        let mut notes = Vec::new();
        for (name, (section, field)) in &fields {
            let limit = self.group_limit(*section, name, field, plan)?;
            let closes = constraints::constraints_over("create", None).any(|row| {
                let by = field.value.plain().filter(|_| row.by.field == *name);
                by.is_some_and(|by| row.forbids(by, Scope::Project))
            });
            let is_needed_open = self.declared.lifecycle.may_get_projects && closes;
            let until = is_needed_open.then(|| "until the projects in it exist".to_owned());
            notes.extend(
                until.or(limit).map(|reason| self.waiting_note(*section, name, field, reason)),
            );
        }
        for note in &notes {
            fields.remove(&*note.fields[0]);
        }
        let mut values: Fields = fields
            .iter()
            .map(|(name, (_, field))| ((*name).to_owned(), field.value.clone()))
            .collect();
        let mut changes = Vec::new();
        for (name, (section, field)) in &fields {
            match section.describe_wait(name, &values, None, true) {
                Some(reason) => notes.push(self.waiting_note(*section, name, field, reason)),
                None if self.names_new_entry(*section, name, &field.value) => {}
                None => changes.push(diff::creation_change(section.field(name), name, field)),
            }
        }
        values.retain(|name, value| {
            let section = fields.get(name).map(|(section, _)| *section);
            !section.is_some_and(|section| self.names_new_entry(section, name, value))
        });
        plan.findings.notes.extend(notes);
        let calls = self.creation_calls(&values, &fields)?;
        let (scope, origin) = (self.declared.scope, self.declared.origin.clone());
        let step = Step::new(scope, self.address.clone(), Action::Create, origin, changes, calls);
        if let Some(problem) =
            self.context.creation_problem(container_kind, &step, &mut plan.findings)
        {
            return Err(Box::new(problem));
        }
        let after = forms::plain_fields(&values);
        let effects_of = |section: Section| section.rules().effects(None, &Object::new(), &after);
        let section_effects =
            self.sections_in_create().flat_map(|section| effects_of(section.section));
        let effects = std::iter::once(Effect::provides(Capability::Exists))
            .chain(section_effects.filter(|effect| match effect {
                Effect::Capability { what: Capability::Feature(_), before, .. } => *before,
                effect => matches!(effect, Effect::Visibility { .. }),
            }))
            .chain(self.preceding_moves())
            .chain(effects_of(container_kind));
        Ok(Step { effects: effects.collect(), ..step })
    }

    /// True if a field names an entry that cannot exist before the container does.
    fn names_new_entry(&self, section: Section, name: &str, value: &Value) -> bool {
        let field = section.field(name);
        let followed = field.relations.follows.and_then(|of| self.declared.section(of));
        let is_default = value.plain() == field.default.service.as_ref();
        followed.is_some_and(|followed| {
            followed.present().any(|entry| !is_default && value.text() == Some(&*entry.key))
        })
    }

    /// Plans what the creating request cannot set, because it names entries that come later. Until then,
    /// the container has the defaults of the service.
    fn plan_later_fields(&self, plan: &mut ContainerPlan) {
        for section in self.sections_in_create() {
            let kind = section.section;
            for entry in &section.entries {
                let is_later = |(name, field): &(&str, Sourced<Value>)| {
                    self.names_new_entry(kind, name, &field.value)
                };
                let fields: Declared = entry.fields.iter().filter(is_later).collect();
                let default = |name: &str| kind.field(name).default.service.clone();
                let raw =
                    fields.keys().map(|name| (name.to_owned(), default(name).into())).collect();
                let live = kind.read(&raw, FieldSelection::All);
                let entry = DesiredEntry { fields, ..entry.clone() };
                let declared = DeclaredSection::with_entries(kind, &section.origin, vec![entry]);
                let live = LiveEntries::One(Some(live.into()));
                plan.findings.extend(self.compare_section(&declared, &live).unwrap_or_default());
            }
        }
    }

    /// The sections that the creating request sets too.
    fn sections_in_create(&self) -> impl Iterator<Item = &DeclaredSection> {
        self.ordered_sections().filter(|section| section.section.comes_with_container())
    }

    /// All fields of the creating request: those of `create`, and those of sections set with it.
    fn creation_fields<'f>(
        &'f self,
        create: &'f Declared,
    ) -> BTreeMap<&'f str, (Section, Sourced<Value>)> {
        let (container_kind, _) = catalogue::container(self.declared.scope);
        let create_fields = create.iter().map(|(name, field)| (name, (container_kind, field)));
        let along = self.sections_in_create().flat_map(|section| {
            section.entries.iter().flat_map(move |entry| {
                let resolved_values =
                    forms::resolve_conditions(section.section, &entry.values(), &Object::new());
                let mut resolved_values = resolved_values.unwrap_or_default();
                entry.fields.iter().map(move |(name, field)| {
                    let value = resolved_values.remove(name).unwrap_or(field.value);
                    (name, (section.section, Sourced { value, ..field }))
                })
            })
        });
        create_fields.chain(along).collect()
    }

    /// Refuses fields that the service's release lacks, and values that the group above prevents;
    /// returns why a field waits for that group, if so.
    fn group_limit(
        &self,
        section: Section,
        name: &str,
        field: &Sourced<Value>,
        plan: &mut ContainerPlan,
    ) -> Result<Option<String>, Box<Problem>> {
        let context = self.context;
        let of_section = self.address.section(section.section);
        let (limit, at) = match diff::release_support(section, name, &field.value, context.release)
        {
            Support::Unsupported(limit) if section.shape == Shape::Container => {
                (Some(limit), self.address)
            }
            Support::Unsupported(limit) => (Some(limit), &of_section),
            support => {
                if support == Support::UnknownRelease {
                    plan.findings.add_question(ExtraFact::Release);
                }
                (context.group_limit(section, name, &field.value, &mut plan.findings), &of_section)
            }
        };
        match limit.map(|limit| limit.into_problem(at, &field.origin)) {
            Some(Ok(problem)) => Err(Box::new(problem)),
            Some(Err(reason)) => Ok(Some(reason)),
            None => Ok(None),
        }
    }

    fn waiting_note(
        &self,
        section: Section,
        name: &str,
        field: &Sourced<Value>,
        why: String,
    ) -> Note {
        let address = self.address.section(section.section);
        let note = Note::new(&address, Reason::Waits { why }, &field.origin);
        Note { fields: vec![name.to_owned()], ..note }
    }

    /// The requests that create it, with the service's own names for hosts of imports.
    fn creation_calls(
        &self,
        values: &Fields,
        fields: &BTreeMap<&str, (Section, Sourced<Value>)>,
    ) -> Result<Vec<PlannedCall>, Box<Problem>> {
        let mut calls =
            self.container_calls(CallPurpose::Create(values), self.context.target, |name| {
                let origin = fields.get(name).map(|(_, field)| &field.origin);
                origin.unwrap_or(&self.declared.origin).clone()
            })?;
        for (neutral, name) in &self.settings.hosts {
            for call in &mut calls {
                call.request = call.request.clone().rename(neutral, name);
            }
        }
        Ok(calls)
    }
}
