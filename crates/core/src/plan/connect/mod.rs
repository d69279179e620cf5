//! Relations between steps, mostly of different containers: edges, which order one step after
//! another, and conflicts.
//!
//! - A step in a new group, or a step that names the group, comes after the creation of the group.
//!   A project that is created from another new project comes after that project.
//! - A project is deleted after the steps that name it, such as a copy of its members.
//! - A container is created after changes of settings that it inherits from its groups.
//! - A step in a group that the run moves comes after the move, unless it narrows visibility.
//! - A container takes a display name after its sibling with that name leaves or is renamed.
//! - A container takes a path after the former container at that path has moved, and after the
//!   groups above have moved. An entry takes a name after the rename that frees the name.
//! - What leaves a group moves before the group changes settings or gets entries that affect it.
//! - Nothing is more visible than its group: a group is widened before its contents, and narrowed
//!   after them.
//! - A field that a setting of a group limits is changed after the setting. An entry that the setting
//!   forbids is created while the setting allows it.
//! - A rule that names users comes after the groups above give them access, and before groups remove
//!   that access.
//! - If a group above must not have an entry with the same name, an entry is created before the
//!   entry of the group, or after the entry of the group is removed.
//! - Members are copied from a project after they change. A project is forked while it allows forks.
//! - A user with a level in a group has at least that level in everything below: levels are lowered
//!   top down.
//!
//! An edge points to a step of the nearest group above, and that step has its own edge to the next
//! group. Therefore the number of edges per step does not grow with the depth.

mod entries;
mod graph;
mod people;
mod sources;
mod visible;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::order::narrows_visibility;
use crate::{
    address::{Address, groups_above, parent_group_path},
    catalogue::{
        constraints::{self, Constraint, ConstraintEffect, GroupSetting},
        settings,
    },
    diff::{
        Action, Edge, FieldChange, Problem, Step,
        texts::{self, PlaceholderValues, ProblemTexts, placeholders},
    },
    field::{NamedObject, Scope},
    kind::{Capability, Effect},
    text,
    value::{self, Json},
};
pub(super) use graph::StepGraph;
pub(super) use people::note_lost_access;

/// The edges and conflicts that one rule finds in the steps.
#[derive(Default)]
struct StepRelations {
    /// Edges, each with the position of the later step.
    edges: Vec<(usize, Edge)>,
    /// Conflicts that no order solves.
    problems: Vec<Problem>,
}

impl StepRelations {
    /// Adds an edge: the step at the position `later_index` comes after the steps at
    /// `earlier_address`.
    fn add_edge(&mut self, later_index: usize, earlier_address: &Address, reason: &'static str) {
        self.edges.push((later_index, Edge { address: earlier_address.clone(), reason }));
    }

    /// Adds the conflict of `step` with these texts.
    fn refuse(&mut self, texts: ProblemTexts, args: PlaceholderValues<'_>, step: &Step) {
        self.problems.push(Problem::from_texts(texts, args, &step.address, &step.origin));
    }

    /// Adds the edges to `steps`, and returns the conflicts.
    fn apply(self, steps: &mut [Step]) -> Vec<Problem> {
        self.edges.into_iter().for_each(|(later, edge)| steps[later].after.push(edge));
        self.problems
    }
}

/// Adds the edges between steps of different containers. Returns the conflicts between steps.
pub(super) fn add_edges(steps: &mut [Step]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for find_relations in [
        order_after_creations,
        order_deletions,
        order_after_inherited,
        order_after_freed_names,
        order_after_namesakes,
        order_after_moves,
        order_after_freed_paths,
        order_departures,
        visible::refuse_excess_visibility,
        visible::order_visibility,
        visible::check_narrowed_groups,
        entries::order_colliding_entries,
        sources::order_sources,
        sources::order_shared_keys,
    ] {
        problems.extend(find_relations(steps).apply(steps));
    }
    for constraint in constraints::all_constraints()
        .filter(|constraint| constraint.group_setting.field != "visibility")
    {
        problems.extend(order_constraint(constraint, steps));
    }
    problems.extend(people::order_access(steps).apply(steps));
    for step in &mut *steps {
        let mut seen = HashSet::new();
        step.after.retain(|edge| seen.insert(edge.address.clone()));
    }
    problems.extend(refuse_cycles(steps));
    problems
}

/// Maps the path of each step, in lower case, to the value that `value_of` returns for the step and its
/// position.
fn map_by_path<'s, T>(
    steps: &'s [Step],
    value_of: impl Fn(usize, &'s Step) -> Option<T>,
) -> HashMap<String, T> {
    let values =
        steps.iter().enumerate().filter_map(|(index, step)| Some((step, value_of(index, step)?)));
    values.map(|(step, value)| (step.address.path.to_lowercase(), value)).collect()
}

/// The addresses of the steps for which `is_wanted` returns true, by path in lower case.
fn addresses_by_path(
    steps: &[Step],
    is_wanted: impl Fn(&Step) -> bool,
) -> HashMap<String, Vec<&Address>> {
    let mut addresses: HashMap<_, Vec<_>> = HashMap::new();
    for step in steps.iter().filter(|step| is_wanted(step)) {
        addresses.entry(step.address.path.to_lowercase()).or_default().push(&step.address);
    }
    addresses
}

/// The values of `by_path` (lower-case paths) for the groups above `path`, nearest first.
fn values_above<'m, T>(by_path: &'m HashMap<String, T>, path: &str) -> impl Iterator<Item = &'m T> {
    let path = if by_path.is_empty() { String::new() } else { path.to_lowercase() };
    let values: Vec<_> = groups_above(&path).filter_map(|group| by_path.get(group)).collect();
    values.into_iter()
}

/// A step that names a group or project of the run comes after the creation of that group or
/// project.
fn order_after_creations(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let creations = map_by_path(steps, |_, step| step.address.section.is_none().then_some(step));
    for (index, step) in steps.iter().enumerate() {
        let paths: BTreeSet<_> =
            step.awaited_objects().filter(|named| !named.contains('#')).collect();
        for path in paths {
            let creation = creations.get(&path.to_lowercase());
            let scope = creation.map_or(Scope::Group, |creation| creation.scope);
            let address = creation.map(|creation| creation.address.clone());
            let address = address.unwrap_or_else(|| Address::container((*path).into()));
            relations.add_edge(index, &address, Capability::Exists.order_reason(scope));
        }
    }
    relations
}

/// A project is deleted after the steps of other containers that name it.
fn order_deletions(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let deletions = map_by_path(steps, |index, step| {
        (step.action == Action::Delete && step.address.section.is_none()).then_some(index)
    });
    for step in steps.iter().filter(|_| !deletions.is_empty()) {
        let paths: BTreeSet<_> = step.named_paths().map(str::to_lowercase).collect();
        for deletion in paths.iter().filter_map(|path| deletions.get(path)) {
            if steps[*deletion].address.path != step.address.path {
                relations.add_edge(*deletion, &step.address, "what names it comes first");
            }
        }
    }
    relations
}

/// A container is created after the changes of inherited settings in the groups above.
fn order_after_inherited(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    // Skip new groups: all steps in a new group come after its creation.
    let addresses_by_group = addresses_by_path(steps, |step| {
        !step.provides(Capability::Exists) && step.effects.contains(&Effect::AffectsNewContainers)
    });
    let reason = "a new group or project starts with the settings of the group above";
    for (index, step) in steps.iter().enumerate().filter(|(_, s)| s.provides(Capability::Exists)) {
        for setting_address in values_above(&addresses_by_group, &step.address.path).flatten() {
            relations.add_edge(index, setting_address, reason);
        }
    }
    relations
}

/// A container gets a display name after its sibling with that name is renamed.
fn order_after_freed_names(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let freed_names: BTreeMap<_, _> = steps
        .iter()
        .filter_map(|step| {
            let former_path = step.former_path().unwrap_or(&step.address.path);
            Some((name_key(step.scope, former_path, freed_name(step)?), &step.address))
        })
        .collect();
    if freed_names.is_empty() {
        return relations;
    }
    for (index, step) in steps.iter().enumerate() {
        let name = name_change(step).and_then(|change| change.after.value()?.as_str());
        let taken_name = name.or_else(|| step.provides(Capability::Exists).then_some(""));
        let taken_key = taken_name.map(|name| name_key(step.scope, &step.address.path, name));
        let rename_address = taken_key.and_then(|key| freed_names.get(&key)).copied();
        if let Some(rename_address) = rename_address.filter(|other| **other != step.address) {
            relations.add_edge(index, rename_address, NAME_REASON);
        }
    }
    relations
}

/// The maximum number of steps that a problem names between a step and the end of its circle.
const MAX_CHAIN_STEPS: usize = 8;

const NAME_REASON: &str = "its name must be free first";

/// The change of the display name of a container.
fn name_change(step: &Step) -> Option<&FieldChange> {
    let has_name = step.address.section.is_none_or(|section| section == settings::SECTION);
    has_name.then(|| step.change("name"))?
}

/// The display name that a step frees.
fn freed_name(step: &Step) -> Option<&str> {
    name_change(step)?.before.value()?.as_str()
}

/// The scope, the namespace and the `name` of the container at `path`, in lower case. An empty name
/// means the last segment of the path.
fn name_key(scope: Scope, path: &str, name: &str) -> (Scope, String, String) {
    let path = path.to_lowercase();
    let (namespace, slug) = path.rsplit_once('/').unwrap_or(("", &path));
    let name = if name.is_empty() { slug.to_owned() } else { name.to_lowercase() };
    (scope, namespace.to_owned(), name)
}

/// A container moves to another group after its namesake there leaves that group or is renamed.
fn order_after_namesakes(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let renames = map_by_path(steps, |_, step| freed_name(step).map(|_| &step.address));
    let transfers = map_by_path(steps, |_, step| transfer_namesake(step).map(|_| &step.address));
    for (index, step) in steps.iter().enumerate() {
        let Some(Some(namesake)) = transfer_namesake(step) else { continue };
        let path = namesake.to_lowercase();
        match transfers.get(&path).or_else(|| renames.get(&path)) {
            Some(address) => relations.add_edge(index, address, NAME_REASON),
            None => {
                relations.refuse(
                    texts::NAMESAKE,
                    placeholders![namesake = text::escape(namesake)],
                    step,
                );
            }
        }
    }
    relations
}

/// The namesake in the group to which a step moves its container. The outer value is `None` if the
/// container stays in its group.
fn transfer_namesake(step: &Step) -> Option<&Option<Arc<str>>> {
    step.effects.iter().find_map(|effect| match effect {
        Effect::Transfers { namesake, .. } => Some(namesake),
        _ => None,
    })
}

/// A step below a moved group comes after the move: until then the service uses the former paths. A step
/// that names a moved group or project also comes after that move.
fn order_after_moves(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let moves = map_by_path(steps, |_, step| {
        step.provides(Capability::AtDeclaredPath).then_some((&step.address, step.scope))
    });
    let reason = |scope| Capability::AtDeclaredPath.order_reason(scope);
    for (step_index, step) in steps.iter().enumerate().filter(|_| !moves.is_empty()) {
        let named_moves = step.named_paths().chain(texts_naming_groups(step)).filter_map(|path| {
            moves.get(&path.to_lowercase()).filter(|(named, _)| named.path != step.address.path)
        });
        for (move_address, scope) in named_moves.collect::<BTreeSet<_>>() {
            relations.add_edge(step_index, move_address, reason(*scope));
        }
        let nearest = values_above(&moves, &step.address.path).next();
        if let Some((move_address, scope)) = nearest.filter(|_| !narrows_visibility(step)) {
            relations.add_edge(step_index, move_address, reason(*scope));
        }
    }
    relations
}

/// The texts in the new values of a share, or of a rule that names groups. They include the paths of
/// these groups.
fn texts_naming_groups(step: &Step) -> impl Iterator<Item = &str> {
    let names_group = step.action != Action::Delete
        && step.effects.iter().any(|effect| {
            matches!(
                effect,
                Effect::Share { .. } | Effect::NeedsAccess { object_type: NamedObject::Group, .. }
            )
        });
    let values = step.changes.iter().filter_map(|change| change.after.value());
    let texts = step.address.entry.as_deref().into_iter().chain(values.flat_map(value::texts));
    texts.filter(move |_| names_group)
}

/// A step that takes a path or the name of an entry comes after the move or rename that frees it.
fn order_after_freed_paths(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let needed_addresses: HashSet<_> = steps.iter().flat_map(freeing_addresses).collect();
    let addresses = steps.iter().map(|step| &step.address);
    let freed_by_run: HashSet<_> =
        addresses.filter(|address| needed_addresses.contains(address)).collect();
    for (index, step) in steps.iter().enumerate() {
        for first in freeing_addresses(step) {
            let (problem_texts, reason) = match first.entry {
                Some(_) => (texts::RENAME_NEEDED, "it must be renamed first"),
                None => (texts::MOVE_NEEDED, "it must move first"),
            };
            if freed_by_run.contains(first) {
                relations.add_edge(index, first, reason);
            } else if !step.after.iter().any(|edge| edge.address == *first) {
                relations.refuse(problem_texts, placeholders![first], step);
            }
        }
    }
    relations
}

/// What leaves a group moves before the steps of the group that would still change it: the service
/// applies a setting to everything below the group, and refuses an entry whose name is in use there.
fn order_departures(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let transfers: Vec<_> =
        steps.iter().filter_map(|step| Some((step, step.former_path()?.to_lowercase()))).collect();
    for (index, group_step) in steps.iter().enumerate().filter(|_| !transfers.is_empty()) {
        let changes_below = constraints::all_constraints().any(|constraint| {
            constraint.group_setting.field != "visibility"
                && constraint.effect != ConstraintEffect::Forbids
                && setting_change(group_step, &constraint.group_setting).is_some()
        });
        let new_entry = entries::find_exclusive_key(group_step, group_step.taken_name());
        let new_entry = new_entry.filter(|_| group_step.scope == Scope::Group);
        if !changes_below && new_entry.is_none() {
            continue;
        }
        let group = group_step.address.path.to_lowercase();
        let is_for_projects =
            new_entry.is_some_and(|(section, ..)| section.is_name_unique_in_group());
        for (transfer, former_path) in &transfers {
            let is_direct = parent_group_path(former_path) == Some(&*group);
            let path = transfer.address.path.to_lowercase();
            let was_inside = groups_above(former_path).any(|above| above == group);
            let stays_inside = groups_above(&path).any(|above| above == group);
            if was_inside && !stays_inside || is_for_projects && is_direct {
                relations.add_edge(index, &transfer.address, "what leaves the group moves first");
            }
        }
    }
    relations
}

/// The groups, projects and entries that must free their path or name before `step`.
fn freeing_addresses(step: &Step) -> impl Iterator<Item = &Address> {
    let containers = step.followed_addresses().filter(|address| address.section.is_none());
    containers.chain(step.followed_entries().filter(|address| address.entry.is_some()))
}

/// Refuses steps that wait for each other and would never start, for example if two projects are
/// created from each other.
fn refuse_cycles(steps: &[Step]) -> Vec<Problem> {
    let cyclic_steps: BTreeMap<_, _> =
        StepGraph::from_steps(steps).find_cyclic_steps().into_iter().collect();
    let problems = cyclic_steps.keys().map(|index| {
        let mut chain: Vec<usize> = Vec::new();
        let mut earlier = cyclic_steps[index];
        while earlier != *index && !chain.contains(&earlier) && chain.len() < MAX_CHAIN_STEPS {
            chain.push(earlier);
            earlier = cyclic_steps[&earlier];
        }
        let chain = chain.iter().chain([&earlier]);
        let names: Vec<_> = chain.map(|other| format!("`{}`", steps[*other].address)).collect();
        let (step, chain_text) = (&steps[*index], names.join(", which comes after "));
        let args = placeholders![chain = chain_text];
        Problem::from_texts(texts::CIRCULAR, args, &step.address, &step.origin)
    });
    problems.collect()
}

/// The change of `setting` in a step of a group, with its values before and after.
fn setting_change<'s>(
    step: &'s Step,
    setting: &GroupSetting,
) -> Option<(&'s FieldChange, Option<&'s Json>, Option<&'s Json>)> {
    let section = step.address.section.unwrap_or(settings::SECTION);
    let has_setting = step.scope == Scope::Group && *section == setting.section;
    let change = has_setting.then(|| step.change(&setting.field))??;
    Some((change, change.before.value(), change.after.value()))
}

/// Orders steps around changes of the group's setting in `constraint`. A limited field is changed after
/// the setting. An entry is created before the setting forbids it, or after the setting allows it.
/// [`visible::order_visibility`] handles visibility, where a group may have to come last.
fn order_constraint(constraint: &'static Constraint, steps: &mut [Step]) -> Vec<Problem> {
    let (mut edges, mut problems) = (Vec::new(), Vec::new());
    let setting_changes = map_by_path(steps, |step_index, step| {
        Some((step_index, setting_change(step, &constraint.group_setting)?))
    });
    if setting_changes.is_empty() {
        return problems;
    }
    let (graph, mut followers) = (OnceCell::new(), HashMap::new());
    let limits_creation = constraint.constrained.section == "create";
    let max_settings = if constraint.from_all_ancestors { usize::MAX } else { 1 };
    for (index, step) in
        steps.iter().enumerate().filter(|(_, step)| is_constrained_by(constraint, step))
    {
        let path = step.address.path.to_lowercase();
        let deciding_steps = deciding_groups(constraint, step.scope, &path)
            .filter_map(|group| setting_changes.get(group))
            .take(max_settings);
        for (group_position, (change, value_before, value_after)) in deciding_steps {
            let group_step = &steps[*group_position];
            let [forbids_before, forbids_after] = [value_before, value_after].map(|value| {
                value.is_some_and(|group_value| constraint.forbids(group_value, step.scope))
            });
            if constraint.effect != ConstraintEffect::Forbids || (forbids_before && !forbids_after)
            {
                let reason = match value_after.and_then(|value| constraint.value_below(value)) {
                    Some(_) => "a change of the group above sets it too",
                    None => "the group above must allow it first",
                };
                // If both steps narrow visibility, the step of the group comes last;
                // `order_visibility` adds that edge.
                if !(narrows_visibility(step) && narrows_visibility(group_step)) {
                    edges.push((index, *group_position, reason));
                }
            } else if forbids_after {
                // The creation of a project depends on the group's step only if that step also
                // changes another setting that new projects start with.
                let needs_group_step = if limits_creation {
                    changes_other_inherited_setting(group_step, change)
                } else {
                    let graph = graph.get_or_init(|| StepGraph::from_steps(steps));
                    followers
                        .entry(*group_position)
                        .or_insert_with(|| graph.followers(*group_position))
                        .contains(&index)
                };
                if group_step.address.section.is_none() || needs_group_step {
                    let problem = forbidden_problem(constraint, step, group_step, change);
                    problems.extend((!problems.contains(&problem)).then_some(problem));
                } else {
                    edges.push((*group_position, index, "the group above forbids it afterwards"));
                }
            }
        }
    }
    for (later_index, earlier_index, reason) in edges {
        let later_address = steps[later_index].address.clone();
        steps[earlier_index].after.retain(|edge| edge.address != later_address);
        let address = steps[earlier_index].address.clone();
        steps[later_index].after.push(Edge { address, reason });
    }
    problems
}

/// The paths of the groups whose setting can limit an object at `path`, from the nearest up.
fn deciding_groups<'p>(
    constraint: &Constraint,
    scope: Scope,
    path: &'p str,
) -> impl Iterator<Item = &'p str> {
    let group_path = (constraint.includes_groups && scope == Scope::Group).then_some(path);
    // A setting that limits creations applies only directly in its group.
    let limits_creation = constraint.constrained.section == "create";
    let max_levels = if limits_creation { 1 } else { usize::MAX };
    group_path.into_iter().chain(groups_above(path)).take(max_levels)
}

/// True if `group_step` changes, in addition to `change`, a setting that new projects start with.
fn changes_other_inherited_setting(group_step: &Step, change: &FieldChange) -> bool {
    let mut others = group_step.changes.iter().filter(|other| other.field != change.field);
    others.any(|other| settings::is_inherited(&other.field))
}

/// True if `step` changes the field, or creates an object, that `constraint` limits.
fn is_constrained_by(constraint: &Constraint, step: &Step) -> bool {
    let section = step.address.section.unwrap_or(settings::SECTION);
    match &constraint.constrained.field {
        _ if constraint.constrained.section == "create" => step.provides(Capability::Exists),
        None => {
            let name = step.address.entry.as_deref().unwrap_or_default();
            *section == constraint.constrained.section
                && step.adds_entry()
                && constraint.applies_to(&step.address.path, name)
        }
        Some(name) => *section == constraint.constrained.section && step.change(name).is_some(),
    }
}

/// The conflict of `step` with the setting that `group_step` changes. If the group exists,
/// `group_step` is refused, because the setting would forbid `step` in later runs too. If this run
/// creates the group, `step` is refused.
fn forbidden_problem(
    constraint: &'static Constraint,
    step: &Step,
    group_step: &Step,
    change: &FieldChange,
) -> Problem {
    let (path, setting) = (&group_step.address.path, &constraint.group_setting.field);
    let message = format!(
        "`{setting}` of `{path}` {}, but a later step of this run needs another value",
        constraint.text
    );
    let help = format!("leave out `{setting}` of `{path}` until everything in it exists");
    let origin = change.origin.as_ref().unwrap_or(&step.origin);
    let refused_step = if group_step.address.section.is_some() { group_step } else { step };
    Problem::new(&refused_step.address, &constraint.code, message, help, origin)
}
