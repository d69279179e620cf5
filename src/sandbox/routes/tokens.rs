//! Access tokens: what clients need around the operations of the reference, which leaves their issue open
//! (reference 1, 5). Personal and impersonation tokens are told apart by their addresses only.

use http::StatusCode;
use rusqlite::{OptionalExtension, params};
use serde_json::{Value, json};

use super::super::access::{self, Token};
use super::super::answer::{Answer, Failure};
use super::super::call::Call;
use super::super::page;
use super::super::store::random_hex;
use super::{Route, delete, get, post, project_list};

pub(super) const ROUTES: &[Route] = &[
    post("/users/{user_id}/personal_access_tokens", create),
    post("/users/{user_id}/impersonation_tokens", create),
    get("/personal_access_tokens", list),
    get("/personal_access_tokens/{id}", show),
    delete("/personal_access_tokens/{id}", revoke),
];

fn json(token: &Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "revoked": false,
        "created_at": token.created_at,
        "scopes": token.scopes.split(',').collect::<Vec<_>>(),
        "user_id": token.user_id,
        "last_used_at": null,
        "active": true,
        "expires_at": token.expires_at,
    })
}

fn create(call: &Call<'_>) -> Result<Answer, Failure> {
    call.administrator()?;
    let user = project_list::user(call)?;
    call.params.require(&["name", "scopes"])?;
    let name = call.params.text("name")?.unwrap_or_default();
    let scopes = call.params.texts("scopes")?.unwrap_or_default();
    if let Some(unknown) = scopes.iter().find(|scope| !["api", "read_api"].contains(&scope.as_str())) {
        return Err(Failure::model("scopes", format!("can only contain available scopes, not {unknown}")));
    }
    let expires_at = call.params.date("expires_at")?.flatten().map(|day| day.to_string());
    let secret = format!("sandbox-{}", random_hex());
    let scopes = scopes.join(",");
    let id = access::add_token(call.db, user.id, &secret, &name, &scopes, expires_at.as_deref(), call.now())?;
    let mut body = json(&Token { id, user_id: user.id, name, scopes, expires_at, created_at: call.now().to_owned() });
    body["token"] = secret.into();
    Answer::created(&body)
}

/// Administrators see everybody's, others their own.
fn list(call: &Call<'_>) -> Result<Answer, Failure> {
    let caller = call.user()?;
    let user = match call.params.integer("user_id")? {
        Some(user) if user != caller.id && !caller.admin => return Err(Failure::unauthorized()),
        None if !caller.admin => Some(caller.id),
        user => user,
    };
    let sql = format!("SELECT {} FROM tokens WHERE ?1 IS NULL OR user_id = ?1 ORDER BY id", Token::COLUMNS);
    let mut statement = call.db.prepare_cached(&sql)?;
    let all: Vec<Value> =
        statement.query_map([user], Token::from_row)?.map(|token| token.map(|token| json(&token))).collect::<Result<_, _>>()?;
    page::list(call, &all)
}

/// The token of `:id`, which may be `self`. What others have is 401 for all but administrators.
fn token(call: &Call<'_>) -> Result<Token, Failure> {
    let caller = call.user()?;
    let id = match (call.segment("id"), &call.token) {
        ("self", Some(token)) => token.id,
        _ => call.segment_id("id")?,
    };
    let sql = format!("SELECT {} FROM tokens WHERE id = ?1", Token::COLUMNS);
    match call.db.prepare_cached(&sql)?.query_row([id], Token::from_row).optional()? {
        Some(token) if caller.admin || token.user_id == caller.id => Ok(token),
        None if caller.admin => Err(Failure::no_record()),
        _ => Err(Failure::unauthorized()),
    }
}

fn show(call: &Call<'_>) -> Result<Answer, Failure> {
    Answer::ok(&json(&token(call)?))
}

fn revoke(call: &Call<'_>) -> Result<Answer, Failure> {
    call.db.execute("DELETE FROM tokens WHERE id = ?1", params![token(call)?.id])?;
    Ok(Answer::empty(StatusCode::NO_CONTENT))
}
