//! Access requests of groups and projects, by users who want to become members. The reference
//! leaves them out; all of this is the real service's behaviour.

use super::members::{self, Member};
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/{holder}/access_requests", |call| list(call, &scope(call)?)),
    post("/{holder}/access_requests", |call| ask(call, &scope(call)?)),
    put("/{holder}/access_requests/{user_id}/approve", |call| approve(call, &scope(call)?)),
    delete("/{holder}/access_requests/{user_id}", |call| deny(call, &scope(call)?)),
];

/// The project or group, for every user who sees it.
fn scope(call: &Call<'_>) -> Result<Scope> {
    Scope::of(call, [0, 0])
}

/// 403 unless the caller manages members here.
fn check_manager(call: &Call<'_>, scope: &Scope) -> Result<()> {
    refuse_if(scope.level(call)? < scope.manager(), Failure::forbidden)
}

/// When a user asked for access, if at all.
fn asked_at(call: &Call<'_>, scope: &Scope, user: i64) -> Result<Option<String>> {
    let (column, id) = scope.holder().key();
    let sql =
        format!("SELECT requested_at FROM access_requests WHERE {column} = ?1 AND user_id = ?2");
    call.maybe(&sql, [id, user])
}

fn forget(call: &Call<'_>, scope: &Scope, user: i64) -> Result<()> {
    let sql = format!("DELETE FROM access_requests WHERE {} = ?1 AND user_id = ?2", scope.column());
    call.run(&sql, [scope.id(), user]).map(drop)
}

fn json(call: &Call<'_>, user: &User, requested_at: &str) -> Value {
    let mut body = user.brief(call);
    body["requested_at"] = requested_at.into();
    body
}

fn list(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    check_manager(call, scope)?;
    let column = scope.column();
    let sql = format!(
        "SELECT user_id, requested_at FROM access_requests WHERE {column} = ?1 ORDER BY id"
    );
    let mut all = Vec::new();
    for (id, requested_at) in call.rows::<(i64, String)>(&sql, [scope.id()])? {
        all.extend(User::by_id(call.db, id)?.map(|user| json(call, &user, &requested_at)));
    }
    page::list(call, all)
}

fn ask(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let user = call.user()?;
    let is_open = match scope {
        Scope::Group(group) => OF_GROUPS.is_on(call.db, group.id, "request_access_enabled")?,
        Scope::Project(project) => {
            project.attributes(call.db)?.get("request_access_enabled") == Some(&Value::Bool(true))
        }
    };
    refuse_if(!is_open, Failure::forbidden)?;
    if scope.level(call)? > 0 || Member::one(call, scope, user.id)?.is_some() {
        return Err(Failure::forbidden());
    }
    if asked_at(call, scope, user.id)?.is_some() {
        return Err(Failure::model("user_id", "already exists in source"));
    }
    let column = scope.column();
    let sql = format!(
        "INSERT INTO access_requests ({column}, user_id, requested_at) VALUES (?1, ?2, ?3)"
    );
    call.run(&sql, params![scope.id(), user.id, call.now()])?;
    Answer::created(&json(call, user, call.now()))
}

/// Makes the user a developer, or gives the level in the call. For a level that does not exist the
/// answer looks the same, but nothing is stored.
fn approve(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    check_manager(call, scope)?;
    let user = requester(call, scope)?;
    let given = call.params.integer("access_level")?;
    let exists = |level| members::valid_level(call, level, matches!(scope, Scope::Group(_)));
    if let Some(level) = given.filter(|level| !exists(*level)) {
        call.db.execute_batch("SAVEPOINT unsaved")?;
        let body = welcome(call, scope, user, level)?;
        call.db.execute_batch("ROLLBACK TO unsaved; RELEASE unsaved")?;
        return Answer::created(&body);
    }
    let level = if given.is_some() { members::wanted_level(call, scope)? } else { DEVELOPER };
    forget(call, scope, user)?;
    Answer::created(&welcome(call, scope, user, level)?)
}

/// Adds a member; the answer is the form that everybody sees.
fn welcome(call: &Call<'_>, scope: &Scope, user: i64, level: i64) -> Result<Value> {
    members::insert(call, scope, user, level, None, call.caller.as_ref())?;
    let mut body = Member::existing(call, scope, user)?.json(call)?;
    if let Some(body) = body.as_object_mut() {
        body.remove("email");
    }
    Ok(body)
}

/// Allowed for managers of members, and for the user who asked.
fn deny(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let own = call.caller.as_ref().map(|caller| caller.id);
    if own != Some(call.segment_id("user_id")?) {
        check_manager(call, scope)?;
    }
    let user = requester(call, scope)?;
    forget(call, scope, user)?;
    Ok(Answer::no_content())
}

/// The user in the path, who must have asked for access.
fn requester(call: &Call<'_>, scope: &Scope) -> Result<i64> {
    let user = call.segment_id("user_id")?;
    asked_at(call, scope, user)?.map(|_| user).ok_or_else(Failure::no_record)
}
