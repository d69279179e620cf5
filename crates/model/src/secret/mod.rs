//! Secrets: their references, a type that cannot be printed, and the redaction of texts as the last
//! line of defence.
//!
//! A manifest refers to a secret by a [`Reference`]. [`Secrets`] resolves references when needed
//! and keeps the values only in memory. Output that may quote the service passes through
//! [`Secrets::redact`]: texts before they are wrapped, and data before it is written. undrift's own
//! token is never used as a value, whether the name of its variable is [reserved](is_reserved) or not.

mod data;
pub mod judge;
mod lookup;
mod matcher;
mod names;
mod view;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::text::MASK;

pub use data::{ValueWithSecrets, has_reference, reference_parts};
pub use lookup::{MAX_FILE_BYTES, Secrets, UnresolvedReference, strip_newline};
pub use matcher::SECRET_MARK;
pub use names::{
    AllowedVariables, JOB_TOKEN_VARIABLE, RESERVED_PREFIXES, allowable_prefix, is_reserved,
};

/// Text that must not be shown. It has neither `Display` nor `Serialize`, and its `Debug` shows no
/// part of the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes `text` a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text. Use it only in the header or body of a request, and in comparisons.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SECRET_MARK)
    }
}

/// The source of a secret, in the form of manifests.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// `{env: NAME}`: an environment variable.
    Env(String),
    /// `{file: PATH}`: a file in the manifest folder, without one trailing newline.
    File(String),
    /// `{text: '...'}`: a text with secrets in it, such as a URL with a password.
    #[schemars(skip)]
    Text(Vec<TextPiece>),
    /// A list or a mapping with references in it.
    #[schemars(skip)]
    Data(ValueWithSecrets),
}

/// A piece of a text with secrets in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextPiece {
    /// Text that may be shown.
    Shown(String),
    /// A secret from a variable or a file.
    Secret(Reference),
}

impl Reference {
    /// The reference to the variable or file `name`, if `keyword` is `env` or `file`.
    pub fn parse(keyword: &str, name: String) -> Option<Self> {
        match keyword {
            "env" => Some(Self::Env(name)),
            "file" => Some(Self::File(name)),
            _ => None,
        }
    }

    /// The start of `text` (`{env:` or `{file:`), if the whole text is a reference in quotes.
    pub fn quoted_reference_start(text: &str) -> Option<&'static str> {
        let inner_text = text.strip_prefix('{')?.strip_suffix('}')?;
        let mut reference_starts =
            ["{env:", "{file:"].into_iter().filter(|_| !inner_text.contains(['{', '}']));
        reference_starts.find(|start| text.starts_with(start))
    }

    /// True if the name of the variable or file has placeholders in braces (not `${NAME}`).
    pub fn is_template(&self) -> bool {
        match self {
            Self::Env(name) if name.starts_with('$') => false,
            Self::Env(name) | Self::File(name) => name.contains(['{', '}']),
            Self::Text(_) | Self::Data(_) => false,
        }
    }

    /// The variables and files that the reference consists of. Only a text or data can have
    /// several.
    pub fn sources(&self) -> Vec<&Self> {
        match self {
            Self::Env(_) | Self::File(_) => vec![self],
            Self::Text(pieces) => pieces.iter().filter_map(TextPiece::source).collect(),
            Self::Data(_) => self.inner_references().into_iter().flat_map(Self::sources).collect(),
        }
    }

    /// The references in the data, or the reference itself if it is not data.
    pub fn inner_references(&self) -> Vec<&Self> {
        if let Self::Data(data) = self { data.references() } else { vec![self] }
    }

    /// The text or data with [`MASK`] for each secret; `None` for a single variable
    /// or file.
    pub fn masked_json(&self) -> Option<Json> {
        match self {
            Self::Env(_) | Self::File(_) => None,
            Self::Text(pieces) => {
                Some(pieces.iter().map(TextPiece::masked_text).collect::<String>().into())
            }
            Self::Data(data) => data
                .to_json(&mut |reference| {
                    Some(reference.masked_json().unwrap_or(MASK.into())).ok_or(())
                })
                .ok(),
        }
    }

    /// The reference in the form of manifests.
    pub fn to_manifest_json(&self) -> Json {
        match self {
            Self::Env(name) => json!({"env": name}),
            Self::File(path) => json!({"file": path}),
            Self::Text(_) => json!({"text": self.to_string()}),
            Self::Data(data) => data
                .to_json(&mut |reference| Ok::<_, ()>(reference.to_manifest_json()))
                .unwrap_or_default(),
        }
    }
}

impl TextPiece {
    const fn source(&self) -> Option<&Reference> {
        match self {
            Self::Secret(source) => Some(source),
            Self::Shown(_) => None,
        }
    }

    fn masked_text(&self) -> &str {
        match self {
            Self::Shown(text) => text,
            Self::Secret(_) => MASK,
        }
    }
}

/// True if the piece at `index` is in the user, the password or the query of a URL, where a secret
/// must be percent-encoded.
fn needs_encoding(pieces: &[TextPiece], index: usize) -> bool {
    let [text_before, text_after] = [&pieces[..index], &pieces[index + 1..]]
        .map(|pieces| pieces.iter().map(TextPiece::masked_text).collect::<String>());
    let Some((_, after_scheme)) = text_before.split_once("://") else { return false };
    let is_authority_end = |c: char| "/?#".contains(c);
    let authority_tail = text_after.split(is_authority_end).next().unwrap_or_default();
    let is_user = !after_scheme.contains(is_authority_end) && authority_tail.contains('@');
    is_user || after_scheme.contains('?')
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
            Self::Text(pieces) => pieces.iter().try_for_each(|piece| match piece {
                TextPiece::Shown(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
                TextPiece::Secret(source) => write!(f, "{{{source}}}"),
            }),
            Self::Data(_) => write!(f, "{}", self.to_manifest_json()),
        }
    }
}
