//! The rules for names, paths, visibility and creation of groups.

use super::prelude::*;

pub(super) const MIN_PATH_LENGTH: usize = 2;
/// The maximum number of groups above a group.
const MAX_DEPTH: usize = 20;

/// The names of the service's own pages. No top-level group can have such a name.
const RESERVED_TOP_LEVEL_NAMES: &str = "- .well-known 404.html 422.html 500.html 502.html 503.html admin api \
    apple-touch-icon-precomposed.png apple-touch-icon.png assets dashboard deploy.html \
    explore favicon.ico favicon.png files groups health_check help import invites jwt login \
    oauth profile projects public robots.txt s search sitemap sitemap.xml sitemap.xml.gz \
    slash-command-logo.png snippets unsubscribe uploads users v2";

/// True if a path is reserved: top-level groups and users cannot have it.
pub(super) fn is_reserved_top_path(path: &str) -> bool {
    RESERVED_TOP_LEVEL_NAMES.split(' ').any(|name| path.eq_ignore_ascii_case(name))
}

const NAME_FORM_TEXT: &str = "can contain only letters, digits, emoji, '_', '.', dash, space, parenthesis. \
                    It must start with letter, digit, emoji or '_'.";
pub(super) const PATH_FORM_TEXT: &str = "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-' or end in '.', '.git' or '.atom'.";

/// The checks of the properties that a call sets for a new or existing group.
pub(super) struct GroupCheck<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) requested: NewGroup<'a>,
    pub(super) existing: Option<&'a Namespace>,
    pub(super) errors: FieldErrors,
}

/// Checks the changed properties of a group, but not the caller's rights. `existing` is the stored
/// group, or `None` for a new group. `min_length` is the minimum length of the path, in characters.
pub(super) fn check_group(
    call: &Call<'_>,
    requested: NewGroup<'_>,
    existing: Option<&Namespace>,
    min_length: usize,
) -> Result<()> {
    let (is_name_changed, is_path_changed) = (
        existing.is_none_or(|existing| existing.name != requested.name),
        existing.is_none_or(|existing| existing.path != requested.path),
    );
    let mut group_check = GroupCheck { call, requested, existing, errors: FieldErrors::default() };
    group_check.check_settings(true)?;
    if is_name_changed {
        group_check.check_name()?;
    }
    if is_path_changed {
        group_check.check_path(min_length);
    }
    let depth = requested.parent.map_or(0, |parent| traversal_ids(&parent.traversal).count());
    let is_deep = existing.is_none() && depth > MAX_DEPTH;
    group_check.errors.add_if(is_deep, "parent_id", "has too deep level of nesting");
    group_check.check_settings(false)?;
    if existing.is_none_or(|existing| existing.visibility != requested.visibility) {
        group_check.check_visibility()?;
    }
    let is_malformed = is_name_changed && !has_name_syntax(requested.name, ".-() ");
    group_check.errors.add_if(is_malformed, "name", NAME_FORM_TEXT);
    if is_path_changed {
        group_check.check_full_path()?;
    }
    group_check.errors.into_result()
}

impl GroupCheck<'_> {
    fn check_name(&mut self) -> Result<()> {
        let Self { call, requested, existing, errors } = self;
        errors.add_if(requested.name.trim().is_empty(), "name", BLANK_TEXT);
        errors.check_length("name", requested.name, MAX_NAME_LENGTH);
        let is_taken = requested.has_namesake(call, existing.map(|group| group.id))?;
        errors.add_if(is_taken, "name", TAKEN_TEXT);
        Ok(())
    }

    fn check_path(&mut self, min_length: usize) {
        let Self { call, requested, errors, .. } = self;
        let (path, length) = (requested.path, requested.path.chars().count());
        errors.add_if(path.is_empty(), "path", BLANK_TEXT);
        errors.check_length("path", path, MAX_NAME_LENGTH);
        let is_malformed = call.is_observed_release_or_later() && !is_plain_path(path);
        errors.add_if(is_malformed, "path", PLAIN_PATH_TEXT);
        let is_reserved = match requested.parent {
            Some(_) => is_reserved_path(path),
            None => is_reserved_top_path(path),
        };
        let is_valid = has_path_syntax(path, &[".", ".git", ".atom"]);
        errors.add_if(!is_valid, "path", PATH_FORM_TEXT);
        errors.add_if(is_valid && is_reserved, "path", format!("{path} is a reserved name"));
        let message = format!("is too short (minimum is {min_length} characters)");
        errors.add_if(length < min_length, "path", message);
    }

    /// Checks the rules for the full path.
    fn check_full_path(&mut self) -> Result<()> {
        let Self { call, requested, existing, errors } = self;
        let prefix_length =
            requested.parent.map_or(0, |parent| parent.full_path.chars().count() + 1);
        let is_long = prefix_length + requested.path.chars().count() > MAX_NAME_LENGTH;
        errors.add_if(is_long, "path", TOO_LONG_TEXT);
        let existing_id = existing.map(|group| group.id);
        let is_taken = !requested.path.is_empty() && requested.is_path_taken(call, existing_id)?;
        errors.add_if(is_taken, "path", TAKEN_TEXT);
        Ok(())
    }

    fn check_visibility(&mut self) -> Result<()> {
        const FIELD: &str = "visibility_level";
        let Self { call, requested, existing, errors } = self;
        let visibility = requested.visibility;
        if instance::is_visibility_restricted(call, visibility)? {
            errors.add(FIELD, restricted_text(visibility));
            return Ok(());
        }
        let wider_visibilities =
            Value::from(&VISIBILITIES[visibility_rank(visibility) + 1..]).to_string();
        for (table, parent_column, reason) in [
            ("projects", "namespace_id", "this group contains projects with higher visibility"),
            ("namespaces", "parent_id", "there are sub-groups with higher visibility"),
        ] {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM {table} WHERE {parent_column} = ?1
                     AND visibility IN (SELECT value FROM json_each(?2)))"
            );
            let has_wider_content = call
                .query_value(&sql, params![existing.map(|group| group.id), wider_visibilities])?;
            let text = format!("{visibility} is not allowed since {reason}.");
            errors.add_if(has_wider_content, FIELD, text);
        }
        let max_visibility = requested.parent.map_or("public", |parent| parent.visibility.as_str());
        let text = format!(
            "{visibility} is not allowed since the parent group has a {max_visibility} visibility."
        );
        errors.add_if(visibility_rank(visibility) > visibility_rank(max_visibility), FIELD, text);
        Ok(())
    }
}

impl NewGroup<'_> {
    /// True if another group directly below the parent has the name. Top-level groups may share a
    /// name.
    pub(super) fn has_namesake(&self, call: &Call<'_>, excluded_id: Option<i64>) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM namespaces WHERE parent_id = ?1 AND name = ?2 AND id IS NOT ?3)";
        let parent_id = self.parent.map(|parent| parent.id);
        call.query_value(sql, params![parent_id, self.name, excluded_id])
    }

    /// True if a group, project or user has the path below the parent, ignoring case.
    pub(super) fn is_path_taken(&self, call: &Call<'_>, excluded_id: Option<i64>) -> Result<bool> {
        let prefix = self.parent.map(|parent| format!("{}/", parent.full_path)).unwrap_or_default();
        let sql = "SELECT EXISTS (SELECT 1 FROM namespaces WHERE full_path = ?1 AND id IS NOT ?2)
                       OR EXISTS (SELECT 1 FROM projects WHERE full_path = ?1)";
        call.query_value(sql, params![format!("{prefix}{}", self.path), excluded_id])
    }
}

/// The rank of a visibility: 0 for private, 1 for internal, 2 for public.
pub(super) fn visibility_rank(visibility: &str) -> usize {
    VISIBILITIES.iter().position(|level| *level == visibility).unwrap_or(0)
}

/// The error text for a visibility that only administrators may use.
pub(super) fn restricted_text(visibility: &str) -> String {
    format!("{visibility} has been restricted by your GitLab administrator")
}

/// Converts errors by field, as PUT returns them, to one text, as POST returns it. The text is a
/// Ruby hash.
pub(super) fn join_errors(failure: ErrorResponse) -> ErrorResponse {
    let Some(Value::Object(fields)) = failure.body.get("message") else { return failure };
    let fields = fields.iter().map(|(field, texts)| {
        let quote = if field.contains('.') { "\"" } else { "" };
        let texts = texts.as_array().into_iter().flatten().map(Value::to_string);
        format!(":{quote}{field}{quote}=>[{}]", texts.collect::<Vec<_>>().join(", "))
    });
    let fields: Vec<String> = fields.collect();
    let text = format!("Failed to save group {{{}}}", fields.join(", "));
    ErrorResponse::message(failure.status, text)
}

/// The error for null as the path of a group.
pub(super) fn missing_path_error() -> ErrorResponse {
    let mut errors = FieldErrors::default();
    for text in [BLANK_TEXT, PATH_FORM_TEXT, "is too short (minimum is 1 character)", BLANK_TEXT] {
        errors.add("path", text);
    }
    errors.into_result().map_or_else(join_errors, |()| ErrorResponse::invalid_parameter("path"))
}

/// True if the caller may create groups below `parent`, or at the top level. Owners of the parent
/// may create groups. Maintainers of the parent may do so unless a setting forbids it.
pub(super) fn may_create_group(call: &Call<'_>, parent: Option<&Namespace>) -> Result<bool> {
    let Some(parent) = parent else {
        let user = call.require_user()?;
        return Ok(user.admin || users::may_create_groups(call, user)?);
    };
    let level = GROUP_SETTINGS.stored_values(call.db, parent.id)?.remove("subgroup_creation_level");
    let is_owner_only = level.is_some_and(|level| level == "owner");
    Ok(call.caller_level_in_group(parent)? >= if is_owner_only { OWNER } else { MAINTAINER })
}
