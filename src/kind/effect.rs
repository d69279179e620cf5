//! What a change does beyond the object itself: order and guards are computed from this, without
//! knowing any kind.

use std::sync::Arc;

use super::RefRule;
use crate::field::Scope;

/// Something that a container has, and without which other changes of it are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// It is there.
    Exists,
    /// It takes changes: it is not archived.
    Writable,
    /// CI/CD is switched on.
    Ci,
    /// Its repository has a branch.
    Branch,
    /// Those whom rules name have access.
    People,
    /// Somebody owns it.
    Owner,
    /// The caller has the access that it works with.
    OwnAccess,
    /// It is where it is to be.
    InPlace,
}

impl Capability {
    /// Why what needs it waits for what provides it, and why what takes it away comes after.
    pub const fn reason(self, scope: Scope) -> &'static str {
        match self {
            Self::Exists => match scope {
                Scope::Group => "the group must exist",
                Scope::Project => "the project must exist",
            },
            Self::Writable => "an archived project cannot be changed",
            Self::Ci => "CI/CD must be on",
            Self::Branch => "the repository must have a branch",
            Self::People => "whom a rule names must have access",
            Self::Owner => "the new owner comes before the old one goes",
            Self::OwnAccess => "the token's owner needs this access until then",
            Self::InPlace => match scope {
                Scope::Group => "the group must be in its place",
                Scope::Project => "the project must be in its place",
            },
        }
    }
}

/// The visibilities, from the narrowest.
pub const VISIBILITIES: [&str; 3] = ["private", "internal", "public"];

/// The place of a visibility among them.
pub fn visibility_rank(word: &str) -> Option<usize> {
    VISIBILITIES.iter().position(|known| *known == word)
}

/// What a change does beyond the object itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A user's level of access changes. Levels are the service's numbers (reference 1, 2.1); 0 is
    /// none.
    Access {
        /// The user; `None` if it is somebody who is not known by id.
        user: Option<u64>,
        /// The level before.
        before: u8,
        /// The level after.
        after: u8,
        /// Whether it ends on a day on which it did not end before: nobody looks at a plan then.
        ends: bool,
    },
    /// The level up to which members of a group have access changes.
    Share {
        /// The group; `None` if it is not known by id.
        group: Option<u64>,
        /// The level before.
        before: u8,
        /// The level after.
        after: u8,
        /// Whether it ends on a day on which it did not end before.
        ends: bool,
    },
    /// It becomes visible to others: the words before and after, the former if it is known.
    Visibility {
        /// Before.
        before: Option<String>,
        /// After.
        after: String,
    },
    /// It names this user, who must have access to the container.
    NeedsAccess(u64),
    /// It names the group with this id, with which the container must be shared, as developer or more.
    NeedsShare(u64),
    /// What protected it protects it less: how, as the end of a sentence that starts with "would".
    Weakens(String),
    /// A rule for branches or tags changes. What that protects less only all rules together show.
    Rule {
        /// The rule before, if there was one.
        before: Option<Box<RefRule>>,
        /// The rule after, if there is one.
        after: Option<Box<RefRule>>,
    },
    /// A part of it is shown to more people: how, as the end of such a sentence.
    Shows(String),
    /// Something that its fields do not show: what, as a sentence that starts with "it".
    SideEffect(String),
    /// The container comes into being with things in it that no field names.
    Fills,
    /// What is created below the container afterwards starts with it, or may be created only so.
    HandsDown,
    /// The container gets it.
    Provides(Capability),
    /// The container loses it.
    Takes(Capability),
    /// The container does not have it, before and after.
    Lacks(Capability),
    /// It gets its path only once what is declared at this one has moved.
    Follows(Arc<str>),
    /// It moves to another namespace.
    Transfers {
        /// Its full path before.
        from: Arc<str>,
    },
}
