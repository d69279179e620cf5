//! The results of comparing and planning: steps, and notes about what is not planned.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Step, problem_without_calls,
    texts::{PlaceholderValues, ProblemTexts, placeholders},
};
use crate::{
    address::Address, catalogue, cause::Cause, desired::Guard, field::Scope, kind::NoCalls,
    live::ExtraFact, origin::Origin, text,
};

/// The results for a section, for a container, or for all declarations.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Findings {
    /// The steps, in an order that respects the edges.
    pub steps: Vec<Step>,
    /// Steps for objects that are only watched; they are never applied.
    pub watched: Vec<Step>,
    /// Objects that a hold keeps unchanged until a day, even if they match their manifests. Their
    /// differences are in `watched`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldObject>,
    /// Notes on objects or fields without a step, and on side effects of steps.
    pub notes: Vec<Note>,
    /// The problems that must be repaired before their containers are changed.
    pub problems: Vec<Problem>,
    /// The parts that could not be read. Nothing is planned for these parts.
    pub incomplete: Vec<Incomplete>,
    /// The refusals of guards.
    pub refusals: Vec<GuardRefusal>,
    /// The facts that must be read before the result is complete.
    #[serde(skip)]
    pub questions: Vec<ExtraFact>,
}

impl Findings {
    /// Adds the results of `others`.
    pub fn extend(&mut self, others: Self) {
        // Grow by a quarter instead of doubling: a plan may have a hundred thousand steps.
        let spare_capacity = self.steps.capacity() - self.steps.len();
        if spare_capacity < others.steps.len() {
            self.steps.reserve_exact(others.steps.len().max(self.steps.len() / 4));
        }
        self.steps.extend(others.steps);
        self.watched.extend(others.watched);
        self.held.extend(others.held);
        self.notes.extend(others.notes);
        self.problems.extend(others.problems);
        self.incomplete.extend(others.incomplete);
        self.refusals.extend(others.refusals);
        others.questions.into_iter().for_each(|fact| self.add_missing_fact(fact));
    }

    /// Adds the reason why the object at `address` has no calls. `field_origin` returns the place of
    /// a field.
    pub(super) fn add_no_calls(
        &mut self,
        no_calls: NoCalls,
        scope: Scope,
        address: &Address,
        origin: &Origin,
        field_origin: impl Fn(&str) -> Origin,
    ) {
        match no_calls {
            NoCalls::LiveUnknown(reason) => {
                let (address, origin) = (address.clone(), Some(origin.clone()));
                self.incomplete.push(Incomplete { address, reason, origin });
            }
            NoCalls::DependsOnRelease => self.add_missing_fact(ExtraFact::Release),
            NoCalls::DependsOnCallerGroup(id) => self.add_missing_fact(ExtraFact::CallerGroup(id)),
            NoCalls::DependsOnEntries(name) => {
                if let Some(section) = catalogue::find_section(scope, &name) {
                    self.add_missing_fact(ExtraFact::Entries(section.section));
                }
            }
            no_calls => {
                self.problems.extend(problem_without_calls(no_calls, address, field_origin));
            }
        }
    }

    /// Adds a fact that must be read, unless `questions` already contains it.
    pub fn add_missing_fact(&mut self, fact: ExtraFact) {
        if !self.questions.contains(&fact) {
            self.questions.push(fact);
        }
    }
}

/// An object that a run leaves unchanged, because somebody changed it by hand in an emergency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct HeldObject {
    /// The group or project, the section or the entry.
    pub address: Address,
    /// The last day of the hold, `YYYY-MM-DD`.
    #[schemars(with = "String")]
    pub until: Date,
}

impl HeldObject {
    /// True if `address` is the held object, or inside it.
    pub fn covers(&self, address: &Address) -> bool {
        let held_address = &self.address;
        held_address.path == address.path
            && held_address.section.is_none_or(|section| address.section == Some(section))
            && (held_address.entry.is_none() || held_address.entry == address.entry)
    }
}

/// A note on an object. It explains why the object has no step, or names a side effect of its step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Note {
    /// The object.
    pub address: Address,
    /// The reason.
    pub reason: Reason,
    /// The fields that the note concerns.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "catalogue::serialize_names"
    )]
    pub fields: Vec<String>,
    /// The place of the declaration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

impl Note {
    /// A note about a whole object, which is declared at `origin`.
    pub fn new(address: &Address, reason: Reason, origin: &Origin) -> Self {
        let (address, origin) = (address.clone(), Some(origin.clone()));
        Self { address, reason, fields: Vec::new(), origin }
    }
}

/// The reason of a [`Note`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "is", content = "detail", rename_all = "snake_case")]
pub enum Reason {
    /// The object is live, and no manifest lists it.
    Unlisted,
    /// The object is live, and no manifest lists it. Its section declares that an unlisted entry is
    /// a difference.
    UnlistedFails,
    /// The object is a project of a declared group, and no manifest declares it.
    Undeclared {
        /// The state of the project if it is not in use: `archived`, or `marked for deletion`.
        #[serde(
            skip_serializing_if = "Option::is_none",
            serialize_with = "text::serialize_optional_word"
        )]
        state: Option<&'static str>,
    },
    /// The object is a project of a declared group, and no manifest declares it. The group declares
    /// that an undeclared project is a difference.
    UndeclaredFails {
        /// The state of the project if it is not in use: `archived`, or `marked for deletion`.
        #[serde(
            skip_serializing_if = "Option::is_none",
            serialize_with = "text::serialize_optional_word"
        )]
        state: Option<&'static str>,
    },
    /// The object is live and protected. undrift neither changes nor removes it.
    Protected {
        /// The reason, for example `bot user`.
        why: String,
    },
    /// The service does not return these fields.
    CannotVerify,
    /// These secrets are not set.
    SecretMissing {
        /// The sources of the secrets: `env:NAME` or `file:PATH`.
        secrets: Vec<String>,
    },
    /// The response of the service lacks these fields, because they belong to another installation,
    /// tier or role. Or the service ignores these fields, because it lacks their tier.
    NotReturned,
    /// The project is archived, as declared. Nothing in the project is read or changed.
    Archived,
    /// The project was archived by hand: no manifest declares it as archived. Nothing in the
    /// project is read or changed.
    ArchivedByHand,
    /// A rule included the group or project, but it was deleted, renamed or archived before it was
    /// read.
    Vanished,
    /// A declared switch closes this section. The section can be neither read nor changed.
    Closed {
        /// The reason, as a sentence, for example `CI/CD must be on`.
        why: String,
    },
    /// If the share is removed or replaced, its group also loses its grants in these entries. No
    /// manifest declares these grants.
    TakesAlong {
        /// The entries. A section means all entries of the section, because they were not read.
        grants_of: Vec<Address>,
    },
    /// The step has an effect that its fields do not show.
    Besides {
        /// The effect, as a sentence about the object of the step.
        what: String,
    },
    /// These fields are not set yet, for this reason.
    Waits {
        /// The end of a sentence that begins with `waits`.
        why: String,
    },
}

impl Reason {
    /// True if the note is a difference that apply does not change.
    pub const fn is_difference(&self) -> bool {
        matches!(self, Self::UnlistedFails | Self::UndeclaredFails { .. } | Self::ArchivedByHand)
    }

    /// True if `drift --strict` reports the note as a difference. The user can remove the
    /// difference by editing a manifest or by setting a variable.
    pub const fn is_strict_difference(&self) -> bool {
        matches!(self, Self::Unlisted | Self::Undeclared { .. } | Self::SecretMissing { .. })
            || self.is_difference()
    }

    /// True if the note names fields that no response contains.
    pub const fn has_unverified_fields(&self) -> bool {
        matches!(self, Self::CannotVerify | Self::NotReturned)
    }

    /// True if the note concerns a live entry or project that no manifest lists.
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

/// A problem that must be repaired before its container is changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// The object.
    pub address: Address,
    /// The code, for example `missing-project`.
    #[serde(serialize_with = "text::serialize_word")]
    pub code: &'static str,
    /// The description of the problem.
    pub message: String,
    /// The advice for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The place of the declaration.
    pub origin: Origin,
}

impl Problem {
    /// A problem of the object at `address`, which is declared at `origin`.
    pub fn new(
        address: &Address,
        code: &'static str,
        message: String,
        help: impl Into<String>,
        origin: &Origin,
    ) -> Self {
        let (address, help, origin) = (address.clone(), Some(help.into()), origin.clone());
        Self { address, code, message, help, origin }
    }

    /// A problem with these texts. `args`, `address` and its path replace the placeholders in the
    /// texts.
    pub(crate) fn from_texts(
        texts: ProblemTexts,
        args: PlaceholderValues<'_>,
        address: &Address,
        origin: &Origin,
    ) -> Self {
        let address_values = placeholders![address, path = address.path];
        let all_placeholders = [args, address_values].concat();
        let [code, message, help] = texts;
        let [message, help] = [message, help].map(|text| text::fill(text, &all_placeholders));
        Self::new(address, code, message, help, origin)
    }

    /// True if a declared container is not at its path. `drift` reports this as a difference.
    pub fn is_missing(&self) -> bool {
        let codes = [
            "missing-project",
            "missing-group",
            "missing-namespace",
            "moved-project",
            "moved-group",
        ];
        codes.contains(&self.code)
    }
}

/// A part of the live state that could not be read completely. Nothing is planned for this part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Incomplete {
    /// The container, the section or the entry.
    pub address: Address,
    /// The reason why it could not be read.
    pub reason: Cause,
    /// The place of the declaration; `None` if nothing declares the part.
    #[serde(skip)]
    pub origin: Option<Origin>,
}

impl Incomplete {
    /// True if the service withholds only this section, and shows the other parts of the container.
    pub fn is_withheld_section(&self) -> bool {
        let Address { section, entry, .. } = &self.address;
        section.is_some() && entry.is_none() && self.reason.withheld.is_some()
    }
}

/// A refusal by a guard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct GuardRefusal {
    /// The object.
    pub address: Address,
    /// The guard.
    pub guard: Guard,
    /// The reason, with numbers.
    pub reason: String,
    /// The number of objects that the refusal concerns.
    pub objects: usize,
    /// The place of the declaration.
    pub origin: Origin,
    /// The acknowledgement to pass, `GUARD:ADDRESS`.
    pub acknowledgement: String,
}

impl GuardRefusal {
    /// A refusal for the object at `address`.
    pub fn new(
        guard: Guard,
        address: &Address,
        reason: String,
        objects: usize,
        origin: &Origin,
    ) -> Self {
        let acknowledgement = format!("{guard}:{address}");
        let (address, origin) = (address.clone(), origin.clone());
        Self { address, guard, reason, objects, origin, acknowledgement }
    }
}
