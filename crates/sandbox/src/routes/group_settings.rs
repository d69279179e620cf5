//! Settings of groups that affect everything below, or have rules of their own. The others are rows
//! of `attributes.jsonc`.

use std::fmt::Display;
use std::net::IpAddr;

use super::default_branches::{self, BRANCH_PROTECTION, DEFAULT_BRANCH, PROTECTION_DEFAULTS};
use super::names::is_blank;
use super::prelude::*;
use super::{avatars, group_runners, instance};

const PROJECT_CREATION: &str = "project_creation_level";
const TEMPLATE_PROJECT: &str = "file_template_project_id";
const IP_RANGES: &str = "ip_restriction_ranges";
const SHARE_LOCK: &str = "share_with_group_lock";
const GRACE_PERIOD: &str = "two_factor_grace_period";
const MINUTES_LIMIT: &str = "shared_runners_minutes_limit";
const EMAIL_DOMAINS: &str = "allowed_email_domains_list";
pub(super) const GIT_ACCESS: &str = "enabled_git_access_protocol";

/// Settings of later releases; their shown value takes the groups above into account.
const NO_EMAILS: &str = "emails_disabled";
const DIFF_PREVIEWS: &str = "show_diff_preview_in_email";
/// If unset, these take the value of the nearest group above that sets them.
const CASCADING_SETTINGS: [&str; 2] = ["math_rendering_limits_enabled", "duo_features_enabled"];
/// A setting of a whole hierarchy, which only the top-level group can change.
const NO_FORKS: &str = "prevent_forking_outside_group";
const WATCHERS: &str = "unique_project_download_limit_alertlist";
const EXEMPT_USERS: &str = "unique_project_download_limit_allowlist";

/// Adds the settings of a group to an answer. Unset settings show the effective value.
pub(super) fn show(
    call: &Call<'_>,
    group: &Namespace,
    in_list: bool,
    body: &mut Value,
) -> Result<()> {
    let settings = GROUP_SETTINGS.stored_values(call.db, group.id)?;
    let level = call.level_in_group(group)?;
    for (name, value) in GROUP_SETTINGS.visible_values(call, group.id, |row: &Attribute| {
        let is_shown = match row.audience {
            Audience::By(least) => level >= least,
            Audience::ByAdministrators => call.is_administrator(),
            _ => true,
        };
        is_shown
            && (group.parent_id.is_none() || !row.top_level_only)
            && (!in_list || row.is_in_lists())
    })? {
        let shown_value = match name.as_str() {
            BRANCH_PROTECTION if !settings.contains_key(BRANCH_PROTECTION) => {
                instance::read_setting(call, BRANCH_PROTECTION)?
            }
            PROJECT_CREATION if !settings.contains_key(PROJECT_CREATION) => {
                default_project_creation(call)?.into()
            }
            PROTECTION_DEFAULTS if value.is_null() || value == json!({}) => {
                instance::read_setting(call, PROTECTION_DEFAULTS)?
            }
            NO_EMAILS if call.is_at_least(16, 6) => {
                call.is_set_in_hierarchy(group, NO_EMAILS, true)?.into()
            }
            ARCHIVED | NO_FORKS => call.is_set_in_hierarchy(group, &name, true)?.into(),
            DIFF_PREVIEWS if call.is_set_in_hierarchy(group, DIFF_PREVIEWS, false)? => false.into(),
            TEMPLATE_PROJECT => match visible_template(call, &value)? {
                Some(project) => project.into(),
                None => continue,
            },
            WATCHERS if value == json!([]) => owners(call, group)?.into(),
            cascading
                if CASCADING_SETTINGS.contains(&cascading) && !settings.contains_key(cascading) =>
            {
                inherited_value(call, group, cascading)?.unwrap_or(value)
            }
            _ => value,
        };
        body[name] = shown_value;
    }
    if call.service.profile.runners_setting_shown {
        body[group_runners::RUNNERS_SETTING] = group_runners::setting_word(call, group.id)?.into();
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
    call.query_column(sql, [group.id, OWNER])
}

/// The value of the nearest group above that sets one.
fn inherited_value(call: &Call<'_>, group: &Namespace, name: &str) -> Result<Option<Value>> {
    let settings =
        traversal_ids(&group.traversal).rev().map(|id| GROUP_SETTINGS.stored_values(call.db, id));
    let mut values = settings.map(|set| Ok(set?.remove(name)));
    values.find_map(Result::transpose).transpose()
}

/// The role that creates projects in groups without the setting. It is a word here, and a number in
/// the settings of the service.
fn default_project_creation(call: &Call<'_>) -> Result<&'static str> {
    Ok(match instance::read_setting(call, "default_project_creation")?.as_i64() {
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
    let setting = GROUP_SETTINGS.stored_values(call.db, group.id)?.remove(PROJECT_CREATION);
    let word = match setting.as_ref().and_then(Value::as_str) {
        Some(setting) => setting,
        None => default_project_creation(call)?,
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
    GROUP_SETTINGS.check(call, route)?;
    avatars::check_type(&call.params)?;
    call.params.allowed_text("visibility", VISIBILITIES)?;
    default_branches::sent_protection(call).map(drop)
}

/// Stores the settings and the avatar in a call; settings that the caller may not set are ignored.
pub(super) fn store_settings(call: &Call<'_>, group: &Namespace, route: Accepts) -> Result<()> {
    let is_licensed = call.tier() >= AttributeTier::Premium && route == Accepts::Edit;
    check_share_lock(call, group)?;
    if is_licensed {
        check_template(call)?;
        check_skipped(call, group)?;
    }
    let mut ignored_names = Vec::new();
    if group.parent_id.is_some() {
        ignored_names.push(NO_FORKS);
        ignored_names.extend(
            ATTRIBUTE_TABLE.groups.iter().filter(|row| row.top_level_only).map(|row| row.name),
        );
    }
    let owners = instance::read_setting(call, "group_owners_can_manage_default_branch_protection")?;
    if call.tier() >= AttributeTier::Premium
        && !call.is_administrator()
        && owners == Value::Bool(false)
    {
        ignored_names.push(BRANCH_PROTECTION);
    }
    let was_locked = is_share_locked(call, group.id)?;
    GROUP_SETTINGS.store_params(call, group.id, route, &ignored_names)?;
    if call.params.get(SHARE_LOCK).is_some() && call.params.flag(SHARE_LOCK)?.is_none() {
        GROUP_SETTINGS.put_value(call.db, group.id, SHARE_LOCK, Value::Null)?;
    }
    default_branches::store_defaults(
        call,
        group.id,
        route,
        !ignored_names.contains(&BRANCH_PROTECTION),
    )?;
    if is_licensed {
        store_ip_ranges(call, group)?;
        store_email_domains(call, group)?;
        store_download_limits(call, group)?;
        store_availability(call, group)?;
    }
    if route == Accepts::Edit {
        group_runners::apply_sent_setting(call, group)?;
    }
    if !was_locked && is_share_locked(call, group.id)? {
        lock_shares(call, group)?;
    }
    avatars::store_avatar(call, Holder::Group(group.id), &call.params)
}

/// The settings that a call unsets, so that the groups above decide. Only its own answer shows null
/// for them.
pub(super) fn unset_settings(call: &Call<'_>, group: &Namespace) -> Result<Vec<&'static str>> {
    let set = GROUP_SETTINGS.stored_values(call.db, group.id)?;
    let mut unset = CASCADING_SETTINGS.to_vec();
    unset.retain(|name| {
        GROUP_SETTINGS.accepts(call, name, Accepts::Edit)
            && call.params.get(name).is_some_and(is_blank)
            && set.contains_key(*name)
    });
    Ok(unset)
}

/// Settings that cannot be null, with the texts of the complaint; from 18.9 on.
const REQUIRED: [(&str, &[&str]); 4] = [
    (GRACE_PERIOD, &["can't be blank", "is not a number"]),
    (GIT_ACCESS, &["is not included in the list"]),
    ("unique_project_download_limit", &["is not a number", "can't be blank"]),
    ("unique_project_download_limit_interval_in_seconds", &["is not a number", "can't be blank"]),
];

/// The field in complaints about a setting that is stored apart from the group.
fn complaint_field(name: &str) -> String {
    format!("namespace_settings.{name}")
}

/// Refuses null where a setting needs a value, and values that the place of a group does not allow:
/// first for settings stored apart from the group, then for the rest.
pub(super) fn check(
    call: &Call<'_>,
    is_below: bool,
    route: Accepts,
    is_stored_apart: bool,
    complaints: &mut Complaints,
) -> Result<()> {
    for (name, texts) in REQUIRED {
        let is_blank_required = (name != GRACE_PERIOD) == is_stored_apart
            && call.params.get(name).is_some_and(is_blank);
        if is_blank_required && GROUP_SETTINGS.accepts(call, name, route) {
            let field = if is_stored_apart { complaint_field(name) } else { name.to_owned() };
            texts.iter().for_each(|text| complaints.add(&field, *text));
        }
    }
    if is_stored_apart {
        let experiments = "experiment_features_enabled";
        let is_on =
            is_below && call.release() >= OBSERVED_RELEASE && call.params.is_set(experiments)?;
        let text = "Experiment features' settings not allowed.";
        complaints.add_if(is_on, &complaint_field(experiments), text);
        return Ok(());
    }
    let licensed = call.tier() >= AttributeTier::Premium && call.is_administrator();
    let has_minutes = is_below && licensed && call.params.integer(MINUTES_LIMIT)?.is_some();
    complaints.add_if(has_minutes, MINUTES_LIMIT, "is not supported for this namespace");
    let is_negative = call.params.integer(GRACE_PERIOD)?.is_some_and(|hours| hours < 0);
    complaints.add_if(is_negative, GRACE_PERIOD, "must be greater than or equal to 0");
    Ok(())
}

/// The project with templates must be visible to the caller.
fn check_template(call: &Call<'_>) -> Result<()> {
    let id = call.params.integer(TEMPLATE_PROJECT)?;
    let is_unknown = id.is_some() && visible_template(call, &id.into())?.is_none();
    refuse_if(is_unknown, || ErrorResponse::model(TEMPLATE_PROJECT, "is invalid"))
}

/// Counting skipped pipelines as success requires that pipelines must succeed.
fn check_skipped(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let (succeeds, skipped) =
        ("only_allow_merge_if_pipeline_succeeds", "allow_merge_on_skipped_pipeline");
    let must_succeed = match call.params.get(succeeds) {
        Some(_) => call.params.is_set(succeeds)?,
        None => GROUP_SETTINGS.is_on(call.db, group.id, succeeds)?,
    };
    refuse_if(call.params.is_set(skipped)? && call.is_at_least(18, 7) && !must_succeed, || {
        ErrorResponse::bad_request(&format!(
            "{skipped} can only be enabled when {succeeds} is true"
        ))
    })
}

/// The IP addresses that may access a group: a text with commas. An empty one clears them, null
/// changes nothing.
fn store_ip_ranges(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let Some(text) = call.params.text(IP_RANGES)? else { return Ok(()) };
    let ranges = items(&text);
    let only_top = "IP subnet restriction only allowed for top-level groups";
    let is_below = group.parent_id.is_some() && !ranges.is_empty();
    refuse_if(is_below, || ErrorResponse::model("ip_restrictions.base", only_top))?;
    let range_text = "is an invalid IP address range";
    let are_valid = ranges.iter().all(|range| is_range(range));
    refuse_if(!are_valid, || ErrorResponse::model("ip_restrictions.range", range_text))?;
    let joined_ranges = (!ranges.is_empty()).then(|| ranges.join(","));
    GROUP_SETTINGS.put_value(call.db, group.id, IP_RANGES, joined_ranges)
}

/// Public e-mail providers, whose domains cannot be allowed.
const PROVIDERS: &str = "gmail.com yahoo.com hotmail.com aol.com msn.com hotmail.co.uk hotmail.fr \
    live.com outlook.com icloud.com";

/// The allowed domains of members' e-mail addresses: a text with commas.
fn store_email_domains(call: &Call<'_>, group: &Namespace) -> Result<()> {
    if !call.is_at_least(17, 4) || !call.params.has(EMAIL_DOMAINS) {
        return Ok(());
    }
    let text = call.params.text(EMAIL_DOMAINS)?.unwrap_or_default();
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
    complaints.into_result()?;
    let joined_domains = (!domains.is_empty()).then(|| domains.join(","));
    GROUP_SETTINGS.put_value(call.db, group.id, EMAIL_DOMAINS, joined_domains)
}

fn items(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// The users exempt from the limit of project downloads, and those who are notified.
fn store_download_limits(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let accepts_watchers = GROUP_SETTINGS.accepts(call, WATCHERS, Accepts::Edit);
    if group.parent_id.is_some() || !accepts_watchers {
        return Ok(());
    }
    let mut complaints = Complaints::default();
    let mut check = |field: &str, noun: &str, one: &dyn Display, user: Option<User>| {
        let text = format!("should be an array of existing {noun}. {one} does not exist");
        complaints.add_if(user.is_none(), &complaint_field(field), text);
    };
    if let Some(names) = call.params.texts(EXEMPT_USERS)? {
        for name in &names {
            check(EXEMPT_USERS, "usernames", name, User::by_username(call.db, name)?);
        }
        GROUP_SETTINGS.put_value(call.db, group.id, EXEMPT_USERS, names)?;
    }
    if let Some(ids) = call.params.integers(WATCHERS)? {
        for id in &ids {
            check(WATCHERS, "user ids", id, User::by_id(call.db, *id)?);
        }
        GROUP_SETTINGS.put_value(call.db, group.id, WATCHERS, ids)?;
    }
    complaints.into_result()
}

/// Stores the two flags that a word sets.
fn store_availability(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let (on, locked) = match call.params.text("duo_availability")?.as_deref() {
        Some("default_on") => (true, false),
        Some("default_off") => (false, false),
        Some("never_on") => (false, true),
        _ => return Ok(()),
    };
    GROUP_SETTINGS.put_value(call.db, group.id, CASCADING_SETTINGS[1], on)?;
    GROUP_SETTINGS.put_value(call.db, group.id, "lock_duo_features_enabled", locked)
}

/// True if a text is an IP address, or one with a prefix length.
fn is_range(text: &str) -> bool {
    let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
    let max_prefix = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    prefix.is_none_or(|prefix| prefix.parse().is_ok_and(|length: u32| length <= max_prefix))
}

/// True if projects of a group cannot be shared with groups.
pub(super) fn is_share_locked(call: &Call<'_>, group: i64) -> Result<bool> {
    GROUP_SETTINGS.is_on(call.db, group, SHARE_LOCK)
}

/// Locks a group and all groups below it: their projects cannot be shared with groups.
fn lock_shares(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let group_ids = group.subtree_ids(call.db)?;
    group_ids.into_iter().try_for_each(|id| GROUP_SETTINGS.put_value(call.db, id, SHARE_LOCK, true))
}

/// Below a locked group only the owners of that one can unlock.
fn check_share_lock(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let is_unlock =
        call.params.flag(SHARE_LOCK)? == Some(false) && is_share_locked(call, group.id)?;
    match Namespace::by_any(call.db, group.parent_id.filter(|_| is_unlock))? {
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
    group_runners::inherit_setting(call, group, parent)
}

/// The attributes that a project takes from its groups while it does not set them.
pub(crate) const INHERITED_ATTRIBUTES: [&str; 2] = ["lfs_enabled", "auto_devops_enabled"];

/// Adds to the attributes of a project those of its groups, and the future default branch of an
/// empty one.
pub(crate) fn add_inherited_attributes(
    call: &Call<'_>,
    project: &Project,
    attributes: &mut Map<String, Value>,
) -> Result<()> {
    let group = &project.namespace;
    let [lfs, devops] = INHERITED_ATTRIBUTES;
    if attributes.get(lfs).is_none_or(Value::is_null) {
        let is_enabled = !group.is_group() || GROUP_SETTINGS.is_on(call.db, group.id, lfs)?;
        attributes.insert(lfs.to_owned(), is_enabled.into());
    }
    if attributes.get(devops).is_none_or(Value::is_null) {
        let inherited_value =
            inherited_value(call, group, devops)?.filter(|value| !value.is_null());
        attributes.insert(devops.to_owned(), inherited_value.unwrap_or_else(|| true.into()));
    }
    if group.is_group() && call.is_set_in_hierarchy(group, DIFF_PREVIEWS, false)? {
        attributes.insert(DIFF_PREVIEWS.to_owned(), false.into());
    }
    if project.empty_repo {
        attributes
            .insert(DEFAULT_BRANCH.to_owned(), default_branches::preferred_name(call, group)?);
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
