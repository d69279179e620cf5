//! Renders plans and reports, for people and for machines.
//!
//! A renderer reads finished values and makes no decisions. [`terminal`] writes text for people. Files
//! have one [`model`] and several [`Format`]s: [`json`] for programs, [`markdown`] for the comment
//! of a merge request, [`gitlab_terraform`] and [`code_quality`] for its widgets, [`html`] for a
//! page. Names and messages come from manifests and from the service and may be hostile; text for
//! people is escaped in one place, the [`canvas`]. Every renderer gets the secrets and removes them
//! before any layout: from text in the canvas, from JSON in [`redact`].

pub mod canvas;
pub mod code_quality;
mod compare;
pub mod concise;
mod format;
pub mod gitlab_terraform;
pub mod html;
pub mod json;
pub mod markdown;
pub mod marker;
pub mod model;
pub mod redact;
pub mod run_record;
pub mod terminal;
#[cfg(test)]
mod testing;

pub use canvas::{Canvas, Line, Paint, Sink};
pub use format::Format;
pub use json::{Checked, FORMAT_VERSION, Outcomes, Planned, ReportKind};
pub use model::{ReportContent, State};
pub use redact::{KeyMeaning, Redacted};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::live::TokenProperties;

/// The run of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Run {
    /// The address of the service.
    pub target: String,
    /// The username that the token belongs to.
    pub caller: String,
    /// True if the service is the embedded sandbox.
    pub sandbox: bool,
    /// The sections for which the sandbox only knows their descriptions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rehearsed: Vec<&'static str>,
    /// The snapshot, if the plan was made from one instead of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<SnapshotSource>,
    /// The token's properties; null if the service does not show them.
    pub token: Option<TokenProperties>,
}

impl Run {
    /// A sentence for each section for which the sandbox has only its description.
    pub fn rehearsal_sentences(&self) -> impl Iterator<Item = String> {
        self.rehearsed.iter().map(|section| rehearsal_sentence(section))
    }
}

/// The sentence for a section for which the sandbox has only its description.
pub fn rehearsal_sentence(section: &str) -> String {
    format!("`{section}`: rehearsed against its own description")
}

/// A snapshot in place of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotSource {
    /// When it was taken, as in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub taken_at: String,
    /// The time and the age, as text for people.
    #[serde(skip)]
    pub shown: String,
}

/// The style of text for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// Use colours.
    pub colour: bool,
    /// The width in columns at which lines are wrapped; `None` outside a terminal: no wrapping.
    pub width: Option<usize>,
    /// Show everything, without folding or truncating.
    pub full: bool,
}

/// The style of diagnostics in text of this style.
impl From<TextStyle> for crate::diagnostic::DiagnosticStyle {
    fn from(style: TextStyle) -> Self {
        let width = style.width.unwrap_or(Self::default().width);
        Self { has_colour: style.colour, width, is_full: style.full }
    }
}
