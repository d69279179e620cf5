//! Runners, and their assignment to projects. Only a seed creates runners; no operation changes a
//! runner.

use super::super::seed::SeedRunner;
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/runners", list_managed),
    get("/runners/all", list_all),
    get("/projects/{id}/runners", list_project_runners),
    post("/projects/{id}/runners", assign_runner),
    delete("/projects/{id}/runners/{runner_id}", unassign_runner),
];

const RUNNER_TYPES: [&str; 3] = ["instance_type", "group_type", "project_type"];

/// A runner.
pub(crate) struct Runner {
    id: i64,
    description: Option<String>,
    /// One of [`RUNNER_TYPES`].
    runner_type: String,
    locked: bool,
    group_id: Option<i64>,
}

stored!(Runner: runners r, id, description, runner_type, locked, group_id);

impl Runner {
    /// Stores a new runner of a group, of projects, or of the instance. The first project owns the
    /// runner.
    pub(crate) fn create(call: &Call<'_>, seed: &SeedRunner) -> Result<()> {
        let projects = seed.projects.iter().map(|path| Ok(call.visible_project(path)?.id));
        let project_ids = projects.collect::<Result<Vec<_>>>()?;
        let group = seed.group.as_deref().map(|path| call.visible_group(path)).transpose()?;
        let group_id = group.map(|group| group.id);
        let runner_type = match (group_id, project_ids.as_slice()) {
            (Some(_), _) => RUNNER_TYPES[1],
            (None, []) => RUNNER_TYPES[0],
            (None, _) => RUNNER_TYPES[2],
        };
        let (description, runner_type) = (seed.description.clone(), runner_type.to_owned());
        let mut new_runner =
            Self { id: 0, description, runner_type, locked: seed.locked, group_id };
        new_runner.id = new_runner.upsert(call.db)?;
        project_ids.iter().try_for_each(|project_id| new_runner.assign(call, *project_id))
    }

    fn assign(&self, call: &Call<'_>, project_id: i64) -> Result<()> {
        let sql = "INSERT INTO runner_projects (runner_id, project_id) VALUES (?1, ?2)";
        call.execute(sql, [self.id, project_id]).map(drop)
    }

    /// The ids of the projects to which the runner is assigned, with the owner first.
    fn project_ids(&self, call: &Call<'_>) -> Result<Vec<i64>> {
        let sql = "SELECT project_id FROM runner_projects WHERE runner_id = ?1 ORDER BY id";
        call.query_column(sql, [self.id])
    }

    /// True if the caller maintains a project with this runner, or owns its group. The rights of
    /// administrators are ignored.
    fn is_managed_by_caller(&self, call: &Call<'_>) -> Result<bool> {
        let user_id = call.require_user()?.id;
        let is_maintained =
            try_any(self.project_ids(call)?, |id| match Project::find_by_id(call.db, id)? {
                Some(project) => Ok(call.user_level_in_project(user_id, &project)? >= MAINTAINER),
                None => Ok(false),
            })?;
        if is_maintained {
            return Ok(true);
        }
        Ok(match Namespace::find_by_optional_id(call.db, self.group_id)? {
            Some(group) => call.memberships()?.level_in_namespace(&group.traversal) >= OWNER,
            None => false,
        })
    }

    fn json(&self) -> Value {
        let mut body = self.json_columns("id description runner_type");
        body["is_shared"] = (self.runner_type == RUNNER_TYPES[0]).into();
        let idle_status =
            json!({"active": true, "paused": false, "online": false, "status": "never_contacted"});
        add_fields(&mut body, idle_status);
        body
    }
}

fn list_runners(call: &Call<'_>) -> Result<Vec<Runner>> {
    Ok(Runner::list(call.db, "ORDER BY r.id", [])?)
}

/// Answers with the `runners` of the requested type.
fn answer_runners(call: &Call<'_>, mut runners: Vec<Runner>) -> Result<Answer> {
    if let Some(runner_type) = call.allowed_text("type", &RUNNER_TYPES)? {
        runners.retain(|runner| runner.runner_type == runner_type);
    }
    page::list_page(call, runners.iter().map(Runner::json))
}

fn list_managed(call: &Call<'_>) -> Result<Answer> {
    let runners = try_filter(list_runners(call)?, |runner| runner.is_managed_by_caller(call))?;
    answer_runners(call, runners)
}

fn list_all(call: &Call<'_>) -> Result<Answer> {
    call.require_administrator()?;
    answer_runners(call, list_runners(call)?)
}

/// Lists the runners of the project, of its groups and of the instance.
fn list_project_runners(call: &Call<'_>) -> Result<Answer> {
    let project = call.require_project(MAINTAINER)?;
    let group_ids: Vec<i64> = traversal_ids(&project.namespace.traversal).collect();
    let runners = try_filter(list_runners(call)?, |runner| {
        Ok(runner.group_id.is_some_and(|group| group_ids.contains(&group))
            || runner.runner_type == RUNNER_TYPES[0]
            || runner.project_ids(call)?.contains(&project.id))
    })?;
    answer_runners(call, runners)
}

fn assign_runner(call: &Call<'_>) -> Result<Answer> {
    let project_id = call.require_writable_project(MAINTAINER)?.id;
    call.require(&["runner_id"])?;
    let id = call.integer("runner_id")?.unwrap_or_default();
    let runner = Runner::find_by_id(call.db, id)?.or_not_found("Runner")?;
    let text = "Runner is a group runner";
    refuse_if(runner.group_id.is_some(), || ErrorResponse::forbidden_message(text))?;
    let (status, text) = (StatusCode::INTERNAL_SERVER_ERROR, "500 Internal Server Error");
    refuse_if(runner.runner_type == RUNNER_TYPES[0], || ErrorResponse::error(status, text))?;
    let is_locked = runner.locked && !call.is_administrator();
    refuse_if(is_locked, || ErrorResponse::forbidden_message("Runner is locked"))?;
    let may_assign = call.is_administrator() || runner.is_managed_by_caller(call)?;
    refuse_if(!may_assign, ErrorResponse::forbidden)?;
    let text = "Validation failed: Runner projects runner has already been taken - runner_error";
    refuse_if(runner.project_ids(call)?.contains(&project_id), || text.into())?;
    runner.assign(call, project_id)?;
    Answer::created(&runner.json())
}

fn unassign_runner(call: &Call<'_>) -> Result<Answer> {
    let project_id = call.require_writable_project(MAINTAINER)?.id;
    let runner = Runner::find_by_id(call.db, call.segment_id("runner_id")?)?;
    let projects = runner.as_ref().map(|runner| runner.project_ids(call)).transpose()?;
    let project_ids = projects.unwrap_or_default();
    let runner = runner.filter(|_| project_ids.contains(&project_id));
    let runner = runner.or_not_found("Runner")?;
    let message = "You cannot unassign a runner from the owner project. Delete the runner instead";
    refuse_if(project_ids.first() == Some(&project_id), || {
        ErrorResponse::forbidden_message(message)
    })?;
    let sql = "DELETE FROM runner_projects WHERE runner_id = ?1 AND project_id = ?2";
    call.execute(sql, [runner.id, project_id])?;
    Ok(Answer::no_content())
}
