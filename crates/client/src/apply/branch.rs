//! Plans one container against the base of a branch.
//!
//! What the branch did not ask for is removed from the declaration before planning. So later
//! readings, also after a lost answer, decide by the declaration that was planned.

use super::plan;
use crate::{
    api::Result,
    desired::Container,
    diff::{Label, Step},
    live::Live,
    observe::Observer,
    plan::{
        Base, BaseComparison, BranchPart, ContainerPlan, DriftPolicy, PlanSettings, excluded_steps,
    },
};

/// How often the remaining part is planned again. It may show new drift, because it lacks what was
/// removed. If it still does after this, no part of the container belongs to the branch alone.
const MAX_ROUNDS: usize = 4;

/// The plan of a container against a base.
pub struct BranchPlan {
    /// Its plan.
    pub plan: ContainerPlan,
    /// The declaration without the excluded parts.
    pub rest: BranchPart,
    /// The other results of the comparison with the base.
    pub comparison: BaseComparison,
}

/// Plans `container` against `base`. Drift that is only shown, or excluded, neither refuses nor
/// blocks.
///
/// # Errors
/// [`ApiError`](crate::api::ApiError) if all further requests would fail too.
pub async fn plan_against(
    observer: &Observer,
    container: &Container,
    base: &Base,
    drift: DriftPolicy,
    live: &mut Live,
    settings: &PlanSettings,
) -> Result<BranchPlan> {
    let mut planned = plan(observer, container, live, settings).await?;
    let mut against = base.label(&mut planned, container, live, settings);
    // While it is unknown what the branch changed, all refusals count.
    let is_unknown = planned.steps.iter().any(|step| step.label == Some(Label::Unknown));
    let is_as_planned = match drift {
        DriftPolicy::Write => {
            against.problems.clear();
            true
        }
        DriftPolicy::Show => is_unknown || planned.refusals.is_empty(),
        DriftPolicy::Exclude => false,
    };
    let mut rest = BranchPart::All;
    if !is_as_planned && !excluded_steps(&planned.steps, false).is_empty() {
        let branch_part =
            plan_branch_part(observer, container, base, &planned, live, settings).await?;
        if drift == DriftPolicy::Show {
            let refusals = branch_part.map(|(plan, _)| plan.findings.refusals).unwrap_or_default();
            against.refusals = std::mem::replace(&mut planned.findings.refusals, refusals);
            against.refusals.retain(|refusal| {
                let key = (refusal.guard, &refusal.address);
                !planned.refusals.iter().any(|other| (other.guard, &other.address) == key)
            });
        } else {
            against.left = excluded_steps(&planned.steps, branch_part.is_none());
            if let Some((plan, declared)) = branch_part {
                (planned, rest) = (plan, BranchPart::Some(declared));
            } else {
                rest = BranchPart::Nothing;
                planned.findings.steps.clear();
                planned.findings.refusals.clear();
            }
        }
    }
    // Steps of a group or project with a problem are not applied.
    if !planned.steps.iter().all(Step::is_drift) {
        against.problems.clear();
    }
    planned.findings.problems.retain(|problem| !against.problems.contains(problem));
    Ok(BranchPlan { plan: planned, rest, comparison: against })
}

/// The plan without drift, and the declaration for it; `None` if nothing belongs to the branch
/// alone.
async fn plan_branch_part(
    observer: &Observer,
    container: &Container,
    base: &Base,
    whole: &ContainerPlan,
    live: &mut Live,
    settings: &PlanSettings,
) -> Result<Option<(ContainerPlan, Box<Container>)>> {
    let mut rest = BranchPart::of(container, whole);
    for _ in 0..MAX_ROUNDS {
        let BranchPart::Some(declared) = rest else { break };
        let mut plan = plan(observer, &declared, live, settings).await?;
        // Compare the whole container, not the rest.
        base.label(&mut plan, &declared, live, settings);
        match BranchPart::of(&declared, &plan) {
            BranchPart::All => return Ok(Some((plan, declared))),
            smaller => rest = smaller,
        }
    }
    Ok(None)
}
