//! Groups what many groups and projects have in common: equal changes, changes from one declaration,
//! and equal faults.

use std::collections::BTreeMap;

use super::{
    StepItem,
    step::{local_name, predecessors, remarks},
};
use crate::{
    address::group_of,
    diff::{Action, FieldChange, Shown, Step},
    digest,
    text::count,
};

/// From this number on, equal ones are shown once.
const MIN_FOLDED: usize = 3;

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
pub struct FoldedPiece<'s> {
    /// The step, with its outcome if there is one.
    pub item: StepItem<'s>,
    /// The fields shown here.
    pub changes: Vec<&'s FieldChange>,
}

/// Steps of one group or project, and the paths of others with equal ones.
#[derive(Debug)]
pub struct FoldedSteps<'s> {
    /// The steps of the first one.
    pub steps: Vec<FoldedPiece<'s>>,
    /// The paths of the others.
    pub others: Vec<&'s str>,
    /// True if the others have other values, from the same declaration.
    pub differs: bool,
    /// How many other steps and fields of the first one are shown with those of others.
    pub shared: usize,
}

impl FoldedSteps<'_> {
    /// The first step.
    pub fn first(&self) -> &Step {
        self.steps[0].item.step
    }

    /// What the others have.
    pub const fn alike(&self) -> &'static str {
        if self.differs { "the same, with other values," } else { "the same" }
    }

    /// A remark about changes of the group or project that are shown with those of others.
    pub fn shared_remark(&self) -> Option<String> {
        let changes = (self.shared > 0).then(|| count(self.shared, "more change"));
        changes.map(|changes| format!("and {changes}, shared with others"))
    }
}

/// Groups `all` by key, each group at the position of its first member.
pub fn group_by_key<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> Vec<Vec<&T>> {
    let (mut groups, mut positions) = (Vec::<Vec<&T>>::new(), BTreeMap::new());
    for item in items {
        let next = groups.len();
        let index = *positions.entry(key(item)).or_insert(next);
        if index == next {
            groups.push(Vec::new());
        }
        groups[index].push(item);
    }
    groups
}

/// `items` in order, each with the others of the same key. Small groups are not put together, nor any
/// if `full`.
pub fn fold_equal<T, K: Ord>(items: &[T], full: bool, key: impl Fn(&T) -> K) -> Vec<(&T, Vec<&T>)> {
    let numbered: Vec<_> = items.iter().enumerate().collect();
    let mut shown = Vec::new();
    for group in group_by_key(&numbered, |(_, item)| key(item)) {
        let folds = !full && group.len() >= MIN_FOLDED;
        let (first, others) = group.split_at(if folds { 1 } else { group.len() });
        let others: Vec<_> = others.iter().map(|(_, item)| *item).collect();
        shown.extend(first.iter().map(|(index, item)| (*index, *item, others.clone())));
    }
    shown.sort_by_key(|(index, ..)| *index);
    shown.into_iter().map(|(_, item, others)| (item, others)).collect()
}

/// Identifies equal pieces.
type Key = [u8; 32];

/// Groups `steps`, which are in the order of a plan, by group or project. What many of them have is
/// put together at the first one, before its own.
pub fn fold_steps<'s>(steps: &[StepItem<'s>], fold: Fold) -> Vec<FoldedSteps<'s>> {
    let containers = steps.chunk_by(|a, b| a.step.address.path == b.step.address.path);
    let mut containers: Vec<Vec<_>> = containers
        .map(|items| items.iter().flat_map(|item| split_step(*item, fold)).collect())
        .collect();
    let equal = holders_by_key(&containers);
    for (key, piece) in &mut containers.iter_mut().flatten() {
        if equal[key].len() < MIN_FOLDED {
            *key = declaration_key(piece).unwrap_or(*key);
        }
    }
    let holders = holders_by_key(&containers);
    let paths: Vec<_> =
        containers.iter().map(|pieces| &*pieces[0].1.item.step.address.path).collect();
    let mut shown = Vec::new();
    for (index, pieces) in containers.iter().enumerate() {
        let pieces =
            pieces.iter().map(|(key, piece)| (piece, &*holders[key], !equal.contains_key(key)));
        let (shared, single): (Vec<_>, Vec<_>) = pieces
            .partition(|(_, holders, _)| fold != Fold::Nothing && holders.len() >= MIN_FOLDED);
        let number = shared.len();
        let first: Vec<_> =
            shared.into_iter().filter(|(_, holders, _)| holders[0] == index).collect();
        // What the same groups and projects have is shown together.
        for together in group_by_key(&first, |(_, holders, differs)| (*holders, *differs)) {
            let (_, holders, differs) = together[0];
            let others = holders[1..].iter().map(|other| paths[*other]).collect();
            let steps = join_pieces(together.into_iter().map(|(piece, ..)| *piece));
            shown.push(FoldedSteps { steps, others, differs: *differs, shared: 0 });
        }
        if !single.is_empty() {
            let steps = join_pieces(single.into_iter().map(|(piece, ..)| piece));
            shown.push(FoldedSteps { steps, others: Vec::new(), differs: false, shared: number });
        }
    }
    shown
}

/// The parts of a step that are folded separately, each with its key.
fn split_step(item: StepItem<'_>, fold: Fold) -> impl Iterator<Item = (Key, FoldedPiece<'_>)> {
    let fields = item.step.changes.iter();
    let is_split = fold == Fold::Fields && item.step.action == Action::Update && fields.len() > 1;
    let parts: Vec<Vec<_>> =
        if is_split { fields.map(|field| vec![field]).collect() } else { vec![fields.collect()] };
    parts.into_iter().map(move |changes| {
        let piece = FoldedPiece { item, changes };
        (equality_key(&piece), piece)
    })
}

/// Which groups and projects have a piece.
fn holders_by_key(containers: &[Vec<(Key, FoldedPiece<'_>)>]) -> BTreeMap<Key, Vec<usize>> {
    let mut holders: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, pieces) in containers.iter().enumerate() {
        pieces.iter().for_each(|(key, _)| holders.entry(*key).or_default().push(index));
    }
    holders
}

/// `pieces`, with those of one step in one.
fn join_pieces<'a, 's: 'a>(
    pieces: impl Iterator<Item = &'a FoldedPiece<'s>>,
) -> Vec<FoldedPiece<'s>> {
    let mut joined: Vec<FoldedPiece<'s>> = Vec::new();
    for FoldedPiece { item, changes } in pieces {
        match joined.last_mut() {
            Some(last) if std::ptr::eq(last.item.step, item.step) => last.changes.extend(changes),
            _ => joined.push(FoldedPiece { item: *item, changes: changes.clone() }),
        }
    }
    joined
}

/// Identifies everything shown of a piece, except the path of its group or project and where it is
/// declared. Secrets are not removed, since different ones would look equal.
fn equality_key(piece: &FoldedPiece<'_>) -> Key {
    piece_key(piece, |FieldChange { field, before, after, label, .. }| {
        format!("{field:?} {before:?} {after:?} {label:?}")
    })
}

/// The same for a piece whose changes are declared at the same places as those of others: each group
/// or project has its own values, such as `{name}`. What a removal loses is not put together.
fn declaration_key(piece: &FoldedPiece<'_>) -> Option<Key> {
    let step = piece.item.step;
    let is_declared = step.action != Action::Delete && !piece.changes.is_empty();
    is_declared.then(|| {
        piece_key(piece, |FieldChange { field, before, after, label, origin }| {
            let origin = origin.as_ref().unwrap_or(&step.origin);
            let sides = [before, after].map(|side| {
                let is_blank =
                    matches!(&**side, Shown::Value(value) if value.is_null() || value == "");
                (std::mem::discriminant(&**side), is_blank)
            });
            format!("{field:?} {sides:?} {label:?} {origin}")
        })
    })
}

/// A key of what all pieces show, and of the `text` of each change.
fn piece_key(
    FoldedPiece { item, changes }: &FoldedPiece<'_>,
    text: impl Fn(&FieldChange) -> String,
) -> Key {
    let fields = changes.iter().map(|change| text(change)).collect::<Vec<_>>().join("\n");
    let step = item.step;
    let about = (step.scope, local_name(&step.address), step.action, step.label, item.outcome);
    // The group that an object is in has the same part in each.
    let parent = group_of(&step.address.path).unwrap_or_default();
    let mut firsts = predecessors(step);
    for first in firsts.iter_mut().flat_map(|(_, firsts)| firsts) {
        if let Some(part) = first.strip_prefix(parent)
            && (part.is_empty() || part.starts_with('#'))
        {
            *first = part.to_owned();
        }
    }
    digest::of_text(&format!("{about:?} {:?} {firsts:?}\n{fields}", remarks(step)))
}
