//! Prepares the tables of this crate, and the lists of `src/diagnostic/codes` and `src/kinds/described`, so that
//! another code or kind needs no line of code.

use std::{env, ffi::OsStr, fs, io, path::Path};

use undrift_tables::{convert, convert_all, root};

fn main() -> io::Result<()> {
    // Those outside of `src/kinds/described`.
    convert_all(&[
        "kind/grants",
        "kinds/constraints",
        "kinds/integration",
        "kinds/presets",
        "kinds/values",
        "kinds/words",
        "operation/parameters",
    ])?;
    list("codes.rs", "src/diagnostic/codes", "md", |page| {
        Ok(format!("page({:?}, include_str!({page:?})),", page.file_stem().unwrap()))
    })?;
    list("described.rs", "src/kinds/described", "yaml", |file| {
        Ok(format!("include_str!({:?}),", convert(file)?))
    })
}

/// Writes a list with a row for each file of `folder` with this `end`, by name.
fn list(
    name: &str,
    folder: &str,
    end: &str,
    row: impl Fn(&Path) -> io::Result<String>,
) -> io::Result<()> {
    let folder = root().join(folder);
    println!("cargo::rerun-if-changed={}", folder.display());
    let files: io::Result<Vec<_>> = fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect();
    let mut files = files?;
    files.retain(|file| file.extension() == Some(OsStr::new(end)));
    files.sort_by_key(|file| file.file_stem().map(ToOwned::to_owned));
    let rows = files.iter().map(|file| row(file)).collect::<io::Result<String>>()?;
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join(name), format!("&[{rows}]"))
}
