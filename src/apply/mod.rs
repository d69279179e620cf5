//! Applying a plan: exactly its writes, or fewer.
//!
//! In: what of a plan is [approved](crate::plan::Approved), and the only client that writes. Out: a
//! stream of [`Event`]s, and how each step ended. It compares no fields and decides nothing that a
//! plan decides: one pure function, [`plan::container`], says before,
//! after, and when an answer was lost, what is left to do. A step that comes out the same runs; one
//! that is no longer needed was done by somebody else; anything else means that the container
//! changed meanwhile, and it is skipped. That such a plan says nothing of a step means that nothing
//! is left to do only if it has no [`doubt`](crate::plan::ContainerPlan::doubt) about it.
//!
//! Containers run side by side; steps run along their edges, in one container (`run`) and from one
//! to another (`dependencies`). What a lost answer has done is decided in `lost`, and how
//! long contents that arrive in the background are waited for in `arrival`.

mod arrival;
mod branch;
mod dependencies;
mod event;
mod lost;
mod run;

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::sync::Semaphore;

pub use branch::{Own, plan_against};
pub use event::{Applied, Event, Mismatch, MismatchReason, Outcome, StepResult};
pub use lost::LOOKS;

use crate::{
    api::{ApiError, WriteClient},
    desired::{Container, Desired},
    diff::Step,
    live::Live,
    observe::Observer,
    plan::{self, Approved, ContainerPlan, Settings},
};
use dependencies::Dependencies;
use run::{Ended, Place, Run};

/// How long a run trusts what its own plan was made from.
pub const TRUSTED: Duration = Duration::from_secs(60);

/// What a run of apply works with.
pub struct Apply<'a> {
    /// What is declared.
    pub desired: &'a Desired,
    /// Reads back.
    pub observer: &'a Observer,
    /// Writes. Once its client is [interrupted](crate::api::ReadClient::interrupt), nothing more is
    /// started.
    pub writer: &'a WriteClient,
    /// As the plan was made with.
    pub settings: &'a Settings,
    /// How long what the plan was made from is taken for what is there. After that it is read again
    /// before the first write.
    pub trusts: Duration,
    /// How many containers are worked on at a time, those not counted that only wait.
    pub ahead: usize,
}

impl Apply<'_> {
    /// Carries out what is approved of a plan and tells `events` what happens as it happens. Never fails as a whole:
    /// what could not be done is in the result.
    pub async fn run(&self, plan: &Approved<'_>, events: impl FnMut(Event)) -> Applied {
        let mut by_container: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
        for step in plan.steps() {
            by_container.entry(&step.address.path).or_default().push(step);
        }
        let dependencies = Dependencies::of(plan.steps(), self.settings.created.clone());
        let teller = Teller(Mutex::new(events));
        let places = Semaphore::new(self.ahead.max(1));
        let mut waiting = self
            .desired
            .containers
            .iter()
            .filter_map(|container| Some((container, by_container.get(&*container.path)?)));
        let mut running = FuturesUnordered::new();
        let mut ended: Vec<Ended> = Vec::new();
        let mut next = waiting.next();
        while next.is_some() || !running.is_empty() {
            tokio::select! {
                biased;
                place = Place::take(&places), if next.is_some() => {
                    if let Some((container, steps)) = next {
                        running.push(Run::new(self, plan, container, steps, &teller, &dependencies).run(place));
                    }
                    next = waiting.next();
                }
                Some(run) = running.next(), if !running.is_empty() => ended.push(run),
            }
        }
        let mut results = BTreeMap::new();
        let mut applied =
            Applied { interrupted: self.writer.reads().is_interrupted(), ..Applied::default() };
        for run in ended {
            results.extend(run.results);
            applied.mismatches.extend(run.mismatches);
            applied.ended_by =
                applied.ended_by.or(run.error.filter(|error| !error.is_interrupted()));
        }
        applied.mismatches.sort();
        applied.steps = plan.steps().filter_map(|step| results.remove(&step.address)).collect();
        applied
    }
}

/// Plans a container from what was read of it, and reads what the plan has to know besides.
///
/// # Errors
/// [`ApiError`] if going on with anything would be pointless.
pub async fn plan(
    observer: &Observer,
    container: &Container,
    live: &mut Live,
    settings: &Settings,
) -> Result<ContainerPlan, ApiError> {
    loop {
        let plan = plan::container(container, live, settings);
        if plan.questions.is_empty() {
            return Ok(plan);
        }
        // What was answered is not asked again.
        observer.answer(container, live, &plan.questions).await?;
    }
}

/// Hands events from many places to one reader.
struct Teller<F>(Mutex<F>);

impl<F: FnMut(Event)> Teller<F> {
    fn tell(&self, event: Event) {
        (self.0.lock().unwrap_or_else(PoisonError::into_inner))(event);
    }
}
