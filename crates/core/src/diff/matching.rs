//! Finds the live entry for each declared one, by identity.

use std::collections::HashMap;

use crate::{
    catalogue::copies::Copies,
    desired::{DeclaredEntry, DeclaredSection, Renames},
    kind::{Identity, LiveEntry, Section},
    steps, text,
};

/// The live entry that a declared one matches.
pub(super) enum Match<'l> {
    /// None.
    None,
    /// This one, and its copies.
    One(&'l LiveEntry, Vec<&'l LiveEntry>),
    /// One that another declared entry already matches.
    AlreadyMatched,
    /// The entry exists, and so does this live entry with one of its former names.
    Both(&'l LiveEntry),
    /// No match, but this live entry has nearly the same identity.
    NearlyEqual(&'l LiveEntry),
    /// Several entries match and differ from each other. The text explains what to do and contains no
    /// credential.
    Ambiguous(String),
    /// Its identity contains a secret that is not set.
    SecretUnset,
}

/// The live entries of a section, by identity.
pub(super) struct EntryMatcher<'l> {
    section: Section,
    renames: Renames<'l>,
    live: &'l [LiveEntry],
    by_key: HashMap<String, Vec<usize>>,
    /// The entries whose name the service stores.
    by_name: HashMap<String, Vec<usize>>,
    is_matched: Vec<bool>,
    matched_count: usize,
}

impl<'l> EntryMatcher<'l> {
    pub(super) fn new(declared: &'l DeclaredSection, live: &'l [LiveEntry]) -> Self {
        let section = declared.kind;
        let mut by_key: HashMap<String, Vec<usize>> = HashMap::with_capacity(live.len());
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, entry) in live.iter().enumerate() {
            let identity = section.identify(entry.fields.raw());
            let key = identity.keys.into_iter().next().unwrap_or_default();
            by_key.entry(key).or_default().push(at);
            if let Some(name) = identity.service_name {
                by_name.entry(name).or_default().push(at);
            }
        }
        let renames =
            Renames::from_entries(section, &declared.entries, |key| by_key.contains_key(key));
        let is_matched = vec![false; live.len()];
        Self { section, renames, live, by_key, by_name, is_matched, matched_count: 0 }
    }

    /// The declared entry that renames the live entry with this identity.
    pub(super) fn find_renaming_entry(&self, identity: &Identity) -> Option<&'l DeclaredEntry> {
        self.renames.find_renaming_entry(identity.current_key())
    }

    /// How many live entries have a declared one.
    pub(super) const fn matched_count(&self) -> usize {
        self.matched_count
    }

    /// Finds the match for a declared entry with this identity. `has_unset_secret`: the identity contains
    /// a secret that is not set.
    pub(super) fn find(&mut self, identity: &Identity, has_unset_secret: bool) -> Match<'l> {
        let positions = self.find_by_name(identity).or_else(|| self.find_by_key(identity));
        let Some(positions) = positions else {
            let similar_positions =
                identity.similar_keys.iter().filter_map(|key| self.by_key.get(key)).flatten();
            return match similar_positions.copied().find(|at| !self.is_matched[*at]) {
                _ if has_unset_secret => Match::SecretUnset,
                Some(at) => Match::NearlyEqual(&self.live[at]),
                None => Match::None,
            };
        };
        if let Some(other) = self.find_live_former(identity) {
            for at in positions.into_iter().chain([other]) {
                self.is_matched[at] = true;
            }
            return Match::Both(&self.live[other]);
        }
        let entries: Vec<_> = positions.iter().map(|at| &self.live[*at]).collect();
        let Copies { kept, copies } = match Copies::find(self.section, &entries) {
            Ok(copies) => copies,
            Err(difference) => {
                return Match::Ambiguous(self.describe_ambiguity(&entries, &difference));
            }
        };
        if positions.iter().all(|at| self.is_matched[*at]) {
            return Match::AlreadyMatched;
        }
        self.matched_count += positions.len();
        for at in positions {
            self.is_matched[at] = true;
        }
        Match::One(kept, copies)
    }

    /// The positions of live entries with its name; if several, of those that also have its key.
    fn find_by_name(&self, identity: &Identity) -> Option<Vec<usize>> {
        let named_entries = self.by_name.get(identity.service_name.as_ref()?)?;
        let free = self.unmatched(named_entries);
        let same_key = identity.keys.first().and_then(|key| self.by_key.get(key));
        let same_name_and_key: Vec<_> =
            free.iter().copied().filter(|at| same_key.is_some_and(|k| k.contains(at))).collect();
        [same_name_and_key, free].into_iter().find(|found| !found.is_empty())
    }

    /// The positions of live entries with its key, or with one of its former keys; only unmatched ones if
    /// there are any.
    fn find_by_key(&self, identity: &Identity) -> Option<Vec<usize>> {
        let positions = match self.renames.former_key(identity.current_key()) {
            Some(former) => self.by_key.get(former)?,
            None if self.find_renaming_entry(identity).is_some() => return None,
            None => identity.keys.iter().find_map(|key| self.by_key.get(key))?,
        };
        let free = self.unmatched(positions);
        Some(if free.is_empty() { positions.clone() } else { free })
    }

    /// The position of a live entry with a former name of this one, which is live too.
    fn find_live_former(&self, identity: &Identity) -> Option<usize> {
        let is_renamed = self.renames.former_key(identity.current_key()).is_some();
        let mut former = self.renames.exclusive_former_keys(identity).filter(|_| !is_renamed);
        former.find_map(|key| self.by_key.get(key)?.first().copied())
    }

    /// Those of `positions` whose entries match no declared entry.
    fn unmatched(&self, positions: &[usize]) -> Vec<usize> {
        positions
            .iter()
            .copied()
            .inspect(|_| steps::step())
            .filter(|at| !self.is_matched[*at])
            .collect()
    }

    /// The live entries without a declared one.
    pub(super) fn unmatched_entries(&self) -> impl Iterator<Item = &'l LiveEntry> {
        self.live
            .iter()
            .zip(&self.is_matched)
            .filter(|(_, is_matched)| !**is_matched)
            .map(|(entry, _)| entry)
    }

    fn describe_ambiguity(&self, entries: &[&LiveEntry], difference: &str) -> String {
        let mut entries = entries.to_vec();
        entries.sort_by_key(|entry| entry.id());
        let ids: Vec<_> = entries.iter().map(|entry| entry.address_text()).collect();
        let noun = self.section.noun;
        let same = self.section.identity.last().copied().unwrap_or_default();
        format!(
            "the {noun}s {} have the same `{same}` and {difference}, so they are not duplicates: remove all but one, or give them different values",
            text::join_words(&ids)
        )
    }
}
