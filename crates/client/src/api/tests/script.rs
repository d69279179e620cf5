//! A transport that answers from a script and records requests. Also the clients, secrets and
//! random numbers for tests that use this transport.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use crate::{
    api::{
        BodyError, ClientSettings, EncodedBody, Random, ReadClient, RequestPhase, SendError,
        SendErrorKind, ServiceAddress, Transport, WireRequest, WireResponse, WriteClient,
    },
    secret::{Reference, Secret, Secrets},
};

/// The header with the number of seconds by which the script delays a reply.
const DELAY_HEADER: &str = "x-delay";

/// One reply of the script: a response, or the error of a request without a response.
pub(super) type Reply = Result<WireResponse, SendError>;

/// A sent request, and its time since the start of the script.
#[derive(Clone)]
pub(super) struct SentRequest {
    pub(super) request: WireRequest,
    pub(super) sent_at: Duration,
}

/// Answers requests from a script. Repeats the last reply of the script.
pub(super) struct Script {
    replies: Mutex<VecDeque<Reply>>,
    pub(super) sent: Mutex<Vec<SentRequest>>,
    /// The number of requests in flight, and the maximum so far.
    pub(super) in_flight_counts: Mutex<(usize, usize)>,
    start: Instant,
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Script")
    }
}

impl Transport for Script {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Reply> {
        self.sent.lock().unwrap().push(SentRequest { request, sent_at: self.start.elapsed() });
        let mut replies = self.replies.lock().unwrap();
        let reply = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
        let mut in_flight = self.in_flight_counts.lock().unwrap();
        *in_flight = (in_flight.0 + 1, in_flight.1.max(in_flight.0 + 1));
        Box::pin(async {
            // Let other tasks run while the request is in flight.
            tokio::task::yield_now().await;
            let delay = reply
                .as_ref()
                .and_then(|reply| reply.as_ref().ok())
                .and_then(|response| response.headers.get(DELAY_HEADER));
            if let Some(seconds) = delay.and_then(|delay| delay.to_str().ok()?.parse().ok()) {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
            }
            self.in_flight_counts.lock().unwrap().0 -= 1;
            reply.expect("a script has answers")
        })
    }
}

impl Script {
    pub(super) fn new(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        let replies = Mutex::new(replies.into_iter().collect());
        Arc::new(Self {
            replies,
            sent: Mutex::default(),
            in_flight_counts: Mutex::default(),
            start: Instant::now(),
        })
    }

    /// The times when the requests were sent, since the start of the script.
    pub(super) fn sent_times(&self) -> Vec<Duration> {
        self.sent.lock().unwrap().iter().map(|sent| sent.sent_at).collect()
    }

    pub(super) fn targets(&self) -> Vec<String> {
        self.sent.lock().unwrap().iter().map(|sent| sent.request.target.clone()).collect()
    }

    /// The JSON text of the first request's body.
    pub(super) fn first_json(&self) -> String {
        match &self.sent.lock().unwrap()[0].request.body {
            EncodedBody::Json(json) => String::from_utf8(json.to_vec()).unwrap(),
            EncodedBody::Empty | EncodedBody::Form(_) => panic!("not JSON"),
        }
    }
}

/// Randomness that always returns the same number.
#[derive(Debug)]
pub(super) struct FixedRandom(pub(super) f64);

impl Random for FixedRandom {
    fn fraction(&self) -> f64 {
        self.0
    }
}

/// A secret that must not appear in any text.
pub(super) const CANARY: &str = "canary-5up3r-53cr3t";

pub(super) fn canary_reference() -> Reference {
    Reference::Env("CANARY".into())
}

/// Secrets that contain the canary.
pub(super) fn secrets() -> Secrets {
    let mut secrets = Secrets::new("/nowhere", [("CANARY".to_owned(), CANARY.to_owned())]);
    secrets.resolve([&canary_reference()]);
    secrets.add_redaction(Secret::new("token-of-undrift"));
    secrets
}

pub(super) fn settings() -> ClientSettings {
    ClientSettings { random: Arc::new(FixedRandom(0.5)), ..ClientSettings::default() }
}

pub(super) fn read_client(script: &Arc<Script>, settings: ClientSettings) -> ReadClient {
    client(script, secrets(), settings)
}

pub(super) fn write_client(script: &Arc<Script>) -> WriteClient {
    write_client_with(script, secrets())
}

pub(super) fn write_client_with(script: &Arc<Script>, secrets: Secrets) -> WriteClient {
    WriteClient::new(client(script, secrets, settings()))
}

fn client(script: &Arc<Script>, secrets: Secrets, settings: ClientSettings) -> ReadClient {
    let service = ServiceAddress::parse("https://example.org", false).unwrap();
    ReadClient::new(service, Arc::clone(script) as Arc<dyn Transport>, Arc::new(secrets), settings)
}

pub(super) fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let parse = |(name, value): &(&str, &str)| {
        (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    pairs.iter().map(parse).collect()
}

pub(super) fn json_response(status: u16, body: &str) -> Reply {
    json_with_headers(status, &[], body)
}

/// A JSON response with additional headers.
pub(super) fn json_with_headers(status: u16, pairs: &[(&str, &str)], body: &str) -> Reply {
    let mut headers = headers(pairs);
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    Ok(WireResponse { status, headers, body: Ok(Bytes::copy_from_slice(body.as_bytes())) })
}

pub(super) fn html_response(status: u16) -> Reply {
    let body = Bytes::from_static(b"<html><body>Sign in</body></html>");
    Ok(WireResponse { status, headers: headers(&[("content-type", "text/html")]), body: Ok(body) })
}

pub(super) fn truncated_response(status: u16) -> Reply {
    Ok(WireResponse {
        status,
        headers: headers(&[("content-type", "application/json")]),
        body: Err(BodyError::Truncated),
    })
}

pub(super) fn empty_response(status: u16) -> Reply {
    Ok(WireResponse { status, headers: HeaderMap::new(), body: Ok(Bytes::new()) })
}

pub(super) fn send_failure(phase: RequestPhase, kind: SendErrorKind) -> Reply {
    Err(SendError::new(phase, kind, "connection reset"))
}

/// A JSON response that takes this many seconds.
pub(super) fn slow_json(status: u16, seconds: u64, body: &str) -> Reply {
    json_with_headers(status, &[(DELAY_HEADER, &seconds.to_string())], body)
}
