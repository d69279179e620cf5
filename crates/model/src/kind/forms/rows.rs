//! The rows of a list, such as who may push: each names a user, a group, a deploy key, or a level; an
//! input of a schedule has a name. Some rows have further values, each with a default:
//! [`FieldDefaults::service`](crate::field::FieldDefaults::service).

use crate::{
    field::{Compare, Field, NamedObject, Secrecy, Tier},
    kind::{Id, Names, NoCalls, Spec, is_readable},
    level::AccessLevel,
    value::{Json, Object},
};

impl Spec {
    /// True if it is a list of rows.
    pub fn has_rows(&self) -> bool {
        self.field.compare == Compare::Rows
    }

    /// True if the service finds the rows by their names: they name nobody, and have no ids.
    pub fn has_named_rows(&self) -> bool {
        self.has_rows() && self.part("name").is_some()
    }

    /// True if its rows contain secrets.
    pub fn has_secret_rows(&self) -> bool {
        self.has_rows() && self.parts.iter().any(|part| part.secrecy() != Secrecy::Open)
    }

    /// The keys of a row with a level.
    pub(super) fn level_keys(&self) -> impl Iterator<Item = &'static Field> {
        self.parts.iter().filter(|field| field.is_level())
    }

    /// The further values of a row, with their defaults.
    fn extra_values(&self) -> impl Iterator<Item = (&'static str, &'static Json)> {
        self.parts.iter().filter_map(|field| Some((field.name, field.default.service.as_ref()?)))
    }

    /// `row` with its further values, and with their defaults for those that it lacks.
    fn with_defaults(&self, row: &Json, mut comparable: Object) -> Json {
        for (name, default) in self.extra_values() {
            let value = row.get(name).filter(|value| !value.is_null());
            comparable.insert(name.to_owned(), value.unwrap_or(default).clone());
        }
        Json::Object(comparable)
    }

    /// A live row in comparable form: the id of what it names. Only a row without one keeps its level,
    /// because the service also shows a level in other rows.
    pub(super) fn live_row(&self, row: &Json) -> Json {
        let subject_fields = self.parts.iter().filter(|field| field.default.service.is_none());
        let mut fields: Vec<_> = subject_fields.collect();
        fields.sort_by_key(|field| field.is_level());
        let subject = fields.into_iter().find_map(|field| {
            let name = field.sent_name();
            let value = row.get(name).filter(|value| !value.is_null())?;
            Some((name, if field.is_level() { AccessLevel::word_of(value) } else { value.clone() }))
        });
        let id = row.get("id").map(|id| ("id", id.clone()));
        let comparable =
            id.into_iter().chain(subject).map(|(name, value)| (name.to_owned(), value));
        self.with_defaults(row, comparable.collect())
    }

    /// A declared row in comparable form: names become ids where known.
    pub(super) fn comparable_row(&self, row: &Json, names: &Names) -> Json {
        // Responses do not contain fields that are never read.
        let readable = self.parts.iter().filter(|field| is_readable(field));
        let fields = readable.filter_map(|field| {
            let value = row.get(field.name)?;
            let id = match field.names {
                Some(named) => Some(super::comparable_name(named, value, names)),
                None => field.relations.names_entries.and_then(|section: &str| {
                    names.require_entry(section, value.as_str()?, field.name).ok().map(Id::to_json)
                }),
            };
            Some((field.sent_name().to_owned(), id.unwrap_or_else(|| value.clone())))
        });
        self.with_defaults(row, fields.collect())
    }

    /// A comparable row in the form that people read. `find_name` returns the name for an id.
    pub(super) fn shown_row(
        &self,
        row: &Json,
        find_name: impl Fn(&Field, &Json) -> Option<Json>,
    ) -> Json {
        let fields = self.parts.iter().filter_map(|field| {
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

    /// Declared rows without the further values that are defaults; other values as they are.
    pub fn without_defaults(&self, declared: &Json) -> Json {
        let mut declared = declared.clone();
        let rows = declared.as_array_mut().into_iter().flatten();
        for row in rows.filter_map(Json::as_object_mut) {
            row.retain(|name, value| {
                self.part(name).is_none_or(|part| part.default.service.as_ref() != Some(value))
            });
        }
        declared
    }

    /// A row in the form of requests.
    pub(super) fn encode_row(&self, row: &Json, names: &Names) -> Result<Json, NoCalls> {
        let mut fields = Object::new();
        for field in self.parts {
            let sent_name = field.sent_name();
            let value = row.get(field.name).or_else(|| row.get(sent_name));
            let Some(value) = value.or(field.default.create.as_ref()) else { continue };
            let value = if field.is_level() {
                AccessLevel::number_of(value)
            } else {
                super::request::sent_item(field, value, names, self.name)?
            };
            fields.insert(sent_name.to_owned(), value);
        }
        Ok(Json::Object(fields))
    }

    /// The rows that change the live list to the `wanted` one: rows to add or to change, and ids of
    /// rows to remove. The service keeps rows that are not mentioned. Rows with further values are
    /// changed in place, and a removal repeats who is named: the service refuses it otherwise.
    pub(super) fn row_changes(&self, wanted: &Json, live: Option<&Json>) -> Json {
        let live = live.and_then(Json::as_array).into_iter().flatten();
        let mut live: Vec<Json> = live
            .map(|row| {
                let mut row = row.clone();
                for field in self.level_keys() {
                    if let Some(level) = row.get_mut(field.sent_name()) {
                        *level = AccessLevel::number_of(level);
                    }
                }
                row
            })
            .collect();
        let wanted = wanted.as_array().into_iter().flatten();
        let mut added: Vec<_> = wanted
            .map(|row| self.with_defaults(row, row.as_object().cloned().unwrap_or_default()))
            .collect();
        let unchanged: Vec<_> = live
            .extract_if(.., |live| added.iter().any(|row| without_id(live) == without_id(row)))
            .collect();
        added.retain(|row| !unchanged.iter().any(|live| without_id(live) == without_id(row)));
        let subject_of = |row: &Json| {
            let mut who = without_id(row);
            self.extra_values().for_each(|(name, _)| drop(who.remove(name)));
            who
        };
        let has_values = self.extra_values().next().is_some();
        for row in added.iter_mut().filter(|_| has_values) {
            let live_index = live.iter().position(|live| subject_of(live) == subject_of(row));
            let id = live_index.and_then(|at| live.remove(at).get_mut("id").map(Json::take));
            if let (Some(row), Some(id)) = (row.as_object_mut(), id) {
                row.insert("id".to_owned(), id);
            }
        }
        let removed = live.iter().filter_map(|row| {
            // The service requires the value also of a row that goes.
            if self.has_named_rows() {
                let mut removal = row.as_object().cloned().unwrap_or_default();
                removal.insert("destroy".into(), true.into());
                return Some(Json::Object(removal));
            }
            let mut removal = if has_values { subject_of(row) } else { Object::new() };
            removal
                .extend([("id".into(), row.get("id")?.clone()), ("_destroy".into(), true.into())]);
            Some(Json::Object(removal))
        });
        removed.chain(added).collect()
    }

    /// Removes the rows that name one of `ids` from a comparable value.
    pub fn remove_rows_naming(&self, comparable: &mut Json, named: NamedObject, ids: &[u64]) {
        let naming_fields = self.parts.iter().filter(|field| field.names == Some(named));
        let keys: Vec<_> = naming_fields.map(Field::sent_name).collect();
        if let Some(rows) = comparable.as_array_mut().filter(|_| self.has_rows()) {
            rows.retain(|row| {
                let id = keys.iter().find_map(|key| row.get(key)?.as_u64());
                id.is_none_or(|id| !ids.contains(&id))
            });
        }
    }

    /// The highest tier that a live row proves: only that tier has rows for users and groups.
    pub fn highest_row_tier(&self, raw: &Object) -> Option<Tier> {
        let rows = self.field.live_name().and_then(|name| raw.get(name)?.as_array());
        let rows = rows.filter(|_| self.has_rows())?;
        let parts = self.parts.iter().filter(|field| {
            let mut values = rows.iter().filter_map(|row| row.get(field.sent_name()));
            values.any(|value| !value.is_null())
        });
        parts.map(|field| field.available.tier).max()
    }
}

/// Live rows without their ids; another value as it is.
pub fn without_ids(value: &Json) -> Json {
    let Json::Array(rows) = value else { return value.clone() };
    let rows = rows.iter();
    rows.map(|row| if row.is_object() { without_id(row).into() } else { row.clone() }).collect()
}

/// A row without the id that the service gives it.
pub(super) fn without_id(row: &Json) -> Object {
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
        forms::tests::{branch, names},
        testing::{act, fields, live, section},
    };

    #[test]
    fn a_live_row_is_identified_by_user_or_group_before_level() {
        let there = live(section("protected_branches"), branch());
        let rows = json!([{"id": 1, "user_id": 3}, {"id": 2, "access_level": "no_access"}, {"id": 4, "group_id": 5}]);
        assert_eq!(there.fields.raw()["allowed_to_push"], rows);
        assert_eq!(there.tier, Tier::Premium, "without a licence no rule names anybody");
    }

    #[test]
    fn an_edit_of_rows_adds_and_removes() {
        let of = section("protected_branches");
        let there = live(of, {
            let mut branch = branch();
            branch["code_owner_approval_required"] = true.into();
            branch
        });
        let gone = |id: u64| json!({"id": id, "_destroy": true});
        for (declared, rows) in [
            (
                json!([{"user": "alice"}, {"access_level": "maintainer"}]),
                json!([gone(2), gone(4), {"access_level": 40}]),
            ),
            (
                json!([{"user": "alice"}, {"access_level": "no_access"}, {"group": "ACME/kids"}]),
                json!([]),
            ),
            (json!([]), json!([gone(1), gone(2), gone(4)])),
        ] {
            let declared = fields(json!({"allowed_to_push": declared}));
            let edit =
                act(of, &names(), CallPurpose::Change(&declared, &there, &["allowed_to_push"]));
            assert_eq!(edit[0].body_fields().unwrap()["allowed_to_push"].plain(), Some(&rows));
        }
    }
}
