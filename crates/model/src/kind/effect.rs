//! The effects of a change beyond the object itself. The order of steps and the guards follow from
//! these effects, independent of the kind.

use std::{collections::BTreeSet, sync::Arc};

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
    NamedAccess,
    /// It has an owner.
    Owner,
    /// The caller has the access that the run needs.
    CallerAccess,
    /// It is at its declared path.
    AtDeclaredPath,
    /// It can have only one object of a type, and has none.
    FreeSlot,
}

impl Capability {
    /// The reason for an order of steps. Steps that need a capability come after the steps that
    /// provide it and before the steps that revoke it.
    pub fn order_reason(self, scope: Scope) -> &'static str {
        match self {
            Self::Exists => scope.choose("the group must exist", "the project must exist"),
            Self::Writable => "an archived project cannot be changed",
            Self::Feature("builds_access_level") => "CI/CD must be on",
            Self::Feature(_) => "the feature must be on",
            Self::Branch => "the repository must have a branch",
            Self::NamedAccess => "users need access before a rule can name them",
            Self::Owner => "the new owner must be added before the old one is removed",
            Self::CallerAccess => "the token's owner needs this access until then",
            Self::AtDeclaredPath => {
                scope.choose("the group must be at its path", "the project must be at its path")
            }
            Self::FreeSlot => "the service allows only one at a time",
        }
    }
}

/// The visibilities, narrowest first.
pub const VISIBILITIES: [&str; 3] = ["private", "internal", "public"];

/// The rank of a visibility.
pub fn visibility_rank(word: &str) -> Option<usize> {
    VISIBILITIES.iter().position(|visibility| *visibility == word)
}

/// The effect of a change beyond the object itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A user's access changes. Levels are the numbers of the service; 0 is no access.
    Access {
        /// The user; `None` if no id is known.
        user_id: Option<u64>,
        /// The level before.
        before: u8,
        /// The level after.
        after: u8,
        /// True if the access gets an end date that it did not have. Such an access ends later
        /// without a plan.
        gets_end_date: bool,
        /// The custom role that the user loses; another role may replace it.
        lost_role: Option<String>,
    },
    /// The level of access that a share gives to the members of a group changes.
    Share {
        /// The group; `None` if it is not known by id.
        group_id: Option<u64>,
        /// The level before.
        before: u8,
        /// The level after.
        after: u8,
        /// True if the share gets an end date that it did not have.
        gets_end_date: bool,
    },
    /// The visibility changes.
    Visibility {
        /// Before, if known.
        before: Option<String>,
        /// After.
        after: String,
        /// The declared paths of groups and projects in the container that are more visible than
        /// `after`, with their ranks.
        more_visible: Vec<(Arc<str>, usize)>,
    },
    /// The changed object refers to a user or a group, which must have access to the container. For a
    /// group, the project must be shared with it at the level developer or higher.
    NeedsAccess {
        /// User or group.
        object_type: NamedObject,
        /// The id.
        id: Id,
        /// The named user, if the user has no access in the live state and the declaration of this container gives
        /// none.
        outsider: Option<Outsider>,
    },
    /// A risk that guards check. The text completes a sentence that starts with "would".
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
    AddsContents,
    /// Groups and projects that are created below the container inherit what the change sets.
    AffectsNewContainers,
    /// A capability of the container.
    Capability {
        /// The capability.
        capability: Capability,
        /// True if the container had the capability before.
        before: bool,
        /// True if the container has the capability after.
        after: bool,
    },
    /// The service accepts the change only after the step of another object.
    Follows {
        /// The object whose step comes first: the container that leaves the path, the entry that is
        /// removed or renamed, or, if `is_created` is true, the entry that the changed object names.
        object: Address,
        /// True if the run creates the object.
        is_created: bool,
    },
    /// The container moves to another namespace.
    Transfers {
        /// The full path before.
        former_path: Arc<str>,
    },
}

/// A user without access to a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outsider {
    /// The username.
    pub name: String,
    /// The declared paths, in lower case, of the groups whose members have access by shares.
    pub sharing_groups: Arc<BTreeSet<String>>,
}

impl Effect {
    /// The visibility changes.
    pub fn visibility(before: Option<String>, after: impl Into<String>) -> Self {
        Self::Visibility { before, after: after.into(), more_visible: Vec::new() }
    }

    /// The service accepts it only after this object moved, or was removed or renamed.
    pub const fn follows(object: Address) -> Self {
        Self::Follows { object, is_created: false }
    }

    /// The changed object names the entry `object`, which the run creates.
    pub const fn follows_creation(object: Address) -> Self {
        Self::Follows { object, is_created: true }
    }

    /// The changed object refers to this user or group.
    pub const fn needs_access(object_type: NamedObject, id: Id) -> Self {
        Self::NeedsAccess { object_type, id, outsider: None }
    }

    /// The container gets the capability.
    pub const fn provides(capability: Capability) -> Self {
        Self::Capability { capability, before: false, after: true }
    }

    /// The container loses the capability.
    pub const fn revokes(capability: Capability) -> Self {
        Self::Capability { capability, before: true, after: false }
    }

    /// The container lacks the capability before and after.
    pub const fn lacks(capability: Capability) -> Self {
        Self::Capability { capability, before: false, after: false }
    }

    /// The effect of a capability that the container lacks before or after; `None` if it keeps the
    /// capability or if `after` is unknown.
    pub fn capability_change(
        capability: Capability,
        before: Option<bool>,
        after: Option<bool>,
    ) -> Option<Self> {
        let (before, after) = (before.unwrap_or(true), after?);
        (!before || !after).then_some(Self::Capability { capability, before, after })
    }
}
