//! Orders entries that collide with one of a group above: the service refuses to create the lower
//! entry after the upper one, but accepts the upper one after the lower.

use std::collections::HashMap;

use super::StepRelations;
use crate::{
    address::{Address, groups_above},
    catalogue,
    diff::{
        Action, Problem, Step,
        texts::{self, words},
    },
    field::Scope,
    kind::Section,
    text,
};

/// The entry above is removed before the one below is created, or created after it.
pub(super) fn order_entries(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let mut of_groups: HashMap<_, Vec<_>> = HashMap::new();
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.scope == Scope::Group) {
        if let Some((section, name, unique)) = unique_above(step) {
            let key = (step.address.path.to_lowercase(), section.section, unique);
            of_groups.entry(key).or_default().push((at, name));
        }
    }
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.adds_entry()) {
        let Some((section, name, unique)) = unique_above(step) else { continue };
        // A group may have several entries that exclude each other in a project.
        if step.scope == Scope::Group && !section.is_name_unique_above() {
            continue;
        }
        let path = step.address.path.to_lowercase();
        let conflicts_above = groups_above(&path)
            .filter_map(|group| of_groups.get(&(group.to_owned(), section.section, unique)))
            .flatten()
            .filter(|(_, other)| section.collides_with_parent(name, other));
        let mut gone = Vec::new();
        for (other, _) in conflicts_above {
            match steps[*other].action {
                Action::Delete => gone.push(&steps[*other].address),
                Action::Create => {
                    relations.order(*other, &step.address, "a group above would forbid it");
                }
                Action::Update => {}
            }
        }
        // Another entry of the same section frees its name by a rename.
        let taken_above: Vec<_> =
            step.follows().filter(|taken| taken.path != step.address.path).collect();
        let stays = taken_above.iter().find(|taken| {
            !gone.iter().any(|gone| {
                gone.entry == taken.entry && gone.path.eq_ignore_ascii_case(&taken.path)
            })
        });
        match stays {
            Some(taken) => {
                relations.problems.push(collision_problem(step, section, unique, taken));
            }
            None if !taken_above.is_empty() => {
                let reason = "the group above has one until then";
                gone.iter().for_each(|gone| relations.order(at, gone, reason));
            }
            None => {}
        }
    }
    relations
}

/// The section in projects, the name of the entry of a step, and what of it is unique there and above.
fn unique_above(step: &Step) -> Option<(Section, &str, &str)> {
    let section = catalogue::section(Scope::Project, step.address.section?)?;
    let name = step.address.entry.as_deref()?;
    Some((section, name, section.exclusive_key(name)?))
}

fn collision_problem(step: &Step, section: Section, what: &str, taken: &Address) -> Problem {
    let texts =
        if section.is_name_unique_above() { texts::NAME_ABOVE } else { texts::EXCLUSIVE_ABOVE };
    let key = text::escape(taken.entry.as_deref().unwrap_or_default());
    let words = words![group = taken.path, noun = section.noun, key, what];
    Problem::from_texts(texts, words, &step.address, &step.origin)
}
