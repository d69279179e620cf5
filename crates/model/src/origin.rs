//! The origin of a declared value: file, line, column and layer.
//!
//! Every field keeps its origin in the plan, in messages and in reports.

use std::{cmp::Ordering, fmt, ops::Deref, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The layer of a value. Later variants take precedence over earlier ones.
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

impl Layer {
    /// The kinds of documents that are rules: they declare values for other documents.
    pub const RULE_KINDS: [&str; 2] = ["Defaults", "Profile"];

    /// Every layer, from the lowest to the highest.
    pub const ALL: [Self; 4] = [Self::Defaults, Self::Profile, Self::Group, Self::Project];
}

/// A location in a manifest. Origins with the same file and layer share one [`FileLayer`], because
/// a run has millions of origins.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WrittenOrigin", into = "WrittenOrigin")]
pub struct Origin {
    /// The file and the layer.
    pub file_layer: Arc<FileLayer>,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

/// A file and a layer.
#[derive(Debug, PartialEq, Eq)]
pub struct FileLayer {
    /// The file as seen from the working directory, with `/` between its parts.
    pub file: Arc<str>,
    /// The layer.
    pub layer: Layer,
}

/// The form of an origin in reports and saved plans.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Origin")]
struct WrittenOrigin {
    /// The file as seen from the working directory, with `/` between its parts.
    file: Arc<str>,
    /// The line, from 1.
    line: u32,
    /// The column in characters, from 1.
    column: u32,
    /// The layer.
    layer: Layer,
}

impl From<WrittenOrigin> for Origin {
    fn from(WrittenOrigin { file, line, column, layer }: WrittenOrigin) -> Self {
        Self::new(file, line, column, layer)
    }
}

impl From<Origin> for WrittenOrigin {
    fn from(Origin { file_layer, line, column }: Origin) -> Self {
        Self { file: file_layer.file.clone(), line, column, layer: file_layer.layer }
    }
}

impl Origin {
    /// A location in `file`.
    pub fn new(file: impl Into<Arc<str>>, line: u32, column: u32, layer: Layer) -> Self {
        Self { file_layer: Arc::new(FileLayer { file: file.into(), layer }), line, column }
    }
}

impl Deref for Origin {
    type Target = FileLayer;

    fn deref(&self) -> &FileLayer {
        &self.file_layer
    }
}

/// Origins are ordered by file, line, column and layer.
impl Ord for Origin {
    fn cmp(&self, other: &Self) -> Ordering {
        let [key, other_key] =
            [self, other].map(|origin| (&origin.file, origin.line, origin.column, origin.layer));
        key.cmp(&other_key)
    }
}

impl PartialOrd for Origin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({:?})", self.layer)
    }
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
    /// The location of the value.
    pub origin: Origin,
}
