//! A field of a kind: its description, and how the API treats it.
//!
//! Each kind lists its fields in YAML (`kind/description.rs`). [`Field`] is the format of such an
//! entry. Checks, request bodies, diff, guards, the published schema and the reference page use
//! [`Field`].
//!
//! ```yaml
//! - name: public_builds
//!   about: Whether people who are not members may see jobs.
//!   type: boolean
//!   weakens: shows
//!   read: {as: public_jobs}
//! ```
//!
//! By default, create and edit requests accept a field, and responses show the field under its own
//! name. By default, every tier has the field, and the field is not nullable. The key `weakens` has
//! no default ([`Weakening`]). The schema omits some keys, types and words. Only undrift's own
//! files may contain them, not the files of users.

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

/// The schema keyword with the number of a [`Field`]. Published schemas omit this keyword.
const FIELD_KEYWORD: &str = "x-undrift";

/// The schema keyword with the other names of a property, or with the other names of a section.
/// Published schemas omit this keyword.
pub const ALIASES_KEYWORD: &str = "x-aliases";

/// The example of `aliases` in the schema.
const ALIAS_EXAMPLE: [&str; 1] = ["deadline"];

/// In `deprecated`, the prefix before the name of a replacing field that has the opposite value.
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
    /// Other names that users may write for the field. `check` then suggests the right name.
    #[serde(default)]
    #[schemars(inner(regex(pattern = "^[a-z][a-z0-9_]*$")), example = ALIAS_EXAMPLE)]
    pub aliases: Vec<&'static str>,
    /// A description of the field, in one or two sentences.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: &'static str,
    /// The type of the field's values.
    #[serde(rename = "type")]
    pub value_type: ValueType,
    /// The changes of the field that weaken a protection. The guard `protection` refuses such a
    /// change without an acknowledgement.
    pub weakens: Weakening,
    /// The allowed words. Required for a `word`; for a `level` or `grants` only if not all levels
    /// are allowed.
    #[serde(default)]
    pub words: Vec<Word>,
    /// The limits of valid values, in addition to the type.
    #[serde(default)]
    pub valid: ValidValues,
    /// The type of object that the value names: a user by username, a group or project by path, or
    /// a runner by its description or id. Requests contain the id of the object. Without
    /// `read`, responses contain the id too, under the name in `send_as`. With `read`, responses
    /// contain the object's name, or the URL of a group's page, under the name in `read`.
    pub names: Option<NamedObject>,
    /// Examples. Documentation shows the first example, and tests change the field to the second
    /// example.
    #[serde(default)]
    #[schemars(with = "Vec<Scalar>", length(min = 1, max = 2))]
    pub examples: Vec<Json>,
    /// Options of the types `grants` and `approvals`.
    #[serde(default)]
    pub grants: GrantOptions,
    /// The requests that accept the field (default: `always`).
    #[serde(default)]
    pub accepted: Acceptance,
    /// The name in requests, if this name differs from `name`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub send_as: Option<&'static str>,
    /// How responses show the field (default: `same`; a secret is `never` shown).
    #[serde(default)]
    pub read: Readback,
    /// The comparison of declared and live values (default: `exact`).
    #[serde(default)]
    pub compare: Equality,
    /// True if `null` clears the field (default: `false`).
    #[serde(default)]
    pub nullable: bool,
    /// True if plans hide the live value (default: `false`).
    #[serde(default)]
    pub sensitive: bool,
    /// True if an edit without this field resets the field, so that every edit must contain the
    /// field (default: `false`).
    #[serde(default)]
    pub with_every_edit: bool,
    /// The values that are used if the field is missing.
    #[serde(default)]
    pub default: FieldDefaults,
    /// The other fields and sections on which the field depends.
    #[serde(default)]
    pub relations: Relations,
    /// The rule for the values of the field in different entries: unique or equal (default:
    /// `nothing`).
    #[serde(default)]
    pub among: Uniqueness,
    /// The scope, tier and releases in which the service has the field.
    #[serde(default)]
    pub available: Availability,
    /// The entries in which the field is required (default: `nowhere`; a field of `identity` is in
    /// every entry).
    #[serde(default)]
    pub required: Requirement,
    /// The keys of a mapping, or of a row.
    #[serde(default)]
    #[schemars(skip)]
    pub keys: Vec<Field>,
    /// The replacement of a deprecated field: the name of another field, or `not` and the name of a
    /// field with the opposite value. With `several`, `about` names the replacing fields.
    #[schemars(skip)]
    pub deprecated: Option<&'static str>,
}

/// The limits of valid values.
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
    /// True if the text must start with the path of the group or project (default: `false`).
    pub starts_with_path: bool,
    /// The first release in which the service only accepts ASCII text.
    #[schemars(skip)]
    pub ascii_from: Option<Release>,
}

/// A lowest and a highest number, as `1..255`. Either number may be missing.
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

/// Options of a list of permissions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GrantOptions {
    /// The verb for what `grants` allow, or for what needs `approvals`.
    #[schemars(regex(pattern = "^[a-z]+( [a-z]+)*$"), example = &"deploy")]
    pub lets: Option<&'static str>,
    /// True if `grants` can also name deploy keys of the project, by their titles (default:
    /// `false`).
    pub deploy_keys: bool,
    /// The parameter that replaces `grants` with a single level in the request that creates an
    /// entry.
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

/// The other fields and sections on which a field depends. Each key names a field of the same entry
/// or mapping, unless the description of the key mentions a section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Relations {
    /// When the named field changes, the service resets this field.
    pub reset_by: Option<&'static str>,
    /// The service refuses a request that contains both the named field and this field.
    pub not_with: Option<&'static str>,
    /// The named field is a date. The date in this field must not be earlier.
    pub not_before: Option<&'static str>,
    /// A flag that this field limits. If the service ignored the limit, the flag would do more than
    /// was declared. Therefore a request that switches the flag on also contains this field, and
    /// the response must show this field.
    pub limits: Option<&'static str>,
    /// The field that must be on for this field to have an effect and to be shown.
    #[schemars(skip)]
    pub needs: Option<&'static str>,
    /// Like `needs`, but requests must contain both fields. The service refuses or ignores a
    /// request with only one of the two.
    #[schemars(skip)]
    pub sent_with: Option<&'static str>,
    /// The field whose level of access is the widest level for this field. The service refuses a
    /// wider level.
    #[schemars(skip)]
    pub at_most: Option<&'static str>,
    /// A flag. While it is `true`, responses contain `null` instead of this field's value.
    #[schemars(skip)]
    pub hidden_by: Option<&'static str>,
    /// The section of the same container whose entries the value names.
    #[schemars(skip)]
    pub names_entries: Option<&'static str>,
    /// A section of the same container. The value of this field is the name or the pattern of
    /// entries in the section. If the run creates such an entry, the entry is created first.
    #[schemars(skip)]
    pub follows: Option<&'static str>,
}

impl Relations {
    /// The field that must be on for this field to have an effect.
    pub fn switch_field(&self) -> Option<&'static str> {
        self.needs.or(self.sent_with)
    }
}

/// The scope, tier and releases in which the service has a field, a word or a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Availability {
    /// The scope or the users that have the field or section; absent if all have it. Two fields may have the
    /// same name, one for each scope.
    pub only: AppliesTo,
    /// The lowest tier of the service that has the field or section.
    pub tier: Tier,
    /// The release of the service that added the field or section, as text: `'16.2'`.
    pub since: Option<Release>,
    /// The release of the service that removed the field or section, as text.
    pub until: Option<Release>,
    /// True if undrift itself uses the field when the service is older than `since` and does not
    /// store the field.
    #[schemars(skip)]
    pub local_before: bool,
}

impl Availability {
    /// The only scope that has the field or section; `None` for both scopes.
    pub const fn scope(self) -> Option<Scope> {
        match self.only {
            AppliesTo::Group => Some(Scope::Group),
            AppliesTo::Project => Some(Scope::Project),
            _ => None,
        }
    }

    /// True if `scope` has the field or section.
    pub fn exists_in(self, scope: Scope) -> bool {
        self.scope().is_none_or(|only_scope| only_scope == scope)
    }

    /// True if only top-level groups have the field or section.
    pub const fn is_only_top_level(self) -> bool {
        matches!(self.only, AppliesTo::TopLevel | AppliesTo::TopLevelAdministrators)
    }

    /// True if only administrators may set the field.
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
    /// The meaning of the word, in one sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"))]
    pub about: &'static str,
    /// The scope, tier and releases in which the service has the word.
    #[serde(default)]
    #[schemars(skip)]
    pub available: Availability,
    /// The fields that an entry with this word has. Only for the words of the first field in
    /// `identity`, if entries have different fields.
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
    /// Lists with the names of the fields that entries may have in addition.
    pub has: Vec<Vec<&'static str>>,
    /// The name of an exclusive set of variants, such as "issue tracker". A project can have only
    /// one entry of this set.
    pub only_one: Option<&'static str>,
    /// Values that replace the examples of the fields in the example of an entry. `null` leaves a
    /// field out of the example.
    pub example: Object,
    /// The names of all fields in `needs` and `has`.
    #[serde(skip)]
    pub fields: BTreeSet<&'static str>,
}

/// Deserializes a list that lives as long as the program, like all descriptions of kinds.
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
    /// The field with the properties that follow from its type. The keys of the field are completed
    /// in the same way.
    #[must_use]
    pub fn with_implied_properties(mut self) -> Self {
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
        self.keys = self.keys.into_iter().map(Self::with_implied_properties).collect();
        self
    }

    /// The secrecy of the field.
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

    /// For [`Weakening::WhenLater`] and [`Weakening::WhenLaterIn`]: the values, strictest first.
    pub fn strictness_order(&self) -> Vec<Json> {
        match &self.weakens {
            Weakening::WhenLaterIn(values) => values.clone(),
            _ => self.words.iter().map(|word| word.word.into()).collect(),
        }
    }

    /// True if the value is the word of an [`AccessLevel`](crate::level::AccessLevel). Requests and
    /// responses contain the number of the level.
    pub const fn is_level(&self) -> bool {
        matches!(self.value_type, ValueType::Level | ValueType::RuleLevel)
    }

    /// True if the value may be a reference to a secret or to a file.
    pub const fn accepts_reference(&self) -> bool {
        self.is_upload()
            || matches!(self.value_type, ValueType::PublicKey)
            || !matches!(self.secrecy(), Secrecy::Open)
    }

    /// True if the field names a file to upload, as `{file: PATH}`. The value is then a
    /// [`crate::value::Value::File`].
    pub const fn is_upload(&self) -> bool {
        matches!(self.value_type, ValueType::File)
    }

    /// The name of the field that replaces this deprecated field.
    pub fn replacement_name(&self) -> Option<&'static str> {
        let replacement = self.deprecated.filter(|other| *other != "several")?;
        Some(replacement.strip_prefix(OPPOSITE_PREFIX).unwrap_or(replacement))
    }

    /// True if the replacing field has the opposite value.
    pub fn has_opposite_replacement(&self) -> bool {
        self.deprecated.is_some_and(|other| other.starts_with(OPPOSITE_PREFIX))
    }

    /// True if every response shows the field.
    pub const fn is_always_shown(&self) -> bool {
        matches!(self.read, Readback::Same | Readback::Nested | Readback::As(_))
    }

    /// True if responses wrap the value, as in `{"value": 3}`.
    pub fn is_nested(&self) -> bool {
        self.read == Readback::Nested
    }

    /// True if the value is a regular expression in RE2 syntax.
    pub fn is_regular_expression(&self) -> bool {
        self.value_type == ValueType::Expression
    }

    /// True if the value is a list in which the order of items does not matter.
    pub fn ignores_order(&self) -> bool {
        let is_compared_as_set =
            matches!(self.compare, Equality::Set | Equality::Topics | Equality::Rows);
        is_compared_as_set || self.names.is_some()
    }

    /// The name in responses; `None` if responses never contain the field.
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

    /// Advice to use `other` instead of this field. `other` is the replacement, or, on a service
    /// that lacks the replacement, the deprecated field.
    pub fn replacement_hint(&self, other: &str) -> String {
        let opposite =
            if self.has_opposite_replacement() { " with the opposite value" } else { "" };
        format!("use `{other}`{opposite}")
    }

    /// Attaches this field to `property`, a schema.
    pub fn attach_to(&'static self, property: &mut Json) {
        let mut fields = ATTACHED_FIELDS.write().unwrap_or_else(PoisonError::into_inner);
        property[FIELD_KEYWORD] = fields.len().into();
        fields.push(self);
    }

    /// Attaches to `property` a field whose values are never shown.
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
