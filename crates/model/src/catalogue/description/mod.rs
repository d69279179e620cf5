//! Every kind is described in YAML.
//!
//! A description contains the path of a kind, its identity, and how the service treats each field
//! ([`Kind`]). Checks, plan, guards, apply, export, schemas and pages use it. The files of
//! `catalogue` are part of undrift; users add plain collections with `--kinds`, within the limits
//! of `check.rs`. A description can never turn a read into a write (see
//! [`operation::collection`](crate::operation::collection)).

mod check;
mod convention;
mod fault;
mod make;
mod rules;

pub use fault::DescriptionFault;

use super::Registry;
use crate::{kind::Kind, operation::AnyOp, value::Json, yaml};

/// The descriptions in `catalogue` as JSON texts, in the order of their file names.
pub const DESCRIPTION_TEXTS: &[&str] = include!(concat!(env!("OUT_DIR"), "/descriptions.rs"));

/// A kind made from a description.
pub struct DescribedKind {
    /// The kind.
    pub kind: &'static Kind,
    /// The operations of the kind in all its scopes.
    pub operations: Vec<AnyOp>,
}

impl DescribedKind {
    /// Makes a kind from a user's description. `json` is the description as JSON. The kinds in
    /// `registry` exist already. The section must not have a name in `reserved_names`.
    ///
    /// # Errors
    /// All faults of the description.
    pub fn from_description(
        description: Kind,
        json: &Json,
        registry: &Registry,
        reserved_names: &[String],
    ) -> Result<Self, Vec<DescriptionFault>> {
        let faults = check::check(&description, json, registry, reserved_names);
        if !faults.is_empty() {
            return Err(faults);
        }
        make::make_kind(description, registry)
            .map_err(|detail| vec![fault::new_fault("homes", "no_path", detail)])
    }
}

/// The sections that come first in output and documentation, in this order. The other sections
/// follow in the order of their file names.
const FIRST_SECTIONS: &str = "create settings variables members shares protected_branches approvals \
    approval_rules pipeline_schedules hooks integrations push_rule fork_of archived";

/// The kinds that the files of `catalogue` describe, in the order of output.
fn read_descriptions() -> Vec<Kind> {
    let mut kinds: Vec<Kind> =
        DESCRIPTION_TEXTS.iter().map(|text| yaml::read_table(text)).collect();
    kinds.sort_by_key(|kind| {
        FIRST_SECTIONS
            .split(' ')
            .position(|section_name| section_name == kind.section)
            .unwrap_or(usize::MAX)
    });
    kinds
}

/// The built-in kinds, in the order of output.
pub(super) fn built_in_registry() -> Registry {
    read_descriptions().into_iter().fold(Registry::default(), |registry, kind| {
        let described_kind = make::make_kind(kind, &registry);
        registry.with_kind(described_kind.expect("a test checks that every file describes a kind"))
    })
}

#[cfg(test)]
mod tests;
