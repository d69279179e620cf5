//! Sends the steps of one project along their edges. A step waits if an answer was lost or a live
//! value is stale, and continues with the result of the next look ([`wait`]).

#[cfg(test)]
mod tests;
mod wait;

use std::time::Duration;

use futures_util::{
    FutureExt as _, StreamExt as _, future::LocalBoxFuture, stream::FuturesUnordered,
};

use wait::Wait;

use super::{Ended, Look, Run, progress::Readiness};
use crate::{
    api::{ApiError, Freshness, Result, message_of_success},
    apply::{Event, Outcome, arrival::next_look, lost::LOOKS},
    catalogue::{self, settings},
    cause::Cause,
    diff::{Action, Step},
    kind::{Call, limits},
    live::{ReadTime, Times},
    observe::ends_everything,
    operation::{Again, Request, Write},
    planted::Bug,
    text,
    value::Json,
};

/// How long live values that an edit repeats count as current. Any wait makes them stale.
const FRESH: Duration = Duration::from_secs(5);

/// The status of a delete that was refused because what it removes changed.
const CHANGED_MEANWHILE: u16 = 412;

/// A step that is being carried out.
struct Walk {
    /// The step from the latest plan.
    step: Step,
    /// When the live state for it was read.
    read: ReadTime,
    /// The position of the next call.
    at: usize,
    /// The number of its next sending, from 1.
    attempt: u32,
    /// Whether it was sent once more after a look found nothing.
    resent: bool,
    /// Whether steps of this run may have changed its object.
    moved: bool,
    /// The failure after which a removed object is being put back.
    failed: Option<Cause>,
}

/// What happens to a step next.
enum Next {
    /// It ended.
    Ended(Outcome, Option<ApiError>),
    /// It continues after the next reading of its section that begins at this instant or later.
    Waits(Duration, Wait),
}

/// What happened in a project.
#[expect(clippy::large_enum_variant, reason = "there is one for each project that is processed")]
enum Finished {
    Walked(Walk, Next),
    Looked(Vec<(Walk, Wait)>, Result<Look>),
}

/// The steps of a project that have not ended.
struct Open<'r> {
    /// Those that have not started.
    ready: Vec<Step>,
    /// Steps in flight, and a reading in progress.
    under_way: FuturesUnordered<LocalBoxFuture<'r, Finished>>,
    /// Steps that wait for a look, each for one that begins at an instant or later.
    waiting: Vec<(Duration, Walk, Wait)>,
    /// Whether a reading is in progress.
    looking: bool,
}

impl<'r> Open<'r> {
    fn add(&mut self, happens: impl Future<Output = Finished> + 'r) {
        self.under_way.push(happens.boxed_local());
    }

    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.under_way.is_empty() && self.waiting.is_empty()
    }

    /// When the next look is due; there is only one at a time.
    fn due(&self) -> Option<Duration> {
        self.waiting.iter().map(|(due, ..)| *due).min().filter(|_| !self.looking)
    }
}

impl<'a, F: FnMut(Event)> Run<'a, F> {
    /// Carries out `steps`, planned from what was read at these `times`, along their edges.
    pub(super) async fn walk_all(&self, steps: Vec<Step>, times: &Times, ended: &mut Ended<'a>) {
        let (under_way, waiting) = (FuturesUnordered::new(), Vec::new());
        let mut open = Open { ready: steps, under_way, waiting, looking: false };
        loop {
            for walk in self.start(&mut open.ready, times, ended) {
                if walk.moved {
                    open.waiting.push((self.now(), walk, Wait::Rebuild));
                } else {
                    open.add(self.advance(walk));
                }
            }
            if open.is_empty() {
                return;
            }
            if let Some(happened) = self.next(&mut open, ended).await {
                self.go_on(happened, &mut open, ended);
            }
        }
    }

    /// Waits for the next event. There is none if a look just became due, or if the wait was for
    /// another container.
    async fn next<'r>(&'r self, open: &mut Open<'r>, ended: &mut Ended<'a>) -> Option<Finished> {
        let Some(due) = open.due() else {
            if !open.under_way.is_empty() {
                return open.under_way.next().await;
            }
            // The remaining steps wait for another container, or were blocked in this round; go
            // round once more.
            if open.ready.iter().any(|step| self.waits_for_another(step)) {
                self.wait_for_another(&mut open.ready, ended).await;
            }
            return None;
        };
        let rested = self.apply.writer.reads().wait_until(due);
        let may_go_on = if open.under_way.is_empty() {
            self.rest(ended, rested).await
        } else {
            tokio::select! { biased; happened = open.under_way.next() => return happened, rested = rested => rested }
        };
        let waiting = std::mem::take(&mut open.waiting);
        if may_go_on {
            let now = self.now().max(due);
            let (now_due, later) = waiting.into_iter().partition(|(instant, ..)| *instant <= now);
            (open.waiting, open.looking) = (later, true);
            open.add(self.look_for(now_due));
        } else {
            self.give_up(waiting, ended);
        }
        None
    }

    /// Continues the steps concerned by an event.
    fn go_on<'r>(&'r self, happened: Finished, open: &mut Open<'r>, ended: &mut Ended<'_>) {
        match happened {
            Finished::Walked(walk, Next::Waits(due, wait)) => open.waiting.push((due, walk, wait)),
            Finished::Walked(mut walk, Next::Ended(outcome, error)) => {
                ended.error = ended.error.take().or(error);
                match self.put_back(&mut walk, outcome, ended) {
                    None => open.add(self.advance(walk)),
                    Some(outcome) => self.end(ended, &walk.step, outcome),
                }
            }
            Finished::Looked(mut walks, look) => {
                open.looking = false;
                // Those that began to wait meanwhile need no look of their own, if this one certainly
                // began after they became due: at the same instant is not certain.
                let serves = |(due, walk, _): &mut (Duration, Walk, Wait)| {
                    let times = look.as_ref().map(|look| &look.times);
                    times.is_ok_and(|times| times.of(walk.step.address.section).began > *due)
                };
                let served = open.waiting.extract_if(.., serves);
                walks.extend(served.map(|(_, walk, wait)| (walk, wait)));
                for (walk, wait) in walks {
                    match self.after_look(walk, wait, &look) {
                        (walk, None) => open.add(self.advance(walk)),
                        (walk, Some(next)) => {
                            self.go_on(Finished::Walked(walk, next), open, ended);
                        }
                    }
                }
            }
        }
    }

    /// The steps of `ready` that can start. Steps that never can are ended; the others stay.
    fn start(&self, ready: &mut Vec<Step>, times: &Times, ended: &mut Ended<'_>) -> Vec<Walk> {
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
                    // A container created by this run is known to be empty since then.
                    let created = self.known.borrow().created;
                    let read = times.of(step.address.section);
                    let newer = created.filter(|created| *created > read.ended);
                    let read = newer.map_or(read, |at| ReadTime { began: at, ended: at });
                    // A removal needs only the address of its object, and a create needs nothing;
                    // for closing, the container was just read.
                    let moved = step.action == Action::Update
                        && !step.closes()
                        && ended.progress.has_moved(&step);
                    started.push(Walk {
                        moved,
                        step,
                        read,
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
            edge.address.path != step.address.path
                && self.dependencies.state(&edge.address) == Some(None)
        })
    }

    /// Waits until a step of another container ends. If the run ends, no step starts any more.
    async fn wait_for_another(&self, ready: &mut Vec<Step>, ended: &mut Ended<'a>) {
        let over = self.apply.writer.reads().wait_for_end();
        let goes_on = self.rest(ended, async {
            tokio::select! { biased; () = self.dependencies.changes() => true, () = over => false }
        });
        if !goes_on.await {
            for step in std::mem::take(ready) {
                self.end(ended, &step, Outcome::NotStarted);
            }
        }
    }

    pub(super) fn readiness(&self, step: &Step, ended: &Ended<'_>) -> Readiness {
        ended.progress.readiness(step, self.dependencies)
    }

    async fn advance(&self, mut walk: Walk) -> Finished {
        let next = self.send_calls(&mut walk).await;
        Finished::Walked(walk, next)
    }

    /// Sends the calls of a step in order, as far as possible.
    async fn send_calls(&self, walk: &mut Walk) -> Next {
        let failed = |cause| Next::Ended(Outcome::Failed(cause), None);
        while let Some(call) = walk.step.sends.get(walk.at).cloned() {
            if call.is_spare() && walk.failed.is_none() {
                walk.next_call();
                continue;
            }
            let request = call.request.with_ids(self.id.get().copied(), |path| self.id_of(path));
            let request = match request {
                Ok(request) => request,
                Err(path) => {
                    let path = text::escape(&path);
                    return failed(Cause::new(format!("the id of `{path}` is not known")));
                }
            };
            let Walk { attempt, read: ReadTime { began: read_at, ended }, .. } = *walk;
            let freshness = Freshness { until: ended.saturating_add(FRESH), attempt, read_at };
            let answer = match self.apply.writer.send_fresh(request.clone(), freshness).await {
                Ok(answer) => answer.body,
                Err(error) => {
                    self.known.borrow_mut().doubt(&walk.step, &self.container);
                    return self.after_error(walk, &request, error);
                }
            };
            self.hear(walk, &request, &answer);
            if let Some(cause) = refused_within(&answer) {
                return failed(self.with_remedy(cause, walk, &request));
            }
            if request.operation.shows && answer.is_null() {
                return Next::Waits(self.now(), Wait::Unsaid);
            }
            if let Some(cause) = self.unlimited(walk, &request, &answer) {
                let undo = walk.step.sends.get(walk.at + 1).filter(|call| call.undoes);
                if undo.is_none() || self.is_over() {
                    return failed(cause.and("it is in effect without that"));
                }
                walk.failed = Some(cause);
            } else if call.undoes {
                break;
            }
            // The next request needs the id, which the answer may lack.
            let awaits = call.awaits || (walk.step.creates_container() && self.id.get().is_none());
            walk.next_call();
            if awaits {
                return await_arrival(self.now(), Duration::ZERO);
            }
        }
        Next::Ended(Outcome::Done, None)
    }

    /// Why a write that turned a switch on did not succeed: the answer lacks the limit that was
    /// sent with it.
    fn unlimited(&self, walk: &Walk, request: &Request<Write>, answer: &Json) -> Option<Cause> {
        let section = walk.step.address.section.unwrap_or(settings::SECTION);
        let of = catalogue::section(self.container.scope, section)?;
        let shown = answer.as_object().filter(|_| request.operation.shows)?;
        let open = limits::unlimited(of, request.body_fields()?, shown);
        let (switch, _) = open.first()?;
        let limits: Vec<_> =
            open.iter().filter(|(on, _)| on == switch).map(|(_, limit)| limit.as_str()).collect();
        let what = text::listed(&limits);
        Some(Cause::new(format!("the service did not save {what}, which limits `{switch}`")))
    }

    /// The id of what this run created: the container at this path, or the entry of this container
    /// with this address.
    fn id_of(&self, named: &str) -> Option<u64> {
        if !named.contains('#') {
            return self.dependencies.created().known_id(named);
        }
        self.known.borrow().id_of(&self.container, named)
    }

    fn hear(&self, walk: &Walk, request: &Request<Write>, answer: &Json) {
        let now = self.now();
        let own = self.id.get().copied();
        self.known.borrow_mut().hear(&self.container, &walk.step, request, answer, own, now);
        self.identify(Some(&self.known.borrow().live.presence));
        // The answer to a fork or an import shows only its id.
        if walk.at == 0 && walk.step.creates_container() {
            let path = ["path_with_namespace", "full_path"].iter().find_map(|key| answer.get(key));
            let path = path.and_then(Json::as_str).unwrap_or_default().trim_start_matches('/');
            if path.to_lowercase() == self.container.path.to_lowercase()
                && let Some(id) = answer.get("id").and_then(Json::as_u64)
            {
                self.id.get_or_init(|| id);
            }
        }
    }

    /// What happens after a failed call.
    fn after_error(&self, walk: &mut Walk, request: &Request<Write>, error: ApiError) -> Next {
        let over = error.is_over();
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
            let stale = walk.read.ended.saturating_add(FRESH);
            return Next::Waits(stale.min(self.now()), Wait::Rebuild);
        }
        let calls = walk.step.sends.iter().filter(|call| !call.is_spare()).count();
        let sent = format!("{} of {}", walk.at, text::count(calls, "call"));
        if over {
            let ended = || Cause::new(format!("the run ended after {sent}")).transient();
            let is_sent = walk.at > 0 || walk.resent;
            let outcome = if is_sent { Outcome::Failed(ended()) } else { Outcome::NotStarted };
            return Next::Ended(outcome, ends);
        }
        if request.operation.conditional && error.status() == Some(CHANGED_MEANWHILE) {
            let why = Cause::from(&error).context("it changed after it was read");
            return Next::Ended(Outcome::ChangedMeanwhile(why), ends);
        }
        let taken = matches!(request.operation.again, Again::Refused | Again::Second)
            && matches!(error.status(), Some(400 | 409 | 422));
        if taken && ends.is_none() {
            return Next::Waits(self.now(), Wait::Refused(error));
        }
        let cause = self.with_remedy(Cause::from(&error), walk, request);
        let is_half_done = walk.at > 0 && walk.failed.is_none();
        let half = || cause.clone().and(format!("{sent} succeeded, and stays in effect"));
        let cause = if is_half_done { half() } else { cause };
        Next::Ended(Outcome::Failed(cause), ends)
    }

    /// Adds to `cause` what to do about a call that no later run repeats, because nothing shows
    /// that it is missing.
    fn with_remedy(&self, cause: Cause, walk: &Walk, request: &Request<Write>) -> Cause {
        let is_seen = walk.at == 0 || request.body_fields().is_some();
        if walk.step.address.section.is_some() || is_seen {
            return cause;
        }
        cause.help(format!("a later run does not repeat this: `{}`", request.as_command()))
    }

    /// Continues with the call that puts back what a failed step had removed. Returns how the step
    /// ends if there is none.
    fn put_back(&self, walk: &mut Walk, outcome: Outcome, ended: &Ended<'_>) -> Option<Outcome> {
        if let Some(failed) = walk.failed.take() {
            let undoes = walk.step.sends.get(walk.at).is_some_and(|call| call.undoes);
            let why = outcome.cause().map_or_else(String::new, ToString::to_string);
            let cause = match outcome {
                Outcome::Done | Outcome::Already if undoes => failed.and("it was turned off again"),
                _ if undoes => failed.and(format!("turning it off again failed ({why})")),
                Outcome::Done => failed.context("what was there was put back"),
                Outcome::Already => failed.context(
                    "someone else added it anew, perhaps without what its manifest leaves out",
                ),
                _ => failed
                    .context(format!("what was there is gone, and putting it back failed ({why})")),
            };
            return Some(Outcome::Failed(cause));
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
                None
            }
            outcome => Some(outcome),
        }
    }

    async fn look_for(&self, due: Vec<(Duration, Walk, Wait)>) -> Finished {
        let look = self.look_for_steps(due.iter().map(|(_, walk, _)| &walk.step)).await;
        Finished::Looked(due.into_iter().map(|(_, walk, wait)| (walk, wait)).collect(), look)
    }
}

impl Walk {
    fn next_call(&mut self) {
        (self.at, self.attempt, self.resent) = (self.at + 1, 1, false);
    }

    /// Whether only calls that put something back are left.
    fn is_done(&self) -> bool {
        self.step.sends.iter().skip(self.at).all(Call::is_spare)
    }

    /// Whether its present call is the only one.
    fn is_only_call(&self) -> bool {
        self.step.sends.iter().filter(|call| !call.is_spare()).count() == 1
    }
}

/// Looks again, some time after `passed`, for contents requested at `since`.
fn await_arrival(since: Duration, passed: Duration) -> Next {
    let due = whole_second(since.saturating_add(next_look(passed)));
    Next::Waits(due, Wait::Arrives { since })
}

/// Why a write failed in spite of a status of success: some answers report a refused part only in
/// the body.
fn refused_within(answer: &Json) -> Option<Cause> {
    let status = answer.get("status").filter(|_| answer.get("id").is_none())?;
    (status == "error")
        .then(|| Cause::new(message_of_success(answer)).context("the service refused a part of it"))
}

/// Rounds up to a whole second, so that one reading serves all looks due in it.
fn whole_second(instant: Duration) -> Duration {
    Duration::from_secs(instant.as_secs() + u64::from(instant.subsec_nanos() > 0))
}
