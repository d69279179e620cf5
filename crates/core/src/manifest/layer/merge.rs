//! Merges the layers of a group or project.
//!
//! Ranks are compared for each slot: a leaf of a field, the state of an entry, the policy of a
//! section, `watch`. Layers are added from the lowest to the highest. The highest layer that sets a
//! slot decides. Different values of equal rank are an error unless a higher layer decides.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use super::{
    fill::{fill_identity, fill_templates},
    rules::{ContainerLayers, MAX_LISTED_NAMES, RankedValue, report_ambiguous},
    slots::{Slot, add_slot, set_value, split_fields},
    text::Filler,
};
use crate::{
    address::Glob,
    desired::{DeclaredFields, PROJECTS_KEY, Unlisted},
    kind::{Section, Shape},
    manifest::{
        faults::{Faults, NodePosition, placeholders, texts},
        read::document::{DocumentSection, EntryState, LayerBody, LayerEntry, Validity},
    },
    origin::{Layer, Origin, Sourced},
    text,
    value::{Json, Value},
};

/// Merges `layers` and the document of the group or project at `path`.
pub(super) fn merge_layers(
    path: &Sourced<Arc<str>>,
    layers: &ContainerLayers<'_>,
    document: &LayerBody,
    faults: &mut Faults,
) -> LayerBody {
    let filler = Filler::new(path, layers);
    let mut merge = ContainerMerge {
        filler,
        sections: BTreeMap::new(),
        unlisted: BTreeMap::new(),
        watch: BTreeMap::new(),
        faults,
    };
    for equal_rank_rules in layers.rules.chunk_by(|(a, _), (b, _)| a == b) {
        let bodies: Vec<_> =
            equal_rank_rules.iter().map(|(_, tracked_rule)| &tracked_rule.rule.body).collect();
        merge.add_layers(equal_rank_rules[0].0, &bodies);
    }
    let document_rank = layers.rules.last().map_or(0, |(rank, _)| rank + 1);
    merge.add_layers(document_rank, &[document]);
    merge.finish()
}

impl LayerBody {
    /// True if the layer has the section `name`.
    pub(super) fn has_section(&self, name: &str) -> bool {
        self.sections.iter().any(|section| section.section_kind.section == name)
    }

    /// True if every entry is managed and every field is a plain value, without templates or
    /// changes of lists.
    pub(super) fn is_plain(&self) -> bool {
        let mut entries = self.sections.iter().flat_map(|section| &section.entries);
        entries.all(|entry| !entry.has_templates && entry.state != EntryState::Unmanaged)
    }
}

/// A group or project during merging.
struct ContainerMerge<'m> {
    filler: Filler<'m>,
    sections: BTreeMap<&'static str, SectionMerge<'m>>,
    unlisted: BTreeMap<&'static str, RankedValue<Unlisted>>,
    /// The value of `watch`, if a layer sets one.
    watch: BTreeMap<(), RankedValue<bool>>,
    faults: &'m mut Faults,
}

/// A section during merging.
struct SectionMerge<'m> {
    section: Section,
    rank: usize,
    origin: Origin,
    entries: BTreeMap<String, MergedEntry<'m>>,
    /// Duplicate entries of one layer. This error is reported later.
    duplicates: Vec<LayerEntry>,
}

/// The position of a layer among all layers.
#[derive(Clone, Copy, PartialEq)]
struct LayerPosition {
    rank: usize,
    /// The number of the layer among the layers of this rank, from 0.
    number: usize,
}

/// An entry during merging.
struct MergedEntry<'m> {
    /// The highest layer that sets the entry.
    layer: LayerPosition,
    origin: Origin,
    state: EntryState,
    /// The origin of a different state in a layer of the same rank.
    conflict: Option<Origin>,
    validity: Validity,
    fields: MergedFields<'m>,
}

/// The fields of an entry.
enum MergedFields<'m> {
    /// Plain values from one layer.
    SingleLayer(Cow<'m, DeclaredFields>),
    /// Fields from several layers, or with templates or changes of lists.
    Slots(BTreeMap<String, Slot>),
}

impl<'m> ContainerMerge<'m> {
    /// Adds the layers of one rank, which must be higher than the ranks of all layers so far.
    fn add_layers(&mut self, rank: usize, bodies: &[&'m LayerBody]) {
        for section in bodies.iter().flat_map(|body| &body.ignored_sections) {
            self.sections.remove(section);
            self.unlisted.remove(section);
        }
        for (number, body) in bodies.iter().enumerate() {
            for section in &body.sections {
                self.add_section(LayerPosition { rank, number }, section);
            }
            for (name, policy) in &body.unlisted {
                RankedValue::add(self.unlisted.entry(name), rank, policy);
            }
            if let Some(watch) = &body.watch {
                RankedValue::add(self.watch.entry(()), rank, watch);
            }
        }
    }

    fn add_section(&mut self, layer: LayerPosition, section: &'m DocumentSection) {
        let (section_kind, origin, rank) = (section.section_kind, &section.origin, layer.rank);
        let section_merge =
            self.sections.entry(section_kind.section).or_insert_with(|| SectionMerge {
                section: section_kind,
                rank,
                origin: origin.clone(),
                entries: BTreeMap::new(),
                duplicates: Vec::new(),
            });
        if section_merge.rank < rank || *origin < section_merge.origin {
            (section_merge.rank, section_merge.origin) = (rank, origin.clone());
        }
        if section_kind.shape == Shape::List
            && section.entries.is_empty()
            && !section_merge.entries.is_empty()
        {
            let entries = text::count(section_merge.entries.len(), "entry");
            let args = placeholders![name = section_kind.section, entries];
            self.faults.report_key(texts::ADDS_NOTHING, origin, args);
        }
        for entry in &section.entries {
            if let Some((key, fields)) =
                fill_identity(section_kind, entry, &self.filler, self.faults)
            {
                section_merge.add_entry(layer, key, entry, fields);
            }
        }
    }

    /// Returns the result of all layers.
    fn finish(mut self) -> LayerBody {
        let mut body = LayerBody::default();
        for (name, ranked_policy) in std::mem::take(&mut self.unlisted) {
            // The policy of a rule only applies to containers that have the section. The policy of
            // a document is kept, and checked later.
            let is_declared = name == PROJECTS_KEY || self.sections.contains_key(name);
            if is_declared || ranked_policy.value.origin.layer > Layer::Profile {
                let (field, path) = (format!("unlisted.{name}"), self.filler.path());
                body.unlisted.insert(name, ranked_policy.resolve(&field, path, self.faults));
            }
        }
        let watch = std::mem::take(&mut self.watch).into_values().next();
        body.watch = watch
            .map(|ranked_value| ranked_value.resolve("watch", self.filler.path(), self.faults));
        for section_merge in std::mem::take(&mut self.sections).into_values() {
            let SectionMerge { section, origin, entries, duplicates, .. } = section_merge;
            let entries = entries.into_iter();
            let entries = entries.map(|(key, entry)| self.finish_entry(section, key, entry));
            let entries = entries.chain(duplicates).collect();
            body.sections.push(DocumentSection { section_kind: section, origin, entries });
        }
        self.filler.store_uses(&mut body);
        body
    }

    fn finish_entry(
        &mut self,
        section: Section,
        key: String,
        entry: MergedEntry<'_>,
    ) -> LayerEntry {
        let MergedEntry { origin, state, conflict, mut validity, fields, .. } = entry;
        let path = self.filler.path();
        report_ambiguous(section.section, path, &origin, conflict.as_ref(), self.faults);
        let fields = match fields {
            MergedFields::SingleLayer(fields) => fields.into_owned(),
            MergedFields::Slots(slots) => self.resolve_slots(section, slots, &mut validity),
        };
        let key = OnceLock::from(key);
        LayerEntry { origin, state, validity, has_templates: false, fields, key }
    }

    /// The fields of `slots`, with every template filled in.
    fn resolve_slots(
        &mut self,
        section: Section,
        slots: BTreeMap<String, Slot>,
        validity: &mut Validity,
    ) -> DeclaredFields {
        let mut fields: BTreeMap<String, (usize, Sourced<Value>)> = BTreeMap::new();
        for mut slot in slots.into_values() {
            self.check_slot(&slot);
            let value = slot.take_merged_value();
            let Slot { rank, written_names: names, origin, .. } = slot;
            let Some((outer_name, inner_names)) = names.split_first() else { continue };
            let (highest_rank, field) = fields.entry(outer_name.clone()).or_insert_with(|| {
                (rank, Sourced { value: Json::Null.into(), origin: origin.clone() })
            });
            set_value(&mut field.value, inner_names, value);
            if *highest_rank < rank || (*highest_rank == rank && origin < field.origin) {
                (*highest_rank, field.origin) = (rank, origin);
            }
        }
        let filled_fields = fields.into_iter().map(|(name, (_, mut field))| {
            if !fill_templates(section, &name, &mut field, &self.filler, self.faults) {
                *validity = Validity::Invalid;
            }
            (name, field)
        });
        filled_fields.collect()
    }

    /// Reports different values of equal rank. In a document, also reports items of `remove` that
    /// no lower layer adds.
    fn check_slot(&mut self, slot: &Slot) {
        let Slot { written_names: names, lower_value, origin, conflict, .. } = slot;
        let (field_name, path) = (names.join("."), self.filler.path());
        report_ambiguous(&field_name, path, origin, conflict.as_ref(), self.faults);
        let name = &names[0];
        let changes = slot.list_changes().filter(|_| origin.layer > Layer::Profile);
        let Some([_, removed_items]) = changes else { return };
        let lower_items = match lower_value.as_ref().map(Value::plain_json) {
            None => &[][..],
            Some(Some(Json::Array(list))) => list,
            Some(_) => return,
        };
        let missing_items = removed_items.iter().filter(|item| !lower_items.contains(item));
        for text in missing_items.filter_map(Json::as_str) {
            let position = NodePosition::item(origin, text);
            let fault = self.faults.report(texts::REMOVES_NOTHING, position, placeholders![name]);
            let lower_names: Vec<_> =
                lower_items.iter().filter_map(Json::as_str).take(MAX_LISTED_NAMES).collect();
            if !lower_names.is_empty() {
                let names = text::list_names(&lower_names);
                fault.set_help(format!("write it as lower layers do: {names}"));
            }
        }
    }
}

impl<'m> SectionMerge<'m> {
    /// Adds the entry `key` of a layer.
    fn add_entry(
        &mut self,
        layer: LayerPosition,
        key: String,
        layer_entry: &'m LayerEntry,
        fields: Cow<'m, DeclaredFields>,
    ) {
        let (section, rank) = (self.section, layer.rank);
        if layer_entry.state == EntryState::Unmanaged
            && let Ok(glob) = Glob::for_names(&key)
        {
            let later_entries = self.entries.range(glob.literal_prefix().to_owned()..);
            let prefix_entries =
                later_entries.take_while(|(key, _)| key.starts_with(glob.literal_prefix()));
            let lower_keys =
                prefix_entries.filter(|(key, entry)| entry.layer.rank < rank && glob.matches(key));
            for key in lower_keys.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
                self.entries.remove(&key);
            }
        }
        let new_entry = MergedEntry {
            layer,
            origin: layer_entry.origin.clone(),
            state: layer_entry.state,
            conflict: None,
            validity: layer_entry.validity,
            fields: if layer_entry.has_templates {
                MergedFields::Slots(split_fields(section, &fields, rank))
            } else {
                MergedFields::SingleLayer(fields)
            },
        };
        let Some(entry) = self.entries.get_mut(&key) else {
            self.entries.insert(key, new_entry);
            return;
        };
        if entry.layer == layer {
            self.duplicates.push(layer_entry.clone());
        } else if layer_entry.state == EntryState::Present && entry.state == EntryState::Present {
            entry.merge(section, new_entry);
        } else if entry.layer.rank < rank {
            *entry = new_entry;
        } else if layer_entry.state != entry.state {
            // Both layers have equal rank, so different states conflict.
            entry.conflict = Some(layer_entry.origin.clone());
        }
    }
}

impl MergedEntry<'_> {
    /// Removes the slots of the entry, and returns them.
    fn take_slots(&mut self, section: Section) -> BTreeMap<String, Slot> {
        match std::mem::replace(&mut self.fields, MergedFields::Slots(BTreeMap::new())) {
            MergedFields::SingleLayer(fields) => split_fields(section, &fields, self.layer.rank),
            MergedFields::Slots(slots) => slots,
        }
    }

    /// Merges the entry of another layer into this entry. The other layer must not be lower.
    fn merge(&mut self, section: Section, mut other: Self) {
        let mut all_slots = self.take_slots(section);
        for (key, slot) in other.take_slots(section) {
            add_slot(&mut all_slots, key, slot);
        }
        self.fields = MergedFields::Slots(all_slots);
        if self.layer.rank < other.layer.rank || other.origin < self.origin {
            self.origin = other.origin;
        }
        self.layer = other.layer;
        self.validity = self.validity.min(other.validity);
    }
}
