//! Shows which layer each value of a group or project comes from.
//!
//! The merge only keeps the deciding values. A [`Trace`] also keeps the values of the other layers.
//! The trace uses the same slots as the merge: the highest layer that sets a slot decides. A test
//! compares traces with the results of the merge.

use std::sync::Arc;

use super::{
    fill,
    rules::{ContainerLayers, TrackedRule},
    slots::{self, KEY_SEPARATOR},
    text::Filler,
};
use crate::{
    address::Glob,
    field::Scope,
    kind::Section,
    manifest::{
        faults::Faults,
        read::document::{DeclaredContainer, EntryState, LayerBody, Rule},
    },
    origin::Origin,
    value::Value,
};

/// The values of every layer for one group or project, and the result.
#[derive(Debug)]
pub struct Trace {
    /// The layers, lowest first. The last one is the document itself.
    pub layers: Vec<TracedLayer>,
    /// The merged declaration.
    pub(in crate::manifest) declaration: Box<DeclaredContainer>,
}

/// A layer of one group or project, with its values.
#[derive(Debug)]
pub struct TracedLayer {
    /// The rank of the layer. Layers may have equal ranks.
    rank: usize,
    /// The name of the layer: `Defaults acme/**`, `Profile service`, `Project`.
    pub name: String,
    /// The place of the layer in the manifests.
    pub origin: Origin,
    /// The values of the entries in the layer.
    values: Vec<TracedValue>,
    /// The places of the layer's sections, of its policies for unlisted entries, and of `watch`.
    other_origins: Vec<Origin>,
}

/// A value in a layer.
#[derive(Debug)]
pub struct TracedValue {
    section: &'static str,
    /// The key of the entry. Empty if the section is not a list, or if the value concerns the whole
    /// section.
    entry_key: String,
    /// The path of field names to the value, with the current name of each deprecated field.
    current_names: Vec<String>,
    /// The path of field names to the value, as written.
    pub written_names: Vec<String>,
    /// The value.
    pub value: LayerValue,
    /// True if the value changes the list of lower layers.
    changes_list: bool,
    /// The place of the value in the manifests.
    pub origin: Origin,
}

/// A value in the chain of values for one slot, with its layer and its effect.
#[derive(Debug)]
pub struct ChainLink<'t> {
    /// The layer.
    pub layer: &'t TracedLayer,
    /// The value.
    pub traced_value: &'t TracedValue,
    /// The effect of the value.
    pub effect: LayerEffect,
}

/// The effect of a layer's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerEffect {
    /// The value decides, because no higher layer sets the slot.
    Decides,
    /// A higher layer adds items to the list, or removes items from the list.
    Extended,
    /// A higher layer sets or drops the slot.
    Outranked,
}

/// A value in a layer.
#[derive(Clone, Debug, PartialEq)]
pub enum LayerValue {
    /// The entry is declared.
    Declared,
    /// The entry must not exist.
    Absent,
    /// The entry is unmanaged. If its name is a glob, each entry with a matching name is unmanaged.
    Unmanaged,
    /// The layer ignores lower layers (`ignore_layers`).
    Ignores,
    /// The value of a field, with unfilled templates.
    Value(Value),
}

impl Trace {
    /// Traces `layers` and `document`. `declaration` is the result of merging them.
    pub(super) fn new(
        layers: &ContainerLayers<'_>,
        document: &LayerBody,
        declaration: Box<DeclaredContainer>,
    ) -> Self {
        let filler = Filler::new(&declaration.path, layers);
        let is_absent = declaration.lifecycle.absent_origin().is_some();
        let rules = layers.rules.iter().filter(|_| !is_absent);
        let mut traced_layers: Vec<_> = rules
            .map(|(rank, TrackedRule { rule, .. })| {
                TracedLayer::new(*rank, rule_name(rule), &rule.origin, &rule.body, &filler)
            })
            .collect();
        let document_rank = traced_layers.last().map_or(0, |layer| layer.rank + 1);
        let (name, origin) =
            (declaration.scope.document_kind().to_owned(), &declaration.path.origin);
        traced_layers.push(TracedLayer::new(document_rank, name, origin, document, &filler));
        Self { layers: traced_layers, declaration }
    }

    /// The scope of the traced container: group or project.
    pub const fn scope(&self) -> Scope {
        self.declaration.scope
    }

    /// The full path as written.
    pub const fn path(&self) -> &Arc<str> {
        &self.declaration.path.value
    }

    /// The rule that has a value at `origin`; `None` if only the document has a value at this
    /// place.
    pub fn rule_at(&self, origin: &Origin) -> Option<&TracedLayer> {
        let (_, rules) = self.layers.split_last()?;
        rules.iter().find(|layer| {
            let mut origins = layer.values.iter().map(|value| &value.origin);
            origins.any(|other| other == origin) || layer.other_origins.contains(origin)
        })
    }

    /// The chain of values for the entry `key` of a section, or for its field at the path `names`,
    /// highest layer first.
    pub fn value_chain(&self, section: Section, key: &str, names: &[String]) -> Vec<ChainLink<'_>> {
        let slot_names = slots::slot_path(section, names);
        let mut chain: Vec<ChainLink<'_>> = Vec::new();
        for layer in self.layers.iter().rev() {
            let values = layer.values.iter().filter(|traced_value| match traced_value.value {
                _ if !traced_value.applies_to(section.section, key) => false,
                LayerValue::Value(_) => {
                    !slot_names.is_empty()
                        && (traced_value.current_names.starts_with(&slot_names)
                            || slot_names.starts_with(&traced_value.current_names))
                }
                LayerValue::Declared => slot_names.is_empty(),
                LayerValue::Absent | LayerValue::Unmanaged | LayerValue::Ignores => true,
            });
            for traced_value in values {
                let higher_links = chain.iter().filter(|link| link.layer.rank > layer.rank);
                let mut replacers = higher_links
                    .filter(|higher_link| higher_link.traced_value.replaces(traced_value))
                    .peekable();
                let effect = if replacers.peek().is_none() {
                    LayerEffect::Decides
                } else if replacers.all(|link| link.traced_value.changes_list) {
                    LayerEffect::Extended
                } else {
                    LayerEffect::Outranked
                };
                chain.push(ChainLink { layer, traced_value, effect });
            }
        }
        chain
    }

    /// The origin of the value that decides the field of an entry at the path `names`.
    pub(in crate::manifest) fn deciding_origin(
        &self,
        section: Section,
        key: &str,
        names: &[String],
    ) -> Option<&Origin> {
        let chain = self.value_chain(section, key, names).into_iter();
        let deciding_links = chain.filter(|link| link.effect == LayerEffect::Decides);
        let values = deciding_links.map(|link| link.traced_value);
        // Of equal ranks, the value with the first origin decides, as in the merge.
        values.filter(|value| value.written_names == names).map(|value| &value.origin).min()
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
        let ignored_names = body.ignored_sections.iter();
        let mut values: Vec<_> = ignored_names
            .map(|section| TracedValue::new(section, "", LayerValue::Ignores, origin))
            .collect();
        for section in &body.sections {
            let (section_kind, section_name) = (section.section_kind, section.section_kind.section);
            for entry in &section.entries {
                // Templates that cannot be filled in are reported elsewhere.
                let Some((key, fields)) =
                    fill::fill_identity(section_kind, entry, filler, &mut Faults::default())
                else {
                    continue;
                };
                let entry_value = match entry.state {
                    EntryState::Present => LayerValue::Declared,
                    EntryState::Absent => LayerValue::Absent,
                    EntryState::Unmanaged => LayerValue::Unmanaged,
                };
                let leaves = slots::split_fields(section_kind, &fields, rank).into_iter();
                values.extend(leaves.map(|(slot_key, slot)| TracedValue {
                    current_names: slot_key.split(KEY_SEPARATOR).map(str::to_owned).collect(),
                    changes_list: slot.list_changes().is_some(),
                    written_names: slot.written_names,
                    ..TracedValue::new(
                        section_name,
                        &key,
                        LayerValue::Value(slot.value),
                        &slot.origin,
                    )
                }));
                values.push(TracedValue::new(section_name, &key, entry_value, &entry.origin));
            }
        }
        let sections = body.sections.iter().map(|section| &section.origin);
        let policies = body.unlisted.values().map(|policy| &policy.origin);
        let watch = body.watch.iter().map(|watch| &watch.origin);
        let other_origins = sections.chain(policies).chain(watch).cloned().collect();
        Self { rank, name, origin: origin.clone(), values, other_origins }
    }
}

impl TracedValue {
    /// A value for a whole section or a whole entry.
    fn new(section: &'static str, entry_key: &str, value: LayerValue, origin: &Origin) -> Self {
        let (entry_key, origin) = (entry_key.to_owned(), origin.clone());
        Self {
            section,
            entry_key,
            current_names: Vec::new(),
            written_names: Vec::new(),
            value,
            changes_list: false,
            origin,
        }
    }

    /// True if the value affects the entry `key` of `section`. The value may also affect other
    /// entries.
    fn applies_to(&self, section: &str, key: &str) -> bool {
        self.section == section
            && match &self.value {
                _ if self.entry_key == key => true,
                LayerValue::Unmanaged => {
                    Glob::for_names(&self.entry_key).is_ok_and(|glob| glob.matches(key))
                }
                value => *value == LayerValue::Ignores,
            }
    }

    /// True if the value is an empty mapping, which sets no slot.
    fn is_empty(&self) -> bool {
        self.value == LayerValue::Value(serde_json::json!({}).into())
    }

    /// True if this value replaces the value `other` of a lower layer for the same entry.
    fn replaces(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (LayerValue::Value(_), LayerValue::Value(_)) => {
                (self.current_names.starts_with(&other.current_names) && !other.is_empty())
                    || (other.current_names.starts_with(&self.current_names) && !self.is_empty())
            }
            (LayerValue::Absent | LayerValue::Unmanaged | LayerValue::Ignores, _) => true,
            // A declared entry starts empty if it is absent or unmanaged in a lower layer.
            (LayerValue::Declared, other) => {
                matches!(other, LayerValue::Absent | LayerValue::Unmanaged)
            }
            _ => false,
        }
    }
}

/// The name of a rule.
fn rule_name(rule: &Rule) -> String {
    let globs: Vec<_> = rule.path_globs.iter().map(Glob::pattern).collect();
    match &rule.profile {
        Some(name) => format!("Profile {name}"),
        None => format!("Defaults {}", globs.join(", ")),
    }
}
