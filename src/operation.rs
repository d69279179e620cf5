//! The table of operations of the service, and requests as values.
//!
//! Every request that undrift sends names one row of this table: its id appears in the journal, in errors and in counts, its path is
//! a template that only this module fills in, and its type says whether it reads or writes. A [`Request<Read>`] is all that
//! a planning client accepts, so that planning cannot write.
//!
//! A request is a value without IO. Its body may still hold secret references; they are resolved when it is sent.

use std::{borrow::Cow, fmt, marker::PhantomData};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::value::{Fields, Value};

/// An HTTP method of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates, or acts.
    Post,
    /// Edits.
    Put,
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
            Self::Delete => "DELETE",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Operation {
    /// The name that journal, counts and errors use, for example `variable-update`.
    pub id: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path below `/api/v4`, for example `/projects/:id/variables/:key`.
    pub path: &'static str,
    /// What it does, in a few words.
    pub purpose: &'static str,
    /// Where it is described: `chapter, section` of the reference, or `supporting` for what the reference leaves out.
    pub source: &'static str,
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

impl<E> Op<E> {
    const fn new(row: &'static Operation) -> Self {
        Self { row, effect: PhantomData }
    }

    /// The row itself.
    pub const fn row(self) -> &'static Operation
    where
        E: Copy,
    {
        self.row
    }

    /// A request for this operation without arguments.
    pub const fn request(self) -> Request<E>
    where
        E: Copy,
    {
        Request { operation: self.row, arguments: Vec::new(), query: Vec::new(), body: Body::None, effect: PhantomData }
    }
}

macro_rules! operations {
    ($($effect:ident $name:ident = $id:literal $method:ident $path:literal, $purpose:literal, $source:literal;)*) => {
        $(
            #[doc = concat!("`", $id, "`: ", $purpose, " (", $source, ").")]
            pub const $name: Op<$effect> = Op::new(&Operation {
                id: $id, method: Method::$method, path: $path, purpose: $purpose, source: $source,
            });
        )*
        /// Every operation that undrift knows.
        pub static OPERATIONS: &[&Operation] = &[$($name.row),*];
    };
}

operations! {
    Read VARIABLE_LIST = "variable-list" Get "/projects/:id/variables", "list variables", "1, 4.1";
    Write VARIABLE_CREATE = "variable-create" Post "/projects/:id/variables", "create a variable", "1, 4.1";
    Write VARIABLE_UPDATE = "variable-update" Put "/projects/:id/variables/:key", "update a variable", "1, 4.1";
    Write VARIABLE_DELETE = "variable-delete" Delete "/projects/:id/variables/:key", "delete a variable", "1, 4.1";

    Read MEMBER_LIST = "project-member-list" Get "/projects/:id/members", "list direct members", "1, 4.3";
    Read MEMBER_LIST_ALL = "project-member-list-all" Get "/projects/:id/members/all", "list members, inherited and invited ones too", "1, 4.3";
    Write MEMBER_CREATE = "project-member-add" Post "/projects/:id/members", "add a member", "1, 4.3";
    Write MEMBER_UPDATE = "project-member-edit" Put "/projects/:id/members/:user_id", "edit a member", "1, 4.3";
    Write MEMBER_DELETE = "project-member-remove" Delete "/projects/:id/members/:user_id", "remove a member", "1, 4.3";

    Read PROJECT_LIST = "project-list" Get "/projects", "list projects", "2, 4.1";
    Read USER_PROJECTS = "user-project-list" Get "/users/:user_id/projects", "list a user's projects", "2, 4.1";
    Read PROJECT_GET = "project-get" Get "/projects/:id", "get a project", "2, 4.2";
    Write PROJECT_CREATE = "project-create" Post "/projects", "create a project", "2, 4.3";
    Write PROJECT_CREATE_FOR_USER = "project-create-for-user" Post "/projects/user/:user_id", "create a project for a user", "2, 4.3";
    Write PROJECT_UPDATE = "project-edit" Put "/projects/:id", "edit a project", "2, 4.3";
    Write PROJECT_ARCHIVE = "project-archive" Post "/projects/:id/archive", "archive a project", "2, 4.4";
    Write PROJECT_UNARCHIVE = "project-unarchive" Post "/projects/:id/unarchive", "unarchive a project", "2, 4.4";

    Read HOOK_LIST = "hook-list" Get "/projects/:id/hooks", "list hooks", "2, 4.5";
    Write HOOK_CREATE = "hook-add" Post "/projects/:id/hooks", "add a hook", "2, 4.5";
    Write HOOK_UPDATE = "hook-edit" Put "/projects/:id/hooks/:hook_id", "edit a hook", "2, 4.5";
    Write HOOK_DELETE = "hook-delete" Delete "/projects/:id/hooks/:hook_id", "delete a hook", "2, 4.5";

    Read PUSH_RULE_GET = "push-rule-get" Get "/projects/:id/push_rule", "get the push rule", "2, 4.6";
    Write PUSH_RULE_CREATE = "push-rule-add" Post "/projects/:id/push_rule", "add the push rule", "2, 4.6";
    Write PUSH_RULE_UPDATE = "push-rule-edit" Put "/projects/:id/push_rule", "edit the push rule", "2, 4.6";
    Write PUSH_RULE_DELETE = "push-rule-delete" Delete "/projects/:id/push_rule", "delete the push rule", "2, 4.6";

    Read CURRENT_USER = "current-user" Get "/user", "who the token belongs to", "supporting";
    Read USER_FIND = "user-find" Get "/users", "find a user by name", "supporting";
    Read NAMESPACE_GET = "namespace-get" Get "/namespaces/:id", "get a namespace", "supporting";
    Read GROUP_PROJECTS = "group-project-list" Get "/groups/:id/projects", "list a group's projects", "supporting";
}

/// What a request carries.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body {
    /// Nothing.
    #[default]
    None,
    /// A JSON object.
    Json(Fields),
    /// A form with files: names with values, at least one of them a [`Value::File`].
    Multipart(Fields),
}

/// A request not yet sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<E> {
    /// The row of the table that it is for.
    pub operation: &'static Operation,
    arguments: Vec<(&'static str, String)>,
    query: Vec<(Cow<'static, str>, String)>,
    /// What it carries.
    pub body: Body,
    effect: PhantomData<E>,
}

/// What stays as it is within one path segment or query part (RFC 3986, unreserved).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// `text` as one path segment or one part of a query: everything but RFC 3986's unreserved characters is percent-encoded.
pub fn encode(text: &str) -> impl fmt::Display + '_ {
    utf8_percent_encode(text, UNRESERVED)
}

impl<E> Request<E> {
    /// Fills in `:name` of the path template; `value` is percent-encoded when the path is built.
    #[must_use]
    pub fn arg(mut self, name: &'static str, value: impl ToString) -> Self {
        debug_assert!(self.operation.path.split('/').any(|s| s.strip_prefix(':') == Some(name)), "no :{name} in {}", self.operation.path);
        self.arguments.push((name, value.to_string()));
        self
    }

    /// Adds a query parameter, or replaces it.
    #[must_use]
    pub fn query(mut self, name: impl Into<Cow<'static, str>>, value: impl ToString) -> Self {
        let (name, value) = (name.into(), value.to_string());
        match self.query.iter_mut().find(|(n, _)| *n == name) {
            Some(pair) => pair.1 = value,
            None => self.query.push((name, value)),
        }
        self
    }

    /// Carries `fields` as JSON, or as a form if one of them is a file.
    #[must_use]
    pub fn fields(mut self, fields: Fields) -> Self {
        let files = fields.values().any(|v| matches!(v, Value::File(_)));
        self.body = if files { Body::Multipart(fields) } else { Body::Json(fields) };
        self
    }

    /// The fields that it carries.
    pub const fn body_fields(&self) -> Option<&Fields> {
        match &self.body {
            Body::None => None,
            Body::Json(fields) | Body::Multipart(fields) => Some(fields),
        }
    }

    /// The path below `/api/v4` with every argument in place, without the query.
    pub fn path(&self) -> String {
        let segments = self.operation.path.split('/').map(|segment| {
            let Some(name) = segment.strip_prefix(':') else { return segment.to_owned() };
            let value = self.arguments.iter().find(|(n, _)| *n == name);
            value.map_or_else(|| segment.to_owned(), |(_, v)| encode(v).to_string())
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// The path and the query, percent-encoded.
    pub fn target(&self) -> String {
        let mut target = self.path();
        for (i, (name, value)) in self.query.iter().enumerate() {
            target.push(if i == 0 { '?' } else { '&' });
            target += &format!("{}={}", encode(name), encode(value));
        }
        target
    }
}

/// The method and the path, as errors and plans show a request: never its body.
impl<E> fmt::Display for Request<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation.method, self.target())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_named_once_and_reads_only_with_get() {
        let ids: BTreeSet<_> = OPERATIONS.iter().map(|o| o.id).collect();
        assert_eq!(ids.len(), OPERATIONS.len());
        let routes: BTreeSet<_> = OPERATIONS.iter().map(|o| (o.method.as_str(), o.path)).collect();
        assert_eq!(routes.len(), OPERATIONS.len());
    }

    #[test]
    fn a_path_argument_is_one_segment_whatever_it_holds() {
        let request =
            VARIABLE_UPDATE.request().arg("id", "acme/my.shop").arg("key", "A/B?c#d é").query("filter[environment_scope]", "prod/*");
        assert_eq!(request.target(), "/projects/acme%2Fmy.shop/variables/A%2FB%3Fc%23d%20%C3%A9?filter%5Benvironment_scope%5D=prod%2F%2A");
    }

    #[test]
    fn a_query_parameter_is_sent_once() {
        assert_eq!(PROJECT_LIST.request().query("page", 1).query("page", 2).target(), "/projects?page=2");
    }
}
