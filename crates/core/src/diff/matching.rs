//! Finds the live entry for each declared entry, by identity.

use std::collections::HashMap;

use crate::{
    catalogue::copies::EntryWithCopies,
    desired::{DeclaredEntry, DeclaredSection, Renames},
    kind::{Identity, LiveEntry, Section},
    steps, text,
};

/// The result of searching the live entry for a declared entry.
pub(super) enum Match<'l> {
    /// No live entry matches.
    None,
    /// The first value is the live entry that matches. The second value contains its copies.
    Found(&'l LiveEntry, Vec<&'l LiveEntry>),
    /// The matching live entry already matches another declared entry.
    AlreadyMatched,
    /// Two live entries match: another live entry has the current name of the declared entry, and
    /// this live entry has a former name.
    BothNamesLive(&'l LiveEntry),
    /// No live entry matches, but this live entry has nearly the same identity.
    NearlyEqual(&'l LiveEntry),
    /// Several live entries match and differ from each other. The text explains what to do and
    /// contains no credential.
    Ambiguous(String),
    /// The identity contains a secret that is not set. Therefore the match is unknown.
    SecretUnset,
}

/// The live entries of a section, by identity.
pub(super) struct EntryMatcher<'l> {
    section: Section,
    renames: Renames<'l>,
    live_entries: &'l [LiveEntry],
    positions_by_key: HashMap<String, Vec<usize>>,
    /// The positions in `live_entries` of entries with a name that the service stores, by that name.
    positions_by_name: HashMap<String, Vec<usize>>,
    matched_flags: Vec<bool>,
    matched_count: usize,
}

impl<'l> EntryMatcher<'l> {
    pub(super) fn new(declared: &'l DeclaredSection, live: &'l [LiveEntry]) -> Self {
        let section = declared.kind;
        let mut positions_by_key: HashMap<String, Vec<usize>> = HashMap::with_capacity(live.len());
        let mut positions_by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, entry) in live.iter().enumerate() {
            let identity = section.identify(entry.fields.raw());
            let key = identity.keys.into_iter().next().unwrap_or_default();
            positions_by_key.entry(key).or_default().push(index);
            if let Some(name) = identity.service_name {
                positions_by_name.entry(name).or_default().push(index);
            }
        }
        let renames = Renames::from_entries(section, &declared.entries, |key| {
            positions_by_key.contains_key(key)
        });
        let is_matched = vec![false; live.len()];
        Self {
            section,
            renames,
            live_entries: live,
            positions_by_key,
            positions_by_name,
            matched_flags: is_matched,
            matched_count: 0,
        }
    }

    /// The declared entry that renames the live entry with this identity.
    pub(super) fn find_renaming_entry(&self, identity: &Identity) -> Option<&'l DeclaredEntry> {
        self.renames.find_renaming_entry(identity.current_key())
    }

    /// The number of live entries that match a declared entry.
    pub(super) const fn matched_count(&self) -> usize {
        self.matched_count
    }

    /// Finds the match for a declared entry with this identity. `has_unset_secret` is true if the
    /// identity contains a secret that is not set.
    pub(super) fn find(&mut self, identity: &Identity, has_unset_secret: bool) -> Match<'l> {
        let positions = self.find_by_name(identity).or_else(|| self.find_by_key(identity));
        let Some(positions) = positions else {
            let similar = identity
                .similar_keys
                .iter()
                .filter_map(|key| self.positions_by_key.get(key))
                .flatten();
            return match similar.copied().find(|index| !self.matched_flags[*index]) {
                _ if has_unset_secret => Match::SecretUnset,
                Some(index) => Match::NearlyEqual(&self.live_entries[index]),
                None => Match::None,
            };
        };
        if let Some(former_position) = self.find_live_former(identity) {
            for position in positions.into_iter().chain([former_position]) {
                self.matched_flags[position] = true;
            }
            return Match::BothNamesLive(&self.live_entries[former_position]);
        }
        let entries: Vec<_> =
            positions.iter().map(|position| &self.live_entries[*position]).collect();
        let EntryWithCopies { kept_entry, copies } =
            match EntryWithCopies::from_entries(self.section, &entries) {
                Ok(copies) => copies,
                Err(difference) => {
                    return Match::Ambiguous(self.describe_ambiguity(&entries, &difference));
                }
            };
        if positions.iter().all(|position| self.matched_flags[*position]) {
            return Match::AlreadyMatched;
        }
        self.matched_count += positions.len();
        for position in positions {
            self.matched_flags[position] = true;
        }
        Match::Found(kept_entry, copies)
    }

    /// The positions of unmatched live entries with the name in `identity`. If some of these
    /// entries also have the first key in `identity`, returns only their positions.
    fn find_by_name(&self, identity: &Identity) -> Option<Vec<usize>> {
        let named_positions = self.positions_by_name.get(identity.service_name.as_ref()?)?;
        let unmatched_positions = self.filter_unmatched(named_positions);
        let key_positions = identity.keys.first().and_then(|key| self.positions_by_key.get(key));
        let mut same_name_and_key = unmatched_positions.clone();
        same_name_and_key
            .retain(|index| key_positions.is_some_and(|positions| positions.contains(index)));
        [same_name_and_key, unmatched_positions].into_iter().find(|list| !list.is_empty())
    }

    /// The positions of live entries with the key of this identity, or with one of its former keys.
    /// Returns only unmatched entries, if there are any.
    fn find_by_key(&self, identity: &Identity) -> Option<Vec<usize>> {
        let positions = match self.renames.former_key(identity.current_key()) {
            Some(former) => self.positions_by_key.get(former)?,
            None if self.find_renaming_entry(identity).is_some() => return None,
            None => identity.keys.iter().find_map(|key| self.positions_by_key.get(key))?,
        };
        let unmatched_positions = self.filter_unmatched(positions);
        Some(if unmatched_positions.is_empty() { positions.clone() } else { unmatched_positions })
    }

    /// The position of a live entry with a former name, if an entry with the current name is live too.
    fn find_live_former(&self, identity: &Identity) -> Option<usize> {
        let is_renamed = self.renames.former_key(identity.current_key()).is_some();
        let mut former_keys = self.renames.exclusive_former_keys(identity).filter(|_| !is_renamed);
        former_keys.find_map(|key| self.positions_by_key.get(key)?.first().copied())
    }

    /// The `positions` of entries that match no declared entry.
    fn filter_unmatched(&self, positions: &[usize]) -> Vec<usize> {
        let counted = positions.iter().copied().inspect(|_| steps::count_step());
        counted.filter(|index| !self.matched_flags[*index]).collect()
    }

    /// The live entries that match no declared entry.
    pub(super) fn unmatched_entries(&self) -> impl Iterator<Item = &'l LiveEntry> {
        let entries = self.live_entries.iter().zip(&self.matched_flags);
        entries.filter(|(_, is_matched)| !**is_matched).map(|(entry, _)| entry)
    }

    fn describe_ambiguity(&self, entries: &[&LiveEntry], difference: &str) -> String {
        let mut entries = entries.to_vec();
        entries.sort_by_key(|entry| entry.id());
        let ids: Vec<_> = entries.iter().map(|entry| entry.address_text()).collect();
        let noun = self.section.noun;
        let field_name = self.section.identity.last().copied().unwrap_or_default();
        format!(
            "the {noun}s {} have the same `{field_name}` and {difference}, so they are not duplicates: remove all but one, or give them different values",
            text::join_words(&ids)
        )
    }
}
