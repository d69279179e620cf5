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
    plan::{Base, BaseComparison, ContainerPlan, DriftPolicy, PlanSettings, Rest, excluded_steps},
};

/// How often the rest is planned anew. The rest may show new drift, because it lacks what was
/// removed. If it still does after this, no part of the container belongs to the branch alone.
const ROUNDS: usize = 4;

/// The plan of a container against a base.
pub struct BranchPlan {
    /// Its plan.
    pub plan: ContainerPlan,
    /// The declaration without the excluded parts.
    pub rest: Rest,
    /// The rest of the comparison with the base.
    pub against: BaseComparison,
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
    let mut whole = plan(observer, container, live, settings).await?;
    let mut against = base.label(&mut whole, container, live, settings);
    // As long as it is not known what the branch changed, everything counts.
    let is_unknown = whole.steps.iter().any(|step| step.label == Some(Label::Unknown));
    let is_as_planned = match drift {
        DriftPolicy::Write => {
            against.problems.clear();
            true
        }
        DriftPolicy::Show => is_unknown || whole.refusals.is_empty(),
        DriftPolicy::Exclude => false,
    };
    let mut rest = Rest::All;
    if !is_as_planned && !excluded_steps(&whole.steps, false).is_empty() {
        let written = written(observer, container, base, &whole, live, settings).await?;
        if drift == DriftPolicy::Show {
            let refusals = written.map(|(plan, _)| plan.findings.refusals).unwrap_or_default();
            against.refusals = std::mem::replace(&mut whole.findings.refusals, refusals);
            against.refusals.retain(|refusal| {
                let key = (refusal.guard, &refusal.address);
                !whole.refusals.iter().any(|other| (other.guard, &other.address) == key)
            });
        } else {
            against.left = excluded_steps(&whole.steps, written.is_none());
            if let Some((plan, declared)) = written {
                (whole, rest) = (plan, Rest::Some(declared));
            } else {
                rest = Rest::Nothing;
                whole.findings.steps.clear();
                whole.findings.refusals.clear();
            }
        }
    }
    // Steps of a group or project with a problem are not applied.
    if !whole.steps.iter().all(Step::is_drift) {
        against.problems.clear();
    }
    whole.findings.problems.retain(|problem| !against.problems.contains(problem));
    Ok(BranchPlan { plan: whole, rest, against })
}

/// The plan without drift, and the declaration for it; `None` if nothing belongs to the branch
/// alone.
async fn written(
    observer: &Observer,
    container: &Container,
    base: &Base,
    whole: &ContainerPlan,
    live: &mut Live,
    settings: &PlanSettings,
) -> Result<Option<(ContainerPlan, Box<Container>)>> {
    let mut rest = Rest::of(container, whole);
    for _ in 0..ROUNDS {
        let Rest::Some(declared) = rest else { break };
        let mut plan = plan(observer, &declared, live, settings).await?;
        // Compare the whole container, not the rest.
        base.label(&mut plan, &declared, live, settings);
        match Rest::of(&declared, &plan) {
            Rest::All => return Ok(Some((plan, declared))),
            less => rest = less,
        }
    }
    Ok(None)
}
