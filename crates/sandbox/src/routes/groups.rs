//! Groups: operations that clients need in addition to those of the reference. All of it is the
//! real service's behaviour.
//!
//! A group has two forms: a short one in lists, and a longer one alone.

use super::super::store::namespace::NewGroup;
use super::group_rules::{self, Requested, SHORTEST_PATH, in_one_text};
use super::prelude::*;
use super::{
    avatars, custom_attributes, deletion, group_moves, group_settings, instance, members,
    project_list, shares,
};

pub(super) const ROUTES: &[Route] = &[
    get("/groups", list),
    post("/groups", create),
    get("/groups/{id}", show),
    put("/groups/{id}", update),
    post("/groups/{id}/archive", |call| set_archived(call, true)),
    post("/groups/{id}/unarchive", |call| set_archived(call, false)),
    get("/groups/{id}/subgroups", |call| below(call, false)),
    get("/groups/{id}/descendant_groups", |call| below(call, true)),
];

/// The form in lists.
pub(super) fn brief(call: &Call<'_>, group: &Namespace) -> Result<Value> {
    json(call, group, true)
}

/// The form of a group alone in answers to actions: even owners do not see everything.
pub(super) fn plain(call: &Call<'_>, group: &Namespace) -> Result<Value> {
    let mut body = json(call, group, false)?;
    body["shared_with_groups"] = shares::shown(call, Holder::Group(group.id))?.into();
    if let Value::Object(members) = &mut body {
        members.remove(group_settings::GIT_ACCESS);
    }
    Ok(body)
}

/// The form of a group alone. Only owners see how its code can be reached, and the token for its
/// runners.
fn whole(call: &Call<'_>, group: &Namespace) -> Result<Value> {
    let mut body = json(call, group, false)?;
    body["shared_with_groups"] = shares::shown(call, Holder::Group(group.id))?.into();
    if call.level_in_group(group)? >= OWNER {
        let digest = xxhash_rust::xxh3::xxh3_64(format!("runners of {}", group.id).as_bytes());
        body["runners_token"] = format!("GR1348941{digest:016x}").into();
    }
    Ok(body)
}

/// As [`whole`], with the projects of the group and those shared with it.
fn with_projects(call: &Call<'_>, group: &Namespace) -> Result<Value> {
    let mut body = whole(call, group)?;
    let [own, shared] = project_list::shown_with_group(call, group.id)?;
    body["projects"] = own.into();
    body["shared_projects"] = shared.into();
    Ok(body)
}

fn json(call: &Call<'_>, group: &Namespace, in_list: bool) -> Result<Value> {
    let holder = Holder::Group(group.id);
    let avatar = avatars::name(call, holder)?;
    let mut body = json!({
        "id": group.id,
        "web_url": group.web_url(&call.base),
        "name": group.name,
        "path": group.path,
        "visibility": group.visibility,
        "avatar_url": avatar.map(|name| format!("{}/uploads/-/system/group/avatar/{}/{name}", call.base, group.id)),
        "full_name": group.full_name,
        "full_path": group.full_path,
        "created_at": group.created_at,
        "parent_id": group.parent_id,
    });
    group_settings::show(call, group, in_list, &mut body)?;
    if call.shows_deletion() {
        body["marked_for_deletion_on"] = group.marked_for_deletion_on.clone().into();
    }
    if call.is_administrator() {
        if call.params.is_set("with_custom_attributes")? {
            body["custom_attributes"] = custom_attributes::of(call.db, holder)?;
        }
        if in_list && call.params.is_set("statistics")? {
            body["statistics"] = statistics();
            if call.is_from(17, 4) && group.parent_id.is_none() {
                body["root_storage_statistics"] = Value::Null;
            }
        }
    }
    Ok(body)
}

/// All sizes are zero.
fn statistics() -> Value {
    let sizes = view::STATISTICS.split(' ').filter(|name| name.ends_with("_size"));
    sizes.map(|name| (name.to_owned(), Value::from(0))).collect()
}

fn list(call: &Call<'_>) -> Result<Answer> {
    if call.caller.is_none() || call.release() >= OBSERVED {
        page::Page::of(call)?.bounded("Group")?;
    }
    let top = call.params.is_set("top_level_only")?;
    respond(call, true, Reach::of(call)?, |group| !top || group.parent_id.is_none())
}

/// With `top_level_only` these lists ignore which group they are for.
fn below(call: &Call<'_>, all: bool) -> Result<Answer> {
    let parent = call.group()?;
    let top = call.params.is_set("top_level_only")?;
    respond(call, false, Reach::of(call)?, |group| {
        if top {
            return group.parent_id.is_none();
        }
        let inside = group.id != parent.id && group.traversal.starts_with(&parent.traversal);
        inside && (all || group.parent_id == Some(parent.id))
    })
}

/// A list of these groups, as far as the caller sees them.
pub(super) fn among(call: &Call<'_>, ids: &[i64]) -> Result<Answer> {
    let reach = members::level(call, "min_access_level")?.map_or(Reach::Seen, Reach::Level);
    respond(call, true, reach, |group| ids.contains(&group.id))
}

/// Which groups a list shows. Only the caller's own role counts, not that of an administrator.
enum Reach {
    /// Groups in which the role is at least this.
    Level(i64),
    /// Groups that the caller belongs to, and those above: the paths of ids from the top to each
    /// group with a membership in it or in one of its projects.
    Own(Vec<String>),
    /// All groups that the caller sees.
    Seen,
}

impl Reach {
    fn of(call: &Call<'_>) -> Result<Self> {
        let least = members::level(call, "min_access_level")?;
        let all = call.params.flag("all_available")?;
        Ok(match (&call.caller, least) {
            _ if call.params.is_set("owned")? => Self::Level(OWNER),
            (_, Some(least)) => Self::Level(least),
            (Some(user), None) if !all.unwrap_or(user.admin) => {
                Self::Own(memberships(call, user.id)?)
            }
            _ => Self::Seen,
        })
    }

    fn has(&self, call: &Call<'_>, group: &Namespace) -> Result<bool> {
        let level = || Ok::<_, Failure>(call.standing()?.in_namespace(&group.traversal));
        Ok(match self {
            Self::Seen => true,
            Self::Level(least) => level()? >= *least,
            Self::Own(paths) => {
                level()? > 0 || paths.iter().any(|path| path.starts_with(&group.traversal))
            }
        })
    }
}

fn memberships(call: &Call<'_>, user: i64) -> Result<Vec<String>> {
    let sql = "SELECT n.traversal FROM members m LEFT JOIN projects p ON p.id = m.project_id
         JOIN namespaces n ON n.id = coalesce(m.group_id, p.namespace_id)
         WHERE m.user_id = ?1 AND m.state = 'active' AND (m.expires_at IS NULL OR m.expires_at >= ?2)
             AND n.kind = 'group'";
    let mut paths: Vec<String> = call.many(sql, params![user, call.today()])?;
    // The groups of projects that one of the caller's groups was invited to.
    let sql = "SELECT n.traversal, i.traversal FROM shares s JOIN projects p ON p.id = s.project_id
         JOIN namespaces n ON n.id = p.namespace_id JOIN namespaces i ON i.id = s.invited_id
         WHERE n.kind = 'group'";
    for (path, invited) in call.rows::<(String, String)>(sql, [])? {
        if call.standing()?.in_namespace(&invited) > 0 {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// The filters of lists of groups, each from a release on.
struct Filters {
    visibility: Option<String>,
    marked_on: Option<String>,
    active: Option<bool>,
    archived: Option<bool>,
    /// Groups have no repositories here.
    stored: bool,
}

impl Filters {
    fn of(call: &Call<'_>) -> Result<Self> {
        let visibility = match call.is_from(16, 10) {
            true => call.params.one_of("visibility", VISIBILITIES)?,
            false => None,
        };
        let marked_on = call.params.date("marked_for_deletion_on")?.flatten();
        let storage = call.params.text("repository_storage")?.filter(|_| call.is_administrator());
        Ok(Self {
            visibility,
            marked_on: marked_on.filter(|_| call.is_from(17, 1)).map(|day| day.to_string()),
            active: call.params.flag("active")?.filter(|_| call.is_from(18, 0)),
            archived: call.params.flag("archived")?.filter(|_| call.is_from(18, 2)),
            stored: storage.is_some() && call.is_from(16, 3),
        })
    }

    fn match_group(&self, call: &Call<'_>, group: &Namespace) -> Result<bool> {
        let archived = || call.is_group_archived(group);
        let marked = || deletion::is_any_marked(call, ids(&group.traversal));
        Ok(!self.stored
            && self.visibility.as_ref().is_none_or(|wanted| *wanted == group.visibility)
            && (self.marked_on.is_none() || self.marked_on == group.marked_for_deletion_on)
            && self.archived.map_or(Ok(true), |wanted| archived().map(|is| is == wanted))?
            && self.active.map_or(Ok(true), |wanted| {
                Ok::<_, Failure>((!archived()? && !marked()?) == wanted)
            })?)
    }
}

/// Answers a page of the groups that the caller may see and `wanted` accepts. With `by_full_path` a
/// search also looks at the groups above.
fn respond(
    call: &Call<'_>,
    by_full_path: bool,
    reach: Reach,
    wanted: impl Fn(&Namespace) -> bool,
) -> Result<Answer> {
    let search = call.params.text("search")?.unwrap_or_default().to_lowercase();
    let skipped = call.params.integers("skip_groups")?.unwrap_or_default();
    let filters = Filters::of(call)?;
    let column =
        match call.params.one_of("order_by", &["name", "path", "id", "similarity"])?.as_deref() {
            Some("id") => "n.id",
            Some("path") => "n.path COLLATE NOCASE",
            // Among names that contain a text, the shortest is the most similar.
            Some("similarity") if !search.is_empty() => "length(n.name)",
            _ => "n.name COLLATE NOCASE",
        };
    let descends = call.params.one_of("sort", &["asc", "desc"])?.as_deref() == Some("desc");
    let direction = if descends { "DESC" } else { "ASC" };
    let rest = format!("WHERE n.kind = 'group' ORDER BY {column} {direction}, n.id");
    let mut all = Vec::new();
    for group in Namespace::list(call.db, &rest, [])? {
        let path = if by_full_path { &group.full_path } else { &group.path };
        let named = [&group.name, path].iter().any(|text| text.to_lowercase().contains(&search));
        if named
            && !skipped.contains(&group.id)
            && wanted(&group)
            && filters.match_group(call, &group)?
            && reach.has(call, &group)?
            && custom_attributes::wanted(call, Holder::Group(group.id))?
            && call.sees_group(&group)?
        {
            all.push(brief(call, &group)?);
        }
    }
    page::list(call, all)
}

/// The group alone, with its projects if the call asks for them; `preset` is what it means if it does
/// not say.
fn answer(call: &Call<'_>, group: &Namespace, preset: bool) -> Result<Answer> {
    match call.params.flag("with_projects")?.unwrap_or(preset) {
        true => Answer::ok(&with_projects(call, group)?),
        false => Answer::ok(&whole(call, group)?),
    }
}

fn show(call: &Call<'_>) -> Result<Answer> {
    let group = call.group()?;
    answer(call, &group, true)
}

fn create(call: &Call<'_>) -> Result<Answer> {
    let user = call.user()?;
    call.params.require(&["name", "path"])?;
    let name = call.params.text("name")?;
    let path = call.params.text("path")?;
    let above = call.params.integer("parent_id")?;
    group_settings::check_types(call, Accepts::Create)?;
    let visibility = call.params.one_of("visibility", VISIBILITIES)?;
    let parent = above.map(|id| call.visible_group(&id.to_string())).transpose()?;
    let may = group_rules::may_create(call, parent.as_ref())?;
    let minutes = call.params.integer("shared_runners_minutes_limit")?.is_some();
    if !may || (minutes && call.tier() >= Tier::Premium && !call.is_administrator()) {
        return Err(Failure::forbidden());
    }
    let Some(path) = path else { return Err(group_rules::without_path()) };
    let preset = instance::setting(call, "default_group_visibility")?;
    let new = NewGroup {
        name: name.as_ref().unwrap_or(&path),
        path: &path,
        parent: parent.as_ref(),
        visibility: visibility.as_deref().or(preset.as_str()).unwrap_or("private"),
    };
    let group = insert_of_length(call, new, SHORTEST_PATH).map_err(in_one_text)?;
    members::insert(call, &Scope::Group(Box::new(group.clone())), user.id, OWNER, None, None)?;
    group_settings::inherit(call, &group, parent.as_ref())?;
    group_settings::take(call, &group, Accepts::Create).map_err(in_one_text)?;
    Answer::created(&plain(call, &group)?)
}

/// Inserts a group after all checks except those of the caller's rights. Paths in a seed may have
/// one character.
pub(crate) fn insert(call: &Call<'_>, new: NewGroup<'_>) -> Result<Namespace> {
    insert_of_length(call, new, 1)
}

fn insert_of_length(call: &Call<'_>, new: NewGroup<'_>, shortest: usize) -> Result<Namespace> {
    let NewGroup { name, path, visibility, parent, .. } = new;
    group_rules::check(call, Requested { name, path, visibility, parent, own: None, shortest })?;
    let id = Namespace::insert_group(call.db, new, call.now())?;
    Namespace::by_id(call.db, id)?.ok_or_else(|| Failure::not_found("Group"))
}

/// A text that a call changes; null counts as empty.
fn changed(call: &Call<'_>, name: &str, stored: &str) -> Result<String> {
    match call.params.get(name) {
        None => Ok(stored.to_owned()),
        Some(_) => Ok(call.params.text(name)?.unwrap_or_default()),
    }
}

/// Omitted fields stay unchanged; a call without any field is fine too.
fn update(call: &Call<'_>) -> Result<Answer> {
    call.user()?;
    group_settings::check_types(call, Accepts::Edit)?;
    let group = call.group_as(OWNER)?;
    let name = changed(call, "name", &group.name)?;
    let path = changed(call, "path", &group.path)?;
    let visibility =
        call.params.one_of("visibility", VISIBILITIES)?.unwrap_or_else(|| group.visibility.clone());
    let parent = Namespace::by_any(call.db, group.parent_id)?;
    let wanted = Requested {
        name: &name,
        path: &path,
        visibility: &visibility,
        parent: parent.as_ref(),
        own: Some(&group),
        shortest: SHORTEST_PATH,
    };
    group_rules::check(call, wanted)?;
    let sql = "UPDATE namespaces SET name = ?2, path = ?3, visibility = ?4 WHERE id = ?1";
    call.run(sql, params![group.id, name, path, visibility])?;
    let unset = group_settings::unset(call, &group)?;
    group_settings::take(call, &group, Accepts::Edit)?;
    group_moves::rename_below(call, &group)?;
    let group = Namespace::by_id(call.db, group.id)?.ok_or_else(|| Failure::not_found("Group"))?;
    let mut body = with_projects(call, &group)?;
    for name in unset {
        body[name] = Value::Null;
    }
    Answer::ok(&body)
}

/// Archives a group with its contents, or unarchives it.
fn set_archived(call: &Call<'_>, archived: bool) -> Result<Answer> {
    refuse_if(call.release() < OBSERVED, Failure::no_route)?;
    let group = call.group_as(OWNER)?;
    let refused = |text: &str| Err(Failure::invalid_record(text));
    match (archived, OF_GROUPS.is_on(call.db, group.id, ARCHIVED)?) {
        (true, true) => return refused("Group is already archived!"),
        (false, false) => return refused("Group is already unarchived!"),
        (true, false) if call.is_group_archived(&group)? => {
            let text = "Cannot archive group since one of the ancestor groups is already archived!";
            return refused(text);
        }
        (true, false) if deletion::is_any_marked(call, ids(&group.traversal))? => {
            return refused("Cannot archive group since it is scheduled for deletion.");
        }
        _ => OF_GROUPS.put(call.db, group.id, ARCHIVED, archived)?,
    }
    answer(call, &group, false)
}
