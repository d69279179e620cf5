//! Groups and projects as they will be written, before that is text.
//!
//! A field within a mapping of a section is named with a dot: `container_expiration_policy.enabled`.

use std::sync::Arc;

use crate::{
    field::{Scope, Tier},
    kind::{Section, Shape},
    kinds,
    secret::Secret,
    value::{Json, Object},
    yaml::write::{Item, Node},
};

/// The state of an entry that must not be there.
pub(super) const ABSENT: &str = "absent";
/// The state of an entry that is somebody else's.
pub(super) const UNMANAGED: &str = "unmanaged";

/// What one group or project will say.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) scope: Scope,
    pub(super) path: Arc<str>,
    /// What is said of it as a whole.
    pub(super) about: Vec<String>,
    /// The sections that say something, in the order of the documentation.
    pub(super) parts: Vec<Part>,
    /// The sections of which nothing is known, so that nothing may be said of them.
    pub(super) unread: Vec<&'static str>,
    /// Whether it is archived, so that nothing else of it is known.
    pub(super) is_archived: bool,
    /// The highest tier that the service showed something of.
    pub(super) tier: Tier,
    /// What the service does not show of it, as `section.field`.
    pub(super) hidden: Vec<String>,
    /// The sections from which it takes nothing that rules say.
    pub(super) ignored: Vec<&'static str>,
    /// The values that references stand for.
    pub(super) secrets: Vec<Reference>,
}

/// A section.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) of: Section,
    pub(super) about: Vec<String>,
    /// The entries; a section that is no list has exactly one.
    pub(super) entries: Vec<Entry>,
}

/// An entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Entry {
    /// What tells it from others of its section.
    pub(super) key: String,
    /// What it says, in the order of the documentation.
    pub(super) fields: Vec<(String, Json)>,
    /// Of what it says nothing although it is something else than nothing, or nobody knows.
    pub(super) unknown: Vec<String>,
    /// What is said about it.
    pub(super) about: Option<String>,
    /// Whether nothing but `state` follows what tells it from others.
    pub(super) state: Option<&'static str>,
}

/// A reference that stands for a value.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// The section, the entry and the field that it stands in.
    pub(super) section: &'static str,
    pub(super) key: String,
    pub(super) field: String,
    /// The name of the environment variable.
    pub(super) name: String,
    pub(super) value: Secret,
}

impl Entry {
    /// What it says of `name`.
    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        self.fields.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// The field that would have to tell it from others and is not said, if there is one.
    pub(super) fn unsayable(&self, of: Section) -> Option<&'static str> {
        let is_list = of.shape == Shape::List && self.state.is_none();
        let mut told = of.identity.iter().copied().filter(|_| is_list);
        told.find(|name| self.unknown.iter().any(|unknown| unknown == name))
    }

    fn items(&self) -> Vec<Item> {
        let state = self.state.map(|state| ("state".to_owned(), state.into()));
        mapping(self.fields.iter().cloned().chain(state))
    }
}

/// The items of a mapping, in which names with a dot are in mappings of their own.
fn mapping(fields: impl IntoIterator<Item = (String, Json)>) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for (name, value) in fields {
        let Some((outer, inner)) = name.split_once('.') else {
            items.push(Item::value(name, value));
            continue;
        };
        match items.last_mut() {
            Some(Item { key, node: Node::Map(within), .. }) if key == outer => {
                within.push(Item::value(inner, value));
            }
            _ => items.push(Item::new(outer, Node::Map(vec![Item::value(inner, value)]))),
        }
    }
    items
}

impl Part {
    /// Where the section stands in a document.
    pub(super) fn place(&self) -> Option<usize> {
        kinds::sections(self.of.home.scope).position(|of| of.section == self.of.section)
    }

    /// The section as an item of its document, if it says something.
    pub(super) fn item(&self) -> Option<Item> {
        let first = || self.entries.first().map(|entry| &entry.fields[..]).unwrap_or_default();
        let node = match self.of.shape {
            Shape::List => {
                let entry = |entry: &Entry| (entry.items(), entry.about.clone());
                Node::List(self.entries.iter().map(entry).collect())
            }
            Shape::Mapping if self.entries.iter().any(|entry| entry.state == Some(ABSENT)) => {
                Node::Value(Json::Null)
            }
            Shape::Container | Shape::Mapping | Shape::Switch if first().is_empty() => return None,
            Shape::Mapping => Node::Map(mapping(first().iter().cloned())),
            Shape::Container | Shape::Switch => {
                Node::Value(first().first().map(|(_, value)| value.clone()).unwrap_or_default())
            }
        };
        Some(Item { above: self.about.clone(), ..Item::new(self.of.section, node) })
    }
}

impl Document {
    /// The part that is the section `name`.
    pub(super) fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.of.section == name)
    }

    /// Says that there is none of `of`, unless there is one or nobody knows.
    pub(super) fn say_none(&mut self, of: Section) {
        let is_known = self.part(of.section).is_some() || self.unread.contains(&of.section);
        if !is_known {
            let none = Entry { state: Some(ABSENT), ..Entry::default() };
            self.parts.push(Part { of, about: Vec::new(), entries: vec![none] });
            self.parts.sort_by_key(Part::place);
        }
    }

    /// What it says, key by key.
    pub(super) fn items(&self, watch: bool) -> Vec<Item> {
        let mut kind = Item::value("kind", self.scope.document());
        kind.above = self.about.clone();
        let mut items = vec![kind, Item::value("path", &*self.path)];
        items.extend(watch.then(|| Item::value("watch", true)));
        if !self.ignored.is_empty() {
            items.push(Item::value("ignore_layers", self.ignored.clone()));
        }
        for part in &self.parts {
            match part.item() {
                Some(item) => items.push(item),
                None => items[0].above.extend(part.about.iter().cloned()),
            }
        }
        items
    }

    /// Gives the reference at `index` another name.
    pub(super) fn rename(&mut self, index: usize, name: String) {
        let Reference { section, key, field, .. } = &self.secrets[index];
        let parts = self.parts.iter_mut().filter(|part| part.of.section == *section);
        let entries = parts.flat_map(|part| &mut part.entries).filter(|entry| entry.key == *key);
        let values = entries.flat_map(|entry| &mut entry.fields).filter(|(own, _)| own == field);
        values.for_each(|(_, value)| *value = reference(&name));
        self.secrets[index].name = name;
    }
}

/// A reference to an environment variable as manifests write it.
pub(super) fn reference(name: &str) -> Json {
    Object::from_iter([("env".to_owned(), name.into())]).into()
}
