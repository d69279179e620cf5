//! Writes drift that should be kept into the manifests. This module is the part of `undrift absorb`
//! without IO.
//!
//! [`find_drift`] finds the changes of declarations ([`Goal`]) that remove differences. [`absorb`]
//! edits the texts. `locate` finds the place of a declaration. `edit` changes the text at this
//! place and preserves everything else.
//!
//! Then the edited manifests are loaded. The loaded manifests must declare every goal, and all
//! other declarations must be unchanged. If one goal cannot be edited, the goal is refused and
//! nothing is changed.

mod drift;
mod edit;
mod goal;
mod locate;
mod separate;
mod source;
mod verify;

use std::collections::{BTreeMap, BTreeSet, HashSet};

pub use drift::{ContainerComparison, find_drift, find_undeclared, selectable_addresses};
pub use goal::Goal;

use crate::{
    address::Address,
    desired::Desired,
    diagnostic::FileName,
    origin::{Layer, Origin},
    value::Json,
    yaml::{self, Node},
};
use edit::TextEdit;
use goal::GoalChange;
use locate::Edits;
use source::SourceFiles;

/// The texts of manifests, by file name.
pub type FileTexts = BTreeMap<FileName, String>;

/// The document to edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsorbMode {
    /// The document of the group or project itself.
    OwnDocument,
    /// The document that declares the value now.
    AtSource,
}

/// The refusal to absorb a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsorbRefusal {
    /// The address of the object with the difference.
    pub address: Address,
    /// The reason, as the end of a sentence.
    pub reason: String,
    /// The place in a manifest that causes the refusal; `None` if no manifest causes the refusal.
    pub origin: Option<Origin>,
    /// The effect on the other differences.
    pub kind: RefusalKind,
}

/// The reason why a field that is declared by a reference is not absorbed.
pub const DECLARED_BY_REFERENCE: &str =
    "it is declared by a reference, and the live value is not shown";

/// The effect of a refusal on other differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The difference cannot be absorbed. Then no other difference is absorbed.
    Difference,
    /// The object could not be read. Then no other difference is absorbed.
    Unread,
    /// The object has a declared rename or move that was not applied. All other differences are
    /// absorbed.
    PendingRename,
}

impl AbsorbRefusal {
    /// The refusal for the object at `address`, with `reason`.
    pub fn new(address: &Address, reason: impl Into<String>) -> Self {
        Self {
            address: address.clone(),
            reason: reason.into(),
            origin: None,
            kind: RefusalKind::Difference,
        }
    }
}

/// The edited manifests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EditedFiles {
    /// The files that change, with their old and new texts.
    pub files: BTreeMap<FileName, (String, String)>,
    /// The paths of other groups and projects whose declarations change.
    pub other_containers: BTreeSet<String>,
    /// True if `Defaults` or a `Profile` change. They may also apply to containers that only rules
    /// include.
    pub edits_rules: bool,
}

/// The reason why nothing is edited.
#[derive(Debug, PartialEq, Eq)]
pub enum AbsorbError {
    /// Some differences cannot be absorbed.
    Refused(Vec<AbsorbRefusal>),
    /// The edited manifests would not be valid. Contains the reason.
    InvalidResult(String),
}

/// Edits the manifests so that they declare the goals. `read_file` returns the text of a file.
/// `reload` replaces some texts, loads all manifests, and returns their declarations.
///
/// # Errors
/// If a goal cannot be absorbed, or the edited manifests would not be valid. Then nothing is edited.
pub fn absorb(
    before: &Desired,
    goals: &[Goal],
    mode: AbsorbMode,
    read_file: &dyn Fn(&FileName) -> Result<String, String>,
    reload: &dyn Fn(&FileTexts) -> Result<Desired, String>,
) -> Result<EditedFiles, AbsorbError> {
    let mut files = SourceFiles::new(read_file);
    let texts = match mode {
        AbsorbMode::OwnDocument => separate::separate_documents(before, goals, &mut files)?,
        AbsorbMode::AtSource => FileTexts::new(),
    };
    if texts.is_empty() {
        return edit_texts(before, goals, mode, read_file, reload);
    }
    // First move the declarations into separate documents, then edit these documents.
    let separated_desired = reload(&texts).map_err(AbsorbError::InvalidResult)?;
    verify::check_goals(before, &separated_desired, &[], mode).map_err(AbsorbError::Refused)?;
    let read_separated = |name: &_| texts.get(name).cloned().map_or_else(|| read_file(name), Ok);
    let reload_separated =
        |edited: &FileTexts| reload(&texts.clone().into_iter().chain(edited.clone()).collect());
    let edit_result =
        edit_texts(&separated_desired, goals, mode, &read_separated, &reload_separated);
    let mut edited_files = edit_result.map_err(|error| restore_origins(error, before, &texts))?;
    for (name, text) in texts {
        let old_text = read_file(&name).map_err(AbsorbError::InvalidResult)?;
        edited_files.files.entry(name).or_insert_with(|| (String::new(), text)).0 = old_text;
    }
    Ok(edited_files)
}

/// Replaces origins that refer to the separated `texts` by the origins in `before`, because no file
/// contains the separated texts.
fn restore_origins(error: AbsorbError, before: &Desired, texts: &FileTexts) -> AbsorbError {
    let AbsorbError::Refused(mut refusals) = error else { return error };
    for AbsorbRefusal { address, origin, .. } in &mut refusals {
        if origin.as_ref().is_some_and(|origin| texts.contains_key(&origin.file)) {
            let container = before.container(&address.path);
            let key = address.entry.as_deref().unwrap_or_default();
            let entry = container.and_then(|declared| declared.entry(address.section?, key));
            *origin = entry.map(|entry| entry.origin.clone());
        }
    }
    AbsorbError::Refused(refusals)
}

/// Edits the texts without separating documents.
fn edit_texts(
    before: &Desired,
    goals: &[Goal],
    mode: AbsorbMode,
    read_file: &dyn Fn(&FileName) -> Result<String, String>,
    reload: &dyn Fn(&FileTexts) -> Result<Desired, String>,
) -> Result<EditedFiles, AbsorbError> {
    let mut files = SourceFiles::new(read_file);
    let mut covered_addresses: BTreeSet<&Address> = BTreeSet::new();
    loop {
        let (mut edits, mut refusals) = (Vec::new(), Vec::new());
        for (goal_index, goal) in goals.iter().enumerate() {
            let Some(container) = before.container(&goal.address.path) else { continue };
            let is_covered = covered_addresses.contains(&goal.address);
            match locate::locate_edits(goal, container, mode, is_covered, &mut files) {
                Ok(goal_edits) => edits.push((goal_index, goal_edits)),
                Err(refusal) => refusals.push(refusal),
            }
        }
        if !refusals.is_empty() {
            return Err(AbsorbError::Refused(refusals));
        }
        let edited_texts = apply_edits(goals, edits, &files)?;
        let after = reload(&edited_texts).map_err(AbsorbError::InvalidResult)?;
        if mode == AbsorbMode::OwnDocument && covered_addresses.is_empty() {
            // A lower layer may still declare an entry that was removed from a document.
            let removed_goals = goals.iter().filter(|goal| goal.change == GoalChange::RemoveEntry);
            covered_addresses = removed_goals
                .filter(|goal| verify::declares_goal_entry(&after, goal))
                .map(|goal| &goal.address)
                .collect();
            if !covered_addresses.is_empty() {
                continue;
            }
        }
        let other_containers =
            verify::check_goals(before, &after, goals, mode).map_err(AbsorbError::Refused)?;
        let mut edited_files = EditedFiles { other_containers, ..EditedFiles::default() };
        for (name, new_text) in edited_texts {
            let old_text = files.text(&name).unwrap_or_default();
            if old_text != new_text {
                edited_files.edits_rules |= rule_documents(old_text) != rule_documents(&new_text);
                edited_files.files.insert(name, (old_text.to_owned(), new_text));
            }
        }
        return Ok(edited_files);
    }
}

/// The documents of a text that are `Defaults` or a `Profile`.
fn rule_documents(text: &str) -> Vec<Json> {
    let mut documents = yaml::parse(text).documents;
    documents
        .retain(|node| node["kind"].text().is_some_and(|kind| Layer::RULE_KINDS.contains(&kind)));
    documents.iter().map(Node::to_json).collect()
}

/// Applies all edits to the texts, in an order that keeps positions valid.
fn apply_edits(
    goals: &[Goal],
    edits: Vec<(usize, Edits)>,
    files: &SourceFiles<'_>,
) -> Result<FileTexts, AbsorbError> {
    let mut edits_by_file: BTreeMap<FileName, Vec<(usize, TextEdit)>> = BTreeMap::new();
    // Goals of several groups or projects may need the same edit: apply the edit once.
    let mut distinct_edits = HashSet::new();
    for (goal_index, edits) in edits {
        for (file, edit) in edits {
            if distinct_edits.insert(format!("{file} {edit:?}")) {
                edits_by_file.entry(file).or_default().push((goal_index, edit));
            }
        }
    }
    let (mut edited_texts, mut refusals) = (BTreeMap::new(), Vec::new());
    for (file, mut edits) in edits_by_file {
        edits.sort_by_key(|(_, edit)| match edit {
            TextEdit::Put { .. } => (0, 0),
            TextEdit::Push { .. } => (1, 0),
            TextEdit::Remove { item, .. } => (2, usize::MAX - item),
        });
        let text = files.text(&file).unwrap_or_default().to_owned();
        let text = edit::apply_all(text, edits, &mut |goal_index, failure, text| {
            refusals.push(failure.refuse(&goals[goal_index].address, &file, text));
        });
        edited_texts.insert(file, text);
    }
    if refusals.is_empty() { Ok(edited_texts) } else { Err(AbsorbError::Refused(refusals)) }
}

#[cfg(test)]
mod tests;
