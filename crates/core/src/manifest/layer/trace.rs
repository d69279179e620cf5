//! Shows how a group or project was merged.
//!
//! The merge only keeps the deciding values. A [`Trace`] adds the value of each layer, by the slots
//! of the merge; the highest layer that sets a slot decides. A test compares traces with the
//! results of the merge.

use std::{cmp::Reverse, sync::Arc};

use super::{
    merge,
    rules::{Layers, TrackedRule},
    slots::{self, KEY_SEPARATOR, Slot},
    text::Filler,
};
use crate::{
    address::Glob,
    desired::Unlisted,
    field::Scope,
    kind::Section,
    manifest::{
        faults::Faults,
        read::document::{DeclaredContainer, EntryState, LayerBody, Rule},
    },
    origin::{Origin, Sourced},
    value::Value,
};

/// The values of every layer for one group or project, and the result.
#[derive(Debug)]
pub struct Trace {
    /// The layers, lowest first. The last one is its own document.
    pub layers: Vec<TracedLayer>,
    /// The result.
    pub(in crate::manifest) merged: Box<DeclaredContainer>,
}

/// One layer.
#[derive(Debug)]
pub struct TracedLayer {
    /// Layers of equal rank do not outrank each other.
    pub rank: usize,
    /// Its name: `Defaults acme/**`, `Profile service`, `Project`.
    pub name: String,
    /// Its place.
    pub origin: Origin,
    /// Its values.
    pub settings: Vec<TracedValue>,
    /// Whether it sets `watch`.
    pub watch: Option<Sourced<bool>>,
}

/// A value in a layer.
#[derive(Debug)]
pub struct TracedValue {
    /// The section.
    pub section: &'static str,
    /// The key of the entry: empty if the section has only one, `None` for the section as a whole.
    pub entry: Option<String>,
    /// The current names that lead to a value, without deprecated ones.
    pub slot: Vec<String>,
    /// The written names.
    pub names: Vec<String>,
    /// The value.
    pub content: LayerValue,
    /// Its place.
    pub origin: Origin,
}

/// The value of one layer for a requested slot, and its effect.
#[derive(Debug)]
pub struct TracedSlot<'t> {
    /// The layer.
    pub layer: &'t TracedLayer,
    /// The value.
    pub setting: &'t TracedValue,
    /// Its effect.
    pub effect: LayerEffect,
}

/// The effect of a layer's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerEffect {
    /// No layer above sets the slot.
    Decides,
    /// A layer above adds to the list or removes from it.
    Extended,
    /// A layer above sets or drops it.
    Outranked,
}

/// A value in a layer.
#[derive(Clone, Debug, PartialEq)]
pub enum LayerValue {
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
    /// The values of `layers` and of the document, with the result.
    pub(super) fn new(
        layers: &Layers<'_>,
        document: &LayerBody,
        merged: Box<DeclaredContainer>,
    ) -> Self {
        let filler = Filler::new(&merged.path, layers);
        let absent = merged.life.is_absent().is_some();
        let rules = layers.rules.iter().filter(|_| !absent);
        let mut traced_layers: Vec<_> = rules
            .map(|(rank, TrackedRule { rule, .. })| {
                TracedLayer::new(*rank, rule_name(rule), &rule.origin, &rule.body, &filler)
            })
            .collect();
        let highest = traced_layers.last().map_or(0, |layer| layer.rank + 1);
        let name = merged.scope.document().to_owned();
        traced_layers.push(TracedLayer::new(highest, name, &merged.path.origin, document, &filler));
        Self { layers: traced_layers, merged }
    }

    /// Whether it is a group or a project.
    pub const fn scope(&self) -> Scope {
        self.merged.scope
    }

    /// The full path as written.
    pub const fn path(&self) -> &Arc<str> {
        &self.merged.path.value
    }

    /// True if its declaration was named.
    pub(in crate::manifest) const fn is_named(&self) -> bool {
        self.merged.is_named
    }

    /// The layer at `origin`, unless it is the document itself.
    pub fn rule_at(&self, origin: &Origin) -> Option<&TracedLayer> {
        let (_, rules) = self.layers.split_last()?;
        rules.iter().find(|layer| layer.contains_origin(origin))
    }

    /// The values of the entry `key` of a section, or of the field `names` in it, highest layer
    /// first.
    pub fn value_chain(
        &self,
        section: Section,
        key: &str,
        names: &[String],
    ) -> Vec<TracedSlot<'_>> {
        let slot = slots::slot_path(section, names);
        let mut chain: Vec<TracedSlot<'_>> = Vec::new();
        for layer in self.layers.iter().rev() {
            let settings = layer.settings.iter().filter(|setting| match setting.content {
                _ if !setting.applies_to(section.section, key) => false,
                LayerValue::Value(_) => {
                    !slot.is_empty()
                        && (setting.slot.starts_with(&slot) || slot.starts_with(&setting.slot))
                }
                LayerValue::Declared => slot.is_empty(),
                LayerValue::Absent | LayerValue::Unmanaged | LayerValue::Ignores => true,
                LayerValue::Unlisted(_) => false,
            });
            for setting in settings {
                let higher = chain.iter().filter(|link| link.layer.rank > layer.rank);
                let mut covering = higher.filter(|link| link.setting.replaces(setting)).peekable();
                let effect = if covering.peek().is_none() {
                    LayerEffect::Decides
                } else if covering.all(|link| link.setting.changes_list(section)) {
                    LayerEffect::Extended
                } else {
                    LayerEffect::Outranked
                };
                chain.push(TracedSlot { layer, setting, effect });
            }
        }
        chain
    }

    /// The place of the deciding value for `names` of an entry.
    pub(in crate::manifest) fn deciding_origin(
        &self,
        section: &str,
        entry: &str,
        names: &[String],
    ) -> Option<&Origin> {
        let settings = self.layers.iter().flat_map(|layer| {
            let ranked = layer.settings.iter().map(|setting| (layer.rank, setting));
            ranked
                .filter(|(_, setting)| setting.belongs_to(section, entry) && setting.names == names)
        });
        // Of values of equal rank, the first origin counts, as in the merge.
        let highest = settings.max_by_key(|(rank, setting)| (*rank, Reverse(&setting.origin)));
        highest.map(|(_, setting)| &setting.origin)
    }
}

impl TracedLayer {
    fn new(
        rank: usize,
        name: String,
        origin: &Origin,
        body: &LayerBody,
        filler: &Filler<'_>,
    ) -> Self {
        let ignored = body.ignored_sections.iter();
        let mut settings: Vec<_> = ignored
            .map(|section| TracedValue::new(section, None, LayerValue::Ignores, origin))
            .collect();
        for section in &body.sections {
            let (kind, name, origin) = (section.kind, section.kind.section, &section.origin);
            settings.push(TracedValue::new(name, None, LayerValue::Declared, origin));
            for part in &section.parts {
                // A failure to fill in is reported elsewhere.
                let Some((key, fields)) =
                    merge::fill_identity(kind, part, filler, &mut Faults::default())
                else {
                    continue;
                };
                let content = match part.state {
                    EntryState::Present => LayerValue::Declared,
                    EntryState::Absent => LayerValue::Absent,
                    EntryState::Unmanaged => LayerValue::Unmanaged,
                };
                let leaves = slots::split_fields(kind, &fields, rank).into_iter();
                settings.extend(leaves.map(|(slot, Slot { names, value, origin, .. })| {
                    let slot = slot.split(KEY_SEPARATOR).map(str::to_owned).collect();
                    let value = LayerValue::Value(value);
                    TracedValue {
                        slot,
                        names,
                        ..TracedValue::new(name, Some(&key), value, &origin)
                    }
                }));
                settings.push(TracedValue::new(name, Some(&key), content, &part.origin));
            }
        }
        settings.extend(body.unlisted.iter().map(|(section, policy)| {
            TracedValue::new(section, None, LayerValue::Unlisted(policy.value), &policy.origin)
        }));
        Self { rank, name, origin: origin.clone(), settings, watch: body.watch.clone() }
    }

    fn contains_origin(&self, origin: &Origin) -> bool {
        self.settings.iter().any(|setting| setting.origin == *origin)
            || self.watch.as_ref().is_some_and(|watch| watch.origin == *origin)
    }
}

impl TracedValue {
    /// A value for a whole section, or for an entry as a whole.
    fn new(
        section: &'static str,
        entry: Option<&str>,
        content: LayerValue,
        origin: &Origin,
    ) -> Self {
        let (entry, origin) = (entry.map(str::to_owned), origin.clone());
        Self { section, entry, slot: Vec::new(), names: Vec::new(), content, origin }
    }

    /// True if it is a value of the entry `key` of `section`.
    pub fn belongs_to(&self, section: &str, key: &str) -> bool {
        self.section == section && self.entry.as_deref() == Some(key)
    }

    /// True if it affects the entry `key` of `section`, perhaps among others.
    fn applies_to(&self, section: &str, key: &str) -> bool {
        self.section == section
            && match (&self.content, self.entry.as_deref()) {
                (LayerValue::Unmanaged, Some(glob)) => {
                    glob == key || Glob::for_names(glob).is_ok_and(|glob| glob.matches(key))
                }
                (LayerValue::Ignores, _) => true,
                (_, entry) => entry == Some(key),
            }
    }

    /// True if it changes the list of lower layers.
    fn changes_list(&self, section: Section) -> bool {
        match &self.content {
            LayerValue::Value(value) => {
                slots::list_change(section, &self.names[0], value).is_some()
            }
            _ => false,
        }
    }

    /// True if it is an empty mapping, which sets nothing.
    fn is_empty(&self) -> bool {
        self.content == LayerValue::Value(serde_json::json!({}).into())
    }

    /// True if it replaces the value `other` of a lower layer for the same entry.
    fn replaces(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (LayerValue::Value(_), LayerValue::Value(_)) => {
                (self.slot.starts_with(&other.slot) && !other.is_empty())
                    || (other.slot.starts_with(&self.slot) && !self.is_empty())
            }
            (LayerValue::Absent | LayerValue::Unmanaged | LayerValue::Ignores, _) => true,
            // A declared entry starts empty if it was absent or unmanaged before.
            (LayerValue::Declared, other) => {
                matches!(other, LayerValue::Absent | LayerValue::Unmanaged)
            }
            _ => false,
        }
    }
}

/// The name of a rule.
fn rule_name(rule: &Rule) -> String {
    let globs: Vec<_> = rule.paths.iter().map(Glob::pattern).collect();
    match &rule.profile {
        Some(name) => format!("Profile {name}"),
        None => format!("Defaults {}", globs.join(", ")),
    }
}
