//! Reads a section that is not part of the container's own object.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future;

use super::{Observer, find::id_of, is_fatal, split_fatal};
use crate::{
    api::{ApiError, Result},
    catalogue::{self, copies},
    cause::{Cause, Withheld},
    desired::{Container, DeclaredSection, Renames, Unlisted},
    field::Tier,
    kind::{
        Absence, CollectionTrait, Detail, Facts, FieldSelection, LiveEntry, Parent, ReadSource,
        Section, Target, calls, risk,
    },
    live::{Live, LiveEntries, Presence, ReadTime, entry_ids, without_copies},
    operation::{Op, Read, Request},
    page::Complete,
    text,
    value::{Json, Object, Value},
};

/// A parent: its name and its id.
type ParentId = (String, u64);

impl Observer {
    /// Reads a section whose entries have parents in another section. Reads the parents first,
    /// unless `live` contains them. Then reads the entries of each parent that a declared entry
    /// names, or of all parents if none is named, as for an export. Adds the ids of the parents to
    /// `live`.
    pub(super) async fn read_nested_section(
        &self,
        container: &Container,
        section: &DeclaredSection,
        parent: &Parent,
        live: &mut Live,
    ) -> Result<LiveEntries> {
        let Presence::Here(target, facts) = live.presence.clone() else {
            return Ok(LiveEntries::Fresh);
        };
        let Some(kind) = catalogue::section(container.scope, parent.section) else {
            return Ok(LiveEntries::Partial(Cause::new("the section of its parents is unknown")));
        };
        let parent_entries = self.entries_of(kind, container, (&target, &facts), live).await?;
        let ids = entry_ids(kind, container, &parent_entries);
        live.names.insert_entries(parent.section, ids);
        let all_parents = match parent_entries.entries() {
            Ok(all) => all,
            Err(cause) => return Ok(LiveEntries::Unreadable(cause.clone())),
        };
        let parent_fields =
            section.entries.iter().filter_map(|entry| entry.fields.get(parent.field));
        let parent_values: Vec<_> = parent_fields.map(|named| named.value).collect();
        let names: BTreeSet<_> = parent_values.iter().filter_map(Value::text).collect();
        let renames = Renames::with(kind, container, all_parents);
        let mut parents: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for entry in without_copies(kind, container, all_parents) {
            let Some(id) = kind.id_of(entry) else { continue };
            let before = calls::preparatory_calls(kind, entry, &target, self.caller.id);
            live.names.insert_preceding_calls(parent.section, id, before);
            parents.entry(renames.name_of(kind, entry.fields.raw())).or_default().push(id);
        }
        parents.retain(|name, _| names.contains(&**name) || names.is_empty());
        if let Some((name, _)) =
            parents.iter().find(|(name, ids)| ids.len() > 1 && names.contains(&***name))
        {
            let (noun, name) = (text::plural(kind.noun), text::escape(name));
            let why = Cause::new(format!("several {noun} are named `{name}`"));
            return Ok(LiveEntries::Partial(why.help("remove all but one, or rename them")));
        }
        // Manifests cannot refer to one of several parents with the same name.
        let parents = parents.into_iter().filter(|(_, ids)| ids.len() == 1);
        let parents: Vec<_> = parents.map(|(name, ids)| (name, ids[0])).collect();
        let (began, name) = (self.now(), section.section.section);
        let entries = self.read_section(section, (&target, &facts), &parents).await?;
        live.times.sections.insert(name, ReadTime { began, ended: self.now() });
        Ok(entries)
    }

    /// Reads a section of the container `target`; below its `parents` if it has some.
    pub(super) async fn read_section(
        &self,
        section: &DeclaredSection,
        (target, facts): (&Target, &Facts),
        parents: &[ParentId],
    ) -> Result<LiveEntries> {
        let names = section.names().collect();
        let scoped_kind = section.section.scoped_kind;
        let sees_all =
            self.caller.is_administrator || facts.caller_level >= Some(scoped_kind.seen_from());
        let reader = SectionReader {
            observer: self,
            kind: section.section,
            section,
            names,
            target,
            sees_all,
        };
        let result = reader.read_entries(facts, parents).await;
        let switched_off_cause = scoped_kind
            .closing_settings(facts)
            .map(|off| explain_switched_off(section.section, off));
        match (result, switched_off_cause) {
            (Err(error), _) if is_fatal(&error) => Err(error),
            (Err(error), Some(off)) if error.is_forbidden() => Ok(LiveEntries::Unreadable(off)),
            (Err(error), _) if error.page_error().is_some() => {
                Ok(LiveEntries::Partial(Cause::from(&error)))
            }
            (Err(error), _) => Ok(LiveEntries::Unreadable(explain_refusal(
                section.section,
                facts,
                sees_all,
                &error,
            ))),
            // Some lists are then empty, whatever exists.
            (Ok(collection), Some(off)) if collection.entries().is_ok_and(<[_]>::is_empty) => {
                Ok(LiveEntries::Unreadable(off))
            }
            (Ok(collection), _) => Ok(collection),
        }
    }
}

/// Reads one section of a container.
struct SectionReader<'a> {
    observer: &'a Observer,
    kind: Section,
    section: &'a DeclaredSection,
    /// The declared fields.
    names: BTreeSet<&'a str>,
    target: &'a Target,
    /// True if the caller would see everything that exists.
    sees_all: bool,
}

impl SectionReader<'_> {
    async fn read_entries(&self, facts: &Facts, parents: &[ParentId]) -> Result<LiveEntries> {
        let scoped_kind = self.kind.scoped_kind;
        Ok(match scoped_kind.place {
            ReadSource::ObjectField { .. } => {
                LiveEntries::Partial("it names something that the token cannot see".into())
            }
            ReadSource::Container | ReadSource::Object | ReadSource::ListField(_) => {
                let noun = self.target.scope.noun();
                LiveEntries::Partial(format!("it was not part of the {noun} object").into())
            }
            ReadSource::List(_) if !self.sees_all => {
                let role = role_name(scoped_kind.seen_from());
                let why =
                    format!("the token's role is below {role}, so the list may be incomplete");
                LiveEntries::Partial(why.into())
            }
            ReadSource::List(_) if scoped_kind.name_filter().is_some() && facts.is_empty => {
                LiveEntries::Fresh
            }
            ReadSource::List(op) => match scoped_kind.parent {
                Some(parent) => self.read_lists_of_parents(parent, op, parents).await?,
                None => self.read_list(op).await?,
            },
            ReadSource::Optional(op) => self.read_optional(op, facts).await?,
        })
    }

    fn request(&self, op: Op<Read>) -> Request<Read> {
        self.target.addressed(op.request())
    }

    /// Returns an unreadable section if a value in `rows` has the wrong type.
    fn check_types<'r>(&self, rows: impl IntoIterator<Item = &'r Object>) -> Option<LiveEntries> {
        let key = rows.into_iter().find_map(|raw| self.kind.mistyped_key(raw))?;
        let noun = self.kind.noun;
        let cause =
            Cause::new(format!("the service shows a {noun} whose `{key}` has the wrong type"));
        Some(LiveEntries::Unreadable(cause.help(PROXY_HELP)))
    }

    /// Reads the list of each parent in `parents`.
    async fn read_lists_of_parents(
        &self,
        parent: &Parent,
        op: Op<Read>,
        parents: &[ParentId],
    ) -> Result<LiveEntries> {
        let reader = self.kind.reader(FieldSelection::Only(&self.names));
        let lists = parents
            .iter()
            .map(|(_, id)| self.rows_below(self.kind, self.request(op).arg(parent.argument, id)));
        let mut entries = Vec::new();
        for (rows, (name, id)) in future::try_join_all(lists).await?.into_iter().zip(parents) {
            let Some(rows) = rows else {
                let (noun, name) = (text::plural(self.kind.noun), text::escape(name));
                let why = format!("the service does not show the {noun} of `{name}`");
                return Ok(LiveEntries::Partial(why.into()));
            };
            if let Some(mistyped) = self.check_types(&rows) {
                return Ok(mistyped);
            }
            let direct = rows.into_iter().filter(|raw| !self.kind.scoped_kind.is_inherited(raw));
            entries.extend(direct.map(|raw| reader.read(&parent.add_parent(raw, name, *id))));
        }
        Ok(LiveEntries::Within(entries))
    }

    /// Reads the complete list that `request` returns, directly or within an object; `None` if the
    /// object does not contain it.
    async fn rows_below(
        &self,
        kind: Section,
        request: Request<Read>,
    ) -> Result<Option<Vec<Object>>> {
        let (scoped_kind, client) = (kind.scoped_kind, &self.observer.client);
        let Some(field) = scoped_kind.within else {
            return Ok(Some(
                client
                    .list_rows(scoped_kind.list_request(request), scoped_kind.rows)
                    .await?
                    .into_vec(),
            ));
        };
        let answer = client.get_object(request, &["id"]).await?;
        let Some(rows) = answer.body[field].as_array() else { return Ok(None) };
        let rows = rows.iter().map(|row| {
            let mut keys = scoped_kind.rows.keys.iter().chain(scoped_kind.rows.other_keys);
            row.as_object().filter(|row| keys.all(|key| row.contains_key(*key))).cloned()
        });
        Ok(rows.collect())
    }

    /// Reads a list to its end.
    async fn read_list(&self, op: Op<Read>) -> Result<LiveEntries> {
        let (kind, section, home) = (self.kind, self.section, self.kind.scoped_kind);
        let reader = kind.reader(FieldSelection::Only(&self.names));
        let declared_names = section.entries.iter().map(|entry| &*entry.key);
        let request = home.filter_names(home.list_request(self.request(op)), declared_names);
        let rows = self.observer.client.list_rows(request, home.rows).await?;
        if let Some(mistyped) = self.check_types(rows.iter()) {
            return Ok(mistyped);
        }
        let own_id = self.target.id.filter(|_| kind.traits.contains(&CollectionTrait::ListsItself));
        let mut details = match kind.detail.zip(home.operations.get) {
            Some((detail, get)) => self.read_details(detail, get, &rows).await?,
            None => BTreeMap::new(),
        };
        let mut parts = self.copy_parts(&rows).await?;
        let mut positions = 0..;
        let kept_entries = rows.filter_map(|raw| {
            let at = positions.next().unwrap_or_default();
            let mut raw = details.remove(&at).unwrap_or(raw);
            raw.extend(parts.remove(&at).unwrap_or_default());
            // Show inherited entries that the plan must report as a problem.
            let is_shown = kind.detail.is_some() && home.is_inherited(&raw) && {
                let name = shown_name(kind, &raw);
                let exclusive_group = kind.exclusive_group(&name);
                let mut others = section.entries.iter().filter(|other| other.key != name);
                section.is_removed(&name)
                    || exclusive_group.is_some_and(|it| {
                        others.any(|other| kind.exclusive_group(&other.key) == Some(it))
                    })
            };
            let is_itself = own_id.is_some() && id_of(&raw) == own_id;
            ((is_shown || !home.is_inherited(&raw)) && !is_itself).then(|| reader.read(&raw))
        });
        self.with_side_list(kept_entries).await.map(LiveEntries::Complete)
    }

    /// Reads the entries below those of `listed` that share a declared name, by their positions in
    /// the list: entries with different parts are not copies of each other. Parts that cannot be
    /// read equal no other parts.
    async fn copy_parts(&self, listed: &[Object]) -> Result<BTreeMap<usize, Object>> {
        let mut parts: BTreeMap<usize, Object> = BTreeMap::new();
        let below: Vec<_> = copies::child_sections(self.kind).collect();
        if below.is_empty() || !self.kind.allows_duplicates() {
            return Ok(parts);
        }
        let declared = self.section.entries.iter().map(|entry| &*entry.key);
        let declared: BTreeSet<&str> = declared.collect();
        let mut positions: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, raw) in listed.iter().enumerate() {
            positions.entry(shown_name(self.kind, raw)).or_default().push(at);
        }
        positions.retain(|name, positions| positions.len() > 1 && declared.contains(&**name));
        for at in positions.into_values().flatten() {
            let Some(id) = id_of(&listed[at]) else { continue };
            for (part, parent) in &below {
                let ReadSource::List(op) = part.scoped_kind.place else { continue };
                let request = self.request(op).arg(parent.argument, id);
                let rows = match split_fatal(self.rows_below(*part, request).await)? {
                    Ok(Some(rows)) => rows.into_iter().map(Json::from).collect(),
                    _ => id.into(),
                };
                parts.entry(at).or_default().insert(part.section.to_owned(), rows);
            }
        }
        Ok(parts)
    }

    /// Reads the details of listed entries that are declared, or that may be removed although they
    /// have a protective field; of all entries if [`Detail::fields`] are declared or for an export.
    /// Returns them by their positions in the list.
    async fn read_details(
        &self,
        detail: Detail,
        get: Op<Read>,
        listed: &[Object],
    ) -> Result<BTreeMap<usize, Object>> {
        let (section, home) = (self.section, self.kind.scoped_kind);
        let keys: BTreeSet<_> = section.present().map(|entry| &*entry.key).collect();
        let reads_all = self.names.iter().any(|name| detail.fields.contains(name));
        if !reads_all && !detail.fields.is_empty() {
            return Ok(BTreeMap::new());
        }
        let reads = listed.iter().enumerate().filter_map(|(at, raw)| {
            let is_wanted = reads_all || keys.contains("") || {
                let name = shown_name(self.kind, raw);
                let goes = section.is_removed(&name) || section.unlisted.value == Unlisted::Delete;
                keys.contains(&*name)
                    || (goes
                        && risk::protective_fields(self.kind)
                            .any(|name| self.kind.has_field(raw, name)))
            };
            let request = home.entry_request(self.request(get), raw).filter(|_| is_wanted)?;
            Some(async move {
                let answer = self.observer.client.get_object(request, home.rows.keys).await?;
                Ok::<_, ApiError>((at, answer.object().cloned().unwrap_or_default()))
            })
        });
        Ok(future::try_join_all(reads).await?.into_iter().collect())
    }

    /// Reads a single object.
    async fn read_optional(&self, op: Op<Read>, facts: &Facts) -> Result<LiveEntries> {
        let (kind, client) = (self.kind, &self.observer.client);
        let (request, keys) = (self.request(op), kind.scoped_kind.rows.keys);
        let read = match kind.scoped_kind.absent_as {
            Absence::Null => client.get_optional(request, keys).await,
            Absence::Never | Absence::NotFound => client.get_object(request, keys).await.map(Some),
        };
        let shows_absence = kind.scoped_kind.absent_as == Absence::NotFound
            && self.sees_all
            && facts.tier >= kind.tier();
        let answer = match read {
            Err(error) if shows_absence && error.is_entry_missing() => None,
            read => read?,
        };
        let Some(answer) = answer else { return Ok(LiveEntries::One(None)) };
        let Some(raw) = answer.object().filter(|raw| kind.shows_any_field(raw)) else {
            let why = format!("the service shows a {} without any of its fields", kind.noun);
            return Ok(LiveEntries::Unreadable(Cause::new(why).help(PROXY_HELP)));
        };
        Ok(self.check_types([raw]).unwrap_or_else(|| {
            LiveEntries::One(Some(kind.read(raw, FieldSelection::Only(&self.names)).into()))
        }))
    }

    /// Adds a field from another list, if it is declared and that list can be read.
    async fn with_side_list(&self, entries: Complete<LiveEntry>) -> Result<Complete<LiveEntry>> {
        let side = catalogue::side_list(self.kind);
        let Some(side) = side.filter(|side| self.names.contains(side.field)) else {
            return Ok(entries);
        };
        let list = self.observer.client.list_rows(self.request(side.list), side.rows);
        Ok(match split_fatal(list.await)? {
            Ok(others) => entries.map(|mut entry| {
                let value = (side.value)(&entry, &others);
                entry.fields.raw_mut().insert(side.field.to_owned(), value);
                entry
            }),
            // Without that list the field is unknown.
            Err(_) => entries,
        })
    }
}

/// The name of an entry in a response.
fn shown_name(kind: Section, raw: &Object) -> String {
    kind.name(kind.read(raw, FieldSelection::Only(&[].into())).fields.raw())
}

/// Help for an answer that the service itself does not give.
const PROXY_HELP: &str = "check for a proxy that changes answers";

/// Why a section is unreadable while the settings in `disabled_settings` are disabled.
fn explain_switched_off(kind: Section, disabled_settings: &[&str]) -> Cause {
    let are = if disabled_settings.len() == 1 { "is" } else { "are" };
    let why =
        format!("switched off by settings: `{}` {are} disabled", disabled_settings.join("` and `"));
    let help = format!("enable it, or take `{}` out of the manifest", kind.section);
    Cause::new(why).help(help).withheld(Withheld::SwitchedOff)
}

/// Why a section is unreadable after `error`. `sees_all`: whether the caller's role suffices.
fn explain_refusal(kind: Section, facts: &Facts, sees_all: bool, error: &ApiError) -> Cause {
    let cause = Cause::from(error);
    if !error.is_forbidden() && (!error.is_not_found() || error.is_container_missing()) {
        return cause;
    }
    let (section, tier) = (kind.section, kind.tier());
    if !sees_all || facts.tier >= tier {
        let mut cause = cause.withheld(Withheld::Refused);
        if let Some(since) = kind.since().filter(|_| sees_all && error.is_not_found()) {
            let needs = format!("`{section}` needs release {since} or later");
            cause.message = format!("{needs}, which the service may lack: {cause}").into();
            return cause.help(format!("take `{section}` out of the manifest"));
        }
        return cause;
    }
    let help =
        format!("renew the service's licence for {tier}, or take `{section}` out of the manifest");
    let mut cause = cause.help(help).withheld(Withheld::Tier);
    let needs = format!("`{section}` needs the {tier} tier");
    cause.message = match facts.tier {
        Tier::Free => format!("{needs}; the service seems not to have it"),
        // Nothing shows whether it has more than one tier above.
        _ => format!("{needs}, which the service may lack: {cause}"),
    }
    .into();
    cause
}

/// The name of an access level in a sentence.
fn role_name(level: u8) -> &'static str {
    if level > crate::level::MAINTAINER { "Owner" } else { "Maintainer" }
}
