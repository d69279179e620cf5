//! Reads a section that is not part of the container's own object.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future;

use super::{Observer, ends_everything, or_cause};
use crate::{
    api::ApiError,
    cause::Cause,
    desired::{Container, DeclaredSection, State, Unlisted},
    field::Scope,
    kind::{Detail, Facts, LiveEntry, Parent, Place, Section, Target, Wanted, stakes},
    kinds,
    live::{Collection, Live, Presence, ReadTime, entry_ids},
    operation::{Op, Read, Request},
    page::Complete,
    text,
    value::{Json, Object, Value},
};

/// A parent: its name and its id.
type ParentId = (String, u64);

impl Observer {
    /// Reads a section whose entries have parents in another section. Reads that section first, unless
    /// `live` contains it; then the entries of each parent that a declared entry names. For an export,
    /// which names none, reads the entries of all parents. Adds the ids of the parents to `live`.
    pub(super) async fn nested(
        &self,
        container: &Container,
        section: &DeclaredSection,
        parent: &Parent,
        live: &mut Live,
    ) -> Result<Collection, ApiError> {
        let Presence::Here(target, facts) = live.presence.clone() else {
            return Ok(Collection::Fresh);
        };
        let Some(of) = kinds::section(container.scope, parent.section) else {
            return Ok(Collection::Partial(Cause::new("the section of its parents is unknown")));
        };
        let all = self.entries_of(of, container, (&target, &facts), live).await?;
        let ids = entry_ids(of, container, &all);
        live.names.insert_entries(parent.section, ids);
        let all = match all.entries() {
            Ok(all) => all,
            Err(cause) => return Ok(Collection::Unreadable(cause.clone())),
        };
        let named = section.entries.iter().filter_map(|entry| entry.fields.get(parent.field));
        let named: Vec<_> = named.map(|named| named.value).collect();
        let names: BTreeSet<_> = named.iter().filter_map(Value::text).collect();
        let is_wanted =
            |name: &str| names.contains(name) || (names.is_empty() && !named.is_empty());
        let mut above: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for entry in all {
            let Some(id) = of.id_of(entry) else { continue };
            let first = of.rules.first(entry, Some(self.caller.id));
            live.names.insert_first(parent.section, id, first);
            above.entry(of.name(&entry.fields)).or_default().push(id);
        }
        above.retain(|name, _| is_wanted(name));
        if let Some((name, _)) =
            above.iter().find(|(name, ids)| ids.len() > 1 && names.contains(&***name))
        {
            let (noun, name) = (text::plural(of.noun), text::escape(name));
            let why = Cause::new(format!("several {noun} are named `{name}`"));
            return Ok(Collection::Partial(why.help("remove all but one, or rename them")));
        }
        // Manifests cannot refer to one of several parents with the same name.
        let above = above.into_iter().filter(|(_, ids)| ids.len() == 1);
        let above: Vec<_> = above.map(|(name, ids)| (name, ids[0])).collect();
        let (began, name) = (self.now(), section.of.section);
        let found = self.section(section, &target, &facts, &above).await?;
        live.times.sections.insert(name, ReadTime { began, ended: self.now() });
        Ok(found)
    }

    pub(super) async fn section(
        &self,
        section: &DeclaredSection,
        target: &Target,
        facts: &Facts,
        above: &[ParentId],
    ) -> Result<Collection, ApiError> {
        let home = section.of.home;
        let sees_all = self.caller.administrator || facts.level >= Some(home.seen_from);
        let result = match home.place {
            Place::Part { .. } => {
                let why = "it names something that the token cannot see";
                Ok(Collection::Partial(Cause::new(why)))
            }
            Place::Container(_) | Place::Object | Place::In(_) => {
                let noun = target.scope.noun();
                Ok(Collection::Partial(format!("it was not part of the {noun} object").into()))
            }
            Place::List(_) if !sees_all => {
                let role = role(home.seen_from);
                Ok(Collection::Partial(
                    format!("the token's role is below {role}, so the list may be incomplete")
                        .into(),
                ))
            }
            Place::List(_) if home.is_closed(facts) => {
                let switches = home.closed_by.iter().map(|name| format!("`{name}`"));
                let switches = switches.collect::<Vec<_>>().join(" and ");
                let why = format!("the service shows none while {switches} are disabled");
                Ok(Collection::Unreadable(why.into()))
            }
            Place::List(op) => match home.parent {
                Some(parent) => self.lists(section, target, (parent, op), above).await,
                None => self.list(section, target, op).await,
            },
            Place::Optional(op) => self.optional(section, target, op, facts, sees_all).await,
        };
        match result {
            Err(error) if ends_everything(&error) => Err(error),
            Err(error) if error.page_error().is_some() => {
                Ok(Collection::Partial(Cause::from(&error)))
            }
            Err(error) => Ok(Collection::Unreadable(Cause::from(&error))),
            Ok(collection) => Ok(collection),
        }
    }

    /// Reads the list of each parent in `above`.
    async fn lists(
        &self,
        section: &DeclaredSection,
        target: &Target,
        (parent, op): (&Parent, Op<Read>),
        above: &[ParentId],
    ) -> Result<Collection, ApiError> {
        let names: BTreeSet<&str> = section.names().collect();
        let reader = section.of.reader(Wanted::Only(&names));
        let lists = above.iter().map(|(_, id)| {
            let request = target.addressed(op.request()).arg(parent.argument, id);
            self.rows_below(section.of, parent, request)
        });
        let mut entries = Vec::new();
        for (rows, (name, id)) in future::try_join_all(lists).await?.into_iter().zip(above) {
            let Some(rows) = rows else {
                let noun = text::plural(section.of.noun);
                let why =
                    format!("the service does not show the {noun} of `{}`", text::escape(name));
                return Ok(Collection::Partial(why.into()));
            };
            if let Some(key) = rows.iter().find_map(|raw| section.of.mistyped(raw)) {
                return Ok(Collection::Unreadable(mistyped(section.of, key)));
            }
            let own = rows.into_iter().filter(|raw| !section.of.home.is_inherited(raw));
            let own = own.map(|raw| parent.complete(raw, name, *id));
            entries.extend(own.map(|raw| reader.read(&raw)));
        }
        Ok(Collection::Within(entries))
    }

    /// The complete list that `request` returns, or that is in the object that it returns; `None` if
    /// the object does not contain it.
    async fn rows_below(
        &self,
        of: Section,
        parent: &Parent,
        request: Request<Read>,
    ) -> Result<Option<Vec<Object>>, ApiError> {
        let home = of.home;
        let Some(field) = parent.within else {
            let request = home.listing(request);
            return Ok(Some(self.client.list_known(request, home.rows).await?.into_vec()));
        };
        let answer = self.client.get_known(request, &["id"]).await?;
        let is_whole = |row: &&Object| {
            home.rows.keys.iter().chain(home.rows.also).all(|key| row.contains_key(*key))
        };
        let row = |row: &Json| row.as_object().filter(is_whole).cloned();
        Ok(answer.body[field].as_array().and_then(|rows| rows.iter().map(row).collect()))
    }

    /// Reads a list to its end.
    async fn list(
        &self,
        section: &DeclaredSection,
        target: &Target,
        op: Op<Read>,
    ) -> Result<Collection, ApiError> {
        let home = section.of.home;
        let names: BTreeSet<&str> = section.names().collect();
        let reader = section.of.reader(Wanted::Only(&names));
        let request = home.listing(target.addressed(op.request()));
        let all = self.client.list_known(request, home.rows).await?;
        if let Some(key) = all.iter().find_map(|raw| section.of.mistyped(raw)) {
            return Ok(Collection::Unreadable(mistyped(section.of, key)));
        }
        let is_itself =
            |raw: &Object| home.lists_itself && raw.get("id") == target.id.map(Json::from).as_ref();
        let mut details = match home.detail {
            Some(detail) => self.details(section, target, detail, &all).await?,
            None => BTreeMap::new(),
        };
        let all = all.filter_map(|raw| {
            let raw = details.remove(&shown_name(section.of, &raw)).unwrap_or(raw);
            // To remove an inherited entry here is a problem of the plan.
            let is_shown = home.detail.is_some()
                && home.is_inherited(&raw)
                && section.is_removed(&shown_name(section.of, &raw));
            ((is_shown || !home.is_inherited(&raw)) && !is_itself(&raw)).then(|| reader.read(&raw))
        });
        self.with_beside(section, target, all).await.map(Collection::Complete)
    }

    /// Reads each of the listed entries that is declared, by its name, or may be removed with a
    /// protection. An export, which declares none, reads all.
    async fn details(
        &self,
        section: &DeclaredSection,
        target: &Target,
        detail: Detail,
        listed: &[Object],
    ) -> Result<BTreeMap<String, Object>, ApiError> {
        let home = section.of.home;
        let present = section.entries.iter().filter(|entry| entry.state == State::Present);
        let keys: BTreeSet<_> = present.map(|entry| &*entry.key).collect();
        let reads = listed.iter().filter_map(|raw| {
            let name = shown_name(section.of, raw);
            let goes = section.is_removed(&name) || section.unlisted.value == Unlisted::Delete;
            let protects = |name| section.of.rules.has(raw, name);
            let is_wanted = keys.contains("")
                || keys.contains(&*name)
                || (goes && stakes::protecting(section.of).any(protects));
            let request = target.addressed(detail.get.request());
            let request = home.one(request, raw).filter(|_| is_wanted)?;
            Some(async move {
                let answer = self.client.get_known(request, home.rows.keys).await?;
                Ok::<_, ApiError>((name, answer.object().cloned().unwrap_or_default()))
            })
        });
        Ok(future::try_join_all(reads).await?.into_iter().collect())
    }

    /// Reads an object that may be absent. `sees_all`: whether the caller's role makes absence
    /// certain.
    async fn optional(
        &self,
        section: &DeclaredSection,
        target: &Target,
        op: Op<Read>,
        facts: &Facts,
        sees_all: bool,
    ) -> Result<Collection, ApiError> {
        let names: BTreeSet<&str> = section.names().collect();
        let read = |raw: &Object| section.of.read(raw, Wanted::Only(&names));
        let hides_absence = section.of.home.hides_absence;
        let is_licensed = facts.tier >= section.of.tier();
        let request = target.addressed(op.request());
        match self.client.get_optional_known(request, section.of.home.rows.keys).await {
            Ok(answer) => {
                let raw = answer.as_ref().and_then(|answer| answer.object());
                if let Some(key) = raw.and_then(|raw| section.of.mistyped(raw)) {
                    return Ok(Collection::Unreadable(mistyped(section.of, key)));
                }
                Ok(Collection::One(answer.and_then(|answer| Some(read(answer.object()?).into()))))
            }
            Err(error)
                if section.of.is_removable()
                    && error.is_not_found()
                    && (!error.is_unknown_route()
                        || (hides_absence && sees_all && is_licensed && error.is_hidden()))
                    && !error.is_container_missing() =>
            {
                Ok(Collection::One(None))
            }
            Err(error) if hides_absence && sees_all && error.is_hidden() => {
                Ok(Collection::Unreadable(unlicensed(section.of, target.scope, &error)))
            }
            Err(error) => Err(error),
        }
    }

    /// Adds a field from another list, if it is declared and that list can be read.
    async fn with_beside(
        &self,
        section: &DeclaredSection,
        target: &Target,
        entries: Complete<LiveEntry>,
    ) -> Result<Complete<LiveEntry>, ApiError> {
        let beside = section.of.home.side_list;
        let Some(beside) = beside.filter(|beside| section.names().any(|n| n == beside.field))
        else {
            return Ok(entries);
        };
        let request = target.addressed(beside.list.request());
        Ok(match or_cause(self.client.list_known(request, beside.rows).await)? {
            Ok(others) => entries.map(|mut entry| {
                let value = (beside.value)(&entry, &others);
                entry.fields.insert(beside.field.to_owned(), value);
                entry
            }),
            // Without that list the field is unknown.
            Err(_) => entries,
        })
    }
}

/// The name of an entry in a response.
fn shown_name(of: Section, raw: &Object) -> String {
    of.name(&of.read(raw, Wanted::Only(&[].into())).fields)
}

/// Why a section is unreadable if the value of `key` has the wrong type.
fn mistyped(of: Section, key: &str) -> Cause {
    let message = format!("the service shows a {} whose `{key}` has the wrong type", of.noun);
    Cause::new(message).help("check for a proxy that changes answers")
}

/// Why a 404 with two possible meanings proves nothing.
fn unlicensed(of: Section, scope: Scope, error: &ApiError) -> Cause {
    let (noun, tier) = (of.noun, of.tier());
    let message = format!("the service answers 404 for a missing {noun} and for a missing licence");
    let message = format!("{message}, and the {} has no sign of a licence", scope.noun());
    let help = format!(
        "renew the service's licence for {tier}, or remove `{}` from the manifest",
        of.section
    );
    let mut cause = Cause::from(error).help(help);
    cause.message = message.into();
    cause
}

/// The name of an access level in a sentence.
fn role(level: u8) -> &'static str {
    if level > crate::level::MAINTAINER { "Owner" } else { "Maintainer" }
}
