//! How a group or project was put together, for whoever asks.
//!
//! The merge keeps only what decides. A [`Trace`] adds what each layer says, in the slots of the
//! merge, whose one rule then tells what decides: the highest layer that says something of a slot. A
//! test holds that what a trace names is what the merge has taken.

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

/// What every layer says of one group or project, and what that comes to.
#[derive(Debug)]
pub struct Trace {
    /// The layers, the lowest first. The last is its own document.
    pub layers: Vec<Told>,
    /// What they come to.
    pub(in crate::manifest) merged: Merged,
}

/// What one layer says.
#[derive(Debug)]
pub struct Told {
    /// Two of the same rank do not outrank each other.
    pub rank: usize,
    /// What it is called: `Defaults acme/**`, `Profile service`, `Project`.
    pub name: String,
    /// Where it says what it is about.
    pub origin: Origin,
    /// What it says of sections and what is in them.
    pub said: Vec<Said>,
    /// Whether it says that nothing is written.
    pub watch: Option<Sourced<bool>>,
}

/// What a layer says of one thing.
#[derive(Debug)]
pub struct Said {
    /// The section.
    pub section: &'static str,
    /// What tells the entry from others: empty if a section has one of them, nothing if it is said of
    /// the section as a whole.
    pub entry: Option<String>,
    /// The names that lead to a value, in the one spelling that both spellings have.
    pub slot: Vec<String>,
    /// These names as they are written.
    pub names: Vec<String>,
    /// What it says.
    pub what: What,
    /// Where.
    pub origin: Origin,
}

/// What one layer says of a thing that somebody asks about, and what became of it.
#[derive(Debug)]
pub struct Link<'t> {
    /// The layer.
    pub layer: &'t Told,
    /// What it says.
    pub what: &'t What,
    /// The names that lead to a value, as they are written.
    pub names: &'t [String],
    /// Where it says so.
    pub origin: &'t Origin,
    /// What became of it.
    pub fate: Fate,
}

/// What became of what a layer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing above it says otherwise.
    Decides,
    /// A layer above it adds to the list, or removes from it.
    Changed,
    /// A layer above it says something else, or drops it.
    Outranked,
}

/// What can be said of a thing.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// That it is declared.
    Declared,
    /// That it is to be gone.
    Absent,
    /// That it is somebody else's, and so are all whose names match.
    Unmanaged,
    /// What becomes of what a section does not list.
    Unlisted(Unlisted),
    /// That nothing is taken from lower layers.
    Ignores,
    /// The value of a field, templates not filled in.
    Value(Value),
}

impl Trace {
    /// What `layers` and the document itself, which says `own`, say of what they came to.
    pub(super) fn new(layers: &Layers<'_>, own: &Body, merged: Merged) -> Self {
        let words = Words::new(&merged.path.value, &layers.params);
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

    /// Which of the two it is.
    pub const fn scope(&self) -> Scope {
        self.merged.scope
    }

    /// The full path as written.
    pub const fn path(&self) -> &Arc<str> {
        &self.merged.path.value
    }

    /// Whether what declares it was named.
    pub(in crate::manifest) const fn is_named(&self) -> bool {
        self.merged.is_named
    }

    /// The layer that is written at `origin`, unless it is the document itself.
    pub fn rule_at(&self, origin: &Origin) -> Option<&Told> {
        let (_, rules) = self.layers.split_last()?;
        rules.iter().find(|told| told.is_at(origin))
    }

    /// What the layers say of the entry `key` of a section, or of the field in it to which `names`
    /// lead; the highest first.
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

    /// Where that is written which decides what is at `names` of an entry.
    pub(in crate::manifest) fn decides(
        &self,
        section: &str,
        entry: &str,
        names: &[String],
    ) -> Option<&Origin> {
        let says = |told: &'_ Told| told.rank;
        let said = self.layers.iter().flat_map(|told| {
            let said = told.said.iter().filter(|said| said.is_of(section, entry));
            said.filter(|said| said.names == names).map(move |said| (says(told), &said.origin))
        });
        // Of equal ones the first counts, as in the merge.
        said.max_by(|(rank, a), (other, b)| rank.cmp(other).then(b.cmp(a))).map(|(_, at)| at)
    }
}

impl Told {
    fn new(rank: usize, name: String, origin: &Origin, body: &Body, words: &Words<'_>) -> Self {
        let ignored = body.ignores.iter().map(|section| Said {
            section,
            entry: None,
            slot: Vec::new(),
            names: Vec::new(),
            what: What::Ignores,
            origin: origin.clone(),
        });
        let mut said: Vec<_> = ignored.collect();
        for section in &body.sections {
            let of = section.of;
            let whole = |what, origin: &Origin| Said {
                section: of.section,
                entry: None,
                slot: Vec::new(),
                names: Vec::new(),
                what,
                origin: origin.clone(),
            };
            said.push(whole(What::Declared, &section.origin));
            for part in &section.parts {
                // What cannot be filled in is told elsewhere.
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
        said.extend(body.unlisted.iter().map(|(section, policy)| Said {
            section,
            entry: None,
            slot: Vec::new(),
            names: Vec::new(),
            what: What::Unlisted(policy.value),
            origin: policy.origin.clone(),
        }));
        Self { rank, name, origin: origin.clone(), said, watch: body.watch.clone() }
    }

    fn is_at(&self, origin: &Origin) -> bool {
        self.said.iter().any(|said| said.origin == *origin)
            || self.watch.as_ref().is_some_and(|watch| watch.origin == *origin)
    }
}

impl Said {
    /// Whether it is said of the entry `key` of `section`.
    pub fn is_of(&self, section: &str, key: &str) -> bool {
        self.section == section && self.entry.as_deref() == Some(key)
    }

    /// Whether it is said of the entry `key` of `section`, also with others.
    fn concerns(&self, section: &str, key: &str) -> bool {
        let frees = |glob: &str| Glob::over_names(glob).is_ok_and(|glob| glob.matches(key));
        self.section == section
            && match (&self.what, self.entry.as_deref()) {
                (What::Unmanaged, Some(glob)) => glob == key || frees(glob),
                (What::Ignores, _) => true,
                (_, entry) => entry == Some(key),
            }
    }

    /// Whether nothing counts any more of what a lower layer says as `other`, both of one entry.
    fn covers(&self, other: &Self) -> bool {
        let is_empty = |said: &Self| said.what == What::Value(serde_json::json!({}).into());
        match (&self.what, &other.what) {
            (What::Value(_), What::Value(_)) => {
                (self.slot.starts_with(&other.slot) && !is_empty(other))
                    || (other.slot.starts_with(&self.slot) && !is_empty(self))
            }
            (What::Absent | What::Unmanaged | What::Ignores, _) => true,
            // What is declared starts anew where it was not to be there.
            (What::Declared, other) => matches!(other, What::Absent | What::Unmanaged),
            _ => false,
        }
    }
}

/// What a rule is called.
fn name(rule: &Rule) -> String {
    match &rule.holds {
        Holds::Where { paths, .. } => {
            let globs: Vec<_> = paths.iter().map(Glob::written).collect();
            format!("Defaults {}", globs.join(", "))
        }
        Holds::Whoever { name, .. } => format!("Profile {name}"),
    }
}
