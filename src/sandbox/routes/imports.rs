//! Imports from external hosts (reference 1, 4.2). No host is ever contacted and no credential is kept: a project
//! appears at once, and its import is done when the clock says so.

use http::StatusCode;
use serde_json::{Value, json};

use super::super::access::DEVELOPER;
use super::super::answer::{Answer, Failure};
use super::super::call::Call;
use super::super::settings;
use super::super::store::namespace::Namespace;
use super::super::store::project::{Import, NewProject, Project};
use super::{Route, post, projects};

pub(super) const ROUTES: &[Route] = &[
    post("/import/extgit", extgit),
    post("/import/extgit/cancel", cancel),
    post("/import/extgit/gists", gists),
    post("/import/extserver", extserver),
    // The same by the names that the reference replaces; `Params` takes their parameters.
    post("/import/github", extgit),
    post("/import/github/cancel", cancel),
    post("/import/github/gists", gists),
    post("/import/bitbucket_server", extserver),
];

/// Errors of imports are under a key of their own.
fn errors(status: StatusCode, text: &str) -> Failure {
    Failure::with(status, json!({ "errors": text }))
}

fn extgit(call: &Call<'_>) -> Result<Answer, Failure> {
    let user = call.user()?;
    call.params.require(&["personal_access_token", "repo_id", "target_namespace"])?;
    let repository = call.params.integer("repo_id")?.unwrap_or(0);
    let target = call.params.text("target_namespace")?.unwrap_or_default();
    if target.trim().is_empty() {
        return Err(Failure::parameter("target_namespace", "is empty"));
    }
    let host = call.params.text("extgit_hostname")?.unwrap_or_else(|| "extgit".to_owned());
    let name = call.params.text("new_name")?.unwrap_or_else(|| format!("repository-{repository}"));
    let namespace = namespace(call, &target, StatusCode::UNPROCESSABLE_ENTITY)?;
    let source = format!("{host}/{repository}");
    let project = import(call, user.id, &namespace, &name, &source)?;
    Answer::created(&result(&project))
}

fn extserver(call: &Call<'_>) -> Result<Answer, Failure> {
    let user = call.user()?;
    call.params.require(&["extserver_url", "extserver_username", "personal_access_token", "extserver_project", "extserver_repo"])?;
    let key = call.params.text("extserver_project")?.unwrap_or_default();
    let repository = call.params.text("extserver_repo")?.unwrap_or_default();
    let name = call.params.text("new_name")?.unwrap_or_else(|| repository.clone());
    let namespace = match call.params.text("target_namespace")?.filter(|target| !target.is_empty()) {
        Some(target) => namespace(call, &target, StatusCode::UNAUTHORIZED)?,
        None => Namespace::of_user(call.db, user.id)?.ok_or_else(|| Failure::not_found("Namespace"))?,
    };
    let project = import(call, user.id, &namespace, &name, &format!("{key}/{repository}"))?;
    Answer::created(&result(&project))
}

/// The target, in which the caller may create projects. The two imports refuse with different statuses.
fn namespace(call: &Call<'_>, path: &str, refusal: StatusCode) -> Result<Namespace, Failure> {
    let found = Namespace::by_path(call.db, path.trim_matches('/'))?
        .ok_or_else(|| errors(StatusCode::UNPROCESSABLE_ENTITY, "Namespace or group to import repository into does not exist."))?;
    if call.level_in_group(&found)? < DEVELOPER {
        return Err(errors(refusal, "You don't have permissions to import this project"));
    }
    Ok(found)
}

fn import(call: &Call<'_>, creator: i64, namespace: &Namespace, name: &str, source: &str) -> Result<Project, Failure> {
    let path = projects::path_from(name);
    projects::check_path(&path)?;
    projects::check_free(call, namespace, name, &path, None)?;
    let mut attributes = settings::presets(call.time);
    attributes.insert("default_branch".to_owned(), "main".into());
    let new = NewProject {
        namespace,
        name,
        path: &path,
        visibility: "private",
        empty_repo: false,
        creator_id: creator,
        forked_from_id: None,
        import: Import::Until { source: Some(source), done_at: &call.import_done_at() },
        attributes: &attributes,
    };
    let id = projects::store(call, new)?;
    Project::by_id(call.db, id)?.ok_or_else(|| Failure::not_found("Project"))
}

fn result(project: &Project) -> Value {
    json!({
        "id": project.id,
        "name": project.name,
        "full_path": project.full_path,
        "full_name": format!("{} / {}", project.namespace.full_name, project.name),
    })
}

fn cancel(call: &Call<'_>) -> Result<Answer, Failure> {
    call.user()?;
    call.params.require(&["project_id"])?;
    let id = call.params.integer("project_id")?.unwrap_or(0);
    let project = call.visible_project(&id.to_string())?;
    if call.level_in(&project)? < DEVELOPER {
        return Err(Failure::not_found("Project"));
    }
    let status = project.import_status_at(call.now());
    if status != "scheduled" {
        let text = format!("The import cannot be canceled because it is {status}");
        return Err(errors(StatusCode::BAD_REQUEST, &text));
    }
    call.db.execute("UPDATE projects SET import_status = 'canceled' WHERE id = ?1", [project.id])?;
    let mut body = result(&project);
    body["import_source"] = project.import_source.clone().into();
    body["import_status"] = "canceled".into();
    body["human_import_status_name"] = "canceled".into();
    body["provider_link"] = project.import_source.map(|source| format!("/{source}")).into();
    Answer::ok(&body)
}

/// One import of gists a user at a time. Behind a flag that is off by default.
fn gists(call: &Call<'_>) -> Result<Answer, Failure> {
    let user = call.user()?.id;
    if !call.service.profile.gists {
        return Err(Failure::no_route());
    }
    call.params.require(&["personal_access_token"])?;
    if !call.take_lease(&format!("gists of user {user}"))? {
        return Err(errors(StatusCode::UNPROCESSABLE_ENTITY, "Import already in progress"));
    }
    Ok(Answer::empty(StatusCode::ACCEPTED))
}
