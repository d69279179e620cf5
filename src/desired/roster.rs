//! The roster: what exists below the rules that bring in what nobody declares.
//!
//! An [`Ask`] says which part of the service has to be known whole, the [`Roster`] what is there.
//! What exists and is declared nowhere is a [`Member`]; some members stay out, whatever a rule says.

use std::{collections::BTreeSet, sync::Arc};

use schemars::JsonSchema;
use serde::Serialize;

use super::Container;
use crate::{
    address::Glob,
    cause::Cause,
    field::Scope,
    kind::{Facts, Section},
    level::MAINTAINER,
};

/// What has to be known of what exists.
pub struct Ask<'a> {
    /// Below which globs.
    pub globs: Vec<(Scope, Glob)>,
    /// The fields that may be declared of what is brought in.
    pub fields: Vec<(Section, BTreeSet<String>)>,
    /// What is declared, which the same lists may show.
    pub declared: &'a [Container],
    /// What is at a path.
    pub standing: Judge<'a>,
}

/// Says what a path is to the manifests.
pub type Judge<'a> = Box<dyn Fn(Scope, &str) -> Standing + Sync + 'a>;

/// What a path is to the manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A document declares what is there.
    Declared,
    /// A rule brings it in.
    Included,
    /// Neither.
    Other,
}

/// What exists.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// What rules bring in, and what of it stays out.
    pub members: Vec<Member>,
    /// Where nothing is, for all that the caller sees: the group or user below which something was
    /// looked for.
    pub nowhere: Vec<String>,
    /// Which part is not known whole, as a glob: nothing of it is a member.
    pub incomplete: Vec<(Arc<str>, Cause)>,
}

/// Something that exists and that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Group or project.
    pub scope: Scope,
    /// The full path that it has now.
    pub path: String,
    /// Why it stays out, if it does.
    pub exception: Option<Exception>,
}

/// Why something that exists is not brought in, although a rule says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
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
    /// Why what says `facts` of itself stays out, if that can be told without the caller's role.
    pub const fn by_itself(facts: &Facts) -> Option<Self> {
        if facts.deleting.is_some() {
            Some(Self::MarkedForDeletion)
        } else if facts.archived {
            Some(Self::Archived)
        } else if facts.personal_owner.is_some() {
            Some(Self::Personal)
        } else {
            None
        }
    }

    /// Why what the caller has this `level` of access to stays out, if it does.
    pub fn by_role(level: Option<u8>) -> Option<Self> {
        (level < Some(MAINTAINER)).then_some(Self::BelowMaintainer)
    }

    /// What such members are, after their number.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Archived => "archived",
            Self::MarkedForDeletion => "marked for deletion",
            Self::Personal => "in personal namespaces",
            Self::BelowMaintainer => "where the token's role is below Maintainer",
        }
    }
}
