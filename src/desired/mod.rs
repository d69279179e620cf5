//! What manifests declare, resolved: the containers, in each its sections, in each section the
//! entries, in each entry the fields, each with its origin.
//!
//! It never depends on live state, and knows neither YAML nor files. Absence is a missing key,
//! `null` is a value, a secret is a reference.

mod acknowledgement;
mod declared;
mod groups;
mod moves;
mod packed;
mod roster;
mod slots;
#[cfg(test)]
pub(crate) mod testing;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    address::{Address, Ends, Glob},
    field::{Named, Scope},
    kind::{Capability, Created, Effect, Facts, LiveEntry, Place, Section, Shape, forms},
    kinds,
    origin::{Origin, Sourced},
    secret::Reference,
    value::{Fields, Object, Value},
};

pub use acknowledgement::{Acknowledgement, Guard};
pub use declared::Declared;
pub use groups::Groups;
pub use moves::{Move, Moves, renamed};
pub use roster::{Ask, Exception, Judge, Member, Roster, Standing};
pub use slots::{ITSELF, Meaning, SECTION, meaning, state_of};

/// Everything that the manifests declare.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    /// The groups and projects, ordered by their path in lower case.
    pub containers: Vec<Container>,
    /// What guards may let pass.
    pub acknowledgements: Vec<Acknowledgement>,
    /// Where what is declared was before.
    pub moves: Arc<Moves>,
}

impl Desired {
    /// Every reference to a secret, with the address of what it is for and where it is written.
    pub fn references(&self) -> impl Iterator<Item = (Address, Origin, Reference)> {
        self.named().filter_map(|(address, origin, value)| match value {
            Value::Secret(reference) => Some((address, origin, reference)),
            Value::Plain(_) | Value::File(_) => None,
        })
    }

    /// The path of every file to upload, with the address of what it is for and where it is
    /// written.
    pub fn uploads(&self) -> impl Iterator<Item = (Address, Origin, String)> {
        self.named().filter_map(|(address, origin, value)| match value {
            Value::File(path) => Some((address, origin, path)),
            Value::Plain(_) | Value::Secret(_) => None,
        })
    }

    /// The groups that a run creates where they are missing, and the projects that something names.
    pub fn created(&self) -> Created {
        self.created_unless(|_| false)
    }

    /// The same, unless the run leaves one alone.
    pub fn created_unless(&self, is_left_alone: impl Fn(&Address) -> bool) -> Created {
        let named: BTreeSet<_> = self.containers.iter().flat_map(Container::projects).collect();
        let may_create = |container: &&Container| {
            matches!(container.create, Creation::Allowed(_))
                && !container.is_watched
                && !is_left_alone(&container.address())
                && (container.scope == Scope::Group
                    || named.contains(&container.path.to_lowercase()))
        };
        let created = self.containers.iter().filter(may_create);
        created.map(|container| (container.scope, container.path.clone())).collect()
    }

    /// With what rules bring in besides.
    #[must_use]
    pub fn with(mut self, brought_in: Vec<Container>) -> Self {
        Arc::make_mut(&mut self.moves).bring_in(&brought_in);
        self.containers.extend(brought_in);
        self.containers.sort_by_cached_key(|container| container.path.to_lowercase());
        self
    }

    /// How many containers of `scope` there are.
    pub fn count(&self, scope: Scope) -> usize {
        self.containers.iter().filter(|container| container.scope == scope).count()
    }

    /// Without acknowledgements of what is not declared here: they are for another run.
    #[must_use]
    pub fn without_idle_acknowledgements(mut self) -> Self {
        let mut by_path = Ends::default();
        let known = &self.acknowledgements;
        known.iter().enumerate().for_each(|(at, known)| by_path.insert(at, known.at.over_paths()));
        let mut is_idle = vec![true; known.len()];
        for path in self.containers.iter().map(|container| container.path.to_lowercase()) {
            let candidates = by_path.of(&path).into_iter();
            for at in candidates
                .filter(|at| is_idle[*at] && known[*at].at.touches(&path))
                .collect::<Vec<_>>()
            {
                is_idle[at] = false;
            }
        }
        let mut is_idle = is_idle.into_iter();
        self.acknowledgements.retain(|_| !is_idle.next().unwrap_or_default());
        self
    }

    fn named(&self) -> impl Iterator<Item = (Address, Origin, Value)> {
        self.containers.iter().flat_map(Container::named)
    }
}

/// A declared group or project.
#[derive(Clone, Debug)]
pub struct Container {
    /// Which of the two.
    pub scope: Scope,
    /// The full path as written.
    pub path: Arc<str>,
    /// Where it is declared.
    pub origin: Origin,
    /// The glob of the rule by which it is declared, if no document of its own does: then it exists,
    /// and this run found it there.
    pub brought_in: Option<Arc<str>>,
    /// Whether undrift may create it.
    pub create: Creation,
    /// Whether it is only compared and reported, never written.
    pub is_watched: bool,
    /// What becomes of it as a whole.
    pub life: Life,
    /// The sections that are declared, ordered by name.
    pub sections: Vec<DeclaredSection>,
}

/// What becomes of a container as a whole.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// The paths that it had before, as written.
    pub previously: Vec<Sourced<Arc<str>>>,
    /// Whether it is to be there, where that is written.
    pub state: Option<Sourced<State>>,
    /// What to do with projects below it that no manifest declares, if they matter.
    pub unlisted_projects: Option<Sourced<Unlisted>>,
}

impl Life {
    /// Where it is written that the container is to be gone, if it is.
    pub fn absent(&self) -> Option<&Origin> {
        let absent = self.state.as_ref().filter(|state| state.value == State::Absent);
        absent.map(|state| &state.origin)
    }
}

/// Whether a container may be created if it is missing.
#[derive(Clone, Debug)]
pub enum Creation {
    /// No: a missing one is an error.
    Forbidden,
    /// Yes, with these fields that only a create takes.
    Allowed(Declared),
    /// Yes, but this run does not look at it.
    Unselected {
        /// Whether its contents come from elsewhere then; see [`Container::arrives`].
        arrives: bool,
    },
}

impl Creation {
    /// What only a create takes.
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

    /// The paths that it had before, as written.
    pub fn former(&self) -> impl Iterator<Item = &str> {
        self.life.previously.iter().map(|former| &*former.value)
    }

    /// The section `name`.
    pub fn section(&self, name: &str) -> Option<&DeclaredSection> {
        self.sections.iter().find(|section| section.of.section == name)
    }

    /// Whether its settings say a name.
    pub fn declares_name(&self) -> bool {
        let mut settings =
            self.section(kinds::settings::KIND.section).into_iter().flat_map(|of| &of.entries);
        settings.any(|entry| entry.fields.get("name").is_some())
    }

    /// The names of the sections that are declared.
    pub fn section_names(&self) -> impl Iterator<Item = &'static str> {
        self.sections.iter().map(|section| section.of.section)
    }

    /// The addresses of it, its sections and their entries.
    pub fn addresses(&self) -> impl Iterator<Item = Address> {
        let own = self.address();
        let sections = self.sections.iter().flat_map({
            let own = own.clone();
            move |section| {
                let entries: Vec<_> =
                    section.entries.iter().map(|entry| section.address_of(entry, &own)).collect();
                let section = own.section(section.of.section);
                std::iter::once(section.clone())
                    .chain(entries.into_iter().filter(move |entry| *entry != section))
            }
        });
        std::iter::once(own).chain(sections)
    }

    /// Every secret and every file that is named, with the address of what it is for and where it
    /// is written.
    pub fn named(&self) -> impl Iterator<Item = (Address, Origin, Value)> {
        let create = self.create.fields().map(|fields| (None, fields));
        let sections = self.sections.iter().flat_map(|section| {
            section.entries.iter().map(move |entry| (Some((section, entry)), &entry.fields))
        });
        create.into_iter().chain(sections).flat_map(move |(of, fields)| {
            fields.named().map(move |Sourced { value, origin }| {
                let address = self.address();
                let entry = of.map(|(section, entry)| section.address_of(entry, &address));
                (entry.unwrap_or(address), origin, value)
            })
        })
    }

    /// The paths of the projects that it names, in lower case.
    fn projects(&self) -> impl Iterator<Item = String> {
        let (own, _) = kinds::container(self.scope);
        let create = self.create.fields().map(|fields| (own, fields));
        let entries = self
            .sections
            .iter()
            .flat_map(|section| section.entries.iter().map(|entry| (section.of, &entry.fields)));
        create.into_iter().chain(entries).flat_map(|(of, fields)| {
            let specs = of.table().specs().iter();
            let names = specs.filter(|spec| spec.field.names == Some(Named::Project));
            let values = names.filter_map(|spec| fields.get(&spec.name));
            values.filter_map(|field| Some(field.value.text()?.to_lowercase()))
        })
    }

    /// Whether its contents come from elsewhere, in the background, when it is created.
    pub fn arrives(&self) -> bool {
        let create = match &self.create {
            Creation::Allowed(create) => create,
            Creation::Unselected { arrives } => return *arrives,
            Creation::Forbidden => return false,
        };
        let (_, itself) = kinds::container(self.scope);
        let along = self.sections.iter().filter(|section| section.of.comes_with_container());
        let mut names = create.keys().chain(along.flat_map(DeclaredSection::names));
        names.any(|name| {
            itself.arrives_with.iter().any(|with| {
                let rest = name.strip_prefix(with);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        })
    }

    /// What its own object says whatever is declared. That contents arrive says nothing of one that
    /// is not created with them: a mirror is brought up to date in the same way again and again.
    pub fn facts(&self, raw: &Object) -> Facts {
        let (_, itself) = kinds::container(self.scope);
        let facts = (itself.facts)(raw);
        let arrival = facts.arrival.clone().filter(|_| self.arrives());
        Facts { arrival, ..facts }
    }

    /// Whether it is declared to be brought back from the archive, given what its own object says.
    pub fn unarchives(&self, object: &BTreeMap<&'static str, LiveEntry>) -> bool {
        self.sections.iter().any(|section| {
            let effects = object.get(section.of.section).map(|live| section.effects_on(live));
            effects.unwrap_or_default().contains(&Effect::Provides(Capability::Writable))
        })
    }
}

/// A declared section.
#[derive(Clone, Debug)]
pub struct DeclaredSection {
    /// What its entries are.
    pub of: Section,
    /// Where the section starts.
    pub origin: Origin,
    /// What to do with live entries that are not listed, and where that is written: at the section
    /// itself, if nowhere.
    pub unlisted: Sourced<Unlisted>,
    /// The entries, ordered by their key. A section that is a mapping or a switch has exactly one.
    pub entries: Vec<Entry>,
    /// The names of live entries that are somebody else's, unless they are declared.
    pub unmanaged: Vec<Glob>,
    /// Fields that are read although no entry declares them: what a removal shows must not depend on
    /// what a run leaves alone of other entries.
    pub also_read: BTreeSet<String>,
}

impl DeclaredSection {
    /// A section with nothing but these entries, which passes over what is not listed.
    pub fn with(of: Section, origin: &Origin, entries: Vec<Entry>) -> Self {
        let unlisted = Sourced { value: Unlisted::Ignore, origin: origin.clone() };
        let (unmanaged, also_read) = (Vec::new(), BTreeSet::new());
        Self { of, origin: origin.clone(), unlisted, entries, unmanaged, also_read }
    }

    /// Whether `live`, which no entry declares, is somebody else's.
    pub fn leaves_alone(&self, live: &LiveEntry) -> bool {
        !self.unmanaged.is_empty() && {
            let name = self.of.name(&live.fields);
            self.unmanaged.iter().any(|glob| glob.matches(&name))
        }
    }

    /// The address of one of its entries in `container`.
    pub fn address_of(&self, entry: &Entry, container: &Address) -> Address {
        let section = container.section(self.of.section);
        if self.of.shape == Shape::List { section.entry(entry.key.as_str()) } else { section }
    }

    /// What becoming as declared does to a part of the container's own object beyond that part
    /// itself, whether it differs or not.
    pub fn effects_on(&self, live: &LiveEntry) -> Vec<Effect> {
        let Some(entry) =
            self.entries.first().filter(|_| matches!(self.of.home.place, Place::Object))
        else {
            return Vec::new();
        };
        let mut after = live.fields.clone();
        after.extend(forms::plain(&entry.values()));
        self.of.rules.effects(None, &live.fields, &after)
    }

    /// The fields that are read of its entries: those that any entry declares, and what is read
    /// besides.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let declared = self.entries.iter().flat_map(|entry| entry.fields.keys());
        declared.chain(self.also_read.iter().map(String::as_str))
    }
}

/// What `unlisted` of a group calls the projects in it and in its subgroups.
pub const PROJECTS: &str = "projects";

/// What to do with live entries that no manifest lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unlisted {
    /// A note in the plan.
    #[default]
    Report,
    /// A difference that apply leaves alone.
    Fail,
    /// Remove them.
    Delete,
    /// Nothing.
    Ignore,
}

impl Unlisted {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Report, Self::Fail, Self::Delete, Self::Ignore];

    /// The word for it in manifests.
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
pub struct Entry {
    /// What tells it from others of its section in addresses. Empty if a container has one of them.
    pub key: String,
    /// Where it is written.
    pub origin: Origin,
    /// Whether it is to be there.
    pub state: State,
    /// Its fields.
    pub fields: Declared,
}

impl Entry {
    /// The fields without their origins.
    pub fn values(&self) -> Fields {
        self.fields.values()
    }
}

/// Whether an entry is to be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It is to be there, as declared.
    #[default]
    Present,
    /// It is to be gone.
    Absent,
}
