//! Checks the token before planning, so that missing rights cause one message instead of one refusal
//! for each request.
//!
//! This check needs one read request. If the service does not show the token's properties, nothing
//! is reported.

use jiff::civil::Date;

use crate::{
    cli::{CommandError, Exit, Output, Result},
    field::Scope,
    live::{BotOwner, TokenProperties},
    observe::Observer,
    text::escape,
};

/// Reads the token's properties, and reports problems.
///
/// # Errors
/// If the token certainly cannot read, or all further requests would fail too.
pub(super) async fn check_token(
    observer: &Observer,
    today: Date,
    output: &Output,
) -> Result<Option<TokenProperties>> {
    let Some(token) = observer.read_token_properties().await? else { return Ok(None) };
    output.eprint(&token_warnings(&token, today));
    if token.cannot_read() {
        let failure = token_failure(
            format!("the token `{}` cannot read groups and projects", token.name),
            &token,
        );
        return Err(failure.help("use one with the scope `read_api` to plan, `api` to apply"));
    }
    Ok(Some(token))
}

/// Refuses a token that certainly cannot write.
pub(in crate::cli) fn check_can_write(token: Option<&TokenProperties>) -> Result<()> {
    match token.filter(|token| token.cannot_write()) {
        None => Ok(()),
        Some(token) => {
            let failure = token_failure(format!("the token `{}` can only read", token.name), token);
            Err(failure.help("apply needs the scope `api`; nothing was changed"))
        }
    }
}

fn token_failure(message: String, token: &TokenProperties) -> CommandError {
    CommandError::new(
        Exit::Denied,
        anyhow::anyhow!(
            "{}: its scopes are {}",
            escape(&message),
            escape(&token.scopes.join(", "))
        ),
    )
}

fn token_warnings(token: &TokenProperties, today: Date) -> String {
    let name = escape(&token.name);
    let mut text = String::new();
    if let Some(day) = token.upcoming_expiry(today) {
        text += &format!("warning: the token `{name}` expires on {day}; replace it before that\n");
    }
    if token.can_act_as_others() {
        text += &format!(
            "warning: the token `{name}` has the scope `sudo`, which undrift never uses; one without it is safer\n"
        );
    }
    text
}

/// A note for incomplete plans: the objects that the token of a bot cannot see.
pub(super) fn token_scope_note(username: &str) -> String {
    match BotOwner::from_username(username) {
        Some(BotOwner { scope: Scope::Project, id }) => format!(
            "note: the token belongs to project {id}; it cannot see private groups or other private projects\n"
        ),
        Some(BotOwner { scope: Scope::Group, id }) => format!(
            "note: the token belongs to group {id}; it cannot see private groups and projects outside of that group\n"
        ),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn token(scopes: &[&str], expires_at: Option<Date>) -> TokenProperties {
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        TokenProperties { name: "ci\u{1b}".to_owned(), scopes, expires_at }
    }

    #[test]
    fn only_relevant_facts_about_a_token_are_reported() {
        let today = date(2030, 1, 1);
        assert_eq!(token_warnings(&token(&["api"], Some(date(2030, 2, 1))), today), "");
        assert_eq!(token_warnings(&token(&["api"], None), today), "");
        let text = token_warnings(&token(&["api", "sudo"], Some(date(2030, 1, 8))), today);
        assert_eq!(text.matches("warning: ").count(), 2, "{text}");
        assert!(text.contains("2030-01-08") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_token_that_certainly_cannot_write_is_refused() {
        let refusal_exit =
            |scopes: &[&str]| check_can_write(Some(&token(scopes, None))).err().map(|f| f.exit);
        assert_eq!(refusal_exit(&["read_api"]), Some(Exit::Denied));
        assert_eq!((refusal_exit(&["api"]), refusal_exit(&["unheard_of"])), (None, None));
        assert!(check_can_write(None).is_ok());
    }
}
