//! Collections that are always empty here, such as issues and pipelines. Clients that read them
//! find an empty list instead of a missing route.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    // For everybody who sees the project.
    get("/projects/{id}/events", |call| nothing(call, call.project().map(drop))),
    get("/projects/{id}/issues", |call| nothing(call, call.project().map(drop))),
    get("/projects/{id}/merge_requests", |call| nothing(call, call.project().map(drop))),
    get("/projects/{id}/merge_trains", |call| nothing(call, call.project().map(drop))),
    get("/projects/{id}/pipelines", |call| nothing(call, call.project().map(drop))),
    // Without pages.
    get("/projects/{id}/wikis", |call| call.project().and_then(|_| Answer::ok(&json!([])))),
    // For every user who sees it.
    get("/projects/{id}/boards", |call| nothing(call, call.project_as(0).map(drop))),
    get("/projects/{id}/jobs", |call| uncounted(call, call.project_as(0).map(drop))),
    get("/projects/{id}/snippets", |call| nothing(call, call.project_as(0).map(drop))),
    get("/projects/{id}/vulnerabilities", |call| nothing(call, call.project_as(0).map(drop))),
    // For its maintainers.
    get("/projects/{id}/triggers", |call| nothing(call, call.project_as(MAINTAINER).map(drop))),
    // All others get 403.
    get("/projects/{id}/uploads", |call| nothing(call, call.project_with(MAINTAINER).map(drop))),
    // Other places.
    get("/admin/ci/variables", |call| nothing(call, call.administrator().map(drop))),
    get("/events", |call| nothing(call, call.user().map(drop))),
    get("/topics", |call| nothing(call, Ok(()))),
    get("/users/{user_id}/events", |call| nothing(call, call.named_user().map(drop))),
];

fn nothing(call: &Call<'_>, permission: Result<()>) -> Result<Answer> {
    permission.and_then(|()| page::list(call, []))
}

/// An empty list without a total.
fn uncounted(call: &Call<'_>, permission: Result<()>) -> Result<Answer> {
    let mut answer = nothing(call, permission)?;
    answer.headers.retain(|(name, _)| !name.starts_with("x-total"));
    Ok(answer)
}
