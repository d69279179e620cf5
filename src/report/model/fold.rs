//! Groups what many groups and projects have in common: equal changes, and equal faults.

use std::collections::BTreeMap;

use crate::{
    diff::{Change, Step},
    digest,
    text::count,
};

use super::step::{firsts, remarks, tail};

/// From this number on, equal ones are shown once.
const FOLD_FROM: usize = 3;

/// Steps of one group or project, and the paths of others with equal ones.
#[derive(Debug)]
pub struct Folded<'s, T> {
    /// The steps of the first one.
    pub steps: Vec<&'s T>,
    /// The paths of the others.
    pub others: Vec<&'s str>,
    /// How many other steps of the first one are shown with those of others.
    pub shared: usize,
}

impl<T> Folded<'_, T> {
    /// That the group or project has more changes, which are shown with those of others.
    pub fn aside(&self) -> Option<String> {
        let changes = || count(self.shared, "more change");
        (self.shared > 0).then(|| format!("and {}, shared with others", changes()))
    }
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

/// Groups `all`, which are in the order of a plan, by group or project. Steps that many of them
/// have are put together at the first one, before its own, unless `full`. `of` is a step with its
/// outcome, if it was applied.
pub fn by_container<T>(
    all: &[T],
    full: bool,
    of: fn(&T) -> (&Step, Option<&str>),
) -> Vec<Folded<'_, T>> {
    fn path<T>(one: &T, of: fn(&T) -> (&Step, Option<&str>)) -> &str {
        &of(one).0.address.path
    }
    let each: Vec<_> = all.chunk_by(|a, b| path(a, of) == path(b, of)).collect();
    let key = |one: &T| digest::of_text(&change(of(one)));
    let keys: Vec<Vec<_>> = each.iter().map(|steps| steps.iter().map(key).collect()).collect();
    // Which groups and projects have a step.
    let mut holders: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, keys) in keys.iter().enumerate() {
        for key in keys {
            holders.entry(key).or_default().push(at);
        }
    }
    let mut shown = Vec::new();
    for (at, (steps, keys)) in each.iter().zip(&keys).enumerate() {
        let steps = steps.iter().zip(keys).map(|(step, key)| (step, &*holders[key]));
        let (shared, own): (Vec<_>, Vec<_>) =
            steps.partition(|(_, holders)| !full && holders.len() >= FOLD_FROM);
        let number = shared.len();
        let first: Vec<_> = shared.into_iter().filter(|(_, holders)| holders[0] == at).collect();
        // Steps of the same groups and projects are shown together.
        for together in gathered(&first, |(_, holders)| *holders) {
            let others =
                together[0].1[1..].iter().map(|other| path(&each[*other][0], of)).collect();
            let steps = together.into_iter().map(|(step, _)| *step).collect();
            shown.push(Folded { steps, others, shared: 0 });
        }
        if !own.is_empty() {
            let steps = own.into_iter().map(|(step, _)| step).collect();
            shown.push(Folded { steps, others: Vec::new(), shared: number });
        }
    }
    shown
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
