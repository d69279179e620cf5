//! The request budgets of a service, as announced in its answers or known from the table of
//! operations. Decides without IO, from the times that callers pass in.
//!
//! | budget | known from | kept by |
//! |---|---|---|
//! | of the user | `RateLimit-Limit`, `-Remaining` and `-Reset` of any answer | sending no more than remain until the reset |
//! | of an operation | the table of operations, where the service announces that of the user; else a 429 while requests of the user remain | sending as many in any minute, counted from answer to sending |
//!
//! A service counts requests in windows of one minute and does not announce when the window of an
//! operation begins. A request sent one minute after the answer to another never falls into the
//! same window. So no window holds too many requests, wherever it begins. Requests in flight count
//! as used, because the service may have counted them already. A service that announces no budget
//! gets as many requests as it answers.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, SystemTime},
};

use http::HeaderMap;

use super::{
    limit::{date, number},
    retry::MAX_WAIT,
};
use crate::operation::Operation;

/// The length of a window.
pub(super) const MINUTE: Duration = Duration::from_secs(60);

/// The factor for the budget of an operation that proved too large.
const REDUCED: f64 = 0.8;

/// When a request may be sent that must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendAt {
    /// Not before another answer arrives.
    AfterAnswer,
    /// At this time; all other requests wait too.
    At(Duration),
    /// At this time; other operations go on.
    OfOperation(Duration),
}

/// The user's budget in the headers of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The limit: requests per minute.
    a_minute: u64,
    /// Requests that remain in this window.
    remaining: u64,
    /// When the window ends, in seconds of the Unix epoch by the service's clock.
    reset: u64,
    /// The time until then.
    wait: Duration,
}

impl Quota {
    /// Reads the headers of an answer. `wall` is for answers without a `Date`. Returns `None` for
    /// malformed headers, and for a reset that has passed or is too far away to wait for.
    pub fn read(headers: &HeaderMap, wall: SystemTime) -> Option<Self> {
        let reset = number(headers, "ratelimit-reset")?;
        let now = date(headers, "date").unwrap_or(wall);
        let now = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
        let wait = Duration::from_secs(reset.checked_sub(now).filter(|wait| *wait > 0)?);
        let a_minute = number(headers, "ratelimit-limit")?;
        let remaining = number(headers, "ratelimit-remaining")?;
        (a_minute > 0 && wait <= MAX_WAIT).then_some(Self { a_minute, remaining, reset, wait })
    }

    /// True if a 429 with these headers concerns its operation alone.
    pub const fn spares_others(self) -> bool {
        self.remaining > 0
    }
}

/// The outcome of a request that was counted.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// When the answer arrived, or when the client gave up.
    pub ended_at: Duration,
    /// The user's budget in its headers.
    pub quota: Option<Quota>,
    /// How long its operation alone is closed after a 429 for that operation.
    pub closed: Option<Duration>,
}

/// The budget of an operation.
#[derive(Debug, Default)]
struct OperationBudget {
    in_flight: usize,
    /// When its answers of the last minute came.
    answered: VecDeque<Duration>,
    /// The limit per minute learned from a 429.
    learned: Option<usize>,
    closed_until: Duration,
}

/// The budgets of one client.
#[derive(Debug, Default)]
pub struct Budget {
    /// The user's budget, merged from the last answers, and when its window ends, on the client's
    /// clock.
    announced: Option<(Quota, Duration)>,
    in_flight: u64,
    routes: BTreeMap<&'static str, OperationBudget>,
}

impl Budget {
    /// The user's limit per minute, if the service announced it.
    pub fn a_minute(&self) -> Option<u64> {
        self.announced.map(|(announced, _)| announced.a_minute)
    }

    /// Asks whether a request may be sent at `now`. If so, it counts as in flight until
    /// [`end`](Self::end).
    ///
    /// # Errors
    /// If it must wait: until when.
    pub fn take(&mut self, operation: &'static Operation, now: Duration) -> Result<(), SendAt> {
        let is_announced = self.announced.is_some();
        if let Some((announced, over_at)) = &mut self.announced {
            if *over_at <= now {
                announced.remaining = announced.a_minute;
            }
            match announced.remaining {
                0 => return Err(SendAt::At(*over_at)),
                remaining if remaining <= self.in_flight => return Err(SendAt::AfterAnswer),
                _ => {}
            }
        }
        let route = self.routes.entry(operation.id).or_default();
        let documented = operation.a_minute.filter(|_| is_announced);
        let limit = route.learned.or(documented.map(|limit| limit as usize));
        route.check(limit, now)?;
        route.in_flight += 1;
        self.in_flight += 1;
        Ok(())
    }

    /// Records the outcome of a request that was counted, or `None` if it was not sent.
    pub fn end(&mut self, operation: &'static Operation, completion: Option<Completion>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let route = self.routes.entry(operation.id).or_default();
        route.in_flight = route.in_flight.saturating_sub(1);
        let Some(Completion { ended_at, quota, closed }) = completion else { return };
        if let Some(closed) = closed {
            route.close(operation.a_minute, ended_at, closed);
        }
        if let Some(quota) = quota {
            self.announced = Some(merged(self.announced.take(), quota, ended_at));
        }
        // Without a limit there is nothing to count.
        if self.announced.is_some() {
            route.answered.push_back(ended_at);
        }
    }
}

/// Merges budgets from answers in any order: within one window, the lowest remainder is the latest.
fn merged(
    present: Option<(Quota, Duration)>,
    quota: Quota,
    ended_at: Duration,
) -> (Quota, Duration) {
    match present {
        Some((present, over_at)) if present.reset > quota.reset => (present, over_at),
        Some((present, over_at)) if present.reset == quota.reset && over_at > ended_at => {
            (Quota { remaining: quota.remaining.min(present.remaining), ..quota }, over_at)
        }
        _ => (quota, ended_at.saturating_add(quota.wait)),
    }
}

impl OperationBudget {
    fn check(&mut self, limit: Option<usize>, now: Duration) -> Result<(), SendAt> {
        while self.answered.front().is_some_and(|ended_at| ended_at.saturating_add(MINUTE) <= now) {
            self.answered.pop_front();
        }
        if self.closed_until > now {
            return Err(SendAt::OfOperation(self.closed_until));
        }
        match limit {
            Some(limit) if self.in_flight + self.answered.len() >= limit => {
                let first = self.answered.front();
                Err(first.map_or(SendAt::AfterAnswer, |ended_at| {
                    SendAt::OfOperation(ended_at.saturating_add(MINUTE))
                }))
            }
            _ => Ok(()),
        }
    }

    /// Learns a limit from the first 429: the number of answers in the last minute, or a part of
    /// the limit assumed so far. A 429 for a request that was in flight at the same time teaches
    /// nothing new.
    fn close(&mut self, documented: Option<u32>, ended_at: Duration, closed: Duration) {
        if self.closed_until <= ended_at {
            let answered =
                self.answered.iter().filter(|then| ended_at < then.saturating_add(MINUTE));
            let reduced = self.learned.map(|learned| (learned as f64 * REDUCED) as usize);
            let documented = documented.map_or(usize::MAX, |limit| limit as usize);
            self.learned = Some(reduced.unwrap_or(answered.count()).min(documented).max(1));
        }
        self.closed_until = self.closed_until.max(ended_at.saturating_add(closed));
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

    fn quota(left: u64, reset: u64, wait: u64) -> Option<Quota> {
        Some(Quota { a_minute: 2_000, remaining: left, reset, wait: seconds(wait) })
    }

    fn completed(at: Duration, quota: Option<Quota>) -> Option<Completion> {
        Some(Completion { ended_at: at, quota, closed: None })
    }

    #[test]
    fn malformed_budget_headers_are_ignored() {
        let read = |limit: &str, remaining: &str, reset: &str| {
            let mut headers = HeaderMap::new();
            for (name, value) in [("limit", limit), ("remaining", remaining), ("reset", reset)] {
                let name = HeaderName::try_from(format!("ratelimit-{name}")).unwrap();
                headers.insert(name, HeaderValue::from_str(value).unwrap());
            }
            // 100 seconds into the epoch, whatever the local clock shows.
            headers.insert("date", HeaderValue::from_static("Thu, 01 Jan 1970 00:01:40 GMT"));
            Quota::read(&headers, SystemTime::UNIX_EPOCH + seconds(9_000))
        };
        assert_eq!(read("2000", "7", "120"), quota(7, 120, 20));
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
            assert_eq!(read(limit, remaining, reset), None, "{limit} {remaining} {reset}");
        }
        assert_eq!(Quota::read(&HeaderMap::new(), SystemTime::now()), None);
    }

    #[test]
    fn a_service_that_announces_nothing_gets_everything_at_once() {
        let mut budget = Budget::default();
        for _ in 0..10_000 {
            assert_eq!(budget.take(PROJECT_GET.row(), seconds(1)), Ok(()));
            budget.end(PROJECT_GET.row(), completed(seconds(1), None));
        }
        assert_eq!(budget.a_minute(), None);
    }

    #[test]
    fn no_more_are_sent_than_remain_until_the_reset() {
        let (mut budget, hooks) = (Budget::default(), HOOK_LIST.row());
        assert_eq!(budget.take(hooks, seconds(0)), Ok(()));
        budget.end(hooks, completed(seconds(0), quota(2, 120, 20)));
        assert_eq!(budget.take(hooks, seconds(1)), Ok(()));
        assert_eq!(budget.take(hooks, seconds(1)), Ok(()));
        assert_eq!(budget.take(hooks, seconds(1)), Err(SendAt::AfterAnswer), "both may be counted");
        budget.end(hooks, completed(seconds(2), quota(0, 120, 18)));
        // An older answer that arrives late changes nothing.
        budget.end(hooks, completed(seconds(2), quota(1, 120, 18)));
        assert_eq!(budget.take(hooks, seconds(19)), Err(SendAt::At(seconds(20))));
        assert_eq!(budget.take(hooks, seconds(20)), Ok(()), "the window is over");
        budget.end(hooks, completed(seconds(21), quota(1_999, 180, 59)));
        assert_eq!(budget.take(hooks, seconds(22)), Ok(()));
        // A request that was not sent is given back.
        budget.end(hooks, None);
        assert_eq!((budget.in_flight, budget.a_minute()), (0, Some(2_000)));
    }

    /// A service with a limit for an operation never counts more than that limit, however long
    /// answers take and wherever its windows begin.
    #[test]
    fn no_window_exceeds_the_limit_of_an_operation() {
        let operation = PROJECT_GET.row();
        let limit = operation.a_minute.expect("a limit") as usize;
        for latency in [10, 90, 900] {
            let (mut budget, mut now) = (Budget::default(), Duration::ZERO);
            let (mut arrived, mut in_flight): (Vec<Duration>, VecDeque<(Duration, Duration)>) =
                Default::default();
            while arrived.len() < 2_000 {
                match budget.take(operation, now) {
                    Ok(()) => {
                        // It arrives at any time between sending and answer.
                        let share = arrived.len() as u32 % 7;
                        let way = Duration::from_millis(latency);
                        arrived.push(now + way * share / 7);
                        in_flight.push_back((now + way, now));
                        now += Duration::from_millis(3);
                    }
                    Err(SendAt::At(_)) => panic!("the user's budget is no obstacle"),
                    Err(SendAt::OfOperation(at)) if in_flight.is_empty() => now = at,
                    Err(SendAt::AfterAnswer | SendAt::OfOperation(_)) => {
                        now = now.max(in_flight.front().map_or(now, |(at, _)| *at));
                    }
                }
                while let Some((at, _)) = in_flight.pop_front_if(|(at, _)| *at <= now) {
                    budget.end(operation, completed(at, quota(1_900, 9_999_999, 3_000)));
                }
            }
            let took = *arrived.iter().max().unwrap();
            arrived.sort();
            for (at, first) in arrived.iter().enumerate() {
                let window = arrived[at..].iter().take_while(|then| **then < *first + MINUTE);
                assert!(window.count() <= limit, "{latency} ms: at {first:?}");
            }
            // Five budgets take four minutes, and only a little more.
            let most = 4.0 * 60.0 / 0.95;
            assert!(took.as_secs_f64() < most, "{latency} ms: {took:?}");
        }
    }

    #[test]
    fn a_429_of_an_operation_closes_it_alone_and_teaches_its_limit() {
        let (mut budget, hooks) = (Budget::default(), HOOK_LIST.row());
        let complaint = |at, closed| {
            Some(Completion {
                ended_at: at,
                quota: quota(1_000, 900, 60),
                closed: Some(seconds(closed)),
            })
        };
        for at in 0..10 {
            assert_eq!(budget.take(hooks, seconds(at)), Ok(()));
        }
        for at in 0..8 {
            budget.end(hooks, completed(seconds(at), quota(1_000, 900, 60)));
        }
        budget.end(hooks, complaint(seconds(10), 30));
        // A 429 for a request that was in flight at the same time has no further effect.
        budget.end(hooks, complaint(seconds(11), 30));
        assert_eq!(budget.routes[hooks.id].learned, Some(8));
        assert_eq!(budget.take(hooks, seconds(12)), Err(SendAt::OfOperation(seconds(41))));
        assert_eq!(budget.take(PROJECT_GET.row(), seconds(12)), Ok(()));
        // At most eight in any minute.
        let sent = (0..).take_while(|_| budget.take(hooks, seconds(70)).is_ok()).count();
        assert_eq!(sent, 8 - 1, "the complaints of the last minute count");
        budget.end(hooks, complaint(seconds(72), 1));
        assert_eq!(budget.routes[hooks.id].learned, Some(6), "that was still too much");
    }
}
