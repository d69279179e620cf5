//! Where a difference comes from: from the reviewed branch, or from a change of the service.
//!
//! This follows from three values: declared at the base of the branch, declared on the branch, and
//! live.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a difference comes from.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The branch declares it.
    Change,
    /// The branch edits a value that also drifted.
    Both,
    /// The base declared it, and the branch does not.
    Removed,
    /// It differed before the branch: somebody changed the service.
    Drift,
    /// The declaration at the base is not known.
    Unknown,
}
