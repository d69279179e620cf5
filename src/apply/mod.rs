//! Applying a plan: exactly its writes, or fewer.
//!
//! Before its first write each project's touched sections are read again and planned anew. A step that comes out the same runs; one that
//! is no longer needed was done by somebody else; anything else means that the project moved, and it is left alone. After the writes the
//! same sections are read and planned once more: whatever that plan still holds did not stick. So one pure function, [`plan::project`],
//! decides before, after, and when an answer was lost, and nothing here compares fields on its own.
//!
//! Projects run side by side and do not affect each other; within a project steps run along their edges.

mod event;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use futures_util::{StreamExt as _, stream, stream::FuturesUnordered};
use tokio::sync::watch;

pub use event::{Applied, Event, Outcome, StepResult, Unstuck, UnstuckReason};

use crate::{
    address::Address,
    api::{ApiError, WriteClient},
    diff::{Action, Incomplete},
    kind::Kind,
    kinds,
    manifest::{Desired, Project},
    observe::{Observer, ends_everything},
    operation::{Method, Request, Write},
    plan::{self, Plan, ProjectPlan, Settings, Step},
    text,
};

/// What a run of apply works with.
pub struct Apply<'a> {
    /// What is declared.
    pub desired: &'a Desired,
    /// Reads back.
    pub observer: &'a Observer,
    /// Writes.
    pub writer: &'a WriteClient,
    /// As the plan was made with.
    pub settings: &'a Settings,
    /// How many projects are worked on at a time.
    pub ahead: usize,
    /// Turns true when no further call is to be started.
    pub stop: watch::Receiver<bool>,
}

impl Apply<'_> {
    /// Carries out `plan` and tells `events` what happens as it happens. Never fails as a whole: what could not be done is in the result.
    pub async fn run(&self, plan: &Plan, events: impl FnMut(Event)) -> Applied {
        let mut by_project: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
        for step in &plan.steps {
            by_project.entry(&step.address.path).or_default().push(step);
        }
        let teller = Teller(Mutex::new(events));
        let runs = self.desired.projects.iter().filter_map(|project| Some((project, by_project.get(&*project.path)?)));
        let runs = runs.map(|(project, steps)| Run::new(self, plan, project, steps, &teller).run());
        let ended: Vec<Ended> = stream::iter(runs).buffer_unordered(self.ahead).collect().await;

        let mut results = BTreeMap::new();
        let mut applied = Applied { interrupted: self.stopping(), ..Applied::default() };
        for run in ended {
            results.extend(run.results.into_iter().map(|result| (result.address.clone(), result)));
            applied.unstuck.extend(run.unstuck);
            applied.ended_by = applied.ended_by.or(run.error);
        }
        applied.unstuck.sort();
        applied.steps = plan.steps.iter().filter_map(|step| results.remove(&step.address)).collect();
        applied
    }

    fn stopping(&self) -> bool {
        *self.stop.borrow()
    }
}

/// Hands events from many places to one reader.
struct Teller<F>(Mutex<F>);

impl<F: FnMut(Event)> Teller<F> {
    fn tell(&self, event: Event) {
        (self.0.lock().unwrap_or_else(PoisonError::into_inner))(event);
    }
}

/// How the run of one project ended.
#[derive(Default)]
struct Ended {
    results: Vec<StepResult>,
    unstuck: Vec<Unstuck>,
    /// What makes going on with any project pointless.
    error: Option<ApiError>,
}

/// The run of one project.
struct Run<'a, F> {
    apply: &'a Apply<'a>,
    /// The project with the sections that the plan touches.
    project: Project,
    steps: &'a [&'a Step],
    /// What the plan could not read, and said so.
    unread: Vec<&'a Address>,
    teller: &'a Teller<F>,
}

impl<'a, F: FnMut(Event)> Run<'a, F> {
    fn new(apply: &'a Apply<'a>, plan: &'a Plan, project: &Project, steps: &'a [&'a Step], teller: &'a Teller<F>) -> Self {
        let mut project = project.clone();
        let creates = steps.iter().any(|step| step.address.section.is_none());
        let touched: BTreeSet<_> = steps.iter().filter_map(|step| step.address.section).collect();
        // Whether the project is archived decides whether the others can be read at all.
        project.sections.retain(|name, _| touched.contains(name) || *name == "archived" || (creates && *name == "settings"));
        let unread = plan.incomplete.iter().map(|scope| &scope.address).filter(|address| address.path == project.path).collect();
        Self { apply, project, steps, unread, teller }
    }

    async fn run(self) -> Ended {
        let mut ended = Ended::default();
        if self.apply.stopping() {
            self.end_all(&mut ended, |_| Outcome::NotStarted);
            return ended;
        }
        let fresh = match self.plan_anew(self.apply.settings).await {
            Ok(fresh) => fresh,
            Err(error) => {
                // Without another request nothing can be said of the project itself.
                let over = error.is_stopped() || error.is_over_budget();
                let failed = Outcome::Failed(format!("it could not be read again: {error}"));
                let outcome = if over { Outcome::NotStarted } else { failed };
                self.end_all(&mut ended, |_| outcome.clone());
                ended.error = ends_everything(&error).then_some(error);
                return ended;
            }
        };
        match self.moved(&fresh) {
            Some((address, outcome)) => {
                let moved = matches!(outcome, Outcome::Moved(_));
                let why = if moved { "is no longer as planned" } else { "could not be read again" };
                self.end_all(&mut ended, |step| {
                    let left_alone = || Outcome::Skipped(format!("`{address}` {why}, so that the project is left alone"));
                    if step.address == address { outcome.clone() } else { left_alone() }
                });
            }
            None => {
                self.run_steps(fresh.steps, &mut ended).await;
                self.verify(&mut ended).await;
            }
        }
        ended
    }

    /// Ends every step that has not ended, without sending anything.
    fn end_all(&self, ended: &mut Ended, outcome: impl Fn(&Step) -> Outcome) {
        for step in self.steps {
            if !ended.results.iter().any(|result| result.address == step.address) {
                self.end(ended, step, outcome(step));
            }
        }
    }

    fn end(&self, ended: &mut Ended, step: &Step, outcome: Outcome) {
        let result = StepResult { address: step.address.clone(), action: step.action, outcome };
        self.teller.tell(Event::Ended(result.clone()));
        ended.results.push(result);
    }

    async fn plan_anew(&self, settings: &Settings) -> Result<ProjectPlan, ApiError> {
        let live = self.apply.observer.project(&self.project, &settings.selection).await?;
        Ok(plan::project(&self.project, &live, settings))
    }

    /// The first object that is no longer as the plan found it, or of which that cannot be told, and how its step ends.
    fn moved(&self, fresh: &ProjectPlan) -> Option<(Address, Outcome)> {
        if let Some(problem) = fresh.problems.first() {
            return Some((self.planned_or_first(&problem.address), Outcome::Moved(problem.message.clone())));
        }
        if let Some(incomplete) = self.newly_unread(fresh).next() {
            let why = format!("it could not be read again: {}", incomplete.reason);
            return Some((self.planned_or_first(&incomplete.address), Outcome::Failed(why)));
        }
        if let Some(refusal) = fresh.refusals.first() {
            let why = format!("a guard refuses by now: {}", refusal.reason);
            return Some((self.planned_or_first(&refusal.address), Outcome::Moved(why)));
        }
        self.steps.iter().find_map(|step| {
            let now = fresh.steps.iter().find(|now| now.address == step.address)?;
            (!step.is_as(now)).then(|| (step.address.clone(), Outcome::Moved("somebody changed it since it was planned".to_owned())))
        })
    }

    /// What could not be read now, although the plan could.
    fn newly_unread<'p>(&self, fresh: &'p ProjectPlan) -> impl Iterator<Item = &'p Incomplete> {
        fresh.incomplete.iter().filter(|scope| !self.unread.contains(&&scope.address))
    }

    /// The planned step that is at `address` or in the section there; the first one if none is.
    fn planned_or_first(&self, address: &Address) -> Address {
        let within = |step: &&&Step| step.address == *address || step.address.section == address.section;
        self.steps.iter().find(within).unwrap_or(&self.steps[0]).address.clone()
    }

    /// Runs `fresh`, the planned steps that are still needed, along their edges.
    async fn run_steps(&self, fresh: Vec<Step>, ended: &mut Ended) {
        let mut waiting: Vec<Step> = Vec::new();
        for step in self.steps {
            if !fresh.iter().any(|now| now.address == step.address) {
                self.end(ended, step, Outcome::Already);
            }
        }
        waiting.extend(fresh.into_iter().filter(|now| self.steps.iter().any(|step| step.address == now.address)));
        let mut running = FuturesUnordered::new();
        loop {
            let mut later = Vec::new();
            for step in waiting {
                match self.readiness(&step, ended) {
                    Readiness::Blocked(why) => self.end(ended, &step, Outcome::Skipped(why)),
                    Readiness::Waits => later.push(step),
                    Readiness::Ready if self.apply.stopping() || ended.error.is_some() => self.end(ended, &step, Outcome::NotStarted),
                    Readiness::Ready => {
                        self.teller.tell(Event::Started { address: step.address.clone(), action: step.action });
                        running.push(async move {
                            let outcome = self.execute(&step).await;
                            (step, outcome)
                        });
                    }
                }
            }
            waiting = later;
            match running.next().await {
                Some((step, (outcome, error))) => {
                    ended.error = ended.error.take().or(error);
                    self.end(ended, &step, outcome);
                }
                None if waiting.is_empty() => return,
                // Nothing runs, so what waits was blocked or ended in the round before; go round once more for it.
                None => {}
            }
        }
    }

    fn readiness(&self, step: &Step, ended: &Ended) -> Readiness {
        for edge in &step.after {
            match ended.results.iter().find(|result| result.address == edge.address) {
                Some(result) if result.outcome.is_success() => {}
                Some(_) => return Readiness::Blocked(format!("`{}` comes first ({}) and was not carried out", edge.address, edge.reason)),
                // Only steps of the plan are waited for.
                None if self.steps.iter().any(|planned| planned.address == edge.address) => return Readiness::Waits,
                None => {}
            }
        }
        Readiness::Ready
    }

    /// Sends the calls of one step, in order.
    async fn execute(&self, step: &Step) -> (Outcome, Option<ApiError>) {
        match self.send_all(&step.requests).await {
            Ok(outcome) => (outcome, None),
            Err(error) if ends_everything(&error) && !error.maybe_applied() => (Outcome::Failed(error.to_string()), Some(error)),
            Err(error) if error.maybe_applied() => self.look_again(step, error).await,
            Err(error) if step.action == Action::Create && matches!(error.status(), Some(400 | 409 | 422)) => {
                self.look_for_another(step, error).await
            }
            Err(error) => (Outcome::Failed(error.to_string()), None),
        }
    }

    /// Sends calls in order; after a signal no further one.
    async fn send_all(&self, requests: &[Request<Write>]) -> Result<Outcome, ApiError> {
        for (sent, request) in requests.iter().enumerate() {
            if sent > 0 && self.apply.stopping() {
                let all = text::count(requests.len(), "call");
                return Ok(Outcome::Failed(format!("interrupted after {sent} of {all}; another run takes up the rest")));
            }
            self.apply.writer.send(request.clone()).await?;
        }
        Ok(Outcome::Done)
    }

    /// After an answer was lost: looks whether the step was carried out. If nothing of it was, it is sent once more; if it was not
    /// carried out as planned, it is left as it is.
    async fn look_again(&self, step: &Step, error: ApiError) -> (Outcome, Option<ApiError>) {
        self.apply.writer.settle().await;
        let live = match self.plan_anew(&without_resend(self.apply.settings)).await {
            Ok(live) => live,
            Err(unread) => {
                let why = format!("{error}; whether it was carried out could not be read back: {unread}");
                return (Outcome::Unknown(why), ends_everything(&unread).then_some(unread));
            }
        };
        if let Some(unread) = live.incomplete.iter().find(|scope| scope.address.section == step.address.section) {
            return (Outcome::Unknown(format!("{error}; whether it was carried out could not be read back: {}", unread.reason)), None);
        }
        let again = match remaining(step, &live) {
            Remaining::Nothing => return (Outcome::Done, None),
            // An edit or a removal was sent several times already, as both may be; sending it yet again brings nothing.
            Remaining::Everything if step.action != Action::Create => return (Outcome::Failed(error.to_string()), None),
            Remaining::Everything => &step.requests[..],
            Remaining::Rest(requests) => requests,
            Remaining::Other => {
                let why = format!("{error}; what is there now is not what was sent");
                return (Outcome::Moved(why), None);
            }
        };
        match self.send_all(again).await {
            Ok(outcome) => (outcome, None),
            Err(error) if error.maybe_applied() => (Outcome::Unknown(error.to_string()), None),
            Err(error) => (Outcome::Failed(error.to_string()), ends_everything(&error).then_some(error)),
        }
    }

    /// After a create was refused: looks whether that is because somebody else, like another run, was faster and made the same.
    async fn look_for_another(&self, step: &Step, refused: ApiError) -> (Outcome, Option<ApiError>) {
        match self.plan_anew(&without_resend(self.apply.settings)).await {
            Ok(now) if now.incomplete.is_empty() && now.problems.is_empty() && matches!(remaining(step, &now), Remaining::Nothing) => {
                (Outcome::Already, None)
            }
            Err(error) if ends_everything(&error) => (Outcome::Failed(refused.to_string()), Some(error)),
            _ => (Outcome::Failed(refused.to_string()), None),
        }
    }

    /// Reads the project back and names what is not as declared.
    async fn verify(&self, ended: &mut Ended) {
        let sent =
            ended.results.iter().any(|result| !matches!(result.outcome, Outcome::Already | Outcome::Skipped(_) | Outcome::NotStarted));
        if !sent || self.apply.stopping() || ended.error.is_some() {
            return;
        }
        let project = self.project.address();
        let unread = |address: Address, why: String| Unstuck { address, fields: Vec::new(), reason: UnstuckReason::Unreadable(why) };
        let unstuck = match self.plan_anew(&without_resend(self.apply.settings)).await {
            Err(error) => vec![unread(project.clone(), error.to_string())],
            Ok(left) => {
                let unread = self.newly_unread(&left).map(|scope| unread(scope.address.clone(), scope.reason.clone()));
                unread.chain(left.steps.iter().filter_map(|step| self.unstuck(step, ended))).collect()
            }
        };
        self.teller.tell(Event::Verified { project, unstuck: unstuck.clone() });
        ended.unstuck = unstuck;
    }

    /// What a step that is still needed after the run says; nothing if its own result says it already.
    fn unstuck(&self, left: &Step, ended: &Ended) -> Option<Unstuck> {
        // A project is created along with its settings.
        let created = ended.results.iter().find(|result| result.address.section.is_none() && left.address.section == Some("settings"));
        let result = ended.results.iter().find(|result| result.address == left.address).or(created);
        let reason = match result {
            Some(result) if result.outcome.is_success() => UnstuckReason::NotKept,
            Some(_) => return None,
            None => UnstuckReason::ChangedMeanwhile,
        };
        let fields = left.changes.iter().map(|change| change.field.clone()).collect();
        Some(Unstuck { address: left.address.clone(), fields, reason })
    }
}

/// Whether a step can start.
enum Readiness {
    Ready,
    Waits,
    Blocked(String),
}

/// What is left of a step whose answer was lost.
enum Remaining<'s> {
    Nothing,
    Everything,
    Rest(&'s [Request<Write>]),
    Other,
}

fn remaining<'s>(step: &'s Step, now: &ProjectPlan) -> Remaining<'s> {
    if let Some(left) = now.steps.iter().find(|left| left.address == step.address) {
        return if step.is_as(left) { Remaining::Everything } else { Remaining::Other };
    }
    // A project that exists now is ours if nothing that its create carried differs; what only an edit accepts still has to follow.
    let settings = now.steps.iter().find(|left| step.address.section.is_none() && left.address.section == Some("settings"));
    match (settings, step.requests.split_first()) {
        (Some(left), Some((create, rest))) if create.operation.method == Method::Post => {
            let table = kinds::of_section("settings").map(Kind::table);
            let carried = |field: &str| {
                let sent = table.map_or(field, |table| table.field(field).sent_name(field));
                create.body_fields().is_some_and(|fields| fields.contains_key(sent))
            };
            if left.changes.iter().any(|change| carried(&change.field)) { Remaining::Other } else { Remaining::Rest(rest) }
        }
        _ => Remaining::Nothing,
    }
}

/// The settings to look back with: what was sent again on request is not sent once more because of that.
fn without_resend(settings: &Settings) -> Settings {
    Settings { resend: Vec::new(), ..settings.clone() }
}
