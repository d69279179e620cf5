//! Converts live state into manifests for which a plan has no changes: the pure part of `undrift export`.
//!
//! [`readable_container`] selects what to read of each group and project. [`ExportBuilder::add`]
//! converts the live state (`declare`). [`ExportBuilder::finish`] names references, moves common
//! values into `Defaults`, and writes one file for each group ([`crate::yaml::write`], `layout`). A
//! new kind needs no code here, because its table describes it. Values that equal a default of the
//! service are omitted; see [`crate::catalogue::preset`].
//!
//! The result does not depend on the order in which the state was read.

mod declare;
mod defaults;
mod document;
mod entry;
mod everything;
mod excerpt;
mod layout;
mod profiles;
mod rehearse;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    sync::Arc,
};

use declare::{Conversion, UnreadSection};
use document::{DocSection, ExportedDocument, SecretReference};
pub use everything::{readable_container, with_all_fields, with_all_sections};
pub use excerpt::{Excerpt, ExcerptEntry};
pub use layout::file_stem;

use crate::{
    address::Address,
    catalogue,
    cause::{Cause, Withheld},
    desired::Moves,
    field::{Accepted, NamedObject, Readback, Scope, Tier},
    kind::{Names, Section, Shape, Spec},
    live::{Caller, Live, Presence},
    manifest::Manages,
    release::DetectedRelease,
    secret::Secret,
    selection::Selection,
    text::{count, list_names},
    value::Object,
    yaml::write,
};

/// The size in bytes above which another manifest file is started.
const FILE_SPLIT_BYTES: usize = 1 << 19;

/// What the line of a path has in addition to the path: `  - ` and the end of the line.
const PATH_LINE_BYTES: usize = 5;

/// The minimum number of documents that share one comment.
const FEWEST_REPEATED: usize = 3;

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

/// What to export, and how.
#[derive(Clone, Debug, Default)]
pub struct ExportSettings {
    /// The token's user.
    pub caller: Caller,
    /// The release of the service.
    pub release: DetectedRelease,
    /// How to write secrets.
    pub values: SecretHandling,
    /// Whether default values of the service and empty sections are exported too.
    pub all: bool,
    /// Whether common values are moved into `Defaults`.
    pub defaults: bool,
    /// Whether `apply` may create the groups and projects, to rebuild them on another service.
    pub create: bool,
    /// Whether the manifests are written in watch mode.
    pub watch: bool,
    /// Whether a seed and secret values for the embedded sandbox are exported too.
    pub rehearse: bool,
    /// The sections to export; empty for all.
    pub sections: Vec<String>,
    /// The selected groups, projects and sections.
    pub selection: Selection,
    /// The limits that `undrift.yaml` sets for the manifests in the folder, if any.
    pub manages: Option<Manages>,
}

impl ExportSettings {
    /// The settings for a plain, complete export of what `caller` may see.
    pub fn plain(caller: Caller, release: DetectedRelease) -> Self {
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
    /// such as `archived` are exported regardless of the selection. A section is not exported if the
    /// manifests must not declare it, the release or the container cannot have it, or only declared
    /// entries are read.
    pub fn exports_section(&self, path: &str, section: Section) -> bool {
        if self
            .manages
            .as_ref()
            .is_some_and(|manages| !manages.allows_section(path, section.section))
        {
            return false;
        }
        let address = Address::container(path.into()).section(section.section);
        matches!(section.shape, Shape::Container | Shape::Switch)
            || (self.requests_section(section.section)
                && section
                    .table()
                    .specs()
                    .iter()
                    .any(|spec| section.table().is_current(spec, self.release))
                && section.scoped_kind.name_filter().is_none()
                && (!section.is_only_top_level() || !path.contains('/'))
                && self.selection.may_select_part(&address, &Moves::default()))
    }
}

/// A container or section that could not be read completely.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IncompleteRead {
    /// The path of the container, with the section if only that is incomplete.
    pub subject: String,
    /// The reason.
    pub cause: Cause,
}

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFile {
    /// The path relative to the folder, with `/` as separator.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// The result of an export.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// The files, sorted by path.
    pub files: Vec<ExportedFile>,
    /// The values of references as the service shows them, by name.
    pub secrets: BTreeMap<String, Secret>,
    /// The names of references whose values the service does not show, or only in part.
    pub unshown_secrets: BTreeSet<String>,
    /// The number of exported groups and projects.
    pub container_counts: BTreeMap<Scope, usize>,
    /// Notes about what the manifests do not contain, without a full stop.
    pub notes: Vec<String>,
}

/// Collects the live state of one container after another.
#[derive(Debug, Default)]
pub struct ExportBuilder {
    settings: ExportSettings,
    documents: Vec<ExportedDocument>,
    deleting: BTreeSet<String>,
    /// The sections that could not be read, each with the path of its document.
    unread: Vec<(String, UnreadSection)>,
    /// The highest tier that any response proved.
    tier: Tier,
    missing_reads: Vec<IncompleteRead>,
    omitted: Vec<IncompleteRead>,
    /// The sections that no token can read: first those of a higher tier, then those switched off.
    unavailable_sections: [BTreeSet<&'static str>; 2],
}

impl ExportBuilder {
    /// An empty export; the containers at `deleting` are marked for deletion.
    pub fn new(settings: ExportSettings, deleting: BTreeSet<String>) -> Self {
        Self { settings, deleting, ..Self::default() }
    }

    /// The ids in `live` whose names must be looked up before [`Self::add`].
    pub fn referenced_ids(scope: Scope, live: &Live) -> BTreeSet<(NamedObject, u64)> {
        declare::referenced_ids(scope, live)
    }

    /// Adds the live state of the container at `path`.
    pub fn add(&mut self, scope: Scope, path: &str, live: &Live, names: &Names) {
        if let Presence::Here(_, facts) = &live.presence {
            self.tier = self.tier.max(facts.tier);
        }
        match declare::to_document(scope, path, live, names, &self.settings) {
            Conversion::Document(mut document) => {
                self.tier = self.tier.max(document.proven_tier);
                let refused = mem::take(&mut document.refused_sections).into_iter();
                self.unread.extend(refused.map(|unread| (path.to_owned(), unread)));
                let omitted = mem::take(&mut document.omitted).into_iter();
                self.omitted.extend(omitted.map(|(part, cause)| {
                    let subject = format!("{path}#{part}");
                    IncompleteRead { subject, cause }
                }));
                self.documents.push(*document);
            }
            Conversion::Deleting => drop(self.deleting.insert(path.to_owned())),
            Conversion::Unread(cause) => {
                self.missing_reads.push(IncompleteRead { subject: path.to_owned(), cause });
            }
        }
    }

    /// The reads that failed but may succeed in a later run.
    pub fn missing_reads(&mut self) -> &[IncompleteRead] {
        self.sort_unread();
        &self.missing_reads
    }

    /// The sections that this token must not read, and the entries that a manifest cannot express or
    /// identify.
    pub fn omitted_reads(&mut self) -> &[IncompleteRead] {
        self.sort_unread();
        &self.omitted
    }

    /// Classifies the sections that could not be read. Only possible after all reads: a section that one
    /// project shows belongs to the tier of the service.
    fn sort_unread(&mut self) {
        self.documents.sort_by_cached_key(|document| document.path.to_lowercase());
        for (path, unread) in mem::take(&mut self.unread) {
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
            let (comment, target) = if is_refused && !has_role {
                ("Not exported", &mut self.omitted)
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
            target.push(IncompleteRead { subject, cause });
        }
        self.missing_reads.sort();
        self.omitted.sort();
    }

    /// Builds all files.
    pub fn finish(mut self) -> Export {
        self.sort_unread();
        if self.settings.create {
            self.declare_absent();
        }
        let (secrets, mut notes) = (self.name_secrets(), self.notes());
        if self.settings.rehearse {
            let lower = rehearse::leave_out_lower_members(&mut self.documents);
            let lower = (lower > 0).then(|| count(lower, "member"));
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
        if self.settings.rehearse {
            let release = self.settings.release;
            export.files.extend(rehearse::seed_files(&self.documents, release));
        }
        // In each file the group comes first, then its rules, then its projects.
        let mut stems: BTreeMap<String, [Vec<String>; 3]> = BTreeMap::new();
        let mut profile_names = BTreeSet::new();
        for scope in Scope::ALL.into_iter().filter(|_| self.settings.defaults) {
            for defaults in defaults::extract_defaults(&mut self.documents, scope) {
                let stem = layout::file_stem(Scope::Group, &defaults.group);
                stems.entry(stem).or_default()[1].push(write::document(&defaults.items()));
            }
            let documents = &mut self.documents;
            for profile in profiles::extract_profiles(documents, scope, &mut profile_names) {
                let stem = layout::file_stem(Scope::Group, &profile.group);
                stems.entry(stem).or_default()[1].push(write::document(&profile.items()));
            }
        }
        for (stem, scope, text) in self.document_texts() {
            stems.entry(stem).or_default()[scope.choose(0, 2)].push(text);
        }
        for (stem, texts) in stems {
            add_files(&stem, texts.into_iter().flatten(), &mut export.files);
        }
        export.files.sort_by(|a, b| a.path.cmp(&b.path));
        export
    }

    /// The text of every document with its file. Those of a file that declare the same are one.
    fn document_texts(&self) -> Vec<(String, Scope, String)> {
        let mut alike: Vec<(String, &ExportedDocument, Vec<Arc<str>>)> = Vec::new();
        let mut positions = HashMap::new();
        for document in &self.documents {
            let stem = layout::file_stem(document.scope, &document.path);
            let is_alone = document.has_source() || !self.settings.defaults;
            let alone = is_alone.then(|| document.path.clone());
            let body = document.items(self.settings.watch, &["".into()]);
            let key = (stem.clone(), write::document(&body), alone);
            let at = *positions.entry(key).or_insert(alike.len());
            if at == alike.len() {
                alike.push((stem, document, Vec::new()));
            }
            alike[at].2.push(document.path.clone());
        }
        let mut written = Vec::new();
        for (stem, document, paths) in alike {
            for paths in split_paths(&paths) {
                let items = document.items(self.settings.watch, paths);
                written.push((stem.clone(), document.scope, items));
            }
        }
        if self.settings.defaults {
            share_comments(
                written.iter_mut().map(|(.., items)| &mut items[0].comments_above).collect(),
            );
        }
        let texts = written.into_iter();
        texts.map(|(stem, scope, items)| (stem, scope, write::document(&items))).collect()
    }

    /// Notes about what the manifests do not contain.
    fn notes(&self) -> Vec<String> {
        let never_shown =
            collect_never_shown(self.documents.iter().flat_map(|document| &document.sections));
        let unshown = self.unshown_secrets();
        let hidden = self.documents.iter().flat_map(|document| &document.hidden_fields);
        let mut unmanaged = BTreeMap::new();
        for (name, entries) in self.documents.iter().flat_map(|document| &document.unmanaged_fields)
        {
            *unmanaged.entry(name).or_insert(0) += entries;
        }
        let unmanaged: Vec<_> = unmanaged
            .iter()
            .map(|(name, all)| format!("`{name}` ({})", count(*all, "entry")))
            .collect();
        let unmanaged = (!unmanaged.is_empty()).then(|| {
            let field_list = unmanaged.join(", ");
            format!("set, but left out, because manifests have no such field: {field_list}")
        });
        let notes: [(&str, BTreeSet<&str>); 6] = [
            (
                "skipped, because they are marked for deletion",
                self.deleting.iter().map(String::as_str).collect(),
            ),
            ("the service never shows", never_shown.iter().map(String::as_str).collect()),
            (
                "to be set before apply, because the service does not show the values",
                unshown.iter().map(String::as_str).collect(),
            ),
            ("hidden by tier, release or role", hidden.map(String::as_str).collect()),
            ("not in the service's tier", self.unavailable_sections[0].clone()),
            (
                "switched off by settings, in some or all projects",
                self.unavailable_sections[1].clone(),
            ),
        ];
        let notes =
            notes.into_iter().filter(|(_, names)| !names.is_empty()).map(|(what, names)| {
                let names: Vec<_> = names.into_iter().collect();
                format!("{what}: {}", list_names(&names))
            });
        unmanaged.into_iter().chain(notes).collect()
    }

    /// Declares an object absent in each project that lacks it while a parent group has it. Otherwise
    /// the service would copy the group's object into the new project.
    fn declare_absent(&mut self) {
        let removable: Vec<Section> = catalogue::sections(Scope::Project)
            .filter(|section| {
                section.is_removable() && section.kind.in_scope(Scope::Group).is_some()
            })
            .collect();
        for section in removable {
            let groups = self.documents.iter().filter(|document| {
                document.scope == Scope::Group && document.section(section.section).is_some()
            });
            let groups: Vec<_> =
                groups.map(|group| format!("{}/", group.path.to_lowercase())).collect();
            for document in &mut self.documents {
                let path = document.path.to_lowercase();
                let is_below = document.scope == Scope::Project
                    && groups.iter().any(|group| path.starts_with(group));
                if is_below && !document.is_archived {
                    document.declare_absent(section);
                }
            }
        }
    }

    /// Gives each reference a unique name, and returns the values.
    fn name_secrets(&mut self) -> BTreeMap<String, Secret> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for secret in self.documents.iter().flat_map(|document| &document.secrets) {
            *counts.entry(secret.name.clone()).or_default() += 1;
        }
        for document in &mut self.documents {
            for index in 0..document.secrets.len() {
                let secret = &document.secrets[index];
                if counts.get(&secret.name).is_some_and(|count| *count > 1) {
                    // A hash instead of a counter: a new secret must not change existing names.
                    let SecretReference { section, key, field, .. } = secret;
                    let field_address = format!("{}#{section}/{key}.{field}", document.path);
                    let name = format!("{}_{:08X}", secret.name, layout::hash(&field_address));
                    document.rename_secret(index, name);
                }
            }
        }
        let secrets = self.documents.iter().flat_map(|document| &document.secrets);
        secrets.map(|secret| (secret.name.clone(), secret.value.clone())).collect()
    }

    /// The names of references whose values the service does not show, or only in part.
    fn unshown_secrets(&self) -> BTreeSet<String> {
        let secrets = self.documents.iter().flat_map(|document| &document.secrets);
        secrets.filter(|secret| !secret.is_shown).map(|secret| secret.name.clone()).collect()
    }
}

/// The paths of a document in parts, each of which is small enough for one file.
fn split_paths(paths: &[Arc<str>]) -> impl Iterator<Item = &[Arc<str>]> {
    let mut part_bytes = 0;
    paths.chunk_by(move |path, _| {
        part_bytes += PATH_LINE_BYTES + path.len();
        let is_full = part_bytes > FILE_SPLIT_BYTES;
        if is_full {
            part_bytes = 0;
        }
        !is_full
    })
}

/// Keeps a comment that several documents have only in the first of them.
fn share_comments(mut documents: Vec<&mut Vec<String>>) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for comment in documents.iter().flat_map(|comments| comments.iter()) {
        *counts.entry(comment.clone()).or_default() += 1;
    }
    counts.retain(|_, count| *count >= FEWEST_REPEATED);
    let mut shown = BTreeSet::new();
    for comments in &mut documents {
        comments.retain_mut(|comment| {
            let Some(documents) = counts.get(comment) else { return true };
            let is_first = shown.insert(comment.clone());
            *comment += &format!("; also in {}", count(documents - 1, "other document"));
            is_first
        });
    }
}

/// Adds the file for the documents of one group, or several files if one would be too large.
fn add_files(stem: &str, documents: impl Iterator<Item = String>, files: &mut Vec<ExportedFile>) {
    let mut texts = vec![String::new()];
    for document in documents {
        if texts
            .last()
            .is_some_and(|text| !text.is_empty() && text.len() + document.len() > FILE_SPLIT_BYTES)
        {
            texts.push(String::new());
        }
        if let Some(text) = texts.last_mut() {
            *text += if text.is_empty() { "" } else { "---\n" };
            *text += &document;
        }
    }
    for (number, text) in texts.into_iter().enumerate() {
        let path = match number {
            0 => format!("{stem}.yaml"),
            // No path of the service has a `~`.
            number => format!("{stem}~{}.yaml", number + 1),
        };
        files.push(ExportedFile { path, text });
    }
}

/// The fields of `sections` that can be declared but are never shown in a response.
fn collect_never_shown<'p>(sections: impl Iterator<Item = &'p DocSection>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // How a container was created is irrelevant afterwards.
    for doc_section in sections.filter(|content| content.section.shape != Shape::Container) {
        let section = doc_section.section;
        let entries = doc_section.entries.iter();
        let entries: Vec<Object> =
            entries.map(|entry| entry.fields.iter().cloned().collect()).collect();
        for spec in section.table().specs().iter().filter(|spec| is_never_shown(section, spec)) {
            if entries.iter().any(|fields| section.has_field(fields, spec.name)) {
                names.insert(format!("{}.{}", section.section, spec.name));
            }
        }
    }
    names
}

/// True if a field can be declared but is never shown in a response.
fn is_never_shown(section: Section, spec: &Spec) -> bool {
    spec.field.accepted != Accepted::Never
        && (spec.field.read == Readback::Never
            || spec.field.is_upload()
            || entry::lacks_credential(section, spec))
}
