//! What a key may mean that its mapping does not have.
//!
//! The candidates are the fields that are not written yet: by what they are also called, by their spelling and by
//! what an entry still needs. A key that is known elsewhere in the document is there more likely.

use std::collections::BTreeSet;

use super::{
    Located,
    suggest::{MOST_NAMES, Mistake},
};
use crate::{
    field::{Field, Secrecy},
    kind::Section,
    kinds::{
        self,
        words::{self, Meaning},
    },
    text::{alternatives, likely, listed, nearest},
    value::Json,
    yaml::{Data, Key, Node},
};

/// The most names that a hint offers for one.
const MOST_LIKELY: usize = 4;

/// The maximum number of places for one name in a help text.
const MOST_HOMES: usize = 3;

impl<'l, 'd: 'l> Mistake<'l, 'd> {
    /// Words for a key that its mapping does not have.
    pub(super) fn word_for_key(&self, name: &str) -> Option<String> {
        let (at, node) = (self.at, self.at.node);
        let section = || kinds::everywhere().find(|of| of.section == at.section);
        match name {
            "open" => {
                let open = self.open();
                let is_some = open.iter().any(|name| !words::OF_ENTRIES.contains(name));
                (is_some && open.len() <= MOST_NAMES).then(|| alternatives(&open))
            }
            "identity" => {
                let is_written = |name: &str, entries: &[(Key, Node)]| {
                    entries.iter().any(|(key, _)| key.name == name)
                };
                let identity = *section()?.identity.first()?;
                let is_missing =
                    ![node.entries(), self.inside()].iter().any(|of| is_written(identity, of));
                is_missing.then(|| identity.to_owned())
            }
            "removable" => section()?.is_removable().then(|| at.section.clone()),
            "dotted" => {
                let (section, field) = self.name.split_once('.')?;
                let is_known = at.current_names().contains(&section);
                is_known.then(|| format!("`{field}` below `{section}:`"))
            }
            "here" => Some(match at.key {
                None => "at the top of the document".to_owned(),
                Some(_) if at.is_item => "in the entry".to_owned(),
                Some(key) => format!("below `{}:`", key.name),
            }),
            "inner_fields" => {
                let fields = at.current_names();
                let inside = self.inside().iter();
                let found = inside.filter_map(|(key, _)| at.guess(&key.name, &fields));
                let found: Vec<_> = found.collect();
                (!found.is_empty()).then(|| listed(&found))
            }
            "by_place" => {
                let keys = node.entries().iter().map(|(key, _)| &*key.name);
                let (only, field) = words::by_place(section()?, keys)?;
                (only == self.name && self.near().is_none()).then(|| field.to_owned())
            }
            "likely" => {
                let likely = self.likely();
                (1..=MOST_LIKELY).contains(&likely.len()).then(|| alternatives(&likely))
            }
            "shape" => {
                let [only] = self.likely()[..] else { return None };
                self.shape_of(only)
            }
            "homes" => Some(self.homes().join(" or ")).filter(|homes| !homes.is_empty()),
            "setting" => {
                let settings = at.root["properties"]["settings"]["properties"].as_object();
                let settings = settings.filter(|_| at.key.is_none())?;
                nearest(self.name, settings.keys().map(String::as_str)).map(str::to_owned)
            }
            _ => None,
        }
    }

    /// The fields that are not written yet: a hint must not lead to one that is.
    fn open(&self) -> Vec<&'l str> {
        let written = self.at.node.entries().iter().map(|(key, _)| &*key.name);
        let written: BTreeSet<_> = written.collect();
        let mut names = self.at.current_names();
        names.retain(|name| !written.contains(name));
        names
    }

    fn near(&self) -> Option<&'l str> {
        nearest(self.name, self.open())
    }

    fn likely(&self) -> Vec<&'l str> {
        match (self.near(), self.homes().len()) {
            (Some(near), _) => vec![near],
            (None, 1 | 2) => Vec::new(),
            (None, _) => likely(self.name, &self.open()),
        }
    }

    /// Other places of the document that have the name.
    fn homes(&self) -> Vec<String> {
        let at = self.at;
        // `unlisted` and `match` are no sections, although they have fields of such names. A field of an
        // entry that is none there never means a field elsewhere.
        let is_section = at.key.is_none_or(|key| !["unlisted", "match"].contains(&&*key.name));
        if !is_section || at.is_item {
            return Vec::new();
        }
        let is_of_itself = |of: Section| of.section == at.section && of.is_in_object();
        homes(self.name, at.root, at.depth > 0 && !kinds::everywhere().any(is_of_itself))
    }

    /// The mapping that is written below the name.
    pub(super) fn inside(&self) -> &'d [(Key, Node)] {
        self.value.map_or(&[], Node::entries)
    }

    /// How the list that is written must be written for `field`, which takes none.
    fn shape_of(&self, field: &str) -> Option<String> {
        let (key, node) = self.at.node.get(self.name)?;
        let at = self.at.at(key, node, field);
        let kind = at.schema["type"].as_str()?;
        let is_other = matches!(node.data, Data::List(_)) && kind != "array";
        let is_open = Field::of(at.schema).secrecy() == Secrecy::Open;
        at.instead(&[kind]).filter(|_| is_other && is_open)
    }
}

impl Located<'_> {
    /// The only one of `fields` that `name` may be, may mean or may be misspelt for.
    pub(super) fn guess<'k>(&self, name: &str, fields: &[&'k str]) -> Option<&'k str> {
        let find = |name: &str| fields.iter().copied().find(|field| *field == name);
        match self.alias(name).map(Meaning::field) {
            _ if fields.contains(&name) => find(name),
            Some(field) => find(field?),
            None => match likely(name, fields)[..] {
                [only] => Some(only),
                _ => None,
            },
        }
    }
}

/// Other places of a document where a key is known, as the end of a sentence that starts with "it
/// belongs": no other entries for what `is_within` one.
pub(super) fn homes(name: &str, root: &Json, is_within: bool) -> Vec<String> {
    let has = |schema: &Json| schema["properties"].get(name).is_some();
    // Entries may have a field of the same name, which is meant less often.
    if has(root) {
        return vec!["at the top of the document".to_owned()];
    }
    let mut homes = Vec::new();
    for (section, schema) in root["properties"].as_object().into_iter().flatten() {
        if section != "unlisted" && has(schema) {
            homes.push(format!("below `{section}:`"));
        } else if has(&schema["items"]) && !is_within {
            homes.push(format!("in an entry of `{section}`"));
        }
    }
    // Most fields are settings, and most names that sections share mean those.
    if let Some(settings) = homes.iter().position(|home| home.contains("`settings:`")) {
        homes = vec![homes.swap_remove(settings)];
    }
    if homes.len() > MOST_HOMES {
        homes.truncate(MOST_HOMES);
        homes.push("elsewhere".to_owned());
    }
    homes
}
