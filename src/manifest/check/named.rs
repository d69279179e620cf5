//! Checks that files which manifests name can be read.

use std::path::{Component, Path};

use super::Check;
use crate::{desired::Container, manifest::faults::Spot, secret::Reference, value::Value};

impl Check<'_> {
    /// Files to upload are in Git next to the manifests. An unreadable one is an error, so that it
    /// is not found in the middle of an apply. A secret file may be created later, in the job that
    /// applies, so a missing one is a warning.
    pub(super) fn named_files(&mut self, container: &Container) {
        let Some(files) = &self.context.files else { return };
        for (address, origin, value) in container.named() {
            let is_secret = matches!(value, Value::Secret(_));
            for source in value.sources() {
                let Reference::File(path) = source else { continue };
                // A file outside the folder, or with an odd path, is reported as another error.
                let why = files.read_file(&path).err().filter(|_| is_below(&path));
                let (Some(why), at) = (why, Spot::key(&origin)) else { continue };
                let missing = if is_secret {
                    self.faults.warning("missing-file", why.to_string(), at)
                } else {
                    self.faults.error("missing-file", why.to_string(), at)
                };
                missing.label(address.to_string());
                let beside = Path::new(&*origin.file).with_file_name(&path);
                missing.help(match beside.is_file() {
                    true => "correct the path: it begins at the folder of all manifests, not at that of this file",
                    false if is_secret => "correct the path, which begins at the folder of the manifests, or make sure that the file is there when `apply` runs",
                    false => "correct the path: it begins at the folder of the manifests",
                });
            }
        }
    }
}

/// Whether `path` stays inside the folder that it is relative to, and has no odd characters.
pub(in crate::manifest) fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty()
        && !path.contains("://")
        && !path.contains(char::is_control)
        && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}
