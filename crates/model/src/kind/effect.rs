//! What a change does in addition to the object itself. Order and guards are computed from these
//! effects, without knowing any kind.

use std::sync::Arc;

use super::{Id, RefRule};
use crate::{
    address::Address,
    field::{NamedObject, Risk, Scope},
};

/// A capability that a container must have before other changes of it are accepted.
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
    /// It has room for an object of which it can have only one.
    Room,
}

impl Capability {
    /// The reason for the order: steps that need a capability come after the steps that provide it
    /// and before the steps that take it away.
    pub fn order_reason(self, scope: Scope) -> &'static str {
        match self {
            Self::Exists => scope.choose("the group must exist", "the project must exist"),
            Self::Writable => "an archived project cannot be changed",
            Self::Feature("builds_access_level") => "CI/CD must be on",
            Self::Feature(_) => "the feature must be on",
            Self::Branch => "the repository must have a branch",
            Self::People => "access comes before rules that may name it",
            Self::Owner => "the new owner comes before the old one goes",
            Self::OwnAccess => "the token's owner needs this access until then",
            Self::InPlace => {
                scope.choose("the group must be at its path", "the project must be at its path")
            }
            Self::Room => "the service allows only one at a time",
        }
    }
}

/// The visibilities, from the narrowest.
pub const VISIBILITIES: [&str; 3] = ["private", "internal", "public"];

/// The rank of a visibility.
pub fn visibility_rank(word: &str) -> Option<usize> {
    VISIBILITIES.iter().position(|visibility| *visibility == word)
}

/// The effect of a change beyond the object itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A user's access changes. Levels are the numbers of the service (reference 1, 2.1); 0 is no
    /// access.
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
        /// The custom role that the user loses, which may be for another one.
        lost_role: Option<String>,
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
        /// The declared paths of groups and projects in it that are more visible than it becomes, with
        /// their ranks.
        more_visible: Vec<(Arc<str>, usize)>,
    },
    /// It refers to a user or a group, who must have access to the container: a project must be
    /// shared with a group as developer or higher.
    NeedsAccess {
        /// Whether it is a user or a group.
        of: NamedObject,
        /// The id.
        id: Id,
        /// The username, if neither the live state nor this container gives the user access.
        outsider: Option<String>,
    },
    /// Guards check it. The text ends a sentence that starts with "would".
    Risk(Risk, String),
    /// A rule for branches or tags changes. Whether protection becomes weaker is decided from all
    /// rules together.
    Rule {
        /// The rule before, if there was one.
        before: Option<Box<RefRule>>,
        /// The rule after, if there is one.
        after: Option<Box<RefRule>>,
    },
    /// An effect that the fields do not show. The text is a sentence that starts with "it".
    SideEffect(String),
    /// The new container contains objects that no field declares.
    Fills,
    /// The settings of new groups and projects below depend on it.
    HandsDown,
    /// Whether the container has a capability.
    Capability {
        /// The capability.
        what: Capability,
        /// Whether it had it before.
        before: bool,
        /// Whether it has it after.
        after: bool,
    },
    /// The service accepts it only after the step of this object.
    Follows {
        /// What makes room: the container that is declared at this path moves, or this entry is removed or
        /// renamed. Or, with `is_created`, the entry that it names.
        object: Address,
        /// Whether the run creates the object.
        is_created: bool,
    },
    /// It moves to another namespace.
    Transfers {
        /// The full path before.
        from: Arc<str>,
    },
}

impl Effect {
    /// The visibility changes.
    pub fn visibility(before: Option<String>, after: impl Into<String>) -> Self {
        Self::Visibility { before, after: after.into(), more_visible: Vec::new() }
    }

    /// This object makes room first.
    pub const fn follows(object: Address) -> Self {
        Self::Follows { object, is_created: false }
    }

    /// It names this entry, which the run creates.
    pub const fn follows_creation(object: Address) -> Self {
        Self::Follows { object, is_created: true }
    }

    /// It refers to this user or group.
    pub const fn needs_access(of: NamedObject, id: Id) -> Self {
        Self::NeedsAccess { of, id, outsider: None }
    }

    /// The container gets the capability.
    pub const fn provides(what: Capability) -> Self {
        Self::Capability { what, before: false, after: true }
    }

    /// The container loses the capability.
    pub const fn takes(what: Capability) -> Self {
        Self::Capability { what, before: true, after: false }
    }

    /// The container lacks the capability before and after.
    pub const fn lacks(what: Capability) -> Self {
        Self::Capability { what, before: false, after: false }
    }

    /// True if the container has the capability before and after, as far as that is known; `None` if it
    /// keeps it.
    pub fn capability(what: Capability, before: Option<bool>, after: Option<bool>) -> Option<Self> {
        let (before, after) = (before.unwrap_or(true), after?);
        (!before || !after).then_some(Self::Capability { what, before, after })
    }
}
