//! The attributes of projects, groups and users, and the flags of hooks. The file
//! `attributes.jsonc` has one row for each, written from the reference (2, 4.3; 1, 2.8).
//!
//! A row has the routes of an attribute, its values, its value in a new project, and its key in
//! responses. [`super::settings`] works on these rows; no handler knows their attributes. Defaults
//! that are not in the reference are those of the real service.

use serde::Deserializer;

use super::seed::serialized_word;
use crate::prelude::*;

/// The licence of a service. A higher tier includes the lower ones.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Deserialize,
    Serialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ServiceTier {
    /// Attributes and operations without a mark in the reference.
    Free,
    /// Also those marked PREMIUM, push rules among them.
    #[default]
    Premium,
    /// Also those marked ULTIMATE.
    Ultimate,
}

impl ServiceTier {
    /// The tier's name in lower case.
    pub(super) fn name(self) -> String {
        serialized_word(self)
    }

    /// The tier with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }
}

/// The tier and release that decide which attributes a service has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edition {
    pub(crate) tier: ServiceTier,
    pub(crate) release: Release,
}

impl Edition {
    /// The attributes in a list of the table that exist in this edition.
    pub(crate) fn filter_existing(
        self,
        attributes: &'static [Attribute],
    ) -> impl Iterator<Item = &'static Attribute> {
        attributes.iter().filter(move |attribute| attribute.exists_in(self))
    }

    pub(crate) fn project_attributes(self) -> impl Iterator<Item = &'static Attribute> {
        self.filter_existing(&ATTRIBUTE_TABLE.projects)
    }
}

/// The three routes that accept attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteRoute {
    /// POST /projects
    Create,
    /// POST /projects/user/:user_id
    CreateForUser,
    /// PUT /projects/:id
    Edit,
}

/// The type of the values of an attribute.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ValueKind {
    Flag,
    /// A text of at most this many characters; null clears it.
    Text(usize),
    /// A text of at most this many characters that is never cleared: null and empty texts change
    /// nothing.
    Name(usize),
    Number(Bounds),
    /// Like [`Self::Number`], and null clears it.
    Count(Bounds),
    /// A regular expression in RE2 syntax, of at most this many characters.
    Pattern(usize),
    /// The path of a file, relative and without `..`, of at most this many characters.
    File(usize),
    OneOf(#[serde(deserialize_with = "leaked")] &'static Vec<&'static str>),
    /// One of these integers.
    Choice(#[serde(deserialize_with = "leaked")] &'static Vec<i64>),
    /// A set of words, as an array or a text with commas.
    Topics,
    /// The object with the cleanup policy of the container registry.
    CleanupPolicy,
    /// The components of a token's subject claim: an array of these words that begins with
    /// `project_path`.
    Claims(#[serde(deserialize_with = "leaked")] &'static Vec<&'static str>),
    /// The deprecated boolean for this access level: false means `disabled`.
    TwinOf(&'static str),
    /// Another name of an attribute.
    AliasOf(&'static str),
    /// The opposite of a flag.
    OppositeOf(&'static str),
    /// A column of the project, or a parameter of one route. The handler processes it.
    Elsewhere,
}

/// The bounds of an integer, and the service's error text for other values. Without `complaint`,
/// the error text names the violated bound.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Bounds {
    pub(crate) least: i64,
    pub(crate) most: i64,
    #[serde(borrow)]
    pub(crate) complaint: Option<&'static str>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { least: i64::MIN, most: i64::MAX, complaint: None }
    }
}

/// The key of an attribute in responses, and the responses that have the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerKey {
    #[default]
    Same,
    As(&'static str),
    /// Like [`AnswerKey::Same`]. The real service shows the attribute. The list in the reference is
    /// incomplete and lacks it (1, 2.8: "the complete set of fields a given role sees: not shown").
    Unlisted,
    /// Like [`AnswerKey::Same`], in the simple form as well.
    Simple,
    /// Like [`AnswerKey::Same`], but only in the response for a single object, not in lists.
    Detail,
    /// No response has the attribute, or a handler adds it.
    Never,
}

/// The conditions under which an attribute is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Audience {
    #[default]
    Always,
    /// To callers who may read the repository.
    WithCode,
    /// To callers who may use issues.
    WithIssues,
    /// To callers who may read merge requests.
    WithMergeRequests,
    /// To callers who may administer issues.
    ByHelpers,
    /// While the project mirrors another repository.
    WhileMirroring,
    InForks,
    /// To callers with at least this level.
    By(i64),
    ByAdministrators,
}

/// The meaning of null in an edit of a project. An empty text counts as null for attributes that
/// are not texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NullHandling {
    /// The database does not allow null. The service saves nothing of the request, but reports no
    /// error.
    #[default]
    Unsaved,
    /// Like [`Self::Unsaved`]. An empty text also counts as null, before the list of values is
    /// checked.
    BlankUnsaved,
    /// Null is stored, and responses show null.
    Stored,
    /// The stored value stays.
    Kept,
    /// The value of new projects is stored.
    Preset,
    /// False is stored.
    False,
    /// The last value in the attribute's list of values is stored.
    Last,
    /// Null is stored. An empty text is replaced with this value, as if the groups above had set it.
    Above(bool),
    /// 400: the parameter must have a value.
    Refused,
    /// 400 with the model's error message that null is not in the list of values.
    Unlisted,
}

/// One attribute.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    #[serde(default = "free_tier")]
    pub(crate) tier: ServiceTier,
    /// A letter for each route that accepts the attribute: `C`, `U` and `E` for the three
    /// [`WriteRoute`]s. `c` means that a create accepts the attribute although the reference does
    /// not list it.
    #[serde(default = "all_routes")]
    pub(crate) routes: &'static str,
    pub(crate) kind: ValueKind,
    #[serde(default)]
    pub(crate) answer_key: AnswerKey,
    #[serde(default)]
    pub(crate) audience: Audience,
    /// The first release that restricts reading to `audience`. In earlier releases every caller can
    /// read the attribute.
    #[serde(default)]
    pub(crate) guarded_since: Release,
    #[serde(default)]
    pub(crate) on_null: NullHandling,
    /// From [`OBSERVED_RELEASE`] on, a create ignores the attribute.
    #[serde(default)]
    pub(crate) not_on_create: bool,
    #[serde(borrow, default)]
    refused_as: Option<&'static str>,
    /// The value in a new project.
    #[serde(default = "null_preset", deserialize_with = "leaked")]
    pub(crate) preset: &'static Value,
    /// True if the attribute is ignored unless an administrator sends it.
    #[serde(default)]
    pub(crate) administrators_only: bool,
    /// True if only top-level groups show and accept the attribute.
    #[serde(default)]
    pub(crate) top_level_only: bool,
    /// True if the attribute is ignored unless an owner sends it.
    #[serde(default)]
    pub(crate) owners_only: bool,
    /// The first release that has the attribute, and the first later release that lacks it.
    #[serde(default)]
    since: Release,
    until: Option<Release>,
    /// The first release that shows the attribute, if later than `since`.
    #[serde(default)]
    shown_since: Release,
}

/// Makes a value live as long as the process.
pub(super) fn leaked<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<&'static T, D::Error> {
    T::deserialize(deserializer).map(|value| &*Box::leak(Box::new(value)))
}

/// Like [`leaked`], for the items of a list.
pub(super) fn leaked_list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<&'static [T], D::Error> {
    Vec::deserialize(deserializer).map(|items| &*items.leak())
}

fn free_tier() -> ServiceTier {
    ServiceTier::Free
}

fn all_routes() -> &'static str {
    "CUE"
}

fn null_preset() -> &'static Value {
    &Value::Null
}

impl Attribute {
    pub(crate) fn is_accepted_on(&self, route: WriteRoute) -> bool {
        self.routes.contains(match route {
            WriteRoute::Create => 'C',
            WriteRoute::CreateForUser => 'U',
            WriteRoute::Edit => 'E',
        })
    }

    /// True if a service has this attribute.
    pub(crate) fn exists_in(&self, edition: Edition) -> bool {
        self.tier <= edition.tier
            && (!self.since.is_after_reference() || self.since <= edition.release)
            && self.until.is_none_or(|until| edition.release < until)
    }

    /// True if the release shows the attribute.
    pub(crate) fn is_shown_at(&self, release: Release) -> bool {
        self.answer_key != AnswerKey::Never && self.shown_since <= release
    }

    /// True if lists show the attribute too.
    pub(crate) fn is_in_lists(&self) -> bool {
        self.answer_key != AnswerKey::Detail
    }

    /// The name of the attribute in the error messages of the service's model.
    pub(crate) fn name_in_errors(&self) -> &'static str {
        self.refused_as.unwrap_or(self.name)
    }
}

pub(super) const PUBLIC_LEVELS: &[&str] = &["disabled", "private", "enabled", "public"];

/// The values of `visibility`.
pub(crate) const VISIBILITIES: &[&str] = &["private", "internal", "public"];

/// The content of `attributes.jsonc`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AttributeTable {
    pub(super) projects: Vec<Attribute>,
    pub(super) groups: Vec<Attribute>,
    pub(super) users: Vec<Attribute>,
    pub(super) hooks: Vec<Attribute>,
    pub(super) group_hooks: Vec<Attribute>,
    pub(super) push_rules: Vec<Attribute>,
    /// The permissions of custom roles.
    pub(super) permissions: Vec<Attribute>,
    /// The events that an integration may react to.
    pub(super) integration_events: Vec<Attribute>,
    /// An edit of a project must have at least one of these parameters.
    #[serde(borrow)]
    pub(super) enough: Vec<&'static str>,
}

/// Reads a table of this crate: JSON with comment lines.
pub(super) fn read_table<T: Deserialize<'static>>(text: &str) -> T {
    let json: String = text.lines().filter(|line| !line.starts_with("//")).collect();
    serde_json::from_str(json.leak()).expect("each table is read by tests")
}

pub(super) static ATTRIBUTE_TABLE: LazyLock<AttributeTable> =
    LazyLock::new(|| read_table(include_str!("attributes.jsonc")));

pub(super) const PACKAGES_LEVEL: &str = "package_registry_access_level";
pub(super) const PACKAGES_ENABLED: &str = "packages_enabled";
pub(super) const VARIABLES_OVERRIDE_ROLE: &str = "ci_pipeline_variables_minimum_override_role";
pub(super) const RESTRICT_VARIABLES: &str = "restrict_user_defined_variables";
pub(super) const DELETE_PIPELINES_AFTER: &str = "ci_delete_pipelines_in_seconds";

#[cfg(test)]
mod tests {
    use undrift_release::REFERENCE;

    use super::*;

    #[test]
    fn the_table_has_every_attribute_of_the_reference_once() {
        let rows: Vec<_> =
            ATTRIBUTE_TABLE.projects.iter().filter(|row| !row.since.is_after_reference()).collect();
        let mut names: Vec<_> = rows.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 88);
        assert_eq!(rows.len(), 88);
        let count_accepted = |route| rows.iter().filter(|row| row.is_accepted_on(route)).count();
        assert_eq!(
            [WriteRoute::Create, WriteRoute::CreateForUser, WriteRoute::Edit].map(count_accepted),
            [69, 70, 82]
        );
        let count_in_tier = |tier| rows.iter().filter(|row| row.tier == tier).count();
        assert_eq!([ServiceTier::Premium, ServiceTier::Ultimate].map(count_in_tier), [12, 1]);
    }

    #[test]
    fn attributes_exist_from_their_release_on() {
        let existing_names = |release| {
            let edition = Edition { tier: ServiceTier::Ultimate, release };
            edition
                .project_attributes()
                .map(|row| row.name)
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(existing_names(REFERENCE).len(), 88);
        let (earlier_names, later_names) =
            (existing_names(Release::new(16, 2)), existing_names(Release::new(18, 9)));
        assert!(
            earlier_names.contains("group_runners_enabled")
                && !earlier_names.contains("emails_enabled")
        );
        assert!(!earlier_names.contains("operations_access_level"));
        assert_eq!(later_names.len(), ATTRIBUTE_TABLE.projects.len() - 1);
    }

    #[test]
    fn a_twin_names_an_access_level() {
        for row in &ATTRIBUTE_TABLE.projects {
            if let ValueKind::TwinOf(target) = row.kind {
                assert!(
                    ATTRIBUTE_TABLE
                        .projects
                        .iter()
                        .any(|other| other.name == target
                            && matches!(other.kind, ValueKind::OneOf(_))),
                    "{} follows {target}",
                    row.name
                );
            }
        }
    }
}
