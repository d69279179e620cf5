//! Makes the list of `src/diagnostic/codes`, one file for each code, so that another needs no line of code.

use std::{env, fs, io, path::Path};

fn main() -> io::Result<()> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("src/diagnostic/codes");
    println!("cargo::rerun-if-changed={}", folder.display());
    let pages: io::Result<Vec<_>> = fs::read_dir(folder)?.map(|page| Ok(page?.path())).collect();
    let mut pages = pages?;
    pages.sort_by_key(|page| page.file_stem().map(ToOwned::to_owned));
    let row =
        |page: &Path| format!("page({:?}, include_str!({page:?})),", page.file_stem().unwrap());
    let rows: String = pages.iter().map(|page| row(page)).collect();
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("codes.rs"), format!("&[{rows}]"))
}
