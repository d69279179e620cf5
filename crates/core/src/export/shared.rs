//! Values that documents share in [`defaults`](super::defaults) and [`profiles`](super::profiles).
//! This module gives the keys of values, counts their lines, and moves them.

use std::collections::BTreeSet;

use super::document::{DocEntry, DocSection, ExportedDocument, sort_section};
use crate::{
    kind::{Section, Shape},
    value::Json,
    yaml::write::{self, OutputNode},
};

/// The minimum number of lines that `Defaults` must save. `Defaults` without values need five
/// lines, so the saving must be larger.
pub(super) const MIN_SAVED_LINES: u64 = 6;

/// The key of a shared value: its section, and the identity of an entry or the name of a field.
pub(super) type SharedKey = (&'static str, String);

/// The sections of `document` whose values can be shared. `create` and switches such as `archived`
/// cannot be shared, and are written in each document.
pub(super) fn shareable_sections(document: &ExportedDocument) -> impl Iterator<Item = &DocSection> {
    let sections = document.sections.iter();
    sections.filter(|doc_section| {
        !matches!(doc_section.section.shape, Shape::Switch | Shape::Container)
    })
}

/// The keys under which values of an entry can be shared.
pub(super) fn shareable_keys(section: Section, entry: &DocEntry) -> Vec<SharedKey> {
    if shares_entries(section) {
        return vec![(section.section, entry.key.clone())];
    }
    entry.fields.iter().map(|(name, _)| (section.section, name.clone())).collect()
}

/// The values of an entry that can be shared: the whole entry, or each of its fields.
pub(super) fn shareable_values(section: Section, entry: &DocEntry) -> Vec<(SharedKey, DocEntry)> {
    let keys = shareable_keys(section, entry).into_iter();
    if shares_entries(section) {
        return keys.map(|key| (key, entry.clone())).collect();
    }
    let keyed_fields = keys.zip(&entry.fields);
    keyed_fields.map(|(key, (_, value))| (key.clone(), field_entry(&key, value.clone()))).collect()
}

/// True if whole entries of a section are shared, because entries can be absent; otherwise single
/// fields are shared.
pub(super) fn shares_entries(section: Section) -> bool {
    section.shape == Shape::List || section.is_removable()
}

/// An entry that contains only the field of `key`, with `value`.
pub(super) fn field_entry(key: &SharedKey, value: Json) -> DocEntry {
    DocEntry { fields: vec![(key.1.clone(), value)], ..DocEntry::default() }
}

/// The number of lines that `entry` needs in its section. For a shared field, `entry` contains only
/// this field.
pub(super) fn line_count(section: Section, entry: &DocEntry) -> u64 {
    let doc_section = DocSection::new(section, vec![entry.clone()]);
    let text = doc_section.to_item().map(|item| match item.node {
        // Do not count the key of the section: its line is needed in any case.
        OutputNode::Map(items) if !shares_entries(section) => write::render_document(&items),
        OutputNode::List(_) => write::render_document(&[item])
            .split_once('\n')
            .map_or(String::new(), |(_, lines)| lines.to_owned()),
        _ => write::render_document(&[item]),
    });
    text.map_or(0, |text| text.lines().count() as u64)
}

/// Removes the values at `keys` from `document`, and adds `additions`. Removes sections that become
/// empty.
pub(super) fn replace_values(
    document: &mut ExportedDocument,
    keys: &BTreeSet<SharedKey>,
    additions: Vec<(Section, DocEntry)>,
) {
    for doc_section in &mut document.sections {
        let name = doc_section.name();
        let is_moved = |key: &str| keys.contains(&(name, key.to_owned()));
        if shares_entries(doc_section.section) {
            doc_section.entries.retain(|entry| !is_moved(&entry.key));
        } else {
            let entries = doc_section.entries.iter_mut();
            entries.for_each(|entry| entry.fields.retain(|(name, _)| !is_moved(name)));
        }
    }
    for (section, entry) in additions {
        add_entry(&mut document.sections, section, entry);
    }
    let changed_sections: BTreeSet<_> = keys.iter().map(|(section, _)| *section).collect();
    document.sections.iter_mut().for_each(sort_section);
    document.sections.retain(|doc_section| {
        !doc_section.is_empty() || !changed_sections.contains(doc_section.name())
    });
    document.sections.sort_by_key(DocSection::position_in_document);
}

/// Adds an entry to `sections`. If the section shares single fields, adds the fields to the
/// section's existing entry.
pub(super) fn add_entry(sections: &mut Vec<DocSection>, section: Section, entry: DocEntry) {
    let index = sections
        .iter()
        .position(|doc_section| doc_section.name() == section.section)
        .unwrap_or_else(|| {
            sections.push(DocSection::new(section, Vec::new()));
            sections.len() - 1
        });
    let entries = &mut sections[index].entries;
    match entries.first_mut().filter(|_| !shares_entries(section)) {
        Some(existing) => existing.fields.extend(entry.fields),
        None => entries.push(entry),
    }
}
