//! Settings of groups and users, one row each. The reference has none of them; clients that manage
//! groups and users send them, read them back, and compare. What was set is kept, as a JSON object.

use rusqlite::{Connection, params};
use serde_json::{Map, Value};

use super::answer::{Failure, Result};
use super::attributes::{Attribute, Edition, Kind, Preset, Reads, Route, flag, one_of, row, text};
use super::params::{Params, flag as flag_of};
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
    row("description", Kind::Text(usize::MAX), Preset::Null),
    flag("share_with_group_lock", false),
    flag("require_two_factor_authentication", false),
    row("two_factor_grace_period", Kind::Number(i64::MIN, 1 << 31, ""), Preset::Number(48)),
    one_of("project_creation_level", &["noone", "maintainer", "developer"], "developer")
        .until(17, 7),
    one_of(
        "project_creation_level",
        &["noone", "owner", "maintainer", "developer", "administrator"],
        "developer",
    )
    .since(17, 7),
    one_of("subgroup_creation_level", &["owner", "maintainer"], "maintainer"),
    row("auto_devops_enabled", Kind::Flag, Preset::Null),
    row("emails_disabled", Kind::Flag, Preset::Null),
    // What it reads depends on the old one, and on the groups above: see `group_settings`.
    row("emails_enabled", Kind::OppositeOf("emails_disabled"), Preset::Null).since(16, 6),
    flag("show_diff_preview_in_email", true).on("E").since(18, 4),
    row("default_branch", Kind::Text(255), Preset::Null).since(16, 11),
    one_of("enabled_git_access_protocol", &["all", "ssh", "http"], "all")
        .reads(Reads::Detail)
        .since(16, 9),
    // What these do not say themselves, the groups above say: see `group_settings`.
    flag("math_rendering_limits_enabled", true).on("E").since(16, 9),
    flag("lock_math_rendering_limits_enabled", false).on("E").since(16, 9),
    one_of("wiki_access_level", &["disabled", "private", "enabled"], "enabled")
        .premium()
        .since(15, 10),
    flag("only_allow_merge_if_pipeline_succeeds", false)
        .on("E")
        .premium()
        .reads(Reads::Detail)
        .since(18, 7),
    flag("allow_merge_on_skipped_pipeline", false)
        .on("E")
        .premium()
        .reads(Reads::Detail)
        .since(18, 7),
    flag("only_allow_merge_if_all_discussions_are_resolved", false)
        .on("E")
        .premium()
        .reads(Reads::Detail)
        .since(18, 7),
    row("allowed_email_domains_list", Kind::Elsewhere, Preset::Null)
        .on("E")
        .premium()
        .reads(Reads::Detail)
        .since(17, 4),
    row("mentions_disabled", Kind::Flag, Preset::Null),
    flag("lfs_enabled", true),
    row("default_branch_protection", Kind::Choice(&[0, 1, 2, 3, 4]), Preset::Number(2)),
    row("default_branch_protection_defaults", Kind::Elsewhere, Preset::Null).since(16, 3),
    flag("archived", false).on("").since(18, 9),
    row("organization_id", Kind::Elsewhere, Preset::Number(1)).since(18, 9),
    row("repository_storage", Kind::Elsewhere, Preset::Null).since(18, 9),
    row("max_artifacts_size", Kind::Count(1, i64::MAX, "must be greater than 0"), Preset::Null)
        .on("E")
        .administrators()
        .since(18, 9),
    flag("duo_features_enabled", true).on("E").premium().since(16, 10),
    flag("lock_duo_features_enabled", false).on("E").premium().since(16, 10),
    one_of("duo_availability", &["default_on", "default_off", "never_on"], "default_on")
        .premium()
        .reads(Reads::Never)
        .since(18, 9),
    flag("experiment_features_enabled", false).premium().reads(Reads::Never).since(18, 9),
    flag("auto_duo_code_review_enabled", false).on("E").premium().reads(Reads::Never).since(18, 0),
    flag("web_based_commit_signing_enabled", false)
        .on("E")
        .premium()
        .reads(Reads::Never)
        .since(18, 2),
    flag("allow_personal_snippets", true).on("E").premium().reads(Reads::Never).since(18, 5),
    row("duo_core_features_enabled", Kind::Elsewhere, Preset::Null).premium().since(18, 9),
    row("duo_namespace_access_rules", Kind::Elsewhere, Preset::Nothing).premium().since(18, 9),
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
    .reads(Reads::Never)
    .until(18, 9),
    one_of(
        "shared_runners_setting",
        &["enabled", "disabled_and_overridable", "disabled_and_unoverridable"],
        "enabled",
    )
    .on("E")
    .reads(Reads::Never)
    .since(18, 9),
    flag("membership_lock", false).premium().reads(Reads::Detail),
    // Links to a directory are made in another way, and no directory is here.
    row("ldap_cn", Kind::Elsewhere, Preset::Null).premium(),
    row("ldap_access", Kind::Elsewhere, Preset::Null).premium(),
    row("shared_runners_minutes_limit", Kind::Count(i64::MIN, i64::MAX, ""), Preset::Null)
        .premium()
        .administrators()
        .reads(Reads::Detail),
    row("extra_shared_runners_minutes_limit", Kind::Count(i64::MIN, i64::MAX, ""), Preset::Null)
        .premium()
        .administrators()
        .reads(Reads::Detail),
    flag("service_access_tokens_expiration_enforced", true)
        .on("E")
        .premium()
        .reads(Reads::Detail)
        .since(18, 9),
    limit("unique_project_download_limit"),
    limit("unique_project_download_limit_interval_in_seconds"),
    flag("auto_ban_user_on_excessive_projects_download", false)
        .on("E")
        .ultimate()
        .reads(Reads::Detail)
        .since(18, 0),
    row("unique_project_download_limit_allowlist", Kind::Elsewhere, Preset::Nothing)
        .ultimate()
        .reads(Reads::Detail)
        .since(18, 0),
    row("unique_project_download_limit_alertlist", Kind::Elsewhere, Preset::Nothing)
        .ultimate()
        .reads(Reads::Detail)
        .since(18, 0),
    row("file_template_project_id", Kind::Number(1, i64::MAX, "is invalid"), Preset::Null)
        .on("E")
        .premium(),
    flag("prevent_forking_outside_group", false).on("E").premium().reads(Reads::Detail),
    row("ip_restriction_ranges", Kind::Elsewhere, Preset::Null)
        .on("E")
        .premium()
        .reads(Reads::Detail),
];

/// A limit of downloads; its bounds are in `group_settings`.
const fn limit(name: &'static str) -> Attribute {
    row(name, Kind::Count(i64::MIN, i64::MAX, ""), Preset::Number(0))
        .on("E")
        .ultimate()
        .reads(Reads::Detail)
        .since(18, 0)
}

/// What everybody reads of a user; with `Detail`, the user and administrators alone.
const USER: &[Attribute] = &[
    profile("bio"),
    profile("location"),
    text("public_email", 255),
    profile("skype").until(18, 9),
    profile("linkedin"),
    profile("twitter"),
    profile("discord").since(18, 9),
    profile("github").since(18, 9),
    profile("website_url"),
    profile("organization"),
    text("pronouns", 50),
    row("color_scheme_id", Kind::Number(1, i64::MAX, "is invalid"), Preset::Number(1))
        .reads(Reads::Detail),
    row("theme_id", Kind::Number(1, i64::MAX, "is invalid"), Preset::Number(1))
        .reads(Reads::Detail),
    row("projects_limit", Kind::Number(0, i64::MAX, NOT_NEGATIVE), Preset::Number(100_000))
        .reads(Reads::Detail),
    flag("can_create_group", true).reads(Reads::Detail),
    flag("external", false).reads(Reads::Detail),
    minutes("shared_runners_minutes_limit"),
    minutes("extra_shared_runners_minutes_limit"),
    // Only administrators read it: see `users`.
    row("note", Kind::Text(65_535), Preset::Null).reads(Reads::Never),
];

/// A text of a user's profile.
const fn profile(name: &'static str) -> Attribute {
    row(name, Kind::Text(255), Preset::Text(""))
}

/// A limit of a user's own runners.
const fn minutes(name: &'static str) -> Attribute {
    row(name, Kind::Number(0, i64::MAX, NOT_NEGATIVE), Preset::Null).premium().reads(Reads::Detail)
}

/// How settings are taken from a call: what is not accepted so is dropped without a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taking<'a> {
    pub(crate) route: Route,
    pub(crate) edition: Edition,
    pub(crate) administrator: bool,
    /// Settings that this call cannot change.
    pub(crate) dropped: &'a [&'a str],
}

impl Kept {
    /// The settings of `id` that there are, set or not. Lists leave some out.
    pub(crate) fn shown(
        &self,
        db: &Connection,
        id: i64,
        edition: Edition,
        in_list: bool,
    ) -> Result<Map<String, Value>> {
        let set = self.set(db, id)?;
        let rows = self.rows.iter().filter(|row| {
            row.is_of(edition)
                && row.is_shown_at(edition.release)
                && !(in_list && row.reads == Reads::Detail)
        });
        let value = |row: &Attribute| match row.kind {
            Kind::OppositeOf(target) => (set.get(target) != Some(&Value::Bool(true))).into(),
            _ => set.get(row.name).cloned().unwrap_or_else(|| row.preset()),
        };
        Ok(rows.map(|row| (row.name.to_owned(), value(row))).collect())
    }

    /// The settings of `id` that were ever set.
    pub(crate) fn set(&self, db: &Connection, id: i64) -> Result<Map<String, Value>> {
        let sql = format!("SELECT settings FROM {} WHERE id = ?1", self.table);
        let text: String = db.prepare_cached(&sql)?.query_row([id], |row| row.get(0))?;
        serde_json::from_str(&text).map_err(|error| Failure::internal(&error))
    }

    /// Whether a flag of `id` is on, by itself or because it was never set.
    pub(crate) fn is_on(&self, db: &Connection, id: i64, name: &str) -> Result<bool> {
        let preset = || self.rows.iter().find(|row| row.name == name).map(Attribute::preset);
        let value = self.set(db, id)?.get(name).cloned().or_else(preset);
        Ok(value == Some(Value::Bool(true)))
    }

    /// Keeps one value.
    pub(crate) fn put(
        &self,
        db: &Connection,
        id: i64,
        name: &str,
        value: impl Into<Value>,
    ) -> Result<()> {
        let mut set = self.set(db, id)?;
        set.insert(name.to_owned(), value.into());
        self.store(db, id, set)
    }

    /// Whether a route has a setting.
    pub(crate) fn accepts(&self, name: &str, route: Route, edition: Edition) -> bool {
        let mut rows = self.rows.iter();
        rows.any(|row| row.name == name && row.accepted_on(route) && row.is_of(edition))
    }

    /// Refuses values of a wrong sort, and words that are none of a list. The service looks at those
    /// before everything else.
    pub(crate) fn check(&self, route: Route, edition: Edition, params: &Params) -> Result<()> {
        let rows = self.rows.iter().filter(|row| row.accepted_on(route) && row.is_of(edition));
        for row in rows {
            let Some(value) = params.get(row.name) else { continue };
            if let Kind::OppositeOf(_) = row.kind {
                flag_of(row.name, value)?;
            }
            match settings::plain(row, row.name, value) {
                Err(failure) if failure.body.get("error").is_some() => return Err(failure),
                _ => {}
            }
        }
        Ok(())
    }

    /// Keeps what the call says. Null makes a flag, and what has no value unless it is set, unset.
    pub(crate) fn take(
        &self,
        db: &Connection,
        id: i64,
        how: Taking<'_>,
        params: &Params,
    ) -> Result<()> {
        let mut set = self.set(db, id)?;
        let accepted = self.rows.iter().filter(|row| {
            row.accepted_on(how.route)
                && row.is_of(how.edition)
                && (how.administrator || !row.administrators)
                && !how.dropped.contains(&row.name)
                && !matches!(row.kind, Kind::Elsewhere)
        });
        for row in accepted {
            let Some(value) = params.get(row.name) else { continue };
            if let Kind::OppositeOf(target) = row.kind {
                if let Some(on) = flag_of(row.name, value)? {
                    set.insert(target.to_owned(), (!on).into());
                }
                continue;
            }
            match settings::plain(row, row.name, value)? {
                Some(new) => drop(set.insert(row.name.to_owned(), new)),
                None if matches!(row.kind, Kind::Flag)
                    || row.preset().is_null()
                    || row.preset() == "" =>
                {
                    drop(set.remove(row.name));
                }
                None => {}
            }
        }
        self.store(db, id, set)
    }

    fn store(&self, db: &Connection, id: i64, set: Map<String, Value>) -> Result<()> {
        let sql = format!("UPDATE {} SET settings = ?2 WHERE id = ?1", self.table);
        db.prepare_cached(&sql)?.execute(params![id, Value::Object(set).to_string()])?;
        Ok(())
    }
}
