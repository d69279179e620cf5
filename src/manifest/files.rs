//! Which files are manifests, and reading them: in parallel, within limits, in the order of their
//! names.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    Place, Surroundings,
    surroundings::{self, Root},
};
use crate::diagnostic::{Diagnostic, Diagnostics, FileName};

/// The largest manifest, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The most manifests.
const MAX_FILES: usize = 200_000;

/// The most bytes in all of them.
const MAX_TOTAL: u64 = 256 << 20;

/// How deep folders may lie in each other.
const MAX_DEPTH: usize = 64;

/// Files at the root that are not manifests.
const RESERVED: [&str; 4] =
    [super::config::FILE, super::config::MISNAMED, "sandbox.yaml", "sandbox.yml"];

/// A manifest.
#[derive(Debug)]
pub(super) struct File {
    /// Its path as seen from the working directory, with `/` between the parts.
    pub(super) name: FileName,
    path: PathBuf,
}

impl File {
    /// Its text.
    pub(super) fn read(&self) -> Result<String, Box<Diagnostic>> {
        read(&self.path, &self.name)
    }
}

/// Reads a text file of at most 1 MiB.
pub(super) fn read(path: &Path, name: &FileName) -> Result<String, Box<Diagnostic>> {
    let fault = |code, message: String, help: Option<&str>| {
        Box::new(Diagnostic::error(code, message).at(Place::file(name.clone())).help_if(help))
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

/// What is at `path` if it is no regular file; nobody could be waited for at the other end of a
/// pipe, and links may lead anywhere.
///
/// # Errors
/// What the system says, for example that nothing is there.
pub(super) fn irregular(path: &Path) -> std::io::Result<Option<&'static str>> {
    let kind = std::fs::symlink_metadata(path)?.file_type();
    Ok(match kind {
        kind if kind.is_file() => None,
        kind if kind.is_symlink() => Some("a symbolic link"),
        kind if kind.is_dir() => Some("a folder"),
        _ => Some("a pipe or a device"),
    })
}

/// The folder that `named` is or is in.
pub(super) fn folder_of(named: &Path) -> &Path {
    let parent = || named.parent().filter(|parent| !parent.as_os_str().is_empty());
    if named.is_file() { parent().unwrap_or(Path::new(".")) } else { named }
}

/// Every manifest in `named`. If it is a file, it is the only one.
pub(super) fn find(
    named: &Path,
    root: &Root,
    around: &Surroundings,
    diagnostics: &mut Diagnostics,
) -> Vec<File> {
    let name = around.seen(named);
    if named.is_file() {
        return vec![File { name: name.into(), path: named.to_owned() }];
    }
    let is_root = root.folder == named;
    let mut search = Search { files: Vec::new(), bytes: 0, diagnostics };
    search.folder(named, &name, if is_root { &RESERVED } else { &[] }, 0);
    let Search { mut files, bytes, .. } = search;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let limit = if files.len() > MAX_FILES {
        Some(format!("more than {MAX_FILES} manifests"))
    } else {
        (bytes > MAX_TOTAL).then(|| "more than 256 MiB of manifests".to_owned())
    };
    if let Some(limit) = limit {
        diagnostics.push(
            Diagnostic::error("too-large", limit)
                .help("name a folder that holds only what belongs together"),
        );
        files.clear();
    } else if files.is_empty() && diagnostics.is_empty() {
        let none = Diagnostic::error("no-manifests", "there is no manifest in this folder")
            .at(Place::file(name));
        diagnostics.push(none.help("a manifest is a file `*.yaml` or `*.yml`; hidden folders and symbolic links are skipped"));
    }
    files
}

struct Search<'d> {
    files: Vec<File>,
    bytes: u64,
    diagnostics: &'d mut Diagnostics,
}

impl Search<'_> {
    /// Adds what is in `folder`, which is called `name`, but for the files that are `reserved`.
    fn folder(&mut self, folder: &Path, name: &str, reserved: &[&str], depth: usize) {
        if let Err(error) = self.entries(folder, name, reserved, depth) {
            let message = format!("cannot read the folder: {error}");
            self.diagnostics.push(Diagnostic::error("unreadable", message).at(Place::file(name)));
        }
    }

    fn entries(
        &mut self,
        folder: &Path,
        name: &str,
        reserved: &[&str],
        depth: usize,
    ) -> std::io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(std::io::Error::other("folders lie too deep in each other"));
        }
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let own = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            let is_manifest = own.ends_with(".yaml") || own.ends_with(".yml");
            if own.starts_with('.') || self.files.len() > MAX_FILES {
                continue;
            } else if kind.is_dir() {
                self.folder(&entry.path(), &surroundings::join(name, &own), &[], depth + 1);
            } else if kind.is_file() && is_manifest && !reserved.contains(&own.as_str()) {
                self.bytes = self.bytes.saturating_add(entry.metadata()?.len());
                self.files
                    .push(File { name: surroundings::join(name, &own).into(), path: entry.path() });
            }
        }
        Ok(())
    }
}

/// `work` on every item, on all processors; the results in the order of the items.
pub(super) fn for_each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    if threads < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut own = Vec::new();
                while let Some((at, item)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|at| Some((at, items.get(at)?)))
                {
                    own.push((at, work(item)));
                }
                results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(own);
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
