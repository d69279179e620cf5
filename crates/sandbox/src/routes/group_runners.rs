//! The runners setting of groups, which holds for all groups and projects below.

use super::prelude::*;

pub(super) const RUNNERS_SETTING: &str = "shared_runners_setting";
/// The setting of a project.
pub(super) const PROJECT_RUNNERS_ENABLED: &str = "shared_runners_enabled";

/// The values of the setting, the most restrictive last.
const SETTING_VALUES: [&str; 3] =
    ["enabled", "disabled_and_overridable", "disabled_and_unoverridable"];
const ENABLED: usize = 0;
const FORBIDDEN: usize = 2;

/// The position of a group's value in the list. An unknown word counts as the old name of the second
/// value.
fn setting_level(call: &Call<'_>, group: i64) -> Result<usize> {
    let settings = GROUP_SETTINGS.stored_values(call.db, group)?;
    let word =
        settings.get(RUNNERS_SETTING).and_then(Value::as_str).unwrap_or(SETTING_VALUES[ENABLED]);
    Ok(SETTING_VALUES.iter().position(|value| *value == word).unwrap_or(1))
}

pub(super) fn setting_word(call: &Call<'_>, group: i64) -> Result<&'static str> {
    Ok(SETTING_VALUES[setting_level(call, group)?])
}

/// Applies a change of the setting to everything below.
pub(super) fn apply_sent_setting(call: &Call<'_>, group: &Namespace) -> Result<()> {
    if call.params.text(RUNNERS_SETTING)?.is_none() {
        return Ok(());
    }
    let requested = setting_level(call, group.id)?;
    let parent_level = group.parent_id.map_or(Ok(ENABLED), |parent| setting_level(call, parent))?;
    if requested != FORBIDDEN && parent_level == FORBIDDEN {
        let (field, what, text) = match requested {
            ENABLED => (
                PROJECT_RUNNERS_ENABLED,
                "Shared runners enabled",
                "cannot be enabled because parent group has shared Runners disabled",
            ),
            _ => (
                "allow_descendants_override_disabled_shared_runners",
                "Allow descendants override disabled shared runners",
                NOT_ALLOWED,
            ),
        };
        let mut complaints = Complaints::default();
        complaints.add(field, text);
        complaints.add("update_shared_runners", format!("Validation failed: {what} {text}"));
        return complaints.into_result();
    }
    apply_below(call, group, requested)
}

const NOT_ALLOWED: &str = "cannot be enabled because parent group does not allow it";

/// A subgroup takes a more restrictive value from its new parent.
pub(super) fn inherit_setting(
    call: &Call<'_>,
    group: &Namespace,
    parent: &Namespace,
) -> Result<()> {
    let parent_level = setting_level(call, parent.id)?;
    if parent_level > setting_level(call, group.id)? {
        apply_below(call, group, parent_level)
    } else {
        Ok(())
    }
}

/// Refuses runners for a project if the group forbids them. With `follows_group` the project does not
/// set them, and gets the group's value.
pub(super) fn apply_to_project(
    call: &Call<'_>,
    group: &Namespace,
    follows_group: bool,
    attributes: &mut Map<String, Value>,
) -> Result<()> {
    let group_level = if group.is_group() { setting_level(call, group.id)? } else { ENABLED };
    if follows_group {
        attributes.insert(PROJECT_RUNNERS_ENABLED.to_owned(), (group_level == ENABLED).into());
    }
    let is_wanted = attributes.get(PROJECT_RUNNERS_ENABLED) == Some(&Value::Bool(true));
    refuse_if(is_wanted && group_level == FORBIDDEN, || {
        ErrorResponse::model(PROJECT_RUNNERS_ENABLED, NOT_ALLOWED)
    })
}

/// Sets the runners of a group, and of all groups and projects below it.
fn apply_below(call: &Call<'_>, group: &Namespace, requested: usize) -> Result<()> {
    let level_below = if requested == ENABLED { ENABLED } else { FORBIDDEN };
    let group_ids = group.subtree_ids(call.db)?;
    for id in &group_ids {
        let value = if *id == group.id { requested } else { level_below };
        GROUP_SETTINGS.put_value(call.db, *id, RUNNERS_SETTING, SETTING_VALUES[value])?;
    }
    let sql = "UPDATE projects SET updated_at = ?3,
                   attributes = json_set(attributes, '$.shared_runners_enabled', json(?2))
               WHERE namespace_id IN (SELECT value FROM json_each(?1))";
    let enabled_json = if requested == ENABLED { "true" } else { "false" };
    call.execute(sql, params![Value::from(group_ids).to_string(), enabled_json, call.time_text()])
        .map(drop)
}
