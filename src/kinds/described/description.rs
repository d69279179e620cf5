//! The format of a description file.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    field::{Field, Scalar, Tier},
    kind::Removal,
    level::Level,
    release::Release,
    value::Json,
};

/// A collection below groups or projects, managed as a section of manifests.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"), deny_unknown_fields)]
pub struct Description {
    /// The name of the section in manifests.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"feature_flags")]
    pub section: String,
    /// Other names for it, for which check suggests the right one.
    #[serde(default)]
    #[schemars(inner(regex(pattern = "^[a-z][a-z0-9_]*$")), example = &["feature_toggles"])]
    pub aliases: Vec<&'static str>,
    /// The noun for one entry. The operations of `undrift call` are named after it.
    #[schemars(regex(pattern = "^[a-z][a-z0-9]*( [a-z0-9]+)*$"), example = &"feature flag")]
    pub noun: String,
    /// What an entry is, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"), example = &"A time in which nothing is deployed.")]
    pub about: String,
    /// The fields that identify an entry, in the order in which addresses show them.
    #[serde(default)]
    pub identity: Vec<String>,
    /// Fields of the identity of which each entry has exactly one.
    #[serde(default)]
    pub either: Vec<String>,
    /// Whether it is a single object that always exists, instead of a collection: it has no
    /// `identity`, and is only read and edited (default: `false`).
    #[serde(default)]
    pub document: bool,
    /// The field with the name that the service stores. An entry is found by this name first, then
    /// by its identity.
    pub name_field: Option<String>,
    /// The field by which entries of other sections name an entry (default: its identity).
    pub called_by: Option<String>,
    /// The fields, in addition to the identity, that creating an entry needs.
    #[serde(default)]
    pub required: Vec<String>,
    /// What guards check when an entry is removed. Must be `access` if a field is a `level`.
    pub removal: Removal,
    /// Fields that give access if they are set and not `false`. The guard `protection` also asks
    /// before an entry with one of them is created.
    #[serde(default)]
    pub grants: Vec<String>,
    /// Whether the service refuses a second entry with the same identity (default: `false`).
    #[serde(default)]
    pub unique: bool,
    /// Whether the response to a write shows the entry as a GET does, so that it need not be read
    /// again (default: `false`).
    #[serde(default)]
    pub write_returns_entry: bool,
    /// Whether the service answers 401, as to an invalid token, if the caller lacks permission or
    /// the feature is off (default: `false`).
    #[serde(default)]
    pub denies_with_401: bool,
    /// Whether the service has a request for a single entry (default: `true`).
    #[serde(default = "is_usual")]
    pub read_alone: bool,
    /// How an entry is created (default: `post`).
    #[serde(default)]
    pub create: Create,
    /// How an entry is changed (default: `put`).
    #[serde(default)]
    pub edit: Edit,
    /// How request paths address an entry.
    #[serde(default)]
    pub entry: Entry,
    /// The section of the parent entries, if the paths of `homes` contain `:entry`.
    pub below: Option<ParentSection>,
    /// An action that the service requires before it deletes an entry: the last part of the path of
    /// a POST request, after the path of the entry, and a parameter if it needs one.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*(\\?[a-z][a-z0-9_]*=[a-z0-9_]+)?$"), example = &"stop?force=true")]
    pub before_removal: Option<String>,
    /// The fields of an entry.
    #[schemars(length(min = 1))]
    pub fields: Vec<Field>,
    /// Fields of responses that manifests do not have. `export` names those that are set.
    #[serde(default)]
    pub unmanaged: Vec<String>,
    /// Parameters of the edit request that are not fields of manifests, such as a new name. Only
    /// `undrift call` sends them.
    #[serde(default)]
    pub edit_parameters: Vec<EditParameter>,
    /// Where the collection is: one path below projects, one below groups, or both.
    #[schemars(length(min = 1, max = 2))]
    pub homes: Vec<Home>,
}

/// How an entry is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Create {
    /// By POST to the collection.
    #[default]
    Post,
    /// By PUT to the path of the entry, with its identity in the path. The same request edits it.
    Put,
    /// By no request: entries come and go with something else, and are only edited. A declared one
    /// waits until it is there.
    Never,
}

/// How an entry is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// By PUT, with the fields that change.
    #[default]
    Put,
    /// By PATCH, with the fields that change.
    Patch,
    /// The service has no edit: the entry is removed and added again.
    Replace,
}

/// How request paths address an entry.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Entry {
    /// The response field whose value is in the path (default: `id`).
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub field: Option<String>,
    /// The name of this path argument in the documentation of the service (default: the noun and
    /// `_id`).
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"feature_flag_id")]
    pub argument: Option<String>,
    /// What it is, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: Option<String>,
    /// Fields that address an entry as query parameters, in a DELETE request to the path of the
    /// collection. Paths then have no argument for it.
    pub query: Vec<String>,
}

/// The section of the parent entries.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParentSection {
    /// The section whose collection is at the path before `:entry`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"pipeline_schedules")]
    pub section: String,
    /// The field of `identity` that names the parent entry. It is in no request.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"schedule")]
    pub field: String,
}

/// Where a collection is, in one scope.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Home {
    /// The path of the collection: `/projects/:id/` or `/groups/:id/`, followed by plain names.
    /// `:entry` between two of them stands for an entry of the section in `below`.
    #[schemars(example = &"/projects/:id/feature_flags")]
    pub path: String,
    /// The field of the parent entry's object that contains the whole list, if the service has no
    /// request for the list.
    #[serde(rename = "in")]
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"variables")]
    pub within: Option<String>,
    /// For lists that also show inherited entries: the value that an entry has if it belongs to the
    /// project or group itself.
    pub inherited_unless: Option<FieldValue>,
    /// Whether the list also shows the project or group itself (default: `false`).
    #[serde(default)]
    pub lists_itself: bool,
    /// Query parameters of the list request.
    #[serde(default)]
    pub query: Vec<QueryParameter>,
    /// Whether the list has pages (default: `true`). Otherwise one response contains all of it.
    #[serde(default = "is_usual")]
    pub paged: bool,
    /// The message of the 404 with which the service answers if the list is empty.
    pub empty_as: Option<String>,
    /// The lowest role to which the service shows every entry (default: `maintainer`).
    #[serde(default)]
    #[schemars(with = "Level")]
    pub seen_from: Option<Json>,
    /// Sets of settings of the project. While all of one set are `disabled`, the service refuses the
    /// list or shows an empty one, and changes nothing.
    #[serde(default)]
    pub closed_by: Vec<Vec<String>>,
    /// Whether only top-level groups have it (default: `false`).
    #[serde(default)]
    pub top_level: bool,
    /// The lowest tier of the service that has the collection.
    #[serde(default)]
    pub tier: Tier,
    /// The release of the service that added the collection, as text: `'16.2'`.
    pub since: Option<Release>,
}

const fn is_usual() -> bool {
    true
}

/// A parameter of the edit request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditParameter {
    /// The name of the parameter.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"new_name")]
    pub name: String,
    /// What it is, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: String,
}

/// A response field and its value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldValue {
    /// The name of the field in responses.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"kind")]
    pub field: String,
    /// The value.
    pub value: Scalar,
}

/// A query parameter of the list request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryParameter {
    /// The name of the parameter.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"include_ancestor_groups")]
    pub name: String,
    /// The value that undrift sends.
    pub value: Scalar,
    /// What it means, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: String,
}
