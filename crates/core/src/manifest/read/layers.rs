//! Reads documents about many groups or projects, and the keys of any document that concern other
//! layers.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Document, DocumentReader,
    container::parse_reference,
    document::{LayerBody, Rule, Uses},
    unfilled::TextPlace,
};
use crate::{
    address::Globs,
    catalogue,
    field::Scope,
    manifest::{faults::texts, schema::INCLUDE},
    origin::Sourced,
    text::is_name,
    value::Value,
    yaml::{MappingKey, Node, NodeValue},
};

/// The built-in parameters of templates.
pub(in crate::manifest) const BUILT_IN: [&str; 4] = ["path", "name", "group", "path_slug"];

impl DocumentReader<'_, '_> {
    /// The content of a `Defaults` document.
    pub(super) fn read_defaults(&mut self, document: &Node) -> Option<Document> {
        let (key, matches) = document.get("match")?;
        let except = matches.get("except").map(|(key, node)| {
            let globs = self.read_globs(node);
            self.with_key_origin(key, globs)
        });
        let paths = self.read_globs(matches.get("path")?.1);
        let includes_undeclared = document["undeclared"].text() == Some(INCLUDE);
        Some(Document::Rule(Box::new(Rule {
            paths,
            except,
            includes_undeclared,
            ..self.read_rule(key, document)
        })))
    }

    /// The content of a `Profile` document.
    pub(super) fn read_profile(&mut self, document: &Node) -> Option<Document> {
        let (key, name) = document.get("name")?;
        let profile = Some(name.text()?.into());
        let required_params = self.read_names(&document["needs"]);
        Some(Document::Rule(Box::new(Rule {
            profile,
            required_params,
            ..self.read_rule(key, document)
        })))
    }

    /// A rule that `key` identifies.
    fn read_rule(&mut self, key: &MappingKey, document: &Node) -> Rule {
        Rule {
            scope: self.scope,
            paths: Globs::default(),
            except: None,
            profile: None,
            required_params: Vec::new(),
            origin: self.origin(key.span.start),
            is_named: self.is_named,
            includes_undeclared: false,
            body: self.read_body(document),
        }
    }

    /// The keys of `document` that concern other layers.
    pub(super) fn read_layering_keys(&mut self, document: &Node) -> LayerBody {
        let watch = document.get("watch").and_then(|(key, node)| match node.data {
            NodeValue::Bool(value) => Some(self.with_key_origin(key, value)),
            _ => None,
        });
        LayerBody {
            watch,
            ignored_sections: read_ignored_layers(self.scope, &document["ignore_layers"]),
            uses: document.get("uses").map(|(key, node)| self.read_uses(key, node)),
            params: self.read_params(&document["params"]),
            ..LayerBody::default()
        }
    }

    fn read_uses(&mut self, key: &MappingKey, node: &Node) -> Uses {
        let added_names = node.get("add").map(|(_, names)| names);
        if let Some((key, _)) = node.get("remove").or_else(|| node.get("none_of")) {
            self.findings.report(texts::USES_CHANGED, key.span.clone(), &[]);
        }
        let names = self.read_names(added_names.unwrap_or(node));
        Uses { origin: self.origin(key.span.start), adds_to_lower: added_names.is_some(), names }
    }

    pub(super) fn read_params(&mut self, node: &Node) -> BTreeMap<Arc<str>, Sourced<Value>> {
        let mut params = BTreeMap::new();
        for (key, node) in node.entries() {
            let value = match (&node.data, parse_reference(node)) {
                (_, Some(reference)) => Value::Secret(reference),
                (NodeValue::Text(text), _) => text.as_str().into(),
                (NodeValue::Bool(_) | NodeValue::Number(_), _) => {
                    node.to_json().to_string().as_str().into()
                }
                (
                    NodeValue::Null
                    | NodeValue::List(_)
                    | NodeValue::Map(_)
                    | NodeValue::Unreadable,
                    _,
                ) => continue,
            };
            if BUILT_IN.contains(&key.name.as_str()) || !is_name(&key.name) {
                self.findings.report(texts::PARAM_NAME, key.span.clone(), &[]);
                continue;
            }
            self.check_other_value(TextPlace::Param, key, node);
            params.insert(key.name.as_str().into(), self.with_key_origin(key, value));
        }
        params
    }

    /// A list of names, each with its place.
    pub(super) fn read_names(&self, list: &Node) -> Vec<Sourced<Arc<str>>> {
        let names = list.items().iter().filter_map(|node| {
            Some(Sourced { value: node.text()?.into(), origin: self.origin(node.span.start) })
        });
        names.collect()
    }

    /// A glob for paths, or a list of them.
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

/// The sections for which lower layers are ignored.
fn read_ignored_layers(scope: Scope, node: &Node) -> Vec<&'static str> {
    let names = catalogue::sections(scope).map(|kind| kind.section);
    let is_all = node.data == NodeValue::Bool(true);
    names
        .filter(|name| is_all || node.items().iter().any(|item| item.text() == Some(name)))
        .collect()
}
