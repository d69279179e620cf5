//! Visibility across containers: nothing is more visible than the group that it is in.

use std::collections::HashMap;

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
        let reason = "nothing is more visible than the group that it is in";
        edges.extend(above(&widened, path).next().map(|group| (*at, *group, reason)));
    }
    for (path, at) in &narrowed {
        let reason = "what is in a group is never more visible than it";
        edges.extend(above(&narrowed, path).next().map(|group| (*group, *at, reason)));
    }
    edges.sort_unstable();
    let edge = |earlier: usize, reason| Edge { address: steps[earlier].address.clone(), reason };
    edges.into_iter().map(|(later, earlier, reason)| (later, edge(earlier, reason))).collect()
}

/// Refuses to narrow a group with something more visible in it that this run does not narrow. What leaves
/// the group does so first.
pub(super) fn refuse_visible_contents(steps: &mut [Step]) -> Vec<Problem> {
    let is_narrowed = steps
        .iter()
        .any(|step| step.effects.iter().any(|effect| matches!(effect, Effect::Contains { .. })));
    let changed = by_path(steps, |step| {
        let leaves = step.provides(Capability::InPlace);
        let after = visibility(step).filter(|_| narrows(step)).map(|(_, after)| after);
        (is_narrowed && (leaves || after.is_some())).then_some((leaves, after))
    });
    let mut problems = Vec::new();
    for step in steps.iter_mut().filter(|_| is_narrowed) {
        let Some((_, most)) = visibility(step) else { continue };
        let group = step.address.path.to_lowercase();
        for effect in &step.effects {
            let Effect::Contains { path, rank } = effect else { continue };
            let path = path.to_lowercase();
            let is_inside = groups_above(&path).any(|above| above == group);
            match changed.get(&path) {
                Some((true, _)) if !is_inside => {
                    let address = Address::container(path.into());
                    step.after.push(Edge { address, reason: "it has to leave the group first" });
                }
                Some((_, Some(after))) if *after <= most => {}
                _ => {
                    let (is, most) = (VISIBILITIES[*rank], VISIBILITIES[most]);
                    let words = words![path, is, most];
                    let problem =
                        Problem::of(texts::VISIBLE_CONTENTS, words, &step.address, &step.origin);
                    problems.push(problem);
                    break;
                }
            }
        }
    }
    problems
}
