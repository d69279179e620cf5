//! The formats of a report.

use std::str::FromStr;

use super::{
    ReportKind, code_quality, concise, gitlab_terraform, html, json, markdown, marker::Marker,
    model::Report,
};
use crate::{secret::Secrets, text::alternatives};

/// A format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For programs: complete, with a version and a schema.
    Json,
    /// The comment of a merge request.
    Markdown,
    /// The number of changes, for the widget of merge requests.
    GitlabTerraform,
    /// Faults and differences at their lines, for the widget of merge requests.
    CodeQuality,
    /// An HTML page for people.
    Html,
    /// A line for each finding, for editors and `grep`.
    Concise,
}

impl Format {
    /// Every format, with its name on the command line.
    pub const ALL: [(Self, &str); 6] = [
        (Self::Json, "json"),
        (Self::Markdown, "markdown"),
        (Self::GitlabTerraform, "gitlab-terraform"),
        (Self::CodeQuality, "codequality"),
        (Self::Html, "html"),
        (Self::Concise, "concise"),
    ];

    /// The name of the format on the command line.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// True if the format can express a report of this kind.
    pub const fn can_express(self, kind: ReportKind) -> bool {
        !matches!((self, kind), (Self::GitlabTerraform, ReportKind::Check))
    }

    /// Renders `report` in this format, without `secrets`. The text ends with a line feed. `marker`
    /// is included if the format has a place for it.
    ///
    /// # Errors
    /// If a value cannot be written as JSON. Values of reports always can.
    pub fn render(
        self,
        report: &Report<'_>,
        marker: &Marker,
        secrets: &Secrets,
    ) -> serde_json::Result<String> {
        match self {
            Self::Json => json::JsonReport::new(report.kind, report.state).to_text(secrets),
            Self::Markdown => Ok(markdown::render(report, marker, secrets)),
            Self::GitlabTerraform => Ok(gitlab_terraform::render(report)),
            Self::CodeQuality => code_quality::render(report, secrets),
            Self::Html => Ok(html::render(report, secrets)),
            Self::Concise => Ok(concise::render(report, secrets)),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let entry = Self::ALL.into_iter().find(|(_, other)| *other == name);
        entry.map(|(format, _)| format).ok_or_else(|| {
            let names = Self::ALL.map(|(_, name)| name);
            let hint = if name.contains('.') {
                "; write `FORMAT=FILE`, or `-o FILE` to save a plan"
            } else {
                ""
            };
            format!("no format `{name}`; available: {}{hint}", alternatives(&names))
        })
    }
}
