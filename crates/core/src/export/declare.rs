//! Turns live state into manifests: names for ids, without preset values and without secrets.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use super::{
    Settings, Values,
    document::{Document, Entry, Part, Reference, UNMANAGED, reference},
};
use crate::{
    address::Address,
    cause::Cause,
    desired::subject,
    field::{Compare, Named, Readback, Scope, Secrecy, Tier},
    kind::{
        Capability, Effect, Facts, LiveEntry, Names, Place, Section, Shape, Spec, forms,
        is_readable, limits, needs::is_off, plain_text,
    },
    kinds::{self, preset},
    live::{Collection, Live, Presence},
    manifest::{may_be_created, schema::refused},
    secret::{Secret, is_reserved, judge},
    text::{MASK, escape},
    value::{Json, Object},
    yaml::is_forbidden,
};

/// A section answered like this is not visible to this caller, not in the tier of the service, or
/// switched off. A 401 because of the token ends the run instead.
const REFUSED: [u16; 3] = [401, 403, 404];

/// The reason if an answer lacks a field that every answer should have.
const UNSAID: &str = "the answer lacks it";

/// The reason if a live value may be secret.
const CREDENTIAL: &str = "it may hold a credential";

/// The live state at the path of a group or project.
pub(super) enum Found {
    /// The document to write.
    Document {
        /// The document.
        document: Box<Document>,
        /// The sections that could not be read.
        unread: Vec<Unread>,
        /// Entries that no manifest can express, with their sections, and why.
        left_out: Vec<(String, Cause)>,
    },
    /// It is marked for deletion, and will disappear.
    Deleting,
    /// It could not be read.
    Unread(Cause),
}

/// A section that could not be read.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) section: &'static str,
    pub(super) cause: Cause,
    /// Whether the service refused it; otherwise the request failed.
    pub(super) is_refused: bool,
    /// The tier that it needs.
    pub(super) tier: Tier,
    /// Whether the caller's role is known to suffice.
    pub(super) sees_it: bool,
}

/// A group or project that is being converted.
struct Declaring<'a> {
    settings: &'a Settings,
    path: &'a str,
    facts: &'a Facts,
    names: &'a Names,
    document: Document,
    unread: Vec<Unread>,
    /// Entries that no manifest can express, with their sections.
    left_out: Vec<(String, Cause)>,
}

/// The ids in `live` whose names are needed.
pub(super) fn ids(scope: Scope, live: &Live) -> BTreeSet<(Named, u64)> {
    let entries = kinds::sections(scope).filter_map(|of| {
        let entries = live.entries(of.section)?;
        Some(entries.iter().flat_map(move |entry| forms::ids_in(of, entry.fields.raw())))
    });
    entries.flatten().collect()
}

/// The document for the group or project at `path`.
pub(super) fn declare(
    scope: Scope,
    path: &str,
    live: &Live,
    names: &Names,
    settings: &Settings,
) -> Found {
    let gone = |why: &str| Found::Unread(Cause::new(why.to_owned()).transient());
    let facts = match &live.presence {
        Presence::Here(_, facts) if facts.deleting.is_some() => {
            return Found::Deleting;
        }
        Presence::Here(_, facts) => facts,
        Presence::Moved { to: Some(to) } => return gone(&format!("it is now `{to}`")),
        Presence::Moved { to: None } => return gone("it was renamed"),
        Presence::Missing(_)
        | Presence::NoNamespace(_)
        | Presence::Twice { .. }
        | Presence::Halfway { .. } => return gone("it is gone"),
        Presence::Unreadable(cause) => return Found::Unread(cause.clone()),
    };
    let mut all = live.names.clone();
    all.extend(names.clone());
    let names = &all;
    let document = Document {
        scope,
        path: path.into(),
        about: Vec::new(),
        parts: Vec::new(),
        unread: Vec::new(),
        is_archived: facts.archived,
        is_personal: facts.personal_owner.is_some(),
        tier: Tier::Free,
        proven: Tier::Free,
        hidden: Vec::new(),
        unmanaged: BTreeMap::new(),
        ignored: Vec::new(),
        secrets: Vec::new(),
    };
    let mut declaring = Declaring {
        settings,
        path,
        facts,
        names,
        document,
        unread: Vec::new(),
        left_out: Vec::new(),
    };
    for of in kinds::sections(scope) {
        if settings.takes(path, of) {
            declaring.section(of, live.sections.get(of.section));
        } else {
            declaring.document.unread.push(of.section);
        }
    }
    let Declaring { mut document, unread, left_out, .. } = declaring;
    document.settle_approvals();
    Found::Document { document: Box::new(document), unread, left_out }
}

impl Declaring<'_> {
    fn section(&mut self, of: Section, live: Option<&Collection>) {
        let entries = match (of.shape, live.map(Collection::entries)) {
            (Shape::Container, _) => {
                // What is older keeps a path that nothing new may have.
                if self.settings.create && may_be_created(of.home.scope, self.path) {
                    let fields = vec![(of.section.to_owned(), true.into())];
                    let entry = Entry { fields, ..Entry::default() };
                    self.document.parts.push(Part::new(of, vec![entry]));
                }
                return;
            }
            // Nothing else in an archived container can be changed.
            (_, Some(Ok(entries))) if self.facts.archived && !closes(of, entries) => return,
            (_, Some(Ok(entries))) => entries,
            (_, _) if self.facts.archived => return,
            (_, Some(Err(cause))) => return self.unread(of, cause),
            (_, None) => return self.unread(of, &Cause::new("not read")),
        };
        let mut part = Part::new(of, Vec::new());
        let tier = entries.iter().map(|live| live.tier).fold(of.tier(), Tier::max);
        self.document.tier = self.document.tier.max(tier);
        if !matches!(of.home.place, Place::Object) || self.facts.tier > Tier::Free {
            self.document.proven = self.document.proven.max(tier);
        }
        for live in entries {
            if self.is_left_out(of, live) {
                continue;
            }
            if let Some(name) = secret_in_need(of, live) {
                let why = format!("`{name}` may hold a credential");
                self.leave_out(&mut part, &of.name(live.fields.raw()), why);
                continue;
            }
            let before = self.left_out.len();
            let entry = self.entry(of, live, &mut part.about);
            if let Some(name) = entry.missing_identity(of) {
                self.left_out.truncate(before);
                self.leave_out(&mut part, &entry.key, format!("manifests cannot express `{name}`"));
                continue;
            }
            // A section that is not a list exists even if it has no fields.
            if of.shape == Shape::List || !entry.fields.is_empty() || !entry.unknown.is_empty() {
                part.entries.push(entry);
            }
        }
        let address = Address::container(self.path.into()).section(of.section);
        let is_empty = part.entries.is_empty() && part.about.is_empty();
        if of.shape == Shape::List {
            self.leave_out_twins(&mut part);
            part.entries
                .retain(|entry| self.settings.selection.holds(&address.entry(entry.key.as_str())));
            part.entries.sort_by(|a, b| a.key.cmp(&b.key));
        }
        let is_declared_empty = self.settings.all && is_empty;
        if is_declared_empty && of.is_removable() && of.shape == Shape::Mapping {
            self.document.declare_absent(of);
        } else if !part.entries.is_empty()
            || !part.about.is_empty()
            || (is_declared_empty && of.shape == Shape::List)
        {
            self.document.parts.push(part);
        }
    }

    /// A section that could not be read.
    fn unread(&mut self, of: Section, cause: &Cause) {
        self.document.unread.push(of.section);
        let fields = of.table().specs().iter().map(|spec| spec.field.available.tier).max();
        let whole = fields.filter(|_| of.shape != Shape::List).unwrap_or_default();
        let is_refused = match (cause.status, cause.operation) {
            (Some(status), _) => REFUSED.contains(&status),
            (None, operation) => operation.is_none() && !cause.transient,
        };
        self.unread.push(Unread {
            section: of.section,
            cause: cause.clone(),
            is_refused,
            tier: of.tier().max(whole),
            // A 401 is about this caller, whatever the role; without an answer the role was too low.
            sees_it: cause.status.is_some_and(|status| status != REFUSED[0])
                && (self.settings.caller.administrator
                    || self.facts.level.is_some_and(|level| level >= of.home.seen_from())),
        });
    }

    /// Records a live field that is not written.
    fn lack(&mut self, of: Section, key: &str, field: &str, why: &str) {
        self.left_out.push((format!("{}/{key}.{field}", of.section), Cause::new(why.to_owned())));
    }

    /// Leaves the entry `key` out of `part`, with a comment.
    fn leave_out(&mut self, part: &mut Part, key: &str, why: String) {
        part.about.push(format!("Not exported: {} ({why})", escape(key)));
        self.left_out.push((format!("{}/{key}", part.of.section), Cause::new(why)));
    }

    /// Leaves out entries with the same identity: declaring one of them would change the others.
    fn leave_out_twins(&mut self, part: &mut Part) {
        let of = part.of;
        let told = |entry: &Entry| {
            let fields: Object = entry.fields.iter().cloned().collect();
            let identity = of.identify(&fields);
            let name = (!identity.name.is_empty()).then(|| format!("by name {}", identity.name));
            name.into_iter().chain(identity.keys.into_iter().next()).collect::<Vec<_>>()
        };
        let told: Vec<_> = part.entries.iter().map(told).collect();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for key in told.iter().flat_map(BTreeSet::from_iter) {
            *counts.entry(key).or_default() += 1;
        }
        let is_twin = |told: &Vec<String>| told.iter().any(|key| counts[key.as_str()] > 1);
        let mut twins = told.iter().map(is_twin);
        let (out, stay) = mem::take(&mut part.entries)
            .into_iter()
            .partition(|entry| twins.next() == Some(true) && entry.state.is_none());
        part.entries = stay;
        let out: Vec<Entry> = out;
        for entry in out {
            self.leave_out(
                part,
                &entry.key,
                format!("a manifest cannot tell it from another {}", of.noun),
            );
        }
    }

    /// Whether nobody decides about an entry: a bot, the caller's own access, and the owner of a
    /// personal namespace.
    fn is_left_out(&self, of: Section, live: &LiveEntry) -> bool {
        let Some((user, Named::User)) = subject(of) else { return live.protected.is_some() };
        let caller = &self.settings.caller;
        let own = [Some(caller.id), self.facts.personal_owner];
        // An answer with a wrong id must not make the caller's own access look like another user's.
        let name = live.fields.raw().get(user).and_then(Json::as_str);
        live.protected.is_some()
            || live.id().is_some_and(|id| own.contains(&Some(id)))
            || name.is_some_and(|name| name.eq_ignore_ascii_case(&caller.username))
    }

    fn entry(&mut self, of: Section, live: &LiveEntry, about: &mut Vec<String>) -> Entry {
        let key = of.name(live.fields.raw());
        let mut entry = Entry { key, ..Entry::default() };
        let mut left_out = Vec::new();
        let settings = self.settings;
        let is_below = self.document.path.contains('/');
        let needed = of.needed(live.fields.raw());
        let is_edited = self.is_edited(of, live);
        for spec in of.table().specs().iter().filter(|spec| is_exported(of, spec, settings)) {
            let is_its_own = of.has(live.fields.raw(), spec.name);
            if !is_its_own || (spec.field.available.is_of_top() && is_below) {
                continue;
            }
            let Some(value) = live.fields.raw().get(spec.name) else {
                // A field that only some installations show is not missed, nor one whose switch is
                // off.
                let switch = spec.field.relations.switch();
                let off = switch.and_then(|switch| live.fields.raw().get(switch)).map(is_off);
                if spec.field.read != Readback::IfPresent && off != Some(true) {
                    // A missing field of an entry is always reported; settings may also be hidden
                    // by a role.
                    match of.home.place {
                        Place::Optional(_) if !spec.field.is_nested() => {
                            self.lack(of, &entry.key, spec.name, UNSAID);
                        }
                        _ => self.document.hidden.push(format!("{}.{}", of.section, spec.name)),
                    }
                }
                entry.unknown.push(spec.name.to_owned());
                continue;
            };
            match self.confidential(of, spec, live, value) {
                None => self.field(of, spec, value, is_edited, &mut entry, &mut left_out),
                Some(_)
                    if value.is_string()
                        && spec.field.secrecy() != Secrecy::Open
                        && (self.settings.values == Values::Env || needed.contains(&spec.name)) =>
                {
                    self.reference(of, spec, Some(value), &mut entry);
                }
                // Without a value, apply could not create it.
                Some(_)
                    if forms::is_hidden(spec.field, live)
                        && of.required.contains(&spec.name)
                        && self.settings.create
                        && self.settings.values == Values::Env =>
                {
                    self.reference(of, spec, None, &mut entry);
                }
                Some(why) if of.identity.contains(&spec.name) => {
                    return unmanaged(entry, spec, value, &why);
                }
                Some(why) => {
                    left_out.push(format!("{} not exported: {why}", spec.name));
                    entry.unknown.push(spec.name.to_owned());
                }
            }
        }
        for (name, usual) in of.unmanaged() {
            let value = live.fields.raw().get(name).unwrap_or(&Json::Null);
            if !is_nothing(value) && *value != false && value != usual {
                let name = format!("{}.{name}", of.section);
                *self.document.unmanaged.entry(name).or_default() += 1;
            }
        }
        // No answer shows a secret without which the service refuses the entry.
        for name in needed {
            if let Some(spec) = of.table().get(name).filter(|spec| !is_readable(spec.field)) {
                self.reference(of, spec, None, &mut entry);
            }
        }
        // An entry without a required field was not read completely.
        for name in of.required {
            let value = live.fields.raw().get(*name).filter(|value| !value.is_null());
            let field = of.field(name);
            let is_read = match field.secrecy() {
                Secrecy::Open => value.is_some(),
                _ => value.is_some_and(Json::is_string) || forms::is_hidden(field, live),
            };
            if !is_read {
                self.lack(of, &entry.key, name, UNSAID);
            }
        }
        // A removable object exists even if it has no fields.
        if of.is_removable() && entry.fields.is_empty() {
            let known = of.table().specs().iter();
            let known = known.filter_map(|spec| Some((spec, live.fields.raw().get(spec.name)?)));
            let is_good = |spec: &Spec, value: &Json| {
                !is_nothing(value)
                    && is_sayable(of, spec.name, value)
                    && self.confidential(of, spec, live, value).is_none()
            };
            let first = known.clone().find(|(spec, value)| is_good(spec, value));
            entry.fields.extend(first.map(|(spec, value)| (spec.name.to_owned(), value.clone())));
        }
        if of.shape == Shape::List {
            entry.about = (!left_out.is_empty()).then(|| left_out.join("; "));
        } else {
            about.extend(left_out);
        }
        entry
    }

    /// Whether somebody has edited a single object whose edits decide about several fields at once: then
    /// its presets are decisions too.
    fn is_edited(&self, of: Section, live: &LiveEntry) -> bool {
        let mut specs = of.table().specs().iter().filter(|spec| spec.field.with_every_edit);
        of.shape == Shape::Mapping
            && specs.any(|spec| {
                let value = live.fields.raw().get(spec.name);
                value.is_some_and(|value| !is_preset(of, spec.name, value, self.path))
            })
    }

    /// Adds a field; the keys of a mapping become fields of their own.
    fn field(
        &mut self,
        of: Section,
        spec: &Spec,
        value: &Json,
        is_edited: bool,
        entry: &mut Entry,
        left_out: &mut Vec<String>,
    ) {
        let shown = sorted(spec, forms::shown(Some(spec), value, self.names));
        let within = spec.schema["properties"].as_object();
        let leaves: Vec<(String, Json)> = match (within, &shown) {
            (Some(properties), Json::Object(object)) => {
                let is_current = |name: &&String| !is_deprecated(&properties[name.as_str()]);
                let names = properties.keys().filter(is_current);
                let leaf = |name: &String| {
                    Some((format!("{}.{name}", spec.name), object.get(name)?.clone()))
                };
                names.filter_map(leaf).collect()
            }
            _ => vec![(spec.name.to_owned(), shown.clone())],
        };
        for (name, value) in leaves {
            let is_limit = name
                .split_once('.')
                .is_some_and(|(_, key)| limits::are_required(spec, key, &shown));
            let is_needed = is_limit
                || of.required.contains(&name.as_str())
                || (is_edited && spec.field.with_every_edit);
            if !self.settings.all && !is_needed && is_preset(of, &name, &value, self.path) {
                continue;
            }
            if is_sayable(of, &name, &value) {
                entry.fields.push((name, value));
                continue;
            }
            if !is_nothing(&value) {
                let names_somebody = value.is_array() || value.is_object();
                let why = match names_somebody {
                    _ if spec.has_secret_rows() => "the service never shows its secrets",
                    true => "it names something that the token cannot see",
                    false => "a manifest cannot express it",
                };
                if !names_somebody {
                    self.lack(of, &entry.key, &name, why);
                }
                left_out.push(format!("{name} not exported: {why}"));
            }
            entry.unknown.push(name);
        }
    }

    /// Why the live value of a field must not be written into a manifest, if so.
    fn confidential(
        &self,
        of: Section,
        spec: &Spec,
        live: &LiveEntry,
        value: &Json,
    ) -> Option<String> {
        if spec.field.secrecy() == Secrecy::Open {
            return judge::holds_secret(value, Secrecy::Open).then(|| CREDENTIAL.into());
        }
        if value.is_null() && !forms::is_hidden(spec.field, live) {
            return Some("it has no value, which a manifest cannot express".into());
        }
        let Some(text) = value.as_str() else { return Some("the service hides it".into()) };
        if spec.field.secrecy() == Secrecy::Address {
            return judge::may_be_secret(text, Secrecy::Sensitive).then(|| CREDENTIAL.into());
        }
        let names = of.identity.iter().filter_map(|name| live.fields.raw().get(*name));
        let is_named_so =
            names.clone().map(plain_text).any(|name| judge::is_named_like_secret(&name));
        let why = match of.rules.confidential(live.fields.raw()) {
            _ if self.settings.values == Values::None => "`--values none`",
            Some(why) => why,
            None if is_named_so => "its name is that of a secret",
            None if judge::may_be_secret(text, Secrecy::Sensitive) => "it looks like a secret",
            None => return None,
        };
        Some(why.into())
    }

    /// The reference to write in place of a value; `None` for one that the service does not show.
    fn reference(&mut self, of: Section, spec: &Spec, value: Option<&Json>, entry: &mut Entry) {
        let address = Address::container(self.path.into()).section(of.section);
        // The path of a URL may be the secret part. An entry may have several that are never shown.
        let called = match spec.field.secrecy() {
            Secrecy::Address => value.map(host).unwrap_or_default(),
            Secrecy::Reference => format!("{}_{}", entry.key, spec.name),
            _ => entry.key.clone(),
        };
        let name = variable(&address.entry(called));
        let text = value.map(plain_text).unwrap_or_default();
        let user = text.rsplit_once('@').map_or("", |(user, _)| user);
        let is_masked = spec.field.secrecy() == Secrecy::Address && user.contains(MASK);
        entry.fields.push((spec.name.to_owned(), reference(&name)));
        self.document.secrets.push(Reference {
            section: of.section,
            key: entry.key.clone(),
            field: spec.name.to_owned(),
            name,
            is_shown: value.is_some() && !is_masked,
            value: Secret::new(text),
        });
    }
}

/// A field without which there is no entry, and whose live value may be secret where a manifest must
/// have plain text.
fn secret_in_need(of: Section, live: &LiveEntry) -> Option<&'static str> {
    let needed = of.needed(live.fields.raw());
    let mut needed = of.identity.iter().chain(of.required).chain(needed).copied();
    needed.find(|name| {
        let value = live.fields.raw().get(*name);
        of.field(name).secrecy() == Secrecy::Open
            && value.is_some_and(|value| judge::holds_secret(value, Secrecy::Open))
    })
}

/// Whether a field is exported: manifests may declare it, and the service shows it, perhaps only to
/// administrators.
fn is_exported(of: Section, spec: &Spec, settings: &Settings) -> bool {
    is_readable(spec.field)
        && !spec.field.is_upload()
        && !lacks_credential(of, spec)
        && of.table().is_current(spec, settings.release)
        && (settings.caller.administrator || !spec.field.available.is_for_administrators())
}

/// Whether answers contain a field without the credential that it may have. Declared like that, it would
/// replace the credential.
pub(super) fn lacks_credential(of: Section, spec: &Spec) -> bool {
    spec.field.compare == Compare::Location && !of.identity.contains(&spec.name)
}

/// An entry with a secret as identity: marked as managed elsewhere, and named without it.
fn unmanaged(entry: Entry, spec: &Spec, value: &Json, why: &str) -> Entry {
    let glob = format!("*{}*", host(value));
    let fields = vec![(spec.name.to_owned(), glob.into())];
    let about = Some(format!("{} not exported: {why}", spec.name));
    Entry { key: entry.key, fields, about, state: Some(UNMANAGED), unknown: Vec::new() }
}

/// The host in a URL.
fn host(value: &Json) -> String {
    let url = value.as_str().and_then(|text| url::Url::parse(text).ok());
    url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

/// The name of the environment variable for the field at `address`.
fn variable(address: &Address) -> String {
    let entry = address.entry.as_deref().unwrap_or_default();
    // The default scope of a variable is left out.
    let entry = entry.strip_suffix("@*").unwrap_or(entry);
    let mut name = String::new();
    for c in format!("{}__{entry}", address.path).chars() {
        match c.to_ascii_uppercase() {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ => name.push('_'),
        }
    }
    let is_usable = name.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_reserved(&name);
    if is_usable { name } else { format!("THE_{name}") }
}

/// Whether a section prevents all other changes of the container.
fn closes(of: Section, entries: &[LiveEntry]) -> bool {
    let effects = |live: &LiveEntry| of.rules.effects(None, live.fields.raw(), live.fields.raw());
    matches!(of.home.place, Place::Object)
        && entries.iter().flat_map(effects).any(|one| one == Effect::lacks(Capability::Writable))
}

/// Whether a value is the service's preset, or empty.
fn is_preset(of: Section, name: &str, value: &Json, path: &str) -> bool {
    let preset = preset::of(of, name, path);
    forms::same(Compare::Exact, &preset, value) || (preset.is_null() && is_nothing(value))
}

fn is_nothing(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Whether a document may contain `value` for the field `name`.
pub(super) fn is_sayable(of: Section, name: &str, value: &Json) -> bool {
    if has_forbidden(value) {
        return false;
    }
    match name.split_once('.') {
        None => refused(of, name, value).is_none(),
        Some((outer, inner)) => {
            let within = Object::from_iter([(inner.to_owned(), value.clone())]);
            refused(of, outer, &within.into()).is_none()
        }
    }
}

/// Whether a text in `value` has a character that no manifest may contain.
fn has_forbidden(value: &Json) -> bool {
    match value {
        Json::String(text) => text.contains(is_forbidden),
        Json::Array(items) => items.iter().any(has_forbidden),
        Json::Object(object) => object.values().any(has_forbidden),
        _ => false,
    }
}

fn is_deprecated(schema: &Json) -> bool {
    schema.get("deprecated").is_some()
}

/// A list without order, sorted: levels, users and groups.
fn sorted(spec: &Spec, mut value: Json) -> Json {
    if let Some(items) = value.as_array_mut().filter(|_| spec.field.is_without_order()) {
        let rows = spec.schema["items"]["properties"].as_object();
        let place = |item: &Json| {
            let first = item.as_object().and_then(|item| item.keys().next());
            first.and_then(|first| rows?.keys().position(|key| key == first))
        };
        items.sort_by_cached_key(|item| (place(item), item.to_string()));
    }
    value
}
