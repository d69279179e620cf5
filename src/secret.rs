//! Secrets: where they come from, a type that cannot be printed, and the last line of defence that
//! strikes them from text.
//!
//! A manifest names a secret by a [`Reference`]. [`Secrets`] looks references up when they are
//! needed and never stores what it found outside memory. What leaves the process and may quote the
//! service passes [`Secrets::redact`], text before it is wrapped and data before it is written.
//! undrift's own token is never a value: not under the names that are [reserved](is_reserved), and
//! not under another one.

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

/// Text that must not be shown. It has neither `Display` nor `Serialize`, and its `Debug` says
/// nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes `text` into custody.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself: for a request's header or body, and for comparing, only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MARK)
    }
}

/// Where a secret comes from, as a manifest writes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// `{env: NAME}`: an environment variable.
    Env(String),
    /// `{file: PATH}`: a file inside the manifest folder, one trailing newline stripped.
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

/// `text` with [`MARK`] in the place of each of `ranges`, which are ordered and apart.
fn struck(text: &str, ranges: &[Range<usize>]) -> String {
    let (mut struck, mut from) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        struck.push_str(&text[from..range.start]);
        struck.push_str(MARK);
        from = range.end;
    }
    struck + &text[from..]
}
