//! Users: what clients need around the operations of the reference.

use rusqlite::params;
use serde_json::{Value, json};

use super::super::answer::{Answer, Failure};
use super::super::attributes::Route as Accepts;
use super::super::call::Call;
use super::super::kept::{OF_USERS, Taking};
use super::super::page;
use super::super::store::holder::Holder;
use super::super::store::namespace::Namespace;
use super::super::store::user::{NewUser, User};
use super::{Route, avatars, custom_attributes, delete, get, group_moves, post, put};

pub(super) const ROUTES: &[Route] = &[
    get("/user", me),
    get("/users", list),
    post("/users", create),
    get("/users/{user_id}", show),
    put("/users/{user_id}", update),
    delete("/users/{user_id}", remove),
    post("/users/{user_id}/block", |call| set_state(call, "blocked")),
    post("/users/{user_id}/unblock", |call| set_state(call, ACTIVE)),
    post("/users/{user_id}/ban", |call| set_state(call, "banned")),
    post("/users/{user_id}/unban", |call| set_state(call, ACTIVE)),
    post("/users/{user_id}/deactivate", |call| set_state(call, "deactivated")),
    post("/users/{user_id}/activate", |call| set_state(call, ACTIVE)),
    get("/users/{user_id}/memberships", memberships),
];

/// The state in which a user may call.
const ACTIVE: &str = "active";

/// The user with what only they and administrators see.
fn full(call: &Call<'_>, user: &User) -> Result<Value, Failure> {
    let mut body = public(call, user);
    let private: bool = call
        .db
        .prepare_cached("SELECT private_profile FROM users WHERE id = ?1")?
        .query_row([user.id], |row| row.get(0))?;
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
        "private_profile": private,
        "last_sign_in_at": null,
        "current_sign_in_at": null,
        "confirmed_at": user.created_at,
        "last_activity_on": null,
    });
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    if call.is_administrator() {
        body["namespace_id"] =
            Namespace::of_user(call.db, user.id)?.map(|namespace| namespace.id).into();
        body["note"] = Value::Null;
    }
    with_settings(call, user, body)
}

/// An answer with what was set of the user in the place of what it has of a new one.
fn with_settings(call: &Call<'_>, user: &User, mut body: Value) -> Result<Value, Failure> {
    for (key, value) in OF_USERS.set(call.db, user.id)? {
        if let Some(shown) = body.get_mut(&key) {
            *shown = value;
        }
    }
    Ok(body)
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
    Answer::ok(&full(call, call.user()?)?)
}

pub(super) fn list(call: &Call<'_>) -> Result<Answer, Failure> {
    let params = &call.params;
    let username = params.text("username")?;
    let search = params.text("search")?.unwrap_or_default().to_lowercase();
    if call.caller.is_none() && username.is_none() {
        return Err(Failure::forbidden_because("Not authorized to access /api/v4/users"));
    }
    let state = match (params.is_set("blocked")?, params.is_set("active")?) {
        (true, _) => Some("blocked"),
        (false, true) => Some(ACTIVE),
        (false, false) => None,
    };
    let order =
        params.one_of("order_by", &["id", "name", "username", "created_at", "updated_at"])?;
    let column = match order.as_deref() {
        Some("name") => "u.name",
        Some("username") => "u.username",
        _ => "u.id",
    };
    let direction = if params.one_of("sort", &["asc", "desc"])?.as_deref() == Some("asc") {
        "ASC"
    } else {
        "DESC"
    };
    let sql = format!(
        "SELECT {} FROM users u WHERE (?1 IS NULL OR u.username = ?1) AND (?2 IS NULL OR u.state = ?2)
         ORDER BY {column} {direction}, u.id {direction}",
        User::COLUMNS
    );
    let mut statement = call.db.prepare_cached(&sql)?;
    let mut all = Vec::new();
    for user in statement.query_map(params![username, state], User::from_row)? {
        let user = user?;
        if user.is_found_by(&search) && custom_attributes::wanted(call, Holder::User(user.id))? {
            all.push(if call.is_administrator() {
                full(call, &user)?
            } else {
                user.brief(&call.base)
            });
        }
    }
    page::list(call, &all)
}

fn show(call: &Call<'_>) -> Result<Answer, Failure> {
    if call.caller.is_none() {
        return Err(Failure::forbidden_because("Not authorized!"));
    }
    let user = User::by_id(call.db, call.segment_id("user_id")?)?
        .ok_or_else(|| Failure::not_found("User"))?;
    let own = call.caller.as_ref().is_some_and(|caller| caller.id == user.id);
    match call.is_administrator() || own {
        true => Answer::ok(&full(call, &user)?),
        false => Answer::ok(&with_settings(call, &user, public(call, &user))?),
    }
}

fn create(call: &Call<'_>) -> Result<Answer, Failure> {
    call.administrator()?;
    call.params.require(&["email", "name", "username"])?;
    let text = |name| Ok::<_, Failure>(call.params.text(name)?.unwrap_or_default());
    let (email, name, username) = (text("email")?, text("name")?, text("username")?);
    check_free(call, &email, &username, None)?;
    let new = NewUser {
        username: &username,
        name: &name,
        email: &email,
        state: ACTIVE,
        admin: call.params.is_set("admin")?,
        bot: false,
    };
    let id = User::insert(call.db, new, call.now())?;
    take_settings(call, id)?;
    avatars::take(call, Holder::User(id), &call.params)?;
    let user = User::by_id(call.db, id)?.ok_or_else(|| Failure::not_found("User"))?;
    Answer::created(&full(call, &user)?)
}

fn take_settings(call: &Call<'_>, user: i64) -> Result<(), Failure> {
    let how =
        Taking { route: Accepts::Edit, edition: call.edition(), administrator: true, dropped: &[] };
    OF_USERS.take(call.db, user, how, &call.params)
}

/// Refuses a name or address that another user or a group has.
fn check_free(
    call: &Call<'_>,
    email: &str,
    username: &str,
    own: Option<i64>,
) -> Result<(), Failure> {
    super::projects::check_path(username)?;
    let taken =
        |sql, value| Ok::<_, Failure>(call.db.prepare_cached(sql)?.exists(params![value, own])?);
    if taken("SELECT 1 FROM users WHERE email = ?1 AND id IS NOT ?2", email)? {
        return Err(Failure::conflict("Email has already been taken"));
    }
    if taken(
        "SELECT 1 FROM namespaces WHERE full_path = ?1 AND (?2 IS NULL OR owner_id IS NOT ?2)",
        username,
    )? || taken("SELECT 1 FROM users WHERE username = ?1 AND id IS NOT ?2", username)?
    {
        return Err(Failure::conflict("Username has already been taken"));
    }
    Ok(())
}

/// A new name also renames the personal namespace and everything in it.
fn update(call: &Call<'_>) -> Result<Answer, Failure> {
    call.administrator()?;
    let user = call.named_user()?;
    let name = call.params.text("name")?.unwrap_or_else(|| user.name.clone());
    let email = call.params.text("email")?.unwrap_or_else(|| user.email.clone());
    let username = call.params.text("username")?.unwrap_or_else(|| user.username.clone());
    let admin = call.params.flag("admin")?.unwrap_or(user.admin);
    check_free(call, &email, &username, Some(user.id))?;
    call.db.execute(
        "UPDATE users SET name = ?2, email = ?3, username = ?4, admin = ?5, private_profile = coalesce(?6, private_profile)
         WHERE id = ?1",
        params![user.id, name, email, username, admin, call.params.flag("private_profile")?],
    )?;
    if let Some(namespace) = Namespace::of_user(call.db, user.id)? {
        call.db.execute(
            "UPDATE namespaces SET name = ?2, path = ?3 WHERE id = ?1",
            params![namespace.id, name, username],
        )?;
        group_moves::rename_below(call, &namespace)?;
    }
    take_settings(call, user.id)?;
    avatars::take(call, Holder::User(user.id), &call.params)?;
    let user = User::by_id(call.db, user.id)?.ok_or_else(|| Failure::not_found("User"))?;
    Answer::ok(&full(call, &user)?)
}

fn remove(call: &Call<'_>) -> Result<Answer, Failure> {
    let caller = call.administrator()?;
    let user = call.named_user()?;
    if user.id == caller.id {
        return Err(Failure::bad_request("the caller cannot be deleted"));
    }
    call.db.execute("DELETE FROM users WHERE id = ?1", [user.id])?;
    Ok(Answer::no_content())
}

/// Answers true when that changed something, else false for active users and null for others.
fn set_state(call: &Call<'_>, state: &str) -> Result<Answer, Failure> {
    call.administrator()?;
    let user = call.named_user()?;
    if user.state == state {
        return Answer::created(&(state == ACTIVE).then_some(false));
    }
    call.db.execute("UPDATE users SET state = ?2 WHERE id = ?1", params![user.id, state])?;
    Answer::created(&true)
}

fn memberships(call: &Call<'_>) -> Result<Answer, Failure> {
    call.administrator()?;
    let user = call.named_user()?;
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
