//! What people may write below `settings:` of a group, field by field.
//!
//! The service silently drops some of what it is sent: what the tier lacks, what only a top-level
//! group has, and what only administrators may set. Then the answer lacks it, and the run says that
//! it was not saved.

use schemars::JsonSchema;

use super::fields::{FileReference, Visibility};
use crate::field::{FIELD, When};

/// The settings of a group. One that is not written is not managed.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GroupSettings {
    /// The name that people see; it may differ from the last part of the path. A new group without
    /// one is called like that part.
    #[schemars(transform = FIELD.harmless(), length(min = 1, max = 255), example = &"Web team")]
    pub name: Option<String>,
    /// What the group is about, in a sentence or two.
    #[schemars(transform = FIELD.nullable().harmless())]
    pub description: Option<String>,
    /// Who can see the group. It is never wider than that of the group above.
    #[schemars(transform = FIELD.bounded_by("visibility").shows())]
    pub visibility: Option<Visibility>,
    /// The picture of the group, as a file below the manifest folder. `null` removes it (from
    /// release 15.4). The service shows whether there is one, and not which: another picture in the
    /// place of one that is there is sent with `--resend`.
    #[schemars(transform = FIELD.upload().read_as("avatar_url").nullable().harmless())]
    pub avatar: Option<FileReference>,

    /// From which level on members may create projects in the group.
    #[schemars(transform = FIELD.word_since("owner", 17, 7).word_since("administrator", 17, 7).harmless())]
    pub project_creation_level: Option<ProjectCreation>,
    /// From which level on members may create subgroups.
    #[schemars(transform = FIELD.harmless())]
    pub subgroup_creation_level: Option<SubgroupCreation>,
    /// The first branch of new projects. `null` is what the installation says.
    #[schemars(transform = FIELD.nullable().since(16, 11).harmless(), length(max = 255), example = &"main")]
    pub default_branch: Option<String>,
    /// How the default branch of a new project is protected: 0 not at all, 1 partly, 2 fully, 3
    /// against pushes, 4 fully after the first push. Who owns a group may set it only if the
    /// installation allows that.
    #[schemars(transform = FIELD.weakens_towards_the_last(&["2", "4", "3", "1", "0"]), range(max = 4), example = &2)]
    pub default_branch_protection: Option<u8>,
    /// Whether users may ask for access.
    #[schemars(transform = FIELD.harmless())]
    pub request_access_enabled: Option<bool>,
    /// By which protocols Git reaches the repositories of the group. Of top-level groups only.
    #[schemars(transform = FIELD.read_if_present().since(16, 9).weakens_towards_the_last(&["ssh", "http", "all"]))]
    pub enabled_git_access_protocol: Option<GitProtocol>,
    /// Whether merging waits for a successful pipeline in every project of the group.
    #[schemars(transform = FIELD.premium().on_edit().since(18, 7).weakens(When::Off))]
    pub only_allow_merge_if_pipeline_succeeds: Option<bool>,
    /// Whether a skipped pipeline counts as a successful one. Only together with
    /// `only_allow_merge_if_pipeline_succeeds`.
    #[schemars(transform = FIELD.premium().on_edit().since(18, 7).needs_in_request("only_allow_merge_if_pipeline_succeeds").weakens(When::On))]
    pub allow_merge_on_skipped_pipeline: Option<bool>,
    /// Whether merging waits until every discussion is resolved in every project of the group.
    #[schemars(transform = FIELD.premium().on_edit().since(18, 7).weakens(When::Off))]
    pub only_allow_merge_if_all_discussions_are_resolved: Option<bool>,
    /// Whether the projects of this group can no longer be shared with other groups.
    #[schemars(transform = FIELD.weakens(When::Off))]
    pub share_with_group_lock: Option<bool>,
    /// Whether the groups that this one and those below it may be shared with are below it too. Of
    /// top-level groups only.
    #[schemars(transform = FIELD.on_edit().read_if_present().since(14, 1).weakens(When::Off))]
    pub prevent_sharing_groups_outside_hierarchy: Option<bool>,
    /// Whether members of the projects of this group all come from the group.
    #[schemars(transform = FIELD.premium().weakens(When::Off))]
    pub membership_lock: Option<bool>,
    /// Whether projects of this group are forked only into it. Of top-level groups only.
    #[schemars(transform = FIELD.premium().on_edit().weakens(When::Off))]
    pub prevent_forking_outside_group: Option<bool>,
    /// Whether members have to use two-factor authentication.
    #[schemars(transform = FIELD.weakens(When::Off))]
    pub require_two_factor_authentication: Option<bool>,
    /// How long members may go without two-factor authentication, in hours.
    #[schemars(transform = FIELD.weakens(When::Higher), example = &48)]
    pub two_factor_grace_period: Option<u32>,
    /// The addresses from which the group can be reached, with commas in between: addresses, or
    /// ranges such as `192.0.2.0/24`. Empty: all. Of top-level groups only.
    #[schemars(transform = FIELD.premium().on_edit().since(15, 4).nullable().weakens(When::Wider), example = &"192.0.2.0/24,198.51.100.7")]
    pub ip_restriction_ranges: Option<String>,
    /// The domains that members' e-mail addresses have to be of, with commas in between. Empty: any.
    /// Of top-level groups only.
    #[schemars(transform = FIELD.premium().on_edit().read_if_present().since(17, 4).nullable().weakens(When::Wider), example = &"example.com")]
    pub allowed_email_domains_list: Option<String>,

    /// Whether projects of the group without a pipeline file are built and deployed automatically.
    /// `null` leaves it to the group above.
    #[schemars(transform = FIELD.nullable().harmless())]
    pub auto_devops_enabled: Option<bool>,
    /// Whether projects may keep large files. The service shows what holds in the end.
    #[schemars(transform = FIELD.harmless())]
    pub lfs_enabled: Option<bool>,
    /// Whether members are sent e-mails about the group. Owners only.
    #[schemars(transform = FIELD.since(16, 6).harmless())]
    pub emails_enabled: Option<bool>,
    /// The old form of `emails_enabled`, and the opposite. `null` leaves it to the group above.
    #[schemars(transform = FIELD.nullable().use_opposite("emails_enabled").harmless())]
    pub emails_disabled: Option<bool>,
    /// Whether the group as a whole cannot be mentioned.
    #[schemars(transform = FIELD.nullable().harmless())]
    pub mentions_disabled: Option<bool>,
    /// Whether e-mails about pushes and merge requests show what changed. The service shows what
    /// holds together with the groups above. Owners only.
    #[schemars(transform = FIELD.bounded_by("show_diff_preview_in_email").since(18, 4).harmless())]
    pub show_diff_preview_in_email: Option<bool>,
    /// Whether the service limits how much time the formulas of a page may take. Owners only.
    #[schemars(transform = FIELD.on_edit().since(16, 9).harmless())]
    pub math_rendering_limits_enabled: Option<bool>,
    /// Whether nothing below the group may say otherwise about `math_rendering_limits_enabled`. Owners
    /// only.
    #[schemars(transform = FIELD.on_edit().since(16, 9).harmless())]
    pub lock_math_rendering_limits_enabled: Option<bool>,
    /// Whether the group has a wiki.
    #[schemars(transform = FIELD.premium().read_if_present().since(15, 10).shows())]
    pub wiki_access_level: Option<WikiAccess>,
    /// Whether runners of the whole installation take jobs of the group, and whether subgroups and
    /// projects may say otherwise. A change is carried to everything below at once. The service
    /// shows it from release 16.2 on.
    #[schemars(transform = FIELD.bounded_by("shared_runners_setting").on_edit().read_if_present().word_until("disabled_with_override", 18, 9).harmless())]
    pub shared_runners_setting: Option<SharedRunners>,
    /// How many minutes a month the group may use runners of the whole installation: 0 without
    /// limit, `null` what the installation allows. Of top-level groups only.
    #[schemars(transform = FIELD.premium().administrators().nullable().harmless())]
    pub shared_runners_minutes_limit: Option<u32>,
    /// How many minutes there are besides, once.
    #[schemars(transform = FIELD.premium().administrators().nullable().harmless())]
    pub extra_shared_runners_minutes_limit: Option<u32>,
    /// The id of the project whose files serve as templates in the group.
    #[schemars(transform = FIELD.premium().on_edit().read_if_present().nullable().harmless(), range(min = 1))]
    pub file_template_project_id: Option<u64>,
}

/// From which level on members may create projects.
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

/// From which level on members may create subgroups.
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
    /// Whoever sees the group.
    Enabled,
}

/// Whether runners of the installation take jobs.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum SharedRunners {
    /// They do.
    Enabled,
    /// They do not, and what is below may say otherwise.
    DisabledAndOverridable,
    /// They do not, anywhere below.
    DisabledAndUnoverridable,
    /// The old name of `disabled_and_overridable`.
    DisabledWithOverride,
}

/// By which protocols Git reaches repositories.
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
