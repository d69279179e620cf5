//! Freeze periods of a project, in which nothing is deployed. The reference leaves them out; all of
//! this is the real service's.

use serde_json::{Value, json};

use super::super::access::{MAINTAINER, REPORTER};
use super::super::answer::{Answer, Complaints, Failure, Result};
use super::super::call::Call;
use super::super::cron::{self, Cron};
use super::super::page;
use super::super::store::holder::Holder;
use super::super::store::record::{Record, Records};
use super::variables::has_pipelines;
use super::{Route, delete, get, post, put};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/freeze_periods", list),
    post("/projects/{id}/freeze_periods", create),
    get("/projects/{id}/freeze_periods/{freeze_period_id}", show),
    put("/projects/{id}/freeze_periods/{freeze_period_id}", update),
    delete("/projects/{id}/freeze_periods/{freeze_period_id}", remove),
];

const PERIODS: Records = Records("freeze_periods");
const TIMES: [&str; 2] = ["freeze_start", "freeze_end"];
pub(super) const ZONE: &str = "cron_timezone";

/// The project, for whoever may read its periods, or write them.
fn project(call: &Call<'_>) -> Result<Holder> {
    if call.writes {
        return Ok(Holder::Project(call.writable_project_as(MAINTAINER)?.id));
    }
    let project = call.project_as(REPORTER)?;
    match call.level_in(&project)? >= MAINTAINER || has_pipelines(call, &project)? {
        true => Ok(Holder::Project(project.id)),
        false => Err(Failure::forbidden()),
    }
}

fn json(period: &Record) -> Value {
    json!({
        "id": period.id,
        "freeze_start": period.text(TIMES[0]),
        "freeze_end": period.text(TIMES[1]),
        "cron_timezone": period.text(ZONE),
        "created_at": period.created_at,
        "updated_at": period.updated_at,
    })
}

/// Takes what the call says of a time that repeats. Schedules refuse theirs in the same words.
pub(super) fn take_cron(
    call: &Call<'_>,
    name: &str,
    record: &mut Record,
    wrong: &mut Complaints,
) -> Result<()> {
    if !call.params.has(name) {
        return Ok(());
    }
    let text = call.params.text(name)?.unwrap_or_default().trim().to_owned();
    let sound = Cron::read(&text).is_some_and(|cron| cron.next(call.time).is_some());
    wrong.add_if(!sound, name, "syntax is invalid");
    wrong.add_if(text.is_empty(), name, "can't be blank");
    record.set(name, text);
    Ok(())
}

/// The same for its time zone.
pub(super) fn take_zone(
    call: &Call<'_>,
    record: &mut Record,
    wrong: &mut Complaints,
) -> Result<()> {
    if call.params.has(ZONE) {
        record.set(ZONE, call.params.text(ZONE)?.unwrap_or_default());
    }
    match record.text(ZONE) {
        "" => wrong.add(ZONE, "can't be blank"),
        zone => wrong.add_if(!cron::is_time_zone(zone), ZONE, "syntax is invalid"),
    }
    Ok(())
}

/// Takes what the call says.
fn take(call: &Call<'_>, period: &mut Record) -> Result<()> {
    let mut wrong = Complaints::default();
    for name in TIMES {
        take_cron(call, name, period, &mut wrong)?;
    }
    take_zone(call, period, &mut wrong)?;
    wrong.settle()
}

fn find(call: &Call<'_>, of: Holder) -> Result<Record> {
    let id = call.segment_id("freeze_period_id")?;
    PERIODS.find(call.db, of, id)?.ok_or_else(Failure::no_record)
}

fn list(call: &Call<'_>) -> Result<Answer> {
    let all: Vec<Value> = PERIODS.all(call.db, project(call)?)?.iter().map(json).collect();
    page::list(call, &all)
}

fn show(call: &Call<'_>) -> Result<Answer> {
    Answer::ok(&json(&find(call, project(call)?)?))
}

fn create(call: &Call<'_>) -> Result<Answer> {
    let of = project(call)?;
    call.params.require(&TIMES)?;
    let mut period = Record::new(call.now());
    take(call, &mut period)?;
    PERIODS.save(call.db, of, &mut period, call.now())?;
    Answer::created(&json(&period))
}

fn update(call: &Call<'_>) -> Result<Answer> {
    let of = project(call)?;
    let mut period = find(call, of)?;
    take(call, &mut period)?;
    PERIODS.save(call.db, of, &mut period, call.now())?;
    Answer::ok(&json(&period))
}

fn remove(call: &Call<'_>) -> Result<Answer> {
    let period = find(call, project(call)?)?;
    call.check_unmodified(&period.updated_at)?;
    PERIODS.remove(call.db, &period)?;
    Ok(Answer::no_content())
}
