//! All kinds that undrift manages. To add a kind, write its description file. If the kind needs code, set
//! `hooks` in the description to the name of a Rust module, and add that module to `find_rules` below.

pub mod approval_rules;
pub mod approvals;
pub mod archived;
mod branches;
pub mod constraints;
pub mod copies;
mod creation;
pub mod description;
pub mod fork_of;
pub mod group;
pub mod hooks;
pub mod integrations;
pub mod members;
pub mod operations;
pub mod pipeline_schedules;
mod prelude;
pub mod preset;
pub mod project;
pub mod protected_branches;
pub mod push_rule;
pub mod reference;
pub mod roles;
pub mod settings;
pub mod shares;
pub mod source;
pub mod variables;
pub mod words;

use std::{
    collections::BTreeSet,
    sync::{LazyLock, OnceLock},
};

use serde::{Serialize, Serializer};

use crate::{
    field::Scope,
    kind::{ContainerLookup, Kind, KindRules, Section, Shape, SideList},
    operation::{AnyOp, OPERATIONS, Op, Parameter, Read},
    text,
    value::Json,
};

/// The Rust rules with this `name`, which a description sets as `hooks`.
fn find_rules(name: &str) -> Option<&'static dyn KindRules> {
    Some(match name {
        "approval_rules" => &approval_rules::ApprovalRules,
        "approvals" => &approvals::ApprovalSettings,
        "archived" => &archived::Archived,
        "branches" => &branches::Branches,
        "fork_of" => &fork_of::ForkRelation,
        "group" => &group::GroupRules,
        "hooks" => &hooks::Hooks,
        "integrations" => &integrations::Integrations,
        "members" => &members::Members,
        "project" => &project::ProjectRules,
        "protected_branches" => &protected_branches::ProtectedBranches,
        "push_rule" => &push_rule::PushRule,
        "pipeline_schedules" => &pipeline_schedules::PipelineSchedules,
        "settings" => &settings::Settings,
        "shares" => &shares::Shares,
        "variables" => &variables::Variables,
        _ => return None,
    })
}

/// The other list from which one field of the entries of `section` is read; `None` if there is
/// none.
pub fn side_list(section: Section) -> Option<&'static SideList> {
    let has_pending_list =
        section.section == "members" && section.scoped_kind.scope == Scope::Group;
    has_pending_list.then_some(&members::PENDING_LIST)
}

/// The kinds of this process: built-in kinds, and kinds that a user describes.
#[derive(Default)]
pub struct Registry {
    kinds: Vec<&'static Kind>,
    described_operations: Vec<AnyOp>,
    /// The number of built-in kinds.
    built_in_count: usize,
}

/// The registry of this process. It is set once: by [`set_registry`], or by the first call of
/// [`registry`].
static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// The error of [`set_registry`]: the registry was already read, and the code that read it would
/// miss the new kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistryInUse;

impl Registry {
    /// The built-in kinds.
    pub fn with_built_in_kinds() -> Self {
        let registry = description::built_in_registry();
        Self { built_in_count: registry.kinds.len(), ..registry }
    }

    /// The kinds that a user describes.
    pub fn user_kinds(&self) -> &[&'static Kind] {
        self.kinds.get(self.built_in_count..).unwrap_or_default()
    }

    /// Returns the registry with one more kind.
    #[must_use]
    pub fn with_kind(mut self, described_kind: description::DescribedKind) -> Self {
        self.kinds.push(described_kind.kind);
        self.described_operations.extend(described_kind.operations);
        self
    }

    /// The section of `scope` that manifests call `name`.
    pub fn section(&self, scope: Scope, name: &str) -> Option<Section> {
        let mut sections = self.kinds.iter().filter_map(|kind| kind.find_section(scope));
        sections.find(|section| section.section == name)
    }

    /// The operation that reads the single object at this `path`.
    pub fn find_read_operation(&self, path: &str) -> Option<Op<Read>> {
        OPERATIONS.iter().chain(&self.described_operations).find_map(|op| match op {
            AnyOp::Read(op) if op.row().path == path => Some(*op),
            _ => None,
        })
    }

    /// The kinds, in the order of output and documentation.
    pub fn kinds(&self) -> &[&'static Kind] {
        &self.kinds
    }

    /// The operations of described kinds.
    pub fn described_operations(&self) -> &[AnyOp] {
        &self.described_operations
    }
}

/// Sets the kinds of this process. Must be called before the kinds are read.
///
/// # Errors
/// If the kinds were read already.
pub fn set_registry(registry: Registry) -> Result<(), RegistryInUse> {
    REGISTRY.set(registry).map_err(|_| RegistryInUse)
}

/// Every kind, and the operations of described kinds.
pub fn registry() -> &'static Registry {
    REGISTRY.get_or_init(Registry::with_built_in_kinds)
}

/// The sections of documents of `scope`.
pub fn sections(scope: Scope) -> impl Iterator<Item = Section> {
    registry().kinds().iter().filter_map(move |kind| kind.find_section(scope))
}

/// The section `name` of documents of `scope`.
pub fn find_section(scope: Scope, name: &str) -> Option<Section> {
    registry().section(scope, name)
}

/// The kind of the containers of `scope`.
pub fn container(scope: Scope) -> (Section, &'static ContainerLookup) {
    let found_section = sections(scope).find(|section| section.shape == Shape::Container);
    let found_section =
        found_section.expect("a test checks that every scope has a kind for its containers");
    (found_section, container_lookup(scope))
}

/// The lookup of the containers of `scope`.
pub fn container_lookup(scope: Scope) -> &'static ContainerLookup {
    scope.choose(&group::LOOKUP, &project::LOOKUP)
}

/// Every kind in each of its scopes.
pub fn all_sections() -> impl Iterator<Item = Section> {
    Scope::ALL.into_iter().flat_map(sections)
}

/// The names of all fields of manifests and requests, including nested ones.
static FIELD_NAMES: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    fn collect_from_schema(schema: &'static Json, names: &mut BTreeSet<&'static str>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            names.insert(name);
            collect_from_schema(property, names);
        }
    }
    fn collect_from_parameter(parameter: &Parameter, names: &mut BTreeSet<&'static str>) {
        names.insert(parameter.name);
        parameter.value_type.keys().iter().for_each(|key| collect_from_parameter(key, names));
    }
    let mut names = BTreeSet::new();
    for section in all_sections() {
        collect_from_schema(&section.table().schema, &mut names);
        names.extend(section.specs().iter().map(|spec| spec.name));
    }
    let parameters =
        operations::all_operations().flat_map(|op| operations::request_parameters(op.row()));
    parameters.for_each(|parameter| collect_from_parameter(parameter, &mut names));
    names
});

/// Returns `name` as a static text if it is the name of a known field. The name of a known field is
/// never redacted, unlike a name that a user wrote.
pub fn known_field_name(name: &str) -> Option<&'static str> {
    FIELD_NAMES.get(name).copied()
}

/// Serializes the name of a field. The name of a known field is never redacted. Any other name is a
/// key below `extra:`, and is serialized as user data.
///
/// # Errors
/// The errors of `serializer`.
pub fn serialize_name<S: Serializer>(field: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match known_field_name(field) {
        Some(name) => text::serialize_word(&name, serializer),
        None => serializer.serialize_str(field),
    }
}

/// Serializes names of fields like [`serialize_name`].
///
/// # Errors
/// The errors of `serializer`.
pub fn serialize_names<S: Serializer>(fields: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    struct Name<'n>(&'n str);
    impl Serialize for Name<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serialize_name(self.0, serializer)
        }
    }
    serializer.collect_seq(fields.iter().map(|name| Name(name)))
}

#[cfg(test)]
mod tests;
