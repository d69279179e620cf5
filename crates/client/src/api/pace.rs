//! Adapts the limit of requests in flight to the service's responses, without IO and without a
//! clock.
//!
//! The limit starts with a number that any service can handle, and doubles while responses stay as
//! fast as at the start. Responses are counted in rounds. A round has as many responses as the
//! limit allows requests in flight. A round whose response times are compared with the usual time
//! has at least `MIN_SAMPLE` responses:
//!
//! | a round | the new limit |
//! |---|---|
//! | has a 429 | half, at once |
//! | has more than a tenth of failures (5xx, no response) | half, at once |
//! | takes more than `MIN_SLOW_RATIO` times as long as usual | half, but not below the start |
//! | takes at most `MAX_FAST_RATIO` times as long as usual | double; after any halving, add one |
//! | anything else | unchanged |
//!
//! The usual time is learned for each operation, while the limit is not above the start. Only
//! requests sent since the last change of the limit count. After the start and after each doubling,
//! some requests open a new connection. Therefore the response times of as many requests as the
//! limit allows in flight are ignored then. The limit rises above the start only if as many requests
//! as allowed were in flight. Below the start, each round that does not halve the limit raises it by
//! one.

use std::{collections::BTreeMap, time::Duration};

/// The minimum number of responses from which the speed of a service is judged.
const MIN_SAMPLE: usize = 32;

/// A round is fast if its mean response time is at most this many times the usual time.
const MAX_FAST_RATIO: f64 = 1.25;

/// A round is slow if its mean response time is more than this many times the usual time. Then the
/// service is treated as overloaded.
const MIN_SLOW_RATIO: f64 = 1.5;

/// A response time counts as at most this many times the usual time, so that one slow response does
/// not decide alone.
const MAX_RATIO: f64 = 4.0;

/// Time differences below this number of seconds are ignored.
const TOLERANCE_SECONDS: f64 = 0.001;

/// The initial and the maximum limit of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightRange {
    start: usize,
    max: usize,
}

impl InFlightRange {
    /// Starts with 16 and rises up to 64 while responses stay fast.
    pub const ADAPTIVE: Self = Self { start: 16, max: 64 };

    /// Starts with `number` (1 to 1,000), and never exceeds it.
    pub fn fixed(number: usize) -> Self {
        let number = number.clamp(1, 1_000);
        Self { start: number, max: number }
    }

    /// The maximum of the limit.
    pub const fn max(self) -> usize {
        self.max
    }
}

/// The outcome of one request.
#[derive(Clone, Copy, Debug)]
pub enum PaceOutcome {
    /// The service answered without a complaint. Contains the id of the operation and the response
    /// time.
    Answered(&'static str, Duration),
    /// The service reports too many requests.
    Throttled,
    /// The service did not answer, or failed.
    Failed,
}

/// The state when a request was sent, for [`PaceController::record`].
#[derive(Clone, Copy, Debug)]
pub struct PaceTicket {
    epoch: u64,
    /// True if the response time of the request counts for the speed.
    is_timed: bool,
}

/// Controls the limit of requests in flight of one client.
#[derive(Debug)]
pub struct PaceController {
    range: InFlightRange,
    limit: usize,
    /// The number of changes of the limit.
    epoch: u64,
    /// True if the limit was ever halved. Then it rises by one instead of doubling.
    was_ever_halved: bool,
    round: PaceRound,
    /// The usual response times, by the id of the operation.
    usual_times: BTreeMap<&'static str, UsualTime>,
}

/// The outcomes since the last decision.
#[derive(Debug, Default)]
struct PaceRound {
    /// The number of next requests whose response times will be ignored.
    untimed_requests: usize,
    response_count: usize,
    failure_count: usize,
    /// The sum of the ratios of the response times to the usual times.
    ratio_sum: f64,
    /// True if as many requests as allowed were in flight.
    was_full: bool,
}

/// The usual response time of an operation, in seconds.
#[derive(Debug, Default)]
struct UsualTime {
    mean: f64,
    sample_count: usize,
}

impl UsualTime {
    /// Adds a response to the moving mean of the latest responses.
    fn add_response(&mut self, seconds: f64) {
        self.sample_count = (self.sample_count + 1).min(MIN_SAMPLE);
        self.mean += (seconds - self.mean) / self.sample_count as f64;
    }
}

impl PaceController {
    /// Creates a controller whose limit is the start of `range`.
    pub fn new(range: InFlightRange) -> Self {
        let round = PaceRound { untimed_requests: range.start, ..PaceRound::default() };
        Self {
            range,
            limit: range.start,
            epoch: 0,
            was_ever_halved: false,
            round,
            usual_times: BTreeMap::new(),
        }
    }

    /// The current limit of requests in flight.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Records that a request is sent. `in_flight` is the number of requests in flight, including
    /// this request.
    pub const fn start_request(&mut self, in_flight: usize) -> PaceTicket {
        self.round.was_full |= in_flight >= self.limit;
        let is_timed = self.round.untimed_requests == 0;
        self.round.untimed_requests = self.round.untimed_requests.saturating_sub(1);
        PaceTicket { epoch: self.epoch, is_timed }
    }

    /// Records the outcome of a request.
    pub fn record(&mut self, outcome: PaceOutcome, ticket: PaceTicket) {
        if ticket.epoch != self.epoch {
            return; // The request was sent before the last change of the limit.
        }
        match outcome {
            PaceOutcome::Throttled => self.halve_limit(1),
            PaceOutcome::Failed => {
                self.round.failure_count += 1;
                if self.round.failure_count > self.sample_size() / 10 {
                    self.halve_limit(1);
                } else {
                    self.count_response();
                }
            }
            PaceOutcome::Answered(..) if !ticket.is_timed => {}
            PaceOutcome::Answered(operation, response_time) => {
                self.round.ratio_sum += self.time_ratio(operation, response_time.as_secs_f64());
                self.count_response();
            }
        }
    }

    /// The ratio of a response time, in seconds, to the usual time of the operation.
    fn time_ratio(&mut self, operation: &'static str, seconds: f64) -> f64 {
        let usual_time = self.usual_times.entry(operation).or_default();
        if usual_time.sample_count == 0 || self.limit <= self.range.start {
            usual_time.add_response(seconds);
        }
        ((seconds + TOLERANCE_SECONDS) / (usual_time.mean + TOLERANCE_SECONDS)).min(MAX_RATIO)
    }

    /// The number of responses in a round whose response times are compared with the usual time.
    fn sample_size(&self) -> usize {
        self.limit.max(MIN_SAMPLE)
    }

    /// Counts a response, and ends the round after its last response.
    fn count_response(&mut self) {
        self.round.response_count += 1;
        let is_below_range = self.limit < self.range.start;
        let required_responses = if is_below_range && self.round.failure_count == 0 {
            self.limit
        } else {
            self.sample_size()
        };
        if self.round.response_count < required_responses {
            return;
        }
        let round = std::mem::take(&mut self.round);
        let slowness = round.ratio_sum
            / round.response_count.saturating_sub(round.failure_count).max(1) as f64;
        if is_below_range {
            self.set_limit(self.limit + 1);
        } else if slowness > MIN_SLOW_RATIO && self.limit > self.range.start {
            self.halve_limit(self.range.start);
        } else if slowness <= MAX_FAST_RATIO && round.was_full {
            let (raised_limit, untimed_requests) = if self.was_ever_halved {
                (self.limit + 1, 0)
            } else {
                (self.limit * 2, self.limit * 2)
            };
            self.set_limit(raised_limit.min(self.range.max));
            self.round.untimed_requests = untimed_requests.min(self.range.max);
        }
    }

    /// Halves the limit, but not below `min_limit`.
    fn halve_limit(&mut self, min_limit: usize) {
        self.was_ever_halved = true;
        self.set_limit((self.limit / 2).max(min_limit));
    }

    fn set_limit(&mut self, limit: usize) {
        self.epoch += u64::from(limit != self.limit);
        self.limit = limit;
        self.round = PaceRound::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADAPTING: InFlightRange = InFlightRange::ADAPTIVE;
    const OPERATIONS: [&str; 2] = ["variable-list", "hook-list"];

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Simulates a service, and a client that sends as many requests as allowed. `response` decides
    /// the duration and the outcome of a request from its number and the number of requests in
    /// flight. Returns the limit after each response.
    fn simulate(
        pace: &mut PaceController,
        response_count: usize,
        mut response: impl FnMut(usize, usize) -> (Duration, Option<PaceOutcome>),
    ) -> Vec<usize> {
        let mut requests: Vec<(Duration, PaceOutcome, PaceTicket)> = Vec::new();
        let (mut now, mut sent_count, mut limits) = (Duration::ZERO, 0, Vec::new());
        while limits.len() < response_count {
            while requests.len() < pace.limit() {
                let in_flight = requests.len() + 1;
                let ticket = pace.start_request(in_flight);
                let (duration, reply) = response(sent_count, in_flight);
                let operation = OPERATIONS[sent_count % OPERATIONS.len()];
                let reply = reply.unwrap_or(PaceOutcome::Answered(operation, duration));
                requests.push((now + duration, reply, ticket));
                sent_count += 1;
            }
            let earliest_index =
                (0..requests.len()).min_by_key(|index| requests[*index].0).unwrap();
            let (answer_time, reply, ticket) = requests.remove(earliest_index);
            now = answer_time;
            pace.record(reply, ticket);
            limits.push(pace.limit());
        }
        limits
    }

    #[test]
    fn the_limit_doubles_while_responses_stay_fast() {
        let mut pace = PaceController::new(ADAPTING);
        let limits = simulate(&mut pace, 400, |n, _| (millis(50 + 20 * (n % 2) as u64), None));
        let mut distinct_limits = limits.clone();
        distinct_limits.dedup();
        assert_eq!(distinct_limits, [16, 32, 64]);
        // At the start, 16 responses do not count, and 32 count. After the doubling, 16 old and 32
        // new responses do not count, and 32 count.
        assert!(limits[16 + 32 + 16 + 32 + 32] == 64, "{limits:?}");
    }

    #[test]
    fn answers_that_waited_for_a_connection_do_not_count() {
        let mut pace = PaceController::new(ADAPTING);
        // The first request of each connection takes five times as long.
        let mut connections = 0;
        let limits = simulate(&mut pace, 400, |_, in_flight| {
            let is_new = in_flight > connections;
            connections = connections.max(in_flight);
            (millis(if is_new { 250 } else { 50 }), None)
        });
        assert_eq!(limits.last(), Some(&64), "{limits:?}");
    }

    #[test]
    fn the_limit_stays_close_to_what_a_service_handles_in_parallel() {
        for capacity in [1, 4, 16, 20, 40] {
            let mut pace = PaceController::new(ADAPTING);
            // If more requests are in flight than the service handles at once, requests wait.
            let limits = simulate(&mut pace, 20_000, |_, in_flight| {
                (millis(20).mul_f64((in_flight as f64 / f64::from(capacity)).max(1.0)), None)
            });
            let settled_limits = &limits[1_000..];
            let max_limit = settled_limits.iter().copied().max().unwrap();
            let expected = 16.max(capacity as usize);
            assert!(
                max_limit <= expected * 3 / 2 + 1,
                "{max_limit} at once where it does {capacity}"
            );
            assert!(settled_limits.iter().all(|limit| *limit >= 16));
        }
    }

    #[test]
    fn varying_response_times_do_not_count_as_slow() {
        let mut pace = PaceController::new(ADAPTING);
        let mut state = 1_u32;
        let limits = simulate(&mut pace, 5_000, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Most responses take around 30 ms. One of 16 takes four times as long.
            let noise = state >> 16;
            (
                millis(20 + u64::from(noise % 20) + if noise.is_multiple_of(16) { 100 } else { 0 }),
                None,
            )
        });
        let settled_limits = &limits[1_000..];
        assert!(
            settled_limits.iter().sum::<usize>() / settled_limits.len() >= 48,
            "{settled_limits:?}"
        );
    }

    #[test]
    fn slow_responses_lower_the_limit_to_the_start_at_most() {
        let mut pace = PaceController::new(ADAPTING);
        simulate(&mut pace, 400, |_, _| (millis(20), None));
        assert_eq!(pace.limit(), 64);
        let limits = simulate(&mut pace, 400, |_, _| (millis(80), None));
        assert_eq!(limits.iter().min(), Some(&16), "{limits:?}");
        // The usual time is learned again. The limit now rises by one at a time.
        let limits = simulate(&mut pace, 4_000, |_, _| (millis(80), None));
        assert!(limits.windows(2).all(|two| two[1] <= two[0] + 1), "{limits:?}");
        assert_eq!(limits.last(), Some(&64));
    }

    #[test]
    fn a_single_slow_or_failed_response_changes_nothing() {
        let mut pace = PaceController::new(ADAPTING);
        let limits = simulate(&mut pace, 5_000, |n, _| match n % 100 {
            17 => (Duration::from_secs(20), None),
            50 => (millis(20), Some(PaceOutcome::Failed)),
            _ => (millis(20), None),
        });
        assert_eq!(limits.last(), Some(&64));
        assert!(limits.windows(2).all(|two| two[0] <= two[1]), "{limits:?}");
    }

    #[test]
    fn only_frequent_failures_lower_the_limit() {
        for (cycle, falls) in [(20, false), (5, true), (1, true)] {
            let mut pace = PaceController::new(ADAPTING);
            let limits = simulate(&mut pace, 2_000, |n, _| {
                (millis(20), n.is_multiple_of(cycle).then_some(PaceOutcome::Failed))
            });
            assert_eq!(limits.iter().any(|limit| *limit < 16), falls, "one of {cycle}: {limits:?}");
        }
    }

    #[test]
    fn a_limit_on_the_rate_is_approached_from_below() {
        let mut pace = PaceController::new(ADAPTING);
        // The service refuses more than 24 requests at once.
        let limits = simulate(&mut pace, 10_000, |_, in_flight| {
            (millis(50), (in_flight > 24).then_some(PaceOutcome::Throttled))
        });
        let settled_limits = &limits[1_000..];
        let throttle_count = settled_limits.windows(2).filter(|two| two[1] < two[0]).count();
        assert!(throttle_count <= 30, "throttled {throttle_count} times");
        assert!(
            settled_limits.iter().sum::<usize>() / settled_limits.len() >= 16,
            "{settled_limits:?}"
        );
    }

    #[test]
    fn a_fixed_limit_never_rises_and_only_complaints_lower_it() {
        assert_eq!(InFlightRange::fixed(usize::MAX).max(), 1_000);
        for number in [0, 1, 2, 3, 16, 64] {
            let range = InFlightRange::fixed(number);
            let max_limit = number.max(1);
            assert_eq!(range.max(), max_limit);
            let mut pace = PaceController::new(range);
            let limits = simulate(&mut pace, 3_000, |n, _| (millis(1 + n as u64 % 100 * 10), None));
            assert!(limits.iter().all(|limit| *limit == max_limit), "{number}: {limits:?}");
            let ticket = pace.start_request(1);
            pace.record(PaceOutcome::Throttled, ticket);
            assert_eq!(pace.limit(), (max_limit / 2).max(1));
            simulate(&mut pace, max_limit * max_limit + 1, |_, _| (millis(1), None));
            assert_eq!(pace.limit(), max_limit);
        }
    }

    #[test]
    fn the_limit_rises_only_if_it_is_used() {
        let mut pace = PaceController::new(ADAPTING);
        for _ in 0..1_000 {
            let ticket = pace.start_request(15);
            pace.record(PaceOutcome::Answered("variable-list", millis(20)), ticket);
        }
        assert_eq!(pace.limit(), 16);
    }

    /// The kinds of rounds in the table at the start of this file.
    #[derive(Clone, Copy, Debug)]
    enum RoundKind {
        Fast,
        Middling,
        Slow,
        Throttled,
        Failing,
    }

    /// The limit follows the table in every sequence of five rounds.
    #[test]
    fn every_sequence_of_rounds_follows_the_table() {
        let kinds = [
            RoundKind::Fast,
            RoundKind::Middling,
            RoundKind::Slow,
            RoundKind::Throttled,
            RoundKind::Failing,
        ];
        let mut sequences = vec![Vec::new()];
        for _ in 0..5 {
            let extend = |sequence: &Vec<RoundKind>| {
                kinds.map(|kind| sequence.iter().copied().chain([kind]).collect::<Vec<_>>())
            };
            sequences = sequences.iter().flat_map(extend).collect();
        }
        for sequence in sequences {
            let mut pace = PaceController::new(ADAPTING);
            let (mut limit, mut rises_slowly) = (16_usize, false);
            for kind in &sequence {
                limit = match kind {
                    RoundKind::Throttled | RoundKind::Failing => (limit / 2).max(1),
                    _ if limit < 16 => limit + 1,
                    RoundKind::Slow if limit > 16 => (limit / 2).max(16),
                    RoundKind::Fast if rises_slowly => (limit + 1).min(64),
                    RoundKind::Fast => (limit * 2).min(64),
                    RoundKind::Middling | RoundKind::Slow => limit,
                };
                rises_slowly |= matches!(kind, RoundKind::Throttled | RoundKind::Failing)
                    || (matches!(kind, RoundKind::Slow) && limit < pace.limit());
                play_round(&mut pace, *kind);
                assert_eq!(
                    (pace.limit(), pace.was_ever_halved),
                    (limit, rises_slowly),
                    "{sequence:?}"
                );
            }
        }
    }

    /// Plays one round. The usual time stays the same.
    fn play_round(pace: &mut PaceController, kind: RoundKind) {
        let seconds = match kind {
            RoundKind::Fast => 1.0,
            RoundKind::Middling => 1.4,
            _ => 3.0,
        };
        let reply = match kind {
            RoundKind::Throttled => PaceOutcome::Throttled,
            RoundKind::Failing => PaceOutcome::Failed,
            _ => PaceOutcome::Answered(OPERATIONS[0], Duration::from_secs_f64(seconds)),
        };
        while pace.round.untimed_requests > 0 {
            pace.start_request(1);
        }
        let is_short = pace.limit() < 16 && !matches!(kind, RoundKind::Failing);
        let response_count = if is_short { pace.limit() } else { pace.sample_size() };
        let ticket = pace.start_request(pace.limit());
        for _ in 0..response_count {
            pace.usual_times
                .insert(OPERATIONS[0], UsualTime { mean: 1.0, sample_count: MIN_SAMPLE });
            pace.record(reply, ticket);
        }
    }
}
