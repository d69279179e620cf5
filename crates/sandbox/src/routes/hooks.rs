//! Hooks of a project (reference 2, 4.5), and those of a group (Premium), which the reference leaves
//! out. They are stored and validated; nothing is ever delivered.

use std::{borrow::Cow, collections::HashSet};

use rusqlite::{Connection, OptionalExtension, Row};

use super::super::attributes::{Attribute, Null, TABLE};
use super::super::outbound::{self, Reach};
use super::super::profile::AbsentDelete;
use super::super::re2;
use super::super::store::repository::is_ref_name;
use super::hook_secrets::{self, HEADERS, SORTS, Secrets, URL_VARIABLES};
use super::prelude::*;

pub(super) const OF_BOTH: &[Route] = &[
    get("/hooks", |call| list(call, &scope(call)?)),
    post("/hooks", |call| create(call, &scope(call)?)),
    get("/hooks/{hook_id}", |call| show(call, &scope(call)?)),
    put("/hooks/{hook_id}", |call| update(call, &scope(call)?)),
    delete("/hooks/{hook_id}", |call| remove(call, &scope(call)?)),
    put("/hooks/{hook_id}/url_variables/{key}", |call| set_secret(call, &URL_VARIABLES)),
    delete("/hooks/{hook_id}/url_variables/{key}", |call| remove_secret(call, &URL_VARIABLES)),
    put("/hooks/{hook_id}/custom_headers/{key}", |call| set_secret(call, &HEADERS)),
    delete("/hooks/{hook_id}/custom_headers/{key}", |call| remove_secret(call, &HEADERS)),
    post("/hooks/{hook_id}/test/{trigger}", |call| test(call, &scope(call)?)),
];

/// How many hooks a project may have, and how many a group.
const MOST: i64 = 100;
const MOST_OF_GROUP: i64 = 50;

/// A text of hooks, kept as sent.
struct Text {
    name: &'static str,
    since: Release,
    longest: usize,
    /// What refusals call it.
    title: &'static str,
}

const fn text(name: &'static str, since: Release, longest: usize, title: &'static str) -> Text {
    Text { name, since, longest, title }
}

const TEXTS: [Text; 3] = [
    text("name", Release::new(17, 1), 255, "Name"),
    text("description", Release::new(17, 1), 2_048, "Description"),
    text("custom_webhook_template", Release::new(16, 10), 4_096, "Custom webhook template"),
];

const STRATEGY: &str = "branch_filter_strategy";
const STRATEGIES: [&str; 3] = ["wildcard", "regex", "all_branches"];
const STRATEGY_SINCE: Release = Release::new(17, 2);
/// The longest URL.
const LONGEST_URL: usize = 8_192;
const FILTER: &str = "push_events_branch_filter";
const LONGEST_FILTER: usize = 4_000;

/// The project or group, for who manages it.
fn scope(call: &Call<'_>) -> Result<Scope> {
    let scope = Scope::kept_by(call, [MAINTAINER, OWNER])?;
    if call.is_of_group() {
        call.require_tier(Tier::Premium)?;
    }
    Ok(scope)
}

/// The flags of the hooks of a project or group.
fn flags(call: &Call<'_>, scope: &Scope) -> impl Iterator<Item = &'static Attribute> {
    let edition = call.edition();
    let of_groups: &[Attribute] = match scope {
        Scope::Group(_) => &TABLE.group_hooks,
        Scope::Project(_) => &[],
    };
    TABLE.hooks.iter().chain(of_groups).filter(move |flag| flag.is_of(edition))
}

/// The texts that a hook has.
fn texts(call: &Call<'_>) -> impl Iterator<Item = &'static Text> {
    let release = call.release();
    TEXTS.iter().filter(move |text| text.since <= release)
}

fn has_strategy(call: &Call<'_>) -> bool {
    call.release() >= STRATEGY_SINCE
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
        hook.reset_flags(call, scope);
        hook
    }

    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let settings: String = row.get(1)?;
        Ok(Self {
            id: row.get(0)?,
            settings: serde_json::from_str(&settings).unwrap_or_default(),
            token: row.get(2)?,
            created_at: row.get(3)?,
        })
    }

    fn reset_flags(&mut self, call: &Call<'_>, scope: &Scope) {
        for flag in flags(call, scope) {
            self.settings.insert(flag.name.to_owned(), flag.preset.clone());
        }
    }

    fn text(&self, name: &str) -> &str {
        self.settings.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// As the service shows one; `listed` is one of a list. What a hook was never told, it has as a
    /// new one.
    fn json(&self, call: &Call<'_>, scope: &Scope, listed: bool) -> Value {
        let mut body = json!({
            "id": self.id,
            "url": self.text("url"),
            "created_at": self.created_at,
            "alert_status": "executable",
            "disabled_until": null,
            "repository_update_events": false,
            scope.column(): scope.id(),
        });
        let shown = |name| self.settings.get(name).cloned();
        for flag in flags(call, scope) {
            body[flag.name] = shown(flag.name).unwrap_or_else(|| flag.preset.clone());
        }
        for name in texts(call).map(|text| text.name).chain([FILTER]) {
            body[name] = shown(name).into();
        }
        if has_strategy(call) {
            body[STRATEGY] = shown(STRATEGY).unwrap_or_else(|| STRATEGIES[0].into());
        }
        // Lists of projects leave them out from 16.7 on.
        if !listed || matches!(scope, Scope::Group(_)) || !call.is_from(16, 7) {
            for sort in SORTS.iter().filter(|sort| sort.is_known(call)) {
                body[sort.name] = sort.shown(&self.settings);
            }
        }
        body
    }

    /// Takes what the call says.
    fn take(&mut self, call: &Call<'_>, scope: &Scope, params: &Params) -> Result<()> {
        let before = self.settings.clone();
        if params.has("url") || !self.settings.contains_key("url") {
            let url = params.text("url")?.unwrap_or_default().trim().to_owned();
            if self.text("url") != url {
                self.token = None;
            }
            self.settings.insert("url".to_owned(), url.into());
        }
        if params.has("token") {
            self.token = params.text("token")?.filter(|token| !token.is_empty());
        }
        for flag in flags(call, scope).filter(|flag| params.has(flag.name)) {
            let on = params.flag(flag.name)?;
            refuse_if(on.is_none() && flag.null == Null::Unsaved, || Failure::not_null(flag.name))?;
            self.settings.insert(flag.name.to_owned(), on.into());
        }
        for text in texts(call).filter(|text| params.has(text.name)) {
            self.settings.insert(text.name.to_owned(), params.text(text.name)?.into());
        }
        if params.has(FILTER) {
            self.settings.insert(FILTER.to_owned(), params.text(FILTER)?.into());
        }
        if has_strategy(call)
            && let Some(strategy) = params.one_of(STRATEGY, &STRATEGIES)?
        {
            self.settings.insert(STRATEGY.to_owned(), strategy.into());
        }
        for sort in SORTS.iter().filter(|sort| sort.is_known(call)) {
            sort.add(&mut self.settings, sort.sent(params)?);
        }
        self.check(call, &before)
    }

    /// Refuses what a hook cannot be. Secrets do not survive that the hook calls another address
    /// than `before`, those of the same call neither.
    fn check(&mut self, call: &Call<'_>, before: &Map<String, Value>) -> Result<()> {
        hook_secrets::reset(&mut self.settings, before);
        let refused = |words: &str| Err(Failure::unprocessable(words));
        let address = hook_secrets::address(&self.settings);
        if self.text("url").len() > LONGEST_URL
            || address.is_none_or(|url| {
                outbound::refused(&url, &["http", "https"], Reach::Outside).is_some()
            })
        {
            return refused("Invalid url given");
        }
        if !self.check_filter() {
            return refused("Invalid branch filter given");
        }
        if self.token.as_ref().is_some_and(|token| token.contains('\n')) {
            return refused("Token is invalid");
        }
        for text in texts(call) {
            if self.text(text.name).chars().count() > text.longest {
                let Text { title, longest, .. } = text;
                return refused(&format!("{title} is too long (maximum is {longest} characters)"));
            }
        }
        match SORTS.iter().find(|sort| !sort.is_sound(&self.settings)) {
            Some(sort) => refused(&format!("{} must be a valid json schema", sort.title)),
            None => Ok(()),
        }
    }

    /// Whether the filter of branches is one; a filter by name loses needless blanks, and where all
    /// branches are meant there is none.
    fn check_filter(&mut self) -> bool {
        let filter = self.text(FILTER);
        match self.text(STRATEGY) {
            "all_branches" => {
                self.settings.insert(FILTER.to_owned(), Value::Null);
                true
            }
            "regex" => re2::refusal(filter).is_none(),
            _ => {
                let filter = filter.split_whitespace().collect::<Vec<_>>().join(" ");
                let good = filter.is_empty()
                    || is_ref_name(&filter.replace('*', "x")) && filter.len() <= LONGEST_FILTER;
                if self.settings.get(FILTER).is_some_and(Value::is_string) {
                    self.settings.insert(FILTER.to_owned(), filter.into());
                }
                good
            }
        }
    }

    fn save(&mut self, call: &Call<'_>, scope: &Scope) -> Result<()> {
        let sql = format!(
            "INSERT INTO hooks (id, {}, settings, token, created_at)
             VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5)
             ON CONFLICT (id) DO UPDATE SET settings = excluded.settings, token = excluded.token
             RETURNING id",
            scope.column()
        );
        self.id = call.one(
            &sql,
            params![
                self.id,
                scope.id(),
                Value::Object(self.settings.clone()).to_string(),
                self.token,
                self.created_at
            ],
        )?;
        Ok(())
    }
}

/// Adds a hook of a seed, unless its address is `known`.
pub(crate) fn plant(
    call: &Call<'_>,
    scope: &Scope,
    params: &Params,
    known: &mut HashSet<String>,
) -> Result<()> {
    if !known.insert(params.text("url")?.unwrap_or_default()) {
        return Ok(());
    }
    let mut hook = Hook::new(call, scope);
    hook.take(call, scope, params)?;
    hook.save(call, scope)
}

/// The addresses of all hooks.
pub(crate) fn addresses(call: &Call<'_>, scope: &Scope) -> Result<HashSet<String>> {
    let sql =
        format!("SELECT id, settings, token, created_at FROM hooks WHERE {} = ?1", scope.column());
    let mut statement = call.db.prepare_cached(&sql)?;
    let hooks = statement.query_map([scope.id()], Hook::from_row)?;
    Ok(hooks.map(|hook| Ok(hook?.text("url").to_owned())).collect::<rusqlite::Result<_>>()?)
}

/// The secret of a hook.
pub(crate) fn token(db: &Connection, hook: i64) -> Result<Option<String>> {
    let found = db
        .query_row("SELECT token FROM hooks WHERE id = ?1", [hook], |row| row.get(0))
        .optional()?;
    Ok(found.flatten())
}

/// The hook of the call.
fn find(call: &Call<'_>, scope: &Scope) -> Result<Hook> {
    seek(call, scope)?.ok_or_else(Failure::no_record)
}

fn seek(call: &Call<'_>, scope: &Scope) -> Result<Option<Hook>> {
    let id = call.segment_id("hook_id")?;
    let sql = format!(
        "SELECT id, settings, token, created_at FROM hooks WHERE {} = ?1 AND id = ?2",
        scope.column()
    );
    let mut statement = call.db.prepare_cached(&sql)?;
    Ok(statement.query_row([scope.id(), id], Hook::from_row).optional()?)
}

fn list(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let sql = format!(
        "SELECT id, settings, token, created_at FROM hooks WHERE {} = ?1 ORDER BY id",
        scope.column()
    );
    let all: Vec<Hook> = call
        .db
        .prepare_cached(&sql)?
        .query_map([scope.id()], Hook::from_row)?
        .collect::<Result<_, _>>()?;
    page::list_of(call, &all, |hook| Ok(Cow::Owned(hook.json(call, scope, true))))
}

fn show(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    Answer::ok(&find(call, scope)?.json(call, scope, false))
}

fn create(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    call.params.require(&["url"])?;
    let mut hook = Hook::new(call, scope);
    hook.take(call, scope, &call.params)?;
    let count: i64 = call
        .one(&format!("SELECT count(*) FROM hooks WHERE {} = ?1", scope.column()), [scope.id()])?;
    let most = match scope {
        Scope::Project(_) => MOST,
        Scope::Group(_) => MOST_OF_GROUP,
    };
    if count >= most {
        let text = format!("Maximum number of {} hooks ({most}) exceeded", scope.name());
        return Err(Failure::unprocessable(&text));
    }
    hook.save(call, scope)?;
    Answer::created(&hook.json(call, scope, false))
}

/// Needs anything; the reference says that a project's hook needs the URL.
fn update(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let mut hook = find(call, scope)?;
    if matches!(scope, Scope::Project(_)) && call.release() < OBSERVED {
        call.params.require(&["url"])?;
    }
    let params = &call.params;
    let mut known = ["url", "token", FILTER, STRATEGY]
        .into_iter()
        .chain(texts(call).map(|text| text.name))
        .chain(flags(call, scope).map(|flag| flag.name))
        .filter(|name| params.has(name));
    let mut secrets = SORTS.iter().filter(|sort| sort.is_known(call));
    if known.next().is_none() && !secrets.any(|sort| sort.has_any(params)) {
        return Err(Failure::error(StatusCode::BAD_REQUEST, "No parameters provided"));
    }
    if call.service.profile.put_resets_omitted_flags {
        hook.reset_flags(call, scope);
    }
    hook.take(call, scope, params)?;
    hook.save(call, scope)?;
    Answer::ok(&hook.json(call, scope, false))
}

/// Idempotent for a project (reference 2, 4.5), unless a dialect says otherwise.
fn remove(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let strict = matches!(scope, Scope::Group(_))
        || call.service.profile.absent_delete == AbsentDelete::NotFound;
    match seek(call, scope)? {
        Some(hook) => {
            call.check_unmodified(&hook.created_at)?;
            call.db.execute("DELETE FROM hooks WHERE id = ?1", [hook.id])?;
        }
        None if strict => return Err(Failure::no_record()),
        None => {}
    }
    Ok(Answer::no_content())
}

/// Sets one header or variable.
fn set_secret(call: &Call<'_>, sort: &Secrets) -> Result<Answer> {
    let scope = &scope(call)?;
    sort.require(call)?;
    call.params.require(&["value"])?;
    let mut hook = find(call, scope)?;
    let before = hook.settings.clone();
    let value = call.params.text("value")?;
    sort.add(&mut hook.settings, [(call.segment("key").to_owned(), value.into())]);
    hook.check(call, &before).map_err(|_| Failure::unprocessable("Illegal key or value"))?;
    hook.save(call, scope)?;
    Ok(Answer::no_content())
}

fn remove_secret(call: &Call<'_>, sort: &Secrets) -> Result<Answer> {
    let scope = &scope(call)?;
    sort.require(call)?;
    let mut hook = find(call, scope)?;
    let before = hook.settings.clone();
    if !sort.remove(&mut hook.settings, call.segment("key")) {
        return Err(Failure::not_found(sort.one));
    }
    let text = format!("Could not unset {}", sort.one);
    hook.check(call, &before).map_err(|_| Failure::unprocessable(&text))?;
    hook.save(call, scope)?;
    Ok(Answer::no_content())
}

/// Nothing is delivered, so that every test succeeds.
fn test(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    refuse_if(!call.is_from(16, 11), Failure::no_route)?;
    let trigger = call.segment("trigger");
    if !flags(call, scope).any(|flag| flag.name == trigger && trigger.ends_with("_events")) {
        return Err(Failure::no_valid_value("trigger"));
    }
    find(call, scope)?;
    Answer::created(&json!({ "message": "201 Created" }))
}
