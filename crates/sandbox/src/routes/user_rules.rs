//! The rules for the fields of users, in the words of the service's models.

use super::group_rules::{PATH_FORM, is_reserved_at_the_top};
use super::names::{BLANK, PLAIN_PATH};
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
const THEMES: i64 = 11;

/// Refuses fields that are not valid, or that another user or a group has: first with 409 what
/// another user has. `stored` is the user itself, if it exists.
pub(super) fn check(call: &Call<'_>, user: &RequestedUser, former: Option<&User>) -> Result<()> {
    let RequestedUser { email, username, .. } = user;
    let stored_id = former.map(|user| user.id);
    for (column, name, value) in [("email", "Email", email), ("username", "Username", username)] {
        let sql =
            format!("SELECT EXISTS (SELECT 1 FROM users WHERE {column} = ?1 AND id IS NOT ?2)");
        let is_taken = call.one(&sql, params![value, stored_id])?;
        refuse_if(is_taken, || ErrorResponse::conflict(&format!("{name} has already been taken")))?;
    }
    let mut faults = Complaints::default();
    for field in ["namespace.name", "name"] {
        faults.add_if(user.name.trim().is_empty(), field, BLANK);
    }
    // Before 18.9 special characters may follow each other.
    let is_valid = if call.release() < OBSERVED {
        project_rules::is_plain(username)
    } else {
        project_rules::check_path_alone(username).is_ok()
    };
    if is_reserved_at_the_top(username) {
        faults.add("username", format!("{username} is a reserved name"));
    } else if !is_valid {
        [PLAIN_PATH, PATH_FORM].into_iter().for_each(|text| faults.add("username", text));
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM namespaces WHERE full_path = ?1
                   AND (?2 IS NULL OR owner_id IS NOT ?2))";
    let is_group = call.one(sql, params![username, stored_id])?;
    faults.add_if(is_group, "base", "A user, alias, or group already exists with that username.");
    faults.add_if(!User::is_address(email), "email", "is invalid");
    let is_both = user.admin && user.auditor == Some(true);
    faults.add_if(is_both, "admin", "user cannot also be an Auditor.");
    let public = call.params.text("public_email")?.filter(|address| !address.is_empty());
    let is_foreign =
        public.is_some_and(|address| former.is_none_or(|stored| stored.email != address));
    faults.add_if(is_foreign, "public_email", "must be an email you have verified");
    check_sent(call, &mut faults)?;
    faults.settle()
}

/// The fields that only requests have, and limits.
fn check_sent(call: &Call<'_>, faults: &mut Complaints) -> Result<()> {
    let params = &call.params;
    let resets = params.is_set("reset_password")?;
    if let Some(password) = params.text("password")?.filter(|text| !resets || !text.is_empty()) {
        let min = instance::setting(call, "minimum_password_length")?.as_u64().unwrap_or(8);
        let is_short = (password.chars().count() as u64) < min;
        faults.add_if(password.is_empty(), "password", BLANK);
        faults.add_if(is_short, "password", format!("is too short (minimum is {min} characters)"));
    }
    let theme = params.integer("theme_id")?;
    if let Some(theme) = theme.filter(|theme| !(1..=THEMES).contains(theme)) {
        faults.add("theme_id", format!("{theme} is not a valid theme"));
    }
    let limit = "projects_limit";
    let is_null = params.has(limit) && params.integer(limit)?.is_none();
    faults.add_if(is_null, limit, BLANK);
    faults.add_if(is_null, limit, "is not a number");
    Ok(())
}
