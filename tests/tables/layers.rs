//! Imports point down only, also within a crate: the compiler only holds the order of the crates.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use undrift::diagnostic::codes;

/// The folders with the source of undrift, without the sandbox.
const SOURCES: [&str; 4] = ["crates/model/src", "crates/core/src", "crates/client/src", "src"];

/// Each top-level module with its layer, and the modules of the same or a higher layer that it may
/// import as exceptions.
const LAYERS: &[(&str, u8, &[&str])] = &[
    ("text", 0, &["steps"]),
    ("value", 0, &["secret"]),
    ("secret", 0, &["address", "field", "text", "value"]),
    ("operation", 0, &["field", "planted", "release", "text", "value", "yaml"]),
    ("yaml", 0, &["steps", "text", "value"]),
    ("release", 0, &[]),
    ("field", 0, &["release", "value"]),
    ("level", 0, &["release", "value"]),
    ("origin", 0, &[]),
    ("cause", 0, &["text"]),
    ("digest", 0, &["secret", "value"]),
    ("planted", 0, &[]),
    ("steps", 0, &[]),
    ("address", 0, &["steps", "text"]),
    ("page", 0, &["operation", "planted", "value"]),
    ("diagnostic", 0, &["field", "origin", "secret", "steps", "text", "yaml"]),
    ("schema", 1, &[]),
    ("kind", 1, &["schema"]),
    ("catalogue", 1, &["kind", "schema"]),
    ("desired", 2, &[]),
    ("manifest", 3, &[]),
    ("selection", 3, &[]),
    ("live", 3, &[]),
    ("diff", 3, &["live"]),
    ("plan", 3, &["live", "diff"]),
    ("api", 4, &[]),
    ("observe", 5, &[]),
    ("apply", 6, &[]),
    ("snapshot", 6, &[]),
    ("export", 4, &[]),
    ("absorb", 5, &[]),
    ("report", 7, &[]),
    ("comment", 7, &["report"]),
    ("cli", 8, &[]),
];

/// Modules of lower layers that a module must not import all the same. The reconciler gets
/// declarations as [`undrift::desired`], never as files or YAML; reading knows no plan.
const FORBIDDEN_IMPORTS: &[(&str, &[&str])] = &[
    ("api", &["kind", "catalogue", "desired", "manifest", "plan", "diff", "live"]),
    ("diff", &["yaml"]),
    ("plan", &["yaml"]),
    ("observe", &["manifest", "yaml", "diff", "plan"]),
    ("apply", &["manifest", "yaml"]),
    (
        "comment",
        &["manifest", "yaml", "catalogue", "kind", "diff", "plan", "observe", "live", "desired"],
    ),
];

/// Crates that must not be used where decisions are made: planning is pure and synchronous.
const IMPURE_CRATES: &[&str] = &["tokio", "reqwest", "rustls", "futures-util", "hyper", "rusqlite"];

#[test]
fn the_model_and_core_crates_do_no_io() {
    for name in ["model", "core"] {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let text = fs::read_to_string(manifest).unwrap();
        let used = text.lines().filter_map(|line| line.split(['.', ' ']).next());
        let impure: Vec<_> = used.filter(|name| IMPURE_CRATES.contains(name)).collect();
        assert_eq!(impure, [""; 0], "{name}");
    }
}

/// Helpers shared by tests of several crates are public in debug builds: a list that nobody read, for
/// example.
#[test]
fn only_tests_use_test_helpers() {
    let is_test = |file: &Path| file.iter().any(|part| part.to_string_lossy().starts_with("test"));
    let files = SOURCES.iter().flat_map(|folder| rust_files(&root().join(folder)));
    let shares = |file: &PathBuf| file.ends_with("model/src/steps/mod.rs");
    for file in files.filter(|file| !is_test(file) && !shares(file)) {
        let text = fs::read_to_string(&file).unwrap();
        let text = without_comments(text.split("#[cfg(test)]\nmod ").next().unwrap());
        for name in ["testing::", "page::assume_complete", "Plan::for_test("] {
            assert!(!text.contains(name), "{} names `{name}`", file.display());
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn imports_point_down_only() {
    let mut violations = Vec::new();
    let mut seen = BTreeMap::new();
    let files = SOURCES.iter().flat_map(|folder| {
        let folder = root().join(folder);
        rust_files(&folder).into_iter().map(move |file| (folder.clone(), file))
    });
    for (source, file) in files {
        let relative = file.strip_prefix(&source).unwrap();
        let module = relative
            .components()
            .next()
            .unwrap()
            .as_os_str()
            .to_str()
            .unwrap()
            .trim_end_matches(".rs")
            .to_owned();
        // Code for tests of all layers may use all kinds.
        let is_for_tests = relative == Path::new("kind/testing.rs");
        if ["lib", "main"].contains(&module.as_str()) || is_for_tests {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        *seen.entry(module.clone()).or_insert(0) += 1;
        violations.extend(
            violations_in(&module, &text)
                .into_iter()
                .map(|v| format!("{}: {v}", relative.display())),
        );
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    for (module, ..) in LAYERS {
        assert!(seen.contains_key(*module), "the layers name `{module}`, which does not exist");
    }
}

/// The modules of reports, from the bottom up: each names only those before it.
const REPORT_ORDER: &[&str] = &[
    "canvas",
    "compare",
    "redact",
    "json",
    "marker",
    "model",
    "markdown",
    "gitlab_terraform",
    "code_quality",
    "html",
    "terminal",
    "format",
];

/// The kinds for creating a group or project, from the bottom up. Other kinds may name any of them.
const CREATION_ORDER: &[&str] = &["fork_of", "settings", "creation", "source", "project", "group"];

#[test]
fn the_report_model_knows_no_format() {
    check_module_order("src/report", REPORT_ORDER);
}

#[test]
fn kinds_for_creation_use_only_earlier_ones() {
    check_module_order("crates/model/src/catalogue", CREATION_ORDER);
}

/// Checks the files and folders of `module` against their order.
fn check_module_order(folder: &str, order: &[&str]) {
    let folder = root().join(folder);
    let module = folder.file_name().unwrap().to_str().unwrap();
    let reexports = reexports(&fs::read_to_string(folder.join("mod.rs")).unwrap());
    for file in rust_files(&folder) {
        let relative = file.strip_prefix(&folder).unwrap().display().to_string();
        let of = relative.split(['/', '.']).next().unwrap();
        let place = order.iter().position(|part| *part == of);
        let Some(position) = place.filter(|_| !relative.ends_with("tests.rs")) else { continue };
        let text = fs::read_to_string(&file).unwrap();
        // Tests share the plans of the terminal's tests.
        let code = without_comments(text.split("#[cfg(test)]\nmod tests {").next().unwrap());
        let mut named = imports(&code, &format!("crate::{module}::"));
        if !relative.contains('/') {
            named.extend(imports(&code, "super::"));
        }
        named.extend(named.clone().iter().filter_map(|name| reexports.get(name).cloned()));
        for higher in &order[position + 1..] {
            assert!(named.iter().all(|name| name != higher), "{module}/{relative} names {higher}");
        }
    }
}

/// The module from which a folder re-exports a name, by the name.
fn reexports(code: &str) -> BTreeMap<String, String> {
    let parts = code.split(';').filter_map(|part| part.split_once("pub use "));
    let lines = parts.filter_map(|(_, part)| part.split_once("::"));
    let names = |names: &str| names.split(['{', '}', ',', ' ', '\n']).map(str::to_owned).collect();
    let by_module = lines.map(|(module, rest)| (module.to_owned(), names(rest)));
    let pairs = by_module.flat_map(|(module, names): (_, Vec<String>)| {
        names.into_iter().map(move |name| (name, module.clone()))
    });
    pairs.collect()
}

#[test]
fn a_planted_violation_is_found() {
    let reexports =
        reexports("pub use canvas::{\n    Canvas,\n    Line,\n};\npub use format::Format;\n");
    let modules: Vec<_> =
        reexports.iter().map(|(name, module)| format!("{module}::{name}")).collect();
    assert_eq!(modules[1..], ["canvas::Canvas", "format::Format", "canvas::Line"]);
    assert_eq!(
        violations_in("plan", "use crate::{api::ReadClient, diff};"),
        ["`plan` imports `api`"]
    );
    assert_eq!(
        violations_in("catalogue", "let x = crate::cli::run();"),
        ["`catalogue` imports `cli`"]
    );
    assert_eq!(
        violations_in("report", "use crate::sandbox::Seed;"),
        ["`report` imports `sandbox`"]
    );
    assert_eq!(
        violations_in("api", "use crate::kind::Kind;"),
        ["`api` imports `kind`, which it has no business with"]
    );
    assert_eq!(
        violations_in("plan", "use crate::{desired::Desired, manifest};"),
        ["`plan` imports `manifest`"]
    );
    assert_eq!(
        violations_in("observe", "use crate::{desired::Container, diff::Step};"),
        ["`observe` imports `diff`, which it has no business with"]
    );
    assert_eq!(
        violations_in("desired", "use crate::manifest::load;"),
        ["`desired` imports `manifest`"]
    );
    assert_eq!(violations_in("live", "use crate::selection;"), ["`live` imports `selection`"]);
    assert_eq!(violations_in("unheard", "use crate::text;"), ["`unheard` has no layer"]);
    assert_eq!(
        violations_in("plan", "use crate::{\n    address::{Address, Selector},\n    kinds,\n};"),
        [] as [&str; 0]
    );
}

fn violations_in(module: &str, text: &str) -> Vec<String> {
    let Some((_, layer, exceptions)) = LAYERS.iter().find(|(name, ..)| *name == module) else {
        return vec![format!("`{module}` has no layer")];
    };
    let code = without_comments(text);
    let mut violations = Vec::new();
    for import in imports(&code, "crate::") {
        let allowed = match LAYERS.iter().find(|(name, ..)| *name == import) {
            _ if import == module => true,
            // The embedded service is a crate of its own.
            _ if import == "sandbox" => module == "cli",
            None => true,
            Some((_, other, _)) => other < layer || exceptions.contains(&import.as_str()),
        };
        if !allowed {
            violations.push(format!("`{module}` imports `{import}`"));
        } else if FORBIDDEN_IMPORTS
            .iter()
            .any(|(name, others)| *name == module && others.contains(&import.as_str()))
        {
            let why = "which it has no business with";
            violations.push(format!("`{module}` imports `{import}`, {why}"));
        }
    }
    violations.sort();
    violations.dedup();
    violations
}

fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The modules that `code` imports from `root`, such as `crate::`, alone or in braces.
fn imports(code: &str, root: &str) -> Vec<String> {
    let word = |text: &str| {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    let mut imports = Vec::new();
    for (at, _) in code.match_indices(root) {
        let rest = &code[at + root.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            imports.push(word(rest));
            continue;
        };
        let (mut depth, mut start) = (0, true);
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && !c.is_whitespace() => {
                    imports.push(word(&group[i..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    imports
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A file that no `mod` names is not compiled: its tests do not run, without any message.
#[test]
fn every_source_file_is_declared_as_a_module() {
    let others = ["crates/sandbox/src", "crates/release/src"];
    let unnamed = SOURCES.into_iter().chain(others).flat_map(|folder| {
        let root_of = root().join(folder);
        rust_files(&root_of).into_iter().filter(move |file| {
            let is_mod = file.file_stem().unwrap() == "mod";
            let module = if is_mod { file.parent().unwrap() } else { file };
            let (name, above) = (module.file_stem().unwrap(), module.parent().unwrap());
            if above == root_of && (name == "lib" || name == "main") {
                return false;
            }
            let declares = format!("mod {};", name.to_str().unwrap());
            let parent = match above == root_of {
                true => root_of.join("lib.rs"),
                false if above.join("mod.rs").exists() => above.join("mod.rs"),
                false => above.with_extension("rs"),
            };
            let text = fs::read_to_string(parent).unwrap_or_default();
            !text.lines().any(|line| line.trim_start().ends_with(&declares))
        })
    });
    assert_eq!(unnamed.collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

/// A code without an explanation has no page, and `explain` does not know it.
#[test]
fn every_code_in_the_source_is_explained() {
    let literal = |text: &str| {
        let code = text.trim_start().strip_prefix('"')?.split('"').next()?;
        let is_code = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (!code.is_empty() && code.chars().all(is_code)).then(|| code.to_owned())
    };
    let mut unexplained = Vec::new();
    for file in SOURCES.iter().flat_map(|folder| rust_files(&root().join(folder))) {
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let is_test = file.iter().any(|part| part.to_string_lossy().starts_with("test"));
        let first = [
            "Finding::error(",
            "Finding::warning(",
            "Diagnostic::error(",
            "Diagnostic::warning(",
            "faults.error(",
            "faults.warning(",
            "self.problem(",
        ];
        let first = first.iter().flat_map(|call| text.split(call).skip(1));
        let second = text
            .split("Problem::new(")
            .skip(1)
            .filter_map(|rest| rest.split_once(',').map(|(_, rest)| rest));
        let named = text.split("code: ").skip(1);
        let codes = first.chain(second).chain(named).filter_map(literal);
        unexplained.extend(codes.filter(|code| !is_test && codes::find_code(code).is_none()));
    }
    assert_eq!(unexplained, [""; 0]);
}
