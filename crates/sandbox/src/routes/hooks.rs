//! Hooks of a project (reference 2, 4.5), and those of a group (Premium), which the reference leaves
//! out. They are stored and validated; nothing is ever delivered.

use std::net::IpAddr;

use http::StatusCode;
use http::uri::{Scheme, Uri};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Map, Value, json};

use super::super::access::{MAINTAINER, OWNER};
use super::super::answer::{Answer, Failure};
use super::super::attributes::Tier;
use super::super::call::Call;
use super::super::page;
use super::super::params::Params;
use super::super::profile::AbsentDelete;
use super::super::scope::Scope;
use super::{Route, delete, get, post, put};
use undrift_release::Release;

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/hooks", |call| list(call, &project(call, false)?)),
    post("/projects/{id}/hooks", |call| create(call, &project(call, true)?)),
    get("/projects/{id}/hooks/{hook_id}", |call| show(call, &project(call, false)?)),
    put("/projects/{id}/hooks/{hook_id}", |call| update(call, &project(call, true)?)),
    delete("/projects/{id}/hooks/{hook_id}", |call| remove(call, &project(call, true)?)),
    get("/groups/{id}/hooks", |call| list(call, &group(call)?)),
    post("/groups/{id}/hooks", |call| create(call, &group(call)?)),
    get("/groups/{id}/hooks/{hook_id}", |call| show(call, &group(call)?)),
    put("/groups/{id}/hooks/{hook_id}", |call| update(call, &group(call)?)),
    delete("/groups/{id}/hooks/{hook_id}", |call| remove(call, &group(call)?)),
];

/// How many hooks a project may have, and how many a group.
const MOST: i64 = 100;
const MOST_OF_GROUP: i64 = 50;

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

/// The flags of later releases, off unless a call says otherwise: the release, the licence, and
/// whether only hooks of groups have it.
const LATER: [(&str, Release, Tier, bool); 6] = [
    ("emoji_events", Release::new(16, 2), Tier::Free, false),
    ("resource_access_token_events", Release::new(16, 11), Tier::Free, false),
    ("feature_flag_events", Release::new(17, 5), Tier::Free, false),
    ("vulnerability_events", Release::new(17, 7), Tier::Ultimate, false),
    ("milestone_events", Release::new(18, 2), Tier::Free, false),
    ("project_events", Release::new(18, 2), Tier::Premium, true),
];

/// The texts of later releases: the release, and the greatest length.
const TEXTS: [(&str, Release, usize); 3] = [
    ("name", Release::new(17, 1), 255),
    ("description", Release::new(17, 1), 2_048),
    ("custom_webhook_template", Release::new(16, 10), 4_096),
];

/// What only hooks of groups are for, off unless a call says otherwise.
const OF_GROUPS: &str = "subgroup_events";
/// What hooks of groups do not say until a call does.
const UNSAID_OF_GROUPS: &str = "confidential_note_events";
const FILTER: &str = "push_events_branch_filter";

/// The project, whose caller has to be a maintainer.
fn project(call: &Call<'_>, writes: bool) -> Result<Scope, Failure> {
    let project = match writes {
        true => call.writable_project_as(MAINTAINER)?,
        false => call.project_as(MAINTAINER)?,
    };
    Ok(Scope::Project(Box::new(project)))
}

/// The group, whose caller has to be an owner.
fn group(call: &Call<'_>) -> Result<Scope, Failure> {
    let group = Scope::group(call, OWNER)?;
    call.require_tier(Tier::Premium)?;
    Ok(group)
}

/// The flags of the hooks of a project or group, with what a new one has.
fn flags(call: &Call<'_>, scope: &Scope) -> Vec<(&'static str, Value)> {
    let mut flags: Vec<_> =
        FLAGS.iter().map(|(name, preset)| (*name, Value::Bool(*preset))).collect();
    if matches!(scope, Scope::Group(_)) {
        flags.push((OF_GROUPS, false.into()));
        let unsaid = flags.iter_mut().filter(|(name, _)| *name == UNSAID_OF_GROUPS);
        unsaid.for_each(|(_, preset)| *preset = Value::Null);
    }
    let edition = call.edition();
    let later = LATER.iter().filter(|(_, since, tier, of_groups)| {
        *since <= edition.release
            && *tier <= edition.tier
            && (!of_groups || matches!(scope, Scope::Group(_)))
    });
    flags.extend(later.map(|(name, ..)| (*name, false.into())));
    flags
}

/// The texts that a hook has.
fn texts(call: &Call<'_>) -> impl Iterator<Item = (&'static str, usize)> {
    let release = call.release();
    let known = TEXTS.iter().filter(move |(_, since, _)| *since <= release);
    known.map(|(name, _, most)| (*name, *most))
}

struct Hook {
    id: i64,
    settings: Map<String, Value>,
    token: Option<String>,
    created_at: String,
}

impl Hook {
    fn new(call: &Call<'_>, scope: &Scope) -> Self {
        let created_at = call.now().to_owned();
        let mut hook = Self { id: 0, settings: Map::new(), token: None, created_at };
        hook.settings.insert(FILTER.to_owned(), "".into());
        hook.reset_flags(call, scope);
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

    fn reset_flags(&mut self, call: &Call<'_>, scope: &Scope) {
        for (name, preset) in flags(call, scope) {
            self.settings.insert(name.to_owned(), preset);
        }
    }

    fn json(&self, call: &Call<'_>, scope: &Scope) -> Value {
        let mut body =
            json!({ "id": self.id, scope.column(): scope.id(), "created_at": self.created_at });
        if let Value::Object(body) = &mut body {
            // A hook that an older release made says nothing of what came later.
            body.extend(flags(call, scope).into_iter().map(|(name, preset)| (name.into(), preset)));
            body.extend(texts(call).map(|(name, _)| (name.to_owned(), Value::Null)));
            body.extend(self.settings.clone());
        }
        body
    }

    /// Takes what the call says. A changed URL resets the stored token, unless the call brings one.
    fn take(&mut self, call: &Call<'_>, scope: &Scope, params: &Params) -> Result<(), Failure> {
        let url = params.text("url")?;
        if url.is_some() || !self.settings.contains_key("url") {
            let url = url.unwrap_or_default();
            if !acceptable(&url) {
                return Err(Failure::unprocessable("Invalid url given"));
            }
            let url = Value::from(url);
            if self.settings.get("url") != Some(&url) {
                self.token = None;
                self.settings.insert("url".to_owned(), url);
            }
        }
        if let Some(token) = params.text("token")? {
            if token.contains(['\n', '\r']) {
                return Err(Failure::unprocessable("Invalid token given"));
            }
            self.token = (!token.is_empty()).then_some(token);
        }
        for (name, _) in flags(call, scope) {
            if let Some(on) = params.flag(name)? {
                self.settings.insert(name.to_owned(), on.into());
            }
        }
        for (name, most) in texts(call).filter(|(name, _)| params.has(name)) {
            let text = params.text(name)?.filter(|text| !text.is_empty());
            if text.as_ref().is_some_and(|text| text.chars().count() > most) {
                let why = format!("is too long (maximum is {most} characters)");
                return Err(Failure::model(name, why));
            }
            self.settings.insert(name.to_owned(), text.into());
        }
        if params.has(FILTER) {
            let filter = params.text(FILTER)?.unwrap_or_default();
            if !is_branch_filter(&filter) {
                return Err(Failure::unprocessable("Invalid branch filter given"));
            }
            self.settings.insert(FILTER.to_owned(), filter.into());
        }
        Ok(())
    }

    fn save(&mut self, call: &Call<'_>, scope: &Scope) -> Result<(), Failure> {
        let sql = format!(
            "INSERT INTO hooks (id, {}, settings, token, created_at)
             VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5)
             ON CONFLICT (id) DO UPDATE SET settings = excluded.settings, token = excluded.token
             RETURNING id",
            scope.column()
        );
        self.id = call.db.prepare_cached(&sql)?.query_row(
            params![
                self.id,
                scope.id(),
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
pub(crate) fn plant(call: &Call<'_>, scope: &Scope, params: &Params) -> Result<(), Failure> {
    let url = params.text("url")?.unwrap_or_default();
    let sql = format!(
        "SELECT 1 FROM hooks WHERE {} = ?1 AND json_extract(settings, '$.url') = ?2",
        scope.column()
    );
    if call.db.prepare_cached(&sql)?.exists(params![scope.id(), url])? {
        return Ok(());
    }
    let mut hook = Hook::new(call, scope);
    hook.take(call, scope, params)?;
    hook.save(call, scope)
}

/// The secret of a hook.
pub(crate) fn token(db: &Connection, hook: i64) -> Result<Option<String>, Failure> {
    let found = db
        .query_row("SELECT token FROM hooks WHERE id = ?1", [hook], |row| row.get(0))
        .optional()?;
    Ok(found.flatten())
}

fn find(call: &Call<'_>, scope: &Scope) -> Result<Option<Hook>, Failure> {
    let id = call.segment_id("hook_id")?;
    let sql = format!(
        "SELECT id, settings, token, created_at FROM hooks WHERE {} = ?1 AND id = ?2",
        scope.column()
    );
    let mut statement = call.db.prepare_cached(&sql)?;
    Ok(statement.query_row([scope.id(), id], Hook::from_row).optional()?)
}

fn list(call: &Call<'_>, scope: &Scope) -> Result<Answer, Failure> {
    let sql = format!(
        "SELECT id, settings, token, created_at FROM hooks WHERE {} = ?1 ORDER BY id",
        scope.column()
    );
    let all: Vec<Value> = call
        .db
        .prepare_cached(&sql)?
        .query_map([scope.id()], |row| Ok(Hook::from_row(row)?.json(call, scope)))?
        .collect::<Result<_, _>>()?;
    page::list(call, &all)
}

fn show(call: &Call<'_>, scope: &Scope) -> Result<Answer, Failure> {
    let hook = find(call, scope)?.ok_or_else(Failure::no_record)?;
    Answer::ok(&hook.json(call, scope))
}

fn create(call: &Call<'_>, scope: &Scope) -> Result<Answer, Failure> {
    call.params.require(&["url"])?;
    let mut hook = Hook::new(call, scope);
    hook.take(call, scope, &call.params)?;
    let count: i64 = call
        .db
        .prepare_cached(&format!("SELECT count(*) FROM hooks WHERE {} = ?1", scope.column()))?
        .query_row([scope.id()], |row| row.get(0))?;
    let most = match scope {
        Scope::Project(_) => MOST,
        Scope::Group(_) => MOST_OF_GROUP,
    };
    if count >= most {
        let text = format!("Maximum number of {} hooks ({most}) exceeded", scope.name());
        return Err(match scope {
            Scope::Project(_) => Failure::model("base", text),
            Scope::Group(_) => Failure::unprocessable(&text),
        });
    }
    hook.save(call, scope)?;
    Answer::created(&hook.json(call, scope))
}

/// A project's needs the URL; a group's needs anything.
fn update(call: &Call<'_>, scope: &Scope) -> Result<Answer, Failure> {
    let mut hook = find(call, scope)?.ok_or_else(Failure::no_record)?;
    match scope {
        Scope::Project(_) => call.params.require(&["url"])?,
        Scope::Group(_) => {
            let others = ["url", "token", FILTER];
            let texts = texts(call).map(|text| text.0);
            let mut known = others
                .into_iter()
                .chain(texts)
                .chain(flags(call, scope).into_iter().map(|flag| flag.0));
            if !known.any(|name| call.params.has(name)) {
                let text = "No parameters provided";
                return Err(Failure::error(StatusCode::BAD_REQUEST, text));
            }
        }
    }
    if call.service.profile.put_resets_omitted_flags {
        hook.reset_flags(call, scope);
    }
    hook.take(call, scope, &call.params)?;
    hook.save(call, scope)?;
    Answer::ok(&hook.json(call, scope))
}

/// Idempotent for a project (reference 2, 4.5), unless a dialect says otherwise.
fn remove(call: &Call<'_>, scope: &Scope) -> Result<Answer, Failure> {
    let strict = matches!(scope, Scope::Group(_))
        || call.service.profile.absent_delete == AbsentDelete::NotFound;
    match find(call, scope)? {
        Some(hook) => {
            call.check_unmodified(&hook.created_at)?;
            call.db.execute("DELETE FROM hooks WHERE id = ?1", [hook.id])?;
        }
        None if strict => return Err(Failure::no_record()),
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
