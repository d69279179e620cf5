//! How a request gets its answer: it waits for its turn, is sent as often as needed and allowed,
//! and its outcome is judged. All clones of a client share one gate, one budget and one end. This
//! is one file because each attempt depends on what the attempts before it left behind.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use futures_util::FutureExt as _;
use http::{HeaderMap, header::DATE};
use tokio::sync::watch;

use super::{
    budget::{Counted, MINUTE, Quota, SendAt},
    client::{Answer, Count, Settings},
    error::{self, ApiError, HTML, Kind, Refusal},
    limit::{Gate, Permit, Place, asked_wait},
    pace::Reply,
    parse::parse,
    quote::Unquotable,
    retry::{self, Decision, MAX_WAIT, Outcome},
    service::Service,
    transport::{
        BodyError, Content, Failure, Phase, READ_IDLE, READ_TIMEOUT, Transport, WRITE_TIMEOUT,
        WireRequest, WireResponse,
    },
};
use crate::{
    operation::{self, Again, KeyFilter, Method, Operation, Read, Request},
    planted::Bug,
    secret::Secrets,
    value::Json,
};

/// The number of different forbidden paths, with no success in between, after which nothing more is
/// sent: the caller has no access at all.
const BLOCKED_AFTER: usize = 3;

/// A margin for clocks: dates of answers are cut to seconds and are some time on their way.
const CLOCKS_DIFFER: Duration = Duration::from_secs(2);

/// What all clones of a client share.
#[derive(Debug)]
pub(super) struct Core {
    service: Service,
    transport: Arc<dyn Transport>,
    pub(super) secrets: Arc<Secrets>,
    pub(super) settings: Settings,
    gate: Gate,
    /// Why nothing more is sent; `None` while requests go out.
    pub(super) end: watch::Sender<Option<End>>,
    tally: Mutex<Tally>,
    /// The service's time when the client's clock began, as learned from answers: a lower bound.
    service_epoch: Mutex<Option<SystemTime>>,
}

/// Why nothing more is sent.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// An answer showed that further requests are useless.
    Error(ApiError),
    /// The caller interrupted the run.
    Interrupted,
}

impl From<End> for Kind {
    fn from(end: End) -> Self {
        match end {
            End::Error(error) => Self::Stopped(error),
            End::Interrupted => Self::Interrupted,
        }
    }
}

/// What belongs to the sending of a request but is not in the request.
#[derive(Default)]
pub(super) struct Delivery {
    pub(super) content: Content,
    /// What no message may quote from an answer.
    pub(super) unquotable: Unquotable,
    /// Set for a request that goes stale: when, and how often it was sent before.
    pub(super) freshness: Option<Freshness>,
    /// When the object that it removes was read, on the client's clock.
    pub(super) read_at: Option<Duration>,
}

/// How long the live values that a request was built from count as current.
#[derive(Clone, Copy, Debug)]
pub struct Freshness {
    /// The end of that time, on the client's clock. A request that had to wait for anything but its
    /// turn is stale even before.
    pub until: Duration,
    /// Which sending of the step this is, from 1.
    pub attempt: u32,
    /// When it was read, on the client's clock.
    pub read_at: Duration,
}

#[derive(Debug, Default)]
struct Tally {
    sent: u64,
    counts: BTreeMap<&'static str, Count>,
    /// The forbidden paths; `None` once any request succeeded.
    forbidden: Option<BTreeSet<String>>,
}

/// Why a request is not sent.
struct TooLate {
    why: Kind,
    /// When it may be sent, on the client's clock, if that is known and concerns no other
    /// operation.
    again_at: Option<Duration>,
}

impl From<Kind> for TooLate {
    fn from(why: Kind) -> Self {
        Self { why, again_at: None }
    }
}

/// The verdict on one sending.
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    asked: Option<Duration>,
    result: Result<Answer, Kind>,
}

impl Core {
    pub(super) fn new(
        service: Service,
        transport: Arc<dyn Transport>,
        secrets: Arc<Secrets>,
        settings: Settings,
    ) -> Self {
        let gate = Gate::new(settings.in_flight);
        let tally = Mutex::new(Tally { forbidden: Some(BTreeSet::new()), ..Tally::default() });
        let (end, service_epoch) = (watch::Sender::new(None), Mutex::default());
        Self { service, transport, secrets, settings, gate, end, tally, service_epoch }
    }

    /// How often each operation was sent so far, by its id.
    pub(super) fn counts(&self) -> BTreeMap<&'static str, Count> {
        self.tally().counts.clone()
    }

    /// Sends `request` as often as needed and allowed. The function is long because each round of
    /// its loop depends on all earlier rounds.
    pub(super) async fn call<E>(
        &self,
        request: &Request<E>,
        delivery: Delivery,
    ) -> Result<Answer, ApiError> {
        let Delivery { content, unquotable, freshness, read_at } = delivery;
        let reads = request.operation.again == Again::Reads;
        let (timeout, idle) =
            if reads { (READ_TIMEOUT, READ_IDLE) } else { (WRITE_TIMEOUT, WRITE_TIMEOUT) };
        let wire = WireRequest {
            method: request.operation.method,
            target: request.target(),
            content,
            unmodified_since: read_at
                .filter(|_| request.operation.conditional)
                .and_then(|read_at| self.unchanged_since(read_at)),
            timeout,
            idle,
        };
        let mut in_doubt = None;
        let mut attempt = freshness.map_or(1, |freshness| freshness.attempt);
        loop {
            let admitted = self.admit(request.operation, attempt, freshness).await;
            let (permit, mut place) = admitted.map_err(|TooLate { why, again_at }| {
                let error = self.error(request, why).in_doubt(in_doubt);
                match again_at {
                    Some(instant) => error.again_at(instant),
                    None => error,
                }
            })?;
            let sent_at = self.settings.clock.now();
            let (Verdict { outcome, asked, result }, quota) =
                self.send_once(request, wire.clone(), &unquotable).await;
            if !reads && outcome.is_ambiguous() {
                in_doubt = Some(sent_at);
            }
            let decision = retry::decide(
                request.again(),
                outcome,
                attempt,
                asked,
                self.settings.random.unit(),
            );
            let answered_at = self.settings.clock.now();
            let is_alone = outcome == Outcome::Throttled && quota.is_some_and(Quota::spares_others);
            let closed = is_alone.then(|| asked.unwrap_or(MINUTE));
            place.hear(Counted { at: answered_at, quota, closed });
            // A limit of one operation says nothing about the load of others.
            if !is_alone {
                let took = answered_at.saturating_sub(sent_at);
                if let Some(heard) = heard(request.operation, outcome, took) {
                    permit.hear(heard);
                }
                self.pause(outcome, asked, decision);
            }
            // Hold the permit until it is known whether this answer ends the run.
            match (decision, result) {
                // The live state may change during the wait.
                (Decision::RetryAfter(wait), Err(kind)) if freshness.is_some() => {
                    let again_at = self.settings.clock.now().saturating_add(wait);
                    return Err(self.error(request, kind).in_doubt(in_doubt).again_at(again_at));
                }
                (Decision::RetryAfter(wait), _) => {
                    drop((permit, place));
                    self.sleep(wait)
                        .await
                        .map_err(|kind| self.error(request, kind).in_doubt(in_doubt))?;
                    attempt += 1;
                }
                (_, Ok(answer)) => {
                    self.note_end(request, None);
                    return Ok(answer);
                }
                (_, Err(kind)) => {
                    let error = self.error(request, kind).in_doubt(in_doubt);
                    self.note_end(request, Some(&error));
                    return Err(error);
                }
            }
        }
    }

    /// Waits until the next request may be sent, and counts it.
    async fn admit(
        &self,
        operation: &'static Operation,
        attempt: u32,
        freshness: Option<Freshness>,
    ) -> Result<(Permit<'_>, Place<'_>), TooLate> {
        let place = self.turn(operation, freshness).await?;
        let permit = tokio::select! {
            biased;
            end = self.ended() => return Err(Kind::from(end).into()),
            permit = self.gate.enter() => permit,
        };
        loop {
            if let Some(end) = &*self.end.borrow() {
                return Err(Kind::from(end.clone()).into());
            }
            let wait = self.gate.pause(self.settings.clock.now());
            if wait.is_zero() {
                break;
            }
            if freshness.is_some() {
                return Err(Kind::Stale.into());
            }
            self.sleep(wait).await?;
        }
        let now = self.settings.clock.now();
        if self.settings.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(Kind::Budget("time").into());
        }
        if freshness.is_some_and(|freshness| now > freshness.until) {
            return Err(Kind::Stale.into());
        }
        let mut tally = self.tally();
        if self.settings.max_requests.is_some_and(|max| tally.sent >= max) {
            return Err(Kind::Budget("number of requests").into());
        }
        tally.sent += 1;
        let count = tally.counts.entry(operation.id).or_default();
        count.calls += 1;
        count.retries += u64::from(attempt > 1);
        count.a_minute = operation.a_minute;
        drop(tally);
        Ok((permit, place))
    }

    /// Waits until the budgets have room for another request. A request that goes stale does not
    /// wait for the user's next window. If only its operation must wait, the error names the time,
    /// because reading again needs no wait.
    async fn turn(
        &self,
        operation: &'static Operation,
        freshness: Option<Freshness>,
    ) -> Result<Place<'_>, TooLate> {
        loop {
            let mut answered = std::pin::pin!(self.gate.answered());
            // From here on no answer is missed.
            answered.as_mut().enable();
            let now = self.settings.clock.now();
            let turn = match self.gate.turn(operation, now) {
                Ok(place) => return Ok(place),
                Err(turn) => turn,
            };
            let wait = match turn {
                SendAt::Now | SendAt::AfterAnswer => std::future::pending().right_future(),
                SendAt::At(_) if freshness.is_some() => return Err(Kind::Stale.into()),
                SendAt::OfOperation(at) if freshness.is_some() => {
                    return Err(TooLate { why: Kind::Stale, again_at: Some(at) });
                }
                SendAt::At(at) | SendAt::OfOperation(at) => {
                    self.sleep(at.saturating_sub(now)).left_future()
                }
            };
            tokio::select! {
                biased;
                end = self.ended() => return Err(Kind::from(end).into()),
                () = answered => {}
                slept = wait => slept?,
            }
        }
    }

    /// The number of requests per minute that the service announced.
    pub(super) fn a_minute(&self) -> Option<u64> {
        self.gate.a_minute()
    }

    /// Sleeps, unless the wait is too long or useless.
    pub(super) async fn sleep(&self, wait: Duration) -> Result<(), Kind> {
        if wait > MAX_WAIT + MAX_WAIT / 10 {
            return Err(Kind::Wait(wait));
        }
        let clock = &self.settings.clock;
        if self
            .settings
            .deadline
            .is_some_and(|deadline| clock.now().saturating_add(wait) > deadline)
        {
            return Err(Kind::Budget("time"));
        }
        tokio::select! {
            biased;
            end = self.ended() => Err(end.into()),
            () = clock.sleep(wait) => Ok(()),
        }
    }

    /// Waits until no further request may be sent, and returns the reason.
    async fn ended(&self) -> End {
        let mut end = self.end.subscribe();
        let end = end.wait_for(Option::is_some).await.ok().and_then(|end| (*end).clone());
        // The sender lives as long as `self`.
        match end {
            Some(end) => end,
            None => std::future::pending().await,
        }
    }

    /// Waits until a request in flight must be given up, and returns why: at the deadline, and for
    /// a read also when the run ends.
    pub(super) async fn given_up(&self, again: Again) -> Kind {
        let clock = &self.settings.clock;
        let deadline = async {
            match self.settings.deadline {
                Some(deadline) => clock.sleep(deadline.saturating_sub(clock.now())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            end = self.ended(), if again == Again::Reads => end.into(),
            () = deadline => Kind::Budget("time"),
        }
    }

    async fn send_once<E>(
        &self,
        request: &Request<E>,
        wire: WireRequest,
        unquotable: &Unquotable,
    ) -> (Verdict, Option<Quota>) {
        let started = self.settings.clock.now();
        let sent = tokio::select! {
            biased;
            sent = self.transport.send(wire) => sent,
            kind = self.given_up(request.operation.again) => {
                return (Verdict { outcome: Outcome::Lost, asked: None, result: Err(kind) }, None);
            }
        };
        let status = sent.as_ref().map_or(0, |response| response.status);
        let id = sent.as_ref().ok().and_then(|response| request_id(&response.headers));
        let duration = self.settings.clock.now().saturating_sub(started).as_millis();
        let operation = request.operation;
        tracing::debug!(operation = operation.id, method = %operation.method, path = request.path(), status, duration, request_id = id, "request");
        match sent {
            Err(error) => {
                let outcome = match (error.failure, error.phase) {
                    (Failure::Tls, _) => Outcome::Untrusted,
                    (Failure::Request | Failure::Offline, _) => Outcome::Refused,
                    (_, Phase::NotSent) => Outcome::NotSent,
                    (_, Phase::MaybeSent) => Outcome::Lost,
                };
                (Verdict { outcome, asked: None, result: Err(Kind::Unanswered(error)) }, None)
            }
            Ok(response) => {
                self.learn_time(&response.headers);
                let quota = Quota::read(&response.headers, self.settings.clock.wall());
                (self.judge(operation, response, request.wanted(), unquotable), quota)
            }
        }
    }

    /// Learns the service's time from an answer.
    fn learn_time(&self, headers: &HeaderMap) {
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
        // It was written before it arrived, and cut to a whole second.
        let epoch = date.and_then(|date| date.checked_sub(self.settings.clock.now()));
        let mut known = self.service_epoch.lock().unwrap_or_else(PoisonError::into_inner);
        *known = (*known).max(epoch);
    }

    /// The time, by the service's clock, since which an object read at `read_at` (on the client's
    /// clock) must not have changed. It is late enough to exclude every change from before the
    /// reading.
    fn unchanged_since(&self, read_at: Duration) -> Option<SystemTime> {
        let known = *self.service_epoch.lock().unwrap_or_else(PoisonError::into_inner);
        known?.checked_add(read_at)?.checked_add(CLOCKS_DIFFER)
    }

    /// What an answer means.
    pub(super) fn judge(
        &self,
        operation: &'static Operation,
        response: WireResponse,
        wanted: &KeyFilter,
        unquotable: &Unquotable,
    ) -> Verdict {
        let asked = asked_wait(response.status, &response.headers, self.settings.clock.wall());
        match response.status {
            200..300 => {
                let status = response.status;
                let request_id = request_id(&response.headers);
                match content(operation, response, wanted) {
                    Ok(answer) => {
                        Verdict { outcome: Outcome::Success, asked: None, result: Ok(answer) }
                    }
                    Err((outcome, why)) => Verdict {
                        outcome,
                        asked: None,
                        result: Err(Kind::Malformed { status, why, request_id }),
                    },
                }
            }
            // Nothing to do: the project had the star, or was no fork.
            304 if operation.may_be_done => {
                let answer = Answer { status: 304, headers: response.headers, body: Json::Null };
                Verdict { outcome: Outcome::Success, asked: None, result: Ok(answer) }
            }
            status => {
                let refusal = self.refusal(&response, unquotable);
                let outcome = match status {
                    429 => Outcome::Throttled,
                    409 if refusal.message.to_ascii_lowercase().contains("resource lock") => {
                        Outcome::Locked
                    }
                    // Another request created the same topic meanwhile; nothing was saved.
                    400 if refusal.message.contains("PG::UniqueViolation")
                        && refusal.message.contains("index_topics_on") =>
                    {
                        Outcome::Locked
                    }
                    _ if retry::is_faulty(status) => Outcome::Faulty,
                    _ => Outcome::Refused,
                };
                let asked =
                    asked.filter(|_| matches!(outcome, Outcome::Throttled | Outcome::Faulty));
                Verdict { outcome, asked, result: Err(Kind::Refused(refusal)) }
            }
        }
    }

    fn refusal(&self, response: &WireResponse, unquotable: &Unquotable) -> Refusal {
        let status = response.status;
        let body = response.body.as_deref().unwrap_or_default();
        let (message, absence) =
            error::message(status, body, |text| unquotable.redact(&self.secrets.redact(text)));
        let location = response
            .headers
            .get("location")
            .and_then(|v| v.to_str().ok())
            .filter(|_| (300..400).contains(&status));
        let moved_to = location.and_then(|location| self.service.project_at(location));
        let elsewhere = location.is_some() && moved_to.is_none();
        Refusal {
            status,
            message,
            request_id: request_id(&response.headers),
            absence,
            moved_to,
            elsewhere,
        }
    }

    /// Keeps the gate closed for as long as an answer asks.
    fn pause(&self, outcome: Outcome, asked: Option<Duration>, decision: Decision) {
        let wait = match (outcome, asked, decision) {
            (Outcome::Throttled, _, Decision::RetryAfter(wait)) => Some(wait),
            _ => asked,
        };
        if let Some(wait) = wait {
            self.gate.pause_until(self.settings.clock.now().saturating_add(wait));
        }
    }

    /// Ends the run on a 401, and on the third forbidden path without any success. Requests for the
    /// token's user and for the token itself do not count: the service answers the first for tokens
    /// without any other right, and may refuse the second for tokens that it accepts.
    fn note_end<E>(&self, request: &Request<E>, error: Option<&ApiError>) {
        let status = error.map(ApiError::status);
        let of_token = request.operation == operation::OWN_TOKEN.row();
        let refused = status == Some(Some(401)) && !request.operation.denies_with_401;
        let mut end = refused && !of_token && !Bug::GoOnAfterRefusal.is_planted();
        if request.operation != operation::CURRENT_USER.row() && !of_token {
            let forbidden = &mut self.tally().forbidden;
            match (status, forbidden.as_mut()) {
                (Some(Some(403)), Some(paths)) => {
                    paths.insert(request.path());
                    end |= paths.len() >= BLOCKED_AFTER;
                }
                (None | Some(Some(404)), _) => *forbidden = None,
                _ => {}
            }
        }
        if let Some(error) = error.filter(|_| end) {
            self.end_with(End::Error(error.clone()));
        }
    }

    /// Sends nothing more. The first reason stays.
    pub(super) fn end_with(&self, end: End) {
        self.end.send_if_modified(|present| {
            let first = present.is_none();
            if first {
                *present = Some(end);
            }
            first
        });
    }

    pub(super) fn error<E>(&self, request: &Request<E>, kind: Kind) -> ApiError {
        ApiError::new(request.operation, self.secrets.redact(&request.path()), kind)
    }

    pub(super) fn nameless(&self, request: &Request<Read>, answer: &Answer) -> ApiError {
        self.malformed(request, answer, "an object without its identity")
    }

    pub(super) fn malformed(
        &self,
        request: &Request<Read>,
        answer: &Answer,
        why: &'static str,
    ) -> ApiError {
        self.error(
            request,
            Kind::Malformed { status: answer.status, why, request_id: request_id(&answer.headers) },
        )
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the outcome of a request shows about the service's load, if anything.
const fn heard(operation: &'static Operation, outcome: Outcome, took: Duration) -> Option<Reply> {
    match outcome {
        Outcome::Success | Outcome::Refused => Some(Reply::Answered(operation.id, took)),
        Outcome::Throttled => Some(Reply::Throttled),
        Outcome::NotSent | Outcome::Lost | Outcome::Faulty => Some(Reply::Failed),
        Outcome::Untrusted | Outcome::Locked | Outcome::Unreadable | Outcome::Oversized => None,
    }
}

/// The content of a successful answer, or what is wrong with it.
fn content(
    operation: &Operation,
    response: WireResponse,
    wanted: &KeyFilter,
) -> Result<Answer, (Outcome, &'static str)> {
    let WireResponse { status, headers, body } = response;
    let read = operation.method == Method::Get;
    let body = body.map_err(|e| match e {
        BodyError::Cut => (Outcome::Unreadable, "a truncated body"),
        BodyError::TooLarge => (Outcome::Oversized, "a body of more than 32 MiB"),
    })?;
    if read && !matches!(status, 200 | 204) {
        return Err((Outcome::Unreadable, "an unexpected status"));
    }
    let may_be_empty = matches!(status, 202 | 204 | 205) || operation.method == Method::Delete;
    if body.is_empty() && may_be_empty {
        return Ok(Answer { status, headers, body: Json::Null });
    }
    if !has_type(&headers, "application/json") {
        let html = has_type(&headers, "text/html");
        return Err((Outcome::Unreadable, if html { HTML } else { "something other than JSON" }));
    }
    let body = parse(&body, wanted).ok_or((Outcome::Unreadable, "broken JSON"))?;
    // The body of a write's answer is used only if it is an object; anything else does not undo the
    // write.
    if read && operation.answer == operation::Answer::One && !(body.is_object() || body.is_null()) {
        return Err((Outcome::Unreadable, "something other than an object"));
    }
    Ok(Answer { status, headers, body })
}

fn has_type(headers: &HeaderMap, expected: &str) -> bool {
    let kind =
        headers.get(http::header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(expected))
}

/// The request's id in the service's log, if it looks like one.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-request-id")?.to_str().ok()?;
    let plausible = !id.is_empty()
        && id.len() <= 128
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b));
    plausible.then(|| id.to_owned())
}
