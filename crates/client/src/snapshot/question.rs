//! Recognises which question a request asks.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::form_urlencoded;

use crate::{
    catalogue,
    field::Scope,
    operation::{self, AnyOp, Op, Operation, Read, Request},
};

/// Parameters that only affect pages and order of a list.
const PAGING_PARAMETERS: [&str; 7] =
    ["page", "per_page", "pagination", "order_by", "sort", "id_after", "cursor"];

/// What a request asks, independent of pages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestKey {
    /// The other arguments of the path.
    pub arguments: BTreeMap<String, String>,
    /// The group or project that it concerns: its id, or its path in lower case.
    pub of: Option<String>,
    /// The operation, by its id.
    pub operation: String,
    /// The query parameters.
    pub query: BTreeMap<String, String>,
}

/// The kind of object that a request reads.
pub(super) enum QuerySubject<'q> {
    /// A group or project by itself.
    Object(Scope),
    /// Everything of a scope below a root (path or id); an empty root means the top level.
    Roster(Scope, &'q str),
    /// The user of this name.
    User(&'q str),
    Other,
}

/// A question with its operation.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) op: Op<Read>,
    /// Whether it concerns a group or a project.
    pub(super) scope: Option<Scope>,
    pub(super) key: RequestKey,
}

impl Query {
    /// The question in a request with this path and query; `None` if no read operation matches.
    pub(super) fn read(target: &str) -> Option<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let parts: Vec<String> = path.split('/').map(decode_segment).collect::<Option<_>>()?;
        let matching_operations = read_operations().filter(|op| matches_path(op.row(), &parts));
        // `/members/all` is an operation of its own, not a member of that name.
        let op = matching_operations.max_by_key(|op| fixed_segment_count(op.row()))?;
        let scope = scope_of(op.row());
        let (mut container_key, mut arguments) = (None, BTreeMap::new());
        for (name, value) in op.row().path.split('/').zip(parts) {
            match name.strip_prefix(':') {
                Some("id") if scope.is_some() => container_key = Some(value.to_lowercase()),
                Some(name) => drop(arguments.insert(name.to_owned(), value)),
                None => {}
            }
        }
        let query = form_urlencoded::parse(query.as_bytes()).into_owned();
        let query = query.filter(|(name, _)| !PAGING_PARAMETERS.contains(&name.as_str())).collect();
        let operation = op.row().id.to_owned();
        Some(Self { op, scope, key: RequestKey { operation, of: container_key, arguments, query } })
    }

    /// The group or project that it concerns: its id, or its path in lower case.
    pub(super) fn container(&self) -> &str {
        self.key.of.as_deref().unwrap_or_default()
    }

    /// True if the operation of the query is `op`.
    pub(super) fn is_operation(&self, op: Op<Read>) -> bool {
        self.op.row() == op.row()
    }

    /// An argument of its path.
    pub(super) fn argument(&self, name: &str) -> &str {
        self.key.arguments.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The kind of object that the request reads.
    pub(super) fn subject(&self) -> QuerySubject<'_> {
        let query = &self.key.query;
        let is_whole = query.get("with_shared").is_some_and(|value| value == "false");
        match query.get("username") {
            _ if self.is_operation(operation::GROUP_GET) => QuerySubject::Object(Scope::Group),
            _ if self.is_operation(operation::PROJECT_GET) => QuerySubject::Object(Scope::Project),
            _ if self.is_operation(operation::GROUP_LIST) => QuerySubject::Roster(Scope::Group, ""),
            _ if self.is_operation(operation::GROUP_DESCENDANTS) => {
                QuerySubject::Roster(Scope::Group, self.container())
            }
            _ if self.is_operation(operation::GROUP_PROJECTS) && is_whole => {
                QuerySubject::Roster(Scope::Project, self.container())
            }
            Some(name) if self.is_operation(operation::USER_FIND) => QuerySubject::User(name),
            _ => QuerySubject::Other,
        }
    }

    /// Whether the operation with this id concerns a group or a project.
    pub(super) fn scope_of(id: &str) -> Option<Scope> {
        read_operations().find(|op| op.row().id == id).and_then(|op| scope_of(op.row()))
    }

    /// The request for this question.
    pub(super) fn request(&self) -> Request<Read> {
        let path = self.op.row().path;
        let names = path.split('/').filter_map(|part| part.strip_prefix(':'));
        let request = names.fold(self.op.request(), |request, name| match name {
            "id" if self.scope.is_some() => request.arg(name, self.container()),
            _ => request.arg(name, self.argument(name)),
        });
        let query = self.key.query.iter();
        query.fold(request, |request, (name, value)| request.query(name.clone(), value))
    }
}

fn scope_of(row: &Operation) -> Option<Scope> {
    let is_of = |scope: &Scope| row.path.starts_with(&format!("/{}s/:id", scope.noun()));
    Scope::ALL.into_iter().find(is_of)
}

/// All operations that read.
fn read_operations() -> impl Iterator<Item = Op<Read>> {
    let all_operations =
        operation::OPERATIONS.iter().chain(catalogue::registry().described_operations());
    all_operations.filter_map(|op| match op {
        AnyOp::Read(op) => Some(*op),
        AnyOp::Write(_) => None,
    })
}

/// True if a path with these segments may belong to `row`.
fn matches_path(row: &Operation, parts: &[String]) -> bool {
    row.path.split('/').count() == parts.len()
        && row.path.split('/').zip(parts).all(|(name, part)| name.starts_with(':') || name == part)
}

/// The number of fixed segments in its path.
fn fixed_segment_count(row: &Operation) -> usize {
    row.path.split('/').filter(|part| !part.starts_with(':')).count()
}

fn decode_segment(part: &str) -> Option<String> {
    percent_decode_str(part).decode_utf8().ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every read operation is recognised, and requested again in the same form.
    #[test]
    fn every_operation_that_reads_is_recognised() {
        for op in read_operations() {
            let names = op.row().path.split('/').filter_map(|part| part.strip_prefix(':'));
            let request = names.fold(op.request(), |request, name| {
                request.arg(name, if name == "id" { "acme/a b" } else { "x/y%" })
            });
            let request = request.query("x[y]", "a&b=c").query("with", "");
            let target = request.clone().query("page", 3).query("per_page", 100).target();
            let query = Query::read(&target).unwrap();
            assert_eq!(query.op.row().id, op.row().id);
            assert_eq!(query.request().path(), request.path());
            let again = Query::read(&query.request().target()).unwrap();
            assert_eq!(again.key, query.key);
        }
        for none in ["", "/", "/nothing", "/projects/%FF", "/projects/1/none/of/these"] {
            assert!(Query::read(none).is_none(), "{none}");
        }
    }
}
