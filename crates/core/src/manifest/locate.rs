//! Adds the line of text to faults that only have an origin.
//!
//! Faults that span fields or documents are found when the texts are gone. The files with such
//! faults are read again, also to know which parts are secret. A file that changed meanwhile is
//! shown as it is now, with its secrets hidden.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
};

use super::{
    faults::{Faults, Finding, MOST, More, Part, Spot},
    mask::Quality,
    parallel::for_each,
    read::{self, File},
};
use crate::{
    diagnostic::{Diagnostic, FileName, Place, Source},
    steps,
    yaml::{self, Data, Key, Node, Parsed},
};

/// For each file that was read: how many faults are shown already, and how many are not.
pub(super) type Counts = BTreeMap<FileName, (usize, More)>;

/// The faults with their places, without duplicates, and how many of each file are not shown.
pub(super) fn place(faults: Faults, mut counts: Counts, files: &[File]) -> Vec<Diagnostic> {
    let faults = limited(faults, &mut counts);
    let mut spots: BTreeMap<FileName, BTreeSet<&Spot>> = BTreeMap::new();
    for fault in &faults {
        for spot in std::iter::once(&fault.at).chain(fault.related.as_ref().map(|(at, _)| at)) {
            spots.entry(spot.origin.file.clone()).or_default().insert(spot);
        }
    }
    let places: BTreeMap<Spot, Place> =
        for_each(spots.into_iter().collect(), |(name, spots)| in_file(&name, spots, files))
            .into_iter()
            .flatten()
            .collect();
    let place = |spot: &Spot| places.get(spot).cloned().unwrap_or_else(|| (&spot.origin).into());
    let more = counts.into_iter().filter_map(|(file, (_, more))| more.diagnostic(file));
    faults.into_iter().map(|fault| fault.place(place)).chain(more).collect()
}

/// The first faults of each file. A fault in an anchor that is merged into several places counts
/// once.
fn limited(faults: Faults, counts: &mut Counts) -> Vec<Finding<Spot>> {
    let mut faults = faults.found;
    let key = |fault: &Finding<Spot>| {
        (fault.at.clone(), fault.severity, fault.code, fault.message.clone())
    };
    faults.sort_by_cached_key(key);
    let equal = faults.chunk_by(|one, other| key(one) == key(other)).map(|equal| {
        let labels: BTreeSet<_> = equal.iter().map(|fault| &fault.label).collect();
        let mut first = equal[0].clone();
        if let (Some(label), others @ 1..) = (&mut first.label, labels.len() - 1) {
            *label += &format!(" and {others} more");
        }
        first
    });
    let has_room = |fault: &Finding<Spot>| {
        let (shown, more) = counts.entry(fault.at.origin.file.clone()).or_default();
        let has_room = *shown < MOST;
        *shown += usize::from(has_room);
        more.add(usize::from(!has_room), fault.severity);
        has_room
    };
    equal.filter(has_room).collect()
}

/// The places of `spots` in the file `name`.
fn in_file(name: &FileName, spots: BTreeSet<&Spot>, files: &[File]) -> Vec<(Spot, Place)> {
    let file = files.binary_search_by(|file| file.name.cmp(name)).ok().map(|at| &files[at]);
    let text = file.and_then(|file| file.read().ok()).unwrap_or_default();
    let parsed = yaml::parse(&text);
    let mut source = Source::new(name.clone(), &text);
    read::hide(&mut source, &parsed, Quality::Doubtful);
    let written = Written::of(&parsed);
    let place = |spot: &Spot| match file {
        Some(_) if !text.is_empty() => source.place(&spot.find(&source, &written)),
        _ => (&spot.origin).into(),
    };
    spots.into_iter().map(|spot| (spot.clone(), place(spot))).collect()
}

impl Spot {
    /// The range in a text with the positions `written`.
    fn find(&self, source: &Source<'_>, written: &Written<'_>) -> Range<usize> {
        let at = source.offset(self.origin.line, self.origin.column);
        let Some((key, value)) = written.keys.get(&at).copied() else {
            return written.nodes.get(&at).map_or(at..at, |node| node.span.clone());
        };
        match &self.part {
            Part::Key => key.span.clone(),
            Part::Value => visible(key, value),
            Part::Inner(names) => {
                let inner = names.iter().try_fold((key, value), |(_, value), name| value.get(name));
                inner.unwrap_or((key, value)).0.span.clone()
            }
            Part::Within(name) => {
                let of_row = || value.items().iter().find_map(|row| row.get(name));
                match value.get(name).or_else(of_row) {
                    Some((key, value)) => visible(key, value),
                    None => item(value, name).cloned().unwrap_or_else(|| visible(key, value)),
                }
            }
            Part::Item(text) => item(value, text).unwrap_or(&key.span).clone(),
        }
    }
}

/// The range of a field's value, or of its key if the value is not a scalar.
fn visible(key: &Key, value: &Node) -> Range<usize> {
    if matches!(value.data, Data::List(_) | Data::Map(_) | Data::Null) {
        key.span.clone()
    } else {
        value.span.clone()
    }
}

/// The range of the first `text` in `node`.
fn item<'n>(node: &'n Node, text: &str) -> Option<&'n Range<usize>> {
    if node.text() == Some(text) {
        return Some(&node.span);
    }
    let values = node.entries().iter().map(|(_, value)| value);
    values.chain(node.items()).find_map(|inner| item(inner, text))
}

/// All keys and values of a text, by the byte at which they begin.
#[derive(Default)]
struct Written<'p> {
    /// Each key with its value. Of merged ones, the outermost.
    keys: HashMap<usize, (&'p Key, &'p Node)>,
    /// The outermost value.
    nodes: HashMap<usize, &'p Node>,
}

impl<'p> Written<'p> {
    fn of(parsed: &'p Parsed) -> Self {
        let mut written = Self::default();
        parsed.documents.iter().for_each(|document| written.add(document));
        written
    }

    fn add(&mut self, node: &'p Node) {
        steps::step();
        self.nodes.entry(node.span.start).or_insert(node);
        for (key, value) in node.entries() {
            self.keys.entry(key.span.start).or_insert((key, value));
        }
        node.entries()
            .iter()
            .map(|(_, value)| value)
            .chain(node.items())
            .for_each(|inner| self.add(inner));
    }
}
