//! Files written by people: manifests, descriptions of kinds, seeds.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use proptest::{
    strategy::{Strategy, ValueTree as _},
    test_runner::TestRunner,
};
use serde_json::{Value as Json, json};
use undrift::{
    address::Glob,
    desired::{DeclaredValues, Desired, declared_values},
    diagnostic::{Diagnostics, Severity, TextStyle, codes},
    manifest::{self, LoadEnvironment, LoadOptions, Trace, descriptions},
    sandbox::{Model, Seed, ServiceOptions},
    schema, yaml,
};

use super::{CANARY, run_inputs};
use crate::corpus::cases;
use crate::numbers::Numbers;
use crate::random;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The texts of all `.yaml` files below `folder`.
fn collect_samples(folder: &Path, found: &mut Vec<String>) {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect_samples(&path, found);
        } else if path.extension().is_some_and(|end| end == "yaml") {
            found.push(fs::read_to_string(path).unwrap());
        }
    }
}

fn samples_in(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect_samples(&repository().join(folder), &mut found);
    found
}

fn load_environment(folder: &Path) -> LoadEnvironment {
    LoadEnvironment {
        working_folder: folder.to_owned(),
        today: jiff::civil::date(2030, 1, 1),
        ..LoadEnvironment::for_process()
    }
}

/// Documents with all sections, and secrets in all possible places.
fn secret_documents() -> Vec<Json> {
    let url = format!("https://u:{CANARY}@h.example/x?t={CANARY}");
    let written = json!({
        "kind": "Project",
        "path": "acme/secret",
        "settings": {"import_url": {"env": "A"}, "extra": {"a": CANARY}},
        "variables": [
            {"key": "A", "value": CANARY, "masked": true, "extra": {"a": CANARY}},
            {"key": "B", "value": format!("{CANARY}\n{CANARY}")},
            {"key": "C", "value": {"env": "A"}},
        ],
        "hooks": [{"name": "ci", "token": {"env": "A"}, "url": url}, {"url": url}],
        "push_mirrors": [{"url": url}],
        "unknown": CANARY,
    });
    let rules = json!({
        "kind": "Defaults",
        "match": {"path": "acme/**"},
        "params": {"port": 1},
        "variables": [{"key": "A", "value": CANARY, "masked": true}, CANARY],
        "hooks": [{"url": url}],
    });
    let mut runner = TestRunner::deterministic();
    let mut generate = |strategy: &dyn Fn(&mut TestRunner) -> Json| strategy(&mut runner);
    let mut all = vec![written, rules];
    for _ in 0..12 {
        let group = |runner: &mut TestRunner| {
            let group = random::group().new_tree(runner).unwrap().current();
            let project = random::project_sections().new_tree(runner).unwrap().current();
            Json::from(random::documents(group, project))
        };
        all.extend(generate(&group).as_array().unwrap().iter().cloned());
    }
    all
}

/// The sources of mutated manifests.
struct Corpus {
    texts: Vec<String>,
    documents: Vec<Json>,
    configs: Vec<String>,
}

impl Corpus {
    fn new() -> Self {
        let files = cases().into_iter().flat_map(|case| case.files);
        let manifests = files.filter(|(name, _)| name.ends_with(".yaml"));
        let mut texts: Vec<_> = manifests.map(|(_, text)| text).collect();
        texts.extend(samples_in("examples/acme"));
        let examples = codes::CODES.iter().filter_map(codes::Code::example);
        texts.extend(examples.flat_map(|of| [of.wrong.to_owned(), of.right.to_owned()]));
        let config = fs::read_to_string(repository().join("examples/acme/undrift.yaml")).unwrap();
        let other = "version: 1\nmanages: [{path: acme/**, except: [x]}]\nguards: {removals: {count: 1, share: 0.5}}\nservice: {tier: free, release: '16.1'}\n";
        Self { texts, documents: secret_documents(), configs: vec![config, other.to_owned()] }
    }

    fn text(&self, chance: &mut Numbers) -> Vec<u8> {
        let (one, other) = (chance.pick(&self.texts), chance.pick(&self.texts));
        match chance.below(5) {
            0 => chance.bytes(format!("{one}\n---\n{other}").as_bytes()),
            1 => chance.noise().into_bytes(),
            2 => chance.splice(one.as_bytes(), other.as_bytes()),
            3 => one.clone().into_bytes(),
            _ => chance.bytes(one.as_bytes()),
        }
    }

    /// The files of a folder. No secret text moves to a place where it may be shown.
    fn files(&self, chance: &mut Numbers) -> BTreeMap<&'static str, Vec<u8>> {
        let mut files = BTreeMap::new();
        let others = chance.below(4);
        if others < 3 {
            let mut texts = Vec::new();
            for _ in 0..=chance.below(6) / 3 {
                let mut document = chance.pick(&self.documents).clone();
                (0..chance.below(4)).for_each(|_| chance.damage(&mut document));
                texts.push(document.to_string());
            }
            files.insert("json.yaml", texts.join("\n---\n").into_bytes());
        }
        if others > 1 {
            files.insert("a.yaml", self.text(chance));
        }
        if others == 3 {
            files.insert("b/c.yml", self.text(chance));
        }
        if chance.once_in(4) {
            let config = chance.pick(&self.configs);
            files.insert("undrift.yaml", chance.bytes(config.as_bytes()));
        }
        files
    }
}

/// Writes `files` and a file with a secret into an empty `folder`.
fn write(folder: &Path, files: &BTreeMap<&str, Vec<u8>>) {
    for name in ["a.yaml", "json.yaml", "undrift.yaml", "b/c.yml"] {
        let path = folder.join(name);
        match files.get(name) {
            Some(bytes) => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
            None => drop(fs::remove_file(path)),
        }
    }
    fs::write(folder.join("secret.txt"), CANARY).unwrap();
}

/// Every error of `found` has a place in its file.
fn check_locations(found: &Diagnostics, folder: &Path) {
    for diagnostic in found.sorted() {
        if diagnostic.severity == Severity::Error {
            assert!(diagnostic.location.is_some(), "{diagnostic:?}");
        }
        let places = diagnostic.location.iter().chain(diagnostic.related.iter().map(|(at, _)| at));
        for place in places {
            if let (Some(line), Ok(bytes)) = (place.line(), fs::read(folder.join(&*place.file))) {
                let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
                assert!(line as usize <= lines, "{diagnostic:?}");
            }
        }
    }
}

/// The meanings of all declarations.
fn declared_meanings(desired: &Desired) -> BTreeMap<String, DeclaredValues> {
    desired.containers.iter().map(|c| (c.path.to_string(), declared_values(c))).collect()
}

#[test]
fn manifests_are_read_or_refused() {
    let (folder, again) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let corpus = Corpus::new();
    let all = [Glob::for_paths("**").unwrap()];
    let options = LoadOptions { traced_globs: &all, ..LoadOptions::default() };
    let (mut accepted, mut written) = (0, 0);
    let is_usual = run_inputs("manifests", 375, |chance| {
        let files = corpus.files(chance);
        write(folder.path(), &files);
        let loaded =
            manifest::load_with_options(folder.path(), &load_environment(folder.path()), &options);
        let style = TextStyle {
            is_coloured: chance.once_in(2),
            width: Some(20 + chance.below(100)),
            is_full: chance.once_in(2),
        };
        let (report, _) = loaded.render_report(style);
        assert!(!report.contains(CANARY), "{report}");
        let bytes: usize = files.values().map(Vec::len).sum();
        assert!(report.len() <= 100_000 + 40 * bytes, "{} of {bytes}", report.len());
        check_locations(&loaded.diagnostics, folder.path());
        let Some(desired) = &loaded.desired else { return };
        accepted += 1;
        let texts: Vec<_> = loaded.traces.iter().map(Trace::to_yaml).collect();
        // Masked texts are not written again.
        if texts.is_empty() || texts.iter().any(|text| text.contains("not shown")) {
            return;
        }
        written += 1;
        let text = texts.join("---\n");
        write(again.path(), &[("a.yaml", text.clone().into_bytes())].into());
        let loaded = manifest::load(again.path(), &load_environment(again.path()));
        let (report, _) = loaded.render_report(TextStyle::default());
        let back = loaded.desired.unwrap_or_else(|| panic!("{text}\n{report}"));
        assert_eq!(declared_meanings(&back), declared_meanings(desired), "{text}");
    });
    assert!(!is_usual || (accepted > 12 && written > 8), "{accepted} accepted, {written} written");
}

#[test]
fn seeds_are_read_or_refused() {
    let sample = fs::read_to_string(repository().join("examples/acme/sandbox.yaml")).unwrap();
    let mut valid_seed = yaml::parse(&sample).documents[0].to_json();
    valid_seed["users"][0]["token"] = CANARY.into();
    let schema = schema::inline_schema::<Seed>().to_value();
    let (mut accepted, mut planted) = (0, 0);
    let is_usual = run_inputs("seeds", 375, |chance| {
        let (text, seed) = if chance.once_in(3) {
            let text = chance.text(&sample);
            let parsed = yaml::parse(&text);
            let seed = match &parsed.documents[..] {
                [document] if parsed.faults.is_empty() => Seed::from_json(document.to_json()).ok(),
                _ => None,
            };
            (text, seed)
        } else {
            let mut json = valid_seed.clone();
            (0..=chance.below(3)).for_each(|_| chance.damage(&mut json));
            (json.to_string(), Seed::from_json(json).ok())
        };
        let Some(seed) = seed else {
            let faults = manifest::find_seed_faults(
                &text,
                "sandbox.yaml".into(),
                schema.clone(),
                "/properties/users/items/properties/token",
                |_| None,
            );
            assert!(faults.has_errors(), "refused without a reason: {text}");
            assert!(faults.sorted().iter().all(|fault| fault.location.is_some()));
            assert!(!faults.render(TextStyle::default()).contains(CANARY), "{text}");
            return;
        };
        accepted += 1;
        let back = Seed::from_json(serde_json::to_value(&seed).unwrap());
        assert_eq!(back.ok().as_ref(), Some(&seed), "{text}");
        if accepted % 4 == 0 {
            match Model::new(&seed, "a token of root", ServiceOptions::default()) {
                Ok(_) => planted += 1,
                Err(error) => assert!(!format!("{error:#}").contains(CANARY), "{error:#}"),
            }
        }
    });
    assert!(!is_usual || (accepted > 50 && planted > 2), "{accepted} accepted, {planted} planted");
}

#[test]
fn descriptions_of_kinds_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kind.yaml");
    // New names do not clash with existing ones, so more of the file is read.
    let rename = |sample: String| {
        let sample = sample.replace("section: ", "section: my_").replace("/:id/", "/:id/my_");
        sample.replace("noun: ", "noun: my ")
    };
    // A file of a user cannot name rules in Rust.
    let mut samples = samples_in("crates/model/src/catalogue");
    samples.retain(|sample| !sample.contains("\nhooks: "));
    let samples: Vec<_> = samples.into_iter().map(rename).collect();
    let documents: Vec<_> =
        samples.iter().map(|sample| yaml::parse(sample).documents[0].to_json()).collect();
    let mut accepted = 0;
    let is_usual = run_inputs("descriptions", 150, |chance| {
        let sample = chance.pick(&samples);
        let text = match chance.below(4) {
            0 => chance.bytes(sample.as_bytes()),
            1 => {
                let other = chance.pick(&samples);
                chance.splice(sample.as_bytes(), other.as_bytes())
            }
            _ => {
                let mut document = chance.pick(&documents).clone();
                (0..chance.below(4)).for_each(|_| chance.damage(&mut document));
                document.to_string().into_bytes()
            }
        };
        fs::write(&path, text).unwrap();
        let mut diagnostics = Diagnostics::default();
        let around = load_environment(folder.path());
        descriptions::load(std::slice::from_ref(&path), None, &around, &mut diagnostics);
        diagnostics.render(TextStyle { is_coloured: false, width: Some(80), is_full: false });
        check_locations(&diagnostics, folder.path());
        accepted += usize::from(diagnostics.is_empty());
    });
    assert!(!is_usual || accepted > 3, "{accepted} accepted");
}
