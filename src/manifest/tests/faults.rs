//! What is said about manifests that are wrong.

use super::*;
use crate::{desired::State, diagnostic::Severity};

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
    assert_eq!(containers(text)[0].section("hooks").unwrap().entries[0].state, State::Absent);
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
fn faults_of_all_parts_count_together() {
    let schema = |i| format!("  - {{key: A{i}, value: 1}}\n");
    let check = |i| format!("  - {{key: B{i}, value: short, masked: true, raw: false}}\n");
    let entries: String = (0..60).map(schema).chain((0..60).map(check)).collect();
    let text = format!("kind: Project\npath: a/b\nvariables:\n{entries}");
    let loaded = load_files(&[("a.yaml", &text), ("b.yaml", "kind: Project\npath: a/c\nx: 1\n")]);
    let messages: Vec<_> =
        loaded.diagnostics.sorted().into_iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(messages.len(), 102);
    assert_eq!(messages[0], "80 more faults in `a.yaml` are not shown");
    assert_eq!(messages[101], "unknown key `x`");
}

#[test]
fn a_file_that_changes_while_it_is_checked_shows_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    let file = File { name: "a.yaml".into(), path: path.clone(), is_named: true };
    let text = "kind: Project\npath: a/b\nvariables:\n  - {key: A, value: short, masked: true}\n";
    let context = Context {
        manages: None,
        tier: None,
        today: jiff::civil::date(2030, 1, 1),
        files: Secrets::new(folder.path(), []),
    };
    let shown = |now: Option<&str>| {
        match now {
            Some(now) => fs::write(&path, now).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let (_, faults) = check::check(layer::merge(read::text(&file, text).documents), &context);
        let files = [File { name: file.name.clone(), path: path.clone(), is_named: true }];
        let diagnostics = place::place(faults, place::Counts::new(), &files);
        diagnostics.into_iter().collect::<Diagnostics>().render(Style::default())
    };
    for now in [
        "kind: Project\nx: [\n  CANARY\n  CANARY CANARY CANARY CANARY CANARY",
        "",
        "a",
        "CANARY\n\n\nCANARY: CANARY",
    ] {
        let shown = shown(Some(now));
        assert!(shown.contains("--> a.yaml:") && !shown.contains("CANARY"), "{shown}");
    }
    let shown = shown(None);
    assert!(shown.contains("--> a.yaml:4:14"), "{shown}");
}
