//! Settings of groups: those that reach what is below, and those that have rules of their own.

use std::net::IpAddr;

use rusqlite::params;
use serde_json::{Value, json};

use super::super::access::{DEVELOPER, MAINTAINER, OWNER, ids};
use super::super::answer::Failure;
use super::super::attributes::{Route as Accepts, Tier};
use super::super::call::Call;
use super::super::kept::{OF_GROUPS, Taking};
use super::super::store::holder::Holder;
use super::super::store::namespace::Namespace;
use super::super::store::project::Project;
use super::{avatars, instance};

pub(super) const BRANCH_PROTECTION: &str = "default_branch_protection";
const PROJECT_CREATION: &str = "project_creation_level";
const TEMPLATES: &str = "file_template_project_id";
const ADDRESSES: &str = "ip_restriction_ranges";
const SHARE_LOCK: &str = "share_with_group_lock";
const RUNNERS: &str = "shared_runners_setting";
pub(super) const GIT_ACCESS: &str = "enabled_git_access_protocol";
/// Settings of whole hierarchies, which only the group at the top can change.
const OF_HIERARCHIES: [&str; 2] = ["prevent_sharing_groups_outside_hierarchy", NO_FORKS];

/// Settings of later releases that show what holds together with the groups above.
const NO_EMAILS: &str = "emails_disabled";
const DIFFS: &str = "show_diff_preview_in_email";
/// What these do not say themselves, the next group above that does says.
const CASCADING: [&str; 2] = ["math_rendering_limits_enabled", "duo_features_enabled"];
const NO_FORKS: &str = "prevent_forking_outside_group";
const DEFAULTS: &str = "default_branch_protection_defaults";
const WATCHERS: &str = "unique_project_download_limit_alertlist";
/// Settings that only the group at the top shows.
const OF_TOPS: [&str; 9] = [
    OF_HIERARCHIES[0],
    GIT_ACCESS,
    "duo_namespace_access_rules",
    "service_access_tokens_expiration_enforced",
    "unique_project_download_limit",
    "unique_project_download_limit_interval_in_seconds",
    "unique_project_download_limit_allowlist",
    WATCHERS,
    "auto_ban_user_on_excessive_projects_download",
];
/// What only owners are shown.
const OF_OWNERS: [&str; 10] = [
    GIT_ACCESS,
    "duo_core_features_enabled",
    "duo_features_enabled",
    "lock_duo_features_enabled",
    "duo_namespace_access_rules",
    "unique_project_download_limit",
    "unique_project_download_limit_interval_in_seconds",
    "unique_project_download_limit_allowlist",
    WATCHERS,
    "auto_ban_user_on_excessive_projects_download",
];
/// What only administrators are shown.
const STORAGE: &str = "repository_storage";

/// Adds what a group has to an answer. Unset settings show what holds instead.
pub(super) fn show(
    call: &Call<'_>,
    group: &Namespace,
    in_list: bool,
    body: &mut Value,
) -> Result<(), Failure> {
    let set = OF_GROUPS.set(call.db, group.id)?;
    let owner = call.level_in_group(group)? >= OWNER;
    let is_hidden = |name: &str| {
        (group.parent_id.is_some() && OF_TOPS.contains(&name))
            || (!owner && OF_OWNERS.contains(&name))
            || (name == STORAGE && !call.is_administrator())
    };
    for (name, value) in OF_GROUPS.shown(call.db, group.id, call.edition(), in_list)? {
        if is_hidden(&name) {
            continue;
        }
        let holds = match name.as_str() {
            BRANCH_PROTECTION if !set.contains_key(BRANCH_PROTECTION) => {
                instance::setting(call.db, BRANCH_PROTECTION)?
            }
            PROJECT_CREATION if !set.contains_key(PROJECT_CREATION) => {
                who_creates_projects(call)?.into()
            }
            DEFAULTS if value.is_null() => branch_defaults(),
            NO_EMAILS if call.is_from(16, 6) => is_set_above(call, group, NO_EMAILS, true)?.into(),
            "archived" | NO_FORKS => is_set_above(call, group, &name, true)?.into(),
            DIFFS if is_set_above(call, group, DIFFS, false)? => false.into(),
            TEMPLATES => match template(call, &value)? {
                Some(project) => project.into(),
                None => continue,
            },
            WATCHERS if value == json!([]) => owners(call, group)?.into(),
            cascading if CASCADING.contains(&cascading) && !set.contains_key(cascading) => {
                said_above(call, group, cascading)?.unwrap_or(value)
            }
            _ => value,
        };
        body[name] = holds;
    }
    if call.service.profile.runners_setting_shown {
        body[RUNNERS] = runners(call, group.id)?.into();
    }
    Ok(())
}

/// How the default branches of new projects are protected where nobody says so.
fn branch_defaults() -> Value {
    let maintainers = json!([{ "access_level": MAINTAINER }]);
    json!({
        "allowed_to_push": maintainers, "allow_force_push": false, "allowed_to_merge": maintainers,
        "developer_can_initial_push": false,
    })
}

/// The project with templates, if there is one that the caller sees.
fn template(call: &Call<'_>, id: &Value) -> Result<Option<i64>, Failure> {
    let project = match id.as_i64() {
        Some(id) => Project::by_id(call.db, id)?,
        None => None,
    };
    match project {
        Some(project) if call.sees(&project)? => Ok(Some(project.id)),
        _ => Ok(None),
    }
}

/// The ids of the direct owners of a group.
fn owners(call: &Call<'_>, group: &Namespace) -> Result<Vec<i64>, Failure> {
    let sql = "SELECT user_id FROM members WHERE group_id = ?1 AND access_level = ?2
               AND state = 'active' AND user_id IS NOT NULL ORDER BY user_id";
    let mut statement = call.db.prepare_cached(sql)?;
    let ids = statement.query_map([group.id, OWNER], |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// What the next group above one says that says something.
fn said_above(call: &Call<'_>, group: &Namespace, name: &str) -> Result<Option<Value>, Failure> {
    let mut above: Vec<i64> = ids(&group.traversal).collect();
    above.reverse();
    for id in above {
        if let Some(value) = OF_GROUPS.set(call.db, id)?.remove(name) {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// Whether a group, or one above it, says so.
pub(crate) fn is_set_above(
    call: &Call<'_>,
    group: &Namespace,
    name: &str,
    value: bool,
) -> Result<bool, Failure> {
    let above: Vec<i64> = ids(&group.traversal).collect();
    let sql =
        "SELECT EXISTS (SELECT 1 FROM namespaces WHERE id IN (SELECT value FROM json_each(?1))
                              AND json_extract(settings, '$.' || ?2) = ?3)";
    let mut statement = call.db.prepare_cached(sql)?;
    Ok(statement.query_row(params![json!(above).to_string(), name, value], |row| row.get(0))?)
}

/// Who creates projects in groups that do not say so: a word here, a number in the settings of the
/// service.
fn who_creates_projects(call: &Call<'_>) -> Result<&'static str, Failure> {
    Ok(match instance::setting(call.db, "default_project_creation")?.as_i64() {
        Some(0) => "noone",
        Some(1) => "maintainer",
        _ => "developer",
    })
}

/// The level that it takes to create projects in a group; none where nobody may.
pub(super) fn creators_of_projects(
    call: &Call<'_>,
    group: &Namespace,
) -> Result<Option<i64>, Failure> {
    let own = OF_GROUPS.set(call.db, group.id)?.remove(PROJECT_CREATION);
    let word = match own.as_ref().and_then(Value::as_str) {
        Some(own) => own,
        None => who_creates_projects(call)?,
    };
    Ok(match word {
        "noone" => None,
        "maintainer" => Some(MAINTAINER),
        _ => Some(DEVELOPER),
    })
}

/// Keeps the settings and the picture that a call has; what the caller may not set is dropped.
pub(super) fn take(call: &Call<'_>, group: &Namespace, route: Accepts) -> Result<(), Failure> {
    check_share_lock(call, group)?;
    let mut dropped = Vec::new();
    if group.parent_id.is_some() {
        dropped.extend(OF_HIERARCHIES);
        dropped.extend(OF_TOPS);
    }
    if call.tier() >= Tier::Premium && !call.is_administrator() {
        let owners =
            instance::setting(call.db, "group_owners_can_manage_default_branch_protection")?;
        dropped.extend((owners == Value::Bool(false)).then_some(BRANCH_PROTECTION));
    }
    let licensed = call.tier() >= Tier::Premium && route == Accepts::Edit;
    if licensed && let Some(id) = call.params.integer(TEMPLATES)? {
        let project = Project::by_id(call.db, id)?;
        if !project.is_some_and(|project| call.sees(&project).unwrap_or(false)) {
            return Err(Failure::model(TEMPLATES, "is invalid"));
        }
    }
    check_skipped(call, group)?;
    let was_locked = is_share_locked(call, group.id)?;
    let how = Taking {
        route,
        edition: call.edition(),
        administrator: call.is_administrator(),
        dropped: &dropped,
    };
    OF_GROUPS.take(call.db, group.id, how, &call.params)?;
    if licensed {
        take_addresses(call, group)?;
    }
    if route == Accepts::Edit {
        take_runners(call, group)?;
    }
    if !was_locked && is_share_locked(call, group.id)? {
        lock_shares(call, group)?;
    }
    avatars::take(call, Holder::Group(group.id), &call.params).map(drop)
}

/// That a skipped pipeline counts says something only where pipelines have to succeed.
fn check_skipped(call: &Call<'_>, group: &Namespace) -> Result<(), Failure> {
    let succeeds = "only_allow_merge_if_pipeline_succeeds";
    let skipped = "allow_merge_on_skipped_pipeline";
    let must = match call.params.flag(succeeds)? {
        Some(sent) => sent,
        None => OF_GROUPS.is_on(call.db, group.id, succeeds)?,
    };
    match call.params.flag(skipped)? {
        Some(true) if call.is_from(18, 7) && !must => {
            Err(Failure::model(skipped, format!("requires {succeeds}")))
        }
        _ => Ok(()),
    }
}

/// The addresses from which a group can be reached: a text with commas. A blank one clears them,
/// null leaves them.
fn take_addresses(call: &Call<'_>, group: &Namespace) -> Result<(), Failure> {
    let Some(text) = call.params.text(ADDRESSES)? else { return Ok(()) };
    let ranges: Vec<&str> =
        text.split(',').map(str::trim).filter(|range| !range.is_empty()).collect();
    if group.parent_id.is_some() && !ranges.is_empty() {
        let text = "IP subnet restriction only allowed for top-level groups";
        return Err(Failure::model("ip_restrictions.base", text));
    }
    if !ranges.iter().all(|range| is_range(range)) {
        return Err(Failure::model("ip_restrictions.range", "is an invalid IP address range"));
    }
    let kept = if ranges.is_empty() { Value::Null } else { ranges.join(",").into() };
    OF_GROUPS.put(call.db, group.id, ADDRESSES, kept)
}

/// Whether a text is an address, or one with the length of its prefix.
fn is_range(text: &str) -> bool {
    let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
    let longest = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    prefix.is_none_or(|prefix| prefix.parse().is_ok_and(|length: u32| length <= longest))
}

/// Whether projects of a group cannot be shared with groups.
pub(super) fn is_share_locked(call: &Call<'_>, group: i64) -> Result<bool, Failure> {
    OF_GROUPS.is_on(call.db, group, SHARE_LOCK)
}

/// Locks a group and all below it.
fn lock_shares(call: &Call<'_>, group: &Namespace) -> Result<(), Failure> {
    let all = group.subtree(call.db)?;
    all.into_iter().try_for_each(|id| OF_GROUPS.put(call.db, id, SHARE_LOCK, true))
}

/// Below a locked group only the owners of that one can unlock.
fn check_share_lock(call: &Call<'_>, group: &Namespace) -> Result<(), Failure> {
    let unlocks = call.params.flag(SHARE_LOCK)? == Some(false) && is_share_locked(call, group.id)?;
    let parent = match group.parent_id {
        Some(id) if unlocks => Namespace::by_id(call.db, id)?,
        _ => None,
    };
    match parent {
        Some(parent)
            if is_share_locked(call, parent.id)? && call.level_in_group(&parent)? < OWNER =>
        {
            let text = "cannot be disabled when the parent group \"Share with group lock\" is enabled, \
                        except by the owner of the parent group";
            Err(Failure::model(SHARE_LOCK, text))
        }
        _ => Ok(()),
    }
}

/// What a group gets that comes below another: its lock, and its runners.
pub(super) fn inherit(
    call: &Call<'_>,
    group: &Namespace,
    parent: Option<&Namespace>,
) -> Result<(), Failure> {
    let Some(parent) = parent else { return Ok(()) };
    if is_share_locked(call, parent.id)? {
        lock_shares(call, group)?;
    }
    let (own, above) = (runners(call, group.id)?, runners(call, parent.id)?);
    match strictness(&above) > strictness(&own) {
        true => spread_runners(call, group, &above),
        false => Ok(()),
    }
}

/// How much a value of the runners' setting forbids.
fn strictness(runners: &str) -> usize {
    [ENABLED, DISABLED, FORBIDDEN].iter().position(|known| *known == runners).unwrap_or(0)
}

const ENABLED: &str = "enabled";
const FORBIDDEN: &str = "disabled_and_unoverridable";
const DISABLED: &str = "disabled_and_overridable";

/// Whether the shared runners are for a group; the old name of a value counts as the new one.
fn runners(call: &Call<'_>, group: i64) -> Result<String, Failure> {
    let set = OF_GROUPS.set(call.db, group)?;
    Ok(match set.get(RUNNERS).and_then(Value::as_str) {
        None => ENABLED,
        Some("disabled_with_override") => DISABLED,
        Some(word) => word,
    }
    .to_owned())
}

/// Carries a change of the runners out on everything below.
fn take_runners(call: &Call<'_>, group: &Namespace) -> Result<(), Failure> {
    if call.params.text(RUNNERS)?.is_none() {
        return Ok(());
    }
    let wanted = runners(call, group.id)?;
    if let Some(parent) = group.parent_id
        && wanted == ENABLED
        && runners(call, parent)? == FORBIDDEN
    {
        let text = "Validation failed: Shared runners enabled cannot be enabled because parent group has \
                    shared Runners disabled";
        return Err(Failure::model("update_shared_runners", text));
    }
    spread_runners(call, group, &wanted)
}

/// Sets the runners of a group, and of all groups and projects below it.
fn spread_runners(call: &Call<'_>, group: &Namespace, wanted: &str) -> Result<(), Failure> {
    let below = if wanted == ENABLED { ENABLED } else { FORBIDDEN };
    let all = group.subtree(call.db)?;
    for id in &all {
        let own = if *id == group.id { wanted } else { below };
        OF_GROUPS.put(call.db, *id, RUNNERS, own)?;
    }
    let projects: Vec<i64> = call
        .db
        .prepare_cached(
            "SELECT id FROM projects WHERE namespace_id IN (SELECT value FROM json_each(?1))",
        )?
        .query_map([json!(all).to_string()], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for id in projects {
        let Some(project) = Project::by_id(call.db, id)? else { continue };
        let mut attributes = project.attributes(call.db)?;
        attributes.insert("shared_runners_enabled".to_owned(), (wanted == ENABLED).into());
        project.save_attributes(call.db, &attributes, call.now())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_have_a_prefix() {
        for (text, good) in [
            ("192.168.0.0/24", true),
            ("10.0.0.1", true),
            ("2001:db8::/32", true),
            ("10.0.0.0/33", false),
            ("10.0.0", false),
            ("10.0.0.1/", false),
            ("somewhere", false),
        ] {
            assert_eq!(is_range(text), good, "{text}");
        }
    }
}
