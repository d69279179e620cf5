//! What differs between a declared section and the live one, as data.
//!
//! Pure and synchronous: the same input gives the same differences in the same order. What cannot be compared becomes a note, never a
//! difference, so that a run which changed nothing plans nothing.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    address::{Address, Selector},
    field::{Accepted, Field, Readback, Secrecy},
    kind::{Found, Kind, LiveEntry, Subject, Target, Users, is_readable, plain_text},
    live::{Caller, Collection},
    manifest::{Entry, Section, State, Unlisted},
    operation::{Request, Write},
    origin::{Origin, Sourced},
    secret::Secrets,
    text,
    value::{Fields, Json, Value},
};

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is brought into being.
    Create,
    /// Some of its fields change.
    Update,
    /// It is removed.
    Delete,
}

/// One side of a change, as it may be shown to anybody.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Nothing is there.
    Absent,
    /// The service does not say.
    Unknown,
    /// Plain data.
    Value(Json),
    /// Something is there that is not shown: a live value of a sensitive field, or a literal that is declared to be masked.
    Hidden,
    /// The value of a secret, by where it comes from: `env:NAME` or `file:PATH`.
    Secret(String),
    /// The content of a file.
    File(String),
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// Its name in the manifest.
    pub field: String,
    /// What is there.
    pub before: Shown,
    /// What is to be there.
    pub after: Shown,
    /// Where it is declared; a removal has none of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// An object that differs.
pub struct Difference {
    /// The object.
    pub address: Address,
    /// What is to be done.
    pub action: Action,
    /// Where it is declared: the entry, or the section whose `unlisted` says so.
    pub origin: Origin,
    /// What changes.
    pub changes: Vec<Change>,
    /// The calls, in order.
    pub requests: Vec<Request<Write>>,
    /// What was found, to tell later whether it moved. Never shown.
    pub live: Option<LiveEntry>,
    /// The user whose access this is about, with the levels before and after.
    pub access: Option<AccessChange>,
}

/// How a user's access changes. Levels are the service's numbers (reference 1, 2.1); 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessChange {
    /// The user.
    pub user: u64,
    /// The level that they have.
    pub before: u8,
    /// The level that they will have.
    pub after: u8,
}

/// Why something that one might expect does not happen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Note {
    /// The object.
    pub address: Address,
    /// The reason.
    pub reason: Reason,
    /// The fields that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Where it is declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// The reason of a [`Note`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is live, and no manifest lists it.
    Unlisted,
    /// It is live and unlisted, and is left alone for the reason given.
    LeftAlone(String),
    /// The service does not return these fields.
    CannotVerify,
    /// These secrets are not set here.
    SecretMissing(Vec<String>),
    /// The service's answer lacks these fields, which other installations, tiers or roles have.
    NotReturned,
    /// It is archived and stays archived; nothing below it is read or changed.
    Archived,
}

/// Something that has to be put right before anything is applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Problem {
    /// The object.
    pub address: Address,
    /// The code, for example `missing-project`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Where it is declared.
    pub origin: Origin,
}

/// Something of which too little is known, so that nothing is planned there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Incomplete {
    /// The project, the section or the entry.
    pub address: Address,
    /// Why.
    pub reason: String,
}

/// What the comparison of a section brings.
#[derive(Default)]
pub struct SectionDiff {
    /// What differs, in the order of the entries; removals of unlisted entries last.
    pub differences: Vec<Difference>,
    /// Why other things do not happen.
    pub notes: Vec<Note>,
    /// What has to be put right first.
    pub problems: Vec<Problem>,
    /// Entries of which too little is known.
    pub incomplete: Vec<Incomplete>,
}

/// What a comparison may look at besides the two sides.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The project.
    pub target: &'a Target,
    /// Its address.
    pub project: &'a Address,
    /// Who asks.
    pub caller: &'a Caller,
    /// The user in whose personal namespace the project is.
    pub personal_owner: Option<u64>,
    /// The users that entries name.
    pub users: &'a Users,
    /// What secret references stand for, as far as it is known here.
    pub secrets: &'a Secrets,
    /// The objects whose write-only fields are sent again.
    pub resend: &'a [Selector],
}

/// Compares a declared section with the live one.
///
/// # Errors
/// Why the live section does not say enough: then nothing is concluded.
pub fn section(declared: &Section, live: &Collection, context: Context<'_>) -> Result<SectionDiff, String> {
    let live = live.entries().map_err(str::to_owned)?;
    let mut diff = SectionDiff::default();
    // The live entries that a declared one stands for.
    let mut listed: Vec<&LiveEntry> = Vec::new();
    let mut unmatched = false;
    for entry in &declared.entries {
        let comparing = Comparing::new(declared.kind, entry, context);
        match comparing.find(live) {
            Match::None => comparing.absent(&mut diff),
            Match::One(found) if !listed.iter().any(|other| std::ptr::eq(*other, found)) => {
                listed.push(found);
                comparing.present(found, &mut diff);
                for copy in live.iter().filter(|other| comparing.is_copy(found, other)) {
                    listed.push(copy);
                    let address = comparing.address.entry(format!("{}@{}", entry.key, plain_text(&copy.handle)));
                    diff.differences.push(removal(declared.kind, address, &entry.origin, copy, context.target));
                }
            }
            Match::One(_) => comparing.undecided("another entry already stands for the live one that fits".into(), &mut diff),
            Match::Ambiguous(why) => {
                unmatched = true;
                comparing.undecided(why, &mut diff);
            }
            Match::Unknown => unmatched = true,
        }
        comparing.secrets_missing(&mut diff);
        comparing.secrets_unfit(&mut diff);
    }
    for entry in live.iter().filter(|entry| !listed.iter().any(|other| std::ptr::eq(*other, *entry))) {
        unlisted(declared, entry, unmatched, context, &mut diff);
    }
    Ok(diff)
}

/// What happens to a live entry that no manifest lists.
fn unlisted(declared: &Section, live: &LiveEntry, unmatched: bool, context: Context<'_>, diff: &mut SectionDiff) {
    let kind = declared.kind;
    if kind.shape() != crate::kind::Shape::List || declared.unlisted == Unlisted::Ignore {
        return;
    }
    let address = context.project.section(kind.section()).entry(kind.key(&live.fields));
    let user = access_of(kind, live).map(|(user, _)| user);
    let spared = live
        .untouchable
        .or_else(|| (user == Some(context.caller.id)).then_some("it is the caller's own access"))
        .or_else(|| (user.is_some() && user == context.personal_owner).then_some("it is the owner of the personal namespace"))
        .or_else(|| unmatched.then_some("some declared entries could not be matched, and this may be one of them"));
    let note = |reason| Note { address: address.clone(), reason, fields: Vec::new(), origin: Some(declared.origin.clone()) };
    match (declared.unlisted, spared) {
        (Unlisted::Delete, None) => diff.differences.push(removal(kind, address, &declared.origin, live, context.target)),
        (Unlisted::Delete, Some(why)) => diff.notes.push(note(Reason::LeftAlone(why.into()))),
        // Bots come and go with the tokens that they belong to; a report of them would never end.
        _ if live.untouchable.is_some() => {}
        _ => diff.notes.push(note(Reason::Unlisted)),
    }
}

fn removal(kind: &dyn Kind, address: Address, origin: &Origin, live: &LiveEntry, target: &Target) -> Difference {
    let identity = kind.identity();
    let changes = live.fields.iter().filter(|(name, _)| !identity.contains(&name.as_str()) && kind.table().get(name).is_some());
    let changes = changes.map(|(name, value)| Change {
        field: name.clone(),
        before: shown_live(kind.table().field(name), Some(value)),
        after: Shown::Absent,
        origin: None,
    });
    Difference {
        address,
        action: Action::Delete,
        origin: origin.clone(),
        changes: changes.collect(),
        requests: kind.delete(target, live),
        live: Some(live.clone()),
        access: access_of(kind, live).map(|(user, before)| AccessChange { user, before, after: 0 }),
    }
}

/// The user that an entry gives access to, and the level.
fn access_of(kind: &dyn Kind, live: &LiveEntry) -> Option<(u64, u8)> {
    Some((live.handle.as_u64()?, kind.access(&live.fields)?))
}

/// What a declared entry stands for among the live ones.
enum Match<'l> {
    None,
    One(&'l LiveEntry),
    Ambiguous(String),
    /// Its identity is a secret that is not set here.
    Unknown,
}

/// One declared entry under comparison.
struct Comparing<'a> {
    kind: &'static dyn Kind,
    entry: &'a Entry,
    context: Context<'a>,
    address: Address,
    /// The fields as declared.
    values: Fields,
    /// The same with every secret that is known here in place, for comparing only.
    comparable: Fields,
}

impl<'a> Comparing<'a> {
    fn new(kind: &'static dyn Kind, entry: &'a Entry, context: Context<'a>) -> Self {
        let section = context.project.section(kind.section());
        let address = if entry.key.is_empty() { section } else { section.entry(entry.key.as_str()) };
        let values = entry.values();
        let comparable = values.iter().map(|(name, value)| {
            let known = match value {
                Value::Secret(reference) => context.secrets.get(reference).map(|secret| Value::from(secret.expose())),
                _ => None,
            };
            (name.clone(), known.unwrap_or_else(|| value.clone()))
        });
        let comparable = comparable.collect();
        Self { kind, entry, context, address, values, comparable }
    }

    fn field(&self, name: &str) -> &'static Field {
        self.kind.table().field(name)
    }

    fn find<'l>(&self, live: &'l [LiveEntry]) -> Match<'l> {
        let plain = self.comparable.iter().filter_map(|(name, value)| Some((name.clone(), value.plain()?.clone())));
        let key = self.kind.key(&plain.collect());
        let unknown = |name: &&str| matches!(self.comparable.get(*name), Some(Value::Secret(_)));
        match self.kind.find(&self.comparable, &key, live) {
            Found::One(found) => Match::One(found),
            _ if self.kind.identity().iter().any(unknown) => Match::Unknown,
            Found::Ambiguous(why) => Match::Ambiguous(why),
            Found::None => Match::None,
        }
    }

    /// Whether `other` is the same thing as `found` once more, as a create whose answer was lost can leave it behind.
    fn is_copy(&self, found: &LiveEntry, other: &LiveEntry) -> bool {
        found.handle != other.handle && found.fields == other.fields && !found.fields.is_empty()
    }

    fn undecided(&self, reason: String, diff: &mut SectionDiff) {
        diff.incomplete.push(Incomplete { address: self.address.clone(), reason });
    }

    fn problem(&self, code: &'static str, message: String, help: Option<String>, field: &str) -> Problem {
        let origin = self.entry.fields.get(field).map_or(&self.entry.origin, |field| &field.origin);
        Problem { address: self.address.clone(), code, message, help, origin: origin.clone() }
    }

    /// Whether a field steers undrift, or is what tells entries apart, and is neither compared nor shown as a change.
    fn steers(&self, name: &str) -> bool {
        let field = self.field(name);
        field.accepted == Accepted::Never && (!is_readable(field) || self.kind.identity().contains(&name))
    }

    fn note(&self, reason: Reason, fields: Vec<String>) -> Note {
        Note { address: self.address.clone(), reason, fields, origin: Some(self.entry.origin.clone()) }
    }

    /// Says which secrets are not set here, so that a plan does not look more certain than it is.
    fn secrets_missing(&self, diff: &mut SectionDiff) {
        if self.entry.state == State::Absent {
            return;
        }
        let missing = self.comparable.iter().filter_map(|(name, value)| match value {
            Value::Secret(reference) => Some((name.clone(), reference.to_string())),
            _ => None,
        });
        let (fields, references): (Vec<_>, Vec<_>) = missing.unzip();
        if !fields.is_empty() {
            diff.notes.push(self.note(Reason::SecretMissing(references), fields));
        }
    }

    /// Says which secrets the service would refuse. What is written in a manifest was checked when it was read.
    fn secrets_unfit(&self, diff: &mut SectionDiff) {
        let is_secret = |name: &str| matches!(self.values.get(name), Some(Value::Secret(_)));
        if self.entry.state == State::Present && self.values.keys().any(|name| is_secret(name)) {
            self.kind.check(&self.comparable, &mut |fault| {
                if let Some(field) = fault.field.filter(|field| is_secret(field)) {
                    diff.problems.push(self.problem(fault.code, fault.message, fault.help, field));
                }
            });
        }
    }

    fn subject(&self) -> Subject<'_> {
        Subject { target: self.context.target, declared: &self.values, users: self.context.users }
    }

    /// The entry is live.
    fn present(&self, live: &LiveEntry, diff: &mut SectionDiff) {
        if let Some(why) = live.untouchable {
            diff.notes.push(self.note(Reason::LeftAlone(why.into()), Vec::new()));
            return;
        }
        if self.entry.state == State::Absent {
            diff.differences.push(removal(self.kind, self.address.clone(), &self.entry.origin, live, self.context.target));
            return;
        }
        let mut changes = Vec::new();
        let (mut unverified, mut not_returned) = (Vec::new(), Vec::new());
        let resend = self.context.resend.iter().any(|selector| selector.matches(&self.address));
        for (name, value) in &self.comparable {
            match self.compare(name, value, live) {
                Compared::Same | Compared::Local | Compared::SecretMissing => {}
                Compared::Differs => changes.push(self.change(name, Some(live))),
                Compared::NotReadable if resend => changes.push(self.change(name, Some(live))),
                Compared::NotReadable => unverified.push(name.clone()),
                Compared::NotReturned => not_returned.push(name.clone()),
            }
        }
        if !unverified.is_empty() {
            diff.notes.push(self.note(Reason::CannotVerify, unverified));
        }
        if !not_returned.is_empty() {
            diff.notes.push(self.note(Reason::NotReturned, not_returned));
        }
        if changes.is_empty() {
            return;
        }
        let changed: Vec<&str> = changes.iter().map(|change| change.field.as_str()).collect();
        let requests = self.kind.update(self.subject(), live, &changed);
        let forgotten = self.values.keys().filter(|name| !changed.contains(&name.as_str()) && self.kind.forgets(name, &changed));
        let forgotten: Vec<_> = forgotten.map(|name| self.change(name, Some(live))).collect();
        changes.extend(forgotten);
        let access =
            access_of(self.kind, live).map(|(user, before)| AccessChange { user, before, after: self.declared_access().unwrap_or(before) });
        diff.differences.push(self.difference(Action::Update, changes, requests, Some(live.clone()), access));
    }

    /// The entry is not live.
    fn absent(&self, diff: &mut SectionDiff) {
        if self.entry.state == State::Absent {
            return;
        }
        if let Some(user) = self.kind.user(&self.values)
            && self.context.users.get(&user.to_lowercase()).copied().flatten().is_none()
        {
            let message = format!("the service knows no user `{}`", text::escape(user));
            let help = Some("correct the username, or create the user first".into());
            diff.problems.push(self.problem("unknown-user", message, help, "user"));
            return;
        }
        let missing: Vec<_> = self.kind.required().iter().filter(|name| !self.values.contains_key(**name)).collect();
        if !missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("the {} does not exist, and cannot be created without {}", self.kind.noun(), names.join(", "));
            let help = Some("add what is missing, or leave the entry out".into());
            diff.problems.push(self.problem("missing-field", message, help, ""));
            return;
        }
        let requests = self.kind.create(self.subject());
        if requests.is_empty() {
            return;
        }
        let changes: Vec<_> = self.values.keys().filter(|name| !self.steers(name)).map(|name| self.change(name, None)).collect();
        let user = self.kind.user(&self.values).and_then(|user| self.context.users.get(&user.to_lowercase()).copied().flatten());
        let access = user.zip(self.declared_access()).map(|(user, after)| AccessChange { user, before: 0, after });
        diff.differences.push(self.difference(Action::Create, changes, requests, None, access));
    }

    fn declared_access(&self) -> Option<u8> {
        let plain = self.values.iter().filter_map(|(name, value)| Some((name.clone(), value.plain()?.clone())));
        self.kind.access(&plain.collect())
    }

    fn difference(
        &self,
        action: Action,
        changes: Vec<Change>,
        requests: Vec<Request<Write>>,
        live: Option<LiveEntry>,
        access: Option<AccessChange>,
    ) -> Difference {
        Difference { address: self.address.clone(), action, origin: self.entry.origin.clone(), changes, requests, live, access }
    }

    fn compare(&self, name: &str, value: &Value, live: &LiveEntry) -> Compared {
        let field = self.field(name);
        if self.steers(name) {
            return Compared::Local;
        }
        if !is_readable(field) {
            return Compared::NotReadable;
        }
        let declared = match value {
            Value::Plain(declared) => declared,
            Value::Secret(_) => return Compared::SecretMissing,
            Value::File(_) => return Compared::NotReadable,
        };
        match live.fields.get(name) {
            Some(found) if self.kind.same(name, declared, found) => Compared::Same,
            Some(_) => Compared::Differs,
            None if field.read == Readback::IfPresent => Compared::NotReadable,
            // An answer may leave out what is null. Only where the service shows fields of that tier does it say so by leaving it out.
            None if field.nullable && field.tier <= live.tier => {
                if self.kind.same(name, declared, &Json::Null) {
                    Compared::Same
                } else {
                    Compared::Differs
                }
            }
            None => Compared::NotReturned,
        }
    }

    fn change(&self, name: &str, live: Option<&LiveEntry>) -> Change {
        let field = self.field(name);
        let before = match live {
            None => Shown::Absent,
            Some(_) if !is_readable(field) => Shown::Unknown,
            // What is declared as a secret is one on the service too.
            Some(live) if matches!(self.values[name], Value::Secret(_)) && live.fields.contains_key(name) => Shown::Hidden,
            Some(live) => shown_live(field, live.fields.get(name)),
        };
        let origin = self.entry.fields.get(name).map(|sourced| sourced.origin.clone());
        Change { field: name.to_owned(), before, after: self.shown_declared(field, &self.values[name]), origin }
    }

    fn shown_declared(&self, field: &Field, value: &Value) -> Shown {
        match value {
            Value::Secret(reference) => Shown::Secret(reference.to_string()),
            Value::File(path) => Shown::File(path.clone()),
            // It is in Git, but whoever asked for it to be masked in job logs does not want it in this one either.
            Value::Plain(_) if field.secrecy == Secrecy::Sensitive && self.masked() => Shown::Hidden,
            Value::Plain(value) => Shown::Value(shown_plain(field, value)),
        }
    }

    fn masked(&self) -> bool {
        self.values.get("masked").and_then(Value::plain).and_then(Json::as_bool).unwrap_or(false)
    }
}

/// How one field compares.
enum Compared {
    Same,
    Differs,
    /// It steers undrift and is never sent.
    Local,
    /// The service never returns it.
    NotReadable,
    /// The service returns it in general, but not here.
    NotReturned,
    /// Its declared value is a secret that is not set here.
    SecretMissing,
}

fn shown_live(field: &Field, value: Option<&Json>) -> Shown {
    match (value, field.secrecy) {
        (None, _) => Shown::Unknown,
        (Some(_), Secrecy::Sensitive | Secrecy::Reference) => Shown::Hidden,
        (Some(value), Secrecy::Open | Secrecy::Address) => Shown::Value(shown_plain(field, value)),
    }
}

/// A field of an object that is about to be created.
pub fn creation_change(kind: &dyn Kind, name: &str, declared: &Sourced<Value>) -> Change {
    let after = match &declared.value {
        Value::Secret(reference) => Shown::Secret(reference.to_string()),
        Value::File(path) => Shown::File(path.clone()),
        Value::Plain(value) => Shown::Value(shown_plain(kind.table().field(name), value)),
    };
    Change { field: name.to_owned(), before: Shown::Absent, after, origin: Some(declared.origin.clone()) }
}

/// Plain data without the credentials that an address may hold.
fn shown_plain(field: &Field, value: &Json) -> Json {
    match (field.secrecy, value) {
        (Secrecy::Address, Json::String(url)) => text::mask_url(url).into(),
        _ => value.clone(),
    }
}
