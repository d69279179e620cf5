//! Time and chance, so that a test can supply its own.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// Where the client takes the time from.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time since some fixed instant; it never goes back.
    fn now(&self) -> Duration;

    /// What a clock on the wall shows, to read dates that an answer without a `Date` names.
    fn wall(&self) -> SystemTime;

    /// Waits.
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()>;
}

/// Where the client takes chance from, to spread retries.
pub trait Random: fmt::Debug + Send + Sync {
    /// A number of `0.0..1.0`.
    fn unit(&self) -> f64;
}

/// The clock of the system. It follows tokio's clock, so it stands still where a test pauses that.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
    wall: SystemTime,
}

impl SystemClock {
    /// Starts at zero.
    pub fn new() -> Self {
        Self { start: Instant::now(), wall: SystemTime::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wall(&self) -> SystemTime {
        self.wall + self.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Chance from the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn unit(&self) -> f64 {
        rand::random()
    }
}
