//! Recognises the operation and the parameters of a read request.

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

/// Parameters that only affect the pages and the order of a list.
const PAGING_PARAMETERS: [&str; 7] =
    ["page", "per_page", "pagination", "order_by", "sort", "id_after", "cursor"];

/// A read request without paging parameters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestKey {
    /// The arguments of the path, by name, without the group or project.
    pub arguments: BTreeMap<String, String>,
    /// The group or project of the request: its id, or its path in lower case.
    pub of: Option<String>,
    /// The operation, by its id.
    pub operation: String,
    /// The query parameters.
    pub query: BTreeMap<String, String>,
}

/// The kind of object that a request reads.
pub(super) enum QuerySubject<'q> {
    /// A single group or project.
    Object(Scope),
    /// All containers of a scope below a root, which is a path or an id. An empty root means the
    /// top level.
    Roster(Scope, &'q str),
    /// The user with this name.
    User(&'q str),
    Other,
}

/// A read request with its operation.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) op: Op<Read>,
    /// The scope of the container in the path of the request; `None` if the path has no container.
    pub(super) scope: Option<Scope>,
    pub(super) key: RequestKey,
}

impl Query {
    /// Parses the target of a request (path and query); `None` if no read operation matches.
    pub(super) fn parse(target: &str) -> Option<Self> {
        let (path, query_string) = target.split_once('?').unwrap_or((target, ""));
        let segments: Vec<String> = path.split('/').map(decode_segment).collect::<Option<_>>()?;
        let operations = read_operations().filter(|op| matches_path(op.row(), &segments));
        // `/members/all` is a separate operation, not the member `all`.
        let op = operations.max_by_key(|op| fixed_segment_count(op.row()))?;
        let scope = container_scope(op.row());
        let (mut container_key, mut arguments) = (None, BTreeMap::new());
        for (name, value) in op.row().path.split('/').zip(segments) {
            match name.strip_prefix(':') {
                Some("id") if scope.is_some() => container_key = Some(value.to_lowercase()),
                Some(name) => drop(arguments.insert(name.to_owned(), value)),
                None => {}
            }
        }
        let parameters = form_urlencoded::parse(query_string.as_bytes()).into_owned();
        let parameters =
            parameters.filter(|(name, _)| !PAGING_PARAMETERS.contains(&name.as_str())).collect();
        let operation = op.row().id.to_owned();
        Some(Self {
            op,
            scope,
            key: RequestKey { operation, of: container_key, arguments, query: parameters },
        })
    }

    /// The group or project of the request: its id, or its path in lower case. Empty if the request
    /// has no group or project.
    pub(super) fn container_key(&self) -> &str {
        self.key.of.as_deref().unwrap_or_default()
    }

    /// True if the operation of the query is `op`.
    pub(super) fn is_operation(&self, op: Op<Read>) -> bool {
        self.op.row() == op.row()
    }

    /// The argument `name` of the path; empty if the path has no such argument.
    pub(super) fn argument(&self, name: &str) -> &str {
        self.key.arguments.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The kind of object that the request reads.
    pub(super) fn subject(&self) -> QuerySubject<'_> {
        let parameters = &self.key.query;
        let excludes_shared = parameters.get("with_shared").is_some_and(|value| value == "false");
        match parameters.get("username") {
            _ if self.is_operation(operation::GROUP_GET) => QuerySubject::Object(Scope::Group),
            _ if self.is_operation(operation::PROJECT_GET) => QuerySubject::Object(Scope::Project),
            _ if self.is_operation(operation::GROUP_LIST) => QuerySubject::Roster(Scope::Group, ""),
            _ if self.is_operation(operation::GROUP_DESCENDANTS) => {
                QuerySubject::Roster(Scope::Group, self.container_key())
            }
            _ if self.is_operation(operation::GROUP_PROJECTS) && excludes_shared => {
                QuerySubject::Roster(Scope::Project, self.container_key())
            }
            Some(name) if self.is_operation(operation::USER_FIND) => QuerySubject::User(name),
            _ => QuerySubject::Other,
        }
    }

    /// The scope of the containers that the operation with this id reads.
    pub(super) fn operation_scope(id: &str) -> Option<Scope> {
        read_operations().find(|op| op.row().id == id).and_then(|op| container_scope(op.row()))
    }

    /// Builds the request again, without paging parameters.
    pub(super) fn request(&self) -> Request<Read> {
        let path = self.op.row().path;
        let names = path.split('/').filter_map(|segment| segment.strip_prefix(':'));
        let request = names.fold(self.op.request(), |request, name| match name {
            "id" if self.scope.is_some() => request.with_argument(name, self.container_key()),
            _ => request.with_argument(name, self.argument(name)),
        });
        let parameters = self.key.query.iter();
        parameters.fold(request, |request, (name, value)| request.with_query(name.clone(), value))
    }
}

fn container_scope(operation: &Operation) -> Option<Scope> {
    let has_prefix = |scope: &Scope| operation.path.starts_with(&format!("/{}s/:id", scope.noun()));
    Scope::ALL.into_iter().find(has_prefix)
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

/// True if a path with these segments matches the path of `operation`.
fn matches_path(operation: &Operation, segments: &[String]) -> bool {
    operation.path.split('/').count() == segments.len()
        && operation
            .path
            .split('/')
            .zip(segments)
            .all(|(name, segment)| name.starts_with(':') || name == segment)
}

/// The number of segments in the operation's path that are not arguments.
fn fixed_segment_count(operation: &Operation) -> usize {
    operation.path.split('/').filter(|segment| !segment.starts_with(':')).count()
}

fn decode_segment(segment: &str) -> Option<String> {
    percent_decode_str(segment).decode_utf8().ok().map(Into::into)
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
                request.with_argument(name, if name == "id" { "acme/a b" } else { "x/y%" })
            });
            let request = request.with_query("x[y]", "a&b=c").with_query("with", "");
            let target =
                request.clone().with_query("page", 3).with_query("per_page", 100).path_and_query();
            let query = Query::parse(&target).unwrap();
            assert_eq!(query.op.row().id, op.row().id);
            assert_eq!(query.request().path(), request.path());
            let reparsed = Query::parse(&query.request().path_and_query()).unwrap();
            assert_eq!(reparsed.key, query.key);
        }
        for none in ["", "/", "/nothing", "/projects/%FF", "/projects/1/none/of/these"] {
            assert!(Query::parse(none).is_none(), "{none}");
        }
    }
}
