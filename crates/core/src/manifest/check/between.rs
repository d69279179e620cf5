//! Checks that compare several groups and projects.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::{CheckContext, DeclaredPaths, declared_values, find_repeats, present_entries};
use crate::{
    address::{group_of, groups_above},
    catalogue::{
        self,
        constraints::{self, Constraint, ConstraintEffect},
        shares,
    },
    desired::{Container, CreationPolicy, DesiredEntry, EntryPresence},
    field::{Among, NamedObject, Scope},
    level::AccessLevel,
    manifest::{
        faults::{Faults, NodePosition, texts, words},
        read::document::identity,
    },
    origin::{Origin, Sourced},
    value::Value,
};

/// Marks groups in which projects may be created, and containers below shared groups.
pub(super) fn mark_namespaces(containers: &mut [Container]) {
    let groups = containers.iter().filter(|container| container.scope == Scope::Group);
    let group_shares = groups.filter_map(|group| {
        let shares = present_entries(group.section(shares::SECTION)?);
        Some((group.path.to_lowercase(), shares.map(|share| share.key.as_str().into()).collect()))
    });
    let shares_by_group: HashMap<String, Vec<Arc<str>>> = group_shares.collect();
    for container in containers.iter_mut().filter(|_| !shares_by_group.is_empty()) {
        let path = container.path.to_lowercase();
        let inherited_shares = groups_above(&path).filter_map(|group| shares_by_group.get(group));
        container.lifecycle.shares_above = inherited_shares.flatten().cloned().collect();
    }
    let groups: HashSet<_> = containers
        .iter()
        .filter(|container| {
            container.scope == Scope::Project
                && matches!(container.create, CreationPolicy::Allowed(_))
        })
        .filter_map(|container| Some(group_of(&container.path)?.to_lowercase()))
        .collect();
    for group in containers.iter_mut().filter(|container| container.scope == Scope::Group) {
        group.lifecycle.may_get_projects = groups.contains(&group.path.to_lowercase());
    }
}

/// Reports values that a declared parent group does not allow, and containers below a project.
pub(super) fn check_parents(
    declared: &DeclaredPaths<'_>,
    context: &CheckContext,
    faults: &mut Faults,
) {
    for (path, container) in
        declared.iter().filter(|(_, container)| context.manages(&container.path))
    {
        if container.scope == Scope::Group {
            check_constraints(container, container, faults);
        }
        for parent in path.match_indices('/').filter_map(|(at, _)| declared.get(&path[..at])) {
            if parent.scope == Scope::Project {
                let at = [&container.origin, &parent.origin];
                faults.report_values(texts::BELOW_PROJECT, at, words![path = parent.path]);
                continue;
            }
            check_constraints(container, parent, faults);
            check_inherited_entries(container, parent, faults);
            check_inherited_levels(container, parent, faults);
        }
    }
}

/// Reports entries of `container` whose names an entry of `group`, above it, has, and those of which a
/// project can have only one if it gets another one from the group.
fn check_inherited_entries(container: &Container, group: &Container, faults: &mut Faults) {
    for section in &container.sections {
        let kind = section.section;
        let Some(inherited) = group.section(kind.section) else { continue };
        let entries = present_entries(section);
        for entry in entries.filter(|entry| kind.exclusive_key(&entry.key).is_some()) {
            let first = present_entries(inherited)
                .find(|other| kind.collides_with_parent(&entry.key, &other.key));
            let Some(first) = first else { continue };
            let is_name = kind.is_name_unique_above();
            let texts = if is_name { texts::INHERITED_NAME } else { texts::INHERITED_EXCLUSIVE };
            let what = kind.exclusive_key(&entry.key).unwrap_or_default();
            let words = words![path = group.path, noun = kind.noun, key = first.key, what];
            faults.report_keys(texts, [&entry.origin, &first.origin], words);
        }
    }
}

/// Reports members of `container` with a lower level than `group`, above it, gives them. They may have had
/// it before, and then it stays.
fn check_inherited_levels(container: &Container, group: &Container, faults: &mut Faults) {
    if container.is_watched || group.is_watched {
        return;
    }
    let Some(inherited) = group.section("members") else { return };
    for entry in container.section("members").into_iter().flat_map(present_entries) {
        let other = inherited.entry(&entry.key);
        let other =
            other.filter(|other| other.state == EntryPresence::Present).and_then(access_level);
        let Some(((level, at), (higher, other_at))) = access_level(entry).zip(other) else {
            continue;
        };
        if level.number < higher.number {
            let words = words![path = group.path, level = higher.word];
            faults.report_values(texts::INHERITED_ACCESS, [&at, &other_at], words);
        }
    }
}

/// The declared level of a member, and its place.
fn access_level(entry: &DesiredEntry) -> Option<(AccessLevel, Origin)> {
    let field = entry.fields.get("access_level")?;
    Some((AccessLevel::parse(field.value.plain()?)?, field.origin))
}

/// Reports values of `container` that `group` does not allow. `group` is the container itself or a
/// group above it.
fn check_constraints(container: &Container, group: &Container, faults: &mut Faults) {
    let is_above = container.path != group.path;
    for row in constraints::all_constraints().filter(|row| row.groups || is_above) {
        let Some(group_field) = group.setting(&row.by.section, &row.by.field) else {
            check_private_start(row, container, group, faults);
            continue;
        };
        let Some(limit) = group_field.value.plain() else { continue };
        let (setting, path) = (&row.by.field, &group.path);
        let related = NodePosition::value(&group_field.origin);
        let Some(name) = &row.over.field else {
            let section = container.section(&row.over.section);
            let mut entries = section.into_iter().flat_map(present_entries);
            if let Some(entry) = entries.find(|entry| {
                row.forbids(limit, container.scope) && row.applies_to(&container.path, &entry.key)
            }) {
                // Existing entries stay, so this is only a warning.
                let words = words![setting, path, text = row.text];
                faults.report_key(texts::LOCKED, &entry.origin, words).related(related);
            }
            continue;
        };
        let Some(field) = container.setting(&row.over.section, name) else { continue };
        let Some(value) = field.value.plain().filter(|value| row.contradicts(limit, value)) else {
            continue;
        };
        let words = words![name, setting, path, limit];
        if row.how == ConstraintEffect::Bounds {
            let most = limit
                .as_str()
                .map(|max_value| if value.is_boolean() { "false" } else { max_value });
            let help =
                most.map(|most| format!("write `{most}`, or raise `{setting}` of the group first"));
            let fault = faults.report_value(texts::BEYOND_GROUP, &field.origin, words);
            fault.related(related).help_if(help);
        } else {
            faults.report_value(texts::OVERRULED_BY_GROUP, &field.origin, words).related(related);
        }
    }
}

/// Reports what is more visible than `group` above it, which starts private if this run creates it.
fn check_private_start(
    row: &Constraint,
    container: &Container,
    group: &Container,
    faults: &mut Faults,
) {
    let name = row.over.field.as_deref().filter(|name| *name == "visibility");
    let declared = name.and_then(|name| container.setting(&row.over.section, name));
    let Some(field) = declared else { return };
    let is_wider =
        field.value.plain().is_some_and(|value| row.contradicts(&"private".into(), value));
    if is_wider && group.create.all_fields().is_some() {
        let at = [&field.origin, &group.origin];
        faults.report_values(texts::STARTS_PRIVATE, at, words![path = group.path]);
    }
}

/// Reports fields that name a declared group where a project must be, or the other way round.
pub(super) fn check_named_scopes(
    containers: &[Container],
    declared: &DeclaredPaths<'_>,
    faults: &mut Faults,
) {
    for section in containers.iter().flat_map(|container| &container.sections) {
        for spec in section.section.specs() {
            let Some(scope) = spec.field.names.and_then(NamedObject::scope) else { continue };
            for (_, field) in declared_values(section, spec) {
                let path = field.value.text().unwrap_or_default();
                let other = declared.get(&path.to_lowercase());
                let Some(other) = other.filter(|other| other.scope != scope) else { continue };
                let texts = match section.section.section {
                    "job_token_allowlist" => texts::GROUP_IN_ALLOWLIST,
                    "job_token_groups_allowlist" => texts::PROJECT_IN_ALLOWLIST,
                    _ => texts::OTHER_SCOPE,
                };
                let words = words![
                    field = spec.name,
                    needed = scope.noun(),
                    path,
                    noun = other.scope.noun()
                ];
                faults.report_values(texts, [&field.origin, &other.origin], words);
            }
        }
    }
}

/// Reports projects that are to be made from each other: as forks, or with each other's members.
pub(super) fn check_circular_sources(declared: &DeclaredPaths<'_>, faults: &mut Faults) {
    for name in [catalogue::fork_of::FORK_OF, catalogue::source::MEMBERS_FROM] {
        for (path, project) in declared {
            let Some(source) = declared_source(project, name) else { continue };
            let first = source.value.text().unwrap_or_default().to_lowercase();
            let other = declared.get(&first).and_then(|first| declared_source(first, name));
            let Some(other) = other else { continue };
            let is_mutual = other.value.text().is_some_and(|of| of.eq_ignore_ascii_case(path));
            // Once, and a project that names itself is another fault.
            if is_mutual && first < *path {
                let at = [&source.origin, &other.origin];
                faults.report_values(texts::CIRCULAR, at, words![name, first]);
            }
        }
    }
}

/// The project that `project` is made from, by the field `name`.
fn declared_source(project: &Container, name: &str) -> Option<Sourced<Value>> {
    let created_from = project.create.all_fields().and_then(|fields| fields.get(name));
    created_from.or_else(|| project.section(name)?.entries.first()?.fields.get(name))
}

/// Reports groups or projects in one group with the same display name, at both places.
pub(super) fn check_display_names(containers: &[Container], faults: &mut Faults) {
    let names = containers.iter().filter_map(|container| {
        let Sourced { value, origin } = container.setting("settings", "name")?;
        let group = group_of(&container.path)?;
        let key = (container.scope, group.to_lowercase(), value.text()?.to_owned());
        Some((key, (container, group, origin)))
    });
    for ((first, _, first_at), (container, group, at)) in find_repeats(names) {
        if container.path != first.path {
            let words = words![path = first.path, group];
            faults.report_values(texts::SAME_DISPLAY_NAME, [&at, &first_at], words);
        }
    }
}

/// Reports values that differ although they belong to one object of several projects, at both places.
pub(super) fn check_shared_fields(containers: &[Container], faults: &mut Faults) {
    let mut first_values = HashMap::new();
    for section in containers.iter().flat_map(|container| &container.sections) {
        let specs = section.section.specs().iter();
        for spec in specs.filter(|spec| spec.field.among == Among::Shared) {
            let mut ids = BTreeSet::new();
            for (entry, field) in declared_values(section, spec) {
                let value = |name: &str| entry.fields.get(name).map(|field| field.value);
                let id = identity(section.section, &value).keys;
                // Two entries of one project are another fault.
                if !ids.insert(id.clone()) {
                    continue;
                }
                let first = first_values.entry((id, spec.name)).or_insert_with(|| field.clone());
                if first.value != field.value {
                    let words = words![name = spec.name, noun = section.section.noun];
                    let at = [&field.origin, &first.origin];
                    faults.report_values(texts::NOT_SHARED, at, words);
                }
            }
        }
    }
}
