//! The only crate that sends requests: the client with its limits and retries, the reader of live
//! state, the executor of plans, and snapshots.
//!
//! | layer | modules | contents |
//! |---|---|---|
//! | api | [`api`] | the only place that sends requests |
//! | reconcile | [`observe`], [`apply`] | read the live state, carry out plans |
//! | snapshot | [`snapshot`] | live state as a file, and planning from it |

use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(test)]
use undrift_core::{absorb, export, selection};
use undrift_core::{desired, diff, live, plan};
use undrift_model::{
    address, catalogue, cause, digest, field, kind, level, operation, origin, page, planted,
    release, secret, steps, text, value,
};

pub mod api;
pub mod apply;
pub mod observe;
pub mod snapshot;

/// Locks a mutex, also after a thread panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "../../../tests/support/sample.rs"]
mod sample;
