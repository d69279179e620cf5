//! Reads kinds from the description files that the command line names (`--kinds`).
//!
//! Descriptions decide which requests undrift sends. They are therefore only read from files that
//! the command line names. They are never read from the folder of the manifests: the author of a
//! merge request can change that folder.

use std::{
    ops::Range,
    path::{Component, Path, PathBuf},
};

use super::{
    LoadEnvironment,
    faults::{FileFaults, LocatedFault, file_diagnostic, placeholders, texts},
    read::files,
    schema::{self, DESCRIPTION_CHECKER},
    surroundings::Root,
};
use crate::{
    catalogue::{Registry, description::DescribedKind},
    diagnostic::{Diagnostics, FileName},
    kind::Kind,
    text::escape,
    yaml::{self, Node, NodeValue},
};

/// Loads the built-in kinds, and the kinds in the files `description_paths`. `manifest_path` is the
/// folder or file with the manifests of this run; `None` for a run without manifests. Descriptions
/// must not be below the root of these manifests.
pub fn load(
    description_paths: &[PathBuf],
    manifest_path: Option<&Path>,
    environment: &LoadEnvironment,
    diagnostics: &mut Diagnostics,
) -> Registry {
    let root =
        manifest_path.map(|named| Root::find(files::containing_folder(named), environment).folder);
    let root = root.and_then(|root| root.canonicalize().ok());
    description_paths.iter().fold(Registry::with_built_in_kinds(), |registry, path| {
        let name = FileName::from(environment.display_path(path));
        if root.as_ref().is_some_and(|root| root_controls(root, path, environment)) {
            diagnostics.push(file_diagnostic(texts::DESCRIPTION_PLACE, name, &[]));
            return registry;
        }
        match read_description(path, &name, &registry, diagnostics) {
            Some(kind) => registry.with_kind(kind),
            None => registry,
        }
    })
}

/// True if the content of the folder `root` decides which file `path` names: `root` contains the
/// file, or a symbolic link that is part of `path`.
fn root_controls(root: &Path, path: &Path, environment: &LoadEnvironment) -> bool {
    let mut resolved_path = environment.working_folder.canonicalize().unwrap_or_default();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(resolved_path.pop()),
            Component::Normal(_) if resolved_path.starts_with(root) => return true,
            part => resolved_path.push(part),
        }
        resolved_path = resolved_path.canonicalize().unwrap_or(resolved_path);
    }
    resolved_path.starts_with(root)
}

/// Reads the description file at `path`. Returns `None` if the file has a fault.
fn read_description(
    path: &Path,
    name: &FileName,
    registry: &Registry,
    diagnostics: &mut Diagnostics,
) -> Option<DescribedKind> {
    let text = files::read(path, name).map_err(|fault| diagnostics.push(*fault)).ok()?;
    let (kind, faults) = FileFaults::collect_from_file(
        name.clone(),
        &text,
        &DESCRIPTION_CHECKER.schema,
        |parsed, findings| {
            let [document] = &parsed.documents[..] else {
                if !parsed.is_broken {
                    findings.report(texts::SEVERAL_DESCRIPTIONS, 0..0, &[]);
                }
                return None;
            };
            parse_kind(document, registry, findings)
        },
    );
    let is_faultless = faults.is_empty();
    diagnostics.extend(faults);
    kind.filter(|_| is_faultless)
}

fn parse_kind(
    document: &Node,
    registry: &Registry,
    findings: &mut FileFaults,
) -> Option<DescribedKind> {
    if !findings.add_schema_faults(document, &DESCRIPTION_CHECKER).is_empty()
        || !findings.is_empty()
    {
        return None;
    }
    let json = document.to_json();
    let kind = yaml::read_leaked::<Kind>(json.clone()).map_err(|error| {
        let (range, why) = (find_range(document, ""), error.to_string());
        findings.report(texts::NO_DESCRIPTION, range, placeholders![why = escape(&why)]);
    });
    let kind =
        DescribedKind::from_description(kind.ok()?, &json, registry, &schema::document_keys());
    let kind = kind.map_err(|faults| {
        for fault in faults {
            let fault_range = find_range(document, &fault.pointer);
            let finding = LocatedFault::error("kind-description", fault.message, fault_range);
            findings.push(finding).set_help(fault.help);
        }
    });
    kind.ok()
}

/// The byte range of the value at `pointer`. For a list, the range of its key; for a mapping, the
/// range of its first key. If the value is missing, its parent is used instead.
fn find_range(document: &Node, pointer: &str) -> Range<usize> {
    let (mut node, mut key_range) = (document, 0..0);
    for token in pointer.split('/').filter(|part| !part.is_empty()) {
        let item = token.parse().ok().and_then(|index: usize| node.items().get(index));
        (node, key_range) = match (item, node.get(token)) {
            (Some(item), _) => (item, item.span.clone()),
            (None, Some((key, value))) => (value, key.span.clone()),
            (None, None) => break,
        };
    }
    match &node.data {
        NodeValue::Map(entries) => {
            entries.first().map_or(key_range, |(first, _)| first.span.clone())
        }
        NodeValue::List(_) => key_range,
        _ => node.span.clone(),
    }
}
