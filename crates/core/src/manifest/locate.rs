//! Finds the exact location in the source text for faults that only have an origin.
//!
//! Checks across fields or documents run after the source texts were dropped from memory. The files
//! with faults of these checks are therefore read again, and secrets in their texts are hidden. If
//! a file changed meanwhile, messages quote its current text.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
};

use super::{
    faults::{Faults, HiddenFaults, KeyPart, MAX_SHOWN_FAULTS, NodeFault, NodePosition},
    mask::TextState,
    parallel::map_parallel,
    read::{self, ManifestFile},
};
use crate::{
    diagnostic::{Diagnostic, FileName, SourceLocation, SourceText},
    steps,
    yaml::{self, MappingKey, Node, NodeValue},
};

/// For each file: the number of faults shown so far, and the count of hidden faults.
pub(super) type FaultCounts = BTreeMap<FileName, (usize, HiddenFaults)>;

/// Converts `faults` to diagnostics, without duplicates. For each file with hidden faults, adds a
/// diagnostic with their number.
pub(super) fn locate_faults(
    faults: Faults,
    mut counts: FaultCounts,
    files: &[ManifestFile],
) -> Vec<Diagnostic> {
    let faults = limit_faults(faults.items, &mut counts);
    let mut positions: BTreeMap<FileName, BTreeSet<&NodePosition>> = BTreeMap::new();
    for fault in &faults {
        for position in std::iter::once(&fault.position).chain(&fault.related) {
            positions.entry(position.origin.file.clone()).or_default().insert(position);
        }
    }
    let locations = map_parallel(positions.into_iter().collect(), |(name, positions)| {
        find_locations(&name, positions, files)
    });
    let locations: BTreeMap<_, _> = locations.into_iter().flatten().collect();
    let hidden_diagnostics =
        counts.into_iter().filter_map(|(file, (_, hidden_faults))| hidden_faults.diagnostic(file));
    let shown_diagnostics = faults.into_iter().map(|fault| {
        fault.into_diagnostic(|position| {
            locations.get(position).cloned().unwrap_or_else(|| (&position.origin).into())
        })
    });
    shown_diagnostics.chain(hidden_diagnostics).collect()
}

/// The first faults of each file, at most [`MAX_SHOWN_FAULTS`] per file. Equal faults at one
/// position are joined. Such faults occur, for example, if an anchor is merged into several
/// mappings.
fn limit_faults(mut faults: Vec<NodeFault>, counts: &mut FaultCounts) -> Vec<NodeFault> {
    fn sort_key(fault: &NodeFault) -> impl Ord {
        (&fault.position, fault.severity, fault.code, &fault.message)
    }
    faults.sort_by(|one, other| sort_key(one).cmp(&sort_key(other)));
    let mut faults = faults.into_iter().peekable();
    let mut shown_faults = Vec::new();
    while let Some(mut first_fault) = faults.next() {
        let mut labels = BTreeSet::from([first_fault.label.clone()]);
        while let Some(equal_fault) =
            faults.next_if(|next| sort_key(next) == sort_key(&first_fault))
        {
            labels.insert(equal_fault.label);
        }
        if let (Some(label), other_count @ 1..) = (&mut first_fault.label, labels.len() - 1) {
            *label += &format!(" and {other_count} more");
        }
        let (shown_count, hidden_faults) =
            counts.entry(first_fault.position.origin.file.clone()).or_default();
        if *shown_count < MAX_SHOWN_FAULTS {
            *shown_count += 1;
            shown_faults.push(first_fault);
        } else {
            hidden_faults.add(1, first_fault.severity);
        }
    }
    shown_faults
}

/// Each of `positions` with its source location in the file `file_name`.
fn find_locations(
    file_name: &FileName,
    positions: BTreeSet<&NodePosition>,
    files: &[ManifestFile],
) -> Vec<(NodePosition, SourceLocation)> {
    let file = files
        .binary_search_by(|file| file.name.cmp(file_name))
        .ok()
        .map(|file_index| &files[file_index]);
    let text = file.and_then(|file| file.read_text().ok()).unwrap_or_default();
    let parsed = yaml::parse(&text);
    let mut source = SourceText::new(file_name.clone(), &text);
    read::hide_manifest_secrets(&mut source, &parsed, TextState::MayHaveFaults);
    let mut index = NodeIndex::new();
    parsed.documents.iter().for_each(|document| add_node(document, &mut index));
    let locations = positions.into_iter().map(|position| {
        let location = if text.is_empty() {
            (&position.origin).into()
        } else {
            source.locate(&position.find_range(&source, &index))
        };
        (position.clone(), location)
    });
    locations.collect()
}

impl NodePosition {
    /// The byte range of this position in `source`. `index` contains the nodes of that text.
    fn find_range(&self, source: &SourceText<'_>, index: &NodeIndex<'_>) -> Range<usize> {
        let origin_offset = source.offset(self.origin.line, self.origin.column);
        let (key, value) = match index.get(&origin_offset) {
            Some((Some(key), value)) => (*key, *value),
            Some((None, node)) => return node.span.clone(),
            None => return origin_offset..origin_offset,
        };
        match &self.key_part {
            KeyPart::Key => key.span.clone(),
            KeyPart::Value => scalar_or_key_range(key, value),
            KeyPart::NestedKey(names) => {
                let inner_entry =
                    names.iter().try_fold((key, value), |(_, value), name| value.get(name));
                inner_entry.unwrap_or((key, value)).0.span.clone()
            }
            KeyPart::NestedValue(inner_name) => {
                let mut mappings = std::iter::once(value).chain(value.items());
                match mappings.find_map(|mapping| mapping.get(inner_name)) {
                    Some((key, value)) => scalar_or_key_range(key, value),
                    None => find_item(value, inner_name)
                        .cloned()
                        .unwrap_or_else(|| scalar_or_key_range(key, value)),
                }
            }
            KeyPart::ListItem(text) => find_item(value, text).unwrap_or(&key.span).clone(),
        }
    }
}

/// The byte range of a field's value. If the value is empty, a list or a mapping, the range of the
/// key.
fn scalar_or_key_range(key: &MappingKey, value: &Node) -> Range<usize> {
    if matches!(value.data, NodeValue::List(_) | NodeValue::Map(_) | NodeValue::Null) {
        key.span.clone()
    } else {
        value.span.clone()
    }
}

/// The byte range of the first scalar with the text `text` in `node`, or of `node` itself.
fn find_item<'n>(node: &'n Node, text: &str) -> Option<&'n Range<usize>> {
    if node.text() == Some(text) {
        return Some(&node.span);
    }
    node.children().find_map(|inner| find_item(inner, text))
}

/// The nodes of a text, by the byte at which they start. If a key starts at a byte, the entry has
/// this key and its value. Otherwise, the entry has the outermost value that starts at the byte.
type NodeIndex<'p> = HashMap<usize, (Option<&'p MappingKey>, &'p Node)>;

/// Adds `node` and all nodes within it to `index`.
fn add_node<'p>(node: &'p Node, index: &mut NodeIndex<'p>) {
    steps::count_step();
    index.entry(node.span.start).or_insert((None, node));
    for (key, value) in node.entries() {
        let indexed_node = index.entry(key.span.start).or_insert((None, value));
        if indexed_node.0.is_none() {
            *indexed_node = (Some(key), value);
        }
    }
    node.children().for_each(|inner| add_node(inner, index));
}
