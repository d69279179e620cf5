//! Secrets: their references, a type that cannot be printed, and the redaction of texts as a last
//! line of defence.
//!
//! A manifest names a secret by a [`Reference`]. [`Secrets`] resolves references when needed and
//! keeps the values only in memory. Output that may quote the service passes [`Secrets::redact`]:
//! texts before they are wrapped, and data before it is written. undrift's own token is never a
//! value, neither under a [reserved](is_reserved) name nor under another one.

mod known;
pub mod looks;
mod lookup;
mod names;
mod view;

use std::{fmt, ops::Range};

use schemars::JsonSchema;
use serde::Serialize;

pub use known::MARK;
pub use lookup::{Missing, Secrets};
pub use names::{Allowed, is_reserved};

/// Text that must not be shown. It has neither `Display` nor `Serialize`, and its `Debug` is empty.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes `text` a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text. Only for the header or body of a request, and for comparing.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MARK)
    }
}

/// The source of a secret, as manifests write it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// `{env: NAME}`: an environment variable.
    Env(String),
    /// `{file: PATH}`: a file in the manifest folder, without one trailing newline.
    File(String),
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
        }
    }
}

/// `text` with each of `ranges`, which are ordered and merged, replaced by [`MARK`].
fn struck(text: &str, ranges: &[Range<usize>]) -> String {
    let (mut struck, mut from) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        struck.push_str(&text[from..range.start]);
        struck.push_str(MARK);
        from = range.end;
    }
    struck + &text[from..]
}
