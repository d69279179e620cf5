//! The facts that the service shows about a token: its name, scopes and expiry, and the project or
//! group of a bot's token.
//!
//! A fact is used only if it is certain. An unknown scope may allow anything.

use std::fmt;

use jiff::{Span, civil::Date};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    field::Scope,
    value::{Json, Object},
};

/// The scope that allows everything that the role allows.
const FULL_SCOPE: &str = "api";
/// The scope that allows reads.
const READ_SCOPE: &str = "read_api";
/// Other known scopes: they allow neither reads nor writes of groups and projects.
const OTHER_SCOPES: &str = "read_user read_repository write_repository read_registry write_registry \
    read_virtual_registry write_virtual_registry create_runner manage_runner ai_features \
    k8s_proxy self_rotate";
/// The scope that allows an administrator to act as another user, within the other scopes of the token.
const SUDO_SCOPE: &str = "sudo";
/// The number of days before expiry at which a warning starts.
const WARNING_DAYS: i64 = 7;

/// The properties of a token, without the token itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenProperties {
    /// The name of the token.
    pub name: String,
    /// The scopes of the token.
    pub scopes: Vec<String>,
    /// The day on which the token expires, as `YYYY-MM-DD`; null if it never expires.
    #[schemars(with = "Option<String>")]
    pub expires_at: Option<Date>,
}

impl TokenProperties {
    /// Reads a response; `None` if it does not describe a token.
    pub fn parse_response(object: &Object) -> Option<Self> {
        let scopes = object.get("scopes")?.as_array()?;
        let expires_at = object.get("expires_at").and_then(Json::as_str);
        Some(Self {
            name: object.get("name")?.as_str()?.to_owned(),
            scopes: scopes.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
            expires_at: expires_at.and_then(|day| day.get(..10)?.parse().ok()),
        })
    }

    fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|other| other == scope)
    }

    /// True if there are scopes and all of them are known.
    fn has_only_known_scopes(&self) -> bool {
        !self.scopes.is_empty()
            && self.scopes.iter().all(|scope| {
                [FULL_SCOPE, READ_SCOPE, SUDO_SCOPE].contains(&scope.as_str())
                    || OTHER_SCOPES.split(' ').any(|other| other == scope)
            })
    }

    /// True if the token certainly allows no write.
    pub fn cannot_write(&self) -> bool {
        self.has_only_known_scopes() && !self.has_scope(FULL_SCOPE)
    }

    /// True if the token certainly allows no read.
    pub fn cannot_read(&self) -> bool {
        self.cannot_write() && !self.has_scope(READ_SCOPE)
    }

    /// True if an administrator can act as another user with the token.
    pub fn can_act_as_others(&self) -> bool {
        self.has_scope(SUDO_SCOPE)
    }

    /// The expiry date, if it is at most seven days after `today`.
    pub fn upcoming_expiry(&self, today: Date) -> Option<Date> {
        let last_warning_day = today.saturating_add(Span::new().days(WARNING_DAYS));
        self.expires_at.filter(|day| *day <= last_warning_day)
    }
}

/// Formats the properties as in the header of a report.
impl fmt::Display for TokenProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token `{}`, {}", self.name, self.scopes.join(" "))?;
        match self.expires_at {
            Some(day) => write!(f, ", expires {day}"),
            None => Ok(()),
        }
    }
}

/// The project or group of a bot's token. The token has no access outside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BotOwner {
    /// The scope: project or group.
    pub scope: Scope,
    /// The id of the project or group.
    pub id: u64,
}

impl BotOwner {
    /// Parses the username of a bot; `None` for other usernames. The service generates the
    /// username: `project_12_bot` with a suffix, because a project or group can have several bots.
    pub fn from_username(username: &str) -> Option<Self> {
        let (scope, id_and_suffix) = match username.split_once('_')? {
            ("project", rest) => (Scope::Project, rest),
            ("group", rest) => (Scope::Group, rest),
            _ => return None,
        };
        let (id, suffix_text) = id_and_suffix.split_once('_')?;
        let suffix = suffix_text.strip_prefix("bot")?;
        let is_bot_suffix =
            suffix.strip_prefix('_').unwrap_or(suffix).chars().all(|c| c.is_ascii_hexdigit());
        let is_number = id.chars().all(|c| c.is_ascii_digit());
        (is_bot_suffix && is_number).then(|| id.parse().ok())?.map(|id| Self { scope, id })
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::json;

    use super::*;

    fn token(scopes: &[&str]) -> TokenProperties {
        let response = json!({"id": 1, "name": "ci", "scopes": scopes, "expires_at": "2030-01-08"});
        TokenProperties::parse_response(response.as_object().unwrap()).unwrap()
    }

    #[test]
    fn only_certain_facts_are_derived_from_scopes() {
        for (scopes, cannot_write, cannot_read) in [
            (&["api"][..], false, false),
            (&["read_api", "api"], false, false),
            (&["read_api"], true, false),
            (&["read_user", "read_api"], true, false),
            (&["read_user"], true, true),
            (&["sudo", "write_repository"], true, true),
            (&["unheard_of"], false, false),
            (&["read_api", "unheard_of"], false, false),
            (&[], false, false),
        ] {
            let token = token(scopes);
            assert_eq!(
                (token.cannot_write(), token.cannot_read()),
                (cannot_write, cannot_read),
                "{scopes:?}"
            );
        }
        assert!(
            token(&["api", "sudo"]).can_act_as_others() && !token(&["api"]).can_act_as_others()
        );
    }

    #[test]
    fn a_token_expires_soon_for_seven_days() {
        let is_near_expiry = |day| token(&["api"]).upcoming_expiry(day).is_some();
        assert!(
            is_near_expiry(date(2030, 1, 1))
                && is_near_expiry(date(2030, 1, 7))
                && !is_near_expiry(date(2029, 12, 31))
        );
        for (text, expected) in [
            (json!("2030-01-08T00:00:00Z"), Some(date(2030, 1, 8))),
            (json!(null), None),
            (json!("soon"), None),
            (json!("ü030-01-08"), None),
        ] {
            let response = json!({"name": "ci", "scopes": [], "expires_at": text});
            let token = TokenProperties::parse_response(response.as_object().unwrap()).unwrap();
            assert_eq!(token.expires_at, expected, "{text}");
        }
        for wrong in [json!({}), json!({"name": "ci"}), json!({"name": 1, "scopes": []})] {
            assert_eq!(
                TokenProperties::parse_response(wrong.as_object().unwrap()),
                None,
                "{wrong}"
            );
        }
    }

    #[test]
    fn bot_usernames_identify_their_owner() {
        let bot_owner = |scope, id| Some(BotOwner { scope, id });
        for (username, expected) in [
            ("project_12_bot", bot_owner(Scope::Project, 12)),
            ("project_12_bot1", bot_owner(Scope::Project, 12)),
            ("group_7_bot_0a1b2c3d", bot_owner(Scope::Group, 7)),
            ("project_12_both", None),
            ("project_x_bot", None),
            ("project__bot", None),
            ("project_+1_bot", None),
            ("project_12_robot", None),
            ("alice", None),
            ("project_bot", None),
            ("team_12_bot", None),
        ] {
            assert_eq!(BotOwner::from_username(username), expected, "{username}");
        }
    }
}
