//! Descriptions in YAML: whole kinds (plain collections), and the fields of kinds with rules in
//! Rust.
//!
//! A [`Description`] contains the path of a collection, its identity, and how the service treats
//! each field. It becomes an ordinary [`Kind`]: checks, plan, guards, apply, export, schemas and
//! pages work as for any other. The files in this folder are part of undrift; users add others with
//! `--kinds`. The effect of a request never depends on a description (see
//! [`operation::collection`](crate::operation::collection)).

mod check;
mod description;
mod make;

pub use check::Fault;
pub use description::Description;

use super::Registry;
use crate::{kind::Kind, operation::AnyOp, yaml};

/// The texts of the descriptions in this folder, by file name.
pub const FILES: &[&str] = include!(concat!(env!("OUT_DIR"), "/described.rs"));

/// A kind made from a description.
pub struct Described {
    /// The kind.
    pub kind: &'static Kind,
    /// Its operations, in each of its scopes.
    pub operations: Vec<AnyOp>,
}

impl Description {
    /// The fields of the identity that every entry has.
    fn always_named(&self) -> impl Iterator<Item = &String> {
        self.identity.iter().filter(|name| !self.either.contains(name))
    }

    /// Makes the kind. `known` are the kinds that exist already; the section must not have a name
    /// of `reserved`.
    ///
    /// # Errors
    /// All faults of the description.
    pub fn make(&self, known: &Registry, reserved: &[String]) -> Result<Described, Vec<Fault>> {
        let faults = check::check(self, known, reserved);
        if !faults.is_empty() {
            return Err(faults);
        }
        make::make(self, known).map_err(|why| vec![check::no_path("homes".into(), why)])
    }
}

/// `known` with the kinds of the description files in this folder, in their order.
pub(super) fn built_in(known: Registry) -> Registry {
    FILES.iter().fold(known, |known, text| {
        let made = make::make(&yaml::built_in(text), &known);
        known.with(made.expect("every file describes a kind, as a test holds"))
    })
}

#[cfg(test)]
mod tests;
