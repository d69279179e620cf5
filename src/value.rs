//! Values as manifests write them and requests carry them.
//!
//! A manifest value is plain data, a reference to a secret, or a file to upload. Secrets stay
//! references until a request is sent, so a value can be shown, compared and stored without care. A
//! key that is absent is not managed; `null` is a value of its own.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::secret::Reference;

/// Plain JSON.
pub type Json = serde_json::Value;

/// A JSON object, as the service returns one.
pub type Object = serde_json::Map<String, Json>;

/// Named values, in the order of their names.
pub type Fields = BTreeMap<String, Value>;

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Plain data, shown as it is written.
    Plain(Json),
    /// A secret that is known by where it comes from.
    Secret(Reference),
    /// A file to upload, by its path below the manifest folder.
    File(String),
}

impl Value {
    /// The plain data, if it is that.
    pub const fn plain(&self) -> Option<&Json> {
        match self {
            Self::Plain(json) => Some(json),
            Self::Secret(_) | Self::File(_) => None,
        }
    }

    /// The plain text, if it is that.
    pub fn text(&self) -> Option<&str> {
        self.plain().and_then(Json::as_str)
    }

    /// What a plain flag says, if it is one.
    pub fn flag(&self) -> Option<bool> {
        self.plain().and_then(Json::as_bool)
    }

    /// The plain list, if it is one.
    pub fn list(&self) -> Option<&Vec<Json>> {
        self.plain().and_then(Json::as_array)
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
