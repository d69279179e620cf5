//! Moves values that most projects, or subgroups, of a group have in common into the group's
//! `Defaults`.
//!
//! A shared value is a field of a mapping section, or an entry of a list section. Outer groups are
//! processed before inner groups. A group shares a value if more than half of the projects below
//! the group have the value.
//!
//! A shared value costs its own lines and the lines of overrides, and saves its lines in the
//! projects that have the value. A value is moved only if the move saves lines. A group gets
//! `Defaults` only if all its values together save more lines than `Defaults` need.
//!
//! A project without a shared entry becomes an exception of the `match`, because an export does not
//! declare entries absent. The choice of shared values depends only on the documents. Subgroups are
//! handled like projects. Empty sections move last, and only into existing `Defaults`.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    iter::successors,
};

use super::{
    document::{DocEntry, DocSection, ExportedDocument, ExportedRule, sort_fields},
    entry::is_expressible,
    shared::{
        MIN_SAVED_LINES, SharedKey, add_entry, field_entry, line_count, replace_values,
        shareable_keys, shareable_sections, shares_entries,
    },
};
use crate::{
    address::{groups_above, is_literal, parent_group_path},
    catalogue::preset,
    field::Scope,
    kind::Section,
    steps,
    value::{Json, Object},
    yaml::write::MapItem,
};

/// The minimum number of projects in a group with `Defaults`.
const MIN_PROJECTS: usize = 3;
/// The maximum number of exceptions in small groups. In larger groups, the maximum is a tenth of the
/// projects.
const MAX_EXCEPTIONS: usize = 3;
/// The cost, in lines, of an override that no manifest can express.
const IMPOSSIBLE_COST: u64 = 1 << 40;

/// The number of lines that a second `Defaults` document of a group needs.
const ANOTHER_DOCUMENT_LINES: u64 = 3;

/// The value that one project has for a shared key.
enum ProjectValue<'d> {
    /// The value does not matter, because rules do not apply to this section of the project.
    Irrelevant,
    /// The value is unknown and must not be declared.
    Unknown,
    /// The document declares the value.
    Declared(Cow<'d, DocEntry>),
    /// The document does not declare the value. For a field, contains the default of the service.
    /// For an entry, contains `None`, because the project has no such entry.
    Undeclared(Option<Json>),
}

/// A group with its projects, as positions in the list of documents. If `Defaults` for groups are
/// extracted, its subgroups take the role of the projects.
#[derive(Default)]
struct GroupProjects {
    path: String,
    /// The position of the group above in the list of groups.
    parent: Option<usize>,
    /// The projects directly in the group.
    projects: Vec<usize>,
    /// The projects in the group and in its subgroups.
    projects_below: Vec<usize>,
    /// True if the group may have `Defaults`.
    may_share: bool,
}

/// The position of a group, and the paths of the projects below the group to which its `Defaults` do
/// not apply.
type RuleKey = (usize, Vec<String>);

/// A value that a group declares for the projects below it.
struct SharedValue {
    /// The rule that declares the value. It excludes the projects that do not have the entry.
    rule: RuleKey,
    key: SharedKey,
    section: Section,
    entry: DocEntry,
    saved_lines: u64,
}

/// Moves common values from the documents of `scope` into the returned `Defaults`. `documents` must be
/// sorted by path.
pub(super) fn extract_defaults(
    documents: &mut [ExportedDocument],
    scope: Scope,
) -> Vec<ExportedRule> {
    let mut groups = group_documents(documents, scope);
    let values = choose_values(documents, &mut groups, scope);
    for group_index in 0..groups.len() {
        let shared = effective_values(&groups, &values, group_index);
        for project_index in &groups[group_index].projects {
            remove_shared_values(&mut documents[*project_index], &shared);
        }
    }
    let mut sections_by_rule: BTreeMap<RuleKey, Vec<DocSection>> = BTreeMap::new();
    for SharedValue { rule, section, entry, .. } in values {
        add_entry(sections_by_rule.entry(rule).or_default(), section, entry);
    }
    let rules = sections_by_rule.into_iter().map(|((group_index, excluded_paths), sections)| {
        let group = groups[group_index].path.clone();
        let path = if group.is_empty() { "**" } else { &*format!("{group}/**") };
        let mut match_value = Object::from_iter([("path".to_owned(), path.into())]);
        if !excluded_paths.is_empty() {
            match_value.insert("except".to_owned(), excluded_paths.clone().into());
        }
        let head = [
            MapItem::value("kind", "Defaults"),
            MapItem::value("match", Json::Object(match_value)),
        ];
        let mut rule = ExportedRule::new(scope, group, head, sections);
        if excluded_paths.is_empty() {
            move_empty_sections(&mut rule, documents);
        }
        rule
    });
    rules.collect()
}

/// The values that groups can share and that save more lines than their `Defaults` need. A group
/// whose values save too few lines may no longer share values.
fn choose_values(
    documents: &[ExportedDocument],
    groups: &mut [GroupProjects],
    scope: Scope,
) -> Vec<SharedValue> {
    let projects = documents.iter().filter(|document| document.scope == scope);
    let mut counts: BTreeMap<SharedKey, (Section, usize)> = BTreeMap::new();
    for doc_section in projects.flat_map(shareable_sections) {
        let section = doc_section.section;
        for key in doc_section.entries.iter().flat_map(|entry| shareable_keys(section, entry)) {
            counts.entry(key).or_insert((section, 0)).1 += 1;
        }
    }
    counts.retain(|_, (_, count)| *count >= MIN_PROJECTS);
    loop {
        let values = counts
            .iter()
            .flat_map(|(key, (section, _))| find_shared_values(key, *section, documents, groups));
        let mut values: Vec<_> = values.collect();
        let mut saved_lines_by_rule: BTreeMap<RuleKey, u64> = BTreeMap::new();
        for value in &values {
            *saved_lines_by_rule.entry(value.rule.clone()).or_default() += value.saved_lines;
        }
        values.retain(|SharedValue { rule, .. }| {
            rule.1.is_empty() || saved_lines_by_rule[rule] > ANOTHER_DOCUMENT_LINES
        });
        let mut saved_lines_by_group: BTreeMap<usize, u64> = BTreeMap::new();
        for value in &values {
            *saved_lines_by_group.entry(value.rule.0).or_default() += value.saved_lines;
        }
        saved_lines_by_group.retain(|_, saved_lines| *saved_lines < MIN_SAVED_LINES);
        if saved_lines_by_group.is_empty() {
            return values;
        }
        saved_lines_by_group.keys().for_each(|index| groups[*index].may_share = false);
    }
}

/// Moves the empty sections of all documents below the group of `defaults` into `defaults`, except
/// sections that are unread in one of the documents.
fn move_empty_sections(defaults: &mut ExportedRule, documents: &mut [ExportedDocument]) {
    let group_prefix = format!("{}/", defaults.group).to_lowercase();
    let documents_below = documents.iter_mut().filter(|document| {
        let is_below =
            group_prefix == "/" || document.path.to_lowercase().starts_with(&group_prefix);
        is_below && document.scope == defaults.scope
    });
    let mut documents_below: Vec<_> = documents_below.collect();
    let unread_sections: BTreeSet<_> = documents_below
        .iter()
        .flat_map(|exported| exported.unread_sections.iter().copied())
        .collect();
    for document in &mut documents_below {
        for doc_section in document.sections.extract_if(.., |doc_section| {
            doc_section.is_empty() && !unread_sections.contains(doc_section.name())
        }) {
            if defaults.sections.iter().all(|existing| existing.name() != doc_section.name()) {
                defaults.sections.push(doc_section);
            }
        }
    }
    defaults.sections.sort_by_key(DocSection::position_in_document);
}

/// All groups, outer groups first, with the positions of the documents of `scope` in each group.
fn group_documents(documents: &[ExportedDocument], scope: Scope) -> Vec<GroupProjects> {
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for document in documents {
        let path = match document.scope {
            Scope::Group => &*document.path,
            Scope::Project => parent_group_path(&document.path).unwrap_or_default(),
        };
        paths.entry(path.to_lowercase()).or_insert_with(|| path.to_owned());
    }
    // With several top-level groups, a root with an empty path can share values among all of them.
    if paths.keys().filter(|lower| !lower.contains('/')).nth(1).is_some() {
        paths.insert(String::new(), String::new());
    }
    let mut groups: Vec<GroupProjects> = Vec::new();
    let mut positions: BTreeMap<String, usize> = BTreeMap::new();
    for (lower_path, path) in paths {
        let parent =
            groups_above(&lower_path).chain([""]).find_map(|outer| positions.get(outer).copied());
        positions.insert(lower_path, groups.len());
        groups.push(GroupProjects { path, parent, ..GroupProjects::default() });
    }
    for (index, document) in documents.iter().enumerate() {
        let group = parent_group_path(&document.path).unwrap_or_default().to_lowercase();
        if document.scope == scope
            && let Some(group_index) = positions.get(&group)
        {
            groups[*group_index].projects.push(index);
        }
    }
    for index in (0..groups.len()).rev() {
        let group = &mut groups[index];
        group.projects_below.extend(&group.projects);
        group.may_share = group.projects_below.len() >= MIN_PROJECTS && is_literal(&group.path);
        if let Some(parent_index) = group.parent {
            let projects_below = group.projects_below.clone();
            groups[parent_index].projects_below.extend(projects_below);
        }
    }
    groups
}

/// The values of the field or entry `key` that groups can share to save lines. Outer groups come
/// first, because their values also apply in their subgroups.
fn find_shared_values(
    key: &SharedKey,
    section: Section,
    documents: &[ExportedDocument],
    groups: &[GroupProjects],
) -> Vec<SharedValue> {
    let project_values: Vec<_> =
        documents.iter().map(|document| find_value(document, key, section)).collect();
    let mut values = Vec::new();
    let mut effective_entries: Vec<Option<&DocEntry>> = vec![None; groups.len()];
    for (group_index, group) in groups.iter().enumerate() {
        effective_entries[group_index] = group.parent.and_then(|parent| effective_entries[parent]);
        let Some(common_entry) = majority_value(group, &project_values) else { continue };
        let [costs_before, costs_after] =
            [effective_entries[group_index], Some(common_entry)].map(|inherited| -> u64 {
                let values = group.projects_below.iter().map(|project| &project_values[*project]);
                values.map(|value| line_cost(section, value, inherited)).sum()
            });
        let lacking_projects = group
            .projects_below
            .iter()
            .filter(|project| matches!(project_values[**project], ProjectValue::Undeclared(None)));
        let excluded_paths: Vec<_> =
            lacking_projects.map(|project| documents[*project].path.to_string()).collect();
        // An entry with more exceptions is not moved into `Defaults`; it may move into a profile.
        if excluded_paths.len() > MAX_EXCEPTIONS.max(group.projects_below.len() / 10) {
            continue;
        }
        let saved_lines =
            costs_before.saturating_sub(costs_after + line_count(section, common_entry));
        // Saving a single line does not justify moving the value to another document.
        if saved_lines > 1 {
            effective_entries[group_index] = Some(common_entry);
            let (rule, key, entry) =
                ((group_index, excluded_paths), key.clone(), common_entry.clone());
            values.push(SharedValue { rule, key, section, entry, saved_lines });
        }
    }
    values
}

/// The value that more than half of the projects in and below a group have; `None` if there is no
/// such value, or if the value cannot be shared.
fn majority_value<'c>(
    group: &GroupProjects,
    project_values: &'c [ProjectValue<'_>],
) -> Option<&'c DocEntry> {
    let group_values = group.projects_below.iter().map(|project| &project_values[*project]);
    let values = group_values.filter_map(|value| match value {
        ProjectValue::Irrelevant => None,
        ProjectValue::Declared(entry) => Some(Some(&**entry)),
        ProjectValue::Undeclared(_) | ProjectValue::Unknown => Some(None),
    });
    // Boyer-Moore majority vote: pairs of different values cancel out, so only the remaining value can
    // be the majority.
    let mut candidate = (None, 0);
    for value in values.clone() {
        match candidate {
            (_, 0) => candidate = (value, 1),
            (leader, count) => candidate.1 = if leader == value { count + 1 } else { count - 1 },
        }
    }
    let majority = candidate.0.filter(|entry| group.may_share && entry.state.is_none())?;
    let count = values.clone().filter(|value| *value == Some(majority)).count();
    (count * 2 > values.count()).then_some(majority)
}

/// The value of `key` in `document`. A field is returned as an entry with only this field.
fn find_value<'d>(
    document: &'d ExportedDocument,
    key: &SharedKey,
    section: Section,
) -> ProjectValue<'d> {
    steps::count_step();
    let doc_section = document.section(key.0);
    let is_irrelevant =
        document.scope != section.scoped_kind.scope || document.unread_sections.contains(&key.0);
    if is_irrelevant || (document.is_archived && doc_section.is_none()) {
        return ProjectValue::Irrelevant;
    }
    let entries = doc_section.map(|content| &content.entries[..]).unwrap_or_default();
    let outer_key = key.1.split('.').next().unwrap_or_default();
    let field = section.spec(outer_key).filter(|_| !shares_entries(section));
    let is_top_level_only = section.is_only_top_level()
        || field.is_some_and(|spec| spec.field.available.is_only_top_level());
    if is_top_level_only && document.path.contains('/') {
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
    let mut unknown_fields = entries.iter().flat_map(|entry| &entry.unknown_fields);
    // The keys of an unknown mapping are unknown too.
    if unknown_fields.any(|name| *name == key.1 || name == outer_key) {
        return ProjectValue::Unknown;
    }
    ProjectValue::Undeclared(Some(preset::service_default(section, &key.1, &document.path)))
}

/// The number of lines that a project needs for `value` if its groups declare `inherited`.
fn line_cost(section: Section, value: &ProjectValue<'_>, inherited: Option<&DocEntry>) -> u64 {
    match (value, inherited) {
        (ProjectValue::Irrelevant, _)
        | (ProjectValue::Unknown | ProjectValue::Undeclared(_), None) => 0,
        (ProjectValue::Declared(entry), None) => line_count(section, entry),
        (ProjectValue::Declared(entry), Some(group_entry)) if **entry == *group_entry => 0,
        (ProjectValue::Declared(entry), Some(group_entry)) => {
            override_entry(section, entry, group_entry)
                .map_or(IMPOSSIBLE_COST, |entry| line_count(section, &entry))
        }
        (ProjectValue::Unknown, Some(_)) => IMPOSSIBLE_COST,
        (ProjectValue::Undeclared(None), Some(_)) => 1,
        (ProjectValue::Undeclared(Some(default_value)), Some(group_entry)) => {
            let name =
                group_entry.fields.first().map(|(name, _)| name.as_str()).unwrap_or_default();
            if is_expressible(section, name, default_value) { 1 } else { IMPOSSIBLE_COST }
        }
    }
}

/// The entry that a project must declare to keep its value if its groups declare `inherited`.
/// `None` if no manifest can express this entry.
fn override_entry(section: Section, declared: &DocEntry, inherited: &DocEntry) -> Option<DocEntry> {
    if declared.state.is_some() || !shares_entries(section) {
        return Some(declared.clone());
    }
    let mut entry = DocEntry { fields: Vec::new(), ..declared.clone() };
    for (name, value) in &declared.fields {
        if section.identity.contains(&name.as_str()) || inherited.get(name) != Some(value) {
            entry.fields.push((name.clone(), value.clone()));
        }
    }
    for (name, _) in inherited.fields.iter().filter(|(name, _)| declared.get(name).is_none()) {
        let default_value = preset::service_default(section, name, "");
        if declared.unknown_fields.contains(name) || !is_expressible(section, name, &default_value)
        {
            return None;
        }
        entry.fields.push((name.clone(), default_value));
    }
    sort_fields(section, &mut entry.fields);
    Some(entry)
}

/// The shared values that apply to projects directly in the group at `group_index`, one for each
/// key.
fn effective_values<'c>(
    groups: &[GroupProjects],
    values: &'c [SharedValue],
    group_index: usize,
) -> Vec<&'c SharedValue> {
    let mut effective_by_key: BTreeMap<&SharedKey, &SharedValue> = BTreeMap::new();
    for index in successors(Some(group_index), |index| groups[*index].parent) {
        for shared in values.iter().filter(|value| value.rule.0 == index) {
            effective_by_key.entry(&shared.key).or_insert(shared);
        }
    }
    effective_by_key.into_values().collect()
}

/// Removes the values that the shared `values` declare from `document`, and adds overrides.
fn remove_shared_values(document: &mut ExportedDocument, values: &[&SharedValue]) {
    let (mut ignored_sections, mut moved_keys) = (BTreeSet::new(), BTreeSet::new());
    let mut overrides = Vec::new();
    for value in values {
        let SharedValue { key, section, entry: shared_entry, .. } = value;
        let new_entry = match find_value(document, key, *section) {
            ProjectValue::Irrelevant => {
                if document.unread_sections.contains(&key.0) {
                    ignored_sections.insert(key.0);
                }
                continue;
            }
            ProjectValue::Declared(entry) if *entry == *shared_entry => None,
            ProjectValue::Declared(entry) => override_entry(*section, &entry, shared_entry),
            ProjectValue::Undeclared(Some(default_value)) => Some(field_entry(key, default_value)),
            ProjectValue::Undeclared(None) | ProjectValue::Unknown => continue,
        };
        moved_keys.insert(key.clone());
        overrides.extend(new_entry.map(|entry| (*section, entry)));
    }
    document.sections_ignoring_rules.extend(ignored_sections);
    replace_values(document, &moved_keys, overrides);
}
