//! The base of a branch: its commit, and the declarations of the manifests there.
//!
//! `--base` names it. For `plan`, variables of the CI job also do, because they only change how a
//! plan is shown. `apply` excludes drift if there is a base, which must be requested explicitly.
//! Variables may be wrong, so a base from them that cannot be used only causes a warning. A base
//! that was requested explicitly must exist.

mod git;
mod repository;

use std::path::Path;

use tempfile::TempDir;

use super::{CommandError, Environment, RunContext};
use crate::{
    desired::Desired,
    diagnostic::{Diagnostic, Diagnostics, FilePaths, Severity},
    manifest::{self, Config, Includes, LoadEnvironment, Loaded, Options, folder_of},
    text::escape,
};
use git::{GitRepository, git_failure};

/// The base, from the command line.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct BaseArgs {
    /// Compare with the manifests at this commit, branch or tag, to separate the changes of this
    /// branch from earlier differences; `none` for no base
    #[arg(long, value_name = "REF", help_heading = "Base")]
    pub(in crate::cli) base: Option<String>,
}

/// The word for no base.
const NO_BASE: &str = "none";
/// The base of a merge request's diff, in its pipelines.
const MERGE_REQUEST_BASE: &str = "CI_MERGE_REQUEST_DIFF_BASE_SHA";
/// The commit of the branch before the push that started the pipeline; zeros if there is none.
/// Outside the default branch it is of little use: it is the previous push.
const PUSH_BASE: &str = "CI_COMMIT_BEFORE_SHA";

/// A requested base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct BaseRequest {
    revision: String,
    /// The variable that names it, if it is not from the command line.
    variable: Option<&'static str>,
}

impl BaseArgs {
    /// The base from the command line.
    pub(in crate::cli) fn explicit_base(&self) -> Option<BaseRequest> {
        let revision = self.base.clone().filter(|base| base != NO_BASE)?;
        Some(BaseRequest { revision, variable: None })
    }

    /// The base from the command line, or else from the variables of the job.
    pub(in crate::cli) fn explicit_or_job_base(&self, env: &Environment) -> Option<BaseRequest> {
        if self.base.is_some() {
            return self.explicit_base();
        }
        let branch = env.get("CI_COMMIT_BRANCH");
        let is_default = branch.is_some() && branch == env.get("CI_DEFAULT_BRANCH");
        let push_base = Some(PUSH_BASE).filter(|_| is_default);
        [Some(MERGE_REQUEST_BASE), push_base].into_iter().flatten().find_map(|variable| {
            let revision = env.get(variable).filter(|id| id.bytes().any(|byte| byte != b'0'))?;
            Some(BaseRequest { revision: revision.to_owned(), variable: Some(variable) })
        })
    }
}

/// The base that was found.
pub(in crate::cli) struct ResolvedBase {
    /// The revision as named.
    pub(in crate::cli) revision: String,
    /// The manifests there; `None` if they cannot be used, which was reported.
    pub(in crate::cli) content: Option<BaseContent>,
}

/// The manifests at a base.
#[derive(Default)]
pub(in crate::cli) struct BaseContent {
    /// Their declarations.
    pub(in crate::cli) desired: Desired,
    /// Their rules with `undeclared: include`.
    pub(in crate::cli) includes: Option<Includes>,
    /// Their `undrift.yaml`.
    pub(in crate::cli) config: Config,
    /// Their faults: warnings.
    pub(in crate::cli) diagnostics: Diagnostics,
    /// The paths of their files.
    pub(in crate::cli) paths: FilePaths,
    /// Their files, kept until they are no longer needed.
    _files: Option<TempDir>,
}

impl BaseRequest {
    /// Reads the manifests of `named` at this base. If it comes from a variable and cannot be used,
    /// there is only a warning; the same for a base with faults, for a plan.
    ///
    /// # Errors
    /// If the command line names a base that cannot be used; with `must_be_usable`, also if it has
    /// faults.
    pub(in crate::cli) fn read(
        self,
        named: &Path,
        surroundings: &LoadEnvironment,
        must_be_usable: bool,
        cx: &RunContext,
    ) -> Result<ResolvedBase, CommandError> {
        let (content, fault) = match self.load_content(named, surroundings, cx) {
            Ok(Ok(content)) => (Some(content), None),
            Ok(Err(fault)) => (None, Some((fault, must_be_usable))),
            Err(fault) => (None, Some((fault, self.variable.is_none()))),
        };
        if let Some((CommandError { error, help, .. }, is_fatal)) = fault {
            let variable = self.variable.map(|name| format!("{name}: ")).unwrap_or_default();
            let message = error.map(|error| error.to_string()).unwrap_or_default();
            let message = format!("no base to compare with: {variable}{message}");
            if is_fatal {
                return Err(CommandError { help, ..CommandError::usage(message) });
            }
            let warning = Diagnostic::warning("base", message).help_if(help);
            let warnings = [warning].into_iter().collect::<Diagnostics>();
            cx.output.eprint_diagnostics(&warnings);
        }
        Ok(ResolvedBase { revision: self.revision, content })
    }

    /// Loads the manifests at the base, or returns their first fault.
    fn load_content(
        &self,
        named: &Path,
        surroundings: &LoadEnvironment,
        cx: &RunContext,
    ) -> Result<Result<BaseContent, CommandError>, CommandError> {
        let repository = GitRepository::find(folder_of(named))?;
        let commit = repository.commit(&self.revision)?;
        let root = find_root(&repository, &commit, named)?;
        repository.check_all_manifests(&commit, &root)?;
        let folder = private_folder().map_err(|error| {
            let message = format!("cannot make a temporary folder: {error}");
            git_failure(message, "make sure that there is room in it")
        })?;
        if repository.export(&commit, &root, folder.path())? == 0 {
            cx.output.eprint(&format!(
                "note: `{}` has no manifests in `{}`, so all of them count as changes of this branch\n",
                escape(&self.revision),
                if root.is_empty() { "." } else { root.as_str() },
            ));
            return Ok(Ok(BaseContent::default()));
        }
        let surroundings =
            LoadEnvironment { folder: folder.path().to_owned(), ..surroundings.clone() };
        let options = Options { allows_missing_files: true, ..Options::default() };
        let loaded = manifest::load_with(&folder.path().join(&root), &surroundings, &options);
        Ok(into_content(loaded, folder))
    }
}

/// The manifests `loaded` from `folder`, or their first fault.
fn into_content(loaded: Loaded, folder: TempDir) -> Result<BaseContent, CommandError> {
    let paths = loaded.paths_below_root();
    let Some(desired) = loaded.desired else {
        let faults = loaded.diagnostics.sorted();
        let first = faults.into_iter().find(|fault| fault.severity == Severity::Error);
        let text = first.map(one_line).unwrap_or_default();
        let message = format!("its manifests have faults; the first is {text}");
        let help = "name a base whose manifests pass `undrift check`, or pass `--base none`";
        return Err(git_failure(message, help));
    };
    let Loaded { includes, config, diagnostics, .. } = loaded;
    Ok(BaseContent { desired, includes, config, diagnostics, paths, _files: Some(folder) })
}

/// A fault on one line, with its file.
fn one_line(fault: &Diagnostic) -> String {
    let message = escape(&fault.message);
    match &fault.place {
        Some(place) => format!("in `{}`: {message}", escape(&place.file)),
        None => message.into_owned(),
    }
}

/// The root of the manifests at `commit`: the nearest folder upwards with an `undrift.yaml`, or
/// else the named one. Relative to the repository, without a `/` at the end.
fn find_root(
    repository: &GitRepository,
    commit: &str,
    manifests: &Path,
) -> Result<String, CommandError> {
    let folder = repository.prefix.as_str();
    let mut folders = vec![folder];
    while let Some(last) = folders.last().filter(|last| !last.is_empty()) {
        folders.push(last.rsplit_once('/').map_or("", |(parent, _)| parent));
    }
    let configs: Vec<_> =
        folders.iter().map(|folder| join_path(folder, manifest::config::FILE)).collect();
    let existing = repository.files(commit, &configs)?;
    if let Some((root, _)) = folders.iter().zip(&configs).find(|(_, file)| existing.contains(file))
    {
        return Ok((*root).to_owned());
    }
    let file =
        manifests.file_name().and_then(std::ffi::OsStr::to_str).filter(|_| manifests.is_file());
    Ok(file.map_or_else(|| folder.to_owned(), |name| join_path(folder, name)))
}

/// The path of `name` in a folder of the repository, which is empty for its root.
fn join_path(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A temporary folder that only this user can read, like a repository. It is removed when dropped.
fn private_folder() -> std::io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("undrift-base-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let folder = builder.tempdir()?;
    // The end of the search for an `undrift.yaml`: files in folders above are not used.
    std::fs::create_dir(folder.path().join(".git"))?;
    Ok(folder)
}
