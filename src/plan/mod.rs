//! The plan: what apply will do, and why other things do not happen.
//!
//! In: what is declared ([`Container`]), what was found of it ([`Live`]), and [`Settings`]. Out: a
//! [`ContainerPlan`] for each container, gathered into one [`Plan`]. It reads nothing and writes
//! nothing; what it needs to know besides, it asks for as a [`Question`](crate::live::Question) and is called again. A
//! plan leaves no choice to apply: steps are calls, edges are reasons. What of it may run is
//! decided in one place, [`Plan::approve`].

mod approve;
mod base;
mod connect;
mod container;
mod creation;
mod estimate;
mod grants;
mod guard;
mod hold;
mod lifecycle;
mod order;
mod reach;
pub mod saved;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Deref, DerefMut},
    sync::Arc,
};

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Serialize;

pub use approve::{Acknowledged, Approved, Blocked, LeftOut, Policy};
pub use base::{Against, Already, Base, Rest, left};
pub use container::container;
pub use estimate::Estimate;
pub use guard::Limits;
pub use hold::Holds;
pub use reach::{Extent, Limited};

use reach::BroughtIn;

use crate::{
    address::{Address, Selector},
    cause::Cause,
    desired::{Container, Desired, Exception, Groups, Moves, Roster},
    diff::{Action, Findings, Incomplete, Note, Problem, Reason, Shown, Step},
    field::Scope,
    kind::{Arrival, Created},
    live::{Caller, Live},
    planted::Bug,
    release::Release,
    secret::Secrets,
    text,
    value::Json,
};

/// What a plan depends on besides what is declared and what is live.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who asks.
    pub caller: Caller,
    /// What secret references stand for, as far as it is known here.
    pub secrets: Arc<Secrets>,
    /// The release of the service, where it does not tell itself.
    pub release: Option<Release>,
    /// The groups that the run creates where they are missing.
    pub created: Created,
    /// What is declared, and where that was before.
    pub moves: Arc<Moves>,
    /// What the groups of the run declare.
    pub groups: Groups,
    /// The objects whose write-only fields are sent again.
    pub resend: Vec<Selector>,
    /// What is left alone for some days.
    pub holds: Holds,
    /// What guards let pass.
    pub limits: Limits,
    /// The names by which the service calls the hosts for which the reference has neutral words,
    /// each after its word.
    pub hosts: Vec<(&'static str, String)>,
}

impl Settings {
    /// Those of a run of `desired` by `caller` that says nothing else.
    pub fn of(caller: Caller, secrets: Arc<Secrets>, desired: &Desired) -> Self {
        Self {
            caller,
            secrets,
            release: None,
            created: desired.created(),
            moves: Arc::clone(&desired.moves),
            groups: Groups::of(&desired.containers),
            resend: Vec::new(),
            holds: Holds::default(),
            limits: Limits::default(),
            hosts: Vec::new(),
        }
    }

    /// Until which day what is at `address` is left alone, if it is.
    fn held_until(&self, address: &Address) -> Option<Date> {
        self.holds.until(address, &self.moves)
    }

    /// Takes out of the steps of `findings` what is held: it is only watched.
    fn leave_held(&self, findings: &mut Findings) {
        self.holds.leave(findings, &self.moves);
    }
}

/// The whole plan.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Plan {
    /// What was found, ordered by address; within a container, steps are in an order that keeps the
    /// edges.
    #[serde(flatten)]
    pub findings: Findings,
    /// What guards refused and an acknowledgement let through.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub acknowledged: Vec<Acknowledged>,
    /// How many projects were looked at that are declared or that a rule brought in.
    pub projects: usize,
    /// How many groups were looked at that are declared or that a rule brought in.
    pub groups: usize,
    /// How much exists that a rule would bring in and that stays out, by the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub exceptions: BTreeMap<Exception, usize>,
    /// What `--limit` left out, if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited: Option<Limited>,
    /// About how long apply takes, if the service limits requests and it is more than a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// What else was found against the base of this branch, if the plan was made against one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Against>,
    /// What rules brought in.
    #[serde(skip)]
    brought_in: BroughtIn,
    /// What was found of the containers that have steps, so that apply need not read it again.
    #[serde(skip)]
    live: BTreeMap<Arc<str>, Kept>,
    /// What each container brought, if that is remembered.
    #[serde(skip)]
    remembered: Option<BTreeMap<Arc<str>, ContainerPlan>>,
}

/// A live state that is kept but not shown.
struct Kept(Live);

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[live]")
    }
}

impl Deref for Plan {
    type Target = Findings;

    fn deref(&self) -> &Findings {
        &self.findings
    }
}

impl DerefMut for Plan {
    fn deref_mut(&mut self) -> &mut Findings {
        &mut self.findings
    }
}

impl Plan {
    /// A plan beside which stands what of `roster` is not planned.
    pub fn beside(roster: Roster) -> Self {
        let mut plan = Self::default();
        for exception in roster.members.iter().filter_map(|member| member.exception) {
            *plan.exceptions.entry(exception).or_default() += 1;
        }
        let incomplete = roster.incomplete.into_iter();
        plan.findings.incomplete.extend(
            incomplete
                .map(|(part, reason)| Incomplete { address: Address::container(part), reason }),
        );
        plan
    }

    /// The same, and it remembers what it could see of each container.
    #[must_use]
    pub fn remembering(self) -> Self {
        Self { remembered: Some(BTreeMap::new()), ..self }
    }

    /// Why it says nothing of `step`, another plan's, that this one has no such step; see
    /// [`ContainerPlan::doubt`]. It knows only of what it was told to remember.
    pub fn doubt(&self, step: &Step) -> Option<Cause> {
        match self.remembered.as_ref().and_then(|plans| plans.get(&step.address.path)) {
            Some(plan) => plan.doubt(step),
            None => Some(Cause::new("not read")),
        }
    }

    /// Counts a container that is not looked at among what its rule brings in.
    pub fn also_brought_in(&mut self, container: &Container) {
        self.brought_in.add(container);
    }

    /// Takes in what one more container brings, and what was found of it.
    pub fn add(&mut self, container: &Container, plan: ContainerPlan, live: Live) {
        match container.scope {
            Scope::Group => self.groups += 1,
            Scope::Project => self.projects += 1,
        }
        self.brought_in.add(container);
        if !plan.steps.is_empty() {
            self.live.insert(container.path.clone(), Kept(live));
        }
        if let Some(remembered) = &mut self.remembered {
            remembered.insert(container.path.clone(), plan.clone());
        }
        self.findings.extend(plan.findings);
    }

    /// Puts everything into the one order that does not depend on which container was read first,
    /// takes the part of it that is within `extent`, and looks at the whole for what no container
    /// alone shows.
    #[must_use]
    pub fn sorted(mut self, extent: &Extent) -> Self {
        // Within a container the order of the steps keeps the edges; the sort is stable.
        self.findings.steps.sort_by(|a, b| a.address.path.cmp(&b.address.path));
        self.findings.problems.extend(connect::connect(&mut self.findings.steps));
        if let Some(most) = extent.limit {
            self.limit(most.get());
        }
        self.findings.refusals.extend(guard::whole(&self.findings.steps));
        let reach = self.brought_in.refusals(&self.findings.steps, &extent.reach);
        self.findings.refusals.extend(reach);
        self.findings.watched.sort_by(|a, b| a.address.path.cmp(&b.address.path));
        self.findings.held.sort();
        self.findings.notes.sort();
        self.findings.problems.sort();
        self.findings.incomplete.sort();
        self.findings.refusals.sort();
        self.base.iter_mut().for_each(Against::sort);
        self
    }

    /// How many objects are created, changed and removed.
    pub fn counts(&self) -> Counts {
        Counts::of(self.steps.iter())
    }

    /// The steps of which a branch is the reason, as far as anybody knows; all, without a base.
    pub fn own(&self) -> impl Iterator<Item = &Step> + Clone {
        self.steps.iter().filter(|step| !step.is_drift())
    }

    /// How many live entries no manifest lists.
    pub fn unlisted(&self) -> usize {
        self.notes.iter().filter(|note| note.reason.is_unlisted()).count()
    }

    /// Whether something differs from what is declared, also what apply leaves alone, unless it is
    /// held: whoever holds it knows. With `strict`, what is held, and what nobody lists, knows or
    /// could verify differs too.
    pub fn differs(&self, strict: bool) -> bool {
        let counts = |reason: &Reason| reason.is_difference() || (strict && reason.is_open());
        let is_known = |address: &Address| !strict && self.held_until(address).is_some();
        let watched = self.watched.iter().map(|step| &step.address);
        let noted = self.notes.iter().filter(|note| counts(&note.reason));
        let is_left = self.base.as_ref().is_some_and(|base| !base.left.is_empty());
        is_left
            || !self.steps.is_empty()
            || !watched.chain(noted.map(|note| &note.address)).all(is_known)
    }

    /// Whether something differs that apply leaves alone.
    pub fn leaves_alone(&self) -> bool {
        !self.watched.is_empty() || self.notes.iter().any(|note| note.reason.is_difference())
    }

    /// Until which day what is at `address` is left alone, if it is. The plan has to be
    /// [`sorted`](Self::sorted).
    pub fn held_until(&self, address: &Address) -> Option<Date> {
        // The container comes before its parts. There are few holds in one, but there may be many
        // containers.
        let first = self.held.partition_point(|held| held.address.path < address.path);
        let mut own = self.held[first..].iter();
        let own = own.by_ref().take_while(|held| held.address.path == address.path);
        own.filter(|held| held.holds(address)).map(|held| held.until).max()
    }

    /// What differs and is watched: what is held, and what is not.
    pub fn watched_and_held(&self) -> (Vec<&Step>, Vec<&Step>) {
        self.watched.iter().partition(|step| self.held_until(&step.address).is_none())
    }

    /// What was found of the container at `path`, if it has steps.
    pub fn live(&self, path: &str) -> Option<&Live> {
        self.live.get(path).map(|kept| &kept.0)
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
    /// Calls that this takes, if none fails.
    pub calls: usize,
    /// Groups and projects that are touched.
    pub projects: usize,
}

impl Counts {
    /// The size of `steps`.
    pub fn of<'s>(steps: impl Iterator<Item = &'s Step> + Clone) -> Self {
        let count = |action| steps.clone().filter(|step| step.action == action).count();
        let paths: BTreeSet<_> = steps.clone().map(|step| &step.address.path).collect();
        let sent = |step: &Step| step.calls.iter().filter(|call| !call.is_spare()).count();
        Self {
            create: count(Action::Create),
            update: count(Action::Update),
            delete: count(Action::Delete),
            calls: steps.map(sent).sum(),
            projects: paths.len(),
        }
    }
}

/// What one container brings to the plan.
#[derive(Clone, Debug, Default)]
pub struct ContainerPlan {
    /// What was found.
    pub findings: Findings,
    /// The sections of which everything that is declared was compared with everything that is
    /// there.
    compared: BTreeSet<&'static str>,
    /// The sections that something declared closes.
    shut: BTreeSet<&'static str>,
    /// Why nothing of the container was compared, if so.
    closed: Option<Cause>,
    /// If the container is there and its contents are not, how that stands.
    arrival: Option<Arrival>,
}

impl Deref for ContainerPlan {
    type Target = Findings;

    fn deref(&self) -> &Findings {
        &self.findings
    }
}

impl ContainerPlan {
    /// Why it says nothing of `step`, another plan's, that this one has no such step: what `step`
    /// is about was not read whole, is no longer where it was, or was answered without a field that
    /// the step changes. Without a doubt, nothing is left of the step to do.
    pub fn doubt(&self, step: &Step) -> Option<Cause> {
        if Bug::UnreadIsDone.is_planted() {
            return None;
        }
        let address = &step.address;
        if !self.has_compared(step) {
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

    /// Whether what `step` is about was compared: then nothing is to be done to it but what is
    /// [certain](Step::certain), unless the condition of the step comes about.
    pub fn has_compared(&self, step: &Step) -> bool {
        step.address.section.is_some_and(|section| self.compared.contains(section))
    }

    /// Why nothing of the container was compared, if so: it is not there, not where it was, or
    /// archived.
    pub const fn closed(&self) -> Option<&Cause> {
        self.closed.as_ref()
    }

    /// If the container is there and its contents are not, how that stands.
    pub const fn arrival(&self) -> Option<&Arrival> {
        self.arrival.as_ref()
    }

    /// Whether something declared closes `section`, so that nothing can be seen of it.
    pub fn is_shut(&self, section: &str) -> bool {
        self.shut.contains(section)
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
        let notes =
            self.notes.iter().filter(|note| note.address == step.address && note.reason == *reason);
        let mut fields = notes.flat_map(|note| &note.fields).map(String::as_str).peekable();
        if fields.peek().is_none() {
            return Vec::new();
        }
        let was_unset = |before: &Shown| *before == Shown::Value(Json::Null);
        let changed: BTreeSet<_> = step
            .changes
            .iter()
            .filter(|change| !was_unset(&change.before))
            .map(|change| change.field.as_str())
            .collect();
        fields.filter(|field| changed.contains(field)).collect()
    }

    /// Plans nothing of what a rule brought in, because it is not there any more.
    fn vanished(&mut self, declared: &Container) {
        self.closed = Some(Cause::new("it is gone, or archived, since the run listed what exists"));
        self.findings.notes.push(Note {
            address: declared.address(),
            reason: Reason::Vanished,
            fields: Vec::new(),
            origin: Some(declared.origin.clone()),
        });
    }

    /// Plans nothing, because of `problem`.
    fn close(&mut self, problem: Problem) {
        self.closed = Some(Cause::new(problem.message.clone()));
        self.findings.problems.push(problem);
    }
}
