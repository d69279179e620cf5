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
        if let Some(clash) = Clash::of(step) {
            let key = clash.key(&step.address.path.to_lowercase());
            of_groups.entry(key).or_default().push(at);
        }
    }
    let (mut edges, mut problems) = (Vec::new(), Vec::new());
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.adds_entry()) {
        let Some(clash) = Clash::of(step) else { continue };
        if step.scope == Scope::Group && !clash.section.is_unique_above() {
            continue;
        }
        let path = step.address.path.to_lowercase();
        let above = groups_above(&path).filter_map(|group| of_groups.get(&clash.key(group)));
        let others = above.flatten().copied().filter(|other| {
            clash.section.is_unique_above() || steps[*other].address.entry != step.address.entry
        });
        let others: Vec<_> = others.collect();
        let later = others.iter().filter(|other| steps[**other].adds_entry());
        edges.extend(later.map(|later| (*later, at, "it is refused below a group that has it")));
        for effect in &step.effects {
            let Effect::Collides(taken) = effect else { continue };
            let removes = |other: &&usize| {
                let step = &steps[**other];
                step.action == Action::Delete && step.address.entry == taken.entry
            };
            match others.iter().find(removes) {
                Some(removal) => edges.push((at, *removal, "the group above has to lose it first")),
                None => problems.push(collision_problem(step, &clash, taken)),
            }
        }
    }
    for (later, earlier, reason) in edges {
        let address = steps[earlier].address.clone();
        steps[later].after.push(Edge { address, reason });
    }
    problems
}

/// What only one entry of a project and the groups above can be.
struct Clash<'s> {
    /// The section of a project.
    section: Section,
    /// The name, or what a project has only one of.
    what: &'s str,
}

impl<'s> Clash<'s> {
    fn of(step: &'s Step) -> Option<Self> {
        let section = catalogue::section(Scope::Project, step.address.section?)?;
        let name = step.address.entry.as_deref()?;
        let what = if section.is_unique_above() { name } else { section.only_one(name)? };
        Some(Self { section, what })
    }

    /// The key of such entries in the group at `path`, in lower case.
    fn key(&self, path: &str) -> (String, &'static str, &'s str) {
        (path.to_owned(), self.section.section, self.what)
    }
}

fn collision_problem(step: &Step, clash: &Clash<'_>, taken: &Address) -> Problem {
    let Clash { section, what } = *clash;
    let texts = if section.is_unique_above() { texts::NAME_ABOVE } else { texts::EXCLUSIVE_ABOVE };
    let key = text::escape(taken.entry.as_deref().unwrap_or_default());
    let words = words![group = taken.path, noun = section.noun, key, what];
    Problem::of(texts, words, &step.address, &step.origin)
}
