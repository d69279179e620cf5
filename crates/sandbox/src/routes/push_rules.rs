//! The push rule of a project (reference 2, 4.6; Premium), and that of a group, which the reference
//! leaves out: new projects get a copy of it.

use http::StatusCode;
use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value, json};

use super::super::access::{MAINTAINER, OWNER, ids};
use super::super::answer::{Answer, Failure};
use super::super::attributes::Tier;
use super::super::call::Call;
use super::super::params::Params;
use super::super::profile::{AbsentDelete, AbsentPushRule};
use super::super::scope::Scope;
use super::super::store::holder::Holder;
use super::super::store::namespace::Namespace;
use super::{Route, delete, get, post, put};
use undrift_release::Release;

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/push_rule", |call| show(call, &project(call, false)?)),
    post("/projects/{id}/push_rule", |call| create(call, &project(call, true)?)),
    put("/projects/{id}/push_rule", |call| update(call, &project(call, true)?)),
    delete("/projects/{id}/push_rule", |call| remove(call, &project(call, true)?)),
    get("/groups/{id}/push_rule", |call| show(call, &group(call)?)),
    post("/groups/{id}/push_rule", |call| create(call, &group(call)?)),
    put("/groups/{id}/push_rule", |call| update(call, &group(call)?)),
    delete("/groups/{id}/push_rule", |call| remove(call, &group(call)?)),
];

const REGEXES: [&str; 5] = [
    "commit_message_regex",
    "commit_message_negative_regex",
    "branch_name_regex",
    "author_email_regex",
    "file_name_regex",
];
const FLAGS: [&str; 5] = [
    "deny_delete_tag",
    "member_check",
    "prevent_secrets",
    "commit_committer_check",
    "reject_unsigned_commits",
];
/// The flags of later releases.
const LATER: [(&str, Release); 2] =
    [("commit_committer_name_check", Release::new(16, 7)), (NO_DCO, Release::new(17, 1))];
/// Null while it is off.
const NO_DCO: &str = "reject_non_dco_commits";
const SIZE: &str = "max_file_size";
const LONGEST_REGEX: usize = 511;
/// What the negative one may have, from release 16.4 on.
const LONGEST_NEGATIVE: usize = 2_047;

/// The flags that a rule has.
fn flags(call: &Call<'_>) -> impl Iterator<Item = &'static str> {
    let release = call.release();
    let later = LATER.iter().filter(move |(_, since)| *since <= release);
    FLAGS.into_iter().chain(later.map(|(name, _)| *name))
}

/// The greatest length of an expression.
fn longest(call: &Call<'_>, name: &str) -> usize {
    let is_long = name == "commit_message_negative_regex" && call.is_from(16, 4);
    if is_long { LONGEST_NEGATIVE } else { LONGEST_REGEX }
}

struct PushRule {
    id: i64,
    settings: Map<String, Value>,
    created_at: String,
}

impl PushRule {
    fn new(now: String) -> Self {
        let regexes = REGEXES.iter().map(|name| (*name, Value::Null));
        let flags = FLAGS.iter().map(|name| (*name, Value::Bool(false)));
        let settings = regexes.chain(flags).chain([(SIZE, 0.into())]);
        Self {
            id: 0,
            settings: settings.map(|(name, value)| (name.to_owned(), value)).collect(),
            created_at: now,
        }
    }

    /// That of a group does not say whose it is.
    fn json(&self, call: &Call<'_>, scope: &Scope) -> Value {
        let mut body = json!({ "id": self.id, "created_at": self.created_at });
        // A rule that an older release made says nothing of what came later.
        for name in flags(call) {
            body[name] = if name == NO_DCO { Value::Null } else { false.into() };
        }
        if let Scope::Project(project) = scope {
            body["project_id"] = project.id.into();
        }
        if let Value::Object(body) = &mut body {
            body.extend(self.settings.clone());
        }
        body
    }

    /// Takes what the call says; it has to say something. A null boolean is false.
    fn take(&mut self, call: &Call<'_>, params: &Params) -> Result<(), Failure> {
        let names: Vec<&str> = REGEXES.into_iter().chain(flags(call)).chain([SIZE]).collect();
        if !names.iter().any(|name| params.has(name)) {
            let text = "are missing, at least one parameter must be provided";
            return Err(Failure::parameter(&names.join(", "), text));
        }
        for name in REGEXES.iter().filter(|name| params.has(name)) {
            let regex = params.text(name)?;
            let most = longest(call, name);
            if regex.as_deref().is_some_and(|regex| regex.chars().count() > most) {
                let text = format!("is too long (maximum is {most} characters)");
                return Err(Failure::model(name, text));
            }
            self.settings.insert((*name).to_owned(), regex.into());
        }
        for name in flags(call).filter(|name| params.has(name)) {
            let on = params.flag(name)?.unwrap_or(false);
            let kept = if name == NO_DCO && !on { Value::Null } else { on.into() };
            self.settings.insert(name.to_owned(), kept);
        }
        match params.integer(SIZE)? {
            Some(size) if size < 0 => {
                Err(Failure::model(SIZE, "must be greater than or equal to 0"))
            }
            Some(size) => {
                self.settings.insert(SIZE.to_owned(), size.into());
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn save(&mut self, call: &Call<'_>, (column, id): (&str, i64)) -> Result<(), Failure> {
        let sql = format!(
            "INSERT INTO push_rules ({column}, settings, created_at) VALUES (?1, ?2, ?3)
             ON CONFLICT ({column}) DO UPDATE SET settings = excluded.settings RETURNING id"
        );
        let settings = Value::Object(self.settings.clone()).to_string();
        self.id = call
            .db
            .prepare_cached(&sql)?
            .query_row(params![id, settings, self.created_at], |row| row.get(0))?;
        Ok(())
    }
}

/// Adds the push rule as a call with these parameters would, unless there is one.
pub(crate) fn plant(call: &Call<'_>, project: i64, params: &Params) -> Result<(), Failure> {
    let holder = Holder::Project(project).key();
    if find(call, holder)?.is_some() {
        return Ok(());
    }
    let mut rule = PushRule::new(call.now().to_owned());
    rule.take(call, params)?;
    rule.save(call, holder)
}

/// Gives a new project a copy of the rule of the next group above it that has one.
pub(super) fn inherit(call: &Call<'_>, project: i64, namespace: &Namespace) -> Result<(), Failure> {
    if call.tier() < Tier::Premium || !namespace.is_group() {
        return Ok(());
    }
    let above: Vec<i64> = ids(&namespace.traversal).collect();
    for group in above.into_iter().rev() {
        if let Some(rule) = find(call, Holder::Group(group).key())? {
            let mut copy = PushRule { settings: rule.settings, ..PushRule::new(call.now().into()) };
            return copy.save(call, Holder::Project(project).key());
        }
    }
    Ok(())
}

/// The project, whose caller has to be a maintainer; 404 where push rules are not licensed.
fn project(call: &Call<'_>, writes: bool) -> Result<Scope, Failure> {
    let project = match writes {
        true => call.writable_project_as(MAINTAINER)?,
        false => call.project_as(MAINTAINER)?,
    };
    call.require_tier(Tier::Premium)?;
    Ok(Scope::Project(Box::new(project)))
}

/// The group, whose caller has to be a maintainer, or an owner in a dialect. Others are told that
/// there is nothing.
fn group(call: &Call<'_>) -> Result<Scope, Failure> {
    let group = call.group_as(0)?;
    let owners = call.service.profile.group_push_rule_for_owners;
    if call.level_in_group(&group)? < if owners { OWNER } else { MAINTAINER } {
        return Err(Failure::hidden());
    }
    call.require_tier(Tier::Premium)?;
    Ok(Scope::Group(Box::new(group)))
}

fn find(call: &Call<'_>, (column, id): (&str, i64)) -> Result<Option<PushRule>, Failure> {
    let sql = format!("SELECT id, settings, created_at FROM push_rules WHERE {column} = ?1");
    let mut statement = call.db.prepare_cached(&sql)?;
    let found = statement.query_row([id], |row| {
        let settings: String = row.get(1)?;
        Ok(PushRule {
            id: row.get(0)?,
            settings: serde_json::from_str(&settings).unwrap_or_default(),
            created_at: row.get(2)?,
        })
    });
    Ok(found.optional()?)
}

fn absent(call: &Call<'_>) -> Failure {
    Failure::not_found(if call.service.profile.later_errors { "Push rule" } else { "Push Rule" })
}

fn show(call: &Call<'_>, scope: &Scope) -> Result<Answer, Failure> {
    match (find(call, scope.key())?, scope) {
        (Some(rule), _) => Answer::ok(&rule.json(call, scope)),
        (None, Scope::Group(_)) => Err(Failure::hidden()),
        (None, _) if call.service.profile.absent_push_rule == AbsentPushRule::NotFound => {
            Err(absent(call))
        }
        (None, _) => Answer::ok(&Value::Null),
    }
}

fn create(call: &Call<'_>, scope: &Scope) -> Result<Answer, Failure> {
    let mut rule = PushRule::new(call.now().to_owned());
    rule.take(call, &call.params)?;
    if find(call, scope.key())?.is_some() {
        let text = match scope {
            Scope::Project(_) => "Project push rule exists",
            Scope::Group(_) => "Group push rule exists, try updating",
        };
        return Err(match call.service.profile.later_errors {
            true => Failure::message(StatusCode::UNPROCESSABLE_ENTITY, text),
            false => Failure::unprocessable(text),
        });
    }
    rule.save(call, scope.key())?;
    Answer::created(&rule.json(call, scope))
}

fn update(call: &Call<'_>, scope: &Scope) -> Result<Answer, Failure> {
    let mut rule = find(call, scope.key())?.ok_or_else(|| absent(call))?;
    rule.take(call, &call.params)?;
    rule.save(call, scope.key())?;
    Answer::ok(&rule.json(call, scope))
}

fn remove(call: &Call<'_>, scope: &Scope) -> Result<Answer, Failure> {
    let strict = matches!(scope, Scope::Group(_))
        || call.service.profile.absent_delete == AbsentDelete::NotFound;
    let (column, id) = scope.key();
    let sql = format!("DELETE FROM push_rules WHERE {column} = ?1");
    match call.db.prepare_cached(&sql)?.execute([id])? {
        0 if strict => Err(absent(call)),
        _ => Ok(Answer::no_content()),
    }
}
