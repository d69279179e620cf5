//! What many groups and projects have in common, shown once: equal changes.

use std::collections::BTreeMap;

use crate::diff::{Change, Step};

use super::{
    Told,
    step::{firsts, remarks, tail},
};

/// From so many on, groups and projects that change in the same way are shown once.
const FOLD_FROM: usize = 3;

/// The steps of one group or project, and the paths of the others that change in the same way.
#[derive(Debug)]
pub struct Alike<'s, T> {
    /// The steps of the first.
    pub steps: &'s [T],
    /// The others.
    pub others: Vec<&'s str>,
}

/// What has a step.
pub trait Stepped {
    /// The step.
    fn step(&self) -> &Step;
    /// What became of it, if anything did.
    fn outcome(&self) -> Option<&str>;
}

impl Stepped for &Step {
    fn step(&self) -> &Step {
        self
    }
    fn outcome(&self) -> Option<&str> {
        None
    }
}

impl Stepped for Told<'_> {
    fn step(&self) -> &Step {
        self.step
    }
    fn outcome(&self) -> Option<&str> {
        self.outcome
    }
}

/// `steps`, which are in the order of a plan, by group or project; those that change in the same way
/// are put together at the first of them, unless all are wanted in full.
pub fn alike<T: Stepped>(steps: &[T], full: bool) -> Vec<Alike<'_, T>> {
    let mut groups: Vec<Vec<&[T]>> = Vec::new();
    let mut known = BTreeMap::new();
    for of_one in steps.chunk_by(|a, b| path(a) == path(b)) {
        let next = groups.len();
        let at = if full { next } else { *known.entry(change(of_one)).or_insert(next) };
        if at == next {
            groups.push(Vec::new());
        }
        groups[at].push(of_one);
    }
    let mut all = Vec::new();
    for group in groups {
        let shown = if group.len() < FOLD_FROM { group.len() } else { 1 };
        let (shown, others) = group.split_at(shown);
        all.extend(shown.iter().map(|steps| Alike { steps, others: Vec::new() }));
        if let Some(last) = all.last_mut() {
            last.others = others.iter().map(|steps| path(&steps[0])).collect();
        }
    }
    all
}

/// The group or project of a step.
fn path<T: Stepped>(of: &T) -> &str {
    &of.step().address.path
}

/// All that a reader is shown of the steps of one group or project, but its path and where it is
/// declared. It is compared and never shown: struck, different secrets would look the same.
fn change<T: Stepped>(steps: &[T]) -> String {
    let parts = steps.iter().map(|of| {
        let step = of.step();
        let fields = step.changes.iter().map(|change| {
            let Change { field, before, after, label, .. } = change;
            format!("{field:?} {before:?} {after:?} {label:?}")
        });
        let fields = fields.collect::<Vec<_>>().join("\n");
        let about = (step.scope, tail(&step.address), step.action, step.label, of.outcome());
        format!("{about:?} {:?} {:?}\n{fields}", remarks(step), firsts(step))
    });
    parts.collect::<Vec<_>>().join("\n")
}
