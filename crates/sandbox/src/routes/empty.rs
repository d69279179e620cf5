//! Collections that are always empty in the sandbox, such as issues and pipelines. Clients get an
//! empty list instead of the 404 of an unknown route.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    // Everybody who sees the project can read these lists.
    get("/projects/{id}/events", |call| empty_list(call, call.project().map(drop))),
    get("/projects/{id}/issues", |call| empty_list(call, call.project().map(drop))),
    get("/projects/{id}/merge_requests", |call| empty_list(call, call.project().map(drop))),
    get("/projects/{id}/merge_trains", |call| empty_list(call, call.project().map(drop))),
    get("/projects/{id}/pipelines", |call| empty_list(call, call.project().map(drop))),
    // This list has no pages.
    get("/projects/{id}/wikis", |call| call.project().and_then(|_| Answer::ok(&json!([])))),
    // Every user who sees the project can read these lists.
    get("/projects/{id}/boards", |call| empty_list(call, call.require_project(0).map(drop))),
    get("/projects/{id}/jobs", |call| {
        empty_list_without_total(call, call.require_project(0).map(drop))
    }),
    get("/projects/{id}/snippets", |call| empty_list(call, call.require_project(0).map(drop))),
    get("/projects/{id}/vulnerabilities", |call| {
        empty_list(call, call.require_project(0).map(drop))
    }),
    // Only maintainers can read this list.
    get("/projects/{id}/triggers", |call| {
        empty_list(call, call.require_project(MAINTAINER).map(drop))
    }),
    // Only maintainers can read this list. Callers without a token get 403, not 401.
    get("/projects/{id}/uploads", |call| {
        empty_list(call, call.project_allowing_anonymous(MAINTAINER).map(drop))
    }),
    // These collections have other paths.
    get("/admin/ci/variables", |call| empty_list(call, call.require_administrator().map(drop))),
    get("/events", |call| empty_list(call, call.require_user().map(drop))),
    get("/topics", |call| empty_list(call, Ok(()))),
    get("/users/{user_id}/events", |call| empty_list(call, call.segment_user().map(drop))),
];

fn empty_list(call: &Call<'_>, permission: Result<()>) -> Result<Answer> {
    permission.and_then(|()| page::list_page(call, []))
}

/// An empty list without a total.
fn empty_list_without_total(call: &Call<'_>, permission: Result<()>) -> Result<Answer> {
    let mut answer = empty_list(call, permission)?;
    answer.headers.retain(|(name, _)| !name.starts_with("x-total"));
    Ok(answer)
}
