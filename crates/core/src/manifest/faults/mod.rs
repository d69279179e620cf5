//! Faults of manifests before they have a place.
//!
//! While a file is read, a [`LocatedFault`] has a byte range; the [`Findings`] of a file get their
//! places while its text is available. Faults that are found later have a [`NodePosition`], from which
//! [`locate`](super::locate) finds the line again. Messages contain names, never values: the line
//! of text shows the value unless it is secret.

use std::{collections::BTreeSet, fmt, ops::Range};

use jsonschema::error::ValidationErrorKind as Kind;
use serde::de::DeserializeOwned;

use super::{
    mask::{self, TextState},
    schema::Checker,
};
use crate::{
    address::Glob,
    diagnostic::{Diagnostic, FileName, Severity, SourceLocation, SourceText},
    origin::Origin,
    text::{escape, fill},
    value::Json,
    yaml::{self, Node, Parsed},
};

mod locate;
mod sentences;
mod slips;

use locate::SchemaPosition;
pub(super) use sentences::missing_field;
pub(super) use slips::Pattern;
pub(super) use undrift_model::{text::Words, words};

/// The texts of each fault that is found once its document is read, from `texts.yaml`.
pub(super) mod texts {
    include!(concat!(env!("OUT_DIR"), "/tables/manifest/faults/texts.rs"));
}

/// The severity, the code, the message and the help of a fault, and the label of its related place.
pub(super) type Texts = [&'static str; 5];

/// The maximum number of faults that are shown of a file. The rest is counted: many are
/// consequences of the first ones.
pub(super) const MAX_SHOWN_FAULTS: usize = 100;

/// A position that can be found again in the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodePosition {
    /// The position of the key, or of the value if it has no key.
    pub(super) origin: Origin,
    pub(super) part: KeyPart,
}

/// The part of a key and its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeyPart {
    /// The key.
    Key,
    /// The value, or the key if the value is not a scalar.
    Value,
    /// A key within the value: the names that lead to it.
    NestedKey(Vec<String>),
    /// The value of such a key, also in a row of a list, or the item that is this text.
    NestedValue(&'static str),
    /// The first item of the value, or the first one in a row of it, that is this text; the key if there
    /// is none, as in a template.
    ListItem(String),
}

impl NodePosition {
    /// The key at `origin`.
    pub(super) fn key(origin: &Origin) -> Self {
        Self { origin: origin.clone(), part: KeyPart::Key }
    }

    /// The value of the key at `origin`.
    pub(super) fn value(origin: &Origin) -> Self {
        Self { origin: origin.clone(), part: KeyPart::Value }
    }

    /// The item `text` of the value of the key at `origin`.
    pub(super) fn item(origin: &Origin, text: &str) -> Self {
        Self { origin: origin.clone(), part: KeyPart::ListItem(text.to_owned()) }
    }
}

/// A fault at a position of type `A`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LocatedFault<A = Range<usize>> {
    pub(super) severity: Severity,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) position: A,
    pub(super) label: Option<String>,
    pub(super) related: Option<A>,
    pub(super) related_label: &'static str,
    pub(super) help: Option<String>,
}

/// A fault that is found without the text of its file.
pub(super) type NodeFault = LocatedFault<NodePosition>;

impl<A> LocatedFault<A> {
    /// The fault with these texts, filled in with `words`.
    pub(super) fn new(texts: Texts, at: A, words: Words<'_>) -> Self {
        let [severity, code, message, help, related_label] = texts;
        let severity = Severity::of(severity);
        let help = Some(fill(help, words)).filter(|help| !help.is_empty());
        Self { severity, related_label, help, ..Self::error(code, fill(message, words), at) }
    }

    pub(super) fn error(code: &'static str, message: impl Into<String>, at: A) -> Self {
        let (message, severity) = (message.into(), Severity::Error);
        let (label, related, related_label, help) = (None, None, "", None);
        Self { severity, code, message, position: at, label, related, related_label, help }
    }

    pub(super) fn warning(code: &'static str, message: impl Into<String>, at: A) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message, at) }
    }

    pub(super) fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn help_if(&mut self, help: Option<impl Into<String>>) -> &mut Self {
        self.help = help.map(Into::into);
        self
    }

    /// Asks whether `near` was meant, if something is near.
    pub(super) fn suggest(&mut self, near: Option<impl fmt::Display>) {
        if let Some(near) = near {
            self.help(format!("did you mean `{near}`?"));
        }
    }

    pub(super) fn label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = Some(label.into());
        self
    }

    pub(super) fn related(&mut self, at: A) -> &mut Self {
        self.related = Some(at);
        self
    }

    /// The fault with its place.
    pub(super) fn place(self, place: impl Fn(&A) -> SourceLocation) -> Diagnostic {
        let diagnostic = Diagnostic {
            severity: self.severity,
            label: self.label,
            ..Diagnostic::error(self.code, self.message)
                .at_place(place(&self.position))
                .help_if(self.help)
        };
        match self.related {
            Some(at) => diagnostic.related(place(&at), self.related_label),
            None => diagnostic,
        }
    }
}

/// Faults that have spots, or ranges while the text of their file is available.
#[derive(Debug)]
pub(super) struct Faults<A = NodePosition> {
    pub(super) items: Vec<LocatedFault<A>>,
    hidden: HiddenFaults,
}

/// All faults of one file, while its text is available.
pub(super) type Findings = Faults<Range<usize>>;

impl<A> Default for Faults<A> {
    fn default() -> Self {
        Self { items: Vec::new(), hidden: HiddenFaults::default() }
    }
}

impl<A> Faults<A> {
    /// True if there are none.
    pub(super) const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds the fault with these texts, filled in with `words`.
    pub(super) fn report(&mut self, texts: Texts, at: A, words: Words<'_>) -> &mut LocatedFault<A> {
        self.push(LocatedFault::new(texts, at, words))
    }

    /// Adds the fault with these texts at the first place, which concerns the other one, too.
    pub(super) fn report_pair(&mut self, texts: Texts, at: [A; 2], words: Words<'_>) {
        let [at, related] = at;
        self.report(texts, at, words).related = Some(related);
    }

    /// Adds a fault.
    pub(super) fn push(&mut self, fault: LocatedFault<A>) -> &mut LocatedFault<A> {
        self.items.push(fault);
        let last = self.items.len() - 1;
        &mut self.items[last]
    }
}

impl Faults {
    /// Adds the fault with these texts at the key at `at`.
    pub(super) fn report_key(
        &mut self,
        texts: Texts,
        at: &Origin,
        words: Words<'_>,
    ) -> &mut NodeFault {
        self.report(texts, NodePosition::key(at), words)
    }

    /// Adds the fault with these texts at the value of the key at `at`.
    pub(super) fn report_value(
        &mut self,
        texts: Texts,
        at: &Origin,
        words: Words<'_>,
    ) -> &mut NodeFault {
        self.report(texts, NodePosition::value(at), words)
    }

    /// Adds the fault with these texts at the first key, which concerns the other one, too.
    pub(super) fn report_keys(&mut self, texts: Texts, origins: [&Origin; 2], words: Words<'_>) {
        self.report_pair(texts, origins.map(NodePosition::key), words);
    }

    /// Adds the fault with these texts at the first value, which concerns the other one, too.
    pub(super) fn report_values(&mut self, texts: Texts, origins: [&Origin; 2], words: Words<'_>) {
        self.report_pair(texts, origins.map(NodePosition::value), words);
    }

    /// Drops faults about missing names that an unreadable rule may declare, unless the help
    /// suggests a similar name.
    pub(super) fn drop_follow_up_faults(&mut self) {
        let dependent_codes = ["missing", "params", "template", "unlisted"];
        self.items.retain(|fault| {
            let help = fault.help.as_deref().unwrap_or_default();
            match fault.code {
                "unknown-profile" => !help.contains("declare it"),
                code => !dependent_codes.contains(&code) || help.starts_with("did you mean"),
            }
        });
    }
}

/// The faults of a file that are not shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HiddenFaults {
    pub(super) count: usize,
    /// Whether one of them is an error.
    pub(super) has_errors: bool,
}

impl HiddenFaults {
    /// Counts faults. `severity` is the worst of them.
    pub(super) fn add(&mut self, count: usize, severity: Severity) {
        self.count += count;
        self.has_errors |= count > 0 && severity == Severity::Error;
    }

    /// A diagnostic about the number of faults of `file` that are not shown, if any.
    pub(super) fn diagnostic(self, file: FileName) -> Option<Diagnostic> {
        let message = format!("{} more faults in `{}` are not shown", self.count, escape(&file));
        let report = if self.has_errors { Diagnostic::error } else { Diagnostic::warning };
        (self.count > 0)
            .then(|| report("too-many-faults", message).at_place(SourceLocation::file(file)))
    }
}

impl Findings {
    /// The number of faults that can still be shown.
    const fn remaining_room(&self) -> usize {
        MAX_SHOWN_FAULTS.saturating_sub(self.items.len())
    }

    /// Counts errors without a message.
    fn count_unshown_errors(&mut self, errors: usize) {
        self.hidden.add(errors, Severity::Error);
    }

    /// Drops excess faults and counts them: all between the first ones and the last.
    fn drop_excess(&mut self) {
        if self.items.len() > MAX_SHOWN_FAULTS {
            let last = self.items.len() - 1;
            let excess = self.items.drain(MAX_SHOWN_FAULTS - 1..last);
            excess.for_each(|fault| self.hidden.add(1, fault.severity));
        }
    }

    /// Reads `node` as a glob over `what` (a noun for the message). Reports a fault with an
    /// `example` if it is invalid.
    pub(super) fn check_glob(&mut self, node: &Node, what: &str, example: &str) -> Option<Glob> {
        match Glob::for_paths(node.text()?) {
            Ok(glob) => Some(glob),
            Err(why) => {
                self.report(texts::GLOB, node.span.clone(), words![what, why, example]);
                None
            }
        }
    }

    /// Adds the faults of the YAML.
    pub(super) fn add_yaml(&mut self, parsed: &Parsed) {
        for fault in &parsed.faults {
            let yaml::YamlFault { code, message, help, span, first_span: first } = fault.clone();
            let constructor =
                if code == "no-effect" { LocatedFault::warning } else { LocatedFault::error };
            let help = help.map(str::to_owned);
            let finding = LocatedFault { help, related: first, ..constructor(code, message, span) };
            self.push(LocatedFault { related_label: "first written here", ..finding });
        }
        self.drop_excess();
    }

    /// Adds the errors that `checker` finds in `document`. Returns the pointers of the refused values.
    pub(super) fn add_schema(&mut self, document: &Node, checker: &Checker) -> BTreeSet<String> {
        if checker.is_valid(document) {
            return BTreeSet::new();
        }
        // Values below a misspelled key or in a wrong form are checked too, so that all faults can
        // be fixed at once.
        let repaired = sentences::repair_document(document, &checker.schema);
        let [refused, _] = [(document, 0), (&repaired, 2)].map(|(document, depth)| {
            let mut refused_pointers = BTreeSet::new();
            let errors = checker.schema_errors(document).take(2 * MAX_SHOWN_FAULTS);
            for (at, error) in errors {
                // The form of a section is part of the help for its name; its fields are not.
                let is_of_name = matches!(error.kind(), Kind::AdditionalProperties { .. });
                if at.matches('/').count() + usize::from(is_of_name) < depth {
                    continue;
                }
                let is_new = refused_pointers.insert(at.clone());
                let top = SchemaPosition::new(document, &checker.schema, &checker.schema);
                if let Some(place) = top.follow_pointer(&at) {
                    place.report_error(&error, is_new, self);
                }
            }
            refused_pointers
        });
        refused
    }

    /// The content of a document. If `is_valid` (the schema accepts it) and it still cannot be
    /// read, that is reported as a fault: a file that counts as empty would lose its limits.
    pub(super) fn deserialize<T: DeserializeOwned>(
        &mut self,
        document: &Node,
        is_valid: bool,
    ) -> Option<T> {
        let start = document.span.start;
        let content = T::deserialize(document.to_json());
        if let Err(error) = &content
            && is_valid
        {
            self.report(texts::UNREADABLE_DOCUMENT, start..start, words![error]);
        }
        content.ok()
    }

    /// The result of `read` for a file that holds one document of `schema`, and the faults of the file.
    pub(super) fn collect_from_file<T>(
        name: FileName,
        text: &str,
        schema: &Json,
        read: impl FnOnce(&Parsed, &mut Self) -> T,
    ) -> (T, Vec<Diagnostic>) {
        let (parsed, mut findings) = (yaml::parse(text), Self::default());
        findings.add_yaml(&parsed);
        let content = read(&parsed, &mut findings);
        findings.explain_slips(text);
        let mut source = SourceText::new(name.clone(), text);
        mask::hide_secrets(&mut source, &parsed, TextState::Doubtful, |_| schema, &[schema]);
        let (mut faults, more) = findings.place(&source);
        faults.extend(more.diagnostic(name));
        (content, faults)
    }

    /// The faults with their places in `source`, which knows the hidden ranges, and the number of
    /// others.
    pub(super) fn place(self, source: &SourceText<'_>) -> (Vec<Diagnostic>, HiddenFaults) {
        let found = self.items.into_iter();
        (found.map(|finding| finding.place(|span| source.place(span))).collect(), self.hidden)
    }
}
