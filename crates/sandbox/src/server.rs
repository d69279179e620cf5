//! The network side: connections with time limits, the Host check, the request log, faults.
//!
//! The server reads each request to its end, within limits of time and size. It passes requests to
//! `dispatch` in the order of arrival. The server also applies faults, because some faults close
//! the connection. Slow clients cannot keep all connection slots, and large bodies cannot use all
//! the memory (`request_bodies`).

use std::fs::File;
use std::io::{self, Write};
use std::pin::Pin;
use std::time::Instant;

use futures_util::stream::{self, Iter};
use http::uri::PathAndQuery;
use http_body_util::{Either, Full, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio_io_timeout::TimeoutStream;

use super::connection_slots::{ConnectionSlot, ConnectionSlots};
use super::dispatch::{header_value, into_response, is_read};
use super::host::AllowedHosts;
use super::profile::{FaultEffect, InjectedFaults};
use super::request_bodies::BodyReader;
use super::{dispatch, limit};
use crate::prelude::*;

/// The time limit for the head of a request, and for an idle connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for a client that stops reading its response. Such a client must not keep its
/// slot forever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of headers, and of bytes, in the head of a request. A larger head is refused
/// with 431.
const MAX_HEADERS: usize = 100;
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The maximum number of connections.
const MAX_CONNECTIONS: usize = 256;
/// The time limit for open requests when the service stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after a failure to accept a connection, for example for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Two calls create the same topic at the same time: the error for the second one, as in 18.9.
const DUPLICATE_TOPIC: &str = "PG::UniqueViolation: ERROR:  duplicate key value violates unique constraint \"index_topics_on_organization_id_and_name\"";

/// The state shared by all connections.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) service: Arc<ServiceState>,
    /// Limits the concurrent calls: one read per processor, and one write. Other calls wait in
    /// order, and use no thread while they wait. More threads would only slow down the threads that
    /// use the database.
    pub(crate) read_permits: Semaphore,
    pub(crate) write_permit: Semaphore,
    pub(crate) faults: Arc<InjectedFaults>,
    pub(crate) latency: Duration,
    pub(crate) request_log: Option<Mutex<File>>,
    pub(crate) allowed_hosts: AllowedHosts,
    pub(crate) body_reader: BodyReader,
}

/// The body of a response: complete, or with an error in the middle.
type ResponseBody =
    Either<Full<Bytes>, StreamBody<Iter<std::array::IntoIter<io::Result<Frame<Bytes>>, 2>>>>;

/// The error that closes a connection without a response.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed on purpose")]
struct ConnectionDropped;

/// Serves until `stop_receiver` gets a change, and then finishes open requests.
pub(crate) async fn serve(
    listener: TcpListener,
    server_state: Arc<ServerState>,
    mut stop_receiver: watch::Receiver<bool>,
) {
    let slots = ConnectionSlots::new(MAX_CONNECTIONS);
    let mut connections = JoinSet::new();
    loop {
        let accept_result = tokio::select! {
            _ = stop_receiver.changed() => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        match accept_result {
            Ok((stream, slot)) => {
                let (server_state, stop_receiver) =
                    (Arc::clone(&server_state), stop_receiver.clone());
                connections.spawn(serve_connection(stream, slot, server_state, stop_receiver));
            }
            Err(error) => {
                tracing::warn!(%error, "the sandbox could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    let join_all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, join_all).await.is_err() {
        tracing::warn!("requests were still under way when the sandbox stopped");
    }
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<ConnectionSlots>,
) -> io::Result<(TcpStream, ConnectionSlot)> {
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, slots.acquire().await))
}

async fn serve_connection(
    stream: TcpStream,
    slot: ConnectionSlot,
    server_state: Arc<ServerState>,
    mut stop_receiver: watch::Receiver<bool>,
) {
    let slot = Arc::new(slot);
    let shared_slot = Arc::clone(&slot);
    let service = service_fn(move |request| {
        let (server_state, slot) = (Arc::clone(&server_state), Arc::clone(&shared_slot));
        async move {
            slot.mark_busy();
            let answer = server_state.answer(&slot, request).await;
            slot.mark_waiting();
            answer
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES);
    let mut connection =
        std::pin::pin!(builder.serve_connection(TokioIo::new(with_write_timeout(stream)), service));
    tokio::select! {
        // The client or an injected fault caused the error; nobody needs a report.
        _ = connection.as_mut() => return,
        () = slot.wait_for_eviction() => return,
        _ = stop_receiver.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// A stream that fails if the client accepts nothing for [`WRITE_TIMEOUT`].
fn with_write_timeout<S: AsyncRead + AsyncWrite>(stream: S) -> Pin<Box<TimeoutStream<S>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    Box::pin(stream)
}

/// The response to send, or an error if the connection is dropped instead.
type ResponseOrDrop = Result<Response<ResponseBody>, ConnectionDropped>;

impl ServerState {
    /// Answers one request, or drops the connection.
    async fn answer(&self, slot: &ConnectionSlot, request: Request<Incoming>) -> ResponseOrDrop {
        let start_time = Instant::now();
        let id = self.service.options.random.next_hex();
        let method = request.method().clone();
        let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let outcome = if !host.is_some_and(|host| self.allowed_hosts.allows(host)) {
            let text = "the Host header names another host";
            Ok(with_full_body(error_response(StatusCode::FORBIDDEN, text)))
        } else if let Some(effect) = self.faults.match_call(&method, &target) {
            self.answer_with_fault(effect, slot, request).await
        } else {
            Ok(with_full_body(self.run_call(slot, request).await))
        };
        let elapsed = start_time.elapsed();
        let status = outcome.as_ref().map_or(0, |response| response.status().as_u16());
        self.log_request(&method, &target, status, elapsed, &id);
        outcome.map(|mut response| {
            dispatch::add_request_headers(response.headers_mut(), &id, elapsed);
            response
        })
    }

    /// Answers a request with the effect of a fault.
    async fn answer_with_fault(
        &self,
        effect: FaultEffect,
        slot: &ConnectionSlot,
        request: Request<Incoming>,
    ) -> ResponseOrDrop {
        let response = match effect {
            FaultEffect::DropBefore => return Err(ConnectionDropped),
            FaultEffect::CommitThenDrop => {
                self.run_call(slot, request).await;
                return Err(ConnectionDropped);
            }
            FaultEffect::StatusBefore(code) => fault_response(code),
            FaultEffect::DuplicateTopic => {
                into_response(ErrorResponse::field_error("base", DUPLICATE_TOPIC))
            }
            FaultEffect::StatusAfter(code) => {
                self.run_call(slot, request).await;
                fault_response(code)
            }
            FaultEffect::TooManyRequests(retry_after) => {
                rate_limit_response(retry_after.as_deref())
            }
            FaultEffect::Html200 => html_page(),
            FaultEffect::Truncate => {
                return Ok(with_truncated_body(self.run_call(slot, request).await));
            }
            FaultEffect::EmptyBody => {
                let mut response = self.run_call(slot, request).await;
                response.body_mut().clear();
                response.headers_mut().insert(header::CONTENT_LENGTH, 0.into());
                response
            }
            FaultEffect::Redirect(address) => {
                let mut response = into_response(Answer::without_body(StatusCode::FOUND));
                response.headers_mut().insert(header::LOCATION, header_value(&address));
                response
            }
        };
        Ok(with_full_body(response))
    }

    /// Reads the request to its end, and answers it when a permit is free.
    async fn run_call(&self, slot: &ConnectionSlot, request: Request<Incoming>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        if !body.is_end_stream() {
            slot.mark_waiting();
        }
        let body = match self.body_reader.read(&parts.headers, body).await {
            Ok(body) => body,
            Err(failure) => return into_response(failure),
        };
        if !slot.mark_busy() {
            // Nobody receives this response, because the connection is closed.
            return error_response(StatusCode::SERVICE_UNAVAILABLE, "too many connections");
        }
        let request = Request::from_parts(parts, body.bytes.clone());
        // The semaphore is never closed. If it were, calls would run without this limit.
        let semaphore =
            if is_read(request.method()) { &self.read_permits } else { &self.write_permit };
        let _permit = semaphore.acquire().await.ok();
        let service = Arc::clone(&self.service);
        let response = spawn_blocking(move || dispatch::answer(&service, request)).await;
        response.unwrap_or_else(|error| into_response(ErrorResponse::internal(&error)))
    }

    /// Writes one line of the request log. The line has no bodies and no secrets.
    fn log_request(&self, method: &Method, target: &str, status: u16, elapsed: Duration, id: &str) {
        let Some(log) = &self.request_log else { return };
        let line = json!({
            "time": clock::format_time(self.service.options.clock.now()),
            "method": method.as_str(),
            "path": redact_target(method, target),
            "status": status,
            "duration_ms": elapsed.as_micros() as f64 / 1000.0,
            "request_id": id,
        });
        let mut file = log.lock().unwrap_or_else(PoisonError::into_inner);
        // Write the line at once, so that readers never see a part of it.
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            tracing::warn!(%error, "the request log could not be written");
        }
    }
}

fn with_full_body(response: Response<Bytes>) -> Response<ResponseBody> {
    response.map(|body| Either::Left(Full::new(body)))
}

fn error_response(status: StatusCode, text: &str) -> Response<Bytes> {
    let message = format!("{} - {text}", status.as_u16());
    into_response(ErrorResponse::message(status, message))
}

fn fault_response(code: u16) -> Response<Bytes> {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    error_response(status, "injected fault")
}

fn rate_limit_response(retry_after: Option<&str>) -> Response<Bytes> {
    let mut response = into_response(limit::rate_limit_error());
    if let Some(value) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, header_value(value));
    }
    response
}

fn html_page() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(b"<html><body>Sign in</body></html>"));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
    response
}

/// A response that announces the full length, but closes the connection after half of the body.
fn with_truncated_body(response: Response<Bytes>) -> Response<ResponseBody> {
    response.map(|body| {
        let half_frame = Frame::data(body.slice(..body.len() / 2));
        let frames = [Ok(half_frame), Err(io::ErrorKind::BrokenPipe.into())];
        Either::Right(StreamBody::new(stream::iter(frames)))
    })
}

/// Removes query parameters that can contain secrets. All requests lose parameters with names like
/// `token`. Writes lose all parameters except filters and paging, because their query can contain
/// the fields of an object.
fn redact_target(method: &Method, target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return target.to_owned();
    };
    let is_write = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    let logged_pairs: Vec<&str> = query
        .split('&')
        .filter(|pair| {
            let first_pair = url::form_urlencoded::parse(pair.as_bytes()).next();
            let name = first_pair.unwrap_or_default().0.to_ascii_lowercase();
            let is_filter_or_page =
                name.starts_with("filter[") || name == "page" || name == "per_page";
            let is_secret =
                ["token", "secret", "password", "key"].iter().any(|word| name.contains(word));
            is_filter_or_page || !is_write && !is_secret
        })
        .collect();
    if logged_pairs.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", logged_pairs.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stops_reading_times_out() {
        let (server_end, mut client) = tokio::io::duplex(10);
        let mut server = with_write_timeout(server_end);
        server.write_all(&[0; 10]).await.expect("it fits");
        client.read_exact(&mut [0; 10]).await.expect("read");
        server.write_all(&[0; 10]).await.expect("it fits again");
        let error = server.write_all(&[0; 1]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn the_log_has_no_secrets() {
        for (method, target, logged_target) in [
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
            assert_eq!(redact_target(&method, target), logged_target);
        }
    }
}
