//! Plans one container, section by section.

use std::{borrow::Cow, collections::BTreeSet};

use super::{ContainerPlan, PlanSettings, closed::DeclaredSwitches, guard, order};
use crate::{
    address::Address,
    catalogue,
    cause::Cause,
    desired::{Container, DeclaredSection, subject_field},
    diff::{
        self, Action, DiffContext, Findings, Note, Problem, Reason, Step,
        texts::{self, placeholders},
    },
    field::Scope,
    kind::{
        Capability, ContainerFacts, Effect, ImportState, LiveNamespace, NameIndex, NamespaceOwner,
        Shape, Target,
    },
    level::OWNER,
    live::{LiveContainer, LiveEntries, Presence, entry_ids},
    release::DetectedRelease,
    text::escape,
    value::Json,
};

/// Plans one container. If [`Findings::questions`](diff::Findings::questions) is not empty, the
/// plan is not complete. The caller reads the facts that the questions name, and calls this
/// function again.
pub fn plan_container(
    declared: &Container,
    live: &LiveContainer,
    settings: &PlanSettings,
) -> ContainerPlan {
    let mut plan = ContainerPlan::default();
    let (address, names) = (declared.address(), collect_names(declared, live, settings));
    let empty_facts = ContainerFacts { has_no_branch: true, ..ContainerFacts::default() };
    let new_target =
        |namespace| Target { namespace, ..Target::new(declared.scope, declared.path.clone()) };
    let (target, facts) = match &live.presence {
        Presence::Existing(target, facts) => (Cow::Borrowed(target), facts),
        Presence::Missing(target) => (Cow::Borrowed(target), &empty_facts),
        Presence::MissingNamespace(group) => {
            let id = settings.creatable_containers.id(Scope::Group, group);
            let new_namespace = id.map(|id| LiveNamespace { id, owner: NamespaceOwner::Group });
            (Cow::Owned(new_target(new_namespace)), &empty_facts)
        }
        _ => (Cow::Owned(new_target(None)), &empty_facts),
    };
    let context = DiffContext {
        declared_sections: &declared.sections,
        target: &target,
        container_address: &address,
        caller: &settings.caller,
        facts,
        live,
        names: &names,
        group_declarations: &settings.group_declarations,
        release: match live.read_release {
            DetectedRelease::Hidden => {
                settings.release.map_or(DetectedRelease::Hidden, DetectedRelease::Known)
            }
            release => release,
        },
        secrets: &settings.secrets,
        resend_selectors: &settings.resend_selectors,
    };
    let planner = ContainerPlanner { declared, settings, address: &address, context };
    planner.plan_by_presence(&mut plan);
    if declared.is_watched || settings.held_until(&address).is_some() {
        plan.findings.watched.append(&mut plan.findings.steps);
        plan.findings.refusals.clear();
        plan.user_rules.clear();
    }
    settings.holds.add_held_objects(declared, &mut plan.findings, &settings.moves);
    planner.refuse_low_role(&mut plan);
    plan
}

/// The ids of the users, groups and other objects that entries name.
fn collect_names(declared: &Container, live: &LiveContainer, settings: &PlanSettings) -> NameIndex {
    let mut names = live
        .names
        .with_created_containers(&settings.creatable_containers)
        .with_caller_id(settings.caller.id);
    // This run may add the token's user to a group.
    names.add_caller_groups(|group| {
        let path_below = format!("{group}/");
        let username = settings.caller.username.to_lowercase();
        settings.group_declarations.has_member_above(&path_below, &username)
    });
    for section in catalogue::sections(declared.scope) {
        let Some(live_entries) = live.sections.get(section.section) else { continue };
        // Members and shares show the ids of the users and groups that rules name.
        if let (Ok(entries), Some((_, object_type))) =
            (live_entries.entries(), subject_field(section))
        {
            for entry in entries {
                let Some(id) = entry.id() else { continue };
                let name = section.entry_name(entry.fields.raw());
                names.insert_reverse_lookup(object_type, id, &name);
            }
        }
        // Entries that this run created already have ids.
        if section.called_by.is_some() && names.entry_ids(section.section).is_some() {
            names.insert_entry_ids(section.section, entry_ids(section, declared, live_entries));
        }
    }
    names
}

/// A container that is being planned.
pub(super) struct ContainerPlanner<'a> {
    pub(super) declared: &'a Container,
    pub(super) settings: &'a PlanSettings,
    pub(super) address: &'a Address,
    pub(super) context: DiffContext<'a>,
}

impl ContainerPlanner<'_> {
    /// The address of a section.
    pub(super) fn section_address(&self, section: &DeclaredSection) -> Address {
        self.address.with_section(section.kind.section)
    }

    /// Compares a section. Steps under a hold are only watched: they are shown, but not applied.
    pub(super) fn compare_section(
        &self,
        section: &DeclaredSection,
        live_entries: &LiveEntries,
    ) -> Result<Findings, Cause> {
        let mut findings = diff::compare_section(section, live_entries, self.context)?;
        self.settings.holds.watch_held_steps(section.kind, &mut findings, &self.settings.moves);
        Ok(findings)
    }

    /// Plans possible steps for a section that cannot be read yet. `condition` is the condition of
    /// these steps. Steps under a hold are only watched.
    pub(super) fn plan_possible_section(
        &self,
        section: &DeclaredSection,
        condition: &'static str,
    ) -> Findings {
        let mut findings = diff::plan_possible(section, condition, self.context);
        self.settings.holds.watch_held_steps(section.kind, &mut findings, &self.settings.moves);
        findings
    }

    /// True if a whole section is held.
    pub(super) fn is_held(&self, section: &DeclaredSection) -> bool {
        self.settings.held_until(&self.section_address(section)).is_some()
    }

    /// Plans a container that exists.
    pub(super) fn plan_existing(&self, plan: &mut ContainerPlan) {
        let facts = self.context.facts;
        if self.declared.lifecycle.absent_origin().is_some() {
            return self.plan_deletion(plan);
        }
        if let Some(import_state) = &facts.import_state {
            return self.plan_import(import_state, plan);
        }
        let switches = self.declared_switches();
        let writable_switch = switches.get(&Capability::Writable).copied();
        // A container that only a rule includes is neither restored nor unarchived.
        let stays_archived = facts.is_archived && writable_switch != Some(false);
        if self.declared.including_glob.is_some()
            && (facts.deletion_mark.is_some() || stays_archived)
        {
            return plan.stop_as_vanished(self.declared);
        }
        if let Err(problem) = self.plan_restoration(plan) {
            return plan.stop_with_problem(*problem);
        }
        self.note_unlisted_projects(plan);
        // Restoring also unarchives a container that was archived by its deletion mark.
        let restored = facts.deletion_mark.is_some().then_some(true);
        let writable_switch = writable_switch.or(restored);
        let former_location = self.context.target.former_location.as_ref();
        if facts.is_archived && writable_switch != Some(true) {
            return match former_location {
                Some(former) => plan.stop_with_problem(self.archived_problem(&former.path)),
                None => self.plan_archived(writable_switch == Some(false), plan),
            };
        }
        match former_location.map(|former| self.move_step(former, &mut plan.findings)).transpose() {
            Ok(step) => plan.findings.steps.extend(step),
            Err(problem) => return plan.stop_with_problem(*problem),
        }
        let names = &self.names_with_opened_sections(&switches);
        let renamed_live = self.live_with_new_name(&plan.findings.steps);
        let live = renamed_live.as_ref().unwrap_or(self.context.live);
        let context = DiffContext { names, live, ..self.context };
        let planner = ContainerPlanner { context, ..*self };
        for section in planner.ordered_sections() {
            planner.plan_section(section, &switches, plan);
        }
        planner.finish_plan(plan);
    }

    /// Restores the container if it is marked for deletion.
    fn plan_restoration(&self, plan: &mut ContainerPlan) -> Result<(), Box<Problem>> {
        let facts = self.context.facts;
        let Some(mark_date) = &facts.deletion_mark else { return Ok(()) };
        let may_restore =
            self.settings.caller.is_administrator || facts.caller_level >= Some(OWNER);
        if !may_restore || self.context.target.former_location.is_some() {
            return Err(Box::new(self.deletion_problem(mark_date.as_deref())));
        }
        plan.findings.steps.push(self.restore_step(mark_date.as_deref())?);
        Ok(())
    }

    /// Compares a section, or records why it cannot be compared.
    fn plan_section(
        &self,
        section: &DeclaredSection,
        switches: &DeclaredSwitches,
        plan: &mut ContainerPlan,
    ) {
        let unread_section = LiveEntries::Unreadable(Cause::new("not read"));
        let live_entries =
            self.context.live.sections.get(section.kind.section).unwrap_or(&unread_section);
        let mut findings = match self.compare_section(section, live_entries) {
            Ok(findings) => findings,
            Err(reason) => return self.plan_unread(section, reason, switches, plan),
        };
        self.drop_removed_children(section, &mut findings, &plan.findings.steps);
        if let (Shape::List, Ok(entries)) = (section.kind.shape, live_entries.entries()) {
            let (address, steps, limits) =
                (self.section_address(section), &findings.steps, &self.settings.guard_limits);
            let refusal =
                guard::refuse_removals(&address, &section.origin, entries.len(), steps, limits);
            plan.findings.refusals.extend(refusal);
        }
        plan.compared_sections.insert(section.kind.section);
        plan.findings.extend(findings);
    }

    /// Plans a section that could not be read because of `reason`. Adds possible steps if this run
    /// turns on the switch of the section, or a note if the switch remains off. Otherwise adds an
    /// unread section.
    fn plan_unread(
        &self,
        section: &DeclaredSection,
        reason: Cause,
        switches: &DeclaredSwitches,
        plan: &mut ContainerPlan,
    ) {
        match self.section_switch(section.kind, switches) {
            Some((_, true)) => {
                let condition = "if it differs once it can be read";
                plan.findings.extend(self.plan_possible_section(section, condition));
            }
            Some((capability, false)) => self.close_section(section, capability, plan),
            None if self.removes_parent_copies(section, &plan.findings.steps) => {
                let wait_reason =
                    format!("until the copies of its parents are removed: {}", reason.message);
                let (address, reason) =
                    (self.section_address(section), Reason::Waits { why: wait_reason });
                let note = Note::new(&address, reason, &section.origin);
                let fields: BTreeSet<_> = section.field_names().map(str::to_owned).collect();
                plan.findings.notes.push(Note { fields: fields.into_iter().collect(), ..note });
            }
            None => plan.add_incomplete(self.section_address(section), reason, &section.origin),
        }
    }

    /// True if `steps` remove copies of the parents of a section. The section can be read only
    /// after these steps. Therefore the unread section must not block them.
    fn removes_parent_copies(&self, section: &DeclaredSection, steps: &[Step]) -> bool {
        let parent = section.kind.scoped_kind.parent.map(|parent| parent.section);
        parent.is_some() && steps.iter().any(|s| s.removes_copy && s.address.section == parent)
    }

    /// Runs the checks that need all steps of the container, and orders the steps.
    fn finish_plan(&self, plan: &mut ContainerPlan) {
        self.defer_children(plan);
        self.close_disabled_sections(plan);
        self.note_closed_parts(plan);
        self.add_inherited_levels(plan);
        self.refuse_low_access(plan);
        self.refuse_lost_access(plan);
        self.plan_grant_repairs(plan);
        self.mark_outsiders(plan);
        self.record_more_visible(plan);
        plan.user_rules = self.user_rules();
        self.note_lost_grants(plan);
        self.note_side_effects(plan);
        self.note_undeclared_names(plan);
        let guard_findings = guard::check_steps(&plan.findings.steps, self.declared, self.context);
        plan.findings.extend(guard_findings);
        order::order_steps(self.declared.scope, &self.settings.caller, &mut plan.findings.steps);
    }

    /// Drops removals of entries whose parent is removed too, and reports declared entries with a removed
    /// parent.
    fn drop_removed_children(
        &self,
        section: &DeclaredSection,
        findings: &mut Findings,
        steps: &[Step],
    ) {
        let Some(parent) = section.kind.scoped_kind.parent else { return };
        let Some(parent_kind) = catalogue::find_section(self.declared.scope, parent.section) else {
            return;
        };
        let removed_entries = steps
            .iter()
            .filter(|step| {
                step.action == Action::Delete
                    && !step.removes_copy
                    && step.address.section == Some(parent_kind.section)
            })
            .filter_map(Step::live_entry);
        let removed_parents: BTreeSet<_> =
            removed_entries.map(|live| parent_kind.entry_name(live.fields.raw())).collect();
        if removed_parents.is_empty() {
            return;
        }
        findings.steps.retain(|step| {
            let parent_name =
                step.live_entry().and_then(|live| live.fields.raw().get(parent.field));
            !parent_name.and_then(Json::as_str).is_some_and(|name| removed_parents.contains(name))
        });
        for entry in section.present_entries() {
            let parent_field = entry.fields.get(parent.field);
            let parent_name = parent_field.as_ref().and_then(|field| field.value.text());
            if let Some(name) = parent_name.filter(|name| removed_parents.contains(*name)) {
                let args = placeholders![noun = parent_kind.noun, name = escape(name)];
                let address = section.address_of(entry, self.address);
                let problem =
                    Problem::from_texts(texts::PARENT_REMOVED, args, &address, &entry.origin);
                findings.problems.push(problem);
            }
        }
    }

    /// Replaces the creation of an entry by a note if its parent cannot be created yet.
    pub(super) fn defer_children(&self, plan: &mut ContainerPlan) {
        for section in self.ordered_sections() {
            let Some(parent) = section.kind.scoped_kind.parent else { continue };
            let Some(parent_kind) = catalogue::find_section(self.declared.scope, parent.section)
            else {
                continue;
            };
            let steps = &mut plan.findings.steps;
            let mut waiting_parents: BTreeSet<_> = plan
                .findings
                .notes
                .iter()
                .filter(|note| {
                    matches!(note.reason, Reason::Waits { .. })
                        && note.address.section == Some(parent_kind.section)
                })
                .map(|note| note.address.clone())
                .collect();
            if waiting_parents.is_empty() {
                continue;
            }
            steps.iter().for_each(|step| _ = waiting_parents.remove(&step.address));
            for entry in section.present_entries() {
                let parent_field = entry.fields.get(parent.field);
                let name = parent_field.as_ref().and_then(|field| field.value.text());
                let is_waiting = name.is_some_and(|name| {
                    waiting_parents
                        .contains(&self.address.with_section(parent_kind.section).with_entry(name))
                });
                let address = section.address_of(entry, self.address);
                let is_new =
                    |step: &mut Step| step.action == Action::Create && step.address == address;
                if is_waiting && steps.extract_if(.., is_new).next().is_some() {
                    let wait_reason = format!("until the service has the {}", parent_kind.noun);
                    let mut fields: Vec<_> = entry.fields.keys().map(str::to_owned).collect();
                    fields.retain(|name| !section.kind.identity.contains(&&**name));
                    let note =
                        Note::new(&address, Reason::Waits { why: wait_reason }, &entry.origin);
                    plan.findings.notes.push(Note { fields, ..note });
                }
            }
        }
    }

    /// Adds notes for effects of steps that their fields do not show.
    pub(super) fn note_side_effects(&self, plan: &mut ContainerPlan) {
        let notes = plan.findings.steps.iter().flat_map(|step| {
            step.effects.iter().filter_map(|effect| match effect {
                Effect::SideEffect(message) => {
                    let reason = Reason::Besides { what: message.clone() };
                    Some(Note::new(&step.address, reason, &step.origin))
                }
                _ => None,
            })
        });
        plan.findings.notes.extend(notes);
    }

    /// Plans nothing for a container whose contents are still being imported, or whose import failed.
    fn plan_import(&self, import_state: &ImportState, plan: &mut ContainerPlan) {
        plan.import_state = Some(import_state.clone());
        match import_state {
            ImportState::Running => {
                let cause = Cause::new("its contents are still being imported").mark_transient();
                let reason = cause.with_help("run again when they are there");
                plan.stop_as_unread(self.declared, reason);
            }
            ImportState::Failed(why) => plan.stop_with_problem(self.import_problem(why.as_deref())),
        }
    }

    /// Plans a container that is archived and is not unarchived by this run.
    fn plan_archived(&self, is_declared_archived: bool, plan: &mut ContainerPlan) {
        plan.not_compared_cause = Some(Cause::new("the project is archived"));
        let unarchive_effect = Effect::provides(Capability::Writable);
        let held_section = self.ordered_sections().find(|section| {
            self.is_held(section) && self.declared_effects(section).contains(&unarchive_effect)
        });
        let reason = Reason::ArchivedByHand;
        plan.findings.notes.push(match held_section {
            Some(section) => Note::new(&self.section_address(section), reason, &section.origin),
            None if !is_declared_archived => Note::new(self.address, reason, &self.declared.origin),
            None => {
                // Only the sections that archive the container were compared. Nothing else was
                // read.
                let archive_effect = Effect::lacks(Capability::Writable);
                let archiving_sections =
                    self.target_effects().filter(|(_, effect)| *effect == archive_effect);
                plan.compared_sections.extend(archiving_sections.map(|(name, _)| name));
                Note::new(self.address, Reason::Archived, &self.declared.origin)
            }
        });
    }

    /// The declared sections, in the order of their kinds.
    pub(super) fn ordered_sections(&self) -> impl Iterator<Item = &DeclaredSection> {
        let names = catalogue::sections(self.declared.scope).map(|section| section.section);
        names.filter_map(|name| self.declared.section(name))
    }

    /// The effects of the declared values, including values that do not differ, each with its
    /// section. For a held section, these are the effects of the live values.
    pub(super) fn target_effects(&self) -> impl Iterator<Item = (&'static str, Effect)> {
        self.ordered_sections().flat_map(|section| {
            let name = section.kind.section;
            let effects = match self.context.live.sections.get(name) {
                Some(LiveEntries::Single(Some(live))) if self.is_held(section) => {
                    section.kind.rules().effects(None, live.fields.raw(), live.fields.raw())
                }
                _ => self.declared_effects(section),
            };
            effects.into_iter().map(move |effect| (name, effect))
        })
    }

    fn declared_effects(&self, section: &DeclaredSection) -> Vec<Effect> {
        match self.context.live.sections.get(section.kind.section) {
            Some(LiveEntries::Single(Some(live))) => section.effects_on(live),
            _ => Vec::new(),
        }
    }
}
