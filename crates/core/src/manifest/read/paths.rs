//! Reads the path of a document about a group or project, or `paths` of a document about several.
//!
//! Such a document is expanded into one declaration for each path, which has the origin of its
//! path. What the document shares has one place, in its body.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::DocumentReader;
use crate::{
    catalogue::{self, settings},
    manifest::faults::{texts, words},
    origin::Sourced,
    value::Value,
    yaml::{MappingKey, Node, NodeValue},
};

/// The key of several paths.
pub(in crate::manifest) const PATHS: &str = "paths";

/// A path, and what a document declares for it alone.
pub(super) struct DocumentPath {
    pub(super) path: Sourced<Arc<str>>,
    pub(super) previously: Vec<Sourced<Arc<str>>>,
    pub(super) params: BTreeMap<Arc<str>, Sourced<Value>>,
}

impl DocumentReader<'_, '_> {
    /// The one path of `document`, or its several `paths`.
    pub(super) fn read_paths(&mut self, document: &Node) -> Vec<DocumentPath> {
        let Some((_, paths)) = document.get(PATHS) else {
            let path = document
                .get("path")
                .and_then(|(key, node)| Some(self.with_key_origin(key, node.text()?.into())));
            let previously = self.read_names(&document["previously"]);
            let params = BTreeMap::new();
            return path
                .map(|path| DocumentPath { path, previously, params })
                .into_iter()
                .collect();
        };
        self.check_shared(document);
        let in_mapping = paths.entries().iter().map(|(key, node)| (&*key.name, &key.span, node));
        let in_list =
            paths.items().iter().filter_map(|item| Some((item.text()?, &item.span, item)));
        let (mut listed, mut first_spans) = (Vec::new(), HashMap::new());
        for (path, span, node) in in_mapping.chain(in_list) {
            if let Some(first) = first_spans.insert(path.to_lowercase(), span) {
                let at = [span, first].map(Clone::clone);
                self.findings.report_pair(texts::PATH_REPEATED, at, &[]);
                continue;
            }
            listed.push(DocumentPath {
                path: Sourced { value: path.into(), origin: self.origin(span.start) },
                previously: self.read_names(&node["previously"]),
                params: self.read_params(node),
            });
        }
        listed
    }

    /// Reports what a document with several paths must not declare.
    fn check_shared(&mut self, document: &Node) {
        if let Some((key, _)) = document.get("path") {
            let words = words![noun = self.scope.noun()];
            self.findings.report(texts::PATH_BESIDE_PATHS, key.span.clone(), words);
        }
        if let Some((key, node)) = document.get("previously") {
            let former = node.items().first().and_then(Node::text).unwrap_or("acme/old");
            self.findings.report(texts::SHARED_PREVIOUSLY, key.span.clone(), words![former]);
        }
        // A group or project comes from somewhere by a field of its creation, or from an address.
        let (itself, lookup) = catalogue::container(self.scope);
        let along = catalogue::sections(self.scope).filter(|of| of.comes_with_container());
        for (key, node) in std::iter::once(itself)
            .chain(along)
            .filter_map(|section| document.get(section.section))
            .flat_map(fields_at)
        {
            if lookup.import_fields.contains(&&*key.name) && node.data != NodeValue::Null {
                let words = words![name = key.name];
                self.findings.report(texts::SHARED_SOURCE, key.span.clone(), words);
            }
        }
        if let Some((key, node)) = document[settings::SECTION].get(settings::IMPORT_URL)
            && is_fixed_text(node)
        {
            let words = words![name = key.name];
            self.findings.report(texts::SHARED_ADDRESS, key.span.clone(), words);
        }
    }
}

/// True if `node` is a text, or a reference by a text, in which no name of a path is filled in.
fn is_fixed_text(node: &Node) -> bool {
    let mut references = node.entries().iter().filter_map(|(_, it)| it.text());
    node.text().is_some() || references.any(|text| !text.contains('{'))
}

/// The fields of a section, or the section itself if it is a single value.
fn fields_at<'n>((key, node): (&'n MappingKey, &'n Node)) -> Vec<(&'n MappingKey, &'n Node)> {
    match node.entries() {
        [] => vec![(key, node)],
        fields => fields.iter().map(|(key, node)| (key, node)).collect(),
    }
}
