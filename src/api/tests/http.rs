//! The real transport, over loopback sockets.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::script::{secrets, settings};
use crate::{
    api::{HttpOptions, HttpTransport, ReadClient, Service, SetupError},
    operation as op,
    secret::Secret,
};

const TOKEN: &str = "token-of-undrift";

/// A server that gives `answer` to each connection and closes it; it keeps what it was sent.
async fn serve(answer: Vec<u8>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.windows(4).any(|w| w == b"\r\n\r\n") {
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
    let transport = HttpTransport::new(&service, &Secret::new(TOKEN), &HttpOptions::default()).unwrap();
    ReadClient::new(service, Arc::new(transport), Arc::new(secrets()), settings())
}

#[tokio::test]
async fn a_request_carries_the_token_and_keeps_encoded_slashes() {
    let (url, requests) = serve(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8\r\n\r\n{\"id\":1}".to_vec()).await;
    let answer = client(&format!("{url}/git/api/v4/")).get(op::PROJECT_GET.request().arg("id", "acme/shop")).await.unwrap();
    assert_eq!(answer.object().unwrap()["id"], 1);
    let request = requests.lock().unwrap()[0].to_ascii_lowercase();
    assert!(request.starts_with("get /git/api/v4/projects/acme%2fshop http/1.1\r\n"), "{request}");
    for header in ["private-token: token-of-undrift\r\n", "accept: application/json\r\n", "user-agent: undrift/", "accept-encoding: gzip"] {
        assert!(request.contains(header), "{header} in {request}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (elsewhere, requests) = serve(Vec::new()).await;
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let answer = format!("HTTP/1.1 {status}\r\nlocation: {elsewhere}/api/v4/projects/7\r\ncontent-length: 0\r\n\r\n");
        let (url, _) = serve(answer.into_bytes()).await;
        let error = client(&url).get(op::PROJECT_GET.request().arg("id", 1)).await.unwrap_err();
        assert!(!error.is_moved() && !error.is_not_found(), "{error}");
    }
    assert_eq!(*requests.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_token_that_cannot_be_a_header_is_refused_and_not_shown() {
    let service = Service::parse("http://localhost", false).unwrap();
    for token in ["", "canary\nX: y", "canary\0"] {
        let error = HttpTransport::new(&service, &Secret::new(token), &HttpOptions::default()).unwrap_err();
        assert_eq!(error, SetupError::Token);
    }
    let transport = HttpTransport::new(&service, &Secret::new(TOKEN), &HttpOptions::default()).unwrap();
    assert!(!format!("{transport:?}").contains("token-of"));
}
