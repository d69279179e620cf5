//! The settings of a group, one row each. The reference has none of them; clients that manage groups send them,
//! read them back, and compare. A group keeps those that were set, as a JSON object.

use rusqlite::{Connection, params};
use serde_json::{Map, Value};

use super::answer::Failure;
use super::attributes::{Attribute, Kind, Preset, flag, one_of, row, text};
use super::params::Params;
use super::settings;

const SETTINGS: &[Attribute] = &[
    flag("share_with_group_lock", false),
    flag("require_two_factor_authentication", false),
    row("two_factor_grace_period", Kind::Number(0, 1 << 31, "must be greater than or equal to 0"), Preset::Number(48)),
    one_of("project_creation_level", &["noone", "maintainer", "developer"], "developer"),
    one_of("subgroup_creation_level", &["owner", "maintainer"], "maintainer"),
    row("auto_devops_enabled", Kind::Flag, Preset::Null),
    row("emails_disabled", Kind::Flag, Preset::Null),
    row("mentions_disabled", Kind::Flag, Preset::Null),
    flag("lfs_enabled", true),
    row("default_branch_protection", Kind::Number(0, 4, "does not have a valid value"), Preset::Number(2)),
    flag("request_access_enabled", true),
    flag("prevent_sharing_groups_outside_hierarchy", false),
    one_of(
        "shared_runners_setting",
        &["enabled", "disabled_and_overridable", "disabled_with_override", "disabled_and_unoverridable"],
        "enabled",
    ),
    flag("membership_lock", false).premium(),
    row("prevent_forking_outside_group", Kind::Flag, Preset::Null).premium(),
    row("file_template_project_id", Kind::Number(1, i64::MAX, "is invalid"), Preset::Null).premium(),
    one_of("wiki_access_level", &["disabled", "private", "enabled"], "enabled").premium(),
    text("ip_restriction_ranges", 255).premium(),
];

/// The settings of a group as they are read back.
pub(crate) fn of(db: &Connection, group: i64, tier: super::Tier) -> Result<Map<String, Value>, Failure> {
    let mut set = stored(db, group)?;
    let rows = SETTINGS.iter().filter(|row| row.tier <= tier);
    Ok(rows.map(|row| (row.name.to_owned(), set.remove(row.name).unwrap_or_else(|| row.preset()))).collect())
}

/// Keeps what the call says. What is above the tier is dropped without a word.
pub(crate) fn take(db: &Connection, group: i64, tier: super::Tier, params: &Params) -> Result<(), Failure> {
    let mut set = stored(db, group)?;
    for row in SETTINGS.iter().filter(|row| row.tier <= tier) {
        if let Some(value) = params.get(row.name)
            && let Some(new) = settings::plain(row, row.name, value)?
        {
            set.insert(row.name.to_owned(), new);
        }
    }
    let text = Value::Object(set).to_string();
    db.prepare_cached("UPDATE namespaces SET settings = ?2 WHERE id = ?1")?.execute(params![group, text])?;
    Ok(())
}

fn stored(db: &Connection, group: i64) -> Result<Map<String, Value>, Failure> {
    let text: String = db.prepare_cached("SELECT settings FROM namespaces WHERE id = ?1")?.query_row([group], |row| row.get(0))?;
    serde_json::from_str(&text).map_err(|error| Failure::internal(&error))
}
