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
    kind::{Capability, Created, Effect, Facts, LiveEntry, ReadSource, Section, Shape, forms},
    origin::{Origin, Sourced},
    secret::Reference,
    value::{Fields, Object, Value},
};

pub use acknowledgement::{Acknowledgement, Guard};
pub use declared::Declared;
pub use groups::{Groups, members};
pub use moves::{Move, Moves, renamed};
pub use renames::Renames;
pub use roster::{Exception, MatchedContainer, PathClass, PathClassifier, Roster, RosterQuery};
pub use slots::{DeclaredValues, ITSELF, SECTION, declared_values, state_value};

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
        self.named().filter_map(|(address, origin, value)| match value {
            Value::Secret(reference) => Some((address, origin, reference)),
            Value::Plain(_) | Value::File(_) => None,
        })
    }

    /// The path of every file to upload, with the address that needs it and its origin.
    pub fn uploads(&self) -> impl Iterator<Item = (Address, Origin, String)> {
        self.named().filter_map(|(address, origin, value)| match value {
            Value::File(path) => Some((address, origin, path)),
            Value::Plain(_) | Value::Secret(_) => None,
        })
    }

    /// The groups that a run creates if they are missing, and the projects among them that other
    /// declarations name.
    pub fn created(&self) -> Created {
        self.created_unless(|_| false)
    }

    /// The same, without those that `is_excluded` selects.
    pub fn created_unless(&self, is_excluded: impl Fn(&Address) -> bool) -> Created {
        let named: BTreeSet<_> = self.containers.iter().flat_map(Container::projects).collect();
        let created = self.containers.iter().filter(|container| {
            matches!(container.create, CreationPolicy::Allowed(_))
                && !container.is_watched
                && !is_excluded(&container.address())
                && (container.scope == Scope::Group
                    || named.contains(&container.path.to_lowercase()))
        });
        created.map(|container| (container.scope, container.path.clone())).collect()
    }

    /// Adds the containers that rules include.
    #[must_use]
    pub fn with(mut self, brought_in: Vec<Container>) -> Self {
        Arc::make_mut(&mut self.moves).bring_in(&brought_in);
        self.containers.extend(brought_in);
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

    /// Without acknowledgements for undeclared addresses: those are meant for another run.
    #[must_use]
    pub fn without_idle_acknowledgements(mut self) -> Self {
        let mut is_idle = idle(&self.acknowledgements, &self.containers).into_iter();
        self.acknowledgements.retain(|_| !is_idle.next().unwrap_or_default());
        self
    }

    fn named(&self) -> impl Iterator<Item = (Address, Origin, Value)> {
        self.containers.iter().flat_map(Container::named)
    }
}

/// Whether each of `acknowledged` is for none of `containers`.
pub fn idle<'c>(
    acknowledged: &[Acknowledgement],
    containers: impl IntoIterator<Item = &'c Container>,
) -> Vec<bool> {
    let mut by_path = GlobIndex::default();
    acknowledged
        .iter()
        .enumerate()
        .for_each(|(at, acknowledgement)| by_path.insert(at, acknowledgement.at.over_paths()));
    let mut is_idle = vec![true; acknowledged.len()];
    for path in containers.into_iter().map(|container| container.path.to_lowercase()) {
        for at in by_path.of(&path) {
            is_idle[at] = is_idle[at] && !acknowledged[at].at.touches(&path);
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
    pub brought_in: Option<Arc<str>>,
    /// Whether undrift may create it.
    pub create: CreationPolicy,
    /// Whether it is only compared and reported, never changed.
    pub is_watched: bool,
    /// Changes of the whole container.
    pub life: ContainerLife,
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
    /// Where that policy does not count, because the run excludes it.
    pub excluded: Vec<Selector>,
    /// Whether a declared project directly in it may be created.
    pub gets_projects: bool,
    /// The groups with which the groups above are declared to be shared.
    pub shares_above: Vec<Arc<str>>,
}

impl ContainerLife {
    /// The origin of `state: absent`, if declared.
    pub fn absent(&self) -> Option<&Origin> {
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
        /// Whether its contents would then come from elsewhere; see [`Container::arrives`].
        arrives: bool,
    },
}

impl CreationPolicy {
    /// The fields of the create request.
    pub const fn fields(&self) -> Option<&Declared> {
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
    pub fn former(&self) -> impl Iterator<Item = &str> {
        self.life.previously.iter().map(|former| &*former.value)
    }

    /// The section `name`.
    pub fn section(&self, name: &str) -> Option<&DeclaredSection> {
        self.sections.iter().find(|section| section.section.section == name)
    }

    /// The declared entries of the section `name`.
    pub fn entries(&self, name: &str) -> impl Iterator<Item = &DesiredEntry> {
        self.section(name).into_iter().flat_map(|section| &section.entries)
    }

    /// The declared entry `key` of the section `name`.
    pub fn entry(&self, name: &str, key: &str) -> Option<&DesiredEntry> {
        self.section(name)?.entry(key)
    }

    /// The declared value of a setting of which there is one.
    pub fn setting(&self, section: &str, name: &str) -> Option<Sourced<Value>> {
        self.entries(section).next()?.fields.get(name)
    }

    /// Whether its settings declare a name.
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
        let create = self.create.fields().map(|fields| (None, fields));
        let entries = self.sections.iter().flat_map(|section| {
            section.entries.iter().map(move |entry| (Some((section, entry)), &entry.fields))
        });
        create.into_iter().chain(entries)
    }

    /// Every secret and file that it names, with the address that needs it and its origin.
    pub fn named(&self) -> impl Iterator<Item = (Address, Origin, Value)> {
        self.fields().flat_map(move |(of, fields)| {
            fields.named().map(move |Sourced { value, origin }| {
                let address = self.address();
                let entry = of.map(|(section, entry)| section.address_of(entry, &address));
                (entry.unwrap_or(address), origin, value)
            })
        })
    }

    /// The lower-case paths of the projects that it names.
    fn projects(&self) -> impl Iterator<Item = String> {
        let (itself, _) = catalogue::container(self.scope);
        self.fields().flat_map(move |(of, fields)| {
            let specs = of.map_or(itself, |(section, _)| section.section).table().specs().iter();
            let names = specs.filter(|spec| spec.field.names == Some(NamedObject::Project));
            let values = names.filter_map(|spec| fields.get(spec.name));
            values.filter_map(|field| Some(field.value.text()?.to_lowercase()))
        })
    }

    /// Whether its contents come from elsewhere, in the background, when it is created.
    pub fn arrives(&self) -> bool {
        let create = match &self.create {
            CreationPolicy::Allowed(create) => create,
            CreationPolicy::Unselected { arrives } => return *arrives,
            CreationPolicy::Forbidden => return false,
        };
        let (_, itself) = catalogue::container(self.scope);
        let along = self.sections.iter().filter(|section| section.section.comes_with_container());
        create.keys().chain(along.flat_map(DeclaredSection::names)).any(|name| {
            itself.arrives_with.iter().any(|with| {
                let rest = name.strip_prefix(with);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        })
    }

    /// The facts in its live object. The state of an import only counts if it is created with
    /// contents: a pull mirror uses the same field for its regular updates.
    pub fn facts(&self, raw: &Object) -> Facts {
        let (_, itself) = catalogue::container(self.scope);
        let facts = (itself.facts)(raw);
        let arrival = facts.arrival.clone().filter(|_| self.arrives());
        Facts { arrival, ..facts }
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

/// The field with the user or group of an entry.
pub fn subject(section: Section) -> Option<(&'static str, NamedObject)> {
    let mut names = section.identity.iter().map(|name| (*name, section.field(name).names));
    names.find_map(|(name, named)| {
        Some((name, named.filter(|named| matches!(named, NamedObject::User | NamedObject::Group))?))
    })
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
    pub also_read: BTreeSet<String>,
}

impl DeclaredSection {
    /// A section with these entries that ignores unlisted ones.
    pub fn with(of: Section, origin: &Origin, entries: Vec<DesiredEntry>) -> Self {
        let unlisted = Sourced { value: Unlisted::Ignore, origin: origin.clone() };
        let (unmanaged, also_read) = (Vec::new(), BTreeSet::new());
        Self { section: of, origin: origin.clone(), unlisted, entries, unmanaged, also_read }
    }

    /// Whether others manage `live`, which no entry declares.
    pub fn is_managed_elsewhere(&self, live: &LiveEntry) -> bool {
        !self.unmanaged.is_empty() && {
            let identity = self.section.identify(live.fields.raw());
            let mut names = std::iter::once(&identity.name).chain(&identity.also_called);
            names.any(|name| self.unmanaged.iter().any(|glob| glob.matches(name)))
        }
    }

    /// Whether the entry `name` is declared as absent.
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
        let Some(entry) =
            self.entries.first().filter(|_| matches!(self.section.home.place, ReadSource::Object))
        else {
            return Vec::new();
        };
        let declared = forms::plain(&entry.values());
        if declared.iter().all(|(name, value)| live.fields.raw().get(name) == Some(value)) {
            return self.section.rules().effects(None, live.fields.raw(), live.fields.raw());
        }
        let mut after = live.fields.raw().clone();
        after.extend(declared);
        self.section.rules().effects(None, live.fields.raw(), &after)
    }

    /// The fields that are read: those that any entry declares, and [`Self::also_read`].
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let declared = self.entries.iter().flat_map(|entry| entry.fields.keys());
        declared.chain(self.also_read.iter().map(String::as_str))
    }
}

/// The key for the projects of a group and its subgroups in `unlisted`.
pub const PROJECTS: &str = "projects";

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
