//! The rows of a list field, for example `allowed_to_push`. Most rows name a user, a group, a
//! deploy key or an access level. The rows for the inputs of a schedule have names. Some rows have
//! extra values, each with a default:
//! [`FieldDefaults::service`](crate::field::FieldDefaults::service).

use crate::{
    field::{Equality, Field, NamedObject, Secrecy, Tier},
    kind::{FieldSpec, Id, NameIndex, NoCalls, is_readable},
    level::AccessLevel,
    value::{Json, Object},
};

impl FieldSpec {
    /// True if the value of the field is a list of rows.
    pub fn has_rows(&self) -> bool {
        self.field.compare == Equality::Rows
    }

    /// True if the service identifies the rows by name. Such rows have no ids, and refer to no object.
    pub fn has_named_rows(&self) -> bool {
        self.has_rows() && self.key_field("name").is_some()
    }

    /// True if the rows of the field contain secrets.
    pub fn has_secret_rows(&self) -> bool {
        self.has_rows() && self.key_fields.iter().any(|field| field.secrecy() != Secrecy::Open)
    }

    /// The keys of a row whose values are levels.
    pub(super) fn level_keys(&self) -> impl Iterator<Item = &'static Field> {
        self.key_fields.iter().filter(|field| field.is_level())
    }

    /// The keys of the extra values of a row, with their defaults.
    fn extra_values(&self) -> impl Iterator<Item = (&'static str, &'static Json)> {
        self.key_fields
            .iter()
            .filter_map(|field| Some((field.name, field.default.service.as_ref()?)))
    }

    /// Adds the extra values of `row` to `comparable`, and the defaults of the extra values that
    /// `row` lacks.
    fn add_extra_values(&self, row: &Json, mut comparable: Object) -> Json {
        for (name, default) in self.extra_values() {
            let value = row.get(name).filter(|value| !value.is_null());
            comparable.insert(name.to_owned(), value.unwrap_or(default).clone());
        }
        Json::Object(comparable)
    }

    /// A live row in comparable form. If the row names an object, only the object's id remains,
    /// because the service also shows a level in such rows. If the row names no object, the level
    /// remains.
    pub(super) fn decode_row(&self, row: &Json) -> Json {
        let subject_fields = self.key_fields.iter().filter(|field| field.default.service.is_none());
        let mut fields: Vec<_> = subject_fields.collect();
        fields.sort_by_key(|field| field.is_level());
        let subject = fields.into_iter().find_map(|field| {
            let name = field.sent_name();
            let value = row.get(name).filter(|value| !value.is_null())?;
            Some((
                name,
                if field.is_level() { AccessLevel::convert_to_word(value) } else { value.clone() },
            ))
        });
        let id = row.get("id").map(|id| ("id", id.clone()));
        let comparable =
            id.into_iter().chain(subject).map(|(name, value)| (name.to_owned(), value));
        self.add_extra_values(row, comparable.collect())
    }

    /// A declared row in comparable form: names are replaced by ids, if the ids are known.
    pub(super) fn comparable_row(&self, row: &Json, names: &NameIndex) -> Json {
        // Responses do not contain fields that are never read.
        let readable_fields = self.key_fields.iter().filter(|field| is_readable(field));
        let fields = readable_fields.filter_map(|field| {
            let value = row.get(field.name)?;
            let id = match field.names {
                Some(object_type) => Some(super::id_or_name(object_type, value, names)),
                None => field.relations.names_entries.and_then(|section: &str| {
                    names
                        .require_entry_id(section, value.as_str()?, field.name)
                        .ok()
                        .map(Id::to_json)
                }),
            };
            Some((field.sent_name().to_owned(), id.unwrap_or_else(|| value.clone())))
        });
        self.add_extra_values(row, fields.collect())
    }

    /// A comparable row in readable form: ids are replaced by names, which `find_name` returns.
    pub(super) fn readable_row(
        &self,
        row: &Json,
        find_name: impl Fn(&Field, &Json) -> Option<Json>,
    ) -> Json {
        let fields = self.key_fields.iter().filter_map(|field| {
            let value = row.get(field.sent_name())?;
            if field.default.service.as_ref() == Some(value) {
                return None;
            }
            Some(match find_name(field, value) {
                Some(name) => (field.name.to_owned(), name),
                None if value.is_string() => (field.name.to_owned(), value.clone()),
                None => (field.sent_name().to_owned(), value.clone()),
            })
        });
        Json::Object(fields.collect())
    }

    /// Declared rows without the extra values that are defaults; any other value is returned
    /// unchanged.
    pub fn strip_defaults(&self, declared: &Json) -> Json {
        let mut declared = declared.clone();
        let rows = declared.as_array_mut().into_iter().flatten();
        for row in rows.filter_map(Json::as_object_mut) {
            row.retain(|name, value| {
                self.key_field(name)
                    .is_none_or(|field| field.default.service.as_ref() != Some(value))
            });
        }
        declared
    }

    /// A row as requests contain it.
    pub(super) fn encode_row(&self, row: &Json, names: &NameIndex) -> Result<Json, NoCalls> {
        let mut fields = Object::new();
        for field in self.key_fields {
            let sent_name = field.sent_name();
            let value = row.get(field.name).or_else(|| row.get(sent_name));
            let Some(value) = value.or(field.default.create.as_ref()) else { continue };
            let value = if field.is_level() {
                AccessLevel::convert_to_number(value)
            } else {
                super::request::encode_item(field, value, names, self.name)?
            };
            fields.insert(sent_name.to_owned(), value);
        }
        Ok(Json::Object(fields))
    }

    /// The rows to send so that the live list becomes the `declared` list: rows to add or to
    /// change, and ids of rows to remove. The service keeps live rows that are not sent. Rows with
    /// extra values are changed in place. The removal of such a row must also contain its subject:
    /// the object or level that the row names.
    pub(super) fn row_changes(&self, declared: &Json, live: Option<&Json>) -> Json {
        let live_rows = live.and_then(Json::as_array).into_iter().flatten();
        let mut live_rows: Vec<Json> = live_rows
            .map(|row| {
                let mut row = row.clone();
                for field in self.level_keys() {
                    if let Some(level) = row.get_mut(field.sent_name()) {
                        *level = AccessLevel::convert_to_number(level);
                    }
                }
                row
            })
            .collect();
        let declared_rows = declared.as_array().into_iter().flatten();
        let mut added_rows: Vec<_> = declared_rows
            .map(|row| self.add_extra_values(row, row.as_object().cloned().unwrap_or_default()))
            .collect();
        let unchanged_rows: Vec<_> = live_rows
            .extract_if(.., |live| added_rows.iter().any(|row| strip_id(live) == strip_id(row)))
            .collect();
        added_rows.retain(|row| !unchanged_rows.iter().any(|live| strip_id(live) == strip_id(row)));
        let row_subject = |row: &Json| {
            let mut subject = strip_id(row);
            self.extra_values().for_each(|(name, _)| drop(subject.remove(name)));
            subject
        };
        let has_extra_values = self.extra_values().next().is_some();
        for row in added_rows.iter_mut().filter(|_| has_extra_values) {
            let live_index =
                live_rows.iter().position(|live| row_subject(live) == row_subject(row));
            let id =
                live_index.and_then(|index| live_rows.remove(index).get_mut("id").map(Json::take));
            if let (Some(row), Some(id)) = (row.as_object_mut(), id) {
                row.insert("id".to_owned(), id);
            }
        }
        let removals = live_rows.iter().filter_map(|row| {
            // Even the removal of a named row must contain the value of the row.
            if self.has_named_rows() {
                let mut removal = row.as_object().cloned().unwrap_or_default();
                removal.insert("destroy".into(), true.into());
                return Some(Json::Object(removal));
            }
            let mut removal = if has_extra_values { row_subject(row) } else { Object::new() };
            removal
                .extend([("id".into(), row.get("id")?.clone()), ("_destroy".into(), true.into())]);
            Some(Json::Object(removal))
        });
        removals.chain(added_rows).collect()
    }

    /// Removes the rows that name one of `ids` from a comparable value.
    pub fn remove_rows_naming(&self, comparable: &mut Json, object_type: NamedObject, ids: &[u64]) {
        let naming_fields = self.key_fields.iter().filter(|field| field.names == Some(object_type));
        let keys: Vec<_> = naming_fields.map(Field::sent_name).collect();
        if let Some(rows) = comparable.as_array_mut().filter(|_| self.has_rows()) {
            rows.retain(|row| {
                let id = keys.iter().find_map(|key| row.get(key)?.as_u64());
                id.is_none_or(|id| !ids.contains(&id))
            });
        }
    }

    /// The lowest tier of a service that shows these live rows. Only some tiers have rows for users
    /// and groups. `None` if the response shows no rows.
    pub fn tier_proven_by_rows(&self, raw: &Object) -> Option<Tier> {
        let rows = self.field.live_name().and_then(|name| raw.get(name)?.as_array());
        let rows = rows.filter(|_| self.has_rows())?;
        let present_fields = self.key_fields.iter().filter(|field| {
            let mut values = rows.iter().filter_map(|row| row.get(field.sent_name()));
            values.any(|value| !value.is_null())
        });
        present_fields.map(|field| field.available.tier).max()
    }
}

/// Live rows without their ids; any other value is returned unchanged.
pub fn strip_ids(value: &Json) -> Json {
    let Json::Array(rows) = value else { return value.clone() };
    let rows = rows.iter();
    rows.map(|row| if row.is_object() { strip_id(row).into() } else { row.clone() }).collect()
}

/// A row without the id that the service gives it.
pub(super) fn strip_id(row: &Json) -> Object {
    let mut row = row.as_object().cloned().unwrap_or_default();
    row.remove("id");
    row
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::{
        calls::CallPurpose,
        forms::tests::{branch_json, names},
        testing::{fields, live_entry, project_section, requests_for},
    };

    #[test]
    fn a_live_row_is_identified_by_user_or_group_before_level() {
        let existing_branch = live_entry(project_section("protected_branches"), branch_json());
        let rows = json!([{"id": 1, "user_id": 3}, {"id": 2, "access_level": "no_access"}, {"id": 4, "group_id": 5}]);
        assert_eq!(existing_branch.fields.raw()["allowed_to_push"], rows);
        assert_eq!(existing_branch.tier, Tier::Premium, "without a licence no rule names anybody");
    }

    #[test]
    fn an_edit_of_rows_adds_and_removes() {
        let section = project_section("protected_branches");
        let existing_branch = live_entry(section, {
            let mut branch = branch_json();
            branch["code_owner_approval_required"] = true.into();
            branch
        });
        let removal_row = |id: u64| json!({"id": id, "_destroy": true});
        for (declared, rows) in [
            (
                json!([{"user": "alice"}, {"access_level": "maintainer"}]),
                json!([removal_row(2), removal_row(4), {"access_level": 40}]),
            ),
            (
                json!([{"user": "alice"}, {"access_level": "no_access"}, {"group": "ACME/kids"}]),
                json!([]),
            ),
            (json!([]), json!([removal_row(1), removal_row(2), removal_row(4)])),
        ] {
            let declared = fields(json!({"allowed_to_push": declared}));
            let edit = requests_for(
                section,
                &names(),
                CallPurpose::Change(&declared, &existing_branch, &["allowed_to_push"]),
            );
            assert_eq!(edit[0].body_fields().unwrap()["allowed_to_push"].plain_json(), Some(&rows));
        }
    }
}
