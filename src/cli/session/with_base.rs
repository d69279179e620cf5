//! A session with a base: labels of differences, and the limits of both sides.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Session, opening::limits};
use crate::{
    api::ApiError,
    apply::{self, BranchPlan},
    cli::{
        RunContext,
        base::{BaseContent, ResolvedBase},
    },
    desired::{Acknowledgement, Container, Desired, MatchedContainer, Roster},
    diagnostic::Diagnostic,
    diff::Problem,
    live::Live,
    manifest::Config,
    plan::{Base, BaseComparison, BranchPart, DriftPolicy, Limits, Outline, Plan},
    selection::Selection,
};

/// How a session uses a base.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct BaseUse {
    /// What it does with differences from before the branch.
    pub(in crate::cli) drift: DriftPolicy,
    /// True if only containers whose declarations differ from the base are read.
    pub(in crate::cli) only_changed: bool,
}

/// The base of a session.
pub(super) struct SessionBase {
    base: Base,
    config: Config,
    acknowledgements: Vec<Acknowledgement>,
    drift: DriftPolicy,
    /// The comparison so far.
    comparison: RefCell<BaseComparison>,
    /// The declarations without excluded parts, by path.
    rests: RefCell<BTreeMap<Arc<str>, BranchPart>>,
}

impl Session {
    /// The session with a base. The limits of both sides hold.
    pub(in crate::cli) fn with_base(
        mut self,
        found: ResolvedBase,
        used: BaseUse,
        (selection, mut outline): (Selection, Outline),
        cx: &RunContext,
    ) -> Self {
        let mut comparison =
            BaseComparison { revision: found.revision, ..BaseComparison::default() };
        let (base, config, acknowledgements) = match found.content {
            Some(content) => self.read_base(content, cx),
            None => (Base::Unknown, Config::default(), Vec::new()),
        };
        let (removals, reach) = limits(&config);
        self.settings.limits = stricter(self.settings.limits, removals);
        self.extent.reach = stricter(self.extent.reach, reach);
        self.extent.spares_drift = used.drift == DriftPolicy::Show;
        outline.add(&self.desired.containers);
        let moves = &self.desired.moves;
        let gone = base.gone(&outline, moves).into_iter();
        comparison.removed = gone.filter(|address| selection.holds_in(address, moves)).collect();
        base.remember(&mut self.desired.containers);
        if used.only_changed {
            let declared = self.desired.containers.len();
            self.desired.containers = base.changed(std::mem::take(&mut self.desired.containers));
            comparison.unchanged = declared - self.desired.containers.len();
            self.settings.created = self.desired.created();
            // Acknowledgements in documents count for selected containers; those of the command
            // line for the whole run.
            let containers = &self.desired.containers;
            self.acknowledged.retain(|one| {
                one.origin.is_none()
                    || containers.iter().any(|container| one.at.touches(&container.path))
            });
        }
        self.compared = Some(SessionBase {
            base,
            config,
            acknowledgements,
            drift: used.drift,
            comparison: RefCell::new(comparison),
            rests: RefCell::default(),
        });
        self
    }

    /// The base in `content`, with its configuration and acknowledgements.
    fn read_base(
        &self,
        content: BaseContent,
        cx: &RunContext,
    ) -> (Base, Config, Vec<Acknowledgement>) {
        let missing = missing_members(&self.desired, &content.desired);
        let acknowledgements = content.desired.acknowledgements.clone();
        let included = match content.includes {
            Some(includes) => includes.bring_in(content.desired, &mut { missing }),
            None => Ok(content.desired),
        };
        let base = included.map(|base| Base::of(base.containers, &self.desired.containers));
        let base = base.unwrap_or_else(|_| {
            let why =
                "no base to compare with: its rules are not valid for a project that they include";
            cx.output.eprint_diagnostics(&[Diagnostic::warning("base", why)].into_iter().collect());
            Base::Unknown
        });
        (base, content.config, acknowledgements)
    }

    /// The declarations without what this run excludes, after planning.
    pub(in crate::cli) fn to_apply(&self) -> Cow<'_, Desired> {
        let Some(compared) = &self.compared else { return Cow::Borrowed(&self.desired) };
        let rests = compared.rests.borrow();
        if rests.is_empty() {
            return Cow::Borrowed(&self.desired);
        }
        let containers = self.desired.containers.iter();
        let containers = containers.filter_map(|container| match rests.get(&container.path) {
            Some(BranchPart::Nothing) => None,
            Some(BranchPart::Some(rest)) => Some((**rest).clone()),
            Some(BranchPart::All) | None => Some(container.clone()),
        });
        Cow::Owned(Desired { containers: containers.collect(), ..self.desired.clone() })
    }
}

impl SessionBase {
    /// The plan of one container, with labels.
    pub(super) async fn plan(
        &self,
        session: &Session,
        container: &Container,
        live: &mut Live,
    ) -> Result<crate::plan::ContainerPlan, ApiError> {
        let (observer, settings) = (&session.observer, &session.settings);
        let planned =
            apply::plan_against(observer, container, &self.base, self.drift, live, settings);
        let BranchPlan { mut plan, rest, comparison: against } = planned.await?;
        plan.findings.problems.extend(outside_of_base(&self.config, container));
        self.comparison.borrow_mut().extend(against);
        if !matches!(rest, BranchPart::All) {
            self.rests.borrow_mut().insert(container.path.clone(), rest);
        }
        Ok(plan)
    }

    /// Adds the comparison of all containers to `plan`.
    pub(super) fn finish(&self, plan: &mut Plan) {
        plan.base = Some(self.comparison.borrow().clone());
    }

    /// Marks refusals whose acknowledgement only the branch has, and puts them first.
    pub(super) fn mark_new(&self, plan: &mut Plan, acknowledgements: &[Acknowledgement]) {
        let old = acknowledgements
            .iter()
            .filter(|new| self.acknowledgements.iter().any(|old| new.is_covered_by(old)));
        let old: BTreeSet<_> = old.filter_map(|one| one.origin.as_ref()).collect();
        for acknowledged in &mut plan.acknowledged {
            acknowledged.is_new = acknowledged.by.as_ref().is_some_and(|by| !old.contains(by));
        }
        plan.acknowledged.sort_by_key(|acknowledged| !acknowledged.is_new);
    }
}

/// Containers that rules at the base may include: declared here and not there.
fn missing_members(here: &Desired, base: &Desired) -> Roster {
    let declared: BTreeSet<_> = base.containers.iter().map(|one| one.path.to_lowercase()).collect();
    let missing = here.containers.iter().filter(|one| !declared.contains(&one.path.to_lowercase()));
    let members = missing.map(|one| MatchedContainer {
        scope: one.scope,
        path: one.path.to_string(),
        exception: None,
    });
    Roster { members: members.collect(), ..Roster::default() }
}

/// The stricter of two limits.
fn stricter(one: Limits, other: Limits) -> Limits {
    Limits { count: one.count.min(other.count), share: one.share.min(other.share) }
}

/// A problem for a container outside of what the base manages: no branch may widen that and use it
/// at once.
fn outside_of_base(config: &Config, container: &Container) -> Option<Problem> {
    let (address, message) = config.find_unmanaged(container)?;
    let file = crate::manifest::config::FILE;
    let help = format!("merge the change of `manages` in {file} first, then declare this");
    Some(Problem::new(&address, "outside", message, help, &container.origin))
}
