//! The one comment of a merge request that says what a report does.
//!
//! A report begins with a [`Marker`]. The comment of a merge request that the caller wrote and that
//! begins with the same one is edited; without one, a comment is written. Somebody else's is never
//! touched, whatever it says, and what somebody made of the caller's is overwritten.
//!
//! The service takes notes that the caller may not see out of its list, so that no list proves that
//! there is none. But it shows a caller their own: what is not there after the last page was not
//! written by them. The one harm of a mistake is a second comment, which the next run finds and
//! names.
//!
//! A note is nothing that the service keeps unique. Where the answer to a new one is lost, it is
//! looked for as [`apply`](crate::apply) looks for what it creates, and never written again: if it
//! does not show, the run ends without knowing, and the next one looks first.

use std::fmt;

use crate::{
    api::{ApiError, ReadClient, WriteClient},
    apply::LOOKS,
    operation::{MERGE_REQUEST_GET, NOTE_CREATE, NOTE_LIST, NOTE_UPDATE, Op},
    page::Rows,
    report::marker::Marker,
    value::{Fields, Json, Object, Value},
};

/// The longest body that the service takes, in characters.
pub const LONGEST: usize = 1_000_000;

/// A merge request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The id or the full path of its project.
    pub project: String,
    /// Its number there.
    pub merge_request: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "merge request !{} of project {}", self.merge_request, self.project)
    }
}

/// What a merge request is, as far as it matters to who comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeRequest {
    /// `opened`, `closed`, `merged` or `locked`; blank if the service does not say.
    pub state: String,
    /// Whether only members may comment.
    pub discussion_locked: bool,
}

/// What became of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was written.
    Written,
    /// It was there and says something else now.
    Edited,
    /// It was there and says the same. Nothing was sent.
    Same,
}

/// A comment that is as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The id of the note.
    pub note: u64,
    /// How it came to be so.
    pub outcome: Outcome,
    /// The ids of further comments of the caller with the same marker, which are as they were.
    pub copies: Vec<u64>,
    /// What it is a comment of.
    pub merge_request: MergeRequest,
}

/// Why there is no such comment.
#[derive(Debug, thiserror::Error)]
pub enum CommentError {
    /// The merge request could not be read.
    #[error("cannot read the merge request")]
    MergeRequest(#[source] ApiError),
    /// Its notes could not be read.
    #[error("cannot read the comments")]
    Notes(#[source] ApiError),
    /// The service did not take the comment, or nobody knows whether it did
    /// ([`in_doubt_since`](ApiError::in_doubt_since)).
    #[error("cannot write the comment")]
    Write {
        /// What the service said.
        #[source]
        error: ApiError,
        /// Whether only members may comment there.
        discussion_locked: bool,
    },
}

impl CommentError {
    /// What the service said.
    pub const fn error(&self) -> &ApiError {
        match self {
            Self::MergeRequest(error) | Self::Notes(error) | Self::Write { error, .. } => error,
        }
    }
}

/// Makes the comment of the user `author`, whom the client's token belongs to, at `place` say
/// `body`, which begins with `marker`.
///
/// # Errors
/// [`CommentError`].
pub async fn put(
    client: &WriteClient,
    author: u64,
    place: &Place,
    marker: &Marker,
    body: &str,
) -> Result<Comment, CommentError> {
    let reads = client.reads();
    let merge_request =
        read_merge_request(reads, place).await.map_err(CommentError::MergeRequest)?;
    let look = async || own_notes(reads, author, place, marker).await;
    let own = look().await.map_err(CommentError::Notes)?;
    let discussion_locked = merge_request.discussion_locked;
    let refused = |error| CommentError::Write { error, discussion_locked };
    let Some((first, others)) = own.split_first() else {
        let note = match write(client, place, body).await {
            Err(error) => found_after(reads, error, body, look).await,
            written => written,
        };
        let note = note.map_err(refused)?;
        let (outcome, copies) = (Outcome::Written, Vec::new());
        return Ok(Comment { note, outcome, copies, merge_request });
    };
    let outcome = if settled(&first.body) == settled(body) {
        Outcome::Same
    } else {
        edit(client, place, first.id, body).await.map_err(refused)?;
        Outcome::Edited
    };
    let copies = others.iter().map(|note| note.id).collect();
    Ok(Comment { note: first.id, outcome, copies, merge_request })
}

/// A note of the caller that begins with the marker.
struct Own {
    id: u64,
    body: String,
}

async fn read_merge_request(reads: &ReadClient, place: &Place) -> Result<MergeRequest, ApiError> {
    let answer = reads.get_known(at(MERGE_REQUEST_GET, place), &["iid"]).await?;
    Ok(MergeRequest {
        state: answer.body["state"].as_str().unwrap_or_default().to_owned(),
        discussion_locked: answer.body["discussion_locked"] == true,
    })
}

fn at<E: Copy>(op: Op<E>, place: &Place) -> crate::operation::Request<E> {
    op.request().arg("id", &place.project).arg("merge_request_iid", place.merge_request)
}

/// The notes of `author` that begin with `marker`, the oldest first: what is written meanwhile comes
/// behind what was read.
async fn own_notes(
    reads: &ReadClient,
    author: u64,
    place: &Place,
    marker: &Marker,
) -> Result<Vec<Own>, ApiError> {
    let request = at(NOTE_LIST, place)
        .query("order_by", "created_at")
        .query("sort", "asc")
        .query("activity_filter", "only_comments");
    let rows = Rows { keys: &["id"], also: &["author", "body"] };
    let notes = reads.list_shown(request, rows).await?;
    Ok(notes.into_iter().filter_map(|note| own(note, author, marker)).collect())
}

fn own(note: Object, author: u64, marker: &Marker) -> Option<Own> {
    let field = |name: &str| note.get(name).unwrap_or(&Json::Null);
    let is_own = field("author")["id"].as_u64() == Some(author) && *field("system") != true;
    let body = field("body").as_str()?;
    let is_marked = Marker::of(body).as_ref() == Some(marker);
    let id = field("id").as_u64()?;
    (is_own && is_marked).then(|| Own { id, body: body.to_owned() })
}

/// A body without what the service may change of it.
fn settled(body: &str) -> String {
    body.replace("\r\n", "\n").trim_end().to_owned()
}

fn fields(body: &str) -> Fields {
    [("body".to_owned(), Value::Plain(body.into()))].into()
}

async fn write(client: &WriteClient, place: &Place, body: &str) -> Result<u64, ApiError> {
    let answer = client.send(at(NOTE_CREATE, place).fields(fields(body))).await?;
    Ok(answer.body["id"].as_u64().unwrap_or_default())
}

async fn edit(client: &WriteClient, place: &Place, note: u64, body: &str) -> Result<(), ApiError> {
    let request = at(NOTE_UPDATE, place).arg("note_id", note).fields(fields(body));
    client.send(request).await.map(drop)
}

/// Looks for a comment whose writing ended with `error`, if it may have been written all the same.
/// One that says something else is that of another run at the same time.
///
/// # Errors
/// `error`, if none is found.
async fn found_after(
    reads: &ReadClient,
    error: ApiError,
    body: &str,
    look: impl AsyncFn() -> Result<Vec<Own>, ApiError>,
) -> Result<u64, ApiError> {
    let Some(began) = error.in_doubt_since() else { return Err(error) };
    for after in LOOKS {
        if !reads.wait_until(began.saturating_add(after)).await {
            break;
        }
        // What cannot be read now may be read at the next look.
        if let Ok(found) = look().await
            && let Some(note) = found.iter().find(|note| settled(&note.body) == settled(body))
        {
            return Ok(note.id);
        }
    }
    Err(error)
}
