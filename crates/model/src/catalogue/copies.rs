//! Finds copies: live entries without differences. Two concurrent runs, or a resent create request
//! whose first response was lost, leave copies.

use std::cmp::Reverse;

use jiff::Timestamp;

use crate::{
    catalogue,
    field::{Accepted, Readback},
    kind::{LiveEntry, LiveFields, Parent, Section, Spec, is_withheld},
    text,
    value::{self, Json, Object},
};

/// The maximum time between the creation of an entry and of its copy, in seconds: a create whose
/// response was lost, and the same request resent.
const COPY_WITHIN_SECONDS: i64 = 15 * 60;

/// Fields that the service computes from the time of the request, from other fields, or from later
/// use.
pub const COMPUTED: [&str; 9] = [
    "id",
    "created_at",
    "updated_at",
    "next_run_at",
    "update_status",
    "last_error",
    "last_update_at",
    "last_update_started_at",
    "last_successful_update_at",
];

/// An entry and its copies.
pub struct Copies<'l> {
    /// The entry that stays.
    pub kept: &'l LiveEntry,
    /// The entries to remove.
    pub copies: Vec<&'l LiveEntry>,
}

impl<'l> Copies<'l> {
    /// Checks that `entries`, which have the same identity, are copies. There must be at least one.
    ///
    /// Keeps the entry with the most child entries ([`child_sections`]), among these the oldest. If
    /// the service hides a credential that is set only at creation, keeps the newest entry instead,
    /// which has the current credential.
    ///
    /// # Errors
    /// How the entries differ, as the end of a sentence.
    pub fn find(section: Section, entries: &[&'l LiveEntry]) -> Result<Self, String> {
        let mut copies = entries.to_vec();
        if let [only] = copies[..] {
            return Ok(Self { kept: only, copies: Vec::new() });
        }
        let child_names: Vec<_> = child_sections(section).map(|(part, _)| part.section).collect();
        copies.sort_by_key(|entry| (Reverse(count_child_rows(&child_names, entry)), entry.id()));
        let hidden =
            copies.first().map_or(HiddenValues::Nothing, |first| hidden_values(section, first));
        for other in copies.iter().skip(1) {
            if let Some(difference) = find_difference(hidden, &child_names, copies[0], other) {
                return Err(difference);
            }
        }
        let kept_index = if hidden == HiddenValues::OnlyAtCreation { copies.len() - 1 } else { 0 };
        Ok(Self { kept: copies.remove(kept_index), copies })
    }
}

/// The values of an entry that the service does not show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HiddenValues {
    Nothing,
    /// Only fields that can be set when the entry is created, and not later.
    OnlyAtCreation,
    More,
}

/// The sections whose entries are children of entries of `section`.
pub fn child_sections(section: Section) -> impl Iterator<Item = (Section, &'static Parent)> {
    let child_sections = catalogue::sections(section.scoped_kind.scope)
        .filter_map(|section| Some((section, section.scoped_kind.parent?)));
    child_sections.filter(move |(_, parent)| parent.section == section.section)
}

/// The number of child entries of `entry` in the given sections; 0 if they were not read.
fn count_child_rows(child_names: &[&str], entry: &LiveEntry) -> usize {
    let Some(whole) = &entry.whole_object else { return 0 };
    let rows = child_names.iter().filter_map(|part| whole.raw().get(*part)?.as_array());
    rows.map(Vec::len).sum()
}

/// True if `first` has all child entries that `other` has in the section `name`.
fn includes_children(name: &str, first: &Object, other: &Object) -> bool {
    match (first.get(name), other.get(name)) {
        (Some(Json::Array(all)), Some(Json::Array(some))) => {
            some.iter().all(|row| all.contains(row))
        }
        (first, other) => first == other,
    }
}

/// How `other` differs from `first`, as the end of a sentence; `None` if it is a copy.
fn find_difference(
    hidden: HiddenValues,
    parts: &[&str],
    first: &LiveEntry,
    other: &LiveEntry,
) -> Option<String> {
    let (Some(first_object), Some(other_object)) = (&first.whole_object, &other.whole_object)
    else {
        return Some("differ".to_owned());
    };
    let (first_fields, other_fields) = (first_object.raw(), other_object.raw());
    let mut names = first_fields
        .keys()
        .chain(other_fields.keys())
        .filter(|name| !COMPUTED.contains(&name.as_str()));
    if let Some(name) = names.find(|name| {
        let is_part =
            parts.contains(&name.as_str()) && includes_children(name, first_fields, other_fields);
        !is_part && first_fields.get(*name) != other_fields.get(*name)
    }) {
        return Some(format!("differ in `{}`", text::escape(name)));
    }
    match (hidden, creation_time(first_fields), creation_time(other_fields)) {
        (HiddenValues::Nothing, ..) => None,
        (_, Some(first_time), Some(other_time)) => {
            let is_close_in_time =
                (first_time.as_second() - other_time.as_second()).abs() <= COPY_WITHIN_SECONDS;
            (!is_close_in_time).then(|| "were created more than 15 minutes apart".to_owned())
        }
        (HiddenValues::OnlyAtCreation, ..) => None,
        (HiddenValues::More, ..) => Some("do not show when they were created".to_owned()),
    }
}

/// What the service does not show of an entry: write-only fields, credentials in URLs, and child
/// entries.
fn hidden_values(section: Section, entry: &LiveEntry) -> HiddenValues {
    let Some(whole) = entry.whole_object.as_ref().map(LiveFields::raw) else {
        return HiddenValues::More;
    };
    let specs = section.specs();
    if child_sections(section).next().is_some()
        || whole
            .iter()
            .any(|(name, value)| is_masked(value) && section.table().by_live_name(name).is_none())
    {
        return HiddenValues::More;
    }
    let hidden = specs.iter().filter(|spec| is_hidden(spec, whole));
    hidden.fold(HiddenValues::Nothing, |all, spec| match (all, spec.field.accepted) {
        (HiddenValues::Nothing | HiddenValues::OnlyAtCreation, Accepted::OnCreate) => {
            HiddenValues::OnlyAtCreation
        }
        _ => HiddenValues::More,
    })
}

fn is_hidden(spec: &Spec, whole: &Object) -> bool {
    let value = spec.field.live_name().and_then(|name| whole.get(name));
    match spec.field.read {
        Readback::Never => true,
        Readback::IfPresent => value.is_none_or(is_masked),
        Readback::Same | Readback::Nested | Readback::As(_) => value.is_some_and(is_masked),
    }
}

fn is_masked(value: &Json) -> bool {
    value.as_str().is_some_and(|text| text.contains("***")) || is_withheld(value)
}

fn creation_time(whole: &Object) -> Option<Timestamp> {
    value::text(whole, "created_at")?.parse().ok()
}
