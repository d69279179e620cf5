//! The roster contains the existing groups and projects that rules with `undeclared: include`
//! match.
//!
//! A [`RosterQuery`] describes the part of the service that must be listed completely. The
//! [`Roster`] is the result, with a [`MatchedContainer`] for each undeclared group or project. A
//! container with an [`ExclusionReason`] is not included.

use std::{collections::BTreeSet, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Container;
use crate::{
    address::Glob,
    cause::Cause,
    diagnostic::Diagnostics,
    field::Scope,
    kind::{ContainerFacts, Section},
    level::MAINTAINER,
};

/// The part of the service that must be listed.
pub struct RosterQuery<'a> {
    /// The globs of the rules that include undeclared groups and projects.
    pub globs: Vec<(Scope, Glob)>,
    /// The fields that rules may declare for included containers, by section.
    pub fields: Vec<(Section, BTreeSet<String>)>,
    /// The declared containers. Responses to the listing may contain them too.
    pub declared: &'a [Container],
    /// Returns the class of a path.
    pub classify: PathClassifier<'a>,
}

/// A function that returns the class of a path.
pub type PathClassifier<'a> = Box<dyn Fn(Scope, &str) -> PathClass + Sync + 'a>;

/// The class of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathClass {
    /// A document declares the path.
    Declared,
    /// A rule includes the path.
    Included,
    /// No document declares the path, and no rule includes it.
    Unmatched,
}

/// The existing groups and projects that rules match.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// The undeclared groups and projects that rules match.
    pub containers: Vec<MatchedContainer>,
    /// The paths of groups or users that were searched, but do not exist or are hidden from the
    /// caller.
    pub missing_namespaces: Vec<String>,
    /// The parts that could not be listed completely, as globs. Their containers are not in `containers`.
    pub incomplete_globs: Vec<(Arc<str>, Cause)>,
    /// Warnings about rules that match nothing.
    pub idle_rule_warnings: Diagnostics,
}

/// An existing group or project that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedContainer {
    /// The scope: group or project.
    pub scope: Scope,
    /// The current full path.
    pub path: String,
    /// The reason why the container is not included; `None` if it is included.
    pub exclusion: Option<ExclusionReason>,
}

/// The reason why a rule does not include an existing group or project.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ExclusionReason {
    /// The group or project is archived.
    Archived,
    /// The group or project is marked for deletion.
    MarkedForDeletion,
    /// The project is in a personal namespace.
    Personal,
    /// The token's role in the group or project is below Maintainer.
    BelowMaintainer,
}

impl ExclusionReason {
    /// The reason that follows from `facts`. The role of the caller is not checked.
    pub const fn from_facts(facts: &ContainerFacts) -> Option<Self> {
        if facts.deletion_mark.is_some() {
            Some(Self::MarkedForDeletion)
        } else if facts.is_archived {
            Some(Self::Archived)
        } else if facts.personal_owner_id.is_some() {
            Some(Self::Personal)
        } else {
            None
        }
    }

    /// The reason that follows from `level`, the access level of the caller.
    pub fn from_access_level(level: Option<u8>) -> Option<Self> {
        (level < Some(MAINTAINER)).then_some(Self::BelowMaintainer)
    }

    /// The words after the number in a message, as in `3 archived`.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Archived => "archived",
            Self::MarkedForDeletion => "marked for deletion",
            Self::Personal => "in personal namespaces",
            Self::BelowMaintainer => "where the token's role is below Maintainer",
        }
    }
}
