//! What an archived project refuses, by route: 403 for everybody. Other routes stay open.

use http::Method;
use undrift_release::Release;

use super::answer::ErrorResponse;
use super::profile::OBSERVED;

/// The routes at and below a path that archived projects refuse.
#[derive(Debug)]
pub(crate) struct ClosedRoute {
    path: &'static str,
    /// True if reading is refused too.
    reads: bool,
    since: Option<Release>,
    before: Option<Release>,
    reason: Option<&'static str>,
}

const fn writes(path: &'static str) -> ClosedRoute {
    ClosedRoute { path, reads: false, since: None, before: None, reason: None }
}

const fn since(release: Release, route: ClosedRoute) -> ClosedRoute {
    ClosedRoute { since: Some(release), ..route }
}

const CLOSED_ROUTES: &[ClosedRoute] = &[
    ClosedRoute {
        reason: Some("You are not allowed to push into this branch"),
        ..writes("/projects/{id}/repository/files")
    },
    writes("/projects/{id}/repository"),
    writes("/projects/{id}/uploads"),
    writes("/projects/{id}/pipeline_schedules"),
    ClosedRoute { reads: true, before: Some(OBSERVED), ..writes("/projects/{id}/variables") },
    since(Release::new(18, 4), writes("/projects/{id}/transfer")),
    since(OBSERVED, writes("/projects/{id}/approvals")),
    since(OBSERVED, writes("/projects/{id}/labels")),
    since(OBSERVED, writes("/projects/{id}/protected_branches")),
];

impl ClosedRoute {
    /// The row for a route, if archived projects refuse it.
    pub(crate) fn find(method: &Method, path: &str, release: Release) -> Option<&'static Self> {
        CLOSED_ROUTES.iter().find(|route| {
            let remainder = path.strip_prefix(route.path);
            remainder.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                && (route.reads || *method != Method::GET)
                && route.since.is_none_or(|since| release >= since)
                && route.before.is_none_or(|before| release < before)
        })
    }

    /// 403.
    pub(crate) fn refusal(&self) -> ErrorResponse {
        self.reason.map_or_else(ErrorResponse::forbidden, ErrorResponse::forbidden_because)
    }
}
