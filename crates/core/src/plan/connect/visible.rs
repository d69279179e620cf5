//! Visibility across containers: nothing may be more visible than its parent group.

use std::sync::Arc;

use super::{StepRelations, by_path, values_above};
use crate::{
    address::{Address, groups_above},
    diff::{
        Action, Problem, Step,
        texts::{self, words},
    },
    field::Scope,
    kind::{Capability, Effect, VISIBILITIES},
    plan::order::{narrows_visibility, visibility_change},
};

/// Refuses visibility above what the same run gives the group. A new group that does not declare it is
/// private, unless the administrators of the service changed that.
pub(super) fn refuse_too_visible(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let groups = by_path(steps, |_, step| {
        let most = visibility_after(step).filter(|_| step.scope == Scope::Group)?;
        Some((step, most))
    });
    for step in steps.iter().filter(|_| !groups.is_empty()) {
        let Some(rank) = visibility_after(step) else { continue };
        let Some((group, most)) = values_above(&groups, &step.address.path).next() else {
            continue;
        };
        if rank > *most {
            let words = words![
                visibility = VISIBILITIES[rank],
                group = group.address.path,
                most = VISIBILITIES[*most]
            ];
            let change = step.change("visibility");
            let origin = change.and_then(|change| change.origin.as_ref()).unwrap_or(&step.origin);
            let problem = Problem::from_texts(texts::MORE_VISIBLE, words, &step.address, origin);
            relations.problems.push(problem);
        }
    }
    relations
}

/// The visibility that a step gives its container, as a rank.
fn visibility_after(step: &Step) -> Option<usize> {
    // A group that is restored has the visibility that it had.
    let is_new_group = step.scope == Scope::Group
        && step.action == Action::Create
        && step.provides(Capability::Exists);
    visibility_change(step).map(|(_, after)| after).or(is_new_group.then_some(0))
}

/// A group is widened before what is in it, and narrowed after that.
pub(super) fn order_visibility(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let reason = "nothing may be more visible than its parent group";
    let widened = by_path(steps, |_, step| widens(step).then_some(&step.address));
    let narrowed = by_path(steps, |at, step| narrows_visibility(step).then_some(at));
    for (at, step) in steps.iter().enumerate() {
        let path = &step.address.path;
        if narrows_visibility(step) {
            let group = values_above(&narrowed, path).next();
            group.into_iter().for_each(|group| relations.order(*group, &step.address, reason));
        } else if widens(step) {
            let group = values_above(&widened, path).next();
            group.into_iter().for_each(|group| relations.order(at, group, reason));
        }
    }
    relations
}

/// Whether a step widens the visibility of its container, or sets that of a new one.
fn widens(step: &Step) -> bool {
    visibility_change(step)
        .is_some_and(|(before, after)| before.is_none_or(|before| before < after))
}

/// Refuses to narrow a group with something more visible in it that this run does not narrow. What leaves
/// the group does so first.
pub(super) fn order_visible_contents(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    if !steps.iter().any(|step| !visible_contents(step).is_empty()) {
        return relations;
    }
    let moved = by_path(steps, |_, step| {
        step.provides(Capability::InPlace).then(|| Address::container(step.address.path.clone()))
    });
    let narrowed = by_path(steps, |_, step| {
        Some(visibility_change(step).filter(|_| narrows_visibility(step))?.1)
    });
    for (at, step) in steps.iter().enumerate() {
        let Some((_, max_rank)) = visibility_change(step) else { continue };
        let group = step.address.path.to_lowercase();
        for (path, rank) in visible_contents(step) {
            let key = path.to_lowercase();
            let leaves = !groups_above(&key).any(|above| above == group);
            let mut places = std::iter::once(&*key).chain(groups_above(&key));
            if let Some(mover) = places.find_map(|place| moved.get(place)).filter(|_| leaves) {
                relations.order(at, mover, "it has to leave the group first");
            } else if narrowed.get(&key).is_none_or(|after| *after > max_rank) {
                let words = words![path, is = VISIBILITIES[*rank], most = VISIBILITIES[max_rank]];
                let texts = texts::VISIBLE_CONTENTS;
                relations.problems.push(Problem::from_texts(
                    texts,
                    words,
                    &step.address,
                    &step.origin,
                ));
                break;
            }
        }
    }
    relations
}

/// The groups and projects in a group that are more visible than a step makes the group.
fn visible_contents(step: &Step) -> &[(Arc<str>, usize)] {
    let contents = step.effects.iter().find_map(|effect| match effect {
        Effect::Visibility { more_visible, .. } => Some(&**more_visible),
        _ => None,
    });
    contents.unwrap_or_default()
}
