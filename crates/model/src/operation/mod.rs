//! The table of operations of the service, and requests as values.
//!
//! Each row is a constant. [`OPERATIONS`] lists all rows, and a [`Parameter`] describes a part of a
//! request. The rows of plain collections are made from data ([`collection`]).
//!
//! Every request refers to a row of this table. The row's id is in the journal, in errors and in
//! counts. Only this module fills in the path template. The type of a request shows whether the
//! request reads or writes. A planning client only accepts a [`Request<Read>`], so planning cannot
//! write.
//!
//! A request is a value without IO. The body may contain references to secrets, which are resolved
//! when the request is sent.

pub mod collection;
mod kept_keys;
mod parameter;
mod parameters;
mod pending;
mod request;
mod table;

use std::{fmt, marker::PhantomData};

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::{
    field::{Scope, Tier, WriteRequest},
    release::Release,
};

pub use kept_keys::KeyFilter;
pub use parameter::{Parameter, ParameterLocation, ParameterType};
pub use parameters::ParameterList;
pub use pending::{id_placeholder, placeholder_path};
pub use request::{Request, RequestBody};
pub use table::*;

/// An HTTP method of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates something, or starts an action.
    Post,
    /// Edits.
    Put,
    /// Edits. Lists in the body contain only the rows to add and to remove.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// The name of the method in a request.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl From<Method> for http::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::GET,
            Method::Post => Self::POST,
            Method::Put => Self::PUT,
            Method::Patch => Self::PATCH,
            Method::Delete => Self::DELETE,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One row of the table. Two rows are equal if their ids are equal.
#[derive(Debug)]
pub struct Operation {
    /// The name in the journal, in counts and in errors, for example `variable-update`.
    pub id: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path below `/api/v4`, for example `/projects/:id/variables/:key`.
    pub path: &'static str,
    /// A short description.
    pub purpose: &'static str,
    /// The source: `chapter, section` of the reference, or `supporting` for an operation that the
    /// reference does not contain.
    pub source: &'static str,
    /// The content of a successful response.
    pub response: ResponseBody,
    /// The parameters, in lists that operations may share.
    pub parameters: &'static [ParameterList],
    /// The scope and section whose fields the body also accepts, and the type of the write request.
    /// The description of the section's kind describes these fields.
    pub fields: Option<((Scope, &'static str), WriteRequest)>,
    /// Parameters; a request must contain at least one of them. Empty if there is no such
    /// condition.
    pub one_of: &'static [&'static str],
    /// The lowest tier of the service that has the operation.
    pub tier: Tier,
    /// The release that added the operation.
    pub since: Option<Release>,
    /// True if only administrators can use it.
    pub needs_administrator: bool,
    /// The effect of sending the request again after a lost response.
    pub retry_safety: RetrySafety,
    /// True if a 401 means that the caller lacks permission or that the feature is off, not that
    /// the token is invalid.
    pub denies_with_401: bool,
    /// For writes: true if the response shows the object as a GET does, so that the object need not
    /// be read again.
    pub shows_object: bool,
    /// For writes: true if the service answers with 304 when nothing needs to change. A 304 is a
    /// success.
    pub answers_not_modified: bool,
    /// For deletes: true if the service refuses the request with 412 when the object changed after
    /// the time in `If-Unmodified-Since`.
    pub is_conditional: bool,
    /// For lists: true if the list can be read by keyset. A request then contains the last received
    /// id instead of a page number.
    pub by_keyset: bool,
    /// The known limit in requests per minute and user, if the service does not announce it.
    pub requests_per_minute: Option<u32>,
    /// For lists: true if the service first divides the list into pages and then removes objects
    /// that the caller may not see. Then any page may be short or empty, so the list is never known
    /// to be complete.
    pub filtered_after_paging: bool,
    /// For lists: true if one response contains the whole list. The service then ignores the
    /// requested page and sends no paging headers.
    pub unpaged: bool,
    /// For lists: the message of the 404 with which the service answers if the list is empty.
    /// `None` if the service sends an empty list.
    pub empty_as: Option<&'static str>,
}

/// The effect of sending a request again after its response was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetrySafety {
    /// The request only reads.
    Reads,
    /// The result is the same, because the request describes the wanted state.
    Idempotent,
    /// The service refuses a second request if the first request succeeded, because the objects are
    /// unique.
    RefusesDuplicates,
    /// A second request creates a second object.
    MayDuplicate,
    /// The request starts something that must not start twice.
    Never,
}

impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Operation {}

/// The content of a successful response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseBody {
    /// One object.
    One,
    /// A list, page by page.
    List,
    /// An object whose keys are data, such as the names of languages.
    Map,
    /// Nothing.
    Nothing,
    /// Not documented.
    Undocumented,
}

impl Operation {
    /// True if the path has the argument `name`.
    pub fn has_argument(&self, name: &str) -> bool {
        self.path.split('/').any(|segment| segment.strip_prefix(':') == Some(name))
    }

    /// The defaults of operations with this method.
    pub const fn with_defaults(method: Method) -> Self {
        let retry_safety = match method {
            Method::Get => RetrySafety::Reads,
            Method::Put | Method::Patch | Method::Delete => RetrySafety::Idempotent,
            Method::Post => RetrySafety::MayDuplicate,
        };
        Self {
            id: "",
            method,
            path: "",
            purpose: "",
            source: "supporting",
            response: ResponseBody::Undocumented,
            parameters: &[],
            fields: None,
            one_of: &[],
            tier: Tier::Free,
            since: None,
            needs_administrator: false,
            retry_safety,
            denies_with_401: false,
            shows_object: false,
            // The object of a delete may be absent already, for example the fork relation of a project.
            answers_not_modified: matches!(method, Method::Delete),
            is_conditional: false,
            by_keyset: false,
            requests_per_minute: None,
            filtered_after_paging: false,
            unpaged: false,
            empty_as: None,
        }
    }

    /// The parameters, without the fields of manifests.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        self.parameters.iter().flat_map(|list| list.parameters())
    }
}

/// Marks an operation that only reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read;

/// Marks an operation that may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write;

/// A row of the table with its effect, [`Read`] or [`Write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op<E> {
    row: &'static Operation,
    effect: PhantomData<E>,
}

/// Deserializes an operation of the table from its id.
impl<'de> Deserialize<'de> for AnyOp {
    fn deserialize<D: Deserializer<'de>>(id: D) -> Result<Self, D::Error> {
        let id = String::deserialize(id)?;
        let op = OPERATIONS.iter().find(|op| op.row().id == id);
        op.copied().ok_or_else(|| D::Error::custom(format!("unknown operation `{id}`")))
    }
}

impl<E: Copy> Op<E> {
    const fn new(row: &'static Operation) -> Self {
        Self { row, effect: PhantomData }
    }

    /// The row of the table.
    pub const fn row(self) -> &'static Operation {
        self.row
    }

    /// A request without arguments.
    pub const fn request(self) -> Request<E> {
        Request::new(self.row)
    }
}

/// The number of minutes that `request_count` requests take if at most `max_per_minute` are sent
/// per minute. The requests of the first minute are sent at once.
pub fn count_minutes(request_count: u64, max_per_minute: u64) -> u64 {
    request_count.saturating_sub(1) / max_per_minute.max(1)
}

/// An operation that reads or writes.
#[derive(Clone, Copy, Debug)]
pub enum AnyOp {
    /// An operation that only reads.
    Read(Op<Read>),
    /// An operation that may write.
    Write(Op<Write>),
}

impl AnyOp {
    /// The row of the table.
    pub const fn row(self) -> &'static Operation {
        match self {
            Self::Read(op) => op.row,
            Self::Write(op) => op.row,
        }
    }

    /// `read` or `write`.
    pub const fn effect(self) -> &'static str {
        match self {
            Self::Read(_) => "read",
            Self::Write(_) => "write",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_its_retry_safety() {
        let ids_of_rows = |retry_safety, method| {
            let rows = OPERATIONS
                .iter()
                .map(|op| op.row())
                .filter(|row| row.method == method && row.retry_safety == retry_safety);
            rows.map(|row| row.id).collect::<Vec<_>>()
        };
        let count_method =
            |method| OPERATIONS.iter().filter(|op| op.row().method == method).count();
        assert_eq!(ids_of_rows(RetrySafety::Reads, Method::Get).len(), count_method(Method::Get));
        assert_eq!(ids_of_rows(RetrySafety::RefusesDuplicates, Method::Put), ["project-transfer"]);
        assert_eq!(
            ids_of_rows(RetrySafety::Idempotent, Method::Put).len(),
            count_method(Method::Put) - 1
        );
        assert_eq!(
            ids_of_rows(RetrySafety::RefusesDuplicates, Method::Patch).len(),
            count_method(Method::Patch)
        );
        assert_eq!(
            ids_of_rows(RetrySafety::Never, Method::Delete),
            ["project-delete", "group-delete"]
        );
        assert_eq!(
            ids_of_rows(RetrySafety::Idempotent, Method::Delete).len(),
            count_method(Method::Delete) - 2
        );
        let posts = [
            (
                RetrySafety::Idempotent,
                &[
                    "group-member-override",
                    "group-member-approve-all",
                    "project-star",
                    "project-unstar",
                    "project-archive",
                    "project-unarchive",
                    "project-import-members",
                    "approvals-edit",
                    "pipeline-schedule-take",
                ][..],
            ),
            (
                RetrySafety::Never,
                &[
                    "import-extgit",
                    "import-extgit-cancel",
                    "import-extgit-gists",
                    "import-extserver",
                    "project-fork",
                    "project-restore",
                    "project-housekeeping",
                    "group-restore",
                ],
            ),
            (
                RetrySafety::RefusesDuplicates,
                &[
                    "variable-create",
                    "group-variable-create",
                    "group-member-add",
                    "project-member-add",
                    "project-create",
                    "project-create-for-user",
                    "project-share",
                    "fork-relation-create",
                    "push-rule-add",
                    "branch-create",
                    "protected-branch-add",
                    "approval-rule-add",
                    "group-create",
                    "group-transfer",
                    "group-share",
                    "group-push-rule-add",
                    "group-protected-branch-add",
                ],
            ),
            (
                RetrySafety::MayDuplicate,
                &[
                    "project-upload",
                    "hook-add",
                    "pipeline-schedule-create",
                    "merge-request-note-create",
                    "group-hook-add",
                ],
            ),
        ];
        for (retry_safety, ids) in posts {
            assert_eq!(ids_of_rows(retry_safety, Method::Post), ids, "{retry_safety:?}");
        }
    }

    /// The list was compared with the behaviour of the service. The list omits writes that start
    /// background work, and writes whose response contains only a status.
    #[test]
    fn these_writes_return_the_object() {
        let rows = || OPERATIONS.iter().map(|op| op.row());
        let ids: Vec<_> = rows().filter(|row| row.shows_object).map(|row| row.id).collect();
        let expected = [
            "variable-create",
            "variable-update",
            "group-variable-create",
            "group-variable-update",
            "group-member-add",
            "group-member-edit",
            "project-member-add",
            "project-member-edit",
            "project-create",
            "project-create-for-user",
            "project-edit",
            "project-transfer",
            "project-star",
            "project-unstar",
            "project-archive",
            "project-unarchive",
            "hook-add",
            "hook-edit",
            "push-rule-add",
            "push-rule-edit",
            "branch-create",
            "protected-branch-add",
            "protected-branch-edit",
            "approvals-edit",
            "approval-rule-add",
            "approval-rule-edit",
            "pipeline-schedule-create",
            "pipeline-schedule-edit",
            "merge-request-note-create",
            "merge-request-note-edit",
            "group-create",
            "group-edit",
            "group-transfer",
            "group-hook-add",
            "group-hook-edit",
            "group-push-rule-add",
            "group-push-rule-edit",
            "group-protected-branch-add",
            "group-protected-branch-edit",
        ];
        assert_eq!(ids, expected);
        assert!(
            rows()
                .filter(|row| row.shows_object)
                .all(|row| matches!(row.method, Method::Post | Method::Put | Method::Patch))
        );
    }
}
