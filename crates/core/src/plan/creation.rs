//! Plans a container that does not exist: first its creation, then all other steps.

use std::collections::BTreeMap;

use super::{ContainerPlan, container::ContainerPlanner, guard, order};
use crate::{
    catalogue::{self, constraints, fork_of::FORK_OF},
    desired::{CreationPolicy, DeclaredEntry, DeclaredFields, DeclaredSection},
    diff::{self, Action, DiffContext, Note, Problem, Reason, Step, Support},
    field::Scope,
    kind::{
        Capability, ContainerFacts, Effect, FieldSelection, PlannedCall, Section, Shape,
        calls::CallPurpose, forms,
    },
    live::{ExtraFact, LiveEntries},
    origin::Sourced,
    value::{Fields, Object, Value},
};

/// The condition of steps for a project that gets its contents from another one.
const CONTENTS_CONDITION: &str = "unless the source of the project already has it";

impl ContainerPlanner<'_> {
    /// Plans a missing container.
    pub(super) fn plan_missing(&self, plan: &mut ContainerPlan) {
        match &self.declared.creation_policy {
            CreationPolicy::Allowed(create) => self.plan_creation(create, plan),
            CreationPolicy::Unselected { .. } => plan.stop_with_problem(self.missing_problem(true)),
            CreationPolicy::Forbidden => plan.stop_with_problem(self.missing_problem(false)),
        }
    }

    /// Plans the creation, with the sections that the same request sets, and then everything else.
    fn plan_creation(&self, create: &DeclaredFields, plan: &mut ContainerPlan) {
        match self.creation_step(create, plan) {
            Ok(step) => plan.findings.steps.push(step),
            Err(problem) => return plan.stop_with_problem(*problem),
        }
        let is_empty = !plan.steps.iter().any(|step| step.provides(Capability::Branch));
        let has_no_branch = is_empty && !self.is_fork();
        let facts = &ContainerFacts { has_no_branch, ..self.context.facts.clone() };
        let content_planner =
            ContainerPlanner { context: DiffContext { facts, ..self.context }, ..*self };
        if !has_no_branch {
            content_planner.plan_later_fields(plan);
        }
        for section in
            self.ordered_sections().filter(|section| !section.kind.is_created_with_container())
        {
            let mut switch_sets = section.kind.scoped_kind.closed_by.iter();
            let closed_set = switch_sets.find(|set| {
                let mut features = set.iter().map(|name| Capability::Feature(name));
                features
                    .all(|feature| plan.steps.iter().any(|step| step.removes_capability(feature)))
            });
            if let Some(set) = closed_set {
                self.close_section(section, Capability::Feature(set[0]), plan);
                continue;
            }
            // A new section is empty. It counts as unreadable if the id of a user that it names is
            // unknown.
            let live_entries = self.context.live.sections.get(section.kind.section);
            let live_entries = live_entries.unwrap_or(&LiveEntries::NoContainer);
            let may_be_filled =
                plan.steps.iter().any(|step| step.effects.contains(&Effect::AddsContents));
            if may_be_filled && live_entries.entries().is_ok() {
                plan.findings.extend(self.plan_possible_section(section, CONTENTS_CONDITION));
                continue;
            }
            match content_planner.compare_section(section, live_entries) {
                Ok(findings) => plan.findings.extend(findings),
                Err(reason) => {
                    plan.add_incomplete(self.section_address(section), reason, &section.origin);
                }
            }
        }
        self.defer_children(plan);
        self.drop_dependent_steps(plan);
        self.add_inherited_levels(plan);
        self.refuse_low_access(plan);
        self.mark_outsiders(plan);
        plan.user_rules = self.user_rules();
        self.note_side_effects(plan);
        self.note_undeclared_names(plan);
        plan.findings.refusals.extend(guard::refuse_openings(&plan.findings.steps));
        order::order_steps(self.declared.scope, &self.settings.caller, &mut plan.findings.steps);
    }

    /// The creation step, with the sections that the same request sets. Fields that must wait
    /// become notes.
    fn creation_step(
        &self,
        create: &DeclaredFields,
        plan: &mut ContainerPlan,
    ) -> Result<Step, Box<Problem>> {
        let (container_kind, _) = catalogue::container(self.declared.scope);
        let mut fields = self.creation_fields(create);
        let mut notes = Vec::new();
        for (name, (section, field)) in &fields {
            let limit_wait_reason = self.check_field_limits(*section, name, field, plan)?;
            let forbids_projects =
                constraints::find_constraints("create", None).any(|constraint| {
                    let value = field
                        .value
                        .plain_json()
                        .filter(|_| constraint.group_setting.field == *name);
                    value.is_some_and(|value| constraint.forbids(value, Scope::Project))
                });
            let must_stay_open = self.declared.lifecycle.may_get_new_projects && forbids_projects;
            let wait_reason = must_stay_open.then(|| "until the projects in it exist".to_owned());
            let wait_reason = wait_reason.or(limit_wait_reason);
            notes.extend(wait_reason.map(|why| self.waiting_note(*section, name, field, why)));
        }
        for note in &notes {
            fields.remove(&*note.fields[0]);
        }
        let values = fields.iter();
        let mut values: Fields =
            values.map(|(name, (_, field))| ((*name).to_owned(), field.value.clone())).collect();
        let mut changes = Vec::new();
        for (name, (section, field)) in &fields {
            match section.describe_wait(name, &values, None, !self.is_fork()) {
                Some(reason) => notes.push(self.waiting_note(*section, name, field, reason)),
                None if self.is_set_later(*section, name, &field.value) => {}
                None => changes.push(diff::creation_change(section.field(name), name, field)),
            }
        }
        values.retain(|name, value| {
            let section = fields.get(name).map(|(section, _)| *section);
            !section.is_some_and(|section| self.is_set_later(section, name, value))
        });
        plan.findings.notes.extend(notes);
        let calls = self.creation_calls(&values, &fields)?;
        let (scope, origin) = (self.declared.scope, self.declared.origin.clone());
        let step = Step::new(scope, self.address.clone(), Action::Create, origin, changes, calls);
        match self.context.creation_problem(container_kind, &step, &mut plan.findings) {
            Some(problem) => Err(Box::new(problem)),
            None => Ok(Step { effects: self.creation_effects(container_kind, &values), ..step }),
        }
    }

    /// The effects of the create request with these `values`. Includes two effects of the sections
    /// that the request also sets: changes of visibility, and changes of features that are on in a
    /// new container.
    fn creation_effects(&self, container_kind: Section, values: &Fields) -> Vec<Effect> {
        let plain_values = forms::plain_fields(values);
        let find_effects =
            |section: Section| section.rules().effects(None, &Object::new(), &plain_values);
        let effects = self.sections_in_create().flat_map(|section| find_effects(section.kind));
        std::iter::once(Effect::provides(Capability::Exists))
            .chain(effects.filter(|effect| match effect {
                Effect::Capability {
                    capability: Capability::Feature(_),
                    had_capability: before,
                    ..
                } => *before,
                effect => matches!(effect, Effect::Visibility { .. }),
            }))
            .chain(self.preceding_moves())
            .chain(find_effects(container_kind))
            .collect()
    }

    /// True if the new project is a fork, which gets branches from its source.
    fn is_fork(&self) -> bool {
        let create = self.declared.creation_policy.create_fields();
        create.is_some_and(|fields| fields.contains_key(FORK_OF))
            || self.declared.present_entries(FORK_OF).next().is_some()
    }

    /// True if a field names an entry that cannot exist before the container does: a declared entry,
    /// or one that a fork gets from its source.
    fn is_set_later(&self, section: Section, name: &str, value: &Value) -> bool {
        let field = section.field(name);
        let is_default = value.plain_json() == field.default.service.as_ref();
        field.relations.follows.is_some_and(|followed_section| {
            let mut entries = self.declared.present_entries(followed_section);
            let is_new = entries.any(|entry| !is_default && value.text() == Some(&*entry.key));
            is_new || self.is_fork()
        })
    }

    /// Plans fields that the create request cannot set, because they name entries that are created
    /// later. Until then, these fields have the defaults of the service, or those of the source of a
    /// fork.
    fn plan_later_fields(&self, plan: &mut ContainerPlan) {
        for section in self.sections_in_create() {
            let kind = section.kind;
            for entry in &section.entries {
                let is_later = |(name, field): &(&str, Sourced<Value>)| {
                    self.is_set_later(kind, name, &field.value)
                };
                let fields: DeclaredFields = entry.fields.iter().filter(is_later).collect();
                let service_default = |name: &str| kind.field(name).default.service.clone();
                let defaults =
                    fields.keys().map(|name| (name.to_owned(), service_default(name).into()));
                let live = kind.read(&defaults.collect(), FieldSelection::All);
                let entry = DeclaredEntry { fields, ..entry.clone() };
                let declared = DeclaredSection::with_entries(kind, &section.origin, vec![entry]);
                let live = LiveEntries::Single(Some(live.into()));
                plan.findings.extend(if self.is_fork() {
                    self.plan_possible_section(&declared, CONTENTS_CONDITION)
                } else {
                    self.compare_section(&declared, &live).unwrap_or_default()
                });
            }
        }
    }

    /// The sections that the create request also sets.
    fn sections_in_create(&self) -> impl Iterator<Item = &DeclaredSection> {
        self.ordered_sections().filter(|section| section.kind.is_created_with_container())
    }

    /// All fields of the create request: the fields of `create`, and the fields of the sections
    /// that the request also sets.
    fn creation_fields<'f>(
        &'f self,
        create: &'f DeclaredFields,
    ) -> BTreeMap<&'f str, (Section, Sourced<Value>)> {
        let (container_kind, _) = catalogue::container(self.declared.scope);
        let create_fields = create.iter().map(|(name, field)| (name, (container_kind, field)));
        let section_fields = self.sections_in_create().flat_map(|section| {
            section.entries.iter().flat_map(move |entry| {
                let resolved_values =
                    forms::resolve_conditions(section.kind, &entry.values(), &Object::new());
                let mut resolved_values = resolved_values.unwrap_or_default();
                entry.fields.iter().map(move |(name, field)| {
                    let value = resolved_values.remove(name).unwrap_or(field.value);
                    (name, (section.kind, Sourced { value, ..field }))
                })
            })
        });
        create_fields.chain(section_fields).collect()
    }

    /// Refuses fields that the service's release lacks, and values that the group above prevents.
    /// Returns the reason if the field must wait for that group.
    fn check_field_limits(
        &self,
        section: Section,
        name: &str,
        field: &Sourced<Value>,
        plan: &mut ContainerPlan,
    ) -> Result<Option<String>, Box<Problem>> {
        let context = self.context;
        let section_address = self.address.with_section(section.section);
        let (limit, address) =
            match diff::release_support(section, name, &field.value, context.release) {
                Support::Unsupported(limit) if section.shape == Shape::Container => {
                    (Some(limit), self.address)
                }
                Support::Unsupported(limit) => (Some(limit), &section_address),
                support => {
                    if support == Support::UnknownRelease {
                        plan.findings.add_missing_fact(ExtraFact::Release);
                    }
                    let findings = &mut plan.findings;
                    let limit = context.group_limit(section, name, &field.value, findings);
                    (limit, &section_address)
                }
            };
        match limit.map(|limit| limit.into_problem(address, &field.origin)) {
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
        wait_reason: String,
    ) -> Note {
        let address = self.address.with_section(section.section);
        let note = Note::new(&address, Reason::Waits { why: wait_reason }, &field.origin);
        Note { fields: vec![name.to_owned()], ..note }
    }

    /// The requests that create the container. The service's names of import hosts replace the
    /// neutral words for these hosts.
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
        for (neutral_word, name) in &self.settings.host_names {
            for call in &mut calls {
                call.request = call.request.clone().rename_segment(neutral_word, name);
            }
        }
        Ok(calls)
    }
}
