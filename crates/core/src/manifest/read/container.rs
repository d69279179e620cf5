//! Reads a document about a group or project.

use std::{borrow::Cow, sync::OnceLock};

use super::{
    super::schema::OLD_UNLISTED,
    Document, Reader,
    document::{Body, Container, Part, Section, State, Validity},
    extra,
    layers::BUILT_IN,
    templates,
};
use crate::{
    catalogue::{self, words},
    desired::{self, Declared, Life, PROJECTS, Unlisted},
    field::{Scope, Secrecy},
    kind::{self, FieldTable, Shape, Spec, forms},
    manifest::faults::{texts, words},
    origin::Sourced,
    secret::{Reference, has_reference},
    value::{Json, Value},
    yaml::{Data, Key, Node},
};

/// Fields of a mapping.
#[derive(Default)]
struct FoundFields<'n> {
    fields: Vec<(&'n str, Sourced<Value>)>,
    /// Whether one of them contains a template or a change of a list.
    is_open: bool,
}

impl FoundFields<'_> {
    fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(other, _)| *other == name)
    }
}

impl Reader<'_, '_> {
    /// The content of `document`, which is about a group or project.
    pub(super) fn read_container(&mut self, document: &Node) -> Option<Document> {
        let (key, node) = document.get("path")?;
        let path = self.at_key(key, node.text()?.into());
        let (scope, is_named) = (self.scope, self.is_named);
        let body = self.read_body(document);
        let life = self.read_life(document);
        Some(Document::Container(Box::new(Container { scope, path, is_named, life, body })))
    }

    /// The sections of `document`, and how they combine with other layers.
    pub(super) fn read_body(&mut self, document: &Node) -> Body {
        let mut body = self.read_layering(document);
        for of in catalogue::sections(self.scope) {
            // What is no list is reported, and adds nothing that rules could.
            if let Some((key, node)) = document.get(of.section)
                && (of.shape != Shape::List || matches!(node.data, Data::List(_)))
            {
                body.sections.push(self.read_section(of, key, node));
            }
        }
        body.sections.sort_by_key(|section| section.of.section);
        let unlisted = document.get("unlisted").map(|(_, node)| node.entries());
        for (key, node) in unlisted.into_iter().flatten() {
            let section =
                catalogue::section(self.scope, &key.name).filter(|of| of.allows_unlisted());
            let is_projects = self.scope == Scope::Group && key.name == PROJECTS;
            let projects = is_projects.then_some(PROJECTS);
            if let Some(listed) = section.map(|of| of.section).or(projects) {
                body.unlisted.insert(listed, self.at_key(key, parse_policy(node)));
            }
        }
        if let Some((key, node)) = document.get(OLD_UNLISTED) {
            self.findings.report(texts::OLD_UNLISTED, key.span.clone(), &[]);
            body.unlisted.entry(PROJECTS).or_insert(self.at_key(key, parse_policy(node)));
        }
        body
    }

    /// The changes of the whole container.
    fn read_life(&self, document: &Node) -> Life {
        let former = document.get("previously").map(|(_, former)| self.read_names(former));
        let state = document.get("state").map(|(key, state)| match state.text() {
            Some("absent") => self.at_key(key, desired::State::Absent),
            _ => self.at_key(key, desired::State::Present),
        });
        Life { previously: former.unwrap_or_default(), state, ..Life::default() }
    }

    fn read_section(&mut self, of: kind::Section, key: &Key, node: &Node) -> Section {
        let origin = self.origin(key.span.start);
        if of.shape == Shape::List {
            let mut parts = Vec::with_capacity(node.items().len());
            for (index, entry) in node.items().iter().enumerate() {
                if matches!(entry.data, Data::Map(_)) {
                    parts.push(self.read_entry(of, index, entry));
                }
            }
            return Section { of, origin, parts };
        }
        let validity = self.validity_of(of, || format!("/{}", of.section));
        let (state, fields, is_open) = match (of.shape, &node.data) {
            (Shape::Mapping | Shape::Switch, Data::Null)
            | (Shape::Container, Data::Bool(false)) => (State::Absent, Declared::default(), false),
            (Shape::Switch, _) => {
                let field = (of.section, self.at_key(key, node.to_json().into()));
                (State::Present, Declared::from_iter([field]), false)
            }
            _ => {
                let FoundFields { fields, is_open } = self.read_fields(of, node);
                (State::Present, fields.into_iter().collect(), is_open)
            }
        };
        let key = OnceLock::from(String::new());
        let part = Part { origin: origin.clone(), state, validity, is_open, fields, key };
        Section { of, origin, parts: vec![part] }
    }

    /// The entry with this `index` in a list section.
    fn read_entry(&mut self, of: kind::Section, index: usize, node: &Node) -> Part {
        let state = match node.get("state").and_then(|(_, state)| state.text()) {
            Some("absent") => State::Absent,
            Some("unmanaged") => State::Unmanaged,
            _ => State::Present,
        };
        let origin = self.origin(node.beginning());
        let mut found = self.read_fields(of, node);
        let validity = self.validity_of(of, || format!("/{}/{index}", of.section));
        if validity != Validity::Whole {
            self.add_misnamed(of, node, &mut found);
        }
        for name in of.identity {
            let default = of.table().get(name).and_then(|spec| spec.schema.get("default"));
            if let Some(default) = default.filter(|_| !found.has(name)) {
                let value = default.clone().into();
                found.fields.push((name, Sourced { value, origin: origin.clone() }));
            }
        }
        let FoundFields { fields, is_open } = found;
        let fields = fields.into_iter().collect();
        Part { origin, state, validity, is_open, fields, key: OnceLock::new() }
    }

    /// Adds the fields of a refused entry whose names are misspelled, if they are of its identity or
    /// required, so that one mistake is reported as one fault.
    fn add_misnamed<'n>(&self, of: kind::Section, node: &'n Node, found: &mut FoundFields<'n>) {
        let schema = &of.table().schema;
        let names: Vec<_> = of.table().specs().iter().map(|spec| spec.name).collect();
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let needed: Vec<_> = required.chain(of.identity.iter().copied()).collect();
        let entries = node.entries();
        for (key, value) in entries.iter().filter(|(key, _)| !names.contains(&&*key.name)) {
            let field = words::suggest_field(schema, of.section, &key.name, &names);
            let name = field.or_else(|| of.identity.iter().copied().find(|name| !found.has(name)));
            let name = name.filter(|name| needed.contains(name) && !found.has(name));
            let Some(name) = name else { continue };
            // As in `- LOG_LEVEL: debug`.
            let is_word = words::alias_in(schema, &[of.section], &key.name).is_some();
            let is_pair = field.is_none() && !is_word && entries.len() == 1;
            let value = if is_pair { key.name.as_str().into() } else { value.to_json() };
            found.fields.push((name, self.at_key(key, value.into())));
        }
    }

    /// The fields of a mapping, including those below `extra:`, with normalised values.
    fn read_fields<'n>(&mut self, of: kind::Section, node: &'n Node) -> FoundFields<'n> {
        let mut found = FoundFields::default();
        self.add_fields(of.table(), "", node, &mut found);
        self.check_unfilled(of, node);
        let extra = node.get("extra").map(|(_, extra)| extra.entries());
        for (key, value) in extra.into_iter().flatten() {
            let refused = extra::check(of, &key.name, key.span.clone()).err();
            if let Some(fault) = refused.or_else(|| extra::find_malformed(value)) {
                self.findings.push(fault);
                continue;
            }
            let value = value.to_json();
            found.is_open |= has_reference(&value);
            found.fields.push((&key.name, self.at_key(key, value.into())));
        }
        found
    }

    /// Adds the fields of a mapping that are in the table, with `prefix` before each name.
    fn add_fields<'n>(
        &self,
        table: &'static FieldTable,
        prefix: &str,
        node: &Node,
        found: &mut FoundFields<'n>,
    ) {
        for (key, value) in node.entries() {
            let name = match prefix {
                "" => Cow::Borrowed(&*key.name),
                _ => Cow::Owned(format!("{prefix}{}", key.name)),
            };
            if let Some(spec) = table.get(&name) {
                found.is_open |= templates::is_open(&spec.schema, value);
                let mut value = read_value(spec, value);
                found.is_open |= value.sources().iter().any(Reference::is_template)
                    || (spec.has_secret_rows() && value.plain().is_some_and(has_reference));
                forms::normalise(spec, &mut value);
                found.fields.push((spec.name, self.at_key(key, value)));
            } else if table.is_spread(&name) {
                self.add_fields(table, &format!("{name}."), value, found);
            }
        }
    }

    /// Warns of built-in parameters and references in texts that are no templates.
    fn check_unfilled(&mut self, of: kind::Section, node: &Node) {
        for (key, value) in node.entries() {
            if value.text().is_some_and(has_parameter) && of.table().get(&key.name).is_some() {
                self.findings.report(texts::UNFILLED, key.span.clone(), words![name = key.name]);
            }
        }
    }
}

/// True if a text has a built-in parameter or a reference. A reference in quotes has a message of its own.
fn has_parameter(text: &str) -> bool {
    let names = BUILT_IN.iter().map(|name| format!("{{{name}}}"));
    let mut parameters = names.chain(["{env:".to_owned(), "{file:".to_owned()]);
    text.contains('{')
        && Reference::in_quotes(text).is_none()
        && parameters.any(|name| text.find(&name).is_some_and(|at| !text[..at].ends_with(BEFORE)))
}

/// What makes braces something else than those of a template.
const BEFORE: [char; 4] = ['%', '{', '$', '#'];

/// The policy for undeclared entries.
fn parse_policy(node: &Node) -> Unlisted {
    let word = node.text();
    Unlisted::ALL.into_iter().find(|policy| word == Some(policy.word())).unwrap_or_default()
}

/// The value of a field, which may be a reference to a secret or to a file.
fn read_value(spec: &Spec, node: &Node) -> Value {
    let takes_reference = spec.field.is_upload() || spec.field.secrecy() != Secrecy::Open;
    match reference(node).filter(|_| takes_reference) {
        Some(Reference::File(path)) if spec.field.is_upload() => Value::File(path),
        Some(reference) => Value::Secret(reference),
        None => node.to_json().into(),
    }
}

/// `{env: NAME}` or `{file: PATH}`.
pub(super) fn reference(node: &Node) -> Option<Reference> {
    let [(key, value)] = node.entries() else { return None };
    Reference::of(&key.name, value.text()?.to_owned())
}
