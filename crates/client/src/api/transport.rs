//! Sends one request and receives its answer. Tests of other modules replace it, so they need no
//! network.
//!
//! A [`Transport`] sends each request once: it neither retries nor follows redirects.
//! [`HttpTransport`] uses the network; tests and snapshots have other transports.

use std::{
    error::Error,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE, IF_UNMODIFIED_SINCE},
};
use reqwest::{Client, multipart, redirect};
use rustls::{
    ClientConfig, InvalidMessage, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::time::timeout;

use super::{message::to_safe_line, service::ServiceAddress};
use crate::{operation::Method, secret::Secret};

/// The maximum size of a body, in bytes after decompression. A page of 100 projects takes less than
/// 1 MiB.
const MAX_BODY_BYTES: usize = 32 << 20;

/// The time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit for a read.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The idle limit of the answer to a read. The answer to a write may stall until its time limit.
pub(super) const READ_IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// The time limit for a write. It is longer than the service's own limit for a request (60 s) plus
/// the time to connect. So after it, a write without an answer has ended in the service.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(75);

/// An encoded request. `Debug` hides its body, which may contain secrets.
#[derive(Clone)]
pub struct WireRequest {
    /// The method.
    pub method: Method,
    /// The path and the query below `/api/v4`, percent-encoded.
    pub target: String,
    /// The body.
    pub body: EncodedBody,
    /// The object must not have changed after this time, by the service's clock.
    pub if_unmodified_since: Option<SystemTime>,
    /// The time limit.
    pub timeout: Duration,
    /// The idle limit: how long its answer may stall.
    pub idle_timeout: Duration,
}

impl fmt::Debug for WireRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireRequest")
            .field("method", &self.method)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// An encoded body, with its secrets.
#[derive(Clone, Default)]
pub enum EncodedBody {
    /// None.
    #[default]
    Empty,
    /// A JSON text.
    Json(Bytes),
    /// A form (`multipart/form-data`).
    Form(Vec<FormPart>),
}

/// One part of a form.
#[derive(Clone)]
pub struct FormPart {
    /// The field.
    pub name: String,
    /// The file name, if the part is a file.
    pub file_name: Option<String>,
    /// The value.
    pub value: Bytes,
}

/// An answer: at least its status and headers arrived.
#[derive(Clone, Debug)]
pub struct WireResponse {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, decompressed.
    pub body: Result<Bytes, BodyError>,
}

/// The reason why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The connection broke.
    Truncated,
    /// It is larger than 32 MiB.
    TooLarge,
}

/// The phase in which a request without an answer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPhase {
    /// It did not reach the service.
    NotSent,
    /// It may have reached the service.
    MaybeSent,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportError {
    /// The network failed.
    Network,
    /// The time limit passed.
    Timeout,
    /// The other side is not trusted.
    Tls,
    /// HTTP cannot express the request.
    Request,
    /// Offline, and the answer is not in the snapshot.
    Offline,
}

/// There is no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct SendError {
    /// The phase in which the request failed.
    pub phase: RequestPhase,
    /// The reason why there is no answer.
    pub failure: TransportError,
    /// Help that is more specific than the general help for the failure, if any.
    pub hint: Option<&'static str>,
    reason: String,
}

impl SendError {
    /// Creates an error with this `reason`, which is shown to the user.
    pub fn new(phase: RequestPhase, failure: TransportError, reason: &str) -> Self {
        Self { phase, failure, hint: None, reason: to_safe_line(reason) }
    }
}

/// Sends each request to one service, once.
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends `request` and receives its answer, whatever its status.
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>>;
}

/// The network settings, apart from the address and the token.
#[derive(Clone, Default)]
pub struct HttpOptions {
    /// File of certificate authorities (PEM) to trust instead of the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// The client certificate, and its private key (PEM).
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The proxy. It is never taken from common variables such as `HTTPS_PROXY`, because a proxy
    /// receives the requests with the token.
    pub proxy: Option<String>,
    /// True if such a variable is set but not used; connection errors then mention it.
    pub ignores_proxy: bool,
    /// The maximum number of requests in flight.
    pub max_in_flight: usize,
}

/// The reason why HTTP cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportSetupError {
    /// The token is not valid in a header.
    #[error("the token is empty or has invalid characters")]
    Token,
    /// The file contains no certificate.
    #[error("the CA file holds no PEM certificate")]
    Authorities,
    /// The client certificate, or its key, is not valid.
    #[error("the client certificate does not come with its private key, both in PEM")]
    Identity,
    /// The system has no certificate authorities.
    #[error("cannot read the system's certificate authorities ({0}); pass a file with `--ca-file`")]
    System(String),
    /// The proxy is not valid.
    #[error("the proxy is not a URL like http://proxy.example.org:3128")]
    Proxy,
    /// Anything else.
    #[error("cannot set up HTTP: {0}")]
    Http(String),
}

/// HTTP to one service.
pub struct HttpTransport {
    service: ServiceAddress,
    client: Client,
    ignores_proxy: bool,
    has_identity: bool,
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").field("service", &self.service).finish_non_exhaustive()
    }
}

impl HttpTransport {
    /// Prepares to send requests with `token` to `service`, without connecting.
    ///
    /// # Errors
    /// [`TransportSetupError`] if the token, a certificate or the proxy is not valid.
    pub fn new(
        service: &ServiceAddress,
        token: &Secret,
        options: &HttpOptions,
    ) -> Result<Self, TransportSetupError> {
        let mut token_header = HeaderValue::from_str(token.expose())
            .ok()
            .filter(|v| !v.is_empty())
            .ok_or(TransportSetupError::Token)?;
        token_header.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert("private-token", token_header);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let builder = Client::builder()
            .default_headers(headers)
            .user_agent(concat!("undrift/", env!("CARGO_PKG_VERSION")))
            // A redirect could send the header `PRIVATE-TOKEN` to another host.
            .redirect(redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(options.max_in_flight.max(1))
            .tcp_nodelay(true)
            .https_only(service.is_https())
            .tls_backend_preconfigured(tls_config(service, options)?);
        // Send plain http to this machine directly, never through a proxy.
        let is_local = !service.is_https() && service.is_loopback();
        let proxy = options.proxy.as_deref().map(reqwest::Proxy::all).transpose();
        let builder = match proxy.map_err(|_| TransportSetupError::Proxy)?.filter(|_| !is_local) {
            Some(proxy) => builder.proxy(proxy),
            None => builder.no_proxy(),
        };
        let client = builder.build().map_err(|e| TransportSetupError::Http(root_cause(&e)))?;
        Ok(Self {
            service: service.clone(),
            client,
            ignores_proxy: options.ignores_proxy,
            has_identity: options.identity.is_some(),
        })
    }

    async fn exchange(&self, request: WireRequest) -> Result<WireResponse, SendError> {
        let url = self.service.target_url(&request.target);
        let url = url.ok_or_else(|| {
            SendError::new(
                RequestPhase::NotSent,
                TransportError::Request,
                "this path is not a valid URL",
            )
        })?;
        let idle_timeout = request.idle_timeout;
        let builder = self.client.request(request.method.into(), url).timeout(request.timeout);
        let builder = match request.if_unmodified_since {
            Some(time) => builder.header(IF_UNMODIFIED_SINCE, httpdate::fmt_http_date(time)),
            None => builder,
        };
        let builder = match request.body {
            EncodedBody::Empty => builder,
            EncodedBody::Json(json) => builder.header(CONTENT_TYPE, "application/json").body(json),
            EncodedBody::Form(parts) => builder.multipart(build_form(parts)),
        };
        let Ok(send_result) = timeout(idle_timeout, builder.send()).await else {
            let why = "the service did not start to answer in time";
            return Err(SendError::new(RequestPhase::MaybeSent, TransportError::Timeout, why));
        };
        let mut response = send_result.map_err(|e| self.describe_failure(&e))?;
        let mut body = Vec::new();
        let body = loop {
            match timeout(idle_timeout, response.chunk()).await {
                Ok(Ok(Some(chunk))) if body.len() + chunk.len() > MAX_BODY_BYTES => {
                    break Err(BodyError::TooLarge);
                }
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                Ok(Ok(None)) => break Ok(Bytes::from(body)),
                Ok(Err(_)) | Err(_) => break Err(BodyError::Truncated),
            }
        };
        let status = response.status().as_u16();
        Ok(WireResponse { status, headers: std::mem::take(response.headers_mut()), body })
    }

    fn describe_failure(&self, error: &reqwest::Error) -> SendError {
        let mut send_error = classify_failure(error, self.has_identity);
        if self.ignores_proxy
            && send_error.phase == RequestPhase::NotSent
            && send_error.hint.is_none()
        {
            send_error.hint = Some(
                "the environment names a proxy, which undrift uses only if `--proxy` or UNDRIFT_PROXY names it",
            );
        }
        send_error
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        Box::pin(self.exchange(request))
    }
}

/// Configures TLS: trusts the authorities from `options`, or else the system's. Without TLS, loads
/// no certificates.
fn tls_config(
    service: &ServiceAddress,
    options: &HttpOptions,
) -> Result<ClientConfig, TransportSetupError> {
    let builder =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| TransportSetupError::Http(e.to_string()))?;
    if !service.is_https() {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let builder = match &options.ca_pem {
        Some(pem) => builder.with_root_certificates(parse_authorities(pem)?),
        None => builder
            .with_platform_verifier()
            .map_err(|e| TransportSetupError::System(e.to_string()))?,
    };
    let Some((certificates, key)) = &options.identity else {
        return Ok(builder.with_no_client_auth());
    };
    let certificates = CertificateDer::pem_slice_iter(certificates).collect::<Result<_, _>>();
    let (Ok(certificates), Ok(key)) = (certificates, PrivateKeyDer::from_pem_slice(key)) else {
        return Err(TransportSetupError::Identity);
    };
    builder.with_client_auth_cert(certificates, key).map_err(|_| TransportSetupError::Identity)
}

fn parse_authorities(pem: &[u8]) -> Result<RootCertStore, TransportSetupError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| TransportSetupError::Authorities)?;
        // Skip a certificate of a bundle that rustls rejects: it is not trusted.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() { Err(TransportSetupError::Authorities) } else { Ok(roots) }
}

fn build_form(parts: Vec<FormPart>) -> multipart::Form {
    parts.into_iter().fold(multipart::Form::new(), |form, part| {
        let value = multipart::Part::stream(part.value);
        let value = match part.file_name {
            Some(name) => value.file_name(name),
            None => value,
        };
        form.part(part.name, value)
    })
}

fn classify_failure(error: &reqwest::Error, has_identity: bool) -> SendError {
    let tls_error = error_chain(error).find_map(|cause| cause.downcast_ref::<rustls::Error>());
    let failure = if tls_error.is_some() {
        TransportError::Tls
    } else if error.is_timeout() {
        TransportError::Timeout
    } else if error.is_builder() {
        TransportError::Request
    } else {
        TransportError::Network
    };
    let phase = if error.is_connect() || error.is_builder() {
        RequestPhase::NotSent
    } else {
        RequestPhase::MaybeSent
    };
    let reason = match tls_error {
        Some(tls_error) if is_plain_http_answer(tls_error) => {
            "the port answers without TLS".to_owned()
        }
        _ => root_cause(error),
    };
    let hint = tls_error.map(|tls| tls_hint(tls, has_identity));
    SendError { hint, ..SendError::new(phase, failure, &reason) }
}

fn is_plain_http_answer(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType))
}

/// Help for a TLS failure; depends on whether a client certificate was sent.
fn tls_hint(error: &rustls::Error, has_identity: bool) -> &'static str {
    use rustls::{AlertDescription as Alert, CertificateError as Wrong, Error};
    match error {
        _ if is_plain_http_answer(error) => {
            "check the port, and whether the address begins with `https` or `http`"
        }
        Error::AlertReceived(
            Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::CertificateUnknown
            | Alert::CertificateExpired
            | Alert::UnknownCA
            // With TLS 1.2, the usual answer if there is none.
            | Alert::HandshakeFailure,
        ) => {
            if has_identity {
                "the service refuses the client certificate: check `--client-cert`"
            } else {
                "the service wants a client certificate: `--client-cert`"
            }
        }
        Error::AlertReceived(_) => "check the address: the service ended the connection",
        Error::InvalidCertificate(
            Wrong::Expired
            | Wrong::ExpiredContext { .. }
            | Wrong::NotValidYet
            | Wrong::NotValidYetContext { .. },
        ) => "check the clock of this machine, and renew the certificate of the service",
        Error::InvalidCertificate(
            Wrong::NotValidForName | Wrong::NotValidForNameContext { .. },
        ) => "check the address: the certificate is for another name",
        Error::InvalidCertificate(Wrong::Other(other))
            if format!("{other:?}").contains("CaUsedAsEndEntity") =>
        {
            "the service needs a certificate of its own, signed by the authority: it shows that of an authority"
        }
        _ => {
            "if the service uses a private certificate authority, pass its certificate with `--ca-file`"
        }
    }
}

/// `error` and its chain of causes, including those that an IO error wraps.
fn error_chain<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| match error.downcast_ref::<std::io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
        None => error.source(),
    })
}

/// The deepest cause of an error: it is more precise than the layers above it, and has no URL.
fn root_cause(error: &reqwest::Error) -> String {
    error_chain(error)
        .skip(1)
        .last()
        .map_or_else(|| "the request failed".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription as Alert, CertificateError as Wrong, Error, OtherError};

    use super::*;

    #[test]
    fn each_failure_of_tls_has_its_own_advice() {
        #[derive(Debug, thiserror::Error)]
        #[error("")]
        struct CaUsedAsEndEntity;
        let certificate_required = || Error::AlertReceived(Alert::CertificateRequired);
        let wrong = Error::InvalidCertificate;
        for (error, has_identity, words) in [
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), false, "the port"),
            (certificate_required(), false, "wants a client certificate"),
            (certificate_required(), true, "refuses the client certificate"),
            (wrong(Wrong::Expired), false, "the clock"),
            (wrong(Wrong::NotValidYet), false, "the clock"),
            (wrong(Wrong::NotValidForName), false, "another name"),
            (wrong(Wrong::Other(OtherError(Arc::new(CaUsedAsEndEntity)))), false, "of its own"),
            (wrong(Wrong::UnknownIssuer), false, "--ca-file"),
            (Error::AlertReceived(Alert::InternalError), true, "check the address"),
        ] {
            let hint = tls_hint(&error, has_identity);
            assert!(hint.contains(words), "{error:?}: {hint}");
        }
    }
}
