//! What the service gives to something new of which nobody says anything, field by field.
//!
//! `undrift export` leaves such values out, so that what it writes is what somebody decided. The rule
//! is the simplest honest one: a value is left out if it stands here, or if it is nothing (`null`,
//! empty text or an empty list). What an installation or a group above decides for new things, such
//! as the visibility, does not stand here and is always written; what many projects have in common
//! then stands in their `Defaults`. What a described kind gives stands in its description. The values are those of the reference (2, 4.3; 1, 2.2, 2.3 and
//! 2.9; beyond: groups, A.4; collections); a test holds them against the sandbox.

use std::{collections::BTreeMap, sync::LazyLock};

use crate::{field::Scope, kind::Section, value::Json};

/// The fields of a section in one scope, each with its value as JSON. The keys of a mapping within a
/// section follow a dot. `{name}` is the last part of the path.
type Rows = (Scope, &'static str, &'static [(&'static str, &'static str)]);

const PRESETS: &[Rows] = &[
    (
        Scope::Project,
        "settings",
        &[
            ("name", r#""{name}""#),
            ("default_branch", r#""main""#),
            ("allow_merge_on_skipped_pipeline", "false"),
            ("only_allow_merge_if_all_status_checks_passed", "false"),
            ("only_allow_merge_if_all_discussions_are_resolved", "false"),
            ("only_allow_merge_if_pipeline_succeeds", "false"),
            ("approvals_before_merge", "0"),
            ("merge_method", r#""merge""#),
            ("squash_option", r#""default_off""#),
            ("merge_pipelines_enabled", "false"),
            ("merge_trains_enabled", "false"),
            ("remove_source_branch_after_merge", "true"),
            ("resolve_outdated_diff_discussions", "false"),
            ("autoclose_referenced_issues", "true"),
            ("printing_merge_request_link_enabled", "true"),
            ("mr_default_target_self", "false"),
            ("auto_cancel_pending_pipelines", r#""enabled""#),
            ("auto_devops_deploy_strategy", r#""continuous""#),
            ("build_git_strategy", r#""fetch""#),
            ("build_timeout", "3600"),
            ("ci_default_git_depth", "20"),
            ("ci_forward_deployment_enabled", "true"),
            ("ci_allow_fork_pipelines_to_run_in_parent_project", "true"),
            ("ci_separated_caches", "true"),
            ("keep_latest_artifact", "true"),
            ("public_builds", "true"),
            ("restrict_user_defined_variables", "false"),
            ("container_expiration_policy.enabled", "false"),
            ("container_expiration_policy.cadence", r#""1d""#),
            ("container_expiration_policy.keep_n", "10"),
            ("container_expiration_policy.older_than", r#""90d""#),
            ("container_expiration_policy.name_regex", r#"".*""#),
            ("analytics_access_level", r#""enabled""#),
            ("builds_access_level", r#""enabled""#),
            ("container_registry_access_level", r#""enabled""#),
            ("forking_access_level", r#""enabled""#),
            ("issues_access_level", r#""enabled""#),
            ("merge_requests_access_level", r#""enabled""#),
            ("repository_access_level", r#""enabled""#),
            ("snippets_access_level", r#""enabled""#),
            ("wiki_access_level", r#""enabled""#),
            ("releases_access_level", r#""enabled""#),
            ("environments_access_level", r#""enabled""#),
            ("feature_flags_access_level", r#""enabled""#),
            ("infrastructure_access_level", r#""enabled""#),
            ("monitor_access_level", r#""enabled""#),
            ("operations_access_level", r#""enabled""#),
            ("pages_access_level", r#""private""#),
            ("requirements_access_level", r#""enabled""#),
            ("security_and_compliance_access_level", r#""private""#),
            ("emails_disabled", "false"),
            ("enforce_auth_checks_on_uploads", "true"),
            ("lfs_enabled", "true"),
            ("packages_enabled", "true"),
            ("request_access_enabled", "true"),
            ("service_desk_enabled", "false"),
            ("repository_storage", r#""default""#),
            ("mirror", "false"),
            ("mirror_trigger_builds", "false"),
            ("mirror_overwrites_diverged_branches", "false"),
            ("only_mirror_protected_branches", "false"),
        ],
    ),
    (
        Scope::Group,
        "settings",
        &[
            ("name", r#""{name}""#),
            ("subgroup_creation_level", r#""maintainer""#),
            ("request_access_enabled", "true"),
            ("share_with_group_lock", "false"),
            ("prevent_sharing_groups_outside_hierarchy", "false"),
            ("membership_lock", "false"),
            ("prevent_forking_outside_group", "false"),
            ("require_two_factor_authentication", "false"),
            ("two_factor_grace_period", "48"),
            ("lfs_enabled", "true"),
            ("emails_disabled", "false"),
            ("mentions_disabled", "false"),
            ("shared_runners_setting", r#""enabled""#),
        ],
    ),
    (Scope::Project, "variables", VARIABLE),
    (Scope::Group, "variables", VARIABLE),
    (Scope::Group, "members", &[("override", "false"), ("membership", r#""active""#)]),
    (
        Scope::Project,
        "protected_branches",
        &[
            ("allowed_to_unprotect", r#"[{"access_level": "maintainer"}]"#),
            ("allow_force_push", "false"),
            ("code_owner_approval_required", "false"),
        ],
    ),
    (
        Scope::Project,
        "approvals",
        &[
            ("reset_approvals_on_push", "true"),
            ("selective_code_owner_removals", "false"),
            ("disable_overriding_approvers_per_merge_request", "false"),
            ("merge_requests_author_approval", "false"),
            ("merge_requests_disable_committers_approval", "false"),
            ("require_password_to_approve", "false"),
        ],
    ),
    (
        Scope::Project,
        "approval_rules",
        &[("rule_type", r#""regular""#), ("applies_to_all_protected_branches", "false")],
    ),
    (Scope::Project, "pipeline_schedules", &[("cron_timezone", r#""UTC""#), ("active", "true")]),
    (Scope::Project, "hooks", HOOK),
    (Scope::Group, "hooks", HOOK),
    (Scope::Project, "push_rule", PUSH_RULE),
    (Scope::Group, "push_rule", PUSH_RULE),
    (Scope::Project, "archived", &[("archived", "false")]),
];

const VARIABLE: &[(&str, &str)] = &[
    ("environment_scope", r#""*""#),
    ("variable_type", r#""env_var""#),
    ("protected", "false"),
    ("masked", "false"),
    ("raw", "false"),
];

const HOOK: &[(&str, &str)] = &[
    ("enable_ssl_verification", "true"),
    ("push_events", "true"),
    ("tag_push_events", "false"),
    ("issues_events", "false"),
    ("confidential_issues_events", "false"),
    ("merge_requests_events", "false"),
    ("note_events", "false"),
    ("confidential_note_events", "false"),
    ("job_events", "false"),
    ("pipeline_events", "false"),
    ("wiki_page_events", "false"),
    ("deployment_events", "false"),
    ("releases_events", "false"),
    ("subgroup_events", "false"),
];

const PUSH_RULE: &[(&str, &str)] = &[
    ("commit_committer_check", "false"),
    ("deny_delete_tag", "false"),
    ("max_file_size", "0"),
    ("member_check", "false"),
    ("prevent_secrets", "false"),
    ("reject_unsigned_commits", "false"),
];

/// What is known, by scope, section and field.
static KNOWN: LazyLock<BTreeMap<(Scope, &'static str, &'static str), Json>> = LazyLock::new(|| {
    let rows = PRESETS.iter().flat_map(|(scope, section, fields)| {
        // A test holds that every value is JSON.
        let value = |text: &str| serde_json::from_str(text).unwrap_or_default();
        fields.iter().map(move |(field, text)| ((*scope, *section, *field), value(text)))
    });
    rows.collect()
});

/// What the field `name` of a new `section` is in the container at `path`: `null` where nothing is
/// known. The keys of a mapping within the section follow a dot.
pub fn of(section: Section, name: &str, path: &str) -> Json {
    let known = KNOWN.get(&(section.home.scope, section.section, name));
    match known {
        Some(Json::String(text)) if text == "{name}" => {
            path.rsplit('/').next().unwrap_or(path).into()
        }
        known => known.or(section.field(name).preset.as_ref()).cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn every_row_names_a_field_and_has_a_value_that_it_may_have() {
        for (scope, section, fields) in PRESETS {
            let of = kinds::section(*scope, section).unwrap();
            for (name, text) in *fields {
                let value: Json = serde_json::from_str(text).unwrap();
                let (field, within) = name.split_once('.').unwrap_or((name, ""));
                // What only one scope has stands in the rows of both.
                let known =
                    Scope::ALL.into_iter().filter_map(|scope| kinds::section(scope, section));
                assert!(known.into_iter().any(|of| of.table().get(field).is_some()), "{name}");
                let Some(spec) = of.table().get(field) else { continue };
                let schema = match within {
                    "" => &spec.schema,
                    within => &spec.schema["properties"][within],
                };
                assert!(!schema.is_null() && !value.is_null(), "{section}.{name}");
            }
        }
    }
}
