//! A server in front of the sandbox, which answers some requests itself and forwards the others.
#![cfg(all(unix, feature = "sandbox"))]

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use serde_json::Value;

/// The response to a request, such as `GET /api/v4/user`, with a body; `None` forwards it.
type Responder = dyn Fn(&str, Value) -> Option<String> + Send + Sync;

/// Starts one in front of the service at `sandbox`, and returns its address.
pub(crate) fn start_proxy(
    sandbox: &str,
    response: impl Fn(&str, Value) -> Option<String> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let sandbox = sandbox.trim_start_matches("http://").to_owned();
    let response: Arc<Responder> = Arc::new(response);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (sandbox, response) = (sandbox.clone(), Arc::clone(&response));
            // A client that disconnects does not end a test.
            thread::spawn(move || serve(client.unwrap(), &sandbox, &*response).ok());
        }
    });
    url
}

/// A response with JSON and these additional headers.
pub(crate) fn json(status: &str, headers: &str, text: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// Answers one request.
fn serve(mut client: TcpStream, sandbox: &str, response: &Responder) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        if !lower.starts_with("connection:") {
            head += &line;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request = first.trim_end_matches(" HTTP/1.1\r\n");
    match response(request, serde_json::from_slice(&body).unwrap_or_default()) {
        Some(response) => client.write_all(response.as_bytes())?,
        None => {
            let mut server = TcpStream::connect(sandbox)?;
            write!(server, "{first}{head}connection: close\r\n\r\n")?;
            server.write_all(&body)?;
            io::copy(&mut server, &mut client)?;
        }
    }
    client.shutdown(Shutdown::Both)
}
