//! Renders plans and reports, for people and for machines.
//!
//! A renderer only lays out finished values and makes no decisions. [`terminal`] writes text for people.
//! Files have one [`model`] and several [`Format`]s: [`json`] for programs, [`markdown`] for
//! comments in merge requests, [`gitlab_terraform`] and [`code_quality`] for widgets of merge
//! requests, [`html`] for a page. Names and messages come from manifests and from the service and
//! may be hostile. Text for people is escaped in one place, the [`canvas`]. Every renderer gets the
//! secrets and removes them before any layout: from text in the canvas, from JSON in [`redact`].

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
pub use json::{
    ApplyContent, CheckContent, FORMAT_VERSION, OutcomeCounts, PlanContent, ReportKind,
};
pub use model::{ReportContent, RunReportState};
pub use redact::{KeyMeaning, RedactedValue};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::diagnostic::TextStyle;
use crate::live::TokenProperties;

/// The run that a report describes: its service, user and token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
#[schemars(rename = "Run")]
pub struct ReportedRun {
    /// The address of the service.
    pub target: String,
    /// The username that the token belongs to.
    pub caller: String,
    /// True if the service is the embedded sandbox.
    pub sandbox: bool,
    /// Sections that users described. The sandbox knows only these descriptions, not the real behaviour.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rehearsed: Vec<&'static str>,
    /// The snapshot, if the plan was made from one instead of the service.
    #[serde(rename = "live", skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotSource>,
    /// The token's properties; null if the service does not show them.
    pub token: Option<TokenProperties>,
}

impl ReportedRun {
    /// One sentence for each of the `rehearsed` sections.
    pub fn rehearsal_sentences(&self) -> impl Iterator<Item = String> {
        self.rehearsed.iter().map(|section| rehearsal_sentence(section))
    }
}

/// The note that the sandbox simulates `section` only from its description.
pub fn rehearsal_sentence(section: &str) -> String {
    format!(
        "`{section}`: the sandbox simulates it only from its description, so the service may behave differently"
    )
}

/// The snapshot that a plan used instead of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotSource {
    /// The time when the snapshot was taken, as in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub taken_at: String,
    /// The time and the age, as text for people.
    #[serde(skip)]
    pub display_text: String,
}
