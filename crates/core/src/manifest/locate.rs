//! Adds the line of text to faults that only have an origin.
//!
//! Faults that span fields or documents are found after the texts were dropped. Files with such
//! faults are read again, also to find their secret parts. If a file changed meanwhile, its current
//! text is shown, with its secrets hidden.

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
    yaml::{self, MappingKey, Node, NodeValue, Parsed},
};

/// For each file that was read: the number of faults shown so far, and of faults not shown.
pub(super) type Counts = BTreeMap<FileName, (usize, HiddenFaults)>;

/// The faults with their places, without duplicates, and how many of each file are not shown.
pub(super) fn place_faults(
    faults: Faults,
    mut counts: Counts,
    files: &[ManifestFile],
) -> Vec<Diagnostic> {
    let faults = limit_faults(faults.items, &mut counts);
    let mut spots: BTreeMap<FileName, BTreeSet<&NodePosition>> = BTreeMap::new();
    for fault in &faults {
        for spot in std::iter::once(&fault.position).chain(&fault.related) {
            spots.entry(spot.origin.file.clone()).or_default().insert(spot);
        }
    }
    let places: BTreeMap<NodePosition, SourceLocation> =
        map_parallel(spots.into_iter().collect(), |(name, spots)| find_places(&name, spots, files))
            .into_iter()
            .flatten()
            .collect();
    let hidden = counts.into_iter().filter_map(|(file, (_, more))| more.diagnostic(file));
    let placed = faults.into_iter().map(|fault| {
        fault.place(|spot| places.get(spot).cloned().unwrap_or_else(|| (&spot.origin).into()))
    });
    placed.chain(hidden).collect()
}

/// The first faults of each file. A fault in an anchor that is merged into several places counts
/// once.
fn limit_faults(mut faults: Vec<NodeFault>, counts: &mut Counts) -> Vec<NodeFault> {
    fn key(fault: &NodeFault) -> impl Ord {
        (&fault.position, fault.severity, fault.code, &fault.message)
    }
    faults.sort_by(|one, other| key(one).cmp(&key(other)));
    let mut faults = faults.into_iter().peekable();
    let mut limited = Vec::new();
    while let Some(mut first) = faults.next() {
        let mut labels = BTreeSet::from([first.label.clone()]);
        while let Some(equal) = faults.next_if(|next| key(next) == key(&first)) {
            labels.insert(equal.label);
        }
        if let (Some(label), others @ 1..) = (&mut first.label, labels.len() - 1) {
            *label += &format!(" and {others} more");
        }
        let (shown, hidden) = counts.entry(first.position.origin.file.clone()).or_default();
        if *shown < MAX_SHOWN_FAULTS {
            *shown += 1;
            limited.push(first);
        } else {
            hidden.add(1, first.severity);
        }
    }
    limited
}

/// The places of `spots` in the file `name`.
fn find_places(
    name: &FileName,
    spots: BTreeSet<&NodePosition>,
    files: &[ManifestFile],
) -> Vec<(NodePosition, SourceLocation)> {
    let file = files.binary_search_by(|file| file.name.cmp(name)).ok().map(|at| &files[at]);
    let text = file.and_then(|file| file.read().ok()).unwrap_or_default();
    let parsed = yaml::parse(&text);
    let mut source = SourceText::new(name.clone(), &text);
    read::hide_manifest_secrets(&mut source, &parsed, TextState::Doubtful);
    let positions = Positions::new(&parsed);
    let places = spots.into_iter().map(|spot| {
        let place = if text.is_empty() {
            (&spot.origin).into()
        } else {
            source.place(&spot.find_range(&source, &positions))
        };
        (spot.clone(), place)
    });
    places.collect()
}

impl NodePosition {
    /// The range in a text with these positions.
    fn find_range(&self, source: &SourceText<'_>, positions: &Positions<'_>) -> Range<usize> {
        let at = source.offset(self.origin.line, self.origin.column);
        let Some((key, value)) = positions.keys.get(&at).copied() else {
            return positions.nodes.get(&at).map_or(at..at, |node| node.span.clone());
        };
        match &self.part {
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

/// The range of a field's value, or of its key if the value is not a scalar.
fn scalar_or_key_range(key: &MappingKey, value: &Node) -> Range<usize> {
    if matches!(value.data, NodeValue::List(_) | NodeValue::Map(_) | NodeValue::Null) {
        key.span.clone()
    } else {
        value.span.clone()
    }
}

/// The range of the first `text` in `node`.
fn find_item<'n>(node: &'n Node, text: &str) -> Option<&'n Range<usize>> {
    if node.text() == Some(text) {
        return Some(&node.span);
    }
    node.children().find_map(|inner| find_item(inner, text))
}

/// All keys and values of a text, by their first byte.
#[derive(Default)]
struct Positions<'p> {
    /// Each key with its value. Of merged ones, the outermost.
    keys: HashMap<usize, (&'p MappingKey, &'p Node)>,
    /// The outermost value.
    nodes: HashMap<usize, &'p Node>,
}

impl<'p> Positions<'p> {
    fn new(parsed: &'p Parsed) -> Self {
        let mut positions = Self::default();
        parsed.documents.iter().for_each(|document| positions.add_node(document));
        positions
    }

    fn add_node(&mut self, node: &'p Node) {
        steps::step();
        self.nodes.entry(node.span.start).or_insert(node);
        for (key, value) in node.entries() {
            self.keys.entry(key.span.start).or_insert((key, value));
        }
        node.children().for_each(|inner| self.add_node(inner));
    }
}
