//! Checks of what several groups and projects declare together.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{ByPath, Context, repeats};
use crate::{
    address::group_of,
    catalogue::{
        self,
        constraints::{self, Constraint, How},
    },
    desired::{self, Container, Creation},
    field::{Among, Named, Scope},
    level::Level,
    manifest::{
        faults::{Faults, Spot},
        read::document::identity,
    },
    origin::Sourced,
    value::Value,
};

/// Notes which groups projects may be created in.
pub(super) fn get_projects(containers: &mut [Container]) {
    let created =
        |of: &&Container| of.scope == Scope::Project && matches!(of.create, Creation::Allowed(_));
    let in_group = |of: &Container| Some(group_of(&of.path)?.to_lowercase());
    let groups: HashSet<_> = containers.iter().filter(created).filter_map(in_group).collect();
    for group in containers.iter_mut().filter(|of| of.scope == Scope::Group) {
        group.life.gets_projects = groups.contains(&group.path.to_lowercase());
    }
}

/// Reports what a declared group above does not allow, and a project above.
pub(super) fn above(all: &ByPath<'_>, context: &Context, faults: &mut Faults) {
    for (path, container) in all.iter().filter(|(_, container)| context.manages(&container.path)) {
        for above in path.match_indices('/').filter_map(|(at, _)| all.get(&path[..at])) {
            if above.scope == Scope::Project {
                let message = format!("`{}` is a project, which contains no other", above.path);
                let within = faults.error("path", message, Spot::value(&container.origin));
                within.related(Spot::value(&above.origin), "declared as a project here");
                within.help("correct one of the paths, or declare the outer one as a group");
                continue;
            }
            bounds(container, above, faults);
            taken(container, above, faults);
            below_inherited(container, above, faults);
        }
    }
}

/// Reports entries of `container` whose names an entry of `group`, above it, has, and those of which a
/// project can have only one if it gets another one from the group.
fn taken(container: &Container, group: &Container, faults: &mut Faults) {
    for own in &container.sections {
        let is_shared =
            own.of.identity.iter().any(|name| own.of.field(name).among == Among::UniqueAbove);
        let Some(other) = group.section(own.of.section) else { continue };
        let present = |entry: &&desired::Entry| entry.state == desired::State::Present;
        for entry in own.entries.iter().filter(present) {
            let only = own.of.only_one(&entry.key);
            let counts = |other: &&desired::Entry| match other.key == entry.key {
                true => is_shared,
                false => only.is_some() && own.of.only_one(&other.key) == only,
            };
            let Some(first) = other.entries.iter().filter(present).find(counts) else { continue };
            let (path, noun, key) = (&group.path, own.of.noun, &first.key);
            let (code, message) = match only {
                Some(what) => {
                    ("exclusive", format!("a project has one {what}, and gets `{key}` of `{path}`"))
                }
                None => {
                    ("duplicate-entry", format!("the group `{path}` has a {noun} with this name"))
                }
            };
            // Both may be there: the one of the group may have come later.
            let twice = faults.warning(code, message, Spot::key(&entry.origin));
            twice.related(Spot::key(&first.origin), "declared here");
            twice.help("take one of them away: the service refuses to create it below the other, which counts there too");
        }
    }
}

/// Reports members of `container` with a lower level than `group`, above it, gives them. They may have had
/// it before, and then it stays.
fn below_inherited(container: &Container, group: &Container, faults: &mut Faults) {
    if container.is_watched || group.is_watched {
        return;
    }
    let members = |of| Container::section(of, "members");
    let (Some(own), Some(above)) = (members(container), members(group)) else { return };
    let level = |entry: &desired::Entry| {
        let field = entry.fields.get("access_level")?;
        Some((Level::parse(field.value.plain()?)?, field.origin))
    };
    let present = |entry: &&desired::Entry| entry.state == desired::State::Present;
    for entry in own.entries.iter().filter(present) {
        let other = above.entries.binary_search_by(|other| other.key.cmp(&entry.key)).ok();
        let other = other.map(|at| &above.entries[at]).filter(present);
        let Some(((own, at), (higher, other))) = level(entry).zip(other.and_then(level)) else {
            continue;
        };
        if own.number < higher.number {
            let message =
                format!("the group `{}` above makes this user {}", group.path, higher.word);
            let below = faults.warning("inherited-access", message, Spot::value(&at));
            below.related(Spot::value(&other), "declared here");
            below.help(format!(
                "write `access_level: {}` or more, or take the entry away: the service refuses to give a lower level",
                higher.word
            ));
        }
    }
}

/// Reports what `group`, above `container`, does not allow in it.
fn bounds(container: &Container, group: &Container, faults: &mut Faults) {
    for row in constraints::all() {
        let Some(deciding) = group.setting(&row.by.section, &row.by.field) else {
            starts_private(row, container, group, faults);
            continue;
        };
        let Some(by) = deciding.value.plain() else { continue };
        let (setting, path) = (&row.by.field, &group.path);
        let Some(name) = &row.over.field else {
            let entries =
                container.section(&row.over.section).into_iter().flat_map(|of| &of.entries);
            let mut new = entries.filter(|entry| entry.state == desired::State::Present);
            if let Some(entry) = new.next().filter(|_| row.forbids(by, container.scope)) {
                // They may have been there before.
                let message = format!("`{setting}` of `{path}` {}", row.text);
                let forbidden = faults.warning("locked", message, Spot::key(&entry.origin));
                forbidden.related(Spot::value(&deciding.origin), "which decides");
                forbidden.help("take one of the two away: the service refuses to create the entry");
            }
            continue;
        };
        let Some(field) = container.setting(&row.over.section, name) else { continue };
        let Some(value) = field.value.plain().filter(|value| row.contradicts(by, value)) else {
            continue;
        };
        let at = Spot::value(&field.origin);
        let fault = if row.how == How::Bounds {
            let message = format!("`{name}` goes beyond the `{setting}` of `{path}`");
            let most = by.as_str().map(|by| if value.is_boolean() { "false" } else { by });
            let help =
                most.map(|most| format!("write `{most}`, or raise `{setting}` of the group first"));
            faults.error("too-visible", message, at).help_if(help)
        } else {
            let message = format!("`{name}` has no effect: `{path}` has `{setting}: {by}`");
            faults.warning("no-effect", message, at)
        };
        fault.related(Spot::value(&deciding.origin), "which decides");
    }
}

/// Reports what is more visible than `group` above it, which starts private if this run creates it.
fn starts_private(row: &Constraint, container: &Container, group: &Container, faults: &mut Faults) {
    let name = row.over.field.as_deref().filter(|name| *name == "visibility");
    let declared = name.and_then(|name| container.setting(&row.over.section, name));
    let is_wider = |value: &Value| {
        value.plain().is_some_and(|value| row.contradicts(&"private".into(), value))
    };
    let Some(field) = declared.filter(|field| is_wider(&field.value)) else { return };
    if group.create.fields().is_some() {
        let message = format!("`{}` declares no visibility: it is created private", group.path);
        let wider = faults.warning("too-visible", message, Spot::value(&field.origin));
        wider.related(Spot::value(&group.origin), "declared here");
        wider.help("declare the visibility of the group too");
    }
}

/// Reports fields that name a declared group where a project must be, or the other way round.
pub(super) fn of_another_scope(
    containers: &[Container],
    by_path: &ByPath<'_>,
    faults: &mut Faults,
) {
    for section in containers.iter().flat_map(|container| &container.sections) {
        for spec in section.of.table().specs() {
            let scope = match spec.field.names {
                Some(Named::Group) => Scope::Group,
                Some(Named::Project) => Scope::Project,
                _ => continue,
            };
            for field in section.entries.iter().filter_map(|entry| entry.fields.get(spec.name)) {
                let path = field.value.text().unwrap_or_default();
                let Some(other) = by_path.get(&path.to_lowercase()) else { continue };
                if other.scope != scope {
                    let (needed, is) = (scope.noun(), other.scope.noun());
                    let message =
                        format!("`{}` must name a {needed}, and `{path}` is a {is}", spec.name);
                    let wrong = faults.error("path", message, Spot::value(&field.origin));
                    wrong.related(Spot::value(&other.origin), "declared here");
                    wrong.help(match section.of.section {
                        "job_token_allowlist" => {
                            format!("write it as `job_token_groups_allowlist: [{{group: {path}}}]`")
                        }
                        "job_token_groups_allowlist" => {
                            format!("write it as `job_token_allowlist: [{{project: {path}}}]`")
                        }
                        _ => format!("name a {needed}, or correct the other document"),
                    });
                }
            }
        }
    }
}

/// Reports projects that are to be made from each other: as forks, or with each other's members.
pub(super) fn sources(by_path: &ByPath<'_>, faults: &mut Faults) {
    for name in [catalogue::fork_of::FORK_OF, catalogue::source::MEMBERS_FROM] {
        let source = |project: &Container| {
            let fork = || project.section(name)?.entries.first()?.fields.get(name);
            project.create.fields().and_then(|fields| fields.get(name)).or_else(fork)
        };
        for (path, project) in by_path {
            let Some(own) = source(project) else { continue };
            let first = own.value.text().unwrap_or_default().to_lowercase();
            let Some(other) = by_path.get(&first).and_then(|first| source(first)) else { continue };
            let is_back = other.value.text().is_some_and(|of| of.eq_ignore_ascii_case(path));
            // Once, and a project that names itself is another fault.
            if is_back && first < *path {
                let message = format!("`{name}` names `{first}`, which names this project");
                let circle = faults.error("circular", message, Spot::value(&own.origin));
                circle.related(Spot::value(&other.origin), "declared here");
                circle.help(format!("take one of the two `{name}` away"));
            }
        }
    }
}

/// Reports groups or projects in one group with the same display name, at both places.
pub(super) fn display_names(containers: &[Container], faults: &mut Faults) {
    let names = containers.iter().filter_map(|of| {
        let Sourced { value, origin } = of.setting("settings", "name")?;
        let group = group_of(&of.path)?;
        let key = (of.scope, group.to_lowercase(), value.text()?.to_owned());
        Some((key, (of, group, origin)))
    });
    for ((other, _, first), (of, group, origin)) in repeats(names) {
        if of.path != other.path {
            let message = format!("`{}` has the same display name", other.path);
            let twice = faults.error("duplicate-entry", message, Spot::value(&origin));
            twice.related(Spot::value(&first), "declared here");
            twice.help(format!("give one another: the service takes it once in `{group}`"));
        }
    }
}

/// Reports values that differ although they belong to one object of several projects, at both places.
pub(super) fn shared(containers: &[Container], faults: &mut Faults) {
    let mut seen = HashMap::new();
    for section in containers.iter().flat_map(|container| &container.sections) {
        for spec in
            section.of.table().specs().iter().filter(|spec| spec.field.among == Among::Shared)
        {
            let mut own = BTreeSet::new();
            for entry in &section.entries {
                let Some(field) = entry.fields.get(spec.name) else { continue };
                let value = |name: &str| entry.fields.get(name).map(|field| field.value);
                let id = identity(section.of, &value).keys;
                // Two entries of one project are another fault.
                if !own.insert(id.clone()) {
                    continue;
                }
                let first = seen.entry((id, spec.name)).or_insert_with(|| field.clone());
                if first.value != field.value {
                    let (name, noun) = (spec.name, section.of.noun);
                    let message = format!("this {noun} has another `{name}` elsewhere");
                    let other =
                        faults.error("duplicate-entry", message, Spot::value(&field.origin));
                    other.related(Spot::value(&first.origin), "the other one");
                    other.help(format!(
                        "write the same: all projects with the {noun} share its `{name}`"
                    ));
                }
            }
        }
    }
}
