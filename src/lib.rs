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
//! Modules import only from layers above them in this list (`tests/layers.rs` checks that):
//!
//! | layer | modules | what they are |
//! |---|---|---|
//! | vocabulary | [`text`], [`value`], [`secret`], [`field`], [`level`], [`operation`], [`page`], [`release`], [`cause`], [`origin`], [`address`], [`digest`], [`yaml`], [`diagnostic`], [`planted`] | words that every layer speaks |
//! | kinds | [`schema`], [`kind`], [`kinds`] | one file for one sort of thing |
//! | declarations | [`desired`], [`selection`] | what is declared, whoever read it, and the part of it that a run looks at |
//! | manifest | [`manifest`] | what people write: read, layered and checked, up to [`desired::Desired`]; of what is below, only the frontends import it |
//! | reconcile, pure | [`live`], [`diff`], [`plan`] | what is there, what differs, what to do, what of it may run |
//! | api | [`api`] | the one place that sends requests |
//! | reconcile, with IO | [`observe`], [`apply`] | reading what is there, doing what was planned |
//! | export, pure | [`export`], [`absorb`] | what is there, as manifests, and taken back into those that are there |
//! | frontends | [`report`], [`comment`], [`cli`] | the embedded service, and what people see; `sandbox` is the crate `undrift_sandbox` |
//!
//! Start with [`plan`], then read [`kind`] and one of the [`kinds`], then [`apply`].

pub mod absorb;
pub mod address;
pub mod api;
pub mod apply;
pub mod cause;
pub mod cli;
pub mod comment;
pub mod desired;
pub mod diagnostic;
pub mod diff;
pub mod digest;
pub mod export;
pub mod field;
pub mod kind;
pub mod kinds;
pub mod level;
pub mod live;
pub mod manifest;
pub mod observe;
pub mod operation;
pub mod origin;
pub mod page;
pub mod plan;
pub mod planted;
pub mod release;
pub mod report;
#[cfg(feature = "sandbox")]
pub use undrift_sandbox as sandbox;
pub mod schema;
pub mod secret;
pub mod selection;
pub mod snapshot;
mod steps;
pub mod text;
pub mod value;
pub mod yaml;
