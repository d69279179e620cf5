//! What a change does in addition to the object itself. Order and guards are computed from these
//! effects, without knowing any kind.

use std::sync::Arc;

use super::RefRule;
use crate::field::Scope;

/// Something that a container must have before other changes of it are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// It exists.
    Exists,
    /// It can be changed: it is not archived.
    Writable,
    /// The feature of this setting is on.
    Feature(&'static str),
    /// Its repository has a branch.
    Branch,
    /// The users and groups that rules name have access.
    People,
    /// It has an owner.
    Owner,
    /// The caller has the access that the run needs.
    OwnAccess,
    /// It is at its declared path.
    InPlace,
    /// It has room for something of which it can have only one.
    Room,
}

impl Capability {
    /// The reason for the order: steps that need a capability come after the steps that provide it
    /// and before the steps that take it away.
    pub fn reason(self, scope: Scope) -> &'static str {
        match self {
            Self::Exists => scope.of("the group must exist", "the project must exist"),
            Self::Writable => "an archived project cannot be changed",
            Self::Feature("builds_access_level") => "CI/CD must be on",
            Self::Feature(_) => "the feature must be on",
            Self::Branch => "the repository must have a branch",
            Self::People => "access comes before rules that may name it",
            Self::Owner => "the new owner comes before the old one goes",
            Self::OwnAccess => "the token's owner needs this access until then",
            Self::InPlace => {
                scope.of("the group must be in its place", "the project must be in its place")
            }
            Self::Room => "the service allows only one at a time",
        }
    }
}

/// The visibilities, from the narrowest.
pub const VISIBILITIES: [&str; 3] = ["private", "internal", "public"];

/// The rank of a visibility.
pub fn visibility_rank(word: &str) -> Option<usize> {
    VISIBILITIES.iter().position(|known| *known == word)
}

/// What a change does in addition to the object itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A user's level of access changes. Levels are the numbers of the service (reference 1, 2.1);
    /// 0 is no access.
    Access {
        /// The user; `None` if no id is known.
        user: Option<u64>,
        /// The level before.
        before: u8,
        /// The level after.
        after: u8,
        /// Whether the access gets an end date that it did not have. It then ends without another
        /// plan.
        ends: bool,
    },
    /// A user loses a custom role, which may be for another one.
    TakesRole {
        /// The user; `None` if no id is known.
        user: Option<u64>,
        /// The name of the role.
        role: String,
    },
    /// The level of access that a share gives to the members of a group changes.
    Share {
        /// The group; `None` if it is not known by id.
        group: Option<u64>,
        /// The level before.
        before: u8,
        /// The level after.
        after: u8,
        /// Whether the share gets an end date that it did not have.
        ends: bool,
    },
    /// The visibility changes.
    Visibility {
        /// Before, if known.
        before: Option<String>,
        /// After.
        after: String,
    },
    /// It refers to the user with this id, who must have access to the container.
    NeedsAccess {
        /// The user.
        user: u64,
        /// The username, if neither the live state nor this container gives the user access.
        outsider: Option<String>,
    },
    /// It refers to the group with this id. The container must be shared with it as developer or
    /// higher.
    NeedsShare(u64),
    /// A protection becomes weaker. The text ends a sentence that starts with "would".
    Weakens(String),
    /// Something outside gets a way in. The text ends a sentence that starts with "would".
    Opens(String),
    /// A rule for branches or tags changes. Whether protection becomes weaker is decided from all
    /// rules together.
    Rule {
        /// The rule before, if there was one.
        before: Option<Box<RefRule>>,
        /// The rule after, if there is one.
        after: Option<Box<RefRule>>,
    },
    /// A part becomes visible to more people. The text ends a sentence that starts with "would".
    Shows(String),
    /// An effect that the fields do not show. The text is a sentence that starts with "it".
    SideEffect(String),
    /// The new container contains things that no field declares.
    Fills,
    /// The settings of new groups and projects below depend on it.
    HandsDown,
    /// It provides a capability of the container.
    Provides(Capability),
    /// It takes a capability of the container away.
    Takes(Capability),
    /// The container lacks a capability before and after.
    Lacks(Capability),
    /// It gets its path only after the container that is declared at this path has moved.
    Follows(Arc<str>),
    /// It moves to another namespace.
    Transfers {
        /// The full path before.
        from: Arc<str>,
    },
}

impl Effect {
    /// It refers to this user.
    pub const fn needs_access(user: u64) -> Self {
        Self::NeedsAccess { user, outsider: None }
    }
}
