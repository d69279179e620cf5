//! What the API does with one field: where it is accepted, how it reads back, on which tier it
//! exists. The file is long because it is the list of everything that a field may say.
//!
//! A kind's struct says this next to the field itself, as a schema transform:
//!
//! ```text
//! /// Whether people who are not members may see jobs.
//! #[schemars(transform = FIELD.read_as("public_jobs").shows())]
//! pub public_builds: Option<bool>,
//! ```
//!
//! Checks, request bodies, diff, guards, the published schema and the reference page read it back
//! from there. The default, [`FIELD`], is the common case: accepted on create and edit, read back
//! under its own name, on every tier, not nullable. Only what a change may do has no default: see
//! [`Stake`].

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, transform::Transform};
use serde::{Deserialize, Serialize};

use crate::{release::Release, value::Json};

/// The schema keyword that carries a [`Field`].
pub const KEYWORD: &str = "x-undrift";

/// How the API treats one field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Field {
    /// The requests that accept it.
    #[serde(skip_serializing_if = "is_default")]
    pub accepted: Accepted,
    /// How it comes back.
    #[serde(skip_serializing_if = "is_default")]
    pub read: Readback,
    /// How the declared and the live value are compared.
    #[serde(skip_serializing_if = "is_default")]
    pub compare: Compare,
    /// The name under which requests carry it, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_as: Option<Cow<'static, str>>,
    /// The lowest tier of the service that has it.
    #[serde(skip_serializing_if = "is_default")]
    pub tier: Tier,
    /// The release of the service that brought it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Release>,
    /// The release of the service from which on it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Release>,
    /// The values that not every release takes.
    #[serde(skip_serializing_if = "is_default")]
    pub words: Vec<Word>,
    /// Whether it steers undrift alone where the service is older than `since`.
    #[serde(skip_serializing_if = "is_default")]
    pub local_before: bool,
    /// The field to use instead, for a deprecated spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Cow<'static, str>>,
    /// Whether the field to use instead says the opposite.
    #[serde(skip_serializing_if = "is_default")]
    pub opposite: bool,
    /// Whether `null` clears it.
    #[serde(skip_serializing_if = "is_default")]
    pub nullable: bool,
    /// Whether live values are never shown, and whether literals are allowed.
    #[serde(skip_serializing_if = "is_default")]
    pub secrecy: Secrecy,
    /// Whether only administrators may set it.
    #[serde(skip_serializing_if = "is_default")]
    pub administrators: bool,
    /// Whether it names a file to upload, as `{file: PATH}`; the value is then a
    /// [`crate::value::Value::File`].
    #[serde(skip_serializing_if = "is_default")]
    pub upload: bool,
    /// What it names by a path or a username, and requests by an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Named>,
    /// The parameter by which a new entry says a list of rows that is a single level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single_level_as: Option<Cow<'static, str>>,
    /// The section of the same container whose entries it names; requests carry their ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names_entries: Option<Cow<'static, str>>,
    /// What manifests write otherwise than requests and answers.
    #[serde(skip_serializing_if = "is_default")]
    pub codec: Codec,
    /// Whether an edit that leaves it out resets it, so that every edit carries it.
    #[serde(skip_serializing_if = "is_default")]
    pub with_every_edit: bool,
    /// The field whose change makes the service forget this one, so that it is sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_by: Option<Cow<'static, str>>,
    /// What the service gives a new entry that leaves it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Json>,
    /// What a create sends where nothing is declared, because the service does not do without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_with: Option<Json>,
    /// The field beside which the service refuses it in one request, whatever the two say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_with: Option<Cow<'static, str>>,
    /// Whether it is a regular expression, in the syntax of RE2, which the service compiles.
    #[serde(skip_serializing_if = "is_default")]
    pub expression: bool,
    /// Whether the service takes white space away from both ends of it.
    #[serde(skip_serializing_if = "is_default")]
    pub trimmed: bool,
    /// Whether it is a mapping whose keys are fields of their own, called `mapping.key`.
    #[serde(skip_serializing_if = "is_default")]
    pub spread: bool,
    /// The field whose `true` makes the service show `null` in the place of this one's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_by: Option<Cow<'static, str>>,
    /// The only scope that has it, if not all scopes of its kind do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<Scope>,
    /// What means more than was declared if the service drops this field of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// What has to be on for this field to have an effect, and to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<Needs>,
    /// The level of access that this one may not exceed: the service refuses that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Cow<'static, str>>,
    /// The setting of the groups above that bounds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounded_by: Option<Cow<'static, str>>,
    /// The release from which on the service takes no text that is not ASCII.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ascii_from: Option<Release>,
    /// What a change of it may do that guards ask about.
    #[serde(skip_serializing_if = "is_default")]
    pub stake: Stake,
}

/// A value of a field that not every release takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// The value.
    pub word: Cow<'static, str>,
    /// The release that brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Release>,
    /// The release from which on it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Release>,
}

/// What a change of a field may do that guards ask about. A field without it is no transform of a
/// schema, so that nobody adds one without thinking of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stake {
    /// Nothing.
    #[default]
    Nothing,
    /// It may give or take access.
    Access,
    /// It may show something to more people: it is a visibility, a level of access or a flag.
    Shows,
    /// It may protect less.
    Weakens(When),
    /// What the rules of its kind say ([`crate::kind::Rules::effects`]).
    ByKind,
}

/// Which changes of a field protect less. `null` and empty text are nothing; what is not known is
/// taken for what protects most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// A flag that is switched off.
    Off,
    /// A flag that is switched on.
    On,
    /// A lower number.
    Lower,
    /// A higher number.
    Higher,
    /// Nothing.
    Cleared,
    /// Nothing, or anything else than before: which of two protects more nobody can tell.
    Changed,
    /// Text that lists, with commas in between, something more, or nothing, which is everything.
    Wider,
    /// Any of these words, or numbers, but the first instead of one before it.
    Later(Vec<Cow<'static, str>>),
}

/// A [`Field`] that says what a change of it may do: the transform of a schema.
#[derive(Clone, Debug)]
pub struct Weighed(Field);

/// What a field needs of another one of the same entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// The field that has to be on.
    pub switch: Cow<'static, str>,
    /// Whether requests have to carry both: the service refuses, or ignores, this one alone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub same_request: bool,
}

/// How a field limits another one of the same entry or mapping. The service drops the part of a
/// request that it does not know, so a request that switches the other one on carries the limit too,
/// and has not succeeded before the limit is seen in the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The field that it limits, which is on unless it is `false` or nothing.
    pub switch: Cow<'static, str>,
    /// Whether nobody may declare the other one as on without it: what the service takes in its place
    /// is everything.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: bool,
}

impl Limits {
    /// Whether a switch with this value is on.
    pub fn is_on(switch: &Json) -> bool {
        !matches!(switch, Json::Null | Json::Bool(false)) && switch != ""
    }
}

/// What documents are about.
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
    /// Every scope, in the order in which reports name them.
    pub const ALL: [Self; 2] = [Self::Group, Self::Project];

    /// What one of them is called in a sentence, and in the path of its operations.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Project => "project",
        }
    }

    /// The `kind` of documents about one.
    pub const fn document(self) -> &'static str {
        match self {
            Self::Group => "Group",
            Self::Project => "Project",
        }
    }
}

/// What a field names.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Named {
    /// A user, by username.
    User,
    /// A group, by its full path.
    Group,
    /// A project, by its full path.
    Project,
}

impl Named {
    /// What one is called in a sentence.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Group => "group",
            Self::Project => "project",
        }
    }

    /// What documents declare one; a user has none.
    pub const fn scope(self) -> Option<Scope> {
        match self {
            Self::User => None,
            Self::Group => Some(Scope::Group),
            Self::Project => Some(Scope::Project),
        }
    }
}

/// How the value of a field is written in manifests, where requests and answers have it otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Codec {
    /// As everywhere.
    #[default]
    Same,
    /// As the word of a [`Level`](crate::level::Level); requests and answers have its number.
    Level,
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

/// A request that may carry a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The ordinary create.
    Create,
    /// The create of a project for another user.
    CreateForUser,
    /// The edit.
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

/// How a field comes back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readback {
    /// Under its own name.
    #[default]
    Same,
    /// Under another name.
    As(Cow<'static, str>),
    /// The reference does not list it among what is returned; some installations return it all the
    /// same. Compared when it is there; otherwise sent on create and on request only.
    IfPresent,
    /// Never: a secret, a file, or an instruction.
    Never,
}

/// How a declared and a live value are compared. A description may say what is in the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// As they are.
    // A declared mapping is compared by the keys that it has, and empty text equals `null`.
    #[default]
    Exact,
    /// Text without regard to upper and lower case.
    AnyCase,
    /// Lists without regard to order.
    Set,
    /// URLs in normal form.
    // RFC 3986, 6.2.2 and 6.2.3.
    Url,
    /// URLs in normal form without user and password, which the service does not tell.
    Location,
    /// SSH keys, by their type and what they are made of, without the comment.
    PublicKey,
    /// Lists of topics, which the whole installation shares: in the spelling that is there first,
    /// without regard to order. A comma parts two of them, and blanks around one do not count.
    #[schemars(skip)]
    Topics,
    /// Names of branches and tags, with `refs/heads/` before that of a branch or without.
    #[schemars(skip)]
    Ref,
    /// Lists of rows, each of which names one thing or a level. An edit says which to add and which
    /// to remove.
    #[schemars(skip)]
    Rows,
}

/// How secret a field is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Secrecy {
    /// Not at all.
    #[default]
    Open,
    /// It may be a literal or a reference; a live value is never shown.
    Sensitive,
    /// It must be a reference.
    Reference,
    /// An address, which may be a literal or a reference; credentials in it are never shown.
    Address,
}

/// A tier of the service.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// What everybody has.
    #[default]
    Free,
    /// Push rules, approvals, mirroring, templates and restore.
    Premium,
    /// Status checks.
    Ultimate,
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Free => "free",
            Self::Premium => "premium",
            Self::Ultimate => "ultimate",
        })
    }
}

/// The common case; a field that differs says how with the methods below.
pub const FIELD: Field = Field {
    accepted: Accepted::Always,
    read: Readback::Same,
    compare: Compare::Exact,
    send_as: None,
    tier: Tier::Free,
    since: None,
    until: None,
    words: Vec::new(),
    local_before: false,
    replaced_by: None,
    opposite: false,
    nullable: false,
    secrecy: Secrecy::Open,
    administrators: false,
    upload: false,
    names: None,
    single_level_as: None,
    names_entries: None,
    codec: Codec::Same,
    with_every_edit: false,
    reset_by: None,
    preset: None,
    created_with: None,
    expression: false,
    trimmed: false,
    not_with: None,
    spread: false,
    hidden_by: None,
    only: None,
    limits: None,
    needs: None,
    at_most: None,
    bounded_by: None,
    ascii_from: None,
    stake: Stake::Nothing,
};

impl Field {
    /// A change of it does nothing that a guard asks about.
    #[must_use]
    pub fn harmless(self) -> Weighed {
        self.weighed(Stake::Nothing)
    }

    /// A change of it may give or take access.
    #[must_use]
    pub fn access(self) -> Weighed {
        self.weighed(Stake::Access)
    }

    /// A change of it may show something to more people.
    #[must_use]
    pub fn shows(self) -> Weighed {
        self.weighed(Stake::Shows)
    }

    /// A change of it may protect less.
    #[must_use]
    pub fn weakens(self, when: When) -> Weighed {
        self.weighed(Stake::Weakens(when))
    }

    /// A change of it protects less if it goes from one of `words` to a later one.
    #[must_use]
    pub fn weakens_towards_the_last(self, words: &[&'static str]) -> Weighed {
        self.weakens(When::Later(words.iter().map(|word| Cow::Borrowed(*word)).collect()))
    }

    /// What a change of it may do is what the rules of its kind say.
    #[must_use]
    pub fn by_kind(self) -> Weighed {
        self.weighed(Stake::ByKind)
    }

    fn weighed(self, stake: Stake) -> Weighed {
        Weighed(Self { stake, ..self })
    }

    /// Accepted by `accepted`.
    #[must_use]
    pub fn accepted(self, accepted: Accepted) -> Self {
        Self { accepted, ..self }
    }

    /// Accepted by the edit only.
    #[must_use]
    pub fn on_edit(self) -> Self {
        self.accepted(Accepted::OnEdit)
    }

    /// Steers undrift; never sent and never read.
    #[must_use]
    pub fn local(self) -> Self {
        Self { read: Readback::Never, ..self.accepted(Accepted::Never) }
    }

    /// Read back under `name`.
    #[must_use]
    pub fn read_as(self, name: &'static str) -> Self {
        Self { read: Readback::As(name.into()), ..self }
    }

    /// Read back by some installations only.
    #[must_use]
    pub fn read_if_present(self) -> Self {
        Self { read: Readback::IfPresent, ..self }
    }

    /// Never read back.
    #[must_use]
    pub fn write_only(self) -> Self {
        Self { read: Readback::Never, ..self }
    }

    /// Sent under `name`.
    #[must_use]
    pub fn send_as(self, name: &'static str) -> Self {
        Self { send_as: Some(name.into()), ..self }
    }

    /// Compared without regard to order.
    #[must_use]
    pub fn as_set(self) -> Self {
        Self { compare: Compare::Set, ..self }
    }

    /// From the premium tier on.
    #[must_use]
    pub fn premium(self) -> Self {
        Self { tier: Tier::Premium, ..self }
    }

    /// On the ultimate tier only.
    #[must_use]
    pub fn ultimate(self) -> Self {
        Self { tier: Tier::Ultimate, ..self }
    }

    /// Since the release `major.minor` of the service.
    #[must_use]
    pub fn since(self, major: u16, minor: u16) -> Self {
        Self { since: Some(Release::new(major, minor)), ..self }
    }

    /// Gone from the release `major.minor` of the service on.
    #[must_use]
    pub fn until(self, major: u16, minor: u16) -> Self {
        Self { until: Some(Release::new(major, minor)), ..self }
    }

    /// Steers undrift alone where the service is older than its release.
    #[must_use]
    pub fn local_before(self, major: u16, minor: u16) -> Self {
        Self { local_before: true, ..self.since(major, minor) }
    }

    /// A deprecated spelling of `name`.
    #[must_use]
    pub fn use_instead(self, name: &'static str) -> Self {
        Self { replaced_by: Some(name.into()), ..self }
    }

    /// A deprecated spelling of the opposite of `name`.
    #[must_use]
    pub fn use_opposite(self, name: &'static str) -> Self {
        Self { opposite: true, ..self.use_instead(name) }
    }

    /// Cleared by `null`.
    #[must_use]
    pub fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// Secret to the degree of `secrecy`.
    #[must_use]
    pub fn secrecy(self, secrecy: Secrecy) -> Self {
        Self { secrecy, ..self }
    }

    /// For administrators only.
    #[must_use]
    pub fn administrators(self) -> Self {
        Self { administrators: true, ..self }
    }

    /// Names a file to upload.
    #[must_use]
    pub fn upload(self) -> Self {
        Self { upload: true, ..self }
    }

    /// Names a user, a group or a project; requests carry the id, under `sent`.
    #[must_use]
    pub fn names(self, named: Named, sent: &'static str) -> Self {
        Self { names: Some(named), ..self.send_as(sent) }
    }

    /// Names entries of another section of the same container; requests carry their ids, under
    /// `sent`.
    #[must_use]
    pub fn names_entries(self, section: &'static str, sent: &'static str) -> Self {
        Self { names_entries: Some(section.into()), ..self.send_as(sent) }
    }

    /// A level of access: a word in manifests, a number in requests and answers.
    #[must_use]
    pub fn level(self) -> Self {
        Self { codec: Codec::Level, ..self }
    }

    /// Carried by every edit, because the service resets what an edit leaves out.
    #[must_use]
    pub fn with_every_edit(self) -> Self {
        Self { with_every_edit: true, ..self }
    }

    /// Forgotten by the service when `other` changes.
    #[must_use]
    pub fn reset_by(self, other: &'static str) -> Self {
        Self { reset_by: Some(other.into()), ..self }
    }

    /// Shown as `null` by the service where `flag` is on.
    #[must_use]
    pub fn hidden_by(self, flag: &'static str) -> Self {
        Self { hidden_by: Some(flag.into()), ..self }
    }

    /// Compared without regard to upper and lower case.
    #[must_use]
    pub fn in_any_case(self) -> Self {
        Self { compare: Compare::AnyCase, ..self }
    }

    /// Compared as the name of a branch or tag.
    #[must_use]
    pub fn as_git_ref(self) -> Self {
        Self { compare: Compare::Ref, ..self }
    }

    /// Compared row by row; a new entry says a single level by the parameter `alone`.
    #[must_use]
    pub fn as_rows(self, alone: &'static str) -> Self {
        Self { compare: Compare::Rows, single_level_as: Some(alone.into()), ..self }
    }

    /// Compared as an address.
    #[must_use]
    pub fn as_url(self) -> Self {
        Self { compare: Compare::Url, ..self }
    }

    /// Whether the order of its items means nothing.
    pub fn is_without_order(&self) -> bool {
        let compared = matches!(self.compare, Compare::Set | Compare::Topics | Compare::Rows);
        compared || self.names.is_some()
    }

    /// Has the value `word` from a release on.
    #[must_use]
    pub fn word_since(mut self, word: &'static str, major: u16, minor: u16) -> Self {
        let since = Some(Release::new(major, minor));
        self.words.push(Word { word: word.into(), since, until: None });
        self
    }

    /// Has the value `word` before a release only.
    #[must_use]
    pub fn word_until(mut self, word: &'static str, major: u16, minor: u16) -> Self {
        let until = Some(Release::new(major, minor));
        self.words.push(Word { word: word.into(), since: None, until });
        self
    }

    /// A mapping whose keys are fields of their own.
    #[must_use]
    pub fn spread(self) -> Self {
        Self { spread: true, ..self }
    }

    /// A regular expression in the syntax of RE2.
    #[must_use]
    pub fn expression(self) -> Self {
        Self { expression: true, ..self }
    }

    /// Without white space at its ends.
    #[must_use]
    pub fn trimmed(self) -> Self {
        Self { trimmed: true, ..self }
    }

    /// In one scope only.
    #[must_use]
    pub fn only(self, scope: Scope) -> Self {
        Self { only: Some(scope), ..self }
    }

    /// Limits what `switch` does.
    #[must_use]
    pub fn limits(self, switch: &'static str) -> Self {
        Self { limits: Some(Limits { switch: switch.into(), required: false }), ..self }
    }

    /// Limits what `switch` does, which nobody may declare as on without it.
    #[must_use]
    pub fn has_to_limit(self, switch: &'static str) -> Self {
        Self { limits: Some(Limits { switch: switch.into(), required: true }), ..self }
    }

    /// Without effect, and not shown, until `switch` is on.
    #[must_use]
    pub fn needs(self, switch: &'static str) -> Self {
        Self { needs: Some(Needs { switch: switch.into(), same_request: false }), ..self }
    }

    /// The same, and requests carry both.
    #[must_use]
    pub fn needs_in_request(self, switch: &'static str) -> Self {
        Self { needs: Some(Needs { switch: switch.into(), same_request: true }), ..self }
    }

    /// A level of access that may not exceed that of `other`.
    #[must_use]
    pub fn at_most(self, other: &'static str) -> Self {
        Self { at_most: Some(other.into()), ..self }
    }

    /// Bounded by this setting of the groups above.
    #[must_use]
    pub fn bounded_by(self, setting: &'static str) -> Self {
        Self { bounded_by: Some(setting.into()), ..self }
    }

    /// ASCII from the release `major.minor` of the service on.
    #[must_use]
    pub fn ascii_from(self, major: u16, minor: u16) -> Self {
        Self { ascii_from: Some(Release::new(major, minor)), ..self }
    }

    /// Compared as topics.
    #[must_use]
    pub fn as_topics(self) -> Self {
        Self { compare: Compare::Topics, ..self }
    }

    /// The name under which a live object carries this field, if it ever does.
    pub fn live_name<'a>(&'a self, own: &'a str) -> Option<&'a str> {
        match &self.read {
            Readback::Same | Readback::IfPresent => Some(own),
            Readback::As(name) => Some(name),
            Readback::Never => None,
        }
    }

    /// Whether a service of the reference's release need not have it.
    pub fn is_late(&self) -> bool {
        self.since.is_some_and(Release::is_late)
    }

    /// What to write in the place of a deprecated spelling of `other`, which may be the other way
    /// round where the service is older.
    pub fn instead(&self, other: &str) -> String {
        let opposite = if self.opposite { " with the opposite value" } else { "" };
        format!("use `{other}`{opposite}")
    }

    /// The name under which requests carry this field.
    pub fn sent_name<'a>(&'a self, own: &'a str) -> &'a str {
        self.send_as.as_deref().unwrap_or(own)
    }

    /// What the schema of a property says.
    pub fn of(property: &Json) -> Self {
        property.get(KEYWORD).map_or(FIELD, |v| Self::deserialize(v).unwrap_or(FIELD))
    }
}

impl Transform for Weighed {
    fn transform(&mut self, schema: &mut Schema) {
        schema.insert(KEYWORD.into(), serde_json::json!(self.0));
        if self.0.replaced_by.is_some() {
            schema.insert("deprecated".into(), true.into());
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
