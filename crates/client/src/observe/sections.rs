//! Reads sections that are not part of the container's own object.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future;

use super::{Observer, find::object_id, is_fatal, split_fatal};
use crate::{
    api::{ApiError, Result},
    catalogue::{self, copies},
    cause::{Cause, Withheld},
    desired::{Container, DeclaredSection, Renames, Unlisted},
    field::Tier,
    kind::{
        Absence, CollectionTrait, ContainerFacts, Detail, FieldSelection, LiveEntry, Parent,
        ReadSource, Section, Target, calls, risk,
    },
    live::{LiveContainer, LiveEntries, Presence, ReadTime, drop_copies, entry_ids},
    operation::{Op, Read, Request},
    page::CompleteList,
    text,
    value::{Json, Object, Value},
};

/// The name and the id of a parent entry.
type NamedParent = (String, u64);

impl Observer {
    /// Reads a section whose entries have parents in another section. Reads the parents first,
    /// unless `live` contains them. Then reads the entries of each parent that a declared entry
    /// names. If no declared entry names a parent, as in an export, reads the entries of all
    /// parents. Adds the ids of the parents to `live`.
    pub(super) async fn read_nested_section(
        &self,
        container: &Container,
        section: &DeclaredSection,
        parent: &Parent,
        live: &mut LiveContainer,
    ) -> Result<LiveEntries> {
        let Presence::Existing(target, facts) = live.presence.clone() else {
            return Ok(LiveEntries::NoContainer);
        };
        let Some(parent_section) = catalogue::find_section(container.scope, parent.section) else {
            return Ok(LiveEntries::Partial(Cause::new(
                "the section of its parent entries is unknown",
            )));
        };
        let parent_entries =
            self.get_or_read_entries(parent_section, container, (&target, &facts), live).await?;
        let parent_ids = entry_ids(parent_section, container, &parent_entries);
        live.names.insert_entry_ids(parent.section, parent_ids);
        let all_parents = match parent_entries.entries() {
            Ok(entries) => entries,
            Err(cause) => return Ok(LiveEntries::Unreadable(cause.clone())),
        };
        let parent_fields =
            section.entries.iter().filter_map(|entry| entry.fields.get(parent.field));
        let parent_values: Vec<_> = parent_fields.map(|field| field.value).collect();
        let declared_parents: BTreeSet<_> = parent_values.iter().filter_map(Value::text).collect();
        let renames = Renames::from_container(parent_section, container, all_parents);
        let mut parent_ids_by_name: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for entry in drop_copies(parent_section, container, all_parents) {
            let Some(id) = parent_section.referenced_id(entry) else { continue };
            let preparatory_calls =
                calls::preparatory_calls(parent_section, entry, &target, self.caller.id);
            live.names.insert_preparatory_calls(parent.section, id, preparatory_calls);
            parent_ids_by_name
                .entry(renames.name_after_rename(parent_section, entry.fields.raw()))
                .or_default()
                .push(id);
        }
        parent_ids_by_name
            .retain(|name, _| declared_parents.contains(&**name) || declared_parents.is_empty());
        if let Some((name, _)) = parent_ids_by_name
            .iter()
            .find(|(name, ids)| ids.len() > 1 && declared_parents.contains(&***name))
        {
            let (noun, name) = (text::plural(parent_section.noun), text::escape(name));
            let reason = Cause::new(format!("several {noun} are named `{name}`"));
            return Ok(LiveEntries::Partial(
                reason.with_help("remove all but one, or rename them"),
            ));
        }
        // Manifests cannot refer to one of several parents with the same name.
        let parents = parent_ids_by_name.into_iter().filter(|(_, ids)| ids.len() == 1);
        let parents: Vec<_> = parents.map(|(name, ids)| (name, ids[0])).collect();
        let (start, section_name) = (self.now(), section.kind.section);
        let entries = self.read_section(section, (&target, &facts), &parents).await?;
        live.read_times.sections.insert(section_name, ReadTime { start, end: self.now() });
        Ok(entries)
    }

    /// Reads a section of the container `target`. If its entries have parents, reads only the entries
    /// of `parents`.
    pub(super) async fn read_section(
        &self,
        section: &DeclaredSection,
        (target, facts): (&Target, &ContainerFacts),
        parents: &[NamedParent],
    ) -> Result<LiveEntries> {
        let declared_fields = section.field_names().collect();
        let scoped_kind = section.kind.scoped_kind;
        let sees_all = self.caller.is_administrator
            || facts.caller_level >= Some(scoped_kind.min_read_level());
        let reader = SectionReader {
            observer: self,
            kind: section.kind,
            section,
            declared_fields,
            target,
            facts,
            parents,
            sees_all,
        };
        let result = reader.read_entries().await;
        let switched_off_cause = scoped_kind
            .closing_settings(facts)
            .map(|settings| explain_switched_off(section.kind, settings));
        match (result, switched_off_cause) {
            (Err(error), _) if is_fatal(&error) => Err(error),
            (Err(error), Some(cause)) if error.is_forbidden() => Ok(LiveEntries::Unreadable(cause)),
            (Err(error), _) if error.page_error().is_some() => {
                Ok(LiveEntries::Partial(Cause::from(&error)))
            }
            (Err(error), _) => Ok(LiveEntries::Unreadable(reader.explain_refusal(&error))),
            // A list of a disabled feature may be empty although entries exist.
            (Ok(entries), Some(cause)) if entries.entries().is_ok_and(<[_]>::is_empty) => {
                Ok(LiveEntries::Unreadable(cause))
            }
            (Ok(entries), _) => Ok(entries),
        }
    }
}

/// Reads one section of a container.
struct SectionReader<'a> {
    observer: &'a Observer,
    kind: Section,
    section: &'a DeclaredSection,
    /// The fields that the manifest declares in this section.
    declared_fields: BTreeSet<&'a str>,
    target: &'a Target,
    facts: &'a ContainerFacts,
    /// The parents of the entries; empty if the entries have no parents.
    parents: &'a [NamedParent],
    /// True if the caller's role is high enough to see all entries of the section.
    sees_all: bool,
}

impl SectionReader<'_> {
    async fn read_entries(&self) -> Result<LiveEntries> {
        let scoped_kind = self.kind.scoped_kind;
        Ok(match scoped_kind.read_source {
            ReadSource::ObjectField { .. } => {
                LiveEntries::Partial("it names something that the token cannot see".into())
            }
            ReadSource::Container | ReadSource::Object | ReadSource::ListField(_) => {
                let noun = self.target.scope.noun();
                LiveEntries::Partial(format!("it was not part of the {noun} object").into())
            }
            ReadSource::List(_) if !self.sees_all => {
                let role = role_name(scoped_kind.min_read_level());
                let reason =
                    format!("the token's role is below {role}, so the list may be incomplete");
                LiveEntries::Partial(reason.into())
            }
            ReadSource::List(_)
                if scoped_kind.name_filter().is_some() && self.facts.has_no_branch =>
            {
                LiveEntries::NoContainer
            }
            ReadSource::List(op) => match scoped_kind.parent {
                Some(parent) => self.read_lists_of_parents(parent, op).await?,
                None => self.read_list(op).await?,
            },
            ReadSource::Optional(op) => self.read_optional(op).await?,
        })
    }

    fn request(&self, op: Op<Read>) -> Request<Read> {
        self.target.address_request(op.request())
    }

    /// Returns an unreadable section if a value in `rows` has the wrong type, else `None`.
    fn reject_mistyped_rows<'r>(
        &self,
        rows: impl IntoIterator<Item = &'r Object>,
    ) -> Option<LiveEntries> {
        let key = rows.into_iter().find_map(|raw| self.kind.mistyped_key(raw))?;
        let noun = self.kind.noun;
        let cause =
            Cause::new(format!("the service shows a {noun} whose `{key}` has the wrong type"));
        Some(LiveEntries::Unreadable(cause.with_help(PROXY_HELP)))
    }

    /// Reads the list of each parent.
    async fn read_lists_of_parents(&self, parent: &Parent, op: Op<Read>) -> Result<LiveEntries> {
        let reader = self.kind.reader(FieldSelection::Only(&self.declared_fields));
        let list_reads = self.parents.iter().map(|(_, id)| {
            self.read_rows(self.kind, self.request(op).with_argument(parent.argument, id))
        });
        let mut entries = Vec::new();
        for (rows, (name, id)) in
            future::try_join_all(list_reads).await?.into_iter().zip(self.parents)
        {
            let Some(rows) = rows else {
                let (noun, name) = (text::plural(self.kind.noun), text::escape(name));
                let reason = format!("the service does not show the {noun} of `{name}`");
                return Ok(LiveEntries::Partial(reason.into()));
            };
            if let Some(unreadable_entries) = self.reject_mistyped_rows(&rows) {
                return Ok(unreadable_entries);
            }
            let direct_rows =
                rows.into_iter().filter(|raw| !self.kind.scoped_kind.is_inherited(raw));
            entries.extend(direct_rows.map(|raw| reader.read(&parent.add_parent(raw, name, *id))));
        }
        Ok(LiveEntries::Nested(entries))
    }

    /// Reads the complete list that `request` returns. For some kinds the response is an object with
    /// the list in one field; `None` if that field is missing.
    async fn read_rows(
        &self,
        kind: Section,
        request: Request<Read>,
    ) -> Result<Option<Vec<Object>>> {
        let (scoped_kind, client) = (kind.scoped_kind, &self.observer.client);
        let Some(field) = scoped_kind.nested_field else {
            let list = scoped_kind.list_request(request);
            return Ok(Some(client.list_with_keys(list, scoped_kind.entry_keys).await?.into_vec()));
        };
        let response = client.get_object(request, &["id"]).await?;
        let Some(rows) = response.body[field].as_array() else { return Ok(None) };
        let rows = rows.iter().map(|row| {
            let mut keys = scoped_kind
                .entry_keys
                .identity_keys
                .iter()
                .chain(scoped_kind.entry_keys.other_keys);
            row.as_object().filter(|row| keys.all(|key| row.contains_key(*key))).cloned()
        });
        Ok(rows.collect())
    }

    /// Reads all pages of a list.
    async fn read_list(&self, op: Op<Read>) -> Result<LiveEntries> {
        let (kind, section, scoped_kind) = (self.kind, self.section, self.kind.scoped_kind);
        let reader = kind.reader(FieldSelection::Only(&self.declared_fields));
        let declared_names = section.entries.iter().map(|entry| &*entry.key);
        let request =
            scoped_kind.filter_by_names(scoped_kind.list_request(self.request(op)), declared_names);
        let rows = self.observer.client.list_with_keys(request, scoped_kind.entry_keys).await?;
        if let Some(unreadable) = self.reject_mistyped_rows(rows.iter()) {
            return Ok(unreadable);
        }
        let container_id =
            self.target.id.filter(|_| kind.traits.contains(&CollectionTrait::ListsItself));
        let mut details = match kind.detail.zip(scoped_kind.operations.get) {
            Some((detail, get)) => self.read_details(detail, get, &rows).await?,
            None => BTreeMap::new(),
        };
        let mut children_by_position = self.read_child_rows(&rows).await?;
        let mut next_positions = 0..;
        let kept_entries = rows.filter_map(|raw| {
            let position = next_positions.next().unwrap_or_default();
            let mut raw = details.remove(&position).unwrap_or(raw);
            raw.extend(children_by_position.remove(&position).unwrap_or_default());
            // Keep inherited entries that the plan must report as a problem.
            let keeps_inherited = kind.detail.is_some() && scoped_kind.is_inherited(&raw) && {
                let name = entry_name(kind, &raw);
                let exclusive_set = kind.exclusive_set(&name);
                let mut other_entries = section.entries.iter().filter(|other| other.key != name);
                section.is_declared_absent(&name)
                    || exclusive_set.is_some_and(|exclusive_set| {
                        other_entries
                            .any(|other| kind.exclusive_set(&other.key) == Some(exclusive_set))
                    })
            };
            let is_container = container_id.is_some() && object_id(&raw) == container_id;
            ((keeps_inherited || !scoped_kind.is_inherited(&raw)) && !is_container)
                .then(|| reader.read(&raw))
        });
        self.add_side_list_field(kept_entries).await.map(LiveEntries::Complete)
    }

    /// If several listed rows have the same declared name, reads the child entries of each of these
    /// rows. Rows with different children are not copies of each other. Returns the children by the
    /// position of their row in the list. Children that cannot be read are replaced by the row's id,
    /// so that the row never equals another row.
    async fn read_child_rows(&self, listed_rows: &[Object]) -> Result<BTreeMap<usize, Object>> {
        let mut child_rows: BTreeMap<usize, Object> = BTreeMap::new();
        let child_sections: Vec<_> = copies::child_sections(self.kind).collect();
        if child_sections.is_empty() || !self.kind.allows_duplicates() {
            return Ok(child_rows);
        }
        let declared_keys = self.section.entries.iter().map(|entry| &*entry.key);
        let declared_keys: BTreeSet<&str> = declared_keys.collect();
        let mut positions: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (position, raw) in listed_rows.iter().enumerate() {
            positions.entry(entry_name(self.kind, raw)).or_default().push(position);
        }
        positions.retain(|name, positions| positions.len() > 1 && declared_keys.contains(&**name));
        for position in positions.into_values().flatten() {
            let Some(id) = object_id(&listed_rows[position]) else { continue };
            for (child_section, parent) in &child_sections {
                let ReadSource::List(op) = child_section.scoped_kind.read_source else { continue };
                let request = self.request(op).with_argument(parent.argument, id);
                let rows = match split_fatal(self.read_rows(*child_section, request).await)? {
                    Ok(Some(rows)) => rows.into_iter().map(Json::from).collect(),
                    _ => id.into(),
                };
                child_rows
                    .entry(position)
                    .or_default()
                    .insert(child_section.section.to_owned(), rows);
            }
        }
        Ok(child_rows)
    }

    /// Reads the details of listed entries, and returns the details by position in the list.
    ///
    /// If [`Detail::fields`] is not empty, reads all entries if one of these fields is declared, and
    /// otherwise none. If it is empty, reads the declared entries, and the entries that would be
    /// removed and have a protective field.
    async fn read_details(
        &self,
        detail: Detail,
        get: Op<Read>,
        rows: &[Object],
    ) -> Result<BTreeMap<usize, Object>> {
        let (section, scoped_kind) = (self.section, self.kind.scoped_kind);
        let declared_keys: BTreeSet<_> =
            section.present_entries().map(|entry| &*entry.key).collect();
        let reads_all = self.declared_fields.iter().any(|name| detail.fields.contains(name));
        if !reads_all && !detail.fields.is_empty() {
            return Ok(BTreeMap::new());
        }
        let reads = rows.iter().enumerate().filter_map(|(position, raw)| {
            let needs_details = reads_all || declared_keys.contains("") || {
                let name = entry_name(self.kind, raw);
                let is_deleted =
                    section.is_declared_absent(&name) || section.unlisted.value == Unlisted::Delete;
                declared_keys.contains(&*name)
                    || (is_deleted
                        && risk::protective_fields(self.kind)
                            .any(|name| self.kind.has_field(raw, name)))
            };
            let request =
                scoped_kind.entry_request(self.request(get), raw).filter(|_| needs_details)?;
            Some(async move {
                let response = self
                    .observer
                    .client
                    .get_object(request, scoped_kind.entry_keys.identity_keys)
                    .await?;
                Ok::<_, ApiError>((position, response.object().cloned().unwrap_or_default()))
            })
        });
        Ok(future::try_join_all(reads).await?.into_iter().collect())
    }

    /// Reads a section that is a single object.
    async fn read_optional(&self, op: Op<Read>) -> Result<LiveEntries> {
        let (kind, client) = (self.kind, &self.observer.client);
        let (request, keys) = (self.request(op), kind.scoped_kind.entry_keys.identity_keys);
        let result = match kind.scoped_kind.absent_as {
            Absence::Null => client.get_optional(request, keys).await,
            Absence::Never | Absence::NotFound => client.get_object(request, keys).await.map(Some),
        };
        let is_absence_certain = kind.scoped_kind.absent_as == Absence::NotFound
            && self.sees_all
            && self.facts.tier >= kind.tier();
        let response = match result {
            Err(error) if is_absence_certain && error.is_entry_not_found() => None,
            result => result?,
        };
        let Some(response) = response else { return Ok(LiveEntries::Single(None)) };
        let Some(raw) = response.object().filter(|raw| kind.shows_any_field(raw)) else {
            let reason = format!("the service shows a {} without any of its fields", kind.noun);
            return Ok(LiveEntries::Unreadable(Cause::new(reason).with_help(PROXY_HELP)));
        };
        Ok(self.reject_mistyped_rows([raw]).unwrap_or_else(|| {
            LiveEntries::Single(Some(
                kind.read(raw, FieldSelection::Only(&self.declared_fields)).into(),
            ))
        }))
    }

    /// Adds the field whose values are in another list, if the field is declared and the other list
    /// can be read.
    async fn add_side_list_field(
        &self,
        entries: CompleteList<LiveEntry>,
    ) -> Result<CompleteList<LiveEntry>> {
        let side_list = catalogue::side_list(self.kind);
        let Some(side_list) = side_list.filter(|side| self.declared_fields.contains(side.field))
        else {
            return Ok(entries);
        };
        let list_read = self
            .observer
            .client
            .list_with_keys(self.request(side_list.list_op), side_list.entry_keys);
        Ok(match split_fatal(list_read.await)? {
            Ok(side_rows) => entries.map(|mut entry| {
                let value = (side_list.find_value)(&entry, &side_rows);
                entry.fields.raw_mut().insert(side_list.field.to_owned(), value);
                entry
            }),
            // If the list cannot be read, the field stays unknown.
            Err(_) => entries,
        })
    }

    /// Makes a cause that explains to the user why `error` prevented reading the section.
    fn explain_refusal(&self, error: &ApiError) -> Cause {
        let cause = Cause::from(error);
        if !error.is_forbidden() && (!error.is_not_found() || error.is_container_not_found()) {
            return cause;
        }
        let (section, tier) = (self.kind.section, self.kind.tier());
        if !self.sees_all || self.facts.tier >= tier {
            let mut cause = cause.mark_withheld(Withheld::Refused);
            if let Some(since) =
                self.kind.first_release().filter(|_| self.sees_all && error.is_not_found())
            {
                let reason = format!("`{section}` needs release {since} or later");
                cause.message = format!("{reason}, which the service may lack: {cause}").into();
                return cause.with_help(format!("take `{section}` out of the manifest"));
            }
            return cause;
        }
        let help = format!(
            "renew the service's licence for {tier}, or take `{section}` out of the manifest"
        );
        let mut cause = cause.with_help(help).mark_withheld(Withheld::Tier);
        let requirement = format!("`{section}` needs the {tier} tier");
        cause.message = match self.facts.tier {
            Tier::Free => format!("{requirement}; the service seems not to have it"),
            // The tier may be higher than `facts.tier`, which is only a lower bound.
            _ => format!("{requirement}, which the service may lack: {cause}"),
        }
        .into();
        cause
    }
}

/// The name of an entry in a response.
fn entry_name(section: Section, raw: &Object) -> String {
    section.entry_name(section.read(raw, FieldSelection::Only(&[].into())).fields.raw())
}

/// Help for a response that cannot come from the service itself.
const PROXY_HELP: &str = "check for a proxy that changes answers";

/// The cause if a section cannot be read because `disabled_settings` switch its feature off.
fn explain_switched_off(section: Section, disabled_settings: &[&str]) -> Cause {
    let verb = if disabled_settings.len() == 1 { "is" } else { "are" };
    let reason = format!(
        "switched off by settings: `{}` {verb} disabled",
        disabled_settings.join("` and `")
    );
    let help = format!("enable it, or take `{}` out of the manifest", section.section);
    Cause::new(reason).with_help(help).mark_withheld(Withheld::SwitchedOff)
}

/// The name of an access level in a sentence.
fn role_name(level: u8) -> &'static str {
    if level > crate::level::MAINTAINER { "Owner" } else { "Maintainer" }
}
