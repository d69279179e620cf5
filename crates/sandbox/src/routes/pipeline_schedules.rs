//! Pipeline schedules of a project with their variables, and freeze periods, in which nothing is
//! deployed. The reference does not describe them. This module follows the real service, but never
//! runs a pipeline.
//!
//! A schedule runs with the rights of its owner. Only the owner can change the schedule. Other
//! users must take ownership first.

use undrift_release::time_zone;

use super::prelude::*;
use super::variables::PIPELINE_FEATURES;

pub(super) const CALLBACKS: &[Callbacks] = &[SCHEDULE_CALLBACKS, FREEZE_PERIOD_CALLBACKS];

const SCHEDULES: RecordTable = RecordTable("pipeline_schedules");

const SCHEDULE_CALLBACKS: Callbacks = Callbacks {
    table: SCHEDULES,
    find_scope: |_, call| {
        schedule_scope(call, if call.method == Method::POST { DEVELOPER } else { 0 })
    },
    complete: complete_schedule,
    filter: |call, schedules| {
        let scope = call.allowed_text("scope", &["active", "inactive"])?;
        let active_filter = scope.map(|scope| scope == "active");
        schedules.retain(|schedule| {
            active_filter.is_none_or(|active| schedule.is_true("active") == active)
        });
        Ok(())
    },
    // Maintainers may also remove schedules of other owners.
    check_removal: |call, schedule| {
        refuse_if(!can_see_variables(call, schedule)?, ErrorResponse::forbidden)?;
        call.check_unmodified(&schedule.updated_at)
    },
    not_found_error: || ErrorResponse::not_found("Pipeline Schedule"),
    to_json: schedule_json,
    ..Callbacks::DEFAULT
};

pub(super) const ROUTES: &[Route] = &[
    post("/projects/{id}/pipeline_schedules/{pipeline_schedule_id}/take_ownership", take_ownership),
    post("/projects/{id}/pipeline_schedules/{pipeline_schedule_id}/variables", add_variable),
    put("/projects/{id}/pipeline_schedules/{pipeline_schedule_id}/variables/{key}", set_variable),
    delete(
        "/projects/{id}/pipeline_schedules/{pipeline_schedule_id}/variables/{key}",
        remove_variable,
    ),
];

const OWNER_ID: &str = "owner_id";
const VARIABLES: &str = "variables";
const VARIABLE_TYPES: [&str; 2] = ["env_var", "file"];
const INPUTS: &str = "inputs";
/// The maximum number of schedules of a project.
const MAX_SCHEDULES: i64 = 10;

/// A schedule as the service shows it. Reads show inputs and variables only to the owner of the
/// schedule and to maintainers. Only a read of a single schedule shows variables.
fn schedule_json(call: &CollectionCall<'_>, schedule: &Record) -> Result<Value> {
    if call.is_write {
        return details_json(call, schedule);
    }
    let is_single = !call.segment("pipeline_schedule_id").is_empty();
    let mut body =
        if is_single { details_json(call, schedule)? } else { brief_json(call, schedule)? };
    if can_see_variables(call, schedule)? {
        set_field_if(&mut body, call.is_at_least(17, 11), INPUTS, stored_list(schedule, INPUTS));
        set_field_if(&mut body, is_single, VARIABLES, stored_list(schedule, VARIABLES));
    }
    Ok(body)
}

/// The fields that everybody sees.
fn brief_json(call: &Call<'_>, schedule: &Record) -> Result<Value> {
    let owner_id = schedule.value(OWNER_ID).as_i64();
    let owner = User::find_by_optional_id(call.db, owner_id)?.map(|user| user.brief_json(call));
    let names =
        "id description ref cron cron_timezone next_run_at active created_at updated_at owner";
    let mut body = schedule.json_fields(names);
    body["ref"] = ref_name_in_responses(call, schedule.text("ref")).into();
    body["owner"] = owner.into();
    Ok(body)
}

/// The fields in responses to writes.
fn details_json(call: &Call<'_>, schedule: &Record) -> Result<Value> {
    let mut body = brief_json(call, schedule)?;
    body["last_pipeline"] = Value::Null;
    Ok(body)
}

/// The name of a ref in responses. From 17.0 on, it is always the full name. In earlier releases it
/// is the stored name.
fn ref_name_in_responses(call: &Call<'_>, name: &str) -> String {
    let is_short = call.is_at_least(17, 0) && !name.starts_with("refs/");
    if is_short { format!("refs/heads/{name}") } else { name.to_owned() }
}

fn is_owner(call: &Call<'_>, schedule: &Record) -> bool {
    call.caller.as_ref().is_some_and(|caller| schedule.value(OWNER_ID) == caller.id)
}

/// True if the caller may see the variables and inputs that a schedule passes to its pipelines.
fn can_see_variables(call: &CollectionCall<'_>, schedule: &Record) -> Result<bool> {
    Ok(is_owner(call, schedule) || call.caller_level()? >= MAINTAINER)
}

/// The project of the call. The caller must have at least `level`. If CI/CD is disabled in the
/// project, even reads get 403.
fn schedule_scope(call: &Call<'_>, level: i64) -> Result<GroupOrProject> {
    let project = call.require_project(level)?;
    refuse_if(call.are_features_off(&project, PIPELINE_FEATURES)?, ErrorResponse::forbidden)?;
    Ok(project.into())
}

/// Fails with 403 unless the caller is the owner or an administrator.
fn check_owner(call: &CollectionCall<'_>, schedule: &Record) -> Result<()> {
    let is_owner_with_role = call.caller_level()? >= DEVELOPER && is_owner(call, schedule);
    refuse_if(!call.is_administrator() && !is_owner_with_role, ErrorResponse::forbidden)
}

/// Fills in and checks a new or changed schedule, and computes the next run.
fn complete_schedule(call: &CollectionCall<'_>, schedule: &mut Record) -> Result<()> {
    let (params, mut errors) = (&call.params, FieldErrors::default());
    if schedule.id == 0 {
        let requirements = [
            ParamRequirement::Present("description"),
            ParamRequirement::NotBlank("ref"),
            ParamRequirement::Present("cron"),
        ];
        params.require_all(&requirements)?;
        schedule.set(OWNER_ID, call.require_user()?.id);
        let is_full = SCHEDULES.count(call, call.scope.holder())? >= MAX_SCHEDULES;
        let message = format!("Maximum number of ci pipeline schedules ({MAX_SCHEDULES}) exceeded");
        errors.add_if(is_full, "base", message);
        // Null counts as the default value.
        for field in call.collection.fields {
            if schedule.value(field.name).is_null() {
                schedule.set(field.name, field.default.clone());
            }
        }
    } else {
        check_owner(call, schedule)?;
    }
    let description = schedule.text("description");
    errors.add_if(description.trim().is_empty(), "description", BLANK_TEXT);
    if params.has("ref") {
        params.require_all(&[ParamRequirement::NotBlank("ref")])?;
        let name = params.text("ref")?.unwrap_or_default();
        match resolve_ref_name(call, &name)? {
            Some(name) => schedule.set("ref", name),
            None => errors.add("ref", "is ambiguous"),
        }
    }
    check_cron(call, "cron", schedule, &mut errors);
    check_time_zone(schedule, &mut errors);
    if call.is_at_least(17, 11) {
        store_inputs(call, schedule)?;
    }
    errors.into_result()?;
    let next_run = Cron::parse(schedule.text("cron")).and_then(|cron| cron.next_time(call.time));
    schedule.set("next_run_at", next_run.map(clock::format_time));
    Ok(())
}

/// The name of a ref to store: the full name from 17.0 on, and the name in the call before. `None`
/// if a short name matches neither a branch nor a tag, or both a branch and a tag.
fn resolve_ref_name(call: &CollectionCall<'_>, name: &str) -> Result<Option<String>> {
    if !call.is_at_least(17, 0) || name.starts_with("refs/heads/") || name.starts_with("refs/tags/")
    {
        return Ok(Some(name.to_owned()));
    }
    let repository = Repository { call, project: call.project()? };
    let [branch, tag] = [BRANCHES, TAGS].map(|kind| repository.find_ref(kind, name));
    Ok(match (branch?.is_some(), tag?.is_some()) {
        (true, false) => Some(format!("refs/heads/{name}")),
        (false, true) => Some(format!("refs/tags/{name}")),
        _ => None,
    })
}

/// Sets inputs by name; an input with `destroy` is removed.
fn store_inputs(call: &Call<'_>, schedule: &mut Record) -> Result<()> {
    let Some(requested_inputs) = call.array(INPUTS)? else { return Ok(()) };
    let mut inputs = stored_list(schedule, INPUTS);
    for (index, input) in requested_inputs.iter().enumerate() {
        let missing_errors = missing_key_errors(INPUTS, index, input, ["name", "value"]);
        refuse_if(!missing_errors.is_empty(), || ErrorResponse::parameter_errors(&missing_errors))?;
        let name = params::read_text(INPUTS, &input["name"])?;
        // Lists stay lists; any other value becomes text.
        let value = match &input["value"] {
            list @ Value::Array(_) => list.clone(),
            sent_value => params::read_text(INPUTS, sent_value)?.into(),
        };
        inputs.retain(|stored_input| stored_input["name"].as_str() != name.as_deref());
        if params::read_flag(INPUTS, &input["destroy"])? != Some(true) {
            inputs.push(json!({ "name": name, "value": value }));
        }
    }
    schedule.set(INPUTS, inputs);
    Ok(())
}

/// Makes the caller the owner: 201, or 200 if the caller already is the owner.
fn take_ownership(call: &Call<'_>) -> Result<Answer> {
    let scope = &schedule_scope(call, MAINTAINER)?;
    let call = &CollectionCall { collection: find_built_in(SCHEDULES), scope, call };
    let mut schedule = call.find_entry()?;
    if is_owner(call, &schedule) {
        return Answer::ok(&details_json(call, &schedule)?);
    }
    schedule.set(OWNER_ID, call.require_user()?.id);
    call.store(&mut schedule)?;
    Answer::created(&details_json(call, &schedule)?)
}

fn stored_list(schedule: &Record, name: &str) -> Vec<Value> {
    schedule.settings.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The position in `variables` of the variable that the path names.
fn variable_position(call: &Call<'_>, variables: &[Value]) -> Result<usize> {
    let key = call.segment("key");
    let position = variables.iter().position(|variable| variable["key"] == key);
    position.or_not_found("Pipeline Schedule Variable")
}

/// The fields of a variable in a call.
fn read_variable_fields(call: &Call<'_>) -> Result<Value> {
    let value = call.text("value")?;
    let variable_type = call.allowed_text("variable_type", &VARIABLE_TYPES)?;
    let fields = [("value", value), ("variable_type", variable_type)].into_iter();
    Ok(fields.filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?)))).collect())
}

/// Changes the variables of a schedule, and returns the changed variable.
fn change_variables(
    call: &Call<'_>,
    change: impl FnOnce(&mut Vec<Value>) -> Result<Value>,
) -> Result<Value> {
    let call = &CollectionCall {
        collection: find_built_in(SCHEDULES),
        scope: &schedule_scope(call, 0)?,
        call,
    };
    let mut schedule = call.find_entry()?;
    check_owner(call, &schedule)?;
    let mut variables = stored_list(&schedule, VARIABLES);
    let variable = change(&mut variables)?;
    schedule.set(VARIABLES, variables);
    call.store(&mut schedule)?;
    Ok(variable)
}

fn add_variable(call: &Call<'_>) -> Result<Answer> {
    let added_variable = change_variables(call, |variables| {
        call.require(&["key", "value"])?;
        let key = call.text("key")?.unwrap_or_default();
        let is_valid = !key.is_empty() && key.chars().all(is_key_char);
        let text = "can contain only letters, digits and '_'.";
        refuse_if(!is_valid, || ErrorResponse::field_error("key", text))?;
        let is_taken = variables.iter().any(|variable| variable["key"] == key.as_str());
        refuse_if(is_taken, || ErrorResponse::field_error("key", TAKEN_TEXT))?;
        let mut variable = json!({ "variable_type": VARIABLE_TYPES[0], "key": key, "raw": false });
        add_fields(&mut variable, read_variable_fields(call)?);
        variables.push(variable.clone());
        Ok(variable)
    })?;
    Answer::created(&added_variable)
}

fn set_variable(call: &Call<'_>) -> Result<Answer> {
    let changed_variable = change_variables(call, |variables| {
        let index = variable_position(call, variables)?;
        add_fields(&mut variables[index], read_variable_fields(call)?);
        Ok(variables[index].clone())
    })?;
    Answer::ok(&changed_variable)
}

/// Answers with 202 and the removed variable.
fn remove_variable(call: &Call<'_>) -> Result<Answer> {
    let removed_variable = change_variables(call, |variables| {
        Ok(variables.remove(variable_position(call, variables)?))
    })?;
    Answer::with_status(StatusCode::ACCEPTED, &removed_variable)
}

const FREEZE_PERIOD_CALLBACKS: Callbacks = Callbacks {
    table: RecordTable("freeze_periods"),
    find_scope: freeze_period_scope,
    complete: |call, period| {
        let mut errors = FieldErrors::default();
        FREEZE_TIMES.iter().for_each(|name| check_cron(call, name, period, &mut errors));
        check_time_zone(period, &mut errors);
        errors.into_result()
    },
    ..Callbacks::DEFAULT
};

const FREEZE_TIMES: [&str; 2] = ["freeze_start", "freeze_end"];
const TIME_ZONE: &str = "cron_timezone";

/// The project of a call for freeze periods. Writes need the level maintainer, and reads need the
/// right to see pipelines.
fn freeze_period_scope(_: &Collection, call: &Call<'_>) -> Result<GroupOrProject> {
    let level = if call.is_write { MAINTAINER } else { REPORTER };
    let scope = GroupOrProject::from_call_read_archived(call, [level; 2])?;
    match &scope {
        GroupOrProject::Project(project)
            if !call.is_write
                && call.caller_level_in_project(project)? < MAINTAINER
                && call.are_features_off(project, PIPELINE_FEATURES)? =>
        {
            Err(ErrorResponse::forbidden())
        }
        _ => Ok(scope),
    }
}

/// Checks a cron expression in a call, for a pipeline schedule or a freeze period.
fn check_cron(call: &Call<'_>, name: &str, record: &Record, errors: &mut FieldErrors) {
    if call.has(name) {
        let text = record.text(name);
        let is_valid = Cron::parse(text).is_some_and(|cron| cron.next_time(call.time).is_some());
        errors.add_if(!is_valid, name, "syntax is invalid");
        errors.add_if(text.is_empty(), name, BLANK_TEXT);
    }
}

/// Like [`check_cron`], for a time zone.
fn check_time_zone(record: &Record, errors: &mut FieldErrors) {
    match record.text(TIME_ZONE) {
        "" => errors.add(TIME_ZONE, BLANK_TEXT),
        zone => errors.add_if(!time_zone::is_valid(zone), TIME_ZONE, "syntax is invalid"),
    }
}
