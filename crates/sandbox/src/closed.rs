//! What an archived project refuses, by route: 403 for everybody. Other routes stay open.

use http::Method;
use undrift_release::Release;

use super::answer::Failure;
use super::profile::OBSERVED;

/// The routes at and below a path.
struct Row {
    path: &'static str,
    /// Whether reading is refused too.
    reads: bool,
    since: Option<Release>,
    before: Option<Release>,
    reason: Option<&'static str>,
}

const fn writes(path: &'static str) -> Row {
    Row { path, reads: false, since: None, before: None, reason: None }
}

const fn since(release: Release, row: Row) -> Row {
    Row { since: Some(release), ..row }
}

const CLOSED: &[Row] = &[
    Row {
        reason: Some("You are not allowed to push into this branch"),
        ..writes("/projects/{id}/repository/files")
    },
    writes("/projects/{id}/repository"),
    writes("/projects/{id}/uploads"),
    writes("/projects/{id}/pipeline_schedules"),
    Row { reads: true, before: Some(OBSERVED), ..writes("/projects/{id}/variables") },
    since(Release::new(18, 4), writes("/projects/{id}/transfer")),
    since(OBSERVED, writes("/projects/{id}/approvals")),
    since(OBSERVED, writes("/projects/{id}/labels")),
    since(OBSERVED, writes("/projects/{id}/protected_branches")),
];

/// How an archived project refuses a route, if it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed(Option<&'static str>);

impl Closed {
    /// The rule for a route.
    pub(crate) fn of(method: &Method, path: &str, release: Release) -> Option<Self> {
        let row = CLOSED.iter().find(|row| {
            let rest = path.strip_prefix(row.path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                && (row.reads || *method != Method::GET)
                && row.since.is_none_or(|since| release >= since)
                && row.before.is_none_or(|before| release < before)
        });
        row.map(|row| Self(row.reason))
    }

    /// 403.
    pub(crate) fn refusal(self) -> Failure {
        self.0.map_or_else(Failure::forbidden, Failure::forbidden_because)
    }
}
