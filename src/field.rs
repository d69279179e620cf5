//! How the API treats one field: which requests accept it, how responses show it, in which tier it
//! exists. The file is long because it lists every property that a field can have.
//!
//! A kind describes it in YAML, next to the text and the type of the field
//! (`kind/description.rs`), and the schema of the field carries it:
//!
//! ```yaml
//! - name: public_builds
//!   about: Whether people who are not members may see jobs.
//!   type: boolean
//!   weakens: shows
//!   read_as: public_jobs
//! ```
//!
//! Checks, request bodies, diff, guards, the published schema and the reference page use it. The
//! default is the common case: accepted on create and edit, shown under its own name, in every
//! tier, not nullable. A description has no default for the effect of a change: see [`Stake`].

use std::{borrow::Cow, ops::Not, sync::LazyLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{release::Release, value::Json};

/// The schema keyword that carries a [`Field`].
pub const KEYWORD: &str = "x-undrift";

/// How the API treats one field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Field {
    /// The requests that accept it.
    pub accepted: Accepted,
    /// How responses show it.
    pub read: Readback,
    /// How the declared and the live value are compared.
    pub compare: Compare,
    /// The name in requests, if different.
    pub send_as: Option<Cow<'static, str>>,
    /// The lowest tier of the service that has the field.
    pub tier: Tier,
    /// The release that added the field.
    pub since: Option<Release>,
    /// The release that removed the field.
    pub until: Option<Release>,
    /// The values that not every release accepts.
    pub words: Vec<Word>,
    /// Whether only undrift uses the field if the service is older than `since`.
    pub local_before: bool,
    /// For a deprecated field: the field that replaces it.
    pub replaced_by: Option<Cow<'static, str>>,
    /// Whether the replacing field has the opposite value.
    pub opposite: bool,
    /// Whether `null` clears the field.
    pub nullable: bool,
    /// Whether live values are never shown, and whether literals are allowed.
    pub secrecy: Secrecy,
    /// Whether only administrators may set it.
    pub administrators: bool,
    /// Whether it names a file to upload, as `{file: PATH}`; the value is then a
    /// [`crate::value::Value::File`].
    pub upload: bool,
    /// What the value names by path or username. Requests contain the id.
    pub names: Option<Named>,
    /// Another parameter for a list of rows that is a single level, in the request that creates an
    /// entry.
    pub single_level_as: Option<Cow<'static, str>>,
    /// The section of the same container whose entries the value names. Requests contain their ids.
    pub names_entries: Option<Cow<'static, str>>,
    /// The form in manifests, if it differs from requests and responses.
    pub codec: Codec,
    /// Whether an edit without the field resets it, so that every edit must contain it.
    pub with_every_edit: bool,
    /// Another field. When it changes, the service resets this one, so it is sent again.
    pub reset_by: Option<Cow<'static, str>>,
    /// The service's default for a new entry.
    pub preset: Option<Json>,
    /// The value that a create request contains if none is declared, because the service requires
    /// one.
    pub created_with: Option<Json>,
    /// Another field. The service refuses a request that contains both.
    pub not_with: Option<Cow<'static, str>>,
    /// Another field, a date: the service refuses an earlier one here.
    pub not_before: Option<Cow<'static, str>>,
    /// Whether no group above may have an entry with the same value.
    pub unique_above: bool,
    /// Whether the service refuses two entries with the same value.
    pub unique: bool,
    /// Whether entries with one identity share the value in all groups and projects.
    pub shared: bool,
    /// Whether its text must start with the path of the group or project.
    pub starts_with_path: bool,
    /// Whether only top-level groups have it; the service ignores it in others.
    pub top_level: bool,
    /// Whether the value is a regular expression in RE2 syntax.
    pub expression: bool,
    /// Whether the service strips white space from both ends.
    pub trimmed: bool,
    /// Whether it is a mapping whose keys are separate fields, called `mapping.key`.
    pub spread: bool,
    /// A flag. While it is `true`, responses contain `null` instead of this field's value.
    pub hidden_by: Option<Cow<'static, str>>,
    /// The switch that this field limits. Without the limit, the switch would do more than was
    /// declared.
    pub limits: Option<Limits>,
    /// The field that must be on for this one to have an effect and to be shown.
    pub needs: Option<Needs>,
    /// Another level of access. The service refuses a wider level for this field.
    pub at_most: Option<Cow<'static, str>>,
    /// The release since which the service only accepts ASCII text.
    pub ascii_from: Option<Release>,
    /// What guards check when it changes.
    pub stake: Stake,
}

impl Stake {
    /// Whether guards compare the value before with the one after.
    pub const fn is_judged(&self) -> bool {
        matches!(self, Self::Shows | Self::Weakens(_) | Self::Opens(_))
    }
}

/// A value that not every release accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// The value.
    pub word: Cow<'static, str>,
    /// The release that added it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Release>,
    /// The release that removed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Release>,
}

/// What guards check when a field changes. Each description of a field has it, as `weakens`, so
/// every new field needs a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stake {
    /// Nothing.
    #[default]
    Nothing,
    /// A change may give or take away access.
    Access,
    /// A change may show something to more people. The field is a visibility, a level of access or
    /// a flag.
    Shows,
    /// A change may weaken a protection of the group or project, and so does removing the entry.
    Weakens(When),
    /// A change may give something outside a way in, or content a way out. A new entry is judged
    /// too, also in a new container, whose own settings are not; removing it closes the way.
    Opens(When),
    /// [`crate::kind::Rules::effects`] decides.
    ByKind,
}

/// Which changes of a field weaken a protection. `null` and empty text count as unset; an unknown
/// value counts as the strictest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// A flag changes to `false`.
    Off,
    /// A flag changes to `true`.
    On,
    /// A number becomes lower.
    Lower,
    /// A number becomes higher.
    Higher,
    /// The value is cleared.
    Cleared,
    /// The value is cleared or changed: which of two values protects more is unknown.
    Changed,
    /// An address changes, and no secret is written with it: a stored one would be sent there.
    Moved,
    /// The value changes to one that names a URL or another project.
    Outside,
    /// A comma-separated list gets more items, or becomes empty, which means everything.
    Wider,
    /// The value changes to a word or number that is later in this list.
    Later(Vec<Cow<'static, str>>),
}

/// The field that another field of the same entry needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// The field that must be on.
    pub switch: Cow<'static, str>,
    /// Whether requests must contain both: the service refuses or ignores one alone.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub same_request: bool,
}

/// How a field limits another field of the same entry or mapping. The service ignores fields that
/// it does not know. So a request that turns the other field on also contains the limit, and it has
/// only succeeded if the response shows the limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The limited field. It is on unless it is `false` or unset.
    pub switch: Cow<'static, str>,
    /// Whether the limited field must not be declared as on without the limit, because the
    /// service's default limit is everything.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub required: bool,
}

impl Limits {
    /// Whether a switch with this value is on.
    pub fn is_on(switch: &Json) -> bool {
        !matches!(switch, Json::Null | Json::Bool(false)) && switch != ""
    }
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

/// The form of a value in manifests, if it differs from requests and responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Codec {
    /// The same form.
    #[default]
    Same,
    /// The word of a [`Level`](crate::level::Level). Requests and responses contain its number.
    Level,
    /// Responses contain an object with the value in `value`. If its `locked` is true, the value
    /// comes from above and cannot be changed.
    Nested,
    /// Text. The service makes text of numbers and booleans, but keeps lists.
    Text,
}

/// The requests that accept a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accepted {
    /// Create, create for a user, and edit.
    #[default]
    Always,
    /// Create and create for a user: it cannot be changed later.
    OnCreate,
    /// Create only, and not for a user.
    OnOwnCreate,
    /// Create for a user and edit.
    OnCreateForUserAndEdit,
    /// Create and edit, but not create for a user.
    OnOwnCreateAndEdit,
    /// Edit only.
    OnEdit,
    /// None: it steers undrift and is never sent.
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
            Self::Never => false,
        }
    }
}

/// How responses show a field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readback {
    /// Under its own name.
    #[default]
    Same,
    /// Under another name.
    As(Cow<'static, str>),
    /// The reference does not list it in responses, but some installations return it. It is
    /// compared if the response contains it. Otherwise it is sent on create and on request only.
    IfPresent,
    /// Never: a secret, a file, or an instruction.
    Never,
}

/// How a declared and a live value are compared. Descriptions may use the variants that are in the
/// schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Secrecy {
    /// Not secret.
    #[default]
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

impl Secrecy {
    /// The secrecy of the field that the schema `property` is of. Much cheaper than all of
    /// [`Field::of`].
    pub fn of(property: &Json) -> Self {
        let secrecy = property.get(KEYWORD).and_then(|field| field.get("secrecy"));
        secrecy.and_then(|secrecy| Self::deserialize(secrecy).ok()).unwrap_or_default()
    }
}

impl Field {
    /// Whether the order of its items does not matter.
    pub fn is_without_order(&self) -> bool {
        let compared = matches!(self.compare, Compare::Set | Compare::Topics | Compare::Rows);
        compared || self.names.is_some()
    }

    /// The name in responses, if responses ever contain it.
    pub fn live_name<'a>(&'a self, own: &'a str) -> Option<&'a str> {
        match &self.read {
            Readback::Same | Readback::IfPresent => Some(own),
            Readback::As(name) => Some(name),
            Readback::Never => None,
        }
    }

    /// Whether the field is newer than the release of the reference, so that a service may lack it.
    pub fn is_late(&self) -> bool {
        self.since.is_some_and(Release::is_late)
    }

    /// What to write instead of the deprecated field `other`. It may be deprecated the other way
    /// round on older services.
    pub fn instead(&self, other: &str) -> String {
        let opposite = if self.opposite { " with the opposite value" } else { "" };
        format!("use `{other}`{opposite}")
    }

    /// The name in requests.
    pub fn sent_name<'a>(&'a self, own: &'a str) -> &'a str {
        self.send_as.as_deref().unwrap_or(own)
    }

    /// The part of a property's schema for this: only what differs from the common case.
    pub fn to_keyword(&self) -> Json {
        if *self == Self::default() {
            return json!({});
        }
        static USUAL: LazyLock<Json> = LazyLock::new(|| json!(Field::default()));
        let (Json::Object(all), Some(usual)) = (json!(self), USUAL.as_object()) else {
            return json!({});
        };
        // Both have the same keys in the same order. Every field is written at start, so no key is
        // looked up.
        let pairs = all.into_iter().zip(usual.values());
        pairs.filter_map(|(own, usual)| (own.1 != *usual).then_some(own)).collect()
    }

    /// The treatment in the schema of a property.
    pub fn of(property: &Json) -> Self {
        property.get(KEYWORD).and_then(|own| Self::deserialize(own).ok()).unwrap_or_default()
    }
}
