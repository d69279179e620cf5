//! Custom attributes of projects, groups and users, for administrators. The reference only lists
//! projects and filters them by these (2, 4.1); the operations that set them are the real
//! service's.

use rusqlite::Connection;

use super::super::store::stored::rows;
use super::names::BLANK;
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/{holder}/custom_attributes", |call| list(call, holder(call)?)),
    get("/{holder}/custom_attributes/{key}", |call| show(call, holder(call)?)),
    put("/{holder}/custom_attributes/{key}", |call| set(call, holder(call)?)),
    delete("/{holder}/custom_attributes/{key}", |call| remove(call, holder(call)?)),
    get("/users/{user_id}/custom_attributes", |call| list(call, user(call)?)),
    get("/users/{user_id}/custom_attributes/{key}", |call| show(call, user(call)?)),
    put("/users/{user_id}/custom_attributes/{key}", |call| set(call, user(call)?)),
    delete("/users/{user_id}/custom_attributes/{key}", |call| remove(call, user(call)?)),
];

/// All attributes of a holder, as an array of keys and values.
pub(crate) fn of(db: &Connection, holder: Holder) -> rusqlite::Result<Value> {
    let (column, id) = holder.key();
    let sql =
        format!("SELECT key, value FROM custom_attributes WHERE {column} = ?1 ORDER BY rowid");
    let all: Vec<(String, String)> = rows(db, &sql, [id])?;
    Ok(all.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect())
}

/// Whether the holder has all `custom_attributes` in the call; only administrators can filter by
/// them.
pub(crate) fn wanted(call: &Call<'_>, holder: Holder) -> Result<bool> {
    let (Some(Value::Object(wanted)), true) =
        (call.params.get("custom_attributes"), call.is_administrator())
    else {
        return Ok(true);
    };
    let has = of(call.db, holder)?;
    let has = has.as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(wanted
        .iter()
        .all(|(key, value)| has.iter().any(|own| own["key"] == *key && own["value"] == *value)))
}

/// In 18.9 who is no administrator gets 403, without a look at the object.
fn enter(call: &Call<'_>) -> Result<()> {
    let observed = call.release() >= OBSERVED;
    if call.writes || !observed {
        call.user()?;
    }
    refuse_if(observed && !call.is_administrator(), Failure::forbidden)
}

fn holder(call: &Call<'_>) -> Result<Holder> {
    enter(call)?;
    let holder = Scope::seen(call)?.holder();
    call.administrator().map(|_| holder)
}

fn user(call: &Call<'_>) -> Result<Holder> {
    enter(call)?;
    call.administrator()?;
    Ok(Holder::User(call.named_user()?.id))
}

fn list(call: &Call<'_>, holder: Holder) -> Result<Answer> {
    Answer::ok(&of(call.db, holder)?)
}

fn show(call: &Call<'_>, holder: Holder) -> Result<Answer> {
    let ((column, id), key) = (holder.key(), call.segment("key"));
    let sql = format!("SELECT value FROM custom_attributes WHERE {column} = ?1 AND key = ?2");
    match call.maybe::<String>(&sql, params![id, key])? {
        Some(value) => Answer::ok(&json!({ "key": key, "value": value })),
        None => Err(Failure::no_record()),
    }
}

fn set(call: &Call<'_>, holder: Holder) -> Result<Answer> {
    let ((column, id), key) = (holder.key(), call.segment("key"));
    call.params.require(&["value"])?;
    let value = call.params.text("value")?.unwrap_or_default();
    refuse_if(value.trim().is_empty(), || Failure::model("value", BLANK))?;
    let sql = format!(
        "INSERT INTO custom_attributes ({column}, key, value) VALUES (?1, ?2, ?3)
         ON CONFLICT ({column}, key) DO UPDATE SET value = ?3"
    );
    call.run(&sql, params![id, key, value])?;
    Answer::ok(&json!({ "key": key, "value": value }))
}

fn remove(call: &Call<'_>, holder: Holder) -> Result<Answer> {
    let ((column, id), key) = (holder.key(), call.segment("key"));
    let sql = format!("DELETE FROM custom_attributes WHERE {column} = ?1 AND key = ?2");
    match call.run(&sql, params![id, key])? {
        0 => Err(Failure::no_record()),
        _ => Ok(Answer::no_content()),
    }
}
