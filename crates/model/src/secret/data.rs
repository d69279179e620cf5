//! Data that contains references, such as the headers of a hook: `[{key: A, value: {env: NAME}}]`.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::Reference;
use crate::value::plain_text;

/// Data that may contain references to secrets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueWithSecrets {
    /// The JSON text of plain data.
    Plain(String),
    /// A reference to a secret.
    Secret(Box<Reference>),
    /// A list.
    List(Vec<Self>),
    /// A mapping.
    Map(Vec<(String, Self)>),
}

impl ValueWithSecrets {
    /// The data as JSON. `resolve` returns the value of each reference.
    ///
    /// # Errors
    /// The first error of `resolve`.
    pub fn to_json<E>(
        &self,
        resolve: &mut dyn FnMut(&Reference) -> Result<Json, E>,
    ) -> Result<Json, E> {
        Ok(match self {
            Self::Plain(text) => serde_json::from_str(text).unwrap_or_default(),
            Self::Secret(reference) => resolve(reference)?,
            Self::List(items) => {
                items.iter().map(|item| item.to_json(resolve)).collect::<Result<_, _>>()?
            }
            Self::Map(entries) => Json::Object(
                entries
                    .iter()
                    .map(|(key, data)| Ok((key.clone(), data.to_json(resolve)?)))
                    .collect::<Result<_, _>>()?,
            ),
        })
    }

    /// The references in the data.
    pub fn references(&self) -> Vec<&Reference> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Secret(reference) => vec![reference],
            Self::List(items) => items.iter().flat_map(Self::references).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(_, data)| data.references()).collect(),
        }
    }
}

/// The key (`env`, `file` or `text`) and the text of a mapping that is a reference or a template;
/// `None` for other data.
pub fn reference_parts(json: &Json) -> Option<(&str, String)> {
    let object = json.as_object().filter(|object| object.len() == 1)?;
    let (key, value) = object.iter().next()?;
    let is_reference = ["env", "file", "text"].contains(&&**key);
    let is_scalar = !value.is_object() && !value.is_array();
    (is_reference && is_scalar).then(|| (&**key, plain_text(value)))
}

/// True if `json` contains a reference or a template.
pub fn has_reference(json: &Json) -> bool {
    reference_parts(json).is_some()
        || match json {
            Json::Array(items) => items.iter().any(has_reference),
            Json::Object(object) => object.values().any(has_reference),
            _ => false,
        }
}
