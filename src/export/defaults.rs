//! What most projects of a group have in common, moved into the `Defaults` of the group.
//!
//! A claim is a field of a section that is a mapping, or an entry of one that is a list. For each, the
//! groups are gone through from the outside: one claims what more than half of the projects in and
//! below it have. A claim costs its own lines and those of each project that has to say otherwise, and
//! saves those of the projects that need not say it any more; it is made only if it saves lines, and a
//! group has `Defaults` only if that saves more than they take. The choice depends on nothing but what
//! is written.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    declare::is_sayable,
    document::{ABSENT, Document, Entry, Part},
};
use crate::{
    field::Scope,
    kind::{Section, Shape},
    kinds::preset,
    steps,
    value::{Json, Object},
    yaml::write::{self, Item, Node},
};

/// How many projects a group has at least that has `Defaults`.
const FEWEST: usize = 3;
/// How many lines `Defaults` have to save: those that they take themselves before any claim, and one.
const LEAST: u64 = 6;
/// What cannot be said at all costs more than anything.
const NEVER: u64 = 1 << 40;

/// What holds for all projects below a group.
#[derive(Debug)]
pub(super) struct Defaults {
    /// The path of the group.
    pub(super) group: String,
    pub(super) parts: Vec<Part>,
}

impl Defaults {
    /// What it says, key by key.
    pub(super) fn items(&self) -> Vec<Item> {
        let glob = Object::from_iter([("path".to_owned(), format!("{}/**", self.group).into())]);
        let head = [Item::value("kind", "Defaults"), Item::value("match", Json::Object(glob))];
        head.into_iter().chain(self.parts.iter().filter_map(Part::item)).collect()
    }
}

/// What may be claimed: a field of a mapping, or an entry.
type Key = (&'static str, String);

/// What one project has of it.
enum Cell<'d> {
    /// Nothing is known of it, and nothing has to be: what rules say is not looked at.
    Free,
    /// Something that is not known, so that nothing may be said of it.
    Unknown,
    /// What it says.
    Said(&'d Entry),
    /// It says nothing, and the service has this.
    Unsaid(Option<Json>),
}

/// A group with what is in it.
struct Group {
    path: String,
    /// Where the group above is.
    above: Option<usize>,
    /// The projects directly in it.
    projects: Vec<usize>,
    /// Those in it and below.
    within: Vec<usize>,
    may_claim: bool,
}

/// A claim of a group.
struct Claim {
    group: usize,
    key: Key,
    of: Section,
    entry: Entry,
    saves: u64,
}

/// Moves what is common out of `documents`, which are sorted by path, into the rules that it
/// returns.
pub(super) fn factor(documents: &mut [Document]) -> Vec<Defaults> {
    let mut groups = groups(documents);
    let claims = loop {
        let claims = claims(documents, &groups);
        let mut saved: BTreeMap<usize, u64> = BTreeMap::new();
        claims.iter().for_each(|claim| *saved.entry(claim.group).or_default() += claim.saves);
        let idle: Vec<_> = saved.iter().filter(|(_, saves)| **saves < LEAST).collect();
        if idle.is_empty() {
            break claims;
        }
        idle.into_iter().for_each(|(at, _)| groups[*at].may_claim = false);
    };
    for group in 0..groups.len() {
        for project in groups[group].projects.clone() {
            settle(&mut documents[project], &in_effect(&groups, &claims, group));
        }
    }
    let mut defaults: Vec<Defaults> = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        let mut parts = Vec::new();
        for claim in claims.iter().filter(|claim| claim.group == at) {
            add(&mut parts, claim.of, claim.entry.clone());
        }
        parts.iter_mut().for_each(arrange);
        parts.sort_by_key(Part::place);
        if !parts.is_empty() {
            defaults.push(Defaults { group: group.path.clone(), parts });
        }
    }
    defaults
}

/// The groups that projects are in, the outer ones first.
fn groups(documents: &[Document]) -> Vec<Group> {
    let parent = |path: &str| path.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for document in documents {
        let path = match document.scope {
            Scope::Group => document.path.to_string(),
            Scope::Project => parent(&document.path),
        };
        paths.entry(path.to_lowercase()).or_insert(path);
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (lower, path) in paths {
        let mut outer = lower.match_indices('/').map(|(at, _)| &lower[..at]).collect::<Vec<_>>();
        outer.reverse();
        let above = outer.into_iter().find_map(|outer| known.get(outer).copied());
        known.insert(lower, groups.len());
        groups.push(Group {
            path,
            above,
            projects: Vec::new(),
            within: Vec::new(),
            may_claim: false,
        });
    }
    for (at, document) in documents.iter().enumerate() {
        if document.scope == Scope::Project
            && let Some(group) = known.get(&parent(&document.path).to_lowercase())
        {
            groups[*group].projects.push(at);
        }
    }
    for at in (0..groups.len()).rev() {
        let group = &mut groups[at];
        group.within.extend(&group.projects);
        group.may_claim =
            group.within.len() >= FEWEST && !group.path.contains(['*', '?', '[', '{', '\\']);
        if let Some(above) = group.above {
            let within = group.within.clone();
            groups[above].within.extend(within);
        }
    }
    groups
}

/// The claims that save the most lines.
fn claims(documents: &[Document], groups: &[Group]) -> Vec<Claim> {
    let projects = documents.iter().filter(|document| document.scope == Scope::Project);
    let mut said: BTreeMap<Key, (Section, usize)> = BTreeMap::new();
    for part in projects.flat_map(|document| &document.parts) {
        // Whether it is archived is a matter of each project.
        if part.of.shape == Shape::Switch {
            continue;
        }
        for key in part.entries.iter().flat_map(|entry| keys(part.of, entry)) {
            said.entry(key).or_insert((part.of, 0)).1 += 1;
        }
    }
    said.retain(|_, (_, count)| *count >= FEWEST);
    let claims = said.into_iter().flat_map(|(key, (of, _))| claims_of(&key, of, documents, groups));
    claims.collect()
}

/// What may be claimed of an entry.
fn keys(of: Section, entry: &Entry) -> Vec<Key> {
    if is_whole(of) {
        return vec![(of.section, entry.key.clone())];
    }
    entry.fields.iter().map(|(name, _)| (of.section, name.clone())).collect()
}

/// Whether entries of a section are there or not, so that each is one claim; of others, each field
/// is one.
fn is_whole(of: Section) -> bool {
    of.shape == Shape::List || of.is_removable()
}

/// The claims of one field or entry. The outer groups come first: what one claims holds below.
fn claims_of(key: &Key, of: Section, documents: &[Document], groups: &[Group]) -> Vec<Claim> {
    let single: Vec<Option<Entry>> =
        documents.iter().map(|document| single(document, key, of)).collect();
    let both = documents.iter().zip(&single);
    let cells: Vec<Cell<'_>> =
        both.map(|(document, own)| cell(document, key, of, own.as_ref())).collect();
    let mut claims = Vec::new();
    let mut holds: Vec<Option<&Entry>> = vec![None; groups.len()];
    for (at, group) in groups.iter().enumerate() {
        holds[at] = group.above.and_then(|above| holds[above]);
        let Some(common) = common(group, &cells) else { continue };
        let take = |above: Option<&Entry>| -> u64 {
            group.within.iter().map(|project| cost(of, &cells[*project], above)).sum()
        };
        let saves = take(holds[at]).saturating_sub(take(Some(common)) + lines(of, common));
        // One line less is not worth looking in two places.
        if saves > 1 {
            holds[at] = Some(common);
            claims.push(Claim { group: at, key: key.clone(), of, entry: common.clone(), saves });
        }
    }
    claims
}

/// What more than half of the projects in and below a group say, where it may claim anything.
fn common<'c>(group: &Group, cells: &'c [Cell<'_>]) -> Option<&'c Entry> {
    let known = || {
        let within = group.within.iter().map(|project| &cells[*project]);
        within.filter(|cell| !matches!(cell, Cell::Free)).map(|cell| match cell {
            Cell::Said(entry) => Some(*entry),
            _ => None,
        })
    };
    // Of two that differ neither counts: what is left over is the only one that can be common.
    let mut left = (None, 0);
    for said in known() {
        match left {
            (_, 0) => left = (said, 1),
            (most, count) => left.1 = if most == said { count + 1 } else { count - 1 },
        }
    }
    let most = left.0.filter(|entry| group.may_claim && entry.state.is_none())?;
    let have = known().filter(|said| *said == Some(most)).count();
    (have * 2 > known().count()).then_some(most)
}

/// What `document` says of one field, as an entry of its own.
fn single(document: &Document, key: &Key, of: Section) -> Option<Entry> {
    if is_whole(of) {
        return None;
    }
    let value = document.part(key.0)?.entries.first()?.get(&key.1)?.clone();
    Some(Entry { fields: vec![(key.1.clone(), value)], ..Entry::default() })
}

/// What `document` has of `key`; `own` is the field, if it says one.
fn cell<'d>(document: &'d Document, key: &Key, of: Section, own: Option<&'d Entry>) -> Cell<'d> {
    steps::step();
    let part = document.part(key.0);
    let is_out = document.scope != Scope::Project || document.unread.contains(&key.0);
    if is_out || (document.is_archived && part.is_none()) {
        return Cell::Free;
    }
    if is_whole(of) {
        let entry = part.and_then(|part| part.entries.iter().find(|entry| entry.key == key.1));
        return entry.map_or(Cell::Unsaid(None), Cell::Said);
    }
    if let Some(own) = own {
        return Cell::Said(own);
    }
    let mut unknown = part.iter().flat_map(|part| &part.entries).flat_map(|entry| &entry.unknown);
    // A mapping of which nothing is known has no keys that are.
    let outer = key.1.split('.').next().unwrap_or_default();
    if unknown.any(|name| *name == key.1 || name == outer) {
        return Cell::Unknown;
    }
    Cell::Unsaid(Some(preset::of(of, &key.1, &document.path)))
}

/// How many lines a project needs where `above` holds.
fn cost(of: Section, cell: &Cell<'_>, above: Option<&Entry>) -> u64 {
    match (cell, above) {
        (Cell::Free, _) | (Cell::Unknown | Cell::Unsaid(_), None) => 0,
        (Cell::Said(own), None) => lines(of, own),
        (Cell::Said(own), Some(above)) if *own == above => 0,
        (Cell::Said(own), Some(above)) => {
            otherwise(of, own, above).map_or(NEVER, |own| lines(of, &own))
        }
        (Cell::Unknown, Some(_)) => NEVER,
        (Cell::Unsaid(None), Some(_)) => 1,
        (Cell::Unsaid(Some(preset)), Some(above)) => {
            let name = above.fields.first().map(|(name, _)| name.as_str()).unwrap_or_default();
            if is_sayable(of, name, preset) { 1 } else { NEVER }
        }
    }
}

/// What an entry has to say so that it is what it is where `above` holds; nothing if it cannot.
fn otherwise(of: Section, own: &Entry, above: &Entry) -> Option<Entry> {
    if own.state.is_some() || !is_whole(of) {
        return Some(own.clone());
    }
    let mut entry = Entry { fields: Vec::new(), ..own.clone() };
    for (name, value) in &own.fields {
        if of.identity.contains(&name.as_str()) || above.get(name) != Some(value) {
            entry.fields.push((name.clone(), value.clone()));
        }
    }
    for (name, _) in above.fields.iter().filter(|(name, _)| own.get(name).is_none()) {
        let preset = preset::of(of, name, "");
        if own.unknown.contains(name) || !is_sayable(of, name, &preset) {
            return None;
        }
        entry.fields.push((name.clone(), preset));
    }
    sort(of, &mut entry.fields);
    Some(entry)
}

/// How many lines an entry, or a field as one, takes.
fn lines(of: Section, entry: &Entry) -> u64 {
    let part = Part { of, about: Vec::new(), entries: vec![entry.clone()] };
    let text = part.item().map(|item| match item.node {
        // The line of the section's own key is there anyway.
        Node::Map(items) if !is_whole(of) => write::document(&items),
        Node::List(_) => write::document(&[item])
            .split_once('\n')
            .map_or(String::new(), |(_, rest)| rest.to_owned()),
        _ => write::document(&[item]),
    });
    text.map_or(0, |text| text.lines().count() as u64)
}

/// What holds for the projects directly in the group at `at`, each claim once.
fn in_effect<'c>(groups: &[Group], claims: &'c [Claim], at: usize) -> Vec<&'c Claim> {
    let mut effective: BTreeMap<&Key, &Claim> = BTreeMap::new();
    let mut next = Some(at);
    while let Some(at) = next {
        for claim in claims.iter().filter(|claim| claim.group == at) {
            effective.entry(&claim.key).or_insert(claim);
        }
        next = groups[at].above;
    }
    effective.into_values().collect()
}

/// Takes out of `document` what holds anyway, and adds what has to be said otherwise.
fn settle(document: &mut Document, claims: &[&Claim]) {
    let mut ignored = BTreeSet::new();
    for claim in claims {
        let Claim { key, of, entry: above, .. } = claim;
        let own = single(document, key, *of);
        let said = match cell(document, key, *of, own.as_ref()) {
            Cell::Free => {
                if document.unread.contains(&key.0) {
                    ignored.insert(key.0);
                }
                continue;
            }
            Cell::Said(own) if own == above => None,
            Cell::Said(own) => otherwise(*of, own, above),
            Cell::Unsaid(Some(preset)) => {
                Some(Entry { fields: vec![(key.1.clone(), preset)], ..Entry::default() })
            }
            Cell::Unsaid(None) => Some(absent(*of, above)),
            Cell::Unknown => continue,
        };
        remove(document, key, *of);
        if let Some(said) = said {
            add(&mut document.parts, *of, said);
        }
    }
    document.ignored.extend(ignored);
    document.parts.iter_mut().for_each(arrange);
    document.parts.retain(|part| !part.entries.is_empty() || !part.about.is_empty());
    document.parts.sort_by_key(Part::place);
}

/// The entry that says that there is none.
fn absent(of: Section, above: &Entry) -> Entry {
    let identity = above.fields.iter().filter(|(name, _)| of.identity.contains(&name.as_str()));
    Entry {
        key: above.key.clone(),
        fields: identity.cloned().collect(),
        state: Some(ABSENT),
        ..Entry::default()
    }
}

fn remove(document: &mut Document, key: &Key, of: Section) {
    for part in document.parts.iter_mut().filter(|part| part.of.section == key.0) {
        if is_whole(of) {
            part.entries.retain(|entry| entry.key != key.1);
        } else {
            part.entries
                .iter_mut()
                .for_each(|entry| entry.fields.retain(|(name, _)| *name != key.1));
        }
    }
}

/// Adds an entry, or its fields to the one that is there.
fn add(parts: &mut Vec<Part>, of: Section, entry: Entry) {
    let at = parts.iter().position(|part| part.of.section == of.section).unwrap_or_else(|| {
        parts.push(Part { of, about: Vec::new(), entries: Vec::new() });
        parts.len() - 1
    });
    let entries = &mut parts[at].entries;
    match entries.first_mut().filter(|_| !is_whole(of)) {
        Some(own) => own.fields.extend(entry.fields),
        None => entries.push(entry),
    }
}

/// Puts entries and fields into their order.
fn arrange(part: &mut Part) {
    part.entries.sort_by(|a, b| a.key.cmp(&b.key));
    let of = part.of;
    part.entries.iter_mut().for_each(|entry| sort(of, &mut entry.fields));
}

/// Puts fields into the order of the documentation.
fn sort(of: Section, fields: &mut [(String, Json)]) {
    let specs = of.table().specs();
    fields.sort_by_cached_key(|(name, _)| {
        let (outer, inner) = name.split_once('.').unwrap_or((name, ""));
        let at = specs.iter().position(|spec| spec.name == outer);
        let keys = at.and_then(|at| specs[at].schema["properties"].as_object());
        (at, keys.and_then(|keys| keys.keys().position(|key| key == inner)))
    });
}
