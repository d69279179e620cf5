//! The live state of one group or project in the form of a manifest, for callers that edit existing
//! manifests.

use super::{
    ExportSettings,
    declare::{self, Conversion},
    document::{ABSENT, ExportedDocument, UNMANAGED},
};
use crate::{
    field::Scope,
    kind::{Names, Section, Shape},
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

/// An entry in the form of a manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExcerptEntry {
    /// Its fields, in the order of the documentation.
    pub fields: Vec<(String, Json)>,
    /// A comment about omitted parts, with the reason.
    pub comment: Option<String>,
    /// True if the section has no entry.
    pub is_absent: bool,
}

impl Excerpt {
    /// The live state at `path`; `None` if the container does not exist. `names` contains the names for
    /// [`ExportBuilder::referenced_ids`](super::ExportBuilder::referenced_ids).
    pub fn from_live(
        scope: Scope,
        path: &str,
        live: &LiveContainer,
        names: &Names,
        settings: &ExportSettings,
    ) -> Option<Self> {
        let [full, exported] = [true, settings.all].map(|all| {
            let settings = ExportSettings { all, ..settings.clone() };
            match declare::to_document(scope, path, live, names, &settings) {
                Conversion::Document(document) => Some(*document),
                Conversion::MarkedForDeletion | Conversion::Unread(_) => None,
            }
        });
        Some(Self { full_document: full?, exported_document: exported? })
    }

    /// The texts in it; none of them is a secret.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let values = self
            .full_document
            .sections
            .iter()
            .flat_map(|content| &content.entries)
            .flat_map(|entry| &entry.fields);
        values.filter_map(|(_, value)| value.as_str().map(str::to_owned))
    }

    /// All fields of the entry `key` that a manifest may contain.
    pub fn fields(&self, section: &str, key: &str) -> &[(String, Json)] {
        let entry = self.full_document.section(section).and_then(|content| content.entry(key));
        entry.map_or(&[], |entry| &entry.fields)
    }

    /// The entries of the sections that an export writes, with section and key. An empty section has one
    /// row with an empty key and an absent entry.
    pub fn entries(&self) -> impl Iterator<Item = (Section, &str, ExcerptEntry)> {
        self.exported_document
            .sections
            .iter()
            .filter(|content| content.section.shape != Shape::Container)
            .flat_map(|content| {
                let absent_entry = ExcerptEntry { is_absent: true, ..ExcerptEntry::default() };
                let absent_row = content.is_empty().then_some((content.section, "", absent_entry));
                let entries = content.entries.iter().filter_map(|entry| {
                    let excerpt = self.entry(content.name(), &entry.key)?;
                    Some((content.section, entry.key.as_str(), excerpt))
                });
                entries.chain(absent_row)
            })
    }

    /// The entry `key` as an export writes it; `None` if its identity must not be written.
    pub fn entry(&self, section: &str, key: &str) -> Option<ExcerptEntry> {
        let content = self.exported_document.section(section)?;
        let entry = content.entry(key)?;
        let comment = entry.comment.clone().or_else(|| {
            (!content.comments.is_empty() && entry.key.is_empty())
                .then(|| content.comments.join("; "))
        });
        let is_absent = entry.state == Some(ABSENT);
        (entry.state != Some(UNMANAGED)).then(|| ExcerptEntry {
            fields: entry.fields.clone(),
            comment,
            is_absent,
        })
    }
}
