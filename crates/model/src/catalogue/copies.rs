//! Finds copies: live entries that do not differ. Two concurrent runs, or a create whose response
//! was lost, leave copies.

use std::cmp::Reverse;

use jiff::Timestamp;

use crate::{
    catalogue,
    field::{Accepted, Readback},
    kind::{LiveEntry, LiveFields, Parent, Section, Spec, is_withheld},
    text,
    value::{self, Json, Object},
};

/// Two live entries created within this many seconds may come from one create whose answer was lost
/// and from its second sending.
const COPY_WITHIN_SECONDS: i64 = 15 * 60;

/// Values that the service computes: from the time of the request, from other fields, and from
/// later use.
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

/// Live entries that count as one.
pub struct Copies<'l> {
    /// The entry that stays.
    pub kept: &'l LiveEntry,
    /// The others.
    pub copies: Vec<&'l LiveEntry>,
}

impl<'l> Copies<'l> {
    /// The `entries` of a section that have one identity, at least one, if they are copies.
    ///
    /// Keeps the oldest entry that has all entries of [`child_sections`]. If the service hides a
    /// credential that only a new entry can get, keeps the newest, which has the current
    /// credential.
    ///
    /// # Errors
    /// How they differ.
    pub fn find(section: Section, entries: &[&'l LiveEntry]) -> Result<Self, String> {
        let mut copies = entries.to_vec();
        if let [only] = copies[..] {
            return Ok(Self { kept: only, copies: Vec::new() });
        }
        let parts: Vec<_> = child_sections(section).map(|(part, _)| part.section).collect();
        copies.sort_by_key(|entry| (Reverse(count_parts(&parts, entry)), entry.id()));
        let hidden =
            copies.first().map_or(HiddenValues::Nothing, |first| hidden_values(section, first));
        for other in copies.iter().skip(1) {
            if let Some(difference) = find_difference(hidden, &parts, copies[0], other) {
                return Err(difference);
            }
        }
        let kept_index = if hidden == HiddenValues::OnlyAtCreation { copies.len() - 1 } else { 0 };
        Ok(Self { kept: copies.remove(kept_index), copies })
    }
}

/// What the service hides of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HiddenValues {
    Nothing,
    /// Only what an entry gets when it is created and never later.
    OnlyAtCreation,
    More,
}

/// The sections whose entries belong to those of `section`.
pub fn child_sections(section: Section) -> impl Iterator<Item = (Section, &'static Parent)> {
    let below = catalogue::sections(section.home.scope)
        .filter_map(|section| Some((section, section.home.parent?)));
    below.filter(move |(_, parent)| parent.section == section.section)
}

/// The number of child entries of an entry in the sections `parts`, as far as they were read.
fn count_parts(parts: &[&str], entry: &LiveEntry) -> usize {
    let Some(whole) = &entry.whole_object else { return 0 };
    let rows = parts.iter().filter_map(|part| whole.raw().get(*part)?.as_array());
    rows.map(Vec::len).sum()
}

/// True if `first` has the part `name` of `other`: all of its rows.
fn has_part(name: &str, first: &Object, other: &Object) -> bool {
    match (first.get(name), other.get(name)) {
        (Some(Json::Array(all)), Some(Json::Array(some))) => {
            some.iter().all(|row| all.contains(row))
        }
        (first, other) => first == other,
    }
}

/// How `other` differs from `first`.
fn find_difference(
    hidden: HiddenValues,
    parts: &[&str],
    first: &LiveEntry,
    other: &LiveEntry,
) -> Option<String> {
    let (Some(one), Some(two)) = (&first.whole_object, &other.whole_object) else {
        return Some("differ".to_owned());
    };
    let (one, two) = (one.raw(), two.raw());
    let mut names = one.keys().chain(two.keys()).filter(|name| !COMPUTED.contains(&name.as_str()));
    if let Some(name) = names.find(|name| {
        let is_part = parts.contains(&name.as_str()) && has_part(name, one, two);
        !is_part && one.get(*name) != two.get(*name)
    }) {
        return Some(format!("differ in `{}`", text::escape(name)));
    }
    match (hidden, creation_time(one), creation_time(two)) {
        (HiddenValues::Nothing, ..) => None,
        (_, Some(one), Some(two)) => {
            let is_close_in_time = (one.as_second() - two.as_second()).abs() <= COPY_WITHIN_SECONDS;
            (!is_close_in_time).then(|| "were created more than 15 minutes apart".to_owned())
        }
        (HiddenValues::OnlyAtCreation, ..) => None,
        (HiddenValues::More, ..) => Some("do not show when they were created".to_owned()),
    }
}

/// The values that the service hides of an entry: write-only fields, credentials in URLs, and entries
/// of other sections that belong to it.
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
