//! The declared state after all layers are merged: containers with their sections, entries and
//! fields, each with its origin.
//!
//! The declared state contains no live state, and does not depend on YAML or files. An undeclared
//! field is a missing key, `null` is a value, and a secret is a reference.

mod acknowledgement;
mod circles;
mod declared;
mod groups;
mod moves;
mod renames;
mod roster;
mod slots;
#[cfg(debug_assertions)]
pub mod testing;

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    address::{Address, Glob, GlobIndex, Selector},
    catalogue,
    field::{NamedObject, Scope},
    kind::{
        Capability, ContainerFacts, CreatedContainers, Effect, LiveEntry, ReadSource, Section,
        Shape, forms,
    },
    origin::{Origin, Sourced},
    secret::Reference,
    value::{Fields, Object, Value},
};

pub use acknowledgement::{Acknowledgement, Guard};
pub(crate) use circles::find_circles;
pub use declared::DeclaredFields;
pub use groups::{GroupDeclarations, declared_members};
pub use moves::{MovedContainer, Moves, path_after_rename};
pub use renames::Renames;
pub use roster::{
    ExclusionReason, MatchedContainer, PathClass, PathClassifier, Roster, RosterQuery,
};
pub use slots::{DeclaredValues, SECTION_KEY, WHOLE_KEY, declared_values, state_value};

/// Everything that the manifests declare.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    /// The groups and projects, ordered by lower-case path.
    pub containers: Vec<Container>,
    /// Acknowledgements of guards.
    pub acknowledgements: Vec<Acknowledgement>,
    /// The former paths of declared containers.
    pub moves: Arc<Moves>,
}

impl Desired {
    /// Every reference to a secret, with the address that needs the secret, and the origin of the
    /// reference.
    pub fn references(&self) -> impl Iterator<Item = (Address, Origin, Reference)> {
        self.secrets_and_files().filter_map(|(address, origin, value)| match value {
            Value::Secret(reference) => Some((address, origin, reference)),
            Value::Plain(_) | Value::File(_) => None,
        })
    }

    /// Every secret and every file to upload, with the address that needs the value, and the origin
    /// of the value.
    pub fn secrets_and_files(&self) -> impl Iterator<Item = (Address, Origin, Value)> {
        self.containers.iter().flat_map(Container::secrets_and_files)
    }

    /// The containers that a run creates or restores if they are missing: all groups with `create`,
    /// and the projects that other declarations name. Omits containers for which `is_excluded`
    /// returns true.
    pub fn creatable_containers(
        &self,
        is_excluded: impl Fn(&Address) -> bool,
    ) -> CreatedContainers {
        let project_paths: BTreeSet<_> =
            self.containers.iter().flat_map(Container::named_project_paths).collect();
        let creatable = self.containers.iter().filter(|container| {
            let is_brought_back = match container.scope {
                Scope::Group => matches!(container.creation_policy, CreationPolicy::Allowed(_)),
                // A project that is marked for deletion has no path until it is restored.
                Scope::Project => project_paths.contains(&container.path.to_lowercase()),
            };
            is_brought_back && !container.is_watched && !is_excluded(&container.address())
        });
        creatable.map(|container| (container.scope, container.path.clone())).collect()
    }

    /// Adds the containers that rules include.
    #[must_use]
    pub fn with_included(mut self, included_containers: Vec<Container>) -> Self {
        Arc::make_mut(&mut self.moves).add_included(&included_containers);
        self.containers.extend(included_containers);
        self.containers.sort_by_cached_key(|container| container.path.to_lowercase());
        self
    }

    /// The container at `path`, ignoring case.
    pub fn container(&self, path: &str) -> Option<&Container> {
        let lower_path = path.to_lowercase();
        let index = self
            .containers
            .binary_search_by_key(&lower_path, |container| container.path.to_lowercase())
            .ok()?;
        Some(&self.containers[index])
    }

    /// The number of containers of `scope`.
    pub fn count(&self, scope: Scope) -> usize {
        self.containers.iter().filter(|container| container.scope == scope).count()
    }

    /// Removes acknowledgements that match no declared container, because they may be meant for
    /// another run.
    #[must_use]
    pub fn without_idle_acknowledgements(mut self) -> Self {
        let mut idle_flags =
            find_idle_acknowledgements(&self.acknowledgements, &self.containers).into_iter();
        self.acknowledgements.retain(|_| !idle_flags.next().unwrap_or_default());
        self
    }
}

/// For each of `acknowledgements`: true if it matches none of `containers`.
pub fn find_idle_acknowledgements<'c>(
    acknowledgements: &[Acknowledgement],
    containers: impl IntoIterator<Item = &'c Container>,
) -> Vec<bool> {
    let mut glob_index = GlobIndex::default();
    acknowledgements.iter().enumerate().for_each(|(index, acknowledgement)| {
        glob_index.insert(index, acknowledgement.selector.path_pattern());
    });
    let mut idle_flags = vec![true; acknowledgements.len()];
    for path in containers.into_iter().map(|container| container.path.to_lowercase()) {
        for candidate in glob_index.candidates(&path) {
            idle_flags[candidate] =
                idle_flags[candidate] && !acknowledgements[candidate].selector.matches_path(&path);
        }
    }
    idle_flags
}

/// A declared group or project.
#[derive(Clone, Debug)]
pub struct Container {
    /// The scope: group or project.
    pub scope: Scope,
    /// The full path as written.
    pub path: Arc<str>,
    /// The origin of its declaration.
    pub origin: Origin,
    /// The glob of the rule that includes the container; `None` if a document declares the
    /// container. A container that a rule includes exists.
    pub including_glob: Option<Arc<str>>,
    /// The policy for its creation.
    pub creation_policy: CreationPolicy,
    /// True if the container is only compared and reported, never changed.
    pub is_watched: bool,
    /// The declarations about the container as a whole.
    pub lifecycle: ContainerLifecycle,
    /// The declared sections, ordered by name.
    pub sections: Vec<DeclaredSection>,
}

/// Declarations about a container as a whole.
#[derive(Clone, Debug, Default)]
pub struct ContainerLifecycle {
    /// The former paths, as written.
    pub former_paths: Vec<Sourced<Arc<str>>>,
    /// The declared state of the container.
    pub state: Option<Sourced<EntryPresence>>,
    /// The policy for unlisted projects below the group.
    pub unlisted_projects: Option<Sourced<Unlisted>>,
    /// The projects that the run excludes. The policy for unlisted projects does not apply to these
    /// projects.
    pub excluded_selectors: Vec<Selector>,
    /// True if the run may create a declared project directly in the group.
    pub may_get_new_projects: bool,
    /// The paths of the groups with which a group above is declared to be shared.
    pub share_paths_above: Vec<Arc<str>>,
}

impl ContainerLifecycle {
    /// The origin of `state: absent`, if it is declared.
    pub fn absent_origin(&self) -> Option<&Origin> {
        let state = self.state.as_ref()?;
        (state.value == EntryPresence::Absent).then_some(&state.origin)
    }
}

/// The policy for creating a missing container.
#[derive(Clone, Debug)]
pub enum CreationPolicy {
    /// undrift must not create the container. A missing container is an error.
    Forbidden,
    /// undrift may create the container, with these fields of the create request.
    Allowed(DeclaredFields),
    /// undrift may create the container, but the run does not select the whole container.
    Unselected {
        /// True if the creation would import contents; see [`Container::imports_contents`].
        imports_contents: bool,
    },
}

impl CreationPolicy {
    /// The fields of the create request.
    pub const fn create_fields(&self) -> Option<&DeclaredFields> {
        match self {
            Self::Allowed(fields) => Some(fields),
            Self::Forbidden | Self::Unselected { .. } => None,
        }
    }
}

impl Container {
    /// A container with these sections. undrift must not create the container.
    pub fn new(
        scope: Scope,
        path: Arc<str>,
        origin: Origin,
        sections: Vec<DeclaredSection>,
    ) -> Self {
        let (create, lifecycle) = (CreationPolicy::Forbidden, ContainerLifecycle::default());
        let (including_glob, is_watched) = (None, false);
        Self {
            scope,
            path,
            origin,
            including_glob,
            creation_policy: create,
            is_watched,
            lifecycle,
            sections,
        }
    }

    /// The address of the container.
    pub fn address(&self) -> Address {
        Address::container(self.path.clone())
    }

    /// The former paths, as written.
    pub fn former_paths(&self) -> impl Iterator<Item = &str> {
        self.lifecycle.former_paths.iter().map(|former| &*former.value)
    }

    /// The section `name`.
    pub fn section(&self, name: &str) -> Option<&DeclaredSection> {
        self.sections.iter().find(|section| section.kind.section == name)
    }

    /// The declared entries of the section `name`.
    pub fn entries(&self, name: &str) -> impl Iterator<Item = &DeclaredEntry> {
        self.section(name).into_iter().flat_map(|section| &section.entries)
    }

    /// The entries of the section `name` that must exist.
    pub fn present_entries(&self, name: &str) -> impl Iterator<Item = &DeclaredEntry> {
        self.section(name).into_iter().flat_map(DeclaredSection::present_entries)
    }

    /// The declared entry `key` of the section `name`.
    pub fn entry(&self, name: &str, key: &str) -> Option<&DeclaredEntry> {
        self.section(name)?.entry(key)
    }

    /// The declared value of the field `name` in `section`, a section with a single entry.
    pub fn setting(&self, section: &str, name: &str) -> Option<Sourced<Value>> {
        self.entries(section).next()?.fields.get(name)
    }

    /// True if the settings declare a display name.
    pub fn declares_name(&self) -> bool {
        self.entries(catalogue::settings::SECTION).any(|entry| entry.fields.contains_key("name"))
    }

    /// The names of the declared sections.
    pub fn section_names(&self) -> impl Iterator<Item = &'static str> {
        self.sections.iter().map(|section| section.kind.section)
    }

    /// The addresses of the container, its sections and their entries.
    pub fn addresses(&self) -> impl Iterator<Item = Address> {
        let container = self.address();
        let mut addresses = vec![container.clone()];
        for section in &self.sections {
            addresses.push(container.with_section(section.kind.section));
            let entries = section.entries.iter().filter(|_| section.kind.shape == Shape::List);
            addresses.extend(entries.map(|entry| section.address_of(entry, &container)));
        }
        addresses.into_iter()
    }

    /// The fields of the create request, and the fields of each entry. An entry comes with its
    /// section; the create request comes with `None`.
    fn all_fields(
        &self,
    ) -> impl Iterator<Item = (Option<(&DeclaredSection, &DeclaredEntry)>, &DeclaredFields)> {
        let create = self.creation_policy.create_fields().map(|fields| (None, fields));
        let entries = self.sections.iter().flat_map(|section| {
            section.entries.iter().map(move |entry| (Some((section, entry)), &entry.fields))
        });
        create.into_iter().chain(entries)
    }

    /// Every secret and file that the container declares, with the address that needs the value,
    /// and the origin of the value.
    pub fn secrets_and_files(&self) -> impl Iterator<Item = (Address, Origin, Value)> {
        self.all_fields().flat_map(move |(section_and_entry, fields)| {
            fields.secrets_and_files().map(move |Sourced { value, origin }| {
                let address = self.address();
                let entry =
                    section_and_entry.map(|(section, entry)| section.address_of(entry, &address));
                (entry.unwrap_or(address), origin, value)
            })
        })
    }

    /// The lower-case paths of the projects that the declarations of the container name.
    fn named_project_paths(&self) -> impl Iterator<Item = String> {
        let (container_kind, _) = catalogue::container(self.scope);
        self.all_fields().flat_map(move |(section_and_entry, fields)| {
            let kind = section_and_entry.map_or(container_kind, |(section, _)| section.kind);
            let specs = kind.specs().iter();
            let project_specs = specs.filter(|spec| spec.field.names == Some(NamedObject::Project));
            let values = project_specs.filter_map(|spec| fields.get(spec.name));
            values.filter_map(|field| Some(field.value.text()?.to_lowercase()))
        })
    }

    /// True if the service imports contents in the background when the container is created.
    pub fn imports_contents(&self) -> bool {
        let create = match &self.creation_policy {
            CreationPolicy::Allowed(create) => create,
            CreationPolicy::Unselected { imports_contents } => return *imports_contents,
            CreationPolicy::Forbidden => return false,
        };
        let (_, lookup) = catalogue::container(self.scope);
        let sections =
            self.sections.iter().filter(|section| section.kind.is_created_with_container());
        let mut names = create.keys().chain(sections.flat_map(DeclaredSection::field_names));
        names.any(|name| {
            lookup.import_fields.iter().any(|import_field| {
                let suffix = name.strip_prefix(import_field);
                suffix.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        })
    }

    /// The facts in `raw`, the live object of the container. The import state is used only if
    /// creating the container imports contents. Otherwise the field may show a regular update of a
    /// pull mirror.
    pub fn read_facts(&self, raw: &Object) -> ContainerFacts {
        let (_, lookup) = catalogue::container(self.scope);
        let facts = (lookup.read_facts)(raw);
        let import_state = facts.import_state.clone().filter(|_| self.imports_contents());
        ContainerFacts { import_state, ..facts }
    }

    /// True if a run unarchives the container, because it is archived but declared as not archived.
    /// `find_live_entry` returns the live entry of a section.
    pub fn unarchives<'l>(&self, find_live_entry: impl Fn(&str) -> Option<&'l LiveEntry>) -> bool {
        self.sections.iter().any(|section| {
            let effects =
                find_live_entry(section.kind.section).map(|live| section.effects_on(live));
            effects.unwrap_or_default().contains(&Effect::provides(Capability::Writable))
        })
    }
}

/// The field that names the object of an entry, with the type of the object.
pub fn named_object(section: Section) -> Option<(&'static str, NamedObject)> {
    section.identity.iter().find_map(|name| Some((*name, section.field(name).names?)))
}

/// The field that names the user or group of an entry, with the type of the object.
pub fn subject_field(section: Section) -> Option<(&'static str, NamedObject)> {
    named_object(section)
        .filter(|(_, object_type)| matches!(object_type, NamedObject::User | NamedObject::Group))
}

/// A declared section.
#[derive(Clone, Debug)]
pub struct DeclaredSection {
    /// The kind of its entries.
    pub kind: Section,
    /// The origin of its key.
    pub origin: Origin,
    /// The policy for unlisted live entries. The default policy has the origin of the section.
    pub unlisted: Sourced<Unlisted>,
    /// The entries, ordered by key. A mapping or switch has exactly one entry.
    pub entries: Vec<DeclaredEntry>,
    /// Globs for the names of live entries that are managed elsewhere, unless they are declared.
    pub unmanaged_globs: Vec<Glob>,
    /// Fields to read in addition to the declared ones. With these fields, the plan of a removal
    /// does not depend on which entries a run selects.
    pub extra_fields: BTreeSet<String>,
}

impl DeclaredSection {
    /// A section with these entries. The policy for unlisted entries is to ignore them.
    pub fn with_entries(kind: Section, origin: &Origin, entries: Vec<DeclaredEntry>) -> Self {
        let unlisted = Sourced { value: Unlisted::Ignore, origin: origin.clone() };
        let (unmanaged_globs, extra_fields) = (Vec::new(), BTreeSet::new());
        Self { kind, origin: origin.clone(), unlisted, entries, unmanaged_globs, extra_fields }
    }

    /// True if `live`, which no entry declares, is managed elsewhere.
    pub fn is_managed_elsewhere(&self, live: &LiveEntry) -> bool {
        !self.unmanaged_globs.is_empty() && {
            let identity = self.kind.identify(live.fields.raw());
            let mut names = std::iter::once(&identity.name).chain(&identity.other_name);
            names.any(|name| self.unmanaged_globs.iter().any(|glob| glob.matches(name)))
        }
    }

    /// The entries that must exist.
    pub fn present_entries(&self) -> impl Iterator<Item = &DeclaredEntry> {
        self.entries.iter().filter(|entry| entry.state == EntryPresence::Present)
    }

    /// True if the entry `name` is declared as absent.
    pub fn is_declared_absent(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.state == EntryPresence::Absent && entry.key == name)
    }

    /// The declared entry `key`.
    pub fn entry(&self, key: &str) -> Option<&DeclaredEntry> {
        let index = self.entries.binary_search_by(|entry| (*entry.key).cmp(key)).ok()?;
        Some(&self.entries[index])
    }

    /// The address of `entry`, an entry of this section in the container at the address
    /// `container`.
    pub fn address_of(&self, entry: &DeclaredEntry, container: &Address) -> Address {
        let section_address = container.with_section(self.kind.section);
        if self.kind.shape == Shape::List {
            section_address.with_entry(entry.key.as_str())
        } else {
            section_address
        }
    }

    /// The effects of the declared values on `live`, even if nothing differs. The result is empty
    /// unless the section is part of the container's own object.
    pub fn effects_on(&self, live: &LiveEntry) -> Vec<Effect> {
        let is_in_object = matches!(self.kind.scoped_kind.read_source, ReadSource::Object);
        let Some(entry) = self.entries.first().filter(|_| is_in_object) else { return Vec::new() };
        let (declared, live) = (forms::plain_fields(&entry.values()), live.fields.raw());
        if declared.iter().all(|(name, value)| live.get(name) == Some(value)) {
            return self.kind.rules().effects(None, live, live);
        }
        let mut changed_fields = live.clone();
        changed_fields.extend(declared);
        self.kind.rules().effects(None, live, &changed_fields)
    }

    /// The fields that are read: the fields that any entry declares, and [`Self::extra_fields`].
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        let declared = self.entries.iter().flat_map(|entry| entry.fields.keys());
        declared.chain(self.extra_fields.iter().map(String::as_str))
    }
}

/// The key in `unlisted` for the projects of a group and its subgroups.
pub const PROJECTS_KEY: &str = "projects";

/// The policy for unlisted live entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unlisted {
    /// Add a note to the plan.
    #[default]
    Report,
    /// Report unlisted entries as differences. Apply does not remove them.
    Fail,
    /// Remove unlisted entries.
    Delete,
    /// Do nothing.
    Ignore,
}

impl Unlisted {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Report, Self::Fail, Self::Delete, Self::Ignore];

    /// The word in manifests.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Fail => "fail",
            Self::Delete => "delete",
            Self::Ignore => "ignore",
        }
    }
}

/// A declared entry of a section.
#[derive(Clone, Debug)]
pub struct DeclaredEntry {
    /// The name of the entry in addresses; empty if the section has only one entry.
    pub key: String,
    /// The origin of its declaration.
    pub origin: Origin,
    /// The declared state.
    pub state: EntryPresence,
    /// The declared fields.
    pub fields: DeclaredFields,
}

impl DeclaredEntry {
    /// The fields without their origins.
    pub fn values(&self) -> Fields {
        self.fields.values()
    }
}

/// The declared state of an entry or container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryPresence {
    /// The entry or container must exist as declared.
    #[default]
    Present,
    /// The entry or container must not exist.
    Absent,
}
