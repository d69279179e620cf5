//! Tests of loading: what good manifests come to, and what holds for all of them.

use std::{fs, path::Path};

use proptest::{prelude::*, sample::Index};
use serde_json::json;

use super::*;
use crate::{
    desired::{Container, Declared, State},
    diagnostic::Severity,
    secret::Reference,
    value::Json,
};

/// Loads files given as name and text, with a picture beside them.
fn load_files(files: &[(&str, &str)]) -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.png"), "").unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    load(folder.path(), &around(folder.path()))
}

/// Seen from `folder`, on some day.
fn around(folder: &Path) -> Surroundings {
    Surroundings { folder: folder.to_owned(), today: jiff::civil::date(2030, 1, 1) }
}

/// The groups and projects of one good file.
fn containers(text: &str) -> Vec<Container> {
    let loaded = load_files(&[("a.yaml", text)]);
    loaded
        .desired
        .unwrap_or_else(|| panic!("{}", loaded.diagnostics.render(Style::default())))
        .containers
}

/// The code and the line of every diagnostic.
fn faults(files: &[(&str, &str)]) -> Vec<(&'static str, u32)> {
    let line = |place: Option<&Place>| place.and_then(Place::line).unwrap_or_default();
    load_files(files)
        .diagnostics
        .sorted()
        .into_iter()
        .map(|fault| (fault.code, line(fault.place.as_ref())))
        .collect()
}

/// What is desired, without where it is written.
fn facts(desired: &Desired) -> Json {
    let fields = |fields: &Declared| {
        fields
            .iter()
            .map(|(name, field)| (name.to_owned(), serde_json::to_value(&field.value).unwrap()))
            .collect::<Json>()
    };
    let container = |container: &Container| {
        let sections = container.sections.iter().map(|(name, section)| {
            let entries = section.entries.iter().map(|entry| {
                json!([entry.key, format!("{:?}", entry.state), fields(&entry.fields)])
            });
            (
                (*name).to_owned(),
                json!([format!("{:?}", section.unlisted.value), entries.collect::<Vec<_>>()]),
            )
        });
        json!([*container.path, container.create.fields().map(fields), sections.collect::<Json>()])
    };
    desired.containers.iter().map(container).collect()
}

const SHOP: &str = "\
kind: Project
path: acme/shop
create: {initialize_with_readme: true}
settings: {avatar: {file: a.png}, extra: {new_thing: {a: 1}}, visibility: private}
variables:
  - {key: B, value: {file: keys/b}, environment_scope: prod/*}
  - {key: A, value: plain}
  - {key: OLD, state: absent}
members:
  - {user: Alice, access_level: 40}
hooks:
  - {name: ci, url: 'https://u:p@ci.example.org/x?token=s', token: {env: TOKEN}}
  - {url: {env: HOOK}}
push_rule: null
archived: true
unlisted: {variables: delete, hooks: ignore}
";

#[test]
fn a_manifest_comes_to_what_it_says() {
    let desired = Desired { containers: containers(SHOP), ..Desired::default() };
    let archived = json!(["Report", [["", "Present", {"archived": {"plain": true}}]]]);
    let settings = json!({
        "avatar": {"file": "a.png"}, "new_thing": {"plain": {"a": 1}},
        "visibility": {"plain": "private"},
    });
    let hooks = json!([
        ["ci", "Present", {"name": {"plain": "ci"}, "token": {"secret": {"env": "TOKEN"}}, "url": {"plain": "https://u:p@ci.example.org/x?token=s"}}],
        ["env:HOOK", "Present", {"url": {"secret": {"env": "HOOK"}}}],
    ]);
    let variables = json!([
        ["A@*", "Present", {"environment_scope": {"plain": "*"}, "key": {"plain": "A"}, "value": {"plain": "plain"}}],
        ["B@prod/*", "Present", {
            "environment_scope": {"plain": "prod/*"}, "key": {"plain": "B"}, "value": {"secret": {"file": "keys/b"}},
        }],
        ["OLD@*", "Absent", {"environment_scope": {"plain": "*"}, "key": {"plain": "OLD"}}],
    ]);
    let members = json!([["alice", "Present", {"access_level": {"plain": "maintainer"}, "user": {"plain": "Alice"}}]]);
    let expected = json!([["acme/shop", {"initialize_with_readme": {"plain": true}}, {
        "archived": archived,
        "hooks": ["Ignore", hooks],
        "members": ["Report", members],
        "push_rule": ["Report", [["", "Absent", {}]]],
        "settings": ["Report", [["", "Present", settings]]],
        "variables": ["Delete", variables],
    }]]);
    assert_eq!(facts(&desired), expected);
}

#[test]
fn every_value_knows_where_it_is_written() {
    let containers = containers(SHOP);
    let section = &containers[0].sections["variables"];
    let origin = |entry: usize, field: &str| {
        section.entries[entry].fields.get(field).unwrap().origin.to_string()
    };
    assert_eq!(containers[0].origin.to_string(), "a.yaml:2:1");
    assert_eq!(section.origin.to_string(), "a.yaml:5:1");
    assert_eq!(
        (origin(0, "value"), origin(1, "environment_scope")),
        ("a.yaml:7:14".into(), "a.yaml:6:37".into())
    );
    assert_eq!(
        origin(0, "environment_scope"),
        "a.yaml:7:6",
        "a default is written where its entry is"
    );
}

#[test]
fn every_reference_to_a_secret_is_known() {
    let desired = Desired { containers: containers(SHOP), ..Desired::default() };
    let references: Vec<_> = desired
        .references()
        .map(|(address, at, reference)| format!("{address} {at} {reference}"))
        .collect();
    let expected = [
        "acme/shop#hooks/ci a.yaml:12:61 env:TOKEN",
        "acme/shop#hooks/env%3AHOOK a.yaml:13:6 env:HOOK",
        "acme/shop#variables/B@prod%2F* a.yaml:6:14 file:keys/b",
    ];
    assert_eq!(references, expected);
    let reference = desired.references().next().unwrap().2;
    assert_eq!(*reference, Reference::Env("TOKEN".into()));
}

#[test]
fn what_is_not_written_is_not_declared() {
    let containers = containers(
        "kind: Project\npath: acme/shop\nvariables: []\ncreate: false\n---\nkind: Project\npath: acme/a\ncreate: {}\n",
    );
    assert_eq!(
        containers.iter().map(|container| &*container.path).collect::<Vec<_>>(),
        ["acme/a", "acme/shop"]
    );
    assert_eq!(containers[1].sections.keys().collect::<Vec<_>>(), [&"variables"]);
    assert!(containers[1].sections["variables"].entries.is_empty());
    assert!(
        containers[1].create.fields().is_none()
            && containers[0].create.fields().is_some_and(|create| create.keys().next().is_none())
    );
}

#[test]
fn one_file_is_a_manifest_too() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.png"), "").unwrap();
    fs::write(folder.path().join("a.yaml"), SHOP).unwrap();
    fs::write(folder.path().join("b.yaml"), "broken: [").unwrap();
    fs::write(folder.path().join("undrift.yaml"), "version: 1\nservice: {tier: premium}\n")
        .unwrap();
    let loaded = load(&folder.path().join("a.yaml"), &around(folder.path()));
    assert_eq!((loaded.root.as_path(), loaded.files.len()), (folder.path(), 1));
    assert_eq!(loaded.config.service.tier, Some(crate::field::Tier::Premium));
    assert!(loaded.desired.is_some());
    assert!(
        load(Path::new("does/not/exist.yaml"), &around(Path::new("/"))).diagnostics.has_errors()
    );
}

#[test]
fn the_configuration_is_read() {
    let text = "version: 1\nservice: {url: 'https://h/gitlab', tier: ultimate, import_hosts: {extgit: h}}\nguards: {removals: {share: 0.5}}\n";
    let loaded = load_files(&[("undrift.yaml", text), ("a.yaml", "kind: Project\npath: a/b\n")]);
    assert!(loaded.desired.is_some(), "{}", loaded.diagnostics.render(Style::default()));
    assert_eq!(loaded.config.service.url.as_deref(), Some("https://h/gitlab"));
    assert_eq!(
        (loaded.config.guards.removals.share, loaded.config.guards.removals.count),
        (Some(0.5), None)
    );
    assert_eq!(
        faults(&[("undrift.yaml", "service: {}\n"), ("a.yaml", "kind: Project\npath: a/b\n")]),
        [("missing", 1)]
    );
    assert_eq!(
        faults(&[("sub/undrift.yaml", "version: 1\n")]),
        [("missing", 1)],
        "only the one at the root configures"
    );
}

#[test]
fn a_fault_hides_no_other() {
    let found = faults(&[
        ("a.yaml", "kind: Project\npath: acme/a\nvariables: [{key: A B}]\nhooks: [\n"),
        (
            "b.yaml",
            "kind: Project\npath: acme/b\nvariables: [{key: A B}, {key: C, value: 1}]\n---\nkind: Project\npath: ACME/C\nx: 1\n",
        ),
        ("c.yaml", "kind: Project\npath: acme/c\nsettings: {issues_enabled: true}\n"),
    ]);
    let expected = [
        ("syntax", 4),
        ("pattern", 3),
        ("quote", 3),
        ("unknown-field", 7),
        ("duplicate-project", 2),
        ("deprecated", 3),
    ];
    assert_eq!(found, expected);
}

#[test]
fn several_errors_at_one_place_are_told_once() {
    assert_eq!(
        faults(&[("a.yaml", "kind: Project\npath: a/b\nsettings: {visibility: 3}\n")]),
        [("quote", 3)]
    );
    assert_eq!(
        faults(&[("a.yaml", "kind: Project\npath: a/b\nmembers: [{user: a, access_level: []}]\n")]),
        [("choice", 3)]
    );
}

#[test]
fn an_absent_entry_may_say_what_it_is_found_by() {
    let text = "kind: Project\npath: a/b\nhooks: [{name: x, url: 'https://h', previously: ['https://g'], state: absent}]\n";
    assert_eq!(containers(text)[0].sections["hooks"].entries[0].state, State::Absent);
    let text = "kind: Project\npath: a/b\nhooks: [{url: 'https://h', push_events: true, extra: {a: 1}, state: absent}]\n";
    assert_eq!(faults(&[("a.yaml", text)]), [("absent", 3), ("absent", 3)]);
}

#[test]
fn the_tier_counts_only_if_it_is_given() {
    let text = "kind: Project\npath: a/b\nsettings: {only_allow_merge_if_all_status_checks_passed: true, mirror: true}\n";
    for (tier, count) in [
        ("", 0),
        ("service: {tier: free}\n", 2),
        ("service: {tier: premium}\n", 1),
        ("service: {tier: ultimate}\n", 0),
    ] {
        let found = faults(&[("undrift.yaml", &format!("version: 1\n{tier}")), ("a.yaml", text)]);
        assert_eq!(found, vec![("tier", 3); count], "{tier}");
    }
}

#[test]
fn warnings_are_no_errors() {
    let loaded =
        load_files(&[("a.yaml", "kind: Project\npath: a/b\nsettings: {issues_enabled: true}\n")]);
    assert!(loaded.desired.is_some());
    assert_eq!(
        (loaded.diagnostics.count(Severity::Warning), loaded.diagnostics.count(Severity::Error)),
        (1, 0)
    );
}

#[test]
fn more_warnings_than_are_shown_are_no_errors_either() {
    let document = |i| {
        format!(
            "---\nkind: Project\npath: a/p{i}\nsettings: {{issues_enabled: true, wiki_enabled: true}}\n"
        )
    };
    let loaded = load_files(&[("a.yaml", &(0..100).map(document).collect::<String>())]);
    assert_eq!(
        (loaded.diagnostics.count(Severity::Warning), loaded.diagnostics.count(Severity::Error)),
        (101, 0)
    );
    let with_error =
        (0..100).map(document).collect::<String>() + "---\nkind: Projct\n" + &document(100);
    assert!(load_files(&[("a.yaml", &with_error)]).diagnostics.has_errors());
}

#[test]
fn folders_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    // A file with a hole takes no room.
    fs::File::create(folder.path().join("a.yaml")).unwrap().set_len(257 << 20).unwrap();
    let loaded = load(folder.path(), &around(folder.path()));
    let messages: Vec<_> =
        loaded.diagnostics.sorted().into_iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!((messages, loaded.files.len()), (vec!["more than 256 MiB of manifests"], 0));
}

#[test]
fn results_come_in_the_order_of_the_items() {
    let items: Vec<_> = (0..1000).collect();
    assert_eq!(
        files::for_each(&items, |item| item * 2),
        items.iter().map(|item| item * 2).collect::<Vec<_>>()
    );
    assert_eq!(files::for_each(&[] as &[u8], |item| *item), [0; 0]);
}

/// Documents that say something about everything, as JSON.
fn documents() -> Vec<Json> {
    let document = |i: usize| {
        json!({
            "kind": "Project", "path": format!("acme/p{i}"),
            "settings": {"visibility": "private", "topics": ["a", "b"], "container_expiration_policy": {"enabled": true, "keep_n": i + 1}},
            "variables": [{"key": "A", "value": format!("v{i}")}, {"key": "A", "environment_scope": "x", "value": {"env": "N"}}, {"key": "B"}],
            "hooks": [{"name": "n", "url": "https://h/x"}, {"url": "https://h/y", "push_events": true}],
            "unlisted": {"hooks": "delete"},
        })
    };
    (0..4).map(document).collect()
}

/// `json` with its keys, and the entries of lists that are sets, in another order.
fn shuffled(json: &Json, picks: &mut impl Iterator<Item = Index>) -> Json {
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
            keys.map(|key| (key.to_owned(), shuffled(&object[key], picks))).collect()
        }
        Json::Array(items) if items.iter().all(Json::is_object) => {
            let items = shuffle(items.clone());
            items.iter().map(|item| shuffled(item, picks)).collect()
        }
        other => other.clone(),
    }
}

/// A good manifest with secrets wherever there may be some, and what it is made of.
const SECRETS: &str = "\
# CANARY
kind: Project
path: acme/shop
settings: {import_url: {env: CANARY}, extra: {key: CANARY}} # CANARY
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
";

/// What manifests are made of.
const PIECES: [&str; 30] = [
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
];

/// What a hand may add by mistake.
const SLIPS: [&str; 16] =
    [" ", "'", "\"", "[", "}", "\t", ": ", "&", "\n", "- ", "#", "|", "*", "!", ",", "{"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn order_never_matters(picks in prop::collection::vec(any::<Index>(), 200)) {
        let plain: String = documents().iter().map(|document| format!("---\n{document}\n")).collect();
        let expected = facts(&load_files(&[("a.yaml", &plain)]).desired.unwrap());

        let mut picks = picks.into_iter();
        let mut files = [String::new(), String::new(), String::new()];
        for document in documents() {
            let file = picks.next().map_or(0, |pick| pick.index(3));
            files[file] += &format!("---\n{}\n", shuffled(&document, &mut picks));
        }
        let loaded = load_files(&[("z.yaml", &files[0]), ("b/a.yml", &files[1]), ("b.yaml", &files[2])]);
        prop_assert_eq!(facts(&loaded.desired.unwrap()), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_written_is_answered(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40)) {
        let text = format!("kind: Project\npath: a/b\n{}", pieces.concat());
        let resolved = resolve::file(&"a.yaml".into(), Ok(text), Some(crate::field::Tier::Free), jiff::civil::date(2030, 1, 1));
        let diagnostics: Diagnostics = resolved.diagnostics.into_iter().collect();
        prop_assert_eq!(diagnostics.is_empty(), diagnostics.render(Style::default()).is_empty());
    }

    /// Slips of the pen between the words, which may break the YAML or move values elsewhere, but
    /// never into an open field.
    #[test]
    fn no_slip_shows_a_secret(slips in prop::collection::vec((any::<Index>(), 0..=SLIPS.len()), 1..4)) {
        let mut text = SECRETS.to_owned();
        for (at, slip) in slips {
            let places: Vec<_> = text.char_indices().map(|(at, _)| at).collect();
            let at = places[at.index(places.len())];
            // The word itself stays whole, so that it can be found.
            if text[..at].ends_with(|c: char| c.is_ascii_uppercase()) && text[at..].starts_with(|c: char| c.is_ascii_uppercase()) {
                continue;
            }
            match slip {
                0 if !text[at..].starts_with(|c: char| c.is_ascii_uppercase()) => drop(text.remove(at)),
                0 => {}
                // A secret with a colon behind it is a key for all that anyone can tell.
                slip if SLIPS[slip - 1] == ": " && text[..at].ends_with("CANARY") => {}
                // A line of a secret that is broken in its indentation can become an open field.
                slip if SLIPS[slip - 1] == "\n" && text[at..].trim_start_matches(' ').starts_with("path: CANARY") => {}
                slip => text.insert_str(at, SLIPS[slip - 1]),
            }
        }
        let resolved = resolve::file(&"a.yaml".into(), Ok(text.clone()), None, jiff::civil::date(2030, 1, 1));
        let shown = resolved.diagnostics.into_iter().collect::<Diagnostics>().render(Style::default());
        prop_assert!(!shown.contains("CANARY"), "{}\n{}", text, shown);
    }
}

/// What is loaded for `named`, below a folder with these files and a `.git`, as seen from
/// `seen_from`.
fn load_below(files: &[(&str, &str)], named: &str, seen_from: &str) -> (Config, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("repository/.git")).unwrap();
    for (name, text) in files {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    }
    let loaded = load(&root.join(named), &around(&root.join(seen_from)));
    let shown = |fault: &Diagnostic| {
        format!("{} {}", fault.code, fault.place.as_ref().map_or("", |place| &*place.file))
    };
    let faults = loaded.diagnostics.sorted().into_iter().map(shown);
    (loaded.config, loaded.files.iter().map(ToString::to_string).chain(faults).collect())
}

#[test]
fn the_configuration_counts_from_any_folder_below_it() {
    const CONFIG: &str = "version: 1\nguards: {removals: {count: 3}}\n";
    const SHOP: &str = "kind: Project\npath: acme/shop\nsettings: {avatar: {file: team/a.png}}\n";
    let files = [
        ("repository/undrift.yaml", CONFIG),
        ("repository/team/web/shop.yaml", SHOP),
        ("repository/team/a.png", ""),
    ];
    for (named, seen_from, file) in [
        ("repository", "repository", "team/web/shop.yaml"),
        ("repository/team/web", "repository", "team/web/shop.yaml"),
        ("repository/team/web", "repository/team", "web/shop.yaml"),
        ("repository/team/web/shop.yaml", "repository/team/web", "shop.yaml"),
    ] {
        let (config, said) = load_below(&files, named, seen_from);
        assert_eq!(
            (config.guards.removals.count, &said[..]),
            (Some(3), &[file.to_owned()][..]),
            "{named} from {seen_from}"
        );
    }
    let broken = [files[1], ("repository/undrift.yaml", "version: 2\n"), files[2]];
    for (seen_from, config) in [
        ("repository", "undrift.yaml"),
        ("repository/team", "../undrift.yaml"),
        ("repository/team/web", "../../undrift.yaml"),
        ("", "repository/undrift.yaml"),
    ] {
        let (_, said) = load_below(&broken, "repository/team/web", seen_from);
        assert_eq!(said[1], format!("value {config}"), "{said:?}");
    }
}

#[test]
fn the_configuration_is_not_looked_for_above_the_repository() {
    const SHOP: &str = "kind: Project\npath: acme/shop\n";
    let files = [
        ("undrift.yaml", "version: 2\n"),
        ("repository/shop.yaml", SHOP),
        ("repository/web/undrift.yaml", "version: 1\n"),
    ];
    let (_, said) = load_below(&files, "repository", "repository");
    assert_eq!(
        said,
        ["shop.yaml", "web/undrift.yaml", "missing web/undrift.yaml"],
        "one below the root is no configuration"
    );
    let (_, said) = load_below(&[files[0], ("plain/shop.yaml", SHOP)], "plain", "plain");
    assert_eq!(said[1], "value ../undrift.yaml", "without a repository the search goes on");
}
