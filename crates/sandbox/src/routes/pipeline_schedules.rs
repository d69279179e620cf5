//! Pipeline schedules of a project, with their variables. The reference leaves them out; all of this
//! is the real service's. Nothing is ever run.
//!
//! A schedule does what its owner may do, so that only the owner changes it: who else wants to,
//! becomes the owner first.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::super::access::{DEVELOPER, MAINTAINER, REPORTER};
use super::super::answer::{Answer, Failure};
use super::super::call::Call;
use super::super::cron::{self, Cron};
use super::super::page;
use super::super::params::Need;
use super::super::store::holder::Holder;
use super::super::store::project::Project;
use super::super::store::record::{Record, Records};
use super::super::store::user::User;
use super::freeze_periods::checked;
use super::{Route, delete, get, post, put};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/pipeline_schedules", list),
    post("/projects/{id}/pipeline_schedules", create),
    get("/projects/{id}/pipeline_schedules/{pipeline_schedule_id}", show),
    put("/projects/{id}/pipeline_schedules/{pipeline_schedule_id}", update),
    delete("/projects/{id}/pipeline_schedules/{pipeline_schedule_id}", remove),
    post("/projects/{id}/pipeline_schedules/{pipeline_schedule_id}/take_ownership", take_ownership),
    post("/projects/{id}/pipeline_schedules/{pipeline_schedule_id}/variables", add_variable),
    put("/projects/{id}/pipeline_schedules/{pipeline_schedule_id}/variables/{key}", set_variable),
    delete(
        "/projects/{id}/pipeline_schedules/{pipeline_schedule_id}/variables/{key}",
        remove_variable,
    ),
];

const SCHEDULES: Records = Records("pipeline_schedules");
const OWNER_ID: &str = "owner_id";
const VARIABLES: &str = "variables";
const VARIABLE_TYPES: [&str; 2] = ["env_var", "file"];

/// What lists show of a schedule.
fn json(call: &Call<'_>, schedule: &Record) -> Result<Value, Failure> {
    let owner = match schedule.settings.get(OWNER_ID).and_then(Value::as_i64) {
        Some(id) => User::by_id(call.db, id)?.map(|user| user.brief(call)),
        None => None,
    };
    Ok(json!({
        "id": schedule.id,
        "description": schedule.text("description"),
        "ref": shown_ref(call, schedule.text("ref")),
        "cron": schedule.text("cron"),
        "cron_timezone": schedule.text("cron_timezone"),
        "next_run_at": schedule.settings.get("next_run_at"),
        "active": schedule.is_set("active"),
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
        "owner": owner,
    }))
}

/// What the answers to writes show besides.
fn details(call: &Call<'_>, schedule: &Record) -> Result<Value, Failure> {
    let mut body = json(call, schedule)?;
    body["last_pipeline"] = Value::Null;
    Ok(body)
}

/// Releases from 17.0 on have whole names, whatever was sent; earlier ones what was sent.
fn shown_ref(call: &Call<'_>, name: &str) -> String {
    match call.is_from(17, 0) && !name.starts_with("refs/") {
        true => format!("refs/heads/{name}"),
        false => name.to_owned(),
    }
}

fn is_owner(call: &Call<'_>, schedule: &Record) -> bool {
    let caller = call.caller.as_ref().map(|user| user.id);
    caller.is_some() && schedule.settings.get(OWNER_ID).and_then(Value::as_i64) == caller
}

/// The project, for whoever may have schedules there. To others who see it, but are less than
/// reporters, writing is 404.
fn project(call: &Call<'_>) -> Result<Project, Failure> {
    let project = call.project_as(0)?;
    match call.level_in(&project)? {
        level if level < REPORTER => Err(Failure::hidden()),
        level if level < DEVELOPER => Err(Failure::forbidden()),
        _ => call.check_writable(&project).map(|()| project),
    }
}

fn find(call: &Call<'_>, project: &Project) -> Result<Record, Failure> {
    let id = call.segment_id("pipeline_schedule_id")?;
    let found = SCHEDULES.find(call.db, Holder::Project(project.id), id)?;
    found.ok_or_else(|| Failure::not_found("Pipeline Schedule"))
}

/// The schedule of the call, which is to be changed.
fn own(call: &Call<'_>) -> Result<(Project, Record), Failure> {
    let project = project(call)?;
    let schedule = find(call, &project)?;
    match is_owner(call, &schedule) {
        true => Ok((project, schedule)),
        false => Err(Failure::forbidden()),
    }
}

fn save(call: &Call<'_>, project: &Project, schedule: &mut Record) -> Result<(), Failure> {
    Ok(SCHEDULES.save(call.db, Holder::Project(project.id), schedule, call.now())?)
}

/// Takes what the call says, and computes anew when it runs next.
fn take(call: &Call<'_>, schedule: &mut Record) -> Result<(), Failure> {
    for name in ["description", "ref"] {
        match call.params.text(name)? {
            Some(text) if text.trim().is_empty() => {
                return Err(Failure::model(name, "can't be blank"));
            }
            Some(text) => schedule.set(name, text),
            None => {}
        }
    }
    if let Some(text) = checked(call, "cron", |text| Cron::read(text).is_some())? {
        schedule.set("cron", text);
    }
    if let Some(zone) = checked(call, "cron_timezone", cron::is_time_zone)? {
        schedule.set("cron_timezone", zone);
    }
    if let Some(active) = call.params.flag("active")? {
        schedule.set("active", active);
    }
    let next = Cron::read(schedule.text("cron")).and_then(|cron| cron.next(call.time));
    schedule.set("next_run_at", next.map(super::super::clock::spell));
    Ok(())
}

fn list(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = call.project()?;
    let scope = call.params.one_of("scope", &["active", "inactive"])?;
    let wanted = scope.map(|scope| scope == "active");
    let schedules = SCHEDULES.all(call.db, Holder::Project(project.id))?;
    let all: Vec<Value> = schedules
        .iter()
        .filter(|schedule| wanted.is_none_or(|active| schedule.is_set("active") == active))
        .map(|schedule| json(call, schedule))
        .collect::<Result<_, _>>()?;
    page::list(call, &all)
}

/// The only answer with variables, and only for the owner and for maintainers.
fn show(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = call.project()?;
    let schedule = find(call, &project)?;
    let mut body = details(call, &schedule)?;
    if is_owner(call, &schedule) || call.level_in(&project)? >= MAINTAINER {
        body[VARIABLES] = variables(&schedule).into();
    }
    Answer::ok(&body)
}

fn create(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = project(call)?;
    call.params.require_all(&[
        Need::Sent("description"),
        Need::Filled("ref"),
        Need::Sent("cron"),
    ])?;
    let mut schedule = Record::new(call.now());
    schedule.set(OWNER_ID, call.user()?.id);
    schedule.set("cron_timezone", "UTC");
    schedule.set("active", true);
    take(call, &mut schedule)?;
    save(call, &project, &mut schedule)?;
    Answer::created(&details(call, &schedule)?)
}

fn update(call: &Call<'_>) -> Result<Answer, Failure> {
    let (project, mut schedule) = own(call)?;
    take(call, &mut schedule)?;
    save(call, &project, &mut schedule)?;
    Answer::ok(&details(call, &schedule)?)
}

/// Maintainers remove also what is somebody else's.
fn remove(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = project(call)?;
    let schedule = find(call, &project)?;
    if !is_owner(call, &schedule) && call.level_in(&project)? < MAINTAINER {
        return Err(Failure::forbidden());
    }
    call.check_unmodified(&schedule.updated_at)?;
    SCHEDULES.remove(call.db, &schedule)?;
    Ok(Answer::no_content())
}

/// 200 for who owns it already.
fn take_ownership(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = call.writable_project_as(MAINTAINER)?;
    let mut schedule = find(call, &project)?;
    if is_owner(call, &schedule) {
        return Answer::ok(&details(call, &schedule)?);
    }
    schedule.set(OWNER_ID, call.user()?.id);
    save(call, &project, &mut schedule)?;
    Answer::created(&details(call, &schedule)?)
}

fn variables(schedule: &Record) -> Vec<Value> {
    schedule.settings.get(VARIABLES).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Where the variable that the path names stands among the others.
fn named(call: &Call<'_>, variables: &[Value]) -> Result<usize, Failure> {
    let key = call.segment("key");
    let found = variables.iter().position(|variable| variable["key"] == key);
    found.ok_or_else(|| Failure::not_found("Pipeline Schedule Variable"))
}

/// What the call says of a variable.
fn said(call: &Call<'_>) -> Result<Map<String, Value>, Failure> {
    let mut said = Map::new();
    if let Some(value) = call.params.text("value")? {
        said.insert("value".to_owned(), value.into());
    }
    if let Some(kind) = call.params.one_of("variable_type", &VARIABLE_TYPES)? {
        said.insert("variable_type".to_owned(), kind.into());
    }
    Ok(said)
}

fn add_variable(call: &Call<'_>) -> Result<Answer, Failure> {
    let (project, mut schedule) = own(call)?;
    call.params.require(&["key", "value"])?;
    let key = call.params.text("key")?.unwrap_or_default();
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if key.is_empty() || !key.chars().all(is_good) {
        return Err(Failure::model("key", "can contain only letters, digits and '_'."));
    }
    let mut all = variables(&schedule);
    if all.iter().any(|variable| variable["key"] == key.as_str()) {
        return Err(Failure::model("key", "has already been taken"));
    }
    let mut variable = json!({ "variable_type": VARIABLE_TYPES[0], "key": key });
    if let Value::Object(variable) = &mut variable {
        variable.extend(said(call)?);
    }
    all.push(variable.clone());
    schedule.set(VARIABLES, all);
    save(call, &project, &mut schedule)?;
    Answer::created(&variable)
}

fn set_variable(call: &Call<'_>) -> Result<Answer, Failure> {
    let (project, mut schedule) = own(call)?;
    let mut all = variables(&schedule);
    let at = named(call, &all)?;
    if let Value::Object(variable) = &mut all[at] {
        variable.extend(said(call)?);
    }
    let variable = all[at].clone();
    schedule.set(VARIABLES, all);
    save(call, &project, &mut schedule)?;
    Answer::ok(&variable)
}

/// 202, with what was removed.
fn remove_variable(call: &Call<'_>) -> Result<Answer, Failure> {
    let (project, mut schedule) = own(call)?;
    let mut all = variables(&schedule);
    let variable = all.remove(named(call, &all)?);
    schedule.set(VARIABLES, all);
    save(call, &project, &mut schedule)?;
    Answer::with(StatusCode::ACCEPTED, &variable)
}
