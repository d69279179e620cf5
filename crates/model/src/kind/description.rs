//! The format of the files that describe kinds. A file is read into a [`Kind`] with its
//! [`ScopedKind`]s and [`Field`]s. The program uses these structs directly. Properties that follow
//! from other keys are derived once, after reading.
//!
//! Only undrift's own files may contain keys, types and words that the schema does not have. A
//! user's file must not contain them.

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::{Absence, AddressKey, FieldTable, KindRules, ReadSource, Removal, Shape};
use crate::{
    field::{
        Acceptance, AppliesTo, Availability, Field, NumberRange, Requirement, Scope, ValidValues,
        leaked_list,
    },
    level::AccessLevel,
    operation::{AnyOp, Method, Op, Read, ResponseBody, Write},
    page::EntryKeys,
    text,
    value::{Json, Object},
};

/// The example for `aliases` in the schema.
const ALIAS_EXAMPLE: [&str; 1] = ["feature_toggles"];

/// A collection below groups or projects, managed as a section of manifests.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// The name of the section in manifests.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"feature_flags")]
    pub section: &'static str,
    /// Other names that users may write for the section. `check` then suggests the right name.
    #[serde(default)]
    #[schemars(inner(regex(pattern = "^[a-z][a-z0-9_]*$")), example = ALIAS_EXAMPLE)]
    pub aliases: Vec<&'static str>,
    /// The noun for one entry. The operations of `undrift call` are named after it.
    #[schemars(regex(pattern = "^[a-z][a-z0-9]*( [a-z0-9]+)*$"), example = &"feature flag")]
    pub noun: &'static str,
    /// The meaning of an entry, in a sentence.
    #[schemars(regex(pattern = r"^\S[^\n]*\.$"), example = &"A time in which nothing is deployed.")]
    pub about: &'static str,
    /// The form of the section (default: `list`).
    #[serde(default)]
    pub shape: Shape,
    /// The fields that identify an entry, in the order in which addresses show them. If the path has
    /// a parent entry, the first field names the parent, and no request contains it.
    #[serde(default, deserialize_with = "leaked_list")]
    pub identity: &'static [&'static str],
    /// Fields of the identity. Each entry has exactly one of these fields.
    #[serde(default, deserialize_with = "leaked_list")]
    pub either: &'static [&'static str],
    /// The field with the name that the service stores. An entry is found by this name first, then
    /// by its identity.
    pub name_field: Option<&'static str>,
    /// The field by which entries of other sections name an entry (default: its identity).
    pub called_by: Option<&'static str>,
    /// The guard of a removal. Must be `access` if a field is a `level`.
    pub removal: Removal,
    /// Fields that give access if they are set and not `false`. The guard `protection` also asks
    /// before an entry with one of these fields is created.
    #[serde(default, deserialize_with = "leaked_list")]
    pub grants: &'static [&'static str],
    /// Differences from most other collections.
    #[serde(default)]
    pub traits: Vec<CollectionTrait>,
    /// The request that creates an entry (default: `post`).
    #[serde(default)]
    pub create: CreateMethod,
    /// The request that changes an entry (default: `put`).
    #[serde(default)]
    pub edit: EditMethod,
    /// The response fields that identify an entry (default: the fields in the path). A path
    /// argument that is not named like a field contains the first of these fields. If one of these
    /// fields is `id`, entries of other sections refer to an entry by this id.
    #[serde(default, deserialize_with = "leaked_list")]
    pub keys: &'static [&'static str],
    /// The other response fields that each entry has (default: the fields of `identity`).
    #[serde(default, deserialize_with = "leaked_list")]
    #[schemars(skip)]
    pub shows: &'static [&'static str],
    /// The way to read a single entry, if the list shows only a part of each entry.
    #[schemars(skip)]
    pub detail: Option<Detail>,
    /// An action that the service requires before it deletes an entry. The action is a POST request
    /// below the path of the entry. The value is the last part of its path, and its parameter if it
    /// needs one.
    #[schemars(with = "Option<String>", example = &"stop?force=true")]
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*(\\?[a-z][a-z0-9_]*=[a-z0-9_]+)?$"))]
    pub before_removal: Option<RemovalAction>,
    /// The fields of an entry.
    #[schemars(length(min = 1))]
    pub fields: Vec<Field>,
    /// Fields of responses that manifests do not have. `export` names these fields if they are set.
    #[serde(default, deserialize_with = "leaked_list")]
    pub unmanaged: &'static [&'static str],
    /// Fields of responses that the rules in Rust read and that are not in `fields`.
    #[serde(default, deserialize_with = "leaked_list")]
    #[schemars(skip)]
    pub looked_at: &'static [&'static str],
    /// The places of the collection: a path below projects, a path below groups, or both.
    #[schemars(length(min = 1, max = 2))]
    pub homes: Vec<ScopedKind>,
    /// The name of the rules in Rust, for behaviour that data cannot express.
    #[schemars(skip)]
    pub hooks: Option<&'static str>,
    /// The fields that the creation of an entry needs, in addition to the identity.
    #[serde(skip)]
    pub required_fields: &'static [&'static str],
    /// The rules that [`Self::hooks`] names.
    #[serde(skip)]
    pub rules_in_rust: Option<&'static dyn KindRules>,
}

impl Kind {
    /// The rules in Rust, or the default rules, which are derived from the fields.
    pub fn rules(&self) -> &dyn KindRules {
        self.rules_in_rust.unwrap_or(self)
    }

    /// The description of an entry in the scope of `scoped_kind`, as a field whose value is a
    /// mapping.
    pub(super) fn entry_field(&self, scoped_kind: &ScopedKind) -> Field {
        let min_keys = matches!(scoped_kind.read_source, ReadSource::Optional(_)).then_some(1);
        let fields =
            self.fields.iter().filter(|field| field.available.exists_in(scoped_kind.scope));
        let declarable_fields = fields.filter(|field| field.accepted != Acceptance::ByCall);
        let mut keys: Vec<_> =
            declarable_fields.map(|field| self.adapt_field(scoped_kind, field)).collect();
        describe_variants(&mut keys, scoped_kind.scope);
        Field {
            about: self.about,
            aliases: self.aliases.clone(),
            keys,
            valid: ValidValues {
                items: NumberRange { min: min_keys, max: None },
                ..ValidValues::default()
            },
            ..Field::default()
        }
    }

    /// `field`, with the properties that `scoped_kind` sets for all fields.
    fn adapt_field(&self, scoped_kind: &ScopedKind, field: &Field) -> Field {
        // No request sends the field of the parent, because the path contains the parent's id.
        let is_parent = scoped_kind.parent.is_some_and(|parent| parent.field == field.name);
        // An entry may lack an identity field that has a default.
        let is_always_required = self.required_identity().any(|name| name == field.name)
            && !field.nullable
            && field.default.manifest.is_none();
        let applies_to = match field.available.only {
            AppliesTo::All | AppliesTo::Group
                if scoped_kind.available.only == AppliesTo::TopLevel =>
            {
                AppliesTo::TopLevel
            }
            only => only,
        };
        let since = field.available.since.or(scoped_kind.available.since);
        Field {
            accepted: if is_parent { Acceptance::Never } else { field.accepted },
            available: Availability { since, only: applies_to, ..field.available },
            required: if is_always_required { Requirement::Always } else { field.required },
            ..field.clone()
        }
    }
}

/// If the word in the first field determines the fields of an entry, keeps only the words of
/// `scope` and the fields of their entries. Adds to the description of each field the words whose
/// entries have the field.
fn describe_variants(fields: &mut Vec<Field>, scope: Scope) {
    let Some((variant_field, other_fields)) =
        fields.split_first_mut().filter(|(first_field, _)| first_field.variants().next().is_some())
    else {
        return;
    };
    variant_field.words.retain(|word| word.available.exists_in(scope));
    for field in other_fields {
        let matching_variants =
            variant_field.variants().filter(|(_, variant)| variant.fields.contains(field.name));
        let (requiring_variants, optional_variants): (Vec<_>, Vec<_>) =
            matching_variants.partition(|(_, variant)| variant.needs.contains(&field.name));
        let [requiring_words, optional_words] = [requiring_variants, optional_variants]
            .map(|variant| variant.into_iter().map(|(word, _)| word).collect::<Vec<_>>());
        field.about = append_list(field.about, "Required for", &requiring_words);
        field.about = append_list(field.about, "For", &optional_words);
    }
    for word in &mut variant_field.words {
        let needs = word.entry.as_ref().map_or(&[][..], |variant| variant.needs);
        word.about = append_list(word.about, "Needs", needs);
    }
    let variants: Vec<_> =
        variant_field.words.iter().filter_map(|word| word.entry.clone()).collect();
    let variant_field_name = variant_field.name;
    fields.retain(|field| {
        field.name == variant_field_name
            || variants.iter().any(|variant| variant.fields.contains(field.name))
    });
}

/// Adds a sentence with `names`, which starts with `prefix`, to the description `about`. Without
/// names, adds nothing.
fn append_list(about: &'static str, prefix: &str, names: &[&str]) -> &'static str {
    match names {
        [] => about,
        _ => format!("{about} {prefix} {}.", text::list_names(names)).leak(),
    }
}

/// An action before a removal, such as `stop?force=true`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(from = "String")]
pub struct RemovalAction {
    /// The last segment of the path of the action.
    pub name: &'static str,
    /// The name and the value of the parameter of the action.
    pub parameter: Option<(&'static str, &'static str)>,
    /// The note about the action in plans.
    pub note: &'static str,
}

impl From<String> for RemovalAction {
    fn from(text: String) -> Self {
        let note = format!("sends `POST …/{text}` first").leak();
        let text: &'static str = text.leak();
        let (name, parameter) = text.split_once('?').unwrap_or((text, ""));
        Self { name, parameter: parameter.split_once('='), note }
    }
}

/// The request that creates an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CreateMethod {
    /// By POST to the collection.
    #[default]
    Post,
    /// By PUT to the path of the entry, with its identity in the path. The same request edits the
    /// entry.
    Put,
    /// No request creates an entry. Entries appear and disappear with another object, and are only
    /// edited. A declared entry waits until the service has the entry.
    Never,
    /// Together with its container.
    #[schemars(skip)]
    WithContainer,
}

/// The request that changes an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditMethod {
    /// By PUT, with the fields that change.
    #[default]
    Put,
    /// By PATCH, with the fields that change.
    Patch,
    /// The service has no edit: the entry is removed and added again.
    Replace,
    /// By an edit, or by removal and a new creation if the service's edit does not suffice.
    /// [`KindRules::calls`] decides.
    #[schemars(skip)]
    OrReplace,
}

/// A difference between a collection and most others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CollectionTrait {
    /// The service refuses a second entry with the same identity.
    RefusesDuplicates,
    /// The response to a write shows the entry as a GET does, so that the entry need not be read
    /// again.
    ReturnsEntry,
    /// The service answers 401, as to an invalid token, if the caller lacks permission or the
    /// feature is off.
    #[serde(rename = "denies_with_401")]
    DeniesWith401,
    /// The service has no request for a single entry.
    HasNoGet,
    /// One response contains the whole list, without pages.
    ListsWithoutPages,
    /// The list also shows the project or group itself.
    ListsItself,
}

/// The way to read a single entry, if the list shows only a part of each entry.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Detail {
    /// The field of the response that contains further fields of the entry; empty if they are at
    /// the top level.
    pub nested: &'static str,
    /// The fields that only the request for a single entry shows. If one of these fields is
    /// declared, the request is sent for every entry. If the list is empty, the request is sent for
    /// each declared entry.
    #[serde(deserialize_with = "leaked_list")]
    pub fields: &'static [&'static str],
}

/// The parent of each entry: an entry of another section.
#[derive(Clone, Copy, Debug)]
pub struct Parent {
    /// The section of the parent.
    pub section: &'static str,
    /// The field of `identity` that names the parent entry. No request contains this field.
    pub field: &'static str,
    /// The path argument for the id of the parent.
    pub argument: &'static str,
}

/// The location of a collection in one scope.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopedKind {
    /// The path of an entry: `/projects/:id/` or `/groups/:id/`, plain names, and the argument that
    /// addresses the entry, as the documentation of the service calls it. An argument that is named
    /// like a field contains that field; any other argument contains the `id`, or the first of `keys`.
    ///
    /// The path of a single object ends with a name. If the service addresses an entry by the
    /// query, the path ends with `?NAME=:FIELD`. A parameter `?NAME=VALUE` is sent with each
    /// request for the list; with the value `^(:name)$`, only entries with a declared name are
    /// read. An argument between names addresses a parent entry. The path before this argument is
    /// the path of the parent's section.
    #[schemars(example = &"/projects/:id/feature_flags/:feature_flag_name")]
    pub path: &'static str,
    /// The field of the parent entry's object that contains the whole list, if the service has no
    /// request for the list.
    #[serde(rename = "in")]
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"variables")]
    pub nested_field: Option<&'static str>,
    /// For a single object in the field `in`: another field, which only containers with such an
    /// object have.
    #[schemars(skip)]
    pub sign: Option<&'static str>,
    /// For lists that also show inherited entries: the conditions for an inherited entry.
    /// `inherited` means that this flag is on. `kind=group` means that the field has this value.
    /// `kind!=project` means that the field has another value.
    #[serde(default)]
    pub inherited: Vec<ResponseCondition>,
    /// The message of the 404 with which the service answers if the list is empty.
    pub empty_as: Option<&'static str>,
    /// The response that proves the absence of a single object.
    #[serde(default)]
    #[schemars(skip)]
    pub absent_as: Absence,
    /// The lowest role to which the service shows every entry (default: `maintainer`).
    #[serde(default, deserialize_with = "level")]
    #[schemars(with = "AccessLevel")]
    pub seen_from: Option<u8>,
    /// Sets of settings of the project. While all settings of one set are `disabled`, the service
    /// refuses the list or shows an empty list, and changes nothing.
    #[serde(default)]
    pub closed_by: Vec<Vec<&'static str>>,
    /// The scope, the tier and the releases in which the service has the collection.
    #[serde(default)]
    pub available: Availability,
    /// The ids of the operations of the collection, if the table of operations contains them.
    /// Otherwise the operations are derived from the path.
    #[serde(default)]
    #[schemars(skip)]
    pub operations: Operations,
    /// The query of the list request.
    #[serde(skip)]
    pub list_query: Vec<(&'static str, &'static str)>,
    /// The scope, which follows from `path`.
    #[serde(skip)]
    pub scope: Scope,
    /// The source of live entries.
    #[serde(skip)]
    pub read_source: ReadSource,
    /// The parent of each entry, an entry of another section. The list is then read once for each
    /// parent.
    #[serde(skip)]
    pub parent: Option<&'static Parent>,
    /// The fields that address an entry in requests. The first one is in the path.
    #[serde(skip)]
    pub address_keys: Vec<AddressKey>,
    /// The keys that identify a live entry, and the other keys that each live entry must have
    /// because matching needs them. All keys are names in responses.
    #[serde(skip)]
    pub entry_keys: EntryKeys,
    /// True if the users and groups that entries name need access to the container.
    #[serde(skip)]
    pub requires_members: bool,
    /// The table of an entry's fields in this scope, built when it is first needed.
    #[serde(skip)]
    pub table: OnceLock<&'static FieldTable>,
}

/// A condition for a field of a response.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "String")]
#[schemars(inline, description = "")]
#[schemars(extend("pattern" = r"^[a-z][a-z0-9_]*(!?=\S+)?$", "examples" = ["kind!=project"]))]
pub struct ResponseCondition {
    /// The name of the field in responses.
    pub field: &'static str,
    /// The value with which the field is compared.
    pub value: Json,
    /// True if the field must have another value.
    pub is_negated: bool,
}

impl From<String> for ResponseCondition {
    fn from(text: String) -> Self {
        let text: &'static str = text.leak();
        let (field, value) = text.split_once('=').unwrap_or((text, "true"));
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        let (field, is_negated) =
            field.strip_suffix('!').map_or((field, false), |field| (field, true));
        Self { field, value, is_negated }
    }
}

impl ResponseCondition {
    /// True if `raw` meets the condition. A missing field differs from every value.
    pub fn matches(&self, raw: &Object) -> bool {
        (raw.get(self.field) == Some(&self.value)) != self.is_negated
    }
}

/// The operations of a collection.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Vec<AnyOp>")]
pub struct Operations {
    /// Reads all entries.
    pub list: Option<Op<Read>>,
    /// Reads one entry.
    pub get: Option<Op<Read>>,
    /// Creates an entry.
    pub create: Option<Op<Write>>,
    /// Edits an entry.
    pub edit: Option<Op<Write>>,
    /// Removes an entry; `None` if undrift never removes entries.
    pub delete: Option<Op<Write>>,
    /// Further operations, which the rules send.
    pub others: Vec<Op<Write>>,
}

impl From<Vec<AnyOp>> for Operations {
    /// Assigns a purpose to each of `operations`. The last read of a list and the last read of a
    /// single object are used. The first POST creates, the first DELETE removes, and the first
    /// write with another method edits. All other write operations are `others`.
    fn from(operations: Vec<AnyOp>) -> Self {
        let mut assigned_operations = Self::default();
        for op in operations {
            match op {
                AnyOp::Read(op) if op.row().response == ResponseBody::List => {
                    assigned_operations.list = Some(op);
                }
                AnyOp::Read(op) => assigned_operations.get = Some(op),
                AnyOp::Write(op) => {
                    let slot = match op.row().method {
                        Method::Post => &mut assigned_operations.create,
                        Method::Delete => &mut assigned_operations.delete,
                        _ => &mut assigned_operations.edit,
                    };
                    match slot {
                        None => *slot = Some(op),
                        Some(_) => assigned_operations.others.push(op),
                    }
                }
            }
        }
        assigned_operations
    }
}

fn level<'de, D: Deserializer<'de>>(level: D) -> Result<Option<u8>, D::Error> {
    let json = Json::deserialize(level)?;
    let level = AccessLevel::parse(&json).ok_or_else(|| serde::de::Error::custom("no such level"));
    level.map(|level| Some(level.number))
}
