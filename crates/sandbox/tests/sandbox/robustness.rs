//! Clients that are slow, greedy or broken. Time is paused and jumps over waits, so time limits
//! take no time.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use undrift_sandbox::{RunningSandbox, SandboxConfig, Seed, start};

use super::client::{ROOT, usual_seed};

async fn sandbox() -> RunningSandbox {
    let seed = Some(Seed::from_json(usual_seed()).expect("a seed"));
    start(SandboxConfig { seed, token: Some(ROOT.to_owned()), ..SandboxConfig::default() })
        .await
        .expect("it starts")
}

/// Sends these bytes and reads until the service closes the connection.
async fn answer(running: &RunningSandbox, request: &str) -> String {
    let mut stream = TcpStream::connect(running.addr()).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut text = Vec::new();
    // A service that stops listening to a request may reset the connection after its answer.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8_lossy(&text).into_owned()
}

fn head(request_line: &str, more: &str) -> String {
    format!(
        "{request_line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nPRIVATE-TOKEN: {ROOT}\r\n{more}"
    )
}

#[tokio::test(start_paused = true)]
async fn a_head_that_never_ends_is_cut_off() {
    let running = sandbox().await;
    let text = answer(&running, &head("GET /api/v4/version", "X-Slow: ")).await;
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 408"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_says_nothing_is_closed() {
    assert_eq!(answer(&sandbox().await, "").await, "");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_withheld_is_refused() {
    let running = sandbox().await;
    let more = "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"desc";
    let text = answer(&running, &head("PUT /api/v4/projects/1", more)).await;
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn slow_clients_do_not_delay_others() {
    let running = sandbox().await;
    let mut slow = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(running.addr()).await.expect("a connection");
        stream
            .write_all(
                b"POST /api/v4/projects HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
            )
            .await
            .expect("sent");
        slow.push(stream);
    }
    let text = answer(&running, &head("GET /api/v4/projects/1", "\r\n")).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let read = slow[0].read(&mut [0; 1]).await.ok();
    assert_eq!(read, Some(0), "who has waited longest is sent away");
}

/// The announced bodies are larger than the memory for all bodies.
#[tokio::test(start_paused = true)]
async fn large_bodies_wait_for_each_other_and_small_ones_do_not() {
    let running = sandbox().await;
    let length = 10 * 1024 * 1024 - 1024;
    let upload = |length: usize| {
        let more = format!(
            "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {length}\r\n\r\n"
        );
        head("POST /api/v4/projects/1/uploads", &more)
    };
    let mut slow = Vec::new();
    for _ in 0..30 {
        let mut stream = TcpStream::connect(running.addr()).await.expect("a connection");
        stream.write_all(upload(length).as_bytes()).await.expect("sent");
        slow.push(stream);
    }
    let small = head(
        "PUT /api/v4/projects/1",
        "Content-Type: application/json\r\nContent-Length: 19\r\n\r\n{\"description\":\"x\"}",
    );
    let text = answer(&running, &small).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let content = "x".repeat(100_000);
    let body = format!(
        "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n{content}\r\n--x--\r\n"
    );
    let text = answer(&running, &format!("{}{body}", upload(body.len()))).await;
    assert!(text.starts_with("HTTP/1.1 201"), "it comes to its turn: {text}");
}

#[tokio::test(start_paused = true)]
async fn too_long_and_too_deep_requests_are_refused() {
    let running = sandbox().await;
    let long = "x".repeat(20_000);
    let headers: String = (0..200).map(|number| format!("X-Header-{number}: x\r\n")).collect();
    let nested = |depth: usize| {
        let body = format!("{{\"topics\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let body = "x".repeat(1024 * 1024 + 1);
    let long_body =
        format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let parameters: String = (0..3_000).map(|number| format!("&p{number}=1")).collect();
    let rows = [
        (head(&format!("GET /api/v4/projects?search={long}"), "\r\n"), "414"),
        (head("GET /api/v4/projects", &format!("{headers}\r\n")), "431"),
        (head("GET /api/v4/projects", &format!("X-Long: {}\r\n\r\n", long.repeat(10))), "431"),
        (head("PUT /api/v4/projects/1", &nested(65)), "400"),
        (head("PUT /api/v4/projects/1", &nested(100_000)), "400"),
        (head(&format!("GET /api/v4/projects?{}", &parameters[..16_000]), "\r\n"), "400"),
        (head("PUT /api/v4/projects/1", &long_body), "413"),
        (head("PUT /api/v4/projects/1", "Content-Length: -1\r\n\r\n"), "400"),
        (head("GET /api/v4/projects/1", "\r\n"), "200"),
    ];
    for (request, status) in rows {
        let text = answer(&running, &request).await;
        assert!(
            text.starts_with(&format!("HTTP/1.1 {status} ")),
            "{}\n{}",
            &request[..60],
            text.lines().next().unwrap_or_default()
        );
    }
}
