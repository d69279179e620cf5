//! Passes the collections that a user describes on to the embedded service, which does not have
//! them.
//!
//! The sandbox knows nothing about them except the description. So a rehearsal shows the requests,
//! but not whether the description is right; every report of such a rehearsal states that.

use crate::{catalogue, kind::Kind};

/// The sections that the sandbox only knows from descriptions.
pub(super) fn sections() -> Vec<&'static str> {
    let added = catalogue::all().added();
    let is_told = |kind: &&&Kind| kind.homes.iter().any(by_data::is_unknown);
    added.iter().filter(is_told).map(|kind| kind.section).collect()
}

/// Reports those sections, for commands without a report.
#[cfg(feature = "sandbox")]
pub(super) fn tell(output: &super::output::Output) {
    let told = |section| output.tell(&format!("note: {}\n", crate::report::rehearsal(section)));
    sections().into_iter().for_each(told);
}

#[cfg(feature = "sandbox")]
pub(super) use by_data::collections;

#[cfg(feature = "sandbox")]
mod by_data {
    use crate::{
        catalogue,
        field::{Accepted, Compare, Named, Scope, Tier},
        kind::{AddressKey, AddressKeyIn, Home, Place, Section, Spec},
        level::MAINTAINER,
        operation::{Method, Op, Write},
        sandbox::{self, Collection, Form, serves},
    };

    fn path(home: &Home) -> Option<&'static str> {
        match home.place {
            // It has no list of its own.
            _ if home.parent.is_some() && home.within.is_some() => {
                home.operations.create.map(|op| op.row().path)
            }
            Place::List(read) | Place::Optional(read) => Some(read.row().path),
            _ => None,
        }
    }

    pub(super) fn is_unknown(home: &Home) -> bool {
        path(home).is_some_and(|path| !serves(path))
    }

    /// The descriptions for the sandbox. They live as long as the program, as the kinds do.
    pub(in crate::cli) fn collections() -> Vec<Collection> {
        let added = catalogue::all().added().iter();
        let sections =
            added.flat_map(|kind| Scope::ALL.into_iter().filter_map(|of| kind.in_scope(of)));
        sections.filter(|of| is_unknown(of.home)).filter_map(collection).collect()
    }

    fn collection(of: Section) -> Option<Collection> {
        let (home, specs) = (of.home, of.table().specs());
        let sent = |name: &&'static str| of.table().sent_name(name);
        let all = |names: &[&'static str]| &*names.iter().map(sent).collect::<Vec<_>>().leak();
        let is = |op: Option<Op<Write>>, method| op.is_some_and(|op| op.row().method == method);
        let is_put = is(home.operations.create, Method::Put);
        let above = |name: &&str| home.parent.is_some_and(|parent| parent.field == *name);
        let identity: Vec<_> = of.identity.iter().copied().filter(|name| !above(name)).collect();
        let own = identity.iter().filter(|_| !is_put);
        let required: Vec<_> = own.chain(of.required).copied().collect();
        let segments = path(home)?.split('/').map(|segment| match segment.strip_prefix(':') {
            Some(name) => format!("{{{name}}}"),
            None => segment.to_owned(),
        });
        let mut told = Collection::new(segments.collect::<Vec<_>>().join("/").leak());
        told.below = home.parent.map_or("", |parent| parent.argument);
        told.within = home.within.unwrap_or_default();
        if let Some(AddressKey { field, place: AddressKeyIn::Path(name) }) = home.handle.first() {
            (told.key, told.entry) = (field, name);
        }
        told.reads = home.seen_from().into();
        told.writes = home.seen_from().max(MAINTAINER).into();
        told.required = all(&required);
        told.unique = if of.may_come_twice() { &[] } else { all(&identity) };
        let specs = specs.iter().filter(|spec| !above(&spec.name));
        told.fields = specs.map(field).collect::<Vec<_>>().leak();
        let tells_inherited = home.inherited.iter().filter(|of| of.is_not);
        let shows = tells_inherited.map(|of| (of.field, &*of.value.to_string().leak()));
        told.shows = shows.collect::<Vec<_>>().leak();
        told.is_put = is_put;
        told.only_edited = of.only_edits();
        told.is_edited = home.operations.edit.is_some();
        told.is_patched = is(home.operations.edit, Method::Patch);
        told.is_document = matches!(home.place, Place::Optional(_));
        if let Place::List(list) | Place::Optional(list) = home.place {
            told.unpaged = list.row().unpaged;
            (told.tier, told.since) = (tier(list.row().tier), list.row().since);
        }
        Some(told)
    }

    fn field(spec: &'static Spec) -> sandbox::Field {
        let field = spec.field;
        sandbox::Field {
            shown: field.live_name().unwrap_or_default(),
            preset: field.default.service.as_ref().map_or("null", |value| value.to_string().leak()),
            only_new: field.accepted == Accepted::OnCreate,
            resets: field.with_every_edit,
            trims: field.compare == Compare::Trimmed,
            tier: tier(field.available.tier),
            since: field.available.since,
            until: field.available.until,
            ..sandbox::Field::new(field.sent_name(), form(spec))
        }
    }

    fn form(spec: &'static Spec) -> Form {
        let schema = &spec.schema;
        if spec.has_rows() {
            let names = spec.parts.iter().map(crate::field::Field::sent_name);
            let alone = spec.field.grants.single_level_as.unwrap_or_default();
            return Form::Rows(names.collect::<Vec<_>>().leak(), alone);
        }
        if let Some(named) = spec.field.names {
            let by_name = spec.field.live_name() != Some(spec.field.sent_name());
            let of = match named {
                Named::User => sandbox::Named::User,
                Named::Group => sandbox::Named::Group,
                Named::Project => sandbox::Named::Project,
                Named::Runner | Named::Role => return Form::Integer,
            };
            return if by_name { Form::Named(of) } else { Form::Integer };
        }
        if let Some(words) = schema["enum"].as_array() {
            return Form::Word(
                words.iter().filter_map(|word| word.as_str()).collect::<Vec<_>>().leak(),
            );
        }
        match schema["type"].as_str().or_else(|| schema["type"][0].as_str()) {
            Some("integer") => Form::Integer,
            Some("boolean") => Form::Flag,
            Some("array") => Form::Texts,
            _ if schema["format"] == "date" => Form::Day,
            _ => Form::Text,
        }
    }

    fn tier(tier: Tier) -> sandbox::Tier {
        sandbox::Tier::named(&tier.to_string()).unwrap_or(sandbox::Tier::Ultimate)
    }
}

/// This build has no sandbox to ask.
#[cfg(not(feature = "sandbox"))]
mod by_data {
    pub(super) const fn is_unknown(_: &crate::kind::Home) -> bool {
        true
    }
}
