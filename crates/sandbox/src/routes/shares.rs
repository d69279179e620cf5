//! Shares: invitations of a group to a project or to another group. Lists exist for both the
//! inviting and the invited side. This module also copies the members of another project (reference
//! 2, 4.4).

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    post("/projects/{id}/share", share_project),
    post("/groups/{id}/share", share_group),
    delete("/{holder}/share/{group_id}", unshare),
    post("/projects/{id}/import_project_members/{project_id}", import_members),
    get("/groups/{id}/groups/shared", list_inviting_groups),
    get("/{holder}/invited_groups", list_invited_groups),
    get("/projects/{id}/share_locations", list_invitable_groups),
];

/// The invitations of a project or group that the caller sees, as responses list them.
pub(crate) fn invitations_json(call: &Call<'_>, holder: Holder) -> Result<Vec<Value>> {
    let (column, id) = holder.column_and_id();
    let clauses = format!(
        "JOIN shares s ON s.invited_id = n.id
         WHERE s.{column} = ?1 AND (s.expires_at IS NULL OR s.expires_at >= ?2) ORDER BY s.id"
    );
    let columns = "s.access_level, s.expires_at, s.member_role_id";
    let values = params![id, call.today()];
    let has_role = matches!(holder, Holder::Group(_))
        && member_roles::are_roles_available(call, GROUP_ROLES_SINCE);
    let read_invitation = |group: Namespace, row: &Row<'_>| {
        let first_column = Namespace::COLUMN_COUNT;
        let mut invitation = json!({
            "group_id": group.id,
            "group_name": group.name,
            "group_full_path": group.full_path,
            "group_access_level": row.get::<_, i64>(first_column)?,
            "expires_at": row.get::<_, Option<String>>(first_column + 1)?,
        });
        let role_id: Option<i64> = row.get(first_column + 2)?;
        set_field_if(&mut invitation, has_role, member_roles::ROLE_ID, role_id);
        Ok((group, invitation))
    };
    let invitation_pairs =
        Namespace::list_with(call.db, columns, &clauses, values, read_invitation)?;
    let visible_pairs = try_filter(invitation_pairs, |(group, _)| call.may_see_group(group))?;
    Ok(visible_pairs.into_iter().map(|(_, invitation)| invitation).collect())
}

/// The first releases in which an invitation has a custom role.
const GROUP_ROLES_SINCE: Release = Release::new(17, 4);
const PROJECT_ROLES_SINCE: Release = Release::new(17, 7);

/// An invitation in a call.
struct Invitation {
    group_id: i64,
    level: i64,
    expires_at: Option<String>,
    /// The id of the custom role. It is read only when the invitation is stored.
    role_id: Option<i64>,
}

impl Invitation {
    fn from_call(call: &Call<'_>) -> Result<Self> {
        call.require_all(&[
            ParamRequirement::Present("group_id"),
            ParamRequirement::AllowedValue("group_access"),
        ])?;
        let level = call
            .allowed_integer("group_access", |level| terms::is_valid_level(call, level, false))?;
        Ok(Self {
            group_id: call.integer("group_id")?.unwrap_or(0),
            level: level.unwrap_or(0),
            expires_at: call.date_text("expires_at")?,
            role_id: None,
        })
    }

    /// Stores the invitation. Returns its id, or `None` if the group is already invited.
    fn store(&mut self, call: &Call<'_>, holder: Holder) -> Result<Option<i64>> {
        let (column, id) = holder.column_and_id();
        let is_group_share = matches!(holder, Holder::Group(_));
        let since = if is_group_share { GROUP_ROLES_SINCE } else { PROJECT_ROLES_SINCE };
        self.role_id =
            member_roles::read_role_id(call, since, Some(self.level), ErrorResponse::conflict)?;
        // The row of an expired invitation still exists.
        let delete_sql = format!(
            "DELETE FROM shares WHERE {column} = ?1 AND invited_id = ?2 AND expires_at < ?3"
        );
        call.execute(&delete_sql, params![id, self.group_id, call.today()])?;
        let sql = format!(
            "INSERT INTO shares ({column}, invited_id, access_level, expires_at, member_role_id)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING RETURNING id"
        );
        call.query_optional_value(
            &sql,
            params![id, self.group_id, self.level, self.expires_at, self.role_id],
        )
    }
}

/// The error for an invitation that is not possible. It is the same for every reason.
fn share_error() -> ErrorResponse {
    ErrorResponse::message(StatusCode::NOT_FOUND, "Not Found")
}

impl Namespace {
    /// True if a group may invite `invited_group`. The top-level group can forbid invitations of
    /// groups outside its hierarchy.
    fn may_invite(&self, call: &Call<'_>, invited_group: &Self) -> Result<bool> {
        let root_id = protection::root_group_id(self);
        if !self.is_group() || root_id == protection::root_group_id(invited_group) {
            return Ok(true);
        }
        let setting = "prevent_sharing_groups_outside_hierarchy";
        Ok(!GROUP_SETTINGS.is_on(call.db, root_id, setting)?)
    }
}

fn share_project(call: &Call<'_>) -> Result<Answer> {
    let project = call.require_writable_project(MAINTAINER)?;
    let mut invitation = Invitation::from_call(call)?;
    let namespace = &project.namespace;
    let is_locked = namespace.is_group() && group_settings::is_share_locked(call, namespace.id)?;
    refuse_if(is_locked, || "The project sharing with group is disabled".into())?;
    let invited_group = Namespace::find_by_id(call.db, invitation.group_id)?
        .filter(Namespace::is_group)
        .ok_or_else(share_error)?;
    let may_invite =
        call.may_see_group(&invited_group)? && namespace.may_invite(call, &invited_group)?;
    refuse_if(!may_invite, share_error)?;
    refuse_if(
        invitation.level > call.caller_level_in_project(&project)?,
        ErrorResponse::forbidden,
    )?;
    let is_above = traversal_ids(&namespace.traversal).any(|id| id == invited_group.id);
    let message = "Project cannot be shared with the group it is in or one of its ancestors.";
    refuse_if(is_above, || ErrorResponse::conflict(message))?;
    let id = invitation
        .store(call, Holder::Project(project.id))?
        .ok_or_else(|| ErrorResponse::conflict("Project already shared with this group"))?;
    let mut body = json!({
        "id": id,
        "project_id": project.id,
        "group_id": invited_group.id,
        "group_access": invitation.level,
        "expires_at": invitation.expires_at,
    });
    let has_role = member_roles::are_roles_available(call, PROJECT_ROLES_SINCE);
    set_field_if(&mut body, has_role, member_roles::ROLE_ID, invitation.role_id);
    Answer::created(&body)
}

/// Removes an invitation. Only owners may remove an invitation with the level owner. In a group, a
/// caller without this right gets a successful response, but the invitation is not removed.
fn unshare(call: &Call<'_>) -> Result<Answer> {
    let scope = GroupOrProject::from_call(call, [MAINTAINER, 0])?;
    let (column, id) = scope.holder().column_and_id();
    let invited_id = call.segment_id("group_id")?;
    let from_clause = format!("FROM shares WHERE {column} = ?1 AND invited_id = ?2");
    let sql =
        format!("SELECT access_level {from_clause} AND (expires_at IS NULL OR expires_at >= ?3)");
    let level: Option<i64> =
        call.query_optional_value(&sql, params![id, invited_id, call.today()])?;
    let level = level.or_not_found("Group Link")?;
    let caller_level = scope.caller_level(call)?;
    refuse_if(scope.choose(level > caller_level, false), ErrorResponse::forbidden)?;
    if scope.choose(true, caller_level >= OWNER) {
        call.execute(&format!("DELETE {from_clause}"), [id, invited_id])?;
    }
    Ok(Answer::no_content())
}

/// Creates an invitation. A caller who may not invite gets 404.
fn share_group(call: &Call<'_>) -> Result<Answer> {
    let group = call.require_group(0)?;
    let mut invitation = Invitation::from_call(call)?;
    let invited_group = call.visible_group(&invitation.group_id.to_string())?;
    let is_owner = call.caller_level_in_group(&group)? >= OWNER;
    let may_invite = is_owner && group.may_invite(call, &invited_group)?;
    refuse_if(!may_invite, share_error)?;
    let text = "Shared group The group has already been shared with this group";
    invitation
        .store(call, Holder::Group(group.id))?
        .ok_or_else(|| ErrorResponse::conflict(text))?;
    Answer::created(&groups::action_response_json(call, &group)?)
}

/// Copies the direct members of another project; existing members stay unchanged. The reference has
/// the status 200; the real service answers with 201.
fn import_members(call: &Call<'_>) -> Result<Answer> {
    let project = call.require_writable_project(MAINTAINER)?;
    let source = call.visible_project(call.segment("project_id"))?;
    let is_maintainer = call.caller_level_in_project(&source)? >= MAINTAINER;
    refuse_if(!is_maintainer, || ErrorResponse::forbidden_because("Project"))?;
    refuse_if(source.id == project.id, || ErrorResponse::invalid_record("Import failed"))?;
    let sql = "INSERT INTO members (project_id, user_id, access_level, expires_at, created_at, created_by)
         SELECT ?1, m.user_id, min(m.access_level, ?3), m.expires_at, ?4, ?5
         FROM members m JOIN users u ON u.id = m.user_id WHERE m.project_id = ?2 AND u.bot = 0
         ON CONFLICT DO NOTHING";
    let (level, user_id) = (call.caller_level_in_project(&project)?, call.require_user()?.id);
    call.execute(sql, params![project.id, source.id, level, call.time_text(), user_id])?;
    let answers_created = call.profile().import_members_created;
    let status = if answers_created { StatusCode::CREATED } else { StatusCode::OK };
    Answer::with_status(status, &json!({ "status": "success" }))
}

/// The ids of the groups that are invited to `holder`.
fn list_invited_ids(call: &Call<'_>, holder: Holder) -> Result<Vec<i64>> {
    let (column, id) = holder.column_and_id();
    list_active_ids(call, &format!("SELECT invited_id FROM shares WHERE {column} = ?1"), id)
}

fn list_active_ids(call: &Call<'_>, select_sql: &str, id: i64) -> Result<Vec<i64>> {
    let sql = format!("{select_sql} AND (expires_at IS NULL OR expires_at >= ?2)");
    call.query_column(&sql, params![id, call.today()])
}

fn list_inviting_groups(call: &Call<'_>) -> Result<Answer> {
    refuse_if(!call.is_at_least(17, 2), ErrorResponse::route_not_found)?;
    let group = call.group()?;
    let select_sql = "SELECT group_id FROM shares WHERE invited_id = ?1 AND group_id IS NOT NULL";
    groups::list_by_ids(call, &list_active_ids(call, select_sql, group.id)?)
}

/// The groups that are invited to a project or group directly, or to the groups above. The
/// parameter `relation` selects one of the two, or both.
fn list_invited_groups(call: &Call<'_>) -> Result<Answer> {
    refuse_if(!call.is_at_least(17, 4), ErrorResponse::route_not_found)?;
    let scope = GroupOrProject::from_call_if_visible(call)?;
    let relations = call.allowed_texts("relation", &["direct", "inherited"])?.unwrap_or_default();
    let has_relation =
        |word: &str| relations.is_empty() || relations.iter().any(|other| other == word);
    let mut invited_ids = Vec::new();
    if has_relation("direct") {
        invited_ids.extend(list_invited_ids(call, scope.holder())?);
    }
    for group_id in scope.parent_group_ids().into_iter().filter(|_| has_relation("inherited")) {
        invited_ids.extend(list_invited_ids(call, Holder::Group(group_id))?);
    }
    match scope {
        GroupOrProject::Group(_) => groups::list_by_ids(call, &invited_ids),
        GroupOrProject::Project(_) => {
            actions::list_locations(call, 0, |group| invited_ids.contains(&group.id))
        }
    }
}

fn list_invitable_groups(call: &Call<'_>) -> Result<Answer> {
    refuse_if(!call.is_observed_release_or_later(), ErrorResponse::route_not_found)?;
    let project = call.require_project(MAINTAINER)?;
    let mut excluded_ids = list_invited_ids(call, Holder::Project(project.id))?;
    excluded_ids.extend(traversal_ids(&project.namespace.traversal));
    actions::list_locations(call, GUEST, |group| !excluded_ids.contains(&group.id))
}
