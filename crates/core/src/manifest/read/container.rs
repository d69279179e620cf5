//! Reads the manifest document of a group or project.
//!
//! A document with several paths is expanded into one declaration for each path. The declaration
//! has the origin of its path. The shared fields keep their origins in the body of the document.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
};

use super::{
    super::schema::OLD_UNLISTED_KEY,
    Document, DocumentReader,
    document::{DeclaredContainer, DocumentSection, EntryState, LayerBody, LayerEntry, Validity},
    extra, templates,
    unfilled::{TextPlace, is_masked_expression},
};
use crate::{
    catalogue::{self, settings, words},
    desired::{ContainerLifecycle, DeclaredFields, EntryPresence, PROJECTS_KEY, Unlisted},
    field::Scope,
    kind::{self, FORMER_FIELD, FieldSpec, FieldTable, Shape, forms},
    manifest::faults::{placeholders, texts},
    origin::Sourced,
    secret::{Reference, has_reference},
    value::{Value, texts},
    yaml::{MappingKey, Node, NodeValue},
};

/// The key for several paths.
pub(super) const PATHS_KEY: &str = "paths";

/// A path of a document, with the fields that are only for this path.
struct DocumentPath {
    path: Sourced<Arc<str>>,
    former_paths: Vec<Sourced<Arc<str>>>,
    params: BTreeMap<Arc<str>, Sourced<Value>>,
}

/// The fields that were read from a mapping.
#[derive(Default)]
struct ParsedFields<'n> {
    fields: Vec<(&'n str, Sourced<Value>)>,
    /// True if one of the fields contains a template or a list form.
    has_templates: bool,
}

impl ParsedFields<'_> {
    fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|(other, _)| *other == name)
    }
}

impl DocumentReader<'_, '_> {
    /// Reads the document of a group or project, or of several groups or projects.
    pub(super) fn read_containers(&mut self, document: &Node) -> Vec<Document> {
        let paths = self.read_paths(document);
        if paths.is_empty() {
            return Vec::new();
        }
        let (scope, is_selected_by_command) = (self.scope, self.is_selected_by_command);
        let shares_document = document.get(PATHS_KEY).is_some();
        let (body, state) = (self.read_body(document), self.read_state(document));
        let bodies = std::iter::repeat_n(body, paths.len());
        let containers = paths.into_iter().zip(bodies).map(|(document_path, mut body)| {
            let DocumentPath { path, former_paths, params } = document_path;
            body.params.extend(params);
            let lifecycle =
                ContainerLifecycle { former_paths, state: state.clone(), ..Default::default() };
            DeclaredContainer {
                scope,
                path,
                is_selected_by_command,
                shares_document,
                lifecycle,
                body,
            }
        });
        containers.map(|container| Document::Container(Box::new(container))).collect()
    }

    /// Reads `path` of a document, or all `paths`.
    fn read_paths(&mut self, document: &Node) -> Vec<DocumentPath> {
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

    /// Reads the sections of `document`, and the keys that control how layers are merged.
    pub(super) fn read_body(&mut self, document: &Node) -> LayerBody {
        let mut body = self.read_layering_keys(document);
        for kind in catalogue::sections(self.scope) {
            // Skip a list section whose value is not a list, because the check by the schema
            // reports it.
            if let Some((key, node)) = document.get(kind.section)
                && (kind.shape != Shape::List || matches!(node.data, NodeValue::List(_)))
            {
                body.sections.push(self.read_section(kind, key, node));
            }
        }
        body.sections.sort_by_key(|section| section.section_kind.section);
        for (key, node) in document["unlisted"].entries() {
            let section = catalogue::find_section(self.scope, &key.name)
                .filter(|kind| kind.allows_unlisted());
            let is_projects_policy = self.scope == Scope::Group && key.name == PROJECTS_KEY;
            let projects_key = is_projects_policy.then_some(PROJECTS_KEY);
            if let Some(policy_name) = section.map(|kind| kind.section).or(projects_key) {
                body.unlisted.insert(policy_name, self.attach_origin(key, parse_policy(node)));
            }
        }
        if let Some((key, node)) = document.get(OLD_UNLISTED_KEY) {
            self.findings.report(texts::OLD_UNLISTED, key.span.clone(), &[]);
            body.unlisted
                .entry(PROJECTS_KEY)
                .or_insert(self.attach_origin(key, parse_policy(node)));
        }
        body
    }

    /// Reads `state`, which decides if the group or project must exist.
    fn read_state(&self, document: &Node) -> Option<Sourced<EntryPresence>> {
        let (key, state) = document.get("state")?;
        let is_absent = state.text() == Some("absent");
        let presence = if is_absent { EntryPresence::Absent } else { EntryPresence::Present };
        Some(self.attach_origin(key, presence))
    }

    fn read_section(
        &mut self,
        section: kind::Section,
        key: &MappingKey,
        node: &Node,
    ) -> DocumentSection {
        let origin = self.origin(key.span.start);
        if section.shape == Shape::List {
            let items = node.items().iter().enumerate();
            let mappings = items.filter(|(_, item)| matches!(item.data, NodeValue::Map(_)));
            let entries =
                mappings.map(|(index, entry)| self.read_entry(section, index, entry)).collect();
            return DocumentSection { section_kind: section, origin, entries };
        }
        let validity = self.find_validity(section, || format!("/{}", section.section));
        let (state, fields, has_templates) = match (section.shape, &node.data) {
            (Shape::Mapping | Shape::Switch, NodeValue::Null)
            | (Shape::Container, NodeValue::Bool(false)) => {
                (EntryState::Absent, DeclaredFields::default(), false)
            }
            (Shape::Switch, _) => {
                let field = (section.section, self.attach_origin(key, node.to_json().into()));
                (EntryState::Present, DeclaredFields::from_iter([field]), false)
            }
            _ => {
                let ParsedFields { fields, has_templates } = self.read_fields(section, node);
                (EntryState::Present, fields.into_iter().collect(), has_templates)
            }
        };
        let (entry_origin, key) = (origin.clone(), OnceLock::from(String::new()));
        let entry =
            LayerEntry { origin: entry_origin, state, validity, has_templates, fields, key };
        DocumentSection { section_kind: section, origin, entries: vec![entry] }
    }

    /// Reads the entry at `index` of a list section.
    fn read_entry(&mut self, section: kind::Section, index: usize, node: &Node) -> LayerEntry {
        let state = match node["state"].text() {
            Some("absent") => EntryState::Absent,
            Some("unmanaged") => EntryState::Unmanaged,
            _ => EntryState::Present,
        };
        let origin = self.origin(node.start_offset());
        let mut parsed_fields = self.read_fields(section, node);
        let mut validity = self.find_validity(section, || format!("/{}/{index}", section.section));
        if validity != Validity::Valid
            && self.add_misspelled_fields(section, node, &mut parsed_fields)
        {
            validity = Validity::IdentityOnly;
        }
        for name in section.identity {
            let default = section.spec(name).and_then(|spec| spec.schema.get("default"));
            if let Some(default) = default.filter(|_| !parsed_fields.has_field(name)) {
                let value = default.clone().into();
                parsed_fields.fields.push((name, Sourced { value, origin: origin.clone() }));
            }
        }
        let ParsedFields { fields, has_templates } = parsed_fields;
        let (fields, key) = (fields.into_iter().collect(), OnceLock::new());
        LayerEntry { origin, state, validity, has_templates, fields, key }
    }

    /// Adds the misspelled fields of an invalid entry under their right names, so that such a field
    /// is not also reported as missing. Returns true if the entry has misspelled fields and no
    /// other unknown keys.
    fn add_misspelled_fields<'n>(
        &self,
        section: kind::Section,
        node: &'n Node,
        parsed_fields: &mut ParsedFields<'n>,
    ) -> bool {
        let schema = &section.table().schema;
        let field_names: Vec<_> = section.specs().iter().map(|spec| spec.name).collect();
        let required_names: Vec<_> =
            texts(&schema["required"]).chain(section.identity.iter().copied()).collect();
        let entries = node.entries();
        let is_unknown = |name: &str| {
            !field_names.contains(&name)
                && !words::ENTRY_KEYS.contains(&name)
                && name != FORMER_FIELD
        };
        let (mut corrected_count, mut unknown_count) = (0, 0);
        for (key, value) in entries.iter().filter(|(key, _)| is_unknown(&key.name)) {
            unknown_count += 1;
            let places = [section.section, words::ANY_SECTION];
            let alias = words::find_meaning_with_schema(schema, &places, &key.name);
            let suggested_name = words::suggest_field(alias, &key.name, &field_names);
            let name = suggested_name.or_else(|| {
                section.identity.iter().copied().find(|name| !parsed_fields.has_field(name))
            });
            let name = name.filter(|name| {
                (suggested_name.is_some() || required_names.contains(name))
                    && !parsed_fields.has_field(name)
            });
            let Some(name) = name else { continue };
            // A field of the other scope is not misspelled.
            let mut sections = catalogue::all_sections().filter(|s| s.section == section.section);
            let exists_in_other_scope = sections.any(|section| section.spec(&key.name).is_some());
            corrected_count += usize::from(suggested_name.is_some() && !exists_in_other_scope);
            // In an entry such as `- LOG_LEVEL: debug`, the key is the name.
            let is_alias =
                words::find_meaning_with_schema(schema, &[section.section], &key.name).is_some();
            let is_name_and_value = suggested_name.is_none() && !is_alias && entries.len() == 1;
            let value = if is_name_and_value { key.name.as_str().into() } else { value.to_json() };
            parsed_fields.fields.push((name, self.attach_origin(key, value.into())));
        }
        corrected_count > 0 && corrected_count == unknown_count
    }

    /// Reads and normalizes the fields of a mapping, including those below `extra:`.
    fn read_fields<'n>(&mut self, section: kind::Section, node: &'n Node) -> ParsedFields<'n> {
        let mut parsed_fields = ParsedFields::default();
        self.add_fields(section.table(), "", node, &mut parsed_fields);
        for (key, value) in node.entries() {
            if let Some(spec) = section.spec(&key.name)
                && !(key.name == "value" && is_masked_expression(node, value))
            {
                self.check_placeholders(TextPlace::for_field(spec), key, value, &spec.schema);
            }
        }
        let extra = node.get("extra").map(|(_, extra)| extra.entries());
        for (key, value) in extra.into_iter().flatten() {
            let name_fault = extra::check_extra_key(section, &key.name, key.span.clone()).err();
            if let Some(fault) = name_fault.or_else(|| extra::find_malformed_form(value)) {
                self.findings.push(fault);
                continue;
            }
            self.check_untyped_value(TextPlace::Extra, key, value);
            let value = value.to_json();
            parsed_fields.has_templates |= has_reference(&value);
            parsed_fields.fields.push((&key.name, self.attach_origin(key, value.into())));
        }
        parsed_fields
    }

    /// Adds the known fields of a mapping. Their names in `table` start with `prefix`.
    fn add_fields<'n>(
        &self,
        table: &'static FieldTable,
        prefix: &str,
        node: &Node,
        parsed_fields: &mut ParsedFields<'n>,
    ) {
        for (key, value) in node.entries() {
            let name = match prefix {
                "" => Cow::Borrowed(&*key.name),
                _ => Cow::Owned(format!("{prefix}{}", key.name)),
            };
            if let Some(spec) = table.get(&name) {
                parsed_fields.has_templates |= templates::contains_form(&spec.schema, value);
                let mut value = read_value(spec, value);
                parsed_fields.has_templates |= value.sources().iter().any(Reference::is_template)
                    || (spec.has_secret_rows() && value.plain_json().is_some_and(has_reference));
                forms::normalize_spelling(spec, &mut value);
                parsed_fields.fields.push((spec.name, self.attach_origin(key, value)));
            } else if table.is_spread(&name) {
                self.add_fields(table, &format!("{name}."), value, parsed_fields);
            }
        }
    }
}

/// Parses the policy for unlisted entries. Returns the default if the policy is invalid.
fn parse_policy(node: &Node) -> Unlisted {
    let word = node.text();
    Unlisted::ALL.into_iter().find(|policy| word == Some(policy.word())).unwrap_or_default()
}

/// The value of a field, which may be a reference to a secret or to a file.
fn read_value(spec: &FieldSpec, node: &Node) -> Value {
    match parse_reference(node).filter(|_| spec.field.accepts_reference()) {
        Some(Reference::File(path)) if spec.field.is_upload() => Value::File(path),
        Some(reference) => Value::Secret(reference),
        None => node.to_json().into(),
    }
}

/// Parses a reference: `{env: NAME}` or `{file: PATH}`. Returns `None` if `node` is not a
/// reference.
pub(super) fn parse_reference(node: &Node) -> Option<Reference> {
    let [(key, value)] = node.entries() else { return None };
    Reference::parse(&key.name, value.text()?.to_owned())
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
