//! Relations between steps, most of them of different containers: edges from one step to another,
//! and conflicts between steps.
//!
//! - A step in a group that the run creates, or that names it, comes after the creation. So does a
//!   project that is created from a project of the run.
//! - A container is created after the changes of the settings that its groups hand down.
//! - A step in a group that the run moves comes after the move, unless it narrows visibility.
//! - A container takes a path after the container that leaves it, and after the moves of groups
//!   above. An entry takes a name after the rename that frees it.
//! - Nothing is more visible than its group: a group is widened before its contents, and narrowed
//!   after them.
//! - What a setting of a group decides about is changed after it, and created while it allows that.
//! - A rule that names users comes after the groups above have given them access, and before groups take it
//!   away.
//! - An entry that a group above has too is created before that one, or after its removal.
//! - A user with a level in a group has at least that level in everything below.
//!
//! An edge leads to the nearest container above with such a step, which has its own edge to the
//! next. So the number of edges does not grow with the depth.

mod entries;
mod graph;
mod people;
mod visible;

use std::{
    cell::OnceCell,
    collections::{BTreeSet, HashMap, HashSet},
};

use super::order::narrows_visibility;
use crate::{
    address::{Address, groups_above},
    catalogue::{
        constraints::{self, Constraint, ConstraintEffect, GroupSetting},
        settings,
    },
    diff::{
        Edge, FieldChange, Problem, Step,
        texts::{self, words},
    },
    field::Scope,
    kind::{Capability, Effect},
    value::Json,
};
pub(super) use graph::Graph;
pub(super) use people::note_lost_access;

/// What one rule finds in the steps.
#[derive(Default)]
struct StepRelations {
    /// Edges, each with the position of the later step.
    edges: Vec<(usize, Edge)>,
    /// Conflicts that no order solves.
    problems: Vec<Problem>,
}

impl StepRelations {
    /// The step at `later` comes after what is at `first`.
    fn order(&mut self, later: usize, first: &Address, reason: &'static str) {
        self.edges.push((later, Edge { address: first.clone(), reason }));
    }

    /// Adds the edges to `steps`, and returns the conflicts.
    fn apply(self, steps: &mut [Step]) -> Vec<Problem> {
        self.edges.into_iter().for_each(|(later, edge)| steps[later].after.push(edge));
        self.problems
    }
}

/// Adds the edges between steps of different containers. Returns the conflicts between their steps.
pub(super) fn connect(steps: &mut [Step]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for find in [
        edges_to_creations,
        edges_to_inherited_settings,
        edges_to_freed_names,
        edges_to_moves,
        order_freed_paths,
        visible::refuse_too_visible,
        visible::order_visibility,
        visible::order_visible_contents,
        entries::order_entries,
    ] {
        problems.extend(find(steps).apply(steps));
    }
    for row in constraints::all_constraints().filter(|row| row.by.field != "visibility") {
        problems.extend(order_constraint(row, steps));
    }
    problems.extend(people::order_access(steps).apply(steps));
    for step in &mut *steps {
        let mut seen = HashSet::new();
        step.after.retain(|edge| seen.insert(edge.address.clone()));
    }
    problems.extend(refuse_circles(steps));
    problems
}

/// What `of` finds in steps and their positions, by the path of each in lower case.
fn by_path<'s, T>(
    steps: &'s [Step],
    of: impl Fn(usize, &'s Step) -> Option<T>,
) -> HashMap<String, T> {
    let found = steps.iter().enumerate().filter_map(|(at, step)| Some((step, of(at, step)?)));
    found.map(|(step, found)| (step.address.path.to_lowercase(), found)).collect()
}

/// The addresses of the steps that are `wanted`, by path in lower case.
fn addresses_by_path(
    steps: &[Step],
    wanted: impl Fn(&Step) -> bool,
) -> HashMap<String, Vec<&Address>> {
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    for step in steps.iter().filter(|step| wanted(step)) {
        found.entry(step.address.path.to_lowercase()).or_default().push(&step.address);
    }
    found
}

/// The values of `by_path` (lower-case paths) for the groups above `path`, nearest first.
fn values_above<'m, T>(by_path: &'m HashMap<String, T>, path: &str) -> impl Iterator<Item = &'m T> {
    let path = if by_path.is_empty() { String::new() } else { path.to_lowercase() };
    let found: Vec<_> = groups_above(&path).filter_map(|group| by_path.get(group)).collect();
    found.into_iter()
}

/// A step that names a group or project of the run comes after its creation.
fn edges_to_creations(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let new = by_path(steps, |_, step| step.address.section.is_none().then_some(step));
    for (at, step) in steps.iter().enumerate() {
        let paths: BTreeSet<_> = step.waits_for().filter(|named| !named.contains('#')).collect();
        for path in paths {
            match new.get(&path.to_lowercase()) {
                Some(new) => {
                    relations.order(at, &new.address, Capability::Exists.order_reason(new.scope));
                }
                None => {
                    let address = Address::container((*path).into());
                    relations.order(at, &address, Capability::Exists.order_reason(Scope::Group));
                }
            }
        }
    }
    relations
}

/// New containers start with the new settings of the groups above.
fn edges_to_inherited_settings(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    // Steps in a new group come after its creation anyway.
    let by_group = addresses_by_path(steps, |step| {
        !step.provides(Capability::Exists) && step.effects.contains(&Effect::HandsDown)
    });
    let reason = "a new group or project starts with the settings of the group above";
    for (at, step) in steps.iter().enumerate().filter(|(_, s)| s.provides(Capability::Exists)) {
        for first in values_above(&by_group, &step.address.path).flatten() {
            relations.order(at, first, reason);
        }
    }
    relations
}

/// A container gets its name after the sibling that gives that name up.
fn edges_to_freed_names(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let settings = steps.iter().filter(|step| step.address.section == Some(settings::SECTION));
    let given_up: HashMap<_, _> = settings
        .filter_map(|step| {
            let name = step.change("name")?.before.value()?.as_str()?;
            Some((place_of_name(step, name), &step.address))
        })
        .collect();
    if given_up.is_empty() {
        return relations;
    }
    for (at, step) in steps.iter().enumerate().filter(|(_, s)| s.provides(Capability::Exists)) {
        let name = step.change("name").and_then(|change| change.after.value()?.as_str());
        if let Some(first) = given_up.get(&place_of_name(step, name.unwrap_or_default())) {
            relations.order(at, first, "its name must be free first");
        }
    }
    relations
}

/// The namespace of a container, and its `name` in there; without one, that is like its path.
fn place_of_name(step: &Step, name: &str) -> (String, String) {
    let path = step.address.path.to_lowercase();
    let (namespace, slug) = path.rsplit_once('/').unwrap_or(("", &path));
    let name = if name.is_empty() { slug.to_owned() } else { name.to_lowercase() };
    (namespace.to_owned(), name)
}

/// Below a group that moves, a container is at its declared path only after the move, and so is a
/// project that a request names. Until then the service uses the former path.
fn edges_to_moves(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let [groups, projects] = [Scope::Group, Scope::Project].map(|scope| {
        by_path(steps, |_, step| {
            let moves = step.scope == scope && step.provides(Capability::InPlace);
            moves.then_some(&step.address)
        })
    });
    for (at, step) in steps.iter().enumerate() {
        let named = step.named_paths().filter(|_| !projects.is_empty());
        let moved = named.filter_map(|path| projects.get(&path.to_lowercase()).copied());
        for first in moved.collect::<BTreeSet<_>>() {
            relations.order(at, first, Capability::InPlace.order_reason(Scope::Project));
        }
        let nearest = values_above(&groups, &step.address.path).next();
        if let Some(first) = nearest.filter(|_| !narrows_visibility(step)) {
            relations.order(at, first, Capability::InPlace.order_reason(Scope::Group));
        }
    }
    relations
}

/// A step that takes a path or the name of an entry comes after the move or rename that frees it.
fn order_freed_paths(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let followed: HashSet<_> = steps.iter().flat_map(freeing_addresses).collect();
    let addresses = steps.iter().map(|step| &step.address);
    let present: HashSet<_> = addresses.filter(|address| followed.contains(address)).collect();
    for (at, step) in steps.iter().enumerate() {
        for first in freeing_addresses(step) {
            let (texts, reason) = match first.entry {
                Some(_) => (texts::RENAME_NEEDED, "it must be renamed first"),
                None => (texts::MOVE_NEEDED, "it must move first"),
            };
            if present.contains(first) {
                relations.order(at, first, reason);
            } else if !step.after.iter().any(|edge| edge.address == *first) {
                let problem =
                    Problem::from_texts(texts, words![first], &step.address, &step.origin);
                relations.problems.push(problem);
            }
        }
    }
    relations
}

/// The groups, projects and entries that must free their path or name before `step`.
fn freeing_addresses(step: &Step) -> impl Iterator<Item = &Address> {
    let containers = step.follows().filter(|first| first.section.is_none());
    containers.chain(step.followed_entries().filter(|first| first.entry.is_some()))
}

/// Steps that wait for each other would never start, such as those of two projects that are created
/// from each other.
fn refuse_circles(steps: &[Step]) -> Vec<Problem> {
    let circles = Graph::from_steps(steps).find_circles().into_iter();
    circles
        .map(|(at, other)| {
            let step = &steps[at];
            let words = words![other = steps[other].address];
            Problem::from_texts(texts::CIRCULAR, words, &step.address, &step.origin)
        })
        .collect()
}

/// The value of `by` before and after a step of a group.
fn setting_change<'s>(
    step: &'s Step,
    by: &GroupSetting,
) -> Option<(&'s FieldChange, Option<&'s Json>, Option<&'s Json>)> {
    let section = step.address.section.unwrap_or(settings::SECTION);
    let is_group = step.scope == Scope::Group && *section == by.section;
    let change = is_group.then(|| step.change(&by.field))??;
    Some((change, change.before.value(), change.after.value()))
}

/// What a setting of a group decides about is changed after it. What it forbids is created before it
/// forbids that, or after it allows it again. [`visible::order_visibility`] handles visibility, where a
/// group may have to come last.
fn order_constraint(row: &'static Constraint, steps: &mut [Step]) -> Vec<Problem> {
    let (mut edges, mut problems) = (Vec::new(), Vec::new());
    let deciding = by_path(steps, |at, step| Some((at, setting_change(step, &row.by)?)));
    if deciding.is_empty() {
        return problems;
    }
    let (graph, mut followers) = (OnceCell::new(), HashMap::new());
    // A level counts only for what is directly in its group.
    let is_of_creation = row.over.section == "create";
    let reach = if is_of_creation { 1 } else { usize::MAX };
    let most = if row.every { usize::MAX } else { 1 };
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| is_constrained_by(row, step)) {
        let path = step.address.path.to_lowercase();
        let itself = (row.groups && step.scope == Scope::Group).then_some(&*path);
        let settings_above = itself.into_iter().chain(groups_above(&path)).take(reach);
        let deciding_steps = settings_above.filter_map(|group| deciding.get(group)).take(most);
        for (first, (change, before, after)) in deciding_steps {
            let group = &steps[*first];
            let [forbade, forbids] =
                [before, after].map(|by| by.is_some_and(|by| row.forbids(by, step.scope)));
            if row.how != ConstraintEffect::Forbids || (forbade && !forbids) {
                let reason = match after.and_then(|by| row.value_below(by)) {
                    Some(_) => "a change of the group above sets it too",
                    None => "the group above must allow it first",
                };
                // Then the group comes last.
                if !(narrows_visibility(step) && narrows_visibility(group)) {
                    edges.push((at, *first, reason));
                }
            } else if forbids {
                // A project does not get the level of its group, but it may need what else the step changes.
                let needs_other = if is_of_creation {
                    let mut follows = step.after.iter().map(|edge| &edge.address);
                    group.changes.len() > 1 && follows.any(|first| *first == group.address)
                } else {
                    let graph = graph.get_or_init(|| Graph::from_steps(steps));
                    followers.entry(*first).or_insert_with(|| graph.followers(*first)).contains(&at)
                };
                if group.address.section.is_none() || needs_other {
                    problems.push(forbidden_problem(row, step, group, change));
                } else {
                    edges.push((*first, at, "the group above forbids it afterwards"));
                }
            }
        }
    }
    for (later, earlier, reason) in edges {
        let after = steps[later].address.clone();
        steps[earlier].after.retain(|edge| edge.address != after);
        let address = steps[earlier].address.clone();
        steps[later].after.push(Edge { address, reason });
    }
    problems
}

/// True if `step` changes or creates what `row` is about.
fn is_constrained_by(row: &Constraint, step: &Step) -> bool {
    let section = step.address.section.unwrap_or(settings::SECTION);
    match &row.over.field {
        _ if row.over.section == "create" => step.provides(Capability::Exists),
        None => {
            let name = step.address.entry.as_deref().unwrap_or_default();
            *section == row.over.section
                && step.adds_entry()
                && row.applies_to(&step.address.path, name)
        }
        Some(name) => *section == row.over.section && step.change(name).is_some(),
    }
}

fn forbidden_problem(
    row: &'static Constraint,
    step: &Step,
    group: &Step,
    change: &FieldChange,
) -> Problem {
    let (path, setting) = (&group.address.path, &row.by.field);
    let message =
        format!("`{setting}` of `{path}` {}, and this run would do so after it", row.text);
    let help = format!("leave out `{setting}` of `{path}` until everything in it exists");
    let origin = change.origin.as_ref().unwrap_or(&step.origin);
    Problem::new(&step.address, &row.code, message, help, origin)
}
