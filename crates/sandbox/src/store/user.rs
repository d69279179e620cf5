//! Users and their personal namespaces.

use crate::prelude::*;
use rusqlite::Result;

/// One user.
#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    pub(crate) id: i64,
    pub(crate) username: String,
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) state: String,
    pub(crate) admin: bool,
    pub(crate) bot: bool,
    pub(crate) created_at: String,
    pub(crate) public_email: Option<String>,
    /// The file name of an uploaded picture.
    pub(crate) picture: Option<String>,
}

stored!(User: users u,
    id, username, name, email, state, admin, bot, created_at,
    public_email = "u.settings ->> 'public_email'",
    picture = "(SELECT a.name FROM avatars a WHERE a.user_id = u.id)");

impl User {
    /// A new active user without special rights, who is not stored yet.
    pub(crate) fn new_active(username: &str, name: &str, email: &str) -> Self {
        let [username, name, email, state] = [username, name, email, "active"].map(str::to_owned);
        Self { username, name, email, state, ..Self::default() }
    }

    /// Finds a user by username, ignoring case.
    pub(crate) fn find_by_username(db: &Connection, name: &str) -> Result<Option<Self>> {
        Self::find_first(db, "WHERE u.username = ?1", [name])
    }

    /// Finds a user by e-mail address, ignoring case.
    pub(crate) fn find_by_email(db: &Connection, email: &str) -> Result<Option<Self>> {
        Self::find_first(db, "WHERE u.email = ?1 COLLATE NOCASE", [email])
    }

    /// True if a text may be an e-mail address.
    pub(crate) fn is_email_address(text: &str) -> bool {
        let name_and_host = text.split_once('@');
        name_and_host.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
            && text.matches('@').count() == 1
            && !text.contains(char::is_whitespace)
    }

    /// Finds a user by id or username, as in paths and parameters.
    pub(crate) fn find_by_reference(db: &Connection, reference: &str) -> Result<Option<Self>> {
        match reference.parse() {
            Ok(id) => Self::find_by_id(db, id),
            Err(_) => Self::find_by_username(db, reference),
        }
    }

    /// True if one of the names contains this text. The text must be in lower case.
    pub(crate) fn name_contains(&self, text: &str) -> bool {
        [&self.username, &self.name].iter().any(|name| name.to_lowercase().contains(text))
    }

    /// True if a search for this text finds the user: by a part of the names, or by the whole
    /// e-mail address. The text must be in lower case. Only administrators find private addresses.
    pub(crate) fn matches_search(&self, text: &str, finds_private_address: bool) -> bool {
        let address = Some(&self.email).filter(|_| finds_private_address);
        let address = address.or(self.public_email.as_ref());
        self.name_contains(text) || address.is_some_and(|email| email.to_lowercase() == text)
    }

    /// Inserts a user, and turns invitations of the e-mail address into memberships. All users except bots get
    /// a personal namespace.
    pub(crate) fn insert(&self, db: &Connection, now: &str) -> Result<i64> {
        let Self { username, name, email, state, admin, bot, .. } = self;
        let sql = "INSERT INTO users (username, name, email, state, admin, bot, created_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let user = params![username, name, email, state, admin, bot, now];
        let id = db.prepare_cached(sql)?.insert(user)?;
        if !bot {
            let sql = "INSERT INTO namespaces (kind, name, path, owner_id, full_path, full_name, created_at)
                       VALUES ('user', ?1, ?2, ?3, ?2, ?1, ?4)";
            let namespace_id = db.prepare_cached(sql)?.insert(params![name, username, id, now])?;
            let sql = "UPDATE namespaces SET traversal = '/' || id || '/' WHERE id = ?1";
            execute(db, sql, [namespace_id])?;
        }
        let sql =
            "UPDATE members SET user_id = ?1, email = NULL, state = 'active' WHERE email = ?2";
        execute(db, sql, params![id, email]).map(|()| id)
    }

    /// The short form that members, owners and starrers share (reference 1, 2.11).
    pub(crate) fn brief_json(&self, call: &Call<'_>) -> Value {
        let mut body = self.json_columns("id username name state");
        body["avatar_url"] = self.avatar_url(&call.base_url).into();
        body["web_url"] = format!("{}/{}", call.base_url, self.username).into();
        set_field_if(&mut body, call.is_at_least(16, 5), "locked", false);
        set_field_if(
            &mut body,
            call.is_observed_release_or_later(),
            "public_email",
            self.column("public_email"),
        );
        body
    }

    /// The URL of the picture, which is never null in the reference (1, 2.3). Without an upload, it
    /// is a URL of another service that contains a digest of the e-mail address.
    pub(crate) fn avatar_url(&self, base: &str) -> String {
        match &self.picture {
            Some(name) => format!("{base}/uploads/-/system/user/avatar/{}/{name}", self.id),
            None => format!(
                "https://www.gravatar.com/avatar/{:x}?s=80&d=identicon",
                Sha256::digest(self.email.to_lowercase())
            ),
        }
    }
}
