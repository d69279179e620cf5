//! Tests of loading manifests.

use std::{fs, path::Path};

use serde_json::json;

use super::*;
use crate::{
    desired::{Container, DeclaredFields},
    diagnostic::{Diagnostic, TextStyle},
    value::Json,
};

mod acknowledge;
mod effective;
mod faults;
mod good;
mod growth;
mod include;
mod layers;
mod lints;
mod paths;
mod properties;
mod references;
mod roots;

/// Loads files given by name and text, together with a picture.
fn load_files(files: &[(&str, &str)]) -> LoadedManifests {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.png"), "").unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    load(folder.path(), &environment_in(folder.path()))
}

/// An environment in `folder`, with a fixed date.
fn environment_in(folder: &Path) -> LoadEnvironment {
    LoadEnvironment {
        working_folder: folder.to_owned(),
        today: jiff::civil::date(2030, 1, 1),
        ..LoadEnvironment::for_process()
    }
}

/// The groups and projects of one valid file.
fn containers(text: &str) -> Vec<Container> {
    let loaded = load_files(&[("a.yaml", text)]);
    loaded
        .desired
        .unwrap_or_else(|| panic!("{}", loaded.diagnostics.render(TextStyle::default())))
        .containers
}

/// The code and the line of every diagnostic.
fn faults(files: &[(&str, &str)]) -> Vec<(&'static str, u32)> {
    let line = |location: Option<&SourceLocation>| {
        location.and_then(SourceLocation::line).unwrap_or_default()
    };
    load_files(files)
        .diagnostics
        .sorted()
        .into_iter()
        .map(|fault| (fault.code, line(fault.location.as_ref())))
        .collect()
}

/// The declarations, without origins.
fn desired_json(desired: &Desired) -> Json {
    let fields = |fields: &DeclaredFields| {
        fields
            .iter()
            .map(|(name, field)| (name.to_owned(), serde_json::to_value(&field.value).unwrap()))
            .collect::<Json>()
    };
    let container_json = |container: &Container| {
        let sections = container.sections.iter().map(|section| {
            let entries = section.entries.iter().map(|entry| {
                json!([entry.key, format!("{:?}", entry.state), fields(&entry.fields)])
            });
            (
                section.kind.section.to_owned(),
                json!([format!("{:?}", section.unlisted.value), entries.collect::<Vec<_>>()]),
            )
        });
        let create = container.creation_policy.create_fields().map(fields);
        json!([*container.path, create, sections.collect::<Json>()])
    };
    let containers: Json = desired.containers.iter().map(container_json).collect();
    let acknowledgements = desired.acknowledgements.iter().map(|acknowledgement| {
        let until = acknowledgement.until.map(|until| until.to_string());
        json!([
            acknowledgement.to_string(),
            acknowledgement.max_objects,
            until,
            acknowledgement.reason
        ])
    });
    json!([containers, acknowledgements.collect::<Json>()])
}

#[test]
fn a_shown_manifest_keeps_its_lines() {
    let text = "\
kind: Project
path: acme/shop
settings:
  description: |
    A shop

    of shoes
  topics: [x]
  merge_method: ff
variables:
  - key: A
    value: |  # canary
      canary
        canary

      canary
    masked: false
  # the next one
  - key: B
    value: 'canary

      canary'
    masked: false
  - {key: C, value: \"canary
      canary\", masked: false}
  - key: D
    value: |
      seen
      seen
milestones:
  - title: M
    description: >-
      glpat-canary1234567890
      glpat-canary1234567890
    due_date: '2090-01-01'
";
    insta::assert_snapshot!(hide_secrets(text, &BTreeSet::from(["seen\nseen\n".into()])));
}
