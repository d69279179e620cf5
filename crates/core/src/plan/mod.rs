//! The plan: the steps of apply, and notes about differences that apply does not change.
//!
//! Input: the declaration ([`Container`]), the live state ([`LiveContainer`]), and
//! [`PlanSettings`]. Output: a [`ContainerPlan`] for each container, combined into one [`Plan`].
//! This module sends no requests. If the plan needs more facts, the result names them as
//! [`ExtraFact`](crate::live::ExtraFact)s. The caller reads these facts and plans again. A plan
//! contains all decisions: each step contains its calls, and each edge contains its reason. Only
//! [`Plan::approve`] decides what may run.

mod approve;
mod base;
mod closed;
mod connect;
mod container;
mod creation;
mod estimate;
mod grants;
mod guard;
mod hold;
mod lifecycle;
mod order;
mod presence;
mod reach;
mod role;
pub mod saved;
mod settings;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::{Deref, DerefMut},
    sync::Arc,
};

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use approve::{Acknowledged, ApprovalPolicy, ApprovedPlan, BlockedRun, SkippedContainer};
pub use base::{
    Adopted, Base, BaseComparison, BranchPart, DeclarationOutline, DriftPolicy, excluded_steps,
    has_same_changes, mark_changed_files, unneeded_problems,
};
pub use container::plan_container;
pub use estimate::{Counts, Estimate};
pub use grants::{Grantee, grantee_losing_access, grantees};
pub use guard::GuardLimits;
pub use hold::Holds;
pub use reach::{AppliedLimit, Extent};
pub use settings::PlanSettings;

use grants::UserRule;
use reach::IncludedContainers;

use crate::{
    address::Address,
    cause::Cause,
    desired::{Container, ExclusionReason, Roster},
    diff::{
        Action, Findings, Incomplete, KeptLive, Note, Problem, Reason, Shown, Step, StepInterner,
    },
    field::Scope,
    kind::ImportState,
    live::LiveContainer,
    origin::Origin,
    planted::Bug,
    text,
    value::Json,
};

/// The maximum number of live states that a plan keeps. Apply uses only states that are younger than
/// a minute, and rarely changes more groups and projects than this in a minute.
const MAX_KEPT_LIVE_STATES: usize = 10_000;

/// The maximum number of containers whose steps keep their requests, so that apply does not plan them again.
const MAX_CONTAINERS_WITH_REQUESTS: usize = 2_000;

/// The whole plan.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Plan {
    /// The results, ordered by address. The steps of one container are in an order that respects
    /// the edges.
    #[serde(flatten)]
    pub findings: Findings,
    /// The refusals that were acknowledged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acknowledged: Vec<Acknowledged>,
    /// The number of projects that were read: declared projects, and projects that a rule includes.
    pub projects: usize,
    /// The number of groups that were read: declared groups, and groups that a rule includes.
    pub groups: usize,
    /// The number of containers that match a rule but are not included, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exceptions: BTreeMap<ExclusionReason, usize>,
    /// The effect of `--limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited: Option<AppliedLimit>,
    /// The estimated time of apply. Absent if the service does not limit requests, or if the time
    /// is shorter than a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// The comparison with the base of the branch; absent if there is no base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseComparison>,
    /// The number of guard refusals that are not shown, because nothing will be written.
    #[serde(skip)]
    pub hidden_refusal_count: usize,
    /// The rules that name users, by username.
    #[serde(skip)]
    user_rules: HashMap<String, Vec<UserRule>>,
    /// The containers that rules included.
    #[serde(skip)]
    included_containers: IncludedContainers,
    /// True if an `undeclared: include` rule matches nothing.
    #[serde(skip)]
    has_idle_rules: bool,
    /// The live states of the first containers with steps, so that apply need not read them again.
    #[serde(skip)]
    live: BTreeMap<Arc<str>, KeptLive<LiveContainer>>,
    /// The plan of each container; `None` unless [`Self::with_container_plans`] was called.
    #[serde(skip)]
    container_plans: Option<BTreeMap<Arc<str>, ContainerPlan>>,
    /// True if only the first containers keep the requests of their steps.
    #[serde(skip)]
    drops_requests: bool,
    /// Values that many steps share, each stored once.
    #[serde(skip)]
    interner: StepInterner,
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
    /// A plan with these findings for `projects` projects, for tests.
    #[cfg(debug_assertions)]
    pub fn for_test(findings: Findings, projects: usize) -> Self {
        Self { findings, projects, ..Self::default() }
    }

    /// A plan without steps, with the unread groups and the exceptions of `roster`.
    pub fn from_roster(roster: Roster) -> Self {
        let mut plan = Self::default();
        for exception in roster.containers.iter().filter_map(|container| container.exclusion) {
            *plan.exceptions.entry(exception).or_default() += 1;
        }
        plan.has_idle_rules = !roster.idle_rule_warnings.is_empty();
        let incomplete = roster.incomplete_globs.into_iter();
        plan.findings.incomplete.extend(incomplete.map(|(path, reason)| Incomplete {
            address: Address::container(path),
            reason,
            origin: None,
        }));
        plan
    }

    /// A plan that keeps the plan of each container.
    #[must_use]
    pub fn with_container_plans(self) -> Self {
        Self { container_plans: Some(BTreeMap::new()), ..self }
    }

    /// A plan that keeps only the requests of its first steps. This is enough for apply, but not
    /// for saving or comparing the plan.
    #[must_use]
    pub fn without_requests(self) -> Self {
        Self { drops_requests: true, ..self }
    }

    /// The reason why `step` may not have been applied although this plan lacks it; see
    /// [`ContainerPlan::unconfirmed_cause`]. This function needs [`Self::with_container_plans`].
    pub fn unconfirmed_cause(&self, step: &Step) -> Option<Cause> {
        match self.container_plans.as_ref().and_then(|plans| plans.get(&step.address.path)) {
            Some(plan) => plan.unconfirmed_cause(step),
            None => Some(Cause::new("not read")),
        }
    }

    /// Counts a container that a rule includes but that the run does not read.
    pub fn count_included(&mut self, container: &Container) {
        self.included_containers.add(container);
    }

    /// Adds the plan of one more container, and its live state.
    pub fn add(&mut self, container: &Container, mut plan: ContainerPlan, live: LiveContainer) {
        let keeps_requests = self.live.len() < MAX_CONTAINERS_WITH_REQUESTS;
        let Findings { steps, watched, .. } = &mut plan.findings;
        let steps = steps.iter_mut().map(|step| (step, keeps_requests));
        for (step, keeps_requests) in steps.chain(watched.iter_mut().map(|step| (step, false))) {
            if self.drops_requests && !keeps_requests {
                step.drop_requests();
            }
            step.shrink(&mut self.interner);
        }
        match container.scope {
            Scope::Group => self.groups += 1,
            Scope::Project => self.projects += 1,
        }
        self.included_containers.add(container);
        if !plan.steps.is_empty() && self.live.len() < MAX_KEPT_LIVE_STATES {
            self.live.insert(container.path.clone(), KeptLive(Box::new(live)));
        }
        for (username, rule) in std::mem::take(&mut plan.user_rules) {
            self.user_rules.entry(username).or_default().push(rule);
        }
        if let Some(container_plans) = &mut self.container_plans {
            container_plans.insert(container.path.clone(), plan.clone());
        }
        self.findings.extend(plan.findings);
    }

    /// Joins the plans of several runs, each for different groups and projects.
    #[must_use]
    pub fn join(plans: impl IntoIterator<Item = Self>) -> Self {
        let mut joined = Self::default();
        for plan in plans {
            joined.findings.extend(plan.findings);
            joined.acknowledged.extend(plan.acknowledged);
            joined.projects += plan.projects;
            joined.groups += plan.groups;
            for (reason, count) in plan.exceptions {
                *joined.exceptions.entry(reason).or_default() += count;
            }
            joined.limited = join_options(joined.limited, plan.limited, |limit, other| {
                AppliedLimit { to: limit.to + other.to, left_out: limit.left_out + other.left_out }
            });
            // All jobs share the limit of the service.
            joined.estimate = join_options(joined.estimate, plan.estimate, |estimate, part| {
                let longest = if part.seconds > estimate.seconds { part } else { estimate };
                Estimate {
                    requests: estimate.requests + part.requests,
                    seconds: estimate.seconds + part.seconds,
                    ..longest
                }
            });
            joined.base = join_options(joined.base, plan.base, |mut comparison, part| {
                comparison.extend(part);
                comparison
            });
        }
        joined.sort_findings()
    }

    /// Completes the plan after all containers were added: adds the findings that concern several containers,
    /// applies the limit of `extent`, and sorts everything, so that the result does not depend on the order
    /// of reading.
    #[must_use]
    pub fn finish(mut self, extent: &Extent) -> Self {
        self.interner = StepInterner::default();
        // Sort by path only, and stably: the steps of a container are already in an order that
        // respects the edges. Caching the keys avoids a copy of the steps.
        self.findings.steps.sort_by_cached_key(|step| step.address.path.clone());
        self.connect_steps(extent);
        let rules = std::mem::take(&mut self.user_rules);
        self.findings.notes.extend(connect::note_lost_access(&self.findings.steps, &rules));
        if let Some(max_containers) = extent.max_containers {
            self.keep_first_containers(max_containers.get());
        }
        let steps = self.findings.steps.iter();
        let counted_steps: Vec<_> =
            steps.filter(|step| !(extent.ignores_drift && step.is_drift())).collect();
        let reach_refusals =
            self.included_containers.find_refusals(&counted_steps, &extent.reach_limits);
        self.findings
            .refusals
            .extend(guard::refuse_many_removals(&counted_steps).into_iter().chain(reach_refusals));
        self.sort_findings()
    }

    /// Adds the edges between the steps of different containers, and the conflicts. If drift is only
    /// shown, only conflicts between steps of the branch are problems.
    fn connect_steps(&mut self, extent: &Extent) {
        let mut conflicts = connect::add_edges(&mut self.findings.steps);
        if let Some(comparison) = self.base.as_mut().filter(|_| extent.ignores_drift) {
            let branch_steps = self.findings.steps.iter().filter(|step| !step.is_drift());
            let branch_conflicts =
                connect::add_edges(&mut branch_steps.cloned().collect::<Vec<_>>());
            conflicts.retain(|conflict| !branch_conflicts.contains(conflict));
            comparison.problems.extend(std::mem::replace(&mut conflicts, branch_conflicts));
        }
        self.findings.problems.extend(conflicts);
    }

    fn sort_findings(mut self) -> Self {
        // Sort by path only, and stably: the steps of a container are already ordered.
        self.findings.steps.sort_by(|a, b| a.address.path.cmp(&b.address.path));
        self.findings.watched.sort_by(|a, b| a.address.path.cmp(&b.address.path));
        self.findings.held.sort();
        self.findings.notes.sort();
        self.findings.problems.sort();
        self.findings.incomplete.sort();
        self.findings.refusals.sort();
        self.base.iter_mut().for_each(BaseComparison::sort);
        self
    }

    /// The numbers of objects that are created, changed and removed.
    pub fn counts(&self) -> Counts {
        Counts::from_steps(self.steps.iter())
    }

    /// The steps that the branch causes or may cause; without a base, all steps.
    pub fn branch_steps(&self) -> impl Iterator<Item = &Step> + Clone {
        self.steps.iter().filter(|step| !step.is_drift())
    }

    /// The number of unlisted live entries.
    pub fn unlisted_count(&self) -> usize {
        self.notes.iter().filter(|note| note.reason.is_unlisted()).count()
    }

    /// True if something differs from its declaration, including differences that apply does not change.
    pub fn has_differences(&self, strictness: Strictness) -> bool {
        let only_declared = strictness == Strictness::Declared;
        let watched = self.watched.iter().map(|step| &step.address);
        let noted_differences = self.notes.iter().filter(|note| match strictness {
            Strictness::Declared => note.reason.is_difference(),
            Strictness::Unlisted => note.reason.is_strict_difference(),
            Strictness::Unverified => {
                note.reason.is_strict_difference() || note.reason.has_unverified_fields()
            }
        });
        let has_excluded = self.base.as_ref().is_some_and(|base| !base.excluded_steps.is_empty());
        has_excluded
            || (self.has_idle_rules && !only_declared)
            || !self.steps.is_empty()
            || !watched
                .chain(noted_differences.map(|note| &note.address))
                .all(|address| only_declared && self.held_until(address).is_some())
    }

    /// The groups and projects with a difference that `apply` does not change.
    pub fn unapplied_paths(&self) -> BTreeSet<&str> {
        let watched = self.watched.iter().map(|step| &*step.address.path);
        let notes = self.notes.iter().filter(|note| note.reason.is_difference());
        watched.chain(notes.map(|note| &*note.address.path)).collect()
    }

    /// The last day on which the object at `address` is held; `None` if it is not held. Call
    /// [`finish`](Self::finish) first, because this function needs sorted holds.
    pub fn held_until(&self, address: &Address) -> Option<Date> {
        // Holds are sorted by address. Find the holds of the container by binary search, and check
        // each hold.
        let first_position = self.held.partition_point(|held| held.address.path < address.path);
        let mut later_holds = self.held[first_position..].iter();
        let container_holds =
            later_holds.by_ref().take_while(|held| held.address.path == address.path);
        container_holds.filter(|held| held.covers(address)).map(|held| held.until).max()
    }

    /// Separates the watched steps into the steps for watched objects and the steps for held
    /// objects.
    pub fn split_watched_steps(&self) -> (Vec<&Step>, Vec<&Step>) {
        self.watched.iter().partition(|step| self.held_until(&step.address).is_none())
    }

    /// The live state of the container at `path`; `None` if the plan does not keep it.
    pub fn live(&self, path: &str) -> Option<&LiveContainer> {
        self.live.get(path).map(|state| &*state.0)
    }
}

/// Adds the results of `find_more` to `paths`, until it finds no more.
fn extend_to_closure(
    paths: &mut BTreeSet<Arc<str>>,
    find_more: impl Fn(&BTreeSet<Arc<str>>) -> Vec<Arc<str>>,
) {
    loop {
        let new_paths = find_more(paths);
        if new_paths.is_empty() {
            return;
        }
        paths.extend(new_paths);
    }
}

/// Joins both values with `join`. If only one value is present, returns that value.
fn join_options<T>(one: Option<T>, other: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(join(one, other)),
        (one, other) => one.or(other),
    }
}

/// The choice of the findings that are treated as differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Declared objects that differ from the live state, unless they are held.
    Declared,
    /// Also held differences, unlisted entries, and secrets that are not set.
    Unlisted,
    /// Also fields that cannot be verified.
    Unverified,
}

/// The plan of one container.
#[derive(Clone, Debug, Default)]
pub struct ContainerPlan {
    /// The results.
    pub findings: Findings,
    /// The sections that were compared: declaration and live state were both complete.
    compared_sections: BTreeSet<&'static str>,
    /// The sections that a declared switch closes.
    closed_sections: BTreeSet<&'static str>,
    /// The reason if nothing of the container was compared, for example because it does not exist, has
    /// moved, or is archived.
    pub not_compared_cause: Option<Cause>,
    /// The state of the import, if the contents have not arrived.
    pub import_state: Option<ImportState>,
    /// The rules that name users, by username.
    user_rules: Vec<(String, UserRule)>,
}

impl Deref for ContainerPlan {
    type Target = Findings;

    fn deref(&self) -> &Findings {
        &self.findings
    }
}

impl ContainerPlan {
    /// The reason why `step`, a step of another plan, may not have been applied although this plan
    /// lacks it: its object was not read completely or has moved, or the service did not return a
    /// field that the step changes. `None` means that the step has nothing left to do.
    pub fn unconfirmed_cause(&self, step: &Step) -> Option<Cause> {
        if Bug::AssumeUnreadProjectDone.is_planted() {
            return None;
        }
        let address = &step.address;
        if !self.has_compared(step) {
            let mut section_parts = self.incomplete.iter().filter(|unread| {
                unread.address.section == address.section && unread.address.entry.is_none()
            });
            let section_cause =
                self.not_compared_cause.as_ref().or_else(|| Some(&section_parts.next()?.reason));
            return section_cause
                .cloned()
                .or_else(|| address.section.map(|_| Cause::new("not read")));
        }
        if let Some(entry_part) = self.incomplete.iter().find(|part| part.address == *address) {
            return Some(entry_part.reason.clone());
        }
        if let Some(entry_problem) =
            self.problems.iter().find(|problem| problem.address == *address)
        {
            return Some(Cause::new(entry_problem.message.clone()));
        }
        let missing_fields = self.noted_fields(step, &Reason::NotReturned);
        (!missing_fields.is_empty()).then(|| {
            Cause::new(format!("the service's answer lacks {}", text::list_names(&missing_fields)))
        })
    }

    /// True if the object of `step` was compared. If the object was compared, only the
    /// [certain](Step::certain_part) part of a possible step is needed, unless its condition becomes
    /// true.
    pub fn has_compared(&self, step: &Step) -> bool {
        step.address.section.is_some_and(|section| self.compared_sections.contains(section))
    }

    /// True if a declared switch closes `section`. A closed section cannot be read.
    pub fn is_section_closed(&self, section: &str) -> bool {
        self.closed_sections.contains(section)
    }

    /// The fields of `step`, an update of another plan, that this plan cannot verify.
    pub fn unverifiable_fields(&self, step: &Step) -> Vec<&str> {
        if step.action == Action::Update {
            self.noted_fields(step, &Reason::CannotVerify)
        } else {
            Vec::new()
        }
    }

    /// The fields of `step` for which this plan notes `reason`. Omits fields that were unset
    /// before, because it is enough that they are set now.
    fn noted_fields(&self, step: &Step, reason: &Reason) -> Vec<&str> {
        let notes =
            self.notes.iter().filter(|note| note.address == step.address && note.reason == *reason);
        let fields = notes.flat_map(|note| &note.fields).map(String::as_str);
        let null = Shown::Value(Json::Null);
        fields.filter(|field| step.change(field).is_some_and(|c| *c.before != null)).collect()
    }

    /// Plans nothing, because a rule included the container, but it was deleted or archived during this run.
    fn stop_as_vanished(&mut self, declared: &Container) {
        self.not_compared_cause = Some(Cause::new("it was deleted or archived during this run"));
        let note = Note::new(&declared.address(), Reason::Vanished, &declared.origin);
        self.findings.notes.push(note);
    }

    /// Plans nothing for the container `declared`, because it could not be read for `reason`.
    fn stop_as_unread(&mut self, declared: &Container, reason: Cause) {
        self.not_compared_cause = Some(reason.clone());
        self.add_incomplete(declared.address(), reason, &declared.origin);
    }

    /// Plans nothing at `address`, declared at `origin`, because it could not be read for `reason`.
    fn add_incomplete(&mut self, address: Address, reason: Cause, origin: &Origin) {
        let origin = Some(origin.clone());
        self.findings.incomplete.push(Incomplete { address, reason, origin });
    }

    /// Plans nothing, because of `problem`.
    fn stop_with_problem(&mut self, problem: Problem) {
        self.not_compared_cause = Some(Cause::new(problem.message.clone()));
        self.findings.problems.push(problem);
    }
}
