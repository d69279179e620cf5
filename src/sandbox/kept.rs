//! Settings of groups and users, one row each. The reference has none of them; clients that manage
//! groups and users send them, read them back, and compare. What was set is kept, as a JSON object.

use rusqlite::{Connection, params};
use serde_json::{Map, Value};

use super::answer::Failure;
use super::attributes::{Attribute, Kind, Preset, Reads, Route, Tier, flag, one_of, row, text};
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

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

const GROUP: &[Attribute] = &[
    flag("share_with_group_lock", false),
    flag("require_two_factor_authentication", false),
    row("two_factor_grace_period", Kind::Number(0, 1 << 31, NOT_NEGATIVE), Preset::Number(48)),
    one_of("project_creation_level", &["noone", "maintainer", "developer"], "developer"),
    one_of("subgroup_creation_level", &["owner", "maintainer"], "maintainer"),
    row("auto_devops_enabled", Kind::Flag, Preset::Null),
    row("emails_disabled", Kind::Flag, Preset::Null),
    row("mentions_disabled", Kind::Flag, Preset::Null),
    flag("lfs_enabled", true),
    row("default_branch_protection", Kind::Choice(&[0, 1, 2, 3, 4]), Preset::Number(2)),
    flag("request_access_enabled", true),
    flag("prevent_sharing_groups_outside_hierarchy", false).on("E").reads(Reads::Detail),
    // Readable since 16.2 only.
    one_of(
        "shared_runners_setting",
        &[
            "enabled",
            "disabled_and_overridable",
            "disabled_with_override",
            "disabled_and_unoverridable",
        ],
        "enabled",
    )
    .on("E")
    .reads(Reads::Never),
    flag("membership_lock", false).premium().reads(Reads::Detail),
    // Links to a directory are made in another way, and no directory is here.
    row("ldap_cn", Kind::Elsewhere, Preset::Null).premium(),
    row("ldap_access", Kind::Elsewhere, Preset::Null).premium(),
    row("shared_runners_minutes_limit", Kind::Number(0, i64::MAX, NOT_NEGATIVE), Preset::Null)
        .premium()
        .administrators()
        .reads(Reads::Detail),
    row(
        "extra_shared_runners_minutes_limit",
        Kind::Number(0, i64::MAX, NOT_NEGATIVE),
        Preset::Null,
    )
    .premium()
    .administrators()
    .reads(Reads::Detail),
    row("file_template_project_id", Kind::Number(1, i64::MAX, "is invalid"), Preset::Null)
        .on("E")
        .premium(),
    flag("prevent_forking_outside_group", false).on("E").premium().reads(Reads::Detail),
    row("ip_restriction_ranges", Kind::Elsewhere, Preset::Null)
        .on("E")
        .premium()
        .reads(Reads::Detail),
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
    row("projects_limit", Kind::Number(0, i64::MAX, NOT_NEGATIVE), Preset::Number(100_000)),
    flag("can_create_group", true),
    flag("external", false),
];

/// How settings are taken from a call: what is not accepted so is dropped without a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taking<'a> {
    pub(crate) route: Route,
    pub(crate) tier: Tier,
    pub(crate) administrator: bool,
    /// Settings that this call cannot change.
    pub(crate) dropped: &'a [&'a str],
}

impl Kept {
    /// The settings of `id` that the tier has, set or not. Lists leave some out.
    pub(crate) fn shown(
        &self,
        db: &Connection,
        id: i64,
        tier: Tier,
        in_list: bool,
    ) -> Result<Map<String, Value>, Failure> {
        let mut set = self.set(db, id)?;
        let rows = self.rows.iter().filter(|row| {
            row.tier <= tier
                && row.reads != Reads::Never
                && !(in_list && row.reads == Reads::Detail)
        });
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

    /// Whether a flag of `id` is set and on.
    pub(crate) fn is_on(&self, db: &Connection, id: i64, name: &str) -> Result<bool, Failure> {
        Ok(self.set(db, id)?.get(name) == Some(&Value::Bool(true)))
    }

    /// Keeps one value.
    pub(crate) fn put(
        &self,
        db: &Connection,
        id: i64,
        name: &str,
        value: impl Into<Value>,
    ) -> Result<(), Failure> {
        let mut set = self.set(db, id)?;
        set.insert(name.to_owned(), value.into());
        self.store(db, id, set)
    }

    /// Keeps what the call says. Null clears what has no value unless it is set.
    pub(crate) fn take(
        &self,
        db: &Connection,
        id: i64,
        how: Taking<'_>,
        params: &Params,
    ) -> Result<(), Failure> {
        let mut set = self.set(db, id)?;
        let accepted = self.rows.iter().filter(|row| {
            row.accepted_on(how.route)
                && row.tier <= how.tier
                && (how.administrator || !row.administrators)
                && !how.dropped.contains(&row.name)
                && !matches!(row.kind, Kind::Elsewhere)
        });
        for row in accepted {
            let Some(value) = params.get(row.name) else { continue };
            match settings::plain(row, row.name, value)? {
                Some(new) => drop(set.insert(row.name.to_owned(), new)),
                None if row.preset().is_null() => drop(set.remove(row.name)),
                None => {}
            }
        }
        self.store(db, id, set)
    }

    fn store(&self, db: &Connection, id: i64, set: Map<String, Value>) -> Result<(), Failure> {
        let sql = format!("UPDATE {} SET settings = ?2 WHERE id = ?1", self.table);
        db.prepare_cached(&sql)?.execute(params![id, Value::Object(set).to_string()])?;
        Ok(())
    }
}
