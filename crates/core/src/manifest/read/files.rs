//! Finds manifests and reads them, within limits.
//!
//! All manifests below the root belong together. The folder or file that a command names only
//! selects the groups and projects of the run. Outside of the named folder, files of other tools
//! are skipped.

use std::{
    collections::BTreeMap,
    io::{ErrorKind, Read as _},
    path::{Path, PathBuf},
};

use crate::{
    diagnostic::{Diagnostic, Diagnostics, FileName},
    manifest::{
        config::{CONFIG_FILE, MISNAMED_FILE},
        faults::{file_diagnostic, placeholders, texts},
        surroundings::{LoadEnvironment, Root},
    },
    text::{escape, list_names, nearest},
};

/// The maximum size of a manifest in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// The maximum number of manifests.
pub const MAX_FILES: usize = 200_000;

/// The maximum size of all manifests together in bytes.
pub const MAX_TOTAL_BYTES: u64 = 256 << 20;

/// The maximum number of skipped files that a message names.
const MAX_SKIPPED_NAMES: usize = 3;

/// The maximum depth of nested folders.
const MAX_FOLDER_DEPTH: usize = 64;

/// The names of files that are not manifests if they are at the root or directly in the named
/// folder.
pub const RESERVED_FILES: [&str; 4] = [CONFIG_FILE, MISNAMED_FILE, "sandbox.yaml", "sandbox.yml"];

/// A manifest.
#[derive(Debug)]
pub(in crate::manifest) struct ManifestFile {
    /// The name of the file in messages: the path relative to the working directory, with `/`.
    pub(in crate::manifest) name: FileName,
    pub(in crate::manifest) path: PathBuf,
    /// True if the command names this file or a folder above it.
    pub(in crate::manifest) is_named_by_command: bool,
    /// A text that replaces the content of the file.
    pub(in crate::manifest) replacement: Option<String>,
}

impl ManifestFile {
    /// A file that the command names, with the content of the file at `path`.
    fn named(name: impl Into<FileName>, path: &Path) -> Self {
        let (name, path) = (name.into(), path.to_owned());
        Self { name, path, is_named_by_command: true, replacement: None }
    }

    /// A file with `text` that does not exist on disk.
    pub(in crate::manifest) fn from_text(name: FileName, text: String) -> Self {
        Self { replacement: Some(text), ..Self::named(name, Path::new("")) }
    }

    /// The text of the file.
    pub(in crate::manifest) fn read_text(&self) -> Result<String, Box<Diagnostic>> {
        match &self.replacement {
            Some(text) => check_size(text.len(), &self.name).map(|()| text.clone()),
            None => read(&self.path, &self.name),
        }
    }

    /// True if the file may be a manifest although it cannot be read as text.
    pub(in crate::manifest) fn may_be_manifest(&self) -> bool {
        let bytes = std::fs::read(&self.path);
        bytes.map_or(true, |bytes| super::is_manifest(&String::from_utf8_lossy(&bytes)))
    }
}

/// Reads a text file of at most 1 MiB.
pub(in crate::manifest) fn read(path: &Path, name: &FileName) -> Result<String, Box<Diagnostic>> {
    let mut bytes = Vec::new();
    let read_result = std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    read_result.map_err(|error| {
        file_diagnostic(texts::UNREADABLE_FILE, name.clone(), placeholders![error])
    })?;
    check_size(bytes.len(), name)?;
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(file_diagnostic(texts::UTF_16, name.clone(), &[]).into());
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid_bytes = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid_bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
        file_diagnostic(texts::NOT_UTF_8, name.clone(), placeholders![line]).into()
    })
}

/// Refuses a manifest that is too large to be read.
fn check_size(byte_count: usize, name: &FileName) -> Result<(), Box<Diagnostic>> {
    if byte_count as u64 <= MAX_FILE_BYTES {
        return Ok(());
    }
    Err(file_diagnostic(texts::LARGE_FILE, name.clone(), &[]).into())
}

/// The noun for the type of the file at `path`; `None` for a regular file. Files of other types are
/// refused: reading a pipe could wait forever, and a link could lead anywhere.
///
/// # Errors
/// The error of the system, for example that the file does not exist.
pub(in crate::manifest) fn special_file_type(path: &Path) -> std::io::Result<Option<&'static str>> {
    let file_type = std::fs::symlink_metadata(path)?.file_type();
    Ok(match file_type {
        kind if kind.is_file() => None,
        kind if kind.is_symlink() => Some("a symbolic link"),
        kind if kind.is_dir() => Some("a folder"),
        _ => Some("a pipe or a device"),
    })
}

/// True if a file with this name is a manifest, unless it is hidden or reserved.
pub fn is_manifest_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Help with the file or folder beside the missing `path` that has a similar name.
pub fn suggest_path(path: &Path) -> Option<String> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let entries = std::fs::read_dir(parent.unwrap_or(Path::new("."))).ok()?;
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    let near_name = nearest(path.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    Some(format!("did you mean `{}`?", escape(&path.with_file_name(near_name).to_string_lossy())))
}

/// `path` if it is a folder, otherwise the folder that contains the file.
pub fn containing_folder(path: &Path) -> &Path {
    if !path.is_file() {
        return path;
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Every manifest of `root`, ordered by name. If a file is named and there is no `undrift.yaml`,
/// returns only this file.
pub(in crate::manifest) fn find_manifests(
    named_path: &Path,
    root: &Root,
    environment: &LoadEnvironment,
    diagnostics: &mut Diagnostics,
) -> Vec<ManifestFile> {
    let named_file = ManifestFile::named(environment.display_path(named_path), named_path);
    if named_path.is_file() && !root.is_configured {
        return vec![named_file];
    }
    let mut search = ManifestSearch {
        root,
        named_path: canonical_path(named_path),
        files: Vec::new(),
        total_bytes: 0,
        skipped_names: Vec::new(),
        diagnostics,
    };
    search.search_folder(&root.folder, &RESERVED_FILES, 0);
    if !search.files.iter().any(|file| file.is_named_by_command) {
        // A hidden file, or a file with another extension, is only read if the command names the
        // file.
        if named_path.is_file() {
            search.files.push(named_file);
        } else if root.folder != named_path {
            let folder = search.named_path.clone();
            search.search_folder(&folder, &[], 0);
        }
    }
    let ManifestSearch { mut files, total_bytes: bytes, mut skipped_names, .. } = search;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let has_too_many_files = files.len() > MAX_FILES;
    if has_too_many_files || bytes > MAX_TOTAL_BYTES {
        let limit =
            if has_too_many_files { MAX_FILES.to_string() } else { "256 MiB of".to_owned() };
        let fault = Diagnostic::error("too-large", format!("more than {limit} manifests"));
        diagnostics.push(fault.with_help("name a folder that contains only the manifests"));
        files.clear();
    } else if !files.iter().any(|file| file.is_named_by_command) && diagnostics.is_empty() {
        let name = environment.display_path(named_path);
        skipped_names.sort();
        let names = skipped_names.iter().map(String::as_str).take(MAX_SKIPPED_NAMES);
        let names: Vec<_> = names.collect();
        let skipped = if names.is_empty() { "" } else { "; skipped here: " };
        let skipped = format!("{skipped}{}", list_names(&names));
        diagnostics.push(file_diagnostic(texts::EMPTY_FOLDER, name, placeholders![skipped]));
    }
    files
}

/// Replaces the texts of `files` by the texts in `replacements`. Adds a file for each new name.
pub(in crate::manifest) fn replace_texts(
    mut files: Vec<ManifestFile>,
    replacements: &BTreeMap<FileName, String>,
) -> Vec<ManifestFile> {
    for (name, text) in replacements {
        let replacement = Some(text.clone());
        match files.binary_search_by(|file| file.name.cmp(name)) {
            Ok(index) => files[index].replacement = replacement,
            Err(index) => {
                let file = ManifestFile::named(name.clone(), Path::new(&**name));
                files.insert(index, ManifestFile { replacement, ..file });
            }
        }
    }
    files
}

/// The canonical path of a folder or file. A link at the end is not followed if it leads to a file.
fn canonical_path(path: &Path) -> PathBuf {
    match path.file_name() {
        Some(name) if path.is_file() => canonical_path(containing_folder(path)).join(name),
        _ => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
    }
}

/// A search for manifests.
struct ManifestSearch<'d> {
    root: &'d Root,
    /// The canonical named path.
    named_path: PathBuf,
    files: Vec<ManifestFile>,
    total_bytes: u64,
    /// Files that are not read, but may be meant as manifests.
    skipped_names: Vec<String>,
    diagnostics: &'d mut Diagnostics,
}

impl ManifestSearch<'_> {
    /// Adds the manifests in `folder` and in its subfolders. Skips files directly in `folder` whose
    /// names are `reserved_names`.
    fn search_folder(&mut self, folder: &Path, reserved_names: &[&str], depth: usize) {
        if let Err(error) = self.search_entries(folder, reserved_names, depth) {
            let texts = match error.kind() {
                ErrorKind::NotFound => texts::NO_FOLDER,
                _ => texts::UNREADABLE_FOLDER,
            };
            let name = self.root.display_path(folder);
            let diagnostic = file_diagnostic(texts, name, placeholders![error]);
            self.diagnostics.push(diagnostic.with_optional_help(suggest_path(folder)));
        }
    }

    fn search_entries(
        &mut self,
        folder: &Path,
        reserved_names: &[&str],
        depth: usize,
    ) -> std::io::Result<()> {
        if depth > MAX_FOLDER_DEPTH {
            return Err(std::io::Error::other("folders are nested too deeply"));
        }
        let real_folder = folder.canonicalize()?;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let file_name = entry.file_name().to_string_lossy().into_owned();
            let file_type = entry.file_type()?;
            if file_name.starts_with('.') || self.files.len() > MAX_FILES {
                continue;
            } else if file_type.is_dir() {
                self.search_folder(&entry.path(), &[], depth + 1);
            } else if file_type.is_file()
                && is_manifest_name(file_name.as_ref())
                && !reserved_names.contains(&file_name.as_str())
                && !(real_folder == self.named_path && RESERVED_FILES.contains(&file_name.as_str()))
            {
                self.total_bytes = self.total_bytes.saturating_add(entry.metadata()?.len());
                let path = entry.path();
                let file = ManifestFile::named(self.root.display_path(&path), &path);
                let is_named_by_command =
                    real_folder.join(entry.file_name()).starts_with(&self.named_path);
                self.files.push(ManifestFile { is_named_by_command, ..file });
            } else if (file_type.is_symlink()
                || [".json", ".yaml.", ".yml."].iter().any(|part| file_name.contains(part)))
                && self.files.is_empty()
            {
                self.skipped_names.push(self.root.display_path(&entry.path()));
            }
        }
        Ok(())
    }
}
