//! Settings, background jobs and templates of the whole service. The test suites of some clients
//! first change settings, wait until no background job runs, and read templates to test pagination.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/application/settings", |call| Answer::ok(&read_settings(call)?)),
    put("/application/settings", update_settings),
    get("/sidekiq/queue_metrics", |call| show_metrics(call, &["queues"])),
    get("/sidekiq/process_metrics", |call| show_metrics(call, &["processes"])),
    get("/sidekiq/job_stats", |call| show_metrics(call, &["jobs"])),
    get("/sidekiq/compound_metrics", |call| show_metrics(call, &["queues", "processes", "jobs"])),
    get("/templates/gitlab_ci_ymls", list_templates),
    get("/templates/gitlab_ci_ymls/{name}", show_template),
    get("/projects/{id}/templates/licenses", list_licenses),
];

/// The names of pipeline templates, one per line. The names fill more than one page. The content of
/// the templates does not matter.
const TEMPLATES: &str = include_str!("templates.txt");

fn list_templates(call: &Call<'_>) -> Result<Answer> {
    page::list_page(call, TEMPLATES.lines().map(|name| json!({ "key": name, "name": name })))
}

fn show_template(call: &Call<'_>) -> Result<Answer> {
    let name = call.segment("name");
    let exists = TEMPLATES.lines().any(|template| template == name);
    refuse_if(!exists, || ErrorResponse::not_found("Template"))?;
    Answer::ok(&json!({ "name": name, "content": format!("# {name}\n") }))
}

/// The licences for new projects, one per line: the key, then the name.
const LICENSES: &str = include_str!("licenses.txt");

fn list_licenses(call: &Call<'_>) -> Result<Answer> {
    call.project()?;
    let keys_and_names = LICENSES.lines().filter_map(|line| line.split_once(' '));
    page::list_page(call, keys_and_names.map(|(key, name)| json!({ "key": key, "name": name })))
}

/// The settings of a new service. Each value also defines the type of its setting.
static SETTING_DEFAULTS: LazyLock<Object> =
    LazyLock::new(|| read_table(include_str!("settings.json")));

/// The setting that enforces the scope of job tokens.
pub(super) const INBOUND_ENFORCED: &str = "enforce_ci_inbound_job_token_scope_enabled";

/// The number of days after which a marked project or group is deleted.
const DELETION_PERIOD: &str = "deletion_adjourned_period";
const RESTRICTED_VISIBILITIES: &str = "restricted_visibility_levels";

/// The value of one setting, for any caller. Decodes only this setting, because lists call this
/// function for each row.
pub(super) fn read_setting(call: &Call<'_>, name: &str) -> Result<Value> {
    let sql = "SELECT value -> ?1 FROM meta WHERE key = 'application settings'";
    match call.query_optional_value::<Option<String>>(sql, [name])?.flatten() {
        Some(text) => serde_json::from_str(&text).map_err(|error| ErrorResponse::internal(&error)),
        None => Ok(default_value(call, name).unwrap_or_default()),
    }
}

/// The service's own URL. `None` if the service may send requests to its own network, so that no
/// check needs the URL.
pub(super) fn own_url_if_local_blocked<'a>(call: &'a Call<'_>) -> Result<Option<&'a str>> {
    let allows_local = read_setting(call, "allow_local_requests_from_web_hooks_and_services")?;
    Ok(Some(call.base_url.as_str()).filter(|_| allows_local != true))
}

/// The value of a setting in a new service; `None` if the release does not have the setting.
fn default_value(call: &Call<'_>, name: &str) -> Option<Value> {
    match name {
        INBOUND_ENFORCED if !call.is_at_least(17, 6) => return None,
        INBOUND_ENFORCED if !call.is_at_least(18, 0) => return Some(false.into()),
        PROTECTION_DEFAULTS if !call.is_at_least(16, 3) => return None,
        _ => {}
    }
    let days = call.service.deletion_delay().filter(|_| name == DELETION_PERIOD);
    days.map(Value::from).or_else(|| SETTING_DEFAULTS.get(name).cloned())
}

/// All settings, for administrators.
fn read_settings(call: &Call<'_>) -> Result<Object> {
    call.require_administrator()?;
    let sql = "SELECT value FROM meta WHERE key = 'application settings'";
    let stored_json: Option<String> = call.query_optional_value(sql, [])?;
    let default_values =
        SETTING_DEFAULTS.keys().filter_map(|name| Some((name.clone(), default_value(call, name)?)));
    let mut settings: Object = default_values.collect();
    if let Some(text) = stored_json {
        let stored_settings: Object =
            serde_json::from_str(&text).map_err(|error| ErrorResponse::internal(&error))?;
        settings.extend(stored_settings);
    }
    Ok(settings)
}

fn update_settings(call: &Call<'_>) -> Result<Answer> {
    let mut settings = read_settings(call)?;
    let names: Vec<&str> = settings.keys().map(String::as_str).collect();
    call.require_any(&names)?;
    check_values(call)?;
    for (name, value) in &mut settings {
        let may_be_null = SETTING_DEFAULTS.get(name).is_some_and(Value::is_null);
        let new_value = match value {
            Value::Bool(_) => call.flag(name)?.map(Value::from),
            Value::Number(_) => call.integer(name)?.map(Value::from),
            Value::Array(_) => call.texts(name)?.map(Value::from),
            // The only object is the protection of default branches. Its two parameters are read
            // below.
            Value::Object(_) => None,
            _ if may_be_null && call.has(name) => Some(call.text(name)?.into()),
            _ => call.text(name)?.map(Value::from),
        };
        if let Some(requested_value) = new_value {
            *value = requested_value;
        }
    }
    let protection_number = call.integer(BRANCH_PROTECTION)?.filter(|_| call.is_at_least(16, 3));
    if let Some(protection) = default_branches::read_protection(call)?
        .or(protection_number.map(default_branches::protection_from_number))
    {
        settings.insert(PROTECTION_DEFAULTS.to_owned(), protection);
    }
    let text = serde_json::to_string(&settings).map_err(|error| ErrorResponse::internal(&error))?;
    let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES ('application settings', ?1)";
    call.execute(sql, [text])?;
    Answer::ok(&settings)
}

/// Refuses values that are not valid.
fn check_values(call: &Call<'_>) -> Result<()> {
    let names = ["group", "project", "snippet"].map(|kind| format!("default_{kind}_visibility"));
    for name in &names {
        call.allowed_text(name, VISIBILITIES)?;
    }
    call.allowed_texts(RESTRICTED_VISIBILITIES, VISIBILITIES)?;
    let mut errors = FieldErrors::default();
    let is_not_positive = call.integer("session_expire_delay")?.is_some_and(|delay| delay <= 0);
    errors.add_if(is_not_positive, "session_expire_delay", "must be greater than 0");
    // Before 16.0, the value 0 switched delayed deletion off.
    let min_days = i64::from(call.is_at_least(16, 0));
    let days = call.integer(DELETION_PERIOD)?;
    let message = format!("must be greater than or equal to {min_days}");
    errors.add_if(days.is_some_and(|days| days < min_days), DELETION_PERIOD, message);
    let exceeds_limit = days.is_some_and(|days| days > 90);
    errors.add_if(exceeds_limit, DELETION_PERIOD, "must be less than or equal to 90");
    errors.into_result()
}

/// True if the caller may not use a visibility. A setting can reserve a visibility for
/// administrators.
pub(super) fn is_visibility_restricted(call: &Call<'_>, visibility: &str) -> Result<bool> {
    let restricted_levels = read_setting(call, RESTRICTED_VISIBILITIES)?;
    let is_listed =
        restricted_levels.as_array().is_some_and(|levels| levels.contains(&visibility.into()));
    Ok(is_listed && !call.is_administrator())
}

/// Answers with these sections of the report about background jobs. The sandbox has no jobs.
/// Clients that wait for the end of all jobs can therefore continue.
fn show_metrics(call: &Call<'_>, sections: &[&str]) -> Result<Answer> {
    call.require_administrator()?;
    let statistics = json!({
        "queues": { "default": { "backlog": 0, "latency": 0 } },
        "processes": [{ "hostname": "localhost", "pid": 1, "queues": ["default"], "concurrency": 1, "busy": 0 }],
        "jobs": { "processed": 0, "failed": 0, "enqueued": 0, "dead": 0 },
    });
    let shown_sections: Object = sections
        .iter()
        .map(|section| ((*section).to_owned(), statistics[*section].clone()))
        .collect();
    Answer::ok(&shown_sections)
}
