//! The network side: connections with time limits, the Host check, the request log, faults.
//!
//! It reads a request to its end, within limits of time and size, and lets `dispatch` answer it in
//! turn. Faults are here, because some of them close the connection. Slow clients can take neither
//! the `places` of fast ones nor, with large bodies (`intake`), all the memory.

use std::fs::File;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{self, Iter};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{Either, Full, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;

use super::answer::{Answer, Failure};
use super::host::Hosts;
use super::places::{Place, Places};
use super::profile::{Faults, Misfortune};
use super::request_bodies::Intake;
use super::{Service, clock, dispatch, limit};

/// The time limit for the head of a request, and for an idle connection.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a client may stop reading its answer: it must not keep its place for ever.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// The maximum number of headers, and of bytes, in the head of a request; above it is 431.
const MOST_HEADERS: usize = 100;
const MOST_HEAD: usize = 64 * 1024;
/// The maximum number of connections.
const MOST_CONNECTIONS: usize = 256;
/// The time limit for requests in flight when the service stops.
const FINISH_TIME: Duration = Duration::from_secs(5);
/// The pause after a failure to accept a connection, for example for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the service says if two calls create the same topic at the same time (code of 18.9).
const SAME_TOPIC: &str = "PG::UniqueViolation: ERROR:  duplicate key value violates unique constraint \"index_topics_on_organization_id_and_name\"";

/// The state shared by all connections.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) service: Arc<Service>,
    /// Limits the calls in progress: as many reads as there are processors, and one write. Others
    /// wait here, in order and without taking a thread. More threads would only displace the one
    /// that uses the database.
    pub(crate) reads: Semaphore,
    pub(crate) write: Semaphore,
    pub(crate) faults: Arc<Faults>,
    pub(crate) latency: Duration,
    pub(crate) log: Option<Mutex<File>>,
    pub(crate) hosts: Hosts,
    pub(crate) intake: Intake,
}

/// A body to send: whole, or breaking off.
type Outgoing =
    Either<Full<Bytes>, StreamBody<Iter<std::array::IntoIter<io::Result<Frame<Bytes>>, 2>>>>;

/// The connection is to be closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed on purpose")]
struct Dropped;

/// Serves until `stop` changes, then lets requests in flight finish.
pub(crate) async fn serve(
    listener: TcpListener,
    front: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    let places = Places::new(MOST_CONNECTIONS);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = stop.changed() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                let (front, stop) = (Arc::clone(&front), stop.clone());
                connections.spawn(converse(stream, place, front, stop));
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

async fn accept(listener: &TcpListener, places: &Arc<Places>) -> io::Result<(TcpStream, Place)> {
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, places.enter().await))
}

async fn converse(
    stream: TcpStream,
    place: Place,
    front: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    let place = Arc::new(place);
    let own = Arc::clone(&place);
    let service = service_fn(move |request| {
        let (front, place) = (Arc::clone(&front), Arc::clone(&own));
        async move {
            place.work();
            let answer = answer(&front, &place, request).await;
            place.wait();
            answer
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(MOST_HEADERS)
        .max_buf_size(MOST_HEAD);
    let mut connection =
        std::pin::pin!(builder.serve_connection(TokioIo::new(with_write_timeout(stream)), service));
    tokio::select! {
        // The error is the client's or comes from a fault; there is nobody to report it to.
        _ = connection.as_mut() => return,
        () = place.sent_away() => return,
        _ = stop.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// A stream that fails if the other side accepts nothing for [`WRITE_TIME`].
fn with_write_timeout<S: AsyncRead + AsyncWrite>(stream: S) -> Pin<Box<TimeoutStream<S>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIME));
    Box::pin(stream)
}

/// Answers one request, or drops the connection.
async fn answer(
    front: &Shared,
    place: &Place,
    request: Request<Incoming>,
) -> Result<Response<Outgoing>, Dropped> {
    let started = Instant::now();
    let id = front.service.chance.hex();
    let method = request.method().clone();
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
    if !front.latency.is_zero() {
        tokio::time::sleep(front.latency).await;
    }
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let result = if host.is_some_and(|host| front.hosts.accept(host)) {
        suffer(front, place, &method, &target, request).await
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

/// Answers the call, with the fault for it if there is one.
async fn suffer(
    front: &Shared,
    place: &Place,
    method: &Method,
    target: &str,
    request: Request<Incoming>,
) -> Result<Response<Outgoing>, Dropped> {
    let Some(misfortune) = front.faults.fault_of(method, target) else {
        return Ok(whole(carried_out(front, place, request).await));
    };
    let status = |code| StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let response = match misfortune {
        Misfortune::DropBefore => return Err(Dropped),
        Misfortune::CommitThenDrop => {
            carried_out(front, place, request).await;
            return Err(Dropped);
        }
        Misfortune::StatusBefore(code) => refuse(status(code), "a fault was asked for"),
        Misfortune::SameTopic => dispatch::respond(Failure::model("base", SAME_TOPIC).into()),
        Misfortune::StatusAfter(code) => {
            carried_out(front, place, request).await;
            refuse(status(code), "a fault was asked for")
        }
        Misfortune::TooManyRequests(retry_after) => too_many(retry_after.as_deref()),
        Misfortune::Html200 => page_of_html(),
        Misfortune::Truncate => return Ok(truncated(carried_out(front, place, request).await)),
        Misfortune::EmptyBody => {
            let mut response = carried_out(front, place, request).await;
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

/// Reads the request to its end and answers it in turn.
async fn carried_out(front: &Shared, place: &Place, request: Request<Incoming>) -> Response<Bytes> {
    let (parts, body) = request.into_parts();
    if !body.is_end_stream() {
        place.wait();
    }
    let body = match front.intake.read(&parts.headers, body).await {
        Ok(body) => body,
        Err(failure) => return dispatch::respond(failure.into()),
    };
    if !place.work() {
        // Nobody receives this: the connection is closed.
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many connections");
    }
    let request = Request::from_parts(parts, body.bytes.clone());
    // The semaphore is never closed. Without a permit, only the limit is lost.
    let turns = if dispatch::is_read(request.method()) { &front.reads } else { &front.write };
    let _turn = turns.acquire().await.ok();
    let service = Arc::clone(&front.service);
    let answer = tokio::task::spawn_blocking(move || dispatch::answer(&service, request)).await;
    answer.unwrap_or_else(|error| dispatch::respond(Failure::internal(&error).into()))
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

/// Announces the full length but closes the connection after half of the body.
fn truncated(response: Response<Bytes>) -> Response<Outgoing> {
    response.map(|body| {
        let half = Frame::data(body.slice(..body.len() / 2));
        Either::Right(StreamBody::new(stream::iter([
            Ok(half),
            Err(io::ErrorKind::BrokenPipe.into()),
        ])))
    })
}

fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

impl Shared {
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
        // In one write, so that readers never see half a line.
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            tracing::warn!(%error, "the request log could not be written");
        }
    }
}

/// A path and query without possible secrets: without the values of parameters named like tokens,
/// and, if the query may contain the fields of an object, of all except filters and paging.
fn without_secrets(method: &Method, target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return target.to_owned();
    };
    let writes = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| {
            let decoded = url::form_urlencoded::parse(pair.as_bytes()).next();
            let name = decoded.unwrap_or_default().0.to_ascii_lowercase();
            let plain = name.starts_with("filter[") || name == "page" || name == "per_page";
            let secret = ["token", "secret", "password", "key"].iter().any(|w| name.contains(w));
            plain || !writes && !secret
        })
        .collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stops_reading_times_out() {
        let (near, mut far) = tokio::io::duplex(10);
        let mut near = with_write_timeout(near);
        near.write_all(&[0; 10]).await.expect("it fits");
        far.read_exact(&mut [0; 10]).await.expect("read");
        near.write_all(&[0; 10]).await.expect("it fits again");
        let error = near.write_all(&[0; 1]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn the_log_has_no_secrets() {
        for (method, target, logged) in [
            (Method::GET, "/projects?search=a&private_token=s", "/projects?search=a"),
            (Method::GET, "/projects?job%5Ftoken=s", "/projects"),
            (
                Method::PUT,
                "/x?filter[environment_scope]=p&value=s",
                "/x?filter[environment_scope]=p",
            ),
            (Method::POST, "/x?key=a&value=s", "/x"),
            (Method::PATCH, "/x?value=s", "/x"),
            (Method::GET, "/users?username=a&Password=s&private_key=s", "/users?username=a"),
            (Method::DELETE, "/x?cn=a&user%5Bpassword%5D=s", "/x?cn=a"),
            (
                Method::DELETE,
                "/x?filter%5Benvironment_scope%5D=p",
                "/x?filter%5Benvironment_scope%5D=p",
            ),
        ] {
            assert_eq!(without_secrets(&method, target), logged);
        }
    }
}
