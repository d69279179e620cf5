//! Plans one container against the base of a branch.
//!
//! The parts that the branch did not change are removed from the declaration before planning.
//! Therefore every later plan, also after a lost response, uses the same declaration.

use super::plan_with_extra_facts;
use crate::{
    api::Result,
    desired::Container,
    diff::{Label, Problem, Step},
    live::LiveContainer,
    observe::Observer,
    plan::{
        Base, BaseComparison, BranchPart, ContainerPlan, DriftPolicy, PlanSettings, excluded_steps,
        has_same_changes, unneeded_problems,
    },
};

/// The maximum number of plans of the part that the branch changed. Each plan may show new drift,
/// because parts were removed. If the last plan still shows drift, the whole container is excluded.
const MAX_ROUNDS: usize = 4;

/// The plan of a container against a base.
pub struct BranchPlan {
    /// The plan of the container.
    pub plan: ContainerPlan,
    /// The declaration without the excluded parts.
    pub branch_part: BranchPart,
    /// The other results of the comparison with the base.
    pub comparison: BaseComparison,
}

/// Plans `container` against `base`. If `drift_policy` only shows or excludes drift, drift causes
/// no refusals and blocks nothing.
///
/// # Errors
/// [`ApiError`](crate::api::ApiError) if all further requests would fail too.
pub async fn plan_against(
    observer: &Observer,
    container: &Container,
    base: &Base,
    drift_policy: DriftPolicy,
    live: &mut LiveContainer,
    settings: &PlanSettings,
) -> Result<BranchPlan> {
    let mut full_plan = plan_with_extra_facts(observer, container, live, settings).await?;
    let mut comparison = base.label(&mut full_plan, container, live, settings);
    let planner = BranchPlanner { observer, container, base, settings };
    let (mut drift_problems, mut partial_plan) = match drift_policy {
        DriftPolicy::Write => (Vec::new(), None),
        _ => planner.plan_without_problems(&full_plan, &comparison.problems, live).await?,
    };
    // If a step's label is unknown, keep all refusals.
    let has_unknown_label = full_plan.steps.iter().any(|step| step.label == Some(Label::Unknown));
    let keeps_full_plan = match drift_policy {
        DriftPolicy::Write => true,
        DriftPolicy::Show => {
            has_unknown_label || (full_plan.refusals.is_empty() && full_plan.problems.is_empty())
        }
        DriftPolicy::Exclude => false,
    };
    let mut branch_part = BranchPart::Whole;
    let has_excluded = !excluded_steps(&full_plan.steps, false).is_empty();
    if !keeps_full_plan && (has_excluded || !drift_problems.is_empty()) {
        if partial_plan.is_none() {
            partial_plan = planner.plan_branch_part(&full_plan, &[], live).await?;
        }
        let full_problems = full_plan.problems.clone();
        if drift_policy == DriftPolicy::Show {
            let branch_plan = partial_plan.map(|(plan, _)| plan);
            show_branch_findings(&mut full_plan, branch_plan, &mut comparison);
        } else {
            comparison.excluded_steps = excluded_steps(&full_plan.steps, partial_plan.is_none());
            if let Some((plan, partial_container)) = partial_plan {
                (full_plan, branch_part) = (plan, BranchPart::Partial(partial_container));
            } else {
                branch_part = BranchPart::Nothing;
                full_plan.findings.steps.clear();
                full_plan.findings.refusals.clear();
            }
        }
        drift_problems = full_problems;
        drift_problems.retain(|problem| !full_plan.problems.contains(problem));
    }
    // Steps of a group or project with a problem, or with an unread part, are not applied.
    if drift_policy == DriftPolicy::Write || !full_plan.steps.iter().all(Step::is_drift) {
        comparison.problems.clear();
        comparison.incomplete.clear();
    }
    drift_problems.retain(|problem| !comparison.problems.contains(problem));
    comparison.problems.extend(drift_problems);
    let findings = &mut full_plan.findings;
    findings.problems.retain(|problem| !comparison.problems.contains(problem));
    findings.incomplete.retain(|unread| !comparison.incomplete.contains(unread));
    Ok(BranchPlan { plan: full_plan, branch_part, comparison })
}

/// Replaces the refusals and problems in `full_plan`, which contains drift, with those in
/// `branch_plan`, which contains no drift. Also adds the unread parts of `branch_plan`. The
/// refusals that `branch_plan` lacks go to `comparison`. Without a `branch_plan`, nothing of the
/// branch can be written: all refusals go to `comparison`, and only the problems stay in
/// `full_plan`.
fn show_branch_findings(
    full_plan: &mut ContainerPlan,
    branch_plan: Option<ContainerPlan>,
    comparison: &mut BaseComparison,
) {
    let findings = &mut full_plan.findings;
    comparison.refusals = std::mem::take(&mut findings.refusals);
    let Some(branch_plan) = branch_plan else { return };
    let mut incomplete = branch_plan.findings.incomplete;
    incomplete.retain(|unread| !findings.incomplete.contains(unread));
    findings.incomplete.extend(incomplete);
    findings.problems = branch_plan.findings.problems;
    findings.refusals = branch_plan.findings.refusals;
    comparison.refusals.retain(|refusal| {
        let key = (refusal.guard, &refusal.address);
        !findings.refusals.iter().any(|other| (other.guard, &other.address) == key)
    });
}

/// The plan of the branch's part of a container, and the declaration from which it was made.
type PartialPlan = (ContainerPlan, Box<Container>);

/// Plans parts of a container.
struct BranchPlanner<'a> {
    observer: &'a Observer,
    container: &'a Container,
    base: &'a Base,
    settings: &'a PlanSettings,
}

impl BranchPlanner<'_> {
    /// Plans the changes of the branch without the declarations that cause some of the
    /// `base_problems`: those problems that the changes do not need solved. Returns these problems
    /// and the plan. Returns no problems and no plan if the changes then differ from those in
    /// `full_plan`.
    async fn plan_without_problems(
        &self,
        full_plan: &ContainerPlan,
        base_problems: &[Problem],
        live: &mut LiveContainer,
    ) -> Result<(Vec<Problem>, Option<PartialPlan>)> {
        let problems = unneeded_problems(self.container, full_plan, base_problems);
        if problems.is_empty() {
            return Ok((problems, None));
        }
        let partial_plan = self.plan_branch_part(full_plan, &problems, live).await?;
        let partial_plan = partial_plan.filter(|(plan, _)| has_same_changes(full_plan, plan));
        Ok(if partial_plan.is_some() { (problems, partial_plan) } else { (Vec::new(), None) })
    }

    /// Plans only the changes of the branch, without the declarations that cause the
    /// `drift_problems`. Returns `None` if the changes cannot be separated from drift.
    async fn plan_branch_part(
        &self,
        full_plan: &ContainerPlan,
        drift_problems: &[Problem],
        live: &mut LiveContainer,
    ) -> Result<Option<PartialPlan>> {
        let mut branch_part = BranchPart::from_labels(self.container, full_plan, drift_problems);
        for _ in 0..MAX_ROUNDS {
            let BranchPart::Partial(declared) = branch_part else { break };
            let mut plan =
                plan_with_extra_facts(self.observer, &declared, live, self.settings).await?;
            // The base compares whole containers, so label the steps before removing more parts.
            self.base.label(&mut plan, &declared, live, self.settings);
            match BranchPart::from_labels(&declared, &plan, &[]) {
                BranchPart::Whole => return Ok(Some((plan, declared))),
                remaining_part => branch_part = remaining_part,
            }
        }
        Ok(None)
    }
}
