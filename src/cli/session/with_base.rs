//! Adds a base to a session. Differences then get labels, and the limits of both configurations
//! apply.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Session, opening::guard_limits};
use crate::{
    api::ApiError,
    apply::{self, BranchPlan},
    cli::{
        CommandError, Result, RunContext,
        base::{self, BaseContent, BaseFiles, ResolvedBase},
    },
    desired::{Acknowledgement, Container, Desired, MatchedContainer, Roster},
    diff::Problem,
    live::LiveContainer,
    manifest::Config,
    plan::{
        self, Base, BaseComparison, BranchPart, DeclarationOutline, DriftPolicy, GuardLimits, Plan,
    },
    selection::Selection,
};

/// How a session uses a base.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct BaseUse {
    /// The treatment of differences that are older than the branch.
    pub(in crate::cli) drift_policy: DriftPolicy,
    /// True if only containers whose declarations differ from the base are read.
    pub(in crate::cli) only_changed: bool,
}

/// The base of a session.
pub(super) struct SessionBase {
    base: Base,
    config: Config,
    acknowledgements: Vec<Acknowledgement>,
    drift_policy: DriftPolicy,
    /// The comparison so far.
    comparison: RefCell<BaseComparison>,
    /// The remaining declarations of the containers from which a part was excluded, by path.
    branch_parts: RefCell<BTreeMap<Arc<str>, BranchPart>>,
}

impl Session {
    /// Adds a base to the session. The stricter limits of the two configurations apply.
    pub(in crate::cli) fn with_base(
        mut self,
        resolved_base: ResolvedBase,
        base_use: BaseUse,
        (selection, mut outline): (Selection, DeclarationOutline),
        cx: &RunContext,
    ) -> Self {
        let mut comparison =
            BaseComparison { revision: resolved_base.revision, ..BaseComparison::default() };
        let (base, config, acknowledgements) = match resolved_base.content {
            Some(content) => self.read_base(content, cx),
            None => (Base::Unknown, Config::default(), Vec::new()),
        };
        let (removal_limits, reach_limits) = guard_limits(&config);
        self.settings.guard_limits = stricter_limits(self.settings.guard_limits, removal_limits);
        self.extent.reach_limits = stricter_limits(self.extent.reach_limits, reach_limits);
        self.extent.ignores_drift = base_use.drift_policy == DriftPolicy::Show;
        outline.add(&self.desired.containers);
        let moves = &self.desired.moves;
        let removed_addresses = base.removed_declarations(&outline, moves).into_iter();
        comparison.removed = removed_addresses
            .filter(|address| selection.selects_by_any_path(address, moves))
            .collect();
        base.add_base_identities(&mut self.desired.containers);
        if base_use.only_changed {
            let container_count = self.desired.containers.len();
            self.desired.containers =
                base.changed_containers(std::mem::take(&mut self.desired.containers));
            comparison.unchanged = container_count - self.desired.containers.len();
            self.settings.creatable_containers = self.desired.creatable_containers(|_| false);
            // An acknowledgement in a document applies only to selected containers. An
            // acknowledgement on the command line applies to the whole run.
            let containers = &self.desired.containers;
            self.acknowledgements.retain(|acknowledgement| {
                acknowledgement.origin.is_none()
                    || containers
                        .iter()
                        .any(|container| acknowledgement.selector.matches_path(&container.path))
            });
        }
        self.session_base = Some(SessionBase {
            base,
            config,
            acknowledgements,
            drift_policy: base_use.drift_policy,
            comparison: RefCell::new(comparison),
            branch_parts: RefCell::default(),
        });
        self
    }

    /// The base in `content`, with its configuration and acknowledgements.
    fn read_base(
        &self,
        content: BaseContent,
        cx: &RunContext,
    ) -> (Base, Config, Vec<Acknowledgement>) {
        let branch_roster = branch_only_roster(&self.desired, &content.desired);
        let acknowledgements = content.desired.acknowledgements.clone();
        let base_desired = match content.includes {
            Some(includes) => includes.include_from(content.desired, &mut { branch_roster }),
            None => Ok(content.desired),
        };
        let containers = match base_desired {
            Ok(desired) => self.mark_changed_files(desired.containers, content.files.as_ref()),
            Err(_) => {
                let reason = "the rules at the base are not valid for a project that they include";
                Err(CommandError::usage(reason))
            }
        };
        let base = match containers {
            Ok(containers) => Base::from_containers(containers, &self.desired.containers),
            Err(CommandError { error, help, .. }) => {
                let reason = error.map(|error| error.to_string()).unwrap_or_default();
                base::warn_without_base(&reason, help, cx);
                Base::Unknown
            }
        };
        (base, content.config, acknowledgements)
    }

    /// Returns `containers`, the declarations at the base, with marks on the values whose `files`
    /// have another content on the branch.
    fn mark_changed_files(
        &self,
        mut containers: Vec<Container>,
        files: Option<&BaseFiles>,
    ) -> Result<Vec<Container>> {
        if let Some(files) = files {
            let changed_files = files.find_changed(&containers, &self.settings.secrets)?;
            plan::mark_changed_files(&mut containers, &changed_files);
        }
        Ok(containers)
    }

    /// The declarations to apply, without the parts that planning excluded.
    pub(in crate::cli) fn desired_to_apply(&self) -> Cow<'_, Desired> {
        let Some(session_base) = &self.session_base else { return Cow::Borrowed(&self.desired) };
        let branch_parts = session_base.branch_parts.borrow();
        if branch_parts.is_empty() {
            return Cow::Borrowed(&self.desired);
        }
        let containers = self.desired.containers.iter();
        let containers =
            containers.filter_map(|container| match branch_parts.get(&container.path) {
                Some(BranchPart::Nothing) => None,
                Some(BranchPart::Partial(part)) => Some((**part).clone()),
                Some(BranchPart::Whole) | None => Some(container.clone()),
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
        live: &mut LiveContainer,
    ) -> Result<crate::plan::ContainerPlan, ApiError> {
        let (observer, settings) = (&session.observer, &session.settings);
        let plan_future =
            apply::plan_against(observer, container, &self.base, self.drift_policy, live, settings);
        let BranchPlan { mut plan, branch_part, comparison } = plan_future.await?;
        plan.findings.problems.extend(find_unmanaged_problem(&self.config, container));
        self.comparison.borrow_mut().extend(comparison);
        if !matches!(branch_part, BranchPart::Whole) {
            self.branch_parts.borrow_mut().insert(container.path.clone(), branch_part);
        }
        Ok(plan)
    }

    /// Adds the comparison of all containers to `plan`.
    pub(super) fn finish(&self, plan: &mut Plan) {
        plan.base = Some(self.comparison.borrow().clone());
    }

    /// Marks refusals whose acknowledgement only the branch has, and puts them first.
    pub(super) fn mark_new_acknowledgements(
        &self,
        plan: &mut Plan,
        acknowledgements: &[Acknowledgement],
    ) {
        let covered = acknowledgements
            .iter()
            .filter(|new| self.acknowledgements.iter().any(|old| new.is_covered_by(old)));
        let covered_origins: BTreeSet<_> =
            covered.filter_map(|acknowledgement| acknowledgement.origin.as_ref()).collect();
        for acknowledged in &mut plan.acknowledged {
            acknowledged.is_new =
                acknowledged.by.as_ref().is_some_and(|by| !covered_origins.contains(by));
        }
        plan.acknowledged.sort_by_key(|acknowledged| !acknowledged.is_new);
    }
}

/// The containers that only this branch declares. Rules at the base may include them.
fn branch_only_roster(branch_desired: &Desired, base_desired: &Desired) -> Roster {
    let base_paths: BTreeSet<_> =
        base_desired.containers.iter().map(|container| container.path.to_lowercase()).collect();
    let branch_containers = branch_desired
        .containers
        .iter()
        .filter(|container| !base_paths.contains(&container.path.to_lowercase()));
    let members = branch_containers.map(|container| MatchedContainer {
        scope: container.scope,
        path: container.path.to_string(),
        exclusion: None,
    });
    Roster { containers: members.collect(), ..Roster::default() }
}

/// The stricter of two limits.
fn stricter_limits(first: GuardLimits, second: GuardLimits) -> GuardLimits {
    GuardLimits { count: first.count.min(second.count), share: first.share.min(second.share) }
}

/// The problem if a container is outside of the paths that the base manages. A branch must not add
/// paths and use them in the same run.
fn find_unmanaged_problem(config: &Config, container: &Container) -> Option<Problem> {
    let (address, message) = config.find_unmanaged(container)?;
    let file = crate::manifest::config::CONFIG_FILE;
    let help = format!("merge the change of `manages` in {file} first, then declare this");
    Some(Problem::new(&address, "outside", message, help, &container.origin))
}
