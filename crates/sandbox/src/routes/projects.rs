//! Single projects: read, create, edit, archive, delete (reference 2, 4.2 to 4.4).

use super::approvals::BEFORE_MERGE;
use super::group_rules::{self, rank};
use super::members;
use super::prelude::*;
use super::project_rules::{self, Requested};
use super::remote_mirrors::masked;
use super::{
    actions, approval_rules, avatars, bots, group_settings, instance, integrations,
    protected_branches, pull_mirror, push_rules, repository, users,
};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}", show),
    get("/projects/{id}/languages", languages),
    get("/projects/{id}/groups", groups),
    get("/projects/{id}/statistics", statistics),
    post("/projects", create),
    post("/projects/user/{user_id}", create_for_user),
    put("/projects/{id}", update),
    post("/projects/{id}/archive", |call| set_archived(call, true)),
    post("/projects/{id}/unarchive", |call| set_archived(call, false)),
    put("/projects/{id}/transfer", transfer),
];

const TEMPLATES: [&str; 8] =
    ["rails", "spring", "express", "iosswift", "dotnetcore", "android", "gomicro", "hugo"];

/// Anonymous callers get the simple form; in the reference it is only in lists (1, 2.8).
fn show(call: &Call<'_>) -> Result<Answer> {
    let project = call.project()?;
    let shown = match call.caller {
        None if call.release() >= OBSERVED => view::simple(call, &project, Extras::default())?,
        _ => view::full(call, &project, Extras::of(call)?.with_import())?,
    };
    Ok(Answer::json(StatusCode::OK, shown.text()))
}

/// The project as it is now, in the full form.
pub(crate) fn answer(call: &Call<'_>, status: StatusCode, id: i64) -> Result<Answer> {
    present(call, status, id, Extras::default())
}

/// The same after a create or an edit.
pub(crate) fn saved(call: &Call<'_>, status: StatusCode, id: i64) -> Result<Answer> {
    present(call, status, id, Extras::default().with_import())
}

fn present(call: &Call<'_>, status: StatusCode, id: i64, wanted: Extras) -> Result<Answer> {
    let project = Project::by_id(call.db, id)?.ok_or_else(|| Failure::not_found("Project"))?;
    Ok(Answer::json(status, view::full(call, &project, wanted)?.text()))
}

fn languages(call: &Call<'_>) -> Result<Answer> {
    call.project()?;
    Answer::ok(&json!({}))
}

/// How often the repository was fetched in the last 30 days: never.
fn statistics(call: &Call<'_>) -> Result<Answer> {
    call.project_as(DEVELOPER)?;
    Answer::ok(&json!({ "fetches": { "total": 0, "days": [] } }))
}

/// The groups above a project; with `with_shared` also those invited to it.
fn groups(call: &Call<'_>) -> Result<Answer> {
    let project = call.project()?;
    let search = call.params.text("search")?.unwrap_or_default().to_lowercase();
    let skipped = call.params.integers("skip_groups")?.unwrap_or_default();
    let mut found: Vec<i64> = ids(&project.namespace.traversal).collect();
    let least = members::level(call, "shared_min_access_level")?.unwrap_or(0);
    if call.params.is_set("with_shared")? {
        let sql = "SELECT invited_id FROM shares WHERE project_id = ?1 AND access_level >= ?2";
        found.extend(call.many::<i64>(sql, [project.id, least])?);
    }
    let visible_only = call.params.is_set("shared_visible_only")?;
    let mut all = Vec::new();
    for id in found.into_iter().filter(|id| !skipped.contains(id)) {
        if let Some(group) = Namespace::by_id(call.db, id)?
            && group.is_group()
            && (!visible_only || call.sees_group(&group)?)
            && group.full_name.to_lowercase().contains(&search)
        {
            all.push(actions::location(call, &group));
        }
    }
    page::list(call, all)
}

fn create(call: &Call<'_>) -> Result<Answer> {
    let user = call.user()?;
    call.params.require_any(&["name", "path"])?;
    let namespace = match call.params.integer("namespace_id")? {
        None => Namespace::of_user(call.db, user.id)?,
        Some(id) => Namespace::by_id(call.db, id)?,
    };
    let namespace = match namespace {
        Some(namespace) if may_create_in(call, &namespace)? => namespace,
        None if call.release() >= OBSERVED => {
            return Err(Failure::model("base", "undefined method `organization_id' for nil"));
        }
        _ => return Err(Failure::model("namespace", "is not valid")),
    };
    let id = insert(call, Accepts::Create, user, &namespace, &call.params)?;
    saved(call, StatusCode::CREATED, id)
}

fn may_create_in(call: &Call<'_>, namespace: &Namespace) -> Result<bool> {
    match namespace.is_group() {
        true => group_settings::may_create_projects(call, namespace),
        false => Ok(call.level_in_group(namespace)? >= OWNER),
    }
}

fn create_for_user(call: &Call<'_>) -> Result<Answer> {
    call.administrator()?;
    let owner = User::by_id(call.db, call.segment_id("user_id")?)?
        .ok_or_else(|| Failure::not_found("User"))?;
    call.params.require(&["name"])?;
    let namespace = match call.params.integer("namespace_id")? {
        None => Namespace::of_user(call.db, owner.id)?,
        Some(id) => Namespace::by_id(call.db, id)?,
    };
    let namespace = namespace.ok_or_else(|| Failure::model("namespace", "is not valid"))?;
    let id = insert(call, Accepts::CreateForUser, &owner, &namespace, &call.params)?;
    saved(call, StatusCode::CREATED, id)
}

/// Creates a project from parameters, after all checks except those of the caller's rights. It is
/// long because the steps need one another's results, in the order of the service's refusals.
pub(crate) fn insert(
    call: &Call<'_>,
    accepts: Accepts,
    creator: &User,
    namespace: &Namespace,
    params: &Params,
) -> Result<i64> {
    let within_limit = namespace.is_group() || users::may_create_project(call, creator)?;
    refuse_if(!within_limit, Failure::forbidden)?;
    let (name, path) = name_and_path(call, params, namespace)?;
    let visibility = match params.one_of("visibility", VISIBILITIES)? {
        Some(wanted) => {
            check_restriction(call, &wanted)?;
            wanted
        }
        None => match instance::setting(call, "default_project_visibility")? {
            Value::String(preset) => preset,
            _ => "private".to_owned(),
        },
    };
    // The visibility is limited to that of the group.
    let visibility = match check_visibility(namespace, &visibility) {
        Ok(()) => visibility,
        Err(_) => namespace.visibility.clone(),
    };
    let readme = params.is_set("initialize_with_readme")?;
    let sent_url = params.text("import_url")?;
    let import_url = sent_url.as_ref().filter(|url| !url.is_empty());
    let template = template(call, accepts, params)?;
    if readme && (import_url.is_some() || template.is_some()) {
        return Err(Failure::model("base", "not a git repository"));
    }
    check_import_url(import_url.map(String::as_str))?;
    let copies = match (import_url, &template) {
        (Some(url), _) => imported(call, url)?,
        (None, Some(Template::Project(project))) => Some(project.as_ref().clone()),
        (None, _) => None,
    };
    let copies = copies.filter(|source| !source.empty_repo);
    let mut attributes = settings::presets(call.time);
    let rights = call.rights(call.level_in_group(namespace)?, false, &visibility);
    settings::apply(accepts, params, rights, &mut attributes)?;
    share_topics(call, &mut attributes)?;
    if let Some(url) = &sent_url {
        attributes.insert("import_url".to_owned(), masked(url).into());
    }
    pull_mirror::settle(call, params, &mut attributes)?;
    for name in group_settings::INHERITED.into_iter().filter(|name| !params.has(name)) {
        attributes.remove(name);
    }
    let (has_runners, may_have) = group_settings::runners_of_projects(call, namespace)?;
    if !params.has(RUNNERS) {
        attributes.insert(RUNNERS.to_owned(), has_runners.into());
    }
    check_runners(&attributes, may_have)?;
    let fails = call.service.profile.import_failure.as_deref();
    let has_contents =
        import_url.as_ref().map_or(readme || template.is_some(), |_| fails.is_none());
    let empty_repo = !has_contents;
    let branch = match (empty_repo, &copies) {
        (true, _) => group_settings::preferred_branch(call, namespace)?,
        (false, Some(source)) => repository::default_branch(call, source)?.into(),
        (false, None) => attributes
            .get("default_branch")
            .filter(|name| readme && !name.is_null())
            .cloned()
            .map_or_else(|| group_settings::preferred_branch(call, namespace), Ok)?,
    };
    attributes.insert("default_branch".to_owned(), branch);
    let new = NewProject {
        namespace,
        name: &name,
        path: &path,
        visibility: &visibility,
        empty_repo,
        readme,
        copies: copies.map(|source| source.id),
        creator_id: creator.id,
        forked_from_id: None,
        import: match &import_url {
            Some(_) => Import::Until { source: None, done_at: &call.import_done_at(), fails },
            None => Import::None,
        },
        attributes: &attributes,
    };
    let id = store(call, new)?;
    approval_rules::require(call, id, Some(&0.into()), attributes.get(BEFORE_MERGE))?;
    take_avatar(call, id, params)?;
    Ok(id)
}

/// Topics belong to the whole service: an existing topic keeps its spelling.
fn share_topics(call: &Call<'_>, attributes: &mut Map<String, Value>) -> Result<()> {
    let Some(Value::Array(topics)) = attributes.get_mut("topics") else {
        return Ok(());
    };
    let mut names = Vec::with_capacity(topics.len());
    for topic in topics.iter().filter_map(Value::as_str) {
        let name: String = call.one(
            "INSERT INTO topics (name) VALUES (?1)
                 ON CONFLICT (name) DO UPDATE SET name = name RETURNING name",
            [topic],
        )?;
        names.push(name);
    }
    names.sort_unstable();
    names.dedup();
    *topics = names.into_iter().map(Value::from).collect();
    Ok(())
}

const RUNNERS: &str = "shared_runners_enabled";

fn check_runners(attributes: &Map<String, Value>, may_have: bool) -> Result<()> {
    let wanted = attributes.get(RUNNERS) == Some(&Value::Bool(true));
    let refusal = || Failure::model(RUNNERS, group_settings::RUNNERS_FORBIDDEN);
    refuse_if(wanted && !may_have, refusal)
}

/// The form of a project where the service only names it.
pub(super) fn identity(call: &Call<'_>, project: &Project) -> Result<Value> {
    Ok(json!({
        "id": project.id,
        "description": project.attributes(call.db)?.get("description"),
        "name": project.name,
        "name_with_namespace": format!("{} / {}", project.namespace.full_name, project.name),
        "path": project.path,
        "path_with_namespace": project.full_path,
        "created_at": project.created_at,
    }))
}

/// The template of a new project.
enum Template {
    /// One of the service's own templates, whose contents are one commit here.
    Named,
    /// The contents of this project.
    Project(Box<Project>),
}

/// The template for a new project, which must exist. Names of custom templates never do, because
/// groups have none here.
fn template(call: &Call<'_>, accepts: Accepts, params: &Params) -> Result<Option<Template>> {
    let unknown = |template: &str| {
        Failure::model("template_name", format!("'{template}' is unknown or invalid"))
    };
    let custom = params.is_set("use_custom_template")? && call.tier() >= Tier::Premium;
    params.integer("group_with_project_templates_id")?;
    // It wins over the name.
    if let Some(id) =
        params.integer("template_project_id")?.filter(|_| custom && accepts == Accepts::Create)
    {
        return match Project::by_id(call.db, id)? {
            Some(project) if call.sees(&project)? => Ok(Some(Template::Project(Box::new(project)))),
            _ => Err(unknown(&id.to_string())),
        };
    }
    match params.text("template_name")?.filter(|name| !name.is_empty()) {
        Some(name) if !custom && !TEMPLATES.contains(&name.as_str()) => Err(unknown(&name)),
        None if custom => Err(Failure::model(
            "use_custom_template",
            "must be used with template_name or template_project_id",
        )),
        name => Ok(name.map(|_| Template::Named)),
    }
}

/// The project of this sandbox that an import URL names, if everybody may clone it. Nothing is
/// fetched from elsewhere.
fn imported(call: &Call<'_>, url: &str) -> Result<Option<Project>> {
    let path = url.strip_prefix(&call.base).and_then(|path| path.strip_prefix('/'));
    let Some(path) = path.map(|path| path.strip_suffix(".git").unwrap_or(path)) else {
        return Ok(None);
    };
    let project = Project::by_path(call.db, path)?;
    Ok(project.filter(|project| project.visibility == "public"))
}

/// Inserts the project with its first members, and protects its default branch if it has one.
pub(crate) fn store(call: &Call<'_>, new: NewProject<'_>) -> Result<i64> {
    let id = Project::insert(call.db, new, &call.random_hex(), call.now())?;
    let project = Project::by_id(call.db, id)?.ok_or_else(|| Failure::not_found("Project"))?;
    if !new.empty_repo {
        repository::begin(call, &project, new.copies, new.readme)?;
    }
    let scope = Scope::Project(Box::new(project));
    if let Some(owner) = new.namespace.owner_id {
        members::insert(call, &scope, owner, OWNER, None, call.caller.as_ref())?;
    }
    push_rules::inherit(call, id, new.namespace)?;
    integrations::inherit(call, id, new.namespace)?;
    if call.service.profile.bots_among_members {
        bots::insert(call, &scope, "access token", MAINTAINER)?;
    }
    if !new.empty_repo {
        let due_at = match new.import {
            Import::None => call.protection_due_at(),
            Import::Until { done_at, .. } => Some(done_at.to_owned()),
        };
        protected_branches::protect_default(call, id, due_at.as_deref())?;
    }
    Ok(id)
}

/// Name and path; each is the default of the other.
fn name_and_path(
    call: &Call<'_>,
    params: &Params,
    namespace: &Namespace,
) -> Result<(String, String)> {
    let given = |name| Ok::<_, Failure>(params.text(name)?.unwrap_or_default());
    let (name, path) = (given("name")?.trim_start().to_owned(), given("path")?);
    let (name, path) = match (name.is_empty(), path.is_empty()) {
        (false, true) => {
            let path = project_rules::path_from(&name);
            (name, path)
        }
        (true, false) => (path.clone(), path),
        _ => (name, path),
    };
    let wanted = Requested {
        unnamed: path.is_empty() && !params.has("path"),
        blank_name: params.text("name")?.is_some(),
        ..Requested::new(namespace, &name, &path)
    };
    project_rules::check(call, wanted)?;
    Ok((name, path))
}

/// Whether the name and the path are taken.
pub(crate) fn taken(
    call: &Call<'_>,
    namespace: &Namespace,
    name: &str,
    path: &str,
    except: Option<i64>,
) -> Result<(bool, bool)> {
    let full_path = format!("{}/{path}", namespace.full_path);
    let sql = "SELECT EXISTS (SELECT 1 FROM projects WHERE namespace_id = ?1 AND name = ?2 AND id IS NOT ?3)";
    let name_taken = call.one(sql, params![namespace.id, name, except])?;
    let sql = "SELECT EXISTS (SELECT 1 FROM projects WHERE full_path = ?1 AND id IS NOT ?2)
                   OR EXISTS (SELECT 1 FROM namespaces WHERE full_path = ?1)";
    Ok((name_taken, call.one(sql, params![full_path, except])?))
}

/// Refuses a visibility that only administrators may use.
pub(super) fn check_restriction(call: &Call<'_>, visibility: &str) -> Result<()> {
    let refusal = || Failure::model("visibility_level", group_rules::restricted(visibility));
    refuse_if(instance::is_restricted(call, visibility)?, refusal)
}

/// Refuses a visibility above the group's.
pub(crate) fn check_visibility(namespace: &Namespace, visibility: &str) -> Result<()> {
    if namespace.is_group() && rank(visibility) > rank(&namespace.visibility) {
        let text = format!("{visibility} is not allowed in a {} group.", namespace.visibility);
        return Err(Failure::model("visibility_level", text));
    }
    Ok(())
}

/// The URL is only checked: nothing is fetched.
fn check_import_url(url: Option<&str>) -> Result<()> {
    let known =
        |url: &str| ["http://", "https://", "git://"].iter().any(|scheme| url.starts_with(scheme));
    match url {
        Some(url) if !known(url) => Err(Failure::invalid_record(
            "Unable to access repository with the URL and credentials provided",
        )),
        _ => Ok(()),
    }
}

fn take_avatar(call: &Call<'_>, project: i64, params: &Params) -> Result<()> {
    if let Some(name) = avatars::take(call, Holder::Project(project), params)? {
        call.set("projects", project, "avatar", name)?;
    }
    Ok(())
}

/// The upload of an avatar also answers with the whole project, because clients use it; the
/// reference only names `avatar_url` (2, 4.3).
fn update(call: &Call<'_>) -> Result<Answer> {
    call.user()?;
    settings::check_edit(&call.params, call.edition())?;
    pull_mirror::check_exclusive(&call.params)?;
    let project = call.writable_project_as(MAINTAINER)?;
    edit(call, &project, &call.params)?;
    saved(call, StatusCode::OK, project.id)
}

/// Stores the changes in the parameters. It is long because the first refusal must be the service's,
/// so checks and changes alternate.
pub(crate) fn edit(call: &Call<'_>, project: &Project, params: &Params) -> Result<()> {
    let given = |name: &str, own: &str| match params.has(name) {
        true => Ok::<_, Failure>(params.text(name)?.unwrap_or_default()),
        false => Ok(own.to_owned()),
    };
    let (name, path) = (given("name", &project.name)?, given("path", &project.path)?);
    let name = name.trim_start();
    if (name, &path) != (&project.name, &project.path) {
        let wanted = Requested::new(&project.namespace, name, &path);
        project_rules::check(
            call,
            Requested { own: Some(project.id), blank_name: true, ..wanted },
        )?;
    }
    let visibility = match params.get("visibility") {
        Some(Value::Null) => "private".to_owned(),
        _ => {
            params.one_of("visibility", VISIBILITIES)?.unwrap_or_else(|| project.visibility.clone())
        }
    };
    refuse_if(params.has("visibility") && call.level_in(project)? < OWNER, Failure::forbidden)?;
    if visibility != project.visibility {
        check_restriction(call, &visibility)?;
        check_visibility(&project.namespace, &visibility)?;
    }
    check_import_url(params.text("import_url")?.as_deref().filter(|url| !url.is_empty()))?;
    let full_path = format!("{}/{path}", project.namespace.full_path);
    let sql =
        "UPDATE projects SET name = ?2, path = ?3, full_path = ?4, visibility = ?5 WHERE id = ?1";
    call.run(sql, params![project.id, name, path, full_path, visibility])?;
    let mut attributes = project.attributes(call.db)?;
    let is_fork = project.forked_from_id.is_some();
    let rights = call.rights(call.level_in(project)?, is_fork, &visibility);
    let former = attributes.get("default_branch").cloned().unwrap_or_default();
    let had_runners = attributes.get(RUNNERS).cloned();
    let approvals = attributes.get(BEFORE_MERGE).cloned();
    settings::apply(Accepts::Edit, params, rights, &mut attributes)?;
    share_topics(call, &mut attributes)?;
    if params.has("import_url") {
        let url = params.text("import_url")?.filter(|url| !url.is_empty());
        attributes.insert("import_url".to_owned(), url.as_deref().map(masked).into());
    }
    if params.has("mirror") {
        pull_mirror::check_address(&attributes)?;
    }
    pull_mirror::settle(call, params, &mut attributes)?;
    for name in group_settings::INHERITED {
        if params.has(name) && params.flag(name)?.is_none() {
            attributes.remove(name);
        }
    }
    if attributes.get(RUNNERS) != had_runners.as_ref() {
        let (_, may_have) = group_settings::runners_of_projects(call, &project.namespace)?;
        check_runners(&attributes, may_have)?;
    }
    if let (Some(former), Some(wanted)) = (former.as_str(), attributes["default_branch"].as_str()) {
        repository::change_head(call, project, former, wanted)?;
    }
    project.save_attributes(call.db, &attributes, call.now())?;
    approval_rules::require(call, project.id, approvals.as_ref(), attributes.get(BEFORE_MERGE))?;
    take_avatar(call, project.id, params)?;
    Ok(())
}

/// Idempotent (reference 2, 4.4), unless a dialect says otherwise.
fn set_archived(call: &Call<'_>, archived: bool) -> Result<Answer> {
    let project = call.project_as(OWNER)?;
    let refused = |text: &str| Err(Failure::refused(text));
    if archived && project.archived && call.service.profile.archive_twice_refused {
        return refused("Project is already archived.");
    }
    if archived && project.marked_for_deletion_on.is_some() {
        return refused("Cannot archive project since it is scheduled for deletion.");
    }
    call.set("projects", project.id, "archived", archived)?;
    view::touch(call, project.id)?;
    answer(call, StatusCode::CREATED, project.id)
}

/// The reference only mentions transfer as missing (2, 4.7); this is the real service's behaviour.
fn transfer(call: &Call<'_>) -> Result<Answer> {
    let project = call.writable_project_as(OWNER)?;
    call.params.require(&["namespace"])?;
    let wanted = call.params.text("namespace")?.unwrap_or_default();
    let namespace = match Namespace::by_reference(call.db, &wanted)? {
        Some(namespace) if call.level_in_group(&namespace)? >= MAINTAINER => namespace,
        _ => return Err(Failure::not_found("Namespace")),
    };
    move_to(call, &project, &namespace)?;
    answer(call, StatusCode::OK, project.id)
}

/// Moves a project to another namespace. The caller's rights in both were checked.
pub(crate) fn move_to(call: &Call<'_>, project: &Project, namespace: &Namespace) -> Result<()> {
    let (name_taken, path_taken) = taken(call, namespace, &project.name, &project.path, None)?;
    if namespace.id == project.namespace.id || name_taken || path_taken {
        return Err(Failure::bad_request("the project cannot be transferred to this namespace"));
    }
    check_visibility(namespace, &project.visibility)?;
    let full_path = format!("{}/{}", namespace.full_path, project.path);
    call.set("projects", project.id, "namespace_id", namespace.id)?;
    call.set("projects", project.id, "full_path", full_path)?;
    view::touch(call, project.id)
}
