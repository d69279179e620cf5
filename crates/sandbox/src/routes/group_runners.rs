//! The setting of groups for shared runners. A change also applies to all groups and projects
//! below.

use super::prelude::*;

pub(super) const RUNNERS_SETTING: &str = "shared_runners_setting";
/// The attribute of a project for shared runners.
pub(super) const PROJECT_RUNNERS_ENABLED: &str = "shared_runners_enabled";

/// The values of the setting, with the most restrictive value last.
const SETTING_VALUES: [&str; 3] =
    ["enabled", "disabled_and_overridable", "disabled_and_unoverridable"];
const ENABLED_RANK: usize = 0;
const FORBIDDEN_RANK: usize = 2;

/// The position of the group's setting in [`SETTING_VALUES`]: a higher rank is more restrictive. An
/// unknown word is an old name of the second value.
fn setting_rank(call: &Call<'_>, group_id: i64) -> Result<usize> {
    let settings = GROUP_SETTINGS.stored_values(call.db, group_id)?;
    let stored_value = settings
        .get(RUNNERS_SETTING)
        .and_then(Value::as_str)
        .unwrap_or(SETTING_VALUES[ENABLED_RANK]);
    Ok(SETTING_VALUES.iter().position(|value| *value == stored_value).unwrap_or(1))
}

pub(super) fn setting_value(call: &Call<'_>, group_id: i64) -> Result<&'static str> {
    Ok(SETTING_VALUES[setting_rank(call, group_id)?])
}

/// Applies the setting in a call to all groups and projects below the group.
pub(super) fn apply_requested_setting(call: &Call<'_>, group: &Namespace) -> Result<()> {
    if call.text(RUNNERS_SETTING)?.is_none() {
        return Ok(());
    }
    let requested_rank = setting_rank(call, group.id)?;
    let parent_rank =
        group.parent_id.map_or(Ok(ENABLED_RANK), |parent_id| setting_rank(call, parent_id))?;
    if requested_rank != FORBIDDEN_RANK && parent_rank == FORBIDDEN_RANK {
        let (field, label, text) = match requested_rank {
            ENABLED_RANK => (
                PROJECT_RUNNERS_ENABLED,
                "Shared runners enabled",
                "cannot be enabled because parent group has shared Runners disabled",
            ),
            _ => (
                "allow_descendants_override_disabled_shared_runners",
                "Allow descendants override disabled shared runners",
                NOT_ALLOWED_TEXT,
            ),
        };
        let mut errors = FieldErrors::default();
        errors.add(field, text);
        errors.add("update_shared_runners", format!("Validation failed: {label} {text}"));
        return errors.into_result();
    }
    apply_to_subtree(call, group, requested_rank)
}

const NOT_ALLOWED_TEXT: &str = "cannot be enabled because parent group does not allow it";

/// Applies the value of a new parent to a group, if this value is more restrictive.
pub(super) fn inherit_setting(
    call: &Call<'_>,
    group: &Namespace,
    parent: &Namespace,
) -> Result<()> {
    let parent_rank = setting_rank(call, parent.id)?;
    if parent_rank > setting_rank(call, group.id)? {
        apply_to_subtree(call, group, parent_rank)
    } else {
        Ok(())
    }
}

/// Refuses shared runners for a project if the group forbids them. With `follows_group` the project gets
/// the group's value.
pub(super) fn apply_to_project(
    call: &Call<'_>,
    group: &Namespace,
    follows_group: bool,
    attributes: &mut Object,
) -> Result<()> {
    let group_rank = if group.is_group() { setting_rank(call, group.id)? } else { ENABLED_RANK };
    if follows_group {
        attributes.insert(PROJECT_RUNNERS_ENABLED.to_owned(), (group_rank == ENABLED_RANK).into());
    }
    let is_enabled = attributes.get(PROJECT_RUNNERS_ENABLED) == Some(&Value::Bool(true));
    let is_refused = is_enabled && group_rank == FORBIDDEN_RANK;
    refuse_if(is_refused, || ErrorResponse::field_error(PROJECT_RUNNERS_ENABLED, NOT_ALLOWED_TEXT))
}

/// Sets the setting for shared runners in a group, and in all groups and projects below it.
fn apply_to_subtree(call: &Call<'_>, group: &Namespace, requested_rank: usize) -> Result<()> {
    let subtree_rank = if requested_rank == ENABLED_RANK { ENABLED_RANK } else { FORBIDDEN_RANK };
    let group_ids = group.subtree_ids(call.db)?;
    for id in &group_ids {
        let rank = if *id == group.id { requested_rank } else { subtree_rank };
        GROUP_SETTINGS.put_value(call.db, *id, RUNNERS_SETTING, SETTING_VALUES[rank])?;
    }
    let sql = "UPDATE projects SET updated_at = ?3,
                   attributes = json_set(attributes, '$.shared_runners_enabled', json(?2))
               WHERE namespace_id IN (SELECT value FROM json_each(?1))";
    let enabled_json = if requested_rank == ENABLED_RANK { "true" } else { "false" };
    call.execute(sql, params![Value::from(group_ids).to_string(), enabled_json, call.time_text()])
        .map(drop)
}
