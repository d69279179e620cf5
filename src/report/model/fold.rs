//! Finds the common parts of many groups and projects: equal changes, changes from one declaration,
//! and equal faults. Each common part is shown once.

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
    address::parent_group_path,
    diff::{Action, FieldChange, Shown, Step},
    text::count,
};

/// The minimum number of equal items that are shown once.
const MIN_FOLDED: usize = 3;

/// Selects the equal items that are shown once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldMode {
    /// Nothing.
    Nothing,
    /// Equal steps.
    Steps,
    /// Equal steps, and equal fields of different steps.
    Fields,
}

/// A step, or some of its fields.
#[derive(Debug)]
pub struct StepExcerpt<'s> {
    /// The step, with its outcome if there is one.
    pub item: StepItem<'s>,
    /// The changes of fields that this excerpt shows.
    pub changes: Vec<&'s FieldChange>,
}

/// Steps of one group or project, and the paths of other groups and projects with equal steps.
#[derive(Debug)]
pub struct FoldedSteps<'s> {
    /// The steps of the first group or project.
    pub steps: Vec<StepExcerpt<'s>>,
    /// The paths of the other groups and projects with the same steps.
    pub others: Vec<&'s str>,
    /// True if the values differ between these groups and projects. The values then come from the
    /// same declaration.
    pub has_other_values: bool,
    /// The number of further changes of this group or project that are shown elsewhere, because
    /// other groups and projects have equal changes.
    pub shared_count: usize,
}

impl FoldedSteps<'_> {
    /// The first step.
    pub fn first_step(&self) -> &Step {
        self.steps[0].item.step
    }

    /// The text that compares the other groups and projects with the first one.
    pub const fn alike_text(&self) -> &'static str {
        if self.has_other_values { "the same, with other values," } else { "the same" }
    }

    /// A remark about the further changes that are shown elsewhere, if there are any.
    pub fn shared_remark(&self) -> Option<String> {
        let changes = (self.shared_count > 0).then(|| count(self.shared_count, "more change"));
        changes.map(|changes| format!("and {changes}, shared with others"))
    }
}

/// Groups `items` by key, each group at the position of its first member.
pub fn group_by_key<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> Vec<Vec<&T>> {
    let (mut groups, mut positions) = (Vec::<Vec<&T>>::new(), BTreeMap::new());
    for item in items {
        let new_index = groups.len();
        let index = *positions.entry(key(item)).or_insert(new_index);
        if index == new_index {
            groups.push(Vec::new());
        }
        groups[index].push(item);
    }
    groups
}

/// Folds `items` with the same key: the first one is returned together with the others. If fewer than
/// `MIN_FOLDED` items have the same key, each is returned separately. With `is_full`, all items
/// are returned separately. The order stays the same.
pub fn fold_equal<T, K: Ord>(
    items: &[T],
    is_full: bool,
    key: impl Fn(&T) -> K,
) -> Vec<(&T, Vec<&T>)> {
    let indexed_items: Vec<_> = items.iter().enumerate().collect();
    let mut folded_items = Vec::new();
    for group in group_by_key(&indexed_items, |(_, item)| key(item)) {
        let is_folded = !is_full && group.len() >= MIN_FOLDED;
        let (first, others) = group.split_at(if is_folded { 1 } else { group.len() });
        let others: Vec<_> = others.iter().map(|(_, item)| *item).collect();
        folded_items.extend(first.iter().map(|(index, item)| (*index, *item, others.clone())));
    }
    folded_items.sort_by_key(|(index, ..)| *index);
    folded_items.into_iter().map(|(_, item, others)| (item, others)).collect()
}

/// Equal excerpts have equal keys.
type ExcerptKey = u64;

/// Makes keys. Each run has a new seed, so that nobody can choose different values with equal keys.
static HASHER: LazyLock<RandomState> = LazyLock::new(Default::default);

/// Groups `steps`, which have the order of a plan, by group or project. Steps that are equal in
/// many groups and projects are returned once: with the first of these groups and projects, before
/// its other steps.
pub fn fold_steps<'s>(steps: &[StepItem<'s>], mode: FoldMode) -> Vec<FoldedSteps<'s>> {
    let containers = steps.chunk_by(|a, b| a.step.address.path == b.step.address.path);
    let mut containers: Vec<Vec<_>> = containers
        .map(|items| items.iter().flat_map(|item| split_step(*item, mode)).collect())
        .collect();
    let containers_by_value = index_containers(&containers);
    for (key, excerpt) in &mut containers.iter_mut().flatten() {
        if containers_by_value[key].len() < MIN_FOLDED {
            *key = declaration_key(excerpt).unwrap_or(*key);
        }
    }
    let containers_by_key = index_containers(&containers);
    let paths: Vec<_> =
        containers.iter().map(|excerpts| &*excerpts[0].1.item.step.address.path).collect();
    let mut folded_steps = Vec::new();
    for (index, keyed_excerpts) in containers.iter().enumerate() {
        let located_excerpts = keyed_excerpts.iter().map(|(key, excerpt)| {
            (excerpt, &*containers_by_key[key], !containers_by_value.contains_key(key))
        });
        let (shared_excerpts, unshared_excerpts): (Vec<_>, Vec<_>) =
            located_excerpts.partition(|(_, container_indices, _)| {
                mode != FoldMode::Nothing && container_indices.len() >= MIN_FOLDED
            });
        let shared_count = shared_excerpts.len();
        let excerpts_shown_here: Vec<_> = shared_excerpts
            .into_iter()
            .filter(|(_, container_indices, _)| container_indices[0] == index)
            .collect();
        // Excerpts that the same groups and projects have are shown together.
        for excerpt_group in
            group_by_key(&excerpts_shown_here, |(_, container_indices, has_other_values)| {
                (*container_indices, *has_other_values)
            })
        {
            let (_, container_indices, has_other_values) = excerpt_group[0];
            let others = container_indices[1..].iter().map(|other| paths[*other]).collect();
            let steps = join_excerpts(excerpt_group.into_iter().map(|(piece, ..)| *piece));
            folded_steps.push(FoldedSteps {
                steps,
                others,
                has_other_values: *has_other_values,
                shared_count: 0,
            });
        }
        if !unshared_excerpts.is_empty() {
            let steps = join_excerpts(unshared_excerpts.into_iter().map(|(piece, ..)| piece));
            folded_steps.push(FoldedSteps {
                steps,
                others: Vec::new(),
                has_other_values: false,
                shared_count,
            });
        }
    }
    folded_steps
}

/// The parts of a step that are folded separately, each with its key.
fn split_step(
    item: StepItem<'_>,
    mode: FoldMode,
) -> impl Iterator<Item = (ExcerptKey, StepExcerpt<'_>)> {
    let fields = item.step.changes.iter();
    let is_split =
        mode == FoldMode::Fields && item.step.action == Action::Update && fields.len() > 1;
    let change_lists: Vec<Vec<_>> =
        if is_split { fields.map(|field| vec![field]).collect() } else { vec![fields.collect()] };
    change_lists.into_iter().map(move |changes| {
        let excerpt = StepExcerpt { item, changes };
        // The key includes secrets, because excerpts with different secrets must not be equal.
        let key = excerpt_key(&excerpt, |FieldChange { field, before, after, label, .. }| {
            (field, before, after, *label)
        });
        (key, excerpt)
    })
}

/// The indices in `containers` of the groups and projects that have an excerpt with a key, by key.
fn index_containers(
    containers: &[Vec<(ExcerptKey, StepExcerpt<'_>)>],
) -> BTreeMap<ExcerptKey, Vec<usize>> {
    let mut containers_by_key: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, excerpts) in containers.iter().enumerate() {
        excerpts.iter().for_each(|(key, _)| containers_by_key.entry(*key).or_default().push(index));
    }
    containers_by_key
}

/// Joins adjacent `pieces` that belong to the same step.
fn join_excerpts<'a, 's: 'a>(
    pieces: impl Iterator<Item = &'a StepExcerpt<'s>>,
) -> Vec<StepExcerpt<'s>> {
    let mut excerpts: Vec<StepExcerpt<'s>> = Vec::new();
    for StepExcerpt { item, changes } in pieces {
        match excerpts.last_mut() {
            Some(last) if std::ptr::eq(last.item.step, item.step) => last.changes.extend(changes),
            _ => excerpts.push(StepExcerpt { item: *item, changes: changes.clone() }),
        }
    }
    excerpts
}

/// A key with the origins of the changes instead of their values. One declaration may give each
/// group or project other values, for example with `{name}`. `None` for removals, whose values must
/// be shown, and for steps without changes.
fn declaration_key(excerpt: &StepExcerpt<'_>) -> Option<ExcerptKey> {
    let step = excerpt.item.step;
    let is_declared = step.action != Action::Delete && !excerpt.changes.is_empty();
    is_declared.then(|| {
        excerpt_key(excerpt, |FieldChange { field, before, after, label, origin }| {
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

/// Makes a key from the facts that an excerpt shows, and from the `content` of each of its changes.
fn excerpt_key<'s, C: Hash>(
    StepExcerpt { item, changes }: &StepExcerpt<'s>,
    content: impl Fn(&'s FieldChange) -> C,
) -> ExcerptKey {
    let fields: Vec<_> = changes.iter().map(|change| content(change)).collect();
    let step = item.step;
    let shown_facts =
        (step.scope, local_name(&step.address), step.action, step.label, item.outcome);
    // Remove the path of the object's group from predecessors: it differs between equal excerpts.
    let parent = parent_group_path(&step.address.path).unwrap_or_default();
    let mut predecessor_groups = predecessors(step);
    for name in predecessor_groups.iter_mut().flat_map(|(_, names)| names) {
        if let Some(suffix) = name.strip_prefix(parent)
            && (suffix.is_empty() || suffix.starts_with('#'))
        {
            *name = suffix.to_owned();
        }
    }
    let facts = format!("{shown_facts:?} {:?} {predecessor_groups:?}", remarks(step));
    HASHER.hash_one((facts, fields))
}
