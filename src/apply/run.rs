//! The run of one project: its steps along their edges, what became of lost answers, and what is there afterwards.
//!
//! ```text
//! read again, plan again --> still as planned? --> send the steps --> read back --> send what closes the project --> read back
//!                                                    |        ^
//!                       a lost answer, a stale value '-> wait, read again, plan again
//! ```
//!
//! Waiting steps of a project wait together: one reading serves all of them, and while nothing else is under way the project gives its place
//! among those that are worked on to another one.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, future::LocalBoxFuture, stream::FuturesUnordered};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    Apply, Event, Outcome, StepResult, Teller, Unstuck, UnstuckReason,
    lost::{History, LOOKS, Standing, Then, standing, then},
};
use crate::{
    address::Address,
    api::{ApiError, Freshness, retry::MAX_RETRIES},
    cause::Cause,
    diff::Incomplete,
    live::Live,
    manifest::Project,
    observe::ends_everything,
    operation::{Again, Request, Write},
    plan::{self, Plan, ProjectPlan, Settings, Step},
    planted::Bug,
    text,
};

/// How long live values that an edit repeats are taken for what is there. A wait makes them stale before.
const FRESH: Duration = Duration::from_secs(5);

/// A place among the projects that are worked on at a time.
pub(super) struct Place<'p> {
    places: &'p Semaphore,
    held: Option<SemaphorePermit<'p>>,
}

impl<'p> Place<'p> {
    /// Waits for one.
    pub(super) async fn take(places: &'p Semaphore) -> Self {
        // The places are never closed; without one, the limit alone is lost.
        Self { places, held: places.acquire().await.ok() }
    }

    /// Gives it to others for as long as `rest` takes.
    async fn rest<T>(&mut self, rest: impl Future<Output = T>) -> T {
        self.held = None;
        let result = rest.await;
        self.held = self.places.acquire().await.ok();
        result
    }
}

/// How the run of one project ended.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) results: BTreeMap<Address, StepResult>,
    pub(super) unstuck: Vec<Unstuck>,
    /// Whether anything was sent, so that it has to be read back.
    sent: bool,
    /// What makes going on with any project pointless.
    pub(super) error: Option<ApiError>,
}

/// The run of one project.
pub(super) struct Run<'a, F> {
    apply: &'a Apply<'a>,
    /// The project with the sections that the plan touches.
    project: Project,
    steps: &'a [&'a Step],
    /// What the plan could not read, and said so.
    unread: Vec<&'a Address>,
    teller: &'a Teller<F>,
}

/// A step under way.
struct Walk {
    /// As it was planned when the project was read last.
    step: Step,
    /// When that was, on the client's clock.
    read_at: Duration,
    /// The call that comes next.
    at: usize,
    /// Which sending of it this is, from 1.
    attempt: u32,
    /// Whether it was sent once more after it was not found.
    resent: bool,
}

/// Why a step waits.
enum Wait {
    /// The answer to its call was lost; so many looks were taken since its sending began.
    Lost { error: ApiError, since: Duration, looks: usize },
    /// Its call is to be built anew.
    Rebuild,
    /// The service refused to create it, perhaps because somebody else made the same.
    Refused(ApiError),
}

/// What became of a step for now.
enum Next {
    /// It ended.
    Ended(Outcome, Option<ApiError>),
    /// It goes on when the project was read again, not before this instant.
    Waits(Duration, Wait),
}

/// What is under way in a project.
enum Happened {
    Walked(Walk, Next),
    Looked(Vec<(Walk, Wait)>, Result<Look, ApiError>),
}

/// The project as it is now.
struct Look {
    read_at: Duration,
    /// What is left to do.
    plan: ProjectPlan,
    /// The same, but nothing is sent again only because somebody asked for that.
    seen: ProjectPlan,
}

impl<'a, F: FnMut(Event)> Run<'a, F> {
    pub(super) fn new(apply: &'a Apply<'a>, plan: &'a Plan, project: &Project, steps: &'a [&'a Step], teller: &'a Teller<F>) -> Self {
        let mut project = project.clone();
        let creates = steps.iter().any(|step| step.address.section.is_none());
        let touched: BTreeSet<_> = steps.iter().filter_map(|step| step.address.section).collect();
        // Whether the project is archived decides whether the others can be read at all.
        project.sections.retain(|name, _| touched.contains(name) || *name == "archived" || (creates && *name == "settings"));
        let unread = plan.incomplete.iter().map(|scope| &scope.address).filter(|address| address.path == project.path).collect();
        Self { apply, project, steps, unread, teller }
    }

    pub(super) async fn run(self, mut place: Place<'a>) -> Ended {
        let mut ended = Ended::default();
        if self.is_over() {
            self.end_all(&mut ended, |_| Outcome::NotStarted);
            return ended;
        }
        let look = match self.look().await {
            Ok(look) => look,
            Err(error) => {
                // Without another request nothing can be said of the project itself.
                let over = error.is_stopped() || error.is_over_budget();
                let failed = Outcome::Failed(Cause::from(&error).context(UNREAD));
                let outcome = if over { Outcome::NotStarted } else { failed };
                self.end_all(&mut ended, |_| outcome.clone());
                ended.error = ends_everything(&error).then_some(error);
                return ended;
            }
        };
        if let Some((address, outcome)) = self.moved(&look.plan) {
            let moved = matches!(outcome, Outcome::Moved(_));
            let why = if moved { "is no longer as planned" } else { "could not be read again" };
            self.end_all(&mut ended, |step| {
                let left_alone = || Outcome::Skipped(format!("`{address}` {why}, so that the project is left alone").into());
                if step.address == address { outcome.clone() } else { left_alone() }
            });
            return ended;
        }
        let (read_at, needed) = (look.read_at, look.plan.steps);
        for step in self.steps.iter().filter(|step| !needed.iter().any(|now| now.address == step.address)) {
            self.end(&mut ended, step, Outcome::Already);
        }
        let planned = needed.into_iter().filter(|now| self.steps.iter().any(|step| step.address == now.address));
        let (closing, others): (Vec<_>, Vec<_>) = planned.partition(|step| step.closes);
        self.walk_all(others, read_at, &mut ended, &mut place).await;
        if ended.sent {
            self.read_back(&mut ended).await;
        } else {
            // Nothing was needed, so what was read says already what is there.
            ended.unstuck = self.left(&look.seen, &ended);
        }
        self.close(closing, read_at, &mut ended, &mut place).await;
        ended
    }

    /// Carries out what closes the project, but only after everything before it was found as declared.
    async fn close(&self, closing: Vec<Step>, read_at: Duration, ended: &mut Ended, place: &mut Place<'a>) {
        if closing.is_empty() {
            return;
        }
        let open = ended.results.values().find(|result| !result.outcome.is_success()).map(|result| &result.address);
        let open = open.or_else(|| ended.unstuck.first().map(|unstuck| &unstuck.address));
        if let Some(first) = open.filter(|_| !Bug::ArchiveUnverified.is_planted()) {
            let why = Outcome::Skipped(format!("`{first}` comes first and is not as declared").into());
            closing.iter().for_each(|step| self.end(ended, step, why.clone()));
            return;
        }
        self.walk_all(closing, read_at, ended, place).await;
        self.read_back(ended).await;
    }

    /// Whether no further request is sent.
    fn is_over(&self) -> bool {
        self.apply.writer.reads().has_ended()
    }

    fn now(&self) -> Duration {
        self.apply.writer.reads().clock().now()
    }

    /// Ends every step that has not ended, without sending anything.
    fn end_all(&self, ended: &mut Ended, outcome: impl Fn(&Step) -> Outcome) {
        for step in self.steps {
            if !ended.results.contains_key(&step.address) {
                self.end(ended, step, outcome(step));
            }
        }
    }

    fn end(&self, ended: &mut Ended, step: &Step, outcome: Outcome) {
        let result = StepResult { address: step.address.clone(), action: step.action, outcome };
        self.teller.tell(Event::Ended(result.clone()));
        ended.results.insert(step.address.clone(), result);
    }

    async fn read(&self) -> Result<Live, ApiError> {
        self.apply.observer.project(&self.project, &self.apply.settings.selection).await
    }

    async fn look(&self) -> Result<Look, ApiError> {
        let live = self.read().await?;
        let settings = self.apply.settings;
        let seen = Settings { resend: Vec::new(), ..settings.clone() };
        Ok(Look {
            read_at: live.read_at,
            plan: plan::project(&self.project, &live, settings),
            seen: plan::project(&self.project, &live, &seen),
        })
    }

    /// The first object that is no longer as the plan found it, or of which that cannot be told, and how its step ends.
    fn moved(&self, fresh: &ProjectPlan) -> Option<(Address, Outcome)> {
        let at = |address: &Address, outcome| Some((self.planned_or_first(address), outcome));
        if let Some(problem) = fresh.problems.first() {
            return at(&problem.address, Outcome::Moved(problem.message.clone().into()));
        }
        if let Some(incomplete) = self.newly_unread(fresh).next() {
            return at(&incomplete.address, Outcome::Failed(incomplete.reason.clone().context(UNREAD)));
        }
        if let Some(refusal) = fresh.refusals.first() {
            return at(&refusal.address, Outcome::Moved(format!("a guard refuses by now: {}", refusal.reason).into()));
        }
        self.steps.iter().find_map(|step| Some((step.address.clone(), self.moved_step(step, fresh)?)))
    }

    /// How `step` ends without being sent, if it is not to be done as it was planned and is not done either.
    fn moved_step(&self, step: &Step, fresh: &ProjectPlan) -> Option<Outcome> {
        let moved = |why: String| Some(Outcome::Moved(why.into()));
        if let Some(now) = fresh.steps.iter().find(|now| now.address == step.address) {
            return if step.is_as(now) { None } else { moved("somebody changed it since it was planned".into()) };
        }
        if let Some(doubt) = fresh.doubt(step) {
            let unread = Outcome::Failed(doubt.clone().context(UNREAD));
            return Some(if fresh.closed().is_some() { Outcome::Moved(doubt) } else { unread });
        }
        // A project that somebody else created may not be the one that was planned.
        let applied = |at| standing(step, at, fresh) == Standing::Applied;
        if step.address.section.is_none() && !(0..step.requests.len()).all(applied) {
            return moved("somebody created it, and not as planned".into());
        }
        match fresh.unseen(step) {
            unseen if unseen.is_empty() => None,
            unseen => moved(format!("somebody changed it, and the service does not show {}", text::listed(&unseen))),
        }
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

    /// Carries out `steps`, planned from what was read at `read_at`, along their edges.
    async fn walk_all(&self, steps: Vec<Step>, read_at: Duration, ended: &mut Ended, place: &mut Place<'a>) {
        let mut ready: Vec<Step> = steps;
        let mut under_way: FuturesUnordered<LocalBoxFuture<'_, Happened>> = FuturesUnordered::new();
        let mut waiting: Vec<(Duration, Walk, Wait)> = Vec::new();
        let mut looking = false;
        loop {
            for walk in self.start(&mut ready, read_at, ended) {
                under_way.push(self.advance(walk).boxed_local());
            }
            let due = waiting.iter().map(|(due, ..)| *due).min().filter(|_| !looking);
            let happened = match due {
                None if under_way.is_empty() && ready.is_empty() => return,
                // Nothing runs and nothing waits, so what is left was blocked in this round; go round once more for it.
                None if under_way.is_empty() => None,
                None => under_way.next().await,
                Some(due) => {
                    let rested = self.apply.writer.reads().wait_until(due);
                    let rested = if under_way.is_empty() {
                        Err(place.rest(rested).await)
                    } else {
                        tokio::select! { biased; happened = under_way.next() => Ok(happened), rested = rested => Err(rested) }
                    };
                    match rested {
                        Ok(happened) => happened,
                        Err(false) => {
                            self.give_up(std::mem::take(&mut waiting), ended);
                            None
                        }
                        Err(true) => {
                            let (now_due, later) = waiting.into_iter().partition(|(instant, ..)| *instant <= due);
                            waiting = later;
                            looking = true;
                            under_way.push(self.look_for(now_due).boxed_local());
                            None
                        }
                    }
                }
            };
            match happened {
                None => {}
                Some(Happened::Walked(walk, Next::Waits(due, wait))) => waiting.push((due, walk, wait)),
                Some(Happened::Walked(walk, Next::Ended(outcome, error))) => {
                    ended.error = ended.error.take().or(error);
                    self.end(ended, &walk.step, outcome);
                }
                Some(Happened::Looked(walks, look)) => {
                    looking = false;
                    for (walk, wait) in walks {
                        match self.after_look(walk, wait, &look) {
                            (walk, None) => under_way.push(self.advance(walk).boxed_local()),
                            (walk, Some(next)) => under_way.push(std::future::ready(Happened::Walked(walk, next)).boxed_local()),
                        }
                    }
                }
            }
        }
    }

    /// The steps among `ready` that can start; what can never start ends, and the rest stays.
    fn start(&self, ready: &mut Vec<Step>, read_at: Duration, ended: &mut Ended) -> Vec<Walk> {
        let mut started = Vec::new();
        for step in std::mem::take(ready) {
            match self.readiness(&step, ended) {
                Readiness::Blocked(why) => self.end(ended, &step, Outcome::Skipped(why.into())),
                Readiness::Waits => ready.push(step),
                Readiness::Ready if self.is_over() || ended.error.is_some() => self.end(ended, &step, Outcome::NotStarted),
                Readiness::Ready => {
                    self.teller.tell(Event::Started { address: step.address.clone(), action: step.action });
                    ended.sent = true;
                    started.push(Walk { step, read_at, at: 0, attempt: 1, resent: false });
                }
            }
        }
        started
    }

    fn readiness(&self, step: &Step, ended: &Ended) -> Readiness {
        for edge in &step.after {
            match ended.results.get(&edge.address) {
                Some(result) if result.outcome.is_success() => {}
                Some(_) => return Readiness::Blocked(format!("`{}` comes first ({}) and was not carried out", edge.address, edge.reason)),
                // Only steps of the plan are waited for.
                None if self.steps.iter().any(|planned| planned.address == edge.address) => return Readiness::Waits,
                None => {}
            }
        }
        Readiness::Ready
    }

    /// Sends the calls of a step, in order, as far as they go.
    async fn advance(&self, mut walk: Walk) -> Happened {
        while let Some(request) = walk.step.requests.get(walk.at).cloned() {
            let freshness = Freshness { until: walk.read_at.saturating_add(FRESH), attempt: walk.attempt };
            if let Err(error) = self.apply.writer.send_fresh(request.clone(), freshness).await {
                let next = self.after_error(&mut walk, &request, error);
                return Happened::Walked(walk, next);
            }
            walk.next_call();
        }
        Happened::Walked(walk, Next::Ended(Outcome::Done, None))
    }

    /// What comes after a call that failed.
    fn after_error(&self, walk: &mut Walk, request: &Request<Write>, error: ApiError) -> Next {
        let over = error.is_stopped() || error.is_over_budget();
        let ends = ends_everything(&error).then(|| error.clone());
        if let Some(since) = error.in_doubt_since() {
            if over {
                return Next::Ended(Outcome::Unknown(Cause::from(&error)), ends);
            }
            let due = since.saturating_add(LOOKS[0]).max(error.retry_at().unwrap_or_default());
            return Next::Waits(whole_second(due), Wait::Lost { error, since, looks: 1 });
        }
        if let Some(instant) = error.retry_at() {
            walk.attempt += 1;
            return Next::Waits(instant, Wait::Rebuild);
        }
        if error.is_stale() {
            return Next::Waits(self.now(), Wait::Rebuild);
        }
        if over {
            let sent = walk.at > 0 || walk.resent;
            let rest = || format!("the run ended after {} of {}", walk.at, text::count(walk.step.requests.len(), "call"));
            return Next::Ended(if sent { Outcome::Failed(Cause::new(rest()).passing()) } else { Outcome::NotStarted }, ends);
        }
        let taken = matches!(request.operation.again, Again::Refused | Again::Second) && matches!(error.status(), Some(400 | 409 | 422));
        if taken && ends.is_none() {
            return Next::Waits(self.now(), Wait::Refused(error));
        }
        Next::Ended(Outcome::Failed(Cause::from(&error)), ends)
    }

    async fn look_for(&self, due: Vec<(Duration, Walk, Wait)>) -> Happened {
        let look = self.look().await;
        Happened::Looked(due.into_iter().map(|(_, walk, wait)| (walk, wait)).collect(), look)
    }

    /// What comes next for a step that waited; nothing if it is to be sent.
    fn after_look(&self, walk: Walk, wait: Wait, look: &Result<Look, ApiError>) -> (Walk, Option<Next>) {
        match (wait, look) {
            (Wait::Lost { error, since, looks }, look) => self.after_loss(walk, error, since, looks, look.as_ref()),
            (Wait::Refused(error), look) => self.after_refusal(walk, &error, look.as_ref()),
            (Wait::Rebuild, Ok(look)) => self.rebuilt(walk, look),
            (Wait::Rebuild, Err(error)) => {
                let outcome = Outcome::Failed(Cause::from(error).context(UNREAD));
                (walk, Some(Next::Ended(outcome, ends_everything(error).then(|| error.clone()))))
            }
        }
    }

    /// What comes next for a create that was refused: it may be there all the same.
    fn after_refusal(&self, walk: Walk, error: &ApiError, look: Result<&Look, &ApiError>) -> (Walk, Option<Next>) {
        let applied = look.is_ok_and(|look| standing(&walk.step, walk.at, &look.seen) == Standing::Applied);
        let ends = look.err().filter(|error| ends_everything(error)).cloned();
        match (applied, walk.resent) {
            // The first sending of two came late, and the second was one too many.
            (true, true) => self.on_with_next_call(walk),
            // Somebody else, like another run, was faster and made the same.
            (true, false) if walk.step.requests.len() == 1 => (walk, Some(Next::Ended(Outcome::Already, None))),
            _ => (walk, Some(Next::Ended(Outcome::Failed(Cause::from(error)), ends))),
        }
    }

    fn on_with_next_call(&self, mut walk: Walk) -> (Walk, Option<Next>) {
        walk.next_call();
        let done = walk.at == walk.step.requests.len();
        (walk, done.then_some(Next::Ended(Outcome::Done, None)))
    }

    /// The step as it is planned from what is there now.
    fn rebuilt(&self, mut walk: Walk, look: &Look) -> (Walk, Option<Next>) {
        match self.moved_step(&walk.step, &look.plan) {
            Some(outcome) => (walk, Some(Next::Ended(outcome, None))),
            None => match look.plan.steps.iter().find(|now| now.address == walk.step.address) {
                Some(now) => {
                    walk.step.requests.clone_from(&now.requests);
                    walk.read_at = look.read_at;
                    (walk, None)
                }
                None => (walk, Some(Next::Ended(Outcome::Already, None))),
            },
        }
    }

    /// What comes next for a call whose answer was lost.
    fn after_loss(
        &self,
        mut walk: Walk,
        error: ApiError,
        since: Duration,
        looks: usize,
        look: Result<&Look, &ApiError>,
    ) -> (Walk, Option<Next>) {
        let request = walk.step.requests[walk.at].clone();
        let unread = |why: &dyn std::fmt::Display| format!("{error}; whether it was carried out could not be read back: {why}");
        let found = match look {
            Ok(look) => self.found(&walk, &request, look),
            Err(error) if ends_everything(error) => {
                let outcome = Outcome::Unknown(Cause::new(unread(error)).passing());
                return (walk, Some(Next::Ended(outcome, Some(error.clone()))));
            }
            Err(error) => Standing::Unknown(Cause::from(error)),
        };
        // What does not go stale was repeated by the client already, as often as it may be.
        let repeatable = request.goes_stale() && walk.attempt <= MAX_RETRIES;
        let history = History { looks, resent: walk.resent, repeatable };
        let ended = |walk, outcome| (walk, Some(Next::Ended(outcome, None)));
        match (then(&request, found, history), look) {
            (Then::Next, _) => self.on_with_next_call(walk),
            (Then::Again, look) => {
                walk.attempt += 1;
                walk.resent |= request.operation.again != Again::Same;
                match look.ok().filter(|_| request.goes_stale()) {
                    Some(look) => self.rebuilt(walk, look),
                    None => (walk, None),
                }
            }
            (Then::Look(after), _) => {
                let due = whole_second(since.saturating_add(after)).max(self.now());
                (walk, Some(Next::Waits(due, Wait::Lost { error, since, looks: looks + 1 })))
            }
            (Then::Failed, _) => ended(walk, Outcome::Failed(Cause::from(&error).passing())),
            (Then::Other, _) => ended(walk, Outcome::Moved(format!("{error}; what is there now is not what was sent").into())),
            (Then::Unknown(cause), _) => ended(walk, Outcome::Unknown(Cause::new(unread(&cause)).passing())),
        }
    }

    /// What was found of a lost call. One that somebody asked to send again although nothing can be seen to differ may be sent again.
    fn found(&self, walk: &Walk, request: &Request<Write>, look: &Look) -> Standing {
        let found = standing(&walk.step, walk.at, &look.seen);
        let asked = || look.plan.steps.iter().any(|now| walk.step.is_as(now));
        if matches!(found, Standing::Unknown(_)) && request.operation.again == Again::Same && asked() {
            return Standing::NotApplied;
        }
        found
    }

    /// Ends what waits when the run may not go on.
    fn give_up(&self, waiting: Vec<(Duration, Walk, Wait)>, ended: &mut Ended) {
        for (_, walk, wait) in waiting {
            let outcome = match wait {
                Wait::Lost { error, .. } => {
                    let cause = Cause::from(&error);
                    Outcome::Unknown(cause.context("the run ended before it could be looked for"))
                }
                Wait::Refused(error) => Outcome::Failed(Cause::from(&error)),
                Wait::Rebuild if walk.at == 0 => Outcome::NotStarted,
                Wait::Rebuild => Outcome::Failed(Cause::new("the run ended before its last call").passing()),
            };
            self.end(ended, &walk.step, outcome);
        }
    }

    /// Reads the project back and names what is not as declared.
    async fn read_back(&self, ended: &mut Ended) {
        if self.is_over() || ended.error.is_some() || Bug::SkipReadBack.is_planted() {
            return;
        }
        let project = self.project.address();
        ended.unstuck = match self.look().await {
            Err(error) => vec![unread(project.clone(), Cause::from(&error))],
            Ok(Look { seen: left, .. }) => self.left(&left, ended),
        };
        self.teller.tell(Event::Verified { project, unstuck: ended.unstuck.clone() });
    }

    /// What is not as declared, or not known to be, now that the steps were carried out.
    fn left(&self, left: &ProjectPlan, ended: &Ended) -> Vec<Unstuck> {
        let mut unstuck: Vec<_> = self.newly_unread(left).map(|scope| unread(scope.address.clone(), scope.reason.clone())).collect();
        for step in self.steps.iter().filter(|step| ended.results.get(&step.address).is_some_and(|result| result.outcome.is_success())) {
            let told = unstuck.iter().any(|known| known.address.section.is_none_or(|section| step.address.section == Some(section)));
            // Once a project is archived nothing else of it can be seen; it was, before.
            let closed = ended.results.values().any(|result| self.closes(&result.address) && result.outcome.is_success());
            if !told && let Some(doubt) = left.doubt(step).filter(|_| !closed || step.closes) {
                unstuck.push(unread(step.address.clone(), doubt));
            }
        }
        unstuck.extend(left.steps.iter().filter_map(|step| self.unstuck(step, ended)));
        unstuck
    }

    fn closes(&self, address: &Address) -> bool {
        self.steps.iter().any(|step| step.closes && step.address == *address)
    }

    /// What a step that is still needed after the run says; nothing if its own result says it already, or if it was not its turn yet.
    fn unstuck(&self, left: &Step, ended: &Ended) -> Option<Unstuck> {
        // A project is created along with its settings.
        let created = ended.results.values().find(|result| result.address.section.is_none() && left.address.section == Some("settings"));
        let reason = match ended.results.get(&left.address).or(created) {
            Some(result) if result.outcome.is_success() => UnstuckReason::NotKept,
            Some(_) => return None,
            None if self.closes(&left.address) => return None,
            None => UnstuckReason::ChangedMeanwhile,
        };
        let fields = left.changes.iter().map(|change| change.field.clone()).collect();
        Some(Unstuck { address: left.address.clone(), fields, reason })
    }
}

impl Walk {
    fn next_call(&mut self) {
        (self.at, self.attempt, self.resent) = (self.at + 1, 1, false);
    }
}

/// Whether a step can start.
enum Readiness {
    Ready,
    Waits,
    Blocked(String),
}

/// How a cause begins that kept something from being read before its writes.
const UNREAD: &str = "it could not be read again";

fn unread(address: Address, cause: Cause) -> Unstuck {
    Unstuck { address, fields: Vec::new(), reason: UnstuckReason::Unreadable(cause) }
}

/// The next whole second: what is due within one is looked for by one reading.
fn whole_second(instant: Duration) -> Duration {
    Duration::from_secs(instant.as_secs() + u64::from(instant.subsec_nanos() > 0))
}
