//! This crate makes plans from manifests, and manifests from live state. It computes the declared
//! state, its differences from the live state, and ordered steps. It sends no requests.
//!
//! | layer | modules | contents |
//! |---|---|---|
//! | declarations | [`desired`], [`selection`] | declared state, and the part of it that a run selects |
//! | manifest | [`manifest`] | reads, layers and checks manifests, up to [`desired::Desired`] |
//! | reconcile | [`live`], [`diff`], [`plan`] | live state, differences, plans, approval |
//! | export | [`export`], [`absorb`] | live state as manifests, and drift as edits of manifests |

use undrift_model::{
    address, catalogue, cause, diagnostic, digest, field, kind, level, operation, origin, page,
    planted, release, schema, secret, steps, text, value, yaml,
};

pub mod absorb;
pub mod desired;
pub mod diff;
pub mod export;
pub mod live;
pub mod manifest;
pub mod plan;
pub mod selection;

#[cfg(test)]
#[path = "../../../tests/support/corpus.rs"]
#[expect(dead_code, reason = "only the suite of the command line checks the cases")]
mod corpus;
