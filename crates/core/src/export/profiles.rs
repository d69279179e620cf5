//! Moves values that three or more projects, or groups, have in common into profiles.
//!
//! A shared value is an entry of a list section, or a field of a mapping section. Values for
//! [`defaults`](super::defaults) are extracted first. All values that the same documents have form
//! one profile, if that saves lines. The same documents always result in the same profiles.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    document::{DocEntry, ExportedDocument, ExportedRule},
    shared::{
        MIN_SAVED_LINES, SharedKey, add_entry, line_count, replace_values, shareable_sections,
        shareable_values,
    },
};
use crate::{address::parent_group_path, field::Scope, kind::Section, steps, yaml::write::MapItem};

/// The minimum number of documents that use a profile.
const MIN_DOCUMENTS: usize = 3;

/// The number of lines of a profile without its sections.
const EMPTY_PROFILE_LINES: u64 = 3;

/// A value that several documents have.
struct RepeatedValue {
    section: Section,
    key: SharedKey,
    entry: DocEntry,
}

/// Moves common values of several `documents` of `scope` into the returned profiles. `names`
/// contains the names of all existing profiles; the function adds the names of the new profiles.
pub(super) fn extract_profiles(
    documents: &mut [ExportedDocument],
    scope: Scope,
    names: &mut BTreeSet<String>,
) -> Vec<ExportedRule> {
    let mut values_by_documents: BTreeMap<Vec<usize>, Vec<RepeatedValue>> = BTreeMap::new();
    for (value, positions) in find_repeated_values(documents, scope) {
        values_by_documents.entry(positions).or_default().push(value);
    }
    let mut profiles = Vec::new();
    let mut moved_keys: BTreeMap<usize, BTreeSet<SharedKey>> = BTreeMap::new();
    for (positions, values) in values_by_documents {
        let lines: u64 = values.iter().map(|value| line_count(value.section, &value.entry)).sum();
        let uses_lines = positions.iter().filter(|i| documents[**i].uses.is_empty()).count();
        let cost = lines + EMPTY_PROFILE_LINES + uses_lines as u64;
        if (lines * positions.len() as u64).saturating_sub(cost) < MIN_SAVED_LINES {
            continue;
        }
        let group = common_group(positions.iter().map(|position| &*documents[*position].path));
        let name = name_profile(&group, &values, names);
        for position in &positions {
            documents[*position].uses.push(name.clone());
            let keys = values.iter().map(|value| value.key.clone());
            moved_keys.entry(*position).or_default().extend(keys);
        }
        let mut sections = Vec::new();
        for RepeatedValue { section, entry, .. } in values {
            add_entry(&mut sections, section, entry);
        }
        let head = [MapItem::value("kind", "Profile"), MapItem::value("name", &*name)];
        profiles.push(ExportedRule::new(scope, group, head, sections));
        names.insert(name);
    }
    for (index, keys) in moved_keys {
        replace_values(&mut documents[index], &keys, Vec::new());
    }
    profiles
}

/// The values that at least [`MIN_DOCUMENTS`] documents have, with the positions of these documents.
fn find_repeated_values(
    documents: &[ExportedDocument],
    scope: Scope,
) -> impl Iterator<Item = (RepeatedValue, Vec<usize>)> {
    let mut values_by_text: BTreeMap<String, (RepeatedValue, Vec<usize>)> = BTreeMap::new();
    for (index, document) in
        documents.iter().enumerate().filter(|(_, exported)| exported.scope == scope)
    {
        for doc_section in shareable_sections(document) {
            let section = doc_section.section;
            for (key, entry) in
                doc_section.entries.iter().flat_map(|entry| shareable_values(section, entry))
            {
                steps::count_step();
                if entry.state.is_some() {
                    continue;
                }
                let text = format!("{key:?} {entry:?}");
                let value = RepeatedValue { section, key, entry };
                let (_, positions) = values_by_text.entry(text).or_insert((value, Vec::new()));
                positions.push(index);
            }
        }
    }
    values_by_text.into_values().filter(|(_, positions)| positions.len() >= MIN_DOCUMENTS)
}

/// An unused name for a profile with `values`. The name consists of the common `group` of the
/// documents and the sections of the values. Because of the group, exports of several groups can
/// share a repository.
fn name_profile(group: &str, values: &[RepeatedValue], used_names: &BTreeSet<String>) -> String {
    let sections: BTreeSet<_> = values.iter().map(|value| value.section.section).collect();
    let sections: Vec<_> = sections.into_iter().collect();
    let section_part = match &sections[..] {
        [first] => (*first).to_owned(),
        [one, second] => format!("{one}-{second}"),
        [one, ..] => format!("{one}-and-more"),
        [] => "shared".to_owned(),
    };
    let prefix = group.replace('/', "-");
    let base_name = match prefix.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()) {
        "" => section_part,
        prefix => format!("{prefix}-{section_part}"),
    };
    let numbered = (2..).map(|number| format!("{base_name}-{number}"));
    let mut names = std::iter::once(base_name.clone()).chain(numbered);
    names.find(|name| !used_names.contains(name)).unwrap_or(base_name)
}

/// The path of the innermost group above all `paths`; empty if no group is above all of them.
fn common_group<'p>(mut paths: impl Iterator<Item = &'p str>) -> String {
    let mut common_path = paths.next().and_then(parent_group_path).unwrap_or_default();
    for path in paths {
        while !common_path.is_empty() && !path.starts_with(&format!("{common_path}/")) {
            common_path = parent_group_path(common_path).unwrap_or_default();
        }
    }
    common_path.to_owned()
}
