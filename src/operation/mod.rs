//! The table of operations of the service, and requests as values.
//!
//! There is one constant for each row, [`OPERATIONS`] is all of them, and a [`Parameter`] is
//! something that a request may say. The rows of plain collections are made from data
//! ([`collection`]).
//!
//! Every request that undrift sends names one row of this table: its id appears in the journal, in
//! errors and in counts, its path is a template that only this module fills in, and its type says
//! whether it reads or writes. A [`Request<Read>`] is all that a planning client accepts, so that
//! planning cannot write.
//!
//! A request is a value without IO. Its body may still hold secret references; they are resolved
//! when it is sent.

pub mod collection;
mod kept_keys;
mod parameter;
mod parameters;
mod pending;
mod request;
mod table;

use std::{fmt, marker::PhantomData};

use crate::{
    field::{Route, Scope, Tier},
    release::Release,
};

pub use kept_keys::Wanted;
pub use parameter::{Parameter, Place, Type};
pub use parameters::List;
pub use pending::{created_at, id_of};
pub use request::{Body, Request};
pub use table::*;

/// An HTTP method of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates, or acts.
    Post,
    /// Edits.
    Put,
    /// Edits, with lists as differences.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// The method as it is written on the wire.
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

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One row of the table. Two rows are equal if their ids are.
#[derive(Debug)]
pub struct Operation {
    /// The name that journal, counts and errors use, for example `variable-update`.
    pub id: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path below `/api/v4`, for example `/projects/:id/variables/:key`.
    pub path: &'static str,
    /// What it does, in a few words.
    pub purpose: &'static str,
    /// Where it is described: `chapter, section` of the reference, or `supporting` for what the
    /// reference leaves out.
    pub source: &'static str,
    /// What a success brings.
    pub answer: Answer,
    /// What it takes, in lists that may be shared with others.
    pub parameters: &'static [List],
    /// The scope and the section of a manifest whose fields its body takes too, and as what kind of
    /// request. The kinds describe those fields.
    pub fields: Option<((Scope, &'static str), Route)>,
    /// Parameters of which at least one has to be there.
    pub one_of: &'static [&'static str],
    /// The lowest tier of the service that has it.
    pub tier: Tier,
    /// The release of the service that brought it.
    pub since: Option<Release>,
    /// Whether it is for administrators only.
    pub administrators: bool,
    /// What another sending of it would do.
    pub again: Again,
    /// Whether a 401 says that the caller may not, or that the service has it switched off, and nothing
    /// about the token.
    pub denies_with_401: bool,
    /// Of a write: whether its answer shows the object as a read would, so that what it shows need
    /// not be read back.
    pub shows: bool,
    /// Of a write: whether the service answers with 304 where there is nothing to do, which is a
    /// success.
    pub may_be_done: bool,
    /// Of a delete: whether the service refuses it (412) if what it removes changed after a time that
    /// the request says (`If-Unmodified-Since`).
    pub conditional: bool,
    /// Of a list: whether it can also be read by keyset, behind an id instead of by page number.
    pub by_keyset: bool,
    /// How many requests a minute of one user a service that limits requests is known to answer,
    /// where it does not announce that.
    pub a_minute: Option<u32>,
    /// Whether the service removes what the caller may not see from a page after it cut the list
    /// into pages. A page may then be short, or empty, anywhere, so that such a list is never known
    /// to be whole.
    pub filtered_after_paging: bool,
    /// Of a list: whether one answer has all of it, whatever page is asked for, and says nothing of
    /// pages.
    pub unpaged: bool,
}

/// What another sending of a request would do, after one whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Nothing: it reads.
    Reads,
    /// Nothing more: it says how things shall be.
    Same,
    /// It would be refused if the first was carried out: the service keeps what it creates unique.
    Refused,
    /// It would create a second object.
    Second,
    /// It would start something that must not start twice.
    Never,
}

impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Operation {}

/// What the answer to a success holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// One object.
    One,
    /// A list, page by page.
    List,
    /// An object whose keys are data, such as the names of languages.
    Map,
    /// Nothing.
    Nothing,
    /// The reference does not say.
    Unsaid,
}

impl Operation {
    /// A row with nothing special about it.
    const fn new(
        id: &'static str,
        method: Method,
        path: &'static str,
        purpose: &'static str,
        source: &'static str,
        answer: Answer,
        parameters: &'static [List],
    ) -> Self {
        let again = match method {
            Method::Get => Again::Reads,
            Method::Put | Method::Patch | Method::Delete => Again::Same,
            Method::Post => Again::Second,
        };
        // What a delete names may be absent already: a project that is no fork, for example.
        let may_be_done = matches!(method, Method::Delete);
        Self {
            id,
            method,
            path,
            purpose,
            source,
            answer,
            parameters,
            fields: None,
            one_of: &[],
            tier: Tier::Free,
            since: None,
            administrators: false,
            again,
            denies_with_401: false,
            shows: false,
            may_be_done,
            conditional: false,
            by_keyset: false,
            a_minute: None,
            filtered_after_paging: false,
            unpaged: false,
        }
    }

    /// What it takes, without what a manifest can say too.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        self.parameters.iter().flat_map(|list| list.parameters())
    }

    /// Services that limit requests answer so many a minute.
    const fn at_most(self, a_minute: u32) -> Self {
        Self { a_minute: Some(a_minute), ..self }
    }

    /// Another sending does something else than with most operations of its method.
    const fn again(self, again: Again) -> Self {
        Self { again, ..self }
    }

    /// Its answer shows the object as a read would.
    const fn shows(self) -> Self {
        Self { shows: true, ..self }
    }

    /// It may have nothing to do, which is answered with 304.
    const fn may_be_done(self) -> Self {
        Self { may_be_done: true, ..self }
    }

    /// It can be refused if what it removes changed meanwhile.
    const fn conditional(self) -> Self {
        Self { conditional: true, ..self }
    }

    /// Its list can be read by keyset.
    const fn by_keyset(self) -> Self {
        Self { by_keyset: true, ..self }
    }

    const fn fields(self, section: &'static str, route: Route) -> Self {
        self.fields_of(Scope::Project, section, route)
    }

    const fn fields_of(self, scope: Scope, section: &'static str, route: Route) -> Self {
        Self { fields: Some(((scope, section), route)), ..self }
    }

    const fn one_of(self, names: &'static [&'static str]) -> Self {
        Self { one_of: names, ..self }
    }

    const fn premium(self) -> Self {
        Self { tier: Tier::Premium, ..self }
    }

    const fn since(self, major: u16, minor: u16) -> Self {
        Self { since: Some(Release::new(major, minor)), ..self }
    }

    const fn administrators(self) -> Self {
        Self { administrators: true, ..self }
    }

    /// The service filters its list after paging.
    const fn filtered_after_paging(self) -> Self {
        Self { filtered_after_paging: true, ..self }
    }
}

/// Marks an operation that changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read;

/// Marks an operation that may change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write;

/// A row of the table together with its effect, [`Read`] or [`Write`].
#[derive(Clone, Copy, Debug)]
pub struct Op<E> {
    row: &'static Operation,
    effect: PhantomData<E>,
}

impl<E: Copy> Op<E> {
    const fn new(row: &'static Operation) -> Self {
        Self { row, effect: PhantomData }
    }

    /// The row itself.
    pub const fn row(self) -> &'static Operation {
        self.row
    }

    /// A request for this operation without arguments.
    pub const fn request(self) -> Request<E> {
        Request::of(self.row)
    }
}

/// An operation that is found by its name, with its effect.
#[derive(Clone, Copy, Debug)]
pub enum AnyOp {
    /// It changes nothing.
    Read(Op<Read>),
    /// It may change something.
    Write(Op<Write>),
}

impl AnyOp {
    /// The row itself.
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
    fn every_operation_says_what_another_sending_would_do() {
        let rows = |again, method| {
            let rows = OPERATIONS
                .iter()
                .map(|op| op.row())
                .filter(|row| row.method == method && row.again == again);
            rows.map(|row| row.id).collect::<Vec<_>>()
        };
        let all = |method| OPERATIONS.iter().filter(|op| op.row().method == method).count();
        assert_eq!(rows(Again::Reads, Method::Get).len(), all(Method::Get));
        assert_eq!(rows(Again::Refused, Method::Put), ["project-transfer"]);
        assert_eq!(rows(Again::Same, Method::Put).len(), all(Method::Put) - 1);
        assert_eq!(rows(Again::Refused, Method::Patch).len(), all(Method::Patch));
        assert_eq!(rows(Again::Never, Method::Delete), ["project-delete", "group-delete"]);
        assert_eq!(rows(Again::Same, Method::Delete).len(), all(Method::Delete) - 2);
        let posts = [
            (
                Again::Same,
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
                Again::Never,
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
                Again::Refused,
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
                    "protected-branch-add",
                    "approval-rule-add",
                    "group-create",
                    "group-transfer",
                    "group-share",
                    "group-push-rule-add",
                ],
            ),
            (
                Again::Second,
                &[
                    "project-upload",
                    "hook-add",
                    "pipeline-schedule-create",
                    "merge-request-note-create",
                    "group-hook-add",
                ],
            ),
        ];
        for (again, ids) in posts {
            assert_eq!(rows(again, Method::Post), ids, "{again:?}");
        }
    }

    /// Held against what the service is known to answer; what starts something in the background,
    /// or answers with a status only, is not among them.
    #[test]
    fn these_writes_show_what_they_wrote() {
        let rows = || OPERATIONS.iter().map(|op| op.row());
        let showing: Vec<_> = rows().filter(|row| row.shows).map(|row| row.id).collect();
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
        ];
        assert_eq!(showing, expected);
        assert!(
            rows()
                .filter(|row| row.shows)
                .all(|row| matches!(row.method, Method::Post | Method::Put | Method::Patch))
        );
    }
}
