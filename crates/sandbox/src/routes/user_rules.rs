//! The rules for the fields of users, in the words of the service's models.

use super::group_rules::{PATH_FORM, is_reserved_top_path};
use super::names::{BLANK_TEXT, PLAIN_PATH_TEXT};
use super::prelude::*;
use super::{instance, project_rules};

/// The requested fields of a user.
#[derive(Debug)]
pub(super) struct RequestedUser {
    pub(super) email: String,
    pub(super) username: String,
    pub(super) name: String,
    pub(super) admin: bool,
    /// True if the user may read everything; `None` if a new user's call omits it.
    pub(super) auditor: Option<bool>,
}

/// The greatest number of a theme.
const MAX_THEME_ID: i64 = 11;

/// Refuses fields that are not valid, or whose value another user or a group has. The first check is
/// for values of another user, with 409. `stored_user` is the user itself, if it exists.
pub(super) fn check(
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
    let mut complaints = Complaints::default();
    for field in ["namespace.name", "name"] {
        complaints.add_if(user.name.trim().is_empty(), field, BLANK_TEXT);
    }
    // Before 18.9 special characters may follow each other.
    let is_valid = if call.release() < OBSERVED_RELEASE {
        project_rules::is_valid_path(username)
    } else {
        project_rules::check_path_only(username).is_ok()
    };
    if is_reserved_top_path(username) {
        complaints.add("username", format!("{username} is a reserved name"));
    } else if !is_valid {
        [PLAIN_PATH_TEXT, PATH_FORM].into_iter().for_each(|text| complaints.add("username", text));
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM namespaces WHERE full_path = ?1
                   AND (?2 IS NULL OR owner_id IS NOT ?2))";
    let is_group = call.query_value(sql, params![username, stored_id])?;
    complaints.add_if(
        is_group,
        "base",
        "A user, alias, or group already exists with that username.",
    );
    complaints.add_if(!User::is_address(email), "email", "is invalid");
    let is_both = user.admin && user.auditor == Some(true);
    complaints.add_if(is_both, "admin", "user cannot also be an Auditor.");
    let public_email = call.params.text("public_email")?.filter(|address| !address.is_empty());
    let is_foreign = public_email
        .is_some_and(|address| stored_user.is_none_or(|stored| stored.email != address));
    complaints.add_if(is_foreign, "public_email", "must be an email you have verified");
    check_params(call, &mut complaints)?;
    complaints.into_result()
}

/// Refuses faults of fields that only requests have, and of limits.
fn check_params(call: &Call<'_>, complaints: &mut Complaints) -> Result<()> {
    let params = &call.params;
    let resets_password = params.is_set("reset_password")?;
    if let Some(password) =
        params.text("password")?.filter(|text| !resets_password || !text.is_empty())
    {
        let min_length =
            instance::read_setting(call, "minimum_password_length")?.as_u64().unwrap_or(8);
        let is_short = (password.chars().count() as u64) < min_length;
        complaints.add_if(password.is_empty(), "password", BLANK_TEXT);
        complaints.add_if(
            is_short,
            "password",
            format!("is too short (minimum is {min_length} characters)"),
        );
    }
    let theme = params.integer("theme_id")?;
    if let Some(theme) = theme.filter(|theme| !(1..=MAX_THEME_ID).contains(theme)) {
        complaints.add("theme_id", format!("{theme} is not a valid theme"));
    }
    let limit = "projects_limit";
    let is_null = params.has(limit) && params.integer(limit)?.is_none();
    complaints.add_if(is_null, limit, BLANK_TEXT);
    complaints.add_if(is_null, limit, "is not a number");
    Ok(())
}
