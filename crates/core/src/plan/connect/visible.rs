//! Visibility across containers: nothing may be more visible than its parent group.

use std::{collections::HashMap, sync::Arc};

use super::{LaterStep, index_by_path, values_above};
use crate::{
    address::{Address, groups_above},
    diff::{
        Action, Edge, Problem, Step,
        texts::{self, words},
    },
    field::Scope,
    kind::{Capability, Effect, VISIBILITIES},
    plan::order::{narrows_visibility, visibility_change},
};

/// Refuses steps that make something more visible than its group after this run. A new group that
/// declares no visibility counts as private, the default of the service.
pub(super) fn refuse_too_visible(steps: &[Step]) -> Vec<Problem> {
    let is_new_group = |step: &Step| {
        let is_new = step.provides(Capability::Exists);
        // A group that is restored has the visibility that it had.
        step.scope == Scope::Group && step.action == Action::Create && is_new
    };
    let visibility_after = |step: &Step| {
        let declared = visibility_change(step).map(|(_, after)| after);
        declared.or_else(|| is_new_group(step).then_some(0))
    };
    let groups = index_by_path(steps, |step| {
        visibility_after(step).filter(|_| step.scope == Scope::Group).map(|most| (step, most))
    });
    let problem = |step: &Step| {
        let rank = visibility_after(step)?;
        let (group, max_rank) = values_above(&groups, &step.address.path).next()?;
        (rank > *max_rank).then(|| more_visible_problem(step, rank, group, *max_rank))
    };
    steps.iter().filter(|_| !groups.is_empty()).filter_map(problem).collect()
}

fn more_visible_problem(step: &Step, rank: usize, group: &Step, max_rank: usize) -> Problem {
    let words = words![
        visibility = VISIBILITIES[rank],
        group = group.address.path,
        most = VISIBILITIES[max_rank]
    ];
    let change = step.change("visibility");
    let origin = change.and_then(|change| change.origin.as_ref()).unwrap_or(&step.origin);
    Problem::from_texts(texts::MORE_VISIBLE, words, &step.address, origin)
}

pub(super) fn order_visibility(steps: &[Step]) -> Vec<LaterStep> {
    let changes = |is_wanted: fn(Option<usize>, usize) -> bool| {
        let changes = steps.iter().enumerate().filter(move |(_, step)| {
            visibility_change(step).is_some_and(|(before, after)| is_wanted(before, after))
        });
        changes.map(|(at, step)| (step.address.path.to_lowercase(), at)).collect::<HashMap<_, _>>()
    };
    let widened = changes(|before, after| before.is_none_or(|before| before < after));
    let narrowed = changes(|before, after| before.is_some_and(|before| before > after));
    let mut edges: Vec<(usize, usize, &'static str)> = Vec::new();
    for (path, at) in &widened {
        let reason = "nothing may be more visible than its parent group";
        edges.extend(values_above(&widened, path).next().map(|group| (*at, *group, reason)));
    }
    for (path, at) in &narrowed {
        let reason = "nothing may be more visible than its parent group";
        edges.extend(values_above(&narrowed, path).next().map(|group| (*group, *at, reason)));
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
    let moved = index_by_path(steps, |step| {
        step.provides(Capability::InPlace).then(|| Arc::clone(&step.address.path))
    });
    let narrowed = index_by_path(steps, |step| {
        Some(visibility_change(step).filter(|_| narrows_visibility(step))?.1)
    });
    let mut problems = Vec::new();
    for step in steps {
        let Some((_, max_rank)) = visibility_change(step) else { continue };
        let group = step.address.path.to_lowercase();
        for (path, rank) in visible_contents(step).to_vec() {
            let key = path.to_lowercase();
            let leaves = !groups_above(&key).any(|above| above == group);
            let mut places = std::iter::once(&*key).chain(groups_above(&key));
            if let Some(mover) = places.find_map(|place| moved.get(place)).filter(|_| leaves) {
                let address = Address::container(Arc::clone(mover));
                step.after.push(Edge { address, reason: "it has to leave the group first" });
            } else if narrowed.get(&key).is_none_or(|after| *after > max_rank) {
                let words = words![path, is = VISIBILITIES[rank], most = VISIBILITIES[max_rank]];
                let texts = texts::VISIBLE_CONTENTS;
                problems.push(Problem::from_texts(texts, words, &step.address, &step.origin));
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
