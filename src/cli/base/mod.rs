//! The base of a branch: a commit, and the declarations of the manifests at that commit.
//!
//! The option `--base` names the base. `plan` also accepts the base from variables of the CI job,
//! because a base only changes how `plan` shows its result. `apply` excludes drift if there is a
//! base, so it accepts only the option. Variables may be wrong: if their base cannot be used,
//! `plan` only warns. A base from the option must exist.

mod files;
mod git;
mod repository;

use std::path::Path;

use tempfile::TempDir;

use super::{CommandError, Environment, Result, RunContext};
use crate::{
    desired::Desired,
    diagnostic::{Diagnostic, Diagnostics, FilePaths, Severity},
    manifest::{
        self, Config, IncludeRules, LoadEnvironment, LoadOptions, LoadedManifests,
        containing_folder,
    },
    text::escape,
};
pub(in crate::cli) use files::BaseFiles;
use git::{GitRepository, git_failure};

/// The base, from the command line.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct BaseArgs {
    /// Compare with the manifests at this commit, branch or tag, to separate the changes of this
    /// branch from earlier differences; `none` for no base
    #[arg(long, value_name = "REF", help_heading = "Base")]
    pub(in crate::cli) base: Option<String>,
}

/// The value of `--base` for no base.
const NO_BASE: &str = "none";
/// The variable with the base of the diff, in pipelines of a merge request.
const DIFF_BASE_VARIABLE: &str = "CI_MERGE_REQUEST_DIFF_BASE_SHA";
/// The variable with the commit of the branch before the push that started the pipeline; zeros if
/// there is none. This variable is used only on the default branch. On another branch, it names the
/// commit of the previous push, which is not the base.
const PUSH_BASE_VARIABLE: &str = "CI_COMMIT_BEFORE_SHA";

/// A requested base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct BaseRequest {
    revision: String,
    /// The variable that names the base; `None` if the command line names it.
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
        let is_default_branch = branch.is_some() && branch == env.get("CI_DEFAULT_BRANCH");
        let push_variable = Some(PUSH_BASE_VARIABLE).filter(|_| is_default_branch);
        [Some(DIFF_BASE_VARIABLE), push_variable].into_iter().flatten().find_map(|variable| {
            let revision = env.get(variable).filter(|id| id.bytes().any(|byte| byte != b'0'))?;
            Some(BaseRequest { revision: revision.to_owned(), variable: Some(variable) })
        })
    }
}

/// A base and its manifests.
pub(in crate::cli) struct ResolvedBase {
    /// The revision, as the user or the job named it.
    pub(in crate::cli) revision: String,
    /// The manifests at the base; `None` if they cannot be used. In that case, the reason was
    /// already reported.
    pub(in crate::cli) content: Option<BaseContent>,
}

/// The manifests at a base.
#[derive(Default)]
pub(in crate::cli) struct BaseContent {
    /// The declarations of the manifests.
    pub(in crate::cli) desired: Desired,
    /// The rules of the manifests with `undeclared: include`.
    pub(in crate::cli) includes: Option<IncludeRules>,
    /// The `undrift.yaml` of the manifests.
    pub(in crate::cli) config: Config,
    /// The warnings about the manifests.
    pub(in crate::cli) diagnostics: Diagnostics,
    /// The paths of the manifest files.
    pub(in crate::cli) paths: FilePaths,
    /// The files that the manifests may refer to; `None` if there are no manifests.
    pub(in crate::cli) files: Option<BaseFiles>,
    /// The temporary folder of the manifest files, which is removed when this value is dropped.
    _folder: Option<TempDir>,
}

impl BaseRequest {
    /// Reads the folder or file `manifests` at this base. Only warns if a variable names a base
    /// that cannot be used, or if the manifests at the base have faults. With `must_be_usable`,
    /// faults of these manifests are errors.
    ///
    /// # Errors
    /// If the command line names a base that cannot be used. With `must_be_usable`, also if the
    /// manifests at the base have faults.
    pub(in crate::cli) fn resolve(
        self,
        manifests: &Path,
        load_environment: &LoadEnvironment,
        must_be_usable: bool,
        cx: &RunContext,
    ) -> Result<ResolvedBase> {
        let (content, fault) = match self.load_content(manifests, load_environment, cx) {
            Ok(Ok(content)) => (Some(content), None),
            Ok(Err(fault)) => (None, Some((fault, must_be_usable))),
            Err(fault) => (None, Some((fault, self.variable.is_none()))),
        };
        if let Some((CommandError { error, help, .. }, is_fatal)) = fault {
            let variable = self.variable.map(|name| format!("{name}: ")).unwrap_or_default();
            let message = error.map(|error| error.to_string()).unwrap_or_default();
            let message = format!("{variable}{message}");
            if is_fatal {
                return Err(CommandError { help, ..CommandError::usage(no_base_text(&message)) });
            }
            warn_without_base(&message, help, cx);
        }
        Ok(ResolvedBase { revision: self.revision, content })
    }

    /// Loads the manifests at the base. The inner error is their first fault.
    fn load_content(
        &self,
        manifests: &Path,
        load_environment: &LoadEnvironment,
        cx: &RunContext,
    ) -> Result<Result<BaseContent>> {
        let repository = GitRepository::find(containing_folder(manifests))?;
        let commit = repository.resolve_commit(&self.revision)?;
        let root = find_root(&repository, &commit, manifests)?;
        repository.check_all_manifests(&commit, &root)?;
        let folder = create_private_folder().map_err(|error| {
            let message = format!("cannot make a temporary folder: {error}");
            git_failure(message, "make sure that the disk has free space")
        })?;
        if repository.export_manifests(&commit, &root, folder.path())? == 0 {
            cx.output.eprint(&format!(
                "note: `{}` has no manifests in `{}`, so all declarations are treated as changes of this branch\n",
                escape(&self.revision),
                if root.is_empty() { "." } else { root.as_str() },
            ));
            return Ok(Ok(BaseContent::default()));
        }
        let base_environment = LoadEnvironment {
            working_folder: folder.path().to_owned(),
            ..load_environment.clone()
        };
        let options = LoadOptions { allows_missing_files: true, ..LoadOptions::default() };
        let loaded =
            manifest::load_with_options(&folder.path().join(&root), &base_environment, &options);
        let root = loaded.root.strip_prefix(folder.path()).unwrap_or(Path::new(""));
        let root = root.to_string_lossy().into_owned();
        Ok(into_content(loaded, BaseFiles { repository, commit, root }, folder))
    }
}

fn no_base_text(reason: &str) -> String {
    format!("no base to compare with: {reason}")
}

/// Warns that a base cannot be used.
pub(in crate::cli) fn warn_without_base(reason: &str, help: Option<String>, cx: &RunContext) {
    let warning = Diagnostic::warning("base", no_base_text(reason)).with_optional_help(help);
    cx.output.eprint_diagnostics(&[warning].into_iter().collect());
}

/// The manifests `loaded` from `folder`, or their first fault.
fn into_content(loaded: LoadedManifests, files: BaseFiles, folder: TempDir) -> Result<BaseContent> {
    let paths = loaded.paths_below_root();
    let Some(desired) = loaded.desired else {
        let faults = loaded.diagnostics.sorted();
        let first_error = faults.into_iter().find(|fault| fault.severity == Severity::Error);
        let fault_text = first_error.map(fault_sentence).unwrap_or_default();
        let message = format!("its manifests have faults; the first is {fault_text}");
        let help = "name a base whose manifests pass `undrift check`, or pass `--base none`";
        return Err(git_failure(message, help));
    };
    let LoadedManifests { include_rules: includes, config, diagnostics, .. } = loaded;
    let (files, folder) = (Some(files), Some(folder));
    Ok(BaseContent { desired, includes, config, diagnostics, paths, files, _folder: folder })
}

/// A fault on one line, with its file.
fn fault_sentence(fault: &Diagnostic) -> String {
    let message = escape(&fault.message);
    match &fault.location {
        Some(location) => format!("in `{}`: {message}", escape(&location.file)),
        None => message.into_owned(),
    }
}

/// The root of the manifests at `commit`: the nearest folder upwards with an `undrift.yaml`, or
/// else `manifests` itself. The path is relative to the repository, without a `/` at the end.
fn find_root(repository: &GitRepository, commit: &str, manifests: &Path) -> Result<String> {
    let folder = repository.prefix.as_str();
    let mut folders = vec![folder];
    while let Some(last) = folders.last().filter(|last| !last.is_empty()) {
        folders.push(last.rsplit_once('/').map_or("", |(parent, _)| parent));
    }
    let configs: Vec<_> =
        folders.iter().map(|folder| join_path(folder, manifest::config::CONFIG_FILE)).collect();
    let existing = repository.list_files(commit, &configs)?;
    if let Some((root, _)) = folders.iter().zip(&configs).find(|(_, file)| existing.contains(file))
    {
        return Ok((*root).to_owned());
    }
    let file =
        manifests.file_name().and_then(std::ffi::OsStr::to_str).filter(|_| manifests.is_file());
    Ok(file.map_or_else(|| folder.to_owned(), |name| join_path(folder, name)))
}

/// The path of `name` in `folder`, a path in the repository. For the root, `folder` is empty.
fn join_path(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A temporary folder that only this user can read. The folder is removed when the value is
/// dropped.
fn create_private_folder() -> std::io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("undrift-base-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let folder = builder.tempdir()?;
    // The search for `undrift.yaml` ends at a folder with `.git`, so files in parent folders are
    // not used.
    std::fs::create_dir(folder.path().join(".git"))?;
    Ok(folder)
}
