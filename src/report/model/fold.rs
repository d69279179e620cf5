//! Groups what many groups and projects have in common: equal changes, changes from one declaration,
//! and equal faults.

use std::collections::BTreeMap;

use crate::{
    address::group_of,
    diff::{Action, Change, Shown, Step},
    digest,
    text::count,
    value::Json,
};

use super::step::{firsts, remarks, tail};

/// From this number on, equal ones are shown once.
const FOLD_FROM: usize = 3;

/// What is put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Nothing.
    Nothing,
    /// Equal steps.
    Steps,
    /// Equal steps, and equal fields of different steps.
    Fields,
}

/// A step, or some of its fields.
#[derive(Debug)]
pub struct Piece<'s, T> {
    /// The step as it was given, with its outcome if there is one.
    pub item: T,
    /// The step.
    pub step: &'s Step,
    /// The fields shown here.
    pub changes: Vec<&'s Change>,
}

/// Steps of one group or project, and the paths of others with equal ones.
#[derive(Debug)]
pub struct Folded<'s, T> {
    /// The steps of the first one.
    pub steps: Vec<Piece<'s, T>>,
    /// The paths of the others.
    pub others: Vec<&'s str>,
    /// Whether the others have other values, from the same declaration.
    pub differs: bool,
    /// How many other steps and fields of the first one are shown with those of others.
    pub shared: usize,
}

impl<T> Folded<'_, T> {
    /// What the others have.
    pub const fn alike(&self) -> &'static str {
        if self.differs { "the same, with other values," } else { "the same" }
    }

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

/// Identifies equal pieces.
type Key = [u8; 32];

/// Groups `all`, which are in the order of a plan, by group or project. What many of them have is
/// put together at the first one, before its own. `of` is a step with its outcome, if it was
/// applied.
pub fn by_container<'s, T: Copy>(
    all: &[T],
    fold: Fold,
    of: impl Fn(T) -> (&'s Step, Option<&'s str>),
) -> Vec<Folded<'s, T>> {
    let path = |item: &T| &*of(*item).0.address.path;
    let pieces = |&item: &T| {
        let (step, outcome) = of(item);
        let fields = step.changes.iter();
        let is_split = fold == Fold::Fields && step.action == Action::Update && fields.len() > 1;
        let parts: Vec<Vec<_>> = if is_split {
            fields.map(|field| vec![field]).collect()
        } else {
            vec![fields.collect()]
        };
        let piece =
            move |changes: Vec<_>| (key((step, outcome), &changes), Piece { item, step, changes });
        parts.into_iter().map(piece)
    };
    let each = all.chunk_by(|a, b| path(a) == path(b));
    let mut each: Vec<Vec<_>> = each.map(|items| items.iter().flat_map(pieces).collect()).collect();
    let alike = holders(&each);
    for (key, piece) in each.iter_mut().flatten().filter(|(key, _)| alike[key].len() < FOLD_FROM) {
        *key = by_declaration(of(piece.item), &piece.changes).unwrap_or(*key);
    }
    let holders = holders(&each);
    let paths: Vec<_> = each.iter().map(|pieces| &*pieces[0].1.step.address.path).collect();
    let mut shown = Vec::new();
    for (at, pieces) in each.iter().enumerate() {
        let pieces =
            pieces.iter().map(|(key, piece)| (piece, &*holders[key], !alike.contains_key(key)));
        let (shared, own): (Vec<_>, Vec<_>) =
            pieces.partition(|(_, holders, _)| fold != Fold::Nothing && holders.len() >= FOLD_FROM);
        let number = shared.len();
        let first: Vec<_> = shared.into_iter().filter(|(_, holders, _)| holders[0] == at).collect();
        // What the same groups and projects have is shown together.
        for together in gathered(&first, |(_, holders, differs)| (*holders, *differs)) {
            let (_, holders, differs) = together[0];
            let others = holders[1..].iter().map(|other| paths[*other]).collect();
            let steps = joined(together.into_iter().map(|(piece, ..)| *piece));
            shown.push(Folded { steps, others, differs: *differs, shared: 0 });
        }
        if !own.is_empty() {
            let steps = joined(own.into_iter().map(|(piece, ..)| piece));
            shown.push(Folded { steps, others: Vec::new(), differs: false, shared: number });
        }
    }
    shown
}

/// Which groups and projects have a piece.
fn holders<T>(each: &[Vec<(Key, Piece<'_, T>)>]) -> BTreeMap<Key, Vec<usize>> {
    let mut holders: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, pieces) in each.iter().enumerate() {
        pieces.iter().for_each(|(key, _)| holders.entry(*key).or_default().push(at));
    }
    holders
}

/// `pieces`, with those of one step in one.
fn joined<'a, 's: 'a, T: Copy + 'a>(
    pieces: impl Iterator<Item = &'a Piece<'s, T>>,
) -> Vec<Piece<'s, T>> {
    let mut joined: Vec<Piece<'s, T>> = Vec::new();
    for Piece { item, step, changes } in pieces {
        match joined.last_mut() {
            Some(last) if std::ptr::eq(last.step, *step) => last.changes.extend(changes),
            _ => joined.push(Piece { item: *item, step, changes: changes.clone() }),
        }
    }
    joined
}

/// Identifies everything shown of a step and `changes` of it, except the path of its group or
/// project and where it is declared. Secrets are not removed, since different ones would look
/// equal.
fn key((step, outcome): (&Step, Option<&str>), changes: &[&Change]) -> Key {
    let fields = changes.iter().map(|change| {
        let Change { field, before, after, label, .. } = change;
        format!("{field:?} {before:?} {after:?} {label:?}")
    });
    key_of((step, outcome), fields)
}

/// The same for changes whose declarations are at the same places: each group or project has its own
/// values, such as `{name}`. What a removal loses is not put together.
fn by_declaration((step, outcome): (&Step, Option<&str>), changes: &[&Change]) -> Option<Key> {
    let shape = |side: &Shown| {
        let is_blank = |value: &Json| value.is_null() || value == "";
        (std::mem::discriminant(side), matches!(side, Shown::Value(value) if is_blank(value)))
    };
    let fields = changes.iter().map(|change| {
        let Change { field, before, after, label, origin } = change;
        let at = origin.as_ref().unwrap_or(&step.origin);
        let sides = (shape(before), shape(after));
        format!("{field:?} {sides:?} {label:?} {}:{}:{}", at.file, at.line, at.column)
    });
    let is_declared = step.action != Action::Delete && !changes.is_empty();
    is_declared.then(|| key_of((step, outcome), fields))
}

fn key_of((step, outcome): (&Step, Option<&str>), fields: impl Iterator<Item = String>) -> Key {
    let fields = fields.collect::<Vec<_>>().join("\n");
    let about = (step.scope, tail(&step.address), step.action, step.label, outcome);
    // The group that an object is in has the same part in each.
    let above = group_of(&step.address.path).unwrap_or_default();
    let first = |first: String| match first.strip_prefix(above) {
        Some(part) if part.is_empty() || part.starts_with('#') => part.to_owned(),
        _ => first,
    };
    let firsts = firsts(step).into_iter();
    let firsts: Vec<(_, Vec<_>)> =
        firsts.map(|(reason, all)| (reason, all.into_iter().map(first).collect())).collect();
    digest::of_text(&format!("{about:?} {:?} {firsts:?}\n{fields}", remarks(step)))
}
