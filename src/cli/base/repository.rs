//! Finds the repository of a folder. Files of a branch cannot influence the result.
//!
//! A branch can contain files that look like a repository, a link to another folder, or a
//! submodule. So git itself never searches for the repository. The repository is the nearest parent
//! folder with a `.git`, because git does not allow this name in a branch. The repository is
//! refused if an outer repository tracks it, or tracks a symbolic link in its path.

use std::{
    collections::VecDeque,
    io,
    path::{Component, Path, PathBuf},
};

/// The maximum number of symbolic links in a path.
const MAX_LINKS: usize = 40;

/// A folder with all symbolic links resolved.
pub(super) struct ResolvedFolder {
    /// The path of the folder, without symbolic links.
    pub(super) folder: PathBuf,
    /// The paths of the symbolic links that were resolved. No parent folder in such a path is a
    /// link.
    pub(super) links: Vec<PathBuf>,
}

impl ResolvedFolder {
    /// Resolves a path relative to the [`working_directory`].
    ///
    /// # Errors
    /// An error of the file system, for example if the folder does not exist.
    pub(super) fn resolve(path: &Path) -> io::Result<Self> {
        Self::resolve_absolute(&working_directory()?.join(path))
    }

    /// Resolves an absolute path.
    fn resolve_absolute(path: &Path) -> io::Result<Self> {
        let mut resolved = Self { folder: PathBuf::new(), links: Vec::new() };
        let mut remaining_parts = components(path);
        while let Some(part) = remaining_parts.pop_front() {
            let candidate = match part.components().next() {
                Some(Component::ParentDir) => {
                    resolved.folder.pop();
                    continue;
                }
                Some(Component::Normal(_)) => resolved.folder.join(&part),
                _ => {
                    resolved.folder.push(part);
                    continue;
                }
            };
            if !candidate.symlink_metadata()?.is_symlink() {
                resolved.folder = candidate;
                continue;
            }
            if resolved.links.len() == MAX_LINKS {
                return Err(io::Error::other("too many symbolic links"));
            }
            let mut target = components(&candidate.read_link()?);
            target.append(&mut remaining_parts);
            remaining_parts = target;
            resolved.links.push(candidate);
        }
        Ok(resolved)
    }
}

/// The components of a path. An absolute path starts with the root, which replaces the path resolved so
/// far.
fn components(path: &Path) -> VecDeque<PathBuf> {
    path.components().map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// The working directory: the path in the shell's variable `PWD`, if it is correct, or else the
/// path from the system. Unlike the path from the system, `PWD` keeps symbolic links.
fn working_directory() -> io::Result<PathBuf> {
    let folder = std::env::current_dir()?;
    let shell_folder = std::env::var_os("PWD").map(PathBuf::from).filter(|path| {
        path.is_absolute() && path.canonicalize().ok() == folder.canonicalize().ok()
    });
    Ok(shell_folder.unwrap_or(folder))
}

/// The nearest folder with a `.git`, from `folder` upwards.
pub(super) fn repository_root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok())
}
