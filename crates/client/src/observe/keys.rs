//! Decides which fields undrift keeps from the object of a group or project.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    catalogue,
    desired::{Container, RosterQuery},
    field::Tier,
    kind::{ReadSource, Section},
    operation::KeyFilter,
};

/// The fields that are kept from the objects of `containers`.
pub(super) fn object_keys<'c>(containers: impl IntoIterator<Item = &'c Container>) -> KeyFilter {
    filter_for_keys(collect_keys(containers))
}

/// The fields that are kept from the rows of a roster.
pub(super) fn roster_keys(query: &RosterQuery<'_>) -> KeyFilter {
    let mut keys = collect_keys(query.declared);
    for scope in query.globs.iter().map(|(scope, _)| *scope) {
        let (container_kind, _) = catalogue::container(scope);
        keys.extend(container_kind.looked_at);
    }
    for (section, names) in &query.fields {
        add_section_keys(*section, &names.iter().map(String::as_str).collect(), &mut keys);
    }
    filter_for_keys(keys)
}

/// A filter for `keys`.
pub(crate) fn filter_for_keys(keys: BTreeSet<&str>) -> KeyFilter {
    KeyFilter::keys(keys.into_iter().map(|key| Cow::Owned(key.to_owned())))
}

fn collect_keys<'c>(containers: impl IntoIterator<Item = &'c Container>) -> BTreeSet<&'c str> {
    let mut keys = BTreeSet::new();
    let mut declared_fields: BTreeMap<_, (Section, BTreeSet<&str>)> = BTreeMap::new();
    for container in containers {
        let (container_kind, _) = catalogue::container(container.scope);
        keys.extend(container_kind.looked_at);
        for section in &container.sections {
            let section_key = (container.scope, section.kind.section);
            let (_, names) =
                declared_fields.entry(section_key).or_insert((section.kind, BTreeSet::new()));
            names.extend(section.field_names());
        }
    }
    for (section, names) in declared_fields.values() {
        add_section_keys(*section, names, &mut keys);
    }
    keys
}

/// Adds the keys that `section` needs to read the fields in `declared_names`.
pub(crate) fn add_section_keys<'c>(
    section: Section,
    declared_names: &BTreeSet<&'c str>,
    keys: &mut BTreeSet<&'c str>,
) {
    match section.scoped_kind.read_source {
        ReadSource::ListField(field) => drop(keys.insert(field)),
        ReadSource::ObjectField { field, marker_field: marker } => keys.extend([field, marker]),
        ReadSource::Object => {
            let table = section.table();
            // The presence of a field of a higher tier shows that the service has this tier.
            let always_kept_specs = table.specs().iter().filter(|spec| {
                spec.field.available.tier > Tier::Free || spec.field.with_every_edit
            });
            let needed_names = table.companion_fields(|name| declared_names.contains(name));
            let unconditional_names = always_kept_specs.map(|spec| spec.name);
            let further_names =
                needed_names.chain(unconditional_names).map(|name| -> &'c str { name });
            for name in declared_names.iter().copied().chain(further_names) {
                keys.extend(table.live_name(name));
                // Also keep the replacement of a deprecated field, for responses that lack the
                // deprecated field.
                keys.extend(table.field(name).replacement_name());
            }
        }
        ReadSource::Container | ReadSource::List(_) | ReadSource::Optional(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{field::Scope, kind::FieldSelection, value::Object};

    /// For any declaration, a kind reads the same values from the kept fields as from the whole
    /// object.
    #[test]
    fn the_kept_keys_suffice_to_read_any_field() {
        let is_in_object =
            |section: &Section| matches!(section.scoped_kind.read_source, ReadSource::Object);
        for section in catalogue::all_sections().filter(is_in_object) {
            let specs = section.specs();
            let make_object = |has_deprecated: bool, tier: Tier| -> Object {
                let shown_specs = specs.iter().filter(|spec| {
                    (has_deprecated || spec.field.replacement_name().is_none())
                        && spec.field.available.tier <= tier
                });
                let names = shown_specs.filter_map(|spec| spec.field.live_name());
                let extra_fields =
                    [("id", json!(7)), ("added_by_hand", json!(1)), ("other", json!(2))];
                let extra_fields = extra_fields.map(|(name, value)| (name.to_owned(), value));
                names.map(|name| (name.to_owned(), json!(name))).chain(extra_fields).collect()
            };
            let names = specs.iter().map(|spec| spec.name).chain(["added_by_hand"]);
            for (name, is_empty, has_deprecated, tier) in names.flat_map(|name| {
                let tiers = [Tier::Free, Tier::Premium, Tier::Ultimate];
                let cases = tiers.into_iter().flat_map(|tier| {
                    [(true, true), (true, false), (false, true), (false, false)]
                        .map(|(is_empty, deprecated)| (is_empty, deprecated, tier))
                });
                cases.map(move |(is_empty, deprecated, tier)| (name, is_empty, deprecated, tier))
            }) {
                let mut raw = make_object(has_deprecated, tier);
                if section.scoped_kind.scope == Scope::Project {
                    raw.insert("empty_repo".into(), is_empty.into());
                }
                let (container_kind, _) = catalogue::container(section.scoped_kind.scope);
                let mut keys: BTreeSet<&str> = container_kind.looked_at.iter().copied().collect();
                add_section_keys(section, &BTreeSet::from([name]), &mut keys);
                let mut kept_raw = raw.clone();
                kept_raw.retain(|key, _| keys.contains(key.as_str()));
                let wanted_fields = BTreeSet::from([name]);
                let read_entry = |raw| section.read(raw, FieldSelection::Only(&wanted_fields));
                assert!(read_entry(&raw) == read_entry(&kept_raw), "{section:?}.{name} of {raw:?}");
                assert!(!kept_raw.contains_key("other"));
            }
        }
    }
}
