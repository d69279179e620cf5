//! Groups what many groups and projects have in common: equal changes, and equal faults.

use std::collections::BTreeMap;

use crate::{
    diff::{Change, Step},
    digest,
};

use super::step::{firsts, remarks, tail};

/// From this number on, equal ones are shown once.
const FOLD_FROM: usize = 3;

/// The steps of one group or project, and the paths of others with equal changes.
#[derive(Debug)]
pub struct Folded<'s, T> {
    /// The steps of the first one.
    pub steps: &'s [T],
    /// The paths of the others.
    pub others: Vec<&'s str>,
}

/// Groups `all` by key, each group at the position of its first member.
pub fn gathered<T, K: Ord>(all: &[T], key: impl Fn(&T) -> K) -> Vec<Vec<&T>> {
    let (mut groups, mut known) = (Vec::<Vec<&T>>::new(), BTreeMap::new());
    for one in all {
        let next = groups.len();
        let at = *known.entry(key(one)).or_insert(next);
        if at == next {
            groups.push(Vec::new());
        }
        groups[at].push(one);
    }
    groups
}

/// `all` in order, each with the others of the same key. Small groups are not put together, nor any
/// if `full`.
pub fn same<T, K: Ord>(all: &[T], full: bool, key: impl Fn(&T) -> K) -> Vec<(&T, Vec<&T>)> {
    let numbered: Vec<_> = all.iter().enumerate().collect();
    let mut shown = Vec::new();
    for group in gathered(&numbered, |(_, one)| key(one)) {
        let stands_alone = full || group.len() < FOLD_FROM;
        let (first, others) = group.split_at(if stands_alone { group.len() } else { 1 });
        let others: Vec<_> = others.iter().map(|(_, one)| *one).collect();
        shown.extend(first.iter().map(|(at, one)| (*at, *one, others.clone())));
    }
    shown.sort_by_key(|(at, ..)| *at);
    shown.into_iter().map(|(_, one, others)| (one, others)).collect()
}

/// Groups `all`, which are in the order of a plan, by group or project. Those with equal changes
/// are put together at the first one, unless `full`. `of` is a step with its outcome, if it was
/// applied.
pub fn by_container<T>(
    all: &[T],
    full: bool,
    of: fn(&T) -> (&Step, Option<&str>),
) -> Vec<Folded<'_, T>> {
    fn path<T>(one: &T, of: fn(&T) -> (&Step, Option<&str>)) -> &str {
        &of(one).0.address.path
    }
    let each: Vec<_> = all.chunk_by(|a, b| path(a, of) == path(b, of)).collect();
    let together = same(&each, full, |steps| {
        let changes: Vec<_> = steps.iter().map(|one| change(of(one))).collect();
        digest::of_text(&changes.join("\n"))
    });
    let alike = together.into_iter().map(|(steps, others)| {
        let others = others.into_iter().map(|steps| path(&steps[0], of)).collect();
        Folded { steps, others }
    });
    alike.collect()
}

/// Everything shown of a step, except the path of its group or project and where it is declared.
/// Only for comparison: with secrets removed, different ones would look equal.
fn change((step, outcome): (&Step, Option<&str>)) -> String {
    let fields = step.changes.iter().map(|change| {
        let Change { field, before, after, label, .. } = change;
        format!("{field:?} {before:?} {after:?} {label:?}")
    });
    let fields = fields.collect::<Vec<_>>().join("\n");
    let about = (step.scope, tail(&step.address), step.action, step.label, outcome);
    // The group that an object is in has the same part in each.
    let above = step.address.path.rsplit_once('/').map_or("", |(above, _)| above);
    let first = |first: String| match first.strip_prefix(above) {
        Some(part) if part.is_empty() || part.starts_with('#') => part.to_owned(),
        _ => first,
    };
    let firsts = firsts(step).into_iter();
    let firsts: Vec<(_, Vec<_>)> =
        firsts.map(|(reason, all)| (reason, all.into_iter().map(first).collect())).collect();
    format!("{about:?} {:?} {firsts:?}\n{fields}", remarks(step))
}
