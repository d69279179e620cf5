//! The target folder of an export. The folder must be empty, because an export never overwrites
//! anything.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use crate::{
    cli::{CommandError, Result, write_failure, write_files},
    export::Export,
    manifest::RESERVED_FILES,
};

/// The path of the schema for editors, relative to the folder of the repository that contains it.
const SCHEMA_PATH: &str = "schemas/manifest.schema.json";

/// Refuses the folder `root` if it is not empty. Ignores hidden files, such as `.git`.
///
/// # Errors
/// If the folder is not empty, or cannot be read.
pub(super) fn check_empty(root: &Path) -> Result<()> {
    let names = match fs::read_dir(root) {
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
    };
    let names = names.map_err(|error| {
        CommandError::usage(format!("cannot read the folder `{}`: {error}", root.display()))
    })?;
    if names.iter().all(|name| name.as_encoded_bytes().starts_with(b".")) {
        return Ok(());
    }
    let failure = CommandError::usage(format!("`{}` is not empty", root.display()));
    Err(failure.help("choose another folder, or pass `--update` to add to its manifests"))
}

/// Writes all files into the folder `root`, and the values of secrets into `secrets_file`.
/// Returns the number of manifests.
///
/// # Errors
/// If a file cannot be written. No file is changed in this case.
pub(super) fn write_export(
    root: &Path,
    export: &Export,
    secrets_file: Option<&Path>,
) -> Result<usize> {
    let files = export.files.iter().map(|file| {
        let path = root.join(&file.path);
        let is_manifest = !RESERVED_FILES.contains(&file.path.as_str());
        let modeline = if is_manifest { modeline(&path) } else { String::new() };
        write_files::FileEdit { path, old_text: None, new_text: modeline + &file.text }
    });
    let mut files: Vec<_> = files.collect();
    let manifest_count = export.files.iter().filter(|file| file.path.ends_with(".yaml")).count();
    if !export.secrets.is_empty() {
        let path = root.join("secrets.env.example");
        files.push(write_files::FileEdit {
            path,
            old_text: None,
            new_text: secrets_example_text(export),
        });
    }
    if let Some(file) = secrets_file {
        write_secrets(file, export).map_err(|error| write_failure(file, &error))?;
    }
    let result = write_files::write_all(&files);
    if let (Err(_), Some(file)) = (&result, secrets_file) {
        let _ = fs::remove_file(file);
    }
    result.map(|()| manifest_count)
}

/// The first line of a new manifest at `path`, which names the schema for editors. Empty if none of the
/// folders from the manifest up to the root of the repository contains the schema.
pub(super) fn modeline(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut folders = path.ancestors().skip(1);
    let root_steps = folders.clone().position(|folder| folder.join(".git").exists());
    let schema_steps = folders.position(|folder| folder.join(SCHEMA_PATH).is_file());
    match schema_steps.filter(|steps| root_steps.is_some_and(|max_steps| *steps <= max_steps)) {
        Some(steps_up) => {
            format!("# yaml-language-server: $schema={}{SCHEMA_PATH}\n", "../".repeat(steps_up))
        }
        None => String::new(),
    }
}

/// The text of a file that names the variables to set before `apply`. The text contains no values.
fn secrets_example_text(export: &Export) -> String {
    let names = export.secrets.keys().map(|name| format!("{name}=''\n"));
    let names = names.collect::<String>();
    format!("# Values of the references in the manifests.\n{names}")
}

/// Refuses a file for secrets if it is in the folder of manifests, or already exists.
///
/// # Errors
/// If the file is refused.
pub(super) fn check_secrets_file(file: &Path, folder: &Path) -> Result<()> {
    let [parent, folder] = [parent_folder(file), folder].map(|path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.canonicalize().unwrap_or(path)
    });
    if parent.starts_with(folder) {
        let failure = CommandError::usage("`--secrets` must not name a file among the manifests");
        return Err(failure.help("manifests are committed to Git, secrets must not be"));
    }
    if file.exists() {
        let failure = CommandError::usage(format!("`{}` already exists", file.display()));
        return Err(failure.help("choose another file"));
    }
    Ok(())
}

/// Writes the values as shell assignments into a file that only its owner can read. Values that the
/// service does not show are empty.
fn write_secrets(file: &Path, export: &Export) -> io::Result<()> {
    let mut text = String::new();
    for (name, value) in &export.secrets {
        text += &if export.unshown_secrets.contains(name) {
            format!("# The service does not show this value.\n{name}=''\n")
        } else {
            format!("{name}='{}'\n", value.expose().replace('\'', r"'\''"))
        };
    }
    // Only the owner can read a temporary file.
    let mut temporary_file = tempfile::NamedTempFile::new_in(parent_folder(file))?;
    temporary_file.write_all(text.as_bytes())?;
    temporary_file.as_file().sync_all()?;
    temporary_file.persist(file)?;
    Ok(())
}

fn parent_folder(file: &Path) -> &Path {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
