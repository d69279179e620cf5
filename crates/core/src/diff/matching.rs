//! Finds the live entry for each declared one, by identity. Uses maps instead of searching.

use std::collections::HashMap;

use crate::{
    catalogue::copies::Copies,
    desired::{DeclaredSection, DesiredEntry, Renames},
    kind::{Identity, LiveEntry, Section},
    steps, text,
};

/// The live entry that a declared one matches.
pub(super) enum Match<'l> {
    /// None.
    None,
    /// This one, and its copies.
    One(&'l LiveEntry, Vec<&'l LiveEntry>),
    /// One that another declared entry matches already.
    AlreadyMatched,
    /// Both are live: the entry, and this one with a former name.
    Both(&'l LiveEntry),
    /// None, but this one is probably meant.
    NearlyEqual(&'l LiveEntry),
    /// One of several that differ, and nothing shows which one; the text names what to do, without
    /// a credential.
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
        let section = declared.section;
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
        let renames = Renames::of(section, &declared.entries, |key| by_key.contains_key(key));
        let is_matched = vec![false; live.len()];
        Self { section, renames, live, by_key, by_name, is_matched, matched_count: 0 }
    }

    /// The entry that takes over the live one with this identity, under a new name.
    pub(super) fn taker(&self, identity: &Identity) -> Option<&'l DesiredEntry> {
        self.renames.taker(identity.current_key())
    }

    /// How many live entries have a declared one.
    pub(super) const fn matched_count(&self) -> usize {
        self.matched_count
    }

    /// Finds the match for a declared entry with this identity. `has_unset_secret`: the identity contains
    /// a secret that is not set.
    pub(super) fn find(&mut self, identity: &Identity, has_unset_secret: bool) -> Match<'l> {
        let found = self.find_by_name(identity).or_else(|| self.find_by_key(identity));
        let Some(found) = found else {
            let near = identity.near_keys.iter().filter_map(|key| self.by_key.get(key)).flatten();
            return match near.copied().find(|at| !self.is_matched[*at]) {
                _ if has_unset_secret => Match::SecretUnset,
                Some(at) => Match::NearlyEqual(&self.live[at]),
                None => Match::None,
            };
        };
        if let Some(other) = self.former_beside(identity) {
            for at in found.into_iter().chain([other]) {
                self.is_matched[at] = true;
            }
            return Match::Both(&self.live[other]);
        }
        let entries: Vec<_> = found.iter().map(|at| &self.live[*at]).collect();
        let Copies { kept: stays, copies } = match Copies::find(self.section, &entries) {
            Ok(copies) => copies,
            Err(difference) => {
                return Match::Ambiguous(self.describe_ambiguity(&entries, &difference));
            }
        };
        if found.iter().all(|at| self.is_matched[*at]) {
            return Match::AlreadyMatched;
        }
        self.matched_count += found.len();
        for at in found {
            self.is_matched[at] = true;
        }
        Match::One(stays, copies)
    }

    /// The live entries with its name; if there are several, those that also have its key.
    fn find_by_name(&self, identity: &Identity) -> Option<Vec<usize>> {
        let named_entries = self.by_name.get(identity.service_name.as_ref()?)?;
        let free = self.unmatched(named_entries);
        let keyed = identity.keys.first().and_then(|key| self.by_key.get(key));
        let both: Vec<_> =
            free.iter().copied().filter(|at| keyed.is_some_and(|k| k.contains(at))).collect();
        [both, free].into_iter().find(|found| !found.is_empty())
    }

    /// The live entries with its key, or with one of its former keys. Entries without another match
    /// come first.
    fn find_by_key(&self, identity: &Identity) -> Option<Vec<usize>> {
        let found = match self.renames.former_key(identity.current_key()) {
            Some(former) => self.by_key.get(former)?,
            None if self.taker(identity).is_some() => return None,
            None => identity.keys.iter().find_map(|key| self.by_key.get(key))?,
        };
        let free = self.unmatched(found);
        Some(if free.is_empty() { found.clone() } else { free })
    }

    /// A live entry with a former name of one that is live itself.
    fn former_beside(&self, identity: &Identity) -> Option<usize> {
        let is_renamed = self.renames.former_key(identity.current_key()).is_some();
        let mut former = self.renames.own_former(identity).filter(|_| !is_renamed);
        former.find_map(|key| self.by_key.get(key)?.first().copied())
    }

    /// The entries of `found` that match no declared entry.
    fn unmatched(&self, found: &[usize]) -> Vec<usize> {
        found
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
            .filter(|(_, is_taken)| !**is_taken)
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
