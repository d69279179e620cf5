//! The sandbox's generators of times and random numbers, which a test can replace.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// A function that returns the next value.
#[derive(Clone)]
pub struct Generator<T>(Arc<dyn Fn() -> T + Send + Sync>);

/// The source of time.
pub type Clock = Generator<Timestamp>;

/// The source of generated secrets, names of bots and ids of requests.
pub type RandomSource = Generator<u128>;

impl<T> Generator<T> {
    /// A generator that calls `next` for each value.
    pub fn new(next: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self(Arc::new(next))
    }
}

impl<T> fmt::Debug for Generator<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Generator")
    }
}

impl Clock {
    /// The current time.
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

impl RandomSource {
    /// A generator that returns the same sequence of numbers for the same seed. Clones share one
    /// sequence.
    pub fn seeded(seed: u64) -> Self {
        let count = AtomicU64::new(0);
        Self::new(move || {
            xxh3_128_with_seed(&count.fetch_add(1, Ordering::Relaxed).to_le_bytes(), seed)
        })
    }

    /// 128 random bits as hexadecimal digits.
    pub(crate) fn next_hex(&self) -> String {
        format!("{:032x}", (self.0)())
    }
}

impl Default for RandomSource {
    /// The generator of the operating system, which is secure enough for secrets.
    fn default() -> Self {
        Self::new(rand::random)
    }
}
