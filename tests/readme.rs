//! Checks the README: its commands run in order, its files are used unchanged, and it shows the
//! actual output of undrift. `UPDATE_SNAPSHOTS=1 cargo test --test readme` updates the output. The
//! conventions are those of the book (`docs/shown.rs`).
#![cfg(all(feature = "sandbox", unix))]

#[path = "docs/shown.rs"]
#[expect(dead_code, reason = "only jobs of the pipeline enter other folders")]
mod shown;

use std::{fs, path::Path};

use shown::{Place, Ran};

#[test]
fn the_readme_works_as_it_stands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let mut place = Place::new();
    copy(&root.join("examples/acme"), &place.path().join("examples/acme"));
    let read = shown::read(&readme, &mut place);
    assert!(read.faults.is_empty(), "README.md:{}", read.faults.join("\nREADME.md:"));
    assert_eq!(read.ran, Ran { shown: 2, used: 8, files: 1, passed_over: 0 });
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
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
