//! Tests of the real transport, over loopback sockets.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::script::{FixedRandom, secrets};
use crate::{
    api::{
        ClientSettings, HttpOptions, HttpTransport, ReadClient, ServiceAddress,
        TransportSetupError, WriteClient,
    },
    cause::Cause,
    operation as op,
    secret::Secret,
};

/// The certificate of an authority whose key is destroyed. The authority signed the two
/// certificates for `localhost` below, each stored with its key. All three are for these tests
/// alone.
const AUTHORITY: &str = include_str!("tls/ca.pem");
const SERVER: &str = include_str!("tls/server.pem");
const CLIENT: &str = include_str!("tls/client.pem");

const TOKEN: &str = "token-of-undrift";

/// Settings for retries without delay.
fn settings() -> ClientSettings {
    ClientSettings { random: Arc::new(FixedRandom(0.0)), ..ClientSettings::default() }
}

/// Starts a server that sends `response` on each connection, and then closes the connection. Returns
/// the address of the server, and the requests that it received.
async fn serve_response(response: Vec<u8>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let request_log = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = Vec::new();
            // A TLS client waits for a response to its first record, which starts with 22.
            while !request.windows(4).any(|w| w == b"\r\n\r\n") && request.first() != Some(&22) {
                if socket.read_buf(&mut request).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            request_log.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
            socket.write_all(&response).await.ok();
            socket.shutdown().await.ok();
        }
    });
    (address, requests)
}

fn client(url: &str) -> ReadClient {
    client_with(url, &HttpOptions::default())
}

fn client_with(url: &str, options: &HttpOptions) -> ReadClient {
    let service = ServiceAddress::parse(url, true).unwrap();
    let transport = HttpTransport::new(&service, &Secret::new(TOKEN), options).unwrap();
    ReadClient::new(service, Arc::new(transport), Arc::new(secrets()), settings())
}

#[tokio::test]
async fn a_request_carries_the_token_and_keeps_encoded_slashes() {
    let (url, requests) = serve_response(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8\r\n\r\n{\"id\":1}"
            .to_vec(),
    )
    .await;
    let response = client(&format!("{url}/git/api/v4/"))
        .get(op::PROJECT_GET.request().with_argument("id", "acme/shop"))
        .await
        .unwrap();
    assert_eq!(response.object().unwrap()["id"], 1);
    let request = requests.lock().unwrap()[0].to_ascii_lowercase();
    assert!(request.starts_with("get /git/api/v4/projects/acme%2fshop http/1.1\r\n"), "{request}");
    for header in [
        "private-token: token-of-undrift\r\n",
        "accept: application/json\r\n",
        "user-agent: undrift/",
        "accept-encoding: gzip",
    ] {
        assert!(request.contains(header), "{header} in {request}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (other_url, requests) = serve_response(Vec::new()).await;
    for status in
        ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        let response = format!(
            "HTTP/1.1 {status}\r\nlocation: {other_url}/api/v4/projects/7\r\ncontent-length: 0\r\n\r\n"
        );
        let (url, _) = serve_response(response.into_bytes()).await;
        let error =
            client(&url).get(op::PROJECT_GET.request().with_argument("id", 1)).await.unwrap_err();
        assert!(error.moved_to() == Some(7) && !error.is_not_found(), "{error}");
    }
    assert_eq!(*requests.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_token_that_cannot_be_a_header_is_refused_and_not_shown() {
    let service = ServiceAddress::parse("http://localhost", false).unwrap();
    for token in ["", "canary\nX: y", "canary\0"] {
        let error =
            HttpTransport::new(&service, &Secret::new(token), &HttpOptions::default()).unwrap_err();
        assert_eq!(error, TransportSetupError::Token);
    }
    let transport =
        HttpTransport::new(&service, &Secret::new(TOKEN), &HttpOptions::default()).unwrap();
    assert!(!format!("{transport:?}").contains("token-of"));
}

fn json_response(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[tokio::test]
async fn a_response_cut_anywhere_is_never_a_complete_list() {
    let with_length =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-total: 2\r\ncontent-length: 19\r\n\r\n[{\"id\":1},{\"id\":2}]".to_vec();
    let chunked = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-total: 2\r\ntransfer-encoding: chunked\r\n\r\na\r\n[{\"id\":1},\r\n9\r\n{\"id\":2}]\r\n0\r\n\r\n";
    for response in [with_length, chunked.to_vec()] {
        for cut in 0..=response.len() {
            let (url, requests) = serve_response(response[..cut].to_vec()).await;
            let list = client(&url).list(op::HOOK_LIST.request().with_argument("id", 1)).await;
            if cut < response.len() {
                let error = list.unwrap_err();
                assert!(!error.is_not_found(), "{cut}: {error}");
                assert_eq!(requests.lock().unwrap().len(), 6, "{cut}: {error}");
            } else {
                assert_eq!(list.unwrap().len(), 2);
            }
        }
    }
}

#[tokio::test]
async fn a_body_above_the_size_limit_is_not_read() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n[";
    let (url, requests) = serve_response([head.as_slice(), &vec![b' '; 33 << 20]].concat()).await;
    let error =
        client(&url).get(op::PROJECT_GET.request().with_argument("id", 1)).await.unwrap_err();
    assert!(error.to_string().ends_with("answered 200 with a body of more than 32 MiB"), "{error}");
    assert_eq!(requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_compressed_response_is_read() {
    // `{"id":1}`, as gzip with one stored block.
    let gzip =
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x08\0\xf7\xff{\"id\":1}\xc5\xf8\x5d\x44\x08\x00\x00\x00";
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        gzip.len()
    );
    let (url, _) = serve_response([head.as_bytes(), gzip.as_slice()].concat()).await;
    let response =
        client(&url).get(op::PROJECT_GET.request().with_argument("id", 1)).await.unwrap();
    assert_eq!(response.object().unwrap()["id"], 1);
}

#[tokio::test]
async fn an_unreachable_service_gets_every_retry_and_nothing_is_in_doubt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = WriteClient::new(client(&url));
    let error =
        client.send(op::PROJECT_ARCHIVE.request().with_argument("id", 1)).await.unwrap_err();
    assert!(
        error.has_failed_to_connect()
            && !error.is_tls_failure()
            && error.in_doubt_since().is_none(),
        "{error}"
    );
    let count = client.read_client().counts()["project-archive"];
    assert_eq!((count.calls, count.retries), (6, 5));
}

fn options_with_ca(ca: &str) -> HttpOptions {
    HttpOptions { ca_pem: Some(ca.into()), ..HttpOptions::default() }
}

#[tokio::test]
async fn a_failed_tls_handshake_is_not_retried() {
    let (url, requests) = serve_response(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).await;
    let client = client_with(&url.replace("http:", "https:"), &options_with_ca(AUTHORITY));
    let error = client.get(op::CURRENT_USER.request()).await.unwrap_err();
    assert!(error.is_tls_failure(), "{error:?}");
    assert!(error.hint().unwrap().starts_with("check the port"), "the certificate is not at fault");
    assert!(format!("{:?}", Cause::from(&error)).contains("the port answers without TLS"));
    assert!(!requests.lock().unwrap().join("").contains(TOKEN));
}

/// Starts a server with TLS that requires a client certificate, and answers each connection once.
/// Returns its URL.
async fn serve_mutual_tls() -> String {
    use tokio_rustls::{
        TlsAcceptor,
        rustls::{
            RootCertStore, ServerConfig,
            pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
            server::WebPkiClientVerifier,
        },
    };
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY.as_bytes()).unwrap()).unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), ring.clone());
    let config = ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(SERVER.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(SERVER.as_bytes()).unwrap(),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            // A client without the certificate gets an alert.
            let Ok(mut socket) = acceptor.accept(socket).await else { continue };
            let mut request = Vec::new();
            while !request.windows(4).any(|w| w == b"\r\n\r\n") {
                if socket.read_buf(&mut request).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            socket.write_all(&json_response("{\"id\":1}")).await.ok();
            socket.shutdown().await.ok();
        }
    });
    url
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_the_service_that_asks_for_one() {
    let url = serve_mutual_tls().await;
    let identity = Some((CLIENT.into(), CLIENT.into()));
    let options = HttpOptions { client_cert: identity, ..options_with_ca(AUTHORITY) };
    let response = client_with(&url, &options).get(op::CURRENT_USER.request()).await.unwrap();
    assert_eq!(response.object().unwrap()["id"], 1);

    let error = client_with(&url, &options_with_ca(AUTHORITY))
        .get(op::CURRENT_USER.request())
        .await
        .unwrap_err();
    assert!(error.hint().unwrap().contains("--client-cert"), "{error:?}");

    let options = HttpOptions { ca_pem: Some(SERVER.into()), ..options };
    let error = client_with(&url, &options).get(op::CURRENT_USER.request()).await.unwrap_err();
    assert!(error.hint().unwrap().contains("--ca-file"), "{error:?}");
}

#[test]
fn a_client_certificate_needs_its_key() {
    let service = ServiceAddress::parse("https://localhost", false).unwrap();
    for (certificate, key) in
        [(CLIENT, AUTHORITY), ("", CLIENT), ("nothing", "nothing"), (CLIENT, SERVER)]
    {
        let identity = Some((certificate.into(), key.into()));
        let options = HttpOptions { client_cert: identity, ..options_with_ca(AUTHORITY) };
        let error = HttpTransport::new(&service, &Secret::new(TOKEN), &options).unwrap_err();
        assert_eq!(error, TransportSetupError::ClientCert);
    }
}

#[tokio::test]
async fn a_sign_in_page_is_told_apart_from_other_responses() {
    let response = |content_type: &str| {
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: 6\r\n\r\n");
        [head.as_bytes(), b"<html>"].concat()
    };
    for (content_type, problem, hint) in [
        ("text/html; charset=utf-8", "an HTML page", "sign-in page"),
        ("text/plain", "something other than JSON", "a proxy may"),
    ] {
        let (url, _) = serve_response(response(content_type)).await;
        let error = client(&url).get(op::CURRENT_USER.request()).await.unwrap_err();
        assert!(error.to_string().ends_with(&format!("answered 200 with {problem}")), "{error}");
        assert!(error.hint().unwrap().contains(hint), "{error}");
    }
}

#[tokio::test]
async fn a_failed_connection_mentions_a_proxy_that_is_ignored() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for (ignores_proxy, hint) in [(true, "UNDRIFT_PROXY"), (false, "check the address")] {
        let options = HttpOptions { ignores_proxy, ..HttpOptions::default() };
        let error = client_with(&url, &options).get(op::CURRENT_USER.request()).await.unwrap_err();
        assert!(error.hint().unwrap().contains(hint), "{error}");
    }
}

#[test]
fn a_file_without_certificates_is_refused() {
    let service = ServiceAddress::parse("https://localhost", false).unwrap();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for pem in ["", "nothing", broken] {
        let options = HttpOptions { ca_pem: Some(pem.into()), ..HttpOptions::default() };
        assert_eq!(
            HttpTransport::new(&service, &Secret::new(TOKEN), &options).unwrap_err(),
            TransportSetupError::CaFile,
            "{pem}"
        );
    }
    let options =
        HttpOptions { proxy: Some("http://user:canary@ [".into()), ..HttpOptions::default() };
    let service = ServiceAddress::parse("http://localhost", false).unwrap();
    assert_eq!(
        HttpTransport::new(&service, &Secret::new(TOKEN), &options).unwrap_err(),
        TransportSetupError::Proxy
    );
}

#[tokio::test]
async fn a_proxy_is_used_if_it_is_named() {
    let (proxy, requests) = serve_response(json_response("{}")).await;
    let options = HttpOptions { proxy: Some(proxy), ..HttpOptions::default() };
    let client = client_with("http://gitlab.test:1", &options);
    client.get(op::CURRENT_USER.request()).await.unwrap();
    assert!(
        requests.lock().unwrap()[0].starts_with("GET http://gitlab.test:1/api/v4/user HTTP/1.1")
    );
}

/// Plain http to this machine is allowed only because the token does not leave the machine.
#[tokio::test]
async fn no_proxy_gets_the_token_in_plain_text_for_this_machine() {
    let (proxy, requests) = serve_response(json_response("{}")).await;
    let (service, service_requests) = serve_response(json_response("{}")).await;
    let options = HttpOptions { proxy: Some(proxy), ..HttpOptions::default() };
    client_with(&service, &options).get(op::CURRENT_USER.request()).await.unwrap();
    assert_eq!(*requests.lock().unwrap(), Vec::<String>::new());
    assert_eq!(service_requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn no_proxy_is_taken_from_the_environment() {
    let (proxy_url, requests) = serve_response(json_response("{}")).await;
    // Environment variables belong to the process. Therefore another test runs again in its own
    // process.
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "api::tests::http::a_request_carries_the_token_and_keeps_encoded_slashes",
    ]);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
    {
        command.env(name, &proxy_url);
    }
    let output = command.env_remove("NO_PROXY").env_remove("no_proxy").output().await.unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    assert_eq!(*requests.lock().unwrap(), Vec::<String>::new());
}
