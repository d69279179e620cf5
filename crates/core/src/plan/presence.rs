//! Plans a container by whether it exists, and where. If it is not where it is declared, says why
//! nothing of it is planned.

use super::{ContainerPlan, container::Planning};
use crate::{
    cause::Cause,
    diff::{
        Problem,
        texts::{self, Texts, Words},
    },
    kind::{Facts, marked_above},
    live::Presence,
    origin::Origin,
    text::escape,
};

impl Planning<'_> {
    /// Plans the container, of which `facts` are known if it exists.
    pub(super) fn by_presence(&self, facts: &Facts, plan: &mut ContainerPlan) {
        let is_unwanted = self.declared.life.absent().is_some();
        match &self.live.presence {
            Presence::Here(..) => self.here(facts, plan),
            Presence::Missing(_) if is_unwanted => {}
            // Only an administrator sees every group and user.
            Presence::NoNamespace(_) if is_unwanted && self.settings.caller.administrator => {}
            Presence::NoNamespace(group) if is_unwanted => {
                let reason = Cause::new(self.missing_namespace(group).message);
                plan.leave_unread(self.address.clone(), reason);
            }
            Presence::Missing(_) | Presence::NoNamespace(_) | Presence::Moved { .. }
                if self.declared.brought_in.is_some() =>
            {
                plan.vanished(self.declared);
            }
            // Everything in a group that this run creates is missing too.
            Presence::NoNamespace(group) if self.context.target.namespace.is_none() => {
                plan.close(self.missing_namespace(group));
            }
            Presence::Missing(_) | Presence::NoNamespace(_) => self.missing(plan),
            Presence::Moved { to } => plan.close(self.moved(to.as_deref())),
            Presence::Twice { at, other } => {
                let words: Words<'_> = &[("at", &escape(at)), ("other", &escape(other))];
                plan.close(self.previously(texts::TWICE, words));
            }
            Presence::Halfway { from, at } => {
                let words: Words<'_> = &[("from", &escape(from)), ("at", &escape(at))];
                plan.close(self.previously(texts::HALFWAY, words));
            }
            Presence::Unreadable(reason) => {
                plan.leave_unread(self.address.clone(), reason.clone());
            }
        }
    }

    /// A problem of the container as a whole. The texts may name its noun.
    fn problem(&self, texts: Texts, words: Words<'_>) -> Problem {
        let noun: Words<'_> = &[("noun", &self.declared.scope.noun())];
        Problem::of(texts, &[words, noun].concat(), self.address, &self.declared.origin)
    }

    /// The same with texts that have a code for groups and one for projects.
    fn scoped_problem(&self, texts: [&'static str; 4], words: Words<'_>) -> Problem {
        let [of_group, of_project, message, help] = texts;
        self.problem([self.declared.scope.of(of_group, of_project), message, help], words)
    }

    /// A problem with its former paths.
    fn previously(&self, texts: Texts, words: Words<'_>) -> Problem {
        Problem { origin: self.former_origin().clone(), ..self.problem(texts, words) }
    }

    /// Where its former path is declared.
    pub(super) fn former_origin(&self) -> &Origin {
        let former = self.declared.life.previously.first();
        former.map_or(&self.declared.origin, |former| &former.origin)
    }

    /// It does not exist. `is_unselected`: the run would create it if it selected all of it.
    pub(super) fn not_there(&self, is_unselected: bool) -> Problem {
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
        self.scoped_problem(texts, &[("or_hidden", &or_hidden)])
    }

    /// Nothing exists at the path `namespace` of its group or user. It may exist under a path that a
    /// snapshot lacks, and creating it would make a second one.
    pub(super) fn missing_namespace(&self, namespace: &str) -> Problem {
        let is_offline = self.settings.is_offline;
        let texts =
            if is_offline { texts::MISSING_NAMESPACE_OFFLINE } else { texts::MISSING_NAMESPACE };
        self.problem(texts, &[("namespace", &escape(namespace))])
    }

    fn moved(&self, to: Option<&str>) -> Problem {
        let Some(to) = to.map(escape) else { return self.scoped_problem(texts::RENAMED, &[]) };
        match marked_above(&to) {
            None => self.scoped_problem(texts::MOVED, &[("to", &to)]),
            Some(group) => self.scoped_problem(texts::MOVED_TO_DELETED, &[("group", &group)]),
        }
    }

    /// It is archived at the path `from`, so it cannot be moved.
    pub(super) fn closed_to_moves(&self, from: &str) -> Problem {
        self.problem(texts::ARCHIVED, &[("from", &escape(from))])
    }

    /// It is marked for deletion, and may not be restored.
    pub(super) fn deleting(&self, since: Option<&str>) -> Problem {
        let since = since.map_or_else(String::new, |day| format!(" since {}", escape(day)));
        self.scoped_problem(texts::DELETING, &[("since", &since)])
    }

    pub(super) fn import_failed(&self, why: Option<&str>) -> Problem {
        let why = why.unwrap_or("the service gave no reason");
        self.problem(texts::IMPORT_FAILED, &[("why", &why)])
    }
}
