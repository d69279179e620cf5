//! Freeze periods of a project, in which nothing is deployed. The reference leaves them out; all of
//! this is the real service's behaviour.

use super::prelude::*;
use super::variables::has_pipelines;
use undrift_release::time_zone;

pub(super) const PERIODS: Collection = Collection {
    entry: "freeze_period_id",
    required: &TIMES,
    fields: &[
        Field::new(TIMES[0], Form::Text),
        Field::new(TIMES[1], Form::Text),
        Field::new(ZONE, Form::Text),
    ],
    scope,
    settle: |_, call, _, period| settle(call, period),
    ..Collection::new("/projects/{id}/freeze_periods")
};

const TIMES: [&str; 2] = ["freeze_start", "freeze_end"];
pub(super) const ZONE: &str = "cron_timezone";

/// The project, for callers who may write its periods, or read them: those who see its pipelines
/// too.
fn scope(of: &Collection, call: &Call<'_>) -> Result<Scope> {
    let scope = of.place(call, if call.writes { MAINTAINER } else { REPORTER })?;
    match &scope {
        Scope::Project(project)
            if !call.writes
                && call.level_in(project)? < MAINTAINER
                && !has_pipelines(call, project)? =>
        {
            Err(Failure::forbidden())
        }
        _ => Ok(scope),
    }
}

/// Reads a cron expression in a call. Pipeline schedules use the same words in refusals.
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

/// The same for a time zone.
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
        zone => wrong.add_if(!time_zone::is_known(zone), ZONE, "syntax is invalid"),
    }
    Ok(())
}

fn settle(call: &Call<'_>, period: &mut Record) -> Result<()> {
    let mut wrong = Complaints::default();
    for name in TIMES {
        take_cron(call, name, period, &mut wrong)?;
    }
    take_zone(call, period, &mut wrong)?;
    wrong.settle()
}
