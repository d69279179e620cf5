//! Sends one request and receives its response.
//!
//! A [`Transport`] sends each request once: it neither retries nor follows redirects.
//! [`HttpTransport`] uses the network. Snapshots and the tests of other modules have their own
//! transports, which need no network.

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

/// How long the response to a read may stall. For a write, only [`WRITE_TIMEOUT`] applies.
pub(super) const READ_IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// The time limit for a write. It is longer than the time to connect plus the service's own limit
/// for a request (60 s). When the time limit passes, the service has therefore already ended the
/// write.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(75);

/// An encoded request. `Debug` hides its body, which may contain secrets.
#[derive(Clone)]
pub struct WireRequest {
    /// The HTTP method.
    pub method: Method,
    /// The path and the query below `/api/v4`, percent-encoded.
    pub target: String,
    /// The encoded body.
    pub body: EncodedBody,
    /// The service refuses the request if the object changed after this time, by the service's clock.
    pub if_unmodified_since: Option<SystemTime>,
    /// The time limit for the request and its response.
    pub timeout: Duration,
    /// The idle limit: how long the response may stall.
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
    /// The request has no body.
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
    /// The name of the field.
    pub name: String,
    /// The file name, if the part is a file.
    pub file_name: Option<String>,
    /// The content of the field or of the file.
    pub value: Bytes,
}

/// A response whose status and headers arrived. The body may be incomplete.
#[derive(Clone, Debug)]
pub struct WireResponse {
    /// The HTTP status.
    pub status: u16,
    /// The response headers.
    pub headers: HeaderMap,
    /// The body, decompressed.
    pub body: Result<Bytes, BodyError>,
}

/// The reason why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The connection broke, or the body stalled.
    Truncated,
    /// The body is larger than 32 MiB.
    TooLarge,
}

/// The phase in which a request without a response failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPhase {
    /// The request did not reach the service.
    NotSent,
    /// The request may have reached the service.
    MaybeSent,
}

/// The reason why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendErrorKind {
    /// The network failed.
    Network,
    /// The time limit passed.
    Timeout,
    /// TLS failed, for example because the certificate of the service is not trusted.
    Tls,
    /// The request is not a valid HTTP request, for example because its URL is not valid.
    InvalidRequest,
    /// The run is offline, and the snapshot does not contain the response.
    Offline,
}

/// The error of a request without a response.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct SendError {
    /// The phase in which the request failed.
    pub phase: RequestPhase,
    /// The reason why there is no response.
    pub kind: SendErrorKind,
    /// Help that is more specific than the general help for the failure; `None` if there is only
    /// general help.
    pub hint: Option<&'static str>,
    reason: String,
}

impl SendError {
    /// Creates an error with this `reason`, which is shown to the user.
    pub fn new(phase: RequestPhase, kind: SendErrorKind, reason: &str) -> Self {
        Self { phase, kind, hint: None, reason: to_safe_line(reason) }
    }
}

/// Sends each request once, and all requests to one service.
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends `request` and receives its response, whatever its status.
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>>;
}

/// The network settings, apart from the address and the token.
#[derive(Clone, Default)]
pub struct HttpOptions {
    /// The certificate authorities (PEM) to trust instead of the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// The client certificate, and its private key (PEM).
    pub client_cert: Option<(Vec<u8>, Vec<u8>)>,
    /// The URL of the proxy. It is never taken from common variables such as `HTTPS_PROXY`, because
    /// a proxy receives the requests with the token.
    pub proxy: Option<String>,
    /// True if a variable such as `HTTPS_PROXY` is set, and `proxy` is not. If a connection fails, the
    /// help then says that undrift ignores such variables.
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
    /// The file of certificate authorities contains no certificate.
    #[error("the CA file contains no PEM certificate")]
    CaFile,
    /// The client certificate, or its key, is not valid.
    #[error("the client certificate and its private key must both be valid PEM")]
    ClientCert,
    /// The system has no certificate authorities.
    #[error("cannot read the system's certificate authorities ({0}); pass a file with `--ca-file`")]
    SystemAuthorities(String),
    /// The proxy is not valid.
    #[error("the proxy is not a URL like http://proxy.example.org:3128")]
    Proxy,
    /// HTTP cannot be set up for another reason.
    #[error("cannot set up HTTP: {0}")]
    Http(String),
}

/// Sends requests to one service by HTTP.
pub struct HttpTransport {
    service: ServiceAddress,
    client: Client,
    ignores_proxy: bool,
    has_client_cert: bool,
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
            .filter(|value| !value.is_empty())
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
            .tls_backend_preconfigured(build_tls_config(service, options)?);
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
            has_client_cert: options.client_cert.is_some(),
        })
    }

    async fn send_and_receive(&self, request: WireRequest) -> Result<WireResponse, SendError> {
        let url = self.service.target_url(&request.target);
        let url = url.ok_or_else(|| {
            SendError::new(
                RequestPhase::NotSent,
                SendErrorKind::InvalidRequest,
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
            let reason = "the service did not start to answer in time";
            return Err(SendError::new(RequestPhase::MaybeSent, SendErrorKind::Timeout, reason));
        };
        let mut response = send_result.map_err(|e| self.to_send_error(&e))?;
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

    fn to_send_error(&self, error: &reqwest::Error) -> SendError {
        let mut send_error = classify_failure(error, self.has_client_cert);
        if self.ignores_proxy
            && send_error.phase == RequestPhase::NotSent
            && send_error.hint.is_none()
        {
            send_error.hint = Some(
                "undrift ignores the proxy variables of the environment: pass the proxy with `--proxy` or UNDRIFT_PROXY",
            );
        }
        send_error
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        Box::pin(self.send_and_receive(request))
    }
}

/// The TLS configuration. It trusts the authorities in `options`, or else the system's. If the service
/// uses plain HTTP, no certificates are loaded.
fn build_tls_config(
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
            .map_err(|e| TransportSetupError::SystemAuthorities(e.to_string()))?,
    };
    let Some((certificates, key)) = &options.client_cert else {
        return Ok(builder.with_no_client_auth());
    };
    let certificates = CertificateDer::pem_slice_iter(certificates).collect::<Result<_, _>>();
    let (Ok(certificates), Ok(key)) = (certificates, PrivateKeyDer::from_pem_slice(key)) else {
        return Err(TransportSetupError::ClientCert);
    };
    builder.with_client_auth_cert(certificates, key).map_err(|_| TransportSetupError::ClientCert)
}

fn parse_authorities(pem: &[u8]) -> Result<RootCertStore, TransportSetupError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| TransportSetupError::CaFile)?;
        // Skip a certificate that rustls rejects. It is not trusted then.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() { Err(TransportSetupError::CaFile) } else { Ok(roots) }
}

fn build_form(parts: Vec<FormPart>) -> multipart::Form {
    parts.into_iter().fold(multipart::Form::new(), |form, part| {
        let form_part = multipart::Part::stream(part.value);
        let named_part = match part.file_name {
            Some(name) => form_part.file_name(name),
            None => form_part,
        };
        form.part(part.name, named_part)
    })
}

fn classify_failure(error: &reqwest::Error, has_client_cert: bool) -> SendError {
    let tls_error = error_chain(error).find_map(|cause| cause.downcast_ref::<rustls::Error>());
    let kind = if tls_error.is_some() {
        SendErrorKind::Tls
    } else if error.is_timeout() {
        SendErrorKind::Timeout
    } else if error.is_builder() {
        SendErrorKind::InvalidRequest
    } else {
        SendErrorKind::Network
    };
    let phase = if error.is_connect() || error.is_builder() {
        RequestPhase::NotSent
    } else {
        RequestPhase::MaybeSent
    };
    let reason = match tls_error {
        Some(tls_error) if is_plain_http_response(tls_error) => {
            "the port answers without TLS".to_owned()
        }
        _ => root_cause(error),
    };
    let hint = tls_error.map(|tls| tls_hint(tls, has_client_cert));
    SendError { hint, ..SendError::new(phase, kind, &reason) }
}

fn is_plain_http_response(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType))
}

/// Help for a TLS failure. The help depends on whether a client certificate was sent.
fn tls_hint(error: &rustls::Error, has_client_cert: bool) -> &'static str {
    use rustls::{AlertDescription as Alert, CertificateError, Error};
    match error {
        _ if is_plain_http_response(error) => {
            "check the port, and whether the address begins with `https` or `http`"
        }
        Error::AlertReceived(
            Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::CertificateUnknown
            | Alert::CertificateExpired
            | Alert::UnknownCA
            // In TLS 1.2, servers usually send this alert if the client sent no certificate.
            | Alert::HandshakeFailure,
        ) => {
            if has_client_cert {
                "the service refuses the client certificate: check `--client-cert`"
            } else {
                "the service requires a client certificate: pass it with `--client-cert`"
            }
        }
        Error::AlertReceived(_) => "check the address: the service ended the connection",
        Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        ) => "check the clock of this machine, and renew the certificate of the service",
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "check the address: the certificate is for another name",
        Error::InvalidCertificate(CertificateError::Other(other))
            if format!("{other:?}").contains("CaUsedAsEndEntity") =>
        {
            "the service presents the certificate of an authority; it needs its own certificate, signed by that authority"
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

/// The innermost cause of an error. It is more precise than the outer causes, and contains no URL.
fn root_cause(error: &reqwest::Error) -> String {
    error_chain(error)
        .skip(1)
        .last()
        .map_or_else(|| "the request failed".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription as Alert, CertificateError, Error, OtherError};

    use super::*;

    #[test]
    fn each_failure_of_tls_has_its_own_advice() {
        #[derive(Debug, thiserror::Error)]
        #[error("")]
        struct CaUsedAsEndEntity;
        let certificate_required = || Error::AlertReceived(Alert::CertificateRequired);
        let wrong = Error::InvalidCertificate;
        for (error, has_client_cert, words) in [
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), false, "the port"),
            (certificate_required(), false, "requires a client certificate"),
            (certificate_required(), true, "refuses the client certificate"),
            (wrong(CertificateError::Expired), false, "the clock"),
            (wrong(CertificateError::NotValidYet), false, "the clock"),
            (wrong(CertificateError::NotValidForName), false, "another name"),
            (
                wrong(CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity)))),
                false,
                "its own certificate",
            ),
            (wrong(CertificateError::UnknownIssuer), false, "--ca-file"),
            (Error::AlertReceived(Alert::InternalError), true, "check the address"),
        ] {
            let hint = tls_hint(&error, has_client_cert);
            assert!(hint.contains(words), "{error:?}: {hint}");
        }
    }
}
