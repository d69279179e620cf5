//! Declared entries that take over a live one under a former name.
//!
//! An entry does so only while nothing is live under its own name, so a complete list of the live
//! entries decides. An entry may take over one whose name another one gets in turn.

use std::collections::{HashMap, HashSet};

use super::{Container, DesiredEntry, EntryPresence};
use crate::{
    kind::{FORMER_FIELD, Identity, LiveEntry, Section, forms},
    steps,
    value::Object,
};

/// The renames of one section.
#[derive(Debug, Default)]
pub struct Renames<'d> {
    /// The former key of each entry that takes one over, by its own key.
    former: HashMap<String, String>,
    /// The entries that take one over, by its former key.
    takers: HashMap<String, &'d DesiredEntry>,
    /// The keys of declared entries.
    declared: HashSet<String>,
}

impl<'d> Renames<'d> {
    /// The renames in `entries` of `section`, of which those with these keys are live.
    pub fn of(
        section: Section,
        entries: &'d [DesiredEntry],
        is_live: impl Fn(&str) -> bool,
    ) -> Self {
        let mut renames = Self::default();
        if !declares_renames(section, entries) {
            return renames;
        }
        let mut renamed: HashMap<String, (&DesiredEntry, Identity)> = HashMap::new();
        let mut open = Vec::new();
        for entry in entries.iter().filter(|entry| entry.state == EntryPresence::Present) {
            let identity = section.identify(&forms::plain_fields(&entry.values()));
            let key = identity.current_key().to_owned();
            renames.declared.insert(key.clone());
            if !identity.former.is_empty() {
                open.push(key.clone());
                renamed.insert(key, (entry, identity));
            }
        }
        // An entry whose live one is taken over looks for another one in turn.
        while let Some(key) = open.pop() {
            steps::step();
            let Some((entry, identity)) = renamed.get(&key) else { continue };
            let is_live_itself = is_live(&key) && !renames.takers.contains_key(&key);
            if is_live_itself || renames.former.contains_key(&key) {
                continue;
            }
            let mut live_names = identity.former.iter().filter(|former| is_live(former));
            let free_name = live_names.find(|former| !renames.takers.contains_key(*former));
            if let Some(former) = free_name.cloned() {
                renames.takers.insert(former.clone(), entry);
                renames.former.insert(key, former.clone());
                open.push(former);
            }
        }
        renames
    }

    /// The renames that `container` declares in `section`, with these `live` entries.
    pub fn with(section: Section, container: &'d Container, live: &[LiveEntry]) -> Self {
        let declared = container.section(section.section);
        let Some(declared) = declared.filter(|it| declares_renames(section, &it.entries)) else {
            return Self::default();
        };
        let identities = live.iter().map(|entry| section.identify(entry.fields.raw()));
        let keys: HashSet<_> =
            identities.map(|identity| identity.current_key().to_owned()).collect();
        Self::of(section, &declared.entries, |key| keys.contains(key))
    }

    /// The name of the live entry with these `fields`: its new one, if a declared entry takes it over.
    pub fn name_of(&self, section: Section, fields: &Object) -> String {
        if self.takers.is_empty() {
            return section.name(fields);
        }
        let taker = self.taker(section.identify(fields).current_key());
        taker.map_or_else(|| section.name(fields), |entry| entry.key.clone())
    }

    /// The former key under which the entry with this `key` is live.
    pub fn former_key(&self, key: &str) -> Option<&str> {
        self.former.get(key).map(String::as_str)
    }

    /// The entry that takes over the live one with this `key`.
    pub fn taker(&self, key: &str) -> Option<&'d DesiredEntry> {
        self.takers.get(key).copied()
    }

    /// The former keys of an entry that belong to no other one.
    pub fn own_former<'i>(&self, identity: &'i Identity) -> impl Iterator<Item = &'i String> {
        identity
            .former
            .iter()
            .filter(|former| !self.takers.contains_key(*former) && !self.declared.contains(*former))
    }
}

/// True if one of these `entries` of `section` has a former name.
fn declares_renames(section: Section, entries: &[DesiredEntry]) -> bool {
    section.spec(FORMER_FIELD).is_some()
        && entries.iter().any(|entry| entry.fields.get(FORMER_FIELD).is_some())
}
