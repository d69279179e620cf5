//! Shows how a group or project was merged.
//!
//! The merge only keeps the deciding values. A [`Trace`] adds the value of each layer, by the slots
//! of the merge; the highest layer that sets a slot decides. A test compares traces with the
//! results of the merge.

use std::sync::Arc;

use super::{
    Merged,
    merge::{self, WITHIN},
    rules::Layers,
    text::Words,
};
use crate::{
    address::Glob,
    desired::Unlisted,
    field::Scope,
    kind::Section,
    manifest::{
        faults::Faults,
        read::document::{Body, Holds, Rule, State},
    },
    origin::{Origin, Sourced},
    value::Value,
};

/// The values of every layer for one group or project, and the result.
#[derive(Debug)]
pub struct Trace {
    /// The layers, lowest first. The last one is its own document.
    pub layers: Vec<Told>,
    /// The result.
    pub(in crate::manifest) merged: Merged,
}

/// One layer.
#[derive(Debug)]
pub struct Told {
    /// Layers of equal rank do not outrank each other.
    pub rank: usize,
    /// Its name: `Defaults acme/**`, `Profile service`, `Project`.
    pub name: String,
    /// Its place.
    pub origin: Origin,
    /// Its values.
    pub said: Vec<Said>,
    /// Whether it sets `watch`.
    pub watch: Option<Sourced<bool>>,
}

/// A value in a layer.
#[derive(Debug)]
pub struct Said {
    /// The section.
    pub section: &'static str,
    /// The key of the entry: empty if the section has only one, `None` for the section as a whole.
    pub entry: Option<String>,
    /// The current names that lead to a value, without deprecated ones.
    pub slot: Vec<String>,
    /// The written names.
    pub names: Vec<String>,
    /// The value.
    pub what: What,
    /// Its place.
    pub origin: Origin,
}

/// The value of one layer for a requested slot, and its effect.
#[derive(Debug)]
pub struct Link<'t> {
    /// The layer.
    pub layer: &'t Told,
    /// The value.
    pub what: &'t What,
    /// The written names that lead to a value.
    pub names: &'t [String],
    /// Its place.
    pub origin: &'t Origin,
    /// Its effect.
    pub fate: Fate,
}

/// The effect of a layer's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// No layer above sets the slot.
    Decides,
    /// A layer above adds to the list or removes from it.
    Changed,
    /// A layer above sets or drops it.
    Outranked,
}

/// A value in a layer.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The entry is declared.
    Declared,
    /// The entry must not exist.
    Absent,
    /// Others manage the entry, or all whose names match.
    Unmanaged,
    /// The policy for unlisted entries.
    Unlisted(Unlisted),
    /// Lower layers are ignored.
    Ignores,
    /// The value of a field, with unfilled templates.
    Value(Value),
}

impl Trace {
    /// The values of `layers` and of the document `own`, with the result.
    pub(super) fn new(layers: &Layers<'_>, own: &Body, merged: Merged) -> Self {
        let words = Words::new(&merged.path.value, layers);
        let absent = merged.life.absent().is_some();
        let rules = layers.rules.iter().filter(|_| !absent);
        let mut told: Vec<_> = rules
            .map(|(rank, rule)| Told::new(*rank, name(rule), &rule.origin, &rule.body, &words))
            .collect();
        let highest = told.last().map_or(0, |told| told.rank + 1);
        let name = merged.scope.document().to_owned();
        told.push(Told::new(highest, name, &merged.path.origin, own, &words));
        Self { layers: told, merged }
    }

    /// Whether it is a group or a project.
    pub const fn scope(&self) -> Scope {
        self.merged.scope
    }

    /// The full path as written.
    pub const fn path(&self) -> &Arc<str> {
        &self.merged.path.value
    }

    /// Whether its declaration was named.
    pub(in crate::manifest) const fn is_named(&self) -> bool {
        self.merged.is_named
    }

    /// The layer at `origin`, unless it is the document itself.
    pub fn rule_at(&self, origin: &Origin) -> Option<&Told> {
        let (_, rules) = self.layers.split_last()?;
        rules.iter().find(|told| told.is_at(origin))
    }

    /// The values of the entry `key` of a section, or of the field `names` in it, highest layer
    /// first.
    pub fn chain(&self, of: Section, key: &str, names: &[String]) -> Vec<Link<'_>> {
        let slot = merge::slot(of, names);
        let is_asked = |said: &&Said| match said.what {
            What::Value(_) => {
                !slot.is_empty() && (said.slot.starts_with(&slot) || slot.starts_with(&said.slot))
            }
            What::Declared => slot.is_empty(),
            What::Absent | What::Unmanaged | What::Ignores => true,
            What::Unlisted(_) => false,
        };
        let changes = |said: &Said| match &said.what {
            What::Value(value) => merge::change(of, &said.names[0], value).is_some(),
            _ => false,
        };
        let mut chain: Vec<Link<'_>> = Vec::new();
        let mut above: Vec<(usize, &Said)> = Vec::new();
        for layer in self.layers.iter().rev() {
            let said = layer.said.iter().filter(|said| said.concerns(of.section, key));
            for said in said.filter(is_asked) {
                let higher = above.iter().filter(|(rank, _)| *rank > layer.rank);
                let covering: Vec<_> = higher
                    .filter(|(_, other)| other.covers(said))
                    .map(|(_, other)| other)
                    .collect();
                let fate = if covering.is_empty() {
                    Fate::Decides
                } else if covering.iter().all(|other| changes(other)) {
                    Fate::Changed
                } else {
                    Fate::Outranked
                };
                let Said { what, names, origin, .. } = said;
                chain.push(Link { layer, what, names, origin, fate });
                above.push((layer.rank, said));
            }
        }
        chain
    }

    /// The place of the deciding value for `names` of an entry.
    pub(in crate::manifest) fn decides(
        &self,
        section: &str,
        entry: &str,
        names: &[String],
    ) -> Option<&Origin> {
        let said = self.layers.iter().flat_map(|told| {
            let said = told.said.iter().filter(|said| said.is_of(section, entry));
            said.filter(|said| said.names == names).map(move |said| (told.rank, &said.origin))
        });
        // Of equal ones the first counts, as in the merge.
        said.max_by(|(rank, a), (other, b)| rank.cmp(other).then(b.cmp(a))).map(|(_, at)| at)
    }
}

impl Told {
    fn new(rank: usize, name: String, origin: &Origin, body: &Body, words: &Words<'_>) -> Self {
        let ignored = body.ignores.iter();
        let mut said: Vec<_> =
            ignored.map(|section| Said::whole(section, What::Ignores, origin)).collect();
        for section in &body.sections {
            let of = section.of;
            let whole = |what, origin: &Origin| Said::whole(of.section, what, origin);
            said.push(whole(What::Declared, &section.origin));
            for part in &section.parts {
                // A failure to fill in is reported elsewhere.
                let Some((key, fields)) = merge::told(of, part, words, &mut Faults::default())
                else {
                    continue;
                };
                let what = match part.state {
                    State::Present => What::Declared,
                    State::Absent => What::Absent,
                    State::Unmanaged => What::Unmanaged,
                };
                let entry = Said { entry: Some(key), ..whole(what, &part.origin) };
                for (slot, leaf) in merge::slots(of, &fields, rank) {
                    said.push(Said {
                        entry: entry.entry.clone(),
                        slot: slot.split(WITHIN).map(str::to_owned).collect(),
                        names: leaf.names,
                        ..whole(What::Value(leaf.value), &leaf.origin)
                    });
                }
                said.push(entry);
            }
        }
        said.extend(body.unlisted.iter().map(|(section, policy)| {
            Said::whole(section, What::Unlisted(policy.value), &policy.origin)
        }));
        Self { rank, name, origin: origin.clone(), said, watch: body.watch.clone() }
    }

    fn is_at(&self, origin: &Origin) -> bool {
        self.said.iter().any(|said| said.origin == *origin)
            || self.watch.as_ref().is_some_and(|watch| watch.origin == *origin)
    }
}

impl Said {
    /// What is said of a section as a whole.
    fn whole(section: &'static str, what: What, origin: &Origin) -> Self {
        let (slot, names) = (Vec::new(), Vec::new());
        Self { section, entry: None, slot, names, what, origin: origin.clone() }
    }

    /// Whether it is a value of the entry `key` of `section`.
    pub fn is_of(&self, section: &str, key: &str) -> bool {
        self.section == section && self.entry.as_deref() == Some(key)
    }

    /// Whether it affects the entry `key` of `section`, perhaps among others.
    fn concerns(&self, section: &str, key: &str) -> bool {
        let frees = |glob: &str| Glob::over_names(glob).is_ok_and(|glob| glob.matches(key));
        self.section == section
            && match (&self.what, self.entry.as_deref()) {
                (What::Unmanaged, Some(glob)) => glob == key || frees(glob),
                (What::Ignores, _) => true,
                (_, entry) => entry == Some(key),
            }
    }

    /// Whether it replaces the value `other` of a lower layer for the same entry.
    fn covers(&self, other: &Self) -> bool {
        let is_empty = |said: &Self| said.what == What::Value(serde_json::json!({}).into());
        match (&self.what, &other.what) {
            (What::Value(_), What::Value(_)) => {
                (self.slot.starts_with(&other.slot) && !is_empty(other))
                    || (other.slot.starts_with(&self.slot) && !is_empty(self))
            }
            (What::Absent | What::Unmanaged | What::Ignores, _) => true,
            // A declared entry starts empty if it was absent or unmanaged before.
            (What::Declared, other) => matches!(other, What::Absent | What::Unmanaged),
            _ => false,
        }
    }
}

/// The name of a rule.
fn name(rule: &Rule) -> String {
    match &rule.holds {
        Holds::Where { paths, .. } => {
            let globs: Vec<_> = paths.iter().map(Glob::written).collect();
            format!("Defaults {}", globs.join(", "))
        }
        Holds::Whoever { name, .. } => format!("Profile {name}"),
    }
}
