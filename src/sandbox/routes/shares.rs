//! Groups invited to a project, and members copied from another one (reference 2, 4.4).

use http::StatusCode;
use rusqlite::{OptionalExtension, params};
use serde_json::json;

use super::super::access::MAINTAINER;
use super::super::answer::{Answer, Failure};
use super::super::call::Call;
use super::{Route, delete, groups, post};

pub(super) const ROUTES: &[Route] = &[
    post("/projects/{id}/share", share),
    delete("/projects/{id}/share/{group_id}", unshare),
    post("/projects/{id}/import_project_members/{project_id}", import_members),
];

fn share(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = call.writable_project_as(MAINTAINER)?;
    let (invited, level, expires_at) = groups::invitation(call)?;
    if level > call.level_in(&project)? {
        return Err(Failure::forbidden());
    }
    let added: Option<i64> = call
        .db
        .prepare_cached(
            "INSERT INTO shares (project_id, invited_id, access_level, expires_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING RETURNING id",
        )?
        .query_row(params![project.id, invited.id, level, expires_at], |row| row.get(0))
        .optional()?;
    let id = added
        .ok_or_else(|| Failure::conflict("The group has already been shared with this project"))?;
    Answer::created(&json!({
        "id": id,
        "project_id": project.id,
        "group_id": invited.id,
        "group_access": level,
        "expires_at": expires_at,
    }))
}

fn unshare(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = call.writable_project_as(MAINTAINER)?;
    let group = call.segment_id("group_id")?;
    let level: Option<i64> = call
        .db
        .prepare_cached(
            "SELECT access_level FROM shares WHERE project_id = ?1 AND invited_id = ?2",
        )?
        .query_row(params![project.id, group], |row| row.get(0))
        .optional()?;
    match level {
        None => Err(Failure::not_found("Group Link")),
        Some(level) if level > call.level_in(&project)? => Err(Failure::forbidden()),
        Some(_) => {
            call.db.execute(
                "DELETE FROM shares WHERE project_id = ?1 AND invited_id = ?2",
                params![project.id, group],
            )?;
            Ok(Answer::no_content())
        }
    }
}

/// Copies the direct members that are not members yet. The reference has 200 where the real service
/// has 201.
fn import_members(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = call.writable_project_as(MAINTAINER)?;
    let source = call.visible_project(call.segment("project_id"))?;
    if call.level_in(&source)? < MAINTAINER {
        return Err(Failure::forbidden_because("Project"));
    }
    if source.id == project.id {
        return Err(Failure::message(StatusCode::UNPROCESSABLE_ENTITY, "Import failed"));
    }
    call.db.execute(
        "INSERT INTO members (project_id, user_id, access_level, expires_at, created_at, created_by)
         SELECT ?1, m.user_id, min(m.access_level, ?3), m.expires_at, ?4, ?5
         FROM members m JOIN users u ON u.id = m.user_id WHERE m.project_id = ?2 AND u.bot = 0
         ON CONFLICT DO NOTHING",
        params![project.id, source.id, call.level_in(&project)?, call.now(), call.user()?.id],
    )?;
    let status = if call.service.profile.import_members_created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Answer::with(status, &json!({ "status": "success" }))
}
