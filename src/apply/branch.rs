//! The plan of one container against the base of a branch.
//!
//! What this branch did not ask for is left alone by declaring less, and planning that: so a run
//! that looks again later, or lost an answer, decides by what was planned.

use super::plan;
use crate::{
    api::ApiError,
    desired::Container,
    live::Live,
    observe::Observer,
    plan::{Against, Base, ContainerPlan, Rest, Settings, left},
};

/// How often what remains is planned anew. What remains may differ by what it needed of the rest; if
/// it still does after that, nothing of the container is this branch's alone.
const ROUNDS: usize = 4;

/// What a container comes to against a base.
pub struct Own {
    /// Its plan.
    pub plan: ContainerPlan,
    /// What is declared without what is left alone.
    pub rest: Rest,
    /// What else was found against the base.
    pub against: Against,
}

/// Plans `container` against `base`. Without `heals`, what was there before this branch is left
/// alone.
///
/// # Errors
/// [`ApiError`] if going on with anything would be pointless.
pub async fn plan_against(
    observer: &Observer,
    container: &Container,
    base: &Base,
    heals: bool,
    live: &mut Live,
    settings: &Settings,
) -> Result<Own, ApiError> {
    let mut whole = plan(observer, container, live, settings).await?;
    let against = base.label(&mut whole, container, live, settings);
    if heals || left(&whole.steps, false).is_empty() {
        return Ok(Own { plan: whole, rest: Rest::All, against });
    }
    let mut rest = Rest::of(container, &whole);
    for _ in 0..ROUNDS {
        let Rest::Some(declared) = &rest else { break };
        let mut plan = plan(observer, declared, live, settings).await?;
        // What else was found was found of the whole.
        base.label(&mut plan, declared, live, settings);
        match Rest::of(declared, &plan) {
            Rest::All => {
                let against = Against { left: left(&whole.steps, false), ..against };
                return Ok(Own { plan, rest, against });
            }
            less => rest = less,
        }
    }
    let against = Against { left: left(&whole.steps, true), ..against };
    whole.findings.steps.clear();
    whole.findings.refusals.clear();
    Ok(Own { plan: whole, rest: Rest::Nothing, against })
}
