//! Reads the manifests of a commit through the `git` program.
//!
//! This module changes no working tree, index or reference, fetches nothing, and uses no shell.
//! Programs that the configuration of a repository can start are disabled. Git gets only the
//! environment variables that it needs. None of them holds a token or names another repository. The
//! module `repository` finds the repository; git must not search for another one.

use std::{
    ffi::OsStr,
    fmt::Display,
    io::{BufRead as _, BufReader, Read, Write as _},
    path::{Component, Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
};

use super::repository::{ResolvedFolder, repository_root};
use crate::{
    cli::{CommandError, Result},
    manifest::{MAX_FILES, MAX_TOTAL_BYTES, RESERVED_FILES, is_manifest_name},
    text::{did_you_mean, escape},
};

/// A failure to read a commit, with advice for the user.
pub(super) fn git_failure(message: impl Display, help: impl Into<String>) -> CommandError {
    CommandError::usage(message).help(help)
}

fn start_failure(error: &std::io::Error) -> CommandError {
    let help = "install Git, or pass `--base none` to plan without a base";
    git_failure(format!("cannot run `git`: {error}"), help)
}

fn read_failure(error: &std::io::Error) -> CommandError {
    git_failure(format!("cannot read the base through git: {error}"), "try again")
}

/// The variables that git needs to find its programs and the user's configuration.
const PASSED_VARIABLES: [&str; 6] =
    ["PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "SYSTEMROOT", "USERPROFILE"];

/// Settings for each call of git. With them, the configuration of a repository cannot run a program
/// or use the network. Files that only look like a repository are ignored. The settings also enable
/// the warning about ambiguous names, which [`GitRepository::resolve_commit`] detects.
const GIT_SETTINGS: [&str; 6] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "core.warnAmbiguousRefs=true",
    "core.quotePath=false",
];

/// The advice if no base can be used.
const NO_BASE_HELP: &str = "pass `--base none` to go without a base";

/// The repository of a folder.
pub(super) struct GitRepository {
    /// The folder that contains `.git`.
    root: PathBuf,
    /// The path of the folder, relative to `root`, such as `infra`. Empty for `root` itself.
    pub(super) prefix: String,
}

/// A file in a commit.
pub(super) struct Blob {
    id: String,
    pub(super) size: u64,
    /// The path in the repository.
    pub(super) path: PathBuf,
}

impl GitRepository {
    /// The repository of `folder`. Fails if a branch could change which repository that is.
    pub(super) fn find(folder: &Path) -> Result<Self> {
        let shown_folder = escape(&folder.to_string_lossy()).into_owned();
        let outside_failure = || {
            git_failure(
                format!("`{shown_folder}` is not in the working tree of a Git repository"),
                "run undrift in the clone, or pass `--base none`",
            )
        };
        let resolved = ResolvedFolder::resolve(folder).map_err(|_| outside_failure())?;
        let repository = Self::find_containing(&resolved.folder).ok_or_else(outside_failure)?;
        let output = repository.run_git(["rev-parse", "--git-dir"])?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            let has_other_owner =
                message.contains("safe.directory") || message.contains("dubious ownership");
            return Err(if has_other_owner {
                git_failure(
                    format!(
                        "git refuses `{shown_folder}`, because another user owns the repository"
                    ),
                    "run `git config --global --add safe.directory FOLDER` with its folder, or pass `--base none`",
                )
            } else {
                outside_failure()
            });
        }
        for link in &resolved.links {
            if is_tracked(link)? {
                let link = link.file_name().unwrap_or_default().to_string_lossy();
                return Err(git_failure(
                    format!(
                        "a branch can change the target of the symbolic link `{}`",
                        escape(&link)
                    ),
                    "name the folder that it leads to, or pass `--base none`",
                ));
            }
        }
        if is_tracked(&repository.root)? {
            return Err(git_failure(
                format!(
                    "`{shown_folder}` is in a submodule, and a branch can change its repository"
                ),
                "run undrift in a clone of that repository alone, or pass `--base none`",
            ));
        }
        Ok(repository)
    }

    /// The repository that contains `folder`, a path without symbolic links.
    fn find_containing(folder: &Path) -> Option<Self> {
        let root = repository_root(folder)?;
        let relative_path = folder.strip_prefix(root).ok()?;
        let folder_names: Vec<_> =
            relative_path.iter().map(|part| part.to_string_lossy()).collect();
        Some(Self { root: root.to_owned(), prefix: folder_names.join("/") })
    }

    /// The id of the commit that `revision` names.
    pub(super) fn resolve_commit(&self, revision: &str) -> Result<String> {
        let shown_revision = escape(revision);
        if revision.starts_with('-') || revision.chars().any(char::is_control) {
            return Err(git_failure(
                format!("`{shown_revision}` is not a commit, branch or tag"),
                "name one as `git log` takes it, such as `main` or `HEAD~1`",
            ));
        }
        let expression = format!("{revision}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--end-of-options", &expression];
        let output = self.run_git(arguments)?;
        if String::from_utf8_lossy(&output.stderr).contains("is ambiguous") {
            return Err(git_failure(
                format!("`{shown_revision}` names several branches, tags or commits"),
                "name one in full, such as `refs/heads/main` or `refs/remotes/origin/main`",
            ));
        }
        let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() && id.len() >= 40 && id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(id);
        }
        let shallow_output = self.run_git(["rev-parse", "--is-shallow-repository"])?;
        Err(if shallow_output.stdout.starts_with(b"true") {
            git_failure(
                format!("this clone is shallow and does not have `{shown_revision}`"),
                "clone the whole history (`GIT_DEPTH: 0` in the job), or run `git fetch --deepen=100`",
            )
        } else {
            let output = self.run_git(["for-each-ref", "--format=%(refname:short)"])?;
            let names = String::from_utf8_lossy(&output.stdout);
            // An expression such as `main~1` names a commit, which may be missing.
            let is_name = !revision.contains(['~', '^', '@', ':']);
            let suggestion = did_you_mean(revision, names.lines().filter(|_| is_name));
            let help = "fetch it first, or name a commit, branch or tag that is there";
            let help = match suggestion {
                Some(question) => format!("{} If not, {help}", escape(&question)),
                None => help.to_owned(),
            };
            git_failure(format!("this repository has no commit `{shown_revision}`"), &help)
        })
    }

    /// Returns the `names` that are files in `commit`.
    pub(super) fn list_files(&self, commit: &str, names: &[String]) -> Result<Vec<String>> {
        let mut arguments = vec!["ls-tree", "-r", "-l", "-z", "--full-tree", commit, "--"];
        arguments.extend(names.iter().map(String::as_str));
        let blobs = self.list_blobs(&arguments, |_| true)?;
        Ok(blobs.into_iter().map(|blob| blob.path.to_string_lossy().into_owned()).collect())
    }

    /// Writes the manifests of `commit` at `path`, which is a folder or a file. Each one is written
    /// below `folder` at its path in the repository. Returns the number of manifests.
    pub(super) fn export_manifests(
        &self,
        commit: &str,
        path: &str,
        folder: &Path,
    ) -> Result<usize> {
        let blobs = self.list_tree(commit, path, is_manifest)?;
        let total_bytes = blobs.iter().fold(0, |sum: u64, blob| sum.saturating_add(blob.size));
        if blobs.len() > MAX_FILES || total_bytes > MAX_TOTAL_BYTES {
            return Err(git_failure(
                format!("the base has more than {MAX_FILES} manifests, or 256 MiB of them"),
                "name a folder that contains only the manifests",
            ));
        }
        self.read_blobs(&blobs, |blob, text| {
            let target = folder.join(&blob.path);
            std::fs::create_dir_all(target.parent().unwrap_or(folder))?;
            std::fs::write(target, text)
        })?;
        Ok(blobs.len())
    }

    /// The regular files of `commit` at `path`, which is a folder or a file, if `accepts` is true
    /// for their path. `path` is empty for the whole repository.
    pub(super) fn list_tree(
        &self,
        commit: &str,
        path: &str,
        accepts: impl Fn(&Path) -> bool,
    ) -> Result<Vec<Blob>> {
        let mut arguments = vec!["ls-tree", "-r", "-l", "-z", "--full-tree", commit];
        arguments.extend(path_arguments(path));
        self.list_blobs(&arguments, accepts)
    }

    /// The files at `path` in the working tree that git ignores.
    pub(super) fn list_ignored(&self, path: &str) -> Result<Vec<String>> {
        let mut arguments = vec!["ls-files", "-z", "--others", "--ignored", "--exclude-standard"];
        arguments.extend(path_arguments(path));
        self.list_entries(&arguments)
    }

    /// Checks that all manifests at `path` belong to this repository, in `commit` and in the
    /// working tree. Fails if a manifest is ignored by git, or if `path` contains a submodule or
    /// another clone.
    pub(super) fn check_all_manifests(&self, commit: &str, path: &str) -> Result<()> {
        let path_args = path_arguments(path);
        let commit_args = ["ls-tree", "-r", "-z", "--full-tree", commit];
        let index_args = ["ls-files", "-z", "--stage"];
        for entries in [&commit_args[..], &index_args]
            .iter()
            .map(|list| self.list_entries(&[list, &path_args[..]].concat()))
        {
            if let Some(entry) = entries?.iter().find(|entry| entry.starts_with("160000 ")) {
                let path = entry.split_once('\t').map_or("", |(_, path)| path);
                return Err(git_failure(
                    format!("`{}` is a submodule, which no base contains", escape(path)),
                    format!("keep copies of them in this repository, or {NO_BASE_HELP}"),
                ));
            }
        }
        let untracked_paths =
            self.list_entries(&[&["ls-files", "-z", "--others"], &path_args[..]].concat())?;
        // The path of another repository ends with a slash.
        let mut clones = untracked_paths.iter().filter(|path| path.ends_with('/'));
        if let Some(clone) = clones.find(|clone| !is_hidden(Path::new(clone))) {
            let shown_clone = escape(clone);
            return Err(git_failure(
                format!("`{shown_clone}` is another repository, which no base contains"),
                format!("keep copies of them in this repository, or {NO_BASE_HELP}"),
            ));
        }
        for file in self.list_ignored(path)? {
            let relative_path = Path::new(&file).strip_prefix(path);
            let is_reserved = relative_path
                .is_ok_and(|relative| RESERVED_FILES.iter().any(|name| relative == *name));
            if is_manifest(Path::new(&file)) && !is_reserved {
                return Err(git_failure(
                    format!("git ignores the manifest `{}`, so no base has it", escape(&file)),
                    format!("commit it, move it to another folder, or {NO_BASE_HELP}"),
                ));
            }
        }
        Ok(())
    }

    /// The entries of the list that git prints for `arguments`.
    fn list_entries<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Vec<String>> {
        let output = self.run_git(arguments)?;
        if !output.status.success() {
            return Err(unreadable_base_failure(&output.stderr));
        }
        let entries = output.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        Ok(entries.map(|entry| String::from_utf8_lossy(entry).into_owned()).collect())
    }

    /// The regular files in the list that git prints for `arguments`, if `accepts` is true for their path.
    fn list_blobs(&self, arguments: &[&str], accepts: impl Fn(&Path) -> bool) -> Result<Vec<Blob>> {
        let entries = self.list_entries(arguments)?;
        let blobs = entries.iter().filter_map(|entry| {
            // `MODE TYPE ID SIZE<tab>PATH`; links and submodules have other modes and types.
            let (columns, path) = entry.split_once('\t')?;
            let mut columns = columns.split_ascii_whitespace();
            let is_file = columns.next()?.starts_with("100") && columns.next()? == "blob";
            let (id, size) = (columns.next()?.to_owned(), columns.next()?.parse().ok()?);
            let path = PathBuf::from(path);
            let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
            (is_file && is_inside && accepts(&path)).then_some(Blob { id, size, path })
        });
        Ok(blobs.collect())
    }

    /// Calls `visit` with the content of each of `blobs`.
    pub(super) fn read_blobs(
        &self,
        blobs: &[Blob],
        mut visit: impl FnMut(&Blob, Vec<u8>) -> std::io::Result<()>,
    ) -> Result<()> {
        let mut command = self.git_command(["cat-file", "--batch"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut git = command.spawn().map_err(|error| start_failure(&error))?;
        let (Some(mut requests), Some(answers)) = (git.stdin.take(), git.stdout.take()) else {
            return Err(read_failure(&std::io::ErrorKind::BrokenPipe.into()));
        };
        let ids: String = blobs.iter().map(|blob| format!("{}\n", blob.id)).collect();
        // Write and read in parallel, so that neither side waits for the other. If git ends early,
        // reading its output fails.
        let request_thread = thread::spawn(move || drop(requests.write_all(ids.as_bytes())));
        let mut answers = BufReader::new(answers);
        let result = blobs.iter().try_for_each(|blob| visit(blob, read_blob(&mut answers, blob)?));
        drop(answers);
        let _ = (request_thread.join(), git.wait());
        result.map_err(|error| read_failure(&error))
    }

    fn run_git<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<Output> {
        let mut command = self.git_command(arguments);
        command.stdin(Stdio::null()).output().map_err(|error| start_failure(&error))
    }

    fn git_command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new("git");
        command.env_clear();
        for name in PASSED_VARIABLES {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            // undrift recognises git's messages only in English.
            .env("LC_ALL", "C")
            // Git may look for a repository only in the root.
            .env("GIT_CEILING_DIRECTORIES", self.root.parent().unwrap_or(&self.root))
            .arg("-C")
            .arg(&self.root)
            .args(["--no-pager", "--literal-pathspecs"]);
        for setting in GIT_SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(arguments);
        command
    }
}

/// The arguments that limit a list to `path`; empty for the whole repository.
fn path_arguments(path: &str) -> Vec<&str> {
    if path.is_empty() { Vec::new() } else { vec!["--", path] }
}

/// True if an outer repository tracks `path`, a symbolic link or a repository. A branch of the outer
/// repository could then change what `path` refers to.
fn is_tracked(path: &Path) -> Result<bool> {
    let Some(outer_repository) = path.parent().and_then(GitRepository::find_containing) else {
        return Ok(false);
    };
    let Ok(relative_path) = path.strip_prefix(&outer_repository.root) else { return Ok(false) };
    let arguments = ["ls-files".as_ref(), "-z".as_ref(), "--".as_ref(), relative_path.as_os_str()];
    Ok(!outer_repository.list_entries(&arguments)?.is_empty())
}

/// True if a file may be a manifest or `undrift.yaml`; hidden files are neither.
fn is_manifest(path: &Path) -> bool {
    is_manifest_name(path) && !is_hidden(path)
}

/// True if a segment of the path starts with a dot.
fn is_hidden(path: &Path) -> bool {
    path.iter().any(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Reads the next response of `git cat-file --batch`, which must be the content of `blob`.
fn read_blob(reader: &mut impl std::io::BufRead, blob: &Blob) -> std::io::Result<Vec<u8>> {
    let mut header = String::new();
    reader.take(256).read_line(&mut header)?;
    if header.trim_end() != format!("{} blob {}", blob.id, blob.size) {
        return Err(std::io::Error::other("an object of the commit is missing"));
    }
    let mut text = Vec::new();
    // A line feed ends each response.
    reader.take(blob.size.saturating_add(1)).read_to_end(&mut text)?;
    if text.pop() != Some(b'\n') || text.len() as u64 != blob.size {
        return Err(std::io::Error::other("the answer was cut short"));
    }
    Ok(text)
}

/// The failure if git cannot list a commit.
fn unreadable_base_failure(message: &[u8]) -> CommandError {
    let message = String::from_utf8_lossy(message);
    let first_line = message.lines().next().unwrap_or("no reason given");
    git_failure(
        format!("git cannot read the base: {}", escape(first_line)),
        "fetch the whole commit, or pass `--base none`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_yaml_may_be_a_manifest() {
        for (path, expected) in [
            ("a.yaml", true),
            ("deep/er/a.yml", true),
            ("undrift.yaml", true),
            (".gitlab-ci.yml", false),
            (".hidden/a.yaml", false),
            ("a.yaml.txt", false),
        ] {
            assert_eq!(is_manifest(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_response_is_the_requested_blob_or_an_error() {
        let blob = Blob { id: "ab".into(), size: 3, path: "x".into() };
        let read = |text: &str| read_blob(&mut text.as_bytes(), &blob).ok();
        assert_eq!(read("ab blob 3\na\nb\n").as_deref(), Some(&b"a\nb"[..]));
        for wrong in [
            "",
            "ab missing\n",
            "ab blob 4\nabcd\n",
            "cd blob 3\nabc\n",
            "ab blob 3\nab",
            "ab blob 3\nabcd",
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
