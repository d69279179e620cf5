//! What a file says of a collection.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    field::{Compare, Named, Scope, Stake, Tier, When},
    kind::Removal,
    level::Level,
    release::Release,
    value::Json,
};

/// A collection below groups or projects that becomes a section of manifests.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The section of manifests.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"milestones")]
    pub section: String,
    /// What one entry is called in a sentence. Operations for `undrift call` are named after it.
    #[schemars(regex(pattern = "^[a-z][a-z0-9]*( [a-z0-9]+)*$"), example = &"milestone")]
    pub noun: String,
    /// What an entry is, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"), example = &"A time in which nothing is deployed.")]
    pub about: String,
    /// The fields that tell two entries apart, in the order in which addresses show them.
    #[schemars(length(min = 1))]
    pub identity: Vec<String>,
    /// The field by which the service keeps a name of an entry. It goes before the identity.
    #[serde(default)]
    pub called: Option<String>,
    /// The fields, besides the identity, without which an entry cannot be created.
    #[serde(default)]
    pub required: Vec<String>,
    /// What removing an entry does that guards ask about: `access` where a field is a `level`.
    pub removal: Removal,
    /// The flags that give access: the guard `protection` asks about a new entry with one, too.
    #[serde(default)]
    pub grants: Vec<String>,
    /// Whether the service refuses a second entry with the same identity (default: `false`).
    #[serde(default)]
    pub unique: bool,
    /// Whether the answer to a write shows the entry as reading it does, so that it need not be read
    /// back (default: `false`).
    #[serde(default)]
    pub answers_show_it: bool,
    /// Whether the service answers 401, as to a wrong token, to who may not, or where it has this
    /// switched off (default: `false`).
    #[serde(default)]
    pub denies_with_401: bool,
    /// How an entry is added (default: `post`).
    #[serde(default)]
    pub create: Create,
    /// How an entry changes (default: `put`).
    #[serde(default)]
    pub edit: Edit,
    /// What names an entry in its path.
    #[serde(default)]
    pub entry: Entry,
    /// The act that the service wants before it removes an entry: a POST to this name behind the
    /// entry's path.
    #[serde(default)]
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"stop")]
    pub before_removal: Option<String>,
    /// The fields of an entry.
    #[schemars(length(min = 1))]
    pub fields: Vec<Field>,
    /// What an edit takes besides and no manifest says, such as a new name.
    #[serde(default)]
    pub edit_takes_besides: Vec<Besides>,
    /// Where the collection is: one path below projects, one below groups, or both.
    #[schemars(length(min = 1, max = 2))]
    pub homes: Vec<Home>,
}

/// Which changes of a field protect less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weakens {
    /// None.
    Never,
    /// A flag that is switched off.
    WhenOff,
    /// A flag that is switched on.
    WhenOn,
    /// A lower number.
    WhenLower,
    /// A higher number.
    WhenHigher,
    /// Anything else than before.
    WhenChanged,
    /// Grants to more people, by all entries about the same thing together.
    WhenWider,
}

impl From<Weakens> for Stake {
    fn from(weakens: Weakens) -> Self {
        Self::Weakens(match weakens {
            Weakens::Never => return Self::Nothing,
            Weakens::WhenWider => return Self::ByKind,
            Weakens::WhenOff => When::Off,
            Weakens::WhenOn => When::On,
            Weakens::WhenLower => When::Lower,
            Weakens::WhenHigher => When::Higher,
            Weakens::WhenChanged => When::Changed,
        })
    }
}

/// How an entry is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Create {
    /// By POST to the collection.
    #[default]
    Post,
    /// By PUT to the entry's own path, which its identity names: the request that edits one adds it.
    Put,
}

/// How an entry changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// By PUT, with the fields that change.
    #[default]
    Put,
    /// The service has no edit: an entry is removed and added anew.
    Replace,
}

/// What names an entry in its path.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Entry {
    /// The field of the service's answer that does (default: `id`).
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub field: Option<String>,
    /// What the service's documentation calls it in paths (default: the noun and `_id`).
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"milestone_id")]
    pub argument: Option<String>,
    /// What it is, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: Option<String>,
}

/// A collection of projects or groups.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Home {
    /// The path of the collection: `/projects/:id/` or `/groups/:id/` and plain names.
    #[schemars(example = &"/projects/:id/milestones")]
    pub path: String,
    /// What an entry has that is the project's or the group's own, where the list also shows what is
    /// inherited.
    #[serde(default)]
    pub own: Option<Own>,
    /// What the list is asked besides, so that it holds what is wanted.
    #[serde(default)]
    pub query: Vec<Asked>,
    /// Whether the list comes page by page (default: `true`). Otherwise one answer is all of it.
    #[serde(default = "is_paged")]
    pub paged: bool,
    /// The role from which on the service shows every entry (default: `maintainer`).
    #[serde(default)]
    #[schemars(with = "Level")]
    pub seen_from: Option<Json>,
    /// The settings of the project that close the list when they are all `disabled`: it is then
    /// empty, whatever is there.
    #[serde(default)]
    pub closed_by: Vec<String>,
    /// The lowest tier of the service that has it.
    #[serde(default)]
    pub tier: Tier,
    /// The release of the service that brought it, as text: `'16.2'`.
    #[serde(default)]
    pub since: Option<Release>,
}

const fn is_paged() -> bool {
    true
}

/// What an edit takes besides.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Besides {
    /// Its name.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"new_name")]
    pub name: String,
    /// What it is, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: String,
}

/// What tells that an entry is the project's or the group's own.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Own {
    /// The field of the service's answer.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"kind")]
    pub field: String,
    /// What it holds then.
    pub value: Scalar,
}

/// What a list is asked.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The name of the parameter.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"include_ancestor_groups")]
    pub name: String,
    /// What undrift says.
    pub value: Scalar,
    /// What it means, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: String,
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
    /// Its name in manifests.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"due_date")]
    pub name: String,
    /// What it is, in a sentence or two.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: String,
    /// What may be written.
    #[serde(rename = "type")]
    pub value: Value,
    /// Which changes of it protect less, so that the guard `protection` asks about them.
    pub weakens: Weakens,
    /// The words of a `word`, or those of a `level` or of `grants` if not all that there are.
    #[serde(default)]
    pub words: Vec<Word>,
    /// A regular expression that text has to match.
    #[serde(default)]
    pub pattern: Option<String>,
    /// The least that an integer may be.
    #[serde(default)]
    pub minimum: Option<i64>,
    /// The most that an integer may be.
    #[serde(default)]
    pub maximum: Option<i64>,
    /// What it names: a user by username, a group or a project by its path. Requests have the id, and
    /// so have answers, under the same name (`send_as`), unless `read_as` is where they have the name.
    #[serde(default)]
    pub names: Option<Named>,
    /// An example.
    #[serde(default)]
    pub example: Option<Scalar>,
    /// Another one, to which it may change.
    #[serde(default)]
    pub another_example: Option<Scalar>,
    /// What `grants` let people do, as a verb.
    #[serde(default)]
    #[schemars(regex(pattern = "^[a-z]+( [a-z]+)*$"), example = &"deploy")]
    pub lets: Option<String>,
    /// The parameter by which a new entry says `grants` that are a single level, if that is another
    /// one.
    #[serde(default)]
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub alone_as: Option<String>,
    /// Whether only the request that creates an entry takes it (default: `false`).
    #[serde(default)]
    pub create_only: bool,
    /// The name that requests have for it, if it is another one.
    #[serde(default)]
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub send_as: Option<String>,
    /// The name that answers have for it, if it is another one.
    #[serde(default)]
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub read_as: Option<String>,
    /// Whether answers leave it out (default: `false`). A secret is always left out.
    #[serde(default)]
    pub write_only: bool,
    /// How what is declared and what is there are compared (default: `exact`).
    #[serde(default)]
    pub compare: Compare,
    /// Whether `null` clears it (default: `false`).
    #[serde(default)]
    pub nullable: bool,
    /// Whether plans hide what is there (default: `false`).
    #[serde(default)]
    pub sensitive: bool,
    /// Whether an edit that leaves it out resets it, so that every edit has to carry it (default:
    /// `false`).
    #[serde(default)]
    pub with_every_edit: bool,
    /// The field whose change makes the service forget this one.
    #[serde(default)]
    pub forgotten_with: Option<String>,
    /// What the service gives a new entry that leaves it out, if that is always the same: `export`
    /// leaves such a value out.
    #[serde(default)]
    pub preset: Option<Scalar>,
    /// What undrift sends where a new entry leaves it out, because the service does not do without.
    #[serde(default)]
    pub created_with: Option<Scalar>,
    /// The field beside which the service refuses it in one request, whatever the two say.
    #[serde(default)]
    pub not_with: Option<String>,
    /// Whether the service takes white space away from both ends of it (default: `false`).
    #[serde(default)]
    pub trimmed: bool,
    /// Whether it is a regular expression, in the syntax of RE2 (default: `false`).
    #[serde(default)]
    pub expression: bool,
    /// The field that means more than was declared if the service drops this one: a request that
    /// switches it on carries this one too, and its answer has to show it.
    #[serde(default)]
    pub limits: Option<String>,
    /// The only scope that has it, if not both do.
    #[serde(default)]
    pub only: Option<Scope>,
    /// The lowest tier of the service that has it.
    #[serde(default)]
    pub tier: Tier,
    /// The release of the service that brought it, as text: `'16.2'`.
    #[serde(default)]
    pub since: Option<Release>,
    /// The release of the service from which on it is gone, as text.
    #[serde(default)]
    pub until: Option<Release>,
}

/// A word that may be written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// The word.
    #[schemars(length(min = 1))]
    pub word: String,
    /// What it means, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: String,
}

/// What may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Text.
    Text,
    /// One of `words`.
    Word,
    /// The name of a time zone.
    TimeZone,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A day, as `YYYY-MM-DD`.
    Date,
    /// A list of texts.
    Texts,
    /// A level of access: the most that whoever the entry names may do.
    Level,
    /// A reference to a secret.
    Secret,
    /// A URL, or a reference to one that holds a credential. Credentials in it are never shown.
    Address,
    /// Whom something is granted: a list of levels, users and groups, edited by `id` and `_destroy`.
    Grants,
}
