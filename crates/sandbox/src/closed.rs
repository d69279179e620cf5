//! The routes that an archived project refuses with 403, for every caller. An archived project
//! accepts all other routes.

use undrift_release::REFERENCE;

use crate::prelude::*;

/// The start of each path whose writes are refused, and the first release that refuses them.
const REFUSED_WRITES: [(&str, Release); 7] = [
    ("/projects/{id}/repository", REFERENCE),
    ("/projects/{id}/uploads", REFERENCE),
    ("/projects/{id}/pipeline_schedules", REFERENCE),
    ("/projects/{id}/transfer", Release::new(18, 4)),
    ("/projects/{id}/approvals", OBSERVED_RELEASE),
    ("/projects/{id}/labels", OBSERVED_RELEASE),
    ("/projects/{id}/protected_branches", OBSERVED_RELEASE),
];

/// Before [`OBSERVED_RELEASE`], reads and writes are refused for all paths that start with this path.
const CLOSED_PATH: &str = "/projects/{id}/variables";

/// Makes the refusal of a route.
pub(crate) type ArchiveRefusal = fn() -> ErrorResponse;

/// The refusal of a route by archived projects; `None` if they accept the route.
pub(crate) fn find_archive_refusal(
    method: &Method,
    path: &str,
    release: Release,
) -> Option<ArchiveRefusal> {
    let is_below = |start: &str| {
        let path_suffix = path.strip_prefix(start);
        path_suffix.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('/'))
    };
    let mut refused_writes = REFUSED_WRITES.iter().filter(|_| *method != Method::GET);
    let is_refused = refused_writes.any(|(start, since)| release >= *since && is_below(start))
        || is_below(CLOSED_PATH) && release < OBSERVED_RELEASE;
    let refuse_push =
        || ErrorResponse::forbidden_because("You are not allowed to push into this branch");
    let is_file_route = is_below("/projects/{id}/repository/files");
    is_refused.then_some(if is_file_route { refuse_push } else { ErrorResponse::forbidden })
}
