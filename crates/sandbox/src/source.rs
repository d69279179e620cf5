//! The sandbox's sources of time and randomness, which a test can replace.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// A function that gives another value for each call.
#[derive(Clone)]
pub struct Source<T>(Arc<dyn Fn() -> T + Send + Sync>);

/// The source of time.
pub type Clock = Source<Timestamp>;

/// The source of generated secrets, names of bots and ids of requests.
pub type Chance = Source<u128>;

impl<T> Source<T> {
    /// A source that calls `next` each time.
    pub fn new(next: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self(Arc::new(next))
    }
}

impl<T> fmt::Debug for Source<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Source")
    }
}

impl Clock {
    /// The time now.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    /// The machine's clock.
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl Chance {
    /// The same sequence of numbers for the same seed. Clones share one sequence.
    pub fn seeded(seed: u64) -> Self {
        let drawn = AtomicU64::new(0);
        Self::new(move || {
            xxh3_128_with_seed(&drawn.fetch_add(1, Ordering::Relaxed).to_le_bytes(), seed)
        })
    }

    /// 128 random bits as hexadecimal digits.
    pub(crate) fn hex(&self) -> String {
        format!("{:032x}", (self.0)())
    }
}

impl Default for Chance {
    /// The machine's generator, which is fit for secrets.
    fn default() -> Self {
        Self::new(rand::random)
    }
}
