//! What people and machines read: plans, reports and progress.
//!
//! A renderer walks finished values and decides nothing: [`terminal`] writes text for people,
//! [`json`] the versioned machine formats, [`progress`] the bars that are gone when a run ends.
//! Names and messages come from manifests and from the service and may be hostile; text for people
//! escapes them in one place, the [`canvas`]. Every renderer is given what must not be shown and
//! strikes it before anything is laid out: text in the canvas, JSON in [`redact`].

pub mod canvas;
pub mod json;
pub mod marker;
pub mod progress;
pub mod record;
pub mod redact;
pub mod terminal;

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
    /// What the token is; null if the service does not tell.
    pub token: Option<Token>,
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
        Self { colour: style.colour, width }
    }
}
