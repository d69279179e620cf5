//! Single projects: read, create, edit, archive, delete (reference 2, 4.2 to 4.4).

use super::super::settings::ProjectEdit;
use super::approvals::APPROVALS_BEFORE_MERGE;
use super::group_runners::{self, PROJECT_RUNNERS_ENABLED as RUNNERS};
use super::prelude::*;
use super::project_contents::{self, InitialContents};
use super::remote_mirrors::mask_credentials;
use super::{integrations, pull_mirror, push_rules};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}", show),
    get("/projects/{id}/languages", |call| call.project().and(Answer::ok(&json!({})))),
    get("/projects/{id}/groups", list_groups),
    // In the sandbox, a repository was never fetched in the last 30 days.
    get("/projects/{id}/statistics", |call| {
        call.require_project(DEVELOPER)?;
        Answer::ok(&json!({ "fetches": { "total": 0, "days": [] } }))
    }),
    post("/projects", create),
    post("/projects/user/{user_id}", create_for_user),
    put("/projects/{id}", update),
    post("/projects/{id}/archive", |call| set_archived(call, true)),
    post("/projects/{id}/unarchive", |call| set_archived(call, false)),
    put("/projects/{id}/transfer", transfer),
];

/// Shows a project. From 18.9 on, anonymous callers get the simple form. The reference has the
/// simple form only in lists (1, 2.8).
fn show(call: &Call<'_>) -> Result<Answer> {
    let project = call.project()?;
    let body = match call.caller {
        None if call.is_observed_release_or_later() => {
            project.simple_form(call, ExtraFields::default())?
        }
        _ => project
            .full_form(call, ExtraFields { import_error: true, ..ExtraFields::from_call(call)? })?,
    };
    Ok(Answer::with_json_text(StatusCode::OK, body.into_text()))
}

/// Answers with the full form of a project, which is read again from the store.
pub(crate) fn project_answer(
    call: &Call<'_>,
    status: StatusCode,
    id: i64,
    extras: ExtraFields,
) -> Result<Answer> {
    let project = Project::find_by_id(call.db, id)?.or_not_found("Project")?;
    Ok(Answer::with_json_text(status, project.full_form(call, extras)?.into_text()))
}

/// The groups above a project; with `with_shared` also the groups invited to the project.
fn list_groups(call: &Call<'_>) -> Result<Answer> {
    let project = call.project()?;
    let search = call.text("search")?.unwrap_or_default().to_lowercase();
    let skipped_ids = call.integers("skip_groups")?.unwrap_or_default();
    let mut group_ids: Vec<i64> = traversal_ids(&project.namespace.traversal).collect();
    let min_level = terms::read_level(call, "shared_min_access_level")?.unwrap_or(0);
    if call.is_true("with_shared")? {
        let sql = "SELECT invited_id FROM shares WHERE project_id = ?1 AND access_level >= ?2";
        group_ids.extend(call.query_column::<i64>(sql, [project.id, min_level])?);
    }
    let only_visible = call.is_true("shared_visible_only")?;
    group_ids.retain(|id| !skipped_ids.contains(id));
    let clauses = "JOIN json_each(?1) found ON found.value = n.id WHERE n.kind = 'group'
                ORDER BY found.key";
    let mut groups = Vec::new();
    for group in Namespace::list(call.db, clauses, [Value::from(group_ids).to_string()])? {
        let matches_search = group.full_name.to_lowercase().contains(&search);
        if matches_search && (!only_visible || call.may_see_group(&group)?) {
            groups.push(actions::location_json(call, &group));
        }
    }
    page::list_page(call, groups)
}

fn create(call: &Call<'_>) -> Result<Answer> {
    let user = call.require_user()?;
    call.require_any(&["name", "path"])?;
    let namespace = match requested_namespace(call, user.id)? {
        Some(namespace) if group_settings::may_create_projects(call, &namespace)? => namespace,
        None if call.is_observed_release_or_later() => {
            return Err(ErrorResponse::field_error(
                "base",
                "undefined method `organization_id' for nil",
            ));
        }
        _ => return Err(ErrorResponse::field_error("namespace", "is not valid")),
    };
    let id = create_project(call, WriteRoute::Create, user, &namespace, &call.params)?;
    project_answer(call, StatusCode::CREATED, id, ExtraFields::for_saved_project())
}

fn create_for_user(call: &Call<'_>) -> Result<Answer> {
    call.require_administrator()?;
    let owner = User::find_by_id(call.db, call.segment_id("user_id")?)?.or_not_found("User")?;
    call.require(&["name"])?;
    let namespace = requested_namespace(call, owner.id)?;
    let namespace =
        namespace.ok_or_else(|| ErrorResponse::field_error("namespace", "is not valid"))?;
    let id = create_project(call, WriteRoute::CreateForUser, &owner, &namespace, &call.params)?;
    project_answer(call, StatusCode::CREATED, id, ExtraFields::for_saved_project())
}

/// The namespace with the requested id; without an id, the personal namespace of the owner.
fn requested_namespace(call: &Call<'_>, owner_id: i64) -> Result<Option<Namespace>> {
    Ok(match call.integer("namespace_id")? {
        None => Namespace::find_personal(call.db, owner_id)?,
        Some(id) => Namespace::find_by_id(call.db, id)?,
    })
}

/// Creates a project from parameters, after all checks except the checks of the caller's rights.
pub(crate) fn create_project(
    call: &Call<'_>,
    route: WriteRoute,
    creator: &User,
    namespace: &Namespace,
    params: &Params,
) -> Result<i64> {
    let is_within_limit = namespace.is_group() || users::may_create_project(call, creator)?;
    refuse_if(!is_within_limit, ErrorResponse::forbidden)?;
    let (name, path) = project_rules::read_name_and_path(call, params, namespace)?;
    let visibility = match params.allowed_text("visibility", VISIBILITIES)? {
        Some(requested_visibility) => {
            project_rules::check_restriction(call, &requested_visibility)?;
            requested_visibility
        }
        None => match instance::read_setting(call, "default_project_visibility")? {
            Value::String(preset) => preset,
            _ => "private".to_owned(),
        },
    };
    let visibility = project_rules::stricter_visibility(&visibility, namespace);
    let contents = InitialContents::from_call(call, route, params)?;
    let mut attributes = settings::new_project_attributes(call.time);
    let level = call.caller_level_in_group(namespace)?;
    let edit = ProjectEdit { call, route, params, caller_level: level, is_fork: false, visibility };
    apply_edit(edit, namespace, &mut attributes)?;
    let branch = attributes
        .get(DEFAULT_BRANCH)
        .filter(|name| contents.has_readme && !name.is_null())
        .cloned();
    let branch = match (&contents.source_project, branch) {
        (Some(source), _) => Repository { call, project: source }.default_branch()?.into(),
        (None, Some(name)) => name,
        (None, None) => default_branches::preferred_branch_name(call, namespace)?,
    };
    attributes.insert(DEFAULT_BRANCH.to_owned(), branch);
    let import_error = call.profile().import_failure.as_deref();
    let new_project = NewProject {
        namespace,
        name: &name,
        path: &path,
        visibility,
        empty_repo: contents.is_empty,
        has_readme: contents.has_readme,
        source_project_id: contents.source_project.map(|source| source.id),
        creator_id: creator.id,
        forked_from_id: None,
        import: contents.is_imported.then_some(Import { source: None, error: import_error }),
        attributes: &attributes,
    };
    let id = insert_with_members(call, new_project)?;
    let approval_counts = [Some(&0.into()), attributes.get(APPROVALS_BEFORE_MERGE)];
    approval_rules::require_approvals(call, id, approval_counts)?;
    avatars::store_avatar(call, Holder::Project(id), params)?;
    Ok(id)
}

/// Applies parameters to the attributes of a new or stored project. Also applies the rules that
/// connect attributes with each other and with the group.
fn apply_edit(edit: ProjectEdit<'_>, namespace: &Namespace, attributes: &mut Object) -> Result<()> {
    let ProjectEdit { call, route, params, .. } = edit;
    let is_new = route != WriteRoute::Edit;
    let former_runners = attributes.get(RUNNERS).cloned();
    edit.apply(attributes)?;
    unify_topics(call, attributes)?;
    if params.has("import_url") {
        let url = params.text("import_url")?.filter(|url| is_new || !url.is_empty());
        attributes.insert("import_url".to_owned(), url.as_deref().map(mask_credentials).into());
    }
    if params.has("mirror") && !is_new {
        pull_mirror::check_mirror_url(attributes)?;
    }
    pull_mirror::apply_side_effects(call, params, attributes)?;
    for name in group_settings::INHERITED_ATTRIBUTES {
        let is_unset = if is_new {
            !params.has(name)
        } else {
            params.has(name) && params.flag(name)?.is_none()
        };
        if is_unset {
            attributes.remove(name);
        }
    }
    if is_new || attributes.get(RUNNERS) != former_runners.as_ref() {
        let follows_group = is_new && !params.has(RUNNERS);
        group_runners::apply_to_project(call, namespace, follows_group, attributes)?;
    }
    Ok(())
}

/// Gives topics their stored spelling. Topics belong to the whole service, and an existing topic
/// keeps its spelling.
fn unify_topics(call: &Call<'_>, attributes: &mut Object) -> Result<()> {
    let Some(Value::Array(topics)) = attributes.get_mut("topics") else { return Ok(()) };
    let sql = "INSERT INTO topics (name) VALUES (?1)
               ON CONFLICT (name) DO UPDATE SET name = name RETURNING name";
    let stored_names =
        topics.iter().filter_map(Value::as_str).map(|topic| call.query_value(sql, [topic]));
    let names = stored_names.collect::<Result<BTreeSet<String>>>()?;
    *topics = names.into_iter().map(Value::from).collect();
    Ok(())
}

/// The short form of a project, in responses for other objects.
pub(super) fn short_json(call: &Call<'_>, project: &Project) -> Result<Value> {
    let names = "id description name name_with_namespace path path_with_namespace created_at";
    let mut body = project.json_columns(names);
    body["description"] = json!(project.attributes(call.db)?.get("description"));
    body["name_with_namespace"] = project.full_name().into();
    body["path_with_namespace"] = project.column("full_path");
    Ok(body)
}

/// Inserts the project with its first members. If the project is not empty, also protects its
/// default branch.
pub(crate) fn insert_with_members(call: &Call<'_>, new_project: NewProject<'_>) -> Result<i64> {
    let id = Project::insert(call, new_project)?;
    let project = Project::find_by_id(call.db, id)?.or_not_found("Project")?;
    if !new_project.empty_repo {
        Repository { call, project: &project }
            .create_contents(new_project.source_project_id, new_project.has_readme)?;
    }
    let scope = GroupOrProject::from(project);
    if let Some(owner_id) = new_project.namespace.owner_id {
        MembershipTerms::granted_by_caller(call, OWNER).insert(call, &scope, owner_id)?;
    }
    push_rules::copy_group_rule(call, id, new_project.namespace)?;
    integrations::inherit_integrations(call, id, new_project.namespace)?;
    if call.profile().bots_among_members {
        scope.insert_bot(call, "access token", MAINTAINER)?;
    }
    if !new_project.empty_repo {
        let due_at = match new_project.import {
            None => call.protection_time(),
            Some(_) => Some(call.import_finish_time()),
        };
        protected_branches::protect_default_branch(call, id, due_at.as_deref())?;
    }
    Ok(id)
}

/// Changes a project. The response to an upload of an avatar is also the whole project, because
/// clients read the project. The reference mentions only `avatar_url` (2, 4.3).
fn update(call: &Call<'_>) -> Result<Answer> {
    call.require_user()?;
    settings::check_edit_params(&call.params, call.edition())?;
    call.refuse_both(pull_mirror::BRANCH_SELECTORS)?;
    let project = call.require_writable_project(MAINTAINER)?;
    edit_project(call, &project, &call.params)?;
    project_answer(call, StatusCode::OK, project.id, ExtraFields::for_saved_project())
}

/// Stores the requested changes. Checks and changes alternate, so that a call with several errors gets the
/// same error as from the real service.
pub(crate) fn edit_project(call: &Call<'_>, project: &Project, params: &Params) -> Result<()> {
    let name = params.text_or_unchanged("name", &project.name)?;
    let path = params.text_or_unchanged("path", &project.path)?;
    let name = name.trim_start();
    if (name, &path) != (&project.name, &project.path) {
        let requested_name = RequestedName::new(&project.namespace, name, &path);
        let taken_flags = requested_name.read_taken_flags(call, Some(project.id))?;
        RequestedName { is_name_sent: true, ..requested_name }.check(taken_flags)?;
    }
    let visibility = match params.get("visibility") {
        Some(Value::Null) => "private".to_owned(),
        _ => params
            .allowed_text("visibility", VISIBILITIES)?
            .unwrap_or_else(|| project.visibility.clone()),
    };
    let needs_owner = params.has("visibility");
    refuse_if(
        needs_owner && call.caller_level_in_project(project)? < OWNER,
        ErrorResponse::forbidden,
    )?;
    if visibility != project.visibility {
        project_rules::check_restriction(call, &visibility)?;
        project_rules::check_visibility(&project.namespace, &visibility)?;
    }
    project_contents::check_url(params.text("import_url")?.as_deref())?;
    let full_path = format!("{}/{path}", project.namespace.full_path);
    let sql =
        "UPDATE projects SET name = ?2, path = ?3, full_path = ?4, visibility = ?5 WHERE id = ?1";
    call.execute(sql, params![project.id, name, path, full_path, visibility])?;
    let former_attributes = project.attributes(call.db)?;
    let mut attributes = former_attributes.clone();
    let is_fork = project.forked_from_id.is_some();
    let (level, route) = (call.caller_level_in_project(project)?, WriteRoute::Edit);
    let edit =
        ProjectEdit { call, route, params, caller_level: level, is_fork, visibility: &visibility };
    apply_edit(edit, &project.namespace, &mut attributes)?;
    let branch_names = [&former_attributes, &attributes]
        .map(|values| values.get(DEFAULT_BRANCH).and_then(Value::as_str));
    if let [Some(former_branch), Some(requested_branch)] = branch_names {
        let repository = Repository { call, project };
        repository.check_default_branch(former_branch, requested_branch)?;
    }
    let is_row_unchanged = (name, &path, &visibility)
        == (&project.name, &project.path, &project.visibility)
        && changes_only_features(&former_attributes, &attributes);
    let keeps_updated_at = is_row_unchanged && call.is_observed_release_or_later();
    let updated_at = if keeps_updated_at { &project.updated_at } else { call.time_text() };
    project.save_attributes(call.db, &attributes, updated_at)?;
    let approval_counts =
        [&former_attributes, &attributes].map(|values| values.get(APPROVALS_BEFORE_MERGE));
    approval_rules::require_approvals(call, project.id, approval_counts)?;
    avatars::store_avatar(call, Holder::Project(project.id), params)
}

/// True if the edit changes only levels of features. The service stores these levels outside the
/// project's own row. Such an edit therefore does not change `updated_at`.
fn changes_only_features(former_attributes: &Object, attributes: &Object) -> bool {
    let [former_columns, columns] = [former_attributes, attributes]
        .map(|values| values.iter().filter(|(name, _)| !name.ends_with("_access_level")));
    former_attributes != attributes && former_columns.eq(columns)
}

/// Archives or unarchives a project. Both operations are idempotent (reference 2, 4.4), unless the
/// profile refuses to archive a project twice.
fn set_archived(call: &Call<'_>, is_archived: bool) -> Result<Answer> {
    let project = call.require_project(OWNER)?;
    let is_already_archived =
        is_archived && project.archived && call.profile().archive_twice_refused;
    refuse_if(is_already_archived, || "Project is already archived.".into())?;
    let text = "Cannot archive project since it is scheduled for deletion.";
    refuse_if(is_archived && project.marked_for_deletion_on.is_some(), || text.into())?;
    call.set_column("projects", project.id, "archived", is_archived)?;
    call.set_column("projects", project.id, "updated_at", call.time_text())?;
    project_answer(call, StatusCode::CREATED, project.id, ExtraFields::default())
}

/// Moves a project to another namespace. The reference does not describe the behaviour (2, 4.7).
/// This operation follows the real service.
fn transfer(call: &Call<'_>) -> Result<Answer> {
    let project = call.require_writable_project(OWNER)?;
    call.require(&["namespace"])?;
    let reference = call.text("namespace")?.unwrap_or_default();
    let namespace = match Namespace::find_by_reference(call.db, &reference)? {
        Some(namespace) if call.caller_level_in_group(&namespace)? >= MAINTAINER => namespace,
        _ => return Err(ErrorResponse::not_found("Namespace")),
    };
    project.move_to(call, &namespace)?;
    project_answer(call, StatusCode::OK, project.id, ExtraFields::default())
}

impl Project {
    /// Moves a project to another namespace. The calling function must check the user's rights in
    /// both namespaces first.
    pub(super) fn move_to(&self, call: &Call<'_>, namespace: &Namespace) -> Result<()> {
        let (is_name_taken, is_path_taken) =
            RequestedName::new(namespace, &self.name, &self.path).read_taken_flags(call, None)?;
        let is_refused = namespace.id == self.namespace.id || is_name_taken || is_path_taken;
        let text = "the project cannot be transferred to this namespace";
        refuse_if(is_refused, || ErrorResponse::bad_request(text))?;
        project_rules::check_visibility(namespace, &self.visibility)?;
        let full_path = format!("{}/{}", namespace.full_path, self.path);
        let sql =
            "UPDATE projects SET namespace_id = ?2, full_path = ?3, updated_at = ?4 WHERE id = ?1";
        call.execute(sql, params![self.id, namespace.id, full_path, call.time_text()]).map(drop)
    }
}
