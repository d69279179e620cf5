//! Orders entries that collide with one of a group above: the service refuses to create or rename the
//! lower entry after the upper one, but accepts the upper one after the lower.

use std::collections::HashMap;

use super::StepRelations;
use crate::{
    address::{Address, groups_above},
    catalogue,
    diff::{
        Problem, Step,
        texts::{self, words},
    },
    field::Scope,
    kind::Section,
    text,
};

/// A step above frees the name before a step below takes it, or takes it afterwards.
pub(super) fn order_entries(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let mut group_entries: HashMap<_, Vec<_>> = HashMap::new();
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.scope == Scope::Group) {
        let is_taken = [(step.freed_name(), false), (step.taken_name(), true)];
        for (name, is_taken) in is_taken {
            if let Some((section, name, unique)) = unique_above(step, name) {
                let key = (step.address.path.to_lowercase(), section.section, unique);
                group_entries.entry(key).or_default().push((at, name, is_taken));
            }
        }
    }
    for (at, step) in steps.iter().enumerate() {
        let Some((section, name, unique)) = unique_above(step, step.taken_name()) else { continue };
        // Entries that exclude each other in a project may exist together in a group.
        if step.scope == Scope::Group && !section.is_name_unique_above() {
            continue;
        }
        let path = step.address.path.to_lowercase();
        let conflicts_above = groups_above(&path)
            .filter_map(|group| group_entries.get(&(group.to_owned(), section.section, unique)))
            .flatten()
            .filter(|(_, other, _)| section.collides_with_parent(name, other));
        let mut removed_above = Vec::new();
        for (other, freed_name, is_taken) in conflicts_above {
            if *is_taken {
                relations.add_edge(*other, &step.address, "a group above would forbid it");
            } else {
                removed_above.push((&steps[*other].address, *freed_name));
            }
        }
        // Skip addresses in the same container: those entries free their names by a rename.
        let taken_above: Vec<_> =
            step.followed_addresses().filter(|taken| taken.path != step.address.path).collect();
        let remaining = taken_above.iter().find(|taken| {
            !removed_above.iter().any(|(gone, freed_name)| {
                taken.entry.as_deref() == Some(freed_name)
                    && gone.path.eq_ignore_ascii_case(&taken.path)
            })
        });
        match remaining {
            Some(taken) => {
                relations.problems.push(collision_problem(step, section, unique, taken));
            }
            None if !taken_above.is_empty() => {
                let reason = "the group above has one until then";
                removed_above.iter().for_each(|(gone, _)| relations.add_edge(at, gone, reason));
            }
            None => {}
        }
    }
    relations
}

/// The section of a step in projects, `name`, and what of it is unique there and above.
fn unique_above<'n>(step: &Step, name: Option<&'n str>) -> Option<(Section, &'n str, &'n str)> {
    let section = catalogue::section(Scope::Project, step.address.section?)?;
    let name = name?;
    Some((section, name, section.exclusive_key(name)?))
}

fn collision_problem(step: &Step, section: Section, what: &str, taken: &Address) -> Problem {
    let texts =
        if section.is_name_unique_above() { texts::NAME_ABOVE } else { texts::EXCLUSIVE_ABOVE };
    let key = text::escape(taken.entry.as_deref().unwrap_or_default());
    let words = words![group = taken.path, noun = section.noun, key, what];
    Problem::from_texts(texts, words, &step.address, &step.origin)
}
