//! Notes of merge requests. Merge requests come only from a seed, and can only be read. The
//! reference does not describe merge requests or notes. This module follows the real service.
//!
//! Everybody who can read a merge request may comment on it. Notes that a caller may not read are
//! removed from a list after paging. A page may therefore have fewer notes than `per_page`, and
//! clients cannot find out the reason.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/merge_requests/{merge_request_iid}", show_merge_request),
    get("/projects/{id}/merge_requests/{merge_request_iid}/notes", list),
    post("/projects/{id}/merge_requests/{merge_request_iid}/notes", create),
    get("/projects/{id}/merge_requests/{merge_request_iid}/notes/{note_id}", show),
    put("/projects/{id}/merge_requests/{merge_request_iid}/notes/{note_id}", update),
    delete("/projects/{id}/merge_requests/{merge_request_iid}/notes/{note_id}", remove),
];

/// The maximum length of a body, in characters.
const MAX_BODY_LENGTH: usize = 1_000_000;
/// The maximum number of notes of a merge request.
const MAX_NOTES: i64 = 5_000;
/// The first words of lines that are commands. The service executes such lines and does not store
/// them.
const QUICK_ACTIONS: [&str; 9] =
    ["/approve", "/assign", "/close", "/draft", "/label", "/lock", "/merge", "/reopen", "/title"];

/// The merge request of a call, and the caller's level in its project.
struct NoteTarget {
    project: Project,
    level: i64,
    merge_request: MergeRequestRow,
}

impl NoteTarget {
    /// The merge request of the call; 404 if the caller may not read it. In a private project the caller must
    /// be at least a reporter.
    fn from_call(call: &Call<'_>) -> Result<Self> {
        let project = call.project()?;
        let level = call.caller_level_in_project(&project)?;
        let merge_request = if call.may_use_feature(&project, "merge_requests_access_level")? {
            MergeRequestRow::find(call.db, project.id, call.segment_id("merge_request_iid")?)?
        } else {
            None
        };
        let merge_request = merge_request.or_not_found("Merge request")?;
        Ok(Self { project, level, merge_request })
    }

    /// Like [`Self::from_call`], for a write. Fails with 403 in an archived project, and for
    /// non-members if the discussion is locked. Also returns the caller's id.
    fn from_write_call(call: &Call<'_>) -> Result<(Self, i64)> {
        let caller_id = call.require_user()?.id;
        let target = Self::from_call(call)?;
        let is_locked = target.merge_request.discussion_locked && target.level < GUEST;
        refuse_if(target.project.archived || is_locked, ErrorResponse::forbidden)?;
        Ok((target, caller_id))
    }

    fn is_visible(&self, note: &NoteRow) -> bool {
        !note.internal || self.level >= REPORTER
    }

    /// The note in the path. Fails with 404 if the note is missing or the caller may not read it.
    fn find_note(&self, call: &Call<'_>) -> Result<NoteRow> {
        match self.merge_request.find_note(call.db, call.segment_id("note_id")?)? {
            Some(note) if self.is_visible(&note) => Ok(note),
            Some(_) => Err(ErrorResponse::not_found("Note")),
            None => Err(ErrorResponse::record_not_found()),
        }
    }

    /// Like [`Self::find_note`], for a change. Only the author and maintainers may change a note.
    /// Nobody may change a note that the service wrote.
    fn find_changeable_note(call: &Call<'_>) -> Result<(Self, NoteRow)> {
        let (target, caller_id) = Self::from_write_call(call)?;
        let note = target.find_note(call)?;
        let can_change =
            !note.system && (note.author_id == caller_id || target.level >= MAINTAINER);
        refuse_if(!can_change, ErrorResponse::forbidden).map(|()| (target, note))
    }

    fn note_json(&self, call: &Call<'_>, note: &NoteRow) -> Result<Value> {
        let author = User::find_by_id(call.db, note.author_id)?.map(|user| user.brief_json(call));
        let mut body = note.json_columns(
            "id type body attachment author created_at updated_at system noteable_id noteable_type \
             noteable_iid project_id resolvable confidential internal commands_changes",
        );
        let extra_fields = json!({
            "author": author,
            "noteable_id": self.merge_request.id,
            "noteable_type": "MergeRequest",
            "noteable_iid": self.merge_request.iid,
            "project_id": self.project.id,
            "resolvable": false,
            "confidential": note.internal,
            "commands_changes": {},
        });
        add_fields(&mut body, extra_fields);
        Ok(body)
    }
}

fn show_merge_request(call: &Call<'_>) -> Result<Answer> {
    let NoteTarget { project, merge_request, .. } = NoteTarget::from_call(call)?;
    let author = User::find_by_optional_id(call.db, merge_request.author_id)?
        .map(|user| user.brief_json(call));
    let path = &project.full_path;
    let names = "id iid project_id title state created_at updated_at source_branch target_branch";
    let mut body = merge_request.json_columns(names);
    body["author"] = author.into();
    body["discussion_locked"] = merge_request.discussion_locked.then_some(true).into();
    body["user_notes_count"] = merge_request.count_notes(call.db, Some(false))?.into();
    let web_url = format!("{}/{path}/-/merge_requests/{}", call.base_url, merge_request.iid);
    body["web_url"] = web_url.into();
    Answer::ok(&body)
}

fn list(call: &Call<'_>) -> Result<Answer> {
    let target = NoteTarget::from_call(call)?;
    let merge_request = &target.merge_request;
    let filters = ["all_notes", "only_comments", "only_activity"];
    let is_system = match call.allowed_text("activity_filter", &filters)?.as_deref() {
        Some("only_comments") => Some(false),
        Some("only_activity") => Some(true),
        _ => None,
    };
    let order_column = call.allowed_text("order_by", &["created_at", "updated_at"])?;
    let sort_direction = call.allowed_text("sort", &["asc", "desc"])?;
    let page = Page::from_call(call)?;
    let (column, direction) =
        (order_column.as_deref().unwrap_or("created_at"), sort_direction.unwrap_or_default());
    let sql_direction = if direction == "asc" { "ASC" } else { "DESC" };
    let clauses = format!(
        "WHERE n.merge_request_id = ?1 AND (?2 IS NULL OR n.system = ?2)
         ORDER BY n.{column} {sql_direction}, n.id {sql_direction} LIMIT ?3 OFFSET ?4"
    );
    let values = params![merge_request.id, is_system, page.size, page.offset()];
    let notes = NoteRow::list(call.db, &clauses, values)?;
    let notes = notes
        .iter()
        .filter(|note| target.is_visible(note))
        .map(|note| target.note_json(call, note));
    let items = notes.collect::<Result<Vec<_>>>()?;
    let total = merge_request.count_notes(call.db, is_system)?;
    let has_more = page.offset().saturating_add(page.size) < total;
    Ok(page.add_page_headers(call, Answer::ok(&items)?, total, has_more))
}

fn show(call: &Call<'_>) -> Result<Answer> {
    let target = NoteTarget::from_call(call)?;
    Answer::ok(&target.note_json(call, &target.find_note(call)?)?)
}

/// The refusal of an invalid note.
fn note_error(field: &str, error: &str) -> ErrorResponse {
    ErrorResponse::bad_request(&format!("Note {{:{field}=>[\"{error}\"]}}"))
}

fn check_body(body: String) -> Result<String> {
    refuse_if(body.trim().is_empty(), || note_error("note", BLANK_TEXT))?;
    match length_error(&body, MAX_BODY_LENGTH) {
        Some(error) => Err(note_error("note", &error)),
        None => Ok(body),
    }
}

/// Splits a body into text and commands.
fn split_commands(body: &str) -> (String, Vec<&str>) {
    let (commands, text): (Vec<&str>, Vec<&str>) = body.lines().partition(|line: &&str| {
        QUICK_ACTIONS.contains(&line.split_whitespace().next().unwrap_or_default())
            && line.starts_with('/')
    });
    if commands.is_empty() { (body.to_owned(), commands) } else { (text.join("\n"), commands) }
}

/// Creates a note. Commands are not stored and have no effect in the sandbox. A body with only
/// commands creates no note.
fn create(call: &Call<'_>) -> Result<Answer> {
    let (target, author_id) = NoteTarget::from_write_call(call)?;
    call.require(&["body"])?;
    let is_internal = call.is_true("internal")? || call.is_true("confidential")?;
    refuse_if(is_internal && target.level < REPORTER, ErrorResponse::forbidden)?;
    let body = check_body(call.text("body")?.unwrap_or_default())?;
    let (text, commands) = split_commands(&body);
    if text.trim().is_empty() {
        let summary = vec![format!("Read {} commands.", commands.len())];
        let body = json!({ "commands_changes": Map::new(), "summary": summary });
        return Answer::with_status(StatusCode::ACCEPTED, &body);
    }
    let is_full = target.merge_request.count_notes(call.db, None)? >= MAX_NOTES;
    refuse_if(is_full, || note_error("base", "Maximum number of comments exceeded"))?;
    // Only owners may set the time of creation.
    let requested_time = call.time("created_at")?.filter(|_| target.level >= OWNER);
    let created_at = requested_time.map_or_else(|| call.time_text().to_owned(), clock::format_time);
    let mut note = NoteRow {
        merge_request_id: target.merge_request.id,
        author_id,
        body: text,
        internal: is_internal,
        created_at: created_at.clone(),
        updated_at: created_at,
        ..NoteRow::default()
    };
    note.id = note.upsert(call.db)?;
    Answer::created(&target.note_json(call, &note)?)
}

fn update(call: &Call<'_>) -> Result<Answer> {
    let (target, mut note) = NoteTarget::find_changeable_note(call)?;
    if let Some(body) = call.text("body")? {
        refuse_if(body.trim().is_empty(), || ErrorResponse::parameter_error("body", "is empty"))?;
        note.body = check_body(body)?;
        note.updated_at = call.time_text().to_owned();
        note.upsert(call.db)?;
    }
    Answer::ok(&target.note_json(call, &note)?)
}

fn remove(call: &Call<'_>) -> Result<Answer> {
    let (_, note) = NoteTarget::find_changeable_note(call)?;
    call.remove(&note, &note.updated_at)
}
