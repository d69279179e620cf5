//! Imports from external hosts (reference 1, 4.2). No host is ever contacted and no credential is
//! stored. A project appears at once, and its import ends later, by the sandbox's clock.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/import", |call| {
        Answer::ok(&import_state_json(call, &call.require_project(0)?)?)
    }),
    post("/projects/import", |call| import_archive(call, &["path", "file"])),
    post("/projects/remote-import", |call| import_archive(call, &["url", "path"])),
    post("/import/extgit", import_from_extgit),
    post("/import/extgit/cancel", cancel_import),
    post("/import/extgit/gists", import_gists),
    post("/import/extserver", import_from_extserver),
    // The same operations with the real names of the hosts; `Params` converts the parameters.
    post("/import/github", import_from_extgit),
    post("/import/github/cancel", cancel_import),
    post("/import/github/gists", import_gists),
    post("/import/bitbucket_server", import_from_extserver),
];

/// The state of an import, which clients poll. The reference does not describe this operation.
fn import_state_json(call: &Call<'_>, project: &Project) -> Result<Value> {
    let status = project.import_status_at(call.time_text());
    // The type of other imports is the name of a host. The reference replaces these names, and the
    // sandbox shows null.
    let is_from_url =
        status != "none" && project.import_source.is_none() && project.forked_from_id.is_none();
    let mut body = projects::short_json(call, project)?;
    let extra_fields = json!({
        "import_status": status,
        "import_type": is_from_url.then_some("git"),
        "correlation_id": null,
        "failed_relations": [],
        "import_error": project.import_error_at(call.time_text()),
        "stats": null,
    });
    add_fields(&mut body, extra_fields);
    Ok(body)
}

/// Creates a project from an archive that is sent or fetched. The archive is not unpacked.
fn import_archive(call: &Call<'_>, required_params: &[&str]) -> Result<Answer> {
    let user = call.require_user()?;
    call.require(required_params)?;
    let is_missing = required_params.contains(&"file") && call.file("file").is_none();
    refuse_if(is_missing, || ErrorResponse::invalid_parameter("file"))?;
    let path = call.text("path")?.unwrap_or_default();
    let name = call.text("name")?.unwrap_or_else(|| path.clone());
    let mut namespace_reference = None;
    for name in ["namespace", "namespace_id", "namespace_path"] {
        namespace_reference = namespace_reference.or(call.text(name)?);
    }
    let namespace = match namespace_reference {
        Some(reference) => Namespace::find_by_reference(call.db, &reference)?,
        None => Namespace::find_personal(call.db, user.id)?,
    };
    let namespace = namespace.or_not_found("Namespace")?;
    let level = call.caller_level_in_group(&namespace)?;
    refuse_if(level < min_import_level(call), ErrorResponse::forbidden)?;
    let project = create_imported_project(call, &namespace, [&name, &path], "archive")?;
    Answer::created(&import_state_json(call, &project)?)
}

/// An error whose key is `errors`, as in the real service's imports.
fn import_error(status: StatusCode, text: &str) -> ErrorResponse {
    ErrorResponse::with_body(status, json!({ "errors": text }))
}

fn import_from_extgit(call: &Call<'_>) -> Result<Answer> {
    call.require_user()?;
    call.require_all(&[
        ParamRequirement::Present("personal_access_token"),
        ParamRequirement::Present("repo_id"),
        ParamRequirement::NotBlank("target_namespace"),
    ])?;
    check_stages(call)?;
    if call.is_at_least(16, 5) {
        call.allowed_text("timeout_strategy", &["optimistic", "pessimistic"])?;
    }
    let repo_id = call.integer("repo_id")?.unwrap_or(0);
    let target_path = call.text("target_namespace")?.unwrap_or_default();
    let host = call.text("extgit_hostname")?.unwrap_or_else(|| "extgit".to_owned());
    let host = host.split_once("://").map_or(host.as_str(), |(_, host)| host);
    let name = call.text("new_name")?.unwrap_or_else(|| format!("repository-{repo_id}"));
    let namespace = target_namespace(call, &target_path, StatusCode::UNPROCESSABLE_ENTITY)?;
    start_import(call, &namespace, &name, &format!("{host}/{repo_id}"))
}

/// Imports a project of an external host.
fn start_import(
    call: &Call<'_>,
    namespace: &Namespace,
    name: &str,
    source: &str,
) -> Result<Answer> {
    let project =
        create_imported_project(call, namespace, [name, &project_rules::make_path(name)], source)?;
    Answer::created(&imported_project_json(&project))
}

/// Additional parts of a project that an import can include.
const STAGES: &str =
    "single_endpoint_issue_events_import single_endpoint_notes_import attachments_import";

/// Checks the additional parts in a call. Nothing is imported, because no external host exists.
fn check_stages(call: &Call<'_>) -> Result<()> {
    let stages = call.get("optional_stages").unwrap_or(&Value::Null);
    let is_valid = stages.is_object() || stages.is_null();
    refuse_if(!is_valid, || ErrorResponse::invalid_parameter("optional_stages"))?;
    for stage in STAGES.split(' ') {
        read_flag(&format!("optional_stages[{stage}]"), &stages[stage])?;
    }
    Ok(())
}

fn import_from_extserver(call: &Call<'_>) -> Result<Answer> {
    // Parameters are checked before the caller.
    check_required(call).map_err(|failure| restore_client_names(call, failure))?;
    let url = call.text("extserver_url")?.unwrap_or_default();
    refuse_if(!is_importable_url(&url), || {
        ErrorResponse::bad_request_message(json!({ "error": format!("Invalid URL: {url}") }))
    })?;
    let user = call.require_user()?;
    let project_key = call.text("extserver_project")?.unwrap_or_default();
    let repository = call.text("extserver_repo")?.unwrap_or_default();
    let name = call.text("new_name")?.unwrap_or_else(|| repository.clone());
    let namespace = match call.text("target_namespace")?.unwrap_or_default().as_str() {
        "" => Namespace::find_personal(call.db, user.id)?,
        target => Some(target_namespace(call, target, StatusCode::UNAUTHORIZED)?),
    };
    let namespace = namespace.or_not_found("Namespace")?;
    start_import(call, &namespace, &name, &format!("{project_key}/{repository}"))
}

/// Refuses an import with missing or empty parameters.
fn check_required(call: &Call<'_>) -> Result<()> {
    let names =
        "extserver_url extserver_username personal_access_token extserver_project extserver_repo";
    let names: Vec<&str> = names.split(' ').collect();
    call.require(&names)?;
    names.into_iter().try_for_each(|name| {
        let is_empty = call.text(name)?.is_none_or(|text| text.trim().is_empty());
        refuse_if(is_empty, || ErrorResponse::empty_parameter(name))
    })
}

/// Converts the parameter names in an error to the names that the client sent.
fn restore_client_names(call: &Call<'_>, failure: ErrorResponse) -> ErrorResponse {
    let text = failure.body["error"].as_str().map(str::to_owned);
    match text.filter(|_| call.target.contains("/bitbucket_server")) {
        Some(text) => ErrorResponse::error(
            StatusCode::BAD_REQUEST,
            text.replace("extserver_", "bitbucket_server_"),
        ),
        None => failure,
    }
}

/// True if an import from this URL is allowed. Imports from the service's own host are refused.
fn is_importable_url(url: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else { return false };
    let is_own_host = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => true,
    };
    ["http", "https"].contains(&url.scheme()) && !is_own_host
}

/// The target namespace, in which the caller must be allowed to create projects. `refusal_status`
/// is the status for other callers, which depends on the kind of import.
fn target_namespace(call: &Call<'_>, path: &str, refusal_status: StatusCode) -> Result<Namespace> {
    let namespace = Namespace::find_by_path(call.db, path.trim_matches('/'))?.ok_or_else(|| {
        let message = "Namespace or group to import repository into does not exist.";
        import_error(StatusCode::UNPROCESSABLE_ENTITY, message)
    })?;
    let may_import = call.caller_level_in_group(&namespace)? >= min_import_level(call);
    let text = "You don't have permissions to import this project";
    refuse_if(!may_import, || import_error(refusal_status, text))?;
    Ok(namespace)
}

/// The minimum level for imports into a namespace.
fn min_import_level(call: &Call<'_>) -> i64 {
    if call.is_at_least(16, 0) { MAINTAINER } else { DEVELOPER }
}

fn create_imported_project(
    call: &Call<'_>,
    namespace: &Namespace,
    [name, path]: [&str; 2],
    source: &str,
) -> Result<Project> {
    project_rules::check_path_only(path)
        .and_then(|()| RequestedName::new(namespace, name, path).check_not_taken(call))
        .map_err(|failure| {
            import_error(StatusCode::UNPROCESSABLE_ENTITY, &error_sentences(&failure).join(", "))
        })?;
    let mut attributes = settings::new_project_attributes(call.time);
    let error = planned_failure(call)?;
    let branch = error.is_none().then_some("main");
    attributes.insert("default_branch".to_owned(), branch.into());
    let new_project = NewProject {
        namespace,
        name,
        path,
        visibility: "private",
        empty_repo: error.is_some(),
        has_readme: false,
        source_project_id: None,
        creator_id: call.require_user()?.id,
        forked_from_id: None,
        import: Some(Import { source: Some(source), error: error.as_deref() }),
        attributes: &attributes,
    };
    let id = projects::insert_with_members(call, new_project)?;
    Project::find_by_id(call.db, id)?.or_not_found("Project")
}

/// The error of an import that fails in the background. The sandbox has no external host that could
/// refuse credentials. Instead, the sandbox refuses tokens that start with `invalid`.
fn planned_failure(call: &Call<'_>) -> Result<Option<String>> {
    let token = call.text("personal_access_token")?.unwrap_or_default();
    let refusal = token.starts_with("invalid").then(|| ACCESS_DENIED.to_owned());
    Ok(refusal.or_else(|| call.profile().import_failure.clone()))
}

/// The error text of an external host for a refused credential.
const ACCESS_DENIED: &str = "Access denied to the external account";

fn imported_project_json(project: &Project) -> Value {
    let mut body = project.json_columns("id name full_path full_name");
    body["full_name"] = project.full_name().into();
    body
}

fn cancel_import(call: &Call<'_>) -> Result<Answer> {
    call.require_user()?;
    call.require(&["project_id"])?;
    let id = call.integer("project_id")?.unwrap_or(0);
    // This operation finds only imported projects.
    let project = Project::find_by_id(call.db, id)?
        .filter(|project| project.import_source.is_some())
        .or_no_record()?;
    refuse_if(
        call.caller_level_in_project(&project)? < DEVELOPER,
        ErrorResponse::record_not_found,
    )?;
    let status = project.import_status_at(call.time_text());
    let message = format!("The import cannot be canceled because it is {status}");
    refuse_if(status != "scheduled", || import_error(StatusCode::BAD_REQUEST, &message))?;
    call.set_column("projects", project.id, "import_status", "canceled")?;
    protection::remove_pending_protections(call.db, project.id, "*", call.time_text())?;
    let mut body = imported_project_json(&project);
    let import_fields = json!({
        "import_source": project.import_source,
        "import_status": "canceled",
        "human_import_status_name": "canceled",
        "provider_link": project.import_source.map(|source| format!("/{source}")),
    });
    add_fields(&mut body, import_fields);
    Answer::ok(&body)
}

/// Imports gists. A user can have only one such import at a time. The flag [`Profile::gists`]
/// enables the operation. The sandbox has no external host that could refuse credentials, and
/// refuses some tokens itself.
fn import_gists(call: &Call<'_>) -> Result<Answer> {
    let user_id = call.require_user()?.id;
    call.require(&["personal_access_token"])?;
    refuse_if(!call.profile().gists, ErrorResponse::not_found_hidden)?;
    let token = call.text("personal_access_token")?.unwrap_or_default();
    let is_denied = token.trim().is_empty() || token.starts_with("invalid");
    refuse_if(is_denied, || import_error(StatusCode::UNAUTHORIZED, ACCESS_DENIED))?;
    let text = "The rate limit of the external host was exceeded";
    let is_limited = token.starts_with("rate-limited");
    refuse_if(is_limited, || import_error(StatusCode::TOO_MANY_REQUESTS, text))?;
    let lease = format!("gists of user {user_id}");
    let has_lease = call.acquire_lease(&lease, call.profile().import_delay)?;
    let text = "Import already in progress";
    refuse_if(!has_lease, || import_error(StatusCode::UNPROCESSABLE_ENTITY, text))?;
    Ok(Answer::without_body(StatusCode::ACCEPTED))
}
