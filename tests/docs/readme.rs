//! Checks the README: its commands run in order, its files are used unchanged, and it shows the
//! actual output of undrift. The conventions are those of the
//! book ([`shown`](super::shown)).

use std::{fs, path::Path};

use super::{
    is_updating, root,
    shown::{self, BlockCounts, Workspace},
};

#[test]
fn the_readme_works_as_it_stands() {
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let mut place = Workspace::new();
    copy(&root().join("examples/acme"), &place.path().join("examples/acme"));
    let read = shown::read(&readme, &mut place);
    assert!(read.faults.is_empty(), "README.md:{}", read.faults.join("\nREADME.md:"));
    assert_eq!(read.counts, BlockCounts { shown: 2, used: 8, files: 1, skipped: 0 });
    if is_updating() {
        fs::write(&path, &read.fresh).unwrap();
    } else {
        assert!(read.fresh == readme, "the README shows something else than\n{}", read.fresh);
    }
}

/// Copies files as Git would: without a sandbox's data.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from)
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
    {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() { copy(&from, &to) } else { fs::copy(from, to).map(drop).unwrap() }
    }
}
