//! The projects and groups whose CI jobs may access a project with their job tokens. The reference
//! does not describe these operations. This module follows the real service.

use super::prelude::*;

pub(super) const CALLBACKS: &[Callbacks] =
    &[TOKEN_SCOPE_CALLBACKS, ALLOWED_PROJECT_CALLBACKS, ALLOWED_GROUP_CALLBACKS];

const TOKEN_SCOPE_CALLBACKS: Callbacks = Callbacks {
    table: RecordTable("job_token_scope"),
    complete: |call, row| {
        call.require_all(&[ParamRequirement::NotBlank("enabled")])?;
        let is_enforced =
            instance::read_setting(call, instance::INBOUND_ENFORCED)? == Value::Bool(true);
        refuse_if(is_enforced && !row.is_true("enabled"), || {
            "Job token scope cannot be disabled for this project because it is enforced for the instance.".into()
        })
    },
    to_json: |call, row| {
        let is_inbound_enabled = call.plain_json(row)["inbound_enabled"].take();
        Ok(json!({ "inbound_enabled": is_inbound_enabled, "outbound_enabled": false }))
    },
    ..Callbacks::DEFAULT
};

const TARGET_PROJECT: &str = "target_project_id";
const TARGET_GROUP: &str = "target_group_id";

const ALLOWED_PROJECT_CALLBACKS: Callbacks = Callbacks {
    table: RecordTable("job_token_allowlist"),
    find_scope: |_, call| {
        let scope = GroupOrProject::from_call_read_archived(call, [MAINTAINER; 2])?;
        // Only reading operations accept the path of the project in place of its id.
        if call.is_write {
            call.segment_id("id")?;
        }
        let text = "Source project cannot be removed from the job token scope";
        refuse_if(call.segment(TARGET_PROJECT) == scope.id().to_string(), || text.into())?;
        Ok(scope)
    },
    // A call may add the project itself. The list still contains the project only once.
    list_inherited: |call| {
        let mut project_entry = Record::new(call.time_text());
        project_entry.set(TARGET_PROJECT, call.scope.id());
        Ok(if is_listed(call, &project_entry)? { Vec::new() } else { vec![project_entry] })
    },
    complete: complete_entry,
    not_found_error: || "Target project is not in the job token scope".into(),
    to_json: entry_json,
    ..Callbacks::DEFAULT
};

const ALLOWED_GROUP_CALLBACKS: Callbacks = Callbacks {
    table: RecordTable("job_token_groups_allowlist"),
    list_inherited: |_| Ok(Vec::new()),
    not_found_error: || "Target group is not in the job token scope".into(),
    ..ALLOWED_PROJECT_CALLBACKS
};

/// An entry of an allowlist. The response to a POST has only ids.
fn entry_json(call: &CollectionCall<'_>, row: &Record) -> Result<Value> {
    let key = call.collection.answer_key;
    let target_id = row.value(key);
    if call.is_write {
        return Ok(json!({ "source_project_id": call.scope.id(), key: target_id }));
    }
    let id = target_id.as_i64().unwrap_or_default();
    if key == TARGET_GROUP {
        let group = Namespace::find_by_id(call.db, id)?.or_no_record()?;
        let url = group.web_url(&call.base_url);
        return Ok(json!({ "id": group.id, "web_url": url, "name": group.name }));
    }
    let project = Project::find_by_id(call.db, id)?.or_no_record()?;
    project.simple_form(call, ExtraFields::from_call(call)?)?.into_value()
}

fn is_listed(call: &CollectionCall<'_>, row: &Record) -> Result<bool> {
    let key = call.collection.answer_key;
    Ok(call.stored_rows()?.iter().any(|other| other.value(key) == row.value(key)))
}

fn complete_entry(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let key = call.collection.answer_key;
    let noun = if key == TARGET_GROUP { "group" } else { "project" };
    let exists = call.has_existing_target(row)?;
    refuse_if(!exists, || ErrorResponse::not_found(&format!("{key} not found")))?;
    let duplicate_text = format!("This {noun} is already in the job token allowlist.");
    refuse_if(is_listed(call, row)?, || duplicate_text.into())
}
