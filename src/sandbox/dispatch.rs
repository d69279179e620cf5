//! From a request to its handler and back: parameters, caller, transaction, answer.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, RawPathParams};
use axum::response::Response;
use axum::{RequestExt, Router};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use jiff::Timestamp;
use rusqlite::Connection;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::Service;
use super::access::{self, Token};
use super::answer::{Answer, Failure};
use super::call::Call;
use super::clock;
use super::params::{Params, Upload};
use super::profile::Profile;
use super::routes::{self, Route};
use super::store::user::User;

/// The largest body that is not an upload, and the largest upload, in bytes.
const MOST_BODY: usize = 1024 * 1024;
const MOST_UPLOAD: usize = 10 * 1024 * 1024;
/// How long a client may take to send a body.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Longer addresses are refused with 414.
const MOST_ADDRESS: usize = 16 * 1024;

/// The router of all operations, and of what is served beside them.
pub(crate) fn router(service: &Arc<Service>) -> Router {
    let mut router = Router::new();
    let operations = routes::all().map(|route| ("/api/v4", route));
    for (number, (prefix, route)) in operations.chain(routes::pages().iter().map(|route| ("", route))).enumerate() {
        let service = Arc::clone(service);
        let handler = move |request| handle(Arc::clone(&service), Operation { number, route }, request);
        let method = match route.method {
            Method::GET => axum::routing::get(handler),
            Method::POST => axum::routing::post(handler),
            Method::PUT => axum::routing::put(handler),
            _ => axum::routing::delete(handler),
        };
        router = router.route(&format!("{prefix}{}", route.path), method);
    }
    router
        .fallback(async || respond(Failure::no_route().into()))
        .method_not_allowed_fallback(async || respond(Failure::error(StatusCode::METHOD_NOT_ALLOWED, "405 Not Allowed").into()))
}

/// Who is at work: as many reads as there are processors, and one write. Others wait here, where waiting takes no
/// thread and everybody comes to their turn; more threads would only push aside the one that has the database.
#[derive(Debug)]
pub(crate) struct Turns {
    reads: Semaphore,
    write: Semaphore,
}

impl Turns {
    fn of(&self, method: &Method) -> &Semaphore {
        if *method == Method::GET { &self.reads } else { &self.write }
    }
}

impl Default for Turns {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { reads: Semaphore::new(processors), write: Semaphore::new(1) }
    }
}

/// A route with its place in the table.
#[derive(Clone, Copy)]
struct Operation {
    number: usize,
    route: &'static Route,
}

async fn handle(service: Arc<Service>, operation: Operation, request: Request<Body>) -> Response {
    let request = match read(request).await {
        Ok(request) => request,
        Err(failure) => return respond(failure.into()),
    };
    let known = request.headers.get(header::IF_NONE_MATCH).cloned();
    let turn = service.turns.of(&operation.route.method);
    // The permits are never closed; without one the call would only be less orderly.
    let _turn = turn.acquire().await.ok();
    let shared = Arc::clone(&service);
    match tokio::task::spawn_blocking(move || withstand(&shared, operation, request)).await {
        Ok(answer) if operation.route.method == Method::GET => respond(answer.unless_known(known.as_ref())),
        Ok(answer) => respond(answer),
        Err(error) => respond(Failure::internal(&error).into()),
    }
}

/// [`perform`]s; a panic is 500.
fn withstand(service: &Service, operation: Operation, request: Received) -> Answer {
    catch_unwind(AssertUnwindSafe(|| perform(service, operation, request)))
        .unwrap_or_else(|_| Failure::internal(&"a handler panicked").into())
}

/// A request whose body has been read.
struct Received {
    headers: HeaderMap,
    target: String,
    segments: HashMap<String, String>,
    params: Params,
}

async fn read(mut request: Request<Body>) -> Result<Received, Failure> {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
    if target.len() > MOST_ADDRESS {
        return Err(Failure::error(StatusCode::URI_TOO_LONG, "414 URI Too Long"));
    }
    let segments = request
        .extract_parts::<RawPathParams>()
        .await
        .map_err(|_| Failure::no_route())?
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let headers = request.headers().clone();
    let mut params = Params::default();
    params.add_form(request.uri().query().unwrap_or_default())?;
    tokio::time::timeout(BODY_TIME, read_body(request, &mut params))
        .await
        .map_err(|_| Failure::error(StatusCode::REQUEST_TIMEOUT, "408 Request Timeout"))??;
    Ok(Received { headers, target, segments, params })
}

async fn read_body(request: Request<Body>, params: &mut Params) -> Result<(), Failure> {
    let content_type =
        request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_owned();
    if media_type == "multipart/form-data" {
        return read_multipart(request, params).await;
    }
    let body = to_bytes(request.into_body(), MOST_BODY).await.map_err(|_| too_large())?;
    if body.is_empty() {
        return Ok(());
    }
    match media_type.as_str() {
        "application/json" => params.add_json(&body),
        // Without a type, a body is a form.
        "application/x-www-form-urlencoded" | "" => params.add_form(&String::from_utf8_lossy(&body)),
        other => Err(Failure::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("The provided content-type '{other}' is not supported."))),
    }
}

async fn read_multipart(request: Request<Body>, params: &mut Params) -> Result<(), Failure> {
    let malformed = || Failure::error(StatusCode::BAD_REQUEST, "message body does not match declared format");
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MOST_UPLOAD).await.map_err(|_| too_large())?;
    let mut request = Request::from_parts(parts, Body::from(body));
    // The limit above is the one that counts; the extractor's own is lower.
    DefaultBodyLimit::max(MOST_UPLOAD).apply(&mut request);
    let mut form = Multipart::from_request(request, &()).await.map_err(|_| malformed())?;
    while let Some(part) = form.next_field().await.map_err(|_| malformed())? {
        let name = part.name().unwrap_or_default().to_owned();
        let file_name = part.file_name().map(plain_file_name);
        let bytes = part.bytes().await.map_err(|_| malformed())?;
        match file_name {
            Some(file_name) => params.add_file(Upload { field: name, file_name, bytes }),
            None => params.add(&name, Value::String(String::from_utf8_lossy(&bytes).into_owned()))?,
        }
    }
    Ok(())
}

/// The last segment of a client's file name, in characters that are safe in paths, addresses and Markdown.
fn plain_file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String =
        last.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' }).take(200).collect();
    let plain = plain.trim_start_matches('.').to_owned();
    if plain.is_empty() { "file".to_owned() } else { plain }
}

fn too_large() -> Failure {
    Failure::error(StatusCode::PAYLOAD_TOO_LARGE, "413 Request Entity Too Large")
}

/// Runs the handler in its transaction.
fn perform(service: &Service, operation: Operation, request: Received) -> Answer {
    let time = service.clock.now();
    if let Err(failure) = service.forget_deleted(time) {
        return failure.into();
    }
    let writes = operation.route.method != Method::GET;
    let mut counted = None;
    let work = |db: &Connection| {
        let known = access::authenticate(db, &request.headers, writes, time);
        if let Some(limiter) = &service.limiter {
            let caller = known.as_ref().ok().and_then(|known| known.as_ref().map(|(user, _)| user.id));
            let count = counted.insert(limiter.count(caller, operation.number, time));
            if let Some(refusal) = count.refusal() {
                return Ok(refusal);
            }
        }
        (operation.route.handler)(&begin(service, db, known?, request, writes, time)?)
    };
    let result = if writes { service.store.write(work) } else { service.store.read(work) };
    let mut answer = result.unwrap_or_else(Answer::from);
    if let Some(counted) = &counted {
        counted.tell(&mut answer);
    }
    if service.profile.changes_answers()
        && let Some(text) = &answer.body
        && let Ok(mut value) = serde_json::from_slice::<Value>(text)
    {
        distort(&mut value, &service.profile);
        answer.body = Some(value.to_string().into_bytes());
    }
    answer
}

fn begin<'a>(
    service: &'a Service,
    db: &'a Connection,
    known: Option<(User, Token)>,
    request: Received,
    writes: bool,
    time: Timestamp,
) -> Result<Call<'a>, Failure> {
    let (caller, token) = match known {
        Some((user, token)) => impersonated(db, &request, user, token)?,
        None => (None, None),
    };
    let host = request.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    Ok(Call {
        db,
        service,
        caller,
        token,
        writes,
        base: format!("http://{host}"),
        params: request.params,
        segments: request.segments,
        target: request.target,
        unmodified_since: unmodified_since(&request.headers),
        time,
        now: OnceCell::new(),
        standing: OnceCell::new(),
        direct: OnceCell::new(),
    })
}

fn unmodified_since(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::IF_UNMODIFIED_SINCE)?.to_str().ok()?;
    let time = httpdate::parse_http_date(value).ok()?;
    jiff::Timestamp::try_from(time).ok().map(clock::spell)
}

/// The caller, or the user that an administrator names with `sudo`.
fn impersonated(db: &Connection, request: &Received, user: User, token: Token) -> Result<(Option<User>, Option<Token>), Failure> {
    let header = request.headers.get("sudo").and_then(|value| value.to_str().ok());
    let wanted = match header {
        Some(wanted) => Some(wanted.to_owned()),
        None => request.params.text("sudo")?,
    };
    let Some(wanted) = wanted else {
        return Ok((Some(user), Some(token)));
    };
    if !user.admin {
        return Err(Failure::forbidden_because("Must be admin to use sudo"));
    }
    let other = User::by_reference(db, &wanted)?.ok_or_else(|| Failure::not_found(&format!("User with ID or username '{wanted}'")))?;
    Ok((Some(other), Some(token)))
}

/// Changes an answer into that of a dialect.
fn distort(value: &mut Value, profile: &Profile) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| distort(item, profile)),
        Value::Object(members) => {
            if profile.drop_null_keys {
                members.retain(|_, value| !value.is_null());
            }
            for (key, value) in members.iter_mut() {
                match value {
                    Value::Array(topics) if profile.shuffle_topics && (key == "topics" || key == "tag_list") => {
                        topics.reverse();
                    }
                    _ => distort(value, profile),
                }
            }
            if profile.unknown_extra_keys {
                members.insert("x_unknown".to_owned(), serde_json::json!({ "since": "later" }));
            }
        }
        _ => {}
    }
}

/// The answer as a response, with the headers that all of them carry.
pub(crate) fn respond(answer: Answer) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=0, private, must-revalidate"));
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("x-frame-options", HeaderValue::from_static("SAMEORIGIN"));
    if let Some(text) = &answer.body {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(text.len()));
    }
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    *response.body_mut() = answer.body.map_or_else(Body::empty, Body::from);
    response
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::attributes::Tier;
    use super::super::clock::Clock;
    use super::super::store::{Data, Store};
    use super::*;

    /// Changes something, then panics.
    static PANICS: Route = Route {
        method: Method::POST,
        path: "/panics",
        handler: |call| {
            call.db.execute("INSERT INTO meta (key, value) VALUES ('half', 'done')", [])?;
            std::panic::panic_any("planted")
        },
    };

    #[test]
    fn a_panic_is_an_answer_and_changes_nothing() {
        let store = Store::open(&Data::Memory, false).expect("memory");
        let service = Service {
            store,
            tier: Tier::Free,
            profile: Profile::default(),
            clock: Clock::default(),
            limiter: None,
            swept: Mutex::new(None),
            turns: Turns::default(),
        };
        for _ in 0..2 {
            let operation = Operation { number: 0, route: &PANICS };
            let request =
                Received { headers: HeaderMap::new(), target: String::new(), segments: HashMap::new(), params: Params::default() };
            let answer = withstand(&service, operation, request);
            assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
            assert_eq!(answer.body.as_deref(), Some(br#"{"message":"500 Internal Server Error"}"#.as_slice()));
            let left = service.store.read(|db| Ok(db.query_row("SELECT count(*) FROM meta", [], |row| row.get::<_, i64>(0))?));
            assert_eq!(left.expect("still usable"), 0);
        }
    }
}
