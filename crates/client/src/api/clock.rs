//! Time and randomness, so that tests can supply their own.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// The client's source of time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time since some fixed instant. This time never goes back.
    fn now(&self) -> Duration;

    /// The wall-clock time, which is used for responses without a `Date` header.
    fn system_time(&self) -> SystemTime;

    /// Waits for `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()>;
}

/// The client's source of randomness, to spread retries.
pub trait Random: fmt::Debug + Send + Sync {
    /// A number in `0.0..1.0`.
    fn fraction(&self) -> f64;
}

/// The system's clock. It follows tokio's clock, so it stops while a test pauses tokio's time.
#[derive(Debug)]
pub struct SystemClock {
    start_instant: Instant,
    start_time: SystemTime,
}

impl Default for SystemClock {
    /// Creates a clock that starts at zero.
    fn default() -> Self {
        Self { start_instant: Instant::now(), start_time: SystemTime::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start_instant.elapsed()
    }

    fn system_time(&self) -> SystemTime {
        self.start_time + self.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Randomness from the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fraction(&self) -> f64 {
        rand::random()
    }
}
