//! Groups and invitations of groups: what clients need around the operations of the reference.

use http::StatusCode;
use rusqlite::params;
use serde_json::{Value, json};

use super::super::access::OWNER;
use super::super::answer::{Answer, Failure};
use super::super::attributes::VISIBILITIES;
use super::super::call::Call;
use super::super::kept::OF_GROUPS;
use super::super::page;
use super::super::params::Params;
use super::super::scope::Scope;
use super::super::store::holder::Holder;
use super::super::store::namespace::{Namespace, NewGroup};
use super::members;
use super::projects::{self, check_path, check_visibility};
use super::{
    Route, actions, avatars, custom_attributes, delete, get, instance, post, project_list, put,
    shares,
};

pub(super) const ROUTES: &[Route] = &[
    get("/groups", list),
    post("/groups", create),
    get("/groups/{id}", show),
    put("/groups/{id}", update),
    delete("/groups/{id}", remove),
    get("/groups/{id}/subgroups", |call| below(call, false)),
    get("/groups/{id}/descendant_groups", |call| below(call, true)),
    post("/groups/{id}/transfer", transfer),
    get("/groups/{id}/transfer_locations", transfer_locations),
    post("/groups/{id}/projects/{project_id}", take_project),
];

fn json(call: &Call<'_>, group: &Namespace) -> Result<Value, Failure> {
    let avatar = avatars::name(call, Holder::Group(group.id))?;
    let mut body = json!({
        "id": group.id,
        "web_url": group.web_url(&call.base),
        "name": group.name,
        "path": group.path,
        "description": group.description,
        "visibility": group.visibility,
        "avatar_url": avatar.map(|name| format!("{}/uploads/-/system/group/avatar/{}/{name}", call.base, group.id)),
        "full_name": group.full_name,
        "full_path": group.full_path,
        "created_at": group.created_at,
        "parent_id": group.parent_id,
    });
    for (name, value) in OF_GROUPS.all(call.db, group.id, call.tier())? {
        body[name] = value;
    }
    if !OF_GROUPS.set(call.db, group.id)?.contains_key(BRANCH_PROTECTION) {
        body[BRANCH_PROTECTION] = instance::setting(call.db, BRANCH_PROTECTION)?;
    }
    // The root of a hierarchy says this for all of it.
    if let Some(members) = body.as_object_mut().filter(|_| group.parent_id.is_some()) {
        members.remove("prevent_sharing_groups_outside_hierarchy");
    }
    Ok(body)
}

/// Keeps the settings and the picture that the call has.
fn take_settings(call: &Call<'_>, group: i64) -> Result<(), Failure> {
    OF_GROUPS.take(call.db, group, call.tier(), &call.params)?;
    avatars::take(call, Holder::Group(group), &call.params).map(drop)
}

pub(super) const BRANCH_PROTECTION: &str = "default_branch_protection";
const SHARE_LOCK: &str = "share_with_group_lock";

/// Whether projects of a group cannot be shared with groups.
pub(super) fn is_share_locked(call: &Call<'_>, group: i64) -> Result<bool, Failure> {
    let set = OF_GROUPS.set(call.db, group)?;
    Ok(set.get(SHARE_LOCK) == Some(&Value::Bool(true)))
}

/// Locks a group and all below it.
fn lock_shares(call: &Call<'_>, group: &Namespace) -> Result<(), Failure> {
    let mut lock = Params::default();
    lock.add(SHARE_LOCK, true.into())?;
    let all = group.subtree(call.db)?;
    all.into_iter().try_for_each(|id| OF_GROUPS.take(call.db, id, call.tier(), &lock))
}

/// Below a locked group only the owners of that one can unlock.
fn check_share_lock(call: &Call<'_>, group: &Namespace) -> Result<(), Failure> {
    let unlocks = call.params.flag(SHARE_LOCK)? == Some(false) && is_share_locked(call, group.id)?;
    let parent = match group.parent_id {
        Some(id) if unlocks => Namespace::by_id(call.db, id)?,
        _ => None,
    };
    match parent {
        Some(parent)
            if is_share_locked(call, parent.id)? && call.level_in_group(&parent)? < OWNER =>
        {
            let text = "cannot be disabled when the parent group \"Share with group lock\" is enabled, \
                        except by the owner of the parent group";
            Err(Failure::model(SHARE_LOCK, text))
        }
        _ => Ok(()),
    }
}

/// A group that comes below a locked one is locked.
fn inherit_share_lock(
    call: &Call<'_>,
    group: &Namespace,
    parent: Option<&Namespace>,
) -> Result<(), Failure> {
    match parent {
        Some(parent) if is_share_locked(call, parent.id)? => lock_shares(call, group),
        _ => Ok(()),
    }
}

fn list(call: &Call<'_>) -> Result<Answer, Failure> {
    let top = call.params.is_set("top_level_only")?;
    respond(call, |group| !top || group.parent_id.is_none())
}

fn below(call: &Call<'_>, all: bool) -> Result<Answer, Failure> {
    let parent = call.group()?;
    respond(call, |group| {
        let inside = group.id != parent.id && group.traversal.starts_with(&parent.traversal);
        inside && (all || group.parent_id == Some(parent.id))
    })
}

/// Answers a page of the groups that the caller may see and `wanted` accepts.
fn respond(call: &Call<'_>, wanted: impl Fn(&Namespace) -> bool) -> Result<Answer, Failure> {
    let search = call.params.text("search")?.unwrap_or_default().to_lowercase();
    let skipped = call.params.integers("skip_groups")?.unwrap_or_default();
    // What is asked of the caller's own role; that of an administrator does not count.
    let own = if call.params.is_set("owned")? {
        OWNER
    } else {
        i64::from(call.params.flag("all_available")? == Some(false))
    };
    let least = members::level(call, "min_access_level")?.unwrap_or(0).max(own);
    let column =
        match call.params.one_of("order_by", &["name", "path", "id", "similarity"])?.as_deref() {
            Some("id") => "n.id",
            Some("path") => "n.path COLLATE NOCASE",
            _ => "n.name COLLATE NOCASE",
        };
    let direction = if call.params.one_of("sort", &["asc", "desc"])?.as_deref() == Some("desc") {
        "DESC"
    } else {
        "ASC"
    };
    let sql = format!(
        "SELECT {} FROM namespaces n WHERE n.kind = 'group' ORDER BY {column} {direction}, n.id",
        Namespace::COLUMNS
    );
    let mut statement = call.db.prepare_cached(&sql)?;
    let mut all = Vec::new();
    for group in statement.query_map([], |row| Namespace::from_row(row, 0))? {
        let group = group?;
        let named =
            [&group.name, &group.path].iter().any(|text| text.to_lowercase().contains(&search));
        let enough = call.standing()?.in_namespace(&group.traversal) >= least;
        let fits = named && enough && !skipped.contains(&group.id) && wanted(&group);
        if fits
            && custom_attributes::wanted(call, Holder::Group(group.id))?
            && call.sees_group(&group)?
        {
            all.push(json(call, &group)?);
        }
    }
    page::list(call, &all)
}

fn show(call: &Call<'_>) -> Result<Answer, Failure> {
    let group = call.group()?;
    let mut body = detailed(call, &group)?;
    add_owned(call, &group, &mut body)?;
    if call.params.flag("with_projects")?.unwrap_or(true) {
        add_projects(call, &group, &mut body)?;
    }
    Answer::ok(&body)
}

/// What only reading and changing a group shows.
fn add_projects(call: &Call<'_>, group: &Namespace, body: &mut Value) -> Result<(), Failure> {
    let [own, shared] = project_list::shown_with_group(call, group.id)?;
    body["projects"] = own.into();
    body["shared_projects"] = shared.into();
    Ok(())
}

/// What owners only are shown.
fn add_owned(call: &Call<'_>, group: &Namespace, body: &mut Value) -> Result<(), Failure> {
    if call.level_in_group(group)? >= OWNER {
        let digest = xxhash_rust::xxh3::xxh3_64(format!("runners of {}", group.id).as_bytes());
        body["runners_token"] = format!("GR1348941{digest:016x}").into();
    }
    Ok(())
}

/// The group with the groups invited to it.
pub(super) fn detailed(call: &Call<'_>, group: &Namespace) -> Result<Value, Failure> {
    let mut body = json(call, group)?;
    body["shared_with_groups"] = shares::shown(call, Holder::Group(group.id))?.into();
    Ok(body)
}

fn create(call: &Call<'_>) -> Result<Answer, Failure> {
    let user = call.user()?;
    call.params.require(&["name", "path"])?;
    let name = call.params.text("name")?.unwrap_or_default();
    let path = call.params.text("path")?.unwrap_or_default();
    let parent = match call.params.integer("parent_id")? {
        None => None,
        Some(id) => {
            let parent = call.visible_group(&id.to_string())?;
            if call.level_in_group(&parent)? < OWNER {
                return Err(Failure::forbidden());
            }
            Some(parent)
        }
    };
    let new = NewGroup {
        name: &name,
        path: &path,
        parent: parent.as_ref(),
        visibility: &call
            .params
            .one_of("visibility", VISIBILITIES)?
            .unwrap_or_else(|| "private".to_owned()),
        description: &call.params.text("description")?.unwrap_or_default(),
    };
    let group = insert(call, new)?;
    members::insert(call, &Scope::Group(Box::new(group.clone())), user.id, OWNER, None)?;
    take_settings(call, group.id)?;
    inherit_share_lock(call, &group, parent.as_ref())?;
    Answer::created(&detailed(call, &group)?)
}

/// Inserts a group with all checks but those of the caller's rights.
pub(crate) fn insert(call: &Call<'_>, new: NewGroup<'_>) -> Result<Namespace, Failure> {
    check_path(new.path)?;
    if let Some(parent) = new.parent {
        check_visibility(parent, new.visibility)?;
    }
    check_free(call, new.parent, new.path, None)?;
    let id = Namespace::insert_group(call.db, new, call.now())?;
    Namespace::by_id(call.db, id)?.ok_or_else(|| Failure::not_found("Group"))
}

fn check_free(
    call: &Call<'_>,
    parent: Option<&Namespace>,
    path: &str,
    except: Option<i64>,
) -> Result<(), Failure> {
    let full_path = match parent {
        Some(parent) => format!("{}/{path}", parent.full_path),
        None => path.to_owned(),
    };
    let taken: bool = call
        .db
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM namespaces WHERE full_path = ?1 AND id IS NOT ?2)
                 OR EXISTS (SELECT 1 FROM projects WHERE full_path = ?1)",
        )?
        .query_row(params![full_path, except], |row| row.get(0))?;
    match taken {
        true => Err(Failure::model("path", "has already been taken")),
        false => Ok(()),
    }
}

fn update(call: &Call<'_>) -> Result<Answer, Failure> {
    let group = call.group_as(OWNER)?;
    let params = &call.params;
    let name = params.text("name")?.unwrap_or_else(|| group.name.clone());
    let path = params.text("path")?.unwrap_or_else(|| group.path.clone());
    let visibility =
        params.one_of("visibility", VISIBILITIES)?.unwrap_or_else(|| group.visibility.clone());
    let description = params.text("description")?.unwrap_or_else(|| group.description.clone());
    let parent = match group.parent_id {
        Some(id) => Namespace::by_id(call.db, id)?,
        None => None,
    };
    if path != group.path {
        check_path(&path)?;
        check_free(call, parent.as_ref(), &path, Some(group.id))?;
    }
    if let Some(parent) = &parent {
        check_visibility(parent, &visibility)?;
    }
    call.db.execute(
        "UPDATE namespaces SET name = ?2, path = ?3, visibility = ?4, description = ?5 WHERE id = ?1",
        params![group.id, name, path, visibility, description],
    )?;
    check_share_lock(call, &group)?;
    let was_locked = is_share_locked(call, group.id)?;
    take_settings(call, group.id)?;
    if !was_locked && is_share_locked(call, group.id)? {
        lock_shares(call, &group)?;
    }
    rename_below(call, &group)?;
    let group = Namespace::by_id(call.db, group.id)?.ok_or_else(|| Failure::not_found("Group"))?;
    let mut body = detailed(call, &group)?;
    add_owned(call, &group, &mut body)?;
    add_projects(call, &group, &mut body)?;
    Answer::ok(&body)
}

/// Makes the full paths and names at and below a group follow it: parents first.
pub(super) fn rename_below(call: &Call<'_>, group: &Namespace) -> Result<(), Failure> {
    let (first, end) = group.range();
    let mut ids: Vec<(i64, i64)> = call
        .db
        .prepare_cached(
            "SELECT length(traversal), id FROM namespaces WHERE traversal >= ?1 AND traversal < ?2",
        )?
        .query_map([first, end], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    ids.sort_unstable();
    for (_, id) in ids {
        call.db.execute(
            "UPDATE namespaces SET
                 full_path = coalesce((SELECT a.full_path || '/' FROM namespaces a WHERE a.id = namespaces.parent_id), '') || path,
                 full_name = coalesce((SELECT a.full_name || ' / ' FROM namespaces a WHERE a.id = namespaces.parent_id), '') || name
             WHERE id = ?1",
            [id],
        )?;
        call.db.execute(
            "UPDATE projects SET full_path = (SELECT full_path FROM namespaces WHERE id = ?1) || '/' || path
             WHERE namespace_id = ?1",
            [id],
        )?;
    }
    Ok(())
}

fn remove(call: &Call<'_>) -> Result<Answer, Failure> {
    let group = call.group_as(OWNER)?;
    call.db.execute("DELETE FROM namespaces WHERE id = ?1", [group.id])?;
    Answer::with(StatusCode::ACCEPTED, &json!({ "message": "202 Accepted" }))
}

/// Moves a group with everything in it below another one, or makes it a root group.
fn transfer(call: &Call<'_>) -> Result<Answer, Failure> {
    let group = call.group_as(OWNER)?;
    let refused =
        |why: &str| Failure::message(StatusCode::BAD_REQUEST, format!("Transfer failed: {why}"));
    let parent = match call.params.integer("group_id")? {
        None => None,
        Some(id) => Some(call.visible_group(&id.to_string())?),
    };
    if let Some(parent) = &parent {
        if parent.traversal.starts_with(&group.traversal) {
            return Err(refused("Cannot transfer group to one of its subgroup."));
        }
        if call.level_in_group(parent)? < OWNER {
            return Err(refused("You don't have enough permissions."));
        }
        check_visibility(parent, &group.visibility)?;
    }
    if parent.as_ref().map(|parent| parent.id) == group.parent_id {
        return Err(refused("Group is already associated to the parent group."));
    }
    check_free(call, parent.as_ref(), &group.path, None)?;
    let above = parent.as_ref().map_or("/", |parent| parent.traversal.as_str());
    let (first, end) = group.range();
    call.db.execute(
        "UPDATE namespaces SET parent_id = ?2 WHERE id = ?1",
        params![group.id, parent.as_ref().map(|parent| parent.id)],
    )?;
    call.db.execute(
        "UPDATE namespaces SET traversal = ?1 || substr(traversal, ?2) WHERE traversal >= ?3 AND traversal < ?4",
        params![format!("{above}{}/", group.id), group.traversal.len() as i64 + 1, first, end],
    )?;
    let moved = Namespace::by_id(call.db, group.id)?.ok_or_else(|| Failure::not_found("Group"))?;
    rename_below(call, &moved)?;
    let moved = Namespace::by_id(call.db, group.id)?.ok_or_else(|| Failure::not_found("Group"))?;
    inherit_share_lock(call, &moved, parent.as_ref())?;
    Answer::created(&detailed(call, &moved)?)
}

fn transfer_locations(call: &Call<'_>) -> Result<Answer, Failure> {
    let group = call.group_as(OWNER)?;
    actions::locations(call, OWNER, |other| {
        group.parent_id != Some(other.id) && !other.traversal.starts_with(&group.traversal)
    })
}

/// The other way to transfer a project, for administrators.
fn take_project(call: &Call<'_>) -> Result<Answer, Failure> {
    call.administrator()?;
    let group = call.group()?;
    let project = call.visible_project(call.segment("project_id"))?;
    call.check_writable(&project)?;
    projects::move_to(call, &project, &group)?;
    Answer::created(&detailed(call, &group)?)
}
