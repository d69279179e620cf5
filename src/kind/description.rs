//! The format of the files that describe kinds. What is read is used as it is: a [`Kind`] with its
//! [`Home`]s and [`Field`]s. Parts that follow from others are resolved once, after reading.
//!
//! Keys, types and words that are left out of the schema are only for files of undrift's own: a file
//! of a user with one of them is refused.

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::{Absence, Handle, Place, Removal, Rules, Section, Shape, Table};
use crate::{
    field::{Available, Field, Keys, Scalar, Scope},
    level::Level,
    operation::{Op, Read, Write},
    page::Rows,
    value::Json,
};

/// A collection below groups or projects, managed as a section of manifests.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// The name of the section in manifests.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"feature_flags")]
    pub section: &'static str,
    /// Other names for it, for which check suggests the right one.
    #[serde(default)]
    #[schemars(inner(regex(pattern = "^[a-z][a-z0-9_]*$")), example = &["feature_toggles"])]
    pub aliases: Vec<&'static str>,
    /// The noun for one entry. The operations of `undrift call` are named after it.
    #[schemars(regex(pattern = "^[a-z][a-z0-9]*( [a-z0-9]+)*$"), example = &"feature flag")]
    pub noun: &'static str,
    /// What an entry is, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"), example = &"A time in which nothing is deployed.")]
    pub about: &'static str,
    /// How the section is written.
    #[serde(default)]
    #[schemars(skip)]
    pub shape: Shape,
    /// The fields that identify an entry, in the order in which addresses show them.
    #[serde(default, deserialize_with = "kept")]
    pub identity: &'static [&'static str],
    /// Fields of the identity of which each entry has exactly one.
    #[serde(default, deserialize_with = "kept")]
    pub either: &'static [&'static str],
    /// Whether it is a single object that always exists, instead of a collection: it has no
    /// `identity`, and is only read and edited (default: `false`).
    #[serde(default)]
    pub document: bool,
    /// The field with the name that the service stores. An entry is found by this name first, then
    /// by its identity.
    pub name_field: Option<&'static str>,
    /// The field by which entries of other sections name an entry (default: its identity).
    pub called_by: Option<&'static str>,
    /// The fields, in addition to the identity, that creating an entry needs.
    #[serde(default, deserialize_with = "kept")]
    pub required: &'static [&'static str],
    /// What guards check when an entry is removed. Must be `access` if a field is a `level`.
    pub removal: Removal,
    /// Fields that give access if they are set and not `false`. The guard `protection` also asks
    /// before an entry with one of them is created.
    #[serde(default, deserialize_with = "kept")]
    pub grants: &'static [&'static str],
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
    pub entry: EntryPath,
    /// How a single entry is read, if the list shows only a part of each.
    #[schemars(skip)]
    pub detail: Option<Detail>,
    /// The section of the parent entries, if the paths of `homes` contain `:entry`.
    pub below: Option<Parent>,
    /// An action that the service requires before it deletes an entry: the last part of the path of
    /// a POST request, after the path of the entry, and a parameter if it needs one.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*(\\?[a-z][a-z0-9_]*=[a-z0-9_]+)?$"), example = &"stop?force=true")]
    pub before_removal: Option<&'static str>,
    /// The fields of an entry.
    #[schemars(length(min = 1))]
    pub fields: Vec<Field>,
    /// Fields of responses that manifests do not have. `export` names those that are set.
    #[serde(default, deserialize_with = "kept")]
    pub unmanaged: &'static [&'static str],
    /// Fields of responses that the rules in Rust read and that are not in `fields`.
    #[serde(default, deserialize_with = "kept")]
    #[schemars(skip)]
    pub looked_at: &'static [&'static str],
    /// Parameters of the edit request that are not fields of manifests, such as a new name. Only
    /// `undrift call` sends them.
    #[serde(default)]
    pub edit_parameters: Vec<EditParameter>,
    /// Where the collection is: one path below projects, one below groups, or both.
    #[schemars(length(min = 1, max = 2))]
    pub homes: Vec<Home>,
    /// The name of the rules in Rust, for behaviour that data cannot express.
    #[schemars(skip)]
    pub hooks: Option<&'static str>,
    /// The rules, those in Rust or plain ones.
    #[serde(skip, default = "no_rules")]
    pub rules: &'static dyn Rules,
    /// Makes the table of a home.
    #[serde(skip, default = "no_table")]
    pub make_table: fn(Section) -> Table,
}

/// A list that lives as long as the program, like all that describes kinds.
fn kept<D: Deserializer<'static>, T: Deserialize<'static>>(
    list: D,
) -> Result<&'static [T], D::Error> {
    Vec::deserialize(list).map(|list| &*list.leak())
}

/// The rules until those of the kind are found.
fn no_rules() -> &'static dyn Rules {
    struct None;
    impl Rules for None {}
    &None
}

/// The table until that of the kind is known.
fn no_table() -> fn(Section) -> Table {
    |_| Table::new(Keys::default())
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
    /// Together with its container.
    #[schemars(skip)]
    WithContainer,
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
    /// By an edit, or by removing it and adding it again where the edit of the service does not
    /// suffice. [`Rules::calls`] decides.
    #[schemars(skip)]
    OrReplace,
}

/// How request paths address an entry.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EntryPath {
    /// The response field whose value is in the path (default: `id`).
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub field: Option<&'static str>,
    /// The name of this path argument in the documentation of the service (default: the noun and
    /// `_id`).
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"feature_flag_id")]
    pub argument: Option<&'static str>,
    /// What it is, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: Option<&'static str>,
    /// Fields that address an entry as query parameters, in a DELETE request to the path of the
    /// collection. Paths then have no argument for it.
    #[serde(deserialize_with = "kept")]
    pub query: &'static [&'static str],
    /// Fields that address an entry in `filter[FIELD]`, beside the path.
    #[schemars(skip)]
    #[serde(deserialize_with = "kept")]
    pub filter: &'static [&'static str],
    /// The response fields that tell entries apart, if not those that address them. Entries of
    /// other sections name an entry by an `id` among them.
    #[schemars(skip)]
    #[serde(deserialize_with = "kept")]
    pub keys: &'static [&'static str],
    /// The other response fields that each entry has, if not those of `identity`.
    #[schemars(skip)]
    #[serde(deserialize_with = "kept")]
    pub shows: &'static [&'static str],
}

/// How a single entry is read.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Detail {
    /// The field of the response that contains further fields of the entry; empty if they are beside
    /// the others.
    pub nested: &'static str,
    /// The fields that only this request shows: it is sent for every entry, but only if one of them is
    /// declared. Empty if it is sent for each declared entry.
    #[serde(deserialize_with = "kept")]
    pub fields: &'static [&'static str],
}

/// The section of the parent entries.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parent {
    /// The section whose collection is at the path before `:entry`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"pipeline_schedules")]
    pub section: &'static str,
    /// The field of `identity` that names the parent entry. It is in no request.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"schedule")]
    pub field: &'static str,
    /// The path argument for the id of the parent.
    #[serde(skip)]
    pub argument: &'static str,
}

/// Where a collection is, in one scope.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Home {
    /// The path of the collection: `/projects/:id/` or `/groups/:id/`, followed by plain names.
    /// `:entry` between two of them stands for an entry of the section in `below`.
    #[schemars(example = &"/projects/:id/feature_flags")]
    pub path: &'static str,
    /// The field of the parent entry's object that contains the whole list, if the service has no
    /// request for the list.
    #[serde(rename = "in")]
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"variables")]
    pub within: Option<&'static str>,
    /// For a single object in `in`: a field that only containers with such an object have.
    #[schemars(skip)]
    pub sign: Option<&'static str>,
    /// How the list is read.
    #[serde(default)]
    pub list: List,
    /// How the service shows that a single object is absent.
    #[serde(default)]
    #[schemars(skip)]
    pub absent_as: Absence,
    /// The lowest role to which the service shows every entry (default: `maintainer`).
    #[serde(default, deserialize_with = "level")]
    #[schemars(with = "Level")]
    pub seen_from: Option<u8>,
    /// Sets of settings of the project. While all of one set are `disabled`, the service refuses the
    /// list or shows an empty one, and changes nothing.
    #[serde(default)]
    pub closed_by: Vec<Vec<&'static str>>,
    /// Where the service has it.
    #[serde(default)]
    pub available: Available,
    /// The operations, if they are in the table of operations; else they follow from the path.
    #[serde(default)]
    #[schemars(skip)]
    pub operations: Operations,
    /// The scope, which follows from `path`.
    #[serde(skip, default = "of_projects")]
    pub scope: Scope,
    /// Where live entries are.
    #[serde(skip)]
    pub place: Place,
    /// The parent of each entry, an entry of another section; `place` is then read below each parent.
    #[serde(skip)]
    pub parent: Option<&'static Parent>,
    /// The fields that address an entry in requests. The first is its handle.
    #[serde(skip)]
    pub handle: Vec<Handle>,
    /// The keys that identify a live entry, and the other keys that each must have because matching
    /// needs them. All are names in responses.
    #[serde(skip)]
    pub rows: Rows,
    /// Whether the users and groups that its entries name need access.
    #[serde(skip)]
    pub names_people: bool,
    /// The fields of an entry here, made when they are first needed.
    #[serde(skip)]
    pub table: OnceLock<&'static Table>,
}

/// How a list is read.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct List {
    /// Query parameters of the request.
    pub query: Vec<QueryParameter>,
    /// Whether one response contains the whole list, without pages (default: `false`).
    pub whole: bool,
    /// The message of the 404 with which the service answers if the list is empty.
    pub empty_as: Option<&'static str>,
    /// Whether the list also shows the project or group itself (default: `false`).
    pub itself: bool,
    /// For lists that also show inherited entries: the value that an entry has if it belongs to the
    /// project or group itself.
    pub inherited_unless: Option<FieldValue>,
    /// A flag that is on in inherited entries, in releases that show it.
    #[schemars(skip)]
    pub inherited_if: Option<&'static str>,
}

/// The operations of a collection, by their ids.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Operations {
    /// Reads all entries.
    pub list: Option<Op<Read>>,
    /// Reads one entry.
    pub get: Option<Op<Read>>,
    /// Creates an entry.
    pub create: Option<Op<Write>>,
    /// Edits an entry.
    pub edit: Option<Op<Write>>,
    /// Removes an entry; missing if undrift never removes one.
    pub delete: Option<Op<Write>>,
    /// Further operations, which the rules send.
    pub others: Vec<Op<Write>>,
}

fn level<'de, D: Deserializer<'de>>(level: D) -> Result<Option<u8>, D::Error> {
    let written = Json::deserialize(level)?;
    let known = Level::parse(&written).ok_or_else(|| serde::de::Error::custom("no such level"));
    known.map(|level| Some(level.number))
}

const fn is_usual() -> bool {
    true
}

const fn of_projects() -> Scope {
    Scope::Project
}

/// A parameter of the edit request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditParameter {
    /// The name of the parameter.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"new_name")]
    pub name: &'static str,
    /// What it is, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: &'static str,
}

/// A response field and its value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldValue {
    /// The name of the field in responses.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"kind")]
    pub field: &'static str,
    /// The value.
    pub value: Scalar,
}

/// A query parameter of the list request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryParameter {
    /// The name of the parameter.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"include_ancestor_groups")]
    pub name: &'static str,
    /// The value that undrift sends.
    pub value: Scalar,
    /// What it means, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: &'static str,
}
