//! The request budgets of a service, as announced in its responses or known from the table of
//! operations. This module decides without IO, from the times that callers pass in.
//!
//! | budget | source | how it is respected |
//! |---|---|---|
//! | of the user | `RateLimit-Limit`, `-Remaining` and `-Reset` of any response | sends only the remaining number of requests until the reset |
//! | of an operation | the table of operations, if the service announces a budget of the user; else a 429 while the user has requests left | limits the requests in any minute, counted from a response to the next request |
//!
//! A service counts requests in windows of one minute, and does not announce when the window of an
//! operation begins. If a request is sent one minute after the response to another request, the two
//! are never in the same window. Therefore no window contains too many requests, wherever the
//! window begins. Requests in flight are counted, because the service may have counted them
//! already. If a service announces no budget, this module limits no requests.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, SystemTime},
};

use http::HeaderMap;

use super::{
    limit::{header_date, header_number},
    retry::MAX_WAIT,
};
use crate::operation::Operation;

/// The length of a window.
pub(super) const MINUTE: Duration = Duration::from_secs(60);

/// The factor that reduces the limit of an operation after a further 429.
const REDUCTION_FACTOR: f64 = 0.8;

/// The time until which a request must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendTime {
    /// The request must wait until another response arrives.
    AfterResponse,
    /// Requests of all operations must wait until this time, on the client's clock.
    At(Duration),
    /// Only requests of this operation must wait until this time, on the client's clock.
    OperationAt(Duration),
}

/// The user's budget in the headers of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The maximum number of requests per minute.
    limit_per_minute: u64,
    /// The number of requests that remain in this window.
    remaining: u64,
    /// When the window ends, in seconds of the Unix epoch by the service's clock.
    reset_at: u64,
    /// The time until `reset_at`.
    time_to_reset: Duration,
}

impl Quota {
    /// Reads the headers of a response. `local_time` is used if the response has no `Date`. Returns
    /// `None` for malformed headers, and for a reset that has passed or is too far away to wait
    /// for.
    pub fn read(headers: &HeaderMap, local_time: SystemTime) -> Option<Self> {
        let reset = header_number(headers, "ratelimit-reset")?;
        let now = header_date(headers, "date").unwrap_or(local_time);
        let now_seconds = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
        let wait = Duration::from_secs(reset.checked_sub(now_seconds).filter(|wait| *wait > 0)?);
        let limit_per_minute = header_number(headers, "ratelimit-limit")?;
        let remaining = header_number(headers, "ratelimit-remaining")?;
        (limit_per_minute > 0 && wait <= MAX_WAIT).then_some(Self {
            limit_per_minute,
            remaining,
            reset_at: reset,
            time_to_reset: wait,
        })
    }

    /// True if the user has requests left, so that a 429 concerns only its operation.
    pub const fn has_remaining_requests(self) -> bool {
        self.remaining > 0
    }
}

/// The outcome of a request that was counted.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// When the response arrived, or when the client stopped waiting for it, on the client's clock.
    pub ended_at: Duration,
    /// The user's budget in the headers of the response.
    pub quota: Option<Quota>,
    /// How long no request of this operation may be sent, after a 429 that concerns only this
    /// operation.
    pub operation_closed_for: Option<Duration>,
}

/// The budget of an operation.
#[derive(Debug, Default)]
struct OperationBudget {
    in_flight: usize,
    /// The times when responses of this operation arrived in the last minute, oldest first.
    response_times: VecDeque<Duration>,
    /// The limit per minute learned from a 429.
    learned_limit: Option<usize>,
    /// No request of this operation is sent before this time, on the client's clock.
    closed_until: Duration,
}

/// The budgets of one client.
#[derive(Debug, Default)]
pub struct Budget {
    /// The user's budget, merged from the latest responses, with the end of its window on the
    /// client's clock.
    user_quota: Option<(Quota, Duration)>,
    in_flight: u64,
    operation_budgets: BTreeMap<&'static str, OperationBudget>,
}

impl Budget {
    /// The user's limit per minute, if the service announced it.
    pub fn requests_per_minute(&self) -> Option<u64> {
        self.user_quota.map(|(quota, _)| quota.limit_per_minute)
    }

    /// If a request may be sent at `now`, counts it as in flight until
    /// [`finish_request`](Self::finish_request).
    ///
    /// # Errors
    /// [`SendTime`] if the request must wait.
    pub fn try_reserve(
        &mut self,
        operation: &'static Operation,
        now: Duration,
    ) -> Result<(), SendTime> {
        let is_announced = self.user_quota.is_some();
        if let Some((quota, window_end)) = &mut self.user_quota {
            if *window_end <= now {
                quota.remaining = quota.limit_per_minute;
            }
            match quota.remaining {
                0 => return Err(SendTime::At(*window_end)),
                remaining if remaining <= self.in_flight => return Err(SendTime::AfterResponse),
                _ => {}
            }
        }
        let operation_budget = self.operation_budgets.entry(operation.id).or_default();
        let documented_limit = operation.requests_per_minute.filter(|_| is_announced);
        let limit = operation_budget.learned_limit.or(documented_limit.map(|limit| limit as usize));
        operation_budget.require_capacity(limit, now)?;
        operation_budget.in_flight += 1;
        self.in_flight += 1;
        Ok(())
    }

    /// Records the end of a request that was counted. `completion` is `None` if the request was not
    /// sent.
    pub fn finish_request(
        &mut self,
        operation: &'static Operation,
        completion: Option<Completion>,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let budget = self.operation_budgets.entry(operation.id).or_default();
        budget.in_flight = budget.in_flight.saturating_sub(1);
        let Some(Completion { ended_at, quota, operation_closed_for: closed_for }) = completion
        else {
            return;
        };
        if let Some(closed_duration) = closed_for {
            budget.close_for(operation.requests_per_minute, ended_at, closed_duration);
        }
        if let Some(quota) = quota {
            // Responses may arrive in any order. Within one window, the response with the lowest
            // remaining number is the latest.
            self.user_quota = Some(match self.user_quota {
                Some((current, window_end)) if current.reset_at > quota.reset_at => {
                    (current, window_end)
                }
                Some((current, window_end))
                    if current.reset_at == quota.reset_at && window_end > ended_at =>
                {
                    (
                        Quota { remaining: quota.remaining.min(current.remaining), ..quota },
                        window_end,
                    )
                }
                _ => (quota, ended_at.saturating_add(quota.time_to_reset)),
            });
        }
        // Count responses only for a service with limits.
        if self.user_quota.is_some() {
            budget.response_times.push_back(ended_at);
        }
    }
}

impl OperationBudget {
    fn require_capacity(&mut self, limit: Option<usize>, now: Duration) -> Result<(), SendTime> {
        while self
            .response_times
            .front()
            .is_some_and(|ended_at| ended_at.saturating_add(MINUTE) <= now)
        {
            self.response_times.pop_front();
        }
        if self.closed_until > now {
            return Err(SendTime::OperationAt(self.closed_until));
        }
        match limit {
            Some(limit) if self.in_flight + self.response_times.len() >= limit => {
                let oldest = self.response_times.front();
                Err(oldest.map_or(SendTime::AfterResponse, |ended_at| {
                    SendTime::OperationAt(ended_at.saturating_add(MINUTE))
                }))
            }
            _ => Ok(()),
        }
    }

    /// Closes the operation, and learns its limit. After the first 429, the limit is the number of
    /// responses in the last minute. After a later 429, the limit is 80 % of the learned limit. A
    /// 429 while the operation is closed does not change the limit.
    fn close_for(
        &mut self,
        documented_limit: Option<u32>,
        ended_at: Duration,
        closed_for: Duration,
    ) {
        if self.closed_until <= ended_at {
            let recent_responses = self
                .response_times
                .iter()
                .filter(|answered_at| ended_at < answered_at.saturating_add(MINUTE));
            let reduced_limit =
                self.learned_limit.map(|learned| (learned as f64 * REDUCTION_FACTOR) as usize);
            let max_limit = documented_limit.map_or(usize::MAX, |limit| limit as usize);
            self.learned_limit =
                Some(reduced_limit.unwrap_or(recent_responses.count()).min(max_limit).max(1));
        }
        self.closed_until = self.closed_until.max(ended_at.saturating_add(closed_for));
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::operation::{HOOK_LIST, PROJECT_GET};

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn quota(remaining: u64, reset: u64, wait: u64) -> Option<Quota> {
        Some(Quota {
            limit_per_minute: 2_000,
            remaining,
            reset_at: reset,
            time_to_reset: seconds(wait),
        })
    }

    fn completion(at: Duration, quota: Option<Quota>) -> Option<Completion> {
        Some(Completion { ended_at: at, quota, operation_closed_for: None })
    }

    #[test]
    fn malformed_budget_headers_are_ignored() {
        let read_quota = |limit: &str, remaining: &str, reset: &str| {
            let mut headers = HeaderMap::new();
            for (name, value) in [("limit", limit), ("remaining", remaining), ("reset", reset)] {
                let name = HeaderName::try_from(format!("ratelimit-{name}")).unwrap();
                headers.insert(name, HeaderValue::from_str(value).unwrap());
            }
            // 100 seconds into the epoch, whatever the local clock shows.
            headers.insert("date", HeaderValue::from_static("Thu, 01 Jan 1970 00:01:40 GMT"));
            Quota::read(&headers, SystemTime::UNIX_EPOCH + seconds(9_000))
        };
        assert_eq!(read_quota("2000", "7", "120"), quota(7, 120, 20));
        for (limit, remaining, reset) in [
            ("0", "0", "120"),
            ("2000", "7", "100"),
            ("2000", "7", "99"),
            ("2000", "7", "99999"),
            ("2000", "7", "99999999999999999999999"),
            ("2000", "7", "-120"),
            ("2000", "7", ""),
            ("many", "7", "120"),
            ("2000", "-1", "120"),
        ] {
            assert_eq!(read_quota(limit, remaining, reset), None, "{limit} {remaining} {reset}");
        }
        assert_eq!(Quota::read(&HeaderMap::new(), SystemTime::now()), None);
    }

    #[test]
    fn without_an_announced_limit_no_request_waits() {
        let mut budget = Budget::default();
        for _ in 0..10_000 {
            assert_eq!(budget.try_reserve(PROJECT_GET.row(), seconds(1)), Ok(()));
            budget.finish_request(PROJECT_GET.row(), completion(seconds(1), None));
        }
        assert_eq!(budget.requests_per_minute(), None);
    }

    #[test]
    fn requests_wait_for_the_reset_if_none_remain() {
        let (mut budget, hooks) = (Budget::default(), HOOK_LIST.row());
        assert_eq!(budget.try_reserve(hooks, seconds(0)), Ok(()));
        budget.finish_request(hooks, completion(seconds(0), quota(2, 120, 20)));
        assert_eq!(budget.try_reserve(hooks, seconds(1)), Ok(()));
        assert_eq!(budget.try_reserve(hooks, seconds(1)), Ok(()));
        assert_eq!(
            budget.try_reserve(hooks, seconds(1)),
            Err(SendTime::AfterResponse),
            "both may be counted"
        );
        budget.finish_request(hooks, completion(seconds(2), quota(0, 120, 18)));
        // An older response that arrives late changes nothing.
        budget.finish_request(hooks, completion(seconds(2), quota(1, 120, 18)));
        assert_eq!(budget.try_reserve(hooks, seconds(19)), Err(SendTime::At(seconds(20))));
        assert_eq!(budget.try_reserve(hooks, seconds(20)), Ok(()), "the window is over");
        budget.finish_request(hooks, completion(seconds(21), quota(1_999, 180, 59)));
        assert_eq!(budget.try_reserve(hooks, seconds(22)), Ok(()));
        // A request that was not sent does not count.
        budget.finish_request(hooks, None);
        assert_eq!((budget.in_flight, budget.requests_per_minute()), (0, Some(2_000)));
    }

    /// A service with a limit for an operation never counts more requests than that limit. This
    /// holds however long responses take, and wherever the windows begin.
    #[test]
    fn no_window_exceeds_the_limit_of_an_operation() {
        let operation = PROJECT_GET.row();
        let limit = operation.requests_per_minute.expect("a limit") as usize;
        for latency in [10, 90, 900] {
            let (mut budget, mut now) = (Budget::default(), Duration::ZERO);
            let (mut arrivals, mut in_flight): (Vec<Duration>, VecDeque<(Duration, Duration)>) =
                Default::default();
            while arrivals.len() < 2_000 {
                match budget.try_reserve(operation, now) {
                    Ok(()) => {
                        // The request arrives at any time between its sending and its response.
                        let sevenths = arrivals.len() as u32 % 7;
                        let duration = Duration::from_millis(latency);
                        arrivals.push(now + duration * sevenths / 7);
                        in_flight.push_back((now + duration, now));
                        now += Duration::from_millis(3);
                    }
                    Err(SendTime::At(_)) => panic!("the user's budget is no obstacle"),
                    Err(SendTime::OperationAt(at)) if in_flight.is_empty() => now = at,
                    Err(SendTime::AfterResponse | SendTime::OperationAt(_)) => {
                        now = now.max(in_flight.front().map_or(now, |(at, _)| *at));
                    }
                }
                while let Some((at, _)) = in_flight.pop_front_if(|(at, _)| *at <= now) {
                    budget
                        .finish_request(operation, completion(at, quota(1_900, 9_999_999, 3_000)));
                }
            }
            let last_arrival = *arrivals.iter().max().unwrap();
            arrivals.sort();
            for (index, first) in arrivals.iter().enumerate() {
                let window =
                    arrivals[index..].iter().take_while(|arrival| **arrival < *first + MINUTE);
                assert!(window.count() <= limit, "{latency} ms: at {first:?}");
            }
            // The requests of five windows take little more than four minutes.
            let max_seconds = 4.0 * 60.0 / 0.95;
            assert!(last_arrival.as_secs_f64() < max_seconds, "{latency} ms: {last_arrival:?}");
        }
    }

    #[test]
    fn a_429_closes_only_its_operation_and_shows_its_limit() {
        let (mut budget, hooks) = (Budget::default(), HOOK_LIST.row());
        let throttled_completion = |at, seconds_closed| {
            Some(Completion {
                ended_at: at,
                quota: quota(1_000, 900, 60),
                operation_closed_for: Some(seconds(seconds_closed)),
            })
        };
        for at in 0..10 {
            assert_eq!(budget.try_reserve(hooks, seconds(at)), Ok(()));
        }
        for at in 0..8 {
            budget.finish_request(hooks, completion(seconds(at), quota(1_000, 900, 60)));
        }
        budget.finish_request(hooks, throttled_completion(seconds(10), 30));
        // A 429 for a request that was in flight at the same time has no further effect.
        budget.finish_request(hooks, throttled_completion(seconds(11), 30));
        assert_eq!(budget.operation_budgets[hooks.id].learned_limit, Some(8));
        assert_eq!(budget.try_reserve(hooks, seconds(12)), Err(SendTime::OperationAt(seconds(41))));
        assert_eq!(budget.try_reserve(PROJECT_GET.row(), seconds(12)), Ok(()));
        // At most eight requests are sent in any minute.
        let sent_count =
            (0..).take_while(|_| budget.try_reserve(hooks, seconds(70)).is_ok()).count();
        assert_eq!(sent_count, 8 - 1, "the complaints of the last minute count");
        budget.finish_request(hooks, throttled_completion(seconds(72), 1));
        assert_eq!(
            budget.operation_budgets[hooks.id].learned_limit,
            Some(6),
            "that was still too much"
        );
    }
}
