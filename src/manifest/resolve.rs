//! One file to the groups and projects that it declares.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    path::{Component, Path},
};

use jiff::civil::Date;

use super::{
    extra,
    faults::{Finding, Findings},
    path, schema,
};
use crate::{
    desired::{Container, Creation, Declared, DeclaredSection, Entry, State, Unlisted},
    diagnostic::{Diagnostic, Diagnostics, FileName, Place, Source},
    field::{Accepted, Field, Scope, Secrecy, Tier},
    kind::{Section, Shape, Spec, Table, forms},
    kinds,
    origin::{Layer, Origin, Sourced},
    secret::{Reference, is_reserved},
    text::{alternatives, nearest},
    value::{Fields, Json, Object, Value},
    yaml::{self, Data, Key, Node},
};

/// What a file declares, and what is wrong with it.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// The containers, each with the place of its path.
    pub(super) containers: Vec<(Container, Place)>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// A container, and where its key `path` and the path itself stand.
type Placed = (Container, Range<usize>, Range<usize>);

/// Checks and resolves the file `name`.
pub(super) fn file(
    name: &FileName,
    text: Result<String, Box<Diagnostic>>,
    tier: Option<Tier>,
    today: Date,
) -> Resolved {
    let text = match text {
        Ok(text) => text,
        Err(fault) => return Resolved { diagnostics: vec![*fault], ..Resolved::default() },
    };
    let parsed = yaml::parse(&text);
    let mut source = Source::new(name.clone(), &text);
    let mut findings = Findings::default();
    findings.add_yaml(&parsed);
    let mut containers = Vec::new();
    for document in parsed.documents.iter().filter(|document| document.data != Data::Null) {
        containers.extend(
            Reader { source: &source, tier, today, findings: &mut findings }.document(document),
        );
    }
    findings.hide(&mut source, &parsed, schema::of(Scope::Project));
    // A file without faults has not said what is secret in it, and another file may still find
    // fault with a path of this one.
    let place = |(container, key, path): Placed| {
        (container, source.place_within(&path, &(key.start..path.end)))
    };
    let containers = containers.into_iter().map(place).collect();
    Resolved { containers, diagnostics: findings.into_diagnostics(&source) }
}

/// The containers in the order of their paths; one that is declared twice is an error at both
/// places. Groups and projects share one space of paths.
pub(super) fn unique(
    mut containers: Vec<(Container, Place)>,
    diagnostics: &mut Diagnostics,
) -> Vec<Container> {
    containers
        .sort_by_cached_key(|(container, place)| (container.path.to_lowercase(), place.clone()));
    let mut unique: Vec<(Container, Place)> = Vec::with_capacity(containers.len());
    for (container, place) in containers {
        match unique.last() {
            Some((first, first_place))
                if first.path.to_lowercase() == container.path.to_lowercase() =>
            {
                let is_same = first.path == container.path;
                let case =
                    if is_same { "" } else { "; the service takes paths for the same in any case" };
                let twice = Diagnostic::error(
                    "duplicate-project",
                    format!("`{}` is declared twice{case}", container.path),
                );
                let twice = twice.at(place).related(first_place.clone(), "first declared here");
                let help = if first.scope == container.scope {
                    format!("keep one document for each {}", container.scope.noun())
                } else {
                    "a group and a project cannot have one path".to_owned()
                };
                diagnostics.push(twice.help(help));
            }
            _ => unique.push((container, place)),
        }
    }
    unique.into_iter().map(|(container, _)| container).collect()
}

/// Reads the documents of one file.
struct Reader<'r, 's> {
    source: &'r Source<'s>,
    tier: Option<Tier>,
    today: Date,
    findings: &'r mut Findings,
}

impl Reader<'_, '_> {
    /// What `document` declares.
    fn document(&mut self, document: &Node) -> Option<Placed> {
        if !matches!(document.data, Data::Map(_)) {
            let not = self.findings.error(
                "document",
                "a document must be a mapping",
                document.span.clone(),
            );
            not.help("start with `kind: Project` and `path: ...`");
            return None;
        }
        let scope = self.scope(document)?;
        let refused = self.findings.add_schema(document, &document.to_json(), schema::of(scope));
        let (path_key, path_node) = document.get("path")?;
        let create = self.create(scope, document, &refused);
        let path = path_node.text()?;
        if let Err(why) = path::check(scope, path, create.fields().is_some()) {
            self.findings.error("path", format!("the path {why}"), path_node.span.clone());
        }
        self.check_create(scope, document, &create, &refused);
        let mut sections = BTreeMap::new();
        for of in kinds::sections(scope).filter(|section| section.shape != Shape::Container) {
            if let Some((key, node)) = document.get(of.section) {
                let mut section = self.section(of, key, node, &refused);
                self.unlisted(document, &mut section);
                sections.insert(of.section, section);
            }
        }
        self.check_unlisted(scope, document);
        let origin = self.origin(&path_key.span);
        Some((
            Container { scope, path: path.into(), origin, create, sections },
            path_key.span.clone(),
            path_node.span.clone(),
        ))
    }

    /// What the document is about, if it is of a kind that can be read; if not, why.
    fn scope(&mut self, document: &Node) -> Option<Scope> {
        let Some((key, node)) = document.get("kind") else {
            let at = document
                .entries()
                .first()
                .map_or_else(|| document.span.clone(), |(key, _)| key.span.clone());
            self.findings
                .error("missing", "`kind` is missing", at)
                .help("start the document with `kind: Project`");
            return None;
        };
        let kinds = schema::DOCUMENTS;
        let scope = Scope::ALL.into_iter().find(|scope| node.text() == Some(scope.document()));
        match node.text() {
            Some(_) if scope.is_some() => {}
            Some(kind) if schema::PLANNED_DOCUMENTS.contains(&kind) => {
                let planned = self.findings.error(
                    "not-supported",
                    format!("`kind: {kind}` is not supported yet"),
                    node.span.clone(),
                );
                planned.help(match kind {
                    "Acknowledge" => "leave it out; acknowledge a refusal with `--ack`",
                    _ => "write what it says into each `Project`",
                });
            }
            _ if node.data == Data::Unreadable => {}
            text => {
                let near = text.and_then(|text| nearest(text, kinds));
                let help = near.map_or_else(
                    || "start with `kind: Project`".into(),
                    |near| format!("did you mean `{near}`?"),
                );
                let at = if node.data == Data::Null { &key.span } else { &node.span };
                self.findings
                    .error("choice", format!("`kind` must be {}", alternatives(&kinds)), at.clone())
                    .help(help);
            }
        }
        scope
    }

    fn create(&mut self, scope: Scope, document: &Node, refused: &BTreeSet<String>) -> Creation {
        let (own, _) = kinds::container(scope);
        match document.get(own.section) {
            None => Creation::Forbidden,
            Some((_, node)) if node.data == Data::Bool(false) => Creation::Forbidden,
            Some((_, node)) => {
                let pointer = format!("/{}", own.section);
                let is_good = !refused.iter().any(|refused| is_within(refused, &pointer));
                Creation::Allowed(if is_good {
                    self.fields(own, node)
                } else {
                    Declared::default()
                })
            }
        }
    }

    /// What the kind of the container says about what it is created with.
    fn check_create(
        &mut self,
        scope: Scope,
        document: &Node,
        create: &Creation,
        refused: &BTreeSet<String>,
    ) {
        let Some(create) = create.fields() else { return };
        let (own, _) = kinds::container(scope);
        let along = kinds::sections(scope).filter(|section| section.comes_with_container());
        let sections: Vec<_> = std::iter::once(own).chain(along).collect();
        let is_refused = |section: &Section| {
            let pointer = format!("/{}", section.section);
            refused.iter().any(|refused| is_within(refused, &pointer))
        };
        if sections.iter().any(is_refused) {
            return;
        }
        let nodes: Vec<_> = sections
            .iter()
            .map(|section| document.get(section.section).map(|(_, node)| node))
            .collect();
        let mut declared = create.values();
        for (section, node) in sections.iter().zip(&nodes) {
            declared.extend(node.map(|node| values(section.table(), node)).unwrap_or_default());
        }
        own.rules.check(&declared, true, &mut |fault| {
            let field = fault
                .field
                .and_then(|field| nodes.iter().flatten().find_map(|node| node.get(field)));
            let span = field.map_or_else(|| document.span.clone(), |(key, _)| key.span.clone());
            self.findings.error(fault.code, fault.message, span).help_if(fault.help);
        });
    }

    /// Adds what `unlisted` says about a section.
    fn unlisted(&self, document: &Node, section: &mut DeclaredSection) {
        let policy = document.get("unlisted").and_then(|(_, node)| node.get(section.of.section));
        let Some((key, node)) = policy else { return };
        section.unlisted.origin = self.origin(&key.span);
        section.unlisted.value = match node.text() {
            Some("delete") => Unlisted::Delete,
            Some("fail") => Unlisted::Fail,
            Some("ignore") => Unlisted::Ignore,
            _ => Unlisted::Report,
        };
    }

    fn check_unlisted(&mut self, scope: Scope, document: &Node) {
        let Some((_, unlisted)) = document.get("unlisted") else { return };
        for (key, _) in unlisted.entries() {
            let is_list = kinds::section(scope, &key.name)
                .is_some_and(|section| section.shape == Shape::List);
            if is_list && document.get(&key.name).is_none() {
                let message =
                    format!("`unlisted` names `{}`, which is not in the document", key.name);
                let idle = self.findings.error("unlisted", message, key.span.clone());
                idle.help(format!("write `{}: []` if there are to be none", key.name));
            }
        }
    }

    fn section(
        &mut self,
        of: Section,
        key: &Key,
        node: &Node,
        refused: &BTreeSet<String>,
    ) -> DeclaredSection {
        let pointer = format!("/{}", of.section);
        let is_refused = |pointer: &str| refused.iter().any(|refused| is_within(refused, pointer));
        let origin = self.origin(&key.span);
        let only = |state, fields| {
            vec![Entry { key: String::new(), origin: origin.clone(), state, fields }]
        };
        let mut entries = match of.shape {
            Shape::List => {
                let items = node
                    .items()
                    .iter()
                    .enumerate()
                    .filter(|(_, item)| matches!(item.data, Data::Map(_)));
                let (places, entries): (Vec<_>, Vec<_>) = items
                    .map(|(index, item)| {
                        let (at, is_good) =
                            (first_key(item), !is_refused(&format!("{pointer}/{index}")));
                        let entry = self.entry(of, item, &at, is_good);
                        (at, entry)
                    })
                    .unzip();
                self.check_twice(of, &entries, &places);
                entries
            }
            Shape::Mapping if node.data == Data::Null => only(State::Absent, Declared::default()),
            Shape::Mapping => vec![self.entry(of, node, &key.span, !is_refused(&pointer))],
            Shape::Switch => {
                let value = Sourced { value: node.to_json().into(), origin: origin.clone() };
                only(State::Present, Declared::from_iter([(of.section, value)]))
            }
            Shape::Container => Vec::new(),
        };
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        let unlisted = Sourced { value: Unlisted::default(), origin: origin.clone() };
        DeclaredSection { of, origin, unlisted, entries }
    }

    /// An entry; its kind looks at it only if the schema accepts it (`is_good`).
    fn entry(&mut self, of: Section, node: &Node, at: &Range<usize>, is_good: bool) -> Entry {
        let is_absent = node.get("state").is_some_and(|(_, state)| state.text() == Some("absent"))
            && of.shape == Shape::List;
        let origin = self.origin(at);
        let mut fields = self.fields(of, node);
        for (name, field) in fields.iter_mut() {
            if let Some(spec) = of.table().get(name) {
                forms::normalise(spec, &mut field.value);
            }
        }
        for name in of.identity {
            let default = of.table().get(name).and_then(|spec| spec.schema.get("default"));
            if let Some(default) = default.filter(|_| !fields.contains_key(name)) {
                fields.insert(
                    *name,
                    Sourced { value: default.clone().into(), origin: origin.clone() },
                );
            }
        }
        if is_absent {
            self.check_absent(of, node);
        } else if is_good {
            self.check_entry(of, &fields, node, at);
        }
        let key = if of.shape == Shape::List { of.name(&plain(&fields)) } else { String::new() };
        Entry {
            key,
            origin,
            state: if is_absent { State::Absent } else { State::Present },
            fields: fields.compact(),
        }
    }

    /// What its kind finds wrong with an entry.
    fn check_entry(&mut self, of: Section, fields: &Declared, node: &Node, at: &Range<usize>) {
        of.rules.check(&fields.values(), true, &mut |fault| {
            let field = fault.field.and_then(|field| node.get(field));
            // A value that should not be written is not pointed at.
            let span = match field {
                Some((key, _)) if fault.code == "literal-secret" => key.span.clone(),
                Some((key, value)) => visible_span(key, value),
                None => at.clone(),
            };
            let finding = Finding {
                severity: fault.severity,
                help: fault.help,
                ..Finding::error(fault.code, fault.message, span)
            };
            self.findings.push_once(finding);
        });
    }

    fn check_absent(&mut self, of: Section, node: &Node) {
        for (key, _) in node.entries() {
            let name = key.name.as_str();
            let has_meaning = match of.table().get(name) {
                // What is never sent tells the entry from others, as a hook's earlier addresses do.
                Some(spec) => of.identity.contains(&name) || spec.field.accepted == Accepted::Never,
                None => name != "extra",
            };
            if !has_meaning {
                let message = format!("`{name}` has no meaning for an absent {}", of.noun);
                self.findings
                    .error("absent", message, key.span.clone())
                    .help("take the field away, or `state: absent`");
            }
        }
    }

    /// The fields of a mapping, with those below `extra:`.
    fn fields(&mut self, of: Section, node: &Node) -> Declared {
        let table = of.table();
        let mut fields = Declared::default();
        for (key, value) in node.entries() {
            if let Some(spec) = table.get(&key.name) {
                self.check_field(spec, node, key);
                let value = field_value(spec, value);
                self.check_reference(&value, key);
                self.check_dollar(spec, &value, key);
                self.check_day(spec, &value, key);
                fields
                    .insert(spec.name.as_str(), Sourced { value, origin: self.origin(&key.span) });
            }
        }
        for (key, value) in
            node.get("extra").map(|(_, extra)| extra.entries()).into_iter().flatten()
        {
            if let Err(refused) = extra::check(of, &key.name) {
                self.findings.error("extra", refused.message, key.span.clone()).help(refused.help);
            } else {
                fields.insert(
                    key.name.clone(),
                    Sourced { value: value.to_json().into(), origin: self.origin(&key.span) },
                );
            }
        }
        fields
    }

    /// What a field's treatment says about its use.
    fn check_field(&mut self, spec: &Spec, node: &Node, key: &Key) {
        let (name, needed) = (&spec.name, spec.field.tier);
        if let Some(tier) = self.tier.filter(|tier| *tier < needed) {
            let message = format!("`{name}` needs the {needed} tier; `service.tier` is `{tier}`");
            let tier = self.findings.error("tier", message, key.span.clone());
            tier.help(format!(
                "leave it out, or correct `service.tier` in {}",
                super::config::FILE
            ));
        }
        let is_both = spec.field.replaced_by.as_deref().and_then(|modern| node.get(modern));
        if let Some((modern, _)) = is_both {
            let message = format!("`{name}` and `{}` are two names of one thing", modern.name);
            let twice = self.findings.error("both-spellings", message, key.span.clone());
            twice
                .related(modern.span.clone(), "the one to keep")
                .help(format!("leave out `{name}`, the deprecated one"));
        } else if let Some((_, value)) = node.get(name) {
            self.check_deprecated(&spec.schema, key, value);
        }
    }

    /// What can be said about a secret or a file without looking for it.
    fn check_reference(&mut self, value: &Value, key: &Key) {
        match value {
            Value::Secret(Reference::Env(name)) if !is_variable(name) => {
                let message = format!("`{}` names no environment variable", key.name);
                let wrong = self.findings.error("reference", message, key.span.clone());
                wrong.help("names are made of letters, digits and `_`, and do not start with a digit; the secret itself never stands here");
            }
            Value::Secret(Reference::Env(name)) if is_reserved(name) => {
                let message = format!(
                    "`{name}` belongs to the CI system or to undrift and must not be a value"
                );
                let reserved = self.findings.error("reserved-variable", message, key.span.clone());
                reserved.help("create a secret for this purpose and give it a name of its own");
            }
            Value::Secret(Reference::File(path)) | Value::File(path) if !is_below(path) => {
                let message = format!("`{}` names no file inside the manifest folder", key.name);
                self.findings
                    .error("reference", message, key.span.clone())
                    .help("write a relative path without `..`");
            }
            Value::Secret(_) | Value::File(_) | Value::Plain(_) => {}
        }
    }

    /// Warns of a text that looks like a reference to an environment variable, where undrift has
    /// another form for those.
    fn check_dollar(&mut self, spec: &Spec, value: &Value, key: &Key) {
        let takes_text = matches!(spec.field.secrecy, Secrecy::Sensitive | Secrecy::Address);
        if takes_text && value.text().is_some_and(is_dollar_name) {
            // The name is not quoted: a password may look like one.
            let message = format!(
                "`{}` is sent as written: `$` does not refer to an environment variable of undrift",
                key.name
            );
            let dollar = self.findings.warning("reference", message, key.span.clone());
            dollar.help("write `{env: NAME}` to take it from the environment; leave it if jobs are to expand it");
        }
    }

    /// A day on which something ends should not be over: the service refuses to create such an
    /// entry.
    fn check_day(&mut self, spec: &Spec, value: &Value, key: &Key) {
        let day = value
            .text()
            .filter(|_| spec.schema["format"] == "date")
            .and_then(|day| day.parse::<Date>().ok());
        if day.is_some_and(|day| day < self.today) {
            // A warning: what was right yesterday must not keep all other projects from being
            // applied today.
            let past = self.findings.warning(
                "date",
                format!("`{}` is in the past", key.name),
                key.span.clone(),
            );
            past.help("write a later day or `null`; write `state: absent` if the access has ended");
        }
    }

    /// Warns of a deprecated field, and of those within its value.
    fn check_deprecated(&mut self, schema: &Json, key: &Key, value: &Node) {
        if schema["deprecated"] == true {
            let modern = Field::of(schema).replaced_by.map(|modern| format!("use `{modern}`"));
            self.findings
                .warning("deprecated", format!("`{}` is deprecated", key.name), key.span.clone())
                .help_if(modern);
        }
        for (key, value) in value.entries() {
            if let Some(schema) = schema["properties"].get(&key.name) {
                self.check_deprecated(schema, key, value);
            }
        }
    }

    /// Two entries that are the same thing are an error at both places.
    fn check_twice(&mut self, of: Section, entries: &[Entry], places: &[Range<usize>]) {
        let mut seen: HashMap<String, &Range<usize>> = HashMap::new();
        for (entry, place) in entries.iter().zip(places).filter(|(entry, _)| !entry.key.is_empty())
        {
            let on_service = of.rules.identify(of, &plain(&entry.fields)).keys.into_iter().next();
            let on_service = on_service.unwrap_or_default();
            // Where manifests may give a name of their own, the service has another identity.
            let is_named = on_service != entry.key;
            let keys = [(format!("by name {}", entry.key), false), (on_service, is_named)];
            let twice = keys.into_iter().find_map(|(key, on_service)| {
                let first = *seen.entry(key).or_insert(place);
                (first != place).then_some((first, on_service))
            });
            if let Some((first, on_service)) = twice {
                let identity: Vec<_> = match on_service {
                    true => of.identity.last().copied().into_iter().collect(),
                    false => of.identity.to_vec(),
                };
                let identity = alternatives(&identity).replace(" or ", " and ");
                let message = format!("a {} that is declared twice", of.noun);
                let twice = self
                    .findings
                    .error("duplicate-entry", message, place.clone())
                    .related(first.clone(), "first declared here");
                twice.help(format!("keep one of them; one is told from another by {identity}"));
            }
        }
    }

    fn origin(&self, span: &Range<usize>) -> Origin {
        self.source.origin(span.start, Layer::Project)
    }
}

/// Where an entry begins: its first key.
fn first_key(node: &Node) -> Range<usize> {
    node.entries().first().map_or_else(|| node.span.clone(), |(key, _)| key.span.clone())
}

/// A field's value, or its key if the value is no scalar.
fn visible_span(key: &Key, value: &Node) -> Range<usize> {
    if matches!(value.data, Data::List(_) | Data::Map(_) | Data::Null) {
        key.span.clone()
    } else {
        value.span.clone()
    }
}

/// Whether `name` can be the name of an environment variable.
fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether `text` is nothing but `$NAME` or `${NAME}`.
fn is_dollar_name(text: &str) -> bool {
    let Some(name) = text.strip_prefix('$') else { return false };
    is_variable(name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name))
}

/// Whether `path` stays inside the folder that it is relative to.
pub(super) fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Whether the JSON pointer `inner` is `outer` or lies below it.
fn is_within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The fields of a mapping that `table` knows.
fn values(table: &Table, node: &Node) -> Fields {
    let known = node.entries().iter().filter_map(|(key, value)| {
        Some((key.name.clone(), field_value(table.get(&key.name)?, value)))
    });
    known.collect()
}

/// The value of a field, which may be a reference to a secret or to a file.
fn field_value(spec: &Spec, node: &Node) -> Value {
    if let [(key, value)] = node.entries()
        && let Some(text) = value.text()
        && (spec.field.upload || spec.field.secrecy != Secrecy::Open)
    {
        match key.name.as_str() {
            "file" if spec.field.upload => return Value::File(text.to_owned()),
            "env" => return Value::Secret(Reference::Env(text.to_owned())),
            "file" => return Value::Secret(Reference::File(text.to_owned())),
            _ => {}
        }
    }
    node.to_json().into()
}

/// Fields as plain JSON: a reference to a secret is the text that names it.
fn plain(fields: &Declared) -> Object {
    let json = |value: &Value| match value {
        Value::Plain(json) => json.clone(),
        Value::Secret(reference) => Json::from(reference.to_string()),
        Value::File(path) => Json::from(path.as_str()),
    };
    fields.iter().map(|(name, field)| (name.to_owned(), json(&field.value))).collect()
}
