//! Slots: the leaves of fields. The highest layer that sets a slot decides its value.
//!
//! A value `{add: [...], remove: [...]}` changes the list of lower layers instead of replacing it.

use std::collections::{BTreeMap, HashSet};

use serde_json::json;

use crate::{
    desired::DeclaredFields,
    field::Field,
    kind::{Section, is_list},
    manifest::read::templates::CHANGE_KEYS,
    origin::{Origin, Sourced},
    value::{self, Json, Value},
};

/// A leaf of a field, with its value.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) rank: usize,
    /// The path of names to the slot, as written. The key of the slot has current names instead of
    /// deprecated ones, so that a field has the same slot under both names.
    pub(super) written_names: Vec<String>,
    /// True if the slot is in a field that accepts a list.
    accepts_list: bool,
    pub(super) value: Value,
    /// The list of lower layers, if `value` only changes this list.
    pub(super) lower_value: Option<Value>,
    pub(super) origin: Origin,
    /// The origin of a different value in a layer of the same rank.
    pub(super) conflict: Option<Origin>,
}

impl Slot {
    /// True if the slot sets an empty mapping.
    fn is_empty(&self) -> bool {
        self.value.plain_json().is_some_and(|json| *json == json!({}))
    }

    /// The lists `add` and `remove` in the value; `None` if the value is not
    /// `{add: [...], remove: [...]}`.
    pub(super) fn list_changes(&self) -> Option<[&[Json]; 2]> {
        let object = self.value.plain_json()?.as_object().filter(|_| self.accepts_list)?;
        let lists = CHANGE_KEYS
            .map(|name| object.get(name).and_then(Json::as_array).map_or(&[][..], Vec::as_slice));
        object.keys().all(|key| CHANGE_KEYS.contains(&key.as_str())).then_some(lists)
    }

    /// Takes the value. A change of a list is applied to the list of lower layers.
    pub(super) fn take_merged_value(&mut self) -> Value {
        let lower_value = self.lower_value.take();
        let Some([added, removed]) = self.list_changes() else {
            return std::mem::replace(&mut self.value, Json::Null.into());
        };
        let mut items = match lower_value {
            Some(Value::Plain(Json::Array(list))) => list,
            _ => Vec::new(),
        };
        let removed_items: HashSet<_> = removed.iter().collect();
        items.retain(|item| !removed_items.contains(item));
        let mut seen_items: HashSet<_> = items.iter().cloned().collect();
        items.extend(added.iter().filter(|item| seen_items.insert((*item).clone())).cloned());
        Json::Array(items).into()
    }
}

/// True if the slot `key` is within the mapping `parent`.
fn is_within(key: &str, parent: &str) -> bool {
    key.strip_prefix(parent)
        .is_some_and(|suffix| suffix.len() > 1 && suffix.starts_with(KEY_SEPARATOR))
}

/// The separator of the names in the key of a slot.
pub(super) const KEY_SEPARATOR: char = '\0';

/// Splits `fields` into slots. Returns the slots by their keys.
pub(super) fn split_fields(
    section: Section,
    fields: &DeclaredFields,
    rank: usize,
) -> BTreeMap<String, Slot> {
    let mut slots = BTreeMap::new();
    for (name, Sourced { value, origin }) in fields.iter() {
        let schema = section.spec(name).map_or(&Json::Null, |spec| &spec.schema);
        let slot = Slot {
            rank,
            written_names: vec![name.to_owned()],
            accepts_list: is_list(schema),
            value,
            lower_value: None,
            origin,
            conflict: None,
        };
        add_leaves(slot_name(name, schema), schema, slot, &mut slots);
    }
    slots
}

/// The names that form the key of a slot. `names` is the path of the slot in an entry of `section`,
/// as written.
pub(super) fn slot_path(section: Section, names: &[String]) -> Vec<String> {
    let Some((field, inner_names)) = names.split_first() else { return Vec::new() };
    let mut schema = section.spec(field).map_or(&Json::Null, |spec| &spec.schema);
    let mut key_names = vec![slot_name(field, schema)];
    for name in inner_names {
        schema = &schema["properties"][name];
        key_names.push(slot_name(name, schema));
    }
    key_names
}

/// The name of a field in the key of a slot: the same for a deprecated field and its replacement.
fn slot_name(name: &str, schema: &Json) -> String {
    Field::from_schema(schema).replacement_name().unwrap_or(name).to_owned()
}

/// Splits `slot`, whose value has `schema`, into its leaves and adds them.
fn add_leaves(key: String, schema: &Json, slot: Slot, slots: &mut BTreeMap<String, Slot>) {
    match &slot.value {
        Value::Plain(Json::Object(object))
            if schema.get("properties").is_some() && !object.is_empty() =>
        {
            for (name, json) in object {
                let schema = &schema["properties"][name];
                let mut names = slot.written_names.clone();
                names.push(name.clone());
                let key = format!("{key}{KEY_SEPARATOR}{}", slot_name(name, schema));
                let slot =
                    Slot { written_names: names, value: json.clone().into(), ..slot.clone() };
                add_leaves(key, schema, slot, slots);
            }
        }
        // A document sets both names of a field. This error is reported later.
        _ if slots.contains_key(&key) => {
            slots.insert(format!("{key}{KEY_SEPARATOR}"), slot);
        }
        _ => {
            slots.insert(key, slot);
        }
    }
}

/// Adds a slot of a layer. The rank of the layer must not be lower than the rank of earlier layers.
pub(super) fn add_slot(slots: &mut BTreeMap<String, Slot>, key: String, mut new_slot: Slot) {
    // An empty mapping, `{}`, sets nothing within the mapping.
    if new_slot.is_empty() && slots.keys().any(|other_key| is_within(other_key, &key)) {
        return;
    }
    // A value for a whole mapping, such as `null`, and a key within the mapping exclude each other.
    slots.retain(|other_key, slot| {
        let is_exclusive = is_within(other_key, &key) || is_within(&key, other_key);
        if is_exclusive && slot.rank == new_slot.rank && !slot.is_empty() {
            new_slot.conflict = Some(slot.origin.clone());
        }
        !is_exclusive
    });
    let Some(slot) = slots.get_mut(&key) else {
        slots.insert(key, new_slot);
        return;
    };
    let is_change = new_slot.list_changes().is_some();
    let is_old_change = slot.list_changes().is_some();
    if slot.rank < new_slot.rank {
        if is_change {
            // A condition on live values cannot be changed.
            let is_condition =
                matches!(&slot.value, Value::Plain(Json::Object(_))) && !is_old_change;
            new_slot.conflict =
                slot.conflict.take().or_else(|| is_condition.then(|| slot.origin.clone()));
            new_slot.lower_value = Some(slot.take_merged_value());
        }
        *slot = new_slot;
    } else if slot.value == new_slot.value {
        slot.origin = slot.origin.clone().min(new_slot.origin);
    } else if is_change
        && is_old_change
        && let Some(value) = unite_changes(slot.value.plain_json(), new_slot.value.plain_json())
    {
        slot.value = value.into();
        slot.origin = slot.origin.clone().min(new_slot.origin);
    } else {
        slot.conflict = Some(new_slot.origin);
    }
}

/// Unites two changes of one list, in any order. `None` if one change adds an item that the other
/// removes.
fn unite_changes(first_change: Option<&Json>, second_change: Option<&Json>) -> Option<Json> {
    let [add, remove] = CHANGE_KEYS.map(|name| {
        let lists = [first_change, second_change].map(|change| change?.get(name)?.as_array());
        let mut items: Vec<&Json> = lists.into_iter().flatten().flatten().collect();
        items.sort_by_cached_key(ToString::to_string);
        items.dedup();
        items
    });
    let removed_items: HashSet<_> = remove.iter().collect();
    let is_consistent = !add.iter().any(|item| removed_items.contains(item));
    is_consistent.then(|| json!({"add": add, "remove": remove}))
}

/// Sets the part of `target` at the path `inner_names` to `value`.
pub(super) fn set_value(target: &mut Value, inner_names: &[String], value: Value) {
    match (target, value) {
        (target, value) if inner_names.is_empty() => *target = value,
        (Value::Plain(outer_json), Value::Plain(json)) => {
            value::set_nested(outer_json, inner_names, json);
        }
        _ => {}
    }
}
