//! One declared entry against the live ones: what it stands for, how each of its fields compares,
//! and what follows from that.

use std::collections::BTreeMap;

use super::{
    AccessChange, Action, Change, Context, Difference, Incomplete, Note, Problem, Reason,
    SectionDiff, Shown, access_of, removal, shown_live, shown_plain,
};
use crate::{
    address::Address,
    cause::Cause,
    field::{Accepted, Field, Readback, Secrecy},
    kind::{Found, Kind, LiveEntry, Subject, is_readable},
    manifest::{Entry, State},
    operation::{Request, Write},
    secret::Reference,
    text,
    value::{Fields, Json, Value},
};

/// What a declared entry stands for among the live ones.
pub(super) enum Match<'l> {
    None,
    One(&'l LiveEntry),
    Ambiguous(String),
    /// Its identity is a secret that is not set here.
    Unknown,
}

/// One declared entry under comparison.
pub(super) struct Comparing<'a> {
    kind: &'static dyn Kind,
    entry: &'a Entry,
    context: Context<'a>,
    pub(super) address: Address,
    /// The fields as declared.
    values: Fields,
    /// The same with every secret that is known here in place, for comparing only.
    comparable: Fields,
}

impl<'a> Comparing<'a> {
    pub(super) fn new(kind: &'static dyn Kind, entry: &'a Entry, context: Context<'a>) -> Self {
        let section = context.project.section(kind.section());
        let address =
            if entry.key.is_empty() { section } else { section.entry(entry.key.as_str()) };
        let values = entry.values();
        let comparable = values.iter().map(|(name, value)| {
            let known = match value {
                Value::Secret(reference) => {
                    context.secrets.get(reference).map(|secret| Value::from(secret.expose()))
                }
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

    pub(super) fn find<'l>(&self, live: &'l [LiveEntry]) -> Match<'l> {
        let plain = self
            .comparable
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.plain()?.clone())));
        let key = self.kind.key(&plain.collect());
        let unknown = |name: &&str| matches!(self.comparable.get(*name), Some(Value::Secret(_)));
        match self.kind.find(&self.comparable, &key, live) {
            Found::One(found) => Match::One(found),
            _ if self.kind.identity().iter().any(unknown) => Match::Unknown,
            Found::Ambiguous(why) => Match::Ambiguous(why),
            Found::None => Match::None,
        }
    }

    /// Whether a secret tells it from others, known here or not.
    pub(super) fn is_told_by_secret(&self) -> bool {
        self.kind
            .identity()
            .iter()
            .any(|name| matches!(self.values.get(*name), Some(Value::Secret(_))))
    }

    /// Whether `other` is the same thing as `found` once more, as a create whose answer was lost
    /// can leave it behind.
    pub(super) fn is_copy(&self, found: &LiveEntry, other: &LiveEntry) -> bool {
        found.handle != other.handle && found.fields == other.fields && !found.fields.is_empty()
    }

    pub(super) fn ambiguous(&self, reason: impl Into<Cause>, diff: &mut SectionDiff) {
        diff.incomplete.push(Incomplete { address: self.address.clone(), reason: reason.into() });
    }

    fn problem(
        &self,
        code: &'static str,
        message: String,
        help: Option<String>,
        field: &str,
    ) -> Problem {
        let origin = self.entry.fields.get(field).map_or(&self.entry.origin, |field| &field.origin);
        Problem { address: self.address.clone(), code, message, help, origin: origin.clone() }
    }

    /// Whether a field steers undrift, or is what tells entries apart, and is neither compared nor
    /// shown as a change.
    fn steers(&self, name: &str) -> bool {
        let field = self.field(name);
        field.accepted == Accepted::Never
            && (!is_readable(field) || self.kind.identity().contains(&name))
    }

    fn note(&self, reason: Reason, fields: Vec<String>) -> Note {
        Note {
            address: self.address.clone(),
            reason,
            fields,
            origin: Some(self.entry.origin.clone()),
        }
    }

    /// Says which secrets are not known here, so that a plan does not look more certain than it is.
    pub(super) fn secrets_missing(&self, diff: &mut SectionDiff) {
        if self.entry.state == State::Absent {
            return;
        }
        let missing = self.comparable.iter().filter_map(|(name, value)| {
            let reference = match value {
                Value::Secret(reference) => Some(reference.clone()),
                Value::File(path) => Some(Reference::File(path.clone()))
                    .filter(|file| self.context.secrets.why_missing(file).is_some()),
                Value::Plain(_) => None,
            };
            Some((name.clone(), reference?.to_string()))
        });
        let (fields, references): (Vec<_>, Vec<_>) = missing.unzip();
        if !fields.is_empty() {
            diff.notes.push(self.note(Reason::SecretMissing { secrets: references }, fields));
        }
    }

    /// Says which secrets the service would refuse. What is written in a manifest was checked when
    /// it was read.
    pub(super) fn secrets_unfit(&self, diff: &mut SectionDiff) {
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
    pub(super) fn present(&self, live: &LiveEntry, diff: &mut SectionDiff) {
        if let Some(why) = live.protected {
            diff.notes.push(self.note(Reason::Protected { why: why.into() }, Vec::new()));
            return;
        }
        if self.entry.state == State::Absent {
            diff.differences.push(removal(
                self.kind,
                self.address.clone(),
                &self.entry.origin,
                live,
                self.context.target,
            ));
            return;
        }
        let mut changes = Vec::new();
        let (mut unverified, mut not_returned) = (Vec::new(), Vec::new());
        let mut waiting: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let resend = self.context.resend.iter().any(|selector| selector.matches(&self.address));
        for (name, value) in &self.comparable {
            if let Some(why) = self.kind.waits(name, &self.values, Some(live)) {
                waiting.entry(why).or_default().push(name.clone());
                continue;
            }
            match self.compare(name, value, live) {
                Compared::Same | Compared::Local | Compared::SecretMissing => {}
                Compared::Differs => changes.push(self.change(name, Some(live))),
                Compared::NotReadable if resend => changes.push(self.change(name, Some(live))),
                Compared::NotReadable => unverified.push(name.clone()),
                Compared::NotReturned => not_returned.push(name.clone()),
            }
        }
        diff.notes.extend(
            waiting
                .into_iter()
                .map(|(why, fields)| self.note(Reason::Waits { why: why.into() }, fields)),
        );
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
        let forgotten = self
            .values
            .keys()
            .filter(|name| !changed.contains(&name.as_str()) && self.kind.resets(name, &changed));
        let forgotten: Vec<_> = forgotten.map(|name| self.change(name, Some(live))).collect();
        changes.extend(forgotten);
        let access = access_of(self.kind, live).map(|(user, before)| AccessChange {
            user,
            before,
            after: self.declared_access().unwrap_or(before),
        });
        diff.differences.push(self.difference(
            Action::Update,
            changes,
            requests,
            Some(live.clone()),
            access,
        ));
    }

    /// The entry is not live.
    pub(super) fn absent(&self, diff: &mut SectionDiff) {
        if self.entry.state == State::Absent {
            return;
        }
        if let Some(user) = self.kind.user(&self.values)
            && self.context.users.get(&user.to_lowercase()).copied().flatten().is_none()
        {
            let message = format!("the service has no user `{}`", text::escape(user));
            let help = Some("correct the username, or create the user first".into());
            diff.problems.push(self.problem("unknown-user", message, help, "user"));
            return;
        }
        let missing: Vec<_> =
            self.kind.required().iter().filter(|name| !self.values.contains_key(**name)).collect();
        if !missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|name| format!("`{name}`")).collect();
            let message = format!(
                "the {} does not exist, and cannot be created without {}",
                self.kind.noun(),
                names.join(", ")
            );
            let help = Some("add what is missing, or remove the entry".into());
            diff.problems.push(self.problem("missing-field", message, help, ""));
            return;
        }
        let requests = self.kind.create(self.subject());
        if requests.is_empty() {
            return;
        }
        let changes: Vec<_> = self
            .values
            .keys()
            .filter(|name| !self.steers(name))
            .map(|name| self.change(name, None))
            .collect();
        let user = self
            .kind
            .user(&self.values)
            .and_then(|user| self.context.users.get(&user.to_lowercase()).copied().flatten());
        let access = user.zip(self.declared_access()).map(|(user, after)| AccessChange {
            user,
            before: 0,
            after,
        });
        diff.differences.push(self.difference(Action::Create, changes, requests, None, access));
    }

    fn declared_access(&self) -> Option<u8> {
        let plain = self
            .values
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.plain()?.clone())));
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
        Difference {
            address: self.address.clone(),
            action,
            origin: self.entry.origin.clone(),
            changes,
            requests,
            live,
            access,
        }
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
            // The service shows that there is a file, and not what is in it.
            Value::File(_) if live.fields.get(name).is_some_and(|found| !found.is_null()) => {
                return Compared::NotReadable;
            }
            Value::File(_) => &Json::Bool(true),
        };
        match live.fields.get(name) {
            Some(found) if self.kind.same(name, declared, found) => Compared::Same,
            Some(_) => Compared::Differs,
            None if field.read == Readback::IfPresent => Compared::NotReadable,
            // An answer may leave out what is null. Only where the service shows fields of that
            // tier does it say so by leaving it out.
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
            Some(live)
                if matches!(self.values[name], Value::Secret(_))
                    && live.fields.contains_key(name) =>
            {
                Shown::Hidden
            }
            Some(live) => shown_live(field, live.fields.get(name)),
        };
        let origin = self.entry.fields.get(name).map(|sourced| sourced.origin.clone());
        Change {
            field: name.to_owned(),
            before,
            after: self.shown_declared(field, &self.values[name]),
            origin,
        }
    }

    fn shown_declared(&self, field: &Field, value: &Value) -> Shown {
        match value {
            Value::Secret(reference) => Shown::Secret(reference.to_string()),
            Value::File(path) => Shown::File(path.clone()),
            // It is in Git, but whoever asked for it to be masked in job logs does not want it in
            // this one either.
            Value::Plain(_) if field.secrecy == Secrecy::Sensitive && self.masked() => {
                Shown::Hidden
            }
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
