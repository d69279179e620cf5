//! undrift keeps GitLab projects configured as declared in Git.
//!
//! ```text
//! manifests --read, layer, check--> Desired --select--.
//!                                                     |
//! service --observe (read-only)--> Live -------> diff + plan --> Plan --> report
//!                                                                  |
//!                                                               approve --> apply --> Events --> report
//! ```
//!
//! This crate contains the frontends, and re-exports the modules of the crates below it:
//! `undrift_model` (the kinds of managed objects), `undrift_core` (from manifests to plans, and
//! back) and `undrift_client` (requests to the service).
//!
//! | layer | modules | contents |
//! |---|---|---|
//! | vocabulary | [`text`], [`value`], [`secret`], [`field`], [`level`], [`operation`], [`page`], [`release`], [`cause`], [`origin`], [`address`], [`digest`], [`yaml`], [`diagnostic`], [`planted`] | types that every layer uses |
//! | kinds | [`schema`], [`kind`], [`catalogue`] | what a kind is, and the description of each |
//! | declarations | [`desired`], [`selection`] | declared state, and the part of it that a run selects |
//! | manifest | [`manifest`] | makes [`desired::Desired`] from manifests: reads, layers and checks them. Of the layers below in this table, only the frontends import this one |
//! | reconcile, pure | [`live`], [`diff`], [`plan`] | live state, differences, plans, approval |
//! | export, pure | [`export`], [`absorb`] | live state as manifests, and drift as edits of manifests |
//! | api | [`api`] | the only place that sends requests |
//! | reconcile, with IO | [`observe`], [`apply`], [`snapshot`] | read the live state, carry out plans |
//! | frontends | [`report`], [`comment`], [`cli`] | output, comments in merge requests, the command line; `sandbox` is the crate `undrift_sandbox` |
//!
//! Start with [`plan`], then read [`kind`] and one kind of the [`catalogue`], then [`apply`].

pub use undrift_client::{api, apply, observe, snapshot};
pub use undrift_core::{absorb, desired, diff, export, live, manifest, plan, selection};
pub use undrift_model::{
    address, catalogue, cause, diagnostic, digest, field, kind, level, operation, origin, page,
    planted, release, schema, secret, steps, text, value, yaml,
};

pub mod cli;
pub mod comment;
pub mod report;
#[cfg(feature = "sandbox")]
pub use undrift_sandbox as sandbox;
