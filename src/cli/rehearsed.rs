//! Passes the collections that a user describes on to the embedded service, which does not have
//! them.
//!
//! The sandbox has no information about them except the description. So a rehearsal shows the
//! requests, but cannot prove that the description is correct; every report of it states that.

use crate::catalogue;

/// The sections that the sandbox only knows from descriptions.
pub(super) fn sections() -> Vec<&'static str> {
    let added = catalogue::registry().user_kinds().iter();
    let rehearsed = added.filter(|kind| kind.homes.iter().any(described::is_unknown));
    rehearsed.map(|kind| kind.section).collect()
}

/// Reports those sections, for commands without a report.
#[cfg(feature = "sandbox")]
pub(super) fn print_notes(output: &super::output::Output) {
    for section in sections() {
        output.eprint(&format!("note: {}\n", crate::report::rehearsal_sentence(section)));
    }
}

#[cfg(feature = "sandbox")]
pub(super) use described::collections;

#[cfg(feature = "sandbox")]
mod described {
    use crate::{
        catalogue,
        field::{Accepted, Compare, NamedObject, Scope, Tier},
        kind::{AddressKey, AddressKeyIn, ReadSource, ScopedKind, Section, Spec},
        level::MAINTAINER,
        operation::{Method, Op, Write},
        sandbox::{self, Collection, FieldType, serves},
    };

    fn list_path(home: &ScopedKind) -> Option<&'static str> {
        match home.place {
            // It has no list of its own.
            _ if home.parent.is_some() && home.within.is_some() => {
                home.operations.create.map(|operation| operation.row().path)
            }
            ReadSource::List(read) | ReadSource::Optional(read) => Some(read.row().path),
            _ => None,
        }
    }

    pub(super) fn is_unknown(home: &ScopedKind) -> bool {
        list_path(home).is_some_and(|path| !serves(path))
    }

    /// The descriptions for the sandbox. They live as long as the program, as the kinds do.
    pub(in crate::cli) fn collections() -> Vec<Collection> {
        let kinds = catalogue::registry().user_kinds().iter();
        let sections =
            kinds.flat_map(|kind| Scope::ALL.into_iter().filter_map(|scope| kind.in_scope(scope)));
        sections.filter(|section| is_unknown(section.scoped_kind)).filter_map(collection).collect()
    }

    fn leak<T>(items: impl Iterator<Item = T>) -> &'static [T] {
        items.collect::<Vec<_>>().leak()
    }

    fn collection(section: Section) -> Option<Collection> {
        let (home, table) = (section.scoped_kind, section.table());
        let uses = |operation: Option<Op<Write>>, method| {
            operation.is_some_and(|operation| operation.row().method == method)
        };
        let is_put = uses(home.operations.create, Method::Put);
        let parent = home.parent.map(|parent| parent.field);
        let identity: Vec<_> =
            section.identity.iter().copied().filter(|name| Some(*name) != parent).collect();
        let required = identity.iter().filter(|_| !is_put).chain(section.required);
        let segments = list_path(home)?.split('/').map(|segment| match segment.strip_prefix(':') {
            Some(name) => format!("{{{name}}}"),
            None => segment.to_owned(),
        });
        let mut collection = Collection::new(segments.collect::<Vec<_>>().join("/").leak());
        collection.parent_parameter = home.parent.map_or("", |parent| parent.argument);
        collection.parent_field = home.within.unwrap_or_default();
        if let Some(AddressKey { field, location: AddressKeyIn::Path(name) }) = home.handle.first()
        {
            (collection.answer_key, collection.entry_segment) = (field, name);
        }
        collection.read_level = home.seen_from().into();
        collection.write_level = home.seen_from().max(MAINTAINER).into();
        collection.required_params = leak(required.map(|name| table.sent_name(name)));
        if !section.allows_duplicates() {
            collection.unique_fields = leak(identity.iter().map(|name| table.sent_name(name)));
        }
        let specs = table.specs().iter().filter(|spec| Some(spec.name) != parent);
        collection.fields = leak(specs.map(sandbox_field));
        let inherited = home.inherited.iter().filter(|rule| rule.is_not);
        collection.extra_fields =
            leak(inherited.map(|rule| (rule.field, &*rule.value.to_string().leak())));
        collection.is_created_by_put = is_put;
        collection.is_fixed_set = section.only_edits();
        collection.has_update = home.operations.edit.is_some();
        collection.is_updated_by_patch = uses(home.operations.edit, Method::Patch);
        collection.is_document = matches!(home.place, ReadSource::Optional(_));
        if let ReadSource::List(list) | ReadSource::Optional(list) = home.place {
            let list = list.row();
            collection.is_unpaged = list.unpaged;
            (collection.tier, collection.since) = (sandbox_tier(list.tier), list.since);
        }
        Some(collection)
    }

    fn sandbox_field(spec: &'static Spec) -> sandbox::RowField {
        let field = spec.field;
        sandbox::RowField {
            answer_name: field.live_name().unwrap_or_default(),
            preset: field.default.service.as_ref().map_or("null", |value| value.to_string().leak()),
            is_create_only: field.accepted == Accepted::OnCreate,
            is_reset_by_edit: field.with_every_edit,
            is_trimmed: field.compare == Compare::Trimmed,
            tier: sandbox_tier(field.available.tier),
            since: field.available.since,
            until: field.available.until,
            ..sandbox::RowField::new(field.sent_name(), sandbox_form(spec))
        }
    }

    fn sandbox_form(spec: &'static Spec) -> FieldType {
        let schema = &spec.schema;
        if spec.has_rows() {
            let names = spec.parts.iter().map(crate::field::Field::sent_name);
            let single_level = spec.field.grants.single_level_as.unwrap_or_default();
            return FieldType::Rows(leak(names), single_level);
        }
        if let Some(named) = spec.field.names {
            let is_shown_by_name = spec.field.live_name() != Some(spec.field.sent_name());
            let referenced_row = match named {
                NamedObject::User => sandbox::ReferencedType::User,
                NamedObject::Group => sandbox::ReferencedType::Group,
                NamedObject::Project => sandbox::ReferencedType::Project,
                NamedObject::Runner | NamedObject::Role => return FieldType::Integer,
            };
            return if is_shown_by_name {
                FieldType::Named(referenced_row)
            } else {
                FieldType::Integer
            };
        }
        if let Some(words) = schema["enum"].as_array() {
            return FieldType::Word(leak(words.iter().filter_map(|word| word.as_str())));
        }
        match schema["type"].as_str().or_else(|| schema["type"][0].as_str()) {
            Some("integer") => FieldType::Integer,
            Some("boolean") => FieldType::Flag,
            Some("array") => FieldType::Texts,
            _ if schema["format"] == "date" => FieldType::Day,
            _ => FieldType::Text,
        }
    }

    const fn sandbox_tier(tier: Tier) -> sandbox::AttributeTier {
        match tier {
            Tier::Free => sandbox::AttributeTier::Free,
            Tier::Premium => sandbox::AttributeTier::Premium,
            Tier::Ultimate => sandbox::AttributeTier::Ultimate,
        }
    }
}

/// This build has no sandbox to ask.
#[cfg(not(feature = "sandbox"))]
mod described {
    pub(super) const fn is_unknown(_: &crate::kind::ScopedKind) -> bool {
        true
    }
}
