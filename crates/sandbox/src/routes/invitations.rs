//! People invited by e-mail, who may have no account yet. The reference shows them among the
//! pending members of a root group (1, 2.6) and has no operation that invites; the real service's
//! are here.

use rusqlite::params;
use serde_json::{Map, Value, json};

use super::super::access::{MAINTAINER, OWNER};
use super::super::answer::{Answer, Failure};
use super::super::call::Call;
use super::super::page;
use super::super::params::Need;
use super::super::scope::Scope;
use super::super::store::user::User;
use super::members;
use super::{Route, delete, get, post};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/invitations", |call| list(call, &Scope::project(call, MAINTAINER)?)),
    post("/projects/{id}/invitations", |call| create(call, &Scope::project(call, MAINTAINER)?)),
    delete("/projects/{id}/invitations/{email}", |call| {
        remove(call, &Scope::project(call, MAINTAINER)?)
    }),
    get("/groups/{id}/invitations", |call| list(call, &Scope::group(call, OWNER)?)),
    post("/groups/{id}/invitations", |call| create(call, &Scope::group(call, OWNER)?)),
    delete("/groups/{id}/invitations/{email}", |call| remove(call, &Scope::group(call, OWNER)?)),
];

fn list(call: &Call<'_>, scope: &Scope) -> Result<Answer, Failure> {
    let query = call.params.text("query")?.unwrap_or_default();
    let sql = format!(
        "SELECT m.id, m.email, m.access_level, m.created_at, m.expires_at, u.name
         FROM members m LEFT JOIN users u ON u.id = m.created_by
         WHERE m.{} = ?1 AND m.email IS NOT NULL AND (?2 = '' OR m.email = ?2) ORDER BY m.id",
        scope.column()
    );
    let mut statement = call.db.prepare_cached(&sql)?;
    let rows = statement.query_map(params![scope.id(), query], |row| {
        Ok(json!({
            "id": row.get::<_, i64>(0)?,
            "invite_email": row.get::<_, String>(1)?,
            "access_level": row.get::<_, i64>(2)?,
            "created_at": row.get::<_, String>(3)?,
            "expires_at": row.get::<_, Option<String>>(4)?,
            "user_name": null,
            "created_by_name": row.get::<_, Option<String>>(5)?,
        }))
    })?;
    let all: Vec<Value> = rows.collect::<Result<_, _>>()?;
    page::list(call, &all)
}

/// Invites each address; somebody who has an account is a member at once.
fn create(call: &Call<'_>, scope: &Scope) -> Result<Answer, Failure> {
    call.params.require_all(&[Need::Sent("email"), Need::Listed("access_level")])?;
    let level = members::wanted_level(call, scope)?;
    let expires_at = members::wanted_expiry(call)?.flatten();
    let mut reasons = Map::new();
    for email in call.params.texts("email")?.unwrap_or_default() {
        if let Some(reason) = invite(call, scope, &email, level, expires_at.as_deref())? {
            reasons.insert(email, reason);
        }
    }
    members::each_succeeded(reasons)
}

/// Invites one address; answers why it could not.
fn invite(
    call: &Call<'_>,
    scope: &Scope,
    email: &str,
    level: i64,
    expires_at: Option<&str>,
) -> Result<Option<Value>, Failure> {
    if let Some(user) = User::by_email(call.db, email)? {
        let added = members::add_one(call, scope, &user, level, expires_at);
        return Ok(added
            .err()
            .map(|failure| failure.body.get("message").cloned().unwrap_or_default()));
    }
    if !email.contains('@') {
        return Ok(Some("Invite email is invalid".into()));
    }
    let sql = format!(
        "INSERT INTO members ({}, email, access_level, expires_at, created_at, created_by, state)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'awaiting') ON CONFLICT DO NOTHING",
        scope.column()
    );
    let by = call.caller.as_ref().map(|user| user.id);
    let added = call.db.prepare_cached(&sql)?.execute(params![
        scope.id(),
        email,
        level,
        expires_at,
        call.now(),
        by
    ])?;
    Ok((added == 0).then(|| "Invite email has already been taken".into()))
}

fn remove(call: &Call<'_>, scope: &Scope) -> Result<Answer, Failure> {
    let sql = format!("DELETE FROM members WHERE {} = ?1 AND email = ?2", scope.column());
    match call.db.execute(&sql, params![scope.id(), call.segment("email")])? {
        0 => Err(Failure::no_record()),
        _ => Ok(Answer::no_content()),
    }
}
