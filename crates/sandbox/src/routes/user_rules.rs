//! The rules for the fields of users, with the service's error texts.

use super::group_rules::{PATH_FORM_TEXT, is_reserved_top_path};
use super::prelude::*;

/// The requested fields of a user.
#[derive(Debug)]
pub(super) struct RequestedUser {
    pub(super) email: String,
    pub(super) username: String,
    pub(super) name: String,
    pub(super) admin: bool,
    /// True if the user may read everything; `None` if the call for a new user omits the field.
    pub(super) auditor: Option<bool>,
}

/// The highest id of a theme.
const MAX_THEME_ID: i64 = 11;

/// Refuses invalid fields, and values that another user or a group has. Values of another user are
/// checked first, and refused with 409. `stored_user` is the user before the change; `None` for a
/// new user.
pub(super) fn check_user(
    call: &Call<'_>,
    user: &RequestedUser,
    stored_user: Option<&User>,
) -> Result<()> {
    let RequestedUser { email, username, .. } = user;
    let stored_id = stored_user.map(|user| user.id);
    for (column, name, value) in [("email", "Email", email), ("username", "Username", username)] {
        let sql =
            format!("SELECT EXISTS (SELECT 1 FROM users WHERE {column} = ?1 AND id IS NOT ?2)");
        let is_taken = call.query_value(&sql, params![value, stored_id])?;
        refuse_if(is_taken, || ErrorResponse::conflict(&format!("{name} has already been taken")))?;
    }
    let mut errors = FieldErrors::default();
    for field in ["namespace.name", "name"] {
        errors.add_if(user.name.trim().is_empty(), field, BLANK_TEXT);
    }
    // Before 18.9 special characters may follow each other.
    let is_valid = if !call.is_observed_release_or_later() {
        project_rules::is_valid_path(username)
    } else {
        project_rules::check_path_only(username).is_ok()
    };
    if is_reserved_top_path(username) {
        errors.add("username", format!("{username} is a reserved name"));
    } else if !is_valid {
        [PLAIN_PATH_TEXT, PATH_FORM_TEXT].into_iter().for_each(|text| errors.add("username", text));
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM namespaces WHERE full_path = ?1
                   AND (?2 IS NULL OR owner_id IS NOT ?2))";
    let is_namespace_taken = call.query_value(sql, params![username, stored_id])?;
    let text = "A user, alias, or group already exists with that username.";
    errors.add_if(is_namespace_taken, "base", text);
    errors.add_if(!User::is_email_address(email), "email", "is invalid");
    let is_admin_and_auditor = user.admin && user.auditor == Some(true);
    errors.add_if(is_admin_and_auditor, "admin", "user cannot also be an Auditor.");
    let public_email = call.text("public_email")?.filter(|address| !address.is_empty());
    let is_unverified = public_email
        .is_some_and(|address| stored_user.is_none_or(|stored| stored.email != address));
    errors.add_if(is_unverified, "public_email", "must be an email you have verified");
    check_params(call, &mut errors)?;
    errors.into_result()
}

/// Adds the errors of the remaining parameters: password, theme and limit.
fn check_params(call: &Call<'_>, errors: &mut FieldErrors) -> Result<()> {
    let resets_password = call.is_true("reset_password")?;
    if let Some(password) =
        call.text("password")?.filter(|text| !resets_password || !text.is_empty())
    {
        let min_length =
            instance::read_setting(call, "minimum_password_length")?.as_u64().unwrap_or(8);
        let is_short = (password.chars().count() as u64) < min_length;
        errors.add_if(password.is_empty(), "password", BLANK_TEXT);
        let text = format!("is too short (minimum is {min_length} characters)");
        errors.add_if(is_short, "password", text);
    }
    let theme = call.integer("theme_id")?;
    if let Some(theme) = theme.filter(|theme| !(1..=MAX_THEME_ID).contains(theme)) {
        errors.add("theme_id", format!("{theme} is not a valid theme"));
    }
    let limit_field = "projects_limit";
    let is_null = call.has(limit_field) && call.integer(limit_field)?.is_none();
    errors.add_if(is_null, limit_field, BLANK_TEXT);
    errors.add_if(is_null, limit_field, "is not a number");
    Ok(())
}
