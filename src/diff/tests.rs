//! What a comparison shows of live entries that no manifest lists.

use serde_json::json;

use super::*;
use crate::{kind::testing, kinds, manifest, page, secret::Reference};

const SECRET: &str = "https://chat.example.org/hooks/T0123/canary-path";

/// What is said about live hooks with the ids 7 and 8 and these URLs, where the manifest declares
/// `hooks` and `CHAT` is known or not.
fn said(hooks: &str, urls: [&str; 2], known: Option<&str>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("a.yaml"),
        format!("kind: Project\npath: acme/shop\n{hooks}\n"),
    )
    .unwrap();
    let desired = manifest::load(
        folder.path(),
        &manifest::Surroundings {
            folder: folder.path().into(),
            today: jiff::civil::date(2030, 1, 1),
        },
    )
    .desired
    .unwrap();
    let kind = kinds::of_section("hooks").unwrap();
    let raw = [7, 8]
        .iter()
        .zip(urls)
        .map(|(id, url)| testing::object(json!({"id": id, "url": url, "push_events": true})));
    let live =
        Collection::Complete(page::whole(raw.collect()).map(|raw| kind.read(&raw, &|_| true)));
    let mut secrets =
        Secrets::new(folder.path(), known.map(|value| ("CHAT".to_owned(), value.to_owned())));
    secrets.resolve([&Reference::Env("CHAT".into())]);
    let project = &desired.projects[0];
    let context = Context {
        target: &testing::target(),
        project: &project.address(),
        caller: &Caller { id: 1, username: "root".into(), administrator: true },
        personal_owner: None,
        users: &Users::new(),
        secrets: &secrets,
        resend: &[],
    };
    let diff = section(&project.sections["hooks"], &live, context).unwrap();
    let notes = diff
        .notes
        .iter()
        .filter(|note| matches!(note.reason, Reason::Unlisted | Reason::Protected { .. }));
    let differences = diff
        .differences
        .iter()
        .map(|difference| format!("{:?} {}", difference.action, difference.address));
    notes.map(|note| note.address.to_string()).chain(differences).collect()
}

#[test]
fn a_live_value_is_not_shown_where_it_may_be_a_declared_secret() {
    let declared = "hooks: [{url: {env: CHAT}, push_events: true}]";
    let named = "hooks: [{name: chat, url: {env: CHAT}, push_events: true}]";
    let delete = format!("{declared}\nunlisted: {{hooks: delete}}");
    let urls = [SECRET, "https://ci.example.org/x"];
    let by_id = ["acme/shop#hooks/id%3A7", "acme/shop#hooks/id%3A8"];
    // Not set here: either may be it.
    assert_eq!(said(declared, urls, None), by_id);
    assert_eq!(said(named, urls, None), by_id);
    assert_eq!(said(&delete, urls, None), by_id);
    // Another value by now: what is there may be the old one.
    let create = "Create acme/shop#hooks/env%3ACHAT".to_owned();
    assert_eq!(
        said(declared, urls, Some("https://chat.example.org/new")),
        [by_id[0].to_owned(), by_id[1].to_owned(), create]
    );
    let removed = said(&delete, urls, Some("https://chat.example.org/new"));
    assert_eq!(removed[1..], ["Delete acme/shop#hooks/id%3A7", "Delete acme/shop#hooks/id%3A8"]);
    // Known and found: the other one is none.
    assert_eq!(
        said(declared, urls, Some(SECRET)),
        ["acme/shop#hooks/https%3A%2F%2Fci.example.org%2Fx"]
    );
    // No secret is declared.
    let open = "hooks: [{url: 'https://other.example.org'}]";
    assert_eq!(said(open, urls, None)[1], "acme/shop#hooks/https%3A%2F%2Fci.example.org%2Fx");
    // One that is found does not speak for one that is not.
    let two = "hooks: [{url: {env: CHAT}, push_events: true}, {url: {env: OTHER}}]";
    assert_eq!(said(two, urls, Some(SECRET)), ["acme/shop#hooks/id%3A8"]);
}

#[test]
fn a_removal_points_at_the_line_that_wants_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = "kind: Project\npath: acme/shop\nhooks: [{url: 'https://a.example.org', state: absent}]\nunlisted:\n  hooks: delete\n";
    std::fs::write(folder.path().join("a.yaml"), text).unwrap();
    let around = manifest::Surroundings {
        folder: folder.path().into(),
        today: jiff::civil::date(2030, 1, 1),
    };
    let desired = manifest::load(folder.path(), &around).desired.unwrap();
    let kind = kinds::of_section("hooks").unwrap();
    let raw = ["https://a.example.org", "https://b.example.org"]
        .map(|url| testing::object(json!({"id": 7, "url": url})));
    let live =
        Collection::Complete(page::whole(raw.to_vec()).map(|raw| kind.read(&raw, &|_| true)));
    let context = Context {
        target: &testing::target(),
        project: &desired.projects[0].address(),
        caller: &Caller { id: 1, username: "root".into(), administrator: true },
        personal_owner: None,
        users: &Users::new(),
        secrets: &Secrets::new(folder.path(), []),
        resend: &[],
    };
    let diff = section(&desired.projects[0].sections["hooks"], &live, context).unwrap();
    let origins: Vec<_> =
        diff.differences.iter().map(|difference| difference.origin.to_string()).collect();
    assert_eq!(origins, ["a.yaml:3:10", "a.yaml:5:3"]);
}
