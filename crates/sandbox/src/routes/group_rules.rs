//! The rules for names, paths and visibility of groups, and who may create groups.

use super::names::{
    BLANK, LONGEST, PLAIN_PATH, TAKEN, TOO_LONG, is_name, is_path, is_plain_path, is_reserved,
};
use super::prelude::*;
use super::{group_settings, instance, users};

pub(super) const SHORTEST_PATH: usize = 2;
/// The maximum number of groups above one.
const MOST_ABOVE: usize = 20;

/// Names of the service's own pages, which no top-level group can have.
const AT_THE_TOP: &str = "- .well-known 404.html 422.html 500.html 502.html 503.html admin api \
    apple-touch-icon-precomposed.png apple-touch-icon.png assets dashboard deploy.html \
    explore favicon.ico favicon.png files groups health_check help import invites jwt login \
    oauth profile projects public robots.txt s search sitemap sitemap.xml sitemap.xml.gz \
    slash-command-logo.png snippets unsubscribe uploads users v2";

/// True if no top-level group, and no user, can have a path.
pub(super) fn is_reserved_at_the_top(path: &str) -> bool {
    AT_THE_TOP.split(' ').any(|name| path.eq_ignore_ascii_case(name))
}

const NAME: &str = "can contain only letters, digits, emoji, '_', '.', dash, space, parenthesis. \
                    It must start with letter, digit, emoji or '_'.";
pub(super) const PATH_FORM: &str = "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-' or end in '.', '.git' or '.atom'.";

/// The checks of what a call wants for a group, which may exist.
struct GroupCheck<'a> {
    call: &'a Call<'a>,
    requested: NewGroup<'a>,
    existing: Option<&'a Namespace>,
    complaints: Complaints,
}

/// Checks all properties of a group except the caller's rights; unchanged ones are not checked.
/// `existing` is the group itself, if it exists; `shortest` the minimum length of its path.
pub(super) fn check(
    call: &Call<'_>,
    requested: NewGroup<'_>,
    existing: Option<&Namespace>,
    shortest: usize,
) -> Result<()> {
    let (new_name, new_path) = (
        existing.is_none_or(|existing| existing.name != requested.name),
        existing.is_none_or(|existing| existing.path != requested.path),
    );
    let is_below = requested.parent.is_some();
    let route = if existing.is_some() { Accepts::Edit } else { Accepts::Create };
    let mut check = GroupCheck { call, requested, existing, complaints: Complaints::default() };
    group_settings::check(call, is_below, route, true, &mut check.complaints)?;
    if new_name {
        check.name()?;
    }
    if new_path {
        check.path(shortest);
    }
    let depth = requested.parent.map_or(0, |parent| ids(&parent.traversal).count());
    let is_deep = existing.is_none() && depth > MOST_ABOVE;
    check.complaints.add_if(is_deep, "parent_id", "has too deep level of nesting");
    group_settings::check(call, is_below, route, false, &mut check.complaints)?;
    if existing.is_none_or(|existing| existing.visibility != requested.visibility) {
        check.visibility()?;
    }
    check.complaints.add_if(new_name && !is_name(requested.name, ".-() "), "name", NAME);
    if new_path {
        check.full_path()?;
    }
    check.complaints.settle()
}

impl GroupCheck<'_> {
    fn name(&mut self) -> Result<()> {
        let Self { call, requested, existing, complaints } = self;
        complaints.add_if(requested.name.trim().is_empty(), "name", BLANK);
        complaints.check_length("name", requested.name, LONGEST);
        let is_taken = has_child_named(call, requested.parent, requested.name, *existing)?;
        complaints.add_if(is_taken, "name", TAKEN);
        Ok(())
    }

    fn path(&mut self, shortest: usize) {
        let Self { call, requested, complaints, .. } = self;
        let (path, length) = (requested.path, requested.path.chars().count());
        complaints.add_if(path.is_empty(), "path", BLANK);
        complaints.check_length("path", path, LONGEST);
        complaints.add_if(call.release() >= OBSERVED && !is_plain_path(path), "path", PLAIN_PATH);
        let reserved = match requested.parent {
            Some(_) => is_reserved(path),
            None => is_reserved_at_the_top(path),
        };
        let is_valid = is_path(path, &[".", ".git", ".atom"]);
        complaints.add_if(!is_valid, "path", PATH_FORM);
        complaints.add_if(is_valid && reserved, "path", format!("{path} is a reserved name"));
        let text = format!("is too short (minimum is {shortest} characters)");
        complaints.add_if(length < shortest, "path", text);
    }

    /// The rules for the whole path.
    fn full_path(&mut self) -> Result<()> {
        let Self { call, requested, existing, complaints } = self;
        let prefix = requested.parent.map_or(0, |parent| parent.full_path.chars().count() + 1);
        let is_long = prefix + requested.path.chars().count() > LONGEST;
        complaints.add_if(is_long, "path", TOO_LONG);
        let existing = existing.map(|group| group.id);
        let is_taken = !requested.path.is_empty()
            && is_taken(call, requested.parent, requested.path, existing)?;
        complaints.add_if(is_taken, "path", TAKEN);
        Ok(())
    }

    fn visibility(&mut self) -> Result<()> {
        const FIELD: &str = "visibility_level";
        let Self { call, requested, existing, complaints } = self;
        let word = requested.visibility;
        if instance::is_restricted(call, word)? {
            complaints.add(FIELD, restricted_text(word));
            return Ok(());
        }
        let wider = Value::from(&VISIBILITIES[visibility_rank(word) + 1..]).to_string();
        for (table, key, what) in [
            ("projects", "namespace_id", "this group contains projects with higher visibility"),
            ("namespaces", "parent_id", "there are sub-groups with higher visibility"),
        ] {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM {table} WHERE {key} = ?1
                     AND visibility IN (SELECT value FROM json_each(?2)))"
            );
            let is_below = call.one(&sql, params![existing.map(|group| group.id), wider])?;
            complaints.add_if(is_below, FIELD, format!("{word} is not allowed since {what}."));
        }
        let most = requested.parent.map_or("public", |parent| parent.visibility.as_str());
        let text = format!("{word} is not allowed since the parent group has a {most} visibility.");
        complaints.add_if(visibility_rank(word) > visibility_rank(most), FIELD, text);
        Ok(())
    }
}

/// True if another group directly below `parent` has this name. Top-level groups may share one.
pub(super) fn has_child_named(
    call: &Call<'_>,
    parent: Option<&Namespace>,
    name: &str,
    except: Option<&Namespace>,
) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM namespaces WHERE parent_id = ?1 AND name = ?2 AND id IS NOT ?3)";
    let [parent, except] = [parent, except].map(|group| group.map(|group| group.id));
    call.one(sql, params![parent, name, except])
}

/// True if a group, project or user has the path below `parent`, ignoring case.
pub(super) fn is_taken(
    call: &Call<'_>,
    parent: Option<&Namespace>,
    path: &str,
    except: Option<i64>,
) -> Result<bool> {
    let full_path = match parent {
        Some(parent) => format!("{}/{path}", parent.full_path),
        None => path.to_owned(),
    };
    call.one(
        "SELECT EXISTS (SELECT 1 FROM namespaces WHERE full_path = ?1 AND id IS NOT ?2)
                 OR EXISTS (SELECT 1 FROM projects WHERE full_path = ?1)",
        params![full_path, except],
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
pub(super) fn as_one_text(failure: ErrorResponse) -> ErrorResponse {
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
    for text in [BLANK, PATH_FORM, "is too short (minimum is 1 character)", BLANK] {
        complaints.add("path", text);
    }
    complaints.settle().map_or_else(as_one_text, |()| ErrorResponse::invalid("path"))
}

/// True if the caller may create subgroups, or top-level groups: owners may, and maintainers unless
/// a setting restricts it.
pub(super) fn may_create(call: &Call<'_>, parent: Option<&Namespace>) -> Result<bool> {
    let Some(parent) = parent else {
        let user = call.user()?;
        return Ok(user.admin || users::may_create_groups(call, user)?);
    };
    let level = OF_GROUPS.set(call.db, parent.id)?.remove("subgroup_creation_level");
    let only_owners = level.is_some_and(|level| level == "owner");
    Ok(call.level_in_group(parent)? >= if only_owners { OWNER } else { MAINTAINER })
}
