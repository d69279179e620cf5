//! The effects of a change beyond the object itself. The order of steps and the guards follow from
//! these effects, independent of the kind.

use std::{collections::BTreeSet, sync::Arc};

use super::{Id, RefRule};
use crate::{
    address::Address,
    field::{NamedObject, Risk, Scope},
};

/// A capability that a container must have before the service accepts other changes of the
/// container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// The container exists.
    Exists,
    /// The container can be changed, because it is not archived.
    Writable,
    /// The feature of this setting is on.
    Feature(&'static str),
    /// The repository of the container has a branch.
    Branch,
    /// The users and groups that rules name have access.
    NamedAccess,
    /// The container has an owner.
    Owner,
    /// The caller has the access that the run needs.
    CallerAccess,
    /// The container is at its declared path.
    AtDeclaredPath,
    /// The service limits the number of objects of a type, and the container has room for one.
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
        /// The id of the user; `None` if unknown.
        user_id: Option<u64>,
        /// The level before.
        before: u8,
        /// The level after.
        after: u8,
        /// The level that the user has from the group above before the run; 0 if unknown.
        inherited_level: u8,
        /// The user's memberships of groups above, if they were read: the path of each group in lower
        /// case, and the level.
        memberships_above: Vec<(Arc<str>, u8)>,
        /// True if the access gets an end date that differs from the end date before. The access
        /// then ends without a plan.
        gets_end_date: bool,
        /// The custom role that the user loses; another role may replace it.
        lost_role: Option<String>,
    },
    /// The level of access that a share gives to the members of a group changes.
    Share {
        /// The id of the group; `None` if unknown.
        group_id: Option<u64>,
        /// The level before.
        before: u8,
        /// The level after.
        after: u8,
        /// True if the share gets an end date that differs from the end date before.
        gets_end_date: bool,
    },
    /// The visibility changes.
    Visibility {
        /// The visibility before; `None` if unknown.
        before: Option<String>,
        /// The visibility after.
        after: String,
        /// The declared paths of groups and projects in the container that are more visible than
        /// `after`, with the ranks of their visibilities.
        more_visible: Vec<(Arc<str>, usize)>,
    },
    /// The changed object refers to a user or a group, which must have access to the container. For a
    /// group, the project must be shared with it at the level developer or higher.
    NeedsAccess {
        /// The type of the object: user or group.
        object_type: NamedObject,
        /// The id of the user or group.
        id: Id,
        /// The named user, if the user has no access in the live state and the declaration of this
        /// container gives no access to the user.
        outsider: Option<Outsider>,
    },
    /// A risk that guards check. The text completes a sentence that starts with "would".
    Risk(Risk, String),
    /// A rule for branches or tags changes. All rules together decide if the protection becomes
    /// weaker.
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
    /// Groups and projects that are created below the container inherit the settings that change.
    AffectsNewContainers,
    /// The container gets, loses or lacks a capability.
    Capability {
        /// The capability.
        capability: Capability,
        /// True if the container had the capability before.
        had_capability: bool,
        /// True if the container has the capability after.
        has_capability: bool,
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
        /// The declared path of the container that has the same name there.
        namesake: Option<Arc<str>>,
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

    /// The service accepts the change only after `object` moved, or was removed or renamed.
    pub const fn follows(object: Address) -> Self {
        Self::Follows { object, is_created: false }
    }

    /// The changed object names the entry `object`, which the run creates.
    pub const fn follows_creation(object: Address) -> Self {
        Self::Follows { object, is_created: true }
    }

    /// The changed object refers to the user or group with this `id`.
    pub const fn needs_access(object_type: NamedObject, id: Id) -> Self {
        Self::NeedsAccess { object_type, id, outsider: None }
    }

    /// The container gets the capability.
    pub const fn provides(capability: Capability) -> Self {
        Self::Capability { capability, had_capability: false, has_capability: true }
    }

    /// The container loses the capability.
    pub const fn revokes(capability: Capability) -> Self {
        Self::Capability { capability, had_capability: true, has_capability: false }
    }

    /// The container lacks the capability before and after.
    pub const fn lacks(capability: Capability) -> Self {
        Self::Capability { capability, had_capability: false, has_capability: false }
    }

    /// The effect of a change of a capability. An unknown `before` is treated as true. `None` if
    /// the container keeps the capability, or if `after` is unknown.
    pub fn capability_change(
        capability: Capability,
        before: Option<bool>,
        after: Option<bool>,
    ) -> Option<Self> {
        let (before, after) = (before.unwrap_or(true), after?);
        (!before || !after).then_some(Self::Capability {
            capability,
            had_capability: before,
            has_capability: after,
        })
    }
}
