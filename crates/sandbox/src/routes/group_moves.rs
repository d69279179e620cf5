//! Moves of groups, and changes of their paths. A move or change includes all groups and projects
//! below the group.

use super::group_rules::visibility_rank;
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    post("/groups/{id}/transfer", transfer_group),
    get("/groups/{id}/transfer_locations", list_transfer_locations),
    post("/groups/{id}/projects/{project_id}", transfer_project),
];

/// Updates the full paths and full names of a group and of everything below it, with parents first.
pub(super) fn update_full_paths(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let (range_start, range_end) = group.traversal_range();
    let sql = "SELECT id FROM namespaces WHERE traversal >= ?1 AND traversal < ?2
               ORDER BY length(traversal), id";
    for id in call.query_column::<i64>(sql, [range_start, range_end])? {
        call.execute(
            "UPDATE namespaces SET
                 full_path = coalesce((SELECT a.full_path || '/' FROM namespaces a WHERE a.id = namespaces.parent_id), '') || path,
                 full_name = coalesce((SELECT a.full_name || ' / ' FROM namespaces a WHERE a.id = namespaces.parent_id), '') || name
             WHERE id = ?1",
            [id],
        )?;
        call.execute(
            "UPDATE projects SET full_path = (SELECT full_path FROM namespaces WHERE id = ?1) || '/' || path
             WHERE namespace_id = ?1",
            [id],
        )?;
    }
    Ok(())
}

fn transfer_error(reason: &str) -> ErrorResponse {
    format!("Transfer failed: {reason}").into()
}

/// Moves a group with its contents below another group, or to the top level.
fn transfer_group(call: &Call<'_>) -> Result<Answer> {
    let group = call.require_group(OWNER)?;
    let parent = call.integer("group_id")?;
    let parent = parent.map(|id| call.visible_group(&id.to_string())).transpose()?;
    check_transfer(call, &group, parent.as_ref())?;
    set_parent(call, &group, parent.as_ref())?;
    let moved_group = groups::reload(call, group.id)?;
    update_full_paths(call, &moved_group)?;
    match &parent {
        Some(parent) => lower_subtree_visibility(call, &moved_group, &parent.visibility)?,
        None => ensure_owner(call, &moved_group)?,
    }
    group_settings::inherit_settings(call, &moved_group, parent.as_ref())?;
    Answer::created(&groups::action_response_json(call, &groups::reload(call, group.id)?)?)
}

fn check_transfer(call: &Call<'_>, group: &Namespace, parent: Option<&Namespace>) -> Result<()> {
    let (former_parent_id, new_parent) = (group.parent_id, parent.map(|parent| parent.id));
    refuse_if(former_parent_id == new_parent, || {
        transfer_error(match parent {
            None => "Group is already a root group.",
            Some(_) => "Group is already associated to the parent group.",
        })
    })?;
    let may_create = group_rules::may_create_group(call, parent)?;
    refuse_if(!may_create, || transfer_error("You don't have enough permissions."))?;
    let is_inside = parent.is_some_and(|parent| parent.traversal.starts_with(&group.traversal));
    refuse_if(is_inside, || transfer_error("Cannot transfer group to one of its subgroup."))?;
    let Namespace { name, path, visibility, .. } = group;
    let moved_group = NewGroup { name, path, parent, visibility };
    let text = "The parent group already has a subgroup or a project with the same path.";
    refuse_if(moved_group.is_path_taken(call, Some(group.id))?, || transfer_error(text))?;
    let is_name_taken = moved_group.has_namesake(call, None)?;
    refuse_if(is_name_taken, || transfer_error("Validation failed: Name has already been taken"))
}

fn set_parent(call: &Call<'_>, group: &Namespace, parent: Option<&Namespace>) -> Result<()> {
    let parent_traversal = parent.map_or("/", |parent| parent.traversal.as_str());
    let (range_start, range_end) = group.traversal_range();
    call.set_column("namespaces", group.id, "parent_id", parent.map(|parent| parent.id))?;
    let sql = "UPDATE namespaces SET traversal = ?1 || substr(traversal, ?2)
               WHERE traversal >= ?3 AND traversal < ?4";
    let suffix_start = group.traversal.len() as i64 + 1;
    call.execute(
        sql,
        params![format!("{parent_traversal}{}/", group.id), suffix_start, range_start, range_end],
    )
    .map(drop)
}

/// Lowers the visibility of a group and everything below it to at most `max_visibility`.
fn lower_subtree_visibility(
    call: &Call<'_>,
    group: &Namespace,
    max_visibility: &str,
) -> Result<()> {
    let wider_visibilities =
        Value::from(&VISIBILITIES[visibility_rank(max_visibility) + 1..]).to_string();
    let group_ids = Value::from(group.subtree_ids(call.db)?).to_string();
    for (table, id_column) in [("namespaces", "id"), ("projects", "namespace_id")] {
        let sql = format!(
            "UPDATE {table} SET visibility = ?1 WHERE {id_column} IN (SELECT value FROM json_each(?2))
                 AND visibility IN (SELECT value FROM json_each(?3))"
        );
        call.execute(&sql, params![max_visibility, group_ids, wider_visibilities])?;
    }
    Ok(())
}

/// Makes the caller an owner of a new top-level group that has no owner.
fn ensure_owner(call: &Call<'_>, group: &Namespace) -> Result<()> {
    let sql = "SELECT EXISTS (SELECT 1 FROM members WHERE group_id = ?1 AND access_level = ?2 AND user_id IS NOT NULL)";
    let has_owner: bool = call.query_value(sql, [group.id, OWNER])?;
    if has_owner {
        return Ok(());
    }
    let user_id = call.require_user()?.id;
    call.execute("DELETE FROM members WHERE group_id = ?1 AND user_id = ?2", [group.id, user_id])?;
    let scope = GroupOrProject::from(group.clone());
    MembershipTerms::with_level(OWNER).insert(call, &scope, user_id)
}

fn list_transfer_locations(call: &Call<'_>) -> Result<Answer> {
    let group = call.group_allowing_anonymous(OWNER)?;
    actions::list_locations(call, OWNER, |other| {
        group.parent_id != Some(other.id) && !other.traversal.starts_with(&group.traversal)
    })
}

/// Transfers a project to a group; only for administrators.
fn transfer_project(call: &Call<'_>) -> Result<Answer> {
    call.require_administrator()?;
    let group = call.group()?;
    let project = call.visible_project(call.segment("project_id"))?;
    call.check_writable(&project)?;
    project.move_to(call, &group)?;
    Answer::created(&groups::action_response_json(call, &group)?)
}
