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
//! - A user with a level in a group has at least that level in everything below.
//!
//! An edge leads to the nearest container above with such a step, which has its own edge to the
//! next. So the number of edges does not grow with the depth.

mod graph;
mod people;

use std::{
    cell::OnceCell,
    collections::{BTreeSet, HashMap, HashSet},
};

use crate::{
    address::{Address, groups_above},
    diff::{Action, Change, Edge, Problem, Shown, Step},
    field::Scope,
    kind::{Capability, Effect, VISIBILITIES, visibility_rank},
    kinds::{
        constraints::{self, Constraint, How, Setting},
        settings,
    },
    value::Json,
};
use graph::Graph;
pub(super) use people::still_named;

/// Adds the edges between steps of different containers. Returns the conflicts between their steps.
pub(super) fn connect(steps: &mut [Step]) -> Vec<Problem> {
    created(steps);
    handed_down(steps);
    named(steps);
    moved(steps);
    let mut problems = wait_for_path(steps);
    problems.extend(too_visible(steps));
    visible(steps);
    problems.extend(constrained(steps));
    problems.extend(people::connect(steps));
    for step in &mut *steps {
        let mut seen = HashSet::new();
        step.after.retain(|edge| seen.insert(edge.address.clone()));
    }
    problems.extend(circular(steps));
    problems
}

/// What `by_path`, with paths in lower case, has for the groups above `path`, nearest first.
fn above<'m, T>(by_path: &'m HashMap<String, T>, path: &str) -> impl Iterator<Item = &'m T> {
    let path = path.to_lowercase();
    let found: Vec<_> = groups_above(&path).filter_map(|group| by_path.get(group)).collect();
    found.into_iter()
}

/// A step that names a group or project of the run comes after its creation.
fn created(steps: &mut [Step]) {
    let new = steps.iter().filter(|step| step.address.section.is_none());
    let new: HashMap<_, _> = new
        .map(|step| (step.address.path.to_lowercase(), (step.address.clone(), step.scope)))
        .collect();
    for step in steps {
        let paths: BTreeSet<_> = step.waits_for().filter(|named| !named.contains('#')).collect();
        let edge = |path: &str| {
            let created = new.get(&path.to_lowercase()).cloned();
            let (address, scope) =
                created.unwrap_or_else(|| (Address::container(path.into()), Scope::Group));
            Edge { address, reason: Capability::Exists.reason(scope) }
        };
        let edges: Vec<_> = paths.into_iter().map(edge).collect();
        step.after.extend(edges);
    }
}

/// New containers start with the new settings of the groups above.
fn handed_down(steps: &mut [Step]) {
    let is_new = |step: &Step| step.provides(Capability::Exists);
    let mut by_group: HashMap<_, Vec<_>> = HashMap::new();
    // Steps in a new group come after its creation anyway.
    for step in steps.iter().filter(|step| !is_new(step)) {
        if step.effects.contains(&Effect::HandsDown) {
            let group = step.address.path.to_lowercase();
            by_group.entry(group).or_default().push(step.address.clone());
        }
    }
    let reason = "a new group or project starts with the settings of the group above";
    for step in steps.iter_mut().filter(|step| !by_group.is_empty() && is_new(step)) {
        let earlier = above(&by_group, &step.address.path).flatten();
        step.after.extend(earlier.cloned().map(|address| Edge { address, reason }));
    }
}

/// A container gets its name after the sibling that gives that name up.
fn named(steps: &mut [Step]) {
    let place = |step: &Step, name: &str| {
        let path = step.address.path.to_lowercase();
        let (namespace, slug) = path.rsplit_once('/').unwrap_or(("", &path));
        let name = if name.is_empty() { slug.to_owned() } else { name.to_lowercase() };
        (namespace.to_owned(), name)
    };
    let of = |step: &Step, side: fn(&Change) -> &Shown| {
        let change = step.changes.iter().find(|change| &*change.field == "name")?;
        match side(change) {
            Shown::Value(name) => name.as_str().map(str::to_owned),
            _ => None,
        }
    };
    let given_up: HashMap<_, _> = steps
        .iter()
        .filter(|step| step.address.section == Some(settings::SECTION))
        .filter_map(|step| {
            let before = of(step, |change| &change.before)?;
            Some((place(step, &before), step.address.clone()))
        })
        .collect();
    let is_new = |step: &&mut Step| step.provides(Capability::Exists);
    for step in steps.iter_mut().filter(|_| !given_up.is_empty()).filter(is_new) {
        let name = of(step, |change| &change.after).unwrap_or_default();
        if let Some(address) = given_up.get(&place(step, &name)) {
            let reason = "its name has to be free first";
            step.after.push(Edge { address: address.clone(), reason });
        }
    }
}

/// Below a group that moves, a container is at its declared path only after the move, and so is a
/// project that a request names. Until then the service uses the former path.
fn moved(steps: &mut [Step]) {
    let moves = |scope: Scope| {
        let of_scope = steps.iter().filter(|step| step.scope == scope);
        let moves = of_scope.filter(|step| step.provides(Capability::InPlace));
        moves.map(|step| (step.address.path.to_lowercase(), step.address.clone())).collect()
    };
    let projects: HashMap<String, Address> = moves(Scope::Project);
    let groups: HashMap<String, Address> = moves(Scope::Group);
    for step in steps.iter_mut().filter(|_| !projects.is_empty()) {
        let named = step.named().map(str::to_lowercase);
        let first: BTreeSet<_> = named.filter_map(|path| projects.get(&path).cloned()).collect();
        let reason = Capability::InPlace.reason(Scope::Project);
        step.after.extend(first.into_iter().map(|address| Edge { address, reason }));
    }
    let reason = Capability::InPlace.reason(Scope::Group);
    for step in steps.iter_mut().filter(|_| !groups.is_empty()) {
        let nearest = above(&groups, &step.address.path).next();
        if let Some(address) = nearest.filter(|_| !super::order::narrows(step)) {
            step.after.push(Edge { address: address.clone(), reason });
        }
    }
}

/// A step that takes a path comes after the move that frees it.
fn wait_for_path(steps: &mut [Step]) -> Vec<Problem> {
    let moved: BTreeSet<_> = steps
        .iter()
        .filter(|step| step.address.section.is_none())
        .map(|step| step.address.clone())
        .collect();
    let mut problems = Vec::new();
    for step in steps {
        let follows = step.effects.iter().filter_map(|effect| match effect {
            Effect::Follows(path) => Some(Address::container(path.clone())),
            _ => None,
        });
        for address in follows.collect::<Vec<_>>() {
            if step.after.iter().any(|edge| edge.address == address) {
                continue;
            }
            if moved.contains(&address) {
                step.after.push(Edge { address, reason: "it has to move first" });
            } else {
                let message =
                    format!("`{address}` has to move first, and this run does not move it");
                let help = format!("select it too (`--only {address}`), or resolve its problem");
                let (address, origin) = (&step.address, &step.origin);
                problems.push(Problem::new(address, "previously", message, help, origin));
            }
        }
    }
    problems
}

/// Steps that wait for each other would never start, such as those of two projects that are created
/// from each other.
fn circular(steps: &[Step]) -> Vec<Problem> {
    let circles = Graph::of(steps).circles().into_iter();
    circles.map(|(at, other)| waits_for_itself(&steps[at], &steps[other])).collect()
}

fn waits_for_itself(step: &Step, next: &Step) -> Problem {
    let (address, other) = (&step.address, &next.address);
    let message = format!("`{address}` comes after `{other}`, which comes after `{address}`");
    let help = "correct one of them, or do one of them in an earlier run";
    Problem::new(address, "circular", message, help, &step.origin)
}

/// The visibilities before and after a step, as ranks from the narrowest; before is `None` for a
/// creation.
fn visibility(step: &Step) -> Option<(Option<usize>, usize)> {
    step.effects.iter().find_map(|effect| match effect {
        Effect::Visibility { before, after } => {
            let is_new = step.provides(Capability::Exists);
            let known = before.as_deref().and_then(visibility_rank);
            let before = if is_new { None } else { Some(known.unwrap_or(0)) };
            Some((before, visibility_rank(after)?))
        }
        _ => None,
    })
}

/// Refuses visibility above what the same run gives the group. A new group that does not declare it is
/// private, unless the administrators of the service changed that.
fn too_visible(steps: &[Step]) -> Vec<Problem> {
    let is_new_group = |step: &Step| {
        let is_new = step.provides(Capability::Exists);
        // A group that is restored has the visibility that it had.
        step.scope == Scope::Group && step.action == Action::Create && is_new
    };
    let seen = |step: &Step| {
        let declared = visibility(step).map(|(_, after)| after);
        declared.or_else(|| is_new_group(step).then_some(0))
    };
    let groups: HashMap<_, _> = steps
        .iter()
        .filter(|step| step.scope == Scope::Group)
        .filter_map(|step| Some((step.address.path.to_lowercase(), (step, seen(step)?))))
        .collect();
    let mut problems = Vec::new();
    for step in steps.iter().filter(|_| !groups.is_empty()) {
        if let Some(own) = seen(step)
            && let Some((group, most)) = above(&groups, &step.address.path).next()
            && own > *most
        {
            problems.push(more_visible_than(step, own, group, *most));
        }
    }
    problems
}

fn more_visible_than(step: &Step, own: usize, group: &Step, most: usize) -> Problem {
    let word = |rank: usize| VISIBILITIES[rank];
    let change = step.changes.iter().find(|change| &*change.field == "visibility");
    let message = format!(
        "it would be {} in the group `{}`, which would be {}: the service refuses that",
        word(own),
        group.address.path,
        word(most)
    );
    let help =
        format!("write `visibility: {}`, or `visibility: {}` for the group", word(most), word(own));
    let origin = change.and_then(|change| change.origin.as_ref()).unwrap_or(&step.origin);
    Problem::new(&step.address, "more-visible", message, help, origin)
}

fn visible(steps: &mut [Step]) {
    let (mut widened, mut narrowed) = (HashMap::new(), HashMap::new());
    for (at, step) in steps.iter().enumerate() {
        match visibility(step) {
            Some((before, after)) if before.is_none_or(|before| before < after) => {
                widened.insert(step.address.path.to_lowercase(), at);
            }
            Some((Some(before), after)) if after < before => {
                narrowed.insert(step.address.path.to_lowercase(), at);
            }
            _ => {}
        }
    }
    let mut edges: Vec<(usize, usize, &'static str)> = Vec::new();
    for (path, at) in &widened {
        if let Some(group) = above(&widened, path).next() {
            edges.push((*at, *group, "nothing is more visible than the group that it is in"));
        }
    }
    for (path, at) in &narrowed {
        if let Some(group) = above(&narrowed, path).next() {
            edges.push((*group, *at, "what is in a group is never more visible than it"));
        }
    }
    edges.sort_unstable();
    for (later, earlier, reason) in edges {
        let address = steps[earlier].address.clone();
        steps[later].after.push(Edge { address, reason });
    }
}

/// The value of `by` before and after a step of a group.
fn decision<'s>(
    step: &'s Step,
    by: &Setting,
) -> Option<(&'s Change, Option<&'s Json>, Option<&'s Json>)> {
    let section = step.address.section.unwrap_or(settings::SECTION);
    let is_group = step.scope == Scope::Group && *section == by.section;
    let change = step.changes.iter().find(|change| is_group && *change.field == by.field)?;
    let value = |shown: &'s Shown| match shown {
        Shown::Value(value) => Some(value),
        _ => None,
    };
    Some((change, value(&change.before), value(&change.after)))
}

/// What a setting of a group decides about is changed after it. What it forbids is created before it
/// forbids that, or after it allows it again. [`visible`] handles visibility, where a group may have to
/// come last.
fn constrained(steps: &mut [Step]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for row in constraints::all().filter(|row| row.by.field != "visibility") {
        let deciding =
            steps.iter().enumerate().filter(|(_, step)| decision(step, &row.by).is_some());
        let deciding: HashMap<_, _> =
            deciding.map(|(at, step)| (step.address.path.to_lowercase(), at)).collect();
        let (mut edges, graph, mut followers) = (Vec::new(), OnceCell::new(), HashMap::new());
        // A level counts only for what is directly in its group.
        let reach = if row.over.section == "create" { 1 } else { usize::MAX };
        let most = if row.every { usize::MAX } else { 1 };
        let decided = steps.iter().enumerate().filter(|(_, step)| is_over(row, step));
        let decided = decided.filter(|_| !deciding.is_empty()).flat_map(|(at, step)| {
            let path = step.address.path.to_lowercase();
            let above = groups_above(&path).take(reach);
            let above = above.filter_map(|group| deciding.get(group)).take(most);
            above.map(|first| (at, step, *first)).collect::<Vec<_>>()
        });
        for (at, step, first) in decided {
            let group = &steps[first];
            let Some((change, before, after)) = decision(group, &row.by) else { continue };
            let forbids = |by: Option<&Json>| by.is_some_and(|by| row.forbids(by, step.scope));
            if row.how != How::Forbids || (forbids(before) && !forbids(after)) {
                let reason = match after.and_then(|by| row.gives(by)) {
                    Some(_) => "a change of the group above sets it too",
                    None => "the group above has to allow it first",
                };
                if !super::order::narrows(step) {
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
                problems.push(forbidden(row, step, group, change));
            } else {
                edges.push((first, at, "then the group above forbids it"));
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
fn is_over(row: &Constraint, step: &Step) -> bool {
    let section = step.address.section.unwrap_or(settings::SECTION);
    match &row.over.field {
        _ if row.over.section == "create" => step.provides(Capability::Exists),
        None => *section == row.over.section && step.action == Action::Create,
        Some(name) => {
            *section == row.over.section
                && step.changes.iter().any(|change| *change.field == **name)
        }
    }
}

fn forbidden(row: &'static Constraint, step: &Step, group: &Step, change: &Change) -> Problem {
    let (path, setting) = (&group.address.path, &row.by.field);
    let message =
        format!("`{setting}` of `{path}` {}, and this run would do so after it", row.text);
    let help = format!("leave out `{setting}` of `{path}` until everything in it exists");
    let origin = change.origin.as_ref().unwrap_or(&step.origin);
    Problem::new(&step.address, &row.code, message, help, origin)
}
