//! The enumerations that describe a field.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::Json;

/// The entries in which a field is required.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    /// Nowhere.
    #[default]
    Nowhere,
    /// In an entry that is created.
    OnCreate,
    /// In every entry, mapping or row.
    #[schemars(skip)]
    Always,
    /// In an entry that turns on the flag that this field limits. Without this field, the flag
    /// would have no limit.
    #[schemars(skip)]
    WithLimited,
}

/// The rule for equal values of a field in different entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Uniqueness {
    /// No rule.
    #[default]
    Nothing,
    /// The service refuses a second entry with the same value.
    Unique,
    /// No group above may have an entry with the same value.
    UniqueAbove,
    /// A group and a project directly in this group may not both have an entry with the same value.
    UniqueInGroup,
    /// Entries with the same identity share one value in all groups and projects.
    Shared,
}

/// The groups, projects or callers for which a field or section is available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppliesTo {
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
    /// The highest level of access that the entry gives. `weakens` is ignored for this type, because
    /// each change of the level gives or takes away access.
    Level,
    /// A reference to a secret.
    Secret,
    /// A public SSH key, or a reference to one.
    PublicKey,
    /// A URL, or a reference to a URL with a credential. Credentials in it are never shown.
    Address,
    /// Who may do something: a list of levels, users and groups, edited by `id` and `_destroy`.
    Grants,
    /// Who must approve something: a list like `grants`, in which each row also has a number of
    /// approvals. A request that removes a row also contains the level, user or group of the row.
    /// Only an entry with `grants` can have this type.
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
    /// Text, a number, a boolean or a list of these. The service converts all but lists to text.
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

/// The changes of a field that weaken a protection.
// `null` and empty text are treated as unset, and an unknown value as the strictest.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weakening {
    /// No change.
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
    /// More people get a grant. All entries for the same object are judged together.
    WhenWider,
    /// Fewer approvals are required, or more people can give an approval.
    WhenFewer,
    /// A flag changes to `false`, which gives access to more people, or lets more content leave the
    /// group or project. If the variant starts with `opens`, then removing the entry weakens no
    /// protection.
    OpensWhenOff,
    /// A flag changes to `true`.
    OpensWhenOn,
    /// The value changes.
    OpensWhenChanged,
    /// An address changes, and the request does not contain its secret. The service would then send
    /// the stored secret to the new address.
    OpensWhenMoved,
    /// The value changes, and the new value is a URL or names another project.
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
    /// The field is not a protection but gives access. A change may add or remove access.
    #[schemars(skip)]
    Access,
    /// The field is not a protection, but a change may make something visible to more people. The
    /// field is a visibility, a level of access or a flag.
    #[schemars(skip)]
    Shows,
}

/// Text, a number, `true` or `false`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, extend("type" = ["string", "integer", "boolean"]))]
pub struct Scalar(pub Json);

/// The risks that guards check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk {
    /// A protection of the group or project becomes weaker, for example because its entry is
    /// removed.
    Weakens,
    /// People from outside may get access, or content may leave the group or project. Guards also
    /// check new entries for this risk, even in a new container, but not the settings of a new
    /// container. Removing an entry never has this risk.
    Opens,
    /// A part of the group or project becomes visible to more people.
    Shows,
}

impl Weakening {
    /// The risk that some changes of the field's value have. `None` if guards ignore the field, or
    /// use [`crate::kind::KindRules::effects`].
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

/// The type of the object that a document describes: a group or a project.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// A group.
    Group,
    /// A project.
    #[default]
    Project,
}

impl Scope {
    /// Every scope, in the order of reports.
    pub const ALL: [Self; 2] = [Self::Group, Self::Project];

    /// Returns `group` or `project`, depending on the scope.
    pub const fn choose<T: Copy>(self, group: T, project: T) -> T {
        match self {
            Self::Group => group,
            Self::Project => project,
        }
    }

    /// The noun of the scope. Paths of operations also contain this noun.
    pub const fn noun(self) -> &'static str {
        self.choose("group", "project")
    }

    /// The value of `kind` in the documents of this scope.
    pub const fn document_kind(self) -> &'static str {
        self.choose("Group", "Project")
    }
}

/// The type of the object that a field names.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NamedObject {
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

impl NamedObject {
    /// The noun of this type in messages.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Runner => "runner",
            Self::Role => "custom role",
            _ => self.scope().map_or("user", Scope::noun),
        }
    }

    /// The scope whose documents declare objects of this type; `None` for users, runners and roles.
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
pub enum Acceptance {
    /// Create, create for a user, and edit.
    #[default]
    Always,
    /// Create and create for a user. The field cannot be changed later.
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
    /// Edit, but only with `undrift call`. Manifests cannot contain the field.
    ByCall,
    /// No request. Only undrift itself uses the field, such as `previously`, the former names of an
    /// entry.
    Never,
}

/// A request that can contain fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteRequest {
    /// The create request.
    Create,
    /// The request that creates a project for another user.
    CreateForUser,
    /// The edit request.
    Edit,
}

impl Acceptance {
    /// True if `request` accepts the field.
    pub const fn includes(self, request: WriteRequest) -> bool {
        match self {
            Self::Always => true,
            Self::OnCreate => matches!(request, WriteRequest::Create | WriteRequest::CreateForUser),
            Self::OnOwnCreate => matches!(request, WriteRequest::Create),
            Self::OnCreateForUserAndEdit => {
                matches!(request, WriteRequest::CreateForUser | WriteRequest::Edit)
            }
            Self::OnOwnCreateAndEdit => {
                matches!(request, WriteRequest::Create | WriteRequest::Edit)
            }
            Self::OnEdit => matches!(request, WriteRequest::Edit),
            Self::ByCall | Self::Never => false,
        }
    }
}

/// The form of a field in responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Readback {
    /// Under its own name.
    #[default]
    Same,
    /// Under another name.
    As(#[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))] &'static str),
    /// Under its own name, as an object with the value in `value`. If `locked` in this object is
    /// true, the value comes from a group above and cannot be changed. Then the field is not
    /// compared.
    Nested,
    /// The reference does not list the field in responses, but some installations return the field.
    /// The field is compared if the response contains it. Otherwise the field is sent only on
    /// create or with `--resend`.
    #[schemars(skip)]
    IfPresent,
    /// Never: a secret, a file, or an instruction.
    Never,
}

/// The comparison of a declared value with a live value. A description that a user writes may
/// contain only the variants that are in the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Equality {
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
    /// Days and points in time. A day is compared as its start in UTC.
    Instant,
    /// Texts. The service removes white space from both ends.
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

/// The secrecy of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// Not secret.
    Open,
    /// The declared value may be a literal or a reference. The live value is never shown.
    Sensitive,
    /// The declared value must be a reference.
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
    /// The free tier, which every service has.
    #[default]
    Free,
    /// The tier that adds push rules, approvals, mirroring, templates and restore.
    Premium,
    /// The tier that adds status checks.
    Ultimate,
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}
