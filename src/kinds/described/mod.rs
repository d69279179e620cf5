//! Kinds that are data: plain collections, described in files instead of Rust.
//!
//! A [`Description`] says where a collection is, what tells its entries apart, and how the service
//! treats each of their fields. A [`Kind`] is made of it, which is like any other: checks, plan,
//! guards, apply, export, schemas and pages follow. The files here are part of undrift; a user adds
//! others with `--kinds`. What a request does never follows from a description (see
//! [`operation::collection`](crate::operation::collection)).

mod check;
mod description;
mod entry;
mod make;

pub use check::Fault;
pub use description::Description;

use super::Registry;
use crate::{kind::Kind, operation::AnyOp, yaml};

/// The descriptions that are part of undrift: every file of this folder, by name.
pub const FILES: &[&str] = include!(concat!(env!("OUT_DIR"), "/described.rs"));

/// A kind that was described.
pub struct Described {
    /// The kind.
    pub kind: &'static Kind,
    /// Its operations, in each of its scopes.
    pub operations: Vec<AnyOp>,
}

impl Description {
    /// The kind that it describes, to be added to what is `known`; sections cannot be called as any
    /// of `reserved`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn make(&self, known: &Registry, reserved: &[String]) -> Result<Described, Vec<Fault>> {
        let faults = check::check(self, known, reserved);
        if !faults.is_empty() {
            return Err(faults);
        }
        make::make(self).map_err(|why| vec![check::no_path("homes".into(), why)])
    }
}

/// The kinds that are described by files of undrift's own, in their order.
pub(super) fn built_in() -> impl Iterator<Item = Described> {
    let make = |text: &&str| make::make(&yaml::built_in(text));
    FILES.iter().map(make).map(|made| made.expect("every file describes a kind, as a test holds"))
}

#[cfg(test)]
mod tests;
