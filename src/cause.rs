//! Why something could not be read or done, in its parts.
//!
//! A cause keeps what the service said apart from what undrift makes of it: the operation, the
//! status and the request's id follow it from the answer into every report, so that whoever reads
//! one can filter by them and can find the request in the service's own log.

use std::{borrow::Cow, fmt};

use schemars::JsonSchema;
use serde::Serialize;

use crate::text;

/// Why something could not be read or done.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Cause {
    /// What happened, in a fragment of a sentence that can stand alone.
    pub message: Cow<'static, str>,
    /// The operation that failed, by its id in the table of operations.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "text::word_if_any")]
    pub operation: Option<&'static str>,
    /// The status of the service's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The id by which the service's log knows the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<Cow<'static, str>>,
    /// Whether another run may find it otherwise although nobody mends anything.
    pub transient: bool,
    /// The request that the message names, as `METHOD path`.
    #[serde(skip)]
    pub request: String,
}

impl Cause {
    /// A cause that undrift found itself and that stays until somebody mends it.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// The same, but another run may find it otherwise.
    #[must_use]
    pub fn transient(self) -> Self {
        Self { transient: true, ..self }
    }

    /// With what to do about it.
    #[must_use]
    pub fn help(self, help: impl Into<Cow<'static, str>>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The same, and what came of it.
    #[must_use]
    pub fn and(self, then: impl fmt::Display) -> Self {
        Self { message: format!("{}; {then}", self.message).into(), ..self }
    }

    /// The same, said of something larger: `context: message`.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Self {
        Self { message: format!("{context}: {}", self.message).into(), ..self }
    }
}

/// The message. What to do about it is shown apart.
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
