//! Diagnostics for manifests and configuration: the faults, their locations, and advice to correct
//! them.
//!
//! A [`Diagnostic`] has a code that `explain` describes, a message, a [`SourceLocation`] and
//! usually help. [`Diagnostics`] collects diagnostics, and sorts them only for output. A location
//! contains its line of text without secrets, comments and control characters (see [`source`]), so
//! a diagnostic can be stored and printed safely.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

pub mod codes;
mod render;
pub mod source;

pub use render::TextStyle;
pub use source::{SourceLocation, SourceText};

use crate::text::{self, count};

/// The severity of a diagnostic.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The fault must be corrected. The exit code is 3.
    #[default]
    Error,
    /// The manifest works, but should be corrected.
    Warning,
}

impl Severity {
    /// The severity with this word. Any word except `error` means a warning.
    pub fn from_word(word: &str) -> Self {
        if word == Self::Error.word() { Self::Error } else { Self::Warning }
    }

    /// The word of the severity.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// An error or a warning.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The code: a name in [`codes::CODES`].
    pub code: &'static str,
    /// The problem, as a lower-case fragment. The text is not escaped, because every output escapes
    /// messages.
    pub message: String,
    /// The location of the fault.
    pub location: Option<SourceLocation>,
    /// A short text that is shown at the location.
    pub label: Option<String>,
    /// Related locations, each with a short text.
    pub related: Vec<(SourceLocation, String)>,
    /// The advice.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error with this code.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), ..Self::default() }
    }

    /// A warning with this code.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// Sets the location.
    pub fn with_location(self, location: SourceLocation) -> Self {
        Self { location: Some(location), ..self }
    }

    /// Sets the text that is shown at the location.
    pub fn with_label(self, label: impl Into<String>) -> Self {
        Self { label: Some(label.into()), ..self }
    }

    /// Adds a related location.
    pub fn with_related(mut self, location: SourceLocation, label: impl Into<String>) -> Self {
        self.related.push((location, label.into()));
        self
    }

    /// Adds help.
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Sets the help; `None` removes it.
    pub fn with_optional_help(self, help: Option<impl Into<String>>) -> Self {
        Self { help: help.map(Into::into), ..self }
    }
}

/// The serialized form of a diagnostic.
// Unknown values are `null`.
#[derive(Serialize, JsonSchema)]
pub struct DiagnosticForm<'d> {
    /// `error` or `warning`.
    #[schemars(with = "String")]
    severity: Severity,
    /// The code of the diagnostic.
    #[serde(serialize_with = "text::serialize_word")]
    code: &'static str,
    /// The problem.
    message: &'d str,
    /// The file, as seen from the working directory.
    #[schemars(required, extend("type" = ["string", "null"]))]
    file: Option<&'d str>,
    /// The line, from 1.
    line: Option<u32>,
    /// The column in characters, from 1.
    column: Option<u32>,
    /// The advice for solving the problem.
    help: Option<&'d str>,
    /// Related locations.
    related: Vec<RelatedForm<'d>>,
}

/// A related location of a diagnostic.
#[derive(Serialize, JsonSchema)]
struct RelatedForm<'d> {
    /// The file, as seen from the working directory.
    file: &'d str,
    /// The line, from 1.
    line: Option<u32>,
    /// The column in characters, from 1.
    column: Option<u32>,
    /// A short text about this location.
    message: &'d str,
}

impl Serialize for Diagnostic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let location = self.location.as_ref();
        let related = self.related.iter().map(|(location, message)| RelatedForm {
            file: &location.file,
            line: location.line(),
            column: location.column(),
            message,
        });
        let form = DiagnosticForm {
            severity: self.severity,
            code: self.code,
            message: &self.message,
            file: location.map(|location| &*location.file),
            line: location.and_then(SourceLocation::line),
            column: location.and_then(SourceLocation::column),
            help: self.help.as_deref(),
            related: related.collect(),
        };
        form.serialize(serializer)
    }
}

/// A collection of diagnostics. Its serialized form is a sorted list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Replaces all warnings that `base_diagnostics` also contains by a single warning with their
    /// number. Files are compared by their path below the root, because the base is in another
    /// folder. Line numbers are ignored, because a change of the branch can move a line.
    pub fn replace_old_warnings(
        &mut self,
        paths: &FilePaths,
        base_diagnostics: &Self,
        base_paths: &FilePaths,
    ) {
        let make_warning_key = |diagnostic: &Diagnostic, paths: &FilePaths| {
            let path = diagnostic.location.as_ref().and_then(|location| paths.get(&location.file));
            (diagnostic.code, diagnostic.message.clone(), path.cloned())
        };
        let mut base_counts: BTreeMap<_, usize> = BTreeMap::new();
        for warning in base_diagnostics
            .0
            .iter()
            .filter(|old_diagnostic| old_diagnostic.severity == Severity::Warning)
        {
            *base_counts.entry(make_warning_key(warning, base_paths)).or_default() += 1;
        }
        let count_before = self.len();
        self.0.retain(|diagnostic| {
            let remaining_count = base_counts
                .get_mut(&make_warning_key(diagnostic, paths))
                .filter(|remaining| **remaining > 0);
            let matching_count =
                remaining_count.filter(|_| diagnostic.severity == Severity::Warning);
            matching_count.map(|remaining| *remaining -= 1).is_none()
        });
        let removed_count = count_before - self.len();
        if removed_count > 0 {
            let message =
                format!("{} from before this branch, not listed", count(removed_count, "warning"));
            self.push(Diagnostic::warning("base", message).with_help("`undrift check` lists them"));
        }
    }

    /// True if a diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        self.count_severity(Severity::Error) > 0
    }

    /// The number of diagnostics of `severity`.
    pub fn count_severity(&self, severity: Severity) -> usize {
        self.0.iter().filter(|diagnostic| diagnostic.severity == severity).count()
    }

    /// The diagnostics in display order. Diagnostics without a location come first. The others are
    /// sorted by file, line and column.
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut diagnostics: Vec<_> = self.0.iter().collect();
        diagnostics.sort_by(|a, b| {
            (&a.location, a.severity, a.code, &a.message).cmp(&(
                &b.location,
                b.severity,
                b.code,
                &b.message,
            ))
        });
        diagnostics
    }

    /// All diagnostics as text, each followed by an empty line. Unless the style is full, a code
    /// with many diagnostics is shown as its first diagnostic with the locations of the next
    /// diagnostics. If the text is still longer than a screen, later diagnostics are shown without
    /// their source lines.
    pub fn render(&self, style: TextStyle) -> String {
        let sorted = self.sorted();
        let mut frequent_by_code: BTreeMap<(Severity, &str), Vec<&Diagnostic>> = BTreeMap::new();
        for diagnostic in &sorted {
            frequent_by_code
                .entry((diagnostic.severity, diagnostic.code))
                .or_default()
                .push(diagnostic);
        }
        frequent_by_code.retain(|_, diagnostics| {
            diagnostics.len() > render::MAX_SHOWN_PER_CODE && !style.is_full
        });
        let renderings = sorted.into_iter().filter_map(|diagnostic| {
            let others = match frequent_by_code.get(&(diagnostic.severity, diagnostic.code)) {
                None => &[],
                Some(diagnostics) if std::ptr::eq(diagnostics[0], diagnostic) => &diagnostics[1..],
                Some(_) => return None,
            };
            Some((diagnostic, others, render::render(diagnostic, others, style) + "\n\n"))
        });
        let rendered_forms: Vec<_> = renderings.collect();
        let line_count: usize =
            rendered_forms.iter().map(|(_, _, text)| text.lines().count()).sum();
        if style.is_full || line_count <= render::SCREEN_LINES {
            return rendered_forms.into_iter().map(|(_, _, text)| text).collect();
        }
        let mut printed_lines = 0;
        let texts = rendered_forms.into_iter().map(|(diagnostic, others, text)| {
            printed_lines += text.lines().count();
            let shows_source =
                printed_lines <= render::SCREEN_LINES / 2 || diagnostic.code == render::GUARD_CODE;
            if shows_source { text } else { render::render_without_source(diagnostic, others) }
        });
        texts.collect::<String>() + "(--full shows the lines of all)\n\n"
    }

    /// A summary such as `2 errors, 1 warning`, with counts by code if a code is frequent; `None` if
    /// there are no diagnostics.
    pub fn summary(&self) -> Option<String> {
        let counts = [Severity::Error, Severity::Warning].into_iter().filter_map(|severity| {
            let mut count_by_code: BTreeMap<&str, usize> = BTreeMap::new();
            for diagnostic in self.0.iter().filter(|diagnostic| diagnostic.severity == severity) {
                *count_by_code.entry(diagnostic.code).or_default() += 1;
            }
            let total_count: usize = count_by_code.values().sum();
            let code_counts: Vec<_> =
                count_by_code.iter().map(|(code, n)| format!("{n} {code}")).collect();
            match count_by_code.values().max() {
                None => None,
                Some(max_count) if *max_count <= render::MAX_SHOWN_PER_CODE => {
                    Some(text::count(total_count, severity.word()))
                }
                Some(_) => Some(format!(
                    "{} ({})",
                    text::count(total_count, severity.word()),
                    code_counts.join(", ")
                )),
            }
        });
        let counts: Vec<_> = counts.collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    }
}

impl std::ops::Deref for Diagnostics {
    type Target = Vec<Diagnostic>;

    fn deref(&self) -> &Vec<Diagnostic> {
        &self.0
    }
}

impl std::ops::DerefMut for Diagnostics {
    fn deref_mut(&mut self) -> &mut Vec<Diagnostic> {
        &mut self.0
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(diagnostics: I) -> Self {
        Self(diagnostics.into_iter().collect())
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Serialize for Diagnostics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.sorted())
    }
}

/// The name of a file in messages and origins.
pub type FileName = Arc<str>;

/// The path of each file, by its name.
pub type FilePaths = BTreeMap<FileName, PathBuf>;

#[cfg(test)]
mod tests;
