//! What a sort of managed thing is: data, and a few behaviours.
//!
//! A [`Kind`] says what a section of manifests holds and what tells two entries apart. Each
//! [`Home`] says, for one scope, where the live entries are, which operations write them, and which
//! fields they have: the struct that is the schema, with a [`Field`] beside each field. [`Rules`]
//! say what data cannot; their defaults fit a plain collection. Everything else follows: checks,
//! diff, plan, apply, renderers, the published schema, the tests of convergence.
//!
//! A value has three forms. *Declared* is what manifests write. *Comparable* is what both sides are
//! brought to: words for levels, ids where only the service's ids are known. *Sent* is what
//! requests carry. [`forms`] is the one place that leads from one to another.
//!
//! Kinds are pure: they look at values and return values.

pub mod calls;
mod checks;
mod effect;
pub mod forms;
pub mod limits;
mod live;
mod names;
pub mod needs;
mod refs;
pub mod stakes;
mod table;
#[cfg(test)]
pub(crate) mod testing;

use std::ops::Deref;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    diagnostic::Severity,
    field::{Codec, Field, Readback, Scope, Tier},
    operation::{Again, Op, Read, Request, Write},
    page::{Rows, tells_apart},
    value::{Fields, Json, Object, Value},
};

pub use calls::{Call, Job, Unable};
pub use checks::TIME_ZONE;
pub use effect::{Capability, Effect, VISIBILITIES, visibility_rank};
pub use forms::{plain_text, same};
pub use live::{
    Arrival, Facts, Former, LiveEntry, Namespace, NamespaceOwner, Target, marked_above,
    unmarked_path,
};
pub use names::{Created, Id, Names};
pub use refs::{RefRule, Weaker, weaker};
pub use table::{Spec, Table, Unfit, is_list};

use std::sync::LazyLock;

/// One sort of managed thing.
pub struct Kind {
    /// The section of a manifest, for example `variables`.
    pub section: &'static str,
    /// What one of them is called in a sentence, for example `variable`.
    pub noun: &'static str,
    /// How the section is written.
    pub shape: Shape,
    /// The fields that tell two entries apart, in the order in which an address shows them. Empty
    /// if a container has one of them.
    pub identity: &'static [&'static str],
    /// The fields without which an entry cannot be created; an entry that exists is managed without
    /// them.
    pub required: &'static [&'static str],
    /// What removing one may do that guards ask about.
    pub removal: Removal,
    /// One for each scope that has it.
    pub homes: &'static [Home],
    /// What data cannot say.
    pub rules: &'static dyn Rules,
}

/// What removing an entry may do that guards ask about, besides that much is removed. A description
/// may say what is in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// Nothing.
    Nothing,
    /// It takes a protection away.
    Weakens,
    /// It takes access.
    Access,
    /// What the rules of its kind say ([`Rules::effects`]).
    #[schemars(skip)]
    ByKind,
}

/// How a section is written in a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As `create`, for the container itself: `true`, or a mapping of what only a create takes.
    Container,
    /// A list of entries.
    List,
    /// A mapping of fields; there is one such thing in a container.
    Mapping,
    /// A single value; `null` if it may be removed.
    Switch,
}

/// A kind in one scope.
pub struct Home {
    /// The scope.
    pub scope: Scope,
    /// The fields of an entry.
    pub fields: &'static (dyn Deref<Target = Table> + Sync),
    /// Where live entries are.
    pub place: Place,
    /// How an entry comes into being.
    pub create: Create,
    /// How an entry changes.
    pub change: Change,
    /// How an entry goes; `None` if undrift never removes one.
    pub delete: Option<Op<Write>>,
    /// What [`Rules::calls`] sends besides.
    pub acts: &'static [Op<Write>],
    /// What addresses an entry in requests; the first is its handle.
    pub handle: &'static [Handle],
    /// What, as the service calls it, tells live entries from each other, and without what else a
    /// live entry is none: that by which a declared one is matched with it.
    pub rows: Rows,
    /// The level of access (reference 1, 2.1) from which on the service shows every entry.
    pub seen_from: u8,
    /// The settings of the container that close the list when they are all `disabled`: it is then
    /// empty, whatever is there.
    pub closed_by: &'static [&'static str],
    /// Whether the service answers what is absent like what it hides, from the caller or for want of a
    /// licence. Then it is absent only if the caller sees every entry and the container's object
    /// tells of the tier ([`Facts::tier`]).
    pub hides_absence: bool,
    /// What the container has to have for the entries to be read and written.
    pub needs: &'static [Capability],
    /// What a list is asked besides, so that it holds what is wanted.
    pub query: &'static [(&'static str, &'static str)],
    /// What an entry of a list, as the service shows it, has if it is the container's own: some lists
    /// also show what is inherited.
    pub own: &'static [(&'static str, Json)],
    /// A field that another list tells, which is read only if somebody declares that field.
    pub beside: Option<&'static Beside>,
    /// What [`Rules`] and [`Beside::value`] look at of what the service shows of an entry besides the
    /// fields of its table.
    pub besides: &'static [&'static str],
}

static NO_FIELDS: LazyLock<Table> =
    LazyLock::new(|| Table::new(&schemars::json_schema!({"type": "object", "properties": {}})));

impl Home {
    /// Where a home says nothing else: `Home { scope, fields, place, ..Home::PLAIN }`.
    pub const PLAIN: Self = Self {
        scope: Scope::Project,
        fields: &NO_FIELDS,
        place: Place::Object,
        create: Create::Rules,
        change: Change::Rules,
        delete: None,
        acts: &[],
        handle: &[],
        rows: Rows::with_id(&[]),
        seen_from: crate::level::MAINTAINER,
        closed_by: &[],
        hides_absence: false,
        needs: &[],
        query: &[],
        own: &[],
        beside: None,
        besides: &[],
    };

    /// Whether settings of a container close the list.
    pub fn is_closed(&self, facts: &Facts) -> bool {
        !self.closed_by.is_empty()
            && self.closed_by.iter().all(|name| facts.disabled.contains(*name))
    }

    /// Whether an entry of a list, as the service shows it, is the container's own.
    pub fn is_own(&self, raw: &Object) -> bool {
        self.own.iter().all(|(name, value)| raw.get(*name) == Some(value))
    }
}

/// A field of entries that is told by another list than theirs.
#[derive(Debug)]
pub struct Beside {
    /// The field.
    pub field: &'static str,
    /// The other list.
    pub list: Op<Read>,
    /// What each entry of the other list has to have.
    pub rows: Rows,
    /// The field's comparable value for an entry, given the whole other list.
    pub value: fn(&LiveEntry, &[Object]) -> Json,
}

/// Where live entries are.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// The container itself.
    Itself(&'static Itself),
    /// Fields of the container's own object.
    Object,
    /// A list in this field of the container's own object. The service leaves out what the reader
    /// may not see, so that such a list says what is there, and never alone that nothing else is.
    In(&'static str),
    /// The object in the field `field` of the container's own object, or none. The service leaves it
    /// out, too, if the reader may not see what it tells of; `sign` is a field that only containers
    /// with such an object have.
    Part {
        /// The field.
        field: &'static str,
        /// The field that says that there is one.
        sign: &'static str,
    },
    /// A list, read to its end.
    List(Op<Read>),
    /// One object, or none if undrift can remove it: `null` or 404 below a container that is known to
    /// exist.
    Optional(Op<Read>),
}

/// How a container is found and looked at.
#[derive(Debug)]
pub struct Itself {
    /// The level of access that whoever creates one has at least.
    pub creator: u8,
    /// The request for the one with this path or id.
    pub get: fn(&str) -> Request<Read>,
    /// The field of its object that holds its path.
    pub path: &'static str,
    /// What its object says whatever is declared.
    pub facts: fn(&Object) -> Facts,
    /// The fields of its object that [`Self::facts`] looks at.
    pub looked_at: &'static [&'static str],
    /// Those of them that hold a secret, of which it only matters whether they are there.
    pub signs: &'static [&'static str],
    /// The fields of a creation with which the contents come from elsewhere, in the background; one
    /// that is spread stands for its keys.
    pub arrives_with: &'static [&'static str],
    /// The request for a user's level of access, where its object does not tell the caller's own:
    /// by the container and the user's id.
    pub level: Option<fn(u64, u64) -> Request<Read>>,
}

/// How an entry comes into being.
#[derive(Clone, Copy, Debug)]
pub enum Create {
    /// By this operation.
    With(Op<Write>),
    /// Along with its container.
    Container,
    /// By what [`Rules::calls`] says.
    Rules,
}

/// How an entry changes.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// By this operation.
    Edit(Op<Write>),
    /// By removing it and adding it anew: the service has no edit.
    Replace,
    /// By this operation or, where the service's does too little, by removing it and adding it anew:
    /// [`Rules::calls`] says which.
    EditOrReplace(Op<Write>),
    /// By what [`Rules::calls`] says.
    Rules,
}

/// What addresses a live entry in requests.
#[derive(Clone, Copy, Debug)]
pub struct Handle {
    /// The field of the live entry, as the service calls it.
    pub field: &'static str,
    /// Where requests carry it.
    pub place: HandlePlace,
}

/// Where requests carry what addresses an entry.
#[derive(Clone, Copy, Debug)]
pub enum HandlePlace {
    /// As this argument of the path.
    Path(&'static str),
    /// As this parameter of the query.
    Query(&'static str),
    /// As this argument of the path where it is added, and nowhere else: a container has one of
    /// them.
    Added(&'static str),
    /// Where entries of other sections name it.
    Named,
}

impl Handle {
    /// `field` as the argument `name` of the path.
    pub const fn path(field: &'static str, name: &'static str) -> Self {
        Self { field, place: HandlePlace::Path(name) }
    }

    /// The id, by which entries of other sections name it.
    pub const NAMED: Self = Self { field: "id", place: HandlePlace::Named };

    /// `field` as the parameter `name` of the query.
    pub const fn query(field: &'static str, name: &'static str) -> Self {
        Self { field, place: HandlePlace::Query(name) }
    }
}

/// A kind in the home that it has in one scope.
#[derive(Clone, Copy)]
pub struct Section {
    /// The kind.
    pub kind: &'static Kind,
    /// Its home.
    pub home: &'static Home,
}

impl Deref for Section {
    type Target = Kind;

    fn deref(&self) -> &Kind {
        self.kind
    }
}

impl std::fmt::Debug for Section {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}.{}", self.home.scope, self.kind.section)
    }
}

impl Kind {
    /// What it is in `scope`, if that has it.
    pub fn in_scope(&'static self, scope: Scope) -> Option<Section> {
        let home = self.homes.iter().find(|home| home.scope == scope)?;
        Some(Section { kind: self, home })
    }
}

impl Section {
    /// The fields of an entry.
    pub fn table(self) -> &'static Table {
        self.home.fields.deref()
    }

    /// The treatment of a field.
    pub fn field(self, name: &str) -> &'static Field {
        self.table().field(name)
    }

    /// Whether its live entries are parts of the container's own object.
    pub const fn is_in_object(self) -> bool {
        matches!(self.home.place, Place::Object | Place::In(_) | Place::Part { .. })
    }

    /// Whether `null` declares that the one thing of this section is to be gone.
    pub const fn is_removable(self) -> bool {
        matches!(self.home.place, Place::Optional(_) | Place::Part { .. })
            && self.home.delete.is_some()
    }

    /// Whether the service may hold the same thing twice: nothing that manifests can name is unique
    /// there.
    pub fn may_come_twice(self) -> bool {
        matches!(self.home.create, Create::With(op) if op.row().again == Again::Second)
    }

    /// Whether the entry is the container's own object, and comes into being along with it.
    pub const fn comes_with_container(self) -> bool {
        matches!(self.home.create, Create::Container)
    }

    /// The id by which entries of other sections name `live`.
    pub fn id_of(self, live: &LiveEntry) -> Option<u64> {
        let mut handles = self.home.handle.iter().zip(&live.handle);
        handles.find(|(handle, _)| matches!(handle.place, HandlePlace::Named))?.1.as_u64()
    }

    /// The first of what tells `raw` from other live entries, as the service calls it, that is no value
    /// of the type that the schema says: then nothing is known of it.
    pub fn misread(self, raw: &Object) -> Option<&'static str> {
        let rows = self.home.rows;
        let named = self.identity.iter().filter_map(|name| self.field(name).live_name(name));
        // Not every release shows all of what tells entries apart.
        let named = named.filter(|key| raw.get(*key).is_some_and(|value| !value.is_null()));
        let is_own = |key: &&str| self.home.own.iter().any(|(name, _)| name == key);
        let mut keys = rows.keys.iter().chain(rows.also).copied().chain(named);
        keys.find(|key| {
            if is_own(key) {
                return false;
            }
            let Some(value) = raw.get(*key) else { return false };
            !tells_apart(key, value) || !self.is_typed(key, value)
        })
    }

    /// Whether `value` has the type of the field that the service calls `key`. A level is a number there;
    /// the rows of a list may have any form.
    fn is_typed(self, key: &str, value: &Json) -> bool {
        let is_it = |spec: &&Spec| spec.field.live_name(&spec.name) == Some(key);
        let Some(spec) = self.table().specs().iter().find(is_it) else {
            return if key.ends_with("id") { value.is_u64() } else { value.is_string() };
        };
        if spec.field.codec == Codec::Level {
            return value.is_u64();
        }
        if spec.has_rows() {
            return value.is_array();
        }
        let is_of = |kind: &Json| match kind.as_str() {
            Some("string") => value.is_string(),
            Some("integer") => value.is_i64(),
            Some("boolean") => value.is_boolean(),
            Some("array") => value.is_array(),
            Some("null") => value.is_null(),
            _ => true,
        };
        match &spec.schema["type"] {
            // Text, or a reference to a secret.
            Json::Null => value.is_string(),
            Json::Array(kinds) => kinds.iter().any(is_of),
            kind => is_of(kind),
        }
    }

    /// Text that tells an entry from others in addresses; the same for two that are the same thing.
    pub fn name(self, fields: &Object) -> String {
        self.rules.identify(self, fields).name
    }

    /// The operations that write it.
    pub fn writes(self) -> impl Iterator<Item = Op<Write>> {
        let create = match self.home.create {
            Create::With(op) => Some(op),
            Create::Container | Create::Rules => None,
        };
        let change = match self.home.change {
            Change::Edit(op) | Change::EditOrReplace(op) => Some(op),
            Change::Replace | Change::Rules => None,
        };
        create
            .into_iter()
            .chain(change)
            .chain(self.home.delete)
            .chain(self.home.acts.iter().copied())
    }

    /// The operations that read its live entries, where they are no part of the container's object.
    pub fn reads(self) -> impl Iterator<Item = Op<Read>> {
        let own = match self.home.place {
            Place::List(op) | Place::Optional(op) => Some(op),
            Place::Itself(_) | Place::Object | Place::In(_) | Place::Part { .. } => None,
        };
        own.into_iter().chain(self.home.beside.map(|beside| beside.list))
    }

    /// The lowest tier of the service that has it at all.
    pub const fn tier(self) -> Tier {
        match self.home.create {
            Create::With(op) => op.row().tier,
            Create::Container | Create::Rules => Tier::Free,
        }
    }

    /// The highest tier of which `raw` shows a field, or names somebody whom only that tier can.
    pub fn tier_of(self, raw: &Object) -> Tier {
        let may_tell = |spec: &&Spec| spec.field.tier > Tier::Free || spec.has_rows();
        let tiers = self.table().specs().iter().filter(may_tell).map(|spec| {
            let live = spec.field.live_name(&spec.name);
            let own = live.filter(|name| raw.contains_key(*name)).map(|_| spec.field.tier);
            own.max(spec.tier_of_rows(raw))
        });
        tiers.max().flatten().unwrap_or_default()
    }

    /// The live entries in a field of the container's own object; `None` if that does not say what
    /// they are, or an entry lacks what none lacks.
    pub fn read_within(
        self,
        object: &Object,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Option<Vec<LiveEntry>> {
        let rows = self.home.rows;
        let is_whole = |row: &&Object| {
            rows.keys.iter().chain(rows.also).all(|key| row.contains_key(*key))
                && self.misread(row).is_none()
        };
        let read = |row: &Json| Some(self.read(row.as_object().filter(is_whole)?, wanted));
        match self.home.place {
            Place::In(field) => object.get(field)?.as_array()?.iter().map(read).collect(),
            Place::Part { field, sign } => match object.get(field).filter(|part| !part.is_null()) {
                Some(part) => Some(vec![read(part)?]),
                None => (!object.contains_key(sign)).then(Vec::new),
            },
            _ => None,
        }
    }

    /// The live entry that the service describes as `raw`, in comparable form. Only what `wanted`
    /// names is kept, along with the identity and what every change has to carry: what is replaced
    /// is added anew with all that it had. A part of an object is small, and kept whole.
    pub fn read(self, raw: &Object, wanted: &dyn Fn(&str) -> bool) -> LiveEntry {
        let mut fields = Object::new();
        let is_replaced = matches!(self.home.change, Change::Replace | Change::EditOrReplace(_));
        let is_whole = is_replaced || matches!(self.home.place, Place::Part { .. });
        let also: Vec<&str> = self.table().besides(wanted).collect();
        for spec in self.table().specs() {
            let kept = is_whole
                || wanted(&spec.name)
                || self.identity.contains(&spec.name.as_str())
                || also.contains(&spec.name.as_str())
                || spec.field.with_every_edit;
            if let Some(value) = kept.then(|| self.rules.decode(spec, raw)).flatten() {
                fields.insert(spec.name.clone(), value);
            }
        }
        let extra = raw.iter().filter(|(name, _)| self.table().get(name).is_none() && wanted(name));
        fields.extend(extra.map(|(name, value)| (name.clone(), value.clone())));
        let part = |handle: &Handle| raw.get(handle.field).cloned().unwrap_or_default();
        LiveEntry {
            handle: self.home.handle.iter().map(part).collect(),
            fields,
            protected: self.rules.protected(raw),
            tier: self.tier_of(raw),
            whole: self.may_come_twice().then(|| raw.clone()),
        }
    }
}

/// What tells an entry from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// In addresses, without a credential.
    pub name: String,
    /// On the service: what it is called there, if the service keeps such a name. It goes before the
    /// keys.
    pub called: Option<String>,
    /// On the service: texts that are the same for two entries that it cannot tell apart. A live
    /// entry has one; a declared one may have others that it had before, the current one first.
    pub keys: Vec<String>,
    /// Texts of live entries that are probably meant, and not the same.
    pub near: Vec<String>,
}

/// What is wrong with an entry, seen without the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How bad it is.
    pub severity: Severity,
    /// The code, for example `masked-value`.
    pub code: &'static str,
    /// The field that it is about.
    pub field: &'static str,
    /// What is wrong: a lower-case fragment that never quotes a value which may be secret.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl Fault {
    /// What the service refuses, or would get wrong.
    pub fn error(
        code: &'static str,
        field: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let (message, help) = (message.into(), help.into());
        Self { severity: Severity::Error, code, field, message, help }
    }
}

/// What data cannot say of a kind. The defaults fit a plain collection.
pub trait Rules: Sync {
    /// The comparable value of one field in a live object; `None` if the object does not say.
    fn decode(&self, spec: &Spec, raw: &Object) -> Option<Json> {
        forms::decode(spec, raw)
    }

    /// What tells the entry with these comparable fields from others.
    fn identify(&self, section: Section, fields: &Object) -> Identity {
        forms::identify(section, fields)
    }

    /// Why undrift leaves this live entry alone whatever is declared, for example `bot user`.
    fn protected(&self, _raw: &Object) -> Option<&'static str> {
        None
    }

    /// Why what is secret of this live entry must not be written into a file, for example `masked`.
    /// What only looks like a secret is somebody else's to find.
    fn confidential(&self, _live: &Object) -> Option<&'static str> {
        None
    }

    /// Why a declared field is neither sent nor compared yet: what has to come first is not
    /// undrift's to do. `live` is the entry as it is there, `None` if it is about to be created, and
    /// `is_empty` whether the repository there has no branch yet. The end of a sentence that starts
    /// with "waits".
    fn waits(
        &self,
        _section: Section,
        _name: &str,
        _declared: &Fields,
        _live: Option<&LiveEntry>,
        _is_empty: bool,
    ) -> Option<&'static str> {
        None
    }

    /// What is wrong with a declared entry, seen without the service. What its schema says is
    /// checked already. A secret stands as its reference, or as its value where that is known: what
    /// concerns the writing itself looks at [`Value::Plain`] only
    /// through `written`, which is false once secrets are in place.
    fn check(&self, _declared: &Fields, _written: bool, _report: &mut dyn FnMut(Fault)) {}

    /// The calls that do `job`, in order.
    ///
    /// # Errors
    /// Why there are none.
    fn calls(&self, job: &Job<'_>) -> Result<Vec<Call>, Unable> {
        job.plain()
    }

    /// The field, with its value, that has to be declared besides so that the entry is found by what
    /// told it from others when it was declared as in `before`, under the same name.
    fn remember(&self, _declared: &Fields, _before: &Fields) -> Option<(&'static str, Value)> {
        None
    }

    /// What a change from one comparable form of an entry to another does beyond the entry itself.
    /// `who` is the user, or the group, whom the entry is about, if it is about one. Called with equal forms too:
    /// a capability that neither form grants is [`Effect::Lacks`].
    fn effects(&self, _who: Option<u64>, _before: &Object, _after: &Object) -> Vec<Effect> {
        Vec::new()
    }
}

/// Nothing but the defaults.
pub struct Plain;

impl Rules for Plain {}

/// Whether a field may come back from the service at all.
pub const fn is_readable(field: &Field) -> bool {
    !matches!(field.read, Readback::Never)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        testing::{live, object, section},
        *,
    };

    #[test]
    fn a_live_entry_keeps_what_addresses_it() {
        let raw = json!({"key": "A", "environment_scope": "prod/*", "value": "x", "hidden": false});
        let entry = live(section("variables"), raw);
        assert_eq!(entry.handle, [json!("A"), json!("prod/*")]);
        assert_eq!((entry.tier, entry.protected), (Tier::Free, None));
        let renamed = json!({"key": "A", "environment_scope": "prod/*", "value": "x", "masked_and_hidden": false});
        assert_eq!(Json::from(entry.fields), renamed);
    }

    #[test]
    fn what_nobody_asks_for_is_not_kept_but_what_edits_carry_is() {
        let raw = json!({"id": 3, "username": "bob", "access_level": 30, "expires_at": null, "a": 1, "b": 2});
        let kept = section("members").read(&object(raw), &|name| name == "a");
        let kept: Vec<_> = kept.fields.keys().map(String::as_str).collect();
        assert_eq!(kept, ["user", "access_level", "expires_at", "a"]);
        let raw = json!({"description": "nightly", "ref": "main", "cron": "0 4 * * *"});
        let kept = section("pipeline_schedules").read(&object(raw), &|name| name == "cron");
        assert_eq!(kept.fields.keys().collect::<Vec<_>>(), ["description", "cron"]);
        // A replacement adds all of it anew, whatever is declared.
        let raw = json!({"group_id": 5, "group_full_path": "a", "group_access_level": 10, "expires_at": null});
        let kept = section("shares").read(&object(raw), &|_| false);
        assert_eq!(kept.fields.keys().collect::<Vec<_>>(), ["group", "group_access", "expires_at"]);
    }

    #[test]
    fn a_list_within_an_object_is_read_whole_or_not_at_all() {
        let read = |raw: Json| {
            section("shares").read_within(&object(raw), &|_| true).map(|rows| rows.len())
        };
        let row = json!({"group_id": 5, "group_full_path": "acme/kids", "group_access_level": 10});
        assert_eq!(read(json!({"shared_with_groups": [row, row]})), Some(2));
        assert_eq!(read(json!({"shared_with_groups": []})), Some(0));
        assert_eq!(read(json!({})), None);
        assert_eq!(read(json!({"shared_with_groups": [row, {"group_id": 5}]})), None);
        assert_eq!(read(json!({"shared_with_groups": [row, 5]})), None);
    }
}
