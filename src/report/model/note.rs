//! The sorts of notes, the object of a note, and notes of several projects put together.

use std::collections::BTreeMap;

use super::{fold::same, step::tail};
use crate::{
    catalogue,
    diff::{Note, Reason},
};

/// The sort of a note: its place in display order, and the title for all notes of this sort.
pub(in crate::report) type NoteKind = (u8, &'static str);

/// The sort of a note with this reason.
pub(in crate::report) const fn sort(reason: &Reason) -> NoteKind {
    match reason {
        Reason::ArchivedByHand => (
            0,
            "archived, but not declared so: a difference; write `archived: true`, or `archived: false` to bring it back",
        ),
        Reason::Archived => (1, "archived, as declared; skipped"),
        Reason::Vanished => (
            2,
            "deleted, renamed or archived while this run was reading; no rule brings it in any more",
        ),
        Reason::Closed { .. } => (3, "closed, as declared; skipped"),
        Reason::UndeclaredFails { .. } => {
            (4, "projects that no manifest declares: a difference; unchanged")
        }
        Reason::UnlistedFails => (5, "not in any manifest: a difference; unchanged"),
        Reason::Undeclared { .. } => (6, "projects that no manifest declares; unchanged"),
        Reason::Unlisted => (7, "not in any manifest; unchanged"),
        Reason::Protected { .. } => (8, "protected from changes"),
        Reason::TakesAlong { .. } => {
            (9, "grants that no manifest declares; the service removes them along with the share")
        }
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
            (14, "not compared: these secrets are not set here; `apply` needs them")
        }
    }
}

/// `notes` by sort.
pub(in crate::report) fn by_sort<'n>(
    notes: impl IntoIterator<Item = &'n Note>,
) -> BTreeMap<NoteKind, Vec<&'n Note>> {
    let mut sorts: BTreeMap<_, Vec<_>> = BTreeMap::new();
    notes.into_iter().for_each(|note| sorts.entry(sort(&note.reason)).or_default().push(note));
    sorts
}

/// `objects` by the path of their group or project.
pub fn by_path<'p>(
    objects: impl IntoIterator<Item = (&'p str, String)>,
) -> BTreeMap<&'p str, Vec<String>> {
    let mut paths: BTreeMap<_, Vec<_>> = BTreeMap::new();
    objects.into_iter().for_each(|(path, object)| paths.entry(path).or_default().push(object));
    paths
}

/// The number of groups and projects that are named one by one.
pub const MANY: usize = 10;

/// A group or project with the objects of a note, and the paths of others with the same objects.
#[derive(Debug)]
pub struct NoteGroup<'a> {
    /// The path of the first one.
    pub path: &'a str,
    /// The paths of the others.
    pub others: Vec<&'a str>,
    /// The objects, without their ids if there are others.
    pub objects: Vec<String>,
}

impl NoteGroup<'_> {
    /// The path, with the number of the others.
    pub fn title(&self) -> String {
        match self.others.len() {
            0 => self.path.to_owned(),
            more => format!("{} and {more} more", self.path),
        }
    }
}

/// Groups and projects with the objects of a note. If there are many, those with the same objects
/// are put together at the first one, unless `full`.
pub fn grouped(all: BTreeMap<&str, Vec<String>>, full: bool) -> Vec<NoteGroup<'_>> {
    let all: Vec<_> = all.into_iter().collect();
    let together = same(&all, full || all.len() <= MANY, |(_, objects)| without_ids(objects));
    let alike = together.into_iter().map(|((path, objects), others)| NoteGroup {
        path,
        others: others.iter().map(|(path, _)| *path).collect(),
        objects: if others.is_empty() { objects.clone() } else { without_ids(objects) },
    });
    alike.collect()
}

fn without_ids(objects: &[String]) -> Vec<String> {
    objects.iter().map(|object| without_id(object).to_owned()).collect()
}

/// An object without the id that tells equal entries of one group or project apart.
fn without_id(object: &str) -> &str {
    let named = object.split_once('/').map(|(section, _)| section);
    let section = catalogue::everywhere().find(|section| Some(section.section) == named);
    let id = section.filter(|section| section.may_come_twice()).and(object.rsplit_once('@'));
    match id {
        Some((name, id)) if id.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => object,
    }
}

/// The object of a note, without its group or project; empty for the container itself.
pub fn object(note: &Note) -> String {
    let object = tail(&note.address);
    let about = match &note.reason {
        Reason::Archived | Reason::ArchivedByHand | Reason::Vanished => return String::new(),
        Reason::Undeclared { state } | Reason::UndeclaredFails { state } => {
            return state.unwrap_or_default().to_owned();
        }
        Reason::Unlisted | Reason::UnlistedFails => return object,
        Reason::Protected { why } | Reason::Closed { why } => why.clone(),
        Reason::Besides { what } => what.clone(),
        Reason::TakesAlong { grants_of } => {
            let grants = grants_of.iter().map(|address| match address.entry {
                Some(_) => tail(address),
                None => format!("any of {}: not read", tail(address)),
            });
            grants.collect::<Vec<_>>().join(", ")
        }
        Reason::Waits { why } => format!("{} waits {why}", note.fields.join(", ")),
        Reason::NotReturned | Reason::CannotVerify => note.fields.join(", "),
        Reason::SecretMissing { secrets } => secrets.join(", "),
    };
    format!("{object} ({about})")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each project has its own id of an equal entry.
    #[test]
    fn entries_that_differ_only_by_id_are_put_together() {
        let paths: Vec<_> = (0..20).map(|n| format!("acme/p{n:02}")).collect();
        let all = |object: &dyn Fn(usize) -> String| {
            let each = paths.iter().enumerate();
            each.map(|(n, path)| (path.as_str(), vec![object(n)])).collect::<BTreeMap<_, _>>()
        };
        let alike = grouped(all(&|n| format!("pipeline_schedules/fails@{n}")), false);
        assert_eq!(alike[0].title(), "acme/p00 and 19 more");
        assert_eq!(alike[0].objects, ["pipeline_schedules/fails"]);
        // Here the part after the `@` is the environment.
        assert_eq!(grouped(all(&|n| format!("variables/A@{n}")), false).len(), 20);
        assert_eq!(grouped(all(&|n| format!("pipeline_schedules/fails@{n}")), true).len(), 20);
    }
}
