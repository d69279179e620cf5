//! Progress on stderr while a run reads and applies: a bar on a terminal, which disappears at the
//! end, or a line every ten seconds elsewhere. If the service limits requests, both show how long it
//! still takes.

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
    api::{Counts, ReadClient},
    desired::Container,
    observe::Observer,
    text::{count, escape},
};

/// The interval of the spinner, which shows that a slow service is waited for.
const TICK: Duration = Duration::from_millis(120);

/// The interval of lines, short enough for somebody who watches a log.
const EVERY: Duration = Duration::from_secs(10);

/// A bar, or the lines.
#[derive(Debug)]
pub(super) enum Progress {
    /// On a terminal.
    Bar(ProgressBar, Output, Rest),
    /// Elsewhere: the number of finished steps, and a sender that ends the lines when dropped.
    Lines(Arc<AtomicUsize>, #[expect(dead_code, reason = "dropped, not used")] Sender<()>),
}

/// What is left to do.
#[derive(Debug)]
pub(super) struct Rest {
    client: ReadClient,
    /// The requests sent before.
    before: Counts,
    total: usize,
}

impl Rest {
    /// `, about 5 minutes left`, if that is known and not less than one.
    fn after(&self, done: usize) -> String {
        let left = self.client.minutes_left(&self.before, done, self.total).unwrap_or_default();
        match usize::try_from(left).unwrap_or(usize::MAX) {
            0 => String::new(),
            left => format!(", about {} left", count(left, "minute")),
        }
    }
}

impl Progress {
    /// The progress of reading `containers`. Says how long that takes, if the service limits
    /// requests.
    pub(super) fn reading<'c>(
        containers: impl ExactSizeIterator<Item = &'c Container>,
        client: &ReadClient,
        output: &Output,
    ) -> Self {
        let total = containers.len();
        foretell(Observer::requests_for(containers), client, output);
        Self::new("read", "groups and projects", total, client, output)
    }

    /// The progress of `total` requests that read. Says how long they take, too.
    pub(super) fn asking(total: usize, client: &ReadClient, output: &Output) -> Self {
        foretell(total as u64, client, output);
        Self::new("read", "answers", total, client, output)
    }

    /// The progress of applying `total` changes.
    pub(super) fn applying(total: usize, client: &ReadClient, output: &Output) -> Self {
        Self::new("applied", "changes", total, client, output)
    }

    fn new(
        done: &'static str,
        what: &'static str,
        total: usize,
        client: &ReadClient,
        output: &Output,
    ) -> Self {
        let rest = Rest { client: client.clone(), before: client.counts(), total };
        if output.progress { bar(done, rest, output) } else { lines(done, what, rest, output) }
    }

    /// One more step is finished; `what` was its object.
    pub(super) fn step(&self, what: &str) {
        match self {
            Self::Bar(bar, output, rest) => {
                bar.inc(1);
                let left = rest.after(usize::try_from(bar.position()).unwrap_or(usize::MAX));
                let what = output.secrets().redact(what);
                bar.set_message(format!("{}{left}", escape(&what)));
            }
            Self::Lines(done, _) => _ = done.fetch_add(1, Ordering::Relaxed),
        }
    }
}

fn bar(done: &'static str, rest: Rest, output: &Output) -> Progress {
    let total = Some(rest.total as u64);
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {pos}/{len} {wide_msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(done);
    bar.enable_steady_tick(TICK);
    Progress::Bar(bar, output.clone(), rest)
}

/// Says how long `requests` take, if the service limits them and that is a minute or more.
fn foretell(requests: u64, client: &ReadClient, output: &Output) {
    let Some(minutes @ 1..) = client.minutes_for(requests) else { return };
    let number = |number| usize::try_from(number).unwrap_or(usize::MAX);
    let minutes = count(number(minutes), "minute");
    let a_minute = client.a_minute().unwrap_or_default();
    let requests = count(number(requests), "request");
    output.tell(&format!("reading takes about {minutes}: {requests} at {a_minute} a minute\n"));
}

fn lines(done: &'static str, what: &'static str, rest: Rest, output: &Output) -> Progress {
    let (sender, ended) = mpsc::channel();
    let (counter, output) = (Arc::new(AtomicUsize::new(0)), output.clone());
    let so_far = Arc::clone(&counter);
    let say = move || {
        let so_far = so_far.load(Ordering::Relaxed);
        let (total, left) = (rest.total, rest.after(so_far));
        output.tell(&format!("{done} {so_far} of {total} {what}{left}\n"));
    };
    thread::spawn(move || until(&ended, EVERY, say));
    Progress::Lines(counter, sender)
}

/// Calls `say` after every interval, until the other side of `ended` is dropped.
fn until(ended: &Receiver<()>, every: Duration, mut say: impl FnMut()) {
    while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        say();
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
    fn lines_end_with_what_they_are_about() {
        let (sender, ended) = mpsc::channel();
        let (mut sender, mut said) = (Some(sender), 0);
        until(&ended, Duration::ZERO, || {
            said += 1;
            drop(sender.take_if(|_| said == 3));
        });
        assert_eq!(said, 3);
    }
}
