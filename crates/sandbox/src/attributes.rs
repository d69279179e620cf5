//! Every attribute of a project, one row each: the sandbox's own reading of the reference (2, 4.3;
//! 1, 2.8).
//!
//! A row says where an attribute is accepted, what its values are, what a new project has, and
//! under which key it is read back. [`super::settings`] works on these rows; no handler knows an
//! attribute that is here. Where the reference names no default, the row has the real service's.

use serde_json::{Value, json};

use undrift_release::{REFERENCE, Release};

use super::access::{DEVELOPER, MAINTAINER};
use super::profile::OBSERVED;

/// What the service is licensed for. A higher tier includes the lower ones.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Deserialize,
    serde::Serialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Attributes and operations without a mark in the reference.
    Free,
    /// Also those marked PREMIUM, push rules among them.
    #[default]
    Premium,
    /// Also those marked ULTIMATE.
    Ultimate,
}

impl Tier {
    /// The tier's name in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Premium => "premium",
            Self::Ultimate => "ultimate",
        }
    }
}

/// What decides on the attributes that a service has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edition {
    pub(crate) tier: Tier,
    pub(crate) release: Release,
}

/// The three routes that take attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// POST /projects
    Create,
    /// POST /projects/user/:user_id
    CreateForUser,
    /// PUT /projects/:id
    Edit,
}

/// What the values of an attribute are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Flag,
    /// A text of at most this many characters; null clears it.
    Text(usize),
    /// A text of at most this many characters that is never cleared: null and blank leave it as it
    /// is.
    Name(usize),
    /// An integer within these bounds, and the service's complaint about others; the usual one names
    /// the bound.
    Number(i64, i64, &'static str),
    /// The same, and null clears it.
    Count(i64, i64, &'static str),
    /// A text that is a regular expression in RE2 syntax, of at most this many characters.
    Pattern(usize),
    /// The path of a file: not a path of the root, nor of what is above.
    File(usize),
    OneOf(&'static [&'static str]),
    /// One of these integers.
    Choice(&'static [i64]),
    /// A set of words, as an array or a text with commas.
    Topics,
    /// The object of the container registry's cleanup.
    CleanupPolicy,
    /// What the subject of a token consists of: an array of these words, `project_path` first.
    Claims(&'static [&'static str]),
    /// The deprecated boolean of an access level: false is `disabled`.
    TwinOf(&'static str),
    /// Another name of an attribute.
    AliasOf(&'static str),
    /// The opposite of a flag.
    OppositeOf(&'static str),
    /// A column of the project, or a parameter of one route: its handler deals with it.
    Elsewhere,
}

/// Under which key an attribute is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    Same,
    As(&'static str),
    /// As [`Reads::Same`], though the reference does not list it. Its list is not the whole (1,
    /// 2.8: "the complete set of fields a given role sees: not shown"), and the real service shows
    /// it.
    Unlisted,
    /// As [`Reads::Same`], in the simple form as well.
    Simple,
    /// As [`Reads::Same`], but only where a thing is answered alone, not in lists.
    Detail,
    /// In no answer, or put there by a handler.
    Never,
}

/// When, and to whom, an attribute is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Always,
    /// To who may read the repository.
    WithCode,
    /// To who may use issues.
    WithIssues,
    /// To who may read merge requests.
    WithMergeRequests,
    /// To who may administer issues.
    ByHelpers,
    /// While the project mirrors another repository.
    WhileMirroring,
    InForks,
    /// To those who have at least this level.
    By(i64),
    ByAdministrators,
}

/// What null means where a project is edited. A blank text is null where a text is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Null {
    /// The column takes none: nothing of the request is saved, and nobody is told.
    Unsaved,
    /// The same, of a blank text as well: no list of values is checked before.
    BlankUnsaved,
    /// It is stored and read back.
    Stored,
    /// Nothing changes.
    Kept,
    /// The preset.
    Preset,
    /// No.
    False,
    /// The last of its values.
    Last,
    /// It is stored, and a blank text is what holds above.
    Above(bool),
    /// The parameter has to have a value.
    Refused,
    /// The model wants one out of its list.
    Unlisted,
}

/// What a new project has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Preset {
    Null,
    Flag(bool),
    Number(i64),
    Text(&'static str),
    /// No topics.
    Nothing,
    /// The disabled cleanup policy.
    Policy,
    /// The usual subject of a token.
    Claims,
}

/// One attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    pub(crate) tier: Tier,
    /// `C`, `U` and `E` for the three routes that accept it; `c` where a create does although the
    /// reference does not say so.
    on: &'static str,
    pub(crate) kind: Kind,
    pub(crate) reads: Reads,
    pub(crate) seen: Seen,
    /// Everybody reads it before this release.
    pub(crate) guarded_since: Release,
    pub(crate) null: Null,
    /// A create does not take it any more, known from [`OBSERVED`] on.
    edited_only: bool,
    /// How the model calls it where it refuses a value.
    pub(crate) blamed: &'static str,
    preset: Preset,
    /// Dropped without a word when anybody but an administrator sends it.
    pub(crate) administrators: bool,
    /// The same for anybody but an owner.
    pub(crate) owners: bool,
    /// The first release that has it, and the first that has it no more.
    since: Release,
    until: Option<Release>,
    /// The first release that reads it back, if that is a later one.
    shown_since: Release,
}

impl Attribute {
    pub(crate) fn accepted_on(&self, route: Route) -> bool {
        self.on.contains(match route {
            Route::Create => 'C',
            Route::CreateForUser => 'U',
            Route::Edit => 'E',
        })
    }

    /// Whether a create accepts it although the reference does not say so.
    pub(crate) fn accepted_on_create_too(&self) -> bool {
        self.on.contains('c')
    }

    /// Whether a create leaves it out that took it once.
    pub(crate) fn is_edited_only_at(&self, release: Release) -> bool {
        self.edited_only && release >= OBSERVED
    }

    /// Whether there is such an attribute.
    pub(crate) fn is_of(&self, edition: Edition) -> bool {
        self.tier <= edition.tier
            && (!self.since.is_late() || self.since <= edition.release)
            && self.until.is_none_or(|until| edition.release < until)
    }

    /// Whether it is read back at a release that has it.
    pub(crate) fn is_shown_at(&self, release: Release) -> bool {
        self.reads != Reads::Never && self.shown_since <= release
    }

    /// The value in a new project.
    pub(crate) fn preset(&self) -> Value {
        match self.preset {
            Preset::Null => Value::Null,
            Preset::Flag(flag) => flag.into(),
            Preset::Number(number) => number.into(),
            Preset::Text(text) => text.into(),
            Preset::Nothing => json!([]),
            Preset::Policy => json!({
                "cadence": "1d", "enabled": false, "keep_n": 10, "older_than": "90d",
                "name_regex": ".*", "name_regex_keep": null,
            }),
            Preset::Claims => json!(["project_path", "ref_type", "ref"]),
        }
    }

    pub(super) const fn on(mut self, routes: &'static str) -> Self {
        self.on = routes;
        self
    }

    pub(super) const fn premium(mut self) -> Self {
        self.tier = Tier::Premium;
        self
    }

    pub(super) const fn ultimate(mut self) -> Self {
        self.tier = Tier::Ultimate;
        self
    }

    pub(super) const fn reads(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    const fn unlisted(self) -> Self {
        self.reads(Reads::Unlisted)
    }

    const fn null(mut self, null: Null) -> Self {
        self.null = null;
        self
    }

    const fn edited_only(mut self) -> Self {
        self.edited_only = true;
        self
    }

    const fn blamed(mut self, blamed: &'static str) -> Self {
        self.blamed = blamed;
        self
    }

    const fn guarded_since(mut self, major: u16, minor: u16) -> Self {
        self.guarded_since = Release::new(major, minor);
        self
    }

    const fn seen(mut self, seen: Seen) -> Self {
        self.seen = seen;
        self
    }

    /// One of the settings of CI/CD, which only Maintainers read.
    const fn of_ci(self) -> Self {
        self.seen(Seen::By(MAINTAINER))
    }

    pub(super) const fn since(self, major: u16, minor: u16) -> Self {
        self.from(Release::new(major, minor))
    }

    const fn from(mut self, release: Release) -> Self {
        self.since = release;
        self
    }

    pub(super) const fn until(mut self, major: u16, minor: u16) -> Self {
        self.until = Some(Release::new(major, minor));
        self
    }

    const fn shown_since(mut self, major: u16, minor: u16) -> Self {
        self.shown_since = Release::new(major, minor);
        self
    }

    const fn owners(mut self) -> Self {
        self.owners = true;
        self
    }

    pub(super) const fn administrators(mut self) -> Self {
        self.administrators = true;
        self
    }
}

pub(super) const fn row(name: &'static str, kind: Kind, preset: Preset) -> Attribute {
    Attribute {
        name,
        tier: Tier::Free,
        on: "CUE",
        kind,
        reads: Reads::Same,
        seen: Seen::Always,
        guarded_since: REFERENCE,
        null: Null::Unsaved,
        edited_only: false,
        blamed: name,
        preset,
        administrators: false,
        owners: false,
        since: REFERENCE,
        until: None,
        shown_since: REFERENCE,
    }
}

pub(super) const fn flag(name: &'static str, preset: bool) -> Attribute {
    row(name, Kind::Flag, Preset::Flag(preset))
}

pub(super) const fn text(name: &'static str, most: usize) -> Attribute {
    row(name, Kind::Text(most), Preset::Null)
}

pub(super) const fn one_of(
    name: &'static str,
    values: &'static [&'static str],
    preset: &'static str,
) -> Attribute {
    row(name, Kind::OneOf(values), Preset::Text(preset))
}

/// An access level of a feature.
const fn level(name: &'static str) -> Attribute {
    one_of(name, LEVELS, "enabled").null(Null::Kept)
}

/// A flag that is in no answer.
const fn hidden_flag(name: &'static str) -> Attribute {
    row(name, Kind::Flag, Preset::Null).reads(Reads::Never).null(Null::Kept)
}

const fn twin(name: &'static str, of: &'static str) -> Attribute {
    row(name, Kind::TwinOf(of), Preset::Null)
}

const fn elsewhere(name: &'static str) -> Attribute {
    row(name, Kind::Elsewhere, Preset::Null).reads(Reads::Never)
}

const LEVELS: &[&str] = &["disabled", "private", "enabled"];
pub(super) const PUBLIC_LEVELS: &[&str] = &["disabled", "private", "enabled", "public"];

/// The values of `visibility`.
pub(crate) const VISIBILITIES: &[&str] = &["private", "internal", "public"];

const SHORT: usize = 255;
/// The limit of the service's longer texts.
const LONG: usize = 2_000;
const TEMPLATE: usize = 500;
const DOCUMENT: usize = 1_000_000;
/// The complaint that names the bound.
pub(crate) const USUAL: &str = "";

/// All attributes of the reference, in its order.
const ATTRIBUTES: &[Attribute] = &[
    elsewhere("name"),
    elsewhere("path"),
    elsewhere("id").on("E"),
    elsewhere("namespace_id").on("CU"),
    text("description", LONG).reads(Reads::Simple),
    row("default_branch", Kind::Name(SHORT), Preset::Null)
        .reads(Reads::Simple)
        .seen(Seen::WithCode),
    elsewhere("visibility"),
    elsewhere("initialize_with_readme").on("CU"),
    elsewhere("import_url"),
    elsewhere("template_name").on("CU"),
    elsewhere("template_project_id").on("C").premium(),
    elsewhere("use_custom_template").on("CU").premium(),
    elsewhere("group_with_project_templates_id").on("CU").premium(),
    row("topics", Kind::Topics, Preset::Nothing).reads(Reads::Simple),
    elsewhere("tag_list"),
    elsewhere("avatar"),
    row("allow_merge_on_skipped_pipeline", Kind::Flag, Preset::Null).null(Null::Stored),
    flag("only_allow_merge_if_all_status_checks_passed", false).ultimate(),
    flag("only_allow_merge_if_all_discussions_are_resolved", false).null(Null::Stored),
    flag("only_allow_merge_if_pipeline_succeeds", false),
    row("approvals_before_merge", Kind::Number(i64::MIN, i64::MAX, USUAL), Preset::Number(0))
        .null(Null::Refused)
        .premium(),
    one_of("merge_method", &["merge", "rebase_merge", "ff"], "merge").null(Null::Kept),
    text("merge_commit_template", TEMPLATE)
        .on("cUE")
        .blamed("project_setting.merge_commit_template"),
    text("squash_commit_template", TEMPLATE)
        .on("cUE")
        .blamed("project_setting.squash_commit_template"),
    one_of("squash_option", &["never", "always", "default_on", "default_off"], "default_off")
        .null(Null::Stored),
    text("suggestion_commit_message", SHORT).on("cUE"),
    text("issue_branch_template", SHORT).on("cUE").blamed("project_setting.issue_branch_template"),
    flag("merge_pipelines_enabled", false).on("CE").edited_only().unlisted().null(Null::False),
    flag("merge_trains_enabled", false).on("CE").edited_only().unlisted().null(Null::False),
    flag("remove_source_branch_after_merge", true).null(Null::Stored),
    flag("resolve_outdated_diff_discussions", false).null(Null::Stored),
    flag("autoclose_referenced_issues", true).null(Null::Preset),
    flag("printing_merge_request_link_enabled", true),
    flag("mr_default_target_self", false)
        .on("Ec")
        .blamed("project_setting.mr_default_target_self")
        .seen(Seen::InForks),
    one_of("auto_cancel_pending_pipelines", &["enabled", "disabled"], "enabled").of_ci(),
    flag("auto_devops_enabled", true).of_ci().null(Null::Preset),
    one_of(
        "auto_devops_deploy_strategy",
        &["continuous", "manual", "timed_incremental"],
        "continuous",
    )
    .of_ci(),
    one_of("build_git_strategy", &["fetch", "clone"], "fetch").unlisted().of_ci().null(Null::Last),
    row(
        "build_timeout",
        // Ten minutes to less than a month, in seconds.
        Kind::Number(600, 2_629_745, "needs to be between 10 minutes and 1 month"),
        Preset::Number(3_600),
    )
    .of_ci(),
    row("ci_config_path", Kind::File(SHORT), Preset::Null).seen(Seen::WithCode),
    row("ci_default_git_depth", Kind::Number(0, 1_000, USUAL), Preset::Number(20))
        .edited_only()
        .null(Null::Stored)
        .blamed("ci_cd_settings.default_git_depth")
        .on("cE")
        .of_ci(),
    flag("ci_forward_deployment_enabled", true).on("E").of_ci().null(Null::Stored),
    flag("ci_allow_fork_pipelines_to_run_in_parent_project", true).on("E").of_ci(),
    flag("ci_separated_caches", true).on("E").of_ci(),
    flag("keep_latest_artifact", true).on("cE").edited_only().of_ci().guarded_since(17, 1),
    flag("public_builds", true).reads(Reads::As("public_jobs")),
    flag("restrict_user_defined_variables", false).on("E").of_ci().null(Null::Kept),
    flag("shared_runners_enabled", true),
    row("container_expiration_policy_attributes", Kind::CleanupPolicy, Preset::Policy)
        .on("CE")
        .reads(Reads::As("container_expiration_policy")),
    level("analytics_access_level"),
    level("builds_access_level"),
    level("container_registry_access_level"),
    level("forking_access_level"),
    level("issues_access_level"),
    level("merge_requests_access_level"),
    level("repository_access_level"),
    level("snippets_access_level"),
    level("wiki_access_level"),
    level("releases_access_level").unlisted(),
    level("environments_access_level").unlisted(),
    level("feature_flags_access_level").unlisted(),
    level("infrastructure_access_level").unlisted(),
    level("monitor_access_level").unlisted(),
    level("operations_access_level").unlisted().until(16, 0),
    one_of("pages_access_level", PUBLIC_LEVELS, "private").null(Null::Kept),
    // The descriptions differ on `public` (reference 2, 4.3), so both readings are accepted.
    one_of("requirements_access_level", PUBLIC_LEVELS, "enabled").null(Null::Kept),
    one_of("security_and_compliance_access_level", LEVELS, "private").null(Null::Kept),
    twin("container_registry_enabled", "container_registry_access_level"),
    twin("issues_enabled", "issues_access_level"),
    twin("jobs_enabled", "builds_access_level"),
    twin("merge_requests_enabled", "merge_requests_access_level"),
    twin("snippets_enabled", "snippets_access_level"),
    twin("wiki_enabled", "wiki_access_level"),
    row("emails_disabled", Kind::Flag, Preset::Null).unlisted().owners().null(Null::False),
    flag("enforce_auth_checks_on_uploads", true).on("cUE"),
    text("external_authorization_classification_label", SHORT).premium(),
    flag("lfs_enabled", true).null(Null::Preset),
    flag("packages_enabled", true).null(Null::False),
    flag("request_access_enabled", true),
    flag("service_desk_enabled", false).on("cE").null(Null::False),
    row("repository_storage", Kind::Name(SHORT), Preset::Text("default"))
        .seen(Seen::ByAdministrators)
        .administrators(),
    flag("mirror", false).premium(),
    flag("mirror_trigger_builds", false).premium().seen(Seen::WhileMirroring),
    row("mirror_overwrites_diverged_branches", Kind::Flag, Preset::Null)
        .on("E")
        .premium()
        .seen(Seen::WhileMirroring),
    row("mirror_user_id", Kind::Number(1, i64::MAX, "is invalid"), Preset::Null)
        .on("E")
        .premium()
        .seen(Seen::WhileMirroring)
        .administrators(),
    row("only_mirror_protected_branches", Kind::Flag, Preset::Null)
        .on("E")
        .premium()
        .seen(Seen::WhileMirroring),
    text("issues_template", DOCUMENT).on("E").premium().seen(Seen::WithIssues),
    text("merge_requests_template", DOCUMENT).on("E").premium().seen(Seen::WithMergeRequests),
];

/// What later releases brought (beyond: releases), as far as it does not depend on a flag that is
/// off, on a hosted service, or on what nobody could confirm.
const LATER: &[Attribute] = &[
    row("emails_enabled", Kind::OppositeOf("emails_disabled"), Preset::Null).owners().since(16, 3),
    row("public_jobs", Kind::AliasOf("public_builds"), Preset::Null)
        .reads(Reads::Never)
        .since(16, 5),
    flag("group_runners_enabled", true).since(15, 9).of_ci(),
    flag("show_diff_preview_in_email", true).since(16, 3).shown_since(18, 4),
    flag("warn_about_potentially_unwanted_characters", true).since(16, 3),
    level("model_experiments_access_level").since(16, 7),
    level("model_registry_access_level").since(16, 7),
    // Without a level of its own it follows the old flag and the visibility.
    row(PACKAGES_LEVEL, Kind::OneOf(PUBLIC_LEVELS), Preset::Text("enabled"))
        .null(Null::Kept)
        .since(18, 4),
    one_of("repository_object_format", &["sha1", "sha256"], "sha1").on("CU").since(16, 9),
    one_of(
        "resource_group_default_process_mode",
        &["unordered", "oldest_first", "newest_first", "newest_ready_first"],
        "unordered",
    )
    .of_ci()
    .since(18, 4),
    flag("ci_forward_deployment_rollback_allowed", true).on("E").since(16, 9).of_ci(),
    row(
        "ci_id_token_sub_claim_components",
        Kind::Claims(&["project_path", "ref_type", "ref"]),
        Preset::Claims,
    )
    .on("E")
    .of_ci()
    .blamed("ci_cd_settings.id_token_sub_claim_components")
    .since(17, 10),
    one_of(OVERRIDE_ROLE, &["owner", "maintainer", "developer", "no_one_allowed"], "developer")
        .on("E")
        .of_ci()
        .since(17, 1),
    flag("ci_push_repository_for_job_token_allowed", false).on("E").since(17, 2).of_ci(),
    row(
        PIPELINES_REMOVED,
        // A day to a year, in seconds.
        Kind::Count(86_400, 31_556_952, "must be between 1 day and 1 year"),
        Preset::Null,
    )
    .blamed("ci_cd_settings.delete_pipelines_in_seconds")
    .on("E")
    .of_ci()
    .since(17, 11),
    row("max_artifacts_size", Kind::Count(1, i64::MAX, "must be greater than 0"), Preset::Null)
        .on("E")
        .administrators()
        .since(17, 9),
    flag("allow_pipeline_trigger_approve_deployment", false).on("E").premium().since(17, 0),
    one_of(
        "ci_restrict_pipeline_cancellation_role",
        &["developer", "maintainer", "no_one"],
        "developer",
    )
    .on("E")
    .of_ci()
    .null(Null::BlankUnsaved)
    .premium()
    .since(16, 8),
    flag("prevent_merge_without_jira_issue", false).ultimate().since(16, 7),
    // Known from release 18.9 alone.
    row("merge_request_title_regex", Kind::Pattern(SHORT), Preset::Null)
        .blamed("project_setting.merge_request_title_regex")
        .from(OBSERVED),
    text("merge_request_title_regex_description", SHORT)
        .blamed("project_setting.merge_request_title_regex_description")
        .from(OBSERVED),
    flag("merge_trains_skip_train_allowed", false)
        .on("E")
        .premium()
        .null(Null::Unlisted)
        .blamed("ci_cd_settings.merge_trains_skip_train_allowed")
        .from(OBSERVED),
    flag("spp_repository_pipeline_access", true).ultimate().null(Null::Above(false)).from(OBSERVED),
    flag("duo_remote_flows_enabled", true).premium().null(Null::Above(true)).since(18, 3),
    row("mirror_branch_regex", Kind::Pattern(SHORT), Preset::Null)
        .on("E")
        .reads(Reads::Never)
        .premium()
        .since(17, 6),
    row("fallback_approvals_required", Kind::Number(0, i64::MAX, USUAL), Preset::Null)
        .on("E")
        .reads(Reads::Never)
        .premium()
        .from(OBSERVED),
    // Taken where its service is not there, and without effect.
    hidden_flag("auto_duo_code_review_enabled").premium().since(18, 0),
    hidden_flag("web_based_commit_signing_enabled").since(18, 2),
    flag("duo_foundational_flows_enabled", true).on("").premium().since(18, 7),
    flag("duo_sast_fp_detection_enabled", false).ultimate().since(18, 7),
    flag("duo_sast_vr_workflow_enabled", false).ultimate().from(OBSERVED),
    flag("pre_receive_secret_detection_enabled", false)
        .on("")
        .ultimate()
        .seen(Seen::By(DEVELOPER))
        .since(17, 3),
    flag("secret_push_protection_enabled", false)
        .on("")
        .ultimate()
        .seen(Seen::By(DEVELOPER))
        .since(17, 9),
];

/// One of these has to be in an edit; others may stand beside it. In the order in which the service
/// names them, twice where it does.
pub(super) const ENOUGH: &[&str] = &[
    "allow_merge_on_skipped_pipeline",
    "analytics_access_level",
    "autoclose_referenced_issues",
    "auto_devops_enabled",
    "auto_devops_deploy_strategy",
    "auto_cancel_pending_pipelines",
    "build_git_strategy",
    "build_timeout",
    "builds_access_level",
    "ci_config_path",
    "ci_default_git_depth",
    "ci_allow_fork_pipelines_to_run_in_parent_project",
    "ci_id_token_sub_claim_components",
    "ci_forward_deployment_enabled",
    "ci_forward_deployment_rollback_allowed",
    "ci_separated_caches",
    "container_registry_access_level",
    "container_expiration_policy_attributes",
    "default_branch",
    "description",
    "emails_disabled",
    "emails_enabled",
    "forking_access_level",
    "issues_access_level",
    "lfs_enabled",
    "merge_pipelines_enabled",
    "merge_requests_access_level",
    "merge_requests_template",
    "merge_trains_enabled",
    "merge_method",
    "merge_request_title_regex",
    "merge_request_title_regex_description",
    "name",
    "only_allow_merge_if_all_discussions_are_resolved",
    "only_allow_merge_if_pipeline_succeeds",
    "package_registry_access_level",
    "pages_access_level",
    "path",
    "printing_merge_request_link_enabled",
    "public_builds",
    "public_jobs",
    "remove_source_branch_after_merge",
    "repository_access_level",
    "request_access_enabled",
    "resolve_outdated_diff_discussions",
    "restrict_user_defined_variables",
    "show_diff_preview_in_email",
    "security_and_compliance_access_level",
    "squash_option",
    "shared_runners_enabled",
    "group_runners_enabled",
    "resource_group_default_process_mode",
    "snippets_access_level",
    "tag_list",
    "topics",
    "visibility",
    "wiki_access_level",
    "avatar",
    "suggestion_commit_message",
    "merge_commit_template",
    "squash_commit_template",
    "issue_branch_template",
    "repository_storage",
    "packages_enabled",
    "service_desk_enabled",
    "keep_latest_artifact",
    "mr_default_target_self",
    "enforce_auth_checks_on_uploads",
    "releases_access_level",
    "environments_access_level",
    "feature_flags_access_level",
    "infrastructure_access_level",
    "monitor_access_level",
    "operations_access_level",
    "model_experiments_access_level",
    "model_registry_access_level",
    "warn_about_potentially_unwanted_characters",
    "ci_pipeline_variables_minimum_override_role",
    "ci_push_repository_for_job_token_allowed",
    "ci_delete_pipelines_in_seconds",
    "max_artifacts_size",
    "issues_enabled",
    "jobs_enabled",
    "merge_requests_enabled",
    "wiki_enabled",
    "snippets_enabled",
    "container_registry_enabled",
    "auto_duo_code_review_enabled",
    "duo_remote_flows_enabled",
    "duo_sast_fp_detection_enabled",
    "duo_sast_vr_workflow_enabled",
    "allow_pipeline_trigger_approve_deployment",
    "only_allow_merge_if_all_status_checks_passed",
    "approvals_before_merge",
    "external_authorization_classification_label",
    "fallback_approvals_required",
    "import_url",
    "issues_template",
    "mirror",
    "merge_requests_template",
    "merge_pipelines_enabled",
    "merge_trains_enabled",
    "merge_trains_skip_train_allowed",
    "requirements_access_level",
    "prevent_merge_without_jira_issue",
    "ci_restrict_pipeline_cancellation_role",
    "web_based_commit_signing_enabled",
    "spp_repository_pipeline_access",
];

/// Attributes of later releases that have rules of their own, with those of the reference that they
/// replace.
pub(super) const PACKAGES_LEVEL: &str = "package_registry_access_level";
pub(super) const PACKAGES: &str = "packages_enabled";
pub(super) const OVERRIDE_ROLE: &str = "ci_pipeline_variables_minimum_override_role";
pub(super) const RESTRICTED: &str = "restrict_user_defined_variables";
pub(super) const PIPELINES_REMOVED: &str = "ci_delete_pipelines_in_seconds";

/// The attributes of every release and licence.
pub(crate) fn all() -> impl Iterator<Item = &'static Attribute> {
    ATTRIBUTES.iter().chain(LATER)
}

/// The attributes that a service has.
pub(crate) fn of(edition: Edition) -> impl Iterator<Item = &'static Attribute> {
    all().filter(move |row| row.is_of(edition))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_attribute_of_the_reference_once() {
        let mut names: Vec<_> = ATTRIBUTES.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 88);
        assert_eq!(ATTRIBUTES.len(), 88);
        let accepted = |route| ATTRIBUTES.iter().filter(|row| row.accepted_on(route)).count();
        assert_eq!([Route::Create, Route::CreateForUser, Route::Edit].map(accepted), [69, 70, 82]);
        let above = |tier| ATTRIBUTES.iter().filter(|row| row.tier == tier).count();
        assert_eq!([Tier::Premium, Tier::Ultimate].map(above), [12, 1]);
    }

    #[test]
    fn what_came_later_is_not_there_before() {
        let of = |release| {
            let edition = Edition { tier: Tier::Ultimate, release };
            of(edition).map(|row| row.name).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(of(REFERENCE).len(), 88);
        let (earlier, later) = (of(Release::new(16, 2)), of(Release::new(18, 9)));
        assert!(earlier.contains("group_runners_enabled") && !earlier.contains("emails_enabled"));
        assert!(!earlier.contains("operations_access_level"));
        assert_eq!(later.len(), 88 - 1 + LATER.len());
    }

    #[test]
    fn a_twin_names_an_access_level() {
        for row in ATTRIBUTES {
            if let Kind::TwinOf(target) = row.kind {
                assert!(
                    ATTRIBUTES
                        .iter()
                        .any(|other| other.name == target && matches!(other.kind, Kind::OneOf(_))),
                    "{} follows {target}",
                    row.name
                );
            }
        }
    }
}
