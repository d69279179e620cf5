//! What comparing and planning bring: steps, and why other things do not happen.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::Step;
use crate::{
    address::Address, cause::Cause, desired::Guard, kinds, live::Question, origin::Origin, text,
};

/// What was found: of a section, of a container, or of all that is declared.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Findings {
    /// What to do, in an order that keeps the edges.
    pub steps: Vec<Step>,
    /// What would have to be done to what is only watched; nobody does it.
    pub watched: Vec<Step>,
    /// What is left alone until a day, whether it differs or not. What differs there is watched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
    /// Why other things do not happen.
    pub notes: Vec<Note>,
    /// What has to be put right before the container that it is about is touched.
    pub problems: Vec<Problem>,
    /// What could not be read, so that nothing is planned there.
    pub incomplete: Vec<Incomplete>,
    /// What the guards refuse.
    pub refusals: Vec<Refusal>,
    /// What has to be known besides, before this is all.
    #[serde(skip)]
    pub questions: Vec<Question>,
}

impl Findings {
    /// Takes in others.
    pub fn extend(&mut self, others: Self) {
        self.steps.extend(others.steps);
        self.watched.extend(others.watched);
        self.held.extend(others.held);
        self.notes.extend(others.notes);
        self.problems.extend(others.problems);
        self.incomplete.extend(others.incomplete);
        self.refusals.extend(others.refusals);
        others.questions.into_iter().for_each(|question| self.ask(question));
    }

    /// Takes in a removal, or why there is none.
    pub(super) fn remove(&mut self, removal: Result<Step, Option<Box<Problem>>>) {
        match removal {
            Ok(step) => self.steps.push(step),
            Err(problem) => self.problems.extend(problem.map(|problem| *problem)),
        }
    }

    /// Takes in a question, once.
    pub fn ask(&mut self, question: Question) {
        if !self.questions.contains(&question) {
            self.questions.push(question);
        }
    }
}

/// What a run leaves alone because somebody changed it by hand in an emergency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Held {
    /// The group or project, the section or the entry.
    pub address: Address,
    /// The last day on which it is left alone, `YYYY-MM-DD`.
    #[serde(serialize_with = "day")]
    #[schemars(with = "String")]
    pub until: Date,
}

impl Held {
    /// Whether `address` is what is held, or in it.
    pub fn holds(&self, address: &Address) -> bool {
        let own = &self.address;
        own.path == address.path
            && own.section.is_none_or(|section| address.section == Some(section))
            && (own.entry.is_none() || own.entry == address.entry)
    }
}

fn day<S: Serializer>(day: &Date, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(day)
}

/// Why something that one might expect does not happen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Note {
    /// The object.
    pub address: Address,
    /// The reason.
    pub reason: Reason,
    /// The fields that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "kinds::serialize_names")]
    pub fields: Vec<String>,
    /// Where it is declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// The reason of a [`Note`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(tag = "is", content = "detail", rename_all = "snake_case")]
pub enum Reason {
    /// It is live, and no manifest lists it.
    Unlisted,
    /// It is live, no manifest lists it, and its section says that this is a difference.
    UnlistedFails,
    /// It is a project of a declared group, and no manifest declares it.
    Undeclared {
        /// What it is if it is not in use: `archived`, or `marked for deletion`.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "text::word_if_any")]
        state: Option<&'static str>,
    },
    /// It is a project of a declared group, no manifest declares it, and the group says that this is
    /// a difference.
    UndeclaredFails {
        /// What it is if it is not in use: `archived`, or `marked for deletion`.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "text::word_if_any")]
        state: Option<&'static str>,
    },
    /// It is live and unlisted, and is protected for the reason given.
    Protected {
        /// The reason, for example `it is a bot`.
        why: String,
    },
    /// The service does not return these fields.
    CannotVerify,
    /// These secrets are not set here.
    SecretMissing {
        /// Where they come from: `env:NAME` or `file:PATH`.
        secrets: Vec<String>,
    },
    /// The service's answer lacks these fields, which other installations, tiers or roles have, or the
    /// service ignores them, because they are of a tier that it does not have.
    NotReturned,
    /// It is archived, as declared; nothing below it is read or changed.
    Archived,
    /// It was archived by hand, and its manifest declares something else; nothing below it is read
    /// or changed.
    ArchivedByHand,
    /// A rule brought it in, and it was deleted, renamed or archived before it was read.
    Vanished,
    /// Something declared closes this section: it can be neither read nor changed.
    Closed {
        /// What, as a sentence.
        why: String,
    },
    /// Removing it, also to add it anew, takes along what these grant to it, and no manifest
    /// declares that they do.
    TakesAlong {
        /// The entries; a section stands for any of its entries where they were not read.
        grants_of: Vec<Address>,
    },
    /// The step does something that its fields do not show.
    Besides {
        /// What, as a sentence that starts with `it`.
        what: String,
    },
    /// These fields are not set yet, and wait for what the text says.
    Waits {
        /// The end of a sentence that begins with `waits`.
        why: String,
    },
}

impl Reason {
    /// Whether it is a difference that apply leaves alone.
    pub const fn is_difference(&self) -> bool {
        matches!(self, Self::UnlistedFails | Self::UndeclaredFails { .. } | Self::ArchivedByHand)
    }

    /// Whether `drift --strict` takes it for a difference: nobody knows, or nobody manages it.
    pub const fn is_open(&self) -> bool {
        self.is_difference()
            || matches!(
                self,
                Self::Unlisted
                    | Self::Undeclared { .. }
                    | Self::CannotVerify
                    | Self::SecretMissing { .. }
                    | Self::NotReturned
            )
    }

    /// Whether it is about something live that no manifest lists.
    pub const fn is_unlisted(&self) -> bool {
        matches!(
            self,
            Self::Unlisted
                | Self::UnlistedFails
                | Self::Undeclared { .. }
                | Self::UndeclaredFails { .. }
        )
    }
}

/// Something that has to be put right before its container is touched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Problem {
    /// The object.
    pub address: Address,
    /// The code, for example `missing-project`.
    #[serde(serialize_with = "text::word")]
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Where it is declared.
    pub origin: Origin,
}

impl Problem {
    /// Whether it says that a declared container is not there: in `drift` that is a difference.
    pub fn is_missing(&self) -> bool {
        matches!(self.code, "missing-project" | "missing-group" | "missing-namespace")
    }
}

/// Something of which too little is known, so that nothing is planned there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Incomplete {
    /// The container, the section or the entry.
    pub address: Address,
    /// Why.
    pub reason: Cause,
}

/// What a guard refuses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Refusal {
    /// The object.
    pub address: Address,
    /// The guard.
    pub guard: Guard,
    /// Why, with numbers.
    pub reason: String,
    /// How many objects it is about.
    pub objects: usize,
    /// Where it is declared.
    pub origin: Origin,
    /// What lets this object through this guard, `GUARD:ADDRESS`.
    pub acknowledgement: String,
}

impl Refusal {
    /// A refusal of something at `address`.
    pub fn new(
        guard: Guard,
        address: &Address,
        reason: String,
        objects: usize,
        origin: &Origin,
    ) -> Self {
        Self {
            address: address.clone(),
            guard,
            reason,
            objects,
            origin: origin.clone(),
            acknowledgement: format!("{guard}:{address}"),
        }
    }
}
