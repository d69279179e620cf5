//! Acknowledgements of guards, from manifests or the command line.

use std::fmt;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{address::Selector, origin::Origin};

/// A guard: a check that refuses dangerous steps.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// Too many entries of a section are removed, or all of them. The guard also refuses too many
    /// removals in the whole run.
    Removals,
    /// A container loses its last owner.
    LastOwner,
    /// The caller loses access that the run needs.
    OwnAccess,
    /// A container becomes visible to more people.
    Visibility,
    /// A protection becomes weaker.
    Protection,
    /// A container moves to a namespace where others have access.
    Transfer,
    /// A project is deleted with everything in it. The acknowledgement must name the project
    /// without a glob.
    Deletion,
    /// Too many undeclared groups and projects change because of a rule. The address of the refusal
    /// is the glob of the rule.
    Reach,
}

impl Guard {
    /// Every guard.
    pub const ALL: [Self; 8] = [
        Self::Removals,
        Self::LastOwner,
        Self::OwnAccess,
        Self::Visibility,
        Self::Protection,
        Self::Transfer,
        Self::Deletion,
        Self::Reach,
    ];

    /// An alternative to the acknowledgement of a refusal, as text; `None` if the manifest alone
    /// shows an alternative.
    pub const fn alternative(self) -> Option<&'static str> {
        match self {
            Self::LastOwner => Some("declare another member with `access_level: owner`"),
            Self::OwnAccess => Some("keep the access, or use the token of another user"),
            Self::Reach => Some("narrow `match` of the rule"),
            Self::Removals => {
                Some("declare the entries that stay, or leave out `delete` in `unlisted`")
            }
            Self::Protection => Some("keep the stricter values"),
            _ => None,
        }
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// An acknowledgement of refusals of a guard.
#[derive(Clone, Debug)]
pub struct Acknowledgement {
    /// The guard.
    pub guard: Guard,
    /// The acknowledged addresses, as a glob.
    pub selector: Selector,
    /// The maximum number of objects that all acknowledged refusals may have together.
    pub max_objects: Option<usize>,
    /// The last day on which the acknowledgement is valid; `None` if it does not expire.
    pub until: Option<Date>,
    /// The reason that its author gives.
    pub reason: Option<String>,
    /// The origin of the acknowledgement; `None` if it comes from the command line.
    pub origin: Option<Origin>,
}

impl Acknowledgement {
    /// Parses `GUARD:ADDRESS`. The address may be a glob.
    ///
    /// # Errors
    /// A message, if the text is malformed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let word_and_address = text.split_once(':').filter(|(_, address)| !address.is_empty());
        let guard_and_address = word_and_address.and_then(|(word, address)| {
            let guard = Guard::ALL.into_iter().find(|guard| guard.to_string() == word)?;
            Some((guard, address))
        });
        let Some((guard, address)) = guard_and_address else {
            let guard_words = Guard::ALL.map(|guard| guard.to_string());
            let guards = crate::text::alternatives(&guard_words);
            return Err(format!(
                "copy GUARD:ADDRESS from a refusal, as in `removals:acme/shop#members`; nothing acknowledges all; the guards are {guards}"
            ));
        };
        let selector = Selector::parse(address)?;
        Ok(Self { guard, selector, max_objects: None, until: None, reason: None, origin: None })
    }

    /// True if `other` acknowledges everything that this acknowledgement acknowledges.
    pub fn is_covered_by(&self, other: &Self) -> bool {
        fn is_within_limit<T: PartialOrd>(limit: Option<T>, other: Option<T>) -> bool {
            other.is_none_or(|other| limit.is_some_and(|limit| limit <= other))
        }
        self.guard == other.guard
            && self.selector.pattern() == other.selector.pattern()
            && is_within_limit(self.max_objects, other.max_objects)
            && is_within_limit(self.until, other.until)
    }

    /// True if the last day is before `today`. An expired acknowledgement acknowledges nothing.
    pub fn has_expired(&self, today: Date) -> bool {
        self.until.is_some_and(|until| until < today)
    }
}

/// Formats the acknowledgement as on the command line: `GUARD:ADDRESS`.
impl fmt::Display for Acknowledgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.guard, self.selector.pattern())
    }
}
