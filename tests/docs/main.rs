//! The pages: the book in `docs/`, the README, the pipeline in `examples/ci/` and the Dockerfile.
//! Their commands run, and their generated parts are current.
//!
//! A test belongs here if it is about a page or a file that people copy.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test --test docs` updates shown output and generated pages.
#![cfg(all(feature = "sandbox", unix))]

mod book;
mod ci;
mod container;
mod fields;
mod leads;
mod links;
mod named;
mod picture;
mod readme;
mod reference;
#[path = "../support/sample.rs"]
mod sample;
mod shown;
mod threats;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folder of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the repository.
fn file(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The pages of the book by path, without the table of contents.
fn pages() -> Vec<String> {
    let mut pages = Vec::new();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap().map(Result::unwrap) {
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    pages.retain(|page| page != "docs/SUMMARY.md");
    pages.sort();
    pages
}

/// True if files are updated instead of compared.
fn is_updating() -> bool {
    std::env::var_os("UPDATE_SNAPSHOTS").is_some()
}

/// Compares a generated file with its expected content, or updates it.
fn assert_current(name: &str, fresh: &str) {
    if is_updating() {
        fs::write(root().join(name), fresh).unwrap();
    }
    let written = fs::read_to_string(root().join(name)).unwrap_or_default();
    assert!(
        written == fresh,
        "{name} is out of date: read what changed after `UPDATE_SNAPSHOTS=1 cargo test --test docs`"
    );
}
