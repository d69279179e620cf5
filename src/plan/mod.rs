//! The plan: what apply will do, and why other things do not happen.
//!
//! [`project`] turns one declared project and what was found of it into a [`ProjectPlan`]: pure,
//! synchronous, the same bytes for the same input. [`Plan`] gathers those. A plan is an immutable
//! value that leaves no choice to apply: steps are calls, edges are reasons.

mod guard;
mod order;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::Serialize;

pub use guard::{Guard, Limits, Refusal};
pub use order::Edge;

use crate::{
    address::{Address, Selector},
    cause::Cause,
    diff::{self, Action, Change, Context, Difference, Incomplete, Note, Problem, Reason, Shown},
    kind::{LiveEntry, Shape, Target},
    kinds,
    live::{Caller, Collection, Live, Presence},
    manifest::{self, Declared},
    operation::{Request, Write},
    origin::Origin,
    planted::Bug,
    secret::Secrets,
    text,
    value::{Fields, Json},
};

/// The whole plan.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Plan {
    /// What to do, ordered by address; within a project in an order that keeps the edges.
    pub steps: Vec<Step>,
    /// Why other things do not happen.
    pub notes: Vec<Note>,
    /// What has to be put right before anything is applied.
    pub problems: Vec<Problem>,
    /// What could not be read, so that nothing is planned there.
    pub incomplete: Vec<Incomplete>,
    /// What the guards refuse.
    pub refusals: Vec<Refusal>,
    /// How many declared projects were looked at.
    pub projects: usize,
}

/// One object to create, change or remove.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Step {
    /// The object.
    pub address: Address,
    /// What is done to it.
    pub action: Action,
    /// Where it is declared.
    pub origin: Origin,
    /// What changes, field by field.
    pub changes: Vec<Change>,
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// The steps of the same project that come first, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Edge>,
    /// Whether it closes the project, so that it waits until everything before it was read back and
    /// found as declared.
    #[serde(skip)]
    pub closes: bool,
    /// The calls as they are sent. They hold secret references, and live values that are not shown.
    #[serde(skip)]
    pub requests: Vec<Request<Write>>,
    /// What was found, to tell later whether it moved.
    #[serde(skip)]
    live: Option<Sealed>,
}

impl Step {
    /// Whether `other`, planned anew, does the same to an object that is as it was, by calls that
    /// go to the same and carry nothing else.
    pub fn is_as(&self, other: &Self) -> bool {
        let fits = |(own, other): (&Call, &Call)| {
            own.is_to(other) && other.fields.iter().all(|field| own.fields.contains(field))
        };
        self.address == other.address
            && self.action == other.action
            && self.changes.len() == other.changes.len()
            && self.changes.iter().all(|change| self.does_as(other, &change.field))
            && self.calls.iter().zip(&other.calls).all(fits)
    }

    /// Whether `other`, planned anew, does the same to a field that is as it was.
    pub fn does_as(&self, other: &Self, field: &str) -> bool {
        let before =
            |step: &Self| step.live.as_ref().and_then(|live| live.0.fields.get(field).cloned());
        let after = |step: &Self| {
            step.changes
                .iter()
                .find(|change| change.field == field)
                .map(|change| change.after.clone())
        };
        after(self) == after(other) && before(self) == before(other)
    }
}

/// A live entry that is kept but not shown.
#[derive(Clone)]
struct Sealed(LiveEntry);

impl std::fmt::Debug for Sealed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[live entry]")
    }
}

/// A call as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Call {
    /// The id of the operation.
    #[serde(serialize_with = "crate::text::word")]
    pub operation: &'static str,
    /// The HTTP method.
    #[serde(serialize_with = "crate::text::word")]
    pub method: &'static str,
    /// The path and the query below `/api/v4`.
    pub path: String,
    /// The names of the fields that it carries.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "kinds::serialize_names")]
    pub fields: Vec<String>,
}

impl Call {
    /// Whether `other` goes to the same thing of its project, which a new plan may name by its id.
    fn is_to(&self, other: &Self) -> bool {
        self.operation == other.operation
            && self.path.split('/').skip(3).eq(other.path.split('/').skip(3))
    }
}

impl From<&Request<Write>> for Call {
    fn from(request: &Request<Write>) -> Self {
        let mut fields: Vec<_> = request.names().map(str::to_owned).collect();
        fields.sort();
        let operation = request.operation;
        Self {
            operation: operation.id,
            method: operation.method.as_str(),
            path: request.target(),
            fields,
        }
    }
}

/// What one project brings to the plan.
#[derive(Debug, Default)]
pub struct ProjectPlan {
    /// See [`Plan::steps`].
    pub steps: Vec<Step>,
    /// See [`Plan::notes`].
    pub notes: Vec<Note>,
    /// See [`Plan::problems`].
    pub problems: Vec<Problem>,
    /// See [`Plan::incomplete`].
    pub incomplete: Vec<Incomplete>,
    /// See [`Plan::refusals`].
    pub refusals: Vec<Refusal>,
    /// The sections of which everything that is declared was compared with everything that is
    /// there.
    compared: BTreeSet<&'static str>,
    /// Why nothing of the project was compared, if so.
    closed: Option<Cause>,
}

impl ProjectPlan {
    /// Why it says nothing of `step`, another plan's, that this one has no such step: what `step`
    /// is about was not read whole, is no longer where it was, or was answered without a field that
    /// the step changes. Without a doubt, nothing is left of the step to do.
    pub fn doubt(&self, step: &Step) -> Option<Cause> {
        if Bug::UnreadIsDone.is_planted() {
            return None;
        }
        let address = &step.address;
        if !address.section.is_some_and(|section| self.compared.contains(section)) {
            let of_section = |scope: &&Incomplete| {
                scope.address.section == address.section && scope.address.entry.is_none()
            };
            let unread =
                || self.incomplete.iter().find(of_section).map(|scope| scope.reason.clone());
            let whole = self.closed.clone().or_else(unread);
            return whole.or_else(|| address.section.map(|_| Cause::new("not read")));
        }
        let ambiguous = self
            .incomplete
            .iter()
            .find(|scope| scope.address == *address)
            .map(|scope| scope.reason.clone());
        let broken = || {
            self.problems
                .iter()
                .find(|problem| problem.address == *address)
                .map(|p| Cause::new(p.message.clone()))
        };
        let lacking = self.noted(step, &Reason::NotReturned);
        let lacking = (!lacking.is_empty())
            .then(|| Cause::new(format!("the service's answer lacks {}", text::listed(&lacking))));
        ambiguous.or_else(broken).or(lacking)
    }

    /// Why nothing of the project was compared, if so: it is not there, not where it was, or
    /// archived.
    pub const fn closed(&self) -> Option<&Cause> {
        self.closed.as_ref()
    }

    /// The fields that `step`, an update of another plan's, changes without this plan being able to
    /// tell whether they were changed.
    pub fn unseen(&self, step: &Step) -> Vec<&str> {
        if step.action == Action::Update {
            self.noted(step, &Reason::CannotVerify)
        } else {
            Vec::new()
        }
    }

    /// The fields that `step` changes and of which this plan notes `reason`; one that was known not
    /// to be set is not among them, because that it is set now is all that can be seen of it.
    fn noted(&self, step: &Step, reason: &Reason) -> Vec<&str> {
        let was_unset = |change: &Change| change.before == Shown::Value(Json::Null);
        let notes =
            self.notes.iter().filter(|note| note.address == step.address && note.reason == *reason);
        let changed = |field: &&str| {
            step.changes.iter().any(|change| change.field == *field && !was_unset(change))
        };
        notes.flat_map(|note| &note.fields).map(String::as_str).filter(changed).collect()
    }

    /// Plans nothing, because of `problem`.
    fn close(&mut self, problem: Problem) {
        self.closed = Some(Cause::new(problem.message.clone()));
        self.problems.push(problem);
    }

    /// Takes what closes the project out of `differences` as long as anything else could not be
    /// compared: it could not be changed later.
    fn withhold_closing(&mut self, differences: &mut Vec<Difference>) {
        if self.incomplete.is_empty() && self.problems.is_empty() {
            return;
        }
        if let Some(at) = differences.iter().position(order::closes) {
            let reason = Cause::new("the project is archived only after everything else was read")
                .transient();
            self.incomplete.push(Incomplete { address: differences.remove(at).address, reason });
        }
    }
}

/// What a plan depends on besides what is declared and what is live.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who asks.
    pub caller: Caller,
    /// What secret references stand for, as far as it is known here.
    pub secrets: Arc<Secrets>,
    /// The objects that are looked at.
    pub selection: Selection,
    /// The objects whose write-only fields are sent again.
    pub resend: Vec<Selector>,
    /// What guards let pass.
    pub limits: Limits,
    /// The refusals that are let through, as `GUARD:ADDRESS`.
    pub acknowledged: Vec<String>,
}

/// The objects that a run looks at.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only these, if there are any.
    pub only: Vec<Selector>,
    /// Not these.
    pub exclude: Vec<Selector>,
}

impl Selection {
    /// Whether `address` is selected.
    pub fn holds(&self, address: &Address) -> bool {
        (self.only.is_empty() || self.only.iter().any(|s| s.matches(address)))
            && !self.exclude.iter().any(|s| s.matches(address))
    }

    /// Whether something in `section` of `project` may be selected, so that it has to be read.
    pub fn touches(&self, project: &Address, section: &'static str) -> bool {
        let address = project.section(section);
        (self.only.is_empty() || self.only.iter().any(|s| s.touches_section(&address)))
            && !self.exclude.iter().any(|s| s.matches(&address))
    }
}

/// Plans one project.
pub fn project(declared: &manifest::Project, live: &Live, settings: &Settings) -> ProjectPlan {
    let mut plan = ProjectPlan::default();
    let address = declared.address();
    match &live.presence {
        Presence::Here(facts) => {
            let context = Context {
                target: &facts.target,
                project: &address,
                caller: &settings.caller,
                personal_owner: facts.personal_owner,
                users: &live.users,
                secrets: &settings.secrets,
                resend: &settings.resend,
            };
            if facts.archived && declared.archived() != Some(false) {
                plan.notes.push(note(&address, Reason::Archived, &declared.origin));
                plan.closed = Some(Cause::new("the project is archived"));
                // Nothing else could be seen of it, but that it is archived.
                plan.compared.extend(declared.archived().map(|_| "archived"));
            } else {
                sections(declared, live, context, settings, &mut plan);
            }
        }
        Presence::Missing(target) => match &declared.create {
            Some(_) => create(declared, target, live, settings, &mut plan),
            None => plan.close(missing_project(&address, &declared.origin)),
        },
        Presence::NoNamespace(namespace) => plan.close(Problem {
            address,
            code: "missing-namespace",
            message: format!(
                "no group or user `{}` exists, or the token cannot see it",
                crate::text::escape(namespace)
            ),
            help: Some("create the group first, or correct `path`".into()),
            origin: declared.origin.clone(),
        }),
        Presence::Moved { to } => {
            plan.close(moved_project(&address, to.as_deref(), &declared.origin));
        }
        Presence::Deleting { since } => {
            plan.close(deleting_project(&address, since.as_deref(), &declared.origin));
        }
        Presence::Unreadable(reason) => {
            plan.closed = Some(reason.clone());
            plan.incomplete.push(Incomplete { address, reason: reason.clone() });
        }
    }
    plan.refusals.retain(|refusal| !settings.acknowledged.contains(&refusal.acknowledgement));
    plan
}

fn note(address: &Address, reason: Reason, origin: &Origin) -> Note {
    Note { address: address.clone(), reason, fields: Vec::new(), origin: Some(origin.clone()) }
}

fn missing_project(address: &Address, origin: &Origin) -> Problem {
    Problem {
        address: address.clone(),
        code: "missing-project",
        message: format!("the project `{}` does not exist", address.path),
        help: Some("write `create: true` to allow undrift to create it, or correct `path`".into()),
        origin: origin.clone(),
    }
}

fn moved_project(address: &Address, to: Option<&str>, origin: &Origin) -> Problem {
    let (message, help) = match to {
        Some(to) => {
            let to = crate::text::escape(to);
            (format!("the project `{}` is now `{to}`", address.path), format!("write `path: {to}`"))
        }
        None => {
            (format!("the project `{}` was renamed", address.path), "write its new path".to_owned())
        }
    };
    Problem {
        address: address.clone(),
        code: "moved-project",
        message,
        help: Some(help),
        origin: origin.clone(),
    }
}

fn deleting_project(address: &Address, since: Option<&str>, origin: &Origin) -> Problem {
    let since = since.map(|day| format!(" since {}", crate::text::escape(day))).unwrap_or_default();
    Problem {
        address: address.clone(),
        code: "deleted-project",
        message: format!("the project `{}` is marked for deletion{since}", address.path),
        help: Some(format!(
            "restore it with `undrift call project-restore id={}`, or remove its manifest",
            address.path
        )),
        origin: origin.clone(),
    }
}

/// Plans the sections of a project that is there.
fn sections(
    declared: &manifest::Project,
    live: &Live,
    context: Context<'_>,
    settings: &Settings,
    plan: &mut ProjectPlan,
) {
    let mut differences = Vec::new();
    for kind in kinds::KINDS {
        let Some(section) = declared.sections.get(kind.section()) else { continue };
        if !settings.selection.touches(context.project, kind.section()) {
            continue;
        }
        let unread = Collection::Unreadable(Cause::new("not read"));
        let found = live.sections.get(kind.section()).unwrap_or(&unread);
        match diff::section(section, found, context) {
            Ok(diff) => {
                let selected: Vec<_> = diff
                    .differences
                    .into_iter()
                    .filter(|d| settings.selection.holds(&d.address))
                    .collect();
                if kind.shape() == Shape::List
                    && let Ok(entries) = found.entries()
                {
                    let address = context.project.section(kind.section());
                    plan.refusals.extend(guard::removals(
                        &address,
                        &section.origin,
                        entries.len(),
                        &selected,
                        &settings.limits,
                    ));
                }
                plan.compared.insert(kind.section());
                differences.extend(selected);
                plan.notes.extend(
                    diff.notes.into_iter().filter(|note| settings.selection.holds(&note.address)),
                );
                plan.problems.extend(diff.problems);
                plan.incomplete.extend(diff.incomplete);
            }
            Err(reason) => {
                let address = context.project.section(kind.section());
                plan.incomplete.push(Incomplete { address, reason });
            }
        }
    }
    plan.withhold_closing(&mut differences);
    plan.refusals.extend(guard::access(&differences, live, &settings.caller));
    plan.refusals.extend(differences.iter().filter_map(guard::visibility));
    plan.steps = order::steps(differences, &settings.caller);
}

/// Plans a project that is not there: the project with its settings first, everything else after
/// it.
fn create(
    declared: &manifest::Project,
    target: &Target,
    live: &Live,
    settings: &Settings,
    plan: &mut ProjectPlan,
) {
    let address = declared.address();
    if !settings.selection.holds(&address) {
        plan.closed = Some(Cause::new("the project does not exist"));
        return;
    }
    let context = Context {
        target,
        project: &address,
        caller: &settings.caller,
        personal_owner: None,
        users: &live.users,
        secrets: &settings.secrets,
        resend: &[],
    };
    let mut differences = vec![creation(declared, context, &mut plan.notes)];
    for kind in kinds::KINDS.iter().filter(|kind| !CREATED_WITH.contains(&kind.section())) {
        let Some(section) = declared.sections.get(kind.section()) else { continue };
        // Nothing is there yet, but that the people whom a section names are known may have to be
        // read.
        let found = live.sections.get(kind.section()).unwrap_or(&Collection::Fresh);
        match diff::section(section, found, context) {
            Ok(diff) => {
                differences.extend(diff.differences);
                plan.notes.extend(diff.notes);
                plan.problems.extend(diff.problems);
            }
            Err(reason) => plan
                .incomplete
                .push(Incomplete { address: address.section(kind.section()), reason }),
        }
    }
    plan.withhold_closing(&mut differences);
    plan.steps = order::steps(differences, &settings.caller);
}

/// The sections that come into being with the project itself.
const CREATED_WITH: [&str; 1] = ["settings"];

/// The project itself, with its settings and the create-only fields. What has to wait becomes a
/// note.
fn creation(
    declared: &manifest::Project,
    context: Context<'_>,
    notes: &mut Vec<Note>,
) -> Difference {
    let kind = kinds::of_section("settings").expect("settings are a kind");
    let entry = declared.sections.get("settings").and_then(|section| section.entries.first());
    let fields: BTreeMap<_, _> = declared
        .create
        .iter()
        .chain(entry.map(|entry| &entry.fields))
        .flat_map(Declared::iter)
        .collect();
    let values: Fields =
        fields.iter().map(|(name, sourced)| ((*name).to_owned(), sourced.value.clone())).collect();
    let (mut changes, address) = (Vec::new(), context.project.section(kind.section()));
    for (name, sourced) in &fields {
        match kind.waits(name, &values, None) {
            Some(why) => notes.push(Note {
                address: address.clone(),
                reason: Reason::Waits { why: why.into() },
                fields: vec![(*name).to_owned()],
                origin: Some(sourced.origin.clone()),
            }),
            None => changes.push(diff::creation_change(kind, name, sourced)),
        }
    }
    let subject =
        crate::kind::Subject { target: context.target, declared: &values, users: context.users };
    Difference {
        address: context.project.clone(),
        action: Action::Create,
        origin: declared.origin.clone(),
        changes,
        requests: kind.create(subject),
        live: None,
        access: None,
    }
}

impl Plan {
    /// Takes in what one more project brings.
    pub fn add(&mut self, project: ProjectPlan) {
        self.projects += 1;
        self.steps.extend(project.steps);
        self.notes.extend(project.notes);
        self.problems.extend(project.problems);
        self.incomplete.extend(project.incomplete);
        self.refusals.extend(project.refusals);
    }

    /// Puts everything into the one order that does not depend on which project was read first.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        // Within a project the order of the steps keeps the edges; the sort is stable.
        self.steps.sort_by(|a, b| a.address.path.cmp(&b.address.path));
        self.notes.sort();
        self.problems.sort();
        self.incomplete.sort();
        self.refusals.sort();
        self
    }

    /// How many objects are created, changed and removed.
    pub fn counts(&self) -> Counts {
        let count = |action| self.steps.iter().filter(|step| step.action == action).count();
        let paths: std::collections::BTreeSet<_> =
            self.steps.iter().map(|step| &step.address.path).collect();
        Counts {
            create: count(Action::Create),
            update: count(Action::Update),
            delete: count(Action::Delete),
            calls: self.steps.iter().map(|step| step.calls.len()).sum(),
            projects: paths.len(),
        }
    }
}

/// The size of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Objects that are created.
    pub create: usize,
    /// Objects that change.
    pub update: usize,
    /// Objects that are removed.
    pub delete: usize,
    /// Calls that this takes.
    pub calls: usize,
    /// Projects that are touched.
    pub projects: usize,
}
