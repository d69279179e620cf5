//! Checks single entries, and the entries of a list together.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{ContainerCheck, find_repeats, place_fault};
use crate::{
    address::Glob,
    desired::{self, DeclaredEntry, DeclaredFields},
    field::{Acceptance, Equality, Uniqueness},
    kind::{FORMER_FIELD, FieldSpec, Identity, KeyLocation, Section, Shape, forms},
    manifest::{
        faults::{KeyPart, LocatedFault, NodePosition, missing_field_fault, placeholders, texts},
        read::document::{EntryState, LayerEntry, Validity, identify_entry},
    },
    origin::Origin,
    text::{alternatives, plural, with_article},
    value::{Fields, texts},
};

/// An entry with its identity.
type IdentifiedEntry<'e> = (&'e DeclaredEntry, &'e Identity);

impl ContainerCheck<'_> {
    /// Checks and converts an entry. Also returns its identity. The rules of the kind only apply if
    /// the schema accepts the entry and no required field is missing.
    pub(super) fn convert_entry(
        &mut self,
        section: Section,
        entry: LayerEntry,
    ) -> (DeclaredEntry, Identity) {
        self.check_fields(section, &entry.fields);
        let is_complete = self.check_required(section, &entry);
        let values = entry.fields.values();
        let state = match entry.state {
            EntryState::Absent | EntryState::Unmanaged => {
                // Another check reports sections whose entries cannot be absent.
                if !section.cannot_remove_entries() {
                    self.report_other_fields(section, &entry, "absent");
                }
                desired::EntryPresence::Absent
            }
            EntryState::Present => {
                if is_complete && entry.validity != Validity::Invalid {
                    self.check_rules(section, &entry, &values);
                }
                desired::EntryPresence::Present
            }
        };
        let identity = match section.shape {
            Shape::List => identify_entry(section, &|name| values.get(name).cloned()),
            Shape::Container | Shape::Mapping | Shape::Switch => Identity::default(),
        };
        let LayerEntry { origin, fields, .. } = entry;
        let fields = rename_deprecated_keys(section, fields);
        (DeclaredEntry { key: identity.name.clone(), origin, state, fields }, identity)
    }

    /// Reports an entry that was written as several entries, with a `- ` before each field. Returns
    /// true after a fault.
    pub(super) fn report_split_entry(&mut self, section: Section, entries: &[LayerEntry]) -> bool {
        if section.shape != Shape::List {
            return false;
        }
        let split_pair = entries.windows(2).find(|pair| {
            let [first, second] = [0, 1].map(|index| find_only_field(section, &pair[index]));
            first != second
                && first.zip(second).is_some_and(|(first, second)| {
                    is_required(section, first) || is_required(section, second)
                })
        });
        let Some(pair) = split_pair else { return false };
        let origins = [&pair[1].origin, &pair[0].origin];
        self.faults.report_keys(texts::SPLIT_ENTRY, origins, placeholders![noun = section.noun]);
        true
    }

    /// Reports missing required fields. Returns true if no field is missing. An absent entry only
    /// needs its identity.
    fn check_required(&mut self, section: Section, entry: &LayerEntry) -> bool {
        if section.shape != Shape::List && entry.state == EntryState::Absent {
            return true;
        }
        // An invalid entry that has only fields with defaults belongs to another section. Another
        // check reports this entry.
        if entry.validity == Validity::Invalid
            && entry.fields.keys().all(|name| has_default(section, name))
        {
            return false;
        }
        let schema = &section.table().schema;
        let missing_names: Vec<_> = texts(&schema["required"])
            .filter(|name| entry.state == EntryState::Present || section.identity.contains(name))
            .filter(|name| !entry.fields.contains_key(name))
            .collect();
        for name in &missing_names {
            let fault = missing_field_fault(name, schema, NodePosition::key(&entry.origin));
            let fault = self.faults.push(fault);
            if section.shape == Shape::List {
                fault.set_label("in this entry");
            }
        }
        missing_names.is_empty()
    }

    /// Reports the faults that the kind finds. If the schema refuses a value, reports only faults
    /// of single values, because other faults may be consequences.
    fn check_rules(&mut self, section: Section, entry: &LayerEntry, values: &Fields) {
        self.check_dot_name(section, entry, values);
        section.check(values, true, &mut |fault| {
            let single_value_codes = ["expression", "missing", "time-zone", "unknown-field"];
            if entry.validity != Validity::Valid && !single_value_codes.contains(&fault.code) {
                return;
            }
            let fault_position = match entry.fields.origin(fault.field) {
                // Mark the key: the value should not be in the manifest.
                Some(field_origin) if fault.code == "literal-secret" => {
                    NodePosition::key(&field_origin)
                }
                Some(field_origin) => match fault.inner_key {
                    Some(name) => {
                        NodePosition { origin: field_origin, key_part: KeyPart::NestedValue(name) }
                    }
                    None => NodePosition::value(&field_origin),
                },
                None => NodePosition::key(&entry.origin),
            };
            let other_origin = fault.other_field.and_then(|name| entry.fields.origin(name));
            // A related place on the same line adds no information.
            let distant_origin = other_origin.filter(|other| {
                (&other.file, other.line)
                    != (&fault_position.origin.file, fault_position.origin.line)
            });
            let related = distant_origin.map(|other| NodePosition::value(&other));
            self.faults.push(LocatedFault { related, ..place_fault(fault, fault_position) });
        });
    }

    /// Reports an entry whose name is `.` or `..`. URL paths cannot contain such a segment, so the
    /// entry could be created but not changed or removed.
    fn check_dot_name(&mut self, section: Section, entry: &LayerEntry, values: &Fields) {
        let address_keys = section.scoped_kind.address_keys.iter();
        for address_key in address_keys.filter(|key| matches!(key.location, KeyLocation::Path(_))) {
            let specs = section.specs().iter();
            let mut specs = specs.filter(|spec| spec.field.live_name() == Some(address_key.field));
            let value = specs.find_map(|spec| Some((spec.name, values.get(spec.name)?.text()?)));
            if let Some((name, text @ ("." | ".."))) = value {
                let position = value_position(&entry.fields, name, &entry.origin);
                self.faults.report(texts::DOTS, position, placeholders![text]);
            }
        }
    }

    /// Checks an unmanaged entry. Returns the glob for names; `None` after a fault.
    pub(super) fn unmanaged_glob(&mut self, section: Section, entry: &LayerEntry) -> Option<Glob> {
        self.report_other_fields(section, entry, "unmanaged");
        if !self.check_required(section, entry) {
            return None;
        }
        let identity =
            identify_entry(section, &|name| entry.fields.get(name).map(|field| field.value));
        let glob = Glob::for_names(&identity.name);
        if let Err(why) = &glob {
            self.faults.report_key(texts::IDENTITY_GLOB, &entry.origin, placeholders![why]);
        }
        glob.ok()
    }

    /// Reports fields that do not belong to the identity: an entry with this `state` must not have
    /// such fields.
    fn report_other_fields(&mut self, section: Section, entry: &LayerEntry, state: &str) {
        for (name, field) in entry.fields.iter() {
            let spec = section.spec(name);
            // Fields that are never sent, such as former URLs of a hook, also belong to the
            // identity.
            if spec.is_some_and(|spec| {
                section.identity.contains(&name) || spec.field.accepted == Acceptance::Never
            }) {
                continue;
            }
            // Keys below `extra:` are arbitrary text, which is not quoted.
            let name = if spec.is_some() { name } else { "extra" };
            let args = placeholders![name, state, noun = section.noun];
            self.faults.report_key(texts::NOT_IDENTITY, &field.origin, args);
        }
    }

    /// Reports pairs of entries with equal values in a field that must be unique.
    fn check_unique_values(&mut self, section: Section, entries: &[DeclaredEntry]) {
        for spec in section.specs().iter().filter(|spec| spec.field.among == Uniqueness::Unique) {
            let values = entries.iter().filter_map(|entry| {
                let field = entry.fields.get(spec.name)?;
                Some((field.value.plain_json()?.to_string(), field.origin))
            });
            for (first_origin, other_origin) in find_repeats(values) {
                let args = placeholders![nouns = plural(section.noun), name = spec.name];
                self.faults.report_values(texts::SAME_VALUE, [&other_origin, &first_origin], args);
            }
        }
    }

    /// Reports pairs of entries that exclude each other, such as two issue trackers.
    fn check_exclusive(&mut self, section: Section, entries: &[DeclaredEntry]) {
        let present_entries =
            entries.iter().filter(|entry| entry.state == desired::EntryPresence::Present);
        let entries_by_group = present_entries.filter_map(|entry| {
            section
                .exclusive_set(&entry.key)
                .map(|exclusive_group| (exclusive_group, (exclusive_group, entry)))
        });
        for ((what, first_entry), (_, entry)) in find_repeats(entries_by_group) {
            if first_entry.key != entry.key {
                let args = placeholders![noun = self.scope.noun(), what];
                let positions =
                    [entry, first_entry].map(|entry| field_position(entry, section.identity[0]));
                self.faults.report_pair(texts::ONLY_ONE, positions, args);
            }
        }
    }

    /// Warns about pairs of entries whose URLs differ only in a `/` at the end.
    fn check_nearly_equal(&mut self, section: Section, entries: &[IdentifiedEntry<'_>]) {
        if section.identity.last().is_none_or(|name| section.field(name).compare != Equality::Url) {
            return;
        }
        let mut seen_urls = HashSet::new();
        let urls = entries.iter().filter_map(|(entry, identity)| {
            let url = identity.keys.first().filter(|_| !entry.key.is_empty())?;
            Some((url.trim_end_matches('/'), (entry, seen_urls.insert(url))))
        });
        for ((first_entry, _), (entry, is_new_url)) in find_repeats(urls) {
            if is_new_url {
                let args = placeholders![nouns = plural(section.noun)];
                let origins = [&entry.origin, &first_entry.origin];
                self.faults.report_keys(texts::NEARLY_THE_SAME, origins, args);
            }
        }
    }

    /// Reports former identities that another entry has now.
    fn check_former_identities(&mut self, section: Section, entries: &[IdentifiedEntry<'_>]) {
        self.check_renames(section, entries);
        if entries.iter().all(|(_, id)| id.keys.len() < 2 && id.former_keys.is_empty()) {
            return;
        }
        let current_entries: HashMap<_, _> = entries
            .iter()
            .filter(|(entry, identity)| {
                entry.state == desired::EntryPresence::Present
                    && identity.keys.len() == 1
                    && identity.former_keys.is_empty()
            })
            .map(|(entry, identity)| (&identity.keys[0], entry))
            .collect();
        for (entry, identity) in entries {
            let mut former_keys = identity.keys.iter().skip(1).chain(&identity.former_keys);
            let Some(other_entry) = former_keys.find_map(|key| current_entries.get(key)) else {
                continue;
            };
            let position = field_position(entry, "previously");
            let positions = [position, NodePosition::key(&other_entry.origin)];
            self.faults.report_pair(
                texts::FORMER_ENTRY,
                positions,
                placeholders![noun = section.noun],
            );
        }
    }

    /// Reports former names that two entries claim, and circles of former names.
    fn check_renames(&mut self, section: Section, entries: &[IdentifiedEntry<'_>]) {
        let args = placeholders![noun = section.noun];
        let mut first_entries: HashMap<&str, &DeclaredEntry> = HashMap::new();
        let mut renamed_entries: BTreeMap<&str, (&DeclaredEntry, &[String])> = BTreeMap::new();
        for (entry, identity) in entries.iter().filter(|(_, id)| !id.former_keys.is_empty()) {
            renamed_entries.insert(identity.current_key(), (entry, &identity.former_keys));
            for name in &identity.former_keys {
                let first_entry = *first_entries.entry(name).or_insert(entry);
                if !std::ptr::eq(first_entry, *entry) {
                    let positions =
                        [entry, first_entry].map(|entry| field_position(entry, FORMER_FIELD));
                    self.faults.report_pair(texts::FORMER_ENTRY_OF_TWO, positions, args);
                }
            }
        }
        let former_names = |key| {
            let names = renamed_entries.get(key).map_or(&[][..], |(_, names)| names);
            names.iter().map(String::as_str).collect()
        };
        let keys = renamed_entries.keys().copied();
        if let Some((key, _)) = desired::find_circles(keys, former_names).next() {
            let position = field_position(renamed_entries[key].0, FORMER_FIELD);
            self.faults.report(texts::FORMER_ENTRY_CIRCLE, position, args);
        }
    }

    /// Reports pairs of entries that conflict, for example because of equal identities or unique
    /// values.
    pub(super) fn check_duplicates(
        &mut self,
        section: Section,
        entries: &[DeclaredEntry],
        identities: &[Identity],
    ) {
        if entries.len() < 2 {
            return;
        }
        self.check_unique_values(section, entries);
        self.check_exclusive(section, entries);
        let mut identified_entries: Vec<_> = entries.iter().zip(identities).collect();
        self.check_former_identities(section, &identified_entries);
        self.check_nearly_equal(section, &identified_entries);
        // The first entry with each key. The first map has the keys in manifests, the second map
        // the keys on the service.
        let mut entries_by_key: [HashMap<&str, &DeclaredEntry>; 2] = Default::default();
        identified_entries.retain(|(entry, _)| !entry.key.is_empty());
        for (entry, identity) in identified_entries {
            let service_key = identity.keys.first().map_or("", String::as_str);
            // True if manifests give the entry another name than the service.
            let has_manifest_name = service_key != entry.key;
            let keys = [(&*entry.key, false), (service_key, has_manifest_name)];
            // Record both keys, even if the first one is a duplicate.
            let mut duplicate = None;
            for (first_entries, (key, is_service_key)) in entries_by_key.iter_mut().zip(keys) {
                let first_entry = *first_entries.entry(key).or_insert(entry);
                if !std::ptr::eq(first_entry, entry) {
                    duplicate.get_or_insert((first_entry, is_service_key));
                }
            }
            if let Some((first_entry, is_service_duplicate)) = duplicate {
                let skipped_count =
                    if is_service_duplicate { section.identity.len().saturating_sub(1) } else { 0 };
                let names = &section.identity[skipped_count..];
                let is_name_duplicate = has_manifest_name && !is_service_duplicate;
                self.report_duplicate(section, names, [first_entry, entry], is_name_duplicate);
            }
        }
    }

    /// Reports two entries with equal identity fields `names`. If `is_name_duplicate` is true, only
    /// their names in manifests are equal, and their URLs may differ.
    fn report_duplicate(
        &mut self,
        section: Section,
        names: &[&str],
        pair: [&DeclaredEntry; 2],
        is_name_duplicate: bool,
    ) {
        let [first_entry, entry] = pair;
        let default_note = names.iter().find_map(|name| {
            let value = section.spec(name)?.schema.get("default")?.as_str()?;
            let declared_field = entry.fields.get(name);
            let has_default_value =
                declared_field.is_none_or(|field| field.value.text() == Some(value));
            has_default_value.then(|| format!(": without `{name}` it is `{value}`"))
        });
        let entry_url = |entry: &DeclaredEntry| entry.fields.get("url").map(|url| url.value);
        // The identity as written, if the key of the entry consists of these texts.
        let identity_texts = |entry: &DeclaredEntry| {
            let fields = names.iter().filter_map(|name| entry.fields.get(name));
            let texts = fields.filter_map(|field| field.value.text().map(str::to_owned));
            let texts: Vec<_> = texts.collect();
            (texts.join("/").to_lowercase() == entry.key.to_lowercase()).then_some(texts)
        };
        let message_texts = match names {
            _ if entry.state != first_entry.state => texts::TWICE_AND_ABSENT,
            _ if identity_texts(entry) != identity_texts(first_entry) => texts::TWICE_IN_OTHER_CASE,
            [_, ..] if is_name_duplicate && entry_url(entry) != entry_url(first_entry) => {
                texts::TWICE_BY_NAME
            }
            [name] if section.field(name).compare == Equality::PublicKey => texts::KEY_TWICE,
            _ => texts::TWICE,
        };
        let name = names.first().copied().unwrap_or_default();
        let mut positions = [field_position(entry, name), field_position(first_entry, name)];
        if positions[0] == positions[1] {
            // A rule sets the field in both entries, so both positions are the same: point at the
            // entries instead.
            positions = [entry, first_entry].map(|entry| NodePosition::key(&entry.origin));
        }
        let [position, related_position] = positions;
        let args = placeholders![
            what = with_article(section.noun),
            name,
            names = alternatives(names).replace(" or ", " and "),
            standard = default_note.unwrap_or_default()
        ];
        self.faults.report_pair(message_texts, [position, related_position], args);
    }
}

/// The name of the only field of an entry, not counting fields with a default; `None` if there is
/// not exactly one.
fn find_only_field(section: Section, entry: &LayerEntry) -> Option<&str> {
    let mut names = entry.fields.keys().filter(|name| !has_default(section, name));
    names.next().filter(|_| names.next().is_none())
}

/// True if every entry of `section` must have the field `name`.
fn is_required(section: Section, name: &str) -> bool {
    let mut required_names = texts(&section.table().schema["required"]);
    section.identity.contains(&name) || required_names.any(|other| other == name)
}

/// True if the field `name` has a default.
fn has_default(section: Section, name: &str) -> bool {
    section.spec(name).is_some_and(FieldSpec::has_default)
}

/// The position of the field `name`; if the entry lacks the field, the position of the entry.
fn value_position(fields: &DeclaredFields, name: &str, entry_origin: &Origin) -> NodePosition {
    let field = fields.origin(name);
    field.map_or_else(|| NodePosition::key(entry_origin), |field| NodePosition::value(&field))
}

/// The position of the field `name` of `entry`; if the entry lacks the field, the position of the
/// entry.
fn field_position(entry: &DeclaredEntry, name: &str) -> NodePosition {
    value_position(&entry.fields, name, &entry.origin)
}

/// Replaces deprecated names of nested keys. Another check reports these names.
fn rename_deprecated_keys(section: Section, fields: DeclaredFields) -> DeclaredFields {
    let mapping_spec = |name: &str| section.spec(name).filter(|spec| spec.is_mapping());
    if !fields.keys().any(|name| mapping_spec(name).is_some()) {
        return fields;
    }
    let renamed_fields = fields.iter().map(|(name, mut field)| {
        if let Some(spec) = mapping_spec(name) {
            forms::replace_deprecated_keys(spec, &mut field.value);
        }
        (name.to_owned(), field)
    });
    renamed_fields.collect()
}
