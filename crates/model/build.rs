//! Prepares what the program contains: the tables below `src`, which are YAML, as JSON, which is read in a
//! tenth of the time; and the lists of `src/diagnostic/codes` and `src/kinds/described`, so that another code
//! or kind needs no line of code.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

/// The tables outside of `src/kinds/described`.
const TABLES: [&str; 7] = [
    "kind/grants",
    "kinds/constraints",
    "kinds/integration",
    "kinds/presets",
    "kinds/values",
    "kinds/words",
    "operation/parameters",
];

fn main() -> io::Result<()> {
    for name in TABLES {
        let file = root().join("src").join(name).with_extension("yaml");
        println!("cargo::rerun-if-changed={}", file.display());
        convert(&file)?;
    }
    list("codes.rs", "src/diagnostic/codes", "md", |page| {
        Ok(format!("page({:?}, include_str!({page:?})),", page.file_stem().unwrap()))
    })?;
    list("described.rs", "src/kinds/described", "yaml", |file| {
        Ok(format!("include_str!({:?}),", convert(file)?))
    })
}

/// The folder of the package.
fn root() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").unwrap().into()
}

/// Writes a YAML file as JSON, and returns where that is.
fn convert(file: &Path) -> io::Result<PathBuf> {
    let wrong = |error: serde_yaml::Error| io::Error::other(format!("{}: {error}", file.display()));
    let mut content: serde_yaml::Value =
        serde_yaml::from_str(&fs::read_to_string(file)?).map_err(wrong)?;
    content.apply_merge().map_err(wrong)?;
    let table = Path::new(&env::var_os("OUT_DIR").unwrap()).join("tables");
    let table = table.join(file.strip_prefix(root().join("src")).unwrap()).with_extension("json");
    fs::create_dir_all(table.parent().unwrap())?;
    fs::write(&table, serde_json::to_string(&content)?)?;
    Ok(table)
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
