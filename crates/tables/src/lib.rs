//! For build scripts: converts tables from YAML to JSON, which the program reads ten times faster.
#![expect(clippy::print_stdout, reason = "a build script tells cargo what it read by printing it")]

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// Writes each table `src/NAME.yaml` of the package that is built as `tables/NAME.json` of its `OUT_DIR`.
///
/// # Errors
/// If a file cannot be read or written, or is no YAML.
pub fn convert_all(names: &[&str]) -> io::Result<()> {
    names.iter().try_for_each(|name| convert_table(name).map(drop))
}

/// Converts the table `src/NAME.yaml`, and returns the path of its JSON.
fn convert_table(name: &str) -> io::Result<PathBuf> {
    let file = package_root().join("src").join(name).with_extension("yaml");
    println!("cargo::rerun-if-changed={}", file.display());
    convert(&file)
}

/// Converts the table in one file, and returns the path of its JSON.
///
/// # Errors
/// As [`convert_all`].
///
/// # Panics
/// If it is not called by a build script, for a file below `src`.
pub fn convert(file: &Path) -> io::Result<PathBuf> {
    let add_file_name =
        |error: serde_yaml::Error| io::Error::other(format!("{}: {error}", file.display()));
    let mut content: serde_yaml::Value =
        serde_yaml::from_str(&fs::read_to_string(file)?).map_err(add_file_name)?;
    content.apply_merge().map_err(add_file_name)?;
    let table = Path::new(&env::var_os("OUT_DIR").unwrap()).join("tables");
    let table =
        table.join(file.strip_prefix(package_root().join("src")).unwrap()).with_extension("json");
    fs::create_dir_all(table.parent().unwrap())?;
    fs::write(&table, serde_json::to_string(&content)?)?;
    Ok(table)
}

/// Converts the table `src/NAME.yaml` of texts, and writes a constant for each row as `tables/NAME.rs`. With a
/// `length`, short rows end with empty texts. The text number `code` is the code of the message, and must have a page
/// in the folder `pages`.
///
/// # Errors
/// As [`convert_all`], or if a code has no page.
///
/// # Panics
/// If it is not called by a build script.
pub fn convert_texts(
    name: &str,
    length: Option<usize>,
    code: usize,
    pages: &Path,
) -> io::Result<()> {
    let table = convert_table(name)?;
    let rows: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(&fs::read(&table)?)?;
    let mut constants = String::new();
    for (name, row) in rows {
        let mut texts: Vec<String> = serde_json::from_value(row)?;
        let page = pages.join(&texts[code]).with_extension("md");
        fs::metadata(&page)
            .map_err(|error| io::Error::other(format!("{}: {error}", page.display())))?;
        let length = length.unwrap_or(texts.len());
        if texts.len() > length {
            return Err(io::Error::other(format!("{name} has more than {length} texts")));
        }
        texts.resize(length, String::new());
        let name = name.to_uppercase();
        constants += &format!("pub(crate) const {name}: [&str; {length}] = {texts:?};\n");
    }
    fs::write(table.with_extension("rs"), constants)
}

/// The folder of the package that is built.
///
/// # Panics
/// If it is not called by a build script.
pub fn package_root() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").unwrap().into()
}
