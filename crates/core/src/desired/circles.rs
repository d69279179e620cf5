//! Finds circles in relations, such as profiles that use each other.

use std::{collections::BTreeMap, iter, vec};

/// Follows the relations from each of `starts`, depth first. Returns each circle with the start
/// that led to it. `successors` returns the nodes to which a node leads directly.
pub(crate) fn find_circles<T: Copy + Ord>(
    starts: impl IntoIterator<Item = T>,
    successors: impl Fn(T) -> Vec<T>,
) -> impl Iterator<Item = (T, Vec<T>)> {
    let mut starts = starts.into_iter();
    // The current path, with the nodes still to follow from each of its nodes.
    let mut path: Vec<(T, vec::IntoIter<T>)> = Vec::new();
    // The position of each visited node in the path; `None` if all nodes to which the node leads
    // were visited.
    let mut positions: BTreeMap<T, Option<usize>> = BTreeMap::new();
    iter::from_fn(move || {
        loop {
            let node = match path.last_mut().map(|(node, remaining)| (*node, remaining.next())) {
                None => starts.next()?,
                Some((_, Some(next))) => next,
                Some((finished, None)) => {
                    positions.insert(finished, None);
                    path.pop();
                    continue;
                }
            };
            match positions.get(&node) {
                None => {
                    positions.insert(node, Some(path.len()));
                    path.push((node, successors(node).into_iter()));
                }
                Some(None) => {}
                Some(Some(first)) => {
                    let circle = path[*first..].iter().map(|(node, _)| *node).collect();
                    return Some((path[0].0, circle));
                }
            }
        }
    })
}
