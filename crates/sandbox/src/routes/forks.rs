//! Forks and the relation of a fork to its upstream (reference 2, 4.4).

use super::prelude::*;
use super::project_rules::TakenFlags;

pub(super) const ROUTES: &[Route] = &[
    post("/projects/{id}/fork", create_fork),
    post("/projects/{id}/fork/{forked_from_id}", create_relation),
    delete("/projects/{id}/fork", delete_relation),
];

/// Creates a fork immediately. Its `import_status` shows when the contents are imported.
fn create_fork(call: &Call<'_>) -> Result<Answer> {
    let user = call.require_user()?;
    let upstream = call.project()?;
    let upstream_attributes = upstream.attributes(call.db)?;
    // Guests of a private project cannot read its code.
    let can_read_code =
        upstream.visibility != "private" || call.caller_level_in_project(&upstream)? >= REPORTER;
    let is_disabled = upstream_attributes.get("forking_access_level") == Some(&json!("disabled"));
    refuse_if(!can_read_code || is_disabled, ErrorResponse::not_found_hidden)?;
    let mut attributes = settings::new_project_attributes(call.time);
    attributes.extend(upstream_attributes.into_iter().filter(|(name, _)| is_copied(name)));
    let namespace = target_namespace(call, user.id)?;
    let is_within_limit = namespace.is_group() || users::may_create_project(call, user)?;
    refuse_if(!is_within_limit, ErrorResponse::forbidden)?;

    let has_later_errors = call.profile().errors_as_after_16;
    let name = call.text("name")?.unwrap_or_else(|| upstream.name.clone());
    let path = call.text("path")?.unwrap_or_else(|| upstream.path.clone());
    check_branch(call, &upstream)?;
    let requested_name = RequestedName::new(&namespace, &name, &path);
    requested_name
        .check((false, false))
        .map_err(|failure| if has_later_errors { make_conflict(failure, true) } else { failure })?;
    let requested_visibility = call.allowed_text("visibility", VISIBILITIES)?;
    requested_visibility
        .as_deref()
        .map_or(Ok(()), |requested| project_rules::check_restriction(call, requested))?;
    let visibility = requested_visibility.unwrap_or_else(|| {
        project_rules::stricter_visibility(&upstream.visibility, &namespace).to_owned()
    });
    project_rules::check_visibility(&namespace, &visibility)?;
    let taken_flags = requested_name.read_taken_flags(call, None)?;
    refuse_if(taken_flags != (false, false), || name_conflict(call, taken_flags))?;
    if let Some(description) = call.text("description")? {
        attributes.insert("description".to_owned(), description.into());
    }
    if let Some(targets_fork) = call.flag("mr_default_target_self")? {
        attributes.insert("mr_default_target_self".to_owned(), targets_fork.into());
    }
    let import_error = call.profile().import_failure.as_deref();
    let new_project = NewProject {
        namespace: &namespace,
        name: &name,
        path: &path,
        visibility: &visibility,
        empty_repo: upstream.empty_repo || import_error.is_some(),
        has_readme: false,
        source_project_id: Some(upstream.id),
        creator_id: user.id,
        forked_from_id: Some(upstream.id),
        import: Some(Import { source: None, error: import_error }),
        attributes: &attributes,
    };
    let id = projects::insert_with_members(call, new_project)?;
    projects::project_answer(call, StatusCode::CREATED, id, ExtraFields::for_saved_project())
}

/// True if a fork copies this attribute from its upstream. Other attributes start as in a new project.
fn is_copied(name: &str) -> bool {
    const COPIED_ATTRIBUTES: &str = "ci_config_path ci_default_git_depth default_branch description \
        external_authorization_classification_label merge_commit_template shared_runners_enabled \
        squash_commit_template suggestion_commit_message";
    name.ends_with("_access_level")
        || COPIED_ATTRIBUTES.split(' ').any(|attribute| attribute == name)
}

/// Fails with 404 if the upstream lacks the requested branch. The fork always gets all branches.
fn check_branch(call: &Call<'_>, upstream: &Project) -> Result<()> {
    match call.text("branches")?.filter(|name| !name.is_empty()) {
        Some(name) if call.is_observed_release_or_later() => {
            let branch = Repository { call, project: upstream }.find_ref(BRANCHES, &name)?;
            branch.map(|_| ()).or_not_found("Source Branch")
        }
        _ => Ok(()),
    }
}

/// Turns a validation error into a 409. With `uses_sentences`, the error texts become whole
/// sentences. Otherwise the texts stay grouped by field.
fn make_conflict(failure: ErrorResponse, uses_sentences: bool) -> ErrorResponse {
    let failure = if uses_sentences { convert_to_sentences(failure) } else { failure };
    ErrorResponse { status: StatusCode::CONFLICT, ..failure }
}

/// The 409 for a name or path that is taken.
fn name_conflict(call: &Call<'_>, (is_name_taken, is_path_taken): TakenFlags) -> ErrorResponse {
    let has_later_errors = call.profile().errors_as_after_16;
    let mut errors = FieldErrors::default();
    errors.add_if(is_name_taken && has_later_errors, "project_namespace.name", TAKEN_TEXT);
    errors.add_if(is_name_taken, "name", TAKEN_TEXT);
    errors.add_if(is_path_taken, "path", TAKEN_TEXT);
    make_conflict(errors.into(), has_later_errors)
}

/// The namespace of the fork. The first sent parameter of `namespace_id`, `namespace_path` and the
/// deprecated `namespace` names it. Without these parameters, it is the caller's own namespace.
fn target_namespace(call: &Call<'_>, user_id: i64) -> Result<Namespace> {
    let mut reference = call.integer("namespace_id")?.map(|id| id.to_string());
    for name in ["namespace_path", "namespace"] {
        reference = reference.or(call.text(name)?);
    }
    let namespace = match reference {
        None => Namespace::find_personal(call.db, user_id)?,
        Some(path_or_id) => match Namespace::find_by_reference(call.db, &path_or_id)? {
            // All users are visible, and their namespaces are visible too.
            Some(namespace) if !namespace.is_group() => Some(namespace),
            // Before 18.9, any visible group is allowed. From 18.9 on, the caller must be a member.
            Some(group)
                if !call.is_observed_release_or_later() && call.may_see_group(&group)? =>
            {
                Some(group)
            }
            Some(group) if call.caller_level_in_group(&group)? > 0 => Some(group),
            _ => return Err(ErrorResponse::not_found("Namespace")),
        },
    };
    let Some(namespace) = namespace else {
        return Err(ErrorResponse::not_found("Target Namespace"));
    };
    match call.caller_level_in_group(&namespace)? {
        // The service treats a fork as an import, which needs Maintainer from 16.0 on.
        DEVELOPER if call.is_at_least(16, 0) => Err(ErrorResponse::message(
            StatusCode::CONFLICT,
            json!(["User is not allowed to import projects"]),
        )),
        level if level >= DEVELOPER => Ok(namespace),
        _ => Err(ErrorResponse::not_found("Target Namespace")),
    }
}

/// The project whose fork relation a call sets or removes.
fn relation_project(call: &Call<'_>) -> Result<Project> {
    let is_maintainer_enough = call.profile().maintainer_relates_forks;
    call.require_writable_project(if is_maintainer_enough { MAINTAINER } else { OWNER })
}

fn create_relation(call: &Call<'_>) -> Result<Answer> {
    let project = relation_project(call)?;
    let upstream = call.visible_project(call.segment("forked_from_id"))?;
    let text = "Project already forked";
    refuse_if(project.forked_from_id.is_some(), || ErrorResponse::conflict(text))?;
    let text = "a project cannot be forked from itself";
    refuse_if(upstream.id == project.id, || ErrorResponse::bad_request(text))?;
    set_upstream(call, project.id, Some(upstream.id))?;
    projects::project_answer(call, StatusCode::CREATED, project.id, ExtraFields::default())
}

fn delete_relation(call: &Call<'_>) -> Result<Answer> {
    let project = relation_project(call)?;
    if project.forked_from_id.is_none() {
        return Ok(Answer::without_body(StatusCode::NOT_MODIFIED));
    }
    set_upstream(call, project.id, None)?;
    Ok(Answer::no_content())
}

fn set_upstream(call: &Call<'_>, project_id: i64, upstream_id: Option<i64>) -> Result<()> {
    call.set_column("projects", project_id, "forked_from_id", upstream_id)?;
    call.set_column("projects", project_id, "updated_at", call.time_text())
}
