//! Access tokens. The reference does not describe the creation of tokens, but clients need tokens
//! (reference 1, 5). Personal and impersonation tokens differ only in their URLs.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    post("/users/{user_id}/personal_access_tokens", create),
    post("/users/{user_id}/impersonation_tokens", create),
    get("/users/{user_id}/impersonation_tokens", list),
    get("/users/{user_id}/impersonation_tokens/{id}", |call| {
        Answer::ok(&full_json(call, &find_token(call)?))
    }),
    delete("/users/{user_id}/impersonation_tokens/{id}", revoke),
    get("/personal_access_tokens", list),
    get("/personal_access_tokens/{id}", |call| Answer::ok(&full_json(call, &find_token(call)?))),
    delete("/personal_access_tokens/{id}", revoke),
];

/// The scopes that a token can have. In the sandbox, all except `api` and `read_api` have no effect.
const TOKEN_SCOPES: &str = "admin_mode ai_features api create_runner k8s_proxy manage_runner read_api \
    read_observability read_service_ping read_user self_rotate read_repository write_repository \
    read_registry write_registry sudo";

/// The JSON of a token in responses. The sandbox does not record the use of tokens. Only the token
/// of this call has a `last_used_at`, which is the current time.
pub(super) fn token_json(call: &Call<'_>, token: &AccessToken) -> Value {
    let is_caller_token =
        call.token.as_ref().is_some_and(|caller_token| caller_token.id == token.id);
    let mut body = token
        .json_columns("id name revoked created_at scopes user_id last_used_at active expires_at");
    body["scopes"] = token.scopes.split(',').collect();
    body["last_used_at"] = is_caller_token.then(|| call.time_text()).into();
    body["active"] = is_active(call, token).into();
    set_field_if(&mut body, call.is_observed_release_or_later(), "description", Value::Null);
    body
}

/// The JSON of a user's token, with the IP addresses of the callers that used it. For the token of a
/// bot, use [`token_json`], which has no addresses.
fn full_json(call: &Call<'_>, token: &AccessToken) -> Value {
    let mut body = token_json(call, token);
    if call.is_observed_release_or_later() {
        let is_used = !body["last_used_at"].is_null();
        body["last_used_ips"] = if is_used { json!(["127.0.0.1"]) } else { json!([]) };
    }
    body
}

fn is_active(call: &Call<'_>, token: &AccessToken) -> bool {
    !token.revoked && token.expires_at.as_deref().is_none_or(|day| day > call.today())
}

fn create(call: &Call<'_>) -> Result<Answer> {
    call.require_administrator()?;
    Answer::created(&issue_token(call, call.segment_user()?.id)?)
}

/// Creates a token with the parameters of the call. Returns the JSON of the token, with the secret.
pub(super) fn issue_token(call: &Call<'_>, user_id: i64) -> Result<Value> {
    call.require(&["name", "scopes"])?;
    let name = call.text("name")?.unwrap_or_default();
    let allowed_scopes: Vec<&str> = TOKEN_SCOPES.split(' ').collect();
    let scopes = call.allowed_texts("scopes", &allowed_scopes)?.unwrap_or_default();
    refuse_if(scopes.is_empty(), || ErrorResponse::invalid_record("Scopes can't be blank"))?;
    let expires_at = call.date_text("expires_at")?;
    let secret = format!("sandbox-{}", call.random_hex());
    let mut token = AccessToken {
        user_id,
        name,
        scopes: scopes.join(","),
        expires_at,
        created_at: call.time_text().to_owned(),
        ..AccessToken::new(&secret)
    };
    token.id = token.upsert(call.db)?;
    let mut body = token_json(call, &token);
    body["token"] = secret.into();
    Ok(body)
}

/// The user whose tokens a list shows; `None` for the tokens of all users, which only
/// administrators see.
fn read_owner_filter(call: &Call<'_>) -> Result<Option<i64>> {
    if !call.segment("user_id").is_empty() {
        call.require_administrator()?;
        return Ok(Some(call.segment_user()?.id));
    }
    let caller = call.require_user()?;
    match call.integer("user_id")? {
        Some(id) if id != caller.id && !caller.admin => Err(ErrorResponse::unauthorized()),
        None if !caller.admin => Ok(Some(caller.id)),
        requested_id => Ok(requested_id),
    }
}

/// A page of tokens, filtered by `state`.
fn list(call: &Call<'_>) -> Result<Answer> {
    let user_id = read_owner_filter(call)?;
    let state_filter =
        call.allowed_text("state", &["all", "active", "inactive"])?.unwrap_or_default();
    let clauses = "WHERE ?1 IS NULL OR t.user_id = ?1 ORDER BY t.id";
    let mut tokens = AccessToken::list(call.db, clauses, [user_id])?;
    tokens.retain(|token| match state_filter.as_str() {
        "active" => is_active(call, token),
        "inactive" => !is_active(call, token),
        _ => true,
    });
    page::list_page(call, tokens.iter().map(|token| full_json(call, token)))
}

/// The token with the id in `:id`, or the token of this call if `:id` is `self`. Fails with 401 for
/// tokens of other users, unless the caller is an administrator. Only administrators may use the
/// paths below a user.
fn find_token(call: &Call<'_>) -> Result<AccessToken> {
    let is_user_path = !call.segment("user_id").is_empty();
    let caller = if is_user_path { call.require_administrator()? } else { call.require_user()? };
    let id = match (call.segment("id"), &call.token) {
        ("self", Some(token)) => token.id,
        _ => call.segment_id("id")?,
    };
    match AccessToken::find_by_id(call.db, id)? {
        Some(token) if is_user_path && token.user_id != call.segment_id("user_id")? => {
            Err(ErrorResponse::record_not_found())
        }
        Some(token) if caller.admin || token.user_id == caller.id => Ok(token),
        None if caller.admin => Err(ErrorResponse::record_not_found()),
        _ => Err(ErrorResponse::unauthorized()),
    }
}

/// Revokes a token. Lists still contain it.
fn revoke(call: &Call<'_>) -> Result<Answer> {
    call.set_column("tokens", find_token(call)?.id, "revoked", true)?;
    Ok(Answer::no_content())
}
