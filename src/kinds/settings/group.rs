//! The fields of `settings:` of a group.
//!
//! The service silently ignores fields that the tier lacks, that only top-level groups have, or
//! that only administrators may set. The response then lacks the field, and the run reports that it
//! was not saved.

use schemars::JsonSchema;

use super::fields::{FileReference, Visibility};
use crate::field::{When, field};

/// The settings of a group. A setting that is left out is not managed.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GroupSettings {
    /// The display name; it may differ from the last part of the path. Default for a new group: the
    /// last part of the path.
    #[schemars(transform = field().harmless(), length(min = 1, max = 255), example = &"Web team")]
    pub name: Option<String>,
    /// The description, in a sentence or two.
    #[schemars(transform = field().nullable().harmless())]
    pub description: Option<String>,
    /// Who can see the group. Must not be wider than the visibility of the group above.
    #[schemars(transform = field().shows())]
    pub visibility: Option<Visibility>,
    /// The avatar of the group: a file below the manifest folder. `null` removes it (from release
    /// 15.4). The service shows whether there is an avatar, but not which: use `--resend` to
    /// replace it by another file.
    #[schemars(transform = field().upload().read_as("avatar_url").nullable().harmless())]
    pub avatar: Option<FileReference>,

    /// The lowest role that may create projects in the group.
    #[schemars(transform = field().word_since("owner", 17, 7).word_since("administrator", 17, 7).harmless())]
    pub project_creation_level: Option<ProjectCreation>,
    /// The lowest role that may create subgroups.
    #[schemars(transform = field().harmless())]
    pub subgroup_creation_level: Option<SubgroupCreation>,
    /// The name of the default branch of new projects. `null` means the default of the
    /// installation.
    #[schemars(transform = field().nullable().trimmed().since(16, 11).harmless(), length(max = 255), example = &"main")]
    pub default_branch: Option<String>,
    /// The protection of the default branch of new projects: 0 none, 1 partial, 2 full, 3 against
    /// pushes, 4 full after the first push. Owners may set it only if the installation allows that.
    #[schemars(transform = field().weakens_towards_the_last(&["2", "4", "3", "1", "0"]), range(max = 4), example = &2)]
    pub default_branch_protection: Option<u8>,
    /// Whether users may request access.
    #[schemars(transform = field().harmless())]
    pub request_access_enabled: Option<bool>,
    /// The protocols that Git can use for the repositories of the group. Top-level groups only.
    #[schemars(transform = field().top_level().read_if_present().since(16, 9).weakens_towards_the_last(&["ssh", "http", "all"]))]
    pub enabled_git_access_protocol: Option<GitProtocol>,
    /// Whether merging requires a successful pipeline in every project of the group.
    #[schemars(transform = field().premium().on_edit().since(18, 7).weakens(When::Off))]
    pub only_allow_merge_if_pipeline_succeeds: Option<bool>,
    /// Whether a skipped pipeline counts as successful. Requires
    /// `only_allow_merge_if_pipeline_succeeds`.
    #[schemars(transform = field().premium().on_edit().since(18, 7).needs_in_request("only_allow_merge_if_pipeline_succeeds").weakens(When::On))]
    pub allow_merge_on_skipped_pipeline: Option<bool>,
    /// Whether merging requires all discussions to be resolved in every project of the group.
    #[schemars(transform = field().premium().on_edit().since(18, 7).weakens(When::Off))]
    pub only_allow_merge_if_all_discussions_are_resolved: Option<bool>,
    /// Whether projects of this group cannot be shared with other groups.
    #[schemars(transform = field().weakens(When::Off))]
    pub share_with_group_lock: Option<bool>,
    /// Whether this group and those below it can only be shared with groups below it. Top-level
    /// groups only.
    #[schemars(transform = field().top_level().on_edit().read_if_present().since(14, 1).weakens(When::Off))]
    pub prevent_sharing_groups_outside_hierarchy: Option<bool>,
    /// Whether projects of this group cannot have members of their own.
    #[schemars(transform = field().premium().weakens(When::Off))]
    pub membership_lock: Option<bool>,
    /// Whether projects of this group can only be forked into it. Top-level groups only.
    #[schemars(transform = field().top_level().premium().on_edit().weakens(When::Off))]
    pub prevent_forking_outside_group: Option<bool>,
    /// Whether members must use two-factor authentication.
    #[schemars(transform = field().weakens(When::Off))]
    pub require_two_factor_authentication: Option<bool>,
    /// How long members may go without two-factor authentication, in hours.
    #[schemars(transform = field().weakens(When::Higher), example = &48)]
    pub two_factor_grace_period: Option<u32>,
    /// The IP addresses from which the group can be reached, separated by commas: addresses, or
    /// ranges such as `192.0.2.0/24`. Empty means all. Top-level groups only.
    #[schemars(transform = field().top_level().premium().on_edit().since(15, 4).nullable().weakens(When::Wider), regex(pattern = "^[0-9A-Fa-f.:/, ]*$"), example = &"192.0.2.0/24,198.51.100.7")]
    pub ip_restriction_ranges: Option<String>,
    /// The domains of e-mail addresses that members may have, separated by commas. Empty means any.
    /// Top-level groups only.
    #[schemars(transform = field().top_level().premium().on_edit().read_if_present().since(17, 4).nullable().weakens(When::Wider), example = &"example.com")]
    pub allowed_email_domains_list: Option<String>,

    /// Whether projects of the group without a pipeline file are built and deployed automatically.
    /// `null` means the value of the group above.
    #[schemars(transform = field().nullable().harmless())]
    pub auto_devops_enabled: Option<bool>,
    /// Whether projects may store large files (Git LFS). The service shows the effective value.
    #[schemars(transform = field().harmless())]
    pub lfs_enabled: Option<bool>,
    /// Whether members get e-mails about the group. Owners only.
    #[schemars(transform = field().since(16, 6).harmless())]
    pub emails_enabled: Option<bool>,
    /// The old form of `emails_enabled`, and the opposite. `null` means the value of the group
    /// above.
    #[schemars(transform = field().nullable().use_opposite("emails_enabled").harmless())]
    pub emails_disabled: Option<bool>,
    /// Whether users cannot mention the whole group.
    #[schemars(transform = field().nullable().harmless())]
    pub mentions_disabled: Option<bool>,
    /// Whether e-mails about pushes and merge requests contain the diff. The service shows the
    /// value combined with those of the groups above. Owners only.
    #[schemars(transform = field().since(18, 4).harmless())]
    pub show_diff_preview_in_email: Option<bool>,
    /// Whether the service limits the time to render the formulas of a page. Owners only.
    #[schemars(transform = field().on_edit().since(16, 9).harmless())]
    pub math_rendering_limits_enabled: Option<bool>,
    /// Whether groups and projects below cannot change `math_rendering_limits_enabled`. Owners
    /// only.
    #[schemars(transform = field().on_edit().since(16, 9).harmless())]
    pub lock_math_rendering_limits_enabled: Option<bool>,
    /// Whether the group has a wiki.
    #[schemars(transform = field().premium().read_if_present().since(15, 10).shows())]
    pub wiki_access_level: Option<WikiAccess>,
    /// Whether instance runners take jobs of the group, and whether subgroups and projects may
    /// change that. A change immediately applies to everything below. The service shows it from
    /// release 16.2 on.
    #[schemars(transform = field().on_edit().read_if_present().word_until("disabled_with_override", 18, 9).weakens_towards_the_last(&["disabled_and_unoverridable", "disabled_and_overridable", "disabled_with_override", "enabled"]))]
    pub shared_runners_setting: Option<SharedRunners>,
    /// How many minutes per month the group may use instance runners: 0 means no limit, `null` the
    /// default of the installation. Top-level groups only.
    #[schemars(transform = field().top_level().premium().administrators().nullable().harmless())]
    pub shared_runners_minutes_limit: Option<u32>,
    /// Additional minutes, available once.
    #[schemars(transform = field().premium().administrators().nullable().harmless())]
    pub extra_shared_runners_minutes_limit: Option<u32>,
    /// The id of the project whose files are templates for the group.
    #[schemars(transform = field().premium().on_edit().read_if_present().nullable().harmless(), range(min = 1))]
    pub file_template_project_id: Option<u64>,
}

/// The lowest role that may create projects.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum ProjectCreation {
    /// Nobody.
    Noone,
    /// Owners.
    Owner,
    /// Maintainers.
    Maintainer,
    /// Developers.
    Developer,
    /// Administrators.
    Administrator,
}

/// The lowest role that may create subgroups.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum SubgroupCreation {
    /// Owners.
    Owner,
    /// Maintainers.
    Maintainer,
}

/// Who can use the wiki.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum WikiAccess {
    /// Nobody.
    Disabled,
    /// Members.
    Private,
    /// Everybody who can see the group.
    Enabled,
}

/// Whether instance runners take jobs.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum SharedRunners {
    /// They do.
    Enabled,
    /// They do not, but groups and projects below may change that.
    DisabledAndOverridable,
    /// They do not, and nothing below may change that.
    DisabledAndUnoverridable,
    /// The old name of `disabled_and_overridable`.
    DisabledWithOverride,
}

/// The protocols that Git can use for repositories.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum GitProtocol {
    /// Both.
    All,
    /// SSH.
    Ssh,
    /// HTTP(S).
    Http,
}
