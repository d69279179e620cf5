//! Converts the tables of this crate to JSON and generates Rust code: the constants of operations,
//! and the lists of the files in `src/diagnostic/codes` and `src/catalogue`. A new operation, code
//! or kind needs no line of code.

use std::{env, ffi::OsStr, fs, io, path::Path};

use serde_json::{Map, Value};
use undrift_tables::{convert_all, convert_file, convert_texts, package_root};

fn main() -> io::Result<()> {
    // The tables. `write_list` converts the descriptions in `src/catalogue`.
    convert_all(&[
        "kind/grants",
        "catalogue/tables/constraints",
        "catalogue/tables/roles",
        "catalogue/description/faults",
        "catalogue/tables/values",
        "catalogue/tables/words",
        "operation/parameters",
        "operation/table",
        "secret/signs",
        "yaml/syntax",
    ])?;
    let pages = package_root().join("src/diagnostic/codes");
    convert_texts("kind/faults", None, 1, &pages)?;
    convert_texts("yaml/faults", None, 0, &pages)?;
    let rows = fs::read(build_file("tables/operation/table.json"))?;
    let rows: Vec<_> = serde_json::from_slice(&rows)?;
    fs::write(build_file("operations.rs"), operation_constants(&rows))?;
    write_list("codes.rs", "src/diagnostic/codes", "md", |page| {
        Ok(format!("page({:?}, include_str!({page:?})),", page.file_stem().unwrap()))
    })?;
    write_list("descriptions.rs", "src/catalogue", "yaml", |file| {
        Ok(format!("include_str!({:?}),", convert_file(file)?))
    })
}

/// The path of a file in the output folder of the build.
fn build_file(name: &str) -> std::path::PathBuf {
    Path::new(&env::var_os("OUT_DIR").unwrap()).join(name)
}

/// Generates a constant for each operation in `rows`, and a list of all operations.
fn operation_constants(rows: &[Map<String, Value>]) -> String {
    let (mut constants, mut list_items) = (String::new(), String::new());
    for row in rows {
        let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or("supporting");
        let (name, method) = (text("name"), text("method"));
        let effect = if method == "Get" { "Read" } else { "Write" };
        let pairs = row.iter().filter(|(key, _)| *key != "name");
        let properties: String =
            pairs.map(|(key, value)| format_property(key, value) + ", ").collect();
        constants += &format!(
            "/// `{}`: {} ({}).\npub const {name}: Op<{effect}> = {{\n    static ROW: Operation = Operation {{ \
             {properties}..Operation::with_defaults(Method::{method}) }};\n    Op::new(&ROW)\n}};\n",
            text("id"),
            text("purpose"),
            text("source"),
        );
        list_items += &format!("AnyOp::{effect}({name}), ");
    }
    format!(
        "{constants}/// Every operation of the table.\npub static OPERATIONS: &[AnyOp] = &[{list_items}];\n"
    )
}

/// Formats a property of an operation as a Rust field.
fn format_property(key: &str, value: &Value) -> String {
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    let word = value.as_str().unwrap_or_default();
    match (key, items) {
        ("method", _) => format!("method: Method::{word}"),
        ("response", _) => format!("response: ResponseBody::{word}"),
        ("retry_safety", _) => format!("retry_safety: RetrySafety::{word}"),
        ("tier", _) => format!("tier: Tier::{word}"),
        ("requests_per_minute", _) => format!("requests_per_minute: Some({value})"),
        ("since", [major, minor]) => format!("since: Some(Release::new({major}, {minor}))"),
        ("fields", [Value::String(scope), section, Value::String(route)]) => {
            format!("fields: Some(((Scope::{scope}, {section}), WriteRequest::{route}))")
        }
        ("takes", lists) => {
            let lists: String =
                lists.iter().map(|list| format!("ParameterList::Named({list}), ")).collect();
            format!("parameters: &[{lists}]")
        }
        _ => format!("{key}: {}{value}", if items.is_empty() { "" } else { "&" }),
    }
}

/// Writes a Rust list with a row for each file of `folder` with this `extension`, sorted by name.
fn write_list(
    name: &str,
    folder: &str,
    extension: &str,
    row: impl Fn(&Path) -> io::Result<String>,
) -> io::Result<()> {
    let folder = package_root().join(folder);
    println!("cargo::rerun-if-changed={}", folder.display());
    let files: io::Result<Vec<_>> = fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect();
    let mut files = files?;
    files.retain(|file| file.extension() == Some(OsStr::new(extension)));
    files.sort_by_key(|file| file.file_stem().map(ToOwned::to_owned));
    let rows = files.iter().map(|file| row(file)).collect::<io::Result<String>>()?;
    fs::write(build_file(name), format!("&[{rows}]"))
}
