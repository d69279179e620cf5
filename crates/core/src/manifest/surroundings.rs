//! The environment of loading: the working directory, the date, and the environment variables that
//! manifests may name.
//!
//! The caller passes the environment, so that tests can set it. Messages show paths relative to the
//! working directory. The root of the manifests is searched upwards from the named folder. If a
//! command names a subfolder, `undrift.yaml` and the manifests of other folders are still read.

use std::{
    io::ErrorKind,
    path::{Component, MAIN_SEPARATOR, Path, PathBuf},
};

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::config::{CONFIG_FILE, MISNAMED_FILE};
use crate::secret::AllowedVariables;

/// The environment of loading.
#[derive(Clone, Debug)]
pub struct LoadEnvironment {
    /// The working directory. This field is only used to show paths: the process resolves relative
    /// paths.
    pub working_folder: PathBuf,
    /// Today, in UTC.
    pub today: Date,
    /// The environment variables that manifests may name.
    pub variables: AllowedVariables,
}

impl LoadEnvironment {
    /// The working directory of this process, and the current date. All variables are allowed
    /// except reserved ones.
    pub fn for_process() -> Self {
        let folder = std::env::current_dir().unwrap_or_default();
        let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
        Self { working_folder: folder, today, variables: AllowedVariables::default() }
    }

    /// `path` relative to the working directory, with `/` between its parts.
    pub(super) fn display_path(&self, path: &Path) -> String {
        let inner = path.strip_prefix(&self.working_folder).unwrap_or(path);
        join_components(inner.components().filter(|component| *component != Component::CurDir))
    }
}

/// The root of the manifests: the folder of `undrift.yaml`, or the named folder.
#[derive(Clone, Debug)]
pub(super) struct Root {
    /// The path of the root folder.
    pub(super) folder: PathBuf,
    /// True if the folder has an `undrift.yaml`. All manifests below the folder then belong
    /// together.
    pub(super) is_configured: bool,
    naming: FileNaming,
}

/// The form of file names in messages.
#[derive(Clone, Debug)]
enum FileNaming {
    /// The root is the named folder. File names start with this name of the folder.
    ByRootName(String),
    /// The root is above the named folder. File names are relative to this folder, the working
    /// directory.
    RelativeTo(PathBuf),
}

impl Root {
    /// The root of the manifests in `named_folder`: the closest folder with an `undrift.yaml`,
    /// searched upwards to the root of the repository. If there is no such folder, `named_folder`.
    pub(super) fn find(named_folder: &Path, environment: &LoadEnvironment) -> Self {
        let root_naming = FileNaming::ByRootName(environment.display_path(named_folder));
        let mut root =
            Self { folder: named_folder.to_owned(), is_configured: false, naming: root_naming };
        let Ok(real_folder) = named_folder.canonicalize() else { return root };
        for folder in real_folder.ancestors() {
            if may_exist(&folder.join(CONFIG_FILE)) || may_exist(&folder.join(MISNAMED_FILE)) {
                root.is_configured = true;
                if folder != real_folder {
                    let working_folder = environment.working_folder.canonicalize();
                    root.naming = FileNaming::RelativeTo(
                        working_folder.unwrap_or_else(|_| environment.working_folder.clone()),
                    );
                    folder.clone_into(&mut root.folder);
                }
                break;
            }
            if may_exist(&folder.join(".git")) {
                break;
            }
        }
        root
    }

    /// The name of `path` in messages. `path` is the root, or is below the root.
    pub(super) fn display_path(&self, path: &Path) -> String {
        match &self.naming {
            FileNaming::ByRootName(name) => {
                let inner = path.strip_prefix(&self.folder).unwrap_or(path);
                match (join_components(inner.components()), name.as_str()) {
                    (inner, ".") => inner,
                    (inner, _) if inner == "." => name.clone(),
                    (inner, name) => format!("{}/{inner}", name.trim_end_matches('/')),
                }
            }
            FileNaming::RelativeTo(base_folder) => relative_path(base_folder, path),
        }
    }
}

/// `path` relative to `folder`, with `..` for each step upwards.
fn relative_path(folder: &Path, path: &Path) -> String {
    if let Ok(inner) = path.strip_prefix(folder) {
        return join_components(inner.components());
    }
    let shared_count =
        folder.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    // Paths that share only `/` are not made relative.
    if shared_count < 2 {
        return join_components(path.components());
    }
    let parent_steps = folder.components().skip(shared_count).map(|_| Component::ParentDir);
    join_components(parent_steps.chain(path.components().skip(shared_count)))
}

fn join_components<'p>(components: impl Iterator<Item = Component<'p>>) -> String {
    let path: PathBuf = components.collect();
    let text = path.to_string_lossy().replace(MAIN_SEPARATOR, "/");
    if text.is_empty() { ".".to_owned() } else { text }
}

/// True if something exists at `path`. Also true if an error hides whether something exists: the
/// later read of `path` reports the error.
fn may_exist(path: &Path) -> bool {
    !path
        .symlink_metadata()
        .is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}
