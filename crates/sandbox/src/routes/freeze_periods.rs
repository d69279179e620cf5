//! Freeze periods of a project, in which nothing is deployed. The reference leaves them out; all of
//! this is the real service's.

use serde_json::{Value, json};

use super::super::access::MAINTAINER;
use super::super::answer::{Answer, Failure};
use super::super::call::Call;
use super::super::cron::{self, Cron};
use super::super::page;
use super::super::store::holder::Holder;
use super::super::store::record::{Record, Records};
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
const ZONE: &str = "cron_timezone";

fn project(call: &Call<'_>) -> Result<Holder, Failure> {
    let project = match call.writes {
        true => call.writable_project_as(MAINTAINER)?,
        false => call.project_as(MAINTAINER)?,
    };
    Ok(Holder::Project(project.id))
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

/// A text that has to be of a form, if the call has one. Schedules refuse theirs in the same words.
pub(super) fn checked(
    call: &Call<'_>,
    name: &str,
    is_good: impl Fn(&str) -> bool,
) -> Result<Option<String>, Failure> {
    match call.params.text(name)? {
        Some(text) if !is_good(&text) => Err(Failure::model(name, " is invalid syntax")),
        text => Ok(text),
    }
}

/// Takes what the call says.
fn take(call: &Call<'_>, period: &mut Record) -> Result<(), Failure> {
    for name in TIMES {
        if let Some(cron) = checked(call, name, |text| Cron::read(text).is_some())? {
            period.set(name, cron);
        }
    }
    if let Some(zone) = checked(call, ZONE, cron::is_time_zone)? {
        period.set(ZONE, zone);
    }
    Ok(())
}

fn find(call: &Call<'_>, of: Holder) -> Result<Record, Failure> {
    let id = call.segment_id("freeze_period_id")?;
    PERIODS.find(call.db, of, id)?.ok_or_else(Failure::no_record)
}

fn list(call: &Call<'_>) -> Result<Answer, Failure> {
    let all: Vec<Value> = PERIODS.all(call.db, project(call)?)?.iter().map(json).collect();
    page::list(call, &all)
}

fn show(call: &Call<'_>) -> Result<Answer, Failure> {
    Answer::ok(&json(&find(call, project(call)?)?))
}

fn create(call: &Call<'_>) -> Result<Answer, Failure> {
    let of = project(call)?;
    call.params.require(&TIMES)?;
    let mut period = Record::new(call.now());
    period.set(ZONE, "UTC");
    take(call, &mut period)?;
    PERIODS.save(call.db, of, &mut period, call.now())?;
    Answer::created(&json(&period))
}

fn update(call: &Call<'_>) -> Result<Answer, Failure> {
    let of = project(call)?;
    let mut period = find(call, of)?;
    take(call, &mut period)?;
    PERIODS.save(call.db, of, &mut period, call.now())?;
    Answer::ok(&json(&period))
}

fn remove(call: &Call<'_>) -> Result<Answer, Failure> {
    let period = find(call, project(call)?)?;
    call.check_unmodified(&period.updated_at)?;
    PERIODS.remove(call.db, &period)?;
    Ok(Answer::no_content())
}
