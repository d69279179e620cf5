//! The live state of one group or project. Each section states whether it was read completely.
//!
//! Only a section that was read to its end proves that an entry is absent. If a response lacks a
//! key, the value is unknown: it is neither false nor null.

#[cfg(debug_assertions)]
pub mod testing;
mod token;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crate::{
    catalogue::copies::EntryWithCopies,
    cause::Cause,
    desired::{Container, Renames},
    kind::{ContainerFacts, EntryIds, Id, LiveEntry, NameIndex, Section, Target, forms},
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
    /// The path at which the container exists, or the reason why it was not found.
    pub presence: Presence,
    /// The live entries of the declared sections, by section name. A missing section was not read.
    pub sections: BTreeMap<&'static str, LiveEntries>,
    /// The ids of objects that declared entries refer to.
    pub names: NameIndex,
    /// The fact [`ExtraFact::LevelsAbove`]; `None` if it was not requested.
    pub levels_above: Option<InheritedLevels>,
    /// The fact [`ExtraFact::MembershipsAbove`]; `None` if it was not requested.
    pub memberships_above: Option<Vec<(Arc<str>, InheritedLevels)>>,
    /// The fact [`ExtraFact::UsersWithAccess`]; `None` if it was not requested.
    pub users_with_access: Option<Result<BTreeSet<u64>, Cause>>,
    /// The fact [`ExtraFact::SharingGroups`]; `None` if it was not requested.
    pub sharing_groups: Option<Result<Arc<BTreeSet<String>>, Cause>>,
    /// The fact [`ExtraFact::LevelsAboveFormerPath`]; `None` if it was not requested.
    pub levels_above_former_path: Option<InheritedLevels>,
    /// The fact [`ExtraFact::GroupAbove`]; `None` if it was not requested.
    pub group_above: Option<Arc<Object>>,
    /// The facts [`ExtraFact::EntriesAbove`] that were requested.
    pub entries_above: EntriesAbove,
    /// The facts [`ExtraFact::SettingsAbove`] that were requested, by section. The settings are empty
    /// if they could not be read.
    pub settings_above: BTreeMap<&'static str, Arc<Object>>,
    /// The fact [`ExtraFact::VisibilitiesBelow`]: paths, each with its visibility. `None` if it was
    /// not requested.
    pub visibilities_below: Option<Vec<(Arc<str>, String)>>,
    /// The fact [`ExtraFact::CallerAccess`]; `None` if it was not requested.
    pub caller_access: Option<CallerAccess>,
    /// The fact [`ExtraFact::CallerRole`]; `None` if it was not requested. The inner value is the
    /// level; it is `None` if the user has a custom role, or if the role could not be read.
    pub caller_role: Option<Option<u8>>,
    /// The projects below a group, if a policy for unlisted projects needs them.
    pub projects_below: Option<Result<Vec<ListedContainer>, Cause>>,
    /// The fact [`ExtraFact::Release`].
    pub read_release: DetectedRelease,
    /// The times at which the parts of the container were read.
    pub read_times: ReadTimes,
}

/// The start and the end of a read. Both are times since a fixed instant of the client's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTime {
    /// The time just before the first request. The result may lack changes after this time.
    pub start: Duration,
    /// The time of the last response.
    pub end: Duration,
}

/// The read times of the parts of a container. Reading some lists takes much longer than reading
/// others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadTimes {
    /// The read time of the container's own object, and of the sections in that object.
    pub object: ReadTime,
    /// The read times of the other sections, by name.
    pub sections: BTreeMap<&'static str, ReadTime>,
}

impl ReadTimes {
    /// Read times with the same time for all parts.
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
            names: NameIndex::default(),
            levels_above: None,
            memberships_above: None,
            users_with_access: None,
            sharing_groups: None,
            levels_above_former_path: None,
            group_above: None,
            entries_above: EntriesAbove::new(),
            settings_above: BTreeMap::new(),
            visibilities_below: None,
            caller_access: None,
            caller_role: None,
            projects_below: None,
            read_release: DetectedRelease::NotRequested,
            read_times: ReadTimes::uniform(read_at),
        }
    }

    /// The live entries of a section, if it was read.
    pub fn entries(&self, section: &str) -> Option<&[LiveEntry]> {
        self.sections.get(section)?.entries().ok()
    }
}

/// A group or project below a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedContainer {
    /// The full path.
    pub path: Arc<str>,
    /// The facts from its object.
    pub facts: ContainerFacts,
}

/// Facts that are read only if a difference needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraFact {
    /// The levels of access that users have from the group above, at the declared path.
    LevelsAbove,
    /// The levels of the direct members of each group above that could be read, by its declared path in
    /// lower case.
    MembershipsAbove,
    /// The users that rules may name. For a project, these are the users with access. For a group,
    /// these are its maintainers. Access may be direct, inherited, or from a declared share.
    UsersWithAccess,
    /// The declared paths, in lower case, of the groups with which the container or a group above
    /// is shared. Includes shares that this run adds.
    SharingGroups,
    /// The levels of access that users have from the group above, at the former path.
    LevelsAboveFormerPath,
    /// The object of the group above, at the declared path.
    GroupAbove,
    /// The names of the entries of this section in the groups above.
    EntriesAbove(&'static str),
    /// The settings in this section of the top-level group.
    SettingsAbove(&'static str),
    /// The visibilities of the groups and projects in the group.
    VisibilitiesBelow,
    /// The levels of access of the token's user: without shares, and in each group of a share.
    CallerAccess,
    /// The groups that the container is shared with, if it declares no shares.
    Shares,
    /// The ids of the entries of this section, which entries of another section name.
    Entries(&'static str),
    /// The role of the token's user, also from shares.
    CallerRole,
    /// Whether the token's user is in the group with this id.
    CallerGroup(u64),
    /// The release of the service.
    Release,
}

/// The levels of access that users have from the group above, by user id. The map is empty if the
/// levels could not be read. A user that an empty map lacks may still have access.
pub type InheritedLevels = Arc<BTreeMap<u64, u8>>;

/// The entries of groups above, by section: the name of each entry with the declared path of its group.
pub type EntriesAbove = BTreeMap<&'static str, Vec<(String, Arc<str>)>>;

/// The levels of access that the token's user has to a container. 0 means no access.
#[derive(Clone, Debug)]
pub struct CallerAccess {
    /// The level without the groups that the container is shared with.
    pub level_without_shares: Result<u8, Cause>,
    /// The level in each group that the container is shared with, by group id.
    pub group_levels: BTreeMap<u64, Result<u8, Cause>>,
}

/// The result of the search for a container at its declared and former paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The container exists.
    Existing(Target, ContainerFacts),
    /// The container does not exist: a response shows that, and the caller can see the namespace.
    Missing(Target),
    /// Neither the container nor its namespace exists. Contains the path of the namespace.
    MissingNamespace(String),
    /// The path redirects to a container with another path.
    Redirected {
        /// The current path, if the service shows it.
        new_path: Option<String>,
    },
    /// The container exists at its declared path or a former path, and another container exists at
    /// another former path.
    Ambiguous {
        /// The path at which the container exists.
        current_path: String,
        /// The former path at which another container exists.
        other_path: String,
    },
    /// No container exists at the declared path or a former path, but one exists at the
    /// intermediate path of the move.
    PartlyMoved {
        /// The former path.
        former_path: String,
        /// The intermediate path.
        intermediate_path: String,
    },
    /// The container could not be read completely.
    Unreadable(Cause),
}

/// The live entries of a section.
#[derive(Clone)]
pub enum LiveEntries {
    /// A list that was read to its end.
    Complete(CompleteList<LiveEntry>),
    /// A list in the container's own object, or the lists of all parents that declared entries
    /// name, each read to its end. From the container's own object, the service omits entries that
    /// the caller may not see. An entry that the object lacks is absent only if a search by its
    /// name finds nothing either.
    Nested(Vec<LiveEntry>),
    /// A list that was read to its end, updated with the responses to writes of this run.
    Updated(Vec<LiveEntry>),
    /// The object of a section that is not a list; `None` if it is certainly absent.
    Single(Option<Box<LiveEntry>>),
    /// No entries, because the container does not exist yet.
    NoContainer,
    /// A list that was not read to its end. An entry that the list lacks may exist.
    Partial(Cause),
    /// The section could not be read.
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
pub fn drop_copies<'l>(
    section: Section,
    container: &Container,
    live: &'l [LiveEntry],
) -> Vec<&'l LiveEntry> {
    let declared = container.section(section.section).filter(|_| section.allows_duplicates());
    let Some(declared) = declared else { return live.iter().collect() };
    let keys: BTreeSet<&str> = declared.entries.iter().map(|entry| &*entry.key).collect();
    let mut entries_by_name: BTreeMap<String, Vec<&LiveEntry>> = BTreeMap::new();
    for entry in live {
        entries_by_name.entry(section.entry_name(entry.fields.raw())).or_default().push(entry);
    }
    let remaining =
        entries_by_name.into_iter().flat_map(
            |(name, entries)| match EntryWithCopies::from_entries(section, &entries) {
                Ok(EntryWithCopies { kept_entry, .. }) if keys.contains(&*name) => vec![kept_entry],
                _ => entries,
            },
        );
    remaining.collect()
}

/// The ids of the entries of a section, by name. A declared entry that does not exist yet has the
/// address of the step that creates it instead of an id. An ambiguous name has no id.
///
/// # Errors
/// If the section could not be read.
pub fn entry_ids(
    section: Section,
    container: &Container,
    live_entries: &LiveEntries,
) -> Result<EntryIds, Cause> {
    let unique_entries =
        drop_copies(section, container, live_entries.entries().map_err(Cause::clone)?).into_iter();
    let fields_and_ids = unique_entries
        .filter_map(|live| Some((live.fields.raw(), Id::Known(section.referenced_id(live)?))));
    let renames =
        Renames::from_container(section, container, live_entries.entries().map_err(Cause::clone)?);
    let ids_by_name: BTreeMap<_, _> = fields_and_ids
        .clone()
        .map(|(fields, id)| (renames.name_after_rename(section, fields), id))
        .collect();
    let declared_ids = container.present_entries(section.section).filter_map(|entry| {
        let id = ids_by_name.get(&entry.key).cloned().unwrap_or_else(|| {
            let section = container.address().with_section(section.section);
            Id::Pending(section.with_entry(entry.key.clone()).to_string().into())
        });
        let name = match section.called_by {
            Some(_) => section.reference_name(&forms::plain_fields(&entry.values()))?,
            None => entry.key.clone(),
        };
        Some((name, id))
    });
    let live_ids =
        fields_and_ids.filter_map(|(fields, id)| Some((section.reference_name(fields)?, id)));
    let mut ids = EntryIds::new();
    for (name, id) in declared_ids.chain(live_ids) {
        let is_ambiguous = section.called_by.is_some()
            && ids.get(&name).is_some_and(|other| other.as_ref() != Some(&id));
        ids.insert(name, (!is_ambiguous).then_some(id));
    }
    Ok(ids)
}
