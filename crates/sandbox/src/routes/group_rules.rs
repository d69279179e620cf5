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

/// Whether no top-level group, and no user, can have a path.
pub(super) fn is_reserved_at_the_top(path: &str) -> bool {
    AT_THE_TOP.split(' ').any(|name| path.eq_ignore_ascii_case(name))
}

const NAME: &str = "can contain only letters, digits, emoji, '_', '.', dash, space, parenthesis. \
                    It must start with letter, digit, emoji or '_'.";
pub(super) const PATH_FORM: &str = "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-' or end in '.', '.git' or '.atom'.";

/// Checks all properties of a group except the caller's rights; unchanged ones are not checked.
/// `own` is the group itself, if it exists; `shortest` the minimum length of its path.
pub(super) fn check(
    call: &Call<'_>,
    wanted: NewGroup<'_>,
    own: Option<&Namespace>,
    shortest: usize,
) -> Result<()> {
    let (new_name, new_path) = (
        own.is_none_or(|own| own.name != wanted.name),
        own.is_none_or(|own| own.path != wanted.path),
    );
    let is_below = wanted.parent.is_some();
    let route = if own.is_some() { Accepts::Edit } else { Accepts::Create };
    let mut complaints = Complaints::default();
    group_settings::check(call, is_below, route, true, &mut complaints)?;
    if new_name {
        check_name(call, wanted, own, &mut complaints)?;
    }
    if new_path {
        check_path(call, wanted, shortest, &mut complaints);
    }
    let above = wanted.parent.map_or(0, |parent| ids(&parent.traversal).count());
    if own.is_none() && above > MOST_ABOVE {
        complaints.add("parent_id", "has too deep level of nesting");
    }
    group_settings::check(call, is_below, route, false, &mut complaints)?;
    if own.is_none_or(|own| own.visibility != wanted.visibility) {
        check_visibility(call, wanted, own, &mut complaints)?;
    }
    complaints.add_if(new_name && !is_name(wanted.name, ".-() "), "name", NAME);
    if new_path {
        check_place(call, wanted, own, &mut complaints)?;
    }
    complaints.settle()
}

fn check_name(
    call: &Call<'_>,
    wanted: NewGroup<'_>,
    own: Option<&Namespace>,
    complaints: &mut Complaints,
) -> Result<()> {
    let name = wanted.name;
    complaints.add_if(name.trim().is_empty(), "name", BLANK);
    complaints.add_if(name.chars().count() > LONGEST, "name", TOO_LONG);
    // Top-level groups may share a name.
    if let Some(parent) = wanted.parent
        && has_child_named(call, parent, name, own)?
    {
        complaints.add("name", TAKEN);
    }
    Ok(())
}

/// Whether another group directly below `parent` has this name.
pub(super) fn has_child_named(
    call: &Call<'_>,
    parent: &Namespace,
    name: &str,
    except: Option<&Namespace>,
) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM namespaces WHERE parent_id = ?1 AND name = ?2 AND id IS NOT ?3)";
    let except = except.map(|group| group.id);
    call.one(sql, params![parent.id, name, except])
}

fn check_path(call: &Call<'_>, wanted: NewGroup<'_>, shortest: usize, complaints: &mut Complaints) {
    let path = wanted.path;
    complaints.add_if(path.is_empty(), "path", BLANK);
    complaints.add_if(path.chars().count() > LONGEST, "path", TOO_LONG);
    complaints.add_if(call.release() >= OBSERVED && !is_plain_path(path), "path", PLAIN_PATH);
    let reserved = match wanted.parent {
        Some(_) => is_reserved(path),
        None => is_reserved_at_the_top(path),
    };
    let is_valid = is_path(path, &[".", ".git", ".atom"]);
    complaints.add_if(!is_valid, "path", PATH_FORM);
    complaints.add_if(is_valid && reserved, "path", format!("{path} is a reserved name"));
    let is_short = path.chars().count() < shortest;
    complaints.add_if(is_short, "path", format!("is too short (minimum is {shortest} characters)"));
}

/// The rules for the whole path of a group.
fn check_place(
    call: &Call<'_>,
    wanted: NewGroup<'_>,
    own: Option<&Namespace>,
    complaints: &mut Complaints,
) -> Result<()> {
    let above = wanted.parent.map_or(0, |parent| parent.full_path.chars().count() + 1);
    complaints.add_if(above + wanted.path.chars().count() > LONGEST, "path", TOO_LONG);
    if !wanted.path.is_empty() && is_taken(call, wanted.parent, wanted.path, own.map(|own| own.id))?
    {
        complaints.add("path", TAKEN);
    }
    Ok(())
}

/// Whether a group, project or user has the path below `parent`, ignoring case.
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
pub(super) fn rank(visibility: &str) -> usize {
    VISIBILITIES.iter().position(|known| *known == visibility).unwrap_or(0)
}

/// The complaint about a visibility that only administrators may use.
pub(super) fn restricted(visibility: &str) -> String {
    format!("{visibility} has been restricted by your GitLab administrator")
}

fn check_visibility(
    call: &Call<'_>,
    wanted: NewGroup<'_>,
    own: Option<&Namespace>,
    complaints: &mut Complaints,
) -> Result<()> {
    const FIELD: &str = "visibility_level";
    let word = wanted.visibility;
    if instance::is_restricted(call, word)? {
        complaints.add(FIELD, restricted(word));
        return Ok(());
    }
    if let Some(own) = own {
        let above = Value::from(&VISIBILITIES[rank(word) + 1..]).to_string();
        for (table, key, what) in [
            ("projects", "namespace_id", "this group contains projects with higher visibility"),
            ("namespaces", "parent_id", "there are sub-groups with higher visibility"),
        ] {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM {table} WHERE {key} = ?1
                     AND visibility IN (SELECT value FROM json_each(?2)))"
            );
            let is_below = call.one(&sql, params![own.id, above])?;
            complaints.add_if(is_below, FIELD, format!("{word} is not allowed since {what}."));
        }
    }
    if let Some(parent) = wanted.parent.filter(|parent| rank(word) > rank(&parent.visibility)) {
        let of_parent = &parent.visibility;
        let text =
            format!("{word} is not allowed since the parent group has a {of_parent} visibility.");
        complaints.add(FIELD, text);
    }
    Ok(())
}

/// Converts an object of complaints, as in PUT, to one text, as in POST, in the notation of the
/// service's own language.
pub(super) fn in_one_text(failure: Failure) -> Failure {
    let Some(Value::Object(fields)) = failure.body.get("message") else { return failure };
    let written = |texts: &Value| -> String {
        let texts: Vec<String> =
            texts.as_array().into_iter().flatten().map(Value::to_string).collect();
        texts.join(", ")
    };
    let symbol = |field: &str| match field.contains('.') {
        true => format!(":\"{field}\""),
        false => format!(":{field}"),
    };
    let fields: Vec<String> = fields
        .iter()
        .map(|(field, texts)| format!("{}=>[{}]", symbol(field), written(texts)))
        .collect();
    Failure::message(failure.status, format!("Failed to save group {{{}}}", fields.join(", ")))
}

/// The refusal of null as the path of a group.
pub(super) fn without_path() -> Failure {
    let mut complaints = Complaints::default();
    for text in [BLANK, PATH_FORM, "is too short (minimum is 1 character)", BLANK] {
        complaints.add("path", text);
    }
    complaints.settle().map_or_else(in_one_text, |()| Failure::invalid("path"))
}

/// Whether the caller may create subgroups, or top-level groups: owners may, and maintainers unless
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
