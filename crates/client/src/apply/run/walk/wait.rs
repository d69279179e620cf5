//! Why a step waits, and what happens to it after the next reading.

use std::time::Duration;

use super::{Look, Next, Run, Walk, await_arrival, whole_second};
use crate::{
    api::{ApiError, Result, retry::MAX_RETRIES},
    apply::{
        Event, Outcome, arrival,
        lost::{CallState, History, Verdict, standing, then},
        run::{Ended, UNREAD, unread},
    },
    cause::Cause,
    diff::{Action, Step},
    kind::LiveEntry,
    live::Collection,
    observe::ends_everything,
    operation::{Again, Request, Write},
};

/// Why a step waits.
pub(super) enum Wait {
    /// The answer to its call was lost; `looks` were taken since its sending began.
    Lost { error: ApiError, since: Duration, looks: usize },
    /// The contents requested at this instant have not arrived.
    Arrives { since: Duration },
    /// Its call must be built anew.
    Rebuild,
    /// Its call succeeded with `null` in place of the written object.
    Unsaid,
    /// The service refused the create, perhaps because somebody else made the same object.
    Refused(ApiError),
}

impl<F: FnMut(Event)> Run<'_, F> {
    /// What happens next to a waiting step; `None` if it is to be sent.
    pub(super) fn after_look(
        &self,
        mut walk: Walk,
        wait: Wait,
        look: &Result<Look>,
    ) -> (Walk, Option<Next>) {
        let next = match (wait, look.as_ref()) {
            (Wait::Lost { error, since, looks }, look) => {
                self.after_loss(&mut walk, error, since, looks, look)
            }
            (Wait::Refused(error), look) => self.after_refusal(&mut walk, &error, look.ok()),
            (Wait::Arrives { since }, look) => self.after_arrival(&walk, since, look),
            (Wait::Unsaid, look) => self.after_null(&mut walk, look),
            (Wait::Rebuild, Ok(look)) => self.rebuilt(&mut walk, look),
            (Wait::Rebuild, Err(error)) => ends_as(unread(error)),
        };
        let ends = look.as_ref().err().filter(|error| ends_everything(error));
        match (next, ends) {
            (Some(Next::Ended(outcome, None)), Some(error)) => {
                (walk, Some(Next::Ended(outcome, Some(error.clone()))))
            }
            (next, _) => (walk, next),
        }
    }

    fn standing(&self, walk: &Walk, look: &Look) -> CallState {
        standing(self.container.scope, &walk.step, walk.at, look.seen())
    }

    /// What happens after the answer `null`: usually nothing was saved, but sometimes it was.
    fn after_null(&self, walk: &mut Walk, look: Result<&Look, &ApiError>) -> Option<Next> {
        let nothing = Cause::new(NULL);
        failed(match look.map(|look| self.standing(walk, look)) {
            Ok(CallState::Applied) => return self.on_with_next_call(walk),
            Ok(CallState::Unknown(why)) => nothing.and(why),
            Err(error) => nothing.and(Cause::from(error).context(UNREAD)),
            Ok(_) => nothing
                .and("it saved nothing of the request")
                .help("the service rejected a value without naming it"),
        })
    }

    /// The next action after a refused create: the object may exist anyway.
    fn after_refusal(
        &self,
        walk: &mut Walk,
        error: &ApiError,
        look: Option<&Look>,
    ) -> Option<Next> {
        let restores = walk.step.sends.get(walk.at).is_some_and(|call| call.restores);
        let is_met = |step: &Step| {
            look.is_some_and(|look| {
                look.seen().steps.iter().all(|left| left.address != step.address)
            })
        };
        match (look.map(|look| self.standing(walk, look)), walk.resent) {
            // What was to be put back was removed, and somebody else added it as declared.
            (Some(CallState::Applied), _) if restores && is_met(&walk.step) => {
                ends_as(Outcome::Already)
            }
            // The first of two sendings arrived late, and the second was superfluous. Or the object
            // to put back was never removed.
            (Some(CallState::Applied), resent) if resent || restores => {
                self.on_with_next_call(walk)
            }
            // Somebody else, such as another run, made the same object first.
            (Some(CallState::Applied), _) if walk.is_only_call() => ends_as(Outcome::Already),
            // The object was not removed, although the service reported it: nothing to put back.
            (Some(CallState::Other), _) if walk.step.replaces => {
                walk.at = walk.step.sends.len();
                failed(Cause::from(error).context("the old entry was not removed"))
            }
            // The service itself was faster: it adds some entries to a container that this run
            // created.
            _ => match look.and_then(|look| self.made_by_service(walk, look)) {
                Some(step) => {
                    walk.step = step;
                    None
                }
                None => failed(Cause::from(error)),
            },
        }
    }

    /// The step that turns an entry which the service added to a new container into the planned
    /// one.
    fn made_by_service(&self, walk: &Walk, look: &Look) -> Option<Step> {
        self.known.borrow().created?;
        let now = look.plan.steps.iter().find(|now| now.address == walk.step.address)?;
        let is_edit = now.action == Action::Update && walk.step.action == Action::Create;
        (is_edit && now.does_no_more_than(&walk.step)).then(|| now.clone())
    }

    /// What happens to a step that waits for contents.
    fn after_arrival(
        &self,
        walk: &Walk,
        since: Duration,
        look: Result<&Look, &ApiError>,
    ) -> Option<Next> {
        // Who cannot look again waits no longer.
        let passed = match look {
            Err(error) if ends_everything(error) => arrival::PATIENCE,
            _ => self.now().saturating_sub(since),
        };
        let known = self.known.borrow();
        match arrival::then(look.map(|_| &known.live.presence).map_err(Cause::from), passed) {
            arrival::Verdict::Next if walk.is_done() => ends_as(Outcome::Done),
            arrival::Verdict::Next => None,
            arrival::Verdict::Look(_) => Some(await_arrival(since, passed)),
            arrival::Verdict::Failed(cause) => failed(cause),
            arrival::Verdict::Unknown(cause) => ends_as(Outcome::Unknown(cause)),
        }
    }

    fn on_with_next_call(&self, walk: &mut Walk) -> Option<Next> {
        let awaits = walk.step.sends.get(walk.at).is_some_and(|call| call.awaits);
        walk.next_call();
        match awaits {
            true => Some(await_arrival(self.now(), Duration::ZERO)),
            false if walk.is_done() => ends_as(Outcome::Done),
            false => None,
        }
    }

    /// The step planned anew from the present live state.
    fn rebuilt(&self, walk: &mut Walk, look: &Look) -> Option<Next> {
        if let Some(outcome) = self.moved_step(&walk.step, &look.plan, walk.moved) {
            return ends_as(outcome);
        }
        let Some(now) = look.plan.steps.iter().find(|now| now.address == walk.step.address) else {
            return ends_as(Outcome::Already);
        };
        // The new plan may omit calls that succeeded already.
        let left = walk.step.sends.len().saturating_sub(walk.at);
        walk.at = now.sends.len().saturating_sub(left);
        walk.step.sends.clone_from(&now.sends);
        walk.read = look.times.of(walk.step.address.section);
        None
    }

    /// What happens after a lost answer.
    fn after_loss(
        &self,
        walk: &mut Walk,
        error: ApiError,
        since: Duration,
        looks: usize,
        look: Result<&Look, &ApiError>,
    ) -> Option<Next> {
        let request = walk.step.sends[walk.at].request.clone();
        let not_read_back = |why: &dyn std::fmt::Display| {
            let why = format!("{error}; its effect could not be read back: {why}");
            ends_as(Outcome::Unknown(Cause::new(why).transient()))
        };
        let found = match look {
            Ok(look) => self.found(walk, &request, look),
            Err(error) if ends_everything(error) => return not_read_back(error),
            Err(error) => CallState::Unknown(Cause::from(error)),
        };
        // The client has already retried calls that do not go stale.
        let repeatable = request.goes_stale() && walk.attempt <= MAX_RETRIES;
        let history = History { looks, resent: walk.resent, repeatable };
        match then(&request, found, history) {
            Verdict::Next => self.on_with_next_call(walk),
            Verdict::Again => {
                walk.attempt += 1;
                walk.resent |= request.again() != Again::Same;
                let look = look.ok().filter(|_| request.goes_stale());
                look.and_then(|look| self.rebuilt(walk, look))
            }
            Verdict::Look(after) => {
                let due = whole_second(since.saturating_add(after)).max(self.now());
                Some(Next::Waits(due, Wait::Lost { error, since, looks: looks + 1 }))
            }
            Verdict::Failed => failed(Cause::from(&error).transient()),
            Verdict::Other => ends_as(Outcome::ChangedMeanwhile(
                format!("{error}; the live value is neither the old nor the new one").into(),
            )),
            Verdict::Unknown(cause) => not_read_back(&cause),
        }
    }

    /// What a look shows about a lost call. A step that resends a field on request differs in
    /// nothing visible, so it may be sent again.
    fn found(&self, walk: &Walk, request: &Request<Write>, look: &Look) -> CallState {
        let asked = || look.plan.steps.iter().any(|now| walk.step.is_same_change(now));
        match self.standing(walk, look) {
            CallState::Unknown(_) if request.again() == Again::Same && asked() => {
                CallState::NotApplied
            }
            CallState::Applied if !self.is_added_whole(walk) => CallState::Other,
            found => found,
        }
    }

    /// Whether the object added by a replacement has all undeclared fields from before. Somebody
    /// else may have added it from the manifest alone.
    fn is_added_whole(&self, walk: &Walk) -> bool {
        let adds = walk.step.sends.get(walk.at + 1).is_some_and(|call| call.restores);
        let address = &walk.step.address;
        let section = address.section.and_then(|name| self.container.section(name));
        let Some(of) = section.map(|section| section.of).filter(|_| adds) else { return true };
        let known = self.known.borrow();
        let Some(Ok(entries)) = known.live.sections.get(of.section).map(Collection::entries) else {
            return true;
        };
        let is_it =
            |entry: &&LiveEntry| Some(&*of.name(entry.fields.raw())) == address.entry.as_deref();
        entries.iter().find(is_it).is_none_or(|now| walk.step.leaves_rest_unchanged(of, now))
    }

    /// Ends waiting steps when the run must end.
    pub(super) fn give_up(&self, waiting: Vec<(Duration, Walk, Wait)>, ended: &mut Ended<'_>) {
        for (_, walk, wait) in waiting {
            let outcome = match wait {
                Wait::Lost { error, .. } => Outcome::Unknown(
                    Cause::from(&error).context("the run ended before this could be read back"),
                ),
                Wait::Refused(error) => Outcome::Failed(Cause::from(&error)),
                Wait::Arrives { .. } => Outcome::Unknown(
                    Cause::new("the run ended before its contents were imported").transient(),
                ),
                Wait::Unsaid => Outcome::Unknown(Cause::new(NULL).transient()),
                Wait::Rebuild if walk.at == 0 => Outcome::NotStarted,
                Wait::Rebuild => {
                    Outcome::Failed(Cause::new("the run ended before its last call").transient())
                }
            };
            self.end(ended, &walk.step, outcome);
        }
    }
}

/// What a service did that answered a write without the written object.
const NULL: &str = "the service answered with success and `null`";

fn ends_as(outcome: Outcome) -> Option<Next> {
    Some(Next::Ended(outcome, None))
}

fn failed(cause: Cause) -> Option<Next> {
    ends_as(Outcome::Failed(cause))
}
