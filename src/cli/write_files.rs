//! Writes several files: all of them, or none.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{CommandError, Result, input, reports::write_temporary};
use crate::manifest;

/// A file to write.
#[derive(Debug)]
pub(super) struct FileEdit {
    pub(super) path: PathBuf,
    /// The current content of the file; `None` if the file must not exist.
    pub(super) old_text: Option<String>,
    pub(super) new_text: String,
}

/// Writes all `files` under temporary names in the target folders, and then renames them.
///
/// # Errors
/// If a file changed meanwhile, or cannot be written. No file is changed in this case.
pub(super) fn write_all(files: &[FileEdit]) -> Result<()> {
    let (mut staged_files, mut placed_files, mut new_folders) =
        (Vec::new(), Vec::new(), Vec::new());
    let result = files
        .iter()
        .try_for_each(|file| {
            let name = file.path.display();
            match (&file.old_text, fs::symlink_metadata(&file.path).is_ok()) {
                (None, false) => {}
                (None, true) => {
                    let failure = CommandError::usage(format!("`{name}` already exists"));
                    return Err(failure.help("move it away, or choose another folder"));
                }
                (Some(old_text), _) => match read_manifest(&file.path) {
                    Ok(current_text) if current_text == *old_text => {}
                    Ok(_) => {
                        let reason = format!("`{name}` changed meanwhile; run again");
                        return Err(CommandError::usage(reason));
                    }
                    Err(reason) => return Err(CommandError::usage(format!("`{name}` {reason}"))),
                },
            }
            let folder = file.path.parent().unwrap_or(Path::new(""));
            create_folders(folder, &mut new_folders)
                .map_err(|error| write_failure(&file.path, &error))?;
            let temporary_file = stage_file(&file.path, &file.new_text);
            staged_files
                .push((temporary_file.map_err(|error| write_failure(&file.path, &error))?, file));
            Ok(())
        })
        .and_then(|()| {
            staged_files.into_iter().try_for_each(|(staged_file, file)| {
                let persist_result = match file.old_text {
                    Some(_) => staged_file.persist(&file.path),
                    // Some file systems do not support a rename that fails if the target exists.
                    None => staged_file.persist_noclobber(&file.path).or_else(|error| match error
                        .error
                        .kind()
                    {
                        io::ErrorKind::AlreadyExists => Err(error),
                        _ => error.file.persist(&file.path),
                    }),
                };
                persist_result.map_err(|error| write_failure(&file.path, &error.error))?;
                placed_files.push(file);
                Ok(())
            })
        });
    if result.is_err() {
        for file in placed_files {
            let _ = match &file.old_text {
                Some(old_text) => stage_file(&file.path, old_text)
                    .and_then(|restored_file| Ok(restored_file.persist(&file.path).map(drop)?)),
                None => fs::remove_file(&file.path),
            };
        }
        new_folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    }
    result
}

fn write_failure(path: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(format!("cannot write `{}`: {error}", path.display()))
        .help("nothing was written; make the file writable and run again")
}

/// Creates `folder` and its missing parent folders, and adds the created ones to `new_folders`.
fn create_folders(folder: &Path, new_folders: &mut Vec<PathBuf>) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    create_folders(folder.parent().unwrap_or(Path::new("")), new_folders)?;
    fs::create_dir(folder)?;
    new_folders.push(folder.to_owned());
    Ok(())
}

/// Reads a manifest that will be edited. The file must be a regular file. The error is a message
/// for the user.
pub(super) fn read_manifest(path: &Path) -> Result<String, String> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err("is not a regular file".into()),
        Err(error) => return Err(format!("cannot be read: {error}")),
    }
    let text = input::read_file(path, manifest::MAX_FILE_BYTES)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| "could be read before, but not now".into())
}

/// Writes `text` into a hidden file in the folder of `path`, with the permissions of the file that it
/// will replace. Hidden files are never read as manifests.
fn stage_file(path: &Path, text: &str) -> io::Result<NamedTempFile> {
    let permissions = fs::metadata(path).ok().map(|metadata| metadata.permissions());
    write_temporary(path, permissions, |file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_edit(path: &Path, old: Option<&str>, new: &str) -> FileEdit {
        FileEdit {
            path: path.to_owned(),
            old_text: old.map(str::to_owned),
            new_text: new.to_owned(),
        }
    }

    #[test]
    fn all_files_are_written_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let path_in_folder = |name: &str| folder.path().join(name);
        let list_names = || {
            let mut names: Vec<_> = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        fs::write(path_in_folder("known"), "old").unwrap();
        fs::create_dir(path_in_folder("folder")).unwrap();
        let known_file = || file_edit(&path_in_folder("known"), Some("old"), "new");
        let inner_file = || file_edit(&path_in_folder("a/b/c"), None, "inner");
        for (last_file, reason) in [
            (file_edit(&path_in_folder("folder"), None, ""), "already exists"),
            (file_edit(&path_in_folder("folder"), Some(""), ""), "not a regular file"),
            (file_edit(&path_in_folder("known"), Some("other"), ""), "changed meanwhile"),
            (file_edit(&path_in_folder("known/within"), None, ""), "cannot write"),
            // Two files with the same path: the second one fails after the others were renamed.
            (inner_file(), "cannot write"),
        ] {
            let error = write_all(&[known_file(), inner_file(), last_file]).unwrap_err();
            let error = error.error.unwrap().to_string();
            assert!(error.contains(reason), "{error}");
            assert_eq!(list_names(), ["folder", "known"], "{reason}");
            assert_eq!(fs::read_to_string(path_in_folder("known")).unwrap(), "old", "{reason}");
        }
        write_all(&[known_file(), inner_file()]).unwrap();
        assert_eq!(fs::read_to_string(path_in_folder("known")).unwrap(), "new");
        assert_eq!(fs::read_to_string(path_in_folder("a/b/c")).unwrap(), "inner");
        assert_eq!(list_names(), ["a", "folder", "known"]);
    }
}
