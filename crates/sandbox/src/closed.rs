//! The routes that an archived project refuses with 403, for every caller. It allows all others.

use http::Method;
use undrift_release::Release;

use super::answer::ErrorResponse;
use super::profile::OBSERVED_RELEASE;

/// The routes at and below a path that archived projects refuse.
#[derive(Debug)]
pub(crate) struct ClosedRoute {
    path: &'static str,
    /// True if reading is refused too.
    closes_reads: bool,
    since_release: Option<Release>,
    before_release: Option<Release>,
    reason: Option<&'static str>,
}

const fn closed_for_writes(path: &'static str) -> ClosedRoute {
    ClosedRoute {
        path,
        closes_reads: false,
        since_release: None,
        before_release: None,
        reason: None,
    }
}

const fn closed_since(release: Release, route: ClosedRoute) -> ClosedRoute {
    ClosedRoute { since_release: Some(release), ..route }
}

const CLOSED_ROUTES: &[ClosedRoute] = &[
    ClosedRoute {
        reason: Some("You are not allowed to push into this branch"),
        ..closed_for_writes("/projects/{id}/repository/files")
    },
    closed_for_writes("/projects/{id}/repository"),
    closed_for_writes("/projects/{id}/uploads"),
    closed_for_writes("/projects/{id}/pipeline_schedules"),
    ClosedRoute {
        closes_reads: true,
        before_release: Some(OBSERVED_RELEASE),
        ..closed_for_writes("/projects/{id}/variables")
    },
    closed_since(Release::new(18, 4), closed_for_writes("/projects/{id}/transfer")),
    closed_since(OBSERVED_RELEASE, closed_for_writes("/projects/{id}/approvals")),
    closed_since(OBSERVED_RELEASE, closed_for_writes("/projects/{id}/labels")),
    closed_since(OBSERVED_RELEASE, closed_for_writes("/projects/{id}/protected_branches")),
];

impl ClosedRoute {
    /// The row for a route, if archived projects refuse it.
    pub(crate) fn find(method: &Method, path: &str, release: Release) -> Option<&'static Self> {
        CLOSED_ROUTES.iter().find(|route| {
            let remainder = path.strip_prefix(route.path);
            remainder.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                && (route.closes_reads || *method != Method::GET)
                && route.since_release.is_none_or(|since| release >= since)
                && route.before_release.is_none_or(|before| release < before)
        })
    }

    /// 403.
    pub(crate) fn refusal(&self) -> ErrorResponse {
        self.reason.map_or_else(ErrorResponse::forbidden, ErrorResponse::forbidden_because)
    }
}
