//! What loading depends on besides the files that are named: where the reader stands, and which day
//! it is.
//!
//! Both are injected. Places are shown as seen from the working directory, so that they can be
//! opened from there; and the root of the manifests is looked for upwards, so that naming a
//! subfolder does not lose what `undrift.yaml` says.

use std::{
    io::ErrorKind,
    path::{Component, Path, PathBuf},
};

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::config::{FILE, MISNAMED};

/// Where the reader stands, and which day it is.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The working directory. Relative paths are those of the process.
    pub folder: PathBuf,
    /// Today, in UTC.
    pub today: Date,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        let folder = std::env::current_dir().unwrap_or_default();
        Self { folder, today: Timestamp::now().to_zoned(TimeZone::UTC).date() }
    }

    /// `path` as it is seen from the working directory, with `/` between its parts.
    pub(super) fn seen(&self, path: &Path) -> String {
        let inner = path.strip_prefix(&self.folder).unwrap_or(path);
        let parts: PathBuf = inner.components().filter(|part| *part != Component::CurDir).collect();
        let parts = parts.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
        if parts.is_empty() { ".".to_owned() } else { parts }
    }

    /// As [`Self::seen`], for a folder on the way up from the working directory or anywhere else.
    /// `folder` is as the system knows it.
    fn seen_upwards(&self, folder: &Path) -> String {
        let here = self.folder.canonicalize().unwrap_or_else(|_| self.folder.clone());
        match here.strip_prefix(folder) {
            Ok(down) if down.as_os_str().is_empty() => ".".to_owned(),
            Ok(down) => vec![".."; down.components().count()].join("/"),
            Err(_) => folder.strip_prefix(&here).unwrap_or(folder).to_string_lossy().into_owned(),
        }
    }
}

/// The root of manifests: the folder of `undrift.yaml`, or the one that was named.
#[derive(Clone, Debug)]
pub(super) struct Root {
    /// The folder.
    pub(super) folder: PathBuf,
    /// Its `undrift.yaml` in messages, whether it is there or not.
    pub(super) config: String,
}

impl Root {
    /// The root of what is in `named`: the first folder upwards with an `undrift.yaml`, up to the
    /// root of the repository.
    pub(super) fn of(named: &Path, around: &Surroundings) -> Self {
        let own = Self { folder: named.to_owned(), config: join(&around.seen(named), FILE) };
        let Ok(real) = named.canonicalize() else { return own };
        for (steps, folder) in real.ancestors().enumerate() {
            if is_anything(&folder.join(FILE)) || is_anything(&folder.join(MISNAMED)) {
                return if steps == 0 {
                    own
                } else {
                    Self {
                        folder: folder.to_owned(),
                        config: join(&around.seen_upwards(folder), FILE),
                    }
                };
            }
            if is_anything(&folder.join(".git")) {
                break;
            }
        }
        own
    }
}

/// Whether something is at `path`. What cannot be looked at counts: who reads it says why.
fn is_anything(path: &Path) -> bool {
    let absent = |error: std::io::Error| {
        matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
    };
    !path.symlink_metadata().is_err_and(absent)
}

/// `name` in `folder`, as both are shown.
pub(super) fn join(folder: &str, name: &str) -> String {
    match folder {
        "." => name.to_owned(),
        folder => format!("{}/{name}", folder.trim_end_matches('/')),
    }
}
