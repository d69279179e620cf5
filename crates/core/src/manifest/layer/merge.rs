//! Merges several layers.
//!
//! Ranks are compared for each slot: a leaf of a field, the state of an entry, the policy of a
//! section, `watch`. Layers are added from the lowest to the highest, and the highest one that sets
//! a slot decides. Different values of equal rank are an error unless a higher layer decides.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use serde_json::json;

use super::{
    rules::{Claim, Layers, MAX_LISTED, report_ambiguous},
    slots::{Slot, add_slot, apply_change, list_change, set_value, split_fields},
    text::{Filler, has_template},
};
use crate::{
    address::Glob,
    desired::{Declared, PROJECTS_KEY, Unlisted},
    kind::{Section, Shape, forms::CONDITION_KEYS, is_list},
    manifest::{
        faults::{Faults, NodePosition, Texts, texts, words},
        read::{
            document::{DocumentSection, EntryState, LayerBody, SectionPart, Validity, identity},
            layers::BUILT_IN,
        },
        schema::find_refusal,
    },
    origin::{Layer, Origin, Sourced},
    secret::{Reference, has_reference},
    text,
    value::{Json, Value},
};

/// The merged content of `layers` and the document.
pub(super) fn merge_layers(
    path: &Sourced<Arc<str>>,
    layers: &Layers<'_>,
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
    for equal_rules in layers.rules.chunk_by(|(a, _), (b, _)| a == b) {
        let bodies: Vec<_> = equal_rules.iter().map(|(_, tracked)| &tracked.rule.body).collect();
        merge.add_layers(equal_rules[0].0, &bodies);
    }
    let highest = layers.rules.last().map_or(0, |(rank, _)| rank + 1);
    merge.add_layers(highest, &[document]);
    merge.finish()
}

impl LayerBody {
    /// True if it sets anything of the section `name`.
    pub(super) fn has_section(&self, name: &str) -> bool {
        self.sections.iter().any(|section| section.kind.section == name)
    }

    /// True if it contains no templates and no changes of lists.
    pub(super) fn has_no_forms(&self) -> bool {
        let mut parts = self.sections.iter().flat_map(|section| &section.parts);
        parts.all(|part| !part.has_templates_or_changes && part.state != EntryState::Unmanaged)
    }
}

/// A group or project during merging.
struct ContainerMerge<'m> {
    filler: Filler<'m>,
    sections: BTreeMap<&'static str, SectionMerge<'m>>,
    unlisted: BTreeMap<&'static str, Claim<Unlisted>>,
    /// One or none.
    watch: BTreeMap<(), Claim<bool>>,
    faults: &'m mut Faults,
}

/// A section during merging.
struct SectionMerge<'m> {
    section: Section,
    rank: usize,
    origin: Origin,
    entries: BTreeMap<String, MergedEntry<'m>>,
    /// Duplicate entries of a document. They are an error that is reported later.
    duplicates: Vec<SectionPart>,
}

/// The position of a layer among all layers.
#[derive(Clone, Copy, PartialEq)]
struct LayerPosition {
    rank: usize,
    /// Its number within that rank.
    number: usize,
}

/// An entry during merging.
struct MergedEntry<'m> {
    /// The highest layer that sets it.
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
    /// From one layer, and without templates.
    SingleLayer(Cow<'m, Declared>),
    /// From several layers, or with templates.
    Slots(BTreeMap<String, Slot>),
}

impl<'m> ContainerMerge<'m> {
    /// Adds layers of equal rank. Earlier ones were lower.
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
                Claim::add(self.unlisted.entry(name), rank, policy);
            }
            if let Some(watch) = &body.watch {
                Claim::add(self.watch.entry(()), rank, watch);
            }
        }
    }

    fn add_section(&mut self, layer: LayerPosition, section: &'m DocumentSection) {
        let (kind, origin, rank) = (section.kind, &section.origin, layer.rank);
        let merged = self.sections.entry(kind.section).or_insert_with(|| SectionMerge {
            section: kind,
            rank,
            origin: origin.clone(),
            entries: BTreeMap::new(),
            duplicates: Vec::new(),
        });
        if merged.rank < rank || *origin < merged.origin {
            (merged.rank, merged.origin) = (rank, origin.clone());
        }
        if kind.shape == Shape::List && section.parts.is_empty() && !merged.entries.is_empty() {
            let entries = text::count(merged.entries.len(), "entry");
            let words = words![name = kind.section, entries];
            self.faults.report_key(texts::ADDS_NOTHING, origin, words);
        }
        for part in &section.parts {
            if let Some((key, fields)) = fill_identity(kind, part, &self.filler, self.faults) {
                merged.add_entry(layer, key, part, fields);
            }
        }
    }

    /// The result of all layers.
    fn finish(mut self) -> LayerBody {
        let mut body = LayerBody::default();
        for (name, claim) in std::mem::take(&mut self.unlisted) {
            // A rule may set it for containers that have the section; in a document, it is checked
            // later.
            let is_declared = name == PROJECTS_KEY || self.sections.contains_key(name);
            if is_declared || claim.value.origin.layer > Layer::Profile {
                let policy_name = format!("unlisted.{name}");
                body.unlisted
                    .insert(name, claim.resolve(&policy_name, self.filler.path(), self.faults));
            }
        }
        let watch = std::mem::take(&mut self.watch).into_values().next();
        body.watch = watch.map(|claim| claim.resolve("watch", self.filler.path(), self.faults));
        for merged in std::mem::take(&mut self.sections).into_values() {
            let SectionMerge { section, origin, entries, duplicates, .. } = merged;
            let mut parts: Vec<_> = entries
                .into_iter()
                .map(|(key, entry)| self.finish_entry(section, key, entry))
                .collect();
            parts.extend(duplicates);
            body.sections.push(DocumentSection { kind: section, origin, parts });
        }
        self.filler.record_uses(&mut body);
        body
    }

    fn finish_entry(
        &mut self,
        section: Section,
        key: String,
        entry: MergedEntry<'_>,
    ) -> SectionPart {
        let MergedEntry { origin, state, conflict, mut validity, fields, .. } = entry;
        let path = self.filler.path();
        report_ambiguous(section.section, path, &origin, conflict.as_ref(), self.faults);
        let fields = match fields {
            MergedFields::SingleLayer(fields) => fields.into_owned(),
            MergedFields::Slots(slots) => self.resolve_slots(section, slots, &mut validity),
        };
        let key = OnceLock::from(key);
        SectionPart { origin, state, validity, has_templates_or_changes: false, fields, key }
    }

    /// The fields of `slots`, with every template filled in.
    fn resolve_slots(
        &mut self,
        section: Section,
        slots: BTreeMap<String, Slot>,
        validity: &mut Validity,
    ) -> Declared {
        let mut fields: BTreeMap<String, (usize, Sourced<Value>)> = BTreeMap::new();
        for slot in slots.into_values() {
            let Slot { rank, names, value, lower_value, origin, conflict } = slot;
            let (field_name, path) = (names.join("."), self.filler.path());
            report_ambiguous(&field_name, path, &origin, conflict.as_ref(), self.faults);
            if origin.layer > Layer::Profile {
                self.check_removed(section, &names[0], &value, lower_value.as_ref(), &origin);
            }
            let value = apply_change(section, &names[0], value, lower_value);
            let Some((first, inner_names)) = names.split_first() else { continue };
            let (highest, field) = fields.entry(first.clone()).or_insert_with(|| {
                (rank, Sourced { value: Json::Null.into(), origin: origin.clone() })
            });
            set_value(&mut field.value, inner_names, value);
            if *highest < rank || (*highest == rank && origin < field.origin) {
                (*highest, field.origin) = (rank, origin);
            }
        }
        let filled = fields.into_iter().map(|(name, (_, mut field))| {
            if !fill_templates(section, &name, &mut field, &self.filler, self.faults) {
                *validity = Validity::Unchecked;
            }
            (name, field)
        });
        filled.collect()
    }

    /// Warns about `remove` items that no lower layer adds.
    fn check_removed(
        &mut self,
        section: Section,
        name: &str,
        value: &Value,
        lower_value: Option<&Value>,
        origin: &Origin,
    ) {
        let Some([_, removed]) = list_change(section, name, value) else { return };
        let lower_items = match lower_value.map(Value::plain) {
            None => &[][..],
            Some(Some(Json::Array(list))) => list,
            Some(_) => return,
        };
        for text in
            removed.iter().filter(|item| !lower_items.contains(item)).filter_map(Json::as_str)
        {
            let fault = self.faults.report(
                texts::REMOVES_NOTHING,
                NodePosition::item(origin, text),
                words![name],
            );
            let lower: Vec<_> =
                lower_items.iter().filter_map(Json::as_str).take(MAX_LISTED).collect();
            if !lower.is_empty() {
                fault.help(format!("write it as lower layers do: {}", text::list_names(&lower)));
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
        part: &'m SectionPart,
        fields: Cow<'m, Declared>,
    ) {
        let (section, rank) = (self.section, layer.rank);
        if part.state == EntryState::Unmanaged
            && let Ok(glob) = Glob::for_names(&key)
        {
            let following = self.entries.range(glob.literal_prefix().to_owned()..);
            let same_prefix =
                following.take_while(|(key, _)| key.starts_with(glob.literal_prefix()));
            let lower_keys =
                same_prefix.filter(|(key, entry)| entry.layer.rank < rank && glob.matches(key));
            for key in lower_keys.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
                self.entries.remove(&key);
            }
        }
        let Some(entry) = self.entries.get_mut(&key) else {
            self.entries.insert(key, MergedEntry::new(section, layer, part, fields));
            return;
        };
        if entry.layer == layer {
            self.duplicates.push(part.clone());
        } else if part.state == EntryState::Present && entry.state == EntryState::Present {
            entry.add_fields(section, layer, part, &fields);
        } else if entry.layer.rank < rank {
            *entry = MergedEntry::new(section, layer, part, fields);
        } else if part.state != entry.state {
            // The states conflict, whichever of the two is kept.
            entry.conflict = Some(part.origin.clone());
        }
    }
}

impl<'m> MergedEntry<'m> {
    fn new(
        section: Section,
        layer: LayerPosition,
        part: &SectionPart,
        fields: Cow<'m, Declared>,
    ) -> Self {
        Self {
            layer,
            origin: part.origin.clone(),
            state: part.state,
            conflict: None,
            validity: part.validity,
            fields: if part.has_templates_or_changes {
                MergedFields::Slots(split_fields(section, &fields, layer.rank))
            } else {
                MergedFields::SingleLayer(fields)
            },
        }
    }

    /// Adds fields.
    fn add_fields(
        &mut self,
        section: Section,
        layer: LayerPosition,
        part: &SectionPart,
        fields: &Declared,
    ) {
        let lower = std::mem::replace(&mut self.fields, MergedFields::Slots(BTreeMap::new()));
        let mut all_slots = match lower {
            MergedFields::SingleLayer(fields) => split_fields(section, &fields, self.layer.rank),
            MergedFields::Slots(slots) => slots,
        };
        for (key, slot) in split_fields(section, fields, layer.rank) {
            add_slot(section, &mut all_slots, key, slot);
        }
        self.fields = MergedFields::Slots(all_slots);
        if self.layer.rank < layer.rank || part.origin < self.origin {
            self.origin = part.origin.clone();
        }
        self.layer = layer;
        self.validity = self.validity.min(part.validity);
    }
}

/// The identity of `part`, and its fields with the templates of the identity filled in; `None` if
/// that is a fault.
pub(super) fn fill_identity<'p>(
    section: Section,
    part: &'p SectionPart,
    filler: &Filler<'_>,
    faults: &mut Faults,
) -> Option<(String, Cow<'p, Declared>)> {
    if !part.has_templates_or_changes || section.identity.is_empty() {
        return Some((part.key(section).to_owned(), Cow::Borrowed(&part.fields)));
    }
    let mut fields: BTreeMap<&str, _> = part.fields.iter().collect();
    let mut is_valid = true;
    for name in section.identity {
        if let Some(field) = fields.get_mut(name) {
            is_valid &= fill_templates(section, name, field, filler, faults);
        }
    }
    let key = identity(section, &|name| fields.get(name).map(|field| field.value.clone())).name;
    is_valid.then(|| (key, Cow::Owned(fields.into_iter().collect())))
}

/// The value in the form that a schema checks: each secret inside is replaced by a reference.
/// `None` for a secret or a file, which need no check.
fn schema_view(value: &Value) -> Option<Cow<'_, Json>> {
    match value {
        Value::Plain(json) => Some(Cow::Borrowed(json)),
        Value::Secret(Reference::Data(data)) => {
            data.to_json(&mut |_| Ok::<_, ()>(json!({"env": "NAME"}))).ok().map(Cow::Owned)
        }
        Value::Secret(_) | Value::File(_) => None,
    }
}

/// The value itself, or the lists in its `at_least` and `none_of` if it is a condition.
fn list_values(value: &Json) -> impl Iterator<Item = &Json> {
    let (plain, conditions) = match value {
        Json::Object(object) if object.keys().all(|key| CONDITION_KEYS.contains(&&**key)) => {
            (None, Some(object.values()))
        }
        json => (Some(json), None),
    };
    plain.into_iter().chain(conditions.into_iter().flatten())
}

/// The warning about braces in `template` that are not filled in: a name in double braces, or
/// braces after `$` or `%`, as other tools write them.
fn find_foreign_braces(template: &str) -> Option<Texts> {
    let has_name = template.match_indices("{{").any(|(at, braces)| {
        let inner = template[at + braces.len()..].split("}}").next().unwrap_or_default();
        let is_expression = inner.strip_prefix(' ').is_some_and(|name| text::is_name(name.trim()));
        (is_expression || BUILT_IN.contains(&inner)) && !template[..at].ends_with(['$', '%', '{'])
    });
    let mut signs = template.match_indices("${").chain(template.match_indices("%{"));
    let has_sign = signs.any(|(at, sign)| !template[at + sign.len()..].starts_with('{'));
    let after_sign = has_sign.then_some(texts::DOLLAR_BEFORE_TEMPLATE);
    if has_name { Some(texts::KEPT_BRACES) } else { after_sign }
}

/// Fills in every template in the field `name`. Returns whether the result is valid.
fn fill_templates(
    section: Section,
    name: &str,
    field: &mut Sourced<Value>,
    filler: &Filler<'_>,
    faults: &mut Faults,
) -> bool {
    let (json, spec) = (field.value.plain(), section.spec(name));
    let has_named_template = field.value.sources().iter().any(Reference::is_template);
    let has_open_template = json.is_some_and(|json| match spec {
        Some(spec) if !spec.has_secret_rows() => has_template(&spec.schema, json),
        _ => has_reference(json),
    });
    if !has_open_template && !has_named_template {
        return true;
    }
    let template = json.map(ToString::to_string).unwrap_or_default();
    let fault = match filler.fill_field(section, name, field) {
        Err(unfilled) if filler.is_reported_as_missing(&unfilled) => return false,
        Err(unfilled) => faults.push(*unfilled.fault),
        Ok(()) if has_named_template || spec.is_none() => return true,
        Ok(()) => {
            let visible = schema_view(&field.value);
            let is_list = spec.is_some_and(|spec| is_list(&spec.schema));
            if is_list
                && visible.as_ref().is_some_and(|json| list_values(json).any(Json::is_object))
            {
                // The fault is reported where the list is read.
                return false;
            }
            let why = visible.and_then(|json| {
                list_values(&json).find_map(|json| find_refusal(section, name, json))
            });
            let Some(why) = why else {
                if let Some(warning) = find_foreign_braces(&template) {
                    faults.report_key(warning, &field.origin, &[]);
                }
                return true;
            };
            let texts = if field.value.plain().is_some_and(has_reference) {
                texts::FILLED_REFERENCE
            } else {
                texts::FILLED_VALUE
            };
            faults.report_key(texts, &field.origin, words![name, why])
        }
    };
    fault.label(format!("for `{}`", filler.path()));
    false
}
