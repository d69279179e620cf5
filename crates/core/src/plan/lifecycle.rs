//! Plans changes of a container as a whole: move, deletion, restoration; and notes undeclared
//! projects in a group.

use std::sync::Arc;

use super::{ContainerPlan, container::ContainerPlanner, guard};
use crate::{
    address::{Address, group_of},
    catalogue,
    cause::Cause,
    desired::{PROJECTS_KEY, Unlisted},
    diff::{self, Action, FieldChange, Note, Problem, Reason, Shown, Step},
    field::Scope,
    kind::{
        CallContext, Capability, Effect, Former, LiveNamespace, NamespaceOwner, PlannedCall,
        Target,
        calls::{CallPurpose, Lifecycle},
    },
    origin::Origin,
};

impl ContainerPlanner<'_> {
    /// Moves the container to its declared path.
    pub(super) fn move_step(&self, former: &Former) -> Result<Step, Box<Problem>> {
        let mut target = self.context.target.clone();
        if let Some(group) = group_of(&target.path)
            && former.is_transferred
            && target.namespace.is_none()
        {
            let Some(id) = self.settings.created.id(Scope::Group, group) else {
                return Err(Box::new(self.namespace_problem(group)));
            };
            target.namespace = Some(LiveNamespace { id, owner: NamespaceOwner::Group });
        }
        let origin = &self.declared.origin;
        let mut changes = vec![self.new_change("path", &former.path, &self.declared.path, origin)];
        let former = &Former { name: self.freed_name(former), ..former.clone() };
        if let (Some(old), Some(new)) = (&self.context.facts.name, &former.name) {
            changes.push(self.new_change("name", old, new, origin));
        }
        let step =
            self.container_step(Lifecycle::Move(former), &target, self.former_origin(), changes)?;
        let transfers = Effect::Transfers { from: former.path.clone() };
        let effects = std::iter::once(Effect::provides(Capability::InPlace))
            .chain(former.is_transferred.then_some(transfers))
            .chain(self.preceding_moves());
        Ok(Step { effects: effects.collect(), ..step })
    }

    /// The name to set with the new path. A name is unique in its group, and a container created at
    /// the former path gets the name that equals that path. A declared name is a step of its own.
    fn freed_name(&self, former: &Former) -> Option<String> {
        let [former_name, name] = [&*former.path, &*self.declared.path]
            .map(|path| path.rsplit('/').next().unwrap_or_default());
        let is_in_the_way = former.is_renamed
            && !former.is_transferred
            && self.context.facts.name.as_deref() == Some(former_name)
            && self.settings.moves.takes_matching_name(&former.path)
            && !self.declared.declares_name();
        is_in_the_way.then(|| name.to_owned())
    }

    /// The moves that must come before a step that gives the container its path.
    pub(super) fn preceding_moves(&self) -> impl Iterator<Item = Effect> {
        let paths = self.context.target.moves_after.iter().cloned();
        paths.map(|path| Effect::follows(Address::container(path)))
    }

    /// Restores it; it was marked for deletion `since` a day.
    pub(super) fn restore_step(&self, since: Option<&str>) -> Result<Step, Box<Problem>> {
        let marked = since.map_or_else(String::new, |day| format!(" since {day}"));
        let marked = format!("marked for deletion{marked}");
        let state = self.declared.lifecycle.state.as_ref();
        let origin = state.map_or(&self.declared.origin, |state| &state.origin);
        let state = self.new_change("state", &marked, "present", origin);
        let step =
            self.container_step(Lifecycle::Restore, self.context.target, origin, vec![state])?;
        Ok(Step { effects: vec![Effect::provides(Capability::Exists)], ..step })
    }

    /// Plans a container that is declared absent and exists.
    pub(super) fn plan_deletion(&self, plan: &mut ContainerPlan) {
        let Some(origin) = self
            .declared
            .lifecycle
            .is_absent()
            .filter(|_| self.context.facts.deletion_mark.is_none())
        else {
            return;
        };
        let state = self.new_change("state", "present", "absent", origin);
        match self.container_step(Lifecycle::Delete, self.context.target, origin, vec![state]) {
            Ok(step) => {
                let step = Step { action: Action::Delete, ..step };
                plan.findings.refusals.push(guard::refuse_deletion(&step));
                plan.findings.steps.push(step);
            }
            Err(problem) => plan.close(*problem),
        }
    }

    /// Notes the projects below the group that no manifest declares.
    pub(super) fn note_unlisted_projects(&self, plan: &mut ContainerPlan) {
        let Some(policy) = &self.declared.lifecycle.unlisted_projects else { return };
        let unread = Err(Cause::new("not read"));
        let projects = match self.context.live.projects.as_ref().unwrap_or(&unread) {
            Ok(projects) => projects,
            Err(reason) => {
                return plan.add_incomplete(self.address.section(PROJECTS_KEY), reason.clone());
            }
        };
        let undeclared = projects.iter().filter(|project| {
            let address = Address::container(Arc::clone(&project.path));
            !self.settings.moves.declares_project(&project.path)
                && !self
                    .declared
                    .lifecycle
                    .excluded_projects
                    .iter()
                    .any(|selector| selector.matches(&address))
        });
        plan.findings.notes.extend(undeclared.map(|project| {
            let is_archived = project.facts.is_archived.then_some("archived");
            let marked = project.facts.deletion_mark.as_ref().map(|_| "marked for deletion");
            let state = marked.or(is_archived);
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

    /// The step for one change of the container itself.
    fn container_step(
        &self,
        lifecycle: Lifecycle<'_>,
        target: &Target,
        origin: &Origin,
        changes: Vec<FieldChange>,
    ) -> Result<Step, Box<Problem>> {
        let sends =
            self.container_calls(CallPurpose::Container(lifecycle), target, |_| origin.clone())?;
        let (scope, address) = (self.declared.scope, self.address.clone());
        Ok(Step::new(scope, address, Action::Update, origin.clone(), changes, sends))
    }

    /// The calls that do `purpose` to the container itself. `field_origin` returns the origin of a
    /// field.
    pub(super) fn container_calls(
        &self,
        purpose: CallPurpose<'_>,
        target: &Target,
        field_origin: impl Fn(&str) -> Origin,
    ) -> Result<Vec<PlannedCall>, Box<Problem>> {
        let (section, _) = catalogue::container(self.declared.scope);
        let call_context = CallContext { target, ..self.context.call_context(section, purpose) };
        section.rules().calls(&call_context).map_err(|unable| {
            let problem = diff::problem_without_calls(unable, self.address, field_origin);
            Box::new(problem.unwrap_or_else(|| self.missing_problem(false)))
        })
    }
}
