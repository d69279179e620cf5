//! Checks that files which manifests name can be read.

use std::path::{Component, Path};

use super::{Check, found};
use crate::{
    desired::Container,
    diagnostic::Severity,
    manifest::faults::{Finding, Spot},
    secret::{Reference, without_newline},
    value::Value,
};

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
                    _ if path.contains('\\') => "write `/` between the folders, also on Windows",
                    _ if path.starts_with(['~', '$']) => "write a path inside the folder of the manifests: `~` and `$` are not filled in",
                    true => "correct the path: it begins at the folder of all manifests, not at that of this file",
                    false if is_secret => "correct the path, which begins at the folder of the manifests, or make sure that the file is there when `apply` runs",
                    false => "correct the path: it begins at the folder of the manifests",
                });
            }
        }
        self.masked_files(container);
    }

    /// Warns of masked variables from files with something that cannot be masked, such as several
    /// lines. The job that applies may put another file there.
    fn masked_files(&mut self, container: &Container) {
        let Some(files) = &self.context.files else { return };
        let variables =
            container.sections.iter().filter(|own| own.of.table().get("masked").is_some());
        for (of, entry) in variables.flat_map(|own| own.entries.iter().map(|entry| (own.of, entry)))
        {
            let is_on = |name: &str| {
                entry.fields.get(name).is_some_and(|field| field.value.flag() == Some(true))
            };
            let value = entry.fields.get("value");
            let Some(value) = value.filter(|_| is_on("masked") || is_on("masked_and_hidden"))
            else {
                continue;
            };
            let Value::Secret(Reference::File(path)) = &value.value else { continue };
            let Some(text) =
                files.read_file(path).ok().and_then(|text| String::from_utf8(text).ok())
            else {
                continue;
            };
            let mut values = entry.values();
            values.insert("value".to_owned(), without_newline(&text).into());
            of.check(&values, false, &mut |fault| {
                if fault.code == "masked-value" {
                    let at = Spot::key(&value.origin);
                    let fault = Finding {
                        severity: Severity::Warning,
                        code: "reference",
                        ..found(fault, at)
                    };
                    self.faults.push(fault).label("with what is in the file now");
                }
            });
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
