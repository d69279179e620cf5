//! Prepares the tables of this crate.

fn main() -> std::io::Result<()> {
    undrift_tables::convert_all(&[
        "manifest/faults/helps",
        "manifest/faults/slips",
        "manifest/read/foreign",
        "manifest/schema/documents",
    ])
}
