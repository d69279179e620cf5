//! How merge requests of a project are approved: one object (Premium). The reference leaves it out;
//! all of this is the real service's.

use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value, json};

use super::super::access::{MAINTAINER, REPORTER};
use super::super::answer::{Answer, Failure};
use super::super::attributes::Tier;
use super::super::call::Call;
use super::super::store::project::Project;
use super::{Route, approval_settings, get, instance, post};

pub(super) const ROUTES: &[Route] =
    &[get("/projects/{id}/approvals", show), post("/projects/{id}/approvals", update)];

/// A setting of the service that takes a flag out of the hands of maintainers, and the value that the
/// flag has then.
type Lock = (&'static str, bool);

/// The flags with what a new project has.
const FLAGS: [(&str, bool, Option<Lock>); 5] = [
    ("reset_approvals_on_push", true, None),
    ("disable_overriding_approvers_per_merge_request", false, Some((RULES_LOCK, true))),
    (
        "merge_requests_author_approval",
        false,
        Some(("prevent_merge_requests_author_approval", false)),
    ),
    (
        "merge_requests_disable_committers_approval",
        false,
        Some(("prevent_merge_requests_committers_approval", true)),
    ),
    ("require_password_to_approve", false, None),
];
/// The setting of the service that also keeps rules to administrators.
pub(super) const RULES_LOCK: &str = "disable_overriding_approvers_per_merge_request";
/// The attribute of the project that is also read and written here.
const BEFORE_MERGE: &str = "approvals_before_merge";

/// The project of a call that reads: for who may open merge requests there, and while it is
/// archived for maintainers.
pub(super) fn readable(call: &Call<'_>) -> Result<Project, Failure> {
    let project = call.project_as(0)?;
    let level = call.level_in(&project)?;
    let may = match project.archived {
        true => level >= MAINTAINER,
        false => level >= REPORTER || project.visibility != "private",
    };
    if !may {
        return Err(Failure::forbidden());
    }
    call.require_tier(Tier::Premium)?;
    Ok(project)
}

/// The project of a call that writes.
pub(super) fn writable(call: &Call<'_>) -> Result<Project, Failure> {
    let project = call.writable_project_as(MAINTAINER)?;
    call.require_tier(Tier::Premium)?;
    Ok(project)
}

/// Whether a setting of the service is on.
pub(super) fn is_locked(call: &Call<'_>, setting: &str) -> Result<bool, Failure> {
    Ok(instance::setting(call.db, setting)? == Value::Bool(true))
}

fn stored(call: &Call<'_>, project: i64) -> Result<Map<String, Value>, Failure> {
    let text: Option<String> = call
        .db
        .prepare_cached("SELECT settings FROM approval_settings WHERE project_id = ?1")?
        .query_row([project], |row| row.get(0))
        .optional()?;
    match text {
        Some(text) => serde_json::from_str(&text).map_err(|error| Failure::internal(&error)),
        None => Ok(Map::new()),
    }
}

/// The flags of a project, set or not.
pub(super) fn flags(call: &Call<'_>, project: i64) -> Result<Map<String, Value>, Failure> {
    let preset = FLAGS.iter().map(|(name, preset, _)| ((*name).to_owned(), (*preset).into()));
    let mut flags: Map<String, Value> = preset.collect();
    flags.extend(stored(call, project)?);
    Ok(flags)
}

pub(super) fn save(
    call: &Call<'_>,
    project: i64,
    flags: Map<String, Value>,
) -> Result<(), Failure> {
    call.db
        .prepare_cached(
            "INSERT OR REPLACE INTO approval_settings (project_id, settings) VALUES (?1, ?2)",
        )?
        .execute(params![project, Value::Object(flags).to_string()])?;
    Ok(())
}

/// The setting of the service that takes a flag out of the hands of maintainers.
pub(super) fn lock_of(flag: &str) -> Option<&'static str> {
    let row = FLAGS.iter().find(|(name, ..)| *name == flag)?;
    row.2.map(|(setting, _)| setting)
}

fn json(call: &Call<'_>, project: &Project) -> Result<Value, Failure> {
    let stored = stored(call, project.id)?;
    // Approvers are named by rules; these lists are left over.
    let mut body = json!({
        BEFORE_MERGE: project.attributes(call.db)?.get(BEFORE_MERGE),
        "approvers": [],
        "approver_groups": [],
    });
    for (name, preset, lock) in FLAGS {
        body[name] = match lock {
            Some((setting, value)) if is_locked(call, setting)? => value.into(),
            _ => stored.get(name).cloned().unwrap_or_else(|| preset.into()),
        };
    }
    for (name, value) in approval_settings::forced(call, project)? {
        body[name] = value.into();
    }
    Ok(body)
}

fn show(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = readable(call)?;
    Answer::ok(&json(call, &project)?)
}

/// Changes what the call names. What the service locks is dropped without a word, unless an
/// administrator sends it.
fn update(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = writable(call)?;
    let names: Vec<&str> =
        [BEFORE_MERGE].into_iter().chain(FLAGS.iter().map(|(name, ..)| *name)).collect();
    if !names.iter().any(|name| call.params.has(name)) {
        let text = "are missing, at least one parameter must be provided";
        return Err(Failure::parameter(&names.join(", "), text));
    }
    let mut settings = stored(call, project.id)?;
    for (name, _, lock) in FLAGS {
        let Some(on) = call.params.flag(name)? else { continue };
        let locked = match lock {
            Some((setting, _)) => is_locked(call, setting)? && !call.is_administrator(),
            None => false,
        };
        if !locked {
            settings.insert(name.to_owned(), on.into());
        }
    }
    save(call, project.id, settings)?;
    if let Some(count) = call.params.integer(BEFORE_MERGE)? {
        if count < 0 {
            return Err(Failure::model(BEFORE_MERGE, "must be greater than or equal to 0"));
        }
        let mut attributes = project.attributes(call.db)?;
        attributes.insert(BEFORE_MERGE.to_owned(), count.into());
        project.save_attributes(call.db, &attributes, call.now())?;
    }
    Answer::created(&json(call, &project)?)
}
