//! The kinds of objects that undrift manages: each kind is data and a few behaviours.
//!
//! A [`Kind`] describes a section of manifests and names the fields that identify an entry. Each
//! [`ScopedKind`] describes the kind in one scope: where the live entries are, which operations
//! write them, and which fields they have (a [`FieldTable`], read from YAML). [`KindRules`] hold
//! the behaviour that data cannot express. Their defaults fit a plain collection. Checks, diff,
//! plan, apply, renderers, the published schema and the convergence tests are derived from these
//! types.
//!
//! A value has three forms. The *declared* form is in manifests. The *comparable* form is used to
//! compare declared and live values. It contains words for levels, and ids where the service only
//! shows ids. The *sent* form is in requests. Only [`forms`] converts between them.
//!
//! Kinds are pure: they read values and return values.

pub mod calls;
mod checks;
pub mod description;
mod effect;
mod fault;
pub mod forms;
pub mod limits;
mod live;
mod names;
pub mod needs;
mod property;
mod reader;
pub mod refs;
pub mod risk;
mod table;
#[cfg(debug_assertions)]
pub mod testing;
mod variant;

use std::{borrow::Cow, ops::Deref};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    field::{Acceptance, Equality, Field, NamedObject, Readback, Scope, Tier, WriteRequest},
    level::MAINTAINER,
    operation::{Op, Read, Request, RetrySafety},
    page::EntryKeys,
    value::{self, Fields, Json, Object, Value},
};

pub use crate::field::Risk;
pub use calls::{CallContext, Calls, NoCalls, PlannedCall};
pub use description::{
    CollectionTrait, CreateMethod, Detail, EditMethod, Kind, Operations, Parent, ScopedKind,
};
pub use effect::{Capability, Effect, Outsider, VISIBILITIES, visibility_rank};
pub(crate) use fault::fault_text;
pub use fault::{EntryFault, FaultTexts, Reporter};
pub use forms::{are_equal, plain_text};
pub use live::{
    ContainerFacts, FormerLocation, ImportState, LiveEntry, LiveFields, LiveNamespace,
    NamespaceOwner, Target, find_marked_group, is_withheld, unmarked_path, withheld_placeholder,
};
pub use names::{CreatedContainers, EntryIds, Id, NameIndex};
pub use property::{field_schema, key_defining_field};
pub use reader::{EntryReader, FieldSelection};
pub use refs::{RefRule, WeakerProtection, find_weaker_protections, patterns_overlap};
pub use table::{
    FieldSpec, FieldTable, UnsupportedValue, allows_type, is_list, replacement_advice,
};

/// The guard of a removal, in addition to the limit of removals. Descriptions
/// may use the variants that are in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// Nothing.
    Nothing,
    /// The removal of an entry weakens a protection.
    Weakens,
    /// The removal of an entry takes access away.
    Access,
    /// [`KindRules::effects`] decides.
    #[schemars(skip)]
    ByKind,
}

/// The form of a section in a manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// `create`, for the container itself: `true`, or a mapping of fields for the create request.
    #[schemars(skip)]
    Container,
    /// A list of entries.
    #[default]
    List,
    /// A mapping of fields: a single object, which always exists. It has no `identity`, and is only
    /// read and edited.
    Mapping,
    /// A single value; `null` if it may be removed.
    #[schemars(skip)]
    Switch,
}

/// The maximum length of an expression in bytes. Proxies refuse long addresses.
const MAX_NAME_FILTER_BYTES: usize = 1_000;
/// The value, in the path of a kind, of the list parameter that filters entries by an expression
/// for their names.
const NAME_FILTER_PLACEHOLDER: &str = "^(:name)$";

impl ScopedKind {
    /// Adds the query of the list to `request`, without the filter for names.
    pub fn list_request(&self, request: Request<Read>) -> Request<Read> {
        self.list_query
            .iter()
            .filter(|(_, value)| *value != NAME_FILTER_PLACEHOLDER)
            .fold(request, |request, (name, value)| request.with_query(*name, (*value).to_owned()))
    }

    /// The parameter of the list request that filters entries by an expression for their names. If
    /// there is one, only entries with a declared name are read.
    pub fn name_filter(&self) -> Option<&'static str> {
        let filter = self.list_query.iter().find(|(_, value)| *value == NAME_FILTER_PLACEHOLDER);
        filter.map(|(parameter, _)| *parameter)
    }

    /// Limits `request`, which reads the list, to entries with one of `names`. Returns it unchanged
    /// if the service has no filter for names, or if the expression would be too long.
    pub fn filter_by_names<'n>(
        &self,
        request: Request<Read>,
        names: impl Iterator<Item = &'n str>,
    ) -> Request<Read> {
        let Some(parameter) = self.name_filter() else { return request };
        let escaped_names: Vec<_> = names.map(regex_syntax::escape).collect();
        let expression = format!("^({})$", escaped_names.join("|"));
        if expression.len() > MAX_NAME_FILTER_BYTES {
            return request;
        }
        request.with_query(parameter, expression)
    }

    /// The lowest level of access to which the service shows every entry.
    pub fn min_read_level(&self) -> u8 {
        self.seen_from.unwrap_or(MAINTAINER)
    }

    /// The disabled settings that make the list unavailable ([`Self::closed_by`]); `None` if the
    /// list is available.
    pub fn closing_settings(&self, facts: &ContainerFacts) -> Option<&[&'static str]> {
        let mut setting_sets = self.closed_by.iter().map(Vec::as_slice);
        setting_sets.find(|set| set.iter().all(|name| facts.disabled_settings.contains(*name)))
    }

    /// The capabilities that the container needs before the entries can be changed.
    pub fn needed_capabilities(&self) -> impl Iterator<Item = Capability> {
        let features = self.closed_by.iter().flatten().map(|name| Capability::Feature(name));
        self.requires_members.then_some(Capability::NamedAccess).into_iter().chain(features)
    }

    /// Adds to `request` the argument that selects the entry `raw` of the list ([`Kind::detail`]);
    /// `None` if the entry is inherited.
    pub fn entry_request(&self, request: Request<Read>, raw: &Object) -> Option<Request<Read>> {
        let raw = Some(raw).filter(|raw| !self.is_inherited(raw))?;
        match self.address_keys[..] {
            [AddressKey { field, location: KeyLocation::Path(argument) }, ..] => {
                Some(request.with_argument(argument, plain_text(raw.get(field)?)))
            }
            _ => None,
        }
    }

    /// True if a raw entry of the list belongs to a group above.
    pub fn is_inherited(&self, raw: &Object) -> bool {
        self.inherited.iter().any(|condition| condition.matches(raw))
    }
}

/// The response that proves the absence of a single object. Any other response without the object
/// is a failed read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// The object always exists.
    #[default]
    Never,
    /// A 200 with `null`.
    #[serde(rename = "nothing")]
    Null,
    /// A 404. The service also answers 404 if the caller may not see the object, or if the service
    /// lacks the licence. Therefore the object is absent only if the caller could see it, and if
    /// the container's object proves the tier ([`ContainerFacts::tier`]).
    NotFound,
}

impl Parent {
    /// Adds the `name` and the `id` of the parent to `raw`, an entry in a response.
    pub fn add_parent(&self, mut raw: Object, name: &str, id: u64) -> Object {
        raw.insert(self.field.to_owned(), name.into());
        raw.insert(self.argument.to_owned(), id.into());
        raw
    }
}

/// A second list that shows one field of the entries.
#[derive(Debug)]
pub struct SideList {
    /// The field that the second list shows.
    pub field: &'static str,
    /// The second list.
    pub list_op: Op<Read>,
    /// The keys that each entry of the second list must have.
    pub entry_keys: EntryKeys,
    /// The comparable value of the field for an entry, from the whole second list.
    pub find_value: fn(&LiveEntry, &[Object]) -> Json,
}

/// The source of live entries.
#[derive(Clone, Copy, Debug, Default)]
pub enum ReadSource {
    /// The container itself.
    Container,
    /// Fields of the container's own object.
    #[default]
    Object,
    /// A list in this field of the container's own object. The service omits entries that the
    /// reader may not see, so an entry that is missing here may still exist.
    ListField(&'static str),
    /// The object in the field `field` of the container's own object. The service also omits this
    /// field if the reader may not see the object. Only containers with such an object have the
    /// field `marker_field`.
    ObjectField {
        /// The field that contains the object.
        field: &'static str,
        /// The field that shows whether the object exists.
        marker_field: &'static str,
    },
    /// A list, read to the last page.
    List(Op<Read>),
    /// One object. If undrift can remove the object, the object may be absent. The response is then
    /// `null`, or a 404 below a container that exists.
    Optional(Op<Read>),
}

/// Finds and reads a container.
#[derive(Debug)]
pub struct ContainerLookup {
    /// The minimum level of access that the creator of a container gets.
    pub creator_level: u8,
    /// The GET request, by path or id.
    pub get_request: fn(&str) -> Request<Read>,
    /// The field of the object that holds the path.
    pub path_field: &'static str,
    /// Reads the facts in the object, from the fields of [`Kind::looked_at`], declared or not.
    pub read_facts: fn(&Object) -> ContainerFacts,
    /// The response fields with facts that are secret. Only the presence of these fields matters.
    pub secret_facts: &'static [&'static str],
    /// The fields of a create request that make the service fetch contents from elsewhere, in the
    /// background. The name of a spread field includes its keys.
    pub import_fields: &'static [&'static str],
    /// The request for a user's level of access, by the ids of the container and the user. It is
    /// needed if the object of the container does not show the caller's level.
    pub level_request: Option<fn(u64, u64) -> Request<Read>>,
}

impl ContainerLookup {
    /// The path in the object of a container; empty if the object has none.
    pub fn read_path<'o>(&self, object: &'o Object) -> &'o str {
        value::text(object, self.path_field).unwrap_or_default()
    }
}

/// A field that addresses a live entry in requests.
#[derive(Clone, Copy, Debug)]
pub struct AddressKey {
    /// The name of the field in responses.
    pub field: &'static str,
    /// The location of the field in requests.
    pub location: KeyLocation,
}

/// The location of an addressing field in requests.
#[derive(Clone, Copy, Debug)]
pub enum KeyLocation {
    /// In this argument of the path.
    Path(&'static str),
    /// In this query parameter.
    Query(&'static str),
    /// In this argument of the path, and only in the request that creates the entry. A container
    /// has at most one such entry.
    PathOnCreate(&'static str),
    /// In entries of other sections, which refer to the entry by this field.
    References,
}

impl AddressKey {
    /// `field` as the argument `name` of the path.
    pub const fn path(field: &'static str, name: &'static str) -> Self {
        Self { field, location: KeyLocation::Path(name) }
    }

    /// The id by which entries of other sections refer to an entry.
    pub const REFERENCED_ID: Self = Self { field: "id", location: KeyLocation::References };

    /// `field` as the parameter `name` of the query.
    pub const fn query(field: &'static str, name: &'static str) -> Self {
        Self { field, location: KeyLocation::Query(name) }
    }
}

/// A kind in one scope.
#[derive(Clone, Copy)]
pub struct Section {
    /// The kind.
    pub kind: &'static Kind,
    /// The part of the kind that depends on the scope.
    pub scoped_kind: &'static ScopedKind,
}

impl Deref for Section {
    type Target = Kind;

    fn deref(&self) -> &Kind {
        self.kind
    }
}

impl std::fmt::Debug for Section {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}.{}", self.scoped_kind.scope, self.kind.section)
    }
}

impl Kind {
    /// The fields of responses that manifests do not have, each with its usual value as text.
    pub fn unmanaged_fields(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.unmanaged.iter().map(|text| text.split_once('=').unwrap_or((text, "")))
    }

    /// True if a field of entries refers to an object of this type.
    pub fn refers_to(&self, object_type: NamedObject) -> bool {
        self.fields.iter().any(|field| field.names == Some(object_type))
    }

    /// The fields of the identity that every entry has.
    pub fn required_identity(&self) -> impl Iterator<Item = &'static str> {
        self.identity.iter().copied().filter(|name| !self.either.contains(name))
    }

    /// The kind in `scope`, if that scope has it.
    pub fn find_section(&'static self, scope: Scope) -> Option<Section> {
        let scoped_kind = self.homes.iter().find(|scoped_kind| scoped_kind.scope == scope)?;
        Some(Section { kind: self, scoped_kind })
    }
}

impl Section {
    /// The fields of an entry.
    pub fn table(self) -> &'static FieldTable {
        self.scoped_kind.table.get_or_init(|| {
            Box::leak(Box::new(FieldTable::new(self.entry_field(self.scoped_kind))))
        })
    }

    /// The fields of an entry, in the order of their description.
    pub fn specs(self) -> &'static [FieldSpec] {
        self.table().specs()
    }

    /// A field of an entry by name.
    pub fn spec(self, name: &str) -> Option<&'static FieldSpec> {
        self.table().get(name)
    }

    /// The field of an edit request that changes the field `name` of the identity, if edit requests
    /// have another name for it.
    pub fn renaming_field(self, name: &str) -> Option<&'static Field> {
        let fields = self.kind.fields.iter();
        fields.filter(|field| field.accepted == Acceptance::ByCall).find(|field| {
            field.name.strip_prefix("new_") == Some(name) && self.identity.contains(&name)
        })
    }

    /// The description of a field.
    pub fn field(self, name: &str) -> &'static Field {
        self.table().field(name)
    }

    /// True if only top-level groups have the section.
    pub fn is_only_top_level(self) -> bool {
        self.specs().first().is_some_and(|spec| spec.field.available.is_only_top_level())
    }

    /// True if the live entries are parts of the container's own object.
    pub const fn is_part_of_container(self) -> bool {
        matches!(
            self.scoped_kind.read_source,
            ReadSource::Object | ReadSource::ListField(_) | ReadSource::ObjectField { .. }
        )
    }

    /// True if `null` in a manifest removes the object.
    pub const fn is_removable(self) -> bool {
        matches!(
            self.scoped_kind.read_source,
            ReadSource::Optional(_) | ReadSource::ObjectField { .. }
        ) && self.scoped_kind.operations.delete.is_some()
    }

    /// True if the service accepts duplicates: no field that manifests can declare must be unique.
    pub fn allows_duplicates(self) -> bool {
        self.scoped_kind
            .operations
            .create
            .is_some_and(|op| op.row().retry_safety == RetrySafety::MayDuplicate)
    }

    /// True if an edit cannot change the secret in `value`, the declared value of `name`, and the
    /// service accepts a new entry in addition to the old one.
    pub fn needs_new_entry(self, name: &str, value: &Value) -> bool {
        matches!(value, Value::Secret(_))
            && self.field(name).accepted == Acceptance::OnCreate
            && self.allows_duplicates()
    }

    /// True if `value`, the declared value of `name`, contains a credential that responses omit and
    /// that an edit can send.
    pub fn can_send_credential(self, name: &str, value: &Value) -> bool {
        let field = self.field(name);
        matches!(value, Value::Secret(_))
            && matches!(field.compare, Equality::Location | Equality::Rows)
            && field.accepted.includes(WriteRequest::Edit)
    }

    /// True if the entry is a part of the container's own object and is created together with the
    /// container.
    pub const fn is_created_with_container(self) -> bool {
        matches!(self.kind.create, CreateMethod::WithContainer)
    }

    /// True if entries appear and disappear with another object, and are only edited.
    pub const fn is_only_edited(self) -> bool {
        matches!(self.kind.create, CreateMethod::Never)
    }

    /// True if the section is a list whose entries undrift cannot remove.
    pub fn cannot_remove_entries(self) -> bool {
        self.shape == Shape::List && self.scoped_kind.operations.delete.is_none()
    }

    /// True if manifests may declare what happens to live entries that they do not list.
    pub fn allows_unlisted(self) -> bool {
        self.shape == Shape::List && !self.cannot_remove_entries()
    }

    /// The id by which entries of other sections refer to `live`.
    pub fn referenced_id(self, live: &LiveEntry) -> Option<u64> {
        self.address_value(live, "id")?.as_u64()
    }

    /// The value of the response field `name` by which requests address `live`.
    pub(super) fn address_value<'l>(self, live: &'l LiveEntry, name: &str) -> Option<&'l Json> {
        let position = self.scoped_kind.address_keys.iter().position(|key| key.field == name)?;
        live.address_values.get(position)
    }

    /// True if `raw` shows any field of the section.
    pub fn shows_any_field(self, raw: &Object) -> bool {
        let mut names = self.specs().iter().filter_map(|spec| spec.field.live_name());
        names.any(|name| raw.contains_key(name))
    }

    /// The identity of the entry with these comparable fields.
    pub fn identify(self, fields: &Object) -> Identity {
        self.rules().identify(self, &|name| fields.get(name).map(Cow::Borrowed))
    }

    /// The name of an entry in addresses. Two entries with equal names are the same entry.
    pub fn entry_name(self, fields: &Object) -> String {
        self.identify(fields).name
    }

    /// The name by which entries of other sections refer to the entry with these fields.
    pub fn reference_name(self, fields: &Object) -> Option<String> {
        match self.called_by {
            Some(name) => fields.get(name).map(plain_text),
            None => Some(self.entry_name(fields)),
        }
    }

    /// The lowest tier of the service that has the kind.
    pub fn tier(self) -> Tier {
        let create_tier = self.scoped_kind.operations.create.map_or(Tier::Free, |op| op.row().tier);
        match self.scoped_kind.read_source {
            ReadSource::List(op) | ReadSource::Optional(op) => create_tier.max(op.row().tier),
            _ => create_tier,
        }
    }

    /// The first release that has a field of the section; `None` for the oldest release.
    pub fn first_release(self) -> Option<crate::release::Release> {
        let specs = self.specs().iter().filter(|spec| !spec.field.available.local_before);
        specs.map(|spec| spec.field.available.since).min().flatten()
    }

    /// The highest tier that `raw` proves. `raw` contains a field of this tier, or names users or
    /// groups that only this tier can name.
    pub fn proven_tier(self, raw: &Object) -> Tier {
        let tiers = self.table().tier_evidence().map(|spec| {
            let live_name = spec.field.live_name();
            let field_tier =
                live_name.filter(|name| raw.contains_key(*name)).map(|_| spec.field.available.tier);
            field_tier.max(spec.tier_proven_by_rows(raw))
        });
        tiers.max().flatten().unwrap_or_default()
    }
}

/// The field with former values of the last field of the identity, or of the URL of a hook.
pub const FORMER_FIELD: &str = "previously";

/// The identity of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The name in addresses, without credentials.
    pub name: String,
    /// The name that the service stores, if it stores one. Matching tries it before the keys.
    pub service_name: Option<String>,
    /// Keys that match declared and live entries. Two entries have an equal key if the service
    /// cannot distinguish them. A live entry has one key. A declared entry may also have keys from
    /// former URLs, after its current key.
    pub keys: Vec<String>,
    /// The former keys. If no live entry has the current key, a live entry with a former key is
    /// renamed.
    pub former_keys: Vec<String>,
    /// Keys of live entries that are probably, but not certainly, the same entry.
    pub similar_keys: Vec<String>,
    /// Another name that patterns can match: the URL of a hook that has a name.
    pub other_name: Option<String>,
}

impl Identity {
    /// The current key.
    pub fn current_key(&self) -> &str {
        self.keys.first().map_or("", String::as_str)
    }
}

/// Returns the comparable value of a field of an entry, by name; `None` if unknown.
pub type FieldLookup<'a> = &'a dyn Fn(&str) -> Option<Cow<'a, Json>>;

/// Behaviour that data cannot express. The defaults fit a plain collection.
pub trait KindRules: Sync {
    /// The comparable value of one field in a live object; `None` if the object does not show it.
    fn decode(&self, spec: &FieldSpec, raw: &Object) -> Option<Json> {
        forms::decode(spec, raw)
    }

    /// The identity of the entry with these comparable fields.
    fn identify(&self, section: Section, find_value: FieldLookup<'_>) -> Identity {
        forms::identify(section, find_value)
    }

    /// The reason why undrift never changes this live entry, for example `bot user`.
    fn protection_reason(&self, _raw: &Object) -> Option<&'static str> {
        None
    }

    /// The reason why the secret of this live entry must not be written into a file, for example
    /// `masked`. [`judge`](crate::secret::judge) finds values that only look like secrets.
    fn secrecy_reason(&self, _live: &Object) -> Option<&'static str> {
        None
    }

    /// The reason why a declared field is neither sent nor compared yet. `live` is the live entry;
    /// `None` if the entry is still to be created. `has_no_branch` is true if the repository has no
    /// branch yet. Returns the end of a sentence that starts with "waits".
    fn wait_reason(
        &self,
        section: Section,
        name: &str,
        declared: &Fields,
        live: Option<&LiveEntry>,
        has_no_branch: bool,
    ) -> Option<&'static str> {
        // The service looks up the short name of a branch among the existing branches and tags. But
        // a rule may have the name of a branch that does not exist.
        let names_branch =
            section.field(name).relations.follows.is_some() && !section.identity.contains(&name);
        let declared_ref = declared.plain_json(name).filter(|_| has_no_branch && names_branch)?;
        let is_short = !declared_ref.as_str()?.starts_with("refs/");
        let is_same = live
            .and_then(|live| live.fields.raw().get(name))
            .is_some_and(|live_ref| are_equal(Equality::Ref, declared_ref, live_ref));
        (is_short && !is_same).then_some("until the repository has a branch")
    }

    /// Checks a declared entry without the service, after its schema was checked. A secret is a
    /// reference, or its value if the value is known. `_is_unresolved` is true before secrets are
    /// resolved. Only then may a check judge the spelling of a [`Value::Plain`].
    fn check(&self, _declared: &Fields, _is_unresolved: bool, _report: Reporter<'_>) {}

    /// The calls for the change in `context`, in order.
    ///
    /// # Errors
    /// The reason why there are no calls.
    fn calls(&self, context: &CallContext<'_>) -> Calls {
        context.default_calls()
    }

    /// The side effects of changing an entry from `before` to `after`, both in comparable form.
    /// `_subject_id` is the id of the user or group of the entry, if the entry has one. This method
    /// is also called with equal forms, to find the capabilities that neither form grants.
    fn effects(&self, _subject_id: Option<u64>, _before: &Object, _after: &Object) -> Vec<Effect> {
        Vec::new()
    }
}

/// True if the service may return a field.
pub const fn is_readable(field: &Field) -> bool {
    !matches!(field.read, Readback::Never)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        testing::{live_entry, object, project_section},
        *,
    };

    #[test]
    fn a_live_entry_keeps_its_address_values() {
        let raw = json!({"key": "A", "environment_scope": "prod/*", "value": "x", "hidden": false});
        let entry = live_entry(project_section("variables"), raw);
        assert_eq!(entry.address_values, [json!("A"), json!("prod/*")]);
        assert_eq!((entry.tier, entry.protection_reason), (Tier::Free, None));
        let expected = json!({"key": "A", "environment_scope": "prod/*", "value": "x", "masked_and_hidden": false});
        assert_eq!(Json::from(entry.fields.raw().clone()), expected);
    }

    #[test]
    fn only_selected_and_repeated_fields_are_kept() {
        let raw = json!({"id": 3, "username": "bob", "access_level": 30, "expires_at": null, "a": 1, "b": 2});
        let kept_entry =
            project_section("members").read(&object(raw), FieldSelection::Only(&["a"].into()));
        let kept_names: Vec<_> = kept_entry.fields.raw().keys().map(String::as_str).collect();
        assert_eq!(kept_names, ["user", "access_level", "expires_at", "a"]);
        let raw = json!({"description": "nightly", "ref": "main", "cron": "0 4 * * *"});
        let kept_schedule = project_section("pipeline_schedules")
            .read(&object(raw), FieldSelection::Only(&["cron"].into()));
        assert_eq!(kept_schedule.fields.raw().keys().collect::<Vec<_>>(), ["description", "cron"]);
        // A change of a share replaces the share, so all its fields are kept.
        let raw = json!({"group_id": 5, "group_full_path": "a", "group_access_level": 10, "expires_at": null});
        let kept_share =
            project_section("shares").read(&object(raw), FieldSelection::Only(&[].into()));
        assert_eq!(
            kept_share.fields.raw().keys().collect::<Vec<_>>(),
            ["group", "group_access", "expires_at"]
        );
    }

    /// An entry whose identity has another type than its schema is not read.
    #[test]
    fn a_mistyped_key_is_found() {
        let share_json = |id: Json, path: Json, level: Json| json!({"group_id": id, "group_full_path": path, "group_access_level": level});
        for (name, raw, expected) in [
            ("variables", json!({"key": "A", "environment_scope": "*"}), None),
            ("variables", json!({"key": 5, "environment_scope": "*"}), Some("key")),
            ("variables", json!({"key": ["A"], "environment_scope": "*"}), Some("key")),
            (
                "variables",
                json!({"key": "A", "environment_scope": true}),
                Some("environment_scope"),
            ),
            ("shares", share_json(json!(4), json!("acme"), json!(30)), None),
            ("shares", share_json(json!("4"), json!("acme"), json!(30)), Some("group_id")),
            ("shares", share_json(json!(-4), json!("acme"), json!(30)), Some("group_id")),
            ("shares", share_json(json!(4), json!(5), json!(30)), Some("group_full_path")),
            (
                "shares",
                share_json(json!(4), json!("acme"), json!("30")),
                Some("group_access_level"),
            ),
        ] {
            assert_eq!(project_section(name).mistyped_key(&object(raw.clone())), expected, "{raw}");
        }
    }

    #[test]
    fn a_list_within_an_object_is_read_whole_or_not_at_all() {
        let count_entries = |raw: Json| {
            project_section("shares")
                .read_nested(&object(raw), FieldSelection::All)
                .map(|rows| rows.len())
        };
        let row = json!({"group_id": 5, "group_full_path": "acme/kids", "group_access_level": 10});
        assert_eq!(count_entries(json!({"shared_with_groups": [row, row]})), Some(2));
        assert_eq!(count_entries(json!({"shared_with_groups": []})), Some(0));
        assert_eq!(count_entries(json!({})), None);
        assert_eq!(count_entries(json!({"shared_with_groups": [row, {"group_id": 5}]})), None);
        assert_eq!(count_entries(json!({"shared_with_groups": [row, 5]})), None);
    }
}
