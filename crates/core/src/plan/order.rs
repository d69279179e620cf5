//! Orders the steps of one container: computes edges with reasons from what steps do, and a
//! sequence that respects them. [`connect`](super::connect) adds edges between containers.
//!
//! A step that provides a capability comes before the steps that need it, and a step that removes
//! it comes after them. Every step needs the container to exist, at its place and writable, and the
//! caller's access. A section may need more ([`ScopedKind::needed_capabilities`]), and an entry
//! needs what it names. An edge leads to a single step if there is only one, and otherwise to its
//! section, so the number of edges does not grow with the product of the steps.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use crate::{
    address::Address,
    catalogue,
    diff::{Action, Edge, Step},
    field::Scope,
    kind::{Capability, Effect, ScopedKind, overlap, visibility_rank},
    level::{MAINTAINER, OWNER},
    live::Caller,
    steps,
};

// A step may only depend on steps of a lower rank.
const CONTAINER: u8 = 0;
const UNARCHIVE: u8 = 1;
const NARROWING: u8 = 2;
const MOVE: u8 = 3;
const FREEING_ROOM: u8 = 4;
const NAMED: u8 = 5;
const PROVIDING_CAPABILITIES: u8 = 6;
const ENDING_ACCESS: u8 = 7;
const ENTRIES: u8 = 8;
const REMOVING_CAPABILITIES: u8 = 9;
const REMOVALS: u8 = 10;
const CLOSING_FEATURES: u8 = 11;
const OWN_ACCESS: u8 = 12;
const ARCHIVE: u8 = 13;

/// What decides the position of a step.
struct StepRank {
    rank: u8,
    provides: Vec<Capability>,
    takes: Vec<Capability>,
    kind: Option<&'static ScopedKind>,
    /// Whether the container can have only one of these.
    is_exclusive: bool,
}

/// Orders `steps` so that each comes after those that it depends on, and adds the edges.
pub(super) fn order_steps(scope: Scope, caller: &Caller, steps: &mut Vec<Step>) {
    add_names(scope, steps);
    let ranks = rank_steps(scope, caller, steps);
    let depths = chain_depths(steps);
    let mut ranked: Vec<_> = ranks.into_iter().zip(std::mem::take(steps)).collect();
    ranked.sort_by_key(|(rank, step)| (rank.rank, depths.get(&step.address).copied()));
    let (ranks, mut sorted): (Vec<_>, Vec<_>) = ranked.into_iter().unzip();
    let after: Vec<_> = Edges::compute(scope, &ranks, &sorted).collect();
    sorted.iter_mut().zip(after).for_each(|(step, after)| step.after = after);
    *steps = sorted;
}

/// Adds to each step which entries it names that another one creates.
fn add_names(scope: Scope, steps: &mut [Step]) {
    let names_of = |step: &Step| {
        let section = step.address.section.and_then(|name| catalogue::section(scope, name));
        let names = section.into_iter().flat_map(|section| {
            step.changes.iter().filter_map(move |change| {
                let followed_section = section.field(&change.field).relations.follows?;
                let name = change.after.value()?.as_str()?;
                let name = name.strip_prefix("refs/heads/").unwrap_or(name);
                Some((followed_section, name.to_owned()))
            })
        });
        names.collect::<Vec<_>>()
    };
    let names: Vec<_> = steps.iter().map(names_of).collect();
    let sections: BTreeSet<_> = names.iter().flatten().map(|(section, _)| *section).collect();
    let created = steps.iter().filter(|step| step.action == Action::Create);
    let created_entries: BTreeMap<_, _> = created
        .filter_map(|step| {
            let section = step.address.section.filter(|section| sections.contains(section))?;
            Some(((section, step.address.entry.clone()?), step.address.clone()))
        })
        .collect();
    for (step, names) in steps.iter_mut().zip(names) {
        for (section, name) in names {
            let named_entries: Vec<_> = if name.contains('*') {
                let matching = created_entries
                    .iter()
                    .filter(|((of, created), _)| *of == section && overlap(&name, created));
                matching.map(|(_, address)| address.clone()).collect()
            } else {
                created_entries.get(&(section, name)).cloned().into_iter().collect()
            };
            step.effects.extend(named_entries.into_iter().map(Effect::follows_creation));
        }
    }
}

/// For each step that takes the name of a renamed entry, or names a created one: the number of such
/// steps, one after the other, that come first.
fn chain_depths(container_steps: &[Step]) -> HashMap<Address, usize> {
    let followed = container_steps.iter().filter_map(|step| {
        let mut entries = step.followed_entries().chain(step.named_entries());
        Some((&step.address, entries.next()?))
    });
    let followed: HashMap<_, _> = followed.collect();
    let mut depths = HashMap::new();
    for mut address in followed.keys().copied() {
        let mut chain = Vec::new();
        // Branches that are created from each other are a circle: it ends when it has every step.
        while let Some(next) = followed.get(address)
            && !depths.contains_key(address)
            && chain.len() < followed.len()
        {
            steps::step();
            chain.push(address);
            address = next;
        }
        let depth = depths.get(address).copied().unwrap_or(0);
        depths.extend((depth + 1..).zip(chain.into_iter().rev()).map(|(at, of)| (of.clone(), at)));
    }
    depths
}

/// For each of the ordered `steps`: the positions of the earlier steps that it needs, each with the
/// needed capability, or `None` if it names that step or must move after it. Other edges only
/// decide which of two steps comes first.
pub(super) fn needed_steps(
    scope: Scope,
    caller: &Caller,
    steps: &[Step],
) -> Vec<Vec<(usize, Option<Capability>)>> {
    let ranks = rank_steps(scope, caller, steps);
    let addresses: HashMap<_, _> =
        steps.iter().enumerate().rev().map(|(at, s)| (s.address.to_string(), at)).collect();
    let needed = ranks.iter().zip(steps).map(|(dependent, step)| {
        let awaited_steps: Vec<_> =
            step.waits_for().filter_map(|name| addresses.get(&*name)).collect();
        let needed = ranks.iter().zip(steps).enumerate().flat_map(|(at, (other, other_step))| {
            let is_before = other.rank < dependent.rank;
            let narrows = dependent.rank == MOVE && narrows_visibility(other_step);
            let is_named = narrows || (is_before && awaited_steps.contains(&&at));
            dependent
                .needed_capabilities()
                .filter(move |needed| is_before && other.provides.contains(needed))
                .map(move |needed| (at, Some(needed)))
                .chain(is_named.then_some((at, None)))
        });
        needed.collect()
    });
    needed.collect()
}

fn rank_steps(scope: Scope, caller: &Caller, steps: &[Step]) -> Vec<StepRank> {
    let mut ranks: Vec<_> = steps.iter().map(|step| StepRank::new(scope, step, caller)).collect();
    // If one request opens a feature and closes another one, entries of the new one need it.
    if ranks.iter().any(|rank| rank.rank == CLOSING_FEATURES) {
        let needed: BTreeSet<_> = ranks.iter().flat_map(StepRank::needed_capabilities).collect();
        for closer in ranks.iter_mut().filter(|rank| rank.rank == CLOSING_FEATURES) {
            if closer.provides.iter().any(|capability| needed.contains(capability)) {
                closer.rank = PROVIDING_CAPABILITIES;
            }
        }
    }
    // What a step names comes before all such steps, unless a feature must be opened first.
    let named: BTreeSet<_> = steps.iter().flat_map(Step::named_entries).collect();
    let opens = ranks.iter().flat_map(|rank| &rank.provides).copied();
    let opened: BTreeSet<_> = opens.filter(|what| matches!(what, Capability::Feature(_))).collect();
    for (rank, step) in ranks.iter_mut().zip(steps) {
        let is_closed = || rank.needed_capabilities().any(|needed| opened.contains(&needed));
        if named.contains(&step.address) && !is_closed() {
            rank.rank = NAMED;
        }
    }
    // A container that moves must not be more visible than its new group.
    if ranks.iter().any(|rank| rank.rank == MOVE) {
        for (rank, _) in ranks.iter_mut().zip(steps).filter(|(_, step)| narrows_visibility(step)) {
            rank.rank = rank.rank.min(NARROWING);
        }
    }
    ranks
}

/// Removes the steps in sections that an earlier step of `steps` closes, and returns these sections, each with a
/// feature that it lacks. The earlier step cannot wait: it also opens a feature, or comes before a move.
/// `is_off` tells which settings are off already.
pub(super) fn remove_closed(
    scope: Scope,
    caller: &Caller,
    steps: &mut Vec<Step>,
    is_off: impl Fn(&str) -> bool,
) -> BTreeMap<&'static str, Capability> {
    let mut closed = BTreeMap::new();
    let ranks = rank_steps(scope, caller, steps);
    let (mut removed_early, mut provided_early) = (BTreeSet::new(), BTreeSet::new());
    for early in ranks.iter().filter(|rank| rank.rank < ENTRIES) {
        removed_early.extend(early.takes.iter().copied());
        provided_early.extend(early.provides.iter().copied());
    }
    let takes = |name: &&'static str| removed_early.contains(&Capability::Feature(name));
    let closes = |name: &&'static str| {
        takes(name) || (is_off(name) && !provided_early.contains(&Capability::Feature(name)))
    };
    let mut homes = ranks.iter().map(|rank| rank.kind);
    steps.retain(|step| {
        let mut sets = homes.next().flatten().into_iter().flat_map(|home| &home.closed_by);
        let set = sets.find(|set| set.iter().all(&closes));
        let feature = set.and_then(|set| set.iter().find(|name| takes(name)));
        let feature = feature.map(|name| Capability::Feature(name));
        closed.extend(step.address.section.zip(feature));
        feature.is_none()
    });
    closed
}

/// True if a step narrows the visibility of its container.
pub(super) fn narrows_visibility(step: &Step) -> bool {
    let visibility = visibility_change(step).filter(|_| step.action == Action::Update);
    visibility.is_some_and(|(before, after)| before.is_some_and(|before| before > after))
}

/// The visibilities before and after a step, as ranks from the narrowest; before is `None` for a
/// creation.
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

impl StepRank {
    fn new(scope: Scope, step: &Step, caller: &Caller) -> Self {
        let (mut provides, mut takes) = (Vec::new(), Vec::new());
        let mut changes = |capability, was: bool, is: bool| {
            provides.extend((is && !was).then_some(capability));
            takes.extend((was && !is).then_some(capability));
        };
        for effect in &step.effects {
            match effect {
                Effect::Capability { what, before, after } => changes(*what, *before, *after),
                Effect::Access { user, before, after, ends, lost_role } => {
                    let stays = if *ends { 0 } else { *after };
                    // Rules of a group name maintainers, those of a project its members. A member who leaves
                    // may keep access by a group above.
                    let needed = scope.choose(MAINTAINER, 1);
                    let was_inside = *before >= needed;
                    let keeps = was_inside && step.provides(Capability::People);
                    let loses = stays < *before || lost_role.is_some();
                    changes(Capability::People, was_inside, *after >= needed || keeps);
                    changes(Capability::Owner, *before >= OWNER, stays >= OWNER);
                    changes(Capability::OwnAccess, *user == Some(caller.id) && loses, false);
                }
                Effect::Share { .. }
                | Effect::Visibility { .. }
                | Effect::Follows { .. }
                | Effect::Transfers { .. }
                | Effect::NeedsAccess { .. }
                | Effect::Risk(..)
                | Effect::Rule { .. }
                | Effect::SideEffect(_)
                | Effect::Fills
                | Effect::HandsDown => {}
            }
        }
        let section = step.address.section.and_then(|name| catalogue::section(scope, name));
        let scoped_kind = section.map(|section| section.scoped_kind);
        let name = step.address.entry.as_deref();
        let exclusive_group = section.zip(name).and_then(|(of, name)| of.exclusive_group(name));
        // Delete the old entry before creating the new one: only one may exist.
        let is_only = exclusive_group.is_some();
        if is_only && step.action == Action::Delete {
            provides.push(Capability::Room);
        }
        let rank = compute_rank(step, &provides, &takes);
        Self { rank, provides, takes, kind: scoped_kind, is_exclusive: is_only }
    }

    /// The capabilities that it needs.
    fn needed_capabilities(&self) -> impl Iterator<Item = Capability> {
        let always = [Capability::Exists, Capability::Writable, Capability::InPlace];
        let room = self.is_exclusive.then_some(Capability::Room);
        let of_section = self.kind.into_iter().flat_map(ScopedKind::needed_capabilities);
        always.into_iter().chain(of_section).chain(room)
    }
}

fn compute_rank(step: &Step, provides: &[Capability], takes: &[Capability]) -> u8 {
    if provides.contains(&Capability::Exists) {
        CONTAINER
    } else if provides.contains(&Capability::Writable) {
        UNARCHIVE
    } else if provides.contains(&Capability::InPlace) {
        MOVE
    } else if provides.contains(&Capability::Room) {
        FREEING_ROOM
    } else if takes.contains(&Capability::Writable) {
        ARCHIVE
    } else if takes.contains(&Capability::OwnAccess) {
        OWN_ACCESS
    } else if step.action == Action::Delete && provides.contains(&Capability::People) {
        ENDING_ACCESS
    } else if step.action == Action::Delete {
        REMOVALS
    } else if takes.iter().any(|taken| matches!(taken, Capability::Feature(_))) {
        CLOSING_FEATURES
    } else if !takes.is_empty() {
        REMOVING_CAPABILITIES
    } else if !provides.is_empty() {
        PROVIDING_CAPABILITIES
    } else {
        ENTRIES
    }
}

/// The data from which all edges are computed.
struct Edges<'p> {
    scope: Scope,
    ranks: &'p [StepRank],
    steps: &'p [Step],
    /// The steps that provide each capability, by section.
    providers: BTreeMap<Capability, BTreeMap<Option<&'static str>, Vec<usize>>>,
    /// The positions of each section's steps, in order.
    sections: BTreeMap<Option<&'static str>, Vec<usize>>,
    /// The positions of steps by address, computed if a step names another one.
    addresses: OnceCell<HashMap<String, usize>>,
}

impl<'p> Edges<'p> {
    fn compute(
        scope: Scope,
        ranks: &'p [StepRank],
        steps: &'p [Step],
    ) -> impl Iterator<Item = Vec<Edge>> {
        let mut edges = Self {
            scope,
            ranks,
            steps,
            providers: BTreeMap::new(),
            sections: BTreeMap::new(),
            addresses: OnceCell::new(),
        };
        for (at, (rank, step)) in ranks.iter().zip(steps).enumerate() {
            let section = step.address.section;
            edges.sections.entry(section).or_default().push(at);
            for capability in &rank.provides {
                let by_section = edges.providers.entry(*capability).or_default();
                by_section.entry(section).or_default().push(at);
            }
        }
        (0..steps.len()).map(move |at| edges.find_edges(at))
    }

    /// The edges of the step at `at`.
    fn find_edges(&self, at: usize) -> Vec<Edge> {
        let (ranked, step) = (&self.ranks[at], &self.steps[at]);
        let mut edges = Vec::new();
        for needed in ranked.needed_capabilities() {
            self.add_edges_to_providers(needed, at, &mut edges);
        }
        if ranked.rank == MOVE {
            let earlier: Vec<_> = (0..at).filter(|at| self.ranks[*at].rank == NARROWING).collect();
            let reason = "it must not be too visible for the group it moves to";
            self.add_edge(&earlier, reason, &mut edges);
        }
        if ranked.takes.contains(&Capability::Owner) {
            self.add_edges_to_providers(Capability::Owner, at, &mut edges);
        }
        for taken in ranked.takes.iter().filter(|taken| **taken != Capability::Owner) {
            let is_always_needed = matches!(
                taken,
                Capability::Writable
                    | Capability::OwnAccess
                    | Capability::Exists
                    | Capability::InPlace
            );
            for steps in self.sections.values() {
                // All steps of a section need the same.
                let mut needed =
                    steps.iter().take(1).flat_map(|at| self.ranks[*at].needed_capabilities());
                if is_always_needed || needed.any(|needed| needed == *taken) {
                    self.add_edge_to_earlier(steps, at, taken.order_reason(self.scope), &mut edges);
                }
            }
        }
        // Steps of its own container that it names; `connect` handles other containers.
        for named in step.waits_for() {
            let position = named.contains('#').then(|| self.position_of(&named)).flatten();
            let earlier: Vec<_> = position.filter(|other| *other < at).into_iter().collect();
            self.add_edge(&earlier, "what it names must exist", &mut edges);
        }
        for entry in step.followed_entries() {
            let earlier: Vec<_> = self.position_of(&entry.to_string()).into_iter().collect();
            self.add_edge(&earlier, "it must be renamed first", &mut edges);
        }
        if matches!(ranked.rank, ENDING_ACCESS | REMOVALS)
            && let Some(section) = self.sections.get(&step.address.section)
        {
            self.add_edge_to_earlier(section, at, "create first, then remove", &mut edges);
        }
        edges
    }

    fn add_edges_to_providers(&self, needed: Capability, at: usize, edges: &mut Vec<Edge>) {
        for steps in self.providers.get(&needed).into_iter().flat_map(BTreeMap::values) {
            self.add_edge_to_earlier(steps, at, needed.order_reason(self.scope), edges);
        }
    }

    /// Adds an edge to those of the sorted `steps`, of one section, that come before the step at `at`.
    fn add_edge_to_earlier(
        &self,
        steps: &[usize],
        at: usize,
        reason: &'static str,
        edges: &mut Vec<Edge>,
    ) {
        let rank = self.ranks[at].rank;
        let earlier_steps = steps.iter().copied().take_while(|other| {
            steps::step();
            self.ranks[*other].rank < rank
        });
        // More than two would add no further edge.
        self.add_edge(&earlier_steps.take(2).collect::<Vec<_>>(), reason, edges);
    }

    /// The position of the step with this address.
    fn position_of(&self, address: &str) -> Option<usize> {
        self.addresses
            .get_or_init(|| {
                let positioned = self.steps.iter().enumerate().rev();
                positioned.map(|(at, step)| (step.address.to_string(), at)).collect()
            })
            .get(address)
            .copied()
    }

    /// Adds an edge to `steps` of one section: to the single step, or to the section, which then
    /// stands for all its earlier steps.
    fn add_edge(&self, steps: &[usize], reason: &'static str, edges: &mut Vec<Edge>) {
        let address = match steps {
            [] => return,
            [one] => self.steps[*one].address.clone(),
            [first, ..] => {
                let address = &self.steps[*first].address;
                address.section.map_or_else(|| address.clone(), |name| address.section(name))
            }
        };
        if !edges.iter().any(|edge: &Edge| edge.address == address) {
            edges.push(Edge { address, reason });
        }
    }
}
