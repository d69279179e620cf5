//! Lists of grants in calls for protected branches and tags, such as `allowed_to_push`.
//!
//! Such a list contains changes. An element without `id` adds a grant. An element with `id` changes
//! the grant with this id, or removes it if the element has `_destroy`. Other grants do not change.

use super::prelude::*;

/// The level that grants an action to nobody.
const NO_ONE_LEVEL: i64 = 0;
/// The level of the administrators of the service.
const ADMINISTRATOR_LEVEL: i64 = 60;
/// The levels that can be granted, with their descriptions in responses. The right to remove a
/// protection cannot be granted to `No one`.
const GRANTABLE_LEVELS: [(i64, &str); 4] = [
    (NO_ONE_LEVEL, "No one"),
    (DEVELOPER, "Developers + Maintainers"),
    (MAINTAINER, "Maintainers"),
    (ADMINISTRATOR_LEVEL, "Instance admins"),
];

/// A grant as responses show it. Only licensed services show users and groups. Only grants for
/// pushing and creating show keys.
pub(super) fn grant_json(call: &Call<'_>, grant: &Grant) -> Result<Value> {
    let mut body = json!({
        "id": grant.id,
        "access_level": grant.access_level,
        "access_level_description": grantee_name(call, grant.grantee())?.unwrap_or_default(),
    });
    let has_key = can_grant_to_keys(grant.action) && call.is_at_least(16, 0);
    set_field_if(&mut body, has_key, "deploy_key_id", grant.deploy_key_id);
    if call.is_premium() {
        body["user_id"] = grant.user_id.into();
        body["group_id"] = grant.group_id.into();
    }
    Ok(body)
}

/// True if an action can be granted to a deploy key.
fn can_grant_to_keys(action: ProtectedAction) -> bool {
    matches!(action, ProtectedAction::Push | ProtectedAction::Create)
}

/// The display name of a grantee; `None` if the grantee does not exist.
pub(super) fn grantee_name(call: &Call<'_>, grantee: Grantee) -> Result<Option<String>> {
    Ok(match grantee {
        Grantee::Level(level) => Some(level_description(level).to_owned()),
        Grantee::User(id) => User::find_by_id(call.db, id)?.map(|user| user.name),
        Grantee::Group(id) => Namespace::find_by_id(call.db, id)?.map(|group| group.name),
        Grantee::Key(id) => {
            call.query_optional_value("SELECT title FROM deploy_keys WHERE id = ?1", [id])?
        }
    })
}

/// The description of a level in responses.
fn level_description(level: i64) -> &'static str {
    GRANTABLE_LEVELS.iter().find(|(value, _)| *value == level).map_or("", |(_, name)| name)
}

/// The name of an action's list in calls.
pub(super) fn list_name(action: ProtectedAction) -> String {
    format!("allowed_to_{}", action.name())
}

/// The change that one element of a list requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct GrantChange {
    id: Option<i64>,
    is_removal: bool,
    level: Option<i64>,
    /// The grant that a change without `id` adds.
    grant: Grant,
}

impl GrantChange {
    fn new(action: ProtectedAction, level: Option<i64>) -> Self {
        let grant = Grant::new(action, level.unwrap_or(MAINTAINER));
        Self { id: None, is_removal: false, level, grant }
    }

    /// The grant after the change: with another level, or with another grantee and level.
    fn apply_to(&self, grant: Grant) -> Grant {
        let (id, branch_id) = (grant.id, grant.branch_id);
        let access_level = self.level.unwrap_or(grant.access_level);
        match self.grant.grantee() {
            Grantee::Level(_) => Grant { access_level, ..grant },
            _ => Grant { id, branch_id, access_level, ..self.grant },
        }
    }
}

/// True if an action may be granted to a level.
fn is_grantable(action: ProtectedAction, level: i64) -> bool {
    let is_refused = action == ProtectedAction::Unprotect && level == NO_ONE_LEVEL;
    !is_refused && GRANTABLE_LEVELS.iter().any(|(value, _)| *value == level)
}

/// Reads the lists of these actions. The lists need Premium and are ignored without it.
pub(super) fn read_changes(
    call: &Call<'_>,
    tier: ServiceTier,
    actions: &[ProtectedAction],
) -> Result<Vec<GrantChange>> {
    if tier < ServiceTier::Premium {
        return Ok(Vec::new());
    }
    let lists: Vec<_> =
        actions.iter().map(|action| (*action, call.get(&list_name(*action)))).collect();
    let invalid_lists: Vec<String> = lists
        .iter()
        .filter(|(_, list)| list.is_some_and(|list| !is_object_list(list)))
        .map(|(action, _)| format!("{} is invalid", list_name(*action)))
        .collect();
    refuse_if(!invalid_lists.is_empty(), || ErrorResponse::parameter_errors(&invalid_lists))?;
    let mut changes = Vec::new();
    for (action, list) in lists {
        let elements = list.and_then(Value::as_array).into_iter().flatten();
        for element in elements {
            changes.push(read_change(call, action, element)?);
        }
    }
    Ok(changes)
}

/// True if a value is an array of objects. Null and an empty text count as empty lists, because
/// forms send such values.
fn is_object_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(Value::is_object),
        Value::String(text) => text.is_empty(),
        other => other.is_null(),
    }
}

/// Reads one element. If the element names several grantees, a user takes precedence over a group,
/// and a group over a key. Without a grantee, the grant is for a level.
fn read_change(call: &Call<'_>, action: ProtectedAction, element: &Value) -> Result<GrantChange> {
    let field = list_name(action);
    let make_param_name = |key: &str| format!("{field}[{key}]");
    let read_id = |key: &str| read_integer(&make_param_name(key), &element[key]);
    let (name, value) = (make_param_name("access_level"), &element["access_level"]);
    let level = read_allowed_integer(&name, value, |level| is_grantable(action, level))?;
    let [user_id, group_id, key_id] =
        [read_id("user_id")?, read_id("group_id")?, read_id("deploy_key_id")?];
    let grantable_key = key_id.filter(|_| can_grant_to_keys(action) && call.is_at_least(17, 5));
    let is_removal = read_flag(&make_param_name("_destroy"), &element["_destroy"])? == Some(true);
    let change = GrantChange::new(action, level);
    let group_id = group_id.filter(|_| user_id.is_none());
    let deploy_key_id = grantable_key.filter(|_| user_id.is_none() && group_id.is_none());
    let grant = Grant { user_id, group_id, deploy_key_id, ..change.grant };
    Ok(GrantChange { id: read_id("id")?, is_removal, grant, ..change })
}

/// Reads the grants of a new protection for these actions, from the lists and the single levels. An
/// action without any grant in the call gets a default level.
pub(super) fn read_initial_grants(
    call: &Call<'_>,
    tier: ServiceTier,
    actions: &[ProtectedAction],
) -> Result<Vec<GrantChange>> {
    let list_changes = read_changes(call, tier, actions)?;
    let mut changes = Vec::new();
    let is_licensed = tier >= ServiceTier::Premium;
    for &action in
        actions.iter().filter(|action| is_licensed || **action != ProtectedAction::Unprotect)
    {
        let name = format!("{}_access_level", action.name());
        let level = call.allowed_integer(&name, |level| is_grantable(action, level))?;
        if level.is_some() || !list_changes.iter().any(|change| change.grant.action == action) {
            changes.push(GrantChange::new(action, level));
        }
    }
    changes.extend(list_changes);
    Ok(changes)
}

/// The grants after the changes of a call, and the errors of these changes as sentences.
#[derive(Debug, Default)]
pub(super) struct GrantPlan {
    pub(super) grants: Vec<Grant>,
    pub(super) errors: Vec<String>,
}

impl GrantPlan {
    /// Plans changes of the `stored_grants` of a project, or of a group. A group can grant only to
    /// levels.
    pub(super) fn new(
        call: &Call<'_>,
        scope: &GroupOrProject,
        stored_grants: &[Grant],
        changes: &[GrantChange],
    ) -> Result<Self> {
        let mut plan = Self { grants: stored_grants.to_vec(), errors: Vec::new() };
        for change in changes {
            let Some(id) = change.id else {
                if !change.is_removal {
                    plan.check_grant(call, scope, stored_grants, &change.grant)?;
                    plan.grants.push(change.grant);
                }
                continue;
            };
            let stored_grant = *stored_grants
                .iter()
                .find(|grant| grant.id == id && grant.action == change.grant.action)
                .or_no_record()?;
            let changed_grant = change.apply_to(stored_grant);
            if change.is_removal {
                plan.grants.retain(|grant| grant.id != id);
            } else if changed_grant != stored_grant {
                plan.check_grant(call, scope, stored_grants, &changed_grant)?;
                plan.grants
                    .iter_mut()
                    .filter(|grant| grant.id == id)
                    .for_each(|planned_grant| *planned_grant = changed_grant);
            }
        }
        plan.errors.dedup();
        Ok(plan)
    }

    /// Checks a grant against the stored grants. The stored grants include grants that the call
    /// removes, but not grants that it adds.
    fn check_grant(
        &mut self,
        call: &Call<'_>,
        scope: &GroupOrProject,
        stored_grants: &[Grant],
        grant: &Grant,
    ) -> Result<()> {
        let is_taken = stored_grants.iter().any(|other| {
            other.action == grant.action
                && other.grantee() == grant.grantee()
                && other.id != grant.id
        });
        let error = match (scope, grant.grantee()) {
            _ if is_taken => Some(TAKEN_TEXT),
            (GroupOrProject::Project(project), grantee) => grantee_error(call, project, grantee)?,
            (GroupOrProject::Group(_), Grantee::Level(_)) => None,
            (GroupOrProject::Group(_), _) => Some("must be blank"),
        };
        if let Some(error) = error {
            let list_label = field_label(&format!("{}_access_levels", grant.action.name()));
            let field = match grant.grantee() {
                Grantee::Level(_) => "access level",
                Grantee::User(_) => "user",
                Grantee::Group(_) => "group",
                Grantee::Key(_) => "deploy key",
            };
            self.errors.push(format!("{list_label} {field} {error}"));
        }
        Ok(())
    }

    /// Fails with 422 and all errors, as sentences.
    pub(super) fn check_errors(&self) -> Result<()> {
        refuse_if(!self.errors.is_empty(), || ErrorResponse::invalid_record(self.errors.clone()))
    }
}

/// The error for a grantee that is not allowed. A user must be a direct or inherited member. A
/// group must be invited to the project itself, with at least the level developer. A key must be
/// able to push to the project.
fn grantee_error(
    call: &Call<'_>,
    project: &Project,
    grantee: Grantee,
) -> Result<Option<&'static str>> {
    Ok(match grantee {
        Grantee::Level(_) => None,
        _ if grantee_name(call, grantee)?.is_none() => Some(BLANK_TEXT),
        Grantee::User(id) if call.user_level_in_project(id, project)? > 0 => None,
        Grantee::User(_) => Some("is not a member of the project"),
        Grantee::Group(id) if is_invited(call, project.id, id)? => None,
        Grantee::Group(_) => Some("does not have access to the project"),
        Grantee::Key(id) if can_key_push(call, project.id, id)? => None,
        Grantee::Key(_) => Some("is not enabled for this project"),
    })
}

fn is_invited(call: &Call<'_>, project_id: i64, group_id: i64) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM shares WHERE project_id = ?1 AND invited_id = ?2 AND access_level >= ?3)";
    call.query_value(sql, [project_id, group_id, DEVELOPER])
}

fn can_key_push(call: &Call<'_>, project_id: i64, key_id: i64) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM deploy_key_projects WHERE project_id = ?1 AND key_id = ?2 AND can_push)";
    call.query_value(sql, [project_id, key_id])
}

/// True if the caller may remove a protection. Everybody who may create protections may also remove
/// them, unless grants restrict the removal (Premium).
pub(super) fn may_unprotect(call: &Call<'_>, project: &Project, grants: &[Grant]) -> Result<bool> {
    let unprotect_grants = grants.iter().filter(|grant| grant.action == ProtectedAction::Unprotect);
    let mut peekable_grants = unprotect_grants.peekable();
    if !call.is_premium() || peekable_grants.peek().is_none() {
        return Ok(true);
    }
    is_granted_to_caller(call, project, peekable_grants)
}

/// True if one of the grants applies to the caller. A grant to another user does not apply to
/// administrators.
pub(super) fn is_granted_to_caller<'g>(
    call: &Call<'_>,
    project: &Project,
    grants: impl IntoIterator<Item = &'g Grant>,
) -> Result<bool> {
    let Some(caller) = &call.caller else { return Ok(false) };
    let level = call.caller_level_in_project(project)?;
    try_any(grants, |grant| {
        Ok(match grant.grantee() {
            Grantee::Level(NO_ONE_LEVEL) | Grantee::Key(_) => false,
            Grantee::Level(ADMINISTRATOR_LEVEL) => caller.admin,
            Grantee::Level(min_level) => level >= min_level,
            Grantee::User(id) => id == caller.id,
            Grantee::Group(id) => match Namespace::find_by_id(call.db, id)? {
                Some(group) if is_invited(call, project.id, id)? => {
                    call.memberships()?.level_in_namespace(&group.traversal) > 0
                }
                _ => false,
            },
        })
    })
}
