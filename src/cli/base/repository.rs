//! Finds the repository of a folder, in a way that files of a branch cannot influence.
//!
//! Files of a branch can look like a repository, be a link to another folder, or name a submodule.
//! So git never searches for a repository. The repository is the nearest folder upwards with a `.git`,
//! a name that git allows in no branch. It is refused if a repository around it tracks it, or tracks a
//! link on the way to it.

use std::{
    collections::VecDeque,
    io,
    path::{Component, Path, PathBuf},
};

/// The maximum number of symbolic links on the way to a folder.
const MAX_LINKS: usize = 40;

/// The way to a folder.
pub(super) struct ResolvedFolder {
    /// The folder, without links.
    pub(super) folder: PathBuf,
    /// The links on the way, each by its path without other links.
    pub(super) links: Vec<PathBuf>,
}

impl ResolvedFolder {
    /// The way to `named`, from the working directory as named by the shell.
    ///
    /// # Errors
    /// From the system, for example if it does not exist.
    pub(super) fn resolve(named: &Path) -> io::Result<Self> {
        Self::resolve_absolute(&working_directory()?.join(named))
    }

    /// The way to an absolute path.
    fn resolve_absolute(path: &Path) -> io::Result<Self> {
        let mut resolved = Self { folder: PathBuf::new(), links: Vec::new() };
        let mut remaining_parts = components(path);
        while let Some(part) = remaining_parts.pop_front() {
            let next = match part.components().next() {
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
            if !next.symlink_metadata()?.is_symlink() {
                resolved.folder = next;
                continue;
            }
            if resolved.links.len() == MAX_LINKS {
                return Err(io::Error::other("too many symbolic links"));
            }
            let mut target = components(&next.read_link()?);
            target.append(&mut remaining_parts);
            remaining_parts = target;
            resolved.links.push(next);
        }
        Ok(resolved)
    }
}

/// The components of a path; an absolute one starts with the root, which replaces the path so far.
fn components(path: &Path) -> VecDeque<PathBuf> {
    path.components().map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// The working directory as named by the shell, if that name is right: it shows the links on the
/// way.
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
