//! Orders steps of entries that collide with an entry of a group above. The service refuses to create
//! an entry below a group that already has a colliding entry. If the entry below is created first,
//! the service accepts both.

use std::collections::HashMap;

use super::StepRelations;
use crate::{
    address::{groups_above, parent_group_path},
    catalogue,
    diff::{
        Step,
        texts::{self, placeholders},
    },
    field::Scope,
    kind::Section,
    text,
};

/// Orders the steps that take a name. If a step in a container takes a name, a step in a group
/// above that frees the name comes first. A step in a group above that takes the name comes later.
pub(super) fn order_colliding_entries(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let group_entries = index_group_entries(steps);
    for (index, step) in steps.iter().enumerate() {
        if let Some(key) = title_freed_for_group(step) {
            let taken_above = group_entries.get(&key).into_iter().flatten();
            for (other_index, ..) in taken_above.filter(|(.., is_taken)| *is_taken) {
                relations.add_edge(*other_index, &step.address, "the project has one until then");
            }
        }
        let Some((section, name, exclusive_key)) = find_exclusive_key(step, step.taken_name())
        else {
            continue;
        };
        let path = step.address.path.to_lowercase();
        let conflicts_above = groups_above(&path)
            .filter(|group| section.may_collide_with(group, step.scope, &path))
            .filter_map(|group| {
                group_entries.get(&(group.to_owned(), section.section, exclusive_key))
            })
            .flatten()
            .filter(|(_, other_name, _)| section.collides_with_parent(name, other_name));
        let mut removals_above = Vec::new();
        for (other_index, freed_name, is_taken) in conflicts_above {
            if *is_taken {
                relations.add_edge(*other_index, &step.address, "a group above would forbid it");
            } else {
                removals_above.push((&steps[*other_index].address, *freed_name));
            }
        }
        // Skip addresses in the same container: those entries free their names by a rename.
        let blocking_addresses: Vec<_> =
            step.followed_addresses().filter(|address| address.path != step.address.path).collect();
        let unfreed_address = blocking_addresses.iter().find(|blocking_address| {
            !removals_above.iter().any(|(removed_address, freed_name)| {
                blocking_address.entry.as_deref() == Some(freed_name)
                    && removed_address.path.eq_ignore_ascii_case(&blocking_address.path)
            })
        });
        if let Some(blocking_address) = unfreed_address {
            let is_name = section.is_name_unique_above();
            let texts = if is_name { texts::NAME_ABOVE } else { texts::EXCLUSIVE_ABOVE };
            let key = text::escape(blocking_address.entry.as_deref().unwrap_or_default());
            let (group, noun) = (&blocking_address.path, section.noun);
            relations.refuse(texts, placeholders![group, noun, key, what = exclusive_key], step);
        } else if !blocking_addresses.is_empty() {
            for (removed_address, _) in removals_above {
                let reason = "the group above must lose its entry first";
                relations.add_edge(index, removed_address, reason);
            }
        }
    }
    relations
}

/// The lower-case path of a group, a section, and a name or kind that only one entry can have.
type ExclusiveName<'s> = (String, &'static str, &'s str);

/// The names that steps of groups free or take: the index of the step, the name, and true if the
/// step takes it.
fn index_group_entries(steps: &[Step]) -> HashMap<ExclusiveName<'_>, Vec<(usize, &str, bool)>> {
    let mut group_entries: HashMap<_, Vec<_>> = HashMap::new();
    for (index, step) in steps.iter().enumerate().filter(|(_, step)| step.scope == Scope::Group) {
        let name_uses = [(step.freed_name(), false), (step.taken_name(), true)];
        for (name, is_taken) in name_uses {
            if let Some((section, name, exclusive_key)) = find_exclusive_key(step, name) {
                let key = (step.address.path.to_lowercase(), section.section, exclusive_key);
                group_entries.entry(key).or_default().push((index, name, is_taken));
            }
        }
    }
    group_entries
}

/// The lower-case path of the group, the section, and the name that `step` of a project frees for
/// an entry of the group. `None` if the step frees no such name.
fn title_freed_for_group(step: &Step) -> Option<ExclusiveName<'_>> {
    let (section, name, _) = find_exclusive_key(step, step.freed_name())?;
    let group = parent_group_path(&step.address.path)?;
    (step.scope == Scope::Project && section.is_name_unique_in_group())
        .then(|| (group.to_lowercase(), section.section, name))
}

/// The section of `step` in projects, the `name`, and its exclusive key. Only one entry of a
/// project and its parent groups can have an exclusive key. `None` if `name` has no exclusive key.
pub(super) fn find_exclusive_key<'n>(
    step: &Step,
    name: Option<&'n str>,
) -> Option<(Section, &'n str, &'n str)> {
    let section = catalogue::find_section(Scope::Project, step.address.section?)?;
    let name = name?;
    Some((section, name, section.exclusive_key(name)?))
}
