//! Plans a container by whether it exists, and where. If it is not where it is declared, reports why
//! nothing of it is planned.

use super::{ContainerPlan, container::ContainerPlanner};
use crate::{
    cause::Cause,
    diff::{
        Problem,
        texts::{self, ProblemTexts, Words, words},
    },
    kind::find_marked_group,
    live::Presence,
    origin::Origin,
    text::escape,
};

impl ContainerPlanner<'_> {
    /// Plans the container.
    pub(super) fn plan_by_presence(&self, plan: &mut ContainerPlan) {
        let is_unwanted = self.declared.lifecycle.is_absent().is_some();
        match &self.context.live.presence {
            Presence::Here(..) => self.plan_existing(plan),
            Presence::Missing(_) if is_unwanted => {}
            // Only an administrator sees every group and user.
            Presence::NoNamespace(_) if is_unwanted && self.settings.caller.is_administrator => {}
            Presence::NoNamespace(group) if is_unwanted => {
                let reason = Cause::new(self.namespace_problem(group).message);
                plan.close_unread(self.address.clone(), reason);
            }
            Presence::Missing(_) | Presence::NoNamespace(_) | Presence::Moved { .. }
                if self.declared.including_glob.is_some() =>
            {
                plan.close_vanished(self.declared);
            }
            // Everything in a group that this run creates is missing too.
            Presence::NoNamespace(group) if self.context.target.namespace.is_none() => {
                plan.close(self.namespace_problem(group));
            }
            Presence::Missing(_) | Presence::NoNamespace(_) => self.plan_missing(plan),
            Presence::Moved { to } => plan.close(self.moved_problem(to.as_deref())),
            Presence::Twice { at, other } => {
                let words = words![at = escape(at), other = escape(other)];
                plan.close(self.former_problem(texts::TWICE, words));
            }
            Presence::Halfway { from, at } => {
                let words = words![from = escape(from), at = escape(at)];
                plan.close(self.former_problem(texts::HALFWAY, words));
            }
            Presence::Unreadable(reason) => {
                plan.close_unread(self.address.clone(), reason.clone());
            }
        }
    }

    /// A problem of the container as a whole. The texts may name its noun.
    fn problem(&self, texts: ProblemTexts, words: Words<'_>) -> Problem {
        let noun = words![noun = self.declared.scope.noun()];
        Problem::from_texts(texts, &[words, noun].concat(), self.address, &self.declared.origin)
    }

    /// As [`Self::problem`], with texts that have one code for groups and one for projects.
    fn problem_with_scoped_code(&self, texts: [&'static str; 4], words: Words<'_>) -> Problem {
        let [group_code, project_code, message, help] = texts;
        self.problem([self.declared.scope.choose(group_code, project_code), message, help], words)
    }

    /// A problem with its former paths.
    fn former_problem(&self, texts: ProblemTexts, words: Words<'_>) -> Problem {
        Problem { origin: self.former_origin().clone(), ..self.problem(texts, words) }
    }

    /// Where its former path is declared.
    pub(super) fn former_origin(&self) -> &Origin {
        let former = self.declared.lifecycle.previously.first();
        former.map_or(&self.declared.origin, |former| &former.origin)
    }

    /// It does not exist. `is_unselected`: the run would create it if it selected all of it.
    pub(super) fn missing_problem(&self, is_unselected: bool) -> Problem {
        let texts = if is_unselected {
            texts::MISSING_UNSELECTED
        } else if self.settings.is_offline {
            texts::MISSING_OFFLINE
        } else {
            texts::MISSING
        };
        // Nothing above a top-level group shows whether it is only hidden.
        let is_of_top = !self.address.path.contains('/');
        let or_hidden = if is_of_top { ", or the token cannot see it" } else { "" };
        self.problem_with_scoped_code(texts, &[("or_hidden", &or_hidden)])
    }

    /// Nothing exists at `namespace`, the path of its group or user. In a snapshot, that group may
    /// exist under another path: creating it would make a second one.
    pub(super) fn namespace_problem(&self, namespace: &str) -> Problem {
        let is_offline = self.settings.is_offline;
        let texts =
            if is_offline { texts::MISSING_NAMESPACE_OFFLINE } else { texts::MISSING_NAMESPACE };
        self.problem(texts, &[("namespace", &escape(namespace))])
    }

    fn moved_problem(&self, to: Option<&str>) -> Problem {
        let Some(to) = to.map(escape) else {
            return self.problem_with_scoped_code(texts::RENAMED, &[]);
        };
        match find_marked_group(&to) {
            None => self.problem_with_scoped_code(texts::MOVED, &[("to", &to)]),
            Some(group) => {
                self.problem_with_scoped_code(texts::MOVED_TO_DELETED, &[("group", &group)])
            }
        }
    }

    /// It is archived at the path `from`, so it cannot be moved.
    pub(super) fn archived_problem(&self, from: &str) -> Problem {
        self.problem(texts::ARCHIVED, &[("from", &escape(from))])
    }

    /// It is marked for deletion, and may not be restored.
    pub(super) fn deleting_problem(&self, since: Option<&str>) -> Problem {
        let since = since.map_or_else(String::new, |day| format!(" since {}", escape(day)));
        self.problem_with_scoped_code(texts::DELETING, &[("since", &since)])
    }

    pub(super) fn import_problem(&self, reason: Option<&str>) -> Problem {
        let reason = reason.unwrap_or("the service gave no reason");
        self.problem(texts::IMPORT_FAILED, &[("why", &reason)])
    }
}
