//! Settings of groups that affect everything below, or have rules of their own. The others are rows
//! of `attributes.jsonc`.

use std::fmt::Display;
use std::net::IpAddr;

use super::default_branches::{self, BRANCH, BRANCH_PROTECTION, DEFAULTS};
use super::names::is_blank;
use super::prelude::*;
use super::{avatars, group_runners, instance};

const PROJECT_CREATION: &str = "project_creation_level";
const TEMPLATES: &str = "file_template_project_id";
const ADDRESSES: &str = "ip_restriction_ranges";
const SHARE_LOCK: &str = "share_with_group_lock";
const GRACE: &str = "two_factor_grace_period";
const MINUTES: &str = "shared_runners_minutes_limit";
const DOMAINS: &str = "allowed_email_domains_list";
pub(super) const GIT_ACCESS: &str = "enabled_git_access_protocol";

/// Settings of later releases that show the effective value together with the groups above.
const NO_EMAILS: &str = "emails_disabled";
const DIFFS: &str = "show_diff_preview_in_email";
/// If unset, these take the value of the nearest group above that sets them.
const CASCADING: [&str; 2] = ["math_rendering_limits_enabled", "duo_features_enabled"];
/// A setting of a whole hierarchy, which only the top-level group can change.
const NO_FORKS: &str = "prevent_forking_outside_group";
const WATCHERS: &str = "unique_project_download_limit_alertlist";
const EXEMPT: &str = "unique_project_download_limit_allowlist";

/// Adds the settings of a group to an answer. Unset settings show the effective value.
pub(super) fn show(
    call: &Call<'_>,
    group: &Namespace,
    in_list: bool,
    body: &mut Value,
) -> Result<()> {
    let set = OF_GROUPS.set(call.db, group.id)?;
    let level = call.level_in_group(group)?;
    let is_seen = |row: &Attribute| {
        let is_shown = match row.audience {
            Audience::By(least) => level >= least,
            Audience::ByAdministrators => call.is_administrator(),
            _ => true,
        };
        is_shown
            && (group.parent_id.is_none() || !row.top_level_only)
            && (!in_list || row.is_in_lists())
    };
    for (name, value) in OF_GROUPS.shown(call, group.id, is_seen)? {
        let holds = match name.as_str() {
            BRANCH_PROTECTION if !set.contains_key(BRANCH_PROTECTION) => {
                instance::setting(call, BRANCH_PROTECTION)?
            }
            PROJECT_CREATION if !set.contains_key(PROJECT_CREATION) => {
                who_creates_projects(call)?.into()
            }
            DEFAULTS if value.is_null() || value == json!({}) => instance::setting(call, DEFAULTS)?,
            NO_EMAILS if call.is_from(16, 6) => call.is_set_above(group, NO_EMAILS, true)?.into(),
            ARCHIVED | NO_FORKS => call.is_set_above(group, &name, true)?.into(),
            DIFFS if call.is_set_above(group, DIFFS, false)? => false.into(),
            TEMPLATES => match visible_template(call, &value)? {
                Some(project) => project.into(),
                None => continue,
            },
            WATCHERS if value == json!([]) => owners(call, group)?.into(),
            cascading if CASCADING.contains(&cascading) && !set.contains_key(cascading) => {
                value_above(call, group, cascading)?.unwrap_or(value)
            }
            _ => value,
        };
        body[name] = holds;
    }
    if call.service.profile.runners_setting_shown {
        body[group_runners::SETTING] = group_runners::setting_word(call, group.id)?.into();
    }
    Ok(())
}

/// The project with templates, if it exists and the caller sees it.
fn visible_template(call: &Call<'_>, id: &Value) -> Result<Option<i64>> {
    let project = id.as_i64().map(|id| Project::by_id(call.db, id)).transpose()?.flatten();
    match project {
        Some(project) if call.sees(&project)? => Ok(Some(project.id)),
        _ => Ok(None),
    }
}

/// The ids of the direct owners of a group.
fn owners(call: &Call<'_>, group: &Namespace) -> Result<Vec<i64>> {
    let sql = "SELECT user_id FROM members WHERE group_id = ?1 AND access_level = ?2
               AND state = 'active' AND user_id IS NOT NULL ORDER BY user_id";
    call.many(sql, [group.id, OWNER])
}

/// The value of the nearest group above that sets one.
fn value_above(call: &Call<'_>, group: &Namespace, name: &str) -> Result<Option<Value>> {
    let settings = ids(&group.traversal).rev().map(|id| OF_GROUPS.set(call.db, id));
    let mut values = settings.map(|set| Ok(set?.remove(name)));
    values.find_map(Result::transpose).transpose()
}

/// Who creates projects in groups without the setting: a word here, a number in the settings of the
/// service.
fn who_creates_projects(call: &Call<'_>) -> Result<&'static str> {
    Ok(match instance::setting(call, "default_project_creation")?.as_i64() {
        Some(0) => "noone",
        Some(1) => "maintainer",
        _ => "developer",
    })
}

/// True if the caller may create projects in a namespace: in the own one, or in a group whose setting
/// allows it and that is not archived.
pub(super) fn may_create_projects(call: &Call<'_>, group: &Namespace) -> Result<bool> {
    if !group.is_group() {
        return Ok(call.level_in_group(group)? >= OWNER);
    }
    let setting = OF_GROUPS.set(call.db, group.id)?.remove(PROJECT_CREATION);
    let word = match setting.as_ref().and_then(Value::as_str) {
        Some(setting) => setting,
        None => who_creates_projects(call)?,
    };
    let min_level = match word {
        "noone" => return Ok(false),
        "administrator" if !call.is_administrator() => return Ok(false),
        "owner" | "administrator" => OWNER,
        "maintainer" => MAINTAINER,
        _ => DEVELOPER,
    };
    Ok(call.level_in_group(group)? >= min_level && !call.is_group_archived(group)?)
}

/// Refuses values of a wrong type before any other check.
pub(super) fn check_types(call: &Call<'_>, route: Accepts) -> Result<()> {
    OF_GROUPS.check(call, route)?;
    avatars::check_type(&call.params)?;
    call.params.one_of("visibility", VISIBILITIES)?;
    default_branches::sent_protection(call).map(drop)
}

/// Stores the settings and the avatar in a call; settings that the caller may not set are ignored.
pub(super) fn store_sent(call: &Call<'_>, group: &Namespace, route: Accepts) -> Result<()> {
    let licensed = call.tier() >= AttributeTier::Premium && route == Accepts::Edit;
    check_share_lock(call, group)?;
    if licensed {
        check_template(call)?;
        check_skipped(call, group)?;
    }
    let mut dropped = Vec::new();
    if group.parent_id.is_some() {
        dropped.push(NO_FORKS);
        dropped.extend(TABLE.groups.iter().filter(|row| row.top_level_only).map(|row| row.name));
    }
    let owners = instance::setting(call, "group_owners_can_manage_default_branch_protection")?;
    if call.tier() >= AttributeTier::Premium
        && !call.is_administrator()
        && owners == Value::Bool(false)
    {
        dropped.push(BRANCH_PROTECTION);
    }
    let was_locked = is_share_locked(call, group.id)?;
    OF_GROUPS.take(call, group.id, route, &dropped)?;
    if call.params.get(SHARE_LOCK).is_some() && call.params.flag(SHARE_LOCK)?.is_none() {
        OF_GROUPS.put(call.db, group.id, SHARE_LOCK, Value::Null)?;
    }
    default_branches::store(call, group.id, route, !dropped.contains(&BRANCH_PROTECTION))?;
    if licensed {
        take_addresses(call, group)?;
        take_domains(call, group)?;
        take_downloads(call, group)?;
        take_availability(call, group)?;
    }
    if route == Accepts::Edit {
        group_runners::apply_sent(call, group)?;
    }
    if !was_locked && is_share_locked(call, group.id)? {
        lock_shares(call, group)?;
    }
    avatars::store_sent(call, Holder::Group(group.id), &call.params)
}

/// The settings that a call unsets, so that the groups above decide. Only its own answer shows null
/// for them.
pub(super) fn unset(call: &Call<'_>, group: &Namespace) -> Result<Vec<&'static str>> {
    let set = OF_GROUPS.set(call.db, group.id)?;
    let mut unset = CASCADING.to_vec();
    unset.retain(|name| {
        OF_GROUPS.accepts(call, name, Accepts::Edit)
            && call.params.get(name).is_some_and(is_blank)
            && set.contains_key(*name)
    });
    Ok(unset)
}

/// Settings that cannot be null, with the texts of the complaint; from 18.9 on.
const REQUIRED: [(&str, &[&str]); 4] = [
    (GRACE, &["can't be blank", "is not a number"]),
    (GIT_ACCESS, &["is not included in the list"]),
    ("unique_project_download_limit", &["is not a number", "can't be blank"]),
    ("unique_project_download_limit_interval_in_seconds", &["is not a number", "can't be blank"]),
];

/// The field in complaints about a setting that is stored apart from the group.
fn field_apart(name: &str) -> String {
    format!("namespace_settings.{name}")
}

/// Refuses null where a setting needs a value, and values that the place of a group does not allow:
/// first for settings stored apart from the group, then for the rest.
pub(super) fn check(
    call: &Call<'_>,
    is_below: bool,
    route: Accepts,
    apart: bool,
    complaints: &mut Complaints,
) -> Result<()> {
    for (name, texts) in REQUIRED {
        let is_one = (name != GRACE) == apart && call.params.get(name).is_some_and(is_blank);
        if is_one && OF_GROUPS.accepts(call, name, route) {
            let field = if apart { field_apart(name) } else { name.to_owned() };
            texts.iter().for_each(|text| complaints.add(&field, *text));
        }
    }
    if apart {
        let experiments = "experiment_features_enabled";
        let is_on = is_below && call.release() >= OBSERVED && call.params.is_set(experiments)?;
        let text = "Experiment features' settings not allowed.";
        complaints.add_if(is_on, &field_apart(experiments), text);
        return Ok(());
    }
    let licensed = call.tier() >= AttributeTier::Premium && call.is_administrator();
    let has_minutes = is_below && licensed && call.params.integer(MINUTES)?.is_some();
    complaints.add_if(has_minutes, MINUTES, "is not supported for this namespace");
    let is_negative = call.params.integer(GRACE)?.is_some_and(|hours| hours < 0);
    complaints.add_if(is_negative, GRACE, "must be greater than or equal to 0");
    Ok(())
}

/// The project with templates must be visible to the caller.
fn check_template(call: &Call<'_>) -> Result<()> {
    let id = call.params.integer(TEMPLATES)?;
    let is_unknown = id.is_some() && visible_template(call, &id.into())?.is_none();
    refuse_if(is_unknown, || ErrorResponse::model(TEMPLATES, "is invalid"))
}

/// Counting skipped pipelines as success requires that pipelines must succeed.
fn check_skipped(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let (succeeds, skipped) =
        ("only_allow_merge_if_pipeline_succeeds", "allow_merge_on_skipped_pipeline");
    let must = match call.params.get(succeeds) {
        Some(_) => call.params.is_set(succeeds)?,
        None => OF_GROUPS.is_on(call.db, group.id, succeeds)?,
    };
    refuse_if(call.params.is_set(skipped)? && call.is_from(18, 7) && !must, || {
        ErrorResponse::bad_request(&format!(
            "{skipped} can only be enabled when {succeeds} is true"
        ))
    })
}

/// The IP addresses that may access a group: a text with commas. An empty one clears them, null
/// changes nothing.
fn take_addresses(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let Some(text) = call.params.text(ADDRESSES)? else { return Ok(()) };
    let ranges = items(&text);
    let only_top = "IP subnet restriction only allowed for top-level groups";
    let is_below = group.parent_id.is_some() && !ranges.is_empty();
    refuse_if(is_below, || ErrorResponse::model("ip_restrictions.base", only_top))?;
    let wrong = "is an invalid IP address range";
    let are_valid = ranges.iter().all(|range| is_range(range));
    refuse_if(!are_valid, || ErrorResponse::model("ip_restrictions.range", wrong))?;
    let joined_ranges = (!ranges.is_empty()).then(|| ranges.join(","));
    OF_GROUPS.put(call.db, group.id, ADDRESSES, joined_ranges)
}

/// Providers of e-mail addresses for everybody.
const PROVIDERS: &str = "gmail.com yahoo.com hotmail.com aol.com msn.com hotmail.co.uk hotmail.fr \
    live.com outlook.com icloud.com";

/// The allowed domains of members' e-mail addresses: a text with commas.
fn take_domains(call: &Call<'_>, group: &Namespace) -> Result<()> {
    if !call.is_from(17, 4) || !call.params.has(DOMAINS) {
        return Ok(());
    }
    let text = call.params.text(DOMAINS)?.unwrap_or_default();
    let domains = items(&text);
    if group.parent_id.is_some() && !domains.is_empty() {
        let text = "Allowed email domain restriction only permitted for top-level groups";
        return Err(ErrorResponse::model("allowed_email_domains.base", text));
    }
    let mut complaints = Complaints::default();
    let field = "allowed_email_domains.domain";
    for domain in &domains {
        let is_provider = PROVIDERS.split(' ').any(|provider| provider == *domain);
        complaints.add_if(is_provider, field, "The domain you entered is not allowed.");
        let is_odd = !domain.contains('.')
            || !domain.chars().all(|c: char| c.is_ascii_alphanumeric() || ".-".contains(c));
        complaints.add_if(is_odd, field, "The domain you entered is misformatted.");
    }
    complaints.settle()?;
    let joined_domains = (!domains.is_empty()).then(|| domains.join(","));
    OF_GROUPS.put(call.db, group.id, DOMAINS, joined_domains)
}

fn items(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// The users exempt from the limit of project downloads, and those who are notified.
fn take_downloads(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let is_there = OF_GROUPS.accepts(call, WATCHERS, Accepts::Edit);
    if group.parent_id.is_some() || !is_there {
        return Ok(());
    }
    let mut complaints = Complaints::default();
    let mut check = |field: &str, noun: &str, one: &dyn Display, user: Option<User>| {
        let text = format!("should be an array of existing {noun}. {one} does not exist");
        complaints.add_if(user.is_none(), &field_apart(field), text);
    };
    if let Some(names) = call.params.texts(EXEMPT)? {
        for name in &names {
            check(EXEMPT, "usernames", name, User::by_username(call.db, name)?);
        }
        OF_GROUPS.put(call.db, group.id, EXEMPT, names)?;
    }
    if let Some(ids) = call.params.integers(WATCHERS)? {
        for id in &ids {
            check(WATCHERS, "user ids", id, User::by_id(call.db, *id)?);
        }
        OF_GROUPS.put(call.db, group.id, WATCHERS, ids)?;
    }
    complaints.settle()
}

/// Stores the two flags that a word sets.
fn take_availability(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let (on, locked) = match call.params.text("duo_availability")?.as_deref() {
        Some("default_on") => (true, false),
        Some("default_off") => (false, false),
        Some("never_on") => (false, true),
        _ => return Ok(()),
    };
    OF_GROUPS.put(call.db, group.id, CASCADING[1], on)?;
    OF_GROUPS.put(call.db, group.id, "lock_duo_features_enabled", locked)
}

/// True if a text is an IP address, or one with a prefix length.
fn is_range(text: &str) -> bool {
    let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
    let longest = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    prefix.is_none_or(|prefix| prefix.parse().is_ok_and(|length: u32| length <= longest))
}

/// True if projects of a group cannot be shared with groups.
pub(super) fn is_share_locked(call: &Call<'_>, group: i64) -> Result<bool> {
    OF_GROUPS.is_on(call.db, group, SHARE_LOCK)
}

/// Locks a group and all below it.
fn lock_shares(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let group_ids = group.subtree(call.db)?;
    group_ids.into_iter().try_for_each(|id| OF_GROUPS.put(call.db, id, SHARE_LOCK, true))
}

/// Below a locked group only the owners of that one can unlock.
fn check_share_lock(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let unlocks = call.params.flag(SHARE_LOCK)? == Some(false) && is_share_locked(call, group.id)?;
    match Namespace::by_any(call.db, group.parent_id.filter(|_| unlocks))? {
        Some(parent)
            if is_share_locked(call, parent.id)? && call.level_in_group(&parent)? < OWNER =>
        {
            let text = "cannot be disabled when the parent group \"Share with group lock\" is enabled, \
                        except by the owner of the parent group";
            Err(ErrorResponse::model(SHARE_LOCK, text))
        }
        _ => Ok(()),
    }
}

/// The settings that a subgroup takes from its new parent: the lock, and the runners.
pub(super) fn inherit(
    call: &Call<'_>,
    group: &Namespace,
    parent: Option<&Namespace>,
) -> Result<()> {
    let Some(parent) = parent else { return Ok(()) };
    if is_share_locked(call, parent.id)? {
        lock_shares(call, group)?;
    }
    group_runners::inherit(call, group, parent)
}

/// The attributes that a project takes from its groups while it does not set them.
pub(crate) const INHERITED: [&str; 2] = ["lfs_enabled", "auto_devops_enabled"];

/// Adds to the attributes of a project those of its groups, and the future default branch of an
/// empty one.
pub(crate) fn add_inherited(
    call: &Call<'_>,
    project: &Project,
    attributes: &mut Map<String, Value>,
) -> Result<()> {
    let group = &project.namespace;
    let [lfs, devops] = INHERITED;
    if attributes.get(lfs).is_none_or(Value::is_null) {
        let is_enabled = !group.is_group() || OF_GROUPS.is_on(call.db, group.id, lfs)?;
        attributes.insert(lfs.to_owned(), is_enabled.into());
    }
    if attributes.get(devops).is_none_or(Value::is_null) {
        let inherited_value = value_above(call, group, devops)?.filter(|value| !value.is_null());
        attributes.insert(devops.to_owned(), inherited_value.unwrap_or_else(|| true.into()));
    }
    if group.is_group() && call.is_set_above(group, DIFFS, false)? {
        attributes.insert(DIFFS.to_owned(), false.into());
    }
    if project.empty_repo {
        attributes.insert(BRANCH.to_owned(), default_branches::preferred_name(call, group)?);
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
