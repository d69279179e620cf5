//! The table of rules and the tests that refer to it.

use std::collections::BTreeSet;
use std::path::Path;

use undrift_sandbox::FACTS;
pub(crate) use undrift_sandbox::Fact;

use crate::switches::switches;

/// A rule by its name.
pub(crate) fn fact(name: &str) -> &'static Fact {
    FACTS
        .iter()
        .find(|fact| fact.name == name)
        .unwrap_or_else(|| panic!("no rule is called {name}"))
}

/// The names in calls of [`fact`], from the text of these tests.
fn tested() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sandbox");
    let mut names = BTreeSet::new();
    let paths = std::fs::read_dir(folder).expect("the tests").map(|entry| entry.expect("a file"));
    for path in paths.map(|entry| entry.path()).filter(|path| path.is_file()) {
        let text = std::fs::read_to_string(path).expect("text");
        let calls = text.split("fact(\"").skip(1);
        names.extend(calls.filter_map(|call| call.split('"').next()).map(str::to_owned));
    }
    names
}

#[test]
fn every_rule_is_tested_and_every_test_names_a_rule() {
    // Comments and strings in this file are not calls.
    let tested: BTreeSet<String> =
        tested().into_iter().filter(|name| name.starts_with(char::is_alphabetic)).collect();
    let known: BTreeSet<String> = FACTS.iter().map(|fact| fact.name.to_owned()).collect();
    let untested: Vec<_> = known.difference(&tested).collect();
    let unknown: Vec<_> = tested.difference(&known).collect();
    assert!(
        untested.is_empty() && unknown.is_empty(),
        "without a test: {untested:?}; not in the table: {unknown:?}"
    );
}

#[test]
fn names_are_unique_and_switches_are_those_of_the_profile() {
    let names: BTreeSet<_> = FACTS.iter().map(|fact| fact.name).collect();
    assert_eq!(names.len(), FACTS.len());
    let items = include_str!("../../src/facts.md").lines().filter(|line| line.starts_with('-'));
    assert_eq!(items.count(), FACTS.len(), "an item that cannot be read");
    let named: BTreeSet<_> = FACTS.iter().filter_map(|fact| fact.dialect).collect();
    let switches: BTreeSet<_> = switches().into_iter().map(|(name, _)| name).collect();
    assert_eq!(named, switches);
    for fact in FACTS.iter() {
        let is_known = ["service", "code of 18.9", "inferred"].contains(&fact.source);
        assert!(is_known || fact.source.starts_with("reference "), "{fact} has no known source");
        assert!(fact.source != "inferred" || fact.dialect.is_some(), "{fact} has no other way");
    }
}
