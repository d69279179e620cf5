//! From a request to its answer: route, parameters, caller, one transaction, headers. It neither
//! waits nor uses a network.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use rusqlite::Connection;

use super::access::{self, Token};
use super::answer::{Answer, Failure, Result, refuse_if};
use super::call::{Call, Input};
use super::closed::Closed;
use super::params::Params;
use super::routes::{self, Operation};
use super::store::user::User;
use super::{Service, body, clock, dialect};

/// Longer addresses are refused with 414.
const MOST_ADDRESS: usize = 16 * 1024;

/// Answers a request from any source. A panic is 500, and changes nothing.
pub(crate) fn answer(service: &Service, request: Request<Bytes>) -> Response<Bytes> {
    let method = request.method().clone();
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    let sent = request.body().clone();
    let mut answer = withstand(|| match method == Method::OPTIONS {
        true => {
            let target = tidied(request.uri());
            routes::options(service.told, target.split('?').next().unwrap_or_default())
                .unwrap_or_else(Answer::from)
        }
        false => receive(service, request)
            .map_or_else(Answer::from, |received| perform(service, received)),
    });
    dialect::distort(&service.profile, &mut answer, &sent);
    if is_read(&method) {
        answer = answer.unless_known(known.as_ref());
    }
    let mut response = respond(answer);
    if method == Method::HEAD {
        response.body_mut().clear();
    }
    response
}

/// Whether a request with this method only reads.
pub(crate) fn is_read(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

fn withstand(work: impl FnOnce() -> Answer) -> Answer {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Failure::internal(&"a handler panicked").into())
}

/// A request as far as it can be parsed without the data.
struct Parsed {
    operation: Operation,
    headers: HeaderMap,
    input: Input,
}

fn receive(service: &Service, request: Request<Bytes>) -> Result<Parsed> {
    let (parts, body) = request.into_parts();
    let target = tidied(&parts.uri);
    if target.len() > MOST_ADDRESS {
        return Err(Failure::error(StatusCode::URI_TOO_LONG, "414 URI Too Long"));
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (operation, segments) = routes::find(service.told, &method_of(&parts), path)?;
    // This route accepts no names, from anybody.
    let is_number = |value: &str| value.bytes().all(|byte| byte.is_ascii_digit());
    let by_number = is_read(&operation.route.method) && operation.route.path == "/users/{user_id}";
    refuse_if(by_number && !segments.iter().all(|(_, value)| is_number(value)), Failure::no_route)?;
    let mut params = Params::default();
    params.add_form(query)?;
    body::read(&parts.headers, body, &mut params)?;
    if service.profile.normalises && !is_read(&parts.method) {
        dialect::normalise(&mut params);
    }
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host
        .or_else(|| parts.uri.authority().map(http::uri::Authority::as_str))
        .unwrap_or("localhost");
    let route = operation.route;
    let input = Input {
        method: route.method.clone(),
        writes: !is_read(&route.method),
        closed: Closed::of(&route.method, route.path, service.profile.release),
        params,
        segments,
        base: format!("http://{host}"),
        target: target.into_owned(),
        unmodified_since: unmodified_since(&parts.headers),
    };
    Ok(Parsed { operation, headers: parts.headers, input })
}

/// The method of a request. A POST may name another one in a header, for clients that cannot send
/// PATCH.
fn method_of(parts: &http::request::Parts) -> Method {
    let named = parts.headers.get("x-http-method-override");
    let named = named.filter(|_| parts.method == Method::POST);
    let others = [Method::PUT, Method::PATCH, Method::DELETE];
    let is_it = |other: &Method| {
        named.is_some_and(|named| named.as_bytes().eq_ignore_ascii_case(other.as_str().as_bytes()))
    };
    others.into_iter().find(is_it).unwrap_or_else(|| parts.method.clone())
}

/// Path and query without doubled and trailing slashes in the path, which the service ignores.
fn tidied(uri: &Uri) -> Cow<'_, str> {
    let path = uri.path();
    if !path.contains("//") && !path.ends_with('/') {
        return Cow::Borrowed(uri.path_and_query().map_or("/", |target| target.as_str()));
    }
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Cow::Owned(format!("/{}{query}", segments.join("/")))
}

/// Runs the handler in its transaction.
fn perform(service: &Service, request: Parsed) -> Answer {
    let time = service.clock.now();
    if let Err(failure) = service.forget_deleted(time) {
        return failure.into();
    }
    let (operation, writes) = (request.operation, request.input.writes);
    let mut counted = None;
    let work = |db: &Connection| {
        let known = access::authenticate(
            db,
            &request.headers,
            operation.route,
            service.profile.release,
            time,
        );
        if let Some(limiter) = &service.limiter {
            let caller =
                known.as_ref().ok().and_then(|known| known.as_ref().map(|(user, _)| user.id));
            let count = counted.insert(limiter.count(caller, operation, time));
            if let Some(refusal) = count.refusal() {
                return Ok(refusal);
            }
        }
        let caller = match known? {
            Some((user, token)) => impersonated(db, &request, user, token)?,
            None => (None, None),
        };
        operation.route.answer(&Call::of(service, db, caller, time, request.input))
    };
    let result = if writes { service.store.write(work) } else { service.store.read(work) };
    let mut answer = result.unwrap_or_else(Answer::from);
    if let Some(counted) = &counted {
        counted.tell(&mut answer);
    }
    answer
}

fn unmodified_since(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::IF_UNMODIFIED_SINCE)?.to_str().ok()?;
    let time = httpdate::parse_http_date(value).ok()?;
    jiff::Timestamp::try_from(time).ok().map(clock::spell)
}

/// The caller, or the user in `sudo` if the caller is an administrator.
fn impersonated(
    db: &Connection,
    request: &Parsed,
    user: User,
    token: Token,
) -> Result<(Option<User>, Option<Token>)> {
    let header = request.headers.get("sudo").and_then(|value| value.to_str().ok());
    let wanted = match header {
        Some(wanted) => Some(wanted.to_owned()),
        None => request.input.params.text("sudo")?,
    };
    let Some(wanted) = wanted else {
        return Ok((Some(user), Some(token)));
    };
    refuse_if(!user.admin, || Failure::forbidden_because("Must be admin to use sudo"))?;
    let other = User::by_reference(db, &wanted)?
        .ok_or_else(|| Failure::not_found(&format!("User with ID or username '{wanted}'")))?;
    Ok((Some(other), Some(token)))
}

/// The answer as a response, with the headers of all answers.
pub(crate) fn respond(answer: Answer) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("max-age=0, private, must-revalidate"),
    );
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

/// Adds the headers that differ for each answer: the id of its request, and the time it took.
pub(crate) fn sign(headers: &mut HeaderMap, id: &str, elapsed: Duration) {
    let value = |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""));
    headers.insert("x-request-id", value(id));
    // This keeps reports of a rehearsal from being taken for those of a real service.
    headers.insert("x-undrift-sandbox", HeaderValue::from_static("1"));
    headers.insert("x-runtime", value(&format!("{:.6}", elapsed.as_secs_f64())));
}

#[cfg(test)]
mod tests {
    use super::super::Conditions;
    use super::super::attributes::Tier;
    use super::super::routes::{Handler, Route};
    use super::super::store::{Data, Store};
    use super::*;

    /// Changes something, then panics.
    static PANICS: Route = Route {
        method: Method::POST,
        path: "/panics",
        handler: Handler::Function(|call| {
            call.db.execute("INSERT INTO meta (key, value) VALUES ('half', 'done')", [])?;
            std::panic::panic_any("planted")
        }),
    };

    #[test]
    fn a_panic_is_an_answer_and_changes_nothing() {
        let store = Store::open(&Data::Memory, false).expect("memory");
        let service = Service::new(store, Tier::Free, Conditions::default());
        for _ in 0..2 {
            let request = Parsed {
                operation: Operation { number: 0, route: &PANICS },
                headers: HeaderMap::new(),
                input: Input::post(Params::default()),
            };
            let answer = withstand(|| perform(&service, request));
            assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
            assert_eq!(
                answer.body.as_deref(),
                Some(br#"{"message":"500 Internal Server Error"}"#.as_slice())
            );
            let left = service.store.read(|db| {
                Ok(db.query_row("SELECT count(*) FROM meta", [], |row| row.get::<_, i64>(0))?)
            });
            assert_eq!(left.expect("still usable"), 0);
        }
    }
}
