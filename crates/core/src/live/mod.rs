//! The live state of one group or project, section by section, and how complete each section is.
//!
//! Only a section that was read to its end proves that something is absent. A key that a response
//! lacks is unknown, never false or null.

#[cfg(debug_assertions)]
pub mod testing;
mod token;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crate::{
    catalogue::copies::Copies,
    cause::Cause,
    desired::{Container, Renames},
    kind::{ContainerFacts, EntryIds, Id, LiveEntry, Names, Section, Target, forms},
    page::CompleteList,
    release::DetectedRelease,
    value::Object,
};

pub use token::{BotOwner, TokenProperties};

/// The user of the token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The user's id.
    pub id: u64,
    /// The username.
    pub username: String,
    /// True if the user is an administrator.
    pub is_administrator: bool,
}

/// The live state of a declared container.
#[derive(Clone)]
pub struct LiveContainer {
    /// The presence of the container.
    pub presence: Presence,
    /// The declared sections, by name. A missing section was not read.
    pub sections: BTreeMap<&'static str, LiveEntries>,
    /// The ids of objects that declared entries refer to.
    pub names: Names,
    /// The answer to [`ExtraFact::LevelsAbove`], once requested.
    pub levels_above: Option<InheritedLevels>,
    /// The answer to [`ExtraFact::UsersWithAccess`], once requested.
    pub users_with_access: Option<Result<BTreeSet<u64>, Cause>>,
    /// The answer to [`ExtraFact::SharingGroups`], once requested.
    pub sharing_groups: Option<Result<Arc<BTreeSet<String>>, Cause>>,
    /// The answer to [`ExtraFact::LevelsAboveFormerPath`], once requested.
    pub levels_above_former_path: Option<InheritedLevels>,
    /// The answer to [`ExtraFact::GroupAbove`], once requested.
    pub group_above: Option<Arc<Object>>,
    /// The answers to [`ExtraFact::EntriesAbove`].
    pub entries_above: EntriesAbove,
    /// The answer to [`ExtraFact::VisibilitiesBelow`], once requested: paths, each with its visibility.
    pub visibilities_below: Option<Vec<(Arc<str>, String)>>,
    /// The answer to [`ExtraFact::CallerAccess`], once requested.
    pub caller_access: Option<CallerAccess>,
    /// The projects below a group, if a policy for unlisted projects needs them.
    pub projects_below: Option<Result<Vec<ListedProject>, Cause>>,
    /// The answer to [`ExtraFact::Release`].
    pub release: DetectedRelease,
    /// The read times.
    pub read_times: ReadTimes,
}

/// The time of a read, on the client's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTime {
    /// The time just before the first request. Changes after it may be missing.
    pub start: Duration,
    /// The time of the last response.
    pub end: Duration,
}

/// The read times of a container's parts. Some lists take much longer than others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadTimes {
    /// The container's own object, with the sections that it contains.
    pub object: ReadTime,
    /// The other sections, by name.
    pub sections: BTreeMap<&'static str, ReadTime>,
}

impl ReadTimes {
    /// The same time for all parts.
    pub fn uniform(read_at: Duration) -> Self {
        Self { object: ReadTime { start: read_at, end: read_at }, sections: BTreeMap::new() }
    }

    /// The read time of `section`; if there is none, the read time of the container's object.
    pub fn read_time(&self, section: Option<&str>) -> ReadTime {
        section.and_then(|name| self.sections.get(name)).copied().unwrap_or(self.object)
    }
}

impl LiveContainer {
    /// The live state of a container of which only the presence is known.
    pub fn with_presence(presence: Presence, read_at: Duration) -> Self {
        Self {
            presence,
            sections: BTreeMap::new(),
            names: Names::default(),
            levels_above: None,
            users_with_access: None,
            sharing_groups: None,
            levels_above_former_path: None,
            group_above: None,
            entries_above: EntriesAbove::new(),
            visibilities_below: None,
            caller_access: None,
            projects_below: None,
            release: DetectedRelease::NotRequested,
            read_times: ReadTimes::uniform(read_at),
        }
    }

    /// The live entries of a section, if it was read.
    pub fn entries(&self, section: &str) -> Option<&[LiveEntry]> {
        self.sections.get(section)?.entries().ok()
    }
}

/// A project below a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedProject {
    /// Its full path.
    pub path: Arc<str>,
    /// Facts that its object shows.
    pub facts: ContainerFacts,
}

/// Facts that are read only if a difference needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraFact {
    /// The levels of access that users have from the group above, at the declared path.
    LevelsAbove,
    /// The users that rules may name: those with access to the project, or maintainers of the group,
    /// directly, by inheritance, or by its declared shares.
    UsersWithAccess,
    /// The declared paths, in lower case, of the groups that the container and the groups above are
    /// shared with, or will be.
    SharingGroups,
    /// The levels of access that users have from the group above, at the former path.
    LevelsAboveFormerPath,
    /// The object of the group above, at the declared path.
    GroupAbove,
    /// The names of the entries of this section in the groups above.
    EntriesAbove(&'static str),
    /// The groups and projects in the group.
    VisibilitiesBelow,
    /// The ways in which the token's user has access.
    CallerAccess,
    /// The groups that the container is shared with, if it declares no shares.
    Shares,
    /// The ids of the entries of this section. Entries of another section name them.
    Entries(&'static str),
    /// The release of the service.
    Release,
}

/// The levels of access that users have from the group above, by user id. Empty if they could not
/// be read, so a missing user may still have access.
pub type InheritedLevels = Arc<BTreeMap<u64, u8>>;

/// The entries of groups above, by section: the name of each entry with the declared path of its group.
pub type EntriesAbove = BTreeMap<&'static str, Vec<(String, Arc<str>)>>;

/// The ways in which the token's user has access to a container, as levels; 0 means none.
#[derive(Clone, Debug)]
pub struct CallerAccess {
    /// The level without the groups that the container is shared with.
    pub without_shares: Result<u8, Cause>,
    /// The level in each group that the container is shared with, by group id.
    pub groups: BTreeMap<u64, Result<u8, Cause>>,
}

/// The presence of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It exists.
    Existing(Target, ContainerFacts),
    /// It does not exist: the service answered so, and the caller can see its namespace.
    Missing(Target),
    /// Its namespace does not exist either.
    MissingNamespace(String),
    /// The path redirects to a container with another path.
    Redirected {
        /// The current path, if the service shows it.
        new_path: Option<String>,
    },
    /// It exists at its path or a former one, and something else exists at another former path.
    Ambiguous {
        /// Its current path.
        at: String,
        /// The other former path.
        other_path: String,
    },
    /// It exists neither at its path nor at a former one, but something exists at the intermediate path of
    /// its move.
    PartlyMoved {
        /// The former path.
        former_path: String,
        /// The intermediate path.
        at: String,
    },
    /// It could not be read, or not completely.
    Unreadable(Cause),
}

/// The live entries of a section.
#[derive(Clone)]
pub enum LiveEntries {
    /// A list that was read to its end.
    Complete(CompleteList<LiveEntry>),
    /// A list in the container's own object, or the lists of all parents that declared entries
    /// name, each read to its end. In the object, the service omits entries that the caller may not
    /// see, so a missing entry is only absent if looking it up by name finds nothing either.
    Nested(Vec<LiveEntry>),
    /// A list that was read to its end, updated with the responses to writes of this run.
    Updated(Vec<LiveEntry>),
    /// The object of a section that is not a list; `None` if it is certainly absent.
    Single(Option<Box<LiveEntry>>),
    /// Empty, because the container does not exist yet.
    NoContainer,
    /// Incomplete: a missing entry may exist.
    Partial(Cause),
    /// It could not be read.
    Unreadable(Cause),
}

impl LiveEntries {
    /// The live entries, if the section was read.
    ///
    /// # Errors
    /// The reason why the section was not read.
    pub fn entries(&self) -> Result<&[LiveEntry], &Cause> {
        match self {
            Self::Complete(entries) => Ok(entries),
            Self::Nested(entries) | Self::Updated(entries) => Ok(entries),
            Self::Single(entry) => Ok(entry.as_deref().map_or(&[], std::slice::from_ref)),
            Self::NoContainer => Ok(&[]),
            Self::Partial(reason) | Self::Unreadable(reason) => Err(reason),
        }
    }

    /// The entries as a list, to update it with the responses to writes; `None` if the section was not
    /// read.
    pub fn entries_mut(&mut self) -> Option<&mut Vec<LiveEntry>> {
        let entries = match std::mem::replace(self, Self::NoContainer) {
            Self::Complete(entries) => entries.into_vec(),
            Self::Nested(entries) | Self::Updated(entries) => entries,
            Self::Single(entry) => entry.into_iter().map(|entry| *entry).collect(),
            Self::NoContainer => Vec::new(),
            unreadable => {
                *self = unreadable;
                return None;
            }
        };
        *self = Self::Updated(entries);
        match self {
            Self::Updated(entries) => Some(entries),
            _ => None,
        }
    }
}

/// The live entries of a section, without copies of entries that `container` declares. A plan removes
/// the copies.
pub fn without_copies<'l>(
    section: Section,
    container: &Container,
    live: &'l [LiveEntry],
) -> Vec<&'l LiveEntry> {
    let declared = container.section(section.section).filter(|_| section.allows_duplicates());
    let Some(declared) = declared else { return live.iter().collect() };
    let keys: BTreeSet<&str> = declared.entries.iter().map(|entry| &*entry.key).collect();
    let mut by_name: BTreeMap<String, Vec<&LiveEntry>> = BTreeMap::new();
    for entry in live {
        by_name.entry(section.entry_name(entry.fields.raw())).or_default().push(entry);
    }
    let remaining =
        by_name.into_iter().flat_map(|(name, entries)| match Copies::find(section, &entries) {
            Ok(Copies { kept_entry: kept, .. }) if keys.contains(&*name) => vec![kept],
            _ => entries,
        });
    remaining.collect()
}

/// The ids of the entries of a section, by name. Declared entries that do not exist yet have the address
/// of the step that creates them; ambiguous names have no id.
///
/// # Errors
/// If the section could not be read.
pub fn entry_ids(
    section: Section,
    container: &Container,
    live_entries: &LiveEntries,
) -> Result<EntryIds, Cause> {
    let live = without_copies(section, container, live_entries.entries().map_err(Cause::clone)?)
        .into_iter();
    let live = live.filter_map(|live| Some((live.fields.raw(), Id::Known(section.live_id(live)?))));
    let renames =
        Renames::from_container(section, container, live_entries.entries().map_err(Cause::clone)?);
    let ids_by_name: BTreeMap<_, _> =
        live.clone().map(|(fields, id)| (renames.name_after_rename(section, fields), id)).collect();
    let declared_ids = container.present_entries(section.section).filter_map(|entry| {
        let id = ids_by_name.get(&entry.key).cloned().unwrap_or_else(|| {
            let section = container.address().section(section.section);
            Id::Pending(section.entry(entry.key.clone()).to_string().into())
        });
        let name = match section.called_by {
            Some(_) => section.reference_name(&forms::plain_fields(&entry.values()))?,
            None => entry.key.clone(),
        };
        Some((name, id))
    });
    let live_ids = live.filter_map(|(fields, id)| Some((section.reference_name(fields)?, id)));
    let mut ids = EntryIds::new();
    for (name, id) in declared_ids.chain(live_ids) {
        let is_ambiguous = section.called_by.is_some()
            && ids.get(&name).is_some_and(|other| other.as_ref() != Some(&id));
        ids.insert(name, (!is_ambiguous).then_some(id));
    }
    Ok(ids)
}
