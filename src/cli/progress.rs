//! Progress on stderr while a run reads and applies: a bar on a terminal, which disappears at the
//! end, or a line every ten seconds elsewhere. If the service limits requests, both show the time
//! left.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Output;
use crate::{
    api::{CallCounts, ReadClient},
    desired::Container,
    observe::Observer,
    text::{count, escape},
};

/// The interval of the spinner, which shows that the run waits for a slow service.
const TICK_INTERVAL: Duration = Duration::from_millis(120);

/// The interval of lines, short enough for somebody who watches a log.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// A bar, or lines of text.
#[derive(Debug)]
pub(super) enum Progress {
    /// A bar, on a terminal.
    Bar(ProgressBar, Output, DurationEstimator),
    /// Lines of text, elsewhere. Holds the number of finished steps, and a sender. Dropping the
    /// sender ends the lines.
    Lines(Arc<AtomicUsize>, #[expect(dead_code, reason = "dropped, not used")] Sender<()>),
}

/// The remaining work of a run, to estimate its duration.
#[derive(Debug)]
pub(super) struct DurationEstimator {
    client: ReadClient,
    /// The counts of the requests that were sent before this work.
    start_counts: CallCounts,
    total: usize,
}

impl DurationEstimator {
    /// The estimate, such as `, about 5 minutes left`; empty if it is unknown or below one minute.
    fn describe_time_left(&self, done_count: usize) -> String {
        match self.client.remaining_minutes(&self.start_counts, done_count, self.total) {
            None | Some(0) => String::new(),
            Some(minutes) => format!(", about {} left", count(minutes, "minute")),
        }
    }
}

impl Progress {
    /// The progress of reading `containers`. Prints the expected duration if the service limits
    /// requests.
    pub(super) fn for_reading(
        containers: &[Container],
        client: &ReadClient,
        output: &Output,
    ) -> Self {
        announce_duration(Observer::estimate_requests(containers), client, output);
        Self::new("read", "groups and projects", containers.len(), client, output)
    }

    /// The progress of `total` read requests. Prints the expected duration if the service limits
    /// requests.
    pub(super) fn for_requests(total: usize, client: &ReadClient, output: &Output) -> Self {
        announce_duration(total as u64, client, output);
        Self::new("read", "responses", total, client, output)
    }

    /// The progress of applying `total` changes.
    pub(super) fn for_applying(total: usize, client: &ReadClient, output: &Output) -> Self {
        Self::new("applied", "changes", total, client, output)
    }

    fn new(
        verb: &'static str,
        noun: &'static str,
        total: usize,
        client: &ReadClient,
        output: &Output,
    ) -> Self {
        let remaining_work =
            DurationEstimator { client: client.clone(), start_counts: client.counts(), total };
        if output.shows_progress {
            let bar =
                ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
            let template = "{spinner} {prefix} {pos}/{len} {wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_prefix(verb);
            bar.enable_steady_tick(TICK_INTERVAL);
            return Self::Bar(bar, output.clone(), remaining_work);
        }
        let (sender, end_receiver) = mpsc::channel();
        let (counter, output) = (Arc::new(AtomicUsize::new(0)), output.clone());
        let thread_counter = Arc::clone(&counter);
        thread::spawn(move || {
            repeat_until(&end_receiver, LINE_INTERVAL, || {
                let done_count = thread_counter.load(Ordering::Relaxed);
                let estimate = remaining_work.describe_time_left(done_count);
                output.eprint(&format!("{verb} {done_count} of {total} {noun}{estimate}\n"));
            });
        });
        Self::Lines(counter, sender)
    }

    /// Counts a finished step and shows its `object`.
    pub(super) fn count_step(&self, object: &str) {
        match self {
            Self::Bar(bar, output, remaining_work) => {
                bar.inc(1);
                let done_count = usize::try_from(bar.position()).unwrap_or(usize::MAX);
                let shown_object = output.secrets().redact(object);
                let estimate = remaining_work.describe_time_left(done_count);
                bar.set_message(format!("{}{estimate}", escape(&shown_object)));
            }
            Self::Lines(counter, _) => _ = counter.fetch_add(1, Ordering::Relaxed),
        }
    }
}

/// Prints the expected duration of `requests`, if the service limits requests and it takes at least one minute.
fn announce_duration(requests: u64, client: &ReadClient, output: &Output) {
    let Some(minutes @ 1..) = client.estimate_minutes(requests) else { return };
    let (minutes, requests) = (count(minutes, "minute"), count(requests, "request"));
    let max_rate = client.requests_per_minute().unwrap_or_default();
    output.eprint(&format!("reading takes about {minutes}: {requests} at {max_rate} a minute\n"));
}

/// Calls `report` after every interval, until the sender of `end_receiver` is dropped.
fn repeat_until(end_receiver: &Receiver<()>, interval: Duration, mut report: impl FnMut()) {
    while end_receiver.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        report();
    }
}

/// Removes the bar, however the run ends.
impl Drop for Progress {
    fn drop(&mut self) {
        if let Self::Bar(bar, ..) = self {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_when_the_sender_is_dropped() {
        let (sender, end_receiver) = mpsc::channel();
        let (mut sender, mut line_count) = (Some(sender), 0);
        repeat_until(&end_receiver, Duration::ZERO, || {
            line_count += 1;
            drop(sender.take_if(|_| line_count == 3));
        });
        assert_eq!(line_count, 3);
    }
}
