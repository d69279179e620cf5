//! The cases of `tests/corpus`: manifests, and what `undrift check` answers.
//!
//! A case is one file `NAME.txt`: its files, each after a line `-- FILE --`, and at last `report`.
//! The only file or folder is checked, or what a first line `undrift check PATH` names.

use std::{fs, path::Path};

/// A case of the corpus.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The checked path, below the case's folder.
    pub(crate) path: String,
    /// The name and text of each file.
    pub(crate) files: Vec<(String, String)>,
    pub(crate) report: String,
}

/// All cases, by name.
pub(crate) fn cases() -> Vec<Case> {
    // Crates below the root use this file too.
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let folder = above.map(|folder| folder.join("tests/corpus")).find(|folder| folder.is_dir());
    let folder = folder.expect("the corpus is in the repository");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Case {
    let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut command = String::new();
    let mut files: Vec<(String, String)> = Vec::new();
    for line in fs::read_to_string(file).unwrap().split_inclusive('\n') {
        let title = line.strip_prefix("-- ").and_then(|line| line.strip_suffix(" --\n"));
        match (title, files.last_mut()) {
            (Some(title), _) => files.push((title.to_owned(), String::new())),
            (None, Some((_, text))) => text.push_str(line),
            (None, None) => command.push_str(line),
        }
    }
    let report = files.pop_if(|(title, _)| title == "report");
    let (_, report) = report.unwrap_or_else(|| panic!("{name}.txt must end with a report"));
    let first = files[0].0.split('/').next().unwrap();
    let path = command.trim().strip_prefix("undrift check ").unwrap_or(first).to_owned();
    Case { name, path, files, report }
}
