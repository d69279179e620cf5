//! Labels the differences of a plan by comparing with the base of a branch.
//!
//! Two plans of one live state are compared: that of the branch, and that of its base. What both
//! would do is drift from before the branch (`label`). What apply excludes is removed from the
//! declaration, never from the plan (`rest`): so guards count what is really written, and when
//! apply plans again, the same function decides about the same declaration. `meaning` finds
//! declarations that differ only in form.

mod label;
mod rest;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use rest::{BranchPart, excluded_steps};

use super::{ContainerPlan, Plan, PlanSettings, plan_container};
use crate::{
    address::{Address, groups_above},
    catalogue,
    desired::{Container, DeclaredSection, DesiredEntry, Moves, declared_values},
    diff::{GuardRefusal, Label, Problem, Step},
    kind::{FORMER_FIELD, forms},
    live::Live,
    origin::Sourced,
    value::Value,
};

/// The declarations at the base of a branch.
#[derive(Clone, Debug)]
pub enum Base {
    /// They are not known.
    Unknown,
    /// They are known.
    Known(BaseDeclarations),
}

/// The declarations at a base.
#[derive(Clone, Debug)]
pub struct BaseDeclarations {
    /// The groups and projects, by their path in lower case.
    containers: BTreeMap<String, Container>,
    /// The paths, in lower case, of groups in which the branch changes a declaration.
    groups_with_changes: BTreeSet<String>,
}

/// What a plan shows against a base in addition to the labels of its steps.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct BaseComparison {
    /// The revision of the base.
    pub revision: String,
    /// What the base would change and the branch does not, because the branch declares the live
    /// state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub already: Vec<Adopted>,
    /// What the base declares and the branch does not, and what stays as it is: groups, projects
    /// and sections, and live entries that no policy removes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Address>,
    /// What apply excludes because the branch did not ask for it; not among the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Step>,
    /// What guards would refuse of drift that is only shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<GuardRefusal>,
    /// Problems that the base has too, of groups and projects without a step of the branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// How many groups and projects were not read, because branch and base declare the same for
    /// them.
    pub unchanged: usize,
}

/// How a run treats drift from before the branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriftPolicy {
    /// Exclude it.
    Exclude,
    /// Write it.
    Write,
    /// Show it, and write nothing.
    Show,
}

/// An object that the branch declares as it is live, and the base does not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Adopted {
    /// The object.
    pub address: Address,
    /// The fields; empty for the object as a whole.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "catalogue::serialize_names"
    )]
    pub fields: Vec<String>,
}

/// What is declared, whether a run selects it or not: the groups and projects by their path in lower
/// case, each with its sections; `None` if it is to be absent.
#[derive(Clone, Debug, Default)]
pub struct Outline(BTreeMap<String, Option<BTreeSet<&'static str>>>);

impl Outline {
    /// Adds `containers`.
    pub fn add(&mut self, containers: &[Container]) {
        for container in containers {
            let sections = container.sections.iter().map(|section| section.section.section);
            let sections = container.lifecycle.is_absent().is_none().then(|| sections.collect());
            self.0.entry(container.path.to_lowercase()).or_insert(sections);
        }
    }
}

impl BaseComparison {
    /// Adds the result for another container.
    pub fn extend(&mut self, other: Self) {
        self.already.extend(other.already);
        self.removed.extend(other.removed);
        self.left.extend(other.left);
        self.refusals.extend(other.refusals);
        self.problems.extend(other.problems);
    }

    /// Sorts everything, so that the order does not depend on which container was read first.
    pub(super) fn sort(&mut self) {
        self.already.sort();
        self.removed.sort();
        self.refusals.sort();
        self.problems.sort();
        self.left.sort_by(|a, b| a.address.path.cmp(&b.address.path));
    }
}

impl Base {
    /// The base that declares `containers`, for a branch that declares `branch_containers`.
    pub fn from_containers(
        containers: impl IntoIterator<Item = Container>,
        branch_containers: &[Container],
    ) -> Self {
        let all = containers
            .into_iter()
            .map(|container| (container.path.to_lowercase(), container))
            .collect();
        let mut around_changes = BTreeSet::new();
        for changed in branch_containers.iter().filter(|container| differs(&all, container)) {
            let path = changed.path.to_lowercase();
            around_changes.extend(groups_above(&path).map(str::to_owned));
        }
        Self::Known(BaseDeclarations { containers: all, groups_with_changes: around_changes })
    }

    /// Labels each difference in `plan`, which was made for `declared`, and returns the rest of the
    /// comparison. Uses only what was read for `declared`.
    pub fn label(
        &self,
        plan: &mut ContainerPlan,
        declared: &Container,
        live: &Live,
        settings: &PlanSettings,
    ) -> BaseComparison {
        let Self::Known(base) = self else {
            return label::label_all(plan, Label::Unknown);
        };
        let before = find_declaration(&base.containers, declared);
        let before = before.and_then(|before| Some((before, comparable(before, declared)?)));
        let Some((before, at_base)) = before else {
            // There is none that the branch could have changed.
            return label::label_all(plan, Label::Change);
        };
        let base_plan = plan_container(&at_base, live, settings);
        let pair = label::BranchPair { head: declared, base: &at_base, base_plan: &base_plan };
        let mut comparison = pair.compare(plan, &settings.caller);
        // A group that no longer exists is created again for its new contents.
        if base.groups_with_changes.contains(&declared.path.to_lowercase()) {
            label::include_creation(&mut plan.findings.steps);
        }
        if label::is_in_place(before, declared) {
            let summary = |problem: &Problem| {
                (problem.address.clone(), problem.code, problem.message.clone())
            };
            let base_problems: BTreeSet<_> = base_plan.problems.iter().map(summary).collect();
            let drift_problems = plan.problems.iter().filter(|problem| {
                base_problems.contains(&summary(problem))
                    && declares_same(before, declared, &problem.address)
            });
            comparison.problems = drift_problems.cloned().collect();
        }
        comparison
    }

    /// Adds the identities at the base to the entries of `containers`, so that entries still match
    /// their live ones after the branch changes an identity.
    pub fn add_base_identities(&self, containers: &mut [Container]) {
        let Self::Known(base) = self else { return };
        for container in containers {
            let Some(before) = find_declaration(&base.containers, container) else { continue };
            for section in &mut container.sections {
                if let Some(before) = before.section(section.section.section) {
                    add_former_identities(section, before);
                }
            }
        }
    }

    /// The groups, projects and sections that the base declares and the branch (`branch_outline`)
    /// does not.
    pub fn removed_declarations(&self, branch_outline: &Outline, moves: &Moves) -> Vec<Address> {
        let Self::Known(base) = self else { return Vec::new() };
        let mut removed_addresses = Vec::new();
        for (path, before) in &base.containers {
            let declared_path = moves.declared_path(path);
            match branch_outline.0.get(&declared_path.to_lowercase()) {
                None if moves.declares(path) || before.lifecycle.is_absent().is_some() => {}
                None => removed_addresses.push(before.address()),
                // It is deleted with all that is in it.
                Some(None) => {}
                Some(Some(declared)) => {
                    let address = Address::container(declared_path);
                    let sections = before.sections.iter().map(|section| section.section.section);
                    let lost = sections.filter(|section| !declared.contains(section));
                    removed_addresses.extend(lost.map(|section| address.section(section)));
                }
            }
        }
        removed_addresses
    }

    /// Keeps the containers whose declarations differ from the base, or below which a declaration
    /// was removed if they have a policy for unlisted projects. Keeps all if the base is not known.
    pub fn changed_containers(&self, mut containers: Vec<Container>) -> Vec<Container> {
        let Self::Known(base) = self else { return containers };
        let paths: BTreeSet<_> = containers.iter().map(|one| one.path.to_lowercase()).collect();
        let removed_paths: Vec<_> =
            base.containers.keys().filter(|path| !paths.contains(*path)).collect();
        containers.retain(|container| {
            let path_prefix = format!("{}/", container.path.to_lowercase());
            let lost_declarations = container.lifecycle.unlisted_projects.is_some()
                && removed_paths.iter().any(|path| path.starts_with(&path_prefix));
            lost_declarations || differs(&base.containers, container)
        });
        containers
    }
}

/// True if `container` differs from its declaration in `base`.
fn differs(base: &BTreeMap<String, Container>, container: &Container) -> bool {
    let before = base.get(&container.path.to_lowercase());
    before.is_none_or(|before| declared_values(before) != declared_values(container))
}

/// True if both declare the same at `address`, and in it. A problem there hides what differs.
fn declares_same(before: &Container, current: &Container, address: &Address) -> bool {
    let Address { section, entry, .. } = address;
    let [before, current] = [before, current].map(|declared| {
        let mut values = declared_values(declared);
        values.retain(|(of, key), _| {
            section.is_none_or(|section| section == *of)
                && entry.as_ref().is_none_or(|entry| entry == key)
        });
        values
    });
    before == current
}

/// The declaration of the same group or project in `base`, also at a former path.
fn find_declaration<'b>(
    base: &'b BTreeMap<String, Container>,
    container: &Container,
) -> Option<&'b Container> {
    let mut paths = std::iter::once(&*container.path).chain(container.former_paths());
    let found = paths.find_map(|path| base.get(&path.to_lowercase()));
    found.filter(|found| found.scope == container.scope)
}

/// Adds the base's identity to each entry of one section, unless another entry has that identity
/// now. Entries are the same if the service stores the same name for them.
fn add_former_identities(section: &mut DeclaredSection, before: &DeclaredSection) {
    let kind = section.section;
    let Some(field) = kind.table().get(FORMER_FIELD).map(|spec| spec.name) else { return };
    let identify = |entry: &DesiredEntry| kind.identify(&forms::plain_fields(&entry.values()));
    let identities: Vec<_> = section.entries.iter().map(identify).collect();
    for (at, entry) in section.entries.iter_mut().enumerate() {
        let former = before.entries.iter().filter(|old| old.key == entry.key).find_map(|old| {
            let was = identify(old);
            let is_it =
                was.service_name.is_some() && was.service_name == identities[at].service_name;
            let key = was.keys.into_iter().next().filter(|_| is_it)?;
            let value = old.values().get(kind.identity.last()?)?.text()?.to_owned();
            identities.iter().all(|identity| !identity.keys.contains(&key)).then_some(value)
        });
        if let Some(former) = former {
            let written = entry.values().get(field).and_then(Value::list).cloned();
            let all: Vec<_> = written.into_iter().flatten().chain([former.into()]).collect();
            let value = Sourced { value: Value::Plain(all.into()), origin: entry.origin.clone() };
            entry.fields = entry.fields.iter().chain([(field, value)]).collect();
        }
    }
}

/// The part of the base's declaration that `head` declares too and that was read for it. `None` if
/// the base declared nothing there, or the deletion of the container.
fn comparable(base: &Container, head: &Container) -> Option<Container> {
    let [base_deletes, head_deletes] =
        [base, head].map(|declared| declared.lifecycle.is_absent().is_some());
    if base_deletes != head_deletes || (base.is_watched && !head.is_watched) {
        return None;
    }
    let mut comparable = base.clone();
    comparable.path = head.path.clone();
    comparable.is_watched = false;
    comparable.lifecycle.unlisted_projects = None;
    comparable.sections.retain(|section| head.section(section.section.section).is_some());
    Some(comparable)
}

impl Plan {
    /// The number of steps for each label, without excluded ones.
    pub fn labels(&self) -> BTreeMap<Label, usize> {
        let mut labels = BTreeMap::new();
        for label in self.steps.iter().filter_map(|step| step.label) {
            *labels.entry(label).or_default() += 1;
        }
        labels
    }
}
