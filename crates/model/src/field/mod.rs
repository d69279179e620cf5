//! A field of a kind: its description, and how the API treats it.
//!
//! Each kind lists its fields in YAML (`kind/description.rs`). [`Field`] is the format of such an
//! entry. Checks, request bodies, diff, guards, the published schema and the reference page use it.
//!
//! ```yaml
//! - name: public_builds
//!   about: Whether people who are not members may see jobs.
//!   type: boolean
//!   weakens: shows
//!   read: {as: public_jobs}
//! ```
//!
//! The defaults are the common case: accepted on create and edit, shown under its own name, in
//! every tier, not nullable. The effect of a change has no default: see [`Weakening`]. Keys,
//! types and words that are missing in the schema are only for undrift's own files: a user's file
//! must not contain them.

mod words;

use std::{
    collections::BTreeSet,
    sync::{LazyLock, PoisonError, RwLock},
};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::{
    release::Release,
    value::{Json, Object},
};

pub use words::*;

/// The schema keyword with the number of a [`Field`]. It is not published.
const FIELD_KEYWORD: &str = "x-undrift";

/// The schema keyword with the other names of a property, or of the section of its entries. It is
/// not published.
pub const ALIASES_KEYWORD: &str = "x-aliases";

/// An example of other names.
const ALIAS_EXAMPLE: [&str; 1] = ["deadline"];

/// The prefix of the name of a replacing field that has the opposite value.
const OPPOSITE_PREFIX: &str = "not ";

/// The fields that schemas refer to by number.
static ATTACHED_FIELDS: RwLock<Vec<&'static Field>> = RwLock::new(Vec::new());

/// A field of an entry, of a mapping, or of a row of a list.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The name of the field in manifests.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"due_date")]
    pub name: &'static str,
    /// Other names that users may write for it: `check` then suggests the right name.
    #[serde(default)]
    #[schemars(inner(regex(pattern = "^[a-z][a-z0-9_]*$")), example = ALIAS_EXAMPLE)]
    pub aliases: Vec<&'static str>,
    /// What the field is, in a sentence or two.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: &'static str,
    /// The type of its values.
    #[serde(rename = "type")]
    pub value_type: ValueType,
    /// Which changes of it weaken a protection: the guard `protection` asks before such a change.
    pub weakens: Weakening,
    /// The allowed words. Required for a `word`; for a `level` or `grants` only if not all levels
    /// are allowed.
    #[serde(default)]
    pub words: Vec<Word>,
    /// Which values are valid, beyond the type.
    #[serde(default)]
    pub valid: ValidValues,
    /// The object that its value names: a user by username, a group or project by path, or a runner
    /// by its description or id. Requests contain the id of the object. Responses contain the id,
    /// under the name in `send_as`, or else the object's name or the URL of a group's page, under the
    /// name in `read`.
    pub names: Option<NamedObject>,
    /// Examples: the first one is shown, and tests change the field to the second one.
    #[serde(default)]
    #[schemars(with = "Vec<Scalar>", length(min = 1, max = 2))]
    pub examples: Vec<Json>,
    /// More about `grants` and `approvals`.
    #[serde(default)]
    pub grants: GrantOptions,
    /// The requests that accept it (default: `always`).
    #[serde(default)]
    pub accepted: Acceptance,
    /// The name in requests, if different.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub send_as: Option<&'static str>,
    /// How responses show it (default: `same`; a secret is `never` shown).
    #[serde(default)]
    pub read: Readback,
    /// How declared and live values are compared (default: `exact`).
    #[serde(default)]
    pub compare: Equality,
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
    /// The values that are used if the field is missing.
    #[serde(default)]
    pub default: FieldDefaults,
    /// The names of other fields that it depends on.
    #[serde(default)]
    pub relations: Relations,
    /// Whether the values in different entries must be unique or equal (default: `nothing`).
    #[serde(default)]
    pub among: Uniqueness,
    /// Where the service has it.
    #[serde(default)]
    pub available: Availability,
    /// Where it is required (default: `nowhere`; a field of `identity` is in every entry).
    #[serde(default)]
    pub required: Requirement,
    /// The keys of a mapping, or of a row.
    #[serde(default)]
    #[schemars(skip)]
    pub keys: Vec<Field>,
    /// The replacement of a deprecated field: the name of another field, `not` and the name of a
    /// field with the opposite value, or `several`, which `about` names.
    #[schemars(skip)]
    pub deprecated: Option<&'static str>,
}

/// Which values are valid.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ValidValues {
    /// A regular expression that the text must match.
    pub pattern: Option<&'static str>,
    /// The limits of an integer, or of the number of characters of a text or of each text of a list.
    pub size: NumberRange,
    /// The limits of the number of items of a list, or of keys of a mapping.
    #[schemars(skip)]
    pub items: NumberRange,
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
pub struct NumberRange {
    /// The lowest number.
    pub min: Option<i64>,
    /// The highest number.
    pub max: Option<i64>,
}

impl TryFrom<String> for NumberRange {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let message = "a range has two numbers, such as `1..255`; either may be missing";
        let (min, max) = text.split_once("..").ok_or(message)?;
        let [min, max] = [min, max].map(|text| match text {
            "" => Ok(None),
            number => number.parse().map(Some).map_err(|_| message),
        });
        Ok(Self { min: min?, max: max? })
    }
}

/// More about a list of permissions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GrantOptions {
    /// The verb for the action that `grants` allow, or that `approvals` are needed for.
    #[schemars(regex(pattern = "^[a-z]+( [a-z]+)*$"), example = &"deploy")]
    pub lets: Option<&'static str>,
    /// Whether `grants` can also name deploy keys of the project, by their titles (default: `false`).
    pub deploy_keys: bool,
    /// Another parameter for `grants` that consist of a single level, in the request that creates
    /// an entry.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub single_level_as: Option<&'static str>,
}

/// The values that are used if the field is missing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FieldDefaults {
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

/// The other fields that a field depends on. Each key names a field of the same entry or mapping,
/// unless its description is about a section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Relations {
    /// When that field changes, the service resets this field.
    pub reset_by: Option<&'static str>,
    /// The service refuses a request that contains both.
    pub not_with: Option<&'static str>,
    /// That field is a date, and the date in this field must not be before it.
    pub not_before: Option<&'static str>,
    /// A flag that this field limits. If the service ignored the limit, the flag would do more than
    /// was declared. So a request that switches the flag on also contains this field, and the
    /// response must show it.
    pub limits: Option<&'static str>,
    /// The field that must be on for this field to have an effect and to be shown.
    #[schemars(skip)]
    pub needs: Option<&'static str>,
    /// Like `needs`, but requests must contain both: the service refuses or ignores one alone.
    #[schemars(skip)]
    pub sent_with: Option<&'static str>,
    /// The field with another level of access. The service refuses a wider level for this field.
    #[schemars(skip)]
    pub at_most: Option<&'static str>,
    /// A flag. While it is `true`, responses contain `null` instead of this field's value.
    #[schemars(skip)]
    pub hidden_by: Option<&'static str>,
    /// The section of the same container whose entries the value names.
    #[schemars(skip)]
    pub names_entries: Option<&'static str>,
    /// The section of the same container whose entry with this name, or of this pattern, must exist
    /// first, if the run creates it.
    #[schemars(skip)]
    pub follows: Option<&'static str>,
}

impl Relations {
    /// The field that must be on for this one to have an effect.
    pub fn switch_field(&self) -> Option<&'static str> {
        self.needs.or(self.sent_with)
    }
}

/// Where something exists: the scope, tier and releases of the service that have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Availability {
    /// The only scope or users that have it, if not all. Two fields may have the same name, one for
    /// each scope.
    pub only: AppliesTo,
    /// The lowest tier of the service that has it.
    pub tier: Tier,
    /// The release of the service that added it, as text: `'16.2'`.
    pub since: Option<Release>,
    /// The release of the service that removed it, as text.
    pub until: Option<Release>,
    /// Whether undrift itself uses it if the service is older than `since` and does not store it.
    #[schemars(skip)]
    pub local_before: bool,
}

impl Availability {
    /// The only scope that has it.
    pub const fn scope(self) -> Option<Scope> {
        match self.only {
            AppliesTo::Group => Some(Scope::Group),
            AppliesTo::Project => Some(Scope::Project),
            _ => None,
        }
    }

    /// True if `scope` has it.
    pub fn exists_in(self, scope: Scope) -> bool {
        self.scope().is_none_or(|only_scope| only_scope == scope)
    }

    /// True if only top-level groups have it.
    pub const fn is_only_top_level(self) -> bool {
        matches!(self.only, AppliesTo::TopLevel | AppliesTo::TopLevelAdministrators)
    }

    /// True if only administrators may set it.
    pub const fn needs_administrator(self) -> bool {
        matches!(self.only, AppliesTo::Administrators | AppliesTo::TopLevelAdministrators)
    }
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
    /// Where the service has it.
    #[serde(default)]
    #[schemars(skip)]
    pub available: Availability,
    /// For the first field of `identity`: the fields of the entry with this word, if entries
    /// differ.
    #[schemars(skip)]
    pub entry: Option<Variant>,
}

/// The fields of entries of one variant, in addition to their identity.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Variant {
    /// The fields that each request must contain.
    #[serde(deserialize_with = "leaked_list")]
    pub needs: &'static [&'static str],
    /// Names of the field lists that it may have in addition.
    pub has: Vec<Vec<&'static str>>,
    /// The exclusive group (such as "issue tracker"), if a project can have only one entry of it.
    pub only_one: Option<&'static str>,
    /// Values of an example that replace the examples of the fields; `null` for a field without
    /// one.
    pub example: Object,
    /// All its fields.
    #[serde(skip)]
    pub fields: BTreeSet<&'static str>,
}

/// A list that lives as long as the program, like everything that describes kinds.
pub fn leaked_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    list: D,
) -> Result<&'static [T], D::Error> {
    Vec::deserialize(list).map(|list| &*list.leak())
}

/// True if a flag with this value is on: it is neither `false` nor unset.
pub fn is_on(value: &Json) -> bool {
    !matches!(value, Json::Null | Json::Bool(false)) && value != ""
}

impl Field {
    /// The field, completed with the properties that follow from its type, and with completed keys.
    #[must_use]
    pub fn with_implied_parts(mut self) -> Self {
        match self.value_type {
            ValueType::Secret => self.read = Readback::Never,
            ValueType::Level => self.weakens = Weakening::Access,
            ValueType::Grants | ValueType::Approvals | ValueType::LevelGrants | ValueType::Rows => {
                self.compare = Equality::Rows;
            }
            _ => {}
        }
        // Responses contain the id under the same name as requests.
        if self.names.is_some() && self.read == Readback::Same {
            self.read = Readback::As(self.sent_name());
        }
        if self.read == Readback::As(self.name) {
            self.read = Readback::Same;
        }
        for variant in self.words.iter_mut().filter_map(|word| word.entry.as_mut()) {
            let names = variant.needs.iter().chain(variant.has.iter().flatten());
            variant.fields = names.copied().collect();
        }
        self.keys = self.keys.into_iter().map(Self::with_implied_parts).collect();
        self
    }

    /// Its secrecy.
    pub const fn secrecy(&self) -> Secrecy {
        match self.value_type {
            ValueType::Secret => Secrecy::Reference,
            ValueType::Address | ValueType::Addresses => Secrecy::Address,
            _ if self.sensitive => Secrecy::Sensitive,
            _ => Secrecy::Open,
        }
    }

    /// The words that select a variant of an entry, with the variant.
    pub fn variants(&self) -> impl Iterator<Item = (&'static str, &Variant)> {
        self.words.iter().filter_map(|word| Some((word.word, word.entry.as_ref()?)))
    }

    /// For [`Weakening::WhenLater`]: the values, strictest first.
    pub fn strictness_order(&self) -> Vec<Json> {
        match &self.weakens {
            Weakening::WhenLaterIn(values) => values.clone(),
            _ => self.words.iter().map(|word| word.word.into()).collect(),
        }
    }

    /// True if its value is the word of a [`AccessLevel`](crate::level::AccessLevel). Requests and responses
    /// contain the number.
    pub const fn is_level(&self) -> bool {
        matches!(self.value_type, ValueType::Level | ValueType::RuleLevel)
    }

    /// True if its value may be a reference to a secret or to a file.
    pub const fn accepts_reference(&self) -> bool {
        self.is_upload()
            || matches!(self.value_type, ValueType::PublicKey)
            || !matches!(self.secrecy(), Secrecy::Open)
    }

    /// True if it names a file to upload, as `{file: PATH}`; the value is then a
    /// [`crate::value::Value::File`].
    pub const fn is_upload(&self) -> bool {
        matches!(self.value_type, ValueType::File)
    }

    /// The field that replaces this deprecated one.
    pub fn replacement_name(&self) -> Option<&'static str> {
        let replacement = self.deprecated.filter(|other| *other != "several")?;
        Some(replacement.strip_prefix(OPPOSITE_PREFIX).unwrap_or(replacement))
    }

    /// True if the replacing field has the opposite value.
    pub fn is_opposite(&self) -> bool {
        self.deprecated.is_some_and(|other| other.starts_with(OPPOSITE_PREFIX))
    }

    /// True if every response shows it.
    pub const fn is_always_shown(&self) -> bool {
        matches!(self.read, Readback::Same | Readback::Nested | Readback::As(_))
    }

    /// True if responses contain an object with the value in `value`.
    pub fn is_nested(&self) -> bool {
        self.read == Readback::Nested
    }

    /// True if the value is a regular expression in RE2 syntax.
    pub fn is_expression(&self) -> bool {
        self.value_type == ValueType::Expression
    }

    /// True if the order of its items does not matter.
    pub fn ignores_order(&self) -> bool {
        let is_compared_as_set =
            matches!(self.compare, Equality::Set | Equality::Topics | Equality::Rows);
        is_compared_as_set || self.names.is_some()
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

    /// True if the field is newer than the release of the reference, so that a service may lack it.
    pub fn is_newer_than_reference(&self) -> bool {
        self.available.since.is_some_and(Release::is_after_reference)
    }

    /// Advice to use `other` instead of this deprecated field. On older services, the other one may
    /// be deprecated instead.
    pub fn replacement_hint(&self, other: &str) -> String {
        let opposite = if self.is_opposite() { " with the opposite value" } else { "" };
        format!("use `{other}`{opposite}")
    }

    /// Attaches this field to `property`, a schema.
    pub fn attach_to(&'static self, property: &mut Json) {
        let mut fields = ATTACHED_FIELDS.write().unwrap_or_else(PoisonError::into_inner);
        property[FIELD_KEYWORD] = fields.len().into();
        fields.push(self);
    }

    /// Attaches a field whose values are never shown to `property`.
    pub fn attach_sensitive(property: &mut Json) {
        static SENSITIVE_FIELD: LazyLock<Field> =
            LazyLock::new(|| Field { sensitive: true, ..Field::default() });
        SENSITIVE_FIELD.attach_to(property);
    }

    /// Detaches the field from the schema `property`.
    pub fn detach_from(property: &mut Object) {
        property.shift_remove(FIELD_KEYWORD);
    }

    /// The field that is attached to the schema `property`, or a default field.
    pub fn from_schema(property: &Json) -> &'static Self {
        static DEFAULT_FIELD: LazyLock<Field> = LazyLock::new(Field::default);
        let number = property.get(FIELD_KEYWORD).and_then(Json::as_u64).map(usize::try_from);
        let fields = ATTACHED_FIELDS.read().unwrap_or_else(PoisonError::into_inner);
        let field = number.and_then(|number| fields.get(number.ok()?).copied());
        field.unwrap_or(&DEFAULT_FIELD)
    }
}
