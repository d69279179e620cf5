//! Converts live state into manifests that match this state. This module is the part of
//! `undrift export` without IO.
//!
//! [`readable_container`] selects the sections and fields to read of each group and project.
//! [`ExportBuilder::add`] converts the live state with the module `declare`.
//! [`ExportBuilder::finish`] names references, moves common values into `Defaults` and profiles,
//! and writes one file for each group. A new kind needs no code in this module, because the table
//! of the kind describes its fields. The export omits values that equal a default of the service
//! ([`crate::catalogue::preset`]).
//!
//! The result does not depend on the order in which the state was read.

mod declare;
mod defaults;
mod document;
mod entry;
mod everything;
mod excerpt;
mod files;
mod profiles;
mod rehearse;
mod shared;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use declare::UnreadSection;
pub use document::DocEntry;
use document::{DocSection, ExportedDocument, SecretReference};
pub use everything::{readable_container, widen_to_all_fields, widen_to_all_sections};
pub use excerpt::Excerpt;
pub use files::file_stem;

use crate::{
    address::Address,
    catalogue,
    cause::{Cause, Withheld},
    desired::Moves,
    field::{Acceptance, NamedObject, Readback, Scope, Tier},
    kind::{FieldSpec, NameIndex, Section, Shape, forms},
    live::{Caller, LiveContainer, Presence},
    manifest::ManagedPaths,
    release::DetectedRelease,
    secret::Secret,
    selection::Selection,
    text::{count, list_names},
    value::Object,
    yaml::write,
};

/// How to export values that are or may be secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecretHandling {
    /// Omit secret values; write all others.
    #[default]
    Plain,
    /// Omit the values of all variables.
    None,
    /// Replace secret values by references; write all others.
    Env,
}

/// The settings of an export.
#[derive(Clone, Debug, Default)]
pub struct ExportSettings {
    /// The token's user.
    pub caller: Caller,
    /// The release of the service.
    pub release: DetectedRelease,
    /// How to write secrets.
    pub secret_handling: SecretHandling,
    /// Export default values of the service and empty sections too.
    pub includes_defaults: bool,
    /// Move common values into `Defaults` and profiles.
    pub extracts_defaults: bool,
    /// Write `create`, so that `apply` can rebuild the groups and projects on another service.
    pub writes_create: bool,
    /// Write the manifests with `watch: true`.
    pub marks_watched: bool,
    /// Also export a seed for the embedded sandbox, and placeholders for secrets.
    pub writes_sandbox_seed: bool,
    /// The sections to export; empty for all.
    pub sections: Vec<String>,
    /// The selected groups, projects and sections.
    pub selection: Selection,
    /// The groups, projects and sections that `undrift.yaml` allows in the folder; `None` for all.
    pub managed_paths: Option<ManagedPaths>,
}

impl ExportSettings {
    /// The settings for a plain, complete export of everything that `caller` may see.
    pub fn for_caller(caller: Caller, release: DetectedRelease) -> Self {
        Self { caller, release, ..Self::default() }
    }

    /// True if the selection includes any part of the container at `path`.
    pub fn selects_part_of(&self, path: &str) -> bool {
        self.selection.may_select_part(&Address::container(path.into()), &Moves::default())
    }

    /// True if the object at `address` is selected.
    pub fn selects_address(&self, address: &Address) -> bool {
        address.section.is_none_or(|name| self.requests_section(name))
            && self.selection.selects(address)
    }

    fn requests_section(&self, section: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|name| name == section)
    }

    /// True if `section` of the container at `path` is exported. The container itself and switches
    /// such as `archived` are exported regardless of the selection. A section is not exported if
    /// the manifests must not declare it, if the release or the container does not support it, or
    /// if only its declared entries are ever read.
    pub fn exports_section(&self, path: &str, section: Section) -> bool {
        let managed_paths = self.managed_paths.as_ref();
        if managed_paths.is_some_and(|manages| !manages.allows_section(path, section.section)) {
            return false;
        }
        let address = Address::container(path.into()).with_section(section.section);
        let table = section.table();
        matches!(section.shape, Shape::Container | Shape::Switch)
            || (self.requests_section(section.section)
                && table.specs().iter().any(|spec| table.is_current(spec, self.release))
                && section.scoped_kind.name_filter().is_none()
                && (!section.is_only_top_level() || !path.contains('/'))
                && self.selection.may_select_part(&address, &Moves::default()))
    }
}

/// A container, or a part of one, that could not be read or exported completely.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IncompleteRead {
    /// The path of the container, or `PATH#PART` if only a section, entry or field is incomplete.
    pub subject: String,
    /// The reason why the read is incomplete.
    pub cause: Cause,
}

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFile {
    /// The path relative to the folder of the export, with `/` as separator.
    pub path: String,
    /// The content of the file.
    pub text: String,
}

/// The result of an export.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// The files, sorted by path.
    pub files: Vec<ExportedFile>,
    /// The secret values as the service shows them, by the name of their reference.
    pub secrets: BTreeMap<String, Secret>,
    /// The names of references whose values the service hides, or shows only in part.
    pub unshown_secrets: BTreeSet<String>,
    /// The number of exported groups and projects.
    pub container_counts: BTreeMap<Scope, usize>,
    /// Notes about omitted parts, without a full stop.
    pub notes: Vec<String>,
}

/// Collects the live state of one container after another.
#[derive(Debug, Default)]
pub struct ExportBuilder {
    settings: ExportSettings,
    documents: Vec<ExportedDocument>,
    marked_for_deletion: BTreeSet<String>,
    /// The sections that could not be read, each with the path of its document.
    unread_sections: Vec<(String, UnreadSection)>,
    /// The highest tier that any response proved.
    tier: Tier,
    missing_reads: Vec<IncompleteRead>,
    omitted_reads: Vec<IncompleteRead>,
    /// The names of the sections that no token can read. The first set contains sections of a
    /// higher tier. The second set contains sections that settings switch off.
    unavailable_sections: [BTreeSet<&'static str>; 2],
}

impl ExportBuilder {
    /// An empty export. The containers at the paths `marked_for_deletion` are skipped.
    pub fn new(settings: ExportSettings, marked_for_deletion: BTreeSet<String>) -> Self {
        Self { settings, marked_for_deletion, ..Self::default() }
    }

    /// The ids in `live` whose names must be looked up before [`Self::add`].
    pub fn referenced_ids(scope: Scope, live: &LiveContainer) -> BTreeSet<(NamedObject, u64)> {
        let sections = catalogue::sections(scope);
        let entries = sections.flat_map(|section| {
            let entries = live.entries(section.section).unwrap_or_default().iter();
            entries.flat_map(move |entry| forms::referenced_ids(section, entry.fields.raw()))
        });
        entries.collect()
    }

    /// Adds the live state of the container at `path`.
    pub fn add(&mut self, scope: Scope, path: &str, live: &LiveContainer, names: &NameIndex) {
        if let Presence::Existing(_, facts) = &live.presence {
            self.tier = self.tier.max(facts.tier);
        }
        match declare::to_document(scope, path, live, names, &self.settings) {
            Ok(Some(mut document)) => {
                self.tier = self.tier.max(document.proven_tier);
                let refused = mem::take(&mut document.refused_sections).into_iter();
                self.unread_sections.extend(refused.map(|unread| (path.to_owned(), unread)));
                let omitted = mem::take(&mut document.omitted_parts).into_iter();
                self.omitted_reads.extend(omitted.map(|(part, cause)| {
                    let subject = format!("{path}#{part}");
                    IncompleteRead { subject, cause }
                }));
                self.documents.push(document);
            }
            Ok(None) => drop(self.marked_for_deletion.insert(path.to_owned())),
            Err(cause) => {
                self.missing_reads.push(IncompleteRead { subject: path.to_owned(), cause });
            }
        }
    }

    /// The reads that failed but may succeed in a later run.
    pub fn missing_reads(&mut self) -> &[IncompleteRead] {
        self.classify_unread();
        &self.missing_reads
    }

    /// The sections that this token may not read, and the entries that a manifest cannot express or
    /// identify.
    pub fn omitted_reads(&mut self) -> &[IncompleteRead] {
        self.classify_unread();
        &self.omitted_reads
    }

    /// Classifies the sections that could not be read. Call this function after all reads, because
    /// the tier of the service is not known earlier.
    fn classify_unread(&mut self) {
        self.documents.sort_by_cached_key(|document| document.path.to_lowercase());
        for (path, unread) in mem::take(&mut self.unread_sections) {
            let UnreadSection { section, cause, is_refused, tier, has_sufficient_role: has_role } =
                unread;
            let subject = format!("{path}#{section}");
            if is_refused && tier > self.tier {
                self.unavailable_sections[0].insert(section);
                continue;
            } else if cause.withheld == Some(Withheld::SwitchedOff) {
                self.unavailable_sections[1].insert(section);
                continue;
            }
            let (comment, reads) = if is_refused && !has_role {
                ("Not exported", &mut self.omitted_reads)
            } else {
                ("Missing", &mut self.missing_reads)
            };
            let lowercase_path = path.to_lowercase();
            let position = self
                .documents
                .binary_search_by_key(&lowercase_path, |document| document.path.to_lowercase());
            if let Ok(position) = position {
                let comment_text = format!("{comment}: {section} ({cause})");
                self.documents[position].comments.push(comment_text);
            }
            reads.push(IncompleteRead { subject, cause });
        }
        self.missing_reads.sort();
        self.omitted_reads.sort();
    }

    /// Builds all files.
    pub fn finish(mut self) -> Export {
        self.classify_unread();
        if self.settings.writes_create {
            self.declare_absent();
        }
        let (secrets, mut notes) = (self.name_secrets(), self.collect_notes());
        if self.settings.writes_sandbox_seed {
            let omitted_count = rehearse::omit_lower_members(&mut self.documents);
            let lower = (omitted_count > 0).then(|| count(omitted_count, "member"));
            notes.extend(lower.map(|lower| {
                format!("left out, because their level is below the inherited one: {lower}")
            }));
        }
        let mut export =
            Export { secrets, unshown_secrets: self.unshown_secrets(), notes, ..Export::default() };
        for scope in Scope::ALL {
            let documents = self.documents.iter().filter(|document| document.scope == scope);
            export.container_counts.insert(scope, documents.count());
        }
        if self.settings.writes_sandbox_seed {
            let release = self.settings.release;
            export.files.extend(rehearse::seed_files(&self.documents, release));
        }
        // In each file the group comes first, then its rules, then its projects.
        let mut texts_by_stem: BTreeMap<String, [Vec<String>; 3]> = BTreeMap::new();
        let mut profile_names = BTreeSet::new();
        for scope in Scope::ALL.into_iter().filter(|_| self.settings.extracts_defaults) {
            let documents = &mut self.documents;
            let mut rules = defaults::extract_defaults(documents, scope);
            rules.extend(profiles::extract_profiles(documents, scope, &mut profile_names));
            for rule in rules {
                let stem = file_stem(Scope::Group, &rule.group);
                texts_by_stem.entry(stem).or_default()[1]
                    .push(write::render_document(&rule.to_items()));
            }
        }
        for (stem, scope, text) in self.write_documents() {
            texts_by_stem.entry(stem).or_default()[scope.choose(0, 2)].push(text);
        }
        for (stem, texts) in texts_by_stem {
            export.files.extend(files::split_into_files(&stem, texts.concat()));
        }
        export.files.sort_by(|a, b| a.path.cmp(&b.path));
        export
    }

    /// Notes about the parts that the manifests omit.
    fn collect_notes(&self) -> Vec<String> {
        let never_shown =
            collect_never_shown(self.documents.iter().flat_map(|document| &document.sections));
        let hidden_fields = self.documents.iter().flat_map(|document| &document.hidden_fields);
        let mut unmanaged_counts = BTreeMap::new();
        for (name, entries) in self.documents.iter().flat_map(|document| &document.unmanaged_fields)
        {
            *unmanaged_counts.entry(name).or_insert(0) += entries;
        }
        let unmanaged_note = (!unmanaged_counts.is_empty()).then(|| {
            let fields = unmanaged_counts.iter();
            let fields = fields.map(|(name, sum)| format!("`{name}` ({})", count(*sum, "entry")));
            let field_list = fields.collect::<Vec<_>>().join(", ");
            format!("set, but left out, because manifests have no such field: {field_list}")
        });
        let [other_tier_sections, switched_off_sections] = &self.unavailable_sections;
        let unset_text = "to be set before apply, because the service does not show the values";
        let notes = [
            unmanaged_note,
            list_note("skipped, because they are marked for deletion", &self.marked_for_deletion),
            list_note("the service never shows", &never_shown),
            list_note(unset_text, &self.unshown_secrets()),
            list_note("hidden by tier, release or role", hidden_fields),
            list_note("not in the service's tier", other_tier_sections),
            list_note("switched off by settings, in some or all projects", switched_off_sections),
        ];
        notes.into_iter().flatten().collect()
    }

    /// Declares an object absent in each project that lacks the object although a group above has
    /// one. Otherwise the service would copy the group's object when `apply` creates the project.
    fn declare_absent(&mut self) {
        let removable_sections: Vec<Section> = catalogue::sections(Scope::Project)
            .filter(|section| {
                section.is_removable() && section.kind.find_section(Scope::Group).is_some()
            })
            .collect();
        for section in removable_sections {
            let groups = self.documents.iter().filter(|document| {
                document.scope == Scope::Group && document.section(section.section).is_some()
            });
            let group_prefixes: Vec<_> =
                groups.map(|group| format!("{}/", group.path.to_lowercase())).collect();
            for document in &mut self.documents {
                let path = document.path.to_lowercase();
                let is_below = document.scope == Scope::Project
                    && group_prefixes.iter().any(|group| path.starts_with(group));
                if is_below && !document.is_archived {
                    document.declare_absent(section);
                }
            }
        }
    }

    /// Gives each reference a unique name, and returns the secret values by these names.
    fn name_secrets(&mut self) -> BTreeMap<String, Secret> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for secret in self.documents.iter().flat_map(|document| &document.secrets) {
            *counts.entry(secret.name.clone()).or_default() += 1;
        }
        for document in &mut self.documents {
            for index in 0..document.secrets.len() {
                let secret = &document.secrets[index];
                if counts.get(&secret.name).is_some_and(|count| *count > 1) {
                    // Use a hash instead of a counter, so that a new secret does not change
                    // existing names.
                    let SecretReference { section, key, field, .. } = secret;
                    let field_address =
                        format!("{}#{}/{key}.{field}", document.path, section.section);
                    let name =
                        format!("{}_{:08X}", secret.name, files::stable_hash(&field_address));
                    document.rename_secret(index, name);
                }
            }
        }
        let secrets = self.documents.iter().flat_map(|document| &document.secrets);
        secrets.map(|secret| (secret.name.clone(), secret.value.clone())).collect()
    }

    /// The names of references whose values the service hides, or shows only in part.
    fn unshown_secrets(&self) -> BTreeSet<String> {
        let secrets = self.documents.iter().flat_map(|document| &document.secrets);
        secrets.filter(|secret| !secret.is_shown).map(|secret| secret.name.clone()).collect()
    }
}

/// A note that lists `names`, sorted and without duplicates; `None` if `names` is empty.
fn list_note<'n, S: AsRef<str> + 'n>(
    prefix: &str,
    names: impl IntoIterator<Item = &'n S>,
) -> Option<String> {
    let names: BTreeSet<&str> = names.into_iter().map(AsRef::as_ref).collect();
    let names: Vec<_> = names.into_iter().collect();
    (!names.is_empty()).then(|| format!("{prefix}: {}", list_names(&names)))
}

/// The fields of `sections` that can be declared but are never shown in a response.
fn collect_never_shown<'p>(sections: impl Iterator<Item = &'p DocSection>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // Skip the fields of `create`: they have no effect on an existing container.
    for doc_section in sections.filter(|doc_section| doc_section.section.shape != Shape::Container)
    {
        let section = doc_section.section;
        let entries = doc_section.entries.iter();
        let entries: Vec<Object> =
            entries.map(|entry| entry.fields.iter().cloned().collect()).collect();
        for spec in section.specs().iter().filter(|spec| is_never_shown(section, spec)) {
            if entries.iter().any(|fields| section.has_field(fields, spec.name)) {
                names.insert(format!("{}.{}", section.section, spec.name));
            }
        }
    }
    names
}

/// True if a field can be declared but is never shown in a response.
fn is_never_shown(section: Section, spec: &FieldSpec) -> bool {
    spec.field.accepted != Acceptance::Never
        && (spec.field.read == Readback::Never
            || spec.field.is_upload()
            || entry::lacks_credential(section, spec))
}
