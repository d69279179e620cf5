//! The push rule of a project (reference 2, 4.6; Premium).

use http::StatusCode;
use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value, json};

use super::super::access::MAINTAINER;
use super::super::answer::{Answer, Failure};
use super::super::attributes::Tier;
use super::super::call::Call;
use super::super::params::Params;
use super::super::profile::{AbsentDelete, AbsentPushRule};
use super::super::store::project::Project;
use super::{Route, delete, get, post, put};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/push_rule", show),
    post("/projects/{id}/push_rule", create),
    put("/projects/{id}/push_rule", update),
    delete("/projects/{id}/push_rule", remove),
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
const SIZE: &str = "max_file_size";
const LONGEST_REGEX: usize = 511;

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

    fn json(&self, project: i64) -> Value {
        let mut body =
            json!({ "id": self.id, "project_id": project, "created_at": self.created_at });
        if let Value::Object(body) = &mut body {
            body.extend(self.settings.clone());
        }
        body
    }

    /// Takes what the call says; it has to say something. A null boolean is false.
    fn take(&mut self, params: &Params) -> Result<(), Failure> {
        let names: Vec<&str> = REGEXES.iter().chain(&FLAGS).copied().chain([SIZE]).collect();
        if !names.iter().any(|name| params.has(name)) {
            let text = "are missing, at least one parameter must be provided";
            return Err(Failure::parameter(&names.join(", "), text));
        }
        for name in REGEXES.iter().filter(|name| params.has(name)) {
            let regex = params.text(name)?;
            if regex.as_deref().is_some_and(|regex| regex.chars().count() > LONGEST_REGEX) {
                let text = format!("is too long (maximum is {LONGEST_REGEX} characters)");
                return Err(Failure::model(name, text));
            }
            self.settings.insert((*name).to_owned(), regex.into());
        }
        for name in FLAGS.iter().filter(|name| params.has(name)) {
            let on = params.flag(name)?.unwrap_or(false);
            self.settings.insert((*name).to_owned(), on.into());
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

    fn save(&mut self, call: &Call<'_>, project: i64) -> Result<(), Failure> {
        self.id = call
            .db
            .prepare_cached(
                "INSERT INTO push_rules (project_id, settings, created_at) VALUES (?1, ?2, ?3)
                 ON CONFLICT (project_id) DO UPDATE SET settings = excluded.settings RETURNING id",
            )?
            .query_row(
                params![project, Value::Object(self.settings.clone()).to_string(), self.created_at],
                |row| row.get(0),
            )?;
        Ok(())
    }
}

/// Adds the push rule as a call with these parameters would, unless there is one.
pub(crate) fn plant(call: &Call<'_>, project: i64, params: &Params) -> Result<(), Failure> {
    if find(call, project)?.is_some() {
        return Ok(());
    }
    let mut rule = PushRule::new(call.now().to_owned());
    rule.take(params)?;
    rule.save(call, project)
}

/// The project, whose caller has to be a maintainer; 404 where push rules are not licensed.
fn project(call: &Call<'_>, writes: bool) -> Result<Project, Failure> {
    let project = match writes {
        true => call.writable_project_as(MAINTAINER)?,
        false => call.project_as(MAINTAINER)?,
    };
    call.require_tier(Tier::Premium)?;
    Ok(project)
}

fn find(call: &Call<'_>, project: i64) -> Result<Option<PushRule>, Failure> {
    Ok(call
        .db
        .prepare_cached("SELECT id, settings, created_at FROM push_rules WHERE project_id = ?1")?
        .query_row([project], |row| {
            let settings: String = row.get(1)?;
            Ok(PushRule {
                id: row.get(0)?,
                settings: serde_json::from_str(&settings).unwrap_or_default(),
                created_at: row.get(2)?,
            })
        })
        .optional()?)
}

fn absent(call: &Call<'_>) -> Failure {
    Failure::not_found(if call.service.profile.later_errors { "Push rule" } else { "Push Rule" })
}

fn show(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = project(call, false)?;
    match find(call, project.id)? {
        Some(rule) => Answer::ok(&rule.json(project.id)),
        None if call.service.profile.absent_push_rule == AbsentPushRule::NotFound => {
            Err(absent(call))
        }
        None => Answer::ok(&Value::Null),
    }
}

fn create(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = project(call, true)?;
    let mut rule = PushRule::new(call.now().to_owned());
    rule.take(&call.params)?;
    if find(call, project.id)?.is_some() {
        let text = "Project push rule exists";
        return Err(match call.service.profile.later_errors {
            true => Failure::message(StatusCode::UNPROCESSABLE_ENTITY, text),
            false => Failure::unprocessable(text),
        });
    }
    rule.save(call, project.id)?;
    Answer::created(&rule.json(project.id))
}

fn update(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = project(call, true)?;
    let mut rule = find(call, project.id)?.ok_or_else(|| absent(call))?;
    rule.take(&call.params)?;
    rule.save(call, project.id)?;
    Answer::ok(&rule.json(project.id))
}

fn remove(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = project(call, true)?;
    let removed = call.db.execute("DELETE FROM push_rules WHERE project_id = ?1", [project.id])?;
    if removed == 0 && call.service.profile.absent_delete == AbsentDelete::NotFound {
        return Err(absent(call));
    }
    Ok(Answer::no_content())
}
