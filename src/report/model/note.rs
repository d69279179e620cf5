//! The kinds of notes, the texts for their objects, and folding of equal notes of several projects.

use std::collections::BTreeMap;

use super::{fold::fold_equal, step::local_name};
use crate::{
    catalogue,
    diff::{Note, Reason},
};

/// The kind of a note: its position in display order, and the title for all notes of this kind.
pub(in crate::report) type NoteKind = (u8, &'static str);

/// The kind of a note with this reason.
pub(in crate::report) const fn note_kind(reason: &Reason) -> NoteKind {
    match reason {
        Reason::ArchivedByHand => (
            0,
            "archived, but not declared archived: a difference; nothing else is compared or applied there until `archived: false` unarchives it; write `archived: true` to leave it so",
        ),
        Reason::Archived => (1, "archived, as declared; skipped"),
        Reason::Vanished => (
            2,
            "deleted, renamed or archived while this run was reading; no rule includes it any more",
        ),
        Reason::Closed { .. } => (3, "not compared: a feature that they need is declared off"),
        Reason::UndeclaredFails { .. } => {
            (4, "projects that no manifest declares: a difference; unchanged")
        }
        Reason::UnlistedFails => (5, "not in any manifest: a difference; unchanged"),
        Reason::Undeclared { .. } => (6, "projects that no manifest declares; unchanged"),
        Reason::Unlisted => (7, "not in any manifest; unchanged"),
        Reason::Protected { .. } => (8, "protected from changes"),
        Reason::TakesAlong { .. } => (
            9,
            "grants that no manifest declares; the service removes them together with the share",
        ),
        Reason::Besides { .. } => (10, "further effects of these steps"),
        Reason::Waits { .. } => (11, "not sent yet; a later run sets it"),
        Reason::NotReturned => (
            12,
            "not compared: the service does not return these fields, or ignores them in its tier",
        ),
        Reason::CannotVerify => (
            13,
            "cannot be verified: the service does not return these fields; `--resend` sends them again",
        ),
        Reason::SecretMissing { .. } => {
            (14, "not compared: these secrets are not set here, or empty; `apply` needs them")
        }
    }
}

/// `notes` by kind.
pub(in crate::report) fn group_by_kind<'n>(
    notes: impl IntoIterator<Item = &'n Note>,
) -> BTreeMap<NoteKind, Vec<&'n Note>> {
    let mut notes_by_kind: BTreeMap<_, Vec<_>> = BTreeMap::new();
    notes
        .into_iter()
        .for_each(|note| notes_by_kind.entry(note_kind(&note.reason)).or_default().push(note));
    notes_by_kind
}

/// The maximum number of groups and projects that are named separately.
pub const MAX_NAMED_CONTAINERS: usize = 10;

/// A group or project with the objects of its notes, and the paths of other groups and projects
/// with the same objects.
#[derive(Debug)]
pub struct NoteGroup<'a> {
    /// The path of the first group or project.
    pub path: &'a str,
    /// The paths of the other groups and projects with the same objects.
    pub others: Vec<&'a str>,
    /// The objects. Their ids are left out if several groups and projects have the same objects.
    pub objects: Vec<String>,
}

impl NoteGroup<'_> {
    /// The first path, with the number of other paths.
    pub fn title(&self) -> String {
        match self.others.len() {
            0 => self.path.to_owned(),
            more => format!("{} and {more} more", self.path),
        }
    }
}

/// Groups `objects` by the path of their group or project. If there are many paths, those with the
/// same objects share one [`NoteGroup`]. With `is_full`, each path has its own group.
pub fn fold_objects<'p>(
    objects: impl IntoIterator<Item = (&'p str, String)>,
    is_full: bool,
) -> Vec<NoteGroup<'p>> {
    let mut by_path: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (path, object) in objects {
        by_path.entry(path).or_default().push(object);
    }
    let containers: Vec<_> = by_path.into_iter().collect();
    let is_full = is_full || containers.len() <= MAX_NAMED_CONTAINERS;
    let folded = fold_equal(&containers, is_full, |(_, objects)| strip_ids(objects));
    let groups = folded.into_iter().map(|((path, objects), others)| NoteGroup {
        path,
        others: others.iter().map(|(path, _)| *path).collect(),
        objects: if others.is_empty() { objects.clone() } else { strip_ids(objects) },
    });
    groups.collect()
}

fn strip_ids(objects: &[String]) -> Vec<String> {
    objects.iter().map(|object| strip_id(object).to_owned()).collect()
}

/// An object without the id that distinguishes equal entries of one group or project.
fn strip_id(object: &str) -> &str {
    let section_name = object.split_once('/').map(|(section, _)| section);
    let section = catalogue::all_sections().find(|section| Some(section.section) == section_name);
    let id = section.filter(|section| section.allows_duplicates()).and(object.rsplit_once('@'));
    match id {
        Some((name, id)) if id.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => object,
    }
}

/// The object of a note and its details, without its group or project; empty for the container itself.
pub fn note_object(note: &Note) -> String {
    let object = local_name(&note.address);
    let detail = match &note.reason {
        Reason::Archived | Reason::ArchivedByHand | Reason::Vanished => return String::new(),
        Reason::Undeclared { state } | Reason::UndeclaredFails { state } => {
            return state.unwrap_or_default().to_owned();
        }
        Reason::Unlisted | Reason::UnlistedFails => return object,
        Reason::Protected { why } | Reason::Closed { why } => why.clone(),
        Reason::Besides { what } => what.clone(),
        Reason::TakesAlong { grants_of } => {
            let grants = grants_of.iter().map(|address| match address.entry {
                Some(_) => local_name(address),
                None => format!("any of {}: not read", local_name(address)),
            });
            grants.collect::<Vec<_>>().join(", ")
        }
        Reason::Waits { why } => format!("{} waits {why}", note.fields.join(", ")),
        Reason::NotReturned | Reason::CannotVerify => note.fields.join(", "),
        Reason::SecretMissing { secrets } => secrets.join(", "),
    };
    format!("{object} ({detail})")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal entries have a different id in each project.
    #[test]
    fn entries_that_differ_only_by_id_are_folded() {
        let paths: Vec<_> = (0..20).map(|n| format!("acme/p{n:02}")).collect();
        let pair_with_paths = |object: &dyn Fn(usize) -> String| {
            let indexed_paths = paths.iter().enumerate();
            indexed_paths.map(|(n, path)| (path.as_str(), object(n))).collect::<Vec<_>>()
        };
        let groups =
            fold_objects(pair_with_paths(&|n| format!("pipeline_schedules/fails@{n}")), false);
        assert_eq!(groups[0].title(), "acme/p00 and 19 more");
        assert_eq!(groups[0].objects, ["pipeline_schedules/fails"]);
        // Here the part after the `@` is the environment.
        assert_eq!(fold_objects(pair_with_paths(&|n| format!("variables/A@{n}")), false).len(), 20);
        assert_eq!(
            fold_objects(pair_with_paths(&|n| format!("pipeline_schedules/fails@{n}")), true).len(),
            20
        );
    }
}
