//! Moves what most projects, or subgroups, of a group have in common into the group's `Defaults`.
//!
//! A claim is a field of a section that is a mapping, or an entry of one that is a list. For each,
//! groups are considered from the outside in: a group claims the value that more than half of the
//! projects in and below it have. A claim costs its own lines, and those of projects that must
//! override it. It saves the lines of projects that no longer need them. It is made only if it
//! saves lines, and a group has `Defaults` only if the claims save more than `Defaults` themselves
//! take. A project without a claimed entry is an exception of the `match`: an export declares nothing
//! absent. The choice depends only on the documents. Subgroups are handled like projects. Empty
//! sections move last, into `Defaults` that are made anyway.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    document::{Document, Entry, Part},
    entry::is_sayable,
};
use crate::{
    address::{group_of, groups_above, is_literal},
    catalogue::preset,
    field::Scope,
    kind::{Section, Shape},
    steps,
    value::{Json, Object},
    yaml::write::{self, Item, Node},
};

/// The minimum number of projects in a group with `Defaults`.
const FEWEST: usize = 3;
/// How many lines `Defaults` must save: their own lines without any claim, plus one.
const LEAST: u64 = 6;
/// The cost of an override that cannot be expressed.
const NEVER: u64 = 1 << 40;

/// The lines of a second `Defaults` document of a group.
const ANOTHER: u64 = 3;

/// The `Defaults` of all projects, or subgroups, below a group.
#[derive(Debug)]
pub(super) struct Defaults {
    /// The path of the group.
    pub(super) group: String,
    scope: Scope,
    /// The paths for which it does not hold.
    except: Vec<String>,
    pub(super) parts: Vec<Part>,
}

impl Defaults {
    /// Its content, key by key.
    pub(super) fn items(&self) -> Vec<Item> {
        let mut glob =
            Object::from_iter([("path".to_owned(), format!("{}/**", self.group).into())]);
        if !self.except.is_empty() {
            glob.insert("except".to_owned(), self.except.clone().into());
        }
        let head = [Item::value("kind", "Defaults"), Item::value("match", Json::Object(glob))];
        let of_groups = Item::value("for", Scope::Group.document());
        let of_groups = (self.scope == Scope::Group).then_some(of_groups);
        head.into_iter().chain(of_groups).chain(self.parts.iter().filter_map(Part::item)).collect()
    }
}

/// The subject of a claim: a field of a mapping, or an entry.
type Key = (&'static str, String);

/// The value in one project.
enum Cell<'d> {
    /// Not known and not relevant: the project ignores rules in this section.
    Free,
    /// Not known, so it must not be declared.
    Unknown,
    /// Declared in the document.
    Said(Cow<'d, Entry>),
    /// Not in the document; the service has this value.
    Unsaid(Option<Json>),
}

/// A group with its projects.
struct Group {
    path: String,
    /// The position of the group above.
    above: Option<usize>,
    /// The projects directly in it.
    projects: Vec<usize>,
    /// The projects in it and below.
    within: Vec<usize>,
    may_claim: bool,
}

/// A claim of a group.
struct Claim {
    group: usize,
    key: Key,
    of: Section,
    entry: Entry,
    /// The paths of those below the group that have no such entry.
    except: Vec<String>,
    saves: u64,
}

/// Moves common values of `scope` out of `documents`, which are sorted by path, into the returned
/// `Defaults`.
pub(super) fn factor(documents: &mut [Document], scope: Scope) -> Vec<Defaults> {
    let mut groups = groups(documents, scope);
    let claims = loop {
        let mut claims = claims(documents, &groups, scope);
        let mut shared: BTreeMap<(usize, Vec<String>), u64> = BTreeMap::new();
        let pair = |claim: &Claim| (claim.group, claim.except.clone());
        claims.iter().for_each(|claim| *shared.entry(pair(claim)).or_default() += claim.saves);
        claims.retain(|claim| claim.except.is_empty() || shared[&pair(claim)] > ANOTHER);
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
    let mut all: BTreeMap<(usize, Vec<String>), Vec<Part>> = BTreeMap::new();
    for Claim { group, except, of, entry, .. } in claims {
        add(all.entry((group, except)).or_default(), of, entry);
    }
    let defaults = all.into_iter().map(|((at, except), mut parts)| {
        parts.iter_mut().for_each(arrange);
        parts.sort_by_key(Part::place);
        Defaults { group: groups[at].path.clone(), scope, except, parts }
    });
    let mut defaults: Vec<_> = defaults.collect();
    defaults.iter_mut().for_each(|defaults| share_empty(defaults, documents));
    defaults
}

/// Moves empty sections into `defaults`, if these hold for every document below the group and no
/// such section is unread.
fn share_empty(defaults: &mut Defaults, documents: &mut [Document]) {
    let above = format!("{}/", defaults.group).to_lowercase();
    let within = documents.iter_mut().filter(|document| {
        let is_below = document.path.to_lowercase().starts_with(&above);
        is_below && document.scope == defaults.scope && defaults.except.is_empty()
    });
    let mut within: Vec<_> = within.collect();
    let unread: BTreeSet<_> = within.iter().flat_map(|it| it.unread.iter().copied()).collect();
    for document in &mut within {
        let is_shared = |part: &mut Part| part.is_empty() && !unread.contains(part.of.section);
        for part in document.parts.extract_if(.., is_shared) {
            if defaults.parts.iter().all(|known| known.of.section != part.of.section) {
                defaults.parts.push(part);
            }
        }
    }
    defaults.parts.sort_by_key(Part::place);
}

/// The groups with members of `scope`, outer ones first.
fn groups(documents: &[Document], scope: Scope) -> Vec<Group> {
    let parent = |path: &str| group_of(path).unwrap_or_default().to_owned();
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
        let above = groups_above(&lower).find_map(|outer| known.get(outer).copied());
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
        if document.scope == scope
            && let Some(group) = known.get(&parent(&document.path).to_lowercase())
        {
            groups[*group].projects.push(at);
        }
    }
    for at in (0..groups.len()).rev() {
        let group = &mut groups[at];
        group.within.extend(&group.projects);
        group.may_claim = group.within.len() >= FEWEST && is_literal(&group.path);
        if let Some(above) = group.above {
            let within = group.within.clone();
            groups[above].within.extend(within);
        }
    }
    groups
}

/// The claims that save the most lines.
fn claims(documents: &[Document], groups: &[Group], scope: Scope) -> Vec<Claim> {
    let projects = documents.iter().filter(|document| document.scope == scope);
    let mut said: BTreeMap<Key, (Section, usize)> = BTreeMap::new();
    for part in projects.flat_map(|document| &document.parts) {
        // Whether it is archived, or may be created, is a matter of each project.
        if matches!(part.of.shape, Shape::Switch | Shape::Container) {
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

/// The possible claims for an entry.
fn keys(of: Section, entry: &Entry) -> Vec<Key> {
    if is_whole(of) {
        return vec![(of.section, entry.key.clone())];
    }
    entry.fields.iter().map(|(name, _)| (of.section, name.clone())).collect()
}

/// Whether each entry of a section is one claim, because entries can be absent; otherwise each
/// field is one.
fn is_whole(of: Section) -> bool {
    of.shape == Shape::List || of.is_removable()
}

/// The claims for one field or entry. Outer groups come first, because their claims hold below.
fn claims_of(key: &Key, of: Section, documents: &[Document], groups: &[Group]) -> Vec<Claim> {
    let cells: Vec<_> = documents.iter().map(|document| cell(document, key, of)).collect();
    let lacks = |project: &&usize| matches!(cells[**project], Cell::Unsaid(None));
    let mut claims = Vec::new();
    let mut holds: Vec<Option<&Entry>> = vec![None; groups.len()];
    for (at, group) in groups.iter().enumerate() {
        holds[at] = group.above.and_then(|above| holds[above]);
        let Some(common) = common(group, &cells) else { continue };
        let take = |above: Option<&Entry>| -> u64 {
            group.within.iter().map(|project| cost(of, &cells[*project], above)).sum()
        };
        let except = group.within.iter().filter(lacks);
        let except: Vec<String> =
            except.map(|project| documents[*project].path.to_string()).collect();
        let saves = take(holds[at]).saturating_sub(take(Some(common)) + lines(of, common));
        // One saved line is not worth a second place to look at.
        if saves > 1 {
            holds[at] = Some(common);
            let entry = common.clone();
            claims.push(Claim { group: at, key: key.clone(), of, entry, except, saves });
        }
    }
    claims
}

/// The value of more than half of the projects in and below a group, if a claim is possible.
fn common<'c>(group: &Group, cells: &'c [Cell<'_>]) -> Option<&'c Entry> {
    let known = || {
        let within = group.within.iter().map(|project| &cells[*project]);
        within.filter(|cell| !matches!(cell, Cell::Free)).map(|cell| match cell {
            Cell::Said(entry) => Some(&**entry),
            _ => None,
        })
    };
    // Majority vote: pairs of different values cancel out, so only what remains can be the
    // majority.
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

/// The value of `key` in `document`; a field is an entry of its own.
fn cell<'d>(document: &'d Document, key: &Key, of: Section) -> Cell<'d> {
    steps::step();
    let part = document.part(key.0);
    let is_out = document.scope != of.home.scope || document.unread.contains(&key.0);
    if is_out || (document.is_archived && part.is_none()) {
        return Cell::Free;
    }
    let entries = part.map(|part| &part.entries[..]).unwrap_or_default();
    if is_whole(of) {
        let entry = entries.iter().find(|entry| entry.key == key.1);
        return entry.map_or(Cell::Unsaid(None), |entry| Cell::Said(Cow::Borrowed(entry)));
    }
    if let Some(value) = entries.first().and_then(|entry| entry.get(&key.1)) {
        return Cell::Said(Cow::Owned(single(key, value.clone())));
    }
    let mut unknown = entries.iter().flat_map(|entry| &entry.unknown);
    // The keys of an unknown mapping are unknown too.
    let outer = key.1.split('.').next().unwrap_or_default();
    if unknown.any(|name| *name == key.1 || name == outer) {
        return Cell::Unknown;
    }
    Cell::Unsaid(Some(preset::of(of, &key.1, &document.path)))
}

/// A field as an entry of its own.
fn single(key: &Key, value: Json) -> Entry {
    Entry { fields: vec![(key.1.clone(), value)], ..Entry::default() }
}

/// How many lines a project needs if `above` holds.
fn cost(of: Section, cell: &Cell<'_>, above: Option<&Entry>) -> u64 {
    match (cell, above) {
        (Cell::Free, _) | (Cell::Unknown | Cell::Unsaid(_), None) => 0,
        (Cell::Said(own), None) => lines(of, own),
        (Cell::Said(own), Some(above)) if **own == *above => 0,
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

/// The entry that a project must declare to keep its value if `above` holds; `None` if it cannot.
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

/// How many lines an entry takes, or a field as one.
fn lines(of: Section, entry: &Entry) -> u64 {
    let part = Part::new(of, vec![entry.clone()]);
    let text = part.item().map(|item| match item.node {
        // The section's own key takes a line anyway.
        Node::Map(items) if !is_whole(of) => write::document(&items),
        Node::List(_) => write::document(&[item])
            .split_once('\n')
            .map_or(String::new(), |(_, rest)| rest.to_owned()),
        _ => write::document(&[item]),
    });
    text.map_or(0, |text| text.lines().count() as u64)
}

/// The claims that hold for projects directly in the group at `at`, each once.
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

/// Removes from `document` what the claims declare, and adds overrides.
fn settle(document: &mut Document, claims: &[&Claim]) {
    let (mut ignored, mut moved) = (BTreeSet::new(), BTreeSet::new());
    for claim in claims {
        let Claim { key, of, entry: above, .. } = claim;
        let said = match cell(document, key, *of) {
            Cell::Free => {
                if document.unread.contains(&key.0) {
                    ignored.insert(key.0);
                }
                continue;
            }
            Cell::Said(own) if *own == *above => None,
            Cell::Said(own) => otherwise(*of, &own, above),
            Cell::Unsaid(Some(preset)) => Some(single(key, preset)),
            Cell::Unsaid(None) | Cell::Unknown => continue,
        };
        moved.insert(key.0);
        remove(document, key, *of);
        if let Some(said) = said {
            add(&mut document.parts, *of, said);
        }
    }
    document.ignored.extend(ignored);
    document.parts.iter_mut().for_each(arrange);
    document.parts.retain(|part| !part.is_empty() || !moved.contains(part.of.section));
    document.parts.sort_by_key(Part::place);
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

/// Adds an entry, or its fields to an existing one.
fn add(parts: &mut Vec<Part>, of: Section, entry: Entry) {
    let at = parts.iter().position(|part| part.of.section == of.section).unwrap_or_else(|| {
        parts.push(Part::new(of, Vec::new()));
        parts.len() - 1
    });
    let entries = &mut parts[at].entries;
    match entries.first_mut().filter(|_| !is_whole(of)) {
        Some(own) => own.fields.extend(entry.fields),
        None => entries.push(entry),
    }
}

/// Sorts entries and fields.
fn arrange(part: &mut Part) {
    part.entries.sort_by(|a, b| a.key.cmp(&b.key));
    let of = part.of;
    part.entries.iter_mut().for_each(|entry| sort(of, &mut entry.fields));
}

/// Sorts fields in the documented order.
fn sort(of: Section, fields: &mut [(String, Json)]) {
    let specs = of.table().specs();
    fields.sort_by_cached_key(|(name, _)| {
        let (outer, inner) = name.split_once('.').unwrap_or((name, ""));
        let at = specs.iter().position(|spec| spec.name == outer);
        let keys = at.and_then(|at| specs[at].schema["properties"].as_object());
        (at, keys.and_then(|keys| keys.keys().position(|key| key == inner)))
    });
}
