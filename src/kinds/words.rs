//! Words that are no fields but are often written as one: names that the service's answers use,
//! names of other tools, and attributes of releases that are newer than what undrift knows.
//!
//! The nearest name would often be the wrong hint: `emails_enabled` is the opposite of
//! `emails_disabled`.

/// What a word stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    /// A field, with the same value.
    Field(&'static str),
    /// A boolean field, with the opposite value.
    Opposite(&'static str),
    /// An access level, of which the word is the boolean form.
    Level(&'static str),
    /// A field or a section elsewhere in the document: where, as the end of a sentence that starts
    /// with "write".
    Elsewhere(&'static str),
    /// An attribute that the service has from this release on.
    Since(&'static str),
    /// Something that the service tells and nobody can set.
    Answer,
    /// Something that undrift does not manage yet.
    NotYet,
}

use Meant::{Answer, Elsewhere, Field, Level, NotYet, Opposite, Since};

/// Sections (the top of the document is the empty one), words in them, and what is meant.
static WORDS: &[(&str, &[(&str, Meant)])] = &[
    (
        "",
        &[
            ("project_settings", Field("settings")),
            ("secret_variables", Field("variables")),
            ("webhooks", Field("hooks")),
            ("project_hooks", Field("hooks")),
            ("project_push_rules", Field("push_rule")),
            ("push_rules", Field("push_rule")),
            ("schedules", Field("pipeline_schedules")),
            ("archive", Field("archived")),
            ("fork", Field("fork_of")),
            ("forked_from", Field("fork_of")),
            ("push_mirrors", Field("remote_mirrors")),
        ],
    ),
    (
        "settings",
        &[
            ("visibility_level", Field("visibility")),
            ("avatar_url", Field("avatar")),
            ("tags", Field("topics")),
            ("container_expiration_policy_attributes", Field("container_expiration_policy")),
            ("analytics_enabled", Level("analytics_access_level")),
            ("builds_enabled", Level("builds_access_level")),
            ("environments_enabled", Level("environments_access_level")),
            ("feature_flags_enabled", Level("feature_flags_access_level")),
            ("forking_enabled", Level("forking_access_level")),
            ("infrastructure_enabled", Level("infrastructure_access_level")),
            ("monitor_enabled", Level("monitor_access_level")),
            ("pages_enabled", Level("pages_access_level")),
            ("pipelines_enabled", Level("builds_access_level")),
            ("releases_enabled", Level("releases_access_level")),
            ("repository_enabled", Level("repository_access_level")),
            ("requirements_enabled", Level("requirements_access_level")),
            ("security_and_compliance_enabled", Level("security_and_compliance_access_level")),
            ("path_with_namespace", Elsewhere("`path` at the top of the document")),
            ("namespace", Elsewhere("`path` at the top of the document, with the namespace in it")),
            (
                "namespace_id",
                Elsewhere("`path` at the top of the document, with the namespace in it"),
            ),
            ("push_rules", Elsewhere("`push_rule` at the top of the document")),
            ("shared_with_groups", NotYet),
            ("shared_with", NotYet),
            ("forked_from_project", Elsewhere("`fork_of` at the top of the document")),
            ("auto_duo_code_review_enabled", Since("18.0")),
            ("automatic_rebase_enabled", Since("19.4")),
            ("ci_display_pipeline_variables", Since("19.1")),
            ("merge_request_title_regex", Since("18.9")),
            ("merge_request_title_regex_description", Since("18.9")),
            ("merge_trains_skip_train_allowed", Since("18.9")),
            ("mirror_branch_regex", Since("15.8")),
            ("pre_receive_secret_detection_enabled", Since("17.3")),
            ("protect_merge_request_pipelines", Since("19.0")),
            ("web_based_commit_signing_enabled", Since("18.2")),
            ("_links", Answer),
            ("ci_job_token_scope_enabled", Answer),
            ("container_registry_image_prefix", Answer),
            ("created_at", Answer),
            ("creator_id", Answer),
            ("description_html", Answer),
            ("empty_repo", Answer),
            ("forks_count", Answer),
            ("http_url_to_repo", Answer),
            ("id", Answer),
            ("import_error", Answer),
            ("import_status", Answer),
            ("import_type", Answer),
            ("last_activity_at", Answer),
            ("marked_for_deletion_at", Answer),
            ("marked_for_deletion_on", Answer),
            ("name_with_namespace", Answer),
            ("open_issues_count", Answer),
            ("permissions", Answer),
            ("readme_url", Answer),
            ("runners_token", Answer),
            ("service_desk_address", Answer),
            ("ssh_url_to_repo", Answer),
            ("star_count", Answer),
            ("statistics", Answer),
            ("updated_at", Answer),
            ("web_url", Answer),
        ],
    ),
    (
        "variables",
        &[
            ("name", Field("key")),
            ("scope", Field("environment_scope")),
            ("environment", Field("environment_scope")),
            ("type", Field("variable_type")),
            ("hidden", Field("masked_and_hidden")),
        ],
    ),
    (
        "members",
        &[
            ("username", Field("user")),
            ("user_id", Elsewhere("`user` with the username")),
            ("role", Field("access_level")),
            ("level", Field("access_level")),
            ("group_access", Field("access_level")),
            ("expiry", Field("expires_at")),
            ("member_role_id", Since("15.9")),
            ("created_at", Answer),
            ("id", Answer),
            ("web_url", Answer),
        ],
    ),
    (
        "hooks",
        &[
            ("build_events", Field("job_events")),
            ("comment_events", Field("note_events")),
            ("wiki_events", Field("wiki_page_events")),
            ("branch_filter_strategy", Since("17.2")),
            ("resource_deploy_token_events", Since("18.10")),
            ("custom_headers", NotYet),
            ("signing_token", NotYet),
            ("url_variables", NotYet),
            ("alert_status", Answer),
            ("created_at", Answer),
            ("disabled_until", Answer),
            ("id", Answer),
            ("project_id", Answer),
        ],
    ),
    (
        "pipeline_schedules",
        &[
            ("timezone", Field("cron_timezone")),
            ("enabled", Field("active")),
            ("branch", Field("ref")),
            ("inputs", NotYet),
            ("variables", NotYet),
            ("created_at", Answer),
            ("id", Answer),
            ("last_pipeline", Answer),
            ("next_run_at", Answer),
            ("owner", Answer),
            ("updated_at", Answer),
        ],
    ),
    ("push_rule", &[("created_at", Answer), ("id", Answer), ("project_id", Answer)]),
];

/// What `word` stands for in `section`, if it is one of those that are known.
pub fn meant(section: &str, word: &str) -> Option<Meant> {
    let (_, words) = WORDS.iter().find(|(name, _)| *name == section)?;
    words.iter().find(|(name, _)| *name == word).map(|(_, meant)| *meant)
}

impl Meant {
    /// What to do about it.
    pub fn help(self) -> String {
        match self {
            Field(name) => format!("use `{name}`"),
            Opposite(name) => format!("use `{name}` with the opposite value"),
            Level(name) => {
                format!("use `{name}`: `enabled` or `private` for true, `disabled` for false")
            }
            Elsewhere(place) => format!("write {place}"),
            Since(release) => format!(
                "it is an attribute of newer releases of the service (about {release} on): write it below `extra:`"
            ),
            Answer => "leave it out: the service sets it, and it cannot be declared".into(),
            NotYet => "leave it out; this release does not read it".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{field::Scope, kind::Section, kinds};

    fn of_section(name: &str) -> Option<Section> {
        kinds::section(Scope::Project, name)
    }

    #[test]
    fn words_are_no_fields_and_lead_to_some() {
        for (section, words) in WORDS.iter().filter(|(section, _)| !section.is_empty()) {
            let table = of_section(section).unwrap().table();
            for (word, meant) in *words {
                assert!(table.get(word).is_none(), "{section}: {word} is a field");
                if let Field(name) | Opposite(name) | Level(name) = meant {
                    assert!(
                        table.get(name).is_some(),
                        "{section}: {word} leads to {name}, which is none"
                    );
                }
            }
        }
        for (word, meant) in WORDS[0].1 {
            assert!(
                of_section(word).is_none()
                    && matches!(meant, Field(name) if of_section(name).is_some()),
                "{word}"
            );
        }
    }
}
