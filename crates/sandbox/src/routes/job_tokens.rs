//! Whose jobs reach a project with their tokens. The reference leaves them out; all of this is the
//! real service's behaviour.

use super::instance;
use super::prelude::*;

pub(super) const COLLECTIONS: &[Collection] = &[JOB_TOKENS, ALLOWED, ALLOWED_GROUPS];

const JOB_TOKENS: Collection = Collection {
    reads: MAINTAINER,
    since: Some(Release::new(16, 3)),
    fields: &[RowField {
        shown: "inbound_enabled",
        preset: "true",
        ..RowField::new("enabled", Form::Flag)
    }],
    is_document: true,
    is_patched: true,
    is_silent: true,
    complete: |call, row| {
        call.params.require_all(&[Need::Filled("enabled")])?;
        let is_enforced = instance::setting(call, instance::INBOUND_ENFORCED)? == Value::Bool(true);
        refuse_if(is_enforced && !row.is_set("enabled"), || {
            ErrorResponse::refused(
                "Job token scope cannot be disabled for this project because it is enforced for the instance.",
            )
        })
    },
    json: |call, row| {
        let inbound = call.plain(row)["inbound_enabled"].take();
        Ok(json!({ "inbound_enabled": inbound, "outbound_enabled": false }))
    },
    ..Collection::new("/projects/{id}/job_token_scope")
};

const PROJECT: &str = "target_project_id";
const GROUP: &str = "target_group_id";

/// The projects whose jobs reach a project: itself, and others.
const ALLOWED: Collection = Collection {
    entry: PROJECT,
    key: PROJECT,
    since: Some(Release::new(16, 3)),
    required: &[PROJECT],
    fields: &[RowField::new(PROJECT, Form::Named(ReferencedRow::Project))],
    is_shown: false,
    is_edited: false,
    scope: |_, call| {
        let scope = GroupOrProject::writable_by(call, [MAINTAINER; 2])?;
        // Only reads take the path of the project.
        if call.writes {
            call.segment_id("id")?;
        }
        refuse_if(call.segment(PROJECT) == scope.id().to_string(), || {
            ErrorResponse::refused("Source project cannot be removed from the job token scope")
        })?;
        Ok(scope)
    },
    // Adding the project itself is no error, and it is listed once.
    inherited: |call| {
        let mut itself = Record::new(call.now());
        itself.set(PROJECT, call.scope.id());
        Ok(if is_listed(call, &itself)? { Vec::new() } else { vec![itself] })
    },
    complete: complete_allowed,
    rows: Records("job_token_allowlist"),
    not_found: || ErrorResponse::refused("Target project is not in the job token scope"),
    json: allowed,
    ..Collection::new("/projects/{id}/job_token_scope/allowlist")
};

/// The groups whose projects' jobs reach a project.
const ALLOWED_GROUPS: Collection = Collection {
    path: "/projects/{id}/job_token_scope/groups_allowlist",
    entry: GROUP,
    key: GROUP,
    since: Some(Release::new(17, 0)),
    required: &[GROUP],
    fields: &[RowField::new(GROUP, Form::Named(ReferencedRow::Group))],
    inherited: |_| Ok(Vec::new()),
    rows: Records("job_token_groups_allowlist"),
    not_found: || ErrorResponse::refused("Target group is not in the job token scope"),
    ..ALLOWED
};

/// An entry of a list of allowed ones; a POST answers with ids.
fn allowed(call: &CollectionCall<'_>, row: &Record) -> Result<Value> {
    let key = call.collection.key;
    let target_id = row.value(key);
    if call.writes {
        return Ok(json!({ "source_project_id": call.scope.id(), key: target_id }));
    }
    let id = target_id.as_i64().unwrap_or_default();
    if key == GROUP {
        let group = Namespace::by_id(call.db, id)?.ok_or_else(ErrorResponse::no_record)?;
        let url = group.web_url(&call.base);
        return Ok(json!({ "id": group.id, "web_url": url, "name": group.name }));
    }
    let project = Project::by_id(call.db, id)?.ok_or_else(ErrorResponse::no_record)?;
    view::simple(call, &project, Extras::of(call)?)?.value()
}

fn is_listed(call: &CollectionCall<'_>, row: &Record) -> Result<bool> {
    let key = call.collection.key;
    Ok(call.stored()?.iter().any(|other| other.value(key) == row.value(key)))
}

fn complete_allowed(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let key = call.collection.key;
    let noun = if key == GROUP { "group" } else { "project" };
    let exists = call.target_exists(row)?;
    refuse_if(!exists, || ErrorResponse::not_found(&format!("{key} not found")))?;
    let again = format!("This {noun} is already in the job token allowlist.");
    refuse_if(is_listed(call, row)?, || ErrorResponse::refused(again))
}
