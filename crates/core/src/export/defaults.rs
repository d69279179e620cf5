//! Moves what most projects, or subgroups, of a group have in common into the group's `Defaults`.
//!
//! What is shared is a field of a section that is a mapping, or an entry of one that is a list. For each,
//! groups are considered from the outside in: a group shares the value that more than half of the
//! projects in and below it have. A shared value costs its own lines, and those of projects that must
//! override it. It saves the lines of projects that no longer need them. It is made only if it
//! saves lines, and a group has `Defaults` only if the shared values save more than `Defaults`
//! take. A project without a shared entry is an exception of the `match`: an export declares nothing
//! absent. The choice depends only on the documents. Subgroups are handled like projects. Empty
//! sections move last, into `Defaults` that are made anyway.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    document::{DocEntry, DocSection, ExportedDocument, ExportedRule, sort_fields, sort_section},
    entry::is_expressible,
};
use crate::{
    address::{group_of, groups_above, is_literal},
    catalogue::preset,
    field::Scope,
    kind::{Section, Shape},
    steps,
    value::{Json, Object},
    yaml::write::{self, Item, OutputNode},
};

/// The minimum number of projects in a group with `Defaults`.
const MIN_PROJECTS: usize = 3;
/// The minimum number of lines that `Defaults` must save: its own five without values, plus one.
pub(super) const MIN_SAVED_LINES: u64 = 6;
/// The maximum number of exceptions of small groups; of others a tenth.
const MAX_EXCEPTIONS: usize = 3;
/// The cost of an override that cannot be expressed.
const IMPOSSIBLE_COST: u64 = 1 << 40;

/// The lines of a second `Defaults` document of a group.
const ANOTHER_DOCUMENT_LINES: u64 = 3;

/// The key of a shared value: a field of a mapping, or an entry.
pub(super) type SharedKey = (&'static str, String);

/// The value in one project.
enum ProjectValue<'d> {
    /// Not known and not relevant: the project ignores rules in this section.
    Irrelevant,
    /// Not known, so it must not be declared.
    Unknown,
    /// Declared in the document.
    Declared(Cow<'d, DocEntry>),
    /// Not in the document; the service has this value.
    Undeclared(Option<Json>),
}

/// A group with its projects.
struct GroupProjects {
    path: String,
    /// The position of the group above.
    above: Option<usize>,
    /// The projects directly in it.
    projects: Vec<usize>,
    /// The projects in it and below.
    projects_below: Vec<usize>,
    may_share: bool,
}

/// A value that a group declares for the projects below it.
struct SharedValue {
    group: usize,
    key: SharedKey,
    section: Section,
    entry: DocEntry,
    /// The paths of those below the group that have no such entry.
    except: Vec<String>,
    saved_lines: u64,
}

/// Moves common values of `scope` out of `documents`, which are sorted by path, into the returned
/// `Defaults`.
pub(super) fn extract_defaults(
    documents: &mut [ExportedDocument],
    scope: Scope,
) -> Vec<ExportedRule> {
    let mut groups = group_documents(documents, scope);
    let values = loop {
        let mut values = shared_values(documents, &groups, scope);
        let mut shared: BTreeMap<(usize, Vec<String>), u64> = BTreeMap::new();
        for value in &values {
            *shared.entry((value.group, value.except.clone())).or_default() += value.saved_lines;
        }
        values.retain(|value| {
            value.except.is_empty()
                || shared[&(value.group, value.except.clone())] > ANOTHER_DOCUMENT_LINES
        });
        let mut saved: BTreeMap<usize, u64> = BTreeMap::new();
        values.iter().for_each(|value| *saved.entry(value.group).or_default() += value.saved_lines);
        let unprofitable: Vec<_> =
            saved.iter().filter(|(_, saves)| **saves < MIN_SAVED_LINES).collect();
        if unprofitable.is_empty() {
            break values;
        }
        unprofitable.into_iter().for_each(|(at, _)| groups[*at].may_share = false);
    };
    for group in 0..groups.len() {
        for project in groups[group].projects.clone() {
            remove_shared_values(
                &mut documents[project],
                &effective_values(&groups, &values, group),
            );
        }
    }
    let mut all: BTreeMap<(usize, Vec<String>), Vec<DocSection>> = BTreeMap::new();
    for SharedValue { group, except, section, entry, .. } in values {
        add_entry(all.entry((group, except)).or_default(), section, entry);
    }
    let rules = all.into_iter().map(|((at, except), sections)| {
        let group = groups[at].path.clone();
        let path = if group.is_empty() { "**" } else { &*format!("{group}/**") };
        let mut matched = Object::from_iter([("path".to_owned(), path.into())]);
        if !except.is_empty() {
            matched.insert("except".to_owned(), except.clone().into());
        }
        let head = [Item::value("kind", "Defaults"), Item::value("match", Json::Object(matched))];
        let mut rule = ExportedRule::new(scope, group, head, sections);
        if except.is_empty() {
            move_empty_sections(&mut rule, documents);
        }
        rule
    });
    rules.collect()
}

/// Moves empty sections into `defaults`, if these hold for every document below the group and no
/// such section is unread.
fn move_empty_sections(defaults: &mut ExportedRule, documents: &mut [ExportedDocument]) {
    let group_prefix = format!("{}/", defaults.group).to_lowercase();
    let documents_below = documents.iter_mut().filter(|document| {
        let is_below =
            group_prefix == "/" || document.path.to_lowercase().starts_with(&group_prefix);
        is_below && document.scope == defaults.scope
    });
    let mut documents_below: Vec<_> = documents_below.collect();
    let unread: BTreeSet<_> =
        documents_below.iter().flat_map(|it| it.unread_sections.iter().copied()).collect();
    for document in &mut documents_below {
        for content in document
            .sections
            .extract_if(.., |content| content.is_empty() && !unread.contains(content.name()))
        {
            if defaults.sections.iter().all(|existing| existing.name() != content.name()) {
                defaults.sections.push(content);
            }
        }
    }
    defaults.sections.sort_by_key(DocSection::position_in_document);
}

/// The groups with members of `scope`, outer ones first.
fn group_documents(documents: &[ExportedDocument], scope: Scope) -> Vec<GroupProjects> {
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for document in documents {
        let path = match document.scope {
            Scope::Group => &*document.path,
            Scope::Project => group_of(&document.path).unwrap_or_default(),
        };
        paths.entry(path.to_lowercase()).or_insert_with(|| path.to_owned());
    }
    // What the installation sets for every top-level group is shared by all of them.
    if paths.keys().filter(|lower| !lower.contains('/')).nth(1).is_some() {
        paths.insert(String::new(), String::new());
    }
    let mut groups: Vec<GroupProjects> = Vec::new();
    let mut positions: BTreeMap<String, usize> = BTreeMap::new();
    for (lower, path) in paths {
        let above =
            groups_above(&lower).chain([""]).find_map(|outer| positions.get(outer).copied());
        positions.insert(lower, groups.len());
        groups.push(GroupProjects {
            path,
            above,
            projects: Vec::new(),
            projects_below: Vec::new(),
            may_share: false,
        });
    }
    for (at, document) in documents.iter().enumerate() {
        let group = group_of(&document.path).unwrap_or_default().to_lowercase();
        if document.scope == scope
            && let Some(group) = positions.get(&group)
        {
            groups[*group].projects.push(at);
        }
    }
    for at in (0..groups.len()).rev() {
        let group = &mut groups[at];
        group.projects_below.extend(&group.projects);
        group.may_share = group.projects_below.len() >= MIN_PROJECTS && is_literal(&group.path);
        if let Some(parent_index) = group.above {
            let projects_below = group.projects_below.clone();
            groups[parent_index].projects_below.extend(projects_below);
        }
    }
    groups
}

/// The shared values that save the most lines.
fn shared_values(
    documents: &[ExportedDocument],
    groups: &[GroupProjects],
    scope: Scope,
) -> Vec<SharedValue> {
    let projects = documents.iter().filter(|document| document.scope == scope);
    let mut counts: BTreeMap<SharedKey, (Section, usize)> = BTreeMap::new();
    for content in projects.flat_map(|document| &document.sections) {
        // Whether it is archived, or may be created, is a matter of each project.
        if matches!(content.section.shape, Shape::Switch | Shape::Container) {
            continue;
        }
        for key in content.entries.iter().flat_map(|entry| shareable_keys(content.section, entry)) {
            counts.entry(key).or_insert((content.section, 0)).1 += 1;
        }
    }
    counts.retain(|_, (_, count)| *count >= MIN_PROJECTS);
    counts
        .into_iter()
        .flat_map(|(key, (section, _))| shared_values_of(&key, section, documents, groups))
        .collect()
}

/// The keys under which values of an entry can be shared.
fn shareable_keys(section: Section, entry: &DocEntry) -> Vec<SharedKey> {
    if shares_entries(section) {
        return vec![(section.section, entry.key.clone())];
    }
    entry.fields.iter().map(|(name, _)| (section.section, name.clone())).collect()
}

/// The values of an entry that can be shared: itself, or each of its fields.
pub(super) fn shareable_values(section: Section, entry: &DocEntry) -> Vec<(SharedKey, DocEntry)> {
    let keys = shareable_keys(section, entry).into_iter();
    if shares_entries(section) {
        return keys.map(|key| (key, entry.clone())).collect();
    }
    let fields = entry.fields.iter();
    keys.zip(fields)
        .map(|(key, (_, value))| (key.clone(), field_entry(&key, value.clone())))
        .collect()
}

/// True if the entries of a section are shared as a whole, because entries can be absent; otherwise each
/// field is one.
fn shares_entries(section: Section) -> bool {
    section.shape == Shape::List || section.is_removable()
}

/// The shared values of one field or entry. Outer groups come first, because their values hold below.
fn shared_values_of(
    key: &SharedKey,
    section: Section,
    documents: &[ExportedDocument],
    groups: &[GroupProjects],
) -> Vec<SharedValue> {
    let cells: Vec<_> = documents.iter().map(|document| value_in(document, key, section)).collect();
    let mut values = Vec::new();
    let mut holds: Vec<Option<&DocEntry>> = vec![None; groups.len()];
    for (at, group) in groups.iter().enumerate() {
        holds[at] = group.above.and_then(|above| holds[above]);
        let Some(common) = majority_value(group, &cells) else { continue };
        let [costs_before, costs_after] = [holds[at], Some(common)].map(|above| -> u64 {
            group
                .projects_below
                .iter()
                .map(|project| line_cost(section, &cells[*project], above))
                .sum()
        });
        let except: Vec<_> = group
            .projects_below
            .iter()
            .filter(|project| matches!(cells[**project], ProjectValue::Undeclared(None)))
            .map(|project| documents[*project].path.to_string())
            .collect();
        // Those with it use a profile then.
        if except.len() > MAX_EXCEPTIONS.max(group.projects_below.len() / 10) {
            continue;
        }
        let saves = costs_before.saturating_sub(costs_after + line_count(section, common));
        // One saved line is not worth a second place to look at.
        if saves > 1 {
            holds[at] = Some(common);
            let entry = common.clone();
            values.push(SharedValue {
                group: at,
                key: key.clone(),
                section,
                entry,
                except,
                saved_lines: saves,
            });
        }
    }
    values
}

/// The value of more than half of the projects in and below a group, if it can be shared.
fn majority_value<'c>(
    group: &GroupProjects,
    cells: &'c [ProjectValue<'_>],
) -> Option<&'c DocEntry> {
    let project_cells = group.projects_below.iter().map(|project| &cells[*project]);
    let values = project_cells.filter(|cell| !matches!(cell, ProjectValue::Irrelevant)).map(
        |cell| match cell {
            ProjectValue::Declared(entry) => Some(&**entry),
            _ => None,
        },
    );
    // Majority vote: pairs of different values cancel out, so only what remains can be the
    // majority.
    let mut candidate = (None, 0);
    for value in values.clone() {
        match candidate {
            (_, 0) => candidate = (value, 1),
            (most, count) => candidate.1 = if most == value { count + 1 } else { count - 1 },
        }
    }
    let majority = candidate.0.filter(|entry| group.may_share && entry.state.is_none())?;
    let count = values.clone().filter(|value| *value == Some(majority)).count();
    (count * 2 > values.count()).then_some(majority)
}

/// The value of `key` in `document`; a field is an entry of its own.
fn value_in<'d>(
    document: &'d ExportedDocument,
    key: &SharedKey,
    section: Section,
) -> ProjectValue<'d> {
    steps::step();
    let content = document.section(key.0);
    let is_out =
        document.scope != section.scoped_kind.scope || document.unread_sections.contains(&key.0);
    if is_out || (document.is_archived && content.is_none()) {
        return ProjectValue::Irrelevant;
    }
    let entries = content.map(|content| &content.entries[..]).unwrap_or_default();
    let outer = key.1.split('.').next().unwrap_or_default();
    let field = section.table().get(outer).filter(|_| !shares_entries(section));
    let is_of_top_groups = section.is_only_top_level()
        || field.is_some_and(|of| of.field.available.is_only_top_level());
    if is_of_top_groups && document.path.contains('/') {
        return ProjectValue::Unknown;
    }
    if shares_entries(section) {
        let entry = entries.iter().find(|entry| entry.key == key.1);
        return entry.map_or(ProjectValue::Undeclared(None), |entry| {
            ProjectValue::Declared(Cow::Borrowed(entry))
        });
    }
    if let Some(value) = entries.first().and_then(|entry| entry.get(&key.1)) {
        return ProjectValue::Declared(Cow::Owned(field_entry(key, value.clone())));
    }
    let mut unknown = entries.iter().flat_map(|entry| &entry.unknown_fields);
    // The keys of an unknown mapping are unknown too.
    if unknown.any(|name| *name == key.1 || name == outer) {
        return ProjectValue::Unknown;
    }
    ProjectValue::Undeclared(Some(preset::service_default(section, &key.1, &document.path)))
}

/// A field as a separate entry.
fn field_entry(key: &SharedKey, value: Json) -> DocEntry {
    DocEntry { fields: vec![(key.1.clone(), value)], ..DocEntry::default() }
}

/// How many lines a project needs if `above` holds.
fn line_cost(section: Section, cell: &ProjectValue<'_>, above: Option<&DocEntry>) -> u64 {
    match (cell, above) {
        (ProjectValue::Irrelevant, _)
        | (ProjectValue::Unknown | ProjectValue::Undeclared(_), None) => 0,
        (ProjectValue::Declared(entry), None) => line_count(section, entry),
        (ProjectValue::Declared(entry), Some(above)) if **entry == *above => 0,
        (ProjectValue::Declared(entry), Some(above)) => override_entry(section, entry, above)
            .map_or(IMPOSSIBLE_COST, |entry| line_count(section, &entry)),
        (ProjectValue::Unknown, Some(_)) => IMPOSSIBLE_COST,
        (ProjectValue::Undeclared(None), Some(_)) => 1,
        (ProjectValue::Undeclared(Some(preset)), Some(above)) => {
            let name = above.fields.first().map(|(name, _)| name.as_str()).unwrap_or_default();
            if is_expressible(section, name, preset) { 1 } else { IMPOSSIBLE_COST }
        }
    }
}

/// The entry that a project must declare to keep its value if `above` holds; `None` if it cannot.
fn override_entry(section: Section, declared: &DocEntry, above: &DocEntry) -> Option<DocEntry> {
    if declared.state.is_some() || !shares_entries(section) {
        return Some(declared.clone());
    }
    let mut entry = DocEntry { fields: Vec::new(), ..declared.clone() };
    for (name, value) in &declared.fields {
        if section.identity.contains(&name.as_str()) || above.get(name) != Some(value) {
            entry.fields.push((name.clone(), value.clone()));
        }
    }
    for (name, _) in above.fields.iter().filter(|(name, _)| declared.get(name).is_none()) {
        let preset = preset::service_default(section, name, "");
        if declared.unknown_fields.contains(name) || !is_expressible(section, name, &preset) {
            return None;
        }
        entry.fields.push((name.clone(), preset));
    }
    sort_fields(section, &mut entry.fields);
    Some(entry)
}

/// How many lines an entry takes, or a field as one.
pub(super) fn line_count(section: Section, entry: &DocEntry) -> u64 {
    let content = DocSection::new(section, vec![entry.clone()]);
    let text = content.item().map(|item| match item.node {
        // The section's own key takes a line anyway.
        OutputNode::Map(items) if !shares_entries(section) => write::document(&items),
        OutputNode::List(_) => write::document(&[item])
            .split_once('\n')
            .map_or(String::new(), |(_, rest)| rest.to_owned()),
        _ => write::document(&[item]),
    });
    text.map_or(0, |text| text.lines().count() as u64)
}

/// The shared values that hold for projects directly in the group at `at`, each once.
fn effective_values<'c>(
    groups: &[GroupProjects],
    values: &'c [SharedValue],
    at: usize,
) -> Vec<&'c SharedValue> {
    let mut effective: BTreeMap<&SharedKey, &SharedValue> = BTreeMap::new();
    let mut next = Some(at);
    while let Some(at) = next {
        for shared in values.iter().filter(|value| value.group == at) {
            effective.entry(&shared.key).or_insert(shared);
        }
        next = groups[at].above;
    }
    effective.into_values().collect()
}

/// Removes from `document` what `values` declare, and adds overrides.
fn remove_shared_values(document: &mut ExportedDocument, values: &[&SharedValue]) {
    let (mut ignored, mut moved) = (BTreeSet::new(), BTreeSet::new());
    let mut overrides = Vec::new();
    for value in values {
        let SharedValue { key, section, entry: above, .. } = value;
        let overriding = match value_in(document, key, *section) {
            ProjectValue::Irrelevant => {
                if document.unread_sections.contains(&key.0) {
                    ignored.insert(key.0);
                }
                continue;
            }
            ProjectValue::Declared(entry) if *entry == *above => None,
            ProjectValue::Declared(entry) => override_entry(*section, &entry, above),
            ProjectValue::Undeclared(Some(preset)) => Some(field_entry(key, preset)),
            ProjectValue::Undeclared(None) | ProjectValue::Unknown => continue,
        };
        moved.insert(key.clone());
        overrides.extend(overriding.map(|entry| (*section, entry)));
    }
    document.sections_ignoring_rules.extend(ignored);
    replace_values(document, &moved, overrides);
}

/// Removes the values at `keys` from `document`, and adds these. Sections without values are removed.
pub(super) fn replace_values(
    document: &mut ExportedDocument,
    keys: &BTreeSet<SharedKey>,
    new: Vec<(Section, DocEntry)>,
) {
    for content in &mut document.sections {
        let name = content.name();
        let is_moved = |key: &str| keys.contains(&(name, key.to_owned()));
        if shares_entries(content.section) {
            content.entries.retain(|entry| !is_moved(&entry.key));
        } else {
            let entries = content.entries.iter_mut();
            entries.for_each(|entry| entry.fields.retain(|(name, _)| !is_moved(name)));
        }
    }
    for (section, entry) in new {
        add_entry(&mut document.sections, section, entry);
    }
    let moved: BTreeSet<_> = keys.iter().map(|(section, _)| *section).collect();
    document.sections.iter_mut().for_each(sort_section);
    document.sections.retain(|content| !content.is_empty() || !moved.contains(content.name()));
    document.sections.sort_by_key(DocSection::position_in_document);
}

/// Adds an entry, or its fields to an existing one.
pub(super) fn add_entry(sections: &mut Vec<DocSection>, section: Section, entry: DocEntry) {
    let at = sections.iter().position(|content| content.name() == section.section).unwrap_or_else(
        || {
            sections.push(DocSection::new(section, Vec::new()));
            sections.len() - 1
        },
    );
    let entries = &mut sections[at].entries;
    match entries.first_mut().filter(|_| !shares_entries(section)) {
        Some(existing) => existing.fields.extend(entry.fields),
        None => entries.push(entry),
    }
}
