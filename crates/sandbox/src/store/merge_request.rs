//! Merge requests of a project, and their notes.

use crate::prelude::*;
use rusqlite::Result;

/// One merge request, with the fields that notes need.
#[derive(Clone, Debug, Default)]
pub(crate) struct MergeRequestRow {
    pub(crate) id: i64,
    pub(crate) project_id: i64,
    pub(crate) iid: i64,
    pub(crate) title: String,
    /// `opened`, `closed`, `merged` or `locked`.
    pub(crate) state: String,
    pub(crate) discussion_locked: bool,
    pub(crate) author_id: Option<i64>,
    pub(crate) source_branch: String,
    pub(crate) target_branch: String,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
}

stored!(MergeRequestRow: merge_requests m,
    id, project_id, iid, title, state, discussion_locked, author_id, source_branch, target_branch,
    created_at, updated_at);

impl MergeRequestRow {
    /// The merge request with this number in a project.
    pub(crate) fn find(db: &Connection, project_id: i64, iid: i64) -> Result<Option<Self>> {
        Self::find_first(db, "WHERE m.project_id = ?1 AND m.iid = ?2", [project_id, iid])
    }

    /// The number of notes: all notes for `None`, notes of the service for true, notes of people
    /// for false.
    pub(crate) fn count_notes(&self, db: &Connection, system: Option<bool>) -> Result<i64> {
        let sql = "SELECT count(*) FROM notes WHERE merge_request_id = ?1 AND (?2 IS NULL OR system = ?2)";
        db.prepare_cached(sql)?.query_row(params![self.id, system], |row| row.get(0))
    }

    pub(crate) fn find_note(&self, db: &Connection, id: i64) -> Result<Option<NoteRow>> {
        NoteRow::find_first(db, "WHERE n.merge_request_id = ?1 AND n.id = ?2", [self.id, id])
    }
}

/// One note of a merge request.
#[derive(Clone, Debug, Default)]
pub(crate) struct NoteRow {
    pub(crate) id: i64,
    pub(crate) merge_request_id: i64,
    pub(crate) author_id: i64,
    pub(crate) body: String,
    /// True if the service wrote the note, to record an action.
    pub(crate) system: bool,
    pub(crate) internal: bool,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
}

stored!(NoteRow: notes n,
    id, merge_request_id, author_id, body, system, internal, created_at, updated_at);
