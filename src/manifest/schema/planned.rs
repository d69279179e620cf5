//! Words that are reserved for what is to come. Using one is an error that says so.

/// The kinds of documents that are to come.
pub(in crate::manifest) const PLANNED_DOCUMENTS: [&str; 2] = ["Defaults", "Profile"];

/// The keys of a `Project` that are to come. One that has come is known, and not looked up here.
pub(in crate::manifest) const PLANNED_KEYS: [&str; 27] = [
    "badges",
    "branches",
    "custom_attributes",
    "deploy_keys",
    "environments",
    "external_status_checks",
    "fork",
    "forked_from",
    "freeze_periods",
    "ignore_layers",
    "inherit",
    "integrations",
    "job_token_scope",
    "merge_request_approvals",
    "milestones",
    "pages_domains",
    "params",
    "pipeline_schedules",
    "previously",
    "protected_environments",
    "push_mirrors",
    "remote_mirrors",
    "schedules",
    "services",
    "undeclared_projects",
    "uses",
    "watch",
];

/// The key of any section that is to come.
pub(in crate::manifest) const PLANNED_FIELD: &str = "inherit";

/// The keys of `undrift.yaml` that are to come, each with the part that it belongs to.
pub(in crate::manifest) const PLANNED_CONFIG: [(&str, &str); 1] = [("", "manages")];

/// Words of a field that are to come.
pub(in crate::manifest) const PLANNED_WORDS: [(&str, &str); 1] = [("state", "unmanaged")];
