//! Bars on stderr while a run reads and applies; gone when it ends.

use std::{sync::Arc, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{secret::Secrets, text::escape};

/// How often the spinner turns, so that one sees that a slow service is waited for.
const TICK: Duration = Duration::from_millis(120);

/// A bar, or nothing at all where nobody would see it.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    secrets: Arc<Secrets>,
}

impl Progress {
    /// A bar for `total` steps of `doing`, which never shows what `secrets` knows; it is drawn only
    /// if `visible`.
    pub fn new(visible: bool, doing: &'static str, total: usize, secrets: Arc<Secrets>) -> Self {
        if !visible {
            return Self { bar: ProgressBar::hidden(), secrets };
        }
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {pos}/{len} {wide_msg}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(doing);
        bar.enable_steady_tick(TICK);
        Self { bar, secrets }
    }

    /// One step more is done; `what` is what it was about.
    pub fn step(&self, what: &str) {
        if !self.bar.is_hidden() {
            self.bar.set_message(escape(&self.secrets.redact(what)).into_owned());
        }
        self.bar.inc(1);
    }
}

/// The bar goes away whatever ends the run.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
