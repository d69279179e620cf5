//! An object that changed after it was read, according to the service, is not removed.
#![cfg(all(unix, feature = "sandbox"))]

use crate::{
    front,
    harness::{Workspace, expect_exit},
    sandbox::Server,
};

const SEED: &str = "users: [{username: bob}]\ngroups: [{path: acme}]\n\
                    projects: [{path: acme/shop, members: [{user: bob, access_level: developer}]}]\n";
const SHOP: &str = "kind: Project\npath: acme/shop\nmembers: [{user: bob, state: absent}]\n";

#[test]
fn a_delete_refused_with_412_is_reported_as_changed_meanwhile() {
    let place = Workspace::new().file("seed.yaml", SEED).file("m/shop.yaml", SHOP);
    let place = place.env("UNDRIFT_SANDBOX_TOKEN", "a-token").env("UNDRIFT_TOKEN", "a-token");
    let server = Server::start(&place, "--seed seed.yaml");
    let url = front::start_proxy(&server.url, |request, _| {
        let refusal = r#"{"message":"412 Precondition Failed"}"#;
        request.starts_with("DELETE ").then(|| front::json("412 Precondition Failed", "", refusal))
    });
    let run = |url: &str| {
        let acknowledged = "--ack removals:acme/shop#members";
        place.run(&format!("apply m --yes {acknowledged} --url {url}"))
    };
    let refused = expect_exit(6, run(&url));
    assert!(refused.contains("members/bob  changed meanwhile"), "{refused}");
    assert!(refused.contains("it changed after it was read"), "{refused}");
    // An unchanged object is removed.
    expect_exit(0, run(&server.url));
    server.end("-TERM");
}
