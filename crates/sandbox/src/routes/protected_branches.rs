//! Protected branches of projects and of top-level groups. The protected branches of a group apply
//! to all projects of the group. This module also adds the protection of default branches. The
//! reference does not describe protected branches. This module follows the real service.

use super::grants::GrantPlan;
use super::prelude::*;
use super::repository;

pub(super) const ROUTES: &[Route] = &[
    get("/{holder}/protected_branches", |call| list(call, &protection_scope(call)?)),
    post("/{holder}/protected_branches", |call| create(call, &protection_scope(call)?)),
    get("/{holder}/protected_branches/{name}", |call| {
        let scope = protection_scope(call)?;
        Answer::ok(&scoped_protection_json(call, &scope, &find_protection(call, &scope)?)?)
    }),
    patch("/{holder}/protected_branches/{name}", |call| update(call, &protection_scope(call)?)),
    delete("/{holder}/protected_branches/{name}", |call| remove(call, &protection_scope(call)?)),
];

const FORCE_PUSH: &str = "allow_force_push";
const CODE_OWNER_APPROVAL: &str = "code_owner_approval_required";

/// The project or group in the path. Groups are supported from 17.6 on, and only for their owners.
fn protection_scope(call: &Call<'_>) -> Result<GroupOrProject> {
    if !call.is_group_operation() {
        return Ok(readable_project(call)?.into());
    }
    refuse_if(!call.is_at_least(17, 6), ErrorResponse::route_not_found)?;
    let group = call.require_group(OWNER)?;
    call.require_tier(ServiceTier::Premium).map(|()| group.into())
}

/// The project of a call that reads protected branches. From 16.0 on, callers need the right to
/// read its code. In earlier releases, callers need a minimum access level.
fn readable_project(call: &Call<'_>) -> Result<Project> {
    if call.is_at_least(16, 0) {
        return repository::readable_project(call);
    }
    let is_developer_enough = call.profile().developers_read_protections;
    call.project_allowing_anonymous(if is_developer_enough { DEVELOPER } else { MAINTAINER })
}

/// Fails with 403 unless the caller may change protections.
fn check_may_change(call: &Call<'_>, project: &Project) -> Result<()> {
    refuse_if(call.caller_level_in_project(project)? < MAINTAINER, ErrorResponse::forbidden)?;
    call.check_writable(project)
}

/// True if a search matches a name. A text of fewer than three characters must be the whole name.
fn matches_search(name: &str, search: &str) -> bool {
    let (name, search) = (name.to_lowercase(), search.to_lowercase());
    match search.chars().count() {
        0 => true,
        1 | 2 => name == search,
        _ => name.contains(&search),
    }
}

fn list(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    let search = call.text("search")?.unwrap_or_default();
    let mut protections = scope.holder().protections(call)?;
    if let GroupOrProject::Project(project) = scope
        && call.is_premium()
        && call.is_at_least(17, 6)
    {
        let root_group = Holder::Group(protection::root_group_id(&project.namespace));
        protections.extend(root_group.protections(call)?);
    }
    protections.retain(|protection| matches_search(&protection.name, &search));
    page::list_objects(call, &protections, |protection| {
        scoped_protection_json(call, scope, protection)
    })
}

/// A protected branch in a response. A response for a group omits the field `inherited`.
fn scoped_protection_json(
    call: &Call<'_>,
    scope: &GroupOrProject,
    protection: &Protection,
) -> Result<Value> {
    Ok(remove_fields(protection_json(call, protection)?, scope.choose(&[], &["inherited"])))
}

/// The protected branch in the path.
fn find_protection(call: &Call<'_>, scope: &GroupOrProject) -> Result<Protection> {
    scope.holder().find_protection(call, call.segment("name"))?.ok_or_else(|| {
        scope.choose(ErrorResponse::record_not_found(), ErrorResponse::not_found("ProtectedBranch"))
    })
}

/// Like [`find_protection`], for a change. A missing branch is reported before missing rights.
fn find_changeable_protection(call: &Call<'_>, scope: &GroupOrProject) -> Result<Protection> {
    let protection = find_protection(call, scope)?;
    if let GroupOrProject::Project(project) = scope {
        check_may_change(call, project)?;
        let grants = protection.grants(call.db)?;
        refuse_if(!grants::may_unprotect(call, project, &grants)?, ErrorResponse::forbidden)?;
    }
    Ok(protection)
}

/// A protected branch as the service shows it. Users, groups and code owners are shown only if the
/// service has a licence.
pub(super) fn protection_json(call: &Call<'_>, protection: &Protection) -> Result<Value> {
    let grants = protection.grants(call.db)?;
    let make_grants_json = |action| -> Result<Vec<Value>> {
        let grants = grants.iter().filter(|grant| grant.action == action);
        grants.map(|grant| grants::grant_json(call, grant)).collect()
    };
    let mut body = json!({
        "id": protection.id,
        "name": protection.name,
        "push_access_levels": make_grants_json(ProtectedAction::Push)?,
        "merge_access_levels": make_grants_json(ProtectedAction::Merge)?,
        "allow_force_push": protection.allow_force_push,
    });
    if call.is_premium() {
        body["unprotect_access_levels"] = make_grants_json(ProtectedAction::Unprotect)?.into();
        body[CODE_OWNER_APPROVAL] = protection.code_owner_approval_required.into();
        let is_inherited = protection.namespace_id.is_some();
        if call.is_observed_release_or_later() || is_inherited {
            body["inherited"] = is_inherited.into();
        }
    }
    Ok(body)
}

fn create(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    if matches!(scope, GroupOrProject::Group(group) if group.parent_id.is_some()) {
        let error_message = "cannot be associated with a subgroup".to_owned();
        return Err(ErrorResponse::invalid_record(vec![error_message]));
    }
    Answer::created(&scoped_protection_json(call, scope, &protect_branch(call, scope)?)?)
}

/// Protects the branch that the call names.
fn protect_branch(call: &Call<'_>, scope: &GroupOrProject) -> Result<Protection> {
    call.require(&["name"])?;
    let name = call.text("name")?.unwrap_or_default();
    let changes = grants::read_initial_grants(call, call.tier(), &ProtectedAction::BRANCH_ACTIONS)?;
    let allow_force_push = call.is_true(FORCE_PUSH)?;
    let code_owner_approval = call.flag(CODE_OWNER_APPROVAL)?;
    if let GroupOrProject::Project(project) = scope {
        check_may_change(call, project)?;
    }
    let is_null = code_owner_approval.is_none() && call.has(CODE_OWNER_APPROVAL);
    refuse_if(is_null, || ErrorResponse::null_column(CODE_OWNER_APPROVAL))?;
    if scope.holder().find_protection(call, &name)?.is_some() {
        return Err(ErrorResponse::conflict(&format!("Protected branch '{name}' already exists")));
    }
    let mut plan = GrantPlan::new(call, scope, &[], &changes)?;
    if let GroupOrProject::Project(project) = scope {
        refuse_if(!grants::may_unprotect(call, project, &plan.grants)?, ErrorResponse::forbidden)?;
    }
    if name.trim().is_empty() {
        plan.errors.insert(0, "Name can't be blank".to_owned());
    }
    plan.check_errors()?;
    if let GroupOrProject::Project(project) = scope {
        protection::remove_pending_protections(call.db, project.id, &name, call.time_text())?;
    }
    let mut protection = Protection {
        name,
        allow_force_push,
        code_owner_approval_required: code_owner_approval == Some(true) && call.is_premium(),
        updated_at: call.time_text().to_owned(),
        project_id: scope.project_id(),
        namespace_id: scope.choose(None, Some(scope.id())),
        ..Protection::default()
    };
    protection.save_with_grants(call.db, &plan.grants)?;
    Ok(protection)
}

/// Adds a protected branch of a seed. The new protection replaces a protection that the service
/// added.
pub(crate) fn add_seed_protection(call: &Call<'_>, scope: &GroupOrProject) -> Result<()> {
    let name = call.text("name")?.unwrap_or_default();
    if let Some(protection) = scope.holder().find_protection(call, &name)? {
        protection.remove(call.db)?;
    }
    protect_branch(call, scope).map(drop)
}

/// Changes a protected branch. Omitted fields stay unchanged. An omitted code owner approval
/// becomes false, unless [`Profile::code_owner_approval_kept`] is set.
fn update(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    apply_changes(call, scope)?;
    let mut body = scoped_protection_json(call, scope, &find_protection(call, scope)?)?;
    let is_ignored = !call.is_premium() && call.is_observed_release_or_later();
    let is_ignored_field_shown = is_ignored && call.has(CODE_OWNER_APPROVAL);
    set_field_if(&mut body, is_ignored_field_shown, CODE_OWNER_APPROVAL, false);
    Answer::ok(&body)
}

fn apply_changes(call: &Call<'_>, scope: &GroupOrProject) -> Result<()> {
    let is_licensed = call.is_premium();
    let list_names = ProtectedAction::BRANCH_ACTIONS.map(grants::list_name);
    let licensed_names = list_names.iter().map(String::as_str).chain([CODE_OWNER_APPROVAL]);
    let mut names = [FORCE_PUSH].into_iter().chain(licensed_names.filter(|_| is_licensed));
    // The service answers with 400 if one of these parameters is null or empty.
    if let Some(name) = names.find(|name| call.get(name).is_some_and(is_blank)) {
        return Err(ErrorResponse::empty_parameter(name));
    }
    let changes = grants::read_changes(call, call.tier(), &ProtectedAction::BRANCH_ACTIONS)?;
    let allow_force_push = call.flag(FORCE_PUSH)?;
    let code_owner_approval = call.flag(CODE_OWNER_APPROVAL)?;
    let mut protection = find_changeable_protection(call, scope)?;
    let plan = GrantPlan::new(call, scope, &protection.grants(call.db)?, &changes)?;
    plan.check_errors()?;
    protection.allow_force_push = allow_force_push.unwrap_or(protection.allow_force_push);
    if is_licensed {
        let unchanged_approval =
            call.profile().code_owner_approval_kept && protection.code_owner_approval_required;
        protection.code_owner_approval_required = code_owner_approval.unwrap_or(unchanged_approval);
    }
    protection.updated_at = call.time_text().to_owned();
    Ok(protection.save_with_grants(call.db, &plan.grants)?)
}

/// Removes a protection. In a group, the response contains the removed protection.
fn remove(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    let protection = find_changeable_protection(call, scope)?;
    let body = scoped_protection_json(call, scope, &protection)?;
    let answer = call.remove(&protection, &protection.updated_at)?;
    scope.choose(Ok(answer), Answer::ok(&body))
}

/// Adds the default protection of the namespace to the default branch of a project, unless the
/// branch is already protected. The protection appears at `due_at`, or at once if `due_at` is
/// `None`.
pub(super) fn protect_default_branch(
    call: &Call<'_>,
    project_id: i64,
    due_at: Option<&str>,
) -> Result<()> {
    let Some(project) = Project::find_by_id(call.db, project_id)? else { return Ok(()) };
    let attributes = project.attributes(call.db)?;
    let Some(branch) = attributes.get("default_branch").and_then(Value::as_str) else {
        return Ok(());
    };
    let defaults = default_protection(call, &project.namespace)?;
    let find_lowest_level = |list: &str| {
        let rows = defaults[list].as_array().into_iter().flatten();
        rows.filter_map(|row| row["access_level"].as_i64()).min().unwrap_or(MAINTAINER)
    };
    let (push_level, merge_level) =
        (find_lowest_level("allowed_to_push"), find_lowest_level("allowed_to_merge"));
    let allow_force_push = defaults[FORCE_PUSH] == true;
    if (push_level, merge_level, allow_force_push) == (DEVELOPER, DEVELOPER, true) {
        return Ok(());
    }
    let protections = Holder::Project(project.id).protections(call)?;
    if protections.iter().any(|protection| matches_pattern(&protection.name, branch)) {
        return Ok(());
    }
    let mut new_protection = Protection {
        project_id: Some(project.id),
        name: branch.to_owned(),
        // Only the new form of the setting, an object, has this flag.
        allow_force_push: allow_force_push && call.is_at_least(17, 0),
        code_owner_approval_required: defaults[CODE_OWNER_APPROVAL] == true && call.is_premium(),
        updated_at: call.time_text().to_owned(),
        due_at: due_at.map(str::to_owned),
        ..Protection::default()
    };
    let grants = [
        Grant::new(ProtectedAction::Push, push_level),
        Grant::new(ProtectedAction::Merge, merge_level),
    ];
    Ok(new_protection.save_with_grants(call.db, &grants)?)
}

/// The default protection of a namespace: the setting of the group, or else of the service. Before 17.0
/// the setting is a number.
fn default_protection(call: &Call<'_>, namespace: &Namespace) -> Result<Value> {
    let settings = if namespace.is_group() {
        GROUP_SETTINGS.stored_values(call.db, namespace.id)?
    } else {
        Map::new()
    };
    let name = if call.is_at_least(17, 0) { PROTECTION_DEFAULTS } else { BRANCH_PROTECTION };
    let group_value =
        settings.get(name).filter(|value| !value.is_null() && **value != json!({})).cloned();
    let value = group_value.map_or_else(|| instance::read_setting(call, name), Ok)?;
    Ok(value.as_i64().map_or(value, default_branches::protection_from_number))
}
