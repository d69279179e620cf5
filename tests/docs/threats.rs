//! Each threat names the tests that guard against it, and they exist.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{file, root};

/// Tests that the page names and that are not there yet.
const NOT_YET: &[&str] = &[
    "without_the_key_a_guess_tells_nothing",
    "a_branch_cannot_lift_its_own_limits",
    "a_snapshot_holds_no_secret",
    "an_edited_plan_does_no_more_than_a_new_one",
    "a_plan_is_stale_when_a_field_changed_since",
    "names_cannot_inject_into_a_comment",
    "names_cannot_inject_into_a_page",
];

/// The names of all tests below `folder`.
fn tests_in(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            tests_in(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(path).unwrap();
            let mut is_test = false;
            for line in text.lines().map(str::trim_start) {
                is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                let name = line.trim_start_matches("async ").strip_prefix("fn ");
                if let Some((name, _)) = name.and_then(|rest| rest.split_once('('))
                    && std::mem::take(&mut is_test)
                {
                    found.insert(name.to_owned());
                }
            }
        }
    }
}

#[test]
fn each_threat_has_tests_that_exist() {
    let mut tests = BTreeSet::new();
    for folder in ["src", "tests"] {
        tests_in(&root().join(folder), &mut tests);
    }
    let page = file("docs/threat-model.md");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() >= 10, "{} threats", rows.len());
    let mut named = BTreeSet::new();
    for row in rows {
        let last = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let guards: Vec<_> = last.split('`').skip(1).step_by(2).collect();
        assert!(!guards.is_empty(), "no test guards against: {row}");
        named.extend(guards);
    }
    let missing: Vec<_> = named.iter().filter(|name| !tests.contains(**name)).copied().collect();
    let mut not_yet = NOT_YET.to_vec();
    not_yet.sort_unstable();
    assert_eq!(missing, not_yet, "tests that the page names and that do not exist");
}
