//! Which steps come after which, by edges over any number of steps.
//!
//! As in apply, an edge to a section means its earlier steps. To keep the links linear in the
//! number of steps, each step has a second node, which comes after the step and after the second
//! node of the previous step in the section.

use std::collections::{HashMap, HashSet};

use crate::{diff::Step, steps};

/// The links between steps.
#[derive(Debug)]
pub(in crate::plan) struct Graph {
    /// The nodes that each node comes directly after. The second nodes follow the steps.
    predecessors: Vec<Vec<usize>>,
    /// The reverse.
    successors: Vec<Vec<usize>>,
}

impl Graph {
    pub(in crate::plan) fn from_steps(steps: &[Step]) -> Self {
        let places: HashMap<_, _> =
            steps.iter().enumerate().map(|(at, step)| (&step.address, at)).collect();
        let mut before = vec![Vec::new(); 2 * steps.len()];
        // The last step so far of each section.
        let mut last = HashMap::new();
        for (at, step) in steps.iter().enumerate() {
            let path = &step.address.path;
            before[at].extend(step.after.iter().filter_map(
                |edge| match places.get(&edge.address) {
                    Some(one) => Some(*one),
                    None if edge.address.path != *path || edge.address.entry.is_some() => None,
                    None => last.get(&(path, edge.address.section)).copied(),
                },
            ));
            let section_node = steps.len() + at;
            before[section_node].push(at);
            before[section_node].extend(last.insert((path, step.address.section), section_node));
        }
        let mut after = vec![Vec::new(); before.len()];
        for (at, others) in before.iter().enumerate() {
            others.iter().for_each(|other| after[*other].push(at));
        }
        Self { predecessors: before, successors: after }
    }

    /// The step at `first`, and those that come after it.
    pub(in crate::plan) fn followers(&self, first: usize) -> HashSet<usize> {
        let mut found = HashSet::new();
        self.visit_followers(first, |at| found.insert(at));
        found
    }

    fn visit_followers(&self, first: usize, mut is_new: impl FnMut(usize) -> bool) {
        let mut open = vec![first];
        while let Some(at) = open.pop() {
            steps::step();
            if is_new(at) {
                open.extend(&self.successors[at]);
            }
        }
    }

    /// The steps that come after themselves, each with another one of its circle.
    pub(super) fn find_circles(&self) -> Vec<(usize, usize)> {
        // A node is finished after all that it comes after.
        let (mut seen, mut finished) = (vec![false; self.predecessors.len()], Vec::new());
        for start in 0..self.predecessors.len() {
            let mut open = vec![(start, false)];
            while let Some((at, is_finished)) = open.pop() {
                steps::step();
                if is_finished {
                    finished.push(at);
                } else if !std::mem::replace(&mut seen[at], true) {
                    open.push((at, true));
                    open.extend(self.predecessors[at].iter().map(|other| (*other, false)));
                }
            }
        }
        // From the last one on, a node reaches exactly its circle among the nodes that are not yet in one.
        let mut circle = HashMap::new();
        for start in finished.into_iter().rev() {
            self.visit_followers(start, |at| {
                let is_new = !circle.contains_key(&at);
                circle.entry(at).or_insert(start);
                is_new
            });
        }
        let step_count = self.predecessors.len() / 2;
        let mut members: HashMap<_, Vec<_>> = HashMap::new();
        (0..step_count).for_each(|at| members.entry(circle[&at]).or_default().push(at));
        (0..step_count)
            .filter_map(|at| {
                let mut direct = self.predecessors[at].iter();
                let direct =
                    direct.find(|other| **other < step_count && circle[other] == circle[&at]);
                let other =
                    direct.or_else(|| members[&circle[&at]].iter().find(|other| **other != at));
                Some((at, *other?))
            })
            .collect()
    }
}
