//! The real transport, over loopback sockets.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::script::{Fixed, secrets};
use crate::{
    api::{
        Count, HttpOptions, HttpTransport, ReadClient, Service, Settings, SetupError, WriteClient,
    },
    operation as op,
    secret::Secret,
};

/// A certificate authority that has signed nothing; its key is destroyed.
const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBhjCCASugAwIBAgIUG/EzUkGjYBM+VgzUUZTeKCA+TgUwCgYIKoZIzj0EAwIw\n\
FzEVMBMGA1UEAwwMdW5kcmlmdC10ZXN0MCAXDTI2MTEyMTEwNDM1OVoYDzIxMjYx\n\
MDI4MTA0MzU5WjAXMRUwEwYDVQQDDAx1bmRyaWZ0LXRlc3QwWTATBgcqhkjOPQIB\n\
BggqhkjOPQMBBwNCAATNemBuNCa1mwtr4DqlgThoC92FA35Ga9rzWW0r8u2gRN6z\n\
zBPzMQGLd6bL2vxeXQwzSCLAT0iRssz38p9oQCfzo1MwUTAdBgNVHQ4EFgQUeSgN\n\
zChUTXS1UxJruxUWe7jVF8UwHwYDVR0jBBgwFoAUeSgNzChUTXS1UxJruxUWe7jV\n\
F8UwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEArMwTnF5rOfYV\n\
9W21AJsHl8y+q6kc9B4zZ5x8xasouyoCIQC+VYDdQTtAB1IPAXsYlkZINHwtqP2y\n\
h3374duGxE3OfQ==\n\
-----END CERTIFICATE-----";

const TOKEN: &str = "token-of-undrift";

/// Retries without delay.
fn settings() -> Settings {
    Settings { random: Arc::new(Fixed(0.0)), ..Settings::default() }
}

/// A server that gives `answer` to each connection and closes it. It keeps the requests.
async fn serve(answer: Vec<u8>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = Vec::new();
            // A TLS client waits for an answer to its first record, which starts with 22.
            while !request.windows(4).any(|w| w == b"\r\n\r\n") && request.first() != Some(&22) {
                if socket.read_buf(&mut request).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            seen.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
            socket.write_all(&answer).await.ok();
            socket.shutdown().await.ok();
        }
    });
    (address, requests)
}

fn client(url: &str) -> ReadClient {
    let service = Service::parse(url, false).unwrap();
    let transport =
        HttpTransport::new(&service, &Secret::new(TOKEN), &HttpOptions::default()).unwrap();
    ReadClient::new(service, Arc::new(transport), Arc::new(secrets()), settings())
}

#[tokio::test]
async fn a_request_carries_the_token_and_keeps_encoded_slashes() {
    let (url, requests) = serve(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8\r\n\r\n{\"id\":1}"
            .to_vec(),
    )
    .await;
    let answer = client(&format!("{url}/git/api/v4/"))
        .get(op::PROJECT_GET.request().arg("id", "acme/shop"))
        .await
        .unwrap();
    assert_eq!(answer.object().unwrap()["id"], 1);
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
    let (elsewhere, requests) = serve(Vec::new()).await;
    for status in
        ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        let answer = format!(
            "HTTP/1.1 {status}\r\nlocation: {elsewhere}/api/v4/projects/7\r\ncontent-length: 0\r\n\r\n"
        );
        let (url, _) = serve(answer.into_bytes()).await;
        let error = client(&url).get(op::PROJECT_GET.request().arg("id", 1)).await.unwrap_err();
        assert!(error.moved_to() == Some(7) && !error.is_not_found(), "{error}");
    }
    assert_eq!(*requests.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_token_that_cannot_be_a_header_is_refused_and_not_shown() {
    let service = Service::parse("http://localhost", false).unwrap();
    for token in ["", "canary\nX: y", "canary\0"] {
        let error =
            HttpTransport::new(&service, &Secret::new(token), &HttpOptions::default()).unwrap_err();
        assert_eq!(error, SetupError::Token);
    }
    let transport =
        HttpTransport::new(&service, &Secret::new(TOKEN), &HttpOptions::default()).unwrap();
    assert!(!format!("{transport:?}").contains("token-of"));
}

fn ok(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[tokio::test]
async fn an_answer_cut_anywhere_is_never_a_complete_list() {
    let whole =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-total: 2\r\ncontent-length: 19\r\n\r\n[{\"id\":1},{\"id\":2}]".to_vec();
    let chunked = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-total: 2\r\ntransfer-encoding: chunked\r\n\r\na\r\n[{\"id\":1},\r\n9\r\n{\"id\":2}]\r\n0\r\n\r\n";
    for answer in [whole, chunked.to_vec()] {
        for cut in 0..=answer.len() {
            let (url, requests) = serve(answer[..cut].to_vec()).await;
            let list = client(&url).list(op::HOOK_LIST.request().arg("id", 1)).await;
            if cut < answer.len() {
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
async fn a_body_beyond_all_bounds_is_not_read() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n[";
    let (url, requests) = serve([head.as_slice(), &vec![b' '; 33 << 20]].concat()).await;
    let error = client(&url).get(op::PROJECT_GET.request().arg("id", 1)).await.unwrap_err();
    assert!(error.to_string().ends_with("answered 200 with a body of more than 32 MiB"), "{error}");
    assert_eq!(requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_compressed_answer_is_read() {
    // `{"id":1}`, as gzip with one stored block.
    let gzip =
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x08\0\xf7\xff{\"id\":1}\xc5\xf8\x5d\x44\x08\x00\x00\x00";
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        gzip.len()
    );
    let (url, _) = serve([head.as_bytes(), gzip.as_slice()].concat()).await;
    let answer = client(&url).get(op::PROJECT_GET.request().arg("id", 1)).await.unwrap();
    assert_eq!(answer.object().unwrap()["id"], 1);
}

#[tokio::test]
async fn an_unreachable_service_gets_every_retry_and_nothing_is_in_doubt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = WriteClient::new(client(&url));
    let error = client.send(op::PROJECT_ARCHIVE.request().arg("id", 1)).await.unwrap_err();
    assert!(
        error.is_unreachable() && !error.is_tls() && error.in_doubt_since().is_none(),
        "{error}"
    );
    assert_eq!(client.reads().counts()["project-archive"], Count { calls: 6, retries: 5 });
}

#[tokio::test]
async fn a_failed_tls_handshake_is_not_retried() {
    let (url, requests) = serve(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).await;
    let service = Service::parse(&url.replace("http:", "https:"), false).unwrap();
    let options = HttpOptions { ca: Some(AUTHORITY.into()), ..HttpOptions::default() };
    let transport = HttpTransport::new(&service, &Secret::new(TOKEN), &options).unwrap();
    let client = ReadClient::new(service, Arc::new(transport), Arc::new(secrets()), settings());
    let error = client.get(op::CURRENT_USER.request()).await.unwrap_err();
    assert!(error.is_tls(), "{error:?}");
    assert!(error.hint().unwrap().contains("--ca-file"));
    assert!(!requests.lock().unwrap().join("").contains(TOKEN));
}

#[test]
fn a_file_without_certificates_is_refused() {
    let service = Service::parse("https://localhost", false).unwrap();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for pem in ["", "nothing", broken] {
        let options = HttpOptions { ca: Some(pem.into()), ..HttpOptions::default() };
        assert_eq!(
            HttpTransport::new(&service, &Secret::new(TOKEN), &options).unwrap_err(),
            SetupError::Authorities,
            "{pem}"
        );
    }
    let options =
        HttpOptions { proxy: Some("http://user:canary@ [".into()), ..HttpOptions::default() };
    let service = Service::parse("http://localhost", false).unwrap();
    assert_eq!(
        HttpTransport::new(&service, &Secret::new(TOKEN), &options).unwrap_err(),
        SetupError::Proxy
    );
}

#[tokio::test]
async fn a_proxy_is_used_if_it_is_named() {
    let (proxy, requests) = serve(ok("{}")).await;
    let service = Service::parse("http://localhost:1", false).unwrap();
    let options = HttpOptions { proxy: Some(proxy), ..HttpOptions::default() };
    let transport = HttpTransport::new(&service, &Secret::new(TOKEN), &options).unwrap();
    let client = ReadClient::new(service, Arc::new(transport), Arc::new(secrets()), settings());
    client.get(op::CURRENT_USER.request()).await.unwrap();
    assert!(requests.lock().unwrap()[0].starts_with("GET http://localhost:1/api/v4/user HTTP/1.1"));
}

#[tokio::test]
async fn no_proxy_is_taken_from_the_environment() {
    let (trap, requests) = serve(ok("{}")).await;
    // The environment belongs to the process, so another test runs again in its own process.
    let mut again = tokio::process::Command::new(std::env::current_exe().unwrap());
    again.args([
        "--exact",
        "api::tests::http::a_request_carries_the_token_and_keeps_encoded_slashes",
    ]);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
    {
        again.env(name, &trap);
    }
    let output = again.env_remove("NO_PROXY").env_remove("no_proxy").output().await.unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    assert_eq!(*requests.lock().unwrap(), Vec::<String>::new());
}
