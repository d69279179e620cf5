//! Whose a difference is: a plan against what the base of a branch declares.
//!
//! Two plans of one live state say it: that of the branch, and that of its base. What both would do
//! was there before (`label`). What is left alone is taken out of the declaration, never out of the
//! plan (`rest`): so the guards count what is written, and when apply looks again, the same function
//! decides by the same declaration. What is only declared differently is found by `meaning` of what
//! is declared.

mod label;
mod rest;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

pub use rest::{Rest, left};

use super::{ContainerPlan, Plan, Settings, container};
use crate::{
    address::Address,
    desired::{Container, DeclaredSection, meaning},
    diff::{Label, Step},
    kind::forms,
    kinds,
    live::Live,
    origin::Sourced,
    value::Fields,
};

/// What the base of a branch declares.
#[derive(Clone, Debug)]
pub enum Base {
    /// Nobody knows.
    Unknown,
    /// This.
    Declares(Declares),
}

/// What a base declares.
#[derive(Clone, Debug)]
pub struct Declares {
    /// The groups and projects, by their path in lower case.
    all: BTreeMap<String, Container>,
    /// The paths of the groups, in lower case, in which this branch declares something otherwise.
    around_changes: BTreeSet<String>,
}

/// What a plan says against a base, besides the labels of its steps.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Against {
    /// The revision that it was compared with.
    pub revision: String,
    /// What the base would change and this branch does not, because it declares what is there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub already: Vec<Already>,
    /// What the base declares and this branch does not, and what stays there, because no policy
    /// removes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Address>,
    /// What is left alone, because this branch did not ask for it: it has no part in the steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Step>,
    /// How many groups and projects were not looked at, because this branch declares of them what
    /// the base does.
    pub unchanged: usize,
}

/// Something that this branch declares as it is there, and its base does not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Already {
    /// The object.
    pub address: Address,
    /// The fields; none if it is about the object as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "kinds::serialize_names")]
    pub fields: Vec<String>,
}

impl Against {
    /// Takes in what was found of another container.
    pub fn extend(&mut self, other: Self) {
        self.already.extend(other.already);
        self.removed.extend(other.removed);
        self.left.extend(other.left);
    }

    /// Puts everything into an order that does not depend on which container was read first.
    pub(super) fn sort(&mut self) {
        self.already.sort();
        self.removed.sort();
        self.left.sort_by(|a, b| a.address.path.cmp(&b.address.path));
    }
}

/// What the base says of one container.
enum Side<'b> {
    /// Nobody knows.
    Unknown,
    /// Nothing that this branch could have changed.
    Nothing,
    /// This, which would do that.
    Declares(&'b Container, &'b ContainerPlan),
}

impl Base {
    /// The base that declares `containers`, of a branch that declares those that are `here`.
    pub fn of(containers: impl IntoIterator<Item = Container>, here: &[Container]) -> Self {
        let by_path = |container: Container| (container.path.to_lowercase(), container);
        let all = containers.into_iter().map(by_path).collect();
        let mut around_changes = BTreeSet::new();
        for changed in here.iter().filter(|own| differs(&all, own)) {
            let path = changed.path.to_lowercase();
            let above = path.match_indices('/').map(|(at, _)| path[..at].to_owned());
            around_changes.extend(above);
        }
        Self::Declares(Declares { all, around_changes })
    }

    /// Says in `plan`, that of `declared`, whose each difference is, and returns what else that
    /// comes to. Only what was read for `declared` is looked at.
    pub fn label(
        &self,
        plan: &mut ContainerPlan,
        declared: &Container,
        live: &Live,
        settings: &Settings,
    ) -> Against {
        let Self::Declares(base) = self else {
            return label::label(plan, declared, &Side::Unknown);
        };
        let Some(own) = find(&base.all, declared).and_then(|own| comparable(own, declared)) else {
            return label::label(plan, declared, &Side::Nothing);
        };
        let would = container(&own, live, settings);
        let against = label::label(plan, declared, &Side::Declares(&own, &would));
        // A group that went away is created again for what comes into it.
        if base.around_changes.contains(&declared.path.to_lowercase()) {
            label::with_its_creation(&mut plan.findings.steps);
        }
        against
    }

    /// Declares in `containers` what their entries were told from others by at the base, where that
    /// says which live ones they are.
    pub fn remember(&self, containers: &mut [Container]) {
        let Self::Declares(base) = self else { return };
        for container in containers {
            let Some(before) = find(&base.all, container) else { continue };
            for section in &mut container.sections {
                if let Some(before) = before.section(section.of.section) {
                    remember(section, before);
                }
            }
        }
    }

    /// The containers of `all` of which something else is declared here than at the base, or below
    /// which something is not declared any more and that say what becomes of it. Everything if the
    /// base is not known.
    pub fn changed(&self, all: Vec<Container>) -> Vec<Container> {
        let Self::Declares(base) = self else { return all };
        let paths: BTreeSet<_> = all.iter().map(|one| one.path.to_lowercase()).collect();
        let gone: Vec<_> = base.all.keys().filter(|path| !paths.contains(*path)).collect();
        let has_lost = |own: &Container| {
            let above = format!("{}/", own.path.to_lowercase());
            own.life.undeclared_projects.is_some()
                && gone.iter().any(|path| path.starts_with(&above))
        };
        all.into_iter().filter(|own| differs(&base.all, own) || has_lost(own)).collect()
    }
}

/// Whether `own` is declared otherwise than in `base`.
fn differs(base: &BTreeMap<String, Container>, own: &Container) -> bool {
    let before = base.get(&own.path.to_lowercase());
    before.is_none_or(|before| meaning(before) != meaning(own))
}

/// What `base` declares of the same group or project, also at a former path.
fn find<'b>(base: &'b BTreeMap<String, Container>, own: &Container) -> Option<&'b Container> {
    let mut paths = std::iter::once(&*own.path).chain(own.former());
    let found = paths.find_map(|path| base.get(&path.to_lowercase()));
    found.filter(|found| found.scope == own.scope)
}

/// The same for one section, unless another entry is what is told so now.
fn remember(section: &mut DeclaredSection, before: &DeclaredSection) {
    let keys = |fields: &Fields| section.of.rules.identify(section.of, &forms::plain(fields)).keys;
    let all: Vec<_> = section.entries.iter().map(|entry| keys(&entry.values())).collect();
    let mut remembered = Vec::new();
    for (at, entry) in section.entries.iter().enumerate() {
        let mut old = before.entries.iter().filter(|old| old.key == entry.key);
        let values = entry.values();
        let of_old = old.find_map(|old| section.of.rules.remember(&values, &old.values()));
        let Some((field, value)) = of_old else { continue };
        let mut more = values;
        more.insert(field.to_owned(), value.clone());
        let new: Vec<_> = keys(&more).into_iter().filter(|key| !all[at].contains(key)).collect();
        let is_free = |(other, known): (usize, &Vec<String>)| {
            other == at || !known.iter().any(|key| new.contains(key))
        };
        if all.iter().enumerate().all(is_free) {
            remembered.push((at, field, value));
        }
    }
    for (at, field, value) in remembered {
        let entry = &mut section.entries[at];
        let added = (field, Sourced { value, origin: entry.origin.clone() });
        entry.fields = entry.fields.iter().chain([added]).collect();
    }
}

/// What the base declares of the part that `head` declares too and that was read for it; nothing if
/// the base left all of it alone, or was about to delete it.
fn comparable(base: &Container, head: &Container) -> Option<Container> {
    let is_gone = |one: &Container| one.life.absent().is_some();
    if is_gone(base) != is_gone(head) || (base.is_watched && !head.is_watched) {
        return None;
    }
    let mut own = base.clone();
    own.path = head.path.clone();
    own.is_watched = false;
    own.life.undeclared_projects = None;
    own.sections.retain(|section| head.section(section.of.section).is_some());
    Some(own)
}

impl Plan {
    /// How many steps have each label; what is left alone has no part in them.
    pub fn labels(&self) -> BTreeMap<Label, usize> {
        let mut labels = BTreeMap::new();
        for label in self.steps.iter().filter_map(|step| step.label) {
            *labels.entry(label).or_default() += 1;
        }
        labels
    }
}
