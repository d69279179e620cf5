//! Classifies one response as a success, a refusal, or unreadable.

use std::time::Duration;

use http::HeaderMap;

use super::{
    budget::Quota,
    call::ClientCore,
    client::ApiResponse,
    error::{ErrorKind, Rejection},
    limit::{header_text, retry_after},
    message::{self, HTML_PAGE_MESSAGE},
    quote::QuoteRedactor,
    retry::{self, SendOutcome},
    transport::{BodyError, WireResponse},
};
use crate::{
    operation::{self, KeyFilter, Method, Operation},
    value::Json,
};

/// One classified response.
pub(super) struct SendVerdict {
    pub(super) outcome: SendOutcome,
    /// The wait that the service requested.
    pub(super) retry_after: Option<Duration>,
    /// The user's remaining budget of requests, from the headers of the response.
    pub(super) quota: Option<Quota>,
    pub(super) result: Result<ApiResponse, ErrorKind>,
}

impl SendVerdict {
    pub(super) const fn unanswered(outcome: SendOutcome, error: ErrorKind) -> Self {
        Self { outcome, retry_after: None, quota: None, result: Err(error) }
    }
}

impl ClientCore {
    /// Classifies one response. Its message is redacted with `redactor`.
    pub(super) fn classify_response(
        &self,
        operation: &'static Operation,
        response: WireResponse,
        key_filter: &KeyFilter,
        redactor: &QuoteRedactor,
    ) -> SendVerdict {
        let (status, local_time) = (response.status, self.settings.clock.system_time());
        let quota = Quota::read(&response.headers, local_time);
        let mut requested_wait = None;
        let (outcome, result) = match status {
            200..300 => match parse_success(operation, &response, key_filter) {
                Ok(body) => (
                    SendOutcome::Success,
                    Ok(ApiResponse { status, headers: response.headers, body }),
                ),
                Err((outcome, reason)) => {
                    let request_id = request_id(&response.headers);
                    (outcome, Err(ErrorKind::Malformed { status, why: reason, request_id }))
                }
            },
            // The service had nothing to do: for example, the project already had the star, or was
            // not a fork.
            304 if operation.answers_not_modified => {
                let unchanged = ApiResponse { status, headers: response.headers, body: Json::Null };
                (SendOutcome::Success, Ok(unchanged))
            }
            status => {
                let rejection = self.read_rejection(&response, redactor);
                let is_duplicate_topic = rejection.message.contains("PG::UniqueViolation")
                    && rejection.message.contains("index_topics_on");
                let outcome = match status {
                    429 => SendOutcome::Throttled,
                    409 if rejection.message.to_ascii_lowercase().contains("resource lock") => {
                        SendOutcome::Locked
                    }
                    // Another request created the same topic meanwhile; nothing was saved.
                    400 if is_duplicate_topic => SendOutcome::Locked,
                    _ if retry::is_failure_status(status) => SendOutcome::Faulty,
                    _ => SendOutcome::Refused,
                };
                if matches!(outcome, SendOutcome::Throttled | SendOutcome::Faulty) {
                    requested_wait = retry_after(status, &response.headers, local_time);
                }
                (outcome, Err(ErrorKind::Refused(rejection)))
            }
        };
        SendVerdict { outcome, retry_after: requested_wait, quota, result }
    }

    fn read_rejection(&self, response: &WireResponse, redactor: &QuoteRedactor) -> Rejection {
        let status = response.status;
        let body = response.body.as_deref().unwrap_or_default();
        let (message, not_found_cause) = message::parse_failure_body(status, body, |text| {
            redactor.redact(&self.secrets.redact(text))
        });
        let location = header_text(&response.headers, "location");
        let location = location.filter(|_| (300..400).contains(&status));
        let moved_to = location.and_then(|location| self.service.project_id_in(location));
        let has_foreign_redirect = location.is_some() && moved_to.is_none();
        let request_id = request_id(&response.headers);
        Rejection {
            status,
            message,
            request_id,
            cause: not_found_cause,
            moved_to,
            has_foreign_redirect,
        }
    }
}

/// Parses the body of a successful response, or returns the reason why the body is invalid.
fn parse_success(
    operation: &Operation,
    response: &WireResponse,
    key_filter: &KeyFilter,
) -> Result<Json, (SendOutcome, &'static str)> {
    let WireResponse { status, headers, body } = response;
    let is_read = operation.method == Method::Get;
    let body = body.as_ref().map_err(|e| match e {
        BodyError::Truncated => (SendOutcome::Unreadable, "a truncated body"),
        BodyError::TooLarge => (SendOutcome::Oversized, "a body of more than 32 MiB"),
    })?;
    if is_read && !matches!(status, 200 | 204) {
        return Err((SendOutcome::Unreadable, "an unexpected status"));
    }
    let may_be_empty = matches!(status, 202 | 204 | 205) || operation.method == Method::Delete;
    if body.is_empty() && may_be_empty {
        return Ok(Json::Null);
    }
    if !has_content_type(headers, "application/json") {
        let is_html = has_content_type(headers, "text/html");
        return Err((
            SendOutcome::Unreadable,
            if is_html { HTML_PAGE_MESSAGE } else { "something other than JSON" },
        ));
    }
    let body = super::parse::parse_filtered(body, key_filter)
        .ok_or((SendOutcome::Unreadable, "broken JSON"))?;
    // A write succeeded even if its response is not an object.
    if is_read
        && operation.response == operation::ResponseBody::One
        && !(body.is_object() || body.is_null())
    {
        return Err((SendOutcome::Unreadable, "something other than an object"));
    }
    Ok(body)
}

fn has_content_type(headers: &HeaderMap, expected_type: &str) -> bool {
    let content_type = header_text(headers, "content-type").unwrap_or_default();
    content_type
        .split(';')
        .next()
        .is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case(expected_type))
}

/// The id of the request in the service's log; `None` if the header is missing or does not look
/// like an id.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = header_text(headers, "x-request-id")?;
    let is_plausible = !id.is_empty()
        && id.len() <= 128
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b));
    is_plausible.then(|| id.to_owned())
}
