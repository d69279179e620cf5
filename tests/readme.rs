//! The README is true: its commands are run in their order, its files are used as they stand, and
//! what it shows is what undrift prints. `UPDATE_SNAPSHOTS=1 cargo test --test readme` writes the
//! output anew.
#![cfg(feature = "sandbox")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

#[test]
fn the_readme_works_as_it_stands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    copy(&root.join("examples/acme"), &folder.path().join("examples/acme"));
    let (mut fresh, mut ran) = (String::new(), Ran::default());
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        fresh += &format!("{line}\n");
        if line == "```console" {
            let shown = lines.next().unwrap();
            let command = shown.strip_prefix("$ undrift ").expect("a command of undrift");
            fresh +=
                &format!("{shown}\n{}```\n", end_of_line(&output(folder.path(), command).stdout));
            lines.by_ref().find(|line| *line == "```").expect("the block ends");
            ran.shown += 1;
        } else if line.starts_with("```") && line.len() > 3 {
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            let file = block[0].strip_prefix("# ").expect("the file's name");
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, block[1..].join("\n") + "\n").unwrap();
            fresh += &format!("{}\n```\n", block.join("\n"));
            ran.files += 1;
        } else if let Some(command) = line.strip_prefix("    cargo run -- ") {
            output(folder.path(), command);
            ran.first += 1;
        } else if let Some(command) =
            line.strip_prefix("    undrift ").map(|line| line.split('#').next().unwrap())
            && (command.starts_with("check") || command.contains("--sandbox"))
        {
            output(folder.path(), command);
            ran.used += 1;
        }
    }
    assert_eq!(ran, Ran { first: 1, shown: 6, files: 5, used: 3 });
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &fresh).unwrap();
    }
    assert!(
        fresh == readme || std::env::var_os("UPDATE_SNAPSHOTS").is_some(),
        "the README shows something else than\n{fresh}"
    );
}

/// How much of each sort was run, so that none is passed over.
#[derive(Debug, Default, PartialEq)]
struct Ran {
    first: usize,
    shown: usize,
    files: usize,
    used: usize,
}

/// What a command prints, warnings on stderr left out.
fn output(folder: &Path, command: &str) -> Output {
    let words = command.split_whitespace().map(|word| word.trim_matches('\''));
    let mut undrift = Command::new(env!("CARGO_BIN_EXE_undrift"));
    let output = undrift.args(words).current_dir(folder).env_clear().output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    output
}

fn end_of_line(text: &[u8]) -> String {
    let text = String::from_utf8(text.to_vec()).unwrap();
    if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
}

/// Copies what Git would: a sandbox's data stays where it is.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from)
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
    {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() { copy(&from, &to) } else { fs::copy(from, to).map(drop).unwrap() }
    }
}
