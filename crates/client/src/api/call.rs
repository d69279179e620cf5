//! Sends a request: waits until the request may be sent, [classifies](super::judge) the response,
//! and retries as allowed. All clones of a client share one gate, one budget and one end of the
//! run. All this code is in one file because each attempt depends on the results of earlier
//! attempts.

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
    budget::{Completion, MINUTE, Quota, SendTime},
    client::{ApiResponse, CallCount, ClientSettings},
    error::{ApiError, ErrorKind, RunLimit},
    judge::{SendVerdict, request_id},
    limit::{BudgetSlot, Gate, Permit, header_date},
    pace::PaceOutcome,
    quote::QuoteRedactor,
    retry::{self, MAX_WAIT, SendOutcome},
    service::ServiceAddress,
    transport::{
        EncodedBody, READ_IDLE_TIMEOUT, READ_TIMEOUT, RequestPhase, SendErrorKind, Transport,
        WRITE_TIMEOUT, WireRequest,
    },
};
use crate::{
    lock,
    operation::{self, Operation, Read, Request, RetrySafety},
    planted::Bug,
    secret::Secrets,
};

/// The number of different forbidden paths after which nothing more is sent, if no request
/// succeeded. The caller then has no access at all.
const MAX_FORBIDDEN_PATHS: usize = 3;

/// The margin for dates in responses. Such dates are truncated to seconds, and arrive late.
const CLOCK_MARGIN: Duration = Duration::from_secs(2);

/// The state that all clones of a client share.
#[derive(Debug)]
pub(super) struct ClientCore {
    pub(super) service: ServiceAddress,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) secrets: Arc<Secrets>,
    pub(super) settings: ClientSettings,
    pub(super) gate: Gate,
    /// Why the run ended; `None` while requests may be sent.
    pub(super) end_reason: watch::Sender<Option<ErrorKind>>,
    pub(super) tally: Mutex<RequestTally>,
    /// A lower bound of the service's time when the client's clock was at zero, learned from
    /// responses.
    pub(super) service_epoch: Mutex<Option<SystemTime>>,
}

/// The inputs of a call that the request itself does not contain.
#[derive(Default)]
pub(super) struct SendInputs {
    pub(super) body: EncodedBody,
    /// Redacts the sensitive values of the body in messages of the response.
    pub(super) redactor: QuoteRedactor,
    /// The age of the live values; `None` for a request that cannot become stale.
    pub(super) freshness: Option<Freshness>,
    /// When the live state that the request was built from was read, on the client's clock.
    pub(super) read_at: Option<Duration>,
}

/// The age of the live values that a request was built from.
#[derive(Clone, Copy, Debug)]
pub struct Freshness {
    /// When the values become too old, on the client's clock. A request that must wait for a limit
    /// of the service is stale at once.
    pub expires_at: Duration,
    /// The number of this attempt to send the request, counted from 1.
    pub attempt: u32,
    /// When the live values were read, on the client's clock.
    pub read_at: Duration,
}

#[derive(Debug, Default)]
pub(super) struct RequestTally {
    request_count: u64,
    counts: BTreeMap<&'static str, CallCount>,
    /// The paths that the service answered with 403. Only collected until any request succeeds.
    forbidden_paths: BTreeSet<String>,
    has_succeeded: bool,
}

impl ClientCore {
    /// The number of requests of each operation so far, by its id.
    pub(super) fn counts(&self) -> BTreeMap<&'static str, CallCount> {
        self.tally().counts.clone()
    }

    /// Sends `request`, with retries as allowed.
    pub(super) async fn call<E>(
        &self,
        request: &Request<E>,
        inputs: SendInputs,
    ) -> Result<ApiResponse> {
        let SendInputs { body, redactor: quote_redactor, freshness, read_at } = inputs;
        let wire_request = self.encode_request(request, body, read_at);
        let mut in_doubt_since = None;
        let mut attempt = freshness.map_or(1, |freshness| freshness.attempt);
        loop {
            let admission = self.wait_for_admission(request.operation, attempt, freshness).await;
            let (permit, mut slot) = admission.map_err(|error_kind| {
                self.error(request, error_kind).with_times(in_doubt_since, None)
            })?;
            let sent_at = self.now();
            let SendVerdict { outcome, retry_after, quota, result } =
                self.send_once(request, wire_request.clone(), &quote_redactor).await;
            if request.operation.retry_safety != RetrySafety::Reads && outcome.is_ambiguous() {
                in_doubt_since = Some(sent_at);
            }
            let jitter = self.settings.random.fraction();
            let wait =
                retry::retry_delay(request.retry_safety(), outcome, attempt, retry_after, jitter);
            let answered_at = self.now();
            let is_operation_limit = outcome == SendOutcome::Throttled
                && quota.is_some_and(Quota::has_remaining_requests);
            let closed_for = is_operation_limit.then(|| retry_after.unwrap_or(MINUTE));
            slot.set_completion(Completion {
                ended_at: answered_at,
                quota,
                operation_closed_for: closed_for,
            });
            // A limit of one operation does not mean that the service is busy: do not slow down
            // other operations.
            if !is_operation_limit {
                let response_time = answered_at.saturating_sub(sent_at);
                if let Some(pace_outcome) =
                    to_pace_outcome(request.operation, outcome, response_time)
                {
                    permit.record(pace_outcome);
                }
                self.pause_gate(wait.filter(|_| outcome == SendOutcome::Throttled).or(retry_after));
            }
            // Hold the permit until it is clear whether this response ends the run.
            let result =
                result.map_err(|kind| self.error(request, kind).with_times(in_doubt_since, None));
            let Some(wait) = wait else {
                self.end_if_refused(request, result.as_ref().err());
                return result;
            };
            // Fail instead of waiting: the live state may change meanwhile.
            if let (Err(error), true) = (&result, freshness.is_some()) {
                let retry_at = self.now().saturating_add(wait);
                return Err(error.clone().with_times(in_doubt_since, Some(retry_at)));
            }
            drop((permit, slot));
            self.sleep(wait).await.map_err(|kind| {
                let previous_failure = result.err().map(|error| error.kind().clone());
                let kind = kind.after_failure(previous_failure);
                self.error(request, kind).with_times(in_doubt_since, None)
            })?;
            attempt += 1;
        }
    }

    /// Encodes the request for the transport.
    fn encode_request<E>(
        &self,
        request: &Request<E>,
        body: EncodedBody,
        read_at: Option<Duration>,
    ) -> WireRequest {
        let (timeout, idle_timeout) = match request.operation.retry_safety {
            RetrySafety::Reads => (READ_TIMEOUT, READ_IDLE_TIMEOUT),
            _ => (WRITE_TIMEOUT, WRITE_TIMEOUT),
        };
        let unmodified_since = read_at
            .filter(|_| request.operation.is_conditional)
            .and_then(|read_at| self.unmodified_since(read_at));
        let (method, target) = (request.operation.method, request.path_and_query());
        WireRequest {
            method,
            target,
            body,
            if_unmodified_since: unmodified_since,
            timeout,
            idle_timeout,
        }
    }

    /// Waits until the request may be sent, and counts the request.
    async fn wait_for_admission(
        &self,
        operation: &'static Operation,
        attempt: u32,
        freshness: Option<Freshness>,
    ) -> Result<(Permit<'_>, BudgetSlot<'_>), ErrorKind> {
        let slot = self.wait_for_slot(operation, freshness).await?;
        let permit = tokio::select! {
            biased;
            end = self.wait_for_end_reason() => return Err(end),
            permit = self.gate.acquire_permit() => permit,
        };
        loop {
            if let Some(reason) = &*self.end_reason.borrow() {
                return Err(reason.clone());
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
            return Err(ErrorKind::OverBudget(RunLimit::Time, None));
        }
        if freshness.is_some_and(|freshness| now > freshness.expires_at) {
            return Err(ErrorKind::Stale(None));
        }
        let mut tally = self.tally();
        if self.settings.max_requests.is_some_and(|max| tally.request_count >= max) {
            return Err(ErrorKind::OverBudget(RunLimit::Requests, None));
        }
        tally.request_count += 1;
        let count = tally.counts.entry(operation.id).or_default();
        count.calls += 1;
        count.retries += u64::from(attempt > 1);
        count.requests_per_minute = operation.requests_per_minute;
        drop(tally);
        Ok((permit, slot))
    }

    /// Waits until the budgets allow another request. A request that can become stale fails
    /// instead. If only the operation of the request must wait, the error contains the time of the
    /// next attempt. The caller can read the live state again meanwhile.
    async fn wait_for_slot(
        &self,
        operation: &'static Operation,
        freshness: Option<Freshness>,
    ) -> Result<BudgetSlot<'_>, ErrorKind> {
        loop {
            let mut next_response = std::pin::pin!(self.gate.next_response());
            // Register before checking, so that no response is missed.
            next_response.as_mut().enable();
            let now = self.now();
            let send_at = match self.gate.try_reserve_slot(operation, now) {
                Ok(slot) => return Ok(slot),
                Err(send_at) => send_at,
            };
            let wait = match send_at {
                SendTime::AfterResponse => std::future::pending().right_future(),
                SendTime::At(_) if freshness.is_some() => return Err(ErrorKind::Stale(None)),
                SendTime::OperationAt(instant) if freshness.is_some() => {
                    return Err(ErrorKind::Stale(Some(instant)));
                }
                SendTime::At(send_time) | SendTime::OperationAt(send_time) => {
                    self.sleep(send_time.saturating_sub(now)).left_future()
                }
            };
            tokio::select! {
                biased;
                end = self.wait_for_end_reason() => return Err(end),
                () = next_response => {}
                slept = wait => slept?,
            }
        }
    }

    fn now(&self) -> Duration {
        self.settings.clock.now()
    }

    /// Sleeps. Fails if the wait is too long or exceeds the deadline, or if the run ends.
    pub(super) async fn sleep(&self, wait: Duration) -> Result<(), ErrorKind> {
        if wait > MAX_WAIT + MAX_WAIT / 10 {
            return Err(ErrorKind::WaitTooLong(wait));
        }
        let wake_at = self.now().saturating_add(wait);
        if self.settings.deadline.is_some_and(|deadline| wake_at > deadline) {
            return Err(ErrorKind::OverBudget(RunLimit::Time, None));
        }
        tokio::select! {
            biased;
            end = self.wait_for_end_reason() => Err(end),
            () = self.settings.clock.sleep(wait) => Ok(()),
        }
    }

    /// Waits until no further request may be sent, and returns the reason.
    async fn wait_for_end_reason(&self) -> ErrorKind {
        let mut reasons = self.end_reason.subscribe();
        let reason = reasons.wait_for(Option::is_some).await.ok().and_then(|end| (*end).clone());
        // `None` does not occur, because the sender lives as long as `self`.
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }

    /// Waits until a request in flight must be aborted, and returns the reason. Every request is
    /// aborted at the deadline. A read is also aborted when the run ends.
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
            () = deadline => ErrorKind::OverBudget(RunLimit::Time, None),
        }
    }

    async fn send_once<E>(
        &self,
        request: &Request<E>,
        wire_request: WireRequest,
        redactor: &QuoteRedactor,
    ) -> SendVerdict {
        let sent_at = self.now();
        let sending_result = tokio::select! {
            biased;
            sent = self.transport.send(wire_request) => sent,
            why = self.wait_for_abort(request.operation.retry_safety) => {
                return SendVerdict::unanswered(SendOutcome::Lost, why);
            }
        };
        let status = sending_result.as_ref().map_or(0, |response| response.status);
        let duration = self.now().saturating_sub(sent_at).as_millis();
        let operation = request.operation;
        // The arguments are evaluated only if this level is logged.
        tracing::debug!(
            operation = operation.id, method = %operation.method, path = request.path(), status, duration,
            request_id = sending_result.as_ref().ok().and_then(|response| request_id(&response.headers)),
            "request"
        );
        match sending_result {
            Err(error) => {
                let outcome = match (error.kind, error.phase) {
                    (SendErrorKind::Tls, _) => SendOutcome::Untrusted,
                    (SendErrorKind::InvalidRequest | SendErrorKind::Offline, _) => {
                        SendOutcome::Refused
                    }
                    (_, RequestPhase::NotSent) => SendOutcome::NotSent,
                    (_, RequestPhase::MaybeSent) => SendOutcome::Lost,
                };
                SendVerdict::unanswered(outcome, ErrorKind::Unanswered(error))
            }
            Ok(response) => {
                self.learn_service_time(&response.headers);
                self.classify_response(operation, response, request.key_filter(), redactor)
            }
        }
    }

    /// Learns the service's time from a response.
    fn learn_service_time(&self, headers: &HeaderMap) {
        // The date is a lower bound, because it is truncated to a second, and earlier than the
        // arrival of the response.
        let epoch = header_date(headers, "date").and_then(|date| date.checked_sub(self.now()));
        let mut latest = lock(&self.service_epoch);
        *latest = (*latest).max(epoch);
    }

    /// Converts `read_at` to the service's clock, for the header `If-Unmodified-Since`. Adds a margin,
    /// so that the service ignores changes from before the read.
    fn unmodified_since(&self, read_at: Duration) -> Option<SystemTime> {
        let epoch = *lock(&self.service_epoch);
        epoch?.checked_add(read_at)?.checked_add(CLOCK_MARGIN)
    }

    /// Closes the gate for `wait`.
    fn pause_gate(&self, wait: Option<Duration>) {
        if let Some(wait) = wait {
            self.gate.pause_until(self.now().saturating_add(wait));
        }
    }

    /// Ends the run on a 401, and on the third forbidden path without any success. A request for
    /// the token's user does not count as a success, because it needs no rights. A request for the
    /// token itself never ends the run, because the service may refuse it for a valid token.
    fn end_if_refused<E>(&self, request: &Request<E>, error: Option<&ApiError>) {
        let status = error.map(ApiError::status);
        let is_token_request = request.operation == operation::OWN_TOKEN.row();
        let is_token_refused = status == Some(Some(401)) && !request.operation.denies_with_401;
        let mut must_end =
            is_token_refused && !is_token_request && !Bug::ContinueAfterTokenRefusal.is_planted();
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
            self.end_run(ErrorKind::AfterFatalError(error.clone()));
        }
    }

    /// Ends the run: nothing more is sent. Keeps the first reason.
    pub(super) fn end_run(&self, reason: ErrorKind) {
        self.end_reason.send_if_modified(|current_reason| {
            let is_first = current_reason.is_none();
            if is_first {
                *current_reason = Some(reason);
            }
            is_first
        });
    }

    pub(super) fn error<E>(&self, request: &Request<E>, kind: ErrorKind) -> ApiError {
        ApiError::new(request.operation, self.secrets.redact(&request.path()), kind)
    }

    pub(super) fn malformed_error(
        &self,
        request: &Request<Read>,
        response: &ApiResponse,
        reason: &'static str,
    ) -> ApiError {
        let (status, request_id) = (response.status, request_id(&response.headers));
        self.error(request, ErrorKind::Malformed { status, why: reason, request_id })
    }

    fn tally(&self) -> MutexGuard<'_, RequestTally> {
        lock(&self.tally)
    }
}

/// The outcome of a request for the pace controller; `None` if the outcome does not show the load
/// of the service.
const fn to_pace_outcome(
    operation: &'static Operation,
    outcome: SendOutcome,
    response_time: Duration,
) -> Option<PaceOutcome> {
    match outcome {
        SendOutcome::Success | SendOutcome::Refused => {
            Some(PaceOutcome::Answered(operation.id, response_time))
        }
        SendOutcome::Throttled => Some(PaceOutcome::Throttled),
        SendOutcome::NotSent | SendOutcome::Lost | SendOutcome::Faulty => Some(PaceOutcome::Failed),
        SendOutcome::Untrusted
        | SendOutcome::Locked
        | SendOutcome::Unreadable
        | SendOutcome::Oversized => None,
    }
}
