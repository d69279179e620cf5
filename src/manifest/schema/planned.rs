//! Words that are reserved for planned features. Using one is an error that mentions the plan.

/// Planned keys of a `Project`. Existing keys are never looked up here.
pub(in crate::manifest) const PLANNED_KEYS: &str = "custom_attributes deploy_keys environments \
    external_status_checks inherit integrations job_token_scope milestones pages_domains \
    protected_environments services";

/// A planned key of every section.
pub(in crate::manifest) const PLANNED_FIELD: &str = "inherit";
