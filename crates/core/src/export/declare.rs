//! Turns live state into manifests: names for ids, without preset values and without secrets.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Settings,
    document::{Document, Entry, Part},
    entry::Writing,
};
use crate::{
    address::Address,
    catalogue,
    cause::Cause,
    desired::subject,
    field::{Named, Scope, Secrecy, Tier},
    kind::{Capability, Effect, Facts, LiveEntry, Names, Place, Section, Shape, forms},
    live::{Collection, Live, Presence},
    manifest::may_be_created,
    secret::judge,
    text::escape,
    value::{Json, Object},
};

/// A section answered like this is not visible to this caller, not in the tier of the service, or
/// switched off. A 401 because of the token ends the run instead.
const REFUSED: [u16; 3] = [401, 403, 404];

/// The live state at the path of a group or project.
pub(super) enum Found {
    /// The document to write.
    Document(Box<Document>),
    /// It is marked for deletion, and will disappear.
    Deleting,
    /// It could not be read.
    Unread(Cause),
}

/// A section that could not be read.
#[derive(Clone, Debug)]
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
pub(super) struct Declaring<'a> {
    pub(super) settings: &'a Settings,
    pub(super) path: &'a str,
    facts: &'a Facts,
    pub(super) names: &'a Names,
    pub(super) document: Document,
}

/// The ids in `live` whose names are needed.
pub(super) fn ids(scope: Scope, live: &Live) -> BTreeSet<(Named, u64)> {
    let entries = catalogue::sections(scope).filter_map(|of| {
        let entries = live.entries(of.section)?;
        Some(entries.iter().flat_map(move |entry| forms::referenced_ids(of, entry.fields.raw())))
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
    let document = Document {
        is_archived: facts.archived,
        is_personal: facts.personal_owner.is_some(),
        ..Document::new(scope, path)
    };
    let mut declaring = Declaring { settings, path, facts, names: &all, document };
    for of in catalogue::sections(scope) {
        if settings.takes(path, of) {
            declaring.section(of, live.sections.get(of.section));
        } else {
            declaring.document.unread.push(of.section);
        }
    }
    declaring.document.settle_approvals();
    Found::Document(Box::new(declaring.document))
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
            let before = self.document.left_out.len();
            let entry = Writing::entry(self, of, live, &mut part.about);
            if let Some(name) = entry.missing_identity(of) {
                self.document.left_out.truncate(before);
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
        self.document.refused.push(Unread {
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

    /// Leaves the entry `key` out of `part`, with a comment.
    fn leave_out(&mut self, part: &mut Part, key: &str, why: String) {
        part.about.push(format!("Not exported: {} ({why})", escape(key)));
        self.document.left_out.push((format!("{}/{key}", part.of.section), Cause::new(why)));
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
        let is_out = |entry: &mut Entry| twins.next() == Some(true) && entry.state.is_none();
        let out: Vec<_> = part.entries.extract_if(.., is_out).collect();
        for entry in out {
            let why = format!("a manifest cannot tell it from another {}", of.noun);
            self.leave_out(part, &entry.key, why);
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

/// Whether a section prevents all other changes of the container.
fn closes(of: Section, entries: &[LiveEntry]) -> bool {
    let effects = |live: &LiveEntry| of.rules.effects(None, live.fields.raw(), live.fields.raw());
    matches!(of.home.place, Place::Object)
        && entries.iter().flat_map(effects).any(|one| one == Effect::lacks(Capability::Writable))
}
