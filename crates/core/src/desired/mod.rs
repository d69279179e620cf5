//! The declared state, resolved: containers with their sections, entries and fields, each with its
//! origin.
//!
//! It does not depend on live state, and knows neither YAML nor files. An undeclared field is a
//! missing key, `null` is a value, and a secret is a reference.

mod acknowledgement;
mod declared;
mod groups;
mod moves;
mod packed;
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
        Capability, CreatedContainers, Effect, Facts, LiveEntry, ReadSource, Section, Shape, forms,
    },
    origin::{Origin, Sourced},
    secret::Reference,
    value::{Fields, Object, Value},
};

pub use acknowledgement::{Acknowledgement, Guard};
pub use declared::Declared;
pub use groups::{GroupDeclarations, declared_members};
pub use moves::{Move, Moves, path_after_rename};
pub use renames::Renames;
pub use roster::{Exception, MatchedContainer, PathClass, PathClassifier, Roster, RosterQuery};
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
    /// Every reference to a secret, with the address that needs it and its origin.
    pub fn references(&self) -> impl Iterator<Item = (Address, Origin, Reference)> {
        self.secrets_and_files().filter_map(|(address, origin, value)| match value {
            Value::Secret(reference) => Some((address, origin, reference)),
            Value::Plain(_) | Value::File(_) => None,
        })
    }

    /// The path of every file to upload, with the address that needs it and its origin.
    pub fn uploaded_files(&self) -> impl Iterator<Item = (Address, Origin, String)> {
        self.secrets_and_files().filter_map(|(address, origin, value)| match value {
            Value::File(path) => Some((address, origin, path)),
            Value::Plain(_) | Value::Secret(_) => None,
        })
    }

    /// The groups that a run creates if they are missing, and the projects among them that other
    /// declarations name.
    pub fn creatable(&self) -> CreatedContainers {
        self.creatable_except(|_| false)
    }

    /// As [`Self::creatable`], without the containers that `is_excluded` selects.
    pub fn creatable_except(&self, is_excluded: impl Fn(&Address) -> bool) -> CreatedContainers {
        let project_paths: BTreeSet<_> =
            self.containers.iter().flat_map(Container::named_projects).collect();
        let created = self.containers.iter().filter(|container| {
            matches!(container.create, CreationPolicy::Allowed(_))
                && !container.is_watched
                && !is_excluded(&container.address())
                && (container.scope == Scope::Group
                    || project_paths.contains(&container.path.to_lowercase()))
        });
        created.map(|container| (container.scope, container.path.clone())).collect()
    }

    /// Adds the containers that rules include.
    #[must_use]
    pub fn with_included(mut self, included: Vec<Container>) -> Self {
        Arc::make_mut(&mut self.moves).add_included(&included);
        self.containers.extend(included);
        self.containers.sort_by_cached_key(|container| container.path.to_lowercase());
        self
    }

    /// The container at `path`, whatever its case.
    pub fn container(&self, path: &str) -> Option<&Container> {
        let lower = path.to_lowercase();
        let at = self.containers.binary_search_by_key(&lower, |it| it.path.to_lowercase()).ok()?;
        Some(&self.containers[at])
    }

    /// The number of containers of `scope`.
    pub fn count(&self, scope: Scope) -> usize {
        self.containers.iter().filter(|container| container.scope == scope).count()
    }

    /// Removes acknowledgements for undeclared addresses: they are for another run.
    #[must_use]
    pub fn without_idle_acknowledgements(mut self) -> Self {
        let mut is_idle = find_idle(&self.acknowledgements, &self.containers).into_iter();
        self.acknowledgements.retain(|_| !is_idle.next().unwrap_or_default());
        self
    }

    fn secrets_and_files(&self) -> impl Iterator<Item = (Address, Origin, Value)> {
        self.containers.iter().flat_map(Container::secrets_and_files)
    }
}

/// For each of `acknowledged`: true if it matches none of `containers`.
pub fn find_idle<'c>(
    acknowledged: &[Acknowledgement],
    containers: impl IntoIterator<Item = &'c Container>,
) -> Vec<bool> {
    let mut by_path = GlobIndex::default();
    acknowledged.iter().enumerate().for_each(|(at, acknowledgement)| {
        by_path.insert(at, acknowledgement.selector.path_pattern());
    });
    let mut is_idle = vec![true; acknowledged.len()];
    for path in containers.into_iter().map(|container| container.path.to_lowercase()) {
        for at in by_path.candidates(&path) {
            is_idle[at] = is_idle[at] && !acknowledged[at].selector.touches(&path);
        }
    }
    is_idle
}

/// A declared group or project.
#[derive(Clone, Debug)]
pub struct Container {
    /// Whether it is a group or a project.
    pub scope: Scope,
    /// The full path as written.
    pub path: Arc<str>,
    /// The place of its declaration.
    pub origin: Origin,
    /// The glob of the rule that includes it, if no document declares it. Then it exists.
    pub including_glob: Option<Arc<str>>,
    /// Whether undrift may create it.
    pub create: CreationPolicy,
    /// Whether it is only compared and reported, never changed.
    pub is_watched: bool,
    /// Changes of the whole container.
    pub lifecycle: ContainerLife,
    /// The declared sections, ordered by name.
    pub sections: Vec<DeclaredSection>,
}

/// Changes of a whole container.
#[derive(Clone, Debug, Default)]
pub struct ContainerLife {
    /// Its former paths, as written.
    pub previously: Vec<Sourced<Arc<str>>>,
    /// The declared state.
    pub state: Option<Sourced<EntryPresence>>,
    /// The policy for unlisted projects below it.
    pub unlisted_projects: Option<Sourced<Unlisted>>,
    /// Projects to which that policy does not apply, because the run excludes them.
    pub excluded_projects: Vec<Selector>,
    /// Whether a declared project directly in it may be created.
    pub may_get_projects: bool,
    /// The groups with which the groups above are declared to be shared.
    pub shares_above: Vec<Arc<str>>,
}

impl ContainerLife {
    /// The origin of `state: absent`, if declared.
    pub fn is_absent(&self) -> Option<&Origin> {
        self.state
            .as_ref()
            .filter(|state| state.value == EntryPresence::Absent)
            .map(|state| &state.origin)
    }
}

/// Whether a container may be created if it is missing.
#[derive(Clone, Debug)]
pub enum CreationPolicy {
    /// No; then a missing container is an error.
    Forbidden,
    /// Yes, with these fields of the create request.
    Allowed(Declared),
    /// Yes, but the run does not select it.
    Unselected {
        /// Whether its contents would then come from elsewhere; see [`Container::imports_contents`].
        imports_contents: bool,
    },
}

impl CreationPolicy {
    /// The fields of the create request.
    pub const fn all_fields(&self) -> Option<&Declared> {
        match self {
            Self::Allowed(fields) => Some(fields),
            Self::Forbidden | Self::Unselected { .. } => None,
        }
    }
}

impl Container {
    /// Its address.
    pub fn address(&self) -> Address {
        Address::container(self.path.clone())
    }

    /// Its former paths, as written.
    pub fn former_paths(&self) -> impl Iterator<Item = &str> {
        self.lifecycle.previously.iter().map(|former| &*former.value)
    }

    /// The section `name`.
    pub fn section(&self, name: &str) -> Option<&DeclaredSection> {
        self.sections.iter().find(|section| section.section.section == name)
    }

    /// The declared entries of the section `name`.
    pub fn entries(&self, name: &str) -> impl Iterator<Item = &DesiredEntry> {
        self.section(name).into_iter().flat_map(|section| &section.entries)
    }

    /// The entries of the section `name` that must exist.
    pub fn present(&self, name: &str) -> impl Iterator<Item = &DesiredEntry> {
        self.section(name).into_iter().flat_map(DeclaredSection::present)
    }

    /// The declared entry `key` of the section `name`.
    pub fn entry(&self, name: &str, key: &str) -> Option<&DesiredEntry> {
        self.section(name)?.entry(key)
    }

    /// The declared value of `name` in a section with a single entry.
    pub fn setting(&self, section: &str, name: &str) -> Option<Sourced<Value>> {
        self.entries(section).next()?.fields.get(name)
    }

    /// True if its settings declare a name.
    pub fn declares_name(&self) -> bool {
        self.entries(catalogue::settings::SECTION).any(|entry| entry.fields.contains_key("name"))
    }

    /// The names of the declared sections.
    pub fn section_names(&self) -> impl Iterator<Item = &'static str> {
        self.sections.iter().map(|section| section.section.section)
    }

    /// The addresses of the container, its sections and their entries.
    pub fn addresses(&self) -> impl Iterator<Item = Address> {
        let container = self.address();
        let sections = self.sections.iter().flat_map({
            let container = container.clone();
            move |section| {
                let entries: Vec<_> = section
                    .entries
                    .iter()
                    .map(|entry| section.address_of(entry, &container))
                    .collect();
                let section = container.section(section.section.section);
                std::iter::once(section.clone())
                    .chain(entries.into_iter().filter(move |entry| *entry != section))
            }
        });
        std::iter::once(container).chain(sections)
    }

    /// The fields of its creation, and those of each entry.
    fn fields(
        &self,
    ) -> impl Iterator<Item = (Option<(&DeclaredSection, &DesiredEntry)>, &Declared)> {
        let create = self.create.all_fields().map(|fields| (None, fields));
        let entries = self.sections.iter().flat_map(|section| {
            section.entries.iter().map(move |entry| (Some((section, entry)), &entry.fields))
        });
        create.into_iter().chain(entries)
    }

    /// Every secret and file that it names, with the address that needs it and its origin.
    pub fn secrets_and_files(&self) -> impl Iterator<Item = (Address, Origin, Value)> {
        self.fields().flat_map(move |(of, fields)| {
            fields.secrets_and_files().map(move |Sourced { value, origin }| {
                let address = self.address();
                let entry = of.map(|(section, entry)| section.address_of(entry, &address));
                (entry.unwrap_or(address), origin, value)
            })
        })
    }

    /// The lower-case paths of the projects that it names.
    fn named_projects(&self) -> impl Iterator<Item = String> {
        let (container_kind, _) = catalogue::container(self.scope);
        self.fields().flat_map(move |(of, fields)| {
            let specs =
                of.map_or(container_kind, |(section, _)| section.section).table().specs().iter();
            let names = specs.filter(|spec| spec.field.names == Some(NamedObject::Project));
            let values = names.filter_map(|spec| fields.get(spec.name));
            values.filter_map(|field| Some(field.value.text()?.to_lowercase()))
        })
    }

    /// True if its contents are imported in the background when it is created.
    pub fn imports_contents(&self) -> bool {
        let create = match &self.create {
            CreationPolicy::Allowed(create) => create,
            CreationPolicy::Unselected { imports_contents: arrives } => return *arrives,
            CreationPolicy::Forbidden => return false,
        };
        let (_, lookup) = catalogue::container(self.scope);
        let sections_with_container =
            self.sections.iter().filter(|section| section.section.comes_with_container());
        create.keys().chain(sections_with_container.flat_map(DeclaredSection::names)).any(|name| {
            lookup.import_fields.iter().any(|with| {
                let rest = name.strip_prefix(with);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        })
    }

    /// The facts in its live object. The state of an import only counts if it is created with
    /// contents: a pull mirror uses the same field for its regular updates.
    pub fn read_facts(&self, raw: &Object) -> Facts {
        let (_, lookup) = catalogue::container(self.scope);
        let facts = (lookup.facts)(raw);
        let arrival = facts.import_state.clone().filter(|_| self.imports_contents());
        Facts { import_state: arrival, ..facts }
    }

    /// Whether it is declared to be unarchived and its live object, with these sections, is
    /// archived.
    pub fn unarchives<'l>(&self, object: impl Fn(&str) -> Option<&'l LiveEntry>) -> bool {
        self.sections.iter().any(|section| {
            let effects = object(section.section.section).map(|live| section.effects_on(live));
            effects.unwrap_or_default().contains(&Effect::provides(Capability::Writable))
        })
    }
}

/// The field that names the object of an entry, and the sort of that object.
pub fn named_object(section: Section) -> Option<(&'static str, NamedObject)> {
    section.identity.iter().find_map(|name| Some((*name, section.field(name).names?)))
}

/// The field with the user or group of an entry.
pub fn subject_field(section: Section) -> Option<(&'static str, NamedObject)> {
    named_object(section)
        .filter(|(_, named)| matches!(named, NamedObject::User | NamedObject::Group))
}

/// A declared section.
#[derive(Clone, Debug)]
pub struct DeclaredSection {
    /// The kind of its entries.
    pub section: Section,
    /// The start of the section.
    pub origin: Origin,
    /// The policy for unlisted live entries. Its origin is the section itself by default.
    pub unlisted: Sourced<Unlisted>,
    /// The entries, ordered by key. A mapping or switch has exactly one.
    pub entries: Vec<DesiredEntry>,
    /// Globs for the names of live entries that others manage, unless they are declared.
    pub unmanaged: Vec<Glob>,
    /// Fields that are read although no entry declares them, so that the plan of a removal does not
    /// depend on which other entries a run selects.
    pub extra_fields: BTreeSet<String>,
}

impl DeclaredSection {
    /// A section with these entries that ignores unlisted ones.
    pub fn with_entries(kind: Section, origin: &Origin, entries: Vec<DesiredEntry>) -> Self {
        let unlisted = Sourced { value: Unlisted::Ignore, origin: origin.clone() };
        let (unmanaged, also_read) = (Vec::new(), BTreeSet::new());
        Self {
            section: kind,
            origin: origin.clone(),
            unlisted,
            entries,
            unmanaged,
            extra_fields: also_read,
        }
    }

    /// True if others manage `live`, which no entry declares.
    pub fn is_managed_elsewhere(&self, live: &LiveEntry) -> bool {
        !self.unmanaged.is_empty() && {
            let identity = self.section.identify(live.fields.raw());
            let mut names = std::iter::once(&identity.name).chain(&identity.other_name);
            names.any(|name| self.unmanaged.iter().any(|glob| glob.matches(name)))
        }
    }

    /// The entries that must exist.
    pub fn present(&self) -> impl Iterator<Item = &DesiredEntry> {
        self.entries.iter().filter(|entry| entry.state == EntryPresence::Present)
    }

    /// True if the entry `name` is declared as absent.
    pub fn is_removed(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.state == EntryPresence::Absent && entry.key == name)
    }

    /// The declared entry `key`.
    pub fn entry(&self, key: &str) -> Option<&DesiredEntry> {
        let at = self.entries.binary_search_by(|entry| (*entry.key).cmp(key)).ok()?;
        Some(&self.entries[at])
    }

    /// The address of one of its entries in `container`.
    pub fn address_of(&self, entry: &DesiredEntry, container: &Address) -> Address {
        let section = container.section(self.section.section);
        if self.section.shape == Shape::List { section.entry(entry.key.as_str()) } else { section }
    }

    /// The effects of the declared values of a part of the container's own object, whether it
    /// differs or not.
    pub fn effects_on(&self, live: &LiveEntry) -> Vec<Effect> {
        let Some(entry) = self
            .entries
            .first()
            .filter(|_| matches!(self.section.scoped_kind.place, ReadSource::Object))
        else {
            return Vec::new();
        };
        let declared = forms::plain_fields(&entry.values());
        if declared.iter().all(|(name, value)| live.fields.raw().get(name) == Some(value)) {
            return self.section.rules().effects(None, live.fields.raw(), live.fields.raw());
        }
        let mut after = live.fields.raw().clone();
        after.extend(declared);
        self.section.rules().effects(None, live.fields.raw(), &after)
    }

    /// The fields that are read: those that any entry declares, and [`Self::extra_fields`].
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let declared = self.entries.iter().flat_map(|entry| entry.fields.keys());
        declared.chain(self.extra_fields.iter().map(String::as_str))
    }
}

/// The key for the projects of a group and its subgroups in `unlisted`.
pub const PROJECTS_KEY: &str = "projects";

/// The policy for unlisted live entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unlisted {
    /// Add a note to the plan.
    #[default]
    Report,
    /// Report a difference that apply does not change.
    Fail,
    /// Remove them.
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
pub struct DesiredEntry {
    /// Its name in addresses. Empty if a container has only one.
    pub key: String,
    /// Its place.
    pub origin: Origin,
    /// Whether it must exist.
    pub state: EntryPresence,
    /// Its fields.
    pub fields: Declared,
}

impl DesiredEntry {
    /// The fields without their origins.
    pub fn values(&self) -> Fields {
        self.fields.values()
    }
}

/// Whether an entry must exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryPresence {
    /// It must exist as declared.
    #[default]
    Present,
    /// It must not exist.
    Absent,
}
