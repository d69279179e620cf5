//! What manifests declare, resolved: per project the sections, per section the entries, per entry
//! the fields, each with its origin.
//!
//! It never depends on live state. Absence is a missing key, `null` is a value, a secret is a
//! reference.

use std::{collections::BTreeMap, sync::Arc};

use super::Declared;
use crate::{
    address::Address,
    kind::{Kind, Shape},
    origin::Origin,
    secret::Reference,
    value::{Fields, Value},
};

/// Everything that the manifests declare, ordered by path.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    /// The projects, ordered by their path in lower case.
    pub projects: Vec<Project>,
}

impl Desired {
    /// Every reference to a secret, with the address of what it is for and where it is written.
    pub fn references(&self) -> impl Iterator<Item = (Address, &Origin, &Reference)> {
        self.values().filter_map(|(address, origin, value)| match value {
            Value::Secret(reference) => Some((address, origin, reference)),
            Value::Plain(_) | Value::File(_) => None,
        })
    }

    /// The path of every file to upload, with the address of what it is for and where it is
    /// written.
    pub fn uploads(&self) -> impl Iterator<Item = (Address, &Origin, &str)> {
        self.values().filter_map(|(address, origin, value)| match value {
            Value::File(path) => Some((address, origin, path.as_str())),
            Value::Plain(_) | Value::Secret(_) => None,
        })
    }

    fn values(&self) -> impl Iterator<Item = (Address, &Origin, &Value)> {
        self.projects.iter().flat_map(|project| {
            let create = project.create.iter().map(|fields| (project.address(), fields));
            let sections = project.sections.values().flat_map(|section| {
                let address = project.address().section(section.kind.section());
                let is_list = section.kind.shape() == Shape::List;
                let entries = section.entries.iter();
                entries.map(move |entry| {
                    (
                        if is_list { address.entry(&entry.key) } else { address.clone() },
                        &entry.fields,
                    )
                })
            });
            create.chain(sections).flat_map(|(address, fields)| {
                fields.iter().map(move |(_, field)| (address.clone(), &field.origin, &field.value))
            })
        })
    }
}

/// One declared project.
#[derive(Clone, Debug)]
pub struct Project {
    /// The full path as written.
    pub path: Arc<str>,
    /// Where the project is declared.
    pub origin: Origin,
    /// Allowed to create it, with these create-only fields. `None`: a missing project is an error.
    pub create: Option<Declared>,
    /// The sections that are declared, by name.
    pub sections: BTreeMap<&'static str, Section>,
}

impl Project {
    /// The address of the project.
    pub fn address(&self) -> Address {
        Address::project(self.path.clone())
    }

    /// Whether the project is declared to be archived.
    pub fn archived(&self) -> Option<bool> {
        let entry = self.sections.get("archived")?.entries.first()?;
        entry.fields.get("archived")?.value.plain()?.as_bool()
    }
}

/// A declared section.
#[derive(Clone)]
pub struct Section {
    /// The kind of its entries.
    pub kind: &'static dyn Kind,
    /// Where the section starts.
    pub origin: Origin,
    /// What to do with live entries that are not listed.
    pub unlisted: Unlisted,
    /// Where that is written; the section itself, if nowhere.
    pub unlisted_origin: Origin,
    /// The entries, ordered by their key. A section that is a mapping or a switch has exactly one.
    pub entries: Vec<Entry>,
}

impl std::fmt::Debug for Section {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Section")
            .field("kind", &self.kind.section())
            .field("origin", &self.origin)
            .field("unlisted", &self.unlisted)
            .field("entries", &self.entries)
            .finish()
    }
}

/// What to do with live entries that no manifest lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unlisted {
    /// A note in the plan.
    #[default]
    Report,
    /// Remove them.
    Delete,
    /// Nothing.
    Ignore,
}

/// A declared entry of a section.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What tells it from others of its section, as [`Kind::key`] or, for a hook, its name says.
    /// Empty if there is one a project.
    pub key: String,
    /// Where it is written.
    pub origin: Origin,
    /// Whether it is to be there.
    pub state: State,
    /// Its fields.
    pub fields: Declared,
}

impl Entry {
    /// The fields without their origins.
    pub fn values(&self) -> Fields {
        self.fields.values()
    }
}

/// Whether an entry is to be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It is to be there, as declared.
    #[default]
    Present,
    /// It is to be gone.
    Absent,
}
