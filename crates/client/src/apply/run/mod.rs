//! Runs the steps of one container: checks that it is still as planned, sends its steps ([`walk`]),
//! and verifies the result ([`verify`]).
//!
//! ```text
//! still as planned? --> send the steps --> send what they made possible --> verify --> send what closes it --> verify
//!                         |        ^
//! a lost answer, a stale  '- wait, read again, plan again
//! ```
//!
//! The live state of the plan is read again before the first write only if it is old. Verification
//! plans once more, from the answers to writes and from new reads of what they did not show
//! ([`known`]).
//!
//! Waiting steps of a container share one reading. While all of them wait, the container gives its
//! place to another one.

mod known;
mod progress;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod verify;
mod walk;

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::sync::{Semaphore, SemaphorePermit};

use known::Known;
use progress::{Progress, Readiness};

use super::{
    Apply, Dependencies, Event, EventSink, Mismatch, Outcome, StepResult,
    lost::{CallState, standing},
};
use crate::{
    address::Address,
    api::{ApiError, Result},
    cause::Cause,
    desired::Container,
    diff::{Action, Refusal, Step},
    kind::{Capability, Place, Target},
    live::{Live, Presence, Times},
    observe::ends_everything,
    plan::{self, Approved, ContainerPlan, Settings},
    planted::Bug,
    text,
};

/// How far the run of one container is, and its result.
#[derive(Default)]
pub(super) struct Ended<'p> {
    pub(super) results: BTreeMap<Address, StepResult>,
    pub(super) mismatches: Vec<Mismatch>,
    progress: Progress,
    /// The error that makes all further requests useless.
    pub(super) error: Option<ApiError>,
    /// The place among the containers that are processed at a time.
    place: Option<SemaphorePermit<'p>>,
}

/// Runs one container.
pub(super) struct Run<'a, F> {
    apply: &'a Apply<'a>,
    plan: &'a Approved<'a>,
    /// The declaration, with the sections that the plan changes.
    container: Container,
    steps: &'a [&'a Step],
    teller: &'a EventSink<F>,
    /// The steps that other containers wait for.
    dependencies: &'a Dependencies,
    /// How many containers are processed at a time.
    places: &'a Semaphore,
    /// What is known about the container so far.
    known: RefCell<Known>,
    /// Its id, once it was found or created. All requests use it, because another container may get
    /// the path.
    id: OnceCell<u64>,
}

/// The present state of the container.
struct Look {
    times: Times,
    /// What is left to do.
    plan: ContainerPlan,
    /// The same without steps that only resend fields, if the run may have such steps.
    visible: Option<ContainerPlan>,
}

impl Look {
    /// What is visibly left to do.
    fn seen(&self) -> &ContainerPlan {
        self.visible.as_ref().unwrap_or(&self.plan)
    }
}

impl<'a, F: FnMut(Event)> Run<'a, F> {
    pub(super) fn new(
        apply: &'a Apply<'a>,
        plan: &'a Approved<'a>,
        container: &Container,
        steps: &'a [&'a Step],
        teller: &'a EventSink<F>,
        dependencies: &'a Dependencies,
        places: &'a Semaphore,
    ) -> Self {
        let mut container = container.clone();
        let touched: BTreeSet<_> = steps.iter().filter_map(|step| step.address.section).collect();
        // Parts of the container's own object decide whether other sections can be read, and it is
        // created with some of them.
        container.sections.retain(|section| {
            touched.contains(section.of.section)
                || section.of.comes_with_container()
                || matches!(section.of.home.place, Place::Object)
        });
        // Undeclared projects were noted in the plan, and no step changes them.
        container.life.unlisted_projects = None;
        let unread = Presence::Unreadable(Cause::new("not read yet"));
        let known = RefCell::new(Known::new(Live::of(unread, Duration::ZERO)));
        let id = OnceCell::new();
        Self { apply, plan, container, steps, teller, dependencies, places, known, id }
    }

    pub(super) async fn run(self, place: Option<SemaphorePermit<'a>>) -> Ended<'a> {
        let mut ended = Ended { progress: Progress::of(self.steps), place, ..Ended::default() };
        if self.is_over() {
            self.end_all(&mut ended, |_| Outcome::NotStarted);
            return ended;
        }
        let look = match self.first_look().await {
            Ok(look) => look,
            Err(error) => {
                // Without further requests nothing can be concluded about the container.
                let outcome = if error.is_over() { Outcome::NotStarted } else { unread(&error) };
                self.end_all(&mut ended, |_| outcome.clone());
                ended.error = ends_everything(&error).then_some(error);
                return ended;
            }
        };
        if let Some((address, outcome)) = self.moved(&look.plan) {
            let moved = matches!(outcome, Outcome::ChangedMeanwhile(_));
            let why =
                if moved { "changed since it was planned" } else { "could not be read again" };
            let noun = self.container.scope.noun();
            self.end_all(&mut ended, |step| {
                let left_alone =
                    || Outcome::Skipped(format!("`{address}` {why}; the {noun} is skipped").into());
                if step.address == address { outcome.clone() } else { left_alone() }
            });
            return ended;
        }
        self.walk_planned(look, &mut ended).await;
        ended
    }

    /// Carries out the steps that are as planned, and verifies them.
    async fn walk_planned(&self, look: Look, ended: &mut Ended<'a>) {
        let (times, needed) = (&look.times, look.plan.findings.steps);
        let is_needed = |step: &Step| needed.iter().any(|now| now.address == step.address);
        let done: Vec<_> = self.steps.iter().filter(|step| !is_needed(step)).copied().collect();
        for step in done {
            self.end(ended, step, Outcome::Already);
        }
        let planned = needed.into_iter().filter(|now| ended.progress.has(&now.address));
        let planned = planned.map(|now| self.waiting_as_planned(now));
        let (possible, certain): (Vec<_>, Vec<_>) =
            planned.partition(|step| step.possible.is_some());
        let (closing, others): (Vec<_>, Vec<_>) = certain.into_iter().partition(Step::closes);
        self.walk_all(others, times, ended).await;
        self.walk_possible(possible, ended).await;
        if ended.progress.sent {
            // Closing the container, and the decision that everything before it is done, need a
            // fresh read of its object.
            let mut known = self.known.borrow_mut();
            closing.iter().for_each(|step| known.doubt(step, &self.container));
        }
        self.verify(ended).await;
        self.close(closing, times, ended).await;
    }

    /// Carries out possible steps that can now be planned, as far as they do no more than the plan
    /// showed.
    async fn walk_possible(&self, possible: Vec<Step>, ended: &mut Ended<'a>) {
        let mut open = Vec::new();
        for step in possible {
            match self.readiness(&step, ended) {
                Readiness::Blocked(why) => self.end(ended, &step, Outcome::Skipped(why.into())),
                Readiness::Ready | Readiness::Waits => open.push(step),
            }
        }
        if open.is_empty() {
            return;
        }
        let sections: BTreeSet<_> = open.iter().filter_map(|step| step.address.section).collect();
        let look = match self.look(&sections).await {
            Ok(look) => look,
            Err(error) => {
                open.iter().for_each(|step| self.end(ended, step, unread(&error)));
                ended.error = ended.error.take().or(ends_everything(&error).then_some(error));
                return;
            }
        };
        let mut wanted = Vec::new();
        for step in open {
            match self.at_most(&step, &look.plan) {
                Ok(now) => wanted.push(self.waiting_as_planned(now)),
                Err(outcome) => self.end(ended, &step, outcome),
            }
        }
        if Bug::RemovePossible.is_planted() {
            let removals = look.plan.steps.iter().filter(|step| step.action == Action::Delete);
            wanted.extend(removals.cloned());
        }
        self.walk_all(wanted, &look.times, ended).await;
    }

    /// The step of the new `plan` for the possible `step`, if it is no more than was planned.
    ///
    /// # Errors
    /// How it ends without being sent.
    fn at_most(&self, step: &Step, plan: &ContainerPlan) -> Result<Step, Outcome> {
        let now = plan.steps.iter().find(|now| now.address == step.address);
        // The condition no longer holds, although this look did not read the section.
        let is_over = |now: &Step| now.possible.is_some() && plan.has_compared(now);
        let now = now.and_then(|now| if is_over(now) { now.certain.as_deref() } else { Some(now) });
        let Some(now) = now else {
            return Err(plan.doubt(step).map_or(Outcome::Already, unread));
        };
        // The new live state may be protected by a guard, unless this run itself made it.
        let is_unseen = step.action == Action::Create && !self.creates();
        let refused =
            plan.refusals.iter().filter(|_| is_unseen).find(|refusal| {
                refusal.address == step.address && !self.plan.acknowledges(refusal)
            });
        if let Some(refusal) = refused {
            return Err(refused_now(refusal));
        }
        if now.is_subset_of(step) && now.possible.is_none() {
            return Ok(now.clone());
        }
        let why = "it differs from its manifest by more than was planned";
        Err(Outcome::ChangedMeanwhile(Cause::new(why)))
    }

    /// A step from a new plan of this container alone, with the edges to other containers.
    fn waiting_as_planned(&self, mut now: Step) -> Step {
        let planned = self.steps.iter().filter(|step| step.address == now.address);
        let edges = planned
            .flat_map(|step| &step.after)
            .filter(|_| !Bug::IgnoreOtherContainers.is_planted());
        now.after.extend(edges.filter(|edge| edge.address.path != now.address.path).cloned());
        now
    }

    /// Carries out the step that closes the container, but only if everything before it matches.
    async fn close(&self, closing: Vec<Step>, times: &Times, ended: &mut Ended<'a>) {
        if closing.is_empty() {
            return;
        }
        let open = ended
            .results
            .values()
            .find(|result| !result.outcome.is_success())
            .map(|result| &result.address);
        let open = open.or_else(|| ended.mismatches.first().map(|mismatch| &mismatch.address));
        if let Some(first) = open.filter(|_| !Bug::ArchiveUnverified.is_planted()) {
            let why = Outcome::Skipped(format!("`{first}` must match its manifest first").into());
            closing.iter().for_each(|step| self.end(ended, step, why.clone()));
            return;
        }
        self.walk_all(closing, times, ended).await;
        self.verify(ended).await;
    }

    /// Gives the place to another container while `rest` runs.
    async fn rest<T>(&self, ended: &mut Ended<'a>, rest: impl Future<Output = T>) -> T {
        ended.place = None;
        let result = rest.await;
        // The semaphore is never closed. Without a permit, only the limit is lost.
        ended.place = self.places.acquire().await.ok();
        result
    }

    /// Whether no further request is sent.
    fn is_over(&self) -> bool {
        self.apply.writer.reads().has_ended()
    }

    fn now(&self) -> Duration {
        self.apply.writer.reads().clock().now()
    }

    /// Ends every step that has not ended, without sending anything.
    fn end_all(&self, ended: &mut Ended<'_>, outcome: impl Fn(&Step) -> Outcome) {
        for step in self.steps {
            if !ended.results.contains_key(&step.address) {
                self.end(ended, step, outcome(step));
            }
        }
    }

    fn end(&self, ended: &mut Ended<'_>, step: &Step, outcome: Outcome) {
        let (scope, address, action) = (step.scope, step.address.clone(), step.action);
        let result = StepResult { scope, address, action, outcome };
        if step.address.section.is_none() && result.outcome.is_success() {
            match action {
                Action::Delete => self.apply.observer.vanished(&self.container),
                _ => self.appeared(),
            }
        }
        ended.progress.end(&result);
        self.dependencies.end(&result);
        self.teller.tell(Event::Ended(result.clone()));
        ended.results.insert(step.address.clone(), result);
    }

    /// Tells other containers that this one exists now, or was moved, and its id.
    fn appeared(&self) {
        if let Some(id) = self.id.get() {
            self.apply.observer.appeared(&self.container, *id);
            self.dependencies.appeared(&self.container.path, *id);
        }
    }

    /// Records the id of the container, if it was not known.
    fn identify(&self, presence: Option<&Presence>) {
        if let Some(Presence::Here(Target { id: Some(id), .. }, _)) = presence {
            self.id.get_or_init(|| *id);
        }
    }

    /// What is left to do, from the live state of the plan if that is recent.
    async fn first_look(&self) -> Result<Look> {
        let planned = self.plan.live(&self.container.path);
        let is_young =
            |live: &&Live| self.now() < live.times.object.ended.saturating_add(self.apply.trusts);
        self.identify(planned.map(|live| &live.presence));
        let live = match planned.filter(is_young) {
            Some(live) => live.clone(),
            None => {
                let id = self.id.get().copied();
                let live = self.apply.observer.container(&self.container, id).await?;
                Live { release: planned.map_or(live.release, |live| live.release), ..live }
            }
        };
        self.identify(Some(&live.presence));
        *self.known.borrow_mut() = Known::new(live.clone());
        self.look_at(live).await
    }

    /// Reads `sections` again, and plans what is left to do.
    async fn look(&self, sections: &BTreeSet<&'static str>) -> Result<Look> {
        let live = self.known.borrow_mut().begin(self.now());
        let observer = self.apply.observer;
        let is_in_sight = matches!(live.presence, Presence::Here(..));
        let live = if self.known.borrow().is_out_of_sight || !is_in_sight {
            observer.container(&self.container, self.id.get().copied()).await?
        } else {
            observer.again(&self.container, live, sections).await?
        };
        self.identify(Some(&live.presence));
        self.known.borrow_mut().renew(live.clone(), sections);
        self.look_at(live).await
    }

    /// Reads the sections of `steps` again.
    async fn look_for_steps<'s>(&self, steps: impl Iterator<Item = &'s Step>) -> Result<Look> {
        let mut sections = BTreeSet::new();
        for step in steps {
            match step.address.section {
                Some(section) => drop(sections.insert(section)),
                None => sections.extend(self.container.section_names()),
            }
        }
        self.look(&sections).await
    }

    /// Plans what is left to do, given `live`.
    async fn look_at(&self, mut live: Live) -> Result<Look> {
        let settings = self.settings();
        let plan = super::plan(self.apply.observer, &self.container, &mut live, &settings).await?;
        let sends_again = !settings.resend.is_empty() || settings.groups.give(&self.container.path);
        let visible = sends_again.then(|| self.seen(&live, settings));
        Ok(Look { times: live.times, plan, visible })
    }

    fn settings(&self) -> Settings {
        Settings { created: self.dependencies.created(), ..self.apply.settings.clone() }
    }

    /// What is visibly left to do, given `live`, without steps that only resend fields.
    fn seen(&self, live: &Live, settings: Settings) -> ContainerPlan {
        plan::container(&self.container, live, &settings.after_run())
    }

    /// Whether this run creates the container.
    fn creates(&self) -> bool {
        let creates =
            |step: &&Step| step.action == Action::Create && step.provides(Capability::Exists);
        self.steps.iter().any(creates)
    }

    /// The first object that is not as planned, or for which that is unknown, with the outcome of
    /// its step.
    fn moved(&self, fresh: &ContainerPlan) -> Option<(Address, Outcome)> {
        let changed = Outcome::ChangedMeanwhile;
        let is_planned = |now: &&Step| self.steps.iter().any(|step| step.address == now.address);
        let turn = fresh.steps.iter().find(|step| step.address.section.is_none());
        // A change of a group above may already have given a field what the plan takes back.
        let is_as_planned = |now: &&Step| self.steps.iter().any(|step| step.is_same_change(now));
        let gives = self.apply.settings.groups.give(&self.container.path);
        let as_planned = fresh.steps.iter().filter(|now| gives && now.address.entry.is_none());
        let as_planned: Vec<_> = as_planned.filter(is_as_planned).map(|s| &s.address).collect();
        let refused = |refusal: &&Refusal| {
            !as_planned.contains(&&refusal.address) && !self.plan.acknowledges(refusal)
        };
        let found = if let Some(problem) = fresh.problems.first() {
            Some((&problem.address, changed(problem.message.clone().into())))
        } else if let Some(incomplete) = fresh.incomplete.first() {
            Some((&incomplete.address, unread(incomplete.reason.clone())))
        } else if let Some(turn) = turn.filter(|turn| !is_planned(turn)) {
            let why = "it was renamed, moved or marked for deletion";
            Some((&turn.address, changed(why.into())))
        } else {
            let refusal = fresh.refusals.iter().find(refused);
            refusal.map(|refusal| (&refusal.address, refused_now(refusal)))
        };
        if let Some((address, outcome)) = found {
            return Some((self.planned_or_first(address), outcome));
        }
        self.steps
            .iter()
            .find_map(|step| Some((step.address.clone(), self.moved_step(step, fresh, false)?)))
    }

    /// The outcome of `step` if it must not be sent: neither as planned, nor done. With `ours`,
    /// differences made by this run itself are accepted.
    fn moved_step(&self, step: &Step, fresh: &ContainerPlan, ours: bool) -> Option<Outcome> {
        let moved = |why: String| Some(Outcome::ChangedMeanwhile(why.into()));
        if let Some(now) = fresh.steps.iter().find(|now| now.address == step.address) {
            let is_as = step.is_same_change(now)
                || ((ours || step.possible.is_some()) && now.is_subset_of(step));
            return if is_as {
                None
            } else {
                moved("someone changed it since it was planned".into())
            };
        }
        if let Some(doubt) = fresh.doubt(step) {
            return Some(match fresh.closed() {
                Some(_) => Outcome::ChangedMeanwhile(doubt),
                None => unread(doubt),
            });
        }
        // A project that somebody else created may not be the planned one.
        let applied = |at| standing(self.container.scope, step, at, fresh) == CallState::Applied;
        if step.address.section.is_none() && !(0..step.sends.len()).all(applied) {
            return moved("someone created it, but not as planned".into());
        }
        match fresh.unseen(step) {
            unseen if unseen.is_empty() => None,
            unseen => moved(format!(
                "someone changed it, and the service does not return {}",
                text::listed(&unseen)
            )),
        }
    }

    /// The planned step at `address` or in its section, or else the first one.
    fn planned_or_first(&self, address: &Address) -> Address {
        let within =
            |step: &&&Step| step.address == *address || step.address.section == address.section;
        self.steps.iter().find(within).unwrap_or(&self.steps[0]).address.clone()
    }
}

/// The start of a cause if something could not be read before its writes.
const UNREAD: &str = "it could not be read again";

/// How a step ends if something could not be read before its writes.
fn unread(why: impl Into<Cause>) -> Outcome {
    Outcome::Failed(why.into().context(UNREAD))
}

/// How a step ends for which a new plan has a refusal.
fn refused_now(refusal: &Refusal) -> Outcome {
    Outcome::ChangedMeanwhile(format!("a guard now refuses it: {}", refusal.reason).into())
}
