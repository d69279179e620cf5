//! Sends a request: waits until it may be sent, retries as allowed, and [judges](super::judge) the
//! outcome. All clones of a client share one gate, one budget and one end. This is one file because
//! each attempt depends on the results of the attempts before it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, SystemTime},
};

use futures_util::FutureExt as _;
use http::HeaderMap;
use tokio::sync::watch;

use super::{
    Result,
    budget::{Completion, MINUTE, Quota, SendAt},
    client::{ApiResponse, CallCount, ClientSettings},
    error::{ApiError, ErrorKind},
    judge::{Judgement, request_id},
    limit::{BudgetSlot, Gate, Permit, header_date},
    pace::Reply,
    quote::QuoteRedactor,
    retry::{self, MAX_WAIT, SendOutcome},
    service::ServiceAddress,
    transport::{
        EncodedBody, READ_IDLE, READ_TIMEOUT, RequestPhase, Transport, TransportError,
        WRITE_TIMEOUT, WireRequest,
    },
};
use crate::{
    lock,
    operation::{self, Operation, Read, Request, RetrySafety},
    planted::Bug,
    secret::Secrets,
};

/// The number of different forbidden paths, with no success in between, after which nothing more is
/// sent: the caller has no access at all.
const MAX_FORBIDDEN_PATHS: usize = 3;

/// Margin for dates in answers: they are truncated to seconds and arrive late.
const CLOCK_MARGIN: Duration = Duration::from_secs(2);

/// The state that all clones of a client share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) service: ServiceAddress,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) secrets: Arc<Secrets>,
    pub(super) settings: ClientSettings,
    pub(super) gate: Gate,
    /// Why nothing more is sent; `None` while requests go out.
    pub(super) end_reason: watch::Sender<Option<ErrorKind>>,
    pub(super) tally: Mutex<Tally>,
    /// A lower bound of the service's time at the zero of the client's clock, learned from answers.
    pub(super) service_epoch: Mutex<Option<SystemTime>>,
}

/// The inputs of a call that the request itself does not contain.
#[derive(Default)]
pub(super) struct Delivery {
    pub(super) body: EncodedBody,
    /// The values that no message may quote from an answer.
    pub(super) unquotable: QuoteRedactor,
    /// For a request that can go stale: when it does, and the number of this attempt.
    pub(super) freshness: Option<Freshness>,
    /// When the object that it removes was read, on the client's clock.
    pub(super) read_at: Option<Duration>,
}

/// How long the live values that a request was built from count as current.
#[derive(Clone, Copy, Debug)]
pub struct Freshness {
    /// The end of that time, on the client's clock. A request that has to wait because of a limit
    /// of the service is stale even earlier.
    pub until: Duration,
    /// Which sending of the step this is, from 1.
    pub attempt: u32,
    /// When the live values were read, on the client's clock.
    pub read_at: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    request_count: u64,
    counts: BTreeMap<&'static str, CallCount>,
    /// The forbidden paths, until any request succeeds.
    forbidden_paths: BTreeSet<String>,
    has_succeeded: bool,
}

impl Core {
    /// How often each operation was sent so far, by its id.
    pub(super) fn counts(&self) -> BTreeMap<&'static str, CallCount> {
        self.tally().counts.clone()
    }

    /// Sends `request` as often as needed and allowed.
    pub(super) async fn call<E>(
        &self,
        request: &Request<E>,
        delivery: Delivery,
    ) -> Result<ApiResponse> {
        let Delivery { body: content, unquotable, freshness, read_at } = delivery;
        let wire = self.encode_request(request, content, read_at);
        let mut in_doubt = None;
        let mut attempt = freshness.map_or(1, |freshness| freshness.attempt);
        loop {
            let admitted = self.admit(request.operation, attempt, freshness).await;
            let (permit, mut slot) =
                admitted.map_err(|why| self.error(request, why).with_times(in_doubt, None))?;
            let sent_at = self.now();
            let Judgement { outcome, retry_after, quota, result } =
                self.send_once(request, wire.clone(), &unquotable).await;
            if request.operation.again != RetrySafety::Reads && outcome.is_ambiguous() {
                in_doubt = Some(sent_at);
            }
            let jitter = self.settings.random.fraction();
            let wait =
                retry::retry_delay(request.retry_safety(), outcome, attempt, retry_after, jitter);
            let answered_at = self.now();
            let is_alone = outcome == SendOutcome::Throttled
                && quota.is_some_and(Quota::has_remaining_requests);
            let closed = is_alone.then(|| retry_after.unwrap_or(MINUTE));
            slot.set_completion(Completion { ended_at: answered_at, quota, closed_for: closed });
            // A limit of one operation does not show the load of others.
            if !is_alone {
                let took = answered_at.saturating_sub(sent_at);
                if let Some(reply) = load_signal(request.operation, outcome, took) {
                    permit.record(reply);
                }
                self.pause_gate(wait.filter(|_| outcome == SendOutcome::Throttled).or(retry_after));
            }
            // Hold the permit until it is known whether this answer ends the run.
            let result =
                result.map_err(|kind| self.error(request, kind).with_times(in_doubt, None));
            let Some(wait) = wait else {
                self.end_after_refusals(request, result.as_ref().err());
                return result;
            };
            // The live state may change during the wait.
            if let (Err(error), true) = (result, freshness.is_some()) {
                return Err(error.with_times(in_doubt, Some(self.now().saturating_add(wait))));
            }
            drop((permit, slot));
            let slept = self.sleep(wait).await;
            slept.map_err(|kind| self.error(request, kind).with_times(in_doubt, None))?;
            attempt += 1;
        }
    }

    /// The request in the form in which it is sent.
    fn encode_request<E>(
        &self,
        request: &Request<E>,
        content: EncodedBody,
        read_at: Option<Duration>,
    ) -> WireRequest {
        let (timeout, idle_timeout) = match request.operation.again {
            RetrySafety::Reads => (READ_TIMEOUT, READ_IDLE),
            _ => (WRITE_TIMEOUT, WRITE_TIMEOUT),
        };
        let unmodified_since = read_at
            .filter(|_| request.operation.conditional)
            .and_then(|read_at| self.change_bound(read_at));
        let (method, target) = (request.operation.method, request.target());
        WireRequest {
            method,
            target,
            body: content,
            if_unmodified_since: unmodified_since,
            timeout,
            idle_timeout,
        }
    }

    /// Waits until the next request may be sent, and counts it.
    async fn admit(
        &self,
        operation: &'static Operation,
        attempt: u32,
        freshness: Option<Freshness>,
    ) -> Result<(Permit<'_>, BudgetSlot<'_>), ErrorKind> {
        let slot = self.wait_for_slot(operation, freshness).await?;
        let permit = tokio::select! {
            biased;
            end = self.wait_for_end_reason() => return Err(end),
            permit = self.gate.enter() => permit,
        };
        loop {
            if let Some(end) = &*self.end_reason.borrow() {
                return Err(end.clone());
            }
            let wait = self.gate.remaining_pause(self.now());
            if wait.is_zero() {
                break;
            }
            if freshness.is_some() {
                return Err(ErrorKind::Stale(None));
            }
            self.sleep(wait).await?;
        }
        let now = self.now();
        if self.settings.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(ErrorKind::Budget("time"));
        }
        if freshness.is_some_and(|freshness| now > freshness.until) {
            return Err(ErrorKind::Stale(None));
        }
        let mut tally = self.tally();
        if self.settings.max_requests.is_some_and(|max| tally.request_count >= max) {
            return Err(ErrorKind::Budget("number of requests"));
        }
        tally.request_count += 1;
        let count = tally.counts.entry(operation.id).or_default();
        count.calls += 1;
        count.retries += u64::from(attempt > 1);
        count.requests_per_minute = operation.a_minute;
        drop(tally);
        Ok((permit, slot))
    }

    /// Waits until the budgets allow another request. A request that can go stale does not wait for
    /// the user's next window. If only its operation must wait, the error contains the time,
    /// because reading again needs no wait.
    async fn wait_for_slot(
        &self,
        operation: &'static Operation,
        freshness: Option<Freshness>,
    ) -> Result<BudgetSlot<'_>, ErrorKind> {
        loop {
            let mut answered = std::pin::pin!(self.gate.next_answer());
            // Register before checking, so that no answer is missed.
            answered.as_mut().enable();
            let now = self.now();
            let turn = match self.gate.try_take_slot(operation, now) {
                Ok(slot) => return Ok(slot),
                Err(turn) => turn,
            };
            let wait = match turn {
                SendAt::AfterAnswer => std::future::pending().right_future(),
                SendAt::At(_) if freshness.is_some() => return Err(ErrorKind::Stale(None)),
                SendAt::OperationAt(at) if freshness.is_some() => {
                    return Err(ErrorKind::Stale(Some(at)));
                }
                SendAt::At(at) | SendAt::OperationAt(at) => {
                    self.sleep(at.saturating_sub(now)).left_future()
                }
            };
            tokio::select! {
                biased;
                end = self.wait_for_end_reason() => return Err(end),
                () = answered => {}
                slept = wait => slept?,
            }
        }
    }

    fn now(&self) -> Duration {
        self.settings.clock.now()
    }

    /// Sleeps, unless the wait is too long or useless.
    pub(super) async fn sleep(&self, wait: Duration) -> Result<(), ErrorKind> {
        if wait > MAX_WAIT + MAX_WAIT / 10 {
            return Err(ErrorKind::Wait(wait));
        }
        let end = self.now().saturating_add(wait);
        if self.settings.deadline.is_some_and(|deadline| end > deadline) {
            return Err(ErrorKind::Budget("time"));
        }
        tokio::select! {
            biased;
            end = self.wait_for_end_reason() => Err(end),
            () = self.settings.clock.sleep(wait) => Ok(()),
        }
    }

    /// Waits until no further request may be sent, and returns the reason.
    async fn wait_for_end_reason(&self) -> ErrorKind {
        let mut end = self.end_reason.subscribe();
        let end = end.wait_for(Option::is_some).await.ok().and_then(|end| (*end).clone());
        // The sender lives as long as `self`.
        match end {
            Some(end) => end,
            None => std::future::pending().await,
        }
    }

    /// Waits until a request in flight must be given up, and returns why: at the deadline, and for
    /// a read also when the run ends.
    pub(super) async fn wait_for_abort(&self, retry_safety: RetrySafety) -> ErrorKind {
        let deadline = async {
            match self.settings.deadline {
                Some(deadline) => {
                    self.settings.clock.sleep(deadline.saturating_sub(self.now())).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            end = self.wait_for_end_reason(), if retry_safety == RetrySafety::Reads => end,
            () = deadline => ErrorKind::Budget("time"),
        }
    }

    async fn send_once<E>(
        &self,
        request: &Request<E>,
        wire: WireRequest,
        unquotable: &QuoteRedactor,
    ) -> Judgement {
        let started = self.now();
        let sending_result = tokio::select! {
            biased;
            sent = self.transport.send(wire) => sent,
            why = self.wait_for_abort(request.operation.again) => {
                return Judgement::unanswered(SendOutcome::Lost, why);
            }
        };
        let status = sending_result.as_ref().map_or(0, |response| response.status);
        let duration = self.now().saturating_sub(started).as_millis();
        let operation = request.operation;
        // The arguments are evaluated only if this level is logged.
        tracing::debug!(
            operation = operation.id, method = %operation.method, path = request.path(), status, duration,
            request_id = sending_result.as_ref().ok().and_then(|response| request_id(&response.headers)),
            "request"
        );
        match sending_result {
            Err(error) => {
                let outcome = match (error.failure, error.phase) {
                    (TransportError::Tls, _) => SendOutcome::Untrusted,
                    (TransportError::Request | TransportError::Offline, _) => SendOutcome::Refused,
                    (_, RequestPhase::NotSent) => SendOutcome::NotSent,
                    (_, RequestPhase::MaybeSent) => SendOutcome::Lost,
                };
                Judgement::unanswered(outcome, ErrorKind::Unanswered(error))
            }
            Ok(response) => {
                self.learn_service_time(&response.headers);
                self.judge(operation, response, request.key_filter(), unquotable)
            }
        }
    }

    /// Learns the service's time from an answer.
    fn learn_service_time(&self, headers: &HeaderMap) {
        // The date is older than the arrival, and truncated to a second: a lower bound.
        let epoch = header_date(headers, "date").and_then(|date| date.checked_sub(self.now()));
        let mut latest = lock(&self.service_epoch);
        *latest = (*latest).max(epoch);
    }

    /// Returns the time, by the service's clock, after which an object that was read at `read_at`
    /// (client's clock) must not have changed. It is late enough that changes from before the read
    /// do not count.
    fn change_bound(&self, read_at: Duration) -> Option<SystemTime> {
        let epoch = *lock(&self.service_epoch);
        epoch?.checked_add(read_at)?.checked_add(CLOCK_MARGIN)
    }

    /// Keeps the gate closed for as long as an answer asks.
    fn pause_gate(&self, wait: Option<Duration>) {
        if let Some(wait) = wait {
            self.gate.pause_until(self.now().saturating_add(wait));
        }
    }

    /// Ends the run on a 401, and on the third forbidden path without any success. Requests for the
    /// token's user and for the token itself do not count: the service answers the first for tokens
    /// without any other right, and may refuse the second for tokens that it accepts.
    fn end_after_refusals<E>(&self, request: &Request<E>, error: Option<&ApiError>) {
        let status = error.map(ApiError::status);
        let is_token_request = request.operation == operation::OWN_TOKEN.row();
        let refused = status == Some(Some(401)) && !request.operation.denies_with_401;
        let mut must_end = refused && !is_token_request && !Bug::GoOnAfterRefusal.is_planted();
        if request.operation != operation::CURRENT_USER.row() && !is_token_request {
            let mut tally = self.tally();
            match status {
                Some(Some(403)) if !tally.has_succeeded => {
                    tally.forbidden_paths.insert(request.path());
                    must_end |= tally.forbidden_paths.len() >= MAX_FORBIDDEN_PATHS;
                }
                None | Some(Some(404)) => tally.has_succeeded = true,
                _ => {}
            }
        }
        if let Some(error) = error.filter(|_| must_end) {
            self.end_run(ErrorKind::Stopped(error.clone()));
        }
    }

    /// Sends nothing more. The first reason stays.
    pub(super) fn end_run(&self, end: ErrorKind) {
        self.end_reason.send_if_modified(|present| {
            let is_first = present.is_none();
            if is_first {
                *present = Some(end);
            }
            is_first
        });
    }

    pub(super) fn error<E>(&self, request: &Request<E>, kind: ErrorKind) -> ApiError {
        ApiError::new(request.operation, self.secrets.redact(&request.path()), kind)
    }

    pub(super) fn malformed(
        &self,
        request: &Request<Read>,
        answer: &ApiResponse,
        why: &'static str,
    ) -> ApiError {
        let (status, request_id) = (answer.status, request_id(&answer.headers));
        self.error(request, ErrorKind::Malformed { status, why, request_id })
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }
}

/// The signal about the service's load in the outcome of a request, if any.
const fn load_signal(
    operation: &'static Operation,
    outcome: SendOutcome,
    response_time: Duration,
) -> Option<Reply> {
    match outcome {
        SendOutcome::Success | SendOutcome::Refused => {
            Some(Reply::Answered(operation.id, response_time))
        }
        SendOutcome::Throttled => Some(Reply::Throttled),
        SendOutcome::NotSent | SendOutcome::Lost | SendOutcome::Faulty => Some(Reply::Failed),
        SendOutcome::Untrusted
        | SendOutcome::Locked
        | SendOutcome::Unreadable
        | SendOutcome::Oversized => None,
    }
}
