//! The only part of undrift that asks the service: the client with its limits and retries, reading the live
//! state, carrying out plans, and snapshots of what was read.
//!
//! | layer | modules | contents |
//! |---|---|---|
//! | api | [`api`] | the only place that sends requests |
//! | reconcile | [`observe`], [`apply`] | read the live state, carry out plans |
//! | snapshot | [`snapshot`] | live state as a file, and planning from it |

#[cfg(test)]
use undrift_core::{absorb, export, selection};
use undrift_core::{desired, diff, live, plan};
use undrift_model::{
    address, cause, digest, field, kind, kinds, level, operation, page, planted, release, secret,
    steps, text, value,
};

pub mod api;
pub mod apply;
pub mod observe;
pub mod snapshot;

#[cfg(test)]
#[path = "../../../tests/support/sample.rs"]
mod sample;
