//! The first part of loading: reads one file into documents.
//!
//! The output is the file's [`Document`]s, whose fields have origins, and the faults of single
//! documents: invalid YAML, and violations of the schema. The text and its tree are dropped, because
//! a large organisation has gigabytes of them. This part uses the tables and schemas of kinds, but
//! not their rules, and it sees one document at a time: rules that span fields or entries are
//! checked after the layers are merged.

use std::collections::BTreeSet;

use super::{
    faults::{Findings, More},
    mask,
    schema::DocumentKind,
};
use crate::{
    diagnostic::{Diagnostic, Source},
    field::Scope,
    kinds::words,
    steps,
    text::{alternatives, nearest},
    yaml::{self, Data, Node, Parsed},
};

mod acknowledge;
mod container;
pub(super) mod document;
mod extra;
pub(super) mod files;
pub(super) mod layers;
pub(super) mod templates;

pub(super) use document::Document;
pub(super) use files::File;

/// The content of a file and its faults.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) documents: Vec<Document>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The number of faults that are not in the diagnostics.
    pub(super) more: More,
}

/// Reads a file.
pub(super) fn file(file: &File) -> Read {
    match file.read() {
        Ok(text) => self::text(file, &text),
        Err(fault) => Read { diagnostics: vec![*fault], ..Read::default() },
    }
}

/// Reads the text of `file`.
pub(super) fn text(file: &File, text: &str) -> Read {
    let parsed = yaml::parse(text);
    let mut source = Source::new(file.name.clone(), text);
    let mut findings = Findings::default();
    findings.add_yaml(&parsed);
    let mut documents = Vec::new();
    for document in parsed.documents.iter().filter(|document| document.data != Data::Null) {
        let mut reader =
            Reader { source: &source, is_named: file.is_named, findings: &mut findings };
        documents.extend(reader.document(document));
    }
    findings.explain_slips(text);
    if !findings.is_empty() {
        hide(&mut source, &parsed);
    }
    let (diagnostics, more) = findings.place(&source);
    Read { documents, diagnostics, more }
}

/// Marks the parts of a manifest that must not be shown.
pub(super) fn hide(source: &mut Source<'_>, parsed: &Parsed) {
    let checker = |kind: DocumentKind| &kind.checker().schema;
    let of = |document: &Node| {
        checker(DocumentKind::of(document).unwrap_or(DocumentKind::Container(Scope::Project)))
    };
    let known = Scope::ALL.map(|scope| checker(DocumentKind::Container(scope)));
    mask::hide(source, parsed, of, &known);
}

/// Reads the documents of one file.
struct Reader<'r, 's> {
    source: &'r Source<'s>,
    is_named: bool,
    findings: &'r mut Findings,
}

impl Reader<'_, '_> {
    /// The content of `document`.
    fn document(&mut self, document: &Node) -> Option<Document> {
        if !matches!(document.data, Data::Map(_)) {
            let first = document.items().first();
            let stranger = first.and_then(|first| stranger(first, ""));
            let message = match stranger {
                Some((what, _)) => format!("this is {what}, not a manifest"),
                None => "a document must be a mapping".to_owned(),
            };
            let not = self.findings.error("document", message, document.span.clone());
            let is_several = first.is_some_and(|first| first.get("kind").is_some());
            not.help(match stranger {
                _ if is_several => EACH_ITS_OWN,
                Some((_, help)) => help,
                None => "start with `kind: Project` and `path: ...`",
            });
            return None;
        }
        let kind = self.kind(document)?;
        let is_profile = matches!(kind, DocumentKind::Profile(_));
        let closed = kind.scope().and_then(|scope| templates::closed(document, scope, !is_profile));
        let closed = closed.as_ref().unwrap_or(document);
        let json = closed.to_json();
        let refused = Refused(self.findings.add_schema(closed, &json, kind.checker()));
        match kind {
            DocumentKind::Container(scope) => {
                self.container(scope, document, &refused).map(Box::new).map(Document::Container)
            }
            DocumentKind::Defaults(scope) => self.defaults(scope, document, &refused),
            DocumentKind::Profile(scope) => self.profile(scope, document, &refused),
            DocumentKind::Acknowledge => {
                self.acknowledge(document, &json).map(Box::new).map(Document::Acknowledge)
            }
        }
    }

    /// The kind of the document, if it can be read; otherwise reports why not.
    fn kind(&mut self, document: &Node) -> Option<DocumentKind> {
        let Some((key, node)) = document.get("kind") else {
            let first = document.entries().first();
            let at = first.map_or_else(|| document.span.clone(), |(key, _)| key.span.clone());
            match stranger(document, &self.source.name) {
                Some((what, help)) => {
                    let message = format!("this is {what}, not a manifest");
                    self.findings.error("document", message, at).help(help);
                }
                None => {
                    let mut keys = document.entries().iter().map(|(key, _)| key);
                    let other = keys.find(|key| key.name.eq_ignore_ascii_case("kind"));
                    let (at, help) = match other {
                        Some(key) => (key.span.clone(), "write it in lower case"),
                        None => (at, "start the document with `kind: Project`"),
                    };
                    self.findings.error("missing", "`kind` is missing", at).help(help);
                }
            }
            return None;
        };
        let kind = DocumentKind::of(document);
        match node.text() {
            _ if kind.is_some() || node.data == Data::Unreadable => {}
            text => {
                let kinds = DocumentKind::names();
                let near = text.and_then(|text| {
                    let all = || kinds.iter().copied();
                    nearest(text, all()).or_else(|| words::option(text, all()))
                });
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if document.get("items").is_some() => EACH_ITS_OWN.to_owned(),
                    None if document.get("apiVersion").is_some() => MOVE.to_owned(),
                    None => "start with `kind: Project`".to_owned(),
                };
                let at = if node.data == Data::Null { &key.span } else { &node.span };
                let message = format!("`kind` must be {}", alternatives(&kinds));
                self.findings.error("choice", message, at.clone()).help(help);
            }
        }
        kind
    }
}

/// The help for several documents in one.
const EACH_ITS_OWN: &str = "write each as a document of its own, with a line `---` in between";

/// The help for a document of another tool.
const MOVE: &str = "move it out of the folder: all YAML files in it are read as manifests";

/// First keys of documents of other tools, with the tool.
const STRANGERS: [(&str, &str); 16] = [
    ("apiVersion", "an object of Kubernetes"),
    ("config_version", "a configuration of gitlabform"),
    ("replicaCount", "a file of values for Helm"),
    ("openapi", "a description of an API"),
    ("swagger", "a description of an API"),
    ("hosts", "a playbook of Ansible"),
    ("image", "a CI/CD pipeline"),
    ("jobs", "a workflow of CI/CD"),
    ("projects_and_groups", "a configuration of gitlabform"),
    ("provider", "a configuration of Terraform"),
    ("resource", "a configuration of Terraform"),
    ("services", "a file of Docker Compose"),
    ("stages", "a CI/CD pipeline"),
    ("tasks", "a playbook of Ansible"),
    ("terraform", "a configuration of Terraform"),
    ("workflow", "a CI/CD pipeline"),
];

/// The probable type of a document without `kind` in the file `name`, and help, if its keys or the
/// file show it.
fn stranger(document: &Node, name: &str) -> Option<(&'static str, &'static str)> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let is_list =
        |key: &str| document.get(key).is_some_and(|(_, value)| matches!(value.data, Data::List(_)));
    if file == "undrift.yaml" {
        let help = "move it to the top of the folder of manifests, where it counts, or away";
        Some(("a configuration of undrift", help))
    } else if file != "sandbox.yaml" && is_list("projects") && document.get("users").is_none() {
        let help = "write a document for each, with `kind: Project`, its `path`, and a line `---` in between; if it is a seed of the sandbox, call it `sandbox.yaml`";
        Some(("a list of projects", help))
    } else if file == "sandbox.yaml" || ["users", "groups", "projects"].into_iter().any(is_list) {
        let help = "call it `sandbox.yaml` at the top of the folder, or move it out and name it with `--seed`";
        Some(("a seed of the sandbox", help))
    } else {
        let known = STRANGERS.iter().find(|(key, _)| document.get(key).is_some());
        known.map(|(_, what)| (*what, MOVE))
    }
}

/// JSON pointers to the values that the schema refuses.
struct Refused(BTreeSet<String>);

impl Refused {
    /// Whether a value at or below `pointer` is refused.
    fn within(&self, pointer: &str) -> bool {
        let below = format!("{pointer}/");
        let mut from = self.0.range(below.clone()..).inspect(|_| steps::step());
        self.0.contains(pointer) || from.next().is_some_and(|first| first.starts_with(&below))
    }
}
