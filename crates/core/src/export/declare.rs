//! Converts live state into documents: replaces ids by names, and omits default values and secrets.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ExportSettings,
    document::{DocEntry, DocSection, ExportedDocument},
    entry::EntryWriter,
};
use crate::{
    address::Address,
    catalogue,
    cause::Cause,
    desired::subject_field,
    field::{NamedObject, Scope, Secrecy, Tier},
    kind::{Capability, ContainerFacts, Effect, LiveEntry, NameIndex, ReadSource, Section, Shape},
    live::{LiveContainer, LiveEntries, Presence},
    manifest::is_valid_new_path,
    secret::judge,
    text::escape,
    value::Json,
};

/// The HTTP statuses for a section that is not visible to this caller, not in the tier of the
/// service, or switched off. If the service refuses the token itself with a 401, the run ends
/// earlier.
const REFUSAL_STATUSES: [u16; 3] = [401, 403, 404];

/// A section that could not be read.
#[derive(Clone, Debug)]
pub(super) struct UnreadSection {
    pub(super) section: &'static str,
    pub(super) cause: Cause,
    /// True if the service refused the section; false if the request failed.
    pub(super) is_refused: bool,
    /// The tier that the section needs.
    pub(super) tier: Tier,
    /// True if the caller's role is known to be sufficient.
    pub(super) has_sufficient_role: bool,
}

/// A group or project that is being converted.
pub(super) struct DocumentBuilder<'a> {
    pub(super) settings: &'a ExportSettings,
    pub(super) path: &'a str,
    facts: &'a ContainerFacts,
    pub(super) names: &'a NameIndex,
    pub(super) document: ExportedDocument,
}

/// The document for the group or project at `path`; `None` if the container is marked for deletion.
///
/// # Errors
/// If the container could not be read.
pub(super) fn to_document(
    scope: Scope,
    path: &str,
    live: &LiveContainer,
    names: &NameIndex,
    settings: &ExportSettings,
) -> Result<Option<ExportedDocument>, Cause> {
    let facts = match &live.presence {
        Presence::Existing(_, facts) if facts.deletion_mark.is_some() => return Ok(None),
        Presence::Existing(_, facts) => facts,
        Presence::Unreadable(cause) => return Err(cause.clone()),
        presence => {
            let reason = match presence {
                Presence::Redirected { new_path: Some(to) } => format!("it is now `{to}`"),
                Presence::Redirected { new_path: None } => "it was renamed".to_owned(),
                _ => "it is gone".to_owned(),
            };
            return Err(Cause::new(reason).mark_transient());
        }
    };
    let mut all_names = live.names.clone();
    all_names.extend(names.clone());
    let document = ExportedDocument::new(scope, path, facts);
    let mut builder = DocumentBuilder { settings, path, facts, names: &all_names, document };
    for section in catalogue::sections(scope) {
        if settings.exports_section(path, section) {
            builder.add_section(section, live.sections.get(section.section));
        } else {
            builder.document.unread_sections.push(section.section);
        }
    }
    builder.document.drop_implied_approvals();
    Ok(Some(builder.document))
}

impl DocumentBuilder<'_> {
    fn add_section(&mut self, section: Section, live: Option<&LiveEntries>) {
        let entries = match (section.shape, live.map(LiveEntries::entries)) {
            (Shape::Container, _) => {
                // An existing container may have a path that the service refuses for new
                // containers.
                if self.settings.writes_create
                    && is_valid_new_path(section.scoped_kind.scope, self.path)
                {
                    let fields = vec![(section.section.to_owned(), true.into())];
                    let entry = DocEntry { fields, ..DocEntry::default() };
                    self.document.sections.push(DocSection::new(section, vec![entry]));
                }
                return;
            }
            // In an archived container, only the switch that archives it can be changed.
            (_, Some(Ok(entries))) if self.facts.is_archived && !is_archiving(section, entries) => {
                return;
            }
            (_, Some(Ok(entries))) => entries,
            (_, _) if self.facts.is_archived => return,
            (_, Some(Err(cause))) => return self.add_unread(section, cause),
            (_, None) => return self.add_unread(section, &Cause::new("not read")),
        };
        let mut doc_section = DocSection::new(section, Vec::new());
        let tier = entries.iter().map(|live| live.tier).fold(section.tier(), Tier::max);
        self.document.tier = self.document.tier.max(tier);
        if !matches!(section.scoped_kind.read_source, ReadSource::Object)
            || self.facts.tier > Tier::Free
        {
            // Some integrations also show fields of higher tiers, without a value.
            let proven_tiers = entries.iter().map(|live| shown_tier(section, live));
            let proven_tier = proven_tiers.fold(section.tier(), Tier::max);
            self.document.proven_tier = self.document.proven_tier.max(proven_tier);
        }
        for live in entries {
            if !self.is_omitted(section, live) {
                self.add_entry(&mut doc_section, live);
            }
        }
        let address = Address::container(self.path.into()).with_section(section.section);
        let is_empty = doc_section.is_empty();
        if section.shape == Shape::List {
            self.omit_ambiguous(&mut doc_section);
            doc_section.entries.retain(|entry| {
                self.settings.selection.selects(&address.with_entry(entry.key.as_str()))
            });
            doc_section.entries.sort_by(|a, b| a.key.cmp(&b.key));
        }
        let is_declared_empty = self.settings.includes_defaults && is_empty;
        if is_declared_empty && section.is_removable() && section.shape == Shape::Mapping {
            self.document.declare_absent(section);
        } else if !doc_section.is_empty() || (is_declared_empty && section.shape == Shape::List) {
            self.document.sections.push(doc_section);
        }
    }

    /// Adds the entry `live` to `doc_section`, or a comment if a manifest cannot or must not contain it.
    fn add_entry(&mut self, doc_section: &mut DocSection, live: &LiveEntry) {
        let section = doc_section.section;
        if let Some(name) = find_secret_field(section, live) {
            let reason = format!("`{name}` may hold a credential");
            return self.omit_entry(doc_section, &section.entry_name(live.fields.raw()), reason);
        }
        let omitted_count = self.document.omitted_parts.len();
        let entry = EntryWriter::write_entry(self, section, live, &mut doc_section.comments);
        if let Some(name) = entry.missing_identity(section) {
            self.document.omitted_parts.truncate(omitted_count);
            let reason = format!("manifests cannot express `{name}`");
            return self.omit_entry(doc_section, &entry.key, reason);
        }
        // An entry of a list exists even without fields. Sections that are not lists are left out
        // if they have no fields.
        if section.shape == Shape::List
            || !entry.fields.is_empty()
            || !entry.unknown_fields.is_empty()
        {
            doc_section.entries.push(entry);
        }
    }

    /// Records a section that could not be read.
    fn add_unread(&mut self, section: Section, cause: &Cause) {
        self.document.unread_sections.push(section.section);
        let field_tiers = section.specs().iter().map(|spec| spec.field.available.tier).max();
        let highest_tier = field_tiers.filter(|_| section.shape != Shape::List).unwrap_or_default();
        let is_refused = match (cause.status, cause.operation) {
            (Some(status), _) => REFUSAL_STATUSES.contains(&status),
            (None, operation) => operation.is_none() && !cause.transient,
        };
        self.document.refused_sections.push(UnreadSection {
            section: section.section,
            cause: cause.clone(),
            is_refused,
            tier: section.tier().max(highest_tier),
            // A 401 concerns the token. Without a status, undrift did not send the request, because
            // the role is too low.
            has_sufficient_role: cause.status.is_some_and(|status| status != REFUSAL_STATUSES[0])
                && (self.settings.caller.is_administrator
                    || self.facts.caller_level >= Some(section.scoped_kind.min_read_level())),
        });
    }

    /// Records that the entry `key` is omitted from `doc_section`, and adds a comment.
    fn omit_entry(&mut self, doc_section: &mut DocSection, key: &str, reason: String) {
        doc_section.comments.push(format!("Not exported: {} ({reason})", escape(key)));
        self.document
            .omitted_parts
            .push((format!("{}/{key}", doc_section.name()), Cause::new(reason)));
    }

    /// Omits entries that share an identity, because a declaration of one entry would also change
    /// the other entries.
    fn omit_ambiguous(&mut self, doc_section: &mut DocSection) {
        let section = doc_section.section;
        let identities = doc_section.entries.iter().map(|entry| {
            let identity = section.identify(&entry.fields.iter().cloned().collect());
            let name = (!identity.name.is_empty()).then(|| format!("by name {}", identity.name));
            name.into_iter().chain(identity.keys.into_iter().next()).collect::<BTreeSet<_>>()
        });
        let identities: Vec<_> = identities.collect();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for key in identities.iter().flatten() {
            *counts.entry(key).or_default() += 1;
        }
        let mut is_ambiguous = identities
            .iter()
            .map(|identities| identities.iter().any(|key| counts[key.as_str()] > 1));
        let duplicates: Vec<_> = doc_section
            .entries
            .extract_if(.., |entry| is_ambiguous.next() == Some(true) && entry.state.is_none())
            .collect();
        for entry in duplicates {
            let reason = format!("a manifest cannot tell it from another {}", section.noun);
            self.omit_entry(doc_section, &entry.key, reason);
        }
    }

    /// True if an entry must not be declared: a bot, the caller's own access, or the owner of a
    /// personal namespace.
    fn is_omitted(&self, section: Section, live: &LiveEntry) -> bool {
        let Some((user_field, NamedObject::User)) = subject_field(section) else {
            return live.protection_reason.is_some();
        };
        let caller = &self.settings.caller;
        let ids = [Some(caller.id), self.facts.personal_owner_id];
        // Compare the username too: the user may be the caller although the response has a wrong
        // id.
        let name = live.fields.raw().get(user_field).and_then(Json::as_str);
        live.protection_reason.is_some()
            || live.id().is_some_and(|id| ids.contains(&Some(id)))
            || name.is_some_and(|name| name.eq_ignore_ascii_case(&caller.username))
    }
}

/// The first required field that manifests declare in plain text, but whose live value may be
/// secret.
fn find_secret_field(section: Section, live: &LiveEntry) -> Option<&'static str> {
    let needed_fields = section.needed_fields(live.fields.raw());
    section.identity.iter().chain(section.required_fields).chain(needed_fields).copied().find(
        |name| {
            let value = live.fields.raw().get(*name);
            section.field(name).secrecy() == Secrecy::Open
                && value.is_some_and(|value| judge::contains_secret(value, Secrecy::Open))
        },
    )
}

/// True if a section prevents all other changes of the container.
fn is_archiving(section: Section, entries: &[LiveEntry]) -> bool {
    let fields = entries.iter().map(|live| live.fields.raw());
    let mut effects = fields.flat_map(|fields| section.rules().effects(None, fields, fields));
    matches!(section.scoped_kind.read_source, ReadSource::Object)
        && effects.any(|effect| effect == Effect::lacks(Capability::Writable))
}

/// The highest tier of the fields of `live` that have a value.
fn shown_tier(section: Section, live: &LiveEntry) -> Tier {
    let has_value = |name: &str| live.fields.raw().get(name).is_some_and(|value| !value.is_null());
    let shown_specs = section.specs().iter().filter(|spec| has_value(spec.name));
    shown_specs.map(|spec| spec.field.available.tier).max().unwrap_or_default()
}
