//! The content of exported files: merges documents that are equal, shares comments, and starts another
//! file where one would be too large.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{ExportBuilder, ExportedFile, document::ExportedDocument, layout};
use crate::{field::Scope, text::count, yaml::write};

/// The size in bytes above which another manifest file is started.
const FILE_SPLIT_BYTES: usize = 1 << 19;

/// What the line of a path has in addition to the path: `  - ` and the end of the line.
const PATH_LINE_BYTES: usize = 5;

/// The minimum number of documents with the same comment for which it is written only once.
const MIN_SHARED_COMMENTS: usize = 3;

impl ExportBuilder {
    /// The text of every document, with its file and scope. Documents of a file with the same content are
    /// merged into one with several paths.
    pub(super) fn document_texts(&self) -> Vec<(String, Scope, String)> {
        let mut merged: Vec<(String, &ExportedDocument, Vec<Arc<str>>)> = Vec::new();
        let mut positions = HashMap::new();
        for document in &self.documents {
            let stem = layout::file_stem(document.scope, &document.path);
            let stays_separate = document.has_source() || !self.settings.defaults;
            let separate_path = stays_separate.then(|| document.path.clone());
            let body = document.items(self.settings.watch, &["".into()]);
            let key = (stem.clone(), write::document(&body), separate_path);
            let at = *positions.entry(key).or_insert(merged.len());
            if at == merged.len() {
                merged.push((stem, document, Vec::new()));
            }
            merged[at].2.push(document.path.clone());
        }
        let mut written = Vec::new();
        for (stem, document, paths) in merged {
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

/// Keeps a comment of several documents only in the first one, with the number of others.
fn share_comments(mut documents: Vec<&mut Vec<String>>) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for comment in documents.iter().flat_map(|comments| comments.iter()) {
        *counts.entry(comment.clone()).or_default() += 1;
    }
    counts.retain(|_, count| *count >= MIN_SHARED_COMMENTS);
    let mut shown_comments = BTreeSet::new();
    for comments in &mut documents {
        comments.retain_mut(|comment| {
            let Some(document_count) = counts.get(comment) else { return true };
            let is_first = shown_comments.insert(comment.clone());
            *comment += &format!("; also in {}", count(document_count - 1, "other document"));
            is_first
        });
    }
}

/// Adds the file for the documents of one group, or several files if one would be too large.
pub(super) fn add_files(
    stem: &str,
    documents: impl Iterator<Item = String>,
    files: &mut Vec<ExportedFile>,
) {
    let mut texts: Vec<String> = Vec::new();
    for document in documents {
        match texts.last_mut() {
            Some(text) if text.len() + document.len() <= FILE_SPLIT_BYTES => {
                *text += "---\n";
                *text += &document;
            }
            _ => texts.push(document),
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
