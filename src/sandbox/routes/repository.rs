//! Just enough of the repository for a project to have contents and a default branch. Nothing is
//! ever committed: files are kept by branch, and a branch is there once it was the default one or
//! has a file.

use std::collections::BTreeSet;

use rusqlite::params;
use serde_json::{Value, json};

use super::super::access::DEVELOPER;
use super::super::answer::{Answer, Failure};
use super::super::call::Call;
use super::super::page;
use super::super::store::project::Project;
use super::super::store::protection::Protection;
use super::{Route, get, post, protected_branches};

pub(super) const ROUTES: &[Route] = &[
    post("/projects/{id}/repository/files/{path}", commit_file),
    get("/projects/{id}/repository/branches", branches),
    get("/projects/{id}/repository/branches/{branch}", branch),
];

/// The first file also makes the default branch.
fn commit_file(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = call.active_project_as(DEVELOPER)?;
    call.params.require(&["branch", "content", "commit_message"])?;
    let branch = call.params.text("branch")?.unwrap_or_default();
    let content = call.params.text("content")?.unwrap_or_default();
    let path = call.segment("path");
    keep_file(call, project.id, &branch, path, &content)?;
    if project.empty_repo {
        call.db.execute("UPDATE projects SET empty_repo = 0 WHERE id = ?1", [project.id])?;
        let mut attributes = project.attributes(call.db)?;
        attributes.insert("default_branch".to_owned(), branch.as_str().into());
        project.save_attributes(call.db, &attributes, call.edition(), call.now())?;
        let due_at = call.protection_due_at();
        protected_branches::protect_default(call, project.id, due_at.as_deref())?;
    }
    Answer::created(&json!({ "file_path": path, "branch": branch }))
}

/// Makes a branch, which is the default one if there was none. Nothing is protected by that.
pub(in crate::sandbox) fn plant(
    call: &Call<'_>,
    project: &Project,
    branch: &str,
) -> Result<(), Failure> {
    let mut files = call.db.prepare_cached(
        "SELECT 1 FROM files WHERE project_id = ?1 AND purpose = 'repository' AND secret LIKE ?2",
    )?;
    if files.exists(params![project.id, branch])? {
        return Ok(());
    }
    let is_first = project.empty_repo && !files.exists(params![project.id, "%"])?;
    keep_file(call, project.id, branch, "README.md", "")?;
    if is_first {
        call.db.execute("UPDATE projects SET empty_repo = 0 WHERE id = ?1", [project.id])?;
        let mut attributes = project.attributes(call.db)?;
        attributes.insert("default_branch".to_owned(), branch.into());
        project.save_attributes(call.db, &attributes, call.edition(), call.now())?;
    }
    Ok(())
}

fn keep_file(
    call: &Call<'_>,
    project: i64,
    branch: &str,
    path: &str,
    content: &str,
) -> Result<(), Failure> {
    call.db.execute(
        "INSERT INTO files (project_id, purpose, secret, name, content) VALUES (?1, 'repository', ?2, ?3, ?4)",
        params![project, branch, path, content.as_bytes()],
    )?;
    Ok(())
}

/// Lets the repository follow a new default branch, which has to be there already.
pub(super) fn change_head(
    call: &Call<'_>,
    project: &Project,
    former: &str,
    wanted: &str,
) -> Result<(), Failure> {
    if wanted == former {
        return Ok(());
    }
    if project.empty_repo || !with_files(call, project.id)?.contains(wanted) {
        return Err(Failure::model(
            "base",
            format!("Could not change HEAD: branch '{wanted}' does not exist"),
        ));
    }
    keep_file(call, project.id, former, "", "")
}

fn with_files(call: &Call<'_>, project: i64) -> Result<BTreeSet<String>, Failure> {
    let mut statement = call.db.prepare_cached(
        "SELECT secret FROM files WHERE project_id = ?1 AND purpose = 'repository'",
    )?;
    Ok(statement.query_map([project], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// All branches, by name.
fn all(call: &Call<'_>, project: &Project) -> Result<Vec<Value>, Failure> {
    if project.empty_repo {
        return Ok(Vec::new());
    }
    let attributes = project.attributes(call.db)?;
    let default = attributes.get("default_branch").and_then(Value::as_str).unwrap_or_default();
    let mut names = with_files(call, project.id)?;
    names.insert(default.to_owned());
    let protections = Protection::all(call.db, project.id, call.now())?;
    let json = |name: &String| {
        let mut body = protected_branches::branch_flags(&protections, name);
        body["name"] = name.as_str().into();
        body["default"] = (name == default).into();
        body["merged"] = false.into();
        body["commit"] = Value::Null;
        body
    };
    Ok(names.iter().map(json).collect())
}

fn branches(call: &Call<'_>) -> Result<Answer, Failure> {
    page::list(call, &all(call, &call.project()?)?)
}

fn branch(call: &Call<'_>) -> Result<Answer, Failure> {
    let name = call.segment("branch");
    match all(call, &call.project()?)?.into_iter().find(|branch| branch["name"] == name) {
        Some(branch) => Answer::ok(&branch),
        None => Err(Failure::not_found("Branch")),
    }
}
