//! Whose a difference is: of the branch that is reviewed, or of somebody who changed the service.
//!
//! It follows from three values: what was declared at the base of the branch, what is declared here,
//! and what is there.

use schemars::JsonSchema;
use serde::Serialize;

/// Whose a difference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// This branch asks for it.
    Change,
    /// This branch edits what also drifted.
    Both,
    /// The base declared it, and this branch does not.
    Removed,
    /// It was there before: somebody changed the service.
    Drift,
    /// What was declared at the base is not known.
    Unknown,
}
