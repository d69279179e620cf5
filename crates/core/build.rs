//! Prepares the tables of this crate.

use undrift_tables::{convert_all, convert_texts, root};

fn main() -> std::io::Result<()> {
    convert_texts(&["diff/problems"], &root().join("../model/src/diagnostic/codes"))?;
    convert_all(&[
        "manifest/faults/helps",
        "manifest/faults/slips",
        "manifest/read/foreign",
        "manifest/schema/documents",
    ])
}
