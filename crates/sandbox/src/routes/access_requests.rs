//! Access requests of groups and projects, by users who want to become members. The reference does
//! not describe access requests. This module follows the real service.

use super::prelude::*;

/// Callers who can manage members can list and remove the requests. The requesting user can also
/// remove the request.
pub(super) const CALLBACKS: &[Callbacks] = &[Callbacks {
    table: ACCESS_REQUESTS,
    operations: &[(Method::PUT, "/{user_id}/approve", CollectionOperation::Custom(approve))],
    find_scope: |_, call| {
        let scope = GroupOrProject::from_call(call, [0, 0])?;
        if call.method == Method::GET {
            check_manager(call, &scope)?;
        }
        Ok(scope)
    },
    find: |call| {
        let caller_id = call.caller.as_ref().map(|caller| caller.id);
        if caller_id != Some(call.segment_id(USER_ID)?) {
            check_manager(call, call.scope)?;
        }
        call.select_named_row(call.stored_rows()?)
    },
    complete: fill_new_request,
    check_removal: |_, _| Ok(()),
    to_json: |call, request| {
        let user = User::find_by_optional_id(call.db, request.value(REQUESTER_ID).as_i64())?;
        let mut body = user.or_no_record()?.brief_json(call);
        body["requested_at"] = request.created_at.as_str().into();
        Ok(body)
    },
    ..Callbacks::DEFAULT
}];

const ACCESS_REQUESTS: RecordTable = RecordTable("access_requests");
const USER_ID: &str = "user_id";
/// The user who requested access.
const REQUESTER_ID: &str = "asker_id";

/// Fails with 403 unless the caller can manage the members of `scope`.
fn check_manager(call: &Call<'_>, scope: &GroupOrProject) -> Result<()> {
    refuse_if(scope.caller_level(call)? < scope.level_to_manage_members(), ErrorResponse::forbidden)
}

fn fill_new_request(call: &CollectionCall<'_>, request: &mut Record) -> Result<()> {
    let user = call.require_user()?;
    let accepts_requests = match call.scope {
        GroupOrProject::Group(group) => {
            GROUP_SETTINGS.is_on(call.db, group.id, "request_access_enabled")?
        }
        GroupOrProject::Project(project) => {
            project.attributes(call.db)?.get("request_access_enabled") == Some(&Value::Bool(true))
        }
    };
    refuse_if(!accepts_requests, ErrorResponse::forbidden)?;
    let is_member = call.caller_level()? > 0 || call.scope.find_member(call, user.id)?.is_some();
    refuse_if(is_member, ErrorResponse::forbidden)?;
    request.set(REQUESTER_ID, user.id);
    let has_open_request =
        call.stored_rows()?.iter().any(|other| other.value(REQUESTER_ID) == user.id);
    refuse_if(has_open_request, || ErrorResponse::field_error(USER_ID, "already exists in source"))
}

/// Makes the user a member, with the level in the call or as a developer. For a level that does not
/// exist, the response looks the same, but nothing is stored.
fn approve(call: &CollectionCall<'_>) -> Result<Answer> {
    let scope = call.scope;
    check_manager(call, scope)?;
    let request = call.select_named_row(call.stored_rows()?)?;
    let user_id = call.segment_id(USER_ID)?;
    let level = call.integer("access_level")?;
    let is_group = scope.choose(false, true);
    if let Some(level) = level.filter(|level| !terms::is_valid_level(call, *level, is_group)) {
        call.db.execute_batch("SAVEPOINT unsaved")?;
        let body = add_requester(call, scope, user_id, level)?;
        call.db.execute_batch("ROLLBACK TO unsaved; RELEASE unsaved")?;
        return Answer::created(&body);
    }
    let level = if level.is_some() { terms::requested_level(call, scope)? } else { DEVELOPER };
    ACCESS_REQUESTS.remove(call, &request)?;
    Answer::created(&add_requester(call, scope, user_id, level)?)
}

/// Adds a member, and returns the member without the email address.
fn add_requester(
    call: &Call<'_>,
    scope: &GroupOrProject,
    user_id: i64,
    level: i64,
) -> Result<Value> {
    MembershipTerms::granted_by_caller(call, level).insert(call, scope, user_id)?;
    Ok(remove_fields(scope.require_member(call, user_id)?.json(call)?, &["email"]))
}
