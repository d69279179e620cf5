//! Each threat names the tests that guard against it, and those tests exist.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{file, root};

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
                let in_parts =
                    line.strip_prefix("in_parts!(").and_then(|rest| rest.split_once(')'));
                found.extend(in_parts.map(|(name, _)| name.to_owned()));
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
    for folder in ["src", "crates", "tests"] {
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
    assert!(missing.is_empty(), "tests that the page names and that do not exist: {missing:?}");
}
