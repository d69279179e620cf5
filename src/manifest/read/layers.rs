//! Documents about many groups or projects, and what any document says about other layers.

use std::sync::Arc;

use super::{
    Document, Reader, Refused,
    document::{Body, Holds, Rule, Uses},
};
use crate::{
    address::Glob,
    field::Scope,
    kinds,
    origin::{Layer, Sourced},
    text::is_name,
    yaml::{Data, Node},
};

/// What templates fill in by themselves.
pub(in crate::manifest) const BUILT_IN: [&str; 4] = ["path", "name", "group", "path_slug"];

impl Reader<'_, '_> {
    /// What a `Defaults` document says.
    pub(super) fn defaults(
        &mut self,
        scope: Scope,
        document: &Node,
        refused: &Refused,
    ) -> Option<Document> {
        let (key, matches) = document.get("match")?;
        let paths = self.globs(matches.get("path")?.1);
        let except = matches.get("except").map(|(_, node)| self.globs(node)).unwrap_or_default();
        let origin = self.origin(key, Layer::Defaults);
        let body = self.body(scope, Layer::Defaults, document, refused);
        let holds = Holds::Where { paths, except };
        Some(Document::Rule(Box::new(Rule { scope, holds, origin, body })))
    }

    /// What a `Profile` document says.
    pub(super) fn profile(
        &mut self,
        scope: Scope,
        document: &Node,
        refused: &Refused,
    ) -> Option<Document> {
        let (key, name) = document.get("name")?;
        let name = name.text()?.into();
        let needs = document.get("needs").map(|(_, needs)| self.names(needs, Layer::Profile));
        let origin = self.origin(key, Layer::Profile);
        let body = self.body(scope, Layer::Profile, document, refused);
        let holds = Holds::Whoever { name, needs: needs.unwrap_or_default() };
        Some(Document::Rule(Box::new(Rule { scope, holds, origin, body })))
    }

    /// What `document` says about other layers.
    pub(super) fn layering(&mut self, scope: Scope, layer: Layer, document: &Node) -> Body {
        let mut body = Body::default();
        body.uses = document.get("uses").map(|(key, node)| {
            let added = node.get("add").map(|(_, names)| names);
            let names = self.names(added.unwrap_or(node), layer);
            if let Some((key, _)) = node.get("remove").or_else(|| node.get("none_of")) {
                let wrong =
                    self.findings.error("layers", "`uses` is a list or added to", key.span.clone());
                wrong.help("write the whole list, which replaces what lower layers use");
            }
            Uses { origin: self.origin(key, layer), is_added: added.is_some(), names }
        });
        for (key, node) in
            document.get("params").map(|(_, node)| node.entries()).unwrap_or_default()
        {
            let value = match &node.data {
                Data::Text(text) => text.as_str().into(),
                Data::Bool(_) | Data::Number(_) => node.to_json().to_string().into(),
                Data::Null | Data::List(_) | Data::Map(_) | Data::Unreadable => continue,
            };
            if BUILT_IN.contains(&key.name.as_str()) || !is_name(&key.name) {
                let message = "a parameter cannot have this name";
                let wrong = self.findings.error("params", message, key.span.clone());
                wrong.help("use letters, digits and `_`; `path`, `name`, `group` and `path_slug` are there by themselves");
                continue;
            }
            let value = Sourced { value, origin: self.origin(key, layer) };
            body.params.insert(key.name.as_str().into(), value);
        }
        if let Some((_, node)) = document.get("ignore_layers") {
            let ignored = |name: &str| {
                node.data == Data::Bool(true)
                    || node.items().iter().any(|item| item.text() == Some(name))
            };
            let sections = kinds::sections(scope).map(|section| section.section);
            body.ignores = sections.filter(|name| ignored(name)).collect();
        }
        body.watch = document.get("watch").and_then(|(key, node)| match node.data {
            Data::Bool(value) => Some(Sourced { value, origin: self.origin(key, layer) }),
            _ => None,
        });
        body
    }

    /// A list of names, each with its place.
    fn names(&self, list: &Node, layer: Layer) -> Vec<Sourced<Arc<str>>> {
        let name = |node: &Node| {
            let origin = self.source.origin(node.span.start, layer);
            Some(Sourced { value: node.text()?.into(), origin })
        };
        list.items().iter().filter_map(name).collect()
    }

    /// One glob over paths, or a list of them.
    fn globs(&mut self, node: &Node) -> Vec<Glob> {
        let one = node.text().map(|_| node);
        let mut globs = Vec::new();
        for node in one.into_iter().chain(node.items()) {
            let Some(text) = node.text().filter(|text| !text.is_empty()) else { continue };
            match Glob::over_paths(text) {
                Ok(glob) => globs.push(glob),
                Err(why) => {
                    let message = format!("this is no glob over paths: {why}");
                    let wrong = self.findings.error("glob", message, node.span.clone());
                    wrong.help(
                        "write a path in which `*` and `**` stand for something, such as `acme/**`",
                    );
                }
            }
        }
        globs
    }
}
