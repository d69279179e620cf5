//! Prepares what the program contains: the tables below `src`, which are YAML, as JSON, which is read in a
//! tenth of the time; and the lists of `src/diagnostic/codes` and `src/kinds/described`, so that another code
//! or kind needs no line of code.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    tables(Path::new("src"))?;
    list("codes.rs", "src/diagnostic/codes", "md", |page| {
        format!("page({:?}, include_str!({page:?})),", page.file_stem().unwrap())
    })?;
    list("described.rs", "src/kinds/described", "yaml", |file| {
        format!("include_str!({:?}),", table(file))
    })
}

/// Where the table of a YAML file is.
fn table(file: &Path) -> PathBuf {
    let file = file.strip_prefix(root()).unwrap_or(file);
    let folder = Path::new(&env::var_os("OUT_DIR").unwrap()).join("tables");
    folder.join(file.strip_prefix("src").unwrap()).with_extension("json")
}

/// The folder of the package.
fn root() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").unwrap().into()
}

/// Writes each YAML file below `folder` as JSON.
fn tables(folder: &Path) -> io::Result<()> {
    for file in files(folder)? {
        if file.is_dir() {
            tables(&file)?;
        } else if file.extension() == Some(OsStr::new("yaml")) {
            println!("cargo::rerun-if-changed={}", file.display());
            let wrong =
                |error: serde_yaml::Error| io::Error::other(format!("{}: {error}", file.display()));
            let text = fs::read_to_string(&file)?;
            let mut content: serde_yaml::Value = serde_yaml::from_str(&text).map_err(wrong)?;
            content.apply_merge().map_err(wrong)?;
            let table = table(&file);
            fs::create_dir_all(table.parent().unwrap())?;
            fs::write(table, serde_json::to_string(&content)?)?;
        }
    }
    Ok(())
}

/// The files and folders in `folder`, by name.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = root().join(folder);
    println!("cargo::rerun-if-changed={}", folder.display());
    let files: io::Result<Vec<_>> = fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect();
    let mut files = files?;
    files.sort();
    Ok(files)
}

/// Writes a list with a row for each file of `folder` with this `end`, by name.
fn list(name: &str, folder: &str, end: &str, row: impl Fn(&Path) -> String) -> io::Result<()> {
    let mut files = files(Path::new(folder))?;
    files.retain(|file| file.extension() == Some(OsStr::new(end)));
    files.sort_by_key(|file| file.file_stem().map(ToOwned::to_owned));
    let rows: String = files.iter().map(|file| row(file)).collect();
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join(name), format!("&[{rows}]"))
}
