//! Labels the differences of a plan by comparing the plan with the base of a branch.
//!
//! The live state is planned twice: for the branch, and for its base. A difference in both plans is
//! drift from before the branch (`label`). Apply excludes drift: `rest` removes it from the
//! declaration, and the container is planned again. The steps are not removed from the plan itself.
//! Therefore guards count only real writes, and apply can plan again from the same declaration.

mod label;
mod rest;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use rest::{BranchPart, excluded_steps, has_same_changes, unneeded_problems};

use super::{ContainerPlan, Plan, PlanSettings, plan_container};
use crate::{
    address::{Address, groups_above},
    catalogue,
    desired::{Container, CreationPolicy, DeclaredEntry, DeclaredSection, Moves, declared_values},
    diff::{GuardRefusal, Incomplete, Label, Problem, Step},
    kind::{FORMER_FIELD, forms},
    live::LiveContainer,
    origin::Sourced,
    secret::Reference,
    value::Value,
};

/// The declarations at the base of a branch, if known.
#[derive(Clone, Debug)]
pub enum Base {
    /// The declarations are not known.
    Unknown,
    /// The declarations are known.
    Known(BaseDeclarations),
}

/// The declarations at the base, and the groups in which the branch differs from them.
#[derive(Clone, Debug)]
pub struct BaseDeclarations {
    /// The groups and projects, by their path in lower case.
    containers: BTreeMap<String, Container>,
    /// The paths, in lower case, of groups in which the branch changes a declaration.
    groups_with_changes: BTreeSet<String>,
}

/// The results of comparing a plan with the base of a branch, in addition to the labels of its steps.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct BaseComparison {
    /// The revision of the base.
    pub revision: String,
    /// Changes that the base needs and the branch does not, because the branch declares the live state.
    #[serde(rename = "already", default, skip_serializing_if = "Vec::is_empty")]
    pub adopted: Vec<Adopted>,
    /// The addresses that the base declares and the branch does not, and that no step removes:
    /// groups, projects, sections, and live entries without a policy that removes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Address>,
    /// Steps that apply excludes because the branch did not cause them.
    #[serde(rename = "left", default, skip_serializing_if = "Vec::is_empty")]
    pub excluded_steps: Vec<Step>,
    /// Refusals of guards for drift that is only shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<GuardRefusal>,
    /// Problems that the base has too, and that no step of the branch needs solved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// What could not be read for the base either, of groups and projects without a step of the
    /// branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<Incomplete>,
    /// The number of groups and projects that were not read, because branch and base declare the
    /// same for them.
    pub unchanged: usize,
}

/// The treatment of drift from before the branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriftPolicy {
    /// Exclude the drift.
    Exclude,
    /// Write the drift.
    Write,
    /// Show the drift, and write nothing.
    Show,
}

/// An object for which the branch declares the live state, and the base does not.
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

/// The declared sections of each group or project, by its path in lower case. The value is `None`
/// if the group or project is declared absent. Includes unselected groups and projects.
#[derive(Clone, Debug, Default)]
pub struct DeclarationOutline(BTreeMap<String, Option<BTreeSet<&'static str>>>);

impl DeclarationOutline {
    /// Adds `containers`.
    pub fn add(&mut self, containers: &[Container]) {
        for container in containers {
            let sections = container.sections.iter().map(|section| section.kind.section);
            let sections =
                container.lifecycle.absent_origin().is_none().then(|| sections.collect());
            self.0.entry(container.path.to_lowercase()).or_insert(sections);
        }
    }
}

impl BaseComparison {
    /// Adds the result for another container.
    pub fn extend(&mut self, other: Self) {
        self.adopted.extend(other.adopted);
        self.removed.extend(other.removed);
        self.excluded_steps.extend(other.excluded_steps);
        self.refusals.extend(other.refusals);
        self.problems.extend(other.problems);
        self.incomplete.extend(other.incomplete);
        self.unchanged += other.unchanged;
    }

    /// Sorts everything, so that the order does not depend on which container was read first.
    pub(super) fn sort(&mut self) {
        self.adopted.sort();
        self.removed.sort();
        self.refusals.sort();
        self.problems.sort();
        self.incomplete.sort();
        self.excluded_steps.sort_by(|a, b| a.address.path.cmp(&b.address.path));
    }
}

impl Base {
    /// The base that declares `containers`, for a branch that declares `branch_containers`.
    pub fn from_containers(
        containers: impl IntoIterator<Item = Container>,
        branch_containers: &[Container],
    ) -> Self {
        let base_containers = containers
            .into_iter()
            .map(|container| (container.path.to_lowercase(), container))
            .collect();
        let mut groups_with_changes = BTreeSet::new();
        for changed_container in
            branch_containers.iter().filter(|container| has_changed(&base_containers, container))
        {
            let path = changed_container.path.to_lowercase();
            groups_with_changes.extend(groups_above(&path).map(str::to_owned));
        }
        Self::Known(BaseDeclarations { containers: base_containers, groups_with_changes })
    }

    /// Labels each step in `plan`, which was made for `declared`, and returns the other results of the
    /// comparison. Plans the base from the same `live` state.
    pub fn label(
        &self,
        plan: &mut ContainerPlan,
        declared: &Container,
        live: &LiveContainer,
        settings: &PlanSettings,
    ) -> BaseComparison {
        let Self::Known(base) = self else {
            return label::label_all(plan, Label::Unknown);
        };
        let base_declaration = find_declaration(&base.containers, declared);
        let comparable_pair =
            base_declaration.and_then(|before| Some((before, comparable_part(before, declared)?)));
        let Some((base_container, comparable_base)) = comparable_pair else {
            // The base does not declare the container. Therefore every step comes from the branch.
            return label::label_all(plan, Label::Change);
        };
        let base_plan = plan_container(&comparable_base, live, settings);
        let declarations = label::DeclarationPair {
            head: declared,
            base: &comparable_base,
            base_plan: &base_plan,
        };
        let mut comparison = declarations.label_steps(plan, &settings.caller);
        // If the branch changes a declaration in a group that no longer exists, the run must create
        // the group again.
        if base.groups_with_changes.contains(&declared.path.to_lowercase()) {
            label::include_creation(&mut plan.findings.steps);
        }
        if label::has_same_paths(base_container, declared) {
            let problem_identity = |problem: &Problem| {
                (problem.address.clone(), problem.code, problem.message.clone())
            };
            let base_problems: BTreeSet<_> =
                base_plan.problems.iter().map(problem_identity).collect();
            let drift_problems = plan.problems.iter().filter(|problem| {
                base_problems.contains(&problem_identity(problem))
                    && declares_cause_alike(base_container, declared, problem)
            });
            comparison.problems = drift_problems.cloned().collect();
            let base_unread: BTreeSet<_> = base_plan
                .incomplete
                .iter()
                .map(|unread| (&unread.address, &unread.reason))
                .collect();
            let unread = plan.incomplete.iter().filter(|unread| {
                let section = Address { entry: None, ..unread.address.clone() };
                base_unread.contains(&(&unread.address, &unread.reason))
                    && declares_same(base_container, declared, &section)
            });
            comparison.incomplete = unread.cloned().collect();
        }
        comparison
    }

    /// Adds the identities at the base to the entries of `containers`, so that the entries still
    /// match live entries if the branch changes an identity.
    pub fn add_base_identities(&self, containers: &mut [Container]) {
        let Self::Known(base) = self else { return };
        for container in containers {
            let Some(base_container) = find_declaration(&base.containers, container) else {
                continue;
            };
            for section in &mut container.sections {
                if let Some(base_section) = base_container.section(section.kind.section) {
                    add_former_identities(section, base_section);
                }
            }
        }
    }

    /// The groups, projects and sections that the base declares and the branch (`branch_outline`)
    /// does not.
    pub fn removed_declarations(
        &self,
        branch_outline: &DeclarationOutline,
        moves: &Moves,
    ) -> Vec<Address> {
        let Self::Known(base) = self else { return Vec::new() };
        let mut removed_addresses = Vec::new();
        for (path, base_container) in &base.containers {
            let declared_path = moves.declared_path(path);
            match branch_outline.0.get(&declared_path.to_lowercase()) {
                None if moves.declares_container(path)
                    || base_container.lifecycle.absent_origin().is_some() => {}
                None => removed_addresses.push(base_container.address()),
                // The branch deletes the container with all its contents.
                Some(None) => {}
                Some(Some(declared_sections)) => {
                    let address = Address::container(declared_path);
                    let sections =
                        base_container.sections.iter().map(|section| section.kind.section);
                    let dropped = sections.filter(|section| !declared_sections.contains(section));
                    removed_addresses.extend(dropped.map(|section| address.with_section(section)));
                }
            }
        }
        removed_addresses
    }

    /// Keeps the containers whose declarations differ from the base. Also keeps a group with a
    /// policy for unlisted projects, if a declaration below the group was removed. Keeps all
    /// containers if the base is not known.
    pub fn changed_containers(&self, mut containers: Vec<Container>) -> Vec<Container> {
        let Self::Known(base) = self else { return containers };
        let paths: BTreeSet<_> =
            containers.iter().map(|declared| declared.path.to_lowercase()).collect();
        let removed_paths: Vec<_> =
            base.containers.keys().filter(|path| !paths.contains(*path)).collect();
        containers.retain(|container| {
            let path_prefix = format!("{}/", container.path.to_lowercase());
            let drops_project = container.lifecycle.unlisted_projects.is_some()
                && removed_paths.iter().any(|path| path.starts_with(&path_prefix));
            drops_project || has_changed(&base.containers, container)
        });
        containers
    }
}

/// Marks the values in `containers`, the declarations at a base, that refer to one of
/// `changed_files`. The branch declares a reference to the same file, but the file has another
/// content at the base. A marked value differs from every value of the branch. The marked value is
/// unknown, like all secrets of the base.
pub fn mark_changed_files(containers: &mut [Container], changed_files: &BTreeSet<String>) {
    for container in containers {
        let create = if let CreationPolicy::Allowed(fields) = &mut container.creation_policy {
            Some(fields)
        } else {
            None
        };
        let entries = container.sections.iter_mut().flat_map(|section| &mut section.entries);
        for fields in entries.map(|entry| &mut entry.fields).chain(create) {
            if fields.secrets_and_files().any(|field| has_file(&field.value, changed_files)) {
                let marked_fields = fields.iter().map(|(name, field)| {
                    let is_changed = has_file(&field.value, changed_files);
                    let value = if is_changed {
                        Value::Secret(changed_file_reference())
                    } else {
                        field.value
                    };
                    (name, Sourced { value, ..field })
                });
                *fields = marked_fields.collect();
            }
        }
    }
}

/// True if `value` contains one of `files`.
fn has_file(value: &Value, files: &BTreeSet<String>) -> bool {
    let mut sources = value.sources().into_iter();
    sources.any(|source| matches!(source, Reference::File(path) if files.contains(&path)))
}

/// The reference that replaces a file with another content at the base. No manifest can declare
/// this reference, because no path contains this character.
fn changed_file_reference() -> Reference {
    Reference::File("\0".to_owned())
}

/// True if `container` differs from its declaration in `base`.
fn has_changed(base: &BTreeMap<String, Container>, container: &Container) -> bool {
    let before = base.get(&container.path.to_lowercase());
    before.is_none_or(|before| declared_values(before) != declared_values(container))
}

/// True if both containers declare the same at the place of `problem`: the same fields of a mapping, or the
/// same object.
fn declares_cause_alike(before: &Container, current: &Container, problem: &Problem) -> bool {
    let fields = label::problem_fields(current, problem);
    if fields.is_empty() {
        return declares_same(before, current, &problem.address);
    }
    fields.iter().all(|field| {
        let [before, current] = [before, current]
            .map(|declared| label::declared_value(declared, &problem.address, field));
        before == current
    })
}

/// True if both containers declare the same values at `address` and below it. A problem at
/// `address` prevents the comparison of plans.
fn declares_same(before: &Container, current: &Container, address: &Address) -> bool {
    let Address { section, entry, .. } = address;
    let [before, current] = [before, current].map(|declared| {
        let mut values = declared_values(declared);
        values.retain(|(section_name, key), _| {
            section.is_none_or(|section| section == *section_name)
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
    let declaration = paths.find_map(|path| base.get(&path.to_lowercase()));
    declaration.filter(|declaration| declaration.scope == container.scope)
}

/// Adds the base's identity to each entry of one section, unless another entry has that identity
/// now. Two entries are the same entry if the service stores the same name for them.
fn add_former_identities(section: &mut DeclaredSection, base_section: &DeclaredSection) {
    let kind = section.kind;
    let Some(field) = kind.spec(FORMER_FIELD).map(|spec| spec.name) else { return };
    let identify = |entry: &DeclaredEntry| kind.identify(&forms::plain_fields(&entry.values()));
    let identities: Vec<_> = section.entries.iter().map(identify).collect();
    for (index, entry) in section.entries.iter_mut().enumerate() {
        let former_identity =
            base_section.entries.iter().filter(|old| old.key == entry.key).find_map(|base_entry| {
                let old_identity = identify(base_entry);
                let is_same_entry = old_identity.service_name.is_some()
                    && old_identity.service_name == identities[index].service_name;
                let key = old_identity.keys.into_iter().next().filter(|_| is_same_entry)?;
                let value = base_entry.values().get(kind.identity.last()?)?.text()?.to_owned();
                identities.iter().all(|identity| !identity.keys.contains(&key)).then_some(value)
            });
        if let Some(former_identity) = former_identity {
            let declared_former = entry.values().get(field).and_then(Value::list).cloned();
            let former_names: Vec<_> =
                declared_former.into_iter().flatten().chain([former_identity.into()]).collect();
            let value =
                Sourced { value: Value::Plain(former_names.into()), origin: entry.origin.clone() };
            entry.fields = entry.fields.iter().chain([(field, value)]).collect();
        }
    }
}

/// The declaration of the base, reduced to the sections that `head` also declares, because only
/// these sections were read. `None` if the declarations cannot be compared: only one declares the
/// container absent, or only the base watches it.
fn comparable_part(base: &Container, head: &Container) -> Option<Container> {
    let [base_deletes, head_deletes] =
        [base, head].map(|declared| declared.lifecycle.absent_origin().is_some());
    if base_deletes != head_deletes || (base.is_watched && !head.is_watched) {
        return None;
    }
    let mut comparable_base = base.clone();
    comparable_base.path = head.path.clone();
    comparable_base.is_watched = false;
    comparable_base.lifecycle.unlisted_projects = None;
    comparable_base.sections.retain(|section| head.section(section.kind.section).is_some());
    Some(comparable_base)
}

impl Plan {
    /// The number of steps for each label, without excluded steps.
    pub fn label_counts(&self) -> BTreeMap<Label, usize> {
        let mut counts = BTreeMap::new();
        for label in self.steps.iter().filter_map(|step| step.label) {
            *counts.entry(label).or_default() += 1;
        }
        counts
    }
}
