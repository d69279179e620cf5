//! Custom attributes of projects, for administrators. The reference only lists and filters by them (2, 4.1); these
//! are the real service's operations that set them.

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Value, json};

use super::super::answer::{Answer, Failure};
use super::super::call::Call;
use super::super::store::project::Project;
use super::{Route, delete, get, put};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/custom_attributes", list),
    get("/projects/{id}/custom_attributes/{key}", show),
    put("/projects/{id}/custom_attributes/{key}", set),
    delete("/projects/{id}/custom_attributes/{key}", remove),
];

/// All of a project, as an array of keys and values.
pub(crate) fn of(db: &Connection, project: i64) -> Result<Value, rusqlite::Error> {
    db.prepare_cached("SELECT key, value FROM custom_attributes WHERE project_id = ?1 ORDER BY key")?
        .query_map([project], |row| Ok(json!({ "key": row.get::<_, String>(0)?, "value": row.get::<_, String>(1)? })))?
        .collect()
}

/// The project; its caller has to be an administrator.
fn project(call: &Call<'_>) -> Result<Project, Failure> {
    call.user()?;
    let project = call.project()?;
    call.administrator()?;
    Ok(project)
}

fn list(call: &Call<'_>) -> Result<Answer, Failure> {
    Answer::ok(&of(call.db, project(call)?.id)?)
}

fn show(call: &Call<'_>) -> Result<Answer, Failure> {
    let (project, key) = (project(call)?, call.segment("key"));
    let value: Option<String> = call
        .db
        .prepare_cached("SELECT value FROM custom_attributes WHERE project_id = ?1 AND key = ?2")?
        .query_row(params![project.id, key], |row| row.get(0))
        .optional()?;
    match value {
        Some(value) => Answer::ok(&json!({ "key": key, "value": value })),
        None => Err(Failure::not_found("CustomAttribute")),
    }
}

fn set(call: &Call<'_>) -> Result<Answer, Failure> {
    let (project, key) = (project(call)?, call.segment("key"));
    call.params.require(&["value"])?;
    let value = call.params.text("value")?.unwrap_or_default();
    call.db.execute(
        "INSERT OR REPLACE INTO custom_attributes (project_id, key, value) VALUES (?1, ?2, ?3)",
        params![project.id, key, value],
    )?;
    Answer::ok(&json!({ "key": key, "value": value }))
}

fn remove(call: &Call<'_>) -> Result<Answer, Failure> {
    let (project, key) = (project(call)?, call.segment("key"));
    match call.db.execute("DELETE FROM custom_attributes WHERE project_id = ?1 AND key = ?2", params![project.id, key])? {
        0 => Err(Failure::not_found("CustomAttribute")),
        _ => Ok(Answer::no_content()),
    }
}
