//! How the API treats one field: which requests accept it, how responses show it, in which tier it
//! exists. The file is long because it lists every property that a field can have.
//!
//! A kind declares this next to the field itself, as a schema transform:
//!
//! ```text
//! /// Whether people who are not members may see jobs.
//! #[schemars(transform = field().read_as("public_jobs").shows())]
//! pub public_builds: Option<bool>,
//! ```
//!
//! Checks, request bodies, diff, guards, the published schema and the reference page use it. The
//! default, [`field`], is the common case: accepted on create and edit, shown under its own name,
//! in every tier, not nullable. Only the effect of a change has no default: see [`Stake`].

use std::{borrow::Cow, ops::Not, sync::LazyLock};

use schemars::{JsonSchema, Schema, transform::Transform};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{release::Release, value::Json};

/// The schema keyword that carries a [`Field`].
pub const KEYWORD: &str = "x-undrift";

/// How the API treats one field.
#[must_use]
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
    /// The only scope that has the field, if not all scopes of its kind do.
    pub only: Option<Scope>,
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

/// What guards check when a field changes. A field without it is not a schema transform, so every
/// new field needs a decision.
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

/// A [`Field`] with a [`Stake`]: the transform of a schema.
#[must_use]
#[derive(Clone, Debug)]
pub struct Guarded(Field);

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
    /// Responses contain an object with the value in `value`. If its `locked` is true, the value comes
    /// from above and cannot be changed.
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

/// The common case. The methods below change single properties.
pub fn field() -> Field {
    Field::default()
}

impl Field {
    /// A change does nothing that guards check.
    pub fn harmless(self) -> Guarded {
        self.guarded(Stake::Nothing)
    }

    /// A change may give or take away access.
    pub fn access(self) -> Guarded {
        self.guarded(Stake::Access)
    }

    /// A change may show something to more people.
    pub fn shows(self) -> Guarded {
        self.guarded(Stake::Shows)
    }

    /// A change may weaken a protection.
    pub fn weakens(self, when: When) -> Guarded {
        self.guarded(Stake::Weakens(when))
    }

    /// A change may give something outside a way in, or content a way out.
    pub fn opens(self, when: When) -> Guarded {
        self.guarded(Stake::Opens(when))
    }

    /// A change from one of `words` to a later one weakens a protection.
    pub fn weakens_towards_the_last(self, words: &[&'static str]) -> Guarded {
        self.weakens(When::Later(words.iter().map(|word| Cow::Borrowed(*word)).collect()))
    }

    /// The rules of the kind decide what a change does.
    pub fn by_kind(self) -> Guarded {
        self.guarded(Stake::ByKind)
    }

    fn guarded(self, stake: Stake) -> Guarded {
        Guarded(Self { stake, ..self })
    }

    /// With the requests that accept it.
    pub fn accepted(self, accepted: Accepted) -> Self {
        Self { accepted, ..self }
    }

    /// Accepted by edits only.
    pub fn on_edit(self) -> Self {
        self.accepted(Accepted::OnEdit)
    }

    /// Used by undrift only; neither sent nor read.
    pub fn local(self) -> Self {
        Self { read: Readback::Never, ..self.accepted(Accepted::Never) }
    }

    /// Called `name` in responses.
    pub fn read_as(self, name: &'static str) -> Self {
        Self { read: Readback::As(name.into()), ..self }
    }

    /// Shown by some installations only.
    pub fn read_if_present(self) -> Self {
        Self { read: Readback::IfPresent, ..self }
    }

    /// Never in responses.
    pub fn write_only(self) -> Self {
        Self { read: Readback::Never, ..self }
    }

    /// Called `name` in requests.
    pub fn send_as(self, name: &'static str) -> Self {
        Self { send_as: Some(name.into()), ..self }
    }

    /// In the premium tier and above.
    pub fn premium(self) -> Self {
        Self { tier: Tier::Premium, ..self }
    }

    /// In top-level groups only.
    pub fn top_level(self) -> Self {
        Self { top_level: true, ..self }
    }

    /// In the ultimate tier only.
    pub fn ultimate(self) -> Self {
        Self { tier: Tier::Ultimate, ..self }
    }

    /// Since release `major.minor`.
    pub fn since(self, major: u16, minor: u16) -> Self {
        Self { since: Some(Release::new(major, minor)), ..self }
    }

    /// Removed in release `major.minor`.
    pub fn until(self, major: u16, minor: u16) -> Self {
        Self { until: Some(Release::new(major, minor)), ..self }
    }

    /// Used by undrift only if the service is older than this release.
    pub fn local_before(self, major: u16, minor: u16) -> Self {
        Self { local_before: true, ..self.since(major, minor) }
    }

    /// Deprecated; `name` replaces it.
    pub fn use_instead(self, name: &'static str) -> Self {
        Self { replaced_by: Some(name.into()), ..self }
    }

    /// Deprecated; `name` replaces it with the opposite value.
    pub fn use_opposite(self, name: &'static str) -> Self {
        Self { opposite: true, ..self.use_instead(name) }
    }

    /// Cleared by `null`.
    pub fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// With this secrecy.
    pub fn secrecy(self, secrecy: Secrecy) -> Self {
        Self { secrecy, ..self }
    }

    /// For administrators only.
    pub fn administrators(self) -> Self {
        Self { administrators: true, ..self }
    }

    /// Names a file to upload.
    pub fn upload(self) -> Self {
        Self { upload: true, ..self }
    }

    /// Names a user, group or project. Requests contain the id under `sent`.
    pub fn names(self, named: Named, sent: &'static str) -> Self {
        Self { names: Some(named), ..self.send_as(sent) }
    }

    /// Names entries of another section of the same container. Requests contain their ids under
    /// `sent`.
    pub fn names_entries(self, section: &'static str, sent: &'static str) -> Self {
        Self { names_entries: Some(section.into()), ..self.send_as(sent) }
    }

    /// A level of access: a word in manifests, a number in requests and responses.
    pub fn level(self) -> Self {
        Self { codec: Codec::Level, ..self }
    }

    /// Text; numbers and booleans in manifests become text.
    pub fn as_text(self) -> Self {
        Self { codec: Codec::Text, ..self }
    }

    /// In every edit, because the service resets fields that an edit lacks.
    pub fn with_every_edit(self) -> Self {
        Self { with_every_edit: true, ..self }
    }

    /// With this value if a new entry, or row, does not have it.
    pub fn preset(self, value: impl Into<Json>) -> Self {
        Self { preset: Some(value.into()), ..self }
    }

    /// Sent with this value if a new entry, or row, does not have it.
    pub fn created_with(self, value: impl Into<Json>) -> Self {
        Self { created_with: Some(value.into()), ..self }
    }

    /// Reset by the service when `other` changes.
    pub fn reset_by(self, other: &'static str) -> Self {
        Self { reset_by: Some(other.into()), ..self }
    }

    /// Shown as `null` while `flag` is on.
    pub fn hidden_by(self, flag: &'static str) -> Self {
        Self { hidden_by: Some(flag.into()), ..self }
    }

    /// Compared in this way.
    pub fn compared(self, compare: Compare) -> Self {
        Self { compare, ..self }
    }

    /// Compared row by row. A create request contains a single level as the parameter `alone`.
    pub fn as_rows(self, alone: &'static str) -> Self {
        Self { compare: Compare::Rows, single_level_as: Some(alone.into()), ..self }
    }

    /// Whether the order of its items does not matter.
    pub fn is_without_order(&self) -> bool {
        let compared = matches!(self.compare, Compare::Set | Compare::Topics | Compare::Rows);
        compared || self.names.is_some()
    }

    /// With the value `word` since a release.
    pub fn word_since(mut self, word: &'static str, major: u16, minor: u16) -> Self {
        let since = Some(Release::new(major, minor));
        self.words.push(Word { word: word.into(), since, until: None });
        self
    }

    /// With the value `word` before a release only.
    pub fn word_until(mut self, word: &'static str, major: u16, minor: u16) -> Self {
        let until = Some(Release::new(major, minor));
        self.words.push(Word { word: word.into(), since: None, until });
        self
    }

    /// A mapping whose keys are separate fields.
    pub fn spread(self) -> Self {
        Self { spread: true, ..self }
    }

    /// A regular expression in RE2 syntax.
    pub fn expression(self) -> Self {
        Self { expression: true, ..self }
    }

    /// Without white space at its ends.
    pub fn trimmed(self) -> Self {
        Self { trimmed: true, ..self }
    }

    /// In one scope only.
    pub fn only(self, scope: Scope) -> Self {
        Self { only: Some(scope), ..self }
    }

    /// Limits `switch`.
    pub fn limits(self, switch: &'static str) -> Self {
        Self { limits: Some(Limits { switch: switch.into(), required: false }), ..self }
    }

    /// Limits `switch`, which must not be declared as on without this field.
    pub fn has_to_limit(self, switch: &'static str) -> Self {
        Self { limits: Some(Limits { switch: switch.into(), required: true }), ..self }
    }

    /// Has no effect and is not shown until `switch` is on.
    pub fn needs(self, switch: &'static str) -> Self {
        Self { needs: Some(Needs { switch: switch.into(), same_request: false }), ..self }
    }

    /// As [`Self::needs`]; requests contain both.
    pub fn needs_in_request(self, switch: &'static str) -> Self {
        Self { needs: Some(Needs { switch: switch.into(), same_request: true }), ..self }
    }

    /// A level of access that must not be wider than `other`.
    pub fn at_most(self, other: &'static str) -> Self {
        Self { at_most: Some(other.into()), ..self }
    }

    /// Only ASCII since release `major.minor`.
    pub fn ascii_from(self, major: u16, minor: u16) -> Self {
        Self { ascii_from: Some(Release::new(major, minor)), ..self }
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
        static USUAL: LazyLock<Json> = LazyLock::new(|| json!(Field::default()));
        let mut own = json!(self);
        if let Some(own) = own.as_object_mut() {
            own.retain(|name, value| USUAL[name] != *value);
        }
        own
    }

    /// The treatment in the schema of a property.
    pub fn of(property: &Json) -> Self {
        property.get(KEYWORD).and_then(|own| Self::deserialize(own).ok()).unwrap_or_default()
    }
}

impl Transform for Guarded {
    fn transform(&mut self, schema: &mut Schema) {
        schema.insert(KEYWORD.into(), self.0.to_keyword());
        if self.0.replaced_by.is_some() {
            schema.insert("deprecated".into(), true.into());
        }
    }
}
