//! Words that are reserved for what is to come. Using one is an error that says so.

/// The keys of a `Project` that are to come. One that has come is known, and not looked up here.
pub(in crate::manifest) const PLANNED_KEYS: [&str; 11] = [
    "custom_attributes",
    "deploy_keys",
    "environments",
    "external_status_checks",
    "inherit",
    "integrations",
    "job_token_scope",
    "milestones",
    "pages_domains",
    "protected_environments",
    "services",
];

/// The key of any section that is to come.
pub(in crate::manifest) const PLANNED_FIELD: &str = "inherit";
