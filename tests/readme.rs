//! What the README shows is what undrift prints. `UPDATE_SNAPSHOTS=1 cargo test --test readme` writes it anew.
#![cfg(feature = "sandbox")]

use std::{fs, path::Path, process::Command};

#[test]
fn the_transcripts_are_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    copy(&root.join("examples/acme"), &folder.path().join("examples/acme"));
    let (mut fresh, mut rest, mut shown) = (String::new(), readme.as_str(), 0);
    while let Some((before, after)) = rest.split_once("```console\n$ undrift ") {
        let (block, after) = after.split_once("\n```").expect("the block ends");
        let command = block.lines().next().unwrap_or_default();
        fresh += &format!("{before}```console\n$ undrift {command}\n{}```", run(folder.path(), command));
        rest = after;
        shown += 1;
    }
    fresh += rest;
    assert!(shown > 0, "the README shows no command");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &fresh).unwrap();
    }
    assert!(fresh == readme || std::env::var_os("UPDATE_SNAPSHOTS").is_some(), "the README shows something else than\n{fresh}");
}

/// What a command prints, warnings on stderr left out.
fn run(folder: &Path, command: &str) -> String {
    let words = command.split_whitespace().map(|word| word.trim_matches('\''));
    let output = Command::new(env!("CARGO_BIN_EXE_undrift")).args(words).current_dir(folder).env_clear().output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Copies what Git would: a sandbox's data stays where it is.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() { copy(&from, &to) } else { fs::copy(from, to).map(drop).unwrap() }
    }
}
