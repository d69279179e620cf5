//! Which steps come after which, by edges over any number of steps.
//!
//! As when they are carried out, an edge to a section stands for its earlier steps. So that the links
//! grow with the steps and not with their product, each step has a second node, which comes after
//! the step and after the second node of the step before it in the section.

use std::collections::{HashMap, HashSet};

use crate::{diff::Step, steps};

/// The links between steps.
#[derive(Debug)]
pub(in crate::plan) struct Graph {
    /// The nodes that each node comes directly after. The second nodes follow the steps.
    before: Vec<Vec<usize>>,
    /// The reverse.
    after: Vec<Vec<usize>>,
}

impl Graph {
    pub(in crate::plan) fn of(all: &[Step]) -> Self {
        let places: HashMap<_, _> =
            all.iter().enumerate().map(|(at, step)| (&step.address, at)).collect();
        let mut before = vec![Vec::new(); 2 * all.len()];
        // The last step so far of each section.
        let mut last = HashMap::new();
        for (at, step) in all.iter().enumerate() {
            let path = &step.address.path;
            before[at].extend(step.after.iter().filter_map(
                |edge| match places.get(&edge.address) {
                    Some(one) => Some(*one),
                    None if edge.address.path != *path || edge.address.entry.is_some() => None,
                    None => last.get(&(path, edge.address.section)).copied(),
                },
            ));
            let both = all.len() + at;
            before[both].push(at);
            before[both].extend(last.insert((path, step.address.section), both));
        }
        let mut after = vec![Vec::new(); before.len()];
        for (at, others) in before.iter().enumerate() {
            others.iter().for_each(|other| after[*other].push(at));
        }
        Self { before, after }
    }

    /// The step at `first`, and those that come after it.
    pub(in crate::plan) fn followers(&self, first: usize) -> HashSet<usize> {
        let mut found = HashSet::new();
        self.follow(first, |at| found.insert(at));
        found
    }

    fn follow(&self, first: usize, mut is_new: impl FnMut(usize) -> bool) {
        let mut open = vec![first];
        while let Some(at) = open.pop() {
            steps::step();
            if is_new(at) {
                open.extend(&self.after[at]);
            }
        }
    }

    /// The steps that come after themselves, each with another one of its circle.
    pub(super) fn circles(&self) -> Vec<(usize, usize)> {
        // A node is finished after all that it comes after.
        let (mut seen, mut finished) = (vec![false; self.before.len()], Vec::new());
        for start in 0..self.before.len() {
            let mut open = vec![(start, false)];
            while let Some((at, is_finished)) = open.pop() {
                steps::step();
                if is_finished {
                    finished.push(at);
                } else if !std::mem::replace(&mut seen[at], true) {
                    open.push((at, true));
                    open.extend(self.before[at].iter().map(|other| (*other, false)));
                }
            }
        }
        // From the last one on, a node reaches exactly its circle among the nodes that are not yet in one.
        let mut circle = HashMap::new();
        for start in finished.into_iter().rev() {
            self.follow(start, |at| {
                let is_new = !circle.contains_key(&at);
                circle.entry(at).or_insert(start);
                is_new
            });
        }
        let all = self.before.len() / 2;
        let mut members: HashMap<_, Vec<_>> = HashMap::new();
        (0..all).for_each(|at| members.entry(circle[&at]).or_default().push(at));
        (0..all)
            .filter_map(|at| {
                let mut direct = self.before[at].iter();
                let direct = direct.find(|other| **other < all && circle[other] == circle[&at]);
                let other =
                    direct.or_else(|| members[&circle[&at]].iter().find(|other| **other != at));
                Some((at, *other?))
            })
            .collect()
    }
}
