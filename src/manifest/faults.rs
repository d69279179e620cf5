//! Faults of one file in words: what broke the YAML, what the schema refuses, and what the checks
//! of entries found.
//!
//! [`Findings`] are kept with byte ranges while a file is read; only [`Findings::into_diagnostics`]
//! turns them into places, after [`Findings::hide`] has said what must not be shown. Most files
//! have none, and pay nothing. Messages quote names, never values: the line of text below shows the
//! value, unless it is secret.

use std::{collections::BTreeSet, ops::Range};

use super::{mask, schema::Checker};
use crate::{
    diagnostic::{Diagnostic, Place, Severity, Source},
    text::escape,
    value::Json,
    yaml::{self, Node, Parsed},
};

mod words;

/// More faults than these in one file are counted, not shown: one slip often has many followers,
/// and the first ones say enough.
const MOST: usize = 100;

/// One fault, not yet placed.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) span: Range<usize>,
    pub(super) label: Option<String>,
    pub(super) related: Option<(Range<usize>, &'static str)>,
    pub(super) help: Option<String>,
}

impl Finding {
    pub(super) fn error(
        code: &'static str,
        message: impl Into<String>,
        span: Range<usize>,
    ) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            label: None,
            related: None,
            help: None,
        }
    }

    pub(super) fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn help_if(&mut self, help: Option<impl Into<String>>) -> &mut Self {
        self.help = help.map(Into::into);
        self
    }

    pub(super) fn label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = Some(label.into());
        self
    }

    pub(super) const fn related(&mut self, span: Range<usize>, label: &'static str) -> &mut Self {
        self.related = Some((span, label));
        self
    }

    fn place(self, source: &Source<'_>) -> Diagnostic {
        let diagnostic = Diagnostic {
            severity: self.severity,
            label: self.label,
            ..Diagnostic::error(self.code, self.message)
                .at(source.place(&self.span))
                .help_if(self.help)
        };
        match self.related {
            Some((span, label)) => diagnostic.related(source.place(&span), label),
            None => diagnostic,
        }
    }
}

/// Every fault of one file.
#[derive(Debug, Default)]
pub(super) struct Findings {
    findings: Vec<Finding>,
    /// How many are not shown.
    more: usize,
    /// Whether one of those is an error.
    more_errors: bool,
}

impl Findings {
    /// Whether there are none.
    pub(super) const fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Adds one.
    pub(super) fn push(&mut self, finding: Finding) -> &mut Finding {
        if self.findings.len() >= MOST {
            // The last one gives way; how many there are is said by another.
            let last = self.findings.pop();
            self.more += 1;
            self.more_errors |= last.is_some_and(|last| last.severity == Severity::Error);
        }
        self.findings.push(finding);
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    /// Adds one, unless it was found already: what is merged in from an anchor stands in one place
    /// and counts in several.
    pub(super) fn push_once(&mut self, finding: Finding) {
        let is_same = |other: &Finding| {
            other.code == finding.code
                && other.span == finding.span
                && other.message == finding.message
        };
        if !self.findings.iter().any(is_same) {
            self.push(finding);
        }
    }

    /// How many more can be shown.
    pub(super) const fn room(&self) -> usize {
        MOST.saturating_sub(self.findings.len())
    }

    /// Counts errors that are not even put into words.
    pub(super) const fn skip(&mut self, errors: usize) {
        self.more += errors;
        self.more_errors |= errors > 0;
    }

    /// Adds an error.
    pub(super) fn error(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        span: Range<usize>,
    ) -> &mut Finding {
        self.push(Finding::error(code, message, span))
    }

    /// Adds a warning.
    pub(super) fn warning(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        span: Range<usize>,
    ) -> &mut Finding {
        self.push(Finding { severity: Severity::Warning, ..Finding::error(code, message, span) })
    }

    /// Adds what is wrong with the YAML.
    pub(super) fn add_yaml(&mut self, parsed: &Parsed) {
        for fault in &parsed.faults {
            let yaml::Fault { code, message, help, span, first } = fault.clone();
            let finding = self.error(code, message, span).help_if(help);
            if let Some(first) = first {
                finding.related(first, "first written here");
            }
        }
    }

    /// Adds what `checker` refuses in `document`, whose JSON form is `json`. The pointers of the
    /// refused values.
    pub(super) fn add_schema(
        &mut self,
        document: &Node,
        json: &Json,
        checker: &Checker,
    ) -> BTreeSet<String> {
        let mut refused = BTreeSet::new();
        if checker.validator.is_valid(json) {
            return refused;
        }
        for error in checker.validator.iter_errors(json).take(2 * MOST) {
            let is_new = refused.insert(error.instance_path().as_str().to_owned());
            words::explain(&error, document, &checker.schema, is_new, self);
        }
        refused
    }

    /// Tells `source` what must not be shown of documents that `checker` checks.
    pub(super) fn hide(&self, source: &mut Source<'_>, parsed: &Parsed, checker: &Checker) {
        if self.is_empty() {
            return;
        }
        let text = source.text();
        let mut hidden: Vec<_> =
            parsed.dropped.iter().map(|range| mask::dropped(text, range)).collect();
        for document in &parsed.documents {
            hidden.extend(mask::secrets(text, document, &checker.schema));
        }
        if parsed.is_broken {
            let is_read = |range: &Range<usize>| {
                let next =
                    parsed.documents.partition_point(|document| document.span.end < range.end);
                parsed
                    .documents
                    .get(next)
                    .is_some_and(|document| document.span.start <= range.start)
            };
            let unread = mask::without_tree(text, &mask::open_names(&checker.schema));
            hidden.extend(unread.into_iter().filter(|range| !is_read(range)));
        }
        source.hide(hidden);
    }

    /// The faults with their places.
    pub(super) fn into_diagnostics(self, source: &Source<'_>) -> Vec<Diagnostic> {
        let more = (self.more > 0).then(|| {
            let message =
                format!("{} more faults in `{}` are not shown", self.more, escape(&source.name));
            let report = if self.more_errors { Diagnostic::error } else { Diagnostic::warning };
            report("too-many-faults", message).at(Place::file(source.name.clone()))
        });
        self.findings.into_iter().map(|finding| finding.place(source)).chain(more).collect()
    }
}
