//! Reads live entries: converts the objects of the service to the comparable form.

use std::{borrow::Cow, collections::BTreeSet};

use super::{
    EditMethod, FieldSpec, LiveEntry, LiveFields, ReadSource, Removal, Section, Shape, is_withheld,
    risk,
};
use crate::{
    field::NamedObject,
    page::is_identifying,
    value::{Json, Object},
};

impl Section {
    /// The first identifying key of `raw` whose value has the wrong type for the schema. An entry with
    /// such a key is treated as not read.
    pub fn mistyped_key(self, raw: &Object) -> Option<&'static str> {
        let entry_keys = self.scoped_kind.entry_keys;
        let identity_keys = self.identity.iter().filter_map(|name| self.field(name).live_name());
        // Not every release shows all identifying fields.
        let shown_keys =
            identity_keys.filter(|key| raw.get(*key).is_some_and(|value| !value.is_null()));
        let inherited = &self.scoped_kind.inherited;
        let mut keys =
            entry_keys.identity_keys.iter().chain(entry_keys.other_keys).copied().chain(shown_keys);
        keys.find(|key| {
            let is_inheritance_mark =
                inherited.iter().any(|condition| condition.is_negated && condition.field == *key);
            let value = raw.get(*key).filter(|_| !is_inheritance_mark);
            value.is_some_and(|value| {
                !is_identifying(key, value) || !self.has_field_type(key, value)
            })
        })
    }

    /// True if `value` has the type of the field with the name `key` in responses. In responses,
    /// levels are numbers, and a list of rows may contain anything.
    fn has_field_type(self, key: &str, value: &Json) -> bool {
        let Some(spec) = self.table().find_by_live_name(key) else {
            return if key.ends_with("id") { value.is_u64() } else { value.is_string() };
        };
        if spec.field.is_level() {
            return value.is_u64();
        }
        if spec.has_rows() {
            return value.is_array();
        }
        // The schema also allows an id, but responses always have the description.
        if spec.field.names == Some(NamedObject::Runner) {
            return value.is_string();
        }
        match &spec.schema["type"] {
            // The schema allows a text or a reference to a secret. Responses contain a text.
            Json::Null => value.is_string(),
            Json::Array(types) => types.iter().any(|json_type| has_type(value, json_type)),
            json_type => has_type(value, json_type),
        }
    }

    /// The live entries in a field of the container's own object. `None` if the object does not
    /// show them, or if an entry lacks a required key.
    pub fn read_nested(
        self,
        object: &Object,
        selection: FieldSelection<'_>,
    ) -> Option<Vec<LiveEntry>> {
        let entry_keys = self.scoped_kind.entry_keys;
        let reader = self.reader(selection);
        let read_row = |row: &Json| {
            Some(reader.read(row.as_object().filter(|row| {
                entry_keys
                    .identity_keys
                    .iter()
                    .chain(entry_keys.other_keys)
                    .all(|key| row.contains_key(*key))
                    && self.mistyped_key(row).is_none()
            })?))
        };
        match self.scoped_kind.read_source {
            ReadSource::ListField(field) => {
                object.get(field)?.as_array()?.iter().map(read_row).collect()
            }
            ReadSource::ObjectField { field, marker_field: marker } => {
                match object.get(field).filter(|nested| !nested.is_null()) {
                    Some(nested_object) => Some(vec![read_row(nested_object)?]),
                    None => (!object.contains_key(marker)).then(Vec::new),
                }
            }
            _ => None,
        }
    }

    /// `raw` with the fields of its nested object moved to the top level. `Detail::nested` names that
    /// object.
    pub fn flatten_detail(self, raw: &Object) -> Cow<'_, Object> {
        let nested_object = self.detail.and_then(|detail| raw.get(detail.nested)?.as_object());
        nested_object.map_or(Cow::Borrowed(raw), |nested_fields| {
            let all_fields = nested_fields.iter().chain(raw);
            Cow::Owned(all_fields.map(|(name, value)| (name.clone(), value.clone())).collect())
        })
    }

    /// The live entry in comparable form, from the service's object `raw`; see [`EntryReader`].
    pub fn read(self, raw: &Object, selection: FieldSelection<'_>) -> LiveEntry {
        self.reader(selection).read(raw)
    }

    /// A reader for entries of the section.
    pub fn reader(self, selection: FieldSelection<'_>) -> EntryReader<'_> {
        let operations = &self.scoped_kind.operations;
        let may_be_replaced = self.edit == EditMethod::OrReplace
            || (operations.edit.is_none() && operations.create.is_some());
        let is_part_of_object =
            matches!(self.scoped_kind.read_source, ReadSource::ObjectField { .. });
        // The rules of such an object compare several fields, even if a manifest declares only one.
        let is_checked_whole = self.rules_in_rust.is_some()
            && self.shape == Shape::Mapping
            && self.removal == Removal::Nothing
            && matches!(self.scoped_kind.read_source, ReadSource::Optional(_));
        let table = self.table();
        let specs = match selection {
            FieldSelection::Only(names)
                if !may_be_replaced && !is_part_of_object && !is_checked_whole =>
            {
                let needed_names = self.identity.iter().copied().chain(self.called_by);
                let always_read = needed_names.chain(risk::protective_fields(self));
                table.fields_to_read(names, always_read)
            }
            _ => table.specs().iter().collect(),
        };
        let unknown_keys = match selection {
            FieldSelection::All => None,
            FieldSelection::Known => Some(Vec::new()),
            FieldSelection::Only(names) => {
                Some(names.iter().copied().filter(|name| table.get(name).is_none()).collect())
            }
        };
        EntryReader { section: self, specs, unknown_keys }
    }
}

/// True if `value` has this type of JSON schema.
fn has_type(value: &Json, json_type: &Json) -> bool {
    match json_type.as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("null") => value.is_null(),
        _ => true,
    }
}

/// The fields to read, in addition to those that undrift always needs.
#[derive(Clone, Copy, Debug)]
pub enum FieldSelection<'n> {
    /// All fields that the service shows.
    All,
    /// All fields that the kind knows.
    Known,
    /// Only the fields with these names.
    Only(&'n BTreeSet<&'n str>),
}

/// Reads entries of one section. It decides once which fields to keep: the selected fields, the
/// identity, the fields that protect something, and the fields that every edit repeats.
///
/// All fields are kept in three cases: if an edit replaces the entry, because the new entry needs them;
/// if the entry is part of the container's object; and if it is a single object with rules in Rust that
/// always exists. Such objects are small.
pub struct EntryReader<'n> {
    section: Section,
    specs: Vec<&'static FieldSpec>,
    /// The keys to keep that the kind does not describe; `None` keeps all of them.
    unknown_keys: Option<Vec<&'n str>>,
}

impl EntryReader<'_> {
    /// The live entry in comparable form, from the service's object `raw`.
    pub fn read(&self, raw: &Object) -> LiveEntry {
        let section = self.section;
        let raw = &*section.flatten_detail(raw);
        // A field may be decoded from other fields, such as its replacement, so withheld values are
        // removed before decoding.
        let mut shown_values = Cow::Borrowed(raw);
        if raw.values().any(is_withheld) {
            shown_values.to_mut().retain(|_, value| !is_withheld(value));
        }
        let mut fields = Object::new();
        let mut withheld_names = Vec::new();
        for spec in self.specs.iter().filter(|spec| section.has_field(raw, spec.name)) {
            let is_withheld_name = |name: &str| raw.get(name).is_some_and(is_withheld);
            if spec.field.live_name().is_some_and(is_withheld_name) {
                withheld_names.push(spec.name.to_owned());
            } else if let Some(value) = section.rules().decode(spec, &shown_values) {
                fields.insert(spec.name.to_owned(), value);
            } else if spec.field.replacement_name().is_some_and(is_withheld_name) {
                withheld_names.push(spec.name.to_owned());
            }
        }
        let is_kept = |name: &str| match &self.unknown_keys {
            Some(names) => names.contains(&name),
            None => section.spec(name).is_none(),
        };
        let unknown_values = shown_values.iter().filter(|(name, _)| is_kept(name));
        fields.extend(unknown_values.map(|(name, value)| (name.clone(), value.clone())));
        let address_keys = section.scoped_kind.address_keys.iter();
        LiveEntry {
            address_values: address_keys
                .map(|key| raw.get(key.field).cloned().unwrap_or_default())
                .collect(),
            fields: LiveFields::new(fields, withheld_names),
            protection_reason: section.rules().protection_reason(raw),
            tier: section.proven_tier(raw),
            whole_object: section
                .allows_duplicates()
                .then(|| LiveFields::new(raw.clone(), Vec::new())),
        }
    }
}
