//! Finds the common parts of many groups and projects: equal changes, changes from one declaration,
//! and equal faults. Each is shown once.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, Hash, RandomState},
    sync::LazyLock,
};

use super::{
    StepItem,
    step::{local_name, predecessors, remarks},
};
use crate::{
    address::group_of,
    diff::{Action, FieldChange, Shown, Step},
    text::count,
};

/// The minimum number of equal items that are shown as one.
const MIN_FOLDED: usize = 3;

/// The items that are shown as one.
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
    pub has_other_values: bool,
    /// How many other steps and fields of the first one are shown with those of others.
    pub shared_count: usize,
}

impl FoldedSteps<'_> {
    /// The first step.
    pub fn first(&self) -> &Step {
        self.steps[0].item.step
    }

    /// The words for the content of the others.
    pub const fn alike_text(&self) -> &'static str {
        if self.has_other_values { "the same, with other values," } else { "the same" }
    }

    /// A remark about changes of the group or project that are shown with those of others.
    pub fn shared_remark(&self) -> Option<String> {
        let changes = (self.shared_count > 0).then(|| count(self.shared_count, "more change"));
        changes.map(|changes| format!("and {changes}, shared with others"))
    }
}

/// Groups `items` by key, each group at the position of its first member.
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

/// `items` in order, each with the others of the same key. Groups with few items are not folded; with
/// `is_full` none is.
pub fn fold_equal<T, K: Ord>(
    items: &[T],
    is_full: bool,
    key: impl Fn(&T) -> K,
) -> Vec<(&T, Vec<&T>)> {
    let numbered: Vec<_> = items.iter().enumerate().collect();
    let mut shown = Vec::new();
    for group in group_by_key(&numbered, |(_, item)| key(item)) {
        let is_folded = !is_full && group.len() >= MIN_FOLDED;
        let (first, others) = group.split_at(if is_folded { 1 } else { group.len() });
        let others: Vec<_> = others.iter().map(|(_, item)| *item).collect();
        shown.extend(first.iter().map(|(index, item)| (*index, *item, others.clone())));
    }
    shown.sort_by_key(|(index, ..)| *index);
    shown.into_iter().map(|(_, item, others)| (item, others)).collect()
}

/// Identifies equal pieces.
type PieceKey = [u64; 2];

/// Nobody can choose values of equal keys: this is seeded anew in each run.
static HASHERS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);

/// Groups `steps`, which are in the order of a plan, by group or project. Equal steps of many of them
/// are shown at the first one, before its other steps.
pub fn fold_steps<'s>(steps: &[StepItem<'s>], fold: Fold) -> Vec<FoldedSteps<'s>> {
    let containers = steps.chunk_by(|a, b| a.step.address.path == b.step.address.path);
    let mut containers: Vec<Vec<_>> = containers
        .map(|items| items.iter().flat_map(|item| split_step(*item, fold)).collect())
        .collect();
    let equal_holders = holders_by_key(&containers);
    for (key, piece) in &mut containers.iter_mut().flatten() {
        if equal_holders[key].len() < MIN_FOLDED {
            *key = declaration_key(piece).unwrap_or(*key);
        }
    }
    let holders = holders_by_key(&containers);
    let paths: Vec<_> =
        containers.iter().map(|pieces| &*pieces[0].1.item.step.address.path).collect();
    let mut shown = Vec::new();
    for (index, pieces) in containers.iter().enumerate() {
        let pieces = pieces
            .iter()
            .map(|(key, piece)| (piece, &*holders[key], !equal_holders.contains_key(key)));
        let (shared, single): (Vec<_>, Vec<_>) = pieces
            .partition(|(_, holders, _)| fold != Fold::Nothing && holders.len() >= MIN_FOLDED);
        let number = shared.len();
        let first: Vec<_> =
            shared.into_iter().filter(|(_, holders, _)| holders[0] == index).collect();
        // All pieces that the same groups and projects share are shown together.
        for same_holders in group_by_key(&first, |(_, holders, differs)| (*holders, *differs)) {
            let (_, holders, differs) = same_holders[0];
            let others = holders[1..].iter().map(|other| paths[*other]).collect();
            let steps = join_pieces(same_holders.into_iter().map(|(piece, ..)| *piece));
            shown.push(FoldedSteps { steps, others, has_other_values: *differs, shared_count: 0 });
        }
        if !single.is_empty() {
            let steps = join_pieces(single.into_iter().map(|(piece, ..)| piece));
            shown.push(FoldedSteps {
                steps,
                others: Vec::new(),
                has_other_values: false,
                shared_count: number,
            });
        }
    }
    shown
}

/// The parts of a step that are folded separately, each with its key.
fn split_step(item: StepItem<'_>, fold: Fold) -> impl Iterator<Item = (PieceKey, FoldedPiece<'_>)> {
    let fields = item.step.changes.iter();
    let is_split = fold == Fold::Fields && item.step.action == Action::Update && fields.len() > 1;
    let parts: Vec<Vec<_>> =
        if is_split { fields.map(|field| vec![field]).collect() } else { vec![fields.collect()] };
    parts.into_iter().map(move |changes| {
        let piece = FoldedPiece { item, changes };
        (equality_key(&piece), piece)
    })
}

/// The groups and projects with a piece.
fn holders_by_key(
    containers: &[Vec<(PieceKey, FoldedPiece<'_>)>],
) -> BTreeMap<PieceKey, Vec<usize>> {
    let mut holders: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, pieces) in containers.iter().enumerate() {
        pieces.iter().for_each(|(key, _)| holders.entry(*key).or_default().push(index));
    }
    holders
}

/// `pieces`, after joining those of the same step.
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
fn equality_key(piece: &FoldedPiece<'_>) -> PieceKey {
    piece_key(piece, |FieldChange { field, before, after, label, .. }| {
        (field, before, after, *label)
    })
}

/// The same for a piece whose changes are declared at the same places as those of others: each group
/// or project has its own values, such as `{name}`. What a removal loses is not put together.
fn declaration_key(piece: &FoldedPiece<'_>) -> Option<PieceKey> {
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
            (field, sides, *label, origin.to_string())
        })
    })
}

/// A key of what all pieces show, and of the `content` of each change.
fn piece_key<'s, C: Hash>(
    FoldedPiece { item, changes }: &FoldedPiece<'s>,
    content: impl Fn(&'s FieldChange) -> C,
) -> PieceKey {
    let fields: Vec<_> = changes.iter().map(|change| content(change)).collect();
    let step = item.step;
    let shown_facts =
        (step.scope, local_name(&step.address), step.action, step.label, item.outcome);
    // Remove the path of the object's group from predecessors, because it differs between equal pieces.
    let parent = group_of(&step.address.path).unwrap_or_default();
    let mut predecessor_groups = predecessors(step);
    for first in predecessor_groups.iter_mut().flat_map(|(_, firsts)| firsts) {
        if let Some(part) = first.strip_prefix(parent)
            && (part.is_empty() || part.starts_with('#'))
        {
            *first = part.to_owned();
        }
    }
    let facts = format!("{shown_facts:?} {:?} {predecessor_groups:?}", remarks(step));
    HASHERS.each_ref().map(|hasher| hasher.hash_one((&facts, &fields)))
}
