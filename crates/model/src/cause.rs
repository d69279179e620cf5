//! The reason why something could not be read or done, in its parts.
//!
//! A cause keeps the operation, the status and the request id separate from undrift's message.
//! These parts are in every report. Readers can filter by these parts, and can find the request in
//! the log of the service.

use std::{
    borrow::Cow,
    fmt,
    ops::{Deref, DerefMut},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text;

/// The reason why something could not be read or done.
// The parts are boxed to keep results small: most results have no cause. Both types have the same
// doc comment, because schemas contain this comment.
#[must_use]
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent, bound(deserialize = "'de: 'static"))]
pub struct Cause(Box<CauseParts>);

/// The reason why something could not be read or done.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct CauseParts {
    /// The message: a fragment that can stand alone.
    pub message: Cow<'static, str>,
    /// The id of the operation that failed.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "text::serialize_optional_word"
    )]
    pub operation: Option<&'static str>,
    /// The status of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The request id in the log of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The advice for solving the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<Cow<'static, str>>,
    /// True if another run may succeed without any correction.
    pub transient: bool,
    /// The reason why the service does not show a section, if it shows the rest of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
    /// The request in the message, as `METHOD path`.
    #[serde(skip)]
    pub request_line: String,
}

/// The reason why the service does not show a section, although it shows the rest of the container.
/// Then only that section is left out.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Withheld {
    /// The section needs a higher tier than the service seems to have.
    Tier,
    /// Settings of the project switch the section off.
    SwitchedOff,
    /// The service refuses the section to the caller, or does not have the section.
    Refused,
}

impl Deref for Cause {
    type Target = CauseParts;

    fn deref(&self) -> &CauseParts {
        &self.0
    }
}

impl DerefMut for Cause {
    fn deref_mut(&mut self) -> &mut CauseParts {
        &mut self.0
    }
}

impl From<CauseParts> for Cause {
    fn from(parts: CauseParts) -> Self {
        Self(Box::new(parts))
    }
}

impl Cause {
    /// A cause that undrift itself found. The cause is not transient: somebody must make a
    /// correction.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        CauseParts { message: message.into(), ..CauseParts::default() }.into()
    }

    /// Marks the cause as transient.
    pub fn mark_transient(mut self) -> Self {
        self.transient = true;
        self
    }

    /// Marks the cause as the reason why only one section is not shown.
    pub fn mark_withheld(mut self, reason: Withheld) -> Self {
        self.withheld = Some(reason);
        self
    }

    /// Adds help.
    pub fn with_help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a consequence to the message.
    pub fn with_consequence(mut self, consequence: impl fmt::Display) -> Self {
        self.message = format!("{}; {consequence}", self.message).into();
        self
    }

    /// Adds a context in front of the message: `context: message`.
    pub fn with_context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message).into();
        self
    }
}

/// Writes the message. Reports show the help separately.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<&'static str> for Cause {
    fn from(message: &'static str) -> Self {
        Self::new(message)
    }
}

impl From<String> for Cause {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}
