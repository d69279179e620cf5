//! The three forms of a value, and the conversions between them.
//!
//! | form | where | a level | a user | a rule's rows |
//! |---|---|---|---|---|
//! | declared | manifests | `maintainer`, `40` | `alice` | `[{user: alice}]` |
//! | comparable | both sides of a comparison | `maintainer` | `alice` | `[{user_id: 5}]`, live rows also with `id` |
//! | sent | requests | `40` | `user_id: 5` | the rows to add, and the ids of the rows to remove |

mod compare;
mod request;
mod rows;

use std::collections::HashSet;

use super::{FieldSpec, NameIndex, Section, is_list};
use crate::{
    field::{Field, NamedObject, ValueType},
    level::AccessLevel,
    operation::placeholder_path,
    value::{self, Fields, Json, Object, Value},
};

pub use crate::value::plain_text;
pub use compare::{are_equal, identify};
pub use request::{
    Encoder, find_credential_in, id_fields, is_hidden_in_responses, is_literal_hidden,
    is_masked_in_logs, is_reset, prefer_single_levels, require_shown, sensitive_fields,
};
pub use rows::strip_ids;

/// The objects that `value` names according to `spec`: directly, in a list, or in the rows of a
/// list. `key_name` returns the name of a field in a row.
fn named_objects<'v>(
    spec: &'v FieldSpec,
    value: &'v Json,
    key_name: fn(&'static Field) -> &'static str,
) -> impl Iterator<Item = (NamedObject, &'v Json)> {
    let items = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    let list_row_objects = move |row: &'v Json| {
        let key_fields = spec.key_fields.iter().filter(move |_| spec.has_rows());
        key_fields
            .filter_map(move |key_field| Some((key_field.names?, row.get(key_name(key_field))?)))
    };
    items.iter().flat_map(move |item| {
        spec.field
            .names
            .map(|object_type| (object_type, item))
            .into_iter()
            .chain(list_row_objects(item))
    })
}

/// The objects that `declared` names in its fields and rows, as (field, type of object, name).
pub fn referenced_names(section: Section, declared: &Fields) -> Vec<(String, NamedObject, String)> {
    let mut names = Vec::new();
    for (name, value) in declared {
        let Some((spec, value)) = section.spec(name).zip(value.plain_json()) else { continue };
        names.extend(named_objects(spec, value, |key_field| key_field.name).filter_map(
            |(object_type, value): (_, &Json)| {
                Some((name.clone(), object_type, value.as_str()?.to_owned()))
            },
        ));
    }
    names
}

/// The ids of users and groups in `comparable`, in its lists and in the rows of its lists.
/// [`to_readable`] needs their names.
pub fn referenced_ids(section: Section, comparable: &Object) -> Vec<(NamedObject, u64)> {
    let mut ids = Vec::new();
    for (name, value) in comparable {
        let Some(spec) = section.spec(name) else { continue };
        let references = named_objects(spec, value, Field::sent_name);
        ids.extend(references.filter_map(|(object_type, id)| Some((object_type, id.as_u64()?))));
    }
    ids
}

/// The entries of other sections that the rows in `fields` name. The fields are declared or live.
/// Each item is the section, and the name or id of the entry.
pub fn referenced_entries(
    section: Section,
    fields: &Object,
) -> impl Iterator<Item = (&'static str, &Json)> {
    let specs = section.specs().iter().filter(|spec| spec.has_rows());
    specs.flat_map(move |spec| {
        value::items(fields, spec.name).flat_map(|row| {
            spec.key_fields.iter().filter_map(|key_field| {
                let candidates = [key_field.name, key_field.sent_name()].map(|name| &row[name]);
                let reference = candidates.into_iter().find(|value| !value.is_null());
                key_field.relations.names_entries.zip(reference)
            })
        })
    })
}

/// Normalizes a declared value that has several spellings. This is done once, when a manifest is
/// read.
pub fn normalize_spelling(spec: &FieldSpec, declared: &mut Value) {
    let Value::Plain(value) = declared else { return };
    if spec.field.is_level() {
        *value = AccessLevel::convert_to_word(value);
    }
    for row in value.as_array_mut().into_iter().flatten().filter(|_| spec.has_rows()) {
        for field in spec.level_keys() {
            if let Some(level) = row.get_mut(field.name) {
                *level = AccessLevel::convert_to_word(level);
            }
        }
        for field in spec.key_fields {
            let is_plain = field.value_type == ValueType::Plain;
            // A list or mapping is a template, which is filled in first.
            if let Some(value) = row.get_mut(field.name)
                && is_plain
                && !value.is_array()
                && !value.is_object()
            {
                *value = plain_text(value).into();
            }
        }
    }
}

/// Replaces deprecated keys of a declared mapping. This is done after the deprecated keys were
/// reported.
pub fn replace_deprecated_keys(spec: &FieldSpec, declared: &mut Value) {
    let Value::Plain(Json::Object(object)) = declared else { return };
    for field in spec.key_fields {
        if let Some(replacement) = field.replacement_name()
            && let Some(value) = object.remove(field.name)
        {
            object.entry(replacement).or_insert(value);
        }
    }
}

/// The keys of a condition on a list: items that it must contain, and items that it must not
/// contain.
pub const CONDITION_KEYS: [&str; 2] = ["at_least", "none_of"];

/// Replaces each declared condition on a list by the list that meets the condition and is closest
/// to the `live` list. An unknown list is treated as empty. `None` if there are no conditions.
pub fn resolve_conditions(section: Section, declared: &Fields, live: &Object) -> Option<Fields> {
    let resolved_lists = declared.iter().filter_map(|(name, value)| {
        let condition = value.plain_json()?.as_object().filter(|object| {
            object.keys().all(|key| CONDITION_KEYS.contains(&key.as_str())) && !object.is_empty()
        })?;
        section.spec(name).filter(|spec| is_list(&spec.schema))?;
        let list_or_empty =
            |list: Option<&Json>| list.and_then(Json::as_array).cloned().unwrap_or_default();
        let [at_least, none_of] = CONDITION_KEYS.map(|key| list_or_empty(condition.get(key)));
        let mut items = list_or_empty(live.get(name));
        let none_of: HashSet<_> = none_of.iter().collect();
        items.retain(|item| !none_of.contains(item));
        let item_set: HashSet<_> = items.iter().cloned().collect();
        items.extend(at_least.into_iter().filter(|item| !item_set.contains(item)));
        Some((name.clone(), Value::Plain(Json::Array(items))))
    });
    let resolved_lists: Vec<_> = resolved_lists.collect();
    (!resolved_lists.is_empty()).then(|| {
        let mut fields = declared.clone();
        fields.extend(resolved_lists);
        fields
    })
}

/// Converts a live value to the comparable form; `None` if the object does not contain the field.
pub fn decode(spec: &FieldSpec, raw: &Object) -> Option<Json> {
    let live = raw.get(spec.field.live_name()?);
    // The object of a member without a custom role does not contain the key. The role is then null.
    let is_member = spec.field.names == Some(NamedObject::Role) && raw.contains_key("username");
    let missing_role = is_member.then_some(&Json::Null);
    let live = live.or(missing_role)?;
    Some(match live {
        _ if spec.field.is_level() => AccessLevel::convert_to_word(live),
        _ if spec.field.is_nested() && live["locked"] == true => return None,
        _ if spec.field.is_nested() => live.get("value")?.clone(),
        Json::Array(rows) if spec.has_rows() => {
            rows.iter().map(|row| spec.decode_row(row)).collect()
        }
        Json::Array(entries) if spec.field.relations.names_entries.is_some() => {
            entries.iter().filter_map(|entry| entry.get("name").cloned()).collect()
        }
        Json::Array(objects) if spec.field.names.is_some() => {
            objects.iter().filter_map(|object| object.get("id").cloned()).collect()
        }
        Json::String(url) if spec.field.names == Some(NamedObject::Group) => group_path(url).into(),
        Json::Object(role) if spec.field.names == Some(NamedObject::Role) => {
            role.get("name")?.clone()
        }
        _ => live.clone(),
    })
}

/// The path of the group whose page is at `url`. Some responses contain only this URL. Any other
/// text is returned unchanged.
fn group_path(url: &str) -> &str {
    let host_and_path = url.split_once("://").and_then(|(_, tail)| tail.split_once("/groups/"));
    host_and_path.map_or(url, |(_, path)| path)
}

/// Converts a declared value to the comparable form: known names become ids. This applies to lists,
/// rows, and fields whose responses contain the id.
pub fn to_comparable(spec: Option<&FieldSpec>, declared: &Json, names: &NameIndex) -> Json {
    let Some(spec) = spec else { return declared.clone() };
    let Json::Array(items) = declared else {
        let shows_id = spec.field.live_name() == Some(spec.field.sent_name());
        let object_type = spec.field.names.filter(|_| shows_id);
        let id = object_type.map(|object_type| id_or_name(object_type, declared, names));
        return id.unwrap_or_else(|| declared.clone());
    };
    let items = items.iter().map(|item| match spec.field.names {
        _ if spec.has_rows() => spec.comparable_row(item, names),
        Some(object_type) => id_or_name(object_type, item, names),
        None => item.clone(),
    });
    items.collect()
}

/// The id of the referenced object, or its name if the id is unknown.
fn id_or_name(object_type: NamedObject, name: &Json, names: &NameIndex) -> Json {
    let id = name.as_str().and_then(|name| names.id(object_type, name));
    id.map_or_else(|| name.clone(), |id| id.to_json())
}

/// Converts a comparable value to the form that people read: known ids become names, and rows lose
/// their ids.
pub fn to_readable(spec: Option<&FieldSpec>, comparable: &Json, names: &NameIndex) -> Json {
    let Some(spec) = spec else { return comparable.clone() };
    let Json::Array(items) = comparable else {
        let name =
            spec.field.names.and_then(|object_type| find_name(object_type, comparable, names));
        return name.unwrap_or_else(|| comparable.clone());
    };
    let items = items.iter().map(|item| match spec.field.names {
        Some(object_type) => find_name(object_type, item, names).unwrap_or_else(|| item.clone()),
        None if spec.has_rows() => spec.readable_row(item, |field, value| {
            match (field.names, field.relations.names_entries) {
                (Some(object_type), _) => find_name(object_type, value, names),
                (None, Some(section)) => names.entry_name(section, value).map(Json::from),
                (None, None) => None,
            }
        }),
        None => item.clone(),
    });
    items.collect()
}

/// The name of the object with this id, if known.
fn find_name(object_type: NamedObject, id: &Json, names: &NameIndex) -> Option<Json> {
    placeholder_path(id).or_else(|| names.name(object_type, id.as_u64()?)).map(Json::from)
}

/// Converts an access level to the value of the deprecated boolean. For example, `issues_enabled`
/// is true unless `issues_access_level` is `disabled`.
pub fn is_level_enabled(level: &Json) -> Option<bool> {
    level.as_str().map(|level| level != "disabled")
}

/// The fields with plain values, without secrets and files.
pub fn plain_fields(fields: &Fields) -> Object {
    let plain_values =
        fields.iter().filter_map(|(name, value)| Some((name.clone(), value.plain_json()?.clone())));
    plain_values.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::testing::{fields, live_entry, object, project_section};

    /// A protection as a licensed service shows it: with a level, a user and a group.
    pub(super) fn branch_json() -> Json {
        json!({
            "id": 1, "name": "main", "allow_force_push": false, "other": 1,
            "push_access_levels": [
                {"id": 1, "access_level": 40, "user_id": 3, "group_id": null},
                {"id": 2, "access_level": 0, "user_id": null, "group_id": null},
                {"id": 4, "access_level": 30, "group_id": 5},
            ],
            "merge_access_levels": [{"id": 3, "access_level": 40}],
        })
    }

    pub(super) fn names() -> NameIndex {
        let mut names = NameIndex::default();
        names.insert(NamedObject::User, "Alice", Some(3));
        names.insert(NamedObject::User, "nobody", None);
        names.insert(NamedObject::Group, "acme/Kids", Some(5));
        names
    }

    fn push_list_spec() -> &'static FieldSpec {
        project_section("protected_branches").spec("allowed_to_push").unwrap()
    }

    #[test]
    fn different_spellings_are_normalised_to_one() {
        for (section_name, name, written, normal) in [
            ("members", "access_level", json!("Maintainer"), json!("maintainer")),
            ("members", "access_level", json!(40), json!("maintainer")),
            ("members", "access_level", json!(35), json!(35)),
            (
                "protected_branches",
                "allowed_to_push",
                json!([{"access_level": 40}, {"access_level": "NO_ACCESS"}, {"user": "Alice"}]),
                json!([{"access_level": "maintainer"}, {"access_level": "no_access"}, {"user": "Alice"}]),
            ),
            ("labels", "description", json!("Maintainer"), json!("Maintainer")),
        ] {
            let mut value = Value::Plain(written);
            normalize_spelling(project_section(section_name).spec(name).unwrap(), &mut value);
            assert_eq!(value, Value::Plain(normal), "{name}");
        }
    }

    #[test]
    fn named_objects_are_found_by_field() {
        let list_names = |section_name: &str, declared: Json| -> Vec<_> {
            let named_objects =
                referenced_names(project_section(section_name), &fields(declared)).into_iter();
            named_objects
                .map(|(field, object_type, name)| format!("{field}: {} {name}", object_type.noun()))
                .collect()
        };
        assert_eq!(list_names("shares", json!({"group": "acme/kids"})), ["group: group acme/kids"]);
        let rule = json!({"name": "carol", "users": ["alice", "bob"], "protected_branches": ["a"]});
        assert_eq!(list_names("approval_rules", rule), ["users: user alice", "users: user bob"]);
        let rows = json!([{"user": "bob"}, {"access_level": "guest"}, {"group": "acme/kids"}]);
        assert_eq!(
            list_names("protected_branches", json!({"name": "carol", "allowed_to_push": rows})),
            ["allowed_to_push: user bob", "allowed_to_push: group acme/kids"]
        );
        let existing_branch = live_entry(project_section("protected_branches"), branch_json());
        let ids =
            referenced_ids(project_section("protected_branches"), existing_branch.fields.raw());
        assert_eq!(ids, [(NamedObject::User, 3), (NamedObject::Group, 5)]);
        let rule = object(json!({"users": [3, 4], "approvals_required": 5}));
        let ids = referenced_ids(project_section("approval_rules"), &rule);
        assert_eq!(ids, [(NamedObject::User, 3), (NamedObject::User, 4)]);
    }

    #[test]
    fn rows_are_compared_by_id_and_shown_by_name() {
        let spec = Some(push_list_spec());
        let declared =
            json!([{"user": "alice"}, {"access_level": "no_access"}, {"group": "acme/kids"}]);
        let comparable = to_comparable(spec, &declared, &names());
        assert_eq!(
            comparable,
            json!([{"user_id": 3}, {"access_level": "no_access"}, {"group_id": 5}])
        );
        let live =
            live_entry(project_section("protected_branches"), branch_json()).fields.raw()["allowed_to_push"]
                .clone();
        let is_same = |value: &Json| are_equal(push_list_spec().field.compare, value, &live);
        assert!(is_same(&comparable), "{live}");
        for other in [
            json!([{"user": "alice"}, {"access_level": "no_access"}]),
            json!([{"user": "alice"}, {"access_level": "guest"}, {"group": "acme/kids"}]),
            json!([{"user": "bob"}, {"access_level": "no_access"}, {"group": "acme/kids"}]),
        ] {
            assert!(!is_same(&to_comparable(spec, &other, &names())), "{other}");
        }
        assert_eq!(to_readable(spec, &live, &names()), declared);
        let unknown_rows = json!([{"id": 8, "user_id": 77}]);
        let id_rows = json!([{"user_id": 77}]);
        assert_eq!(
            to_readable(spec, &unknown_rows, &names()),
            id_rows,
            "the name of this id is unknown"
        );
    }
}
