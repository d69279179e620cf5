//! Prepares what the program contains: the tables below `src`, which are YAML, as JSON, which is read in a
//! tenth of the time.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// The tables.
const TABLES: [&str; 4] = [
    "manifest/faults/helps",
    "manifest/faults/slips",
    "manifest/read/foreign",
    "manifest/schema/documents",
];

fn main() -> io::Result<()> {
    for name in TABLES {
        let file = root().join("src").join(name).with_extension("yaml");
        println!("cargo::rerun-if-changed={}", file.display());
        convert(&file)?;
    }
    Ok(())
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
