//! The one interface that a sort of managed thing implements.
//!
//! A [`Kind`] says what its entries look like (a schema with a [`Field`] on each property), what
//! tells two apart, how the service is asked for them, and which requests create, change and remove
//! one. Everything else follows from that: checks, diff, plan, apply, renderers, the published
//! schema, the tests of convergence. The defaults fit a plain collection below a project; what is
//! not one overrides them in its own file.
//!
//! Kinds are pure: they look at values and return values.

use std::{collections::BTreeMap, sync::Arc};

use schemars::Schema;

use crate::{
    diagnostic::Severity,
    field::{Compare, FIELD, Field, Readback, Route, Secrecy, Tier},
    operation::{Op, Read, Request, Write},
    page::Rows,
    planted::Bug,
    value::{Fields, Json, Object, Value},
};

/// How a section is written in a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A list of entries.
    List,
    /// A mapping of fields; there is one such thing a project.
    Mapping,
    /// A single value, `true` or `false`.
    Switch,
}

/// How the live entries of a section are read.
#[derive(Clone, Debug)]
pub enum Source {
    /// They are part of the project object.
    Project,
    /// A list, read to its end.
    List(Request<Read>),
    /// One object, or none: `null` or 404 below a project that is known to exist.
    Optional(Request<Read>),
}

/// The operations of a plain collection below a project.
#[derive(Clone, Copy, Debug)]
pub struct Routes {
    /// Adds one.
    pub create: Op<Write>,
    /// Edits one.
    pub update: Op<Write>,
    /// Removes one.
    pub delete: Op<Write>,
}

/// The project that requests are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The full path as declared.
    pub path: Arc<str>,
    /// The id, if the project exists.
    pub id: Option<u64>,
    /// The namespace that it is, or will be, in; known when the project must be created.
    pub namespace: Option<Namespace>,
}

impl Target {
    /// What `:id` of a path stands for: the number once it is known, which survives a rename.
    pub fn id(&self) -> String {
        self.id.map_or_else(|| self.path.to_string(), |id| id.to_string())
    }
}

/// A namespace: a group, or a user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its id.
    pub id: u64,
    /// Whose it is.
    pub owner: NamespaceOwner,
}

/// Whose namespace it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceOwner {
    /// A group's.
    Group,
    /// The caller's own.
    Caller,
    /// That of the user with this id.
    User(u64),
}

/// Ids of the users that entries name, by lower-case username; `None` where the service knows no
/// such user.
pub type Users = BTreeMap<String, Option<u64>>;

/// What the requests for one entry are built from.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The project.
    pub target: &'a Target,
    /// What is declared, all of it.
    pub declared: &'a Fields,
    /// The users that entries name.
    pub users: &'a Users,
}

/// An entry as it is on the service, under the names and in the shapes of the manifest.
#[derive(Clone, PartialEq)]
pub struct LiveEntry {
    /// What addresses it on the service: an id, a key.
    pub handle: Json,
    /// Its fields; one that is missing is unknown.
    pub fields: Object,
    /// Why undrift leaves it alone whatever is declared, for example `bot user`.
    pub protected: Option<&'static str>,
    /// The highest tier whose fields the service showed with it.
    pub tier: Tier,
}

/// What a declared entry stands for among the live ones.
#[derive(Clone)]
pub enum Found<'l> {
    /// Nothing.
    None,
    /// This one.
    One(&'l LiveEntry),
    /// One of several that differ, and nothing tells which; the text says which, without a
    /// credential.
    Ambiguous(String),
}

/// What is wrong with an entry, seen without the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The code, for example `masked-value`.
    pub code: &'static str,
    /// The field that it is about; `None` for the entry as a whole.
    pub field: Option<&'static str>,
    /// What is wrong: a lower-case fragment that never quotes a value which may be secret.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// One field of a kind: its name, its treatment and its schema.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The name in manifests.
    pub name: String,
    /// The treatment.
    pub field: Field,
    /// The schema of the property.
    pub schema: Json,
}

/// Every field of a kind, built once from its schema.
#[derive(Debug)]
pub struct Table {
    specs: Vec<Spec>,
    by_name: BTreeMap<String, usize>,
    /// The schema of an entry.
    pub schema: Json,
}

/// The treatment of a key below `extra:`: sent as it is, compared where it comes back.
static EXTRA: std::sync::LazyLock<Field> =
    std::sync::LazyLock::new(|| FIELD.read_if_present().nullable());

impl Table {
    /// Reads the fields out of `schema`.
    pub fn new(schema: &Schema) -> Self {
        let schema = schema.as_value().clone();
        let properties = schema.get("properties").and_then(Json::as_object);
        let specs: Vec<_> = properties
            .into_iter()
            .flatten()
            .map(|(name, property)| Spec {
                name: name.clone(),
                field: Field::of(property),
                schema: property.clone(),
            })
            .collect();
        let by_name = specs.iter().enumerate().map(|(i, spec)| (spec.name.clone(), i)).collect();
        Self { specs, by_name, schema }
    }

    /// The fields in the order of the struct.
    pub fn specs(&self) -> &[Spec] {
        &self.specs
    }

    /// One field.
    pub fn get(&self, name: &str) -> Option<&Spec> {
        self.by_name.get(name).map(|i| &self.specs[*i])
    }

    /// The treatment of `name`; one that is not in the table was written below `extra:`.
    pub fn field(&self, name: &str) -> &Field {
        self.get(name).map_or(&*EXTRA, |spec| &spec.field)
    }
}

/// One sort of managed thing.
pub trait Kind: Sync {
    /// The section of a manifest, for example `variables`.
    fn section(&self) -> &'static str;
    /// What one of them is called in a sentence, for example `variable`.
    fn noun(&self) -> &'static str;
    /// How the section is written.
    fn shape(&self) -> Shape {
        Shape::List
    }
    /// The fields of an entry, built once.
    fn table(&self) -> &'static Table;
    /// The fields that tell two entries apart, in the order in which an address shows them. Empty
    /// if there is one thing a project.
    fn identity(&self) -> &'static [&'static str] {
        &[]
    }
    /// How live entries are read.
    fn source(&self, target: &Target) -> Source;

    /// The operations of a plain collection. A kind without them overrides [`Self::create`],
    /// [`Self::update`] and [`Self::delete`].
    fn routes(&self) -> Option<Routes> {
        None
    }
    /// The field of a live entry that addresses it on the service, and the path argument that
    /// carries it.
    fn handle(&self) -> (&'static str, &'static str) {
        ("id", "id")
    }

    /// What, as the service calls it, tells live entries from each other, and without what else a
    /// live entry is none: that by which a declared one is matched with it.
    fn rows(&self) -> Rows {
        Rows::with_id(&[])
    }

    /// Text that is the same for two entries that are the same thing. Empty if there is one thing a
    /// project.
    fn key(&self, fields: &Object) -> String {
        let parts = self.identity().iter().filter_map(|name| Some(plain_text(fields.get(*name)?)));
        parts.collect::<Vec<_>>().join("@")
    }
    /// The fields that tell two entries apart on the service, where manifests have another way to.
    fn identity_on_service(&self) -> &'static [&'static str] {
        self.identity()
    }
    /// Text that is the same for two entries that the service cannot tell apart.
    fn key_on_service(&self, fields: &Object) -> String {
        self.key(fields)
    }
    /// The live entry that the service describes as `raw`, under the names and in the shapes of the
    /// manifest. Only what `wanted` names is kept, along with the identity and what
    /// [`Self::sent_with_every_edit`] needs.
    fn read(&self, raw: &Object, wanted: &dyn Fn(&str) -> bool) -> LiveEntry {
        let mut fields = Object::new();
        for spec in self.table().specs() {
            let kept = wanted(&spec.name)
                || self.identity().contains(&spec.name.as_str())
                || self.sent_with_every_edit(&spec.name);
            if let Some(value) = kept.then(|| self.decode(spec, raw)).flatten() {
                fields.insert(spec.name.clone(), value);
            }
        }
        let extra = raw.iter().filter(|(name, _)| self.table().get(name).is_none() && wanted(name));
        fields.extend(extra.map(|(name, value)| (name.clone(), value.clone())));
        let shown = self.table().specs().iter().filter(|spec| {
            spec.field.live_name(&spec.name).is_some_and(|name| raw.contains_key(name))
        });
        let tier = shown.map(|spec| spec.field.tier).max().unwrap_or_default();
        let handle = raw.get(self.handle().0).cloned().unwrap_or(Json::Null);
        LiveEntry { handle, fields, protected: self.protected(raw), tier }
    }
    /// The value of one field in a live object, in the shape of the manifest; `None` if the object
    /// does not say.
    fn decode(&self, spec: &Spec, raw: &Object) -> Option<Json> {
        raw.get(spec.field.live_name(&spec.name)?).cloned()
    }
    /// Why undrift leaves this live entry alone whatever is declared.
    fn protected(&self, _raw: &Object) -> Option<&'static str> {
        None
    }
    /// The live entry that `declared` stands for. Secrets that are known here stand in `declared`
    /// as plain text; `key` is its key.
    fn find<'l>(&self, _declared: &Fields, key: &str, live: &'l [LiveEntry]) -> Found<'l> {
        live.iter().find(|entry| self.key(&entry.fields) == key).map_or(Found::None, Found::One)
    }
    /// The level of access that the entry gives to the user whose id is its handle (reference 1,
    /// 2.1), if it gives any.
    fn access(&self, _fields: &Object) -> Option<u8> {
        None
    }
    /// What the manifest wrote, in the one spelling that is compared, shown and sent. Called once,
    /// when a manifest is resolved.
    fn normalise(&self, _name: &str, _declared: &mut Value) {}
    /// A user that the entry names and that must be looked up before the entry can be created.
    fn user<'f>(&self, _declared: &'f Fields) -> Option<&'f str> {
        None
    }

    /// The fields without which an entry cannot be created; an entry that exists is managed without
    /// them.
    fn required(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a declared and a live value are the same.
    fn same(&self, name: &str, declared: &Json, live: &Json) -> bool {
        same(self.table().field(name).compare, declared, live)
    }
    /// Whether the service resets a field that an edit leaves out, so that every edit has to carry
    /// it.
    fn sent_with_every_edit(&self, _name: &str) -> bool {
        false
    }
    /// Whether an edit of `changed` makes the service forget the write-only field `name`, so that
    /// it must be sent again.
    fn resets(&self, _name: &str, _changed: &[&str]) -> bool {
        false
    }

    /// Why a declared field is neither sent nor compared yet: what has to come first is not
    /// undrift's to do. `live` is the entry as it is there, `None` if it is about to be created.
    /// The end of a sentence that starts with "waits".
    fn waits(
        &self,
        _name: &str,
        _declared: &Fields,
        _live: Option<&LiveEntry>,
    ) -> Option<&'static str> {
        None
    }

    /// The requests that bring the entry into being.
    fn create(&self, subject: Subject<'_>) -> Vec<Request<Write>> {
        let body = self.body(subject.declared, Route::Create);
        let routes = self.routes().into_iter();
        let request = |op: Op<Write>| {
            op.request()
                .arg("id", subject.target.id())
                .fields(body.clone())
                .sensitive(self.sensitive())
        };
        routes.map(|r| request(r.create)).collect()
    }
    /// The requests that change the `changed` fields of `live` to what is declared.
    fn update(
        &self,
        subject: Subject<'_>,
        live: &LiveEntry,
        changed: &[&str],
    ) -> Vec<Request<Write>> {
        let body = self.edit_body(subject.declared, changed);
        let routes = self.routes().into_iter();
        let request = |op| self.addressed(op, subject.target, live).fields(body.clone());
        routes
            .map(|r| request(r.update).repeating(self.repeated(live)).sensitive(self.sensitive()))
            .collect()
    }
    /// The requests that remove `live`.
    fn delete(&self, target: &Target, live: &LiveEntry) -> Vec<Request<Write>> {
        self.routes().into_iter().map(|r| self.addressed(r.delete, target, live)).collect()
    }

    /// What is wrong with a declared entry, seen without the service. What its schema says is
    /// checked already.
    fn check(&self, _declared: &Fields, _report: &mut dyn FnMut(Fault)) {}

    /// What is wrong with how an entry is written. As [`Self::check`], but it sees only what stands
    /// in the manifest: never a secret in the place of its reference.
    fn check_written(&self, _declared: &Fields, _report: &mut dyn FnMut(Severity, Fault)) {}

    /// A request for `live`.
    fn addressed(&self, op: Op<Write>, target: &Target, live: &LiveEntry) -> Request<Write> {
        let request = op.request().arg("id", target.id());
        match self.handle() {
            (_, "id") => request,
            (_, argument) => request.arg(argument, plain_text(&live.handle)),
        }
    }
    /// The form in which requests carry the value of a field.
    fn encode(&self, _name: &str, value: &Value) -> Value {
        cleared(value)
    }
    /// The declared fields that `route` accepts, under the names and in the form that requests use.
    fn body(&self, declared: &Fields, route: Route) -> Fields {
        let table = self.table();
        let accepted = declared.iter().filter(|(name, _)| table.field(name).accepted.on(route));
        accepted
            .map(|(name, value)| {
                (table.field(name).sent_name(name).to_owned(), self.encode(name, value))
            })
            .collect()
    }
    /// The fields of a body whose values no text may quote.
    fn sensitive(&self) -> Vec<String> {
        let specs = self.table().specs().iter().filter(|spec| spec.field.secrecy != Secrecy::Open);
        specs.map(|spec| spec.field.sent_name(&spec.name).to_owned()).collect()
    }
    /// The body of an edit: what changes, what is declared of what the service would reset, and
    /// what it would forget.
    fn edit_body(&self, declared: &Fields, changed: &[&str]) -> Fields {
        let table = self.table();
        let sent = declared.iter().filter(|(name, _)| {
            table.field(name).accepted.on(Route::Edit)
                && (changed.contains(&name.as_str())
                    || self.sent_with_every_edit(name)
                    || self.resets(name, changed))
        });
        sent.map(|(name, value)| {
            (table.field(name).sent_name(name).to_owned(), self.encode(name, value))
        })
        .collect()
    }
    /// What an edit has to repeat of `live`, because the service would reset it.
    fn repeated(&self, live: &LiveEntry) -> Object {
        let carried = self.table().specs().iter().filter(|spec| {
            self.sent_with_every_edit(&spec.name) && !Bug::RepeatNothing.is_planted()
        });
        let repeated = carried.filter_map(|spec| {
            let value = live.fields.get(&spec.name).filter(|value| !value.is_null())?;
            let sent = self.encode(&spec.name, &value.clone().into());
            Some((spec.field.sent_name(&spec.name).to_owned(), sent.plain()?.clone()))
        });
        repeated.collect()
    }
}

/// `null` is sent as empty text: both clear a text, and clients of the service that send `null`
/// mean "not set" by it.
pub fn cleared(value: &Value) -> Value {
    if value.is_null() { Value::from("") } else { value.clone() }
}

/// Whether a declared and a live value are the same: mappings by the keys that are declared; `null`
/// is what is not set, so it equals empty text, and a live one equals `false`.
pub fn same(compare: Compare, declared: &Json, live: &Json) -> bool {
    match (declared, live) {
        (Json::Null, Json::String(text)) | (Json::String(text), Json::Null) => text.is_empty(),
        (Json::Bool(declared), Json::Null) => !declared,
        (Json::Object(declared), Json::Object(live)) => declared
            .iter()
            .all(|(name, value)| same(compare, value, live.get(name).unwrap_or(&Json::Null))),
        (Json::Array(declared), Json::Array(live)) if compare == Compare::Set => {
            declared.len() == live.len() && declared.iter().all(|value| live.contains(value))
        }
        (Json::Number(declared), Json::Number(live)) => declared.as_f64() == live.as_f64(),
        _ => declared == live,
    }
}

/// A scalar as plain text.
pub fn plain_text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether a field may come back from the service at all.
pub const fn is_readable(field: &Field) -> bool {
    !matches!(field.read, Readback::Never)
}

/// The twin of a deprecated boolean: `issues_enabled` is `issues_access_level` other than
/// `disabled`.
pub fn enabled(level: &Json) -> Option<bool> {
    level.as_str().map(|level| level != "disabled")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_the_same_whatever_their_clothes() {
        for (declared, live, alike) in [
            (json!(null), json!(""), true),
            (json!(""), json!(null), true),
            (json!(null), json!("x"), false),
            (json!("x"), json!(null), false),
            (json!(false), json!(null), true),
            (json!(true), json!(null), false),
            (json!(null), json!(false), false),
            (json!(1), json!(1.0), true),
            (json!(1), json!("1"), false),
            (json!({"a": null}), json!({}), true),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), true),
            (json!({"a": 1, "b": 2}), json!({"a": 1}), false),
            (json!({}), json!(null), false),
        ] {
            assert_eq!(same(Compare::Exact, &declared, &live), alike, "{declared} {live}");
        }
        for (declared, live, exact, set) in [
            (json!(["a", "b"]), json!(["a", "b"]), true, true),
            (json!(["a", "b"]), json!(["b", "a"]), false, true),
            (json!(["a"]), json!(["a", "b"]), false, false),
            (json!(["a", "c"]), json!(["a", "b"]), false, false),
            (json!([]), json!([]), true, true),
        ] {
            let found =
                (same(Compare::Exact, &declared, &live), same(Compare::Set, &declared, &live));
            assert_eq!(found, (exact, set), "{declared} {live}");
        }
    }
}

/// What the tests of every kind need.
#[cfg(test)]
pub(crate) mod testing {
    use super::{
        Arc, BTreeMap, Fault, Fields, Json, Kind, LiveEntry, Namespace, NamespaceOwner, Object,
        Request, Subject, Target, Users, Value, Write,
    };

    /// The fields of a JSON object.
    pub(crate) fn fields(json: Json) -> Fields {
        object(json).into_iter().map(|(name, value)| (name, Value::Plain(value))).collect()
    }

    /// A JSON object.
    pub(crate) fn object(json: Json) -> Object {
        serde_json::from_value(json).unwrap()
    }

    /// A project that exists, with the id 7.
    pub(crate) fn target() -> Target {
        Target { id: Some(7), ..new_target(NamespaceOwner::Group) }
    }

    /// A project that does not exist yet, in the namespace 3.
    pub(crate) fn new_target(owner: NamespaceOwner) -> Target {
        Target {
            path: Arc::from("acme/shop"),
            id: None,
            namespace: Some(Namespace { id: 3, owner }),
        }
    }

    /// Reads every field of a live object.
    pub(crate) fn live(kind: &dyn Kind, raw: Json) -> LiveEntry {
        kind.read(&object(raw), &|name| kind.table().get(name).is_some())
    }

    /// The requests that create an entry of the project with the id 7.
    pub(crate) fn create(kind: &dyn Kind, declared: &Fields) -> Vec<Request<Write>> {
        kind.create(Subject { target: &target(), declared, users: &Users::new() })
    }

    /// The requests that change a live entry of the project with the id 7.
    pub(crate) fn update(
        kind: &dyn Kind,
        declared: &Fields,
        raw: Json,
        changed: &[&str],
    ) -> Vec<Request<Write>> {
        kind.update(
            Subject { target: &target(), declared, users: &BTreeMap::new() },
            &live(kind, raw),
            changed,
        )
    }

    /// What each of `requests` says on the wire: its operation, its target, and the fields of its
    /// body with those that it repeats.
    pub(crate) fn said(requests: &[Request<Write>]) -> Vec<(&'static str, String, Fields)> {
        let body = |request: &Request<Write>| {
            let repeated = request
                .repeated()
                .map(|(name, value)| (name.to_owned(), Value::Plain(value.clone())));
            repeated.chain(request.body_fields().cloned().unwrap_or_default()).collect()
        };
        requests
            .iter()
            .map(|request| (request.operation.id, request.target(), body(request)))
            .collect()
    }

    /// The field and code of every fault that a kind finds.
    pub(crate) fn faults(kind: &dyn Kind, declared: &Fields) -> Vec<(&'static str, &'static str)> {
        collect(|report| kind.check(declared, report))
    }

    /// The field and code of every fault that `check` reports.
    pub(crate) fn collect(
        check: impl FnOnce(&mut dyn FnMut(Fault)),
    ) -> Vec<(&'static str, &'static str)> {
        let mut faults = Vec::new();
        check(&mut |fault| faults.push((fault.field.unwrap_or_default(), fault.code)));
        faults
    }
}
