//! Hooks of a project (reference 2, 4.5). They are stored and validated; nothing is ever delivered.

use std::net::IpAddr;

use http::uri::{Scheme, Uri};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Map, Value, json};

use super::super::access::MAINTAINER;
use super::super::answer::{Answer, Failure};
use super::super::call::Call;
use super::super::page;
use super::super::params::Params;
use super::super::profile::AbsentDelete;
use super::{Route, delete, get, post, put};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/hooks", list),
    post("/projects/{id}/hooks", create),
    get("/projects/{id}/hooks/{hook_id}", show),
    put("/projects/{id}/hooks/{hook_id}", update),
    delete("/projects/{id}/hooks/{hook_id}", remove),
];

/// How many hooks a project may have.
const MOST: i64 = 100;

/// The flags with what a new hook has when the call does not say. The last one is the real
/// service's alone.
const FLAGS: [(&str, bool); 14] = [
    ("push_events", true),
    ("issues_events", false),
    ("confidential_issues_events", false),
    ("merge_requests_events", false),
    ("tag_push_events", false),
    ("note_events", false),
    ("confidential_note_events", false),
    ("job_events", false),
    ("pipeline_events", false),
    ("wiki_page_events", false),
    ("deployment_events", false),
    ("releases_events", false),
    ("enable_ssl_verification", true),
    ("repository_update_events", false),
];

struct Hook {
    id: i64,
    settings: Map<String, Value>,
    token: Option<String>,
    created_at: String,
}

impl Hook {
    fn new(now: String) -> Self {
        let mut hook = Self { id: 0, settings: Map::new(), token: None, created_at: now };
        hook.settings.insert("push_events_branch_filter".to_owned(), "".into());
        hook.reset_flags();
        hook
    }

    fn from_row(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        let settings: String = row.get(1)?;
        Ok(Self {
            id: row.get(0)?,
            settings: serde_json::from_str(&settings).unwrap_or_default(),
            token: row.get(2)?,
            created_at: row.get(3)?,
        })
    }

    fn reset_flags(&mut self) {
        for (name, preset) in FLAGS {
            self.settings.insert(name.to_owned(), preset.into());
        }
    }

    fn json(&self, project: i64) -> Value {
        let mut body =
            json!({ "id": self.id, "project_id": project, "created_at": self.created_at });
        if let Value::Object(body) = &mut body {
            body.extend(self.settings.clone());
        }
        body
    }

    /// Takes what the call says. A changed URL resets the stored token, unless the call brings one.
    fn take(&mut self, params: &Params) -> Result<(), Failure> {
        let url = params.text("url")?.unwrap_or_default();
        if !acceptable(&url) {
            return Err(Failure::unprocessable("Invalid url given"));
        }
        let url = Value::from(url);
        if self.settings.get("url") != Some(&url) {
            self.token = None;
            self.settings.insert("url".to_owned(), url);
        }
        if let Some(token) = params.text("token")? {
            if token.contains(['\n', '\r']) {
                return Err(Failure::unprocessable("Invalid token given"));
            }
            self.token = (!token.is_empty()).then_some(token);
        }
        for (name, _) in &FLAGS {
            if let Some(on) = params.flag(name)? {
                self.settings.insert((*name).to_owned(), on.into());
            }
        }
        if params.has("push_events_branch_filter") {
            let filter = params.text("push_events_branch_filter")?.unwrap_or_default();
            if !is_branch_filter(&filter) {
                return Err(Failure::unprocessable("Invalid branch filter given"));
            }
            self.settings.insert("push_events_branch_filter".to_owned(), filter.into());
        }
        Ok(())
    }

    fn save(&mut self, call: &Call<'_>, project: i64) -> Result<(), Failure> {
        self.id = call
            .db
            .prepare_cached(
                "INSERT INTO hooks (id, project_id, settings, token, created_at)
                 VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5)
                 ON CONFLICT (id) DO UPDATE SET settings = excluded.settings, token = excluded.token
                 RETURNING id",
            )?
            .query_row(
                params![
                    self.id,
                    project,
                    Value::Object(self.settings.clone()).to_string(),
                    self.token,
                    self.created_at
                ],
                |row| row.get(0),
            )?;
        Ok(())
    }
}

/// Whether a URL is absolute, http or https, and does not point into this machine or a private
/// network.
fn acceptable(url: &str) -> bool {
    let plain = url.split('#').next().unwrap_or_default();
    let Ok(uri) = plain.parse::<Uri>() else {
        return false;
    };
    let web = uri.scheme() == Some(&Scheme::HTTP) || uri.scheme() == Some(&Scheme::HTTPS);
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
    let local = host == "localhost"
        || match host.parse() {
            Ok(IpAddr::V4(ip)) => {
                ip.is_loopback() || ip.is_private() || ip.is_unspecified() || ip.is_link_local()
            }
            Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unspecified(),
            Err(_) => false,
        };
    web && !host.is_empty() && !local
}

/// Whether a text can name branches: no blanks, control characters or what Git forbids in names;
/// `*` is allowed.
fn is_branch_filter(text: &str) -> bool {
    let forbidden = |c: char| c.is_whitespace() || c.is_control() || "~^:?[\\".contains(c);
    !text.contains(forbidden)
        && !text.contains("..")
        && !text.ends_with('/')
        && !text.starts_with('-')
}

/// Adds a hook as a call with these parameters would, unless there is one with its URL.
pub(crate) fn plant(call: &Call<'_>, project: i64, params: &Params) -> Result<(), Failure> {
    let url = params.text("url")?.unwrap_or_default();
    let exists = call
        .db
        .prepare_cached(
            "SELECT 1 FROM hooks WHERE project_id = ?1 AND json_extract(settings, '$.url') = ?2",
        )?
        .exists(params![project, url])?;
    if exists {
        return Ok(());
    }
    let mut hook = Hook::new(call.now().to_owned());
    hook.take(params)?;
    hook.save(call, project)
}

/// The secret of a hook.
pub(crate) fn token(db: &Connection, hook: i64) -> Result<Option<String>, Failure> {
    let found = db
        .query_row("SELECT token FROM hooks WHERE id = ?1", [hook], |row| row.get(0))
        .optional()?;
    Ok(found.flatten())
}

fn find(call: &Call<'_>, project: i64) -> Result<Option<Hook>, Failure> {
    let id = call.segment_id("hook_id")?;
    Ok(call
        .db
        .prepare_cached(
            "SELECT id, settings, token, created_at FROM hooks WHERE project_id = ?1 AND id = ?2",
        )?
        .query_row(params![project, id], Hook::from_row)
        .optional()?)
}

fn list(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = call.project_as(MAINTAINER)?;
    let all: Vec<Value> = call
        .db
        .prepare_cached(
            "SELECT id, settings, token, created_at FROM hooks WHERE project_id = ?1 ORDER BY id",
        )?
        .query_map([project.id], |row| Ok(Hook::from_row(row)?.json(project.id)))?
        .collect::<Result<_, _>>()?;
    page::list(call, &all)
}

fn show(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = call.project_as(MAINTAINER)?;
    let hook = find(call, project.id)?.ok_or_else(Failure::no_record)?;
    Answer::ok(&hook.json(project.id))
}

fn create(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = call.writable_project_as(MAINTAINER)?;
    call.params.require(&["url"])?;
    let mut hook = Hook::new(call.now().to_owned());
    hook.take(&call.params)?;
    let count: i64 = call
        .db
        .prepare_cached("SELECT count(*) FROM hooks WHERE project_id = ?1")?
        .query_row([project.id], |row| row.get(0))?;
    if count >= MOST {
        let text = format!("Maximum number of project hooks ({MOST}) exceeded");
        return Err(Failure::model("base", text));
    }
    hook.save(call, project.id)?;
    Answer::created(&hook.json(project.id))
}

fn update(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = call.writable_project_as(MAINTAINER)?;
    let mut hook = find(call, project.id)?.ok_or_else(Failure::no_record)?;
    call.params.require(&["url"])?;
    if call.service.profile.put_resets_omitted_flags {
        hook.reset_flags();
    }
    hook.take(&call.params)?;
    hook.save(call, project.id)?;
    Answer::ok(&hook.json(project.id))
}

fn remove(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = call.writable_project_as(MAINTAINER)?;
    match find(call, project.id)? {
        Some(hook) => {
            call.check_unmodified(&hook.created_at)?;
            call.db.execute("DELETE FROM hooks WHERE id = ?1", [hook.id])?;
        }
        None if call.service.profile.absent_delete == AbsentDelete::NotFound => {
            return Err(Failure::no_record());
        }
        None => {}
    }
    Ok(Answer::no_content())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_into_this_machine_or_its_network_are_refused() {
        for (url, good) in [
            ("https://ci.example.org/x?y=1#z", true),
            ("http://203.0.113.1:8080/", true),
            ("HTTPS://CI.EXAMPLE.ORG", true),
            ("ftp://example.org", false),
            ("example.org/x", false),
            ("/x", false),
            ("", false),
            ("http://localhost:1/", false),
            ("http://127.9.9.9/", false),
            ("http://[::1]/", false),
            ("http://10.0.0.1/", false),
            ("http://172.16.0.1/", false),
            ("http://192.168.0.1/", false),
            ("http://0.0.0.0/", false),
        ] {
            assert_eq!(acceptable(url), good, "{url}");
        }
    }
}
