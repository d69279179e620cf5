//! Faults that are known by where something is written, shown with the line of text.
//!
//! When a fault is found that spans fields or documents, the texts are long gone: they are opened
//! once more, only those that a fault points into, and read again to know what in them is secret.
//! A file that has changed meanwhile is shown as it is now, with its secrets hidden all the same.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    faults::{Faults, Finding, MOST, More, Spot, Written},
    parallel::for_each,
    read::{self, File},
};
use crate::{
    diagnostic::{Diagnostic, FileName, Place, Source},
    yaml,
};

/// What is known of the faults of each file when `files` were read: how many are shown already, and
/// how many are not.
pub(super) type Counts = BTreeMap<FileName, (usize, More)>;

/// The faults with their places, the same one once, and how many there are beyond those that are
/// shown of a file.
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

/// The first faults of each file. The same fault counts once: what is merged in from an anchor
/// stands in one place and counts in several.
fn limited(faults: Faults, counts: &mut Counts) -> Vec<Finding<Spot>> {
    let mut faults = faults.0;
    let key = |fault: &Finding<Spot>| {
        (fault.at.clone(), fault.severity, fault.code, fault.message.clone())
    };
    faults.sort_by_cached_key(key);
    faults.dedup_by(|next, fault| key(next) == key(fault));
    faults.retain(|fault| {
        let (shown, more) = counts.entry(fault.at.origin.file.clone()).or_default();
        let has_room = *shown < MOST;
        if has_room {
            *shown += 1;
        } else {
            more.add(1, fault.severity);
        }
        has_room
    });
    faults
}

/// Where `spots` are in the file `name`.
fn in_file(name: &FileName, spots: BTreeSet<&Spot>, files: &[File]) -> Vec<(Spot, Place)> {
    let file = files.binary_search_by(|file| file.name.cmp(name)).ok().map(|at| &files[at]);
    let text = file.and_then(|file| file.read().ok()).unwrap_or_default();
    let parsed = yaml::parse(&text);
    let mut source = Source::new(name.clone(), &text);
    read::hide(&mut source, &parsed);
    let written = Written::of(&parsed);
    let place = |spot: &Spot| match file {
        Some(_) if !text.is_empty() => source.place(&spot.find(&source, &written)),
        _ => (&spot.origin).into(),
    };
    spots.into_iter().map(|spot| (spot.clone(), place(spot))).collect()
}
