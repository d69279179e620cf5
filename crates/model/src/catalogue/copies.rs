//! Finds copies: live entries with the same identity and the same values. Copies are created by two
//! concurrent runs, or by a create request that was resent because its response was lost.

use std::cmp::Reverse;

use jiff::Timestamp;

use crate::{
    catalogue,
    field::{Acceptance, Readback},
    kind::{FieldSpec, LiveEntry, LiveFields, Parent, Section, is_withheld},
    text,
    value::{self, Json, Object},
};

/// The maximum time in seconds between the creation of an entry and of its copy, if the copy is
/// from a resent request.
const MAX_COPY_GAP_SECONDS: i64 = 15 * 60;

/// Fields that the service computes from the time of the request, from other fields, or from later
/// use.
pub const COMPUTED_FIELDS: [&str; 9] = [
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
pub struct EntryWithCopies<'l> {
    /// The entry to keep.
    pub kept_entry: &'l LiveEntry,
    /// The entries to remove.
    pub copies: Vec<&'l LiveEntry>,
}

impl<'l> EntryWithCopies<'l> {
    /// Checks that `entries`, which have the same identity, are copies. `entries` must not be
    /// empty.
    ///
    /// Keeps the entry with the most child entries ([`child_sections`]). Of several such entries,
    /// keeps the oldest. If the service hides a credential that is set only at creation, keeps the
    /// newest entry instead, because the newest entry has the current credential.
    ///
    /// # Errors
    /// The difference between the entries, as the end of a sentence such as `differ in ...`.
    pub fn from_entries(section: Section, entries: &[&'l LiveEntry]) -> Result<Self, String> {
        let mut copies = entries.to_vec();
        if let [single_entry] = copies[..] {
            return Ok(Self { kept_entry: single_entry, copies: Vec::new() });
        }
        let child_section_names: Vec<_> =
            child_sections(section).map(|(child, _)| child.section).collect();
        copies.sort_by_key(|entry| {
            (Reverse(count_children(&child_section_names, entry)), entry.id())
        });
        let hidden_kind = copies
            .first()
            .map_or(HiddenValues::Nothing, |first_entry| find_hidden_values(section, first_entry));
        for other_entry in copies.iter().skip(1) {
            if let Some(difference) =
                find_difference(hidden_kind, &child_section_names, copies[0], other_entry)
            {
                return Err(difference);
            }
        }
        let kept_index =
            if hidden_kind == HiddenValues::OnlyAtCreation { copies.len() - 1 } else { 0 };
        Ok(Self { kept_entry: copies.remove(kept_index), copies })
    }
}

/// The kind of values that the service does not show for an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HiddenValues {
    Nothing,
    /// Only fields that are set at creation and cannot be changed later.
    OnlyAtCreation,
    Changeable,
}

/// The sections whose entries are children of entries of `section`.
pub fn child_sections(section: Section) -> impl Iterator<Item = (Section, &'static Parent)> {
    let child_sections = catalogue::sections(section.scoped_kind.scope)
        .filter_map(|section| Some((section, section.scoped_kind.parent?)));
    child_sections.filter(move |(_, parent)| parent.section == section.section)
}

/// The number of child entries of `entry` in the given sections; 0 if the child entries were not
/// read.
fn count_children(child_section_names: &[&str], entry: &LiveEntry) -> usize {
    let Some(object) = &entry.whole_object else { return 0 };
    let child_lists =
        child_section_names.iter().filter_map(|name| object.raw().get(*name)?.as_array());
    child_lists.map(Vec::len).sum()
}

/// True if `first_object` has all child entries that `other_object` has in the section `section_name`.
fn includes_children(section_name: &str, first_object: &Object, other_object: &Object) -> bool {
    match (first_object.get(section_name), other_object.get(section_name)) {
        (Some(Json::Array(first_rows)), Some(Json::Array(other_rows))) => {
            other_rows.iter().all(|row| first_rows.contains(row))
        }
        (first_value, other_value) => first_value == other_value,
    }
}

/// The difference between `first_entry` and `other_entry`, as the end of a sentence; `None` if they are copies.
fn find_difference(
    hidden_kind: HiddenValues,
    child_names: &[&str],
    first_entry: &LiveEntry,
    other_entry: &LiveEntry,
) -> Option<String> {
    let (Some(first_object), Some(other_object)) =
        (&first_entry.whole_object, &other_entry.whole_object)
    else {
        return Some("differ".to_owned());
    };
    let (first_fields, other_fields) = (first_object.raw(), other_object.raw());
    let mut names = first_fields
        .keys()
        .chain(other_fields.keys())
        .filter(|name| !COMPUTED_FIELDS.contains(&name.as_str()));
    if let Some(name) = names.find(|name| {
        let has_all_children = child_names.contains(&name.as_str())
            && includes_children(name, first_fields, other_fields);
        !has_all_children && first_fields.get(*name) != other_fields.get(*name)
    }) {
        return Some(format!("differ in `{}`", text::escape(name)));
    }
    match (hidden_kind, creation_time(first_fields), creation_time(other_fields)) {
        (HiddenValues::Nothing, ..) => None,
        (_, Some(first_time), Some(other_time)) => {
            let is_close_in_time =
                (first_time.as_second() - other_time.as_second()).abs() <= MAX_COPY_GAP_SECONDS;
            (!is_close_in_time).then(|| "were created more than 15 minutes apart".to_owned())
        }
        (HiddenValues::OnlyAtCreation, ..) => None,
        (HiddenValues::Changeable, ..) => Some("do not show when they were created".to_owned()),
    }
}

/// The kind of hidden values that `entry` may have: in write-only fields, in URLs with credentials,
/// or in child entries.
fn find_hidden_values(section: Section, entry: &LiveEntry) -> HiddenValues {
    let Some(live_object) = entry.whole_object.as_ref().map(LiveFields::raw) else {
        return HiddenValues::Changeable;
    };
    let specs = section.specs();
    if child_sections(section).next().is_some()
        || live_object.iter().any(|(name, value)| {
            is_masked(value) && section.table().find_by_live_name(name).is_none()
        })
    {
        return HiddenValues::Changeable;
    }
    let hidden_specs = specs.iter().filter(|spec| is_hidden(spec, live_object));
    hidden_specs.fold(HiddenValues::Nothing, |hidden_kind, spec| {
        match (hidden_kind, spec.field.accepted) {
            (HiddenValues::Nothing | HiddenValues::OnlyAtCreation, Acceptance::OnCreate) => {
                HiddenValues::OnlyAtCreation
            }
            _ => HiddenValues::Changeable,
        }
    })
}

fn is_hidden(spec: &FieldSpec, live_object: &Object) -> bool {
    let value = spec.field.live_name().and_then(|name| live_object.get(name));
    match spec.field.read {
        Readback::Never => true,
        Readback::IfPresent => value.is_none_or(is_masked),
        Readback::Same | Readback::Nested | Readback::As(_) => value.is_some_and(is_masked),
    }
}

fn is_masked(value: &Json) -> bool {
    value.as_str().is_some_and(|text| text.contains("***")) || is_withheld(value)
}

fn creation_time(live_object: &Object) -> Option<Timestamp> {
    value::text(live_object, "created_at")?.parse().ok()
}
