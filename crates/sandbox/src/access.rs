//! Callers and their rights: tokens, roles, visibility.
//!
//! A request for an object that the caller may not see is answered with 404, never 403. A role
//! comes from direct membership, from membership of a group above, or from an invited group. The
//! invitation limits the role.

use subtle::ConstantTimeEq as _;

use super::dispatch::is_read;
use super::routes::Route;
use crate::prelude::*;

/// The access levels of the roles (reference 1, 2.1).
pub(crate) const MINIMAL: i64 = 5;
pub(crate) const GUEST: i64 = 10;
/// This role exists from release 17.7 on.
pub(crate) const PLANNER: i64 = 15;
pub(crate) const REPORTER: i64 = 20;
/// This role exists from release 18.7 on, if the installation enables it.
pub(crate) const SECURITY_MANAGER: i64 = 25;
pub(crate) const DEVELOPER: i64 = 30;
pub(crate) const MAINTAINER: i64 = 40;
pub(crate) const OWNER: i64 = 50;

/// The access levels that a member or an invitation can have, with their names.
pub(crate) const ROLE_LEVELS: [(i64, &str); 8] = [
    (MINIMAL, "Minimal Access"),
    (GUEST, "Guest"),
    (PLANNER, "Planner"),
    (REPORTER, "Reporter"),
    (SECURITY_MANAGER, "Security Manager"),
    (DEVELOPER, "Developer"),
    (MAINTAINER, "Maintainer"),
    (OWNER, "Owner"),
];

/// The access levels that protection rules can have, but members cannot.
pub(crate) const RULE_LEVELS: [(i64, &str); 2] = [(0, "No access"), (60, "Admin")];

/// The access level with this name in [`ROLE_LEVELS`] or [`RULE_LEVELS`]. Case is ignored.
pub(crate) fn level_by_name(word: &str) -> Option<i64> {
    let spaced_name = word.replace('_', " ");
    let mut levels = ROLE_LEVELS.iter().chain(&RULE_LEVELS);
    levels.find(|(_, name)| name.eq_ignore_ascii_case(&spaced_name)).map(|(level, _)| *level)
}

/// The name of the role with this access level.
pub(crate) fn level_name(level: i64) -> &'static str {
    ROLE_LEVELS.iter().find(|(value, _)| *value == level).map_or("No access", |(_, name)| name)
}

/// The stored form of a token: its SHA-256 digest.
pub(crate) fn token_digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A stored access token.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessToken {
    pub(crate) id: i64,
    pub(crate) user_id: i64,
    pub(crate) name: String,
    pub(crate) scopes: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) created_at: String,
    pub(crate) revoked: bool,
    /// The first 8 bytes of the digest. The database finds the token by them.
    pub(crate) prefix: Vec<u8>,
    pub(crate) digest: Vec<u8>,
}

stored!(AccessToken: tokens t,
    id, user_id, name, scopes, expires_at, created_at, revoked, prefix, digest);

impl AccessToken {
    /// A token with this text. The token is not stored yet.
    pub(crate) fn new(token_text: &str) -> Self {
        let digest = token_digest(token_text).to_vec();
        Self { prefix: digest[..8].to_vec(), digest, ..Self::default() }
    }
}

/// The caller of a request; `None` if the request has no token. Fails with 401 for a bad token, and
/// with 403 for a blocked user or an insufficient scope.
pub(crate) fn authenticate(
    db: &Connection,
    headers: &HeaderMap,
    route: &Route,
    release: Release,
    now: Timestamp,
) -> Result<Option<(User, AccessToken)>> {
    let Some(token_text) = read_header_token(headers)? else {
        return Ok(None);
    };
    let token = find_token(db, &token_text)?.ok_or_else(ErrorResponse::unauthorized)?;
    let is_expired = token
        .expires_at
        .as_deref()
        .is_some_and(|day| day <= clock::utc_day(now).to_string().as_str());
    let problem = if token.revoked {
        Some("Token was revoked. You have to re-authorize from the user.")
    } else {
        let message = "Token is expired. You can either do re-authorization or token refresh.";
        is_expired.then_some(message)
    };
    if let Some(description) = problem {
        let body =
            serde_json::json!({ "error": "invalid_token", "error_description": description });
        return Err(ErrorResponse::with_body(StatusCode::UNAUTHORIZED, body));
    }
    let user = User::find_by_id(db, token.user_id)?.ok_or_else(ErrorResponse::unauthorized)?;
    let blocked_text = "Your account has been blocked.";
    refuse_if(user.state != "active", || ErrorResponse::forbidden_because(blocked_text))?;
    let scopes: Vec<&str> = token.scopes.split(',').collect();
    let is_write = !is_read(&route.method);
    if !(scopes.contains(&"api") || scopes.contains(&"read_api") && !is_write) {
        // The scopes that allow the operation.
        let sufficient_scopes = match route.path {
            "/projects" | "/projects/{id}" if release >= OBSERVED_RELEASE => {
                "ai_workflows api read_api"
            }
            _ => "api read_api",
        };
        return Err(ErrorResponse::with_body(
            StatusCode::FORBIDDEN,
            serde_json::json!({
                "error": "insufficient_scope",
                "error_description":
                    "The request requires higher privileges than provided by the access token.",
                "scope": sufficient_scopes,
            }),
        ));
    }
    Ok(Some((user, token)))
}

/// The token in the headers. An empty token counts as missing. Several different tokens are
/// refused.
fn read_header_token(headers: &HeaderMap) -> Result<Option<String>> {
    let mut tokens = Vec::new();
    for value in headers.get_all("private-token") {
        tokens.push(value.to_str().map_err(|_| ErrorResponse::unauthorized())?);
    }
    for value in headers.get_all(http::header::AUTHORIZATION) {
        let value = value.to_str().map_err(|_| ErrorResponse::unauthorized())?;
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        refuse_if(!scheme.eq_ignore_ascii_case("bearer"), ErrorResponse::unauthorized)?;
        tokens.push(token.trim());
    }
    tokens.retain(|token| !token.is_empty());
    tokens.dedup();
    refuse_if(tokens.len() > 1, ErrorResponse::unauthorized)?;
    Ok(tokens.pop().map(str::to_owned))
}

fn find_token(db: &Connection, token_text: &str) -> rusqlite::Result<Option<AccessToken>> {
    let wanted_digest = token_digest(token_text);
    let tokens = AccessToken::list(db, "WHERE t.prefix = ?1", [&wanted_digest[..8]])?;
    // Compare in constant time.
    Ok(tokens.into_iter().find(|token| token.digest.ct_eq(&wanted_digest).into()))
}

/// The levels of a user in groups, by direct membership or through an invited group. A level also
/// holds in all groups and projects below the group.
#[derive(Debug, Default)]
pub(crate) struct Memberships {
    level_by_group: HashMap<i64, i64>,
}

impl Memberships {
    /// Reads the memberships of a user that are valid on the day `today`.
    pub(crate) fn read(db: &Connection, user_id: i64, today: &str) -> rusqlite::Result<Self> {
        let sql = "SELECT group_id, access_level FROM members
             WHERE user_id = ?1 AND group_id IS NOT NULL AND state = 'active'
               AND (expires_at IS NULL OR expires_at >= ?2)";
        let direct_levels = query_rows(db, sql, params![user_id, today])?.into_iter().collect();
        let mut memberships = Self { level_by_group: direct_levels };
        if !memberships.level_by_group.is_empty() {
            memberships.add_invited_groups(db, today)?;
        }
        Ok(memberships)
    }

    fn add_invited_groups(&mut self, db: &Connection, today: &str) -> rusqlite::Result<()> {
        let sql = "SELECT s.group_id, s.access_level, n.traversal
             FROM shares s JOIN namespaces n ON n.id = s.invited_id
             WHERE s.group_id IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at >= ?1)";
        let shares = query_rows::<(i64, i64, String)>(db, sql, [today])?.into_iter();
        let invited_levels = shares
            .map(|(id, max_level, traversal)| {
                (id, max_level.min(self.level_in_namespace(&traversal)))
            })
            .collect::<Vec<_>>();
        for (group_id, level) in invited_levels.into_iter().filter(|(_, level)| *level > 0) {
            let best_level = self.level_by_group.entry(group_id).or_default();
            *best_level = level.max(*best_level);
        }
        Ok(())
    }

    /// The user's level in a namespace; 0 without a level. `traversal` has the ids of its groups,
    /// with the root first.
    pub(crate) fn level_in_namespace(&self, traversal: &str) -> i64 {
        traversal_ids(traversal)
            .filter_map(|id| self.level_by_group.get(&id))
            .copied()
            .max()
            .unwrap_or(0)
    }

    /// The ids of all namespaces in which the user's level is at least `min_level`. The result is a
    /// JSON array for the SQL function `json_each`.
    pub(crate) fn namespace_ids_json(
        &self,
        db: &Connection,
        min_level: i64,
    ) -> rusqlite::Result<String> {
        let mut namespace_ids: BTreeSet<i64> = BTreeSet::new();
        for (group_id, _) in self.level_by_group.iter().filter(|(_, level)| **level >= min_level) {
            if let Some(group) = Namespace::find_by_id(db, *group_id)? {
                namespace_ids.extend(group.subtree_ids(db)?);
            }
        }
        Ok(serde_json::Value::from_iter(namespace_ids).to_string())
    }
}

/// The ids in a traversal, with the root first.
pub(crate) fn traversal_ids(traversal: &str) -> impl DoubleEndedIterator<Item = i64> {
    traversal.split('/').filter_map(|id| id.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = &'static [(&'static str, &'static str)];

    fn headers(pairs: Pairs) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a header value"));
        }
        headers
    }

    #[test]
    fn exactly_one_token_is_accepted() {
        let accepted_pairs: [(Pairs, Option<&str>); 9] = [
            (&[], None),
            (&[("private-token", "")], None),
            (&[("authorization", "Bearer ")], None),
            (&[("authorization", "Bearer")], None),
            (&[("private-token", ""), ("authorization", "Bearer a")], Some("a")),
            (&[("private-token", "a")], Some("a")),
            (&[("authorization", "Bearer a")], Some("a")),
            (&[("authorization", "bearer a")], Some("a")),
            (&[("private-token", "a"), ("authorization", "Bearer a")], Some("a")),
        ];
        for (pairs, token) in accepted_pairs {
            let actual_token = read_header_token(&headers(pairs)).expect("acceptable headers");
            assert_eq!(actual_token.as_deref(), token, "{pairs:?}");
        }
        let refused_pairs: [Pairs; 3] = [
            &[("authorization", "Basic YTpi")],
            &[("private-token", "a"), ("private-token", "b")],
            &[("private-token", "a"), ("authorization", "Bearer b")],
        ];
        for pairs in refused_pairs {
            assert!(read_header_token(&headers(pairs)).is_err(), "{pairs:?}");
        }
    }
}
