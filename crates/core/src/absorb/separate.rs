//! Gives groups and projects that share a document (`paths`) documents of their own, where a change
//! would also touch the others.

use std::collections::BTreeMap;

use super::{
    AbsorbError, AbsorbRefusal, Contents, apply_edits,
    drift::Goal,
    edit::{self, TextEdit},
    source::{Location, SourceFiles},
};
use crate::{desired::Desired, diagnostic::FileName};

/// A path in a shared document, and the numbers of its goals.
struct ChangedPath {
    at: Location,
    goals: Vec<usize>,
}

/// The texts of manifests in which `goals` change no other group or project, if different.
///
/// # Errors
/// Why a document cannot be copied.
pub(super) fn separate_documents(
    before: &Desired,
    goals: &[Goal],
    files: &mut SourceFiles<'_>,
) -> Result<Contents, AbsorbError> {
    let (mut removals, mut refused) = (Vec::new(), Vec::new());
    let mut copies: BTreeMap<FileName, String> = BTreeMap::new();
    for ((name, _), changed) in find_changed_paths(before, goals, files) {
        // It was read for its paths.
        let Ok(file) = files.open(&name) else { continue };
        let Some(document) = file.node(&changed[0].at.mapping) else { continue };
        let separated = retain_different(changed, document["paths"].children().count(), goals);
        for ChangedPath { at: Location { mapping, item, .. }, goals: numbers } in separated {
            let item = item.unwrap_or_default();
            match edit::copy_document(&file.text, document, item) {
                Ok(copy) => *copies.entry(name.clone()).or_default() += &copy,
                Err(no_edit) => {
                    let refusal = AbsorbRefusal::new(&goals[numbers[0]].address, no_edit.reason);
                    refused.push(no_edit.add_place(refusal, &name, &file.text));
                }
            }
            let removal = TextEdit::Remove { at: mapping, key: "paths".to_owned(), item };
            removals.push((numbers[0], vec![(name.clone(), removal)]));
        }
    }
    if !refused.is_empty() {
        return Err(AbsorbError::Refused(refused));
    }
    let mut texts = apply_edits(goals, removals, files)?;
    for (name, text) in &mut texts {
        let between = if text.ends_with('\n') { "" } else { "\n" };
        *text += &format!("{between}{}", copies[name]);
    }
    Ok(texts)
}

/// The paths with goals, by file and by document, of documents with several.
fn find_changed_paths(
    before: &Desired,
    goals: &[Goal],
    files: &mut SourceFiles<'_>,
) -> BTreeMap<(FileName, usize), Vec<ChangedPath>> {
    let mut by_path: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, goal) in goals.iter().enumerate() {
        by_path.entry(&goal.container.path).or_default().push(number);
    }
    let mut by_document: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (path, goals) in by_path {
        // A file that cannot be read is reported with each goal.
        let Some(container) = before.container(path) else { continue };
        let Ok(file) = files.open(&container.origin.file) else { continue };
        if let Some(at) = file.document_of(&container.origin).filter(|at| at.item.is_some()) {
            let document = (file.name.clone(), at.mapping.document);
            by_document.entry(document).or_default().push(ChangedPath { at, goals });
        }
    }
    by_document
}

/// Those of the `changed` ones of so many `paths` that must not be edited together.
fn retain_different(
    mut changed: Vec<ChangedPath>,
    paths: usize,
    goals: &[Goal],
) -> Vec<ChangedPath> {
    let changes = |path: &ChangedPath| {
        let goals = path.goals.iter().map(|number| &goals[*number]);
        goals.map(|goal| (goal.section, &goal.key, &goal.change)).collect::<Vec<_>>()
    };
    if changed.len() == paths {
        let first = changed.remove(0);
        changed.retain(|other| changes(other) != changes(&first));
    }
    changed
}
