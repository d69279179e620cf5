//! Settings of groups that affect everything below, or have special rules. All other settings are
//! only rows of `attributes.jsonc`.

use std::fmt::Display;
use std::net::IpAddr;

use super::group_rules::GroupCheck;
use super::group_runners;
use super::prelude::*;

const PROJECT_CREATION_LEVEL: &str = "project_creation_level";
const TEMPLATE_PROJECT: &str = "file_template_project_id";
const IP_RANGES: &str = "ip_restriction_ranges";
const SHARE_LOCK: &str = "share_with_group_lock";
const GRACE_PERIOD: &str = "two_factor_grace_period";
const MINUTES_LIMIT: &str = "shared_runners_minutes_limit";
const EMAIL_DOMAINS: &str = "allowed_email_domains_list";
pub(super) const GIT_ACCESS: &str = "enabled_git_access_protocol";

/// Settings of later releases whose shown value depends on the groups above.
const EMAILS_DISABLED: &str = "emails_disabled";
const DIFF_PREVIEWS: &str = "show_diff_preview_in_email";
/// If a group does not set one of these settings, the nearest group above that sets it decides.
const CASCADING_SETTINGS: [&str; 2] = ["math_rendering_limits_enabled", "duo_features_enabled"];
/// A setting of a whole hierarchy, which only the top-level group can change.
const OUTSIDE_FORKS_PREVENTED: &str = "prevent_forking_outside_group";
const NOTIFIED_USERS: &str = "unique_project_download_limit_alertlist";
const EXEMPT_USERS: &str = "unique_project_download_limit_allowlist";

/// The settings of a group in a response. Unset settings show the effective value.
pub(super) fn settings_json(call: &Call<'_>, group: &Namespace, is_listed: bool) -> Result<Value> {
    let mut body = json!({});
    let settings = GROUP_SETTINGS.stored_values(call.db, group.id)?;
    let level = call.caller_level_in_group(group)?;
    for (name, value) in GROUP_SETTINGS.visible_values(call, group.id, |row: &Attribute| {
        let is_shown = match row.audience {
            Audience::By(min_level) => level >= min_level,
            Audience::ByAdministrators => call.is_administrator(),
            _ => true,
        };
        is_shown
            && (group.parent_id.is_none() || !row.top_level_only)
            && (!is_listed || row.is_in_lists())
    })? {
        let shown_value = match name.as_str() {
            BRANCH_PROTECTION if !settings.contains_key(BRANCH_PROTECTION) => {
                instance::read_setting(call, BRANCH_PROTECTION)?
            }
            PROJECT_CREATION_LEVEL if !settings.contains_key(PROJECT_CREATION_LEVEL) => {
                default_project_creation(call)?.into()
            }
            PROTECTION_DEFAULTS if value.is_null() || value == json!({}) => {
                instance::read_setting(call, PROTECTION_DEFAULTS)?
            }
            EMAILS_DISABLED if call.is_at_least(16, 6) => {
                call.is_set_in_hierarchy(group, EMAILS_DISABLED, true)?.into()
            }
            ARCHIVED | OUTSIDE_FORKS_PREVENTED => {
                call.is_set_in_hierarchy(group, &name, true)?.into()
            }
            DIFF_PREVIEWS if call.is_set_in_hierarchy(group, DIFF_PREVIEWS, false)? => false.into(),
            TEMPLATE_PROJECT => match visible_template_id(call, &value)? {
                Some(project) => project.into(),
                None => continue,
            },
            NOTIFIED_USERS if value == json!([]) => list_owner_ids(call, group)?.into(),
            setting if CASCADING_SETTINGS.contains(&setting) && !settings.contains_key(setting) => {
                inherited_value(call, group, setting)?.unwrap_or(value)
            }
            _ => value,
        };
        body[name] = shown_value;
    }
    if call.profile().runners_setting_shown {
        body[group_runners::RUNNERS_SETTING] = group_runners::setting_value(call, group.id)?.into();
    }
    Ok(body)
}

/// The id of the project with templates; `None` if it does not exist or the caller does not see it.
fn visible_template_id(call: &Call<'_>, id: &Value) -> Result<Option<i64>> {
    let project = id.as_i64().map(|id| Project::find_by_id(call.db, id)).transpose()?.flatten();
    match project {
        Some(project) if call.may_see_project(&project)? => Ok(Some(project.id)),
        _ => Ok(None),
    }
}

/// Lists the ids of the direct owners of a group.
fn list_owner_ids(call: &Call<'_>, group: &Namespace) -> Result<Vec<i64>> {
    let sql = "SELECT user_id FROM members WHERE group_id = ?1 AND access_level = ?2
               AND state = 'active' AND user_id IS NOT NULL ORDER BY user_id";
    call.query_column(sql, [group.id, OWNER])
}

/// The value of the setting `name` in the nearest group that sets it, from `group` upwards.
fn inherited_value(call: &Call<'_>, group: &Namespace, name: &str) -> Result<Option<Value>> {
    let settings =
        traversal_ids(&group.traversal).rev().map(|id| GROUP_SETTINGS.stored_values(call.db, id));
    let mut values = settings.map(|group_settings| Ok(group_settings?.remove(name)));
    values.find_map(Result::transpose).transpose()
}

/// The word for the lowest role that may create projects in groups without a setting of their own.
/// The service stores this default as a number.
fn default_project_creation(call: &Call<'_>) -> Result<&'static str> {
    Ok(match instance::read_setting(call, "default_project_creation")?.as_i64() {
        Some(0) => "noone",
        Some(1) => "maintainer",
        _ => "developer",
    })
}

/// True if the caller may create projects in a namespace. It must be the caller's personal
/// namespace, or a group that is not archived and whose setting allows the creation.
pub(super) fn may_create_projects(call: &Call<'_>, group: &Namespace) -> Result<bool> {
    if !group.is_group() {
        return Ok(call.caller_level_in_group(group)? >= OWNER);
    }
    let setting = GROUP_SETTINGS.stored_values(call.db, group.id)?.remove(PROJECT_CREATION_LEVEL);
    let role_word = match setting.as_ref().and_then(Value::as_str) {
        Some(setting) => setting,
        None => default_project_creation(call)?,
    };
    let min_level = match role_word {
        "noone" => return Ok(false),
        "administrator" if !call.is_administrator() => return Ok(false),
        "owner" | "administrator" => OWNER,
        "maintainer" => MAINTAINER,
        _ => DEVELOPER,
    };
    Ok(call.caller_level_in_group(group)? >= min_level && !call.is_group_archived(group)?)
}

/// Refuses values of a wrong type before any other check.
pub(super) fn check_types(call: &Call<'_>, route: WriteRoute) -> Result<()> {
    GROUP_SETTINGS.check_params(call, route)?;
    avatars::check_avatar_type(&call.params)?;
    call.allowed_text("visibility", VISIBILITIES)?;
    default_branches::read_protection(call).map(drop)
}

/// Stores the settings and the avatar in a call; settings that the caller may not set are ignored.
pub(super) fn store_settings(call: &Call<'_>, group: &Namespace, route: WriteRoute) -> Result<()> {
    let is_licensed = call.is_premium() && route == WriteRoute::Edit;
    check_share_lock(call, group)?;
    if is_licensed {
        check_template(call)?;
        check_skipped_pipelines(call, group)?;
    }
    let mut ignored_names = Vec::new();
    if group.parent_id.is_some() {
        ignored_names.push(OUTSIDE_FORKS_PREVENTED);
        let mut top_level = ATTRIBUTE_TABLE.groups.clone();
        top_level.retain(|attribute| attribute.top_level_only);
        ignored_names.extend(top_level.iter().map(|attribute| attribute.name));
    }
    let may_owners_protect =
        instance::read_setting(call, "group_owners_can_manage_default_branch_protection")?;
    if call.is_premium() && !call.is_administrator() && may_owners_protect == Value::Bool(false) {
        ignored_names.push(BRANCH_PROTECTION);
    }
    let was_locked = is_share_locked(call, group.id)?;
    GROUP_SETTINGS.store_params(call, group.id, route, &ignored_names)?;
    if call.get(SHARE_LOCK).is_some() && call.flag(SHARE_LOCK)?.is_none() {
        GROUP_SETTINGS.put_value(call.db, group.id, SHARE_LOCK, Value::Null)?;
    }
    let sets_protection = !ignored_names.contains(&BRANCH_PROTECTION);
    default_branches::store_defaults(call, group.id, route, sets_protection)?;
    if is_licensed {
        store_ip_ranges(call, group)?;
        store_email_domains(call, group)?;
        store_download_limits(call, group)?;
        store_duo_availability(call, group)?;
    }
    if route == WriteRoute::Edit {
        group_runners::apply_requested_setting(call, group)?;
    }
    if !was_locked && is_share_locked(call, group.id)? {
        lock_shares(call, group)?;
    }
    avatars::store_avatar(call, Holder::Group(group.id), &call.params)
}

/// The names of the settings that a call unsets, so that the groups above decide. Only the response
/// to this call shows null for these settings.
pub(super) fn unset_settings(call: &Call<'_>, group: &Namespace) -> Result<Vec<&'static str>> {
    let stored_settings = GROUP_SETTINGS.stored_values(call.db, group.id)?;
    let mut unset_names = CASCADING_SETTINGS.to_vec();
    unset_names.retain(|name| {
        GROUP_SETTINGS.accepts(call, name, WriteRoute::Edit)
            && call.get(name).is_some_and(is_blank)
            && stored_settings.contains_key(*name)
    });
    Ok(unset_names)
}

/// Settings that cannot be null, with the error texts for null.
const REQUIRED_SETTINGS: [(&str, &[&str]); 4] = [
    (GRACE_PERIOD, &[BLANK_TEXT, "is not a number"]),
    (GIT_ACCESS, &["is not included in the list"]),
    ("unique_project_download_limit", &["is not a number", BLANK_TEXT]),
    ("unique_project_download_limit_interval_in_seconds", &["is not a number", BLANK_TEXT]),
];

/// The name in errors of a setting that is stored apart from the group.
fn error_field(name: &str) -> String {
    format!("namespace_settings.{name}")
}

impl GroupCheck<'_> {
    /// Refuses null where a setting needs a value, and values that are not allowed for a subgroup.
    /// With `is_stored_apart`, checks the settings that are stored apart from the group; otherwise the other
    /// settings.
    pub(super) fn check_settings(&mut self, is_stored_apart: bool) -> Result<()> {
        let Self { call, errors, .. } = self;
        let is_subgroup = self.requested.parent.is_some();
        let route = if self.existing.is_some() { WriteRoute::Edit } else { WriteRoute::Create };
        for (name, texts) in REQUIRED_SETTINGS {
            let is_missing =
                (name != GRACE_PERIOD) == is_stored_apart && call.get(name).is_some_and(is_blank);
            if is_missing && GROUP_SETTINGS.accepts(call, name, route) {
                let field = if is_stored_apart { error_field(name) } else { name.to_owned() };
                texts.iter().for_each(|text| errors.add(&field, *text));
            }
        }
        if is_stored_apart {
            let experiments = "experiment_features_enabled";
            let is_on =
                is_subgroup && call.is_observed_release_or_later() && call.is_true(experiments)?;
            let message = "Experiment features' settings not allowed.";
            errors.add_if(is_on, &error_field(experiments), message);
            return Ok(());
        }
        let is_licensed_admin = call.is_premium() && call.is_administrator();
        let has_minutes =
            is_subgroup && is_licensed_admin && call.integer(MINUTES_LIMIT)?.is_some();
        errors.add_if(has_minutes, MINUTES_LIMIT, "is not supported for this namespace");
        let is_negative = call.integer(GRACE_PERIOD)?.is_some_and(|hours| hours < 0);
        errors.add_if(is_negative, GRACE_PERIOD, "must be greater than or equal to 0");
        Ok(())
    }
}

/// Checks that the project with templates is visible to the caller.
fn check_template(call: &Call<'_>) -> Result<()> {
    let id = call.integer(TEMPLATE_PROJECT)?;
    let is_unknown = id.is_some() && visible_template_id(call, &id.into())?.is_none();
    refuse_if(is_unknown, || ErrorResponse::field_error(TEMPLATE_PROJECT, "is invalid"))
}

/// Checks that skipped pipelines may count as success only if pipelines must succeed.
fn check_skipped_pipelines(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let (success_setting, skipped_setting) =
        ("only_allow_merge_if_pipeline_succeeds", "allow_merge_on_skipped_pipeline");
    let must_succeed = match call.get(success_setting) {
        Some(_) => call.is_true(success_setting)?,
        None => GROUP_SETTINGS.is_on(call.db, group.id, success_setting)?,
    };
    let skips_pipelines = call.is_true(skipped_setting)? && call.is_at_least(18, 7);
    refuse_if(skips_pipelines && !must_succeed, || {
        let message =
            format!("{skipped_setting} can only be enabled when {success_setting} is true");
        ErrorResponse::bad_request(&message)
    })
}

/// Stores the IP ranges that may access a group: a text with commas. An empty text clears the
/// ranges; null changes nothing.
fn store_ip_ranges(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let Some(text) = call.text(IP_RANGES)? else { return Ok(()) };
    let ranges = split_items(&text);
    let top_level_message = "IP subnet restriction only allowed for top-level groups";
    let is_subgroup = group.parent_id.is_some() && !ranges.is_empty();
    refuse_if(is_subgroup, || {
        ErrorResponse::field_error("ip_restrictions.base", top_level_message)
    })?;
    let range_message = "is an invalid IP address range";
    let are_valid = ranges.iter().all(|range| is_ip_range(range));
    refuse_if(!are_valid, || ErrorResponse::field_error("ip_restrictions.range", range_message))?;
    let joined_ranges = (!ranges.is_empty()).then(|| ranges.join(","));
    GROUP_SETTINGS.put_value(call.db, group.id, IP_RANGES, joined_ranges)
}

/// Public e-mail providers, whose domains cannot be allowed.
const PUBLIC_EMAIL_PROVIDERS: &str = "gmail.com yahoo.com hotmail.com aol.com msn.com hotmail.co.uk hotmail.fr \
    live.com outlook.com icloud.com";

/// Stores the allowed domains of members' e-mail addresses: a text with commas.
fn store_email_domains(call: &Call<'_>, group: &Namespace) -> Result<()> {
    if !call.is_at_least(17, 4) || !call.has(EMAIL_DOMAINS) {
        return Ok(());
    }
    let text = call.text(EMAIL_DOMAINS)?.unwrap_or_default();
    let domains = split_items(&text);
    let is_subgroup = group.parent_id.is_some() && !domains.is_empty();
    let message = "Allowed email domain restriction only permitted for top-level groups";
    refuse_if(is_subgroup, || ErrorResponse::field_error("allowed_email_domains.base", message))?;
    let mut errors = FieldErrors::default();
    let field = "allowed_email_domains.domain";
    for domain in &domains {
        let is_provider = PUBLIC_EMAIL_PROVIDERS.split(' ').any(|provider| provider == *domain);
        errors.add_if(is_provider, field, "The domain you entered is not allowed.");
        let is_malformed = !domain.contains('.')
            || !domain.chars().all(|c: char| c.is_ascii_alphanumeric() || ".-".contains(c));
        errors.add_if(is_malformed, field, "The domain you entered is misformatted.");
    }
    errors.into_result()?;
    let joined_domains = (!domains.is_empty()).then(|| domains.join(","));
    GROUP_SETTINGS.put_value(call.db, group.id, EMAIL_DOMAINS, joined_domains)
}

fn split_items(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// Stores the users who are exempt from the limit of project downloads, and the users who are
/// notified.
fn store_download_limits(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let accepts_users = GROUP_SETTINGS.accepts(call, NOTIFIED_USERS, WriteRoute::Edit);
    if group.parent_id.is_some() || !accepts_users {
        return Ok(());
    }
    let mut errors = FieldErrors::default();
    let mut check_user_exists =
        |field: &str, noun: &str, item: &dyn Display, user: Option<User>| {
            let text = format!("should be an array of existing {noun}. {item} does not exist");
            errors.add_if(user.is_none(), &error_field(field), text);
        };
    if let Some(names) = call.texts(EXEMPT_USERS)? {
        for name in &names {
            check_user_exists(
                EXEMPT_USERS,
                "usernames",
                name,
                User::find_by_username(call.db, name)?,
            );
        }
        GROUP_SETTINGS.put_value(call.db, group.id, EXEMPT_USERS, names)?;
    }
    if let Some(ids) = call.integers(NOTIFIED_USERS)? {
        for id in &ids {
            check_user_exists(NOTIFIED_USERS, "user ids", id, User::find_by_id(call.db, *id)?);
        }
        GROUP_SETTINGS.put_value(call.db, group.id, NOTIFIED_USERS, ids)?;
    }
    errors.into_result()
}

/// Stores the two flags that the parameter `duo_availability` sets.
fn store_duo_availability(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let (is_on, is_locked) = match call.text("duo_availability")?.as_deref() {
        Some("default_on") => (true, false),
        Some("default_off") => (false, false),
        Some("never_on") => (false, true),
        _ => return Ok(()),
    };
    GROUP_SETTINGS.put_value(call.db, group.id, CASCADING_SETTINGS[1], is_on)?;
    GROUP_SETTINGS.put_value(call.db, group.id, "lock_duo_features_enabled", is_locked)
}

/// True if a text is an IP address, with or without a prefix length.
fn is_ip_range(text: &str) -> bool {
    let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
    let max_prefix = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    prefix.is_none_or(|prefix| prefix.parse().is_ok_and(|length: u32| length <= max_prefix))
}

/// True if projects of a group cannot be shared with groups.
pub(super) fn is_share_locked(call: &Call<'_>, group_id: i64) -> Result<bool> {
    GROUP_SETTINGS.is_on(call.db, group_id, SHARE_LOCK)
}

/// Locks a group and all groups below it: their projects cannot be shared with groups.
fn lock_shares(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let group_ids = group.subtree_ids(call.db)?;
    group_ids.into_iter().try_for_each(|id| GROUP_SETTINGS.put_value(call.db, id, SHARE_LOCK, true))
}

/// Checks that only owners of a locked parent unlock a group below it.
fn check_share_lock(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let is_unlock = call.flag(SHARE_LOCK)? == Some(false) && is_share_locked(call, group.id)?;
    match Namespace::find_by_optional_id(call.db, group.parent_id.filter(|_| is_unlock))? {
        Some(parent)
            if is_share_locked(call, parent.id)?
                && call.caller_level_in_group(&parent)? < OWNER =>
        {
            let message = "cannot be disabled when the parent group \"Share with group lock\" is enabled, \
                        except by the owner of the parent group";
            Err(ErrorResponse::field_error(SHARE_LOCK, message))
        }
        _ => Ok(()),
    }
}

/// Applies the share lock and the runners setting of a new parent to a group.
pub(super) fn inherit_settings(
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

/// The attributes that a project takes from its groups if the project does not set them.
pub(crate) const INHERITED_ATTRIBUTES: [&str; 2] = ["lfs_enabled", "auto_devops_enabled"];

/// Adds inherited attributes to the attributes of a project. For an empty project, also adds the future
/// default branch.
pub(crate) fn add_inherited_attributes(
    call: &Call<'_>,
    project: &Project,
    attributes: &mut Object,
) -> Result<()> {
    let group = &project.namespace;
    let [lfs_name, devops_name] = INHERITED_ATTRIBUTES;
    if attributes.get(lfs_name).is_none_or(Value::is_null) {
        let is_enabled = !group.is_group() || GROUP_SETTINGS.is_on(call.db, group.id, lfs_name)?;
        attributes.insert(lfs_name.to_owned(), is_enabled.into());
    }
    if attributes.get(devops_name).is_none_or(Value::is_null) {
        let inherited_value =
            inherited_value(call, group, devops_name)?.filter(|value| !value.is_null());
        attributes.insert(devops_name.to_owned(), inherited_value.unwrap_or_else(|| true.into()));
    }
    if group.is_group() && call.is_set_in_hierarchy(group, DIFF_PREVIEWS, false)? {
        attributes.insert(DIFF_PREVIEWS.to_owned(), false.into());
    }
    if project.empty_repo {
        attributes.insert(
            DEFAULT_BRANCH.to_owned(),
            default_branches::preferred_branch_name(call, group)?,
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_have_a_prefix() {
        for (text, is_valid) in [
            ("192.168.0.0/24", true),
            ("10.0.0.1", true),
            ("2001:db8::/32", true),
            ("10.0.0.0/33", false),
            ("10.0.0", false),
            ("10.0.0.1/", false),
            ("somewhere", false),
        ] {
            assert_eq!(is_ip_range(text), is_valid, "{text}");
        }
    }
}
