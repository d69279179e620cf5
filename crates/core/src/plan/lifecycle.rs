//! Plans changes of a container as a whole: move, deletion, restoration; and notes undeclared
//! projects in a group.

use std::sync::Arc;

use super::{
    ContainerPlan,
    container::{Planning, missing, missing_namespace},
    guard,
};
use crate::{
    address::{Address, group_of},
    cause::Cause,
    desired::{Container, PROJECTS, Unlisted},
    diff::{self, Action, Change, Context, Incomplete, Note, Problem, Reason, Shown, Step},
    field::Scope,
    kind::{
        Call, Capability, Effect, Facts, Former, Job, Namespace, NamespaceOwner, Target,
        calls::{Act, Lifecycle},
    },
    kinds,
    origin::Origin,
    text::escape,
};

impl Planning<'_> {
    /// Moves the container to its declared path.
    pub(super) fn relocation(&self, former: &Former, facts: &Facts) -> Result<Step, Box<Problem>> {
        let mut target = self.context.target.clone();
        if let Some(group) = group_of(&target.path)
            && former.transfers
            && target.namespace.is_none()
        {
            let Some(id) = self.settings.created.id(Scope::Group, group) else {
                let problem =
                    missing_namespace(self.declared, self.address, group, self.settings.is_offline);
                return Err(Box::new(problem));
            };
            target.namespace = Some(Namespace { id, owner: NamespaceOwner::Group });
        }
        let origin = &self.declared.origin;
        let mut changes = vec![self.change("path", &former.path, &self.declared.path, origin)];
        let former = &Former { name: self.name_beside(former, facts), ..former.clone() };
        if let (Some(old), Some(new)) = (&facts.name, &former.name) {
            changes.push(self.change("name", old, new, origin));
        }
        let step =
            self.turn(Lifecycle::Move(former), &target, former_origin(self.declared), changes)?;
        let transfers = Effect::Transfers { from: former.path.clone() };
        let effects = std::iter::once(Effect::provides(Capability::InPlace))
            .chain(former.transfers.then_some(transfers))
            .chain(self.follows());
        Ok(Step { effects: effects.collect(), ..step })
    }

    /// The name to set with the new path. A name is unique in its group, and a container created at
    /// the former path gets the name that equals that path. A declared name is a step of its own.
    fn name_beside(&self, former: &Former, facts: &Facts) -> Option<String> {
        let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let is_in_the_way = former.renames
            && !former.transfers
            && facts.name.as_ref() == Some(&last(&former.path))
            && self.settings.moves.takes_name(&former.path)
            && !self.declared.declares_name();
        is_in_the_way.then(|| last(&self.declared.path))
    }

    /// The moves that must come before a step that gives the container its path.
    pub(super) fn follows(&self) -> impl Iterator<Item = Effect> {
        self.context.target.follows.iter().cloned().map(Effect::Follows)
    }

    /// Restores it; it was marked for deletion `since` a day.
    pub(super) fn restoration(&self, since: Option<&str>) -> Result<Step, Box<Problem>> {
        let marked = since.map_or_else(String::new, |day| format!(" since {day}"));
        let marked = format!("marked for deletion{marked}");
        let state = self.declared.life.state.as_ref();
        let origin = state.map_or(&self.declared.origin, |state| &state.origin);
        let state = self.change("state", &marked, "present", origin);
        let step = self.turn(Lifecycle::Restore, self.context.target, origin, vec![state])?;
        Ok(Step { effects: vec![Effect::provides(Capability::Exists)], ..step })
    }

    /// Plans a container that is declared absent and exists.
    pub(super) fn absent(&self, facts: &Facts, plan: &mut ContainerPlan) {
        let Some(origin) = self.declared.life.absent().filter(|_| facts.deleting.is_none()) else {
            return;
        };
        let state = self.change("state", "present", "absent", origin);
        match self.turn(Lifecycle::Delete, self.context.target, origin, vec![state]) {
            Ok(step) => {
                let step = Step { action: Action::Delete, ..step };
                plan.findings.refusals.push(guard::deletion(&step));
                plan.findings.steps.push(step);
            }
            Err(problem) => plan.close(*problem),
        }
    }

    /// Notes the projects below the group that no manifest declares.
    pub(super) fn unlisted_projects(&self, plan: &mut ContainerPlan) {
        let Some(policy) = &self.declared.life.unlisted_projects else { return };
        let unread = Err(Cause::new("not read"));
        let projects = match self.live.projects.as_ref().unwrap_or(&unread) {
            Ok(projects) => projects,
            Err(reason) => {
                let address = self.address.section(PROJECTS);
                plan.findings.incomplete.push(Incomplete { address, reason: reason.clone() });
                return;
            }
        };
        let excluded = |path: &Arc<str>| {
            let address = Address::container(Arc::clone(path));
            self.declared.life.excluded.iter().any(|selector| selector.matches(&address))
        };
        let undeclared = projects.iter().filter(|project| {
            !self.settings.moves.declare_project(&project.path) && !excluded(&project.path)
        });
        plan.findings.notes.extend(undeclared.map(|project| {
            let is_marked = project.facts.deleting.is_some();
            let state = match project.facts.archived {
                _ if is_marked => Some("marked for deletion"),
                true => Some("archived"),
                false => None,
            };
            let reason = if policy.value == Unlisted::Fail {
                Reason::UndeclaredFails { state }
            } else {
                Reason::Undeclared { state }
            };
            let address = Address::container(project.path.clone());
            let origin = Some(policy.origin.clone());
            Note { address, reason, fields: Vec::new(), origin }
        }));
    }

    fn change(&self, field: &str, before: &str, after: &str, origin: &Origin) -> Change {
        let (before, after) = (Shown::Value(before.into()), Shown::Value(after.into()));
        Change::new(field, before, after, Some(origin.clone()))
    }

    /// The step for one change of the container itself.
    fn turn(
        &self,
        turn: Lifecycle<'_>,
        target: &Target,
        origin: &Origin,
        changes: Vec<Change>,
    ) -> Result<Step, Box<Problem>> {
        let sends = self.own_calls(Act::Container(turn), target, |_| origin.clone())?;
        let (scope, address) = (self.declared.scope, self.address.clone());
        Ok(Step::new(scope, address, Action::Update, origin.clone(), changes, sends))
    }

    /// The calls that do `act` to the container itself. `at` is where a field is declared.
    pub(super) fn own_calls(
        &self,
        act: Act<'_>,
        target: &Target,
        at: impl Fn(&str) -> Origin,
    ) -> Result<Vec<Call>, Box<Problem>> {
        let (section, _) = kinds::container(self.declared.scope);
        let Context { names, release, .. } = self.context;
        let job = Job { is_alone: true, section, target, names, release, act };
        section.rules.calls(&job).map_err(|unable| {
            let problem = diff::problem(unable, self.address, at);
            Box::new(problem.unwrap_or_else(|| {
                missing(self.declared, self.address, false, self.settings.is_offline)
            }))
        })
    }
}

/// Where the former path of a container is declared.
fn former_origin(declared: &Container) -> &Origin {
    declared.life.previously.first().map_or(&declared.origin, |former| &former.origin)
}

pub(super) fn twice(declared: &Container, address: &Address, at: &str, other: &str) -> Problem {
    let noun = declared.scope.noun();
    let (at, other) = (escape(at), escape(other));
    let message = format!(
        "`{at}` exists, and so does `{other}`, where the {noun} is declared to have been before"
    );
    let help =
        format!("take `{other}` out of `previously`, or give one of the two another path by hand");
    Problem::new(address, "previously", message, help, former_origin(declared))
}

pub(super) fn halfway(declared: &Container, address: &Address, from: &str, at: &str) -> Problem {
    let noun = declared.scope.noun();
    let (from, at) = (escape(from), escape(at));
    let message = format!(
        "neither `{}` nor `{from}` exists, but `{at}` does, as if a run had ended between renaming and moving the {noun}",
        address.path
    );
    let help =
        format!("if it is this {noun}, write `previously: [{at}]`; if not, take `previously` away");
    Problem::new(address, "previously", message, help, former_origin(declared))
}

pub(super) fn closed_to_moves(declared: &Container, address: &Address, from: &str) -> Problem {
    let message = format!(
        "the {} is archived at `{}`, and cannot be moved while it is",
        declared.scope.noun(),
        escape(from)
    );
    let help = "write `archived: false`, and archive it again when it has moved";
    Problem::new(address, "archived", message, help, &declared.origin)
}

pub(super) fn deleting(declared: &Container, address: &Address, since: Option<&str>) -> Problem {
    let since = since.map_or_else(String::new, |day| format!(" since {}", escape(day)));
    let (noun, path) = (declared.scope.noun(), &address.path);
    let code = declared.scope.of("deleting-group", "deleting-project");
    let message = format!("the {noun} `{path}` is marked for deletion{since}");
    let help = format!(
        "let an owner restore it (`undrift call {noun}-restore id={path}`), or remove its manifest"
    );
    Problem::new(address, code, message, help, &declared.origin)
}
