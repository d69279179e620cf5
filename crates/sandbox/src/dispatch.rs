//! Answers a request: finds the route, parses the parameters, finds the caller, runs the handler in
//! a transaction, adds the headers. This module neither waits nor uses a network.

use std::panic::{AssertUnwindSafe, catch_unwind};

use http::Uri;

use super::routes::{self, Route};
use super::{body, dialect};
use crate::prelude::*;

/// A request with a longer path and query is refused with 414.
const MAX_TARGET_BYTES: usize = 16 * 1024;

/// Answers a request from any source. A panic of the handler becomes a 500 and changes no data.
pub(crate) fn answer(service: &ServiceState, request: Request<Bytes>) -> Response<Bytes> {
    let method = request.method().clone();
    let if_none_match = request.headers().get(header::IF_NONE_MATCH).cloned();
    let request_body = request.body().clone();
    let result = catch_panics(|| {
        if method == Method::OPTIONS {
            let target = normalize_target(request.uri());
            let path = target.split('?').next().unwrap_or_default();
            return routes::answer_options(service.described_collections, path);
        }
        let (route, parsed_request) = parse_request(service, request)?;
        Ok(run_handler(service, route, parsed_request))
    });
    let mut answer = result.unwrap_or_else(Answer::from);
    dialect::apply_profile(&service.options.profile, &mut answer, &request_body);
    if is_read(&method) {
        answer = answer.with_etag(if_none_match.as_ref());
    }
    let mut response = into_response(answer);
    if method == Method::HEAD {
        response.body_mut().clear();
    }
    response
}

/// True if a request with this method only reads.
pub(crate) fn is_read(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

fn catch_panics(handler: impl FnOnce() -> Result<Answer>) -> Result<Answer> {
    catch_unwind(AssertUnwindSafe(handler))
        .unwrap_or_else(|_| Err(ErrorResponse::internal(&"a handler panicked")))
}

/// Parses the parts of a request that need no access to the database.
fn parse_request(
    service: &ServiceState,
    request: Request<Bytes>,
) -> Result<(&'static Route, ParsedRequest)> {
    let (parts, body) = request.into_parts();
    let target = normalize_target(&parts.uri);
    let is_too_long = target.len() > MAX_TARGET_BYTES;
    refuse_if(is_too_long, || ErrorResponse::error(StatusCode::URI_TOO_LONG, "414 URI Too Long"))?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (route, segments) =
        routes::find_route(service.described_collections, &effective_method(&parts), path)?;
    // This route accepts only numeric ids, no names, from every caller.
    let needs_numeric_ids = is_read(&route.method) && route.path == "/users/{user_id}";
    let mut segment_bytes = segments.iter().flat_map(|(_, value)| value.bytes());
    let has_non_numeric_id = needs_numeric_ids && !segment_bytes.all(|byte| byte.is_ascii_digit());
    refuse_if(has_non_numeric_id, ErrorResponse::route_not_found)?;
    let mut params = Params::default();
    params.add_form(query)?;
    body::add_body_params(&parts.headers, body, &mut params)?;
    if service.options.profile.normalizes_values && !is_read(&parts.method) {
        dialect::normalize_texts(&mut params);
    }
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host
        .or_else(|| parts.uri.authority().map(http::uri::Authority::as_str))
        .unwrap_or("localhost");
    let parsed_request = ParsedRequest {
        method: route.method.clone(),
        is_write: !is_read(&route.method),
        archive_refusal: closed::find_archive_refusal(
            &route.method,
            route.path,
            service.options.profile.release,
        ),
        params,
        segments,
        base_url: format!("http://{host}"),
        target: target.into_owned(),
        headers: parts.headers,
    };
    Ok((route, parsed_request))
}

/// The method of a request. A POST may name another method in a header, for clients that cannot send
/// PATCH.
fn effective_method(parts: &http::request::Parts) -> Method {
    let name = parts.headers.get("x-http-method-override");
    let name = name.filter(|_| parts.method == Method::POST).map_or(&[][..], HeaderValue::as_bytes);
    let mut methods = [Method::PUT, Method::PATCH, Method::DELETE].into_iter();
    let override_method =
        methods.find(|method| method.as_str().as_bytes().eq_ignore_ascii_case(name));
    override_method.unwrap_or_else(|| parts.method.clone())
}

/// Removes doubled and trailing slashes from the path. The service ignores such slashes.
fn normalize_target(uri: &Uri) -> Cow<'_, str> {
    let path = uri.path();
    if !path.contains("//") && !path.ends_with('/') {
        return Cow::Borrowed(uri.path_and_query().map_or("/", |target| target.as_str()));
    }
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Cow::Owned(format!("/{}{query}", segments.join("/")))
}

/// Runs the handler in its transaction.
fn run_handler(
    service: &ServiceState,
    route: &'static Route,
    parsed_request: ParsedRequest,
) -> Answer {
    let time = service.options.clock.now();
    if let Err(error) = service.purge_deleted(time) {
        return error.into();
    }
    let is_write = parsed_request.is_write;
    let mut request_count = None;
    let call_handler = |db: &Connection| {
        let release = service.options.profile.release;
        let user_and_token =
            access::authenticate(db, &parsed_request.headers, route, release, time);
        if let Some(limiter) = &service.limiter {
            let user_id = user_and_token.iter().flatten().next().map(|(user, _)| user.id);
            let count = request_count.insert(limiter.count_request(user_id, route, time));
            if let Some(refusal) = count.refusal() {
                return Ok(refusal);
            }
        }
        let caller = match user_and_token? {
            Some((user, token)) => (Some(resolve_sudo(db, &parsed_request, user)?), Some(token)),
            None => (None, None),
        };
        route.answer(&Call::new(service, db, caller, time, parsed_request))
    };
    let result =
        if is_write { service.store.write(call_handler) } else { service.store.read(call_handler) };
    let mut answer = result.unwrap_or_else(Answer::from);
    if let Some(request_count) = &request_count {
        request_count.add_headers(&mut answer);
    }
    answer
}

/// The user whose rights the call has: the user in `sudo`, or else the caller. Only an
/// administrator may send `sudo`.
fn resolve_sudo(db: &Connection, parsed_request: &ParsedRequest, user: User) -> Result<User> {
    let header = parsed_request.headers.get("sudo").and_then(|value| value.to_str().ok());
    let reference = match header {
        Some(reference) => Some(reference.to_owned()),
        None => parsed_request.text("sudo")?,
    };
    let Some(reference) = reference else { return Ok(user) };
    refuse_if(!user.admin, || ErrorResponse::forbidden_because("Must be admin to use sudo"))?;
    User::find_by_reference(db, &reference)?
        .ok_or_else(|| ErrorResponse::not_found(&format!("User with ID or username '{reference}'")))
}

/// Makes the HTTP response, with the headers that every response has.
pub(crate) fn into_response(answer: impl Into<Answer>) -> Response<Bytes> {
    let answer = answer.into();
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    let cache_rule = HeaderValue::from_static("max-age=0, private, must-revalidate");
    headers.insert(header::CACHE_CONTROL, cache_rule);
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("x-frame-options", HeaderValue::from_static("SAMEORIGIN"));
    if answer.body.is_some() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if ![StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&answer.status) {
        headers.insert(header::CONTENT_LENGTH, answer.body.as_ref().map_or(0, Vec::len).into());
    }
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    *response.body_mut() = answer.body.map_or_else(Bytes::new, Bytes::from);
    response
}

/// The text as the value of a header. The value is empty if a header cannot contain the text.
pub(crate) fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

/// Adds headers with the id of the request, its duration, and the mark of the sandbox.
pub(crate) fn add_request_headers(headers: &mut HeaderMap, id: &str, elapsed: Duration) {
    headers.insert("x-request-id", header_value(id));
    // Clients recognise the sandbox by this header, and mark the reports of a rehearsal.
    headers.insert("x-undrift-sandbox", HeaderValue::from_static("1"));
    headers.insert("x-runtime", header_value(&format!("{:.6}", elapsed.as_secs_f64())));
}

#[cfg(test)]
mod tests {
    use super::super::ServiceOptions;
    use super::super::attributes::ServiceTier;
    use super::super::routes::Handler;
    use super::super::store::{DataLocation, Store};
    use super::*;

    /// Writes a row, then panics.
    static PANIC_ROUTE: Route = Route {
        method: Method::POST,
        path: "/panics",
        handler: Handler::Function(|call| {
            call.db.execute("INSERT INTO meta (key, value) VALUES ('half', 'done')", [])?;
            std::panic::panic_any("planted")
        }),
    };

    #[test]
    fn a_panic_is_an_answer_and_changes_nothing() {
        let store = Store::open(&DataLocation::Memory, false).expect("memory");
        let service = ServiceState::new(store, ServiceTier::Free, ServiceOptions::default());
        for _ in 0..2 {
            let parsed_request = ParsedRequest::post(Params::default());
            let answer = catch_panics(|| Ok(run_handler(&service, &PANIC_ROUTE, parsed_request)));
            let answer = answer.unwrap_or_else(Answer::from);
            assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
            assert_eq!(
                answer.body.as_deref(),
                Some(br#"{"message":"500 Internal Server Error"}"#.as_slice())
            );
            let row_count = service.store.read(|db| {
                Ok(db.query_row("SELECT count(*) FROM meta", [], |row| row.get::<_, i64>(0))?)
            });
            assert_eq!(row_count.expect("still usable"), 0);
        }
    }
}
