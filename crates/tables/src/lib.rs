//! Converts tables from YAML to JSON in build scripts. The program reads JSON ten times faster than
//! YAML.
#![expect(clippy::print_stdout, reason = "a build script tells cargo what it read by printing it")]

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// Converts each table `src/NAME.yaml` of the package that is being built to `tables/NAME.json` in
/// the folder `OUT_DIR`.
///
/// # Errors
/// If a file cannot be read or written, or is not YAML.
pub fn convert_all(names: &[&str]) -> io::Result<()> {
    names.iter().try_for_each(|name| convert_table(name).map(drop))
}

/// Converts the table `src/NAME.yaml`, and returns the path of its JSON.
fn convert_table(name: &str) -> io::Result<PathBuf> {
    let file = package_root().join("src").join(name).with_extension("yaml");
    println!("cargo::rerun-if-changed={}", file.display());
    convert_file(&file)
}

/// Converts the table in one file, and returns the path of its JSON.
///
/// # Errors
/// The errors of [`convert_all`].
///
/// # Panics
/// If the caller is not a build script, or if `file` is not below `src`.
pub fn convert_file(file: &Path) -> io::Result<PathBuf> {
    let add_file_name =
        |error: serde_yaml::Error| io::Error::other(format!("{}: {error}", file.display()));
    let mut content: serde_yaml::Value =
        serde_yaml::from_str(&fs::read_to_string(file)?).map_err(add_file_name)?;
    content.apply_merge().map_err(add_file_name)?;
    let tables_folder = Path::new(&env::var_os("OUT_DIR").unwrap()).join("tables");
    let output_path = tables_folder
        .join(file.strip_prefix(package_root().join("src")).unwrap())
        .with_extension("json");
    fs::create_dir_all(output_path.parent().unwrap())?;
    fs::write(&output_path, serde_json::to_string(&content)?)?;
    Ok(output_path)
}

/// Converts the table `src/NAME.yaml` of texts, and writes a constant for each row to
/// `tables/NAME.rs`. With a `length`, each row gets this number of texts: missing texts are empty.
/// In each row, the text at `code_index` is the code of the message. The folder `pages` must
/// contain a page for each code.
///
/// # Errors
/// The errors of [`convert_all`], and an error if a code has no page, or a row has more than
/// `length` texts.
///
/// # Panics
/// If the caller is not a build script.
pub fn convert_texts(
    name: &str,
    length: Option<usize>,
    code_index: usize,
    pages: &Path,
) -> io::Result<()> {
    let table = convert_table(name)?;
    let rows: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(&fs::read(&table)?)?;
    let mut constants = String::new();
    for (row_name, row) in rows {
        let mut texts: Vec<String> = serde_json::from_value(row)?;
        let page = pages.join(&texts[code_index]).with_extension("md");
        fs::metadata(&page)
            .map_err(|error| io::Error::other(format!("{}: {error}", page.display())))?;
        let length = length.unwrap_or(texts.len());
        if texts.len() > length {
            return Err(io::Error::other(format!("{row_name} has more than {length} texts")));
        }
        texts.resize(length, String::new());
        let constant_name = row_name.to_uppercase();
        constants += &format!("pub(crate) const {constant_name}: [&str; {length}] = {texts:?};\n");
    }
    fs::write(table.with_extension("rs"), constants)
}

/// The folder of the package that is being built.
///
/// # Panics
/// If the caller is not a build script.
pub fn package_root() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").unwrap().into()
}
