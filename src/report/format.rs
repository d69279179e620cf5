//! The formats of a report.

use std::str::FromStr;

use super::{
    Content, Sort, State, code_quality, concise, gitlab_terraform, html, json, markdown,
    marker::Marker, model::Report,
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
    /// A page to read.
    Html,
    /// A line for each finding, for editors and `grep`.
    Concise,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 6] = [
        Self::Json,
        Self::Markdown,
        Self::GitlabTerraform,
        Self::CodeQuality,
        Self::Html,
        Self::Concise,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::GitlabTerraform => "gitlab-terraform",
            Self::CodeQuality => "codequality",
            Self::Html => "html",
            Self::Concise => "concise",
        }
    }

    /// Whether it can express a report of this sort.
    pub const fn fits(self, sort: Sort) -> bool {
        !matches!((self, sort), (Self::GitlabTerraform, Sort::Check))
    }

    /// `report` in this format, without `secrets`, with a line feed at its end. `marker` is
    /// included if the format has a place for it.
    ///
    /// # Errors
    /// If a value cannot be expressed in JSON, which does not happen.
    pub fn write(
        self,
        report: &Report<'_>,
        marker: &Marker,
        secrets: &Secrets,
    ) -> serde_json::Result<String> {
        match self {
            Self::Json => json::Report::of(report).to_text(secrets),
            Self::Markdown => Ok(markdown::report(report, marker, secrets)),
            Self::GitlabTerraform => Ok(gitlab_terraform::report(report)),
            Self::CodeQuality => code_quality::report(report, secrets),
            Self::Html => Ok(html::report(report, secrets)),
            Self::Concise => Ok(concise::report(report, secrets)),
        }
    }
}

impl<'a> json::Report<'a, Content<'a>> {
    /// `report` in this format.
    pub const fn of(report: &Report<'a>) -> Self {
        let diagnostics = report.diagnostics;
        let state = match report.state {
            State::Finished { exit_code, content } => {
                return Self::finished(report.sort, exit_code, content);
            }
            State::Failed { exit_code, error, help } => json::State::Failed(json::Failed {
                status: json::IsFailed::Failed,
                exit_code,
                error,
                help,
                diagnostics,
            }),
            State::Unfinished => {
                json::State::Unfinished(json::Unfinished { status: json::IsUnfinished::Unfinished })
            }
        };
        Self::new(report.sort, state)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name);
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| format!("no format `{name}`; available: {}", alternatives(&names)))
    }
}
