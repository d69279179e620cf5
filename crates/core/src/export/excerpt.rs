//! The live state of one group or project in the form of a manifest. This form is for callers that
//! edit existing manifests.

use super::{
    ExportSettings, declare,
    document::{DocEntry, ExportedDocument, UNMANAGED},
};
use crate::{
    field::Scope,
    kind::{NameIndex, Section, Shape},
    live::LiveContainer,
    value::Json,
};

/// Live state in the form of a manifest, entry by entry. A dot in a field's name separates keys.
pub struct Excerpt {
    /// The document with everything that the service shows.
    full_document: ExportedDocument,
    /// The document as an export writes it.
    exported_document: ExportedDocument,
}

impl Excerpt {
    /// The live state at `path`; `None` if the container does not exist. `names` must contain the
    /// names of the [referenced ids](super::ExportBuilder::referenced_ids).
    pub fn from_live(
        scope: Scope,
        path: &str,
        live: &LiveContainer,
        names: &NameIndex,
        settings: &ExportSettings,
    ) -> Option<Self> {
        let [full, exported] = [true, settings.includes_defaults].map(|all| {
            let settings = ExportSettings { includes_defaults: all, ..settings.clone() };
            declare::to_document(scope, path, live, names, &settings).ok().flatten()
        });
        Some(Self { full_document: full?, exported_document: exported? })
    }

    /// All field values of the full document that are texts. The document contains no secrets.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let entries =
            self.full_document.sections.iter().flat_map(|doc_section| &doc_section.entries);
        let values = entries.flat_map(|entry| &entry.fields);
        values.filter_map(|(_, value)| value.as_str().map(str::to_owned))
    }

    /// All fields of the entry `key` that a manifest may contain.
    pub fn fields(&self, section: &str, key: &str) -> &[(String, Json)] {
        let entry =
            self.full_document.section(section).and_then(|doc_section| doc_section.entry(key));
        entry.map_or(&[], |entry| &entry.fields)
    }

    /// The entries of the sections that an export writes, each with its section and its key. An
    /// empty section has one row with an empty key and an absent entry.
    pub fn entries(&self) -> impl Iterator<Item = (Section, &str, DocEntry)> {
        self.exported_document
            .sections
            .iter()
            .filter(|doc_section| doc_section.section.shape != Shape::Container)
            .flat_map(|doc_section| {
                let absent_row =
                    doc_section.is_empty().then(|| (doc_section.section, "", DocEntry::absent()));
                let entries = doc_section.entries.iter().filter_map(|entry| {
                    let exported_entry = self.entry(doc_section.name(), &entry.key)?;
                    Some((doc_section.section, entry.key.as_str(), exported_entry))
                });
                entries.chain(absent_row)
            })
    }

    /// The entry `key` as an export writes it; `None` if its identity must not be written.
    pub fn entry(&self, section: &str, key: &str) -> Option<DocEntry> {
        let doc_section = self.exported_document.section(section)?;
        let entry = doc_section.entry(key)?;
        let comment = entry.comment.clone().or_else(|| {
            (!doc_section.comments.is_empty() && entry.key.is_empty())
                .then(|| doc_section.comments.join("; "))
        });
        (entry.state != Some(UNMANAGED)).then(|| DocEntry { comment, ..entry.clone() })
    }
}
