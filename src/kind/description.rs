//! The format of the files that describe kinds, and of their fields. What is read is used as it is: a
//! [`Kind`] with its [`Home`]s. Parts that follow from others are resolved once, after reading.
//!
//! Keys, types and words that are left out of the schema are only for files of undrift's own: a file
//! of a user with one of them is refused.

use std::{ops::Deref, sync::OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::{Absence, Handle, Place, Removal, Rules, Shape, Table, plain_text};
use crate::{
    field::{Accepted, Compare, Named, Needs, Scope, Stake, Tier, When},
    level::Level,
    operation::{Op, Read, Write},
    page::Rows,
    release::Release,
    value::Json,
};

/// A collection below groups or projects, managed as a section of manifests.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// The name of the section in manifests.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"feature_flags")]
    pub section: &'static str,
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

/// Which changes of a field weaken a protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weakens {
    /// None.
    Never,
    /// A flag changes to `false`.
    WhenOff,
    /// A flag changes to `true`.
    WhenOn,
    /// A number becomes lower.
    WhenLower,
    /// A number becomes higher.
    WhenHigher,
    /// A word changes to one that is later in `words`, or is cleared.
    WhenLater,
    /// The value changes.
    WhenChanged,
    /// More people get a grant. All entries for the same thing are judged together.
    WhenWider,
    /// Fewer approvals are required, or more people can give one.
    WhenFewer,
    /// A flag changes to `false`: the entry gives more away, or lets more in. Here and in the others
    /// that start with `opens`, removing the entry weakens nothing.
    OpensWhenOff,
    /// A flag changes to `true`.
    OpensWhenOn,
    /// The value changes.
    OpensWhenChanged,
    /// An address changes, and no secret is written with it: a stored one would be sent there.
    OpensWhenMoved,
    /// The value changes to one that names a URL or another project.
    #[schemars(skip)]
    OpensWhenOutside,
    /// The value is cleared.
    #[schemars(skip)]
    WhenCleared,
    /// A comma-separated list gets more items, or becomes empty, which means everything.
    #[schemars(skip)]
    WhenMoreListed,
    /// The rules of the kind decide.
    #[schemars(skip)]
    ByKind,
    /// No protection, but access: a change may give or take it away.
    #[schemars(skip)]
    Access,
    /// No protection: a change may show something to more people. The field is a visibility, a level
    /// of access or a flag.
    #[schemars(skip)]
    Shows,
}

impl From<&Field> for Stake {
    fn from(field: &Field) -> Self {
        let words = || match &field.strictest_first[..] {
            [] => field.words.iter().map(|word| word.word.clone().into()).collect(),
            values => values.iter().map(|value| plain_text(value).into()).collect(),
        };
        match field.weakens {
            Weakens::Never => Self::Nothing,
            Weakens::WhenWider | Weakens::WhenFewer | Weakens::ByKind => Self::ByKind,
            Weakens::Access => Self::Access,
            Weakens::Shows => Self::Shows,
            Weakens::WhenOff => Self::Weakens(When::Off),
            Weakens::WhenOn => Self::Weakens(When::On),
            Weakens::WhenLower => Self::Weakens(When::Lower),
            Weakens::WhenHigher => Self::Weakens(When::Higher),
            Weakens::WhenLater => Self::Weakens(When::Later(words())),
            Weakens::WhenChanged => Self::Weakens(When::Changed),
            Weakens::OpensWhenOff => Self::Opens(When::Off),
            Weakens::OpensWhenOn => Self::Opens(When::On),
            Weakens::OpensWhenChanged => Self::Opens(When::Changed),
            Weakens::OpensWhenMoved => Self::Opens(When::Moved),
            Weakens::OpensWhenOutside => Self::Opens(When::Outside),
            Weakens::WhenCleared => Self::Weakens(When::Cleared),
            Weakens::WhenMoreListed => Self::Weakens(When::Wider),
        }
    }
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
    /// For lists that also show inherited entries: the value that an entry has if it belongs to the
    /// project or group itself.
    pub inherited_unless: Option<FieldValue>,
    /// A flag that is on in inherited entries, in releases that show it.
    #[schemars(skip)]
    pub inherited_if: Option<&'static str>,
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
    pub empty_as: Option<&'static str>,
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
    /// Whether only top-level groups have it (default: `false`).
    #[serde(default)]
    pub top_level: bool,
    /// The lowest tier of the service that has the collection.
    #[serde(default)]
    pub tier: Tier,
    /// The release of the service that added the collection, as text: `'16.2'`.
    pub since: Option<Release>,
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
    pub table: OnceLock<&'static (dyn Deref<Target = Table> + Send + Sync)>,
}

/// The operations of a collection, by their ids.
#[derive(Clone, Debug, Default, Deserialize)]
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

/// Text, a number, `true` or `false`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, extend("type" = ["string", "integer", "boolean"]))]
pub struct Scalar(pub Json);

/// A field of an entry.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The name of the field in manifests.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"due_date")]
    pub name: String,
    /// What the field is, in a sentence or two.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: String,
    /// The type of its values.
    #[serde(rename = "type")]
    pub value: Value,
    /// Which changes of it weaken a protection: the guard `protection` asks before such a change.
    pub weakens: Weakens,
    /// The allowed words. Required for a `word`; for a `level` or `grants` only if not all levels
    /// are allowed.
    #[serde(default)]
    pub words: Vec<Word>,
    /// A regular expression that the text must match.
    pub pattern: Option<String>,
    /// The lowest allowed integer.
    pub minimum: Option<i64>,
    /// The highest allowed integer.
    pub maximum: Option<i64>,
    /// What its value names: a user by username, a group or project by path, or a runner by its
    /// description or id. Requests contain the id. Responses contain the id under the same name
    /// (`send_as`), or under `read_as` the name, or the URL of the page of a group.
    pub names: Option<Named>,
    /// An example.
    pub example: Option<Scalar>,
    /// Another example. Tests change the field to it.
    pub another_example: Option<Scalar>,
    /// What `grants` allow, and `approvals` are needed for, as a verb.
    #[schemars(regex(pattern = "^[a-z]+( [a-z]+)*$"), example = &"deploy")]
    pub lets: Option<String>,
    /// Whether `grants` can also name deploy keys of the project, by their titles (default: `false`).
    #[serde(default)]
    pub deploy_keys: bool,
    /// Another parameter for `grants` that consist of a single level, in the request that creates
    /// an entry.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub single_level_as: Option<String>,
    /// Whether only the create request accepts it (default: `false`).
    #[serde(default)]
    pub create_only: bool,
    /// The name in requests, if different.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub send_as: Option<String>,
    /// The name in responses, if different.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub read_as: Option<String>,
    /// Whether responses contain an object with the value in `value` (default: `false`). If its
    /// `locked` is true, the field is not compared.
    #[serde(default)]
    pub nested: bool,
    /// Whether responses leave it out (default: `false`). They always leave out a secret.
    #[serde(default)]
    pub write_only: bool,
    /// How declared and live values are compared (default: `exact`).
    #[serde(default)]
    pub compare: Compare,
    /// Whether `null` clears the field (default: `false`).
    #[serde(default)]
    pub nullable: bool,
    /// Whether plans hide the live value (default: `false`).
    #[serde(default)]
    pub sensitive: bool,
    /// Whether an edit without this field resets it, so that every edit must contain it (default:
    /// `false`).
    #[serde(default)]
    pub with_every_edit: bool,
    /// Another field. When it changes, the service resets this one.
    pub reset_by: Option<String>,
    /// The service's default for a new entry, if it is always the same. `export` leaves out this
    /// value.
    pub preset: Option<Scalar>,
    /// The value that undrift sends for a new entry that does not declare the field, because the
    /// service requires one.
    pub created_with: Option<Scalar>,
    /// Another field. The service refuses a request that contains both.
    pub not_with: Option<String>,
    /// Another field, a date: this one must not be before it.
    pub not_before: Option<String>,
    /// Whether no group above may have an entry with the same value (default: `false`).
    #[serde(default)]
    pub unique_above: bool,
    /// Whether the service refuses two entries with the same value (default: `false`).
    #[serde(default)]
    pub unique: bool,
    /// Whether entries with one identity share the value in all groups and projects (default: `false`).
    #[serde(default)]
    pub shared: bool,
    /// Whether its text must start with the path of the group or project (default: `false`).
    #[serde(default)]
    pub starts_with_path: bool,
    /// Whether the service strips white space from both ends (default: `false`).
    #[serde(default)]
    pub trimmed: bool,
    /// Whether the value is a regular expression in RE2 syntax (default: `false`).
    #[serde(default)]
    pub expression: bool,
    /// A flag that this field limits. If the service ignored the limit, the flag would do more than
    /// was declared. So a request that switches the flag on also contains this field, and the
    /// response must show it.
    pub limits: Option<String>,
    /// The only scope that has the field, if not both do. Two fields may have the same name, one in
    /// each scope.
    pub only: Option<Scope>,
    /// The lowest tier of the service that has the field.
    #[serde(default)]
    pub tier: Tier,
    /// The release of the service that added the field, as text: `'16.2'`.
    pub since: Option<Release>,
    /// The release of the service that removed the field, as text.
    pub until: Option<Release>,
    /// Whether every entry, mapping or row must have it.
    #[serde(default)]
    #[schemars(skip)]
    pub always: bool,
    /// The keys of a mapping, or of a row.
    #[schemars(skip)]
    pub keys: Option<Keys>,
    /// Whether the keys of the mapping are separate fields, called `mapping.key`.
    #[serde(default)]
    #[schemars(skip)]
    pub spread: bool,
    /// The minimum number of characters of a text, or of each text of a list.
    #[schemars(skip)]
    pub min_length: Option<u32>,
    /// The maximum number of characters of a text, or of each text of a list.
    pub max_length: Option<u32>,
    /// The minimum number of items of a list.
    #[schemars(skip)]
    pub min_items: Option<u32>,
    /// The maximum number of items of a list.
    #[schemars(skip)]
    pub max_items: Option<u32>,
    /// The only allowed integers.
    #[serde(default)]
    #[schemars(skip)]
    pub numbers: Vec<i64>,
    /// The value of an entry without the field, in manifests and requests.
    #[schemars(skip)]
    pub default: Option<Scalar>,
    /// For `when_later`: the words, or numbers, from the one that protects most, if `words` have
    /// another order.
    #[serde(default)]
    #[schemars(skip)]
    pub strictest_first: Vec<Json>,
    /// The requests that accept it, if not all that create or edit.
    #[serde(default)]
    #[schemars(skip)]
    pub accepted: Accepted,
    /// Whether only some installations show it. It is compared if the response contains it.
    #[serde(default)]
    #[schemars(skip)]
    pub read_if_present: bool,
    /// Whether only administrators may set it.
    #[serde(default)]
    #[schemars(skip)]
    pub administrators: bool,
    /// Whether only top-level groups have it.
    #[serde(default)]
    #[schemars(skip)]
    pub top_level: bool,
    /// Whether only undrift uses the field if the service is older than `since`.
    #[serde(default)]
    #[schemars(skip)]
    pub local_before: bool,
    /// The release since which the service only accepts ASCII text.
    #[schemars(skip)]
    pub ascii_from: Option<Release>,
    /// The field that replaces this deprecated one.
    #[schemars(skip)]
    pub replaced_by: Option<String>,
    /// Whether the replacing field has the opposite value.
    #[serde(default)]
    #[schemars(skip)]
    pub opposite: bool,
    /// Whether it is deprecated, and `about` names the fields that replace it.
    #[serde(default)]
    #[schemars(skip)]
    pub deprecated: bool,
    /// The field that must be on for this one to have an effect and to be shown.
    #[schemars(skip)]
    pub needs: Option<Needs>,
    /// Another level of access. The service refuses a wider level for this field.
    #[schemars(skip)]
    pub at_most: Option<String>,
    /// A flag. While it is `true`, responses contain `null` instead of this field's value.
    #[schemars(skip)]
    pub hidden_by: Option<String>,
    /// Whether the flag that it `limits` must not be declared as on without it.
    #[serde(default)]
    #[schemars(skip)]
    pub limit_required: bool,
    /// The section of the same container whose entries the value names.
    #[schemars(skip)]
    pub names_entries: Option<String>,
}

/// The keys of an entry, mapping or row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// What it is. A mapping within an entry has it in the `about` of its field.
    #[serde(default)]
    pub about: String,
    /// The keys.
    pub fields: Vec<Field>,
    /// The minimum number of keys.
    pub min_keys: Option<u32>,
    /// The maximum number of keys.
    pub max_keys: Option<u32>,
}

/// An allowed word.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// The word.
    #[schemars(length(min = 1))]
    pub word: String,
    /// What it means, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: String,
    /// The release that added it.
    #[schemars(skip)]
    pub since: Option<Release>,
    /// The release that removed it.
    #[schemars(skip)]
    pub until: Option<Release>,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Text.
    Text,
    /// One of `words`.
    Word,
    /// The name of a time zone.
    TimeZone,
    /// A cron expression: times that repeat.
    Cron,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A day, as `YYYY-MM-DD`.
    Date,
    /// A list of texts.
    Texts,
    /// A level of access: the highest level that the entry gives. Each change gives or takes away
    /// access, so `weakens` counts for nothing here.
    Level,
    /// A reference to a secret.
    Secret,
    /// A URL, or a reference to one that holds a credential. Credentials in it are never shown.
    Address,
    /// Who may do something: a list of levels, users and groups, edited by `id` and `_destroy`.
    Grants,
    /// Who must approve something: likewise, each with a number of approvals. A removal also names
    /// the level, user or group. Only for entries with `grants`.
    Approvals,
    /// Who may do something: a list of levels.
    #[schemars(skip)]
    LevelGrants,
    /// A level in a rule, which may also be nobody or administrators.
    #[schemars(skip)]
    RuleLevel,
    /// A list of URLs. Credentials in them are never shown.
    #[schemars(skip)]
    Addresses,
    /// Text, a number, a boolean or a list of these. The service makes text of it, but keeps lists.
    #[schemars(skip)]
    Plain,
    /// The path of a file to upload, as `{file: PATH}`.
    #[schemars(skip)]
    File,
    /// A mapping with `keys`.
    #[schemars(skip)]
    Mapping,
    /// A list of mappings with `keys`. An edit contains the rows to add and to remove.
    #[schemars(skip)]
    Rows,
}
