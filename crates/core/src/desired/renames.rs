//! Renames: declared entries that take over a live entry with a former name.
//!
//! A declared entry takes over a live entry only if no other live entry has the declared name.
//! Therefore the list of live entries must be complete. The declared name also counts as free if
//! this run renames the live entry that has the name.

use std::collections::{HashMap, HashSet};

use super::{Container, DeclaredEntry, EntryPresence};
use crate::{
    kind::{FORMER_FIELD, Identity, LiveEntry, Section, forms},
    steps,
    value::Object,
};

/// The renames of one section.
#[derive(Debug, Default)]
pub struct Renames<'d> {
    /// The key of the live entry that each declared entry takes over, by the declared key.
    former_keys: HashMap<String, String>,
    /// The declared entries that take over a live entry, by the key of the live entry.
    entry_by_former_key: HashMap<String, &'d DeclaredEntry>,
    /// The keys of declared entries.
    declared_keys: HashSet<String>,
}

impl<'d> Renames<'d> {
    /// Finds the renames of the declared `entries` of `section`. `is_live` returns true for keys of live entries.
    pub fn from_entries(
        section: Section,
        entries: &'d [DeclaredEntry],
        is_live: impl Fn(&str) -> bool,
    ) -> Self {
        let mut renames = Self::default();
        if !declares_renames(section, entries) {
            return renames;
        }
        let mut renamed_entries: HashMap<String, (&DeclaredEntry, Identity)> = HashMap::new();
        let mut pending_keys = Vec::new();
        for entry in entries.iter().filter(|entry| entry.state == EntryPresence::Present) {
            let identity = section.identify(&forms::plain_fields(&entry.values()));
            let key = identity.current_key().to_owned();
            renames.declared_keys.insert(key.clone());
            if !identity.former_keys.is_empty() {
                pending_keys.push(key.clone());
                renamed_entries.insert(key, (entry, identity));
            }
        }
        // If another entry takes over the live entry with the name of this entry, this entry may
        // take over a live entry too.
        while let Some(key) = pending_keys.pop() {
            steps::count_step();
            let Some((entry, identity)) = renamed_entries.get(&key) else { continue };
            let is_live_itself = is_live(&key) && !renames.entry_by_former_key.contains_key(&key);
            if is_live_itself || renames.former_keys.contains_key(&key) {
                continue;
            }
            let mut live_names = identity.former_keys.iter().filter(|former| is_live(former));
            let free_name =
                live_names.find(|former| !renames.entry_by_former_key.contains_key(*former));
            if let Some(former) = free_name.cloned() {
                renames.entry_by_former_key.insert(former.clone(), entry);
                renames.former_keys.insert(key, former.clone());
                pending_keys.push(former);
            }
        }
        renames
    }

    /// Finds the renames that `container` declares in `section`, among these `live` entries.
    pub fn from_container(section: Section, container: &'d Container, live: &[LiveEntry]) -> Self {
        let declared = container.section(section.section);
        let Some(declared) = declared
            .filter(|declared_section| declares_renames(section, &declared_section.entries))
        else {
            return Self::default();
        };
        let identities = live.iter().map(|entry| section.identify(entry.fields.raw()));
        let keys: HashSet<_> =
            identities.map(|identity| identity.current_key().to_owned()).collect();
        Self::from_entries(section, &declared.entries, |key| keys.contains(key))
    }

    /// The name of the live entry with these `fields` after the renames. If no declared entry takes
    /// over the live entry, this is its current name.
    pub fn name_after_rename(&self, section: Section, fields: &Object) -> String {
        if self.entry_by_former_key.is_empty() {
            return section.entry_name(fields);
        }
        let renaming_entry = self.find_renaming_entry(section.identify(fields).current_key());
        renaming_entry.map_or_else(|| section.entry_name(fields), |entry| entry.key.clone())
    }

    /// The key of the live entry that the declared entry `key` takes over.
    pub fn former_key(&self, key: &str) -> Option<&str> {
        self.former_keys.get(key).map(String::as_str)
    }

    /// The declared entry that takes over the live entry `key`.
    pub fn find_renaming_entry(&self, key: &str) -> Option<&'d DeclaredEntry> {
        self.entry_by_former_key.get(key).copied()
    }

    /// The former keys in `identity` that no declared entry has as its own key. Omits the keys of
    /// live entries that a declared entry takes over.
    pub fn exclusive_former_keys<'i>(
        &self,
        identity: &'i Identity,
    ) -> impl Iterator<Item = &'i String> {
        identity.former_keys.iter().filter(|former| {
            !self.entry_by_former_key.contains_key(*former) && !self.declared_keys.contains(*former)
        })
    }
}

/// True if one of these `entries` of `section` has a former name.
fn declares_renames(section: Section, entries: &[DeclaredEntry]) -> bool {
    section.spec(FORMER_FIELD).is_some()
        && entries.iter().any(|entry| entry.fields.get(FORMER_FIELD).is_some())
}
