//! The sandbox's source of randomness, which a test can replace.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The source of generated secrets, names of bots and ids of requests.
#[derive(Clone)]
pub struct Chance(Arc<dyn Fn() -> u128 + Send + Sync>);

impl Chance {
    /// Randomness from `source`.
    pub fn new(source: impl Fn() -> u128 + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

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

impl fmt::Debug for Chance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Chance")
    }
}
