//! Settings of groups and users, with one row of `attributes.jsonc` for each. The reference has
//! none of these settings. Clients that manage groups and users send settings, read them again, and
//! compare. The settings of a group or user are stored as one JSON object.

use super::attribute_value::parse_value;
use crate::prelude::*;

/// The settings of one type of object.
#[derive(Debug)]
pub(crate) struct StoredSettings {
    table: &'static str,
    attributes: fn() -> &'static [Attribute],
}

/// Settings of groups.
pub(crate) const GROUP_SETTINGS: StoredSettings =
    StoredSettings { table: "namespaces", attributes: || &ATTRIBUTE_TABLE.groups };
/// Settings of users.
pub(crate) const USER_SETTINGS: StoredSettings =
    StoredSettings { table: "users", attributes: || &ATTRIBUTE_TABLE.users };

impl StoredSettings {
    /// The settings that exist in the release and licence of the service.
    fn existing_attributes(&self, call: &Call<'_>) -> impl Iterator<Item = &'static Attribute> {
        call.edition().filter_existing((self.attributes)())
    }

    /// All settings that the service has and shows, for the object with this `id`. Unset settings
    /// have their default. Settings for which `is_included` is false are omitted.
    pub(crate) fn visible_values(
        &self,
        call: &Call<'_>,
        id: i64,
        is_included: impl Fn(&Attribute) -> bool,
    ) -> Result<Object> {
        let values = self.stored_values(call.db, id)?;
        let attributes = self
            .existing_attributes(call)
            .filter(|attribute| attribute.is_shown_at(call.release()) && is_included(attribute));
        let settings = attributes.map(|attribute| {
            let value = match attribute.kind {
                ValueKind::OppositeOf(target) => {
                    (values.get(target) != Some(&Value::Bool(true))).into()
                }
                _ => {
                    values.get(attribute.name).cloned().unwrap_or_else(|| attribute.preset.clone())
                }
            };
            (attribute.name.to_owned(), value)
        });
        Ok(settings.collect())
    }

    /// The settings that were set explicitly, for the object with this `id`.
    pub(crate) fn stored_values(&self, db: &Connection, id: i64) -> Result<Object> {
        let sql = format!("SELECT settings FROM {} WHERE id = ?1", self.table);
        let text: String = db.prepare_cached(&sql)?.query_row([id], |row| row.get(0))?;
        serde_json::from_str(&text).map_err(|error| ErrorResponse::internal(&error))
    }

    /// True if a flag of the object with this `id` is on, explicitly or by default.
    pub(crate) fn is_on(&self, db: &Connection, id: i64, name: &str) -> Result<bool> {
        let values = self.stored_values(db, id)?;
        let mut all_attributes = (self.attributes)().iter();
        let value = values
            .get(name)
            .or_else(|| Some(all_attributes.find(|attribute| attribute.name == name)?.preset));
        Ok(value == Some(&Value::Bool(true)))
    }

    /// Stores one value.
    pub(crate) fn put_value(
        &self,
        db: &Connection,
        id: i64,
        name: &str,
        value: impl Into<Value>,
    ) -> Result<()> {
        let mut values = self.stored_values(db, id)?;
        values.insert(name.to_owned(), value.into());
        self.save(db, id, values)
    }

    /// True if a route accepts a setting.
    pub(crate) fn accepts(&self, call: &Call<'_>, name: &str, route: WriteRoute) -> bool {
        self.existing_attributes(call)
            .any(|attribute| attribute.name == name && attribute.is_accepted_on(route))
    }

    /// Refuses values that have a wrong type or are not in the list of allowed values. The service
    /// reports these errors, whose body has the key `error`, before all other errors.
    pub(crate) fn check_params(&self, call: &Call<'_>, route: WriteRoute) -> Result<()> {
        for attribute in
            self.existing_attributes(call).filter(|attribute| attribute.is_accepted_on(route))
        {
            let Some(value) = call.get(attribute.name) else { continue };
            match parse_value(attribute, attribute.name, value) {
                Err(failure) if failure.body.get("error").is_some() => return Err(failure),
                _ => {}
            }
        }
        Ok(())
    }

    /// Stores the settings in the call, except `ignored_names` and settings that `route` does not
    /// accept. Null unsets a flag, or a setting whose default is empty; other settings keep their
    /// value.
    pub(crate) fn store_params(
        &self,
        call: &Call<'_>,
        id: i64,
        route: WriteRoute,
        ignored_names: &[&str],
    ) -> Result<()> {
        let mut values = self.stored_values(call.db, id)?;
        let accepted_attributes = self.existing_attributes(call).filter(|attribute| {
            attribute.is_accepted_on(route)
                && (call.is_administrator() || !attribute.administrators_only)
                && !ignored_names.contains(&attribute.name)
                && !matches!(attribute.kind, ValueKind::Elsewhere)
        });
        for attribute in accepted_attributes {
            let Some(value) = call.get(attribute.name) else { continue };
            let is_preset_empty = attribute.preset.is_null() || attribute.preset == "";
            match (attribute.kind, parse_value(attribute, attribute.name, value)?) {
                (ValueKind::OppositeOf(target), Some(is_on)) => {
                    values.insert(target.to_owned(), (is_on == false).into());
                }
                (ValueKind::OppositeOf(_), None) => {}
                (_, Some(new_value)) => drop(values.insert(attribute.name.to_owned(), new_value)),
                (ValueKind::Flag, None) => drop(values.remove(attribute.name)),
                (_, None) if is_preset_empty => drop(values.remove(attribute.name)),
                (_, None) => {}
            }
        }
        self.save(call.db, id, values)
    }

    fn save(&self, db: &Connection, id: i64, values: Object) -> Result<()> {
        let sql = format!("UPDATE {} SET settings = ?2 WHERE id = ?1", self.table);
        db.prepare_cached(&sql)?.execute(params![id, Value::Object(values).to_string()])?;
        Ok(())
    }
}
