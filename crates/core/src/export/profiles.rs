//! Moves values that three or more projects, or groups, have in common into profiles.
//!
//! A shared value is an entry of a list section, or a field of a mapping section, as in
//! [`defaults`](super::defaults), which are extracted first. All values with the same users form one
//! profile, if that saves lines. The choice depends only on the documents.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    document::{DocEntry, ExportedDocument, ExportedRule},
    shared::{
        MIN_SAVED_LINES, SharedKey, add_entry, line_count, replace_values, shareable_sections,
        shareable_values,
    },
};
use crate::{address::group_of, field::Scope, kind::Section, steps, yaml::write::Item};

/// The minimum number of documents that use a profile.
const MIN_USERS: usize = 3;

/// The number of lines of a profile without its sections.
const EMPTY_PROFILE_LINES: u64 = 3;

/// A value of several documents.
struct RepeatedValue {
    section: Section,
    key: SharedKey,
    entry: DocEntry,
}

/// Moves common values of several `documents` of `scope` into the returned profiles. `names` are
/// those of all profiles.
pub(super) fn extract_profiles(
    documents: &mut [ExportedDocument],
    scope: Scope,
    names: &mut BTreeSet<String>,
) -> Vec<ExportedRule> {
    let mut values_by_users: BTreeMap<Vec<usize>, Vec<RepeatedValue>> = BTreeMap::new();
    for (value, users) in find_repeated_values(documents, scope) {
        values_by_users.entry(users).or_default().push(value);
    }
    let mut profiles = Vec::new();
    let mut moved_keys: BTreeMap<usize, BTreeSet<SharedKey>> = BTreeMap::new();
    for (users, values) in values_by_users {
        let lines: u64 = values.iter().map(|value| line_count(value.section, &value.entry)).sum();
        let new_lines = users.iter().filter(|user| documents[**user].uses.is_empty()).count();
        let cost = lines + EMPTY_PROFILE_LINES + new_lines as u64;
        if (lines * users.len() as u64).saturating_sub(cost) < MIN_SAVED_LINES {
            continue;
        }
        let group = common_group(users.iter().map(|user| &*documents[*user].path));
        let name = name_profile(&group, &values, names);
        for user in &users {
            documents[*user].uses.push(name.clone());
            let keys = values.iter().map(|value| value.key.clone());
            moved_keys.entry(*user).or_default().extend(keys);
        }
        let mut sections = Vec::new();
        for RepeatedValue { section, entry, .. } in values {
            add_entry(&mut sections, section, entry);
        }
        let head = [Item::value("kind", "Profile"), Item::value("name", &*name)];
        profiles.push(ExportedRule::new(scope, group, head, sections));
        names.insert(name);
    }
    for (user, keys) in moved_keys {
        replace_values(&mut documents[user], &keys, Vec::new());
    }
    profiles
}

/// The values that at least [`MIN_USERS`] documents have, with the positions of these documents.
fn find_repeated_values(
    documents: &[ExportedDocument],
    scope: Scope,
) -> impl Iterator<Item = (RepeatedValue, Vec<usize>)> {
    let mut values_by_text: BTreeMap<String, (RepeatedValue, Vec<usize>)> = BTreeMap::new();
    for (at, document) in documents.iter().enumerate().filter(|(_, of)| of.scope == scope) {
        for content in shareable_sections(document) {
            let section = content.section;
            for (key, entry) in
                content.entries.iter().flat_map(|entry| shareable_values(section, entry))
            {
                steps::step();
                if entry.state.is_some() {
                    continue;
                }
                let text = format!("{key:?} {entry:?}");
                let value = RepeatedValue { section, key, entry };
                let (_, users) = values_by_text.entry(text).or_insert((value, Vec::new()));
                users.push(at);
            }
        }
    }
    values_by_text.into_values().filter(|(_, users)| users.len() >= MIN_USERS)
}

/// A name for a profile with `values`, after their sections and the group of its users: other groups
/// may be exported into the same repository.
fn name_profile(group: &str, values: &[RepeatedValue], used_names: &BTreeSet<String>) -> String {
    let sections: BTreeSet<_> = values.iter().map(|value| value.section.section).collect();
    let sections: Vec<_> = sections.into_iter().collect();
    let base = match &sections[..] {
        [one] => (*one).to_owned(),
        [one, other] => format!("{one}-{other}"),
        [one, ..] => format!("{one}-and-more"),
        [] => "shared".to_owned(),
    };
    let prefix = group.replace('/', "-");
    let base = match prefix.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()) {
        "" => base,
        prefix => format!("{prefix}-{base}"),
    };
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut names = std::iter::once(base.clone()).chain(numbered);
    names.find(|name| !used_names.contains(name)).unwrap_or(base)
}

/// The path of the innermost group above all `paths`; empty if there is none.
fn common_group<'p>(mut paths: impl Iterator<Item = &'p str>) -> String {
    let mut common = paths.next().and_then(group_of).unwrap_or_default();
    for path in paths {
        while !common.is_empty() && !path.starts_with(&format!("{common}/")) {
            common = group_of(common).unwrap_or_default();
        }
    }
    common.to_owned()
}
