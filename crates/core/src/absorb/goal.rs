//! The goals of absorbing. Each goal is a change of a declaration.

use crate::{address::Address, desired::Container, export::DocEntry, kind::Section, value::Json};

/// The change of a declaration that removes a difference.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The address of the object whose declaration changes.
    pub address: Address,
    pub(super) section: Section,
    /// The identity of the entry; empty if the section is not a list, or for a whole list.
    pub(super) key: String,
    pub(super) change: GoalChange,
}

/// The change of a declaration.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GoalChange {
    /// These fields are set to these values.
    SetFields(FieldValues),
    /// The entry is declared with these fields. The comment names omitted fields.
    DeclareEntry(FieldValues, Option<String>),
    /// The entry is no longer declared, or is declared absent. Without a key, the list is declared
    /// without entries.
    RemoveEntry,
}

/// Values of fields. The list of keys is the path to the value in an entry. The first key is the
/// field, and further keys are inside the field.
pub(super) type FieldValues = Vec<(Vec<String>, Json)>;

/// The values of `fields`. The dots in a name separate keys.
pub(super) fn split_names(fields: Vec<(String, Json)>) -> FieldValues {
    fields.into_iter().map(|(name, value)| (split_keys(&name), value)).collect()
}

/// The keys in the name of a field with dots.
pub(super) fn split_keys(name: &str) -> Vec<String> {
    name.split('.').map(str::to_owned).collect()
}

impl GoalChange {
    /// The change that declares an entry as an export writes the entry.
    pub(super) fn from_exported_entry(exported_entry: DocEntry) -> Self {
        Self::DeclareEntry(split_names(exported_entry.fields), exported_entry.comment)
    }
}

impl Goal {
    /// A goal for the object at `address`, the entry `key` of `section`.
    pub(super) fn new(address: Address, section: Section, key: &str, change: GoalChange) -> Self {
        Self { address, section, key: key.to_owned(), change }
    }

    /// The number of differences that the goal removes.
    pub fn count_differences(&self) -> usize {
        match &self.change {
            GoalChange::SetFields(fields) => fields.len(),
            GoalChange::DeclareEntry(..) | GoalChange::RemoveEntry => 1,
        }
    }

    /// True if the goal declares an entry that `container` does not declare yet.
    pub fn is_addition(&self, container: &Container) -> bool {
        let is_entry = matches!(self.change, GoalChange::DeclareEntry(..));
        is_entry && container.entry(self.section.section, &self.key).is_none()
    }
}

/// The key of the mapping with the fields that undrift does not know.
pub(super) const EXTRA_KEY: &str = "extra";
