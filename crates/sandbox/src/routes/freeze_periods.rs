//! Freeze periods of a project, in which nothing is deployed. The reference leaves them out; all of
//! this is the real service's behaviour.

use super::prelude::*;
use super::variables::PIPELINES;
use undrift_release::time_zone;

pub(super) const COLLECTIONS: &[Collection] = &[PERIODS];

const PERIODS: Collection = Collection {
    entry: "freeze_period_id",
    required: &TIMES,
    fields: &[
        Field { trims: true, ..Field::new(TIMES[0], Form::Text) },
        Field { trims: true, ..Field::new(TIMES[1], Form::Text) },
        Field::new(ZONE, Form::Text),
    ],
    scope,
    settle: |call, period| {
        let mut wrong = Complaints::default();
        TIMES.iter().for_each(|name| check_cron(call, name, period, &mut wrong));
        check_zone(period, &mut wrong);
        wrong.settle()
    },
    ..Collection::new("/projects/{id}/freeze_periods")
};

const TIMES: [&str; 2] = ["freeze_start", "freeze_end"];
pub(super) const ZONE: &str = "cron_timezone";

/// The project, for callers who may write its periods, or read them: those who see its pipelines
/// too.
fn scope(_: &Collection, call: &Call<'_>) -> Result<Scope> {
    let scope = Scope::kept_by(call, [if call.writes { MAINTAINER } else { REPORTER }; 2])?;
    match &scope {
        Scope::Project(project)
            if !call.writes
                && call.level_in(project)? < MAINTAINER
                && call.are_off(project, PIPELINES)? =>
        {
            Err(Failure::forbidden())
        }
        _ => Ok(scope),
    }
}

/// Checks a cron expression in a call. Pipeline schedules use the same words in refusals.
pub(super) fn check_cron(call: &Call<'_>, name: &str, record: &Record, wrong: &mut Complaints) {
    if call.params.has(name) {
        let text = record.text(name);
        let sound = Cron::read(text).is_some_and(|cron| cron.next(call.time).is_some());
        wrong.add_if(!sound, name, "syntax is invalid");
        wrong.add_if(text.is_empty(), name, "can't be blank");
    }
}

/// The same for a time zone.
pub(super) fn check_zone(record: &Record, wrong: &mut Complaints) {
    match record.text(ZONE) {
        "" => wrong.add(ZONE, "can't be blank"),
        zone => wrong.add_if(!time_zone::is_known(zone), ZONE, "syntax is invalid"),
    }
}
