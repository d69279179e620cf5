//! Reports about the token before planning.
#![cfg(all(unix, feature = "sandbox"))]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::{front, harness::Workspace, sandbox::Server};

const SEED: &str = "groups: [{path: acme}]\nprojects: [{path: acme/shop}]\n";
const SHOP: &str = "kind: Project\npath: acme/shop\nsettings: {description: What we sell}\n";
const TOKEN_ROUTE: &str = "GET /api/v4/personal_access_tokens/self";

/// The output of runs for this response about the token; each run asks once.
fn runs(arguments: &[&str], status: &'static str, response: &str) -> String {
    let place = Workspace::new().file("seed.yaml", SEED).file("m/shop.yaml", SHOP);
    let place = place.env("UNDRIFT_SANDBOX_TOKEN", "a-token").env("UNDRIFT_TOKEN", "a-token");
    let server = Server::start(&place, "--seed seed.yaml");
    let (request_count, response) = (Arc::new(AtomicUsize::new(0)), response.to_owned());
    let seen = Arc::clone(&request_count);
    let url = front::start_proxy(&server.url, move |request, _| {
        request.starts_with(TOKEN_ROUTE).then(|| {
            seen.fetch_add(1, Ordering::SeqCst);
            front::json(status, "", &response)
        })
    });
    let said = arguments.iter().map(|arguments| place.run(&format!("{arguments} m --url {url}")));
    let said: String = said.collect();
    assert_eq!(request_count.load(Ordering::SeqCst), arguments.len(), "{said}");
    let changed = place.run(&format!("drift m --url {}", server.url));
    server.end("-TERM");
    let is_changed = changed.ends_with("---- exit code 0\n");
    format!("{}{is_changed}\n", said.replace(&url, "[URL]"))
}

#[test]
fn a_token_that_only_reads_plans_and_is_refused_before_anything_is_applied() {
    let response =
        r#"{"id":1,"name":"ci","scopes":["read_api"],"expires_at":"2099-01-31","active":true}"#;
    insta::assert_snapshot!(runs(&["plan", "apply --yes"], "200 OK", response));
}

#[test]
fn a_token_that_ends_soon_is_warned_of_and_one_that_reads_nothing_is_refused() {
    let ends = r#"{"name":"ci","scopes":["api","sudo"],"expires_at":"2000-01-01"}"#;
    let output = runs(&["apply --yes"], "200 OK", ends);
    assert!(output.contains("warning: the token `ci` expires on 2000-01-01"), "{output}");
    assert!(output.contains("scope `sudo`") && output.ends_with("code 0\ntrue\n"), "{output}");
    let useless = r#"{"name":"ci","scopes":["read_user"],"expires_at":null}"#;
    let said = runs(&["plan", "drift"], "200 OK", useless);
    assert_eq!(said.matches("cannot read groups and projects").count(), 2, "{said}");
    assert_eq!(said.matches("---- exit code 7").count(), 2, "{said}");
}

#[test]
fn unknown_properties_of_a_token_are_not_reported() {
    for (status, response) in [
        ("401 Unauthorized", r#"{"message":"401 Unauthorized"}"#),
        ("403 Forbidden", r#"{"error":"insufficient_scope"}"#),
        ("404 Not Found", r#"{"error":"404 Not Found"}"#),
        ("400 Bad Request", r#"{"message":"400 Bad request"}"#),
        ("200 OK", "{}"),
    ] {
        let output = runs(&["apply --yes"], status, response);
        assert!(output.contains(" as root\n") && !output.contains("warning"), "{status}: {output}");
        assert!(output.ends_with("---- exit code 0\ntrue\n"), "{status}: {output}");
    }
}
