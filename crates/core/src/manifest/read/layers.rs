//! Reads rules, and the keys of any document that concern other layers.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Document, DocumentReader,
    container::parse_reference,
    document::{LayerBody, Rule, UsedProfiles},
    unfilled::TextPlace,
};
use crate::{
    address::Globs,
    catalogue,
    field::Scope,
    manifest::{
        faults::{placeholders, texts},
        schema::INCLUDE_VALUE,
    },
    origin::Sourced,
    text::looks_like_name,
    value::Value,
    yaml::{MappingKey, Node, NodeValue},
};

/// The names of the built-in parameters of templates.
pub(in crate::manifest) const BUILT_IN_PARAMS: [&str; 4] = ["path", "name", "group", "path_slug"];

impl DocumentReader<'_, '_> {
    /// Reads a `Defaults` document.
    pub(super) fn read_defaults(&mut self, document: &Node) -> Option<Document> {
        let (key, match_node) = document.get("match")?;
        let excluded_globs = match_node.get("except").map(|(key, node)| {
            let globs = self.read_globs(node);
            self.attach_origin(key, globs)
        });
        let path_globs = self.read_globs(match_node.get("path")?.1);
        let includes_undeclared = document["undeclared"].text() == Some(INCLUDE_VALUE);
        Some(Document::Rule(Box::new(Rule {
            path_globs,
            excluded_globs,
            includes_undeclared,
            ..self.read_rule(key, document)
        })))
    }

    /// Reads a `Profile` document.
    pub(super) fn read_profile(&mut self, document: &Node) -> Option<Document> {
        let (key, name_node) = document.get("name")?;
        let profile = Some(name_node.text()?.into());
        let required_params = self.read_names(&document["needs"]);
        Some(Document::Rule(Box::new(Rule {
            profile,
            required_params,
            ..self.read_rule(key, document)
        })))
    }

    /// Reads the parts that `Defaults` and profiles share. The origin of the rule is the origin of
    /// `key`.
    fn read_rule(&mut self, key: &MappingKey, document: &Node) -> Rule {
        Rule {
            scope: self.scope,
            path_globs: Globs::default(),
            excluded_globs: None,
            profile: None,
            required_params: Vec::new(),
            origin: self.origin(key.span.start),
            is_selected_by_command: self.is_selected_by_command,
            includes_undeclared: false,
            body: self.read_body(document),
        }
    }

    /// Reads the keys of `document` that concern other layers.
    pub(super) fn read_layering_keys(&mut self, document: &Node) -> LayerBody {
        let watch = document.get("watch").and_then(|(key, node)| match node.data {
            NodeValue::Bool(value) => Some(self.attach_origin(key, value)),
            _ => None,
        });
        LayerBody {
            watch,
            ignored_sections: read_ignored_sections(self.scope, &document["ignore_layers"]),
            uses: document.get("uses").map(|(key, node)| self.read_uses(key, node)),
            params: self.read_params(&document["params"]),
            ..LayerBody::default()
        }
    }

    fn read_uses(&mut self, key: &MappingKey, node: &Node) -> UsedProfiles {
        let added_names = node.get("add").map(|(_, names)| names);
        if let Some((key, _)) = node.get("remove").or_else(|| node.get("none_of")) {
            self.findings.report(texts::USES_CHANGED, key.span.clone(), &[]);
        }
        let names = self.read_names(added_names.unwrap_or(node));
        UsedProfiles {
            origin: self.origin(key.span.start),
            adds_to_lower: added_names.is_some(),
            names,
        }
    }

    pub(super) fn read_params(&mut self, node: &Node) -> BTreeMap<Arc<str>, Sourced<Value>> {
        let mut params = BTreeMap::new();
        for (key, node) in node.entries() {
            let parse_text = || Some(node.scalar_text()?.as_str().into());
            let Some(value) = parse_reference(node).map(Value::Secret).or_else(parse_text) else {
                continue;
            };
            if BUILT_IN_PARAMS.contains(&key.name.as_str()) {
                let args = placeholders![name = key.name];
                self.findings.report(texts::BUILT_IN_PARAM, key.span.clone(), args);
                continue;
            }
            if !looks_like_name(&key.name) {
                self.findings.report(texts::PARAM_NAME, key.span.clone(), &[]);
                continue;
            }
            self.check_untyped_value(TextPlace::Param, key, node);
            params.insert(key.name.as_str().into(), self.attach_origin(key, value));
        }
        params
    }

    /// Reads a list of names, each with its origin.
    pub(super) fn read_names(&self, list: &Node) -> Vec<Sourced<Arc<str>>> {
        let names = list.items().iter().filter_map(|node| {
            Some(Sourced { value: node.text()?.into(), origin: self.origin(node.span.start) })
        });
        names.collect()
    }

    /// Reads a glob for paths, or a list of globs.
    fn read_globs(&mut self, node: &Node) -> Globs {
        let single_glob = node.text().map(|_| node);
        let mut globs = Vec::new();
        for node in single_glob.into_iter().chain(node.items()) {
            let Some(text) = node.text().filter(|text| !text.is_empty()) else { continue };
            if text.contains([' ', ';']) || text.contains(',') && !text.contains('{') {
                self.findings.report(texts::BLANK_IN_GLOB, node.span.clone(), &[]);
                continue;
            }
            globs.extend(self.findings.check_glob(node, "paths", "acme/**"));
        }
        globs.into_iter().collect()
    }
}

/// Reads the sections for which lower layers are ignored.
fn read_ignored_sections(scope: Scope, node: &Node) -> Vec<&'static str> {
    let names = catalogue::sections(scope).map(|section| section.section);
    let ignores_all = node.data == NodeValue::Bool(true);
    names
        .filter(|name| ignores_all || node.items().iter().any(|item| item.text() == Some(name)))
        .collect()
}
