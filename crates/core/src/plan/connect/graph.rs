//! The order of steps as a graph: which steps come after a step, directly or through others.
//!
//! A step with an edge to a section waits for all earlier steps of that section, as in `apply`. So that the graph
//! grows only linearly with the number of steps, each step also has a section node. The section
//! node comes after the step, and after the section node of the previous step in the section.

use std::collections::{HashMap, HashSet};

use crate::{diff::Step, steps};

/// The dependencies between steps. The node of a step is its position; its section node is that
/// position plus the number of steps.
#[derive(Debug)]
pub(in crate::plan) struct StepGraph {
    /// For each node, the nodes that come directly before it.
    predecessors: Vec<Vec<usize>>,
    /// For each node, the nodes that come directly after it.
    successors: Vec<Vec<usize>>,
}

impl StepGraph {
    pub(in crate::plan) fn from_steps(steps: &[Step]) -> Self {
        let positions: HashMap<_, _> =
            steps.iter().enumerate().map(|(index, step)| (&step.address, index)).collect();
        let mut predecessors = vec![Vec::new(); 2 * steps.len()];
        // The last section node so far of each section.
        let mut last_nodes = HashMap::new();
        for (index, step) in steps.iter().enumerate() {
            let path = &step.address.path;
            predecessors[index].extend(step.after.iter().filter_map(|edge| {
                match positions.get(&edge.address) {
                    Some(position) => Some(*position),
                    None if edge.address.path != *path || edge.address.entry.is_some() => None,
                    None => last_nodes.get(&(path, edge.address.section)).copied(),
                }
            }));
            let section_node = steps.len() + index;
            predecessors[section_node].push(index);
            predecessors[section_node]
                .extend(last_nodes.insert((path, step.address.section), section_node));
        }
        let mut successors = vec![Vec::new(); predecessors.len()];
        for (index, nodes_before) in predecessors.iter().enumerate() {
            nodes_before.iter().for_each(|other| successors[*other].push(index));
        }
        Self { predecessors, successors }
    }

    /// The node `start`, and all nodes that come after it.
    pub(in crate::plan) fn followers(&self, start: usize) -> HashSet<usize> {
        let mut followers = HashSet::new();
        self.visit_followers(start, |node| followers.insert(node));
        followers
    }

    fn visit_followers(&self, start: usize, mut mark_visited: impl FnMut(usize) -> bool) {
        let mut pending = vec![start];
        while let Some(node) = pending.pop() {
            steps::count_step();
            if mark_visited(node) {
                pending.extend(&self.successors[node]);
            }
        }
    }

    /// The steps that are part of a cycle, each with another step of the same cycle.
    pub(super) fn find_cyclic_steps(&self) -> Vec<(usize, usize)> {
        // List the nodes so that each comes after its predecessors (depth first).
        let (mut visited_flags, mut finished_nodes) =
            (vec![false; self.predecessors.len()], Vec::new());
        for start in 0..self.predecessors.len() {
            let mut pending = vec![(start, false)];
            while let Some((node, is_finished)) = pending.pop() {
                steps::count_step();
                if is_finished {
                    finished_nodes.push(node);
                } else if !std::mem::replace(&mut visited_flags[node], true) {
                    pending.push((node, true));
                    pending.extend(self.predecessors[node].iter().map(|other| (*other, false)));
                }
            }
        }
        // Visit the nodes in reverse order. The nodes that follow a node and have no component yet
        // are its strongly connected component (the algorithm of Kosaraju).
        let mut component_by_node = HashMap::new();
        for start in finished_nodes.into_iter().rev() {
            self.visit_followers(start, |node| {
                let is_new = !component_by_node.contains_key(&node);
                component_by_node.entry(node).or_insert(start);
                is_new
            });
        }
        let step_count = self.predecessors.len() / 2;
        let mut component_steps: HashMap<_, Vec<_>> = HashMap::new();
        (0..step_count).for_each(|index| {
            component_steps.entry(component_by_node[&index]).or_default().push(index);
        });
        (0..step_count)
            .filter_map(|step_index| {
                let mut predecessors = self.predecessors[step_index].iter();
                let direct_member = predecessors.find(|other| {
                    **other < step_count
                        && component_by_node[other] == component_by_node[&step_index]
                });
                let cycle_member = direct_member.or_else(|| {
                    component_steps[&component_by_node[&step_index]]
                        .iter()
                        .find(|other| **other != step_index)
                });
                Some((step_index, *cycle_member?))
            })
            .collect()
    }
}
