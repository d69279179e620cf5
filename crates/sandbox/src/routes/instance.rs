//! Settings, background jobs and templates of the whole service, and empty lists. Clients change
//! the settings before they begin, wait for the jobs, test their paging with the templates, and
//! read the lists when they clean up.

use std::sync::LazyLock;

use super::super::urls::Reach;
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/application/settings", show),
    put("/application/settings", update),
    get("/sidekiq/queue_metrics", |call| metrics(call, &["queues"])),
    get("/sidekiq/process_metrics", |call| metrics(call, &["processes"])),
    get("/sidekiq/job_stats", |call| metrics(call, &["jobs"])),
    get("/sidekiq/compound_metrics", |call| metrics(call, &["queues", "processes", "jobs"])),
    get("/templates/gitlab_ci_ymls", templates),
    get("/templates/gitlab_ci_ymls/{name}", template),
    get("/projects/{id}/templates/licenses", licenses),
];

/// The names of pipeline templates, one per line: more than one page. Their content is never used.
const TEMPLATES: &str = include_str!("templates.txt");

fn templates(call: &Call<'_>) -> Result<Answer> {
    let all: Vec<Value> =
        TEMPLATES.lines().map(|name| json!({ "key": name, "name": name })).collect();
    page::list(call, &all)
}

fn template(call: &Call<'_>) -> Result<Answer> {
    let name = call.segment("name");
    match TEMPLATES.lines().any(|known| known == name) {
        true => Answer::ok(&json!({ "name": name, "content": format!("# {name}\n") })),
        false => Err(Failure::not_found("Template")),
    }
}

/// The licences for new projects: key and name of each.
const LICENSES: &str = include_str!("licenses.txt");

fn licenses(call: &Call<'_>) -> Result<Answer> {
    call.project()?;
    let pairs = LICENSES.lines().filter_map(|line| line.split_once(' '));
    let all: Vec<Value> = pairs.map(|(key, name)| json!({ "key": key, "name": name })).collect();
    page::list(call, &all)
}

/// The settings of a new service; the type of each value is that of the setting.
static PRESETS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("settings.json")).expect("the settings are read by tests")
});

/// Whether the scope of job tokens cannot be switched off.
pub(super) const INBOUND_ENFORCED: &str = "enforce_ci_inbound_job_token_scope_enabled";

fn settings(call: &Call<'_>) -> Result<Map<String, Value>> {
    call.administrator()?;
    stored(call)
}

/// The value of one setting, for any caller.
pub(super) fn setting(call: &Call<'_>, name: &str) -> Result<Value> {
    Ok(stored(call)?.remove(name).unwrap_or_default())
}

/// Where the service itself may send requests.
pub(super) fn reach<'a>(call: &'a Call<'_>) -> Result<Reach<'a>> {
    let is_local = setting(call, "allow_local_requests_from_web_hooks_and_services")?;
    Ok(if is_local == Value::Bool(true) { Reach::Anywhere } else { Reach::Outside(&call.base) })
}

fn stored(call: &Call<'_>) -> Result<Map<String, Value>> {
    let sql = "SELECT value FROM meta WHERE key = 'application settings'";
    let stored: Option<String> = call.maybe(sql, [])?;
    let mut settings = PRESETS.clone();
    if !call.is_from(17, 6) {
        settings.remove(INBOUND_ENFORCED);
    } else if !call.is_from(18, 0) {
        settings.insert(INBOUND_ENFORCED.to_owned(), false.into());
    }
    if let Some(days) = call.service.deletion_delay() {
        settings.insert("deletion_adjourned_period".to_owned(), days.into());
    }
    if let Some(text) = stored {
        let set: Map<String, Value> =
            serde_json::from_str(&text).map_err(|error| Failure::internal(&error))?;
        settings.extend(set);
    }
    Ok(settings)
}

fn show(call: &Call<'_>) -> Result<Answer> {
    Answer::ok(&settings(call)?)
}

fn update(call: &Call<'_>) -> Result<Answer> {
    let mut settings = settings(call)?;
    for (name, value) in &mut settings {
        let new = match value {
            Value::Bool(_) => call.params.flag(name)?.map(Value::from),
            Value::Number(_) => call.params.integer(name)?.map(Value::from),
            Value::Array(_) => call.params.texts(name)?.map(Value::from),
            _ => call.params.text(name)?.map(Value::from),
        };
        if let Some(new) = new {
            *value = new;
        }
    }
    let text = serde_json::to_string(&settings).map_err(|error| Failure::internal(&error))?;
    let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES ('application settings', ?1)";
    call.run(sql, [text])?;
    Answer::ok(&settings)
}

/// Parts of the report of background jobs. There are none, so nobody waits for them.
fn metrics(call: &Call<'_>, parts: &[&str]) -> Result<Answer> {
    call.administrator()?;
    let all = json!({
        "queues": { "default": { "backlog": 0, "latency": 0 } },
        "processes": [{ "hostname": "localhost", "pid": 1, "queues": ["default"], "concurrency": 1, "busy": 0 }],
        "jobs": { "processed": 0, "failed": 0, "enqueued": 0, "dead": 0 },
    });
    let shown: Map<String, Value> =
        parts.iter().map(|part| ((*part).to_owned(), all[*part].clone())).collect();
    Answer::ok(&shown)
}
