//! Decides, without IO, whether a request is sent again.
//!
//! The decision depends on two facts: the possible effect of sending the request again
//! ([`RetrySafety`], from the table of operations), and the outcome of the last attempt.
//!
//! | effect of sending again | not sent | 429, 409 lock, 400 topic | 5xx, lost, unreadable response | too large | refused, TLS |
//! |---|---|---|---|---|---|
//! | reads | again | again | again | fail | fail |
//! | the same result | again | again | again, then read back | read back | fail |
//! | refused, or a second object | again | again | read back | read back | fail |
//! | harmful | again | fail | read back | read back | fail |
//!
//! "Again" means at most [`MAX_RETRIES`] retries, with exponential back-off and full jitter. The
//! caller sleeps before each retry. "Read back" means that the caller reads the live state.

use std::time::Duration;

use crate::{operation::RetrySafety, planted::Bug};

/// The maximum number of retries of a request.
pub const MAX_RETRIES: u32 = 5;

/// The longest wait that the service may request: its longest rate-limit window. A request that
/// would have to wait longer fails.
pub const MAX_WAIT: Duration = Duration::from_secs(3600);

/// The first back-off. It doubles with each retry, and is 8 s before the last of [`MAX_RETRIES`]
/// retries.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);

/// The outcome of one attempt to send a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The service answered with success.
    Success,
    /// The request was not sent, or did not arrive.
    NotSent,
    /// The request may have arrived, but no response arrived.
    Lost,
    /// TLS failed: the other side is not trusted.
    Untrusted,
    /// The service answered 429: too many requests.
    Throttled,
    /// The service refused the request because of another request at the same time. The status is
    /// 409 for a locked object, or 400 for a topic that both requests create. Nothing was saved.
    Locked,
    /// The status means a failure of the service, or of a proxy.
    Faulty,
    /// The status is a success, but the body cannot be read.
    Unreadable,
    /// The body exceeds the size limit.
    Oversized,
    /// The service refused the request. Sending it again is useless.
    Refused,
}

impl SendOutcome {
    /// True if the service may have executed a write although no response confirms it.
    pub const fn is_ambiguous(self) -> bool {
        matches!(self, Self::Lost | Self::Faulty | Self::Unreadable | Self::Oversized)
    }
}

/// True if `status` means a failure of the service, or of a proxy. 408 comes from a proxy that
/// stopped waiting.
pub const fn is_failure_status(status: u16) -> bool {
    matches!(status, 408 | 500 | 502..=504 | 520..=530)
}

/// Returns the wait before the next attempt, after attempt number `attempt` (counted from 1).
/// Returns `None` if there must be no further attempt. `requested_wait` is the wait that the
/// service requested. `jitter` is in `0.0..1.0`.
pub fn retry_delay(
    retry_safety: RetrySafety,
    outcome: SendOutcome,
    attempt: u32,
    requested_wait: Option<Duration>,
    jitter: f64,
) -> Option<Duration> {
    let retry_safety = if Bug::ResendLostCreates.is_planted() && retry_safety != RetrySafety::Reads
    {
        RetrySafety::Idempotent
    } else {
        retry_safety
    };
    let is_repeatable = match outcome {
        SendOutcome::Success
        | SendOutcome::Refused
        | SendOutcome::Untrusted
        | SendOutcome::Oversized => false,
        SendOutcome::NotSent => true,
        SendOutcome::Throttled | SendOutcome::Locked => retry_safety != RetrySafety::Never,
        SendOutcome::Lost | SendOutcome::Faulty | SendOutcome::Unreadable => {
            matches!(retry_safety, RetrySafety::Reads | RetrySafety::Idempotent)
        }
    };
    let may_retry = attempt <= MAX_RETRIES && requested_wait.is_none_or(|wait| wait <= MAX_WAIT);
    if !is_repeatable || !may_retry {
        return None;
    }
    let ceiling = FIRST_BACKOFF * (1 << attempt.saturating_sub(1));
    // After a 429 without a requested wait, wait for twice the ceiling, without jitter. This is at
    // least one second.
    let backoff =
        if outcome == SendOutcome::Throttled { ceiling * 2 } else { ceiling.mul_f64(jitter) };
    // Wait at least the requested time, and up to a tenth longer, so that clients do not all
    // retry at once.
    let requested_wait = requested_wait.map(|wait| wait + wait.mul_f64(jitter / 10.0));
    Some(requested_wait.unwrap_or_default().max(backoff))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL_RETRY_SAFETIES: [RetrySafety; 5] = [
        RetrySafety::Reads,
        RetrySafety::Idempotent,
        RetrySafety::RefusesDuplicates,
        RetrySafety::MayDuplicate,
        RetrySafety::Never,
    ];

    /// A cell of the table: retry while attempts are left, or stop at once. Contains what the caller
    /// does after the last attempt.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum TableCell {
        Retry(NextAction),
        Stop(NextAction),
    }

    /// The action of the caller when the request is not sent again.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum NextAction {
        Done,
        Fail,
        ReadBack,
    }

    #[test]
    fn every_cell_of_the_table_holds_at_every_attempt() {
        use NextAction::{Done, Fail, ReadBack};
        use TableCell::{Retry, Stop};
        let table = [
            (SendOutcome::Success, [Stop(Done), Stop(Done), Stop(Done), Stop(Done), Stop(Done)]),
            (
                SendOutcome::NotSent,
                [Retry(Fail), Retry(Fail), Retry(Fail), Retry(Fail), Retry(Fail)],
            ),
            (
                SendOutcome::Throttled,
                [Retry(Fail), Retry(Fail), Retry(Fail), Retry(Fail), Stop(Fail)],
            ),
            (SendOutcome::Locked, [Retry(Fail), Retry(Fail), Retry(Fail), Retry(Fail), Stop(Fail)]),
            (
                SendOutcome::Lost,
                [Retry(Fail), Retry(ReadBack), Stop(ReadBack), Stop(ReadBack), Stop(ReadBack)],
            ),
            (
                SendOutcome::Faulty,
                [Retry(Fail), Retry(ReadBack), Stop(ReadBack), Stop(ReadBack), Stop(ReadBack)],
            ),
            (
                SendOutcome::Unreadable,
                [Retry(Fail), Retry(ReadBack), Stop(ReadBack), Stop(ReadBack), Stop(ReadBack)],
            ),
            (
                SendOutcome::Oversized,
                [Stop(Fail), Stop(ReadBack), Stop(ReadBack), Stop(ReadBack), Stop(ReadBack)],
            ),
            (SendOutcome::Refused, [Stop(Fail), Stop(Fail), Stop(Fail), Stop(Fail), Stop(Fail)]),
            (SendOutcome::Untrusted, [Stop(Fail), Stop(Fail), Stop(Fail), Stop(Fail), Stop(Fail)]),
        ];
        for (outcome, cells) in table {
            // An ambiguous outcome of a request that is never resent is always read back.
            assert_eq!(outcome.is_ambiguous(), cells[4] == Stop(ReadBack), "{outcome:?}");
            for (retry_safety, cell) in ALL_RETRY_SAFETIES.into_iter().zip(cells) {
                for attempt in 1..=MAX_RETRIES + 2 {
                    let delay = retry_delay(retry_safety, outcome, attempt, None, 0.5);
                    let context = format!("{retry_safety:?} {outcome:?} {attempt}: {delay:?}");
                    match cell {
                        Retry(_) if attempt <= MAX_RETRIES => {
                            assert!(delay.is_some(), "{context}");
                        }
                        Retry(then) | Stop(then) => {
                            assert_eq!(delay, None, "{context}");
                            let is_in_doubt =
                                retry_safety != RetrySafety::Reads && outcome.is_ambiguous();
                            assert_eq!(then == ReadBack, is_in_doubt, "{context}");
                            assert_eq!(then == Done, outcome == SendOutcome::Success, "{context}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn failure_statuses_come_from_the_service_or_a_proxy() {
        let actual: Vec<_> = (100..=999).filter(|status| is_failure_status(*status)).collect();
        let expected: Vec<_> = [408, 500, 502, 503, 504].into_iter().chain(520..=530).collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn a_wait_is_the_longer_of_back_off_and_requested_wait() {
        let ms = Duration::from_millis;
        for (attempt, ceiling) in (1..).zip([500, 1_000, 2_000, 4_000, 8_000]) {
            for (outcome, tenths, backoff) in [
                (SendOutcome::Faulty, 0, 0),
                (SendOutcome::Faulty, 5, ceiling / 2),
                (SendOutcome::Faulty, 10, ceiling),
                (SendOutcome::Throttled, 0, 2 * ceiling),
                (SendOutcome::Throttled, 10, 2 * ceiling),
            ] {
                for wait in [None, Some(0), Some(1_000), Some(6_000), Some(60_000)] {
                    let delay = wait.map_or(0, |wait| wait + wait * tenths / 100).max(backoff);
                    let jitter = f64::from(u8::try_from(tenths).unwrap()) / 10.0;
                    let actual =
                        retry_delay(RetrySafety::Reads, outcome, attempt, wait.map(ms), jitter);
                    assert_eq!(actual, Some(ms(delay)), "{outcome:?} {attempt} {wait:?} {jitter}");
                }
            }
        }
        let delay_for =
            |wait| retry_delay(RetrySafety::Reads, SendOutcome::Throttled, 1, Some(wait), 0.0);
        assert_eq!(delay_for(MAX_WAIT), Some(MAX_WAIT));
        assert_eq!(delay_for(MAX_WAIT + ms(1)), None);
    }

    proptest! {
        #[test]
        fn a_wait_is_at_least_as_requested_and_at_most_the_maximum(attempt in 1u32..50, requested in proptest::option::of(0u64..10_000), jitter in 0f64..1.0) {
            let requested = requested.map(Duration::from_secs);
            for outcome in [SendOutcome::Throttled, SendOutcome::Faulty] {
                if let Some(wait) = retry_delay(RetrySafety::Reads, outcome, attempt, requested, jitter) {
                    prop_assert!(attempt <= MAX_RETRIES);
                    prop_assert!(wait >= requested.unwrap_or_default());
                    prop_assert!(wait <= MAX_WAIT + MAX_WAIT / 10);
                    prop_assert!(outcome != SendOutcome::Throttled || wait >= Duration::from_secs(1));
                }
            }
        }
    }
}
