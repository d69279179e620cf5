//! The routes that an archived project refuses with 403, for every caller. It accepts all others.

use crate::prelude::*;

/// The routes at and below a path that archived projects refuse.
#[derive(Debug)]
pub(crate) struct ArchiveRule {
    path: &'static str,
    /// True if reading is refused too.
    refuses_reads: bool,
    first_release: Option<Release>,
    end_release: Option<Release>,
    reason: Option<&'static str>,
}

const fn refuse_writes(path: &'static str) -> ArchiveRule {
    ArchiveRule { path, refuses_reads: false, first_release: None, end_release: None, reason: None }
}

const fn refuse_since(release: Release, rule: ArchiveRule) -> ArchiveRule {
    ArchiveRule { first_release: Some(release), ..rule }
}

const ARCHIVE_RULES: &[ArchiveRule] = &[
    ArchiveRule {
        reason: Some("You are not allowed to push into this branch"),
        ..refuse_writes("/projects/{id}/repository/files")
    },
    refuse_writes("/projects/{id}/repository"),
    refuse_writes("/projects/{id}/uploads"),
    refuse_writes("/projects/{id}/pipeline_schedules"),
    ArchiveRule {
        refuses_reads: true,
        end_release: Some(OBSERVED_RELEASE),
        ..refuse_writes("/projects/{id}/variables")
    },
    refuse_since(Release::new(18, 4), refuse_writes("/projects/{id}/transfer")),
    refuse_since(OBSERVED_RELEASE, refuse_writes("/projects/{id}/approvals")),
    refuse_since(OBSERVED_RELEASE, refuse_writes("/projects/{id}/labels")),
    refuse_since(OBSERVED_RELEASE, refuse_writes("/projects/{id}/protected_branches")),
];

impl ArchiveRule {
    /// The rule for a route, if archived projects refuse it.
    pub(crate) fn find(method: &Method, path: &str, release: Release) -> Option<&'static Self> {
        ARCHIVE_RULES.iter().find(|rule| {
            let path_suffix = path.strip_prefix(rule.path);
            path_suffix.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('/'))
                && (rule.refuses_reads || *method != Method::GET)
                && rule.first_release.is_none_or(|first_release| release >= first_release)
                && rule.end_release.is_none_or(|end_release| release < end_release)
        })
    }

    /// The refusal: 403, with the reason if there is one.
    pub(crate) fn error(&self) -> ErrorResponse {
        self.reason.map_or_else(ErrorResponse::forbidden, ErrorResponse::forbidden_because)
    }
}
