//! The first part of loading: reads one file into documents.
//!
//! The output is the file's [`Document`]s, whose fields have origins, and the faults of single
//! documents: invalid YAML, and violations of the schema. The text and its tree are dropped, because
//! a large organisation has gigabytes of them. This part uses the tables and schemas of kinds, but
//! not their rules, and it sees one document at a time: rules that span fields or entries are
//! checked after the layers are merged.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::LazyLock,
};

use document::Validity;
use serde::Deserialize;

use super::{
    faults::{Findings, HiddenFaults, texts, words},
    mask::{self, TextState},
    schema::DocumentKind,
};
use crate::{
    catalogue::{self, words},
    diagnostic::{Diagnostic, SourceText},
    field::Scope,
    kind::Section,
    origin::{Layer, Origin, Sourced},
    steps,
    text::{alternatives, nearest, snake_case},
    yaml::{self, MappingKey, Node, NodeValue, Parsed},
};

mod acknowledge;
mod container;
pub(super) mod document;
mod extra;
pub(super) mod files;
pub(super) mod layers;
pub(super) mod paths;
pub(super) mod templates;
mod unfilled;

pub(super) use document::Document;
pub(super) use files::ManifestFile;

/// The content of a file and its faults.
#[derive(Debug, Default)]
pub(super) struct ReadFile {
    pub(super) documents: Vec<Document>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The number of faults that are not in the diagnostics.
    pub(super) hidden_faults: HiddenFaults,
    /// Whether a document is missing among them that may be a rule.
    pub(super) is_partial: bool,
    /// The sections of kind descriptions among the documents.
    pub(super) described: Vec<String>,
}

/// Reads a file. A file without a manifest is only a fault if it was named, or is in a named folder.
pub(super) fn read_file(file: &ManifestFile) -> ReadFile {
    let text = file.read();
    if !file.is_named && !text.as_deref().map_or_else(|_| file.may_be_manifest(), is_manifest) {
        return ReadFile::default();
    }
    match text {
        Ok(text) => read_text(file, &text),
        Err(fault) => {
            ReadFile { diagnostics: vec![*fault], is_partial: true, ..ReadFile::default() }
        }
    }
}

/// Reads the text of `file`.
pub(super) fn read_text(file: &ManifestFile, text: &str) -> ReadFile {
    let parsed = yaml::parse(text);
    let mut source = SourceText::new(file.name.clone(), text);
    let mut findings = Findings::default();
    findings.add_yaml(&parsed);
    let nodes: Vec<_> =
        parsed.documents.iter().filter(|document| document.data != NodeValue::Null).collect();
    let documents: Vec<_> = nodes
        .iter()
        .flat_map(|node| read_documents(node, &source, file.is_named, &mut findings))
        .collect();
    let described = nodes.iter().filter(|node| node.get("homes").is_some());
    let described = described.filter_map(|node| Some(node["section"].text()?.to_owned()));
    let described = described.collect();
    let rules = documents.iter().filter(|document| matches!(document, Document::Rule(_)));
    // Without a fault, each document was read.
    let is_partial = !findings.is_empty()
        && (rules.count() < count_rules(text)
            || nodes.iter().any(|node| {
                node.get("kind").is_some() && DocumentKind::from_document(node).is_none()
            }));
    findings.explain_slips(text);
    if !findings.is_empty() {
        hide_manifest_secrets(&mut source, &parsed, TextState::Doubtful);
    }
    let (diagnostics, more) = findings.place(&source);
    ReadFile { documents, diagnostics, hidden_faults: more, is_partial, described }
}

/// True if a text, valid or not, has a document of undrift, also if its kind is misspelt.
pub(super) fn is_manifest(text: &str) -> bool {
    let is_json = text.trim_start().starts_with(['{', '[']);
    text.lines().any(|line| {
        // In YAML a kind at the top of a document is at the beginning of its line.
        let line = if is_json { line.trim_start() } else { line };
        let mut words =
            line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let key = if line.starts_with(['{', '[']) {
            words.find(|word| word.eq_ignore_ascii_case("kind"))
        } else {
            words.next().filter(|_| !line.starts_with([' ', '#', '-']))
        };
        key.is_some_and(|key| key.eq_ignore_ascii_case("kind"))
            && words.next().is_some_and(|value| nearest_kind(value).is_some())
    })
}

/// The number of rules that a text begins, also where its syntax is broken.
fn count_rules(text: &str) -> usize {
    let kinds = text.lines().filter_map(|line| line.strip_prefix("kind:"));
    let kinds = kinds.map(|kind| kind.trim_start().trim_start_matches(['"', '\'']));
    kinds.filter(|kind| Layer::RULES.iter().any(|rule| kind.starts_with(rule))).count()
}

/// Marks the parts of a manifest that must not be shown.
pub(super) fn hide_manifest_secrets(
    source: &mut SourceText<'_>,
    parsed: &Parsed,
    quality: TextState,
) {
    let project = DocumentKind::Container(Scope::Project);
    let schemas = Scope::ALL.map(|scope| &*DocumentKind::Container(scope).checker().schema);
    let schema_of = |document: &Node| {
        &*DocumentKind::from_document(document).unwrap_or(project).checker().schema
    };
    mask::hide_secrets(source, parsed, quality, schema_of, &schemas);
}

/// Reads one document of a file.
struct DocumentReader<'r, 's> {
    source: &'r SourceText<'s>,
    is_named: bool,
    scope: Scope,
    layer: Layer,
    /// JSON pointers to the values that the schema refuses.
    refused_pointers: BTreeSet<String>,
    findings: &'r mut Findings,
}

/// The content of the document `node`: several documents if it has several paths.
fn read_documents(
    node: &Node,
    source: &SourceText<'_>,
    is_named: bool,
    findings: &mut Findings,
) -> Vec<Document> {
    if !matches!(node.data, NodeValue::Map(_)) {
        report_no_mapping(node, findings);
        return Vec::new();
    }
    let Some(kind) = read_kind(node, source, findings) else { return Vec::new() };
    let is_profile = matches!(kind, DocumentKind::Profile(_));
    let document_without_forms =
        kind.scope().and_then(|scope| templates::remove_forms(node, scope, !is_profile));
    let refused =
        findings.add_schema(document_without_forms.as_ref().unwrap_or(node), kind.checker());
    let scope = kind.scope().unwrap_or(Scope::Project);
    let layer = match kind {
        DocumentKind::Container(Scope::Group) => Layer::Group,
        DocumentKind::Container(Scope::Project) | DocumentKind::Acknowledge => Layer::Project,
        DocumentKind::Defaults(_) => Layer::Defaults,
        DocumentKind::Profile(_) => Layer::Profile,
    };
    let mut reader =
        DocumentReader { source, is_named, scope, layer, refused_pointers: refused, findings };
    let document = match kind {
        DocumentKind::Container(_) => return reader.read_containers(node),
        DocumentKind::Defaults(_) => reader.read_defaults(node),
        DocumentKind::Profile(_) => reader.read_profile(node),
        DocumentKind::Acknowledge => Some(reader.read_acknowledge(node)),
    };
    document.into_iter().collect()
}

/// Reports a document that is no mapping.
fn report_no_mapping(document: &Node, findings: &mut Findings) {
    let first = document.items().first();
    let at = document.span.clone();
    let is_several = first.is_some_and(|first| first.get("kind").is_some());
    let foreign = first.and_then(|first| recognise_document("foreign", first, ""));
    if let Some(DocumentSign { what, help, .. }) = foreign {
        let help = if is_several { texts::SEVERAL_DOCUMENTS[3] } else { help };
        findings.report(texts::FOREIGN, at, words![what, help]);
    } else {
        let texts = if is_several { texts::SEVERAL_DOCUMENTS } else { texts::NO_MAPPING };
        findings.report(texts, at, &[]);
    }
}

/// The kind of the document, if it can be read; otherwise reports why not.
fn read_kind(
    document: &Node,
    source: &SourceText<'_>,
    findings: &mut Findings,
) -> Option<DocumentKind> {
    let Some((key, node)) = document.get("kind") else {
        let first = document.entries().first();
        let at = first.map_or_else(|| document.span.clone(), |(key, _)| key.span.clone());
        let foreign = recognise_document("foreign", document, &source.name);
        if let Some(DocumentSign { what, help, .. }) = foreign {
            findings.report(texts::FOREIGN, at, words![what, help]);
        } else {
            let (at, help) =
                find_other_key(document).unwrap_or_else(|| (at, suggest_first_line(document)));
            findings.report(texts::MISSING_KIND, at, words![help]);
        }
        return None;
    };
    let kind = DocumentKind::from_document(document);
    if kind.is_none() && node.data != NodeValue::Unreadable {
        let text = node.text().unwrap_or_default();
        let help = if let Some(alias) = words::find_alias(&["kind"], text) {
            alias.help()
        } else if document.get("metadata").is_some() {
            MOVE.to_owned()
        } else if let Some(near) = nearest_kind(text) {
            format!("did you mean `{near}`?")
        } else if let Some(of) = find_section_named(text) {
            format!("write it as `{of}:` in a document with `kind: Project` or `kind: Group`")
        } else if document.get("items").is_some() {
            texts::SEVERAL_DOCUMENTS[3].to_owned()
        } else if document.get("apiVersion").is_some() {
            MOVE.to_owned()
        } else {
            "start with `kind: Project`".to_owned()
        };
        let at = if node.data == NodeValue::Null { &key.span } else { &node.span };
        let kinds = alternatives(&DocumentKind::names());
        findings.report(texts::NO_KIND, at.clone(), words![kinds, help]);
    }
    kind
}

/// The key in the place of `kind` in a document without one, and help.
fn find_other_key(document: &Node) -> Option<(Range<usize>, String)> {
    document.entries().iter().find_map(|(key, value)| {
        let help = match &*key.name {
            "type" | "kinds" | "resource_type" | "object" => {
                format!("write `kind: {}` instead of it", nearest_kind(value.text()?)?)
            }
            name if name.eq_ignore_ascii_case("kind") => "write it in lower case".to_owned(),
            _ => return None,
        };
        Some((key.span.clone(), help))
    })
}

/// Help for a document without a kind.
fn suggest_first_line(document: &Node) -> String {
    let entries = document.entries();
    if !entries.is_empty() && entries.iter().all(|(key, _)| key.name.starts_with('.')) {
        return "share it as a `kind: Profile` and `uses: [NAME]`: an anchor holds within one document, and no key is hidden".to_owned();
    }
    let has_section = catalogue::all_sections().any(|of| document.get(of.section).is_some());
    match recognise_document("unnamed", document, "") {
        Some(sign) => format!("start the document with `kind: {}`", sign.what),
        None if has_section => "start the document with `kind: Project`".to_owned(),
        None => format!("start the document with `kind: Project`; if it is another tool's, {MOVE}"),
    }
}

/// The kind of documents that a word probably means.
fn nearest_kind(text: &str) -> Option<&'static str> {
    let kinds = DocumentKind::names();
    nearest(text, kinds.iter().copied()).or_else(|| words::find_option(text, kinds))
}

/// The section that a kind, in any spelling, is called after.
fn find_section_named(kind: &str) -> Option<&'static str> {
    let word = snake_case(kind);
    let mut sections = catalogue::all_sections();
    let named_section = sections.find(|of| word == of.section || word == snake_case(of.noun));
    named_section.map(|of| of.section)
}

/// The help for a document of another tool.
const MOVE: &str = "move it out of the folder: all YAML files in it are read as manifests";

/// How a document without a kind is recognised, what it is, and what to do.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DocumentSign {
    files: Vec<&'static str>,
    all: Vec<&'static str>,
    lists: Vec<&'static str>,
    lacks: Vec<&'static str>,
    what: &'static str,
    help: &'static str,
}

static SIGNS: LazyLock<BTreeMap<&str, Vec<DocumentSign>>> =
    LazyLock::new(|| yaml::built_in!("manifest/read/foreign"));

/// The first row of `list` that recognises `document` in the file `name`.
fn recognise_document(list: &str, document: &Node, name: &str) -> Option<&'static DocumentSign> {
    let file = name.rsplit('/').next().unwrap_or(name);
    SIGNS[list].iter().find(|sign| {
        (sign.files.is_empty() || sign.files.contains(&file))
            && sign.all.iter().all(|key| document.get(key).is_some())
            && (sign.lists.is_empty()
                || sign.lists.iter().any(|key| !document[key].items().is_empty()))
            && sign.lacks.iter().all(|key| document.get(key).is_none())
    })
}

impl DocumentReader<'_, '_> {
    /// How much of the part of `of` at `pointer` the schema does not refuse.
    fn validity_of(&self, section: Section, pointer: impl FnOnce() -> String) -> Validity {
        if self.refused_pointers.is_empty() {
            return Validity::Full;
        }
        let pointer = pointer();
        let pointer_prefix = format!("{pointer}/");
        if self.refused_pointers.contains(&pointer) {
            return Validity::Unchecked;
        }
        let refused =
            self.refused_pointers.range(pointer_prefix.clone()..).inspect(|_| steps::step());
        let mut inner = refused.map_while(|at| at.strip_prefix(&pointer_prefix)).peekable();
        if inner.peek().is_none() {
            return Validity::Full;
        }
        let are_values = inner.all(|at| {
            let name = at.split('/').next().unwrap_or_default();
            section.table().get(name).is_some() && !section.identity.contains(&name)
        });
        if are_values { Validity::NamesOnly } else { Validity::Unchecked }
    }

    /// `value`, which is written at `key`.
    fn with_key_origin<T>(&self, key: &MappingKey, value: T) -> Sourced<T> {
        Sourced { value, origin: self.origin(key.span.start) }
    }

    /// The origin of the node that begins at the byte `offset`.
    fn origin(&self, offset: usize) -> Origin {
        self.source.origin(offset, self.layer)
    }
}

#[cfg(test)]
mod tests {
    use super::is_manifest;

    #[test]
    fn a_document_is_recognised_by_its_kind_even_if_it_is_misspelt() {
        for (text, expected) in [
            ("kind: Project\npath: a\n", true),
            ("# ours\n---\nkind: Defaults\n", true),
            ("kind: Defalts\nmatch: {path: a}\n", true),
            ("Kind: defaults\n", true),
            ("{kind: Group, path: a}", true),
            ("{\n  \"kind\": \"Project\"\n}", true),
            ("'kind': \"Profile\"\n: [", true),
            ("kind: Deployment\nmetadata: {}\n", false),
            ("kind: RoleBinding\nsubjects:\n  - kind: Group\n    name: a\n", false),
            ("# kind: Project\nreplicas: 2\n", false),
            ("mankind: Project\n", false),
        ] {
            assert_eq!(is_manifest(text), expected, "{text}");
        }
    }
}
