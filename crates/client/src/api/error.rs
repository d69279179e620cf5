//! The errors of requests.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use super::{
    message::{CERTIFICATE_PAGE_MESSAGE, HTML_PAGE_MESSAGE, NotFoundCause},
    transport::{RequestPhase, SendError, SendErrorKind},
};
use crate::{
    cause::{Cause, CauseParts},
    field::{Scope, Tier},
    operation::{GROUP_MEMBER_DELETE, MEMBER_DELETE, Operation},
    page::PageError,
    planted::Bug,
};

/// The hint for too many requests.
const WAIT_HINT: &str = "try again later, or with fewer requests at once";

/// A request that failed. Cheap to clone.
///
/// The text of the error contains the operation, the method, the path, the status, the service's
/// message and the request's id. The text never contains a body, a header or a secret.
/// [`hint`](Self::hint) contains help for the user.
#[derive(Clone, Debug)]
pub struct ApiError(Arc<ErrorData>);

#[derive(Clone, Debug)]
struct ErrorData {
    operation: &'static Operation,
    path: String,
    kind: ErrorKind,
    /// When the last attempt with unknown outcome began, on the client's clock; only for writes.
    in_doubt_since: Option<Duration>,
    /// When a request with outdated live values may be rebuilt and sent again, on the client's
    /// clock.
    retry_at: Option<Duration>,
}

/// The kind of failure. Its text continues a sentence about the request.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ErrorKind {
    /// The service answered with a failure.
    #[error("{0}")]
    Refused(Rejection),
    /// No response arrived.
    #[error("{}", if .0.kind == SendErrorKind::Offline { "was not sent" } else { "got no answer" })]
    Unanswered(#[source] SendError),
    /// The response has an unexpected form, for example because a proxy sent it.
    #[error("answered {status} with {why}")]
    Malformed { status: u16, why: &'static str, request_id: Option<String> },
    /// A collection could not be read to its end.
    #[error("returned an incomplete list")]
    Page(#[source] PageError),
    /// A secret or a file for the body is missing.
    #[error("was not sent: {0}")]
    MissingBodyInput(String),
    /// The live values that the request was built from may be outdated. If a rate limit of
    /// this operation caused the delay, contains the time from which the request may be sent, on the
    /// client's clock.
    #[error("was not sent: the live values in it were read too long ago")]
    Stale(Option<Duration>),
    /// An earlier request showed that further requests are useless.
    #[error("was not sent: an earlier request was refused")]
    AfterFatalError(#[source] ApiError),
    /// The caller interrupted the run.
    #[error("was not sent, or its response was not awaited: the run was interrupted")]
    Interrupted,
    /// The run has no requests or no time left. Contains the failure of the attempt before.
    #[error("was not sent, or its response was not awaited: the run has used up its {0}{failure}", failure = previous_failure_text(.1.as_deref()))]
    OverBudget(RunLimit, Option<Box<Self>>),
    /// The service requests a wait that is too long.
    #[error("was not sent: the service asks to wait for {} seconds", .0.as_secs())]
    WaitTooLong(Duration),
}

/// A limit of a run that can be used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunLimit {
    /// The time of `--deadline`.
    Time,
    /// The requests of `--max-requests`.
    Requests,
}

impl fmt::Display for RunLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time => "time",
            Self::Requests => "number of requests",
        })
    }
}

/// The end of a sentence about the failure of the attempt before; empty if there is none.
fn previous_failure_text(failure: Option<&ErrorKind>) -> String {
    failure.map_or_else(String::new, |failure| format!("; the attempt before {failure}"))
}

impl ErrorKind {
    /// Adds the failure of the attempt before to the error that the budget is used up.
    pub(super) fn after_failure(self, failure: Option<Self>) -> Self {
        match self {
            Self::OverBudget(limit, _) => Self::OverBudget(limit, failure.map(Box::new)),
            other => other,
        }
    }
}

/// A response in which the service refused the request.
#[derive(Clone, Debug)]
pub(super) struct Rejection {
    pub(super) status: u16,
    /// The message of the service, without the status, secrets and control characters. Its length
    /// is limited.
    pub(super) message: String,
    pub(super) request_id: Option<String>,
    pub(super) cause: NotFoundCause,
    /// The id of the project that a redirect on this service leads to.
    pub(super) moved_to: Option<u64>,
    /// True if the response is a redirect to another origin.
    pub(super) has_foreign_redirect: bool,
}

impl Rejection {
    /// True if the response gives no reason.
    fn has_no_detail(&self) -> bool {
        self.message.is_empty() || self.message.eq_ignore_ascii_case("forbidden")
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let redirect_note =
            if self.has_foreign_redirect { ", a redirect to another place" } else { "" };
        write!(f, "answered {}{redirect_note}", self.status)?;
        match self.moved_to {
            Some(id) => write!(f, ": the project has moved; its id is {id}"),
            None if self.message.is_empty() => Ok(()),
            None => write!(f, ": {}", self.message),
        }
    }
}

impl ApiError {
    pub(super) fn new(operation: &'static Operation, path: String, kind: ErrorKind) -> Self {
        let retry_at = if let ErrorKind::Stale(instant) = kind { instant } else { None };
        Self(Arc::new(ErrorData { operation, path, kind, in_doubt_since: None, retry_at }))
    }

    /// Adds the start of the attempt with unknown outcome, and the time for another attempt.
    pub(crate) fn with_times(
        self,
        in_doubt_since: Option<Duration>,
        retry_at: Option<Duration>,
    ) -> Self {
        let retry_at = retry_at.or(self.0.retry_at);
        Self(Arc::new(ErrorData { in_doubt_since, retry_at, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// The operation that failed.
    pub fn operation(&self) -> &'static Operation {
        self.0.operation
    }

    /// The path below `/api/v4`, without the query.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// The status of the response, if one arrived.
    pub fn status(&self) -> Option<u16> {
        match &self.0.kind {
            ErrorKind::Refused(rejection) => Some(rejection.status),
            ErrorKind::Malformed { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The kind of failure.
    pub(super) fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The message of the service, if the service refused the request. It has at most 2 KiB, and
    /// contains no control characters and no known secrets.
    pub fn message(&self) -> Option<&str> {
        self.rejection().map(|rejection| rejection.message.as_str())
    }

    /// The request's id in the service's log.
    pub fn request_id(&self) -> Option<&str> {
        match &self.0.kind {
            ErrorKind::Refused(Rejection { request_id, .. })
            | ErrorKind::Malformed { request_id, .. } => request_id.as_deref(),
            _ => None,
        }
    }

    /// When the last attempt with unknown outcome began, on the client's clock; only for writes. The
    /// caller must read the live state before sending the write again.
    pub fn in_doubt_since(&self) -> Option<Duration> {
        self.0.in_doubt_since
    }

    /// When a stale write may be sent, on the client's clock. Before that, the caller must read the
    /// live values again and rebuild the request.
    pub fn retry_at(&self) -> Option<Duration> {
        self.0.retry_at
    }

    /// True if the request was not sent because its live values were read too long ago.
    pub fn is_stale(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Stale(_))
    }

    /// True for any 404.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// True for a 404 because the requested object does not exist, or because the caller may not
    /// see it. False if the cause of the 404 is the route or a proxy.
    pub fn is_object_not_found(&self) -> bool {
        self.is_not_found() && !self.is_route_unknown_or_hidden()
    }

    /// The cause of a 404.
    fn not_found_cause(&self) -> Option<NotFoundCause> {
        self.rejection()
            .filter(|rejection| rejection.status == 404)
            .map(|rejection| rejection.cause)
    }

    /// True for a 404 because the group or project does not exist, or because the caller may not
    /// see it. A run may create a group or project only after such a 404.
    pub fn is_container_not_found_in(&self, scope: Scope) -> bool {
        let cause = self.not_found_cause();
        cause == Some(NotFoundCause::Container(scope))
            || (cause.is_some() && Bug::TreatAnyNotFoundAsMissing.is_planted())
    }

    /// True for a 404 because the group or project that the request is for does not exist.
    pub fn is_container_not_found(&self) -> bool {
        Scope::ALL.into_iter().any(|scope| self.is_container_not_found_in(scope))
    }

    /// True for a 404 because the service does not have the route or hides it, or because a proxy
    /// answered. The address may be wrong, or the proxy changes paths. Such a 404 does not mean
    /// that the requested object is absent.
    pub fn is_route_unknown_or_hidden(&self) -> bool {
        matches!(self.not_found_cause(), Some(NotFoundCause::Route | NotFoundCause::Hidden))
    }

    /// True for a 404 because the list has no entries ([`Operation::empty_as`]).
    pub fn is_empty_list(&self) -> bool {
        let empty_message = self.operation().empty_as.filter(|_| self.is_not_found());
        empty_message
            .is_some_and(|marker| self.message().is_some_and(|message| message.contains(marker)))
    }

    /// True for a 404 because a licence, a flag, a setting or the caller's role hides the object.
    /// For some objects, the service answers with the same 404 if the object is absent.
    pub fn is_hidden(&self) -> bool {
        self.not_found_cause() == Some(NotFoundCause::Hidden)
    }

    /// True for a 404 because the object below the group or project is absent or hidden. False if
    /// the cause of the 404 is the container or the route.
    pub fn is_entry_not_found(&self) -> bool {
        self.is_not_found()
            && !self.is_container_not_found()
            && self.not_found_cause() != Some(NotFoundCause::Route)
    }

    /// True if the service rejected the token in this request, or in the request that ended the
    /// run.
    pub fn is_unauthorized(&self) -> bool {
        self.ending_error().status() == Some(401)
            && !self.ending_error().operation().denies_with_401
    }

    /// True if the service answered 403 to this request, or to the request that ended the run. A
    /// 401 counts as well for an operation that denies access with 401.
    pub fn is_forbidden(&self) -> bool {
        match self.ending_error().status() {
            Some(401) => self.ending_error().operation().denies_with_401,
            status => status == Some(403),
        }
    }

    /// True if the project has another path now.
    pub fn is_moved(&self) -> bool {
        self.rejection().is_some_and(|rejection| {
            let message = rejection.message.to_ascii_lowercase();
            rejection.moved_to.is_some()
                || (rejection.status == 405 && message.contains("moved project"))
        })
    }

    /// The id of the project that a redirect leads to, if the response contains the id.
    pub fn moved_to(&self) -> Option<u64> {
        self.rejection()?.moved_to
    }

    /// True if nothing of the request was sent, because there was no connection.
    pub fn has_failed_to_connect(&self) -> bool {
        matches!(&self.0.kind, ErrorKind::Unanswered(e) if e.phase == RequestPhase::NotSent)
    }

    /// True if TLS failed, because the other side is not trusted.
    pub fn is_tls_failure(&self) -> bool {
        matches!(&self.0.kind, ErrorKind::Unanswered(e) if e.kind == SendErrorKind::Tls)
    }

    /// True if the run ended before this request got a response: an earlier request showed that
    /// further requests are useless (401, or 403 for everything), or the caller interrupted the run.
    pub fn is_after_run_end(&self) -> bool {
        matches!(self.0.kind, ErrorKind::AfterFatalError(_) | ErrorKind::Interrupted)
    }

    /// True if the caller interrupted the run before the response arrived.
    pub fn is_interrupted(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Interrupted)
    }

    /// True if another run may succeed without any repair.
    pub fn is_transient(&self) -> bool {
        match &self.0.kind {
            ErrorKind::Refused(rejection) => {
                matches!(rejection.status, 408 | 409 | 423 | 429 | 500..)
            }
            ErrorKind::Unanswered(error) => !matches!(
                error.kind,
                SendErrorKind::Tls | SendErrorKind::InvalidRequest | SendErrorKind::Offline
            ),
            ErrorKind::Malformed { .. }
            | ErrorKind::Page(_)
            | ErrorKind::Stale(_)
            | ErrorKind::Interrupted
            | ErrorKind::OverBudget(..)
            | ErrorKind::WaitTooLong(_) => true,
            ErrorKind::AfterFatalError(cause) => cause.is_transient(),
            ErrorKind::MissingBodyInput(_) => false,
        }
    }

    /// True if this request, or the request that ended the run, got no response from the service.
    /// False if the run is offline, and the snapshot does not contain the response.
    pub fn has_no_response(&self) -> bool {
        matches!(&self.ending_error().0.kind, ErrorKind::Unanswered(e) if e.kind != SendErrorKind::Offline)
    }

    /// True if the run has no requests or no time left.
    pub fn is_over_budget(&self) -> bool {
        matches!(self.0.kind, ErrorKind::OverBudget(..))
    }

    /// True if the run has ended, or its budget is used up.
    pub fn ends_run_or_budget(&self) -> bool {
        self.is_after_run_end() || self.is_over_budget()
    }

    /// The reason why the collection could not be read to its end.
    pub fn page_error(&self) -> Option<&PageError> {
        match &self.0.kind {
            ErrorKind::Page(error) => Some(error),
            _ => None,
        }
    }

    /// Help for the user: what to do next.
    pub fn hint(&self) -> Option<&'static str> {
        let hint = match &self.ending_error().0.kind {
            ErrorKind::Unanswered(SendError { hint: Some(hint), .. }) => hint,
            ErrorKind::Unanswered(e) if e.kind == SendErrorKind::Offline => return None,
            ErrorKind::Unanswered(_) => "check the address and the network",
            ErrorKind::WaitTooLong(_) => WAIT_HINT,
            ErrorKind::OverBudget(RunLimit::Time, _) => {
                "raise `--deadline`, select less with `--only`, or run an interrupted `apply` again"
            }
            ErrorKind::OverBudget(RunLimit::Requests, _) => {
                "raise `--max-requests`, select less with `--only`, or run an interrupted `apply` again"
            }
            ErrorKind::Page(PageError::Contradiction(_)) => {
                "the list may have changed while it was read, or a proxy altered the answers; try again"
            }
            ErrorKind::Page(PageError::TooLong(_)) => {
                "narrow the list with its parameters, or read it page by page"
            }
            ErrorKind::Page(PageError::Filtered) => "read it page by page",
            ErrorKind::Malformed { why: HTML_PAGE_MESSAGE, .. } => {
                "a sign-in page or a proxy answered instead of the service; check the address, and whether this network asks for a login first"
            }
            ErrorKind::Malformed { .. } => {
                "a proxy may have answered instead of the service; check the address"
            }
            ErrorKind::Refused(rejection) if rejection.has_foreign_redirect => {
                "undrift does not follow redirects with a token; check the address"
            }
            ErrorKind::Refused(rejection) => return self.rejection_hint(rejection),
            ErrorKind::Page(_)
            | ErrorKind::MissingBodyInput(_)
            | ErrorKind::Stale(_)
            | ErrorKind::AfterFatalError(_)
            | ErrorKind::Interrupted => {
                return None;
            }
        };
        Some(hint)
    }

    fn rejection_hint(&self, rejection: &Rejection) -> Option<&'static str> {
        Some(match rejection.status {
            429 => WAIT_HINT,
            401 if self.0.operation.denies_with_401 => {
                "the token needs a higher role, or the service has this switched off"
            }
            401 => {
                "the token is wrong, expired, revoked or of another service: make one there with the scope `api` (`read_api` for plans), and set it in UNDRIFT_TOKEN or the file of `--token-file`"
            }
            403 if rejection.message.starts_with("insufficient_scope") => {
                "the token needs the scope `api` (`read_api` for plans)"
            }
            403 if rejection.message.contains("from the owner project") => {
                "declare the runner in this project, or write `state: unmanaged` for it"
            }
            403 if !rejection.has_no_detail() => return None,
            403 if [MEMBER_DELETE.row(), GROUP_MEMBER_DELETE.row()].contains(&self.0.operation) => {
                "to remove the bot of an access token, revoke that token, or write `state: unmanaged` for the bot; to remove other members, undrift's token needs a higher role"
            }
            403 => {
                "the token needs a higher role, or the project does not allow this now (archived, or the feature is off)"
            }
            404 if self.0.operation.tier > Tier::Free => {
                "the service may lack the licence for this"
            }
            404 if rejection.cause == NotFoundCause::Hidden => {
                "the service may lack the licence, flag or setting for this"
            }
            404 if self.is_route_unknown_or_hidden() => {
                "the address must be the address of the service, without a group or project; if it is, a proxy may decode `%2F` in paths"
            }
            400 if rejection.message.starts_with("Invalid reference name") => {
                "write a branch, a tag or a commit that exists as `ref`"
            }
            405 if rejection.message.contains("Offset pagination") => {
                "the service does not number the pages of a list that is so long"
            }
            400 if rejection.message == CERTIFICATE_PAGE_MESSAGE => {
                "the service requires a client certificate: pass it with `--client-cert`"
            }
            400 if rejection.message.contains("Could not change HEAD") => {
                "declare the branch, as in `branches: [{name: develop, ref: main}]`, or create it first"
            }
            400 if rejection.message.contains("is ambiguous") => {
                "create the branch or tag first, or write its full name (`refs/heads/NAME`)"
            }
            _ if self.is_moved() => "write the project's new path in the manifest",
            500.. => "the service or a proxy before it has a fault: try again later",
            _ => return None,
        })
    }

    /// The error that ended the run, or else this error.
    fn ending_error(&self) -> &Self {
        match &self.0.kind {
            ErrorKind::AfterFatalError(cause) => cause,
            _ => self,
        }
    }

    fn rejection(&self) -> Option<&Rejection> {
        match &self.0.kind {
            ErrorKind::Refused(rejection) => Some(rejection),
            _ => None,
        }
    }

    /// The method and the path.
    fn request_line(&self) -> String {
        format!("{} {}", self.0.operation.method, self.0.path)
    }

    /// The text of the error, without the id of the request.
    fn describe_without_id(&self) -> String {
        let ErrorData { operation, kind, in_doubt_since: in_doubt, .. } = &*self.0;
        let doubt_note = if in_doubt.is_some() { "; it may have taken effect" } else { "" };
        format!("{}: `{}` {kind}{doubt_note}", operation.id, self.request_line())
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe_without_id())?;
        self.request_id().map_or(Ok(()), |id| write!(f, " (request {id})"))
    }
}

/// The message includes the error's sources, for example the network error.
impl From<&ApiError> for Cause {
    fn from(error: &ApiError) -> Self {
        let mut message = error.describe_without_id();
        let mut source = error.source();
        while let Some(cause) = source {
            message += &format!(": {cause}");
            source = cause.source();
        }
        CauseParts {
            message: message.into(),
            operation: Some(error.operation().id),
            status: error.status(),
            request_id: error.request_id().map(str::to_owned),
            help: error.hint().map(Into::into),
            transient: error.is_transient(),
            withheld: None,
            request_line: error.request_line(),
        }
        .into()
    }
}

impl Error for ApiError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.kind.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors for tests of code that handles errors.
    impl ApiError {
        /// The error for a response to `operation` with this status, and nothing else.
        pub(crate) fn with_status(operation: &'static Operation, status: u16) -> Self {
            let rejection = Rejection {
                status,
                message: String::new(),
                request_id: None,
                cause: NotFoundCause::Other,
                moved_to: None,
                has_foreign_redirect: false,
            };
            Self::new(operation, "/somewhere".to_owned(), ErrorKind::Refused(rejection))
        }

        /// The error of an `operation` that was not sent. If `is_stale`, its live values were too
        /// old. Otherwise the run was interrupted.
        pub(crate) fn not_sent(operation: &'static Operation, is_stale: bool) -> Self {
            let kind = if is_stale { ErrorKind::Stale(None) } else { ErrorKind::Interrupted };
            Self::new(operation, "/somewhere".to_owned(), kind)
        }
    }

    #[test]
    fn the_hint_for_a_refused_member_delete_names_bots() {
        let find_hint = |operation| ApiError::with_status(operation, 403).hint().unwrap();
        assert!(find_hint(MEMBER_DELETE.row()).contains("bot"));
        assert!(find_hint(GROUP_MEMBER_DELETE.row()).contains("bot"));
        assert!(!find_hint(crate::operation::MEMBER_UPDATE.row()).contains("bot"));
    }
}
