//! The embedded service as a server of its own, and signals.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, ChildStdout, Command, Stdio},
};

use crate::harness::Place;

const SHOP: &str = "kind: Project\npath: acme/shop\ncreate: true\nsettings: {description: What we sell}\n";
const SEED: &str = "groups: [{path: acme, members: [{user: root, access_level: owner}]}]\n";

/// A running server and what it said at its start.
struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    url: String,
}

impl Server {
    fn start(place: &Place, arguments: &str) -> Self {
        let mut child = place.command(&format!("sandbox {arguments}")).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { child, stdout, url }
    }

    /// Ends it with a signal; returns what else it said, and its exit code.
    fn end(mut self, signal: &str) -> (String, Option<i32>) {
        send(signal, &self.child);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

fn send(signal: &str, child: &Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_server_says_where_it_is_and_ends_in_good_order() {
    let place = Place::new().env("UNDRIFT_SANDBOX_TOKEN", "chosen-token");
    for signal in ["-TERM", "-INT"] {
        let server = Server::start(&place, "");
        assert!(server.url.starts_with("http://127.0.0.1:"));
        assert_eq!(server.end(signal), (String::new(), Some(0)), "a token that was given is not told");
    }
    let (rest, code) = Server::start(&Place::new(), "").end("-TERM");
    assert!(rest.starts_with("token: ") && code == Some(0), "{rest}");
}

#[cfg(unix)]
#[test]
fn a_server_is_planned_and_applied_to_as_any_service() {
    let place = Place::new().file("m/shop.yaml", SHOP).file("seed.yaml", SEED);
    let place = place.env("UNDRIFT_SANDBOX_TOKEN", "chosen-token").env("UNDRIFT_TOKEN", "chosen-token");
    let server = Server::start(&place, "--seed seed.yaml --request-log log --data data.db");
    let code = |arguments: &str| place.output(&format!("{arguments} m --url {}/api/v4/", server.url)).status.code();
    assert_eq!(code("plan --exit-code"), Some(2));
    assert_eq!(code("plan --max-requests 1"), Some(8), "the budget is spent");
    assert_eq!(code("apply --yes"), Some(0));
    assert_eq!(code("drift"), Some(0));
    let second = place.output("plan m --sandbox=data.db");
    assert_eq!(second.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&second.stderr).contains("is in use by another sandbox"));
    assert_eq!(server.end("-TERM").1, Some(0));
    assert!(!std::fs::read_to_string(place.path().join("log")).unwrap().contains("chosen-token"));
}

#[cfg(unix)]
#[test]
fn a_wrong_token_is_told_apart_from_no_service() {
    let place = Place::new().file("m/shop.yaml", SHOP).env("UNDRIFT_TOKEN", "wrong-canary-token");
    let server = Server::start(&place, "");
    let denied = place.run(&format!("plan m -vv --url {}", server.url));
    assert!(denied.ends_with("---- exit code 7\n") && !denied.contains("canary"), "{denied}");
    server.end("-TERM");
}
