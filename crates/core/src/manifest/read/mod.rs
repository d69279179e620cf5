//! The first part of loading: reads one file into documents.
//!
//! The output is the file's [`Document`]s, whose fields have origins, and the faults of single
//! documents: invalid YAML, and violations of the schema. The text and its tree are then dropped,
//! because the texts and trees of a large organisation need gigabytes. This part uses the tables
//! and schemas of kinds, but not their rules. It reads one document at a time. Rules that span
//! fields or entries are checked after the layers are merged.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::LazyLock,
};

use document::Validity;
use serde::Deserialize;

use super::{
    faults::{FileFaults, HiddenFaults, placeholders, texts},
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
    yaml::{self, MappingKey, Node, NodeValue, ParsedYaml},
};

mod acknowledge;
mod container;
pub(super) mod document;
mod extra;
pub(super) mod files;
pub(super) mod layers;
pub(super) mod templates;
mod unfilled;

pub(super) use document::Document;
pub(super) use files::ManifestFile;

/// The content of a file and its faults.
#[derive(Debug, Default)]
pub(super) struct FileContent {
    pub(super) documents: Vec<Document>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The count of faults that are not in the diagnostics.
    pub(super) hidden_faults: HiddenFaults,
    /// True if a document that may be a rule could not be read.
    pub(super) may_miss_rules: bool,
    /// The names of the sections that kind descriptions in the file describe.
    pub(super) described_sections: Vec<String>,
}

/// Reads a file. A file without a manifest is skipped, unless the command names the file or a
/// folder above it.
pub(super) fn read_file(file: &ManifestFile) -> FileContent {
    let text = file.read_text();
    if !file.is_named_by_command
        && !text.as_deref().map_or_else(|_| file.may_be_manifest(), is_manifest)
    {
        return FileContent::default();
    }
    match text {
        Ok(text) => read_text(file, &text),
        Err(fault) => FileContent {
            diagnostics: vec![*fault],
            may_miss_rules: true,
            ..FileContent::default()
        },
    }
}

/// Reads `text`, the content of `file`.
pub(super) fn read_text(file: &ManifestFile, text: &str) -> FileContent {
    let parsed = yaml::parse(text);
    let mut source = SourceText::new(file.name.clone(), text);
    let mut findings = FileFaults::default();
    findings.add_yaml_faults(&parsed);
    let nodes: Vec<_> =
        parsed.documents.iter().filter(|document| document.data != NodeValue::Null).collect();
    let documents: Vec<_> = nodes
        .iter()
        .flat_map(|node| read_documents(node, &source, file.is_named_by_command, &mut findings))
        .collect();
    let descriptions = nodes.iter().filter(|node| node.get("homes").is_some());
    let section_names = descriptions.filter_map(|node| Some(node["section"].text()?.to_owned()));
    let described_sections = section_names.collect();
    let rules = documents.iter().filter(|document| matches!(document, Document::Rule(_)));
    // Without a fault, every document was read.
    let may_miss_rules = !findings.is_empty()
        && (rules.count() < count_rules(text)
            || nodes.iter().any(|node| {
                node.get("kind").is_some() && DocumentKind::from_document(node).is_none()
            }));
    findings.explain_slips(text);
    if !findings.is_empty() {
        hide_manifest_secrets(&mut source, &parsed, TextState::MayHaveFaults);
    }
    let (diagnostics, hidden_faults) = findings.into_diagnostics(&mut source);
    FileContent { documents, diagnostics, hidden_faults, may_miss_rules, described_sections }
}

/// True if a text, valid or not, contains a document of undrift, even with a misspelled kind.
pub(super) fn is_manifest(text: &str) -> bool {
    let is_json = text.trim_start().starts_with(['{', '[']);
    text.lines().any(|line| {
        // In YAML, the key `kind` of a document is at the start of a line.
        let line = if is_json { line.trim_start() } else { line };
        let mut line_words =
            line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let key = if line.starts_with(['{', '[']) {
            line_words.find(|word| word.eq_ignore_ascii_case("kind"))
        } else {
            line_words.next().filter(|_| !line.starts_with([' ', '#', '-']))
        };
        key.is_some_and(|key| key.eq_ignore_ascii_case("kind"))
            && line_words.next().is_some_and(|value| nearest_kind(value).is_some())
    })
}

/// The number of lines of a text that start a rule, even if the syntax of the text is broken.
fn count_rules(text: &str) -> usize {
    let kind_values = text.lines().filter_map(|line| line.strip_prefix("kind:"));
    let kind_values = kind_values.map(|kind| kind.trim_start().trim_start_matches(['"', '\'']));
    kind_values.filter(|kind| Layer::RULE_KINDS.iter().any(|rule| kind.starts_with(rule))).count()
}

/// Hides the secrets in the text of a manifest.
pub(super) fn hide_manifest_secrets(
    source: &mut SourceText<'_>,
    parsed: &ParsedYaml,
    text_state: TextState,
) {
    let default_kind = DocumentKind::Container(Scope::Project);
    let schemas = Scope::ALL.map(|scope| &*DocumentKind::Container(scope).checker().schema);
    let find_schema = |document: &Node| {
        &*DocumentKind::from_document(document).unwrap_or(default_kind).checker().schema
    };
    mask::hide_secrets(source, parsed, text_state, find_schema, &schemas);
}

/// Reads one document of a file.
struct DocumentReader<'r, 's> {
    source: &'r SourceText<'s>,
    is_selected_by_command: bool,
    scope: Scope,
    layer: Layer,
    /// JSON pointers to the values that the schema refuses.
    refused_pointers: BTreeSet<String>,
    findings: &'r mut FileFaults,
}

/// Reads the document `node`. Returns one document for each of its paths.
fn read_documents(
    node: &Node,
    source: &SourceText<'_>,
    is_selected_by_command: bool,
    findings: &mut FileFaults,
) -> Vec<Document> {
    if !matches!(node.data, NodeValue::Map(_)) {
        report_not_a_mapping(node, findings);
        return Vec::new();
    }
    let Some(kind) = read_kind(node, &source.name, findings) else { return Vec::new() };
    let is_profile = matches!(kind, DocumentKind::Profile(_));
    let plain_node =
        kind.scope().and_then(|scope| templates::remove_forms(node, scope, !is_profile));
    let refused_pointers =
        findings.add_schema_faults(plain_node.as_ref().unwrap_or(node), kind.checker());
    let scope = kind.scope().unwrap_or(Scope::Project);
    let layer = match kind {
        DocumentKind::Container(Scope::Group) => Layer::Group,
        DocumentKind::Container(Scope::Project) | DocumentKind::Acknowledge => Layer::Project,
        DocumentKind::Defaults(_) => Layer::Defaults,
        DocumentKind::Profile(_) => Layer::Profile,
    };
    let mut reader =
        DocumentReader { source, is_selected_by_command, scope, layer, refused_pointers, findings };
    let document = match kind {
        DocumentKind::Container(_) => return reader.read_containers(node),
        DocumentKind::Defaults(_) => reader.read_defaults(node),
        DocumentKind::Profile(_) => reader.read_profile(node),
        DocumentKind::Acknowledge => Some(reader.read_acknowledgement(node)),
    };
    document.into_iter().collect()
}

/// Reports a document that is not a mapping.
fn report_not_a_mapping(document: &Node, findings: &mut FileFaults) {
    let first_item = document.items().first();
    let span = document.span.clone();
    let is_document_list = first_item.is_some_and(|item| item.get("kind").is_some());
    let foreign_sign = first_item.and_then(|first| recognise_document("foreign", first, ""));
    if let Some(DocumentSign { what, help, .. }) = foreign_sign {
        let help = if is_document_list { texts::SEVERAL_DOCUMENTS[3] } else { help };
        findings.report(texts::FOREIGN, span, placeholders![what, help]);
    } else {
        let problem_texts =
            if is_document_list { texts::SEVERAL_DOCUMENTS } else { texts::NO_MAPPING };
        findings.report(problem_texts, span, &[]);
    }
}

/// Reads the kind of a document. Reports a fault if the kind is missing or unknown.
fn read_kind(document: &Node, file: &str, findings: &mut FileFaults) -> Option<DocumentKind> {
    let Some((key, node)) = document.get("kind") else {
        let first_entry = document.entries().first();
        let start_range =
            first_entry.map_or_else(|| document.span.clone(), |(key, _)| key.span.clone());
        let foreign_sign = recognise_document("foreign", document, file);
        if let Some(DocumentSign { what, help, .. }) = foreign_sign {
            findings.report(texts::FOREIGN, start_range, placeholders![what, help]);
        } else {
            let (marked_range, help) = find_misnamed_kind(document)
                .unwrap_or_else(|| (start_range, suggest_first_line(document)));
            findings.report(texts::MISSING_KIND, marked_range, placeholders![help]);
        }
        return None;
    };
    let kind = DocumentKind::from_document(document);
    if kind.is_none() && node.data != NodeValue::Unreadable {
        let text = node.text().unwrap_or_default();
        let help = if let Some(alias) = words::find_meaning(&["kind"], text) {
            alias.help()
        } else if document.get("metadata").is_some() {
            MOVE_HELP.to_owned()
        } else if let Some(near) = nearest_kind(text) {
            format!("did you mean `{near}`?")
        } else if let Some(section_name) = find_section(text) {
            format!(
                "write it as `{section_name}:` in a document with `kind: Project` or `kind: Group`"
            )
        } else if document.get("items").is_some() {
            texts::SEVERAL_DOCUMENTS[3].to_owned()
        } else if document.get("apiVersion").is_some() {
            MOVE_HELP.to_owned()
        } else {
            "start with `kind: Project`".to_owned()
        };
        let kind_span = if node.data == NodeValue::Null { &key.span } else { &node.span };
        let kinds = alternatives(&DocumentKind::names());
        findings.report(texts::NO_KIND, kind_span.clone(), placeholders![kinds, help]);
    }
    kind
}

/// The key that was probably meant as `kind`, with help.
fn find_misnamed_kind(document: &Node) -> Option<(Range<usize>, String)> {
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

/// Help for a document without a kind. It explains how the document must start.
fn suggest_first_line(document: &Node) -> String {
    let entries = document.entries();
    if !entries.is_empty() && entries.iter().all(|(key, _)| key.name.starts_with('.')) {
        return "to share values, use `kind: Profile` and `uses: [NAME]`: anchors only work within one document, and keys that start with a dot are not hidden".to_owned();
    }
    let has_section = catalogue::all_sections().any(|kind| document.get(kind.section).is_some());
    match recognise_document("unnamed", document, "") {
        Some(sign) => format!("start the document with `kind: {}`", sign.what),
        None if has_section => "start the document with `kind: Project`".to_owned(),
        None => {
            format!("if it is another tool's, {MOVE_HELP}; otherwise start it with `kind: Project`")
        }
    }
}

/// The kind of document that a word probably means.
fn nearest_kind(text: &str) -> Option<&'static str> {
    let kinds = DocumentKind::names();
    nearest(text, kinds.iter().copied()).or_else(|| words::find_option(text, kinds))
}

/// The section whose name or noun is the text `kind`, in any spelling.
fn find_section(kind: &str) -> Option<&'static str> {
    let word = snake_case(kind);
    let mut sections = catalogue::all_sections();
    let named_section =
        sections.find(|section| word == section.section || word == snake_case(section.noun));
    named_section.map(|section| section.section)
}

/// The help for a document of another tool.
const MOVE_HELP: &str = "move it out of the folder: all YAML files in it are read as manifests";

/// The signs of a document without a kind, with a description and help. The head of `foreign.yaml`
/// explains the fields.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DocumentSign {
    files: Vec<&'static str>,
    all: Vec<&'static str>,
    lists: Vec<&'static str>,
    within: Vec<&'static str>,
    lacks: Vec<&'static str>,
    what: &'static str,
    help: &'static str,
}

static DOCUMENT_SIGNS: LazyLock<BTreeMap<&str, Vec<DocumentSign>>> =
    LazyLock::new(|| yaml::built_in!("manifest/read/foreign"));

/// The first sign of the list `list_name` that recognises `document` in the file `name`.
fn recognise_document(
    list_name: &str,
    document: &Node,
    name: &str,
) -> Option<&'static DocumentSign> {
    let file_name = name.rsplit('/').next().unwrap_or(name);
    let has_entries = |sign: &DocumentSign, key: &&str| {
        document[*key].items().first().is_some_and(|entry| {
            let mut keys = sign.within.iter();
            keys.len() == 0 || entry.text().is_some() || keys.any(|key| entry.get(key).is_some())
        })
    };
    DOCUMENT_SIGNS[list_name].iter().find(|sign| {
        (sign.files.is_empty() || sign.files.contains(&file_name))
            && sign.all.iter().all(|key| document.get(key).is_some())
            && (sign.lists.is_empty() || sign.lists.iter().any(|key| has_entries(sign, key)))
            && sign.lacks.iter().all(|key| document.get(key).is_none())
    })
}

impl DocumentReader<'_, '_> {
    /// The validity of the entry of `section` at the JSON pointer `pointer`.
    fn find_validity(&self, section: Section, pointer: impl FnOnce() -> String) -> Validity {
        if self.refused_pointers.is_empty() {
            return Validity::Valid;
        }
        let pointer = pointer();
        let pointer_prefix = format!("{pointer}/");
        if self.refused_pointers.contains(&pointer) {
            return Validity::Invalid;
        }
        let later_pointers =
            self.refused_pointers.range(pointer_prefix.clone()..).inspect(|_| steps::count_step());
        let mut inner_pointers = later_pointers
            .map_while(|refused_pointer| refused_pointer.strip_prefix(&pointer_prefix))
            .peekable();
        if inner_pointers.peek().is_none() {
            return Validity::Valid;
        }
        let has_only_value_faults = inner_pointers.all(|inner_pointer| {
            let name = inner_pointer.split('/').next().unwrap_or_default();
            section.spec(name).is_some() && !section.identity.contains(&name)
        });
        if has_only_value_faults { Validity::IdentityOnly } else { Validity::Invalid }
    }

    /// `value` with the origin of `key`.
    fn attach_origin<T>(&self, key: &MappingKey, value: T) -> Sourced<T> {
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
