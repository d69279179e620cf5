//! The rules for names, paths and visibility of groups, and who may create groups.

use super::names::{
    BLANK_TEXT, MAX_NAME_LENGTH, PLAIN_PATH_TEXT, TAKEN_TEXT, TOO_LONG_TEXT, is_name, is_path,
    is_plain_path, is_reserved,
};
use super::prelude::*;
use super::{group_settings, instance, users};

pub(super) const MIN_PATH_LENGTH: usize = 2;
/// The maximum number of groups above a group.
const MAX_DEPTH: usize = 20;

/// Names of the service's own pages, which no top-level group can have.
const RESERVED_TOP_NAMES: &str = "- .well-known 404.html 422.html 500.html 502.html 503.html admin api \
    apple-touch-icon-precomposed.png apple-touch-icon.png assets dashboard deploy.html \
    explore favicon.ico favicon.png files groups health_check help import invites jwt login \
    oauth profile projects public robots.txt s search sitemap sitemap.xml sitemap.xml.gz \
    slash-command-logo.png snippets unsubscribe uploads users v2";

/// True if a path is reserved: top-level groups and users cannot have it.
pub(super) fn is_reserved_top_path(path: &str) -> bool {
    RESERVED_TOP_NAMES.split(' ').any(|name| path.eq_ignore_ascii_case(name))
}

const NAME_FORM: &str = "can contain only letters, digits, emoji, '_', '.', dash, space, parenthesis. \
                    It must start with letter, digit, emoji or '_'.";
pub(super) const PATH_FORM: &str = "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-' or end in '.', '.git' or '.atom'.";

/// The checks of the properties that a call sets for a new or existing group.
struct GroupCheck<'a> {
    call: &'a Call<'a>,
    requested: NewGroup<'a>,
    existing: Option<&'a Namespace>,
    complaints: Complaints,
}

/// Checks the properties of a group, without the caller's rights; unchanged ones are not checked.
/// `existing` is the group itself, if it exists; `min_length` the minimum length of its path.
pub(super) fn check(
    call: &Call<'_>,
    requested: NewGroup<'_>,
    existing: Option<&Namespace>,
    min_length: usize,
) -> Result<()> {
    let (is_name_new, is_path_new) = (
        existing.is_none_or(|existing| existing.name != requested.name),
        existing.is_none_or(|existing| existing.path != requested.path),
    );
    let is_below = requested.parent.is_some();
    let route = if existing.is_some() { Accepts::Edit } else { Accepts::Create };
    let mut check = GroupCheck { call, requested, existing, complaints: Complaints::default() };
    group_settings::check(call, is_below, route, true, &mut check.complaints)?;
    if is_name_new {
        check.check_name()?;
    }
    if is_path_new {
        check.check_path(min_length);
    }
    let depth = requested.parent.map_or(0, |parent| traversal_ids(&parent.traversal).count());
    let is_deep = existing.is_none() && depth > MAX_DEPTH;
    check.complaints.add_if(is_deep, "parent_id", "has too deep level of nesting");
    group_settings::check(call, is_below, route, false, &mut check.complaints)?;
    if existing.is_none_or(|existing| existing.visibility != requested.visibility) {
        check.check_visibility()?;
    }
    check.complaints.add_if(is_name_new && !is_name(requested.name, ".-() "), "name", NAME_FORM);
    if is_path_new {
        check.check_full_path()?;
    }
    check.complaints.into_result()
}

impl GroupCheck<'_> {
    fn check_name(&mut self) -> Result<()> {
        let Self { call, requested, existing, complaints } = self;
        complaints.add_if(requested.name.trim().is_empty(), "name", BLANK_TEXT);
        complaints.check_length("name", requested.name, MAX_NAME_LENGTH);
        let is_taken = has_child_named(call, requested.parent, requested.name, *existing)?;
        complaints.add_if(is_taken, "name", TAKEN_TEXT);
        Ok(())
    }

    fn check_path(&mut self, min_length: usize) {
        let Self { call, requested, complaints, .. } = self;
        let (path, length) = (requested.path, requested.path.chars().count());
        complaints.add_if(path.is_empty(), "path", BLANK_TEXT);
        complaints.check_length("path", path, MAX_NAME_LENGTH);
        complaints.add_if(
            call.release() >= OBSERVED_RELEASE && !is_plain_path(path),
            "path",
            PLAIN_PATH_TEXT,
        );
        let is_reserved = match requested.parent {
            Some(_) => is_reserved(path),
            None => is_reserved_top_path(path),
        };
        let is_valid = is_path(path, &[".", ".git", ".atom"]);
        complaints.add_if(!is_valid, "path", PATH_FORM);
        complaints.add_if(is_valid && is_reserved, "path", format!("{path} is a reserved name"));
        let text = format!("is too short (minimum is {min_length} characters)");
        complaints.add_if(length < min_length, "path", text);
    }

    /// The rules for the whole path.
    fn check_full_path(&mut self) -> Result<()> {
        let Self { call, requested, existing, complaints } = self;
        let prefix = requested.parent.map_or(0, |parent| parent.full_path.chars().count() + 1);
        let is_long = prefix + requested.path.chars().count() > MAX_NAME_LENGTH;
        complaints.add_if(is_long, "path", TOO_LONG_TEXT);
        let existing = existing.map(|group| group.id);
        let is_taken = !requested.path.is_empty()
            && is_taken(call, requested.parent, requested.path, existing)?;
        complaints.add_if(is_taken, "path", TAKEN_TEXT);
        Ok(())
    }

    fn check_visibility(&mut self) -> Result<()> {
        const FIELD: &str = "visibility_level";
        let Self { call, requested, existing, complaints } = self;
        let visibility = requested.visibility;
        if instance::is_restricted(call, visibility)? {
            complaints.add(FIELD, restricted_text(visibility));
            return Ok(());
        }
        let wider_visibilities =
            Value::from(&VISIBILITIES[visibility_rank(visibility) + 1..]).to_string();
        for (table, key, what) in [
            ("projects", "namespace_id", "this group contains projects with higher visibility"),
            ("namespaces", "parent_id", "there are sub-groups with higher visibility"),
        ] {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM {table} WHERE {key} = ?1
                     AND visibility IN (SELECT value FROM json_each(?2)))"
            );
            let is_below = call
                .query_value(&sql, params![existing.map(|group| group.id), wider_visibilities])?;
            complaints.add_if(
                is_below,
                FIELD,
                format!("{visibility} is not allowed since {what}."),
            );
        }
        let most = requested.parent.map_or("public", |parent| parent.visibility.as_str());
        let text =
            format!("{visibility} is not allowed since the parent group has a {most} visibility.");
        complaints.add_if(visibility_rank(visibility) > visibility_rank(most), FIELD, text);
        Ok(())
    }
}

/// True if another group directly below `parent` has this name. Top-level groups may share one.
pub(super) fn has_child_named(
    call: &Call<'_>,
    parent: Option<&Namespace>,
    name: &str,
    excluded_group: Option<&Namespace>,
) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM namespaces WHERE parent_id = ?1 AND name = ?2 AND id IS NOT ?3)";
    let [parent, except] = [parent, excluded_group].map(|group| group.map(|group| group.id));
    call.query_value(sql, params![parent, name, except])
}

/// True if a group, project or user has the path below `parent`, ignoring case.
pub(super) fn is_taken(
    call: &Call<'_>,
    parent: Option<&Namespace>,
    path: &str,
    excluded_id: Option<i64>,
) -> Result<bool> {
    let full_path = match parent {
        Some(parent) => format!("{}/{path}", parent.full_path),
        None => path.to_owned(),
    };
    call.query_value(
        "SELECT EXISTS (SELECT 1 FROM namespaces WHERE full_path = ?1 AND id IS NOT ?2)
                 OR EXISTS (SELECT 1 FROM projects WHERE full_path = ?1)",
        params![full_path, excluded_id],
    )
}

/// The rank of a visibility, from 0.
pub(super) fn visibility_rank(visibility: &str) -> usize {
    VISIBILITIES.iter().position(|level| *level == visibility).unwrap_or(0)
}

/// The complaint about a visibility that only administrators may use.
pub(super) fn restricted_text(visibility: &str) -> String {
    format!("{visibility} has been restricted by your GitLab administrator")
}

/// Converts an object of complaints, as in PUT, to one text, as in POST, in the notation of the
/// service's own language.
pub(super) fn join_complaints(failure: ErrorResponse) -> ErrorResponse {
    let Some(Value::Object(fields)) = failure.body.get("message") else { return failure };
    let fields = fields.iter().map(|(field, texts)| {
        let quote = if field.contains('.') { "\"" } else { "" };
        let texts = texts.as_array().into_iter().flatten().map(Value::to_string);
        format!(":{quote}{field}{quote}=>[{}]", texts.collect::<Vec<_>>().join(", "))
    });
    let fields: Vec<String> = fields.collect();
    ErrorResponse::message(
        failure.status,
        format!("Failed to save group {{{}}}", fields.join(", ")),
    )
}

/// The refusal of null as the path of a group.
pub(super) fn missing_path() -> ErrorResponse {
    let mut complaints = Complaints::default();
    for text in [BLANK_TEXT, PATH_FORM, "is too short (minimum is 1 character)", BLANK_TEXT] {
        complaints.add("path", text);
    }
    complaints.into_result().map_or_else(join_complaints, |()| ErrorResponse::invalid("path"))
}

/// True if the caller may create subgroups, or top-level groups: owners may, and maintainers unless
/// a setting restricts it.
pub(super) fn may_create(call: &Call<'_>, parent: Option<&Namespace>) -> Result<bool> {
    let Some(parent) = parent else {
        let user = call.user()?;
        return Ok(user.admin || users::may_create_groups(call, user)?);
    };
    let level = GROUP_SETTINGS.stored_values(call.db, parent.id)?.remove("subgroup_creation_level");
    let is_owner_only = level.is_some_and(|level| level == "owner");
    Ok(call.level_in_group(parent)? >= if is_owner_only { OWNER } else { MAINTAINER })
}
