//! Collections that are always empty here, such as issues and pipelines. Clients get an empty list
//! instead of the 404 of an unknown route.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    // For everybody who sees the project.
    get("/projects/{id}/events", |call| empty_list(call, call.project().map(drop))),
    get("/projects/{id}/issues", |call| empty_list(call, call.project().map(drop))),
    get("/projects/{id}/merge_requests", |call| empty_list(call, call.project().map(drop))),
    get("/projects/{id}/merge_trains", |call| empty_list(call, call.project().map(drop))),
    get("/projects/{id}/pipelines", |call| empty_list(call, call.project().map(drop))),
    // Without pages.
    get("/projects/{id}/wikis", |call| call.project().and_then(|_| Answer::ok(&json!([])))),
    // For every user who sees it.
    get("/projects/{id}/boards", |call| empty_list(call, call.project_as(0).map(drop))),
    get("/projects/{id}/jobs", |call| empty_list_without_total(call, call.project_as(0).map(drop))),
    get("/projects/{id}/snippets", |call| empty_list(call, call.project_as(0).map(drop))),
    get("/projects/{id}/vulnerabilities", |call| empty_list(call, call.project_as(0).map(drop))),
    // For maintainers.
    get("/projects/{id}/triggers", |call| empty_list(call, call.project_as(MAINTAINER).map(drop))),
    // For maintainers; callers without a token get 403, not 401.
    get("/projects/{id}/uploads", |call| {
        empty_list(call, call.project_allowing_anonymous(MAINTAINER).map(drop))
    }),
    // Collections with other paths.
    get("/admin/ci/variables", |call| empty_list(call, call.require_admin().map(drop))),
    get("/events", |call| empty_list(call, call.require_user().map(drop))),
    get("/topics", |call| empty_list(call, Ok(()))),
    get("/users/{user_id}/events", |call| empty_list(call, call.segment_user().map(drop))),
];

fn empty_list(call: &Call<'_>, permission: Result<()>) -> Result<Answer> {
    permission.and_then(|()| page::list(call, []))
}

/// An empty list without a total.
fn empty_list_without_total(call: &Call<'_>, permission: Result<()>) -> Result<Answer> {
    let mut answer = empty_list(call, permission)?;
    answer.headers.retain(|(name, _)| !name.starts_with("x-total"));
    Ok(answer)
}
