//! What is on the service: one group or project, section by section, and how far each can be
//! trusted.
//!
//! Only a section that was read to its end says that something is absent. A key that is missing
//! from an answer is unknown, never false or null.

#[cfg(test)]
pub(crate) mod testing;
mod token;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::{
    cause::Cause,
    kind::{Facts, LiveEntry, Names, Target},
    page::Complete,
    release::Known,
    value::Object,
};

pub use token::{Home, Token};

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user's id.
    pub id: u64,
    /// The username.
    pub username: String,
    /// Whether it is an administrator.
    pub administrator: bool,
}

/// One declared container as it was found.
#[derive(Clone)]
pub struct Live {
    /// Whether it is there.
    pub presence: Presence,
    /// The declared sections, by name. A section that is not there was not read.
    pub sections: BTreeMap<&'static str, Collection>,
    /// The ids of what declared entries name.
    pub names: Names,
    /// The answer to [`Question::Inherited`], once it was asked.
    pub inherited: Option<Inherited>,
    /// The answer to [`Question::InheritedBefore`], once it was asked.
    pub inherited_before: Option<Inherited>,
    /// The answer to [`Question::GroupAbove`], once it was asked.
    pub group_above: Option<Arc<Object>>,
    /// The answer to [`Question::Own`], once it was asked.
    pub own: Option<OwnAccess>,
    /// The projects below a group, if what nobody declares of them matters.
    pub projects: Option<Result<Vec<Project>, Cause>>,
    /// The answer to [`Question::Release`].
    pub release: Known,
    /// When it was read.
    pub times: Times,
}

/// When something was read, on the client's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTime {
    /// When its first request was about to be sent. What changed since then may not have been seen.
    pub began: Duration,
    /// When its last answer was there.
    pub ended: Duration,
}

/// When the parts of a container were read: a list may take much longer than others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The container's own object, with all sections that come in it.
    pub object: ReadTime,
    /// The other sections, by name.
    pub sections: BTreeMap<&'static str, ReadTime>,
}

impl Times {
    /// Of everything at once.
    pub fn at(now: Duration) -> Self {
        Self { object: ReadTime { began: now, ended: now }, sections: BTreeMap::new() }
    }

    /// When what a step of `section`, or of the container itself, starts from was read.
    pub fn of(&self, section: Option<&str>) -> ReadTime {
        section.and_then(|name| self.sections.get(name)).copied().unwrap_or(self.object)
    }
}

impl Live {
    /// A container of which nothing but this is known.
    pub fn of(presence: Presence, now: Duration) -> Self {
        Self {
            presence,
            sections: BTreeMap::new(),
            names: Names::default(),
            inherited: None,
            inherited_before: None,
            group_above: None,
            own: None,
            projects: None,
            release: Known::NotAsked,
            times: Times::at(now),
        }
    }
}

/// A project below a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its full path.
    pub path: Arc<str>,
    /// What it says of itself.
    pub facts: Facts,
}

/// What only some differences need to know, and what is therefore read only then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Who has which level of access from the group above, where the container is to be.
    Inherited,
    /// Who has which level of access from the group above that the container leaves.
    InheritedBefore,
    /// What the group above says of itself, where the container is to be.
    GroupAbove,
    /// By which ways the token's user has access.
    Own,
    /// The ids of the entries of this section, which entries of another one name.
    Entries(&'static str),
    /// Of which release the service is.
    Release,
}

/// The levels of access that users have from the group above, by user id. What could not be read is
/// empty: nothing follows from who is not in it.
pub type Inherited = Arc<BTreeMap<u64, u8>>;

/// By which ways the token's user has access to a container, as levels; 0 is none.
#[derive(Clone, Debug)]
pub struct OwnAccess {
    /// By other ways than what the container itself is shared with.
    pub otherwise: Result<u8, Cause>,
    /// In each group, by its id, with which it is shared.
    pub groups: BTreeMap<u64, Result<u8, Cause>>,
}

/// Whether a container is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is there.
    Here(Target, Facts),
    /// It is not there: the service said so to a caller who sees the namespace that it would be in.
    Missing(Target),
    /// Neither is the namespace that it would be in.
    NoNamespace(String),
    /// The path leads to one with another path.
    Moved {
        /// The path that it has now, if the service told.
        to: Option<String>,
    },
    /// It is there, or at a path that it had before, and so is something at another path that it had
    /// before.
    Twice {
        /// Where it is.
        at: String,
        /// That other path.
        other: String,
    },
    /// Neither is it there nor at a path that it had before, but something is at a path through which
    /// it gets from there to where it is to be.
    Halfway {
        /// The path that it had before.
        from: String,
        /// The path through which it gets.
        at: String,
    },
    /// It could not be read, or only in part.
    Unreadable(Cause),
}

/// The live entries of a section.
#[derive(Clone)]
pub enum Collection {
    /// A list that was read to its end.
    Complete(Complete<LiveEntry>),
    /// A list within the container's own object. The service leaves out what the caller may not
    /// see: an entry whose own name was looked up is absent if it is not in it, and nothing else.
    Within(Vec<LiveEntry>),
    /// A list that was read to its end, with what writes of this run answered since.
    Written(Vec<LiveEntry>),
    /// The one thing of a section that is not a list, or the proof that there is none.
    One(Option<LiveEntry>),
    /// The container does not exist yet, so neither does anything in it.
    Fresh,
    /// Something was read, but not all: nothing is concluded from it.
    Partial(Cause),
    /// It could not be read.
    Unreadable(Cause),
}

impl Collection {
    /// The live entries, if the section was read.
    ///
    /// # Errors
    /// Why it was not.
    pub fn entries(&self) -> Result<&[LiveEntry], &Cause> {
        match self {
            Self::Complete(entries) => Ok(entries),
            Self::Within(entries) | Self::Written(entries) => Ok(entries),
            Self::One(entry) => Ok(entry.as_slice()),
            Self::Fresh => Ok(&[]),
            Self::Partial(reason) | Self::Unreadable(reason) => Err(reason),
        }
    }
}
