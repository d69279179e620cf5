//! Prepares the tables of this crate.

use undrift_tables::{convert_all, convert_texts, package_root};

fn main() -> std::io::Result<()> {
    convert_all(&[
        "manifest/faults/helps",
        "manifest/faults/slips",
        "manifest/read/foreign",
        "manifest/read/unfilled",
        "manifest/schema/documents",
    ])?;
    let pages = package_root().join("../model/src/diagnostic/codes");
    convert_texts("diff/problems", None, 0, &pages)?;
    convert_texts("manifest/faults/texts", Some(5), 1, &pages)
}
