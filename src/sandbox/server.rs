//! The listening side: connections with time limits, the Host check, the request log, faults.
//!
//! It reads a request to its end, within limits of time and size, and lets `dispatch` answer it in turn. Faults live
//! here: some of them end the connection.

use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{self, Iter};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Either, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::answer::{Answer, Failure};
use super::patience::Patient;
use super::profile::{Faults, Misfortune};
use super::{Service, body, clock, dispatch, limit};

/// How long a client may take to send the head of a request, and how long an idle connection is kept.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a client may take to send a body.
const BODY_TIME: Duration = Duration::from_secs(30);
/// How long a client may take nothing of its answer.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// The head of a request has at most this many headers and bytes; else it is 431.
const MOST_HEADERS: usize = 100;
const MOST_HEAD: usize = 64 * 1024;
/// Further connections wait for one of these to end.
const MOST_CONNECTIONS: usize = 256;
/// How long requests that are under way may take to finish when the service stops.
const FINISH_TIME: Duration = Duration::from_secs(5);
/// Where accepting failed, for example for lack of file descriptors, the next try waits this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What every connection shares.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) service: Arc<Service>,
    pub(crate) turns: Turns,
    pub(crate) faults: Arc<Faults>,
    pub(crate) latency: Duration,
    pub(crate) log: Option<Mutex<File>>,
    /// The address that was asked for, for the Host check.
    pub(crate) listen: SocketAddr,
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
        if dispatch::is_read(method) { &self.reads } else { &self.write }
    }
}

impl Default for Turns {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { reads: Semaphore::new(processors), write: Semaphore::new(1) }
    }
}

/// A body on its way out: whole, or breaking off.
type Outgoing = Either<Full<Bytes>, StreamBody<Iter<std::array::IntoIter<io::Result<Frame<Bytes>>, 2>>>>;

/// The connection is to be closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed on purpose")]
struct Dropped;

/// Serves until `stop` changes, then lets requests that are under way finish.
pub(crate) async fn serve(listener: TcpListener, front: Arc<Front>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            _ = stop.changed() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                let (front, stop) = (Arc::clone(&front), stop.clone());
                connections.spawn(async move {
                    converse(stream, front, stop).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the sandbox could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    let finish = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FINISH_TIME, finish).await.is_err() {
        tracing::warn!("requests were still under way when the sandbox stopped");
    }
}

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> std::io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, place))
}

async fn converse(stream: TcpStream, front: Arc<Front>, mut stop: watch::Receiver<bool>) {
    let service = service_fn(move |request| {
        let front = Arc::clone(&front);
        async move { answer(&front, request).await }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_headers(MOST_HEADERS).max_buf_size(MOST_HEAD);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(Patient::new(stream, WRITE_TIME)), service));
    tokio::select! {
        // An error here is the client's or a fault's; there is nobody left to tell.
        _ = connection.as_mut() => return,
        _ = stop.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Answers one request, or drops the connection.
async fn answer(front: &Front, request: Request<Incoming>) -> Result<Response<Outgoing>, Dropped> {
    let started = Instant::now();
    let id = front.service.chance.hex();
    let method = request.method().clone();
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
    if !front.latency.is_zero() {
        tokio::time::sleep(front.latency).await;
    }
    let result = if allowed_host(&request, front.listen) {
        suffer(front, &method, &target, request).await
    } else {
        Ok(whole(refuse(StatusCode::FORBIDDEN, "the Host header names another host")))
    };
    let elapsed = started.elapsed();
    let status = result.as_ref().map_or(0, |response| response.status().as_u16());
    front.record(&method, &target, status, elapsed, &id);
    result.map(|mut response| {
        dispatch::sign(response.headers_mut(), &id, elapsed);
        response
    })
}

/// Lets the service answer, with the misfortune that strikes this call.
async fn suffer(front: &Front, method: &Method, target: &str, request: Request<Incoming>) -> Result<Response<Outgoing>, Dropped> {
    let Some(misfortune) = front.faults.strike(method, target) else {
        return Ok(whole(carried_out(front, request).await));
    };
    let status = |code| StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let response = match misfortune {
        Misfortune::DropBefore => return Err(Dropped),
        Misfortune::CommitThenDrop => {
            carried_out(front, request).await;
            return Err(Dropped);
        }
        Misfortune::StatusBefore(code) => refuse(status(code), "a fault was asked for"),
        Misfortune::StatusAfter(code) => {
            carried_out(front, request).await;
            refuse(status(code), "a fault was asked for")
        }
        Misfortune::TooManyRequests(retry_after) => too_many(retry_after.as_deref()),
        Misfortune::Html200 => page_of_html(),
        Misfortune::Truncate => return Ok(truncated(carried_out(front, request).await)),
        Misfortune::EmptyBody => {
            let mut response = carried_out(front, request).await;
            response.body_mut().clear();
            response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
            response
        }
        Misfortune::Redirect(address) => {
            let mut response = dispatch::respond(Answer::empty(StatusCode::FOUND));
            response.headers_mut().insert(header::LOCATION, header_value(&address));
            response
        }
    };
    Ok(whole(response))
}

/// Reads the request to its end and lets the service answer it when it is its turn.
async fn carried_out(front: &Front, request: Request<Incoming>) -> Response<Bytes> {
    let (parts, body) = request.into_parts();
    let body = match read(&parts.headers, body).await {
        Ok(body) => body,
        Err(failure) => return dispatch::respond(failure.into()),
    };
    let request = Request::from_parts(parts, body);
    // The permits are never closed; without one the call would only be less orderly.
    let _turn = front.turns.of(request.method()).acquire().await.ok();
    let service = Arc::clone(&front.service);
    let answer = tokio::task::spawn_blocking(move || dispatch::answer(&service, request)).await;
    answer.unwrap_or_else(|error| dispatch::respond(Failure::internal(&error).into()))
}

async fn read(headers: &HeaderMap, incoming: Incoming) -> Result<Bytes, Failure> {
    let whole = Limited::new(incoming, body::most(headers)).collect();
    let read = tokio::time::timeout(BODY_TIME, whole).await;
    let read = read.map_err(|_| Failure::error(StatusCode::REQUEST_TIMEOUT, "408 Request Timeout"))?;
    Ok(read.map_err(|_| body::too_large())?.to_bytes())
}

fn whole(response: Response<Bytes>) -> Response<Outgoing> {
    response.map(|body| Either::Left(Full::new(body)))
}

fn refuse(status: StatusCode, text: &str) -> Response<Bytes> {
    let text = format!("{} - {text}", status.as_u16());
    dispatch::respond(Failure::message(status, text).into())
}

fn too_many(retry_after: Option<&str>) -> Response<Bytes> {
    let mut response = dispatch::respond(limit::too_many().into());
    if let Some(value) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, header_value(value));
    }
    response
}

fn page_of_html() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(b"<html><body>Sign in</body></html>"));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
    response
}

/// Keeps the announced length but ends the connection after half of the body.
fn truncated(response: Response<Bytes>) -> Response<Outgoing> {
    response.map(|body| {
        let half = Frame::data(body.slice(..body.len() / 2));
        Either::Right(StreamBody::new(stream::iter([Ok(half), Err(io::ErrorKind::BrokenPipe.into())])))
    })
}

fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

/// Only names of this machine: a page in somebody's browser must not reach the service through a name of its own
/// that it points here.
fn allowed_host(request: &Request<Incoming>, listen: SocketAddr) -> bool {
    let Some(host) = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()) else {
        return false;
    };
    is_own_name(host, listen)
}

fn is_own_name(host: &str, listen: SocketAddr) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let own = match listen {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    };
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]" || name == own
}

impl Front {
    /// Writes one line of the request log: no bodies, no secrets.
    fn record(&self, method: &Method, target: &str, status: u16, elapsed: Duration, id: &str) {
        let Some(log) = &self.log else { return };
        let line = json!({
            "time": clock::spell(self.service.clock.now()),
            "method": method.as_str(),
            "path": without_secrets(method, target),
            "status": status,
            "duration_ms": elapsed.as_micros() as f64 / 1000.0,
            "request_id": id,
        });
        let mut file = log.lock().unwrap_or_else(PoisonError::into_inner);
        // In one write, so that whoever reads along never sees half a line.
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            tracing::warn!(%error, "the request log could not be written");
        }
    }
}

/// A path and query without what may be secret: parameters named like tokens, and, where the query may carry the
/// fields of an object, everything but filters and paging.
fn without_secrets(method: &Method, target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return target.to_owned();
    };
    let writes = *method == Method::POST || *method == Method::PUT;
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| {
            let name = super::params::form_decode(pair.split('=').next().unwrap_or_default());
            let name = name.to_ascii_lowercase();
            let plain = name.starts_with("filter[") || name == "page" || name == "per_page";
            plain || !writes && !name.contains("token") && !name.contains("secret")
        })
        .collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_own() {
        let listen = "192.0.2.7:80".parse().expect("an address");
        for (host, own) in [
            ("localhost", true),
            ("LOCALHOST:8080", true),
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("[::1]", true),
            ("192.0.2.7", true),
            ("example.org", false),
            ("localhost.example.org", false),
            ("127.0.0.1.example.org:80", false),
            ("", false),
        ] {
            assert_eq!(is_own_name(host, listen), own, "{host}");
        }
    }

    #[test]
    fn the_log_has_no_secrets() {
        for (method, target, logged) in [
            (Method::GET, "/projects?search=a&private_token=s", "/projects?search=a"),
            (Method::GET, "/projects?job%5Ftoken=s", "/projects"),
            (Method::PUT, "/x?filter[environment_scope]=p&value=s", "/x?filter[environment_scope]=p"),
            (Method::POST, "/x?key=a&value=s", "/x"),
            (Method::DELETE, "/x?filter%5Benvironment_scope%5D=p", "/x?filter%5Benvironment_scope%5D=p"),
        ] {
            assert_eq!(without_secrets(&method, target), logged);
        }
    }
}
