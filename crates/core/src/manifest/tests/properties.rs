//! Property tests of loading manifests.

use proptest::{prelude::*, sample::Index};

use super::*;

/// Documents with every type of content, as JSON.
pub(super) fn documents() -> Vec<Json> {
    let document = |i: usize| {
        json!({
            "kind": "Project", "path": format!("acme/p{i}"),
            "settings": {"visibility": "private", "topics": ["a", "b"], "container_expiration_policy": {"enabled": true, "name_regex": ".*", "keep_n": ([1, 5, 10, 25, 50, 100][i % 6])}},
            "variables": [{"key": "A", "value": format!("v{i}")}, {"key": "A", "environment_scope": "x", "value": {"env": "N"}}, {"key": "B"}],
            "hooks": [{"name": "n", "url": "https://h/x"}, {"url": "https://h/y", "push_events": true}],
            "unlisted": {"hooks": "delete"},
        })
    };
    let group = json!({"kind": "Group", "path": "acme", "members": [{"user": "a", "access_level": 50}, {"user": "b", "state": "absent"}]});
    let acknowledge = |i: usize| json!({"kind": "Acknowledge", "guard": "removals", "at": "acme/**", "at_most": i + 1, "reason": format!("{}", 9 - i)});
    let rules = [
        // Two layers of equal rank.
        json!({"kind": "Defaults", "match": {"path": ["acme/p*", "b"]}, "settings": {"description": "d"}, "params": {"port": 1, "name_of": "x"}, "unlisted": {"variables": "fail"}}),
        json!({"kind": "Defaults", "match": {"path": ["c", "*/p?"]}, "settings": {"description": "d"}, "variables": [{"key": "B", "protected": true}, {"key": "C_*", "state": "unmanaged"}], "hooks": [{"name": "n", "push_events": false}]}),
        json!({"kind": "Defaults", "match": {"path": "**"}, "settings": {"topics": {"add": ["z"]}}, "uses": ["one", "two"]}),
        json!({"kind": "Profile", "name": "one", "uses": ["two"], "needs": ["port"], "variables": [{"key": "A", "value": {"text": "{name}:{port}"}}, {"key": "B", "value": {"text": "{name_of}"}}]}),
        json!({"kind": "Profile", "name": "two", "settings": {"container_expiration_policy": {"cadence": "1d", "enabled": false}}}),
        json!({"kind": "Profile", "name": "one", "for": "Group", "watch": true}),
        json!({"kind": "Defaults", "match": {"path": "*"}, "for": "Group", "uses": ["one"], "members": [{"user": "a", "expires_at": "2099-01-01"}]}),
    ];
    let documents = (0..4).map(document).chain([group]).chain(rules);
    documents.chain((0..3).map(acknowledge)).collect()
}

/// Documents with faults. Some have a fault only together with another document.
fn wrong_documents() -> Vec<Json> {
    vec![
        json!({"kind": "Project", "path": "acme/one", "variables": [{"key": "A B"}, {"key": "C"}, {"key": "C", "value": 1}]}),
        json!({"kind": "Project", "path": "acme/one", "settings": {"issues_enabled": true, "issues_access_level": "private"}}),
        json!({"kind": "Project", "path": "acme/two", "unlisted": {"hooks": "delete"}, "create": {"initialize_with_readme": true, "template_name": "a"}}),
        json!({"kind": "Group", "path": "acme/one", "members": [{"user": "a", "state": "absent", "access_level": 10}]}),
        json!({"kind": "Project", "path": "acme", "hooks": [{"url": "x"}, {"push_events": true}]}),
        json!({"kind": "Acknowledge", "guard": "removal", "at": "["}),
        json!({"kind": "Defaults", "match": {"path": "*/one"}, "settings": {"description": "a", "topics": {"add": ["a"]}}, "uses": ["p"]}),
        json!({"kind": "Defaults", "match": {"path": "acme/*"}, "settings": {"description": "b", "topics": {"remove": ["a"]}}, "uses": ["q"]}),
        json!({"kind": "Profile", "name": "p", "uses": ["q", "r"]}),
        json!({"kind": "Profile", "name": "q", "uses": ["p"], "needs": ["port"], "hooks": [{"url": {"text": "{x}"}}]}),
    ]
}

/// The messages about manifests, without places.
fn sorted_messages(files: &[(&str, &str)]) -> Vec<String> {
    let diagnostics = load_files(files).diagnostics;
    let describe = |fault: Diagnostic| {
        format!("{:?} {} {} {:?}", fault.severity, fault.code, fault.message, fault.help)
    };
    let mut messages: Vec<_> = diagnostics.into_iter().map(describe).collect();
    messages.sort();
    messages
}

/// The documents in any order, distributed over three files. The keys of each document are
/// shuffled.
fn split_into_files(documents: Vec<Json>, picks: &mut impl Iterator<Item = Index>) -> [String; 3] {
    let mut files = [String::new(), String::new(), String::new()];
    let mut remaining_documents = documents;
    while !remaining_documents.is_empty() {
        let document = remaining_documents
            .remove(picks.next().map_or(0, |pick| pick.index(remaining_documents.len())));
        let file_index = picks.next().map_or(0, |pick| pick.index(3));
        files[file_index] += &format!("---\n{}\n", reorder(&document, picks));
    }
    files
}

/// `json` with its keys, and the items of lists of mappings, in another order.
fn reorder(json: &Json, picks: &mut impl Iterator<Item = Index>) -> Json {
    let mut shuffle = |mut items: Vec<Json>| {
        for i in (1..items.len()).rev() {
            let j = picks.next().map_or(0, |pick| pick.index(i + 1));
            items.swap(i, j);
        }
        items
    };
    match json {
        Json::Object(object) => {
            let keys = shuffle(object.keys().map(|key| Json::from(key.as_str())).collect());
            let keys = keys.iter().filter_map(Json::as_str);
            keys.map(|key| (key.to_owned(), reorder(&object[key], picks))).collect()
        }
        Json::Array(items) if items.iter().all(Json::is_object) => {
            let items = shuffle(items.clone());
            items.iter().map(|item| reorder(item, picks)).collect()
        }
        other => other.clone(),
    }
}

/// A manifest with secrets in every possible place. No secret follows a key that is an open field
/// in another section. For example, a `#` before `{extra: {key: ...}}` would make the value of
/// `key` visible.
const SECRETS: &str = "\
# CANARY
kind: Project
path: acme/shop
settings: {import_url: {env: CANARY}, extra: {a: CANARY}} # CANARY
variables:
  - key: A
    value: CANARY
    masked: true
  - {key: B, value: 'CANARY CANARY', extra: {a: CANARY}}
  - key: C
    value: |
      CANARY
      path: CANARY
  - {key: D, value: {file: CANARY}}
  - key: E
    value: \"CANARY
      CANARY\"
hooks:
  - {name: ci, token: {env: CANARY}, url: 'https://CANARY:CANARY@h/x?CANARY&a=CANARY#CANARY'}
  - url: https://CANARY@h/y
unknown: CANARY
---
kind: Project
path: acme/two
variables: [{key: A, value: CANARY}, CANARY, {CANARY}]
variabels: CANARY
---
kind: Group
path: acme/two
members: [{user: a, access_level: owner, state: absent, extra: {a: CANARY}}]
---
kind: Acknowledge
guard: removals
at: acme/two
token: CANARY
";

/// Pieces of manifests.
const PIECES: [&str; 40] = [
    "kind: Project",
    "path: a/b",
    "variables: ",
    "hooks: ",
    "settings: ",
    "members: ",
    "create: ",
    "unlisted: ",
    "push_rule: ",
    "extra: ",
    "archived: ",
    "key: A",
    "value: ",
    "url: ",
    "state: absent",
    "env: X",
    "issues_enabled: ",
    "---",
    "\n",
    "\n  ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "&a ",
    "*a",
    "<<: ",
    "null",
    "uses: ",
    "kind: Profile",
    "name: a",
    "params: ",
    "text: '{a}'",
    "text: '{name}'",
    "add: ",
    "remove: ",
    "at_least: ",
    "topics: ",
];

/// True if `text` ends between `://` and the host of a URL.
fn is_in_authority(text: &str) -> bool {
    text.rsplit_once("://").is_some_and(|(_, tail)| !tail.contains(['@', '/', '\'', '\n']))
}

/// Texts that a typing error adds.
const SLIPS: [&str; 16] =
    [" ", "'", "\"", "[", "}", "\t", ": ", "&", "\n", "- ", "#", "|", "*", "!", ",", "{"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn order_never_matters(picks in prop::collection::vec(any::<Index>(), 200)) {
        let text: String = documents().iter().map(|document| format!("---\n{document}\n")).collect();
        let expected = desired_json(&load_files(&[("a.yaml", &text)]).desired.unwrap());

        let files = split_into_files(documents(), &mut picks.into_iter());
        let loaded = load_files(&[("z.yaml", &files[0]), ("b/a.yml", &files[1]), ("b.yaml", &files[2])]);
        prop_assert_eq!(desired_json(&loaded.desired.unwrap()), expected);
    }

    #[test]
    fn order_never_matters_for_faults(picks in prop::collection::vec(any::<Index>(), 200)) {
        let text: String = wrong_documents().iter().map(|document| format!("---\n{document}\n")).collect();
        let expected = sorted_messages(&[("a.yaml", &text)]);
        let files = split_into_files(wrong_documents(), &mut picks.into_iter());
        prop_assert_eq!(sorted_messages(&[("z.yaml", &files[0]), ("b/a.yml", &files[1]), ("b.yaml", &files[2])]), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40)) {
        let text = format!("kind: Project\npath: a/b\n{}", pieces.concat());
        let config = "version: 1\nservice: {tier: free}\n";
        let diagnostics = load_files(&[("a.yaml", &text), ("undrift.yaml", config)]).diagnostics;
        prop_assert_eq!(diagnostics.is_empty(), diagnostics.render(TextStyle::default()).is_empty());
    }

    /// Typing errors may break the YAML or move values, but must not show a secret. This test makes
    /// no error that moves a secret into an open field.
    #[test]
    fn no_slip_shows_a_secret(slips in prop::collection::vec((any::<Index>(), 0..=SLIPS.len()), 1..4)) {
        let mut text = SECRETS.to_owned();
        for (offset_index, slip) in slips {
            let offsets: Vec<_> = text.char_indices().map(|(at, _)| at).collect();
            let offset = offsets[offset_index.index(offsets.len())];
            // The word `CANARY` stays whole, so that it can be found in the report.
            if text[..offset].ends_with(|c: char| c.is_ascii_uppercase()) && text[offset..].starts_with(|c: char| c.is_ascii_uppercase()) {
                continue;
            }
            // A line of a secret that loses its indentation can become an open field.
            let opens_field = |rest: &str| rest.trim_start_matches(' ').starts_with("path: CANARY");
            if opens_field(&text[offset..]) {
                continue;
            }
            match slip {
                // Keep these characters. Without `?`, a query is a path. Without `@`, a user is a
                // host. Without `&`, a value is part of a name. Paths, hosts and names are open.
                0 if !text[offset..].starts_with(|c: char| c.is_ascii_uppercase() || "?@&".contains(c)) => {
                    text.remove(offset);
                }
                0 => {}
                // Skip `#` after a user in a URL, because it would make the user a host.
                slip if SLIPS[slip - 1] == "#" && is_in_authority(&text[..offset]) => {}
                // Skip `: ` after a secret, because such a secret cannot be distinguished from a
                // key.
                slip if SLIPS[slip - 1] == ": " && text[..offset].ends_with("CANARY") => {}
                slip => text.insert_str(offset, SLIPS[slip - 1]),
            }
        }
        let diagnostics = load_files(&[("a.yaml", &text)]).diagnostics;
        // Names of files are not secrets: messages name missing files.
        let other_faults = diagnostics.into_iter().filter(|fault| fault.code != "missing-file");
        let report = other_faults.collect::<Diagnostics>().render(TextStyle::default());
        prop_assert!(!report.contains("CANARY"), "{}\n{}", text, report);
    }
}
