//! What people write: read, layered and checked, up to [`Desired`].
//!
//! [`load`] looks for the root, which is the folder of `undrift.yaml`, and takes all manifests below
//! it through three parts. `read` makes located documents of each file, `layer` merges them into
//! groups and projects, `check` finds what is wrong with the whole and makes [`Desired`] of it. What
//! was named, a folder or a file, only says which groups and projects the run is about.
//!
//! Every fault of every file is reported in one run, with its place and its line, and none of them
//! shows a secret (`mask`). The order of files and documents never matters.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

mod check;
pub mod config;
pub mod descriptions;
mod effective;
mod faults;
mod include;
mod layer;
mod lints;
mod locate;
mod mask;
mod parallel;
mod read;
mod report;
pub mod schema;
mod surroundings;

pub use config::Config;
pub use include::Includes;
pub use layer::{Fate, Link, Said, Told, Trace, What};
pub use lints::{Lint, Warnings};
pub(crate) use read::files::{MAX_FILE, MAX_FILES, MAX_TOTAL, RESERVED, folder_of};
pub use report::{check_report, counted};
pub use surroundings::Surroundings;

use check::Context;
use faults::Findings;
use jiff::civil::Date;
use read::{File, files};
use schema::Checker;
use surroundings::Root;

use crate::{
    address::Glob,
    desired::Desired,
    diagnostic::{Diagnostic, Diagnostics, FileName, Place, Severity, Source},
    secret::Secrets,
    value::Json,
    yaml,
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
    /// Where these files are, in the same order.
    paths: Vec<PathBuf>,
    /// How many of them were named, or are in the folder that was.
    pub named: usize,
    /// What those that were named declare; `None` if something is wrong with any manifest.
    pub desired: Option<Desired>,
    /// The rules that bring in more, of those that were named, if there are any.
    pub includes: Option<Includes>,
    /// What `undrift.yaml` says, or the defaults.
    pub config: Config,
    /// Everything that is wrong, and every warning that is told.
    pub diagnostics: Diagnostics,
    /// How loud warnings are.
    pub warnings: Warnings,
    /// How what was named is put together, where somebody asked for that.
    pub traces: Vec<Trace>,
}

impl Loaded {
    /// Drops the warnings at places that are not `wanted`.
    pub fn retain_warnings(&mut self, wanted: impl Fn(&Place) -> bool) {
        let is_wanted = |diagnostic: &Diagnostic| {
            diagnostic.severity == Severity::Error || diagnostic.place.as_ref().is_none_or(&wanted)
        };
        self.diagnostics.retain(is_wanted);
        self.warnings.retain(is_wanted);
    }

    /// Where the files are, by what messages call them.
    pub fn paths(&self) -> BTreeMap<FileName, PathBuf> {
        self.files.iter().cloned().zip(self.paths.iter().cloned()).collect()
    }
}

/// Reads the manifests that belong together with what is in `named`, a folder or a file, and the
/// `undrift.yaml` that counts for them.
pub fn load(named: &Path, around: &Surroundings) -> Loaded {
    load_with(named, around, &Options::default())
}

/// How manifests are loaded where that is not the usual way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Other texts than what files of these names hold, and more files, if there are none of these
    /// names.
    pub instead: Option<&'a BTreeMap<FileName, String>>,
    /// A [`Trace`] of each group and project of which the path matches one of these.
    pub traced: &'a [Glob],
    /// Whether the files that manifests name are elsewhere, so that none of them is missed.
    pub without_files: bool,
}

/// The same as `options` say.
pub fn load_with(named: &Path, around: &Surroundings, options: &Options<'_>) -> Loaded {
    let mut diagnostics = Diagnostics::default();
    let folder = files::folder_of(named);
    let root = Root::of(folder, around);
    let mut found = files::find(named, &root, around, &mut diagnostics);
    if let Some(instead) = options.instead {
        found = files::with(found, instead);
    }
    let config = config::load(&root, &mut diagnostics);
    let context = Context {
        tier: config.service.tier,
        manages: config.manages.clone(),
        release: config.service.release,
        today: around.today,
        files: (!options.without_files).then(|| Secrets::new(&root.folder, [])),
    };
    let root_name = root.name_unless(named);
    let empty = || around.seen(named).into();
    let files: Vec<_> = found.iter().map(|file| file.name.clone()).collect();
    let paths: Vec<_> = found.iter().map(|file| file.path.clone()).collect();
    let named = found.iter().filter(|file| file.is_named).count();
    let only = if let [only] = &*found { Some(only.name.clone()) } else { None };
    let Read { desired, includes, traces } =
        through_the_parts(found, context, options.traced, &mut diagnostics);
    let from_root = |path: &PathBuf| {
        path.strip_prefix(&root.folder).unwrap_or(path).to_string_lossy().to_lowercase()
    };
    let warnings = lints::apply(&config.lints, &mut diagnostics, || {
        files.iter().cloned().zip(paths.iter().map(from_root)).collect()
    });
    if desired.containers.is_empty() && includes.is_none() && !diagnostics.has_errors() {
        // What came out empty is a slip, and "nothing to do" would hide it.
        let name = only.unwrap_or_else(empty);
        let message = "no manifest here declares a group or project";
        let none = Diagnostic::error("no-manifests", message).at(Place::file(name));
        diagnostics.push(none.help("each document starts with `kind: Project` and `path: ...`"));
    }
    Loaded {
        root_name,
        root: root.folder,
        named,
        files,
        paths,
        includes: includes.filter(|_| !diagnostics.has_errors()),
        desired: (!diagnostics.has_errors()).then_some(desired),
        config,
        diagnostics,
        warnings,
        traces,
    }
}

/// What manifests of these `texts` declare, without any others.
///
/// # Errors
/// What is wrong with them.
pub fn of_texts(
    texts: impl IntoIterator<Item = (FileName, String)>,
    today: Date,
) -> Result<Desired, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let file = |(name, text): (FileName, String)| File::of_text(name, text);
    let files = texts.into_iter().map(file).collect();
    let context = Context { tier: None, manages: None, release: None, today, files: None };
    let Read { desired, .. } = through_the_parts(files, context, &[], &mut diagnostics);
    if diagnostics.has_errors() { Err(diagnostics) } else { Ok(desired) }
}

/// The text of a manifest as it may be shown: without what is secret in it, but for texts that are
/// known to be `plain`.
pub fn shown(text: &str, plain: &BTreeSet<String>) -> String {
    let parsed = yaml::parse(text);
    let mut source = Source::new("", text);
    read::hide(&mut source, &parsed);
    source.shown(|hidden| {
        let parsed = yaml::parse(hidden);
        parsed.documents.iter().any(|node| node.text().is_some_and(|text| plain.contains(text)))
    })
}

/// What is wrong with a file that is to hold one document of `schema` and is no manifest, without any of
/// its lines: nothing marks what is secret in it.
pub fn faults_of(text: &str, name: FileName, schema: Json) -> Diagnostics {
    let parsed = yaml::parse(text);
    let mut findings = Findings::default();
    findings.add_yaml(&parsed);
    if findings.is_empty() {
        match &parsed.documents[..] {
            [document] => {
                drop(findings.add_schema(document, &document.to_json(), &Checker::new(schema)));
            }
            _ => drop(findings.error("document", "the file must hold one document", 0..0)),
        }
    }
    let (faults, more) = findings.place_without_text(&Source::new(name.clone(), text));
    faults.into_iter().chain(more.diagnostic(name)).collect()
}

/// What manifests come to.
struct Read {
    desired: Desired,
    includes: Option<Includes>,
    traces: Vec<Trace>,
}

/// Reads, layers and checks `files`, and traces what is at `traced`.
fn through_the_parts(
    files: Vec<File>,
    context: Context,
    traced: &[Glob],
    diagnostics: &mut Diagnostics,
) -> Read {
    let (mut documents, mut counts) = (Vec::new(), locate::Counts::new());
    for (file, read) in files.iter().zip(parallel::for_each(files.iter().collect(), read::file)) {
        if !read.diagnostics.is_empty() {
            counts.insert(file.name.clone(), (read.diagnostics.len(), read.more));
        }
        diagnostics.extend(read.diagnostics);
        documents.extend(read.documents);
    }
    let mut layered = layer::merge(documents, traced);
    let rules = std::mem::take(&mut layered.rules);
    let mut traces = std::mem::take(&mut layered.traces);
    traces.retain(Trace::is_named);
    let paths = layered.containers.iter().map(|known| known.path.value.to_lowercase()).collect();
    let (desired, faults) = check::check(layered, &context);
    diagnostics.extend(locate::place(faults, counts, &files));
    match Includes::of(rules, context, files, paths) {
        // What an acknowledgement is about may be brought in yet.
        Some(includes) => Read { desired, includes: Some(includes), traces },
        None => Read { desired: desired.without_idle_acknowledgements(), includes: None, traces },
    }
}

#[cfg(test)]
mod tests;
