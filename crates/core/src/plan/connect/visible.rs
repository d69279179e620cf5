//! Visibility across containers: nothing may be more visible than its parent group.

use std::sync::Arc;

use super::{StepRelations, map_by_path, values_above};
use crate::{
    address::{Address, groups_above},
    diff::{
        Action, Problem, Step,
        texts::{self, placeholders},
    },
    field::Scope,
    kind::{Capability, Effect, VISIBILITIES},
    plan::order::{narrows_visibility, visibility_change},
};

/// Refuses a step if its container would become more visible than the nearest group above after
/// this run. A new group without a declared visibility counts as private, although the service may
/// have another default.
pub(super) fn refuse_excess_visibility(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let groups = map_by_path(steps, |_, step| {
        let rank_after = visibility_after(step).filter(|_| step.scope == Scope::Group)?;
        Some((step, rank_after))
    });
    for step in steps.iter().filter(|_| !groups.is_empty()) {
        let Some(rank) = visibility_after(step) else { continue };
        let Some((group, max_rank)) = values_above(&groups, &step.address.path).next() else {
            continue;
        };
        if rank > *max_rank {
            let args = placeholders![
                visibility = VISIBILITIES[rank],
                group = group.address.path,
                most = VISIBILITIES[*max_rank]
            ];
            let change = step.change("visibility");
            let origin = change.and_then(|change| change.origin.as_ref()).unwrap_or(&step.origin);
            let problem = Problem::from_texts(texts::MORE_VISIBLE, args, &step.address, origin);
            relations.problems.push(problem);
        }
    }
    relations
}

/// The rank of the container's visibility after the step; `None` if the step does not set it.
fn visibility_after(step: &Step) -> Option<usize> {
    // A restored group keeps its former visibility. Therefore it is not treated as new.
    let is_new_group = step.scope == Scope::Group
        && step.action == Action::Create
        && step.provides(Capability::Exists);
    visibility_change(step).map(|(_, after)| after).or(is_new_group.then_some(0))
}

/// Orders the steps: a group becomes more visible before its contents, and less visible after them.
pub(super) fn order_visibility(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let reason = "nothing may be more visible than its parent group";
    let widened_groups =
        map_by_path(steps, |_, step| widens_visibility(step).then_some(&step.address));
    let narrowed_groups =
        map_by_path(steps, |step_index, step| narrows_visibility(step).then_some(step_index));
    for (index, step) in steps.iter().enumerate() {
        let path = &step.address.path;
        if narrows_visibility(step) {
            let group_index = values_above(&narrowed_groups, path).next();
            group_index
                .into_iter()
                .for_each(|group| relations.add_edge(*group, &step.address, reason));
        } else if widens_visibility(step) {
            let group_address = values_above(&widened_groups, path).next();
            group_address.into_iter().for_each(|group| relations.add_edge(index, group, reason));
        }
    }
    relations
}

/// True if a step widens the visibility of its container, or sets the visibility of a new one.
fn widens_visibility(step: &Step) -> bool {
    visibility_change(step)
        .is_some_and(|(before, after)| before.is_none_or(|before| before < after))
}

/// Refuses to make a group less visible than contents that stay in it. Contents that move out of the
/// group must move before the group is narrowed.
pub(super) fn check_narrowed_groups(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    if !steps.iter().any(|step| !more_visible_contents(step).is_empty()) {
        return relations;
    }
    let move_addresses = map_by_path(steps, |_, step| {
        step.provides(Capability::AtDeclaredPath)
            .then(|| Address::container(step.address.path.clone()))
    });
    let narrowed_ranks = map_by_path(steps, |_, step| {
        Some(visibility_change(step).filter(|_| narrows_visibility(step))?.1)
    });
    for (index, step) in steps.iter().enumerate() {
        let Some((_, max_rank)) = visibility_change(step) else { continue };
        let group = step.address.path.to_lowercase();
        for (path, rank) in more_visible_contents(step) {
            let key = path.to_lowercase();
            let leaves_group = !groups_above(&key).any(|ancestor| ancestor == group);
            let mut paths = std::iter::once(&*key).chain(groups_above(&key));
            if let Some(move_address) =
                paths.find_map(|ancestor| move_addresses.get(ancestor)).filter(|_| leaves_group)
            {
                let reason = "more visible contents must leave the group first";
                relations.add_edge(index, move_address, reason);
            } else if narrowed_ranks.get(&key).is_none_or(|after| *after > max_rank) {
                let args =
                    placeholders![path, is = VISIBILITIES[*rank], most = VISIBILITIES[max_rank]];
                relations.refuse(texts::VISIBLE_CONTENTS, args, step);
                break;
            }
        }
    }
    relations
}

/// The contents of a group that are more visible than the group will be after the step.
fn more_visible_contents(step: &Step) -> &[(Arc<str>, usize)] {
    let contents = step.effects.iter().find_map(|effect| match effect {
        Effect::Visibility { more_visible, .. } => Some(&**more_visible),
        _ => None,
    });
    contents.unwrap_or_default()
}
