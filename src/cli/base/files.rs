//! Finds the files that manifests refer to and that differ between the base and the branch.
//!
//! Such a file may hold a secret. The two contents of a file are compared in memory, one file after
//! the other. No content is kept, shown or written.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use super::git::GitRepository;
use crate::{
    cli::Result,
    desired::Container,
    secret::{MAX_FILE_BYTES, Reference, Secrets},
};

/// The files of the repository at the base.
pub(in crate::cli) struct BaseFiles {
    pub(super) repository: GitRepository,
    pub(super) commit: String,
    /// The folder of the manifests at the base, relative to the repository.
    pub(super) root: String,
}

impl BaseFiles {
    /// Returns the names of the changed files. `containers` are the declarations at the base, and
    /// name the files. `secrets` reads the files of the branch. A file is changed if its content at
    /// the base differs from its content on the branch, or if only one of the two has the file. A
    /// file that git ignores counts as unchanged if the base lacks it.
    ///
    /// # Errors
    /// If git cannot read the base.
    pub(in crate::cli) fn find_changed(
        &self,
        containers: &[Container],
        secrets: &Secrets,
    ) -> Result<BTreeSet<String>> {
        let mut paths = self.named_files(containers);
        if paths.is_empty() {
            return Ok(BTreeSet::new());
        }
        let named_paths: BTreeSet<_> = paths.values().cloned().collect();
        let mut blobs = self
            .repository
            .list_tree(&self.commit, &self.root, |path| named_paths.contains(path))?;
        let base_paths: BTreeSet<_> = blobs.iter().map(|blob| blob.path.clone()).collect();
        // A larger file cannot be a value.
        blobs.retain(|blob| blob.size <= MAX_FILE_BYTES);
        let mut unchanged_paths = BTreeSet::new();
        self.repository.read_blobs(&blobs, |blob, base_content| {
            let path = blob.path.strip_prefix(&self.root).unwrap_or(&blob.path);
            if secrets
                .read_file(&path.to_string_lossy())
                .is_ok_and(|branch_content| branch_content == base_content)
            {
                unchanged_paths.insert(blob.path.clone());
            }
            Ok(())
        })?;
        let ignored_paths: BTreeSet<PathBuf> = if named_paths.is_subset(&base_paths) {
            BTreeSet::new()
        } else {
            self.repository.list_ignored(&self.root)?.into_iter().map(PathBuf::from).collect()
        };
        paths.retain(|name, path| {
            let is_only_on_branch = !base_paths.contains(path)
                && !ignored_paths.contains(path)
                && secrets.read_file(name).is_ok();
            let differs = base_paths.contains(path) && !unchanged_paths.contains(path);
            differs || is_only_on_branch
        });
        Ok(paths.into_keys().collect())
    }

    /// The path in the repository of each file that `containers` name.
    fn named_files(&self, containers: &[Container]) -> BTreeMap<String, PathBuf> {
        let values = containers.iter().flat_map(Container::secrets_and_files);
        let sources = values.flat_map(|(.., value)| value.sources());
        let files = sources.filter_map(|source| {
            let Reference::File(name) = source else { return None };
            let parts = Path::new(&name).components().filter(|part| *part != Component::CurDir);
            let path = Path::new(&self.root).join(parts.collect::<PathBuf>());
            Some((name, path))
        });
        files.collect()
    }
}
