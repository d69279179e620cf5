//! The gate that paces all workers.
//!
//! The gate waits while the service requests a pause. The [`PaceController`] limits the requests in
//! flight, and the [`Budget`] limits the requests per minute.

use std::{
    sync::{Mutex, MutexGuard},
    time::{Duration, SystemTime},
};

use http::HeaderMap;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, futures::Notified};

use super::{
    budget::{Budget, Completion, SendTime},
    pace::{InFlightRange, PaceController, PaceOutcome, PaceTicket},
};
use crate::{lock, operation::Operation, planted::Bug};

/// The gate that each request must pass.
#[derive(Debug)]
pub struct Gate {
    permits: Semaphore,
    state: Mutex<GateState>,
    /// Wakes the requests that wait until another counted request ends.
    slot_finished: Notify,
}

#[derive(Debug)]
struct GateState {
    /// When the next request may be sent, on the client's clock.
    opens_at: Duration,
    pace: PaceController,
    budget: Budget,
    in_flight: usize,
    /// The number of permits to remove when they are returned.
    surplus_permits: usize,
}

/// The right to have one request in flight.
#[derive(Debug)]
pub struct Permit<'g> {
    gate: &'g Gate,
    permit: Option<SemaphorePermit<'g>>,
    ticket: PaceTicket,
}

/// A request that the budget has counted.
#[derive(Debug)]
pub struct BudgetSlot<'g> {
    gate: &'g Gate,
    operation: &'static Operation,
    completion: Option<Completion>,
}

impl BudgetSlot<'_> {
    /// Records the outcome of this request.
    pub const fn set_completion(&mut self, completion: Completion) {
        self.completion = Some(completion);
    }
}

impl Drop for BudgetSlot<'_> {
    fn drop(&mut self) {
        self.gate.state().budget.finish_request(self.operation, self.completion.take());
        self.gate.slot_finished.notify_waiters();
    }
}

impl Gate {
    /// Creates a gate; `range` limits the requests in flight.
    pub fn new(range: InFlightRange) -> Self {
        let pace = PaceController::new(range);
        let permits = Semaphore::new(pace.limit());
        let budget = Budget::default();
        let state =
            GateState { opens_at: Duration::ZERO, pace, budget, in_flight: 0, surplus_permits: 0 };
        Self { permits, state: Mutex::new(state), slot_finished: Notify::new() }
    }

    /// Reserves the right to send a request at `now`.
    ///
    /// # Errors
    /// [`SendTime`] if the request must wait.
    pub fn try_reserve_slot(
        &self,
        operation: &'static Operation,
        now: Duration,
    ) -> Result<BudgetSlot<'_>, SendTime> {
        self.state().budget.try_reserve(operation, now)?;
        Ok(BudgetSlot { gate: self, operation, completion: None })
    }

    /// Waits until a counted request ends.
    pub fn next_response(&self) -> Notified<'_> {
        self.slot_finished.notified()
    }

    /// The user's limit of requests per minute, if the service announced it.
    pub fn requests_per_minute(&self) -> Option<u64> {
        self.state().budget.requests_per_minute()
    }

    /// Waits until another request may be in flight. The caller may still have to wait for
    /// [`remaining_pause`](Self::remaining_pause).
    pub async fn acquire_permit(&self) -> Permit<'_> {
        // The semaphore is never closed. If it were, the request would run without the limit.
        let permit = self.permits.acquire().await.ok();
        let mut state = self.state();
        state.in_flight += 1;
        let in_flight = state.in_flight;
        Permit { gate: self, permit, ticket: state.pace.start_request(in_flight) }
    }

    /// The wait, from `now`, until the next request may be sent.
    pub fn remaining_pause(&self, now: Duration) -> Duration {
        self.state().opens_at.saturating_sub(now)
    }

    /// Makes all requests wait until `instant`, or until the end of an earlier, longer pause.
    pub fn pause_until(&self, instant: Duration) {
        let mut state = self.state();
        state.opens_at = state.opens_at.max(instant);
    }

    /// The current limit of requests in flight.
    pub fn limit(&self) -> usize {
        self.state().pace.limit()
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        lock(&self.state)
    }
}

impl Permit<'_> {
    /// Records the outcome of this request.
    pub fn record(&self, outcome: PaceOutcome) {
        let mut state = self.gate.state();
        let old_limit = state.pace.limit();
        state.pace.record(outcome, self.ticket);
        let new_limit = state.pace.limit();
        // Before adding permits, cancel removals of permits that are still due.
        let cancelled_count = state.surplus_permits.min(new_limit.saturating_sub(old_limit));
        state.surplus_permits += old_limit.saturating_sub(new_limit);
        state.surplus_permits -= cancelled_count;
        self.gate.permits.add_permits(new_limit.saturating_sub(old_limit) - cancelled_count);
        state.surplus_permits -= self.gate.permits.forget_permits(state.surplus_permits);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.in_flight -= 1;
        if state.surplus_permits > 0
            && let Some(permit) = self.permit.take()
        {
            state.surplus_permits -= 1;
            permit.forget();
        }
    }
}

/// The wait that a response requests. Reads `Retry-After`, which holds seconds or a date. If this
/// header is missing or malformed, reads the `RateLimit-Reset` of a 429, in seconds of the Unix
/// epoch. In other responses, `RateLimit-Reset` is only information.
///
/// Dates are compared with the `Date` of the same response, so a wrong local clock does no harm.
/// `local_time` is used if the response has no `Date`. A date in the past gives a wait of zero. A
/// number that is too large becomes the maximum. A malformed value is ignored.
pub fn retry_after(status: u16, headers: &HeaderMap, local_time: SystemTime) -> Option<Duration> {
    if Bug::IgnoreRetryAfter.is_planted() {
        return None;
    }
    let now = header_date(headers, "date").unwrap_or(local_time);
    if let Some(seconds) = header_number(headers, "retry-after") {
        return Some(Duration::from_secs(seconds));
    }
    if let Some(end) = header_date(headers, "retry-after") {
        return Some(end.duration_since(now).unwrap_or_default());
    }
    let reset_seconds = header_number(headers, "ratelimit-reset").filter(|_| status == 429)?;
    let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Some(Duration::from_secs(reset_seconds).saturating_sub(since_epoch))
}

/// The value of a header, as text.
pub(super) fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// The value of a header, as a date.
pub(super) fn header_date(headers: &HeaderMap, name: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(header_text(headers, name)?).ok()
}

/// The value of a header, as a whole number. A number that is too large becomes the maximum.
pub(super) fn header_number(headers: &HeaderMap, name: &str) -> Option<u64> {
    let text = header_text(headers, name)?;
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT, in seconds of the Unix epoch.
    const DATE_SECONDS: u64 = 784_111_777;

    const ANSWERED: PaceOutcome = PaceOutcome::Answered("variable-list", Duration::ZERO);

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(n, v)| (HeaderName::try_from(*n).unwrap(), HeaderValue::from_str(v).unwrap()))
            .collect()
    }

    fn epoch_plus(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_wait_is_read_in_every_form() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        type Pairs = [(&'static str, &'static str)];
        let table: [(&Pairs, Option<u64>); 16] = [
            (&[], None),
            (&[("retry-after", "0")], Some(0)),
            (&[("retry-after", " 30 ")], Some(30)),
            (&[("retry-after", "86400")], Some(86400)),
            (&[("retry-after", "99999999999999999999999")], Some(u64::MAX)),
            (&[("retry-after", "-5")], None),
            (&[("retry-after", "1.5")], None),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "")], None),
            (&[date, ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], Some(30)),
            (&[date, ("retry-after", "Sunday, 06-Nov-94 08:50:07 GMT")], Some(30)),
            (&[date, ("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")], Some(0)),
            (&[date, ("ratelimit-reset", "784111787")], Some(10)),
            (&[date, ("ratelimit-reset", "1")], Some(0)),
            (&[date, ("ratelimit-reset", "784111787"), ("retry-after", "3")], Some(3)),
            (&[date, ("ratelimit-reset", "784111787"), ("retry-after", "nonsense")], Some(10)),
        ];
        for (pairs, wait) in table {
            // The local clock is far off. It is used only for a response without a date.
            assert_eq!(
                retry_after(429, &headers(pairs), epoch_plus(5)).map(|w| w.as_secs()),
                wait,
                "{pairs:?}"
            );
        }
        let undated = headers(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")]);
        assert_eq!(
            retry_after(503, &undated, epoch_plus(DATE_SECONDS)),
            Some(Duration::from_secs(10))
        );
        assert_eq!(
            retry_after(
                503,
                &headers(&[("ratelimit-reset", "784111787")]),
                epoch_plus(DATE_SECONDS)
            ),
            None
        );
    }

    proptest! {
        #[test]
        fn no_header_causes_a_panic(after in "[ -~]{0,40}", reset in "[ -~]{0,40}", date in "[ -~]{0,40}") {
            let headers = headers(&[("retry-after", &after), ("ratelimit-reset", &reset), ("date", &date)]);
            retry_after(429, &headers, epoch_plus(DATE_SECONDS));
        }

        #[test]
        fn a_date_means_the_same_as_seconds(seconds in 0u64..100_000_000) {
            let then = httpdate::fmt_http_date(epoch_plus(DATE_SECONDS + seconds));
            let headers = headers(&[("retry-after", &then)]);
            prop_assert_eq!(retry_after(429, &headers, epoch_plus(DATE_SECONDS)), Some(Duration::from_secs(seconds)));
        }
    }

    #[tokio::test]
    async fn a_burst_that_is_throttled_halves_the_limit_once() {
        let gate = Gate::new(InFlightRange::fixed(8));
        let mut burst = Vec::new();
        for _ in 0..8 {
            burst.push(gate.acquire_permit().await);
        }
        burst.iter().for_each(|permit| permit.record(PaceOutcome::Throttled));
        assert_eq!(gate.limit(), 4);
        drop(burst);
        assert_eq!(gate.permits.available_permits(), 4);
        gate.acquire_permit().await.record(PaceOutcome::Throttled);
        assert_eq!((gate.limit(), gate.permits.available_permits()), (2, 2));
    }

    #[tokio::test]
    async fn the_limit_recovers_and_bounds_the_requests_in_flight() {
        for max in [1, 2, 3, 16] {
            let gate = Gate::new(InFlightRange::fixed(max));
            for _ in 0..9 {
                gate.acquire_permit().await.record(PaceOutcome::Throttled);
            }
            assert_eq!(gate.limit(), 1);
            for _ in 0..max * max {
                gate.acquire_permit().await.record(ANSWERED);
                assert_eq!(gate.limit(), gate.permits.available_permits());
            }
            assert_eq!(gate.limit(), max);
        }
        assert_eq!(Gate::new(InFlightRange::fixed(0)).limit(), 1);
    }

    #[tokio::test]
    async fn the_pace_limits_the_requests_in_flight() {
        let gate = Gate::new(InFlightRange::ADAPTIVE);
        let mut limits = vec![gate.limit()];
        for reply in [ANSWERED; 20].into_iter().chain([PaceOutcome::Throttled]).chain([ANSWERED; 3])
        {
            let mut permits = Vec::new();
            while gate.permits.available_permits() > 0 {
                permits.push(gate.acquire_permit().await);
            }
            assert_eq!(permits.len(), gate.limit());
            permits.iter().for_each(|permit| permit.record(reply));
            drop(permits);
            limits.push(gate.limit());
            assert_eq!(gate.permits.available_permits(), gate.limit());
        }
        limits.dedup();
        assert_eq!(limits, [16, 32, 64, 32, 33, 34, 35]);
    }

    #[test]
    fn a_pause_is_never_shortened() {
        let gate = Gate::new(InFlightRange::fixed(1));
        gate.pause_until(Duration::from_secs(10));
        gate.pause_until(Duration::from_secs(5));
        assert_eq!(gate.remaining_pause(Duration::from_secs(4)), Duration::from_secs(6));
        assert_eq!(gate.remaining_pause(Duration::from_secs(11)), Duration::ZERO);
    }
}
