//! Reads a document about a group or project.

use std::{borrow::Cow, sync::OnceLock};

use super::{
    super::schema::OLD_UNLISTED,
    Reader,
    document::{Body, Container, Part, Section, Sound, State},
    extra,
    layers::BUILT_IN,
    templates,
};
use crate::{
    catalogue::{self, words},
    desired::{self, Declared, Life, PROJECTS, Unlisted},
    field::{Scope, Secrecy},
    kind::{self, Shape, Spec, Table, forms},
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
    pub(super) fn container(&mut self, document: &Node) -> Option<Container> {
        let (key, node) = document.get("path")?;
        let path = self.at_key(key, node.text()?.into());
        let (scope, is_named) = (self.scope, self.is_named);
        let body = self.body(document);
        Some(Container { scope, path, is_named, life: self.life(document), body })
    }

    /// The sections of `document`, and how they combine with other layers.
    pub(super) fn body(&mut self, document: &Node) -> Body {
        let mut body = self.layering(document);
        for of in catalogue::sections(self.scope) {
            // What is no list is reported, and adds nothing that rules could.
            let is_read =
                |node: &Node| of.shape != Shape::List || matches!(node.data, Data::List(_));
            if let Some((key, node)) = document.get(of.section).filter(|(_, node)| is_read(node)) {
                body.sections.push(self.section(of, key, node));
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
                body.unlisted.insert(listed, self.at_key(key, policy(node)));
            }
        }
        if let Some((key, node)) = document.get(OLD_UNLISTED) {
            let message = format!("`{OLD_UNLISTED}` is deprecated");
            let old = self.findings.warning("deprecated", message, key.span.clone());
            old.help(format!("use `unlisted: {{{PROJECTS}: ...}}`"));
            body.unlisted.entry(PROJECTS).or_insert(self.at_key(key, policy(node)));
        }
        body
    }

    /// The changes of the whole container.
    fn life(&self, document: &Node) -> Life {
        let former = document.get("previously").map(|(_, former)| self.names(former));
        let state = document.get("state").map(|(key, state)| {
            let is_absent = state.text() == Some("absent");
            let state = if is_absent { desired::State::Absent } else { desired::State::Present };
            self.at_key(key, state)
        });
        Life { previously: former.unwrap_or_default(), state, ..Life::default() }
    }

    fn section(&mut self, of: kind::Section, key: &Key, node: &Node) -> Section {
        let origin = self.origin(key.span.start);
        let sound = || self.sound(of, || format!("/{}", of.section));
        let part = |sound, state, fields, is_open| {
            let key = OnceLock::from(String::new());
            vec![Part { origin: origin.clone(), state, sound, is_open, fields, key }]
        };
        let parts = match (of.shape, &node.data) {
            (Shape::List, _) => self.entries(of, node),
            (Shape::Mapping | Shape::Switch, Data::Null)
            | (Shape::Container, Data::Bool(false)) => {
                part(sound(), State::Absent, Declared::default(), false)
            }
            (Shape::Switch, _) => {
                let field = (of.section, self.at_key(key, node.to_json().into()));
                part(sound(), State::Present, Declared::from_iter([field]), false)
            }
            (Shape::Mapping | Shape::Container, _) => {
                let (sound, FoundFields { fields, is_open }) = (sound(), self.fields(of, node));
                part(sound, State::Present, fields.into_iter().collect(), is_open)
            }
        };
        Section { of, origin, parts }
    }

    /// The entries of a list section.
    fn entries(&mut self, of: kind::Section, list: &Node) -> Vec<Part> {
        let entry = |(index, node): (usize, &Node)| {
            if !matches!(node.data, Data::Map(_)) {
                return None;
            }
            let state = match node.get("state").and_then(|(_, state)| state.text()) {
                Some("absent") => State::Absent,
                Some("unmanaged") => State::Unmanaged,
                _ => State::Present,
            };
            let origin = self.origin(node.beginning());
            let mut found = self.fields(of, node);
            let sound = self.sound(of, || format!("/{}/{index}", of.section));
            if sound != Sound::Whole {
                self.misnamed(of, node, &mut found);
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
            Some(Part { origin, state, sound, is_open, fields, key: OnceLock::new() })
        };
        let mut entries = Vec::with_capacity(list.items().len());
        entries.extend(list.items().iter().enumerate().filter_map(entry));
        entries
    }

    /// Adds the fields of a refused entry whose names are misspelled, if they are of its identity or
    /// required, so that one mistake is reported as one fault.
    fn misnamed<'n>(&self, of: kind::Section, node: &'n Node, found: &mut FoundFields<'n>) {
        let schema = &of.table().schema;
        let known: Vec<_> = of.table().specs().iter().map(|spec| spec.name).collect();
        let must = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let must: Vec<_> = must.chain(of.identity.iter().copied()).collect();
        let entries = node.entries();
        for (key, value) in entries.iter().filter(|(key, _)| !known.contains(&&*key.name)) {
            let field = words::suggest_field(schema, of.section, &key.name, &known);
            let unnamed = || of.identity.iter().copied().find(|name| !found.has(name));
            let name = field.or_else(unnamed).filter(|name| must.contains(name));
            let Some(name) = name.filter(|name| !found.has(name)) else { continue };
            // As in `- LOG_LEVEL: debug`.
            let is_word = words::alias_in(schema, &[of.section], &key.name).is_some();
            let is_pair = field.is_none() && !is_word && entries.len() == 1;
            let value = if is_pair { key.name.as_str().into() } else { value.to_json() };
            found.fields.push((name, self.at_key(key, value.into())));
        }
    }

    /// The fields of a mapping, including those below `extra:`, with normalised values.
    fn fields<'n>(&mut self, of: kind::Section, node: &'n Node) -> FoundFields<'n> {
        let mut found = FoundFields::default();
        self.known_fields(of.table(), "", node, &mut found);
        self.unfilled(of, node);
        let extra = node.get("extra").map(|(_, extra)| extra.entries());
        for (key, value) in extra.into_iter().flatten() {
            let refused = extra::check(of, &key.name).err().map(|why| ("extra", key, why));
            let malformed = || extra::malformed(value).map(|(key, why)| ("reference", key, why));
            if let Some((code, key, why)) = refused.or_else(malformed) {
                self.findings.error(code, why.message, key.span.clone()).help(why.help);
                continue;
            }
            let value = value.to_json();
            found.is_open |= has_reference(&value);
            found.fields.push((&key.name, self.at_key(key, value.into())));
        }
        found
    }

    /// Adds the fields of a mapping that are in the table, with `prefix` before each name.
    fn known_fields<'n>(
        &self,
        table: &'static Table,
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
                let mut value = field_value(spec, value);
                found.is_open |= value.sources().iter().any(Reference::is_template)
                    || (spec.has_secret_rows() && value.plain().is_some_and(has_reference));
                forms::normalise(spec, &mut value);
                found.fields.push((spec.name, self.at_key(key, value)));
            } else if table.is_spread(&name) {
                self.known_fields(table, &format!("{name}."), value, found);
            }
        }
    }

    /// Warns of built-in parameters and references in texts that are no templates.
    fn unfilled(&mut self, of: kind::Section, node: &Node) {
        let has_parameter = |text: &str| {
            let names = BUILT_IN.iter().map(|name| format!("{{{name}}}"));
            // A reference in quotes has a message of its own.
            text.contains('{')
                && Reference::in_quotes(text).is_none()
                && names
                    .chain(["{env:".to_owned(), "{file:".to_owned()])
                    .any(|name| text.find(&name).is_some_and(|at| !text[..at].ends_with(BEFORE)))
        };
        for (key, value) in node.entries() {
            let has_parameter = value.text().is_some_and(has_parameter);
            if has_parameter && of.table().get(&key.name).is_some() {
                let name = &key.name;
                let message = format!("`{name}` is sent as written: it is no template");
                let unfilled = self.findings.warning("template", message, key.span.clone());
                unfilled
                    .help(format!("write `{name}: {{text: '...'}}` to fill in what is in braces"));
            }
        }
    }
}

/// What makes braces something else than those of a template.
const BEFORE: [char; 4] = ['%', '{', '$', '#'];

/// The policy for undeclared entries.
fn policy(node: &Node) -> Unlisted {
    let is_meant = |policy: &Unlisted| node.text() == Some(policy.word());
    Unlisted::ALL.into_iter().find(is_meant).unwrap_or_default()
}

/// The value of a field, which may be a reference to a secret or to a file.
fn field_value(spec: &Spec, node: &Node) -> Value {
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
