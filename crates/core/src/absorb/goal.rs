//! The goals of absorbing: how declarations change.

use crate::{address::Address, desired::Container, export::DocEntry, kind::Section, value::Json};

/// The change of a declaration that removes a difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The object.
    pub address: Address,
    pub(super) section: &'static str,
    /// The identity of the entry; empty if there is only one.
    pub(super) key: String,
    pub(super) change: GoalChange,
}

/// The change of a declaration.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GoalChange {
    /// These fields are set to these values.
    Fields(FieldValues),
    /// The entry is declared with these fields; the comment names omitted ones.
    Entry(FieldValues, Option<String>),
    /// The entry is no longer declared, or is declared absent. Without a key, the list is declared
    /// without entries.
    Removed,
}

/// Values of fields, each with the path of keys to it.
pub(super) type FieldValues = Vec<(Vec<String>, Json)>;

/// The values of `fields`, whose names may have dots.
pub(super) fn split_names(fields: Vec<(String, Json)>) -> FieldValues {
    fields.into_iter().map(|(name, value)| (split_keys(&name), value)).collect()
}

/// The keys in the name of a field with dots.
pub(super) fn split_keys(name: &str) -> Vec<String> {
    name.split('.').map(str::to_owned).collect()
}

impl GoalChange {
    /// The entry as an export writes it.
    pub(super) fn from_excerpt(excerpt: DocEntry) -> Self {
        Self::Entry(split_names(excerpt.fields), excerpt.comment)
    }
}

impl Goal {
    /// A goal for the object at `address`, the entry `key` of `section`.
    pub(super) fn new(address: Address, section: Section, key: &str, change: GoalChange) -> Self {
        Self { address, section: section.section, key: key.to_owned(), change }
    }

    /// The number of differences that it removes.
    pub fn count_differences(&self) -> usize {
        match &self.change {
            GoalChange::Fields(fields) => fields.len(),
            GoalChange::Entry(..) | GoalChange::Removed => 1,
        }
    }

    /// True if it declares an entry that `container` does not declare yet.
    pub fn is_addition(&self, container: &Container) -> bool {
        let is_entry = matches!(self.change, GoalChange::Entry(..));
        is_entry && container.entry(self.section, &self.key).is_none()
    }
}

/// The key for fields that undrift does not know.
pub(super) const EXTRA_KEY: &str = "extra";
