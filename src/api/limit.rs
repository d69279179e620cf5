//! How fast requests may go: one gate for all workers.
//!
//! The gate holds a pause that the service asked for, and the number of requests in flight. That number is halved when the service
//! throttles, once for all requests that were in flight together, and grows back by one for each round of successes.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use http::HeaderMap;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The gate.
#[derive(Debug)]
pub struct Gate {
    permits: Semaphore,
    state: Mutex<State>,
    max: usize,
}

#[derive(Debug)]
struct State {
    /// Nothing is sent before this, on the client's clock.
    open_at: Duration,
    /// How many may be in flight.
    limit: usize,
    /// How many permits are to be destroyed when they come back.
    debt: usize,
    /// Successes since the limit last changed.
    successes: usize,
    /// How often the limit was halved.
    epoch: u64,
}

/// The right to have one request in flight.
#[derive(Debug)]
pub struct Permit<'g> {
    gate: &'g Gate,
    permit: Option<SemaphorePermit<'g>>,
    epoch: u64,
}

impl Gate {
    /// Lets up to `max` requests (at least one) be in flight.
    pub fn new(max: usize) -> Self {
        let max = max.clamp(1, Semaphore::MAX_PERMITS);
        let state = State { open_at: Duration::ZERO, limit: max, debt: 0, successes: 0, epoch: 0 };
        Self { permits: Semaphore::new(max), state: Mutex::new(state), max }
    }

    /// Waits until another request may be in flight. It may still have to wait for [`pause`](Self::pause) to pass.
    pub async fn enter(&self) -> Permit<'_> {
        // The semaphore is never closed; without a permit, the limit alone is lost.
        let permit = self.permits.acquire().await.ok();
        Permit { gate: self, permit, epoch: self.state().epoch }
    }

    /// How long it is, at `now`, until the next request may be sent.
    pub fn pause(&self, now: Duration) -> Duration {
        self.state().open_at.saturating_sub(now)
    }

    /// Sends nothing before `instant`. An earlier pause that lasts longer stays.
    pub fn pause_until(&self, instant: Duration) {
        let mut state = self.state();
        state.open_at = state.open_at.max(instant);
    }

    /// How many requests may be in flight at the moment.
    pub fn limit(&self) -> usize {
        self.state().limit
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// The service throttled this request.
    pub fn throttled(&self) {
        let mut state = self.gate.state();
        if state.epoch != self.epoch {
            return; // Another request of the same burst has said so.
        }
        let halved = (state.limit / 2).max(1);
        state.debt += state.limit - halved;
        state.debt -= self.gate.permits.forget_permits(state.debt);
        (state.limit, state.successes, state.epoch) = (halved, 0, state.epoch + 1);
    }

    /// The service answered this request without complaint.
    pub fn answered(&self) {
        let mut state = self.gate.state();
        state.successes += 1;
        if state.limit < self.gate.max && state.successes >= state.limit {
            (state.limit, state.successes) = (state.limit + 1, 0);
            if state.debt > 0 {
                state.debt -= 1;
            } else {
                self.gate.permits.add_permits(1);
            }
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        if state.debt > 0
            && let Some(permit) = self.permit.take()
        {
            state.debt -= 1;
            permit.forget();
        }
    }
}

/// How long an answer asks to wait: `Retry-After` in seconds or as a date, else, if it says that requests were too many (429),
/// `RateLimit-Reset` in seconds of the Unix epoch. Other answers name the reset too, but only to inform.
///
/// Dates are read against the answer's own `Date`, so that a wrong clock here does no harm; `wall` is for answers without one. A date
/// that has passed is a wait of zero, a number beyond all bounds the longest wait, and nonsense is no wish.
pub fn asked_wait(status: u16, headers: &HeaderMap, wall: SystemTime) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    let date = |name| text(name).and_then(|t| httpdate::parse_http_date(t).ok());
    let now = date("date").unwrap_or(wall);
    let until = |then: SystemTime| then.duration_since(now).unwrap_or_default();
    let after = text("retry-after").and_then(seconds).or_else(|| date("retry-after").map(until));
    after.or_else(|| {
        let reset = text("ratelimit-reset").filter(|_| status == 429).and_then(seconds)?;
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Some(reset.saturating_sub(since_epoch))
    })
}

/// A whole number of seconds; one that is too large to hold is as long as can be.
fn seconds(text: &str) -> Option<Duration> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}
