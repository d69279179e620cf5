//! The roster: which groups and projects exist where rules include undeclared ones.
//!
//! A [`RosterQuery`] describes the part of the service that must be listed completely. The [`Roster`] is
//! the result: each undeclared group or project is a [`MatchedContainer`]. Some members are never included.

use std::{collections::BTreeSet, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Container;
use crate::{
    address::Glob,
    cause::Cause,
    diagnostic::Diagnostics,
    field::Scope,
    kind::{Facts, Section},
    level::MAINTAINER,
};

/// The part of the service that must be listed.
pub struct RosterQuery<'a> {
    /// The globs.
    pub globs: Vec<(Scope, Glob)>,
    /// The fields that included containers may declare.
    pub fields: Vec<(Section, BTreeSet<String>)>,
    /// The declared containers, which the same lists may show.
    pub declared: &'a [Container],
    /// How manifests treat a path.
    pub classify: PathClassifier<'a>,
}

/// Decides how manifests treat a path.
pub type PathClassifier<'a> = Box<dyn Fn(Scope, &str) -> PathClass + Sync + 'a>;

/// How manifests treat a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathClass {
    /// A document declares it.
    Declared,
    /// A rule includes it.
    Included,
    /// Neither.
    Unmatched,
}

/// The groups and projects that exist.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// The undeclared ones that rules match.
    pub members: Vec<MatchedContainer>,
    /// The paths of groups or users that were searched and, as far as the caller can see, do not
    /// exist.
    pub absent_roots: Vec<String>,
    /// The parts that could not be listed completely, as globs. They have no members.
    pub incomplete: Vec<(Arc<str>, Cause)>,
    /// Warnings about rules that match nothing.
    pub idle_rules: Diagnostics,
}

/// An existing group or project that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedContainer {
    /// Whether it is a group or a project.
    pub scope: Scope,
    /// Its current full path.
    pub path: String,
    /// Why it is not included, if so.
    pub exception: Option<Exception>,
}

/// Why a rule does not include an existing group or project.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Exception {
    /// It is archived.
    Archived,
    /// It is marked for deletion.
    MarkedForDeletion,
    /// It is in a personal namespace.
    Personal,
    /// The token's role there is below Maintainer.
    BelowMaintainer,
}

impl Exception {
    /// The exception that follows from `facts`, without the caller's role.
    pub const fn from_facts(facts: &Facts) -> Option<Self> {
        if facts.deletion_mark.is_some() {
            Some(Self::MarkedForDeletion)
        } else if facts.is_archived {
            Some(Self::Archived)
        } else if facts.personal_owner.is_some() {
            Some(Self::Personal)
        } else {
            None
        }
    }

    /// The exception that follows from the caller's `level`.
    pub fn from_role(level: Option<u8>) -> Option<Self> {
        (level < Some(MAINTAINER)).then_some(Self::BelowMaintainer)
    }

    /// Describes such members, after their number.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Archived => "archived",
            Self::MarkedForDeletion => "marked for deletion",
            Self::Personal => "in personal namespaces",
            Self::BelowMaintainer => "where the token's role is below Maintainer",
        }
    }
}
