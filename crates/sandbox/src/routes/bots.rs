//! Access tokens of projects and groups. Each token belongs to a bot user, which is a member of the
//! project or group. Lists of members include bots; clients that manage members must not change
//! bots.

use super::prelude::*;
use super::tokens;

pub(super) const ROUTES: &[Route] = &[
    get("/{holder}/access_tokens", |call| list_tokens(call, &token_holder(call)?)),
    post("/{holder}/access_tokens", |call| create_token(call, &token_holder(call)?)),
    get("/{holder}/access_tokens/{token_id}", |call| {
        Answer::ok(&find_token(call, &token_holder(call)?)?.1)
    }),
    delete("/{holder}/access_tokens/{token_id}", |call| revoke_token(call, &token_holder(call)?)),
];

/// The project or group that owns the tokens. A caller who may not read tokens gets 401, not 403.
fn token_holder(call: &Call<'_>) -> Result<GroupOrProject> {
    GroupOrProject::from_call_allow_archived(call, [MAINTAINER, OWNER]).map_err(|failure| {
        if call.is_write { failure } else { failure.forbidden_as_unauthorized() }
    })
}

impl GroupOrProject {
    /// Creates a bot user that is a member with `level`, and returns the id of the bot.
    pub(super) fn insert_bot(&self, call: &Call<'_>, name: &str, level: i64) -> Result<i64> {
        let suffix = &call.random_hex()[..8];
        let username = format!("{}_{}_bot_{suffix}", self.type_name(), self.id());
        let email = format!("{username}@noreply.localhost");
        let new_bot = User { bot: true, ..User::new_active(&username, name, &email) };
        let bot_id = new_bot.insert(call.db, call.time_text())?;
        MembershipTerms::with_level(level).insert(call, self, bot_id)?;
        Ok(bot_id)
    }

    /// The tokens of bots that are members of this project or group, each with its response body.
    fn bot_tokens(&self, call: &Call<'_>) -> Result<Vec<(AccessToken, Value)>> {
        let clauses = format!(
            "JOIN members m ON m.user_id = t.user_id JOIN users u ON u.id = m.user_id
             WHERE m.{} = ?1 AND u.bot = 1 ORDER BY t.id",
            self.id_column()
        );
        let add_body = |token: AccessToken, row: &rusqlite::Row<'_>| {
            let mut body = tokens::token_json(call, &token);
            add_bot_fields(call, self, row.get(AccessToken::COLUMN_COUNT)?, &mut body);
            Ok((token, body))
        };
        let level_column = "m.access_level";
        Ok(AccessToken::list_with(call.db, level_column, &clauses, [self.id()], add_body)?)
    }
}

fn create_token(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    call.require_all(&[
        ParamRequirement::Present("name"),
        ParamRequirement::AllowedValue("scopes"),
    ])?;
    let name = call.text("name")?.unwrap_or_default();
    let levels = [GUEST, REPORTER, DEVELOPER, MAINTAINER, OWNER];
    let level = call.allowed_integer("access_level", |level| levels.contains(&level))?;
    let level = level.unwrap_or(MAINTAINER);
    let message = "User does not have permission to create a token with this access level";
    refuse_if(level > scope.caller_level(call)?, || ErrorResponse::bad_request(message))?;
    let mut body = tokens::issue_token(call, scope.insert_bot(call, &name, level)?)?;
    add_bot_fields(call, scope, level, &mut body);
    Answer::created(&body)
}

/// Adds the fields that tokens of projects and groups have, but tokens of users do not.
fn add_bot_fields(call: &Call<'_>, scope: &GroupOrProject, level: i64, body: &mut Value) {
    body["access_level"] = level.into();
    if call.is_observed_release_or_later() {
        body["resource_type"] = scope.type_name().into();
        body["resource_id"] = scope.id().into();
    }
}

fn list_tokens(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    page::list_page(call, scope.bot_tokens(call)?.into_iter().map(|(_, body)| body))
}

fn find_token(call: &Call<'_>, scope: &GroupOrProject) -> Result<(AccessToken, Value)> {
    let id = call.segment_id("token_id")?;
    let token_and_body = scope.bot_tokens(call)?.into_iter().find(|(token, _)| token.id == id);
    token_and_body.ok_or_else(|| {
        ErrorResponse::not_found(&if call.is_write {
            format!("{} Access Token", scope.type_name())
        } else {
            format!("Could not find access token with token_id: {id}")
        })
    })
}

/// Revokes a token by removing its bot user.
fn revoke_token(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    let (token, _) = find_token(call, scope)?;
    call.execute("DELETE FROM users WHERE id = ?1", [token.user_id])?;
    Ok(Answer::no_content())
}
