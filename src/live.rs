//! What is on the service: one project, section by section, and how far each can be trusted.
//!
//! Only a section that was read to its end says that something is absent. A key that is missing
//! from an answer is unknown, never false or null.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    cause::Cause,
    kind::{LiveEntry, Target, Users},
    page::Complete,
};

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

/// One declared project as it was found.
pub struct Live {
    /// Whether it is there.
    pub presence: Presence,
    /// The declared sections, by name. A section that is not there was not read.
    pub sections: BTreeMap<&'static str, Collection>,
    /// The users that declared entries name.
    pub users: Users,
    /// The user ids of all owners, inherited ones too; read only where the direct owners become
    /// fewer.
    pub owners: Option<Vec<u64>>,
    /// When it was read, on the client's clock.
    pub read_at: Duration,
}

impl Live {
    /// A project of which nothing but this is known.
    pub const fn of(presence: Presence, read_at: Duration) -> Self {
        Self { presence, sections: BTreeMap::new(), users: Users::new(), owners: None, read_at }
    }
}

/// Whether a project is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is there.
    Here(Facts),
    /// It is not there: the service said so to a caller who sees the namespace that it would be in.
    Missing(Target),
    /// Neither is the namespace that it would be in.
    NoNamespace(String),
    /// The path leads to a project with another one.
    Moved {
        /// The path that the project has now, if the service told.
        to: Option<String>,
    },
    /// It is marked for deletion, and goes away by itself.
    Deleting {
        /// The day on which it was marked, if the service told.
        since: Option<String>,
    },
    /// It could not be read, or only in part.
    Unreadable(Cause),
}

/// What is known of a project that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The project.
    pub target: Target,
    /// Whether it is archived.
    pub archived: bool,
    /// The user in whose personal namespace it is.
    pub personal_owner: Option<u64>,
}

/// The live entries of a section.
pub enum Collection {
    /// A list that was read to its end.
    Complete(Complete<LiveEntry>),
    /// The one thing of a section that is not a list, or the proof that there is none.
    One(Option<LiveEntry>),
    /// The project does not exist yet, so neither does anything in it.
    Fresh,
    /// Something was read, but not all: nothing is concluded from it.
    Partial(Cause),
    /// It could not be read.
    Unreadable(Cause),
}

impl Collection {
    /// Every live entry, if the section was read to its end.
    ///
    /// # Errors
    /// Why it was not.
    pub fn entries(&self) -> Result<&[LiveEntry], &Cause> {
        match self {
            Self::Complete(entries) => Ok(entries),
            Self::One(entry) => Ok(entry.as_slice()),
            Self::Fresh => Ok(&[]),
            Self::Partial(reason) | Self::Unreadable(reason) => Err(reason),
        }
    }
}
