//! Faults of manifests before they become diagnostics.
//!
//! While a file is read, a [`LocatedFault`] has a byte range. The [`FileFaults`] of a file become
//! diagnostics while the text of the file is in memory. Faults that are found later have a
//! [`NodePosition`], from which [`locate`](super::locate) finds the line again. Messages contain
//! names, never values. The quoted line shows the value, unless the value is secret.

use std::{collections::BTreeSet, fmt, ops::Range};

use jsonschema::error::ValidationErrorKind;
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
    yaml::{self, Node, ParsedYaml},
};

mod locate;
mod sentences;
mod slips;

use locate::SchemaPosition;
pub(super) use sentences::{missing_field_fault, suggest_for_text};
pub(super) use slips::Pattern;
pub(super) use undrift_model::{placeholders, text::PlaceholderValues};

/// The texts of faults, generated from `texts.yaml`.
pub(super) mod texts {
    include!(concat!(env!("OUT_DIR"), "/tables/manifest/faults/texts.rs"));
}

/// The severity, code, message and help of a fault, and the label of its related place.
pub(super) type FaultTexts = [&'static str; 5];

/// The maximum number of faults that are shown for one file. Further faults are only counted,
/// because many of them are consequences of the first faults.
pub(super) const MAX_SHOWN_FAULTS: usize = 100;

/// A position that can be found again in the text of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodePosition {
    /// The origin of the key, or of the value if the value has no key.
    pub(super) origin: Origin,
    pub(super) key_part: KeyPart,
}

/// The part of a key and its value that a position marks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeyPart {
    /// The key.
    Key,
    /// The value, or the key if the value is not a scalar.
    Value,
    /// A key within the value. The names are the path to this key.
    NestedKey(Vec<String>),
    /// The value of the first key with this name, in the value or in an item of the value. If there
    /// is no such key, the first item with this text.
    NestedValue(&'static str),
    /// The first item with this text, at any depth of the value. If there is no such item, the key:
    /// for example, a template produced the item.
    ListItem(String),
}

impl NodePosition {
    /// The key at `origin`.
    pub(super) fn key(origin: &Origin) -> Self {
        Self { origin: origin.clone(), key_part: KeyPart::Key }
    }

    /// The value of the key at `origin`.
    pub(super) fn value(origin: &Origin) -> Self {
        Self { origin: origin.clone(), key_part: KeyPart::Value }
    }

    /// The item `text` in the value of the key at `origin`.
    pub(super) fn item(origin: &Origin, text: &str) -> Self {
        Self { origin: origin.clone(), key_part: KeyPart::ListItem(text.to_owned()) }
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
    /// The fault with these `texts`. `args` are the values of the placeholders in the message and
    /// the help.
    pub(super) fn new(texts: FaultTexts, position: A, args: PlaceholderValues<'_>) -> Self {
        let [severity, code, message, help, related_label] = texts;
        let severity = Severity::from_word(severity);
        let help = Some(fill(help, args)).filter(|help| !help.is_empty());
        Self { severity, related_label, help, ..Self::error(code, fill(message, args), position) }
    }

    pub(super) fn error(code: &'static str, message: impl Into<String>, position: A) -> Self {
        let (message, severity) = (message.into(), Severity::Error);
        let (label, related, related_label, help) = (None, None, "", None);
        Self { severity, code, message, position, label, related, related_label, help }
    }

    pub(super) fn set_help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn set_optional_help(&mut self, help: Option<impl Into<String>>) -> &mut Self {
        self.help = help.map(Into::into);
        self
    }

    /// Adds the help "did you mean `...`?" with `similar_name`. Does nothing if there is no such
    /// name.
    pub(super) fn suggest_name(&mut self, similar_name: Option<impl fmt::Display>) {
        if let Some(near) = similar_name {
            self.set_help(format!("did you mean `{near}`?"));
        }
    }

    pub(super) fn set_label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = Some(label.into());
        self
    }

    pub(super) fn set_related(&mut self, position: A) -> &mut Self {
        self.related = Some(position);
        self
    }

    /// Converts the fault to a diagnostic. `find_location` returns the source location of a
    /// position.
    pub(super) fn into_diagnostic(
        self,
        find_location: impl Fn(&A) -> SourceLocation,
    ) -> Diagnostic {
        let diagnostic = Diagnostic {
            severity: self.severity,
            label: self.label,
            ..Diagnostic::error(self.code, self.message)
                .with_location(find_location(&self.position))
                .with_optional_help(self.help)
        };
        match self.related {
            Some(position) => diagnostic.with_related(find_location(&position), self.related_label),
            None => diagnostic,
        }
    }
}

/// A diagnostic with these texts about the whole file `name`.
pub(super) fn file_diagnostic(
    texts: FaultTexts,
    name: impl Into<FileName>,
    args: PlaceholderValues<'_>,
) -> Diagnostic {
    LocatedFault::new(texts, SourceLocation::whole_file(name), args).into_diagnostic(Clone::clone)
}

/// Faults with positions of type `A`.
#[derive(Debug)]
pub(super) struct Faults<A = NodePosition> {
    pub(super) items: Vec<LocatedFault<A>>,
    hidden_faults: HiddenFaults,
}

/// The faults of one file, with byte ranges in its text.
pub(super) type FileFaults = Faults<Range<usize>>;

impl<A> Default for Faults<A> {
    fn default() -> Self {
        Self { items: Vec::new(), hidden_faults: HiddenFaults::default() }
    }
}

impl<A> Faults<A> {
    /// True if there are no faults.
    pub(super) const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds a fault with these texts, filled in with `args`.
    pub(super) fn report(
        &mut self,
        texts: FaultTexts,
        position: A,
        args: PlaceholderValues<'_>,
    ) -> &mut LocatedFault<A> {
        self.push(LocatedFault::new(texts, position, args))
    }

    /// Adds a fault with these texts at the first position. The second position is its related
    /// position.
    pub(super) fn report_pair(
        &mut self,
        texts: FaultTexts,
        positions: [A; 2],
        args: PlaceholderValues<'_>,
    ) -> &mut LocatedFault<A> {
        let [position, related] = positions;
        self.report(texts, position, args).set_related(related)
    }

    /// Adds a fault.
    pub(super) fn push(&mut self, fault: LocatedFault<A>) -> &mut LocatedFault<A> {
        self.items.push(fault);
        let last_index = self.items.len() - 1;
        &mut self.items[last_index]
    }
}

impl Faults {
    /// Adds a fault with these texts at the key with this `origin`.
    pub(super) fn report_key(
        &mut self,
        texts: FaultTexts,
        origin: &Origin,
        args: PlaceholderValues<'_>,
    ) -> &mut NodeFault {
        self.report(texts, NodePosition::key(origin), args)
    }

    /// Adds a fault with these texts at the value of the key with this `origin`.
    pub(super) fn report_value(
        &mut self,
        texts: FaultTexts,
        origin: &Origin,
        args: PlaceholderValues<'_>,
    ) -> &mut NodeFault {
        self.report(texts, NodePosition::value(origin), args)
    }

    /// Adds a fault with these texts at the first key. The second key is its related position.
    pub(super) fn report_keys(
        &mut self,
        texts: FaultTexts,
        origins: [&Origin; 2],
        args: PlaceholderValues<'_>,
    ) -> &mut NodeFault {
        self.report_pair(texts, origins.map(NodePosition::key), args)
    }

    /// Adds a fault with these texts at the first value. The second value is its related position.
    pub(super) fn report_values(
        &mut self,
        texts: FaultTexts,
        origins: [&Origin; 2],
        args: PlaceholderValues<'_>,
    ) -> &mut NodeFault {
        self.report_pair(texts, origins.map(NodePosition::value), args)
    }

    /// Drops faults about missing names. Call this method if a rule could not be read: that rule
    /// may declare the missing names. Keeps faults whose help suggests a similar name.
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
    /// True if any hidden fault is an error.
    pub(super) has_errors: bool,
}

impl HiddenFaults {
    /// Adds `count` faults, the worst of which has `severity`.
    pub(super) fn add(&mut self, count: usize, severity: Severity) {
        self.count += count;
        self.has_errors |= count > 0 && severity == Severity::Error;
    }

    /// A diagnostic with the number of hidden faults of `file`; `None` if no fault is hidden.
    pub(super) fn diagnostic(self, file: FileName) -> Option<Diagnostic> {
        let message = format!("{} more faults in `{}` are not shown", self.count, escape(&file));
        let new_fault = if self.has_errors { Diagnostic::error } else { Diagnostic::warning };
        (self.count > 0).then(|| {
            new_fault("too-many-faults", message).with_location(SourceLocation::whole_file(file))
        })
    }
}

impl FileFaults {
    /// If there are too many faults, keeps the first faults and the last fault, and counts the
    /// other faults.
    fn drop_excess_faults(&mut self) {
        if self.items.len() > MAX_SHOWN_FAULTS {
            let last_index = self.items.len() - 1;
            let excess_faults = self.items.drain(MAX_SHOWN_FAULTS - 1..last_index);
            excess_faults.for_each(|fault| self.hidden_faults.add(1, fault.severity));
        }
    }

    /// Parses the glob in `node`. If the glob is invalid, reports a fault. In its message, `what`
    /// is the noun for the matched objects, and `example` is a valid glob.
    pub(super) fn check_glob(&mut self, node: &Node, what: &str, example: &str) -> Option<Glob> {
        match Glob::for_paths(node.text()?) {
            Ok(glob) => Some(glob),
            Err(why) => {
                self.report(texts::GLOB, node.span.clone(), placeholders![what, why, example]);
                None
            }
        }
    }

    /// Adds the faults of the YAML syntax.
    pub(super) fn add_yaml_faults(&mut self, parsed: &ParsedYaml) {
        for fault in &parsed.faults {
            let yaml::YamlFault { code, message, help, span, first_span } = fault.clone();
            self.push(LocatedFault {
                severity: if code == "no-effect" { Severity::Warning } else { Severity::Error },
                help: help.map(str::to_owned),
                related: first_span,
                related_label: "first written here",
                ..LocatedFault::error(code, message, span)
            });
        }
        self.drop_excess_faults();
    }

    /// Adds the errors that `checker` finds in `document`. Returns the JSON pointers of the refused
    /// values.
    pub(super) fn add_schema_faults(
        &mut self,
        document: &Node,
        checker: &Checker,
    ) -> BTreeSet<String> {
        let json = document.to_json();
        if checker.is_valid(&json) {
            return BTreeSet::new();
        }
        // Also check a repaired copy. The copy shows the faults of values below a misspelled key or
        // in a wrong form. A user can then fix all faults at once.
        let repaired_copy = sentences::repair_document(document, &checker.schema);
        let copies = [(document, json, 0), (&repaired_copy, repaired_copy.to_json(), 2)];
        let [refused_pointers, _] = copies.map(|(document, json, depth)| {
            let mut refused_pointers = BTreeSet::new();
            for (pointer, error) in checker.schema_errors(&json).take(2 * MAX_SHOWN_FAULTS) {
                // In the repaired copy, report only faults below a section. The help for the name
                // of a section also explains the form of the section.
                let is_key_fault =
                    matches!(error.kind(), ValidationErrorKind::AdditionalProperties { .. });
                if pointer.matches('/').count() + usize::from(is_key_fault) < depth {
                    continue;
                }
                let is_new = refused_pointers.insert(pointer.clone());
                let root = SchemaPosition::new(document, &checker.schema, &checker.schema);
                if let Some(position) = root.follow_pointer(&pointer) {
                    position.report_error(&error, is_new, self);
                }
            }
            refused_pointers
        });
        refused_pointers
    }

    /// Deserializes a document. `is_valid` is true if the schema accepts the document. Reports a
    /// fault if deserializing fails although the document is valid. Otherwise, a run could continue
    /// without the limits in its configuration.
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
            self.report(texts::UNREADABLE_DOCUMENT, start..start, placeholders![error]);
        }
        content.ok()
    }

    /// Parses `text` and calls `read`. Returns the result of `read` and the faults of the file.
    /// `schema` decides which values the quoted lines hide.
    pub(super) fn collect_from_file<T>(
        name: FileName,
        text: &str,
        schema: &Json,
        read: impl FnOnce(&ParsedYaml, &mut Self) -> T,
    ) -> (T, Vec<Diagnostic>) {
        let (parsed, mut findings) = (yaml::parse(text), Self::default());
        findings.add_yaml_faults(&parsed);
        let content = read(&parsed, &mut findings);
        findings.explain_slips(text);
        let mut source = SourceText::new(name.clone(), text);
        mask::hide_secrets(&mut source, &parsed, TextState::MayHaveFaults, |_| schema, &[schema]);
        let (mut diagnostics, hidden_faults) = findings.into_diagnostics(&mut source);
        diagnostics.extend(hidden_faults.diagnostic(name));
        (content, diagnostics)
    }

    /// Converts the faults to diagnostics with places in `source`, which hides secrets, but not the
    /// names that messages contain. Also returns the hidden faults.
    pub(super) fn into_diagnostics(
        self,
        source: &mut SourceText<'_>,
    ) -> (Vec<Diagnostic>, HiddenFaults) {
        for finding in &self.items {
            let marked_text = source.text().get(finding.position.clone()).unwrap_or_default();
            if finding.message.contains(&format!("`{marked_text}`"))
                || marked_text.trim().is_empty()
            {
                source.reveal_range(&finding.position);
            }
        }
        let source = &*source;
        let items = self.items.into_iter();
        let diagnostics = items.map(|finding| finding.into_diagnostic(|span| source.locate(span)));
        (diagnostics.collect(), self.hidden_faults)
    }
}
