//! The fields of `settings:` and `create:` of a project (reference 2, 4.3; how responses show them:
//! reference 1, 2.8).

use std::collections::BTreeSet;

use schemars::JsonSchema;

use crate::{
    field::{Accepted, Compare, Named, Secrecy, When, field},
    kinds::source::Import,
    schema::TextOrSecret,
};

/// The settings of a project. A setting that is left out is not managed.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProjectSettings {
    /// The display name; it may differ from the last part of the path. Default for a new project:
    /// the last part of the path.
    #[schemars(transform = field().harmless(), length(min = 1, max = 255), example = &"Web shop")]
    pub name: Option<String>,
    /// The description, in a sentence or two.
    #[schemars(transform = field().nullable().harmless())]
    pub description: Option<String>,
    /// The default branch, for clones and merge requests. It must exist. While the repository is
    /// empty, it is not sent, and the plan contains a note.
    #[schemars(transform = field().harmless(), length(min = 1), regex(pattern = "^(?!refs/)"), example = &"main")]
    pub default_branch: Option<String>,
    /// Who can see the project. Must not be wider than the visibility of its group.
    #[schemars(transform = field().shows())]
    pub visibility: Option<Visibility>,
    /// The URL to import or mirror the repository from: text, or a reference to a secret if it
    /// contains credentials. It is compared, without these, while `mirror` is on.
    #[schemars(transform = field().read_if_present().compared(Compare::Location).secrecy(Secrecy::Address).opens(When::Changed), example = &"https://git.example.org/upstream.git")]
    pub import_url: Option<TextOrSecret>,
    /// The topics of the project. The list replaces the live list; its order does not matter. All
    /// projects of an installation share topics: the first spelling of a topic wins.
    #[schemars(transform = field().compared(Compare::Topics).ascii_from(18, 9).harmless(), inner(length(max = 255)), example = &["rust", "shop"])]
    pub topics: Option<BTreeSet<String>>,
    /// The old name of `topics`.
    #[schemars(transform = field().compared(Compare::Topics).ascii_from(18, 9).use_instead("topics").harmless(), inner(length(max = 255)))]
    pub tag_list: Option<BTreeSet<String>>,
    /// The avatar of the project: a file below the manifest folder. `null` removes it (from release
    /// 15.4). The service shows whether there is an avatar, but not which: use `--resend` to
    /// replace it by another file.
    #[schemars(transform = field().upload().read_as("avatar_url").nullable().harmless())]
    pub avatar: Option<FileReference>,

    /// Whether a skipped pipeline counts as successful when merging requires a successful pipeline.
    #[schemars(transform = field().weakens(When::On))]
    pub allow_merge_on_skipped_pipeline: Option<bool>,
    /// Whether merging requires all external status checks to pass. The service has this behind a
    /// feature flag.
    #[schemars(transform = field().ultimate().since(15, 5).weakens(When::Off))]
    pub only_allow_merge_if_all_status_checks_passed: Option<bool>,
    /// Whether merging requires all discussions to be resolved.
    #[schemars(transform = field().weakens(When::Off))]
    pub only_allow_merge_if_all_discussions_are_resolved: Option<bool>,
    /// Whether merging requires a successful pipeline.
    #[schemars(transform = field().weakens(When::Off))]
    pub only_allow_merge_if_pipeline_succeeds: Option<bool>,
    /// How many approvals a merge request needs unless a rule requires something else.
    #[schemars(transform = field().premium().weakens(When::Lower))]
    pub approvals_before_merge: Option<u32>,
    /// How merge requests are merged.
    #[schemars(transform = field().harmless())]
    pub merge_method: Option<MergeMethod>,
    /// The text of merge commits, with placeholders such as `%{title}`.
    #[schemars(
        transform = field().accepted(Accepted::OnCreateForUserAndEdit).since(14, 5).nullable().harmless(),
        example = &"%{title} (%{reference})"
    )]
    pub merge_commit_template: Option<String>,
    /// The text of squash commits, with placeholders such as `%{title}`.
    #[schemars(transform = field().accepted(Accepted::OnCreateForUserAndEdit).since(14, 6).nullable().harmless(), example = &"%{title}")]
    pub squash_commit_template: Option<String>,
    /// Whether the commits of a merge request are squashed into one.
    #[schemars(transform = field().harmless())]
    pub squash_option: Option<SquashOption>,
    /// The text of commits that apply suggestions, with placeholders such as `%{file_path}`.
    #[schemars(transform = field().accepted(Accepted::OnCreateForUserAndEdit).nullable().harmless(), example = &"Apply suggestion to %{file_path}")]
    pub suggestion_commit_message: Option<String>,
    /// The name of branches that are created from issues, with placeholders such as `%{id}`.
    #[schemars(transform = field().accepted(Accepted::OnCreateForUserAndEdit).since(15, 6).nullable().harmless(), example = &"%{id}-%{title}")]
    pub issue_branch_template: Option<String>,
    /// Whether pipelines run on the result of a merge instead of on the branch.
    // A create request ignores it.
    #[schemars(transform = field().on_edit().read_if_present().harmless())]
    pub merge_pipelines_enabled: Option<bool>,
    /// Whether merge requests are queued, and each is tested together with those before it. It has
    /// no effect, and is shown as `false`, until `merge_pipelines_enabled` is on.
    #[schemars(transform = field().on_edit().read_if_present().needs_in_request("merge_pipelines_enabled").harmless())]
    pub merge_trains_enabled: Option<bool>,
    /// Whether merging requires the merge request to mention a Jira issue.
    #[schemars(transform = field().ultimate().since(16, 7).weakens(When::Off))]
    pub prevent_merge_without_jira_issue: Option<bool>,
    /// Whether new merge requests delete their branch after the merge by default.
    #[schemars(transform = field().harmless())]
    pub remove_source_branch_after_merge: Option<bool>,
    /// Whether a push resolves the discussions on the lines that it changes.
    #[schemars(transform = field().harmless())]
    pub resolve_outdated_diff_discussions: Option<bool>,
    /// Whether commits and merge requests that mention an issue with a closing word close it.
    #[schemars(transform = field().harmless())]
    pub autoclose_referenced_issues: Option<bool>,
    /// Whether a push from the command line prints a link that opens a merge request.
    #[schemars(transform = field().harmless())]
    pub printing_merge_request_link_enabled: Option<bool>,
    /// Whether merge requests of a fork target the fork itself instead of its parent. Only for
    /// forks: other projects refuse it.
    #[schemars(transform = field().on_edit().harmless())]
    pub mr_default_target_self: Option<bool>,

    /// Whether a new pipeline cancels the waiting pipelines of the same branch.
    #[schemars(transform = field().harmless())]
    pub auto_cancel_pending_pipelines: Option<Switch>,
    /// Whether projects without a pipeline file are built and deployed automatically.
    #[schemars(transform = field().harmless())]
    pub auto_devops_enabled: Option<bool>,
    /// How automatic deployments reach production.
    #[schemars(transform = field().harmless())]
    pub auto_devops_deploy_strategy: Option<DeployStrategy>,
    /// How jobs get the repository.
    #[schemars(transform = field().read_if_present().harmless())]
    pub build_git_strategy: Option<GitStrategy>,
    /// The maximum duration of a job, in seconds.
    #[schemars(transform = field().harmless(), range(min = 600, max = 2_629_745), example = &3600)]
    pub build_timeout: Option<u32>,
    /// Where the pipeline file is: a path, a URL, or a path in another project. `null` means the
    /// default path.
    #[schemars(transform = field().nullable().opens(When::Outside), example = &".ci/pipeline.yml", example = &"pipeline.yml@acme/templates")]
    pub ci_config_path: Option<String>,
    /// How many commits jobs fetch; 0 means all.
    #[schemars(transform = field().on_edit().harmless(), range(max = 1000), example = &20)]
    pub ci_default_git_depth: Option<u32>,
    /// Whether a deployment job is refused if a newer deployment exists.
    #[schemars(transform = field().on_edit().harmless())]
    pub ci_forward_deployment_enabled: Option<bool>,
    /// Whether a deployment job may be retried if a newer deployment exists.
    #[schemars(transform = field().on_edit().since(16, 9).harmless())]
    pub ci_forward_deployment_rollback_allowed: Option<bool>,
    /// Whether members may run pipelines in this project for merge requests from forks. Such
    /// pipelines have access to the project's variables.
    #[schemars(transform = field().on_edit().since(15, 3).opens(When::On))]
    pub ci_allow_fork_pipelines_to_run_in_parent_project: Option<bool>,
    /// Whether protected branches have separate caches.
    #[schemars(transform = field().on_edit().weakens(When::Off))]
    pub ci_separated_caches: Option<bool>,
    /// Whether the artifacts of the latest successful pipeline are kept after their expiry.
    #[schemars(transform = field().on_edit().harmless())]
    pub keep_latest_artifact: Option<bool>,
    /// After how many seconds pipelines are deleted. `null` means never. Owners only.
    #[schemars(transform = field().on_edit().nullable().since(17, 11).harmless(), range(min = 86_400), example = &2_592_000)]
    pub ci_delete_pipelines_in_seconds: Option<u64>,
    /// The components of the subject of ID tokens, in this order; `project_path` must be first.
    #[schemars(transform = field().on_edit().since(17, 10).harmless(), length(min = 1), example = &["project_path", "ref_type", "ref"])]
    pub ci_id_token_sub_claim_components: Option<Vec<String>>,
    /// The lowest role that may pass variables when it starts a pipeline. Only owners may set
    /// `owner` or change it. Releases 17.1 to 17.6 respect it only together with
    /// `restrict_user_defined_variables`.
    #[schemars(transform = field().on_edit().since(17, 7).weakens_towards_the_last(&["no_one_allowed", "owner", "maintainer", "developer"]))]
    pub ci_pipeline_variables_minimum_override_role: Option<OverrideRole>,
    /// Whether job tokens may push to the repository.
    #[schemars(transform = field().on_edit().since(17, 2).opens(When::On))]
    pub ci_push_repository_for_job_token_allowed: Option<bool>,
    /// The lowest role that may cancel pipelines and jobs.
    #[schemars(transform = field().premium().on_edit().since(16, 8).weakens_towards_the_last(&["no_one", "maintainer", "developer"]))]
    pub ci_restrict_pipeline_cancellation_role: Option<CancellationRole>,
    /// Whether the user who triggered a pipeline may approve its deployments.
    #[schemars(transform = field().premium().on_edit().since(17, 0).weakens(When::On))]
    pub allow_pipeline_trigger_approve_deployment: Option<bool>,
    /// The maximum size of the artifacts of a job, in megabytes. `null` means the value of the
    /// group.
    #[schemars(transform = field().on_edit().administrators().nullable().since(17, 9).harmless(), range(min = 1))]
    pub max_artifacts_size: Option<u32>,
    /// The order in which jobs of one resource group run.
    #[schemars(transform = field().since(18, 4).harmless())]
    pub resource_group_default_process_mode: Option<ProcessMode>,
    /// Whether users who are not members may see pipelines and jobs.
    #[schemars(transform = field().since(16, 5).shows())]
    pub public_jobs: Option<bool>,
    /// The old name of `public_jobs`.
    #[schemars(transform = field().read_as("public_jobs").use_instead("public_jobs").shows())]
    pub public_builds: Option<bool>,
    /// Whether only maintainers may pass variables when they start a pipeline. From release 17.7 on
    /// the old form of `ci_pipeline_variables_minimum_override_role`: `false` is `developer`.
    #[schemars(transform = field().on_edit().use_instead("ci_pipeline_variables_minimum_override_role").weakens(When::Off))]
    pub restrict_user_defined_variables: Option<bool>,
    /// Whether instance runners take jobs of this project.
    #[schemars(transform = field().opens(When::On))]
    pub shared_runners_enabled: Option<bool>,
    /// Whether group runners take jobs of this project.
    #[schemars(transform = field().since(15, 9).opens(When::On))]
    pub group_runners_enabled: Option<bool>,
    /// The policy that deletes old images from the container registry. Only the declared keys are
    /// managed.
    #[schemars(transform = field().accepted(Accepted::OnOwnCreateAndEdit).send_as("container_expiration_policy_attributes").harmless())]
    pub container_expiration_policy: Option<ExpirationPolicy>,

    /// Who can use analytics.
    #[schemars(transform = field().shows())]
    pub analytics_access_level: Option<AccessLevel>,
    /// Who can use pipelines and jobs. Must not be wider than `repository_access_level`.
    #[schemars(transform = field().at_most("repository_access_level").shows())]
    pub builds_access_level: Option<AccessLevel>,
    /// Who can use the container registry.
    #[schemars(transform = field().shows())]
    pub container_registry_access_level: Option<AccessLevel>,
    /// Who can fork the project.
    #[schemars(transform = field().shows())]
    pub forking_access_level: Option<AccessLevel>,
    /// Who can use issues.
    #[schemars(transform = field().shows())]
    pub issues_access_level: Option<AccessLevel>,
    /// Who can use merge requests. Must not be wider than `repository_access_level`.
    #[schemars(transform = field().at_most("repository_access_level").shows())]
    pub merge_requests_access_level: Option<AccessLevel>,
    /// Who can see the repository.
    #[schemars(transform = field().shows())]
    pub repository_access_level: Option<AccessLevel>,
    /// Who can use snippets.
    #[schemars(transform = field().shows())]
    pub snippets_access_level: Option<AccessLevel>,
    /// Who can use the wiki.
    #[schemars(transform = field().shows())]
    pub wiki_access_level: Option<AccessLevel>,
    /// Who can see releases.
    #[schemars(transform = field().read_if_present().shows())]
    pub releases_access_level: Option<AccessLevel>,
    /// Who can see environments.
    #[schemars(transform = field().read_if_present().shows())]
    pub environments_access_level: Option<AccessLevel>,
    /// Who can see feature flags.
    #[schemars(transform = field().read_if_present().shows())]
    pub feature_flags_access_level: Option<AccessLevel>,
    /// Who can see infrastructure pages.
    #[schemars(transform = field().read_if_present().shows())]
    pub infrastructure_access_level: Option<AccessLevel>,
    /// Who can see monitoring.
    #[schemars(transform = field().read_if_present().shows())]
    pub monitor_access_level: Option<AccessLevel>,
    /// Who can see machine learning experiments.
    #[schemars(transform = field().since(16, 7).shows())]
    pub model_experiments_access_level: Option<AccessLevel>,
    /// Who can see the registry of machine learning models.
    #[schemars(transform = field().since(16, 7).shows())]
    pub model_registry_access_level: Option<AccessLevel>,
    /// Who can use the package registry.
    // A create request may leave it on despite `disabled`.
    #[schemars(transform = field().on_edit().since(18, 4).shows())]
    pub package_registry_access_level: Option<PublicAccessLevel>,
    /// Who can see releases, environments, feature flags, infrastructure and monitoring. Deprecated
    /// in release 15.8: use `releases_access_level`, `environments_access_level`,
    /// `feature_flags_access_level`, `infrastructure_access_level` and `monitor_access_level`.
    #[deprecated]
    #[schemars(transform = field().read_if_present().until(16, 0).shows())]
    pub operations_access_level: Option<AccessLevel>,
    /// Who can see the published pages.
    #[schemars(transform = field().shows())]
    pub pages_access_level: Option<PublicAccessLevel>,
    /// Who can use requirements. Must not be `public`.
    // The reference contradicts itself about `public`; the values here are in both of its
    // descriptions.
    #[schemars(transform = field().shows())]
    pub requirements_access_level: Option<AccessLevel>,
    /// Who can see security and compliance pages.
    #[schemars(transform = field().since(14, 9).shows())]
    pub security_and_compliance_access_level: Option<AccessLevel>,

    /// The old form of `container_registry_access_level`: `true` is `private` or `enabled`.
    #[schemars(transform = field().use_instead("container_registry_access_level").shows())]
    pub container_registry_enabled: Option<bool>,
    /// The old form of `issues_access_level`: `true` is `private` or `enabled`.
    #[schemars(transform = field().use_instead("issues_access_level").shows())]
    pub issues_enabled: Option<bool>,
    /// The old form of `builds_access_level`: `true` is `private` or `enabled`.
    #[schemars(transform = field().use_instead("builds_access_level").shows())]
    pub jobs_enabled: Option<bool>,
    /// The old form of `merge_requests_access_level`: `true` is `private` or `enabled`.
    #[schemars(transform = field().use_instead("merge_requests_access_level").shows())]
    pub merge_requests_enabled: Option<bool>,
    /// The old form of `snippets_access_level`: `true` is `private` or `enabled`.
    #[schemars(transform = field().use_instead("snippets_access_level").shows())]
    pub snippets_enabled: Option<bool>,
    /// The old form of `wiki_access_level`: `true` is `private` or `enabled`.
    #[schemars(transform = field().use_instead("wiki_access_level").shows())]
    pub wiki_enabled: Option<bool>,

    /// Whether the project sends notifications by e-mail. Owners only.
    #[schemars(transform = field().since(16, 3).harmless())]
    pub emails_enabled: Option<bool>,
    /// The old form of `emails_enabled`, and the opposite.
    #[schemars(transform = field().read_if_present().use_opposite("emails_enabled").harmless())]
    pub emails_disabled: Option<bool>,
    /// Whether uploaded files are shown only to users who can see the project.
    #[schemars(transform = field().accepted(Accepted::OnCreateForUserAndEdit).weakens(When::Off))]
    pub enforce_auth_checks_on_uploads: Option<bool>,
    /// The label that an external authorization service uses to decide about access.
    #[schemars(transform = field().premium().nullable().weakens(When::Changed))]
    pub external_authorization_classification_label: Option<String>,
    /// Whether large files are stored outside the repository (Git LFS).
    #[schemars(transform = field().harmless())]
    pub lfs_enabled: Option<bool>,
    /// Whether the package registry is on. From release 18.4 on the old form of
    /// `package_registry_access_level`: `true` follows the visibility.
    #[schemars(transform = field().use_instead("package_registry_access_level").shows())]
    pub packages_enabled: Option<bool>,
    /// Whether users may request to become members.
    #[schemars(transform = field().harmless())]
    pub request_access_enabled: Option<bool>,
    /// Whether e-mails about pushes and merge requests contain the diff. Shown from release 18.4
    /// on, combined with the value of the group.
    #[schemars(transform = field().read_if_present().since(16, 3).harmless())]
    pub show_diff_preview_in_email: Option<bool>,
    /// Whether characters that could hide something in source code are marked.
    #[schemars(transform = field().since(16, 3).weakens(When::Off))]
    pub warn_about_potentially_unwanted_characters: Option<bool>,
    /// Whether e-mails to the service desk of the project become issues.
    #[schemars(transform = field().on_edit().harmless())]
    pub service_desk_enabled: Option<bool>,
    /// The storage of the repository. The service ignores it unless the caller is an administrator.
    #[schemars(transform = field().administrators().harmless(), length(min = 1), example = &"default")]
    pub repository_storage: Option<String>,

    /// Whether the service regularly pulls from `import_url`.
    #[schemars(transform = field().premium().needs_in_request("import_url").opens(When::On))]
    pub mirror: Option<bool>,
    /// Whether pulls start pipelines.
    #[schemars(transform = field().premium().needs_in_request("mirror").opens(When::On))]
    pub mirror_trigger_builds: Option<bool>,
    /// Whether a pull overwrites branches that diverged in this project.
    #[schemars(transform = field().premium().on_edit().needs_in_request("mirror").opens(When::On))]
    pub mirror_overwrites_diverged_branches: Option<bool>,
    /// The id of the user who pulls. Only administrators can set it.
    #[schemars(transform = field().premium().on_edit().administrators().needs_in_request("mirror").opens(When::Changed), range(min = 1), example = &7)]
    pub mirror_user_id: Option<u64>,
    /// Whether only protected branches are pulled.
    #[schemars(transform = field().premium().on_edit().limits("mirror").needs_in_request("mirror").opens(When::Off))]
    pub only_mirror_protected_branches: Option<bool>,
    /// The default description of new issues, in Markdown.
    #[schemars(transform = field().premium().on_edit().since(13, 10).nullable().needs("issues_access_level").harmless())]
    pub issues_template: Option<String>,
    /// The default description of new merge requests, in Markdown.
    #[schemars(transform = field().premium().on_edit().since(13, 10).nullable().needs("merge_requests_access_level").harmless())]
    pub merge_requests_template: Option<String>,
}

/// Fields for creating the project. They are only used if the project is missing; they cannot be
/// changed or read later.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Create {
    /// Whether the repository starts with a commit that contains a readme. Cannot be combined with
    /// another source of contents.
    #[schemars(transform = field().accepted(Accepted::OnCreate).write_only().harmless())]
    pub initialize_with_readme: Option<bool>,
    /// The object format of the repository.
    #[schemars(transform = field().accepted(Accepted::OnCreate).write_only().since(16, 9).harmless())]
    pub repository_object_format: Option<ObjectFormat>,
    /// The template of the project: a built-in one or, with `use_custom_template`, one of the
    /// installation or of a group.
    #[schemars(transform = field().accepted(Accepted::OnCreate).write_only().harmless(), length(min = 1), example = &"rails")]
    pub template_name: Option<String>,
    /// The id of the project to use as template, with `use_custom_template`. It takes precedence
    /// over `template_name`.
    #[schemars(transform = field().accepted(Accepted::OnOwnCreate).write_only().premium().harmless(), range(min = 1))]
    pub template_project_id: Option<u64>,
    /// Whether the template belongs to the installation or a group instead of being built in.
    #[schemars(transform = field().accepted(Accepted::OnCreate).write_only().premium().harmless())]
    pub use_custom_template: Option<bool>,
    /// The id of the group that has the template, with `use_custom_template`. Without it, the
    /// template belongs to the installation.
    #[schemars(transform = field().accepted(Accepted::OnCreate).write_only().premium().harmless(), range(min = 1))]
    pub group_with_project_templates_id: Option<u64>,
    /// The full path of the project to fork. Cannot be combined with another source of contents.
    /// The section `fork_of` does the same and also keeps the relation.
    #[schemars(transform = field().local().names(Named::Project, "forked_from_id").harmless(), length(min = 1), example = &"acme/shop")]
    pub fork_of: Option<String>,
    /// Where the repository is imported from. Cannot be combined with another source of contents.
    /// The new project has the service's default visibility until an edit right after sets the
    /// declared one.
    #[schemars(transform = field().spread().harmless())]
    pub import: Option<Import>,
    /// The full path of a project whose members are copied once, at creation.
    #[schemars(transform = field().local().names(Named::Project, "project_id").access(), length(min = 1), example = &"acme/template")]
    pub members_from: Option<String>,
}

/// A file to upload.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FileReference {
    /// The path, relative to the manifest folder.
    #[schemars(transform = field().harmless(), length(min = 1), example = &"avatars/shop.png")]
    pub file: String,
}

/// How old images are deleted from the container registry (reference 1, 2.8).
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExpirationPolicy {
    /// Whether the policy is on.
    #[schemars(transform = field().harmless())]
    pub enabled: Option<bool>,
    /// How often it runs.
    #[schemars(transform = field().harmless())]
    pub cadence: Option<Cadence>,
    /// How many tags of each image are always kept.
    #[schemars(transform = field().limits("enabled").harmless(), extend("enum" = [1, 5, 10, 25, 50, 100]), example = &10)]
    pub keep_n: Option<u32>,
    /// The minimum age of tags that are deleted.
    #[schemars(transform = field().limits("enabled").harmless())]
    pub older_than: Option<Age>,
    /// A regular expression for the tags that may be deleted; `.*` for all. Required if the policy
    /// is on.
    #[schemars(transform = field().nullable().has_to_limit("enabled").expression().harmless(), example = &"^review-.*")]
    pub name_regex: Option<String>,
    /// Another name of `name_regex`. The reference of the service recommends it, but the service
    /// ignores it: undrift sends `name_regex`.
    #[schemars(transform = field().use_instead("name_regex").nullable().expression().harmless())]
    pub name_regex_delete: Option<String>,
    /// A regular expression for the tags that are always kept.
    #[schemars(transform = field().nullable().limits("enabled").expression().harmless(), example = &"^v.*")]
    pub name_regex_keep: Option<String>,
}

/// The age from which images are deleted.
#[derive(JsonSchema)]
pub enum Age {
    /// A week.
    #[schemars(rename = "7d")]
    Week,
    /// Two weeks.
    #[schemars(rename = "14d")]
    TwoWeeks,
    /// A month.
    #[schemars(rename = "30d")]
    Month,
    /// Two months.
    #[schemars(rename = "60d")]
    TwoMonths,
    /// Three months.
    #[schemars(rename = "90d")]
    ThreeMonths,
}

/// How often the container registry is cleaned.
#[derive(JsonSchema)]
pub enum Cadence {
    /// Every day.
    #[schemars(rename = "1d")]
    Daily,
    /// Every week.
    #[schemars(rename = "7d")]
    Weekly,
    /// Every two weeks.
    #[schemars(rename = "14d")]
    Fortnightly,
    /// Every month.
    #[schemars(rename = "1month")]
    Monthly,
    /// Every three months.
    #[schemars(rename = "3month")]
    Quarterly,
}

/// Who can see a project or group.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum Visibility {
    /// Members only.
    Private,
    /// Everybody who is signed in, except external users.
    Internal,
    /// Everybody, signed in or not.
    Public,
}

/// Who can use a part of a project.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum AccessLevel {
    /// Nobody: it is off.
    Disabled,
    /// Members only.
    Private,
    /// Everybody who can see the project.
    Enabled,
}

/// Who can use something that may be open to everybody.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum PublicAccessLevel {
    /// Nobody: they are off.
    Disabled,
    /// Members only.
    Private,
    /// Everybody who can see the project.
    Enabled,
    /// Everybody, even if the project is not public.
    Public,
}

/// How merge requests are merged.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum MergeMethod {
    /// Always with a merge commit, whenever there is no conflict.
    Merge,
    /// With a merge commit, but only if a fast-forward is possible.
    RebaseMerge,
    /// Without merge commits: by fast-forward only.
    Ff,
}

/// Whether commits are squashed.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum SquashOption {
    /// Never, and nobody can choose it.
    Never,
    /// Always, and nobody can choose otherwise.
    Always,
    /// The author chooses; squashing is preselected.
    DefaultOn,
    /// The author chooses; squashing is not preselected.
    DefaultOff,
}

/// On or off, as a word: the service takes no boolean here.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum Switch {
    /// On.
    Enabled,
    /// Off.
    Disabled,
}

/// How automatic deployments reach production.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum DeployStrategy {
    /// At once.
    Continuous,
    /// To staging at once, to production by hand.
    Manual,
    /// Step by step, with a pause after each.
    TimedIncremental,
}

/// How jobs get the repository.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum GitStrategy {
    /// Jobs reuse the last copy and fetch new commits.
    Fetch,
    /// Jobs clone the repository each time.
    Clone,
}

/// The lowest role that may pass variables to pipelines.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum OverrideRole {
    /// Owners.
    Owner,
    /// Maintainers.
    Maintainer,
    /// Developers.
    Developer,
    /// Nobody.
    NoOneAllowed,
}

/// The lowest role that may cancel pipelines.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum CancellationRole {
    /// Developers.
    Developer,
    /// Maintainers.
    Maintainer,
    /// Nobody.
    NoOne,
}

/// The order in which jobs of one resource group run.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum ProcessMode {
    /// In any order.
    Unordered,
    /// The oldest first.
    OldestFirst,
    /// The newest first.
    NewestFirst,
    /// The newest of those that are ready first.
    NewestReadyFirst,
}

/// The format of a repository's objects.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum ObjectFormat {
    /// SHA-1, which every Git version reads.
    Sha1,
    /// SHA-256.
    Sha256,
}
