//! Moves groups and projects that share a document (`paths`) into separate documents, if a change
//! would otherwise affect the other paths of the document.

use std::collections::BTreeMap;

use super::{
    AbsorbError, FileTexts, apply_edits,
    edit::{self, TextEdit},
    goal::Goal,
    source::{Location, SourceFiles},
};
use crate::{desired::Desired, diagnostic::FileName};

/// A path in a shared document, and the positions of its goals.
struct ChangedPath {
    location: Location,
    goal_indexes: Vec<usize>,
}

/// The changed texts of manifests, with separate documents where a goal would also change other
/// groups or projects.
///
/// # Errors
/// If a document cannot be copied.
pub(super) fn separate_documents(
    before: &Desired,
    goals: &[Goal],
    files: &mut SourceFiles<'_>,
) -> Result<FileTexts, AbsorbError> {
    let path_changes = |path: &ChangedPath| {
        let goals = path.goal_indexes.iter().map(|number| &goals[*number]);
        goals.map(|goal| (goal.section.section, &goal.key, &goal.change)).collect::<Vec<_>>()
    };
    let (mut removals, mut refusals) = (Vec::new(), Vec::new());
    let mut copies: BTreeMap<FileName, String> = BTreeMap::new();
    for ((name, _), mut paths) in find_changed_paths(before, goals, files) {
        // `find_changed_paths` already read this file.
        let Ok(file) = files.open(&name) else { continue };
        let Some(document) = file.node(&paths[0].location.mapping) else { continue };
        // If all paths change, the first path and all paths with the same changes keep the
        // document.
        if paths.len() == document["paths"].children().count() {
            let first_path = paths.remove(0);
            paths.retain(|other| path_changes(other) != path_changes(&first_path));
        }
        for ChangedPath { location, goal_indexes: numbers } in paths {
            let Location { mapping, item, .. } = location;
            let item = item.unwrap_or_default();
            match edit::copy_document(&file.text, document, item) {
                Ok(copy) => *copies.entry(name.clone()).or_default() += &copy,
                Err(failure) => {
                    let address = &goals[numbers[0]].address;
                    refusals.push(failure.refuse(address, &name, &file.text));
                }
            }
            let removal = TextEdit::Remove { target: mapping, key: "paths".to_owned(), item };
            removals.push((numbers[0], vec![(name.clone(), removal)]));
        }
    }
    if !refusals.is_empty() {
        return Err(AbsorbError::Refused(refusals));
    }
    let mut texts = apply_edits(goals, removals, files)?;
    for (name, text) in &mut texts {
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        *text += &format!("{newline}{}", copies[name]);
    }
    Ok(texts)
}

/// The paths that have goals and share their document with other paths. The result is grouped by
/// file and by the number of the document in the file.
fn find_changed_paths(
    before: &Desired,
    goals: &[Goal],
    files: &mut SourceFiles<'_>,
) -> BTreeMap<(FileName, usize), Vec<ChangedPath>> {
    let mut goals_by_path: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (goal_index, goal) in goals.iter().enumerate() {
        goals_by_path.entry(&goal.address.path).or_default().push(goal_index);
    }
    let mut paths_by_document: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (path, goal_indexes) in goals_by_path {
        // Skip files that cannot be read. Each goal in such a file is refused later.
        let Some(container) = before.container(path) else { continue };
        let Ok(file) = files.open(&container.origin.file) else { continue };
        if let Some(path_location) =
            file.path_location(&container.origin).filter(|location| location.item.is_some())
        {
            let document = (file.name.clone(), path_location.mapping.document);
            let changed_path = ChangedPath { location: path_location, goal_indexes };
            paths_by_document.entry(document).or_default().push(changed_path);
        }
    }
    paths_by_document
}
