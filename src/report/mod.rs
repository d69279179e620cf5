//! What people and machines read: plans and reports.
//!
//! A renderer walks finished values and decides nothing: [`terminal`] writes text for people. What is
//! written into files has one [`model`], and a [`Format`] is a way to write it: [`json`] for programs,
//! [`markdown`] for the comment of a merge request, [`gitlab_terraform`] and [`code_quality`] for its
//! widgets, [`html`] for people who would rather look than read.
//! Names and messages come from manifests and from the service and may be hostile; text for people
//! escapes them in one place, the [`canvas`]. Every renderer is given what must not be shown and
//! strikes it before anything is laid out: text in the canvas, JSON in [`redact`].

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

pub use format::Format;

use schemars::JsonSchema;
use serde::Serialize;

use crate::live::Token;

/// What a report is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Run {
    /// The address of the service.
    pub target: String,
    /// The username that the token belongs to.
    pub caller: String,
    /// Whether the service is the embedded sandbox.
    pub sandbox: bool,
    /// The sections of which the sandbox knows nothing but what their descriptions say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rehearsed: Vec<&'static str>,
    /// What stands in the place of the service, if nobody asked it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Taken>,
    /// What the token is; null if the service does not tell.
    pub token: Option<Token>,
}

impl Run {
    /// What was rehearsed against nothing but its description, a sentence each.
    pub fn rehearsals(&self) -> impl Iterator<Item = String> {
        self.rehearsed.iter().map(|section| rehearsal(section))
    }
}

/// That a section was rehearsed against nothing but its description.
pub fn rehearsal(section: &str) -> String {
    format!("`{section}`: rehearsed against its own description")
}

/// A snapshot that stands in the place of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Taken {
    /// When it was taken, as in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub taken_at: String,
    /// The same in a sentence, with how long that is ago.
    #[serde(skip)]
    pub shown: String,
}

/// How text for people looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether with colours.
    pub colour: bool,
    /// The columns to wrap at; `None` outside a terminal, where nothing is wrapped.
    pub width: Option<usize>,
    /// Whether to write out what would be folded or cut.
    pub full: bool,
}

/// The style that diagnostics have beside text of this one.
impl From<Style> for crate::diagnostic::Style {
    fn from(style: Style) -> Self {
        let width = style.width.unwrap_or(Self::default().width);
        Self { colour: style.colour, width, full: style.full }
    }
}
