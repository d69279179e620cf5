//! Adds user-described collections to the sandbox, if the sandbox does not have them itself.
//!
//! The sandbox simulates such a collection only from its description. So a rehearsal shows the
//! requests, but cannot prove that the description is correct. Every report contains a note about this limit.

use crate::catalogue;

/// The user-described sections that the sandbox does not have itself.
pub(super) fn rehearsed_sections() -> Vec<&'static str> {
    let user_kinds = catalogue::registry().user_kinds().iter();
    let rehearsed_kinds = user_kinds.filter(|kind| kind.homes.iter().any(described::is_unserved));
    rehearsed_kinds.map(|kind| kind.section).collect()
}

/// Prints a note for each of the [`rehearsed_sections`], for commands without a report.
#[cfg(feature = "sandbox")]
pub(super) fn print_notes(output: &super::output::Output) {
    for section in rehearsed_sections() {
        output.eprint(&format!("note: {}\n", crate::report::rehearsal_sentence(section)));
    }
}

#[cfg(feature = "sandbox")]
pub(super) use described::described_collections;

#[cfg(feature = "sandbox")]
mod described {
    use crate::{
        catalogue,
        field::{Acceptance, Equality, NamedObject, Scope, Tier},
        kind::{AddressKey, FieldSpec, KeyLocation, ReadSource, ScopedKind, Section},
        level::MAINTAINER,
        operation::{Method, Op, Write},
        sandbox::{self, Collection, FieldType, serves_path},
    };

    fn list_path(scoped_kind: &ScopedKind) -> Option<&'static str> {
        match scoped_kind.read_source {
            // The response for the parent contains the entries, so there is no list to read.
            _ if scoped_kind.parent.is_some() && scoped_kind.nested_field.is_some() => {
                scoped_kind.operations.create.map(|operation| operation.row().path)
            }
            ReadSource::List(read) | ReadSource::Optional(read) => Some(read.row().path),
            _ => None,
        }
    }

    pub(super) fn is_unserved(scoped_kind: &ScopedKind) -> bool {
        list_path(scoped_kind).is_some_and(|path| !serves_path(path))
    }

    /// The described collections, for the sandbox. Like the kinds, the collections are never freed.
    pub(in crate::cli) fn described_collections() -> Vec<Collection> {
        let kinds = catalogue::registry().user_kinds().iter();
        let sections = kinds
            .flat_map(|kind| Scope::ALL.into_iter().filter_map(|scope| kind.find_section(scope)));
        sections
            .filter(|section| is_unserved(section.scoped_kind))
            .filter_map(describe_collection)
            .collect()
    }

    fn leak_slice<T>(items: impl Iterator<Item = T>) -> &'static [T] {
        items.collect::<Vec<_>>().leak()
    }

    fn describe_collection(section: Section) -> Option<Collection> {
        let (scoped_kind, table) = (section.scoped_kind, section.table());
        let uses_method = |operation: Option<Op<Write>>, method| {
            operation.is_some_and(|operation| operation.row().method == method)
        };
        let is_created_by_put = uses_method(scoped_kind.operations.create, Method::Put);
        let parent = scoped_kind.parent.map(|parent| parent.field);
        let identity_names: Vec<_> =
            section.identity.iter().copied().filter(|name| Some(*name) != parent).collect();
        let required_names =
            identity_names.iter().filter(|_| !is_created_by_put).chain(section.required_fields);
        let segments =
            list_path(scoped_kind)?.split('/').map(|segment| match segment.strip_prefix(':') {
                Some(name) => format!("{{{name}}}"),
                None => segment.to_owned(),
            });
        let mut collection = Collection::new(segments.collect::<Vec<_>>().join("/").leak());
        collection.parent_parameter = scoped_kind.parent.map_or("", |parent| parent.argument);
        collection.parent_field = scoped_kind.nested_field.unwrap_or_default();
        if let Some(AddressKey { field, location: KeyLocation::Path(name) }) =
            scoped_kind.address_keys.first()
        {
            (collection.answer_key, collection.entry_segment) = (field, name);
        }
        collection.read_level = [scoped_kind.min_read_level().into(); 2];
        collection.write_level = [scoped_kind.min_read_level().max(MAINTAINER).into(); 2];
        collection.required_params = leak_slice(required_names.map(|name| table.sent_name(name)));
        if !section.allows_duplicates() {
            collection.unique_fields =
                leak_slice(identity_names.iter().map(|name| table.sent_name(name)));
        }
        let specs = table.specs().iter().filter(|spec| Some(spec.name) != parent);
        collection.fields = leak_slice(specs.map(sandbox_field));
        let inherited_rules = scoped_kind.inherited.iter().filter(|rule| rule.is_negated);
        collection.extra_fields =
            leak_slice(inherited_rules.map(|rule| (rule.field, rule.value.clone())));
        collection.is_created_by_put = is_created_by_put;
        collection.is_fixed_set = section.is_only_edited();
        collection.has_update = scoped_kind.operations.edit.is_some();
        collection.is_updated_by_patch = uses_method(scoped_kind.operations.edit, Method::Patch);
        collection.is_document = matches!(scoped_kind.read_source, ReadSource::Optional(_));
        if let ReadSource::List(list) | ReadSource::Optional(list) = scoped_kind.read_source {
            let list = list.row();
            collection.is_unpaged = list.unpaged;
            (collection.tier, collection.since) = (sandbox_tier(list.tier), list.since);
        }
        Some(collection)
    }

    fn sandbox_field(spec: &'static FieldSpec) -> sandbox::RowField {
        let field = spec.field;
        sandbox::RowField {
            answer_name: Some(field.live_name().unwrap_or_default()),
            default: field.default.service.as_ref().unwrap_or(&serde_json::Value::Null),
            is_create_only: field.accepted == Acceptance::OnCreate,
            is_reset_by_edit: field.with_every_edit,
            is_trimmed: field.compare == Equality::Trimmed,
            tier: sandbox_tier(field.available.tier),
            since: field.available.since,
            until: field.available.until,
            ..sandbox::RowField::new(field.sent_name(), sandbox_field_type(spec))
        }
    }

    fn sandbox_field_type(spec: &'static FieldSpec) -> FieldType {
        let schema = &spec.schema;
        if spec.has_rows() {
            let names = spec.key_fields.iter().map(crate::field::Field::sent_name);
            let single_level = spec.field.grants.single_level_as.unwrap_or_default();
            return FieldType::Rows(leak_slice(names), single_level);
        }
        if let Some(named_object) = spec.field.names {
            let is_shown_by_name = spec.field.live_name() != Some(spec.field.sent_name());
            let referenced_type = match named_object {
                NamedObject::User => sandbox::ReferencedType::User,
                NamedObject::Group => sandbox::ReferencedType::Group,
                NamedObject::Project => sandbox::ReferencedType::Project,
                NamedObject::Runner | NamedObject::Role => return FieldType::Integer,
            };
            return if is_shown_by_name {
                FieldType::Reference(referenced_type)
            } else {
                FieldType::Integer
            };
        }
        if let Some(enum_values) = schema["enum"].as_array() {
            return FieldType::Word(leak_slice(
                enum_values.iter().filter_map(|word| word.as_str()),
            ));
        }
        match schema["type"].as_str().or_else(|| schema["type"][0].as_str()) {
            Some("integer") => FieldType::Integer,
            Some("boolean") => FieldType::Flag,
            Some("array") => FieldType::Texts,
            _ if schema["format"] == "date" => FieldType::Day,
            _ => FieldType::Text,
        }
    }

    const fn sandbox_tier(tier: Tier) -> sandbox::ServiceTier {
        match tier {
            Tier::Free => sandbox::ServiceTier::Free,
            Tier::Premium => sandbox::ServiceTier::Premium,
            Tier::Ultimate => sandbox::ServiceTier::Ultimate,
        }
    }
}

/// This build has no sandbox that could serve a collection.
#[cfg(not(feature = "sandbox"))]
mod described {
    pub(super) const fn is_unserved(_: &crate::kind::ScopedKind) -> bool {
        true
    }
}
