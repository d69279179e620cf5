//! Makes the lists of `src/diagnostic/codes`, one file for each code, and of `src/kinds/described`, one
//! for each kind, so that another needs no line of code.

use std::{env, ffi::OsStr, fs, io, path::Path};

fn main() -> io::Result<()> {
    list("src/diagnostic/codes", "md", "codes.rs", |page| {
        format!("page({:?}, include_str!({page:?})),", page.file_stem().unwrap())
    })?;
    list("src/kinds/described", "yaml", "described.rs", |file| format!("include_str!({file:?}),"))
}

/// Writes a list with a row for each file of `folder` with this `end`, by name.
fn list(folder: &str, end: &str, name: &str, row: impl Fn(&Path) -> String) -> io::Result<()> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join(folder);
    println!("cargo::rerun-if-changed={}", folder.display());
    let files: io::Result<Vec<_>> = fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect();
    let mut files = files?;
    files.retain(|file| file.extension() == Some(OsStr::new(end)));
    files.sort_by_key(|file| file.file_stem().map(ToOwned::to_owned));
    let rows: String = files.iter().map(|file| row(file)).collect();
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join(name), format!("&[{rows}]"))
}
