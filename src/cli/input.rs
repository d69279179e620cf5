//! The folder of manifests, and files that an argument or a variable names. Such a file is read as
//! a whole, up to a maximum size, so that no file can use all memory.

use std::{
    fs::File,
    io::{self, Read as _},
    ops::Deref,
    path::{Path, PathBuf},
};

use super::{CommandError, Result};
use crate::manifest::suggest_path;

/// The folder of manifests: `-d` in every command, or the positional argument.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ManifestFolder {
    /// Folder of manifests, or one file; all commands that read manifests also accept it as `-d
    /// DIR` [default: .]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Folder of manifests, or one file
    #[arg(short = 'd', long = "dir", value_name = "DIR", hide = true)]
    pub(super) named: Option<PathBuf>,
}

impl ManifestFolder {
    /// True if both the argument and `-d` name a folder.
    pub(super) const fn is_named_twice(&self) -> bool {
        self.named.is_some() && self.dir.is_some()
    }

    /// Refuses a folder that is named twice.
    ///
    /// # Errors
    /// If both the argument and `-d` name a folder.
    pub(super) fn check_named_once(&self) -> Result<()> {
        if self.is_named_twice() { Err(Self::named_twice_error()) } else { Ok(()) }
    }

    pub(super) fn named_twice_error() -> CommandError {
        CommandError::usage("the folder of manifests is given twice")
            .help("give it as the argument, or with `-d`")
    }
}

impl From<PathBuf> for ManifestFolder {
    fn from(dir: PathBuf) -> Self {
        Self { dir: Some(dir), named: None }
    }
}

impl Deref for ManifestFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.named.as_deref().or(self.dir.as_deref()).unwrap_or(Path::new("."))
    }
}

/// The bytes of the file at `path`, at most `max_bytes`.
///
/// # Errors
/// If the file cannot be read, or is larger. The errors do not quote the content of the file.
pub(super) fn read_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>> {
    let bytes = read_bytes(path, max_bytes).map_err(|error| read_failure(path, &error))?;
    if bytes.len() as u64 > max_bytes {
        let path = path.display();
        return Err(CommandError::usage(format!(
            "`{path}` is larger than {} KiB",
            max_bytes >> 10
        )));
    }
    Ok(bytes)
}

/// The first bytes of the file at `path`: all bytes, or `max_bytes` + 1 of a larger file.
pub(super) fn read_bytes(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn read_failure(path: &Path, error: &io::Error) -> CommandError {
    let failure = CommandError::usage(format!("cannot read `{}`: {error}", path.display()));
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    CommandError { help: is_missing.then(|| suggest_path(path)).flatten(), ..failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0; 2048]).unwrap();
        assert_eq!(read_file(file.path(), 2048).unwrap().len(), 2048);
        for (path, why) in
            [(file.path(), "larger than 1 KiB"), (Path::new("/nonexistent"), "cannot")]
        {
            let failure = read_file(path, 1024).unwrap_err();
            assert!(format!("{:#}", failure.error.unwrap()).contains(why), "{why}");
        }
    }
}
