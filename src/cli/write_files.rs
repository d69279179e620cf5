//! Files that are written together: all of them, or none.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{CommandError, input, reports::write_temporary};
use crate::manifest;

/// A file to write.
#[derive(Debug)]
pub(super) struct FileEdit {
    pub(super) path: PathBuf,
    /// What it holds now; nothing if there must be no such file.
    pub(super) old: Option<String>,
    pub(super) new: String,
}

/// Writes all `files` beside their places and then moves them there.
///
/// # Errors
/// If a file is not as it was, or cannot be written; then nothing has changed.
pub(super) fn all(files: &[FileEdit]) -> Result<(), CommandError> {
    let (mut staged, mut placed, mut folders) = (Vec::new(), Vec::new(), Vec::new());
    let result = files
        .iter()
        .try_for_each(|file| {
            let name = file.path.display();
            match (&file.old, fs::symlink_metadata(&file.path).is_ok()) {
                (None, false) => {}
                (None, true) => {
                    let failure = CommandError::usage(format!("`{name}` already exists"));
                    return Err(failure.help("move it away, or choose another folder"));
                }
                (Some(old), _) => match read(&file.path) {
                    Ok(now) if now == *old => {}
                    Ok(_) => {
                        let reason = format!("`{name}` changed meanwhile; run again");
                        return Err(CommandError::usage(reason));
                    }
                    Err(reason) => return Err(CommandError::usage(format!("`{name}`: {reason}"))),
                },
            }
            let folder = file.path.parent().unwrap_or(Path::new(""));
            make(folder, &mut folders).map_err(|error| unwritten(&file.path, &error))?;
            let beside = stage(&file.path, &file.new);
            staged.push((beside.map_err(|error| unwritten(&file.path, &error))?, file));
            Ok(())
        })
        .and_then(|()| {
            staged.into_iter().try_for_each(|(beside, file)| {
                let written = match file.old {
                    Some(_) => beside.persist(&file.path),
                    // Some file systems can only replace.
                    None => beside.persist_noclobber(&file.path).or_else(|error| {
                        match error.error.kind() {
                            io::ErrorKind::AlreadyExists => Err(error),
                            _ => error.file.persist(&file.path),
                        }
                    }),
                };
                written.map_err(|error| unwritten(&file.path, &error.error))?;
                placed.push(file);
                Ok(())
            })
        });
    if result.is_err() {
        for file in placed {
            let _ = match &file.old {
                Some(old) => {
                    stage(&file.path, old).and_then(|it| Ok(it.persist(&file.path).map(drop)?))
                }
                None => fs::remove_file(&file.path),
            };
        }
        folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    }
    result
}

fn unwritten(path: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(format!("cannot write `{}`: {error}", path.display()))
        .help("nothing was written; make it writable and run again")
}

/// Makes `folder` and those above it that are missing, and adds them to `made`.
fn make(folder: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    make(folder.parent().unwrap_or(Path::new("")), made)?;
    fs::create_dir(folder)?;
    made.push(folder.to_owned());
    Ok(())
}

/// The text of a manifest that may be written.
pub(super) fn read(path: &Path) -> Result<String, String> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_file() => {}
        Ok(_) => return Err("its manifest is not a regular file".into()),
        Err(error) => return Err(format!("its manifest cannot be read: {error}")),
    }
    let text = input::read(path, manifest::MAX_FILE).ok().and_then(|it| String::from_utf8(it).ok());
    text.ok_or_else(|| "its manifest cannot be read any more".into())
}

/// Writes `text` beside `path`, with the permissions of the file that it replaces. What is hidden is
/// no manifest.
fn stage(path: &Path, text: &str) -> io::Result<NamedTempFile> {
    let permissions = fs::metadata(path).ok().map(|replaced| replaced.permissions());
    write_temporary(path, permissions, |file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path, old: Option<&str>, new: &str) -> FileEdit {
        FileEdit { path: path.to_owned(), old: old.map(str::to_owned), new: new.to_owned() }
    }

    #[test]
    fn all_files_are_written_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let names = || {
            let mut names: Vec<_> = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        fs::write(at("known"), "old").unwrap();
        fs::create_dir(at("folder")).unwrap();
        let known = || file(&at("known"), Some("old"), "new");
        let inner = || file(&at("a/b/c"), None, "inner");
        for (last, reason) in [
            (file(&at("folder"), None, ""), "already exists"),
            (file(&at("folder"), Some(""), ""), "not a regular file"),
            (file(&at("known"), Some("other"), ""), "changed meanwhile"),
            (file(&at("known/within"), None, ""), "cannot write"),
            // The same place twice: it is taken when the second's turn comes, after the others were put
            // in place.
            (inner(), "cannot write"),
        ] {
            let error = all(&[known(), inner(), last]).unwrap_err();
            let error = error.error.unwrap().to_string();
            assert!(error.contains(reason), "{error}");
            assert_eq!(names(), ["folder", "known"], "{reason}");
            assert_eq!(fs::read_to_string(at("known")).unwrap(), "old", "{reason}");
        }
        all(&[known(), inner()]).unwrap();
        assert_eq!(fs::read_to_string(at("known")).unwrap(), "new");
        assert_eq!(fs::read_to_string(at("a/b/c")).unwrap(), "inner");
        assert_eq!(names(), ["a", "folder", "known"]);
    }
}
