//! The leaves of fields. The highest layer that sets a leaf decides its value.
//!
//! A list may change the list of lower layers instead.

use std::collections::{BTreeMap, HashSet};

use serde_json::json;

use crate::{
    desired::Declared,
    field::Field,
    kind::{Section, is_list},
    manifest::read::templates::CHANGE_KEYS,
    origin::{Origin, Sourced},
    value::{self, Json, Value},
};

/// A leaf of a field.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) rank: usize,
    /// The written names that lead to it. The key of the slot has the current names instead of
    /// deprecated ones, so that both are one slot.
    pub(super) names: Vec<String>,
    pub(super) value: Value,
    /// The value of lower layers, if this value changes that.
    pub(super) lower_value: Option<Value>,
    pub(super) origin: Origin,
    /// The origin of a different value in a layer of the same rank.
    pub(super) conflict: Option<Origin>,
}

impl Slot {
    /// True if it sets an empty mapping.
    fn is_empty(&self) -> bool {
        self.value.plain().is_some_and(|json| *json == json!({}))
    }
}

/// True if `key` is that of a slot within the mapping with the key `outer`.
fn is_within(key: &str, outer: &str) -> bool {
    key.strip_prefix(outer).is_some_and(|rest| rest.len() > 1 && rest.starts_with(KEY_SEPARATOR))
}

/// Separates the names in the key of a slot.
pub(super) const KEY_SEPARATOR: char = '\0';

/// The leaves of `fields`.
pub(super) fn split_fields(
    section: Section,
    fields: &Declared,
    rank: usize,
) -> BTreeMap<String, Slot> {
    let mut slots = BTreeMap::new();
    for (name, Sourced { value, origin }) in fields.iter() {
        let schema = section.spec(name).map_or(&Json::Null, |spec| &spec.schema);
        let slot = Slot {
            rank,
            names: vec![name.to_owned()],
            value,
            lower_value: None,
            origin,
            conflict: None,
        };
        add_leaves(slot_name(name, schema), schema, slot, &mut slots);
    }
    slots
}

/// The slot for `names` in an entry of `section`, as the parts of its key.
pub(super) fn slot_path(section: Section, names: &[String]) -> Vec<String> {
    let Some((field, inner_names)) = names.split_first() else { return Vec::new() };
    let mut schema = section.spec(field).map_or(&Json::Null, |spec| &spec.schema);
    let mut slot = vec![slot_name(field, schema)];
    for name in inner_names {
        schema = &schema["properties"][name];
        slot.push(slot_name(name, schema));
    }
    slot
}

/// The name of a field in the key of a slot: the same for a deprecated field and its replacement.
fn slot_name(name: &str, schema: &Json) -> String {
    Field::from_schema(schema).replaced_by().unwrap_or(name).to_owned()
}

/// Adds the leaves of `slot`, whose value has `schema`.
fn add_leaves(key: String, schema: &Json, slot: Slot, slots: &mut BTreeMap<String, Slot>) {
    match &slot.value {
        Value::Plain(Json::Object(object))
            if schema.get("properties").is_some() && !object.is_empty() =>
        {
            for (name, json) in object {
                let schema = &schema["properties"][name];
                let mut names = slot.names.clone();
                names.push(name.clone());
                let key = format!("{key}{KEY_SEPARATOR}{}", slot_name(name, schema));
                let slot = Slot { names, value: json.clone().into(), ..slot.clone() };
                add_leaves(key, schema, slot, slots);
            }
        }
        // Both forms of a field in one document are an error that is reported later.
        _ if slots.contains_key(&key) => {
            slots.insert(format!("{key}{KEY_SEPARATOR}"), slot);
        }
        _ => {
            slots.insert(key, slot);
        }
    }
}

/// Adds the leaf of a layer. Ranks must not decrease.
pub(super) fn add_slot(
    section: Section,
    slots: &mut BTreeMap<String, Slot>,
    key: String,
    mut added: Slot,
) {
    // `{}` sets nothing within the mapping.
    if added.is_empty() && slots.keys().any(|other| is_within(other, &key)) {
        return;
    }
    // A whole mapping, such as `null`, and a key within it exclude each other.
    slots.retain(|other, slot| {
        let excludes = is_within(other, &key) || is_within(&key, other);
        if excludes && slot.rank == added.rank && !slot.is_empty() {
            added.conflict = Some(slot.origin.clone());
        }
        !excludes
    });
    let Some(slot) = slots.get_mut(&key) else {
        slots.insert(key, added);
        return;
    };
    let is_change = list_change(section, &added.names[0], &added.value).is_some();
    let changes_lower = list_change(section, &added.names[0], &slot.value).is_some();
    if slot.rank < added.rank {
        if is_change {
            let lower = slot.clone();
            // A condition on live values cannot be changed.
            let is_condition =
                matches!(&lower.value, Value::Plain(Json::Object(_))) && !changes_lower;
            added.conflict = lower.conflict.or_else(|| is_condition.then(|| lower.origin.clone()));
            added.lower_value =
                Some(apply_change(section, &lower.names[0], lower.value, lower.lower_value));
        }
        *slot = added;
    } else if slot.value == added.value {
        slot.origin = slot.origin.clone().min(added.origin);
    } else if is_change
        && changes_lower
        && let Some(value) = unite_changes(slot.value.plain(), added.value.plain())
    {
        slot.value = value.into();
        slot.origin = slot.origin.clone().min(added.origin);
    } else {
        slot.conflict = Some(added.origin);
    }
}

/// The `add` and `remove` lists in `value` of the field `name`, if it is `{add: [...], remove:
/// [...]}`.
pub(super) fn list_change<'v>(
    section: Section,
    name: &str,
    value: &'v Value,
) -> Option<[&'v [Json]; 2]> {
    let is_list_field = section.spec(name).is_some_and(|spec| is_list(&spec.schema));
    let object = value.plain()?.as_object().filter(|_| is_list_field)?;
    let lists = CHANGE_KEYS
        .map(|name| object.get(name).and_then(Json::as_array).map_or(&[][..], Vec::as_slice));
    object.keys().all(|key| CHANGE_KEYS.contains(&key.as_str())).then_some(lists)
}

/// Applies `value` to `lower_value`: the result is `value` itself, unless it changes a list.
pub(super) fn apply_change(
    section: Section,
    name: &str,
    value: Value,
    lower_value: Option<Value>,
) -> Value {
    let Some([added, removed]) = list_change(section, name, &value) else { return value };
    let mut list = match lower_value {
        Some(Value::Plain(Json::Array(list))) => list,
        _ => Vec::new(),
    };
    let removed: HashSet<_> = removed.iter().collect();
    list.retain(|item| !removed.contains(item));
    let mut known_items: HashSet<_> = list.iter().cloned().collect();
    list.extend(added.iter().filter(|item| known_items.insert((*item).clone())).cloned());
    Json::Array(list).into()
}

/// Unites two changes of one list. The order of the arguments does not matter. `None` if one change
/// adds an item that the other removes.
fn unite_changes(first: Option<&Json>, second: Option<&Json>) -> Option<Json> {
    let [add, remove] = CHANGE_KEYS.map(|name| {
        let lists = [first, second].map(|change| change?.get(name)?.as_array());
        let mut items: Vec<&Json> = lists.into_iter().flatten().flatten().collect();
        items.sort_by_cached_key(ToString::to_string);
        items.dedup();
        items
    });
    let removed: HashSet<_> = remove.iter().collect();
    let is_consistent = !add.iter().any(|item| removed.contains(item));
    is_consistent.then(|| json!({"add": add, "remove": remove}))
}

/// Sets `value` in `target` at the path `inner_names`.
pub(super) fn set_value(target: &mut Value, inner_names: &[String], value: Value) {
    match (target, value) {
        (target, value) if inner_names.is_empty() => *target = value,
        (Value::Plain(into), Value::Plain(json)) => value::set_below(into, inner_names, json),
        _ => {}
    }
}
