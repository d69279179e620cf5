//! Finds the live entry for each declared one, by identity. Uses maps instead of searching.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::{
    field::Readback,
    kind::{Identity, LiveEntry, Section, Spec, is_withheld},
    steps, text,
    value::{Json, Object},
};

/// Two live entries created within this many seconds may come from one create whose answer was lost
/// and from its second sending.
const COPY_WITHIN: i64 = 15 * 60;

/// The live entry that a declared one matches.
pub(super) enum Match<'l> {
    /// None.
    None,
    /// This one, and its copies.
    One(&'l LiveEntry, Vec<&'l LiveEntry>),
    /// One that another declared entry matches already.
    Taken,
    /// None, but this one is probably meant.
    Near(&'l LiveEntry),
    /// One of several that differ, and nothing shows which one; the text names what to do, without
    /// a credential.
    Ambiguous(String),
    /// Its identity contains a secret that is not set.
    Unknown,
}

/// The live entries of a section, by identity.
pub(super) struct Matching<'l> {
    section: Section,
    live: &'l [LiveEntry],
    by_key: HashMap<String, Vec<usize>>,
    /// Those whose name the service keeps.
    by_name: HashMap<String, Vec<usize>>,
    taken: Vec<bool>,
    count: usize,
}

impl<'l> Matching<'l> {
    pub(super) fn new(section: Section, live: &'l [LiveEntry]) -> Self {
        let mut by_key: HashMap<String, Vec<usize>> = HashMap::with_capacity(live.len());
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, entry) in live.iter().enumerate() {
            let identity = section.identify(entry.fields.raw());
            let key = identity.keys.into_iter().next().unwrap_or_default();
            by_key.entry(key).or_default().push(at);
            if let Some(name) = identity.service_name {
                by_name.entry(name).or_default().push(at);
            }
        }
        Self { section, live, by_key, by_name, taken: vec![false; live.len()], count: 0 }
    }

    /// How many live entries have a declared one.
    pub(super) const fn taken(&self) -> usize {
        self.count
    }

    /// Finds the match for a declared entry with this identity. `is_unknown`: the identity contains
    /// a secret that is not set.
    pub(super) fn find(&mut self, identity: &Identity, is_unknown: bool) -> Match<'l> {
        let found = self.called(identity).or_else(|| self.keyed(identity));
        let near = || {
            let near = identity.near.iter().filter_map(|key| self.by_key.get(key)).flatten();
            near.copied().find(|at| !self.taken[*at])
        };
        let Some(found) = found else {
            return match near() {
                _ if is_unknown => Match::Unknown,
                Some(at) => Match::Near(&self.live[at]),
                None => Match::None,
            };
        };
        let mut entries: Vec<_> = found.iter().map(|at| (*at, &self.live[*at])).collect();
        entries.sort_by_key(|(_, entry)| entry.id());
        let Some(((at, first), copies)) = entries.split_first() else { return Match::None };
        if let Some(difference) =
            copies.iter().find_map(|(_, copy)| why_not_a_copy(self.section, first, copy))
        {
            return Match::Ambiguous(self.ambiguity(&entries, &difference));
        }
        if self.taken[*at] {
            return Match::Taken;
        }
        let copies: Vec<_> = copies.iter().map(|(_, copy)| *copy).collect();
        let (first, all) = (*first, found);
        self.count += all.len();
        for at in all {
            self.taken[at] = true;
        }
        Match::One(first, copies)
    }

    /// The live entries with its name; if there are several, those that also have its key.
    fn called(&self, identity: &Identity) -> Option<Vec<usize>> {
        let called = self.by_name.get(identity.service_name.as_ref()?)?;
        let free = called.iter().copied().inspect(|_| steps::step());
        let free: Vec<_> = free.filter(|at| !self.taken[*at]).collect();
        let keyed = identity.keys.first().and_then(|key| self.by_key.get(key));
        let both: Vec<_> =
            free.iter().copied().filter(|at| keyed.is_some_and(|k| k.contains(at))).collect();
        [both, free].into_iter().find(|found| !found.is_empty())
    }

    /// The live entries with its key, or with one of its former keys. Entries without another match
    /// come first.
    fn keyed(&self, identity: &Identity) -> Option<Vec<usize>> {
        let found = identity.keys.iter().find_map(|key| self.by_key.get(key))?;
        let free = found.iter().copied().inspect(|_| steps::step());
        let free: Vec<_> = free.filter(|at| !self.taken[*at]).collect();
        Some(if free.is_empty() { found.clone() } else { free })
    }

    /// The live entries without a declared one.
    pub(super) fn rest(&self) -> impl Iterator<Item = &'l LiveEntry> {
        self.live.iter().zip(&self.taken).filter(|(_, taken)| !**taken).map(|(entry, _)| entry)
    }

    fn ambiguity(&self, entries: &[(usize, &LiveEntry)], difference: &str) -> String {
        let ids: Vec<_> = entries.iter().map(|(_, entry)| entry.handle_text()).collect();
        let noun = self.section.noun;
        let same = self.section.identity.last().copied().unwrap_or_default();
        format!(
            "the {noun}s {} have the same `{same}` and {difference}, so they are not taken for copies: remove all but one, or give them different ones",
            text::joined(&ids)
        )
    }
}

/// Why `other` is not a copy of `first`, as a create whose answer was lost can leave behind; `None`
/// if it is.
fn why_not_a_copy(section: Section, first: &LiveEntry, other: &LiveEntry) -> Option<String> {
    let (Some(one), Some(two)) = (&first.whole, &other.whole) else {
        return Some("differ".to_owned());
    };
    let (one, two) = (one.raw(), two.raw());
    // Values that the service computes: from the time of the request, from other fields, and from
    // later use.
    let computed = [
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
    let counts = |name: &&String| !computed.contains(&name.as_str());
    let differs = |name: &&String| one.get(*name) != two.get(*name);
    if let Some(name) = one.keys().chain(two.keys()).filter(counts).find(differs) {
        return Some(format!("differ in `{}`", text::escape(name)));
    }
    match (made_at(one), made_at(two)) {
        (Some(one), Some(two)) if (one.as_second() - two.as_second()).abs() <= COPY_WITHIN => None,
        (Some(_), Some(_)) => Some("were made more than 15 minutes apart".to_owned()),
        // If nothing is hidden, equal fields mean equal entries.
        (None, None) if shows_all(section, one) => None,
        _ => Some("do not say when they were made".to_owned()),
    }
}

/// Whether the service returns everything about an entry like this: no field is write-only, and no
/// credential is removed from a URL.
fn shows_all(section: Section, whole: &Object) -> bool {
    let is_kept_back = |value: &Json| {
        value.as_str().is_some_and(|text| text.contains("***")) || is_withheld(value)
    };
    let is_shown = |spec: &Spec| match spec.field.read {
        Readback::Same | Readback::As(_) => true,
        Readback::IfPresent => whole.contains_key(&spec.name),
        Readback::Never => false,
    };
    section.table().specs().iter().all(is_shown) && !whole.values().any(is_kept_back)
}

fn made_at(whole: &Object) -> Option<Timestamp> {
    whole.get("created_at").and_then(Json::as_str)?.parse().ok()
}
