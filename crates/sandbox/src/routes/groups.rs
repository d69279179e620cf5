//! Operations on groups. The reference does not describe them, but clients need them. This module
//! follows the real service.
//!
//! A group has two forms: a short form in lists, and a long form in responses for a single group.

use super::deletion;
use super::group_rules::{MIN_PATH_LENGTH, join_errors};
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/groups", list),
    post("/groups", create),
    get("/groups/{id}", show),
    put("/groups/{id}", update),
    post("/groups/{id}/archive", |call| set_archived(call, true)),
    post("/groups/{id}/unarchive", |call| set_archived(call, false)),
    get("/groups/{id}/subgroups", |call| list_subgroups(call, false)),
    get("/groups/{id}/descendant_groups", |call| list_subgroups(call, true)),
];

/// The group, read again from the store.
pub(super) fn reload(call: &Call<'_>, id: i64) -> Result<Namespace> {
    Namespace::find_by_id(call.db, id)?.or_not_found("Group")
}

/// The short form of a group, for lists.
pub(super) fn short_form_json(call: &Call<'_>, group: &Namespace) -> Result<Value> {
    group_json(call, group, true)
}

/// The long form of a group in the response to an action, such as a transfer. This form omits the
/// fields that only owners see in other responses.
pub(super) fn action_response_json(call: &Call<'_>, group: &Namespace) -> Result<Value> {
    let mut body = remove_fields(group_json(call, group, false)?, &[group_settings::GIT_ACCESS]);
    body["shared_with_groups"] = shares::invitations_json(call, Holder::Group(group.id))?.into();
    Ok(body)
}

/// The long form of a group, optionally with its projects and the projects shared with it. Only
/// owners see the protocols for its repositories and the token for its runners.
fn single_group_json(call: &Call<'_>, group: &Namespace, includes_projects: bool) -> Result<Value> {
    let mut body = group_json(call, group, false)?;
    body["shared_with_groups"] = shares::invitations_json(call, Holder::Group(group.id))?.into();
    if call.caller_level_in_group(group)? >= OWNER {
        let digest = xxhash_rust::xxh3::xxh3_64(format!("runners of {}", group.id).as_bytes());
        body["runners_token"] = format!("GR1348941{digest:016x}").into();
    }
    if includes_projects {
        let [projects, shared_projects] = project_list::group_projects_json(call, group.id)?;
        body["projects"] = projects.into();
        body["shared_projects"] = shared_projects.into();
    }
    Ok(body)
}

fn group_json(call: &Call<'_>, group: &Namespace, is_listed: bool) -> Result<Value> {
    let holder = Holder::Group(group.id);
    let names =
        "id web_url name path visibility avatar_url full_name full_path created_at parent_id";
    let mut body = group.json_columns(names);
    body["web_url"] = group.web_url(&call.base_url).into();
    body["avatar_url"] = avatars::stored_avatar_url(call, holder)?.into();
    add_fields(&mut body, group_settings::settings_json(call, group, is_listed)?);
    let marked_on = group.column("marked_for_deletion_on");
    set_field_if(&mut body, call.shows_deletion_day(), "marked_for_deletion_on", marked_on);
    if call.is_administrator() {
        if call.is_true("with_custom_attributes")? {
            body["custom_attributes"] = custom_attributes::list_json(call, holder)?;
        }
        if is_listed && call.is_true("statistics")? {
            // All sizes are zero in the sandbox.
            let sizes = view::STATISTICS.split(' ').filter(|name| name.ends_with("_size"));
            body["statistics"] = sizes.map(|name| (name.to_owned(), Value::from(0))).collect();
            let is_root = call.is_at_least(17, 4) && group.parent_id.is_none();
            set_field_if(&mut body, is_root, "root_storage_statistics", Value::Null);
        }
    }
    Ok(body)
}

fn list(call: &Call<'_>) -> Result<Answer> {
    if call.caller.is_none() || call.is_observed_release_or_later() {
        page::Page::from_call(call)?.check_offset("Group")?;
    }
    let is_top_only = call.is_true("top_level_only")?;
    answer_list(call, true, read_group_filter(call)?, |group| {
        !is_top_only || group.parent_id.is_none()
    })
}

/// With `top_level_only` these lists ignore the group in the path.
fn list_subgroups(call: &Call<'_>, includes_descendants: bool) -> Result<Answer> {
    let parent = call.group()?;
    let is_top_only = call.is_true("top_level_only")?;
    answer_list(call, false, read_group_filter(call)?, |group| {
        let is_inside = group.id != parent.id && group.traversal.starts_with(&parent.traversal);
        let is_wanted = is_inside && (includes_descendants || group.parent_id == Some(parent.id));
        if is_top_only { group.parent_id.is_none() } else { is_wanted }
    })
}

/// Answers with the groups that have these ids, without groups that the caller does not see.
pub(super) fn list_by_ids(call: &Call<'_>, ids: &[i64]) -> Result<Answer> {
    let min_level = terms::read_level(call, "min_access_level")?.unwrap_or(0);
    answer_list(call, true, (min_level, Vec::new()), |group| ids.contains(&group.id))
}

/// The filter of a list by membership: a minimum level, and paths of ids. A group matches if the
/// caller has at least this level by membership, or if the group is on one of the paths. The rights
/// of an administrator do not count.
type GroupFilter = (i64, Vec<String>);

fn read_group_filter(call: &Call<'_>) -> Result<GroupFilter> {
    let min_level = terms::read_level(call, "min_access_level")?;
    let all_available = call.flag("all_available")?;
    Ok(match (&call.caller, min_level) {
        _ if call.is_true("owned")? => (OWNER, Vec::new()),
        (_, Some(level)) => (level, Vec::new()),
        (Some(user), None) if !all_available.unwrap_or(user.admin) => {
            (1, list_membership_paths(call, user.id)?)
        }
        _ => (0, Vec::new()),
    })
}

/// The paths of ids from the top-level group to each group in which the user is a member. A
/// membership of a project counts for the group of the project.
fn list_membership_paths(call: &Call<'_>, user_id: i64) -> Result<Vec<String>> {
    // The second part adds the groups of projects to which a group of the caller was invited.
    let sql = "SELECT n.traversal FROM members m LEFT JOIN projects p ON p.id = m.project_id
         JOIN namespaces n ON n.id = coalesce(m.group_id, p.namespace_id)
         WHERE m.user_id = ?1 AND m.state = 'active' AND (m.expires_at IS NULL OR m.expires_at >= ?2)
             AND n.kind = 'group'
         UNION ALL SELECT n.traversal FROM shares s JOIN projects p ON p.id = s.project_id
         JOIN namespaces n ON n.id = p.namespace_id
         WHERE n.kind = 'group' AND s.invited_id IN (SELECT value FROM json_each(?3))";
    let namespace_ids = call.memberships()?.namespace_ids_json(call.db, 1)?;
    call.query_column(sql, params![user_id, call.today(), namespace_ids])
}

/// SQL conditions: the group `n` is at or below an archived group, and the same for a group marked
/// for deletion.
const IN_ARCHIVED_GROUP_SQL: &str = "EXISTS (SELECT 1 FROM namespaces a WHERE a.id IN
        (SELECT value FROM json_each('[' || replace(trim(n.traversal, '/'), '/', ',') || ']'))
    AND json_extract(a.settings, '$.archived') = TRUE)";
const IN_MARKED_GROUP_SQL: &str = "EXISTS (SELECT 1 FROM namespaces a WHERE a.id IN
        (SELECT value FROM json_each('[' || replace(trim(n.traversal, '/'), '/', ',') || ']'))
    AND a.marked_for_deletion_on IS NOT NULL)";

/// The filters in a call for groups. Some filters exist only from a release on.
fn list_conditions(call: &Call<'_>) -> Result<SqlConditions> {
    let mut conditions = SqlConditions::with_value("n.kind = :kind", "group");
    let skipped_ids = call.integers("skip_groups")?.map(|ids| Value::from(ids).to_string());
    conditions.add_with_value("n.id NOT IN (SELECT value FROM json_each(:skipped))", skipped_ids);
    if call.is_at_least(16, 10) {
        let visibility = call.allowed_text("visibility", VISIBILITIES)?;
        conditions.add_with_value("n.visibility = :visibility", visibility);
    }
    let marked_on = call.date_text("marked_for_deletion_on")?.filter(|_| call.is_at_least(17, 1));
    conditions.add_with_value("n.marked_for_deletion_on = :marked", marked_on);
    let storage = call.text("repository_storage")?.filter(|_| call.is_administrator());
    // Groups have no repositories in the sandbox.
    conditions.add_if(storage.is_some() && call.is_at_least(16, 3), "0");
    let active = call.flag("active")?.filter(|_| call.is_at_least(18, 0));
    let active_sql = format!("({IN_ARCHIVED_GROUP_SQL} OR {IN_MARKED_GROUP_SQL}) <> :active");
    conditions.add_with_value(active_sql, active);
    let archived = call.flag("archived")?.filter(|_| call.is_at_least(18, 2));
    conditions.add_with_value(format!("{IN_ARCHIVED_GROUP_SQL} = :archived"), archived);
    custom_attributes::add_filter(call, &mut conditions, "c.group_id = n.id");
    Ok(conditions)
}

/// Answers with a page of the groups that the caller may see and `accepts` admits. With
/// `searches_full_path`, a search also compares the paths of the groups above.
fn answer_list(
    call: &Call<'_>,
    searches_full_path: bool,
    (min_level, membership_paths): GroupFilter,
    accepts: impl Fn(&Namespace) -> bool,
) -> Result<Answer> {
    let search = call.text("search")?.unwrap_or_default().to_lowercase();
    let conditions = list_conditions(call)?;
    let column =
        match call.allowed_text("order_by", &["name", "path", "id", "similarity"])?.as_deref() {
            Some("id") => "n.id",
            Some("path") => "n.path COLLATE NOCASE",
            // Among names that contain a text, the shortest is the most similar.
            Some("similarity") if !search.is_empty() => "length(n.name)",
            _ => "n.name COLLATE NOCASE",
        };
    for name in ["with_custom_attributes", "statistics"] {
        call.flag(name)?;
    }
    let is_descending = call.allowed_text("sort", &["asc", "desc"])?.as_deref() == Some("desc");
    let direction = if is_descending { "DESC" } else { "ASC" };
    let clauses = format!("{} ORDER BY {column} {direction}, n.id", conditions.clause());
    let groups = Namespace::list(call.db, &clauses, &*conditions.bound_params())?;
    let shown_groups = try_filter(groups, |group| {
        let path = if searches_full_path { &group.full_path } else { &group.path };
        let is_named = [&group.name, path].iter().any(|text| text.to_lowercase().contains(&search));
        Ok(is_named
            && accepts(group)
            && (min_level == 0
                || call.memberships()?.level_in_namespace(&group.traversal) >= min_level
                || membership_paths.iter().any(|path| path.starts_with(&group.traversal)))
            && call.may_see_group(group)?)
    })?;
    page::list_objects(call, &shown_groups, |group| short_form_json(call, group))
}

fn show(call: &Call<'_>) -> Result<Answer> {
    let group = call.group()?;
    Answer::ok(&single_group_json(call, &group, call.flag("with_projects")?.unwrap_or(true))?)
}

fn create(call: &Call<'_>) -> Result<Answer> {
    let user = call.require_user()?;
    call.require(&["name", "path"])?;
    let name = call.text("name")?;
    let path = call.text("path")?;
    let parent_id = call.integer("parent_id")?;
    group_settings::check_types(call, WriteRoute::Create)?;
    let visibility = call.allowed_text("visibility", VISIBILITIES)?;
    let parent = parent_id.map(|id| call.visible_group(&id.to_string())).transpose()?;
    let may_create = group_rules::may_create_group(call, parent.as_ref())?;
    let has_minutes = call.integer("shared_runners_minutes_limit")?.is_some();
    let needs_admin = has_minutes && call.is_premium() && !call.is_administrator();
    refuse_if(!may_create || needs_admin, ErrorResponse::forbidden)?;
    let Some(path) = path else { return Err(group_rules::missing_path_error()) };
    let default_visibility = instance::read_setting(call, "default_group_visibility")?;
    let new_group = NewGroup {
        name: name.as_ref().unwrap_or(&path),
        path: &path,
        parent: parent.as_ref(),
        visibility: visibility.as_deref().or(default_visibility.as_str()).unwrap_or("private"),
    };
    let group = insert(call, new_group, MIN_PATH_LENGTH).map_err(join_errors)?;
    let scope = GroupOrProject::from(group.clone());
    MembershipTerms::with_level(OWNER).insert(call, &scope, user.id)?;
    group_settings::inherit_settings(call, &group, parent.as_ref())?;
    group_settings::store_settings(call, &group, WriteRoute::Create).map_err(join_errors)?;
    Answer::created(&action_response_json(call, &group)?)
}

/// Inserts a group after all checks except the checks of the caller's rights. `min_path_length` is
/// the minimum length of its path.
pub(crate) fn insert(
    call: &Call<'_>,
    new_group: NewGroup<'_>,
    min_path_length: usize,
) -> Result<Namespace> {
    group_rules::check_group(call, new_group, None, min_path_length)?;
    reload(call, Namespace::insert_group(call.db, new_group, call.time_text())?)
}

/// Changes a group. Omitted fields stay unchanged, and a call without fields is allowed.
fn update(call: &Call<'_>) -> Result<Answer> {
    call.require_user()?;
    group_settings::check_types(call, WriteRoute::Edit)?;
    let group = call.require_group(OWNER)?;
    let name = call.text_or_unchanged("name", &group.name)?;
    let path = call.text_or_unchanged("path", &group.path)?;
    let visibility =
        call.allowed_text("visibility", VISIBILITIES)?.unwrap_or_else(|| group.visibility.clone());
    let parent = Namespace::find_by_optional_id(call.db, group.parent_id)?;
    let requested_group =
        NewGroup { name: &name, path: &path, parent: parent.as_ref(), visibility: &visibility };
    group_rules::check_group(call, requested_group, Some(&group), MIN_PATH_LENGTH)?;
    let sql = "UPDATE namespaces SET name = ?2, path = ?3, visibility = ?4 WHERE id = ?1";
    call.execute(sql, params![group.id, name, path, visibility])?;
    let unset_names = group_settings::unset_settings(call, &group)?;
    group_settings::store_settings(call, &group, WriteRoute::Edit)?;
    group_moves::update_full_paths(call, &group)?;
    let mut body = single_group_json(call, &reload(call, group.id)?, true)?;
    unset_names.into_iter().for_each(|name| body[name] = Value::Null);
    Answer::ok(&body)
}

/// Archives a group with its contents, or unarchives it.
fn set_archived(call: &Call<'_>, is_archived: bool) -> Result<Answer> {
    refuse_if(!call.is_observed_release_or_later(), ErrorResponse::route_not_found)?;
    let group = call.require_group(OWNER)?;
    let error = match (is_archived, GROUP_SETTINGS.is_on(call.db, group.id, ARCHIVED)?) {
        (true, true) => Some("Group is already archived!"),
        (false, false) => Some("Group is already unarchived!"),
        (true, false) if call.is_group_archived(&group)? => {
            Some("Cannot archive group since one of the ancestor groups is already archived!")
        }
        (true, false) if deletion::is_any_group_marked(call, traversal_ids(&group.traversal))? => {
            Some("Cannot archive group since it is scheduled for deletion.")
        }
        _ => None,
    };
    refuse_if(error.is_some(), || ErrorResponse::invalid_record(error))?;
    GROUP_SETTINGS.put_value(call.db, group.id, ARCHIVED, is_archived)?;
    Answer::ok(&single_group_json(call, &group, call.is_true("with_projects")?)?)
}
