//! Checks that compare several groups and projects.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::{CheckContext, ContainersByPath, declared_values, find_repeats};
use crate::{
    address::{groups_above, parent_group_path},
    catalogue::{
        self,
        constraints::{self, Constraint, ConstraintEffect},
        shares,
    },
    desired::{Container, DeclaredEntry, EntryPresence, find_circles},
    field::{NamedObject, Scope, Uniqueness},
    level::AccessLevel,
    manifest::{
        faults::{Faults, NodePosition, placeholders, texts},
        read::document::identify_entry,
    },
    origin::{Origin, Sourced},
    value::Value,
};

/// Records in each container the shares of the groups above. Records in each group whether a run
/// may create a declared project directly in this group.
pub(super) fn mark_namespaces(containers: &mut [Container]) {
    let groups = containers.iter().filter(|container| container.scope == Scope::Group);
    let group_shares = groups.filter_map(|group| {
        let shares = group.section(shares::SECTION)?.present_entries();
        Some((group.path.to_lowercase(), shares.map(|share| share.key.as_str().into()).collect()))
    });
    let shares_by_group: HashMap<String, Vec<Arc<str>>> = group_shares.collect();
    for container in containers.iter_mut().filter(|_| !shares_by_group.is_empty()) {
        let path = container.path.to_lowercase();
        let inherited_shares = groups_above(&path).filter_map(|group| shares_by_group.get(group));
        container.lifecycle.share_paths_above = inherited_shares.flatten().cloned().collect();
    }
    let new_projects = containers.iter().filter(|container| {
        container.scope == Scope::Project && container.creation_policy.create_fields().is_some()
    });
    let parent_groups: HashSet<_> = new_projects
        .filter_map(|project| Some(parent_group_path(&project.path)?.to_lowercase()))
        .collect();
    for group in containers.iter_mut().filter(|container| container.scope == Scope::Group) {
        group.lifecycle.may_get_new_projects = parent_groups.contains(&group.path.to_lowercase());
    }
}

/// Reports values that a declared parent group does not allow, and containers below a project.
pub(super) fn check_parents(
    containers_by_path: &ContainersByPath<'_>,
    context: &CheckContext,
    faults: &mut Faults,
) {
    for (path, container) in
        containers_by_path.iter().filter(|(_, container)| context.manages(&container.path))
    {
        if container.scope == Scope::Group {
            check_constraints(container, container, faults);
        }
        for parent in
            path.match_indices('/').filter_map(|(slash, _)| containers_by_path.get(&path[..slash]))
        {
            if parent.scope == Scope::Project {
                let origins = [&container.origin, &parent.origin];
                faults.report_values(
                    texts::BELOW_PROJECT,
                    origins,
                    placeholders![path = parent.path],
                );
                continue;
            }
            check_constraints(container, parent, faults);
            check_inherited_entries(container, parent, faults);
            check_inherited_levels(container, parent, faults);
        }
    }
}

/// Reports entries of `container` that collide with an entry of `group`, a group above it: equal
/// names that must be unique, a second entry where only one is allowed, or the absence of an entry
/// that the container inherits.
fn check_inherited_entries(container: &Container, group: &Container, faults: &mut Faults) {
    for section in &container.sections {
        let kind = section.kind;
        let Some(inherited_section) = group.section(kind.section) else { continue };
        if kind.detail.is_some() && !kind.scoped_kind.inherited.is_empty() {
            for inherited_entry in inherited_section.present_entries() {
                let key = &inherited_entry.key;
                if let Some(entry) = section.entry(key).filter(|_| section.is_declared_absent(key))
                {
                    let origins = [&entry.origin, &inherited_entry.origin];
                    let args = placeholders![key, path = group.path];
                    faults.report_keys(texts::INHERITED_REMOVAL, origins, args);
                }
            }
        }
        if !kind.may_collide_with(&group.path, container.scope, &container.path) {
            continue;
        }
        let entries = section.present_entries();
        for entry in entries.filter(|entry| kind.exclusive_key(&entry.key).is_some()) {
            let colliding_entry = inherited_section
                .present_entries()
                .find(|other| kind.collides_with_parent(&entry.key, &other.key));
            let Some(inherited_entry) = colliding_entry else { continue };
            let problem_texts = match kind.is_name_unique_above() {
                _ if kind.is_name_unique_in_group() => texts::SHARED_NAME,
                true => texts::INHERITED_NAME,
                false => texts::INHERITED_EXCLUSIVE,
            };
            let what = kind.exclusive_key(&entry.key).unwrap_or_default();
            let args =
                placeholders![path = group.path, noun = kind.noun, key = inherited_entry.key, what];
            faults.report_keys(problem_texts, [&entry.origin, &inherited_entry.origin], args);
        }
    }
}

/// Warns about members of `container` with a lower level than in `group`, a group above it. This is
/// not an error, because a member who already had this level keeps it.
fn check_inherited_levels(container: &Container, group: &Container, faults: &mut Faults) {
    if container.is_watched || group.is_watched {
        return;
    }
    let Some(inherited_section) = group.section("members") else { return };
    for entry in container.present_entries("members") {
        let inherited_entry = inherited_section.entry(&entry.key);
        let inherited_level = inherited_entry
            .filter(|other| other.state == EntryPresence::Present)
            .and_then(access_level);
        let Some(((level, origin), (higher_level, higher_origin))) =
            access_level(entry).zip(inherited_level)
        else {
            continue;
        };
        if level.number < higher_level.number {
            let args = placeholders![path = group.path, level = higher_level.word];
            faults.report_values(texts::INHERITED_ACCESS, [&origin, &higher_origin], args);
        }
    }
}

/// The declared level of a member, with its origin.
fn access_level(entry: &DeclaredEntry) -> Option<(AccessLevel, Origin)> {
    let field = entry.fields.get("access_level")?;
    Some((AccessLevel::parse(field.value.plain_json()?)?, field.origin))
}

/// Reports values of `container` that `group` does not allow. `group` is the container itself or a
/// group above it.
fn check_constraints(container: &Container, group: &Container, faults: &mut Faults) {
    let is_group_above = container.path != group.path;
    for constraint in constraints::all_constraints()
        .filter(|constraint| constraint.includes_groups || is_group_above)
    {
        let Some(group_field) =
            group.setting(&constraint.group_setting.section, &constraint.group_setting.field)
        else {
            check_private_start(constraint, container, group, faults);
            continue;
        };
        let Some(limit) = group_field.value.plain_json() else { continue };
        let (setting, path) = (&constraint.group_setting.field, &group.path);
        let Some(name) = &constraint.constrained.field else {
            let mut entries = container.present_entries(&constraint.constrained.section);
            if let Some(entry) = entries.find(|entry| {
                constraint.forbids(limit, container.scope)
                    && constraint.applies_to(&container.path, &entry.key)
            }) {
                // An entry that exists already remains valid, so this is only a warning.
                let args = placeholders![setting, path, text = constraint.text];
                let fault = faults.report_key(texts::LOCKED, &entry.origin, args);
                fault.set_related(NodePosition::value(&group_field.origin));
            }
            continue;
        };
        let Some(field) = container.setting(&constraint.constrained.section, name) else {
            continue;
        };
        let Some(value) =
            field.value.plain_json().filter(|value| constraint.contradicts(limit, value))
        else {
            continue;
        };
        let (args, origins) =
            (placeholders![name, setting, path, limit], [&field.origin, &group_field.origin]);
        if constraint.effect == ConstraintEffect::Bounds {
            let max_text = limit
                .as_str()
                .map(|max_value| if value.is_boolean() { "false" } else { max_value });
            let help = max_text.map(|max_text| {
                format!("write `{max_text}`, or raise `{setting}` of the group first")
            });
            faults.report_values(texts::BEYOND_GROUP, origins, args).set_optional_help(help);
        } else {
            faults.report_values(texts::OVERRULED_BY_GROUP, origins, args);
        }
    }
}

/// Reports a visibility that is higher than private if `group`, a group above, starts private. A
/// group without a declared visibility starts private if this run creates the group.
fn check_private_start(
    constraint: &Constraint,
    container: &Container,
    group: &Container,
    faults: &mut Faults,
) {
    let name = constraint.constrained.field.as_deref().filter(|name| *name == "visibility");
    let visibility = name.and_then(|name| container.setting(&constraint.constrained.section, name));
    let Some(field) = visibility else { return };
    let is_wider = field
        .value
        .plain_json()
        .is_some_and(|value| constraint.contradicts(&"private".into(), value));
    if is_wider && group.creation_policy.create_fields().is_some() {
        let origins = [&field.origin, &group.origin];
        faults.report_values(texts::STARTS_PRIVATE, origins, placeholders![path = group.path]);
    }
}

/// Reports fields that name a declared group instead of a project, a project instead of a group, or
/// a project that is deleted.
pub(super) fn check_named_scopes(
    containers: &[Container],
    containers_by_path: &ContainersByPath<'_>,
    faults: &mut Faults,
) {
    for section in containers.iter().flat_map(|container| &container.sections) {
        for spec in section.kind.specs() {
            let Some(scope) = spec.field.names.and_then(NamedObject::scope) else { continue };
            for (entry, field) in declared_values(section, spec) {
                let path = field.value.text().unwrap_or_default();
                let Some(named_container) = containers_by_path.get(&path.to_lowercase()) else {
                    continue;
                };
                if named_container.scope == scope {
                    let absent_origin = named_container.lifecycle.absent_origin();
                    if let Some(absent_origin) =
                        absent_origin.filter(|_| entry.state == EntryPresence::Present)
                    {
                        let args = placeholders![field = spec.name, path];
                        faults.report_values(
                            texts::DELETED_PROJECT,
                            [&field.origin, absent_origin],
                            args,
                        );
                    }
                    continue;
                }
                let problem_texts = match section.kind.section {
                    "job_token_allowlist" => texts::GROUP_IN_ALLOWLIST,
                    "job_token_groups_allowlist" => texts::PROJECT_IN_ALLOWLIST,
                    _ => texts::OTHER_SCOPE,
                };
                let args = placeholders![
                    field = spec.name,
                    needed = scope.noun(),
                    path,
                    noun = named_container.scope.noun()
                ];
                faults.report_values(problem_texts, [&field.origin, &named_container.origin], args);
            }
        }
    }
}

/// Reports projects that are created from each other in a circle: as a fork, or with the members of
/// another project.
pub(super) fn check_circular_sources(
    containers_by_path: &ContainersByPath<'_>,
    faults: &mut Faults,
) {
    let list_sources = |path: &String| {
        let sources = [catalogue::fork_of::FORK_OF, catalogue::source::MEMBERS_FROM_FIELD]
            .into_iter()
            .filter_map(|name| declared_source(containers_by_path.get(path)?, name));
        sources.collect::<Vec<_>>()
    };
    let find_source = |source: &Sourced<Value>| {
        let path = source.value.text().unwrap_or_default().to_lowercase();
        containers_by_path.get_key_value(&path).map(|(path, _)| path)
    };
    let list_source_paths =
        |path| list_sources(path).iter().filter_map(&find_source).collect::<Vec<_>>();
    for (_, mut circle) in find_circles(containers_by_path.keys(), list_source_paths) {
        // Another check reports a project that names itself.
        if circle.len() < 2 {
            continue;
        }
        let first_position = (0..circle.len()).min_by_key(|index| circle[*index]);
        circle.rotate_left(first_position.unwrap_or_default());
        let origins =
            circle.iter().zip(circle.iter().cycle().skip(1)).filter_map(|(path, next)| {
                let sources = list_sources(path);
                let source = sources.into_iter().find(|source| find_source(source) == Some(*next));
                Some(source?.origin)
            });
        let origins: Vec<_> = origins.collect();
        let [first_origin, .., last_origin] = &origins[..] else { continue };
        let paths = circle.iter().chain(circle.first()).map(|path| format!("`{path}`"));
        let chain = paths.collect::<Vec<_>>().join(" from ");
        faults.report_values(texts::CIRCULAR, [first_origin, last_origin], placeholders![chain]);
    }
}

/// The declared source of `project`: the value of its field `name`.
fn declared_source(project: &Container, name: &str) -> Option<Sourced<Value>> {
    let create_value = project.creation_policy.create_fields().and_then(|fields| fields.get(name));
    create_value.or_else(|| project.section(name)?.entries.first()?.fields.get(name))
}

/// Reports two groups, or two projects, in one group with the same display name.
pub(super) fn check_display_names(containers: &[Container], faults: &mut Faults) {
    let names = containers.iter().filter_map(|container| {
        let Sourced { value, origin } = container.setting("settings", "name")?;
        let group = parent_group_path(&container.path)?;
        let key = (container.scope.noun(), group.to_lowercase(), value.text()?.to_owned());
        Some((key, (container, group, origin)))
    });
    for ((first_container, _, first_origin), (container, group, origin)) in find_repeats(names) {
        if container.path != first_container.path {
            let args = placeholders![path = first_container.path, group];
            faults.report_values(texts::SAME_DISPLAY_NAME, [&origin, &first_origin], args);
        }
    }
}

/// Reports different values for one object that several projects share.
pub(super) fn check_shared_fields(containers: &[Container], faults: &mut Faults) {
    let mut first_values = HashMap::new();
    for section in containers.iter().flat_map(|container| &container.sections) {
        let specs = section.kind.specs().iter();
        for spec in specs.filter(|spec| spec.field.among == Uniqueness::Shared) {
            let mut seen_ids = BTreeSet::new();
            for (entry, field) in declared_values(section, spec) {
                let field_value = |name: &str| entry.fields.get(name).map(|field| field.value);
                let id = identify_entry(section.kind, &field_value).keys;
                // Another check reports two equal entries of one project.
                if !seen_ids.insert(id.clone()) {
                    continue;
                }
                let first_field =
                    first_values.entry((id, spec.name)).or_insert_with(|| field.clone());
                if first_field.value != field.value {
                    let args = placeholders![name = spec.name, noun = section.kind.noun];
                    let origins = [&field.origin, &first_field.origin];
                    faults.report_values(texts::NOT_SHARED, origins, args);
                }
            }
        }
    }
}
