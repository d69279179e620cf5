//! What people write: read, layered and checked, up to [`Desired`].
//!
//! [`load`] looks for the root, which is the folder of `undrift.yaml`, and takes all manifests below
//! it through three parts. `read` makes located documents of each file, `layer` merges them into
//! groups and projects, `check` finds what is wrong with the whole and makes [`Desired`] of it. What
//! was named, a folder or a file, only says which groups and projects the run is about.
//!
//! Every fault of every file is reported in one run, with its place and its line, and none of them
//! shows a secret (`mask`). The order of files and documents never matters.

use std::path::{Path, PathBuf};

mod check;
pub mod config;
pub mod descriptions;
mod faults;
mod layer;
mod mask;
mod parallel;
mod place;
mod read;
mod report;
pub mod schema;
mod surroundings;

pub use config::Config;
pub use report::{check_report, counted};
pub use surroundings::Surroundings;

use check::Context;
use read::{File, files};
use surroundings::Root;

use crate::{
    desired::Desired,
    diagnostic::{Diagnostic, Diagnostics, FileName, Place},
    secret::Secrets,
};

/// What was found in a folder or a file.
#[derive(Debug)]
pub struct Loaded {
    /// The folder that paths of file secrets are relative to: that of `undrift.yaml`, or the one
    /// that was named.
    pub root: PathBuf,
    /// What messages call the root, if it is not what was named.
    root_name: Option<String>,
    /// The manifests that were read, in the order of their names.
    pub files: Vec<FileName>,
    /// How many of them were named, or are in the folder that was.
    pub named: usize,
    /// What those that were named declare; `None` if something is wrong with any manifest.
    pub desired: Option<Desired>,
    /// What `undrift.yaml` says, or the defaults.
    pub config: Config,
    /// Everything that is wrong, and every warning.
    pub diagnostics: Diagnostics,
}

/// Reads the manifests that belong together with what is in `named`, a folder or a file, and the
/// `undrift.yaml` that counts for them.
pub fn load(named: &Path, around: &Surroundings) -> Loaded {
    let mut diagnostics = Diagnostics::default();
    let folder = files::folder_of(named);
    let root = Root::of(folder, around);
    let found = files::find(named, &root, around, &mut diagnostics);
    let config = config::load(&root, &mut diagnostics);
    let context = Context {
        tier: config.service.tier,
        manages: config.manages.clone(),
        release: config.service.release,
        today: around.today,
        files: Secrets::new(&root.folder, []),
    };
    let desired = through_the_parts(&found, &context, &mut diagnostics);
    if desired.containers.is_empty() && !diagnostics.has_errors() {
        // What came out empty is a slip, and "nothing to do" would hide it.
        let name = if let [only] = &*found { only.name.clone() } else { around.seen(named).into() };
        let message = "no manifest here declares a group or project";
        let none = Diagnostic::error("no-manifests", message).at(Place::file(name));
        diagnostics.push(none.help("each document starts with `kind: Project` and `path: ...`"));
    }
    Loaded {
        root_name: root.name_unless(named),
        root: root.folder,
        named: found.iter().filter(|file| file.is_named).count(),
        files: found.into_iter().map(|file| file.name).collect(),
        desired: (!diagnostics.has_errors()).then_some(desired),
        config,
        diagnostics,
    }
}

/// Reads, layers and checks `files`.
fn through_the_parts(files: &[File], context: &Context, diagnostics: &mut Diagnostics) -> Desired {
    let (mut documents, mut counts) = (Vec::new(), place::Counts::new());
    for (file, read) in files.iter().zip(parallel::for_each(files.iter().collect(), read::file)) {
        if !read.diagnostics.is_empty() {
            counts.insert(file.name.clone(), (read.diagnostics.len(), read.more));
        }
        diagnostics.extend(read.diagnostics);
        documents.extend(read.documents);
    }
    let (desired, faults) = check::check(layer::merge(documents), context);
    diagnostics.extend(place::place(faults, counts, files));
    desired.without_idle_acknowledgements()
}

#[cfg(test)]
mod tests;
