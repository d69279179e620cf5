//! Custom attributes of projects, groups and users, for administrators. The reference only mentions them in
//! lists of projects and as a filter (reference, 2 and 4.1). The operations on single attributes follow the real service.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/{any_holder}/custom_attributes", |call| {
        Answer::ok(&list_json(call, find_editable_holder(call)?)?)
    }),
    get("/{any_holder}/custom_attributes/{key}", show),
    put("/{any_holder}/custom_attributes/{key}", set),
    delete("/{any_holder}/custom_attributes/{key}", remove),
];

/// All attributes of a holder, as an array of keys and values.
pub(super) fn list_json(call: &Call<'_>, holder: Holder) -> Result<Value> {
    let (column, id) = holder.column_and_id();
    let sql = format!(
        "SELECT json_object('key', key, 'value', value) FROM custom_attributes
         WHERE {column} = ?1 ORDER BY rowid"
    );
    Ok(call.query_objects(&sql, [id])?.into())
}

/// Limits a list to the objects that have all `custom_attributes` in the call. Only administrators
/// can filter by custom attributes. `holder_condition` is the SQL condition that an attribute
/// (table alias `c`) belongs to the listed object.
pub(super) fn add_filter(call: &Call<'_>, conditions: &mut SqlConditions, holder_condition: &str) {
    let requested_attributes = call.get("custom_attributes").filter(|_| call.is_administrator());
    let condition_sql = format!(
        "NOT EXISTS (SELECT 1 FROM json_each(:custom) wanted WHERE NOT EXISTS
             (SELECT 1 FROM custom_attributes c
              WHERE {holder_condition} AND c.key = wanted.key AND c.value = wanted.value))"
    );
    let valid_attributes = requested_attributes.filter(|attributes| attributes.is_object());
    conditions.add_with_value(condition_sql, valid_attributes.map(Value::to_string));
}

/// The project, group or user of a call by an administrator. In 18.9 other callers get 403 even if
/// the object does not exist.
fn find_editable_holder(call: &Call<'_>) -> Result<Holder> {
    if call.is_write || !call.is_observed_release_or_later() {
        call.require_user()?;
    }
    refuse_if(
        call.is_observed_release_or_later() && !call.is_administrator(),
        ErrorResponse::forbidden,
    )?;
    if !call.segment("user_id").is_empty() {
        call.require_administrator()?;
        return Ok(Holder::User(call.segment_user()?.id));
    }
    let holder = GroupOrProject::from_call_if_visible(call)?.holder();
    call.require_administrator().map(|_| holder)
}

fn show(call: &Call<'_>) -> Result<Answer> {
    let ((column, id), key) = (find_editable_holder(call)?.column_and_id(), call.segment("key"));
    let sql = format!("SELECT value FROM custom_attributes WHERE {column} = ?1 AND key = ?2");
    let value: Option<String> = call.query_optional_value(&sql, params![id, key])?;
    let value = value.or_no_record()?;
    Answer::ok(&json!({ "key": key, "value": value }))
}

fn set(call: &Call<'_>) -> Result<Answer> {
    let ((column, id), key) = (find_editable_holder(call)?.column_and_id(), call.segment("key"));
    call.require(&["value"])?;
    let value = call.text("value")?.unwrap_or_default();
    refuse_if(value.trim().is_empty(), || ErrorResponse::field_error("value", BLANK_TEXT))?;
    let sql = format!(
        "INSERT INTO custom_attributes ({column}, key, value) VALUES (?1, ?2, ?3)
         ON CONFLICT ({column}, key) DO UPDATE SET value = ?3"
    );
    call.execute(&sql, params![id, key, value])?;
    Answer::ok(&json!({ "key": key, "value": value }))
}

fn remove(call: &Call<'_>) -> Result<Answer> {
    let ((column, id), key) = (find_editable_holder(call)?.column_and_id(), call.segment("key"));
    let sql = format!("DELETE FROM custom_attributes WHERE {column} = ?1 AND key = ?2");
    refuse_if(call.execute(&sql, params![id, key])? == 0, ErrorResponse::record_not_found)?;
    Ok(Answer::no_content())
}
