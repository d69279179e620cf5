//! Chooses how to plan a container: it exists, is missing, or is at another path. Reports problems if
//! nothing can be planned.

use super::{ContainerPlan, container::ContainerPlanner};
use crate::{
    address::Address,
    cause::Cause,
    diff::{
        Problem,
        texts::{self, PlaceholderValues, ProblemTexts, placeholders},
    },
    kind::{Target, find_marked_group},
    live::Presence,
    origin::Origin,
    text::escape,
};

impl ContainerPlanner<'_> {
    /// Plans the container according to its presence.
    pub(super) fn plan_by_presence(&self, plan: &mut ContainerPlan) {
        let is_declared_absent = self.declared.lifecycle.absent_origin().is_some();
        match &self.context.live.presence {
            Presence::Existing(Target { occupant_scope: Some(other), .. }, _)
            | Presence::Missing(Target { occupant_scope: Some(other), .. }) => {
                let problem = self.problem(texts::OCCUPIED, placeholders![other = other.noun()]);
                plan.stop_with_problem(problem);
            }
            Presence::Existing(..) => self.plan_existing(plan),
            Presence::Missing(_) if is_declared_absent => {}
            // Only an administrator sees every group and user.
            Presence::MissingNamespace(_)
                if is_declared_absent && self.settings.caller.is_administrator => {}
            Presence::MissingNamespace(group) if is_declared_absent => {
                let reason = Cause::new(self.namespace_problem(group).message);
                plan.stop_as_unread(self.declared, reason);
            }
            Presence::Missing(_) | Presence::MissingNamespace(_) | Presence::Redirected { .. }
                if self.declared.including_glob.is_some() =>
            {
                plan.stop_as_vanished(self.declared);
            }
            // If this run creates the group above, only the container is missing: see the next
            // case.
            Presence::MissingNamespace(group) if self.context.target.namespace.is_none() => {
                plan.stop_with_problem(self.namespace_problem(group));
            }
            Presence::Missing(_) | Presence::MissingNamespace(_) => self.plan_missing(plan),
            Presence::Redirected { new_path: path } => {
                plan.stop_with_problem(self.moved_problem(path.as_deref()));
            }
            Presence::Ambiguous { current_path, other_path } => {
                let args = placeholders![at = escape(current_path), other = escape(other_path)];
                plan.stop_with_problem(self.former_path_problem(texts::TWICE, args));
            }
            Presence::PartlyMoved { former_path, intermediate_path } => {
                let args =
                    placeholders![from = escape(former_path), at = escape(intermediate_path)];
                plan.stop_with_problem(self.former_path_problem(texts::HALFWAY, args));
            }
            Presence::Unreadable(reason) => {
                plan.stop_as_unread(self.declared, reason.clone());
            }
        }
    }

    /// A problem of the container as a whole. The texts may name its noun.
    fn problem(&self, texts: ProblemTexts, args: PlaceholderValues<'_>) -> Problem {
        let noun = placeholders![noun = self.declared.scope.noun()];
        Problem::from_texts(texts, &[args, noun].concat(), self.address, &self.declared.origin)
    }

    /// Like [`Self::problem`], with texts that have one code for groups and one for projects.
    fn scoped_problem(&self, texts: [&'static str; 4], args: PlaceholderValues<'_>) -> Problem {
        let [group_code, project_code, message, help] = texts;
        self.problem([self.declared.scope.choose(group_code, project_code), message, help], args)
    }

    /// A problem with the container's former paths.
    fn former_path_problem(&self, texts: ProblemTexts, args: PlaceholderValues<'_>) -> Problem {
        Problem { origin: self.former_origin().clone(), ..self.problem(texts, args) }
    }

    /// The origin of the first former path; if there is none, the origin of the container.
    pub(super) fn former_origin(&self) -> &Origin {
        let former_path = self.declared.lifecycle.former_paths.first();
        former_path.map_or(&self.declared.origin, |former| &former.origin)
    }

    /// The problem that the container does not exist. `is_unselected` is true if a run that selects the whole
    /// container would create it.
    pub(super) fn missing_problem(&self, is_unselected: bool) -> Problem {
        let problem_texts = if is_unselected {
            texts::MISSING_UNSELECTED
        } else if self.settings.is_offline {
            texts::MISSING_OFFLINE
        } else {
            texts::MISSING
        };
        // A top-level group has no parent group whose lists would show the group. Therefore the
        // group may exist and be hidden.
        let is_top_level = !self.address.path.contains('/');
        let hidden_text = if is_top_level { ", or the token cannot see it" } else { "" };
        self.scoped_problem(problem_texts, &[("or_hidden", &hidden_text)])
    }

    /// The problem that no group or user exists at `namespace`. A hold may keep the run from creating the
    /// group. In a snapshot, the group may exist under a former path.
    pub(super) fn namespace_problem(&self, namespace: &str) -> Problem {
        let escaped_path = escape(namespace);
        if let Some(until) = self.settings.held_until(&Address::container(namespace.into())) {
            let args = placeholders![namespace = escaped_path, until = until];
            return self.problem(texts::MISSING_NAMESPACE_HELD, args);
        }
        let is_offline = self.settings.is_offline;
        let texts =
            if is_offline { texts::MISSING_NAMESPACE_OFFLINE } else { texts::MISSING_NAMESPACE };
        self.problem(texts, &[("namespace", &escaped_path)])
    }

    fn moved_problem(&self, new_path: Option<&str>) -> Problem {
        let Some(escaped_path) = new_path.map(escape) else {
            return self.scoped_problem(texts::RENAMED, &[]);
        };
        match find_marked_group(&escaped_path) {
            None => self.scoped_problem(texts::MOVED, &[("to", &escaped_path)]),
            Some(group) => self.scoped_problem(texts::MOVED_TO_DELETED, &[("group", &group)]),
        }
    }

    /// The problem that the container is archived at `former_path` and therefore cannot be moved.
    pub(super) fn archived_problem(&self, former_path: &str) -> Problem {
        self.problem(texts::ARCHIVED, &[("from", &escape(former_path))])
    }

    /// The problem that the container is marked for deletion, and this run cannot restore it.
    pub(super) fn deletion_problem(&self, mark_date: Option<&str>) -> Problem {
        let date_text = mark_date.map_or_else(String::new, |day| format!(" since {}", escape(day)));
        self.scoped_problem(texts::DELETING, &[("since", &date_text)])
    }

    pub(super) fn import_problem(&self, reason: Option<&str>) -> Problem {
        let reason = reason.unwrap_or("the service gave no reason");
        self.problem(texts::IMPORT_FAILED, &[("why", &reason)])
    }
}
