//! Finds manifests and reads them, within limits.
//!
//! All manifests below the root belong together. The named folder or file only selects the manifests
//! of the run; outside of it, files of other tools are skipped.

use std::{
    collections::BTreeMap,
    io::{ErrorKind, Read as _},
    path::{Path, PathBuf},
};

use crate::{
    diagnostic::{Diagnostic, Diagnostics, FileName, SourceLocation},
    manifest::{
        config::{FILE, MISNAMED},
        surroundings::{LoadEnvironment, Root},
    },
};

/// The maximum size of a manifest in bytes.
pub const MAX_FILE: u64 = 1 << 20;

/// The maximum number of manifests.
pub const MAX_FILES: usize = 200_000;

/// The maximum size of all manifests together in bytes.
pub const MAX_TOTAL: u64 = 256 << 20;

/// The maximum depth of nested folders.
const MAX_DEPTH: usize = 64;

/// Files at the root, and at the top of the named folder, that are not manifests.
pub const RESERVED: [&str; 4] = [FILE, MISNAMED, "sandbox.yaml", "sandbox.yml"];

/// A manifest.
#[derive(Debug)]
pub(in crate::manifest) struct ManifestFile {
    /// Its path relative to the working directory, with `/` between its parts.
    pub(in crate::manifest) name: FileName,
    pub(in crate::manifest) path: PathBuf,
    /// Whether it was named or is in the named folder.
    pub(in crate::manifest) is_named: bool,
    /// A text to use instead of its content.
    pub(in crate::manifest) replacement: Option<String>,
}

impl ManifestFile {
    /// A file with `text` that does not exist on disk.
    pub(in crate::manifest) fn of_text(name: FileName, text: String) -> Self {
        Self { name, path: PathBuf::new(), is_named: true, replacement: Some(text) }
    }

    /// Its text.
    pub(in crate::manifest) fn read(&self) -> Result<String, Box<Diagnostic>> {
        match &self.replacement {
            Some(text) => Ok(text.clone()),
            None => read(&self.path, &self.name),
        }
    }

    /// True if a file that cannot be read may be a manifest.
    pub(in crate::manifest) fn may_be_manifest(&self) -> bool {
        let bytes = std::fs::read(&self.path);
        bytes.map_or(true, |bytes| super::is_manifest(&String::from_utf8_lossy(&bytes)))
    }
}

/// Reads a text file of at most 1 MiB.
pub(in crate::manifest) fn read(path: &Path, name: &FileName) -> Result<String, Box<Diagnostic>> {
    let fault = |code, message: String, help: Option<&str>| {
        Box::new(
            Diagnostic::error(code, message).at(SourceLocation::file(name.clone())).help_if(help),
        )
    };
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes));
    read.map_err(|error| fault("unreadable", format!("cannot read the file: {error}"), None))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(fault(
            "too-large",
            "the file is larger than 1 MiB".into(),
            Some("split it: documents may stand in any file"),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        fault("not-utf-8", format!("line {line} is not UTF-8 text"), Some("save the file as UTF-8"))
    })
}

/// The type of the file at `path` if it is not a regular file. Reading a pipe could wait for ever,
/// and links could lead anywhere.
///
/// # Errors
/// The error of the system, for example that the file does not exist.
pub(in crate::manifest) fn special_file_type(path: &Path) -> std::io::Result<Option<&'static str>> {
    let kind = std::fs::symlink_metadata(path)?.file_type();
    Ok(match kind {
        kind if kind.is_file() => None,
        kind if kind.is_symlink() => Some("a symbolic link"),
        kind if kind.is_dir() => Some("a folder"),
        _ => Some("a pipe or a device"),
    })
}

/// True if a file with this name is a manifest, unless it is hidden or reserved.
pub fn is_manifest_name(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yaml" || end == "yml")
}

/// `named` if it is a folder, otherwise the folder that contains it.
pub fn folder_of(named: &Path) -> &Path {
    if !named.is_file() {
        return named;
    }
    let parent = named.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Every manifest of `root`, ordered by name. Without an `undrift.yaml`, a named file is the only
/// one.
pub(in crate::manifest) fn find(
    named: &Path,
    root: &Root,
    environment: &LoadEnvironment,
    diagnostics: &mut Diagnostics,
) -> Vec<ManifestFile> {
    let name = environment.display_path(named).into();
    let named_file =
        ManifestFile { name, path: named.to_owned(), is_named: true, replacement: None };
    if named.is_file() && !root.is_configured {
        return vec![named_file];
    }
    let mut search = ManifestSearch {
        root,
        named: canonical_path(named),
        files: Vec::new(),
        bytes: 0,
        diagnostics,
    };
    search.search_folder(&root.folder, &RESERVED, 0);
    if !search.files.iter().any(|file| file.is_named) {
        // A hidden file or a file with another extension only counts if it is named.
        if named.is_file() {
            search.files.push(named_file);
        } else if root.folder != named {
            let folder = search.named.clone();
            search.search_folder(&folder, &[], 0);
        }
    }
    let ManifestSearch { mut files, bytes, .. } = search;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let is_many = files.len() > MAX_FILES;
    if is_many || bytes > MAX_TOTAL {
        let what = if is_many { MAX_FILES.to_string() } else { "256 MiB of".to_owned() };
        let message = format!("more than {what} manifests");
        let large = Diagnostic::error("too-large", message);
        diagnostics.push(large.help("name a folder that contains only the manifests"));
        files.clear();
    } else if !files.iter().any(|file| file.is_named) && diagnostics.is_empty() {
        let none = Diagnostic::error("no-manifests", "this folder has no manifests")
            .at(SourceLocation::file(environment.display_path(named)));
        diagnostics.push(none.help("a manifest is a file `*.yaml` or `*.yml`; hidden folders and symbolic links are skipped"));
    }
    files
}

/// The files with the texts of `replacements`. A name without a file adds one.
pub(in crate::manifest) fn replace_texts(
    mut files: Vec<ManifestFile>,
    replacements: &BTreeMap<FileName, String>,
) -> Vec<ManifestFile> {
    for (name, text) in replacements {
        let replacement = Some(text.clone());
        match files.binary_search_by(|file| file.name.cmp(name)) {
            Ok(at) => files[at].replacement = replacement,
            Err(at) => {
                let path = PathBuf::from(&**name);
                let name = name.clone();
                files.insert(at, ManifestFile { name, path, is_named: true, replacement });
            }
        }
    }
    files
}

/// The canonical path of the folder or file. If the file itself is a link, it is not followed.
fn canonical_path(named: &Path) -> PathBuf {
    match named.file_name() {
        Some(name) if named.is_file() => canonical_path(folder_of(named)).join(name),
        _ => named.canonicalize().unwrap_or_else(|_| named.to_owned()),
    }
}

/// A search for manifests.
struct ManifestSearch<'d> {
    root: &'d Root,
    /// The canonical named path.
    named: PathBuf,
    files: Vec<ManifestFile>,
    bytes: u64,
    diagnostics: &'d mut Diagnostics,
}

impl ManifestSearch<'_> {
    /// Adds the files in `folder`, except `reserved` ones.
    fn search_folder(&mut self, folder: &Path, reserved: &[&str], depth: usize) {
        if let Err(error) = self.search_entries(folder, reserved, depth) {
            let message = match error.kind() {
                ErrorKind::NotFound => "no such file or folder".to_owned(),
                _ => format!("cannot read the folder: {error}"),
            };
            let unreadable = Diagnostic::error("unreadable", message);
            self.diagnostics.push(unreadable.at(SourceLocation::file(self.root.name(folder))));
        }
    }

    fn search_entries(
        &mut self,
        folder: &Path,
        reserved: &[&str],
        depth: usize,
    ) -> std::io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(std::io::Error::other("folders lie too deep in each other"));
        }
        let real = folder.canonicalize()?;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let file_name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if file_name.starts_with('.') || self.files.len() > MAX_FILES {
                continue;
            } else if kind.is_dir() {
                self.search_folder(&entry.path(), &[], depth + 1);
            } else if kind.is_file()
                && is_manifest_name(file_name.as_ref())
                && !reserved.contains(&file_name.as_str())
                && !(real == self.named && RESERVED.contains(&file_name.as_str()))
            {
                self.bytes = self.bytes.saturating_add(entry.metadata()?.len());
                let path = entry.path();
                let name = self.root.name(&path).into();
                let is_named = real.join(entry.file_name()).starts_with(&self.named);
                self.files.push(ManifestFile { name, path, is_named, replacement: None });
            }
        }
        Ok(())
    }
}
