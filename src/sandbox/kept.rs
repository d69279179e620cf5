//! Settings of groups and users, one row each. The reference has none of them; clients that manage
//! groups and users send them, read them back, and compare. What was set is kept, as a JSON object.

use rusqlite::{Connection, params};
use serde_json::{Map, Value};

use super::answer::Failure;
use super::attributes::{Attribute, Kind, Preset, Tier, flag, one_of, row, text};
use super::params::Params;
use super::settings;

/// The settings of one sort of thing.
#[derive(Debug)]
pub(crate) struct Kept {
    table: &'static str,
    rows: &'static [Attribute],
}

/// Settings of groups.
pub(crate) const OF_GROUPS: Kept = Kept { table: "namespaces", rows: GROUP };
/// Settings of users.
pub(crate) const OF_USERS: Kept = Kept { table: "users", rows: USER };

const GROUP: &[Attribute] = &[
    flag("share_with_group_lock", false),
    flag("require_two_factor_authentication", false),
    row(
        "two_factor_grace_period",
        Kind::Number(0, 1 << 31, "must be greater than or equal to 0"),
        Preset::Number(48),
    ),
    one_of("project_creation_level", &["noone", "maintainer", "developer"], "developer"),
    one_of("subgroup_creation_level", &["owner", "maintainer"], "maintainer"),
    row("auto_devops_enabled", Kind::Flag, Preset::Null),
    row("emails_disabled", Kind::Flag, Preset::Null),
    row("mentions_disabled", Kind::Flag, Preset::Null),
    flag("lfs_enabled", true),
    row(
        "default_branch_protection",
        Kind::Number(0, 4, "does not have a valid value"),
        Preset::Number(2),
    ),
    flag("request_access_enabled", true),
    flag("prevent_sharing_groups_outside_hierarchy", false),
    one_of(
        "shared_runners_setting",
        &[
            "enabled",
            "disabled_and_overridable",
            "disabled_with_override",
            "disabled_and_unoverridable",
        ],
        "enabled",
    ),
    flag("membership_lock", false).premium(),
    row("prevent_forking_outside_group", Kind::Flag, Preset::Null).premium(),
    row("file_template_project_id", Kind::Number(1, i64::MAX, "is invalid"), Preset::Null)
        .premium(),
    one_of("wiki_access_level", &["disabled", "private", "enabled"], "enabled").premium(),
    text("ip_restriction_ranges", 255).premium(),
];

const USER: &[Attribute] = &[
    text("bio", 255),
    text("location", 255),
    text("public_email", 255),
    text("skype", 255),
    text("linkedin", 255),
    text("twitter", 255),
    text("website_url", 255),
    text("organization", 255),
    row("color_scheme_id", Kind::Number(1, i64::MAX, "is invalid"), Preset::Number(1)),
    row("theme_id", Kind::Number(1, i64::MAX, "is invalid"), Preset::Number(1)),
    row(
        "projects_limit",
        Kind::Number(0, i64::MAX, "must be greater than or equal to 0"),
        Preset::Number(100_000),
    ),
    flag("can_create_group", true),
    flag("external", false),
];

impl Kept {
    /// All settings of `id` that the tier has, set or not.
    pub(crate) fn all(
        &self,
        db: &Connection,
        id: i64,
        tier: Tier,
    ) -> Result<Map<String, Value>, Failure> {
        let mut set = self.set(db, id)?;
        let rows = self.rows.iter().filter(|row| row.tier <= tier);
        Ok(rows
            .map(|row| (row.name.to_owned(), set.remove(row.name).unwrap_or_else(|| row.preset())))
            .collect())
    }

    /// The settings of `id` that were ever set.
    pub(crate) fn set(&self, db: &Connection, id: i64) -> Result<Map<String, Value>, Failure> {
        let sql = format!("SELECT settings FROM {} WHERE id = ?1", self.table);
        let text: String = db.prepare_cached(&sql)?.query_row([id], |row| row.get(0))?;
        serde_json::from_str(&text).map_err(|error| Failure::internal(&error))
    }

    /// Keeps what the call says. What is above the tier is dropped without a word.
    pub(crate) fn take(
        &self,
        db: &Connection,
        id: i64,
        tier: Tier,
        params: &Params,
    ) -> Result<(), Failure> {
        let mut set = self.set(db, id)?;
        for row in self.rows.iter().filter(|row| row.tier <= tier) {
            if let Some(value) = params.get(row.name)
                && let Some(new) = settings::plain(row, row.name, value)?
            {
                set.insert(row.name.to_owned(), new);
            }
        }
        let sql = format!("UPDATE {} SET settings = ?2 WHERE id = ?1", self.table);
        db.prepare_cached(&sql)?.execute(params![id, Value::Object(set).to_string()])?;
        Ok(())
    }
}
