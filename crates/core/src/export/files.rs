//! The exported files. Each group and its projects are in one file, next to a folder for the
//! subgroups. Equal documents are merged, and a comment of many documents is written once. A file
//! that would be too large is split.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{ExportBuilder, ExportedFile, document::ExportedDocument};
use crate::{address::parent_group_path, field::Scope, text::count, yaml::write};

/// The size in bytes above which another manifest file is started.
const FILE_SPLIT_BYTES: usize = 1 << 19;

/// The number of bytes that the line of a path needs in addition to the path: `  - ` and the line feed.
const PATH_LINE_BYTES: usize = 5;

/// A comment that at least this number of documents have is written only once.
const MIN_SHARED_COMMENTS: usize = 3;

/// Names that manifests of groups must not have at the root, because other files use them.
const RESERVED_NAMES: [&str; 3] = ["undrift", "sandbox", SHARED_NAME];
/// The name of the file with the rules for several top-level groups.
const SHARED_NAME: &str = "defaults";
/// Names that some systems reserve for devices, with and without an extension.
const DEVICE_NAMES: [&str; 4] = ["con", "prn", "aux", "nul"];
/// The maximum length in bytes of the name of a file or folder, before a hash and an extension are
/// added.
const MAX_NAME_BYTES: usize = 200;

impl ExportBuilder {
    /// The text of every document, with its scope and the path of its file without extension.
    /// Documents of a file with the same content are merged into one document with several paths.
    pub(super) fn write_documents(&self) -> Vec<(String, Scope, String)> {
        let mut merged_documents: Vec<(String, &ExportedDocument, Vec<Arc<str>>)> = Vec::new();
        let mut positions = HashMap::new();
        for document in &self.documents {
            let stem = file_stem(document.scope, &document.path);
            let stays_separate = document.has_import_source() || !self.settings.extracts_defaults;
            let separate_path = stays_separate.then(|| document.path.clone());
            let body = document.to_items(self.settings.marks_watched, &["".into()]);
            let key = (stem.clone(), write::render_document(&body), separate_path);
            let index = *positions.entry(key).or_insert(merged_documents.len());
            if index == merged_documents.len() {
                merged_documents.push((stem, document, Vec::new()));
            }
            merged_documents[index].2.push(document.path.clone());
        }
        let mut written_documents = Vec::new();
        for (stem, document, paths) in merged_documents {
            for paths in split_paths(&paths) {
                let items = document.to_items(self.settings.marks_watched, paths);
                written_documents.push((stem.clone(), document.scope, items));
            }
        }
        if self.settings.extracts_defaults {
            deduplicate_comments(
                written_documents
                    .iter_mut()
                    .map(|(.., items)| &mut items[0].comments_above)
                    .collect(),
            );
        }
        let texts = written_documents.into_iter();
        texts.map(|(stem, scope, items)| (stem, scope, write::render_document(&items))).collect()
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

/// Keeps a comment of many documents only in the first document, and adds the number of the other
/// documents to the comment.
fn deduplicate_comments(mut documents: Vec<&mut Vec<String>>) {
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

/// The file for the documents of one group, or several files if one file would be too large.
pub(super) fn split_into_files(stem: &str, documents: Vec<String>) -> Vec<ExportedFile> {
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
    // No path of the service contains `~`.
    let suffixes = std::iter::once(String::new()).chain((2..).map(|number| format!("~{number}")));
    let files = suffixes.zip(texts);
    files
        .map(|(suffix, text)| ExportedFile { path: format!("{stem}{suffix}.yaml"), text })
        .collect()
}

/// The path of the file for the group or project at `path`, without extension. Different groups never
/// share a file. An empty path means all groups.
pub fn file_stem(scope: Scope, path: &str) -> String {
    if path.is_empty() {
        return SHARED_NAME.to_owned();
    }
    let group = match scope {
        Scope::Group => path,
        Scope::Project => parent_group_path(path).unwrap_or(path),
    };
    let segments = group.split('/').enumerate();
    let names: Vec<_> = segments.map(|(index, segment)| file_name(segment, index == 0)).collect();
    names.join("/")
}

/// A file name for `segment` that any file system accepts. Unsafe characters, and the first
/// character of a reserved name, are replaced by `%` and a code. No path of the service contains
/// `%`.
fn file_name(segment: &str, is_first: bool) -> String {
    let lower_segment = segment.to_lowercase();
    let device = lower_segment.split('.').next().unwrap_or_default();
    let device_number = ["com", "lpt"].into_iter().find_map(|port| device.strip_prefix(port));
    let is_port = device_number.is_some_and(|number| matches!(number.as_bytes(), [b'0'..=b'9']));
    let is_special = segment.is_empty()
        || segment.starts_with('.')
        || DEVICE_NAMES.contains(&device)
        || is_port
        || (is_first && RESERVED_NAMES.contains(&&*lower_segment));
    let mut name = String::new();
    for (index, c) in segment.char_indices() {
        let is_last = index + c.len_utf8() == segment.len();
        let is_safe = c.is_alphanumeric() || "-_.+".contains(c);
        if !is_safe || (is_special && index == 0) || (is_last && c == '.') {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().for_each(|byte| name += &format!("%{byte:02X}"));
        } else {
            name.push(c);
        }
    }
    if segment.is_empty() {
        name.push('%');
    }
    if name.len() > MAX_NAME_BYTES {
        let length =
            (0..=MAX_NAME_BYTES).rev().find(|i| name.is_char_boundary(*i)).unwrap_or_default();
        name.truncate(length);
        name += &format!("~{:08x}", stable_hash(segment));
    }
    name
}

/// A hash that is the same in every release of undrift (FNV-1a).
pub(super) fn stable_hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_its_projects_share_a_file_beside_the_folder_of_subgroups() {
        assert_eq!(file_stem(Scope::Group, "acme"), "acme");
        assert_eq!(file_stem(Scope::Project, "acme/shop"), "acme");
        assert_eq!(file_stem(Scope::Group, "acme/web"), "acme/web");
        assert_eq!(file_stem(Scope::Project, "acme/web/site.io"), "acme/web");
    }

    #[test]
    fn names_that_are_not_valid_file_names_are_escaped() {
        for (path, expected) in [
            ("..", "%2E%2E"),
            (".", "%2E"),
            (".hidden/x", "%2Ehidden/x"),
            ("acme/..", "acme/%2E%2E"),
            ("acme/a.", "acme/a%2E"),
            ("nul", "%6Eul"),
            ("acme/Con.d", "acme/%43on.d"),
            ("acme/com1", "acme/%63om1"),
            ("acme/coma", "acme/coma"),
            ("sandbox", "%73andbox"),
            ("Undrift", "%55ndrift"),
            ("acme/sandbox", "acme/sandbox"),
            ("a b/c:d\\e", "a%20b/c%3Ad%5Ce"),
            ("a//b", "a/%/b"),
        ] {
            assert_eq!(file_stem(Scope::Group, path), expected, "{path}");
        }
        let [long, other] = ["a", "b"].map(|end| file_stem(Scope::Group, &("x".repeat(250) + end)));
        assert!(long != other && long.len() < 220, "{long}");
    }
}
