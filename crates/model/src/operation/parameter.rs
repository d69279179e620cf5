//! The parameters of operations.
//!
//! A row of the table names lists of parameters, so that operations can share these lists.

use std::fmt;

use serde::Deserialize;

use crate::{
    field::{Tier, leaked_list},
    release::Release,
};

/// A parameter of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The name of the parameter.
    pub name: &'static str,
    /// The location of the parameter in a request.
    #[serde(rename = "in")]
    pub location: ParameterLocation,
    /// The type of the values.
    #[serde(rename = "type")]
    pub value_type: ParameterType,
    /// True if the service requires the parameter.
    #[serde(default)]
    pub required: bool,
    /// The lowest tier of the service that has the parameter.
    #[serde(default)]
    pub tier: Tier,
    /// The release that added the parameter; `None` for a parameter of the reference.
    pub since: Option<Release>,
    /// True if only administrators may use the parameter.
    #[serde(default)]
    pub administrators: bool,
    /// True if the parameter is deprecated.
    #[serde(default)]
    pub deprecated: bool,
    /// The name of the parameter that replaces this deprecated parameter; `None` without a
    /// replacement.
    pub replaced_by: Option<&'static str>,
    /// True if the value is a secret, which must not be on a command line.
    #[serde(default)]
    pub secret: bool,
    /// A description, in a sentence or two.
    pub about: &'static str,
}

/// The location of a parameter in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterLocation {
    /// In the path, as `:name` of the template.
    Path,
    /// In the query.
    Query,
    /// In the body: a JSON object, or a form (`multipart/form-data`) if one of the values is a file.
    Body,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", bound(deserialize = "'de: 'static"))]
pub enum ParameterType {
    /// Any text.
    Text,
    /// One of these words.
    Word(#[serde(deserialize_with = "leaked_list")] &'static [&'static str]),
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A day, as `YYYY-MM-DD`.
    Date,
    /// A point in time, as `YYYY-MM-DDTHH:MM:SSZ` (ISO 8601).
    Time,
    /// An id, or instead of the id a full path or a username.
    IdOrName,
    /// A level of access: its number or its word.
    Level,
    /// Any number of texts.
    Texts,
    /// Any number of these words.
    Words(#[serde(deserialize_with = "leaked_list")] &'static [&'static str]),
    /// Any number of whole numbers.
    Integers,
    /// An object with these keys; `undrift call` accepts each key separately.
    Object(#[serde(deserialize_with = "leaked_list")] &'static [Parameter]),
    /// Any number of objects with these keys.
    Objects(#[serde(deserialize_with = "leaked_list")] &'static [Parameter]),
    /// An object with arbitrary keys and texts as values.
    Map,
    /// A file to upload.
    File,
}

impl ParameterType {
    /// The allowed words; `None` if the type is not limited to some words.
    pub const fn words(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Word(words) | Self::Words(words) => Some(words),
            _ => None,
        }
    }

    /// The keys of an object, or of each object in a list.
    pub const fn keys(self) -> &'static [Parameter] {
        match self {
            Self::Object(keys) | Self::Objects(keys) => keys,
            _ => &[],
        }
    }

    /// True if the type accepts several values.
    pub const fn is_list(self) -> bool {
        matches!(self, Self::Texts | Self::Words(_) | Self::Integers | Self::Objects(_))
    }
}

/// The name of the type in documentation, without the allowed words.
impl fmt::Display for ParameterType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Word(_) => "word",
            Self::Integer => "number",
            Self::Boolean => "true or false",
            Self::Date => "YYYY-MM-DD",
            Self::Time => "YYYY-MM-DDTHH:MM:SSZ",
            Self::IdOrName => "id or name",
            Self::Level => "access level",
            Self::Texts => "texts",
            Self::Words(_) => "words",
            Self::Integers => "numbers",
            Self::Object(_) => "object",
            Self::Objects(_) => "objects",
            Self::Map => "texts by key",
            Self::File => "file",
        })
    }
}

impl Parameter {
    /// An optional parameter that every tier has and every user may set.
    pub const fn new(
        location: ParameterLocation,
        name: &'static str,
        value_type: ParameterType,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            location,
            value_type,
            required: false,
            tier: Tier::Free,
            since: None,
            administrators: false,
            deprecated: false,
            replaced_by: None,
            secret: false,
            about,
        }
    }
}
