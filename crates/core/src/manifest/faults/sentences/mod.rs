//! Messages for schema errors, with help.

mod example;
mod guess;
mod suggest;
mod value;

use std::collections::BTreeSet;

use example::value_example;
use guess::has_property;
use jsonschema::{ValidationError, error::ValidationErrorKind};
pub(in crate::manifest) use suggest::suggest_for_text;

use super::{
    FileFaults, LocatedFault, MAX_SHOWN_FAULTS,
    locate::{SchemaPosition, first_sentence},
    placeholders, texts,
};
use crate::{
    catalogue::{
        self,
        words::{self, Meaning},
    },
    desired::PROJECTS_KEY,
    diagnostic::Severity,
    field::{Field, Scope, Secrecy},
    kind::{Section, Shape},
    level::AccessLevel,
    text::{list_names, looks_like_name, plural},
    value::Json,
    yaml::{MappingKey, Node, NodeValue},
};

/// The maximum number of names in one mapping that are compared with each field. Real mappings have
/// fewer names.
const MAX_COMPARED_NAMES: usize = 1_000;

/// The end of a help text. It explains how to declare something for all projects below a group.
const RULE_HINT: &str = "; for all projects below, write `kind: Defaults` with `match: {path: GROUP/**}`, and `undeclared: include` for those without a document";

/// A mapping with only the corrected parts of `document`: an alias is replaced by the name of its
/// field, and a mapping from names to entries becomes a list.
pub(super) fn repair_document(document: &Node, root_schema: &Json) -> Node {
    let root_position = SchemaPosition::new(document, root_schema, root_schema);
    let mut repaired_names = BTreeSet::new();
    let entries = document.entries().iter().filter_map(|(key, value)| {
        let is_property = root_schema["properties"].get(&key.name).is_some();
        let name = match root_position.find_alias(&key.name) {
            Some(Meaning::Field(name)) if !is_property => name,
            _ => &key.name,
        };
        let list_node = list_from_mapping(name, value, &root_schema["properties"][name]);
        let is_repaired = if is_property { list_node.is_some() } else { name != key.name };
        // Two written names can mean the same key. Use only the first name.
        let key = MappingKey { name: name.to_owned(), span: key.span.clone() };
        let is_new = is_repaired && repaired_names.insert(key.name.clone());
        is_new.then(|| (key, list_node.unwrap_or_else(|| value.clone())))
    });
    Node { data: NodeValue::Map(entries.collect()), span: document.span.clone() }
}

/// Converts `value`, a mapping from names to entries, to the list of the section `name`. Returns
/// `None` if `value` is not such a mapping.
fn list_from_mapping(name: &str, value: &Node, schema: &Json) -> Option<Node> {
    let identity = *find_sections(name).next()?.identity.first()?;
    let properties = &schema["items"]["properties"];
    let items = value.entries().iter().map(|(key, entry)| {
        let NodeValue::Map(fields) = &entry.data else { return None };
        let is_entry = properties.get(&key.name).is_none()
            && !matches!(&fields[..], [(only_key, _)] if ["env", "file"].contains(&&*only_key.name))
            && fields.iter().all(|(key, value)| {
                properties.get(&key.name).is_some() || !matches!(value.data, NodeValue::Map(_))
            });
        if !is_entry {
            return None;
        }
        let identity_value =
            Node { data: NodeValue::Text(key.name.clone()), span: key.span.clone() };
        let identity_entry =
            (MappingKey { name: identity.to_owned(), span: key.span.clone() }, identity_value);
        let missing_identity = entry.get(identity).is_none().then_some(identity_entry);
        let fields = missing_identity.into_iter().chain(fields.iter().cloned()).collect();
        Some(Node { data: NodeValue::Map(fields), span: entry.span.clone() })
    });
    let items: Vec<_> = items.collect::<Option<_>>()?;
    let is_convertible = properties.get(identity).is_some() && !items.is_empty();
    is_convertible.then(|| Node { data: NodeValue::List(items), span: value.span.clone() })
}

/// The kinds of sections with this `name`, at most one for each scope.
fn find_sections(name: &str) -> impl Iterator<Item = Section> {
    catalogue::all_sections().filter(move |kind| kind.section == name)
}

/// The fault of a missing required field. `schema` is the schema of the mapping that lacks the
/// field.
pub(in crate::manifest) fn missing_field_fault<A>(
    property: &str,
    schema: &Json,
    position: A,
) -> LocatedFault<A> {
    let fault_texts = match property {
        "match" => texts::MISSING_MATCH,
        "file" => texts::MISSING_FILE_FIELD,
        _ => texts::MISSING,
    };
    let field = &schema["properties"][property];
    let (about, example) = (first_sentence(field).unwrap_or_default(), value_example(field));
    LocatedFault::new(fault_texts, position, placeholders![property, about, example])
}

impl SchemaPosition<'_> {
    /// Reports `error`. All unknown keys and missing fields are reported. Of several other errors
    /// at one position, only the first is reported (`is_first` is true).
    pub(super) fn report_error(
        &self,
        error: &ValidationError<'_>,
        is_first: bool,
        faults: &mut FileFaults,
    ) {
        if self.node.data == NodeValue::Unreadable {
            return;
        }
        if Field::from_schema(self.schema).secrecy() != Secrecy::Open {
            if is_first {
                faults.push(self.secret_fault());
            }
            return;
        }
        if let Some(section) = self.guess_other_section() {
            if is_first {
                faults.report(texts::FIELDS_OF_OTHER, self.span(), placeholders![section]);
            }
            return;
        }
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                self.report_unknown_keys(unexpected, faults);
            }
            ValidationErrorKind::Required { property } => {
                let property = property.as_str().unwrap_or_default();
                if !self.is_misnamed(property) {
                    let fault =
                        faults.push(missing_field_fault(property, self.schema, self.span()));
                    fault.label = self.is_list_item.then(|| "in this entry".to_owned());
                }
            }
            // If the mapping has unknown keys, these keys are reported instead.
            ValidationErrorKind::MaxProperties { .. }
                if !self.node.keys().all(|name| has_property(self.schema, name)) => {}
            _ if is_first && !self.has_misplaced_keys() => {
                faults.push(self.value_fault(error));
            }
            _ => {}
        }
    }

    /// The other section, if an entry only has fields of another section.
    fn guess_other_section(&self) -> Option<&str> {
        let has_no_known_key = self.is_list_item
            && self.depth == 2
            && !self
                .node
                .keys()
                .any(|name| has_property(self.schema, name) || self.find_alias(name).is_some());
        let section =
            self.guess_section(std::slice::from_ref(self.node)).filter(|_| has_no_known_key)?;
        let kind = find_sections(section).next()?;
        kind.identity.iter().all(|name| self.node.get(name).is_some()).then_some(section)
    }

    /// Reports the unknown keys `unexpected`. If one of these keys belongs to another tool, reports
    /// only that key.
    fn report_unknown_keys(&self, unexpected: &[String], findings: &mut FileFaults) {
        let mut names = unexpected.iter();
        if let Some(name) =
            names.find(|name| matches!(self.find_alias(name), Some(Meaning::Foreign(_))))
        {
            findings.push(self.unknown_key_fault(name));
            return;
        }
        let mut unknown_names: Vec<_> = unexpected.iter().map(String::as_str).collect();
        if self.has_other_scope_identity() {
            unknown_names.retain(|name| self.explain_other_scope(name).is_none());
        }
        for (key, _) in self.node.entries() {
            let misplaced_names = misplaced_keys(self.node, self.schema, key);
            if !misplaced_names.is_empty() {
                unknown_names.retain(|name| !misplaced_names.contains(name));
                let (key_span, keys) = (key.span.clone(), list_names(&misplaced_names));
                findings.report(texts::NOT_INDENTED, key_span, placeholders![key = key.name, keys]);
            }
        }
        let shown_count = MAX_SHOWN_FAULTS.saturating_sub(findings.items.len());
        let hidden_count = unknown_names.len().saturating_sub(shown_count);
        for name in unknown_names.into_iter().take(shown_count) {
            findings.push(self.unknown_key_fault(name));
        }
        findings.hidden_faults.add(hidden_count, Severity::Error);
    }

    fn secret_fault(&self) -> LocatedFault {
        let is_reference = Field::from_schema(self.schema).secrecy() == Secrecy::Reference;
        let (code, message) = match &self.node.data {
            NodeValue::Null => ("null", "is empty"),
            NodeValue::Map(_) if self.looks_like_reference() => {
                ("reference", "is not a well-formed reference to a secret")
            }
            _ if is_reference => ("reference", "must be a reference to a secret"),
            NodeValue::Bool(_) | NodeValue::Number(_) => ("quote", "must be text"),
            _ => ("reference", "must be text or a reference to a secret"),
        };
        let span = self.key.map_or_else(|| self.span(), |key| key.span.clone());
        let message = format!("{} {message}", self.name());
        LocatedFault { position: span, ..self.build_fault("secret", code, message) }
    }

    fn unknown_key_fault(&self, name: &str) -> LocatedFault {
        let span = self.node.get(name).map_or_else(|| self.span(), |(key, _)| key.span.clone());
        let noun = if self.depth == 0 && self.key.is_none() { "key" } else { "field" };
        let (code, message) = match self.find_alias(name) {
            Some(Meaning::NotYet) => ("not-supported", format!("`{name}` is not supported yet")),
            Some(Meaning::Foreign(tool)) => {
                ("unknown-field", format!("`{name}` is a key of {tool}, not of undrift"))
            }
            // The key may be anything, even a secret, so it is not quoted.
            _ if !looks_like_name(name) => ("unknown-field", format!("an unknown {noun}")),
            _ => ("unknown-field", format!("unknown {noun} `{name}`")),
        };
        let value = self.node.get(name).map(|(_, value)| value);
        let position = SchemaPosition { subject: name, unknown_value: value, ..self.clone() };
        LocatedFault { position: span, ..position.build_fault("field", code, message) }
    }

    /// Help for the key `name`, which is an alias. If the value of the key must change too, the
    /// help contains the new value.
    fn alias_help(&self, name: &str, alias: Meaning<'_>) -> String {
        let help = alias.help();
        let Some((key, node)) = self.node.get(name) else { return help };
        if let Some(path) = node.text().filter(|path| path.contains('/'))
            && matches!(alias, Meaning::Write(_))
        {
            return help.replace("acme/**", path);
        }
        if let Meaning::Field(field) = alias {
            let position = self.child_position(key, node, field);
            if Field::from_schema(position.schema).secrecy() != Secrecy::Open {
                return help;
            }
            return match (position.suggest_option(), position.suggest_correction()) {
                (Some(option), _) => format!("write `{field}: {option}`"),
                (None, Some(correction)) => format!("{help}, and {correction}"),
                (None, None) => help,
            };
        }
        let level = (node.text().and_then(example::parse_level))
            .or_else(|| Some(AccessLevel::parse(&node.to_json())?.word))
            .unwrap_or("maintainer");
        let help = help.replace("access_level: maintainer", &format!("access_level: {level}"));
        match (alias, &node.data) {
            (Meaning::Write(_), NodeValue::Number(number)) => {
                // Each example with the maximum that the service accepts.
                let examples = [("approvals_required: 2", 100), ("required_approvals: 1", 5)];
                let count = number.to_string().parse::<u64>().ok();
                let examples = examples.iter().filter(|(_, max)| count.is_some_and(|n| n <= *max));
                examples.fold(help, |help, (example, _)| {
                    help.replace(example, &format!("{}{number}", &example[..example.len() - 1]))
                })
            }
            (Meaning::Opposite(field), NodeValue::Bool(value)) => {
                format!("write `{field}: {}`", !value)
            }
            (Meaning::Level(field), NodeValue::Bool(true)) => format!("write `{field}: enabled`"),
            (Meaning::Level(field), NodeValue::Bool(false)) => format!("write `{field}: disabled`"),
            _ => help,
        }
    }

    /// The help for a value that its field does not accept. `None` unless the help is an
    /// instruction that starts with "write", "remove" or "put".
    pub(super) fn suggest_correction(&self) -> Option<String> {
        let validator = jsonschema::validator_for(self.schema).ok()?;
        let json = self.node.to_json();
        let error = validator.iter_errors(&json).next()?;
        // Faults inside a section are reported separately.
        let pointer =
            Some(error.instance_path().as_str()).filter(|path| path.is_empty() || self.depth > 1);
        let help = self.clone().follow_pointer(pointer?)?.value_fault(&error).help?;
        ["write ", "remove ", "put "].iter().any(|verb| help.starts_with(verb)).then_some(help)
    }

    /// True if the key of this position has no value, because the keys that belong below it are not
    /// indented.
    fn has_misplaced_keys(&self) -> bool {
        let parent = self.parent.zip(self.key).filter(|_| !self.is_list_item);
        parent.is_some_and(|((node, schema), key)| !misplaced_keys(node, schema, key).is_empty())
    }

    /// True if an unknown key probably means the missing `property`. Then only the unknown key is
    /// reported.
    fn is_misnamed(&self, property: &str) -> bool {
        let fields = self.property_names();
        let mut entries = self.node.entries().iter();
        if property == "at"
            && entries.any(|(key, value)| {
                self.child_position(key, value, &key.name).address_after_guard().is_some()
            })
        {
            return true;
        }
        self.node.keys().take(MAX_COMPARED_NAMES).filter(|name| !fields.contains(name)).any(
            |name| {
                match self.find_alias(name) {
                    Some(Meaning::Foreign(_)) => true,
                    // The key belongs in another section, or means several entries. Do not also
                    // report the missing identity.
                    Some(Meaning::Write(_)) if self.is_list_item && self.is_identity(property) => {
                        true
                    }
                    _ => self.guess_field(name, &fields) == Some(property),
                }
            },
        )
    }

    /// Help for a section or field `name` that only exists for groups, or only for projects.
    fn explain_other_scope(&self, name: &str) -> Option<String> {
        let is_container = self.root_schema["properties"].get("unlisted").is_some();
        let mut sections = catalogue::all_sections().filter(|_| is_container);
        if self.depth == 1 && self.key.is_some_and(|key| key.name == "unlisted") {
            let list_section =
                sections.find(|section| section.section == name && section.shape == Shape::List);
            if let Some(section) = list_section.filter(|section| section.cannot_remove_entries()) {
                let nouns = plural(section.noun);
                return Some(format!(
                    "leave it out: {nouns} that no manifest lists stay unchanged"
                ));
            }
            let scope = list_section.map(|kind| kind.scoped_kind.scope);
            let noun = scope.or((name == PROJECTS_KEY).then_some(Scope::Group))?.noun();
            return Some(format!("only a {noun} has this: write it in the document of a {noun}"));
        }
        let other_section = sections.find(|kind| match self.depth {
            0 => kind.section == name,
            _ => {
                kind.section == self.section
                    && self.is_section_or_entry()
                    && kind.spec(name).is_some()
            }
        })?;
        let scope = other_section.scoped_kind.scope;
        let is_rule = self.root_schema["properties"].get("for").is_some();
        let rule_hint = match scope {
            Scope::Group if is_rule => "; write `for: Group` for a rule about groups",
            Scope::Project if is_rule && self.depth == 0 => {
                "; write a rule without `for: Group` for projects"
            }
            // An item of a list is never at the top of a document.
            _ if self.is_list_item => "",
            Scope::Project => RULE_HINT,
            Scope::Group => "; declare it in the document of the group, with `kind: Group`",
        };
        let key_noun = if self.depth == 0 { "section" } else { "field" };
        Some(format!("only a {} has this {key_noun}{rule_hint}", scope.noun()))
    }

    /// True if the identity of the entry is a word that is only allowed for groups, or only for
    /// projects.
    fn has_other_scope_identity(&self) -> bool {
        let mut sections = find_sections(&self.section).filter(|_| self.is_list_item);
        let name = sections.next().and_then(|kind| kind.identity.first());
        let identity = name.and_then(|name| self.node.get(name));
        identity.is_some_and(|(key, value)| {
            self.child_position(key, value, &key.name).other_scope().is_some()
        })
    }

    /// True if the position is a section or one of its entries.
    fn is_section_or_entry(&self) -> bool {
        self.depth == usize::from(!self.section.is_empty()) + usize::from(self.is_list_item)
    }

    /// The meaning of the unknown key `name`; `None` if `name` is not an alias.
    fn find_alias(&self, name: &str) -> Option<Meaning<'_>> {
        // In the table of aliases, `NAME[]` is a key `NAME` whose value is a list of texts.
        let list_name = format!("{name}[]");
        let items = self.node.get(name).map_or(&[][..], |(_, value)| value.items());
        let is_list_of_texts = !items.is_empty() && items.iter().all(|item| item.text().is_some());
        // The names of Terraform resources have these prefixes.
        let prefixes = ["gitlab_", "gitlab_project_", "gitlab_group_"].into_iter();
        let spellings = prefixes.filter_map(|prefix| name.strip_prefix(prefix));
        let spellings = std::iter::once(name).chain(spellings);
        let look_up = |schema, places: &[&str]| {
            let list_alias = words::find_meaning(places, &list_name).filter(|_| is_list_of_texts);
            let mut spellings = spellings.clone();
            list_alias.or_else(|| {
                spellings.find_map(|name| words::find_meaning_with_schema(schema, places, name))
            })
        };
        let document_kind = self.root_schema["properties"].get("kind").map(|kind| &kind["enum"][0]);
        let places = match (self.key, document_kind.and_then(Json::as_str)) {
            (Some(key), _) if key.name == "unlisted" => {
                let field = look_up(self.root_schema, &[words::TOP_LEVEL])
                    .filter(|meaning| meaning.field().is_some());
                return look_up(&Json::Null, &["unlisted"]).or(field.filter(|meaning| {
                    self.property_names().contains(&meaning.field().unwrap_or_default())
                }));
            }
            (Some(key), Some(_)) if self.is_section_or_entry() => {
                vec![&*key.name, words::ANY_SECTION]
            }
            (Some(key), _) => vec![&*key.name],
            (None, Some(document_kind)) => vec![document_kind, words::TOP_LEVEL],
            (None, None) => vec![self.root_schema["title"].as_str().unwrap_or_default()],
        };
        // If the document already has the field, the key cannot be an alias of this field.
        look_up(self.schema, &places).filter(|alias| match alias {
            Meaning::Field(field) => {
                self.property_names().contains(field) && self.node.get(field).is_none()
            }
            _ => true,
        })
    }
}

/// The unknown keys of `node` that belong below its empty `key`, but are not indented.
fn misplaced_keys<'d>(node: &'d Node, schema: &Json, key: &MappingKey) -> Vec<&'d str> {
    let Some(inner_schema) = schema["properties"].get(&key.name) else { return Vec::new() };
    let takes_keys =
        inner_schema["properties"].is_object() || inner_schema["items"]["properties"].is_object();
    if !takes_keys || node.get(&key.name).is_none_or(|(_, value)| value.data != NodeValue::Null) {
        return Vec::new();
    }
    let names = node.keys().filter(|name| {
        !has_property(schema, name)
            && (has_property(inner_schema, name) || has_property(&inner_schema["items"], name))
    });
    names.collect()
}
