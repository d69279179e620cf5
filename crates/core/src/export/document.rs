//! The documents of groups and projects before they are written as text.
//!
//! A dot in a field's name separates the keys of a mapping: `container_expiration_policy.enabled`.

use std::{collections::BTreeMap, sync::Arc};

use super::declare::UnreadSection;
use crate::{
    catalogue::{self, approval_rules, settings},
    cause::Cause,
    field::{Scope, Tier},
    kind::{ContainerFacts, Section, Shape},
    secret::{Reference, Secret},
    steps,
    value::Json,
    yaml::write::{MapItem, OutputNode, insert_nested},
};

/// The state of an entry that must be absent.
const ABSENT: &str = "absent";
/// The state of an entry that is managed elsewhere.
pub(super) const UNMANAGED: &str = "unmanaged";

/// The document of a group or project.
#[derive(Clone, Debug, Default)]
pub(super) struct ExportedDocument {
    pub(super) scope: Scope,
    pub(super) path: Arc<str>,
    /// The names of the profiles that the document uses.
    pub(super) uses: Vec<String>,
    /// The comments above the document.
    pub(super) comments: Vec<String>,
    /// The sections with content, in the documented order.
    pub(super) sections: Vec<DocSection>,
    /// The sections whose live state is unknown. `Defaults` must not declare them for this
    /// document.
    pub(super) unread_sections: Vec<&'static str>,
    /// True if the container is archived. Then only the section that archives it is written.
    pub(super) is_archived: bool,
    /// True if the container is in a personal namespace.
    pub(super) is_personal: bool,
    /// The highest tier of the fields that the service showed.
    pub(super) tier: Tier,
    /// The highest tier that the responses prove. This tier may be lower than `tier`, because a
    /// service without a licence also shows some fields of a higher tier.
    pub(super) proven_tier: Tier,
    /// The fields that the service does not show, as `section.field`.
    pub(super) hidden_fields: Vec<String>,
    /// The number of entries that set a field unknown to manifests, by `section.field`.
    pub(super) unmanaged_fields: BTreeMap<String, usize>,
    /// The sections to which `Defaults` and profiles do not apply (`ignore_layers`).
    pub(super) sections_ignoring_rules: Vec<&'static str>,
    /// The references in the document, with their values.
    pub(super) secrets: Vec<SecretReference>,
    /// The sections that could not be read, with the causes.
    pub(super) refused_sections: Vec<UnreadSection>,
    /// The entries and fields that no manifest can express, as `section/entry` or
    /// `section/entry.field`, each with the cause.
    pub(super) omitted_parts: Vec<(String, Cause)>,
}

/// A section of a document.
#[derive(Clone, Debug)]
pub(super) struct DocSection {
    pub(super) section: Section,
    pub(super) comments: Vec<String>,
    /// The entries. A section that is not a list has exactly one entry.
    pub(super) entries: Vec<DocEntry>,
}

/// An entry in the form of a manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DocEntry {
    /// The identity of the entry; empty if the section is not a list.
    pub(super) key: String,
    /// The fields in the documented order. A dot in a name separates keys.
    pub fields: Vec<(String, Json)>,
    /// The names of the fields whose live value is omitted or unknown.
    pub(super) unknown_fields: Vec<String>,
    /// A comment about omitted parts, with the reason.
    pub comment: Option<String>,
    /// The value of `state`, if the entry has no other fields apart from the identity.
    pub(super) state: Option<&'static str>,
}

/// A reference that replaces a secret value.
#[derive(Clone, Debug)]
pub(super) struct SecretReference {
    /// The section, the entry and the field with the reference.
    pub(super) section: Section,
    pub(super) key: String,
    pub(super) field: String,
    /// The name of the environment variable.
    pub(super) name: String,
    /// True if the service shows the whole value, without a mask for a credential.
    pub(super) is_shown: bool,
    /// The value that the service shows.
    pub(super) value: Secret,
}

/// `Defaults` or a profile.
#[derive(Debug)]
pub(super) struct ExportedRule {
    pub(super) scope: Scope,
    /// The path of the innermost group that contains all groups and projects of the rule. Empty if
    /// no group contains all of them.
    pub(super) group: String,
    /// The `kind` of the rule, and its `name` or `match`.
    head: [MapItem; 2],
    pub(super) sections: Vec<DocSection>,
}

impl ExportedRule {
    pub(super) fn new(
        scope: Scope,
        group: String,
        head: [MapItem; 2],
        mut sections: Vec<DocSection>,
    ) -> Self {
        sections.iter_mut().for_each(sort_section);
        sections.sort_by_key(DocSection::position_in_document);
        Self { scope, group, head, sections }
    }

    /// The keys of the rule in the documented order, with their values.
    pub(super) fn to_items(&self) -> Vec<MapItem> {
        let for_groups = MapItem::value("for", Scope::Group.document_kind());
        let for_groups = (self.scope == Scope::Group).then_some(for_groups);
        let sections = self.sections.iter().filter_map(DocSection::to_item);
        self.head.iter().cloned().chain(for_groups).chain(sections).collect()
    }
}

impl DocEntry {
    /// An entry that must be absent.
    pub(super) fn absent() -> Self {
        Self { state: Some(ABSENT), ..Self::default() }
    }

    /// True if the entry must be absent.
    pub fn is_absent(&self) -> bool {
        self.state == Some(ABSENT)
    }

    /// The value of the field `name`.
    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// The first field of the identity whose value is omitted or unknown.
    pub(super) fn missing_identity(&self, section: Section) -> Option<&'static str> {
        let needs_identity = section.shape == Shape::List && self.state.is_none();
        let mut names = section.identity.iter().copied().filter(|_| needs_identity);
        names.find(|name| self.unknown_fields.iter().any(|unknown| unknown == name))
    }

    fn to_items(&self) -> Vec<MapItem> {
        let state = self.state.map(|state| ("state".to_owned(), state.into()));
        to_mapping(self.fields.iter().cloned().chain(state))
    }
}

/// The items of a mapping; names with dots become nested mappings.
fn to_mapping(fields: impl IntoIterator<Item = (String, Json)>) -> Vec<MapItem> {
    let mut items = Vec::new();
    for (name, value) in fields {
        insert_nested(
            &mut items,
            &name.splitn(2, '.').collect::<Vec<_>>(),
            MapItem::value("", value),
        );
    }
    items
}

impl DocSection {
    pub(super) const fn new(section: Section, entries: Vec<DocEntry>) -> Self {
        Self { section, comments: Vec::new(), entries }
    }

    /// The name of the section.
    pub(super) fn name(&self) -> &'static str {
        self.section.section
    }

    /// The first entry `key`. The entries must be sorted.
    pub(super) fn entry(&self, key: &str) -> Option<&DocEntry> {
        let index = self.entries.partition_point(|entry| {
            steps::count_step();
            *entry.key < *key
        });
        self.entries.get(index).filter(|entry| entry.key == key)
    }

    /// True if the section has no entries and no comments. A list section without entries declares
    /// that no entry exists.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.comments.is_empty()
    }

    /// The position of the section in a document.
    pub(super) fn position_in_document(&self) -> Option<usize> {
        catalogue::sections(self.section.scoped_kind.scope)
            .position(|section| section.section == self.section.section)
    }

    /// The section as an item of its document; `None` if the section has nothing to write.
    pub(super) fn to_item(&self) -> Option<MapItem> {
        let fields = self.entries.first().map(|entry| &entry.fields[..]).unwrap_or_default();
        let node = match self.section.shape {
            Shape::List => OutputNode::List(
                self.entries
                    .iter()
                    .map(|entry| (entry.to_items(), entry.comment.clone()))
                    .collect(),
            ),
            Shape::Mapping if self.entries.iter().any(DocEntry::is_absent) => {
                OutputNode::Value(Json::Null)
            }
            Shape::Container | Shape::Mapping | Shape::Switch if fields.is_empty() => return None,
            Shape::Mapping => OutputNode::Map(to_mapping(fields.iter().cloned())),
            Shape::Container | Shape::Switch => OutputNode::Value(
                fields.first().map(|(_, value)| value.clone()).unwrap_or_default(),
            ),
        };
        Some(MapItem {
            comments_above: self.comments.clone(),
            ..MapItem::new(self.section.section, node)
        })
    }
}

impl ExportedDocument {
    /// A document without content.
    pub(super) fn new(scope: Scope, path: &str, facts: &ContainerFacts) -> Self {
        Self {
            scope,
            path: path.into(),
            is_archived: facts.is_archived,
            is_personal: facts.personal_owner_id.is_some(),
            ..Self::default()
        }
    }

    /// Removes the setting for the number of approvals if the document also declares the rule that
    /// the service creates for this setting. `check` refuses a document with both.
    pub(super) fn drop_implied_approvals(&mut self) {
        let has_any_approver = self.entries(approval_rules::SECTION).any(|rule| {
            rule.get("rule_type").is_some_and(|word| word == approval_rules::ANY_APPROVER)
        });
        if has_any_approver {
            let sections = self.sections.iter_mut();
            let settings = sections.filter(|doc_section| doc_section.name() == settings::SECTION);
            for entry in settings.flat_map(|doc_section| &mut doc_section.entries) {
                entry.fields.retain(|(name, _)| name != approval_rules::APPROVALS_SETTING);
                // Mark the field as unknown, so that `Defaults` do not set the field.
                entry.unknown_fields.push(approval_rules::APPROVALS_SETTING.to_owned());
            }
        }
    }

    /// The section `name`.
    pub(super) fn section(&self, name: &str) -> Option<&DocSection> {
        self.sections.iter().find(|doc_section| doc_section.name() == name)
    }

    /// The entries of the section `name`.
    fn entries(&self, name: &str) -> impl Iterator<Item = &DocEntry> {
        self.section(name).into_iter().flat_map(|doc_section| &doc_section.entries)
    }

    /// True if `apply` may create the container.
    pub(super) fn can_be_created(&self) -> bool {
        self.sections.iter().any(|doc_section| doc_section.section.shape == Shape::Container)
    }

    /// Declares that the object of `section` is absent, unless the object exists or is unknown.
    pub(super) fn declare_absent(&mut self, section: Section) {
        let is_read = self.section(section.section).is_some()
            || self.unread_sections.contains(&section.section);
        if !is_read {
            self.sections.push(DocSection::new(section, vec![DocEntry::absent()]));
            self.sections.sort_by_key(DocSection::position_in_document);
        }
    }

    /// True if the document declares an import source for the container. Documents with an import
    /// source are not merged with others.
    pub(super) fn has_import_source(&self) -> bool {
        let mut settings = self.entries(settings::SECTION);
        let has_address = settings.any(|entry| entry.get(settings::IMPORT_URL_FIELD).is_some());
        let mut sources = catalogue::container_lookup(self.scope).import_fields.iter();
        has_address
            || sources.any(|source| {
                self.sections.iter().any(|doc_section| {
                    let is_creation = doc_section.section.shape == Shape::Container;
                    let mut fields = doc_section.entries.iter().flat_map(|entry| &entry.fields);
                    doc_section.name() == *source
                        || is_creation && fields.any(|(_, value)| value.get(source).is_some())
                })
            })
    }

    /// The keys of the document with their values. `paths` are the paths of all containers with
    /// this content.
    pub(super) fn to_items(&self, is_watched: bool, paths: &[Arc<str>]) -> Vec<MapItem> {
        let mut kind = MapItem::value("kind", self.scope.document_kind());
        kind.comments_above = self.comments.clone();
        let paths = match paths {
            [path] => MapItem::value("path", &**path),
            paths => MapItem::value("paths", paths.iter().map(|path| &**path).collect::<Json>()),
        };
        let mut items = vec![kind, paths];
        items.extend(is_watched.then(|| MapItem::value("watch", true)));
        if !self.uses.is_empty() {
            items.push(MapItem::value("uses", self.uses.clone()));
        }
        if !self.sections_ignoring_rules.is_empty() {
            items.push(MapItem::value("ignore_layers", self.sections_ignoring_rules.clone()));
        }
        for doc_section in &self.sections {
            match doc_section.to_item() {
                Some(item) => items.push(item),
                None => items[0].comments_above.extend(doc_section.comments.iter().cloned()),
            }
        }
        items
    }

    /// Renames the reference at `index`.
    pub(super) fn rename_secret(&mut self, index: usize, name: String) {
        let SecretReference { section, key, field, .. } = &self.secrets[index];
        let sections =
            self.sections.iter_mut().filter(|doc_section| doc_section.name() == section.section);
        let entries = sections
            .flat_map(|doc_section| &mut doc_section.entries)
            .filter(|entry| entry.key == *key);
        let values = entries.flat_map(|entry| &mut entry.fields).filter(|(name, _)| name == field);
        values.for_each(|(_, value)| *value = env_reference(&name));
        self.secrets[index].name = name;
    }
}

/// A reference to an environment variable in the form of manifests.
pub(super) fn env_reference(name: &str) -> Json {
    Reference::Env(name.to_owned()).to_manifest_json()
}

/// Sorts the entries by identity, and their fields in the documented order.
pub(super) fn sort_section(doc_section: &mut DocSection) {
    doc_section.entries.sort_by(|a, b| a.key.cmp(&b.key));
    let section = doc_section.section;
    doc_section.entries.iter_mut().for_each(|entry| sort_fields(section, &mut entry.fields));
}

/// Sorts fields in the documented order.
pub(super) fn sort_fields(section: Section, fields: &mut [(String, Json)]) {
    let specs = section.specs();
    fields.sort_by_cached_key(|(name, _)| {
        let (outer, inner) = name.split_once('.').unwrap_or((name, ""));
        let index = specs.iter().position(|spec| spec.name == outer);
        let keys = index.and_then(|position| specs[position].schema["properties"].as_object());
        (index, keys.and_then(|keys| keys.keys().position(|key| key == inner)))
    });
}
