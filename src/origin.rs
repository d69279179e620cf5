//! Where a declared value comes from: file, line, column and layer.
//!
//! An origin follows every field into the plan, into messages and into reports.

use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The layer of a value. A later variant outranks an earlier one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// A `Defaults` document.
    Defaults,
    /// A `Profile` document.
    Profile,
    /// A `Group` document.
    Group,
    /// A `Project` document.
    Project,
}

/// A place in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The file as seen from the working directory, with `/` between its parts.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The layer.
    pub layer: Layer,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A value with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub origin: Origin,
}
