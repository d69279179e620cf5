//! One file to the projects that it declares.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    path::{Component, Path},
};

use jiff::civil::Date;

use super::{
    Declared, Entry, Project, Section, State, Unlisted, extra,
    faults::{Finding, Findings},
    path, schema,
};
use crate::{
    diagnostic::{Diagnostic, Diagnostics, FileName, Place, Source},
    field::{Accepted, Field, Secrecy, Tier},
    kind::{Kind, Shape, Spec, Table},
    kinds::{self, KINDS, settings},
    origin::{Layer, Origin, Sourced},
    secret::{Reference, is_reserved},
    text::{alternatives, nearest},
    value::{Fields, Json, Object, Value},
    yaml::{self, Data, Key, Node},
};

/// What a file declares, and what is wrong with it.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// The projects, each with the place of its path.
    pub(super) projects: Vec<(Project, Place)>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// A project, and where its key `path` and the path itself stand.
type Placed = (Project, Range<usize>, Range<usize>);

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
    let mut projects = Vec::new();
    for document in parsed.documents.iter().filter(|document| document.data != Data::Null) {
        projects.extend(
            Reader { source: &source, tier, today, findings: &mut findings }.document(document),
        );
    }
    findings.hide(&mut source, &parsed, &schema::PROJECT);
    // A file without faults has not said what is secret in it, and another file may still find
    // fault with a path of this one.
    let place = |(project, key, path): Placed| {
        (project, source.place_within(&path, &(key.start..path.end)))
    };
    let projects = projects.into_iter().map(place).collect();
    Resolved { projects, diagnostics: findings.into_diagnostics(&source) }
}

/// The projects in the order of their paths; one that is declared twice is an error at both places.
pub(super) fn unique(
    mut projects: Vec<(Project, Place)>,
    diagnostics: &mut Diagnostics,
) -> Vec<Project> {
    projects.sort_by_cached_key(|(project, place)| (project.path.to_lowercase(), place.clone()));
    let mut unique: Vec<(Project, Place)> = Vec::with_capacity(projects.len());
    for (project, place) in projects {
        match unique.last() {
            Some((first, first_place))
                if first.path.to_lowercase() == project.path.to_lowercase() =>
            {
                let is_same = first.path == project.path;
                let case =
                    if is_same { "" } else { "; the service takes paths for the same in any case" };
                let twice = Diagnostic::error(
                    "duplicate-project",
                    format!("`{}` is declared twice{case}", project.path),
                );
                let twice = twice.at(place).related(first_place.clone(), "first declared here");
                diagnostics.push(twice.help("keep one document for each project"));
            }
            _ => unique.push((project, place)),
        }
    }
    unique.into_iter().map(|(project, _)| project).collect()
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
        if !self.is_project(document) {
            return None;
        }
        let refused = self.findings.add_schema(document, &document.to_json(), &schema::PROJECT);
        let (path_key, path_node) = document.get("path")?;
        let create = self.create(document, &refused);
        let path = path_node.text()?;
        if let Err(why) = path::check(path, create.is_some()) {
            self.findings.error("path", format!("the path {why}"), path_node.span.clone());
        }
        self.check_create(document, create.as_ref(), &refused);
        let mut sections = BTreeMap::new();
        for kind in KINDS {
            if let Some((key, node)) = document.get(kind.section()) {
                let mut section = self.section(*kind, key, node, &refused);
                self.unlisted(document, &mut section);
                sections.insert(kind.section(), section);
            }
        }
        self.check_unlisted(document);
        let origin = self.origin(&path_key.span);
        Some((
            Project { path: path.into(), origin, create, sections },
            path_key.span.clone(),
            path_node.span.clone(),
        ))
    }

    /// Whether the document is of a kind that can be read; if not, why.
    fn is_project(&mut self, document: &Node) -> bool {
        let Some((key, node)) = document.get("kind") else {
            let at = document
                .entries()
                .first()
                .map_or_else(|| document.span.clone(), |(key, _)| key.span.clone());
            self.findings
                .error("missing", "`kind` is missing", at)
                .help("start the document with `kind: Project`");
            return false;
        };
        let kinds = schema::DOCUMENTS;
        match node.text() {
            Some(kind) if kinds.contains(&kind) => return true,
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
        false
    }

    fn create(&mut self, document: &Node, refused: &BTreeSet<String>) -> Option<Declared> {
        let (_, node) = document.get("create")?;
        if node.data == Data::Bool(false) {
            return None;
        }
        let is_good = !refused.iter().any(|pointer| is_within(pointer, "/create"));
        Some(if is_good {
            self.fields(settings::create_table(), node, "create")
        } else {
            Declared::default()
        })
    }

    /// What the kind of the settings says about them and `create` together.
    fn check_create(
        &mut self,
        document: &Node,
        create: Option<&Declared>,
        refused: &BTreeSet<String>,
    ) {
        let Some(create) = create else { return };
        let parts = ["/create", "/settings"];
        if refused.iter().any(|pointer| parts.iter().any(|part| is_within(pointer, part))) {
            return;
        }
        let nodes = ["create", "settings"].map(|part| document.get(part).map(|(_, node)| node));
        let settings = kinds::of_section("settings")
            .zip(nodes[1])
            .map(|(kind, node)| values(kind.table(), node))
            .unwrap_or_default();
        let create = create.values();
        settings::check_create(&settings, &create, &mut |fault| {
            let field = fault
                .field
                .and_then(|field| nodes.iter().flatten().find_map(|node| node.get(field)));
            let span = field.map_or_else(|| document.span.clone(), |(key, _)| key.span.clone());
            self.findings.error(fault.code, fault.message, span).help_if(fault.help);
        });
    }

    /// Adds what `unlisted` says about a section.
    fn unlisted(&self, document: &Node, section: &mut Section) {
        let policy =
            document.get("unlisted").and_then(|(_, node)| node.get(section.kind.section()));
        let Some((key, node)) = policy else { return };
        section.unlisted_origin = self.origin(&key.span);
        section.unlisted = match node.text() {
            Some("delete") => Unlisted::Delete,
            Some("ignore") => Unlisted::Ignore,
            _ => Unlisted::Report,
        };
    }

    fn check_unlisted(&mut self, document: &Node) {
        let Some((_, unlisted)) = document.get("unlisted") else { return };
        for (key, _) in unlisted.entries() {
            let is_list =
                KINDS.iter().any(|kind| kind.section() == key.name && kind.shape() == Shape::List);
            if is_list && document.get(&key.name).is_none() {
                let message =
                    format!("`unlisted` names `{}`, which is not in the document", key.name);
                let idle = self.findings.error("unlisted", message, key.span.clone());
                idle.help(format!("write `{}: []` if the project is to have none", key.name));
            }
        }
    }

    fn section(
        &mut self,
        kind: &'static dyn Kind,
        key: &Key,
        node: &Node,
        refused: &BTreeSet<String>,
    ) -> Section {
        let pointer = format!("/{}", kind.section());
        let is_refused = |pointer: &str| refused.iter().any(|refused| is_within(refused, pointer));
        let origin = self.origin(&key.span);
        let only = |state, fields| {
            vec![Entry { key: String::new(), origin: origin.clone(), state, fields }]
        };
        let mut entries = match kind.shape() {
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
                        let entry = self.entry(kind, item, &at, is_good);
                        (at, entry)
                    })
                    .unzip();
                self.check_twice(kind, &entries, &places);
                entries
            }
            Shape::Mapping if node.data == Data::Null => only(State::Absent, Declared::default()),
            Shape::Mapping => vec![self.entry(kind, node, &key.span, !is_refused(&pointer))],
            Shape::Switch => {
                let value = Sourced { value: node.to_json().into(), origin: origin.clone() };
                only(State::Present, Declared::from_iter([(kind.section(), value)]))
            }
        };
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        Section {
            kind,
            unlisted_origin: origin.clone(),
            origin,
            unlisted: Unlisted::default(),
            entries,
        }
    }

    /// An entry; its kind looks at it only if the schema accepts it (`is_good`).
    fn entry(
        &mut self,
        kind: &'static dyn Kind,
        node: &Node,
        at: &Range<usize>,
        is_good: bool,
    ) -> Entry {
        let is_absent = node.get("state").is_some_and(|(_, state)| state.text() == Some("absent"))
            && kind.shape() == Shape::List;
        let origin = self.origin(at);
        let mut fields = self.fields(kind.table(), node, kind.section());
        for (name, field) in fields.iter_mut() {
            kind.normalise(name, &mut field.value);
        }
        for name in kind.identity() {
            let default = kind.table().get(name).and_then(|spec| spec.schema.get("default"));
            if let Some(default) = default.filter(|_| !fields.contains_key(name)) {
                fields.insert(
                    *name,
                    Sourced { value: default.clone().into(), origin: origin.clone() },
                );
            }
        }
        if is_absent {
            self.check_absent(kind, node);
        } else if is_good {
            let values = fields.values();
            kind.check(&values, &mut |fault| {
                let field = fault.field.and_then(|field| node.get(field));
                let span =
                    field.map_or_else(|| at.clone(), |(key, value)| visible_span(key, value));
                self.findings.error(fault.code, fault.message, span).help_if(fault.help);
            });
            kind.check_written(&values, &mut |severity, fault| {
                let field = fault.field.and_then(|field| node.get(field));
                let span = field.map_or_else(|| at.clone(), |(key, _)| key.span.clone());
                let finding = Finding {
                    severity,
                    help: fault.help,
                    ..Finding::error(fault.code, fault.message, span)
                };
                self.findings.push_once(finding);
            });
        }
        let key =
            if kind.shape() == Shape::List { kind.key(&plain(&fields)) } else { String::new() };
        Entry {
            key,
            origin,
            state: if is_absent { State::Absent } else { State::Present },
            fields: fields.compact(),
        }
    }

    fn check_absent(&mut self, kind: &dyn Kind, node: &Node) {
        for (key, _) in node.entries() {
            let name = key.name.as_str();
            let has_meaning = match kind.table().get(name) {
                // What is never sent tells the entry from others, as a hook's earlier addresses do.
                Some(spec) => {
                    kind.identity().contains(&name) || spec.field.accepted == Accepted::Never
                }
                None => name != "extra",
            };
            if !has_meaning {
                let message = format!("`{name}` has no meaning for an absent {}", kind.noun());
                self.findings
                    .error("absent", message, key.span.clone())
                    .help("take the field away, or `state: absent`");
            }
        }
    }

    /// The fields of a mapping, with those below `extra:`.
    fn fields(&mut self, table: &'static Table, node: &Node, section: &str) -> Declared {
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
            if let Err(refused) = extra::check(section, &key.name) {
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
    fn check_twice(&mut self, kind: &dyn Kind, entries: &[Entry], places: &[Range<usize>]) {
        let mut seen: HashMap<String, &Range<usize>> = HashMap::new();
        for (entry, place) in entries.iter().zip(places).filter(|(entry, _)| !entry.key.is_empty())
        {
            let fields = plain(&entry.fields);
            let keys = [
                (&entry.key, kind.identity()),
                (&kind.key_on_service(&fields), kind.identity_on_service()),
            ];
            let twice = keys.into_iter().find_map(|(key, identity)| {
                let first = *seen.entry(format!("{identity:?} {key}")).or_insert(place);
                (first != place).then_some((first, identity))
            });
            if let Some((first, identity)) = twice {
                let identity = alternatives(identity).replace(" or ", " and ");
                let message = format!("a {} that is declared twice", kind.noun());
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
