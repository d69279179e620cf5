//! The steps of one project under way: sent along their edges, waiting where an answer was lost or
//! a value went stale, and going on with what a look found.

use std::time::Duration;

use futures_util::{
    FutureExt as _, StreamExt as _, future::LocalBoxFuture, stream::FuturesUnordered,
};

use super::{Ended, Look, Place, Run, UNREAD, closes, progress::Readiness};
use crate::{
    api::{ApiError, Freshness, retry::MAX_RETRIES, said},
    apply::{
        Event, Outcome,
        arrival::{self, next_look},
        lost::{History, LOOKS, Standing, Then, standing, then},
    },
    cause::Cause,
    diff::{Action, Step},
    kind::LiveEntry,
    kinds,
    live::Collection,
    observe::ends_everything,
    operation::{Again, Request, Write},
    planted::Bug,
    text,
    value::Json,
};

/// How long live values that an edit repeats are taken for what is there. A wait makes them stale
/// before.
const FRESH: Duration = Duration::from_secs(5);

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
    /// Whether steps of this run may have changed what it is about.
    moved: bool,
    /// How it failed, if what it had removed is being put back.
    failed: Option<Cause>,
}

/// Why a step waits.
enum Wait {
    /// The answer to its call was lost; so many looks were taken since its sending began.
    Lost { error: ApiError, since: Duration, looks: usize },
    /// What its calls started in the background at this instant has not ended.
    Arrives { since: Duration },
    /// Its call is to be built anew.
    Rebuild,
    /// The service refused to create it, perhaps because somebody else made the same.
    Refused(ApiError),
}

/// Whether a step that has ended still puts back what it removed.
enum PutBack {
    GoesOn(Walk),
    Ends(Walk, Outcome),
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

/// The steps of a project that have not ended.
struct Open<'r> {
    /// Those that have not started.
    ready: Vec<Step>,
    /// Those that are being sent, and the look that is being taken.
    under_way: FuturesUnordered<LocalBoxFuture<'r, Happened>>,
    /// Those that wait for a look, each until an instant.
    waiting: Vec<(Duration, Walk, Wait)>,
    /// Whether a look is being taken.
    looking: bool,
}

impl<'r> Open<'r> {
    fn add(&mut self, happens: impl Future<Output = Happened> + 'r) {
        self.under_way.push(happens.boxed_local());
    }

    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.under_way.is_empty() && self.waiting.is_empty()
    }

    /// When the next look is due; only one is taken at a time.
    fn due(&self) -> Option<Duration> {
        self.waiting.iter().map(|(due, ..)| *due).min().filter(|_| !self.looking)
    }
}

impl<'a, F: FnMut(Event)> Run<'a, F> {
    /// Carries out `steps`, planned from what was read at `read_at`, along their edges.
    pub(super) async fn walk_all(
        &self,
        steps: Vec<Step>,
        read_at: Duration,
        ended: &mut Ended,
        place: &mut Place<'a>,
    ) {
        let (under_way, waiting) = (FuturesUnordered::new(), Vec::new());
        let mut open = Open { ready: steps, under_way, waiting, looking: false };
        loop {
            for walk in self.start(&mut open.ready, read_at, ended) {
                if walk.moved {
                    open.waiting.push((self.now(), walk, Wait::Rebuild));
                } else {
                    open.add(self.advance(walk));
                }
            }
            if open.is_empty() {
                return;
            }
            if let Some(happened) = self.next(&mut open, ended, place).await {
                self.go_on(happened, &mut open, ended);
            }
        }
    }

    /// Waits for what happens next. Nothing has happened if a look is due only now, or if another
    /// container was waited for.
    async fn next<'r>(
        &'r self,
        open: &mut Open<'r>,
        ended: &mut Ended,
        place: &mut Place<'a>,
    ) -> Option<Happened> {
        let Some(due) = open.due() else {
            if !open.under_way.is_empty() {
                return open.under_way.next().await;
            }
            // What is left waits for another container, or was blocked in this round; go round
            // once more for it.
            if open.ready.iter().any(|step| self.waits_for_another(step)) {
                self.wait_for_another(&mut open.ready, ended, place).await;
            }
            return None;
        };
        let rested = self.apply.writer.reads().wait_until(due);
        let may_go_on = if open.under_way.is_empty() {
            place.rest(rested).await
        } else {
            tokio::select! { biased; happened = open.under_way.next() => return happened, rested = rested => rested }
        };
        let waiting = std::mem::take(&mut open.waiting);
        if may_go_on {
            let (now_due, later) = waiting.into_iter().partition(|(instant, ..)| *instant <= due);
            (open.waiting, open.looking) = (later, true);
            open.add(self.look_for(now_due));
        } else {
            self.give_up(waiting, ended);
        }
        None
    }

    /// Goes on with the steps to which something happened.
    fn go_on<'r>(&'r self, happened: Happened, open: &mut Open<'r>, ended: &mut Ended) {
        match happened {
            Happened::Walked(walk, Next::Waits(due, wait)) => open.waiting.push((due, walk, wait)),
            Happened::Walked(walk, Next::Ended(outcome, error)) => {
                ended.error = ended.error.take().or(error);
                match self.put_back(walk, outcome, ended) {
                    PutBack::GoesOn(walk) => open.add(self.advance(walk)),
                    PutBack::Ends(walk, outcome) => self.end(ended, &walk.step, outcome),
                }
            }
            Happened::Looked(walks, look) => {
                open.looking = false;
                for (walk, wait) in walks {
                    match self.after_look(walk, wait, &look) {
                        (walk, None) => open.add(self.advance(walk)),
                        (walk, Some(next)) => {
                            open.add(std::future::ready(Happened::Walked(walk, next)));
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
                Readiness::Ready if self.is_over() || ended.error.is_some() => {
                    self.end(ended, &step, Outcome::NotStarted);
                }
                Readiness::Ready => {
                    self.teller.tell(Event::Started {
                        address: step.address.clone(),
                        action: step.action,
                    });
                    ended.progress.sent = true;
                    // What this run created is known to be empty since then.
                    let created = self.known.borrow().created();
                    let read_at = created.map_or(read_at, |created| created.max(read_at));
                    // A removal needs no more than what addresses it, a create not even that; what
                    // closes the container was just read.
                    let moved = step.action == Action::Update
                        && !closes(&step)
                        && ended.progress.has_moved(&step);
                    started.push(Walk {
                        moved,
                        step,
                        read_at,
                        at: 0,
                        attempt: 1,
                        resent: false,
                        failed: None,
                    });
                }
            }
        }
        started
    }

    /// Whether `step` waits for a step of another container.
    fn waits_for_another(&self, step: &Step) -> bool {
        step.after.iter().any(|edge| {
            edge.address.path != step.address.path && self.board.state(&edge.address) == Some(None)
        })
    }

    /// Waits until a step of another container ends; if the run does, nothing more is started.
    async fn wait_for_another(
        &self,
        ready: &mut Vec<Step>,
        ended: &mut Ended,
        place: &mut Place<'a>,
    ) {
        let over = self.apply.writer.reads().wait_for_end();
        let goes_on = place.rest(async {
            tokio::select! { biased; () = self.board.changes() => true, () = over => false }
        });
        if !goes_on.await {
            for step in std::mem::take(ready) {
                self.end(ended, &step, Outcome::NotStarted);
            }
        }
    }

    pub(super) fn readiness(&self, step: &Step, ended: &Ended) -> Readiness {
        ended.progress.readiness(step, self.board)
    }

    /// Sends the calls of a step, in order, as far as they go.
    async fn advance(&self, mut walk: Walk) -> Happened {
        while let Some(call) = walk.step.sends.get(walk.at).cloned() {
            if call.restores && walk.failed.is_none() {
                walk.next_call();
                continue;
            }
            let request = match call.request.with_ids(|path| self.id_of(path)) {
                Ok(request) => request,
                Err(path) => {
                    let unknown = format!("the id of `{}` is not known", text::escape(&path));
                    let failed = Outcome::Failed(Cause::new(unknown));
                    return Happened::Walked(walk, Next::Ended(failed, None));
                }
            };
            let freshness =
                Freshness { until: walk.read_at.saturating_add(FRESH), attempt: walk.attempt };
            match self.apply.writer.send_fresh(request.clone(), freshness).await {
                Ok(answer) => {
                    self.hear(&walk, &request, &answer.body);
                    if let Some(cause) = refused_within(&answer.body) {
                        let failed = Outcome::Failed(self.with_remedy(cause, &walk, &request));
                        return Happened::Walked(walk, Next::Ended(failed, None));
                    }
                    if call.awaits {
                        walk.next_call();
                        let since = self.now();
                        return Happened::Walked(walk, await_arrival(since, Duration::ZERO));
                    }
                }
                Err(error) => {
                    self.known.borrow_mut().doubt(&walk.step, &self.container);
                    let next = self.after_error(&mut walk, &request, error);
                    return Happened::Walked(walk, next);
                }
            }
            walk.next_call();
        }
        Happened::Walked(walk, Next::Ended(Outcome::Done, None))
    }

    /// The id of what this run created: at this path, or of the entry of this container that has
    /// this address.
    fn id_of(&self, named: &str) -> Option<u64> {
        if !named.contains('#') {
            return self.board.created().known_id(named);
        }
        let (known, own) = (self.known.borrow(), self.container.address());
        known.live.sections.iter().find_map(|(name, collection)| {
            let of = kinds::section(self.container.scope, name)?;
            let address = |entry: &LiveEntry| own.section(of.section).entry(of.name(&entry.fields));
            let mut entries = collection.entries().ok()?.iter();
            of.id_of(entries.find(|entry| address(entry).to_string() == named)?)
        })
    }

    fn hear(&self, walk: &Walk, request: &Request<Write>, answer: &Json) {
        let now = self.now();
        self.known.borrow_mut().hear(&self.container, &walk.step, request, answer, now);
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
            let rest = || {
                format!(
                    "the run ended after {} of {}",
                    walk.at,
                    text::count(
                        walk.step.sends.iter().filter(|call| !call.restores).count(),
                        "call"
                    )
                )
            };
            return Next::Ended(
                if sent {
                    Outcome::Failed(Cause::new(rest()).transient())
                } else {
                    Outcome::NotStarted
                },
                ends,
            );
        }
        let taken = matches!(request.operation.again, Again::Refused | Again::Second)
            && matches!(error.status(), Some(400 | 409 | 422));
        if taken && ends.is_none() {
            return Next::Waits(self.now(), Wait::Refused(error));
        }
        let cause = self.with_remedy(Cause::from(&error), walk, request);
        Next::Ended(Outcome::Failed(cause), ends)
    }

    /// `cause`, with what to do about a call that a later run does not repeat, because nothing shows
    /// that it is missing.
    fn with_remedy(&self, cause: Cause, walk: &Walk, request: &Request<Write>) -> Cause {
        let is_seen = walk.at == 0 || request.body_fields().is_some();
        if walk.step.address.section.is_some() || is_seen {
            return cause;
        }
        cause.help(format!("a later run does not repeat this: `{}`", request.as_command()))
    }

    /// Goes on with the call that puts back what a failed step had removed, or ends the step if there
    /// is none, or none any more.
    fn put_back(&self, mut walk: Walk, outcome: Outcome, ended: &Ended) -> PutBack {
        if let Some(failed) = walk.failed.take() {
            let outcome = match outcome {
                Outcome::Done => Outcome::Failed(failed.context("what was there was put back")),
                Outcome::Already => Outcome::Failed(failed.context(
                    "someone else added it anew, perhaps without what its manifest leaves out",
                )),
                other => {
                    let why = other.cause().map_or_else(String::new, ToString::to_string);
                    Outcome::Failed(failed.context(format!(
                        "what was there is gone, and putting it back failed ({why})"
                    )))
                }
            };
            return PutBack::Ends(walk, outcome);
        }
        let next = walk.step.sends.get(walk.at + 1).filter(|_| walk.at > 0);
        match outcome {
            Outcome::Failed(cause)
                if next.is_some_and(|call| call.restores)
                    && !Bug::LeaveRemoved.is_planted()
                    && !self.is_over()
                    && ended.error.is_none() =>
            {
                walk.next_call();
                walk.failed = Some(cause);
                PutBack::GoesOn(walk)
            }
            outcome => PutBack::Ends(walk, outcome),
        }
    }

    async fn look_for(&self, due: Vec<(Duration, Walk, Wait)>) -> Happened {
        let look = self.look_for_steps(due.iter().map(|(_, walk, _)| &walk.step)).await;
        Happened::Looked(due.into_iter().map(|(_, walk, wait)| (walk, wait)).collect(), look)
    }

    /// What comes next for a step that waited; nothing if it is to be sent.
    fn after_look(
        &self,
        walk: Walk,
        wait: Wait,
        look: &Result<Look, ApiError>,
    ) -> (Walk, Option<Next>) {
        match (wait, look) {
            (Wait::Lost { error, since, looks }, look) => {
                self.after_loss(walk, error, since, looks, look.as_ref())
            }
            (Wait::Refused(error), look) => self.after_refusal(walk, &error, look.as_ref()),
            (Wait::Arrives { since }, look) => self.after_arrival(walk, since, look.as_ref()),
            (Wait::Rebuild, Ok(look)) => self.rebuilt(walk, look),
            (Wait::Rebuild, Err(error)) => {
                let outcome = Outcome::Failed(Cause::from(error).context(UNREAD));
                (walk, Some(Next::Ended(outcome, ends_everything(error).then(|| error.clone()))))
            }
        }
    }

    /// What comes next for a create that was refused: it may be there all the same.
    fn after_refusal(
        &self,
        walk: Walk,
        error: &ApiError,
        look: Result<&Look, &ApiError>,
    ) -> (Walk, Option<Next>) {
        let standing =
            look.map(|look| standing(self.container.scope, &walk.step, walk.at, &look.seen)).ok();
        let ends = look.err().filter(|error| ends_everything(error)).cloned();
        let failed = |cause| Some(Next::Ended(Outcome::Failed(cause), ends.clone()));
        let restores = walk.step.sends.get(walk.at).is_some_and(|call| call.restores);
        let is_met = |step: &Step| {
            look.is_ok_and(|look| look.seen.steps.iter().all(|left| left.address != step.address))
        };
        match (standing, walk.resent) {
            // What was to be put back was removed, and somebody else added it as declared.
            (Some(Standing::Applied), _) if restores && is_met(&walk.step) => {
                (walk, Some(Next::Ended(Outcome::Already, None)))
            }
            // The first sending of two came late, and the second was one too many. What was to be
            // put back may never have gone.
            (Some(Standing::Applied), resent) if resent || restores => self.on_with_next_call(walk),
            // Somebody else, like another run, was faster and made the same.
            (Some(Standing::Applied), _) if walk.is_only_call() => {
                (walk, Some(Next::Ended(Outcome::Already, None)))
            }
            // It was not removed, although the service said so: there is nothing to put back.
            (Some(Standing::Other), _) if walk.step.replaces => {
                let cause = Cause::from(error).context("what was there was not removed");
                (walk.at_its_end(), failed(cause))
            }
            // The service itself was faster: it makes some things along with what this run created.
            _ => match look.ok().and_then(|look| self.made_by_service(&walk, look)) {
                Some(step) => (Walk { step, ..walk }, None),
                None => (walk, failed(Cause::from(error))),
            },
        }
    }

    /// The step that makes what the service itself put into a container that this run created as it
    /// was planned.
    fn made_by_service(&self, walk: &Walk, look: &Look) -> Option<Step> {
        self.known.borrow().created()?;
        let now = look.plan.steps.iter().find(|now| now.address == walk.step.address)?;
        let is_edit = now.action == Action::Update && walk.step.action == Action::Create;
        (is_edit && now.does_no_more_than(&walk.step)).then(|| now.clone())
    }

    /// What comes next for a step whose calls started something in the background.
    fn after_arrival(
        &self,
        walk: Walk,
        since: Duration,
        look: Result<&Look, &ApiError>,
    ) -> (Walk, Option<Next>) {
        let passed = self.now().saturating_sub(since);
        let ends = look.err().filter(|error| ends_everything(error)).cloned();
        let known = self.known.borrow();
        let found = look.map(|_| &known.live.presence).map_err(Cause::from);
        let then = match ends.is_some() {
            true => arrival::then(found, arrival::PATIENCE),
            false => arrival::then(found, passed),
        };
        let ended = |outcome| Some(Next::Ended(outcome, ends));
        match then {
            arrival::Then::Next if walk.is_done() => (walk, ended(Outcome::Done)),
            arrival::Then::Next => (walk, None),
            arrival::Then::Look(_) => (walk, Some(await_arrival(since, passed))),
            arrival::Then::Failed(cause) => (walk, ended(Outcome::Failed(cause))),
            arrival::Then::Unknown(cause) => (walk, ended(Outcome::Unknown(cause))),
        }
    }

    fn on_with_next_call(&self, mut walk: Walk) -> (Walk, Option<Next>) {
        let awaits = walk.step.sends.get(walk.at).is_some_and(|call| call.awaits);
        walk.next_call();
        if awaits {
            return (walk, Some(await_arrival(self.now(), Duration::ZERO)));
        }
        let done = walk.is_done();
        (walk, done.then_some(Next::Ended(Outcome::Done, None)))
    }

    /// The step as it is planned from what is there now.
    fn rebuilt(&self, mut walk: Walk, look: &Look) -> (Walk, Option<Next>) {
        match self.moved_step(&walk.step, &look.plan, walk.moved) {
            Some(outcome) => (walk, Some(Next::Ended(outcome, None))),
            None => match look.plan.steps.iter().find(|now| now.address == walk.step.address) {
                Some(now) => {
                    walk.step.sends.clone_from(&now.sends);
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
        let request = walk.step.sends[walk.at].request.clone();
        let unread = |why: &dyn std::fmt::Display| {
            format!("{error}; reading back whether it took effect failed: {why}")
        };
        let found = match look {
            Ok(look) => self.found(&walk, &request, look),
            Err(error) if ends_everything(error) => {
                let outcome = Outcome::Unknown(Cause::new(unread(error)).transient());
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
                walk.resent |= request.again() != Again::Same;
                match look.ok().filter(|_| request.goes_stale()) {
                    Some(look) => self.rebuilt(walk, look),
                    None => (walk, None),
                }
            }
            (Then::Look(after), _) => {
                let due = whole_second(since.saturating_add(after)).max(self.now());
                (walk, Some(Next::Waits(due, Wait::Lost { error, since, looks: looks + 1 })))
            }
            (Then::Failed, _) => ended(walk, Outcome::Failed(Cause::from(&error).transient())),
            (Then::Other, _) => ended(
                walk,
                Outcome::ChangedMeanwhile(
                    format!("{error}; the service now holds something else than what was sent")
                        .into(),
                ),
            ),
            (Then::Unknown(cause), _) => {
                ended(walk, Outcome::Unknown(Cause::new(unread(&cause)).transient()))
            }
        }
    }

    /// What was found of a lost call. One that somebody asked to send again although nothing can be
    /// seen to differ may be sent again.
    fn found(&self, walk: &Walk, request: &Request<Write>, look: &Look) -> Standing {
        let found = standing(self.container.scope, &walk.step, walk.at, &look.seen);
        let asked = || look.plan.steps.iter().any(|now| walk.step.is_as(now));
        if matches!(found, Standing::Unknown(_)) && request.again() == Again::Same && asked() {
            return Standing::NotApplied;
        }
        if found == Standing::Applied && !self.is_added_whole(walk) {
            return Standing::Other;
        }
        found
    }

    /// Whether what a replacement adds is there with all that was there before and is not declared.
    /// Somebody else who found it gone may have added it from the manifest alone.
    fn is_added_whole(&self, walk: &Walk) -> bool {
        let adds = walk.step.sends.get(walk.at + 1).is_some_and(|call| call.restores);
        let address = &walk.step.address;
        let section = address.section.and_then(|name| self.container.section(name));
        let Some(of) = section.map(|section| section.of).filter(|_| adds) else { return true };
        let known = self.known.borrow();
        let Some(Ok(entries)) = known.live.sections.get(of.section).map(Collection::entries) else {
            return true;
        };
        let is_it = |entry: &&LiveEntry| Some(&*of.name(&entry.fields)) == address.entry.as_deref();
        entries.iter().find(is_it).is_none_or(|now| walk.step.leaves(of, now))
    }

    /// Ends what waits when the run may not go on.
    fn give_up(&self, waiting: Vec<(Duration, Walk, Wait)>, ended: &mut Ended) {
        for (_, walk, wait) in waiting {
            let outcome = match wait {
                Wait::Lost { error, .. } => {
                    let cause = Cause::from(&error);
                    Outcome::Unknown(cause.context("the run ended before this could be read back"))
                }
                Wait::Refused(error) => Outcome::Failed(Cause::from(&error)),
                Wait::Arrives { .. } => {
                    let cause = Cause::new("the run ended before its contents were imported");
                    Outcome::Unknown(cause.transient())
                }
                Wait::Rebuild if walk.at == 0 => Outcome::NotStarted,
                Wait::Rebuild => {
                    Outcome::Failed(Cause::new("the run ended before its last call").transient())
                }
            };
            self.end(ended, &walk.step, outcome);
        }
    }
}

impl Walk {
    fn next_call(&mut self) {
        (self.at, self.attempt, self.resent) = (self.at + 1, 1, false);
    }

    /// The same with no call left.
    fn at_its_end(mut self) -> Self {
        self.at = self.step.sends.len();
        self
    }

    /// Whether no call is left but those that put something back.
    fn is_done(&self) -> bool {
        self.step.sends.iter().skip(self.at).all(|call| call.restores)
    }

    /// Whether its only call is the one that it is at.
    fn is_only_call(&self) -> bool {
        self.step.sends.iter().filter(|call| !call.restores).count() == 1
    }
}

/// Looks again, some time after `passed`, for what was started at `since`.
fn await_arrival(since: Duration, passed: Duration) -> Next {
    let due = whole_second(since.saturating_add(next_look(passed)));
    Next::Waits(due, Wait::Arrives { since })
}

/// Why a write failed that was answered with success: some say only in the body that a part was
/// refused.
fn refused_within(answer: &Json) -> Option<Cause> {
    let status = answer.get("status").filter(|_| answer.get("id").is_none())?;
    (status == "error")
        .then(|| Cause::new(said(answer)).context("the service refused a part of it"))
}

/// The next whole second: what is due within one is looked for by one reading.
fn whole_second(instant: Duration) -> Duration {
    Duration::from_secs(instant.as_secs() + u64::from(instant.subsec_nanos() > 0))
}
