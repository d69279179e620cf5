//! A field of a kind: what it is, and how the API treats it.
//!
//! Each kind lists its fields in YAML (`kind/description.rs`). [`Field`] is the format of such an entry, and what the program
//! uses: checks, request bodies, diff, guards, the published schema and the reference page. The file is
//! long because it lists every property that a field can have.
//!
//! ```yaml
//! - name: public_builds
//!   about: Whether people who are not members may see jobs.
//!   type: boolean
//!   weakens: shows
//!   read: {as: public_jobs}
//! ```
//!
//! The default is the common case: accepted on create and edit, shown under its own name, in every
//! tier, not nullable. There is no default for the effect of a change: see [`Weakens`]. Keys, types and
//! words that are left out of the schema are only for the files of undrift: a file of a user with one
//! of them is refused.

use std::sync::{LazyLock, PoisonError, RwLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    release::Release,
    value::{Json, Object},
};

/// The schema keyword that carries the number of a [`Field`]. It is not published.
const KEYWORD: &str = "x-undrift";

/// The keyword of a schema for what else its property, or the section of its entries, is called. It
/// is not published.
pub const ALIASES: &str = "x-aliases";

/// An example of other names.
const DEADLINE: [&str; 1] = ["deadline"];

/// What precedes the name of a field that replaces a deprecated one and has the opposite value.
const OPPOSITE: &str = "not ";

/// The fields whose numbers schemas carry.
static MARKED: RwLock<Vec<&'static Field>> = RwLock::new(Vec::new());

/// A field of an entry, of a mapping, or of a row of a list.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The name of the field in manifests.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"due_date")]
    pub name: &'static str,
    /// Other names for it, for which check suggests the right one.
    #[serde(default)]
    #[schemars(inner(regex(pattern = "^[a-z][a-z0-9_]*$")), example = DEADLINE)]
    pub aliases: Vec<&'static str>,
    /// What the field is, in a sentence or two.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: &'static str,
    /// The type of its values.
    #[serde(rename = "type")]
    pub value_type: ValueType,
    /// Which changes of it weaken a protection: the guard `protection` asks before such a change.
    pub weakens: Weakens,
    /// The allowed words. Required for a `word`; for a `level` or `grants` only if not all levels
    /// are allowed.
    #[serde(default)]
    pub words: Vec<Word>,
    /// Which values are valid, beyond the type.
    #[serde(default)]
    pub valid: Valid,
    /// What its value names: a user by username, a group or project by path, or a runner by its
    /// description or id. Requests contain the id. Responses contain the id under the same name
    /// (`send_as`), or under the name in `read` the name, or the URL of the page of a group.
    pub names: Option<Named>,
    /// Examples: the first one is shown, and tests change the field to the second one.
    #[serde(default)]
    #[schemars(with = "Vec<Scalar>", length(min = 1, max = 2))]
    pub examples: Vec<Json>,
    /// More about `grants` and `approvals`.
    #[serde(default)]
    pub grants: Grants,
    /// The requests that accept it (default: `always`).
    #[serde(default)]
    pub accepted: Accepted,
    /// The name in requests, if different.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub send_as: Option<&'static str>,
    /// How responses show it (default: `same`; a secret is `never` shown).
    #[serde(default)]
    pub read: Readback,
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
    /// The values that stand for a missing one.
    #[serde(default)]
    pub default: Defaults,
    /// How it depends on other fields, which it names.
    #[serde(default)]
    pub relations: Relations,
    /// What an equal value of another entry means (default: `nothing`).
    #[serde(default)]
    pub among: Among,
    /// Where the service has it.
    #[serde(default)]
    pub available: Available,
    /// Where it must be (default: `nowhere`; a field of `identity` is in every entry).
    #[serde(default)]
    pub required: Required,
    /// The keys of a mapping, or of a row.
    #[serde(default)]
    #[schemars(skip)]
    pub keys: Vec<Field>,
    /// What to use instead of a deprecated field: the name of another field, `not` and the name of a
    /// field with the opposite value, or `several`, which `about` names.
    #[schemars(skip)]
    pub deprecated: Option<&'static str>,
}

/// Where a field must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Required {
    /// Nowhere.
    #[default]
    Nowhere,
    /// In an entry that is created.
    OnCreate,
    /// In every entry, mapping or row.
    #[schemars(skip)]
    Always,
    /// Where the field that it limits is on, because the default limit of the service is everything.
    #[schemars(skip)]
    WithLimited,
}

/// Which values are valid.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Valid {
    /// A regular expression that the text must match.
    pub pattern: Option<&'static str>,
    /// The limits of an integer, or of the number of characters of a text or of each text of a list.
    pub size: Range,
    /// The limits of the number of items of a list, or of keys of a mapping.
    #[schemars(skip)]
    pub items: Range,
    /// The only allowed integers.
    #[schemars(skip)]
    pub numbers: Vec<i64>,
    /// Whether the text must start with the path of the group or project (default: `false`).
    pub starts_with_path: bool,
    /// The release since which the service only accepts ASCII text.
    #[schemars(skip)]
    pub ascii_from: Option<Release>,
}

/// A lowest and a highest number, as `1..255`. Either may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(inline, description = "")]
#[schemars(extend("pattern" = r"^(-?[0-9]+\.\.(-?[0-9]+)?|\.\.-?[0-9]+)$", "examples" = ["1..255"]))]
pub struct Range {
    /// The lowest number.
    pub min: Option<i64>,
    /// The highest number.
    pub max: Option<i64>,
}

impl TryFrom<String> for Range {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = "a range has two numbers, such as `1..255`; either may be missing";
        let (min, max) = text.split_once("..").ok_or(wrong)?;
        let limit = |text: &str| match text {
            "" => Ok(None),
            number => number.parse().map(Some).map_err(|_| wrong),
        };
        Ok(Self { min: limit(min)?, max: limit(max)? })
    }
}

/// More about a list of who may do something.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Grants {
    /// What `grants` allow, and `approvals` are needed for, as a verb.
    #[schemars(regex(pattern = "^[a-z]+( [a-z]+)*$"), example = &"deploy")]
    pub lets: Option<&'static str>,
    /// Whether `grants` can also name deploy keys of the project, by their titles (default: `false`).
    pub deploy_keys: bool,
    /// Another parameter for `grants` that consist of a single level, in the request that creates
    /// an entry.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub single_level_as: Option<&'static str>,
}

/// The values that stand for a missing one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    /// The service's default for a new entry, if it is always the same. `export` leaves out this
    /// value.
    #[schemars(with = "Option<Scalar>")]
    pub service: Option<Json>,
    /// The value that undrift sends for a new entry that does not declare the field, because the
    /// service requires one.
    #[schemars(with = "Option<Scalar>")]
    pub create: Option<Json>,
    /// The value of an entry without the field, in manifests and requests.
    #[schemars(skip)]
    pub manifest: Option<Json>,
}

/// How a field depends on others. All but the last name another field of the same entry or mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Relations {
    /// When that field changes, the service resets this one.
    pub reset_by: Option<&'static str>,
    /// The service refuses a request that contains both.
    pub not_with: Option<&'static str>,
    /// That field is a date, and this one must not be before it.
    pub not_before: Option<&'static str>,
    /// A flag that this field limits. If the service ignored the limit, the flag would do more than
    /// was declared. So a request that switches the flag on also contains this field, and the
    /// response must show it.
    pub limits: Option<&'static str>,
    /// The field that must be on for this one to have an effect and to be shown.
    #[schemars(skip)]
    pub needs: Option<&'static str>,
    /// Likewise, and requests must contain both: the service refuses or ignores one alone.
    #[schemars(skip)]
    pub sent_with: Option<&'static str>,
    /// Another level of access. The service refuses a wider level for this field.
    #[schemars(skip)]
    pub at_most: Option<&'static str>,
    /// A flag. While it is `true`, responses contain `null` instead of this field's value.
    #[schemars(skip)]
    pub hidden_by: Option<&'static str>,
    /// The section of the same container whose entries the value names.
    #[schemars(skip)]
    pub names_entries: Option<&'static str>,
}

impl Relations {
    /// The field that must be on for this one to have an effect.
    pub fn switch(&self) -> Option<&'static str> {
        self.needs.or(self.sent_with)
    }
}

/// What an equal value of another entry means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Among {
    /// Nothing.
    #[default]
    Nothing,
    /// The service refuses the second entry.
    Unique,
    /// No group above may have an entry with the same value.
    UniqueAbove,
    /// Entries with one identity share the value in all groups and projects.
    Shared,
}

/// Where the service has something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Available {
    /// Who or what has it, if not everybody or everything. Two fields may have the same name, one for
    /// each scope.
    pub only: Only,
    /// The lowest tier of the service that has it.
    pub tier: Tier,
    /// The release of the service that added it, as text: `'16.2'`.
    pub since: Option<Release>,
    /// The release of the service that removed it, as text.
    pub until: Option<Release>,
    /// Whether only undrift uses it if the service is older than `since`.
    #[schemars(skip)]
    pub local_before: bool,
}

impl Available {
    /// The only scope that has it.
    pub const fn scope(self) -> Option<Scope> {
        match self.only {
            Only::Group => Some(Scope::Group),
            Only::Project => Some(Scope::Project),
            _ => None,
        }
    }

    /// Whether only top-level groups have it.
    pub const fn is_of_top(self) -> bool {
        matches!(self.only, Only::TopLevel | Only::TopLevelAdministrators)
    }

    /// Whether only administrators may set it.
    pub const fn is_for_administrators(self) -> bool {
        matches!(self.only, Only::Administrators | Only::TopLevelAdministrators)
    }
}

/// Who or what has something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Only {
    /// Everybody and everything.
    #[default]
    All,
    /// Groups.
    Group,
    /// Projects.
    Project,
    /// Top-level groups.
    TopLevel,
    /// Administrators.
    #[schemars(skip)]
    Administrators,
    /// Administrators, in top-level groups.
    #[schemars(skip)]
    TopLevelAdministrators,
}

/// An allowed word.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// The word.
    #[schemars(length(min = 1))]
    pub word: &'static str,
    /// What it means, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: &'static str,
    /// The release that added it.
    #[schemars(skip)]
    pub since: Option<Release>,
    /// The release that removed it.
    #[schemars(skip)]
    pub until: Option<Release>,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValueType {
    /// Text.
    #[default]
    Text,
    /// A regular expression in RE2 syntax.
    Expression,
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
    /// A mapping whose `keys` are separate fields, called `mapping.key`.
    #[schemars(skip)]
    Spread,
    /// A list of mappings with `keys`. An edit contains the rows to add and to remove.
    #[schemars(skip)]
    Rows,
}

/// Which changes of a field weaken a protection.
// `null` and empty text count as unset; an unknown value counts as the strictest.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weakens {
    /// None.
    #[default]
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
    /// A word or number changes to one that is later in this list, or is cleared.
    #[schemars(skip)]
    WhenLaterIn(Vec<Json>),
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

/// Text, a number, `true` or `false`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, extend("type" = ["string", "integer", "boolean"]))]
pub struct Scalar(pub Json);

/// What guards ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk {
    /// A protection of the group or project becomes weaker, as by removing the entry.
    Weakens,
    /// Something outside gets a way in, or content a way out. A new entry is judged too, also in a
    /// new container, whose settings are not; removing it closes the way.
    Opens,
    /// A part becomes visible to more people.
    Shows,
}

impl Weakens {
    /// What guards ask about in some changes of the field, comparing its values; `None` if they ask
    /// nothing, or decide by [`crate::kind::Rules::effects`].
    pub const fn risk(&self) -> Option<Risk> {
        match self {
            Self::Never | Self::Access | Self::WhenWider | Self::WhenFewer | Self::ByKind => None,
            Self::Shows => Some(Risk::Shows),
            Self::OpensWhenOff
            | Self::OpensWhenOn
            | Self::OpensWhenChanged
            | Self::OpensWhenMoved
            | Self::OpensWhenOutside => Some(Risk::Opens),
            _ => Some(Risk::Weakens),
        }
    }
}

/// Whether a limited field with this value is on: unless it is `false` or unset.
pub fn is_on(limited: &Json) -> bool {
    !matches!(limited, Json::Null | Json::Bool(false)) && limited != ""
}

/// What a document is about: a group or a project.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// A group.
    Group,
    /// A project.
    Project,
}

impl Scope {
    /// Every scope, in the order of reports.
    pub const ALL: [Self; 2] = [Self::Group, Self::Project];

    /// What is for this scope, of one thing for groups and one for projects.
    pub const fn of<T: Copy>(self, group: T, project: T) -> T {
        match self {
            Self::Group => group,
            Self::Project => project,
        }
    }

    /// The noun, which is also in the paths of operations.
    pub const fn noun(self) -> &'static str {
        self.of("group", "project")
    }

    /// The `kind` of its documents.
    pub const fn document(self) -> &'static str {
        self.of("Group", "Project")
    }
}

/// The sort of thing that a field names.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Named {
    /// A user, by username.
    User,
    /// A group, by its full path.
    Group,
    /// A project, by its full path.
    Project,
    /// A runner of projects, by its description or its id.
    Runner,
    /// A custom role, by its name.
    Role,
}

impl Named {
    /// The noun.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Runner => "runner",
            Self::Role => "custom role",
            _ => self.scope().map_or("user", Scope::noun),
        }
    }

    /// The scope whose documents declare it; users, runners and roles have none.
    pub const fn scope(self) -> Option<Scope> {
        match self {
            Self::User | Self::Runner | Self::Role => None,
            Self::Group => Some(Scope::Group),
            Self::Project => Some(Scope::Project),
        }
    }
}

/// The requests that accept a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Accepted {
    /// Create, create for a user, and edit.
    #[default]
    Always,
    /// Create and create for a user: it cannot be changed later.
    OnCreate,
    /// Create only, and not for a user.
    #[schemars(skip)]
    OnOwnCreate,
    /// Create for a user and edit.
    #[schemars(skip)]
    OnCreateForUserAndEdit,
    /// Create and edit, but not create for a user.
    #[schemars(skip)]
    OnOwnCreateAndEdit,
    /// Edit only.
    #[schemars(skip)]
    OnEdit,
    /// Edit, but only with `undrift call`: it is no field of manifests.
    ByCall,
    /// None: it steers undrift and is never sent.
    #[schemars(skip)]
    Never,
}

/// A request that can contain fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The create request.
    Create,
    /// The request that creates a project for another user.
    CreateForUser,
    /// The edit request.
    Edit,
}

impl Accepted {
    /// Whether `route` accepts the field.
    pub const fn on(self, route: Route) -> bool {
        match self {
            Self::Always => true,
            Self::OnCreate => matches!(route, Route::Create | Route::CreateForUser),
            Self::OnOwnCreate => matches!(route, Route::Create),
            Self::OnCreateForUserAndEdit => matches!(route, Route::CreateForUser | Route::Edit),
            Self::OnOwnCreateAndEdit => matches!(route, Route::Create | Route::Edit),
            Self::OnEdit => matches!(route, Route::Edit),
            Self::ByCall | Self::Never => false,
        }
    }
}

/// How responses show a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Readback {
    /// Under its own name.
    #[default]
    Same,
    /// Under another name.
    As(#[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))] &'static str),
    /// Under its own name, as an object with the value in `value`. If its `locked` is true, the value
    /// comes from above and cannot be changed, so the field is not compared.
    Nested,
    /// The reference does not list it in responses, but some installations return it. It is
    /// compared if the response contains it. Otherwise it is sent on create and on request only.
    #[schemars(skip)]
    IfPresent,
    /// Never: a secret, a file, or an instruction.
    Never,
}

/// How a declared and a live value are compared. Descriptions may use the variants that are in the
/// schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// Exactly.
    // Mappings are compared by the declared keys. Empty text equals `null`.
    #[default]
    Exact,
    /// Texts, case-insensitively.
    AnyCase,
    /// Lists, in any order.
    Set,
    /// URLs, in normal form.
    // RFC 3986, 6.2.2 and 6.2.3.
    Url,
    /// URLs, in normal form and without user and password, which responses do not contain.
    Location,
    /// SSH keys, by type and key material, without the comment.
    PublicKey,
    /// Texts, of which the service strips white space from both ends.
    Trimmed,
    /// Lists of topics, in any order. The installation shares topics and keeps the first spelling
    /// of each. A comma separates topics, and blanks around a topic are ignored.
    #[schemars(skip)]
    Topics,
    /// Names of branches and tags. `refs/heads/` before a branch is ignored.
    #[schemars(skip)]
    Ref,
    /// Lists of rows, each of which names one user, group or level. An edit contains the rows to
    /// add and to remove.
    #[schemars(skip)]
    Rows,
}

/// How secret a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// Not secret.
    Open,
    /// A literal or a reference. The live value is never shown.
    Sensitive,
    /// It must be a reference.
    Reference,
    /// A URL, as a literal or a reference. Credentials in it are never shown.
    Address,
}

/// A tier of the service.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Available to everybody.
    #[default]
    Free,
    /// Push rules, approvals, mirroring, templates and restore.
    Premium,
    /// Status checks.
    Ultimate,
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

impl Field {
    /// The field with what follows from its type, and the same for its keys.
    #[must_use]
    pub fn complete(mut self) -> Self {
        match self.value_type {
            ValueType::Secret => self.read = Readback::Never,
            ValueType::Level => self.weakens = Weakens::Access,
            ValueType::Grants | ValueType::Approvals | ValueType::LevelGrants | ValueType::Rows => {
                self.compare = Compare::Rows;
            }
            _ => {}
        }
        // Where requests contain the id, responses do too.
        if self.names.is_some() && self.read == Readback::Same {
            self.read = Readback::As(self.sent_name());
        }
        if self.read == Readback::As(self.name) {
            self.read = Readback::Same;
        }
        self.keys = self.keys.into_iter().map(Self::complete).collect();
        self
    }

    /// How secret it is.
    pub const fn secrecy(&self) -> Secrecy {
        match self.value_type {
            ValueType::Secret => Secrecy::Reference,
            ValueType::Address | ValueType::Addresses => Secrecy::Address,
            _ if self.sensitive => Secrecy::Sensitive,
            _ => Secrecy::Open,
        }
    }

    /// For [`Weakens::WhenLater`]: the words or numbers, from the one that protects most.
    pub fn from_strictest(&self) -> Vec<Json> {
        match &self.weakens {
            Weakens::WhenLaterIn(values) => values.clone(),
            _ => self.words.iter().map(|word| word.word.into()).collect(),
        }
    }

    /// Whether its value is the word of a [`Level`](crate::level::Level). Requests and responses
    /// contain the number.
    pub const fn is_level(&self) -> bool {
        matches!(self.value_type, ValueType::Level | ValueType::RuleLevel)
    }

    /// Whether it names a file to upload, as `{file: PATH}`; the value is then a
    /// [`crate::value::Value::File`].
    pub const fn is_upload(&self) -> bool {
        matches!(self.value_type, ValueType::File)
    }

    /// The field that replaces this deprecated one.
    pub fn replaced_by(&self) -> Option<&'static str> {
        let other = self.deprecated.filter(|other| *other != "several")?;
        Some(other.strip_prefix(OPPOSITE).unwrap_or(other))
    }

    /// Whether the replacing field has the opposite value.
    pub fn is_opposite(&self) -> bool {
        self.deprecated.is_some_and(|other| other.starts_with(OPPOSITE))
    }

    /// Whether every response shows it.
    pub const fn is_always_shown(&self) -> bool {
        matches!(self.read, Readback::Same | Readback::Nested | Readback::As(_))
    }

    /// Whether responses contain an object with the value in `value`.
    pub fn is_nested(&self) -> bool {
        self.read == Readback::Nested
    }

    /// Whether the value is a regular expression in RE2 syntax.
    pub fn is_expression(&self) -> bool {
        self.value_type == ValueType::Expression
    }

    /// Whether `scope` has it.
    pub fn is_in(&self, scope: Scope) -> bool {
        self.available.scope().is_none_or(|only| only == scope)
    }

    /// Whether the order of its items does not matter.
    pub fn is_without_order(&self) -> bool {
        let compared = matches!(self.compare, Compare::Set | Compare::Topics | Compare::Rows);
        compared || self.names.is_some()
    }

    /// The name in responses, if responses ever contain it.
    pub const fn live_name(&self) -> Option<&'static str> {
        match self.read {
            Readback::Same | Readback::Nested | Readback::IfPresent => Some(self.name),
            Readback::As(name) => Some(name),
            Readback::Never => None,
        }
    }

    /// The name in requests.
    pub fn sent_name(&self) -> &'static str {
        self.send_as.unwrap_or(self.name)
    }

    /// Whether the field is newer than the release of the reference, so that a service may lack it.
    pub fn is_late(&self) -> bool {
        self.available.since.is_some_and(Release::is_late)
    }

    /// What to write instead of the deprecated field `other`. It may be deprecated the other way
    /// round on older services.
    pub fn instead(&self, other: &str) -> String {
        let opposite = if self.is_opposite() { " with the opposite value" } else { "" };
        format!("use `{other}`{opposite}")
    }

    /// Makes `property`, a schema, carry this field.
    pub fn mark(&'static self, property: &mut Json) {
        let mut marked = MARKED.write().unwrap_or_else(PoisonError::into_inner);
        property[KEYWORD] = marked.len().into();
        marked.push(self);
    }

    /// Makes `property` carry a field whose values are never shown.
    pub fn mark_sensitive(property: &mut Json) {
        static SENSITIVE: LazyLock<Field> =
            LazyLock::new(|| Field { sensitive: true, ..Field::default() });
        SENSITIVE.mark(property);
    }

    /// Takes the field out of the schema `property`.
    pub fn unmark(property: &mut Object) {
        property.shift_remove(KEYWORD);
    }

    /// The field that the schema `property` carries; the usual one if it carries none.
    pub fn of(property: &Json) -> &'static Self {
        static USUAL: LazyLock<Field> = LazyLock::new(Field::default);
        let number = property.get(KEYWORD).and_then(Json::as_u64).map(usize::try_from);
        let marked = MARKED.read().unwrap_or_else(PoisonError::into_inner);
        let field = number.and_then(|number| marked.get(number.ok()?).copied());
        field.unwrap_or(&USUAL)
    }
}
