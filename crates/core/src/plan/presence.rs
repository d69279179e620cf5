//! Plans a container by whether it exists, and where. If it is not where it is declared, says why
//! nothing of it is planned.

use super::{ContainerPlan, container::Planning};
use crate::{
    cause::Cause,
    diff::Problem,
    kind::{Facts, marked_above},
    live::Presence,
    origin::Origin,
    text::escape,
};

/// What to do about something that a snapshot lacks: it may exist under another path, and creating it
/// would make a second one.
const OFFLINE: &str = "correct `path`; if it was renamed, only a plan without a snapshot shows it";

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
            Presence::Twice { at, other } => plan.close(self.twice(at, other)),
            Presence::Halfway { from, at } => plan.close(self.halfway(from, at)),
            Presence::Unreadable(reason) => {
                plan.leave_unread(self.address.clone(), reason.clone());
            }
        }
    }

    /// A problem of the container as a whole.
    fn problem(&self, code: &'static str, message: String, help: impl Into<String>) -> Problem {
        Problem::new(self.address, code, message, help, &self.declared.origin)
    }

    /// A problem with its former paths.
    fn previously(&self, message: String, help: String) -> Problem {
        Problem {
            origin: self.former_origin().clone(),
            ..self.problem("previously", message, help)
        }
    }

    /// Where its former path is declared.
    pub(super) fn former_origin(&self) -> &Origin {
        let former = self.declared.life.previously.first();
        former.map_or(&self.declared.origin, |former| &former.origin)
    }

    /// It does not exist. `is_unselected`: the run would create it if it selected all of it.
    pub(super) fn not_there(&self, is_unselected: bool) -> Problem {
        let (noun, path) = (self.declared.scope.noun(), &self.address.path);
        let code = self.declared.scope.of("missing-group", "missing-project");
        let help = if is_unselected {
            format!("select it as a whole to create it: `--only {path}`")
        } else if self.settings.is_offline {
            OFFLINE.to_owned()
        } else {
            "write `create: true` to allow undrift to create it, or correct `path`".to_owned()
        };
        // Nothing above a top-level group shows whether it is only hidden.
        let or_hidden = if path.contains('/') { "" } else { ", or the token cannot see it" };
        self.problem(code, format!("the {noun} `{path}` does not exist{or_hidden}"), help)
    }

    /// Nothing exists at the path `namespace` of its group or user.
    pub(super) fn missing_namespace(&self, namespace: &str) -> Problem {
        let namespace = escape(namespace);
        let message = format!("no group or user `{namespace}` exists, or the token cannot see it");
        let help = match self.settings.is_offline {
            true => OFFLINE.to_owned(),
            false => format!(
                "declare the group with `create: true`, select it too if it is (`--only {namespace}`), or correct `path`"
            ),
        };
        self.problem("missing-namespace", message, help)
    }

    fn moved(&self, to: Option<&str>) -> Problem {
        let (noun, path) = (self.declared.scope.noun(), &self.address.path);
        let code = self.declared.scope.of("moved-group", "moved-project");
        let Some(to) = to.map(escape) else {
            return self.problem(
                code,
                format!("the {noun} `{path}` was renamed"),
                "write its new path",
            );
        };
        let Some(group) = marked_above(&to) else {
            let message = format!("the {noun} `{path}` is now `{to}`");
            return self.problem(code, message, format!("write `path: {to}`"));
        };
        let message =
            format!("the {noun} `{path}` is in a group that is marked for deletion, `{group}`");
        let help =
            format!("restore it (`undrift call group-restore id={group}`), or remove the manifest");
        self.problem(code, message, help)
    }

    fn twice(&self, at: &str, other: &str) -> Problem {
        let noun = self.declared.scope.noun();
        let (at, other) = (escape(at), escape(other));
        let message = format!(
            "`{at}` exists, and so does `{other}`, where the {noun} is declared to have been before"
        );
        let help = format!(
            "take `{other}` out of `previously`, or give one of the two another path by hand"
        );
        self.previously(message, help)
    }

    fn halfway(&self, from: &str, at: &str) -> Problem {
        let (noun, path) = (self.declared.scope.noun(), &self.address.path);
        let (from, at) = (escape(from), escape(at));
        let message = format!(
            "neither `{path}` nor `{from}` exists, but `{at}` does, as if a run had ended between renaming and moving the {noun}"
        );
        let help = format!(
            "if it is this {noun}, write `previously: [{at}]`; if not, take `previously` away"
        );
        self.previously(message, help)
    }

    /// It is archived at the path `from`, so it cannot be moved.
    pub(super) fn closed_to_moves(&self, from: &str) -> Problem {
        let (noun, from) = (self.declared.scope.noun(), escape(from));
        let message =
            format!("the {noun} is archived at `{from}`, and cannot be moved while it is");
        let help = "write `archived: false`, and archive it again when it has moved";
        self.problem("archived", message, help)
    }

    /// It is marked for deletion, and may not be restored.
    pub(super) fn deleting(&self, since: Option<&str>) -> Problem {
        let since = since.map_or_else(String::new, |day| format!(" since {}", escape(day)));
        let (noun, path) = (self.declared.scope.noun(), &self.address.path);
        let code = self.declared.scope.of("deleting-group", "deleting-project");
        let message = format!("the {noun} `{path}` is marked for deletion{since}");
        let help = format!(
            "let an owner restore it (`undrift call {noun}-restore id={path}`), or remove its manifest"
        );
        self.problem(code, message, help)
    }

    pub(super) fn import_failed(&self, why: Option<&str>) -> Problem {
        let (noun, path) = (self.declared.scope.noun(), &self.address.path);
        let why = why.unwrap_or("the service gave no reason");
        let help = format!(
            "delete the {noun} and run again; to keep it as it is, remove its source from the manifest"
        );
        self.problem("import-failed", format!("the import of `{path}` failed: {why}"), help)
    }
}
