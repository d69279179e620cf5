//! Visibility across containers: nothing may be more visible than its parent group.

use std::{collections::HashMap, sync::Arc};

use super::{LaterStep, above, by_path};
use crate::{
    address::{Address, groups_above},
    diff::{
        Action, Edge, Problem, Step,
        texts::{self, words},
    },
    field::Scope,
    kind::{Capability, Effect, VISIBILITIES},
    plan::order::{narrows, visibility},
};

/// Refuses visibility above what the same run gives the group. A new group that does not declare it is
/// private, unless the administrators of the service changed that.
pub(super) fn refuse_too_visible(steps: &[Step]) -> Vec<Problem> {
    let is_new_group = |step: &Step| {
        let is_new = step.provides(Capability::Exists);
        // A group that is restored has the visibility that it had.
        step.scope == Scope::Group && step.action == Action::Create && is_new
    };
    let seen = |step: &Step| {
        let declared = visibility(step).map(|(_, after)| after);
        declared.or_else(|| is_new_group(step).then_some(0))
    };
    let groups = by_path(steps, |step| {
        seen(step).filter(|_| step.scope == Scope::Group).map(|most| (step, most))
    });
    let problem = |step: &Step| {
        let rank = seen(step)?;
        let (group, most) = above(&groups, &step.address.path).next()?;
        (rank > *most).then(|| more_visible_problem(step, rank, group, *most))
    };
    steps.iter().filter(|_| !groups.is_empty()).filter_map(problem).collect()
}

fn more_visible_problem(step: &Step, rank: usize, group: &Step, most: usize) -> Problem {
    let words = words![
        visibility = VISIBILITIES[rank],
        group = group.address.path,
        most = VISIBILITIES[most]
    ];
    let change = step.change("visibility");
    let origin = change.and_then(|change| change.origin.as_ref()).unwrap_or(&step.origin);
    Problem::of(texts::MORE_VISIBLE, words, &step.address, origin)
}

pub(super) fn order_visibility(steps: &[Step]) -> Vec<LaterStep> {
    let changes = |of: fn(Option<usize>, usize) -> bool| {
        let changes = steps.iter().enumerate().filter(move |(_, step)| {
            visibility(step).is_some_and(|(before, after)| of(before, after))
        });
        changes.map(|(at, step)| (step.address.path.to_lowercase(), at)).collect::<HashMap<_, _>>()
    };
    let widened = changes(|before, after| before.is_none_or(|before| before < after));
    let narrowed = changes(|before, after| before.is_some_and(|before| before > after));
    let mut edges: Vec<(usize, usize, &'static str)> = Vec::new();
    for (path, at) in &widened {
        let reason = "nothing may be more visible than its parent group";
        edges.extend(above(&widened, path).next().map(|group| (*at, *group, reason)));
    }
    for (path, at) in &narrowed {
        let reason = "nothing may be more visible than its parent group";
        edges.extend(above(&narrowed, path).next().map(|group| (*group, *at, reason)));
    }
    edges.sort_unstable();
    let edge = |earlier: usize, reason| Edge { address: steps[earlier].address.clone(), reason };
    edges.into_iter().map(|(later, earlier, reason)| (later, edge(earlier, reason))).collect()
}

/// Refuses to narrow a group with something more visible in it that this run does not narrow. What leaves
/// the group does so first.
pub(super) fn refuse_visible_contents(steps: &mut [Step]) -> Vec<Problem> {
    if !steps.iter().any(|step| !visible_contents(step).is_empty()) {
        return Vec::new();
    }
    let moved = by_path(steps, |step| {
        step.provides(Capability::InPlace).then(|| Arc::clone(&step.address.path))
    });
    let narrowed = by_path(steps, |step| Some(visibility(step).filter(|_| narrows(step))?.1));
    let mut problems = Vec::new();
    for step in steps {
        let Some((_, most)) = visibility(step) else { continue };
        let group = step.address.path.to_lowercase();
        for (path, rank) in visible_contents(step).to_vec() {
            let key = path.to_lowercase();
            let leaves = !groups_above(&key).any(|above| above == group);
            let mut places = std::iter::once(&*key).chain(groups_above(&key));
            if let Some(mover) = places.find_map(|place| moved.get(place)).filter(|_| leaves) {
                let address = Address::container(Arc::clone(mover));
                step.after.push(Edge { address, reason: "it has to leave the group first" });
            } else if narrowed.get(&key).is_none_or(|after| *after > most) {
                let words = words![path, is = VISIBILITIES[rank], most = VISIBILITIES[most]];
                let texts = texts::VISIBLE_CONTENTS;
                problems.push(Problem::of(texts, words, &step.address, &step.origin));
                break;
            }
        }
    }
    problems
}

/// The groups and projects in a group that are more visible than a step makes the group.
fn visible_contents(step: &Step) -> &[(Arc<str>, usize)] {
    let contents = step.effects.iter().find_map(|effect| match effect {
        Effect::Visibility { more_visible, .. } => Some(&**more_visible),
        _ => None,
    });
    contents.unwrap_or_default()
}
