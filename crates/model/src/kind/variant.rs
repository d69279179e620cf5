//! Kinds whose entries differ in their fields: each has its own, needs some of them, and may be the
//! only one of its sort.

use std::collections::BTreeSet;

use super::Section;
use crate::value::Object;

/// The entries of a kind with one value of the first field of the identity.
#[derive(Debug, Default)]
pub struct Variant {
    /// The fields that they have, in addition to the identity.
    pub fields: BTreeSet<String>,
    /// The fields that they need in addition to those that all entries need.
    pub needed: &'static [&'static str],
    /// What such an entry is, if a container can have only one of these.
    pub only_one: Option<&'static str>,
}

impl Section {
    /// The variant of an entry with these `fields`, if the kind has several and knows it.
    fn variant(self, fields: &Object) -> Option<&'static Variant> {
        let told_by = fields.get(*self.identity.first()?)?;
        self.table().variants.get(told_by.as_str()?)
    }

    /// Whether an entry with these `fields` has the field `name`.
    pub fn has(self, fields: &Object, name: &str) -> bool {
        if self.either.contains(&name) {
            return fields.get(name).is_some_and(|value| !value.is_null());
        }
        self.table().variants.is_empty()
            || self.identity.contains(&name)
            || self.variant(fields).is_some_and(|variant| variant.fields.contains(name))
    }

    /// The fields that an entry with these `fields` needs in addition to those that all need.
    pub fn needed(self, fields: &Object) -> &'static [&'static str] {
        self.variant(fields).map_or(&[], |variant| variant.needed)
    }

    /// What the entry of this name is, if a container can have only one of these.
    pub fn only_one(self, name: &str) -> Option<&'static str> {
        self.table().variants.get(name)?.only_one
    }

    /// The other fields of an example of an entry with the field `name`; empty if every entry can
    /// have it.
    pub fn beside(self, name: &str) -> Object {
        self.table().beside.get(name).cloned().unwrap_or_default()
    }
}
