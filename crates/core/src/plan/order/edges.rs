//! The edges of a container's steps, each with its reason.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap},
};

use super::{
    DELETION_RANK, END_ACCESS_RANK, MOVE_RANK, NARROW_VISIBILITY_RANK, StepProperties,
    step_positions,
};
use crate::{
    diff::{Edge, Step},
    field::Scope,
    kind::Capability,
    steps,
};

/// Computes the edges of all steps of a container.
pub(super) struct EdgeBuilder<'p> {
    scope: Scope,
    properties: &'p [StepProperties],
    steps: &'p [Step],
    /// The positions of the steps that provide each capability, by section.
    providers: BTreeMap<Capability, BTreeMap<Option<&'static str>, Vec<usize>>>,
    /// The positions of each section's steps, in order.
    indices_by_section: BTreeMap<Option<&'static str>, Vec<usize>>,
    /// The positions of steps by address, computed if a step names another step.
    positions: OnceCell<HashMap<String, usize>>,
}

impl<'p> EdgeBuilder<'p> {
    /// The edges of each of `steps`.
    pub(super) fn compute(
        scope: Scope,
        properties: &'p [StepProperties],
        steps: &'p [Step],
    ) -> impl Iterator<Item = Vec<Edge>> {
        let mut builder = Self {
            scope,
            properties,
            steps,
            providers: BTreeMap::new(),
            indices_by_section: BTreeMap::new(),
            positions: OnceCell::new(),
        };
        for (index, (step_properties, step)) in properties.iter().zip(steps).enumerate() {
            let section = step.address.section;
            builder.indices_by_section.entry(section).or_default().push(index);
            for capability in &step_properties.provides {
                let by_section = builder.providers.entry(*capability).or_default();
                by_section.entry(section).or_default().push(index);
            }
        }
        (0..steps.len()).map(move |step_index| builder.find_edges(step_index))
    }

    /// The edges of the step with the index `step_index`.
    fn find_edges(&self, step_index: usize) -> Vec<Edge> {
        let (step_properties, step) = (&self.properties[step_index], &self.steps[step_index]);
        let mut edges = Vec::new();
        for needed in step_properties.needed_capabilities() {
            self.add_edges_to_providers(needed, step_index, &mut edges);
        }
        if step_properties.rank == MOVE_RANK {
            let earlier_indices: Vec<_> = (0..step_index)
                .filter(|index| self.properties[*index].rank == NARROW_VISIBILITY_RANK)
                .collect();
            let reason = "it must not be more visible than the group it moves to";
            self.add_edge(&earlier_indices, reason, &mut edges);
        }
        if step_properties.removes.contains(&Capability::Owner) {
            self.add_edges_to_providers(Capability::Owner, step_index, &mut edges);
        }
        for removed in step_properties.removes.iter().filter(|taken| **taken != Capability::Owner) {
            let is_always_needed = matches!(
                removed,
                Capability::Writable
                    | Capability::CallerAccess
                    | Capability::Exists
                    | Capability::AtDeclaredPath
            );
            for indices in self.indices_by_section.values() {
                // All steps of a section need the same capabilities.
                let mut needed_capabilities =
                    indices.iter().take(1).flat_map(|i| self.properties[*i].needed_capabilities());
                if is_always_needed || needed_capabilities.any(|needed| needed == *removed) {
                    let reason = removed.order_reason(self.scope);
                    self.add_edge_to_earlier(indices, step_index, reason, &mut edges);
                }
            }
        }
        // Add edges to the named steps of the same container. `connect` handles other containers.
        for name in step.awaited_objects() {
            let position = name.contains('#').then(|| self.find_position(&name)).flatten();
            let earlier_index = position.filter(|other| *other < step_index);
            self.add_edge(earlier_index.as_slice(), "what it names must exist", &mut edges);
        }
        for entry in step.followed_entries() {
            let rename_index = self.find_position(&entry.to_string());
            self.add_edge(rename_index.as_slice(), "it must be renamed first", &mut edges);
        }
        if matches!(step_properties.rank, END_ACCESS_RANK | DELETION_RANK)
            && let Some(section) = self.indices_by_section.get(&step.address.section)
        {
            self.add_edge_to_earlier(section, step_index, "create first, then remove", &mut edges);
        }
        edges
    }

    fn add_edges_to_providers(&self, needed: Capability, step_index: usize, edges: &mut Vec<Edge>) {
        for indices in self.providers.get(&needed).into_iter().flat_map(BTreeMap::values) {
            self.add_edge_to_earlier(indices, step_index, needed.order_reason(self.scope), edges);
        }
    }

    /// Adds an edge to the steps of one section, at the sorted `indices`, that come before `step_index`.
    fn add_edge_to_earlier(
        &self,
        indices: &[usize],
        step_index: usize,
        reason: &'static str,
        edges: &mut Vec<Edge>,
    ) {
        let rank = self.properties[step_index].rank;
        let earlier_indices = indices.iter().copied().take_while(|other| {
            steps::count_step();
            self.properties[*other].rank < rank
        });
        // Stop after two steps: if there is more than one step, the edge leads to the whole
        // section.
        self.add_edge(&earlier_indices.take(2).collect::<Vec<_>>(), reason, edges);
    }

    /// The position of the step with this address.
    fn find_position(&self, address: &str) -> Option<usize> {
        self.positions.get_or_init(|| step_positions(self.steps)).get(address).copied()
    }

    /// Adds an edge to the steps at `indices`, which belong to one section. If there are several
    /// steps, the edge leads to the section, which means all its earlier steps.
    fn add_edge(&self, indices: &[usize], reason: &'static str, edges: &mut Vec<Edge>) {
        let address = match indices {
            [] => return,
            [index] => self.steps[*index].address.clone(),
            [first, ..] => {
                let address = &self.steps[*first].address;
                address.section.map_or_else(|| address.clone(), |name| address.with_section(name))
            }
        };
        if !edges.iter().any(|edge: &Edge| edge.address == address) {
            edges.push(Edge { address, reason });
        }
    }
}
