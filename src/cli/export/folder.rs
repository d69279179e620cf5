//! The target folder of an export. Every file is first written beside its place, so that either all
//! files get there or none.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::{
    cli::exit::Failure,
    export::{MARK, Written},
    manifest,
};

/// The folder for files that are not in place yet. Hidden files are never read as manifests.
const STAGE: &str = ".undrift-export";
/// The schema for editors.
const SCHEMA: &str = "schemas/manifest.schema.json";

/// A folder to export into.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    /// The files in it that an earlier export wrote.
    earlier: BTreeSet<String>,
    /// Whether it must be created.
    is_new: bool,
}

impl Folder {
    /// Opens the folder `root`, which must be empty. For an `update` it may contain files of an
    /// earlier export. Hidden files, such as `.git`, do not count.
    ///
    /// # Errors
    /// If there is something else in it.
    pub(super) fn open(root: &Path, update: bool) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::usage(format!("cannot read the folder `{}`: {error}", root.display()))
        };
        let mut folder = Self { root: root.to_owned(), earlier: BTreeSet::new(), is_new: false };
        match fs::read_dir(root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder.is_new = true,
            Err(error) => return Err(failed(error)),
            Ok(entries) => {
                let names = entries.map(|entry| Ok(entry?.file_name()));
                let names: Vec<_> = names.collect::<io::Result<_>>().map_err(failed)?;
                let mut visible =
                    names.iter().filter(|name| !name.as_encoded_bytes().starts_with(b"."));
                if update {
                    folder.look(Path::new("")).map_err(failed)?;
                } else if visible.next().is_some() {
                    let failure = Failure::usage(format!("`{}` is not empty", root.display()));
                    return Err(failure.help(
                        "choose another folder, or pass `--update` to write over an export",
                    ));
                }
            }
        }
        Ok(folder)
    }

    /// Looks for files of an earlier export in the folder `within`.
    fn look(&mut self, within: &Path) -> io::Result<()> {
        for entry in fs::read_dir(self.root.join(within))? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = within.join(&name);
            if kind.is_dir() {
                self.look(&path)?;
            } else if kind.is_file() && is_exported(&entry.path())? {
                self.earlier.insert(slashed(&path));
            }
        }
        Ok(())
    }

    /// Puts all files in place, and removes obsolete files of an earlier export. Returns the number
    /// of manifests.
    ///
    /// # Errors
    /// If something cannot be written; then nothing has changed.
    pub(super) fn write(self, written: &Written, secrets: Option<&Path>) -> Result<usize, Failure> {
        let mut files: Vec<(String, String)> =
            written.files.iter().map(|file| (file.path.clone(), file.text.clone())).collect();
        let count = files.iter().filter(|(path, _)| path.ends_with(".yaml")).count();
        if !written.secrets.is_empty() {
            files.push(("secrets.env.example".to_owned(), example(written)));
        }
        for (path, _) in &files {
            let is_there = self.root.join(path).symlink_metadata().is_ok();
            if is_there && !self.earlier.contains(path) {
                let there = self.root.join(path);
                let failure = Failure::usage(format!(
                    "`{}` is there, and no export wrote it",
                    there.display()
                ));
                return Err(failure.help("move it away, or export into another folder"));
            }
        }
        files.push((SCHEMA.to_owned(), format!("{:#}\n", manifest::schema::manifest())));
        let failed = |error: io::Error| {
            Failure::usage(format!("cannot write into `{}`: {error}", self.root.display()))
        };
        let made = self.is_new.then(|| first_missing(&self.root));
        let new_secrets = secrets.filter(|file| !file.exists());
        let stage = self.root.join(STAGE);
        let mut done = Vec::new();
        let result = self
            .stage(&stage, &files)
            .and_then(|()| secrets.map_or(Ok(()), |file| write_secrets(file, written)))
            .and_then(|()| self.place(&stage, &files, &mut done));
        // Ignore errors: the rest of an attempt does no harm.
        let _ = fs::remove_dir_all(&stage);
        if let Err(error) = result {
            if let Some(file) = new_secrets {
                let _ = fs::remove_file(file);
            }
            if let Some(made) = made {
                let _ = fs::remove_dir_all(made);
            }
            return Err(failed(error));
        }
        Ok(count)
    }

    /// Writes all files below `stage`.
    fn stage(&self, stage: &Path, files: &[(String, String)]) -> io::Result<()> {
        let _ = fs::remove_dir_all(stage);
        for (path, text) in files {
            let path = stage.join(path);
            fs::create_dir_all(path.parent().unwrap_or(stage))?;
            let mut file = fs::File::create_new(&path)?;
            file.write_all(text.as_bytes())?;
            // A full disk may only be reported here.
            file.sync_all()?;
        }
        Ok(())
    }

    /// Moves all files to their places, and keeps the replaced ones until all are there.
    fn place(
        &self,
        stage: &Path,
        files: &[(String, String)],
        done: &mut Vec<(PathBuf, Option<PathBuf>)>,
    ) -> io::Result<()> {
        let new: BTreeSet<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        let gone = self.earlier.iter().filter(|path| !new.contains(path.as_str()));
        let moves =
            files.iter().map(|(path, _)| (path, true)).chain(gone.map(|path| (path, false)));
        let result = moves.enumerate().try_for_each(|(number, (path, is_new))| {
            let to = self.root.join(path);
            fs::create_dir_all(to.parent().unwrap_or(&self.root))?;
            let kept = stage.join(format!(".kept-{number}"));
            let kept = match fs::rename(&to, &kept) {
                Ok(()) => Some(kept),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            done.push((to.clone(), kept));
            if is_new { fs::rename(stage.join(path), to) } else { Ok(()) }
        });
        if result.is_err() {
            for (to, kept) in done.iter().rev() {
                let _ = match kept {
                    Some(kept) => fs::rename(kept, to),
                    None => fs::remove_file(to),
                };
            }
        }
        result
    }
}

/// Whether an export wrote the file at `path`, according to its first line.
fn is_exported(path: &Path) -> io::Result<bool> {
    use io::Read as _;
    let mut top = Vec::new();
    fs::File::open(path)?.take(512).read_to_end(&mut top)?;
    Ok(String::from_utf8_lossy(&top).lines().take(2).any(|line| line == MARK))
}

/// The outermost folder of `path` that does not exist yet.
fn first_missing(path: &Path) -> PathBuf {
    let missing =
        path.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
    missing.last().unwrap_or(path).to_owned()
}

fn slashed(path: &Path) -> String {
    let parts = path.components().map(|part| part.as_os_str().to_string_lossy());
    parts.collect::<Vec<_>>().join("/")
}

/// The variables to set before applying.
fn example(written: &Written) -> String {
    let names = written.secrets.keys().map(|name| format!("{name}=''\n"));
    format!(
        "{MARK}\n# What the references in the manifests stand for.\n{}",
        names.collect::<String>()
    )
}

/// Refuses a file for secrets that is among the manifests or exists.
///
/// # Errors
/// Why it cannot be used.
pub(super) fn check_secrets(file: &Path, folder: &Path, update: bool) -> Result<(), Failure> {
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.canonicalize().unwrap_or(path)
    };
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    if absolute(parent.unwrap_or(Path::new("."))).starts_with(absolute(folder)) {
        let failure = Failure::usage("`--secrets` must not name a file among the manifests");
        return Err(failure.help("manifests go into Git, and secrets must not"));
    }
    if file.exists() && !update {
        let failure = Failure::usage(format!("`{}` is there already", file.display()));
        return Err(failure.help("choose another file, or pass `--update`"));
    }
    Ok(())
}

/// Writes the values as shell assignments, readable only by the owner.
fn write_secrets(file: &Path, written: &Written) -> io::Result<()> {
    let quoted = |value: &str| format!("'{}'", value.replace('\'', r"'\''"));
    let lines =
        written.secrets.iter().map(|(name, value)| format!("{name}={}\n", quoted(value.expose())));
    let text: String = lines.collect();
    let beside = file.with_extension("undrift-new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = fs::remove_file(&beside);
    let result = options.open(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let result = result.and_then(|()| fs::rename(&beside, file));
    if result.is_err() {
        let _ = fs::remove_file(&beside);
    }
    result
}
