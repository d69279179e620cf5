//! Writes a report as a comment of a merge request, or updates that comment.
//!
//! A report begins with a [`Marker`]. If the caller already wrote a comment that begins with the
//! same marker, that comment is edited. Otherwise a new comment is written. Comments of others are
//! never changed, whatever they contain. If somebody else edited the caller's comment, that edit is
//! overwritten.
//!
//! The service leaves out notes that the caller may not see, so a list cannot prove that a note
//! does not exist. But callers see all of their own notes, so a complete list contains every note
//! of the caller. At worst, a second comment is written, and the next run reports it.
//!
//! The service accepts duplicate notes. If the response to the creation of a note is lost, the run
//! never sends the request again. Instead, the run reads the notes several times, after the same
//! delays as [`apply`](crate::apply). If the note does not appear, the outcome is unknown. The next
//! run searches for the note before it writes one.

use std::fmt;

use crate::{
    api::{ApiError, ReadClient, WriteClient},
    apply::REREAD_DELAYS,
    operation::{MERGE_REQUEST_GET, NOTE_CREATE, NOTE_LIST, NOTE_UPDATE, Op, Request, Write},
    page::EntryKeys,
    report::marker::Marker,
    value::{Json, Object, Value},
};

/// The maximum length of a body that the service accepts, in characters.
pub const MAX_BODY_CHARS: usize = 1_000_000;

/// A merge request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeRequestRef {
    /// The id or the full path of the project.
    pub project: String,
    /// The number of the merge request in the project.
    pub merge_request: u64,
}

impl fmt::Display for MergeRequestRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "merge request !{} of project {}", self.merge_request, self.project)
    }
}

/// The properties of a merge request that restrict comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeRequest {
    /// `opened`, `closed`, `merged` or `locked`; empty if the response lacks the state.
    pub state: String,
    /// True if only members may comment.
    pub discussion_locked: bool,
}

/// The change that was made to the comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentOutcome {
    /// The comment did not exist and was created.
    Written,
    /// The comment existed with another text, and was edited.
    Edited,
    /// The comment existed with the same text. Nothing was sent.
    Unchanged,
}

/// The comment after the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The id of the note.
    pub note_id: u64,
    /// The change that was made to the note.
    pub outcome: CommentOutcome,
    /// The ids of further comments of the caller with the same marker, which stay unchanged.
    pub duplicate_ids: Vec<u64>,
    /// The merge request of the comment.
    pub merge_request: MergeRequest,
}

/// The reason why the comment was not written.
#[derive(Debug, thiserror::Error)]
pub enum CommentError {
    /// The merge request could not be read.
    #[error("cannot read the merge request")]
    MergeRequest(#[source] ApiError),
    /// The notes of the merge request could not be read.
    #[error("cannot read the comments")]
    Notes(#[source] ApiError),
    /// The service refused the comment, or the outcome is unknown
    /// ([`in_doubt_since`](ApiError::in_doubt_since)).
    #[error("cannot write the comment")]
    Write {
        /// The error of the request.
        #[source]
        error: ApiError,
        /// True if only members may comment on the merge request.
        discussion_locked: bool,
    },
}

impl CommentError {
    /// The error of the request.
    pub const fn error(&self) -> &ApiError {
        match self {
            Self::MergeRequest(error) | Self::Notes(error) | Self::Write { error, .. } => error,
        }
    }
}

/// Creates or edits the comment at `target` so that it has the text `body`, which begins with
/// `marker`. `author_id` is the id of the token's user.
///
/// # Errors
/// [`CommentError`] if the merge request or its notes cannot be read, or the comment cannot be
/// written.
pub async fn put_comment(
    client: &WriteClient,
    author_id: u64,
    target: &MergeRequestRef,
    marker: &Marker,
    body: &str,
) -> Result<Comment, CommentError> {
    let read_client = client.read_client();
    let response = read_client.get_object(new_request(MERGE_REQUEST_GET, target), &["iid"]).await;
    let response = response.map_err(CommentError::MergeRequest)?;
    let merge_request = MergeRequest {
        state: response.body["state"].as_str().unwrap_or_default().to_owned(),
        discussion_locked: response.body["discussion_locked"] == true,
    };
    let read_notes = async || list_marked_notes(read_client, author_id, target, marker).await;
    let notes = read_notes().await.map_err(CommentError::Notes)?;
    let discussion_locked = merge_request.discussion_locked;
    let write_error = |error| CommentError::Write { error, discussion_locked };
    let Some((oldest, other_notes)) = notes.split_first() else {
        let note_id = match send_body(client, new_request(NOTE_CREATE, target), body).await {
            Err(error) => find_note_in_doubt(read_client, error, body, read_notes).await,
            Ok(response) => Ok(response["id"].as_u64().unwrap_or_default()),
        };
        let note_id = note_id.map_err(write_error)?;
        let (outcome, duplicate_ids) = (CommentOutcome::Written, Vec::new());
        return Ok(Comment { note_id, outcome, duplicate_ids, merge_request });
    };
    let outcome = if normalize_body(&oldest.body) == normalize_body(body) {
        CommentOutcome::Unchanged
    } else {
        let edit = new_request(NOTE_UPDATE, target).with_argument("note_id", oldest.id);
        send_body(client, edit, body).await.map_err(write_error)?;
        CommentOutcome::Edited
    };
    let duplicate_ids = other_notes.iter().map(|note| note.id).collect();
    Ok(Comment { note_id: oldest.id, outcome, duplicate_ids, merge_request })
}

/// A note of the caller that begins with the marker.
struct MarkedNote {
    id: u64,
    body: String,
}

fn new_request<E: Copy>(op: Op<E>, target: &MergeRequestRef) -> Request<E> {
    op.request()
        .with_argument("id", &target.project)
        .with_argument("merge_request_iid", target.merge_request)
}

/// Lists the notes of the user `author_id` that begin with `marker`, the oldest first. In this
/// order, a note that is written during the reading is at the end of the list.
async fn list_marked_notes(
    client: &ReadClient,
    author_id: u64,
    target: &MergeRequestRef,
    marker: &Marker,
) -> Result<Vec<MarkedNote>, ApiError> {
    let request = new_request(NOTE_LIST, target)
        .with_query("order_by", "created_at")
        .with_query("sort", "asc")
        .with_query("activity_filter", "only_comments");
    let note_keys = EntryKeys { identity_keys: &["id"], other_keys: &["author", "body"] };
    let notes = client.list_visible(request, note_keys).await?;
    Ok(notes.into_iter().filter_map(|note| parse_marked_note(note, author_id, marker)).collect())
}

fn parse_marked_note(note: Object, author_id: u64, marker: &Marker) -> Option<MarkedNote> {
    let note = Json::Object(note);
    let is_by_author = note["author"]["id"].as_u64() == Some(author_id) && note["system"] != true;
    let (id, body) = (note["id"].as_u64()?, note["body"].as_str()?);
    let is_marked = Marker::from_text(body).as_ref() == Some(marker);
    (is_by_author && is_marked).then(|| MarkedNote { id, body: body.to_owned() })
}

/// Normalises the parts of a body that the service may change: line ends, and white space at the end.
fn normalize_body(body: &str) -> String {
    body.replace("\r\n", "\n").trim_end().to_owned()
}

async fn send_body(
    client: &WriteClient,
    request: Request<Write>,
    body: &str,
) -> Result<Json, ApiError> {
    let fields = [("body".to_owned(), Value::Plain(body.into()))];
    Ok(client.send(request.with_fields(fields.into())).await?.body)
}

/// Searches for a new comment after its request failed with `error`, if the service may have
/// carried out the request. Returns the id of the note with the text `body`: a comment with another
/// text belongs to a concurrent run.
///
/// # Errors
/// `error`, if no comment has the text `body`, or the service did not carry out the request.
async fn find_note_in_doubt(
    client: &ReadClient,
    error: ApiError,
    body: &str,
    read_notes: impl AsyncFn() -> Result<Vec<MarkedNote>, ApiError>,
) -> Result<u64, ApiError> {
    let Some(start_time) = error.in_doubt_since() else { return Err(error) };
    for delay in REREAD_DELAYS {
        if !client.wait_until(start_time.saturating_add(delay)).await {
            break;
        }
        // A failed read may succeed the next time.
        if let Ok(notes) = read_notes().await
            && let Some(note) =
                notes.iter().find(|note| normalize_body(&note.body) == normalize_body(body))
        {
            return Ok(note.id);
        }
    }
    Err(error)
}
