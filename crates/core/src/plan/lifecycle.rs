//! Plans the move, deletion and restoration of a container, and notes for undeclared projects in a
//! group.

use std::sync::Arc;

use super::{ContainerPlan, container::ContainerPlanner, guard};
use crate::{
    address::{Address, parent_group_path},
    catalogue::{self, settings},
    cause::Cause,
    desired::{PROJECTS_KEY, Unlisted},
    diff::{self, Action, FieldChange, Findings, Note, Problem, Reason, Shown, Step},
    field::Scope,
    kind::{
        CallContext, Capability, Effect, FormerLocation, LiveNamespace, NamespaceOwner,
        PlannedCall, Target,
        calls::{CallPurpose, Lifecycle},
    },
    live::{LiveContainer, LiveEntries},
    origin::Origin,
};

impl ContainerPlanner<'_> {
    /// The step that moves the container from `former` to its declared path.
    pub(super) fn move_step(
        &self,
        former: &FormerLocation,
        findings: &mut Findings,
    ) -> Result<Step, Box<Problem>> {
        let visibility = self.visibility_after_move(former, findings)?;
        let mut target = self.context.target.clone();
        if let Some(group) = parent_group_path(&target.path)
            && former.is_transferred
            && target.namespace.is_none()
        {
            let Some(id) = self.settings.creatable_containers.id(Scope::Group, group) else {
                return Err(Box::new(self.namespace_problem(group)));
            };
            target.namespace = Some(LiveNamespace { id, owner: NamespaceOwner::Group });
        }
        let origin = &self.declared.origin;
        let mut changes = vec![self.new_change("path", &former.path, &self.declared.path, origin)];
        let former = &FormerLocation { name: self.name_after_move(former), ..former.clone() };
        if let (Some(old_name), Some(new_name)) = (&self.context.facts.name, &former.name) {
            let declared_name = self.declared.setting(settings::SECTION, "name");
            let origin = declared_name.map_or_else(|| origin.clone(), |name| name.origin);
            changes.push(self.new_change("name", old_name, new_name, &origin));
        }
        let step =
            self.container_step(Lifecycle::Move(former), &target, self.former_origin(), changes)?;
        let namesake = former.namesake.clone().filter(|_| former.name.is_none());
        let former_path = former.path.clone();
        let transfers = Effect::Transfers { former_path, namesake };
        let effects = std::iter::once(Effect::provides(Capability::AtDeclaredPath))
            .chain(former.is_transferred.then_some(transfers))
            .chain(visibility.map(|visibility| Effect::visibility(None, visibility)))
            .chain(self.preceding_moves());
        Ok(Step { effects: effects.collect(), ..step })
    }

    /// The visibility of the container after a move to another group; `None` if the container stays
    /// in its group. Returns a problem if the new group does not allow an undeclared visibility,
    /// because the service would refuse the move or lower the visibility.
    fn visibility_after_move(
        &self,
        former: &FormerLocation,
        findings: &mut Findings,
    ) -> Result<Option<String>, Box<Problem>> {
        let live_visibility = self.context.facts.visibility.clone();
        let Some(visibility) = live_visibility.filter(|_| former.is_transferred) else {
            return Ok(None);
        };
        let (section, name) = (settings::SECTION, "visibility");
        if let Some(declared) = self.declared.setting(section, name) {
            return Ok(declared.value.text().map(str::to_owned));
        }
        let limit = catalogue::find_section(self.declared.scope, section).and_then(|section| {
            self.context.group_limit(section, name, &visibility.as_str().into(), findings)
        });
        let address = self.address.with_section(section);
        match limit.map(|limit| limit.into_problem(&address, self.former_origin())) {
            Some(Ok(problem)) => Err(Box::new(problem)),
            _ => Ok(Some(visibility)),
        }
    }

    /// The display name to set together with the new path; `None` if the old name can stay until a
    /// step for the settings sets the declared one. The old name must become free if another
    /// container takes the former path: its default name is the last segment of that path, and names
    /// are unique in a group. It cannot be kept in a group where it is taken.
    fn name_after_move(&self, former: &FormerLocation) -> Option<String> {
        if former.namesake.is_some() {
            let is_held = self.declared.section(settings::SECTION).is_some_and(|s| self.is_held(s));
            return former.name.clone().filter(|_| !is_held);
        }
        let [former_name, name] = [&*former.path, &*self.declared.path]
            .map(|path| path.rsplit('/').next().unwrap_or_default());
        let blocks_new_path = former.is_renamed
            && !former.is_transferred
            && self.context.facts.name.as_deref() == Some(former_name)
            && self.settings.moves.gets_default_name(&former.path)
            && !self.declared.declares_name();
        blocks_new_path.then(|| name.to_owned())
    }

    /// The live state with the display name that a move among `steps` sets; `None` if none sets it.
    pub(super) fn live_with_new_name(&self, steps: &[Step]) -> Option<LiveContainer> {
        let name = steps.iter().find_map(|step| step.change("name")?.after.value())?;
        let mut live = self.context.live.clone();
        let settings_entries = live.sections.get_mut(settings::SECTION)?;
        let LiveEntries::Single(Some(entry)) = settings_entries else { return None };
        entry.fields.raw_mut().insert("name".to_owned(), name.clone());
        Some(live)
    }

    /// The moves of other containers that must come before the step that creates or moves this
    /// container.
    pub(super) fn preceding_moves(&self) -> impl Iterator<Item = Effect> {
        let paths = self.context.target.blocking_paths.iter().cloned();
        paths.map(|path| Effect::follows(Address::container(path)))
    }

    /// The step that restores a container that was marked for deletion on `mark_date`.
    pub(super) fn restore_step(&self, mark_date: Option<&str>) -> Result<Step, Box<Problem>> {
        let date_text = mark_date.map_or_else(String::new, |day| format!(" since {day}"));
        let mark_text = format!("marked for deletion{date_text}");
        let state = self.declared.lifecycle.state.as_ref();
        let origin = state.map_or(&self.declared.origin, |state| &state.origin);
        let change = self.new_change("state", &mark_text, "present", origin);
        let step =
            self.container_step(Lifecycle::Restore, self.context.target, origin, vec![change])?;
        Ok(Step { effects: vec![Effect::provides(Capability::Exists)], ..step })
    }

    /// Plans the deletion of a container that exists and is declared absent.
    pub(super) fn plan_deletion(&self, plan: &mut ContainerPlan) {
        let is_marked = self.context.facts.deletion_mark.is_some();
        let origin = self.declared.lifecycle.absent_origin().filter(|_| !is_marked);
        let Some(origin) = origin else { return };
        let change = self.new_change("state", "present", "absent", origin);
        match self.container_step(Lifecycle::Delete, self.context.target, origin, vec![change]) {
            Ok(step) => {
                let step = Step { action: Action::Delete, ..step };
                plan.findings.refusals.push(guard::refuse_deletion(&step));
                plan.findings.steps.push(step);
            }
            Err(problem) => plan.stop_with_problem(*problem),
        }
    }

    /// Adds a note for each project below the group that no manifest declares.
    pub(super) fn note_unlisted_projects(&self, plan: &mut ContainerPlan) {
        let Some(policy) = &self.declared.lifecycle.unlisted_projects else { return };
        let unread = Err(Cause::new("not read"));
        let projects = match self.context.live.projects_below.as_ref().unwrap_or(&unread) {
            Ok(projects) => projects,
            Err(reason) => {
                let address = self.address.with_section(PROJECTS_KEY);
                return plan.add_incomplete(address, reason.clone(), &policy.origin);
            }
        };
        let undeclared_projects = projects.iter().filter(|project| {
            let address = Address::container(Arc::clone(&project.path));
            let mut exclusions = self.declared.lifecycle.excluded_selectors.iter();
            !self.settings.moves.declares_project(&project.path)
                && !exclusions.any(|selector| selector.matches(&address))
        });
        plan.findings.notes.extend(undeclared_projects.map(|project| {
            let archived_text = project.facts.is_archived.then_some("archived");
            let marked_text = project.facts.deletion_mark.as_ref().map(|_| "marked for deletion");
            let state = marked_text.or(archived_text);
            let reason = match policy.value {
                Unlisted::Fail => Reason::UndeclaredFails { state },
                _ => Reason::Undeclared { state },
            };
            Note::new(&Address::container(project.path.clone()), reason, &policy.origin)
        }));
    }

    fn new_change(&self, field: &str, before: &str, after: &str, origin: &Origin) -> FieldChange {
        let (before, after) = (Shown::Value(before.into()), Shown::Value(after.into()));
        FieldChange::new(field, before, after, Some(origin.clone()))
    }

    /// The step that moves, restores or deletes the container.
    fn container_step(
        &self,
        lifecycle: Lifecycle<'_>,
        target: &Target,
        origin: &Origin,
        changes: Vec<FieldChange>,
    ) -> Result<Step, Box<Problem>> {
        let planned_calls =
            self.container_calls(CallPurpose::Container(lifecycle), target, |_| origin.clone())?;
        let (scope, address) = (self.declared.scope, self.address.clone());
        Ok(Step::new(scope, address, Action::Update, origin.clone(), changes, planned_calls))
    }

    /// The calls for the container itself, for this `purpose`. `field_origin` returns the origin of a
    /// field.
    pub(super) fn container_calls(
        &self,
        purpose: CallPurpose<'_>,
        target: &Target,
        field_origin: impl Fn(&str) -> Origin,
    ) -> Result<Vec<PlannedCall>, Box<Problem>> {
        let (section, _) = catalogue::container(self.declared.scope);
        let call_context = CallContext { target, ..self.context.call_context(section, purpose) };
        section.rules().calls(&call_context).map_err(|no_calls| {
            let problem = diff::problem_without_calls(no_calls, self.address, field_origin);
            Box::new(problem.unwrap_or_else(|| self.missing_problem(false)))
        })
    }
}
