//! A transport that answers from a snapshot and has no connection.

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE};

use super::{
    Snapshot, SnapshotHeader,
    contents::{LookupResult, ReadFailure},
    format_to_minute,
    question::Query,
    reduce,
    seal::Unsealer,
};
use crate::{
    api::{RequestPhase, SendError, SendErrorKind, Transport, WireRequest, WireResponse},
    desired::Desired,
    digest::DigestKey,
    observe::SANDBOX_HEADER,
    operation::{Method, ResponseBody},
    secret::Secrets,
    value::Json,
};

/// Answers requests from a snapshot.
#[derive(Debug)]
pub struct OfflineTransport {
    snapshot: Snapshot,
    unsealer: Unsealer,
}

impl OfflineTransport {
    /// Creates a transport that answers from `snapshot`, which was taken with `key`.
    pub fn new(snapshot: Snapshot, key: Option<DigestKey>) -> Self {
        Self { snapshot, unsealer: Unsealer::new(key) }
    }

    /// Sets the declarations and secret values whose digests are recognised.
    pub fn use_declarations(&self, desired: &Desired, secrets: &Secrets) {
        self.unsealer.use_declarations(desired, secrets);
    }

    fn look_up(&self, query: &Query) -> LookupResult {
        let contents = &self.snapshot.contents;
        let mut json = match contents.look_up(query)? {
            Ok(json) => json,
            failure => return Some(failure),
        };
        let path = contents.container_path(query);
        let nested_fields = reduce::nested_sections(query.op)
            .filter_map(|(nested, _)| Some((nested, nested.scoped_kind.nested_field?)));
        for (section, field) in nested_fields {
            if let Some(rows) = json.get_mut(field) {
                match self.unsealer.unseal(section, &path, rows.take()) {
                    Ok(unsealed) => *rows = unsealed,
                    failed => return Some(failed),
                }
            }
        }
        Some(match reduce::find_read_section(query.op) {
            Some(section) => self.unsealer.unseal(section, &path, json),
            None => Ok(json),
        })
    }

    fn answer(&self, request: &WireRequest) -> Result<WireResponse, SendError> {
        let header = &self.snapshot.header;
        let query = Query::parse(&request.target).filter(|_| request.method == Method::Get);
        let Some(query) = query else {
            return Err(offline_error(&explain_no_response(header, None)));
        };
        build_response(&query, self.look_up(&query), header, |reason| {
            explain_no_response(header, reason)
        })
    }
}

impl Transport for OfflineTransport {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        Box::pin(std::future::ready(self.answer(&request)))
    }
}

/// Explains why the snapshot has no response. `failure` is the reason if the read failed when the
/// snapshot was taken.
fn explain_no_response(header: &SnapshotHeader, failure: Option<&str>) -> String {
    let taken_at = format_to_minute(header.started_at);
    match failure {
        Some(reason) => format!("it could not be read for the snapshot of {taken_at}: {reason}"),
        None => format!(
            "the snapshot of {taken_at} does not contain it; take a new snapshot, which contains all sections that are declared then, or every section with `--all-sections`"
        ),
    }
}

/// The error for a request that the snapshot cannot answer.
pub(super) fn offline_error(reason: &str) -> SendError {
    SendError::new(RequestPhase::MaybeSent, SendErrorKind::Offline, reason)
}

/// Builds the response to a request. `explain` returns the message if the snapshot has no response.
/// Its argument is the reason of a failed read.
pub(super) fn build_response(
    query: &Query,
    response: LookupResult,
    header: &SnapshotHeader,
    explain: impl Fn(Option<&str>) -> String,
) -> Result<WireResponse, SendError> {
    match response {
        Some(Ok(json)) => Ok(success_response(query, &json, header)),
        Some(Err(failure)) => match failure.status {
            Some(status) => Ok(failure_response(status, &failure, header)),
            None => Err(offline_error(&explain(Some(&failure.message)))),
        },
        None => Err(offline_error(&explain(None))),
    }
}

/// A successful response. A list is a single page.
fn success_response(query: &Query, json: &Json, header: &SnapshotHeader) -> WireResponse {
    let mut headers = base_headers(header);
    if let (ResponseBody::List, Json::Array(entries)) = (query.op.row().response, json) {
        let entry_count = entries.len();
        // The page size exceeds the length of the list, because a page that is not full is the last
        // page.
        for (name, number) in
            [("x-page", 1), ("x-per-page", entry_count + 1), ("x-total", entry_count)]
        {
            headers.insert(name, HeaderValue::from(number));
        }
    }
    WireResponse { status: 200, headers, body: Ok(json.to_string().into()) }
}

/// The response to a failed request.
pub(super) fn failure_response(
    status: u16,
    failure: &ReadFailure,
    header: &SnapshotHeader,
) -> WireResponse {
    let mut headers = base_headers(header);
    // The embedded sandbox has no URL, and therefore no base path.
    let url_path = url::Url::parse(&header.service_address)
        .map(|url| url.path().trim_end_matches('/').to_owned());
    let base_path = url_path.unwrap_or_default();
    let location = failure.moved_to.map(|id| format!("{base_path}/api/v4/projects/{id}"));
    for (name, value) in [("x-request-id", failure.request_id.clone()), ("location", location)] {
        let value = value.and_then(|value| HeaderValue::from_str(&value).ok());
        headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
    }
    let mut body = format!("{status} {}", failure.message);
    if !failure.is_route {
        body = serde_json::json!({ "message": body.trim_end() }).to_string();
    }
    WireResponse { status, headers, body: Ok(body.into()) }
}

fn base_headers(header: &SnapshotHeader) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if header.is_sandbox {
        headers.insert(SANDBOX_HEADER, HeaderValue::from_static("true"));
    }
    headers
}
