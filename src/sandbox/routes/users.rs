//! Users and tokens: what clients need around the operations of the reference.

use http::StatusCode;
use rusqlite::params;
use serde_json::{Value, json};

use super::super::access;
use super::super::answer::{Answer, Failure};
use super::super::call::Call;
use super::super::page;
use super::super::store::random_hex;
use super::super::store::user::{NewUser, User};
use super::{Route, delete, get, post, project_list};

pub(super) const ROUTES: &[Route] = &[
    get("/user", me),
    get("/users", list),
    post("/users", create),
    get("/users/{user_id}", show),
    delete("/users/{user_id}", remove),
    post("/users/{user_id}/block", |call| set_state(call, "blocked")),
    post("/users/{user_id}/unblock", |call| set_state(call, "active")),
    get("/users/{user_id}/memberships", memberships),
    post("/users/{user_id}/personal_access_tokens", create_token),
    get("/personal_access_tokens/self", own_token),
];

/// The user with what only they and administrators see.
fn full(call: &Call<'_>, user: &User) -> Value {
    let mut body = public(call, user);
    let more = json!({
        "email": user.email,
        "commit_email": user.email,
        "is_admin": user.admin,
        "color_scheme_id": 1,
        "theme_id": 1,
        "projects_limit": 100_000,
        "identities": [],
        "can_create_group": true,
        "can_create_project": true,
        "two_factor_enabled": false,
        "external": false,
        "private_profile": false,
        "last_sign_in_at": null,
        "current_sign_in_at": null,
        "confirmed_at": user.created_at,
        "last_activity_on": null,
    });
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body
}

fn public(call: &Call<'_>, user: &User) -> Value {
    let mut body = user.brief(&call.base);
    let more = json!({
        "created_at": user.created_at,
        "bio": "",
        "location": "",
        "public_email": null,
        "skype": "",
        "linkedin": "",
        "twitter": "",
        "website_url": "",
        "organization": "",
        "bot": user.bot,
    });
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body
}

fn me(call: &Call<'_>) -> Result<Answer, Failure> {
    Answer::ok(&full(call, call.user()?))
}

fn list(call: &Call<'_>) -> Result<Answer, Failure> {
    let username = call.params.text("username")?;
    let search = call.params.text("search")?.unwrap_or_default().to_lowercase();
    if call.caller.is_none() && username.is_none() {
        return Err(Failure::forbidden_because("Not authorized to access /api/v4/users"));
    }
    let sql = format!("SELECT {} FROM users u WHERE ?1 IS NULL OR u.username = ?1 ORDER BY u.id DESC", User::COLUMNS);
    let all: Vec<Value> = call
        .db
        .prepare_cached(&sql)?
        .query_map([username], User::from_row)?
        .filter(|user| {
            user.as_ref()
                .map_or(true, |user| [&user.username, &user.name, &user.email].iter().any(|text| text.to_lowercase().contains(&search)))
        })
        .map(|user| {
            user.map(|user| match call.is_administrator() {
                true => full(call, &user),
                false => user.brief(&call.base),
            })
        })
        .collect::<Result<_, _>>()?;
    page::list(call, &all)
}

fn show(call: &Call<'_>) -> Result<Answer, Failure> {
    let user = User::by_id(call.db, call.segment_id("user_id")?)?.ok_or_else(|| Failure::not_found("User"))?;
    let own = call.caller.as_ref().is_some_and(|caller| caller.id == user.id);
    match call.is_administrator() || own {
        true => Answer::ok(&full(call, &user)),
        false => Answer::ok(&public(call, &user)),
    }
}

fn create(call: &Call<'_>) -> Result<Answer, Failure> {
    call.administrator()?;
    call.params.require(&["email", "name", "username"])?;
    let text = |name| Ok::<_, Failure>(call.params.text(name)?.unwrap_or_default());
    let (email, name, username) = (text("email")?, text("name")?, text("username")?);
    super::projects::check_path(&username)?;
    for (column, value, message) in
        [("email", &email, "Email has already been taken"), ("username", &username, "Username has already been taken")]
    {
        let sql = format!("SELECT 1 FROM users WHERE {column} = ?1");
        if call.db.prepare_cached(&sql)?.exists([value])? {
            return Err(Failure::conflict(message));
        }
    }
    if super::super::store::namespace::Namespace::by_path(call.db, &username)?.is_some() {
        return Err(Failure::conflict("Username has already been taken"));
    }
    let new = NewUser { username: &username, name: &name, email: &email, state: "active", admin: call.params.is_set("admin")?, bot: false };
    let id = User::insert(call.db, new, call.now())?;
    let user = User::by_id(call.db, id)?.ok_or_else(|| Failure::not_found("User"))?;
    Answer::created(&full(call, &user))
}

fn remove(call: &Call<'_>) -> Result<Answer, Failure> {
    let caller = call.administrator()?;
    let user = project_list::user(call)?;
    if user.id == caller.id {
        return Err(Failure::bad_request("the caller cannot be deleted"));
    }
    call.db.execute("DELETE FROM users WHERE id = ?1", [user.id])?;
    Ok(Answer::empty(StatusCode::NO_CONTENT))
}

fn set_state(call: &Call<'_>, state: &str) -> Result<Answer, Failure> {
    call.administrator()?;
    let user = project_list::user(call)?;
    call.db.execute("UPDATE users SET state = ?2 WHERE id = ?1", params![user.id, state])?;
    Answer::created(&true)
}

fn memberships(call: &Call<'_>) -> Result<Answer, Failure> {
    call.administrator()?;
    let user = project_list::user(call)?;
    let wanted = call.params.one_of("type", &["Namespace", "Project"])?;
    let mut statement = call.db.prepare_cached(
        "SELECT coalesce(m.group_id, m.project_id), coalesce(n.name, p.name),
                iif(m.group_id IS NULL, 'Project', 'Namespace'), m.access_level
         FROM members m LEFT JOIN namespaces n ON n.id = m.group_id LEFT JOIN projects p ON p.id = m.project_id
         WHERE m.user_id = ?1 AND (?2 IS NULL OR ?2 = iif(m.group_id IS NULL, 'Project', 'Namespace'))
         ORDER BY m.id",
    )?;
    let all: Vec<Value> = statement
        .query_map(params![user.id, wanted], |row| {
            Ok(json!({
                "source_id": row.get::<_, i64>(0)?,
                "source_name": row.get::<_, String>(1)?,
                "source_type": row.get::<_, String>(2)?,
                "access_level": row.get::<_, i64>(3)?,
            }))
        })?
        .collect::<Result<_, _>>()?;
    page::list(call, &all)
}

fn create_token(call: &Call<'_>) -> Result<Answer, Failure> {
    call.administrator()?;
    let user = project_list::user(call)?;
    call.params.require(&["name", "scopes"])?;
    let name = call.params.text("name")?.unwrap_or_default();
    let scopes = call.params.texts("scopes")?.unwrap_or_default();
    if let Some(unknown) = scopes.iter().find(|scope| !["api", "read_api"].contains(&scope.as_str())) {
        return Err(Failure::model("scopes", format!("can only contain available scopes, not {unknown}")));
    }
    let expires_at = call.params.date("expires_at")?.flatten().map(|day| day.to_string());
    let token = format!("sandbox-{}", random_hex());
    let id = access::add_token(call.db, user.id, &token, &name, &scopes.join(","), expires_at.as_deref(), call.now())?;
    Answer::created(&json!({
        "id": id,
        "name": name,
        "revoked": false,
        "created_at": call.now(),
        "scopes": scopes,
        "user_id": user.id,
        "active": true,
        "expires_at": expires_at,
        "token": token,
    }))
}

fn own_token(call: &Call<'_>) -> Result<Answer, Failure> {
    let token = call.token.as_ref().ok_or_else(Failure::unauthorized)?;
    Answer::ok(&json!({
        "id": token.id,
        "name": token.name,
        "revoked": false,
        "created_at": token.created_at,
        "scopes": token.scopes.split(',').collect::<Vec<_>>(),
        "user_id": token.user_id,
        "active": true,
        "expires_at": token.expires_at,
    }))
}
