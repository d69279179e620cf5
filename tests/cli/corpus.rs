//! Reports of `undrift check` on broken manifests: the cases of `tests/corpus`.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test --test cli corpus` writes the reports anew. Every case contains a
//! secret, and no report does. A case whose name starts with `good` (or `folder-good`) has no fault;
//! `good-but` and `spellings-deprecated` only have warnings.

use std::{collections::BTreeMap, fs, path::Path};

use tempfile::TempDir;
use undrift::{
    diagnostic::{Severity, TextStyle, codes},
    manifest::{self, LoadEnvironment, LoadedManifests},
};

use super::cases::{Case, cases};

/// A secret that no report may contain, even in part.
const CANARY: &str = "canary-7f3a9c21";
const CANARY_PARTS: [&str; 3] = [CANARY, "canary", "7f3a9c21"];

const STYLE: TextStyle = TextStyle { is_coloured: false, width: Some(120), is_full: true };

/// All cases, with their files in a folder.
struct Corpus {
    folder: TempDir,
    cases: Vec<Case>,
}

impl Corpus {
    fn new() -> Self {
        let corpus = Self { folder: TempDir::new().unwrap(), cases: cases() };
        for (file, text) in corpus.cases.iter().flat_map(|case| &case.files) {
            let path = corpus.folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        corpus
    }

    fn load(&self, case: &Case) -> LoadedManifests {
        load(&self.folder.path().join(&case.path), self.folder.path())
    }
}

/// Checks `path`, in surroundings on a fixed day.
fn load(path: &Path, folder: &Path) -> LoadedManifests {
    let today = jiff::civil::date(2030, 1, 1);
    manifest::load(
        path,
        &LoadEnvironment {
            working_folder: folder.to_owned(),
            today,
            ..LoadEnvironment::for_process()
        },
    )
}

fn assert_silent(name: &str, report: &str) {
    for trace in CANARY_PARTS {
        assert!(!report.contains(trace), "{name} shows a secret:\n{report}");
    }
}

/// Writes the report into the file of the case.
fn update(case: &Case, report: &str) {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{}.txt", case.name));
    let text = fs::read_to_string(&file).unwrap();
    let (files, _) = text.rsplit_once("-- report --\n").unwrap();
    fs::write(file, format!("{files}-- report --\n{report}")).unwrap();
}

#[test]
fn every_report_is_as_recorded_and_keeps_secrets() {
    let updates = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    let mut differing = Vec::new();
    let corpus = Corpus::new();
    for case in &corpus.cases {
        let Case { name, files, .. } = case;
        assert!(files.iter().any(|(_, text)| text.contains(CANARY)), "{name} contains no secret");
        let (report, code) = corpus.load(case).render_report(STYLE);
        assert_silent(name, &report);
        let is_good = ["good", "folder-good", "spellings-deprecated"]
            .iter()
            .any(|good| name.starts_with(good));
        assert_eq!(code, if is_good { 0 } else { 3 }, "{name}:\n{report}");
        if updates {
            update(case, &report);
        } else if case.report != report {
            differing.push(format!("{name}:\n{report}"));
        }
    }
    assert!(
        differing.is_empty(),
        "run again with UPDATE_SNAPSHOTS=1 if this is meant:\n\n{}",
        differing.join("\n")
    );
}

#[test]
fn colours_and_narrow_terminals_keep_secrets_too() {
    let corpus = Corpus::new();
    for case in &corpus.cases {
        let loaded = corpus.load(case);
        assert_silent(&case.name, &serde_json::to_string(&loaded.diagnostics).unwrap());
        assert_silent(&case.name, &format!("{:?}", loaded.diagnostics));
        for (colour, width) in [(true, 120), (false, 20), (true, 300)] {
            let (report, _) = loaded.render_report(TextStyle {
                is_coloured: colour,
                width: Some(width),
                is_full: false,
            });
            assert_silent(&case.name, &report);
        }
    }
}

/// The codes of all diagnostics for a folder with one file of these bytes.
fn codes_of(file: &str, bytes: &[u8]) -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(file), bytes).unwrap();
    let loaded = load(folder.path(), folder.path());
    let (report, code) = loaded.render_report(STYLE);
    assert_silent(file, &report);
    assert_eq!(code, 3, "{report}");
    loaded.diagnostics.sorted().into_iter().map(|diagnostic| diagnostic.code).collect()
}

/// A manifest with a variable that has a secret, followed by one with `value`.
fn with_value(value: &str) -> String {
    format!(
        "kind: Project\npath: acme/shop\nvariables:\n  - {{key: A, value: {CANARY}}}\n  - {{key: B, value: {value}}}\n"
    )
}

#[test]
fn files_that_are_not_text_are_refused() {
    let mut invalid = with_value(CANARY).into_bytes();
    invalid.push(0xff);
    assert_eq!(codes_of("a.yaml", &invalid), ["not-utf-8"]);
    assert_eq!(codes_of("a.yaml", with_value("a\0b").as_bytes()), ["control-character"]);
    let utf_16: Vec<u8> = with_value(CANARY).encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(codes_of("a.yaml", &utf_16), ["control-character"]);
    assert_eq!(codes_of("a.yaml", with_value(&"x".repeat(1 << 20)).as_bytes()), ["too-large"]);
}

#[test]
fn a_folder_without_manifests_is_an_error() {
    assert_eq!(codes_of("a.txt", CANARY.as_bytes()), ["no-manifests"]);
    assert_eq!(codes_of(".a.yaml", CANARY.as_bytes()), ["no-manifests"]);
    assert_eq!(codes_of("sandbox.yaml", CANARY.as_bytes()), ["no-manifests"]);
    let (report, code) = load(Path::new("absent"), Path::new("")).render_report(STYLE);
    assert_eq!((code, report.contains("no such file or folder")), (3, true), "{report}");
}

#[test]
fn files_that_would_exhaust_a_reader_are_refused() {
    for brackets in ["[", "{a: "] {
        assert_eq!(
            codes_of("a.yaml", with_value(&brackets.repeat(100_000)).as_bytes()),
            ["yaml-limit"],
            "{brackets}"
        );
    }
    let lists: String = (1..9)
        .map(|i| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(",")))
        .collect();
    assert_eq!(
        codes_of("a.yaml", format!("a0: &a0 [{CANARY}]\n{lists}").as_bytes()),
        ["yaml-limit"]
    );
    let text = format!("a: &a {}\nb: [{}]\n", CANARY.repeat(10_000), vec!["*a"; 1000].join(","));
    assert_eq!(codes_of("a.yaml", text.as_bytes()), ["yaml-limit"]);
}

#[test]
fn a_file_full_of_faults_is_cut_short() {
    let entries: String = (0..5000).map(|i| format!("x{i}: {CANARY}\n")).collect();
    let codes = codes_of("a.yaml", format!("kind: Project\npath: acme/shop\n{entries}").as_bytes());
    assert_eq!((codes.len(), codes[0]), (101, "too-many-faults"));
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_not_followed() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(elsewhere.path().join("b.yaml"), with_value(CANARY)).unwrap();
    fs::write(folder.path().join("a.yaml"), "kind: Project\npath: acme/one\n").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("linked")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("b.yaml"), folder.path().join("b.yaml"))
        .unwrap();
    assert_eq!(load(folder.path(), folder.path()).paths.len(), 1);
}

#[cfg(unix)]
#[test]
fn a_configuration_that_is_no_regular_file_is_refused() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("undrift.yaml"), "version: 1\n").unwrap();
    let link =
        |to: &str, at: &Path| std::os::unix::fs::symlink(elsewhere.path().join(to), at).unwrap();
    let pipe = |at: &Path| {
        assert!(std::process::Command::new("mkfifo").arg(at).status().unwrap().success());
    };
    for (case, what) in [
        ("a link", "a symbolic link"),
        ("a dead link", "a symbolic link"),
        ("a folder", "a folder"),
        ("a pipe", "a pipe or a device"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (manifest, config) = (folder.path().join("a.yaml"), folder.path().join("undrift.yaml"));
        fs::write(manifest, "kind: Project\npath: acme/one\n").unwrap();
        match case {
            "a link" => link("undrift.yaml", &config),
            "a dead link" => link("absent", &config),
            "a folder" => fs::create_dir(&config).unwrap(),
            _ => pipe(&config),
        }
        let (report, code) = load(folder.path(), folder.path()).render_report(STYLE);
        assert!(
            report.contains(&format!("`undrift.yaml` must be a regular file, not {what}"))
                && code == 3,
            "{case}: {report}"
        );
    }
}

/// The diagnostics of `check` for the files in `text`, each of which begins with its name.
fn diagnostics_of(text: &str) -> Vec<(Severity, &'static str)> {
    let folder = tempfile::tempdir().unwrap();
    let mut name = "shop.yaml";
    let mut files = BTreeMap::<&str, String>::new();
    for line in text.lines() {
        match line.strip_prefix("# ").filter(|file| file.ends_with(".yaml")) {
            Some(file) => name = file,
            None => *files.entry(name).or_default() += &format!("{line}\n"),
        }
    }
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    load(folder.path(), folder.path())
        .diagnostics
        .into_iter()
        .map(|said| (said.severity, said.code))
        .collect()
}

#[test]
fn every_example_has_its_fault_and_no_fault_once_corrected() {
    let mut wrong = Vec::new();
    for code in codes::CODES {
        let Some(example) = code.example() else { continue };
        let (said, mended) = (diagnostics_of(example.wrong), diagnostics_of(example.right));
        let is_other = |(severity, said): &(Severity, &str)| {
            *severity == Severity::Error && *said != code.name
        };
        let has_fault = said.iter().any(|(_, said)| *said == code.name);
        if !has_fault || said.iter().any(is_other) || !mended.is_empty() {
            wrong.push(format!("{}: {said:?}, mended {mended:?}", code.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Codes that a few lines of text cannot show: for empty folders, and for unreadable files.
const WITHOUT_EXAMPLE: [&str; 2] = ["no-manifests", "unreadable"];

#[test]
fn the_corpus_is_large_and_every_code_in_it_is_explained_with_an_example() {
    let corpus = Corpus::new();
    let (mut faulty, mut several) = (0, 0);
    for case in &corpus.cases {
        let Case { name, .. } = case;
        let diagnostics = corpus.load(case).diagnostics;
        if name.starts_with("several") {
            several += 1;
            assert!(diagnostics.len() >= 3, "{name}");
        } else if !name.contains("good") {
            faulty += 1;
        }
        for diagnostic in diagnostics {
            let code = codes::find_code(diagnostic.code)
                .unwrap_or_else(|| panic!("{name}: `{}` has no explanation", diagnostic.code));
            assert!(
                code.example().is_some() || WITHOUT_EXAMPLE.contains(&code.name),
                "{name}: crates/model/src/diagnostic/codes/{}.md has no example",
                code.name
            );
        }
    }
    assert_eq!((several, faulty >= 440), (11, true), "{faulty} faulty cases");
}
