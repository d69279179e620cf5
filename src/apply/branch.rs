//! Plans one container against the base of a branch.
//!
//! What the branch did not ask for is removed from the declaration before planning. So later looks,
//! also after a lost answer, decide by the declaration that was planned.

use super::plan;
use crate::{
    api::ApiError,
    desired::Container,
    live::Live,
    observe::Observer,
    plan::{Base, Comparison, ContainerPlan, Rest, Settings, left},
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
    pub against: Comparison,
}

/// Plans `container` against `base`. Unless `heals`, drift from before the branch is excluded.
///
/// # Errors
/// [`ApiError`] if all further requests would fail too.
pub async fn plan_against(
    observer: &Observer,
    container: &Container,
    base: &Base,
    heals: bool,
    live: &mut Live,
    settings: &Settings,
) -> Result<BranchPlan, ApiError> {
    let mut whole = plan(observer, container, live, settings).await?;
    let against = base.label(&mut whole, container, live, settings);
    if heals || left(&whole.steps, false).is_empty() {
        return Ok(BranchPlan { plan: whole, rest: Rest::All, against });
    }
    let mut rest = Rest::of(container, &whole);
    for _ in 0..ROUNDS {
        let Rest::Some(declared) = &rest else { break };
        let mut plan = plan(observer, declared, live, settings).await?;
        // Compare the whole container, not the rest.
        base.label(&mut plan, declared, live, settings);
        match Rest::of(declared, &plan) {
            Rest::All => {
                let against = Comparison { left: left(&whole.steps, false), ..against };
                return Ok(BranchPlan { plan, rest, against });
            }
            less => rest = less,
        }
    }
    let against = Comparison { left: left(&whole.steps, true), ..against };
    whole.findings.steps.clear();
    whole.findings.refusals.clear();
    Ok(BranchPlan { plan: whole, rest: Rest::Nothing, against })
}
