//! Values of manifests and requests.
//!
//! A value in a manifest is plain data, a reference to a secret, or a file to upload. Secrets stay
//! references until a request is sent, so values can be shown, compared and stored safely. A field
//! that is left out is not managed; `null` is a value.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::secret::Reference;

/// Plain JSON.
pub type Json = serde_json::Value;

/// A JSON object of the service.
pub type Object = serde_json::Map<String, Json>;

/// Values by name, in the order of their names.
pub type Fields = BTreeMap<String, Value>;

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Plain data, shown unchanged.
    Plain(Json),
    /// A secret, known by its source.
    Secret(Reference),
    /// A file to upload: its path below the manifest folder.
    File(String),
}

impl Value {
    /// The plain data, if it is plain.
    pub const fn plain(&self) -> Option<&Json> {
        match self {
            Self::Plain(json) => Some(json),
            Self::Secret(_) | Self::File(_) => None,
        }
    }

    /// The text, if it is plain text.
    pub fn text(&self) -> Option<&str> {
        self.plain().and_then(Json::as_str)
    }

    /// The value of a plain boolean.
    pub fn flag(&self) -> Option<bool> {
        self.plain().and_then(Json::as_bool)
    }

    /// The list, if it is a plain list.
    pub fn list(&self) -> Option<&Vec<Json>> {
        self.plain().and_then(Json::as_array)
    }

    /// The environment variables and files that it needs.
    pub fn sources(&self) -> Vec<Reference> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Secret(reference) => reference.sources().into_iter().cloned().collect(),
            Self::File(path) => vec![Reference::File(path.clone())],
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.plain().is_some_and(Json::is_null)
    }
}

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        Self::Plain(json)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Plain(text.into())
    }
}
