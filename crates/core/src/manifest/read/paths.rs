//! Reads the path of a document about a group or project, or `paths` of a document about several
//! groups or projects.
//!
//! A document with several paths is expanded into one declaration for each path. The declaration
//! has the origin of its path. The shared fields keep their origins in the body of the document.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::DocumentReader;
use crate::{
    catalogue::{self, settings},
    manifest::faults::{placeholders, texts},
    origin::Sourced,
    value::Value,
    yaml::{MappingKey, Node, NodeValue},
};

/// The key for several paths.
pub(in crate::manifest) const PATHS_KEY: &str = "paths";

/// A path of a document, with the fields that are only for this path.
pub(super) struct DocumentPath {
    pub(super) path: Sourced<Arc<str>>,
    pub(super) former_paths: Vec<Sourced<Arc<str>>>,
    pub(super) params: BTreeMap<Arc<str>, Sourced<Value>>,
}

impl DocumentReader<'_, '_> {
    /// Reads `path` of a document, or all `paths`.
    pub(super) fn read_paths(&mut self, document: &Node) -> Vec<DocumentPath> {
        let Some((_, paths)) = document.get(PATHS_KEY) else {
            let path = document
                .get("path")
                .and_then(|(key, node)| Some(self.attach_origin(key, node.text()?.into())));
            let former_paths = self.read_names(&document["previously"]);
            let params = BTreeMap::new();
            let document_path = path.map(|path| DocumentPath { path, former_paths, params });
            return document_path.into_iter().collect();
        };
        self.check_shared_keys(document);
        let mapping_paths = paths.entries().iter().map(|(key, node)| (&*key.name, &key.span, node));
        let list_paths =
            paths.items().iter().filter_map(|item| Some((item.text()?, &item.span, item)));
        let (mut document_paths, mut first_spans) = (Vec::new(), HashMap::new());
        for (path, span, node) in mapping_paths.chain(list_paths) {
            if let Some(first_span) = first_spans.insert(path.to_lowercase(), span) {
                let spans = [span, first_span].map(Clone::clone);
                self.findings.report_pair(texts::PATH_REPEATED, spans, &[]);
                continue;
            }
            document_paths.push(DocumentPath {
                path: Sourced { value: path.into(), origin: self.origin(span.start) },
                former_paths: self.read_names(&node["previously"]),
                params: self.read_params(node),
            });
        }
        document_paths
    }

    /// Reports keys that a document with several paths must not have.
    fn check_shared_keys(&mut self, document: &Node) {
        if let Some((key, _)) = document.get("path") {
            let args = placeholders![noun = self.scope.noun()];
            self.findings.report(texts::PATH_BESIDE_PATHS, key.span.clone(), args);
        }
        if let Some((key, node)) = document.get("previously") {
            let former = node.items().first().and_then(Node::text).unwrap_or("acme/old");
            self.findings.report(texts::SHARED_PREVIOUSLY, key.span.clone(), placeholders![former]);
        }
        // Several containers must not share the source from which they are created, or an import
        // URL.
        let (container_section, lookup) = catalogue::container(self.scope);
        let sections =
            catalogue::sections(self.scope).filter(|kind| kind.is_created_with_container());
        for (key, node) in std::iter::once(container_section)
            .chain(sections)
            .filter_map(|section| document.get(section.section))
            .flat_map(section_fields)
        {
            if lookup.import_fields.contains(&&*key.name) && node.data != NodeValue::Null {
                let args = placeholders![name = key.name];
                self.findings.report(texts::SHARED_SOURCE, key.span.clone(), args);
            }
        }
        if let Some((key, node)) = document[settings::SECTION].get(settings::IMPORT_URL_FIELD)
            && is_fixed_text(node)
        {
            let args = placeholders![name = key.name];
            self.findings.report(texts::SHARED_ADDRESS, key.span.clone(), args);
        }
    }
}

/// True if `node` has the same value for each path: a text, or a template or reference without
/// parameters.
fn is_fixed_text(node: &Node) -> bool {
    let mut references = node.entries().iter().filter_map(|(_, inner)| inner.text());
    node.text().is_some() || references.any(|text| !text.contains('{'))
}

/// The fields of a section. If the section is a single value, the section itself.
fn section_fields<'n>((key, node): (&'n MappingKey, &'n Node)) -> Vec<(&'n MappingKey, &'n Node)> {
    match node.entries() {
        [] => vec![(key, node)],
        fields => fields.iter().map(|(key, node)| (key, node)).collect(),
    }
}
