//! What people write: loaded, checked, and resolved to [`Desired`].
//!
//! [`load`] reads a folder or a file. Each file becomes a located tree ([`crate::yaml`]); each
//! document of it is checked against the schema that the kinds' tables add up to ([`schema`]), its
//! faults are put into words (`faults`), and its entries are resolved and checked by their kinds
//! (`resolve`). Every fault of every file is reported in one run, and none of them shows a secret
//! (`mask`). Files are independent of each other up to the last step, which orders the projects and
//! finds those that are declared twice; so the order of files and documents never matters.

use std::path::{Path, PathBuf};

pub mod config;
mod extra;
mod faults;
mod files;
mod mask;
mod path;
mod resolve;
pub mod schema;
mod surroundings;

pub use config::Config;
pub use surroundings::Surroundings;

use surroundings::Root;

use crate::{
    desired::Desired,
    diagnostic::{Diagnostic, Diagnostics, FileName, Place, Style},
    field::Scope,
    secret::{Reference, Secrets},
    text,
};

/// What was found in a folder or a file.
#[derive(Debug)]
pub struct Loaded {
    /// The folder that paths of files and of file secrets are relative to: that of `undrift.yaml`,
    /// or the one that was named.
    pub root: PathBuf,
    /// The manifests that were read, in the order of their names.
    pub files: Vec<FileName>,
    /// What they declare; `None` if something is wrong with them.
    pub desired: Option<Desired>,
    /// What `undrift.yaml` says, or the defaults.
    pub config: Config,
    /// Everything that is wrong, and every warning.
    pub diagnostics: Diagnostics,
}

/// Reads the manifests below `named`, or the one manifest that it is, and the `undrift.yaml` that
/// counts for them.
pub fn load(named: &Path, around: &Surroundings) -> Loaded {
    let mut diagnostics = Diagnostics::default();
    let root = Root::of(files::folder_of(named), around);
    let found = files::find(named, &root, around, &mut diagnostics);
    let config = config::load(&root, &mut diagnostics);
    let read = files::for_each(&found, |file| {
        resolve::file(&file.name, file.read(), config.service.tier, around.today)
    });
    let mut containers = Vec::new();
    for result in read {
        diagnostics.extend(result.diagnostics);
        containers.extend(result.containers);
    }
    let containers = resolve::unique(containers, &mut diagnostics);
    if containers.is_empty() && !diagnostics.has_errors() {
        // What came out empty is a slip, and "nothing to do" would hide it.
        let place =
            if let [only] = &*found { only.name.clone() } else { around.seen(named).into() };
        let none =
            Diagnostic::error("no-manifests", "no manifest here declares a group or project")
                .at(Place::file(place));
        diagnostics.push(none.help("each document starts with `kind: Project` and `path: ...`"));
    }
    let desired = Desired { containers, acknowledgements: Vec::new() };
    diagnostics.extend(missing_files(&root.folder, &desired));
    let desired = (!diagnostics.has_errors()).then_some(desired);
    Loaded {
        root: root.folder,
        files: found.into_iter().map(|file| file.name).collect(),
        desired,
        config,
        diagnostics,
    }
}

/// Files to upload are in Git beside the manifests: one that cannot be read is a slip, which nobody
/// should meet halfway through an apply. A file that holds a secret may be made later, in the job
/// that applies, so its absence is a warning.
fn missing_files(folder: &Path, desired: &Desired) -> Vec<Diagnostic> {
    let files = Secrets::new(folder, []);
    let secrets = desired.references().filter_map(|(address, origin, reference)| {
        let Reference::File(path) = reference else { return None };
        // One outside the folder is an error of its own, found where it is written.
        let why = files.read_file(path).err().filter(|_| resolve::is_below(path))?;
        let missing = Diagnostic::warning("missing-file", why.to_string())
            .at(Place::from(origin))
            .label(address.to_string());
        Some(
            missing.help("correct the path, or make sure that the file is there when `apply` runs"),
        )
    });
    let missing = desired.uploads().filter_map(|(address, origin, path)| {
        let why = files.read_file(path).err()?;
        Some(
            Diagnostic::error("missing-file", why.to_string())
                .at(Place::from(origin))
                .label(address.to_string()),
        )
    });
    missing.chain(secrets).collect()
}

impl Loaded {
    /// What `undrift check` prints, and its exit code: 3 if something is wrong, else 0.
    pub fn report(&self, style: Style) -> (String, u8) {
        let mut report = self.diagnostics.render(style);
        let files = text::count(self.files.len(), "file");
        match (&self.desired, self.diagnostics.summary()) {
            (Some(desired), summary) => {
                let projects = counted(desired);
                let summary = summary.map_or_else(
                    || "nothing is wrong".to_owned(),
                    |summary| format!("no errors, {summary}"),
                );
                report.push_str(&format!("{projects} in {files}: {summary}\n"));
                (report, 0)
            }
            (None, summary) => {
                report.push_str(&format!("{files}: {}\n", summary.unwrap_or_default()));
                (report, 3)
            }
        }
    }
}

/// How many containers are declared, in words: the scopes that have some, and projects at least.
pub fn counted(desired: &Desired) -> String {
    let count = |scope: Scope| text::count(desired.count(scope), scope.noun());
    match desired.count(Scope::Group) {
        0 => count(Scope::Project),
        _ if desired.count(Scope::Project) == 0 => count(Scope::Group),
        _ => format!("{} and {}", count(Scope::Group), count(Scope::Project)),
    }
}

/// Loads the manifests below `named` and reports on them, as [`Loaded::report`] does.
pub fn check_report(named: &Path, around: &Surroundings, style: Style) -> (String, u8) {
    load(named, around).report(style)
}

#[cfg(test)]
mod tests;
