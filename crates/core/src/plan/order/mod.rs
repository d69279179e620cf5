//! Orders the steps of one container: computes edges with reasons from the effects of steps (`edges`),
//! and an order that respects them. [`connect`](super::connect) adds edges between containers.
//!
//! A step that provides a capability comes before the steps that need it, and a step that removes
//! it comes after them. Every step needs a container that exists at its declared path, that is
//! writable and that the caller can access. A section may need more
//! ([`ScopedKind::needed_capabilities`]), and an entry needs the objects that it names. If several
//! steps of a section provide a capability, one edge leads to the section instead of an edge to
//! each step. Therefore the number of edges does not grow with the square of the number of steps.

mod edges;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use edges::EdgeBuilder;

use crate::{
    address::Address,
    catalogue,
    diff::{Action, Step},
    field::Scope,
    kind::{Capability, Effect, ScopedKind, patterns_overlap, visibility_rank},
    level::{MAINTAINER, OWNER},
    live::Caller,
    steps,
};

// The ranks of steps. A step may only depend on steps of a lower rank.
const CREATE_CONTAINER_RANK: u8 = 0;
const UNARCHIVE_RANK: u8 = 1;
const NARROW_VISIBILITY_RANK: u8 = 2;
const MOVE_RANK: u8 = 3;
const FREE_SLOT_RANK: u8 = 4;
const NAMED_ENTRY_RANK: u8 = 5;
const PROVIDE_CAPABILITY_RANK: u8 = 6;
const END_ACCESS_RANK: u8 = 7;
const OTHER_ENTRIES_RANK: u8 = 8;
const REMOVE_CAPABILITY_RANK: u8 = 9;
const DELETION_RANK: u8 = 10;
const DISABLE_FEATURE_RANK: u8 = 11;
const CALLER_ACCESS_RANK: u8 = 12;
const ARCHIVE_RANK: u8 = 13;

/// The properties of a step that decide its position.
struct StepProperties {
    rank: u8,
    provides: Vec<Capability>,
    removes: Vec<Capability>,
    scoped_kind: Option<&'static ScopedKind>,
    /// True if the service limits the number of such entries in the container.
    needs_slot: bool,
}

/// Orders `steps` so that each step comes after the steps that it depends on. Adds the edges.
pub(super) fn order_steps(scope: Scope, caller: &Caller, steps: &mut Vec<Step>) {
    add_follows_effects(scope, steps);
    let properties = collect_properties(scope, caller, steps);
    let depths = chain_lengths(steps);
    let mut ranked: Vec<_> = properties.into_iter().zip(std::mem::take(steps)).collect();
    ranked.sort_by_key(|(step_properties, step)| {
        (step_properties.rank, depths.get(&step.address).copied())
    });
    let (sorted_properties, mut sorted_steps): (Vec<_>, Vec<_>) = ranked.into_iter().unzip();
    let edge_lists: Vec<_> =
        EdgeBuilder::compute(scope, &sorted_properties, &sorted_steps).collect();
    sorted_steps.iter_mut().zip(edge_lists).for_each(|(step, after)| step.after = after);
    *steps = sorted_steps;
}

/// If a step names an entry that another step creates, adds the effect `Follows` to the first step.
fn add_follows_effects(scope: Scope, steps: &mut [Step]) {
    let names_by_step: Vec<_> = steps.iter().map(|step| followed_names(scope, step)).collect();
    let sections: BTreeSet<_> =
        names_by_step.iter().flatten().map(|(section, _)| *section).collect();
    let creations = steps.iter().filter(|step| step.action == Action::Create);
    let created_entries: BTreeMap<_, _> = creations
        .filter_map(|step| {
            let section = step.address.section.filter(|section| sections.contains(section))?;
            Some(((section, step.address.entry.clone()?), step.address.clone()))
        })
        .collect();
    for (step, names) in steps.iter_mut().zip(names_by_step) {
        for (section, name) in names {
            let named_entries: Vec<_> = if name.contains('*') {
                let matching =
                    created_entries.iter().filter(|((created_section, created_name), _)| {
                        *created_section == section && patterns_overlap(&name, created_name)
                    });
                matching.map(|(_, address)| address.clone()).collect()
            } else {
                created_entries.get(&(section, name)).cloned().into_iter().collect()
            };
            step.effects.extend(named_entries.into_iter().map(Effect::follows_creation));
        }
    }
}

/// The entries that `step` names and must follow, each as its section and name.
pub(super) fn followed_names(scope: Scope, step: &Step) -> Vec<(&'static str, String)> {
    let section = step.address.section.and_then(|name| catalogue::find_section(scope, name));
    let names = section.into_iter().flat_map(|section| {
        step.changes.iter().filter_map(move |change| {
            let followed_section = section.field(&change.field).relations.follows?;
            let name = change.after.value()?.as_str()?;
            let name = name.strip_prefix("refs/heads/").unwrap_or(name);
            Some((followed_section, name.to_owned()))
        })
    });
    names.collect()
}

/// The length of the chain of predecessors of each step that must follow another step. A step follows
/// the step that frees its name by a rename, or that creates an entry that it names. If a step
/// needs the id of an entry in such a chain, for example of its parent, it follows that entry's step.
fn chain_lengths(container_steps: &[Step]) -> HashMap<Address, usize> {
    let pairs = container_steps.iter().filter_map(|step| {
        let mut entries = step.followed_entries().chain(step.awaited_entries());
        Some((&step.address, entries.next()?))
    });
    let mut predecessors: HashMap<_, _> = pairs.collect();
    let addresses_by_text: HashMap<_, _> =
        predecessors.keys().map(|address| (address.to_string(), *address)).collect();
    if addresses_by_text.is_empty() {
        return HashMap::new();
    }
    for step in container_steps {
        let mut awaited_objects = step.awaited_objects();
        if let Some(entry) = awaited_objects.find_map(|name| addresses_by_text.get(&*name).copied())
        {
            predecessors.entry(&step.address).or_insert(entry);
        }
    }
    let mut depths = HashMap::new();
    for mut address in predecessors.keys().copied() {
        let mut chain = Vec::new();
        // Branches that are created from each other form a cycle. Therefore the length of the chain
        // is limited.
        while let Some(predecessor) = predecessors.get(address)
            && !depths.contains_key(address)
            && chain.len() < predecessors.len()
        {
            steps::count_step();
            chain.push(address);
            address = predecessor;
        }
        let depth = depths.get(address).copied().unwrap_or(0);
        depths.extend(
            (depth + 1..)
                .zip(chain.into_iter().rev())
                .map(|(step_depth, follower)| (follower.clone(), step_depth)),
        );
    }
    depths
}

/// For each of the ordered `steps`: the positions of the earlier steps that it needs, each with the
/// needed capability. The capability is `None` if the step names the object of the earlier step, or
/// if the step is a move and the earlier step narrows visibility. The step would fail without these earlier steps.
/// Other edges only decide the order.
pub(super) fn needed_steps(
    scope: Scope,
    caller: &Caller,
    steps: &[Step],
) -> Vec<Vec<(usize, Option<Capability>)>> {
    let properties = collect_properties(scope, caller, steps);
    let positions = step_positions(steps);
    let needed_by_step = properties.iter().zip(steps).map(|(step_properties, step)| {
        let awaited_steps: Vec<_> =
            step.awaited_objects().filter_map(|name| positions.get(&*name)).collect();
        let needed_positions = properties.iter().zip(steps).enumerate().flat_map(
            |(index, (earlier_properties, earlier_step))| {
                let is_before = earlier_properties.rank < step_properties.rank;
                let narrows = step_properties.rank == MOVE_RANK && narrows_visibility(earlier_step);
                let must_follow = narrows || (is_before && awaited_steps.contains(&&index));
                step_properties
                    .needed_capabilities()
                    .filter(move |capability| {
                        is_before && earlier_properties.provides.contains(capability)
                    })
                    .map(move |capability| (index, Some(capability)))
                    .chain(must_follow.then_some((index, None)))
            },
        );
        needed_positions.collect()
    });
    needed_by_step.collect()
}

/// The position of each step, by address.
fn step_positions(steps: &[Step]) -> HashMap<String, usize> {
    steps.iter().enumerate().rev().map(|(index, step)| (step.address.to_string(), index)).collect()
}

fn collect_properties(scope: Scope, caller: &Caller, steps: &[Step]) -> Vec<StepProperties> {
    let mut properties: Vec<_> =
        steps.iter().map(|step| StepProperties::new(scope, step, caller)).collect();
    // One request can turn one feature on and another feature off. Send it before the entries that
    // need the first feature.
    if properties.iter().any(|step| step.rank == DISABLE_FEATURE_RANK) {
        let needed_capabilities: BTreeSet<_> =
            properties.iter().flat_map(StepProperties::needed_capabilities).collect();
        for closing_step in properties.iter_mut().filter(|step| step.rank == DISABLE_FEATURE_RANK) {
            if closing_step
                .provides
                .iter()
                .any(|capability| needed_capabilities.contains(capability))
            {
                closing_step.rank = PROVIDE_CAPABILITY_RANK;
            }
        }
    }
    // An entry that steps name comes before those steps, unless it needs a feature that is turned on first.
    let named_entries: BTreeSet<_> = steps.iter().flat_map(Step::awaited_entries).collect();
    let provided_capabilities = properties.iter().flat_map(|step| &step.provides).copied();
    let opened_features: BTreeSet<_> = provided_capabilities
        .filter(|candidate| matches!(candidate, Capability::Feature(_)))
        .collect();
    for (step_properties, step) in properties.iter_mut().zip(steps) {
        let needs_opened_feature = || {
            step_properties.needed_capabilities().any(|needed| opened_features.contains(&needed))
        };
        if named_entries.contains(&step.address) && !needs_opened_feature() {
            step_properties.rank = NAMED_ENTRY_RANK;
        }
    }
    // A container that moves must not be more visible than its new group.
    if properties.iter().any(|step| step.rank == MOVE_RANK) {
        for (step_properties, _) in
            properties.iter_mut().zip(steps).filter(|(_, step)| narrows_visibility(step))
        {
            step_properties.rank = step_properties.rank.min(NARROW_VISIBILITY_RANK);
        }
    }
    properties
}

/// Removes the steps in sections whose feature an earlier step turns off. Returns these sections,
/// each with the missing feature. The earlier step must stay early, because it also turns a
/// feature on, or because a move follows it. `is_off` returns true for settings that are
/// already off.
pub(super) fn drop_closed_sections(
    scope: Scope,
    caller: &Caller,
    steps: &mut Vec<Step>,
    is_off: impl Fn(&str) -> bool,
) -> BTreeMap<&'static str, Capability> {
    let mut closed_sections = BTreeMap::new();
    let properties = collect_properties(scope, caller, steps);
    let (mut removed_early, mut provided_early) = (BTreeSet::new(), BTreeSet::new());
    for early_step in properties.iter().filter(|step| step.rank < OTHER_ENTRIES_RANK) {
        removed_early.extend(early_step.removes.iter().copied());
        provided_early.extend(early_step.provides.iter().copied());
    }
    let is_removed = |name: &&'static str| removed_early.contains(&Capability::Feature(name));
    let will_be_off = |name: &&'static str| {
        is_removed(name) || (is_off(name) && !provided_early.contains(&Capability::Feature(name)))
    };
    let mut scoped_kinds = properties.iter().map(|step| step.scoped_kind);
    steps.retain(|step| {
        let mut feature_sets =
            scoped_kinds.next().flatten().into_iter().flat_map(|kind| &kind.closed_by);
        let closing_set = feature_sets.find(|set| set.iter().all(&will_be_off));
        let feature = closing_set.and_then(|set| set.iter().find(|name| is_removed(name)));
        let feature = feature.map(|name| Capability::Feature(name));
        closed_sections.extend(step.address.section.zip(feature));
        feature.is_none()
    });
    closed_sections
}

/// True if a step narrows the visibility of its container.
pub(super) fn narrows_visibility(step: &Step) -> bool {
    let visibility = visibility_change(step).filter(|_| step.action == Action::Update);
    visibility.is_some_and(|(before, after)| before.is_some_and(|before| before > after))
}

/// The visibilities before and after a step, as ranks from the narrowest. For a creation, the
/// visibility before it is `None`.
pub(super) fn visibility_change(step: &Step) -> Option<(Option<usize>, usize)> {
    step.effects.iter().find_map(|effect| match effect {
        Effect::Visibility { before, after, .. } => {
            let is_new = step.provides(Capability::Exists);
            let rank = before.as_deref().and_then(visibility_rank);
            let before = if is_new { None } else { Some(rank.unwrap_or(0)) };
            Some((before, visibility_rank(after)?))
        }
        _ => None,
    })
}

impl StepProperties {
    fn new(scope: Scope, step: &Step, caller: &Caller) -> Self {
        let (mut provides, mut removes) = (Vec::new(), Vec::new());
        let mut record_transition = |capability, had_before: bool, has_after: bool| {
            provides.extend((has_after && !had_before).then_some(capability));
            removes.extend((had_before && !has_after).then_some(capability));
        };
        for effect in &step.effects {
            match effect {
                Effect::Capability {
                    capability: changed,
                    had_capability: before,
                    has_capability: after,
                } => {
                    record_transition(*changed, *before, *after);
                }
                Effect::Access {
                    user_id: user, before, after, gets_end_date, lost_role, ..
                } => {
                    let level_after = if *gets_end_date { 0 } else { *after };
                    // Rules of a group may name maintainers; rules of a project may name all
                    // members. A removed member may keep access through a group above.
                    let min_level = scope.choose(MAINTAINER, 1);
                    let was_inside = *before >= min_level;
                    let keeps_access = was_inside && step.provides(Capability::NamedAccess);
                    let loses_access =
                        *user == Some(caller.id) && (level_after < *before || lost_role.is_some());
                    let stays_inside = *after >= min_level || keeps_access;
                    record_transition(Capability::NamedAccess, was_inside, stays_inside);
                    record_transition(Capability::Owner, *before >= OWNER, level_after >= OWNER);
                    record_transition(Capability::CallerAccess, loses_access, false);
                }
                Effect::Share { .. }
                | Effect::Visibility { .. }
                | Effect::Follows { .. }
                | Effect::Transfers { .. }
                | Effect::NeedsAccess { .. }
                | Effect::Risk(..)
                | Effect::Rule { .. }
                | Effect::SideEffect(_)
                | Effect::AddsContents
                | Effect::AffectsNewContainers => {}
            }
        }
        let section = step.address.section.and_then(|name| catalogue::find_section(scope, name));
        let scoped_kind = section.map(|section| section.scoped_kind);
        let name = step.address.entry.as_deref();
        let exclusive_set =
            section.zip(name).and_then(|(entry_section, name)| entry_section.exclusive_set(name));
        // Only one entry may exist: delete the old one before creating the new one.
        let is_exclusive = exclusive_set.is_some();
        if is_exclusive && step.action == Action::Delete {
            provides.push(Capability::FreeSlot);
        }
        let has_limit = section.and_then(catalogue::pipeline_schedules::max_entries).is_some();
        let needs_slot = is_exclusive || (has_limit && step.action == Action::Create);
        let rank = compute_rank(step, &provides, &removes);
        Self { rank, provides, removes, scoped_kind, needs_slot }
    }

    /// The capabilities that the step needs.
    fn needed_capabilities(&self) -> impl Iterator<Item = Capability> {
        let common_needs = [Capability::Exists, Capability::Writable, Capability::AtDeclaredPath];
        let free_slot = self.needs_slot.then_some(Capability::FreeSlot);
        let capabilities = self.scoped_kind.into_iter().flat_map(ScopedKind::needed_capabilities);
        common_needs.into_iter().chain(capabilities).chain(free_slot)
    }
}

fn compute_rank(step: &Step, provides: &[Capability], removes: &[Capability]) -> u8 {
    if provides.contains(&Capability::Exists) {
        CREATE_CONTAINER_RANK
    } else if provides.contains(&Capability::Writable) {
        UNARCHIVE_RANK
    } else if provides.contains(&Capability::AtDeclaredPath) {
        MOVE_RANK
    } else if provides.contains(&Capability::FreeSlot) {
        FREE_SLOT_RANK
    } else if removes.contains(&Capability::Writable) {
        ARCHIVE_RANK
    } else if removes.contains(&Capability::CallerAccess) {
        CALLER_ACCESS_RANK
    } else if step.action == Action::Delete && provides.contains(&Capability::NamedAccess) {
        END_ACCESS_RANK
    } else if step.action == Action::Delete {
        DELETION_RANK
    } else if removes.iter().any(|capability| matches!(capability, Capability::Feature(_))) {
        DISABLE_FEATURE_RANK
    } else if !removes.is_empty() {
        REMOVE_CAPABILITY_RANK
    } else if !provides.is_empty() {
        PROVIDE_CAPABILITY_RANK
    } else {
        OTHER_ENTRIES_RANK
    }
}
