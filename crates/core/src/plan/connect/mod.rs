//! Relations between steps of different containers: edges from one container to another, and
//! conflicts between their steps.
//!
//! - A step in a group that the run creates, or that names it, comes after the creation. So does a
//!   project that is created from a project of the run.
//! - A container is created after the changes of the settings that its groups hand down.
//! - A step in a group that the run moves comes after the move, unless it narrows visibility.
//! - A container takes a path after the container that leaves it, and after the moves of groups
//!   above.
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

use super::order::narrows;
use crate::{
    address::{Address, groups_above},
    catalogue::{
        constraints::{self, Constraint, GroupSetting, How},
        settings,
    },
    diff::{
        Edge, FieldChange, Problem, Shown, Step,
        texts::{self, words},
    },
    field::Scope,
    kind::{Capability, Effect},
    value::Json,
};
use graph::Graph;
pub(super) use people::still_named;
use visible::{order_visibility, refuse_too_visible, refuse_visible_contents};

/// A step, by its position, that comes after another one, and why.
type LaterStep = (usize, Edge);

/// Adds the edges between steps of different containers. Returns the conflicts between their steps.
pub(super) fn connect(steps: &mut [Step]) -> Vec<Problem> {
    for find in [after_creations, after_inherited_settings, after_freed_names, after_moves] {
        let edges = find(steps);
        add_edges(steps, edges);
    }
    let mut problems = after_freed_paths(steps);
    problems.extend(refuse_too_visible(steps));
    let edges = order_visibility(steps);
    add_edges(steps, edges);
    problems.extend(refuse_visible_contents(steps));
    problems.extend(entries::order_entries(steps));
    problems.extend(order_constraints(steps));
    problems.extend(people::connect(steps));
    for step in &mut *steps {
        let mut seen = HashSet::new();
        step.after.retain(|edge| seen.insert(edge.address.clone()));
    }
    problems.extend(refuse_circles(steps));
    problems
}

fn add_edges(steps: &mut [Step], edges: Vec<LaterStep>) {
    edges.into_iter().for_each(|(at, edge)| steps[at].after.push(edge));
}

/// The edges of each step to what it comes after.
fn edges<'s, A: IntoIterator<Item = &'s Address>>(
    steps: &'s [Step],
    reason: &'static str,
    after: impl Fn(&'s Step) -> A,
) -> Vec<LaterStep> {
    let of = |(at, step): (usize, &'s Step)| {
        let first = after(step).into_iter().cloned();
        first.map(move |address| (at, Edge { address, reason })).collect::<Vec<_>>()
    };
    steps.iter().enumerate().flat_map(of).collect()
}

/// What `of` finds in `steps`, by the path of each in lower case.
fn by_path<'s, T>(steps: &'s [Step], of: impl Fn(&'s Step) -> Option<T>) -> HashMap<String, T> {
    let found = steps.iter().filter_map(|step| Some((step, of(step)?)));
    found.map(|(step, found)| (step.address.path.to_lowercase(), found)).collect()
}

/// What `by_path`, with paths in lower case, has for the groups above `path`, nearest first.
fn above<'m, T>(by_path: &'m HashMap<String, T>, path: &str) -> impl Iterator<Item = &'m T> {
    let path = path.to_lowercase();
    let found: Vec<_> = groups_above(&path).filter_map(|group| by_path.get(group)).collect();
    found.into_iter()
}

/// A step that names a group or project of the run comes after its creation.
fn after_creations(steps: &[Step]) -> Vec<LaterStep> {
    let new = by_path(steps, |step| step.address.section.is_none().then_some(step));
    let after = |(at, step): (usize, &Step)| {
        let paths: BTreeSet<_> = step.waits_for().filter(|named| !named.contains('#')).collect();
        paths
            .into_iter()
            .map(|path| {
                let created = new.get(&path.to_lowercase());
                let scope = created.map_or(Scope::Group, |new| new.scope);
                let address = created.map(|new| new.address.clone());
                let address = address.unwrap_or_else(|| Address::container(path.into()));
                (at, Edge { address, reason: Capability::Exists.reason(scope) })
            })
            .collect::<Vec<_>>()
    };
    steps.iter().enumerate().flat_map(after).collect()
}

/// New containers start with the new settings of the groups above.
fn after_inherited_settings(steps: &[Step]) -> Vec<LaterStep> {
    let is_new = |step: &Step| step.provides(Capability::Exists);
    let mut by_group: HashMap<_, Vec<_>> = HashMap::new();
    // Steps in a new group come after its creation anyway.
    for step in steps.iter().filter(|step| !is_new(step)) {
        if step.effects.contains(&Effect::HandsDown) {
            by_group.entry(step.address.path.to_lowercase()).or_default().push(&step.address);
        }
    }
    edges(steps, "a new group or project starts with the settings of the group above", |step| {
        let follows = !by_group.is_empty() && is_new(step);
        let above = follows.then(|| above(&by_group, &step.address.path));
        above.into_iter().flatten().flatten().copied().collect::<Vec<_>>()
    })
}

/// A container gets its name after the sibling that gives that name up.
fn after_freed_names(steps: &[Step]) -> Vec<LaterStep> {
    let place = |step: &Step, name: &str| {
        let path = step.address.path.to_lowercase();
        let (namespace, slug) = path.rsplit_once('/').unwrap_or(("", &path));
        let name = if name.is_empty() { slug.to_owned() } else { name.to_lowercase() };
        (namespace.to_owned(), name)
    };
    let of = |step: &Step, side: fn(&FieldChange) -> &Shown| {
        side(step.change("name")?).value()?.as_str().map(str::to_owned)
    };
    let given_up: HashMap<_, _> = steps
        .iter()
        .filter(|step| step.address.section == Some(settings::SECTION))
        .filter_map(|step| Some((place(step, &of(step, |change| &change.before)?), &step.address)))
        .collect();
    edges(steps, "its name must be free first", |step| {
        let is_new = !given_up.is_empty() && step.provides(Capability::Exists);
        let name = is_new.then(|| of(step, |change| &change.after).unwrap_or_default())?;
        given_up.get(&place(step, &name)).copied()
    })
}

/// Below a group that moves, a container is at its declared path only after the move, and so is a
/// project that a request names. Until then the service uses the former path.
fn after_moves(steps: &[Step]) -> Vec<LaterStep> {
    let reason = |scope: Scope| Capability::InPlace.reason(scope);
    let [groups, projects] = [Scope::Group, Scope::Project].map(|scope| {
        let moves = |step: &Step| step.scope == scope && step.provides(Capability::InPlace);
        by_path(steps, |step| moves(step).then_some(&step.address))
    });
    let mut found = edges(steps, reason(Scope::Project), |step| {
        step.named()
            .filter(|_| !projects.is_empty())
            .filter_map(|path| projects.get(&path.to_lowercase()).copied())
            .collect::<BTreeSet<_>>()
    });
    found.extend(edges(steps, reason(Scope::Group), |step| {
        let nearest = (!groups.is_empty()).then(|| above(&groups, &step.address.path).next())?;
        nearest.copied().filter(|_| !narrows(step))
    }));
    found
}

/// A step that takes a path or the name of an entry comes after the move or rename that frees it.
fn after_freed_paths(steps: &mut [Step]) -> Vec<Problem> {
    let freeing = |step: &Step, address: &Address| {
        address.section.is_none() || (address.path == step.address.path && address.entry.is_some())
    };
    let followed = steps.iter().flat_map(|step| {
        let follows = step.effects.iter().filter_map(|effect| match effect {
            Effect::Follows(address) if freeing(step, address) => Some(address.clone()),
            _ => None,
        });
        follows.collect::<Vec<_>>()
    });
    let followed: BTreeSet<_> = followed.collect();
    let present = steps.iter().filter(|step| followed.contains(&step.address));
    let moved: BTreeSet<_> = present.map(|step| step.address.clone()).collect();
    let mut problems = Vec::new();
    for step in steps {
        let follows = step.effects.iter().filter_map(|effect| match effect {
            Effect::Follows(address) if freeing(step, address) => Some(address.clone()),
            _ => None,
        });
        for address in follows.collect::<Vec<_>>() {
            if step.after.iter().any(|edge| edge.address == address) {
                continue;
            }
            let (texts, reason) = match address.entry {
                Some(_) => (texts::RENAME_NEEDED, "it must be renamed first"),
                None => (texts::MOVE_NEEDED, "it must move first"),
            };
            if moved.contains(&address) {
                step.after.push(Edge { address, reason });
            } else {
                let words = words![first = address];
                problems.push(Problem::of(texts, words, &step.address, &step.origin));
            }
        }
    }
    problems
}

/// Steps that wait for each other would never start, such as those of two projects that are created
/// from each other.
fn refuse_circles(steps: &[Step]) -> Vec<Problem> {
    let circles = Graph::of(steps).circles().into_iter();
    circles
        .map(|(at, other)| {
            let step = &steps[at];
            let words = words![other = steps[other].address];
            Problem::of(texts::CIRCULAR, words, &step.address, &step.origin)
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
/// forbids that, or after it allows it again. [`order_visibility`] handles visibility, where a group may have to
/// come last.
fn order_constraints(steps: &mut [Step]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for row in constraints::all().filter(|row| row.by.field != "visibility") {
        let deciding =
            steps.iter().enumerate().filter(|(_, step)| setting_change(step, &row.by).is_some());
        let deciding: HashMap<_, _> =
            deciding.map(|(at, step)| (step.address.path.to_lowercase(), at)).collect();
        let (mut edges, graph, mut followers) = (Vec::new(), OnceCell::new(), HashMap::new());
        // A level counts only for what is directly in its group.
        let reach = if row.over.section == "create" { 1 } else { usize::MAX };
        let most = if row.every { usize::MAX } else { 1 };
        let decided = steps.iter().enumerate().filter(|(_, step)| is_constrained_by(row, step));
        let decided = decided.filter(|_| !deciding.is_empty()).flat_map(|(at, step)| {
            let path = step.address.path.to_lowercase();
            let itself = (row.groups && step.scope == Scope::Group).then_some(&*path);
            let above = itself.into_iter().chain(groups_above(&path)).take(reach);
            let above = above.filter_map(|group| deciding.get(group)).take(most);
            above.map(|first| (at, step, *first)).collect::<Vec<_>>()
        });
        for (at, step, first) in decided {
            let group = &steps[first];
            let Some((change, before, after)) = setting_change(group, &row.by) else { continue };
            let forbids = |by: Option<&Json>| by.is_some_and(|by| row.forbids(by, step.scope));
            if row.how != How::Forbids || (forbids(before) && !forbids(after)) {
                let reason = match after.and_then(|by| row.value_below(by)) {
                    Some(_) => "a change of the group above sets it too",
                    None => "the group above must allow it first",
                };
                // Then the group comes last.
                if !(narrows(step) && narrows(group)) {
                    edges.push((at, first, reason));
                }
                continue;
            }
            if !forbids(after) {
                continue;
            }
            // A project does not get the level of its group, but it may need what else the step changes.
            let follows = |step: &Step| step.after.iter().any(|edge| edge.address == group.address);
            let is_its_creation = row.over.section == "create";
            let needs_other = if is_its_creation {
                follows(step) && group.changes.len() > 1
            } else {
                let graph = graph.get_or_init(|| Graph::of(steps));
                followers.entry(first).or_insert_with(|| graph.followers(first)).contains(&at)
            };
            if group.address.section.is_none() || needs_other {
                problems.push(forbidden_problem(row, step, group, change));
            } else {
                edges.push((first, at, "the group above forbids it afterwards"));
            }
        }
        for (later, earlier, reason) in edges {
            let after = steps[later].address.clone();
            steps[earlier].after.retain(|edge| edge.address != after);
            let address = steps[earlier].address.clone();
            steps[later].after.push(Edge { address, reason });
        }
    }
    problems
}

/// Whether `step` changes or creates what `row` is about.
fn is_constrained_by(row: &Constraint, step: &Step) -> bool {
    let section = step.address.section.unwrap_or(settings::SECTION);
    match &row.over.field {
        _ if row.over.section == "create" => step.provides(Capability::Exists),
        None => {
            let name = step.address.entry.as_deref().unwrap_or_default();
            *section == row.over.section
                && step.adds_entry()
                && row.is_about(&step.address.path, name)
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
