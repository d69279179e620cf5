//! Projects as answers: the simple and the full form (reference 1, 2.8).
//!
//! A project's row holds the members that only writes change as JSON text. Here the rest is put in front of it:
//! names and addresses, which depend on the host that the client used, and what depends on the caller.

use rusqlite::params;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::access::{MAINTAINER, REPORTER};
use super::answer::Failure;
use super::call::Call;
use super::routes::custom_attributes::{self, Holder};
use super::settings;
use super::store::namespace::{Brief, Namespace};
use super::store::project::Project;
use super::store::user::User;

/// The part of the simple form that is not prepared.
#[derive(Serialize)]
struct Simple<'a> {
    id: i64,
    name: &'a str,
    name_with_namespace: String,
    path: &'a str,
    path_with_namespace: &'a str,
    created_at: &'a str,
    ssh_url_to_repo: String,
    http_url_to_repo: String,
    web_url: &'a str,
    avatar_url: Option<String>,
    star_count: i64,
    last_activity_at: &'a str,
    namespace: Brief<'a>,
}

/// The part of the full form that is not prepared.
#[derive(Serialize)]
struct Full<'a> {
    creator_id: i64,
    visibility: &'a str,
    archived: bool,
    empty_repo: bool,
    forks_count: i64,
    readme_url: Option<String>,
    container_registry_image_prefix: String,
    import_status: &'a str,
    import_error: Option<&'a str>,
    _links: Links,
    shared_with_groups: Vec<Value>,
    permissions: Permissions,
}

/// What only some projects or callers have.
#[derive(Serialize)]
struct Optional<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    marked_for_deletion_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    marked_for_deletion_on: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runners_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from_project: Option<Value>,
}

/// The addresses of what belongs to a project.
#[derive(Serialize)]
struct Links {
    #[serde(rename = "self")]
    own: String,
    issues: String,
    merge_requests: String,
    repo_branches: String,
    labels: String,
    events: String,
    members: String,
    cluster_agents: String,
}

/// The caller's direct and inherited roles, each null without one.
#[derive(Serialize)]
struct Permissions {
    project_access: Option<Role>,
    group_access: Option<Role>,
}

#[derive(Serialize)]
struct Role {
    access_level: i64,
    notification_level: i64,
}

impl Role {
    /// The notification level is the usual one: nobody can change it here.
    fn new(access_level: i64) -> Self {
        Self { access_level, notification_level: 3 }
    }
}

/// A JSON object that is put together from parts, as text.
struct Object(Vec<u8>);

impl Object {
    /// An object with the members of `part`, and room for about `more` bytes of others.
    fn new(part: &impl Serialize, more: usize) -> Result<Self, Failure> {
        let mut text = Vec::with_capacity(more + 2_048);
        serde_json::to_writer(&mut text, part).map_err(|error| Failure::internal(&error))?;
        Ok(Self(text))
    }

    /// Adds the members of `part`.
    fn add(&mut self, part: &impl Serialize) -> Result<(), Failure> {
        self.0.pop();
        let joint = self.0.len();
        serde_json::to_writer(&mut self.0, part).map_err(|error| Failure::internal(&error))?;
        // The part's own opening brace becomes the comma; an empty part leaves nothing but the closing one.
        if self.0.len() == joint + 2 {
            self.0.remove(joint);
        } else {
            self.0[joint] = b',';
        }
        Ok(())
    }

    /// Adds members that are JSON text already; there is at least one.
    fn add_text(&mut self, members: &str) {
        self.0.pop();
        self.0.push(b',');
        self.0.extend_from_slice(members.as_bytes());
        self.0.push(b'}');
    }

    fn finish(self) -> Result<String, Failure> {
        String::from_utf8(self.0).map_err(|error| Failure::internal(&error))
    }
}

/// The simple form, as JSON text.
pub(crate) fn simple(call: &Call<'_>, project: &Project) -> Result<String, Failure> {
    simple_object(call, project)?.finish()
}

/// The full form, as JSON text. `extra` are members that only some answers have.
pub(crate) fn full(call: &Call<'_>, project: &Project, extra: &Map<String, Value>) -> Result<String, Failure> {
    let web_url = format!("{}/{}", call.base, project.full_path);
    let host = call.base.split("://").nth(1).unwrap_or_default();
    let own = Full {
        creator_id: project.creator_id,
        visibility: &project.visibility,
        archived: project.archived,
        empty_repo: project.empty_repo,
        forks_count: project.forks_count,
        readme_url: (!project.empty_repo).then(|| format!("{web_url}/-/blob/HEAD/README.md")),
        container_registry_image_prefix: format!("{host}/{}", project.full_path.to_lowercase()),
        import_status: project.import_status_at(call.now()),
        import_error: project.import_error.as_deref(),
        _links: links(&call.base, project.id),
        shared_with_groups: if project.shared { shared_with_groups(call, project)? } else { Vec::new() },
        permissions: permissions(call, project)?,
    };
    let mut object = simple_object(call, project)?;
    object.add(&own)?;
    object.add_text(&project.shown);
    object.add(&optional(call, project)?)?;
    object.add(extra)?;
    let answer = object.finish()?;
    if call.service.profile.unlisted_attributes_hidden {
        return settings::without_unlisted(&answer).map_err(|error| Failure::internal(&error));
    }
    Ok(answer)
}

/// What only some projects or callers have.
fn optional<'a>(call: &Call<'_>, project: &'a Project) -> Result<Optional<'a>, Failure> {
    let namespace = &project.namespace;
    let deletion = project.marked_for_deletion_on.as_deref();
    let forked_from_project = match project.forked_from_id {
        Some(upstream) => upstream_of(call, upstream)?,
        None => None,
    };
    Ok(Optional {
        owner: namespace.owner_id.map(|id| owner(call, id, namespace)).transpose()?,
        marked_for_deletion_at: deletion,
        marked_for_deletion_on: deletion,
        runners_token: (call.level_in(project)? >= MAINTAINER).then_some(project.runners_token.as_str()),
        forked_from_project,
    })
}

/// The owner of a personal namespace.
fn owner(call: &Call<'_>, id: i64, namespace: &Namespace) -> Result<Value, Failure> {
    if call.service.profile.owner_in_full {
        return Ok(User::by_id(call.db, id)?.map_or(Value::Null, |user| user.brief(&call.base)));
    }
    Ok(json!({ "id": id, "name": namespace.name, "created_at": namespace.created_at }))
}

/// The upstream of a fork, if the caller may see it.
fn upstream_of(call: &Call<'_>, id: i64) -> Result<Option<Value>, Failure> {
    let upstream = match Project::by_id(call.db, id)? {
        Some(upstream) if call.sees(&upstream)? => upstream,
        _ => return Ok(None),
    };
    let mut brief: Value = serde_json::from_str(&simple(call, &upstream)?).map_err(|error| Failure::internal(&error))?;
    brief["forks_count"] = upstream.forks_count.into();
    Ok(Some(brief))
}

/// The keys of `statistics`; no repository has contents, so all are 0.
const STATISTICS: [&str; 10] = [
    "commit_count",
    "storage_size",
    "repository_size",
    "wiki_size",
    "lfs_objects_size",
    "job_artifacts_size",
    "pipeline_artifacts_size",
    "packages_size",
    "snippets_size",
    "uploads_size",
];

/// Members that a call asks for: `statistics=true`, `license=true` and `with_custom_attributes=true`.
pub(crate) fn requested(call: &Call<'_>, project: &Project) -> Result<Map<String, Value>, Failure> {
    let mut more = Map::new();
    if call.params.is_set("license")? {
        more.insert("license_url".to_owned(), Value::Null);
        more.insert("license".to_owned(), Value::Null);
    }
    if call.params.is_set("statistics")? && call.level_in(project)? >= REPORTER {
        let sizes = STATISTICS.iter().map(|key| ((*key).to_owned(), 0.into()));
        more.insert("statistics".to_owned(), Value::Object(sizes.collect()));
    }
    if call.is_administrator() && call.params.is_set("with_custom_attributes")? {
        more.insert("custom_attributes".to_owned(), custom_attributes::of(call.db, Holder::Project(project.id))?);
    }
    Ok(more)
}

fn simple_object(call: &Call<'_>, project: &Project) -> Result<Object, Failure> {
    let web_url = format!("{}/{}", call.base, project.full_path);
    let host = call.base.split("://").nth(1).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let own = Simple {
        id: project.id,
        name: &project.name,
        name_with_namespace: format!("{} / {}", project.namespace.full_name, project.name),
        path: &project.path,
        path_with_namespace: &project.full_path,
        created_at: &project.created_at,
        ssh_url_to_repo: format!("git@{name}:{}.git", project.full_path),
        http_url_to_repo: format!("{web_url}.git"),
        avatar_url: avatar_url(call, project),
        web_url: &web_url,
        star_count: project.star_count,
        last_activity_at: &project.last_activity_at,
        namespace: project.namespace.brief(&call.base),
    };
    let mut object = Object::new(&own, project.brief.len() + project.shown.len())?;
    object.add_text(&project.brief);
    Ok(object)
}

/// Where the avatar would be downloaded.
pub(crate) fn avatar_url(call: &Call<'_>, project: &Project) -> Option<String> {
    let name = project.avatar.as_ref()?;
    Some(format!("{}/uploads/-/system/project/avatar/{}/{name}", call.base, project.id))
}

fn links(base: &str, id: i64) -> Links {
    let own = format!("{base}/api/v4/projects/{id}");
    Links {
        issues: format!("{own}/issues"),
        merge_requests: format!("{own}/merge_requests"),
        repo_branches: format!("{own}/repository/branches"),
        labels: format!("{own}/labels"),
        events: format!("{own}/events"),
        members: format!("{own}/members"),
        cluster_agents: format!("{own}/cluster_agents"),
        own,
    }
}

fn shared_with_groups(call: &Call<'_>, project: &Project) -> Result<Vec<Value>, Failure> {
    let mut statement = call.db.prepare_cached(
        "SELECT n.id, n.name, n.full_path, s.access_level, s.expires_at
         FROM shares s JOIN namespaces n ON n.id = s.invited_id WHERE s.project_id = ?1 ORDER BY s.id",
    )?;
    let rows = statement.query_map([project.id], |row| {
        Ok(json!({
            "group_id": row.get::<_, i64>(0)?,
            "group_name": row.get::<_, String>(1)?,
            "group_full_path": row.get::<_, String>(2)?,
            "group_access_level": row.get::<_, i64>(3)?,
            "expires_at": row.get::<_, Option<String>>(4)?,
        }))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn permissions(call: &Call<'_>, project: &Project) -> Result<Permissions, Failure> {
    let Some(user) = &call.caller else {
        return Ok(Permissions { project_access: None, group_access: None });
    };
    let direct = call.direct_level(user, project.id)?;
    let inherited = call.standing()?.in_namespace(&project.namespace.traversal);
    Ok(Permissions { project_access: direct.map(Role::new), group_access: (inherited > 0).then(|| Role::new(inherited)) })
}

/// The projects that somebody is a member of, for the `WHERE` of a list over projects `p`. `:user`, `:namespaces`
/// (a JSON array of those with the role), `:least`, `:today`, and `:everybody` (whether what all users may see is
/// to be found as well) are bound by the list.
pub(crate) const MEMBER_OF: &str = "((:everybody AND p.visibility <> 'private')
    OR p.namespace_id IN (SELECT id FROM namespaces WHERE owner_id = :user)
    OR p.namespace_id IN (SELECT value FROM json_each(:namespaces))
    OR p.id IN (SELECT m.project_id FROM members m WHERE m.user_id = :user AND m.project_id IS NOT NULL
                AND m.access_level >= :least AND m.state = 'active' AND (m.expires_at IS NULL OR m.expires_at > :today))
    OR p.id IN (SELECT s.project_id FROM shares s WHERE s.project_id IS NOT NULL AND s.access_level >= :least
                AND s.invited_id IN (SELECT value FROM json_each(:namespaces))
                AND (s.expires_at IS NULL OR s.expires_at > :today)))";

/// Marks that something happened in a project.
pub(crate) fn touch(call: &Call<'_>, project: i64) -> Result<(), Failure> {
    call.db.prepare_cached("UPDATE projects SET updated_at = ?2 WHERE id = ?1")?.execute(params![project, call.now()])?;
    Ok(())
}
