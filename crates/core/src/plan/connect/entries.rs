//! Entries that the service refuses below a group that has the same, or another one of which a project
//! has only one. It takes the one above while there is one below.

use std::collections::HashMap;

use crate::{
    address::{Address, groups_above},
    catalogue,
    diff::{
        Action, Edge, Problem, Step,
        texts::{self, words},
    },
    field::Scope,
    kind::{Effect, Section},
    text,
};

/// The entry above is removed before the one below is created, or created after it.
pub(super) fn order_entries(steps: &mut [Step]) -> Vec<Problem> {
    let mut of_groups: HashMap<_, Vec<_>> = HashMap::new();
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.scope == Scope::Group) {
        if let Some((section, name, unique)) = unique_above(step) {
            let key = (step.address.path.to_lowercase(), section.section, unique);
            of_groups.entry(key).or_default().push((at, name));
        }
    }
    let (mut edges, mut problems) = (Vec::new(), Vec::new());
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.adds_entry()) {
        let Some((section, name, unique)) = unique_above(step) else { continue };
        // A group may have several of which a project has only one.
        if step.scope == Scope::Group && !section.is_unique_above() {
            continue;
        }
        let path = step.address.path.to_lowercase();
        let above = groups_above(&path)
            .filter_map(|group| of_groups.get(&(group.to_owned(), section.section, unique)))
            .flatten()
            .filter(|(_, other)| section.collides(name, other));
        let mut gone: Vec<(usize, &str)> = Vec::new();
        for (other, other_name) in above {
            match steps[*other].action {
                Action::Delete => gone.push((*other, *other_name)),
                Action::Create => edges.push((*other, at, "a group above would forbid it")),
                Action::Update => {}
            }
        }
        for effect in &step.effects {
            let Effect::Follows(taken) = effect else { continue };
            // Another entry of this section frees the name.
            if taken.path == step.address.path {
                continue;
            }
            let removal = gone.iter().find(|(other, name)| {
                taken.entry.as_deref() == Some(name)
                    && steps[*other].address.path.eq_ignore_ascii_case(&taken.path)
            });
            match removal {
                Some((other, _)) => edges.push((at, *other, "the group above has one until then")),
                None => problems.push(collision_problem(step, section, unique, taken)),
            }
        }
    }
    for (later, earlier, reason) in edges {
        let address = steps[earlier].address.clone();
        steps[later].after.push(Edge { address, reason });
    }
    problems
}

/// The section in projects, the name of the entry of a step, and what of it is unique there and above.
fn unique_above(step: &Step) -> Option<(Section, &str, &str)> {
    let section = catalogue::section(Scope::Project, step.address.section?)?;
    let name = step.address.entry.as_deref()?;
    Some((section, name, section.unique_above(name)?))
}

fn collision_problem(step: &Step, section: Section, what: &str, taken: &Address) -> Problem {
    let texts = if section.is_unique_above() { texts::NAME_ABOVE } else { texts::EXCLUSIVE_ABOVE };
    let key = text::escape(taken.entry.as_deref().unwrap_or_default());
    let words = words![group = taken.path, noun = section.noun, key, what];
    Problem::of(texts, words, &step.address, &step.origin)
}
