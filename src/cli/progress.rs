//! Progress on stderr while a run reads and applies: a bar on a terminal, which disappears at the
//! end, or a line every ten seconds elsewhere.

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

use super::output::Output;
use crate::text::escape;

/// The interval of the spinner, which shows that a slow service is waited for.
const TICK: Duration = Duration::from_millis(120);

/// The interval of lines, short enough for somebody who watches a log.
const EVERY: Duration = Duration::from_secs(10);

/// A bar, or the lines.
#[derive(Debug)]
pub(super) enum Progress {
    /// On a terminal.
    Bar(ProgressBar, Output),
    /// Elsewhere: the number of finished steps, and a sender that ends the lines when dropped.
    Lines(Arc<AtomicUsize>, #[expect(dead_code, reason = "dropped, not used")] Sender<()>),
}

impl Progress {
    /// The progress of reading `total` groups and projects.
    pub(super) fn reading(total: usize, output: &Output) -> Self {
        Self::new("read", "groups and projects", total, output)
    }

    /// The progress of applying `total` changes.
    pub(super) fn applying(total: usize, output: &Output) -> Self {
        Self::new("applied", "changes", total, output)
    }

    fn new(done: &'static str, what: &'static str, total: usize, output: &Output) -> Self {
        if output.progress { bar(done, total, output) } else { lines(done, what, total, output) }
    }

    /// One more step is finished; `what` was its object.
    pub(super) fn step(&self, what: &str) {
        match self {
            Self::Bar(bar, output) => {
                bar.set_message(escape(&output.secrets().redact(what)).into_owned());
                bar.inc(1);
            }
            Self::Lines(done, _) => _ = done.fetch_add(1, Ordering::Relaxed),
        }
    }
}

fn bar(done: &'static str, total: usize, output: &Output) -> Progress {
    let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {pos}/{len} {wide_msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(done);
    bar.enable_steady_tick(TICK);
    Progress::Bar(bar, output.clone())
}

fn lines(done: &'static str, what: &'static str, total: usize, output: &Output) -> Progress {
    let (sender, ended) = mpsc::channel();
    let (counter, output) = (Arc::new(AtomicUsize::new(0)), output.clone());
    let so_far = Arc::clone(&counter);
    let say = move || {
        output.tell(&format!("{done} {} of {total} {what}\n", so_far.load(Ordering::Relaxed)));
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
        if let Self::Bar(bar, _) = self {
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
